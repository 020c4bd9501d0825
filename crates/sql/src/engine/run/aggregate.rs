//! GROUP BY by hash, one pass for all grouping sets.

use super::sort::{compare_rows, key_values};
use super::{Prefix, Reservation, Rows, Run, Seen, Source, listed, open as open_node};
use crate::SqlError;
use crate::engine::aggregate::{Accumulator, AggregateCall};
use crate::engine::keys::{encode, own_kind};
use crate::engine::node::Node;
use crate::exec::sort::in_order;
use crate::types::{Row, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// One group: its keys and the states of its aggregates.
struct Group {
    keys: Row,
    states: Vec<State>,
}

/// An aggregate of one group; rows are kept if they must be sorted first.
struct State {
    accumulator: Accumulator,
    seen: Option<Seen>,
    kept: Vec<(Row, Row)>,
}

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    let Node::Aggregate { input, keys, calls, sets, .. } = node.as_ref() else { return Ok(listed(Vec::new())) };
    let mut source = open_node(input, prefix, run)?;
    let mut groups = Groups { places: HashMap::new(), list: Vec::new(), reserved: run.reserve() };
    while let Some(row) = source.next()? {
        run.tick()?;
        let values = keys.iter().map(|key| key.value(&row, run)).collect::<Result<Row, _>>()?;
        for (number, set) in sets.iter().enumerate() {
            let mut key = vec![number as u8];
            for ((value, scalar), within) in values.iter().zip(keys).zip(set) {
                if *within {
                    encode(value, own_kind(&scalar.ty), &mut key);
                }
            }
            let place = groups.place(key, &values, set, calls)?;
            for (call, state) in calls.iter().zip(&mut groups.list[place].states) {
                step(call, state, &row, run, &mut groups.reserved)?;
            }
        }
    }
    // A grouping set without keys has a group even without rows.
    for (number, set) in sets.iter().enumerate() {
        if !set.contains(&true) {
            let values = vec![Value::Null; keys.len()];
            groups.place(vec![number as u8], &values, set, calls)?;
        }
    }
    let Groups { list, reserved, .. } = groups;
    Ok(Box::new(Finished {
        groups: list.into_iter(),
        node: node.clone(),
        prefix: prefix.clone(),
        run: run.clone(),
        _reserved: reserved,
    }))
}

struct Groups {
    places: HashMap<Vec<u8>, usize>,
    list: Vec<Group>,
    reserved: Reservation,
}

impl Groups {
    fn place(
        &mut self,
        key: Vec<u8>,
        values: &[Value],
        set: &[bool],
        calls: &[AggregateCall],
    ) -> Result<usize, SqlError> {
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        let keys: Row =
            values.iter().zip(set).map(|(value, within)| if *within { value.clone() } else { Value::Null }).collect();
        self.reserved.row(&keys)?;
        self.reserved.bytes(key.len() + calls.len() * size_of::<State>() + 64)?;
        let states = calls.iter().map(|call| State {
            accumulator: call.start(),
            seen: call.distinct.then(Seen::default),
            kept: Vec::new(),
        });
        self.list.push(Group { keys, states: states.collect() });
        self.places.insert(key, self.list.len() - 1);
        Ok(self.list.len() - 1)
    }
}

fn step(
    call: &AggregateCall,
    state: &mut State,
    row: &[Value],
    run: &Arc<Run>,
    reserved: &mut Reservation,
) -> Result<(), SqlError> {
    if let Some(filter) = &call.filter
        && !filter.truth(row, run)?
    {
        return Ok(());
    }
    if call.args.is_empty() {
        return state.accumulator.add(&[]);
    }
    let args = call.args.iter().map(|arg| arg.value(row, run)).collect::<Result<Row, _>>()?;
    if let Some(seen) = &mut state.seen {
        let mut key = Vec::new();
        args.iter().zip(&call.args).for_each(|(value, scalar)| encode(value, own_kind(&scalar.ty), &mut key));
        if !seen.is_new(key, reserved)? {
            return Ok(());
        }
    }
    if call.order.is_empty() {
        if holds_values(call) {
            reserved.row(&args)?;
        }
        return state.accumulator.add(&args);
    }
    reserved.row(&args)?;
    state.kept.push((key_values(&call.order, row, run)?, args));
    Ok(())
}

/// Whether an accumulator of the call grows with its rows.
fn holds_values(call: &AggregateCall) -> bool {
    use crate::engine::aggregate::Function;
    let function = call.function;
    function.is_ordered_set()
        || matches!(
            function,
            Function::StringAgg | Function::ArrayAgg | Function::JsonAgg { .. } | Function::JsonObjectAgg { .. }
        )
}

struct Finished {
    groups: std::vec::IntoIter<Group>,
    node: Arc<Node>,
    prefix: Prefix,
    run: Arc<Run>,
    _reserved: Reservation,
}

impl Rows for Finished {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        let Node::Aggregate { calls, .. } = self.node.as_ref() else { return Ok(None) };
        let Some(group) = self.groups.next() else { return Ok(None) };
        let mut row = self.prefix.to_vec();
        row.extend(group.keys);
        for (call, state) in calls.iter().zip(group.states) {
            row.push(finish(call, state, &self.run)?);
        }
        Ok(Some(row))
    }
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
    let args = call.args.iter().map(|arg| arg.value(row, run)).collect::<Result<Row, _>>()?;
    accumulator.add(&args)
}
