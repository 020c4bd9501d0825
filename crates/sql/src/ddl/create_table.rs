//! CREATE TABLE.

use super::Run;
use super::column::check_generated;
use crate::catalog::{Index, IndexColumn, Oid, ROW_ID_COLUMN, Schema, Table};
use crate::exec::target::Target;
use crate::syntax::{
    ColumnConstraint, ColumnConstraintKind as Kind, CreateTable, TableConstraint, TableConstraintKind,
};
use crate::{SqlError, SqlState};

/// A table without columns, whose rows lie under a hidden id.
pub(super) fn empty_table(schema: &Schema, name: &str, id: Oid, primary: Oid) -> Table {
    Table {
        id,
        database: schema.database,
        schema: schema.id,
        name: name.into(),
        columns: Vec::new(),
        primary: row_id_index(name, primary),
        has_primary_key: false,
        building: None,
        pending: None,
        filling: None,
        gated: false,
        maker: 0,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        next_column: 1,
        comments: Default::default(),
        retention: None,
        version: 0,
    }
}

/// The index of a table without a primary key.
pub(super) fn row_id_index(table: &str, id: Oid) -> Index {
    Index {
        id,
        name: format!("{table}_rowid"),
        columns: vec![IndexColumn::column(ROW_ID_COLUMN, false)],
        unique: true,
        constraint: false,
        include: Vec::new(),
        predicate: None,
    }
}

impl Run<'_> {
    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<&'static str, SqlError> {
        let schema = self.schema_for(&create.name)?;
        if self.taken(&schema, &create.name.name, create.if_not_exists)? {
            return Ok("CREATE TABLE");
        }
        for ignored in &create.ignored {
            self.notice(format!("{ignored} has no effect here"));
        }
        let (id, primary) = (self.new_oid()?, self.new_oid()?);
        let mut table = empty_table(&schema, &create.name.name, id, primary);
        table.retention = create.retention.as_deref().map(|text| self.retention(text)).transpose()?;
        for def in &create.columns {
            let mut defined = self.define_column(&mut table, def)?;
            self.own_sequence(&schema, &table, &mut defined)?;
            table.columns.push(defined.column);
        }
        self.settle_generated(&mut table)?;
        check_generated(&table)?;
        let mut constraints = Vec::new();
        for def in &create.columns {
            constraints.extend(def.constraints.iter().filter_map(|c| of_table(&def.name, c)));
        }
        constraints.extend(create.constraints.iter().cloned());
        // Keys first: foreign keys of the table on itself need them, whatever the order.
        constraints.sort_by_key(|c| order(&c.kind));
        check_one_primary_key(&table.name, &constraints)?;
        for constraint in &constraints {
            self.add_empty_constraint(&schema, &mut table, constraint)?;
        }
        for index in &create.indexes {
            self.add_empty_index(&schema, &mut table, index)?;
        }
        self.fresh.push(table.id);
        self.put_table(table.clone())?;
        // Binds every DEFAULT and CHECK: a wrong one is refused now, not by the first INSERT.
        Target::new(&table, &self.plan_context())?;
        Ok("CREATE TABLE")
    }
}

fn order(kind: &TableConstraintKind) -> u8 {
    match kind {
        TableConstraintKind::PrimaryKey(_) => 0,
        TableConstraintKind::Unique(_) | TableConstraintKind::UsingIndex { .. } => 1,
        TableConstraintKind::Check(_) => 2,
        TableConstraintKind::ForeignKey(..) => 3,
    }
}

fn check_one_primary_key(table: &str, constraints: &[TableConstraint]) -> Result<(), SqlError> {
    let keys = constraints.iter().filter(|c| matches!(c.kind, TableConstraintKind::PrimaryKey(_))).count();
    if keys > 1 {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("multiple primary keys for table \"{table}\" are not allowed"),
        ));
    }
    Ok(())
}

/// A column's constraint as one of its table.
pub(super) fn of_table(column: &str, constraint: &ColumnConstraint) -> Option<TableConstraint> {
    let columns = vec![column.to_string()];
    let kind = match &constraint.kind {
        Kind::PrimaryKey => TableConstraintKind::PrimaryKey(columns),
        Kind::Unique => TableConstraintKind::Unique(columns),
        Kind::Check(text) => TableConstraintKind::Check(text.clone()),
        Kind::References(references) => TableConstraintKind::ForeignKey(columns, references.clone()),
        Kind::NotNull | Kind::Null | Kind::Default(_) | Kind::Identity(..) | Kind::Generated(_) => return None,
    };
    Some(TableConstraint { name: constraint.name.clone(), kind, include: Vec::new() })
}
