//! GROUP BY by hash, one pass for all grouping sets.

use super::grouped::StoredKeys;
use super::leaf::TableRows;
use super::sort::{compare_rows, key_values};
use super::{Prefix, Reservation, Rows, Run, Seen, Source, listed, open as open_node};
use crate::SqlError;
use crate::engine::aggregate::{Accumulator, AggregateCall, Function};
use crate::engine::key_table::{KEY_BYTES, KeyTable, Seed};
use crate::engine::keys::{KeyKind, encode, own_kind};
use crate::engine::node::Node;
use crate::engine::scalar::Scalar;
use crate::exec::sort::in_order;
use crate::types::{Row, Value};
use std::sync::Arc;

/// An aggregate of one group; rows are kept if they must be sorted first.
struct State {
    accumulator: Accumulator,
    seen: Option<Box<Seen>>,
    kept: Vec<(Row, Row)>,
}

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    let Node::Aggregate { input, keys, calls, sets, .. } = node.as_ref() else { return Ok(listed(Vec::new())) };
    let mut source = open_node(input, prefix, run)?;
    let mut groups = Groups::new(run);
    let kinds: Vec<KeyKind> = keys.iter().map(|key| own_kind(&key.ty)).collect();
    let (mut row, mut values, mut key, mut scratch) = (Row::new(), Row::new(), Vec::new(), Scratch::default());
    // Without keys there is one group, which need not be looked for.
    let only = match (keys.as_slice(), sets.as_slice()) {
        ([], [set]) => Some(groups.place(&0u16.to_be_bytes(), &[], 0, set, calls)?),
        _ => None,
    };
    // Of a row whose group is known nothing is copied.
    let columns = match sets.as_slice() {
        [set] if !set.contains(&false) => keys.iter().map(Scalar::column).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    if let Some(columns) = &columns
        && let Some(table) = source.table()
        && let Some(stored) = StoredKeys::of(table, columns, calls, run)
    {
        take_table(table, stored, columns, &sets[0], calls, &mut groups, run)?;
    }
    while source.next(&mut row)? {
        run.tick()?;
        if let Some(place) = only {
            groups.step(place, calls, &row, run, &mut scratch)?;
            continue;
        }
        if let Some(columns) = &columns {
            key.clear();
            columns.iter().zip(&kinds).for_each(|(column, kind)| encode(&row[*column], *kind, &mut key));
            let place = match groups.table.number(&key) {
                (place, false) => place,
                (_, true) => {
                    values.clear();
                    values.extend(columns.iter().map(|column| row[*column].clone()));
                    groups.begin(&values, 0, &sets[0], calls, key.len())?
                }
            };
            groups.step(place, calls, &row, run, &mut scratch)?;
            continue;
        }
        values.clear();
        for scalar in keys {
            values.push(scalar.value(&row, run)?);
        }
        for (number, set) in sets.iter().enumerate() {
            key.clear();
            key.extend_from_slice(&(number as u16).to_be_bytes());
            let within = values.iter().zip(&kinds).zip(set).filter(|(_, within)| **within);
            within.for_each(|((value, kind), _)| encode(value, *kind, &mut key));
            let place = groups.place(&key, &values, number, set, calls)?;
            groups.step(place, calls, &row, run, &mut scratch)?;
        }
    }
    // A grouping set without keys has a group even without rows.
    for (number, set) in sets.iter().enumerate() {
        if !set.contains(&true) {
            let values = vec![Value::Null; keys.len()];
            groups.place(&(number as u16).to_be_bytes(), &values, number, set, calls)?;
        }
    }
    Ok(Box::new(Finished {
        left: groups.count,
        keys: groups.keys.into_iter(),
        sets: groups.sets.into_iter(),
        states: groups.states.into_iter().flatten(),
        node: node.clone(),
        prefix: prefix.clone(),
        run: run.clone(),
        _reserved: groups.reserved,
    }))
}

/// Takes a table's rows where they stand.
fn take_table(
    table: &mut TableRows,
    mut stored: StoredKeys,
    columns: &[usize],
    set: &[bool],
    calls: &[AggregateCall],
    groups: &mut Groups,
    run: &Arc<Run>,
) -> Result<(), SqlError> {
    let mut scratch = Scratch::default();
    table.each(|table, bytes| {
        let place = match stored.group(bytes)? {
            (place, false) => place,
            (_, true) => {
                table.decode(bytes, stored.slots())?;
                let values: Row = columns.iter().map(|column| table.row()[*column].clone()).collect();
                groups.begin(&values, 0, set, calls, stored.key_bytes())?
            }
        };
        table.decode(bytes, stored.asked())?;
        groups.step(place, calls, table.row(), run, &mut scratch)
    })
}

/// Groups whose states lie in one piece: what is large is not moved when there are more of them.
const BLOCK_GROUPS: usize = 256;

/// Groups by number: their keys and the states of their aggregates, one group after the other.
struct Groups {
    count: usize,
    /// Numbers of keys, but where these are found otherwise: see [`StoredKeys`].
    table: KeyTable,
    seed: Seed,
    keys: Vec<Value>,
    /// The grouping set of each, if there are several.
    sets: Vec<u16>,
    states: Vec<Vec<State>>,
    reserved: Reservation,
}

impl Groups {
    fn new(run: &Run) -> Groups {
        Groups {
            count: 0,
            table: KeyTable::new(run.seed),
            seed: run.seed,
            keys: Vec::new(),
            sets: Vec::new(),
            states: Vec::new(),
            reserved: run.reserve(),
        }
    }

    /// A row of a group.
    fn step(
        &mut self,
        place: usize,
        calls: &[AggregateCall],
        row: &[Value],
        run: &Arc<Run>,
        scratch: &mut Scratch,
    ) -> Result<(), SqlError> {
        let block = &mut self.states[place / BLOCK_GROUPS];
        let states = &mut block[place % BLOCK_GROUPS * calls.len()..][..calls.len()];
        for (call, state) in calls.iter().zip(states) {
            step(call, state, row, run, &mut self.reserved, scratch)?;
        }
        Ok(())
    }

    /// The number of a group.
    fn place(
        &mut self,
        key: &[u8],
        values: &[Value],
        number: usize,
        set: &[bool],
        calls: &[AggregateCall],
    ) -> Result<usize, SqlError> {
        match self.table.number(key) {
            (place, false) => Ok(place),
            (_, true) => self.begin(values, number, set, calls, key.len()),
        }
    }

    /// Begins the next group; gives its number.
    fn begin(
        &mut self,
        values: &[Value],
        number: usize,
        set: &[bool],
        calls: &[AggregateCall],
        key_bytes: usize,
    ) -> Result<usize, SqlError> {
        let place = self.count;
        self.reserved.row(values)?;
        self.reserved.bytes(key_bytes + KEY_BYTES + calls.len() * size_of::<State>())?;
        self.count += 1;
        if calls.iter().any(|call| call.function == Function::Grouping) {
            self.sets.push(number as u16);
        }
        let keys = values.iter().zip(set);
        self.keys.extend(keys.map(|(value, within)| if *within { value.clone() } else { Value::Null }));
        if place.is_multiple_of(BLOCK_GROUPS) {
            self.states.push(Vec::new());
        }
        self.states[place / BLOCK_GROUPS].extend(calls.iter().map(|call| State {
            accumulator: call.start(),
            seen: call.distinct.then(|| Box::new(Seen::new(self.seed))),
            kept: Vec::new(),
        }));
        Ok(place)
    }
}

/// Room for the arguments of a call, and for their key.
#[derive(Default)]
struct Scratch {
    args: Row,
    key: Vec<u8>,
}

fn step(
    call: &AggregateCall,
    state: &mut State,
    row: &[Value],
    run: &Arc<Run>,
    reserved: &mut Reservation,
    scratch: &mut Scratch,
) -> Result<(), SqlError> {
    if let Some(filter) = &call.filter
        && !filter.truth(row, run)?
    {
        return Ok(());
    }
    match call.args.as_slice() {
        [] => return state.accumulator.add(&[]),
        [arg] if call.is_plain() => {
            state.accumulator.add(std::slice::from_ref(&*arg.value_ref(row, run)?))?;
            return grown(state, reserved);
        }
        _ => {}
    }
    let Scratch { args, key } = scratch;
    args.clear();
    for arg in &call.args {
        args.push(arg.value(row, run)?);
    }
    let sort = key_values(&call.order, row, run)?;
    if let Some(seen) = &mut state.seen {
        key.clear();
        if call.order.is_empty() {
            args.iter().zip(&call.args).for_each(|(value, scalar)| encode(value, own_kind(&scalar.ty), key));
        } else {
            // What the arguments were before they were written as json.
            sort.iter().zip(&call.order).for_each(|(value, by)| encode(value, own_kind(&by.by.ty), key));
        }
        if !seen.is_new(key, reserved)? {
            return Ok(());
        }
    }
    if call.order.is_empty() {
        if call.function.holds_values() {
            reserved.row(args)?;
        }
        state.accumulator.add(args)?;
        return grown(state, reserved);
    }
    reserved.row(args)?;
    state.kept.push((sort, std::mem::take(args)));
    Ok(())
}

/// Takes what a state holds more than before.
#[inline]
fn grown(state: &mut State, reserved: &mut Reservation) -> Result<(), SqlError> {
    match state.accumulator.take_grown() {
        0 => Ok(()),
        bytes => reserved.bytes(bytes),
    }
}

struct Finished {
    /// Groups still to give.
    left: usize,
    keys: std::vec::IntoIter<Value>,
    sets: std::vec::IntoIter<u16>,
    states: std::iter::Flatten<std::vec::IntoIter<Vec<State>>>,
    node: Arc<Node>,
    prefix: Prefix,
    run: Arc<Run>,
    _reserved: Reservation,
}

impl Rows for Finished {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Node::Aggregate { keys, calls, sets, .. } = self.node.as_ref() else { return Ok(false) };
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        row.clear();
        row.reserve(self.prefix.len() + keys.len() + calls.len());
        row.extend_from_slice(&self.prefix);
        row.extend(self.keys.by_ref().take(keys.len()));
        let set = self.sets.next().and_then(|number| sets.get(usize::from(number)));
        for (call, state) in calls.iter().zip(self.states.by_ref()) {
            row.push(match call.function {
                Function::Grouping => Value::Int4(missing(&call.keys, set)),
                _ => finish(call, state, &self.run)?,
            });
        }
        Ok(true)
    }
}

/// The keys that are not in a grouping set, as bits: the last is the lowest.
fn missing(keys: &[usize], set: Option<&Vec<bool>>) -> i32 {
    let within = |key: usize| set.is_none_or(|set| set.get(key).copied().unwrap_or(true));
    keys.iter().fold(0, |bits, key| bits << 1 | i32::from(!within(*key)))
}

fn finish(call: &AggregateCall, mut state: State, run: &Run) -> Result<Value, SqlError> {
    let kept = in_order(state.kept, |(a, _), (b, _)| compare_rows(a, b, &call.order), &run.context)?;
    for (_, args) in &kept {
        run.tick()?;
        state.accumulator.add(args)?;
    }
    state.accumulator.finish(&run.context)
}

/// Aggregates as window functions feed rows that were sorted before: DISTINCT is not allowed there.
pub(super) fn feed(
    call: &AggregateCall,
    accumulator: &mut Accumulator,
    row: &[Value],
    run: &Arc<Run>,
) -> Result<(), SqlError> {
    if let Some(filter) = &call.filter
        && !filter.truth(row, run)?
    {
        return Ok(());
    }
    match call.args.as_slice() {
        [] => accumulator.add(&[]),
        [arg] => accumulator.add(std::slice::from_ref(&*arg.value_ref(row, run)?)),
        args => accumulator.add(&args.iter().map(|arg| arg.value(row, run)).collect::<Result<Row, _>>()?),
    }
}
