//! A leader whose clock is not believed any more hands over what it leads, while it still may serve it.
//!
//! # Problem
//! A node whose bound is lost, too wide, or proved wrong by its peers promises itself nothing more, or waits for its error with each commit. If it led on, its ranges would be slow, or have a leader
//! without a lease, until others had waited for all that was promised to it.
//!
//! # Idea
//! Its leases reach seconds further than that moment. So it uses them to go: each range passes to a replica whose node has a clock, by an ordinary handover, whose release lies above what was served and not
//! above the clock that is not believed (see `handover` of the log core).
//!
//! # Invariants
//! 1. Only a node that votes in the range, is heard, and claimed an interval lately that is narrow enough for others takes over. Where there is none the leader stays: no one would be better off.
//! 2. A clock that is lost for a moment ([`FENCED_TICKS`]) moves nothing.
//! 3. [`HANDOVERS_MAX`] begin in one tick.
//! 4. It goes with a lease or without: whoever is elected with a clock an hour behind has none for that hour, and while he leads nobody else has one.
//! 5. A range that came back soon stays twice as long as the time before: where several nodes are fenced it does not go to and fro between them, each time without a leader for a moment.
//!
//! # Caveats
//! A fenced node may be elected again, and hands over again. One without a trusted reading looks for no votes (`elections` of the log core).

use super::core::{Core, group_of};
use super::seam::NodeId;
use super::shard::Shard;
use clock::{Level, Reading};
use protocol::log::raft::{self, Input};
use protocol::txn::RangeId;
use store::Engine;

/// A clock is not believed for so many ticks before anything moves: half a second, of the three that leases last.
const FENCED_TICKS: u64 = 5;
/// Handovers that begin in one tick, at most.
const HANDOVERS_MAX: usize = 512;
/// A range that comes back stays for so many ticks, at least and at most; and none that was away for longer than [`AWAY_TICKS`].
const STAYS_TICKS: (u64, u64) = (10, 320);
const AWAY_TICKS: u64 = 600;
/// What a peer claimed so long ago says nothing of its clock now, nanoseconds.
const CLAIM_NS: u64 = 2_000_000_000;

impl<E: Engine> Core<E> {
    pub fn tick_fence(&mut self, now: &Reading) {
        let fenced = matches!(self.watch.settled(), Level::TooWide | Level::Untrusted);
        self.fenced_ticks = if fenced { self.fenced_ticks + 1 } else { 0 };
        if self.fenced_ticks < FENCED_TICKS || self.sabotage.keep_when_fenced() {
            return;
        }
        let able = self.nodes_with_clocks(now);
        if able.is_empty() {
            return;
        }
        let ticks = self.ticks;
        let goes = |range: RangeId, shard: &Shard| {
            let leads = shard.led.is_some() || self.leads(range);
            leads && ticks.saturating_sub(shard.went.0) >= shard.went.1
        };
        let led = self.shards.iter().filter(|(range, shard)| goes(**range, shard)).map(|(range, _)| *range);
        let going: Vec<(RangeId, NodeId)> =
            led.filter_map(|range| Some((range, self.successor(range, &able)?))).take(HANDOVERS_MAX).collect();
        for (range, to) in going {
            let group = group_of(range);
            let term = self.replicas.status(group).map_or(0, |status| status.term);
            self.moved = true;
            if let Some(shard) = self.shards.get_mut(&range) {
                let soon = ticks.saturating_sub(shard.went.0) < AWAY_TICKS;
                let stays = if soon { shard.went.1.saturating_mul(2) } else { 0 };
                shard.went = (ticks, stays.clamp(STAYS_TICKS.0, STAYS_TICKS.1));
            }
            if self.replicas.step(now, Input::Transfer { group, to: to.store() }).is_ok() {
                self.counters.fenced_handovers.one();
                self.out.handovers.push((range, term));
            }
        }
    }

    /// Invariant 1, but for the range.
    fn nodes_with_clocks(&self, now: &Reading) -> Vec<NodeId> {
        let limit_ns = self.options.node_options.ladder.hybrid_error_ns.saturating_mul(2);
        let claims = self.watch.peers().into_iter().filter(|peer| {
            let fresh = now.now_ns.saturating_sub(peer.heard_ns) <= CLAIM_NS;
            let narrow = |claim: clock::Interval| claim.latest_ns.saturating_sub(claim.earliest_ns) <= limit_ns;
            fresh && peer.word.claim.is_some_and(narrow)
        });
        claims.map(|peer| NodeId(peer.word.peer)).filter(|node| self.hears(*node)).collect()
    }

    /// Who may lead a range in place of this node: of those that can, who has the most of its log.
    fn successor(&self, range: RangeId, able: &[NodeId]) -> Option<NodeId> {
        let status = self.replicas.status(group_of(range))?;
        let matched = |seat: &raft::Member| status.matched.iter().find(|(replica, _)| *replica == seat.replica);
        let voters = status.members.voters.iter();
        let nodes = voters.filter_map(|seat| Some((matched(seat)?.1, NodeId::of_store(seat.store)?)));
        nodes.filter(|(_, node)| able.contains(node)).max().map(|(_, node)| node)
    }
}
