//! The query engine and the catalogs against PostgreSQL's answers.
//!
//! A script is SQL; below each statement stand, as comments, the rows or the error that PostgreSQL 15 gave for it (`bless.py` writes
//! them). After a line `--- differs: why` stands Timeball's own answer. `BLESS=1 cargo test -p timeball-sql
//! --test engine` writes what Timeball gives: look at the difference before you keep it.

#[path = "../direct/world.rs"]
#[allow(dead_code)]
mod world;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use world::World;

fn answer(world: &World, statement: &str) -> Vec<String> {
    match world.run(statement.trim().trim_end_matches(';')) {
        Ok(answer) => answer.lines().iter().flat_map(|line| line.split('\n')).map(str::to_string).collect(),
        Err(error) => vec![format!("ERROR {}: {}", error.state.as_str(), error.message)],
    }
}

/// Runs a script, and writes it anew with the answers that came.
fn run(text: &str) -> String {
    let world = World::new();
    let mut out = String::new();
    let mut statement = String::new();
    let mut head = true;
    for line in text.lines() {
        let kept = line.starts_with("---") || line.trim().is_empty() || (line.starts_with("--") && head);
        if statement.is_empty() && kept {
            let _ = writeln!(out, "{line}");
            continue;
        }
        if line.starts_with("--") {
            continue;
        }
        head = false;
        statement.push_str(line);
        statement.push('\n');
        if line.trim_end().ends_with(';') {
            out.push_str(&statement);
            for line in answer(&world, &statement) {
                let _ = writeln!(out, "-- {line}");
            }
            statement.clear();
        }
    }
    out
}

fn differences(path: &Path, kept: &str, now: &str) -> Vec<String> {
    let (kept, now) = (answers(kept), answers(now));
    let mut out = Vec::new();
    for ((line, statement, expected), (_, _, got)) in kept.iter().zip(&now) {
        if expected != got {
            let (expected, got) = (expected.join("\n    "), got.join("\n    "));
            out.push(format!("{}:{line}\n{statement}\n  expected\n    {expected}\n  got\n    {got}", path.display()));
        }
    }
    out
}

/// Line, statement and answer, in order.
fn answers(text: &str) -> Vec<(usize, String, Vec<String>)> {
    let mut out: Vec<(usize, String, Vec<String>)> = Vec::new();
    let mut statement = String::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("---") || line.trim().is_empty() && statement.is_empty() {
            continue;
        }
        if line.starts_with("--") {
            if let Some(last) = out.last_mut() {
                last.2.push(line.trim_end().to_string());
            }
            continue;
        }
        statement.push_str(line);
        if line.trim_end().ends_with(';') {
            out.push((number + 1, std::mem::take(&mut statement), Vec::new()));
        } else {
            statement.push('\n');
        }
    }
    out
}

#[test]
fn scripts_give_what_postgres_gives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/scripts");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    let mut wrong = Vec::new();
    for path in paths {
        let kept = std::fs::read_to_string(&path).unwrap();
        let now = run(&kept);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        } else {
            wrong.extend(differences(&path, &kept, &now));
        }
    }
    let repeat = "cargo test -p timeball-sql --test engine";
    assert!(wrong.is_empty(), "{}\n{} differ; repeat: {repeat}", wrong.join("\n"), wrong.len());
}

/// Runs a query under other limits than the world's.
fn run_limited(text: &str, limit: impl FnOnce(&mut sql::context::StatementContext)) -> Result<usize, sql::SqlError> {
    let world = World::new();
    let plan = world.prepare(text)?;
    let txn = world.begin();
    let mut context = std::sync::Arc::into_inner(world.context(&txn, Vec::new())).unwrap();
    limit(&mut context);
    let sql::plan::Execution::Rows(mut rows) = plan.execute(&std::sync::Arc::new(context))? else { return Ok(0) };
    let mut count = 0;
    loop {
        match rows.next(1000)?.len() {
            0 => return Ok(count),
            more => count += more,
        }
    }
}

#[test]
fn what_a_query_holds_is_bounded() {
    let small = |context: &mut sql::context::StatementContext| {
        context.memory = std::sync::Arc::new(sql::context::MemoryBudget::new(1 << 20));
    };
    for text in [
        "SELECT g FROM generate_series(1, 1000000) g ORDER BY 1",
        "SELECT g, count(*) FROM generate_series(1, 1000000) g GROUP BY g",
        "SELECT DISTINCT g FROM generate_series(1, 1000000) g",
        "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b ON a = b",
        "SELECT array_agg(g) FROM generate_series(1, 1000000) g",
        "SELECT sum(g) OVER () FROM generate_series(1, 1000000) g",
        "WITH c AS (SELECT g FROM generate_series(1, 1000000) g) SELECT count(*) FROM c a, c b",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    ] {
        assert_eq!(run_limited(text, small).unwrap_err().state.as_str(), "53200", "{text}");
    }
    // What is only passed on needs none of it, and a sort under a LIMIT only what can come out.
    assert_eq!(run_limited("SELECT g FROM generate_series(1, 100000) g", small).unwrap(), 100_000);
    assert_eq!(run_limited("SELECT g FROM generate_series(1, 100000) g ORDER BY g DESC LIMIT 3", small).unwrap(), 3);
}

#[test]
fn a_cancelled_query_ends() {
    let cancelled = |context: &mut sql::context::StatementContext| context.interrupt.raise();
    for text in [
        "SELECT count(*) FROM generate_series(1, 1000000000000) g",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b, generate_series(1, 3000) c",
    ] {
        assert_eq!(run_limited(text, cancelled).unwrap_err().state.as_str(), "57014", "{text}");
    }
}
