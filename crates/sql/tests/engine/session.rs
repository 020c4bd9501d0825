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

fn session() -> Session {
    let db = Database::open(Arc::new(MemoryKv::new()), DatabaseOptions::default()).expect("open");
    let startup = Startup { user: "postgres".into(), database: "postgres".into(), ..Startup::default() };
    let mut session = Session::new(db, startup, Interrupt::default()).expect("session");
    session.initial_parameters();
    session
}

fn answer(session: &mut Session, statement: &str) -> Vec<String> {
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
    let script = std::fs::read_to_string("tests/engine/session/view_names.sql").unwrap();
    let made: Vec<&str> = script.lines().take_while(|line| !line.starts_with("select")).collect();
    let mut session = session();
    answer(&mut session, &made.join("\n"));
    let views = answer(&mut session, "select viewname from pg_views where viewname like 'kv%' order by 1");
    assert!(views.len() > 20, "{views:?}");
    let columns = |view: &str| {
        format!(
            "select attname, atttypid::regtype from pg_attribute where attrelid = '{view}'::regclass order by attnum"
        )
    };
    for view in views {
        let definition = answer(&mut session, &format!("select pg_get_viewdef('{view}'::regclass)")).join("\n");
        let again = answer(&mut session, &format!("create view again as {definition}"));
        assert!(again.is_empty(), "{view}: {definition}: {again:?}");
        for asked in [columns, |view: &str| format!("select * from {view}")] {
            let (before, after) = (answer(&mut session, &asked(&view)), answer(&mut session, &asked("again")));
            assert_eq!(before, after, "{view}: {definition}");
            assert!(!before[0].starts_with("ERROR"), "{view}: {before:?}");
        }
        answer(&mut session, "drop view again");
    }
}
