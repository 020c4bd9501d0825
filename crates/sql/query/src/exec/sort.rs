//! Sorting in memory, within the statement's budget.

use super::evaluate;
use crate::SqlError;
use crate::context::{MemoryBudget, StatementContext};
use crate::expr::Expr;
use crate::types::{Row, SqlType, Value, heap_bytes, wide_bytes};
use std::cmp::Ordering;
use std::sync::Arc;

/// One key of ORDER BY.
#[derive(Debug, Clone)]
pub struct SortKey {
    /// What to sort by, over the row sorted.
    pub expr: Expr,
    /// Its type.
    pub ty: SqlType,
    /// Highest first.
    pub descending: bool,
    /// Where NULLs go.
    pub nulls_first: bool,
}

/// Memory taken from a budget, given back when dropped.
pub struct Reserved {
    budget: Arc<MemoryBudget>,
    bytes: usize,
    /// Of these, what is kept to be written.
    to_write_bytes: usize,
}

impl Reserved {
    /// Nothing yet.
    pub fn new(budget: &Arc<MemoryBudget>) -> Self {
        Reserved { budget: budget.clone(), bytes: 0, to_write_bytes: 0 }
    }
    /// Takes more.
    ///
    /// # Errors
    /// 53200 beyond the budget.
    pub fn take(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.budget.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
    /// Takes more of what is kept to be written: where there is no room for it, what the statement writes does not fit.
    ///
    /// # Errors
    /// 53200 beyond the budget.
    pub fn take_to_write(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.budget.take_to_write(bytes)?;
        self.bytes += bytes;
        self.to_write_bytes += bytes;
        Ok(())
    }
    /// Takes more of what can be written out instead; whether it was there: see [`MemoryBudget::take_spare`].
    #[inline]
    pub fn take_spare(&mut self, bytes: usize) -> bool {
        let taken = self.budget.take_spare(bytes);
        self.bytes += if taken { bytes } else { 0 };
        taken
    }
    /// Takes what cannot be done without: see [`MemoryBudget::take_anyway`].
    pub fn take_anyway(&mut self, bytes: usize) {
        self.budget.take_anyway(bytes);
        self.bytes += bytes;
    }
    /// What it has.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Gives back what is beyond so many bytes.
    pub fn keep(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        self.budget.give(spare);
        self.bytes -= spare;
        let written = self.to_write_bytes.saturating_sub(self.bytes);
        self.budget.is_written(written);
        self.to_write_bytes -= written;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.is_written(self.to_write_bytes);
        self.budget.give(self.bytes);
    }
}

/// Estimates what a row takes, bytes: of the machine's memory, where it stands in a vector that grows.
pub fn row_bytes(row: &[Value]) -> usize {
    /// Counts of an `Arc`, and what the allocator rounds up to.
    const BLOCK_BYTES: usize = 24;
    let inner: usize = row
        .iter()
        .map(|value| match value {
            Value::Text(text) | Value::Json(text) | Value::Jsonb(text) => BLOCK_BYTES + text.len(),
            Value::Bytea(bytes) => BLOCK_BYTES + bytes.len(),
            Value::Array(_) | Value::Record(_) => heap_bytes(value),
            Value::Numeric(_) => 16,
            _ => 0,
        })
        .sum();
    2 * size_of::<Row>() + size_of_val(row) + inner
}

/// A column of the rows that a sort goes by.
#[derive(Debug, Clone)]
pub struct OrderKey {
    /// Where it is in them.
    pub place: usize,
    /// Its type.
    pub ty: SqlType,
    /// Highest first.
    pub descending: bool,
    /// Where NULLs go.
    pub nulls_first: bool,
}

impl OrderKey {
    /// Compares two values of it.
    #[inline]
    pub fn compare(&self, a: &Value, b: &Value) -> Ordering {
        let nulls = |null_side: Ordering| if self.nulls_first { null_side } else { null_side.reverse() };
        match (a, b) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => nulls(Ordering::Less),
            (_, Value::Null) => nulls(Ordering::Greater),
            (a, b) if self.descending => b.compare(a, &self.ty),
            (a, b) => a.compare(b, &self.ty),
        }
    }
}

/// How rows are sorted. Keys that are no column of theirs stand behind them, computed.
#[derive(Debug, Clone)]
pub struct Order(pub Vec<OrderKey>);

/// A row to be sorted, behind it the keys that are no column of it.
pub struct Keyed {
    leads: u128,
    /// The row.
    pub row: Row,
}

/// Estimates what it takes, bytes.
pub fn keyed_bytes(keyed: &Keyed) -> usize {
    row_bytes(&keyed.row) + size_of::<Keyed>()
}

impl Order {
    /// A row with what is compared first.
    #[inline]
    pub fn keyed(&self, row: Row) -> Keyed {
        let keys = self.0.iter().map(|key| (&row[key.place], &key.ty, key.descending, key.nulls_first));
        let leads = leads(keys);
        Keyed { leads, row }
    }

    /// Compares two rows.
    #[inline]
    pub fn compare(&self, a: &Keyed, b: &Keyed) -> Ordering {
        a.leads.cmp(&b.leads).then_with(|| {
            let mut orders = self.0.iter().map(|key| key.compare(&a.row[key.place], &b.row[key.place]));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    }
}

/// The order of rows of so many columns by keys, and those keys that must be computed behind them.
pub fn order_of(keys: &[SortKey], width: usize) -> (Order, Vec<Expr>) {
    let mut computed = Vec::new();
    let key = |key: &SortKey| {
        let place = evaluate::column(&key.expr).unwrap_or_else(|| {
            computed.push(key.expr.clone());
            width + computed.len() - 1
        });
        OrderKey { place, ty: key.ty.clone(), descending: key.descending, nulls_first: key.nulls_first }
    };
    (Order(keys.iter().map(key).collect()), computed)
}

/// Compares two values for ORDER BY.
pub fn compare(a: &Value, b: &Value, key: &SortKey) -> Ordering {
    let nulls = |null_side: Ordering| if key.nulls_first { null_side } else { null_side.reverse() };
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => nulls(Ordering::Less),
        (_, Value::Null) => nulls(Ordering::Greater),
        (a, b) => {
            let order = a.compare(b, &key.ty);
            if key.descending { order.reverse() } else { order }
        }
    }
}

/// A value and the key that it is sorted by: type, descending, NULLs first.
pub type Lead<'a> = (&'a Value, &'a SqlType, bool, bool);

/// A number that orders rows as their first two sort keys do: of different numbers the lesser comes first, equal ones say nothing. Most
/// comparisons of a sort end with it, without a look at the values.
pub fn leads<'a>(mut keys: impl Iterator<Item = Lead<'a>>) -> u128 {
    let Some((first, exact)) = keys.next().map(lead) else { return 0 };
    // The second key counts only among equals of the first.
    let second = if exact { keys.next().map_or(0, |key| lead(key).0) } else { 0 };
    u128::from(first) << 64 | u128::from(second)
}

/// One key's part of [`leads`], and whether only equal values share it.
fn lead((value, ty, descending, nulls_first): Lead<'_>) -> (u64, bool) {
    const BITS: u32 = 62;
    const LIMIT: i64 = 1 << (BITS - 1);
    let signed = |n: i64| ((n.clamp(-LIMIT, LIMIT - 1) + LIMIT) as u64, n > -LIMIT && n < LIMIT - 1);
    let float = |v: f64| match (v + 0.0).to_bits() {
        _ if v.is_nan() => (u64::MAX >> (64 - BITS), false),
        bits if bits >> 63 == 1 => (!bits >> (64 - BITS), false),
        bits => ((bits | 1 << 63) >> (64 - BITS), false),
    };
    let (word, exact) = match value {
        Value::Null => return (if nulls_first { 0 } else { u64::MAX }, true),
        Value::Text(text) if !matches!(ty, SqlType::Char(_)) => {
            let mut first = [0; 8];
            let length = text.len().min(8);
            first[..length].copy_from_slice(&text.as_bytes()[..length]);
            // A text has no byte 0, so a short one is like no other.
            (u64::from_be_bytes(first) >> (64 - BITS), length < 8)
        }
        Value::Float4(v) => float(f64::from(*v)),
        Value::Float8(v) => float(*v),
        Value::Date(v) => signed(i64::from(*v)),
        Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => signed(*v),
        // The zone decides between equals.
        Value::Timetz(v) => (signed(v.utc_us()).0, false),
        Value::Int2(v) => signed(i64::from(*v)),
        Value::Int4(v) => signed(i64::from(*v)),
        Value::Int8(v) => signed(*v),
        _ => (0, false),
    };
    // NULLs are before or after all.
    (1 + if descending { (1 << BITS) - 1 - word } else { word }, exact)
}

/// Sorts rows by keys. Equal rows keep their order.
pub fn sort(rows: Vec<Row>, keys: &[SortKey], context: &StatementContext) -> Result<Vec<Row>, SqlError> {
    let mut keyed = Vec::with_capacity(rows.len());
    // Keys that are columns share what their rows hold.
    let mut reserved = Reserved::new(&context.memory);
    let is_made: Vec<bool> = keys.iter().map(|key| evaluate::column(&key.expr).is_none()).collect();
    for row in rows {
        let by = keys.iter().map(|key| evaluate::value(&key.expr, &row, context)).collect::<Result<Row, _>>()?;
        let made = by.iter().zip(&is_made).filter(|(_, made)| **made);
        reserved.take(made.map(|(value, _)| wide_bytes(value)).sum())?;
        let first = leads(by.iter().zip(keys).map(|(value, key)| (value, &key.ty, key.descending, key.nulls_first)));
        keyed.push((first, by, row));
    }
    let order = |(first, a, _): &(u128, Row, Row), (second, b, _): &(u128, Row, Row)| {
        first.cmp(second).then_with(|| {
            let mut orders = keys.iter().enumerate().map(|(i, key)| compare(&a[i], &b[i], key));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    };
    Ok(in_order(keyed, order, context)?.into_iter().map(|(_, _, row)| row).collect())
}

/// Items that are sorted, or merged, between two looks at the interrupt.
const RUN_ITEMS: usize = 16_384;

/// Sorts items; equal ones keep their order. The library's sort cannot be stopped, so it sorts runs, which are merged here.
///
/// # Errors
/// 57014 if the statement ends meanwhile.
pub fn in_order<T>(
    mut items: Vec<T>,
    order: impl Fn(&T, &T) -> Ordering,
    context: &StatementContext,
) -> Result<Vec<T>, SqlError> {
    context.check()?;
    if items.len() <= RUN_ITEMS {
        items.sort_by(order);
        return Ok(items);
    }
    let mut runs = Vec::with_capacity(items.len() / RUN_ITEMS + 1);
    let mut items = items.into_iter();
    while items.len() > 0 {
        let mut run: Vec<T> = items.by_ref().take(RUN_ITEMS).collect();
        context.check()?;
        run.sort_by(&order);
        runs.push(run);
    }
    while runs.len() > 1 {
        let mut pairs = std::mem::take(&mut runs).into_iter();
        while let Some(left) = pairs.next() {
            runs.push(match pairs.next() {
                Some(right) => merge(left, right, &order, context)?,
                None => left,
            });
        }
    }
    Ok(runs.pop().unwrap_or_default())
}

/// Two sorted runs as one; of equal items those of the left run come first.
fn merge<T>(
    left: Vec<T>,
    right: Vec<T>,
    order: &impl Fn(&T, &T) -> Ordering,
    context: &StatementContext,
) -> Result<Vec<T>, SqlError> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        if out.len().is_multiple_of(RUN_ITEMS) {
            context.check()?;
        }
        out.extend(if order(b, a).is_lt() { right.next() } else { left.next() });
    }
    out.extend(left);
    out.extend(right);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_what_the_allocator_gives_for_it() {
        let row = [Value::Int8(1), Value::Text("x".repeat(32).into())];
        // The text with its counts, the values, the row's place.
        assert!(row_bytes(&row) >= (16 + 32) + size_of_val(&row) + size_of::<Row>());
    }

    #[test]
    fn a_lead_never_contradicts_the_order() {
        let text = |text: &str| Value::Text(text.into());
        let floats = [f64::NEG_INFINITY, -1e300, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
        let integers = [i64::MIN, -(1 << 61) - 1, -(1 << 61), -1, 0, 1, (1 << 61) - 1, 1 << 61, i64::MAX];
        let texts = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgi", "b", "ü", "\u{ffff}"];
        let lists: [(SqlType, Vec<Value>); 5] = [
            (SqlType::Float8, floats.map(Value::Float8).to_vec()),
            (SqlType::Int8, integers.map(Value::Int8).to_vec()),
            (SqlType::Date, [i32::MIN, -1, 0, 1, i32::MAX].map(Value::Date).to_vec()),
            (SqlType::Text, texts.map(text).to_vec()),
            (SqlType::Char(3), ["", "a  ", "a", "a b"].map(text).to_vec()),
        ];
        for (ty, mut values) in lists {
            values.push(Value::Null);
            for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
                let key = SortKey { expr: Expr::literal(Value::Null), ty: ty.clone(), descending, nulls_first };
                let pairs: Vec<(&Value, &Value)> =
                    values.iter().flat_map(|a| values.iter().map(move |b| (a, b))).collect();
                let of = |value| (value, &ty, descending, nulls_first);
                let known: Vec<u128> = pairs.iter().map(|(a, b)| leads([of(*a), of(*b)].into_iter())).collect();
                for (a, first) in pairs.iter().zip(&known) {
                    for (b, second) in pairs.iter().zip(&known) {
                        let order = compare(a.0, b.0, &key).then_with(|| compare(a.1, b.1, &key));
                        let leads = first.cmp(second);
                        assert!(leads.is_eq() || leads == order, "{a:?} {b:?} {key:?}");
                    }
                }
            }
        }
    }
}
