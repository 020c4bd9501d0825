//! One node, one thread, an engine in memory: the life of transactions.

mod bulk;
mod idle;
mod looks;
mod queue;
mod references;
mod together;

use bytes::Bytes;
use clock::{Level, Reading, Status, Timestamp};
use node::{
    AppendError, BeginOptions, Consistency, Input, Isolation, LockMode, LogBatch, Node, NodeOptions, Record, Span,
    Transaction, TxnError, WhenLocked,
};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::{MemoryEngine, Versions, VersionsConfig};

struct World {
    node: Arc<Node<MemoryEngine>>,
    disk: Vec<Bytes>,
    ns: u64,
    error_ns: u64,
}

const START_NS: u64 = 1_000_000_000_000;

fn open(disk: &[Bytes], ns: u64, options: NodeOptions) -> Arc<Node<MemoryEngine>> {
    let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
    let now = Reading::exact(ns);
    let node = Arc::new(Node::open(options, Arc::new(versions), &now).unwrap());
    for record in disk {
        node.step(&now, Input::Replay(Record::decode(record).unwrap())).unwrap();
    }
    node.step(&now, Input::Recovered).unwrap();
    node
}

impl World {
    fn new() -> Self {
        Self::over(NodeOptions::default())
    }
    fn with_other_nodes() -> Self {
        Self::over(NodeOptions { alone: false, ..NodeOptions::default() })
    }
    fn over(options: NodeOptions) -> Self {
        World { node: open(&[], START_NS, options), disk: Vec::new(), ns: START_NS, error_ns: 0 }
    }
    fn now(&self) -> Reading {
        Reading::with_error(self.ns, self.error_ns)
    }
    fn pass(&mut self, ns: u64) {
        self.ns += ns;
        self.node.step(&self.now(), Input::Tick).unwrap();
    }
    fn begin(&mut self, isolation: Isolation) -> Transaction<MemoryEngine> {
        self.ns += 1000;
        Transaction::begin(&self.node, &self.now(), &BeginOptions { isolation, ..BeginOptions::default() }).unwrap()
    }
    /// Writes what waits; not yet durable for the node.
    fn append(&mut self) -> LogBatch {
        let mut batch = LogBatch::default();
        self.node.take_batch(&mut batch);
        self.disk.extend(batch.records().map(Bytes::copy_from_slice));
        batch
    }
    fn sync(&mut self) {
        loop {
            let batch = self.append();
            if batch.is_empty() {
                return;
            }
            self.ns += 100_000;
            self.node.step(&self.now(), Input::Durable(batch.last())).unwrap();
        }
    }
    fn crash(&mut self) {
        self.ns += 1_000_000;
        self.node = open(&self.disk, self.ns, NodeOptions::default());
        self.sync();
    }
    fn get(&mut self, txn: &mut Transaction<MemoryEngine>, key: &str) -> Option<String> {
        match txn.get(&self.now(), key.as_bytes(), false, Waker::noop()) {
            Poll::Ready(result) => result.unwrap().map(|v| String::from_utf8(v.to_vec()).unwrap()),
            Poll::Pending => panic!("a read of {key} waits"),
        }
    }
    fn commit(&mut self, txn: &mut Transaction<MemoryEngine>) -> Result<Timestamp, TxnError> {
        for _ in 0..20 {
            if let Poll::Ready(result) = txn.commit(&self.now(), Waker::noop()) {
                return result;
            }
            self.sync();
            self.pass(1_000_000);
        }
        panic!("the commit hangs");
    }
    fn set(&mut self, pairs: &[(&str, &str)]) -> Timestamp {
        let mut txn = self.begin(Isolation::Serializable);
        for (k, v) in pairs {
            txn.put(bytes(k), bytes(v)).unwrap();
        }
        self.commit(&mut txn).unwrap()
    }
    fn value(&mut self, key: &str) -> Option<String> {
        let mut txn = self.begin(Isolation::Serializable);
        self.get(&mut txn, key)
    }
    fn split(&mut self, key: &str) {
        let ticket = self.node.split(&self.now(), bytes(key), Waker::noop());
        self.sync();
        assert_eq!(ticket.poll(Waker::noop()), Poll::Ready(Ok(())));
    }
}

fn bytes(s: &str) -> Bytes {
    Bytes::copy_from_slice(s.as_bytes())
}

#[test]
fn a_commit_is_seen_once_it_is_durable_and_survives_a_crash() {
    let mut w = World::new();
    w.set(&[("a", "1"), ("b", "2")]);
    assert_eq!(w.value("a").as_deref(), Some("1"));
    let mut txn = w.begin(Isolation::Serializable);
    txn.put(bytes("a"), bytes("3")).unwrap();
    assert!(txn.commit(&w.now(), Waker::noop()).is_pending());
    assert_eq!(w.value("a").as_deref(), Some("1"), "alone, a reader does not wait for the disk");
    drop(txn);
    w.crash();
    assert_eq!(w.value("a").as_deref(), Some("1"), "what was never on the disk is gone");
    w.set(&[("a", "4")]);
    w.crash();
    assert_eq!(w.value("a").as_deref(), Some("4"));
    assert_eq!(w.value("b").as_deref(), Some("2"));
}

#[test]
fn write_skew_is_refused_by_serializable_and_allowed_by_snapshot() {
    for (isolation, allowed) in [(Isolation::Serializable, false), (Isolation::Snapshot, true)] {
        let mut w = World::new();
        w.set(&[("x", "1"), ("y", "1")]);
        let (mut t1, mut t2) = (w.begin(isolation), w.begin(isolation));
        for txn in [&mut t1, &mut t2] {
            w.get(txn, "x");
            w.get(txn, "y");
        }
        t1.put(bytes("x"), bytes("0")).unwrap();
        t2.put(bytes("y"), bytes("0")).unwrap();
        w.commit(&mut t1).unwrap();
        assert_eq!(w.commit(&mut t2).is_ok(), allowed, "{isolation:?}");
    }
}

#[test]
fn lost_updates_are_refused_at_every_level() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
        let mut w = World::new();
        w.set(&[("x", "1")]);
        let (mut t1, mut t2) = (w.begin(isolation), w.begin(isolation));
        t1.put(bytes("x"), bytes("2")).unwrap();
        t2.put(bytes("x"), bytes("3")).unwrap();
        w.commit(&mut t1).unwrap();
        assert!(matches!(w.commit(&mut t2), Err(TxnError::Restart { .. })), "{isolation:?}");
    }
}

#[test]
fn a_lock_queue_turns_a_conflict_into_a_wait() {
    let mut w = World::new();
    w.set(&[("x", "1"), ("mine", "5")]);
    let (mut t1, mut t2) = (w.begin(Isolation::Serializable), w.begin(Isolation::Serializable));
    assert_eq!(w.get(&mut t2, "mine").as_deref(), Some("5"));
    let now = w.now();
    assert!(matches!(t1.lock(&now, b"x", LockMode::Update, WhenLocked::Wait, Waker::noop()), Poll::Ready(Ok(true))));
    assert!(t2.lock(&now, b"x", LockMode::Update, WhenLocked::Wait, Waker::noop()).is_pending());
    assert_eq!(w.get(&mut t1, "x").as_deref(), Some("1"));
    t1.put(bytes("x"), bytes("2")).unwrap();
    w.commit(&mut t1).unwrap();
    let now = w.now();
    assert!(matches!(t2.lock(&now, b"x", LockMode::Update, WhenLocked::Wait, Waker::noop()), Poll::Ready(Ok(true))));
    assert_eq!(w.get(&mut t2, "x").as_deref(), Some("2"), "the snapshot moved up");
    t2.put(bytes("x"), bytes("3")).unwrap();
    w.commit(&mut t2).unwrap();
    assert_eq!(w.node.counters().txn_refreshes.get(), 1);
}

#[test]
fn a_deadlock_has_one_victim() {
    let mut w = World::new();
    let (mut t1, mut t2) = (w.begin(Isolation::Serializable), w.begin(Isolation::Serializable));
    let now = w.now();
    let ask = |txn: &mut Transaction<MemoryEngine>, key: &[u8]| {
        txn.lock(&now, key, LockMode::Update, WhenLocked::Wait, Waker::noop())
    };
    assert!(ask(&mut t1, b"x").is_ready());
    assert!(ask(&mut t2, b"y").is_ready());
    assert!(ask(&mut t1, b"y").is_pending());
    assert!(matches!(ask(&mut t2, b"x"), Poll::Ready(Err(TxnError::Deadlock { .. }))));
    t2.rollback();
    assert!(matches!(ask(&mut t1, b"y"), Poll::Ready(Ok(true))));
}

/// Whoever is told to begin again hears of the key that changed, not of where the span begins that he read: from certification, from a snapshot
/// that cannot move up, beside what is only prepared.
#[test]
fn a_conflict_of_a_span_names_the_key_that_changed() {
    let mut w = World::new();
    w.set(&[("a", "0"), ("c", "0"), ("e", "0")]);
    w.split("m");
    let named = |told: Result<Timestamp, TxnError>| match told {
        Err(TxnError::Restart { key, .. }) => key,
        other => panic!("{other:?}"),
    };
    for (changed, own) in [("c", "b"), ("d", "b"), ("c", "x")] {
        let mut txn = w.begin(Isolation::Serializable);
        let span = bytes("a")..bytes("f");
        assert!(txn.scan(&w.now(), &span, false, 9, false, Waker::noop()).is_ready());
        w.set(&[(changed, "1")]);
        txn.put(bytes(own), bytes("1")).unwrap();
        assert_eq!(named(w.commit(&mut txn)), Some(bytes(changed)), "{own}");
        // The snapshot would have to move up over it.
        let mut txn = w.begin(Isolation::Serializable);
        assert!(txn.scan(&w.now(), &span, false, 9, false, Waker::noop()).is_ready());
        w.set(&[(changed, "2"), ("z", changed)]);
        match txn.lock(&w.now(), b"z", LockMode::Update, WhenLocked::Wait, Waker::noop()) {
            Poll::Ready(Err(TxnError::Restart { key, .. })) => assert_eq!(key, Some(bytes(changed))),
            other => panic!("{other:?}"),
        }
        txn.rollback();
    }
}

/// A row that another refers to may change, at every isolation level, and nobody deletes it at the same time. It is looked for in the
/// present, wherever the snapshot lies, and also across ranges and a crash.
#[test]
fn a_reference_needs_its_row_and_no_version_of_it() {
    let mut w = World::new();
    w.set(&[("a", "0"), ("p", "0")]);
    w.split("m");
    let refers = |txn: &mut Transaction<MemoryEngine>| match txn.present(b"p", Waker::noop()) {
        Poll::Ready(found) => found.unwrap(),
        Poll::Pending => panic!("nothing is in flight"),
    };
    for (n, isolation) in
        [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted].into_iter().enumerate()
    {
        for child in ["c", "q"] {
            let mut txn = w.begin(isolation);
            assert!(refers(&mut txn));
            w.set(&[("p", "changed")]);
            txn.put(bytes(child), bytes(&n.to_string())).unwrap();
            w.commit(&mut txn).unwrap_or_else(|e| panic!("{isolation:?} {child}: {e}"));
            let mut txn = w.begin(isolation);
            assert!(refers(&mut txn));
            let mut other = w.begin(isolation);
            other.delete(bytes("p")).unwrap();
            w.commit(&mut other).unwrap();
            txn.put(bytes(child), bytes("orphan")).unwrap();
            assert!(matches!(w.commit(&mut txn), Err(TxnError::Restart { .. })), "{isolation:?} {child}");
            // Begun before the row comes back, and finds it.
            let mut txn = w.begin(isolation);
            assert!(!refers(&mut w.begin(isolation)));
            w.set(&[("p", "again")]);
            assert!(refers(&mut txn));
            txn.put(bytes("d"), bytes("late")).unwrap();
            w.commit(&mut txn).unwrap();
        }
    }
    w.crash();
    assert_eq!((w.value("c").as_deref(), w.value("q").as_deref()), (Some("2"), Some("2")));
}

/// Back to a savepoint: the locks taken since pass on, to those who wait as well.
#[test]
fn a_savepoint_gives_locks_back() {
    let mut w = World::new();
    let (mut t1, mut t2) = (w.begin(Isolation::Serializable), w.begin(Isolation::Serializable));
    let now = w.now();
    let ask =
        |txn: &mut Transaction<MemoryEngine>, key: &[u8], mode, when| txn.lock(&now, key, mode, when, Waker::noop());
    assert!(ask(&mut t1, b"kept", LockMode::KeyShare, WhenLocked::Wait).is_ready());
    let mark = t1.savepoint();
    assert!(ask(&mut t1, b"kept", LockMode::Update, WhenLocked::Wait).is_ready());
    assert!(ask(&mut t1, b"freed", LockMode::Update, WhenLocked::Wait).is_ready());
    t1.rollback_to(mark);
    assert!(
        ask(&mut t2, b"freed", LockMode::Update, WhenLocked::Wait).is_pending(),
        "a statement that is repeated keeps its locks"
    );
    t1.release_since(mark);
    assert!(matches!(ask(&mut t2, b"freed", LockMode::Update, WhenLocked::Wait), Poll::Ready(Ok(true))));
    assert!(matches!(ask(&mut t2, b"kept", LockMode::Update, WhenLocked::Skip), Poll::Ready(Ok(false))));
    assert!(matches!(ask(&mut t2, b"kept", LockMode::NoKeyUpdate, WhenLocked::Skip), Poll::Ready(Ok(true))));
}

#[test]
fn many_ranges_commit_together() {
    let mut w = World::new();
    w.set(&[("a", "1"), ("m", "1"), ("z", "1")]);
    w.split("m");
    w.split("t");
    assert_eq!(w.node.ranges(&Span::ALL).len(), 3);
    w.set(&[("a", "2"), ("m", "2"), ("z", "2")]);
    for key in ["a", "m", "z"] {
        assert_eq!(w.value(key).as_deref(), Some("2"));
    }
    w.crash();
    assert_eq!(w.node.ranges(&Span::ALL).len(), 3);
    for key in ["a", "m", "z"] {
        assert_eq!(w.value(key).as_deref(), Some("2"));
    }
}

#[test]
fn prepares_on_the_disk_decide_after_a_crash() {
    for kept in 0..=2 {
        let mut w = World::new();
        w.set(&[("a", "1"), ("z", "1")]);
        w.split("m");
        let mut txn = w.begin(Isolation::Serializable);
        txn.put(bytes("a"), bytes("2")).unwrap();
        txn.put(bytes("z"), bytes("2")).unwrap();
        assert!(txn.commit(&w.now(), Waker::noop()).is_pending());
        let before = w.disk.len();
        let batch = w.append();
        assert_eq!(batch.ends.len(), 2, "both prepares go in one batch");
        w.disk.truncate(before + kept);
        drop(txn);
        w.crash();
        let wanted = if kept == 2 { "2" } else { "1" };
        for key in ["a", "z"] {
            assert_eq!(w.value(key).as_deref(), Some(wanted), "{key}, {kept} prepares kept");
        }
        w.pass(1_000_000);
        w.sync();
        w.crash();
        assert_eq!(w.value("z").as_deref(), Some(wanted));
        w.set(&[("a", "5"), ("z", "5")]);
    }
}

#[test]
fn strict_waits_out_the_clock_error_and_hybrid_does_not() {
    for (consistency, waits) in [(Consistency::Strict, true), (Consistency::Hybrid, false)] {
        let mut w = World::new();
        w.error_ns = 5_000_000;
        let options = BeginOptions { consistency, ..BeginOptions::default() };
        let mut txn = Transaction::begin(&w.node, &w.now(), &options).unwrap();
        txn.put(bytes("a"), bytes("1")).unwrap();
        assert!(txn.commit(&w.now(), Waker::noop()).is_pending());
        w.sync();
        assert_eq!(txn.commit(&w.now(), Waker::noop()).is_pending(), waits);
        w.pass(10_000_000);
        assert!(txn.commit(&w.now(), Waker::noop()).is_ready() || !waits);
        assert_eq!(w.node.counters().txn_commit_waits.get(), u64::from(waits));
    }
}

/// A lone node must not wait an hour for a clock that was set back by an hour: neither a commit, nor a start.
#[test]
fn a_clock_that_is_set_back_costs_strict_and_nothing_else() {
    let mut w = World::new();
    let before = w.set(&[("a", "1")]);
    let hour_ns = 3_600_000_000_000;
    w.ns = START_NS + hour_ns;
    let ahead = w.set(&[("a", "2")]);
    w.ns = START_NS + 1_000_000_000;
    let after = w.set(&[("a", "3")]);
    assert!(before < ahead && ahead < after, "{before} {ahead} {after}");
    assert_eq!(w.value("a").as_deref(), Some("3"));
    w.pass(1_000_000_000);
    assert_eq!(w.node.clock_level().0, Level::Untrusted);
    let strict = BeginOptions { consistency: Consistency::Strict, ..BeginOptions::default() };
    let refused = Transaction::begin(&w.node, &w.now(), &strict).err().unwrap().to_string();
    assert!(refused.contains("the clock was set back"), "{refused}");
    w.crash();
    assert!(w.node.is_ready(&w.now()));
    assert_eq!(w.value("a").as_deref(), Some("3"));
    w.set(&[("a", "4")]);
    w.ns = START_NS + hour_ns;
    w.pass(1_000_000_000);
    assert_eq!(w.node.clock_level().0, Level::Synchronized);
    assert!(Transaction::begin(&w.node, &w.now(), &strict).is_ok());
}

/// With readers elsewhere the same commit must wait: they may still take a snapshot below it. It is not even proposed: nobody waits
/// for it, and it can be given up.
#[test]
fn with_other_nodes_a_commit_waits_for_a_clock_that_was_set_back() {
    let mut w = World::with_other_nodes();
    w.ns = START_NS + 60_000_000_000;
    w.set(&[("a", "1")]);
    w.ns = START_NS + 1_000_000_000;
    let mut txn = Transaction::begin(&w.node, &w.now(), &token()).unwrap();
    txn.put(bytes("a"), bytes("2")).unwrap();
    w.sync();
    assert!(txn.commit(&w.now(), Waker::noop()).is_pending());
    assert!(!w.node.has_batch(), "it is proposed while nobody knows when it would be past");
    w.pass(60_000_000_000);
    w.commit(&mut txn).unwrap();
    assert_eq!(w.value("a").as_deref(), Some("2"));
}

fn token() -> BeginOptions {
    BeginOptions { consistency: Consistency::Token, ..BeginOptions::default() }
}

/// A waker that counts.
#[derive(Default)]
struct Woken(std::sync::atomic::AtomicUsize);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

/// While the clock may not be relied upon, a write waits before it is proposed: given up, it is certain that nothing happened. Once
/// the clock is back it is woken.
#[test]
fn with_other_nodes_a_commit_is_held_back_until_the_clock_is_trusted() {
    let mut w = World::with_other_nodes();
    w.set(&[("a", "1")]);
    w.sync();
    let lost = |w: &World| Reading { status: Status::Disrupted, ..w.now() };
    let write = |w: &World| {
        let mut txn = Transaction::begin(&w.node, &w.now(), &token()).unwrap();
        txn.put(bytes("a"), bytes("2")).unwrap();
        txn
    };
    let mut given_up = write(&w);
    assert!(given_up.commit(&lost(&w), Waker::noop()).is_pending());
    let Some(TxnError::ClockUnavailable(why)) = given_up.give_up_commit(&lost(&w)) else {
        panic!("it is not given up")
    };
    assert!(why.contains("the clock source is disrupted") && why.contains("nothing was written"), "{why}");
    assert!(given_up.give_up_commit(&lost(&w)).is_none(), "once");
    let woken = Arc::new(Woken::default());
    let mut txn = write(&w);
    assert!(txn.commit(&lost(&w), &Waker::from(woken.clone())).is_pending());
    // Every tick wakes all that wait, and those that gave up: none of them stays.
    let ticked = w.node.step(&lost(&w), Input::Tick).unwrap();
    assert_eq!(ticked.wakers.len(), 2);
    assert!(w.node.step(&lost(&w), Input::Tick).unwrap().wakers.is_empty());
    assert!(txn.commit(&lost(&w), &Waker::from(woken.clone())).is_pending());
    assert!(!w.node.has_batch());
    let ticked = w.node.step(&w.now(), Input::Tick).unwrap();
    ticked.wakers.into_iter().for_each(Waker::wake);
    assert_eq!(woken.0.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(txn.give_up_commit(&w.now()).is_none(), "it will be past soon");
    w.commit(&mut txn).unwrap();
    assert_eq!(w.value("a").as_deref(), Some("2"));
}

/// What a clock shows while it may not be relied upon proves nothing past. A commit that is on its way already is not given up; one
/// that waits to be shown is, and the news is that it has committed.
#[test]
fn with_other_nodes_an_untrusted_clock_acknowledges_nothing() {
    let mut w = World::with_other_nodes();
    let mut txn = Transaction::begin(&w.node, &w.now(), &token()).unwrap();
    txn.put(bytes("a"), bytes("1")).unwrap();
    assert!(txn.commit(&w.now(), Waker::noop()).is_pending());
    let batch = w.append();
    w.ns += 60_000_000_000;
    let disrupted = Reading { status: Status::Disrupted, ..w.now() };
    assert!(txn.give_up_commit(&disrupted).is_none(), "its outcome is unknown");
    let out = w.node.step(&disrupted, Input::Durable(batch.last())).unwrap();
    assert!(out.timer.is_none(), "no time would open the gate");
    w.node.step(&disrupted, Input::Tick).unwrap();
    assert!(txn.commit(&disrupted, Waker::noop()).is_pending());
    let Some(TxnError::Unacknowledged { at, clock }) = txn.give_up_commit(&disrupted) else { panic!("not given up") };
    assert!(clock.contains("disrupted"), "{clock}");
    w.pass(1);
    w.sync();
    assert_eq!(w.value("a").as_deref(), Some("1"));
    assert!(w.node.visible() >= at);
}

/// A strict transaction goes on while the bound is lost: it must not take the hybrid clock along to the `latest` of a void bound.
#[test]
fn a_void_bound_does_not_push_the_hybrid_clock() {
    let mut w = World::with_other_nodes();
    let strict = BeginOptions { consistency: Consistency::Strict, ..BeginOptions::default() };
    let mut txn = Transaction::begin(&w.node, &w.now(), &strict).unwrap();
    w.set(&[("a", "1")]);
    w.error_ns = 20_000_000_000;
    let lost = Reading { status: Status::Unknown, ..w.now() };
    let locked = txn.lock(&lost, b"a", LockMode::Update, WhenLocked::Wait, Waker::noop());
    assert!(matches!(locked, Poll::Ready(Ok(_))), "{locked:?}");
    let ahead_us = w.node.clock_last().physical_us().saturating_sub(w.ns / 1000);
    assert!(ahead_us < 1_000_000, "the hybrid clock is {ahead_us} us ahead");
    // Nor does a token from somewhere.
    let token = Timestamp::new((w.ns + 15_000_000_000) / 1000, 0);
    let stranger = BeginOptions { consistency: Consistency::Token, token, ..BeginOptions::default() };
    let refused = Transaction::begin(&w.node, &lost, &stranger).err().map(|e| e.to_string());
    assert!(refused.is_some_and(|e| e.contains("lies in the future")));
}

/// Reads of the present never wait for the disk on a node that is alone, in no mode.
#[test]
fn what_is_relied_upon_must_stay_and_what_is_observed_need_not() {
    let mut world = World::new();
    let (token, seen) = (Bytes::from_static(b"token"), Bytes::from_static(b"seen"));
    let change = |world: &mut World, key: &Bytes| {
        let mut other = world.begin(Isolation::Serializable);
        other.delete(key.clone()).unwrap();
        world.commit(&mut other).unwrap();
    };
    for isolation in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
        for (certified, committed) in [(true, false), (false, isolation != Isolation::Serializable)] {
            let mut txn = world.begin(isolation);
            let since = txn.snapshot();
            assert!(txn.observe(&world.now(), &seen, Waker::noop()).is_ready());
            assert_eq!(txn.rely(&token, since, certified, Waker::noop()), Poll::Ready(Ok(())));
            txn.put(Bytes::from_static(b"row"), Bytes::from_static(b"1")).unwrap();
            change(&mut world, &seen);
            change(&mut world, &token);
            assert_eq!(world.commit(&mut txn).is_ok(), committed, "{isolation:?}, certified: {certified}");
        }
        // The snapshot does not move over it, at any level.
        let mut txn = world.begin(isolation);
        let since = txn.snapshot();
        assert_eq!(txn.rely(&token, since, false, Waker::noop()), Poll::Ready(Ok(())));
        change(&mut world, &token);
        change(&mut world, &seen);
        let locked = txn.lock(&world.now(), &seen, LockMode::Update, WhenLocked::Wait, Waker::noop());
        assert!(matches!(locked, Poll::Ready(Err(TxnError::Restart { .. }))), "{locked:?}");
        txn.rollback();
        // Nor is it relied upon where it has moved over it already.
        let mut txn = world.begin(isolation);
        let since = txn.snapshot();
        change(&mut world, &token);
        change(&mut world, &seen);
        let locked = txn.lock(&world.now(), &seen, LockMode::Update, WhenLocked::Wait, Waker::noop());
        assert_eq!(locked, Poll::Ready(Ok(true)));
        let relied = txn.rely(&token, since, false, Waker::noop());
        assert!(matches!(relied, Poll::Ready(Err(TxnError::Restart { .. }))), "{relied:?}");
        txn.rollback();
        // What is taken back does not rely on anything any more, where reads are not certified.
        let mut txn = world.begin(isolation);
        let (since, mark) = (txn.snapshot(), txn.savepoint());
        assert_eq!(txn.rely(&token, since, true, Waker::noop()), Poll::Ready(Ok(())));
        txn.rollback_to(mark);
        txn.put(Bytes::from_static(b"row"), Bytes::from_static(b"2")).unwrap();
        change(&mut world, &token);
        assert_eq!(world.commit(&mut txn).is_ok(), isolation != Isolation::Serializable, "{isolation:?}");
    }
}

#[test]
fn writes_over_others_meet_none() {
    let mut world = World::new();
    let key = Bytes::from_static(b"number");
    let (mut a, mut b) = (world.begin(Isolation::Serializable), world.begin(Isolation::Serializable));
    a.overwrite(key.clone(), Some(Bytes::from_static(b"a"))).unwrap();
    b.overwrite(key, Some(Bytes::from_static(b"b"))).unwrap();
    world.commit(&mut b).unwrap();
    world.commit(&mut a).unwrap();
    let mut txn = world.begin(Isolation::Serializable);
    assert_eq!(world.get(&mut txn, "number").as_deref(), Some("a"));
    world.crash();
    let mut txn = world.begin(Isolation::Serializable);
    assert_eq!(world.get(&mut txn, "number").as_deref(), Some("a"));
}

#[test]
fn reads_of_the_present_need_no_lease() {
    let mut w = World::new();
    w.set(&[("a", "1")]);
    w.pass(10_000_000_000);
    for consistency in
        [Consistency::Auto, Consistency::Strict, Consistency::Hybrid, Consistency::Token, Consistency::None]
    {
        let options = BeginOptions { consistency, ..BeginOptions::default() };
        let mut txn = Transaction::begin(&w.node, &w.now(), &options).unwrap();
        assert_eq!(w.get(&mut txn, "a").as_deref(), Some("1"), "{consistency:?}");
    }
    assert!(!w.node.has_batch());
}

/// A snapshot of the last moments stands in the log before it is read; after a restart nothing is written below it, wherever the
/// clock is.
#[test]
fn a_snapshot_that_was_read_is_not_written_below_after_a_restart() {
    let mut w = World::new();
    w.set(&[("a", "1")]);
    w.pass(10_000_000_000);
    let at = w.now().interval.earliest();
    let past = BeginOptions { as_of: Some(at), ..BeginOptions::default() };
    let mut txn = Transaction::begin(&w.node, &w.now(), &past).unwrap();
    assert!(txn.get(&w.now(), b"a", false, Waker::noop()).is_pending(), "read beyond the log and the lease");
    w.sync();
    assert_eq!(w.get(&mut txn, "a").as_deref(), Some("1"));
    drop(txn);
    w.ns = START_NS + 1_000_000_000;
    w.crash();
    assert!(w.set(&[("a", "2")]) > at);
}

fn strict() -> BeginOptions {
    BeginOptions { consistency: Consistency::Strict, ..BeginOptions::default() }
}

/// A node with peers that was stopped cleanly serves at once when it starts; after a crash it waits for its lease.
#[test]
fn a_clean_stop_gives_the_lease_back() {
    for clean in [false, true] {
        let mut w = World::with_other_nodes();
        w.set(&[("a", "1"), ("z", "1")]);
        w.pass(1_000_000_000);
        w.sync();
        // A range that is split off under the lease has a copy of it.
        w.split("m");
        let mut txn = Transaction::begin(&w.node, &w.now(), &strict()).unwrap();
        assert_eq!(w.get(&mut txn, "a").as_deref(), Some("1"));
        let read_at = txn.snapshot();
        if clean {
            w.node.close();
            w.node.give_back_lease(&w.now());
            w.sync();
        }
        drop(txn);
        w.ns += 1_000;
        w.node = open(&w.disk, w.ns, NodeOptions { alone: false, ..NodeOptions::default() });
        assert_eq!(w.node.is_ready(&w.now()), clean);
        w.pass(4_000_000_000);
        assert!(w.node.is_ready(&w.now()));
        assert!(w.set(&[("a", "2")]) > read_at);
    }
}

/// Once the lease is given back nothing beyond the log is read, also where a longer lease was on its way to the disk.
#[test]
fn a_lease_that_was_given_back_covers_no_reader() {
    let mut w = World::with_other_nodes();
    w.set(&[("a", "1")]);
    w.pass(3_000_000_000);
    assert!(w.node.has_batch(), "a longer lease is on its way");
    w.node.close();
    w.node.give_back_lease(&w.now());
    w.node.give_back_lease(&w.now());
    w.ns += 1_000_000;
    let late = |w: &mut World| {
        let mut txn = Transaction::begin(&w.node, &w.now(), &strict()).unwrap();
        txn.get(&w.now(), b"a", false, Waker::noop())
    };
    assert_eq!(late(&mut w), Poll::Ready(Err(TxnError::ShuttingDown)));
    w.sync();
    assert_eq!(late(&mut w), Poll::Ready(Err(TxnError::ShuttingDown)));
    // What was acknowledged stays readable.
    let as_of = BeginOptions { as_of: Some(w.node.visible()), ..BeginOptions::default() };
    let mut txn = Transaction::begin(&w.node, &w.now(), &as_of).unwrap();
    assert_eq!(w.get(&mut txn, "a").as_deref(), Some("1"));
    // The next life may begin as soon as the release is past, which the clock now is.
    w.node = open(&w.disk, w.ns, NodeOptions { alone: false, ..NodeOptions::default() });
    assert!(w.node.is_ready(&w.now()));
}

/// The simulator found this one at seed 3000265.
#[test]
fn a_range_that_splits_off_while_the_node_stops_gives_its_copy_back() {
    let mut w = World::with_other_nodes();
    w.set(&[("a", "1"), ("z", "1")]);
    w.pass(1_000_000_000);
    w.sync();
    let split = w.node.split(&w.now(), bytes("m"), Waker::noop());
    w.node.close();
    w.node.give_back_lease(&w.now());
    w.sync();
    assert_eq!(split.poll(Waker::noop()), Poll::Ready(Ok(())));
    w.node = open(&w.disk, w.ns, NodeOptions { alone: false, ..NodeOptions::default() });
    assert_eq!(w.node.ranges(&Span::ALL).len(), 2);
    assert!(w.node.is_ready(&w.now()));
}

/// A lone node that needed no lease writes nothing when it stops.
#[test]
fn a_lone_node_has_nothing_to_give_back() {
    let mut w = World::new();
    w.set(&[("a", "1")]);
    w.node.close();
    w.node.give_back_lease(&w.now());
    assert!(!w.node.has_batch());
}

#[test]
fn a_full_disk_refuses_writes_and_reads_go_on() {
    let mut w = World::new();
    w.set(&[("a", "1")]);
    let mut txn = w.begin(Isolation::Serializable);
    txn.put(bytes("a"), bytes("2")).unwrap();
    assert!(txn.commit(&w.now(), Waker::noop()).is_pending());
    let mut batch = LogBatch::default();
    w.node.take_batch(&mut batch);
    w.node.step(&w.now(), Input::AppendFailed { from: batch.first, why: AppendError::Full }).unwrap();
    assert!(matches!(txn.commit(&w.now(), Waker::noop()), Poll::Ready(Err(TxnError::DiskFull))));
    assert_eq!(w.value("a").as_deref(), Some("1"));
    w.set(&[("a", "3")]);
    assert_eq!(w.value("a").as_deref(), Some("3"));
}

#[test]
fn the_past_stays_readable() {
    let mut w = World::new();
    let first = w.set(&[("a", "1")]);
    w.set(&[("a", "2")]);
    let options = BeginOptions { as_of: Some(first), ..BeginOptions::default() };
    let mut txn = Transaction::begin(&w.node, &w.now(), &options).unwrap();
    assert_eq!(w.get(&mut txn, "a").as_deref(), Some("1"));
    assert_eq!(txn.put(bytes("a"), bytes("3")), Err(TxnError::ReadOnly));
    let future = Timestamp::new(w.ns / 1000 + 5_000_000, 0);
    let options = BeginOptions { as_of: Some(future), ..BeginOptions::default() };
    assert!(matches!(Transaction::begin(&w.node, &w.now(), &options), Err(TxnError::SnapshotUnavailable { .. })));
}

/// Five seconds ago is what was there five seconds ago, also where the clock was set back by an hour meanwhile.
#[test]
fn a_relative_time_sees_what_was_visible_then_although_the_clock_was_set_back() {
    let mut w = World::new();
    let hour_ns = 3_600_000_000_000;
    let second_ns = 1_000_000_000;
    w.ns = START_NS + hour_ns;
    w.set(&[("a", "1")]);
    w.pass(10 * second_ns);
    w.ns -= hour_ns;
    let after = w.set(&[("a", "2")]);
    for _ in 0..10 {
        w.pass(second_ns);
    }
    w.set(&[("a", "3")]);
    let read = |w: &mut World, age_us| {
        let at = w.node.ago(&w.now(), age_us);
        let past = BeginOptions { as_of: Some(at), ..BeginOptions::default() };
        let mut txn = Transaction::begin(&w.node, &w.now(), &past).unwrap();
        w.get(&mut txn, "a")
    };
    assert_eq!(read(&mut w, 5_000_000).as_deref(), Some("2"));
    assert_eq!(read(&mut w, 15_000_000).as_deref(), Some("1"));
    assert!(w.now().interval.is_future(after));
    // What was visible is not refused as the future, and it needs no lease.
    let exact = BeginOptions { as_of: Some(after), ..BeginOptions::default() };
    let mut txn = Transaction::begin(&w.node, &w.now(), &exact).unwrap();
    assert_eq!(w.get(&mut txn, "a").as_deref(), Some("2"));
}

/// While the clock runs on evenly a relative time is the clock's; alone, it is never beyond the last commit, and so needs no lease.
#[test]
fn a_relative_time_after_the_last_commit_needs_no_lease() {
    for alone in [true, false] {
        let mut w = World::over(NodeOptions { alone, ..NodeOptions::default() });
        let last = w.set(&[("a", "1")]);
        w.ns += 60_000_000_000;
        let at = w.node.ago(&w.now(), 5_000_000);
        let clock = Timestamp::new(w.ns / 1000 - 5_000_000, 0);
        assert_eq!(at, if alone { last } else { clock });
        let past = BeginOptions { as_of: Some(at), ..BeginOptions::default() };
        let mut txn = Transaction::begin(&w.node, &w.now(), &past).unwrap();
        let read = txn.get(&w.now(), b"a", false, Waker::noop());
        assert_eq!(read.is_ready(), alone, "{read:?}");
    }
}

#[test]
fn savepoints_and_own_writes() {
    let mut w = World::new();
    w.set(&[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut txn = w.begin(Isolation::Serializable);
    txn.put(bytes("aa"), bytes("2")).unwrap();
    let mark = txn.savepoint();
    txn.delete(bytes("b")).unwrap();
    txn.put(bytes("d"), bytes("2")).unwrap();
    let span = bytes("a")..bytes("z");
    let rows = |txn: &mut Transaction<MemoryEngine>, reverse| match txn.scan(
        &Reading::exact(START_NS),
        &span,
        reverse,
        10,
        false,
        Waker::noop(),
    ) {
        Poll::Ready(Ok(chunk)) => {
            chunk.rows.iter().map(|(k, _)| String::from_utf8(k.to_vec()).unwrap()).collect::<Vec<_>>().join(" ")
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(rows(&mut txn, false), "a aa c d");
    assert_eq!(rows(&mut txn, true), "d c aa a");
    txn.rollback_to(mark);
    assert_eq!(rows(&mut txn, false), "a aa b c");
    txn.rollback_to(mark);
    w.commit(&mut txn).unwrap();
    assert_eq!(w.value("aa").as_deref(), Some("2"));
    assert_eq!(w.value("d"), None);
}
