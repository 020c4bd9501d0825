//! ALTER TABLE .. ALTER COLUMN.

use super::Run;
use super::column::{add_identity, refuse_pseudo};
use super::expression::{column_at, mentions};
use crate::catalog::{Collation, Column, Relation, Sequence, Table};
use crate::exec::evaluate;
use crate::exec::table::TableAccess;
use crate::exec::target::Target;
use crate::identifier::quote_identifier;
use crate::syntax::{ColumnChange, SequenceOptions};
use crate::types::SqlType;
use crate::{SqlError, SqlState};

impl Run<'_> {
    pub(super) fn alter_column(&mut self, mut table: Table, name: &str, change: &ColumnChange) -> Result<(), SqlError> {
        let at = column_at(&table, name)?;
        if table.columns[at].generated.is_some()
            && matches!(change, ColumnChange::SetDefault(_) | ColumnChange::DropDefault | ColumnChange::AddIdentity(..))
        {
            let error = SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("column \"{name}\" of relation \"{}\" is a generated column", table.name),
            );
            return Err(match change {
                ColumnChange::DropDefault => {
                    error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.")
                }
                _ => error,
            });
        }
        match change {
            ColumnChange::SetDefault(text) => {
                if table.columns[at].identity.is_some() {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("column \"{name}\" of relation \"{}\" is an identity column", table.name),
                    )
                    .hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."));
                }
                table.columns[at].default = match text.eq_ignore_ascii_case("NULL") {
                    true => None,
                    false => {
                        let text = self.settle_sequences(text.clone())?;
                        Some(self.settle_times(text, None, &table.columns[at].ty)?)
                    }
                };
                self.put_table(table.clone())?;
                Target::new(&table, &self.plan_context()).map(|_| ())
            }
            ColumnChange::DropDefault => {
                table.columns[at].default = None;
                self.put_table(table)
            }
            ColumnChange::SetNotNull => {
                if table.columns[at].nullable {
                    self.validate_not_null(&table, at)?;
                    table.columns[at].nullable = false;
                }
                self.put_table(table)
            }
            ColumnChange::DropNotNull => {
                drop_not_null(&mut table, at)?;
                self.put_table(table)
            }
            ColumnChange::Type { ty, collation, using } => {
                // The sequence of an identity column is of the column's type.
                let drawn = self.identity_sequence(&table, at).ok();
                let drawn_as = SequenceOptions { ty: Some(ty.clone()), ..SequenceOptions::default() };
                let ty = SqlType::from_ast(ty)?;
                super::column::refuse_collation(&ty, *collation)?;
                table.columns[at].collation = collation.filter(|said| *said != Collation::Default);
                self.alter_type(table, at, ty, using.as_deref())?;
                drawn.map_or(Ok(()), |sequence| self.change_sequence(sequence, &drawn_as))
            }
            ColumnChange::AddIdentity(identity, options) => {
                if table.columns[at].identity.is_some() {
                    return Err(SqlError::new(
                        SqlState::NOT_IN_PREREQUISITE_STATE,
                        format!("column \"{name}\" of relation \"{}\" is already an identity column", table.name),
                    ));
                }
                self.add_column_identity(table, at, *identity, options)
            }
            ColumnChange::SetIdentity(identity, options) => {
                let sequence = self.identity_sequence(&table, at)?;
                if let Some(identity) = identity {
                    table.columns[at].identity = Some(*identity);
                    self.put_table(table)?;
                }
                self.change_sequence(sequence, options)
            }
            ColumnChange::DropIdentity { if_exists } => {
                if table.columns[at].identity.is_none() && *if_exists {
                    self.notice(format!(
                        "column \"{name}\" of relation \"{}\" is not an identity column, skipping",
                        table.name
                    ));
                    return Ok(());
                }
                let sequence = self.identity_sequence(&table, at)?;
                // Its own default draws from it by another name.
                let what = format!("sequence {}", sequence.name);
                self.release_defaults(&Relation::Sequence(sequence.clone()), &what, false, &[])?;
                self.drop_views_of(sequence.id, &what, false, &[])?;
                table.columns[at].identity = None;
                table.columns[at].owned_sequence = None;
                self.touch().remove_relation(sequence.id)?;
                self.put_table(table)
            }
            ColumnChange::DropExpression { if_exists } => {
                if table.columns[at].generated.take().is_some() {
                    return self.put_table(table);
                }
                let message =
                    format!("column \"{name}\" of relation \"{}\" is not a stored generated column", table.name);
                if !if_exists {
                    return Err(SqlError::new(SqlState::NOT_IN_PREREQUISITE_STATE, message));
                }
                self.notice(format!("{message}, skipping"));
                Ok(())
            }
            ColumnChange::Ignored => Ok(()),
        }
    }

    fn add_column_identity(
        &mut self,
        mut table: Table,
        at: usize,
        identity: crate::catalog::Identity,
        options: &SequenceOptions,
    ) -> Result<(), SqlError> {
        if table.columns[at].nullable {
            return Err(SqlError::new(
                SqlState::NOT_IN_PREREQUISITE_STATE,
                format!(
                    "column \"{}\" of relation \"{}\" must be declared NOT NULL before identity can be added",
                    table.columns[at].name, table.name
                ),
            ));
        }
        add_identity(&mut table.columns[at], identity)?;
        let Some(schema) = self.catalog().schema_by_id(table.schema).cloned() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a table's schema is gone"));
        };
        let column = table.columns[at].clone();
        let mut defined = super::column::Defined { column, sequence: Some(options.clone()), serial: false };
        self.own_sequence(&schema, &table, &mut defined)?;
        table.columns[at] = defined.column;
        self.put_table(table)
    }

    fn identity_sequence(&self, table: &Table, at: usize) -> Result<Sequence, SqlError> {
        let column = &table.columns[at];
        let sequence = column.identity.and(column.owned_sequence).and_then(|id| self.owned(id));
        sequence.ok_or_else(|| {
            SqlError::new(
                SqlState::NOT_IN_PREREQUISITE_STATE,
                format!("column \"{}\" of relation \"{}\" is not an identity column", column.name, table.name),
            )
        })
    }

    fn alter_type(&mut self, mut table: Table, at: usize, ty: SqlType, using: Option<&str>) -> Result<(), SqlError> {
        let name = table.columns[at].name.clone();
        refuse_pseudo(&name, &ty)?;
        let from = table.columns[at].ty.clone();
        let id = table.columns[at].id;
        // The collation says nothing of the values.
        if from == ty && using.is_none() {
            return self.put_table(table);
        }
        let follows = |c: &&Column| c.generated.as_ref().is_some_and(|text| mentions(text, &name));
        if let Some(generated) = table.columns.iter().find(follows) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot alter type of a column used by a generated column",
            )
            .detail(format!("Column \"{name}\" is used by generated column \"{}\".", generated.name)));
        }
        self.refuse_keys_between_tables(&table, id)?;
        if using.is_none() && widens(&from, &ty) {
            // Stored alike: rows and entries stay.
            self.refuse_read(&table, at)?;
            table.columns[at].ty = ty;
            self.put_table(table.clone())?;
            Target::new(&table, &self.plan_context())?;
            return self.refuse_retyped(&table, &name);
        }
        let text = using.map_or_else(|| quote_identifier(&name), str::to_string);
        let value = self.over_row(&text, &table, &name, &ty).map_err(|e| match using {
            None => SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("column \"{name}\" cannot be cast automatically to type {ty}"),
            )
            .hint(format!("You might need to specify \"USING {}::{ty}\".", quote_identifier(&name))),
            Some(_) => e,
        })?;
        self.refuse_read(&table, at)?;
        let old = table.clone();
        // Its id, and with it what refers to the column, stays: the rows get keys of their own.
        table.columns[at] = Column { ty, missing: None, ..table.columns[at].clone() };
        self.renew_ids(&mut table)?;
        self.put_table(table.clone())?;
        let target = Target::new(&table, &self.plan_context())?;
        let statement = self.statement.clone();
        self.rewrite(
            &TableAccess::new(&old)?,
            &target,
            Some(&mut |row| {
                let mut new = row.clone();
                new[at] = evaluate::value(&value, row, &statement)?;
                Ok(new)
            }),
        )?;
        self.refuse_retyped(&table, &name)
    }

    fn refuse_keys_between_tables(&self, table: &Table, column: u16) -> Result<(), SqlError> {
        let own = table.foreign_keys.iter().find(|f| f.columns.contains(&column));
        let refuse = |name: &str| {
            Err(SqlError::unsupported(format!("changing the type of a column of the foreign key \"{name}\""))
                .hint("Drop the foreign key, change both columns, and add it again."))
        };
        if let Some(key) = own {
            return refuse(&key.name);
        }
        for child in &table.referenced_by {
            let child = self.table(*child)?;
            let other = child
                .foreign_keys
                .iter()
                .find(|f| f.referenced_table == table.id && f.referenced_columns.contains(&column));
            if let Some(key) = other {
                return refuse(&key.name);
            }
        }
        Ok(())
    }
}

fn drop_not_null(table: &mut Table, at: usize) -> Result<(), SqlError> {
    let column = &table.columns[at];
    let keyed = table.has_primary_key && table.primary.columns.iter().any(|c| c.column == column.id);
    if keyed {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("column \"{}\" is in a primary key", column.name),
        ));
    }
    if column.identity.is_some() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("column \"{}\" of relation \"{}\" is an identity column", column.name, table.name),
        ));
    }
    table.columns[at].nullable = true;
    Ok(())
}

/// Whether every value of one type is a value of the other, written the same way.
pub(super) fn widens(from: &SqlType, to: &SqlType) -> bool {
    match (from, to) {
        (SqlType::Varchar(_) | SqlType::Text, SqlType::Text | SqlType::Varchar(None)) => true,
        (SqlType::Varchar(Some(a)), SqlType::Varchar(Some(b))) => a <= b,
        (SqlType::Numeric(_), SqlType::Numeric(None)) => true,
        _ => false,
    }
}
