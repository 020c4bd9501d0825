//! Advisory locks of the sessions of many nodes.
//!
//! **Idea.** What this process's sessions hold stands in the same table as on a node alone: how often, and for how long. Whether one may hold it is settled
//! below, where all nodes ask ([`Kv::session_lock`]). A session has one lock there for each key, in the strongest mode that it asked for.
//!
//! **Invariants.**
//! 1. What stands in the table is held below, in this mode or a stronger one.
//! 2. No lock of this module is held while something below waits.
//!
//! **Caveats.** Who holds a key in both modes and gives up the exclusive one keeps others away until he gives up the other one, too. A key that is held below may be lost
//! there, when this node hears nobody for too long: [`AdvisoryLocks::has_lost`].

use super::Awaited;
use super::{AdvisoryLocks, Key, Mode, Refusal, Request, Shown, Table};
use crate::SqlError;
use crate::transaction::{Kv, KvError, LockMode, LockWait, SessionLock};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A lock below, and how strong it is.
struct Below {
    lock: Box<dyn SessionLock>,
    mode: Mode,
}

#[derive(Default)]
struct State {
    table: Table,
    below: BTreeMap<(u64, Key), Below>,
}

/// See the module.
pub struct ClusterLocks {
    kv: Arc<dyn Kv>,
    state: Mutex<State>,
}

impl State {
    /// Gives up, below, what a session holds no more.
    fn settle(&mut self, session: u64, key: Key) -> Option<Below> {
        let held = self.table.keys.get(&key).is_some_and(|entry| entry.held.contains_key(&session));
        if held { None } else { self.below.remove(&(session, key)) }
    }
}

impl ClusterLocks {
    /// None yet.
    pub fn new(kv: Arc<dyn Kv>) -> ClusterLocks {
        ClusterLocks { kv, state: Mutex::default() }
    }

    /// `false`: another one has it, and `wait` is not to wait for that.
    fn take(
        &self,
        request: Request,
        wait: LockWait,
        stop: &mut dyn FnMut() -> Result<(), SqlError>,
    ) -> Result<bool, Refusal> {
        let Request { session, key, mode, .. } = request;
        let known = {
            let mut state = self.state.lock();
            if state.table.is_full(key) {
                return Err(Refusal::Full);
            }
            match state.below.remove(&(session, key)) {
                Some(below) if below.mode == Mode::Exclusive || mode == Mode::Share => {
                    state.below.insert((session, key), below);
                    state.table.grant(request);
                    return Ok(true);
                }
                known => {
                    state.table.begin_waiting(session, key, mode);
                    known
                }
            }
        };
        let (lock, held) = known.map(|below| (below.lock, below.mode)).unzip();
        let mut why = None;
        let mut ended = || match stop() {
            Ok(()) => false,
            Err(error) => {
                why = Some(error);
                true
            }
        };
        let mut lock = lock.or_else(|| self.kv.session_lock(session, &key.to_bytes()));
        let taken = match &mut lock {
            Some(lock) => lock.take(mode.below(), wait, &mut ended),
            None => Err(KvError::Storage("locks of sessions are not kept here".into())),
        };
        let mut state = self.state.lock();
        state.table.stop_waiting(session);
        let is_taken = matches!(taken, Ok(true));
        let mode = if is_taken { Some(mode) } else { held };
        let given_up = match (lock, mode) {
            (Some(lock), Some(mode)) => {
                state.below.insert((session, key), Below { lock, mode });
                None
            }
            (lock, _) => lock,
        };
        if is_taken {
            state.table.grant(request);
        }
        drop(state);
        drop(given_up);
        taken.map_err(|error| match error {
            KvError::Deadlock { circle } => {
                Refusal::Deadlock(circle.into_iter().map(|row| (row.session, Awaited::of(row))).collect())
            }
            KvError::Interrupted if why.is_some() => Refusal::Ended(why.unwrap_or_else(|| error.into())),
            error => Refusal::Ended(error.into()),
        })
    }
}

impl AdvisoryLocks for ClusterLocks {
    fn lock(
        &self,
        request: Request,
        _: &dyn Kv,
        stop: &mut dyn FnMut() -> Result<(), SqlError>,
    ) -> Result<(), Refusal> {
        self.take(request, LockWait::Wait, stop).map(drop)
    }

    fn try_lock(&self, request: Request) -> Option<bool> {
        self.take(request, LockWait::NoWait, &mut || Ok(())).ok()
    }

    fn try_lock_until(
        &self,
        request: Request,
        stop: &mut dyn FnMut() -> Result<(), SqlError>,
    ) -> Result<bool, Refusal> {
        self.take(request, LockWait::NoWait, stop)
    }

    fn unlock(&self, session: u64, key: Key, mode: Mode) -> bool {
        let mut state = self.state.lock();
        let held = state.table.unlock(session, key, mode);
        let given_up = state.settle(session, key);
        drop(state);
        drop(given_up);
        held
    }

    fn unlock_all(&self, session: u64) {
        let mut state = self.state.lock();
        let released = state.table.unlock_all(session);
        let given_up: Vec<Option<Below>> = released.into_iter().map(|(key, _)| state.settle(session, key)).collect();
        drop(state);
        drop(given_up);
    }

    fn transaction_mark(&self, session: u64) -> usize {
        self.state.lock().table.transaction_mark(session)
    }

    fn release_transaction(&self, session: u64, mark: usize) {
        let mut state = self.state.lock();
        let released = state.table.release_transaction(session, mark);
        let given_up: Vec<Option<Below>> = released.into_iter().map(|(key, _)| state.settle(session, key)).collect();
        drop(state);
        drop(given_up);
    }

    fn in_the_way_of(&self, session: u64) -> Vec<u64> {
        self.state.lock().table.in_the_way_of(session)
    }

    fn shown(&self) -> Vec<Shown> {
        self.state.lock().table.shown()
    }

    fn has_lost(&self, session: u64) -> bool {
        let state = self.state.lock();
        let mut of_session = state.below.range((session, Key::FIRST)..).take_while(|((of, _), _)| *of == session);
        of_session.any(|(_, below)| below.lock.is_lost())
    }
}

impl Mode {
    /// The mode of a row's lock that excludes what this one does.
    fn below(self) -> LockMode {
        match self {
            Mode::Exclusive => LockMode::Update,
            Mode::Share => LockMode::Share,
        }
    }
}
