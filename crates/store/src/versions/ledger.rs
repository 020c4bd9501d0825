//! Room on the disk: who may take it, and what is done when there is none.
//!
//! Problem: what is in memory leaves it only by being written out, in order. What does not fit the disk stays there, and all that comes behind
//! it, the end of a large table as well: the disk stays full for good. So nothing may come into memory, and nothing else may take room, without
//! asking first.
//!
//! Idea: one ledger ([`Demand`]) says at any time what is still to be written: what the layers hold, and what was promised to who is about to
//! commit or to load. Whoever takes room looks at the disk and at the ledger at that moment, not at what was known a while ago.
//!
//! 1. What is in the ledger can be written out: a commit is taken only if it can be written as well ([`Versions::promise`]), a load likewise.
//!    Transactions too small to be asked for are counted, and the disk is looked at when they are [`UNASKED_BYTES_MAX`] together.
//! 2. Merges end, and none begins, where they would take what the ledger needs (`engine/merges.rs`); so does what gives space back.
//! 3. What the ledger cannot know (others fill the disk; a crash comes between a look and a write) is met by a reserve: a file that is set aside
//!    while there is room ([`Versions::set_ballast`]), and given up when a layer could not be written. Then that is written without any margin
//!    ([`Versions::flush_at_last`]): estimates are generous, tables are compressed, and each layer gives a part of the log back.
//!
//! Caveat: the ledger counts what the entries take, without compression: it may refuse what would fit.

use super::Versions;
use crate::{Engine, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// What [`Versions::lend`] gives, in bytes: less than what is kept free of everything else.
const LENT_BYTES_MAX: usize = 1 << 20;
/// What small transactions may write before one of them has to look at the disk, in bytes: less than what is kept free of everything else.
const UNASKED_BYTES_MAX: usize = 1 << 20;

/// What is still to be written, in bytes: told as it changes, and read by who takes room on the same disk.
#[derive(Debug, Default)]
pub struct Demand {
    /// What layers hold in memory, about.
    memory_bytes: AtomicU64,
    /// What the engine's present is to be given of it, about.
    present_bytes: AtomicU64,
    /// What was set aside for who is about to write: as much for the engine, and for the log, which gives it back once that is written.
    promised_bytes: AtomicU64,
    promised_log_bytes: AtomicU64,
}

impl Demand {
    /// Layers changed: what they held before and hold now, in memory and of the present.
    pub(super) fn change(&self, before: (usize, usize), after: (usize, usize)) {
        // What is less wraps around, and is less.
        let by = |before: usize, after: usize| (after as u64).wrapping_sub(before as u64);
        self.memory_bytes.fetch_add(by(before.0, after.0), Ordering::Relaxed);
        self.present_bytes.fetch_add(by(before.1, after.1), Ordering::Relaxed);
    }

    /// What layers hold in memory, in bytes, about.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// What of it the engine's present is to be given, in bytes, about: the past goes where there is no room.
    pub fn present_bytes(&self) -> u64 {
        self.present_bytes.load(Ordering::Relaxed)
    }

    /// What was set aside, in bytes, for engine and log.
    pub fn promised_bytes(&self) -> u64 {
        self.promised_bytes.load(Ordering::SeqCst).saturating_add(self.promised_log_bytes.load(Ordering::SeqCst))
    }

    /// What ordinary writes and merges leave to others, in bytes: as much as memory holds.
    pub fn at_ease(&self) -> u64 {
        self.memory_bytes().saturating_add(self.promised_bytes())
    }

    /// What nothing may take, in bytes: what will be written.
    pub fn at_least(&self) -> u64 {
        self.present_bytes().saturating_add(self.promised_bytes())
    }

    /// What takes room as it is written and merged with what waits for that, `unmerged_bytes`, in bytes: all of it twice, but for the log.
    pub fn merged(&self, unmerged_bytes: u64) -> u64 {
        let once = self.present_bytes().saturating_add(self.promised_bytes.load(Ordering::SeqCst));
        let log_bytes = self.promised_log_bytes.load(Ordering::SeqCst);
        once.saturating_mul(2).saturating_add(log_bytes).saturating_add(unmerged_bytes)
    }

    /// Sets room aside: for the engine, and for the log.
    pub fn promise(self: &Arc<Self>, bytes: u64, log_bytes: u64) -> Promise {
        self.promised_bytes.fetch_add(bytes, Ordering::SeqCst);
        self.promised_log_bytes.fetch_add(log_bytes, Ordering::SeqCst);
        Promise { bytes, log_bytes, demand: self.clone() }
    }
}

/// Room on the disk that was set aside; it is given back when this is dropped.
#[derive(Debug)]
pub struct Promise {
    bytes: u64,
    log_bytes: u64,
    demand: Arc<Demand>,
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.demand.promised_bytes.fetch_sub(self.bytes, Ordering::SeqCst);
        self.demand.promised_log_bytes.fetch_sub(self.log_bytes, Ordering::SeqCst);
    }
}

/// What the store knows of room on its disk.
#[derive(Default)]
pub(super) struct Ledger {
    pub demand: Arc<Demand>,
    /// More was asked for than there was.
    refused: AtomicBool,
    /// What was taken although there was no room for it, since memory was last written out.
    lent: AtomicUsize,
    /// What small transactions wrote since one looked at the disk.
    unasked: AtomicUsize,
}

impl Ledger {
    /// One that the engine looks at.
    pub fn of(engine: &impl Engine) -> Ledger {
        let ledger = Ledger::default();
        engine.heed(&ledger.demand);
        ledger
    }

    /// Memory was written out.
    pub fn written_out(&self) {
        self.lent.store(0, Ordering::SeqCst);
    }
}

impl<E: Engine> Versions<E> {
    /// Bytes held in memory by layers, active and frozen, about. Cheap.
    pub fn overlay_bytes(&self) -> usize {
        usize::try_from(self.ledger.demand.memory_bytes()).unwrap_or(usize::MAX)
    }

    /// What the engine is still to be given of them, about: of the present, as the past goes where there is no room.
    pub fn unwritten_bytes(&self) -> usize {
        usize::try_from(self.ledger.demand.present_bytes()).unwrap_or(usize::MAX)
    }

    /// Sets room on the disk aside for a transaction that writes so many bytes, until it is in memory (or was given up), as well as
    /// `log_bytes` by which the log grows; `None`: there is not enough. What `frees` space may take more of it, but nothing that could not be
    /// written out: all that comes behind it, a TRUNCATE as well, would wait in memory with it.
    pub fn promise(&self, bytes: usize, log_bytes: u64, frees: bool) -> Option<Promise> {
        let promise = self.ledger.demand.promise(bytes as u64, log_bytes);
        let enough = !self.awaits_merges() && (frees || self.lacks_room(0) == 0);
        if enough {
            self.ledger.unasked.store(0, Ordering::Relaxed);
            return Some(promise);
        }
        self.ledger.refused.store(true, Ordering::SeqCst);
        None
    }

    /// Counts a small transaction; `false`: there were so many that the next has to ask ([`Versions::promise`]). Cheap.
    pub fn goes_unasked(&self, bytes: usize) -> bool {
        self.ledger.unasked.fetch_add(bytes, Ordering::Relaxed) + bytes <= UNASKED_BYTES_MAX
    }

    /// Whether there is too little room for what was promised, as what is in memory is written out once, and merged once with what waits for
    /// that. Merges may change it.
    fn awaits_merges(&self) -> bool {
        let Some(room) = self.engine.room() else { return false };
        room.free < room.needed_at_last(self.ledger.demand.merged(self.engine.unmerged_bytes()))
    }

    /// How much less is free than ordinary writes need, of which `more_bytes` are taken by something else soon.
    pub fn lacks_room(&self, more_bytes: u64) -> u64 {
        let in_memory = self.ledger.demand.at_ease();
        let lacks =
            |room: crate::disk::Room| room.needed(in_memory.saturating_add(more_bytes)).saturating_sub(room.free);
        self.engine.room().map_or(0, lacks)
    }

    /// Whether a promise was not given since this was last asked: whoever asked for it wants room.
    pub fn was_refused(&self) -> bool {
        self.ledger.refused.swap(false, Ordering::SeqCst)
    }

    /// Takes so many bytes of what frees space although there is no room for them: a little can be written out all the same, and if others fill
    /// the disk to the last byte it waits in memory. `false`: that was taken already, and nothing was written out since.
    pub fn lend(&self, bytes: usize) -> bool {
        let lend = |lent: usize| lent.checked_add(bytes).filter(|lent| *lent <= LENT_BYTES_MAX);
        self.ledger.lent.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lend).is_ok()
    }

    /// Whether the disk holds what is in memory, but not twice.
    pub(super) fn is_tight(&self) -> bool {
        self.engine.room().is_some_and(|room| room.free < 2 * room.needed(self.overlay_bytes() as u64))
    }

    /// Sets a reserve aside, where there is none and room for it: to be called now and then. `false`: there is none.
    ///
    /// # Errors
    /// [`StoreError::Failed`]: the file could not be made, and not for want of room.
    pub fn set_ballast(&self) -> Result<bool, StoreError> {
        let Some(room) = self.engine.room() else { return Ok(true) };
        if self.engine.has_ballast() {
            return Ok(true);
        }
        if self.lacks_room(room.ballast_bytes()) > 0 {
            return Ok(false);
        }
        match self.engine.set_ballast(room.ballast_bytes()) {
            Ok(()) => Ok(true),
            Err(StoreError::DiskFull) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Whether what is in memory fits what is free, and so many bytes beside it, where nothing else is kept free.
    pub fn has_room_at_last(&self, more_bytes: u64) -> bool {
        let unwritten_bytes = self.ledger.demand.at_least().saturating_add(more_bytes);
        self.engine.room().is_none_or(|room| room.free >= room.needed_at_last(unwritten_bytes))
    }

    /// Gives the reserve up: something that frees space found no room. `false`: there was none.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    pub fn give_up_ballast(&self) -> Result<bool, StoreError> {
        if !self.engine.has_ballast() {
            return Ok(false);
        }
        self.engine.set_ballast(0).map(|()| true)
    }
}
