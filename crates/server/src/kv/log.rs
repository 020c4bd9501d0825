//! Who writes the log: leader and followers.
//!
//! A committing thread whose record waits tries to take the baton. The one that gets it takes *all* records that wait, writes and
//! syncs them once, tells the core, and wakes those whose commits are done. While it syncs, others add their records: it leaves the
//! baton to the `writer` thread, which goes on until nothing waits. So a single client never switches threads, and many
//! share a sync without a switch between two syncs.
//!
//! The baton is left to the writer after the sync and before the core is told: the next sync overlaps the applying of this one.
//!
//! Why no record is forgotten (invariant 2 of the module): a thread adds its record, then tries the baton. If it fails, the holder
//! had it at that moment; the holder puts it down and *then* looks for records that wait, so it sees this one and wakes its owner,
//! or the timer thread where a record has no owner.

use super::{Inner, park};
use bytes::Bytes;
use node::{AppendError, Input, LogBatch, Outputs};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Poll, Waker};
use store::Engine;

/// A thread that waits for the log looks around this often, though it will be woken.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// Where records become durable.
pub trait RecordLog: Send + Sync + 'static {
    /// Appends the records and returns once they are durable; the first gets the place `first`.
    ///
    /// # Errors
    /// Why not; except for [`AppendError::Broken`] nothing of them is on the disk.
    fn append(&self, first: u64, records: Vec<Bytes>) -> Result<(), AppendError>;
    /// Records up to this place are not needed any more.
    ///
    /// # Errors
    /// What the disk says.
    fn truncate(&self, applied: u64) -> Result<(), String>;
    /// Makes space ready ahead; called in the background.
    ///
    /// # Errors
    /// What the disk says.
    fn prepare(&self) -> Result<(), String>;
    /// Whether an ordinary transaction of so many bytes may be written; where not, what is left is for those that free space.
    fn has_room_for(&self, _bytes: usize) -> bool {
        true
    }
    /// Makes space ready for a record of so many bytes, before it is appended: what cannot be had is told when it is.
    fn make_room(&self, _bytes: usize) {}
    /// The bytes that [`RecordLog::prepare`] takes of the disk.
    fn prepare_bytes(&self) -> u64 {
        0
    }
    /// By how many bytes the log would take more of the disk for a transaction of so many bytes.
    fn growth(&self, _bytes: usize) -> u64 {
        0
    }
    /// Gives space to the engine that the log has, and does not need now.
    ///
    /// # Errors
    /// What the disk says.
    fn give_back_spares(&self) -> Result<(), String> {
        Ok(())
    }
    /// Gives the engine all space that no record needs, but for a little: the last resort of a full disk.
    ///
    /// # Errors
    /// What the disk says.
    fn give_back_room(&self) -> Result<(), String> {
        self.give_back_spares()
    }
    /// Segments in use: the longer the log, the longer a restart.
    fn segments(&self) -> usize;
}

/// A log that forgets everything: for tests and measurements.
#[derive(Debug, Default)]
pub struct MemoryLog {
    /// How long a sync takes, microseconds.
    pub sync_us: u64,
}

impl RecordLog for MemoryLog {
    fn append(&self, _first: u64, _records: Vec<Bytes>) -> Result<(), AppendError> {
        if self.sync_us > 0 {
            std::thread::sleep(std::time::Duration::from_micros(self.sync_us));
        }
        Ok(())
    }
    fn truncate(&self, _applied: u64) -> Result<(), String> {
        Ok(())
    }
    fn prepare(&self) -> Result<(), String> {
        Ok(())
    }
    fn segments(&self) -> usize {
        1
    }
}

pub(crate) struct Driver<E> {
    log: Box<dyn RecordLog>,
    baton: AtomicBool,
    spare: Mutex<LogBatch>,
    timer: super::timer::Handle,
    writer: super::writer::Handle,
    _engine: std::marker::PhantomData<fn() -> E>,
}

impl<E: Engine> Driver<E> {
    pub fn new(log: Box<dyn RecordLog>, timer: super::timer::Handle, writer: super::writer::Handle) -> Self {
        let spare = Mutex::new(LogBatch::default());
        Driver { log, baton: AtomicBool::new(false), spare, timer, writer, _engine: std::marker::PhantomData }
    }
    pub fn log(&self) -> &dyn RecordLog {
        &*self.log
    }

    /// Waits for something that becomes ready as the log is driven; drives it meanwhile.
    pub fn wait<R>(&self, inner: &Inner<E>, mut poll: impl FnMut(&Waker) -> Poll<R>) -> R {
        loop {
            if let Poll::Ready(result) = park::with_waker(&mut poll) {
                return result;
            }
            if !self.lead(inner) {
                park::pause(LOOK_EVERY);
                // The timer has gone home first.
                if inner.stopping.load(SeqCst) {
                    self.step(inner, Input::Tick);
                }
            }
        }
    }

    /// Takes the baton, if it is free and there is work. `false`: it did nothing.
    pub fn lead(&self, inner: &Inner<E>) -> bool {
        loop {
            if self.baton.swap(true, SeqCst) {
                return false;
            }
            let mut batch = std::mem::take(&mut *self.spare.lock());
            inner.node.take_batch(&mut batch);
            if !batch.is_empty() {
                self.write(inner, batch);
                return true;
            }
            *self.spare.lock() = batch;
            self.baton.store(false, SeqCst);
            if !inner.node.has_batch() {
                return false;
            }
        }
    }

    /// Writes, syncs and reports one batch; afterwards the baton is somebody else's, or free.
    fn write(&self, inner: &Inner<E>, batch: LogBatch) {
        let mut batch = batch;
        let input = self.append(inner, &mut batch);
        let durable = matches!(input, Input::Durable(_));
        if durable && !(inner.node.has_batch() && self.writer.call()) {
            self.pass_on(inner);
        }
        self.step(inner, input);
        if !durable {
            self.pass_on(inner);
        }
        *self.spare.lock() = batch;
    }

    /// Writes batch after batch, by the thread that was left the baton, until nothing waits.
    pub fn write_all(&self, inner: &Inner<E>) {
        let mut batch = LogBatch::default();
        loop {
            inner.node.take_batch(&mut batch);
            if !batch.is_empty() {
                let input = self.append(inner, &mut batch);
                self.step(inner, input);
                continue;
            }
            self.baton.store(false, SeqCst);
            if !inner.node.has_batch() || self.baton.swap(true, SeqCst) {
                return;
            }
        }
    }

    /// Makes a batch durable: what the core is to be told.
    fn append(&self, inner: &Inner<E>, batch: &mut LogBatch) -> Input {
        let (first, last) = (batch.first, batch.last());
        let bytes = Bytes::from(std::mem::take(&mut batch.bytes));
        let mut start = 0;
        let records = batch.ends.iter().map(|end| bytes.slice(std::mem::replace(&mut start, *end)..*end)).collect();
        match self.log.append(first.0, records) {
            Ok(()) => Input::Durable(last),
            Err(why) => {
                if why == AppendError::Broken {
                    inner.fail("the log cannot be written");
                }
                Input::AppendFailed { from: first, why }
            }
        }
    }

    /// Puts the baton down and wakes who takes it next.
    fn pass_on(&self, inner: &Inner<E>) {
        self.baton.store(false, SeqCst);
        self.call_leader(inner);
    }

    /// Records wait, perhaps: wakes somebody to lead.
    fn call_leader(&self, inner: &Inner<E>) {
        match inner.node.next_in_batch() {
            (false, _) => {}
            (true, Some(waker)) => waker.wake(),
            (true, None) => self.timer.poke(),
        }
    }

    /// One input to the core, and its outputs.
    pub fn step(&self, inner: &Inner<E>, input: Input) {
        match inner.node.step(&inner.clock.read(), input) {
            Ok(Outputs { wakers, timer, records, clock_changes, spent }) => {
                inner.clock.log_changes(&clock_changes);
                wakers.into_iter().for_each(Waker::wake);
                if let Some(at) = timer {
                    self.timer.set(at);
                }
                // Applying may itself propose: outcomes, mostly.
                if records && !self.baton.load(SeqCst) {
                    self.call_leader(inner);
                }
                drop(spent);
            }
            Err(e) => inner.fail(&e.to_string()),
        }
    }

    /// Writes until nothing waits.
    pub fn drain(&self, inner: &Inner<E>) {
        while inner.node.has_batch() && inner.broken.lock().is_none() {
            if !self.lead(inner) {
                std::thread::yield_now();
            }
        }
    }
}
