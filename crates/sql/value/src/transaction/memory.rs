//! A small [`Kv`] in memory: what tests of this crate run on.
//!
//! Problem: sessions, plans and the catalog must be tested without a node. Idea: one ordered map of versions behind one
//! mutex, snapshots as numbers, certification at commit exactly as design §4 words it, advisory locks as a map of holders.
//!
//! 1. A commit timestamp is greater than every earlier one and than every snapshot taken before it.
//! 2. A commit is refused if a key that it writes, or a span that it must certify, has a version above the snapshot at
//!    which the transaction read it; or a key that must be present has no value.
//! 3. Snapshots move up (in `lock`) only if nothing read so far has changed in between.
//!
//! Caveats: versions are never collected; time is a counter, so a run repeats exactly; there is no uncertainty.

mod bounded;
mod breaks;
mod circles;
mod reads;

use self::reads::{Read, key_span, restart, visible};
use super::{
    Admin, AdminReply, BeginOptions, Committed, Consistency, Footprint, Interrupt, Isolation, Kv, KvError, LockMode,
    LockOwner, LockTimeout, LockWait, Patience, Pick, RowWaits, ScanChunk, ScanRequest, ShownLock, Span, Sweep,
    Transaction, TxnNumber, TxnStats, Wait,
};
use bytes::Bytes;
use clock::Timestamp;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// So many keys are locked together.
const LOCKED_TOGETHER: usize = 3;

/// Where the counter that stands for time begins: 2026-01-01, microseconds since the Unix epoch.
pub(crate) const EPOCH_US: u64 = 1_767_225_600_000_000;
/// How often a waiting lock request looks at its interrupt.
const LOCK_POLL_MS: u64 = 5;

type Versions = Vec<(Timestamp, Option<Bytes>)>;

#[derive(Clone, Default)]
struct State {
    rows: BTreeMap<Bytes, Versions>,
    splits: Vec<Bytes>,
    time_us: u64,
    lag_us: u64,
    next_txn: u64,
    locks: BTreeMap<Bytes, Vec<(u64, LockMode)>>,
    waits: BTreeMap<u64, (Bytes, LockMode)>,
    /// Of which session a transaction that has locked is.
    sessions: BTreeMap<u64, u64>,
    /// See [`MemoryKv::careless`].
    careless: bool,
    /// See [`MemoryKv::far`].
    far: bool,
    /// See [`MemoryKv::heedless`].
    heedless: bool,
    /// See [`MemoryKv::unguarded`].
    unguarded: bool,
    /// See [`MemoryKv::grasping`].
    grasping: bool,
    /// See [`MemoryKv::within`].
    writes_max: Option<usize>,
    /// See [`MemoryKv::with_room_for`].
    room_bytes: Option<u64>,
    /// When a key was referred to last: by a commit that relied on its being present.
    referred: BTreeMap<Bytes, Timestamp>,
}

impl State {
    fn tick(&mut self) -> Timestamp {
        self.time_us += 1;
        Timestamp::new(EPOCH_US + self.time_us, 0)
    }

    fn changed_after(&self, span: &Span, after: Timestamp) -> Option<Bytes> {
        if span.start >= span.end {
            return None;
        }
        self.rows
            .range::<Bytes, _>((Bound::Included(&span.start), Bound::Excluded(&span.end)))
            .find(|(_, versions)| versions.last().is_some_and(|(ts, _)| *ts > after))
            .map(|(key, _)| key.clone())
    }

    fn referred_above(&self, key: &Bytes, above: Timestamp) -> bool {
        !self.unguarded && self.referred.get(key).is_some_and(|at| *at > above)
    }

    fn is_present(&self, key: &[u8]) -> bool {
        self.rows.get(key).and_then(|versions| versions.last()).is_some_and(|(_, value)| value.is_some())
    }

    /// Who keeps `txn` from a key: its holders, and older transactions that wait for it, unless it holds the key already.
    fn in_the_way(&self, txn: u64, key: &Bytes, mode: LockMode) -> Vec<u64> {
        let holders =
            self.locks.get(key).into_iter().flatten().filter(|(holder, held)| *holder != txn && held.excludes(mode));
        let older = self.waits.range(..txn).filter(|_| self.held(txn, key).is_none());
        let older = older.filter(|(_, (waited, wanted))| waited == key && wanted.excludes(mode));
        holders.map(|(holder, _)| *holder).chain(older.map(|(waiter, _)| *waiter)).collect()
    }

    fn held(&self, txn: u64, key: &Bytes) -> Option<LockMode> {
        self.locks.get(key)?.iter().find(|(holder, _)| *holder == txn).map(|(_, mode)| *mode)
    }

    /// Sets the mode in which a transaction holds a key.
    fn set_held(&mut self, txn: u64, key: &Bytes, mode: Option<LockMode>) {
        let holders = self.locks.entry(key.clone()).or_default();
        holders.retain(|(holder, _)| *holder != txn);
        holders.extend(mode.map(|mode| (txn, mode)));
        if holders.is_empty() {
            self.locks.remove(key);
        }
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    released: Condvar,
}

/// The in-memory database.
#[derive(Clone, Default)]
pub struct MemoryKv(Arc<Shared>);

impl MemoryKv {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }
    /// One that says that keys may have to be asked for elsewhere, though they are here: whoever asks ahead there does.
    pub fn far() -> Self {
        let kv = Self::default();
        kv.0.state.lock().far = true;
        kv
    }
    /// Another one that holds what this one does now: a copy that is put in its place, or runs beside it.
    pub fn copied(&self) -> Self {
        let copy = Self::default();
        *copy.0.state.lock() = self.0.state.lock().clone();
        copy
    }
    /// Moves time on, microseconds.
    pub fn advance_us(&self, us: u64) {
        self.0.state.lock().time_us += us;
    }
    /// From now on only what is so old is read without asking anybody, microseconds.
    pub fn lags_by_us(&self, us: u64) {
        self.0.state.lock().lag_us = us;
    }
    /// Nobody holds anything any more, and those who did hear nothing of it: who led here lost its lock table, or takes them for dead.
    pub fn loses_locks(&self) {
        self.0.state.lock().locks.clear();
        self.0.released.notify_all();
    }
}

impl Kv for MemoryKv {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        let mut state = self.0.state.lock();
        let now = state.tick();
        let snapshot = match options.as_of {
            Some(asked) if asked > now => {
                return Err(KvError::SnapshotUnavailable { asked, reason: "it lies in the future".into(), key: None });
            }
            Some(asked) => asked,
            None if options.token > now => {
                let (asked, reason) = (options.token, "it lies in the future".into());
                return Err(KvError::SnapshotUnavailable { asked, reason, key: None });
            }
            None => now,
        };
        state.next_txn += 1;
        let id = state.next_txn;
        state.sessions.extend(options.session.map(|session| (id, session)));
        Ok(Box::new(MemoryTransaction {
            id,
            kv: self.0.clone(),
            snapshot,
            isolation: options.isolation,
            consistency: options.consistency,
            read_only: options.read_only || options.as_of.is_some(),
            interrupt: options.interrupt.clone(),
            lock_timeout: options.lock_timeout.clone(),
            writes: BTreeMap::new(),
            undo: Vec::new(),
            marks: Vec::new(),
            lock_marks: Vec::new(),
            locks_noted: 0,
            present: Vec::new(),
            over: Default::default(),
            unreferred: Vec::new(),
            relied: Vec::new(),
            past: options.as_of.is_some(),
            reads: Vec::new(),
            locks: Vec::new(),
            refreshes: 0,
            peeks: false,
            done: false,
        }))
    }

    fn unique_id(&self) -> u64 {
        self.0.state.lock().tick().as_u64() >> 4
    }

    fn freshest(&self, least: Timestamp) -> Timestamp {
        let lag_us = self.0.state.lock().lag_us;
        self.ago(lag_us).max(least)
    }

    fn now_us(&self) -> i64 {
        self.0.state.lock().tick().physical_us() as i64
    }

    fn load(&self, rows: &[(Bytes, Bytes)], _: &Patience) -> Result<bool, KvError> {
        let mut state = self.0.state.lock();
        let at = state.tick();
        for (key, value) in rows {
            state.rows.entry(key.clone()).or_default().push((at, Some(value.clone())));
        }
        Ok(true)
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        self.0.state.lock().room_bytes.is_none_or(|room| bytes <= room)
    }

    fn admin(&self, request: Admin) -> Result<AdminReply, KvError> {
        let mut state = self.0.state.lock();
        match request {
            Admin::Split(key) => {
                if !state.splits.contains(&key) {
                    state.splits.push(key);
                    state.splits.sort();
                }
                Ok(AdminReply::Done)
            }
            Admin::Ranges(span) => {
                let starts = std::iter::once(Bytes::new()).chain(state.splits.iter().cloned());
                let all: Vec<(Bytes, u64)> = starts.zip(1..).collect();
                let first = all.iter().rposition(|(start, _)| *start <= span.start).unwrap_or(0);
                Ok(AdminReply::Ranges(all.into_iter().skip(first).filter(|(start, _)| *start < span.end).collect()))
            }
        }
    }

    fn look_at_row_waits(&self, look: &mut dyn FnMut(&dyn RowWaits)) {
        look(&*self.0.state.lock());
    }

    fn shown_locks(&self, contended: bool, (from, skipped): (&[u8], usize), max: usize) -> Vec<ShownLock> {
        let state = self.0.state.lock();
        let number = |serial: u64| TxnNumber { node: 0, serial };
        let awaited = |key: &Bytes| state.waits.values().any(|(known, _)| known == key);
        let behind = (Bound::Included(from), Bound::Unbounded);
        let locks = state.locks.range::<[u8], _>(behind).filter(|(key, _)| !contended || awaited(key));
        let of_key = |(key, holders): (&Bytes, &Vec<(u64, LockMode)>)| {
            let lock = |txn: u64, mode, before: Option<Vec<u64>>| ShownLock {
                key: key.clone(),
                txn: number(txn),
                mode,
                granted: before.is_none(),
                before: before.unwrap_or_default().into_iter().map(number).collect(),
            };
            let held = holders.iter().map(|(txn, mode)| lock(*txn, *mode, None));
            let waiting = state.waits.iter().filter(|(_, (known, _))| known == key);
            let waiting = waiting.map(|(txn, (_, mode))| lock(*txn, *mode, Some(state.in_the_way(*txn, key, *mode))));
            let skipped = if key[..] == *from { skipped } else { 0 };
            held.chain(waiting).skip(skipped).collect::<Vec<_>>()
        };
        locks.flat_map(of_key).take(max).collect()
    }

    fn lock_owners(&self) -> Vec<LockOwner> {
        let state = self.0.state.lock();
        let mut all: BTreeMap<u64, usize> = BTreeMap::new();
        state.locks.values().flatten().for_each(|(holder, _)| *all.entry(*holder).or_default() += 1);
        let held = |txn: u64| all.get(&txn).copied().unwrap_or(0);
        let owner = |(txn, session): (&u64, &u64)| LockOwner {
            txn: TxnNumber { node: 0, serial: *txn },
            session: Some(*session),
            lasting: false,
            held: held(*txn),
        };
        let owners = state.sessions.iter().map(owner);
        owners.filter(|owner| owner.held > 0 || state.waits.contains_key(&owner.txn.serial)).collect()
    }

    fn internal_table(&self, _name: &str) -> Option<(Vec<String>, Vec<Vec<Option<String>>>)> {
        None
    }
}

struct MemoryTransaction {
    id: u64,
    kv: Arc<Shared>,
    snapshot: Timestamp,
    isolation: Isolation,
    consistency: Consistency,
    read_only: bool,
    past: bool,
    interrupt: Interrupt,
    lock_timeout: LockTimeout,
    writes: BTreeMap<Bytes, Option<Bytes>>,
    undo: Vec<(Bytes, Option<Option<Bytes>>)>,
    marks: Vec<usize>,
    lock_marks: Vec<usize>,
    locks_noted: usize,
    /// Keys that must have a value at the commit.
    present: Vec<Bytes>,
    /// Writes that are not certified.
    over: std::collections::BTreeSet<Bytes>,
    /// Keys to which nobody may have come to refer since a snapshot, and how many marks there were.
    unreferred: Vec<(Bytes, Timestamp, usize)>,
    /// Keys relied upon, and how many marks there were.
    relied: Vec<(Read, usize)>,
    reads: Vec<Read>,
    /// What was locked, in order, with the mode held before.
    locks: Vec<(Bytes, Option<LockMode>)>,
    refreshes: u64,
    /// What is read now is not remembered.
    peeks: bool,
    done: bool,
}

impl MemoryTransaction {
    fn note_read(&mut self, span: Span, certified: bool) {
        if self.peeks {
            return;
        }
        let certified = certified || self.isolation == Isolation::Serializable;
        let at = self.snapshot;
        if let Some(last) = self.reads.last_mut()
            && last.certified == certified
            && last.at == at
            && last.span.end == span.start
        {
            last.span.end = span.end;
            return;
        }
        self.reads.push(Read { span, at, certified });
    }

    fn read(&mut self, key: &[u8], certified: bool) -> Result<Option<Bytes>, KvError> {
        if let Some(own) = self.writes.get(key) {
            return Ok(own.clone());
        }
        self.note_read(key_span(key), certified);
        let state = self.kv.state.lock();
        Ok(state.rows.get(key).and_then(|versions| visible(versions, self.snapshot)))
    }

    fn scan_with(&mut self, request: &ScanRequest, certified: bool) -> Result<ScanChunk, KvError> {
        let span = &request.span;
        if span.start >= span.end || request.limit == 0 {
            return Ok(ScanChunk::default());
        }
        let bounds = (Bound::Included(&span.start), Bound::Excluded(&span.end));
        let mut merged: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        {
            // Twice the limit, plus own writes, is enough unless most rows were deleted; then the loop goes on to the end.
            let state = self.kv.state.lock();
            let mut found = 0;
            let mut take = |key: &Bytes, versions: &Versions| {
                if !self.writes.contains_key(key)
                    && let Some(value) = visible(versions, self.snapshot)
                {
                    merged.insert(key.clone(), value);
                    found += 1;
                }
                found <= request.limit
            };
            if request.reverse {
                state.rows.range::<Bytes, _>(bounds).rev().all(|(k, v)| take(k, v));
            } else {
                state.rows.range::<Bytes, _>(bounds).all(|(k, v)| take(k, v));
            }
        }
        for (key, value) in self.writes.range::<Bytes, _>(bounds) {
            if let Some(value) = value {
                merged.insert(key.clone(), value.clone());
            }
        }
        let mut rows: Vec<(Bytes, Bytes)> = merged.into_iter().collect();
        if request.reverse {
            rows.reverse();
        }
        let more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let rest = match rows.last() {
            Some((last, _)) if more && request.reverse => Some(span.start.clone()..last.clone()),
            Some((last, _)) if more => Some(key_span(last).end..span.end.clone()),
            _ => None,
        };
        let covered = match &rest {
            None => span.clone(),
            Some(rest) if request.reverse => rest.end.clone()..span.end.clone(),
            Some(rest) => span.start.clone()..rest.start.clone(),
        };
        self.note_read(covered, certified);
        Ok(ScanChunk { rows, rest })
    }

    fn write(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), KvError> {
        if self.read_only {
            return Err(KvError::ReadOnly);
        }
        self.refuse_more()?;
        let before = self.writes.insert(key.clone(), value);
        self.undo.push((key, before));
        Ok(())
    }

    /// Moves the snapshot to now if nothing read so far has changed (invariant 3).
    fn refresh(&mut self) -> Result<(), KvError> {
        let kv = self.kv.clone();
        let mut state = kv.state.lock();
        let loose = self.isolation == Isolation::ReadCommitted;
        for read in self.reads.iter().filter(|r| r.certified || !loose).chain(self.relied.iter().map(|(r, _)| r)) {
            if let Some(key) = state.changed_after(&read.span, read.at) {
                return Err(restart(&key));
            }
        }
        for key in self.writes.keys().filter(|key| !self.over.contains(*key)) {
            if state.rows.get(key).and_then(|v| v.last()).is_some_and(|(ts, _)| *ts > self.snapshot) {
                return Err(restart(key));
            }
        }
        self.snapshot = state.tick();
        for read in self.reads.iter_mut().chain(self.relied.iter_mut().map(|(r, _)| r)) {
            read.at = self.snapshot;
        }
        self.refreshes += 1;
        Ok(())
    }

    /// Invariant 2.
    fn certify(&self, state: &State) -> Result<(), KvError> {
        for read in self.reads.iter().chain(self.relied.iter().map(|(r, _)| r)).filter(|r| r.certified) {
            if let Some(key) = state.changed_after(&read.span, read.at) {
                return Err(restart(&key));
            }
        }
        let gone = |key: &&Bytes| !self.writes.contains_key(*key) && !state.is_present(key);
        if let Some(key) = self.present.iter().find(gone) {
            return Err(restart(key));
        }
        let mut unreferred = self.unreferred.iter();
        if let Some((key, _, _)) = unreferred.find(|(key, since, _)| state.referred_above(key, *since)) {
            return Err(restart(key));
        }
        let newest = |key: &Bytes| state.rows.get(key).and_then(|v| v.last()).map(|(ts, _)| *ts);
        let mut certified = self.writes.keys().filter(|key| !self.over.contains(*key));
        match certified.find(|key| newest(key).is_some_and(|ts| ts > self.snapshot)) {
            Some(key) => Err(restart(key)),
            None => Ok(()),
        }
    }

    fn acquire(&mut self, key: &Bytes, mode: LockMode, wait: LockWait) -> Result<bool, KvError> {
        let mut state = self.kv.state.lock();
        let mut waited_ms = 0;
        let mut waiting = None;
        loop {
            let held = state.held(self.id, key);
            if held.is_some_and(|held| held >= mode) {
                return Ok(true);
            }
            if state.in_the_way(self.id, key, mode).is_empty() {
                state.set_held(self.id, key, Some(mode));
                self.locks.push((key.clone(), held));
                return Ok(true);
            }
            match wait {
                LockWait::Skip => return Ok(false),
                LockWait::NoWait => {
                    return Err(KvError::LockNotAvailable { key: Some(key.clone()), waited: false });
                }
                LockWait::Wait => {}
            }
            if let Some(circle) = state.deadlock(self.id, key, mode) {
                return Err(KvError::Deadlock { circle });
            }
            if self.interrupt.is_raised() {
                return Err(KvError::Interrupted);
            }
            if self.lock_timeout.is_over_after(waited_ms * 1000) {
                return Err(KvError::LockNotAvailable { key: Some(key.clone()), waited: true });
            }
            let now_us = (EPOCH_US + state.time_us) as i64;
            waiting.get_or_insert_with(|| self.interrupt.begin_wait_at(Wait::Row, now_us));
            state.waits.insert(self.id, (key.clone(), mode));
            self.kv.released.wait_for(&mut state, Duration::from_millis(LOCK_POLL_MS));
            state.waits.remove(&self.id);
            waited_ms += LOCK_POLL_MS;
        }
    }

    fn finish(&mut self) {
        if self.done {
            return;
        }
        self.done = true;
        self.unlock(0);
        self.kv.state.lock().sessions.remove(&self.id);
    }

    /// Gives back all locks but the first `keep` that were taken.
    fn unlock(&mut self, keep: usize) {
        let mut state = self.kv.state.lock();
        for (key, before) in self.locks.drain(keep.min(self.locks.len())..).rev() {
            state.set_held(self.id, &key, before);
        }
        drop(state);
        self.kv.released.notify_all();
    }
}

impl Transaction for MemoryTransaction {
    fn is_far(&self) -> bool {
        self.kv.state.lock().far
    }
    fn lock_ahead(&mut self, keys: &[Bytes], _: LockMode) {
        let distinct: std::collections::BTreeSet<&Bytes> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len(), "a key is named once");
    }
    fn scan_ahead(&mut self, requests: &[ScanRequest]) -> Result<bool, KvError> {
        Ok(!requests.is_empty() && self.is_far())
    }
    fn snapshot(&self) -> Timestamp {
        self.snapshot
    }
    /// As if something had been in the way for as long as replicas lag.
    fn negotiate(&mut self, _: &[Span], _: Timestamp) -> Result<Timestamp, KvError> {
        let mut state = self.kv.state.lock();
        let now = state.tick();
        Ok(Timestamp::new(now.physical_us() - state.lag_us, 0))
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.read(key, false)
    }
    fn get_certified(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.read(key, true)
    }
    fn scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.scan_with(request, false)
    }
    fn scan_certified(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.scan_with(request, true)
    }

    fn sweep(&mut self, span: &Span, limit: usize, certified: bool) -> Result<Option<Sweep>, KvError> {
        if span.start < span.end && self.writes.range(span.clone()).next().is_some() {
            return Ok(None);
        }
        let request = ScanRequest { span: span.clone(), reverse: false, limit };
        self.scan_with(&request, certified).map(|chunk| Some(chunk.into()))
    }
    fn sweep_picked(
        &mut self,
        span: &Span,
        limit: usize,
        certified: bool,
        pick: &mut Pick<'_>,
    ) -> Result<Option<Sweep>, KvError> {
        Sweep::picked(span, limit, pick, |span, limit| self.sweep(span, limit, certified))
    }

    fn peek(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.peeks = true;
        let found = self.read(key, false);
        self.peeks = false;
        found
    }
    fn peek_scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.peeks = true;
        let chunk = self.scan_with(request, false);
        self.peeks = false;
        chunk
    }

    fn observe(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.peek(key)
    }
    fn observe_scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.peek_scan(request)
    }
    fn guards_references(&self) -> bool {
        true
    }
    fn unreferred(&mut self, key: &Bytes, since: Timestamp) -> bool {
        self.unreferred.push((key.clone(), since, self.marks.len()));
        true
    }
    fn rely(&mut self, key: &Bytes, since: Timestamp, certified: bool) -> Result<(), KvError> {
        if self.past || self.kv.state.lock().careless {
            return Ok(());
        }
        let span = key_span(key);
        let changed = |versions: &Versions| versions.iter().any(|(ts, _)| *ts > since && *ts <= self.snapshot);
        if since < self.snapshot && self.kv.state.lock().rows.get(key).is_some_and(changed) {
            return Err(restart(key));
        }
        let certified = certified || self.isolation == Isolation::Serializable;
        self.relied.push((Read { span, at: self.snapshot, certified }, self.marks.len()));
        Ok(())
    }

    fn lock_as(&mut self, key: &[u8], mode: LockMode, wait: LockWait) -> Result<bool, KvError> {
        if self.read_only {
            return Err(KvError::ReadOnly);
        }
        if mode == LockMode::KeyShare && self.kv.state.lock().heedless {
            return Ok(true);
        }
        let held = self.locks.len();
        let key = Bytes::copy_from_slice(key);
        let asked = self.kv.state.lock().time_us;
        if !self.acquire(&key, mode, wait)? {
            return Ok(false);
        }
        let newest = self.kv.state.lock().rows.get(&key).and_then(|v| v.last()).map(|(ts, _)| *ts);
        let referred = mode == LockMode::Update
            && self.isolation == Isolation::ReadCommitted
            && wait != LockWait::Skip
            && self.kv.state.lock().referred_above(&key, self.snapshot);
        // What others did while it waited may be beside the row.
        let stale = mode == LockMode::Update
            && self.isolation == Isolation::ReadCommitted
            && wait == LockWait::Wait
            && self.kv.state.lock().time_us > asked;
        if stale || referred || newest.is_some_and(|ts| ts > self.snapshot) {
            match self.refresh() {
                Err(KvError::Restart { .. }) if wait == LockWait::Skip => {
                    self.unlock(held);
                    return Ok(false);
                }
                done => done?,
            }
        }
        Ok(true)
    }

    /// Some at a time, so that small tables see the end of it.
    fn lock_all(&mut self, keys: &[&[u8]], mode: LockMode) -> Result<usize, KvError> {
        for (n, key) in keys.iter().take(LOCKED_TOGETHER).enumerate() {
            let locked = !self.read_only && self.acquire(&Bytes::copy_from_slice(key), mode, LockWait::Skip)?;
            // Asked once it is locked: who had it commits before it is given back.
            let newer = |versions: &Versions| versions.last().is_some_and(|(ts, _)| *ts > self.snapshot);
            let referred = |state: &State| {
                let deletes = mode == LockMode::Update && self.isolation == Isolation::ReadCommitted;
                deletes && state.referred_above(&Bytes::copy_from_slice(key), self.snapshot)
            };
            let state = self.kv.state.lock();
            if !locked || state.rows.get(*key).is_some_and(newer) || referred(&state) {
                return Ok(n);
            }
        }
        Ok(keys.len().min(LOCKED_TOGETHER))
    }

    fn hold(&mut self, key: &[u8], mode: LockMode) -> Result<(), KvError> {
        self.acquire(&Bytes::copy_from_slice(key), mode, LockWait::Wait).map(drop)
    }

    fn present(&mut self, key: &[u8]) -> Result<bool, KvError> {
        if let Some(own) = self.writes.get(key) {
            return Ok(own.is_some());
        }
        let present = self.kv.state.lock().is_present(key);
        if present {
            self.present.push(Bytes::copy_from_slice(key));
        } else {
            self.note_read(key_span(key), false);
        }
        Ok(present)
    }

    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), KvError> {
        self.write(key, Some(value))
    }
    fn delete(&mut self, key: Bytes) -> Result<(), KvError> {
        self.write(key, None)
    }

    fn overwrite(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), KvError> {
        self.over.insert(key.clone());
        self.write(key, value)
    }

    fn begin_statement(&mut self) -> Result<(), KvError> {
        if self.isolation == Isolation::ReadCommitted {
            self.reads.retain(|r| r.certified);
            self.relied.retain(|(r, _)| r.certified);
            self.snapshot = self.kv.state.lock().tick();
        }
        Ok(())
    }

    fn savepoint(&mut self) -> u32 {
        self.marks.push(self.undo.len());
        self.lock_marks.push(self.locks.len());
        (self.marks.len() - 1) as u32
    }

    fn rollback_to(&mut self, savepoint: u32) {
        let Some(&mark) = self.marks.get(savepoint as usize) else { return };
        self.marks.truncate(savepoint as usize + 1);
        if self.isolation != Isolation::Serializable {
            self.relied.retain(|(_, marks)| *marks <= savepoint as usize);
            self.unreferred.retain(|(_, _, marks)| *marks <= savepoint as usize);
        }
        self.lock_marks.truncate(savepoint as usize + 1);
        while self.undo.len() > mark {
            if let Some((key, before)) = self.undo.pop() {
                match before {
                    Some(value) => self.writes.insert(key, value),
                    None => self.writes.remove(&key),
                };
            }
        }
    }

    fn release_since(&mut self, savepoint: u32) {
        if let Some(&keep) = self.lock_marks.get(savepoint as usize) {
            self.unlock(keep);
        }
    }

    fn note_locks(&mut self) {
        self.locks_noted = self.locks.len();
    }
    fn release_noted(&mut self) {
        if !self.kv.state.lock().grasping {
            self.unlock(self.locks_noted);
        }
    }

    fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    fn commit(&mut self) -> Result<Committed, KvError> {
        if self.writes.is_empty() {
            self.finish();
            return Ok(Committed { timestamp: self.snapshot });
        }
        let kv = self.kv.clone();
        let mut state = kv.state.lock();
        if let Err(e) = self.certify(&state) {
            drop(state);
            self.finish();
            return Err(e);
        }
        let timestamp = state.tick();
        for key in self.present.iter().filter(|key| !self.writes.contains_key(*key)) {
            state.referred.insert(key.clone(), timestamp);
        }
        for (key, value) in std::mem::take(&mut self.writes) {
            state.rows.entry(key).or_default().push((timestamp, value));
        }
        drop(state);
        self.finish();
        Ok(Committed { timestamp })
    }

    fn rollback(&mut self) {
        self.writes.clear();
        self.finish();
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            txn: Some(TxnNumber { node: 0, serial: self.id }),
            consistency: self.consistency,
            keys: self.writes.len(),
            bytes: self.writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len)).sum(),
        }
    }

    fn stats(&self) -> TxnStats {
        TxnStats { consistency: self.consistency, refreshes: self.refreshes, ..TxnStats::default() }
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
