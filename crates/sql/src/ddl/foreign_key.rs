//! Foreign keys: what they may point at, and whether the rows that exist do.

use super::Run;
use super::constraint::free_constraint;
use super::expression::{column_at, column_by_id};
use super::naming::constraint_name;
use crate::catalog::{ForeignKey, Relation, Table};
use crate::exec::references::outbound;
use crate::exec::target::Target;
use crate::syntax::References;
use crate::types::{CastKind, SqlType, cast_kind};
use crate::{SqlError, SqlState};

/// The id of a column that a foreign key names.
fn key_column(table: &Table, name: &str) -> Result<u16, SqlError> {
    let at = column_at(table, name).map_err(|_| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" referenced in foreign key constraint does not exist"),
        )
    })?;
    Ok(table.columns[at].id)
}

impl Run<'_> {
    /// Adds a foreign key to a table and to the table that it points at. Rows are not looked at.
    pub(super) fn add_foreign_key(
        &mut self,
        table: &mut Table,
        name: Option<&str>,
        columns: &[String],
        references: &References,
    ) -> Result<(), SqlError> {
        let itself = references.table.name == table.name
            && match self.named(&references.table)? {
                // A table that is being created is not yet found by its name.
                None => self.schema_for(&references.table).is_ok_and(|schema| schema.id == table.schema),
                Some(named) => named == crate::catalog::Named::Relation(table.id),
            };
        let parent = if itself { table.clone() } else { self.parent_of(references)? };
        let name = match name {
            Some(name) => {
                free_constraint(table, name)?;
                name.to_string()
            }
            None => {
                let parts: Vec<&str> =
                    std::iter::once(table.name.as_str()).chain(columns.iter().map(String::as_str)).collect();
                constraint_name(table, &parts, "fkey")
            }
        };
        let mut here = Vec::with_capacity(columns.len());
        for column in columns {
            here.push(key_column(table, column)?);
        }
        let there = referenced_columns(&parent, references)?;
        if here.len() != there.len() {
            return Err(SqlError::new(
                SqlState::INVALID_FOREIGN_KEY,
                "number of referencing and referenced columns for foreign key disagree",
            ));
        }
        check_types(table, &here, &parent, &there, &name)?;
        table.foreign_keys.push(ForeignKey {
            id: self.new_oid()?,
            name,
            columns: here,
            referenced_table: parent.id,
            referenced_columns: there,
            on_delete: references.on_delete,
            on_update: references.on_update,
            deferral: references.deferral,
            not_valid: false,
        });
        if itself {
            add_once(&mut table.referenced_by, table.id);
        } else {
            let mut parent = parent;
            add_once(&mut parent.referenced_by, table.id);
            self.put_table(parent)?;
        }
        Ok(())
    }

    fn parent_of(&self, references: &References) -> Result<Table, SqlError> {
        match self.relation(&references.table)?.as_deref() {
            Some(Relation::Table(table)) => Ok(table.clone()),
            Some(_) => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("referenced relation \"{}\" is not a table", references.table),
            )),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", references.table),
            )),
        }
    }

    /// Looks at every row: does it point at a row that exists?
    pub(super) fn validate_foreign_key(&mut self, table: &Table, key: &ForeignKey) -> Result<(), SqlError> {
        let only = Table { foreign_keys: vec![key.clone()], checks: Vec::new(), ..table.clone() };
        let context = self.plan_context();
        let target = Target::new(&only, &context)?;
        let keys = outbound(&target.access, context.catalog.as_ref())?;
        let Some(outbound) = keys.first() else { return Ok(()) };
        let settings = self.statement.settings.clone();
        self.each_row(&target.access, &outbound.slots, |_, row| {
            let Some(wanted) = outbound.key(&target.access, row, &settings)? else { return Ok(()) };
            match self.statement.txn.with(|t| t.get_certified(&wanted))? {
                Some(_) => Ok(()),
                None => Err(outbound.violation(&target.access, row, &settings)),
            }
        })
    }

    /// Forgets that `child` points at `parent`, if no foreign key does any more. `child` is as it will be.
    pub(super) fn forget_reference(&mut self, child: &mut Table, parent: crate::catalog::Oid) -> Result<(), SqlError> {
        if child.foreign_keys.iter().any(|f| f.referenced_table == parent) {
            return Ok(());
        }
        if parent == child.id {
            let id = child.id;
            child.referenced_by.retain(|c| *c != id);
            return Ok(());
        }
        if let Some(mut parent) = self.catalog().table(parent).cloned() {
            parent.referenced_by.retain(|c| *c != child.id);
            self.put_table(parent)?;
        }
        Ok(())
    }
}

fn add_once(list: &mut Vec<u32>, id: u32) {
    if !list.contains(&id) {
        list.push(id);
    }
}

/// The referenced columns: those named, or the primary key; a unique index must have just them.
fn referenced_columns(parent: &Table, references: &References) -> Result<Vec<u16>, SqlError> {
    if references.columns.is_empty() {
        if !parent.has_primary_key {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("there is no primary key for referenced table \"{}\"", parent.name),
            ));
        }
        return Ok(parent.primary.columns.iter().map(|c| c.column).collect());
    }
    let mut ids = Vec::with_capacity(references.columns.len());
    for name in &references.columns {
        ids.push(key_column(parent, name)?);
    }
    let matches = unique_indexes(parent)
        .any(|i| i.columns.len() == ids.len() && i.columns.iter().all(|c| ids.contains(&c.column)));
    if !matches {
        return Err(SqlError::new(
            SqlState::INVALID_FOREIGN_KEY,
            format!("there is no unique constraint matching given keys for referenced table \"{}\"", parent.name),
        ));
    }
    Ok(ids)
}

/// Indexes by which a foreign key can point at a table.
pub(super) fn unique_indexes(table: &Table) -> impl Iterator<Item = &crate::catalog::Index> {
    let primary = table.has_primary_key.then_some(&table.primary);
    primary.into_iter().chain(table.indexes.iter().filter(|i| i.unique && i.is_plain()))
}

fn check_types(table: &Table, here: &[u16], parent: &Table, there: &[u16], name: &str) -> Result<(), SqlError> {
    for (a, b) in here.iter().zip(there) {
        let (Some(a), Some(b)) = (column_by_id(table, *a), column_by_id(parent, *b)) else { continue };
        if !comparable(&a.ty, &b.ty) {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("foreign key constraint \"{name}\" cannot be implemented"),
            )
            .detail(format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                a.name, b.name, a.ty, b.ty
            )));
        }
    }
    Ok(())
}

fn comparable(a: &SqlType, b: &SqlType) -> bool {
    let (a, b) = (a.base(), b.base());
    a == b
        || (a.is_number() && b.is_number())
        || (a.is_string() && b.is_string())
        || cast_kind(&a, &b) == Some(CastKind::Implicit)
}
