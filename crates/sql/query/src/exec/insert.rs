//! INSERT: rows from VALUES or a query, ON CONFLICT, RETURNING; and COPY's bulk form.
//!
//! An insert locks its unique keys ([`super::claims`]; of many rows together: [`super::keys_together`]), and their absence is certified. ON CONFLICT DO UPDATE locks its arbiter's key before it looks,
//! so that writers of one hot key queue.

use super::ahead::{self, AHEAD_ROWS};
use super::claims::Claims;
use super::evaluate;
use super::key_lock::KeyLock;
use super::keys_together;
use super::literal_rows::LiteralRows;
use super::load::{Duplicate, Load};
use super::metered;
use super::sort::{Reserved, row_bytes};
use super::target::Target;
use super::write::{Old, RowImage, Taken, Touch};
use super::writer::Writer;
use super::written::Written;
use crate::context::StatementContext;
use crate::expr::Expr;
use crate::plan::{Execution, Plan, RowInserter};
use crate::transaction::{LockMode, LockWait};
use crate::types::{Row, Value};
use crate::work::Pooled;
use crate::{KvError, SqlError, SqlState};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows that are made before the first of them is written take so much, bytes, or little more.
const AHEAD_BYTES: usize = 1 << 20;
/// Rows pulled at a time from the query of an INSERT.
const SOURCE_ROWS: usize = 1024;
/// So many rows are written one by one where they are led, and in small groups elsewhere; those behind them a thousand together.
const SINGLY_ROWS: usize = 4096;

/// An INSERT, settled when it is planned.
pub struct Insert {
    /// The table.
    pub target: Arc<Target>,
    /// Where rows come from.
    pub source: Source,
    /// ON CONFLICT.
    pub conflict: Option<Conflict>,
    /// RETURNING, over the new row.
    pub returning: Option<Vec<Expr>>,
}

/// Where the rows of an INSERT come from. Expressions are by slot and have the column's type; `None` is NULL.
pub enum Source {
    /// VALUES.
    Values {
        /// By slot.
        rows: Vec<Vec<Option<Expr>>>,
        /// What those of them take that were kept as text.
        _held: Pooled,
    },
    /// VALUES of many rows that are mostly literals.
    Literals(LiteralRows),
    /// A query, and the row made from each of its rows.
    Plan {
        /// The query.
        plan: Arc<dyn Plan>,
        /// By slot, over the query's row.
        columns: Vec<Option<Expr>>,
        /// The query may read the table: take all its rows before writing the first.
        materialise: bool,
    },
}

/// ON CONFLICT.
pub struct Conflict {
    /// Ordinals of the unique indexes meant; `None` is any.
    pub arbiters: Option<Vec<usize>>,
    /// DO UPDATE; `None` is DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

impl Conflict {
    /// Whether a key of this index is one of those meant.
    fn means(&self, index: usize) -> bool {
        self.arbiters.as_ref().is_none_or(|arbiters| arbiters.contains(&index))
    }
}

/// DO UPDATE SET .. WHERE: over the existing row, then the row proposed (EXCLUDED).
pub struct ConflictUpdate {
    /// Which columns change.
    pub touch: Touch,
    /// SET.
    pub set: Vec<(usize, Expr)>,
    /// WHERE.
    pub condition: Option<Expr>,
    /// How strongly the row is locked.
    pub lock: KeyLock,
}

struct Run<'a> {
    insert: &'a Insert,
    context: &'a Arc<StatementContext>,
    writer: Writer<'a>,
    /// Keys of rows that this statement inserted or updated: DO UPDATE may not meet one again.
    affected: BTreeSet<Bytes>,
    written: Written,
    /// Rows that were written, or are next, and whether their keys may fall into a gap.
    asked: usize,
    gaps: bool,
}

impl Insert {
    /// Runs it: the number of rows, and the rows of RETURNING.
    pub fn run(&self, context: &Arc<StatementContext>) -> Result<(u64, Vec<Row>), SqlError> {
        metered::written(self, context, || self.run_all(context))
    }

    fn run_all(&self, context: &Arc<StatementContext>) -> Result<(u64, Vec<Row>), SqlError> {
        let mut run = Run {
            insert: self,
            context,
            writer: Writer::new(context),
            affected: BTreeSet::new(),
            written: Written::new(&context.memory),
            asked: 0,
            gaps: true,
        };
        match &self.source {
            Source::Values { rows, .. } => {
                run.values(rows.iter().map(|exprs| make_row(exprs, &[], context)))?;
            }
            Source::Literals(rows) => run.values(rows.rows(context))?,
            Source::Plan { plan, columns, materialise } => run.from_plan(plan.as_ref(), columns, *materialise)?,
        }
        run.writer.finish()?;
        let (count, returned) = run.written.finish();
        context.wrote(self.target.access.table.id, count);
        Ok((count, returned))
    }

    /// The query, and the row made from each of its rows, if neither other tables' rows nor the client have to do with what is inserted.
    pub(super) fn adds(&self) -> Option<(&dyn Plan, &[Option<Expr>])> {
        match &self.source {
            Source::Plan { plan, columns, .. }
                if self.conflict.is_none()
                    && self.returning.is_none()
                    && self.target.access.table.foreign_keys.is_empty()
                    && plan.is_read_only() =>
            {
                Some((plan.as_ref(), columns))
            }
            _ => None,
        }
    }

    /// The same, if its rows may be loaded into the table as it is, once that is fresh: it reads nothing of it.
    pub fn filling(&self) -> Option<(&dyn Plan, &[Option<Expr>])> {
        self.adds().filter(|_| matches!(self.source, Source::Plan { materialise: false, .. }))
    }

    /// Runs it, into a fresh table by a load of all its indexes: the number of rows.
    pub fn load(&self, context: &Arc<StatementContext>, load: &mut dyn Load) -> Result<u64, SqlError> {
        let Some((plan, columns)) = self.filling() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "an INSERT that is not to be loaded"));
        };
        let mut into = BulkInsert { target: self.target.clone(), columns: columns.to_vec(), gaps: true };
        into.load_all(context, plan, load)
    }
}

fn make_row(exprs: &[Option<Expr>], input: &[Value], context: &StatementContext) -> Result<Row, SqlError> {
    exprs
        .iter()
        .map(|expr| expr.as_ref().map_or(Ok(Value::Null), |expr| evaluate::value(expr, input, context)))
        .collect()
}

impl Run<'_> {
    fn from_plan(&mut self, plan: &dyn Plan, columns: &[Option<Expr>], materialise: bool) -> Result<(), SqlError> {
        let mut source = match plan.execute(self.context)? {
            Execution::Rows(source) => source,
            Execution::Done { rows, .. } => {
                let context = self.context;
                return self.insert_all(rows.iter().map(|row| make_row(columns, row, context)));
            }
        };
        let mut reserved = Reserved::new(&self.context.memory);
        let mut held = Vec::new();
        loop {
            let rows = source.next(SOURCE_ROWS)?;
            if rows.is_empty() {
                break;
            }
            let context = self.context;
            let made = rows.iter().map(|row| make_row(columns, row, context));
            if !materialise {
                self.insert_all(made)?;
                continue;
            }
            for row in made {
                let row = row?;
                reserved.take_to_write(row_bytes(&row))?;
                held.push(row);
            }
        }
        self.insert_all(held.into_iter().map(Ok))
    }

    /// Inserts rows that are made here.
    fn values(&mut self, rows: impl Iterator<Item = Result<Row, SqlError>>) -> Result<(), SqlError> {
        match &self.context.meters {
            None => self.insert_all(rows),
            Some(meters) => {
                let place = metered::place(&self.insert.source, 0);
                self.insert_all(metered::Made::new(rows, place, meters, self.context))
            }
        }
    }

    /// Inserts rows in their order. Where their keys may have to be asked for elsewhere, some are made before the first of them is written; an error in one of
    /// them comes when those before it are.
    fn insert_all(&mut self, mut rows: impl Iterator<Item = Result<Row, SqlError>>) -> Result<(), SqlError> {
        let far = ahead::is_far(&self.context.txn);
        loop {
            let (behind, conflicts) = (self.asked >= SINGLY_ROWS, self.insert.conflict.is_some());
            let many = behind && !conflicts;
            if !many && !far {
                let Some(row) = rows.next() else { return Ok(()) };
                let (row, image) = self.made(row?)?;
                self.asked += 1;
                self.insert(row, image)?;
                continue;
            }
            let most = match (behind, conflicts) {
                (false, _) => AHEAD_ROWS,
                (true, false) => ahead::KEYS_MAX,
                // As many as are known at a time.
                (true, true) => (ahead::KEYS_MAX / (1 + self.insert.target.access.indexes.len())).max(AHEAD_ROWS),
            };
            let (mut batch, mut bytes, mut failed) = (Vec::new(), 0, None);
            while batch.len() < most && bytes < AHEAD_BYTES && failed.is_none() {
                let Some(row) = rows.next() else { break };
                match row.and_then(|row| self.made(row)) {
                    Ok((row, image)) => {
                        bytes += row_bytes(&row);
                        batch.push((row, image));
                    }
                    Err(error) => failed = Some(error),
                }
            }
            if batch.is_empty() {
                return failed.map_or(Ok(()), Err);
            }
            self.asked += batch.len();
            if many || !conflicts && batch.len() > 1 {
                self.insert_together(batch, many)?;
            } else {
                self.ask_ahead(&batch)?;
                batch.into_iter().try_for_each(|(row, image)| self.insert(row, image))?;
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
    }

    /// The keys of rows that are inserted next are looked at then, and locked where that is so.
    fn ask_ahead(&mut self, batch: &[(Row, RowImage)]) -> Result<(), SqlError> {
        let target = &self.insert.target;
        let access = &target.access;
        let keys = batch.iter().flat_map(|(_, image)| image.keys_of(access, |_| true));
        ahead::reads(keys.cloned(), &self.context.txn)?;
        let Some(locked) = self.locked_ahead() else { return self.lock_free_ahead(batch) };
        // One index after the other: each is in ranges of its own.
        let conflict = self.insert.conflict.as_ref();
        let indexes =
            (0..=access.indexes.len()).filter(|index| conflict.is_none_or(|conflict| locked(conflict, *index)));
        let of_index = |index| {
            batch.iter().flat_map(move |(_, image)| image.keys_of(access, move |known| known == index)).cloned()
        };
        ahead::locks(indexes.flat_map(of_index), LockMode::NoKeyUpdate, &self.context.txn);
        Ok(())
    }

    /// DO NOTHING in a block: a row that nothing seems to be in the way of locks its keys before it is written, and what is taken stays unlocked, as its locks would stay until the block ends.
    fn lock_free_ahead(&self, batch: &[(Row, RowImage)]) -> Result<(), SqlError> {
        let access = &self.insert.target.access;
        let nothing = self.insert.conflict.as_ref().filter(|conflict| conflict.update.is_none());
        let (Some(conflict), Some(_)) = (nothing, self.context.claims.as_deref()) else { return Ok(()) };
        let free: Vec<&RowImage> = self.context.txn.with(|txn| {
            let mut free = Vec::new();
            for (_, image) in batch {
                let mut keys = image.keys_of(access, |index| conflict.means(index));
                if keys.try_fold(true, |free, key| Ok::<_, KvError>(free && txn.peek(key)?.is_none()))? {
                    free.push(image);
                }
            }
            Ok::<_, SqlError>(free)
        })?;
        let of_index = |index| free.iter().flat_map(move |image| image.keys_of(access, move |known| known == index));
        let keys = (0..=access.indexes.len()).flat_map(of_index).cloned();
        ahead::locks(keys, LockMode::NoKeyUpdate, &self.context.txn);
        Ok(())
    }

    /// Which indexes' keys of rows that are next are locked whatever is found there, so that they may be asked for together; `None`: of none.
    fn locked_ahead(&self) -> Option<fn(&Conflict, usize) -> bool> {
        let claims = self.context.claims.as_deref();
        let lone = claims.is_some_and(Claims::are_lone);
        // Those of new rows are locked by a statement that is its whole transaction; what it turns out not to need it does not keep for long.
        match self.insert.conflict.as_ref().map(|it| it.update.as_ref()) {
            Some(Some(update)) => {
                let arbiters = !update.lock.is_open() && update.lock.mode() == LockMode::NoKeyUpdate;
                match (arbiters, lone) {
                    (true, true) => Some(|_, _| true),
                    (true, false) => Some(Conflict::means),
                    (false, true) => Some(|conflict, index| !conflict.means(index)),
                    (false, false) => None,
                }
            }
            Some(None) if lone => Some(|_, _| true),
            // A single row.
            None if claims.is_some() => Some(|_, _| true),
            _ => None,
        }
    }

    /// `seeks`: whether there are so many that it pays to look for gaps.
    fn insert_together(&mut self, batch: Vec<(Row, RowImage)>, seeks: bool) -> Result<(), SqlError> {
        let (target, returning) = (&self.insert.target, self.insert.returning.as_deref());
        let (written, context) = (&mut self.written, self.context);
        let mut none = false;
        let gaps = if seeks { &mut self.gaps } else { &mut none };
        keys_together::put(target, batch, gaps, &mut self.writer, |row| written.add(returning, row, context))
    }

    /// A row as it is to be written, checked.
    fn made(&mut self, mut row: Row) -> Result<(Row, RowImage), SqlError> {
        self.context.check()?;
        let target = &self.insert.target;
        target.access.generate(None, &mut row)?;
        let image = self.writer.image(target, &row)?;
        Ok((row, image))
    }

    fn insert(&mut self, row: Row, image: RowImage) -> Result<(), SqlError> {
        let target = &self.insert.target;
        match &self.insert.conflict {
            None => {
                self.writer.put_new(target, &row, image)?;
                self.done(&row)
            }
            Some(conflict) => self.insert_or(target, conflict, row, image),
        }
    }

    fn done(&mut self, row: &[Value]) -> Result<(), SqlError> {
        self.written.add(self.insert.returning.as_deref(), row, self.context)
    }

    fn insert_or(
        &mut self,
        target: &Arc<Target>,
        conflict: &Conflict,
        row: Row,
        image: RowImage,
    ) -> Result<(), SqlError> {
        let meant = |index: usize| conflict.means(index);
        let update = conflict.update.as_ref();
        // Who refers to the row holds the row's key.
        let mode = match update.filter(|update| update.lock.is_open() && meant(0)) {
            Some(update) => self.foresee(target, update, &image.key, &row)?,
            None => update.map_or(LockMode::NoKeyUpdate, |update| update.lock.mode()),
        };
        if update.is_some() {
            self.context.txn.with(|txn| {
                image.keys_of(&target.access, meant).try_for_each(|key| {
                    let mode = if *key == image.key { mode } else { LockMode::NoKeyUpdate };
                    txn.lock_as(key, mode, LockWait::Wait).map(drop)
                })
            })?;
        }
        let mut locked = false;
        match self.context.claims.as_deref() {
            Some(claims) if !claims.are_lone() => {
                let taken = self.hold_takers(claims, target, conflict, &image, &row)?;
                if taken && update.is_none() {
                    return Ok(());
                }
            }
            Some(claims) if update.is_none() => locked = self.lock_hastily(claims, target, &image)?,
            _ => {}
        }
        let taken = self.context.txn.with(|txn| {
            let taken = image.taken(txn, &target.access, None, meant)?;
            if let (Some(taken), None, Some(claims)) = (&taken, update, self.context.claims.as_deref())
                && claims.may_lock()
            {
                image.settle(txn, &target.access, taken, claims)?;
            }
            Ok::<_, SqlError>(taken)
        })?;
        match (taken, &conflict.update) {
            (None, None) if !locked && self.is_late(target, &image, meant)? => Ok(()),
            (None, _) => {
                let key = image.key.clone();
                self.writer.put_new(target, &row, image)?;
                if conflict.update.is_some() {
                    self.affected.insert(key);
                }
                self.done(&row)
            }
            (Some(_), None) => Ok(()),
            (Some(taken), Some(update)) => self.update(target, update, taken, row),
        }
    }

    /// In a block, before its keys are looked at for good: whoever deletes a row that has one, or gives it another key, is waited for. Says whether one is taken now, although the
    /// transaction cannot see it.
    fn hold_takers(
        &self,
        claims: &Claims,
        target: &Target,
        conflict: &Conflict,
        image: &RowImage,
        proposed: &[Value],
    ) -> Result<bool, SqlError> {
        let access = &target.access;
        let update = conflict.update.as_ref();
        for (index, key) in image.guarded(access).filter(|(index, _)| conflict.means(*index)) {
            // DO UPDATE has locked the row with its primary key.
            if index == 0 && update.is_some() {
                continue;
            }
            let Some(found) = self.context.txn.with(|txn| txn.peek(key))? else { continue };
            let row_key = if index == 0 { key.clone() } else { access.row_key_of_entry(key, &found)? };
            let mode = match update {
                Some(update) => self.foresee(target, update, &row_key, proposed)?,
                None => access.holding(key),
            };
            if !claims.may_lock() {
                return Ok(false);
            }
            if !self.context.txn.with(|txn| claims.hold(txn, key, &row_key, mode))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// DO NOTHING of a statement that is its whole transaction, far from those who lead: its keys are locked while they are read, unless another has one. Says whether all are.
    fn lock_hastily(&self, claims: &Claims, target: &Target, image: &RowImage) -> Result<bool, SqlError> {
        if !ahead::is_far(&self.context.txn) {
            return Ok(false);
        }
        self.context.txn.with(|txn| {
            for key in image.keys_of(&target.access, |_| true) {
                if !claims.may_lock() || !txn.lock_as(key, LockMode::NoKeyUpdate, LockWait::Skip)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// DO NOTHING: whether somebody has inserted a key of the row who had not committed when it was looked for.
    fn is_late(
        &self,
        target: &Target,
        image: &RowImage,
        meant: impl Fn(usize) -> bool + Copy,
    ) -> Result<bool, SqlError> {
        let Some(claims) = &self.context.claims else { return Ok(false) };
        self.context.txn.with(|txn| match claims.wait(txn, &target.access, image)? {
            Some(index) => Ok(meant(index)),
            None => Ok(image.taken(txn, &target.access, None, meant)?.is_some()),
        })
    }

    /// How DO UPDATE will lock the row with this key.
    fn foresee(
        &self,
        target: &Target,
        update: &ConflictUpdate,
        key: &Bytes,
        proposed: &[Value],
    ) -> Result<LockMode, SqlError> {
        if !update.lock.is_open() {
            return Ok(update.lock.mode());
        }
        let Some(stored) = self.context.txn.with(|txn| txn.peek(key))? else { return Ok(update.lock.mode()) };
        let mut both = whole(target, &stored)?;
        both.extend_from_slice(proposed);
        Ok(update.lock.foresee(&target.access, 0, &both, self.context))
    }

    fn update(
        &mut self,
        target: &Arc<Target>,
        update: &ConflictUpdate,
        taken: Taken,
        proposed: Row,
    ) -> Result<(), SqlError> {
        if self.affected.contains(&taken.row_key) || self.context.is_written(&taken.row_key) {
            return Err(SqlError::new(
                SqlState::CARDINALITY_VIOLATION,
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
            )
            .hint(
                "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
            ));
        }
        let held = self.foresee(target, update, &taken.row_key, &proposed)?;
        let stored = self.context.txn.with(|txn| {
            txn.lock_as(&taken.row_key, held, LockWait::Wait)?;
            txn.get_certified(&taken.row_key)
        })?;
        let Some(stored) = stored else {
            return Err(KvError::Restart {
                reason: "the conflicting row is gone".into(),
                key: Some(taken.row_key.clone()),
            }
            .into());
        };
        let existing = whole(target, &stored)?;
        let mut both = existing.clone();
        both.extend(proposed);
        if let Some(condition) = &update.condition
            && !evaluate::truth(condition, &both, self.context)?
        {
            return Ok(());
        }
        let mut new = existing.clone();
        for (slot, expr) in &update.set {
            new[*slot] = evaluate::value(expr, &both, self.context)?;
        }
        target.access.generate(Some(&update.touch.changed), &mut new)?;
        let mode = update.lock.of(&existing, &new);
        if mode > held {
            // The row has changed since it was looked at; from here on it does not.
            self.context.txn.with(|txn| txn.lock_as(&taken.row_key, mode, LockWait::Wait))?;
        }
        let old = Old { key: &taken.row_key, stored: &stored, row: &existing };
        let key = self.writer.update(target, &update.touch, &old, &new)?;
        self.affected.insert(key);
        self.done(&new)
    }
}

/// A row with all its columns.
fn whole(target: &Target, stored: &Bytes) -> Result<Row, SqlError> {
    let all: Vec<usize> = (0..target.access.columns.len()).collect();
    let mut row = vec![Value::Null; all.len()];
    target.access.decode(stored, &all, &mut row)?;
    Ok(row)
}

/// Inserts rows that COPY has decoded.
pub struct BulkInsert {
    /// The table.
    pub target: Arc<Target>,
    /// By slot, over the row that COPY gives; `None` is NULL.
    pub columns: Vec<Option<Expr>>,
    /// Whether rows have fallen into gaps so far: what comes among others is not looked for so again.
    pub gaps: bool,
}

impl RowInserter for BulkInsert {
    /// One scan stands for the checks of a batch whose primary keys ascend through a gap in the table, which is how a table is loaded.
    fn insert(&mut self, context: &Arc<StatementContext>, rows: Vec<Row>) -> Result<u64, SqlError> {
        let target = self.target.clone();
        let mut writer = Writer::new(context);
        let batch = self.images(context, rows, &mut writer)?;
        let count = batch.len() as u64;
        keys_together::put(&target, batch, &mut self.gaps, &mut writer, |_| Ok(()))?;
        writer.finish()?;
        context.wrote(target.access.table.id, count);
        Ok(count)
    }

    fn load(&mut self, context: &Arc<StatementContext>, rows: Vec<Row>, load: &mut dyn Load) -> Result<u64, SqlError> {
        let target = &self.target;
        let count = rows.len() as u64;
        for (row, image) in self.images(context, rows, &mut Writer::new(context))? {
            if let Some(ordinal) = image.taken_in(&target.access, load)? {
                return Err(target.unique_violation(ordinal, &row, &context.settings));
            }
            image.load(load)?;
        }
        context.wrote(target.access.table.id, count);
        Ok(count)
    }

    fn twice(&self, context: &Arc<StatementContext>, found: &Duplicate<'_>) -> SqlError {
        self.target.twice(context, found)
    }
}

impl BulkInsert {
    /// As [`RowInserter::load`], all rows of a query.
    pub(super) fn load_all(
        &mut self,
        context: &Arc<StatementContext>,
        plan: &dyn Plan,
        load: &mut dyn Load,
    ) -> Result<u64, SqlError> {
        let mut source = match plan.execute(context)? {
            Execution::Rows(source) => source,
            Execution::Done { rows, .. } => return self.load(context, rows, load),
        };
        let mut count = 0;
        loop {
            let rows = source.next(SOURCE_ROWS)?;
            if rows.is_empty() {
                return Ok(count);
            }
            context.check()?;
            count += self.load(context, rows, load)?;
        }
    }

    /// Rows with their bytes, as they are to be written.
    fn images(
        &self,
        context: &Arc<StatementContext>,
        rows: Vec<Row>,
        writer: &mut Writer<'_>,
    ) -> Result<Vec<(Row, RowImage)>, SqlError> {
        let target = &self.target;
        let plain = self.is_plain();
        let mut batch = Vec::with_capacity(rows.len());
        for row in rows {
            let mut row = if plain { row } else { make_row(&self.columns, &row, context)? };
            target.access.generate(None, &mut row)?;
            target.check(&row, None, context)?;
            let hidden = target.hidden(&row, None, context)?;
            let image = RowImage::new(&target.access, &row, writer.row_id(target), hidden.as_ref())?;
            batch.push((row, image));
        }
        Ok(batch)
    }

    /// Whether COPY's row is the table's row.
    fn is_plain(&self) -> bool {
        self.columns
            .iter()
            .enumerate()
            .all(|(slot, expr)| expr.as_ref().is_some_and(|expr| evaluate::column(expr) == Some(slot)))
    }
}
