//! UPDATE and DELETE: find, lock, read anew, ask WHERE again, write. How strongly an UPDATE locks: [`super::key_lock`].
//!
//! A statement that finds its rows by key locks and writes them one by one. So does one that reads one table by an index that its writes
//! leave alone: what it has written lies behind what it still reads. Any other first finds all its rows and only then writes: what
//! it writes can never be found by it again (the Halloween problem).
//!
//! Where rows are far some are locked, and what they become is made, before the first of them is written: what must be looked at for all of them is asked for together. Not
//! where a write changes other rows, which may be among them.

mod together;

use super::ahead::{self, AHEAD_ROWS};
use super::cursor::{Cursor, Level};
use super::evaluate;
use super::key_lock::KeyLock;
use super::located::{self, Located};
use super::metered;
use super::sort::{Reserved, row_bytes};
use super::table::TableAccess;
use super::target::Target;
use super::write::{Old, Touch, new_keys};
use super::writer::Writer;
use super::written::Written;
use crate::SqlError;
use crate::context::StatementContext;
use crate::expr::Expr;
use crate::plan::Plan;
use crate::transaction::{LockMode, LockWait};
use crate::types::{Row, Value};
use bytes::Bytes;
use clock::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An UPDATE or DELETE, settled when it is planned.
pub struct Modify {
    /// The table written.
    pub target: Arc<Target>,
    /// How its rows are found.
    pub find: Find,
    /// What is done with them.
    pub action: Action,
    /// RETURNING, over the joined row with the new row in place.
    pub returning: Option<Vec<Expr>>,
}

/// How the rows of an UPDATE or DELETE are found.
pub enum Find {
    /// By nested loops.
    Loops {
        /// The tables, outermost first.
        levels: Arc<[Level]>,
        /// Which of them is written.
        at: usize,
        /// Places of a joined row.
        width: usize,
        /// Conditions on no table.
        constant: Option<Expr>,
        /// All of WHERE, asked again of a row that changed while it was waited for.
        recheck: Option<Expr>,
        /// Nothing written can change what is found: no need to find all before writing.
        immediate: bool,
    },
    /// By a query whose rows are keys, then values that SET uses: they stand behind the row's columns. See [`super::located`].
    Plan(Arc<dyn Plan>),
}

/// What is done with a row.
pub enum Action {
    /// UPDATE: slots and their new values, over the joined row.
    Update {
        /// Which columns change.
        touch: Touch,
        /// SET.
        set: Vec<(usize, Expr)>,
        /// How strongly rows are locked.
        lock: Arc<KeyLock>,
    },
    /// DELETE.
    Delete,
}

impl Action {
    /// An UPDATE that sets these slots.
    pub fn update(access: &TableAccess, set: Vec<(usize, Expr)>) -> Action {
        let slots: Vec<usize> = set.iter().map(|(slot, _)| *slot).collect();
        let touch = Touch::new(access, &slots);
        let lock = Arc::new(KeyLock::new(access, &touch, &set));
        Action::Update { touch, set, lock }
    }

    /// How it locks the rows, at the least.
    pub fn lock(&self) -> LockMode {
        match self {
            Action::Update { lock, .. } => lock.mode(),
            Action::Delete => LockMode::Update,
        }
    }

    /// How it locks a row that is as it seems, given joined.
    fn foresee(&self, access: &TableAccess, base: usize, row: &[Value], context: &StatementContext) -> LockMode {
        match self {
            Action::Update { lock, .. } => lock.foresee(access, base, row, context),
            Action::Delete => LockMode::Update,
        }
    }
}

struct Found {
    key: Bytes,
    stored: Bytes,
    row: Row,
}

/// A row that is locked, at its newest version.
struct Locked {
    key: Bytes,
    stored: Bytes,
    row: Row,
    held: LockMode,
}

/// Rows that are locked before the first of them is written take so much, bytes, or little more.
const BATCH_BYTES: usize = 1 << 20;

struct Run<'a> {
    modify: &'a Modify,
    context: &'a Arc<StatementContext>,
    writer: Writer<'a>,
    /// First place of the target's columns in the row.
    base: usize,
    /// The snapshot at which the statement began to read.
    began: Timestamp,
    /// Nothing but the statement's own writes of a row changes that row: no referential action reaches the table.
    apart: bool,
    /// Scratch for the new row.
    new: Row,
    written: Written,
}

impl Modify {
    /// Runs it: the number of rows, and the rows of RETURNING.
    pub fn run(&self, context: &Arc<StatementContext>) -> Result<(u64, Vec<Row>), SqlError> {
        metered::written(self, context, || self.run_all(context))
    }

    fn run_all(&self, context: &Arc<StatementContext>) -> Result<(u64, Vec<Row>), SqlError> {
        let mut run = Run {
            modify: self,
            context,
            writer: Writer::new(context),
            base: 0,
            began: context.txn.with(|txn| txn.snapshot()),
            apart: !self.target.acts_on_others(),
            new: Vec::new(),
            written: Written::new(&context.memory),
        };
        match &self.find {
            Find::Loops { levels, at, width, constant, recheck, immediate } => {
                if let Some(constant) = constant
                    && !evaluate::truth(constant, &[], context)?
                {
                    return Ok((0, Vec::new()));
                }
                run.base = levels[*at].base;
                let mut cursor = Cursor::new(context, levels, *width, None).locks_ahead().metered();
                let far = ahead::is_far(&context.txn);
                if *immediate && levels[*at].lock.is_some() && far && run.apart {
                    while run.write_found_by_key(&mut cursor, *at)? {}
                } else if *immediate && levels[*at].lock.is_some() {
                    while cursor.advance()? {
                        let (key, stored) = (cursor.key(*at), cursor.stored(*at));
                        let held = cursor.locked(*at);
                        run.write(&key, &stored, cursor.row_mut(), held, None)?;
                    }
                } else if *immediate && far {
                    while run.find_and_write(&mut cursor, &levels[*at], *at, recheck.as_ref(), AHEAD_ROWS)? {}
                } else if *immediate {
                    let together = levels.len() == 1 && run.deletes_together();
                    while cursor.advance()? {
                        if together && run.delete_together(&mut cursor, &levels[*at], recheck.as_ref())? {
                            continue;
                        }
                        let (key, stored) = (cursor.key(*at), cursor.stored_lent(*at));
                        run.lock_and_write(&key, &stored, &levels[*at], recheck.as_ref(), cursor.row_mut())?;
                    }
                } else {
                    run.find_and_write(&mut cursor, &levels[*at], *at, recheck.as_ref(), usize::MAX)?;
                }
            }
            Find::Plan(plan) => run.located(plan.as_ref())?,
        }
        run.writer.finish()?;
        let (count, returned) = run.written.finish();
        context.wrote(self.target.access.table.id, count);
        Ok((count, returned))
    }
}

impl Run<'_> {
    /// Finds rows, at most so many, then writes each. Says whether there may be more.
    fn find_and_write(
        &mut self,
        cursor: &mut Cursor,
        level: &Level,
        at: usize,
        recheck: Option<&Expr>,
        most: usize,
    ) -> Result<bool, SqlError> {
        let mut reserved = Reserved::new(&self.context.memory);
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let joined = cursor.row().len() > level.access.columns.len();
        let mut more = true;
        while found.len() < most {
            more = cursor.advance()?;
            if !more {
                break;
            }
            let (key, stored) = (cursor.key(at), cursor.stored(at));
            // A row that joins several times is written once.
            if joined && !seen.insert(key.clone()) {
                continue;
            }
            let row = cursor.row().to_vec();
            reserved.take_to_write(row_bytes(&row) + key.len() + stored.len())?;
            found.push(Found { key, stored, row });
        }
        let far = ahead::is_far(&self.context.txn);
        let mut found = found.into_iter();
        loop {
            let next: Vec<Found> = found.by_ref().take(AHEAD_ROWS).collect();
            if next.is_empty() {
                return Ok(more);
            }
            // Where it depends on the row, and is not the same for all, they are locked one by one.
            let foreseen = |row: &Found| self.modify.action.foresee(&level.access, level.base, &row.row, self.context);
            let mode = match &self.modify.action {
                Action::Update { lock, .. } if lock.is_open() => {
                    let first = next.first().filter(|_| far).map(foreseen);
                    first.filter(|first| next.iter().all(|row| foreseen(row) == *first))
                }
                action => Some(action.lock()),
            };
            if let Some(mode) = mode {
                ahead::locks(next.iter().map(|row| row.key.clone()), mode, &self.context.txn);
            }
            if far && self.apart {
                self.lock_then_write(next, level, recheck)?;
                continue;
            }
            if let (true, Some(mode)) = (far, mode) {
                self.ask_for_others(&next, mode)?;
            }
            for Found { key, stored, mut row } in next {
                self.lock_and_write(&key, &stored, level, recheck, &mut row)?;
            }
        }
    }

    /// Locks rows that others may be changed with, one after the other; what is read and locked of those others is asked for together.
    fn ask_for_others(&mut self, found: &[Found], mode: LockMode) -> Result<(), SqlError> {
        for Found { key, .. } in found {
            self.context.check()?;
            self.context.txn.with(|txn| txn.lock_as(key, mode, LockWait::Wait))?;
        }
        ahead::reads(found.iter().map(|row| row.key.clone()), &self.context.txn)?;
        let places = self.base..self.base + self.modify.target.access.columns.len();
        let rows = found.iter().map(|found| &found.row[places.clone()]);
        let deletes = matches!(self.modify.action, Action::Delete);
        self.writer.ask_for_children(&self.modify.target, rows, deletes)
    }

    /// Locks rows that were found, at most [`AHEAD_ROWS`], and writes them when all are locked: nothing that is written changes another one.
    fn lock_then_write(&mut self, found: Vec<Found>, level: &Level, recheck: Option<&Expr>) -> Result<(), SqlError> {
        let mut locked = Vec::with_capacity(found.len());
        let mut failed = None;
        for Found { key, stored, mut row } in found {
            match self.lock_found(&key, &stored, level, recheck, &mut row) {
                Ok(Some((stored, held))) => locked.push(Locked { key, stored, row, held }),
                Ok(None) => {}
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        self.write_all(locked)?;
        failed.map_or(Ok(()), Err)
    }

    /// Finds rows by key, which are locked as they are found, and writes them; some at a time. Says whether there may be more.
    fn write_found_by_key(&mut self, cursor: &mut Cursor, at: usize) -> Result<bool, SqlError> {
        let (mut locked, mut bytes, mut end) = (Vec::new(), 0, None);
        while locked.len() < AHEAD_ROWS && bytes < BATCH_BYTES && end.is_none() {
            match cursor.advance() {
                Ok(true) => {
                    let (key, stored, held) = (cursor.key(at), cursor.stored(at), cursor.locked(at));
                    let row = cursor.row().to_vec();
                    bytes += row_bytes(&row) + stored.len();
                    locked.push(Locked { key, stored, row, held });
                }
                // What comes behind the rows before it.
                last => end = Some(last),
            }
        }
        self.write_all(locked)?;
        end.unwrap_or(Ok(true))
    }

    /// Writes rows that are locked. What must be looked at and locked for all of them is asked for together; an error in what one becomes comes when those before it are written.
    fn write_all(&mut self, rows: Vec<Locked>) -> Result<(), SqlError> {
        let (target, context) = (&self.modify.target, self.context);
        let places = self.base..self.base + target.access.columns.len();
        let mut made: Vec<Option<Row>> = Vec::with_capacity(rows.len());
        let mut failed = None;
        if rows.len() > 1
            && let Action::Update { touch, .. } = &self.modify.action
            && (touch.key || !touch.indexes.is_empty())
        {
            let mut keys = Vec::new();
            for Locked { key, stored, row, .. } in rows.iter().filter(|row| !context.is_written(&row.key)) {
                let old = Old { key, stored, row: &row[places.clone()] };
                let mut new = Row::new();
                let all = self.make(row, &mut new).and_then(|()| new_keys(&target.access, touch, &old, &new));
                match all {
                    Ok(all) => {
                        keys.extend(all);
                        made.push(Some(new));
                    }
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            // One index after the other: each is in ranges of its own.
            keys.sort_by_key(|(index, _)| *index);
            let keys = || keys.iter().map(|(_, key)| key.clone());
            ahead::reads(keys().take(AHEAD_ROWS), &context.txn)?;
            if context.claims.is_some() {
                ahead::locks(keys(), LockMode::NoKeyUpdate, &context.txn);
            }
        }
        if rows.len() > 1 {
            let deletes = matches!(self.modify.action, Action::Delete);
            if deletes || matches!(&self.modify.action, Action::Update { touch, .. } if target.is_pointed_at(touch)) {
                let old = rows.iter().map(|it| &it.row[places.clone()]);
                self.writer.ask_for_children(target, old, deletes)?;
            }
        }
        let mut made = made.into_iter();
        for Locked { key, stored, mut row, held } in rows {
            if context.is_written(&key) {
                continue;
            }
            let new = match made.next() {
                None if failed.is_some() => break,
                new => new.flatten(),
            };
            self.write(&key, &stored, &mut row, held, new)?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Locks a row that was found, and writes it as it is then; `row` is the joined row.
    fn lock_and_write(
        &mut self,
        key: &Bytes,
        stored: &Bytes,
        level: &Level,
        recheck: Option<&Expr>,
        row: &mut [Value],
    ) -> Result<(), SqlError> {
        let Some((newest, held)) = self.lock_found(key, stored, level, recheck, row)? else { return Ok(()) };
        self.write(key, &newest, row, held, None)
    }

    /// Locks a row that was found: its bytes as they are then, and how it is locked; `None` if it is not meant any more.
    fn lock_found(
        &self,
        key: &Bytes,
        stored: &Bytes,
        level: &Level,
        recheck: Option<&Expr>,
        row: &mut [Value],
    ) -> Result<Option<(Bytes, LockMode)>, SqlError> {
        let mode = self.modify.action.foresee(&level.access, level.base, row, self.context);
        let Some(newest) = self.lock(key, stored, mode)? else { return Ok(None) };
        if newest != *stored {
            let end = level.base + level.access.columns.len();
            level.access.decode(&newest, &level.slots, &mut row[level.base..end])?;
            if let Some(condition) = recheck
                && !evaluate::truth(condition, row, self.context)?
            {
                return Ok(None);
            }
        }
        Ok(Some((newest, mode)))
    }

    fn lock(&self, key: &Bytes, stored: &Bytes, mode: LockMode) -> Result<Option<Bytes>, SqlError> {
        self.context.check()?;
        self.context.txn.with(|txn| {
            txn.lock_as(key, mode, LockWait::Wait)?;
            // A row that is newer than the snapshot moves it.
            if self.apart && txn.snapshot() == self.began { Ok(Some(stored.clone())) } else { Ok(txn.get(key)?) }
        })
    }

    /// What an UPDATE makes of a joined row, in place of what is in `new`.
    fn make(&self, row: &[Value], new: &mut Row) -> Result<(), SqlError> {
        let access = &self.modify.target.access;
        new.clear();
        new.extend_from_slice(&row[self.base..self.base + access.columns.len()]);
        if let Action::Update { touch, set, .. } = &self.modify.action {
            for (slot, expr) in set {
                new[*slot] = evaluate::value(expr, row, self.context)?;
            }
            access.generate(Some(&touch.changed), new)?;
        }
        Ok(())
    }

    /// Writes one row, locked as `held` and newest; `row` is the joined row. `new`: what an UPDATE makes of it, if that was asked.
    fn write(
        &mut self,
        key: &Bytes,
        stored: &Bytes,
        row: &mut [Value],
        held: LockMode,
        new: Option<Row>,
    ) -> Result<(), SqlError> {
        if self.context.is_written(key) {
            return Ok(());
        }
        let target = &self.modify.target;
        let places = self.base..self.base + target.access.columns.len();
        match &self.modify.action {
            Action::Delete => self.writer.delete(target, key, &row[places.clone()])?,
            Action::Update { touch, lock, .. } => {
                self.new = match new {
                    Some(new) => new,
                    None => {
                        let mut new = std::mem::take(&mut self.new);
                        self.make(row, &mut new)?;
                        new
                    }
                };
                let mode = lock.of(&row[places.clone()], &self.new);
                if mode > held {
                    // The row has changed since it was looked at; from here on it does not.
                    self.context.txn.with(|txn| txn.lock_as(key, mode, LockWait::Wait))?;
                }
                let old = Old { key, stored, row: &row[places.clone()] };
                self.writer.update(target, touch, &old, &self.new)?;
                if self.modify.returning.is_some() {
                    row[places].clone_from_slice(&self.new);
                }
            }
        }
        self.written.add(self.modify.returning.as_deref(), row, self.context)
    }

    /// Writes the rows that a query located.
    fn located(&mut self, plan: &dyn Plan) -> Result<(), SqlError> {
        let access = &self.modify.target.access;
        let all: Vec<usize> = (0..access.columns.len()).collect();
        let joined = |stored: &Bytes, values: &Row| {
            let mut row = vec![Value::Null; access.columns.len()];
            access.decode(stored, &all, &mut row)?;
            row.extend_from_slice(values);
            Ok::<_, SqlError>(row)
        };
        let mode = |stored: &Bytes, values: &Row| match &self.modify.action {
            Action::Update { lock, .. } if lock.is_open() => {
                Ok(lock.foresee(access, 0, &joined(stored, values)?, self.context))
            }
            action => Ok(action.lock()),
        };
        for Located { key, stored, values, held } in located::lock(plan, mode, self.context)? {
            let mut row = joined(&stored, &values)?;
            self.write(&key, &stored, &mut row, held, None)?;
        }
        Ok(())
    }
}
