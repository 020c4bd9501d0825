//! Rows that do not fit a statement's memory: written to temporary files, and read back.
//!
//! **Problem.** A sort, a grouping, a hash join holds what it reads. A statement over millions of rows needs more than it may have.
//!
//! **Idea.** Each operator asks for memory by a [`Share`], which answers instead of failing. Where the answer is no, the operator writes rows to
//! a [`Spool`], gives the memory back, and goes on:
//!
//! ```text
//!   sort       rows in memory ──sorted──► run, run, run ──► merged as they are read        (sorter)
//!   grouping   groups in memory stay and take their rows; rows of others ──► partitions    (partitions)
//!   join       both sides ──► partitions by the key; pair by pair as if there were no more
//! ```
//!
//! **Invariants.**
//! 1. What fits is done as if there were no files: the way to them costs a comparison where memory is taken.
//! 2. What is in memory is counted for the statement, buffers of files included; what was written out is given back.
//! 3. A row comes back as it was, its texts, arrays and records included ([`form`]).
//! 4. An operator can always hold one row, and [`Share::floor_bytes`]: others that hold all of the memory do not stop it.
//! 5. A file is dropped with whoever reads it: the statement's end, however it ends, frees the disk.
//!
//! **Caveats.** What cannot be written out (the values of one `array_agg`, a recursive query) has the statement's memory as its bound, 53200 beyond
//! it (docs/decisions/0199). The floor is beyond the limit: as many times as there are operators that have none of the rest.

pub(crate) mod form;
pub(crate) mod merge;
pub(crate) mod partitions;
pub(crate) mod run;
pub(crate) mod sorter;

use super::sort::Reserved;
use crate::SqlError;
use crate::context::StatementContext;
use crate::temporary::TemporaryFile;
use crate::types::{Row, Value};
use form::Shapes;
use parking_lot::Mutex;
use std::sync::Arc;

/// An operator that has written to files holds from then on this part of the statement's limit: what is above it in the plan wants some, too.
const SPILLED_PART: usize = 4;
/// What an operator may hold whatever the others do: this part of the limit, within bounds.
const FLOOR_PART: usize = 8;
const FLOOR_BYTES_MIN: usize = 16 << 10;
const FLOOR_BYTES_MAX: usize = 256 << 10;
/// What runs are read through has this part of what an operator may hold.
const READ_PART: usize = 2;

/// The memory of one operator that can write out what it holds.
pub(crate) struct Share {
    reserved: Reserved,
    allowance_bytes: usize,
    floor_bytes: usize,
}

impl Share {
    /// Nothing yet, of a statement.
    pub fn new(context: &StatementContext) -> Share {
        let floor_bytes = (context.memory.limit_bytes() / FLOOR_PART).clamp(FLOOR_BYTES_MIN, FLOOR_BYTES_MAX);
        Share { reserved: Reserved::new(&context.memory), allowance_bytes: usize::MAX, floor_bytes }
    }

    /// Takes bytes; `false`: what it holds should be written out first.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> bool {
        let held = self.reserved.bytes();
        (bytes <= self.allowance_bytes - held.min(self.allowance_bytes) && self.reserved.take_spare(bytes))
            || self.take_floor(bytes)
    }

    #[cold]
    fn take_floor(&mut self, bytes: usize) -> bool {
        let held = self.reserved.bytes();
        let fits = held == 0 || held + bytes <= self.floor_bytes;
        if fits {
            self.reserved.take_anyway(bytes);
        }
        fits
    }

    /// Takes what cannot be done without.
    pub fn take_anyway(&mut self, bytes: usize) {
        self.reserved.take_anyway(bytes);
    }

    /// Takes bytes of what cannot be written out.
    ///
    /// # Errors
    /// 53200 beyond the statement's memory.
    pub fn take_fixed(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.reserved.take(bytes)
    }

    /// What it holds, for who writes nothing out.
    pub fn into_reserved(self) -> Reserved {
        self.reserved
    }

    /// What it holds.
    pub fn bytes(&self) -> usize {
        self.reserved.bytes()
    }

    /// Gives back what is beyond so many bytes.
    pub fn keep(&mut self, bytes: usize) {
        self.reserved.keep(bytes);
    }

    /// All that it held was written out. From now on it holds less.
    pub fn spilled(&mut self, context: &StatementContext) {
        self.reserved.keep(0);
        self.allowance_bytes = self.floor_bytes.max(context.memory.limit_bytes() / SPILLED_PART);
    }

    /// What it may hold once it has written to files.
    pub fn spilled_bytes_max(context: &StatementContext) -> usize {
        let share = Share::new(context);
        share.floor_bytes.max(context.memory.limit_bytes() / SPILLED_PART)
    }
}

/// A temporary file of rows, and what is needed to read them.
pub(crate) struct Spool {
    file: TemporaryFile,
    shapes: Mutex<Shapes>,
}

impl Spool {
    /// A new one.
    ///
    /// # Errors
    /// 53100 if the disk is nearly full.
    pub fn new(context: &StatementContext) -> Result<Arc<Spool>, SqlError> {
        Ok(Arc::new(Spool { file: TemporaryFile::of(context)?, shapes: Mutex::default() }))
    }

    fn write(&self, row: &[Value], out: &mut Vec<u8>) -> Result<(), SqlError> {
        self.shapes.lock().write_row(row, out)
    }

    fn read(&self, bytes: &[u8], row: &mut Row) -> Result<(), SqlError> {
        form::read_row(bytes, || self.shapes.lock().clone(), row)
    }
}
