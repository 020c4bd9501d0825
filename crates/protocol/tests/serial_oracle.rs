//! Certification against a dumb oracle: whatever the machine commits must be what one after the other, in the order of commit
//! timestamps, would have given.

mod model;

use bytes::Bytes;
use clock::Timestamp;
use model::Model;
use proptest::prelude::*;
use protocol::txn::{Answer, Batch, Command, Coordinator, Range, RangeId, Read, Span, TxnId, Verdict, Write};
use std::collections::BTreeMap;

/// Keys `a` to `h`; range 1 holds those below `e`.
fn key(i: u8) -> Bytes {
    Bytes::from(vec![b'a' + i % 8])
}
fn range_of(key: &[u8]) -> RangeId {
    RangeId(if key < &b"e"[..] { 1 } else { 2 })
}

/// A transaction as it is drawn: how long ago its snapshot lies, what it reads and writes, how slowly it prepares and decides.
#[derive(Clone, Debug)]
struct Drawn {
    age: u8,
    reads: Vec<u8>,
    /// Keys that must have a value.
    present: Vec<u8>,
    /// Whether it deletes what it writes.
    deletes: bool,
    span: Option<(u8, u8)>,
    writes: Vec<u8>,
    delays: [u8; 3],
    fence: bool,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let keys = || prop::collection::vec(0..8u8, 0..3);
    (
        0..12u8,
        (keys(), prop::collection::vec(0..8u8, 0..2), prop::bool::weighted(0.3)),
        prop::option::of((0..8u8, 0..8u8)),
        prop::collection::vec(0..8u8, 1..3),
        any::<[u8; 3]>(),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(age, (reads, present, deletes), span, writes, delays, fence)| Drawn {
            age,
            reads,
            present,
            deletes,
            span,
            writes,
            delays,
            fence,
        })
}

/// What the oracle needs of a transaction: everything read, with the values that it saw.
struct Done {
    commit: Timestamp,
    saw: Vec<(Bytes, Option<Bytes>)>,
    /// What it relied on being there.
    present: Vec<Bytes>,
    writes: Vec<Bytes>,
    /// `None`: they are deleted.
    value: Option<Bytes>,
}

struct World {
    versions: Model,
    ranges: BTreeMap<RangeId, Range>,
    now: u64,
    /// Records to come: due time, range, command.
    due: Vec<(u64, RangeId, Command)>,
    open: BTreeMap<TxnId, (Coordinator, Done)>,
    done: Vec<Done>,
}

impl World {
    fn new() -> Self {
        let range =
            |id, start: &'static str, end: &'static str| (RangeId(id), Range::new(RangeId(id), Span::new(start, end)));
        World {
            versions: Model::default(),
            ranges: BTreeMap::from([range(1, "", "e"), range(2, "e", "")]),
            now: 100,
            due: Vec::new(),
            open: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    /// A read waits where a prepare at or below the snapshot is undecided: such a transaction is not begun.
    fn blocked(&self, key: &[u8], at: Timestamp) -> bool {
        let range = &self.ranges[&range_of(key)];
        range.prepared().values().any(|p| p.at <= at && p.batch.write_of(key).is_some())
    }

    fn begin(&mut self, serial: u64, drawn: &Drawn) {
        self.now += 1;
        let since = Timestamp::from_u64(self.now - u64::from(drawn.age));
        let id = TxnId { serial, node: 0 };
        let span = drawn.span.map(|(a, b)| (a.min(b), a.max(b)));
        let spanned = span.map_or(0..0, |(a, b)| a..b).map(key);
        let read: Vec<Bytes> = drawn.reads.iter().map(|i| key(*i)).chain(spanned).collect();
        if read.iter().any(|k| self.blocked(k, since)) {
            return;
        }
        let saw = read.iter().map(|k| (k.clone(), self.versions.get(k, since).and_then(|(_, v)| v))).collect();
        let value = (!drawn.deletes).then(|| Bytes::from(format!("t{serial}")));
        let mut parts: BTreeMap<RangeId, Batch> = BTreeMap::new();
        let mut writes: Vec<Bytes> = drawn.writes.iter().map(|i| key(*i)).collect();
        writes.sort();
        writes.dedup();
        for k in &writes {
            let write = Write { key: k.clone(), value: value.clone(), since };
            parts.entry(range_of(k)).or_insert_with(|| Batch { txn: id, ..Batch::default() }).writes.push(write);
        }
        for i in &drawn.reads {
            let read = Read::Key { key: key(*i), since };
            parts.entry(range_of(&key(*i))).or_insert_with(|| Batch { txn: id, ..Batch::default() }).reads.push(read);
        }
        let present: Vec<Bytes> = drawn.present.iter().map(|i| key(*i)).collect();
        for k in &present {
            let read = Read::Present { key: k.clone(), since };
            parts.entry(range_of(k)).or_insert_with(|| Batch { txn: id, ..Batch::default() }).reads.push(read);
        }
        if let Some((a, b)) = span.filter(|(a, b)| a < b) {
            let whole = Span::new(key(a), key(b));
            for range in self.ranges.values().filter(|r| r.span().overlaps(&whole)) {
                let read = Read::Span { span: range.span().intersection(&whole), since };
                parts.entry(range.id()).or_insert_with(|| Batch { txn: id, ..Batch::default() }).reads.push(read);
            }
        }
        let done = Done { commit: Timestamp::MIN, saw, present, writes, value };
        self.send(id, parts, done, drawn);
    }

    fn send(&mut self, id: TxnId, parts: BTreeMap<RangeId, Batch>, done: Done, drawn: &Drawn) {
        let participants: Vec<RangeId> = parts.keys().copied().collect();
        let mut coordinator = Coordinator::new(id, &participants);
        if participants.len() == 1 {
            coordinator = Coordinator::new(id, &[]);
        }
        self.open.insert(id, (coordinator, done));
        for (at, (range, batch)) in parts.into_iter().enumerate() {
            let due = self.now + u64::from(drawn.delays[at] % 10);
            let command = match participants.len() {
                1 => Command::Commit(batch),
                _ => Command::Prepare { batch, participants: participants.clone() },
            };
            self.due.push((due, range, command));
        }
        if drawn.fence && participants.len() > 1 {
            let due = self.now + u64::from(drawn.delays[2] % 10);
            self.due.push((due, participants[1], Command::Fence { txn: id, until: None }));
        }
    }

    /// Applies what is due, in order.
    fn advance(&mut self, all: bool) {
        loop {
            let next = (0..self.due.len()).min_by_key(|i| self.due[*i].0).filter(|i| all || self.due[*i].0 <= self.now);
            let Some(next) = next else { return };
            let (_, range, command) = self.due.remove(next);
            self.now += 1;
            let at = Timestamp::from_u64(self.now);
            let machine = self.ranges.get_mut(&range).expect("a range");
            let verdict = machine.apply(at, &command, &self.versions).unwrap_or_else(|never| match never {});
            match (command, verdict) {
                (Command::Commit(batch), Verdict::Committed) => self.commit(batch.txn, at),
                (Command::Prepare { batch, .. }, Verdict::Prepared) => {
                    self.answer(batch.txn, range, Answer::Prepared(at))
                }
                (Command::Prepare { batch, .. }, _) => self.answer(batch.txn, range, Answer::Refused),
                (Command::Fence { txn, .. }, Verdict::Aborted) => self.answer(txn, range, Answer::Refused),
                _ => {}
            }
        }
    }

    fn answer(&mut self, id: TxnId, range: RangeId, answer: Answer) {
        let Some((coordinator, _)) = self.open.get_mut(&id) else { return };
        let Some(decision) = coordinator.answer(range, answer) else { return };
        let participants: Vec<RangeId> = coordinator.participants().collect();
        for (at, range) in participants.into_iter().enumerate() {
            self.due.push((
                self.now + 3 * at as u64,
                range,
                Command::Outcome { txn: id, commit: decision, until: None },
            ));
        }
        if let Some(commit) = decision {
            self.commit(id, commit);
        }
    }

    fn commit(&mut self, id: TxnId, commit: Timestamp) {
        if let Some((_, done)) = self.open.remove(&id) {
            self.done.push(Done { commit, ..done });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_commits_has_the_serial_order_of_its_timestamps(history in prop::collection::vec(drawn(), 1..60)) {
        let mut world = World::new();
        for (serial, drawn) in history.iter().enumerate() {
            world.begin(serial as u64, drawn);
            world.advance(false);
        }
        world.advance(true);
        prop_assert!(world.ranges.values().all(|r| r.prepared().is_empty()), "every prepare was decided");
        world.done.sort_by_key(|done| done.commit);
        let mut state: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        for done in &world.done {
            for (key, value) in &done.saw {
                prop_assert_eq!(state.get(key), value.as_ref(), "{:?} read {:?}", done.value, key);
            }
            for key in &done.present {
                prop_assert!(state.contains_key(key), "{:?} relied on {:?}", done.value, key);
            }
            for key in &done.writes {
                match &done.value {
                    Some(value) => drop(state.insert(key.clone(), value.clone())),
                    None => drop(state.remove(key)),
                }
            }
        }
        for key in (0..8).map(key) {
            prop_assert_eq!(world.versions.get(&key, Timestamp::MAX).and_then(|(_, v)| v), state.get(&key).cloned());
        }
    }
}
