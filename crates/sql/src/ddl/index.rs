//! CREATE INDEX.

use super::Run;
use super::constraint::{included_columns, index_columns, own_index_names};
use super::expression::refuse_rows;
use crate::catalog::{Index, Schema, Table, key_names};
use crate::exec::formula::Formulas;
use crate::exec::index::PREDICATE_REFUSAL;
use crate::exec::target::Target;
use crate::syntax::{CreateIndex, IndexKey, IndexValue};
use crate::types::SqlType;
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
        let settled = |text: &String, ty: &SqlType| self.settle_times(text.clone(), Some(table), ty);
        let predicate = create.predicate.as_ref().map(|text| settled(text, &SqlType::Bool)).transpose()?;
        let mut keys = create.keys.clone();
        for key in &mut keys {
            if let IndexValue::Expression(text, _) = &mut key.value {
                *text = settled(text, &SqlType::Unknown)?;
            }
        }
        if let Some(text) = &predicate {
            refuse_rows(text, "index predicate")?;
            Formulas::new(table).condition(text, PREDICATE_REFUSAL)?;
        }
        let columns = index_columns(table, &keys, false)?;
        let include = included_columns(table, &create.include, false)?;
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
                let names =
                    key_names(create.keys.iter().map(IndexKey::name).chain(create.include.iter().map(String::as_str)));
                parts.extend(names.iter().map(String::as_str));
                let also: Vec<String> = own_index_names(table).collect();
                self.free_name(schema.id, &parts, "idx", &also)
            }
        };
        let id = self.new_oid()?;
        table.indexes.push(Index { id, name, columns, unique: create.unique, constraint: false, include, predicate });
        Ok(())
    }
}
