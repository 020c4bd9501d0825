//! Sorts keys with their values, of any number, in bounded memory: runs in scratch space, and a merge of them.
//!
//! ```text
//!   push ──► arena (bytes, and a place for each entry) ──sort──► run ─┐
//!            at SORT_BYTES_MAX altogether                        run ─┼─► merge, one entry at a time
//!                                           what is left in memory ───┘
//! ```
//!
//! 1. In memory are at most [`SORT_BYTES_MAX`] of entries (the two vectors that hold them have addresses for what its user lets it hold, each, or twice that), and while runs are merged
//!    [`READ_BYTES`] for each of at most [`RUNS_MAX`], or one entry where that is larger.
//! 2. The order is that of the keys; entries of equal keys stand beside each other, in no particular order.
//! 3. More runs become one: those that were joined as often as each other, so that an entry is written again no more often than the logarithm of
//!    their number says, and not whenever another hundred have come.

use crate::KvError;
use crate::transaction::{Kv, Scratch};
use std::cmp::Ordering;

/// Bytes of entries that are sorted in memory before they go to scratch space.
pub const SORT_BYTES_MAX: usize = 64 << 20;
/// A vector of entries that has grown so large gets room for all that it may hold ([`Sorter::within`]): to copy it each time that it doubles costs more than addresses for what
/// is never touched. Bytes.
const GROWN_BYTES: usize = 2 << 20;
/// Bytes read at once from each run.
const READ_BYTES: usize = 128 << 10;
/// Runs merged at once.
const RUNS_MAX: usize = 128;
/// So many runs of one level are worth to be joined.
const JOINED_MIN: usize = RUNS_MAX / 4;
/// Bytes written at once.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes before an entry: the lengths of its key (u16) and value (u32).
const HEADER_BYTES: usize = 6;
/// Entries of the arena that are looked at together: they lie anywhere in it, and the processor fetches several at a time when it need not know one to
/// ask for the next.
const TOGETHER: usize = 16;
/// All keys of a sort begin with the same bytes, an index id.
const PREFIX_BYTES: usize = 4;

/// Where an entry stands in the arena, and the first bytes of its key that tell it from others: most comparisons end with them.
#[derive(Clone, Copy)]
struct Place {
    lead: u64,
    at: u32,
}

/// See the module.
#[derive(Default)]
pub(super) struct Sorter {
    arena: Vec<u8>,
    places: Vec<Place>,
    /// Whoever uses it spills it when it holds so much.
    bytes_max: usize,
    /// Of what was written from memory, of what was joined of that, and so on.
    levels: Vec<Level>,
    entries: u64,
    /// Entries that were written again, each time.
    #[cfg(test)]
    joined: u64,
}

/// Runs that were joined as often as each other.
#[derive(Default)]
struct Level {
    scratch: Option<Box<dyn Scratch>>,
    /// Where each run begins and ends in the scratch space.
    runs: Vec<(u64, u64)>,
}

impl Level {
    /// Its scratch space, made where there is none, and who writes the next run to it.
    fn next(&mut self, kv: &dyn Kv) -> Result<(&mut dyn Scratch, RunWriter), KvError> {
        let out = RunWriter::after(&self.runs);
        let scratch = match &mut self.scratch {
            Some(scratch) => scratch,
            none => none.insert(kv.scratch()?),
        };
        Ok((scratch.as_mut(), out))
    }
}

fn lead(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let rest = key.get(PREFIX_BYTES..).unwrap_or_default();
    let n = rest.len().min(8);
    first[..n].copy_from_slice(&rest[..n]);
    u64::from_be_bytes(first)
}

/// Has room for so many more in a vector of entries.
fn reserve<T>(entries: &mut Vec<T>, more: usize, bytes_max: usize) {
    let (size, held) = (size_of::<T>(), entries.len());
    let room = bytes_max / size;
    if entries.capacity() - held < more && held * size >= GROWN_BYTES && held + more <= room {
        entries.reserve_exact(room - held);
    }
}

/// What the first entries of some places take.
fn sizes_of(arena: &[u8], places: &[Place]) -> [usize; TOGETHER] {
    let mut sizes = [0; TOGETHER];
    for (size, place) in sizes.iter_mut().zip(places) {
        let (key, value) = lengths(&arena[place.at as usize..]);
        *size = HEADER_BYTES + key + value;
    }
    sizes
}

/// The lengths of the key and value of the entry at the start of some bytes.
fn lengths(entry: &[u8]) -> (usize, usize) {
    let key = u16::from_le_bytes([entry[0], entry[1]]) as usize;
    (key, u32::from_le_bytes([entry[2], entry[3], entry[4], entry[5]]) as usize)
}

fn key_of(entry: &[u8]) -> &[u8] {
    &entry[HEADER_BYTES..HEADER_BYTES + lengths(entry).0]
}

impl Sorter {
    /// One that is spilled when it holds so many bytes, or before.
    pub fn within(bytes_max: usize) -> Sorter {
        Sorter { bytes_max: bytes_max.min(SORT_BYTES_MAX), ..Sorter::default() }
    }

    /// Bytes of entries in memory.
    pub fn bytes(&self) -> usize {
        self.arena.len() + self.places.len() * size_of::<Place>()
    }

    /// Adds an entry. Keys and values are as large as the layers below allow: 16 bits and 32 bits of length.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        let place = Place { lead: lead(key), at: self.arena.len() as u32 };
        reserve(&mut self.arena, HEADER_BYTES + key.len() + value.len(), self.bytes_max);
        reserve(&mut self.places, 1, self.bytes_max);
        self.arena.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.arena.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        self.places.push(place);
        self.entries += 1;
    }

    fn sort(&mut self) {
        let arena = &self.arena;
        let key = |place: &Place| key_of(&arena[place.at as usize..]);
        self.places.sort_unstable_by(|a, b| a.lead.cmp(&b.lead).then_with(|| key(a).cmp(key(b))));
    }

    /// Writes what is in memory to scratch space.
    ///
    /// # Errors
    /// Those of the scratch space.
    pub fn spill(&mut self, kv: &dyn Kv) -> Result<(), KvError> {
        if self.runs() == RUNS_MAX {
            self.join_runs(kv)?;
        }
        self.sort();
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let level = &mut self.levels[0];
        let (scratch, mut out) = level.next(kv)?;
        for places in self.places.chunks(TOGETHER) {
            let sizes = sizes_of(&self.arena, places);
            for (size, place) in sizes.iter().zip(places) {
                out.write(scratch, &self.arena[place.at as usize..][..*size])?;
            }
        }
        let run = out.finish(scratch)?;
        level.runs.push(run);
        self.arena.clear();
        self.places.clear();
        Ok(())
    }

    /// Runs of all levels.
    fn runs(&self) -> usize {
        self.levels.iter().map(|level| level.runs.len()).sum()
    }

    /// Merges the runs of the lowest level that has many into one of the next level.
    fn join_runs(&mut self, kv: &dyn Kv) -> Result<(), KvError> {
        let many = self.levels.iter().position(|level| level.runs.len() >= JOINED_MIN);
        let most = || (0..self.levels.len()).max_by_key(|at| self.levels[*at].runs.len());
        let Some(at) = many.or_else(most) else { return Ok(()) };
        let mut merge = Merge::of(vec![std::mem::take(&mut self.levels[at])], None)?;
        if self.levels.len() == at + 1 {
            self.levels.push(Level::default());
        }
        let level = &mut self.levels[at + 1];
        let (scratch, mut out) = level.next(kv)?;
        while let Some(entry) = merge.entry() {
            out.write(scratch, entry)?;
            merge.advance()?;
            #[cfg(test)]
            {
                self.joined += 1;
            }
        }
        let run = out.finish(scratch)?;
        level.runs.push(run);
        Ok(())
    }

    /// All entries in order.
    ///
    /// # Errors
    /// Those of the scratch space.
    pub fn merge(mut self) -> Result<Merge, KvError> {
        self.sort();
        let mut merge = Merge::of(self.levels, Some((self.arena, self.places)))?;
        merge.entries = self.entries;
        Ok(merge)
    }
}

/// Writes a run in large pieces.
struct RunWriter {
    buffer: Vec<u8>,
    from: u64,
    to: u64,
}

impl RunWriter {
    fn after(runs: &[(u64, u64)]) -> RunWriter {
        let end = runs.last().map_or(0, |run| run.1);
        RunWriter { buffer: Vec::with_capacity(WRITE_BYTES), from: end, to: end }
    }
    fn write(&mut self, scratch: &mut dyn Scratch, entry: &[u8]) -> Result<(), KvError> {
        self.buffer.extend_from_slice(entry);
        if self.buffer.len() < WRITE_BYTES { Ok(()) } else { self.flush(scratch) }
    }
    fn flush(&mut self, scratch: &mut dyn Scratch) -> Result<(), KvError> {
        scratch.append(&self.buffer)?;
        self.to += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
    fn finish(mut self, scratch: &mut dyn Scratch) -> Result<(u64, u64), KvError> {
        self.flush(scratch)?;
        Ok((self.from, self.to))
    }
}

/// One run being read: its current entry stands in the buffer.
struct Run {
    buffer: Vec<u8>,
    at: usize,
    lead: u64,
    source: Source,
}

enum Source {
    /// The buffer is the arena; all places, the next one of them, and what the last [`TOGETHER`] that were looked at take.
    Memory { places: Vec<Place>, next: usize, sizes: [usize; TOGETHER] },
    /// What was not read yet of a level's scratch space, and where the buffer's bytes end.
    Scratch { level: usize, from: u64, to: u64, filled: usize },
}

impl Run {
    fn entry(&self) -> &[u8] {
        let entry = &self.buffer[self.at..];
        match &self.source {
            Source::Memory { next, sizes, .. } => &entry[..sizes[next.wrapping_sub(1) % TOGETHER]],
            Source::Scratch { .. } => {
                let (key, value) = lengths(entry);
                &entry[..HEADER_BYTES + key + value]
            }
        }
    }

    /// Moves to the entry at `at`, `false` at the end.
    fn settle(&mut self, scratch: &[Option<Box<dyn Scratch>>]) -> Result<bool, KvError> {
        match &mut self.source {
            Source::Memory { places, next, sizes } => {
                let Some(place) = places.get(*next) else { return Ok(false) };
                if next.is_multiple_of(TOGETHER) {
                    *sizes = sizes_of(&self.buffer, &places[*next..]);
                }
                (self.at, self.lead) = (place.at as usize, place.lead);
                *next += 1;
                Ok(true)
            }
            Source::Scratch { .. } => {
                if !self.hold(HEADER_BYTES, scratch)? {
                    return Ok(false);
                }
                let (key, value) = lengths(&self.buffer[self.at..]);
                if !self.hold(HEADER_BYTES + key + value, scratch)? {
                    return Err(KvError::Storage("a run in scratch space ends inside an entry".into()));
                }
                self.lead = lead(key_of(&self.buffer[self.at..]));
                Ok(true)
            }
        }
    }

    /// Has so many bytes in the buffer from `at` on; `false` where the run ends before.
    fn hold(&mut self, bytes: usize, scratch: &[Option<Box<dyn Scratch>>]) -> Result<bool, KvError> {
        let (at, Source::Scratch { level, from, to, filled }) = (self.at, &mut self.source) else {
            return Ok(false);
        };
        let Some(Some(scratch)) = scratch.get(*level) else { return Ok(false) };
        if *filled - at >= bytes {
            return Ok(true);
        }
        self.buffer.copy_within(at..*filled, 0);
        *filled -= at;
        self.at = 0;
        let room = bytes.max(READ_BYTES);
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let wanted = (self.buffer.len() - *filled).min(usize::try_from(*to - *from).unwrap_or(usize::MAX));
        scratch.read(*from, &mut self.buffer[*filled..*filled + wanted])?;
        *from += wanted as u64;
        *filled += wanted;
        Ok(*filled >= bytes)
    }

    fn advance(&mut self, scratch: &[Option<Box<dyn Scratch>>]) -> Result<bool, KvError> {
        if matches!(self.source, Source::Scratch { .. }) {
            self.at += self.entry().len();
        }
        self.settle(scratch)
    }
}

/// Entries in order: the current one, until it is passed.
pub(super) struct Merge {
    /// By level.
    scratch: Vec<Option<Box<dyn Scratch>>>,
    runs: Vec<Run>,
    /// The runs that are not at their end: a heap, the one with the least key first.
    heap: Vec<usize>,
    entries: u64,
}

impl Merge {
    fn of(levels: Vec<Level>, memory: Option<(Vec<u8>, Vec<Place>)>) -> Result<Merge, KvError> {
        let (mut scratch, mut runs) = (Vec::new(), Vec::new());
        for (level, written) in levels.into_iter().enumerate() {
            scratch.push(written.scratch);
            runs.extend(written.runs.into_iter().map(|(from, to)| Run {
                buffer: Vec::new(),
                at: 0,
                lead: 0,
                source: Source::Scratch { level, from, to, filled: 0 },
            }));
        }
        let memory = memory.filter(|(_, places)| !places.is_empty());
        runs.extend(memory.map(|(buffer, places)| Run {
            buffer,
            at: 0,
            lead: 0,
            source: Source::Memory { places, next: 0, sizes: [0; TOGETHER] },
        }));
        let mut merge = Merge { scratch, runs, heap: Vec::new(), entries: 0 };
        for at in 0..merge.runs.len() {
            if merge.runs[at].settle(&merge.scratch)? {
                merge.heap.push(at);
            }
        }
        for top in (0..merge.heap.len() / 2).rev() {
            merge.sink(top);
        }
        Ok(merge)
    }

    fn entry(&self) -> Option<&[u8]> {
        self.heap.first().map(|run| self.runs[*run].entry())
    }

    /// How many there were in the beginning.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The current key and value; `None` at the end.
    pub fn current(&self) -> Option<(&[u8], &[u8])> {
        let entry = self.entry()?;
        Some(entry[HEADER_BYTES..].split_at(lengths(entry).0))
    }

    /// Passes the current entry.
    ///
    /// # Errors
    /// Those of the scratch space.
    pub fn advance(&mut self) -> Result<(), KvError> {
        let Some(run) = self.heap.first().copied() else { return Ok(()) };
        if !self.runs[run].advance(&self.scratch)? {
            self.heap.swap_remove(0);
        }
        self.sink(0);
        Ok(())
    }

    fn before(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.runs[self.heap[a]], &self.runs[self.heap[b]]);
        a.lead.cmp(&b.lead).then_with(|| key_of(a.entry()).cmp(key_of(b.entry()))) == Ordering::Less
    }

    /// Moves what stands at a place of the heap down to where it belongs.
    fn sink(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut least = at;
            for child in [left, right] {
                if child < self.heap.len() && self.before(child, least) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::memory::MemoryKv;

    /// Entries with keys of several lengths, in an order of no meaning, two of them equal; spilled after every so many.
    fn sorted(count: u32, run: u32) {
        let kv = MemoryKv::new();
        let mut sorter = Sorter::default();
        let mut expected = Vec::new();
        for i in 0..count {
            let n = i.wrapping_mul(2_654_435_761) % count;
            let mut key = vec![0, 0, 0, 9];
            key.extend_from_slice(&(n / 3).to_be_bytes());
            key.extend(std::iter::repeat_n(b'k', (n % 3) as usize * 7));
            let value = vec![n as u8; (n % 50) as usize * 100];
            sorter.push(&key, &value);
            expected.push((key, value));
            if run > 0 && (i + 1).is_multiple_of(run) {
                sorter.spill(&kv).unwrap();
                assert_eq!(sorter.bytes(), 0);
                assert!(sorter.runs() <= RUNS_MAX);
            }
        }
        if let Some(again) = expected.first().cloned() {
            sorter.push(&again.0, &again.1);
            expected.push(again);
        }
        expected.sort();
        let mut merge = sorter.merge().unwrap();
        let mut out = Vec::new();
        while let Some((key, value)) = merge.current() {
            out.push((key.to_vec(), value.to_vec()));
            merge.advance().unwrap();
        }
        assert!(out == expected, "{count} in runs of {run}");
    }

    /// Whatever their number, and however small the memory is that made the runs.
    #[test]
    fn few_entries_are_written_again() {
        let (kv, mut sorter, spills) = (MemoryKv::new(), Sorter::default(), 20_000u32);
        for i in 0..spills {
            sorter.push(&[&[0, 0, 0, 9][..], &i.wrapping_mul(2_654_435_761).to_be_bytes()].concat(), &[]);
            sorter.spill(&kv).unwrap();
        }
        assert!(sorter.levels.len() <= 4, "{} levels", sorter.levels.len());
        assert!(sorter.joined <= 3 * u64::from(spills), "{} of {spills}", sorter.joined);
    }

    #[test]
    fn the_order_is_that_of_the_keys_however_many_runs_there_are() {
        sorted(0, 0);
        sorted(1000, 0);
        sorted(1000, 1000);
        sorted(5000, 700);
        // More runs than are merged at once.
        sorted(9000, 2);
        sorted(5000, 17);
        sorted(300, 1);
    }
}
