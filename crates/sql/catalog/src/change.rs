//! A change of the catalog inside a transaction.
//!
//! Problem: changes of different objects shall not meet, and of two changes of one object, or of two things where one needs the other to stay, one
//! must hear of the other. Idea: locks order those that are about the same ([`Change::begin`]); tokens refuse those that went on by what is no longer so
//! ([`super::reliance`], decision 103).
//!
//! 1. Whoever changes or removes an object relies on the version that he saw and writes its token; and relies on it that nothing more depends on it.
//! 2. Whoever makes a name relies on its absence, and writes that token.
//! 3. Whoever makes something that depends on an object (lies in a schema, reads a table, draws from a sequence) relies on its version, and writes the token of its
//!    dependents, over whatever others write there.
//! 4. Two adjacent versions of a table may be in use at once, if the later one is a *step* ([`Change::step_table`], decision 104): then the earlier one's token stays.
//!    So whoever ends a version ends the one before it, too.
//! 5. The catalog's number is written when the transaction commits ([`commit`]): until then what it sees is what is committed, and its changes over that.

use super::garbage::Left;
use super::reliance::{token_of, version_before, version_of};
use super::snapshot::{Stored, database_of, id_of, name_of, names_of, schema_of};
use super::{Cache, Database, Defaults, Oid, Overlay, Relation, Schema, Seal, Snapshot, Table, codec, key};
use crate::transaction::{Committed, Kv, LockWait, Patience, TxnRef};
use crate::{KvError, SqlError, SqlState};
use bytes::Bytes;
use clock::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// So often what a change is about is looked up again after waiting for others; then it goes on, and they are met by its tokens.
const LOOKS_MAX: usize = 16;

/// See the module.
pub struct Change<'a> {
    txn: TxnRef,
    kv: &'a dyn Kv,
    snapshot: Snapshot,
    /// When what is committed was looked at.
    since: Timestamp,
    number: u64,
    own: Overlay,
    locked: BTreeSet<Bytes>,
}

/// What a change came to.
pub struct Changed {
    /// The catalog to go on with in this transaction.
    pub snapshot: Arc<Snapshot>,
    /// What the transaction has changed so far.
    pub own: Arc<Overlay>,
    /// The number of what is committed under it.
    pub number: u64,
    /// When that was looked at.
    pub since: Timestamp,
}

impl<'a> Change<'a> {
    /// Begins: waits for changes of what this one is about, by the keys that `about` finds; the transaction's snapshot may move up.
    ///
    /// # Errors
    /// Those of the locks (25006 in a read-only transaction).
    pub fn begin(
        txn: &TxnRef,
        kv: &'a dyn Kv,
        cache: &Cache,
        patience: &Patience,
        own: &Overlay,
        about: &dyn Fn(&Snapshot) -> BTreeSet<Bytes>,
    ) -> Result<Change<'a>, SqlError> {
        let mut locked = BTreeSet::new();
        for look in 1.. {
            let (base, since) =
                txn.with(|t| Ok::<_, SqlError>((cache.current(kv, patience, t, None)?, t.snapshot())))?;
            let snapshot = own.over(&base, kv.unique_id());
            let more: Vec<Bytes> = about(&snapshot).into_iter().filter(|key| !locked.contains(key)).collect();
            if more.is_empty() || look == LOOKS_MAX {
                let (txn, own) = (txn.clone(), own.clone());
                return Ok(Change { txn, kv, snapshot, since, number: base.version(), own, locked });
            }
            for key in more {
                txn.with(|t| t.lock(&key, LockWait::Wait))?;
                locked.insert(key);
            }
        }
        unreachable!("looks are bounded")
    }

    /// The catalog as changed so far.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
    /// When what is committed was looked at.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    fn lock(&mut self, key: Bytes) -> Result<(), KvError> {
        if !self.locked.contains(&key) {
            self.txn.with(|t| t.lock(&key, LockWait::Wait))?;
            self.locked.insert(key);
        }
        Ok(())
    }
    /// These are locked for it by another transaction, which outlives it.
    pub fn has_locked(&mut self, keys: impl IntoIterator<Item = Bytes>) {
        self.locked.extend(keys);
    }
    fn rely(&self, token: &Bytes) -> Result<(), KvError> {
        self.txn.with(|t| t.rely(token, self.since, true))
    }
    /// Relies on a token, and writes it.
    fn end(&self, token: Bytes) -> Result<(), KvError> {
        self.rely(&token)?;
        self.txn.with(|t| t.delete(token))
    }
    /// Something depends on an object from now on.
    fn depend_on(&self, id: Oid, version: u64) -> Result<(), KvError> {
        self.rely(&key::version(id, version))?;
        self.txn.with(|t| t.overwrite(key::dependents(id), None))
    }
    fn put(&self, area: u32, id: Oid, value: Bytes) -> Result<(), KvError> {
        self.txn.with(|t| t.put(Bytes::copy_from_slice(&key::object(area, id)), value))
    }
    fn delete(&self, area: u32, id: Oid) -> Result<(), KvError> {
        self.txn.with(|t| t.delete(Bytes::copy_from_slice(&key::object(area, id))))
    }
    fn lock_object(&mut self, area: u32, id: Oid) -> Result<(), KvError> {
        self.lock(Bytes::copy_from_slice(&key::object(area, id)))
    }
    /// Invariant 1.
    fn end_object(&mut self, area: u32, id: Oid, token: Bytes) -> Result<(), KvError> {
        if area == key::RELATIONS {
            self.lock(key::guard(id))?;
        }
        self.lock_object(area, id)?;
        self.rely(&key::dependents(id))?;
        self.end(token)
    }
    /// Invariant 2.
    fn make_name(&mut self, scope: Oid, name: &str) -> Result<(), KvError> {
        let token = key::absence(scope, name);
        self.lock(token.clone())?;
        self.end(token)
    }

    /// Adds or replaces a table, view or sequence.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn put_relation(&mut self, mut relation: Relation) -> Result<Arc<Relation>, SqlError> {
        let (id, schema) = (id_of(&relation), schema_of(&relation));
        if let Relation::Table(table) = &mut relation {
            table.version += 1;
        }
        let old = self.snapshot.relation(id).cloned();
        if let Some(old) = &old {
            self.end_object(key::RELATIONS, id, token_of(old))?;
            self.end_before(old)?;
            if let Relation::Table(table) = &mut relation {
                // Whoever made them is gone: he would hold the guard.
                (table.building, table.pending, table.filling, table.gated) = (None, None, None, false);
            }
            self.discard_building(old)?;
        }
        if old.as_ref().is_none_or(|old| schema_of(old) != schema) {
            self.depend_on(schema, 0)?;
        }
        let before: Vec<&str> =
            old.as_ref().filter(|old| schema_of(old) == schema).map_or(Vec::new(), |old| names_of(old));
        for name in names_of(&relation).into_iter().filter(|name| !before.contains(name)) {
            self.make_name(schema, name)?;
        }
        for (id, version) in self.new_needs(&relation, old.as_deref()) {
            self.depend_on(id, version)?;
        }
        self.store_relation(relation)
    }

    fn store_relation(&mut self, relation: Relation) -> Result<Arc<Relation>, SqlError> {
        let record = codec::encode_relation(&relation)?;
        self.put(key::RELATIONS, id_of(&relation), record.clone())?;
        let relation = Arc::new(relation);
        let stored = Stored::new(relation.clone(), record);
        self.own.put_relation(stored.clone());
        self.snapshot.put_relation(stored);
        Ok(relation)
    }

    /// A table that was a version further by now may still be in use as it was before (invariant 4).
    fn end_before(&self, old: &Relation) -> Result<(), KvError> {
        match old {
            Relation::Table(table) => self.txn.with(|t| t.overwrite(version_before(table), None)),
            Relation::View(_) | Relation::Sequence(_) => Ok(()),
        }
    }

    fn discard_building(&mut self, old: &Relation) -> Result<(), SqlError> {
        match old {
            Relation::Table(Table { building: Some(building), .. }) => {
                self.discard_index(building.index.id)?;
                self.discard_index(building.marks)
            }
            _ => Ok(()),
        }
    }

    /// Replaces a table by its next version, which may be in use beside the present one: a step of a change that goes on while the table is
    /// written. The caller holds the guard, or knows that nobody does.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn step_table(&mut self, mut table: Table) -> Result<(), SqlError> {
        self.lock_object(key::RELATIONS, table.id)?;
        let Some(old) = self.snapshot.relation(table.id).cloned() else {
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, format!("table \"{}\" does not exist", table.name)));
        };
        self.rely(&token_of(&old))?;
        self.end_before(&old)?;
        let before = names_of(&old);
        for name in names_of(&Relation::Table(table.clone())).into_iter().filter(|name| !before.contains(name)) {
            self.make_name(table.schema, name)?;
        }
        table.version += 1;
        self.store_relation(Relation::Table(table)).map(drop)
    }

    /// Replaces a table's descriptor by one that says the same of what is stored: both are of one version, and who went by the one goes on by the other.
    /// The caller holds the guard, or knows that nobody does.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn restate_table(&mut self, table: Table) -> Result<(), SqlError> {
        self.lock_object(key::RELATIONS, table.id)?;
        self.rely(&version_of(&table))?;
        self.store_relation(Relation::Table(table)).map(drop)
    }

    /// What a relation needs from now on to stay as it is, though its descriptor does not say so.
    fn new_needs(&self, relation: &Relation, old: Option<&Relation>) -> Vec<(Oid, u64)> {
        let mut needs = Vec::new();
        match (relation, old) {
            (Relation::View(view), old) => {
                let before = match old {
                    Some(Relation::View(old)) => &old.reads[..],
                    _ => &[],
                };
                needs.extend(view.reads.iter().filter(|id| !before.contains(id)));
            }
            (Relation::Table(table), old) => {
                let draws = |table: &Table| {
                    let own = table.columns.iter().filter(|column| column.owned_sequence.is_none());
                    own.filter_map(|column| column.default.clone()).filter(|text| text.contains("regclass")).collect()
                };
                let before: Vec<String> = match old {
                    Some(Relation::Table(old)) => draws(old),
                    _ => Vec::new(),
                };
                let now: Vec<String> = draws(table);
                let new: Vec<&String> = now.iter().filter(|text| !before.contains(text)).collect();
                if !new.is_empty() {
                    let all = self.snapshot.relations(database_of(relation)).into_iter();
                    // As literals end that name it; in whatever schema.
                    let ends = |r: &Relation| {
                        let name = name_of(r).replace('"', "\"\"").replace('\'', "''");
                        [format!(".{name}'::regclass"), format!(".\"{name}\"'::regclass")]
                    };
                    let named = |r: &Relation| {
                        let ends = ends(r);
                        new.iter().any(|text| ends.iter().any(|end| text.contains(end)))
                    };
                    needs.extend(all.filter(|r| named(r)).map(|r| id_of(&r)));
                }
            }
            (Relation::Sequence(_), _) => {}
        }
        let version = |id: Oid| match self.snapshot.relation(id).map(|r| &**r) {
            Some(Relation::Table(table)) => table.version,
            _ => 0,
        };
        // Of itself it needs nothing; what is not there (an old catalog may say so) cannot go.
        let there = |id: &Oid| *id != id_of(relation) && self.snapshot.relation(*id).is_some();
        needs.into_iter().filter(there).map(|id| (id, version(id))).collect()
    }

    /// Removes a table, view or sequence.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn remove_relation(&mut self, id: Oid) -> Result<(), SqlError> {
        if let Some(old) = self.snapshot.relation(id).cloned() {
            self.end_object(key::RELATIONS, id, token_of(&old))?;
            self.end_before(&old)?;
            self.discard_building(&old)?;
        }
        self.own.remove_relation(id);
        self.snapshot.remove_relation(id);
        self.forget_statistics(id)?;
        Ok(self.delete(key::RELATIONS, id)?)
    }

    /// From the moment this transaction commits nothing is known of a table's contents.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn forget_statistics(&mut self, id: Oid) -> Result<(), SqlError> {
        Ok(self.txn.with(|t| t.overwrite(Bytes::copy_from_slice(&key::object(key::STATISTICS, id)), None))?)
    }

    /// Adds a schema, or renames one: then whatever went by its name ends.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn put_schema(&mut self, schema: Schema) -> Result<(), SqlError> {
        match self.snapshot.schema_by_id(schema.id).cloned() {
            Some(old) => {
                self.end_object(key::SCHEMAS, schema.id, key::version(schema.id, 0))?;
                let inside = self.snapshot.relations(old.database).into_iter().filter(|r| schema_of(r) == schema.id);
                inside.into_iter().try_for_each(|relation| self.end(token_of(&relation)))?;
            }
            None => self.depend_on(schema.database, 0)?,
        }
        self.make_name(schema.database, &schema.name)?;
        self.put(key::SCHEMAS, schema.id, codec::encode(&schema)?)?;
        let schema = Arc::new(schema);
        self.own.put_schema(schema.clone());
        self.snapshot.put_schema(schema);
        Ok(())
    }

    /// Removes a schema, which must be empty.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn remove_schema(&mut self, id: Oid) -> Result<(), SqlError> {
        self.end_object(key::SCHEMAS, id, key::version(id, 0))?;
        self.own.remove_schema(id);
        self.snapshot.remove_schema(id);
        Ok(self.delete(key::SCHEMAS, id)?)
    }

    /// Adds or replaces a database.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn put_database(&mut self, database: Database) -> Result<(), SqlError> {
        let old = self.snapshot.database_by_id(database.id).cloned();
        if old.is_some() {
            self.lock_object(key::DATABASES, database.id)?;
            self.end(key::version(database.id, 0))?;
        }
        if old.is_none_or(|old| old.name != database.name) {
            self.make_name(key::CLUSTER, &database.name)?;
        }
        self.put(key::DATABASES, database.id, codec::encode(&database)?)?;
        let database = Arc::new(database);
        self.own.put_database(database.clone());
        self.snapshot.put_database(database);
        Ok(())
    }

    /// Removes a database, which must be empty.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn remove_database(&mut self, id: Oid) -> Result<(), SqlError> {
        self.end_object(key::DATABASES, id, key::version(id, 0))?;
        let mut defaults = Defaults::clone(self.snapshot.defaults());
        if defaults.forget_database(id) {
            self.put_defaults(defaults)?;
        }
        self.own.remove_database(id);
        self.snapshot.remove_database(id);
        Ok(self.delete(key::DATABASES, id)?)
    }

    /// Replaces the keys of tokens.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn put_seal(&mut self, seal: Seal) -> Result<(), SqlError> {
        let key = Bytes::from_static(&key::SEAL_KEY);
        self.lock(key.clone())?;
        // Certified: of two that renew one has to hear of the other.
        self.rely(&key)?;
        let record = codec::encode(&seal)?;
        self.txn.with(|t| t.put(key, record))?;
        let seal = Arc::new(seal);
        self.own.put_seal(seal.clone());
        self.snapshot.put_seal(seal);
        Ok(())
    }

    /// Replaces what sessions of a database begin with (0: of all), which must stay.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn put_defaults_of(&mut self, database: Oid, defaults: Defaults) -> Result<(), SqlError> {
        if database != 0 {
            self.depend_on(database, 0)?;
        }
        self.put_defaults(defaults)
    }

    fn put_defaults(&mut self, defaults: Defaults) -> Result<(), SqlError> {
        let key = Bytes::from_static(&key::DEFAULTS_KEY);
        self.lock(key.clone())?;
        self.rely(&key)?;
        let record = codec::encode(&defaults)?;
        self.txn.with(|t| t.put(key, record))?;
        let defaults = Arc::new(defaults);
        self.own.put_defaults(defaults.clone());
        self.snapshot.put_defaults(defaults);
        Ok(())
    }

    /// Declares the data of an index garbage, from the moment this transaction commits.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn discard_index(&mut self, index: Oid) -> Result<(), SqlError> {
        self.txn.with(|t| t.frees_space());
        Ok(self.put(key::GARBAGE, index, Bytes::from_static(&super::garbage::DROPPED))?)
    }

    /// What was made below an index id for a table is taken back within its version: garbage once those have ended who may still write there.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn leave_index(&mut self, index: Oid, table: &Table) -> Result<(), SqlError> {
        self.txn.with(|t| t.frees_space());
        let left = Left { index, table: table.id, version: table.version };
        Ok(self.put(key::GARBAGE, index, left.record())?)
    }

    /// Ends: gives the catalog to go on with in this transaction.
    pub fn finish(mut self) -> Changed {
        self.snapshot.set_version(self.kv.unique_id());
        Changed { snapshot: Arc::new(self.snapshot), own: Arc::new(self.own), number: self.number, since: self.since }
    }
}

/// Commits a transaction that has changed the catalog, with a new number (invariant 5).
///
/// # Errors
/// Those of the transaction.
pub fn commit(
    txn: &TxnRef,
    kv: &dyn Kv,
    cache: &Cache,
    patience: &Patience,
    own: &Overlay,
) -> Result<Committed, SqlError> {
    let number = kv.unique_id();
    let committed = txn.with(|t| {
        t.overwrite(Bytes::from_static(&key::VERSION_KEY), Some(Bytes::copy_from_slice(&number.to_be_bytes())))?;
        t.commit()
    })?;
    cache.committed(kv, patience, number, committed.timestamp, own);
    Ok(committed)
}
