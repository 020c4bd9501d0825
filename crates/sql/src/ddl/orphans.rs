//! What was being made of a table beside its writers, and is not any more, is taken back.
//!
//! # Problem
//! An index that is being made, and a condition that writers keep before it is shown, stand in the table's descriptor ([`super::online`]). Whatever ends their statement has to take them back; a
//! process that dies does not. Writers go by them meanwhile: they keep a condition that nobody has, and there is none to drop. And whoever has written to the table should hear of none of it.
//!
//! # Idea
//! The descriptor is said anew, without them, within its version ([`Change::restate_table`]): what writers store by the one and by the other differs only in what nobody reads. So no version ends. Any node does that
//! for any other, once nobody holds the table's guard.
//!
//! # Invariants
//! 1. Nothing that writers rely on ends. Who has written by the version, or by the one before, commits; and counts as a user of the table: the next change waits for him. (One that is made in
//!    steps does so before its first: [`super::online`].)
//! 2. Who makes something looks in each of its steps whether that is still there ([`Made`]): an index by its id, which no other ever has, a column by its place in rows; a condition by the version that it came with,
//!    which grows with all but this. So one that was only slow, or paused, shows nothing that writers have not kept.
//! 3. Taken back is what its statement says has ended, or what nobody holds the guard of: a live statement does, unless a lock table was lost. Then its node is asked, and one that does not
//!    answer counts as gone: by 2 nothing worse comes of it than that the statement begins anew.
//! 4. What lies below the ids of such an index is garbage when those have ended who may still write there, as far as sessions tell; who was missed leaves a few keys where nobody reads.
//!
//! Decision 228.

use super::online::STEP_ATTEMPTS_MAX;
use super::users::All;
use crate::catalog::garbage::{all_left, drop_left};
use crate::catalog::reliance::tokens_in_use;
use crate::catalog::{Change, Check, Oid, Overlay, Relation, Snapshot, Table, change, key};
use crate::database::Database;
use crate::transaction::{Isolation, Kv, LockWait, Patience, TxnRef};
use crate::{SqlError, users};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// How long what a statement has begun is tried to be taken back when it ends, microseconds; then maintenance does it.
const LAST_US_MAX: i64 = 5_000_000;

/// What a statement has announced, as it stands in the table's descriptor.
pub(super) enum Made {
    /// An index.
    Index(Oid),
    /// A condition, and the version of the table that it came with.
    Condition(Check, u64),
    /// A column that rows get, by where they hold it: no other is held there, ever.
    Column(u16),
}

impl Made {
    /// Whether a table has it still.
    pub fn is_of(&self, table: &Table) -> bool {
        match self {
            Made::Index(index) => table.building.as_ref().is_some_and(|building| building.index.id == *index),
            Made::Column(place) => table.filling.as_ref().is_some_and(|filling| filling.column.place() == *place),
            Made::Condition(pending, version) => table.version == *version && table.pending.as_ref() == Some(pending),
        }
    }
}

/// So long is waited for what a statement leaves to be taken back when it ends; what ended it may be that nobody answers.
pub(super) fn last_patience(db: &Database) -> Patience {
    let patience = Patience::default();
    patience.deadline.set(db.kv.monotonic_us().saturating_add(LAST_US_MAX));
    patience
}

/// Takes back what is being made of a table, if that is what is `meant`.
///
/// # Errors
/// Those of the layers below.
pub(super) fn take_back(
    db: &Database,
    patience: &Patience,
    table: Oid,
    meant: &dyn Fn(&Table) -> bool,
) -> Result<(), SqlError> {
    change_now(db, patience, table, &|change, table| {
        if !table.is_unfinished() || !meant(&table) {
            return Ok(());
        }
        // The sequence of a new column is nobody's.
        if let Some(column) = table.filling.as_ref().map(|filling| &filling.column)
            && let Some(sequence) = column.owned_sequence.filter(|_| table.columns.iter().all(|c| c.id != column.id))
        {
            change.remove_relation(sequence)?;
        }
        for index in table.building.iter().flat_map(|building| [building.index.id, building.marks]) {
            change.leave_index(index, &table)?;
        }
        change.restate_table(Table { building: None, pending: None, filling: None, ..table })
    })
}

/// Whoever writes to a table holds its version no more.
///
/// # Errors
/// Those of the layers below.
pub(super) fn open_gate(db: &Database, patience: &Patience, table: Oid) -> Result<(), SqlError> {
    change_now(db, patience, table, &|change, table| match table.gated {
        true => change.restate_table(Table { gated: false, ..table }),
        false => Ok(()),
    })
}

/// `make` changes the table, or does nothing.
fn change_now(
    db: &Database,
    patience: &Patience,
    table: Oid,
    make: &dyn Fn(&mut Change<'_>, Table) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let kv = db.kv.as_ref();
    let attempt = || {
        let txn = TxnRef::new(patience.begin(kv, Isolation::Serializable)?);
        let record = Bytes::copy_from_slice(&key::object(key::RELATIONS, table));
        let about = |_: &Snapshot| BTreeSet::from([record.clone()]);
        let mut change = Change::begin(&txn, kv, &db.catalog, patience, &Overlay::default(), &about)?;
        let Some(table) = change.snapshot().table(table).cloned() else { return Ok(()) };
        make(&mut change, table)?;
        match change.finish().own {
            own if own.is_empty() => Ok(()),
            own => change::commit(&txn, kv, &db.catalog, patience, &own).map(drop),
        }
    };
    let mut result = attempt();
    for _ in 1..STEP_ATTEMPTS_MAX {
        match &result {
            Err(e) if SqlError::retry(e) => result = attempt(),
            _ => break,
        }
    }
    result
}

/// Takes back what nobody makes any more, of whatever node: indexes and conditions of statements whose process has ended, or that could not do it themselves, and gates that nobody is behind. `true`: something was, or what
/// was taken back before is garbage now.
///
/// # Errors
/// Those of the layers below.
pub fn take_back_orphans(db: &Database, patience: &Patience) -> Result<bool, SqlError> {
    // Before the catalog is looked at, which knows what these were then, if that has not ended.
    let barred = db.sessions.endings.all_barred(db.kv.monotonic_us());
    let mut txn = patience.begin(db.kv.as_ref(), Isolation::RepeatableRead)?;
    let catalog = db.catalog.current(db.kv.as_ref(), patience, txn.as_mut(), None)?;
    drop(txn);
    if !barred.is_empty() {
        let known: BTreeSet<Bytes> = catalog.all_relations().flat_map(|relation| tokens_in_use(relation)).collect();
        let ended = barred.iter().filter(|(token, _)| !known.contains(token));
        ended.for_each(|(token, block)| db.sessions.endings.unbar(token, *block));
    }
    let mut done = settle_left(db, patience, catalog.version())?;
    for relation in catalog.all_relations() {
        let Relation::Table(table) = &**relation else { continue };
        let index = table.building.as_ref().map(|building| building.index.id);
        let made = index
            .or((table.pending.is_some() || table.filling.is_some()).then_some(table.id))
            .filter(|made| !db.builds.contains(*made));
        let gated = table.gated && !db.builds.contains(table.id);
        if made.is_none() && !gated {
            continue;
        }
        let mut guard = patience.begin(db.kv.as_ref(), Isolation::RepeatableRead)?;
        if !guard.lock(&key::guard(table.id), LockWait::Skip)? {
            continue;
        }
        if made.is_some_and(|made| !is_made_elsewhere(db.kv.as_ref(), table.maker, made)) {
            // As it was seen before the guard was free.
            let same = |now: &Table| {
                now.building == table.building && now.pending == table.pending && now.filling == table.filling
            };
            take_back(db, patience, table.id, &|now| now.version == table.version && same(now))?;
            done = true;
        }
        if gated {
            open_gate(db, patience, table.id)?;
        }
    }
    Ok(done)
}

/// Whether another node says that it makes something.
fn is_made_elsewhere(kv: &dyn Kv, maker: u32, made: Oid) -> bool {
    // 0: a process that ran alone on this store, and is over.
    if maker == 0 || maker == kv.node() || kv.has_left(maker) {
        return false;
    }
    match kv.ask_peer(maker, &users::making(made)) {
        Ok(answer) => answer == true.to_string(),
        // One of the release before takes its own back, and does not look whether others have.
        Err(_) => kv.ask_peer(maker, &users::question(&[])).is_ok(),
    }
}

/// Who may still write below the ids of indexes that were taken back.
#[derive(Default)]
pub(crate) struct Writers {
    /// By index, as they were found first, but for those who have ended.
    by_index: BTreeMap<Oid, All>,
    /// The number of a catalog by which there are no such indexes: with one more comes another number.
    none_at: Option<u64>,
}

/// What was taken back becomes garbage, once those have ended who were seen to write by its version when it was first looked at here.
fn settle_left(db: &Database, patience: &Patience, number: u64) -> Result<bool, SqlError> {
    let mut writers = patience.lock(db.kv.as_ref(), &db.left)?;
    if writers.none_at == Some(number) {
        return Ok(false);
    }
    let mut txn = patience.begin(db.kv.as_ref(), Isolation::RepeatableRead)?;
    let all = all_left(txn.as_mut())?;
    drop(txn);
    writers.by_index.retain(|index, _| all.iter().any(|left| left.index == *index));
    writers.none_at = all.is_empty().then_some(number);
    let mut settled = false;
    for left in all {
        let tokens = [left.version, left.version.saturating_sub(1)].map(|version| key::version(left.table, version));
        let now = All::now(db, patience, &tokens, writers.by_index.remove(&left.index));
        if now.is_empty() {
            drop_left(db.kv.as_ref(), patience, left)?;
            settled = true;
        } else {
            writers.by_index.insert(left.index, now);
        }
    }
    Ok(settled)
}
