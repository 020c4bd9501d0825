//! One replica of a range here: its state machine, and what its leader knows beside it.

use super::collect::Thresholds;
use super::flights::{Flights, Kind};
use super::seam::NodeId;
use clock::Timestamp;
use protocol::door::Request;
use protocol::txn::{Prepared, Range, TxnId};
use std::collections::BTreeMap;

/// Requests of one range that wait for others, at most: beyond it the asker tries again.
pub(crate) const PARKED_MAX: usize = 65_536;

/// Late commits of one range that are remembered, at most.
const LATE_MAX: usize = 1024;

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asker {
    /// A call of this node's own gateway.
    Own(u64),
    /// A peer, and its number for the request.
    Peer(NodeId, u64),
}

/// What a command does for its transaction: 0, its commit or prepare; n, its part n - 1.
pub(crate) type Slot = (TxnId, u32);

/// A command that was proposed here and is not applied yet.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub term: u64,
    pub at: Timestamp,
    pub slot: Option<Slot>,
    pub askers: Vec<Asker>,
    /// How far its timestamp lay ahead of what was certainly past, nanoseconds.
    pub ahead_ns: u64,
}

/// A request that waits for something in flight, or for a lock.
#[derive(Debug)]
pub(crate) struct Parked {
    pub request: Request,
    /// When it was last asked, in ticks: who does not ask again has gone.
    pub asked_tick: u64,
}

/// Late commits, by their timestamps. What is not remembered any more lies below `forgotten`.
#[derive(Debug, Default)]
pub(crate) struct Late {
    prepared: BTreeMap<Timestamp, Timestamp>,
    forgotten: Timestamp,
}

impl Late {
    /// A transaction that was prepared here at `prepared` is committed at `commit`.
    pub fn note(&mut self, commit: Timestamp, prepared: Timestamp) {
        if commit <= prepared {
            return;
        }
        let first = self.prepared.entry(commit).or_insert(prepared);
        *first = prepared.min(*first);
        if self.prepared.len() > LATE_MAX {
            // Outcomes come in the log's order, not in that of their commits.
            self.forgotten = self.prepared.pop_first().map_or(self.forgotten, |(commit, _)| commit.max(self.forgotten));
        }
    }

    /// The last commit above `seen` that may have been prepared at or below it; `MIN`: there is none.
    pub fn last_above(&self, seen: Timestamp) -> Timestamp {
        let above = self.prepared.iter().rev().take_while(|(commit, _)| **commit > seen);
        let last = above.filter(|(_, prepared)| **prepared <= seen).map(|(commit, _)| *commit).next();
        last.unwrap_or_default().max(self.forgotten)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shard {
    pub range: Range,
    /// The place in the log that is applied.
    pub applied: u64,
    /// What that was in the last frozen layer.
    pub frozen: Option<u64>,
    /// What that was in the last layer that the engine has.
    pub flushed: u64,
    /// It came of a split, and its group is still to be created here: on these nodes, above this timestamp.
    pub founding: Option<(Vec<u32>, Timestamp)>,
    /// What was referred to before this, whoever led then, is not known here.
    pub referred_from: Timestamp,
    /// The term in which it leads and may serve.
    pub led: Option<u64>,
    pub flights: Flights,
    /// Nothing is written at or below this any more: what was read here (design 4a.5).
    pub floor: Timestamp,
    pub proposals: BTreeMap<u64, Proposal>,
    /// A split was proposed here: its place and its timestamp, above which nothing is read until it is applied or lost (`split`).
    pub splitting: Option<(u64, Timestamp)>,
    pub by_slot: BTreeMap<Slot, u64>,
    pub parked: BTreeMap<Asker, Parked>,
    /// The tick at which it proposed something last.
    pub proposed_tick: u64,
    /// The tick at which it was handed over for its leader's clock (`fence`); and for how many ticks from then on it is not again.
    pub went: (u64, u64),
    /// No version lies above this. It may be too high.
    pub written: Timestamp,
    /// Transactions of several ranges whose commits came out above what they were prepared at here, and what that was: those of the last while.
    pub late: Late,
    /// What that was when a threshold of collection was logged last.
    pub collect_logged: Timestamp,
    /// The thresholds of collection in the state from which a replay would begin.
    pub collected: Thresholds,
}

impl Shard {
    pub fn new(range: Range, applied: u64) -> Self {
        Shard {
            written: range.applied(),
            referred_from: range.applied(),
            late: Late::default(),
            collect_logged: Timestamp::MIN,
            collected: Thresholds::of(&range),
            range,
            applied,
            frozen: None,
            flushed: 0,
            founding: None,
            led: None,
            flights: Flights::default(),
            floor: Timestamp::MIN,
            proposals: BTreeMap::new(),
            splitting: None,
            by_slot: BTreeMap::new(),
            parked: BTreeMap::new(),
            proposed_tick: 0,
            went: (0, 0),
        }
    }

    /// It leads from now on: what is prepared is in flight again, at its timestamps.
    pub fn begin_to_lead(&mut self, term: u64) {
        self.led = Some(term);
        self.flights.clear();
        // Of the terms before all is applied.
        self.splitting = None;
        for Prepared { at, batch, .. } in self.range.prepared().values() {
            self.flights.enter_whole(*at, Kind::Prepare, batch);
        }
    }

    /// Its state is another one: a snapshot was installed. It does not lead.
    pub fn restore(&mut self, range: Range, applied: u64) {
        self.written = range.applied();
        self.referred_from = range.applied();
        (self.range, self.applied, self.frozen, self.flushed, self.led) = (range, applied, None, 0, None);
        self.flights.clear();
    }

    /// Takes out a proposal.
    pub fn take_proposal(&mut self, index: u64) -> Option<Proposal> {
        let proposal = self.proposals.remove(&index)?;
        self.splitting = self.splitting.filter(|(place, _)| *place != index);
        if let Some(slot) = proposal.slot
            && self.by_slot.get(&slot) == Some(&index)
        {
            self.by_slot.remove(&slot);
        }
        Some(proposal)
    }
}

#[cfg(test)]
mod tests {
    use super::{LATE_MAX, Late};
    use clock::Timestamp;

    fn at(us: u64) -> Timestamp {
        Timestamp::new(us, 0)
    }

    #[test]
    fn late_commits_are_those_prepared_before_and_committed_after() {
        let mut late = Late::default();
        late.note(at(150), at(90));
        late.note(at(170), at(160));
        late.note(at(180), at(180));
        assert_eq!(late.last_above(at(80)), Timestamp::MIN, "all of it came after");
        assert_eq!(late.last_above(at(100)), at(150));
        assert_eq!(late.last_above(at(165)), at(170));
        assert_eq!(late.last_above(at(170)), Timestamp::MIN, "it is below already");
    }

    #[test]
    fn what_is_forgotten_counts_as_late() {
        let mut late = Late::default();
        for n in 0..=LATE_MAX as u64 {
            late.note(at(2 * n + 10), at(2 * n + 9));
        }
        assert_eq!(late.last_above(at(5)), at(10), "the first one may have been prepared before");
    }
}
