//! DELETE of many rows, which locks those of a chunk together, beside others who write some of them.

// Sessions have threads of their own.
#![allow(clippy::disallowed_methods)]

use bytes::Bytes;
use clocksource::Clock;
use node::NodeOptions;
use server::NodeView;
use server::kv::{KvNode, KvOptions, MemoryLog};
use server::metrics::MetricsText;
use sql::output::Nowhere;
use sql::transaction::{BeginOptions, Interrupt, LockMode, LockWait, ScanRequest};
use sql::{Database, DatabaseOptions, Kv, Session, Startup};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use store::{MemoryEngine, Versions, VersionsConfig};

/// Several chunks of a scan, and enough for locks in runs.
const ROWS: usize = 20_000;
/// So often it is looked for somebody who waits.
const TURNS_MAX: usize = 3_000_000;

fn start() -> (Arc<KvNode<MemoryEngine>>, Arc<Database>) {
    start_with(NodeOptions::default())
}

fn start_with(node: NodeOptions) -> (Arc<KvNode<MemoryEngine>>, Arc<Database>) {
    let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
    let options = KvOptions { node, ..KvOptions::default() };
    let clock = Clock::open(&"same-host".parse().unwrap()).unwrap();
    let kv = KvNode::start(versions, clock, options, |_| Ok(Box::new(MemoryLog::default()))).unwrap();
    let db = Database::open(kv.clone(), DatabaseOptions::default()).unwrap();
    (kv, db)
}

fn session(db: &Arc<Database>) -> Session {
    session_of(db, 0)
}

fn session_of(db: &Arc<Database>, backend_pid: i32) -> Session {
    let startup = Startup { user: "root".into(), database: "postgres".into(), backend_pid, ..Startup::default() };
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
    run(session, "CREATE TABLE t (a int PRIMARY KEY, b int, c text, d int); CREATE INDEX t_b ON t (b)");
    run(session, "CREATE UNIQUE INDEX t_c ON t (c); CREATE INDEX t_part ON t (b) WHERE a % 4 = 0");
    run(session, "CREATE UNIQUE INDEX t_d ON t (d, b DESC); CREATE INDEX t_expr ON t (upper(c) DESC NULLS LAST)");
    // Most have no d: such an entry of a unique index is told from others by its row.
    let row = format!("a, a * 7919 % {ROWS}, 'row ' || a, CASE WHEN a % 3 = 0 THEN a END");
    run(session, &format!("INSERT INTO t SELECT {row} FROM generate_series(0, {ROWS} - 1) a"));
}

/// How many keys there are of each index of anything.
fn entries(kv: &KvNode<MemoryEngine>) -> BTreeMap<Bytes, usize> {
    let mut txn = kv.begin(&BeginOptions { read_only: true, ..BeginOptions::default() }).unwrap();
    let (mut found, mut rest) = (BTreeMap::new(), Some(Bytes::new()..Bytes::from_static(&[0xff; 8])));
    while let Some(span) = rest {
        let chunk = txn.scan(&ScanRequest { span, reverse: false, limit: 4096 }).unwrap();
        chunk.rows.iter().for_each(|(key, _)| *found.entry(key.slice(..key.len().min(4))).or_default() += 1);
        rest = chunk.rest;
    }
    found
}

/// The table and each of its indexes have so many entries of so many rows, of which so many are in the partial one.
fn has_entries(kv: &KvNode<MemoryEngine>, of: &[Bytes], rows: usize, partial: usize) {
    let found = entries(kv);
    let counts: Vec<usize> = of.iter().map(|index| found.get(index).copied().unwrap_or(0)).collect();
    assert_eq!(counts, [rows, rows, rows, partial, rows, rows]);
}

/// Those of the table.
fn indexes(kv: &KvNode<MemoryEngine>) -> Vec<Bytes> {
    entries(kv).into_iter().filter(|(_, count)| *count >= ROWS / 4).map(|(index, _)| index).collect()
}

/// How many rows are locked.
fn locked(kv: &KvNode<MemoryEngine>) -> usize {
    let mut text = MetricsText::default();
    kv.render(&mut text);
    let text = text.finish();
    text.lines().find_map(|line| line.strip_prefix("lock_keys ")).and_then(|count| count.parse().ok()).unwrap()
}

/// So often it is looked whether somebody waits.
fn until_one_waits(asking: &mut Session) {
    let waits = "SELECT 1 / (count(*) > 0)::int FROM pg_locks WHERE NOT granted";
    let waited = (0..TURNS_MAX).any(|_| asking.simple_query(waits, &mut Nowhere).is_ok());
    assert!(waited, "nobody waits");
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
        let (kv, db) = start();
        let mut one = session(&db);
        run(&mut one, &format!("SET default_transaction_isolation = '{isolation}'"));
        fill(&mut one);
        let all = indexes(&kv);
        has_entries(&kv, &all, ROWS, ROWS / 4);
        run(&mut one, "BEGIN; SAVEPOINT s; DELETE FROM t WHERE a % 2 = 0");
        assert_eq!(locked(&kv), ROWS / 2);
        agrees(&mut one, "a % 2 > 0");
        run(&mut one, "ROLLBACK TO s");
        agrees(&mut one, "true");
        assert_eq!(locked(&kv), 0);
        run(&mut one, "DELETE FROM t WHERE a = 1; COMMIT; INSERT INTO t VALUES (1, 7919, 'row 1')");
        has_entries(&kv, &all, ROWS, ROWS / 4);
        run(&mut one, "BEGIN; DELETE FROM t WHERE a % 3 = 0; SAVEPOINT s; DELETE FROM t WHERE a % 2 = 0");
        agrees(&mut one, "a % 3 > 0 AND a % 2 > 0");
        run(&mut one, "ROLLBACK TO s");
        agrees(&mut one, "a % 3 > 0");
        run(&mut one, "INSERT INTO t VALUES (0, 0, 'row 0'); DELETE FROM t WHERE a % 5 = 0; COMMIT");
        agrees(&mut one, "a % 3 > 0 AND a % 5 > 0");
        run(&mut one, "BEGIN; DELETE FROM t; ROLLBACK");
        agrees(&mut one, "a % 3 > 0 AND a % 5 > 0");
        has_entries(&kv, &all, 10_667, 2_667);
        run(&mut one, "DELETE FROM t");
        agrees(&mut one, "false");
        has_entries(&kv, &all, 0, 0);
    }
}

/// Past the most locks that a transaction may hold rows go all the same, and no lock more is asked for.
#[test]
fn rows_go_past_the_most_locks_too() {
    const LOCKS_MAX: usize = 1500;
    let (kv, db) = start_with(NodeOptions { locks_per_txn_max: LOCKS_MAX, ..NodeOptions::default() });
    let mut one = session(&db);
    fill(&mut one);
    run(&mut one, "BEGIN; DELETE FROM t WHERE a % 2 = 0");
    assert_eq!(locked(&kv), LOCKS_MAX);
    run(&mut one, "COMMIT");
    agrees(&mut one, "a % 2 > 0");

    let mut txn = kv.begin(&BeginOptions::default()).unwrap();
    let keys: Vec<[u8; 8]> =
        (0..2000u32).map(|n| [[0, 0, 255, 0], n.to_be_bytes()].concat().try_into().unwrap()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    assert_eq!(txn.lock_all(&keys, LockMode::Update).unwrap(), LOCKS_MAX);
    let left = &keys[LOCKS_MAX..];
    assert!(txn.lock(left[0], LockWait::Wait).unwrap());
    assert_eq!(txn.lock_all(left, LockMode::Update).unwrap(), left.len());
}

/// Whose the locks are is known, though none was asked for by itself: a circle that goes through them is seen.
#[test]
fn a_circle_through_rows_that_were_locked_together_is_seen() {
    let (_kv, db) = start();
    let (mut one, mut other, mut asking) = (session_of(&db, 101), session_of(&db, 202), session_of(&db, 303));
    fill(&mut one);
    // Where it is not seen the test fails, and does not hang.
    run(&mut one, "SET lock_timeout = '60s'; BEGIN; DELETE FROM t WHERE a % 2 = 0");
    run(&mut other, "SELECT pg_advisory_lock(7)");
    let waits = thread::spawn(move || {
        run(&mut other, "UPDATE t SET c = 'new' WHERE a = 1000");
        other
    });
    until_one_waits(&mut asking);
    let error = one.simple_query("SELECT pg_advisory_lock(7)", &mut Nowhere).unwrap_err();
    assert_eq!(&error.state.0, b"40P01", "{error}");
    let detail = error.detail.clone().unwrap_or_default();
    let told: Vec<&str> = detail.lines().collect();
    let [first, second] = told[..] else { panic!("{detail}") };
    assert!(first.starts_with("Process 101 waits") && first.ends_with("blocked by process 202."), "{detail}");
    assert!(second.starts_with("Process 202 waits") && second.ends_with("blocked by process 101."), "{detail}");
    assert!(second.contains("the row (a)=(1000) of table \"t\""), "{detail}");
    run(&mut one, "ROLLBACK");
    drop(waits.join().unwrap());
    agrees(&mut one, "true");
}

/// Of two rows of one chunk that another changes one is meant still, with other entries, and one is not.
#[test]
fn rows_of_one_chunk_that_another_changes_go_with_their_new_entries_or_stay() {
    let (kv, db) = start();
    let (mut one, mut other, mut asking) = (session(&db), session(&db), session(&db));
    fill(&mut one);
    let all = indexes(&kv);
    run(&mut one, "BEGIN; UPDATE t SET b = b + 1000000, c = 'new', d = 1000000 WHERE a = 9000");
    run(&mut one, "UPDATE t SET c = 'kept' WHERE a = 9002");
    run(&mut other, "SET default_transaction_isolation = 'read committed'");
    let deletes = thread::spawn(move || {
        run(&mut other, "BEGIN; DELETE FROM t WHERE a % 2 = 0 AND c <> 'kept'");
        other
    });
    until_one_waits(&mut asking);
    run(&mut one, "COMMIT");
    let mut other = deletes.join().unwrap();
    // What it had read has changed, so it was repeated: it has not even met the row that is not meant.
    assert_eq!(locked(&kv), ROWS / 2 - 1);
    run(&mut other, "COMMIT");
    agrees(&mut one, "a % 2 > 0 OR a = 9002");
    has_entries(&kv, &all, ROWS / 2 + 1, 0);
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
        until_one_waits(&mut asking);
        run(&mut one, "COMMIT");
        deletes.join().unwrap().unwrap();
        agrees(&mut one, "a % 2 > 0 OR a = 9000");
    }
}
