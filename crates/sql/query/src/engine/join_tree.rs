//! Joins before they are nodes, and their building.

use super::bind::{Binder, Output};
use super::bind_from::Items;
use super::bounds::{Doubling, holds_query};
use super::item_set::ItemSet;
use super::journal::Named;
use super::keys;
use super::named_items::Names;
use super::node::{Foreseen, Join, JoinKey, JoinKind, Node};
use super::presence::above;
use super::push;
use super::scalar::Scalar;
use super::scan;
use super::scope::{Place, Scope, item_expr};
use super::take::{Clause, place_of};
use super::walk;
use crate::catalog::Relation;
use crate::exec::table::TableAccess;
use crate::expr::function::{beside_moment, by_name};
use crate::expr::{Expr as Bound, hidden_relation};
use crate::identifier::fold;
use crate::pg_catalog::VirtualTable;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use sqlparser::ast::{BinaryOperator, Expr, Query, VisitMut, VisitorMut};
use std::ops::ControlFlow;
use std::sync::Arc;

/// An OR of more branches is not looked into for what it asks of one item.
const RESTRICTING_BRANCHES_MAX: usize = 64;

/// One item of FROM.
pub(super) struct Item {
    pub(super) alias: String,
    pub(super) schema: Option<String>,
    pub(super) table: Option<Arc<Relation>>,
    pub(super) columns: Vec<Output>,
    pub(super) source: ItemSource,
    /// Its prefix is the row of the items before it.
    pub(super) lateral: bool,
    /// A function that gives one value: its whole row is that value.
    pub(super) scalar: bool,
    /// Its last column is the key of its rows.
    pub(super) keyed: bool,
    /// The relation that it names.
    pub(super) of: Option<Named>,
    /// A subquery without an alias.
    pub(super) unnamed: bool,
}

/// Where an item's rows come from.
pub(super) enum ItemSource {
    Table(Arc<TableAccess>),
    Virtual(&'static VirtualTable),
    Node(Arc<Node>),
}

/// A part of a condition that must hold by itself, and the items it names.
#[derive(Clone, Debug)]
pub(super) struct Conjunct {
    pub(super) expr: Expr,
    pub(super) items: ItemSet,
    /// The items that it may name, if those are not all: those of the join whose ON it is of.
    pub(super) own: Option<ItemSet>,
}

impl Conjunct {
    pub(super) fn within(&self, items: ItemSet) -> bool {
        self.items.within(items)
    }
}

/// Joins of items.
pub(super) enum Tree {
    Leaf(usize),
    Join { kind: JoinKind, left: Box<Tree>, right: Box<Tree>, on: Vec<Conjunct> },
}

impl Tree {
    pub(super) fn inner(left: Tree, right: Tree, on: Vec<Conjunct>) -> Tree {
        Tree::Join { kind: JoinKind::Inner, left: Box::new(left), right: Box::new(right), on }
    }
    pub(super) fn left(left: Tree, right: Tree, on: Vec<Conjunct>) -> Tree {
        Tree::Join { kind: JoinKind::Left, left: Box::new(left), right: Box::new(right), on }
    }
    pub(super) fn full(left: Tree, right: Tree, on: Vec<Conjunct>) -> Tree {
        Tree::Join { kind: JoinKind::Full, left: Box::new(left), right: Box::new(right), on }
    }

    /// The cross join that a comma is. A lateral item needs a row of all items before it, so those go below it:
    /// `a, b LEFT JOIN l` is `(a, b) LEFT JOIN l` as long as the joins on the way keep every row of their left side as it is.
    pub(super) fn comma(before: Tree, next: Tree, items: &Items) -> Tree {
        let is_lateral = next.is_lateral(items);
        match next {
            Tree::Join { kind: kind @ (JoinKind::Inner | JoinKind::Left), left, right, on }
                if is_lateral && left.items().iter().max() < right.items().iter().min() =>
            {
                let left = Box::new(Tree::comma(before, *left, items));
                Tree::Join { kind, left, right, on }
            }
            next => Tree::inner(before, next, Vec::new()),
        }
    }

    /// Its items, as written.
    pub(super) fn items(&self) -> Vec<usize> {
        match self {
            Tree::Leaf(item) => vec![*item],
            Tree::Join { left, right, .. } => [left.items(), right.items()].concat(),
        }
    }

    pub(super) fn set(&self) -> ItemSet {
        self.items().into_iter().collect()
    }

    pub(super) fn is_lateral(&self, items: &Items) -> bool {
        self.items().iter().any(|item| items.list[*item].lateral)
    }

    /// Takes inner joins apart: the trees between them, and their conditions.
    fn flatten<'t>(&'t self, units: &mut Vec<&'t Tree>, pool: &mut Vec<Conjunct>) {
        match self {
            Tree::Join { kind: JoinKind::Inner, left, right, on } => {
                left.flatten(units, pool);
                right.flatten(units, pool);
                pool.extend(on.iter().cloned());
            }
            other => units.push(other),
        }
    }
}

/// Cuts a condition at its ANDs.
pub(super) fn conjuncts(expr: &Expr, scope: &Scope<'_>, own: Option<ItemSet>) -> Vec<Conjunct> {
    let mut out = Vec::new();
    for part in operands(expr, &BinaryOperator::And) {
        let implied = shared_equalities(part).into_iter().chain(restrictions(part, scope));
        for expr in field_equalities(part).unwrap_or_else(|| vec![part.clone()]).into_iter().chain(implied) {
            let items = Names::of(&expr, scope);
            out.push(Conjunct { expr, items, own });
        }
    }
    out
}

/// What a chain of one operator, AND or OR, joins, from left to right, through parentheses.
fn operands<'e>(expr: &'e Expr, chained: &BinaryOperator) -> Vec<&'e Expr> {
    let mut out = Vec::new();
    // A chain leans to the left, and may be long.
    let mut rest = vec![expr];
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::BinaryOp { left, op, right } if op == chained => rest.extend([right.as_ref(), left.as_ref()]),
            Expr::Nested(inner) => rest.push(inner),
            operand => out.push(operand),
        }
    }
    out
}

/// Equalities of columns that each branch of an OR asks for: `a = b AND c OR a = b AND d` is true only where `a = b` is. They may join.
fn shared_equalities(expr: &Expr) -> Vec<Expr> {
    let branches = operands(expr, &BinaryOperator::Or);
    let (Some(first), true) = (branches.first(), branches.len() > 1) else { return Vec::new() };
    let mut shared = column_equalities(first);
    for branch in &branches[1..] {
        if shared.is_empty() {
            break;
        }
        let here = column_equalities(branch);
        shared.retain(|equality| here.contains(equality));
    }
    shared.into_iter().cloned().collect()
}

/// What an OR asks of one item alone: `a.x = 1 AND b.y = 2 OR a.x = 3 AND b.y = 4` is true only where `a.x = 1 OR a.x = 3` is, and where
/// `b.y = 2 OR b.y = 4` is. Only of what fails on no row: it is asked of rows that the rest would have kept it from.
fn restrictions(expr: &Expr, scope: &Scope<'_>) -> Vec<Expr> {
    let branches = operands(expr, &BinaryOperator::Or);
    if branches.len() < 2 || branches.len() > RESTRICTING_BRANCHES_MAX {
        return Vec::new();
    }
    let items_of = |expr: &Expr| Names::of(expr, scope);
    let parts: Vec<Vec<(&Expr, ItemSet)>> = branches
        .iter()
        .map(|branch| operands(branch, &BinaryOperator::And).into_iter().map(|part| (part, items_of(part))).collect())
        .collect();
    let whole = items_of(expr);
    let mut found = Vec::new();
    for item in (0..scope.relations.len()).map(ItemSet::one).filter(|item| item.within(whole) && *item != whole) {
        let own = |branch: &Vec<(&Expr, ItemSet)>| {
            let own = branch.iter().filter(|(part, items)| *items == item && fails_never(part));
            joined_by(&BinaryOperator::And, own.map(|(part, _)| (*part).clone()))
        };
        if let Some(own) = parts.iter().map(own).collect::<Option<Vec<Expr>>>() {
            found.extend(joined_by(&BinaryOperator::Or, own));
        }
    }
    found
}

fn joined_by(op: &BinaryOperator, exprs: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    exprs.into_iter().map(|expr| Expr::Nested(Box::new(expr))).reduce(|left, right| {
        let (left, right) = (Box::new(left), Box::new(right));
        Expr::Nested(Box::new(Expr::BinaryOp { left, op: op.clone(), right }))
    })
}

/// Whether an expression compares columns with literals, and does nothing else.
fn fails_never(expr: &Expr) -> bool {
    use BinaryOperator as B;
    let plain = |expr: &Expr| {
        matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::TypedString { .. })
    };
    match expr {
        Expr::Nested(inner) => fails_never(inner),
        Expr::BinaryOp { left, op: B::And | B::Or, right } => fails_never(left) && fails_never(right),
        Expr::BinaryOp { left, op: B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq, right } => {
            plain(left) && plain(right)
        }
        Expr::InList { expr, list, .. } => plain(expr) && list.iter().all(plain),
        Expr::Between { expr, low, high, .. } => plain(expr) && plain(low) && plain(high),
        Expr::IsNull(expr) | Expr::IsNotNull(expr) => plain(expr),
        _ => false,
    }
}

/// The conjuncts of an expression that say that two columns are equal.
fn column_equalities(expr: &Expr) -> Vec<&Expr> {
    let is_column = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let equates = |expr: &&Expr| matches!(expr, Expr::BinaryOp { left, op: BinaryOperator::Eq, right } if is_column(left) && is_column(right));
    operands(expr, &BinaryOperator::And).into_iter().filter(equates).collect()
}

/// `(a, b) = (c, d)` as `a = c` and `b = d`: where only true counts these are the same, and a field that is NULL on both sides is
/// equal to nothing, unlike the rows as values.
fn field_equalities(expr: &Expr) -> Option<Vec<Expr>> {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr else { return None };
    let (Expr::Tuple(left), Expr::Tuple(right)) = (left.as_ref(), right.as_ref()) else { return None };
    let equal = |(l, r): (&Expr, &Expr)| Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(l.clone()))),
        op: BinaryOperator::Eq,
        right: Box::new(Expr::Nested(Box::new(r.clone()))),
    };
    (left.len() == right.len() && !left.is_empty()).then(|| left.iter().zip(right).map(equal).collect())
}

/// Whether an expression makes a row of fields: compared with another it is compared field by field.
fn makes_a_row(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => makes_a_row(inner),
        Expr::Tuple(_) => true,
        Expr::Function(function) => {
            matches!(function.name.0.as_slice(), [name] if name.as_ident().is_some_and(|n| fold(n) == "row"))
        }
        _ => false,
    }
}

/// Resolves the names of a join's ON to its own items, where there are others beside it: the row that ON is evaluated on may hold
/// their columns too. Names within subqueries stay as they are.
struct OwnNames<'a, 's> {
    scope: &'a Scope<'s>,
    /// All items so far.
    all: &'a Scope<'s>,
    items: &'a Items,
    /// Queries around, and accesses to a field, which may begin with the name of a relation.
    depth: usize,
}

impl OwnNames<'_, '_> {
    fn resolve(&self, expr: &mut Expr) -> Result<(), SqlError> {
        let idents = match expr {
            Expr::Identifier(ident) => std::slice::from_ref(ident),
            Expr::CompoundIdentifier(parts) => parts.as_slice(),
            _ => return Ok(()),
        };
        let parts: Vec<String> = idents.iter().map(fold).collect();
        self.scope.note(idents);
        match self.scope.here(&parts)? {
            Some(column) if matches!(column.place, Place::Merged(..)) => {
                if let Some(merged) = self.items.merged_expr(column) {
                    *expr = merged;
                }
            }
            Some(column) => *expr = item_expr(column.relation, column.number),
            None if matches!(self.all.here(&parts), Ok(None)) => {}
            None => {
                // What is found is in a query around, whose slots are the same in every row here.
                if let Some(found) = self.scope.find(&parts)? {
                    *expr = found.expr;
                    return Ok(());
                }
                let error = if let [.., relation, _] = parts.as_slice() {
                    hidden_relation(relation)
                } else {
                    SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", parts.join(".")))
                };
                return Err(error.with(|e| e.position = place_of(idents.first())));
            }
        }
        Ok(())
    }
}

impl VisitorMut for OwnNames<'_, '_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        self.depth += usize::from(matches!(expr, Expr::CompoundFieldAccess { .. }));
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        self.resolve(expr).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        self.depth -= usize::from(matches!(expr, Expr::CompoundFieldAccess { .. }));
        ControlFlow::Continue(())
    }
}

/// An ON whose names mean columns of its own items, whatever else the row has.
///
/// # Errors
/// 42P01, 42703 for a column of another item, 42702 for a name that is not clear.
pub(super) fn own_names(expr: &Expr, scope: &Scope<'_>, all: &Scope<'_>, items: &Items) -> Result<Expr, SqlError> {
    let mut own = expr.clone();
    match VisitMut::visit(&mut own, &mut OwnNames { scope, all, items, depth: 0 }) {
        ControlFlow::Continue(()) => Ok(own),
        ControlFlow::Break(error) => Err(error),
    }
}

/// A built part of FROM: its rows are the prefix, then the columns of the items in this order.
pub(super) struct Built {
    pub(super) node: Arc<Node>,
    pub(super) order: Vec<usize>,
}

/// Takes out of a pool what names only these items.
pub(super) fn within(pool: &mut Vec<Conjunct>, items: ItemSet) -> Vec<Conjunct> {
    let (taken, rest) = std::mem::take(pool).into_iter().partition(|conjunct| conjunct.within(items));
    *pool = rest;
    taken
}

pub(super) fn set(order: &[usize]) -> ItemSet {
    order.iter().copied().collect()
}

impl Binder<'_> {
    /// Builds a tree under conditions, all of which are on its items.
    pub(super) fn build(
        &mut self,
        tree: &Tree,
        mut pool: Vec<Conjunct>,
        items: &Items,
        outer: &Scope<'_>,
    ) -> Result<Built, SqlError> {
        match tree {
            Tree::Leaf(item) => self.build_leaf(*item, &pool, items, outer),
            Tree::Join { kind: JoinKind::Inner, .. } => {
                let mut units = Vec::new();
                tree.flatten(&mut units, &mut pool);
                self.build_inner(units, pool, items, outer)
            }
            Tree::Join { kind, left, right, on } => {
                let mut on = on.clone();
                let (above, below_left, below_right) = if *kind == JoinKind::Left {
                    let below_left = within(&mut pool, left.set());
                    // A condition that names nothing stays at the join: it decides matches, not rows.
                    let (below_right, rest) =
                        on.into_iter().partition(|c| !c.items.is_empty() && c.within(right.set()));
                    on = rest;
                    (pool, below_left, below_right)
                } else {
                    (pool, Vec::new(), Vec::new())
                };
                let left = self.build(left, below_left, items, outer)?;
                let built = self.join_with(left, right, None, *kind, below_right, on, items, outer)?;
                self.filtered(built, above, items, outer)
            }
        }
    }

    pub(super) fn filtered(
        &mut self,
        built: Built,
        conditions: Vec<Conjunct>,
        items: &Items,
        outer: &Scope<'_>,
    ) -> Result<Built, SqlError> {
        if conditions.is_empty() {
            return Ok(built);
        }
        let scope = items.scope(&built.order, outer);
        let conditions = self.conditions(&conditions, &scope, "WHERE")?;
        Ok(Built { node: Arc::new(Node::Filter { input: built.node, conditions }), order: built.order })
    }

    fn conditions(
        &mut self,
        conjuncts: &[Conjunct],
        scope: &Scope<'_>,
        clause: &'static str,
    ) -> Result<Vec<Scalar>, SqlError> {
        let mut out = Vec::with_capacity(conjuncts.len());
        for conjunct in conjuncts {
            let own = conjunct.own.filter(|own| (0..scope.relations.len()).any(|relation| !own.has(relation)));
            let limited = own.map(|own| scope.limited(own));
            let scalar = self.scalar(&conjunct.expr, limited.as_ref().unwrap_or(scope), Clause::plain(clause))?;
            out.push(self.condition(scalar, clause)?);
        }
        Ok(out)
    }

    fn build_leaf(
        &mut self,
        item: usize,
        conditions: &[Conjunct],
        items: &Items,
        outer: &Scope<'_>,
    ) -> Result<Built, SqlError> {
        if items.list[item].lateral {
            // It is lateral to what is not here, and may do without.
            let none = Built { node: Arc::new(Node::One), order: Vec::new() };
            let (leaf, on) = (Tree::Leaf(item), conditions.to_vec());
            return self.join_with(none, &leaf, None, JoinKind::Inner, Vec::new(), on, items, outer);
        }
        let scope = items.scope(&[item], outer);
        let order = vec![item];
        let filter = self.conditions(conditions, &scope, "WHERE")?;
        let found = &items.list[item];
        let node = match &found.source {
            ItemSource::Table(access) => {
                let (filter, rest) = found.beside_hidden(outer.width(), filter);
                let known = self.statistics_of(access.table.id);
                let alias = found.alias.as_str().into();
                let chosen = scan::plan(access, &alias, outer.width(), filter, found.keyed, self.names(), known);
                above(found.marked(Arc::new(Node::Table(chosen.scan)), outer.width()), rest)
            }
            ItemSource::Virtual(table) => {
                let relation = self.wanted_relation(table, conditions, &scope, outer)?;
                let (filter, rest) = found.beside_hidden(outer.width(), filter);
                above(found.marked(Arc::new(Node::Virtual { table, relation, filter }), outer.width()), rest)
            }
            ItemSource::Node(node) => push::under(node.clone(), outer.width(), filter),
        };
        Ok(Built { node, order })
    }

    /// The OID that conditions on a virtual table ask for, if they do.
    fn wanted_relation(
        &mut self,
        table: &VirtualTable,
        conditions: &[Conjunct],
        scope: &Scope<'_>,
        outer: &Scope<'_>,
    ) -> Result<Option<Scalar>, SqlError> {
        let key = match table.name {
            "pg_class" | "pg_constraint" if table.schema == "pg_catalog" && table.name == "pg_class" => "oid",
            "pg_attribute" => "attrelid",
            "pg_attrdef" => "adrelid",
            "pg_index" => "indrelid",
            "pg_constraint" => "conrelid",
            _ => return Ok(None),
        };
        for conjunct in conditions {
            let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = &conjunct.expr else { continue };
            for (column, value) in [(left, right), (right, left)] {
                let named = match column.as_ref() {
                    Expr::Identifier(ident) => fold(ident) == key,
                    Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|ident| fold(ident) == key),
                    _ => false,
                };
                if named && Names::of(value.as_ref(), scope).is_empty() && !holds_query(value) {
                    return self.scalar(value, outer, Clause::plain("WHERE")).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn build_inner(
        &mut self,
        units: Vec<&Tree>,
        mut pool: Vec<Conjunct>,
        items: &Items,
        outer: &Scope<'_>,
    ) -> Result<Built, SqlError> {
        if let Some(built) = self.arranged(&units, &mut pool, items, outer)? {
            return Ok(built);
        }
        let mut left: Vec<&Tree> = units;
        let first = if items.fixed { 0 } else { starting_unit(&left, &pool) };
        let unit = left.remove(first);
        let below = if unit.is_lateral(items) { Vec::new() } else { within(&mut pool, unit.set()) };
        let mut built = self.build(unit, below, items, outer)?;
        while !left.is_empty() {
            let joined = set(&built.order);
            let connected = |tree: &&Tree| {
                pool.iter().any(|c| {
                    is_equality(&c.expr)
                        && c.items.meets(joined)
                        && c.items.meets(tree.set())
                        && c.within(joined.and(tree.set()))
                })
            };
            let next = if items.fixed { 0 } else { left.iter().position(connected).unwrap_or(0) };
            let unit = left.remove(next);
            let below = if unit.is_lateral(items) { Vec::new() } else { within(&mut pool, unit.set()) };
            let on = within(&mut pool, joined.and(unit.set()));
            built = self.join_with(built, unit, None, JoinKind::Inner, below, on, items, outer)?;
        }
        self.filtered(built, pool, items, outer)
    }

    /// Joins what is built with one more tree. `below` are conditions for the right side alone; `ready`: that side under them, if it is built.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn join_with(
        &mut self,
        left: Built,
        right: &Tree,
        ready: Option<Built>,
        kind: JoinKind,
        below: Vec<Conjunct>,
        on: Vec<Conjunct>,
        items: &Items,
        outer: &Scope<'_>,
    ) -> Result<Built, SqlError> {
        let left_scope = items.scope(&left.order, outer);
        let left_width = left_scope.width();
        if let Tree::Leaf(item) = right
            && items.list[*item].lateral
            && let ItemSource::Node(node) = &items.list[*item].source
        {
            let present = left.order.clone();
            let left = as_written(left, *item, node, items, outer)?;
            let left_width = items.scope(&left.order, outer).width();
            let order = [left.order, vec![*item]].concat();
            let scope = items.scope(&order, outer);
            let on = self.conditions(&[below, on].concat(), &scope, "JOIN/ON")?;
            let join = Join {
                left: left.node,
                right: node.clone(),
                kind,
                left_width,
                right_width: items.list[*item].columns.len(),
                lateral: true,
                keys: Vec::new(),
                on,
                lookup: None,
                foreseen: None,
                merge: None,
            };
            let built = Built { node: Arc::new(Node::Join(join)), order };
            if present.len() + 1 == built.order.len() {
                return Ok(built);
            }
            // Items that are not joined yet have stood in for themselves as NULLs.
            let order = [present, vec![*item]].concat();
            return Ok(reordered(built, order, items, outer));
        }
        // Conditions are bound for the lookup, and again for the join; keys may turn out to be none.
        let doubling = self.may_double(below.iter().chain(&on).map(|conjunct| &conjunct.expr));
        self.bounds.doublings += usize::from(doubling == Doubling::Dear);
        let lookup = match right {
            Tree::Leaf(item) if kind != JoinKind::Full && doubling != Doubling::No => {
                self.lookup(&left, *item, &below, &on, items, outer)?
            }
            _ => None,
        };
        let right = match ready {
            Some(built) => built,
            None => self.build(right, below, items, outer)?,
        };
        let (lookup, foreseen) = lookup.map_or((None, None), |(node, foreseen)| (Some(node), foreseen));
        let right_scope = items.scope(&right.order, outer);
        let right_width = right_scope.width() - outer.width();
        let order = [left.order.clone(), right.order.clone()].concat();
        let scope = items.scope(&order, outer);
        let mut keys = Vec::new();
        let mut rest = Vec::new();
        for conjunct in on {
            let sides = ((set(&left.order), &left_scope), (set(&right.order), &right_scope));
            let key = match doubling == Doubling::No && holds_query(&conjunct.expr) {
                true => None,
                false => self.join_key(&conjunct, sides.0, sides.1)?,
            };
            match key {
                Some(key) => keys.push(key),
                None => rest.push(conjunct),
            }
        }
        let on = self.conditions(&rest, &scope, "JOIN/ON")?;
        self.bounds.doublings -= usize::from(doubling == Doubling::Dear);
        let join = Join {
            left: left.node,
            right: right.node,
            kind,
            left_width,
            right_width,
            lateral: false,
            keys,
            on,
            lookup,
            foreseen,
            merge: None,
        };
        Ok(Built { node: Arc::new(Node::Join(join)), order })
    }

    /// An equality of one side with the other, if their types can be hashed.
    fn join_key(
        &mut self,
        conjunct: &Conjunct,
        left: (ItemSet, &Scope<'_>),
        right: (ItemSet, &Scope<'_>),
    ) -> Result<Option<JoinKey>, SqlError> {
        let (a, b, null_equal) = match &conjunct.expr {
            // Rows are hashed as values, in which NULLs are equal.
            Expr::BinaryOp { left: a, op: BinaryOperator::Eq, right: b } if makes_a_row(a) || makes_a_row(b) => {
                return Ok(None);
            }
            Expr::BinaryOp { left: a, op: BinaryOperator::Eq, right: b } => (a.as_ref(), b.as_ref(), false),
            Expr::IsNotDistinctFrom(a, b) => (a.as_ref(), b.as_ref(), true),
            _ => return Ok(None),
        };
        let named = |expr: &Expr| Names::of(expr, left.1).and(Names::of(expr, right.1));
        let (a_items, b_items) = (named(a), named(b));
        let of = |items: ItemSet, side: ItemSet| !items.is_empty() && items.within(side);
        let (l, r) = if of(a_items, left.0) && of(b_items, right.0) {
            (a, b)
        } else if of(b_items, left.0) && of(a_items, right.0) {
            (b, a)
        } else {
            return Ok(None);
        };
        let l = self.scalar(l, left.1, Clause::plain("JOIN/ON"))?;
        let r = self.scalar(r, right.1, Clause::plain("JOIN/ON"))?;
        let (left, right) = (comparable(l.clone(), &r.ty), comparable(r, &l.ty));
        Ok(keys::kind(&left.ty, &right.ty).map(|_| JoinKey { left, right, null_equal }))
    }

    /// The right table found by key from a left row, if it has an index for that, and what statistics say of it.
    fn lookup(
        &mut self,
        left: &Built,
        item: usize,
        below: &[Conjunct],
        on: &[Conjunct],
        items: &Items,
        outer: &Scope<'_>,
    ) -> Result<Option<(Arc<Node>, Option<Foreseen>)>, SqlError> {
        let ItemSource::Table(access) = &items.list[item].source else { return Ok(None) };
        let order = [left.order.clone(), vec![item]].concat();
        let scope = items.scope(&order, outer);
        let base = items.scope(&left.order, outer).width();
        let on: Vec<Conjunct> = on.iter().filter(|c| c.items.has(item)).cloned().collect();
        if !on.iter().any(|c| is_equality(&c.expr)) {
            return Ok(None);
        }
        let conditions = self.conditions(&[below.to_vec(), on].concat(), &scope, "JOIN/ON")?;
        let found = &items.list[item];
        let (conditions, rest) = found.beside_hidden(base, conditions);
        let known = self.statistics_of(access.table.id);
        let alias = found.alias.as_str().into();
        let chosen = scan::plan(access, &alias, base, conditions, found.keyed, self.names(), known);
        if !chosen.by_key || !chosen.scan.planned.path.has_prefix() {
            return Ok(None);
        }
        let foreseen = chosen.foreseen;
        Ok(Some((above(found.marked(Arc::new(Node::Table(chosen.scan)), base), rest), foreseen)))
    }
}

/// Brings the items before a lateral one into the order in which it was bound to them: a RIGHT JOIN has them the other way round. Items that
/// are not joined yet, as within parentheses on the right of a join, are NULLs if it reads none of their columns.
///
/// # Errors
/// 0A000 if it does.
fn as_written(built: Built, lateral: usize, node: &Node, items: &Items, outer: &Scope<'_>) -> Result<Built, SqlError> {
    let written: Vec<usize> = (0..lateral).collect();
    if built.order == written {
        return Ok(built);
    }
    if built.order.iter().any(|item| *item > lateral) {
        return Err(lateral_in_parentheses());
    }
    let mut slot = outer.width();
    for item in &written {
        let slots = slot..slot + items.list[*item].columns.len();
        slot = slots.end;
        if !built.order.contains(item) && walk::reads_any(node, slots) {
            return Err(lateral_in_parentheses());
        }
    }
    Ok(reordered(built, written, items, outer))
}

/// The items of a row in another order; those that are not in it are NULLs.
fn reordered(built: Built, order: Vec<usize>, items: &Items, outer: &Scope<'_>) -> Built {
    let width = items.scope(&built.order, outer).width();
    let mut columns = Vec::new();
    for item in &order {
        let before = built.order.iter().take_while(|before| *before != item);
        let base = outer.width() + before.map(|before| items.list[*before].columns.len()).sum::<usize>();
        let is_there = built.order.contains(item);
        columns.extend(items.list[*item].columns.iter().enumerate().map(|(number, column)| match is_there {
            true => Binder::slot(base + number, &column.ty, width),
            false => {
                let (expr, ty) = (crate::expr::Expr::Literal(Value::Null, column.ty.clone()), column.ty.clone());
                Scalar { steps: Vec::new(), expr, ty, width }
            }
        }));
    }
    let node = Node::Project { input: built.node, prefix: outer.width(), columns };
    Built { node: Arc::new(node), order }
}

/// A lateral item whose row of the items before it is not there where it is joined.
fn lateral_in_parentheses() -> SqlError {
    SqlError::unsupported("LATERAL to what is not joined yet")
        .hint("Join the items that it names first, by CROSS JOIN in the place of a comma, and without parentheses.")
}

/// A date that is compared with a moment, as the moment that it is compared as.
fn comparable(mut key: Scalar, other: &SqlType) -> Scalar {
    let Some((name, ty)) = beside_moment(&key.ty, other) else { return key };
    let function = by_name(name)[0];
    key.expr = Bound::Call { function, args: vec![key.expr], types: vec![SqlType::Date], ty: ty.clone() };
    key.ty = ty;
    key
}

pub(super) fn is_equality(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::Eq, .. } | Expr::IsNotDistinctFrom(..))
}

/// The unit to begin with: the first that has an equality of its own, else the first with a condition of its own, else the first.
fn starting_unit(units: &[&Tree], pool: &[Conjunct]) -> usize {
    let own = |unit: &&Tree, conjunct: &Conjunct| !conjunct.items.is_empty() && conjunct.within(unit.set());
    let leaf = |unit: &&Tree| matches!(unit, Tree::Leaf(_));
    let equal = units.iter().position(|unit| leaf(unit) && pool.iter().any(|c| own(unit, c) && is_equality(&c.expr)));
    equal.or_else(|| units.iter().position(|unit| pool.iter().any(|c| own(unit, c)))).unwrap_or(0)
}
