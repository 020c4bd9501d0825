//! Runs a direct SELECT: nested loops, then grouping, locks, order, projection, distinct, limit; each only where asked for.
//!
//! Without grouping, sort and distinct rows stream: a portal that is read a row at a time holds one chunk per table.

use super::aggregate::{Accumulator, Aggregate};
use super::ahead::{self, AHEAD_ROWS};
use super::computed::Computed;
use super::cursor::{Cursor, Level};
use super::evaluate;
use super::metered::{SelectMeter, Stage};
use super::sort::{self, Reserved, SortKey};
use super::spill::sorter::{SortedRows, Sorter};
use crate::context::StatementContext;
use crate::expr::Expr;
use crate::plan::{Batch, RowSource};
use crate::transaction::{LockMode, LockWait};
use crate::types::{Row, SqlType, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A SELECT, settled when it is planned.
#[derive(Debug)]
pub struct Select {
    /// Tables, outermost first; none for a SELECT without FROM.
    pub levels: Arc<[Level]>,
    /// Places of a joined row.
    pub width: usize,
    /// Conditions on no table: without them there are no rows.
    pub constant: Option<Expr>,
    /// GROUP BY and aggregates.
    pub grouping: Option<Grouping>,
    /// FOR UPDATE of rows that were not locked when they were found.
    pub locks: Vec<RowLock>,
    /// WHERE, asked again of a row that was locked and read anew.
    pub recheck: Option<Expr>,
    /// ORDER BY that no index satisfies, over the joined (or grouped) row; with `distinct`, over the projected one.
    pub order: Vec<SortKey>,
    /// The select list.
    pub project: Project,
    /// DISTINCT, by types of the projected columns.
    pub distinct: Option<Vec<SqlType>>,
    /// LIMIT.
    pub limit: Option<Expr>,
    /// OFFSET.
    pub offset: Option<Expr>,
}

/// GROUP BY: the grouped row is its keys, then its aggregates.
#[derive(Debug)]
pub struct Grouping {
    /// Keys, over the joined row; none for one group of all rows.
    pub keys: Vec<(Expr, SqlType)>,
    /// Aggregates.
    pub aggregates: Vec<Aggregate>,
    /// HAVING, over the grouped row.
    pub having: Option<Expr>,
    /// Rows come in the order of the one aggregate, a min or max: the first that is not NULL settles it.
    pub first: bool,
    /// The rows of a group come together, the groups in the order that is wanted: those behind the last that is wanted are not read.
    pub in_turn: bool,
    /// For each aggregate, all of them a min or max, how rows come in its order: the first that is not NULL settles it. None where rows are
    /// read once for all of them.
    pub ends: Vec<Arc<[Level]>>,
}

/// One table of FOR UPDATE.
#[derive(Debug, Clone, Copy)]
pub struct RowLock {
    /// Which level.
    pub level: usize,
    /// What it keeps others from.
    pub mode: LockMode,
    /// What to do about a row that another transaction holds.
    pub wait: LockWait,
}

/// The select list.
#[derive(Debug)]
pub enum Project {
    /// Columns as they are; `once`: none twice, and nothing else needs them, so they can be moved out.
    Columns {
        /// Their places.
        places: Vec<usize>,
        /// See above.
        once: bool,
    },
    /// Expressions.
    Exprs(Vec<Expr>),
}

impl Project {
    fn apply(&self, row: &mut [Value], context: &StatementContext) -> Result<Row, SqlError> {
        match self {
            Project::Columns { places, once: true } => {
                Ok(places.iter().map(|&place| std::mem::take(&mut row[place])).collect())
            }
            Project::Columns { places, once: false } => Ok(places.iter().map(|&place| row[place].clone()).collect()),
            Project::Exprs(exprs) => {
                let mut computed = Computed::default();
                let value = |expr: &Expr| match (evaluate::value(expr, row, context)?, expr) {
                    (value, Expr::Column { .. }) => Ok(value),
                    (value, _) => computed.count(value),
                };
                exprs.iter().map(value).collect()
            }
        }
    }
}

/// LIMIT or OFFSET: NULL and none are `None`.
pub fn count(expr: Option<&Expr>, what: &'static str, context: &StatementContext) -> Result<Option<usize>, SqlError> {
    let Some(expr) = expr else { return Ok(None) };
    match evaluate::value(expr, &[], context)? {
        Value::Null => Ok(None),
        value => match value.as_i64() {
            Some(n) if n >= 0 => Ok(Some(n as usize)),
            _ => {
                let state = SqlState(if what == "LIMIT" { *b"2201W" } else { *b"2201X" });
                Err(SqlError::new(state, format!("{what} must not be negative")))
            }
        },
    }
}

/// Rows that OFFSET skips between two looks at whether the statement was ended: those of a sort come from nowhere that looks.
const SKIPPED_ROWS_PER_CHECK: usize = 1024;

/// Rows that are locked together take so much, bytes, or little more.
const TOGETHER_BYTES: usize = 1 << 20;

/// A SELECT that runs.
pub struct Rows {
    select: Arc<Select>,
    context: Arc<StatementContext>,
    cursor: Option<Cursor>,
    /// Sorted, grouped or distinct rows, once made.
    ready: Option<Ready>,
    skip: usize,
    left: usize,
    reserved: Option<Reserved>,
    /// Rows whose locks are asked for together, where they are: each with what is to be locked.
    together: Option<VecDeque<(Row, Vec<Bytes>)>>,
    /// EXPLAIN ANALYZE.
    meter: Option<Box<SelectMeter>>,
}

/// Rows that were made before the first one leaves.
enum Ready {
    Listed(std::vec::IntoIter<Row>),
    /// With so many computed keys behind them.
    Sorted(Box<SortedRows>, usize),
}

impl Ready {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        match self {
            Ready::Listed(rows) => Ok(rows.next()),
            Ready::Sorted(rows, extra) => {
                let mut row = Row::new();
                let found = rows.next(&mut row)?;
                row.truncate(row.len().saturating_sub(*extra));
                Ok(found.then_some(row))
            }
        }
    }
}

impl Select {
    /// Starts it.
    pub fn start(self: &Arc<Self>, context: &Arc<StatementContext>) -> Result<Rows, SqlError> {
        let meter = SelectMeter::new(context, self);
        let skip = count(self.offset.as_ref(), "OFFSET", context)?.unwrap_or(0);
        let limit = count(self.limit.as_ref(), "LIMIT", context)?;
        let alive = match &self.constant {
            Some(condition) => evaluate::truth(condition, &[], context)?,
            None => true,
        };
        let streams = self.grouping.is_none() && self.order.is_empty() && self.distinct.is_none();
        let hint = limit.filter(|_| streams).map(|n| n.saturating_add(skip));
        let cursor =
            (alive && !self.levels.is_empty()).then(|| Cursor::new(context, &self.levels, self.width, hint).metered());
        let mut rows = Rows {
            select: self.clone(),
            context: context.clone(),
            cursor,
            ready: None,
            skip,
            left: limit.unwrap_or(usize::MAX),
            reserved: None,
            together: self.locks_together(context).then(VecDeque::new),
            meter,
        };
        if self.levels.is_empty() && self.grouping.is_none() {
            let row = alive.then(|| self.project.apply(&mut [], context)).transpose()?;
            rows.ready = Some(Ready::Listed(row.into_iter().collect::<Vec<_>>().into_iter()));
        } else if !streams {
            rows.materialise()?;
        }
        if let Some(meter) = &mut rows.meter {
            meter.gave(0, meter.began_us(), context);
        }
        Ok(rows)
    }
}

impl Select {
    /// Whether the rows that are found are locked some at a time: those who have them may have to be asked over a distance, and whoever has one locked is waited for.
    fn locks_together(&self, context: &StatementContext) -> bool {
        let waits = self.locks.iter().all(|lock| lock.wait == LockWait::Wait);
        let apart = self.levels.iter().all(|level| !level.skips) && self.grouping.is_none() && self.distinct.is_none();
        !self.locks.is_empty() && waits && apart && ahead::is_far(&context.txn)
    }
}

impl Rows {
    /// The next joined row that passed its locks.
    fn joined(&mut self) -> Result<bool, SqlError> {
        let Some(cursor) = &mut self.cursor else { return Ok(false) };
        while cursor.advance()? {
            // With a sort, rows are locked as they leave it: ORDER BY .. LIMIT 1 FOR UPDATE locks one row.
            if self.select.locks.is_empty() || !self.select.order.is_empty() {
                return Ok(true);
            }
            let found = found_rows(&self.select, cursor);
            if lock_rows(&self.select, &found, cursor.row_mut(), &self.context)? {
                self.meter.iter_mut().for_each(|meter| meter.locked());
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads everything, for a sort, groups or distinct rows.
    fn materialise(&mut self) -> Result<(), SqlError> {
        let select = self.select.clone();
        if select.grouping.is_none() && select.distinct.is_none() {
            return self.order(&select);
        }
        let mut reserved = Reserved::new(&self.context.memory);
        let mut rows = match &select.grouping {
            Some(grouping) => self.group(grouping, &mut reserved)?,
            None => {
                let types = select.distinct.as_deref().unwrap_or_default();
                // Rows that are not sorted leave as they come: no more are read than are wanted.
                let most = if select.order.is_empty() { self.left.saturating_add(self.skip) } else { usize::MAX };
                let (mut rows, mut seen) = (Vec::new(), BTreeSet::new());
                while rows.len() < most && self.joined()? {
                    let Some(cursor) = &mut self.cursor else { break };
                    let row = select.project.apply(cursor.row_mut(), &self.context)?;
                    let key = hash_key(&row, types);
                    let bytes = key.len();
                    if seen.insert(key) {
                        reserved.take(sort::row_bytes(&row) + bytes)?;
                        rows.push(row);
                    }
                }
                rows
            }
        };
        if let Some(types) = &select.distinct
            && select.grouping.is_some()
        {
            for row in &mut rows {
                *row = select.project.apply(row, &self.context)?;
                reserved.take(sort::row_bytes(row))?;
            }
            let mut seen = BTreeSet::new();
            rows.retain(|row| seen.insert(hash_key(row, types)));
        }
        if let Some(meter) = &mut self.meter
            && select.distinct.is_some()
        {
            meter.made(Stage::Unique, rows.len(), &self.context);
        }
        if !select.order.is_empty() {
            rows = sort::sort(rows, &select.order, &self.context)?;
            self.meter.iter_mut().for_each(|meter| meter.sorted_here(&rows, &self.context));
        }
        self.ready = Some(Ready::Listed(rows.into_iter()));
        self.reserved = Some(reserved);
        Ok(())
    }

    /// Reads and sorts everything.
    fn order(&mut self, select: &Arc<Select>) -> Result<(), SqlError> {
        // Only the first rows in order can come out; a lock may drop some of them.
        let most = self.left.saturating_add(self.skip);
        let most = (select.locks.is_empty() && most < usize::MAX).then_some(most);
        let width = select.width + 2 * select.locks.len();
        let (order, computed) = sort::order_of(&select.order, width);
        let mut sorter = Sorter::new(order, most, &self.context);
        let mut room = Row::new();
        while self.joined()? {
            let Some(cursor) = &mut self.cursor else { break };
            room.clear();
            room.reserve(width + computed.len());
            room.extend_from_slice(cursor.row());
            room.extend(found_rows(select, cursor).into_iter().map(|key| Value::Bytea(key[..].into())));
            for expr in &computed {
                let key = evaluate::value(expr, &room, &self.context)?;
                room.push(key);
            }
            room = sorter.push(std::mem::take(&mut room))?.unwrap_or_default();
        }
        let (rows, done) = sorter.finish()?;
        if let Some(meter) = &mut self.meter {
            meter.sorted(most.is_some(), done.disk_bytes, done.memory_bytes, &self.context);
        }
        self.ready = Some(Ready::Sorted(Box::new(rows), computed.len()));
        Ok(())
    }

    /// The one group whose aggregates are each settled by the first rows in an order of its own.
    fn from_ends(&self, grouping: &Grouping, reserved: &mut Reserved) -> Result<Row, SqlError> {
        let mut row = Row::new();
        for (aggregate, levels) in grouping.aggregates.iter().zip(&grouping.ends) {
            let mut accumulator = aggregate.start();
            if self.cursor.is_some() {
                let mut cursor = Cursor::new(&self.context, levels, self.select.width, None).metered();
                while !accumulator.is_settled() && cursor.advance()? {
                    aggregate.step(&mut accumulator, cursor.row(), &self.context)?;
                }
            }
            reserved.take(accumulator.take_grown())?;
            row.push(accumulator.finish()?);
        }
        Ok(row)
    }

    fn group(&mut self, grouping: &Grouping, reserved: &mut Reserved) -> Result<Vec<Row>, SqlError> {
        if !grouping.ends.is_empty() {
            let row = self.from_ends(grouping, reserved)?;
            let fits = grouping.having.as_ref().map_or(Ok(true), |it| evaluate::truth(it, &row, &self.context))?;
            let rows = if fits { vec![row] } else { Vec::new() };
            self.meter.iter_mut().for_each(|it| it.grouped(rows.len(), 1 - rows.len(), reserved, &self.context));
            return Ok(rows);
        }
        let start = || grouping.aggregates.iter().map(Aggregate::start).collect::<Vec<_>>();
        // Places of groups by their keys.
        let mut places: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        let mut groups: Vec<(Row, Vec<Accumulator>)> = Vec::new();
        // One group of all rows is not looked for with each of them.
        let mut only = grouping.keys.is_empty().then(start);
        let context = self.context.clone();
        let most = self.left.saturating_add(self.skip);
        let (mut keys, mut key) = (Row::new(), Vec::new());
        // Who counts rows looks into none.
        let counts = only.is_some() && grouping.aggregates.iter().all(|aggregate| aggregate.argument.is_none());
        let counts = counts && self.cursor.as_mut().is_some_and(Cursor::bare);
        'rows: while self.joined()? {
            let Some(cursor) = &mut self.cursor else { break };
            let more = if counts { cursor.take_chunk().map_or(0, |(_, rows)| rows.len()) } else { 0 };
            let row = cursor.row();
            let accumulators = if only.is_some() {
                only.as_mut()
            } else {
                key.clear();
                keys.clear();
                for (expr, ty) in &grouping.keys {
                    match evaluate::column(expr) {
                        Some(place) => row[place].write_hash_key(ty, &mut key),
                        None => {
                            let value = evaluate::value(expr, row, &context)?;
                            value.write_hash_key(ty, &mut key);
                            keys.push(value);
                        }
                    }
                }
                let place = match places.get(&key) {
                    Some(place) => *place,
                    None => {
                        if grouping.in_turn && groups.len() >= most {
                            break 'rows;
                        }
                        let mut computed = keys.drain(..);
                        let value = |(expr, _): &(Expr, SqlType)| match evaluate::column(expr) {
                            Some(place) => row[place].clone(),
                            None => computed.next().unwrap_or_default(),
                        };
                        let keys: Row = grouping.keys.iter().map(value).collect();
                        let states = size_of::<Accumulator>() * grouping.aggregates.len();
                        reserved.take(sort::row_bytes(&keys) + key.len() + states)?;
                        places.insert(key.clone(), groups.len());
                        groups.push((keys, start()));
                        groups.len() - 1
                    }
                };
                groups.get_mut(place).map(|(_, accumulators)| accumulators)
            };
            let Some(accumulators) = accumulators else { break };
            for (aggregate, accumulator) in grouping.aggregates.iter().zip(accumulators) {
                aggregate.step(accumulator, row, &context)?;
                accumulator.count_rows(more);
                match accumulator.take_grown() {
                    0 => {}
                    bytes => reserved.take(bytes)?,
                }
                if grouping.first && accumulator.is_settled() {
                    break 'rows;
                }
            }
        }
        let made = groups.len() + usize::from(only.is_some());
        let mut out = Vec::with_capacity(groups.len());
        let only = only.map(|accumulators| (Row::new(), accumulators));
        // In the order of their keys, or in that which is wanted.
        let order: Vec<usize> =
            if grouping.in_turn { (0..groups.len()).collect() } else { places.into_values().collect() };
        let ordered = order.into_iter().map(|place| std::mem::take(&mut groups[place]));
        for (mut row, accumulators) in ordered.chain(only) {
            for accumulator in accumulators {
                row.push(accumulator.finish()?);
            }
            if let Some(having) = &grouping.having
                && !evaluate::truth(having, &row, &context)?
            {
                continue;
            }
            out.push(row);
        }
        self.meter.iter_mut().for_each(|it| it.grouped(out.len(), made - out.len(), reserved, &self.context));
        Ok(out)
    }

    /// Finds rows, at most so many, and locks them, table after table; `false` if there is none.
    fn find_together(&mut self, most: usize) -> Result<bool, SqlError> {
        let select = self.select.clone();
        let (mut rows, mut bytes) = (VecDeque::new(), 0);
        while rows.len() < most && bytes < TOGETHER_BYTES {
            let (row, found) = match (&mut self.ready, &mut self.cursor) {
                (Some(ready), _) => {
                    let Some(mut row) = ready.next()? else { break };
                    self.meter.iter_mut().for_each(|meter| meter.left_sort());
                    let behind = row.drain(select.width..);
                    let found = behind.filter_map(|value| key_of(&value)).collect();
                    (row, found)
                }
                (None, Some(cursor)) => {
                    if !cursor.advance()? {
                        break;
                    }
                    (cursor.row().to_vec(), found_rows(&select, cursor))
                }
                (None, None) => break,
            };
            bytes += sort::row_bytes(&row) + found.iter().map(Bytes::len).sum::<usize>();
            rows.push_back((row, found));
        }
        // A row that another part of the statement has written is left out, with all that it is joined with.
        let is_left =
            |(_, found): &&(Row, Vec<Bytes>)| !found.iter().step_by(2).any(|key| self.context.is_written(key));
        let left: Vec<&(Row, Vec<Bytes>)> = rows.iter().filter(is_left).collect();
        for (place, lock) in select.locks.iter().enumerate() {
            // A row that several are joined with is locked once.
            let keys = left.iter().filter_map(|(_, found)| found.get(2 * place));
            let keys = ahead::distinct(keys.filter(|key| !key.is_empty()).cloned());
            // A cursor found them who knows when, and much was changed since: what the snapshot sees of them is read while they are locked.
            ahead::reads(keys.iter().cloned(), &self.context.txn)?;
            ahead::locks(keys.iter().cloned(), lock.mode, &self.context.txn);
            for key in &keys {
                self.context.check()?;
                self.context.txn.with(|txn| txn.lock_as(key, lock.mode, lock.wait))?;
            }
            // Where a lock has moved the snapshot that was of another one; else nobody is asked.
            ahead::reads(keys.into_iter(), &self.context.txn)?;
        }
        let found = !rows.is_empty();
        self.together = Some(rows);
        Ok(found)
    }

    /// As [`Rows::produce`], with so many rows locked at a time, at most.
    fn produce_together(&mut self, wanted: usize) -> Result<Option<Row>, SqlError> {
        loop {
            let Some((mut row, found)) = self.together.as_mut().and_then(VecDeque::pop_front) else {
                if self.find_together(wanted.clamp(1, AHEAD_ROWS))? {
                    continue;
                }
                return Ok(None);
            };
            if !lock_rows(&self.select, &found, &mut row, &self.context)? {
                continue;
            }
            self.meter.iter_mut().for_each(|meter| meter.locked());
            if self.skip > 0 {
                return Ok(Some(Row::new()));
            }
            return self.select.project.apply(&mut row, &self.context).map(Some);
        }
    }

    /// The next row of the result, before OFFSET and LIMIT; so many more are `wanted`, with those that OFFSET skips.
    fn produce(&mut self, wanted: usize) -> Result<Option<Row>, SqlError> {
        if self.together.is_some() {
            return self.produce_together(wanted);
        }
        while let Some(ready) = &mut self.ready {
            let Some(mut row) = ready.next()? else { return Ok(None) };
            self.meter.iter_mut().for_each(|meter| meter.left_sort());
            if !self.select.locks.is_empty() && row.len() > self.select.width {
                let found: Vec<Bytes> = row.drain(self.select.width..).filter_map(|value| key_of(&value)).collect();
                if !lock_rows(&self.select, &found, &mut row, &self.context)? {
                    continue;
                }
                self.meter.iter_mut().for_each(|meter| meter.locked());
            }
            if self.select.distinct.is_some() || self.select.levels.is_empty() && self.select.grouping.is_none() {
                return Ok(Some(row));
            }
            if self.skip > 0 {
                // Skipped rows need no projection.
                return Ok(Some(Row::new()));
            }
            return self.select.project.apply(&mut row, &self.context).map(Some);
        }
        if !self.joined()? {
            return Ok(None);
        }
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        self.select.project.apply(cursor.row_mut(), &self.context).map(Some)
    }
}

impl RowSource for Rows {
    fn next(&mut self, max: usize) -> Result<Vec<Row>, SqlError> {
        if self.meter.is_none() {
            return self.rows(max);
        }
        let began_us = self.context.kv.now_us();
        let rows = self.rows(max)?;
        self.meter.iter_mut().for_each(|meter| meter.gave(rows.len(), began_us, &self.context));
        Ok(rows)
    }
}

impl Rows {
    /// The next rows, at most so many.
    fn rows(&mut self, max: usize) -> Result<Vec<Row>, SqlError> {
        let mut out = Batch::new(max, if self.left == 1 { 1 } else { 4.min(max) });
        while !out.is_full() && self.left > 0 {
            let wanted = out.room().min(self.left).saturating_add(self.skip);
            let Some(row) = self.produce(wanted)? else {
                self.left = 0;
                break;
            };
            if self.skip > 0 {
                if self.skip.is_multiple_of(SKIPPED_ROWS_PER_CHECK) {
                    self.context.check()?;
                }
                self.skip -= 1;
                continue;
            }
            self.left -= 1;
            out.push(row);
        }
        Ok(out.into_rows())
    }
}

/// Bytes that are equal for rows that DISTINCT and GROUP BY hold equal.
pub fn hash_key(row: &[Value], types: &[SqlType]) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.len() * 12);
    for (value, ty) in row.iter().zip(types) {
        value.write_hash_key(ty, &mut out);
    }
    out
}

/// A key, or the bytes of a row, that stand behind a row.
fn key_of(value: &Value) -> Option<Bytes> {
    if let Value::Bytea(bytes) = value { Some(Bytes::copy_from_slice(bytes)) } else { None }
}

/// Key and bytes of the current row of each table to lock.
fn found_rows(select: &Select, cursor: &Cursor) -> Vec<Bytes> {
    select.locks.iter().flat_map(|lock| [cursor.key(lock.level), cursor.stored(lock.level)]).collect()
}

/// Locks found rows and reads them anew; `false` if one is gone, held (SKIP LOCKED), or no longer satisfies WHERE.
fn lock_rows(
    select: &Select,
    found: &[Bytes],
    row: &mut [Value],
    context: &StatementContext,
) -> Result<bool, SqlError> {
    let mut moved = false;
    for (lock, pair) in select.locks.iter().zip(found.chunks_exact(2)) {
        let [key, seen] = pair else { continue };
        if key.is_empty() {
            // The NULL side of a left join has no row.
            continue;
        }
        if context.is_written(key) {
            return Ok(false);
        }
        let stored = context.txn.with(|txn| match txn.lock_as(key, lock.mode, lock.wait)? {
            // A row that is newer than the snapshot moves it.
            true => txn.get(key),
            false => Ok(None),
        })?;
        let Some(stored) = stored else { return Ok(false) };
        let level = &select.levels[lock.level];
        // An entry of an index was looked at, not read: the row may have left it since, and what the index fulfilled is not asked elsewhere.
        moved |= level.skips && level.path.index != 0;
        if stored != *seen {
            let end = level.base + level.access.columns.len();
            level.access.decode(&stored, &level.slots, &mut row[level.base..end])?;
            moved = true;
        }
    }
    match &select.recheck {
        Some(condition) if moved => evaluate::truth(condition, row, context),
        _ => Ok(true),
    }
}
