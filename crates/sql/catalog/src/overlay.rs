//! What a transaction has changed of the catalog, over what is committed.

use super::snapshot::{Stored, id_of};
use super::{Database, Defaults, Oid, Schema, Seal, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module. `None`: removed.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    seal: Option<Arc<Seal>>,
    defaults: Option<Arc<Defaults>>,
    databases: BTreeMap<Oid, Option<Arc<Database>>>,
    schemas: BTreeMap<Oid, Option<Arc<Schema>>>,
    relations: BTreeMap<Oid, Option<Arc<Stored>>>,
}

impl Overlay {
    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.seal.is_none()
            && self.defaults.is_none()
            && self.databases.is_empty()
            && self.schemas.is_empty()
            && self.relations.is_empty()
    }

    /// Whether a relation was made, changed or removed.
    pub fn has_changed(&self, relation: Oid) -> bool {
        self.relations.contains_key(&relation)
    }

    /// The catalog with these changes, under a new number.
    pub fn over(&self, base: &Snapshot, number: u64) -> Snapshot {
        let mut snapshot = base.clone();
        snapshot.set_version(number);
        self.seal.iter().for_each(|seal| snapshot.put_seal(seal.clone()));
        self.defaults.iter().for_each(|defaults| snapshot.put_defaults(defaults.clone()));
        for (id, database) in &self.databases {
            match database {
                Some(database) => snapshot.put_database(database.clone()),
                None => snapshot.remove_database(*id),
            }
        }
        // Removed first: a name may have passed from one relation to another.
        self.relations.keys().for_each(|id| snapshot.remove_relation(*id));
        for (id, schema) in &self.schemas {
            match schema {
                Some(schema) => snapshot.put_schema(schema.clone()),
                None => snapshot.remove_schema(*id),
            }
        }
        self.relations.values().flatten().for_each(|stored| snapshot.put_relation(stored.clone()));
        snapshot
    }

    pub(super) fn put_seal(&mut self, seal: Arc<Seal>) {
        self.seal = Some(seal);
    }
    pub(super) fn put_defaults(&mut self, defaults: Arc<Defaults>) {
        self.defaults = Some(defaults);
    }
    pub(super) fn put_database(&mut self, database: Arc<Database>) {
        self.databases.insert(database.id, Some(database));
    }
    pub(super) fn remove_database(&mut self, id: Oid) {
        self.databases.insert(id, None);
    }
    pub(super) fn put_schema(&mut self, schema: Arc<Schema>) {
        self.schemas.insert(schema.id, Some(schema));
    }
    pub(super) fn remove_schema(&mut self, id: Oid) {
        self.schemas.insert(id, None);
    }
    pub(super) fn put_relation(&mut self, stored: Arc<Stored>) {
        self.relations.insert(id_of(stored.relation()), Some(stored));
    }
    pub(super) fn remove_relation(&mut self, id: Oid) {
        self.relations.insert(id, None);
    }
}
