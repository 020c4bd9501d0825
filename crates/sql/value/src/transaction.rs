//! What SQL needs of the layers below: a transactional, ordered, multi-version map of bytes. Adapted in `server`; [`memory`]
//! holds a small one for tests.
//!
//! Calls block. A transaction that must wait (for a lock, an undecided writer, rule 1) waits inside the call, until its
//! [`Interrupt`] is raised or its statement's deadline passes.

mod interrupt;
mod loading;
pub mod memory;
mod patience;
mod row_waits;
mod scratch;
mod shown;
mod sweep;
mod sweeping;

pub use interrupt::{Deadline, Interrupt, LockTimeout, Wait, Waiting};
pub use loading::Loading;
pub use patience::Patience;
pub(crate) use row_waits::NoRowWaits;
pub use row_waits::{RowWaiter, RowWaits};
pub use scratch::{MemoryScratch, Scratch};
pub use shown::{Footprint, LockOwner, PreparedPart, ShownLock, TxnNumber};
pub use sweep::{Pick, Sweep};
pub use sweeping::{Sweeper, Sweeping};

use bytes::Bytes;
use clock::Timestamp;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;

/// A half-open span of keys.
pub type Span = Range<Bytes>;

/// `SET TRANSACTION ISOLATION LEVEL` (design §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Reads are certified.
    #[default]
    Serializable,
    /// Snapshot isolation: writes are certified.
    RepeatableRead,
    /// A snapshot per statement.
    ReadCommitted,
}

/// `SET timeball.consistency` (design §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Consistency {
    /// `strict` while `2·error` is within the budget, `hybrid` beyond it.
    #[default]
    Auto,
    /// Commit-wait: external consistency.
    Strict,
    /// HybridTime with an uncertainty limit.
    Hybrid,
    /// HybridTime along the session token only.
    Token,
    /// The raw physical clock.
    None,
    /// A snapshot of the past, as fresh as the replicas here have it, within `timeball.max_staleness` if that is set: transactions that only read, and begin with
    /// [`BeginOptions::as_of`].
    Stale,
}

impl Consistency {
    /// Under their names.
    pub const NAMES: [(&str, Consistency); 6] = [
        ("auto", Consistency::Auto),
        ("strict", Consistency::Strict),
        ("hybrid", Consistency::Hybrid),
        ("token", Consistency::Token),
        ("none", Consistency::None),
        ("stale", Consistency::Stale),
    ];

    /// By its name.
    pub fn of_name(name: &str) -> Option<Consistency> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, consistency)| *consistency)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }
}

/// `SET timeball.uncertainty`: up to where a version may have been acknowledged before a `hybrid` transaction began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Uncertainty {
    /// Up to the reader's own bound, as measured.
    #[default]
    Dynamic,
    /// Up to so much beyond what the reader's clock shows, microseconds.
    Static(u64),
    /// `Dynamic` while the bound is known, `Static` while it is lost.
    Fallback(u64),
}

/// `SET timeball.snapshot_age`: how much older than the present the snapshot of `token` and `none` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SnapshotAge {
    /// Not at all.
    #[default]
    Present,
    /// So much, microseconds.
    Fixed(u64),
    /// As long as commits take, and as clocks may be apart.
    Tuned,
}

/// What a transaction or statement that is repeated, for the same message of its client, knows of what was uncertain to it: [`Transaction::kept_uncertainty`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptUncertainty {
    /// Nothing that was acknowledged before the message came lies above.
    pub limit: Timestamp,
    /// The snapshot lies at least here.
    pub least: Timestamp,
    /// The numbers of the nodes whose times lie below that.
    pub caught_up: Vec<u32>,
}

/// How a transaction begins.
#[derive(Clone, Debug, Default)]
pub struct BeginOptions {
    /// Isolation level.
    pub isolation: Isolation,
    /// Consistency mode.
    pub consistency: Consistency,
    /// Where the uncertainty of `hybrid` ends.
    pub uncertainty: Uncertainty,
    /// What `auto` may wait for at a commit, at most, nanoseconds; `None`: what the node is set to.
    pub commit_wait_budget_ns: Option<u64>,
    /// How old the snapshot of `token` and `none` is.
    pub snapshot_age: SnapshotAge,
    /// Greatest timestamp that the session has seen (its token).
    pub token: Timestamp,
    /// Writes are refused.
    pub read_only: bool,
    /// `AS OF SYSTEM TIME`: an exact snapshot of the past; implies `read_only`, no uncertainty, no certification.
    pub as_of: Option<Timestamp>,
    /// Raised to end a wait.
    pub interrupt: Interrupt,
    /// When the present statement must end; waits look at it, too.
    pub deadline: Deadline,
    /// Longest wait for one lock, as it is set when it is waited for.
    pub lock_timeout: LockTimeout,
    /// The session that it is of: see [`Kv::look_at_row_waits`].
    pub session: Option<u64>,
    /// Somebody asked for this consistency: where the clock cannot give it the first operation that needs a snapshot is refused. What is begun beside, and nobody asked for, is `token` then.
    pub is_asked_for: bool,
    /// It is begun once more for a message that has failed to see what it must: never for a later one.
    pub kept: Option<KeptUncertainty>,
}

/// What a lock on a row keeps others from, from weak to strong: PostgreSQL's four modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LockMode {
    /// `FOR KEY SHARE`: the row stays, and its key; excludes only the last one.
    KeyShare,
    /// `FOR SHARE`: the row stays as it is; excludes the next two.
    Share,
    /// `FOR NO KEY UPDATE`, and an UPDATE that leaves the keys alone: excludes all but `KeyShare`.
    NoKeyUpdate,
    /// `FOR UPDATE`, DELETE, and an UPDATE of a key: excludes all.
    #[default]
    Update,
}

impl LockMode {
    /// Whether two transactions cannot hold a row in these modes at a time.
    pub fn excludes(self, other: LockMode) -> bool {
        match self.min(other) {
            LockMode::KeyShare => self.max(other) == LockMode::Update,
            LockMode::Share => self.max(other) >= LockMode::NoKeyUpdate,
            LockMode::NoKeyUpdate | LockMode::Update => true,
        }
    }
}

/// What a lock request does when another transaction holds the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LockWait {
    /// Queue.
    #[default]
    Wait,
    /// `NOWAIT`: fail with [`KvError::LockNotAvailable`].
    NoWait,
    /// `SKIP LOCKED`: say so.
    Skip,
}

/// One request for rows of a span.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// The keys wanted.
    pub span: Span,
    /// Highest key first.
    pub reverse: bool,
    /// At most this many rows in one chunk.
    pub limit: usize,
}

/// Rows of a span, in order, with the transaction's own writes merged in.
#[derive(Clone, Debug, Default)]
pub struct ScanChunk {
    /// Keys and values.
    pub rows: Vec<(Bytes, Bytes)>,
    /// What remains to be asked for; `None` at the end.
    pub rest: Option<Span>,
}

/// What a commit gave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Committed {
    /// Commit timestamp; the snapshot for a read-only transaction.
    pub timestamp: Timestamp,
}

/// What time cost this transaction so far: for `EXPLAIN ANALYZE`.
#[derive(Clone, Debug, Default)]
pub struct TxnStats {
    /// Mode in force, as settled at begin (`auto` resolved).
    pub consistency: Consistency,
    /// Clock error at begin, nanoseconds.
    pub bound_ns: u64,
    /// Restarts or refreshes caused by an uncertain read.
    pub uncertainty_restarts: u64,
    /// Times the snapshot moved up without a restart.
    pub refreshes: u64,
    /// Nanoseconds waited for locks.
    pub lock_wait_ns: u64,
    /// Nanoseconds that the commit waited for rule 1 beyond replication.
    pub commit_wait_ns: u64,
    /// Nanoseconds of the wait for rule 1 that replication took anyway.
    pub commit_wait_hidden_ns: u64,
}

/// A transaction failed, and what the caller must do: see [`KvError::retry`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// Run the whole transaction again: SQLSTATE 40001.
    #[error("restart transaction: {reason}")]
    Restart {
        /// What conflicted, in words.
        reason: String,
        /// The key that it is about.
        key: Option<Bytes>,
    },
    /// 40P01.
    #[error("deadlock detected")]
    Deadlock {
        /// Who waits for what; each is blocked by the next one, the last by the first.
        circle: Vec<RowWaiter>,
    },
    /// 55P03.
    #[error("could not obtain lock on row")]
    LockNotAvailable {
        /// The key that was asked for.
        key: Option<Bytes>,
        /// It was waited for, until `lock_timeout`.
        waited: bool,
    },
    /// 57014.
    #[error("canceling statement due to user request")]
    Interrupted,
    /// 57014.
    #[error("canceling statement due to statement timeout")]
    TimedOut,
    /// 40003: the transaction has committed, for certain, and the wait for its acknowledgement was ended.
    #[error("{0}")]
    Unacknowledged(String),
    /// 53100.
    #[error("the disk is full: writes are refused until space is freed, reads go on")]
    DiskFull,
    /// 54000.
    #[error("{what} has {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Key, value or transaction.
        what: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The greatest size in bytes.
        limit: usize,
    },
    /// 53200: the transaction is large, and the range that it writes to has no room for it now.
    #[error("{0}")]
    Crowded(String),
    /// 53200: the statements and writes of all sessions take all that the node has for them.
    #[error("the transaction's writes take {bytes} bytes, and all sessions together may have {limit}")]
    OutOfMemory {
        /// What this transaction's writes take.
        bytes: usize,
        /// What there is for all now.
        limit: usize,
        /// What there is for all where nothing else needs it.
        share: usize,
        /// What others hold of it.
        others: usize,
    },
    /// 0A000: a later version of the cluster brings it.
    #[error("{0}")]
    NeedsVersion(String),
    /// 25006.
    #[error("cannot write in a read-only transaction")]
    ReadOnly,
    /// 22023: the past asked for was collected, or lies in the future.
    #[error("snapshot {asked} cannot be read: {reason}")]
    SnapshotUnavailable {
        /// What was asked for.
        asked: Timestamp,
        /// Why not, and what can.
        reason: String,
        /// What was to be read, where other tables can be read at that snapshot.
        key: Option<Bytes>,
    },
    /// 57P03: the clock's bound does not allow this consistency now.
    #[error("{0}")]
    ClockUnavailable(String),
    /// 40003: it could not be learned whether the transaction has committed.
    #[error("it is not known whether the transaction has committed: the ranges that it wrote do not answer")]
    CommitUnknown,
    /// 57P03: a range of the cluster cannot be reached, or has no majority of its replicas.
    #[error("{told}")]
    Unavailable {
        /// What was asked for there.
        key: Option<Bytes>,
        /// Which range, who asked, and who does not answer.
        told: String,
    },
    /// 57P03: the node is none of its cluster any more.
    #[error("{0}")]
    Removed(String),
    /// 58030: the disk failed.
    #[error("storage failed: {0}")]
    Storage(String),
    /// 57P01.
    #[error("the node is shutting down")]
    ShuttingDown,
}

impl KvError {
    /// Whether running the transaction again may succeed.
    pub fn retry(&self) -> bool {
        matches!(self, KvError::Restart { .. })
    }
}

/// Indexes that may be kept for another time than the rest.
pub const KEPT_INDEXES_MAX: usize = 4000;

/// How long the past of some indexes is kept, where that is not as long as the rest's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retentions {
    /// Indexes, by the first four bytes of their keys, and seconds; in order, at most [`KEPT_INDEXES_MAX`].
    pub indexes: Vec<(u32, u64)>,
    /// What is read together with any other: kept as long as what is kept longest. In order, and before the others.
    pub shared: Vec<u32>,
}

/// What an operator's statement asks of the layers below.
#[derive(Clone, Debug)]
pub enum Admin {
    /// Split the range that holds this key at it.
    Split(Bytes),
    /// The ranges that cover this span: answers with their start keys.
    Ranges(Span),
}

/// What [`Kv::admin`] answers.
#[derive(Clone, Debug)]
pub enum AdminReply {
    /// Done.
    Done,
    /// Start keys and range numbers, in key order.
    Ranges(Vec<(Bytes, u64)>),
}

/// The database below SQL.
pub trait Kv: Send + Sync + 'static {
    /// Begins a transaction. Cheap: every statement outside a block begins one.
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError>;
    /// A number that is unique in the cluster and grows on this node: for hidden row ids.
    fn unique_id(&self) -> u64;
    /// The number of this node, which it keeps over restarts: what it began and left, it alone takes back, until it [`Kv::has_left`]. 0: it is alone.
    fn node(&self) -> u32 {
        0
    }
    /// Whether a node was one of the cluster's and is none any more, for good: what it began and left others take back.
    fn has_left(&self, node: u32) -> bool {
        let _ = node;
        false
    }
    /// The number of the cluster; `None`: it is alone.
    fn cluster(&self) -> Option<u64> {
        None
    }
    /// Microseconds since the Unix epoch, for `now()` and its kind.
    fn now_us(&self) -> i64;
    /// Microseconds since some moment, for timeouts: goes on evenly wherever the clock is set. Unless overridden: [`Kv::now_us`].
    fn monotonic_us(&self) -> i64 {
        self.now_us()
    }
    /// The moment so many microseconds ago, as a snapshot for `AS OF SYSTEM TIME`: what was acknowledged a second or more before it lies
    /// at or below it, wherever the clock was set. Unless overridden: [`Kv::now_us`] less that.
    fn ago(&self, age_us: u64) -> Timestamp {
        Timestamp::new(u64::try_from(self.now_us()).unwrap_or(0).saturating_sub(age_us), 0)
    }
    /// The newest snapshot that can be read here without asking another node, if it is not before `least`; else `least`. Unless overridden everything
    /// is here.
    fn freshest(&self, least: Timestamp) -> Timestamp {
        self.ago(0).max(least)
    }
    /// The newest snapshot that can be read here and stays so if all other nodes are lost, if it is not before `least`; else `least`. Unless overridden: [`Kv::freshest`].
    fn freshest_alone(&self, least: Timestamp) -> Timestamp {
        self.freshest(least)
    }
    /// Room beside the database for what does not fit a statement's memory. Unless overridden it is in memory.
    ///
    /// # Errors
    /// Those of the disk.
    fn scratch(&self) -> Result<Box<dyn Scratch>, KvError> {
        Ok(Box::new(MemoryScratch::default()))
    }
    /// Shows who waits for whose rows, as it is at one moment: no row is locked or given back before `look` returns.
    fn look_at_row_waits(&self, look: &mut dyn FnMut(&dyn RowWaits)) {
        look(&NoRowWaits);
    }
    /// The locks of the rows that this node leads, as they are at one moment: in the order of their keys, and of each key those that are held before those
    /// that are waited for, from behind the first `at.1` of key `at.0`, at most `max`. `contended`: only of keys for which somebody waits.
    fn shown_locks(&self, contended: bool, at: (&[u8], usize), max: usize) -> Vec<ShownLock> {
        let _ = (contended, at, max);
        Vec::new()
    }
    /// Who holds locks at this node, or waits for one; and whoever of this node does elsewhere.
    fn lock_owners(&self) -> Vec<LockOwner> {
        Vec::new()
    }
    /// What is prepared at ranges that this node leads; at most `max`.
    fn prepared(&self, max: usize) -> Vec<PreparedPart> {
        let _ = max;
        Vec::new()
    }
    /// The other nodes of the cluster.
    fn peers(&self) -> Vec<u32> {
        Vec::new()
    }
    /// Asks the SQL layer of another node a question (`peers`).
    ///
    /// # Errors
    /// It does not answer: in words.
    fn ask_peer(&self, node: u32, question: &str) -> Result<String, String> {
        let _ = question;
        Err(format!("there is no node {node}"))
    }
    /// Asks the SQL layers of all other nodes at a time, each the same questions, and each again as long as `next` finds a question in its last answer. It ends when
    /// all have answered, or after a while that is bounded, or when `stop` says so; whoever has not answered then has an error, beside what it has
    /// answered.
    fn ask_peers(
        &self,
        questions: &[String],
        next: fn(&str) -> Option<String>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Vec<PeerAnswers> {
        let _ = (questions, next, stop);
        Vec::new()
    }
    /// From now on, this answers the questions of others; `None`: it does not understand.
    fn answer_peers(&self, answer: PeerAnswer) {
        let _ = answer;
    }
    /// A lock on a key for a session, which all nodes see; `None`: there is no other node.
    fn session_lock(&self, session: u64, key: &[u8]) -> Option<Box<dyn SessionLock>> {
        let _ = (session, key);
        None
    }
    /// What is kept for another time than the rest, from now on, in place of what was said before.
    fn keep(&self, _: Retentions) {}
    /// Writes rows past all transactions, in one step that survives a crash: far cheaper than a transaction. Keys ascend, they lie where
    /// no committed descriptor points and nobody has read, and a durable record says where (`ddl`'s `load`). A transaction that
    /// takes its snapshot afterwards sees them. `false`: not possible here, write them in transactions.
    ///
    /// # Errors
    /// Those of the disk, and of whoever ends the wait for it; nothing was written then.
    fn load(&self, rows: &[(Bytes, Bytes)], patience: &Patience) -> Result<bool, KvError> {
        let _ = (rows, patience);
        Ok(false)
    }
    /// As [`Kv::load`], which may go on after this has returned: what is given back says how it ended.
    fn load_aside(&self, rows: &Arc<Vec<(Bytes, Bytes)>>, patience: &Patience) -> Loading {
        Loading::ended(self.load(rows, patience))
    }
    /// Reads a span to its end: the next rows, where that is possible, while their user looks at these.
    fn sweep_aside(&self, sweeper: Sweeper) -> Sweeping {
        Sweeping::here(sweeper)
    }
    /// Whether the disk takes so many bytes more and has as much left as ordinary writes need. Unless overridden it has no bound.
    fn has_room_for(&self, bytes: u64) -> bool {
        let _ = bytes;
        true
    }
    /// Erases all keys that begin with these bytes, once no snapshot can be read any more that is older than the present value of `witness`;
    /// without one at once: no snapshot has a use for them.
    /// No newer one has a use for them, and nobody writes them. `None`: not possible here, delete them.
    ///
    /// # Errors
    /// Those of the disk.
    fn erase(&self, prefix: [u8; 4], witness: Option<&[u8]>) -> Result<Option<Erased>, KvError> {
        let _ = (prefix, witness);
        Ok(None)
    }
    /// An operator's request.
    fn admin(&self, request: Admin) -> Result<AdminReply, KvError>;
    /// Rows of a `timeball_internal` table by name (`clocks`, `ranges`, ...): column names and rows of text; `None` if unknown.
    fn internal_table(&self, name: &str) -> Option<(Vec<String>, Vec<Vec<Option<String>>>)>;
    /// Whether there is such a table.
    fn has_internal_table(&self, name: &str) -> bool {
        self.internal_table(name).is_some()
    }
}

/// What a node has answered: see [`Kv::ask_peers`].
#[derive(Clone, Debug, Default)]
pub struct PeerAnswers {
    /// The node.
    pub node: u32,
    /// Its answers.
    pub answers: Vec<String>,
    /// Why there are no more, in words.
    pub error: Option<String>,
}

/// What answers the questions of other nodes: see [`Kv::answer_peers`].
pub type PeerAnswer = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A lock of a session, which outlives its transactions. Dropping it gives it back.
pub trait SessionLock: Send {
    /// Takes it in a mode, or makes it stronger; `false`: another has it, and `wait` is not to wait. `stop` is asked while it waits, and ends that by `true`
    /// ([`KvError::Interrupted`]): it is held as strong as it was, then, if it was.
    fn take(&mut self, mode: LockMode, wait: LockWait, stop: &mut dyn FnMut() -> bool) -> Result<bool, KvError>;
    /// Whether it was held, and may be another's now: nobody who could say so was heard for too long.
    fn is_lost(&self) -> bool;
}

/// What [`Kv::erase`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erased {
    /// Nothing is left.
    All,
    /// Call again.
    Part,
    /// Call again after a while.
    NotYet,
}

/// One transaction: a snapshot, a buffer of writes, a set of reads.
pub trait Transaction: Send {
    /// The snapshot read from.
    fn snapshot(&self) -> Timestamp;
    /// Whether it has its snapshot. Else the next that it reads or locks takes one, which may be another than [`Transaction::snapshot`] says until then.
    fn has_snapshot(&self) -> bool {
        true
    }
    /// The value at the snapshot, own writes first. Certified at commit under SERIALIZABLE.
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError>;
    /// As [`Transaction::get`], certified at every isolation level: for constraints and the catalog.
    fn get_certified(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError>;
    /// As [`Transaction::get`], for a look that promises nothing: at no level certified, and what is undecided is not waited for.
    /// For SKIP LOCKED: what comes of the look is locked and read again. (By default more is promised, which is always right.)
    fn peek(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.get(key)
    }
    /// As [`Transaction::get`], and remembered for nothing: others may change it, also while the snapshot moves over it. Whoever goes by what
    /// he saw says what of it he relies on: [`Transaction::rely`]. (By default more is promised, which is always right.)
    fn observe(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.get(key)
    }
    /// As [`Transaction::observe`], and does not wait for somebody to answer where nobody is known who would: [`KvError::Unavailable`].
    fn observe_hastily(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.observe(key)
    }
    /// Whether the value of a key of at most four bytes is certainly what it was at `since`, an earlier snapshot: then nobody needs to look.
    /// (`false` is always right.)
    fn is_as_it_was(&self, key: &[u8], since: Timestamp) -> bool {
        let _ = (key, since);
        false
    }
    /// When it began, microseconds since the Unix epoch by [`Kv::now_us`]; `None`: whoever began it looks himself.
    fn began_us(&self) -> Option<i64> {
        None
    }
    /// The transaction relies on it that a key has not changed since `since`, at or below the snapshot: as a read, with no value asked for; a restart
    /// where it has. `certified`: at every isolation level, until the commit or until the writes since a mark before it are undone.
    fn rely(&mut self, key: &Bytes, since: Timestamp, certified: bool) -> Result<(), KvError> {
        let _ = since;
        if certified { self.get_certified(key) } else { self.get(key) }.map(drop)
    }
    /// A chunk of rows at the snapshot, own writes merged.
    fn scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError>;
    /// As [`Transaction::scan`], certified at every isolation level.
    fn scan_certified(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError>;
    /// As [`Transaction::scan`], for a look that promises nothing: see [`Transaction::peek`].
    fn peek_scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.scan(request)
    }
    /// As [`Transaction::scan`], and remembered for nothing: see [`Transaction::observe`]. (By default more is promised, which is always right.)
    fn observe_scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.scan(request)
    }
    /// Whether [`Transaction::unreferred`] can be said of one key more. It may be answered otherwise later.
    fn guards_references(&self) -> bool {
        false
    }
    /// The caller has looked who refers to a key, by reads at one snapshot that are not remembered ([`Transaction::observe_scan`]), and goes by it: the commit is refused, or the transaction restarts, where
    /// another has committed above that snapshot that relies on the key's being [`Transaction::present`]. So whatever is written to the key by then, at every level, and however far the snapshot has moved; until
    /// [`Transaction::rollback_to`] takes back what was built on it. `false`: it is not promised, and what was looked through is to be certified.
    fn unreferred(&mut self, _key: &Bytes, _since: Timestamp) -> bool {
        false
    }
    /// The newest snapshot at which all of these spans can be read, by another transaction, without waiting for one that is on its way: at or above `least`, except
    /// where something older than that is in the way. Who leads them is asked, each once. (By default nobody is waited for.)
    fn negotiate(&mut self, spans: &[Span], least: Timestamp) -> Result<Timestamp, KvError> {
        let _ = spans;
        Ok(self.snapshot().max(least))
    }
    /// At most `limit` rows of a span as [`Transaction::scan`] gives them (or [`Transaction::scan_certified`]), in a form that is faster for many of
    /// which few are kept. `None`: they have to be scanned.
    fn sweep(&mut self, span: &Span, limit: usize, certified: bool) -> Result<Option<Sweep>, KvError> {
        let _ = (span, limit, certified);
        Ok(None)
    }
    /// As [`Transaction::sweep`]; of what `pick` does not want, rows may be left out, and do not count for the limit. They count as read. Whoever picks asks again:
    /// rows may be given that he was not asked about. (By default none is left out.)
    fn sweep_picked(
        &mut self,
        span: &Span,
        limit: usize,
        certified: bool,
        pick: &mut Pick<'_>,
    ) -> Result<Option<Sweep>, KvError> {
        let _ = pick;
        self.sweep(span, limit, certified)
    }
    /// Takes the advisory lock on a key in a mode, until the transaction ends or gives it back ([`Transaction::release_since`]). `false`:
    /// skipped. Afterwards a `get` of the key gives its newest value: the snapshot moved up if it had to (and could), else
    /// [`KvError::Restart`] (with [`LockWait::Skip`]: skipped).
    fn lock_as(&mut self, key: &[u8], mode: LockMode, wait: LockWait) -> Result<bool, KvError>;
    /// Locks keys of one index, in ascending order, all at once: gives how many of them, from the first on, are as after [`Transaction::lock_as`] that waited for
    /// nobody and left the snapshot where it is; past the most that a transaction may hold they count as locked, as there. The next one is to be locked by itself. (By default none is.)
    fn lock_all(&mut self, keys: &[&[u8]], mode: LockMode) -> Result<usize, KvError> {
        let _ = (keys, mode);
        Ok(0)
    }
    /// As [`Transaction::lock_as`], in the strongest mode.
    fn lock(&mut self, key: &[u8], wait: LockWait) -> Result<bool, KvError> {
        self.lock_as(key, LockMode::Update, wait)
    }
    /// As [`Transaction::lock_as`], waiting, and leaves the snapshot where it is.
    fn hold(&mut self, key: &[u8], mode: LockMode) -> Result<(), KvError>;
    /// Whether it holds so many locks that it takes no more: what it is given from now on it does not hold.
    fn is_full_of_locks(&self) -> bool {
        false
    }
    /// Whether keys may have to be asked for elsewhere, so that it pays to say which come next: [`Transaction::read_ahead`], [`Transaction::lock_ahead`].
    fn is_far(&self) -> bool {
        false
    }
    /// These keys are about to be read: whoever pays a round trip for each asks for them together. Nothing follows from it but that they may be there sooner, and what is
    /// not read then does not count as read. (By default nothing is done.)
    fn read_ahead(&mut self, keys: &[Bytes]) -> Result<(), KvError> {
        let _ = keys;
        Ok(())
    }
    /// The first chunk of each of these is about to be scanned: as [`Transaction::read_ahead`]. A scan of the same span that asks for as many rows or more may be given the chunk that was
    /// asked for. Says whether anything was: else there is nobody to be asked. (By default nothing is.)
    fn scan_ahead(&mut self, requests: &[ScanRequest]) -> Result<bool, KvError> {
        let _ = requests;
        Ok(false)
    }
    /// The keys of a span are about to be read, and likely none of them is there, nor any behind them up to `end`: whether none is. Reads that follow then ask nobody. It promises
    /// nothing: what is relied on is read. (By default nobody needs to be asked.)
    fn find_gap(&mut self, span: &Span, end: &Bytes) -> Result<bool, KvError> {
        let _ = (span, end);
        Ok(false)
    }
    /// These keys are about to be locked in this mode, waiting, in this order: when the first is, others may be with it, up to one that somebody else has. (By default
    /// nothing is done.)
    fn lock_ahead(&mut self, keys: &[Bytes], mode: LockMode) {
        let _ = (keys, mode);
    }
    /// Whether a key has a value now, own writes first, wherever the snapshot lies. If so, it must still have one at the commit, at every
    /// isolation level; which one does not matter. For references.
    fn present(&mut self, key: &[u8]) -> Result<bool, KvError>;
    /// Buffers a write. Does not lock: statements that hit existing rows lock first.
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), KvError>;
    /// Buffers a delete.
    fn delete(&mut self, key: Bytes) -> Result<(), KvError>;
    /// As [`Transaction::delete`] of each, for many keys of one index, in any order.
    fn delete_all(&mut self, keys: &[&[u8]]) -> Result<(), KvError> {
        keys.iter().try_for_each(|key| self.delete(Bytes::copy_from_slice(key)))
    }
    /// Buffers a write (`None`: a delete) that meets no other: it is not certified, so of several the last one to commit stays. A key that is
    /// written so is never written otherwise. (By default it is certified, which is always right.)
    fn overwrite(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), KvError> {
        match value {
            Some(value) => self.put(key, value),
            None => self.delete(key),
        }
    }
    /// What the transaction does frees space in the end (it drops a table, say), whatever it writes to say so: a full disk lets it
    /// through where there is room held back for that.
    fn frees_space(&mut self) {}
    /// A statement begins: READ COMMITTED takes a new snapshot.
    fn begin_statement(&mut self) -> Result<(), KvError>;
    /// The statement that was begun last begins once more: its client has seen nothing since. (By default as one that is new, which is always right.)
    fn repeat_statement(&mut self) -> Result<(), KvError> {
        self.begin_statement()
    }
    /// After [`KvError::Restart`]: what a transaction that is begun instead, for the same message, is to know ([`BeginOptions::kept`]).
    fn kept_uncertainty(&self) -> Option<KeptUncertainty> {
        None
    }
    /// Marks the writes so far; savepoints nest as numbers grow.
    fn savepoint(&mut self) -> u32;
    /// Undoes the writes since the mark; the mark stays. Reads and locks stay.
    fn rollback_to(&mut self, savepoint: u32);
    /// Gives back the locks that were taken since the mark: for a savepoint of the client's.
    fn release_since(&mut self, savepoint: u32);
    /// Notes which locks it holds now, for [`Transaction::release_noted`]: one note is kept, the newest. It costs less than a savepoint, and leaves the writes alone. (By default nothing is.)
    fn note_locks(&mut self) {}
    /// Gives back the locks that were taken since they were noted. (By default they stay until the transaction ends, which is always right.)
    fn release_noted(&mut self) {}
    /// Whether anything was written.
    fn has_writes(&self) -> bool;
    /// Commits; acknowledged means durable and past (rule 1).
    fn commit(&mut self) -> Result<Committed, KvError>;
    /// Gives up. Dropping does the same.
    fn rollback(&mut self);
    /// What it has done so far.
    fn footprint(&self) -> Footprint {
        Footprint::default()
    }
    /// What time cost.
    fn stats(&self) -> TxnStats;
}

/// A transaction shared between a session and the operators of one running statement (all on one thread).
#[derive(Clone)]
pub struct TxnRef(Arc<Mutex<Box<dyn Transaction>>>);

impl TxnRef {
    /// Wraps a transaction.
    pub fn new(txn: Box<dyn Transaction>) -> Self {
        TxnRef(Arc::new(Mutex::new(txn)))
    }
    /// Runs `f` on the transaction. Never call it from within `f`.
    pub fn with<R>(&self, f: impl FnOnce(&mut dyn Transaction) -> R) -> R {
        f(self.0.lock().as_mut())
    }
}
