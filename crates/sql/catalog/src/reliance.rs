//! What a transaction relies on of the catalog that it sees: the descriptors that it used, and the names that it looked up in vain (decision 103).
//!
//! Each has a token, a key that holds nothing; whoever changes the thing writes the token. [`Relying`] is the catalog as a running statement looks
//! things up: each lookup is relied upon at once. [`Recorder`] is the catalog as planning looks things up: the lookups go with the plan ([`Uses`]), and
//! every statement that runs it relies on them.
//!
//! 1. A token is relied upon since the moment at which the catalog was looked at, not since the snapshot of now: it may have moved on.
//! 2. Lists of all relations, schemas or databases are not relied upon: what `pg_catalog` shows is the snapshot's, and not certified. A plan that was made of one
//!    is valid for its number only.

use super::CatalogView;
use super::cache::{self, Wait};
use super::view::View;
use super::{Database, Defaults, Named, Oid, Relation, Schema, Seal, Snapshot, Table, key, snapshot};
use crate::SqlError;
use crate::transaction::{KvError, LockMode, LockWait, Span, TxnRef};
use bytes::Bytes;
use clock::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The token of a table's present version.
pub fn version_of(table: &Table) -> Bytes {
    key::version(table.id, table.version)
}

/// The token of a relation's present version.
pub fn token_of(relation: &Relation) -> Bytes {
    match relation {
        Relation::Table(table) => version_of(table),
        Relation::View(_) | Relation::Sequence(_) => key::version(snapshot::id_of(relation), 0),
    }
}

/// The token of the version of a table before its present one, which may be in use beside that.
pub fn version_before(table: &Table) -> Bytes {
    key::version(table.id, table.version.saturating_sub(1))
}

/// The tokens of the versions of a relation that may be in use.
pub fn tokens_in_use(relation: &Relation) -> Vec<Bytes> {
    let before = match relation {
        Relation::Table(table) => Some(version_before(table)),
        Relation::View(_) | Relation::Sequence(_) => None,
    };
    [token_of(relation)].into_iter().chain(before).collect()
}

fn gated(relation: &Relation) -> Option<&Table> {
    match relation {
        Relation::Table(table) if table.gated => Some(table),
        Relation::Table(_) | Relation::View(_) | Relation::Sequence(_) => None,
    }
}

fn token_of_named(catalog: &Snapshot, named: Named) -> Option<Bytes> {
    let (Named::Relation(id) | Named::Index { table: id, .. }) = named;
    catalog.relation(id).map(|relation| token_of(relation))
}

/// What a plan has looked up, and its tokens.
#[derive(Debug, Default)]
pub struct Uses {
    names: Vec<(Option<String>, String, Option<Named>)>,
    relations: Vec<(Oid, Option<Arc<Relation>>)>,
    /// It has seen lists.
    lists: bool,
    tokens: Vec<Bytes>,
}

impl Uses {
    /// Whether the same lookups give the same now.
    pub fn hold(&self, view: &View) -> bool {
        let same = |(id, before): &(Oid, Option<Arc<Relation>>)| match (before, view.snapshot().relation(*id)) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        let named = |(schema, name, before): &(Option<String>, String, Option<Named>)| {
            view.named(schema.as_deref(), name) == *before
        };
        !self.lists && self.relations.iter().all(same) && self.names.iter().all(named)
    }

    /// The tables that were looked up whose versions are held by whoever writes by them.
    pub fn gated(&self) -> impl Iterator<Item = &Table> {
        self.relations.iter().filter_map(|(_, found)| found.as_deref().and_then(gated))
    }

    /// What to rely on.
    pub fn tokens(&self) -> &[Bytes] {
        &self.tokens
    }

    /// Where the rows lie of the tables that were looked up, and what is read of the catalog to know them. `None`: it may read anything.
    pub fn spans(&self) -> Option<Vec<Span>> {
        if self.lists {
            return None;
        }
        let catalog = key::index_span(key::VERSION).start..key::index_span(key::RELATIONS).end;
        let tables = self.relations.iter().filter_map(|(_, found)| match found.as_deref() {
            Some(Relation::Table(table)) => Some(table),
            _ => None,
        });
        let indexes = tables.flat_map(|table| [&table.primary].into_iter().chain(&table.indexes));
        Some([catalog].into_iter().chain(indexes.map(|index| key::index_span(index.id))).collect())
    }

    /// Whether nothing was looked up: it is the same in every catalog.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.relations.is_empty() && self.tokens.is_empty() && !self.lists
    }
}

/// The catalog as planning looks things up.
pub struct Recorder {
    view: Arc<View>,
    uses: Mutex<Uses>,
}

impl Recorder {
    /// Over a view.
    pub fn new(view: Arc<View>) -> Recorder {
        Recorder { view, uses: Mutex::default() }
    }

    /// What was looked up.
    pub fn take(&self) -> Uses {
        let mut uses = std::mem::take(&mut *self.uses.lock());
        uses.tokens.sort();
        uses.tokens.dedup();
        uses
    }

    fn found(&self, id: Oid) -> Option<Arc<Relation>> {
        let found = self.view.snapshot().relation(id).cloned();
        let mut uses = self.uses.lock();
        if !uses.relations.iter().any(|(known, _)| *known == id) {
            uses.tokens.extend(found.as_deref().map(token_of));
            uses.relations.push((id, found.clone()));
        }
        found
    }
    fn list(&self) {
        self.uses.lock().lists = true;
    }
}

impl CatalogView for Recorder {
    fn relation(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Relation>>, SqlError> {
        let mut passed = Vec::new();
        let named = self.view.lookup(schema, name, &mut |token| passed.push(token));
        {
            let mut uses = self.uses.lock();
            uses.tokens.extend(passed);
            uses.names.push((schema.map(str::to_string), name.to_string(), named));
        }
        Ok(match named {
            Some(Named::Relation(id)) => self.found(id),
            Some(Named::Index { table, .. }) => {
                self.found(table);
                None
            }
            None => None,
        })
    }
    fn relation_by_id(&self, id: Oid) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(self.found(id))
    }
    fn relations(&self) -> Result<Vec<Arc<Relation>>, SqlError> {
        self.list();
        self.view.relations()
    }
    fn schemas(&self) -> Result<Vec<Schema>, SqlError> {
        self.list();
        self.view.schemas()
    }
    fn databases(&self) -> Result<Vec<Database>, SqlError> {
        self.list();
        self.view.databases()
    }
    fn current_database(&self) -> Database {
        self.list();
        self.view.current_database()
    }
}

/// The tokens that a session's open transaction relies on for what it writes: others may wait until it does no more.
#[derive(Debug, Default)]
pub struct Relied {
    any: AtomicBool,
    tokens: Mutex<Vec<Bytes>>,
    /// So many of them are of statements that have run.
    run: AtomicUsize,
}

impl Relied {
    /// It does by these.
    pub fn add(&self, tokens: &[Bytes]) {
        if tokens.is_empty() {
            return;
        }
        let mut known = self.tokens.lock();
        self.any.store(true, Ordering::Relaxed);
        for token in tokens {
            if !known.contains(token) {
                known.push(token.clone());
            }
        }
    }
    /// Whether it does.
    pub fn has(&self, token: &Bytes) -> bool {
        self.tokens.lock().contains(token)
    }
    /// Whether it does by one of these, and not only by its present statement.
    pub fn has_written_by(&self, tokens: &[Bytes]) -> bool {
        let known = self.tokens.lock();
        known.iter().take(self.run.load(Ordering::Relaxed)).any(|token| tokens.contains(token))
    }
    /// A statement has run: gives how many there are.
    pub fn has_run(&self) -> usize {
        let mark = self.mark();
        self.run.store(mark, Ordering::Relaxed);
        mark
    }
    /// How many there are. Only its session adds, so it knows without the lock if there are none.
    pub fn mark(&self) -> usize {
        if self.any.load(Ordering::Relaxed) { self.tokens.lock().len() } else { 0 }
    }
    /// Those that there were at a mark.
    pub fn before(&self, mark: usize) -> Vec<Bytes> {
        self.tokens.lock().iter().take(mark).cloned().collect()
    }
    /// Those that came since a mark.
    pub fn behind(&self, mark: usize) -> Vec<Bytes> {
        self.tokens.lock().iter().skip(mark).cloned().collect()
    }
    /// What was to be done by those behind a mark is not done.
    pub fn back_to(&self, mark: usize) {
        self.tokens.lock().truncate(mark);
    }
    /// The transaction has ended. Only its session adds and clears, so it knows without the lock whether there is anything.
    pub fn clear(&self) {
        if self.any.load(Ordering::Relaxed) {
            self.any.store(false, Ordering::Relaxed);
            let mut tokens = self.tokens.lock();
            self.run.store(0, Ordering::Relaxed);
            tokens.clear();
        }
    }
}

/// The catalog as a running statement looks things up.
pub struct Relying {
    view: Arc<View>,
    txn: TxnRef,
    since: Timestamp,
    relied: Arc<Relied>,
    /// The view may not be the present one: its range did not answer.
    unreached: bool,
    /// Versions that writers hold are held.
    holds: bool,
}

impl Relying {
    /// A view that a transaction of a session saw at a time.
    pub fn new(view: Arc<View>, txn: TxnRef, since: Timestamp, relied: Arc<Relied>) -> Relying {
        Relying { view, txn, since, relied, unreached: false, holds: true }
    }

    /// The same, for a change of the catalog: it may have taken the version of a table for itself.
    pub fn of_a_change(self) -> Relying {
        Relying { holds: false, ..self }
    }

    /// The same, where the catalog could not be asked for when the statement began: whatever is looked up is asked for then.
    pub fn unreached(self, unreached: bool) -> Relying {
        Relying { unreached, ..self }
    }

    /// Nothing is said of the catalog that is not known to be so.
    fn confirm(&self) -> Result<(), SqlError> {
        if !self.unreached {
            return Ok(());
        }
        let number = self.txn.with(|t| cache::read_number(t, Wait::Patient))?;
        if number != self.view.snapshot().version() {
            let reason = "the catalog has changed while it could not be reached".to_owned();
            return Err(KvError::Restart { reason, key: None }.into());
        }
        Ok(())
    }

    /// Holds the version of a table that is to be written, if whoever writes by it does: waits for a change that has taken it for itself.
    ///
    /// # Errors
    /// A restart where that has ended it; those of the lock.
    pub fn hold(&self, table: &Table) -> Result<(), KvError> {
        match table.gated && self.holds {
            true => self.txn.with(|t| t.lock_as(&version_of(table), LockMode::KeyShare, LockWait::Wait)).map(drop),
            false => Ok(()),
        }
    }

    /// Relies on tokens. `writes`: what goes by them is written.
    ///
    /// # Errors
    /// A restart where one has been written since.
    pub fn rely(&self, tokens: &[Bytes], writes: bool) -> Result<(), KvError> {
        if writes {
            self.relied.add(tokens);
        }
        self.txn.with(|t| tokens.iter().try_for_each(|token| t.rely(token, self.since, writes)))
    }
}

impl CatalogView for Relying {
    fn relation(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Relation>>, SqlError> {
        self.confirm()?;
        let mut tokens = Vec::new();
        let named = self.view.lookup(schema, name, &mut |token| tokens.push(token));
        tokens.extend(named.and_then(|named| token_of_named(self.view.snapshot(), named)));
        self.rely(&tokens, false)?;
        Ok(match named {
            Some(Named::Relation(id)) => self.view.snapshot().relation(id).cloned(),
            _ => None,
        })
    }
    /// Who asks by OID looks at the catalog: `pg_catalog`'s functions, names of types.
    fn relation_by_id(&self, id: Oid) -> Result<Option<Arc<Relation>>, SqlError> {
        self.confirm()?;
        let found = self.view.snapshot().relation(id).cloned();
        if let Some(found) = &found {
            self.rely(&[token_of(found)], false)?;
        }
        Ok(found)
    }
    fn relation_to_write(&self, id: Oid) -> Result<Option<Arc<Relation>>, SqlError> {
        self.confirm()?;
        let found = self.view.snapshot().relation(id).cloned();
        if let Some(found) = &found {
            gated(found).map_or(Ok(()), |table| self.hold(table))?;
            self.rely(&[token_of(found)], true)?;
        }
        Ok(found)
    }
    fn relations(&self) -> Result<Vec<Arc<Relation>>, SqlError> {
        self.confirm()?;
        self.view.relations()
    }
    fn known_relations(&self) -> Vec<Arc<Relation>> {
        self.view.snapshot().all_relations().cloned().collect()
    }
    fn known_databases(&self) -> Vec<Database> {
        self.view.databases().unwrap_or_default()
    }
    fn schemas(&self) -> Result<Vec<Schema>, SqlError> {
        self.confirm()?;
        self.view.schemas()
    }
    fn databases(&self) -> Result<Vec<Database>, SqlError> {
        self.confirm()?;
        self.view.databases()
    }
    fn current_database(&self) -> Database {
        self.view.current_database()
    }
    fn defaults(&self) -> Arc<Defaults> {
        self.view.snapshot().defaults().clone()
    }
    fn seal(&self) -> Option<Arc<Seal>> {
        self.view.snapshot().seal().cloned()
    }
}
