//! Window functions: the input is held, each call sorts it by partition and order, and its values are added to the rows.
//!
//! Rows that do not fit memory are divided by their partitions ([`divided`]).
//!
//! A frame that starts with its partition only grows, so an aggregate over it takes each row once; so does one that ends with it, from the last row
//! back, where the order does not matter. Other frames are computed anew for each row.

use super::aggregate::feed;
use super::join::chained;
use super::sort::{compare_rows, leads};
use super::{Prefix, Reservation, Run, Source, divided, held, listed, open as open_node};
use crate::engine::aggregate::{AggregateCall, Function as Aggregated};
use crate::engine::key_table::{KEY_BYTES, KeyTable};
use crate::engine::keys::{encode, own_kind};
use crate::engine::node::Node;
use crate::engine::window::{Bound, Exclude, Function, Units, WindowCall};
use crate::exec::sort::in_order;
use crate::expr::moved_us;
use crate::types::{Interval, Numeric, Row, SqlType, Value, wide_bytes};
use crate::{SqlError, SqlState, work};
use std::ops::Range;
use std::sync::Arc;

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    let Node::Window { input, calls } = node.as_ref() else { return Ok(listed(Vec::new())) };
    let mut reserved = run.reserve();
    let mut source = open_node(input, prefix, run)?;
    let (mut rows, mut row, divisible) = (Vec::new(), Row::new(), divided::is_possible(calls));
    while source.next(&mut row)? {
        run.tick()?;
        if divisible && !reserved.spare_row(&row) {
            rows.push(row);
            let first = held(rows.into_iter(), reserved);
            return divided::start(node, chained(first, source), run);
        }
        if !divisible {
            reserved.row(&row)?;
        }
        rows.push(std::mem::take(&mut row));
    }
    let mut columns = Vec::with_capacity(calls.len());
    for call in calls {
        match compute(call, &rows, &mut reserved, run) {
            Err(error) if divisible && error.state == SqlState::OUT_OF_MEMORY => {
                drop(columns);
                return divided::start(node, held(rows.into_iter(), reserved), run);
            }
            column => columns.push(column?),
        }
    }
    for column in columns {
        for (row, value) in rows.iter_mut().zip(column) {
            row.push(value);
        }
    }
    Ok(held(rows.into_iter(), reserved))
}

/// A partition in order: places of its rows, their sort keys if there is one each, and for each the number of its group of peers.
struct Partition {
    places: Vec<usize>,
    keys: Vec<Value>,
    /// First position of each group of peers, and the end.
    groups: Vec<usize>,
    /// The group of each position.
    group_of: Vec<usize>,
}

impl Partition {
    fn peers(&self, at: usize) -> Range<usize> {
        let group = self.group_of[at];
        self.groups[group]..self.groups[group + 1]
    }
}

fn partitions(
    call: &WindowCall,
    rows: &[Row],
    kept: &mut Reservation,
    run: &Arc<Run>,
) -> Result<Vec<Partition>, SqlError> {
    let mut reserved = run.reserve();
    let (mut numbers, mut key) = (KeyTable::new(run.seed), Vec::new());
    // A row's place behind the leads of its sort keys, by partition; its sort keys by place.
    let mut lists: Vec<Vec<(u128, usize)>> = Vec::new();
    let mut keys: Vec<Value> = Vec::with_capacity(rows.len() * call.order.len());
    for (place, row) in rows.iter().enumerate() {
        run.tick()?;
        key.clear();
        for by in &call.partition {
            encode(&*by.value_ref(row, run)?, own_kind(&by.ty), &mut key);
        }
        let (number, new) = numbers.number(&key);
        if new {
            reserved.bytes(key.len() + KEY_BYTES)?;
            lists.push(Vec::new());
        }
        for by in &call.order {
            let value = by.by.value(row, run)?;
            if by.by.column().is_none() {
                kept.bytes(wide_bytes(&value))?;
            }
            keys.push(value);
        }
        lists[number].push((leads(keys[place * call.order.len()..].iter(), &call.order), place));
    }
    let keys_of = |place: usize| &keys[place * call.order.len()..][..call.order.len()];
    let order = |a: &(u128, usize), b: &(u128, usize)| {
        a.0.cmp(&b.0).then_with(|| compare_rows(keys_of(a.1), keys_of(b.1), &call.order))
    };
    let partition = |list: Vec<(u128, usize)>| -> Result<Partition, SqlError> {
        let list = in_order(list, order, &run.context)?;
        let mut groups = Vec::new();
        let mut group_of = Vec::with_capacity(list.len());
        for at in 0..list.len() {
            run.tick()?;
            if at == 0 || order(&list[at - 1], &list[at]).is_ne() {
                groups.push(at);
            }
            group_of.push(groups.len() - 1);
        }
        groups.push(list.len());
        let places: Vec<usize> = list.into_iter().map(|(_, place)| place).collect();
        let single = call.order.len() == 1;
        let keys = places.iter().filter(|_| single).map(|place| keys[*place].clone()).collect();
        Ok(Partition { places, keys, groups, group_of })
    };
    lists.into_iter().map(partition).collect()
}

/// Whether a call's values are made for it: those of columns the rows hold themselves.
fn are_made(call: &WindowCall) -> bool {
    let args = if let Function::Aggregate(aggregate) = &call.function { &aggregate.args } else { &call.args };
    // Behind the value comes a number, then what stands for it.
    [0, 2].iter().filter_map(|place| args.get(*place)).any(|arg| arg.column().is_none())
}

/// Whether two values are one in memory, or hold nothing.
fn is_one(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Text(a) | Value::Json(a) | Value::Jsonb(a), Value::Text(b) | Value::Json(b) | Value::Jsonb(b)) => {
            std::ptr::eq(a.as_bytes(), b.as_bytes())
        }
        (Value::Bytea(a), Value::Bytea(b)) => std::ptr::eq(a.as_ref(), b.as_ref()),
        _ => wide_bytes(b) == 0,
    }
}

/// The value of a call for each row.
pub(super) fn compute(
    call: &WindowCall,
    rows: &[Row],
    reserved: &mut Reservation,
    run: &Arc<Run>,
) -> Result<Vec<Value>, SqlError> {
    reserved.bytes(rows.len() * 2 * size_of::<Value>())?;
    let mut out = vec![Value::Null; rows.len()];
    let made = are_made(call);
    for partition in partitions(call, rows, reserved, run)? {
        run.check()?;
        if let Function::Aggregate(_) = call.function {
            aggregate(call, &partition, rows, run, reserved, &mut out)?;
            continue;
        }
        for at in 0..partition.places.len() {
            run.tick()?;
            let value = one(call, &partition, at, rows, run)?;
            if made {
                reserved.bytes(wide_bytes(&value))?;
            }
            out[partition.places[at]] = value;
        }
    }
    Ok(out)
}

fn one(call: &WindowCall, partition: &Partition, at: usize, rows: &[Row], run: &Arc<Run>) -> Result<Value, SqlError> {
    let count = partition.places.len();
    let row_at = |at: usize| &rows[partition.places[at]];
    let peers = partition.peers(at);
    let arg =
        |number: usize, at: usize| call.args.get(number).map_or(Ok(Value::Null), |arg| arg.value(row_at(at), run));
    Ok(match call.function {
        Function::RowNumber => Value::Int8(at as i64 + 1),
        Function::Rank => Value::Int8(peers.start as i64 + 1),
        Function::DenseRank => Value::Int8(partition.group_of[at] as i64 + 1),
        Function::PercentRank if count < 2 => Value::Float8(0.0),
        Function::PercentRank => Value::Float8(peers.start as f64 / (count - 1) as f64),
        Function::CumeDist => Value::Float8(peers.end as f64 / count as f64),
        Function::Ntile => ntile(arg(0, at)?, at, count)?,
        Function::Shift(sign) => {
            let offset = if call.args.len() > 1 { arg(1, at)?.as_i64() } else { Some(1) };
            let Some(offset) = offset else { return Ok(Value::Null) };
            match usize::try_from(at as i64 + sign * offset).ok().filter(|to| *to < count) {
                Some(to) => arg(0, to)?,
                None => arg(2, at)?,
            }
        }
        Function::FirstValue | Function::LastValue | Function::NthValue => {
            let frame = frame(call, partition, at, rows, run)?;
            let parts = left_in(&frame, call.frame.exclude, partition, at);
            let to = match call.function {
                Function::FirstValue => parts.iter().cloned().flatten().next(),
                Function::LastValue => parts.iter().cloned().flatten().next_back(),
                _ => match arg(1, at)? {
                    Value::Null => None,
                    n => match n.as_i64().filter(|n| *n > 0) {
                        Some(n) => nth(&parts, n as usize - 1),
                        None => {
                            return Err(SqlError::new(
                                SqlState(*b"22016"),
                                "argument of nth_value must be greater than zero",
                            ));
                        }
                    },
                },
            };
            match to {
                Some(to) => arg(0, to)?,
                None => Value::Null,
            }
        }
        Function::Aggregate(_) => Value::Null,
    })
}

fn ntile(buckets: Value, at: usize, count: usize) -> Result<Value, SqlError> {
    let Some(buckets) = buckets.as_i64() else { return Ok(Value::Null) };
    let Some(buckets) = usize::try_from(buckets).ok().filter(|n| *n > 0) else {
        return Err(SqlError::new(SqlState(*b"22014"), "argument of ntile must be greater than zero"));
    };
    let (size, longer) = (count / buckets, count % buckets);
    let bucket =
        if at < longer * (size + 1) { at / (size + 1) } else { longer + (at - longer * (size + 1)) / size.max(1) };
    Ok(Value::Int4(bucket as i32 + 1))
}

fn aggregate(
    call: &WindowCall,
    partition: &Partition,
    rows: &[Row],
    run: &Arc<Run>,
    reserved: &mut Reservation,
    out: &mut [Value],
) -> Result<(), SqlError> {
    let Function::Aggregate(aggregate) = &call.function else { return Ok(()) };
    let grows = matches!(call.frame.start, Bound::Unbounded) && call.frame.exclude == Exclude::Nothing;
    // From the last row back, one that ends with its partition grows, too.
    let backward = !grows
        && matches!(call.frame.end, Bound::Unbounded)
        && call.frame.exclude == Exclude::Nothing
        && takes_any_order(aggregate);
    let count = partition.places.len();
    let mut running = aggregate.start();
    let mut taken = if backward { count } else { 0 };
    let made = are_made(call);
    let (mut element_bytes, mut before) = (0, Value::Null);
    for step in 0..count {
        let at = if backward { count - 1 - step } else { step };
        run.tick()?;
        let frame = frame(call, partition, at, rows, run)?;
        if !(backward && frame.start <= taken || grows && frame.end >= taken) {
            running = aggregate.start();
            taken = if backward { frame.end } else { frame.start };
            element_bytes = 0;
        }
        let more = if backward { frame.start..taken } else { taken..frame.end.max(taken) };
        for part in left_in(&more, call.frame.exclude, partition, at) {
            for place in &partition.places[part] {
                run.tick()?;
                feed(aggregate, &mut running, &rows[*place], run)?;
            }
        }
        taken = if backward { frame.start } else { frame.end.max(taken) };
        // Peers share a frame, and so a result.
        if aggregate.function.holds_values() {
            // Each row shows all that was taken before it.
            work::step(running.held_bytes())?;
            reserved.bytes(running.held_bytes())?;
            if made {
                reserved.bytes(running.element_bytes() - element_bytes)?;
                element_bytes = running.element_bytes();
            }
            out[partition.places[at]] = running.clone().finish(aggregate, &run.context)?;
            continue;
        }
        let value = running.clone().finish(aggregate, &run.context)?;
        if made && !is_one(&before, &value) {
            reserved.bytes(wide_bytes(&value))?;
            before = value.clone();
        }
        out[partition.places[at]] = value;
    }
    Ok(())
}

/// Whether an aggregate comes to the same value, digit by digit, in whatever order it takes its rows.
fn takes_any_order(aggregate: &AggregateCall) -> bool {
    use Aggregated as F;
    use SqlType as T;
    let whole = |ty: &T| matches!(ty, T::Int2 | T::Int4 | T::Int8);
    let exact = |ty: &T| whole(ty) || matches!(ty, T::Numeric(_));
    match aggregate.function {
        F::Count | F::BoolAnd | F::BoolOr | F::BitAnd | F::BitOr | F::BitXor => true,
        F::Sum | F::Avg => aggregate.args.iter().all(|arg| exact(&arg.ty)),
        F::Min | F::Max => aggregate
            .args
            .iter()
            .all(|arg| whole(&arg.ty) || matches!(arg.ty, T::Date | T::Timestamp(_) | T::Timestamptz(_))),
        _ => false,
    }
}

/// The rows of the frame of the row at a position.
fn frame(
    call: &WindowCall,
    partition: &Partition,
    at: usize,
    rows: &[Row],
    run: &Arc<Run>,
) -> Result<Range<usize>, SqlError> {
    let count = partition.places.len();
    let row = &rows[partition.places[at]];
    let start = match &call.frame.start {
        Bound::Unbounded => 0,
        bound => edge(call, partition, at, bound, row, run)?.start,
    };
    let end = match &call.frame.end {
        Bound::Unbounded => count,
        bound => edge(call, partition, at, bound, row, run)?.end,
    };
    Ok(start.min(count)..end.clamp(start.min(count), count))
}

/// What EXCLUDE leaves of the frame of the row at a position: parts in order, which may be empty.
fn left_in(frame: &Range<usize>, exclude: Exclude, partition: &Partition, at: usize) -> [Range<usize>; 3] {
    let clipped = |range: Range<usize>| {
        let start = range.start.clamp(frame.start, frame.end);
        start..range.end.clamp(start, frame.end)
    };
    let peers = partition.peers(at);
    match exclude {
        Exclude::Nothing => [frame.clone(), 0..0, 0..0],
        Exclude::CurrentRow => [clipped(frame.start..at), clipped(at + 1..frame.end), 0..0],
        Exclude::Group => [clipped(frame.start..peers.start), clipped(peers.end..frame.end), 0..0],
        Exclude::Ties => [clipped(frame.start..peers.start), clipped(at..at + 1), clipped(peers.end..frame.end)],
    }
}

/// The position at a number, from 0 on, in parts of a frame.
fn nth(parts: &[Range<usize>], mut number: usize) -> Option<usize> {
    for part in parts {
        if number < part.len() {
            return Some(part.start + number);
        }
        number -= part.len();
    }
    None
}

/// The row or group of rows at one end of a frame.
fn edge(
    call: &WindowCall,
    partition: &Partition,
    at: usize,
    bound: &Bound,
    row: &[Value],
    run: &Arc<Run>,
) -> Result<Range<usize>, SqlError> {
    let (scalar, sign) = match bound {
        Bound::Unbounded | Bound::Current => {
            return Ok(if call.frame.units == Units::Rows { at..at + 1 } else { partition.peers(at) });
        }
        Bound::Preceding(scalar) => (scalar, -1i64),
        Bound::Following(scalar) => (scalar, 1),
    };
    let offset = scalar.value(row, run)?;
    if offset.is_null() {
        let end = if std::ptr::eq(bound, &call.frame.start) { "starting" } else { "ending" };
        return Err(SqlError::new(SqlState(*b"22004"), format!("frame {end} offset must not be null")));
    }
    let whole = offset.as_i64();
    if call.frame.units != Units::Range && whole.is_some_and(|n| n < 0) {
        let end = if std::ptr::eq(bound, &call.frame.start) { "starting" } else { "ending" };
        return Err(SqlError::new(SqlState(*b"22013"), format!("frame {end} offset must not be negative")));
    }
    let count = partition.places.len() as i64;
    let moved = |from: usize| (from as i64).saturating_add(sign.saturating_mul(whole.unwrap_or(0)));
    Ok(match call.frame.units {
        Units::Rows => {
            let to = moved(at).clamp(-1, count);
            (to.max(0) as usize)..((to + 1).max(0) as usize)
        }
        Units::Groups => {
            let groups = partition.groups.len() as i64 - 1;
            match moved(partition.group_of[at]) {
                to if to < 0 => 0..0,
                to if to >= groups => count as usize..count as usize,
                to => partition.groups[to as usize]..partition.groups[to as usize + 1],
            }
        }
        Units::Range => {
            // It looks at the whole partition.
            run.check()?;
            range_edge(call, partition, at, sign, &offset, run)?
        }
    })
}

/// RANGE with a distance: over a sort key that it can be added to, as PostgreSQL's `in_range`.
fn range_edge(
    call: &WindowCall,
    partition: &Partition,
    at: usize,
    sign: i64,
    offset: &Value,
    run: &Run,
) -> Result<Range<usize>, SqlError> {
    let unsupported = || SqlError::unsupported("RANGE with an offset over this sort key");
    let negative = || Err(SqlError::new(SqlState(*b"22013"), "invalid preceding or following size in window function"));
    let [key] = call.order.as_slice() else { return Err(unsupported()) };
    let here = &partition.keys[at];
    if here.is_null() {
        return Ok(partition.peers(at));
    }
    let forward = (sign > 0) != key.descending;
    match (here, offset) {
        (Value::Time(_) | Value::Timetz(_), Value::Interval(by)) => {
            // A day has an end: what lies behind it is greater than all times. Months and days of the distance do not count.
            if by.micros < 0 {
                return negative();
            }
            let by = if forward { i128::from(by.micros) } else { -i128::from(by.micros) };
            let place = |key: &Value| match key {
                Value::Time(us) => (i128::from(*us), 0),
                Value::Timetz(time) => (i128::from(time.utc_us()), time.west_s),
                _ => (0, 0),
            };
            let (us, zone) = place(here);
            Ok(between(partition, (us + by, zone), place, key.descending))
        }
        (Value::Interval(length), Value::Interval(by)) => {
            if by.total_us() < 0 {
                return negative();
            }
            let by = if forward { by.total_us() } else { -by.total_us() };
            let place = |key: &Value| if let Value::Interval(length) = key { length.total_us() } else { 0 };
            Ok(between(partition, length.total_us() + by, place, key.descending))
        }
        (_, Value::Interval(by)) => {
            if by.total_us() < 0 {
                return negative();
            }
            let zone = run.context.settings.time_zone;
            let by = if forward { *by } else { by.neg()? };
            let limit = moved_us(here, by, zone)?.ok_or_else(unsupported)?;
            let place =
                |key: &Value| i128::from(moved_us(key, Interval::default(), zone).ok().flatten().unwrap_or(limit));
            Ok(between(partition, i128::from(limit), place, key.descending))
        }
        (Value::Numeric(value), Value::Numeric(by)) => {
            if by.signum() < 0 || matches!(by, Numeric::NaN) {
                return negative();
            }
            let limit = if forward { value.add(by)? } else { value.sub(by)? };
            let at =
                |limit| between(partition, Ordered(Value::Numeric(limit)), |key| Ordered(key.clone()), key.descending);
            if matches!(limit, Numeric::NaN) && !matches!(value, Numeric::NaN) {
                let ends = [at(Numeric::NegInfinity), at(Numeric::Infinity)];
                return Ok(all_but_nan(&ends, key.descending));
            }
            Ok(at(limit))
        }
        (Value::Float4(_) | Value::Float8(_), Value::Float8(by)) => {
            if *by < 0.0 || by.is_nan() {
                return negative();
            }
            let float = |value: &Value| match value {
                Value::Float4(v) => f64::from(*v),
                Value::Float8(v) => *v,
                _ => 0.0,
            };
            let limit = if forward { float(here) + by } else { float(here) - by };
            // NaN is greater than all others.
            let place = |n: f64| if n.is_nan() { (true, 0.0) } else { (false, n) };
            let at = |limit| between(partition, place(limit), |key| place(float(key)), key.descending);
            if limit.is_nan() && !float(here).is_nan() {
                let ends = [at(f64::NEG_INFINITY), at(f64::INFINITY)];
                return Ok(all_but_nan(&ends, key.descending));
            }
            Ok(at(limit))
        }
        _ => {
            let (Some(value), Some(by)) = (here.as_i64(), offset.as_i64()) else { return Err(unsupported()) };
            if by < 0 {
                return negative();
            }
            let by = if forward { i128::from(by) } else { -i128::from(by) };
            let place = |key: &Value| i128::from(key.as_i64().unwrap_or_default());
            Ok(between(partition, i128::from(value) + by, place, key.descending))
        }
    }
}

/// As far back as infinity from infinity is everything but NaN, whichever edge it is: from the least key to the greatest.
fn all_but_nan([least, greatest]: &[Range<usize>; 2], descending: bool) -> Range<usize> {
    if descending { greatest.start..least.end } else { least.start..greatest.end }
}

/// Numbers in the order of their type.
struct Ordered(Value);

impl PartialEq for Ordered {
    fn eq(&self, other: &Ordered) -> bool {
        self.partial_cmp(other).is_some_and(std::cmp::Ordering::is_eq)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<std::cmp::Ordering> {
        Some(self.0.compare(&other.0, &SqlType::Numeric(None)))
    }
}

/// From the first row of a partition whose key is not before a limit to the last that is not behind it, NULLs left out.
fn between<T: PartialOrd>(
    partition: &Partition,
    limit: T,
    place: impl Fn(&Value) -> T,
    descending: bool,
) -> Range<usize> {
    let keys = partition.keys.as_slice();
    // They stand together, before all others or behind them.
    let nulls = if keys.first().is_some_and(Value::is_null) { keys.partition_point(Value::is_null) } else { 0 };
    let end = nulls + keys[nulls..].partition_point(|key| !key.is_null());
    let known = &keys[nulls..end];
    let before = |key: &Value| if descending { place(key) > limit } else { place(key) < limit };
    let upto = |key: &Value| if descending { place(key) >= limit } else { place(key) <= limit };
    nulls + known.partition_point(before)..nulls + known.partition_point(upto)
}
