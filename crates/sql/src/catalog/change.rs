//! A change of the catalog inside a transaction.
//!
//! Changes queue on the lock of the version's key, so that two DDL statements wait for each other instead of restarting; each
//! writes a new version, which every other transaction under way has read (certified).

use super::cache::read_version;
use super::snapshot::id_of;
use super::{Cache, Database, Oid, Relation, Schema, Snapshot, codec, key};
use crate::SqlError;
use crate::transaction::{Kv, LockWait, TxnRef};
use bytes::Bytes;
use std::sync::Arc;

/// See the module.
pub struct Change<'a> {
    txn: TxnRef,
    kv: &'a dyn Kv,
    snapshot: Snapshot,
}

impl<'a> Change<'a> {
    /// Begins: waits for other changes; the transaction's snapshot may move up.
    ///
    /// # Errors
    /// Those of the lock (25006 in a read-only transaction).
    pub fn begin(txn: &TxnRef, kv: &'a dyn Kv, cache: &Cache) -> Result<Change<'a>, SqlError> {
        let snapshot = txn.with(|t| {
            t.lock(&key::VERSION_KEY, LockWait::Wait)?;
            read_version(t)?;
            cache.current(t, None)
        })?;
        Ok(Change { txn: txn.clone(), kv, snapshot: (*snapshot).clone() })
    }
    /// The catalog as changed so far.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
    fn put(&self, area: u32, id: Oid, value: Bytes) -> Result<(), SqlError> {
        Ok(self.txn.with(|t| t.put(Bytes::copy_from_slice(&key::object(area, id)), value))?)
    }
    fn delete(&self, area: u32, id: Oid) -> Result<(), SqlError> {
        Ok(self.txn.with(|t| t.delete(Bytes::copy_from_slice(&key::object(area, id))))?)
    }
    /// Adds or replaces a table, view or sequence.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn put_relation(&mut self, mut relation: Relation) -> Result<Arc<Relation>, SqlError> {
        if let Relation::Table(table) = &mut relation {
            table.version += 1;
        }
        self.put(key::RELATIONS, id_of(&relation), codec::encode_relation(&relation)?)?;
        let relation = Arc::new(relation);
        self.snapshot.put_relation(relation.clone());
        Ok(relation)
    }
    /// Removes a table, view or sequence.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn remove_relation(&mut self, id: Oid) -> Result<(), SqlError> {
        self.snapshot.remove_relation(id);
        self.delete(key::RELATIONS, id)
    }
    /// Adds or replaces a schema.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn put_schema(&mut self, schema: Schema) -> Result<(), SqlError> {
        self.put(key::SCHEMAS, schema.id, codec::encode(&schema)?)?;
        self.snapshot.put_schema(Arc::new(schema));
        Ok(())
    }
    /// Removes a schema, which must be empty.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn remove_schema(&mut self, id: Oid) -> Result<(), SqlError> {
        self.snapshot.remove_schema(id);
        self.delete(key::SCHEMAS, id)
    }
    /// Adds or replaces a database.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn put_database(&mut self, database: Database) -> Result<(), SqlError> {
        self.put(key::DATABASES, database.id, codec::encode(&database)?)?;
        self.snapshot.put_database(Arc::new(database));
        Ok(())
    }
    /// Removes a database, which must be empty.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn remove_database(&mut self, id: Oid) -> Result<(), SqlError> {
        self.snapshot.remove_database(id);
        self.delete(key::DATABASES, id)
    }
    /// Declares the data of an index garbage, from the moment this transaction commits.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn discard_index(&mut self, index: Oid) -> Result<(), SqlError> {
        self.txn.with(|t| t.frees_space());
        self.put(key::GARBAGE, index, Bytes::from_static(&super::garbage::DROPPED))
    }
    /// Ends: writes a new version, and gives the catalog to go on with in this transaction.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn finish(mut self, cache: &Cache) -> Result<Arc<Snapshot>, SqlError> {
        let version = self.kv.unique_id();
        self.txn
            .with(|t| t.put(Bytes::from_static(&key::VERSION_KEY), Bytes::copy_from_slice(&version.to_be_bytes())))?;
        self.snapshot.set_version(version);
        let snapshot = Arc::new(self.snapshot);
        cache.put(snapshot.clone());
        Ok(snapshot)
    }
}
