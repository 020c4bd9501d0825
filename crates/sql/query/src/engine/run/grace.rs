//! Joins whose sides do not fit memory: both are divided by their keys, and joined part by part; rows of one key, or of no keys, in blocks.
//!
//! ```text
//!   left, right ──by key──► parts ──► the smaller side of a part fits: joined in memory, as if there were no more
//!                                     neither does: divided again
//!                                     dividing does not help: the right side in blocks, the left side read once for each
//! ```
//!
//! **Invariants.**
//! 1. Rows that can match are in the same part. What has a NULL in its key matches nothing: it is left out, or waits in a part of its own for being given
//!    without a match.
//! 2. Of several blocks a left row without a match is given once, behind the last of them; a right row is in one block.

use super::super::explain::place;
use super::hashed::{Buckets, Hashed, Side, Turned, kinds_of, side_left, side_right, write_key};
use super::join::{add_nulls, join_of};
use super::{Prefix, Rows, Run, Source};
use crate::SqlError;
use crate::engine::node::{Join, JoinKind, Node};
use crate::engine::walk;
use crate::exec::sort::row_bytes;
use crate::exec::spill::Share;
use crate::exec::spill::partitions::{LEVELS_MAX, Part, PartReader, Partitions};
use crate::explain::Written;
use crate::types::Row;
use std::sync::Arc;

/// The key of rows that match nothing.
const UNMATCHED: &[u8] = &[];

/// Joins two sides; `share` is what was read of them.
pub(super) fn start(
    node: &Arc<Node>,
    left: Source,
    right: Source,
    mut share: Share,
    prefix: &Prefix,
    run: &Arc<Run>,
) -> Result<Source, SqlError> {
    let mut grace = Grace {
        node: node.clone(),
        prefix: prefix.clone(),
        run: run.clone(),
        pairs: Vec::new(),
        current: None,
        written: Written::default(),
    };
    let Some(join) = join_of(node) else { return Ok(left) };
    if join
        .keys
        .iter()
        .any(|key| walk::scalar_is_volatile(side_left(key).0) || walk::scalar_is_volatile(side_right(key).0))
    {
        // They would be others each time that a row is read: the error of who has no room, as no memory has so much.
        share.take_fixed(isize::MAX as usize)?;
    }
    let right = grace.divide(join, right, side_right, 0)?;
    let left = grace.divide(join, left, side_left, 0)?;
    share.spilled(&run.context);
    grace.pairs = left.into_iter().zip(right).collect();
    Ok(Box::new(grace))
}

/// See the module.
struct Grace {
    node: Arc<Node>,
    prefix: Prefix,
    run: Arc<Run>,
    /// Left and right rows that are joined among themselves.
    pairs: Vec<(Part, Part)>,
    current: Option<Current>,
    written: Written,
}

/// Rows in memory, their memory, and where they are by their keys if there are any.
type Loaded = (Vec<Row>, Share, Option<Buckets>);

/// The join of a part.
enum Current {
    Whole(Source),
    Blocks(Box<Blocks>),
}

impl Rows for PartReader {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        PartReader::next(self, row)
    }
}

impl Grace {
    /// Divides the rows of one side.
    fn divide(&mut self, join: &Join, mut rows: Source, side: Side, level: u32) -> Result<Vec<Part>, SqlError> {
        let run = self.run.clone();
        let kinds = kinds_of(join);
        let is_left = std::ptr::fn_addr_eq(side, side_left as Side);
        let waits = join.kind == JoinKind::Full || is_left && join.kind == JoinKind::Left;
        let mut parts = Partitions::new(level, &run.context)?;
        let (mut row, mut key) = (Row::new(), Vec::new());
        while rows.next(&mut row)? {
            run.tick()?;
            // (Without keys all are written to one part.)
            if write_key(join.keys.iter().map(side), &kinds, &row, &run, &mut key)? {
                parts.write(&key, &row)?;
            } else if waits {
                parts.write(UNMATCHED, &row)?;
            }
        }
        let parts = parts.finish()?;
        self.written.bytes += parts.iter().map(Part::bytes).sum::<u64>();
        Ok(parts)
    }

    /// The join of two parts; none: they were divided.
    fn join(&mut self, join: &Join, left: Part, right: Part) -> Result<Option<Current>, SqlError> {
        self.written.batches += 1;
        let run = self.run.clone();
        if join.kind != JoinKind::Full && !join.keys.is_empty() && left.bytes() < right.bytes() {
            if let Some((rows, share, Some(buckets))) = self.load(join, &left, side_left)? {
                let right = Box::new(right.read(&run.context));
                let turned = Turned::start(&self.node, rows, buckets, right, share, &self.prefix, &run);
                return Ok(Some(Current::Whole(Box::new(turned))));
            }
        } else if let Some((rows, share, buckets)) = self.load(join, &right, side_right)? {
            let left = Box::new(left.read(&run.context));
            let hashed = Hashed::start(&self.node, left, rows, buckets, share, &self.prefix, &run);
            return Ok(Some(Current::Whole(Box::new(hashed))));
        }
        let level = left.level;
        if join.keys.is_empty() || level >= LEVELS_MAX {
            let marks = if join.kind == JoinKind::Inner { 0 } else { left.rows() as usize };
            let mut share = Share::new(&run.context);
            share.take_fixed(marks)?;
            let blocks = Blocks {
                node: self.node.clone(),
                prefix: self.prefix.clone(),
                run: run.clone(),
                right: right.read(&run.context),
                current: None,
                matched: vec![false; marks],
                rest: None,
                _share: share,
                left,
            };
            return Ok(Some(Current::Blocks(Box::new(blocks))));
        }
        let rows = (left.rows(), right.rows());
        let lefts = self.divide(join, Box::new(left.read(&run.context)), side_left, level)?;
        let rights = self.divide(join, Box::new(right.read(&run.context)), side_right, level)?;
        for (mut left, right) in lefts.into_iter().zip(rights) {
            if left.rows() == rows.0 || right.rows() == rows.1 {
                // One side has a single key: to divide it again would not help.
                left.level = LEVELS_MAX;
            }
            self.pairs.push((left, right));
        }
        Ok(None)
    }

    /// The rows of a part in memory, by their keys if there are any; none if they do not fit.
    fn load(&self, join: &Join, part: &Part, side: Side) -> Result<Option<Loaded>, SqlError> {
        let mut share = Share::new(&self.run.context);
        let (mut source, mut rows, mut row) = (part.read(&self.run.context), Vec::new(), Row::new());
        while source.next(&mut row)? {
            self.run.tick()?;
            if !share.take(row_bytes(&row)) {
                return Ok(None);
            }
            rows.push(std::mem::take(&mut row));
        }
        if join.keys.is_empty() {
            return Ok(Some((rows, share, None)));
        }
        let buckets = Buckets::new(join, side, &rows, &mut share, false, &self.run)?;
        Ok(buckets.map(|buckets| (rows, share, Some(buckets))))
    }
}

impl Rows for Grace {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let node = self.node.clone();
        let Some(join) = join_of(&node) else { return Ok(false) };
        loop {
            let found = match &mut self.current {
                Some(Current::Whole(source)) => source.next(row)?,
                Some(Current::Blocks(blocks)) => blocks.next(row)?,
                None => false,
            };
            if found {
                return Ok(true);
            }
            // What it held is free before the next one.
            self.current = None;
            let Some((left, right)) = self.pairs.pop() else { return Ok(false) };
            let gives = match join.kind {
                JoinKind::Inner => left.rows() > 0 && right.rows() > 0,
                JoinKind::Left => left.rows() > 0,
                JoinKind::Full => left.rows() > 0 || right.rows() > 0,
            };
            if gives {
                self.current = self.join(join, left, right)?;
            }
        }
    }
}

impl Drop for Grace {
    fn drop(&mut self) {
        if let Some(meters) = &self.run.context.meters {
            meters.wrote(place(&self.node), self.written);
        }
    }
}

/// A join of the left rows of a part with blocks of its right rows.
struct Blocks {
    node: Arc<Node>,
    prefix: Prefix,
    run: Arc<Run>,
    left: Part,
    right: PartReader,
    current: Option<Hashed>,
    /// Which left rows had a match so far; for an inner join nobody asks.
    matched: Vec<bool>,
    /// The left rows once more, and the place of the next: behind the last block.
    rest: Option<(PartReader, usize)>,
    /// Of `matched`.
    _share: Share,
}

impl Blocks {
    /// Joins the next block; `false`: there is none.
    fn next_block(&mut self, join: &Join) -> Result<bool, SqlError> {
        let mut share = Share::new(&self.run.context);
        // So much again may be needed for its keys.
        let bytes_max = Share::spilled_bytes_max(&self.run.context) / 2;
        let (mut rows, mut row) = (Vec::new(), Row::new());
        while share.bytes() < bytes_max && self.right.next(&mut row)? {
            self.run.tick()?;
            share.take_anyway(row_bytes(&row));
            rows.push(std::mem::take(&mut row));
        }
        if rows.is_empty() {
            return Ok(false);
        }
        let buckets = match join.keys.is_empty() {
            true => None,
            false => Buckets::new(join, side_right, &rows, &mut share, true, &self.run)?,
        };
        let left = Box::new(self.left.read(&self.run.context));
        let hashed = Hashed::start(&self.node, left, rows, buckets, share, &self.prefix, &self.run);
        self.current = Some(hashed.one_of_several(std::mem::take(&mut self.matched)));
        Ok(true)
    }
}

impl Rows for Blocks {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let node = self.node.clone();
        let Some(join) = join_of(&node) else { return Ok(false) };
        while self.rest.is_none() {
            if let Some(current) = &mut self.current {
                if current.next(row)? {
                    return Ok(true);
                }
                self.matched = self.current.take().map(Hashed::into_matched).unwrap_or_default();
            }
            if !self.next_block(join)? {
                self.rest = Some((self.left.read(&self.run.context), 0));
            }
        }
        let Some((rows, place)) = self.rest.as_mut().filter(|_| join.kind != JoinKind::Inner) else { return Ok(false) };
        while rows.next(row)? {
            self.run.tick()?;
            let found = self.matched.get(*place).copied().unwrap_or(false);
            *place += 1;
            if !found {
                add_nulls(row, join.right_width);
                return Ok(true);
            }
        }
        Ok(false)
    }
}
