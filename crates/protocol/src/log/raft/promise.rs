//! Leases as promises of stores.
//!
//! # Problem
//! A leader may serve a read at `s` only while nobody else can write at or below `s`. A lease record per group costs a write per group
//! and period; 10,000 idle groups would cost 10,000. And no clock may be trusted with it: a bound can lie.
//!
//! # Idea
//! Stores make the promises, once for all the groups that they share (design 4a.3; compare the store liveness and leader leases of
//! CockroachDB, 2025). A lease is a grant of *timestamps*, not of time: a leader that sleeps through its end may still serve at
//! timestamps below it, and nothing else.
//!
//! ```text
//!   per pair (S promises L)         per group                                   lease of g at L in term T
//!   Ask(until) ──────────────►                                                  for each voter at a store X:
//!   ◄── Grant(epoch, until)         L ── append or heartbeat of T ──► S            the end of X's promise, if X accepted
//!   (a record, then the message)    L ◄─ Accept(g, T, epoch) ──────── S            L for T at the epoch of that promise
//!                                   (a record, then the message)                the greatest end that a quorum reaches
//! ```
//!
//! *Letting go.* S's replica of g votes for another only when its promise to the leader that it accepted is past by S's clock, or that
//! leader is known not to lead any more (it says so, it looks for votes itself, it is no voter any more, or its release is in S's log). Before such a
//! vote leaves, S's support is withdrawn: the epoch is raised, durably. That ends S's support of L in all groups, until S accepts L
//! anew under the new epoch. The vote carries the greatest end that S promised to anybody it may have supported in g.
//! (What is promised to L for other groups goes on growing. So of a leader that is known to lead T no more the end is kept as it was then; of the own one it
//! is the end of its lease. Else a store that led long ago would delay each election by a promise to itself.)
//!
//! *Starting.* The winner of T starts above all the ends that its votes carry, and above all timestamps in its log, applied or not. It
//! begins to stamp and serve when its own `earliest` is past that.
//!
//! *Handing over.* The leader stops serving, logs a release, whose timestamp is just above all that it served, whatever its clock says (what it read, only the driver knows:
//! [`Replicas::served`](super::Replicas::served)), and then hands over. A winner
//! with the release of T in its log need not heed the ends that were promised for T. A leader that released and was not relieved
//! steps down: it serves nothing more in T.
//!
//! *Changing the membership.* In a joint configuration both quorums must support. It is left only when the new voters alone support all that
//! was served so far, and the entry that leaves it names the end: whoever leads under the new voters has it in its log.
//!
//! # Invariants
//! 1. A promise is durable at S before L hears of it, and what a vote carries is at least every promise of S that ever left, or may yet.
//! 2. Under one epoch the end of a promise only grows. An epoch only grows.
//! 3. L counts S for (g, T) up to `until` only with an acceptance (g, T, epoch) and a promise (epoch, until) of one and the same epoch.
//! 4. Once S has voted in g in a term above T, no promise that S makes from then on counts for (g, T): either S raised the epoch,
//!    or L does not lead T any more, as it has said itself.
//! 5. Hence leases of one group are disjoint. Take `t` served in T, by promises of a quorum P, and the next leader, elected by Q. Some S is in
//!    both. If it voted after it accepted, its vote carried an end of at least `t` (1, 4); if before, it would not have accepted
//!    T (Raft's terms, which are durable in the same log). Leaders after the next follow, as acceptances of T are never
//!    forgotten before they are carried by a vote, and across configurations by what the entry that leaves a joint one says.
//! 6. No step of this argument compares two clocks. Clocks decide when a promise is let go, and when a start is past: how long
//!    a group waits, and how recent a read is.
//! 7. A leader's own store supports it like any other, and must: a store whose disk does not take its own promise asks nobody for
//!    more, and when that promise is past for as long as an election takes, steps down everywhere.
//!
//! # Caveats
//! When a leader's store dies, its groups wait until its promises are past, which is longer than an election: the price of reads without
//! a round trip. A store whose reading is not trusted neither promises nor asks: where a quorum lacks a clock, leases end. A promise is only as long as [`Options::promise_us`](super::Options::promise_us).

use super::ids::StoreId;
use clock::Timestamp;
use std::collections::BTreeMap;

/// What this store promised another (or itself).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub epoch: u64,
    /// Promised under this epoch.
    pub until: Timestamp,
    /// Promised under earlier ones.
    pub ended: Timestamp,
}

impl Default for Pair {
    fn default() -> Self {
        Pair { epoch: 1, until: Timestamp::MIN, ended: Timestamp::MIN }
    }
}

/// What another store (or this one) promised this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub epoch: u64,
    pub until: Timestamp,
}

/// All promises of a store, given and held.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    pub given: BTreeMap<StoreId, Pair>,
    pub held: BTreeMap<StoreId, Held>,
}

impl Promises {
    pub fn pair(&self, to: StoreId) -> Pair {
        self.given.get(&to).copied().unwrap_or_default()
    }

    /// The greatest end that may have been promised to a store which was accepted under an epoch.
    pub fn end(&self, to: StoreId, epoch: u64) -> Timestamp {
        let pair = self.pair(to);
        if pair.epoch == epoch { pair.until } else { pair.ended }
    }

    /// Promises more. `false`: it is promised already.
    pub fn extend(&mut self, to: StoreId, until: Timestamp) -> bool {
        let pair = self.given.entry(to).or_default();
        let grows = until > pair.until;
        pair.until = pair.until.max(until);
        grows
    }

    /// Raises the epoch: what was promised stays promised, and nothing is added to it.
    pub fn withdraw(&mut self, from: StoreId) {
        let pair = self.given.entry(from).or_default();
        *pair = Pair { epoch: pair.epoch + 1, until: Timestamp::MIN, ended: pair.ended.max(pair.until) };
    }

    /// A promise came in, perhaps an old one.
    pub fn hold(&mut self, from: StoreId, news: Held) {
        let held = self.held.entry(from).or_insert(news);
        if (news.epoch, news.until) > (held.epoch, held.until) {
            *held = news;
        }
    }

    /// The end of a promise that was accepted under an epoch.
    pub fn held_end(&self, from: StoreId, epoch: u64) -> Timestamp {
        self.held.get(&from).filter(|held| held.epoch == epoch).map_or(Timestamp::MIN, |held| held.until)
    }
}
