//! The durable log: the one place where an acknowledged write becomes permanent.
//!
//! Problem: a sync is the dearest thing in a commit, and one that makes a file longer costs twice, since a kernel thread
//! must commit the file system's journal. Idea: many commits share a sync (group commit), and the log overwrites files
//! that were filled with zeroes before (preallocated segments, recycled when nothing in them is needed any more).
//!
//! ```text
//!   append ─► pending ──write_and_sync──► [frame][frame][frame]...   segment n   ─► recycled below an applied position
//!   append ─►         (one pwrite and                                segment n+1 (made ready ahead)
//!   append ─►          one fdatasync for all)
//! ```
//!
//! [`Log::append`] takes a lock for the time of a push; [`Log::write_and_sync`] takes everything that waits and writes it
//! without that lock, so whoever commits first is the leader for all who came meanwhile. The log starts no thread.
//!
//! Invariants:
//! 1. Positions are dense: 1, 2, 3, ...; a record is durable exactly when [`Log::durable`] has reached its position.
//! 2. A frame is written only when all frames before it are synced. So a bad frame is a torn tail if nothing good follows,
//!    and lost data otherwise: recovery stops at the one and refuses the other.
//! 3. A frame begins on a fresh sector: no write can harm what was acknowledged.
//! 4. Space is reserved before a record is taken: a full disk refuses an append and never a write.
//! 5. After a failed write or sync the log takes nothing more: what the disk holds is unknown until recovery reads it.
//!
//! Caveats: a flipped bit in the very last frame cannot be told from a torn write, so that frame is dropped. The sum of
//! a frame is a crc32: it finds accidents, not malice.

mod error;
mod frame;
mod recovery;
mod reserve;
mod segment;

pub use error::LogError;
pub use recovery::LogRecovery;
pub use segment::FORMAT;

use crate::disk::{DiskError, DiskFile, SECTOR};
use bytes::Bytes;
use frame::{FRAME_HEADER, FrameWriter, Kind, PIECE_HEADER, Place, padded};
use parking_lot::Mutex;
use reserve::Reserve;
use segment::{FIRST_FRAME, Sealed};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Default of [`LogOptions::segment_bytes`].
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// Size of a segment on the smallest disks.
pub const SEGMENT_BYTES_SMALL: u64 = 8 << 20;
/// Default of [`LogOptions::first_segment_bytes`]: small, so that a fresh store starts at once.
pub const FIRST_SEGMENT_BYTES: u64 = 4 << 20;
/// Greatest size of one record.
pub const RECORD_BYTES_MAX: usize = 1 << 30;
/// A frame holds at most this: larger records are cut into pieces.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// What may wait to be written.
pub const PENDING_BYTES_MAX: usize = 2 << 30;
/// Segments kept for another use.
pub const SPARE_SEGMENTS_MAX: usize = 2;
/// The greatest size of a segment.
pub const SEGMENT_BYTES_LARGEST: u64 = 4 << 30;
/// Default of [`LogOptions::held_back_bytes`]: thousands of small records, each in a sector of its own. Less than the smallest segment, so
/// that a fresh one is not held back as a whole.
pub const HELD_BACK_BYTES: u64 = 4 << 20;
const _: () = assert!(HELD_BACK_BYTES < SEGMENT_BYTES_SMALL);
/// The least size of a segment that makes sense.
pub const SEGMENT_BYTES_MIN: u64 = 4 * SECTOR as u64;

/// Sizes in bytes, and the salt.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Size of a segment; at most 4 GiB, a multiple of the sector.
    pub segment_bytes: u64,
    /// Size of the first segment of a fresh log.
    pub first_segment_bytes: u64,
    /// Once the disk is full, [`Log::room_for`] leaves this much of the segments to records that free space.
    pub held_back_bytes: u64,
    /// Part of every checksum of a fresh log: a random number, so that no record can pretend to be a frame. An existing
    /// log keeps its own.
    pub salt: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            segment_bytes: SEGMENT_BYTES,
            first_segment_bytes: FIRST_SEGMENT_BYTES,
            held_back_bytes: HELD_BACK_BYTES,
            salt: 0,
        }
    }
}

/// Records that wait for the next write.
#[derive(Default)]
struct Pending {
    records: Vec<Bytes>,
    /// Position of the first of them.
    next: u64,
    bytes: usize,
    /// Space that waiting records, and those being written, may need at most.
    cost: u64,
    /// Space left in the current segment.
    current_left: u64,
    broken: Option<DiskError>,
}

/// The end of the log: held by the one that writes.
struct Tail {
    file: Arc<dyn DiskFile>,
    number: u64,
    bytes: u64,
    offset: u64,
    /// Position of the next record to be written: the first of `batch`.
    next: u64,
    frame: FrameWriter,
    batch: Vec<Bytes>,
}

/// The log of a node.
pub struct Log {
    reserve: Reserve,
    salt: u64,
    held_back_bytes: u64,
    pending: Mutex<Pending>,
    tail: Mutex<Tail>,
    sealed: Mutex<Vec<Sealed>>,
    durable: AtomicU64,
}

/// Space that a record may need at most: a frame of its own, and a little more for each frame's end that cuts it. (What the
/// ends of segments cost is taken off their usable space.)
fn cost_of(bytes: usize) -> u64 {
    (padded(bytes + FRAME_HEADER + PIECE_HEADER) + bytes / FRAME_BYTES_MAX * 2 * SECTOR) as u64
}

impl Log {
    /// Takes a record: it gets the position that is returned, and is durable once [`Log::durable`] has reached it.
    ///
    /// # Errors
    /// [`LogError::DiskFull`], [`LogError::TooLarge`], [`LogError::Busy`], [`LogError::Broken`]: it was not taken.
    pub fn append(&self, record: Bytes) -> Result<u64, LogError> {
        self.append_all(std::iter::once(record))
    }

    /// Takes records in one go; gives the position of the last one (of the log's last where there are none).
    ///
    /// # Errors
    /// As [`Log::append`]: none was taken.
    pub fn append_all(&self, records: impl IntoIterator<Item = Bytes>) -> Result<u64, LogError> {
        let records: smallvec::SmallVec<[Bytes; 4]> = records.into_iter().collect();
        if let Some(large) = records.iter().find(|r| r.len() > RECORD_BYTES_MAX) {
            return Err(LogError::TooLarge { bytes: large.len(), limit: RECORD_BYTES_MAX });
        }
        let bytes: usize = records.iter().map(Bytes::len).sum();
        let cost: u64 = records.iter().map(|r| cost_of(r.len())).sum();
        loop {
            let mut pending = self.pending.lock();
            if let Some(error) = &pending.broken {
                return Err(LogError::Broken(error.clone()));
            }
            if pending.bytes + bytes > PENDING_BYTES_MAX {
                return Err(LogError::Busy { bytes: pending.bytes + bytes, limit: PENDING_BYTES_MAX });
            }
            let need = pending.cost + cost;
            let space = self.reserve.space();
            if need <= pending.current_left + space {
                pending.records.extend(records);
                let last = pending.records.len();
                pending.bytes += bytes;
                pending.cost = need;
                return Ok(pending.next + last as u64 - 1);
            }
            drop(pending);
            self.reserve.grow(space)?;
        }
    }

    /// Whether an ordinary record of so many bytes should be appended. Where the disk has no room for another segment, what is held
    /// back of the last ones is left to those records that free space, and to what must be said of records before them: without them
    /// a full disk would stay full. To be asked before [`Log::append`], which takes whatever fits.
    ///
    /// # Errors
    /// [`LogError::DiskFull`].
    pub fn room_for(&self, bytes: usize) -> Result<(), LogError> {
        let cost = cost_of(bytes) + self.held_back_bytes;
        while self.reserve.is_full() {
            let space = self.reserve.space();
            let pending = self.pending.lock();
            if pending.cost + cost <= pending.current_left + space {
                break;
            }
            drop(pending);
            self.reserve.grow(space)?;
        }
        Ok(())
    }

    /// By how much the log's files would grow for an ordinary record of so many bytes, or, where what is held back for others is to be left,
    /// for one that frees space: what waits in memory may need that room.
    pub fn growth(&self, bytes: usize) -> u64 {
        let (space, spare, segment_bytes) = self.reserve.room();
        let pending = self.pending.lock();
        let cost = pending.cost + cost_of(bytes) + self.held_back_bytes;
        let lacking = cost.saturating_sub(pending.current_left + space + spare);
        lacking.div_ceil(reserve::usable(segment_bytes - FIRST_FRAME as u64).max(1)) * segment_bytes
    }

    /// Returns once `position` is durable: by somebody else's write, or by its own. Whoever comes first leads, and writes for
    /// all who appended meanwhile.
    ///
    /// # Errors
    /// As [`Log::write_and_sync`].
    pub fn sync_to(&self, position: u64) -> Result<(), LogError> {
        while self.durable() < position {
            let mut tail = self.tail.lock();
            // Those who waited for the leader leave at once: a write for each of them would be a sync for each of them.
            if self.durable() < position {
                self.write_tail(&mut tail)?;
            }
        }
        Ok(())
    }

    /// Writes and syncs everything that waits, in one write where it fits a frame; gives the durable position. Others may
    /// append meanwhile; a second caller waits for the first.
    ///
    /// # Errors
    /// [`LogError::Broken`]: nothing more will be taken. [`LogError::DiskFull`] only from file systems that copy on
    /// write: the records still wait, call again.
    pub fn write_and_sync(&self) -> Result<u64, LogError> {
        self.write_tail(&mut self.tail.lock())
    }

    fn write_tail(&self, tail: &mut Tail) -> Result<u64, LogError> {
        let (cost, bytes) = {
            let mut pending = self.pending.lock();
            if let Some(error) = &pending.broken {
                return Err(LogError::Broken(error.clone()));
            }
            pending.next += pending.records.len() as u64;
            tail.batch.append(&mut pending.records);
            (pending.cost, pending.bytes)
        };
        if tail.batch.is_empty() {
            return Ok(self.durable());
        }
        let result = self.write_batch(tail);
        let mut pending = self.pending.lock();
        pending.current_left = reserve::usable(tail.bytes - tail.offset);
        match result {
            Ok(()) => {
                pending.cost -= cost;
                pending.bytes -= bytes;
                self.durable.store(tail.next - 1, Ordering::Release);
                Ok(tail.next - 1)
            }
            Err(LogError::DiskFull) => Err(LogError::DiskFull),
            Err(LogError::Disk(error)) => {
                pending.broken = Some(error.clone());
                Err(LogError::Broken(error))
            }
            Err(other) => Err(other),
        }
    }

    /// Every record up to this position is durable.
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// The position of the last record taken, durable or not.
    pub fn last(&self) -> u64 {
        let pending = self.pending.lock();
        pending.next + pending.records.len() as u64 - 1
    }

    /// Bytes that wait to be written.
    pub fn pending_bytes(&self) -> usize {
        self.pending.lock().bytes
    }

    /// Makes so many segments ready that a record of so many bytes finds room in them, which takes a while: for who is about to append one, so that
    /// nobody waits behind it for more than its writing.
    ///
    /// # Errors
    /// As [`Log::reserve`].
    pub fn make_room(&self, bytes: usize) -> Result<(), LogError> {
        let cost = cost_of(bytes);
        loop {
            let space = self.reserve.space();
            let pending = self.pending.lock();
            if pending.cost + cost <= pending.current_left + space {
                return Ok(());
            }
            drop(pending);
            self.reserve.grow(space)?;
        }
    }

    /// Makes the next segment ready, if none is: slow, for a background thread, so that no commit has to wait for it.
    ///
    /// # Errors
    /// [`LogError::DiskFull`], [`LogError::Disk`]: the log goes on with what space it has.
    pub fn reserve(&self) -> Result<(), LogError> {
        if self.reserve.is_ready() { Ok(()) } else { self.reserve.grow(0) }
    }

    /// The bytes by which the next [`Log::reserve`] makes the log grow.
    pub fn reserve_bytes(&self) -> u64 {
        let (_, spare, segment_bytes) = self.reserve.room();
        if self.reserve.is_ready() || spare > 0 { 0 } else { segment_bytes }
    }

    /// Whether [`Log::reserve`] has something to do.
    pub fn needs_reserve(&self) -> bool {
        !self.reserve.is_ready()
    }

    /// Nothing at or below `applied` is needed any more (the engine holds it, synced): recycles or deletes segments that
    /// hold nothing else. Gives how many.
    ///
    /// # Errors
    /// [`LogError::Disk`]: the rest is given back by a later call or the next start.
    pub fn truncate(&self, applied: u64) -> Result<usize, LogError> {
        let done: Vec<Sealed> = {
            let mut sealed = self.sealed.lock();
            let keep = sealed.iter().position(|s| s.last > applied).unwrap_or(sealed.len());
            sealed.drain(..keep).collect()
        };
        for segment in &done {
            self.reserve.recycle(*segment)?;
        }
        Ok(done.len())
    }

    /// Deletes the segments that are kept for another use: the disk has no room for the engine.
    ///
    /// # Errors
    /// [`LogError::Disk`].
    pub fn give_back_spares(&self) -> Result<(), LogError> {
        self.reserve.give_back_spares()
    }

    /// Gives all room back that no record needs, but for a little at the end of the current segment: what is in memory cannot be written out for want
    /// of room, and that frees what the log has. Gives the bytes.
    ///
    /// # Errors
    /// [`LogError::Disk`].
    pub fn give_back_room(&self) -> Result<u64, LogError> {
        self.give_back_spares()?;
        // Nobody writes meanwhile, nor counts on the space.
        let mut tail = self.tail.lock();
        let mut pending = self.pending.lock();
        let (end, given_back) = (tail.offset + pending.cost + reserve::SEGMENT_BYTES_LEAST, self.reserve.space());
        if pending.cost > pending.current_left {
            return Ok(0);
        }
        self.reserve.give_back_ready()?;
        let bytes = end.next_multiple_of(SECTOR as u64);
        let Some(surplus) = tail.bytes.checked_sub(bytes).filter(|surplus| *surplus > 0) else { return Ok(given_back) };
        // It is durable before a record is written behind it: only a full segment is followed by another.
        tail.file.shrink(bytes)?;
        tail.bytes = bytes;
        pending.current_left = reserve::usable(tail.bytes - tail.offset);
        Ok(given_back + surplus)
    }

    /// Segments in use: sealed ones and the current one.
    pub fn segments(&self) -> usize {
        self.sealed.lock().len() + 1
    }

    /// Writes the batch of the tail, which on an error keeps what was not written.
    fn write_batch(&self, tail: &mut Tail) -> Result<(), LogError> {
        let mut done = 0;
        // Bytes of the record at `done` that are on disk.
        let mut cut = 0;
        let mut result = Ok(());
        while result.is_ok() && done < tail.batch.len() {
            let left = usize::try_from(tail.bytes - tail.offset).unwrap_or(usize::MAX);
            result = if left < SECTOR {
                self.rotate(tail, cut > 0)
            } else {
                Self::write_frame(self.salt, tail, &mut done, &mut cut, left.min(FRAME_BYTES_MAX))
            };
        }
        tail.batch.drain(..done);
        tail.frame.rest();
        result
    }

    /// Writes and syncs one frame of at most `limit` bytes, from byte `cut` of record `done` of the batch on, and moves both.
    fn write_frame(
        salt: u64,
        tail: &mut Tail,
        done: &mut usize,
        cut: &mut usize,
        limit: usize,
    ) -> Result<(), LogError> {
        let place = Place { salt, segment: tail.number, offset: tail.offset };
        tail.frame.begin(place, tail.next);
        let (mut record_at, mut byte_at) = (*done, *cut);
        while let Some(record) = tail.batch.get(record_at) {
            let rest = &record[byte_at..];
            let room = tail.frame.room(limit);
            if rest.len() <= room {
                tail.frame.push(if byte_at == 0 { Kind::Full } else { Kind::Last }, rest);
                (record_at, byte_at) = (record_at + 1, 0);
                continue;
            }
            if room > 0 {
                tail.frame.push(if byte_at == 0 { Kind::First } else { Kind::Middle }, &rest[..room]);
                byte_at += room;
            }
            break;
        }
        let sealed = tail.frame.seal(place);
        tail.file.write_at(tail.offset, sealed)?;
        tail.file.sync_data()?;
        tail.offset += sealed.len() as u64;
        tail.next += (record_at - *done) as u64;
        (*done, *cut) = (record_at, byte_at);
        Ok(())
    }

    /// Goes on with the next segment. Where a record was `cut` by the end of this one, this one is needed as long as it.
    fn rotate(&self, tail: &mut Tail, cut: bool) -> Result<(), LogError> {
        let ready = self.reserve.take()?;
        let last = if cut { tail.next } else { tail.next - 1 };
        self.sealed.lock().push(Sealed { number: tail.number, last, bytes: tail.bytes });
        tail.file = ready.file;
        tail.number = ready.number;
        tail.bytes = ready.bytes;
        tail.offset = FIRST_FRAME as u64;
        Ok(())
    }
}
