//! The query engine and the catalogs against PostgreSQL's answers.
//!
//! A script is SQL; below each statement stand, as comments, the rows or the error that PostgreSQL 15 gave for it (`bless.py` writes
//! them). After a line `--- differs: why` stands Timeball's own answer. `BLESS=1 cargo test -p timeball-sql
//! --test engine` writes what Timeball gives: look at the difference before you keep it.

mod session;
mod views;
#[path = "../direct/world.rs"]
#[allow(dead_code)]
mod world;

use sql::SqlError;
use sql::context::{Sequences, StatementContext};
use sql::exec::sort::in_order;
use sql::transaction::Interrupt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use world::World;

fn answer(world: &World, statement: &str) -> Vec<String> {
    match world.run(statement.trim().trim_end_matches(';')) {
        Ok(answer) => answer.lines().iter().flat_map(|line| line.split('\n')).map(str::to_string).collect(),
        Err(error) => vec![format!("ERROR {}: {}", error.state.as_str(), error.message)],
    }
}

/// Runs a script, and writes it anew with the answers that came.
fn run(text: &str, hash_seed: u64) -> String {
    let mut world = World::new();
    world.hash_seed = hash_seed;
    replay(text, |statement| answer(&world, statement))
}

/// A script with the answers that came.
fn replay(text: &str, mut answer: impl FnMut(&str) -> Vec<String>) -> String {
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
            for line in answer(&statement) {
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

fn scripts() -> Vec<PathBuf> {
    scripts_in(Path::new("tests/engine/scripts"))
}

/// The scripts of a folder of the crate.
fn scripts_in(folder: &Path) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

/// Not even the order of rows that nobody ordered.
#[test]
fn no_answer_depends_on_the_seed_of_the_hash_tables() {
    for path in scripts() {
        let kept = std::fs::read_to_string(&path).unwrap();
        let first = run(&kept, 0);
        for seed in [1, 0x5eed_5eed_5eed_5eed, u64::MAX] {
            assert_eq!(run(&kept, seed), first, "{} under the seed {seed}", path.display());
        }
    }
}

#[test]
fn scripts_give_what_postgres_gives() {
    let mut wrong = Vec::new();
    for path in scripts() {
        let kept = std::fs::read_to_string(&path).unwrap();
        let now = run(&kept, 0);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        } else {
            wrong.extend(differences(&path, &kept, &now));
        }
    }
    let repeat = "cargo test -p timeball-sql --test engine";
    assert!(wrong.is_empty(), "{}\n{} differ; repeat: {repeat}", wrong.join("\n"), wrong.len());
}

#[test]
fn a_query_with_a_star_is_planned_once() {
    let world = World::new();
    world.run("CREATE TABLE a (id int PRIMARY KEY, x int, y int)").unwrap();
    world.run("CREATE TABLE b (id int PRIMARY KEY, z int)").unwrap();
    let lookups = |text: &str| {
        let before = world.catalog.looked_up.load(Relaxed);
        world.prepare(text).unwrap();
        world.catalog.looked_up.load(Relaxed) - before
    };
    let said = lookups("SELECT a.id, x, y, b.id, z FROM a FULL JOIN b ON a.id = b.id");
    assert!(said >= 2, "{said}");
    for text in ["SELECT * FROM a FULL JOIN b ON a.id = b.id", "SELECT a FROM a NATURAL FULL JOIN b"] {
        assert_eq!(lookups(text), said, "{text}");
    }
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
        "SELECT array_agg(g) FROM generate_series(1, 1000000) g",
        "SELECT sum(g) OVER () FROM generate_series(1, 1000000) g",
        "WITH c AS (SELECT g FROM generate_series(1, 1000000) g) SELECT count(*) FROM c a, c b",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    ] {
        assert_eq!(run_limited(text, small).unwrap_err().state.as_str(), "53200", "{text}");
    }
    // What can be written to temporary files is.
    for text in [
        "SELECT g FROM generate_series(1, 40000) g ORDER BY 1",
        "SELECT g, count(*) FROM generate_series(1, 40000) g GROUP BY g",
        "SELECT DISTINCT g FROM generate_series(1, 40000) g",
        "SELECT a FROM generate_series(1, 40000) a JOIN generate_series(1, 40000) b ON a = b",
        "SELECT sum(g) OVER (PARTITION BY g / 2) FROM generate_series(1, 40000) g",
    ] {
        assert_eq!(run_limited(text, small).unwrap(), 40_000, "{text}");
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

/// Sequences of which one look raises the interrupt: `lastval()` cancels the query that calls it.
struct Trip(Interrupt);

impl Sequences for Trip {
    fn next(&self, _: u32) -> Result<i64, SqlError> {
        Ok(0)
    }
    fn current(&self, _: u32) -> Result<i64, SqlError> {
        Ok(0)
    }
    fn last(&self) -> Result<i64, SqlError> {
        self.0.raise();
        Ok(0)
    }
    fn set(&self, _: u32, value: i64, _: bool) -> Result<i64, SqlError> {
        Ok(value)
    }
}

/// Each query is cancelled by the third of 2000 rows inside the loop of one operator, which must end it: nothing else is asked after.
#[test]
fn every_operator_ends_when_it_is_cancelled_on_its_way() {
    let trip = |context: &mut StatementContext| context.sequences = Arc::new(Trip(context.interrupt.clone()));
    for text in [
        "SELECT g FROM d WHERE g < $",
        "SELECT DISTINCT $ FROM d",
        "SELECT max($) FROM d",
        "SELECT array_agg(g ORDER BY $) FROM d",
        "SELECT mode() WITHIN GROUP (ORDER BY $) FROM d",
        "SELECT g FROM d ORDER BY $ LIMIT 1",
        "SELECT $ FROM d OFFSET 1999",
        "SELECT $ FROM d UNION SELECT 0",
        "SELECT $ FROM d EXCEPT SELECT 0",
        "SELECT 7 INTERSECT SELECT $ FROM d",
        "SELECT 1 FROM (VALUES (1)) a(x) JOIN d ON x + $ > 1",
        "SELECT 1 FROM (VALUES (-1)) a(x) JOIN d ON x = $",
        "SELECT 1 FROM (VALUES (1)) a(x), LATERAL (SELECT x + $ AS y FROM d) l WHERE y < 0",
        "SELECT max(s) FROM (SELECT sum($) OVER (ORDER BY g) s FROM d) w",
        "SELECT max(s) FROM (SELECT sum($) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) s FROM d) w",
        "SELECT max(s) FROM (SELECT lag($) OVER (ORDER BY g) s FROM d) w",
        "SELECT max(s) FROM (SELECT rank() OVER (ORDER BY $) s FROM d) w",
        "SELECT 5 > ALL (SELECT $ FROM d)",
        "SELECT 5 IN (SELECT $ FROM d)",
        "SELECT ARRAY(SELECT $ FROM d)",
        "SELECT max(s) FROM (SELECT lastval(), generate_series(1, 2000) s) x",
        "SELECT max(s) FROM generate_series(1, 2000) s WHERE s > $",
        "SELECT max(n) FROM (WITH RECURSIVE r(n) AS (SELECT 1::int8 UNION ALL SELECT n + 1 + CASE WHEN n = 3 THEN lastval() ELSE 0 END FROM r WHERE n < 2000) SELECT n FROM r) x",
    ] {
        let place = if text.contains(" s WHERE") { "s" } else { "g" };
        let tripping = format!("CASE WHEN {place} = 3 THEN lastval() ELSE 0 END");
        let query = text.replace('$', &tripping);
        let text = format!("WITH d AS MATERIALIZED (SELECT g FROM generate_series(1, 2000) g) {query}");
        let state = run_limited(&text, trip).map_err(|error| error.state.as_str().to_string());
        assert_eq!(state, Err("57014".into()), "{query}");
    }
}

#[test]
fn a_query_past_its_time_ends() {
    for text in [
        "SELECT max(s) FROM (SELECT generate_series(1, 1000000000000) s) x",
        "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b ON a + b < 0",
        "SELECT pg_sleep(1000000)",
    ] {
        let past = |context: &mut StatementContext| context.deadline.set(0);
        let error = run_limited(text, past).unwrap_err();
        assert_eq!(error.state.as_str(), "57014", "{text}");
        assert!(error.message.contains("statement timeout"), "{}", error.message);
    }
}

#[test]
fn a_sort_of_many_runs_is_stable_and_ends_when_it_is_cancelled() {
    let world = World::new();
    let context = world.context(&world.begin(), Vec::new());
    let items: Vec<(u32, usize)> =
        (0..100_000).map(|place| ((place as u32).wrapping_mul(2_654_435_761) >> 24, place)).collect();
    let mut expected = items.clone();
    expected.sort();
    let by_first = |a: &(u32, usize), b: &(u32, usize)| a.0.cmp(&b.0);
    let made = std::cell::Cell::new(0);
    let sort_until = |cancelled_at: usize| {
        made.set(0);
        context.interrupt.clear();
        let order = |a: &(u32, usize), b: &(u32, usize)| {
            made.set(made.get() + 1);
            if made.get() == cancelled_at {
                context.interrupt.raise();
            }
            by_first(a, b)
        };
        in_order(items.clone(), order, &context)
    };
    assert_eq!(sort_until(usize::MAX).unwrap(), expected);
    // Cancelled while the first run is sorted, and while the last two are merged.
    let all = made.get();
    for cancelled_at in [1000, all - items.len() / 2] {
        assert_eq!(sort_until(cancelled_at).unwrap_err().state.as_str(), "57014");
        assert!(made.get() < all, "it ended on its way");
    }
}
