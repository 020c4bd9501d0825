//! A table with a retention of its own, through SQL: its past and its catalog are there, and what is refused is named.

use clocksource::Clock;
use node::NodeOptions;
use server::kv::{KvNode, KvOptions, MemoryLog};
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
    let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
    let node = NodeOptions { alone: true, ..NodeOptions::default() };
    let options = KvOptions { node, gc_ttl_seconds: 0, awaits_retentions: true, ..KvOptions::default() };
    let clock = Clock::open(&"same-host".parse().unwrap()).unwrap();
    let kv = KvNode::start(versions, clock, options, |_| Ok(Box::new(MemoryLog::default()))).unwrap();
    let options = DatabaseOptions { retention_seconds: Some(0), ..DatabaseOptions::default() };
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
