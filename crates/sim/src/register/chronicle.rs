//! What happened, written down for the judge.

use super::state::{Done, State};
use super::{Ask, Talk};
use crate::cluster::Place;
use checker::leases::Leases;
use checker::linear::{self, Linear};
use checker::replicas::Replicas;
use checker::storage::{Stored, settle};
use checker::{Action, Anomaly, History, Isolation, Op, Outcome, Promises, Recency, Txn, Value, Verdict, shown};
use clock::Timestamp;
use protocol::log::raft::{GroupId, StoreId};
use std::collections::BTreeMap;

/// The search for an order of one register's operations ends here.
const SEARCH_STEPS_MAX: u64 = 3_000_000;

/// What happened.
pub struct Chronicle {
    bounds_hold: bool,
    leases: Leases,
    replicas: Replicas,
    history: History,
    registers: BTreeMap<u64, Vec<linear::Op>>,
    /// The latest call of a write that was acknowledged, by group.
    served: BTreeMap<GroupId, u64>,
    /// What was found wrong meanwhile.
    pub verdict: Verdict,
}

/// What was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// What was found wrong.
    pub verdict: Verdict,
    /// Operations that were answered, and all.
    pub answered: usize,
    /// All that were asked for.
    pub asked: usize,
    /// Registers whose search for an order was given up.
    pub undecided: usize,
}

impl Chronicle {
    /// Nothing has happened.
    pub fn new(bounds_hold: bool) -> Self {
        let (leases, replicas, history, registers, served, verdict) = Default::default();
        Chronicle { bounds_hold, leases, replicas, history, registers, served, verdict }
    }

    /// A store applied a group's log up to somewhere.
    pub fn applied(
        &mut self,
        group: GroupId,
        store: StoreId,
        state: &State,
        done: Option<&Done>,
        place: &mut Place<'_, Talk>,
    ) {
        self.replicas.note(group.0, state.applied, store.0, state.checksum, &mut self.verdict);
        if done.is_some() {
            place.probes.hit("a command was applied");
        }
    }

    /// A store took over a snapshot.
    pub fn installed(&mut self, group: GroupId, store: StoreId, state: &State) {
        self.replicas.note(group.0, state.applied, store.0, state.checksum, &mut self.verdict);
    }

    /// A store has a lease, and reads or stamps at `used`.
    pub fn serves(
        &mut self,
        group: GroupId,
        term: u64,
        store: StoreId,
        (start, end): (Timestamp, Timestamp),
        used: Timestamp,
    ) {
        let lease = (start.as_u64(), end.as_u64());
        self.leases.note((group.0, term, store.0), lease, used.as_u64(), &mut self.verdict);
    }

    /// A leader hands over.
    pub fn released(&mut self, group: GroupId, term: u64) {
        self.leases.released(group.0, term);
    }

    /// A version was shown to a client.
    pub fn shown(&mut self, at: Timestamp, place: &Place<'_, Talk>) {
        if self.bounds_hold {
            shown::judge("a version", at.physical_us(), place.true_ns / 1000, &mut self.verdict);
        }
    }

    /// Whether a write to a group was acknowledged that was asked for since then.
    pub fn served_since(&self, group: GroupId, since_ns: u64) -> bool {
        self.served.get(&group).is_some_and(|called| *called >= since_ns)
    }

    /// A client has its answer.
    pub fn answered(
        &mut self,
        (session, id): (u32, u64),
        (group, ask): (GroupId, Ask),
        (called, returned): (u64, u64),
        at: Timestamp,
        found: &[(u64, Option<u64>)],
        act: Option<linear::Act>,
    ) {
        let read = |(key, found): &(u64, Option<u64>)| {
            let found = found.map(|id| Value { id, amount: 0 });
            Action::Read { key: *key, snapshot: Some(at.as_u64()), found }
        };
        let (mut actions, mut recency) = (found.iter().map(read).collect::<Vec<_>>(), Recency::Hybrid);
        match ask {
            Ask::Write { key, value } | Ask::Swap { key, to: value, .. } => {
                let wrote = !matches!(act, Some(linear::Act::Swap { done: Some(false), .. }));
                self.served.entry(group).and_modify(|last| *last = called.max(*last)).or_insert(called);
                if let (Ask::Swap { key, from, .. }, true) = (ask, wrote) {
                    let found = from.map(|id| Value { id, amount: 0 });
                    actions.push(Action::Read { key, snapshot: None, found });
                }
                // A swap that met another value wrote nothing.
                actions.extend(wrote.then_some(Action::Write { key, value: Value { id: value, amount: 0 } }));
            }
            Ask::Snapshot { .. } | Ask::Latest => recency = Recency::Strict,
            Ask::Past { .. } => recency = Recency::Any,
            Ask::Read { .. } => {}
        }
        if let Some(act) = act {
            let op = linear::Op { id, called, returned: Some(returned), act };
            self.registers.entry(ask.key()).or_default().push(op);
        }
        let ops = actions.into_iter().map(|action| Op { began: called, action }).collect();
        self.note((session, id), (called, returned), Outcome::Committed, recency, at.as_u64(), ops);
    }

    /// A client gave up.
    pub fn given_up(&mut self, who: (u32, u64), called: u64, ask: Ask) {
        let (key, value, act) = match ask {
            Ask::Write { key, value } => (key, value, linear::Act::Write(value)),
            Ask::Swap { key, from, to } => (key, to, linear::Act::Swap { from, to, done: None }),
            _ => return,
        };
        self.registers.entry(key).or_default().push(linear::Op { id: who.1, called, returned: None, act });
        let action = Action::Write { key, value: Value { id: value, amount: 0 } };
        let ops = vec![Op { began: called, action }];
        self.note(who, (called, u64::MAX), Outcome::Unknown, Recency::Any, 0, ops);
    }

    fn note(
        &mut self,
        (session, id): (u32, u64),
        (began, ended): (u64, u64),
        outcome: Outcome,
        recency: Recency,
        position: u64,
        ops: Vec<Op>,
    ) {
        let isolation = Isolation::Serializable;
        // Where bounds lie a leader may serve beyond its successor's start, and no token says what a client knows.
        let session = if self.bounds_hold { session } else { u32::try_from(id).unwrap_or(u32::MAX) };
        self.history.txns.push(Txn { id, session, isolation, recency, began, ended, outcome, position, ops });
    }

    /// Judges all of it, against the versions that are stored at the end, by register: registers forget nothing.
    pub fn judge(mut self, at_the_end: &BTreeMap<u64, Vec<(Timestamp, u64)>>) -> Judged {
        let mut stored = Stored::default();
        for (key, versions) in at_the_end {
            stored.versions.insert(*key, versions.iter().map(|(at, value)| (at.as_u64(), *value)).collect());
        }
        let asked = self.history.txns.len();
        let answered = self.history.txns.iter().filter(|txn| txn.outcome == Outcome::Committed).count();
        let mut verdict = std::mem::take(&mut self.verdict);
        settle(&mut self.history, &stored, &mut verdict);
        let promises = Promises { bounds_hold: self.bounds_hold, bank: None };
        verdict.found.extend(checker::judge(&self.history, &promises).found);
        let mut undecided = 0;
        if self.bounds_hold {
            for (key, ops) in &mut self.registers {
                // Of the writes without an answer only those that are stored have taken effect: any other that somebody saw is missing,
                // which the search finds, too. It would try them all at every place.
                let there = stored.versions.get(key).map_or(&[][..], Vec::as_slice);
                ops.retain(|op| op.returned.is_some() || there.iter().any(|(_, value)| op.wrote() == Some(*value)));
                match linear::judge(ops, SEARCH_STEPS_MAX) {
                    Linear::Yes => {}
                    Linear::No(what) => verdict.add(Anomaly::Unlinearizable, format!("register {key}: {what}")),
                    Linear::GaveUp => undecided += 1,
                }
            }
        }
        Judged { verdict, answered, asked, undecided }
    }
}
