//! ALTER TABLE .. SPLIT AT VALUES: range boundaries at rows of the primary key. Takes effect at once, and stays.

use super::Run;
use crate::catalog::{ROW_ID_COLUMN, Table};
use crate::encoding::key;
use crate::transaction::Admin;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use bytes::Bytes;

impl Run<'_> {
    pub(super) fn split(&self, table: &Table, rows: &[Vec<String>]) -> Result<(), SqlError> {
        let mut keys = Vec::new();
        for row in rows {
            if row.is_empty() || row.len() > table.primary.columns.len() {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!(
                        "SPLIT AT gives {} values, but the primary key of \"{}\" has {} columns",
                        row.len(),
                        table.name,
                        table.primary.columns.len()
                    ),
                ));
            }
            let mut at = table.primary.id.to_be_bytes().to_vec();
            for (text, column) in row.iter().zip(&table.primary.columns) {
                let (name, ty) = match table.columns.iter().find(|c| c.id == column.column) {
                    Some(c) => (c.name.as_str(), c.ty.clone()),
                    None if column.column == ROW_ID_COLUMN => ("rowid", SqlType::Int8),
                    None => return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a key column is gone")),
                };
                let value = self.constant(text, name, &ty)?;
                key::encode_value(&value, &ty, column.descending, &mut at);
            }
            keys.push(Bytes::from(at));
        }
        // From the last to the first: what is left of a split keeps its leader, what is right of it has to elect one.
        keys.sort_unstable_by(|a, b| b.cmp(a));
        keys.into_iter().try_for_each(|key| Ok(self.db.kv.admin(Admin::Split(key)).map(drop)?))
    }
}
