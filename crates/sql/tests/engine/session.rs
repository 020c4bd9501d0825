//! The same comparison through whole sessions: what depends on how a text is read, on DDL and on settings.

use sql::context::EvalSettings;
use sql::output::Mark;
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::types::Value;
use sql::{Database, DatabaseOptions, Field, Output, Session, SqlError, Startup};
use std::path::Path;
use std::sync::Arc;

/// Rows as lines.
#[derive(Default)]
struct Lines(Vec<String>);

impl Output for Lines {
    fn row_description(&mut self, _: &[Field], _: &[i16]) {}
    fn row(&mut self, values: &[Value], fields: &[Field], _: &[i16], settings: &EvalSettings) -> Result<(), SqlError> {
        let shown = |(v, f): (&Value, &Field)| if v.is_null() { "NULL".into() } else { v.to_text(&f.ty, settings) };
        assert_eq!(values.len(), fields.len());
        if values.is_empty() {
            // psql prints nothing of it.
            return Ok(());
        }
        let row: Vec<_> = values.iter().zip(fields).map(shown).collect();
        self.0.extend(row.join("|").split('\n').map(str::to_string));
        Ok(())
    }
    fn command_complete(&mut self, _: &str) {}
    fn empty_query(&mut self) {}
    fn notice(&mut self, _: &SqlError) {}
    fn parameter_status(&mut self, _: &str, _: &str) {}
    fn copy_in(&mut self, _: usize, _: bool) {}
    fn copy_out(&mut self, _: usize, _: bool) {}
    fn copy_data(&mut self, _: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_done(&mut self) {}
    fn mark(&self) -> Mark {
        Mark(self.0.len() as u64)
    }
    fn rewind(&mut self, mark: Mark) -> bool {
        self.0.truncate(mark.0 as usize);
        true
    }
}

pub(super) fn session() -> Session {
    let db = Database::open(Arc::new(MemoryKv::new()), DatabaseOptions::default()).expect("open");
    let startup = Startup { user: "postgres".into(), database: "postgres".into(), ..Startup::default() };
    let mut session = Session::new(db, startup, Interrupt::default()).expect("session");
    session.initial_parameters();
    session
}

pub(super) fn answer(session: &mut Session, statement: &str) -> Vec<String> {
    let mut out = Lines::default();
    match session.simple_query(statement, &mut out) {
        Ok(()) => out.0,
        Err(error) => vec![format!("ERROR {}: {}", error.state.as_str(), error.message.replace('\n', " "))],
    }
}

#[test]
fn sessions_give_what_postgres_gives() {
    let mut wrong = Vec::new();
    for path in super::scripts_in(Path::new("tests/engine/session")) {
        let kept = std::fs::read_to_string(&path).unwrap();
        let mut session = session();
        let now = super::replay(&kept, |statement| answer(&mut session, statement));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        } else {
            wrong.extend(super::differences(&path, &kept, &now));
        }
    }
    let repeat = "cargo test -p timeball-sql --test engine -- sessions";
    assert!(wrong.is_empty(), "{}\n{} differ; repeat: {repeat}", wrong.join("\n"), wrong.len());
}

/// What a dump has of a view makes one of the same columns and rows.
#[test]
fn views_are_made_anew_from_their_definitions() {
    for (script, of, at_least) in [("view_names.sql", "kv%", 20), ("examined6.sql", "%", 4)] {
        let script = std::fs::read_to_string(format!("tests/engine/session/{script}")).unwrap();
        let mut session = session();
        let makes = |line: &&str| ["create ", "insert ", "alter "].iter().any(|word| line.starts_with(word));
        for line in script.lines().filter(makes) {
            answer(&mut session, line);
        }
        let asked = format!(
            "select quote_ident(viewname) from pg_views where schemaname = 'public' and viewname like '{of}' order by 1"
        );
        let views = answer(&mut session, &asked);
        assert!(views.len() > at_least, "{views:?}");
        for view in views {
            let shown = format!("select pg_get_viewdef('{}'::regclass)", view.replace('\'', "''"));
            let definition = answer(&mut session, &shown).join("\n");
            let again = answer(&mut session, &format!("create view again as {definition}"));
            assert!(again.is_empty(), "{view}: {definition}: {again:?}");
            for asked in [columns, |view: &str| format!("select * from {view}")] {
                let (before, after) = (answer(&mut session, &asked(&view)), answer(&mut session, &asked("again")));
                assert_eq!(before, after, "{view}: {definition}");
                assert!(!before.first().is_some_and(|row| row.starts_with("ERROR")), "{view}: {before:?}");
            }
            answer(&mut session, "drop view again");
        }
    }
}

pub(super) fn columns(of: &str) -> String {
    let name = of.replace('\'', "''");
    format!("select attname, atttypid::regtype from pg_attribute where attrelid = '{name}'::regclass order by attnum")
}

/// What a dump asks for of a table's defaults and constraints makes the same table, after its columns were renamed, too.
#[test]
fn tables_are_made_anew_from_their_definitions() {
    let script = std::fs::read_to_string("tests/engine/session/examined6.sql").unwrap();
    let mut session = session();
    for line in script.lines().filter(|line| !line.starts_with("--")) {
        answer(&mut session, line);
    }
    let columns = |of: &str| {
        format!(
            "select string_agg(format('%I %s%s', attname, format_type(atttypid, atttypmod), coalesce(case attgenerated \
             when 's' then ' generated always as (' || pg_get_expr(adbin, adrelid) || ') stored' \
             else ' default ' || pg_get_expr(adbin, adrelid) end, '')), ', ' order by attnum) \
             from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum \
             where attrelid = '{of}'::regclass and attnum > 0"
        )
    };
    let checks = |of: &str| {
        format!(
            "select coalesce(string_agg(', ' || pg_get_constraintdef(oid), '' order by oid), '') \
             from pg_constraint where conrelid = '{of}'::regclass and contype = 'c'"
        )
    };
    for table in ["q", "qd"] {
        let before = [columns(table), checks(table)].map(|asked| answer(&mut session, &asked).join("\n"));
        assert!(before[0].contains("''''"), "{before:?}");
        assert_eq!(answer(&mut session, &format!("create table again ({}{})", before[0], before[1])), [""; 0]);
        assert_eq!([columns("again"), checks("again")].map(|asked| answer(&mut session, &asked).join("\n")), before);
        let mut row = |into| answer(&mut session, &format!("insert into {into} (a) values (0) returning *")).join("");
        let rows = [row(table), row("again")].map(|row| row.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
        assert_eq!(rows[0], rows[1]);
        answer(&mut session, "drop table again");
    }
}
