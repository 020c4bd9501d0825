//! Who writes the log, and what leaves when it is written.
//!
//! Records come numbered, from several threads, so perhaps not in the order of their numbers; they are appended in that order. Who has the baton
//! takes all that wait without a gap, writes and syncs them once, lets the messages go that waited for them, and tells the member.
//! A thread that leads for itself does it once; what has come meanwhile is left to the `log` thread.

use super::Inner;
use bytes::Bytes;
use node::AppendError;
use node::cluster::{Input, Message, Outgoing, Record, RecordNumber};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use store::Engine;

use crate::kv::RecordLog;
use crate::kv::park::Sleeper;

/// The `log` thread looks around this often, though it will be woken; and while the disk is full.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Journal {
    log: Box<dyn RecordLog>,
    baton: AtomicBool,
    queue: Mutex<Queue>,
    writer: Sleeper,
}

/// What waits for the disk. Bounded by what the member gives out before it hears that something is durable
/// ([`protocol`'s](node::cluster) `RECORDS_WAITING_MAX`).
struct Queue {
    waiting: BTreeMap<u64, Vec<u8>>,
    /// The next to be appended.
    next: u64,
    durable: u64,
    held: Vec<(u64, Message)>,
}

impl Queue {
    fn has_next(&self) -> bool {
        self.waiting.contains_key(&self.next)
    }

    /// All that wait without a gap; the number of the first.
    fn batch(&mut self) -> (u64, Vec<Bytes>) {
        let first = self.next;
        let mut batch = Vec::new();
        while let Some(record) = self.waiting.remove(&self.next) {
            batch.push(Bytes::from(record));
            self.next += 1;
        }
        (first, batch)
    }

    /// They were not written: they wait again.
    fn put_back(&mut self, first: u64, batch: Vec<Bytes>) {
        self.next = first;
        self.waiting.extend((first..).zip(batch.into_iter().map(Vec::from)));
    }

    fn written(&mut self, last: u64) -> Vec<Message> {
        self.durable = last;
        self.held.extract_if(.., |(after, _)| *after <= last).map(|(_, message)| message).collect()
    }
}

impl Journal {
    /// Over a log whose last record has this number.
    pub fn new(log: Box<dyn RecordLog>, last: u64) -> Self {
        let queue = Queue { waiting: BTreeMap::new(), next: last + 1, durable: last, held: Vec::new() };
        Journal { log, baton: AtomicBool::new(false), queue: Mutex::new(queue), writer: Sleeper::default() }
    }

    pub fn log(&self) -> &dyn RecordLog {
        &*self.log
    }

    /// Takes what a member gave out: the messages that may leave at once, and whether records wait.
    pub fn take(&self, records: Vec<Record>, messages: Vec<Outgoing>) -> (Vec<Message>, bool) {
        if records.is_empty() && messages.iter().all(|outgoing| outgoing.after.is_none()) {
            return (messages.into_iter().map(|outgoing| outgoing.message).collect(), false);
        }
        let mut queue = self.queue.lock();
        queue.waiting.extend(records.into_iter().map(|record| (record.number.0, record.bytes)));
        let mut ready = Vec::new();
        for Outgoing { message, after } in messages {
            match after.filter(|after| after.0 > queue.durable) {
                Some(after) => queue.held.push((after.0, message)),
                None => ready.push(message),
            }
        }
        (ready, queue.has_next())
    }

    /// Records wait, and nobody else is going to write them: wakes the `log` thread.
    pub fn call_writer(&self) {
        self.writer.wake();
    }
}

/// Writes what waits, if nobody else does. `false`: there was nothing to do.
pub(crate) fn lead<E: Engine>(inner: &Inner<E>) -> bool {
    let journal = &inner.journal;
    loop {
        if journal.baton.swap(true, SeqCst) {
            return false;
        }
        let written = write(inner);
        journal.baton.store(false, SeqCst);
        let more = journal.queue.lock().has_next();
        match written {
            // It was added after the batch was taken, and who added it found the baton taken.
            Written::Nothing if more => {}
            Written::Nothing => return false,
            Written::Batch => {
                if more {
                    journal.call_writer();
                }
                return true;
            }
            // The `log` thread tries again after a while.
            Written::Refused => return false,
        }
    }
}

enum Written {
    Nothing,
    Batch,
    Refused,
}

fn write<E: Engine>(inner: &Inner<E>) -> Written {
    let journal = &inner.journal;
    let (first, batch) = journal.queue.lock().batch();
    if batch.is_empty() || inner.broken.lock().is_some() {
        return Written::Nothing;
    }
    let last = first + batch.len() as u64 - 1;
    match journal.log.append(first, batch.clone()) {
        Ok(()) => {
            let ready = journal.queue.lock().written(last);
            inner.send(ready);
            inner.step(Input::Durable(RecordNumber(last)));
            Written::Batch
        }
        Err(AppendError::Broken) => {
            inner.fail("the log cannot be written");
            inner.step(Input::DiskFailed);
            Written::Nothing
        }
        Err(_) => {
            journal.queue.lock().put_back(first, batch);
            Written::Refused
        }
    }
}

/// The `log` thread: writes what nobody who waits writes.
pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    inner.journal.writer.is_this_thread();
    while !inner.stopping.load(SeqCst) {
        if !lead(inner) {
            std::thread::park_timeout(LOOK_EVERY);
        }
    }
}
