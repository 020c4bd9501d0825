//! A commit that was refused for a unique key which the transaction had inserted: a duplicate, not a conflict (decision 0069).

use super::active::Active;
use super::{Block, Session};
use crate::catalog::{relations, table_of};
use crate::exec::table::TableAccess;
use crate::exec::target::unique_violation;
use crate::transaction::{BeginOptions, Isolation};
use crate::types::Value;
use crate::{SqlError, SqlState};

impl Session {
    /// What the client of a block is told instead of a conflict: 23505, if the key that it is about was inserted here and is taken now.
    /// A lone statement is repeated, and finds out by itself.
    pub(super) fn or_duplicate(&self, error: SqlError, active: &Active) -> SqlError {
        let known = error.key.as_ref().filter(|key| active.claims.as_ref().is_some_and(|claims| claims.contains(key)));
        if error.state != SqlState::SERIALIZATION_FAILURE || self.block == Block::None || known.is_none() {
            return error;
        }
        match known.map(|key| self.duplicate(key, active)) {
            Some(Ok(Some(duplicate))) => duplicate,
            _ => error,
        }
    }

    /// 23505 for a key that has a value now.
    fn duplicate(&self, key: &[u8], active: &Active) -> Result<Option<SqlError>, SqlError> {
        let options = BeginOptions {
            read_only: true,
            isolation: Isolation::ReadCommitted,
            as_of: None,
            kept: None,
            ..self.begin_options(None)
        };
        let mut txn = self.db.kv.begin(&options)?;
        let Some(found) = txn.get(key)? else { return Ok(None) };
        let Some((table, secondary)) = table_of(key, relations(&active.view)) else {
            return Ok(None);
        };
        let access = TableAccess::new(&table)?;
        let place = |index: u32| access.table.indexes.iter().position(|known| known.id == index);
        let (index, stored) = match secondary.and_then(|index| place(index.id)) {
            None => (0, Some(found)),
            Some(place) => (place + 1, txn.get(&access.row_key_of_entry(key, &found)?)?),
        };
        let Some(stored) = stored else { return Ok(None) };
        let all: Vec<usize> = (0..access.columns.len()).collect();
        let mut row = vec![Value::Null; all.len()];
        access.decode(&stored, &all, &mut row)?;
        Ok(Some(unique_violation(&access, index, &row, &self.settings.eval)))
    }
}
