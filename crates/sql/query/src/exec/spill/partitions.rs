//! Rows apart by their keys: those of one key are in one part, and a part is some thirtieth of all.
//!
//! A part that is still too large is divided again, by another hash ([`Partitions::level`]).

use super::run::{Run, RunReader, RunWriter};
use super::{READ_PART, Share, Spool};
use crate::SqlError;
use crate::context::StatementContext;
use crate::types::{Row, Value};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// Parts that rows are divided to at once.
const PARTS: usize = 32;
/// Who divides so often has a single key, or rows without a difference.
pub(crate) const LEVELS_MAX: u32 = 4;
/// What is written at once to one part.
const BUFFER_BYTES_MIN: usize = 1 << 10;
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Rows on their way to parts.
pub(crate) struct Partitions {
    spool: Arc<Spool>,
    writers: Vec<RunWriter>,
    level: u32,
    seed: u64,
    /// Of the buffers.
    _share: Share,
}

/// One of them.
pub(crate) struct Part {
    spool: Arc<Spool>,
    run: Run,
    /// How often its rows were divided.
    pub level: u32,
}

impl Partitions {
    /// None yet, for rows that were divided `level` times before.
    ///
    /// # Errors
    /// 53100 if the disk is nearly full.
    pub fn new(level: u32, context: &StatementContext) -> Result<Partitions, SqlError> {
        let bytes = Share::spilled_bytes_max(context) / READ_PART / PARTS;
        let buffer_bytes = bytes.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        let mut share = Share::new(context);
        share.take_anyway(PARTS * buffer_bytes);
        let writers = (0..PARTS).map(|_| RunWriter::new(buffer_bytes)).collect();
        Ok(Partitions { spool: Spool::new(context)?, writers, level, seed: context.hash_seed, _share: share })
    }

    /// Which part a key belongs to.
    pub fn part_of(&self, key: &[u8]) -> usize {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u32(self.level);
        hasher.write(key);
        hasher.finish() as usize % PARTS
    }

    /// Adds a row to the part of its key.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn write(&mut self, key: &[u8], row: &[Value]) -> Result<(), SqlError> {
        let part = self.part_of(key);
        self.writers[part].write(&self.spool, row)
    }

    /// The parts, the last one first: empty ones too, so that those of two sides stand at the same places.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn finish(self) -> Result<Vec<Part>, SqlError> {
        let (spool, level) = (self.spool, self.level + 1);
        let part = |writer: RunWriter| Ok(Part { run: writer.finish(&spool)?, spool: spool.clone(), level });
        self.writers.into_iter().rev().map(part).collect()
    }
}

impl Part {
    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.run.rows()
    }

    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.run.bytes()
    }

    /// Its rows, in the order in which they were written.
    pub fn read(&self, context: &StatementContext) -> PartReader {
        let reader = RunReader::new(&self.spool, self.run.clone(), Share::spilled_bytes_max(context) / READ_PART);
        let mut share = Share::new(context);
        share.take_anyway(reader.buffer_bytes());
        PartReader { reader, _share: share }
    }
}

/// Reads a part.
pub(crate) struct PartReader {
    reader: RunReader,
    _share: Share,
}

impl PartReader {
    /// Puts the next row in place of what `row` holds; `false` at the end.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        self.reader.next(row)
    }
}
