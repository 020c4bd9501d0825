//! From tables and conditions to nested loops: the order of the tables, how each is read, where each condition is asked.

use super::access::{self, Choice, Order, Wish};
use super::implied;
use super::negation;
use super::refusal::{Planned, Refusal};
use super::tree;
use crate::exec::cursor::Level;
use crate::exec::path::Path;
use crate::exec::table::TableAccess;
use crate::expr::{Expr, conjunction};
use crate::statistics::TableStatistics;
use crate::transaction::{LockMode, LockWait};
use std::sync::Arc;

/// Work, in rows read, above which a join is left to the query engine.
const JOIN_ROWS_MAX: f64 = 50_000.0;
/// The same where statistics say how many rows there are: thousands of lookups are no short work.
const JOIN_ROWS_KNOWN_MAX: f64 = 5_000.0;

/// Work, in rows read, that loops may have beyond what it takes to read each table once: below it, what the query engine does for
/// a statement of any size is more. Measured: 100 posts with 11 likes each, by loops 445 µs of a processor; with 31, read once and hashed, 370.
const JOIN_ROWS_BEYOND_MAX: f64 = 500.0;

/// One table of a statement.
pub struct Source {
    /// The table.
    pub access: Arc<TableAccess>,
    /// Its alias or name.
    pub alias: String,
    /// First place of its columns.
    pub base: usize,
    /// LEFT JOIN.
    pub outer: bool,
    /// What is known of its contents.
    pub statistics: Option<Arc<TableStatistics>>,
    /// Conditions of its ON, if it is an outer join.
    pub on: Vec<Expr>,
    /// FOR UPDATE, UPDATE, DELETE.
    pub lock: Option<(LockMode, LockWait)>,
}

impl Source {
    fn places(&self) -> std::ops::Range<usize> {
        self.base..self.base + self.access.columns.len()
    }
}

/// What the loops are wanted for.
pub struct Goal<'a> {
    /// The tables, in the order written.
    pub sources: &'a [Source],
    /// WHERE, and ON of inner joins.
    pub conditions: Vec<Expr>,
    /// ORDER BY, as places of columns: (place, descending, nulls first).
    pub order: Option<Vec<(usize, bool, bool)>>,
    /// There is a LIMIT, and nothing between it and the rows but the order.
    pub limited: bool,
    /// A join of many rows is wanted all the same.
    pub wide: bool,
    /// Places that are read above the loops.
    pub output: Vec<usize>,
}

/// Nested loops, planned.
pub struct Loops {
    /// Outermost first.
    pub levels: Vec<Level>,
    /// For each level, the place of its table among the sources.
    pub sources: Vec<usize>,
    /// Conditions on no table.
    pub constant: Option<Expr>,
    /// Whether rows come in the order wanted.
    pub ordered: bool,
    /// For each level: at most one row for one set of keys.
    pub points: Vec<bool>,
    /// Guess of the work.
    pub cost: f64,
}

impl Loops {
    /// No tables.
    pub fn none(constant: Option<Expr>) -> Self {
        Loops { levels: Vec::new(), sources: Vec::new(), constant, ordered: false, points: Vec::new(), cost: 0.0 }
    }
}

struct Attempt {
    sequence: Vec<usize>,
    choices: Vec<Choice>,
    cost: f64,
}

/// Plans the loops.
pub fn plan(goal: Goal<'_>) -> Planned<Loops> {
    let mut conditions: Vec<Expr> = goal.conditions.iter().cloned().flat_map(negation::inward).collect();
    implied::add(&mut conditions, goal.sources);
    let (constant, conditions): (Vec<Expr>, Vec<Expr>) = conditions
        .into_iter()
        .partition(|condition| tree::reads_only(condition, &|_| false) && !tree::is_volatile(condition));
    let sequences = sequences(goal.sources);
    let best = sequences
        .into_iter()
        .map(|sequence| try_order(&goal, &conditions, sequence))
        .reduce(|best, next| if next.cost < best.cost { next } else { best });
    let Some(best) = best else { return Err(Refusal::Engine("a SELECT without tables")) };
    let nested = best.sequence.len() > 1;
    let known = goal.sources.iter().all(|source| source.statistics.is_some());
    let rows_max = if known { JOIN_ROWS_KNOWN_MAX } else { JOIN_ROWS_MAX };
    if nested && !goal.wide && !goal.limited && best.cost > rows_max {
        return Err(Refusal::Engine("a join of many rows"));
    }
    let hashable = known && nested && !goal.wide && !goal.limited && goal.sources.iter().all(|s| s.lock.is_none());
    if hashable && best.cost > JOIN_ROWS_BEYOND_MAX && best.cost > apart(&goal, &conditions) + JOIN_ROWS_BEYOND_MAX {
        return Err(Refusal::Engine("a join whose tables are better read once"));
    }
    let ordered = best.choices.first().is_some_and(|choice| choice.ordered) && goal.order.is_some();
    let points = best.choices.iter().map(|choice| choice.point).collect();
    let cost = best.cost;
    let sequence = best.sequence.clone();
    let levels = build(&goal, conditions, best);
    let constant = conjunction(constant);
    Ok(Loops { levels, sources: sequence, constant, ordered, points, cost })
}

/// Work, in rows read, of each table read for itself, none by what another's rows say: what a hash join reads.
fn apart(goal: &Goal<'_>, conditions: &[Expr]) -> f64 {
    let alone = |source: &Source| {
        let places = source.places();
        let own = |condition: &&Expr| tree::reads_only(condition, &|place| places.contains(&place));
        let on = source.on.iter().filter(own);
        let here = conditions.iter().filter(own).filter(|_| !source.outer);
        let usable: Vec<Expr> = on.chain(here).cloned().collect();
        access::choose(&Wish {
            access: &source.access,
            base: source.base,
            conditions: &usable,
            known: &|_| false,
            order: &[],
            limited: false,
            unions: true,
            statistics: source.statistics.as_deref(),
        })
        .cost
    };
    goal.sources.iter().map(alone).sum()
}

/// The orders of tables to try: all of them, unless an outer join fixes the one written.
fn sequences(sources: &[Source]) -> Vec<Vec<usize>> {
    if sources.iter().any(|source| source.outer) {
        return vec![(0..sources.len()).collect()];
    }
    let mut out: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..sources.len() {
        out = out
            .into_iter()
            .flat_map(|sequence| {
                let rest: Vec<usize> = (0..sources.len()).filter(|i| !sequence.contains(i)).collect();
                rest.into_iter().map(move |next| {
                    let mut longer = sequence.clone();
                    longer.push(next);
                    longer
                })
            })
            .collect();
    }
    out
}

fn known_places(sources: &[Source], sequence: &[usize]) -> impl Fn(usize) -> bool {
    let ranges: Vec<std::ops::Range<usize>> = sequence.iter().map(|&i| sources[i].places()).collect();
    move |place| ranges.iter().any(|range| range.contains(&place))
}

/// Conditions that can be asked when the tables of `sequence` have been read, and not before its last one.
fn conditions_at(conditions: &[Expr], sources: &[Source], sequence: &[usize], at: usize) -> Vec<usize> {
    let now = known_places(sources, &sequence[..=at]);
    let before = known_places(sources, &sequence[..at]);
    (0..conditions.len())
        .filter(|&i| tree::reads_only(&conditions[i], &now) && !(at > 0 && tree::reads_only(&conditions[i], &before)))
        .collect()
}

fn try_order(goal: &Goal<'_>, conditions: &[Expr], sequence: Vec<usize>) -> Attempt {
    let mut choices: Vec<Choice> = Vec::new();
    let (mut cost, mut rows) = (0.0, 1.0f64);
    for at in 0..sequence.len() {
        let source = &goal.sources[sequence[at]];
        let mut usable: Vec<Expr> = source.on.clone();
        if !source.outer {
            let here = conditions_at(conditions, goal.sources, &sequence, at);
            usable.extend(here.into_iter().map(|i| conditions[i].clone()));
        }
        let order = if at == 0 { order_of(goal, source) } else { Some(Vec::new()) };
        let wish = Wish {
            access: &source.access,
            base: source.base,
            conditions: &usable,
            known: &known_places(goal.sources, &sequence[..at]),
            order: order.as_deref().unwrap_or(&[]),
            limited: goal.limited && at == 0,
            unions: !matches!(source.lock, Some((_, LockWait::Skip))),
            statistics: source.statistics.as_deref(),
        };
        let mut choice = access::choose(&wish);
        if order.is_none() {
            choice.ordered = false;
        }
        cost += rows * choice.cost;
        rows = (rows * choice.rows).max(1.0);
        choices.push(choice);
    }
    if goal.order.is_some() && !choices[0].ordered {
        cost += rows;
    }
    Attempt { sequence, choices, cost }
}

/// The order wanted, as slots of a table; `None` if it is not on its columns alone.
fn order_of(goal: &Goal<'_>, source: &Source) -> Option<Vec<Order>> {
    let Some(order) = &goal.order else { return Some(Vec::new()) };
    let places = source.places();
    order
        .iter()
        .map(|&(place, descending, nulls_first)| {
            places.contains(&place).then(|| Order { slot: place - source.base, descending, nulls_first })
        })
        .collect()
}

fn build(goal: &Goal<'_>, conditions: Vec<Expr>, best: Attempt) -> Vec<Level> {
    let mut levels = Vec::new();
    let mut read: Vec<usize> = goal.output.clone();
    // What rows are asked for that are written or locked is what may conflict.
    let may_scan = goal.sources.iter().all(|source| source.lock.is_none());
    // All conditions of a level whose keys lead to so much that the table is rather read as a whole.
    let mut dear: Vec<Option<(Vec<Expr>, f64)>> = Vec::new();
    for (at, choice) in best.choices.into_iter().enumerate() {
        let source = &goal.sources[best.sequence[at]];
        let here: Vec<Expr> = conditions_at(&conditions, goal.sources, &best.sequence, at)
            .into_iter()
            .map(|i| conditions[i].clone())
            .collect();
        let (mut filters, after) = match source.outer {
            true => (source.on.clone(), here),
            false => (source.on.iter().cloned().chain(here).collect(), Vec::new()),
        };
        let lock = source.lock.filter(|_| choice.point);
        let whole = source.statistics.as_ref().filter(|_| choice.is_dear && may_scan);
        dear.push(whole.map(|known| (filters.clone(), known.rows as f64)));
        // What was locked by way of a secondary index may have moved: its conditions are asked of the row itself.
        if lock.is_none() || choice.path.index == 0 {
            let mut i = 0;
            filters.retain(|_| {
                i += 1;
                !choice.used.contains(&(i - 1))
            });
        }
        filters.iter().chain(&after).for_each(|condition| tree::columns(condition, &mut read));
        choice.path.operands(&mut |operand| tree::columns(&operand.expr, &mut read));
        levels.push(Level {
            access: source.access.clone(),
            alias: source.alias.as_str().into(),
            base: source.base,
            slots: Vec::new(),
            path: choice.path,
            filter: conjunction(filters),
            outer: source.outer,
            after: conjunction(after),
            lock,
            key_lock: None,
            entries: None,
            skips: false,
            expected: choice.rows,
        });
    }
    for (level, dear) in levels.iter_mut().zip(dear) {
        level.slots = slots_of(level, &read);
        let Some((filters, rows)) = dear else { continue };
        let index = level.access.index(level.path.index);
        if level.access.entry_columns(index, &level.slots).is_none() {
            let mut read = read.clone();
            filters.iter().for_each(|condition| tree::columns(condition, &mut read));
            level.slots = slots_of(level, &read);
            (level.path, level.filter, level.expected) = (Path::whole(), conjunction(filters), rows);
        }
    }
    levels
}

/// The slots of a level's table that are among the places read.
fn slots_of(level: &Level, read: &[usize]) -> Vec<usize> {
    let places = level.places();
    let mut slots: Vec<usize> = read.iter().filter(|p| places.contains(p)).map(|p| p - level.base).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}
