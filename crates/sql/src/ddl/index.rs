//! CREATE INDEX.

use super::Run;
use super::constraint::{index_columns, own_index_names};
use crate::catalog::{Index, Schema, Table};
use crate::exec::target::Target;
use crate::syntax::CreateIndex;
use crate::{SqlError, SqlState};

impl Run<'_> {
    pub(super) fn create_index(&mut self, create: &CreateIndex) -> Result<&'static str, SqlError> {
        let mut table = self.table_named(&create.table)?;
        let Some(schema) = self.catalog().schema_by_id(table.schema).cloned() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a table's schema is gone"));
        };
        if let Some(name) = &create.name
            && self.taken(&schema, name, create.if_not_exists)?
        {
            return Ok("CREATE INDEX");
        }
        self.add_empty_index(&schema, &mut table, create)?;
        let ordinal = table.indexes.len();
        self.put_table(table.clone())?;
        self.build_index(&table, ordinal)?;
        Ok("CREATE INDEX")
    }

    /// Fills an index that a table has got; its ordinal counts from 1.
    pub(super) fn build_index(&mut self, table: &Table, ordinal: usize) -> Result<(), SqlError> {
        let target = Target::new(table, &self.plan_context())?;
        self.fill_index(&target, ordinal)
    }

    /// Adds an index to a table, without its entries.
    pub(super) fn add_empty_index(
        &self,
        schema: &Schema,
        table: &mut Table,
        create: &CreateIndex,
    ) -> Result<(), SqlError> {
        let columns = index_columns(table, &create.columns)?;
        let name = match &create.name {
            Some(name) => {
                if own_index_names(table).any(|n| n == *name) {
                    return Err(SqlError::new(
                        SqlState::DUPLICATE_TABLE,
                        format!("relation \"{name}\" already exists"),
                    ));
                }
                name.clone()
            }
            None => {
                let mut parts = vec![table.name.as_str()];
                parts.extend(create.columns.iter().map(|(c, _)| c.as_str()));
                let also: Vec<String> = own_index_names(table).collect();
                self.free_name(schema.id, &parts, "idx", &also)
            }
        };
        table.indexes.push(Index { id: self.new_oid()?, name, columns, unique: create.unique, constraint: false });
        Ok(())
    }
}
