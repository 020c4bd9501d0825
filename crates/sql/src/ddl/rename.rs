//! RENAME TO, SET SCHEMA.

use super::Run;
use super::run::{no_relation, undefined, wrong_kind};
use super::view_text::Change;
use crate::catalog::{Named, Oid, Relation, Schema, Sequence, Table, snapshot};
use crate::syntax::{Name, ObjectKind};
use crate::{SqlError, SqlState};

impl Run<'_> {
    pub(super) fn rename(
        &mut self,
        kind: ObjectKind,
        name: &Name,
        if_exists: bool,
        to: &str,
    ) -> Result<&'static str, SqlError> {
        match kind {
            ObjectKind::Schema => self.rename_schema(&name.name, to)?,
            ObjectKind::Database => self.rename_database(&name.name, to)?,
            _ => match self.named(name)? {
                None if if_exists => self.notice(format!("relation \"{name}\" does not exist, skipping")),
                None => return Err(no_relation(name)),
                Some(Named::Index { table, index }) => self.rename_index_of(table, index, to)?,
                // PostgreSQL lets ALTER TABLE rename any relation.
                Some(Named::Relation(id)) => self.rename_relation(kind, name, id, to)?,
            },
        }
        Ok(alter_tag(kind))
    }

    fn free_in(&self, schema: Oid, name: &str) -> Result<(), SqlError> {
        match self.catalog().named(schema, name) {
            None => Ok(()),
            Some(_) => Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists"))),
        }
    }

    fn rename_index_of(&mut self, table: Oid, index: Oid, to: &str) -> Result<(), SqlError> {
        let mut table = self.table(table)?;
        self.free_in(table.schema, to)?;
        let old = std::iter::once(&table.primary).chain(&table.indexes).find(|i| i.id == index).map(|i| i.name.clone());
        if let Some(old) = old {
            rename_index(&mut table, &old, to);
        }
        self.put_table(table)
    }

    fn rename_relation(&mut self, kind: ObjectKind, name: &Name, id: Oid, to: &str) -> Result<(), SqlError> {
        let Some(relation) = self.catalog().relation(id).map(|r| (**r).clone()) else {
            return Err(no_relation(name));
        };
        self.free_in(snapshot::schema_of(&relation), to)?;
        let schema = self.catalog().schema_by_id(snapshot::schema_of(&relation)).map(|s| s.name.clone());
        let schema = schema.unwrap_or_default();
        let views = self.rewrite_views(id, &relation_changes(&relation, &schema, to))?;
        let followers = self.followers(id, &schema, to)?;
        match (kind, relation) {
            (ObjectKind::Table, Relation::Table(table)) => self.put_table(Table { name: to.into(), ..table })?,
            (ObjectKind::Table | ObjectKind::View, Relation::View(view)) => {
                self.touch().put_relation(Relation::View(crate::catalog::View { name: to.into(), ..view }))?;
            }
            (ObjectKind::Table | ObjectKind::Sequence, Relation::Sequence(sequence)) => {
                self.touch().put_relation(Relation::Sequence(Sequence { name: to.into(), ..sequence }))?;
            }
            (ObjectKind::View, _) => return Err(wrong_kind(name, "a view")),
            (ObjectKind::Sequence, _) => return Err(wrong_kind(name, "a sequence")),
            (ObjectKind::Index, _) => return Err(wrong_kind(name, "an index")),
            _ => return Err(wrong_kind(name, "a table")),
        }
        self.put_followers(followers)?;
        let broken = self.put_views(views)?;
        self.refuse_broken(&broken, &format!("rename {name}"))
    }

    /// Puts a sequence under another name or schema; the defaults that draw from it follow.
    fn move_sequence(&mut self, sequence: Sequence) -> Result<(), SqlError> {
        let schema = self.catalog().schema_by_id(sequence.schema).map_or(String::new(), |s| s.name.clone());
        let followers = self.followers(sequence.id, &schema, &sequence.name)?;
        self.touch().put_relation(Relation::Sequence(sequence))?;
        self.put_followers(followers)
    }

    pub(super) fn set_schema(
        &mut self,
        kind: ObjectKind,
        name: &Name,
        if_exists: bool,
        schema: &str,
    ) -> Result<&'static str, SqlError> {
        let Some(relation) = self.relation(name)? else {
            if if_exists {
                self.notice(format!("relation \"{name}\" does not exist, skipping"));
                return Ok(alter_tag(kind));
            }
            return Err(no_relation(name));
        };
        let schema = self.schema_named(schema)?;
        if snapshot::schema_of(&relation) == schema.id {
            return Ok(alter_tag(kind));
        }
        self.free_in(schema.id, snapshot::name_of(&relation))?;
        let changes = relation_changes(&relation, &schema.name, snapshot::name_of(&relation));
        let views = self.rewrite_views(snapshot::id_of(&relation), &changes)?;
        let followers = self.followers(snapshot::id_of(&relation), &schema.name, snapshot::name_of(&relation))?;
        match (*relation).clone() {
            Relation::Table(table) => self.move_table(table, &schema)?,
            Relation::View(view) => {
                self.touch().put_relation(Relation::View(crate::catalog::View { schema: schema.id, ..view }))?;
            }
            Relation::Sequence(sequence) => {
                self.touch().put_relation(Relation::Sequence(Sequence { schema: schema.id, ..sequence }))?;
            }
        }
        self.put_followers(followers)?;
        let broken = self.put_views(views)?;
        self.refuse_broken(&broken, &format!("move {name}"))?;
        Ok(alter_tag(kind))
    }

    fn move_table(&mut self, table: Table, schema: &Schema) -> Result<(), SqlError> {
        for name in
            super::constraint::own_index_names(&table).filter(|n| *n != table.primary.name || table.has_primary_key)
        {
            self.free_in(schema.id, &name)?;
        }
        let id = table.id;
        let owned = table.columns.iter().filter_map(|c| self.owned(c.owned_sequence?));
        let sequences: Vec<Sequence> = owned.collect();
        self.put_table(Table { schema: schema.id, ..table })?;
        for sequence in sequences {
            self.free_in(schema.id, &sequence.name)?;
            self.move_sequence(Sequence {
                schema: schema.id,
                owner: sequence.owner.map(|(_, c)| (id, c)),
                ..sequence
            })?;
        }
        Ok(())
    }

    fn rename_schema(&mut self, name: &str, to: &str) -> Result<(), SqlError> {
        let schema = self.schema_named(name)?;
        if self.catalog().schema(self.database.id, to).is_some() {
            return Err(SqlError::new(SqlState::DUPLICATE_SCHEMA, format!("schema \"{to}\" already exists")));
        }
        let change = Change::Schema { from: name.to_string(), to: to.to_string() };
        let views = self.rewrite_views_within(schema.id, &change)?;
        let followers = self.followers_of_schema(name, to)?;
        self.touch().put_schema(Schema { name: to.into(), ..(*schema).clone() })?;
        self.put_followers(followers)?;
        let broken = self.put_views(views)?;
        self.refuse_broken(&broken, &format!("rename schema {name}"))
    }

    fn rename_database(&mut self, name: &str, to: &str) -> Result<(), SqlError> {
        let Some(database) = self.catalog().database(name).cloned() else {
            return Err(undefined(ObjectKind::Database, &Name::bare(name)));
        };
        if database.id == self.database.id {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "current database cannot be renamed")
                .hint("Connect to another database first."));
        }
        if self.catalog().database(to).is_some() {
            return Err(SqlError::new(SqlState::DUPLICATE_DATABASE, format!("database \"{to}\" already exists")));
        }
        self.touch().put_database(crate::catalog::Database { name: to.into(), ..(*database).clone() })
    }
}

/// What becomes of a view's text when a relation in it gets another name or schema: it uses that name, or keeps the old one as an alias.
fn relation_changes(relation: &Relation, schema: &str, name: &str) -> [Change; 2] {
    let (of, schema, name) = (snapshot::id_of(relation), schema.to_string(), name.to_string());
    let alias = snapshot::name_of(relation).to_string();
    [Change::Relation { of, schema: schema.clone(), name: name.clone() }, Change::Alias { of, schema, name, alias }]
}

/// Renames an index of a table.
pub(super) fn rename_index(table: &mut Table, name: &str, to: &str) {
    for index in std::iter::once(&mut table.primary).chain(&mut table.indexes).filter(|i| i.name == name) {
        index.name = to.into();
    }
}

fn alter_tag(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "ALTER TABLE",
        ObjectKind::View => "ALTER VIEW",
        ObjectKind::Index => "ALTER INDEX",
        ObjectKind::Sequence => "ALTER SEQUENCE",
        ObjectKind::Schema => "ALTER SCHEMA",
        ObjectKind::Database => "ALTER DATABASE",
    }
}
