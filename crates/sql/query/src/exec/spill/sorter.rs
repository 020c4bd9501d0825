//! A sort of any number of rows: in memory as long as they fit, by sorted runs in temporary files beyond.
//!
//! Runs of one level become one of the next when there are [`RUNS_MAX`] of them, or as many as rows of the largest size may be held at once: a row is written again no more often than the logarithm of their number
//! says. Later levels hold earlier rows, so equal rows keep their order.

use super::merge::Merge;
use super::run::{READ_BYTES_MIN, Run, RunWriter, WRITE_BYTES};
use super::{Share, Spool};
use crate::SqlError;
use crate::context::StatementContext;
use crate::exec::sort::{Keyed, Order, OrderKey, in_order, keyed_bytes};
use crate::types::{Row, SqlType};
use std::sync::Arc;

/// Runs of one level that are merged at once.
const RUNS_MAX: usize = 64;
/// Under a LIMIT, rows that are held at least before those are dropped that cannot come out.
const TOP_ROWS_MIN: usize = 64;
/// Rows between two looks at whether the statement was ended.
const ROWS_PER_CHECK: u64 = 1024;

/// Runs that were joined as often as each other.
#[derive(Default)]
struct Level {
    /// Where the next one goes.
    spool: Option<Arc<Spool>>,
    runs: Vec<(Arc<Spool>, Run)>,
}

/// See the module.
pub(crate) struct Sorter {
    order: Arc<Order>,
    context: Arc<StatementContext>,
    share: Share,
    rows: Vec<Keyed>,
    /// Rows that are wanted at most.
    most: Option<usize>,
    /// The last of the rows that were the first ones so far: what does not come before it is not kept.
    worst: Option<usize>,
    levels: Vec<Level>,
    /// Of the largest row, bytes.
    largest_bytes: usize,
    written_bytes: u64,
}

/// By a number in a column.
pub(crate) fn by_number(place: usize) -> Order {
    Order(vec![OrderKey { place, ty: SqlType::Int8, descending: false, nulls_first: false }])
}

/// What a sort has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sorted {
    /// To files, bytes; none: it was done in memory.
    pub disk_bytes: u64,
    /// What it held in the end, bytes.
    pub memory_bytes: u64,
}

impl Sorter {
    /// Of no rows yet; the first `most` of them are wanted.
    pub fn new(order: Order, most: Option<usize>, context: &Arc<StatementContext>) -> Sorter {
        Sorter {
            order: Arc::new(order),
            context: context.clone(),
            share: Share::new(context),
            rows: Vec::new(),
            most,
            worst: None,
            levels: Vec::new(),
            largest_bytes: 0,
            written_bytes: 0,
        }
    }

    /// The same, which holds no more from the start than others do that have written to files: beside something else that needs memory.
    pub fn modest(mut self) -> Sorter {
        self.share.spilled(&self.context);
        self
    }

    /// Adds a row, behind which its computed keys stand. Gives it back, as room, if it cannot come out.
    ///
    /// # Errors
    /// Those of temporary files; 57014.
    #[inline]
    pub fn push(&mut self, row: Row) -> Result<Option<Row>, SqlError> {
        let keyed = self.order.keyed(row);
        if self.worst.is_some_and(|worst| self.order.compare(&keyed, &self.rows[worst]).is_ge()) {
            return Ok(Some(keyed.row));
        }
        let bytes = keyed_bytes(&keyed);
        self.largest_bytes = self.largest_bytes.max(bytes);
        if !self.share.take(bytes) {
            self.make_room()?;
            if !self.share.take(bytes) {
                self.share.take_anyway(bytes);
            }
        }
        self.rows.push(keyed);
        if let Some(most) = self.most
            && self.rows.len() >= most.saturating_mul(2).max(TOP_ROWS_MIN)
        {
            self.cut(most)?;
        }
        Ok(None)
    }

    /// Sorts what is in memory.
    fn sort(&mut self) -> Result<(), SqlError> {
        let order = &self.order;
        self.rows = in_order(std::mem::take(&mut self.rows), |a, b| order.compare(a, b), &self.context)?;
        Ok(())
    }

    /// Drops what cannot come out.
    fn cut(&mut self, most: usize) -> Result<(), SqlError> {
        self.sort()?;
        self.rows.truncate(most);
        self.share.keep(self.rows.iter().map(keyed_bytes).sum());
        self.worst = (self.rows.len() == most).then(|| most.checked_sub(1)).flatten();
        Ok(())
    }

    #[cold]
    fn make_room(&mut self) -> Result<(), SqlError> {
        if let Some(most) = self.most {
            let held = self.share.bytes();
            self.cut(most)?;
            if self.share.bytes() <= held / 2 {
                return Ok(());
            }
        }
        self.spill()
    }

    /// Writes what is in memory as a run.
    fn spill(&mut self) -> Result<(), SqlError> {
        self.sort()?;
        let rows = std::mem::take(&mut self.rows);
        // They are given back as they are written.
        let mut rows = rows.into_iter();
        self.add_run(0, |row| {
            Ok(match rows.next() {
                Some(keyed) => {
                    *row = keyed.row;
                    true
                }
                None => false,
            })
        })?;
        drop(rows);
        self.worst = None;
        self.share.spilled(&self.context);
        let mut at = 0;
        while self.levels.get(at).is_some_and(|level| level.runs.len() >= self.runs_max()) {
            self.join(at)?;
            at += 1;
        }
        Ok(())
    }

    /// Runs that are merged at once: of each a row is held, and once more as it is read, or what is read at once at least.
    fn runs_max(&self) -> usize {
        let bytes = Share::spilled_bytes_max(&self.context);
        (bytes / (2 * self.largest_bytes.max(READ_BYTES_MIN))).clamp(2, RUNS_MAX)
    }

    /// Leaves so few runs as are merged at once.
    fn reduce(&mut self) -> Result<(), SqlError> {
        while self.levels.iter().map(|level| level.runs.len()).sum::<usize>() > self.runs_max() {
            let most = (0..self.levels.len()).max_by_key(|at| self.levels[*at].runs.len()).unwrap_or(0);
            if self.levels[most].runs.len() > 1 {
                self.join(most)?;
                continue;
            }
            // Each level has one: the last run goes to those before it.
            let Some(at) = self.levels.iter().position(|level| !level.runs.is_empty()) else { break };
            let run = std::mem::take(&mut self.levels[at].runs);
            match self.levels[at + 1..].iter_mut().find(|level| !level.runs.is_empty()) {
                Some(before) => before.runs.extend(run),
                None => break,
            }
        }
        Ok(())
    }

    /// Merges the first runs of a level into one of the next.
    fn join(&mut self, at: usize) -> Result<(), SqlError> {
        let many = self.runs_max().min(self.levels[at].runs.len());
        let runs: Vec<_> = self.levels[at].runs.drain(..many).collect();
        // Their file goes with its last run.
        self.levels[at].spool = None;
        let mut merge = Merge::new(runs, Vec::new(), &self.order, Share::new(&self.context), &self.context)?;
        self.add_run(at + 1, |row| merge.next(row))
    }

    fn add_run(&mut self, at: usize, mut next: impl FnMut(&mut Row) -> Result<bool, SqlError>) -> Result<(), SqlError> {
        self.levels.resize_with(self.levels.len().max(at + 1), Level::default);
        let level = &mut self.levels[at];
        let spool = match &level.spool {
            Some(spool) => spool.clone(),
            None => level.spool.insert(Spool::new(&self.context)?).clone(),
        };
        let most = self.most.map_or(u64::MAX, |most| most as u64);
        let buffer_bytes = WRITE_BYTES.min(Share::spilled_bytes_max(&self.context));
        let mut share = Share::new(&self.context);
        share.take_anyway(buffer_bytes);
        let mut writer = RunWriter::new(buffer_bytes);
        let (mut row, mut count) = (Row::new(), 0);
        while count < most && next(&mut row)? {
            if count.is_multiple_of(ROWS_PER_CHECK) {
                self.context.check()?;
            }
            writer.write(&spool, &row)?;
            count += 1;
        }
        let run = writer.finish(&spool)?;
        self.written_bytes += run.bytes();
        level.runs.push((spool, run));
        Ok(())
    }

    /// All rows in order, each with its computed keys behind it.
    ///
    /// # Errors
    /// Those of temporary files; 57014.
    pub fn finish(mut self) -> Result<(SortedRows, Sorted), SqlError> {
        let memory_bytes = self.share.bytes() as u64;
        self.sort()?;
        if let Some(most) = self.most {
            self.rows.truncate(most);
        }
        self.reduce()?;
        let done = Sorted { disk_bytes: self.written_bytes, memory_bytes };
        let Sorter { rows, levels, share, order, context, .. } = self;
        if levels.is_empty() {
            return Ok((SortedRows::Memory(rows.into_iter(), share), done));
        }
        // What was joined most often came first.
        let runs = levels.into_iter().rev().flat_map(|level| level.runs).collect();
        Ok((SortedRows::Merged(Merge::new(runs, rows, &order, share, &context)?), done))
    }
}

/// Rows in order.
pub(crate) enum SortedRows {
    /// From memory, and what they take of it.
    Memory(std::vec::IntoIter<Keyed>, #[expect(dead_code, reason = "held as long as its rows")] Share),
    /// From files.
    Merged(Merge),
}

impl SortedRows {
    /// Puts the next row in place of what `row` holds; `false` at the end.
    ///
    /// # Errors
    /// Those of temporary files.
    #[inline]
    pub fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        match self {
            SortedRows::Memory(rows, _) => match rows.next() {
                Some(keyed) => {
                    *row = keyed.row;
                    Ok(true)
                }
                None => Ok(false),
            },
            SortedRows::Merged(merge) => merge.next(row),
        }
    }
}
