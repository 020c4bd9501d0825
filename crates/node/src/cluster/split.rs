//! A range is split by hand: everything from a key on becomes a range of its own, on the same nodes, with a group of its own.
//!
//! The split is a command of the range's log, and names the new range and its replicas: so all replicas do the same at the same place. Each makes its
//! replica of the new group, whose timestamps begin above the split's, and gives it the part of the state. Who led the old group asks for the votes of the new
//! one at once: it need not wait until somebody's patience ends.
//!
//! Invariants:
//! 1. A range with an undecided transaction does not split: the asker tries again. So no prepare has heirs; outcomes are inherited (design 4a.2).
//! 2. What was read of the new range's keys before lies at or below the split's timestamp: from the proposal on until it is applied, or lost,
//!    nothing is read above that.
//! 3. A replica of the new group begins when the split, and the new range's state, are durable here: so a restart that finds the replica finds its state.
//! 4. A snapshot of the new range is not installed where the old one has not come to the split yet: its keys would have two pasts.
//! 5. A range knows its right neighbour if that came of a split: so whoever has the range, by its log or by a snapshot, can say where the keys are
//!    that it had.
//! 6. A split that stands in a replica's log is applied there, and not jumped over by a snapshot of what came after it: of the majority that has it in its logs each
//!    makes its replica of the new range, or dies. A snapshot names the splits behind it (`Range::heirs`), and a new range's number is given once: so the entry
//!    here that names the same one is the one that was committed, and all before it were. And nobody is removed while the new range is not on a majority.
//! 7. A part of a transaction that was divided by old bounds is refused as a whole. Divided anew it has a new number.

use super::core::{Core, group_of};
use super::member::Member;
use super::seam::NodeId;
use super::shard::Shard;
use crate::node::Ticket;
use crate::reply::{CommitError, Reply};
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::door::{Answer, Place, Request};
use protocol::log::raft::{self, Member as Seat, ReplicaId};
use protocol::txn::{Command, Range, RangeId, Record, Span};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Waker;
use store::{Engine, StoreError};

/// For so many ticks who led a range asks for votes in what was split off of it.
const HEIR_TICKS: u32 = 20;
/// The place before the first entry of a new group's log.
pub(crate) const FOUNDED: u64 = 1;
/// Bits of a range's number that count within one life of a node; above them the life's number, and the node's.
const COUNT_BITS: u32 = 20;
const LIFE_BITS: u32 = 20;

impl<E: Engine> Core<E> {
    /// A number that no range has or had: of this node and this life of it (design 4a.10).
    fn next_range(&mut self) -> Option<RangeId> {
        self.ranges_named += 1;
        let fits = self.ranges_named >> COUNT_BITS == 0 && self.incarnation >> LIFE_BITS == 0;
        let node = u64::from(self.me().0) << (COUNT_BITS + LIFE_BITS);
        // The log core's numbers end at 2^62: nodes with numbers beyond 2^22 do not split.
        let fits = fits && node >> 62 == 0;
        fits.then_some(RangeId(node | self.incarnation << COUNT_BITS | self.ranges_named))
    }

    /// The command for a split; or the answer, where none is needed or possible.
    pub fn plan_split(&mut self, range: RangeId, at: Bytes) -> Result<Result<Command, Answer>, StoreError> {
        let shard = self.shard(range)?;
        if shard.range.span().start == at {
            return Ok(Err(Answer::Done));
        }
        if !shard.range.span().contains(&at) {
            return Ok(Err(self.moved(&at)));
        }
        let Some(members) = self.replicas.status(group_of(range)).map(|status| status.members) else {
            return Ok(Err(Answer::TryLater));
        };
        let nodes: Vec<u32> =
            members.voters.iter().filter_map(|seat| NodeId::of_store(seat.store)).map(|n| n.0).collect();
        if shard.splitting.is_some() || !members.outgoing.is_empty() || nodes.is_empty() {
            return Ok(Err(Answer::TryLater));
        }
        let Some(right) = self.next_range() else { return Ok(Err(Answer::TryLater)) };
        Ok(Ok(Command::Split { at, right, nodes }))
    }

    /// A split was applied: the new range begins here, too, if this node is to replicate it.
    pub fn split_applied(&mut self, left: RangeId, at: Timestamp, right: Range, nodes: &[u32]) {
        let (id, start) = (right.id(), right.span().start.clone());
        let replicas: Vec<NodeId> = nodes.iter().map(|node| NodeId(*node)).collect();
        let here = replicas.contains(&self.me());
        self.routes.learn_origin(id, &start, replicas);
        self.counters.splits.one();
        if !here || self.shards.contains_key(&id) {
            return;
        }
        let mut shard = Shard::new(right, FOUNDED);
        shard.founding = Some((nodes.to_vec(), at));
        shard.referred_from = self.shards.get(&left).map_or(at, |left| left.referred_from);
        if self.shards.get(&left).is_some_and(|left| left.led.is_some()) {
            self.heirs.insert(id, HEIR_TICKS);
        }
        self.shards.insert(id, Box::new(shard));
        self.create_when_durable(id);
    }

    /// The group of a range that came of a split. Where the others are ahead it exists already, and gets a snapshot.
    pub fn create_group(&mut self, now: &Reading, range: RangeId) {
        let Some((nodes, floor)) = self.shards.get_mut(&range).and_then(|shard| shard.founding.take()) else { return };
        let seats = (1..).zip(&nodes).map(|(n, node)| Seat { replica: ReplicaId(n), store: NodeId(*node).store() });
        self.log(now, raft::Input::Create { group: group_of(range), voters: seats.collect(), floor });
        if self.heirs.contains_key(&range) {
            self.log(now, raft::Input::Campaign { group: group_of(range) });
        }
        // Where a leader's message made the replica before, it is known.
        self.leader_known(range, self.has_leader(range));
        self.look_at_lead(range);
    }

    /// Invariant 6: the place of the last split in the log here that is behind this state, and not applied here.
    pub fn split_in_log(&self, state: &Range) -> Option<u64> {
        if self.sabotage.jump_splits() {
            return None;
        }
        let heirs: BTreeSet<RangeId> = state.heirs().collect();
        let behind = |payload: &Bytes| match Record::decode(payload).map(|record| record.command) {
            Ok(Command::Split { right, .. }) => heirs.contains(&right),
            _ => false,
        };
        let unapplied = self.replicas.unapplied(group_of(state.id()));
        unapplied.filter(|(_, payload)| !heirs.is_empty() && behind(payload)).map(|(index, _)| index).last()
    }

    /// Invariant 6: something was split off of a range, and is not on a majority of its nodes yet, as far as its replica here knows. (Its log has an entry behind
    /// its founding once it is: who has nothing takes none.)
    pub fn is_founding(&self, range: RangeId) -> bool {
        let Some(shard) = self.shards.get(&range) else { return false };
        let young = |heir: RangeId| {
            let group = self.replicas.status(group_of(heir));
            let pending = || self.shards.get(&heir).is_some_and(|shard| shard.founding.is_some());
            group.map_or_else(pending, |status| status.committed <= FOUNDED)
        };
        shard.range.heirs().any(young)
    }

    /// Who led a range leads what is split off of it, if the others like. The first question may be lost.
    pub fn tick_heirs(&mut self, now: &Reading) {
        let mut heirs = std::mem::take(&mut self.heirs);
        heirs.retain(|range, ticks| {
            *ticks -= 1;
            let group = group_of(*range);
            let status = self.replicas.status(group);
            let orphan = status.as_ref().is_some_and(|status| status.leader.is_none());
            if orphan {
                self.log(now, raft::Input::Campaign { group });
            }
            // Its group is made when the split is durable here.
            *ticks > 0 && (orphan || status.is_none())
        });
        self.heirs.append(&mut heirs);
    }

    /// Invariant 2.
    pub fn is_splitting(&self, range: RangeId, at: Timestamp) -> bool {
        let splitting = self.shards.get(&range).and_then(|shard| shard.splitting);
        splitting.is_some_and(|(_, split)| at > split) && !self.sabotage.read_while_splitting()
    }

    /// Invariant 4: another range here still holds keys of this span.
    pub fn overlaps_another(&self, range: RangeId, span: &Span) -> bool {
        self.overlapping(range, span).next().is_some()
    }

    fn overlapping(&self, range: RangeId, span: &Span) -> impl Iterator<Item = RangeId> {
        let others = self.shards.iter().filter(move |(id, _)| **id != range);
        others.filter(|(_, shard)| shard.range.span().overlaps(span)).map(|(id, _)| *id)
    }

    /// Those ranges here are behind, or have moved away: a replica that sleeps may have been removed meanwhile, and nobody tells it twice.
    pub fn wake_overlapping(&mut self, now: &Reading, range: RangeId, span: &Span) {
        for other in self.overlapping(range, span).collect::<Vec<_>>() {
            self.log(now, raft::Input::Wake { group: group_of(other) });
        }
    }

    pub fn moved(&self, key: &Bytes) -> Answer {
        self.moved_span(&Span { start: key.clone(), end: crate::transaction::after(key) })
    }

    /// Where keys lie that are not in the range that was asked.
    pub fn moved_span(&self, span: &Span) -> Answer {
        let place = |range: RangeId| {
            let route = self.routes.get(range)?;
            let nodes = route.replicas.iter().map(|node| node.0).collect();
            Some(Place { range, start: self.routes.span(range)?.start, nodes })
        };
        Answer::Moved(self.routes.over(span).into_iter().filter_map(place).collect())
    }
}

impl<E: Engine> Member<E> {
    /// Asks for a split of the range that holds `key`, at it, wherever that is led. Take the outputs, then poll the ticket.
    /// [`CommitError::Refused`]: a transaction was undecided there, try again.
    pub fn split(&self, now: &Reading, key: Bytes, waker: &Waker) -> Ticket {
        let reply = Arc::new(Reply::new(waker));
        let mut core = self.lock();
        let range = core.routes.of_key(&key);
        core.call_for_reply(range, Request::Split { at: key }, &reply);
        if core.run(now).is_err() {
            reply.give(Err(CommitError::Unknown), &mut Vec::new());
        }
        Ticket::new(reply)
    }
}
