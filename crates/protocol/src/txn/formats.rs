//! Bytes that were written once are read for ever: one of each kind, kept as it was.

use super::*;
use bytes::Bytes;
use clock::Timestamp;

fn at(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}

fn key(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares with the fixture: lines for kinds that are new are added there, those that were there stay.
fn kept(fixture: &str, all: &[Vec<u8>]) {
    let text: String = all.iter().map(|bytes| hex(bytes) + "\n").collect();
    assert_eq!(text, fixture);
}

fn batch(until: Option<Timestamp>) -> Batch {
    let reads = vec![Read::Key { key: key("a"), since: at(3) }, Read::Span { span: Span::new("c", ""), since: at(5) }];
    let writes = vec![
        Write { key: key("d"), value: Some(key("1")), since: at(5) },
        Write { key: key("e"), value: None, since: at(2) },
    ];
    Batch { txn: TxnId { serial: 7 << 40 | 3, node: 2 }, until, staged: None, reads, writes }
}

fn commands() -> Vec<Command> {
    let txn = TxnId { serial: 9, node: 3 };
    let participants = vec![RangeId(1), RangeId(2 << 40)];
    let until = Some(at(99));
    let mut present = batch(until);
    present.reads.push(Read::Present { key: key("b"), since: at(4) });
    let mut references = present.clone();
    references.reads.push(Read::Unreferred { key: key("b"), since: at(4) });
    references.reads.push(Read::Referred { span: Span::new("c", "d"), since: at(1) });
    let (whole, parts) = batch(until).to_parts(9);
    let part = Part { txn, until: at(98), whole: whole.clone(), number: 1, bytes: parts[1].clone() };
    let staged = Batch { txn, until, staged: Some(whole), ..Batch::default() };
    let apart = vec![Apart { index: *b"abcd", class: 3, threshold: at(8) }];
    vec![
        Command::Commit(batch(None)),
        Command::Commit(batch(until)),
        Command::Commit(present),
        Command::Commit(staged.clone()),
        Command::Prepare { batch: batch(None), participants: participants.clone() },
        Command::Prepare { batch: batch(until), participants: participants.clone() },
        Command::Prepare { batch: staged, participants },
        Command::Stage { part, quota: 1 << 30 },
        Command::Fence { txn, until: None },
        Command::Fence { txn, until },
        Command::Outcome { txn, commit: Some(at(9)), until: None },
        Command::Outcome { txn, commit: None, until },
        Command::Forget { txns: vec![txn, txn] },
        Command::Split { at: key("m"), right: RangeId(7), nodes: Vec::new() },
        Command::Split { at: key("m"), right: RangeId(7), nodes: vec![1, 2, 3] },
        Command::Collect { threshold: at(7), apart: Vec::new() },
        Command::Collect { threshold: at(7), apart },
        Command::Lease { end: at(6) },
        Command::Release,
        Command::Raise { version: 2 },
        Command::Commit(references),
    ]
}

#[test]
fn records_stay_what_they_are() {
    let mut all = Vec::new();
    for command in commands() {
        let mut bytes = Vec::new();
        encode_record(RangeId(5), at(77), &command, &mut bytes);
        let read = Record::decode(&Bytes::from(bytes.clone())).expect("its own form");
        assert_eq!((read.range, read.at, &read.command), (RangeId(5), at(77), &command));
        all.push(bytes);
    }
    kept(include_str!("../../tests/txn_records.txt"), &all);
}

struct Nowhere;

impl VersionStore for Nowhere {
    type Error = std::convert::Infallible;
    fn changed_since(&self, _: &[u8], _: Timestamp) -> Result<Option<Timestamp>, Self::Error> {
        Ok(None)
    }
    fn span_changed_since(&self, _: &Span, _: Timestamp) -> Result<Option<(Bytes, Timestamp)>, Self::Error> {
        Ok(None)
    }
    fn is_present(&self, _: &[u8]) -> Result<bool, Self::Error> {
        Ok(true)
    }
    fn write(&self, _: &[Write], _: Timestamp, _: Timestamp) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// One that has something of everything; and the same of the next version of the cluster.
#[test]
fn states_stay_what_they_are() {
    let mut range = Range::new(RangeId(5), Span::new("a", ""));
    let txn = |serial| TxnId { serial, node: 3 };
    let until = Some(at(99));
    let of = |serial, until| Batch { txn: txn(serial), ..batch(until) };
    let participants = vec![RangeId(5), RangeId(6)];
    let (whole, parts) = batch(until).to_parts(9);
    let part = Part { txn: txn(4), until: at(98), whole, number: 0, bytes: parts[0].clone() };
    let commands = [
        Command::Collect { threshold: at(1), apart: vec![Apart { index: *b"abcd", class: 3, threshold: at(2) }] },
        Command::Lease { end: at(60) },
        Command::Split { at: key("x"), right: RangeId(7), nodes: vec![1, 2, 3] },
        Command::Prepare { batch: of(2, until), participants: participants.clone() },
        Command::Outcome { txn: txn(2), commit: Some(at(14)), until },
        Command::Prepare { batch: of(1, until), participants },
        Command::Fence { txn: txn(3), until },
        Command::Stage { part, quota: 1 << 30 },
    ];
    for (n, command) in (10..).zip(&commands) {
        let Ok(_) = range.apply(at(n), command, &Nowhere);
    }
    let unraised = range.encode();
    let Ok(_) = range.apply(at(20), &Command::Raise { version: 2 }, &Nowhere);
    let all = vec![unraised, range.encode()];
    assert_eq!(Range::decode(&Bytes::from(all[1].clone())), Ok(range));
    for bytes in &all {
        assert_eq!(Range::decode(&Bytes::from(bytes.clone())).expect("its own form").encode(), *bytes);
    }
    kept(include_str!("../../tests/txn_states.txt"), &all);
}
