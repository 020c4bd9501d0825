//! EXPLAIN ANALYZE of direct plans: what each of their operators did.
//!
//! A direct plan runs as a few loops and not as a tree of operators; what EXPLAIN shows of it is a tree all the same ([`crate::plan::explain`]). So the loops
//! say where they are: a [`Cursor`](super::cursor::Cursor) when it enters a table and goes on in it, a SELECT when it is done with a stage. An operator is known by the
//! address of what it is explained from ([`place`]), which stands as long as the plan.
//!
//! Invariants
//! 1. Whoever runs without meters has none of this: there is no clock reading and no count, but where a row is left out a look at whether there is a meter.
//! 2. Time is that of an operator with all below it, as PostgreSQL's: a join's is the sum of the times in its tables.
//!
//! Caveat. Rows that were found before a lock and not after are LockRows' to leave out, and counted nowhere.

use super::cursor::Level;
use super::select::Select;
use super::sort::{Reserved, row_bytes};
use crate::context::StatementContext;
use crate::explain::{Done, Meters, Removed, Written};
use crate::types::Row;
use std::sync::Arc;

/// By what the meters know an operator that is explained from this. `nth`: of those that it is explained as.
pub(crate) fn place<T>(of: &T, nth: usize) -> usize {
    assert!(nth < size_of::<T>(), "{nth} is the place of something else");
    std::ptr::from_ref(of).addr() + nth
}

/// Of a level: reading its table, and its join with those before it.
pub(crate) const SCAN: usize = 0;
pub(crate) const JOIN: usize = 1;

/// What one level did.
#[derive(Default)]
struct Table {
    scan: Done,
    /// Rows since it was entered, and time; whether it has been asked since.
    now_us: i64,
    asked: bool,
    removed: u64,
    /// Rows that the joined level gave, and that a condition on joined rows left out; those that nothing was found for.
    given: u64,
    removed_after: u64,
    lone: u64,
    /// Until the first joined row.
    first_us: Option<i64>,
}

/// What a nested loop does.
pub(super) struct LoopMeter {
    meters: Arc<Meters>,
    levels: Arc<[Level]>,
    tables: Vec<Table>,
}

impl LoopMeter {
    /// One for a statement that is measured.
    pub(super) fn new(context: &StatementContext, levels: &Arc<[Level]>) -> Option<Box<LoopMeter>> {
        let meters = context.meters.clone()?;
        let mut tables = Vec::new();
        tables.resize_with(levels.len(), Table::default);
        Some(Box::new(LoopMeter { meters, levels: levels.clone(), tables }))
    }

    /// A level was entered, which took so long.
    pub(super) fn entered(&mut self, at: usize, us: i64) {
        let table = &mut self.tables[at];
        table.scan.loops += 1;
        table.scan.us += us;
        (table.now_us, table.asked) = (us, false);
    }

    /// It was gone on in, which took so long, and gave so many rows.
    pub(super) fn stepped(&mut self, at: usize, us: i64, rows: u64) {
        let table = &mut self.tables[at];
        table.scan.us += us;
        table.now_us += us;
        if !std::mem::replace(&mut table.asked, true) {
            table.scan.first_us += table.now_us;
        }
        table.given += rows;
        if rows > 0 && table.first_us.is_none() {
            let so_far = self.tables[..=at].iter().map(|table| table.scan.us).sum();
            self.tables[at].first_us = Some(so_far);
        }
    }

    /// A row did not satisfy what is asked of its table's rows.
    pub(super) fn removed(&mut self, at: usize) {
        self.tables[at].removed += 1;
    }

    /// A joined row did not satisfy what is asked of it.
    pub(super) fn removed_after(&mut self, at: usize) {
        self.tables[at].removed_after += 1;
    }

    /// The row before it found none.
    pub(super) fn lone(&mut self, at: usize) {
        self.tables[at].lone += 1;
    }
}

impl Drop for LoopMeter {
    fn drop(&mut self) {
        let mut all_us = 0;
        for (level, table) in self.levels.iter().zip(&self.tables) {
            let Table { scan, removed, given, removed_after, lone, first_us, .. } = table;
            all_us += scan.us;
            if self.tables[0].scan.loops > 0 {
                let joined = Done { loops: 1, rows: *given, first_us: first_us.unwrap_or(all_us), us: all_us };
                self.meters.add(place(level, JOIN), joined);
                self.meters.removed(place(level, JOIN), Removed { filter: *removed_after, ..Removed::default() });
            }
            // What was left out above was found, and what nothing was found for was not.
            let rows = (given + removed_after).saturating_sub(*lone);
            self.meters.add(place(level, SCAN), Done { rows, ..*scan });
            self.meters.removed(place(level, SCAN), Removed { filter: *removed, ..Removed::default() });
        }
    }
}

/// A stage of a SELECT above its tables, as EXPLAIN shows them from below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A row without tables.
    Result,
    Aggregate,
    Unique,
    Sort,
    LockRows,
    Limit,
}

impl Stage {
    /// By what the meters know it.
    pub(crate) fn place(self, of: &Select) -> usize {
        place(of, self as usize)
    }
}

/// What a SELECT does.
pub(super) struct SelectMeter {
    meters: Arc<Meters>,
    select: Arc<Select>,
    began_us: i64,
    stages: [Done; 6],
    /// Of those that hand on rows one by one: rows, the time of all calls, and that until the first row.
    whole: Done,
}

impl SelectMeter {
    /// One for a statement that is measured.
    pub(super) fn new(context: &StatementContext, select: &Arc<Select>) -> Option<Box<SelectMeter>> {
        let meters = context.meters.clone()?;
        let (select, began_us) = (select.clone(), context.kv.now_us());
        let whole = Done { loops: 1, ..Done::default() };
        Some(Box::new(SelectMeter { meters, select, began_us, stages: <[Done; 6]>::default(), whole }))
    }

    /// A stage that makes all its rows before it gives one has made so many.
    pub(super) fn made(&mut self, stage: Stage, rows: usize, context: &StatementContext) {
        let us = context.kv.now_us() - self.began_us;
        self.stages[stage as usize] = Done { loops: 1, rows: rows as u64, first_us: us, us };
    }

    /// A sort, which was to keep the first rows alone or all, has so many bytes in memory and in files; its rows are counted as they leave it.
    pub(super) fn sorted(&mut self, first_rows: bool, disk: u64, memory: u64, context: &StatementContext) {
        self.made(Stage::Sort, 0, context);
        let written = Written { bytes: disk, memory_bytes: memory, batches: 0, first_rows };
        self.meters.wrote(Stage::Sort.place(&self.select), written);
    }

    /// As [`SelectMeter::sorted`], of rows that are all in memory.
    pub(super) fn sorted_here(&mut self, rows: &[Row], context: &StatementContext) {
        let bytes: usize = rows.iter().map(|row| row_bytes(row)).sum();
        self.sorted(false, 0, bytes as u64, context);
    }

    /// Groups were made, which hold so much, and of which HAVING has left out some.
    pub(super) fn grouped(&mut self, rows: usize, removed: usize, held: &Reserved, context: &StatementContext) {
        self.made(Stage::Aggregate, rows, context);
        let place = Stage::Aggregate.place(&self.select);
        self.meters.held(place, held.bytes());
        self.meters.removed(place, Removed { filter: removed as u64, ..Removed::default() });
    }

    /// A sorted row has left.
    pub(super) fn left_sort(&mut self) {
        self.stages[Stage::Sort as usize].rows += u64::from(!self.select.order.is_empty());
    }

    /// A row was locked.
    pub(super) fn locked(&mut self) {
        self.stages[Stage::LockRows as usize].rows += 1;
    }

    /// The statement was begun, or has given so many rows, since a moment.
    pub(super) fn gave(&mut self, rows: usize, since_us: i64, context: &StatementContext) {
        let us = context.kv.now_us() - since_us;
        self.whole.us += us;
        if self.whole.rows == 0 {
            self.whole.first_us += us;
        }
        self.whole.rows += rows as u64;
    }

    /// When it began.
    pub(super) fn began_us(&self) -> i64 {
        self.began_us
    }
}

impl Drop for SelectMeter {
    fn drop(&mut self) {
        let SelectMeter { meters, select, stages, whole, .. } = self;
        for stage in [Stage::Aggregate, Stage::Unique, Stage::Sort] {
            if stages[stage as usize].loops > 0 {
                meters.add(stage.place(select), stages[stage as usize]);
            }
        }
        let locked = Done { rows: stages[Stage::LockRows as usize].rows, ..*whole };
        meters.add(Stage::LockRows.place(select), locked);
        meters.add(Stage::Limit.place(select), *whole);
        meters.add(Stage::Result.place(select), *whole);
    }
}

/// Rows of VALUES, with what making them took.
pub(super) struct Made<I> {
    rows: I,
    meters: Arc<Meters>,
    context: Arc<StatementContext>,
    place: usize,
    done: Done,
}

impl<I> Made<I> {
    /// Of an operator that the meters know by this.
    pub(super) fn new(rows: I, place: usize, meters: &Arc<Meters>, context: &Arc<StatementContext>) -> Made<I> {
        let done = Done { loops: 1, ..Done::default() };
        Made { rows, meters: meters.clone(), context: context.clone(), place, done }
    }
}

impl<T, I: Iterator<Item = T>> Iterator for Made<I> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let began_us = self.context.kv.now_us();
        let row = self.rows.next();
        let us = self.context.kv.now_us() - began_us;
        self.done.us += us;
        if self.done.rows == 0 {
            self.done.first_us += us;
        }
        self.done.rows += u64::from(row.is_some());
        row
    }
}

impl<I> Drop for Made<I> {
    fn drop(&mut self) {
        self.meters.add(self.place, self.done);
    }
}

/// Runs what writes: it has given so many rows.
pub(super) fn written<T>(
    of: &T,
    context: &StatementContext,
    run: impl FnOnce() -> Result<(u64, Vec<Row>), crate::SqlError>,
) -> Result<(u64, Vec<Row>), crate::SqlError> {
    let Some(meters) = &context.meters else { return run() };
    let began_us = context.kv.now_us();
    let done = run()?;
    let us = context.kv.now_us() - began_us;
    meters.add(place(of, 0), Done { loops: 1, rows: done.1.len() as u64, first_us: us, us });
    Ok(done)
}
