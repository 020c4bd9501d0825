//! Reads of the past by the replica that is here, whoever leads (design 4a.7).
//!
//! A leader closes what lies a few seconds behind: it stamps nothing there any more, and says so with what it sends; of groups that sleep its store says
//! it for all. A replica that has applied the log up to the place that goes with it has every entry at or below. But a transaction that is
//! prepared below may be committed below, too. So what is *resolved* is what is closed, and lies below everything that is prepared and undecided.
//!
//! Invariants:
//! 1. A snapshot at or below what is resolved here is read as the leader would read it: nothing at or below it is to come.
//! 2. Rule 1 holds here as well: the snapshot must be certainly past by this node's clock. Where that is in doubt (`lent`) it is so by the clock of who closed what lies there:
//!    a leader closes nothing that is not past by seconds.
//! 3. What cannot be answered here is asked of the leader: nothing is left out, and nobody waits.
//! 4. `LAGS_US` is longer than what is closed lies behind and `hears` believes in a peer that is gone, together: a range that loses its majority counts before it lags.
//!
//! Who wants the freshest snapshot that costs no round trip ([`Member::freshest`]: bounded staleness) gets the oldest that a replica here has resolved. Ranges
//! whose replicas here lag behind what he accepts do not count, and those that are led here do not either: their leaders answer
//! for whatever snapshot comes of it. So one range that lags costs round trips to that range, and staleness of no other.
//!
//! A replica that was started again has resolved what its log closes, until it hears more: with a majority lost, that is what `stale` has.
//!
//! Where some range has no replica here, what lies `ELSEWHERE_US` back counts as well: the nearest replica has that (`near`).
//!
//! Who sets no bound wants to be served whoever is there ([`Member::freshest_alone`]): every range counts for him by what its replica here has resolved, also what is led
//! here, because what was shown once at a leader's word nobody can show when its lease is over and no other leader comes. A range counts however far it lags, unless a majority of it is heard: it is then
//! being caught up, and its leader answers for it. As peers are heard each half second, and lag some three seconds, no range falls between the two (invariant 4).

use super::core::{Core, group_of};
use super::member::Member;
use clock::{Reading, Timestamp};
use protocol::door::{Answer, Request};
use protocol::log::raft;
use protocol::txn::RangeId;
use store::{Engine, StoreError};

/// A replica that has not resolved what is so old lags, microseconds: 10 s.
const LAGS_US: u64 = 10_000_000;
/// So old is what a replica elsewhere has resolved for certain that does not lag, microseconds: what leaders close, and time for word of it.
const ELSEWHERE_US: u64 = 4_200_000;
/// Whoever does not doubt his clock looks each so many ticks whether what is resolved here rises, or more seldom where there are many ranges. (What he has seen
/// rise is as old as the closing, however long he did not look.)
const LOOK_TICKS: u64 = 10;

/// What the replicas here had resolved when that was last asked.
#[derive(Debug, Default)]
pub(crate) struct ResolvedHere {
    tick: Option<u64>,
    /// Of ranges that are led elsewhere, in order.
    followed: Vec<Timestamp>,
    /// Of ranges that others hold, too, but for those that lag while they are heard; in order.
    alone: Vec<Timestamp>,
}

/// The newest that replicas here of ranges led elsewhere have resolved.
#[derive(Debug)]
pub(crate) struct Newest {
    at: Timestamp,
    /// When it was seen to rise last, by the time that passes here, nanoseconds; `None`: not yet in this life.
    rose_ns: Option<u64>,
    /// Somebody said so in this life; else the log did, as it was found.
    heard: bool,
}

impl Newest {
    fn raised(was: Option<Self>, at: Timestamp, now: &Reading) -> Self {
        match was {
            None => Newest { at, rose_ns: None, heard: true },
            // How old the first word is that comes nobody can say.
            Some(was) if at > was.at => Newest { at, rose_ns: was.heard.then_some(now.now_ns), heard: true },
            Some(was) => was,
        }
    }
}

impl<E: Engine> Core<E> {
    /// What is resolved here, looked at once in a tick.
    fn resolved_here(&mut self, now: &Reading) -> &ResolvedHere {
        if self.resolved_here.tick != Some(self.ticks) {
            // A clock that is in doubt does not say who lags, nor what others have.
            let doubts = self.in_doubt(now);
            let earliest = if doubts { Timestamp::MIN } else { now.interval.earliest() };
            let lags_below = Timestamp::new(earliest.physical_us().saturating_sub(LAGS_US), 0);
            let mut here = ResolvedHere { tick: Some(self.ticks), ..ResolvedHere::default() };
            for (range, shard) in &self.shards {
                let Some(resolved) = self.resolved(*range) else { continue };
                if shard.led.is_none() {
                    here.followed.push(resolved);
                }
                if self.others_hold(*range) && (resolved >= lags_below || !self.hears_majority(*range)) {
                    here.alone.push(resolved);
                }
            }
            if let Some(newest) = here.followed.iter().max() {
                self.newest_here = Some(Newest::raised(self.newest_here.take(), *newest, now));
            }
            if !doubts && self.routes.ranges().any(|range| !self.shards.contains_key(&range)) {
                let at = Timestamp::new(earliest.physical_us().saturating_sub(ELSEWHERE_US), 0);
                here.followed.push(at);
                here.alone.push(at);
            }
            here.followed.sort_unstable();
            here.alone.sort_unstable();
            self.resolved_here = here;
        }
        &self.resolved_here
    }

    /// What the log closes, as it was found when this life began, is no news.
    pub fn recall_resolved(&mut self) {
        let found = self.shards.keys().filter_map(|range| self.resolved(*range)).max();
        self.newest_here = found.map(|at| Newest { at, rose_ns: None, heard: false });
    }

    /// Looks when the newest rises, while its age says what time it is.
    pub fn tick_resolved(&mut self, now: &Reading) {
        if self.in_doubt(now) || self.ticks.is_multiple_of(self.look_ticks(LOOK_TICKS)) {
            self.resolved_here(now);
        }
    }

    /// The present as others' closing has it, microseconds: what was closed last, and what has passed since, whoever has been heard of meanwhile. `None`: nothing was closed in this life.
    pub fn present_by_closed_us(&mut self, now: &Reading) -> Option<u64> {
        self.resolved_here(now);
        let newest = self.newest_here.as_ref()?;
        let since_us = now.now_ns.saturating_sub(newest.rose_ns?) / 1_000;
        Some(newest.at.physical_us().saturating_add(raft::CLOSE_AFTER_US).saturating_add(since_us))
    }

    /// Up to here the replica of a range here has everything; `None`: nothing is known of it.
    pub fn resolved(&self, range: RangeId) -> Option<Timestamp> {
        let shard = self.shards.get(&range).filter(|_| !self.is_installing(range))?;
        let (closed, _) = self.replicas.closed(group_of(range)).filter(|(_, place)| *place <= shard.applied)?;
        let undecided = shard.range.prepared().values().map(|prepared| prepared.at).min();
        match undecided.filter(|_| !self.sabotage.closed_is_resolved()) {
            Some(at) if at <= closed => Some(Timestamp::from_u64(at.as_u64().saturating_sub(1))),
            _ => Some(closed),
        }
    }

    /// What is certainly past; `None`: this clock does not say.
    fn past_for_readers(&self, now: &Reading) -> Option<Timestamp> {
        (!self.in_doubt(now)).then(|| now.interval.earliest())
    }

    /// Invariant 2, of what is resolved here.
    fn is_past_here(&self, now: &Reading, snapshot: Timestamp) -> bool {
        self.may_show(now, snapshot) || self.in_doubt(now)
    }

    /// The answer of the replica here to a read of the past, if it can give one.
    pub fn read_here(
        &mut self,
        now: &Reading,
        range: RangeId,
        request: &Request,
    ) -> Result<Option<Answer>, StoreError> {
        let Some(look) = request.look() else { return Ok(None) };
        let snapshot = look.snapshot;
        // What is uncertain is known to the leader only.
        if look.limit > snapshot {
            return Ok(None);
        }
        if self.resolved(range).is_none_or(|resolved| snapshot > resolved) || !self.is_past_here(now, snapshot) {
            return Ok(None);
        }
        let answer = self.look_up(range, request)?;
        Ok(answer.filter(|answer| matches!(answer, Answer::Value { .. } | Answer::Values(_) | Answer::Rows { .. })))
    }
}

impl<E: Engine> Member<E> {
    /// The newest snapshot that the replicas here can read without asking anybody, if it is not before `least`; else `least`.
    pub fn freshest(&self, now: &Reading, least: Timestamp) -> Timestamp {
        let mut core = self.look();
        let past = core.past_for_readers(now);
        oldest_from(&core.resolved_here(now).followed, past, least)
    }

    /// The newest snapshot that stays readable here if all others are lost now, or are lost already, if it is not before `least`; else `least`. It may be as old as their loss.
    pub fn freshest_alone(&self, now: &Reading, least: Timestamp) -> Timestamp {
        let mut core = self.look();
        let past = core.past_for_readers(now);
        oldest_from(&core.resolved_here(now).alone, past, least)
    }

    /// All replicas here of ranges that are led elsewhere have resolved this. What only some have may be the word of one that is ahead.
    pub(super) fn resolved_by_all(&self, now: &Reading) -> Timestamp {
        self.look().resolved_here(now).followed.first().copied().unwrap_or_default()
    }
}

/// The oldest of what is resolved that is not before `least`, which it is else; and never what is not past (rule 1, invariant 2). What was resolved once stays so.
fn oldest_from(resolved: &[Timestamp], past: Option<Timestamp>, least: Timestamp) -> Timestamp {
    let oldest = resolved.get(resolved.partition_point(|at| *at < least)).copied();
    match past {
        Some(past) => oldest.unwrap_or(Timestamp::MAX).min(past).max(least),
        None => oldest.unwrap_or(least),
    }
}
