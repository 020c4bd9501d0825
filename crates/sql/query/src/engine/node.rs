//! The tree that a query is planned to. Each node gives rows that begin with the prefix of its query (see [`super::scope`]).

use super::aggregate::AggregateCall;
use super::in_order::MergeKey;
use super::keys::KeyKind;
use super::literals::LiteralRows;
use super::scalar::Scalar;
use super::scan::TableScan;
use super::set_function::SetCall;
use super::window::WindowCall;
use crate::pg_catalog::VirtualTable;
use crate::work::Share;
use std::sync::Arc;

/// How two inputs are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinKind {
    Inner,
    Left,
    Full,
}

/// A join.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) left: Arc<Node>,
    pub(super) right: Arc<Node>,
    pub(super) kind: JoinKind,
    /// Slots of a left row, and of the right row's own columns.
    pub(super) left_width: usize,
    pub(super) right_width: usize,
    /// The right side's prefix is the left row (else it is the query's prefix).
    pub(super) lateral: bool,
    /// Equalities: over a left row, and over a right row of its own layout.
    pub(super) keys: Vec<JoinKey>,
    /// Over the joined row.
    pub(super) on: Vec<Scalar>,
    /// The right side once more, lateral, found by key: preferred while there are few left rows.
    pub(super) lookup: Option<Arc<Node>>,
    /// What statistics say of the lookups.
    pub(super) foreseen: Option<Foreseen>,
    /// Both sides are planned to come in this order of the keys, and are merged.
    pub(super) merge: Option<Arc<[MergeKey]>>,
}

/// What lookups are expected to find, by statistics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Foreseen {
    /// Rows that one lookup leads to.
    pub(super) found: f64,
    /// Rows of the whole table.
    pub(super) whole: f64,
}

/// An equality of a hash join.
#[derive(Clone, Debug)]
pub(super) struct JoinKey {
    pub(super) left: Scalar,
    pub(super) right: Scalar,
    /// NULL equals NULL (`IS NOT DISTINCT FROM`).
    pub(super) null_equal: bool,
}

/// What to sort by.
#[derive(Clone, Debug)]
pub(super) struct SortKey {
    pub(super) by: Scalar,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

/// UNION and its kin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetKind {
    Union,
    Intersect,
    Except,
}

/// A place where a common table expression is named.
#[derive(Debug)]
pub(super) struct CteScan {
    pub(super) id: usize,
    pub(super) name: String,
    /// The names of its columns.
    pub(super) columns: Vec<String>,
    pub(super) plan: Arc<Node>,
    /// Slots of the row around the query that defines it.
    pub(super) prefix: usize,
    /// It is computed once: it reads nothing of the row around that query, nor of the last round of a recursive one.
    pub(super) shared: bool,
    /// It would give something else if it were computed again.
    pub(super) volatile: bool,
}

/// A node.
#[derive(Debug)]
pub(super) enum Node {
    /// One row: the prefix.
    One,
    /// VALUES, and what those of its rows take that were kept as text.
    Values { rows: Vec<Vec<Scalar>>, _held: Share },
    /// VALUES of literals alone.
    Literals(LiteralRows),
    /// A table.
    Table(TableScan),
    /// A virtual table; `relation` narrows it to one OID.
    Virtual { table: &'static VirtualTable, relation: Option<Scalar>, filter: Vec<Scalar> },
    /// A table of `timeball_internal`.
    Internal { name: String },
    /// The value of a sequence, as a table.
    Sequence { id: u32 },
    /// A function in FROM.
    Function { calls: Vec<SetCall>, ordinality: bool },
    /// WHERE, HAVING.
    Filter { input: Arc<Node>, conditions: Vec<Scalar> },
    /// The prefix and new columns.
    Project { input: Arc<Node>, prefix: usize, columns: Vec<Scalar> },
    /// The first `width` slots.
    Cut { input: Arc<Node>, width: usize },
    /// Functions that return sets, in the select list: their columns are added to the row.
    ProjectSet { input: Arc<Node>, calls: Vec<SetCall> },
    /// A join.
    Join(Join),
    /// GROUP BY: rows of the prefix, the keys, the aggregates. `sets`: for each grouping set, which keys are in it.
    Aggregate { input: Arc<Node>, keys: Vec<Scalar>, calls: Vec<AggregateCall>, sets: Vec<Vec<bool>> },
    /// Window functions: their values are added to the row.
    Window { input: Arc<Node>, calls: Vec<WindowCall> },
    /// ORDER BY. `limit`: rows that are wanted at most.
    Sort { input: Arc<Node>, keys: Vec<SortKey>, limit: Option<(Option<Scalar>, Scalar)> },
    /// LIMIT and OFFSET. `ties`: as long as these keys equal those of the last row.
    Limit { input: Arc<Node>, offset: Option<Scalar>, limit: Option<Scalar>, ties: Vec<Scalar> },
    /// DISTINCT: on these expressions (the first of equals stays), or on all columns after the prefix.
    Distinct { input: Arc<Node>, prefix: usize, kinds: Vec<KeyKind>, on: Option<Vec<Scalar>> },
    /// UNION, INTERSECT, EXCEPT.
    Set { kind: SetKind, all: bool, prefix: usize, kinds: Vec<KeyKind>, left: Arc<Node>, right: Arc<Node> },
    /// A common table expression.
    Cte(CteScan),
    /// WITH RECURSIVE.
    Recursive { id: usize, prefix: usize, kinds: Vec<KeyKind>, base: Arc<Node>, step: Arc<Node>, all: bool },
    /// The rows of a part of the statement that has run.
    Given { part: usize },
    /// The rows of the last round of a recursive query.
    Working { id: usize },
}
