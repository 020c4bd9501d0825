//! From files to a node that serves.

use super::log::Driver;
use super::node_clock::NodeClock;
use super::{Inner, KvNode, MemoryLog, RecordLog, Room, disk_log, maintenance, timer, writer};
use crate::memory::{Allocator, Memory, Shares};
use bytes::Bytes;
use clocksource::ClockSource;
use node::{Input, Node, NodeOptions, Record};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use store::{Engine, MemoryEngine, StoreError, Versions, VersionsConfig};

/// Settings of the shell.
#[derive(Clone, Debug)]
pub struct KvOptions {
    /// The node core's settings.
    pub node: NodeOptions,
    /// Versions younger than this can be read with `AS OF SYSTEM TIME`, seconds.
    pub gc_ttl_seconds: u64,
    /// Nothing is collected before [`sql::Kv::keep`] said which tables are kept for another time: what is to be kept longer must not go
    /// while a node starts.
    pub awaits_retentions: bool,
    /// What the store shares with the rest of the node, for figures: its own bounds are those of its versions and engine.
    pub memory: Arc<Memory>,
    /// Where statements put what does not fit their memory; `None`: in memory after all.
    pub scratch_dir: Option<PathBuf>,
}

impl Default for KvOptions {
    fn default() -> Self {
        KvOptions {
            node: NodeOptions::default(),
            gc_ttl_seconds: RETENTION_SECONDS,
            awaits_retentions: false,
            memory: Memory::new(Shares::default(), Allocator::default()),
            scratch_dir: None,
        }
    }
}

/// The node cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store is damaged, or its disk fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log is damaged, or its disk fails.
    #[error("{0}")]
    Log(String),
    /// A thread cannot be started.
    #[error("cannot start a background thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// What is called for each record of a log, oldest first: its place and bytes. An error ends the opening.
pub type Visit<'a> = dyn FnMut(u64, Bytes) -> Result<(), String> + 'a;

impl KvNode<MemoryEngine> {
    /// A node that forgets everything when it is dropped: for tests and measurements.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn in_memory(clock: Arc<dyn ClockSource>, options: KvOptions) -> Result<Arc<Self>, OpenError> {
        let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default())?;
        Self::start(versions, clock, options, |_| Ok(Box::new(MemoryLog::default())))
    }
}

impl<E: Engine> KvNode<E> {
    /// A node over versions, with its log in the directory `dir`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn with_log_in(
        dir: &Path,
        versions: Versions<E>,
        clock: Arc<dyn ClockSource>,
        options: KvOptions,
    ) -> Result<Arc<Self>, OpenError> {
        let applied = versions.recovered().position;
        Self::start(versions, clock, options, |visit| disk_log::open(dir, applied, visit))
    }

    /// A node over versions and a log: `open_log` opens it and hands every record to the visitor that it is given.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn start(
        versions: Versions<E>,
        clock: Arc<dyn ClockSource>,
        options: KvOptions,
        open_log: impl FnOnce(&mut Visit<'_>) -> Result<Box<dyn RecordLog>, OpenError>,
    ) -> Result<Arc<Self>, OpenError> {
        let clock = Arc::new(NodeClock::new(clock, options.node.alone));
        let node = Arc::new(Node::open(options.node.clone(), Arc::new(versions), &clock.read())?);
        let log = open_log(&mut |place, bytes| replay_one(&node, &clock, place, bytes))?;
        node.step(&clock.read(), Input::Recovered)?;
        clock.log_gate(node.clock_level(), node.options());
        let timer = timer::Handle::default();
        let writer = writer::Handle::default();
        let inner = Arc::new(Inner {
            node,
            clock,
            kept: Mutex::new((!options.awaits_retentions).then(Arc::default)),
            driver: Driver::new(log, timer.clone(), writer.clone()),
            options,
            began: std::time::Instant::now(),
            crowded: AtomicBool::new(false),
            full: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            broken: Mutex::new(None),
        });
        inner.driver.drain(&inner);
        wait_until_past(&inner);
        // Before the first write is let in.
        maintenance::tell_room(&inner, Room::is_full(inner.node.versions(), inner.driver.log()));
        let mut threads = Vec::new();
        let shared = inner.clone();
        threads.push(std::thread::Builder::new().name("timer".into()).spawn(move || timer::run(&shared, &timer))?);
        let shared = inner.clone();
        threads.push(std::thread::Builder::new().name("log".into()).spawn(move || writer::run(&shared, &writer))?);
        let shared = inner.clone();
        threads.push(std::thread::Builder::new().name("maintenance".into()).spawn(move || maintenance::run(&shared))?);
        Ok(Arc::new(KvNode { inner, threads: Mutex::new(threads) }))
    }
}

/// Default of [`KvOptions::gc_ttl_seconds`]: what nobody holds open can be read for so long after it was replaced.
pub const RETENTION_SECONDS: u64 = 300;

/// Records larger than this are copied apart when replayed, so that one row in a cache does not keep the whole record in
/// memory.
const SHARE_BYTES_MAX: usize = 64 << 10;

fn replay_one<E: Engine>(node: &Node<E>, clock: &NodeClock, place: u64, bytes: Bytes) -> Result<(), String> {
    let applied = node.applied().0;
    if place <= applied {
        return Ok(());
    }
    if place != applied + 1 {
        return Err(format!("the log goes on at {place}, and the engine ends at {applied}: what is between is lost"));
    }
    let mut record = Record::decode(&bytes).map_err(|e| e.to_string())?;
    if bytes.len() > SHARE_BYTES_MAX {
        record.command.unshare();
    }
    node.step(&clock.read(), Input::Replay(record)).map_err(|e| e.to_string())?;
    if node.versions().freeze_due() {
        node.freeze();
        match node.versions().flush() {
            // On a full disk what was replayed stays in memory, as it was before: the log holds it, so it is no more than that.
            Ok(_) | Err(StoreError::DiskFull) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    Ok(())
}

/// Rule 1 for what was replayed: a commit that was ahead of true time when the node stopped is shown once it is past.
fn wait_until_past<E: Engine>(inner: &Inner<E>) {
    let ready = inner.node.ready_at();
    loop {
        let now = inner.clock.read();
        let missing_us = ready.physical_us().saturating_sub(now.interval.earliest_ns / 1000);
        if inner.node.is_ready(&now) {
            if missing_us > 0 {
                crate::log::warning(
                    "the clock was set back behind the last commit in the log: order is kept, strict is refused until the clock has caught up",
                    &[("behind_us", &missing_us), ("last_commit", &ready)],
                );
            }
            return;
        }
        if missing_us > 10_000_000 {
            crate::log::warning(
                "the clock is behind the last commit in the log: waiting until it is past",
                &[("behind_us", &missing_us), ("last_commit", &ready)],
            );
        }
        std::thread::sleep(Duration::from_micros(missing_us.clamp(1, 1_000_000)));
    }
}
