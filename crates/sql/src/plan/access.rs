//! Chooses how one table is read: which index, which of the conditions become keys, which stay filters.
//!
//! There are no statistics; the choice is by rule. An equality on a leading column is worth a hundredth of the table, bounds on
//! the next column a twentieth (two) or a fifth (one), and a row read through a secondary index costs three rows read in order.
//! An index that gives the order wanted saves the sort, and, under a LIMIT, most of the reading.

use super::tree;
use crate::exec::path::{Operand, Path, Range, Term};
use crate::exec::table::{IndexAccess, TableAccess};
use crate::expr::{CompareOp, Expr};
use crate::types::SqlType;

/// Rows that a table is taken to have.
const ASSUMED_ROWS: f64 = 100_000.0;
/// Rows that a LIMIT is taken to want.
const LIMITED_ROWS: f64 = 100.0;

/// What a condition says of one column.
enum Say<'a> {
    Equal(&'a Expr),
    In(&'a [Expr]),
    AnyOf(&'a Expr),
    Null,
    Low(&'a Expr, bool),
    High(&'a Expr, bool),
}

/// One key of an order wanted of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The column.
    pub slot: usize,
    /// Highest first.
    pub descending: bool,
    /// Where NULLs go.
    pub nulls_first: bool,
}

/// What is asked of an access path.
pub struct Wish<'a> {
    /// The table.
    pub access: &'a TableAccess,
    /// First place of its columns.
    pub base: usize,
    /// Conditions that may become keys.
    pub conditions: &'a [Expr],
    /// Places filled by tables read before.
    pub known: &'a dyn Fn(usize) -> bool,
    /// ORDER BY, if it is on this table's columns alone.
    pub order: &'a [Order],
    /// There is a LIMIT, and nothing between it and the rows but the order.
    pub limited: bool,
}

/// A choice.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The path.
    pub path: Path,
    /// Conditions (by their place in the wish) that the keys fulfil exactly.
    pub used: Vec<usize>,
    /// Whether rows come in the order wanted.
    pub ordered: bool,
    /// Whether at most one row can come of one set of keys.
    pub point: bool,
    /// Guess of the rows that come.
    pub rows: f64,
    /// Guess of the work, in rows read in order.
    pub cost: f64,
}

/// Chooses the best path.
pub fn choose(wish: &Wish<'_>) -> Choice {
    (0..=wish.access.indexes.len())
        .map(|index| consider(wish, index))
        .reduce(|best, next| if next.cost < best.cost { next } else { best })
        .unwrap_or_else(|| consider(wish, 0))
}

fn consider(wish: &Wish<'_>, ordinal: usize) -> Choice {
    let index = wish.access.index(ordinal);
    let mut path = Path::full(ordinal);
    let mut used = Vec::new();
    let mut rows = ASSUMED_ROWS;
    let mut listed = false;
    for column in &index.columns {
        let Some(slot) = column.slot else { break };
        let Some((at, term)) = equality(wish, slot, listed) else {
            rows /= bounds(wish, slot, &mut path, &mut used);
            break;
        };
        rows /= 100.0;
        if matches!(term, Term::Any(_) | Term::AnyOf(_)) {
            listed = true;
            rows *= 4.0;
        }
        if is_exact(&column.ty) {
            used.push(at);
        }
        path.prefix.push(term);
    }
    let point = index.unique
        && path.prefix.len() == index.columns.len()
        && !path.prefix.iter().any(|term| matches!(term, Term::Null));
    if point {
        rows = if listed { 4.0 } else { 1.0 };
    }
    let (ordered, reverse) = order(wish, index, &path, point && !listed);
    path.reverse = reverse;
    if ordered && wish.limited {
        rows = rows.min(LIMITED_ROWS);
    }
    let mut cost = rows.max(1.0) * if ordinal == 0 { 1.0 } else { 3.0 };
    if !ordered {
        cost += rows * 0.5;
    }
    Choice { path, used, ordered, point, rows, cost }
}

/// A condition that says what a column equals.
fn equality(wish: &Wish<'_>, slot: usize, listed: bool) -> Option<(usize, Term)> {
    let ty = &wish.access.columns[slot].ty;
    let mut list = None;
    for (at, condition) in wish.conditions.iter().enumerate() {
        let operand = |expr: &Expr| Operand { expr: expr.clone(), ty: ty.clone() };
        match say(wish, condition, slot) {
            Some(Say::Equal(expr)) => return Some((at, Term::One(operand(expr)))),
            Some(Say::Null) => return Some((at, Term::Null)),
            Some(Say::In(exprs)) if !listed => {
                list.get_or_insert_with(|| (at, Term::Any(exprs.iter().map(operand).collect())));
            }
            Some(Say::AnyOf(array)) if !listed => {
                list.get_or_insert_with(|| (at, Term::AnyOf(operand(array))));
            }
            _ => {}
        }
    }
    list
}

/// Bounds of the column behind the equalities; answers with how much smaller they make the answer.
fn bounds(wish: &Wish<'_>, slot: usize, path: &mut Path, used: &mut Vec<usize>) -> f64 {
    let ty = &wish.access.columns[slot].ty;
    if matches!(ty, SqlType::Jsonb | SqlType::Json) {
        return 1.0;
    }
    let mut range = Range::default();
    for (at, condition) in wish.conditions.iter().enumerate() {
        let operand = |expr: &Expr| Operand { expr: expr.clone(), ty: ty.clone() };
        match say(wish, condition, slot) {
            Some(Say::Low(expr, inclusive)) if range.low.is_none() => range.low = Some((operand(expr), inclusive)),
            Some(Say::High(expr, inclusive)) if range.high.is_none() => range.high = Some((operand(expr), inclusive)),
            _ => continue,
        }
        if is_exact(ty) {
            used.push(at);
        }
    }
    let factor = match (&range.low, &range.high) {
        (None, None) => return 1.0,
        (Some(_), Some(_)) => 20.0,
        _ => 5.0,
    };
    path.range = Some(range);
    factor
}

/// Types whose keys say exactly what the comparison says; a filter stays behind for the others.
fn is_exact(ty: &SqlType) -> bool {
    use SqlType::*;
    matches!(
        ty,
        Bool | Int2 | Int4 | Int8 | Text | Varchar(_) | Date | Time | Timestamp | Timestamptz | Uuid | Oid | Bytea
    )
}

/// What a condition says of the column in `slot`, if it says it with what is known before the table is read.
fn say<'a>(wish: &Wish<'_>, condition: &'a Expr, slot: usize) -> Option<Say<'a>> {
    let place = wish.base + slot;
    let ty = &wish.access.columns[slot].ty;
    let usable = |expr: &Expr, compared: &SqlType| {
        comparable(ty, compared, &expr.ty()) && tree::reads_only(expr, wish.known) && !tree::is_volatile(expr)
    };
    match condition {
        Expr::Compare { op, ty: compared, left, right } => {
            let (op, other) = if is_column(left, place) {
                (*op, right)
            } else if is_column(right, place) {
                (op.flipped(), left)
            } else {
                return None;
            };
            let other = strip_widening(other);
            if !usable(other, compared) {
                return None;
            }
            Some(match op {
                CompareOp::Eq => Say::Equal(other),
                CompareOp::Gt => Say::Low(other, false),
                CompareOp::GtEq => Say::Low(other, true),
                CompareOp::Lt => Say::High(other, false),
                CompareOp::LtEq => Say::High(other, true),
                CompareOp::NotEq => return None,
            })
        }
        Expr::InList { ty: compared, expr, list, negated: false } if is_column(expr, place) => {
            list.iter().all(|item| usable(item, compared)).then_some(Say::In(list))
        }
        Expr::AnyAll { op: CompareOp::Eq, ty: compared, left, array, all: false } if is_column(left, place) => {
            let SqlType::Array(element) = array.ty() else { return None };
            (comparable(ty, compared, &element) && tree::reads_only(array, wish.known) && !tree::is_volatile(array))
                .then_some(Say::AnyOf(array))
        }
        Expr::IsNull { expr, negated: false } if is_column(expr, place) => Some(Say::Null),
        // A boolean column by itself.
        Expr::Column { index, ty: SqlType::Bool } if *index == place => {
            const TRUE: &Expr = &Expr::Literal(crate::types::Value::Bool(true), SqlType::Bool);
            Some(Say::Equal(TRUE))
        }
        _ => None,
    }
}

/// Whether keys of a column of type `column` can stand for a comparison done in type `compared` with a value of type `other`.
fn comparable(column: &SqlType, compared: &SqlType, other: &SqlType) -> bool {
    use SqlType::*;
    let integer = |ty: &SqlType| matches!(ty, Int2 | Int4 | Int8);
    match column {
        Int2 | Int4 | Int8 => integer(compared) && integer(other),
        Text | Varchar(_) => {
            matches!(compared, Text | Varchar(_)) && matches!(other, Text | Varchar(_) | Unknown | Name)
        }
        Char(_) => matches!(compared, Char(_)) && matches!(other, Char(_) | Unknown),
        Numeric(_) => matches!(compared, Numeric(_)) && (matches!(other, Numeric(_)) || integer(other)),
        Jsonb | Json | Interval | Float4 | Float8 => false,
        _ => column.base() == compared.base() && column.base() == other.base(),
    }
}

/// A column, itself or widened: `int4 = int8` is compared as int8.
fn is_column(expr: &Expr, place: usize) -> bool {
    match expr {
        Expr::Column { index, .. } => *index == place,
        Expr::Cast { expr, from, to, .. } => is_widening(from, to) && is_column(expr, place),
        _ => false,
    }
}

/// Casts that keep a value's place among the others.
fn is_widening(from: &SqlType, to: &SqlType) -> bool {
    use SqlType::*;
    matches!(
        (from, to),
        (Int2, Int4 | Int8) | (Int4, Int8) | (Varchar(_), Text | Varchar(None)) | (Text, Varchar(None))
    )
}

/// An operand without a cast that only widens it: its value is placed in the column's type when it is known.
fn strip_widening(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr: inner, from, to, .. } if is_widening(from, to) => strip_widening(inner),
        other => other,
    }
}

/// Whether reading a path gives the order wanted, and whether backwards.
fn order(wish: &Wish<'_>, index: &IndexAccess, path: &Path, single: bool) -> (bool, bool) {
    if wish.order.is_empty() || single {
        return (true, false);
    }
    // Columns that equal one value do not matter to an order.
    let fixed: Vec<usize> = index
        .columns
        .iter()
        .zip(&path.prefix)
        .filter(|(_, term)| matches!(term, Term::One(_) | Term::Null))
        .filter_map(|(column, _)| column.slot)
        .collect();
    let mut columns = index.columns.iter().filter(|c| c.slot.is_none_or(|slot| !fixed.contains(&slot)));
    let mut reverse = None;
    for key in wish.order.iter().filter(|key| !fixed.contains(&key.slot)) {
        let Some(column) = columns.next() else {
            // Every column of a unique key is used up: what follows cannot matter, unless NULLs repeat.
            let never_null =
                index.columns.iter().all(|c| c.slot.is_none_or(|slot| !wish.access.columns[slot].nullable));
            return (index.unique && never_null, reverse.unwrap_or(false));
        };
        if column.slot != Some(key.slot) {
            return (false, false);
        }
        let backwards = column.descending != key.descending;
        // Forwards, an ascending column has its NULLs last and a descending one first.
        let nulls_first = column.descending != backwards;
        if wish.access.columns[key.slot].nullable && nulls_first != key.nulls_first {
            return (false, false);
        }
        if *reverse.get_or_insert(backwards) != backwards {
            return (false, false);
        }
    }
    (true, reverse.unwrap_or(false))
}
