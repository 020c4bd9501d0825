//! Frames: what is written is read, what is not sound is refused, and the form of today stays readable.

use bytes::Bytes;
use clock::{Interval, Timestamp};
use proptest::prelude::*;
use protocol::door::{
    Answer, Body, Claim, CommitWait, Found, Frame, FrameError, Held, LockedKey, Look, Place, Request, Returned, Seen,
};
use protocol::txn::{Batch, Cause, LockMode, LockWait, Part, RangeId, Read, Refusal, Span, TxnId, Write};

fn at(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}
fn key(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// One of each kind.
fn bodies() -> Vec<Body> {
    let txn = TxnId { serial: 7 << 40 | 3, node: 2 };
    let look = Look { snapshot: at(5), limit: at(9), peek: true };
    let reads = vec![
        Read::Key { key: key("a"), since: at(3) },
        Read::Present { key: key("b"), since: at(4) },
        Read::Span { span: Span::new("c", ""), since: at(5) },
    ];
    let writes = vec![
        Write { key: key("d"), value: Some(key("1")), since: at(5) },
        Write { key: key("e"), value: None, since: at(2) },
    ];
    let batch = Batch { txn, until: Some(at(99)), staged: None, reads, writes };
    let participants = vec![RangeId(1), RangeId(2 << 40)];
    let requests = [
        Request::Get { key: key("a"), look },
        Request::Present { key: key("a") },
        Request::Scan { span: Span::new("a", "b"), look, reverse: true, rows: 7 },
        Request::Changed {
            seen: vec![
                Seen { start: key("a"), end: None, since: at(1) },
                Seen { start: key("b"), end: Some(key("")), since: at(2) },
            ],
            target: at(8),
        },
        Request::Lock {
            txn,
            key: key("a"),
            mode: LockMode::Share,
            wait: LockWait::NoWait,
            newer_than: Some(at(3)),
            returned: Returned { round: 4, kept: 2 },
        },
        Request::Commit { batch: batch.clone(), floor: at(6) },
        Request::Prepare { batch: batch.clone(), participants, floor: at(6) },
        Request::Fence { txn, until: None },
        Request::Outcome { txn, commit: Some(at(10)), until: Some(at(99)) },
        Request::Split { at: key("m") },
        Request::Forget { txns: vec![txn, txn] },
    ];
    let refusals = [
        Cause::WriteChanged { at: at(4) },
        Cause::ReadChanged { at: at(4) },
        Cause::Gone,
        Cause::Undecided { txn },
        Cause::TooOld { threshold: at(2) },
        Cause::Fenced,
        Cause::Late,
        Cause::Moved,
    ];
    let answers = [
        Answer::NotLeader { hint: Some(3) },
        Answer::NotLeader { hint: None },
        Answer::TryLater,
        Answer::Waiting,
        Answer::Value { version: Some((at(4), None)), newer: Some(at(6)) },
        Answer::Value { version: None, newer: None },
        Answer::Present(true),
        Answer::Rows { rows: vec![(key("a"), key("1"))], rest: Some(Span::new("b", "")), newer: None },
        Answer::Changed(Some((key("a"), at(4)))),
        Answer::Locked { waited: true, newer: None, held: 3 },
        Answer::Busy,
        Answer::Deadlock(vec![(txn, key("a"))]),
        Answer::Prepared(at(4)),
        Answer::Committed(at(5)),
        Answer::Forgotten,
        Answer::Done,
        Answer::Moved(vec![Place { range: RangeId(4), start: key("m"), nodes: vec![1, 2, 3] }]),
        Answer::Collected { oldest: at(3), key: Some(key("a")) },
    ];
    let refused = refusals.map(|cause| Answer::Refused(Refusal { key: key("k"), cause }));
    let requests = requests.into_iter().map(|request| Body::Request { id: 8, range: RangeId(9), request });
    let answers = answers.into_iter().chain(refused).map(|answer| Body::Answer { id: 8, answer });
    let others = [
        Body::Relay { id: 8, range: RangeId(9), request: Request::Fence { txn, until: Some(at(4)) } },
        Body::Locks { txns: vec![txn] },
        Body::Unlock { txn, returned: None },
        Body::Unlock { txn, returned: Some(Returned { round: 4, kept: 2 }) },
        Body::Oldest { snapshot: at(3) },
        Body::Probe { path: vec![(txn, key("a"))], about: txn },
        Body::Victim { txn, circle: vec![(txn, key("a"))] },
    ];
    let (staged, parts) = batch.to_parts(9);
    let part = Part { txn, until: at(98), whole: staged.clone(), number: 1, bytes: parts[1].clone() };
    let batch = Batch { reads: Vec::new(), writes: Vec::new(), staged: Some(staged), ..batch };
    let later = [
        Body::Request { id: 8, range: RangeId(9), request: Request::Stage(part) },
        Body::Request { id: 8, range: RangeId(9), request: Request::Commit { batch, floor: at(6) } },
        Body::Answer { id: 8, answer: Answer::Refused(Refusal { key: key("k"), cause: Cause::Unstaged }) },
        Body::Answer {
            id: 8,
            answer: Answer::Refused(Refusal { key: key(""), cause: Cause::Crowded { bytes: 5, staged: 6, quota: 7 } }),
        },
        Body::Request {
            id: 8,
            range: RangeId(9),
            request: Request::Hold { txn, key: key("a"), mode: LockMode::Share, wait: LockWait::Wait },
        },
        Body::Request {
            id: 8,
            range: RangeId(9),
            request: Request::Keep { held: vec![Held { txn, key: key("a"), mode: LockMode::Update }] },
        },
        Body::Answer { id: 8, answer: Answer::Kept { lost: vec![txn] } },
        Body::Forward { from: 1, to: 3, word: Box::new(Body::Locks { txns: vec![txn] }) },
        Body::Forward { from: 1, to: 3, word: Box::new(Body::Unlock { txn, returned: None }) },
        Body::Answer { id: 8, answer: Answer::CommittedLate(at(9), CommitWait { hidden_ns: 300, held_ns: 4 }) },
        Body::Request {
            id: 8,
            range: RangeId(9),
            request: Request::Settled { span: Span::new("a", ""), least: at(7) },
        },
        Body::Answer { id: 8, answer: Answer::Settled(at(9)) },
        Body::Near { id: 8, range: RangeId(9), request: Request::Present { key: key("a") } },
        Body::Request { id: 8, range: RangeId(9), request: Request::Time },
        Body::Answer { id: 8, answer: Answer::Time(Some(Interval { earliest_ns: 5, latest_ns: 6 })) },
        Body::Answer { id: 8, answer: Answer::Time(None) },
        Body::Request { id: 8, range: RangeId(9), request: Request::GetMany { keys: vec![key("a"), key("b")], look } },
        Body::Request {
            id: 8,
            range: RangeId(9),
            request: Request::LockMany {
                txn,
                keys: vec![key("a"), key("b")],
                mode: LockMode::NoKeyUpdate,
                newer_than: Some(at(3)),
                returned: Returned { round: 4, kept: 2 },
            },
        },
        Body::Answer {
            id: 8,
            answer: Answer::Values(vec![
                Found { version: Some((at(4), Some(key("1")))), newer: None },
                Found { version: None, newer: Some(at(6)) },
            ]),
        },
        Body::Answer {
            id: 8,
            answer: Answer::LockedMany {
                keys: vec![LockedKey { newer: Some(at(4)), present: true }, LockedKey { newer: None, present: false }],
                held: 3,
            },
        },
    ];
    requests.chain(answers).chain(others).chain(later).collect()
}

fn frame(body: Body) -> Frame {
    let interval = Some(Interval { earliest_ns: 5, latest_ns: 6 });
    Frame { cluster: 0xba11, from: 1, to: 2, claim: Claim { interval, accuses_ns: 7, reached: 0 }, body }
}

#[test]
fn what_is_written_is_read_and_nothing_less() {
    for body in bodies() {
        let frame = frame(body);
        let bytes = frame.encode();
        assert_eq!(Frame::decode(&Bytes::from(bytes.clone())), Ok(frame.clone()));
        for cut in 0..bytes.len() {
            let short = Frame::decode(&Bytes::copy_from_slice(&bytes[..cut]));
            assert!(matches!(short, Err(FrameError::Damaged(_))), "{frame:?} cut to {cut}");
        }
    }
}

/// From version 3 of the cluster on: how far the sender's log reaches.
#[test]
fn how_far_a_log_reaches_is_read_back() {
    let intervals = [None, Some(Interval { earliest_ns: 5, latest_ns: 6 })];
    for (interval, reached) in intervals.into_iter().flat_map(|interval| [0, 1, u64::MAX].map(|n| (interval, n))) {
        let claim = Claim { interval, accuses_ns: 7, reached };
        let frame = Frame { claim, ..frame(bodies().remove(0)) };
        let bytes = frame.encode();
        assert_eq!(Frame::decode(&Bytes::from(bytes.clone())), Ok(frame.clone()));
        for cut in 0..bytes.len() {
            let short = Frame::decode(&Bytes::copy_from_slice(&bytes[..cut]));
            assert!(matches!(short, Err(FrameError::Damaged(_))), "{frame:?} cut to {cut}");
        }
    }
}

/// Written by version 1: whoever changes the form raises the version.
#[test]
fn the_form_of_version_1_stays() {
    let mut text = String::new();
    for body in bodies() {
        for byte in frame(body).encode() {
            text.push_str(&format!("{byte:02x}"));
        }
        text.push('\n');
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/door_frames.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &text).expect("a file");
    }
    assert_eq!(text, std::fs::read_to_string(path).expect("the fixture"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_fall_over(n in 0usize..64, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8)) {
        let bodies = bodies();
        let mut bytes = frame(bodies[n % bodies.len()].clone()).encode();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(frame) = Frame::decode(&Bytes::from(bytes)) {
            prop_assert_eq!(Frame::decode(&Bytes::from(frame.encode())), Ok(frame));
        }
    }
}
