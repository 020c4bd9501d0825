//! Who begins to write by what a change has looked for users of, and not ended yet, waits until it has (decision 224).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::circles::{Node, aside};
use super::online::fill;
use super::waits::{LOCK_WAITS, until, until_state};
use super::{Rows, open, run, session, state_of};
use sql::{Database, DatabaseOptions, Session};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The changes, and what others write meanwhile: to the table, and to one that a key of it leads to.
const CHANGES: [(&str, &str); 6] = [
    ("ALTER TABLE t ADD COLUMN x int DEFAULT 5", "UPDATE t SET v = 7 WHERE id ="),
    ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p NOT VALID", "DELETE FROM p WHERE id ="),
    ("ALTER TABLE t DROP CONSTRAINT f", "DELETE FROM p WHERE id ="),
    ("CREATE INDEX ON t (v)", "UPDATE t SET v = 9 WHERE id ="),
    ("ALTER TABLE t RENAME COLUMN u TO w", "DELETE FROM t WHERE id ="),
    ("TRUNCATE t", "UPDATE t SET v = 9 WHERE id ="),
];

fn tables(a: &mut Session) {
    run(a, "CREATE TABLE o (v int); CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p SELECT generate_series(0, 99)");
    run(
        a,
        "CREATE TABLE t (id int PRIMARY KEY, v int, u int); INSERT INTO t SELECT i, 50, i FROM generate_series(1, 20) AS g (i)",
    );
}

/// Until some session of a database waits, or that has come to pass.
fn until_waits(db: &Arc<Database>, done: &AtomicBool) {
    let mut asking = session(db);
    while run(&mut asking, LOCK_WAITS) == ["0"] && !done.load(Ordering::Relaxed) {
        thread::yield_now();
    }
}

/// What becomes of those who begin between the last look of changes and their commits.
fn beside(options: &DatabaseOptions) -> Vec<Vec<String>> {
    let mut all_states = Vec::new();
    // First in his block, or behind another statement.
    for (at, first) in
        [(0, "SELECT 1"), (1, "SELECT 1"), (0, "INSERT INTO o VALUES (1)"), (1, "INSERT INTO o VALUES (1)")]
    {
        // Nobody is kept out at the change's own node, either; but there it sees them, as it looks last.
        if at == 0 && !options.keeps_out {
            continue;
        }
        let nodes = Node::all(2);
        let at_node = |n: usize| Database::open(Arc::new(nodes[n].clone()), options.clone()).expect("open");
        let all = [at_node(0), at_node(1)];
        let mut a = session(&all[0]);
        tables(&mut a);
        for (number, (change, write)) in CHANGES.into_iter().enumerate() {
            let (writers, changed) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
            let (db, into, write) = (all[at].clone(), writers.clone(), format!("{write} {}", 10 + number));
            let (ended, look_us) = (changed.clone(), nodes[0].look_us.clone());
            *nodes[0].beside.lock().expect("lock") = Some(Box::new(move || {
                // However long the threads here take, no time passes for the change.
                look_us.store(0, Ordering::Relaxed);
                let (mut b, done) = (session(&db), Arc::new(AtomicBool::new(false)));
                let has_written = done.clone();
                let writer = thread::spawn(move || {
                    let mut states = vec![state_of(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED")];
                    states.extend([first, &write].map(|sql| state_of(&mut b, sql)));
                    has_written.store(true, Ordering::Relaxed);
                    while !ended.load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                    states.push(state_of(&mut b, "COMMIT"));
                    states
                });
                until_waits(&db, &done);
                *into.lock().expect("lock") = Some(writer);
            }));
            assert_eq!(state_of(&mut a, change), "00000", "{change}");
            changed.store(true, Ordering::Relaxed);
            let writer = writers.lock().expect("lock").take().unwrap_or_else(|| panic!("nobody is asked by {change}"));
            let states: Vec<String> = writer.join().expect("the writer");
            nodes[0].look_us.store(1000, Ordering::Relaxed);
            let waited = states.iter().all(|state| state == "00000");
            assert!(waited || !options.keeps_out, "{first} beside {change} at node {}: {states:?}", at + 1);
            all_states.push(states);
        }
        let expected = if first == "SELECT 1" { "0" } else { "6" };
        assert!(run(&mut a, "SELECT count(*) FROM o") == [expected] || !options.keeps_out);
    }
    all_states
}

#[test]
fn who_begins_between_the_last_look_of_a_change_and_its_commit_waits() {
    assert_eq!(beside(&DatabaseOptions::default()).len(), 4 * CHANGES.len());
    // A negative control.
    let states = beside(&DatabaseOptions { keeps_out: false, ..DatabaseOptions::default() });
    let refused = states.iter().filter(|states| states.iter().any(|state| state == "40001")).count();
    assert!(refused > CHANGES.len(), "{states:?}");
}

/// COPY, too; and `lock_timeout` ends it.
#[test]
fn a_load_waits_and_a_wait_ends() {
    let nodes = Node::all(2);
    let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
    let mut a = session(&one);
    tables(&mut a);
    let copied = Arc::new(Mutex::new(None));
    let (db, into, look_us) = (two.clone(), copied.clone(), nodes[0].look_us.clone());
    *nodes[0].beside.lock().expect("lock") = Some(Box::new(move || {
        let (mut b, mut c) = (session(&db), session(&db));
        run(&mut c, "SET lock_timeout = '5ms'");
        assert_eq!(state_of(&mut c, "UPDATE t SET v = 1 WHERE id = 1"), "55P03");
        look_us.store(0, Ordering::Relaxed);
        let begun = Arc::new(AtomicBool::new(false));
        let has_begun = begun.clone();
        let copying = thread::spawn(move || {
            let mut out = Rows::default();
            b.simple_query("COPY t (id, v) FROM STDIN", &mut out).expect("COPY");
            has_begun.store(true, Ordering::Relaxed);
            b.copy_data(b"77\t7\n").and_then(|()| b.copy_done(&mut out)).map_err(|e| e.to_string())
        });
        until_waits(&db, &begun);
        *into.lock().expect("lock") = Some(copying);
    }));
    run(&mut a, "ALTER TABLE t ADD COLUMN x int DEFAULT 5");
    let copying = copied.lock().expect("lock").take().expect("others were asked");
    assert_eq!(copying.join().expect("the load"), Ok(()));
    assert_eq!(run(&mut a, "SELECT x FROM t WHERE id = 77"), ["5"]);
}

/// A change that waits for an idle block lets others go on after a while, whatever they have done.
#[test]
fn nobody_is_kept_out_for_long() {
    let nodes = Node::all(2);
    let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
    let [mut a, mut asking] = [0; 2].map(|_| session(&one));
    let [mut idle, mut late, mut busy, mut above] = [0; 4].map(|_| session(&two));
    tables(&mut a);
    run(&mut idle, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 1 WHERE id = 1");
    run(&mut busy, "BEGIN ISOLATION LEVEL READ COMMITTED; DELETE FROM p WHERE id = 1");
    run(&mut above, "BEGIN ISOLATION LEVEL SERIALIZABLE; DELETE FROM p WHERE id = 2");
    let changing = aside(a, &["ALTER TABLE t ADD COLUMN x int"]);
    until(&mut asking, LOCK_WAITS, "1");
    run(&mut above, "UPDATE t SET v = 5 WHERE id = 5; COMMIT");
    run(&mut busy, "UPDATE t SET v = 2 WHERE id = 2; COMMIT");
    run(&mut late, "UPDATE t SET v = 3 WHERE id = 3");
    run(&mut idle, "UPDATE t SET v = 4 WHERE id = 4; COMMIT");
    let (mut a, states) = changing.join().expect("the change");
    assert_eq!(states, ["00000"]);
    assert_eq!(run(&mut a, "SELECT v FROM t WHERE id < 6 ORDER BY id"), ["1", "2", "3", "4", "5"]);
}

/// Of steps that are commits of their own each lets others write by the version that it makes: a large table.
#[test]
fn others_write_beside_a_change_in_steps() {
    for change in ["CREATE INDEX ON t (v)", "ALTER TABLE t ADD CHECK (v >= 0)", super::waits::FILLED] {
        let nodes = Node::all(2);
        let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
        let mut a = session(&one);
        fill(&mut a);
        let db = two.clone();
        *nodes[0].beside.lock().expect("lock") = Some(Box::new(move || {
            // By the version that is being made it does not wait.
            let mut b = session(&db);
            run(&mut b, "SET lock_timeout = '1s'");
            until_state(&mut b, "UPDATE t SET v = 7 WHERE id = 7", "00000");
        }));
        assert_eq!(state_of(&mut a, change), "00000", "{change}");
        assert!(nodes[0].beside.lock().expect("lock").is_none());
        assert_eq!(run(&mut a, "SELECT v FROM t WHERE id = 7"), ["7"]);
    }
}
