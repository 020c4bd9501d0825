//! ANALYZE: statistics of tables, gathered now.

use super::Session;
use crate::catalog::{Relation, Table};
use crate::context::CatalogView;
use crate::exec::gather::{By, analyze};
use crate::output::Output;
use crate::syntax::Name;
use crate::{SqlError, SqlState};
use std::sync::Arc;

impl Session {
    /// Of the tables named, or of all in the database: as they are committed, each in a transaction of its own.
    pub(super) fn run_analyze(&mut self, tables: &[(Name, Vec<String>)], out: &mut dyn Output) -> Result<(), SqlError> {
        let mut found: Vec<Arc<Relation>> = Vec::new();
        let view = self.ensure_active(None)?.view.clone();
        if tables.is_empty() {
            found = view.snapshot().relations(view.database().id);
        }
        for (name, columns) in tables {
            let schema = name.schema.as_deref();
            match view.relation(schema, &name.name)? {
                Some(relation) if matches!(*relation, Relation::Table(_)) => {
                    if let Relation::Table(table) = relation.as_ref() {
                        refuse_columns(table, columns)?;
                    }
                    found.push(relation);
                }
                // Of the catalogs' own tables there is nothing to know.
                None if crate::pg_catalog::lookup(schema, &name.name).is_some() => {}
                None if view.named(schema, &name.name).is_none() => {
                    let message = format!("relation \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
                }
                _ => {
                    let message =
                        format!("skipping \"{}\" --- cannot analyze non-tables or special system tables", name.name);
                    self.warn(SqlState::WARNING, &message, out);
                }
            }
        }
        let tables = found.iter().filter_map(|relation| match relation.as_ref() {
            Relation::Table(table) => Some(table),
            _ => None,
        });
        tables.into_iter().try_for_each(|table| self.analyze_table(table))
    }

    fn analyze_table(&self, table: &Table) -> Result<(), SqlError> {
        self.start_deadline();
        analyze(self.db.kv.as_ref(), &self.db.sessions.statistics, &self.patience(), table, By::Command)
    }
}

/// Columns that are gathered with the others must be there, once each.
fn refuse_columns(table: &Table, columns: &[String]) -> Result<(), SqlError> {
    for (place, column) in columns.iter().enumerate() {
        let of = format!("column \"{column}\" of relation \"{}\"", table.name);
        if !table.columns.iter().any(|known| known.name == *column) {
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, format!("{of} does not exist")));
        }
        if columns[..place].contains(column) {
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, format!("{of} appears more than once")));
        }
    }
    Ok(())
}
