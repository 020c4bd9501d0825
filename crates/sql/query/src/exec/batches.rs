//! Nested loops whose rows are far: what a level reads is asked for together for many rows of those before it.
//!
//! **Problem.** Level n is read once for each row of the levels before it, each time from keys made of that row. Where its rows are led elsewhere each time is a round trip.
//!
//! **Idea.** Joined rows of the levels before are found first, a batch of them; the keys that the level reads for all of them are asked for together
//! ([`super::ahead::rows_of_keys`]); then the level is read for one after the other, as if they came one by one.
//!
//! **Invariants.**
//! 1. Joined rows come in the order in which they would come one by one, and an error comes behind the rows before it.
//! 2. A level that locks what it reads is read for one row at a time by the levels behind it, unless the statement is read to its end
//!    ([`Cursor::locks_ahead`]): no row is locked for a joined row that is not given.
//! 3. Who wants few rows finds few: the first batch is what it wants, each further one [`BATCH_GROWTH`] times as many.
//! 4. A batch is at most [`AHEAD_ROWS`] rows, and [`BATCH_BYTES`] or little more.
//!
//! **Caveat.** Volatile conditions of a level are asked of the rows of a batch before those of the levels behind it.

use super::ahead::{self, AHEAD_ROWS};
use super::cursor::{Cursor, Level};
use super::sort::row_bytes;
use super::span::Keys;
use crate::SqlError;
use crate::context::StatementContext;
use crate::transaction::LockMode;
use crate::types::Value;
use bytes::Bytes;
use std::collections::VecDeque;

/// Values of a batch take so much, bytes, or little more.
const BATCH_BYTES: usize = 1 << 20;
/// Keys of the next level that are kept for the rows of a batch, all together: more of them are not asked for at a time.
const BATCH_KEYS: usize = 16 * AHEAD_ROWS;
/// Each batch is so many times the one before.
const BATCH_GROWTH: usize = 4;

/// A joined row of some levels.
pub(super) struct Left {
    pub(super) row: Vec<Value>,
    /// Of each level: key and bytes of its row, and how it was locked.
    pub(super) found: Vec<((Bytes, Bytes), LockMode)>,
    /// What the next level reads for it; `None`: to be asked then.
    pub(super) keys: Option<Vec<Keys>>,
}

/// The rows that a level is read for.
pub(super) struct Batch {
    lefts: VecDeque<Left>,
    /// The one that it is being read for.
    now: Option<Left>,
    /// Rows of the next batch.
    rows: usize,
    rows_max: usize,
    /// What comes behind the rows.
    failed: Option<SqlError>,
}

impl Batch {
    /// For each level; none where it does not pay.
    pub(super) fn of_levels(
        levels: &[Level],
        hint: Option<usize>,
        locks_ahead: bool,
        context: &StatementContext,
    ) -> Vec<Batch> {
        if levels.len() < 2 || levels.iter().any(|level| level.skips) || !ahead::is_far(context.reads()) {
            return Vec::new();
        }
        let locks = |level: &Level| level.lock.is_some() && !locks_ahead;
        let batch = |at: usize| {
            let rows_max = if levels[..at].iter().any(locks) { 1 } else { AHEAD_ROWS };
            let rows = hint.map_or(rows_max, |rows| rows.clamp(1, rows_max));
            Batch { lefts: VecDeque::new(), now: None, rows, rows_max, failed: None }
        };
        (0..levels.len()).map(batch).collect()
    }
}

impl Cursor {
    /// The next joined row of the levels up to this one; `false` at the end.
    pub(super) fn pull(&mut self, at: usize) -> Result<bool, SqlError> {
        if at == 0 {
            return self.step_first();
        }
        loop {
            if let Some(left) = self.batches[at].now.take() {
                // What the levels before it have found since is of other rows.
                if at + 1 < self.levels.len() {
                    self.restore(&left);
                }
                if self.step(at)? {
                    self.batches[at].now = Some(left);
                    return Ok(true);
                }
            }
            if self.batches[at].lefts.is_empty() && !self.fill(at)? {
                return Ok(false);
            }
            let Some(mut left) = self.batches[at].lefts.pop_front() else { return Ok(false) };
            self.restore(&left);
            self.enter(at, left.keys.take())?;
            self.batches[at].now = Some(left);
        }
    }

    /// Finds rows for a level, and asks for what it reads for them; `false` if there is none.
    fn fill(&mut self, at: usize) -> Result<bool, SqlError> {
        let batch = &mut self.batches[at];
        if let Some(error) = batch.failed.take() {
            return Err(error);
        }
        let most = batch.rows;
        batch.rows = (most * BATCH_GROWTH).min(batch.rows_max);
        let (mut lefts, mut bytes, mut failed) = (VecDeque::new(), 0, None);
        while lefts.len() < most && bytes < BATCH_BYTES && failed.is_none() {
            match self.pull(at - 1) {
                Ok(false) => break,
                Ok(true) => {
                    let left = self.left(at);
                    bytes += row_bytes(&left.row);
                    lefts.push_back(left);
                }
                Err(error) => failed = Some(error),
            }
        }
        if lefts.is_empty() {
            return failed.map_or(Ok(false), Err);
        }
        let level = &self.levels[at];
        if lefts.len() > 1 {
            let mut room = BATCH_KEYS;
            for left in &mut lefts {
                // An error comes when the row does.
                let Ok(keys) = level.path.keys(&level.access, &left.row, &self.context) else { break };
                // (Those of the others are asked for then.)
                let Some(rest) = room.checked_sub(keys.len()) else { break };
                room = rest;
                left.keys = Some(keys);
            }
            let keys = lefts.iter().filter_map(|left| left.keys.as_ref()).flatten();
            ahead::rows_of_keys(level, keys, self.locks_ahead, self.first_chunk(level), &self.context)?;
        }
        (self.batches[at].lefts, self.batches[at].failed) = (lefts, failed);
        Ok(true)
    }
}
