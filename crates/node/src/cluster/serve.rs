//! The door of the ranges that are led here: reads and locks. (What changes a range goes through its log: `propose`.)
//!
//! Invariants:
//! 1. A read at `s`, uncertain up to `u`, is served only under a lease that reaches to both: nobody else has written there, or will.
//!    So a leader that was deposed and does not know it, or was asleep, may still serve what nobody can change, and nothing else. In
//!    particular a range that moved has no version in `(s, u]` that this leader does not know (design 4a.6).
//! 2. What was read at `s` stays: from then on the range stamps above `s`. Only this range does: the node's clock is not
//!    ratcheted, or one strict reader would make all who write on this node wait (design 4a.5).
//! 3. A read waits for what is in flight at or below `s`, and for prepares up to `u` (see `flights`).
//! 4. Who met an uncertain version here is told this node's own time with it: he moves past both, and then nothing that this node stamps any more can have
//!    been acknowledged before he began (000 section 5.4). He says so by a limit that is his snapshot, at this node only (`gateway`), and is answered under a lease
//!    that certainly holds: else another may have led, and stamped, since. Uncertain to him are still,
//!    of ranges that came here later, what was written before the lease began (design 4a.6), and transactions of several ranges that were prepared before and
//!    committed above, with another range's timestamp.
//! 5. A read that may take long is only let in while the core is held, and done by somebody who has the time ([`LongRead`]), once: whoever asks again meanwhile hears [`Answer::Waiting`].
//! 6. A request that must wait is parked, once for each number; whoever asks again hears [`Answer::Waiting`].

use super::core::{Core, group_of};
use super::holds::HOLD_TICKS_MAX;
use super::member::Member;
use super::seam::Outputs;
use super::shard::{Asker, PARKED_MAX, Parked, Shard};
use crate::versions::bounded;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::door::{Answer, Found, Look, Request, Seen};
use protocol::txn::{LockMode, LockReply, LockWait, RangeId, Span, TxnId, VersionStore, Wakeup, told_of};
use store::{Engine, SnapshotGuard, StoreError, Versions};

/// A parked request that was not asked again for so many ticks is dropped: its gateway is gone.
const PARKED_TICKS_MAX: u64 = 50;
/// A peer's transaction of which nothing was heard for so many ticks loses its locks.
const LOCK_TICKS_MAX: u64 = 50;
/// Rows of one answer, at most.
const ROWS_MAX: usize = 4096;
/// An answer with many values ends with the one by which they have this many bytes: what is behind it is asked for again.
const VALUES_BYTES_MAX: usize = 4 << 20;

/// What came of looking at a request.
pub(crate) enum Looked {
    Answer(Answer),
    /// It may be read.
    Read(Admitted),
    /// It waits for something in flight.
    Wait,
    /// It is a command: it goes through the log.
    Command(Request),
}

fn collected_or(error: StoreError) -> Result<Answer, StoreError> {
    match error {
        StoreError::Collected { oldest, key, .. } => Ok(Answer::Collected { oldest, key }),
        other => Err(other),
    }
}

/// A read that was let in. What it sees is all here and stays, whoever leads by the time that it is done: no version at or below its snapshot is added any
/// more (invariants 1 and 2), none goes while the snapshot is open, and a replica's versions are only added to (`snapshot`, invariant 1). So it needs no
/// lock, and one that waits for the disk holds up nobody. A version above the snapshot that comes meanwhile is met as uncertain, which costs a refresh.
pub(crate) struct Admitted {
    _open: SnapshotGuard,
    snapshot: Timestamp,
    limit: Timestamp,
    /// This node's own time, or the limit.
    present: Timestamp,
    what: What,
}

pub(super) enum What {
    Get {
        key: Bytes,
    },
    GetMany {
        keys: Vec<Bytes>,
    },
    /// `clear`: the part of `whole` where nothing is in flight, from the end where reading begins.
    Scan {
        whole: store::Span,
        clear: store::Span,
        reverse: bool,
        rows: usize,
        peek: bool,
    },
}

/// Reads that were let in and are not done yet, at most: beyond it the asker tries again.
pub const READING_MAX: usize = 1024;

/// A read that was let in, and is done while others have the core: [`Member::read`].
pub struct LongRead {
    asker: Asker,
    read: Admitted,
}

impl std::fmt::Debug for LongRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a read for {:?}", self.asker)
    }
}

/// A read of more keys looks for them while others have the core.
const KEYS_AT_ONCE_MAX: usize = 8;

impl Admitted {
    /// Whether it may take long.
    fn is_long(&self) -> bool {
        match &self.what {
            What::Get { .. } => false,
            What::GetMany { keys } => keys.len() > KEYS_AT_ONCE_MAX,
            What::Scan { .. } => true,
        }
    }

    /// Reads.
    pub fn read<E: Engine>(self, versions: &Versions<E>) -> Result<Answer, StoreError> {
        let (snapshot, limit) = (self.snapshot, self.limit);
        let past_both = |newer: Option<Timestamp>| newer.map(|at| at.max(self.present));
        let (whole, clear, reverse, rows, peek) = match self.what {
            What::Get { key } => {
                return versions.read(&key, snapshot, limit).map_or_else(collected_or, |read| {
                    let version = read.version.map(|version| (version.ts, version.value));
                    Ok(Answer::Value { version, newer: past_both(read.newer) })
                });
            }
            What::GetMany { keys } => {
                let (mut values, mut bytes) = (Vec::with_capacity(keys.len()), 0);
                for key in keys {
                    let read = match versions.read(&key, snapshot, limit) {
                        Ok(read) => read,
                        Err(error) => return collected_or(error),
                    };
                    let version = read.version.map(|version| (version.ts, version.value));
                    bytes += version.iter().flat_map(|(_, value)| value).map(Bytes::len).sum::<usize>();
                    values.push(Found { version, newer: past_both(read.newer) });
                    if bytes >= VALUES_BYTES_MAX {
                        break;
                    }
                }
                return Ok(Answer::Values(values));
            }
            What::Scan { whole, clear, reverse, rows, peek } => (whole, clear, reverse, rows, peek),
        };
        let scan = match versions.scan(&clear, snapshot, reverse, rows.clamp(1, ROWS_MAX)) {
            Err(error) => return collected_or(error),
            Ok(scan) => scan,
        };
        let covered = match &scan.rest {
            None => clear,
            Some(rest) if reverse => rest.end.clone()..clear.end,
            Some(rest) => clear.start..rest.start.clone(),
        };
        let newer = match limit > snapshot {
            true => versions.version_between_in(&covered, snapshot, limit)?.map(|(_, at)| at),
            false => None,
        };
        if newer.is_some() && !peek {
            return Ok(Answer::Rows { rows: Vec::new(), rest: None, newer: past_both(newer) });
        }
        let rest = match reverse {
            true => whole.start..covered.start,
            false => covered.end..whole.end,
        };
        let rest = (rest.start < rest.end).then_some(Span { start: rest.start, end: rest.end });
        let rows = scan.rows.into_iter().map(|(key, _, value)| (key, value)).collect();
        Ok(Answer::Rows { rows, rest, newer: None })
    }
}

/// What is there at once.
pub(crate) enum AtOnce {
    /// The answer.
    Answer(Answer),
    /// What takes no lock any more.
    Read(Admitted),
}

/// Whether nobody else can lead yet, whoever was elected: a successor waits until the lease's end is past for certain.
pub(crate) fn certainly_holds(now: &Reading, end: Timestamp) -> bool {
    now.trusted().is_some_and(|interval| interval.latest().physical_us() < end.physical_us())
}

impl<E: Engine> Member<E> {
    /// Reads what was let in; the outputs have the answer. From any thread: a read that waits for the disk holds up nobody but who sees to it. `now` is asked for when it is done.
    ///
    /// # Errors
    /// The store failed: stop the node.
    pub fn read(
        &self,
        now: impl FnOnce() -> Reading,
        LongRead { asker, read }: LongRead,
    ) -> Result<Outputs, StoreError> {
        let answer = read.read(self.versions())?;
        let now = &now();
        let mut core = self.look();
        core.reading.remove(&asker);
        core.answer(asker, answer);
        core.run(now)?;
        Ok(core.drain(now))
    }
}

impl<E: Engine> Core<E> {
    /// A request for a range. Answers now, later, or never (then it is asked again).
    pub fn serve(&mut self, now: &Reading, asker: Asker, range: RangeId, request: Request) -> Result<(), StoreError> {
        let asked_again = self.shards.get_mut(&range).and_then(|shard| shard.parked.get_mut(&asker));
        if let Some(parked) = asked_again {
            parked.asked_tick = self.ticks;
            if let Request::Hold { txn, .. } = request {
                self.holder_heard(txn);
            }
            self.answer(asker, Answer::Waiting);
            return Ok(());
        }
        if self.reading.contains(&asker) {
            self.answer(asker, Answer::Waiting);
            return Ok(());
        }
        self.serve_new(now, asker, range, request)
    }

    fn serve_new(&mut self, now: &Reading, asker: Asker, range: RangeId, request: Request) -> Result<(), StoreError> {
        let Some(end) = self.led_until(range) else {
            self.is_wanted(now, range);
            self.refer(asker, range);
            return Ok(());
        };
        // What this node's own want it asks itself: by way of another it may come when they are gone.
        let own = matches!(asker, Asker::Peer(..)) && request.owner_of_locks() == Some(self.me().0);
        if own || !self.may_grant(now, end, &request) {
            self.answer(asker, Answer::TryLater);
            return Ok(());
        }
        if request == Request::Time {
            self.lend(now, asker);
            return Ok(());
        }
        if let Request::Settled { span, least } = &request {
            return self.settle(now, asker, (range, end), span, *least);
        }
        match self.look(range, end, &request)? {
            Looked::Answer(answer) => self.answer(asker, answer),
            Looked::Read(read) if read.is_long() => match self.reading.len() < READING_MAX {
                true => {
                    self.reading.insert(asker);
                    self.out.reads.push(LongRead { asker, read });
                }
                false => self.answer(asker, Answer::TryLater),
            },
            Looked::Read(read) => {
                let answer = read.read(&self.store.0)?;
                self.answer(asker, answer);
            }
            Looked::Command(request) => {
                if let Some(request) = self.gather(asker, range, request) {
                    self.command(now, asker, range, request)?;
                }
            }
            Looked::Wait => {
                let asked_tick = self.ticks;
                match self.shards.get_mut(&range) {
                    Some(shard) if shard.parked.len() < PARKED_MAX => {
                        self.counters.txn_read_waits.one();
                        shard.parked.insert(asker, Parked { request, asked_tick });
                        self.waiting.insert(range);
                    }
                    _ => self.answer(asker, Answer::TryLater),
                }
            }
        }
        Ok(())
    }

    /// Invariant 4: whether a read whose uncertainty ends at its snapshot may be answered under a lease to `end`.
    pub fn may_clip(&self, now: &Reading, end: Timestamp) -> bool {
        certainly_holds(now, end) || self.sabotage.clip_under_any_lease()
    }

    /// The end of the lease under which a range is led here.
    pub fn led_until(&self, range: RangeId) -> Option<Timestamp> {
        let lease = self.replicas.lease(group_of(range));
        Some(lease.filter(|_| self.shards.get(&range).is_some_and(|shard| shard.led.is_some()))?.1)
    }

    /// Whether some range that is known is not led here under a lease.
    pub fn is_any_led_elsewhere(&self) -> bool {
        self.routes.ranges().any(|range| self.led_until(range).is_none())
    }

    /// Answers who asked a range that is not led here, or not yet.
    pub fn refer(&mut self, asker: Asker, range: RangeId) {
        let hint = self.hint(range);
        let answer = if self.leads(range) { Answer::TryLater } else { Answer::NotLeader { hint } };
        self.answer(asker, answer);
    }

    /// The answer to a read, or to a request for a lock, that needs neither time nor anybody else: its range is led here under a lease, and nothing is in the
    /// way. Who has to wait for a lock stands in its queue then, and asks again as a call.
    /// `caught_up`: its transaction has moved past what this node had stamped.
    pub fn at_once(
        &mut self,
        now: &Reading,
        range: RangeId,
        request: &mut Request,
        caught_up: bool,
    ) -> Result<Option<AtOnce>, StoreError> {
        use Request::{Changed, Get, Lock, Present, Scan};
        if !matches!(request, Get { .. } | Scan { .. } | Present { .. } | Changed { .. } | Lock { .. }) {
            return Ok(None);
        }
        let Some(end) = self.led_until(range) else { return Ok(None) };
        let limit = if caught_up && self.may_clip(now, end) { request.clip_limit() } else { None };
        let looked = self.look(range, end, &*request)?;
        // Where it has to wait it may be sent elsewhere.
        limit.into_iter().for_each(|limit| request.set_limit(limit));
        Ok(match looked {
            Looked::Answer(Answer::TryLater | Answer::Moved(_)) | Looked::Wait | Looked::Command(_) => None,
            Looked::Answer(answer) => Some(AtOnce::Answer(answer)),
            Looked::Read(read) => Some(AtOnce::Read(read)),
        })
    }

    /// Looks again at what waits in ranges where something changed. `false`: there was nothing to look at.
    pub fn serve_stirred(&mut self, now: &Reading) -> Result<bool, StoreError> {
        let Some(range) = self.stirred.pop_first() else { return Ok(false) };
        let Some(shard) = self.shards.get_mut(&range) else { return Ok(true) };
        for (asker, parked) in std::mem::take(&mut shard.parked) {
            let asked_tick = parked.asked_tick;
            self.serve_new(now, asker, range, parked.request)?;
            if let Some(again) = self.shards.get_mut(&range).and_then(|shard| shard.parked.get_mut(&asker)) {
                again.asked_tick = asked_tick;
            }
        }
        Ok(true)
    }

    fn look(&mut self, range: RangeId, end: Timestamp, request: &Request) -> Result<Looked, StoreError> {
        match request {
            Request::Get { key, look } => self.get(range, end, key, look),
            Request::GetMany { keys, look } => self.get_many(range, end, keys, look),
            Request::LockMany { txn, keys, mode, newer_than, returned } => {
                self.lock_many(range, *txn, (keys, *mode), *newer_than, *returned)
            }
            Request::Scan { span, look, reverse, rows } => self.scan(range, end, span, look, *reverse, *rows),
            Request::Present { key } => {
                let shard = self.shard(range)?;
                if !shard.range.span().contains(key) {
                    return Ok(Looked::Answer(self.moved(key)));
                }
                if self.in_flight(shard, key, Timestamp::MAX, Timestamp::MIN) {
                    return Ok(Looked::Wait);
                }
                Ok(Looked::Answer(Answer::Present(self.store.is_present(key)?)))
            }
            Request::Changed { seen, target } => self.changed(range, end, seen, *target),
            Request::Hold { txn, key, mode, wait } => self.hold_asked(range, *txn, key, *mode, *wait),
            Request::Keep { held } => self.keep_asked(range, held),
            Request::Lock { txn, key, mode, wait, newer_than, returned } => {
                if !self.shard(range)?.range.span().contains(key) {
                    return Ok(Looked::Answer(self.moved(key)));
                }
                if txn.node != self.me().0 && !self.returned(*txn, *returned) {
                    return Ok(Looked::Answer(Answer::TryLater));
                }
                let mut wakeups = Vec::new();
                self.counters.lock_requests.one();
                let reply = self.locks.request(*txn, key, *mode, *wait, &mut wakeups);
                self.woken(&wakeups);
                if let Some(owner) = self.lock_owners.get_mut(txn) {
                    owner.heard = self.ticks;
                }
                let deletes = *mode == LockMode::Update && *wait == LockWait::Wait;
                self.locked(range, *txn, reply, (key, deletes), *newer_than)
            }
            command => Ok(Looked::Command(command.clone())),
        }
    }

    /// What is here of a read, whoever leads: see `follow`.
    pub fn look_up(&mut self, range: RangeId, request: &Request) -> Result<Option<Answer>, StoreError> {
        match self.look(range, Timestamp::MAX, request)? {
            Looked::Answer(answer) => Ok(Some(answer)),
            Looked::Read(read) => read.read(&self.store.0).map(Some),
            Looked::Wait | Looked::Command(_) => Ok(None),
        }
    }

    pub(super) fn in_flight(&self, shard: &Shard, key: &[u8], snapshot: Timestamp, limit: Timestamp) -> bool {
        !self.sabotage.ignore_inflight() && shard.flights.on_key(key, snapshot, limit)
    }

    /// Invariant 1: the lease reaches as far as the read looks; `None`: it does not.
    pub(super) fn covered(&self, range: RangeId, end: Timestamp, look: &Look) -> Option<Timestamp> {
        let mut limit = look.limit.max(look.snapshot);
        // Invariant 4.
        if look.limit == look.snapshot && !self.sabotage.forget_late_commits() {
            let began = self.replicas.lease(group_of(range)).map_or(Timestamp::MIN, |(start, _)| start);
            let late = self.shards.get(&range).map_or(Timestamp::MIN, |shard| shard.late.last_above(look.snapshot));
            limit = limit.max(began).max(late);
        }
        if self.is_splitting(range, limit) {
            return None;
        }
        if self.sabotage.clip_limit() {
            return (look.snapshot <= end).then(|| limit.min(self.clock.last()).max(look.snapshot));
        }
        (limit <= end).then_some(limit)
    }

    /// Invariant 2.
    pub(super) fn keep_below(&mut self, range: RangeId, at: Timestamp) {
        if self.sabotage.reads_ratchet_the_node() {
            self.clock.ratchet(at);
        }
        if let Some(shard) = self.shards.get_mut(&range) {
            shard.floor = shard.floor.max(at);
        }
    }

    fn get(&mut self, range: RangeId, end: Timestamp, key: &Bytes, look: &Look) -> Result<Looked, StoreError> {
        let Some(limit) = self.covered(range, end, look) else {
            return Ok(Looked::Answer(Answer::TryLater));
        };
        let shard = self.shard(range)?;
        if let Some(instead) = self.instead_of_a_value(shard, key, look, limit) {
            return Ok(instead);
        }
        self.admit(range, look, limit, What::Get { key: key.clone() })
    }

    /// What a read of a key meets that is not let in.
    pub(super) fn instead_of_a_value(
        &self,
        shard: &Shard,
        key: &Bytes,
        look: &Look,
        limit: Timestamp,
    ) -> Option<Looked> {
        if !shard.range.span().contains(key) {
            return Some(Looked::Answer(self.moved(key)));
        }
        let oldest = shard.range.collected_of(key);
        if look.snapshot < oldest {
            return Some(Looked::Answer(Answer::Collected { oldest, key: Some(key.clone()) }));
        }
        (!look.peek && self.in_flight(shard, key, look.snapshot, limit)).then_some(Looked::Wait)
    }

    /// Lets a read in: from now on it stays what it is.
    pub(super) fn admit(
        &mut self,
        range: RangeId,
        look: &Look,
        limit: Timestamp,
        what: What,
    ) -> Result<Looked, StoreError> {
        // Another thread may forget meanwhile.
        let _open = match self.store.0.open_snapshot(look.snapshot) {
            Ok(open) => open,
            Err(error) => return collected_or(error).map(Looked::Answer),
        };
        self.keep_below(range, look.snapshot);
        let present = match self.sabotage.never_catch_up() {
            true => Timestamp::MIN,
            false => self.clock.last().max(self.stamped).min(limit),
        };
        Ok(Looked::Read(Admitted { _open, snapshot: look.snapshot, limit, present, what }))
    }

    fn scan(
        &mut self,
        range: RangeId,
        end: Timestamp,
        span: &Span,
        look: &Look,
        reverse: bool,
        rows: usize,
    ) -> Result<Looked, StoreError> {
        let Some(limit) = self.covered(range, end, look) else {
            return Ok(Looked::Answer(Answer::TryLater));
        };
        let shard = self.shard(range)?;
        if !shard.range.span().covers(span) {
            return Ok(Looked::Answer(self.moved_span(span)));
        }
        let whole = bounded(span);
        if whole.start >= whole.end {
            return Ok(Looked::Answer(Answer::Rows { rows: Vec::new(), rest: None, newer: None }));
        }
        let oldest = shard.range.collected_for(span);
        if look.snapshot < oldest {
            return Ok(Looked::Answer(Answer::Collected { oldest, key: Some(span.start.clone()) }));
        }
        let waits = !look.peek && !self.sabotage.ignore_inflight();
        let clear = match shard.flights.in_span(span, look.snapshot, limit, reverse).filter(|_| waits) {
            None => whole.clone(),
            Some(key) if reverse => crate::transaction::after(key)..whole.end.clone(),
            Some(key) => whole.start.clone()..key.clone(),
        };
        if clear.start >= clear.end {
            return Ok(Looked::Wait);
        }
        self.admit(range, look, limit, What::Scan { whole, clear, reverse, rows, peek: look.peek })
    }

    fn changed(
        &mut self,
        range: RangeId,
        end: Timestamp,
        seen: &[Seen],
        target: Timestamp,
    ) -> Result<Looked, StoreError> {
        if target > end || self.is_splitting(range, target) {
            return Ok(Looked::Answer(Answer::TryLater));
        }
        let shard = self.shard(range)?;
        for one in seen {
            let span = Span { start: one.start.clone(), end: one.end.clone().unwrap_or_default() };
            let (inside, waits) = match &one.end {
                None => {
                    let inside = shard.range.span().contains(&one.start);
                    (inside, self.in_flight(shard, &one.start, target, Timestamp::MIN))
                }
                Some(_) => {
                    let flying = shard.flights.in_span(&span, target, Timestamp::MIN, false).is_some();
                    (shard.range.span().covers(&span), flying && !self.sabotage.ignore_inflight())
                }
            };
            if !inside {
                return Ok(Looked::Answer(self.moved_span(&span)));
            }
            if waits {
                return Ok(Looked::Wait);
            }
        }
        self.keep_below(range, target);
        let (versions, state) = (&self.store.0, &self.shard(range)?.range);
        for one in seen {
            let collected = match &one.end {
                None => versions.collected_of(&one.start).max(state.collected_of(&one.start)),
                Some(end) => {
                    let asked = Span { start: one.start.clone(), end: end.clone() };
                    versions.collected_in(&bounded(&asked)).max(state.collected_for(&asked))
                }
            };
            // What was deleted after it was seen may be forgotten by now: nobody can say that it is unchanged.
            let changed = match &one.end {
                _ if one.since < collected => Some((told_of(&one.start, one.end.as_ref()), collected)),
                None => versions.version_between(&one.start, one.since, target)?.map(|at| (one.start.clone(), at)),
                Some(end) => {
                    let span = bounded(&Span { start: one.start.clone(), end: end.clone() });
                    versions.version_between_in(&span, one.since, target)?
                }
            };
            if changed.is_some() {
                return Ok(Looked::Answer(Answer::Changed(changed)));
            }
        }
        Ok(Looked::Answer(Answer::Changed(None)))
    }

    /// The lock table has spoken. Whoever holds the lock sees the newest version: what is in flight is waited for.
    pub(super) fn locked(
        &mut self,
        range: RangeId,
        txn: TxnId,
        reply: LockReply,
        (key, deletes): (&Bytes, bool),
        newer_than: Option<Timestamp>,
    ) -> Result<Looked, StoreError> {
        let waited = match reply {
            LockReply::Granted { waited } => waited,
            LockReply::Queued => return Ok(Looked::Wait),
            LockReply::Busy => return Ok(Looked::Answer(Answer::Busy)),
            LockReply::Deadlock(circle) => {
                self.counters.txn_deadlocks.one();
                let circle = circle.into_iter().map(|waiter| (waiter.txn, waiter.key)).collect();
                return Ok(Looked::Answer(Answer::Deadlock(circle)));
            }
        };
        let Some(snapshot) = newer_than else {
            return Ok(Looked::Answer(Answer::Locked { waited, newer: None, held: self.locks.held(txn) as u64 }));
        };
        if self.is_undecided(self.shard(range)?, key, deletes) {
            // Whoever does not want to wait for a lock waits for this all the same: it ends by itself.
            return Ok(Looked::Wait);
        }
        let newer = self.store.0.newest_above(key, snapshot)?;
        // As if it had been waited for: who refers is to be seen.
        let waited = waited || deletes && self.is_referred_to_since(key, snapshot);
        Ok(Looked::Answer(Answer::Locked { waited, newer, held: self.locks.held(txn) as u64 }))
    }

    /// Whether something is on its way that whoever locks a key is to see: a write of it; and where he may be about to delete it, what refers to it.
    pub(super) fn is_undecided(&self, shard: &Shard, key: &[u8], deletes: bool) -> bool {
        self.in_flight(shard, key, Timestamp::MAX, Timestamp::MIN) || deletes && shard.range.is_referred_to(key)
    }

    /// Whether somebody has come to refer to a key above a snapshot: who may be about to delete it is to see that.
    pub(super) fn is_referred_to_since(&self, key: &[u8], snapshot: Timestamp) -> bool {
        !self.sabotage.forget_who_refers() && self.references.newest_above(key, snapshot).is_some()
    }

    pub fn woken(&mut self, wakeups: &[Wakeup]) {
        if !wakeups.is_empty() {
            self.stirred.extend(&self.waiting);
        }
    }

    /// A transaction's locks here pass on.
    pub fn release_locks(&mut self, txn: TxnId) {
        let mut wakeups = Vec::new();
        self.locks.release(txn, &mut wakeups);
        self.lock_owners.remove(&txn);
        self.forget_lock_requests(txn, None);
        self.woken(&wakeups);
    }

    /// A transaction waits for no lock any more.
    pub fn cancel_lock_wait(&mut self, txn: TxnId) {
        let mut wakeups = Vec::new();
        self.locks.cancel(txn, &mut wakeups);
        self.woken(&wakeups);
    }

    /// Locks and parked requests of gateways that are gone.
    pub fn tick_locks(&mut self) {
        let ticks = self.ticks;
        let gone: Vec<TxnId> = self
            .lock_owners
            .iter()
            .filter(|(_, owner)| {
                let most = if owner.lasting { HOLD_TICKS_MAX } else { LOCK_TICKS_MAX };
                ticks.saturating_sub(owner.heard) > most
            })
            .map(|(txn, _)| *txn)
            .collect();
        for txn in gone {
            self.counters.locks_expired.one();
            self.release_locks(txn);
        }
        let shards = &mut self.shards;
        self.waiting.retain(|range| {
            let Some(shard) = shards.get_mut(range) else { return false };
            shard.parked.retain(|asker, parked| {
                matches!(asker, Asker::Own(_)) || ticks.saturating_sub(parked.asked_tick) <= PARKED_TICKS_MAX
            });
            !shard.parked.is_empty()
        });
    }
}
