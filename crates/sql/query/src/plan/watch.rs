//! What of a plan hangs on values that come with an execution.
//!
//! A plan that is made once takes a parameter for a value of middling frequency, and bounds for few rows. Where statistics know that this may be wrong by much, a table
//! is watched: before an execution the rows that its conditions let through are estimated by the values that came ([`super::tuned`]).

use super::access::WHOLE_PART;
use super::loops::Source;
use super::share::{self, Given, has_parameter};
use super::tree;
use crate::exec::table::TableAccess;
use crate::expr::{CompareOp, Expr};
use crate::statistics::{ColumnStatistics, TableStatistics};
use crate::types::{SqlType, Value};
use std::sync::Arc;

/// Fewer rows than these are read soon in any way: no value is looked at for their sake.
pub(super) const ROWS_MIN: f64 = 1_000.0;

/// One table of a plan, and what is asked of it.
#[derive(Debug, Clone)]
pub struct Watch {
    /// Rows of the table.
    rows: f64,
    known: Arc<TableStatistics>,
    /// The columns that conditions read, by their places.
    columns: Vec<(usize, u16, SqlType)>,
    conditions: Vec<Expr>,
    /// Which of them wait for values.
    waiting: Vec<usize>,
    /// What is known without the values.
    pub(super) generic: Vec<f64>,
}

impl Watch {
    /// A table whose columns begin at `base`, if values that its conditions wait for can make a difference.
    pub fn of<'e>(
        access: &TableAccess,
        base: usize,
        known: Option<&Arc<TableStatistics>>,
        conditions: impl Iterator<Item = &'e Expr> + Clone,
    ) -> Option<Watch> {
        let known = known.filter(|known| known.rows as f64 >= ROWS_MIN)?.clone();
        if !conditions.clone().any(has_parameter) {
            return None;
        }
        let column = |place: usize| {
            let access = access.columns.get(place.checked_sub(base)?)?;
            Some((known.column(access.id)?, &access.ty))
        };
        let rows = known.rows as f64;
        let most: f64 = conditions.clone().map(|condition| most(condition, &column)).product();
        if rows * most < ROWS_MIN {
            return None;
        }
        let mut places: Vec<usize> = Vec::new();
        conditions.clone().for_each(|condition| tree::columns(condition, &mut places));
        places.sort_unstable();
        places.dedup();
        let of = |place: usize| {
            let access = access.columns.get(place.checked_sub(base)?)?;
            Some((place, access.id, access.ty.clone()))
        };
        let columns = places.into_iter().filter_map(of).collect();
        let waiting = conditions.clone().enumerate().filter(|(_, condition)| has_parameter(condition));
        let waiting = waiting.map(|(at, _)| at).collect();
        let conditions = conditions.cloned().collect();
        let mut watch = Watch { rows, known, columns, conditions, waiting, generic: Vec::new() };
        watch.generic = watch.rows(&[]);
        Some(watch)
    }

    /// The tables of nested loops.
    pub(super) fn of_sources(sources: &[Source], conditions: &[Expr]) -> Vec<Watch> {
        let each = |source: &Source| {
            let places = source.base..source.base + source.access.columns.len();
            let own = conditions.iter().filter(|_| !source.outer).chain(&source.on);
            let own = own.filter(|condition| tree::reads_only(condition, &|place| places.contains(&place)));
            Watch::of(&source.access, source.base, source.statistics.as_ref(), own)
        };
        sources.iter().filter_map(each).collect()
    }

    /// Rows that pass with these values, and those that pass each condition that waits for some: as many by another condition may call for another plan.
    pub(super) fn rows(&self, values: &[Value]) -> Vec<f64> {
        let column = |place: usize| {
            let (_, id, ty) = self.columns.iter().find(|(known, ..)| *known == place)?;
            Some((self.known.column(*id)?, ty))
        };
        let of = Given { columns: &column, values };
        let all = self.rows * share::all_given(&self.conditions, of);
        let each = self.waiting.iter().filter_map(|at| self.conditions.get(*at)).map(|condition| {
            // All there is.
            if self.conditions.len() == 1 { all } else { self.rows * share::all_given([condition], of) }
        });
        std::iter::once(all).chain(each).collect()
    }

    /// More rows than these no index should lead to.
    pub(super) fn part(&self) -> f64 {
        self.rows / WHOLE_PART
    }
}

/// The greatest share of rows that a condition lets through, whatever its values are.
fn most(condition: &Expr, of: share::Columns<'_, '_>) -> f64 {
    if !has_parameter(condition) {
        return share::all([condition], of);
    }
    match condition {
        Expr::Compare { op: CompareOp::Eq, left, right, .. } => {
            match (share::column_of(left, of), share::column_of(right, of)) {
                (Some((column, _)), None) | (None, Some((column, _))) => most_frequent(column),
                _ => 1.0,
            }
        }
        Expr::And(parts) => parts.iter().map(|part| most(part, of)).product(),
        // Of the others those that are estimated by their values may let all through.
        _ => 1.0,
    }
}

fn most_frequent(column: &ColumnStatistics) -> f64 {
    column.common.first().map_or(0.0, |(_, share)| *share).max(column.equal(None))
}
