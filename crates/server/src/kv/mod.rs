//! The blocking shell around the node core: real threads, a real clock, a real disk.
//!
//! # Problem
//! The core ([`node`]) has operations that are polled, records that somebody must write, and a time that somebody must tell. SQL
//! wants calls that block.
//!
//! # Idea
//! Each session thread runs the core's operations itself. Where one is pending the thread parks, and the core's waker unparks it.
//! A thread whose commit is pending first tries to *lead*: it takes all records that wait, writes and syncs them once, tells the core,
//! and wakes the others (leader and followers; see `log`). Three threads work in the background: one for what becomes due with
//! time (`timer`), one for space (`maintenance`), one that takes over the log while it is busy (`writer`).
//!
//! # Invariants
//! 1. Nothing is acknowledged before its record is synced and its timestamp past: the core does not answer earlier.
//! 2. If records wait for the disk, somebody is leading, or will be woken to lead.
//! 3. After a failure of the store or the log that is not a full disk, no write is taken until a restart.
//! 4. What is in memory fits the disk, unless others fill it: before it would not, ordinary writes are refused (`maintenance`), and what
//!    frees space goes on (decision 22).
//!
//! # Caveats
//! A commit cannot be interrupted while it is on its way to the disk: its outcome would be unknown. Where the clock holds it back, before it
//! or after, it can ([`node::Transaction::give_up_commit`]), and its outcome is certain.

pub(crate) mod compaction;
pub(crate) mod convert;
pub(crate) mod disk_log;
pub(crate) mod flush;
pub(crate) mod info;
mod load;
mod log;
mod maintenance;
mod node_clock;
mod open;
mod operations;
pub(crate) mod park;
pub(crate) mod reclaim;
pub(crate) mod retention;
mod room;
pub(crate) mod scratch;
pub(crate) mod sweeping;
mod timer;
pub(crate) mod transaction;
pub(crate) mod waits;
mod writer;

pub use log::{MemoryLog, RecordLog};
pub(crate) use node_clock::NodeClock;
pub use open::{KvOptions, OpenError, RETENTION_SECONDS};

use bytes::Bytes;
use clock::{Reading, Timestamp};
use log::Driver;
use node::cluster::spared_bytes;
use node::{Node, Span};
pub(crate) use operations::Shell;
use parking_lot::Mutex;
pub(crate) use room::Room;
use sql::transaction::{
    Admin, AdminReply, BeginOptions as SqlOptions, Erased, Loading, LockOwner, MemoryScratch, Patience, PreparedPart,
    Retentions, RowWaits, Scratch, ShownLock, Sweeper, Sweeping,
};
use sql::{Kv, KvError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Engine, Versions};
use transaction::KvTransaction;

/// A lone node that is to become a member comes to rest within so many looks, or does not; and the pause between them.
const REST_TRIES: usize = 1000;
const REST_PAUSE: Duration = Duration::from_millis(10);
/// Why it waits is told this often.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// A split that meets an undecided transaction is tried again this often, with a tick between.
const SPLIT_TRIES: usize = 200;

/// What the threads of one node share.
pub(crate) struct Inner<E> {
    pub node: Arc<Node<E>>,
    pub clock: Arc<NodeClock>,
    pub driver: Driver<E>,
    pub options: KvOptions,
    /// What timeouts count from.
    pub began: Instant,
    /// What is kept for another time than the rest; `None`: not known yet.
    pub kept: Mutex<Option<Arc<Retentions>>>,
    /// The versions in memory outgrow the engine: commits wait.
    pub crowded: AtomicBool,
    /// The engine's disk is full.
    pub full: AtomicBool,
    pub stopping: AtomicBool,
    /// Why no write is taken any more.
    pub broken: Mutex<Option<String>>,
}

/// Microseconds since the Unix epoch, as near as a reading knows.
pub(crate) fn wall_us(now: &Reading) -> i64 {
    i64::try_from(now.interval.middle_ns() / 1000).unwrap_or(i64::MAX)
}

/// One node on a real disk, as SQL wants it.
pub struct KvNode<E: Engine> {
    inner: Arc<Inner<E>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl<E: Engine> Inner<E> {
    fn begin(self: &Arc<Self>, options: &SqlOptions) -> Result<Box<KvTransaction<Self>>, KvError> {
        let now = self.clock.read();
        let begin = convert::begin(options);
        // It is large, and moved once.
        match node::Transaction::begin(&self.node, &now, &begin) {
            Ok(txn) => Ok(KvTransaction::new(self.clone(), txn, &now, options)),
            Err(e) => Err(convert::error(e)),
        }
    }

    /// Microseconds since the start, wherever the clock is set.
    pub fn monotonic_us(&self) -> i64 {
        i64::try_from(self.monotonic_ns() / 1000).unwrap_or(i64::MAX)
    }
    /// Nanoseconds since the start, wherever the clock is set: for timeouts and intervals.
    pub fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A failure that is not a full disk: reads go on, writes stop.
    pub fn fail(&self, what: &str) {
        let mut broken = self.broken.lock();
        if broken.is_none() {
            crate::log::error("storage failed, writes are refused until a restart", &[("cause", &what)]);
            *broken = Some(what.to_owned());
            self.node.close();
        }
    }
}

impl<E: Engine> Shell for Inner<E> {
    type Txn = node::Transaction<E>;
    type Engine = E;

    #[inline]
    fn now(&self) -> Reading {
        self.clock.read()
    }
    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns()
    }
    fn counters(&self) -> &node::Counters {
        self.node.counters()
    }
    fn memory(&self) -> &Arc<crate::Memory> {
        &self.options.memory
    }
    fn lead(&self) -> bool {
        self.driver.lead(self)
    }
    /// Alone, what an operation leaves waits for the disk: whoever waits leads.
    #[inline]
    fn settle(&self, _: bool) {}
    fn wait<R>(&self, poll: impl FnMut(&Waker) -> Poll<R>) -> R {
        self.driver.wait(self, poll)
    }
    fn is_full(&self, bytes: usize) -> bool {
        let (versions, log) = (self.node.versions(), self.driver.log());
        (self.full.load(Ordering::SeqCst) && Room::is_full(versions, log)) || !log.has_room_for(bytes)
    }
    fn versions(&self) -> &Versions<E> {
        self.node.versions()
    }
    fn log(&self) -> &dyn RecordLog {
        self.driver.log()
    }
    fn make_room(&self, bytes: usize) {
        self.driver.log().make_room(bytes);
    }
    fn failed(&self) -> Option<String> {
        self.broken.lock().clone()
    }
    fn is_crowded(&self, large: bool) -> bool {
        let versions = self.node.versions();
        // What a large transaction brought at once stood in memory before, as its writes: only the next one waits for it.
        let spared = || spared_bytes(versions, 0, self.options.memory.shares.staged_bytes());
        let spared_bytes = if large { 0 } else { spared() };
        // The thread that tells of crowds may itself be held up, by a long flush or merge: then the bytes tell.
        let crowded = self.crowded.load(Ordering::SeqCst) || versions.is_overlay_full_beside(spared_bytes);
        crowded && self.broken.lock().is_none()
    }
}

impl<E: Engine> KvNode<E> {
    /// The node core, for figures.
    pub fn node(&self) -> &Arc<Node<E>> {
        &self.inner.node
    }

    /// Stops: refuses new commits, writes out what waits, ends the threads. Once.
    pub fn shutdown(&self) {
        if self.inner.stopping.swap(true, Ordering::SeqCst) {
            return;
        }
        self.inner.node.close();
        for thread in self.threads.lock().drain(..) {
            thread.thread().unpark();
            if thread.join().is_err() {
                crate::log::error("a background thread ended by a panic", &[]);
            }
        }
        self.inner.node.give_back_lease(&self.inner.clock.read());
        self.inner.driver.drain(&self.inner);
        maintenance::flush_all(&self.inner);
    }

    /// Ends as a lone node, and leaves its store to the member `node` of a cluster: waits until all that it acknowledged is past (design 4a.11). Its log
    /// is of no use afterwards.
    ///
    /// # Errors
    /// The store failed; it is the lone node's as before, or the member's.
    pub fn become_member(&self, cluster: u64, node: u32) -> Result<(), String> {
        self.shutdown();
        let inner = &self.inner;
        let (mut told, mut tries) = (None, 0);
        loop {
            if let Some(why) = inner.broken.lock().clone() {
                return Err(why);
            }
            let now = inner.clock.read();
            let why = match inner.node.become_member(&now, cluster, node::cluster::NodeId(node)) {
                Ok(()) => break,
                Err(why) => why,
            };
            if why == node::cluster::NotYet::Busy {
                tries += 1;
                if tries > REST_TRIES {
                    return Err("a transaction of the lone node does not end: start it alone once more, and stop it with SIGTERM".into());
                }
            }
            if told.is_none_or(|at: Instant| at.elapsed() > TELL_EVERY) {
                told = Some(Instant::now());
                let now_us = now.interval.earliest_ns / 1000;
                crate::log::warning("joining_waits", &[("cause", &why), ("now_us", &now_us)]);
            }
            inner.driver.drain(inner);
            park::pause(REST_PAUSE);
        }
        let versions = inner.node.versions();
        while versions.frozen_layers() > 0 {
            match versions.flush() {
                Ok(true) => {}
                // The engine merges first.
                Ok(false) => park::pause(REST_PAUSE),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    fn split(&self, key: Bytes) -> Result<(), KvError> {
        for _ in 0..SPLIT_TRIES {
            let ticket = self.inner.node.split(&self.inner.clock.read(), key.clone(), &park::waker());
            let result = self.inner.driver.wait(&self.inner, |waker| ticket.poll(waker));
            match result {
                Ok(()) => return Ok(()),
                Err(node::CommitError::Refused(_)) => park::pause(Duration::from_millis(5)),
                Err(other) => return Err(convert::error(other.into())),
            }
        }
        Err(KvError::Restart { reason: "the range has transactions that are committing".into(), key: None })
    }
}

impl<E: Engine> Drop for KvNode<E> {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl<E: Engine> Kv for KvNode<E> {
    fn begin(&self, options: &SqlOptions) -> Result<Box<dyn sql::Transaction>, KvError> {
        Ok(self.inner.begin(options)?)
    }
    fn unique_id(&self) -> u64 {
        self.inner.node.unique_id(&self.inner.clock.read())
    }
    fn now_us(&self) -> i64 {
        wall_us(&self.inner.clock.read())
    }
    fn monotonic_us(&self) -> i64 {
        self.inner.monotonic_us()
    }
    fn ago(&self, age_us: u64) -> Timestamp {
        self.inner.node.ago(&self.inner.clock.read(), age_us)
    }
    fn freshest(&self, least: Timestamp) -> Timestamp {
        self.inner.node.visible().max(least)
    }
    fn scratch(&self) -> Result<Box<dyn Scratch>, KvError> {
        Ok(match &self.inner.options.scratch_dir {
            Some(dir) => {
                let inner = self.inner.clone();
                let has_room = move |bytes| inner.node.versions().lacks_room(bytes) == 0;
                Box::new(scratch::FileScratch::open(dir, Box::new(has_room))?)
            }
            None => Box::new(MemoryScratch::default()),
        })
    }
    fn look_at_row_waits(&self, look: &mut dyn FnMut(&dyn RowWaits)) {
        self.inner.node.look_at_locks(|table| look(&waits::Waits::of(table)));
    }
    fn shown_locks(&self, contended: bool, at: (&[u8], usize), max: usize) -> Vec<ShownLock> {
        let shown = self.inner.node.look_at_locks(|table| table.shown(contended, at, max, |_| true));
        shown.into_iter().map(convert::shown_lock).collect()
    }
    fn lock_owners(&self) -> Vec<LockOwner> {
        self.inner.node.look_at_locks(|table| table.owners().map(convert::lock_owner).collect())
    }
    fn prepared(&self, max: usize) -> Vec<PreparedPart> {
        self.inner.node.prepared(max).into_iter().map(convert::prepared).collect()
    }
    fn keep(&self, retentions: Retentions) {
        *self.inner.kept.lock() = Some(Arc::new(retentions));
    }
    fn load(&self, rows: &[(Bytes, Bytes)], patience: &Patience) -> Result<bool, KvError> {
        load::load(&self.inner, rows, patience)
    }
    fn load_aside(&self, rows: &Arc<Vec<(Bytes, Bytes)>>, patience: &Patience) -> Loading {
        load::load_aside(&self.inner, rows, patience)
    }
    fn sweep_aside(&self, sweeper: Sweeper) -> Sweeping {
        sweeping::aside(sweeper)
    }
    fn has_room_for(&self, bytes: u64) -> bool {
        self.inner.node.versions().lacks_room(bytes) == 0
    }
    fn erase(&self, prefix: [u8; 4], witness: Option<&[u8]>) -> Result<Option<Erased>, KvError> {
        load::erase(&self.inner, prefix, witness)
    }
    fn admin(&self, request: Admin) -> Result<AdminReply, KvError> {
        match request {
            Admin::Split(key) => self.split(key).map(|()| AdminReply::Done),
            Admin::Ranges(span) => {
                let ranges = self.inner.node.ranges(&Span::new(span.start, span.end));
                Ok(AdminReply::Ranges(ranges.into_iter().map(|(start, id)| (start, id.0)).collect()))
            }
        }
    }
    fn internal_table(&self, name: &str) -> Option<(Vec<String>, Vec<Vec<Option<String>>>)> {
        info::table(&self.inner, name)
    }
    fn has_internal_table(&self, name: &str) -> bool {
        matches!(name, "clocks" | "ranges" | "memory" | "past")
    }
}
