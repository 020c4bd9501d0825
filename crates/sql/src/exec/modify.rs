//! UPDATE and DELETE: find, lock, read anew, ask WHERE again, write.
//!
//! A statement that finds its rows by key locks and writes them one by one. So does one that reads one table by an index that its writes
//! leave alone: what it has written lies behind what it still reads. Any other first finds all its rows and only then writes: what
//! it writes can never be found by it again (the Halloween problem).

use super::cursor::{Cursor, Level};
use super::evaluate;
use super::located::{self, Located};
use super::sort::{Reserved, row_bytes};
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
    },
    /// DELETE.
    Delete,
}

impl Action {
    /// How it locks the rows.
    pub fn lock(&self) -> LockMode {
        match self {
            Action::Update { touch, .. } => touch.lock,
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
                let mut cursor = Cursor::new(context, levels, *width, None);
                if *immediate && levels[*at].lock.is_some() {
                    while cursor.advance()? {
                        let (key, stored) = (cursor.key(*at), cursor.stored(*at));
                        run.write(&key, &stored, cursor.row_mut())?;
                    }
                } else if *immediate {
                    while cursor.advance()? {
                        let (key, stored) = (cursor.key(*at), cursor.stored(*at));
                        run.lock_and_write(&key, &stored, &levels[*at], recheck.as_ref(), cursor.row_mut())?;
                    }
                } else {
                    run.found_first(&mut cursor, &levels[*at], *at, recheck.as_ref())?;
                }
            }
            Find::Plan(plan) => run.located(plan.as_ref())?,
        }
        run.writer.finish()?;
        Ok(run.written.finish())
    }
}

impl Run<'_> {
    /// Finds every row, then writes each.
    fn found_first(
        &mut self,
        cursor: &mut Cursor,
        level: &Level,
        at: usize,
        recheck: Option<&Expr>,
    ) -> Result<(), SqlError> {
        let mut reserved = Reserved::new(&self.context.memory);
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let joined = cursor.row().len() > level.access.columns.len();
        while cursor.advance()? {
            let (key, stored) = (cursor.key(at), cursor.stored(at));
            // A row that joins several times is written once.
            if joined && !seen.insert(key.clone()) {
                continue;
            }
            let row = cursor.row().to_vec();
            reserved.take(row_bytes(&row) + key.len() + stored.len())?;
            found.push(Found { key, stored, row });
        }
        for Found { key, stored, mut row } in found {
            self.lock_and_write(&key, &stored, level, recheck, &mut row)?;
        }
        Ok(())
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
        let Some(newest) = self.lock(key, stored)? else { return Ok(()) };
        if newest != *stored {
            let end = level.base + level.access.columns.len();
            level.access.decode(&newest, &level.slots, &mut row[level.base..end])?;
            if let Some(condition) = recheck
                && !evaluate::truth(condition, row, self.context)?
            {
                return Ok(());
            }
        }
        self.write(key, &newest, row)
    }

    fn lock(&self, key: &Bytes, stored: &Bytes) -> Result<Option<Bytes>, SqlError> {
        self.context.check()?;
        self.context.txn.with(|txn| {
            txn.lock_as(key, self.modify.action.lock(), LockWait::Wait)?;
            // A row that is newer than the snapshot moves it.
            if self.apart && txn.snapshot() == self.began { Ok(Some(stored.clone())) } else { Ok(txn.get(key)?) }
        })
    }

    /// Writes one row, locked and newest; `row` is the joined row.
    fn write(&mut self, key: &Bytes, stored: &Bytes, row: &mut [Value]) -> Result<(), SqlError> {
        if self.context.is_written(key) {
            return Ok(());
        }
        let target = &self.modify.target;
        let places = self.base..self.base + target.access.columns.len();
        match &self.modify.action {
            Action::Delete => self.writer.delete(target, key, &row[places.clone()])?,
            Action::Update { touch, set } => {
                self.new.clear();
                self.new.extend_from_slice(&row[places.clone()]);
                for (slot, expr) in set {
                    self.new[*slot] = evaluate::value(expr, row, self.context)?;
                }
                target.access.generate(Some(&touch.changed), &mut self.new)?;
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
        for Located { key, stored, values } in located::lock(plan, self.modify.action.lock(), self.context)? {
            let mut row = vec![Value::Null; access.columns.len()];
            access.decode(&stored, &all, &mut row)?;
            row.extend(values);
            self.write(&key, &stored, &mut row)?;
        }
        Ok(())
    }
}
