//! DROP, with what depends on what goes.

use super::Run;
use super::run::{undefined, wrong_kind};
use crate::catalog::snapshot::{self, id_of};
use crate::catalog::{Named, Oid, Relation, Sequence, Table, View};
use crate::identifier::quote_qualified;
use crate::syntax::{Name, ObjectKind};
use crate::{SqlError, SqlState, work};

/// What a look for a name costs, in steps of work.
const NAME_UNITS: usize = 100;

impl Run<'_> {
    pub(super) fn drop(
        &mut self,
        kind: ObjectKind,
        names: &[Name],
        if_exists: bool,
        cascade: bool,
    ) -> Result<&'static str, SqlError> {
        let mut going = Vec::new();
        for name in names {
            work::step(NAME_UNITS)?;
            match kind {
                ObjectKind::Table | ObjectKind::View | ObjectKind::Sequence => {
                    going.extend(self.to_drop(kind, name, if_exists)?);
                }
                ObjectKind::Index => self.drop_index(name, if_exists, cascade)?,
                ObjectKind::Schema => self.drop_schema(&name.name, if_exists, cascade)?,
                ObjectKind::Database => self.drop_database(&name.name, if_exists)?,
            }
        }
        let together: Vec<Oid> = going.iter().map(id_of).collect();
        for relation in &going {
            // What depends on it is looked for among all.
            work::step(NAME_UNITS + going.len())?;
            self.drop_relation(relation, cascade, &together)?;
        }
        Ok(match kind {
            ObjectKind::Table => "DROP TABLE",
            ObjectKind::View => "DROP VIEW",
            ObjectKind::Index => "DROP INDEX",
            ObjectKind::Sequence => "DROP SEQUENCE",
            ObjectKind::Schema => "DROP SCHEMA",
            ObjectKind::Database => "DROP DATABASE",
        })
    }

    fn missing(&mut self, kind: ObjectKind, name: &Name, if_exists: bool) -> Result<(), SqlError> {
        if if_exists {
            self.notice(format!("{} \"{name}\" does not exist, skipping", kind.word()));
            return Ok(());
        }
        let mut error = undefined(kind, name);
        if matches!(kind, ObjectKind::Table | ObjectKind::View | ObjectKind::Sequence) {
            error.message = format!("{} \"{name}\" does not exist", kind.word());
        }
        Err(error)
    }

    fn to_drop(&mut self, kind: ObjectKind, name: &Name, if_exists: bool) -> Result<Option<Relation>, SqlError> {
        let Some(named) = self.named(name)? else {
            self.missing(kind, name, if_exists)?;
            return Ok(None);
        };
        let relation = match named {
            Named::Relation(id) => self.catalog().relation(id).map(|r| (**r).clone()),
            Named::Index { .. } => None,
        };
        let (wanted, hint) = match (kind, &relation) {
            (ObjectKind::Table, Some(Relation::Table(_)))
            | (ObjectKind::View, Some(Relation::View(_)))
            | (ObjectKind::Sequence, Some(Relation::Sequence(_))) => return Ok(relation),
            (ObjectKind::Table, _) => ("a table", hint_for(&relation)),
            (ObjectKind::View, _) => ("a view", hint_for(&relation)),
            _ => ("a sequence", hint_for(&relation)),
        };
        Err(wrong_kind(name, wanted).hint(hint))
    }

    /// Drops a relation; what depends on it and goes `together` with it by the same statement is no hindrance.
    fn drop_relation(&mut self, relation: &Relation, cascade: bool, together: &[Oid]) -> Result<(), SqlError> {
        match relation {
            // Another name of the same statement may have taken it along.
            _ if self.catalog().relation(id_of(relation)).is_none() => Ok(()),
            Relation::Table(table) => self.drop_table(table.id, cascade, together),
            Relation::View(view) => {
                if !cascade {
                    self.drop_views_of(view.id, &format!("view {}", view.name), false, together)?;
                }
                let what = format!("view {}", view.name);
                self.release_defaults(relation, &asked(&what, together), cascade, together)?;
                // Gone first: whatever reads it, by whatever ways, is looked at once.
                self.touch().remove_relation(view.id)?;
                self.drop_views_of(view.id, &format!("view {}", view.name), cascade, together)
            }
            Relation::Sequence(sequence) => {
                let what = format!("sequence {}", sequence.name);
                self.release_defaults(relation, &asked(&what, together), cascade, together)?;
                if let Some((table, column)) = sequence.owner {
                    self.release_sequence(table, column, sequence)?;
                }
                self.drop_views_of(sequence.id, &what, cascade, together)?;
                self.touch().remove_relation(sequence.id)
            }
        }
    }

    /// Takes the defaults that name a relation away, or refuses; `what` is to be dropped, with who goes by the same statement.
    pub(super) fn release_defaults(
        &mut self,
        relation: &Relation,
        what: &str,
        cascade: bool,
        together: &[Oid],
    ) -> Result<(), SqlError> {
        let named = format!("{} {}", kind_of(relation), snapshot::name_of(relation));
        for (mut table, columns) in self.drawing_from(relation)? {
            if together.contains(&table.id) {
                continue;
            }
            let name = table.name.clone();
            for column in table.columns.iter_mut().filter(|column| columns.contains(&column.id)) {
                let default = format!("default value for column {} of table {name}", column.name);
                if !cascade {
                    return Err(dependents(what, &format!("{default} depends on {named}")));
                }
                column.default = None;
                self.notice(format!("drop cascades to {default}"));
            }
            self.put_table(table)?;
        }
        Ok(())
    }

    fn release_sequence(&mut self, table: Oid, column: u16, sequence: &Sequence) -> Result<(), SqlError> {
        let name = &sequence.name;
        let Some(mut table) = self.catalog().table(table).cloned() else { return Ok(()) };
        let table_name = table.name.clone();
        let Some(column) = table.columns.iter_mut().find(|c| c.id == column) else { return Ok(()) };
        if column.identity.is_some() {
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS,
                format!("cannot drop sequence {name} because column {} of table {table_name} requires it", column.name),
            )
            .hint(format!("You can drop column {} of table {table_name} instead.", column.name)));
        }
        column.owned_sequence = None;
        self.put_table(table)
    }

    fn drop_table(&mut self, id: Oid, cascade: bool, together: &[Oid]) -> Result<(), SqlError> {
        let table = self.table(id)?;
        for child in table.referenced_by.iter().filter(|c| **c != id) {
            let mut child = self.table(*child)?;
            let goes_too = together.contains(&child.id);
            for key in child.foreign_keys.clone().iter().filter(|f| f.referenced_table == id) {
                if !cascade && !goes_too {
                    return Err(dependents(
                        &asked(&format!("table {}", table.name), together),
                        &format!("constraint {} on table {} depends on table {}", key.name, child.name, table.name),
                    ));
                }
                if !goes_too {
                    self.notice(format!("drop cascades to constraint {} on table {}", key.name, child.name));
                }
                child.foreign_keys.retain(|f| f.id != key.id);
            }
            self.put_table(child)?;
        }
        let what = format!("table {}", table.name);
        self.drop_views_of(id, &what, cascade, together)?;
        let along: Vec<Oid> = together.iter().copied().chain([id]).collect();
        let owned = table.columns.iter().filter_map(|column| column.owned_sequence);
        for sequence in owned.clone() {
            self.drop_views_of(sequence, &what, cascade, together)?;
        }
        for named in owned.chain([id]) {
            if let Some(relation) = self.catalog().relation(named).cloned() {
                self.release_defaults(&relation, &asked(&what, together), cascade, &along)?;
            }
        }
        self.discard_table(table)
    }

    /// Removes a table that nothing else needs, its sequences and its data.
    fn discard_table(&mut self, table: Table) -> Result<(), SqlError> {
        let parents: Vec<Oid> = table.foreign_keys.iter().map(|f| f.referenced_table).collect();
        let mut bare = Table { foreign_keys: Vec::new(), ..table };
        for parent in parents {
            self.forget_reference(&mut bare, parent)?;
        }
        for sequence in bare.columns.iter().filter_map(|c| c.owned_sequence) {
            self.touch().remove_relation(sequence)?;
        }
        for index in std::iter::once(&bare.primary).chain(&bare.indexes) {
            self.touch().discard_index(index.id)?;
        }
        self.touch().remove_relation(bare.id)
    }

    pub(super) fn views_of(&self, id: Oid) -> Vec<View> {
        let all = self.catalog().relations(self.database.id).into_iter();
        all.filter_map(|r| match &*r {
            Relation::View(view) if view.reads.contains(&id) => Some(view.clone()),
            _ => None,
        })
        .collect()
    }

    /// Views that read a relation that goes: refused, or dropped with it.
    pub(super) fn drop_views_of(
        &mut self,
        id: Oid,
        what: &str,
        cascade: bool,
        together: &[Oid],
    ) -> Result<(), SqlError> {
        for view in self.views_of(id).into_iter().filter(|view| !together.contains(&view.id)) {
            if !cascade {
                return Err(dependents(&asked(what, together), &format!("view {} depends on {what}", view.name)));
            }
            self.drop_view_too(&view, together)?;
        }
        Ok(())
    }

    /// A view goes with what it reads, and those that read it.
    fn drop_view_too(&mut self, view: &View, together: &[Oid]) -> Result<(), SqlError> {
        // Another of those that go may have taken it along, or, in an old catalog, the view itself: it was made to read itself.
        if self.catalog().relation(view.id).is_none() {
            return Ok(());
        }
        self.notice(format!("drop cascades to view {}", view.name));
        let what = format!("view {}", view.name);
        self.release_defaults(&Relation::View(view.clone()), &what, true, together)?;
        self.touch().remove_relation(view.id)?;
        self.drop_views_of(view.id, &format!("view {}", view.name), true, together)
    }

    /// A column of a table has gone: views over it that have no text any more are refused, or dropped.
    pub(super) fn drop_broken(&mut self, id: Oid, broken: &[Oid], cascade: bool, column: &str) -> Result<(), SqlError> {
        let table = self.table(id)?;
        let schema = self.catalog().schema_by_id(table.schema).map(|schema| schema.name.clone());
        let hidden = schema.filter(|schema| !self.statement.settings.search_path.contains(schema));
        let table = quote_qualified(hidden.as_deref(), &table.name);
        for view in self.views_of(id) {
            if !broken.contains(&view.id) && self.view_still_works(&view)? {
                continue;
            }
            if !cascade {
                let what = format!("column {column} of table {table}");
                return Err(dependents(&what, &format!("view {} depends on {what}", view.name)));
            }
            self.drop_view_too(&view, &[])?;
        }
        Ok(())
    }

    /// The type of a column has changed: views that would give another one are refused.
    pub(super) fn refuse_retyped(&self, table: &Table, column: &str) -> Result<(), SqlError> {
        for view in self.views_of(table.id) {
            if !self.view_still_works(&view)? {
                return Err(retyped(&view, column));
            }
        }
        Ok(())
    }

    /// The type of a column is to change: views that name it are refused, whatever they do with it.
    pub(super) fn refuse_read(&self, table: &Table, at: usize) -> Result<(), SqlError> {
        let views = self.views_of(table.id);
        if views.is_empty() {
            return Ok(());
        }
        // Those that cannot be planned without it. No statement can write such a name.
        let mut without = table.clone();
        let column = std::mem::replace(&mut without.columns[at].name, "\0".into());
        let context = self.plan_context_with(Relation::Table(without));
        for view in &views {
            if !self.view_works(view, &context)? {
                return Err(retyped(view, &column));
            }
        }
        Ok(())
    }

    /// A primary key goes: views that group by it and read columns that depend on it are refused, or dropped with it.
    pub(super) fn drop_views_by_key(&mut self, table: &Table, name: &str, cascade: bool) -> Result<(), SqlError> {
        let keyless = Table { has_primary_key: false, ..table.clone() };
        let context = self.plan_context_with(Relation::Table(keyless));
        for view in self.views_of(table.id) {
            // One that works no more for another reason does not depend on it.
            if self.view_works(&view, &context)? || !self.view_still_works(&view)? {
                continue;
            }
            if !cascade {
                let what = format!("constraint {name} on table {}", table.name);
                return Err(dependents(&what, &format!("view {} depends on {what}", view.name)));
            }
            self.drop_view_too(&view, &[])?;
        }
        Ok(())
    }

    /// Views that could not follow a rename.
    pub(super) fn refuse_broken(&self, broken: &[Oid], what: &str) -> Result<(), SqlError> {
        match broken.iter().find_map(|id| self.catalog().relation(*id)) {
            None => Ok(()),
            Some(view) => Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS,
                format!("cannot {what} because view {} depends on it", snapshot::name_of(view)),
            )
            .hint("Drop the view first, and create it again.")),
        }
    }

    fn drop_index(&mut self, name: &Name, if_exists: bool, cascade: bool) -> Result<(), SqlError> {
        let (table, index) = match self.named(name)? {
            Some(Named::Index { table, index }) => (table, index),
            Some(Named::Relation(_)) => return Err(wrong_kind(name, "an index")),
            None => return self.missing(ObjectKind::Index, name, if_exists),
        };
        let mut table = self.table(table)?;
        let constraint = table.primary.id == index || table.indexes.iter().any(|i| i.id == index && i.constraint);
        if constraint {
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS,
                format!(
                    "cannot drop index {} because constraint {} on table {} requires it",
                    name.name, name.name, table.name
                ),
            )
            .hint(format!("You can drop constraint {} on table {} instead.", name.name, table.name)));
        }
        if let Some(gone) = table.indexes.iter().find(|i| i.id == index).cloned()
            && gone.unique
        {
            self.release_index(&mut table, &gone, cascade)?;
        }
        table.indexes.retain(|i| i.id != index);
        self.touch().discard_index(index)?;
        self.put_table(table)
    }

    fn drop_schema(&mut self, name: &str, if_exists: bool, cascade: bool) -> Result<(), SqlError> {
        let Some(schema) = self.catalog().schema(self.database.id, name).cloned() else {
            return self.missing(ObjectKind::Schema, &Name::bare(name), if_exists);
        };
        let inside: Vec<_> = self
            .catalog()
            .relations(self.database.id)
            .into_iter()
            .filter(|r| crate::catalog::snapshot::schema_of(r) == schema.id)
            .collect();
        if let Some(first) = inside.first()
            && !cascade
        {
            let shown = format!("{} {}", kind_of(first), self.shown(first));
            return Err(dependents(&format!("schema {name}"), &format!("{shown} depends on schema {name}")));
        }
        for relation in inside {
            let shown = format!("{} {}", kind_of(&relation), self.shown(&relation));
            if let Relation::Sequence(s) = &*relation
                && s.owner.is_some()
            {
                continue;
            }
            self.drop_relation(&relation, true, &[])?;
            self.notice(format!("drop cascades to {shown}"));
        }
        self.touch().remove_schema(schema.id)
    }

    fn drop_database(&mut self, name: &str, if_exists: bool) -> Result<(), SqlError> {
        let Some(database) = self.catalog().database(name).cloned() else {
            return self.missing(ObjectKind::Database, &Name::bare(name), if_exists);
        };
        if database.id == self.database.id {
            return Err(SqlError::new(SqlState(*b"55006"), "cannot drop the currently open database")
                .hint("Connect to another database first."));
        }
        for relation in self.catalog().relations(database.id) {
            match &*relation {
                Relation::Table(table) => {
                    for index in std::iter::once(&table.primary).chain(&table.indexes) {
                        self.touch().discard_index(index.id)?;
                    }
                    self.touch().remove_relation(table.id)?;
                }
                other => self.touch().remove_relation(id_of(other))?,
            }
        }
        let schemas: Vec<Oid> = self.catalog().schemas(database.id).map(|s| s.id).collect();
        for schema in schemas {
            self.touch().remove_schema(schema)?;
        }
        self.touch().remove_database(database.id)
    }
}

fn hint_for(relation: &Option<Relation>) -> String {
    match relation {
        Some(Relation::Table(_)) => "Use DROP TABLE to remove a table.".into(),
        Some(Relation::View(_)) => "Use DROP VIEW to remove a view.".into(),
        Some(Relation::Sequence(_)) => "Use DROP SEQUENCE to remove a sequence.".into(),
        None => "Use DROP INDEX to remove an index.".into(),
    }
}

/// What a statement asked to drop: several together have no name.
fn asked(what: &str, together: &[Oid]) -> String {
    if together.len() > 1 { "desired object(s)".into() } else { what.into() }
}

/// 2BP01
fn dependents(what: &str, detail: &str) -> SqlError {
    SqlError::new(
        SqlState::DEPENDENT_OBJECTS,
        format!(
            "cannot drop {what} because other objects depend on {}",
            if what == "desired object(s)" { "them" } else { "it" }
        ),
    )
    .detail(detail)
    .hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// What a relation is called beside its name.
fn kind_of(relation: &Relation) -> &'static str {
    match relation {
        Relation::Table(_) => "table",
        Relation::View(_) => "view",
        Relation::Sequence(_) => "sequence",
    }
}

fn retyped(view: &View, column: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot alter type of a column used by a view or rule")
        .detail(format!("rule _RETURN on view {} depends on column \"{column}\"", view.name))
}
