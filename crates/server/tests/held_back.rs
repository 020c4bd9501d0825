//! A node with peers whose clock may not be relied upon: its writes wait, and the wait can be ended. The error says what is certain.

// A shell's test: it runs threads.
#![allow(clippy::disallowed_methods)]

use bytes::Bytes;
use clock::{Reading, Status};
use clocksource::{Clock, ClockSource};
use node::{AppendError, NodeOptions};
use server::kv::{KvNode, KvOptions, RecordLog};
use sql::output::Nowhere;
use sql::transaction::Interrupt;
use sql::{Database, DatabaseOptions, Session, SqlError, Startup};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use store::{MemoryEngine, Versions, VersionsConfig};

/// A clock that is lost and found, and a log that loses it at its next append if it is told to.
#[derive(Clone)]
struct Weather {
    source: Arc<dyn ClockSource>,
    lost: Arc<AtomicBool>,
    lose_at_append: Arc<AtomicBool>,
}

impl ClockSource for Weather {
    fn read(&self) -> Reading {
        let reading = self.source.read();
        if self.lost.load(SeqCst) { Reading { status: Status::Disrupted, ..reading } } else { reading }
    }
    fn name(&self) -> String {
        "weather".into()
    }
}

impl RecordLog for Weather {
    fn append(&self, _first: u64, _records: Vec<Bytes>) -> Result<(), AppendError> {
        if self.lose_at_append.swap(false, SeqCst) {
            self.lost.store(true, SeqCst);
        }
        Ok(())
    }
    fn truncate(&self, _applied: u64) -> Result<(), String> {
        Ok(())
    }
    fn prepare(&self) -> Result<(), String> {
        Ok(())
    }
    fn segments(&self) -> usize {
        1
    }
}

struct Node {
    weather: Weather,
    db: Arc<Database>,
}

impl Node {
    fn start() -> Self {
        let source = Clock::open(&"static:100us".parse().unwrap()).unwrap();
        let weather = Weather { source, lost: Arc::default(), lose_at_append: Arc::default() };
        let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
        let node = NodeOptions { alone: false, ..NodeOptions::default() };
        let options = KvOptions { node, ..KvOptions::default() };
        let log = weather.clone();
        let kv = KvNode::start(versions, Arc::new(weather.clone()), options, |_| Ok(Box::new(log))).unwrap();
        let node = Node { weather, db: Database::open(kv, DatabaseOptions::default()).unwrap() };
        run(&mut node.session(&Interrupt::default()), "CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
        node
    }
    fn session(&self, interrupt: &Interrupt) -> Session {
        let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
        let mut session = Session::new(self.db.clone(), startup, interrupt.clone()).unwrap();
        run(&mut session, "SET timeball.consistency = 'token'").unwrap();
        session
    }
    fn lose_clock(&self, lost: bool) {
        self.weather.lost.store(lost, SeqCst);
    }
}

fn run(session: &mut Session, sql: &str) -> Result<(), SqlError> {
    session.simple_query(sql, &mut Nowhere)
}

/// Whether the table has the row.
fn read(session: &mut Session, id: u32) -> Result<bool, SqlError> {
    match run(session, &format!("SELECT 1 / count(*) FROM t WHERE id = {id}")) {
        Ok(()) => Ok(true),
        // Division by zero: there are no rows.
        Err(e) if e.state.as_str() == "22012" => Ok(false),
        Err(e) => Err(e),
    }
}

fn holds(session: &mut Session, id: u32) -> bool {
    read(session, id).unwrap()
}

/// Runs the statements under longer and longer timeouts until one is not over before the wait begins.
fn held_back(session: &mut Session, sql: &str) -> SqlError {
    let ended = (0..10).map(|n| {
        run(session, &format!("SET statement_timeout = '{}ms'", 50 << n)).unwrap();
        let ended = run(session, sql).unwrap_err();
        run(session, "ROLLBACK; SET statement_timeout = 0").unwrap();
        ended
    });
    ended.into_iter().find(|e| e.state.as_str() != "57014").expect("the statements do not come to the wait")
}

#[test]
fn a_timeout_ends_the_wait_with_what_the_clock_lacks() {
    let node = Node::start();
    let mut session = node.session(&Interrupt::default());
    node.lose_clock(true);
    for sql in ["INSERT INTO t VALUES (1)", "BEGIN; INSERT INTO t VALUES (1); COMMIT"] {
        let refused = held_back(&mut session, sql);
        assert_eq!(refused.state.as_str(), "57P03", "{sql}: {refused}");
        let text = refused.to_string();
        assert!(text.contains("the clock source is disrupted") && text.contains("nothing was written"), "{text}");
        assert!(!holds(&mut session, 1), "readers go on, and nothing was written");
    }
    node.lose_clock(false);
    run(&mut session, "INSERT INTO t VALUES (1)").unwrap();
    assert!(holds(&mut session, 1));
}

#[test]
fn a_cancel_ends_the_wait_and_nothing_was_written() {
    let node = Node::start();
    let interrupt = Interrupt::default();
    let mut session = node.session(&interrupt);
    node.lose_clock(true);
    // Only a wait looks for its client: the cancel comes in the midst of it.
    let (looks, waits) = std::sync::mpsc::channel();
    interrupt.set_probe(move || {
        // Looks after the first one have nobody to tell.
        let _ = looks.send(());
        false
    });
    let cancel = interrupt.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let waits = waits.recv_timeout(Duration::from_secs(60));
            cancel.raise();
            waits.expect("nobody waited");
        });
        let cancelled = run(&mut session, "INSERT INTO t VALUES (1)").unwrap_err();
        assert_eq!(cancelled.state.as_str(), "57014", "{cancelled}");
    });
    node.lose_clock(false);
    assert!(!holds(&mut session, 1));
}

#[test]
fn a_client_that_has_gone_ends_the_wait() {
    let node = Node::start();
    let (interrupt, gone) = (Interrupt::default(), Arc::new(AtomicBool::new(false)));
    let seen = gone.clone();
    interrupt.set_probe(move || seen.load(SeqCst));
    let mut session = node.session(&interrupt);
    node.lose_clock(true);
    gone.store(true, SeqCst);
    let ended = run(&mut session, "INSERT INTO t VALUES (1)").unwrap_err();
    assert_eq!(ended.state.as_str(), "57014", "{ended}");
    gone.store(false, SeqCst);
    assert!(!holds(&mut session, 1));
}

/// The clock is lost while the commit is on its way to the disk: it has committed, and the error says so.
#[test]
fn a_commit_that_waits_to_be_shown_is_not_called_off() {
    let node = Node::start();
    let mut session = node.session(&Interrupt::default());
    // Where a lease was renewed at that moment, it was that record that lost the clock, and the commit is refused: once more.
    let (id, ended) = (1..100)
        .find_map(|id| {
            run(&mut session, &format!("BEGIN; INSERT INTO t VALUES ({id}); SET statement_timeout = '50ms'")).unwrap();
            node.weather.lose_at_append.store(true, SeqCst);
            let ended = run(&mut session, "COMMIT").unwrap_err();
            let committed = ended.state.as_str() == "40003";
            if !committed {
                node.lose_clock(false);
            }
            run(&mut session, "ROLLBACK; SET statement_timeout = 0").unwrap();
            committed.then_some((id, ended))
        })
        .expect("no commit was held back");
    let text = ended.to_string();
    assert!(text.contains("the transaction has committed at") && text.contains("disrupted"), "{text}");
    // A reader of the row waits for it, as long as it may.
    run(&mut session, "SET statement_timeout = '50ms'").unwrap();
    let unseen = read(&mut session, id).expect_err("it is not shown before it is certainly past");
    assert_eq!(unseen.state.as_str(), "57014", "{unseen}");
    node.lose_clock(false);
    run(&mut session, "SET statement_timeout = 0").unwrap();
    // Nothing else is waited for: a write of the same row waits until the commit is shown, and finds it.
    let taken = run(&mut session, &format!("INSERT INTO t VALUES ({id})")).unwrap_err();
    assert_eq!(taken.state.as_str(), "23505", "{taken}");
    assert!(holds(&mut session, id));
}

/// The block of numbers was taken and nobody has it; that its transaction has committed is nothing to the client.
#[test]
fn a_statement_has_not_committed_because_one_beside_it_has() {
    let node = Node::start();
    let mut session = node.session(&Interrupt::default());
    let ended = (1..100).find_map(|n| {
        run(&mut session, &format!("CREATE SEQUENCE s{n}")).unwrap();
        run(&mut session, "BEGIN; SET statement_timeout = '50ms'").unwrap();
        node.weather.lose_at_append.store(true, SeqCst);
        let ended = run(&mut session, &format!("SELECT nextval('s{n}')")).unwrap_err();
        node.lose_clock(false);
        node.weather.lose_at_append.store(false, SeqCst);
        run(&mut session, "ROLLBACK; SET statement_timeout = 0").unwrap();
        // Where a lease was renewed at that moment, or the timeout came before the wait, nothing was taken: once more.
        run(&mut session, &format!("SELECT 1 / (nextval('s{n}') - 1)")).is_ok().then_some(ended)
    });
    let ended = ended.expect("no block was taken");
    assert_eq!(ended.state.as_str(), "57014", "{ended}");
}
