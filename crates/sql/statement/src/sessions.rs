//! The sessions of a process, as each may see and end the others.
//!
//! **Problem.** An operator asks who is there, what each is doing and since when, and ends what hangs; all of it from a session of his
//! own. The sessions themselves must not pay for being watched.
//!
//! **Idea.** Each session has a [`Backend`] that it alone writes, under a lock that nobody else wants but who looks. Who looks takes the
//! list's lock, copies, and lets go. The end of a connection is the connection's own affair: who opens a session gives it a
//! [`Client`], which knows how.
//!
//! **Invariants.**
//! 1. A backend is in the list from the end of [`Sessions::enter`] until its session is dropped.
//! 2. No lock of this module is held while another is taken, or while anything waits.

use crate::advisory::{AdvisoryLocks, LocalLocks};
use crate::catalog::reliance::Relied;
use crate::endings::Endings;
use crate::filled::Filled;
use crate::identifier;
use crate::progress::Progress;
use crate::statistics::Known;
use crate::temporary_totals::TemporaryTotals;
use crate::transaction::{Footprint, Interrupt, LockTimeout, Wait};
use clock::Timestamp;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Longest text of a statement that is shown, bytes: `track_activity_query_size`.
pub const SHOWN_QUERY_BYTES_MAX: usize = 1024;

/// The connection behind a session. Given by who opens the session; one without is not ended from elsewhere.
pub trait Client: Send + Sync {
    /// Ends the connection where it next waits for its client. The session's interrupt is raised already.
    fn end(&self);
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionState {
    /// It waits for its client.
    #[default]
    Idle,
    /// It runs a statement.
    Active,
    /// It waits for its client inside a block.
    IdleInTransaction,
    /// It waits for its client inside a block that failed.
    IdleInFailedTransaction,
}

impl SessionState {
    /// As `pg_stat_activity` names it.
    pub fn name(self) -> &'static str {
        match self {
            SessionState::Idle => "idle",
            SessionState::Active => "active",
            SessionState::IdleInTransaction => "idle in transaction",
            SessionState::IdleInFailedTransaction => "idle in transaction (aborted)",
        }
    }
}

/// What changes while a session lives. Times are microseconds since 2000-01-01 UTC.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    /// What it is doing.
    pub state: SessionState,
    /// The present statement, or the last one; its beginning, where it is longer than [`SHOWN_QUERY_BYTES_MAX`].
    pub query: Option<Arc<str>>,
    /// When its block or statement began; none between transactions.
    pub transaction_us: Option<i64>,
    /// When `query` began.
    pub query_us: Option<i64>,
    /// When `state` changed.
    pub changed_us: Option<i64>,
    /// `application_name`
    pub application_name: String,
}

/// A cursor of a session, or a portal with a name.
#[derive(Clone, Debug)]
pub struct OpenCursor {
    /// Its name.
    pub name: String,
    /// The text that it came in.
    pub statement: Arc<str>,
    /// WITH HOLD.
    pub is_holdable: bool,
    /// Whether it goes back.
    pub is_scrollable: bool,
    /// When it was made, microseconds since 2000.
    pub began_us: i64,
}

/// One session, as the others see it.
pub struct Backend {
    /// Which of all sessions of the process.
    pub number: u64,
    /// Process id shown to the client.
    pub pid: i32,
    /// Name of the user.
    pub user: String,
    /// OID of the database.
    pub database: u32,
    /// Where the client is, if it came by a network.
    pub client_addr: Option<SocketAddr>,
    /// Where it came in.
    pub server_addr: Option<SocketAddr>,
    /// When it began.
    pub began_us: i64,
    /// All of them.
    pub sessions: Arc<Sessions>,
    /// Its longest wait for one lock.
    pub lock_timeout: LockTimeout,
    /// Whether its transaction has taken advisory locks.
    pub has_transaction_locks: AtomicBool,
    /// Whether it has ever taken one.
    pub has_locked: AtomicBool,
    /// What functions of the present statement ask of the session.
    pub effects: Effects,
    /// How far the present statement is, if it takes long.
    pub progress: Arc<Progress>,
    /// What its transaction relies on.
    pub relied: Arc<Relied>,
    /// Which tables its transaction has written to since it made or emptied them.
    pub filled: Filled,
    interrupt: Interrupt,
    client: Option<Arc<dyn Client>>,
    /// And what its transaction reads from, and when that was taken, on the clock for timeouts.
    activity: Mutex<(Activity, Option<(Timestamp, i64)>)>,
    /// What its transaction has done up to its present statement.
    footprint: Mutex<Option<Footprint>>,
    /// What its statements' temporary files have now.
    pub temporary_bytes: AtomicU64,
    /// Its cursors, and its named portals.
    pub cursors: Mutex<Vec<OpenCursor>>,
    /// What it saw last of locks (`contention::Picture`): for which statement, when, and what.
    pub picture: Mutex<Option<(i64, i64, Arc<dyn Any + Send + Sync>)>>,
}

/// What a session says of itself when it enters.
pub struct Entrance {
    /// Process id shown to the client.
    pub pid: i32,
    /// Name of the user.
    pub user: String,
    /// OID of the database.
    pub database: u32,
    /// Where the client is, if it came by a network.
    pub client_addr: Option<SocketAddr>,
    /// Where it came in.
    pub server_addr: Option<SocketAddr>,
    /// When it began, microseconds since 2000-01-01 UTC.
    pub began_us: i64,
    /// What ends its waits.
    pub interrupt: Interrupt,
    /// The connection behind it.
    pub client: Option<Arc<dyn Client>>,
}

/// See the module.
pub struct Sessions {
    list: Mutex<BTreeMap<u64, Arc<Backend>>>,
    entered: AtomicU64,
    /// Advisory locks of all of them.
    pub advisory: Box<dyn AdvisoryLocks>,
    /// What is about to end of what they write by.
    pub endings: Endings,
    /// When the database was opened, microseconds since 2000-01-01 UTC.
    pub opened_us: i64,
    /// Of the tables of all databases.
    pub statistics: Arc<Known>,
    /// Temporary files that there were.
    pub temporary: TemporaryTotals,
}

impl Sessions {
    /// None yet.
    pub fn new(opened_us: i64, advisory: Box<dyn AdvisoryLocks>) -> Arc<Sessions> {
        Arc::new(Sessions {
            list: Mutex::default(),
            entered: AtomicU64::new(0),
            advisory,
            endings: Endings::default(),
            opened_us,
            statistics: Arc::default(),
            temporary: TemporaryTotals::default(),
        })
    }

    /// Takes a session in; it must [`Backend::leave`].
    pub fn enter(self: &Arc<Self>, entrance: Entrance) -> Arc<Backend> {
        let Entrance { pid, user, database, client_addr, server_addr, began_us, interrupt, client } = entrance;
        let number = self.entered.fetch_add(1, Ordering::Relaxed);
        let backend = Arc::new(Backend {
            number,
            pid,
            user,
            database,
            client_addr,
            server_addr,
            began_us,
            sessions: self.clone(),
            lock_timeout: LockTimeout::default(),
            has_transaction_locks: AtomicBool::new(false),
            has_locked: AtomicBool::new(false),
            effects: Effects::default(),
            progress: Arc::default(),
            relied: Arc::default(),
            filled: Filled::default(),
            interrupt,
            client,
            activity: Mutex::new((Activity { changed_us: Some(began_us), ..Activity::default() }, None)),
            footprint: Mutex::default(),
            temporary_bytes: AtomicU64::new(0),
            cursors: Mutex::default(),
            picture: Mutex::default(),
        });
        self.list.lock().insert(number, backend.clone());
        backend
    }

    /// All sessions, in the order in which they came.
    pub fn all(&self) -> Vec<Arc<Backend>> {
        self.list.lock().values().cloned().collect()
    }

    /// A session by its process id.
    pub fn find(&self, pid: i32) -> Option<Arc<Backend>> {
        self.list.lock().values().find(|backend| backend.pid == pid).cloned()
    }

    /// Whether a session is still there.
    pub fn has(&self, number: u64) -> bool {
        self.list.lock().contains_key(&number)
    }
}

impl Backend {
    /// A backend in no list: for contexts without a session.
    pub fn alone() -> Arc<Backend> {
        let entrance = Entrance {
            pid: 0,
            user: String::new(),
            database: 0,
            client_addr: None,
            server_addr: None,
            began_us: 0,
            interrupt: Interrupt::default(),
            client: None,
        };
        Sessions::new(0, Box::new(LocalLocks::default())).enter(entrance)
    }

    /// The session has ended: its locks with it.
    pub fn leave(&self) {
        self.sessions.advisory.release_session(self.number);
        self.relied.clear();
        self.sessions.list.lock().remove(&self.number);
    }

    /// The session's transaction has ended, or goes back to a mark: what it has locked since is free.
    pub fn release_transaction_locks(&self, mark: usize) {
        if self.has_transaction_locks.load(Ordering::Relaxed) {
            self.sessions.advisory.release_transaction(self.number, mark);
            self.has_transaction_locks.store(mark > 0, Ordering::Relaxed);
        }
    }

    /// Whether an advisory lock of the session may be another's by now.
    pub fn has_lost_locks(&self) -> bool {
        self.has_locked.load(Ordering::Relaxed) && self.sessions.advisory.has_lost(self.number)
    }

    /// How many advisory locks the session's transaction has taken.
    pub fn transaction_locks(&self) -> usize {
        let any = self.has_transaction_locks.load(Ordering::Relaxed);
        if any { self.sessions.advisory.transaction_mark(self.number) } else { 0 }
    }

    /// Ends the present statement.
    pub fn cancel(&self) {
        self.interrupt.raise();
    }

    /// Ends the session.
    pub fn terminate(&self) {
        self.interrupt.end();
        if let Some(client) = &self.client {
            client.end();
        }
    }

    /// A copy of what it is doing.
    pub fn activity(&self) -> Activity {
        self.activity.lock().0.clone()
    }

    /// What it waits for: type and name, as `pg_stat_activity` has them.
    pub fn wait(&self) -> Option<(&'static str, &'static str)> {
        match self.interrupt.waiting() {
            Some(wait) => Some(wait.names()),
            None if self.activity.lock().0.state == SessionState::Active => None,
            None => Some(Wait::Client.names()),
        }
    }

    /// Since when it waits for a lock, on the clock for timeouts, if it does.
    pub fn waits_for_lock_since_us(&self) -> Option<i64> {
        self.interrupt.waits_for_lock_since_us()
    }

    /// What its transaction has done up to its present statement.
    pub fn footprint(&self) -> Option<Footprint> {
        *self.footprint.lock()
    }

    /// Its transaction has done so much; `None`: there is none.
    pub fn has_done(&self, footprint: Option<Footprint>) {
        *self.footprint.lock() = footprint;
    }

    /// A statement begins.
    pub fn begins(&self, query: &Arc<str>, now_us: i64, transaction_us: i64) {
        let (activity, _) = &mut *self.activity.lock();
        activity.state = SessionState::Active;
        // Mostly it is the one of before.
        if !activity.query.as_ref().is_some_and(|known| Arc::ptr_eq(known, query)) {
            // A session that is idle for long does not keep the whole of a large one.
            let long = query.len() > SHOWN_QUERY_BYTES_MAX;
            activity.query =
                Some(if long { identifier::cut(query, SHOWN_QUERY_BYTES_MAX).into() } else { query.clone() });
        }
        activity.transaction_us = Some(transaction_us);
        activity.query_us = Some(now_us);
        activity.changed_us = Some(now_us);
    }

    /// The session waits for its client; its transaction, if it is in one, sees this.
    pub fn waits(&self, state: SessionState, now_us: i64, transaction_us: Option<i64>, sees: Option<(Timestamp, i64)>) {
        let (activity, snapshot) = &mut *self.activity.lock();
        activity.state = state;
        activity.transaction_us = transaction_us;
        activity.changed_us = Some(now_us);
        *snapshot = sees;
    }

    /// The session's transaction reads from this snapshot, taken then.
    pub fn sees(&self, snapshot: Option<(Timestamp, i64)>) {
        self.activity.lock().1 = snapshot;
    }

    /// What its transaction reads from, and when that was taken, on the clock for timeouts.
    pub fn snapshot(&self) -> Option<(Timestamp, i64)> {
        self.activity.lock().1
    }

    /// `application_name` was set.
    pub fn calls_itself(&self, application_name: &str) {
        let (activity, _) = &mut *self.activity.lock();
        if activity.application_name != application_name {
            activity.application_name = application_name.into();
        }
    }
}

/// A setting that `set_config` changes.
#[derive(Clone, Debug)]
pub struct SettingChange {
    /// Which.
    pub name: String,
    /// What it is set to; `None`: its default.
    pub value: Option<String>,
    /// As SHOW will show it.
    pub shown: String,
    /// Until the end of the transaction only.
    pub local: bool,
}

/// What functions of a statement ask of its session. The session does it when the statement has worked, and forgets it when it failed.
#[derive(Default)]
pub struct Effects {
    any: AtomicBool,
    asked: Mutex<Asked>,
}

/// See [`Effects`].
#[derive(Default)]
pub struct Asked {
    /// Settings that are to change.
    pub settings: Vec<SettingChange>,
    /// What the client is to be told.
    pub notices: Vec<crate::SqlError>,
    /// Locks of the session were taken or given up: the statement cannot be repeated.
    pub locked: bool,
}

/// Most settings and notices of one statement.
const ASKED_MAX: usize = 1000;

impl Effects {
    fn ask(&self, add: impl FnOnce(&mut Asked)) {
        add(&mut self.asked.lock());
        self.any.store(true, Ordering::Relaxed);
    }
    /// A setting is to change.
    pub fn set(&self, change: SettingChange) {
        self.ask(|asked| {
            // The last one wins, but for what a transaction sets for itself over what it sets for good.
            asked.settings.retain(|known| known.name != change.name || known.local != change.local);
            asked.settings.push(change);
            asked.settings.truncate(ASKED_MAX);
        });
    }
    /// The client is to be told something.
    pub fn notice(&self, notice: crate::SqlError) {
        self.ask(|asked| {
            asked.notices.push(notice);
            asked.notices.truncate(ASKED_MAX);
        });
    }
    /// A lock of the session was taken or given up.
    pub fn locked(&self) {
        self.ask(|asked| asked.locked = true);
    }
    /// What a setting will be, if it is to change.
    pub fn shown(&self, name: &str) -> Option<String> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        self.asked.lock().settings.iter().rev().find(|change| change.name == name).map(|change| change.shown.clone())
    }
    /// All that was asked, once.
    pub fn take(&self) -> Option<Asked> {
        if !self.any.swap(false, Ordering::Relaxed) {
            return None;
        }
        Some(std::mem::take(&mut *self.asked.lock()))
    }
    /// Whether the statement cannot be repeated.
    pub fn is_final(&self) -> bool {
        self.any.load(Ordering::Relaxed) && self.asked.lock().locked
    }
}
