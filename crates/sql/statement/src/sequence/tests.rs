use super::*;
use crate::catalog::Sequence;
use crate::transaction::Patience;
use crate::transaction::memory::MemoryKv;
use crate::transaction::{Admin, AdminReply, BeginOptions, Kv, KvError, Transaction};
use crate::types::SqlType;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

fn sequence(increment: i64, min: i64, max: i64, start: i64, cycle: bool) -> Sequence {
    Sequence {
        id: 20_000,
        database: 5,
        schema: 2200,
        name: "s".into(),
        ty: SqlType::Int8,
        start,
        increment,
        min,
        max,
        cycle,
        cache: 1,
        owner: None,
    }
}

fn draw(numbers: &Numbers, kv: &MemoryKv, s: &Sequence, count: usize) -> Vec<i64> {
    (0..count).map(|_| numbers.next(kv, &Patience::default(), s).expect("next")).collect()
}

#[test]
fn dense_over_blocks_and_a_clean_stop() {
    let kv = MemoryKv::new();
    let s = sequence(1, 1, i64::MAX, 1, false);
    let numbers = Numbers::default();
    assert_eq!(draw(&numbers, &kv, &s, 5000), (1..=5000).collect::<Vec<_>>());
    numbers.give_back(&kv, &Patience::default()).expect("give back");
    assert_eq!(draw(&Numbers::default(), &kv, &s, 2), vec![5001, 5002]);
}

#[test]
fn a_crash_loses_numbers_and_repeats_none() {
    let kv = MemoryKv::new();
    let s = sequence(1, 1, i64::MAX, 1, false);
    assert_eq!(draw(&Numbers::default(), &kv, &s, 1), vec![1]);
    assert_eq!(draw(&Numbers::default(), &kv, &s, 1), vec![1 + BLOCK_MIN as i64]);
}

#[test]
fn ends_cycles_and_runs_down() {
    let kv = MemoryKv::new();
    let s = sequence(2, 1, 6, 3, true);
    assert_eq!(draw(&Numbers::default(), &kv, &s, 2), vec![3, 5]);
    let kv = MemoryKv::new();
    let numbers = Numbers::default();
    assert_eq!(draw(&numbers, &kv, &s, 6), vec![3, 5, 1, 3, 5, 1]);
    let kv = MemoryKv::new();
    let s = sequence(-1, 1, 3, 3, false);
    let numbers = Numbers::default();
    assert_eq!(draw(&numbers, &kv, &s, 3), vec![3, 2, 1]);
    let e = numbers.next(&kv, &Patience::default(), &s).expect_err("the end");
    assert_eq!(
        (e.state.as_str(), e.message.as_str()),
        ("2200H", "nextval: reached minimum value of sequence \"s\" (1)")
    );
}

#[test]
fn setval_and_another_increment() {
    let kv = MemoryKv::new();
    let numbers = Numbers::default();
    let s = sequence(1, 1, 100, 1, false);
    draw(&numbers, &kv, &s, 3);
    numbers.set(&kv, &Patience::default(), &s, 10, false).expect("set");
    assert_eq!(draw(&numbers, &kv, &s, 1), vec![10]);
    numbers.set(&kv, &Patience::default(), &s, 10, true).expect("set");
    assert_eq!(draw(&numbers, &kv, &s, 1), vec![11]);
    assert_eq!(
        numbers.set(&kv, &Patience::default(), &s, 101, true).expect_err("out of bounds").state.as_str(),
        "22003"
    );
    assert_eq!(
        numbers.position(&kv, &Patience::default(), &s).expect("position"),
        Position { value: 11, is_called: true }
    );
}

/// A node of a cluster, whose clock goes on by ten milliseconds at each look.
struct Member {
    kv: Arc<MemoryKv>,
    node: u32,
    clock: Arc<AtomicI64>,
}

impl Kv for Member {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        self.kv.begin(options)
    }
    fn unique_id(&self) -> u64 {
        self.kv.unique_id()
    }
    fn node(&self) -> u32 {
        self.node
    }
    fn now_us(&self) -> i64 {
        self.clock.load(SeqCst)
    }
    fn monotonic_us(&self) -> i64 {
        self.clock.fetch_add(10_000, SeqCst)
    }
    fn admin(&self, request: Admin) -> Result<AdminReply, KvError> {
        self.kv.admin(request)
    }
    fn internal_table(&self, _: &str) -> Option<(Vec<String>, Vec<Vec<Option<String>>>)> {
        None
    }
}

#[test]
fn a_sequence_that_was_moved_at_one_node_has_moved_at_all() {
    let (kv, clock) = (Arc::new(MemoryKv::new()), Arc::new(AtomicI64::new(0)));
    let member = |node| Member { kv: kv.clone(), node, clock: clock.clone() };
    let (one, two) = (member(1), member(2));
    let (at_one, at_two) = (Numbers::default(), Numbers::default());
    let (patience, s) = (Patience::default(), sequence(1, 1, i64::MAX, 1, false));
    let next = |numbers: &Numbers, kv: &Member| numbers.next(kv, &patience, &s).expect("next");
    assert_eq!((next(&at_one, &one), next(&at_two, &two)), (1, 1 + BLOCK_MIN as i64));
    assert_eq!((next(&at_one, &one), next(&at_two, &two)), (2, 2 + BLOCK_MIN as i64));
    at_one.set(&one, &patience, &s, 1000, true).expect("set");
    assert_eq!(next(&at_two, &two), 1001, "its block is void");
    assert!(next(&at_one, &one) > 1001);
    // A number that was moved to by chance is not the end of an old block.
    at_two.set(&two, &patience, &s, 5000, false).expect("set");
    assert_eq!((next(&at_one, &one), at_one.position(&one, &patience, &s).expect("a position").value), (5000, 5000));
}

#[test]
fn where_nobody_else_takes_numbers_none_is_lost_and_nobody_waits() {
    let (kv, clock) = (Arc::new(MemoryKv::new()), Arc::new(AtomicI64::new(0)));
    let member = Member { kv, node: 1, clock: clock.clone() };
    let (numbers, patience, s) = (Numbers::default(), Patience::default(), sequence(1, 1, i64::MAX, 1, false));
    for expected in 1..=500 {
        assert_eq!(numbers.next(&member, &patience, &s).expect("next"), expected);
        if expected % 7 == 0 {
            clock.fetch_add(GRANT_US, SeqCst);
            assert_eq!(numbers.position(&member, &patience, &s).expect("a position").value, expected);
        }
    }
    let before = clock.load(SeqCst);
    numbers.set(&member, &patience, &s, 9, false).expect("set");
    assert!(clock.load(SeqCst) - before < GRANT_US, "it waited");
    assert_eq!(numbers.next(&member, &patience, &s).expect("next"), 9);
}

/// As it was written before it said who took numbers.
#[test]
fn a_bare_record_is_read() {
    let kv = MemoryKv::new();
    let s = sequence(1, 1, i64::MAX, 1, false);
    let mut bare = vec![1];
    bare.extend(41i64.to_be_bytes());
    bare.push(1);
    let mut txn = kv.begin(&BeginOptions::default()).expect("a transaction");
    let key = crate::catalog::key::object(crate::catalog::key::SEQUENCES, s.id);
    txn.put(bytes::Bytes::copy_from_slice(&key), bare.into()).expect("put");
    txn.commit().expect("commit");
    assert_eq!(draw(&Numbers::default(), &kv, &s, 2), vec![42, 43]);
}
