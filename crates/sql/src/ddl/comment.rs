//! COMMENT ON TABLE and COLUMN.

use super::Run;
use crate::catalog::Relation;
use crate::syntax::Name;
use crate::{SqlError, SqlState};

/// Columns of a sequence, as a relation.
const SEQUENCE_COLUMNS: [&str; 3] = ["last_value", "log_cnt", "is_called"];

impl Run<'_> {
    pub(super) fn comment(
        &mut self,
        name: &Name,
        column: Option<&str>,
        text: Option<&str>,
    ) -> Result<&'static str, SqlError> {
        if let Some(column) = column
            && let Some(relation) = self.relation(name)?
        {
            match &*relation {
                Relation::Table(_) => {}
                Relation::View(view) if view.columns.iter().any(|(name, _)| name == column) => {
                    self.notice("only comments on tables and their columns are kept");
                    return Ok("COMMENT");
                }
                Relation::View(view) => return Err(no_column(column, &view.name)),
                Relation::Sequence(sequence) if SEQUENCE_COLUMNS.contains(&column) => {
                    let message = format!("cannot set comment on relation \"{}\"", sequence.name);
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                        .detail("This operation is not supported for sequences."));
                }
                Relation::Sequence(sequence) => return Err(no_column(column, &sequence.name)),
            }
        }
        let mut table = self.table_named(name)?;
        let place = match column {
            None => 0,
            Some(column) => {
                let found = table.columns.iter().find(|c| c.name == column);
                found.ok_or_else(|| no_column(column, &table.name))?.id
            }
        };
        match text {
            Some(text) => table.comments.insert(place, text.to_string()),
            None => table.comments.remove(&place),
        };
        self.put_table(table)?;
        Ok("COMMENT")
    }
}

fn no_column(column: &str, relation: &str) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{relation}\" does not exist");
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}
