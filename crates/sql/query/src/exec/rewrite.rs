//! A table written anew: its rows, as a statement leaves them, go to a load of fresh indexes, instead of being changed where they are.
//!
//! # Problem
//! What an UPDATE, a DELETE or an INSERT of a query's rows writes is held by its transaction, in memory, until that commits: a statement that changes millions of rows does not fit.
//!
//! # Idea
//! What becomes of a row is told by the row: WHERE and SET are asked of each as it is read, and it is handed on as it is, as it becomes, or not at all. Where other tables say which rows are meant, these are found before, by their keys, and
//! sorted as the table is, in files where need be. The rows of an INSERT come behind those that are there. Nothing is held but what the load and that sort hold. Who runs it sees to it that nobody else changes the table meanwhile, and lets the table have the new indexes (`ddl::rewriting`).
//!
//! # Invariants
//! 1. Rows are read certified, each once, below the old indexes: what is written is never read again.
//! 2. A row that keeps its primary key keeps its place, the number of a row without a key included.
//! 3. A row that is not changed is copied as it is stored: it is checked by nobody, as by the statement that changes it in its place.
//! 4. No two rows with one unique key: each key is looked for in the load, which finds those that do not come in order at its end.
//!
//! # Caveats
//! Unique keys are compared when all rows are there: `UPDATE t SET id = id + 1` does not fail by the row that has the key for a moment. WHERE is asked of each row as a whole: what the path of an index spares a small statement from being asked is asked here. Only statements that leave other tables' rows alone, and need not be told of them: see [`Modify::rewrites`] and [`Insert::rewrites`].

use super::cursor::{Cursor, Level};
use super::insert::{BulkInsert, Insert};
use super::load::Load;
use super::modify::{Action, Find, Modify};
use super::sort::{Order, OrderKey};
use super::spill::sorter::{SortedRows, Sorter};
use super::table::{PREFIX_BYTES, TableAccess};
use super::target::Target;
use super::write::{Old, RowImage, Touch, keys_differ};
use super::{evaluate, located};
use crate::SqlError;
use crate::context::StatementContext;
use crate::expr::Expr;
use crate::transaction::Sweep;
use crate::types::{Row, SqlType, Value};
use bytes::Bytes;
use std::sync::Arc;

/// Rows read at once.
const CHUNK_ROWS: usize = 4096;

/// The table as it is, as it will be, and the load between.
struct Rewrite<'a> {
    context: &'a Arc<StatementContext>,
    old: &'a TableAccess,
    new: &'a Target,
    load: &'a mut dyn Load,
}

impl Rewrite<'_> {
    /// Calls `f` for each row with its key, its bytes, and the values in `slots`.
    fn each_row(
        &mut self,
        slots: &[usize],
        f: &mut dyn FnMut(&mut Self, &[u8], &[u8], &mut Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut rest = Some(self.old.primary.span());
        let mut row: Row = vec![Value::Null; self.old.columns.len()];
        while let Some(span) = rest {
            self.context.check()?;
            let chunk = self.context.txn.with(|txn| Sweep::of(txn, span, CHUNK_ROWS, true))?;
            for (key, stored) in chunk.rows() {
                self.old.decode(stored, slots, &mut row)?;
                f(self, key, stored, &mut row)?;
            }
            rest = chunk.rest;
        }
        Ok(())
    }

    /// Where a row stands that keeps its key.
    fn place(&self, key: &[u8]) -> Bytes {
        let id = self.new.access.primary.id.to_be_bytes();
        [&id, key.get(PREFIX_BYTES..).unwrap_or_default()].concat().into()
    }

    /// Hands on a row that stays as it is.
    fn keep(&mut self, key: &[u8], stored: &[u8], row: &[Value]) -> Result<(), SqlError> {
        let image = RowImage::at(&self.new.access, row, self.place(key), Bytes::copy_from_slice(stored))?;
        self.put(image, row)
    }

    /// Hands on what a row becomes.
    fn change(
        &mut self,
        touch: &Touch,
        key: &[u8],
        stored: &[u8],
        before: &[Value],
        after: &[Value],
    ) -> Result<(), SqlError> {
        let (new, access) = (self.new, &self.new.access);
        let old_key = Bytes::copy_from_slice(key);
        let old = Old { key: &old_key, stored, row: before };
        new.check(after, Some((touch, &old)), self.context)?;
        let value = access.rewrite(stored, after, &touch.changed, None)?;
        let moves = touch.key && keys_differ(&access.primary, before, after);
        let key = if moves { access.row_key(after, 0)? } else { self.place(key) };
        let image = RowImage::at(access, after, key, value)?;
        self.put(image, after)
    }

    fn put(&mut self, image: RowImage, row: &[Value]) -> Result<(), SqlError> {
        if let Some(ordinal) = image.taken_in(&self.new.access, self.load)? {
            return Err(self.new.unique_violation(ordinal, row, &self.context.settings));
        }
        image.load(self.load)
    }
}

/// Slots that keys depend on.
fn slots_of_keys(access: &TableAccess) -> impl Iterator<Item = usize> {
    std::iter::once(&access.primary).chain(&access.indexes).flat_map(|index| index.slots.iter().copied())
}

fn in_order(mut slots: Vec<usize>) -> Vec<usize> {
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// The rows that a query, or nested loops, found: by their keys, in order, each with values behind it.
struct Found {
    rows: SortedRows,
    /// The next one, if there is one.
    next: Option<Row>,
}

impl Found {
    fn new(sorter: Sorter) -> Result<Found, SqlError> {
        let mut found = Found { rows: sorter.finish()?.0, next: Some(Row::new()) };
        found.step()?;
        Ok(found)
    }

    fn step(&mut self) -> Result<(), SqlError> {
        if let Some(next) = &mut self.next
            && !self.rows.next(next)?
        {
            self.next = None;
        }
        Ok(())
    }

    /// Whether the row with this key was found, and what stands behind it, in place of what is in `values`: however often it was found, once. Keys are asked for in order.
    fn take(&mut self, key: &[u8], values: &mut Row) -> Result<bool, SqlError> {
        let mut taken = false;
        while let Some(next) = self.next.as_mut().filter(|next| key_of(next) <= key) {
            if key_of(next) == key && !taken {
                taken = true;
                values.clear();
                values.extend(next.drain(1..));
            }
            self.step()?;
        }
        Ok(taken)
    }
}

fn key_of(found: &[Value]) -> &[u8] {
    match found.first() {
        Some(Value::Bytea(key)) => key,
        _ => &[],
    }
}

/// Which rows a statement means.
enum Meant<'a> {
    /// Those of which that is true; all, without one.
    By(Option<&'a Expr>),
    /// Those that were found; what stands behind them is what SET is asked with, behind the row (or `made`: what it has said).
    Found { rows: Found, made: bool },
}

impl Modify {
    /// Whether it can be run by [`Modify::rewrite`]: neither other tables' rows nor the client have to do with what becomes of its rows.
    pub fn rewrites(&self) -> bool {
        let target = &self.target;
        let apart = match &self.action {
            Action::Delete => target.inbound.is_empty(),
            Action::Update { touch, .. } => !target.is_pointed_at(touch) && !target.points_by(touch),
        };
        apart && self.returning.is_none()
    }

    /// Finds out which rows are meant, where that is not told by each row alone.
    fn meant(&self, context: &Arc<StatementContext>) -> Result<Meant<'_>, SqlError> {
        let order = OrderKey { place: 0, ty: SqlType::Bytea, descending: false, nulls_first: false };
        let mut sorter = Sorter::new(Order(vec![order]), None, context);
        let mut add = |key: &[u8], values: Row| {
            let key = std::iter::once(Value::Bytea(key.into()));
            sorter.push(key.chain(values).collect()).map(drop)
        };
        let made = match &self.find {
            Find::Loops { levels, width, recheck, .. }
                if levels.len() == 1 && *width == self.target.access.columns.len() =>
            {
                return Ok(Meant::By(recheck.as_ref()));
            }
            Find::Loops { levels, at, width, constant, .. } => {
                if constant.as_ref().map_or(Ok(true), |constant| evaluate::truth(constant, &[], context))? {
                    let unlocked = |level: &Level| Level { lock: None, key_lock: None, ..level.clone() };
                    let levels: Arc<[Level]> = levels.iter().map(unlocked).collect();
                    let mut cursor = Cursor::new(context, &levels, *width, None);
                    while cursor.advance()? {
                        let values = match &self.action {
                            Action::Update { set, .. } => {
                                let value = |(_, value): &(usize, Expr)| evaluate::value(value, cursor.row(), context);
                                set.iter().map(value).collect::<Result<Row, SqlError>>()?
                            }
                            Action::Delete => Row::new(),
                        };
                        add(&cursor.key(*at), values)?;
                    }
                }
                true
            }
            Find::Plan(plan) => {
                located::rows(plan.as_ref(), context, |key, values| add(&key, values))?;
                false
            }
        };
        Ok(Meant::Found { rows: Found::new(sorter)?, made })
    }

    /// Runs it: all rows, as they are afterwards, go to a load of all indexes of `new`, which is the table with other index ids. Gives how many were written or deleted.
    ///
    /// # Errors
    /// As for the statement.
    pub fn rewrite(&self, context: &Arc<StatementContext>, new: &Target, load: &mut dyn Load) -> Result<u64, SqlError> {
        let (target, width) = (&self.target, self.target.access.columns.len());
        let mut meant = self.meant(context)?;
        let mut slots: Vec<usize> = slots_of_keys(&target.access).collect();
        if let Meant::By(Some(condition)) = &meant {
            evaluate::columns(condition, &mut slots);
        }
        if let Action::Update { touch, set, .. } = &self.action {
            slots.extend(target.update_needs(touch));
            set.iter().for_each(|(_, value)| evaluate::columns(value, &mut slots));
            slots.retain(|slot| *slot < width);
        }
        let (mut count, mut after, mut joined, mut values) = (0, Row::new(), Row::new(), Row::new());
        let mut rewrite = Rewrite { context, old: &target.access, new, load };
        rewrite.each_row(&in_order(slots), &mut |rewrite, key, stored, row| {
            let is_meant = match &mut meant {
                Meant::By(condition) => {
                    condition.map_or(Ok(true), |condition| evaluate::truth(condition, row, context))?
                }
                Meant::Found { rows, .. } => rows.take(key, &mut values)?,
            };
            if !is_meant {
                return rewrite.keep(key, stored, row);
            }
            count += 1;
            let Action::Update { touch, set, .. } = &self.action else { return Ok(()) };
            after.clone_from(row);
            match &meant {
                Meant::Found { made: true, .. } => {
                    set.iter().zip(values.drain(..)).for_each(|((slot, _), value)| after[*slot] = value);
                }
                Meant::Found { made: false, .. } => {
                    joined.clone_from(row);
                    joined.append(&mut values);
                    for (slot, value) in set {
                        after[*slot] = evaluate::value(value, &joined, context)?;
                    }
                }
                Meant::By(_) => {
                    for (slot, value) in set {
                        after[*slot] = evaluate::value(value, row, context)?;
                    }
                }
            }
            target.access.generate(Some(&touch.changed), &mut after)?;
            rewrite.change(touch, key, stored, row, &after)
        })?;
        context.wrote(target.access.table.id, count);
        Ok(count)
    }
}

impl Insert {
    /// Whether it can be run by [`Insert::rewrite`].
    pub fn rewrites(&self) -> bool {
        self.adds().is_some()
    }

    /// As [`Modify::rewrite`]. (What the query reads of the table is as it was: see invariant 1.)
    ///
    /// # Errors
    /// As for the statement.
    pub fn rewrite(
        &self,
        context: &Arc<StatementContext>,
        new: &Arc<Target>,
        load: &mut dyn Load,
    ) -> Result<u64, SqlError> {
        let Some((plan, columns)) = self.adds() else { return Err(not_meant()) };
        let old = &self.target.access;
        let slots = in_order(slots_of_keys(old).collect());
        let mut rewrite = Rewrite { context, old, new, load };
        rewrite.each_row(&slots, &mut |rewrite, key, stored, row| rewrite.keep(key, stored, row))?;
        BulkInsert { target: new.clone(), columns: columns.to_vec(), gaps: true }.load_all(context, plan, load)
    }
}

fn not_meant() -> SqlError {
    SqlError::new(crate::SqlState::INTERNAL_ERROR, "a statement that does not write its table anew")
}
