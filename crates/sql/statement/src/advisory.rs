//! Advisory locks: locks on numbers, which mean what applications agree on. Flyway and its kind hold one while they migrate.
//!
//! **Problem.** They are held by sessions or by transactions, shared or alone, are counted, are waited for in order, and two sessions that
//! wait for each other must be told so.
//!
//! **Idea.** One table of the process, under one lock: for each key who holds it how often, and who waits in which order. Who waits looks
//! again whenever something was released. In a cluster they are held elsewhere: hence the trait [`AdvisoryLocks`], behind which
//! [`LocalLocks`] is the one of a single node, and [`ClusterLocks`] that of a member.
//!
//! **Invariants.**
//! 1. Two sessions hold one key only if both share it.
//! 2. A request that conflicts with one which waits, waits behind it; unless its session holds the key already.
//! 3. Nobody waits in a circle: who would close one is told 40P01 instead; where rows are in it, soon afterwards.
//! 4. A session that has ended holds nothing.
//!
//! **Idea, circles.** A session in one's way may itself wait for a row. So the search goes over both kinds ([`circle`]): when a wait begins,
//! and again while it lasts, since the one that closes a circle by waiting for a row does not look here. The more there wait, the more
//! seldom each looks again, but at least every [`LOOKS_PER_SEARCH_MAX`] looks.
//!
//! **Caveats.** A circle that another order of the waiting could
//! undo is reported too; PostgreSQL changes the order. What is held does not survive the process.

mod circle;
mod cluster;

pub use circle::deadlock;
pub use circle::{Awaited, Circle, circle_through};
pub use cluster::ClusterLocks;

use crate::SqlError;
use crate::catalog::key::ADVISORY;
use crate::transaction::{Kv, RowWaits};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Most keys held or waited for at once, by all sessions.
pub const KEYS_MAX: usize = 100_000;
/// Who waits looks this often whether its statement was ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// While it waits, a session looks for circles at least once in so many looks: once a second, PostgreSQL's `deadlock_timeout`.
pub(crate) const LOOKS_PER_SEARCH_MAX: usize = 50;
/// Up to so many sessions that wait, each of them looks for circles at each look.
const WAITERS_PER_LOOK: usize = 16;

/// What is locked: as in PostgreSQL, one number of 64 bits and two of 32 bits are different spaces, and databases are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// OID of the database.
    pub database: u32,
    /// The first number, or the upper half of the one.
    pub class: u32,
    /// The second number, or the lower half of the one.
    pub object: u32,
    /// Two numbers.
    pub pair: bool,
}

impl Key {
    /// Not greater than any.
    const FIRST: Key = Key { database: 0, class: 0, object: 0, pair: false };

    /// The key on which all nodes lock it.
    pub fn to_bytes(self) -> Bytes {
        let numbers = [ADVISORY, self.database, self.class, self.object];
        numbers.into_iter().flat_map(u32::to_be_bytes).chain([u8::from(self.pair)]).collect()
    }

    /// What a key of the layers below locks, if it is one of these.
    pub fn of_bytes(bytes: &[u8]) -> Option<Key> {
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at * 4..at * 4 + 4)?.try_into().ok()?));
        let pair = *bytes.get(16).filter(|_| bytes.len() == 17 && number(0) == Some(ADVISORY))? != 0;
        Some(Key { database: number(1)?, class: number(2)?, object: number(3)?, pair })
    }

    /// `ExclusiveLock on advisory lock [5,0,7,1]`, as PostgreSQL writes it.
    pub fn described(self, mode: Mode) -> String {
        let Key { database, class, object, pair } = self;
        format!("{} on advisory lock [{database},{class},{object},{}]", mode.name(), if pair { 2 } else { 1 })
    }
}

/// How it is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// With others that share it.
    Share,
}

impl Mode {
    /// As `pg_locks` names it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Exclusive => "ExclusiveLock",
            Mode::Share => "ShareLock",
        }
    }
}

/// Until when it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Until it is given up, or the session ends.
    Session,
    /// Until the transaction ends.
    Transaction,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The session.
    pub session: u64,
    /// What.
    pub key: Key,
    /// How.
    pub mode: Mode,
    /// Until when.
    pub scope: Scope,
}

/// Why a lock was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The sessions that wait for each other, the asking one first.
    Deadlock(Circle),
    /// More keys than [`KEYS_MAX`].
    Full,
    /// What ended the wait.
    Ended(SqlError),
}

/// One lock that is held or waited for: for `pg_locks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The session.
    pub session: u64,
    /// What.
    pub key: Key,
    /// How.
    pub mode: Mode,
    /// Held, else waited for.
    pub granted: bool,
}

/// Where advisory locks are held.
pub trait AdvisoryLocks: Send + Sync {
    /// Takes a lock. `stop` is asked while it waits, every now and then, and ends the wait by an error. `rows`: whose row locks are
    /// looked at for circles.
    ///
    /// # Errors
    /// See [`Refusal`].
    fn lock(
        &self,
        request: Request,
        rows: &dyn Kv,
        stop: &mut dyn FnMut() -> Result<(), SqlError>,
    ) -> Result<(), Refusal>;
    /// Takes a lock if that needs no wait; whether it did. `None`: [`Refusal::Full`].
    fn try_lock(&self, request: Request) -> Option<bool>;
    /// As [`AdvisoryLocks::try_lock`], where other nodes may have to be asked: `stop` ends that.
    ///
    /// # Errors
    /// See [`Refusal`].
    fn try_lock_until(
        &self,
        request: Request,
        stop: &mut dyn FnMut() -> Result<(), SqlError>,
    ) -> Result<bool, Refusal> {
        let _ = stop;
        self.try_lock(request).ok_or(Refusal::Full)
    }
    /// Whether a session's locks include one that is held no more: nobody who could say so was heard for too long.
    fn has_lost(&self, session: u64) -> bool {
        let _ = session;
        false
    }
    /// Gives a session's lock up, once; `false` if it does not hold it.
    fn unlock(&self, session: u64, key: Key, mode: Mode) -> bool;
    /// Gives every lock of the session scope up.
    fn unlock_all(&self, session: u64);
    /// How many locks the session's transaction has taken.
    fn transaction_mark(&self, session: u64) -> usize;
    /// Gives up what the session's transaction has taken since a mark.
    fn release_transaction(&self, session: u64, mark: usize);
    /// Gives up everything: the session has ended.
    fn release_session(&self, session: u64) {
        self.release_transaction(session, 0);
        self.unlock_all(session);
    }
    /// The sessions in the way of one that waits for an advisory lock.
    fn in_the_way_of(&self, session: u64) -> Vec<u64>;
    /// All that is held and waited for.
    fn shown(&self) -> Vec<Shown>;
}

/// How often one session holds one key.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    exclusive: usize,
    share: usize,
}

impl Held {
    fn count(&mut self, mode: Mode) -> &mut usize {
        match mode {
            Mode::Exclusive => &mut self.exclusive,
            Mode::Share => &mut self.share,
        }
    }
    fn is_none(self) -> bool {
        self.exclusive == 0 && self.share == 0
    }
    fn conflicts(self, mode: Mode) -> bool {
        self.exclusive > 0 || (mode == Mode::Exclusive && self.share > 0)
    }
}

#[derive(Debug, Default)]
struct Entry {
    held: BTreeMap<u64, Held>,
    waiting: VecDeque<(u64, Mode)>,
}

#[derive(Debug, Default)]
struct Table {
    keys: BTreeMap<Key, Entry>,
    /// What each session waits for.
    waits: BTreeMap<u64, (Key, Mode)>,
    /// What each session has taken for its session, with how often.
    of_session: BTreeMap<u64, BTreeMap<(Key, Mode), usize>>,
    /// What each session has taken for its transaction, in order.
    of_transaction: BTreeMap<u64, Vec<(Key, Mode)>>,
}

/// Advisory locks of one process.
#[derive(Debug, Default)]
pub struct LocalLocks {
    table: Mutex<Table>,
    released: Condvar,
}

fn conflict(a: Mode, b: Mode) -> bool {
    a == Mode::Exclusive || b == Mode::Exclusive
}

impl Table {
    /// The sessions that a request must wait for: those that hold the key, and those that have waited longer for it.
    fn before(&self, session: u64, key: Key, mode: Mode) -> BTreeSet<u64> {
        let Some(entry) = self.keys.get(&key) else { return BTreeSet::new() };
        let mut before: BTreeSet<u64> = entry
            .held
            .iter()
            .filter(|(other, held)| **other != session && held.conflicts(mode))
            .map(|(o, _)| *o)
            .collect();
        if !entry.held.contains_key(&session) {
            let ahead = entry.waiting.iter().take_while(|(other, _)| *other != session);
            before.extend(ahead.filter(|(_, theirs)| conflict(mode, *theirs)).map(|(other, _)| *other));
        }
        before
    }

    /// The circle that the wait of a session closes, itself first. The rows stay as they are while it is looked for, and so does this table.
    fn circle(&self, session: u64, rows: &dyn Kv) -> Option<Circle> {
        let mut found = None;
        rows.look_at_row_waits(&mut |rows: &dyn RowWaits| {
            found = circle_through(session, &|session| match self.waits.get(&session) {
                Some((key, mode)) => {
                    let before = self.before(session, *key, *mode).into_iter().collect();
                    Some((Awaited::Advisory(*key, *mode), before))
                }
                None => rows.of(session).map(|(row, before)| (Awaited::Row(row), before)),
            });
        });
        found
    }

    fn grant(&mut self, request: Request) {
        let Request { session, key, mode, scope } = request;
        *self.keys.entry(key).or_default().held.entry(session).or_default().count(mode) += 1;
        match scope {
            Scope::Session => {
                *self.of_session.entry(session).or_default().entry((key, mode)).or_default() += 1;
            }
            Scope::Transaction => self.of_transaction.entry(session).or_default().push((key, mode)),
        }
    }

    /// Takes back one count of a lock.
    fn forget(&mut self, session: u64, key: Key, mode: Mode, times: usize) {
        let Some(entry) = self.keys.get_mut(&key) else { return };
        if let Some(held) = entry.held.get_mut(&session) {
            let count = held.count(mode);
            *count = count.saturating_sub(times);
            if held.is_none() {
                entry.held.remove(&session);
            }
        }
        if entry.held.is_empty() && entry.waiting.is_empty() {
            self.keys.remove(&key);
        }
    }

    fn begin_waiting(&mut self, session: u64, key: Key, mode: Mode) {
        self.keys.entry(key).or_default().waiting.push_back((session, mode));
        self.waits.insert(session, (key, mode));
    }

    /// Gives a session's lock up, once.
    fn unlock(&mut self, session: u64, key: Key, mode: Mode) -> bool {
        let Some(taken) = self.of_session.get_mut(&session) else { return false };
        let Some(count) = taken.get_mut(&(key, mode)) else { return false };
        *count -= 1;
        if *count == 0 {
            taken.remove(&(key, mode));
        }
        self.forget(session, key, mode, 1);
        true
    }

    fn unlock_all(&mut self, session: u64) -> Vec<(Key, Mode)> {
        let taken = self.of_session.remove(&session).unwrap_or_default();
        for ((key, mode), times) in &taken {
            self.forget(session, *key, *mode, *times);
        }
        taken.into_keys().collect()
    }

    fn transaction_mark(&self, session: u64) -> usize {
        self.of_transaction.get(&session).map_or(0, Vec::len)
    }

    fn release_transaction(&mut self, session: u64, mark: usize) -> Vec<(Key, Mode)> {
        let Some(taken) = self.of_transaction.get_mut(&session) else { return Vec::new() };
        let released = taken.split_off(mark.min(taken.len()));
        if taken.is_empty() {
            self.of_transaction.remove(&session);
        }
        for (key, mode) in &released {
            self.forget(session, *key, *mode, 1);
        }
        released
    }

    fn in_the_way_of(&self, session: u64) -> Vec<u64> {
        let Some((key, mode)) = self.waits.get(&session) else { return Vec::new() };
        self.before(session, *key, *mode).into_iter().collect()
    }

    fn shown(&self) -> Vec<Shown> {
        let mut shown = Vec::new();
        for (key, entry) in &self.keys {
            for (session, held) in &entry.held {
                let modes = [(Mode::Exclusive, held.exclusive), (Mode::Share, held.share)];
                let modes = modes.into_iter().filter(|(_, times)| *times > 0);
                shown.extend(modes.map(|(mode, _)| Shown { session: *session, key: *key, mode, granted: true }));
            }
            let waiting = entry.waiting.iter();
            shown.extend(waiting.map(|(session, mode)| Shown {
                session: *session,
                key: *key,
                mode: *mode,
                granted: false,
            }));
        }
        shown
    }

    fn stop_waiting(&mut self, session: u64) {
        let Some((key, _)) = self.waits.remove(&session) else { return };
        if let Some(entry) = self.keys.get_mut(&key) {
            entry.waiting.retain(|(other, _)| *other != session);
            if entry.held.is_empty() && entry.waiting.is_empty() {
                self.keys.remove(&key);
            }
        }
    }

    fn is_full(&self, key: Key) -> bool {
        self.keys.len() >= KEYS_MAX && !self.keys.contains_key(&key)
    }
}

impl AdvisoryLocks for LocalLocks {
    fn lock(
        &self,
        request: Request,
        rows: &dyn Kv,
        stop: &mut dyn FnMut() -> Result<(), SqlError>,
    ) -> Result<(), Refusal> {
        let Request { session, key, mode, .. } = request;
        let mut table = self.table.lock();
        if table.is_full(key) {
            return Err(Refusal::Full);
        }
        if table.before(session, key, mode).is_empty() {
            table.grant(request);
            return Ok(());
        }
        table.begin_waiting(session, key, mode);
        let mut looks = 0usize;
        loop {
            let looks_per_search = (1 + table.waits.len() / WAITERS_PER_LOOK).min(LOOKS_PER_SEARCH_MAX);
            if looks.is_multiple_of(looks_per_search)
                && let Some(circle) = table.circle(session, rows)
            {
                table.stop_waiting(session);
                self.released.notify_all();
                return Err(Refusal::Deadlock(circle));
            }
            looks += 1;
            self.released.wait_for(&mut table, LOOK_EVERY);
            if table.before(session, key, mode).is_empty() {
                table.stop_waiting(session);
                table.grant(request);
                // Who shares it may follow.
                self.released.notify_all();
                return Ok(());
            }
            // Asked without the lock: it may look at a socket.
            drop(table);
            let stopped = stop();
            table = self.table.lock();
            if let Err(e) = stopped {
                table.stop_waiting(session);
                self.released.notify_all();
                return Err(Refusal::Ended(e));
            }
        }
    }

    fn try_lock(&self, request: Request) -> Option<bool> {
        let mut table = self.table.lock();
        if table.is_full(request.key) {
            return None;
        }
        let free = table.before(request.session, request.key, request.mode).is_empty();
        if free {
            table.grant(request);
        }
        Some(free)
    }

    fn unlock(&self, session: u64, key: Key, mode: Mode) -> bool {
        let held = self.table.lock().unlock(session, key, mode);
        self.released.notify_all();
        held
    }

    fn unlock_all(&self, session: u64) {
        self.table.lock().unlock_all(session);
        self.released.notify_all();
    }

    fn transaction_mark(&self, session: u64) -> usize {
        self.table.lock().transaction_mark(session)
    }

    fn release_transaction(&self, session: u64, mark: usize) {
        self.table.lock().release_transaction(session, mark);
        self.released.notify_all();
    }

    fn in_the_way_of(&self, session: u64) -> Vec<u64> {
        self.table.lock().in_the_way_of(session)
    }

    fn shown(&self) -> Vec<Shown> {
        self.table.lock().shown()
    }
}
