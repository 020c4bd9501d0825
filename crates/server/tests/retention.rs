//! A table with a retention of its own, through SQL: its past and its catalog are there, and what is refused is named.

use clocksource::Clock;
use node::NodeOptions;
use server::kv::{KvNode, KvOptions, MemoryLog};
use server::memory::{Allocator, Memory, Shares};
use sql::output::Nowhere;
use sql::transaction::Interrupt;
use sql::{Database, DatabaseOptions, Session, SqlError, Startup};
use std::sync::Arc;
use store::{MemoryEngine, Versions, VersionsConfig};

fn run(session: &mut Session, sql: &str) -> Result<(), SqlError> {
    session.simple_query(sql, &mut Nowhere)
}

/// A node that keeps nothing, and a session on it.
fn start() -> (Arc<KvNode<MemoryEngine>>, Arc<Database>, Session) {
    start_within(KvOptions::default().memory)
}

/// The same, with so much memory.
fn start_within(memory: Arc<Memory>) -> (Arc<KvNode<MemoryEngine>>, Arc<Database>, Session) {
    let memory_pool = memory.queries.clone();
    let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
    let node = NodeOptions { alone: true, ..NodeOptions::default() };
    let options = KvOptions { node, gc_ttl_seconds: 0, awaits_retentions: true, memory, ..KvOptions::default() };
    let clock = Clock::open(&"same-host".parse().unwrap()).unwrap();
    let kv = KvNode::start(versions, clock, options, |_| Ok(Box::new(MemoryLog::default()))).unwrap();
    let options = DatabaseOptions { retention_seconds: Some(0), memory_pool, ..DatabaseOptions::default() };
    let db = Database::open(kv.clone(), options).unwrap();
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    let session = Session::new(db.clone(), startup, Interrupt::default()).unwrap();
    (kv, db, session)
}

#[test]
fn a_table_is_read_back_as_far_as_it_is_kept() {
    let (kv, db, mut session) = start();
    let mut run = |sql: &str| run(&mut session, sql);
    run("CREATE TABLE other (a int PRIMARY KEY); CREATE TABLE kept (a int PRIMARY KEY, b int)").unwrap();
    run("CREATE INDEX ON kept (b); ALTER TABLE kept SET (retention = '1h')").unwrap();
    run("INSERT INTO other VALUES (1); INSERT INTO kept VALUES (1, 1)").unwrap();
    let versions = kv.node().versions();
    assert_eq!(versions.collected(), clock::Timestamp::MIN, "nothing goes before it is known what is to stay");
    db.tell_retentions(&Interrupt::default()).unwrap();
    // Its rows, its index and what is read of the catalog lie apart from the rest.
    let collected = |n: u64| format!("INSERT INTO other VALUES ({n})");
    let mut n = 1;
    while versions.collected_apart().iter().filter(|(_, ts)| *ts < versions.collected()).count() < 6 {
        n += 1;
        run(&collected(n)).unwrap();
    }
    let then = versions.collected_apart().iter().map(|(_, ts)| *ts).max().unwrap().max(versions.collected());
    run("BEGIN; UPDATE kept SET b = 2; COMMIT").unwrap();
    let first = kv.node().visible();
    assert!(first > then);
    run("UPDATE kept SET b = 3; ALTER TABLE kept RENAME TO renamed; DELETE FROM other").unwrap();
    while versions.collected() <= kv.node().visible().min(first) {
        n += 1;
        run(&collected(n)).unwrap();
    }
    // By its rows and by its index, under the name that it had then. What is not so fails by a division.
    let mut at = |sql: &str| run(&format!("BEGIN AS OF SYSTEM TIME '{first}'; {sql}; COMMIT"));
    at("SELECT 1 / count(*) FROM kept WHERE a = 1 AND b = 2").unwrap();
    at("SELECT 1 / count(*) FROM kept WHERE b = 2").unwrap();
    let refused = at("SELECT count(*) FROM other").unwrap_err();
    assert_eq!(refused.state.as_str(), "22023");
    let detail = refused.detail.clone().unwrap();
    assert!(detail.contains("table \"other\"") && detail.contains("0s (the node's --retention)"), "{detail}");
    run("ROLLBACK").unwrap();
}

/// A statement that does not fit writes its table anew, and what was below the old ids goes by the node's retention: not where the table's own is longer.
#[test]
fn a_large_statement_does_not_take_the_past_of_a_table_with_it() {
    let shares = Shares { queries_bytes: 8 << 20, ..Shares::default() };
    let memory = Memory::new(shares, Allocator::default());
    let (_kv, db, mut session) = start_within(memory);
    let mut run = |sql: &str| run(&mut session, sql);
    run("CREATE TABLE kept (a int PRIMARY KEY, b text) WITH (retention = '1h'); CREATE TABLE other (a int PRIMARY KEY, b text)").unwrap();
    db.tell_retentions(&Interrupt::default()).unwrap();
    for from in (0..8000).step_by(1000) {
        for table in ["kept", "other"] {
            let rows = format!("generate_series({from}, {from} + 999) g");
            run(&format!("INSERT INTO {table} SELECT g, repeat('x', 1000) FROM {rows}")).unwrap();
        }
    }
    for sql in ["UPDATE kept SET b = b || 'y'", "INSERT INTO kept SELECT a + 10000, b FROM kept"] {
        let refused = run(sql).unwrap_err();
        assert_eq!(refused.state.as_str(), "53200", "{sql}");
        assert!(refused.hint.as_deref().is_some_and(|hint| hint.contains("its retention")), "{refused:?}");
    }
    run("UPDATE other SET b = b || 'y'").unwrap();
    run("ALTER TABLE kept RESET (retention)").unwrap();
    run("UPDATE kept SET b = b || 'y'").unwrap();
}
