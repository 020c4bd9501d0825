//! Columns: from their definition to descriptors, with the sequences that they own.

use super::expression::{mentions, refuse_rows};
use super::{Run, TABLE_COLUMNS_MAX};
use crate::catalog::{Collation, Column, Identity, Relation, Schema, Sequence, Table};
use crate::exec::formula::Formulas;
use crate::identifier::quote_qualified;
use crate::syntax::{ColumnConstraintKind as Kind, ColumnDef, SequenceOptions, quote_literal};
use crate::types::{DeclaredType, SqlType};
use crate::{SqlError, SqlState};

/// A column, and what else its definition asks for.
pub(super) struct Defined {
    pub(super) column: Column,
    /// A sequence to create for it.
    pub(super) sequence: Option<SequenceOptions>,
    /// SERIAL: the sequence is its DEFAULT.
    pub(super) serial: bool,
}

impl Run<'_> {
    /// The column of a definition, with the next id of its table; key and foreign constraints are left to the caller.
    pub(super) fn define_column(&self, table: &mut Table, def: &ColumnDef) -> Result<Defined, SqlError> {
        if table.columns.iter().any(|c| c.name == def.name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", def.name),
            ));
        }
        if table.columns.len() >= TABLE_COLUMNS_MAX {
            return Err(SqlError::new(
                SqlState::TOO_MANY_COLUMNS,
                format!("tables can have at most {TABLE_COLUMNS_MAX} columns"),
            ));
        }
        let declared = DeclaredType::from_ast(&def.ty)?;
        refuse_pseudo(&def.name, &declared.ty)?;
        refuse_collation(&declared.ty, def.collation)?;
        let mut column = Column {
            id: table.next_column,
            name: def.name.clone(),
            ty: declared.ty,
            nullable: !declared.serial,
            default: None,
            missing: None,
            identity: None,
            owned_sequence: None,
            generated: None,
            stored: None,
            collation: def.collation.filter(|c| *c != Collation::Default),
        };
        let mut sequence = declared.serial.then(SequenceOptions::default);
        apply(&mut column, def, &mut sequence)?;
        refuse_two_values(&table.name, &column)?;
        let settled = |text| self.settle_times(self.settle_sequences(text)?, None, &column.ty);
        column.default = column.default.take().map(settled).transpose()?;
        table.next_column += 1;
        Ok(Defined { column, sequence, serial: declared.serial })
    }

    /// Creates the sequence that a column owns.
    pub(super) fn own_sequence(
        &mut self,
        schema: &Schema,
        table: &Table,
        defined: &mut Defined,
    ) -> Result<(), SqlError> {
        let Some(options) = defined.sequence.take() else { return Ok(()) };
        let name = match &options.name {
            Some(name) => name.name.clone(),
            None => self.free_name(schema.id, &[&table.name, &defined.column.name], "seq", &[]),
        };
        let id = self.new_oid()?;
        let sequence = Sequence {
            id,
            database: schema.database,
            schema: schema.id,
            name: name.clone(),
            ty: defined.column.ty.clone(),
            owner: Some((table.id, defined.column.id)),
            ..super::sequence::blank()
        };
        let sequence = super::sequence::with_options(sequence, &options, true)?;
        self.touch().put_relation(Relation::Sequence(sequence))?;
        defined.column.owned_sequence = Some(id);
        if defined.serial {
            defined.column.default = Some(sequence_default(&schema.name, &name));
        }
        Ok(())
    }
}

/// `nextval('s'::regclass)`
pub(super) fn sequence_default(schema: &str, name: &str) -> String {
    format!("nextval({})", sequence_literal(schema, name))
}

/// A sequence as an argument of `nextval`: under every search path the same one.
pub(super) fn sequence_literal(schema: &str, name: &str) -> String {
    format!("{}::regclass", quote_literal(&quote_qualified(Some(schema), name)))
}

/// Whether a column of this type draws from a sequence of its own.
pub(super) fn is_serial(ty: &sqlparser::ast::DataType) -> bool {
    DeclaredType::from_ast(ty).is_ok_and(|declared| declared.serial)
}

/// 42P16 for types that no column can have.
pub(super) fn refuse_pseudo(name: &str, ty: &SqlType) -> Result<(), SqlError> {
    refuse_system_name(name)?;
    if matches!(ty, SqlType::Record | SqlType::Void | SqlType::Unknown) {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("column \"{name}\" has pseudo-type {ty}"),
        ));
    }
    Ok(())
}

fn apply(column: &mut Column, def: &ColumnDef, sequence: &mut Option<SequenceOptions>) -> Result<(), SqlError> {
    let (mut not_null, mut null) = (false, false);
    for constraint in &def.constraints {
        match &constraint.kind {
            Kind::NotNull => not_null = true,
            Kind::Null => null = true,
            Kind::PrimaryKey => column.nullable = false,
            Kind::Default(text) => {
                if column.default.is_some() || sequence.is_some() {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("multiple default values specified for column \"{}\"", def.name),
                    ));
                }
                column.default = (!text.eq_ignore_ascii_case("NULL")).then(|| text.clone());
            }
            Kind::Identity(identity, options) => {
                add_identity(column, *identity)?;
                *sequence = Some(options.clone());
            }
            Kind::Generated(text) => column.generated = Some(text.clone()),
            Kind::Unique | Kind::Check(_) | Kind::References(_) => {}
        }
    }
    if not_null && null {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("conflicting NULL/NOT NULL declarations for column \"{}\"", def.name),
        ));
    }
    column.nullable &= !not_null;
    Ok(())
}

/// Names that stand for something in every row of a table, whether it is there to be asked for or not.
pub(super) fn refuse_system_name(name: &str) -> Result<(), SqlError> {
    if !["tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"].contains(&name) {
        return Ok(());
    }
    let message = format!("column name \"{name}\" conflicts with a system column name");
    Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message))
}

/// Makes a column an identity column.
pub(super) fn add_identity(column: &mut Column, identity: Identity) -> Result<(), SqlError> {
    if !matches!(column.ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER,
            "identity column type must be smallint, integer, or bigint",
        ));
    }
    if column.default.is_some() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("both default and identity specified for column \"{}\"", column.name),
        ));
    }
    column.identity = Some(identity);
    column.nullable = false;
    Ok(())
}

/// 42601 for a generated column that says where else its value comes from.
fn refuse_two_values(table: &str, column: &Column) -> Result<(), SqlError> {
    let other = match (&column.generated, &column.default, column.identity) {
        (Some(_), _, Some(_)) => "identity",
        (Some(_), Some(_), None) => "default",
        _ => return Ok(()),
    };
    Err(SqlError::new(
        SqlState::SYNTAX_ERROR,
        format!("both {other} and generation expression specified for column \"{}\" of table \"{table}\"", column.name),
    ))
}

impl Run<'_> {
    /// Puts the times in the expressions of generated columns into one form.
    pub(super) fn settle_generated(&self, table: &mut Table) -> Result<(), SqlError> {
        for at in 0..table.columns.len() {
            if let Some(text) = table.columns[at].generated.take() {
                let ty = table.columns[at].ty.clone();
                table.columns[at].generated = Some(self.settle_times(text, Some(table), &ty)?);
            }
        }
        Ok(())
    }
}

/// Checks the expressions of a table's generated columns.
///
/// # Errors
/// 42P17 for one that is not immutable or reads a generated column; what binding finds wrong.
pub(super) fn check_generated(table: &Table) -> Result<(), SqlError> {
    for column in &table.columns {
        let Some(text) = &column.generated else { continue };
        refuse_rows(text, "column generation expression")?;
        if let Some(read) = table.columns.iter().find(|c| c.generated.is_some() && mentions(text, &c.name)) {
            return Err(SqlError::new(
                SqlState::INVALID_OBJECT_DEFINITION,
                format!("cannot use generated column \"{}\" in column generation expression", read.name),
            )
            .detail("A generated column cannot reference another generated column."));
        }
        Formulas::new(table).assigned(text, &column.name, &column.ty)?;
    }
    Ok(())
}

/// Only texts are collated.
pub(super) fn refuse_collation(ty: &SqlType, collation: Option<Collation>) -> Result<(), SqlError> {
    if collation.is_none() || ty.is_collatable() {
        return Ok(());
    }
    let message = format!("collations are not supported by type {ty}");
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint("Leave COLLATE out."))
}
