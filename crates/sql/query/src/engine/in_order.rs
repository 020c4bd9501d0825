//! Joins whose inputs come in the order of their keys, and sorts that these spare.
//!
//! **Problem.** `FROM a JOIN b ON a.id = b.id ORDER BY a.id LIMIT 10` read both tables, made a hash table of one and sorted what came of it, for ten rows. **Idea.** Indexes have the order
//! of their columns. Where both sides of a join can be read in the order of its keys, a merge ([`super::run`]) joins them without a table in memory, and what comes of it is in that order,
//! too: the sort above is spared, and under a LIMIT nothing is read behind the last row that is wanted.
//!
//! **When.** By cost, in rows that are looked at, as everywhere ([`super::order`]): reading both sides in order, as far as the LIMIT wants, against a hash join and the sort of what it gives,
//! and against lookups by key of each left row. Only where statistics know all tables: without them nothing is said of how far there is to read. A LIMIT saves only what is known to be behind
//! it: where rows begin that meet a condition, or among the keys of a table that is much smaller, nobody knows, so there a side counts as a whole. Nor is a query merged that is asked anew for
//! each row around it.
//!
//! **Invariants.**
//! 1. The order of the keys' types is one for both sides: integers of any width, else the same type. Floats, `char(n)`, json and rows are not merged.
//! 2. A node that is planned in an order is not planned anew under further conditions: who pushes these down stops at a merge.
//!
//! **Caveats.** A grouping and DISTINCT above a merge are made by hash all the same. One input is the other side's plan as it is: nothing is sorted to be merged.

use super::bind::Binder;
use super::estimate;
use super::node::{Join, JoinKey, JoinKind, Node, SortKey};
use super::run::ROWS_PER_LOOKUP;
use super::scalar::Scalar;
use super::scan::TableScan;
use crate::plan::access::Order;
use crate::statistics::TableStatistics;
use crate::types::{EvalSettings, SqlType};
use std::sync::Arc;

/// A row that an index leads to costs so many that are read in the order of their own keys.
const LED_ROWS: f64 = 4.0;
/// A row that is sorted costs so many that are read.
const SORTED_ROWS: f64 = 2.0;

/// A table has far more rows than another from so many times on.
const MANY_TIMES: f64 = 2.0;

/// A key of a join by merge: its place among the join's keys, and whether its highest value comes first.
pub(super) type MergeKey = (usize, bool);

/// What a session allows, by PostgreSQL's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    pub(super) hash: bool,
    pub(super) merge: bool,
}

impl Allowed {
    pub(super) fn by(settings: &EvalSettings) -> Allowed {
        let is_on = |name: &str| settings.values.get(name).is_none_or(|value| value != "off");
        Allowed { hash: is_on("enable_hashjoin"), merge: is_on("enable_mergejoin") }
    }
}

/// A node whose rows are in an order, and the rows that are read for those that are wanted.
struct Ordered {
    node: Arc<Node>,
    read: f64,
    merges: bool,
}

impl Binder<'_> {
    /// Rows in an order: sorted, or joined so that they come in it. `prefix`: slots of the query around.
    pub(super) fn sorted(
        &self,
        input: Arc<Node>,
        prefix: usize,
        keys: Vec<SortKey>,
        limit: Option<(Option<Scalar>, Scalar)>,
    ) -> Arc<Node> {
        // What is asked of a query's rows elsewhere reaches the tables through its sort, not through its LIMIT.
        if (limit.is_some() || self.is_outermost())
            && let Some(met) = self.met(&input, prefix, &keys, limit.as_ref())
        {
            return met;
        }
        Arc::new(Node::Sort { input, keys, limit })
    }

    fn met(
        &self,
        input: &Arc<Node>,
        prefix: usize,
        keys: &[SortKey],
        limit: Option<&(Option<Scalar>, Scalar)>,
    ) -> Option<Arc<Node>> {
        let allowed = Allowed::by(&self.context.settings);
        if !allowed.merge || !is_joined(input) {
            return None;
        }
        let order = |key: &SortKey| {
            let SortKey { by, descending, nulls_first } = key;
            Some(Order { slot: by.column()?, descending: *descending, nulls_first: *nulls_first })
        };
        let order = keys.iter().map(order).collect::<Option<Vec<_>>>()?;
        let known = |table: u32| self.statistics_of(table);
        let whole = estimate::rows(input, &known);
        let wanted = match limit {
            None => whole,
            Some((offset, limit)) => {
                constant(limit).unwrap_or(whole) + offset.as_ref().and_then(constant).unwrap_or(0.0)
            }
        };
        if prefix > 0 && allowed.hash {
            return None;
        }
        let share = if is_asked(input) { 1.0 } else { (wanted / whole).min(1.0) };
        let planner = Planner { known: &known, prefix, share, limited: limit.is_some(), free: !allowed.hash };
        let ordered = planner.ordered(input, &order).filter(|ordered| ordered.merges)?;
        if allowed.hash {
            let sorted = whole * if limit.is_some() { 1.0 } else { SORTED_ROWS };
            let hashed = estimate::read(input, &known)? + whole + sorted;
            if ordered.read + share * whole >= hashed {
                return None;
            }
        }
        Some(ordered.node)
    }
}

fn constant(scalar: &Scalar) -> Option<f64> {
    scalar.expr.constant().and_then(|value| value.as_i64()).map(|rows| rows as f64)
}

/// Whether a join is below, and nothing between that has an order of its own.
fn is_joined(node: &Node) -> bool {
    match node {
        Node::Filter { input, .. } | Node::Project { input, .. } | Node::Cut { input, .. } => is_joined(input),
        Node::Join(join) => may_merge(join),
        _ => false,
    }
}

/// Whether conditions leave out some rows of the tables below joins.
fn is_asked(node: &Node) -> bool {
    match node {
        Node::Table(scan) => !scan.asked().is_empty(),
        Node::Project { input, .. } | Node::Cut { input, .. } => is_asked(input),
        Node::Join(join) => !join.on.is_empty() || is_asked(&join.left) || is_asked(&join.right),
        _ => true,
    }
}

/// Whether both sides could be merged, in whatever order they are.
fn may_merge(join: &Join) -> bool {
    join.kind != JoinKind::Full
        && !join.lateral
        && !join.keys.is_empty()
        && join.keys.iter().all(|key| {
            !key.null_equal
                && key.left.column().is_some()
                && key.right.column().is_some()
                && have_one_order(&key.left.ty, &key.right.ty)
        })
}

/// See the first invariant.
fn have_one_order(left: &SqlType, right: &SqlType) -> bool {
    use SqlType as T;
    let is_integer = |ty: &SqlType| matches!(ty, T::Int2 | T::Int4 | T::Int8);
    let is_string = |ty: &SqlType| matches!(ty, T::Text | T::Varchar(_));
    let alike = |ty: &SqlType| {
        matches!(ty, T::Date | T::Timestamp(_) | T::Timestamptz(_) | T::Uuid | T::Bool | T::Bytea | T::Numeric(_))
    };
    is_integer(left) && is_integer(right)
        || is_string(left) && is_string(right)
        || alike(left) && std::mem::discriminant(left) == std::mem::discriminant(right)
}

struct Planner<'a> {
    known: &'a dyn Fn(u32) -> Option<Arc<TableStatistics>>,
    prefix: usize,
    /// Of all rows those that are wanted.
    share: f64,
    limited: bool,
    /// Whatever it costs.
    free: bool,
}

impl Planner<'_> {
    /// The node planned so that its rows come in an order of their columns.
    fn ordered(&self, node: &Arc<Node>, order: &[Order]) -> Option<Ordered> {
        let over = |ordered: Ordered, node: Node| Ordered { node: Arc::new(node), ..ordered };
        match node.as_ref() {
            Node::Table(scan) => self.scan(scan, order),
            Node::Filter { input, conditions } => {
                let mut below = self.ordered(input, order)?;
                let input = std::mem::replace(&mut below.node, node.clone());
                Some(over(below, Node::Filter { input, conditions: conditions.clone() }))
            }
            Node::Cut { input, width } => {
                let mut below = self.ordered(input, order)?;
                let input = std::mem::replace(&mut below.node, node.clone());
                Some(over(below, Node::Cut { input, width: *width }))
            }
            Node::Project { input, prefix, columns } => {
                let own =
                    |key: &Order| Some(Order { slot: super::reach::projected(key.slot, *prefix, columns)?, ..*key });
                let own = order.iter().map(own).collect::<Option<Vec<_>>>()?;
                let mut below = self.ordered(input, &own)?;
                let input = std::mem::replace(&mut below.node, node.clone());
                Some(over(below, Node::Project { input, prefix: *prefix, columns: columns.clone() }))
            }
            Node::Join(join) => self.join(join, order),
            _ => None,
        }
    }

    fn scan(&self, scan: &TableScan, order: &[Order]) -> Option<Ordered> {
        let known = (self.known)(scan.access.table.id);
        if known.is_none() && !self.free {
            return None;
        }
        let own = |key: &Order| Some(Order { slot: scan.slot(key.slot)?, ..*key });
        let own = order.iter().map(own).collect::<Option<Vec<_>>>()?;
        let (scan, found) = scan.in_order(&own, self.limited)?;
        let led = if scan.planned.path.index == 0 { 1.0 } else { LED_ROWS };
        Some(Ordered { node: Arc::new(Node::Table(scan)), read: found * led * self.share, merges: false })
    }

    fn join(&self, join: &Join, order: &[Order]) -> Option<Ordered> {
        if !may_merge(join) {
            return None;
        }
        let of_key = |key: &JoinKey, slot: usize| {
            let of_right = slot.checked_sub(join.left_width).map(|own| own + self.prefix);
            match of_right {
                None => key.left.column() == Some(slot),
                // Where there is no right row its columns are NULL, and the left one's are not.
                own => join.kind == JoinKind::Inner && key.right.column() == own,
            }
        };
        let mut by: Vec<(usize, Order)> = Vec::new();
        for key in order {
            let place = join.keys.iter().position(|known| of_key(known, key.slot))?;
            if !by.iter().any(|(known, _)| *known == place) {
                by.push((place, *key));
            }
        }
        let last = *order.last()?;
        for place in 0..join.keys.len() {
            if !by.iter().any(|(known, _)| *known == place) {
                by.push((place, last));
            }
        }
        let side = |of: fn(&JoinKey) -> &Scalar| {
            let key = |(place, key): &(usize, Order)| Some(Order { slot: of(&join.keys[*place]).column()?, ..*key });
            by.iter().map(key).collect::<Option<Vec<_>>>()
        };
        let left = self.ordered(&join.left, &side(|key| &key.left)?)?;
        let right = self.ordered(&join.right, &side(|key| &key.right)?)?;
        let of = |node| estimate::rows(node, self.known);
        let (lefts, rights) = (of(&join.left), of(&join.right));
        // The keys of a few rows may lie behind all others.
        let whole = |read: f64, own: f64, others: f64| if others * MANY_TIMES < own { read / self.share } else { read };
        let read_right = whole(right.read, rights, lefts);
        let read_left = if join.kind == JoinKind::Inner { whole(left.read, lefts, rights) } else { left.read };
        if join.lookup.is_some() && !self.free && lefts * (ROWS_PER_LOOKUP as f64) < read_right {
            return None;
        }
        let merge: Arc<[MergeKey]> = by.iter().map(|(place, key)| (*place, key.descending)).collect();
        let read = read_left + read_right;
        let joined = Join {
            left: left.node,
            right: right.node,
            keys: join.keys.clone(),
            on: join.on.clone(),
            lookup: None,
            foreseen: None,
            merge: Some(merge),
            ..*join
        };
        Some(Ordered { node: Arc::new(Node::Join(joined)), read, merges: true })
    }
}

/// The order in which both sides of a join come as they are, if that is one of its keys.
pub(super) fn given(join: &Join) -> Option<Arc<[MergeKey]>> {
    if !may_merge(join) {
        return None;
    }
    let (left, right) = (order_of(&join.left), order_of(&join.right));
    let mut by: Vec<MergeKey> = Vec::new();
    for ((l, l_descends), (r, r_descends)) in left.into_iter().zip(right) {
        let meets = |key: &JoinKey| key.left.column() == Some(l) && key.right.column() == Some(r);
        let place = join.keys.iter().position(meets).filter(|_| l_descends == r_descends)?;
        by.push((place, l_descends));
        if by.len() == join.keys.len() {
            return Some(by.into());
        }
    }
    None
}

/// The columns that a node's rows are in the order of.
fn order_of(node: &Node) -> Vec<(usize, bool)> {
    match node {
        Node::Table(scan) => scan.order(),
        Node::Filter { input, .. } | Node::Cut { input, .. } => order_of(input),
        _ => Vec::new(),
    }
}
