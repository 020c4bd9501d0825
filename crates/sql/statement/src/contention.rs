//! What everybody waits for: the locks and the open transactions of all nodes, as sessions see them.
//!
//! **Problem.** Who waits for a row is a session of one node; the lock lies with the node that leads the row's range; who holds it may be a session of a
//! third. None of them knows the others' half.
//!
//! **Idea.** Each node tells what lies with it ([`lines`]): locks, by the numbers of transactions; and its own sessions, with the numbers under which these
//! hold and wait. Whoever wants to know asks all at a time and puts it together by those numbers. It is looked at, and nothing is locked, read or relied upon
//! for it: so it works where nothing is served.
//!
//! **Invariants.**
//! 1. Who does not answer is named: what is missing is not taken for nothing ([`Picture::silent`], [`Picture::cut`]).
//! 2. An answer takes no longer than [`Kv::ask_peers`] does, and ends with its statement.
//!
//! **Caveats.** The nodes are not asked at one moment. A lock may have passed on between two answers: then it has two holders, or none.

pub mod leases;
pub mod lines;
pub mod views;

use crate::Kv;
use crate::peers;
use crate::sessions::Sessions;
use crate::statement::Statement;
use crate::transaction::{PreparedPart, ShownLock, TxnNumber};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Locks that are shown of one node, at most.
pub(crate) const LOCKS_PER_NODE_MAX: usize = 10_000;
/// Transactions that are shown of one node, at most, and as many parts of them that are prepared.
pub(crate) const TRANSACTIONS_PER_NODE_MAX: usize = 10_000;
/// For so long several functions of one statement go by one picture, microseconds.
const PICTURE_LASTS_US: i64 = 1_000_000;

/// A number under which a session holds locks, or writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionTxn {
    /// The number; none has who has only written.
    pub txn: Option<TxnNumber>,
    /// The session's process id.
    pub pid: i32,
    /// What the session does, as `pg_stat_activity` names it.
    pub state: String,
    /// For how long it has waited for a lock, microseconds, if it does.
    pub waits_us: Option<i64>,
    /// It is no transaction, but a lock of the session.
    pub lasting: bool,
    /// Locks that it holds at its own node, about.
    pub held: usize,
    /// Keys that it has written.
    pub keys: usize,
    /// Bytes that these take, about.
    pub bytes: usize,
    /// The mode in force.
    pub consistency: Option<String>,
    /// Since when, microseconds before now.
    pub age_us: Option<i64>,
    /// Whose session it is.
    pub user: String,
    /// The session's statement.
    pub query: Option<String>,
}

/// What was told.
#[derive(Debug, Default)]
pub struct Picture {
    /// Locks, and the node with which each lies; those of a key beside each other, the holders first.
    pub locks: Vec<(u32, ShownLock)>,
    /// Sessions that hold, wait or write, and their nodes.
    pub sessions: Vec<(u32, SessionTxn)>,
    /// Transactions that hold so many locks at another node than their own.
    pub held_elsewhere: Vec<(TxnNumber, usize)>,
    /// What is prepared.
    pub prepared: Vec<PreparedPart>,
    /// Nodes that have not answered, and why.
    pub silent: Vec<(u32, String)>,
    /// Nodes that hold more than they have told.
    pub cut: BTreeSet<u32>,
    by_txn: BTreeMap<TxnNumber, usize>,
}

/// What is to be in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Locks of keys for which somebody waits.
    Contended,
    /// Locks; those for which somebody waits before the others.
    Locks,
    /// Transactions.
    Transactions,
}

impl Picture {
    /// Looks at this node, and unless told otherwise at all others.
    pub fn take(context: &Statement, wanted: Wanted, with_peers: bool) -> Picture {
        let kv = context.kv.as_ref();
        let mut picture = Picture::default();
        for (node, row) in lines::own(&context.backend.sessions, kv, wanted) {
            picture.add(node, &row);
        }
        if with_peers {
            let questions = lines::questions(wanted);
            for told in kv.ask_peers(&questions, peers::next_question, &mut || context.check().is_err()) {
                for row in told.answers.iter().flat_map(|text| peers::rows_of(text)) {
                    picture.add(told.node, &row);
                }
                picture.silent.extend(told.error.map(|why| (told.node, why)));
            }
        }
        picture.settle();
        picture
    }

    /// The locks for which somebody waits, of all nodes, once for all who ask within a statement.
    pub fn contended(context: &Statement) -> Arc<Picture> {
        let (now_us, statement_us) = (context.kv.monotonic_us(), context.statement_us);
        let mut kept = context.backend.picture.lock();
        if let Some((of, at_us, picture)) = &*kept
            && *of == statement_us
            && now_us.saturating_sub(*at_us) < PICTURE_LASTS_US
            && let Ok(picture) = picture.clone().downcast()
        {
            return picture;
        }
        let picture = Arc::new(Picture::take(context, Wanted::Contended, true));
        *kept = Some((statement_us, context.kv.monotonic_us(), picture.clone()));
        picture
    }

    fn add(&mut self, node: u32, row: &[Option<String>]) {
        match lines::read(row) {
            Some(lines::Line::Lock(lock)) => self.locks.push((node, lock)),
            Some(lines::Line::Session(session)) => self.sessions.push((node, session)),
            Some(lines::Line::Elsewhere(txn, held)) => self.held_elsewhere.push((txn, held)),
            Some(lines::Line::Prepared(part)) => self.prepared.push(part),
            Some(lines::Line::Cut) => drop(self.cut.insert(node)),
            // The next question, or what a later version tells.
            None => {}
        }
    }

    /// Everything was added.
    fn settle(&mut self) {
        // A page may begin where the one before it ended, and who is waited for comes once among those and once among all.
        let mut seen = BTreeSet::new();
        self.locks.retain(|(node, lock)| seen.insert((*node, lock.key.clone(), lock.txn, lock.granted)));
        let txns = self.sessions.iter().enumerate();
        self.by_txn = txns.filter_map(|(at, (_, session))| Some((session.txn?, at))).collect();
    }

    /// The session of a number, and its node.
    pub fn session_of(&self, txn: TxnNumber) -> Option<&(u32, SessionTxn)> {
        self.by_txn.get(&txn).and_then(|at| self.sessions.get(*at))
    }

    /// The process id of a number's session; 0, as PostgreSQL has it for what no process does any more: it is not known.
    pub(crate) fn pid_of(&self, txn: TxnNumber) -> i32 {
        self.session_of(txn).map_or(0, |(_, session)| session.pid)
    }

    /// The process ids of those in the way of a session.
    pub fn blocking(&self, pid: i32) -> Vec<i32> {
        let waiting = self.locks.iter().filter(|(_, lock)| !lock.granted && self.pid_of(lock.txn) == pid);
        let before = waiting.flat_map(|(_, lock)| lock.before.iter().map(|txn| self.pid_of(*txn)));
        let all: BTreeSet<i32> = before.filter(|before| *before != pid).collect();
        all.into_iter().collect()
    }
}

/// Whether a session of this node waits for a lock.
pub fn anybody_waits(sessions: &Sessions) -> bool {
    sessions.all().iter().any(|backend| backend.waits_for_lock_since_us().is_some())
}

/// The number of this node as it is shown: alone it is the first, as in `timeball_internal.ranges`.
pub(crate) fn shown_node(kv: &dyn Kv) -> u32 {
    kv.node().max(1)
}
