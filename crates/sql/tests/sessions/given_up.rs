//! A change that is given up while it waits for writers: they go on (decision 228).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::exclusive::is_changed;
use super::online::fill;
use super::waits::{FILLED, LOCK_WAITS, until};
use super::{open, run, session, state_of};
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Session, Startup};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A session that can be interrupted.
fn interruptible(db: &Arc<Database>) -> (Session, Interrupt) {
    let interrupt = Interrupt::default();
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    (Session::new(db.clone(), startup, interrupt.clone()).expect("session"), interrupt)
}

/// It runs beside this thread.
fn beside(mut own: Session, sql: &'static str) -> JoinHandle<(Session, String)> {
    thread::spawn(move || {
        let state = state_of(&mut own, sql);
        (own, state)
    })
}

/// Changes that are made in steps, and wait for writers between them.
const CHANGES: [&str; 6] = [
    "CREATE INDEX t_v ON t (v)",
    "CREATE UNIQUE INDEX t_u ON t (u)",
    "ALTER TABLE t ADD CONSTRAINT one UNIQUE (u)",
    "ALTER TABLE t ADD CONSTRAINT small CHECK (v < 1000)",
    "ALTER TABLE t ALTER COLUMN v SET NOT NULL",
    FILLED,
];

/// Those who had written before it came, and those who came meanwhile, commit. They are users of the table until then: who changes it next waits for them.
#[test]
fn who_has_written_beside_a_change_that_is_given_up_commits() {
    for change in CHANGES {
        let kv = MemoryKv::new();
        let db = open(kv.clone());
        let ((mut a, interrupt), mut before, mut meanwhile) = (interruptible(&db), session(&db), session(&db));
        let (mut asking, (mut next, ends)) = (session(&db), interruptible(&db));
        fill(&mut a);
        run(&mut before, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 7 WHERE id = 5");
        // It is tried again, as careful migrations are.
        for round in 0..3 {
            let changing = beside(a, change);
            until(&mut asking, LOCK_WAITS, "1");
            if round == 0 {
                run(&mut meanwhile, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 8 WHERE id = 6");
            }
            interrupt.raise();
            let state;
            (a, state) = changing.join().expect("the change");
            assert_eq!(state, "57014", "{change}");
            assert!(!is_changed(&kv), "{change}");
        }
        // What it would have kept nobody keeps.
        run(&mut next, "INSERT INTO t VALUES (900001, 1000, 7), (900002, NULL, 8); DELETE FROM t WHERE id > 900000");
        let mut waits = |mut next: Session, sql: &'static str| {
            let changing = beside(next, sql);
            until(&mut asking, LOCK_WAITS, "1");
            ends.raise();
            let state;
            (next, state) = changing.join().expect("the next change");
            assert_eq!(state, "57014", "{sql} after {change}");
            next
        };
        let others = ["ALTER TABLE t ADD COLUMN x int", "CREATE INDEX t_w ON t (v, u)", "TRUNCATE t", change];
        for other in others {
            next = waits(next, other);
        }
        run(&mut next, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1");
        next = waits(next, others[0]);
        run(&mut next, "ROLLBACK");
        run(&mut before, "UPDATE t SET v = 9 WHERE id = 7; COMMIT");
        next = waits(next, others[0]);
        run(&mut meanwhile, "UPDATE t SET v = 10 WHERE id = 8; COMMIT");
        run(&mut next, others[0]);
        run(&mut a, change);
        assert_eq!(run(&mut a, "SELECT v FROM t WHERE id BETWEEN 5 AND 8 ORDER BY id"), ["7", "8", "9", "10"]);
    }
}

/// Writers of each version that an index goes through. What they write for it is collected, however late they do.
#[test]
fn whatever_an_index_has_come_to_its_writers_commit() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let ((mut a, interrupt), mut asking) = (interruptible(&db), session(&db));
    fill(&mut a);
    let keys = kv.live_keys();
    let mut writers = [0, 1, 2].map(|_| session(&db));
    let begin = |own: &mut Session, id: usize| {
        run(own, &format!("BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET u = u + 10000 WHERE id = {id}"));
    };
    begin(&mut writers[0], 1);
    let changing = beside(a, "CREATE UNIQUE INDEX t_u ON t (u)");
    let phase = "SELECT phase FROM pg_stat_progress_create_index";
    until(&mut asking, phase, "waiting for writers before build");
    // Who marks what he writes.
    begin(&mut writers[1], 2);
    run(&mut writers[0], "COMMIT");
    until(&mut asking, phase, "waiting for writers before validation");
    // Who maintains the index.
    begin(&mut writers[2], 3);
    interrupt.raise();
    let (mut a, state) = changing.join().expect("the change");
    assert_eq!(state, "57014");
    while db.drain_garbage(&Interrupt::default()).expect("drain") {}
    for (at, own) in writers.iter_mut().enumerate().skip(1) {
        run(own, &format!("UPDATE t SET u = u + 10000 WHERE id = {}; COMMIT", at + 11));
    }
    while db.drain_garbage(&Interrupt::default()).expect("drain") {}
    assert!(kv.live_keys() <= keys + 2, "{} keys, not {keys}", kv.live_keys());
    assert_eq!(run(&mut a, "SELECT count(*) FROM t WHERE u > 10000"), ["5"]);
    run(&mut a, "CREATE UNIQUE INDEX t_u ON t (u)");
    assert_eq!(state_of(&mut a, "UPDATE t SET u = 10001 WHERE id = 2"), "23505");
}

/// That a table gets a column without a value says nothing of its rows, so nobody who writes one refuses it.
#[test]
fn a_new_column_asks_for_rows_only_where_it_must() {
    // Nobody waits for the block.
    let options = DatabaseOptions { keeps_out: false, ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(MemoryKv::new()), options).expect("open");
    let (mut a, mut b) = (session(&db), session(&db));
    fill(&mut a);
    for (column, state) in [("x int", "00000"), ("y int NOT NULL DEFAULT 5", "00000"), ("n int NOT NULL", "23502")] {
        run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED");
        assert_eq!(state_of(&mut a, &format!("ALTER TABLE t ADD COLUMN {column}")), state, "{column}");
        // By the version before, which has not ended yet.
        run(&mut b, "UPDATE t SET v = v + 1 WHERE id = 1");
        assert_eq!(state_of(&mut a, "COMMIT"), "00000", "{column}");
    }
    run(&mut a, "CREATE TABLE e (id int); ALTER TABLE e ADD COLUMN n int NOT NULL; INSERT INTO e VALUES (1, 2)");
    assert_eq!(run(&mut a, "SELECT x IS NULL, y, v FROM t WHERE id = 1"), ["t|5|4"]);
}
