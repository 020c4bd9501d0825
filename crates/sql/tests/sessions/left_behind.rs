//! What a node that has left the cluster was loading others take back.

use super::{Rows, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Interrupt};
use sql::{Database, DatabaseOptions, Kv, KvError, Session, Transaction};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A node over what all of them see.
#[derive(Clone)]
struct Node {
    kv: MemoryKv,
    node: u32,
    /// Who has left; 0: nobody.
    left: Arc<AtomicU32>,
}

impl Node {
    fn of(kv: &MemoryKv, node: u32, left: &Arc<AtomicU32>) -> Node {
        Node { kv: kv.clone(), node, left: left.clone() }
    }
}

impl Kv for Node {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        self.kv.begin(options)
    }
    below!(load);
    fn node(&self) -> u32 {
        self.node
    }
    fn has_left(&self, node: u32) -> bool {
        node == self.left.load(Ordering::Relaxed)
    }
}

/// Two nodes, and a session at the second that loads a table.
fn loading() -> (MemoryKv, Arc<AtomicU32>, Arc<sql::Database>, Session) {
    let (kv, left) = (MemoryKv::new(), Arc::new(AtomicU32::new(0)));
    // A chunk is as small as can be: some 35,000 rows.
    let options = DatabaseOptions { memory_bytes: Some(64 << 20), ..DatabaseOptions::default() };
    let at = |node| {
        let kv = Node::of(&kv, node, &left);
        Database::open(Arc::new(kv), options.clone()).expect("open")
    };
    let (stays, goes) = (at(1), at(2));
    let mut loads = session(&goes);
    run(&mut loads, "BEGIN; CREATE TABLE t (a int PRIMARY KEY)");
    loads.simple_query("COPY t FROM STDIN", &mut Rows::default()).expect("copy");
    for i in 0..40_000 {
        loads.copy_data(format!("{i}\n").as_bytes()).expect("row");
    }
    (kv, left, stays, loads)
}

#[test]
fn the_load_of_a_node_that_has_left_is_taken_back() {
    let (kv, left, stays, mut loads) = loading();
    loads.copy_done(&mut Rows::default()).expect("done");
    // It dies, and nobody knows for how long.
    std::mem::forget(loads);
    assert!(!stays.drain_garbage(&Interrupt::default()).expect("drain"), "it may come back, and take it back itself");
    assert!(kv.live_keys() > 40_000);
    left.store(2, Ordering::Relaxed);
    while stays.drain_garbage(&Interrupt::default()).expect("drain") {}
    assert!(kv.live_keys() < 20, "{}", kv.live_keys());
}

#[test]
fn a_load_that_was_taken_back_does_not_commit() {
    let (kv, left, stays, mut loads) = loading();
    loads.copy_done(&mut Rows::default()).expect("done");
    left.store(2, Ordering::Relaxed);
    while stays.drain_garbage(&Interrupt::default()).expect("drain") {}
    assert_eq!(state_of(&mut loads, "COMMIT"), "40001");
    assert_eq!(state_of(&mut session(&stays), "SELECT * FROM t"), "42P01");
    assert!(kv.live_keys() < 20, "{}", kv.live_keys());
}

/// It comes to the end of its load when that was taken back.
#[test]
fn half_a_load_does_not_commit() {
    for drained in [1, usize::MAX] {
        let (kv, left, stays, mut loads) = loading();
        assert!(kv.live_keys() > 30_000, "it has written");
        left.store(2, Ordering::Relaxed);
        for _ in 0..drained {
            if !stays.drain_garbage(&Interrupt::default()).expect("drain") {
                break;
            }
        }
        let ended = loads.copy_done(&mut Rows::default());
        let state = ended.map_or_else(|error| error.state.as_str().to_owned(), |_| state_of(&mut loads, "COMMIT"));
        assert_eq!(state, "40001");
        run(&mut loads, "ROLLBACK");
        while stays.drain_garbage(&Interrupt::default()).expect("drain") {}
        assert_eq!(state_of(&mut session(&stays), "SELECT * FROM t"), "42P01");
        assert!(kv.live_keys() < 20, "{}", kv.live_keys());
    }
}

#[test]
fn what_was_committed_before_its_node_left_stays() {
    let (_, left, stays, mut loads) = loading();
    loads.copy_done(&mut Rows::default()).expect("done");
    run(&mut loads, "COMMIT");
    left.store(2, Ordering::Relaxed);
    while stays.drain_garbage(&Interrupt::default()).expect("drain") {}
    assert_eq!(run(&mut session(&stays), "SELECT count(*) FROM t"), ["40000"]);
}
