//! Time that is lent: who doubts his own clock asks a leader what time it is.
//!
//! # Problem
//! A node whose clock is in doubt (its level does not serve `hybrid`) still serves `token`, `none` and the past. Its transactions need a time in three places: a snapshot, the
//! end of the time in which copies of their commits may come (`until`), and the moment from which on a commit of several ranges is past (rule 1). By the own clock the first may be so far ahead that
//! leaders hold everybody's writes back, the second so far behind that every commit comes late, and the third is a guess.
//!
//! # Idea
//! ```text
//!     node in doubt                          leader of any range, its clock sound
//!       ├── Time ──────────────────────────────►│
//!       │◄──────────────── [earliest, latest] ──┤     of this moment
//!       │  snapshot := earliest; until := latest + COMMIT_US
//!       ├── Prepare{A,B} ──► ...  decided at c
//!       ├── Time ──────────────────────────────►│     who leads A, or else B
//!       │◄──────────────────────── earliest ≥ c ┤     acknowledged
//! ```
//! Every read and write asks a leader anyway and believes it: its clock stamps what is committed, and says when that is past.
//!
//! # Invariants
//! 1. Nothing is kept: an answer is for the transaction that asked. No answer moves a clock, a level, a lease, or another transaction. As true time does not fall, `earliest` is a
//!    lower bound however late it comes; what is counted on from an answer ([`Told::latest`]) decides nothing but until when copies may come.
//! 2. Only a clock lends that is sound: a leader's, under its lease, whose level serves `hybrid` by the reading of that moment. Who doubts his own says so, and another is asked.
//! 3. Leaders do not borrow: what is led here is stamped, closed, served and shown by the own reading and level.
//! 4. A commit of several ranges is acknowledged once a leader of one of them says that its timestamp is past, as one of one range is by its leader. Where the leaders of all of them doubt
//!    their own clocks it is by the own reading, if that is trusted: so do they acknowledge what is theirs.
//! 5. Nothing is sent that would have to wait: a commit whose floor lies above what a leader allows is refused before.
//! 6. A token is held against the answer where the snapshot is taken. (Each leader serves and stamps within its lease only, whoever let the token in.)
//!
//! # Caveats
//! A leader whose bound is wrong, and not proved so yet, is believed, as by its own clients. Where nobody lends, the own clock is gone by as far as it was before: see decision 203.

use super::core::{Core, Gated};
use super::gateway::Owner;
use super::seam::NodeId;
use super::shard::Asker;
use crate::TxnError;
use clock::{Interval, Reading, Timestamp};
use protocol::door::{Answer, Request, VERSION_OF_LENT_TIME};
use protocol::txn::{RangeId, TxnId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Waker;
use store::Engine;

/// An answer is good for the end of a commit's time for so long, nanoseconds; after that another is asked for.
const FRESH_NS: u64 = 1_000_000_000;
/// Who has not answered for so many ticks is not waited for where another can be asked: half a second.
const PATIENCE_TICKS: u64 = 5;

/// What a leader said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    interval: Interval,
    /// When it was heard, by the time that passes here, nanoseconds.
    heard_ns: u64,
}

impl Told {
    /// What is certainly past.
    pub fn earliest(&self) -> Timestamp {
        self.interval.earliest()
    }
    /// What true time is at most, about: what has passed since is counted by a clock that is in doubt.
    pub fn latest(&self, now: &Reading) -> Timestamp {
        let age_ns = now.now_ns.saturating_sub(self.heard_ns);
        Interval { latest_ns: self.interval.latest_ns.saturating_add(age_ns), ..self.interval }.latest()
    }
    /// Whether it need not be asked for again.
    pub fn is_fresh(&self, now: &Reading) -> bool {
        now.now_ns.saturating_sub(self.heard_ns) <= FRESH_NS
    }
    /// A timestamp that no clock can have shown, as far as this says.
    pub fn is_future(&self, now: &Reading, at: Timestamp, tolerance_us: u64) -> bool {
        let limit_us = self.latest(now).physical_us().saturating_add(tolerance_us);
        at > Timestamp::new(limit_us, Timestamp::LOGICAL_MAX)
    }
}

/// A question for the time on its way.
#[derive(Debug)]
pub(crate) struct Borrowing {
    pub call: u64,
    /// Whom to ask next, from the end.
    left: Vec<RangeId>,
}

/// How far that is.
pub(crate) enum Borrowed {
    /// The call that is waited for.
    Asked(Borrowing),
    /// `None`: nobody lends.
    Answered(Result<Option<Told>, TxnError>),
}

/// A commit of several ranges that waits until somebody says that it is past.
#[derive(Debug)]
pub(crate) struct Vouching {
    commit: Timestamp,
    gated: Gated,
    ranges: Vec<RangeId>,
    turn: usize,
    call: Option<u64>,
    /// So many leaders in a row have said that they doubt their own clocks.
    refusals: usize,
}

impl Vouching {
    /// Nobody waits for it any more.
    fn is_left(&self) -> bool {
        self.gated.reply.as_ref().is_none_or(|reply| Arc::strong_count(reply) == 1)
    }
}

impl<E: Engine> Core<E> {
    /// Whether this node's clock is in doubt, so that its transactions borrow the time.
    pub fn in_doubt(&self, now: &Reading) -> bool {
        let serves = self.watch.level(&self.options.node_options, now, self.clock.last()).serves_now();
        !serves && self.in_force(VERSION_OF_LENT_TIME) && !self.sabotage.borrow_nothing()
    }

    /// The answer of a leader (invariant 2).
    pub fn lend(&mut self, now: &Reading, asker: Asker) {
        let sound = self.watch.level(&self.options.node_options, now, self.clock.last()).serves_now();
        let interval = match self.sabotage.lend_in_doubt() {
            true => Some(now.interval),
            false => now.trusted().filter(|_| sound),
        };
        if interval.is_some() {
            self.counters.times_lent.one();
        }
        self.answer(asker, Answer::Time(interval));
    }

    /// One range of each node that leads some, as far as is known, but for this one: that of the first keys first, where the catalog is. Where nobody is known to lead,
    /// a range that others have, whose call finds out.
    fn lenders(&self) -> Vec<RangeId> {
        let me = self.me();
        let mut nodes: BTreeSet<NodeId> = BTreeSet::new();
        let mut led = |range: &RangeId| {
            let leader = self.routes.get(*range).and_then(|route| route.leader);
            leader.is_some_and(|leader| leader != me && self.hears(leader) && nodes.insert(leader))
        };
        let mut lenders: Vec<RangeId> = self.routes.ranges().filter(|range| led(range)).collect();
        if lenders.is_empty() {
            let elsewhere = |range: &RangeId| self.led_until(*range).is_none() && self.others_hold(*range);
            lenders.extend(self.routes.ranges().find(elsewhere));
        }
        lenders
    }

    /// Goes on asking for the time. Runs what there is to do. `hasty`: where nobody is known to lead it is not to wait for one who will.
    pub fn borrow(&mut self, now: &Reading, going: Option<Borrowing>, hasty: bool, waker: &Waker) -> Borrowed {
        let mut going = going;
        let mut failed = None;
        loop {
            let Borrowing { call, mut left } = match going.take() {
                Some(going) => going,
                None => {
                    let mut left = self.lenders();
                    left.reverse();
                    let Some(first) = left.pop() else { return Borrowed::Answered(Ok(None)) };
                    self.counters.times_borrowed.one();
                    Borrowing { call: self.call_for_time(first, hasty, left.is_empty(), waker), left }
                }
            };
            if let Err(why) = self.run(now) {
                return Borrowed::Answered(Err(why.into()));
            }
            match self.poll_call(call, waker) {
                None => return Borrowed::Asked(Borrowing { call, left }),
                Some(Ok(Answer::Time(Some(interval)))) => {
                    return Borrowed::Answered(Ok(Some(Told { interval, heard_ns: now.now_ns })));
                }
                Some(Ok(_)) => {}
                Some(Err(why)) => failed = Some(why),
            }
            match (left.pop(), failed.take()) {
                (Some(next), why) => {
                    failed = why;
                    going = Some(Borrowing { call: self.call_for_time(next, hasty, left.is_empty(), waker), left });
                }
                (None, Some(why)) => return Borrowed::Answered(Err(why)),
                (None, None) => return Borrowed::Answered(Ok(None)),
            }
        }
    }

    /// `last`: nobody is left to be asked after it.
    fn call_for_time(&mut self, range: RangeId, hasty: bool, last: bool, waker: &Waker) -> u64 {
        let call = self.call_for(range, Request::Time, waker);
        self.prepare_call(call, hasty, &[]);
        if !last {
            self.end_call_after(call, PATIENCE_TICKS);
        }
        call
    }

    /// A commit of several ranges that began here is decided, and may not be past (invariant 4).
    pub fn vouch(&mut self, txn: TxnId, commit: Timestamp, ranges: Vec<RangeId>, gated: Gated) {
        if let Some(reply) = &gated.reply {
            reply.committed(commit);
        }
        self.vouching.insert(txn, Vouching { commit, gated, ranges, turn: 0, call: None, refusals: 0 });
        self.ask_to_vouch(txn);
    }

    fn ask_to_vouch(&mut self, txn: TxnId) {
        let Some(vouching) = self.vouching.get_mut(&txn).filter(|vouching| vouching.call.is_none()) else { return };
        let range = vouching.ranges[vouching.turn % vouching.ranges.len()];
        vouching.turn += 1;
        // Each is waited for longer, so that one who is far away is heard as well.
        let patience = PATIENCE_TICKS.saturating_mul(vouching.turn as u64);
        let call = self.call(range, Request::Time, Owner::Voucher(txn));
        self.end_call_after(call, patience);
        if let Some(vouching) = self.vouching.get_mut(&txn) {
            vouching.call = Some(call);
        }
    }

    /// What the leader of one of a commit's ranges says. Where it is not past by that, the next one is asked, with the next tick.
    pub fn vouched(&mut self, now: &Reading, txn: TxnId, result: Result<(NodeId, Answer), TxnError>) {
        let Some(vouching) = self.vouching.get_mut(&txn) else { return };
        vouching.call = None;
        let interval = match result {
            Ok((_, Answer::Time(Some(interval)))) => interval,
            Ok((_, Answer::Time(None))) => {
                vouching.refusals += 1;
                return;
            }
            // Who is not heard may lend.
            _ => return,
        };
        vouching.refusals = 0;
        if interval.is_past(vouching.commit) {
            self.counters.commits_vouched.one();
            self.acknowledge_vouched(now, txn);
        }
    }

    fn acknowledge_vouched(&mut self, now: &Reading, txn: TxnId) {
        let Some(Vouching { commit, mut gated, call, .. }) = self.vouching.remove(&txn) else { return };
        call.into_iter().for_each(|call| self.cancel(call));
        gated.wait.held_ns = now.now_ns.saturating_sub(gated.since_ns);
        self.counters.txn_commit_waits.one();
        self.counters.commit_wait_nanos.add(gated.wait.held_ns);
        self.show(commit, gated);
    }

    /// Who could not vouch is asked again; and a clock that is right again vouches itself, as does one that is trusted where nobody lends.
    pub fn tick_lent(&mut self, now: &Reading) {
        let own = !self.in_doubt(now);
        for txn in self.vouching.keys().copied().collect::<Vec<_>>() {
            let Some(vouching) = self.vouching.get(&txn) else { continue };
            let nobody = vouching.refusals >= vouching.ranges.len();
            if (own || nobody) && self.may_show(now, vouching.commit) {
                self.acknowledge_vouched(now, txn);
            } else if vouching.is_left() {
                let call = self.vouching.remove(&txn).and_then(|vouching| vouching.call);
                call.into_iter().for_each(|call| self.cancel(call));
            } else {
                self.ask_to_vouch(txn);
            }
        }
    }
}
