//! Statements that do not fit write their table anew (decision 238), over a node's store: what a failed one leaves, and which do.

use bytes::Bytes;
use clocksource::Clock;
use node::NodeOptions;
use server::kv::{KvNode, KvOptions, MemoryLog};
use server::memory::{Allocator, Memory, Shares};
use sql::catalog::key;
use sql::memory::MemoryPool;
use sql::output::Nowhere;
use sql::transaction::{BeginOptions, Interrupt, Patience, ScanRequest};
use sql::{Database, DatabaseOptions, Kv, KvError, Session, SqlError, Startup};
use std::ops::Range;
use std::sync::Arc;
use store::{MemoryEngine, Versions, VersionsConfig};

/// What statements share.
const POOL_BYTES: usize = 8 << 20;
/// Chunks of loads are as small as they get.
const MEMORY_BYTES: usize = 96 << 20;
/// What is kept of the past.
const RETENTION_SECONDS: u64 = 3600;
const ROWS: usize = 8000;

fn run(session: &mut Session, sql: &str) -> Result<(), SqlError> {
    session.simple_query(sql, &mut Nowhere)
}

fn start() -> (Arc<KvNode<MemoryEngine>>, Arc<Database>) {
    start_with(DatabaseOptions::default())
}

fn start_with(options: DatabaseOptions) -> (Arc<KvNode<MemoryEngine>>, Arc<Database>) {
    let (kv, db, _) = start_of(options);
    (kv, db)
}

fn start_of(options: DatabaseOptions) -> (Arc<KvNode<MemoryEngine>>, Arc<Database>, Arc<MemoryPool>) {
    let memory = Memory::new(Shares { queries_bytes: POOL_BYTES, ..Shares::default() }, Allocator::default());
    let memory_pool = memory.queries.clone();
    let config = VersionsConfig { erase_max: 1 << 20, ..VersionsConfig::default() };
    let versions = Versions::open(MemoryEngine::default(), config).unwrap();
    let node = NodeOptions { alone: true, ..NodeOptions::default() };
    let kv_options = KvOptions { node, gc_ttl_seconds: RETENTION_SECONDS, memory, ..KvOptions::default() };
    let clock = Clock::open(&"same-host".parse().unwrap()).unwrap();
    let kv = KvNode::start(versions, clock, kv_options, |_| Ok(Box::new(MemoryLog::default()))).unwrap();
    let (retention_seconds, memory_bytes) = (Some(RETENTION_SECONDS), Some(MEMORY_BYTES));
    let options = DatabaseOptions { retention_seconds, memory_pool: memory_pool.clone(), memory_bytes, ..options };
    (kv.clone(), Database::open(kv, options).unwrap(), memory_pool)
}

fn session(db: &Arc<Database>) -> Session {
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    Session::new(db.clone(), startup, Interrupt::default()).unwrap()
}

/// A table of about as many bytes as all statements may hold together.
fn fill(session: &mut Session, table: &str, rows: usize) {
    run(session, &format!("CREATE TABLE {table} (a int PRIMARY KEY, b text)")).unwrap();
    for from in (0..rows).step_by(1000) {
        let rows = format!("generate_series({from}, {from} + 999) g");
        run(session, &format!("INSERT INTO {table} SELECT g, repeat('x', 1000) FROM {rows}")).unwrap();
    }
}

/// Keys of the store's present, in a span.
fn keys(kv: &KvNode<MemoryEngine>, span: Range<Bytes>) -> usize {
    let (mut rest, mut count) = (Some(span), 0);
    while let Some(span) = rest {
        let mut txn = kv.begin(&BeginOptions::default()).unwrap();
        let chunk = txn.scan(&ScanRequest { span, reverse: false, limit: 4096 }).unwrap();
        count += chunk.rows.len();
        rest = chunk.rest;
    }
    count
}

fn all() -> Range<Bytes> {
    Bytes::from_static(&[0; 4])..Bytes::from_static(&[0xff; 4])
}

/// What was loaded and is nobody's was seen by nobody: it goes at once, whatever is kept, and whatever snapshots are open.
#[test]
fn what_a_failed_load_has_written_goes_at_once() {
    let (kv, db) = start();
    let (mut a, mut reads) = (session(&db), session(&db));
    fill(&mut a, "t", ROWS);
    run(&mut reads, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t").unwrap();
    let before = keys(&kv, all());
    let garbage = || keys(&kv, key::index_span(key::GARBAGE));
    assert_eq!(garbage(), 0);
    let last = ROWS - 1;
    let fails = format!("UPDATE t SET b = b || (CASE WHEN a = {last} THEN 1 / (a - {last}) ELSE 1 END)::text");
    assert_eq!(run(&mut a, &fails).unwrap_err().state.as_str(), "22012");
    assert_eq!((garbage(), keys(&kv, all())), (0, before));
    // What it leaves where it succeeds was seen, and stays.
    run(&mut a, "UPDATE t SET b = b || 'y'").unwrap();
    while db.drain_garbage(&Interrupt::default()).unwrap() {}
    assert_eq!(garbage(), 1);
    run(&mut reads, "SELECT 1 / (count(*) = 8000)::int FROM t; COMMIT").unwrap();
}

/// What is dropped where the statement succeeds somebody may see. (Control: it is erased as what nobody has seen.)
#[test]
fn what_somebody_may_see_stays() {
    for keeps_seen in [true, false] {
        let (kv, db) = start_with(DatabaseOptions { keeps_seen, ..DatabaseOptions::default() });
        let (mut a, mut reads) = (session(&db), session(&db));
        fill(&mut a, "t", ROWS);
        // From now on its rows are in the engine, as those of loads are.
        run(&mut a, "UPDATE t SET b = b || 'y'").unwrap();
        run(&mut reads, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t").unwrap();
        run(&mut a, "UPDATE t SET b = b || 'z'").unwrap();
        while db.drain_garbage(&Interrupt::default()).unwrap() {}
        let all = run(&mut reads, "SELECT 1 / (count(*) = 8000 AND max(b) LIKE '%xy')::int FROM t");
        assert_eq!(
            all.is_ok(),
            keeps_seen,
            "{all:?}, and {} are to be erased",
            keys(&kv, key::index_span(key::GARBAGE))
        );
    }
}

/// Four blocks hold what there is: a small statement, alone, is refused, and its table stays where it is.
#[test]
fn what_others_hold_makes_nobody_write_a_table() {
    let (kv, db) = start();
    let mut a = session(&db);
    fill(&mut a, "small", 1000);
    fill(&mut a, "large", ROWS);
    let mut blocks: Vec<Session> = (0..4).map(|_| session(&db)).collect();
    let mut held = 0;
    for (number, block) in blocks.iter_mut().enumerate() {
        run(block, "BEGIN").unwrap();
        for from in (number * 2000..(number + 1) * 2000).step_by(100) {
            let rows = format!("a >= {from} AND a < {}", from + 100);
            match run(block, &format!("SAVEPOINT s; UPDATE large SET b = b || 'z' WHERE {rows}")) {
                Ok(()) => held += 1,
                Err(e) => {
                    assert_eq!(e.state.as_str(), "53200");
                    run(block, "ROLLBACK TO s").unwrap();
                    break;
                }
            }
        }
    }
    assert!(held > 10, "{held}");
    let garbage = || keys(&kv, key::index_span(key::GARBAGE));
    let refused = run(&mut a, "UPDATE small SET b = b || 'y'").unwrap_err();
    assert_eq!((refused.state.as_str(), garbage()), ("53200", 0));
    assert!(refused.hint.as_deref().is_some_and(|hint| hint.contains("Other sessions")), "{refused:?}");
    blocks.iter_mut().for_each(|block| run(block, "ROLLBACK").unwrap());
    run(&mut a, "UPDATE small SET b = b || 'y'").unwrap();
    assert_eq!(garbage(), 0, "it fits");
    run(&mut a, "UPDATE large SET b = b || 'y'").unwrap();
    assert_eq!(garbage(), 1, "it does not");
}

/// Where the node itself holds so much that statements have no more than they always have, it is not for others that a large one does not fit.
#[test]
fn what_the_node_holds_keeps_no_large_statement_from_its_table() {
    let (kv, db, pool) = start_of(DatabaseOptions::default());
    let mut a = session(&db);
    fill(&mut a, "large", ROWS);
    fill(&mut a, "small", 1000);
    pool.set_limit_bytes(POOL_BYTES / 5);
    let garbage = || keys(&kv, key::index_span(key::GARBAGE));
    for sql in ["UPDATE large SET b = b || 'y'", "INSERT INTO large SELECT a + 10000, b FROM large"] {
        let before = garbage();
        run(&mut a, sql).unwrap();
        assert_eq!(garbage(), before + 1, "{sql}");
    }
    // What has little by the time is refused, as where others hold it.
    let before = garbage();
    pool.set_limit_bytes(POOL_BYTES / 10);
    let refused = run(&mut a, "UPDATE small SET b = b || 'y'").unwrap_err();
    assert_eq!((refused.state.as_str(), garbage()), ("53200", before));
    assert!(refused.hint.as_deref().is_some_and(|hint| hint.contains("the node itself")), "{refused:?}");
}

/// Nobody waits for what he will not have.
#[test]
fn who_is_cancelled_loads_no_more() {
    let (kv, _db) = start();
    let key = Bytes::from_static(&[0xfe, 0, 0, 0, 1]);
    let (rows, patience) = ([(key.clone(), Bytes::from_static(b"row"))], Patience::default());
    let there = || kv.begin(&BeginOptions::default()).unwrap().get(&key).unwrap().is_some();
    patience.interrupt.raise();
    assert_eq!((kv.load(&rows, &patience), there()), (Err(KvError::Interrupted), false));
    patience.interrupt.clear();
    assert_eq!((kv.load(&rows, &patience), there()), (Ok(true), true));
}
