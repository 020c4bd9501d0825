//! Inner joins in an order that statistics call for.
//!
//! Each input is planned under the conditions of its own, its rows are estimated ([`super::estimate`]), and an order is chosen ([`super::order`]).
//! EXISTS and correlated values are asked where the fewest rows are there to ask them for: after a join, or of an input by itself. Without statistics of all its tables a FROM is joined as
//! [`super::join_tree`] does it.

use super::bind::Binder;
use super::bind_from::Items;
use super::estimate;
use super::item_set::ItemSet;
use super::join_tree::{Built, Conjunct, ItemSource, Tree, is_equality, set, within};
use super::named_items::{Names, name_parts};
use super::node::JoinKind;
use super::order::{Class, Edge, INPUTS_MAX, Input, order};
use super::scope::{Scope, item_expr};
use crate::SqlError;
use crate::exec::table::TableAccess;
use crate::statistics::{TableStatistics, UNKNOWN_SHARE};
use sqlparser::ast::{BinaryOperator, Expr, Visit, Visitor};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Share of pairs that are equal in something of which nothing is known.
const EQUAL_SHARE: f64 = 0.005;

/// A column of one of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Column {
    input: usize,
    item: usize,
    number: usize,
}

impl Binder<'_> {
    pub(super) fn statistics_of(&self, table: u32) -> Option<Arc<TableStatistics>> {
        self.context.statistics.of(self.context.kv.as_ref(), table)
    }

    /// Whether there are statistics of all tables that stand for themselves, and of one at least.
    fn is_known(&self, units: &[&Tree], items: &Items) -> bool {
        let mut some = false;
        units.iter().all(|unit| match unit {
            Tree::Leaf(item) if items.list[*item].lateral => false,
            Tree::Leaf(item) => match &items.list[*item].source {
                ItemSource::Table(access) => {
                    some = true;
                    self.statistics_of(access.table.id).is_some()
                }
                ItemSource::Virtual(_) => false,
                ItemSource::Node(_) => true,
            },
            Tree::Join { .. } => !unit.is_lateral(items),
        }) && some
    }

    /// See the module. `None` if there is nothing to go by.
    pub(super) fn arranged(
        &mut self,
        units: &[&Tree],
        pool: &mut Vec<Conjunct>,
        items: &Items,
        outer: &Scope<'_>,
    ) -> Result<Option<Built>, SqlError> {
        if items.fixed || !(2..=INPUTS_MAX).contains(&units.len()) || !self.is_known(units, items) {
            return Ok(None);
        }
        let scope = items.scope(&items.written(), outer);
        let (mut late, early) = std::mem::take(pool).into_iter().partition(|c| asks_for_rows(&c.expr, &scope));
        *pool = early;
        let (mut ready, mut own, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        for unit in units {
            let conditions = within(pool, unit.set());
            let built = self.build(unit, conditions.clone(), items, outer)?;
            let known = |table: u32| self.statistics_of(table);
            let rows = estimate::rows(&built.node, &known);
            inputs.push(Input { rows, read: estimate::read(&built.node, &known).unwrap_or(rows) });
            own.push(conditions);
            ready.push(Some(built));
        }
        let ties = self.ties(units, pool, &inputs, items, &scope);
        let (order, sizes) = order(&inputs, &ties.classes, &ties.edges);

        let mut joined: Option<Built> = None;
        let own_first = |conjunct: &Conjunct| units.iter().position(|unit| conjunct.within(unit.set()));
        let mut before: Vec<Vec<Conjunct>> = units.iter().map(|_| Vec::new()).collect();
        let mut asked = places(&mut late, &order, &sizes, units);
        // An input that is smaller than all that is made of it is asked by itself.
        for (place, conjuncts) in &mut asked {
            for conjunct in std::mem::take(conjuncts) {
                match own_first(&conjunct).filter(|at| *place > 0 && inputs[*at].rows < sizes[*place]) {
                    Some(at) => before[at].push(conjunct),
                    None => conjuncts.push(conjunct),
                }
            }
        }
        for (place, at) in order.into_iter().enumerate() {
            let Some(mut next) = ready[at].take() else { continue };
            let mut conditions = std::mem::take(&mut own[at]);
            let first = std::mem::take(&mut before[at]);
            next = self.filtered(next, first.clone(), items, outer)?;
            conditions.extend(first);
            let mut built = match joined.take() {
                None => next,
                Some(left) => {
                    let mut on = within(pool, set(&left.order).and(units[at].set()));
                    ties.imply(&left.order, at, &mut on);
                    self.join_with(left, units[at], Some(next), JoinKind::Inner, conditions, on, items, outer)?
                }
            };
            if let Some(conditions) = asked.remove(&place) {
                built = self.filtered(built, conditions, items, outer)?;
            }
            joined = Some(built);
        }
        let Some(built) = joined else { return Ok(None) };
        pool.append(&mut late);
        self.filtered(built, std::mem::take(pool), items, outer).map(Some)
    }

    fn table_of<'i>(&self, unit: &Tree, items: &'i Items) -> Option<(&'i TableAccess, Arc<TableStatistics>)> {
        let Tree::Leaf(item) = unit else { return None };
        let ItemSource::Table(access) = &items.list[*item].source else { return None };
        Some((access, self.statistics_of(access.table.id)?))
    }

    /// What ties inputs to each other.
    fn ties(&self, units: &[&Tree], pool: &[Conjunct], inputs: &[Input], items: &Items, scope: &Scope<'_>) -> Ties {
        let column = |expr: &Expr| {
            let found = scope.here(&name_parts(bare(expr))?).ok()??;
            let input = units.iter().position(|unit| unit.set().has(found.relation))?;
            Some(Column { input, item: found.relation, number: found.number })
        };
        let bits = |set: ItemSet| {
            let bit = |(at, unit): (usize, &&Tree)| u64::from(unit.set().meets(set)) << at;
            units.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
        };
        let ty = |column: &Column| &items.list[column.item].columns[column.number].ty;
        let (mut edges, mut classes) = (Vec::new(), Vec::<Vec<Column>>::new());
        for conjunct in pool {
            let sides = match &conjunct.expr {
                Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => Some((left, right)),
                _ => None,
            };
            match sides.and_then(|(left, right)| Some((column(left)?, column(right)?))) {
                Some((a, b)) if a.input != b.input && ty(&a) == ty(&b) => unite(&mut classes, a, b),
                columns => {
                    let inputs_met = bits(conjunct.items);
                    let share = match (columns, sides) {
                        (Some((a, b)), _) => {
                            let distinct = |of: &Column| self.distinct(units[of.input], of, inputs, items);
                            1.0 / distinct(&a).max(distinct(&b)).max(1.0)
                        }
                        (None, Some(_)) => EQUAL_SHARE,
                        (None, None) => UNKNOWN_SHARE,
                    };
                    edges.push(Edge {
                        inputs: inputs_met,
                        share,
                        equal: sides.is_some() && inputs_met.count_ones() > 1,
                    });
                }
            }
        }
        // Of one input one column counts.
        classes.iter_mut().for_each(|class| class.dedup_by_key(|column| column.input));
        let leads = |column: &Column| self.table_of(units[column.input], items).is_some_and(|(t, _)| leads(t, column));
        let member =
            |column: &Column| (column.input, self.distinct(units[column.input], column, inputs, items), leads(column));
        let weighed: Vec<Class> =
            classes.iter().map(|class| Class { members: class.iter().map(member).collect() }).collect();
        self.keys_of_several(units, &classes, &weighed, items, &mut edges);
        Ties { columns: classes, classes: weighed, edges }
    }

    /// Columns that are a key together depend on each other: a reference by several finds one row, not a share of one.
    fn keys_of_several(
        &self,
        units: &[&Tree],
        classes: &[Vec<Column>],
        weighed: &[Class],
        items: &Items,
        edges: &mut Vec<Edge>,
    ) {
        for a in 0..units.len() {
            let Some((access, statistics)) = self.table_of(units[a], items) else { continue };
            for b in (0..units.len()).filter(|b| *b != a) {
                let both =
                    |class: &&Vec<Column>| [a, b].iter().all(|at| class.iter().any(|column| column.input == *at));
                let columns: Vec<Column> =
                    classes.iter().filter(both).flatten().filter(|column| column.input == a).copied().collect();
                if columns.len() < 2 || !access.is_unique_by(|slot| columns.iter().any(|column| column.number == slot))
                {
                    continue;
                }
                let pair = 1 << a | 1 << b;
                let shares = classes.iter().zip(weighed).filter(|(class, _)| both(class));
                let taken: f64 = shares.map(|(_, class)| class.share(pair)).product();
                let share = 1.0 / (statistics.rows as f64).max(1.0) / taken;
                if share > 1.0 {
                    edges.push(Edge { inputs: pair, share, equal: false });
                }
            }
        }
    }

    /// Different values of a column, about.
    fn distinct(&self, unit: &Tree, column: &Column, inputs: &[Input], items: &Items) -> f64 {
        let known = || {
            let (access, statistics) = self.table_of(unit, items)?;
            statistics.column(access.columns.get(column.number)?.id).map(|column| column.distinct)
        };
        debug_assert!(unit.set().has(column.item));
        known().unwrap_or(inputs[column.input].rows)
    }
}

/// What ties inputs to each other.
struct Ties {
    /// Columns that are equal, by input.
    columns: Vec<Vec<Column>>,
    classes: Vec<Class>,
    edges: Vec<Edge>,
}

impl Ties {
    /// Adds equalities that others imply, where one more input is joined to items and nothing among `on` says them.
    fn imply(&self, joined: &[usize], next: usize, on: &mut Vec<Conjunct>) {
        for class in &self.columns {
            let own = class.iter().find(|column| column.input == next);
            let there = class.iter().find(|column| joined.contains(&column.item));
            let (Some(own), Some(there)) = (own, there) else { continue };
            let items_of = |column: &Column| ItemSet::one(column.item);
            let others: Vec<&Column> = class.iter().filter(|column| joined.contains(&column.item)).collect();
            let said = |conjunct: &Conjunct| {
                let ties = |other: &&&Column| conjunct.items == items_of(own).and(items_of(other));
                is_equality(&conjunct.expr) && others.iter().any(|other| ties(&other))
            };
            if on.iter().any(said) {
                continue;
            }
            let side = |column: &Column| Box::new(item_expr(column.item, column.number));
            let expr = Expr::BinaryOp { left: side(there), op: BinaryOperator::Eq, right: side(own) };
            on.push(Conjunct { expr, items: items_of(there).and(items_of(own)), own: None });
        }
    }
}

/// Puts two columns into one class.
fn unite(classes: &mut Vec<Vec<Column>>, a: Column, b: Column) {
    let mut class = vec![a, b];
    classes.retain_mut(|other| {
        let meets = other.contains(&a) || other.contains(&b);
        if meets {
            class.append(other);
        }
        !meets
    });
    class.sort_unstable();
    class.dedup();
    classes.push(class);
}

/// Where each of the late conditions is asked: after the join, by its place, that leaves the fewest rows. What is left over names something else.
fn places(late: &mut Vec<Conjunct>, order: &[usize], sizes: &[f64], units: &[&Tree]) -> BTreeMap<usize, Vec<Conjunct>> {
    let mut asked: BTreeMap<usize, Vec<Conjunct>> = BTreeMap::new();
    let mut joined = ItemSet::NONE;
    let mut sets = Vec::new();
    for at in order {
        joined = joined.and(units[*at].set());
        sets.push(joined);
    }
    for conjunct in std::mem::take(late) {
        let places = (0..order.len()).filter(|place| conjunct.items.within(sets[*place]));
        match places.min_by(|a, b| sizes[*a].total_cmp(&sizes[*b])) {
            Some(place) => asked.entry(place).or_default().push(conjunct),
            None => late.push(conjunct),
        }
    }
    asked
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

/// Whether a condition may ask a query for each row: EXISTS does, and a subquery as a value that names something of the row.
fn asks_for_rows(expr: &Expr, scope: &Scope<'_>) -> bool {
    struct Finds<'a, 's>(&'a Scope<'s>);
    impl Visitor for Finds<'_, '_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let asks = match expr {
                Expr::Exists { .. } => true,
                Expr::Subquery(query) => !Names::of(query.as_ref(), self.0).is_empty(),
                _ => false,
            };
            if asks { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    expr.visit(&mut Finds(scope)).is_break()
}

/// Whether an index of the table begins with a column.
fn leads(access: &TableAccess, column: &Column) -> bool {
    std::iter::once(&access.primary).chain(&access.indexes).any(|index| {
        let first = index.columns.first().and_then(|column| column.slot);
        index.predicate.is_none() && first == Some(column.number)
    })
}
