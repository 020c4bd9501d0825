//! Segments ahead of the log's end: made ready before they are needed, recycled where that is possible.

use super::segment::{FIRST_FRAME, Header, Ready, Sealed, name, temporary_name};
use super::{LogError, SPARE_SEGMENTS_MAX};
use crate::disk::{Disk, SECTOR};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// No smaller segment is made on a full disk, in bytes: a TRUNCATE takes some hundred.
pub(super) const SEGMENT_BYTES_LEAST: u64 = 256 << 10;

/// What records may count on of `bytes` at the end of a segment: a frame cut by its end costs up to two sectors more.
pub(super) fn usable(bytes: u64) -> u64 {
    bytes.saturating_sub(2 * SECTOR as u64)
}

#[derive(Default)]
struct State {
    /// In the order of their numbers.
    ready: VecDeque<Ready>,
    /// Segments whose records are not needed any more, oldest first. They keep their names until they are used, and
    /// are used and deleted oldest first, so the numbers on disk have no gap.
    spare: VecDeque<Sealed>,
    next_number: u64,
    space: u64,
}

pub(super) struct Reserve {
    disk: Arc<dyn Disk>,
    salt: u64,
    segment_bytes: u64,
    state: Mutex<State>,
    /// Held while a segment is made or given back: one at a time.
    growing: Mutex<()>,
    /// Whether the disk had no room for another segment the last time that one was wanted.
    full: AtomicBool,
}

impl Reserve {
    /// `ready` are segments that recovery found empty; the next one made is `next_number`.
    pub fn new(disk: Arc<dyn Disk>, salt: u64, segment_bytes: u64, ready: VecDeque<Ready>, next_number: u64) -> Self {
        let space = ready.iter().map(|r| usable(r.bytes - FIRST_FRAME as u64)).sum();
        let state = Mutex::new(State { ready, spare: VecDeque::new(), next_number, space });
        Reserve { disk, salt, segment_bytes, state, growing: Mutex::new(()), full: AtomicBool::new(false) }
    }

    /// Bytes that records may count on in ready segments.
    pub fn space(&self) -> u64 {
        self.state.lock().space
    }

    /// As [`Reserve::space`]; the same of what can be used again; and the size of a segment.
    pub fn room(&self) -> (u64, u64, u64) {
        let state = self.state.lock();
        let again = state.spare.iter().filter(|spare| spare.bytes == self.segment_bytes).count() as u64;
        (state.space, again * usable(self.segment_bytes - FIRST_FRAME as u64), self.segment_bytes)
    }

    pub fn is_ready(&self) -> bool {
        !self.state.lock().ready.is_empty()
    }

    /// Whether there was no room for another segment when one was last wanted.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Makes one more segment ready, unless somebody else did since the space was `seen`.
    pub fn grow(&self, seen: u64) -> Result<(), LogError> {
        let _growing = self.growing.lock();
        let (number, spare) = {
            let mut state = self.state.lock();
            if state.space > seen {
                return Ok(());
            }
            (state.next_number, state.spare.pop_front())
        };
        let made = match self.make(number, spare) {
            Err(LogError::DiskFull) => self.make_smaller(number),
            made => made,
        };
        self.full.store(matches!(made, Err(LogError::DiskFull)), Ordering::Relaxed);
        let ready = made?;
        let mut state = self.state.lock();
        state.next_number = number + 1;
        state.space += usable(ready.bytes - FIRST_FRAME as u64);
        state.ready.push_back(ready);
        Ok(())
    }

    /// Where the disk has no room for a whole segment a part of one is enough for what frees space: its record is all that is needed.
    fn make_smaller(&self, number: u64) -> Result<Ready, LogError> {
        let mut bytes = self.segment_bytes / 2;
        while bytes >= self.segment_bytes.min(SEGMENT_BYTES_LEAST) {
            match make(&*self.disk, self.salt, number, bytes - bytes % SECTOR as u64, None) {
                Err(LogError::DiskFull) => bytes /= 2,
                made => return made,
            }
        }
        Err(LogError::DiskFull)
    }

    fn make(&self, number: u64, spare: Option<Sealed>) -> Result<Ready, LogError> {
        make(&*self.disk, self.salt, number, self.segment_bytes, spare)
    }

    /// The next ready segment; makes one if there is none.
    pub fn take(&self) -> Result<Ready, LogError> {
        loop {
            {
                let mut state = self.state.lock();
                if let Some(ready) = state.ready.pop_front() {
                    state.space -= usable(ready.bytes - FIRST_FRAME as u64);
                    return Ok(ready);
                }
            }
            self.grow(0)?;
        }
    }

    /// Takes back a segment that is not needed any more.
    pub fn recycle(&self, segment: Sealed) -> Result<(), LogError> {
        let _growing = self.growing.lock();
        let surplus: Vec<Sealed> = {
            let mut state = self.state.lock();
            state.spare.push_back(segment);
            // A spare of another size cannot be used again, and what is older must go first.
            let odd = state.spare.iter().rposition(|s| s.bytes != self.segment_bytes).map_or(0, |at| at + 1);
            let surplus = odd.max(state.spare.len().saturating_sub(SPARE_SEGMENTS_MAX));
            state.spare.drain(..surplus).collect()
        };
        self.delete(surplus)
    }

    /// Deletes what is kept for another use.
    pub fn give_back_spares(&self) -> Result<(), LogError> {
        let _growing = self.growing.lock();
        let spares = std::mem::take(&mut self.state.lock().spare);
        self.delete(spares)
    }

    /// Deletes the segments that are ready, the last one first: the numbers on disk have no gap. The caller sees to it that nobody counts on
    /// their space.
    pub fn give_back_ready(&self) -> Result<(), LogError> {
        let _growing = self.growing.lock();
        loop {
            let Some(number) = self.state.lock().ready.back().map(|ready| ready.number) else { return Ok(()) };
            self.disk.delete(&name(number))?;
            self.disk.sync_names()?;
            let mut state = self.state.lock();
            if let Some(ready) = state.ready.pop_back() {
                state.space -= usable(ready.bytes - FIRST_FRAME as u64);
                state.next_number = number;
            }
        }
    }

    fn delete(&self, surplus: impl IntoIterator<Item = Sealed>) -> Result<(), LogError> {
        for gone in surplus {
            self.disk.delete(&name(gone.number))?;
        }
        Ok(())
    }
}

/// Makes a segment: a recycled file or a new one, with its header synced before it gets its name.
pub(super) fn make(
    disk: &dyn Disk,
    salt: u64,
    number: u64,
    bytes: u64,
    spare: Option<Sealed>,
) -> Result<Ready, LogError> {
    let temporary = temporary_name(number);
    let file = match spare {
        Some(spare) => {
            disk.rename(&name(spare.number), &temporary)?;
            // Before its header changes: the old name must never show a new header.
            disk.sync_names()?;
            disk.open(&temporary)?
        }
        None => disk.create_zeroed(&temporary, bytes)?,
    };
    file.write_at(0, &Header { salt, number }.encode())?;
    file.sync_data()?;
    disk.rename(&temporary, &name(number))?;
    disk.sync_names()?;
    Ok(Ready { number, bytes, file })
}
