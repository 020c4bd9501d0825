//! One simulated machine: the very node core, the very log and store, over a disk and an engine that lose and tear.

use crate::clock::SimClock;
use crate::probes::Probes;
use crate::rng::Rng;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use node::{AppendError, Input, LogBatch, LogIndex, Node, NodeOptions, Outputs, Record};
use std::sync::Arc;
use store::disk::fake::{Crash, FakeDisk};
use store::{Log, LogError, LogOptions, MemoryEngine, Versions, VersionsConfig};

/// The engine of a simulated machine.
pub type Engine = Arc<MemoryEngine>;
/// The node of a simulated machine.
pub type SimNode = Node<Engine>;
/// Called with each node that is opened: the negative controls break a rule here.
pub type Prepare = fn(&SimNode);

/// Segments are small, so that runs cross many.
const SEGMENT_BYTES: u64 = 16 * 1024;
/// Writes of large commits that find their places at a tick: some are left for the next freeze.
const PLACED_PER_TICK: usize = 2;

/// A machine that runs.
pub struct Running {
    /// The node.
    pub node: Arc<SimNode>,
    log: Log,
    /// A batch that was appended and is not durable yet.
    syncing: Option<LogIndex>,
}

/// A machine, running or not.
pub struct Machine {
    /// Its disk.
    pub disk: FakeDisk,
    /// Its engine, which outlives a crash like a disk does.
    pub engine: Engine,
    /// Its clock.
    pub clock: SimClock,
    /// What runs on it.
    pub running: Option<Running>,
    options: NodeOptions,
    config: VersionsConfig,
    prepare: Option<Prepare>,
}

/// What a machine did wrong: ends the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl Machine {
    /// A machine with an empty disk.
    pub fn new(seed: u64, clock: SimClock, options: NodeOptions, config: VersionsConfig) -> Self {
        let (disk, engine) = (FakeDisk::new(seed), Arc::default());
        Machine { disk, engine, clock, running: None, options, config, prepare: None }
    }

    /// Every node opened from now on is handed to `prepare` first.
    pub fn prepare_with(&mut self, prepare: Option<Prepare>) {
        self.prepare = prepare;
    }

    /// The node, if it runs.
    pub fn node(&self) -> Option<&Arc<SimNode>> {
        self.running.as_ref().map(|r| &r.node)
    }

    /// What its clock says.
    pub fn now(&self, true_ns: u64) -> Reading {
        self.clock.read(true_ns)
    }

    /// Starts: recovery of log and store, replay.
    pub fn start(&mut self, true_ns: u64, probes: &mut Probes) -> Result<Timestamp, Failure> {
        let now = self.now(true_ns);
        let mut records: Vec<(u64, Bytes)> = Vec::new();
        let options = LogOptions {
            segment_bytes: SEGMENT_BYTES,
            first_segment_bytes: SEGMENT_BYTES,
            held_back_bytes: 0,
            salt: 7,
        };
        let (log, found) = Log::open(Arc::new(self.disk.clone()), &options, &mut |position, record| {
            records.push((position, record));
            Ok(())
        })
        .map_err(|e| Failure(format!("the log does not open: {e}")))?;
        if found.torn.is_some() {
            probes.hit("torn tail cut off");
        }
        let fail = |e: &dyn core::fmt::Display| Failure(format!("the node does not open: {e}"));
        let versions = Versions::open(self.engine.clone(), self.config.clone()).map_err(|e| fail(&e))?;
        let flushed = versions.recovered().position;
        if flushed > 0 {
            probes.hit("restart from a flushed state");
        }
        if found.first.is_some_and(|first| first > flushed + 1) || found.last < flushed {
            return Err(Failure(format!("the engine ends at {flushed}, the log has {found:?}")));
        }
        let node = Arc::new(Node::open(self.options.clone(), Arc::new(versions), &now).map_err(|e| fail(&e))?);
        if let Some(prepare) = self.prepare {
            prepare(&node);
        }
        for (_, record) in records.into_iter().filter(|(position, _)| *position > flushed) {
            let record = Record::decode(&record).map_err(|e| fail(&e))?;
            node.step(&now, Input::Replay(record)).map_err(|e| fail(&e))?;
        }
        node.step(&now, Input::Recovered).map_err(|e| fail(&e))?;
        let ready = node.ready_at();
        self.running = Some(Running { node, log, syncing: None });
        Ok(ready)
    }

    /// Appends what waits; gives whether a sync is on its way. The caller wakes and calls [`Machine::sync_done`] later.
    pub fn append(&mut self, true_ns: u64, out: &mut Vec<Outputs>, probes: &mut Probes) -> Result<bool, Failure> {
        let now = self.now(true_ns);
        let Some(running) = &mut self.running else { return Ok(false) };
        if running.syncing.is_some() || !running.node.has_batch() {
            return Ok(false);
        }
        let mut batch = LogBatch::default();
        running.node.take_batch(&mut batch);
        match running.log.append_all(batch.records().map(Bytes::copy_from_slice)) {
            Ok(last) if last == batch.last().0 => {
                running.syncing = Some(batch.last());
                Ok(true)
            }
            Ok(last) => Err(Failure(format!("the log is at {last}, the node at {}", batch.last().0))),
            Err(LogError::DiskFull) => {
                probes.hit("disk full refused a commit");
                let refused = Input::AppendFailed { from: batch.first, why: AppendError::Full };
                out.push(step(&running.node, &now, refused)?);
                Ok(false)
            }
            Err(e) => Err(Failure(format!("append: {e}"))),
        }
    }

    /// The sync that was on its way is done.
    pub fn sync_done(&mut self, true_ns: u64, out: &mut Vec<Outputs>) -> Result<(), Failure> {
        let now = self.now(true_ns);
        let Some(running) = &mut self.running else { return Ok(()) };
        let Some(last) = running.syncing.take() else { return Ok(()) };
        running.log.write_and_sync().map_err(|e| Failure(format!("sync: {e}")))?;
        out.push(step(&running.node, &now, Input::Durable(last))?);
        Ok(())
    }

    /// Time passes for the node.
    pub fn tick(&mut self, true_ns: u64, out: &mut Vec<Outputs>) -> Result<(), Failure> {
        let now = self.now(true_ns);
        if let Some(running) = &self.running {
            out.push(step(&running.node, &now, Input::Tick)?);
            running.node.versions().place(PLACED_PER_TICK);
        }
        Ok(())
    }

    /// Freezes and flushes, and gives log segments back.
    pub fn flush(&mut self, probes: &mut Probes) -> Result<(), Failure> {
        let Some(running) = &self.running else { return Ok(()) };
        let versions = running.node.versions();
        if versions.place(0) {
            probes.hit("large commit not in its place at a freeze");
        }
        running.node.freeze();
        match versions.flush() {
            Ok(true) => probes.hit("flush"),
            Ok(false) => {}
            Err(_) => probes.hit("flush failed"),
        }
        let recycled = running.log.truncate(versions.flushed_position()).map_err(|e| Failure(format!("{e}")))?;
        probes.add("log segment recycled", recycled as u64);
        Ok(())
    }

    /// The machine loses power, perhaps in the middle of a write of the log or of a flush.
    pub fn crash(&mut self, rng: &mut Rng, probes: &mut Probes) {
        probes.hit("crash");
        if let Some(running) = self.running.take() {
            if running.syncing.is_some() && rng.chance(60) {
                self.disk.fail_syncs(1);
                let _ = running.log.write_and_sync();
                self.disk.fail_syncs(0);
            }
            if rng.chance(30) {
                self.engine.fail_syncs(1);
                running.node.freeze();
                if running.node.versions().flush().is_err() {
                    probes.hit("flush failed");
                }
                self.engine.fail_syncs(0);
            }
            count(&running.node, probes);
        }
        let how = [Crash::LoseUnsynced, Crash::KeepAll, Crash::TearLast, Crash::TearLast, Crash::Scatter];
        self.disk.crash(rng.pick(&how).unwrap_or(Crash::LoseUnsynced));
        self.engine.crash(usize::try_from(rng.below(2)).unwrap_or(0));
    }

    /// The process ends by itself: nothing of what it wrote is lost.
    pub fn off(&mut self, probes: &mut Probes) -> Result<(), Failure> {
        probes.hit("clean stop");
        self.flush(probes)?;
        if let Some(running) = self.running.take() {
            count(&running.node, probes);
        }
        Ok(())
    }

    /// Whether nothing waits for the disk or is on its way to it.
    pub fn is_quiet(&self) -> bool {
        self.running.as_ref().is_some_and(|r| r.syncing.is_none() && !r.node.has_batch())
    }

    /// Counts what the node did.
    pub fn count(&self, probes: &mut Probes) {
        if let Some(running) = &self.running {
            count(&running.node, probes);
        }
    }
}

fn step(node: &SimNode, now: &Reading, input: Input) -> Result<Outputs, Failure> {
    node.step(now, input).map_err(|e| Failure(format!("the node fails: {e}")))
}

fn count(node: &SimNode, probes: &mut Probes) {
    let c = node.counters();
    probes.add("commit in many ranges", c.txn_commits_multirange.get());
    probes.add("commit in one range", c.txn_commits.get().saturating_sub(c.txn_commits_multirange.get()));
    probes.add("certification refused", c.txn_certification_failures.get());
    probes.add("uncertain version met", c.txn_restarts_readwithinuncertainty.get());
    probes.add("snapshot refreshed", c.txn_refreshes.get());
    probes.add("refresh failed", c.txn_refresh_failures.get());
    probes.add("read waited for a write in flight", c.txn_read_waits.get());
    probes.add("commit waited for rule 1", c.txn_commit_waits.get());
    probes.add("lock queue", c.lock_waits.get());
    probes.add("deadlock", c.txn_deadlocks.get());
    probes.add("undecided prepare recovered", c.txn_recoveries.get());
}
