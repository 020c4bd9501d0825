//! A table that statements write, compiled with everything that a written row must satisfy.

use super::load::Duplicate;
use super::references::{self, Inbound, Outbound};
use super::row::RowView;
use super::table::TableAccess;
use super::write::{Old, Touch, keys_differ};
use super::{evaluate, table};
use crate::catalog::{ReferentialAction, Table};
use crate::context::{EvalSettings, StatementContext};
use crate::expr::Expr;
use crate::plan::PlanContext;
use crate::transaction::Isolation;
use crate::types::{Row, Value};
use crate::{KvError, SqlError, SqlState};
use std::sync::Arc;

/// Characters of a value that a failing row shows.
const SHOWN_CHARACTERS_MAX: usize = 64;

/// A table to write to.
#[derive(Debug)]
pub struct Target {
    /// Its rows and indexes.
    pub access: Arc<TableAccess>,
    /// CHECK constraints: name and condition over the row.
    pub checks: Vec<(String, Expr)>,
    /// What a column that is not shown yet is computed of, over the row; `None` is NULL.
    pub filling: Option<Expr>,
    /// DEFAULT of each slot, cast to its column's type; `None` is NULL.
    pub defaults: Vec<Option<Expr>>,
    /// Its foreign keys.
    pub outbound: Vec<Outbound>,
    /// Foreign keys that point at it.
    pub inbound: Vec<Inbound>,
}

impl Target {
    /// Compiles a table.
    pub fn new(table: &Table, context: &PlanContext) -> Result<Arc<Self>, SqlError> {
        let access = Arc::new(TableAccess::new(table)?);
        let outbound = references::outbound(&access, context.catalog.as_ref())?;
        let inbound = references::inbound(&access, context.catalog.as_ref())?;
        let checks = crate::plan::scope::checks(table, context)?;
        let defaults = crate::plan::scope::defaults(table, context)?;
        let filling = crate::plan::scope::filling(table, context)?;
        Ok(Arc::new(Target { access, checks, filling, defaults, outbound, inbound }))
    }

    /// The column that is not shown yet, of a row that is about to be written; `None`: there is none, or it stays as it is. Rows that were there and lack it are its maker's (`ddl`'s `filling`), so
    /// that their writers do not hear what is wrong with them; unless they move, where he would not look for them, or what it is computed of changes.
    ///
    /// # Errors
    /// 23502, and whatever goes wrong with the value.
    pub fn hidden(
        &self,
        row: &[Value],
        old: Option<(&Touch, &Old<'_>)>,
        context: &StatementContext,
    ) -> Result<Option<Value>, SqlError> {
        let Some(column) = &self.access.filling else { return Ok(None) };
        if let Some((touch, old)) = old {
            let mut read = Vec::new();
            self.filling.iter().for_each(|value| evaluate::columns(value, &mut read));
            if !read.iter().any(|&slot| touch.changed[slot]) {
                if !touch.key || !keys_differ(&self.access.primary, old.row, row) {
                    return Ok(None);
                }
                if let Some(stored) = self.access.stored_hidden(old.stored)? {
                    return Ok(Some(stored));
                }
            }
        }
        let value = match (&self.filling, &self.access.table.filling) {
            (None, _) => Value::Null,
            (Some(formula), Some(said)) if said.is_formula() => formula.eval_alone(row)?,
            (Some(default), said) => evaluate::value(default, row, context).map_err(|e| match said {
                // Its own sequence went with it: there is nothing to keep any more.
                Some(said) if said.column.owned_sequence.is_some() && e.state == SqlState::UNDEFINED_TABLE => {
                    let reason = "a column that was to come was taken back".to_owned();
                    KvError::Restart { reason, key: None }.into()
                }
                _ => e,
            })?,
        };
        if value.is_null() && !column.nullable {
            let (table, name) = (&self.access.table, self.access.table.filling.as_ref().map(|it| &it.column.name));
            return Err(null_violation(&table.name, name.map_or("", String::as_str)));
        }
        Ok(Some(value))
    }

    /// Slots that [`super::writer::Writer::update`] needs of the old row, for a statement that sets some.
    pub(crate) fn update_needs(&self, touch: &Touch) -> Vec<usize> {
        let mut out = touch.needs(&self.access);
        for value in self.checks.iter().map(|(_, check)| check).chain(&self.filling) {
            evaluate::columns(value, &mut out);
        }
        for key in &self.outbound {
            if key.slots.iter().any(|&slot| touch.changed[slot]) {
                out.extend_from_slice(&key.slots);
            }
        }
        for key in &self.inbound {
            if key.slots.iter().any(|&slot| touch.changed[slot]) {
                out.extend_from_slice(&key.slots);
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Slots that [`super::writer::Writer::delete`] needs of the row.
    pub(crate) fn delete_needs(&self) -> Vec<usize> {
        let building = self.access.building.iter().map(|building| &building.index);
        let columns = self.access.indexes.iter().chain(building).flat_map(|index| index.slots.iter().copied());
        let mut out: Vec<usize> =
            columns.chain(self.inbound.iter().flat_map(|key| key.slots.iter().copied())).collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    /// NOT NULL and CHECK of a new row. For an update, `old` gives what was not decoded when the row must be shown.
    pub fn check(
        &self,
        row: &[Value],
        touch: Option<(&Touch, &Old<'_>)>,
        context: &StatementContext,
    ) -> Result<(), SqlError> {
        for (slot, column) in self.access.columns.iter().enumerate() {
            let written = touch.is_none_or(|(touch, _)| touch.changed[slot]);
            if written && !column.nullable && row[slot].is_null() {
                return Err(self.null_violation(slot, &self.whole(row, touch), &context.settings));
            }
        }
        for (name, condition) in &self.checks {
            // A CHECK that is NULL is satisfied.
            if let Value::Bool(false) = evaluate::value(condition, row, context)? {
                return Err(self.check_violation(name, &self.whole(row, touch), &context.settings));
            }
        }
        Ok(())
    }

    /// The violation of a unique key that a load of this table's indexes met twice, after the rows were written.
    pub fn twice(&self, context: &StatementContext, found: &Duplicate<'_>) -> SqlError {
        let Duplicate { index: ordinal, key, value } = *found;
        let access = &self.access;
        let all: Vec<usize> = (0..access.columns.len()).collect();
        let mut row = vec![Value::Null; all.len()];
        let read = match ordinal {
            0 => access.decode(value, &all, &mut row),
            _ => access.row_key_of_entry(key, value).and_then(|row_key| {
                let isolation = Isolation::RepeatableRead;
                let stored = context.patience().begin(context.kv.as_ref(), isolation)?.get(&row_key)?;
                stored.map_or(Ok(()), |stored| access.decode(&stored, &all, &mut row))
            }),
        };
        read.map_or_else(|e| e, |()| self.unique_violation(ordinal, &row, &context.settings))
    }

    /// The whole new row, for an error: what an update did not decode comes from the old one.
    fn whole(&self, row: &[Value], touch: Option<(&Touch, &Old<'_>)>) -> Row {
        let mut out = row.to_vec();
        if let Some((touch, old)) = touch
            && let Ok(view) = RowView::new(old.stored)
        {
            for slot in (0..out.len()).filter(|&slot| !touch.changed[slot]) {
                out[slot] = self.access.decode_column(&view, slot).unwrap_or_default();
            }
        }
        out
    }

    fn null_violation(&self, slot: usize, row: &[Value], settings: &EvalSettings) -> SqlError {
        let (table, column) = (&self.access.table.name, &self.access.table.columns[slot].name);
        null_violation(table, column).detail(self.failing_row(row, settings))
    }

    fn check_violation(&self, name: &str, row: &[Value], settings: &EvalSettings) -> SqlError {
        let table = &self.access.table.name;
        SqlError::new(
            SqlState::CHECK_VIOLATION,
            format!("new row for relation \"{table}\" violates check constraint \"{name}\""),
        )
        .detail(self.failing_row(row, settings))
        .constraint(table, name)
    }

    fn failing_row(&self, row: &[Value], settings: &EvalSettings) -> String {
        let values: Vec<String> = row
            .iter()
            .zip(&self.access.columns)
            .map(|(value, column)| {
                if value.is_null() {
                    return "null".to_string();
                }
                let text = value.to_text(&column.ty, settings);
                if text.chars().count() <= SHOWN_CHARACTERS_MAX {
                    return text;
                }
                text.chars().take(SHOWN_CHARACTERS_MAX).chain("...".chars()).collect()
            })
            .collect();
        format!("Failing row contains ({}).", values.join(", "))
    }

    /// Whether a change of its rows changes others, perhaps of the same table: it is referenced with CASCADE, SET NULL or SET DEFAULT.
    pub(crate) fn acts_on_others(&self) -> bool {
        let passive = |action| matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict);
        !self.inbound.iter().all(|inbound| passive(inbound.action(true)) && passive(inbound.action(false)))
    }

    /// Whether an UPDATE sets a column that rows of others point at.
    pub(super) fn is_pointed_at(&self, touch: &Touch) -> bool {
        self.inbound.iter().flat_map(|inbound| &inbound.slots).any(|&slot| touch.changed[slot])
    }

    /// Whether an UPDATE sets a column by which a row points at others.
    pub(super) fn points_by(&self, touch: &Touch) -> bool {
        self.outbound.iter().flat_map(|outbound| &outbound.slots).any(|&slot| touch.changed[slot])
    }

    /// 23505 for a unique key that is taken.
    pub fn unique_violation(&self, index: usize, row: &[Value], settings: &EvalSettings) -> SqlError {
        unique_violation(&self.access, index, row, settings)
    }
}

/// 23502
fn null_violation(table: &str, column: &str) -> SqlError {
    let message = format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
    let mut error = SqlError::new(SqlState::NOT_NULL_VIOLATION, message);
    (error.table, error.column) = (Some(table.to_owned()), Some(column.to_owned()));
    error
}

/// 23505 for a unique key that is taken: an index (see [`table::TableAccess::index`]), and a row with the key.
pub fn unique_violation(access: &table::TableAccess, index: usize, row: &[Value], settings: &EvalSettings) -> SqlError {
    let index: &table::IndexAccess = access.index(index);
    SqlError::new(
        SqlState::UNIQUE_VIOLATION,
        format!("duplicate key value violates unique constraint \"{}\"", index.name),
    )
    .detail(format!("{} already exists.", index.key_text(access, row, settings)))
    .constraint(&access.table.name, &index.name)
}
