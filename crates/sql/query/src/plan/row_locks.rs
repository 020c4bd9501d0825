//! FOR UPDATE of rows that a query found: joins that nested loops do not know, tables beside functions, VALUES and WITH.
//!
//! Problem: rows are locked by their keys, which only the loops of the direct path have at hand. Idea: the query gives, behind its own columns, the
//! keys of the rows that each of its rows is made of; those are locked, and the row is given.
//!
//! 1. A row is given only if all that it is made of is locked, at the version that the query saw.
//! 2. LIMIT and OFFSET count rows that are locked, as PostgreSQL's do: what SKIP LOCKED passes over is not counted.
//! 3. What has changed since the snapshot ends the attempt with 40001: READ COMMITTED begins the statement anew, with the locks that it
//!    has, and asks the conditions of the rows as they are then. The other rows are locked before that, so that one repetition is enough;
//!    with SKIP LOCKED, which waits for none, the locks are given back instead.
//! 4. All rows are locked when the first one is asked for: of a cursor, too, where PostgreSQL locks them as they are fetched.
//! 5. No more rows are asked of the query than LIMIT and OFFSET count and SKIP LOCKED passes over.
//! 6. What is waited for is locked table after table for the rows pulled at a time, all of which are given or passed over by OFFSET: so many are one round trip.
//!
//! Caveats: a query in FROM that is no table by another name ([`super::merged`]) is left to [`super::locked`], or refused. System tables, and
//! functions without a name of their own (`unnest(..)`), are refused.

use super::analysis::relation;
use super::explain::over;
use super::locked::{self, What};
use super::select::{lock_mode, lock_wait};
use super::{Execution, Keyed, Plan, PlanContext, RowSource};
use crate::catalog::Relation;
use crate::context::StatementContext;
use crate::exec::ahead;
use crate::exec::sort::{Reserved, row_bytes};
use crate::explain::Operator;
use crate::identifier::fold;
use crate::output::Field;
use crate::plan::located::KEY_NAME;
use crate::syntax::lock_words;
use crate::syntax::tree::constraint_of;
use crate::transaction::{KvError, LockMode, LockWait};
use crate::types::{Row, SqlType, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use sqlparser::ast::{
    CastKind, DataType, Expr, Ident, JoinOperator, LimitClause, LockClause, Query, SelectItem, SetExpr, Statement,
    TableFactor, TableWithJoins, visit_expressions,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows pulled at a time from the query.
const PULL_ROWS: usize = 256;
/// The names of LIMIT and OFFSET as columns: no text of a statement holds them.
const BOUNDS: [&str; 2] = ["\0limit", "\0offset"];

/// Plans a query with its locks; `None` if it is none of those.
///
/// # Errors
/// 0A000 where PostgreSQL says that rows cannot be locked; those of the query.
pub(super) fn plan(
    statement: &Statement,
    text: &str,
    context: &PlanContext,
) -> Result<Option<Arc<dyn Plan>>, SqlError> {
    let Statement::Query(query) = statement else { return Ok(None) };
    if query.locks.is_empty() || context.locates {
        return Ok(None);
    }
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(None) };
    locked::refuse(query, &query.locks)?;
    let mut with: Vec<String> = context.given.iter().map(|given| given.name.clone()).collect();
    with.extend(query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| fold(&cte.alias.name)));
    let mut leaves = Vec::new();
    if !select.from.iter().all(|item| gather(item, false, &mut leaves)) {
        return Ok(None);
    }
    let (mut tables, mut locks, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (factor, nullable) in leaves {
        let Some(name) = locked::name_of(factor) else { return Ok(None) };
        let meant: Vec<&LockClause> = query.locks.iter().filter(|lock| locked::is_meant(lock, &name)).collect();
        match (locked::what(factor, &with, context)?, meant.first()) {
            (_, None) => {}
            (What::Nothing, _) if meant.iter().any(|lock| locked::names_one(lock)) => return Ok(None),
            (What::Nothing, _) => {}
            (What::Table, Some(first)) if is_table(factor, context) => {
                if nullable {
                    let words = lock_words(first);
                    let message = format!("{words} cannot be applied to the nullable side of an outer join");
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                }
                locks.extend(meant.iter().map(|lock| RowLock::new(tables.len(), lock)));
                tables.push(name.clone());
            }
            _ => return Ok(None),
        }
        names.push(name);
    }
    let unknown = |lock: &LockClause| locked::names_one(lock) && !names.iter().any(|name| locked::is_meant(lock, name));
    let twice = |(at, name): (usize, &String)| names[..at].contains(name);
    if query.locks.iter().any(unknown) || names.iter().enumerate().any(twice) {
        return Ok(None);
    }
    let mut query = query.as_ref().clone();
    query.locks.clear();
    let Some(bounds) = take_bounds(&mut query) else { return Ok(None) };
    give(&mut query, &tables, &bounds);
    let mut context = context.clone();
    let (keys, behind) = (tables.len(), tables.len() + bounds.iter().flatten().count());
    context.keyed = Arc::new(Keyed { tables, behind, is_limited: bounds[0].is_some() });
    let found = crate::engine::prepare(&Statement::Query(Box::new(query)), text, &context)?;
    let width = found.fields().len().saturating_sub(behind);
    let fields = found.fields()[..width].to_vec();
    let bounds = bounds.map(|bound| bound.is_some());
    Ok(Some(Arc::new(LockedRows { found, fields, keys, locks, bounds })))
}

/// The items of FROM, and whether an outer join may give NULLs for their rows; `false` if there are some that have no name of their own.
fn gather<'a>(item: &'a TableWithJoins, nullable: bool, out: &mut Vec<(&'a TableFactor, bool)>) -> bool {
    use JoinOperator as J;
    let left = |operator: &J| matches!(operator, J::Left(_) | J::LeftOuter(_) | J::FullOuter(_));
    let right = |operator: &J| matches!(operator, J::Right(_) | J::RightOuter(_) | J::FullOuter(_));
    let factors = std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation));
    for (place, factor) in factors.enumerate() {
        let own = place.checked_sub(1).is_some_and(|join| left(&item.joins[join].join_operator));
        let later = item.joins[place..].iter().any(|join| right(&join.join_operator));
        let nullable = nullable || own || later;
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                if !gather(table_with_joins, nullable, out) {
                    return false;
                }
            }
            TableFactor::NestedJoin { .. } => return false,
            factor => out.push((factor, nullable)),
        }
    }
    item.joins.iter().all(|join| constraint_of(&join.join_operator).is_some())
}

/// Whether an item of FROM is a table of the catalog.
fn is_table(factor: &TableFactor, context: &PlanContext) -> bool {
    let TableFactor::Table { name, .. } = factor else { return false };
    relation(name, context).is_ok_and(|relation| matches!(relation.as_ref(), Relation::Table(_)))
}

/// Takes LIMIT and OFFSET off a query; `None` if they are none that a row of it can say.
fn take_bounds(query: &mut Query) -> Option<[Option<Expr>; 2]> {
    let (mut limit, offset) = match query.limit_clause.take() {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            (limit, offset.map(|offset| offset.value))
        }
        Some(_) => return None,
    };
    if let Some(fetch) = query.fetch.take() {
        if fetch.with_ties || fetch.percent || limit.is_some() {
            return None;
        }
        limit = fetch.quantity;
    }
    // Among the columns of the query a name would be one of them.
    let names = |part: &Expr| match part {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) | Expr::Function(_) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    let plain = [&limit, &offset].into_iter().flatten().all(|bound| visit_expressions(bound, names).is_continue());
    plain.then_some([limit, offset])
}

/// Puts keys and bounds behind what a query gives.
fn give(query: &mut Query, tables: &[String], bounds: &[Option<Expr>; 2]) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let alias = |name: &str| Ident::with_quote('"', name);
    for table in tables {
        let expr = Expr::CompoundIdentifier(vec![alias(table), alias(KEY_NAME)]);
        select.projection.push(SelectItem::ExprWithAlias { expr, alias: alias(KEY_NAME) });
    }
    for (bound, name) in bounds.iter().zip(BOUNDS) {
        let Some(bound) = bound else { continue };
        let expr = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::Nested(Box::new(bound.clone()))),
            data_type: DataType::BigInt(None),
            array: false,
            format: None,
        };
        select.projection.push(SelectItem::ExprWithAlias { expr, alias: alias(name) });
    }
}

/// How the rows of a table are locked.
struct RowLock {
    /// Which of the keys is theirs.
    key: usize,
    mode: LockMode,
    wait: LockWait,
}

impl RowLock {
    fn new(key: usize, clause: &LockClause) -> Self {
        RowLock { key, mode: lock_mode(clause).0, wait: lock_wait(clause) }
    }
}

/// A query that locks the rows that it gives.
struct LockedRows {
    /// The query: its columns, the keys, LIMIT and OFFSET.
    found: Arc<dyn Plan>,
    fields: Vec<Field>,
    keys: usize,
    locks: Vec<RowLock>,
    /// Whether there is a LIMIT, and an OFFSET.
    bounds: [bool; 2],
}

impl LockedRows {
    /// How many rows to give, and to pass over, as a row says.
    fn bounds(&self, said: &[Value]) -> Result<(u64, u64), SqlError> {
        let mut said = said.iter();
        let mut bound = |there: bool, word: &str, state, otherwise: u64| {
            let value = if there { said.next() } else { None };
            let Some(Value::Int8(count)) = value else { return Ok(otherwise) };
            u64::try_from(*count).map_err(|_| SqlError::new(state, format!("{word} must not be negative")))
        };
        let limit = bound(self.bounds[0], "LIMIT", SqlState(*b"2201W"), u64::MAX)?;
        Ok((limit, bound(self.bounds[1], "OFFSET", SqlState(*b"2201X"), 0)?))
    }

    /// Locks what a row is made of; `false` if it is skipped. `moved` is told of the first key that had changed.
    fn lock(&self, keys: &[Value], moved: &mut Option<Bytes>, context: &StatementContext) -> Result<bool, SqlError> {
        for lock in &self.locks {
            let Some(Value::Bytea(key)) = keys.get(lock.key) else { continue };
            let key = Bytes::copy_from_slice(key);
            if context.is_written(&key) {
                return Ok(false);
            }
            if !Self::lock_one(lock, &key, moved, context)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Locks what rows are made of that all come to be locked, table after table, where that spares round trips. What is locked so is asked for again row by row.
    fn lock_together(
        &self,
        rows: &[Row],
        moved: &mut Option<Bytes>,
        context: &StatementContext,
    ) -> Result<(), SqlError> {
        let waits = self.locks.iter().all(|lock| lock.wait == LockWait::Wait);
        if rows.len() < 2 || !waits || !ahead::is_far(&context.txn) {
            return Ok(());
        }
        let key = |row: &Row, lock: &RowLock| match row.get(self.fields.len() + lock.key) {
            Some(Value::Bytea(key)) => Some(Bytes::copy_from_slice(key)),
            _ => None,
        };
        // A row that another part of the statement has written is skipped, with all that it is joined with.
        let is_written = |row: &Row, lock: &RowLock| key(row, lock).is_some_and(|key| context.is_written(&key));
        let left = rows.iter().filter(|row| !self.locks.iter().any(|lock| is_written(row, lock)));
        let left: Vec<&Row> = left.collect();
        for lock in &self.locks {
            let keys = ahead::distinct(left.iter().filter_map(|row| key(row, lock)));
            ahead::locks(keys.iter().cloned(), lock.mode, &context.txn);
            for key in &keys {
                context.check()?;
                Self::lock_one(lock, key, moved, context)?;
            }
        }
        Ok(())
    }

    /// `false` if it is skipped.
    fn lock_one(
        lock: &RowLock,
        key: &Bytes,
        moved: &mut Option<Bytes>,
        context: &StatementContext,
    ) -> Result<bool, SqlError> {
        let (locked, same) = context.txn.with(|txn| {
            let seen = txn.snapshot();
            let locked = txn.lock_as(key, lock.mode, lock.wait)?;
            Ok::<_, KvError>((locked, txn.snapshot() == seen))
        })?;
        if locked && !same {
            moved.get_or_insert_with(|| key.clone());
        }
        Ok(locked)
    }

    /// The query is to be asked again: its rows were found as they were.
    fn again(key: &Bytes) -> SqlError {
        KvError::Restart { reason: "a row was changed after it was found".into(), key: Some(key.clone()) }.into()
    }

    fn skips(&self) -> bool {
        self.locks.iter().any(|lock| lock.wait == LockWait::Skip)
    }
}

impl Plan for LockedRows {
    fn parameters(&self) -> &[SqlType] {
        self.found.parameters()
    }
    fn fields(&self) -> &[Field] {
        &self.fields
    }
    fn gives_rows(&self) -> bool {
        true
    }
    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        let Execution::Rows(mut source) = self.found.execute(context)? else {
            return Ok(Execution::Rows(Box::new(Given {
                rows: Vec::new().into_iter(),
                _reserved: Reserved::new(&context.memory),
            })));
        };
        let mut reserved = Reserved::new(&context.memory);
        let mut out = Vec::new();
        let bounded = self.bounds.contains(&true);
        // How many rows are left to give and to pass over: the first row says it.
        let mut left = (!bounded).then_some((u64::MAX, 0));
        let mut moved = None;
        let mark = self.skips().then(|| context.txn.with(|txn| txn.savepoint()));
        'rows: loop {
            let wanted = left.map_or(1, |(limit, skip): (u64, u64)| limit.saturating_add(skip));
            let rows = match source.next(usize::try_from(wanted).unwrap_or(PULL_ROWS).min(PULL_ROWS)) {
                // What comes of rows of two snapshots says nothing.
                Err(error) if !error.is_of_the_moment() => return Err(moved.as_ref().map_or(error, Self::again)),
                rows => rows?,
            };
            if rows.is_empty() {
                break;
            }
            // Before the first row nobody knows of how many.
            if left.is_some() {
                self.lock_together(&rows, &mut moved, context)?;
            }
            for mut row in rows {
                context.check()?;
                let behind = row.split_off(self.fields.len());
                let (keys, said) = behind.split_at(self.keys);
                let (mut limit, mut skip) = match left {
                    Some(left) => left,
                    None => self.bounds(said)?,
                };
                if limit == 0 {
                    break 'rows;
                }
                if self.lock(keys, &mut moved, context)? {
                    if skip > 0 {
                        skip -= 1;
                    } else {
                        limit -= 1;
                        reserved.take(row_bytes(&row))?;
                        out.push(row);
                    }
                }
                left = Some((limit, skip));
                // Nobody was waited for: to go on would spare nothing.
                if limit == 0 || (moved.is_some() && mark.is_some()) {
                    break 'rows;
                }
            }
        }
        if let Some(key) = &moved {
            if let Some(mark) = mark {
                context.txn.with(|txn| txn.release_since(mark));
            }
            return Err(Self::again(key));
        }
        Ok(Execution::Rows(Box::new(Given { rows: out.into_iter(), _reserved: reserved })))
    }
    fn explain(&self) -> Operator {
        over("LockRows", self.found.explain())
    }
    fn is_read_only(&self) -> bool {
        false
    }
    fn is_direct(&self) -> bool {
        false
    }
}

/// Rows that are locked, and their memory.
struct Given {
    rows: std::vec::IntoIter<Row>,
    _reserved: Reserved,
}

impl RowSource for Given {
    fn next(&mut self, max: usize) -> Result<Vec<Row>, SqlError> {
        Ok(self.rows.by_ref().take(max).collect())
    }
}
