//! COMMENT ON TABLE and COLUMN.

use super::Run;
use crate::catalog::Relation;
use crate::syntax::Name;
use crate::{SqlError, SqlState};

impl Run<'_> {
    pub(super) fn comment(
        &mut self,
        name: &Name,
        column: Option<&str>,
        text: Option<&str>,
    ) -> Result<&'static str, SqlError> {
        if column.is_some() && self.relation(name)?.is_some_and(|relation| !matches!(*relation, Relation::Table(_))) {
            self.notice("only comments on tables and their columns are kept");
            return Ok("COMMENT");
        }
        let mut table = self.table_named(name)?;
        let place = match column {
            None => 0,
            Some(column) => table.columns.iter().find(|c| c.name == column).map(|c| c.id).ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{column}\" of relation \"{}\" does not exist", table.name),
                )
            })?,
        };
        match text {
            Some(text) => table.comments.insert(place, text.to_string()),
            None => table.comments.remove(&place),
        };
        self.put_table(table)?;
        Ok("COMMENT")
    }
}
