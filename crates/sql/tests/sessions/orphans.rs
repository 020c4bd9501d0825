//! What a node was making of a table when it died, others take back (decision 228).

use super::exclusive::is_changed;
use super::online::fill;
use super::{open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Interrupt};
use sql::{Database, DatabaseOptions, Kv, KvError, Transaction};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What happens beside a transaction.
pub(super) type Beside = Box<dyn FnMut() + Send>;

/// A node over what all of them see.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) kv: MemoryKv,
    node: u32,
    /// Transactions that can still begin: then this happens, if there is such, or the process is as good as dead.
    pub(super) steps: Arc<AtomicUsize>,
    pub(super) then: Arc<Mutex<Option<Beside>>>,
}

impl Node {
    pub(super) fn of(kv: &MemoryKv, node: u32) -> Node {
        let steps = Arc::new(AtomicUsize::new(usize::MAX));
        Node { kv: kv.clone(), node, steps, then: Arc::default() }
    }
}

impl Kv for Node {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        let left = self.steps.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_err() {
            let then = self.then.lock().expect("lock").take();
            then.map(|mut then| then()).ok_or(KvError::ShuttingDown)?;
            self.steps.store(usize::MAX, Ordering::Relaxed);
        }
        self.kv.begin(options)
    }
    below!(load);
    fn node(&self) -> u32 {
        self.node
    }
}

/// What is made, whether that is shown, what breaks it, and how many rows do.
const MADE: [[&str; 4]; 7] = [
    [
        "CREATE INDEX t_v ON t (v)",
        "SELECT count(*) FROM pg_class WHERE relname = 't_v'",
        "UPDATE t SET v = 1000 WHERE id = 5",
        "SELECT 0",
    ],
    [
        "ALTER TABLE t ADD CONSTRAINT small CHECK (v < 1000)",
        "SELECT count(*) FROM pg_constraint WHERE conname = 'small'",
        "UPDATE t SET v = 1000 WHERE id = 5",
        "SELECT count(*) FROM t WHERE v + 0 >= 1000",
    ],
    [
        "ALTER TABLE t ALTER COLUMN v SET NOT NULL",
        "SELECT count(*) FROM information_schema.columns WHERE table_name = 't' AND column_name = 'v' AND is_nullable = 'NO'",
        "UPDATE t SET v = NULL WHERE id = 5",
        "SELECT count(*) - count(v + 0) FROM t",
    ],
    [
        "CREATE UNIQUE INDEX t_u ON t (u)",
        "SELECT count(*) FROM pg_class WHERE relname = 't_u'",
        "UPDATE t SET u = 7 WHERE id = 5",
        "SELECT count(*) - count(DISTINCT u + 0) FROM t",
    ],
    [
        "ALTER TABLE t ADD COLUMN r float8 NOT NULL DEFAULT random()",
        "SELECT count(*) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'r'",
        "INSERT INTO t VALUES (900000, 1, 900000)",
        "SELECT count(*) - count(r) FROM t",
    ],
    [
        "ALTER TABLE t ADD COLUMN s serial",
        "SELECT count(*) FROM pg_class WHERE relname = 't_s_seq'",
        "INSERT INTO t VALUES (900000, 1, 900000)",
        "SELECT count(*) - count(s) FROM t",
    ],
    [
        "ALTER TABLE t ALTER COLUMN v TYPE bigint USING v + 0",
        "SELECT count(*) FROM information_schema.columns WHERE table_name = 't' AND data_type = 'bigint'",
        "INSERT INTO t VALUES (900000, 1, 900000)",
        "SELECT count(*) - count(v) FROM t",
    ],
];

fn drain(db: &Arc<Database>) {
    while db.drain_garbage(&Interrupt::default()).expect("drain") {}
}

/// Nobody else hears of it, and nothing is left, wherever the process ends. It need not come back, nor be given up.
#[test]
fn what_a_dead_node_was_making_is_taken_back() {
    for [sql, shown, breaks, _] in MADE {
        let mut found = 0;
        for steps in 0.. {
            let kv = MemoryKv::new();
            let goes = Node::of(&kv, 2);
            let stays = open(Node::of(&kv, 1));
            let at = open(goes.clone());
            let mut makes = session(&at);
            fill(&mut makes);
            let keys = kv.live_keys();
            goes.steps.store(steps, Ordering::Relaxed);
            let state = state_of(&mut makes, sql);
            drop((makes, at));
            found += usize::from(is_changed(&kv));
            drain(&stays);
            let (mut asking, case) = (session(&stays), format!("{sql} after {steps} transactions: {state}"));
            assert!(!is_changed(&kv), "{case}");
            if run(&mut asking, shown) == ["0"] {
                assert_ne!(state, "00000", "{case}");
                assert!(kv.live_keys() <= keys + 2, "{case}: {} keys, not {keys}", kv.live_keys());
                run(&mut asking, breaks);
            }
            if state == "00000" {
                break;
            }
        }
        assert!(found > 0, "{sql}");
    }
}

/// Before each transaction of a change its locks are lost, others take back what it has announced, and somebody breaks what it makes. Gives whether what was shown did not hold.
fn taken_back(options: &DatabaseOptions) -> bool {
    let mut broken = false;
    for [sql, shown, breaks, breaking_rows] in MADE {
        for steps in 0.. {
            let kv = MemoryKv::new();
            let slow = Node::of(&kv, 2);
            let stays = open(Node::of(&kv, 1));
            let at = Database::open(Arc::new(slow.clone()), options.clone()).expect("open");
            let mut makes = session(&at);
            fill(&mut makes);
            let mut breaking = session(&stays);
            let (lost, others) = (kv.clone(), stays.clone());
            *slow.then.lock().expect("lock") = Some(Box::new(move || {
                lost.loses_locks();
                drain(&others);
                // What was shown by then is kept.
                let _ = state_of(&mut breaking, breaks);
            }));
            slow.steps.store(steps, Ordering::Relaxed);
            let state = state_of(&mut makes, sql);
            let ended = slow.then.lock().expect("lock").is_some();
            drain(&stays);
            let (mut asking, case) = (session(&stays), format!("{sql} after {steps} transactions: {state}"));
            assert!(!is_changed(&kv), "{case}");
            if options.looks_for_its_own {
                assert!(["00000", "23505", "23514", "23502"].contains(&state.as_str()), "{case}");
                assert_eq!(run(&mut asking, shown) == ["1"], state == "00000", "{case}");
            }
            broken |= run(&mut asking, shown) == ["1"] && run(&mut asking, breaking_rows) != ["0"];
            for value in [5, 1000] {
                let mut by = |v: &str| run(&mut asking, &format!("SELECT count(*) FROM t WHERE {v} = {value}"));
                assert_eq!(by("v"), by("v + 0"), "{case}");
            }
            if ended {
                break;
            }
        }
    }
    broken
}

/// Who was only slow finds that it was taken back: nothing is shown that writers have not kept.
#[test]
fn who_comes_back_finds_that_his_work_was_taken_back() {
    assert!(!taken_back(&DatabaseOptions::default()));
}

/// A control: whoever does not look shows what does not hold.
#[test]
fn who_does_not_look_shows_what_does_not_hold() {
    assert!(taken_back(&DatabaseOptions { looks_for_its_own: false, ..DatabaseOptions::default() }));
}
