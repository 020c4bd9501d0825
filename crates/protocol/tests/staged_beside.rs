//! Large staged batches beside other large ones: what the range writes after they were looked at is not missed, however much it is at once, and whatever of it can be kept.

use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{
    Batch, Cause, Command, Part, Range, RangeId, Read, Refusal, Span, TxnId, Verdict, VersionStore, Write,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// More than are looked at in one step.
const MANY: u32 = 20_000;
const STEP_MAX: usize = 2 * 4096;

/// The newest version of each key, and how often it was asked.
#[derive(Default)]
struct Newest {
    at: RefCell<BTreeMap<Bytes, Timestamp>>,
    asked: Cell<usize>,
}

impl VersionStore for Newest {
    type Error = Infallible;

    fn changed_since(&self, key: &[u8], since: Timestamp) -> Result<Option<Timestamp>, Infallible> {
        self.asked.set(self.asked.get() + 1);
        Ok(self.at.borrow().get(key).copied().filter(|at| *at > since))
    }
    fn span_changed_since(&self, span: &Span, since: Timestamp) -> Result<Option<(Bytes, Timestamp)>, Infallible> {
        let all = self.at.borrow();
        let found = all.iter().find(|(key, at)| span.contains(key) && **at > since);
        Ok(found.map(|(key, at)| (key.clone(), *at)))
    }
    fn is_present(&self, key: &[u8]) -> Result<bool, Infallible> {
        Ok(self.at.borrow().contains_key(key))
    }
    fn write(&self, writes: &[Write], at: Timestamp, _: Timestamp) -> Result<(), Infallible> {
        self.at.borrow_mut().extend(writes.iter().map(|write| (write.key.clone(), at)));
        Ok(())
    }
}

fn ts(us: u64) -> Timestamp {
    Timestamp::new(us, 0)
}

fn txn(serial: u64) -> TxnId {
    TxnId { serial, node: 1 }
}

fn key(n: u32) -> Bytes {
    Bytes::from(format!("idx0{n:08}"))
}

fn batch(serial: u64, keys: impl IntoIterator<Item = u32>, since: u64) -> Batch {
    let write = |n: u32| Write { key: key(n), value: None, since: ts(since) };
    let writes = keys.into_iter().map(write).collect();
    Batch { txn: txn(serial), until: Some(ts(1_000_000)), writes, ..Batch::default() }
}

/// How another transaction is written.
#[derive(Clone, Copy, Debug)]
enum How {
    /// In one entry.
    Whole,
    Parts,
    /// With other ranges.
    Prepared,
}

struct Log {
    range: Range,
    versions: Newest,
    now: u64,
    /// The most that one record asked for.
    asked_most: usize,
}

impl Log {
    fn new() -> Log {
        Log { range: Range::new(RangeId(1), Span::ALL), versions: Newest::default(), now: 100, asked_most: 0 }
    }

    fn apply(&mut self, command: &Command) -> Verdict {
        self.now += 1;
        let before = self.versions.asked.get();
        let verdict = self.range.apply(ts(self.now), command, &self.versions).unwrap();
        self.asked_most = self.asked_most.max(self.versions.asked.get() - before);
        verdict
    }

    /// Stages it; what names it then.
    fn stage(&mut self, large: &Batch) -> Batch {
        let (whole, parts) = large.to_parts(512 << 10);
        for (number, bytes) in (0..).zip(parts) {
            let part = Part { txn: large.txn, until: ts(1_000_000), whole: whole.clone(), number, bytes };
            assert_eq!(self.apply(&Command::Stage { part, quota: 1 << 30 }), Verdict::Staged);
        }
        Batch { txn: large.txn, until: large.until, staged: Some(whole), ..Batch::default() }
    }

    fn write(&mut self, large: Batch, how: How) {
        let named = match how {
            How::Whole => large,
            How::Parts | How::Prepared => self.stage(&large),
        };
        let txn = named.txn;
        if let How::Prepared = how {
            let prepare = Command::Prepare { batch: named, participants: vec![RangeId(1), RangeId(2)] };
            assert_eq!(self.apply(&prepare), Verdict::Prepared);
            let commit = Some(ts(self.now));
            let outcome = Command::Outcome { txn, commit, until: Some(ts(1_000_000)) };
            assert!(matches!(self.apply(&outcome), Verdict::Applied(_)));
        } else {
            assert_eq!(self.apply(&Command::Commit(named)), Verdict::Committed);
        }
    }
}

/// What becomes of a staged batch of odd keys beside so many others of even ones, of which the last also writes its last key, if they meet; and the log.
fn beside(others: &[How], meets: bool, pause: usize) -> (Verdict, Log) {
    let mut log = Log::new();
    let named = log.stage(&batch(1, (0..MANY).map(|n| 2 * n + 1), 50));
    for (serial, how) in (2..).zip(others) {
        let last = serial as usize == others.len() + 1;
        let meeting = (last && meets).then_some(2 * (MANY - 1) + 1);
        log.write(batch(serial, (0..MANY).map(|n| 2 * n).chain(meeting), log.now), *how);
    }
    // Whoever has the time looks.
    for _ in 0..pause {
        log.range.look_ahead(&log.versions).unwrap();
    }
    log.asked_most = 0;
    let verdict = log.apply(&Command::Commit(named));
    (verdict, log)
}

#[test]
fn nothing_that_a_large_commit_writes_beside_it_is_missed() {
    use How::{Parts, Prepared, Whole};
    let cases: [&[How]; 5] =
        [&[Whole], &[Parts], &[Prepared], &[Parts, Whole], &[Parts, Prepared, Parts, Parts, Prepared, Parts]];
    for others in cases {
        for pause in [0, 1, 7] {
            let (verdict, log) = beside(others, true, pause);
            let last = key(2 * (MANY - 1) + 1);
            let refused = matches!(&verdict, Verdict::Refused(Refusal { key, cause: Cause::WriteChanged { .. } }) if *key == last);
            assert!(refused, "{others:?}, {pause}: {verdict:?}");
            assert_eq!(log.range.staged_bytes(), 0);
            let (verdict, _) = beside(others, false, pause);
            assert_eq!(verdict, Verdict::Committed, "{others:?}, {pause}");
        }
    }
}

/// What is kept is compared, and the versions are not asked again.
#[test]
fn beside_a_few_large_ones_nothing_is_asked_at_the_command() {
    for others in [&[How::Parts, How::Prepared][..], &[How::Whole], &[How::Whole; 4]] {
        let (verdict, log) = beside(others, false, 0);
        assert_eq!((verdict, log.asked_most), (Verdict::Committed, 0), "{others:?}");
    }
}

/// After a restart, and of what is looked at again, each record and each look does a little, and the command the rest.
#[test]
fn what_was_not_looked_at_is_made_up_for() {
    for (looks, left) in [(0, MANY as usize), (5, MANY as usize - 5 * 1024), (40, 0)] {
        let mut log = Log::new();
        let named = log.stage(&batch(1, 0..MANY, 50));
        assert!(log.asked_most <= STEP_MAX, "{}", log.asked_most);
        log.range = Range::decode(&log.range.encode().into()).unwrap();
        log.asked_most = 0;
        for _ in 0..looks {
            let asked = log.versions.asked.get();
            log.range.look_ahead(&log.versions).unwrap();
            assert!(log.versions.asked.get() - asked <= 1024);
        }
        assert_eq!(log.apply(&Command::Commit(named)), Verdict::Committed);
        assert_eq!(log.asked_most, left, "after {looks} looks");
    }
}

/// What stands in memory counts, not what was sent: a deletion of a short key takes several times its bytes.
#[test]
fn what_is_staged_counts_as_it_stands_in_memory() {
    let mut log = Log::new();
    let large = batch(1, 0..MANY, 50);
    let (whole, parts) = large.to_parts(64 << 10);
    let part = |number: u32| Part {
        txn: large.txn,
        until: ts(1_000_000),
        whole: whole.clone(),
        number,
        bytes: parts[number as usize].clone(),
    };
    let held = whole.bytes + u64::from(MANY) * 72;
    assert_eq!((part(0).memory_bytes(), part(1).memory_bytes()), (held, whole.bytes));
    assert!(held > 4 * whole.bytes);
    log.stage(&large);
    assert_eq!(log.range.staged_memory_bytes(txn(2)), held);
    assert_eq!(log.range.staged_memory_bytes(txn(1)), 0);
}

/// Reads, too; where they go beyond the first part, what is written is counted once that is known.
#[test]
fn what_is_read_counts_where_it_stands_in_memory() {
    let mut log = Log::new();
    let reads = (0..MANY).map(|n| Read::Present { key: key(n), since: ts(50) }).collect();
    let large = Batch { reads, ..batch(1, 0..MANY, 50) };
    let (whole, parts) = large.to_parts(64 << 10);
    let mut stage = |number: usize| {
        let (txn, until) = (large.txn, ts(1_000_000));
        let part = Part { txn, until, whole: whole.clone(), number: number as u32, bytes: parts[number].clone() };
        let announced = part.memory_bytes();
        assert_eq!(log.apply(&Command::Stage { part, quota: 1 << 30 }), Verdict::Staged);
        (announced, log.range.staged_memory_bytes(self::txn(2)))
    };
    let of_reads = u64::from(MANY) * size_of::<Read>() as u64;
    let first = whole.bytes + of_reads;
    assert_eq!(stage(0), (first, first));
    let all = (1..parts.len()).map(&mut stage).last().unwrap();
    assert_eq!(all, (whole.bytes, first + u64::from(MANY) * 72));
}
