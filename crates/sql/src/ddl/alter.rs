//! ALTER TABLE, action by action; each sees what the ones before it did.

use super::Run;
use super::column::{Defined, check_generated, refuse_system_name};
use super::constraint::{contains_nulls, own_index_names};
use super::create_table::{of_table, row_id_index};
use super::expression::{as_text, column_missing, is_volatile, mentions, rename_column};
use super::naming::constraint_names;
use super::rename::rename_index;
use super::run::{undefined, wrong_kind};
use super::view_text::Change;
use crate::catalog::{Check, Column, Index, Oid, Relation, Table};
use crate::exec::evaluate;
use crate::exec::table::TableAccess;
use crate::exec::target::Target;
use crate::syntax::{AlterAction, ColumnDef, Name, ObjectKind, TableConstraint, TableConstraintKind};
use crate::types::Value;
use crate::{SqlError, SqlState};

impl Run<'_> {
    pub(super) fn alter_table(
        &mut self,
        name: &Name,
        if_exists: bool,
        actions: &[AlterAction],
    ) -> Result<&'static str, SqlError> {
        if if_exists && self.named(name)?.is_none() {
            self.notice(format!("relation \"{name}\" does not exist, skipping"));
            return Ok("ALTER TABLE");
        }
        if self.named(name)?.is_none() {
            return Err(undefined(ObjectKind::Table, name));
        }
        if let (Some(Relation::View(view)), [AlterAction::RenameColumn { name, to }]) =
            (self.relation(name)?.as_deref(), actions)
        {
            self.rename_view_column(view.clone(), name, to)?;
            return Ok("ALTER TABLE");
        }
        if let [AlterAction::RenameViewColumn { name: column, to }] = actions {
            let Some(Relation::View(view)) = self.relation(name)?.as_deref().cloned() else {
                return Err(wrong_kind(name, "a view"));
            };
            self.rename_view_column(view, column, to)?;
            return Ok("ALTER VIEW");
        }
        let id = match self.owner_only(name, actions)? {
            true => return Ok("ALTER TABLE"),
            false => self.table_named(name)?.id,
        };
        for action in actions {
            // What nobody makes any more does not become part of what is made now.
            let table = Table { filling: None, ..self.table(id)? };
            self.alter(table, action)?;
        }
        Ok("ALTER TABLE")
    }

    /// `ALTER TABLE v OWNER TO x` is also sent for views and sequences.
    fn owner_only(&self, name: &Name, actions: &[AlterAction]) -> Result<bool, SqlError> {
        let ignored = actions.iter().all(|a| matches!(a, AlterAction::Ignored(None) | AlterAction::Owner(_)));
        let other = ignored && self.relation(name)?.is_some_and(|r| !matches!(*r, Relation::Table(_)));
        for action in actions.iter().filter(|_| other) {
            if let AlterAction::Owner(role) = action {
                self.check_owner(role.as_deref())?;
            }
        }
        Ok(other)
    }

    pub(super) fn alter(&mut self, mut table: Table, action: &AlterAction) -> Result<(), SqlError> {
        match action {
            AlterAction::AddColumn { if_not_exists, column } => self.add_column(table, column, *if_not_exists),
            AlterAction::DropColumn { if_exists, name, cascade } => self.drop_column(table, name, *if_exists, *cascade),
            AlterAction::RenameColumn { name, to } => self.rename_column(table, name, to),
            AlterAction::RenameViewColumn { .. } => Err(wrong_kind(&Name::bare(table.name), "a view")),
            AlterAction::RenameConstraint { name, to } => {
                if !constraint_names(&table).any(|n| n == name) {
                    return Err(no_constraint(&table, name));
                }
                super::constraint::free_constraint(&table, to)?;
                rename_constraint(&mut table, name, to);
                self.put_table(table)
            }
            AlterAction::AddConstraint { constraint, not_valid } => self.add_constraint(table, constraint, *not_valid),
            AlterAction::DropConstraint { if_exists, name, cascade } => {
                self.drop_constraint(table, name, *if_exists, *cascade)
            }
            AlterAction::ValidateConstraint(name) => self.validate(table, name),
            AlterAction::AlterColumn { name, change } => self.alter_column(table, name, change),
            AlterAction::SplitAt(rows) => self.split(&table, rows),
            AlterAction::Owner(role) => self.check_owner(role.as_deref()),
            AlterAction::Retention(text) => {
                table.retention = text.as_deref().map(|text| self.retention(text)).transpose()?;
                self.put_table(table)
            }
            AlterAction::NamesIndex(name) => {
                let mut indexes = std::iter::once(&table.primary).chain(&table.indexes);
                if indexes.any(|index| index.name == *name) {
                    return Ok(());
                }
                let message = format!("index \"{name}\" for table \"{}\" does not exist", table.name);
                Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
            }
            AlterAction::Ignored(notice) => {
                if let Some(notice) = notice {
                    self.notice(notice.clone());
                }
                Ok(())
            }
        }
    }

    fn add_column(&mut self, mut table: Table, def: &ColumnDef, if_not_exists: bool) -> Result<(), SqlError> {
        if table.columns.iter().any(|c| c.name == def.name) {
            if if_not_exists {
                self.notice(format!("column \"{}\" of relation \"{}\" already exists, skipping", def.name, table.name));
                return Ok(());
            }
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" of relation \"{}\" already exists", def.name, table.name),
            ));
        }
        let Some(schema) = self.catalog().schema_by_id(table.schema).cloned() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a table's schema is gone"));
        };
        let old = table.clone();
        let mut defined = self.define_column(&mut table, def)?;
        self.own_sequence(&schema, &table, &mut defined)?;
        let Defined { mut column, .. } = defined;
        let drawn = column.identity.is_some()
            || column.generated.is_some()
            || column.default.as_deref().is_some_and(is_volatile);
        if !drawn && let Some(default) = &column.default {
            let value = self.constant(default, &column.name, &column.ty)?;
            column.missing = as_text(&value, &column.ty);
        }
        // Asked only where it matters: the look is certified, and whoever writes the first row would refuse the change, or the change him.
        let lacks = !column.nullable && column.missing.is_none();
        let empty = (drawn || lacks) && !self.has_rows(&old)?;
        if lacks && !drawn && !empty {
            return Err(contains_nulls(&table, &column.name));
        }
        table.columns.push(column);
        self.settle_generated(&mut table)?;
        check_generated(&table)?;
        if drawn && !empty {
            self.fill_new_column(&old, &mut table)?;
        } else {
            self.put_table(table.clone())?;
            Target::new(&table, &self.plan_context())?;
        }
        for constraint in def.constraints.iter().filter_map(|c| of_table(&def.name, c)) {
            let table = self.table(table.id)?;
            self.add_constraint(table, &constraint, false)?;
        }
        Ok(())
    }

    /// Rewrites a table with a new last column, whose DEFAULT is evaluated for each row.
    fn fill_new_column(&mut self, old: &Table, table: &mut Table) -> Result<(), SqlError> {
        self.renew_ids(table)?;
        self.put_table(table.clone())?;
        let target = Target::new(table, &self.plan_context())?;
        let default = target.defaults.last().cloned().flatten();
        let statement = self.statement_now();
        self.rewrite(
            &TableAccess::new(old)?,
            &target,
            Some(&mut |row| {
                let mut new = row.clone();
                new.push(match &default {
                    Some(expr) => evaluate::value(expr, row, &statement)?,
                    None => Value::Null,
                });
                Ok(new)
            }),
        )
    }

    pub(super) fn add_constraint(
        &mut self,
        mut table: Table,
        constraint: &TableConstraint,
        not_valid: bool,
    ) -> Result<(), SqlError> {
        let name = constraint.name.as_deref();
        match &constraint.kind {
            TableConstraintKind::PrimaryKey(columns) => {
                let old = table.clone();
                let primary = self.primary_key(table.schema, &mut table, constraint, columns)?;
                self.change_primary(&old, table, primary, true)
            }
            TableConstraintKind::Unique(columns) => {
                let index = self.unique_key(table.schema, &table, constraint, columns)?;
                table.indexes.push(index);
                let ordinal = table.indexes.len();
                self.put_table(table.clone())?;
                self.build_index(&table, ordinal)
            }
            TableConstraintKind::UsingIndex { primary, index } => self.use_index(table, name, *primary, index),
            TableConstraintKind::Check(text) => {
                let check = Check { not_valid, ..self.check_constraint(&table, name, text)? };
                table.checks.push(check.clone());
                self.put_table(table.clone())?;
                if not_valid {
                    Target::new(&table, &self.plan_context()).map(|_| ())
                } else {
                    self.validate_check(&table, &check)
                }
            }
            TableConstraintKind::ForeignKey(columns, references) => {
                self.add_foreign_key(&mut table, name, columns, references)?;
                table.foreign_keys.last_mut().into_iter().for_each(|key| key.not_valid = not_valid);
                self.put_table(table.clone())?;
                match table.foreign_keys.last() {
                    Some(key) if !not_valid => self.validate_foreign_key(&table, key),
                    _ => Ok(()),
                }
            }
        }
    }

    /// `ADD { UNIQUE | PRIMARY KEY } USING INDEX`
    fn use_index(&mut self, mut table: Table, name: Option<&str>, primary: bool, index: &str) -> Result<(), SqlError> {
        let Some(at) = table.indexes.iter().position(|i| i.name == index) else {
            return Err(undefined(ObjectKind::Index, &Name::bare(index)));
        };
        if !table.indexes[at].unique {
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{index}\" is not a unique index")));
        }
        let refusal = match table.indexes[at].predicate {
            Some(_) => Some(format!("\"{index}\" is a partial index")),
            None => (!table.indexes[at].is_plain()).then(|| format!("index \"{index}\" contains expressions")),
        };
        if let Some(message) = refusal {
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                .detail("Cannot create a primary key or unique constraint using such an index."));
        }
        if !primary {
            table.indexes[at].constraint = true;
            if let Some(name) = name {
                table.indexes[at].name = name.into();
            }
            return self.put_table(table);
        }
        let old = table.clone();
        let gone = table.indexes.remove(at);
        let columns: Vec<String> = gone
            .columns
            .iter()
            .filter_map(|c| Some(table.columns.iter().find(|k| k.id == c.column)?.name.clone()))
            .collect();
        self.touch().discard_index(gone.id)?;
        let kind = TableConstraintKind::PrimaryKey(columns.clone());
        let constraint = TableConstraint { name: None, kind, include: Vec::new() };
        let new = self.primary_key(table.schema, &mut table, &constraint, &columns)?;
        let named = name.unwrap_or(index).to_string();
        self.change_primary(&old, table, Index { name: named, include: gone.include, ..new }, true)
    }

    /// Gives a table another primary key: every row, and every entry that leads to it, is written anew.
    pub(super) fn change_primary(
        &mut self,
        old: &Table,
        mut table: Table,
        primary: Index,
        keyed: bool,
    ) -> Result<(), SqlError> {
        self.renew_ids(&mut table)?;
        table.primary = Index { id: table.primary.id, ..primary };
        table.has_primary_key = keyed;
        self.put_table(table.clone())?;
        let target = Target::new(&table, &self.plan_context())?;
        self.rewrite(&TableAccess::new(old)?, &target, None).map_err(|e| match &e.column {
            Some(column) if e.state == SqlState::NOT_NULL_VIOLATION => contains_nulls(&table, column),
            _ => e,
        })
    }

    fn drop_constraint(
        &mut self,
        mut table: Table,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<(), SqlError> {
        if let Some(at) = table.checks.iter().position(|c| c.name == name) {
            table.checks.remove(at);
            return self.put_table(table);
        }
        if let Some(at) = table.foreign_keys.iter().position(|f| f.name == name) {
            let key = table.foreign_keys.remove(at);
            self.forget_reference(&mut table, key.referenced_table)?;
            return self.put_table(table);
        }
        if let Some(at) = table.indexes.iter().position(|i| i.constraint && i.name == name) {
            let index = table.indexes[at].clone();
            self.release_index(&mut table, &index, cascade)?;
            table.indexes.retain(|i| i.id != index.id);
            self.touch().discard_index(index.id)?;
            return self.put_table(table);
        }
        if table.has_primary_key && table.primary.name == name {
            self.drop_views_by_key(&table, name, cascade)?;
            let index = table.primary.clone();
            self.release_index(&mut table, &index, cascade)?;
            let old = table.clone();
            let row_id = row_id_index(&table.name, table.primary.id);
            return self.change_primary(&old, table, row_id, false);
        }
        if if_exists {
            self.notice(format!("constraint \"{name}\" of relation \"{}\" does not exist, skipping", table.name));
            return Ok(());
        }
        Err(no_constraint(&table, name))
    }

    /// Foreign keys that point at a unique index that goes: refused, or dropped with it.
    pub(super) fn release_index(&mut self, table: &mut Table, index: &Index, cascade: bool) -> Result<(), SqlError> {
        let columns: Vec<u16> = index.columns.iter().map(|c| c.column).collect();
        let same =
            |i: &Index| i.columns.len() == columns.len() && i.columns.iter().all(|c| columns.contains(&c.column));
        let another = super::foreign_key::unique_indexes(table).any(|i| i.id != index.id && same(i));
        if another {
            return Ok(());
        }
        for child in table.referenced_by.clone() {
            let mut child = if child == table.id { table.clone() } else { self.table(child)? };
            let depends = |f: &crate::catalog::ForeignKey| {
                f.referenced_table == table.id
                    && f.referenced_columns.len() == columns.len()
                    && f.referenced_columns.iter().all(|c| columns.contains(c))
            };
            for key in child.foreign_keys.clone().into_iter().filter(depends) {
                if !cascade {
                    return Err(SqlError::new(
                        SqlState::DEPENDENT_OBJECTS,
                        format!(
                            "cannot drop constraint {} on table {} because other objects depend on it",
                            index.name, table.name
                        ),
                    )
                    .detail(format!("constraint {} on table {} depends on index {}", key.name, child.name, index.name))
                    .hint("Use DROP ... CASCADE to drop the dependent objects too."));
                }
                self.notice(format!("drop cascades to constraint {} on table {}", key.name, child.name));
                child.foreign_keys.retain(|f| f.id != key.id);
            }
            let own = child.id == table.id;
            self.forget_reference(&mut child, table.id)?;
            if own {
                *table = child;
            } else {
                self.put_table(child)?;
                table.referenced_by = self.table(table.id)?.referenced_by;
            }
        }
        Ok(())
    }

    fn validate(&mut self, mut table: Table, name: &str) -> Result<(), SqlError> {
        if let Some(at) = table.checks.iter().position(|c| c.name == name) {
            self.validate_check(&table, &table.checks[at])?;
            if std::mem::take(&mut table.checks[at].not_valid) {
                return self.put_table(table);
            }
            return Ok(());
        }
        if let Some(at) = table.foreign_keys.iter().position(|f| f.name == name) {
            self.validate_foreign_key(&table, &table.foreign_keys[at])?;
            if std::mem::take(&mut table.foreign_keys[at].not_valid) {
                return self.put_table(table);
            }
            return Ok(());
        }
        if constraint_names(&table).any(|n| n == name) { Ok(()) } else { Err(no_constraint(&table, name)) }
    }

    fn rename_column(&mut self, mut table: Table, name: &str, to: &str) -> Result<(), SqlError> {
        let Some(at) = table.columns.iter().position(|column| column.name == name) else {
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist")));
        };
        refuse_system_name(to)?;
        if table.columns.iter().any(|c| c.name == to) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{to}\" of relation \"{}\" already exists", table.name),
            ));
        }
        let names = table.columns.iter().map(|column| column.name.clone()).collect();
        let change = Change::Column { of: table.id, number: at, to: to.to_string() };
        let views = self.rewrite_views(table.id, &[change, Change::List { of: table.id, names }])?;
        table.columns[at].name = to.into();
        for check in &mut table.checks {
            if mentions(&check.expression, name) {
                check.expression = rename_column(&check.expression, name, to)?;
            }
        }
        let generated = table.columns.iter_mut().filter_map(|c| c.generated.as_mut());
        for text in table.indexes.iter_mut().flat_map(Index::texts_mut).chain(generated) {
            if mentions(text, name) {
                *text = rename_column(text, name, to)?;
            }
        }
        self.put_table(table)?;
        let broken = self.put_views(views)?;
        self.refuse_broken(&broken, &format!("rename column {name}"))
    }

    fn drop_column(&mut self, mut table: Table, name: &str, if_exists: bool, cascade: bool) -> Result<(), SqlError> {
        let Some(at) = table.columns.iter().position(|c| c.name == name) else {
            if if_exists {
                self.notice(format!("column \"{name}\" of relation \"{}\" does not exist, skipping", table.name));
                return Ok(());
            }
            return Err(column_missing(&table, name));
        };
        let column = table.columns[at].clone();
        let follows = |c: &&Column| c.generated.as_ref().is_some_and(|text| mentions(text, name));
        let generated: Vec<String> = table.columns.iter().filter(follows).map(|c| c.name.clone()).collect();
        if let Some(first) = generated.first() {
            if !cascade {
                let table = &table.name;
                let depends =
                    |by: &String| format!("column {by} of table {table} depends on column {name} of table {table}");
                return Err(SqlError::new(
                    SqlState::DEPENDENT_OBJECTS,
                    format!("cannot drop column {name} of table {table} because other objects depend on it"),
                )
                .detail(generated.iter().map(depends).collect::<Vec<_>>().join("\n"))
                .hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
            self.notice(format!("drop cascades to column {first} of table {}", table.name));
            let id = table.id;
            self.drop_column(table, first, false, true)?;
            return self.drop_column(self.table(id)?, name, false, true);
        }
        let uses = |i: &Index| {
            let ids = i.columns.iter().map(|c| c.column).chain(i.include.iter().copied());
            ids.into_iter().any(|id| id == column.id) || i.texts().any(|text| mentions(text, name))
        };
        for index in super::foreign_key::unique_indexes(&table.clone()).filter(|i| uses(i)) {
            self.release_index(&mut table, index, cascade)?;
        }
        table.checks.retain(|c| !mentions(&c.expression, name));
        let gone: Vec<Oid> =
            table.foreign_keys.iter().filter(|f| f.columns.contains(&column.id)).map(|f| f.referenced_table).collect();
        table.foreign_keys.retain(|f| !f.columns.contains(&column.id));
        for parent in gone {
            self.forget_reference(&mut table, parent)?;
        }
        for index in table.indexes.clone().iter().filter(|i| uses(i)) {
            self.touch().discard_index(index.id)?;
        }
        table.indexes.retain(|i| !uses(i));
        if let Some(sequence) = column.owned_sequence
            && let Some(relation) = self.catalog().relation(sequence).cloned()
        {
            // Its own default goes with it.
            table.columns[at].default = None;
            self.put_table(table.clone())?;
            let what = format!("column {name} of table {}", table.name);
            self.release_defaults(&relation, &what, cascade, &[])?;
            self.drop_views_of(sequence, &what, cascade, &[])?;
            table = self.table(table.id)?;
            self.touch().remove_relation(sequence)?;
        }
        if table.has_primary_key && uses(&table.primary) {
            let old = table.clone();
            let row_id = row_id_index(&table.name, table.primary.id);
            self.change_primary(&old, table.clone(), row_id, false)?;
            table = self.table(table.id)?;
        }
        table.columns.retain(|c| c.id != column.id);
        let id = table.id;
        let views = self.rewrite_views(id, &[Change::Unlist { of: id, number: at }])?;
        self.put_table(table)?;
        let broken = self.put_views(views)?;
        self.drop_broken(id, &broken, cascade, name)
    }
}

fn no_constraint(table: &Table, name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name),
    )
}

fn rename_constraint(table: &mut Table, name: &str, to: &str) {
    let free = !own_index_names(table).any(|n| n == to);
    if free {
        rename_index(table, name, to);
    }
    for check in table.checks.iter_mut().filter(|c| c.name == name) {
        check.name = to.into();
    }
    for key in table.foreign_keys.iter_mut().filter(|f| f.name == name) {
        key.name = to.into();
    }
}
