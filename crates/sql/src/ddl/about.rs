//! What a DDL statement is about, by its text: the locks that it takes before it looks at anything.

use crate::catalog::reliance::tokens_in_use;
use crate::catalog::{Named, Oid, Overlay, Snapshot, key, snapshot};
use crate::syntax::{AlterAction, Ddl, DefaultOf, Name, ObjectKind};
use bytes::Bytes;
use std::collections::BTreeSet;

/// The names of a statement, as the catalog stands.
struct Names<'a> {
    catalog: &'a Snapshot,
    database: Oid,
    path: &'a [String],
    keys: BTreeSet<Bytes>,
}

impl Names<'_> {
    fn object(&mut self, area: u32, id: Oid) {
        self.keys.insert(Bytes::copy_from_slice(&key::object(area, id)));
    }

    /// What a name stands for; if nothing, the name where it would be made.
    fn relation(&mut self, name: &Name) {
        let (catalog, database) = (self.catalog, self.database);
        let schemas = name.schema.as_slice().iter().chain(if name.schema.is_none() { self.path } else { &[] });
        let schemas: Vec<Oid> = schemas.filter_map(|s| Some(catalog.schema(database, s)?.id)).collect();
        match schemas.iter().find_map(|schema| catalog.named(*schema, &name.name)) {
            Some(Named::Relation(id) | Named::Index { table: id, .. }) => {
                self.keys.insert(key::guard(id));
                self.object(key::RELATIONS, id);
            }
            None => match (schemas.first(), &name.schema) {
                (Some(schema), _) => drop(self.keys.insert(key::absence(*schema, &name.name))),
                (None, Some(schema)) => self.schema(schema),
                (None, None) => {}
            },
        }
    }

    /// A new name beside what another one stands for.
    fn beside(&mut self, name: &Name, new: &str) {
        self.relation(&Name { name: new.into(), ..name.clone() });
    }

    fn schema(&mut self, name: &str) {
        match self.catalog.schema(self.database, name) {
            Some(schema) => self.object(key::SCHEMAS, schema.id),
            None => drop(self.keys.insert(key::absence(self.database, name))),
        }
    }

    fn of_kind(&mut self, kind: ObjectKind, name: &Name) {
        match kind {
            ObjectKind::Schema => self.schema(&name.name),
            ObjectKind::Database => self.database(&name.name),
            ObjectKind::Table | ObjectKind::View | ObjectKind::Sequence | ObjectKind::Index => self.relation(name),
        }
    }

    fn database(&mut self, name: &str) {
        match self.catalog.database(name) {
            Some(database) => self.object(key::DATABASES, database.id),
            None => drop(self.keys.insert(key::absence(key::CLUSTER, name))),
        }
    }
}

/// The tokens of the versions of the relations that it names which may be in use, but for those that the transaction has changed before: others do not go by them. Of what makes something new none: what has
/// its name already stays as it is, or is found as it runs; nor of SPLIT AT, which ends nothing.
pub(crate) fn tokens(ddl: &Ddl, catalog: &Snapshot, own: &Overlay, database: Oid, path: &[String]) -> Vec<Bytes> {
    let ends = match ddl {
        Ddl::CreateTable(_)
        | Ddl::CreateTableAs { .. }
        | Ddl::CreateSequence { .. }
        | Ddl::CreateView { .. }
        | Ddl::SplitIndex { .. } => false,
        Ddl::AlterTable { actions, .. } => !actions.iter().all(|action| matches!(action, AlterAction::SplitAt(_))),
        _ => true,
    };
    if !ends {
        return Vec::new();
    }
    let records = keys(ddl, catalog, database, path);
    let relations = catalog.all_relations().filter(|relation| {
        let id = snapshot::id_of(relation);
        !own.has_changed(id) && records.contains(&key::object(key::RELATIONS, id)[..])
    });
    relations.flat_map(|relation| tokens_in_use(relation)).collect()
}

/// The keys to lock. There is always one: in a read-only transaction that is refused.
pub(super) fn keys(ddl: &Ddl, catalog: &Snapshot, database: Oid, path: &[String]) -> BTreeSet<Bytes> {
    let mut names = Names { catalog, database, path, keys: BTreeSet::new() };
    match ddl {
        Ddl::CreateTable(table) => names.relation(&table.name),
        Ddl::CreateTableAs { name, .. }
        | Ddl::CreateSequence { name, .. }
        | Ddl::AlterSequence { name, .. }
        | Ddl::AlterTable { name, .. }
        | Ddl::CreateView { name, .. }
        | Ddl::SetSchema { name, .. }
        | Ddl::SplitIndex { name, .. }
        | Ddl::Comment { table: name, .. } => names.relation(name),
        Ddl::CreateIndex(index) => {
            names.relation(&index.table);
            if let Some(name) = &index.name {
                names.beside(&index.table, name);
            }
        }
        Ddl::CreateSchema { name, .. } => names.schema(name),
        Ddl::CreateDatabase { name, .. } => names.database(name),
        Ddl::CreateExtension { .. } | Ddl::UpdateExtension { .. } | Ddl::DropExtension { .. } => {
            names.object(key::DATABASES, database);
        }
        Ddl::RenewTokens { .. } => drop(names.keys.insert(Bytes::from_static(&key::SEAL_KEY))),
        Ddl::SetDefault { of, .. } => {
            names.keys.insert(Bytes::from_static(&key::DEFAULTS_KEY));
            match of {
                DefaultOf::Database(name) | DefaultOf::Role { database: Some(name), .. } => names.database(name),
                DefaultOf::Role { database: None, .. } | DefaultOf::System => {}
            }
        }
        Ddl::Drop { kind, names: all, .. } => all.iter().for_each(|name| names.of_kind(*kind, name)),
        Ddl::Rename { kind, name, to, .. } => {
            names.of_kind(*kind, name);
            match kind {
                ObjectKind::Schema | ObjectKind::Database => names.of_kind(*kind, &Name::bare(to)),
                _ => names.beside(name, to),
            }
        }
        Ddl::Truncate { names: all, .. } => all.iter().for_each(|name| names.relation(name)),
    }
    if names.keys.is_empty() {
        names.object(key::DATABASES, database);
    }
    names.keys
}
