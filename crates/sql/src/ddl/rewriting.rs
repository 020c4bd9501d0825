//! UPDATE, DELETE and INSERT .. SELECT of more rows than a transaction may hold: the table is written anew while its writers wait.
//!
//! # Problem
//! What a statement writes stands in memory until its transaction commits. One that changes millions of rows was 53200, however small its WHERE is.
//!
//! # Idea
//! It begins as any other: how much it writes nobody knows before. A statement that is its whole transaction and does not fit is undone and run again as ALTER TABLE .. TYPE is ([`super::exclusive`]): behind the table's gate, all rows as they are
//! afterwards go to fresh index ids by a load ([`super::load`]; what becomes of each row: [`crate::exec::rewrite`]), and one small transaction lets the table have them. Decision 238.
//!
//! # Invariants
//! 1. Nobody sees anything of it before that transaction commits, and that has few writes: so a crash, a cancel or an error leaves nothing half-done. What was loaded is garbage then.
//! 2. Safety is the tokens' and certification's, as for ALTER TABLE: the rows are read certified, and the commit ends the version that all others write by.
//! 3. The statement is planned anew behind the gate, by the catalog of the transaction that runs it. Where it is not any more what it was (another table has the name), nothing is done.
//! 4. What it reads of other tables is certified as by the statement: at SERIALIZABLE all of it, else nothing.
//! 5. No more of them at a time than there is memory for ([`super::permit`]). Who waits for that holds nothing, and keeps nobody from writing; who waits for others than these keeps nobody from that.
//! 6. What an attempt has loaded is erased as soon as that has failed ([`garbage::withdraw`]), or once no merge is in the way, and the disk is looked at before the next one. There are [`ATTEMPTS_MAX`] of them: each writes the whole table. Who has locked what stays locked (an advisory lock of the session) has one.
//!
//! # Caveats
//! As of ALTER TABLE .. TYPE: who writes to the table waits, whichever rows he means; who reads does not. The table is there twice until it is collected. What SPLIT AT made of it is made of it again behind the commit, where that can be. In a cluster it is not done, nor to a table whose past is kept for longer than the node keeps the rest.

use super::load::Loader;
use super::online::Online;
use super::orphans::last_patience;
use super::permit::Admitted;
use super::run::Run;
use super::takeover::below;
use crate::catalog::{Oid, Snapshot, Table, garbage, key};
use crate::context::StatementContext;
use crate::database::Database;
use crate::encoding::index_span;
use crate::exec::target::Target;
use crate::plan::{self, PlanContext};
use crate::syntax::Planned;
use crate::transaction::{Admin, AdminReply, BeginOptions, Isolation, ScanRequest};
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use bytes::Bytes;
use clock::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often the table is written until its client hears that somebody came first: at SERIALIZABLE another table that it reads may be written all the time.
const ATTEMPTS_MAX: usize = 3;

/// Rows take this part of their bytes on the disk, where they are compressed: a guess at which nobody is refused who would have fitted. Who does not fit is ended ([`LEFT_BYTES`]).
const COMPRESSED_PART: u64 = 3;
/// Rows that are looked at to know how large the table is.
const SAMPLE_ROWS: usize = 1000;
/// So much of the disk is left to others.
const LEFT_BYTES: u64 = 64 << 20;

/// A statement, and the table that it writes.
pub(crate) struct Rewriting<'a> {
    /// The statement, parsed.
    pub planned: &'a Planned,
    /// As its client sent it.
    pub text: &'a str,
    /// The types of its parameters.
    pub parameters: &'a [SqlType],
    /// The table.
    pub table: Oid,
    /// It has fewer rows afterwards: maybe none.
    pub only_deletes: bool,
    /// What it promises of what it reads.
    pub isolation: Isolation,
}

/// Whether the past of a table is kept for longer than the node keeps the rest. What it leaves below its old index ids is no table's any more, and goes by the node's retention.
pub(crate) fn keeps_longer(db: &Database, table: &Table) -> bool {
    let node_s = db.options.retention_seconds;
    table.retention.as_ref().zip(node_s).is_some_and(|(retention, node_s)| retention.seconds > node_s)
}

impl Online<'_> {
    /// Whether the disk takes a table once more, as far as is known: its number of rows by its statistics, or by these few if that is all; the bytes of a row by a few, and compressed about. (What
    /// is not known shows as it is written, see [`LEFT_BYTES`]: the rows of a query that is inserted, and how much is left of a table from which rows are deleted, which is to make room.)
    fn check_room(&self, what: &Rewriting<'_>, table: &Table) -> Result<(), SqlError> {
        let bytes = if what.only_deletes { 0 } else { self.bytes_on_disk(table)? };
        match self.db.kv.has_room_for(bytes.saturating_add(LEFT_BYTES)) {
            true => Ok(()),
            false => {
                let message = format!("the disk has no room for table \"{}\" to be written anew", table.name);
                Err(SqlError::new(SqlState::DISK_FULL, message)
                    .detail(format!("The statement does not fit into memory, and the table takes about {bytes} bytes, or what it leaves of that; {LEFT_BYTES} are left to others."))
                    .hint("Write fewer rows in one transaction (delete some thousands at a time), drop or truncate tables, free space on the store's disk, or start the node with more --memory."))
            }
        }
    }

    /// What the rows and indexes of a table take there, about.
    fn bytes_on_disk(&self, table: &Table) -> Result<u64, SqlError> {
        let mut txn = self.begin(Isolation::RepeatableRead)?;
        let request = ScanRequest { span: index_span(table.primary.id), reverse: false, limit: SAMPLE_ROWS };
        let sample = txn.peek_scan(&request)?;
        txn.rollback();
        let count = sample.rows.len() as u64;
        let known = || self.db.sessions.statistics.of(self.db.kv.as_ref(), table.id).map_or(0, |known| known.rows);
        let rows = if sample.rest.is_some() { known().max(count) } else { count };
        // An entry of an index is about as long as a key of the row, twice.
        let of_row = |(key, value): &(Bytes, Bytes)| key.len() * (1 + 2 * table.indexes.len()) + value.len();
        let sample_bytes = sample.rows.iter().map(of_row).sum::<usize>() as u64;
        let bytes = u128::from(sample_bytes) * u128::from(rows) / u128::from(count.max(1));
        Ok(u64::try_from(bytes).unwrap_or(u64::MAX) / COMPRESSED_PART)
    }
}

/// Runs it by transactions of its own, begun with these options: its tag, and when it was committed. `None`: it does not write that table any more.
///
/// # Errors
/// As for the statement; what ended its waits.
pub(crate) fn rewrite_exclusively(
    db: &Database,
    database: &Arc<crate::catalog::Database>,
    context: &Arc<StatementContext>,
    options: BeginOptions,
    what: &Rewriting<'_>,
) -> Result<Option<(String, Timestamp)>, SqlError> {
    let mut online = Online::new(db, database, context, options);
    let looks = |online: &Online<'_>| match online.catalog_now()?.table(what.table) {
        Some(table) => online.check_room(what, table),
        None => Ok(()),
    };
    let Some(Admitted { gates, permit }) = online.admitted(what.table, &looks)? else { return Ok(None) };
    let mut left = Vec::new();
    let result = online.rewrite(what, &mut left);
    drop(gates);
    drop(permit);
    // Nobody waits for that.
    online.withdraw(&mut left);
    Ok(result?.map(|Done { tag, ids }| {
        split_as_before(db, &ids);
        (tag, online.ended(Vec::new()).1)
    }))
}

/// What it came to.
struct Done {
    tag: String,
    /// Ids of indexes before, and now.
    ids: Vec<(Oid, Oid)>,
}

/// Boundaries of ranges lie where they did. That the statement is done does not depend on it.
fn split_as_before(db: &Database, ids: &[(Oid, Oid)]) {
    for (before, now) in ids {
        let Ok(AdminReply::Ranges(ranges)) = db.kv.admin(Admin::Ranges(index_span(*before))) else { continue };
        // From the last to the first, as SPLIT AT.
        for (start, _) in ranges.iter().rev().filter(|(start, _)| start.starts_with(&before.to_be_bytes())) {
            drop(db.kv.admin(Admin::Split(below(*now, start))));
        }
    }
}

impl Online<'_> {
    /// Nobody loads these any more.
    fn withdraw(&self, left: &mut Vec<Oid>) {
        // Where that fails maintenance does it.
        let _ = garbage::withdraw(self.db.kv.as_ref(), &last_patience(self.db), left, self.db.options.withdraws_first);
        left.drain(..).for_each(|index| self.db.loads.end(index));
    }

    /// The statement itself, a few times (invariant 6). What is `left` of the last one that has failed is to be withdrawn.
    fn rewrite(&self, what: &Rewriting<'_>, left: &mut Vec<Oid>) -> Result<Option<Done>, SqlError> {
        let record = Bytes::copy_from_slice(&key::object(key::RELATIONS, what.table));
        let about = |_: &Snapshot| BTreeSet::from([record.clone()]);
        let isolation = match what.isolation {
            Isolation::Serializable => Isolation::Serializable,
            // Its own snapshot moves at the end of the load: REPEATABLE READ would look again at what nobody asks about (decision 225).
            Isolation::RepeatableRead | Isolation::ReadCommitted => Isolation::ReadCommitted,
        };
        let effects = &self.context.backend.effects;
        let mut attempts = 1;
        loop {
            let mut make = |run: &mut Run<'_>| {
                let result = run.write_anew(what);
                left.extend(run.take_loads());
                result
            };
            let result = self.step_at(isolation, 1, &about, &mut make);
            if result.is_ok() {
                left.drain(..).for_each(|index| self.db.loads.end(index));
            }
            match result {
                Err(e) if SqlError::retry(&e) && attempts < ATTEMPTS_MAX && !effects.is_final() => {
                    self.withdraw(left);
                    // Merges may be in the way of that: then it is on the disk still.
                    if let Some(table) = self.catalog_now()?.table(what.table) {
                        self.check_room(what, table)?;
                    }
                    // What it has asked of the session it will ask again.
                    effects.take();
                    attempts += 1;
                }
                result => return result.map(|(done, _)| done),
            }
        }
    }
}

impl Run<'_> {
    /// The table, which is held, gets fresh index ids, and what the statement makes of its rows.
    fn write_anew(&mut self, what: &Rewriting<'_>) -> Result<Option<Done>, SqlError> {
        let Some(mut table) = self.catalog().table(what.table).cloned() else { return Ok(None) };
        let planning = PlanContext {
            parameter_hints: what.parameters.iter().cloned().map(Some).collect(),
            overriding: what.planned.overriding,
            inference: what.planned.inference.clone(),
            ..self.plan_context()
        };
        let plan = plan::prepare(&what.planned.statement, what.text, &planning)?;
        let Some(rewriting) = plan.rewriting().filter(|rewriting| rewriting.table().id == what.table) else {
            return Ok(None);
        };
        if keeps_longer(self.db, &table) {
            return Ok(None);
        }
        // It reads by the catalog of before, in which the table has its old ids; `currval` is the session's.
        let mut context = StatementContext::clone(&self.statement_now());
        (context.params, context.sequences) = (self.statement.params.clone(), self.statement.sequences.clone());
        self.touch().has_locked([key::guard(what.table)]);
        // What a change left that nobody makes any more goes with it.
        (table.building, table.pending, table.filling) = (None, None, None);
        let indexes = |table: &Table| -> Vec<Oid> {
            std::iter::once(&table.primary).chain(&table.indexes).map(|index| index.id).collect()
        };
        let before = indexes(&table);
        self.renew_ids(&mut table)?;
        self.put_table(table.clone())?;
        let new = Target::new(&table, &self.plan_context())?;
        let mut loader = Loader::of_table(&table, self.statement.patience()).leaving(LEFT_BYTES);
        let done = rewriting.rewrite(&Arc::new(context), &new, &mut loader.into_db(self.db));
        let statement = self.statement.clone();
        let (tag, result) = match done {
            Ok(tag) => (tag, Ok(())),
            Err(e) => (String::new(), Err(e)),
        };
        self.end_load(loader, result, &mut |found| new.twice(&statement, &found))?;
        Ok(Some(Done { tag, ids: before.into_iter().zip(indexes(&table)).collect() }))
    }
}
