//! Who refers to a key, and who goes by it that nobody does: while the one is prepared the other is refused, whatever either writes (decision 231).

use bytes::Bytes;
use clock::Timestamp;
use protocol::door::{Request, VERSION_OF_REFERENCES};
use protocol::txn::{
    Batch, Cause, Command, Part, Range, RangeId, Read, Record, Refusal, Span, TxnId, Verdict, VersionStore, Write,
    encode_record,
};
use std::convert::Infallible;

/// Nothing has changed, and all is there.
struct Quiet;

impl VersionStore for Quiet {
    type Error = Infallible;
    fn changed_since(&self, _: &[u8], _: Timestamp) -> Result<Option<Timestamp>, Infallible> {
        Ok(None)
    }
    fn span_changed_since(&self, _: &Span, _: Timestamp) -> Result<Option<(Bytes, Timestamp)>, Infallible> {
        Ok(None)
    }
    fn is_present(&self, _: &[u8]) -> Result<bool, Infallible> {
        Ok(true)
    }
    fn write(&self, _: &[Write], _: Timestamp, _: Timestamp) -> Result<(), Infallible> {
        Ok(())
    }
}

fn at(us: u64) -> Timestamp {
    Timestamp::new(us, 0)
}

fn key(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

fn txn(serial: u64) -> TxnId {
    TxnId { serial, node: 1 }
}

fn batch(serial: u64, mut reads: Vec<Read>, many: bool) -> Batch {
    // So many that it is not indexed.
    let more = (0..if many { 2000 } else { 0 }).map(|n| Read::Key { key: key(&format!("x{n}")), since: at(5) });
    reads.extend(more);
    Batch { txn: txn(serial), reads, ..Batch::default() }
}

/// The commit of a batch, which comes in parts before it, or as it is.
fn commit(range: &mut Range, at_us: u64, batch: &Batch, in_parts: bool) -> Verdict {
    if !in_parts {
        return applied(range, at_us, &Command::Commit(batch.clone()));
    }
    let (whole, parts) = batch.to_parts(100);
    let count = parts.len() as u64;
    for (number, bytes) in (0..).zip(parts) {
        let part = Part { txn: batch.txn, until: at(1_000_000_000), whole: whole.clone(), number, bytes };
        let stage = Command::Stage { part, quota: 1 << 20 };
        assert_eq!(applied(range, at_us * 1000 + u64::from(number), &stage), Verdict::Staged);
    }
    let named = Batch { txn: batch.txn, staged: Some(whole), ..Batch::default() };
    applied(range, at_us * 1000 + count, &Command::Commit(named))
}

fn applied(range: &mut Range, at_us: u64, command: &Command) -> Verdict {
    let Ok(verdict) = range.apply(at(at_us), command, &Quiet);
    verdict
}

/// What refers to `p`, by itself or with others; and what does not.
fn references() -> [(Read, bool); 4] {
    let since = at(7);
    [
        (Read::Present { key: key("p"), since }, true),
        (Read::Referred { span: Span::new("n", "q"), since }, true),
        (Read::Present { key: key("q"), since }, false),
        (Read::Referred { span: Span::new("n", "p"), since }, false),
    ]
}

#[test]
fn while_one_is_prepared_the_other_is_refused() {
    for (refers, meets) in references() {
        let cases = [false, true].into_iter().flat_map(|a| [(a, false, false), (a, true, false), (a, true, true)]);
        for ((first_refers, many, other_many), in_parts) in cases.flat_map(|case| [(case, false), (case, true)]) {
            let looked = Read::Unreferred { key: key("p"), since: at(6) };
            let (first, second) = match first_refers {
                true => (refers.clone(), looked),
                false => (looked, refers.clone()),
            };
            let case = format!("{first:?}, then {second:?}; {many} {other_many} {in_parts}");
            let mut range = Range::new(RangeId(1), Span::ALL);
            let first = Command::Prepare { batch: batch(1, vec![first], many), participants: vec![RangeId(1)] };
            assert_eq!(applied(&mut range, 10, &first), Verdict::Prepared, "{case}");
            let refers_to_p = first_refers && meets;
            assert_eq!(range.is_referred_to(b"p"), refers_to_p, "{case}");
            let second = batch(2, vec![second], other_many);
            match commit(&mut range, 11, &second, in_parts) {
                Verdict::Refused(Refusal { cause: Cause::Undecided { txn: held }, .. }) if meets => {
                    assert_eq!(held, txn(1), "{case}");
                }
                verdict => assert!(!meets && verdict == Verdict::Committed, "{case}: {verdict:?}"),
            }
            let outcome = Command::Outcome { txn: txn(1), commit: None, until: None };
            assert_eq!(applied(&mut range, 500_000, &outcome), Verdict::Aborted, "{case}");
            assert_eq!(commit(&mut range, 600_000, &second, in_parts), Verdict::Committed, "{case}");
        }
    }
}

/// Of one transaction they do not meet; nor do two of a kind, nor versions and thresholds.
#[test]
fn nothing_else_is_asked_of_them() {
    let mut range = Range::new(RangeId(1), Span::ALL);
    applied(&mut range, 9, &Command::Collect { threshold: at(8), apart: Vec::new() });
    let both = || references().into_iter().map(|(read, _)| read).collect::<Vec<_>>();
    let mut own = both();
    own.push(Read::Unreferred { key: key("p"), since: at(6) });
    assert_eq!(applied(&mut range, 10, &Command::Commit(batch(1, own, false))), Verdict::Committed);
    let prepare =
        |serial, reads| Command::Prepare { batch: batch(serial, reads, false), participants: vec![RangeId(1)] };
    for serial in [2, 3] {
        assert_eq!(applied(&mut range, 10 + serial, &prepare(serial, both())), Verdict::Prepared);
    }
    let put = Write { key: key("p"), value: Some(key("new")), since: at(9) };
    let writes = Batch { writes: vec![put], ..batch(4, Vec::new(), false) };
    assert_eq!(applied(&mut range, 20, &Command::Commit(writes)), Verdict::Committed, "it is there still");
}

/// Who proposes it says that it is to be refused, and all replicas read that.
#[test]
fn the_log_says_that_somebody_has_come_to_refer() {
    for (since, refused) in [(at(6), false), (Timestamp::MIN, true)] {
        let mut range = Range::new(RangeId(1), Span::ALL);
        let put = Write { key: key("p"), value: Some(key("new")), since: at(6) };
        let reads = vec![Read::Unreferred { key: key("p"), since }];
        let command = Command::Commit(Batch { writes: vec![put], ..batch(1, reads, false) });
        let mut bytes = Vec::new();
        encode_record(RangeId(1), at(10), &command, &mut bytes);
        let read = Record::decode(&Bytes::from(bytes)).expect("its own form");
        assert_eq!(read.command, command);
        let expected = match refused {
            true => Verdict::Refused(Refusal { key: key("p"), cause: Cause::ReadChanged { at: Timestamp::MIN } }),
            false => Verdict::Committed,
        };
        assert_eq!(applied(&mut range, 10, &read.command), expected);
    }
}

/// Nobody is sent what his program may not be able to read.
#[test]
fn a_version_of_the_cluster_brings_it() {
    let asks = |reads| Request::Commit { batch: batch(1, reads, false), floor: at(1) }.needs_version();
    let [present, referred, ..] = references().map(|(read, _)| read);
    assert_eq!(asks(vec![present]), 1);
    assert_eq!(asks(vec![referred]), VERSION_OF_REFERENCES);
    assert_eq!(asks(vec![Read::Unreferred { key: key("p"), since: at(6) }]), VERSION_OF_REFERENCES);
}
