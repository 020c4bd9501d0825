//! Chooses how one table is read: which index, which of the conditions become keys, which stay filters.
//!
//! Without statistics the choice is by rule: an equality on a leading column is worth a hundredth of the table, bounds on
//! the next column a twentieth (two) or a fifth (one). With statistics ([`crate::statistics`]) it goes by the share of rows that the keys let through; but a
//! path that is narrowed by keys is not given up for a scan of all, however small the table: what is read is what may conflict. But for one: where statistics
//! say that a secondary index leads to more than a part ([`WHOLE_PART`]) of a large table, each row by a way of its own, all of it is read ([`Choice::is_dear`]).
//! Where no index narrows it, several may together, where one of several conditions must hold ([`super::ways`]).
//! A row read through a secondary index costs three rows read in order.
//! An index that gives the order wanted saves the sort, and, under a LIMIT, most of the reading.

use super::implication::implies;
use super::negation;
use super::share;
use super::tree;
use super::ways;
use crate::exec::path::{Operand, Path, Range, Reach, Term};
use crate::exec::table::{IndexAccess, KeyColumn, TableAccess};
use crate::expr::function::{MIDNIGHT, ZONED_MIDNIGHT};
use crate::expr::{CompareOp, Expr, split_conjuncts};
use crate::statistics::TableStatistics;
use crate::types::{SqlType, Value};

/// Rows that a table is taken to have.
pub(super) const ASSUMED_ROWS: f64 = 100_000.0;
/// Rows that a LIMIT is taken to want.
const LIMITED_ROWS: f64 = 100.0;
/// Values that a list is taken to have whose length is not known.
const LISTED_VALUES: f64 = 4.0;
/// Alternatives of one OR that become keys; more are a filter.
const ALTERNATIVES_MAX: usize = 4096;
/// Which part of a table a secondary index may lead to before all of it is read instead. Measured: a sixth of 100,000 rows in the order of their keys costs
/// what a scan of all costs; in another order more.
pub(super) const WHOLE_PART: f64 = 6.0;
/// Rows of a table from which it is asked at all: a small one may grow, and is planned for once.
pub(super) const WHOLE_ROWS_MIN: u64 = 2_000;
/// Alternatives that are bounded on both sides are taken to leave at most this part of a table, however many they are.
const CLOSED_FACTOR: f64 = 4.0;

/// How many times fewer rows a partial index is taken to have: `deleted_at IS NULL` leaves most rows in, `NOT done` few.
fn partial_factor(predicate: Option<&Expr>) -> f64 {
    match predicate {
        None => 1.0,
        Some(Expr::IsNull { .. }) => 2.0,
        Some(_) => 10.0,
    }
}

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

/// A column of an index, as conditions name it.
struct Key<'a> {
    column: &'a KeyColumn,
    /// Its place in the row, if it is a column.
    place: Option<usize>,
    /// Over the row's places, if it is an expression.
    expression: Option<Expr>,
}

impl<'a> Key<'a> {
    /// `None` for the hidden row id, which no condition names.
    fn new(column: &'a KeyColumn, base: usize) -> Option<Self> {
        let place = column.slot.map(|slot| base + slot);
        let expression = column.expression.as_ref().map(|expression| placed(expression, base));
        (place.is_some() || expression.is_some()).then_some(Key { column, place, expression })
    }

    /// Whether an expression is this column, itself or widened: `int4 = int8` is compared as int8, a date beside a moment as where it begins.
    fn is(&self, expr: &Expr) -> bool {
        let own = match (expr, &self.expression) {
            (Expr::Column { index, .. }, None) => self.place == Some(*index),
            (expr, Some(expression)) => expr == expression,
            _ => false,
        };
        own || match expr {
            Expr::Cast { expr, from, to, .. } => {
                let begins = matches!((from, to), (SqlType::Date, SqlType::Timestamp(_)));
                (begins || is_widening(from, to)) && self.is(expr)
            }
            Expr::Call { function, args, .. } if matches!(function.name, MIDNIGHT | ZONED_MIDNIGHT) => {
                args.first().is_some_and(|date| self.is(date))
            }
            _ => false,
        }
    }
}

/// An expression over a table's slots, over the places of a joined row.
fn placed(expr: &Expr, base: usize) -> Expr {
    let mut expr = expr.clone();
    expr.map_columns(&|slot| base + slot);
    expr
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
    /// Several indexes may be gone by where there is an OR. Not for who passes rows by: what leads to those would count as read.
    pub unions: bool,
    /// What is known of the table's contents.
    pub statistics: Option<&'a TableStatistics>,
}

impl Wish<'_> {
    /// Rows of the table for which such conditions hold, and of an index; `None` without statistics.
    fn rows<'e>(&self, conditions: impl IntoIterator<Item = &'e Expr>, index: &IndexAccess) -> Option<f64> {
        let known = self.statistics?;
        let column = |place: usize| {
            let access = self.access.columns.get(place.checked_sub(self.base)?)?;
            Some((known.column(access.id)?, &access.ty))
        };
        let rows = known.rows as f64 * share::all(conditions, &column);
        let partial = index.predicate.as_ref().map(|predicate| placed(predicate, self.base));
        Some(rows * share::all(&partial, &column))
    }
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
    /// Reading the whole table would cost less, by statistics, unless the index holds all that is asked for. Only of keys that are known when planning:
    /// those that come with an execution, or with rows read before, are narrow until they are known.
    pub is_dear: bool,
}

impl Choice {
    /// Whether it reads all there is.
    fn is_wide(&self) -> bool {
        !self.path.is_narrowed()
    }
}

/// The indexes that have all rows for which the conditions hold: a partial one where they imply its predicate.
fn indexes<'w>(wish: &'w Wish<'_>) -> impl Iterator<Item = usize> + 'w {
    let implied = |index: &usize| match &wish.access.index(*index).predicate {
        None => true,
        // Conditions come without NOT where it could be moved into them.
        Some(predicate) => {
            let parts = split_conjuncts(placed(predicate, wish.base)).into_iter().flat_map(negation::inward);
            parts.collect::<Vec<_>>().iter().all(|part| implies(wish.conditions, part))
        }
    };
    (0..=wish.access.indexes.len()).filter(implied)
}

/// The path by keys that leads to the fewest rows, if there is one.
pub(super) fn narrowest(wish: &Wish<'_>) -> Option<Choice> {
    let choices = indexes(wish).map(|index| consider(wish, index)).filter(|choice| !choice.is_wide());
    choices.min_by(|a, b| a.rows.total_cmp(&b.rows))
}

/// The best of the paths that have the order that is wanted, whatever others cost.
pub fn in_order(wish: &Wish<'_>) -> Option<Choice> {
    let ordered = indexes(wish).map(|index| consider(wish, index)).filter(|choice| choice.ordered);
    ordered.min_by(|a, b| a.cost.total_cmp(&b.cost))
}

/// Chooses the best path. A partial index is a candidate where the conditions imply its predicate.
pub fn choose(wish: &Wish<'_>) -> Choice {
    let better = |best: Choice, next: Choice| {
        let (wide, was_wide) = (next.is_wide(), best.is_wide());
        let wins = match wish.statistics {
            Some(_) if wide != was_wide && !wish.limited => was_wide,
            _ => next.cost < best.cost,
        };
        if wins { next } else { best }
    };
    let choices = indexes(wish).map(|index| consider(wish, index));
    let mut best = choices.reduce(better).unwrap_or_else(|| consider(wish, 0));
    let orders = best.ordered && !wish.order.is_empty();
    // In the order that is wanted a LIMIT may end the reading early.
    if wish.unions
        && best.is_wide()
        && let Some(union) = ways::union(wish)
        && (!(wish.limited && orders) || union.cost < best.cost)
    {
        best = union;
    }
    best.is_dear = is_dear(wish, &best);
    best
}

/// See [`Choice::is_dear`].
fn is_dear(wish: &Wish<'_>, best: &Choice) -> bool {
    let Some(known) = wish.statistics else { return false };
    let orders = best.ordered && !wish.order.is_empty();
    if wish.limited || orders || best.point || best.is_wide() || best.path.index == 0 || known.rows < WHOLE_ROWS_MIN {
        return false;
    }
    let mut constant = true;
    best.path.operands(&mut |operand| constant &= operand.expr.constant().is_some());
    constant && best.rows * WHOLE_PART > known.rows as f64
}

/// A part of an index that conditions lead to.
struct Found {
    reach: Reach,
    /// Conditions that its keys fulfil exactly.
    used: Vec<usize>,
    rows: f64,
    /// Whether one of its columns is compared with a list.
    listed: bool,
}

/// What conditions, all of which hold, leave of an index. `used` are their places.
fn reach(wish: &Wish<'_>, said: &[&Expr], index: &IndexAccess) -> Found {
    let rows = ASSUMED_ROWS / partial_factor(index.predicate.as_ref());
    let mut found = Found { reach: Reach::default(), used: Vec::new(), rows, listed: false };
    // Conditions that the keys stand for.
    let mut asked: Vec<usize> = Vec::new();
    for column in &index.columns {
        let Some(key) = Key::new(column, wish.base) else { break };
        let Some((at, term)) = equality(wish, said, &key, found.listed) else {
            let factor = bounds(wish, said, &key, &mut found, &mut asked);
            found.rows /= factor;
            break;
        };
        found.rows /= 100.0;
        asked.push(at);
        if matches!(term, Term::Any(_) | Term::AnyOf(_)) {
            found.listed = true;
            found.rows *= 4.0;
        }
        if is_exact(&column.ty, said[at]) {
            found.used.push(at);
        }
        found.reach.prefix.push(term);
    }
    if let Some(rows) = wish.rows(asked.iter().map(|at| said[*at]), index) {
        found.rows = rows;
    }
    if found.reach.is_point(index) {
        // One for each set of keys.
        found.rows = found.reach.prefix.iter().map(length).product();
    }
    found
}

/// Values that a term stands for.
fn length(term: &Term) -> f64 {
    match term {
        Term::One(_) | Term::Null => 1.0,
        Term::Any(list) => list.len() as f64,
        Term::AnyOf(operand) => match operand.expr.constant() {
            Some(Value::Array(array)) => array.values.len() as f64,
            _ => LISTED_VALUES,
        },
    }
}

/// Whether a condition may stand beside alternatives: no others, nor lists, by which each alternative would be multiplied.
pub(super) fn is_single(condition: &Expr) -> bool {
    !matches!(condition, Expr::Or(_) | Expr::InList { .. } | Expr::AnyAll { .. })
}

/// What alternatives leave of an index, if each of them narrows it, and how many rows: `a BETWEEN 1 AND 5 OR a > 90`, `(a, b) IN ((1, 2), (3, 4))`.
/// What is said beside them holds in each, after what it says itself. At the end: the place of the condition, if the keys fulfil all of each alternative.
fn alternatives(wish: &Wish<'_>, index: &IndexAccess) -> Option<(Vec<Reach>, f64, Option<usize>)> {
    let beside: Vec<&Expr> = wish.conditions.iter().filter(|condition| is_single(condition)).collect();
    let each = |(at, condition): (usize, &Expr)| {
        let Expr::Or(choices) = condition else { return None };
        if choices.len() > ALTERNATIVES_MAX {
            return None;
        }
        let (mut total, mut closed, mut exact) = (0.0, true, true);
        let reaches = choices.iter().map(|choice| {
            let own = match choice {
                Expr::And(parts) => parts.as_slice(),
                one => std::slice::from_ref(one),
            };
            let found = reach(wish, &own.iter().chain(beside.iter().copied()).collect::<Vec<_>>(), index);
            total += found.rows;
            closed &= found.reach.is_closed();
            exact &= (0..own.len()).all(|part| found.used.contains(&part));
            (!found.reach.is_whole()).then_some(found.reach)
        });
        let reaches = reaches.collect::<Option<Vec<Reach>>>()?;
        // Who lists many means narrow ones.
        Some((
            reaches,
            if closed && wish.statistics.is_none() { total.min(ASSUMED_ROWS / CLOSED_FACTOR) } else { total },
            exact.then_some(at),
        ))
    };
    wish.conditions.iter().enumerate().filter_map(each).min_by(|a, b| a.1.total_cmp(&b.1))
}

fn consider(wish: &Wish<'_>, ordinal: usize) -> Choice {
    let index = wish.access.index(ordinal);
    let Found { reach, mut used, mut rows, mut listed } =
        reach(wish, &wish.conditions.iter().collect::<Vec<_>>(), index);
    let mut point = reach.is_point(index);
    let mut reaches = vec![reach];
    if !point
        && let Some((several, fewer, exact)) = alternatives(wish, index)
        && fewer < rows
    {
        // Which alternative a row was found by is not known afterwards: unless the keys say all of each, the condition is asked again, and so is what
        // stands beside it.
        (reaches, rows, used, listed, point) = (several, fewer, exact.into_iter().collect(), true, false);
    }
    let (ordered, reverse) = order(wish, index, &reaches, point && !listed);
    let path = Path { index: ordinal, reaches, reverse, ways: Vec::new() };
    if ordered && wish.limited {
        // Of so many that are read one is let through by what the keys do not say.
        let passing = match wish.rows(wish.conditions, index) {
            Some(passing) => rows / passing.max(1.0),
            None => unsaid_equalities(wish, &path),
        };
        rows = rows.min(LIMITED_ROWS * passing.max(1.0));
    }
    let mut cost = rows.max(1.0) * if ordinal == 0 { 1.0 } else { 3.0 };
    if !ordered {
        cost += rows * 0.5;
    }
    Choice { path, used, ordered, point, rows, cost, is_dear: false }
}

/// Of how many rows that a path gives one is let through, by rule: by what other columns must equal.
fn unsaid_equalities(wish: &Wish<'_>, path: &Path) -> f64 {
    let said: Vec<&Expr> = wish.conditions.iter().collect();
    let own = |key: &KeyColumn| {
        let prefix = path.reaches.first().map_or(0, |reach| reach.prefix.len());
        wish.access.index(path.index).columns[..prefix].iter().any(|column| column.slot == key.slot)
    };
    let mut counted: Vec<usize> = Vec::new();
    let mut passing = 1.0;
    for index in (0..=wish.access.indexes.len()).map(|index| wish.access.index(index)) {
        let Some(first) = index.columns.first().filter(|first| first.slot.is_some() && !own(first)) else { continue };
        let Some(key) = Key::new(first, wish.base) else { continue };
        if let Some((at, term)) = equality(wish, &said, &key, false)
            && !counted.contains(&at)
        {
            counted.push(at);
            passing *= (100.0 / length(&term).max(1.0)).max(1.0);
        }
    }
    passing
}

/// A condition that says what a column equals.
fn equality(wish: &Wish<'_>, said: &[&Expr], key: &Key<'_>, listed: bool) -> Option<(usize, Term)> {
    let ty = &key.column.ty;
    let mut list = None;
    for (at, condition) in said.iter().enumerate() {
        let operand = |expr: &Expr| Operand { expr: expr.clone(), ty: ty.clone() };
        match say(wish, condition, key) {
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
fn bounds(wish: &Wish<'_>, said: &[&Expr], key: &Key<'_>, found: &mut Found, asked: &mut Vec<usize>) -> f64 {
    let ty = &key.column.ty;
    if matches!(ty, SqlType::Jsonb | SqlType::Json) {
        return 1.0;
    }
    let mut range = Range::default();
    for (at, condition) in said.iter().enumerate() {
        let operand = |expr: &Expr| Operand { expr: expr.clone(), ty: ty.clone() };
        match say(wish, condition, key) {
            Some(Say::Low(expr, inclusive)) if range.low.is_none() => range.low = Some((operand(expr), inclusive)),
            Some(Say::High(expr, inclusive)) if range.high.is_none() => range.high = Some((operand(expr), inclusive)),
            _ => continue,
        }
        asked.push(at);
        if is_exact(ty, condition) {
            found.used.push(at);
        }
    }
    let factor = match (&range.low, &range.high) {
        (None, None) => return 1.0,
        (Some(_), Some(_)) => 20.0,
        _ => 5.0,
    };
    found.reach.range = Some(range);
    factor
}

/// Types whose keys say exactly what the comparison says; a filter stays behind for the others, and for dates that are compared as moments.
fn is_exact(ty: &SqlType, condition: &Expr) -> bool {
    use SqlType::*;
    let compared = match condition {
        Expr::Compare { ty, .. } | Expr::InList { ty, .. } | Expr::AnyAll { ty, .. } => Some(ty),
        _ => None,
    };
    if *ty == Date && compared.is_some_and(|compared| *compared != Date) {
        return false;
    }
    matches!(
        ty,
        Bool | Int2
            | Int4
            | Int8
            | Text
            | Varchar(_)
            | Date
            | Time(_)
            | Timestamp(_)
            | Timestamptz(_)
            | Uuid
            | Oid
            | Bytea
    )
}

/// What a condition says of a column of an index, if it says it with what is known before the table is read.
fn say<'a>(wish: &Wish<'_>, condition: &'a Expr, key: &Key<'_>) -> Option<Say<'a>> {
    let ty = &key.column.ty;
    let usable = |expr: &Expr, compared: &SqlType| {
        comparable(ty, compared, &expr.ty()) && tree::reads_only(expr, wish.known) && !tree::is_volatile(expr)
    };
    // Which moment a date begins at hangs on the time zone: it bounds, but says no equality.
    let equates = |compared: &SqlType| !(*ty == SqlType::Date && matches!(compared, SqlType::Timestamptz(_)));
    match condition {
        Expr::Compare { op, ty: compared, left, right } => {
            let (op, other) = if key.is(left) {
                (*op, right)
            } else if key.is(right) {
                (op.flipped(), left)
            } else {
                return None;
            };
            let other = strip_widening(other);
            if !usable(other, compared) {
                return None;
            }
            Some(match op {
                CompareOp::Eq if equates(compared) => Say::Equal(other),
                CompareOp::Gt => Say::Low(other, false),
                CompareOp::GtEq => Say::Low(other, true),
                CompareOp::Lt => Say::High(other, false),
                CompareOp::LtEq => Say::High(other, true),
                CompareOp::Eq | CompareOp::NotEq => return None,
            })
        }
        Expr::InList { ty: compared, expr, list, negated: false } if equates(compared) && key.is(expr) => {
            list.iter().all(|item| usable(item, compared)).then_some(Say::In(list))
        }
        Expr::AnyAll { op: CompareOp::Eq, ty: compared, left, array, all: false }
            if equates(compared) && key.is(left) =>
        {
            let SqlType::Array(element) = array.ty() else { return None };
            (comparable(ty, compared, &element) && tree::reads_only(array, wish.known) && !tree::is_volatile(array))
                .then_some(Say::AnyOf(array))
        }
        Expr::IsNull { expr, negated: false } if key.is(expr) => Some(Say::Null),
        // A boolean column by itself.
        condition if *ty == SqlType::Bool && key.is(condition) => {
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
        // NaN is one value above all others and -0 is 0, in keys as in comparisons.
        Float4 | Float8 => matches!(compared, Float4 | Float8) && matches!(other, Float4 | Float8),
        // As where it begins.
        Date => matches!(compared, Date | Timestamp(_) | Timestamptz(_)) && compared.base() == other.base(),
        Jsonb | Json => false,
        _ => column.base() == compared.base() && column.base() == other.base(),
    }
}

/// Casts that keep a value's place among the others.
fn is_widening(from: &SqlType, to: &SqlType) -> bool {
    use SqlType::*;
    matches!(
        (from, to),
        (Int2, Int4 | Int8)
            | (Int4, Int8)
            | (Float4, Float8)
            | (Varchar(_), Text | Varchar(None))
            | (Text, Varchar(None))
    )
}

/// An operand without a cast that only widens it: its value is placed in the column's type when it is known.
fn strip_widening(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr: inner, from, to, .. } if is_widening(from, to) => strip_widening(inner),
        other => other,
    }
}

/// What all alternatives equal in the first columns: they are read in the order of their keys.
fn common_prefix(reaches: &[Reach]) -> &[Term] {
    let same = |one: &Term, other: &Term| match (one, other) {
        (Term::One(one), Term::One(other)) => one.expr == other.expr,
        (Term::Null, Term::Null) => true,
        _ => false,
    };
    let Some((first, others)) = reaches.split_first() else { return &[] };
    let shared = |other: &Reach| first.prefix.iter().zip(&other.prefix).take_while(|(a, b)| same(a, b)).count();
    let length = others.iter().map(shared).min().unwrap_or(first.prefix.len());
    first.prefix.get(..length).unwrap_or_default()
}

/// Whether reading a path gives the order wanted, and whether backwards.
fn order(wish: &Wish<'_>, index: &IndexAccess, reaches: &[Reach], single: bool) -> (bool, bool) {
    if wish.order.is_empty() || single {
        return (true, false);
    }
    let prefix = common_prefix(reaches);
    // Columns that equal one value do not matter to an order.
    let fixed: Vec<usize> = index
        .columns
        .iter()
        .zip(prefix)
        .filter(|(_, term)| matches!(term, Term::One(_) | Term::Null))
        .filter_map(|(column, _)| column.slot)
        .collect();
    let single = |place: usize| matches!(prefix.get(place), Some(Term::One(_) | Term::Null));
    let open = |(place, c): &(usize, &KeyColumn)| match c.slot {
        Some(slot) => !fixed.contains(&slot),
        None => !single(*place),
    };
    let mut columns = index.columns.iter().enumerate().filter(open).map(|(_, column)| column);
    let mut reverse = None;
    for key in wish.order.iter().filter(|key| !fixed.contains(&key.slot)) {
        let Some(column) = columns.next() else {
            // Every column of a unique key is used up: what follows cannot matter, unless NULLs repeat.
            let never_null = index
                .columns
                .iter()
                .all(|c| c.expression.is_none() && c.slot.is_none_or(|slot| !wish.access.columns[slot].nullable));
            return (index.unique && never_null, reverse.unwrap_or(false));
        };
        if column.slot != Some(key.slot) {
            return (false, false);
        }
        let backwards = column.descending != key.descending;
        let nulls_first = column.nulls_first != backwards;
        if wish.access.columns[key.slot].nullable && nulls_first != key.nulls_first {
            return (false, false);
        }
        if *reverse.get_or_insert(backwards) != backwards {
            return (false, false);
        }
    }
    (true, reverse.unwrap_or(false))
}
