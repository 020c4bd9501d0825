//! Foreign keys: what a row must find, and what happens to the rows that point at one that goes.
//!
//! A reference holds the row that it points at for its key (`FOR KEY SHARE`), and asks whether the referenced unique key is present, at the end of the statement, so that rows which one
//! statement writes may point at each other; a deferred one at the end of the transaction ([`super::deferred`]). Referential actions run at once, row by row, depth first.
//!
//! Invariants
//! 1. A row is written only with its checks queued; a statement ends only with its queue checked ([`super::writer`]).
//! 2. Certified at every isolation level: two transactions that delete a row and point at it cannot both commit.
//!    What is certified is that the key is there at the commit, not the row's version: updates of its other columns are no conflict (decision 63).

use super::path::{Fit, fit};
use super::span::{self, Keys};
use super::table::{IndexAccess, TableAccess};
use crate::catalog::{Deferral, ForeignKey, Oid, ReferentialAction, Relation, Table};
use crate::context::{CatalogView, EvalSettings};
use crate::transaction::{LockMode, Transaction};
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use std::sync::Arc;

/// A foreign key, seen from the table that has it.
#[derive(Debug, Clone)]
pub struct Outbound {
    /// OID of the constraint.
    pub id: Oid,
    /// When it is checked.
    pub deferral: Deferral,
    /// Name of the constraint.
    pub name: String,
    /// Its columns' slots, in the order declared.
    pub slots: Vec<usize>,
    /// The referenced table's name.
    pub parent: String,
    /// The unique index referenced.
    index: IndexAccess,
    /// How its entries lead to rows, where it is not the primary key.
    entries: Option<Arc<TableAccess>>,
    /// For each column of that index: the slot here, and the type there.
    key: Vec<(usize, SqlType)>,
}

/// A foreign key, seen from the table that it points at.
#[derive(Debug, Clone)]
pub struct Inbound {
    /// The table that has it.
    pub child: Oid,
    /// The key.
    pub key: ForeignKey,
    /// Slots of the referenced columns here, in the order of the key.
    pub slots: Vec<usize>,
}

/// Finds the foreign keys of a table.
pub fn outbound(access: &TableAccess, catalog: &dyn CatalogView) -> Result<Vec<Outbound>, SqlError> {
    access.table.foreign_keys.iter().map(|key| Outbound::new(access, key, catalog)).collect()
}

/// Finds the foreign keys that point at a table.
pub fn inbound(access: &TableAccess, catalog: &dyn CatalogView) -> Result<Vec<Inbound>, SqlError> {
    let mut out = Vec::new();
    for &child in &access.table.referenced_by {
        let relation = catalog.relation_to_write(child)?;
        let Some(Relation::Table(table)) = relation.as_deref() else { continue };
        for key in table.foreign_keys.iter().filter(|key| key.referenced_table == access.table.id) {
            out.push(Inbound { child, key: key.clone(), slots: slots(access, &key.referenced_columns)? });
        }
    }
    Ok(out)
}

fn slots(access: &TableAccess, columns: &[u16]) -> Result<Vec<usize>, SqlError> {
    columns.iter().map(|&id| access.slot(id).ok_or_else(|| gone(&access.table))).collect()
}

fn gone(table: &Table) -> SqlError {
    SqlError::new(
        SqlState::INTERNAL_ERROR,
        format!("a foreign key names a column that table \"{}\" does not have", table.name),
    )
}

impl Outbound {
    fn new(access: &TableAccess, key: &ForeignKey, catalog: &dyn CatalogView) -> Result<Self, SqlError> {
        let relation = catalog.relation_to_write(key.referenced_table)?;
        let Some(Relation::Table(table)) = relation.as_deref() else { return Err(gone(&access.table)) };
        let parent = TableAccess::new(table)?;
        let wanted = slots(&parent, &key.referenced_columns)?;
        let here = slots(access, &key.columns)?;
        let index = std::iter::once(&parent.primary)
            .chain(&parent.indexes)
            .find(|index| {
                index.unique
                    && index.is_plain()
                    && index.columns.len() == wanted.len()
                    && index.columns.iter().all(|c| c.slot.is_some_and(|slot| wanted.contains(&slot)))
            })
            .ok_or_else(|| gone(table))?;
        let pairs = index.columns.iter().filter_map(|column| {
            let slot = column.slot?;
            let at = wanted.iter().position(|&w| w == slot)?;
            Some((here[at], parent.columns[slot].ty.clone()))
        });
        Ok(Outbound {
            id: key.id,
            deferral: key.deferral,
            name: key.name.clone(),
            slots: here.clone(),
            parent: table.name.clone(),
            key: pairs.collect(),
            index: index.clone(),
            entries: (!std::ptr::eq(index, &raw const parent.primary)).then(|| Arc::new(parent.clone())),
        })
    }

    /// The key that a row's reference must find: `None` if the row does not refer (a column is NULL).
    ///
    /// # Errors
    /// 23503 at once for a value that the referenced type cannot hold.
    pub fn key(&self, access: &TableAccess, row: &[Value], settings: &EvalSettings) -> Result<Option<Bytes>, SqlError> {
        let mut values = Vec::with_capacity(self.key.len());
        for (slot, ty) in &self.key {
            match fit(row[*slot].clone(), ty) {
                Fit::Exact(value) => values.push(value),
                Fit::Null => return Ok(None),
                Fit::Above | Fit::Below => return Err(self.violation(access, row, settings)),
            }
        }
        match span::equal(&self.index, &values) {
            Keys::One(key) => Ok(Some(key)),
            Keys::Span(_) => Err(gone(&access.table)),
        }
    }

    /// Whether the key that a reference finds is that of the row itself, which is held.
    pub(super) fn holds_its_key(&self) -> bool {
        self.entries.is_none()
    }

    /// Whether a reference to this key finds its row. Until the transaction ends nobody deletes that row or changes its key, but others
    /// may change the rest of it.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn finds(&self, txn: &mut dyn Transaction, key: &Bytes) -> Result<bool, SqlError> {
        let row_key = match &self.entries {
            None => Some(key.clone()),
            Some(access) => match txn.get(key)? {
                Some(entry) => Some(access.row_key_of_entry(key, &entry)?),
                None => None,
            },
        };
        if let Some(row_key) = row_key {
            txn.hold(&row_key, LockMode::KeyShare)?;
        }
        Ok(txn.present(key)?)
    }

    /// 23503 for a row that finds nothing.
    pub fn violation(&self, access: &TableAccess, row: &[Value], settings: &EvalSettings) -> SqlError {
        let name = &access.table.name;
        SqlError::new(
            SqlState::FOREIGN_KEY_VIOLATION,
            format!("insert or update on table \"{name}\" violates foreign key constraint \"{}\"", self.name),
        )
        .detail(format!(
            "{} is not present in table \"{}\".",
            key_text(access, &self.slots, row, settings),
            self.parent
        ))
        .constraint(name, &self.name)
    }
}

impl Inbound {
    /// The referenced values of a row; `None` if one is NULL: then nothing points at it.
    pub fn values(&self, row: &[Value]) -> Option<Vec<Value>> {
        let values: Vec<Value> = self.slots.iter().map(|&slot| row[slot].clone()).collect();
        (!values.iter().any(Value::is_null)).then_some(values)
    }

    /// What happens on DELETE or UPDATE.
    pub fn action(&self, delete: bool) -> ReferentialAction {
        if delete { self.key.on_delete } else { self.key.on_update }
    }

    /// 23503 for a row that is still pointed at.
    pub fn violation(
        &self,
        access: &TableAccess,
        child: &Table,
        values: &[Value],
        settings: &EvalSettings,
    ) -> SqlError {
        let mut row = vec![Value::Null; access.columns.len()];
        for (&slot, value) in self.slots.iter().zip(values) {
            row[slot] = value.clone();
        }
        SqlError::new(
            SqlState::FOREIGN_KEY_VIOLATION,
            format!(
                "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
                access.table.name, self.key.name, child.name
            ),
        )
        .detail(format!(
            "{} is still referenced from table \"{}\".",
            key_text(access, &self.slots, &row, settings),
            child.name
        ))
        .constraint(&child.name, &self.key.name)
    }
}

/// Where to look for the rows of a table whose columns `slots` hold `values`: an index that starts with those columns and the
/// values in its order, or nothing better than the whole table.
pub(crate) fn child_keys(access: &TableAccess, slots: &[usize], values: &[Value]) -> Option<(usize, Keys)> {
    for ordinal in 0..=access.indexes.len() {
        let index = access.index(ordinal);
        if index.predicate.is_some() {
            continue;
        }
        let Some(head) = index.columns.get(..slots.len()) else { continue };
        let prefix: Option<Vec<Value>> = head
            .iter()
            .map(|column| {
                let slot = column.slot?;
                let at = slots.iter().position(|&s| s == slot)?;
                match fit(values[at].clone(), &access.columns[slot].ty) {
                    Fit::Exact(value) => Some(value),
                    _ => None,
                }
            })
            .collect();
        if let Some(prefix) = prefix {
            return Some((ordinal, span::equal(index, &prefix)));
        }
    }
    None
}

/// `Key (a, b)=(1, x)`: how PostgreSQL shows a key in a detail.
pub fn key_text(access: &TableAccess, slots: &[usize], row: &[Value], settings: &EvalSettings) -> String {
    let names: Vec<&str> = slots.iter().map(|&slot| access.table.columns[slot].name.as_str()).collect();
    let values: Vec<String> = slots
        .iter()
        .map(|&slot| {
            let value = &row[slot];
            if value.is_null() { "null".into() } else { value.to_text(&access.columns[slot].ty, settings) }
        })
        .collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}
