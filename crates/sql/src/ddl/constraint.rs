//! Constraints of a table: made with it, added to it, dropped from it.

use super::Run;
use super::expression::{column_at, mentions, refuse_rows};
use super::naming::{constraint_name, constraint_names};
use crate::catalog::{Check, Index, IndexColumn, Oid, Schema, Table};
use crate::exec::formula::Formulas;
use crate::exec::index::EXPRESSION_REFUSAL;
use crate::exec::target::Target;
use crate::syntax::{IndexKey, IndexValue, TableConstraint, TableConstraintKind as Kind};
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState, work};

/// What a constraint costs for each that is there before it, in steps of work.
const CONSTRAINT_UNITS: usize = 10;

impl Run<'_> {
    /// Adds a constraint to a table that has no rows yet. The table is not in the catalog, or will be put there again.
    pub(super) fn add_empty_constraint(
        &mut self,
        schema: &Schema,
        table: &mut Table,
        constraint: &TableConstraint,
    ) -> Result<(), SqlError> {
        // Its name, and what it is already covered by, are looked for among the others.
        work::step(CONSTRAINT_UNITS.saturating_mul(1 + table.indexes.len() + table.checks.len()))?;
        match &constraint.kind {
            Kind::PrimaryKey(columns) => {
                let primary = self.primary_key(schema.id, table, constraint, columns)?;
                let id = table.primary.id;
                table.primary = Index { id, ..primary };
                table.has_primary_key = true;
            }
            Kind::Unique(columns) => {
                let index = self.unique_key(schema.id, table, constraint, columns)?;
                if !is_covered(table, &index) {
                    table.indexes.push(index);
                }
            }
            Kind::Check(text) => {
                let check = self.check_constraint(table, constraint.name.as_deref(), text)?;
                table.checks.push(check);
            }
            Kind::ForeignKey(columns, references) => {
                self.add_foreign_key(table, constraint.name.as_deref(), columns, references)?;
            }
            Kind::UsingIndex { .. } => return Err(SqlError::unsupported("USING INDEX in CREATE TABLE")),
        }
        Ok(())
    }

    /// The index of a new primary key; its columns become NOT NULL.
    pub(super) fn primary_key(
        &self,
        schema: Oid,
        table: &mut Table,
        constraint: &TableConstraint,
        columns: &[String],
    ) -> Result<Index, SqlError> {
        if table.has_primary_key {
            return Err(SqlError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("multiple primary keys for table \"{}\" are not allowed", table.name),
            ));
        }
        let index = self.key_index(schema, table, constraint, columns, "pkey")?;
        for column in &index.columns {
            if let Some(column) = table.columns.iter_mut().find(|c| c.id == column.column) {
                column.nullable = false;
            }
        }
        Ok(index)
    }

    /// The index of a new UNIQUE constraint.
    pub(super) fn unique_key(
        &self,
        schema: Oid,
        table: &Table,
        constraint: &TableConstraint,
        columns: &[String],
    ) -> Result<Index, SqlError> {
        self.key_index(schema, table, constraint, columns, "key")
    }

    fn key_index(
        &self,
        schema: Oid,
        table: &Table,
        constraint: &TableConstraint,
        columns: &[String],
        suffix: &str,
    ) -> Result<Index, SqlError> {
        let name = match constraint.name.as_deref() {
            Some(name) => self.given_name(schema, table, name)?,
            None => {
                let mut parts = vec![table.name.as_str()];
                if suffix != "pkey" {
                    parts.extend(columns.iter().chain(&constraint.include).map(String::as_str));
                }
                let also: Vec<String> = own_index_names(table).collect();
                self.free_name(schema, &parts, suffix, &also)
            }
        };
        let key = |name: &String| IndexKey {
            value: IndexValue::Column(name.clone()),
            collation: None,
            operator_class: None,
            descending: false,
            nulls_first: None,
        };
        let keys: Vec<IndexKey> = columns.iter().map(key).collect();
        let columns = index_columns(table, &keys, true)?;
        let include = included_columns(table, &constraint.include, true)?;
        let mut seen = Vec::new();
        for (column, name) in columns.iter().zip(&keys) {
            if seen.contains(&column.column) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{}\" appears twice in the key", name.name()),
                ));
            }
            seen.push(column.column);
        }
        Ok(Index { id: self.new_oid()?, name, columns, unique: true, constraint: true, include, predicate: None })
    }

    /// A name that the user gave to a constraint with an index.
    fn given_name(&self, schema: Oid, table: &Table, name: &str) -> Result<String, SqlError> {
        let own = own_index_names(table).any(|n| n == name);
        if self.catalog().named(schema, name).is_some() || own {
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
        }
        free_constraint(table, name)?;
        Ok(name.to_string())
    }

    /// A new CHECK constraint, not yet checked against rows.
    pub(super) fn check_constraint(&self, table: &Table, name: Option<&str>, text: &str) -> Result<Check, SqlError> {
        let name = match name {
            Some(name) => {
                free_constraint(table, name)?;
                name.to_string()
            }
            None => {
                let named: Vec<_> = table.columns.iter().filter(|c| mentions(text, &c.name)).collect();
                match named.as_slice() {
                    [one] => constraint_name(table, &[&table.name, &one.name], "check"),
                    _ => constraint_name(table, &[&table.name], "check"),
                }
            }
        };
        refuse_rows(text, "check constraint")?;
        let expression = self.settle_times(text.to_string(), Some(table), &SqlType::Bool)?;
        Ok(Check { name, expression, not_valid: false })
    }

    /// Looks at every row: does the check hold?
    pub(super) fn validate_check(&mut self, table: &Table, check: &Check) -> Result<(), SqlError> {
        if self.holds {
            return Ok(());
        }
        let only = Table { checks: vec![check.clone()], ..all_nullable(table) };
        let target = Target::new(&only, &self.plan_context())?;
        let slots: Vec<usize> = (0..only.columns.len()).collect();
        self.each_row(&target.access, &slots, |_, row| target.check(row, None, &self.statement)).map_err(|e| {
            if e.state != SqlState::CHECK_VIOLATION {
                return e;
            }
            violated(e, table, check)
        })
    }

    /// Looks at every row: is a column nowhere NULL?
    pub(super) fn validate_not_null(&mut self, table: &Table, slot: usize) -> Result<(), SqlError> {
        if self.holds {
            return Ok(());
        }
        let target = Target::new(&all_nullable(table), &self.plan_context())?;
        self.each_row(&target.access, &[slot], |_, row| match &row[slot] {
            Value::Null => Err(contains_nulls(table, &table.columns[slot].name)),
            _ => Ok(()),
        })
    }
}

/// 23514 in the words of a constraint being added.
pub(super) fn violated(error: SqlError, table: &Table, check: &Check) -> SqlError {
    if error.is_of_the_moment() {
        return error;
    }
    error.with(|e| {
        e.message =
            format!("check constraint \"{}\" of relation \"{}\" is violated by some row", check.name, table.name);
        e.detail = None;
    })
}

/// 23502 for a column that is to be NOT NULL.
pub(super) fn contains_nulls(table: &Table, column: &str) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{}\" contains null values", table.name);
    let mut error = SqlError::new(SqlState::NOT_NULL_VIOLATION, message);
    error.table = Some(table.name.clone());
    error.column = Some(column.into());
    error
}

/// The table with nothing to check.
pub(super) fn all_nullable(table: &Table) -> Table {
    let mut table = Table { checks: Vec::new(), pending: None, maker: 0, foreign_keys: Vec::new(), ..table.clone() };
    table.columns.iter_mut().for_each(|c| c.nullable = true);
    table
}

/// 42710 if a constraint of the table has the name.
pub(super) fn free_constraint(table: &Table, name: &str) -> Result<(), SqlError> {
    if constraint_names(table).any(|n| n == name) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!("constraint \"{name}\" for relation \"{}\" already exists", table.name),
        ));
    }
    Ok(())
}

pub(super) fn own_index_names(table: &Table) -> impl Iterator<Item = String> {
    std::iter::once(&table.primary).chain(&table.indexes).map(|i| i.name.clone()).chain([table.name.clone()])
}

/// Whether the primary key has exactly these columns: `PRIMARY KEY UNIQUE` needs no second index.
fn is_covered(table: &Table, index: &Index) -> bool {
    table.has_primary_key && table.primary.columns == index.columns
}

/// 42703 for a column that an index names.
fn key_column(table: &Table, name: &str, constraint: bool) -> Result<usize, SqlError> {
    column_at(table, name).map_err(|_| {
        let named = if constraint { " named in key" } else { "" };
        SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\"{named} does not exist"))
    })
}

/// The columns of INCLUDE by name.
pub(super) fn included_columns(table: &Table, names: &[String], constraint: bool) -> Result<Vec<u16>, SqlError> {
    names.iter().map(|name| Ok(table.columns[key_column(table, name, constraint)?].id)).collect()
}

/// The columns of an index by name; those of a constraint are called so.
pub(super) fn index_columns(table: &Table, keys: &[IndexKey], constraint: bool) -> Result<Vec<IndexColumn>, SqlError> {
    if keys.len() > super::INDEX_COLUMNS_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("cannot use more than {} columns in an index", super::INDEX_COLUMNS_MAX),
        ));
    }
    let formulas = Formulas::new(table);
    let mut out: Vec<IndexColumn> = Vec::with_capacity(keys.len());
    for IndexKey { value, collation, operator_class, descending, nulls_first } in keys {
        let collation = *collation;
        let (part, ty) = match value {
            IndexValue::Column(name) => {
                let column = &table.columns[key_column(table, name, constraint)?];
                (
                    IndexColumn { nulls_first: *nulls_first, collation, ..IndexColumn::column(column.id, *descending) },
                    column.ty.clone(),
                )
            }
            IndexValue::Expression(text, _) => {
                refuse_rows(text, "index expression")?;
                let ty = formulas.value(text, EXPRESSION_REFUSAL)?.ty();
                let expression = Some(text.clone());
                (
                    IndexColumn {
                        column: 0,
                        descending: *descending,
                        nulls_first: *nulls_first,
                        expression,
                        collation,
                    },
                    ty,
                )
            }
        };
        super::column::refuse_collation(&ty, collation)?;
        if let Some(class) = operator_class {
            super::operator_class::check(class, &ty)?;
        }
        if !ty.is_orderable() {
            return Err(SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("data type {ty} has no default operator class for access method \"btree\""),
            )
            .hint("Index a column of an ordered type that holds what is searched for."));
        }
        out.push(part);
    }
    Ok(out)
}
