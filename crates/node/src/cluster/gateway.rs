//! The gateway: calls of this node's transactions to the doors of ranges, wherever those are.
//!
//! A call is sent to whoever may lead its range: the leader as far as it is known, else one replica after the other. It is sent again when nothing is
//! heard for [`RESEND_TICKS`], when its receiver says that another leads, or that it should come later. The request stays the same and so does
//! its number, so answers to earlier copies are as good.
//!
//! A range that gives no sign of life for [`UNAVAILABLE_TICKS`] has lost its majority, or this node the others: the call ends with
//! [`TxnError::Unavailable`]; a range that is known to be silent is given less (`silence`). One that says [`Answer::Waiting`] lives: such a call waits as long as its transaction wants.
//!
//! A leader that says nothing may be heard by others: of one link that is cut both ends know nothing, and neither can end what they began together (a
//! prepare here, none there), which keeps third parties waiting. So a node that was silent is asked through another of the range's replicas
//! ([`Body::Relay`]) for [`MUTE_TICKS`]. Nobody relays what is relayed, and who does not ask again has no relay any more. Word about locks, which nobody answers, goes both ways then:
//! directly, and by way of a third ([`Body::Forward`]).
//!
//! Whose request changes a range is the coordinator's (`commit`): it never ends with a guess.

use super::core::{Core, Work};
use super::locks::Elsewhere;
use super::seam::{Class, NodeId};
use super::shard::Asker;
use crate::TxnError;
use crate::reply::{CommitError, Reply};
use clock::Reading;
use protocol::door::{Answer, Body, Request};
use protocol::txn::{RangeId, Span, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use store::{Engine, StoreError};

/// A call of which nothing was heard for so many ticks is sent again.
pub(crate) const RESEND_TICKS: u64 = 3;
/// A range that gives no sign of life for so many ticks is not available: 9 seconds, so that a statement ends within ten.
pub const UNAVAILABLE_TICKS: u64 = 90;
/// A range of which nothing is heard for so many ticks is asked for at other nodes, too.
const LOST_TICKS: u64 = 30;
/// A node that did not answer is asked through others for so many ticks.
const MUTE_TICKS: u64 = 50;
/// A call for another that was not asked for again for so many ticks ends.
const RELAY_TICKS_MAX: u64 = 20;
/// Calls for others, at most: beyond it they are not made.
const RELAYS_MAX: usize = 4096;
/// No node has this number.
pub const NOBODY: NodeId = NodeId(0);
/// Times that a call follows a hint before it waits for the next tick.
const HOPS_MAX: usize = 4;
/// Ticks between two signs of life for locks held elsewhere.
const LOCKS_ALIVE_TICKS: u64 = 10;
/// Transactions named in one sign of life.
const LOCKS_ALIVE_MAX: usize = 10_000;

/// For whom a call is made.
#[derive(Debug)]
pub(crate) enum Owner {
    /// An operation of a transaction here, which polls.
    Operation(Waker),
    /// The coordinator of a transaction.
    Coordinator(TxnId),
    /// A commit that is to be said to be past.
    Voucher(TxnId),
    /// A transaction whose parts are sent ahead.
    Sender(TxnId),
    /// Whoever holds a reply: whether it was done.
    Reply(Arc<Reply>),
    /// Nobody: it should be done.
    Nobody,
    /// A peer's call of this number, which does not hear who leads.
    Relay(NodeId, u64),
    /// The locks of this node's sessions: asked at this time.
    Keeper(u64),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Call {
    pub range: RangeId,
    pub request: Request,
    pub owner: Owner,
    pub sent_to: Option<NodeId>,
    sent_tick: u64,
    /// When it was sent last, nanoseconds of this machine's own clock.
    sent_ns: u64,
    pub alive_tick: u64,
    /// Who was asked last although nothing says that he replicates it.
    anybody: Option<NodeId>,
    hops: usize,
    pub copies: usize,
    /// Who is asked as the nearest replica, whoever leads; and whether anybody was (`near`).
    pub near: Option<NodeId>,
    pub near_tried: bool,
    /// Who was asked so, even if he is not waited for any more: his answer may still come, and says nothing of who leads.
    pub near_asked: Option<NodeId>,
    /// Who may lead, by the last answer, where nothing else is known of the range.
    hint: Option<NodeId>,
    /// Who was last to ask in its place, and whom.
    via: Option<(NodeId, NodeId)>,
    /// All that were to ask in its place, each once. Whichever of them answers, and however late: it may be another's answer.
    relays: Vec<NodeId>,
    /// It does not wait for a leader where none is known.
    pub hasty: bool,
    /// Whoever leads said that it has to wait.
    told_to_wait: bool,
    /// With this tick it is over, whatever is known of its range: another can be asked instead.
    ends_tick: Option<u64>,
    /// Nodes past whose time its transaction has moved: what these stamp is not uncertain to it (`serve`, invariant 4).
    pub caught_up: Vec<NodeId>,
    result: Option<Result<(NodeId, Answer), TxnError>>,
}

impl Call {
    /// Whether it waits for its answer.
    pub fn is_open(&self) -> bool {
        self.result.is_none()
    }

    /// Who is asked, by whatever way.
    pub fn asks(&self) -> Option<NodeId> {
        self.via.filter(|(via, _)| self.sent_to == Some(*via)).map(|(_, at)| at).or(self.sent_to)
    }

    /// Who is asked, and all that were to ask in its place.
    pub fn all_asked(&self) -> Vec<NodeId> {
        self.asks().into_iter().chain(self.relays.iter().copied()).collect()
    }

    /// Whether it may end without an answer: a coordinator guesses nothing.
    fn may_give_up(&self) -> bool {
        !matches!(self.owner, Owner::Coordinator(_))
    }

    /// Whoever was asked as the nearest replica is not waited for any more: it is as if the call had not gone out.
    pub fn leave_nearest(&mut self) {
        (self.near, self.sent_to, self.copies) = (None, None, 0);
    }

    /// Whether whoever leads said that it has to wait.
    pub fn was_told_to_wait(&self) -> bool {
        self.told_to_wait
    }

    /// How long ago it was sent last, nanoseconds.
    pub fn waited_ns(&self, now: &Reading) -> u64 {
        now.now_ns.saturating_sub(self.sent_ns)
    }

    /// How many ticks ago it was sent last.
    pub fn sent_for(&self, ticks: u64) -> u64 {
        ticks.saturating_sub(self.sent_tick)
    }

    /// Whether nobody can have heard of it.
    pub fn is_new(&self) -> bool {
        self.copies == 0 && self.may_give_up()
    }
}

/// All calls.
#[derive(Debug, Default)]
pub(crate) struct Gateway {
    next: u64,
    pub calls: BTreeMap<u64, Call>,
    /// Calls made for others, by theirs, and when they were asked for last.
    relays: BTreeMap<(NodeId, u64), (u64, u64)>,
    /// Nodes that did not answer, and when.
    mute: BTreeMap<NodeId, u64>,
    /// Nodes at which a lock is held that was taken by way of another, as of when.
    by_third: BTreeMap<NodeId, u64>,
    /// Where transactions here may hold locks.
    pub locked_on: BTreeMap<TxnId, Elsewhere>,
}

impl Gateway {
    /// The calls made for others: mostly none, however many there are.
    pub fn relayed(&self) -> impl Iterator<Item = (u64, &Call)> {
        self.relays.values().filter_map(|(own, _)| Some((*own, self.calls.get(own)?)))
    }

    /// Whether a node did not answer lately.
    pub fn is_mute(&self, node: NodeId) -> bool {
        self.mute.contains_key(&node)
    }

    /// Whether word about locks may not reach a node directly.
    pub fn is_reached_by_third(&self, node: NodeId) -> bool {
        self.is_mute(node) || self.by_third.contains_key(&node)
    }
}

impl<E: Engine> Core<E> {
    /// Makes a call; [`Core::run`] sends it.
    pub fn call(&mut self, range: RangeId, request: Request, owner: Owner) -> u64 {
        self.gateway.next += 1;
        // The number is unique in all lives of the node: an answer to an earlier one is nobody's.
        let id = self.incarnation << 40 | self.gateway.next;
        let call = Call {
            range,
            request,
            owner,
            sent_to: None,
            sent_tick: self.ticks,
            sent_ns: 0,
            near: None,
            near_tried: false,
            near_asked: None,
            alive_tick: self.ticks,
            anybody: None,
            hops: 0,
            copies: 0,
            hint: None,
            via: None,
            relays: Vec::new(),
            hasty: false,
            told_to_wait: false,
            ends_tick: None,
            caught_up: Vec::new(),
            result: None,
        };
        self.gateway.calls.insert(id, call);
        self.todo.push_back(Work::Dispatch(id));
        id
    }

    /// A call of an operation that polls.
    pub fn call_for(&mut self, range: RangeId, request: Request, waker: &Waker) -> u64 {
        self.call(range, request, Owner::Operation(waker.clone()))
    }

    /// What is to be known of a call before it is sent. `hasty`: where nobody leads its range it is not to wait for one who will.
    pub fn prepare_call(&mut self, id: u64, hasty: bool, caught_up: &[NodeId]) {
        if let Some(call) = self.gateway.calls.get_mut(&id) {
            call.hasty = hasty;
            call.caught_up = caught_up.to_vec();
        }
    }

    /// A call waits for so many ticks at most, as another can be asked instead.
    pub fn end_call_after(&mut self, id: u64, ticks: u64) {
        if let Some(call) = self.gateway.calls.get_mut(&id) {
            call.ends_tick = Some(self.ticks + ticks);
        }
    }

    /// A call whose result goes to a reply.
    pub fn call_for_reply(&mut self, range: RangeId, request: Request, reply: &Arc<Reply>) {
        self.call(range, request, Owner::Reply(reply.clone()));
    }

    /// Sends a call.
    pub fn dispatch(&mut self, now: &Reading, id: u64) -> Result<(), StoreError> {
        let ticks = self.ticks;
        let Some(call) = self.gateway.calls.get_mut(&id).filter(|call| call.result.is_none()) else { return Ok(()) };
        (call.sent_tick, call.sent_ns) = (ticks, now.now_ns);
        let (range, request) = (call.range, &call.request);
        let follows = self.shards.get(&range).is_some_and(|shard| shard.led.is_none());
        if follows && request.look().is_some() {
            let request = request.clone();
            if let Some(answer) = self.read_here(now, range, &request)? {
                self.counters.follower_reads.one();
                self.finish(now, id, Ok((self.options.node, answer)));
                return Ok(());
            }
        }
        if let Some(nearest) = self.nearest(now, id) {
            self.ask_nearest(now, id, nearest);
            return Ok(());
        }
        if self.gateway.calls.get(&id).is_some_and(|call| call.is_new() && self.out_of_reach(range, call.hasty)) {
            self.give_up(now, id);
            return Ok(());
        }
        let Some(call) = self.gateway.calls.get_mut(&id) else { return Ok(()) };
        // All that are known to replicate it may be gone for good: every other copy goes to somebody else, who may know where it has moved.
        let lost = ticks.saturating_sub(call.alive_tick) > LOST_TICKS && call.copies % 2 == 1;
        let last = if lost { call.anybody } else { call.sent_to };
        let known = if lost { None } else { self.routes.whom(call.range, last).or_else(|| call.hint.take()) };
        let Some(to) = known.or_else(|| self.routes.anybody(last)) else { return Ok(()) };
        call.anybody = if lost { Some(to) } else { call.anybody };
        call.sent_to = Some(to);
        call.copies += 1;
        if follows && call.copies > 1 {
            self.is_wanted(now, range);
        }
        let Some(call) = self.gateway.calls.get_mut(&id) else { return Ok(()) };
        let (range, mut request) = (call.range, call.request.clone());
        let caught_up = call.caught_up.contains(&to);
        let via = if to == self.options.node { None } else { self.detour(id, to, range) };
        if to != self.options.node {
            self.address_lock(to, range, via.is_some(), &mut request);
        }
        if to == self.options.node {
            if caught_up {
                request.clip_limit();
            }
            return self.serve(now, Asker::Own(id), range, request);
        }
        self.counters.requests_sent.one();
        if let Some(via) = via {
            if let Some(call) = self.gateway.calls.get_mut(&id) {
                (call.sent_to, call.via) = (Some(via), Some((via, to)));
                if !call.relays.contains(&via) {
                    call.relays.push(via);
                }
            }
            self.counters.requests_relayed.one();
            self.send(now, via, Class::Request, Body::Relay { id, range, request }, None);
            return Ok(());
        }
        if self.sabotage.forget_relays()
            && let Some(call) = self.gateway.calls.get_mut(&id)
        {
            call.via = None;
            call.relays.clear();
        }
        self.carry(id, to, &request);
        // It is for this node and no other: whoever relays may ask another.
        if caught_up {
            request.clip_limit();
        }
        self.send(now, to, Class::Request, Body::Request { id, range, request }, None);
        Ok(())
    }

    /// Operations of this node's own transactions that were told to wait for a lock, or wait for one that is led here.
    pub fn waiting_for_locks(&self) -> usize {
        let waits = |(id, call): &(&u64, &Call)| {
            let parked = || {
                let shard = self.shards.get(&call.range);
                shard.is_some_and(|shard| shard.parked.contains_key(&Asker::Own(**id)))
            };
            let asks = matches!((&call.request, &call.owner), (Request::Lock { .. }, Owner::Operation(_)));
            call.is_open() && asks && (call.told_to_wait || parked())
        };
        self.gateway.calls.iter().filter(waits).count()
    }

    /// Through whom a call goes to a node that did not answer: one that is heard itself. (Who died is not mute for as long as nobody asks him.)
    fn detour(&self, id: u64, to: NodeId, range: RangeId) -> Option<NodeId> {
        let mute = |node: NodeId| self.gateway.is_mute(node);
        let call = self.gateway.calls.get(&id)?;
        let own = !matches!(call.owner, Owner::Relay(..));
        let others = &self.routes.get(range).filter(|_| own && mute(to))?.replicas;
        let able = |node: &NodeId| *node != self.me() && *node != to && !mute(*node) && self.hears(*node);
        others.iter().copied().find(able)
    }

    /// A peer does not hear who leads a range.
    pub fn relay(&mut self, from: NodeId, id: u64, range: RangeId, request: Request) {
        let ticks = self.ticks;
        let known = self.gateway.relays.get_mut(&(from, id)).map(|(own, asked)| {
            *asked = ticks;
            *own
        });
        if let Some(call) = known.and_then(|own| self.gateway.calls.get(&own)) {
            if self.ticks.saturating_sub(call.alive_tick) <= RESEND_TICKS {
                self.answer(Asker::Peer(from, id), Answer::Waiting);
            }
        } else if self.gateway.relays.len() < RELAYS_MAX {
            let own = self.call(range, request, Owner::Relay(from, id));
            self.gateway.relays.insert((from, id), (own, ticks));
        }
    }

    /// An answer came: to the call as it was sent last, or to an earlier copy.
    pub fn answered(&mut self, now: &Reading, id: u64, from: NodeId, answer: Answer) {
        let ticks = self.ticks;
        self.gateway.mute.remove(&from);
        let Some(call) = self.gateway.calls.get_mut(&id).filter(|call| call.result.is_none()) else { return };
        let reads = call.request.look().is_some();
        let near = call.near == Some(from);
        if near {
            self.near.speaks(from);
        }
        // A late answer of the one that was asked as the nearest is none to what was sent last.
        let timely = near || call.near_asked != Some(from);
        if reads && timely && call.sent_to == Some(from) && call.copies == 1 && !call.told_to_wait {
            self.near.took(from, call.waited_ns(now), ticks);
        }
        match answer {
            Answer::Waiting => {
                call.alive_tick = ticks;
                call.told_to_wait = true;
                let range = call.range;
                self.spoke(range);
            }
            Answer::NotLeader { hint } => {
                if call.sent_to != Some(from) {
                    return;
                }
                let hint = hint.map(NodeId).filter(|hint| *hint != from);
                if self.nearest_lags(id, from, hint) {
                    self.todo.push_back(Work::Dispatch(id));
                    return;
                }
                let Some(call) = self.gateway.calls.get_mut(&id) else { return };
                call.hops += 1;
                let again = call.hops <= HOPS_MAX;
                self.routes.set_leader(call.range, hint);
                call.hint = hint;
                if again {
                    self.todo.push_back(Work::Dispatch(id));
                }
            }
            // A lease that may have ended answers no read that is clipped: asked again it comes with its whole limit.
            Answer::TryLater => {
                call.caught_up.clear();
                if near {
                    call.leave_nearest();
                    self.todo.push_back(Work::Dispatch(id));
                }
            }
            Answer::Moved(places) => {
                if near {
                    call.leave_nearest();
                    // It has answered, and may well lead where the call goes now.
                    call.near_asked = None;
                }
                for place in &places {
                    let nodes = place.nodes.iter().map(|node| NodeId(*node)).collect();
                    self.routes.learn(place.range, &place.start, nodes);
                }
                let key = call.request.key().cloned();
                let to = key.as_ref().map(|key| self.routes.of_key(key)).filter(|to| *to != call.range);
                call.hops += 1;
                match to {
                    Some(range) => {
                        (call.range, call.sent_to, call.near) = (range, None, None);
                        if call.hops <= HOPS_MAX {
                            self.todo.push_back(Work::Dispatch(id));
                        }
                    }
                    None if key.is_some() => {}
                    // It is divided anew where bounds are known now that it does not keep to; else it waits for somebody who knows.
                    None if self.keeps_to_bounds(id) => {}
                    None => self.finish(now, id, Ok((from, Answer::Moved(places)))),
                }
            }
            mut answer => {
                let range = call.range;
                // Who waited is told once: another copy may have been.
                if let Answer::Locked { waited, .. } = &mut answer {
                    *waited |= call.copies > 1;
                }
                // Who relays asks whom it knows to lead, or leads itself: nobody can say whose answer it is. What was meant is no evidence.
                let relayed = call.relays.contains(&from);
                let teaches = call.near_asked != Some(from);
                let meant = call.via.map(|(_, at)| at);
                let by = match relayed {
                    false => from,
                    true if self.sabotage.trust_relays() => meant.unwrap_or(from),
                    true => NOBODY,
                };
                if let (
                    Answer::Locked { held, .. } | Answer::LockedMany { held, .. },
                    Request::Lock { txn, .. } | Request::LockMany { txn, .. },
                ) = (&answer, &call.request)
                {
                    let (txn, held) = (*txn, *held);
                    match relayed {
                        false => self.lock_granted(txn, from, held),
                        true => self.lock_granted_by_somebody(txn, range, [Some(from), meant], held),
                    }
                }
                if !relayed && teaches {
                    self.routes.set_leader(range, Some(from));
                }
                if near {
                    self.counters.near_reads.one();
                }
                if teaches {
                    self.spoke(range);
                }
                self.finish(now, id, Ok((by, answer)));
            }
        }
    }

    /// Whether a read of spans lies in its range as far as bounds are known here.
    fn keeps_to_bounds(&self, id: u64) -> bool {
        let Some(call) = self.gateway.calls.get(&id) else { return false };
        let Some(known) = self.routes.span(call.range) else { return false };
        match &call.request {
            Request::Scan { span, .. } | Request::Settled { span, .. } => known.covers(span),
            Request::GetMany { keys, .. } | Request::LockMany { keys, .. } => {
                keys.iter().all(|key| known.contains(key))
            }
            Request::Changed { seen, .. } => seen.iter().all(|one| match &one.end {
                None => known.contains(&one.start),
                Some(end) => known.covers(&Span { start: one.start.clone(), end: end.clone() }),
            }),
            _ => false,
        }
    }

    /// Nobody has answered, and nobody will in time.
    fn give_up(&mut self, now: &Reading, id: u64) {
        let Some(call) = self.gateway.calls.get(&id) else { return };
        let (range, key, hasty) = (call.range, call.request.first_key().cloned(), call.hasty);
        self.counters.requests_unavailable.one();
        let why = self.unavailable(range, key);
        self.in_vain(range, hasty);
        self.finish(now, id, Err(why));
    }

    fn finish(&mut self, now: &Reading, id: u64, result: Result<(NodeId, Answer), TxnError>) {
        let Some(call) = self.gateway.calls.get_mut(&id) else { return };
        match std::mem::replace(&mut call.owner, Owner::Nobody) {
            Owner::Operation(waker) => {
                call.result = Some(result);
                self.out.wakers.push(waker);
            }
            Owner::Coordinator(txn) => {
                let range = call.range;
                self.gateway.calls.remove(&id);
                if let Ok((_, answer)) = result {
                    self.coordinate(now, txn, range, id, answer);
                }
            }
            Owner::Voucher(txn) => {
                self.gateway.calls.remove(&id);
                self.vouched(now, txn, result);
            }
            Owner::Sender(txn) => {
                self.gateway.calls.remove(&id);
                self.part_answered(now, txn, id, result);
            }
            Owner::Reply(reply) => {
                self.gateway.calls.remove(&id);
                let result = match result {
                    Ok((_, Answer::Done)) => Ok(clock::Timestamp::MIN),
                    Ok((_, Answer::Refused(refusal))) => Err(CommitError::Refused(refusal)),
                    _ => Err(CommitError::Unanswered),
                };
                reply.give(result, &mut self.out.wakers);
            }
            Owner::Relay(node, theirs) => {
                self.gateway.calls.remove(&id);
                self.gateway.relays.remove(&(node, theirs));
                if let Ok((_, answer)) = result {
                    self.answer(Asker::Peer(node, theirs), answer);
                }
            }
            Owner::Keeper(asked_ns) => {
                if let Some(call) = self.gateway.calls.remove(&id) {
                    self.kept(asked_ns, &call.request, result);
                }
            }
            Owner::Nobody => drop(self.gateway.calls.remove(&id)),
        }
    }

    /// The result of an operation's call, if it is there; otherwise `waker` will be woken.
    pub fn poll_call(&mut self, id: u64, waker: &Waker) -> Option<Result<Answer, TxnError>> {
        self.poll_call_at(id, waker).map(|result| result.map(|(_, answer)| answer))
    }

    /// As [`Core::poll_call`], with who answered.
    pub fn poll_call_at(&mut self, id: u64, waker: &Waker) -> Option<Result<(NodeId, Answer), TxnError>> {
        let call = self.gateway.calls.get_mut(&id)?;
        if call.result.is_none() {
            call.owner = Owner::Operation(waker.clone());
            return None;
        }
        let call = self.gateway.calls.remove(&id)?;
        call.result
    }

    /// Nobody waits any more for a call in another's place.
    pub fn end_relay(&mut self, id: u64) {
        self.gateway.relays.retain(|_, (own, _)| *own != id);
        self.cancel(id);
    }

    /// Nobody waits for a call any more.
    pub fn cancel(&mut self, id: u64) {
        self.nearest_is_given_up(id);
        let Some(call) = self.gateway.calls.remove(&id) else { return };
        if let Some(shard) = self.shards.get_mut(&call.range) {
            shard.parked.remove(&Asker::Own(id));
        }
    }

    /// A transaction here has ended: its locks pass on, wherever it may hold some. The word leaves with the next outputs.
    pub fn unlock_soon(&mut self, txn: TxnId) -> bool {
        self.release_locks(txn);
        for node in self.gateway.locked_on.remove(&txn).unwrap_or_default().held.into_keys() {
            self.post.answers.push((node, Body::Unlock { txn, returned: None }));
        }
        !self.stirred.is_empty() || !self.post.answers.is_empty()
    }

    pub fn tick_gateway(&mut self, now: &Reading) {
        let ticks = self.ticks;
        self.gateway.mute.retain(|_, since| ticks.saturating_sub(*since) <= MUTE_TICKS);
        self.gateway.by_third.retain(|_, since| ticks.saturating_sub(*since) <= MUTE_TICKS);
        let mut over = Vec::new();
        self.gateway.relays.retain(|_, (own, asked)| {
            let goes_on = ticks.saturating_sub(*asked) <= RELAY_TICKS_MAX;
            over.extend((!goes_on).then_some(*own));
            goes_on
        });
        over.into_iter().for_each(|own| self.cancel(own));
        let mut silent = Vec::new();
        for (id, call) in &mut self.gateway.calls {
            if call.result.is_some() {
                continue;
            }
            call.hops = 0;
            if ticks.saturating_sub(call.sent_tick) >= RESEND_TICKS {
                silent.push(*id);
            }
        }
        let open = self.gateway.calls.iter().filter(|(_, call)| call.is_open() && call.may_give_up());
        let gone: Vec<u64> = open.filter(|(_, call)| self.is_in_vain(call)).map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|id| self.give_up(now, id));
        let open = self.gateway.calls.iter().filter(|(_, call)| call.is_open());
        let ended = open.filter(|(_, call)| call.ends_tick.is_some_and(|end| ticks >= end));
        let ended: Vec<(u64, RangeId)> = ended.map(|(id, call)| (*id, call.range)).collect();
        for (id, range) in ended {
            let why = self.unavailable(range, None);
            self.finish(now, id, Err(why));
        }
        for id in silent {
            let Some(call) = self.gateway.calls.get(&id) else { continue };
            // Who was believed to lead says nothing: the next one may know better.
            let believed = self.routes.get(call.range).and_then(|route| route.leader);
            let quiet = ticks.saturating_sub(call.alive_tick) > RESEND_TICKS;
            if quiet && believed.is_some() && believed == call.sent_to && believed != Some(self.options.node) {
                self.routes.set_leader(call.range, None);
                self.gateway.mute.extend(believed.map(|silent| (silent, ticks)));
            }
            self.nearest_is_silent(id);
            self.todo.push_back(Work::Dispatch(id));
        }
        self.tick_near();
        if ticks.is_multiple_of(LOCKS_ALIVE_TICKS) {
            let mut alive: BTreeMap<NodeId, Vec<TxnId>> = BTreeMap::new();
            for (txn, known) in &self.gateway.locked_on {
                self.gateway.by_third.extend(known.by_third.iter().map(|node| (*node, ticks)));
                for node in known.held.keys() {
                    alive.entry(*node).or_default().push(*txn);
                }
            }
            for (node, txns) in alive {
                for txns in txns.chunks(LOCKS_ALIVE_MAX) {
                    self.post.answers.push((node, Body::Locks { txns: txns.to_vec() }));
                }
            }
        }
    }
}
