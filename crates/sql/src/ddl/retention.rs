//! How long the past of a table is kept: its storage parameter `retention`.

use super::Run;
use crate::catalog::{Relation, Retention, Table};
use crate::transaction::KEPT_INDEXES_MAX;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};

/// The longest: a hundred years.
const SECONDS_MAX: i64 = 100 * 366 * 86_400;

impl Run<'_> {
    /// Reads an interval of whole seconds.
    pub(super) fn retention(&self, text: &str) -> Result<Retention, SqlError> {
        let refused = || {
            SqlError::new(SqlState::INVALID_PARAMETER, format!("invalid value for \"retention\": \"{text}\""))
                .hint("Write whole seconds, at least one and at most 36600 days, as an interval: '10s', '30 min', '1h', '7 days'.")
        };
        let Ok(Value::Interval(interval)) = Value::parse_text(&SqlType::Interval(None), text, &self.statement.settings)
        else {
            return Err(refused());
        };
        let us = i64::try_from(interval.total_us()).map_err(|_| refused())?;
        let seconds = us / 1_000_000;
        match u64::try_from(seconds) {
            Ok(whole) if us % 1_000_000 == 0 && (1..=SECONDS_MAX).contains(&seconds) => {
                Ok(Retention { text: text.into(), seconds: whole })
            }
            _ => Err(refused()),
        }
    }

    /// There are not too many indexes with a retention of their own once `table` is as it is given.
    pub(super) fn check_kept(&self, table: &Table) -> Result<(), SqlError> {
        if table.retention.is_none() {
            return Ok(());
        }
        let indexes = |table: &Table| 1 + table.indexes.len();
        let catalog = self.catalog();
        let others = catalog.databases().flat_map(|database| catalog.relations(database.id));
        let others = others.map(|relation| match &*relation {
            Relation::Table(other) if other.id != table.id && other.retention.is_some() => indexes(other),
            _ => 0,
        });
        let kept = indexes(table) + others.sum::<usize>();
        if kept > KEPT_INDEXES_MAX {
            let what =
                format!("{kept} indexes of tables with a retention of their own, and {KEPT_INDEXES_MAX} is the limit");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, what).hint(
                "RESET (retention) of a table that can do with the node's, or start the node with another --retention.",
            ));
        }
        Ok(())
    }
}
