//! Locks of sessions: held for as long as a session wants, over its transactions and over changes of leaders.
//!
//! # Problem
//! A lock on a row lies in the memory of who leads its range: to lose it loses no correctness, since certification is the truth. What a session locks for
//! itself (an advisory lock) guards something of which no database knows, and nothing stands behind it: two must never hold it at a time.
//!
//! # Idea
//! It lies in the same table as the locks of rows, on a key of its own, under a number of its own ([`SessionLock`]). Its gateway says every second what it
//! holds, and hears what of that is not held any more. A new leader knows nothing of what was held before: for a while it grants nothing new, and believes
//! the gateways.
//!
//! ```text
//!   gateway ──Hold──► leader ──Locked──►         a new leader ──(grace: nothing new is granted)──────────────────►
//!           ──Keep──►        ──Kept(lost)──►        ▲ Keep: taken up again          ▲ Keep after the grace: lost
//! ```
//!
//! # Invariants
//! 1. A leader grants, and says that something is held, only while its lease is not over by its own clock. So there is one at a time.
//! 2. A gateway counts on a lock for [`SURE_NS`] from when it asked the last question that was answered by "held". A leader forgets
//!    a holder of which it has heard nothing for [`HOLD_TICKS_MAX`], and grants nothing new in its first [`GRACE_TICKS`], unless nobody led the range before it. The first
//!    is shorter than the other two: while a gateway counts on a lock nobody else is granted it.
//! 3. What a leader does not know to be held is not taken up again after its grace: somebody may have held it in between. The lock is lost then, and whoever
//!    has it is told ([`SessionLock::is_lost`]).
//!
//! # Caveats
//! This compares no clocks, but their rates: a second of one machine must not be more than 1.25 of another. Whoever sleeps with a lock in his hand (SIGSTOP) finds out
//! when he wakes, not before. What is asked for in the grace waits for its end, also where a lock is only to be tried.

use super::core::Core;
use super::gateway::{NOBODY, Owner};
use super::locks::Holder;
use super::member::Member;
use super::seam::NodeId;
use super::serve::{Looked, certainly_holds};
use super::split::FOUNDED;
use crate::TxnError;
use crate::transaction::Op;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::door::{Answer, Body, Held, Request, Returned, VERSION_OF_SESSION_LOCKS};
use protocol::txn::{LockMode, LockReply, LockWait, RangeId, TxnId, Waiter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::{Engine, StoreError};

/// A leader forgets a session's lock of which it has heard nothing for so many ticks.
pub(crate) const HOLD_TICKS_MAX: u64 = 100;
/// A new leader grants nothing new for so many ticks.
pub(crate) const GRACE_TICKS: u64 = 100;
/// A gateway counts on a lock for so long, nanoseconds.
const SURE_NS: u64 = 8_000_000_000;
/// An answer that was longer on its way says nothing of now: it is asked again.
const FRESH_NS: u64 = 2_000_000_000;
/// Ticks between two signs of life.
const KEEP_TICKS: u64 = 10;
/// Locks named in one sign of life.
const KEPT_MAX: usize = 4096;

const _: () = assert!(SURE_NS / super::TICK_NS < HOLD_TICKS_MAX && SURE_NS / super::TICK_NS < GRACE_TICKS);

/// A lock that a session of this node holds.
#[derive(Debug)]
struct Hold {
    key: Bytes,
    mode: LockMode,
    /// Who said so last.
    at: NodeId,
    /// When that was asked.
    asked_ns: u64,
    lost: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    held: BTreeMap<TxnId, Hold>,
    /// Signs of life on their way.
    keeping: BTreeMap<RangeId, Vec<u64>>,
    /// Ranges that are led here since so short a time, and until when nothing new is granted.
    graces: BTreeMap<RangeId, u64>,
}

impl Holds {
    /// Whether a new leader of a range grants nothing new yet.
    pub fn in_grace(&self, range: RangeId) -> bool {
        self.graces.contains_key(&range)
    }
}

impl<E: Engine> Core<E> {
    /// A range is led here from now on.
    pub fn holds_led(&mut self, range: RangeId) {
        let founded = self.options.ranges.iter().any(|founding| founding.range == range);
        // Each leader begins with an entry of its own: behind the first one nobody has led.
        let first = founded && self.shards.get(&range).is_some_and(|shard| shard.applied <= FOUNDED + 1);
        if !first {
            self.counters.lock_tables_lost.one();
        }
        if !first && !self.sabotage.grant_without_grace() {
            self.holds.graces.insert(range, self.ticks + GRACE_TICKS);
        }
    }

    /// And is so no more.
    pub fn holds_not_led(&mut self, range: RangeId) {
        self.holds.graces.remove(&range);
    }

    /// Invariant 1: whether a question about locks of sessions may be answered; and, by the same rule, a read whose uncertainty ends at its snapshot because
    /// its transaction has moved past all that this node had stamped: another may have led since, unless the lease certainly holds.
    pub fn may_grant(&self, now: &Reading, end: Timestamp, request: &Request) -> bool {
        match request {
            Request::Hold { .. } | Request::Keep { .. } => certainly_holds(now, end),
            request => !request.is_clipped() || self.may_clip(now, end),
        }
    }

    /// [`Request::Hold`].
    pub fn hold_asked(
        &mut self,
        range: RangeId,
        txn: TxnId,
        key: &Bytes,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<Looked, StoreError> {
        if !self.shard(range)?.range.span().contains(key) {
            return Ok(Looked::Answer(self.moved(key)));
        }
        self.holder_heard(txn);
        if self.holds.in_grace(range) && !self.locks.holds(txn, key, mode) {
            return Ok(Looked::Wait);
        }
        let mut wakeups = Vec::new();
        let reply = self.locks.request(txn, key, mode, wait, &mut wakeups);
        self.woken(&wakeups);
        self.locked(range, txn, reply, (key, false), None)
    }

    /// [`Request::Keep`].
    pub fn keep_asked(&mut self, range: RangeId, held: &[Held]) -> Result<Looked, StoreError> {
        let span = self.shard(range)?.range.span().clone();
        if let Some(Held { key, .. }) = held.iter().find(|held| !span.contains(&held.key)) {
            return Ok(Looked::Answer(self.moved(key)));
        }
        let mut lost = Vec::new();
        for Held { txn, key, mode } in held {
            let mut wakeups = Vec::new();
            let holds = self.locks.holds(*txn, key, *mode)
                || self.holds.in_grace(range)
                    && matches!(
                        self.locks.request(*txn, key, *mode, LockWait::NoWait, &mut wakeups),
                        LockReply::Granted { .. }
                    );
            self.woken(&wakeups);
            match holds {
                true => self.holder_heard(*txn),
                false => lost.push(*txn),
            }
        }
        Ok(Looked::Answer(Answer::Kept { lost }))
    }

    /// A sign of life of who holds, or wants, a session's lock.
    pub fn holder_heard(&mut self, txn: TxnId) {
        if txn.node != self.me().0 {
            let ticks = self.ticks;
            let holder = self.lock_owners.entry(txn).or_insert(Holder { heard: ticks, round: 0, lasting: true });
            holder.heard = ticks;
        }
    }

    /// What of the locks of this node's sessions is still held, as it seemed when it was asked.
    pub fn kept(&mut self, asked_ns: u64, request: &Request, result: Result<(NodeId, Answer), TxnError>) {
        let (Request::Keep { held }, Ok((from, Answer::Kept { lost }))) = (request, result) else { return };
        for Held { txn, .. } in held {
            let Some(hold) = self.holds.held.get_mut(txn).filter(|hold| !hold.lost) else { continue };
            if lost.contains(txn) {
                self.lose_hold(*txn);
            } else {
                (hold.at, hold.asked_ns) = (from, hold.asked_ns.max(asked_ns));
            }
        }
    }

    fn lose_hold(&mut self, txn: TxnId) {
        let Some(hold) = self.holds.held.get_mut(&txn) else { return };
        hold.lost = true;
        self.counters.holds_lost.one();
        self.let_go(txn, &[]);
    }

    /// A session's lock passes on, wherever it may be held or asked for.
    fn let_go(&mut self, txn: TxnId, asked: &[NodeId]) {
        let hold = self.holds.held.get(&txn);
        let at = hold.map(|hold| hold.at).filter(|at| *at != NOBODY);
        // Who granted it by way of a third is not known: whoever may have done so is told.
        let unknown =
            hold.filter(|hold| hold.at == NOBODY).and_then(|hold| self.routes.get(self.routes.of_key(&hold.key)));
        let all = unknown.map(|route| route.replicas.clone()).unwrap_or_default();
        self.release_locks(txn);
        let mut told = Vec::new();
        for node in at.into_iter().chain(asked.iter().copied()).chain(all).filter(|node| *node != self.options.node) {
            if !told.contains(&node) {
                told.push(node);
                self.post.answers.push((node, Body::Unlock { txn, returned: None }));
            }
        }
    }

    pub fn tick_holds(&mut self, now: &Reading) {
        let ticks = self.ticks;
        let over: Vec<RangeId> =
            self.holds.graces.iter().filter(|(_, until)| **until <= ticks).map(|(range, _)| *range).collect();
        for range in over {
            self.holds.graces.remove(&range);
            self.stirred.insert(range);
        }
        let held = self.holds.held.iter().filter(|(_, hold)| !hold.lost);
        let unsure = held.filter(|(_, hold)| now.now_ns.saturating_sub(hold.asked_ns) > SURE_NS);
        let unsure: Vec<TxnId> = unsure.map(|(txn, _)| *txn).collect();
        if !self.sabotage.count_on_locks_for_ever() {
            unsure.into_iter().for_each(|txn| self.lose_hold(txn));
        }
        if ticks.is_multiple_of(KEEP_TICKS) {
            self.keep(now);
        }
    }

    /// Says what this node's sessions hold.
    fn keep(&mut self, now: &Reading) {
        for call in std::mem::take(&mut self.holds.keeping).into_values().flatten() {
            self.cancel(call);
        }
        let mut all: BTreeMap<RangeId, Vec<Held>> = BTreeMap::new();
        for (txn, hold) in self.holds.held.iter().filter(|(_, hold)| !hold.lost) {
            let held = Held { txn: *txn, key: hold.key.clone(), mode: hold.mode };
            all.entry(self.routes.of_key(&hold.key)).or_default().push(held);
        }
        for (range, held) in all {
            for held in held.chunks(KEPT_MAX) {
                let request = Request::Keep { held: held.to_vec() };
                let call = self.call(range, request, Owner::Keeper(now.now_ns));
                self.holds.keeping.entry(range).or_default().push(call);
            }
        }
    }
}

/// A lock of a session of this node, on one key. Dropping it gives it back.
pub struct SessionLock<E: Engine> {
    member: Arc<Member<E>>,
    txn: TxnId,
    key: Bytes,
    /// The call that it waits for, and when that was made.
    call: Option<(u64, u64)>,
    /// Who was asked last, and all that were to ask in its place.
    asked: Vec<NodeId>,
    held: bool,
}

impl<E: Engine> SessionLock<E> {
    /// Of a session, not held yet.
    pub fn new(member: &Arc<Member<E>>, session: u64, key: Bytes) -> Self {
        let mut core = member.lock();
        let txn = core.next_txn();
        core.locks.lasts(txn, session);
        drop(core);
        SessionLock { member: member.clone(), txn, key, call: None, asked: Vec::new(), held: false }
    }

    /// Takes it in a mode, or makes it stronger; `false`: it is held by another, and `wait` says not to wait for that.
    pub fn take(&mut self, now: &Reading, mode: LockMode, wait: LockWait, waker: &Waker) -> Op<bool> {
        loop {
            let mut core = self.member.lock();
            let (call, asked_ns) = match self.call {
                Some(call) => call,
                None => {
                    if let Err(why) = core.require("locks of sessions that all nodes see", VERSION_OF_SESSION_LOCKS) {
                        return Poll::Ready(Err(why));
                    }
                    let range = core.routes.of_key(&self.key);
                    let request = Request::Hold { txn: self.txn, key: self.key.clone(), mode, wait };
                    *self.call.insert((core.call_for(range, request, waker), now.now_ns))
                }
            };
            if let Err(why) = core.run(now) {
                return Poll::Ready(Err(why.into()));
            }
            note_asked(&core, call, &mut self.asked);
            let Some(result) = core.poll_call_at(call, waker) else { return Poll::Pending };
            self.call = None;
            let (at, answer) = match result {
                Ok(answered) => answered,
                Err(why) => return Poll::Ready(Err(why)),
            };
            return Poll::Ready(match answer {
                Answer::Locked { .. } if now.now_ns.saturating_sub(asked_ns) > FRESH_NS => {
                    drop(core);
                    continue;
                }
                Answer::Locked { .. } => {
                    self.held = true;
                    let hold = Hold { key: self.key.clone(), mode, at, asked_ns, lost: false };
                    core.holds.held.insert(self.txn, hold);
                    Ok(true)
                }
                Answer::Busy => Ok(false),
                Answer::Deadlock(circle) => {
                    // Whoever found the circle need not be where it waits.
                    give_up_waiting(&mut core, self.txn, &self.asked, call, self.held);
                    let waiter = |(txn, key)| Waiter { txn, session: core.locks.session_of(txn), key, mode };
                    Err(TxnError::Deadlock { cycle: circle.into_iter().map(waiter).collect() })
                }
                Answer::Refused(refusal) => Err(refusal.into()),
                other => {
                    Err(TxnError::Storage(format!("a range gave an answer that does not fit the question: {other:?}")))
                }
            });
        }
    }

    /// Stops waiting: what is held stays held, as strong as it was.
    pub fn stop_waiting(&mut self) {
        let Some((call, _)) = self.call.take() else { return };
        let mut core = self.member.lock();
        note_asked(&core, call, &mut self.asked);
        core.cancel(call);
        give_up_waiting(&mut core, self.txn, &self.asked, call, self.held);
    }

    /// Whether it was held, and is not any more for all that is known: its leader was not heard for too long, or has given it to another.
    pub fn is_lost(&self, now: &Reading) -> bool {
        if !self.held {
            return false;
        }
        let core = self.member.look();
        let old = |hold: &Hold| now.now_ns.saturating_sub(hold.asked_ns) > SURE_NS;
        core.holds
            .held
            .get(&self.txn)
            .is_none_or(|hold| hold.lost || old(hold) && !core.sabotage.count_on_locks_for_ever())
    }
}

/// Who is asked for a call, if it was sent.
fn note_asked<E: Engine>(core: &Core<E>, call: u64, asked: &mut Vec<NodeId>) {
    if let Some(call) = core.gateway.calls.get(&call).filter(|call| call.asks().is_some()) {
        *asked = match core.sabotage.pass_no_word_on() {
            true => call.asks().into_iter().collect(),
            false => call.all_asked(),
        };
    }
}

/// It is not asked for any more; what is held stays held, as strong as it was.
fn give_up_waiting<E: Engine>(core: &mut Core<E>, txn: TxnId, asked: &[NodeId], round: u64, held: bool) {
    core.cancel_lock_wait(txn);
    if !held {
        return core.let_go(txn, asked);
    }
    // The one that it has, of however many requests.
    let returned = Some(Returned { round, kept: 1 });
    let me = core.me();
    let told: BTreeSet<NodeId> = asked.iter().copied().filter(|node| *node != me).collect();
    core.post.answers.extend(told.into_iter().map(|node| (node, Body::Unlock { txn, returned })));
}

impl<E: Engine> Drop for SessionLock<E> {
    fn drop(&mut self) {
        self.held = false;
        self.stop_waiting();
        let mut core = self.member.lock();
        core.let_go(self.txn, &self.asked);
        core.holds.held.remove(&self.txn);
    }
}

impl<E: Engine> Member<E> {
    /// Locks that sessions of this node hold, and those of them that they have lost.
    pub fn session_locks(&self) -> (usize, usize) {
        let core = self.look();
        let lost = core.holds.held.values().filter(|hold| hold.lost).count();
        (core.holds.held.len() - lost, lost)
    }
}
