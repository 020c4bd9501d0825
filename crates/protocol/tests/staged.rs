//! Staged batches beside the same batches as one command: whatever the log holds in between, the verdicts are the same, and no step does much.

mod model;

use bytes::Bytes;
use clock::Timestamp;
use model::Model;
use protocol::txn::{Batch, Command, Part, Range, RangeId, Read, Span, TxnId, Verdict, VersionStore, Write};
use std::cell::Cell;
use std::convert::Infallible;
use std::sync::Arc;

const PART_WRITES_MAX: usize = 4096;

fn ts(us: u64) -> Timestamp {
    Timestamp::new(us, 0)
}

fn txn(serial: u64) -> TxnId {
    TxnId { serial, node: 1 }
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn until() -> Option<Timestamp> {
    Some(ts(1_000_000_000))
}

/// Of some of 30 keys in two indexes, decided at about `now` or some time before.
fn batch(id: TxnId, now: u64, writes: u64, chance: &mut Chance) -> Batch {
    let key = |n: u64| Bytes::from(format!("idx{}{n:02}", n % 2));
    let mut keys: Vec<Bytes> = (0..writes).map(|_| key(chance.below(30))).collect();
    keys.sort();
    keys.dedup();
    let mut since = || ts(now.saturating_sub(chance.below(12)));
    let write = |key: Bytes| {
        let (since, deletes) = (since(), key[5] == b'3');
        Write { value: (!deletes).then(|| key.clone()), key, since }
    };
    let writes: Vec<Write> = keys.into_iter().map(write).collect();
    let mut reads = Vec::new();
    if chance.below(3) == 0 {
        reads.push(Read::Key { key: key(chance.below(30)), since: ts(now) });
    }
    if chance.below(4) == 0 {
        reads.push(Read::Span { span: Span::new(key(chance.below(10)), key(12)), since: ts(now) });
    }
    // What is said of references (`holds`).
    match chance.below(8) {
        0 => reads.push(Read::Present { key: key(chance.below(30)), since: ts(now) }),
        1 => reads.push(Read::Unreferred { key: key(chance.below(30)), since: ts(now) }),
        2 => reads.push(Read::Referred { span: Span::new(key(chance.below(10)), key(28)), since: ts(now) }),
        3 if chance.below(4) == 0 => {
            reads.push(Read::Unreferred { key: key(chance.below(30)), since: Timestamp::MIN });
        }
        _ => {}
    }
    Batch { txn: id, until: until(), staged: None, reads, writes }
}

/// Two replicas of one log; the one gets large batches in parts.
#[derive(Default)]
struct Both {
    now: u64,
    staged: Option<(Range, Model)>,
    whole: Option<(Range, Model)>,
    overlooks: bool,
    refused: usize,
    committed: usize,
}

impl Both {
    fn new(overlooks: bool) -> Both {
        let fresh = || Some((Range::new(RangeId(1), Span::ALL), Model::default()));
        Both { now: 100, staged: fresh(), whole: fresh(), overlooks, ..Both::default() }
    }

    fn only(&mut self, staged: bool, command: &Command) -> Verdict {
        let (range, versions) = if staged { &mut self.staged } else { &mut self.whole }.as_mut().unwrap();
        range.apply(ts(self.now), command, versions).unwrap()
    }

    /// The verdicts of both, and whether they agree.
    fn both(&mut self, staged: &Command, whole: &Command) -> bool {
        self.now += 1;
        if self.overlooks {
            self.staged.as_mut().unwrap().0.overlook();
        }
        let (one, other) = (self.only(true, staged), self.only(false, whole));
        match other {
            Verdict::Refused(_) => self.refused += 1,
            _ => self.committed += 1,
        }
        match (one, other) {
            // Which key is told may differ.
            (Verdict::Refused(_), Verdict::Refused(_)) => true,
            (one, other) => one == other,
        }
    }

    /// The state is what it is written as, whatever of it was read.
    fn is_written_as_it_is(&self) {
        let (range, _) = self.staged.as_ref().unwrap();
        let bytes = Bytes::from(range.encode());
        let read = Range::decode(&bytes).unwrap();
        assert!(bytes.is_unique(), "nothing keeps it in memory");
        assert_eq!(read, *range);
        assert_eq!(read.encode(), range.encode());
    }

    fn restart(&mut self) {
        let (range, versions) = self.staged.take().unwrap();
        self.staged = Some((Range::decode(&range.encode().into()).unwrap(), versions));
    }
}

/// `false`: the two did not agree.
fn run(seed: u64, overlooks: bool, told: &mut (usize, usize)) -> bool {
    let mut chance = Chance(seed * 77 + 5);
    let mut both = Both::new(overlooks);
    let mut serial = 0;
    for _ in 0..12 {
        serial += 1;
        let (id, many) = (txn(serial), 1 + chance.below(20));
        let large = batch(id, both.now, many, &mut chance);
        let bytes = 1 + chance.below(60) as usize;
        let (whole, parts) = large.to_parts(bytes);
        let mut parts: Vec<(u32, Bytes)> = (0..).zip(parts).collect();
        while !parts.is_empty() {
            let at = chance.below(parts.len().min(4) as u64) as usize;
            let (number, bytes) = parts.remove(at);
            let part = Part { txn: id, until: ts(1_000_000_000), whole: whole.clone(), number, bytes };
            let twice = chance.below(8) == 0;
            for _ in 0..=u8::from(twice) {
                both.now += 1;
                let stage = Command::Stage { part: part.clone(), quota: 1 << 20 };
                assert_eq!(both.only(true, &stage), Verdict::Staged);
            }
            both.is_written_as_it_is();
            // Others write meanwhile, in one range or with others.
            match chance.below(10) {
                0..3 => {
                    serial += 1;
                    let few = 1 + chance.below(3);
                    let small = Command::Commit(batch(txn(serial), both.now, few, &mut chance));
                    if !both.both(&small, &small) {
                        return false;
                    }
                }
                3 => {
                    serial += 1;
                    let batch = batch(txn(serial), both.now, 2, &mut chance);
                    let prepare = Command::Prepare { batch, participants: vec![RangeId(1), RangeId(2)] };
                    let commit = (chance.below(4) > 0).then(|| ts(both.now + 1));
                    let outcome = Command::Outcome { txn: txn(serial), commit, until: until() };
                    if !both.both(&prepare, &prepare) || chance.below(5) > 0 && !both.both(&outcome, &outcome) {
                        return false;
                    }
                }
                4 => both.restart(),
                5 => {
                    // Some were decided below it: of those nobody could tell any more.
                    let collect = Command::Collect { threshold: ts(both.now - chance.below(12)), apart: Vec::new() };
                    if !both.both(&collect, &collect) {
                        return false;
                    }
                }
                _ => {}
            }
        }
        let named = Batch { txn: id, until: until(), staged: Some(whole), ..Batch::default() };
        let (one, other) = match chance.below(4) {
            0 => {
                let participants = vec![RangeId(1), RangeId(3)];
                let prepare = |batch| Command::Prepare { batch, participants: participants.clone() };
                (prepare(named), prepare(large))
            }
            _ => (Command::Commit(named), Command::Commit(large)),
        };
        if !both.both(&one, &other) {
            return false;
        }
        both.is_written_as_it_is();
        let outcome = Command::Outcome { txn: id, commit: Some(ts(both.now)), until: until() };
        if !both.both(&outcome, &outcome) {
            return false;
        }
        let ends = |of: &Option<(Range, Model)>| of.as_ref().map(|(range, _)| range.encode());
        assert_eq!(ends(&both.staged), ends(&both.whole), "nothing of it is left");
    }
    *told = (told.0 + both.refused, told.1 + both.committed);
    true
}

#[test]
fn what_comes_in_parts_is_judged_as_what_comes_whole() {
    let mut told = (0, 0);
    for seed in 0..60 {
        assert!(run(seed, false, &mut told), "seed {seed}");
    }
    assert!(told.0 > 200 && told.1 > 200, "{told:?}");
}

/// `protocol::txn::ahead`, invariant 1.
#[test]
fn what_is_written_after_a_part_was_looked_at_is_missed_by_who_does_not_note_it() {
    assert!((0..40).any(|seed| !run(seed, true, &mut (0, 0))), "not noticed");
}

/// Counts what is asked of it.
#[derive(Default)]
struct Counted {
    inner: Model,
    asked: Cell<usize>,
    written: Cell<usize>,
    whole: Cell<usize>,
}

impl VersionStore for Counted {
    type Error = Infallible;

    fn changed_since(&self, key: &[u8], since: Timestamp) -> Result<Option<Timestamp>, Infallible> {
        self.asked.set(self.asked.get() + 1);
        // (The model looks through all that it has.)
        if self.whole.get() > 0 { self.inner.changed_since(key, since) } else { Ok(None) }
    }
    fn span_changed_since(&self, span: &Span, since: Timestamp) -> Result<Option<(Bytes, Timestamp)>, Infallible> {
        self.inner.span_changed_since(span, since)
    }
    fn is_present(&self, key: &[u8]) -> Result<bool, Infallible> {
        self.inner.is_present(key)
    }
    fn write(&self, writes: &[Write], at: Timestamp, local: Timestamp) -> Result<(), Infallible> {
        self.written.set(self.written.get() + writes.len());
        if writes.len() < 10 { self.inner.write(writes, at, local) } else { Ok(()) }
    }
    fn write_whole(&self, batch: &Arc<Batch>, _: Timestamp, _: Timestamp) -> Result<(), Infallible> {
        self.whole.set(self.whole.get() + batch.writes.len());
        Ok(())
    }
}

fn large(id: TxnId, count: u32, since: Timestamp) -> Batch {
    let write = |n: u32| Write { key: Bytes::from(format!("idx0{n:08}")), value: None, since };
    Batch { txn: id, until: until(), staged: None, reads: Vec::new(), writes: (0..count).map(write).collect() }
}

#[test]
fn no_step_of_a_large_transaction_asks_for_many_keys_and_its_commit_for_none() {
    let (mut range, versions) = (Range::new(RangeId(1), Span::ALL), Counted::default());
    let mut now = 10;
    let mut apply = |range: &mut Range, command: &Command| {
        now += 1;
        let before = versions.asked.get();
        let verdict = range.apply(ts(now), command, &versions).unwrap();
        (verdict, versions.asked.get() - before)
    };
    for (serial, meets) in [(1, false), (2, true)] {
        let (whole, parts) = large(txn(serial), 100_000, ts(5)).to_parts(512 << 10);
        assert!(parts.len() >= 100_000 / PART_WRITES_MAX, "{}", parts.len());
        for (number, bytes) in (0..).zip(parts) {
            let part = Part { txn: txn(serial), until: ts(1_000_000), whole: whole.clone(), number, bytes };
            let (verdict, asked) = apply(&mut range, &Command::Stage { part, quota: 1 << 30 });
            assert_eq!(verdict, Verdict::Staged);
            assert!(asked <= 2 * PART_WRITES_MAX, "{asked} keys for part {number}");
            if number == 3 && meets {
                let write = Write { key: Bytes::from_static(b"idx000000007"), value: None, since: ts(9) };
                let small = Batch { txn: txn(77), until: until(), writes: vec![write], ..Batch::default() };
                assert_eq!(apply(&mut range, &Command::Commit(small)).0, Verdict::Committed);
            }
        }
        let named = Batch { txn: txn(serial), until: until(), staged: Some(whole), ..Batch::default() };
        let (verdict, asked) = apply(&mut range, &Command::Commit(named));
        assert_eq!(matches!(verdict, Verdict::Refused(_)), meets, "{verdict:?}");
        assert_eq!(asked, 0, "all was asked before");
    }
    assert_eq!((versions.whole.get(), versions.written.get()), (100_000, 1), "it is handed on as a whole");
}
