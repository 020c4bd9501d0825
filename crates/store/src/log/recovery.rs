//! Opening a log: finding its end, handing out its records, telling a torn tail from lost data.

use super::frame::{self, Frame, FrameWriter, Kind, Place};
use super::reserve::{self, Reserve};
use super::segment::{self, FIRST_FRAME, FORMAT, Found, Header, Ready, Sealed};
use super::{Log, LogError, LogOptions, Pending, SEGMENT_BYTES_LARGEST, SEGMENT_BYTES_MIN, Tail};
use crate::disk::{Disk, DiskFile, SECTOR};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What recovery calls for each record, oldest first: its position and content. An error ends the recovery.
pub type Visit<'a> = dyn FnMut(u64, Bytes) -> Result<(), String> + 'a;

/// What recovery found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRecovery {
    /// Position of the oldest record that was handed out; `None`: the log is empty.
    pub first: Option<u64>,
    /// Position of the newest record; 0 where there never was one.
    pub last: u64,
    /// Where a torn write was cut off: file and offset.
    pub torn: Option<(String, u64)>,
    /// Files read.
    pub segments: usize,
}

/// A segment that was opened; its content is in the reader's buffer.
struct Open {
    number: u64,
    file: Arc<dyn DiskFile>,
    bytes: usize,
    salt: u64,
}

impl Open {
    fn of(disk: &dyn Disk, number: u64) -> Result<Open, LogError> {
        let name = segment::name(number);
        let file = disk.open(&name)?;
        let bytes = usize::try_from(file.size()?).unwrap_or(usize::MAX);
        let mut head = [0; SECTOR];
        // What is shorter has no header.
        if bytes >= SECTOR {
            file.read_at(0, &mut head)?;
        }
        match Header::decode(&head) {
            Found::Header(header) if header.number == number => Ok(Open { number, file, bytes, salt: header.salt }),
            Found::Format(found) => Err(LogError::Format { file: name, found, known: FORMAT }),
            _ => Err(LogError::Header { file: name }),
        }
    }

    /// Reads all of it.
    fn read(&self, content: &mut Vec<u8>) -> Result<(), LogError> {
        content.resize(self.bytes, 0);
        Ok(self.file.read_at(0, content)?)
    }

    /// Whether a frame, good or torn, was begun where the first one stands.
    fn is_begun(&self) -> Result<bool, LogError> {
        let mut first = [0; SECTOR];
        if self.bytes < FIRST_FRAME + SECTOR {
            return Ok(false);
        }
        self.file.read_at(FIRST_FRAME as u64, &mut first)?;
        Ok(frame::is_begun(&first, self.number))
    }

    fn frame_at(&self, content: &[u8], offset: usize) -> Option<Frame> {
        frame::read(content, Place { salt: self.salt, segment: self.number, offset: offset as u64 })
    }

    /// The first good frame at or after `offset`.
    fn next_frame(&self, content: &[u8], offset: usize) -> Option<usize> {
        (offset..content.len()).step_by(SECTOR).find(|at| self.frame_at(content, *at).is_some())
    }
}

/// Where the good part of the log ends.
struct End {
    segment: Open,
    offset: usize,
    /// The last good frame of this segment: where it begins, and its bytes.
    last_frame: Option<(usize, Vec<u8>)>,
    /// Whether a frame was begun at `offset`.
    torn: bool,
}

impl End {
    fn is_full(&self) -> bool {
        self.offset + SECTOR > self.segment.bytes
    }
}

/// Puts records together from pieces.
struct Reader<'v, 'f> {
    visit: &'v mut Visit<'f>,
    /// Position of the next record to end; `None` before the first frame.
    next: Option<u64>,
    /// Whether the beginning of a record was seen: the oldest segment may begin inside one whose first part was recycled.
    begun: bool,
    partial: Option<BytesMut>,
    first: Option<u64>,
}

impl Reader<'_, '_> {
    fn next(&self) -> u64 {
        self.next.unwrap_or(1)
    }

    /// Takes in a frame; `false` where it does not follow what came before.
    fn frame(&mut self, segment: &[u8], frame: &Frame) -> Result<bool, LogError> {
        let mut next = self.next.unwrap_or(frame.position);
        if next != frame.position {
            return Ok(false);
        }
        for (kind, place) in &frame.pieces {
            let content = &segment[place.clone()];
            match (kind, self.partial.as_mut()) {
                // A part before it that was never ended belongs to a write that was torn.
                (Kind::Full | Kind::First, _) => self.partial = Some(BytesMut::from(content)),
                (_, Some(partial)) => partial.extend_from_slice(content),
                (_, None) if self.begun => return Ok(false),
                (_, None) => {}
            }
            self.begun |= kind.begins();
            if kind.ends() {
                if let Some(record) = self.partial.take() {
                    (self.visit)(next, record.freeze()).map_err(LogError::Refused)?;
                    self.first.get_or_insert(next);
                }
                next += 1;
            }
        }
        self.next = Some(next);
        Ok(true)
    }

    /// Walks a segment; gives where its good part ends.
    fn segment(&mut self, segment: Open, content: &[u8]) -> Result<End, LogError> {
        let mut offset = FIRST_FRAME;
        let mut last_frame = None;
        while let Some(frame) = segment.frame_at(content, offset) {
            if !self.frame(content, &frame)? {
                return Err(self.hole(&segment, offset, &segment, offset));
            }
            last_frame = Some(offset..offset + frame.size);
            offset += frame.size;
        }
        if let Some(at) = segment.next_frame(content, offset) {
            return Err(self.hole(&segment, offset, &segment, at));
        }
        let torn = content.get(offset..).is_some_and(|raw| frame::is_begun(raw, segment.number));
        let last_frame = last_frame.and_then(|range| Some((range.start, content.get(range)?.to_vec())));
        Ok(End { segment, offset, last_frame, torn })
    }

    fn seal(&self, end: &End) -> Sealed {
        let last = if self.partial.is_some() { self.next() } else { self.next() - 1 };
        Sealed { number: end.segment.number, last, bytes: end.segment.bytes as u64 }
    }

    fn hole(&self, bad: &Open, offset: usize, good: &Open, next_offset: usize) -> LogError {
        LogError::Hole {
            file: segment::name(bad.number),
            offset: offset as u64,
            position: self.next(),
            next_file: segment::name(good.number),
            next_offset: next_offset as u64,
        }
    }
}

impl Log {
    /// Opens the log of a disk, or begins one. Every record that is still there goes to `visit`, oldest first, also those
    /// that the engine holds already: the caller passes over them by their positions.
    ///
    /// # Errors
    /// [`LogError::Hole`], [`LogError::Header`] where acknowledged data is damaged, [`LogError::Format`],
    /// [`LogError::Refused`] where `visit` failed, [`LogError::DiskFull`] where a fresh log finds no space,
    /// [`LogError::Disk`].
    pub fn open(
        disk: Arc<dyn Disk>,
        options: &LogOptions,
        visit: &mut Visit<'_>,
    ) -> Result<(Log, LogRecovery), LogError> {
        let round = |bytes: u64| bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_LARGEST) / SECTOR as u64 * SECTOR as u64;
        let segment_bytes = round(options.segment_bytes);
        let mut numbers = tidy(&*disk)?;
        if numbers.is_empty() {
            let first_bytes = round(options.first_segment_bytes.min(segment_bytes));
            reserve::make(&*disk, options.salt, 1, first_bytes, None)?;
            numbers.push(1);
        }
        let mut reader = Reader { visit, next: None, begun: false, partial: None, first: None };
        // One buffer for all segments, one after the other.
        let mut content = Vec::new();
        let first = Open::of(&*disk, numbers[0])?;
        first.read(&mut content)?;
        let mut end = reader.segment(first, &content)?;
        let (mut sealed, mut ready) = (Vec::new(), VecDeque::new());
        for number in &numbers[1..] {
            let expected = end.segment.number + 1 + ready.len() as u64;
            let segment = Open::of(&*disk, *number)?;
            // A segment is written from its beginning, and only once the one before it is full: behind one that is not, it is enough
            // to look whether it was begun.
            let found = if end.is_full() || *number != expected || segment.is_begun()? {
                segment.read(&mut content)?;
                segment.next_frame(&content, FIRST_FRAME)
            } else {
                None
            };
            match found {
                None if *number == expected => {
                    ready.push_back(Ready { number: *number, bytes: segment.bytes as u64, file: segment.file });
                }
                // It holds nothing, and what comes before it is gone: not ours to keep.
                None => disk.delete(&segment::name(*number))?,
                Some(_) if *number == expected && ready.is_empty() && end.is_full() => {
                    sealed.push(reader.seal(&end));
                    end = reader.segment(segment, &content)?;
                }
                Some(at) => return Err(reader.hole(&end.segment, end.offset, &segment, at)),
            }
        }
        drop(content);
        let found = LogRecovery {
            first: reader.first,
            last: reader.next() - 1,
            torn: end.torn.then(|| (segment::name(end.segment.number), end.offset as u64)),
            segments: numbers.len(),
        };
        // What was read may be in the page cache only, even after a failed sync: write it once more, so that the next
        // frame is never durable without it.
        if let Some((at, frame)) = &end.last_frame {
            end.segment.file.write_at(*at as u64, frame)?;
        }
        end.segment.file.sync_data()?;
        disk.sync_names()?;
        Ok((Self::resume(disk, options, segment_bytes, end, sealed, ready, found.last), found))
    }

    fn resume(
        disk: Arc<dyn Disk>,
        options: &LogOptions,
        segment_bytes: u64,
        end: End,
        sealed: Vec<Sealed>,
        ready: VecDeque<Ready>,
        last: u64,
    ) -> Log {
        let Open { number, file, bytes, salt } = end.segment;
        let (bytes, offset) = (bytes as u64, end.offset as u64);
        let next_number = number + 1 + ready.len() as u64;
        let pending = Pending {
            next: last + 1,
            current_left: reserve::usable(bytes.saturating_sub(offset)),
            ..Pending::default()
        };
        let tail =
            Tail { file, number, bytes, offset, next: last + 1, frame: FrameWriter::default(), batch: Vec::new() };
        Log {
            reserve: Reserve::new(disk, salt, segment_bytes, ready, next_number),
            salt,
            held_back_bytes: options.held_back_bytes,
            pending: Mutex::new(pending),
            tail: Mutex::new(tail),
            sealed: Mutex::new(sealed),
            durable: AtomicU64::new(last),
        }
    }
}

/// Deletes what an interrupted making of a segment left behind; gives the numbers of the segments.
fn tidy(disk: &dyn Disk) -> Result<Vec<u64>, LogError> {
    let names = disk.list()?;
    for name in names.iter().filter(|name| segment::is_temporary(name)) {
        disk.delete(name)?;
    }
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment::number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
