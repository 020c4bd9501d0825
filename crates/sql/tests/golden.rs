//! Golden scripts: stories of sessions over the in-memory database, one file each under `tests/golden`.
//!
//! ```text
//! # what the story shows
//!
//! [b] SELECT 1;       one simple query, of session b (none: session a; b@d: in the database d); it may have several lines
//! ----
//! a:int4              the answer, up to an empty line
//! 1
//! SELECT 1
//! ```
//! A block of `\extended` sends its first further line through Parse, Bind, Describe, Execute and Sync, with the next lines as
//! values (`\N` is NULL). `\copy` sends its first further line as a query, and the rest as the data of its COPY.
//!
//! `BLESS=1 cargo test -p timeball-sql --test golden` writes the answers anew.

use sql::context::EvalSettings;
use sql::output::Mark;
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::types::Value;
use sql::{Database, DatabaseOptions, Field, Output, Session, SqlError, Startup};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Default)]
struct Collector {
    lines: Vec<String>,
}

impl Output for Collector {
    fn row_description(&mut self, fields: &[Field], _formats: &[i16]) {
        let fields: Vec<_> = fields.iter().map(|f| format!("{}:{}", f.name, f.ty.typname())).collect();
        self.lines.push(if fields.is_empty() { "(no columns)".into() } else { fields.join(" | ") });
    }
    fn row(&mut self, values: &[Value], fields: &[Field], _: &[i16], settings: &EvalSettings) -> Result<(), SqlError> {
        assert_eq!(values.len(), fields.len(), "a row has as many values as the result has columns");
        let shown = |(v, f): (&Value, &Field)| if v.is_null() { "NULL".into() } else { v.to_text(&f.ty, settings) };
        let row: Vec<_> = values.iter().zip(fields).map(shown).collect();
        self.lines.push(if row.is_empty() { "()".into() } else { row.join(" | ") });
        Ok(())
    }
    fn command_complete(&mut self, tag: &str) {
        self.lines.push(tag.into());
    }
    fn empty_query(&mut self) {
        self.lines.push("(empty)".into());
    }
    fn notice(&mut self, notice: &SqlError) {
        let level = if notice.state.as_str() == "00000" { "NOTICE" } else { "WARNING" };
        self.lines.push(format!("{level}: {}", notice.message));
    }
    fn parameter_status(&mut self, name: &str, value: &str) {
        self.lines.push(format!("({name} = {value})"));
    }
    fn copy_in(&mut self, columns: usize, _: bool) {
        self.lines.push(format!("(copy in, {columns} columns)"));
    }
    fn copy_out(&mut self, columns: usize, _: bool) {
        self.lines.push(format!("(copy out, {columns} columns)"));
    }
    fn copy_data(&mut self, line: &[u8]) -> Result<(), SqlError> {
        self.lines.push(String::from_utf8_lossy(line).trim_end_matches('\n').into());
        Ok(())
    }
    fn copy_done(&mut self) {
        self.lines.push("(copy done)".into());
    }
    fn mark(&self) -> Mark {
        Mark(self.lines.len() as u64)
    }
    fn rewind(&mut self, mark: Mark) -> bool {
        self.lines.truncate(mark.0 as usize);
        true
    }
}

struct Story {
    db: Arc<Database>,
    sessions: BTreeMap<String, Session>,
}

impl Story {
    fn new(kv: MemoryKv) -> Self {
        // The sessions of a story take turns: whoever waited for another would wait for ever.
        let options = DatabaseOptions { waits_for_users: false, ..DatabaseOptions::default() };
        let db = Database::open(Arc::new(kv), options).expect("open");
        Story { db, sessions: BTreeMap::new() }
    }

    fn session(&mut self, name: &str) -> &mut Session {
        let db = self.db.clone();
        self.sessions.entry(name.into()).or_insert_with(|| {
            let backend_pid = 100 + i32::from(name.as_bytes()[0] - b'a');
            let database = name.split_once('@').map_or("postgres", |(_, database)| database).into();
            let startup = Startup { user: "root".into(), database, backend_pid, ..Startup::default() };
            let mut session = Session::new(db, startup, Interrupt::default()).expect("session");
            session.initial_parameters();
            session
        })
    }

    fn run(&mut self, input: &str) -> String {
        let (name, text) = match input.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((name, text)) => (name, text),
            None => ("a", input),
        };
        let session = self.session(name);
        let mut out = Collector::default();
        let result = if let Some(text) = text.strip_prefix("\\extended\n") {
            extended(session, text, &mut out)
        } else if let Some(text) = text.strip_prefix("\\copy\n") {
            copy(session, text, &mut out)
        } else {
            session.simple_query(text, &mut out)
        };
        if let Err(e) = result {
            out.lines.push(show_error(&e));
        }
        session.wait_for_client();
        let mut shown = out.lines.join("\n");
        match session.transaction_status() {
            sql::TransactionStatus::Idle => {}
            sql::TransactionStatus::InBlock => shown.push_str("\n(in block)"),
            sql::TransactionStatus::Failed => shown.push_str("\n(failed)"),
        }
        shown
    }
}

fn extended(session: &mut Session, text: &str, out: &mut Collector) -> Result<(), SqlError> {
    let mut lines = text.lines();
    let sql = lines.next().unwrap_or_default();
    let params: Vec<Option<&[u8]>> = lines.map(|l| if l == "\\N" { None } else { Some(l.as_bytes()) }).collect();
    let result = (|| {
        session.parse("", sql, &[])?;
        session.bind("", "", &params, &[], &[])?;
        let (fields, formats) = session.describe_portal("", true)?;
        match fields {
            None => out.lines.push("(no data)".into()),
            Some(fields) => out.row_description(fields, formats),
        }
        session.execute("", 0, true, out)?;
        Ok(())
    })();
    result.and(session.sync())
}

fn copy(session: &mut Session, text: &str, out: &mut Collector) -> Result<(), SqlError> {
    let (sql, data) = text.split_once('\n').unwrap_or((text, ""));
    session.simple_query(sql, out)?;
    assert!(session.in_copy(), "a COPY FROM STDIN is under way after {sql}");
    // In pieces that do not respect lines, as a network delivers them.
    for piece in format!("{data}\n").as_bytes().chunks(7) {
        session.copy_data(piece)?;
    }
    session.copy_done(out)
}

fn show_error(e: &SqlError) -> String {
    let mut shown = format!("ERROR {}: {}", e.state.as_str(), e.message);
    for (name, value) in [("detail", &e.detail), ("hint", &e.hint), ("constraint", &e.constraint)] {
        if let Some(value) = value {
            let _ = write!(shown, "\n  {name}: {value}");
        }
    }
    if let Some(position) = e.position {
        let _ = write!(shown, "\n  position: {position}");
    }
    shown
}

/// Runs a script; gives it with the answers that came.
fn replay(script: &str, kv: MemoryKv) -> String {
    let mut story = Story::new(kv);
    let mut shown = String::new();
    for block in script.trim_end().split("\n\n") {
        let block = block.trim_matches('\n');
        if block.lines().all(|l| l.starts_with('#')) {
            let _ = write!(shown, "{block}\n\n");
            continue;
        }
        let input = block.split("\n----").next().unwrap_or(block);
        let comments: Vec<_> = input.lines().take_while(|l| l.starts_with("# ")).collect();
        let text: Vec<_> = input.lines().skip(comments.len()).collect();
        let answer = story.run(&text.join("\n"));
        let _ = write!(shown, "{input}\n----\n{}\n\n", answer.replace("\n\n", "\n"));
    }
    format!("{}\n", shown.trim_end())
}

fn check(path: &Path) {
    let script = std::fs::read_to_string(path).expect("read");
    let shown = replay(&script, MemoryKv::new());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, shown).expect("write");
        return;
    }
    if shown != script {
        let differing = shown.lines().zip(script.lines()).position(|(a, b)| a != b).unwrap_or(0);
        panic!(
            "{} differs from line {}; what came:\n{}\nBLESS=1 cargo test -p timeball-sql --test golden",
            path.display(),
            differing + 1,
            shown.lines().skip(differing.saturating_sub(3)).take(25).collect::<Vec<_>>().join("\n")
        );
    }
}

/// The scripts, in order.
fn scripts() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).expect("dir").map(|e| e.expect("entry").path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "sql"));
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn golden_scripts() {
    scripts().iter().for_each(|file| check(file));
}

/// Nothing depends on what is asked for ahead: where rows are far statements find them in groups, and say the same.
#[test]
fn what_is_far_answers_as_what_is_near() {
    for file in scripts() {
        let script = std::fs::read_to_string(&file).expect("read");
        let far = replay(&script, MemoryKv::far());
        let differing = script.lines().zip(far.lines()).find(|(near, far)| near != far);
        assert_eq!(differing, None, "{}: near, and far", file.display());
        assert_eq!(script, far, "{}", file.display());
    }
}

/// Rows of more than one group, joined, locked, changed and deleted: in order, with errors behind the rows before them.
#[test]
fn many_rows_that_are_far_are_as_many_that_are_near() {
    let made = [
        "CREATE TABLE p (id int PRIMARY KEY, g int, u int UNIQUE, v int)",
        "CREATE INDEX p_g ON p (g)",
        "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, w int)",
        "CREATE INDEX c_p ON c (p)",
        "CREATE TABLE n (id int PRIMARY KEY, p int REFERENCES p (u))",
        "CREATE INDEX n_p ON n (p)",
        "CREATE TABLE tree (id int PRIMARY KEY, above int REFERENCES tree ON DELETE CASCADE)",
        "CREATE INDEX tree_above ON tree (above)",
        "INSERT INTO p SELECT n, n % 3, n * 10, n % 7 FROM generate_series(1, 900) n",
        "INSERT INTO c SELECT n, (n * 37) % 900 + 1, n % 5 FROM generate_series(1, 1500) n",
        "INSERT INTO n SELECT n, n * 30 FROM generate_series(1, 100) n",
        "INSERT INTO tree SELECT n, nullif(n / 2, 0) FROM generate_series(1, 600) n",
        "ANALYZE",
    ];
    let statements = [
        "SELECT * FROM p JOIN c ON c.p = p.id WHERE p.g = 1 ORDER BY p.id, c.id",
        "SELECT p.id, c.id FROM p JOIN c ON c.p = p.id WHERE p.id BETWEEN 100 AND 500 AND p.v = 3",
        "SELECT p.id, c.id FROM p LEFT JOIN c ON c.p = p.id AND c.w = 2 WHERE p.id <= 400",
        "SELECT p.id, c.id, q.id FROM c JOIN p ON p.id = c.p JOIN p q ON q.u = p.v * 10 WHERE c.id <= 400",
        "SELECT p.id, c.id FROM p JOIN c ON c.p = p.id WHERE p.id > 20 ORDER BY p.id LIMIT 7 OFFSET 3",
        "SELECT p.id, c.id FROM c JOIN p ON p.id = c.p WHERE c.id > 5 ORDER BY c.id DESC LIMIT 300",
        "SELECT p.id FROM c JOIN p ON p.id = c.p WHERE c.id <= 700 AND 100 / (c.id - 400) < 1000",
        "SELECT p.id FROM c JOIN p ON p.id = 10 / (c.id - 3) WHERE c.id <= 9 LIMIT 2",
        "SELECT p.id FROM c JOIN p ON p.id = 10 / (c.id - 3) WHERE c.id <= 9",
        "SELECT * FROM p WHERE g = 2 FOR UPDATE",
        "SELECT * FROM p WHERE g = 2 ORDER BY v, u DESC LIMIT 280 OFFSET 5 FOR UPDATE",
        "SELECT p.id, c.id FROM p JOIN c ON c.p = p.id WHERE p.id < 300 FOR UPDATE",
        "SELECT p.id, c.id FROM p JOIN c USING (id) WHERE p.g = 1 FOR UPDATE OF c",
        "UPDATE p SET u = u + 5 WHERE g = 1",
        "UPDATE p SET u = u + 10 WHERE g = 1 RETURNING id, u",
        "UPDATE p SET u = 7",
        "UPDATE p SET v = 100 / (id - 600) WHERE g = 0",
        "UPDATE p SET u = CASE WHEN id = 700 THEN 5015 ELSE u + 1000000 / (id - 705) END WHERE id > 650",
        "UPDATE p SET id = id + 10000 WHERE id > 500 AND g = 2",
        "UPDATE p SET id = id + 1 WHERE g = 0",
        "UPDATE p SET v = c.w FROM c WHERE c.p = p.id AND c.id < 600",
        "UPDATE p SET u = u + 3 WHERE id < 400",
        "UPDATE p SET v = v + 1 WHERE id IN (1, 5, 3, 77, 77, 1000)",
        "DELETE FROM p WHERE u IN (30, 60)",
        "DELETE FROM p WHERE g = 1 AND id < 500 RETURNING id",
        "DELETE FROM p WHERE id BETWEEN 301 AND 899 AND g = 2",
        "DELETE FROM tree WHERE id % 3 = 1 AND id > 1",
        "DELETE FROM tree",
        "INSERT INTO c SELECT n, n, 1 FROM generate_series(5000, 5600) n",
        "INSERT INTO p SELECT n, 1, n * 10, 0 FROM generate_series(1, 900) n ON CONFLICT DO NOTHING",
        "INSERT INTO p SELECT n, 1, 5, 0 FROM generate_series(880, 950) n ON CONFLICT (id) DO UPDATE SET v = 50",
    ];
    let contents = ["SELECT * FROM p ORDER BY id", "SELECT * FROM c ORDER BY id", "SELECT * FROM tree ORDER BY id"];
    let (mut near, mut far) = (Story::new(MemoryKv::new()), Story::new(MemoryKv::far()));
    for text in made {
        assert!(!near.run(text).contains("ERROR") && !far.run(text).contains("ERROR"), "{text}");
    }
    let mut failed = 0;
    for text in statements {
        let (one, other) = (near.run(text), far.run(text));
        assert_eq!(one, other, "{text}");
        failed += usize::from(one.contains("ERROR"));
        for text_of_all in contents {
            assert_eq!(near.run(text_of_all), far.run(text_of_all), "after {text}");
        }
    }
    assert!((6..20).contains(&failed), "{failed} fail, as they should");
}
