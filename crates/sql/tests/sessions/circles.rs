//! Changes that wait for those who write, of several nodes, and who may wait for them (decisions 216, 217).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::exclusive::{is_changed, is_gated};
use super::online::fill;
use super::waits::{FILLED, KEY_WAITS, LOCK_WAITS, until, until_state};
use super::{open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Interrupt, PeerAnswer, PeerAnswers, RowWaiter, RowWaits};
use sql::{Kv, KvError, Session, Transaction};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Sessions of nodes are told apart by this in the store that they share.
const SESSIONS: u64 = 1000;
/// Unless it is said otherwise.
const LOOK_US: u64 = 1000;

/// What others do.
type Beside = Box<dyn FnOnce() + Send>;

/// A node of several over one store. The first leads all of it; so others see nobody wait for keys.
#[derive(Clone)]
pub(super) struct Node {
    kv: MemoryKv,
    number: u32,
    answers: Arc<Mutex<BTreeMap<u32, PeerAnswer>>>,
    /// Transactions that can still begin: then the process is as good as dead, or its thread is.
    left: Arc<AtomicUsize>,
    panics: Arc<AtomicBool>,
    /// Whether the transactions begun wait for a bounded time.
    bounded: Arc<Mutex<Vec<bool>>>,
    /// Microseconds that pass with each look at the clock.
    pub(super) look_us: Arc<AtomicU64>,
    /// Once, when the others have answered.
    pub(super) beside: Arc<Mutex<Option<Beside>>>,
    /// What it says nobody hears.
    silent: Arc<AtomicBool>,
}

impl Node {
    pub(super) fn all(count: u32) -> Vec<Node> {
        let (kv, answers) = (MemoryKv::new(), Arc::default());
        let look_us = Arc::new(AtomicU64::new(LOOK_US));
        let node = |number| Node {
            kv: kv.clone(),
            number,
            answers: Arc::clone(&answers),
            left: Arc::new(AtomicUsize::new(usize::MAX)),
            panics: Arc::default(),
            bounded: Arc::default(),
            look_us: look_us.clone(),
            beside: Arc::default(),
            silent: Arc::default(),
        };
        (1..=count).map(node).collect()
    }
    /// From now on it tells the others nothing.
    pub(super) fn silence(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }
    fn of(&self, session: u64) -> u64 {
        session + SESSIONS * u64::from(self.number)
    }
}

/// Who waits at the store, as its node sees it.
struct Seen<'a>(&'a dyn RowWaits, &'a Node);

impl RowWaits for Seen<'_> {
    fn of(&self, session: u64) -> Option<(RowWaiter, Vec<u64>)> {
        let (waiter, before) = self.0.of(self.1.of(session)).filter(|_| self.1.number == 1)?;
        let own = self.1.of(0)..self.1.of(SESSIONS);
        Some((waiter, before.into_iter().filter(|of| own.contains(of)).map(|of| of - own.start).collect()))
    }
}

impl Kv for Node {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err() {
            assert!(!self.panics.load(Ordering::Relaxed), "the thread ends here");
            return Err(KvError::ShuttingDown);
        }
        self.bounded.lock().expect("lock").push(options.deadline.is_set());
        self.kv.begin(&BeginOptions { session: options.session.map(|session| self.of(session)), ..options.clone() })
    }
    fn node(&self) -> u32 {
        self.number
    }
    below!(load);
    fn monotonic_us(&self) -> i64 {
        self.kv.advance_us(self.look_us.load(Ordering::Relaxed));
        self.kv.now_us()
    }
    fn look_at_row_waits(&self, look: &mut dyn FnMut(&dyn RowWaits)) {
        self.kv.look_at_row_waits(&mut |waits| look(&Seen(waits, self)));
    }
    fn peers(&self) -> Vec<u32> {
        self.answers.lock().expect("lock").keys().copied().filter(|node| *node != self.number).collect()
    }
    fn ask_peers(
        &self,
        questions: &[String],
        next: fn(&str) -> Option<String>,
        _: &mut dyn FnMut() -> bool,
    ) -> Vec<PeerAnswers> {
        if self.silent.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let answers = self.answers.lock().expect("lock");
        let told = answers.iter().filter(|(node, _)| **node != self.number).map(|(node, answer)| {
            let mut told = PeerAnswers { node: *node, ..PeerAnswers::default() };
            for question in questions {
                let mut question = Some(question.clone());
                while let Some(asked) = question.take() {
                    let answer = answer(&asked).expect("it understands");
                    question = next(&answer);
                    told.answers.push(answer);
                }
            }
            told
        });
        let told = told.collect();
        drop(answers);
        if let Some(beside) = self.beside.lock().expect("lock").take() {
            beside();
        }
        told
    }
    fn answer_peers(&self, answer: PeerAnswer) {
        self.answers.lock().expect("lock").insert(self.number, answer);
    }
}

/// Runs statements one by one in a thread of their own.
pub(super) fn aside(mut own: Session, all: &[&str]) -> thread::JoinHandle<(Session, Vec<String>)> {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    thread::spawn(move || {
        let states = all.iter().map(|sql| state_of(&mut own, sql)).collect();
        (own, states)
    })
}

/// A gate is a gate at all nodes.
#[test]
fn who_writes_at_another_node_is_waited_for_and_waits() {
    let nodes = Node::all(2);
    let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
    let (mut a, mut asking) = (session(&one), session(&one));
    let (mut before, mut beside, mut late) = (session(&two), session(&two), session(&two));
    fill(&mut a);
    run(&mut before, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 7 WHERE id = 5");
    let changing = aside(a, &[FILLED]);
    until(&mut asking, LOCK_WAITS, "1");
    run(&mut beside, "BEGIN; UPDATE t SET v = 9 WHERE id = 8");
    run(&mut before, "UPDATE t SET v = 8 WHERE id = 7; COMMIT");
    run(&mut late, "SET lock_timeout = '10ms'");
    until_state(&mut late, "UPDATE t SET v = 8 WHERE id = 6", "55P03");
    // What is under way at a node is not another's to take back.
    while two.drain_garbage(&Interrupt::default()).expect("drain") {}
    assert!(is_gated(&nodes[0].kv));
    run(&mut beside, "DELETE FROM t WHERE id = 9; COMMIT");
    let (mut a, states) = changing.join().expect("the change");
    assert_eq!(states, ["00000"]);
    run(&mut late, "UPDATE t SET v = 8 WHERE id = 6");
    assert_eq!(run(&mut a, "SELECT count(r) FROM t"), ["2999"]);
    assert_eq!(
        run(&mut late, "SELECT id, v FROM t WHERE id BETWEEN 5 AND 8 ORDER BY id"),
        ["5|7", "6|8", "7|8", "8|9"]
    );
}

/// Who is waited for at another node comes to wait for the table that is held meanwhile: he does not wait for ever, nor do others.
#[test]
fn a_circle_through_another_node_ends() {
    for change in ["CREATE INDEX t_v ON t (v)", FILLED] {
        let nodes = Node::all(2);
        let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
        let (mut a, mut b, mut asking) = (session(&one), session(&two), session(&one));
        fill(&mut a);
        run(&mut a, "SET lock_timeout = '20s'");
        run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 7 WHERE id = 5");
        let changing = aside(a, &[change]);
        until(&mut asking, LOCK_WAITS, "1");
        let states = ["ALTER TABLE t ADD COLUMN x int", "COMMIT"].map(|sql| state_of(&mut b, sql));
        let (_, changed) = changing.join().expect("the change");
        assert_eq!(changed, ["00000"], "{change}");
        assert!(states.contains(&"40001".to_owned()), "{change}: {states:?}");
    }
}

/// A block that changes a table waits for a writer, he for a row of another such block, and so round: nobody sees all of it.
#[test]
fn a_circle_of_four_ends() {
    let db = open(MemoryKv::new());
    let [mut a, mut u, mut x, mut v, mut asking] = [0; 5].map(|_| session(&db));
    for table in ["t", "s", "o"] {
        run(&mut asking, &format!("CREATE TABLE {table} (id int PRIMARY KEY, v int)"));
        run(&mut asking, &format!("INSERT INTO {table} VALUES (1, 1), (2, 2)"));
    }
    for (own, written) in [(&mut a, "o SET v = 3 WHERE id = 1"), (&mut x, "o SET v = 3 WHERE id = 2")] {
        run(own, &format!("BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE {written}"));
    }
    for (own, table) in [(&mut u, "t"), (&mut v, "s")] {
        run(own, &format!("BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE {table} SET v = 3 WHERE id = 1"));
    }
    let u = aside(u, &["UPDATE o SET v = 4 WHERE id = 2", "COMMIT"]);
    let v = aside(v, &["UPDATE o SET v = 4 WHERE id = 1", "COMMIT"]);
    until(&mut asking, KEY_WAITS, "2");
    let x = aside(x, &["ALTER TABLE s ADD COLUMN n int", "COMMIT"]);
    until(&mut asking, LOCK_WAITS, "3");
    run(&mut a, "SET LOCAL lock_timeout = '20ms'");
    let a = ["ALTER TABLE t ADD COLUMN n int", "COMMIT"].map(|sql| state_of(&mut a, sql));
    let all = [u, x, v].map(|other| other.join().expect("another").1);
    assert!(a[0] == "00000", "{a:?}, {all:?}");
}

/// The same with an index that is made beside writers.
#[test]
fn a_circle_of_three_with_an_index_ends() {
    let db = open(MemoryKv::new());
    let [mut c, mut d, mut e, mut asking] = [0; 4].map(|_| session(&db));
    fill(&mut c);
    run(&mut asking, "CREATE TABLE s (id int PRIMARY KEY, v int); INSERT INTO s VALUES (1, 1)");
    run(&mut d, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 3 WHERE id = 1");
    run(&mut e, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE s SET v = 3 WHERE id = 1");
    run(&mut c, "SET lock_timeout = '100ms'");
    let c = aside(c, &["CREATE INDEX t_v ON t (v)"]);
    until(&mut asking, LOCK_WAITS, "1");
    let d = aside(d, &["ALTER TABLE s ADD COLUMN n int", "COMMIT"]);
    until(&mut asking, LOCK_WAITS, "2");
    let e = aside(e, &["ALTER TABLE t ADD COLUMN n int", "COMMIT"]);
    let all = [c, d, e].map(|other| other.join().expect("another").1);
    assert_eq!(all[0], ["00000"], "{all:?}");
}

/// What the thread of its statement did not take back is by maintenance; a gate of a node that never comes back is opened by any other's.
#[test]
fn a_gate_that_is_left_is_opened_by_any_node() {
    for (panics, sql) in [
        (false, FILLED),
        (true, FILLED),
        (true, "CREATE INDEX t_v ON t (v)"),
        (true, "ALTER TABLE t ADD CHECK (v < 1000)"),
    ] {
        let mut left = 0;
        for steps in 0.. {
            let nodes = Node::all(2);
            let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
            let mut a = session(&one);
            fill(&mut a);
            nodes[0].panics.store(panics, Ordering::Relaxed);
            nodes[0].left.store(steps, Ordering::Relaxed);
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| state_of(&mut a, sql)));
            left += usize::from(is_changed(&nodes[0].kv));
            // Of a panic the process lives on; else it is gone.
            let by = match panics {
                true => {
                    nodes[0].panics.store(false, Ordering::Relaxed);
                    nodes[0].left.store(usize::MAX, Ordering::Relaxed);
                    drop(a);
                    one
                }
                false => {
                    drop((a, one));
                    two
                }
            };
            while by.drain_garbage(&Interrupt::default()).expect("drain") {}
            assert!(!is_changed(&nodes[0].kv), "{sql} after {steps} transactions: {ended:?}");
            if ended.is_ok_and(|state| state == "00000") {
                break;
            }
        }
        assert!(left > 0, "{sql}");
    }
}

/// What a statement leaves when it ends is taken back in a bounded time: what ended it may be that nobody answers.
#[test]
fn what_is_taken_back_at_the_end_takes_no_longer_than_it_may() {
    let nodes = Node::all(1);
    let db = open(nodes[0].clone());
    let mut a = session(&db);
    fill(&mut a);
    for (sql, state) in [
        ("ALTER TABLE t ADD COLUMN r int DEFAULT 1 / (random() - random())::int", "22012"),
        ("CREATE UNIQUE INDEX ON t (v)", "23505"),
        ("ALTER TABLE t ADD CHECK (v < 0)", "23514"),
    ] {
        nodes[0].bounded.lock().expect("lock").clear();
        assert_eq!(state_of(&mut a, sql), state, "{sql}");
        assert_eq!(nodes[0].bounded.lock().expect("lock").last(), Some(&true), "{sql}");
    }
}
