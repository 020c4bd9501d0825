//! UPDATE and DELETE: find, lock, read anew, ask WHERE again, write. How strongly an UPDATE locks: [`super::key_lock`].
//!
//! A statement that finds its rows by key locks and writes them one by one. So does one that reads one table by an index that its writes
//! leave alone: what it has written lies behind what it still reads. Any other first finds all its rows and only then writes: what
//! it writes can never be found by it again (the Halloween problem).

use super::ahead::{self, AHEAD_ROWS};
use super::cursor::{Cursor, Level};
use super::evaluate;
use super::key_lock::KeyLock;
use super::located::{self, Located};
use super::sort::{Reserved, row_bytes};
use super::table::TableAccess;
use super::target::Target;
use super::write::{Old, Touch};
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
                let mut cursor = Cursor::new(context, levels, *width, None).locks_ahead();
                if *immediate && levels[*at].lock.is_some() {
                    while cursor.advance()? {
                        let (key, stored) = (cursor.key(*at), cursor.stored(*at));
                        let held = cursor.locked(*at);
                        run.write(&key, &stored, cursor.row_mut(), held)?;
                    }
                } else if *immediate && ahead::is_far(&context.txn) {
                    while run.find_and_write(&mut cursor, &levels[*at], *at, recheck.as_ref(), AHEAD_ROWS)? {}
                } else if *immediate {
                    while cursor.advance()? {
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
            reserved.take(row_bytes(&row) + key.len() + stored.len())?;
            found.push(Found { key, stored, row });
        }
        // Where it depends on the row, they are locked one by one.
        let mode = match &self.modify.action {
            Action::Update { lock, .. } if lock.is_open() => None,
            action => Some(action.lock()),
        };
        let keys: Vec<Bytes> = found.iter().filter(|_| mode.is_some()).map(|row| row.key.clone()).collect();
        for (n, Found { key, stored, mut row }) in found.into_iter().enumerate() {
            if let (Some(mode), true) = (mode, n.is_multiple_of(AHEAD_ROWS)) {
                ahead::locks(keys.iter().skip(n).take(AHEAD_ROWS).cloned(), mode, &self.context.txn);
            }
            self.lock_and_write(&key, &stored, level, recheck, &mut row)?;
        }
        Ok(more)
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
        let mode = self.modify.action.foresee(&level.access, level.base, row, self.context);
        let Some(newest) = self.lock(key, stored, mode)? else { return Ok(()) };
        if newest != *stored {
            let end = level.base + level.access.columns.len();
            level.access.decode(&newest, &level.slots, &mut row[level.base..end])?;
            if let Some(condition) = recheck
                && !evaluate::truth(condition, row, self.context)?
            {
                return Ok(());
            }
        }
        self.write(key, &newest, row, mode)
    }

    fn lock(&self, key: &Bytes, stored: &Bytes, mode: LockMode) -> Result<Option<Bytes>, SqlError> {
        self.context.check()?;
        self.context.txn.with(|txn| {
            txn.lock_as(key, mode, LockWait::Wait)?;
            // A row that is newer than the snapshot moves it.
            if self.apart && txn.snapshot() == self.began { Ok(Some(stored.clone())) } else { Ok(txn.get(key)?) }
        })
    }

    /// Writes one row, locked as `held` and newest; `row` is the joined row.
    fn write(&mut self, key: &Bytes, stored: &Bytes, row: &mut [Value], held: LockMode) -> Result<(), SqlError> {
        if self.context.is_written(key) {
            return Ok(());
        }
        let target = &self.modify.target;
        let places = self.base..self.base + target.access.columns.len();
        match &self.modify.action {
            Action::Delete => self.writer.delete(target, key, &row[places.clone()])?,
            Action::Update { touch, set, lock } => {
                self.new.clear();
                self.new.extend_from_slice(&row[places.clone()]);
                for (slot, expr) in set {
                    self.new[*slot] = evaluate::value(expr, row, self.context)?;
                }
                target.access.generate(Some(&touch.changed), &mut self.new)?;
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
            self.write(&key, &stored, &mut row, held)?;
        }
        Ok(())
    }
}
