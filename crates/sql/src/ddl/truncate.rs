//! TRUNCATE: the table's data moves to fresh, empty index ids; what was there is garbage, and what was known of it is forgotten.

use super::Run;
use crate::catalog::{Oid, Table};
use crate::syntax::Name;
use crate::{SqlError, SqlState};

impl Run<'_> {
    pub(super) fn truncate(&mut self, names: &[Name], restart: bool, cascade: bool) -> Result<&'static str, SqlError> {
        let mut ids: Vec<Oid> = Vec::new();
        for name in names {
            let id = self.table_named(name)?.id;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let mut at = 0;
        while at < ids.len() {
            let table = self.table(ids[at])?;
            for child in table.referenced_by.iter().filter(|c| **c != table.id) {
                if ids.contains(child) {
                    continue;
                }
                let child_table = self.table(*child)?;
                if !cascade {
                    return Err(referenced(&table, &child_table));
                }
                self.notice(format!("truncate cascades to table \"{}\"", child_table.name));
                ids.push(*child);
            }
            at += 1;
        }
        for id in ids {
            let table = self.table(id)?;
            if restart {
                self.restart_sequences(&table)?;
            }
            self.empty(table)?;
        }
        Ok("TRUNCATE TABLE")
    }

    fn restart_sequences(&self, table: &Table) -> Result<(), SqlError> {
        for id in table.columns.iter().filter_map(|c| c.owned_sequence) {
            if let Some(sequence) = self.owned(id) {
                let patience = self.statement.patience();
                self.db.numbers.set(self.db.kv.as_ref(), &patience, &sequence, sequence.start, false)?;
            }
        }
        Ok(())
    }

    fn empty(&mut self, mut table: Table) -> Result<(), SqlError> {
        self.renew_ids(&mut table)?;
        self.fresh.push(table.id);
        self.touch().forget_statistics(table.id)?;
        // Not only from the commit on: this transaction goes on with a table that is empty. After a rollback they are read again soon.
        self.statement.backend.sessions.statistics.emptied(table.id, self.db.kv.monotonic_us());
        self.put_table(table)
    }

    /// Gives a table fresh index ids, and discards what lies below the old ones.
    pub(super) fn renew_ids(&mut self, table: &mut Table) -> Result<(), SqlError> {
        for index in std::iter::once(&mut table.primary).chain(&mut table.indexes) {
            let fresh = self.new_oid()?;
            self.touch().discard_index(index.id)?;
            index.id = fresh;
        }
        Ok(())
    }
}

fn referenced(table: &Table, child: &Table) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot truncate a table referenced in a foreign key constraint")
        .detail(format!("Table \"{}\" references \"{}\".", child.name, table.name))
        .hint(format!("Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", child.name))
}
