//! The whole catalog at one number, decoded: what a transaction sees.
//!
//! Problem: every statement looks names up, and a hot lookup may cost no more than a hash. Idea: every change of the catalog writes a new, unique
//! number under one key. A transaction looks at that key; the number determines the content of the whole catalog, so it finds the decoded
//! content in a cache of the process ([`super::Cache`]) and reads nothing else. What it *relies* on of all that are the descriptors and names that it
//! used: see [`super::reliance`].
//!
//! 1. Two snapshots with one number are equal: numbers come from `Kv::unique_id`, also for changes that roll back.
//! 2. A snapshot never changes; a change clones it (shared records) and gives the clone a new number.
//! 3. A record that is the same in two snapshots of a process is the same allocation: plans are valid as long as theirs are ([`super::Uses`]).

use super::key;
use super::{Database, Defaults, Oid, Relation, Schema, Seal, Table, codec};
use crate::SqlError;
use crate::transaction::{ScanRequest, Transaction};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// OID of the schema `pg_catalog`.
pub(crate) const PG_CATALOG: Oid = 11;
/// OID of the schema `information_schema`.
pub(crate) const INFORMATION_SCHEMA: Oid = 13_200;
/// OID of the database `postgres`.
pub(crate) const POSTGRES_DATABASE: Oid = 5;
/// OID of the schema `public` of the database `postgres`.
pub(crate) const POSTGRES_PUBLIC: Oid = 2200;

const LOAD_CHUNK_ROWS: usize = 1024;

/// What a name of a schema stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A table, view or sequence.
    Relation(Oid),
    /// An index of a table.
    Index {
        /// The table.
        table: Oid,
        /// The index.
        index: Oid,
    },
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    version: u64,
    /// `None`: an older program has made the catalog.
    seal: Option<Arc<Seal>>,
    defaults: Arc<Defaults>,
    databases: BTreeMap<Oid, Arc<Database>>,
    schemas: BTreeMap<Oid, Arc<Schema>>,
    relations: HashMap<Oid, Arc<Stored>>,
    names: HashMap<Oid, Arc<HashMap<String, Named>>>,
}

/// A relation, and its record.
#[derive(Debug)]
pub struct Stored {
    relation: Arc<Relation>,
    record: Bytes,
}

impl Stored {
    /// See the fields.
    pub fn new(relation: Arc<Relation>, record: Bytes) -> Arc<Stored> {
        Arc::new(Stored { relation, record })
    }
    /// The relation.
    pub fn relation(&self) -> &Arc<Relation> {
        &self.relation
    }
}

/// Schema of a relation.
pub fn schema_of(relation: &Relation) -> Oid {
    match relation {
        Relation::Table(t) => t.schema,
        Relation::View(v) => v.schema,
        Relation::Sequence(s) => s.schema,
    }
}
/// Database of a relation.
pub(crate) fn database_of(relation: &Relation) -> Oid {
    match relation {
        Relation::Table(t) => t.database,
        Relation::View(v) => v.database,
        Relation::Sequence(s) => s.database,
    }
}
/// OID of a relation.
pub fn id_of(relation: &Relation) -> Oid {
    match relation {
        Relation::Table(t) => t.id,
        Relation::View(v) => v.id,
        Relation::Sequence(s) => s.id,
    }
}
/// Name of a relation.
pub fn name_of(relation: &Relation) -> &str {
    match relation {
        Relation::Table(t) => &t.name,
        Relation::View(v) => &v.name,
        Relation::Sequence(s) => &s.name,
    }
}

/// The names that a relation takes in its schema.
pub fn names_of(relation: &Relation) -> Vec<&str> {
    let mut names = vec![name_of(relation)];
    if let Relation::Table(table) = relation {
        names.extend(index_names(table).map(|(name, _)| name));
    }
    names
}

/// The names of indexes that a table takes in its schema: its own, unless the row id's.
fn index_names(table: &Table) -> impl Iterator<Item = (&str, Oid)> {
    let primary = table.has_primary_key.then_some(&table.primary);
    let building = table.building.as_ref().map(|building| &building.index);
    primary.into_iter().chain(&table.indexes).chain(building).map(|i| (i.name.as_str(), i.id))
}

impl Snapshot {
    /// Reads the catalog in a transaction that sees what is committed and writes nothing itself. What is in `known` with the same bytes is not
    /// decoded anew.
    ///
    /// # Errors
    /// Those of the transaction, and 58030 for a record that cannot be read.
    pub fn load(version: u64, txn: &mut dyn Transaction, known: Option<&Snapshot>) -> Result<Snapshot, SqlError> {
        let mut snapshot = Snapshot { version, ..Snapshot::default() };
        if let Some(record) = txn.get(&key::SEAL_KEY)? {
            snapshot.seal = Some(Arc::new(codec::decode(&record)?));
        }
        if let Some(record) = txn.get(&key::DEFAULTS_KEY)? {
            snapshot.defaults = Arc::new(codec::decode(&record)?);
        }
        for (_, value) in read_area(txn, key::DATABASES)? {
            let database: Database = codec::decode(&value)?;
            snapshot.databases.insert(database.id, Arc::new(database));
        }
        for (_, value) in read_area(txn, key::SCHEMAS)? {
            let schema: Schema = codec::decode(&value)?;
            snapshot.schemas.insert(schema.id, Arc::new(schema));
        }
        for (key, value) in read_area(txn, key::RELATIONS)? {
            let known = key::object_id(&key).and_then(|id| known?.relations.get(&id)).filter(|s| s.record == value);
            let stored = match known {
                Some(stored) => stored.clone(),
                // A copy: what the store gives may be part of something larger.
                None => Stored::new(Arc::new(codec::decode(&value)?), Bytes::copy_from_slice(&value)),
            };
            snapshot.put_relation(stored);
        }
        Ok(snapshot)
    }

    /// The number that determines the content.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// What signs tokens.
    pub fn seal(&self) -> Option<&Arc<Seal>> {
        self.seal.as_ref()
    }
    /// What sessions begin with.
    pub fn defaults(&self) -> &Arc<Defaults> {
        &self.defaults
    }
    /// A database by name.
    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.values().find(|d| d.name == name)
    }
    /// A database by OID.
    pub fn database_by_id(&self, id: Oid) -> Option<&Arc<Database>> {
        self.databases.get(&id)
    }
    /// All databases.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.values()
    }
    /// A schema of a database by name.
    pub fn schema(&self, database: Oid, name: &str) -> Option<&Arc<Schema>> {
        self.schemas.values().find(|s| s.database == database && s.name == name)
    }
    /// A schema by OID.
    pub fn schema_by_id(&self, id: Oid) -> Option<&Arc<Schema>> {
        self.schemas.get(&id)
    }
    /// Schemas of a database, the virtual ones not included.
    pub fn schemas(&self, database: Oid) -> impl Iterator<Item = &Arc<Schema>> {
        self.schemas.values().filter(move |s| s.database == database)
    }
    /// A relation by OID.
    pub fn relation(&self, id: Oid) -> Option<&Arc<Relation>> {
        self.relations.get(&id).map(|stored| &stored.relation)
    }
    /// A table by OID.
    pub fn table(&self, id: Oid) -> Option<&Table> {
        match self.relation(id).map(|r| &**r) {
            Some(Relation::Table(table)) => Some(table),
            _ => None,
        }
    }
    /// What a name stands for in a schema.
    pub fn named(&self, schema: Oid, name: &str) -> Option<Named> {
        self.names.get(&schema)?.get(name).copied()
    }
    /// Every relation, in no order.
    pub fn all_relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.relations.values().map(|stored| &stored.relation)
    }
    /// Every relation of a database, by OID.
    pub fn relations(&self, database: Oid) -> Vec<Arc<Relation>> {
        let all = self.relations.values().map(|stored| &stored.relation);
        let mut all: Vec<_> = all.filter(|r| database_of(r) == database).cloned().collect();
        all.sort_by_key(|r| id_of(r));
        all
    }

    pub(super) fn set_version(&mut self, version: u64) {
        self.version = version;
    }
    pub(super) fn put_seal(&mut self, seal: Arc<Seal>) {
        self.seal = Some(seal);
    }
    pub(super) fn put_defaults(&mut self, defaults: Arc<Defaults>) {
        self.defaults = defaults;
    }
    pub(super) fn put_database(&mut self, database: Arc<Database>) {
        self.databases.insert(database.id, database);
    }
    pub(super) fn remove_database(&mut self, id: Oid) {
        self.databases.remove(&id);
    }
    pub(super) fn put_schema(&mut self, schema: Arc<Schema>) {
        self.schemas.insert(schema.id, schema);
    }
    pub(super) fn remove_schema(&mut self, id: Oid) {
        self.schemas.remove(&id);
        self.names.remove(&id);
    }
    /// The same with another descriptor of a relation, to see what would become of those that read it.
    pub fn with_relation(&self, relation: Relation) -> Snapshot {
        let mut other = self.clone();
        other.put_relation(Stored::new(Arc::new(relation), Bytes::new()));
        other
    }
    pub(super) fn put_relation(&mut self, stored: Arc<Stored>) {
        let relation = stored.relation.clone();
        self.remove_relation(id_of(&relation));
        let names = Arc::make_mut(self.names.entry(schema_of(&relation)).or_default());
        names.insert(name_of(&relation).into(), Named::Relation(id_of(&relation)));
        if let Relation::Table(table) = &*relation {
            for (name, index) in index_names(table) {
                names.insert(name.into(), Named::Index { table: table.id, index });
            }
        }
        self.relations.insert(id_of(&relation), stored);
    }
    pub(super) fn remove_relation(&mut self, id: Oid) {
        let Some(old) = self.relations.remove(&id).map(|stored| stored.relation.clone()) else { return };
        let names = Arc::make_mut(self.names.entry(schema_of(&old)).or_default());
        names.remove(name_of(&old));
        if let Relation::Table(table) = &*old {
            for (name, _) in index_names(table) {
                names.remove(name);
            }
        }
    }
}

/// All records of one catalog area.
///
/// # Errors
/// Those of the transaction.
pub(crate) fn read_area(txn: &mut dyn Transaction, area: u32) -> Result<Vec<(Bytes, Bytes)>, SqlError> {
    let mut rows = Vec::new();
    let mut rest = Some(key::index_span(area));
    while let Some(span) = rest {
        let chunk = txn.scan(&ScanRequest { span, reverse: false, limit: LOAD_CHUNK_ROWS })?;
        rows.extend(chunk.rows);
        rest = chunk.rest;
    }
    Ok(rows)
}
