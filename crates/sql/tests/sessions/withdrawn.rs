//! What a load has written that has failed is erased at once (decision 238): not what somebody may have seen, and not what its transaction makes visible after all.

use super::conflicting::{ConflictingTxn, Conflicts};
use super::exclusive::is_gated;
use super::{run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Erased, Interrupt, ScanRequest};
use sql::{Database, DatabaseOptions, Kv, KvError, Session, Transaction};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A store that erases, and keeps the past for ever: what comes with a witness it does not erase.
#[derive(Clone)]
struct Erasing {
    kv: MemoryKv,
    left: Arc<Conflicts>,
    /// What has become of the commit that was put off: it comes to its end once something was erased.
    ended: Arc<Mutex<Option<Result<(), KvError>>>>,
    /// So often it erases nothing yet.
    not_yet: Arc<AtomicUsize>,
    /// It was asked to while a gate was closed.
    gated: Arc<AtomicBool>,
}

impl Kv for Erasing {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        if self.left.on_its_way.lock().expect("lock").is_some() {
            // Or all would wait for that one.
            self.kv.loses_locks();
        }
        Ok(Box::new(ConflictingTxn::new(self.kv.begin(options)?, &self.left)))
    }
    fn erase(&self, prefix: [u8; 4], witness: Option<&[u8]>) -> Result<Option<Erased>, KvError> {
        if witness.is_some() {
            return Ok(Some(Erased::NotYet));
        }
        self.gated.fetch_or(is_gated(&self.kv), Relaxed);
        if self.not_yet.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Ok(Some(Erased::NotYet));
        }
        self.kv.forget(prefix);
        if let Some(mut txn) = self.left.on_its_way.lock().expect("lock").take() {
            *self.ended.lock().expect("lock") = Some(txn.commit().map(drop));
        }
        Ok(Some(Erased::All))
    }
    below!(load);
}

/// A table of more rows than a transaction may write.
fn filled(options: DatabaseOptions) -> (Erasing, Arc<Database>, Session) {
    let (left, ended, not_yet, gated) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
    let kv = Erasing { kv: MemoryKv::new().within(2_500), left, ended, not_yet, gated };
    let db = Database::open(Arc::new(kv.clone()), options).expect("open");
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (a int PRIMARY KEY, b int)");
    for from in [1, 1001, 2001] {
        run(&mut a, &format!("INSERT INTO t SELECT g, 0 FROM generate_series({from}, {from} + 999) g"));
    }
    (kv, db, a)
}

/// Records of what is to be erased.
fn garbage(kv: &Erasing) -> usize {
    let span = sql::catalog::key::index_span(sql::catalog::key::GARBAGE);
    let mut txn = kv.begin(&BeginOptions::default()).expect("begin");
    txn.scan(&ScanRequest { span, reverse: false, limit: 100 }).expect("scan").rows.len()
}

fn collect(db: &Database) {
    while db.drain_garbage(&Interrupt::default()).expect("drain") {}
}

/// At once, when the gate is open; and where the store does not yet, by maintenance.
#[test]
fn what_a_failed_load_has_written_goes_at_once() {
    for not_yet in [0, 1] {
        let (kv, db, mut a) = filled(DatabaseOptions::default());
        run(&mut a, "CREATE UNIQUE INDEX ON t ((4000 - a + b))");
        collect(&db);
        let mut reads = session(&db);
        run(&mut reads, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
        let before = (garbage(&kv), kv.kv.live_keys());
        kv.not_yet.store(not_yet, Relaxed);
        // The rows are loaded by the time that it shows.
        assert_eq!(state_of(&mut a, "UPDATE t SET b = CASE WHEN a = 3000 THEN 100 ELSE 0 END"), "23505");
        assert!(!kv.gated.load(Relaxed), "nobody waits for that");
        if not_yet > 0 {
            assert_eq!(garbage(&kv), before.0 + 2, "what is not erased yet is on record");
            collect(&db);
        }
        assert_eq!((garbage(&kv), kv.kv.live_keys()), before, "{not_yet}");
        run(&mut reads, "COMMIT");
    }
}

/// (Control: what was seen is erased as what was not.)
#[test]
fn what_somebody_may_see_is_not_erased() {
    for (keeps_seen, seen) in [(true, "3000"), (false, "0")] {
        let (kv, db, mut a) = filled(DatabaseOptions { keeps_seen, ..DatabaseOptions::default() });
        let mut reads = session(&db);
        run(&mut reads, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(run(&mut reads, "SELECT count(*) FROM t WHERE b = 0"), ["3000"]);
        run(&mut a, "UPDATE t SET b = 1");
        assert_eq!(garbage(&kv), 1);
        collect(&db);
        assert_eq!(run(&mut reads, "SELECT count(*) FROM t WHERE b = 0"), [seen]);
        run(&mut reads, "COMMIT");
        assert_eq!(run(&mut reads, "SELECT count(*) FROM t WHERE b = 1"), ["3000"]);
    }
}

/// Nobody knows whether its transaction has committed, and it has. (Control: it is erased without a look at the record, which that has taken away.)
#[test]
fn what_has_committed_unheard_is_all_there() {
    for (withdraws_first, found) in [(true, "3000|3000"), (false, "0|")] {
        let (kv, db, mut a) = filled(DatabaseOptions { withdraws_first, ..DatabaseOptions::default() });
        run(&mut a, "CREATE UNIQUE INDEX ON t ((4000 - a + b))");
        kv.left.adopts_unknown.store(true, Relaxed);
        assert_eq!(state_of(&mut a, "UPDATE t SET b = 1"), "40003");
        collect(&db);
        assert!(!is_gated(&kv));
        let mut b = session(&Database::open(Arc::new(kv.kv.clone()), DatabaseOptions::default()).expect("open"));
        assert_eq!(run(&mut b, "SELECT count(*), sum(b) FROM t"), [found]);
        let by_index = run(&mut b, "SELECT count(*) FROM t WHERE 4000 - a + b = 1001");
        assert_eq!(by_index, [if withdraws_first { "1" } else { "0" }]);
    }
}

/// It comes to its end when what was loaded is erased: it is refused then.
#[test]
fn what_is_on_its_way_does_not_lose_what_it_has_loaded() {
    let (kv, _db, mut a) = filled(DatabaseOptions::default());
    let idle = kv.kv.begin(&BeginOptions::default()).expect("begin");
    *kv.left.put_off.lock().expect("lock") = Some(idle);
    assert_eq!(state_of(&mut a, "UPDATE t SET b = 1"), "40003");
    let ended = kv.ended.lock().expect("lock").take().expect("something was erased");
    assert!(ended.is_err(), "{ended:?}");
    assert!(!is_gated(&kv));
    let mut b = session(&Database::open(Arc::new(kv.kv.clone()), DatabaseOptions::default()).expect("open"));
    assert_eq!(run(&mut b, "SELECT count(*), sum(b) FROM t"), ["3000|0"]);
}
