//! ALTER TABLE and ALTER INDEX .. SPLIT AT VALUES: range boundaries at rows of the primary key, and at entries of an index. Takes effect at once, and stays.

use super::Run;
use super::run::{no_relation, wrong_kind};
use crate::catalog::{Index, Named, ROW_ID_COLUMN, Table};
use crate::encoding::key;
use crate::syntax::Name;
use crate::transaction::Admin;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use bytes::Bytes;

impl Run<'_> {
    pub(super) fn split(&self, table: &Table, rows: &[Vec<String>]) -> Result<(), SqlError> {
        let whose = format!("the primary key of \"{}\"", table.name);
        self.split_at(table, &table.primary, &whose, rows)
    }

    pub(super) fn split_index(
        &mut self,
        name: &Name,
        if_exists: bool,
        rows: &[Vec<String>],
    ) -> Result<&'static str, SqlError> {
        let (table, index) = match self.named(name)? {
            Some(Named::Index { table, index }) => (self.table(table)?, index),
            Some(Named::Relation(_)) => return Err(wrong_kind(name, "an index")),
            None if if_exists => {
                self.notice(format!("relation \"{name}\" does not exist, skipping"));
                return Ok("ALTER INDEX");
            }
            None => return Err(no_relation(name)),
        };
        let index = std::iter::once(&table.primary).chain(&table.indexes).find(|known| known.id == index);
        let index = index.ok_or_else(|| no_relation(name))?;
        self.split_at(&table, index, &format!("the index \"{}\"", index.name), rows)?;
        Ok("ALTER INDEX")
    }

    fn split_at(&self, table: &Table, index: &Index, whose: &str, rows: &[Vec<String>]) -> Result<(), SqlError> {
        let mut keys = Vec::new();
        for row in rows {
            if row.is_empty() || row.len() > index.columns.len() {
                let given =
                    format!("SPLIT AT gives {} values, but {whose} has {} columns", row.len(), index.columns.len());
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, given));
            }
            let mut at = index.id.to_be_bytes().to_vec();
            for (text, column) in row.iter().zip(&index.columns) {
                if column.expression.is_some() {
                    let refused = format!("SPLIT AT by an expression ({whose} has one)");
                    let remedy = "Give values of the columns before it, or split another index.";
                    return Err(SqlError::unsupported(refused).hint(remedy));
                }
                let (name, ty) = match table.columns.iter().find(|c| c.id == column.column) {
                    Some(c) => (c.name.as_str(), c.ty.clone()),
                    None if column.column == ROW_ID_COLUMN => ("rowid", SqlType::Int8),
                    None => return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a key column is gone")),
                };
                let value = self.constant(text, name, &ty)?;
                if value.is_null() {
                    let null = format!("SPLIT AT gives NULL for {name}: a boundary lies at a value");
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER, null));
                }
                key::encode_value(&value, &ty, column.descending, &mut at);
            }
            keys.push(Bytes::from(at));
        }
        // From the last to the first: what is left of a split keeps its leader, what is right of it has to elect one.
        keys.sort_unstable_by(|a, b| b.cmp(a));
        keys.into_iter().try_for_each(|key| Ok(self.db.kv.admin(Admin::Split(key)).map(drop)?))
    }
}
