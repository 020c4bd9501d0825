//! DELETE of many rows, which locks those of a chunk together, beside others who write some of them.

// Sessions have threads of their own.
#![allow(clippy::disallowed_methods)]

use clocksource::Clock;
use node::NodeOptions;
use server::kv::{KvNode, KvOptions, MemoryLog};
use sql::output::Nowhere;
use sql::transaction::Interrupt;
use sql::{Database, DatabaseOptions, Session, Startup};
use std::sync::Arc;
use std::thread;
use store::{MemoryEngine, Versions, VersionsConfig};

/// Several chunks of a scan, and enough for locks in runs.
const ROWS: usize = 20_000;
/// So often it is looked for somebody who waits.
const TURNS_MAX: usize = 3_000_000;

fn start() -> (Arc<KvNode<MemoryEngine>>, Arc<Database>) {
    let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
    let node = NodeOptions { alone: true, ..NodeOptions::default() };
    let options = KvOptions { node, ..KvOptions::default() };
    let clock = Clock::open(&"same-host".parse().unwrap()).unwrap();
    let kv = KvNode::start(versions, clock, options, |_| Ok(Box::new(MemoryLog::default()))).unwrap();
    let db = Database::open(kv.clone(), DatabaseOptions::default()).unwrap();
    (kv, db)
}

fn session(db: &Arc<Database>) -> Session {
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    Session::new(db.clone(), startup, Interrupt::default()).unwrap()
}

fn run(session: &mut Session, sql: &str) {
    session.simple_query(sql, &mut Nowhere).unwrap_or_else(|e| panic!("{sql}: {e}"));
}

/// What does not hold fails by a division.
fn holds(session: &mut Session, condition: &str) {
    run(session, &format!("SELECT 1 / ({condition})::int"));
}

fn fill(session: &mut Session) {
    run(session, "CREATE TABLE t (a int PRIMARY KEY, b int, c text); CREATE INDEX t_b ON t (b)");
    run(session, "CREATE UNIQUE INDEX t_c ON t (c); CREATE INDEX t_part ON t (b) WHERE a % 4 = 0");
    let rows = format!("INSERT INTO t SELECT a, a * 7919 % {ROWS}, 'row ' || a FROM generate_series(0, {ROWS} - 1) a");
    run(session, &rows);
}

/// What is left is in all indexes, and nothing else is.
fn agrees(session: &mut Session, left: &str) {
    for by in ["a >= 0", "b >= 0", "c >= ''", "b >= 0 AND a % 4 = 0"] {
        let all = by.contains('%');
        let expected = if all { format!("({left}) AND a % 4 = 0") } else { left.to_owned() };
        let of = format!("generate_series(0, {ROWS} - 1) a WHERE {expected}");
        holds(session, &format!("(SELECT count(*) FROM t WHERE {by}) = (SELECT count(*) FROM {of})"));
        holds(
            session,
            &format!("coalesce((SELECT sum(a) FROM t WHERE {by}), 0) = coalesce((SELECT sum(a) FROM {of}), 0)"),
        );
    }
}

#[test]
fn rows_and_all_their_entries_go_and_come_back() {
    for isolation in ["serializable", "read committed"] {
        let (_kv, db) = start();
        let mut one = session(&db);
        run(&mut one, &format!("SET default_transaction_isolation = '{isolation}'"));
        fill(&mut one);
        run(&mut one, "BEGIN; DELETE FROM t WHERE a % 3 = 0; SAVEPOINT s; DELETE FROM t WHERE a % 2 = 0");
        agrees(&mut one, "a % 3 > 0 AND a % 2 > 0");
        run(&mut one, "ROLLBACK TO s");
        agrees(&mut one, "a % 3 > 0");
        run(&mut one, "INSERT INTO t VALUES (0, 0, 'row 0'); DELETE FROM t WHERE a % 5 = 0; COMMIT");
        agrees(&mut one, "a % 3 > 0 AND a % 5 > 0");
        run(&mut one, "BEGIN; DELETE FROM t; ROLLBACK");
        agrees(&mut one, "a % 3 > 0 AND a % 5 > 0");
        run(&mut one, "DELETE FROM t");
        agrees(&mut one, "false");
    }
}

/// Who has rows in the midst of a chunk is waited for, and WHERE is asked again of what he made of them. One that he left as it was goes.
#[test]
fn rows_that_another_changes_meanwhile_are_asked_again() {
    for isolation in ["serializable", "repeatable read", "read committed"] {
        let (_kv, db) = start();
        let (mut one, mut asking) = (session(&db), session(&db));
        fill(&mut one);
        run(&mut one, "BEGIN; UPDATE t SET c = 'kept' WHERE a = 9000; SELECT a FROM t WHERE a = 12000 FOR UPDATE");
        let mut other = session(&db);
        run(&mut other, &format!("SET default_transaction_isolation = '{isolation}'"));
        let deletes = thread::spawn(move || {
            // At the levels that see one snapshot it may be refused: then it is repeated as clients do.
            other.simple_query("DELETE FROM t WHERE a % 2 = 0 AND c <> 'kept'", &mut Nowhere).map_err(|e| e.state)
        });
        let waits = "SELECT 1 / (count(*) > 0)::int FROM pg_locks WHERE NOT granted";
        let waited = (0..TURNS_MAX).any(|_| asking.simple_query(waits, &mut Nowhere).is_ok());
        assert!(waited, "nobody waits");
        run(&mut one, "COMMIT");
        deletes.join().unwrap().unwrap();
        agrees(&mut one, "a % 2 > 0 OR a = 9000");
    }
}
