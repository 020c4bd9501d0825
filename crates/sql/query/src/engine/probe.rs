//! Correlated subqueries without their correlation: `EXISTS (SELECT .. FROM s WHERE s.v = b.v AND ..)` as a look into a table of `s`.
//!
//! **Problem.** A subquery that names columns of the query around it runs once for each row, and where no index leads to its rows each
//! run reads all of them: 20,000 rows beside 3,000 took seconds.
//!
//! **Idea.** Most such subqueries are tied to the row by equalities alone, of something of theirs with something of the row. Without
//! these (and other conditions that name the row, the *rest*) the subquery is the same for every row. So it is run once, its rows are
//! kept by the values that the equalities ask for, and each row looks up its own. A subquery that is one group of aggregates is
//! grouped by these values instead, and gives what it gives without rows where a group is missing.
//!
//! It is a property of a subquery and not a kind of join: it serves in WHERE, under OR and CASE, in the select list alike.
//!
//! **Invariants.**
//! 1. What is run once reads no slot of the row ([`walk::reads_below`]) and calls nothing volatile.
//! 2. A NULL on either side of an equality is no match.
//! 3. Where an index leads to the rows, where the table would not fit into the statement's memory, and where one of its rows, which maybe
//!    none of the rows around asks for, fails an expression, the subquery runs for each row.
//!
//! **Caveats.** The equalities are looked for in WHERE and ON of tables and inner joins of the subquery, not below its own subqueries in
//! FROM. While an index leads to the rows a table is tried only when [`LOOKUPS_FIRST`] rows were looked up (more, where statistics say that it reads
//! more than those are worth), and given up beyond
//! [`ROWS_PER_LOOKUP`] rows for each of them, until twice as many were looked up: it costs at most as much again.

use super::aggregate::AggregateCall;
use super::estimate::{self, Known};
use super::key_table::{KEY_BYTES, KeyTable};
use super::keys::{self, KeyKind};
use super::node::{Join, JoinKind, Node};
use super::presence::above;
use super::run::{Reservation, Run, Step, TableRows, integers, open, write_integers};
use super::scalar::{Scalar, Subplan, all_true};
use super::walk;
use crate::exec::evaluate;
use crate::expr::{CompareOp, Expr};
use crate::plan::tree;
use crate::types::{Row, SqlType, Value};
use crate::work::Share;
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Rows for which the subquery runs before a table is tried, where an index leads to its rows.
const LOOKUPS_FIRST: u64 = 256;
/// Rows that a table may read for each row that was looked up so far.
const ROWS_PER_LOOKUP: u64 = 32;

/// A correlated subquery as a table to look into.
#[derive(Debug)]
pub(super) struct Probe {
    /// What is run once: rows behind a prefix of `prefix` slots, none of which it reads.
    node: Arc<Node>,
    prefix: usize,
    ties: Vec<Tie>,
    answer: Answer,
    /// An index leads to the rows of the subquery.
    by_key: bool,
    /// Rows that a table of it reads, about; `None`: not known.
    reads: Option<u64>,
}

/// An equality of the row with the subquery.
#[derive(Debug)]
struct Tie {
    /// Over the row.
    outer: Expr,
    /// Over a row of the subquery.
    inner: Expr,
    inner_ty: SqlType,
    kind: KeyKind,
}

/// What is asked of the rows of one key.
#[derive(Debug)]
enum Answer {
    /// Whether there is one.
    Exists { rest: Rest },
    /// The value of the only one.
    One { rest: Rest, value: Scalar },
    /// The value over their group: conditions and value are over the row and the aggregates behind it.
    Group { calls: Vec<AggregateCall>, having: Vec<Scalar>, value: Scalar },
}

/// Conditions that name the row beside the ties, over a row of the subquery.
type Rest = Vec<Scalar>;

/// The rows of the subquery by their keys.
pub(super) struct Table {
    keys: KeyTable,
    /// For each key its rows without the prefix; none where it is enough that there is one.
    rows: Vec<Vec<Row>>,
    /// The aggregates over no row.
    none: Row,
    _reserved: Reservation,
}

/// How far the making of a table is.
#[derive(Default)]
pub(super) struct Progress {
    /// Rows for which it was asked.
    asked: u64,
    /// Not to be tried before so many.
    not_before: u64,
    table: Option<Arc<Table>>,
}

/// Plans a table for `EXISTS (..)`.
pub(super) fn exists(plan: &Subplan) -> Option<Probe> {
    let mut node = &plan.node;
    // What is not asked is whether there is a row.
    loop {
        match node.as_ref() {
            Node::Project { input, .. } | Node::Sort { input, .. } | Node::Cut { input, .. } => node = input,
            Node::Distinct { input, .. } => node = input,
            Node::Limit { input, offset: None, limit, .. } if limit.as_ref().is_none_or(lets_one_through) => {
                node = input
            }
            _ => break,
        }
    }
    tied(node, plan.prefix, |rest| Some(Answer::Exists { rest }))
}

/// Plans a table for `(SELECT ..)` as a value.
pub(super) fn value(plan: &Subplan) -> Option<Probe> {
    let Node::Project { input, columns, .. } = plan.node.as_ref() else { return None };
    let [value] = columns.as_slice() else { return None };
    let (input, having) = match input.as_ref() {
        Node::Filter { input, conditions } if matches!(input.as_ref(), Node::Aggregate { .. }) => {
            (input, conditions.clone())
        }
        _ => (input, Vec::new()),
    };
    match input.as_ref() {
        Node::Aggregate { input, keys, calls, .. } if keys.is_empty() => {
            let (calls, value) = (calls.clone(), value.clone());
            let mut probe =
                tied(input, plan.prefix, |rest| rest.is_empty().then_some(Answer::Group { calls, having, value }))?;
            // Values of a group are to be equal as they are looked up.
            if !probe.ties.iter().all(|tie| keys::own_kind(&tie.inner_ty) == tie.kind) {
                return None;
            }
            probe.group();
            is_run_once(&probe.node, plan.prefix).then_some(probe)
        }
        _ => tied(input, plan.prefix, |rest| Some(Answer::One { rest, value: value.clone() })),
    }
}

fn lets_one_through(limit: &Scalar) -> bool {
    matches!(limit.expr, Expr::Literal(Value::Int8(n), _) if n >= 1)
}

fn tied(node: &Arc<Node>, prefix: usize, answer: impl FnOnce(Rest) -> Option<Answer>) -> Option<Probe> {
    let mut found = Found { prefix, ties: Vec::new(), rest: Vec::new() };
    let by_key = is_by_key(node);
    let node = found.untie(node)?;
    if found.ties.is_empty() || !is_run_once(&node, prefix) {
        return None;
    }
    Some(Probe { node, prefix, ties: found.ties, answer: answer(found.rest)?, by_key, reads: None })
}

/// Whether what is run is the same for every row.
fn is_run_once(node: &Node, prefix: usize) -> bool {
    !walk::reads_below(node, prefix) && !walk::is_volatile(node) && !walk::reads_round(node)
}

/// Whether an index leads to the rows of a subquery.
fn is_by_key(node: &Node) -> bool {
    match node {
        Node::Table(scan) => scan.planned.path.has_prefix(),
        Node::Filter { input, .. } => is_by_key(input),
        Node::Join(join) => is_by_key(&join.left) && (join.lookup.is_some() || is_by_key(&join.right)),
        _ => false,
    }
}

/// What ties a subquery to the row.
struct Found {
    prefix: usize,
    ties: Vec<Tie>,
    rest: Rest,
}

impl Found {
    /// The node without the conditions that name the row; `None` if one of them cannot be asked later.
    fn untie(&mut self, node: &Arc<Node>) -> Option<Arc<Node>> {
        Some(match node.as_ref() {
            Node::Table(scan) => {
                let kept = self.take(scan.asked())?;
                if kept.len() == scan.asked().len() { node.clone() } else { Arc::new(Node::Table(scan.asking(kept))) }
            }
            Node::Filter { input, conditions } => {
                let input = self.untie(input)?;
                above(input, self.take(conditions)?)
            }
            Node::Join(join) if join.merge.is_some() => node.clone(),
            Node::Join(join) if join.kind == JoinKind::Inner && !join.lateral => {
                let left = self.untie(&join.left)?;
                let (ties, rest) = (self.ties.len(), self.rest.len());
                let right = self.untie(&join.right)?;
                // In the joined row the right side's columns lie behind the left side's.
                let behind =
                    |slot: usize| if slot >= self.prefix { slot - self.prefix + join.left_width } else { slot };
                self.ties.iter_mut().skip(ties).for_each(|tie| tie.inner.map_columns(&behind));
                self.rest.iter_mut().skip(rest).for_each(|scalar| scalar.expr.map_columns(&behind));
                let on = self.take(&join.on)?;
                let same = Arc::ptr_eq(&right, &join.right);
                let lookup = join.lookup.clone().filter(|_| same);
                Arc::new(Node::Join(Join { left, right, keys: join.keys.clone(), on, lookup, merge: None, ..*join }))
            }
            Node::Join(join) if join.kind == JoinKind::Left => {
                let (left, right) = (self.untie(&join.left)?, join.right.clone());
                let (keys, on, lookup) = (join.keys.clone(), join.on.clone(), join.lookup.clone());
                Arc::new(Node::Join(Join { left, right, keys, on, lookup, merge: None, ..*join }))
            }
            _ => node.clone(),
        })
    }

    /// Takes the conditions that name the row; gives the others.
    fn take(&mut self, conditions: &[Scalar]) -> Option<Vec<Scalar>> {
        let mut kept = Vec::new();
        for scalar in conditions {
            if !walk::scalar_reads_below(scalar, self.prefix) {
                kept.push(scalar.clone());
            } else if !scalar.steps.is_empty() || tree::is_volatile(&scalar.expr) {
                return None;
            } else if let Some(tie) = tie(&scalar.expr, self.prefix) {
                self.ties.push(tie);
            } else {
                self.rest.push(scalar.clone());
            }
        }
        Some(kept)
    }
}

/// Whether it is what an expression over a row gives (a division by zero, two rows where one is wanted), maybe one that nobody asks for.
fn is_of_a_row(error: &SqlError) -> bool {
    [b"21", b"22", b"54"].iter().any(|class| error.state.0.starts_with(*class))
}

/// An equality of the row with the subquery.
fn tie(expr: &Expr, prefix: usize) -> Option<Tie> {
    let Expr::Compare { op: CompareOp::Eq, left, right, .. } = expr else { return None };
    let of_row = |expr: &Expr| tree::reads_only(expr, &|slot| slot < prefix);
    let of_subquery = |expr: &Expr| tree::reads_only(expr, &|slot| slot >= prefix);
    let (outer, inner) = match (of_row(left), of_row(right)) {
        (true, false) if of_subquery(right) => (left, right),
        (false, true) if of_subquery(left) => (right, left),
        _ => return None,
    };
    let kind = keys::kind(&outer.ty(), &inner.ty())?;
    Some(Tie { outer: outer.as_ref().clone(), inner_ty: inner.ty(), inner: inner.as_ref().clone(), kind })
}

/// A table as EXPLAIN shows it.
pub(super) struct Looked<'p> {
    /// What it is made of, behind the row's slots.
    pub node: &'p Arc<Node>,
    /// What a row looks for, each over the row and over a row of the node.
    pub ties: Vec<(&'p Expr, &'p Expr)>,
    /// What is asked of what it finds, over a row of the node.
    pub rest: &'p [Scalar],
}

impl Probe {
    /// The table, where it is what answers; `None` where an index may.
    pub(super) fn looked(&self) -> Option<Looked<'_>> {
        let rest: &[Scalar] = match &self.answer {
            Answer::Exists { rest } | Answer::One { rest, .. } => rest,
            Answer::Group { .. } => &[],
        };
        let ties = self.ties.iter().map(|tie| (&tie.outer, &tie.inner)).collect();
        (!self.by_key).then_some(Looked { node: &self.node, ties, rest })
    }

    /// With what is known of its tables.
    pub(super) fn with(mut self, known: Known<'_>) -> Arc<Probe> {
        self.reads = estimate::read(&self.node, known).map(|rows| rows as u64);
        Arc::new(self)
    }

    /// Makes a grouping by the ties of what is aggregated.
    fn group(&mut self) {
        let Answer::Group { calls, .. } = &self.answer else { return };
        let width = calls.iter().flat_map(|call| &call.args).map(|arg| arg.width).max().unwrap_or(self.prefix);
        let key = |tie: &Tie| Scalar { steps: Vec::new(), expr: tie.inner.clone(), ty: tie.inner_ty.clone(), width };
        let keys: Vec<Scalar> = self.ties.iter().map(key).collect();
        let sets = vec![vec![true; keys.len()]];
        self.node = Arc::new(Node::Aggregate { input: self.node.clone(), keys, calls: calls.clone(), sets });
        for (place, tie) in self.ties.iter_mut().enumerate() {
            tie.inner = Expr::Column { index: self.prefix + place, ty: tie.inner_ty.clone() };
        }
    }

    /// Whether there is a row for this one; `None` if the subquery is to be run for it.
    pub(super) fn exists(&self, plan: &Subplan, row: &[Value], run: &Arc<Run>) -> Result<Option<bool>, SqlError> {
        let Some(table) = self.table(plan, row, run)? else { return Ok(None) };
        let Answer::Exists { rest } = &self.answer else { return Ok(None) };
        let Some(place) = self.find(&table, row, run)? else { return Ok(Some(false)) };
        if rest.is_empty() {
            return Ok(Some(true));
        }
        Ok(Some(!self.passing(&table, place, rest, row, run, 1)?.is_empty()))
    }

    /// The value for a row; `None` if the subquery is to be run for it.
    pub(super) fn value(&self, plan: &Subplan, row: &[Value], run: &Arc<Run>) -> Result<Option<Value>, SqlError> {
        let Some(table) = self.table(plan, row, run)? else { return Ok(None) };
        let place = self.find(&table, row, run)?;
        match &self.answer {
            Answer::Exists { .. } => Ok(None),
            Answer::One { rest, value } => {
                let Some(place) = place else { return Ok(Some(Value::Null)) };
                match self.passing(&table, place, rest, row, run, 2)?.as_slice() {
                    [] => Ok(Some(Value::Null)),
                    [only] => value.value(only, run).map(Some),
                    _ => Err(super::scalar::several_rows()),
                }
            }
            Answer::Group { having, value, .. } => {
                let group = place.and_then(|place| table.rows.get(place)?.first()).unwrap_or(&table.none);
                let whole = [&row[..self.prefix], group].concat();
                let passes = all_true(having, &whole, run)?;
                if passes { value.value(&whole, run).map(Some) } else { Ok(Some(Value::Null)) }
            }
        }
    }

    /// Up to `most` rows of a key for which the rest holds, behind the row.
    fn passing(
        &self,
        table: &Table,
        place: usize,
        rest: &[Scalar],
        row: &[Value],
        run: &Arc<Run>,
        most: usize,
    ) -> Result<Vec<Row>, SqlError> {
        let mut out = Vec::new();
        for own in table.rows.get(place).into_iter().flatten() {
            run.tick()?;
            let whole = [&row[..self.prefix], own].concat();
            if all_true(rest, &whole, run)? {
                out.push(whole);
                if out.len() == most {
                    break;
                }
            }
        }
        Ok(out)
    }

    /// The place of a row's key.
    fn find(&self, table: &Table, row: &[Value], run: &Run) -> Result<Option<usize>, SqlError> {
        let mut key = Vec::with_capacity(self.ties.len() * 16);
        for tie in &self.ties {
            let value = evaluate::value(&tie.outer, row, &run.context)?;
            if value.is_null() {
                return Ok(None);
            }
            keys::encode(&value, tie.kind, &mut key);
        }
        Ok(table.keys.find(&key))
    }

    /// The table, if it is there or worth making.
    fn table(&self, plan: &Subplan, row: &[Value], run: &Arc<Run>) -> Result<Option<Arc<Table>>, SqlError> {
        let rows_max = {
            let mut probes = run.probes.lock();
            let progress = probes.entry(plan.id).or_default();
            if let Some(table) = &progress.table {
                return Ok(Some(table.clone()));
            }
            progress.asked += 1;
            if progress.not_before == 0 && self.by_key {
                // What is known to be too much is not tried.
                progress.not_before = LOOKUPS_FIRST.max(self.reads.unwrap_or(0) / ROWS_PER_LOOKUP);
            }
            if progress.asked <= progress.not_before {
                return Ok(None);
            }
            progress.not_before = progress.asked.saturating_mul(2);
            if self.by_key { progress.asked * ROWS_PER_LOOKUP } else { u64::MAX }
        };
        let table = match self.fill(row, run, rows_max) {
            Ok(table) => table.map(Arc::new),
            // It is slower without, and gives what it should.
            Err(error) if error.state == SqlState::OUT_OF_MEMORY || is_of_a_row(&error) => {
                run.probes.lock().entry(plan.id).or_default().not_before = u64::MAX;
                None
            }
            Err(error) => return Err(error),
        };
        run.probes.lock().entry(plan.id).or_default().table = table.clone();
        Ok(table)
    }

    /// Runs the subquery without its ties; `None` if it has more rows than are worth it.
    fn fill(&self, row: &[Value], run: &Arc<Run>, rows_max: u64) -> Result<Option<Table>, SqlError> {
        let prefix = Arc::from(&row[..self.prefix]);
        let mut table =
            Table { keys: KeyTable::new(run.seed), rows: Vec::new(), none: Row::new(), _reserved: run.reserve() };
        let keeps_rows = !matches!(&self.answer, Answer::Exists { rest } if rest.is_empty());
        let (mut source, mut found, mut key, mut count) = (open(&self.node, &prefix, run)?, Row::new(), Vec::new(), 0);
        if !keeps_rows && let Some(rows) = source.table() {
            let read = self.ties.iter().flat_map(|tie| tie.inner.columns());
            if let Some(slots) = rows.decodes_columns(read) {
                let whole = self.take_keys(rows, &slots, &mut table, rows_max, run)?;
                return Ok(whole.then_some(table));
            }
        }
        while source.next(&mut found)? {
            run.tick()?;
            count += 1;
            if count > rows_max {
                return Ok(None);
            }
            if !self.write_inner(&found, &mut key, run)? {
                continue;
            }
            let (place, new) = table.keys.number(&key);
            if new {
                table._reserved.bytes(key.len() + KEY_BYTES)?;
            }
            if keeps_rows {
                // Of a group the aggregates alone; its keys lie before them.
                let own = if matches!(self.answer, Answer::Group { .. }) { self.ties.len() } else { 0 };
                found.drain(..self.prefix + own);
                table._reserved.row(&found)?;
                if new {
                    table.rows.push(Vec::new());
                }
                if let Some(rows) = table.rows.get_mut(place) {
                    rows.push(std::mem::take(&mut found));
                }
            }
        }
        if let (Answer::Group { calls, .. }, Node::Aggregate { .. }) = (&self.answer, self.node.as_ref()) {
            let nothing = Arc::new(Node::Values { rows: Vec::new(), _held: Share::default() });
            let sets = vec![Vec::new()];
            let node = Arc::new(Node::Aggregate { input: nothing, keys: Vec::new(), calls: calls.clone(), sets });
            if open(&node, &prefix, run)?.next(&mut found)? {
                table.none = found.split_off(self.prefix);
            }
        }
        Ok(Some(table))
    }

    /// Writes what a row of the subquery is tied by; `false` if a NULL in it makes it equal to nothing.
    fn write_inner(&self, row: &[Value], key: &mut Vec<u8>, run: &Run) -> Result<bool, SqlError> {
        key.clear();
        for tie in &self.ties {
            let value = tie.inner.eval_ref(row, &run.context)?;
            if value.is_null() {
                return Ok(false);
            }
            keys::encode(&value, tie.kind, key);
        }
        Ok(true)
    }

    /// Takes nothing but the keys of a table's rows, where these stand; `false` if there are more rows than are worth it.
    fn take_keys(
        &self,
        rows: &mut TableRows,
        slots: &[usize],
        table: &mut Table,
        rows_max: u64,
        run: &Run,
    ) -> Result<bool, SqlError> {
        let (mut key, mut count) = (Vec::new(), 0);
        // Whether there are too many.
        let mut take = |key: &[u8], is_whole: bool| -> Result<bool, SqlError> {
            count += 1;
            if count > rows_max {
                return Ok(true);
            }
            if is_whole && table.keys.number(key).1 {
                table._reserved.bytes(key.len() + KEY_BYTES)?;
            }
            Ok(false)
        };
        let (mut most, mut beyond) = (u64::MAX, Row::new());
        let ties = self.ties.iter().map(|tie| (evaluate::column(&tie.inner), tie.kind));
        let step = match integers(rows, ties) {
            Some(ids) => {
                let ends = |stored: &[u8]| -> Result<bool, SqlError> {
                    let is_whole = write_integers(&ids, None, stored, &mut key)?;
                    take(&key, is_whole)
                };
                rows.step_by(&mut most, ends, &mut beyond)?
            }
            None => {
                let ends = |row: &[Value]| -> Result<bool, SqlError> {
                    let is_whole = self.write_inner(row, &mut key, run)?;
                    take(&key, is_whole)
                };
                rows.step_to(slots, &mut most, ends, &mut beyond)?
            }
        };
        Ok(step == Step::End)
    }
}
