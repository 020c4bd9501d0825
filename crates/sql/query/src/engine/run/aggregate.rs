//! GROUP BY by hash, one pass for all grouping sets; what does not fit memory in parts of the groups, one after the other ([`groups`](super::groups)).
//!
//! ```text
//!   plain aggregates    rows ──► groups in memory ··· rows of others ──► parts ──► each as the whole before it
//!   states that grow    rows ──► groups in memory, too many: given up; rows again ──► parts ──► each likewise
//!                       one group alone: what DISTINCT and ORDER BY hold is sorted in files
//! ```
//!
//! **Invariant.** A group is finished when its part ends: all of its rows were in it.

use super::super::explain::place;
use super::grouped::StoredKeys;
use super::groups::{Groups, Scratch, State, Way, finish};
use super::leaf::TableRows;
use super::{Prefix, Rows, Run, Source, listed, open as open_node};
use crate::SqlError;
use crate::engine::aggregate::{Accumulator, AggregateCall, Function};
use crate::engine::keys::{KeyKind, encode, own_kind};
use crate::engine::node::Node;
use crate::engine::scalar::Scalar;
use crate::engine::walk;
use crate::exec::spill::Share;
use crate::exec::spill::partitions::{LEVELS_MAX, Part, Partitions};
use crate::explain::Written;
use crate::types::{Row, Value};
use std::sync::Arc;

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    let Node::Aggregate { input, keys, calls, sets, .. } = node.as_ref() else { return Ok(listed(Vec::new())) };
    let kinds = keys.iter().map(|key| own_kind(&key.ty)).collect();
    // Of a row whose group is known nothing is copied.
    let columns = match sets.as_slice() {
        [set] if !set.contains(&false) => keys.iter().map(Scalar::column).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let grouping = Grouping {
        node: node.clone(),
        run: run.clone(),
        kinds,
        columns,
        grows: !calls.iter().all(AggregateCall::is_plain),
        keys_change: keys.iter().any(walk::scalar_is_volatile),
        changes: keys.iter().chain(calls.iter().flat_map(AggregateCall::scalars)).any(walk::scalar_is_volatile),
    };
    let mut source = open_node(input, prefix, run)?;
    let way = match (grouping.grows, keys.is_empty() && sets.len() == 1) {
        (true, _) => Way::Again,
        // One group never waits, and keys that are computed again with a row that waited would be others.
        (false, true) => Way::Fails,
        (false, false) if grouping.keys_change => Way::Fails,
        (false, false) => Way::Waits,
    };
    let mut groups = Groups::new(run, way, 0);
    let (made, parts, written) = (Made::default(), Vec::new(), Written::default());
    let mut finished = Finished { grouping, prefix: prefix.clone(), made, parts, written };
    match finished.grouping.take_all(&mut source, &mut groups, true) {
        Ok(()) => finished.use_groups(groups)?,
        Err(error) if groups.are_given_up(&error) && !walk::is_volatile(node) => {
            drop((groups, source));
            let source = open_node(input, prefix, run)?;
            finished.again(source, 0)?;
        }
        Err(error) => return Err(error),
    }
    Ok(Box::new(finished))
}

/// What rows are grouped by.
struct Grouping {
    node: Arc<Node>,
    run: Arc<Run>,
    kinds: Vec<KeyKind>,
    /// The keys, if they are columns.
    columns: Option<Vec<usize>>,
    /// States grow with their rows.
    grows: bool,
    /// Keys may be others each time.
    keys_change: bool,
    /// They, or what the aggregates are given.
    changes: bool,
}

impl Grouping {
    /// Takes all rows of a source; `whole`: not those of a part.
    fn take_all(&self, source: &mut Source, groups: &mut Groups, whole: bool) -> Result<(), SqlError> {
        let Node::Aggregate { keys, calls, sets, .. } = self.node.as_ref() else { return Ok(()) };
        let (run, mut scratch) = (&self.run, Scratch::default());
        // Without keys there is one group, which need not be looked for.
        let only = match (keys.as_slice(), sets.as_slice()) {
            ([], [set]) => groups.place(&0u16.to_be_bytes(), 0, set, calls, |_| {}, run)?,
            _ => None,
        };
        if let (Some(columns), true) = (&self.columns, whole)
            && let Some(table) = source.table()
            && let Some(stored) = StoredKeys::of(table, columns, calls, run)
        {
            self.take_table(table, stored, columns, groups)?;
        }
        let (mut row, mut key, mut values) = (Row::new(), Vec::new(), Row::new());
        while source.next(&mut row)? {
            run.tick()?;
            if let Some(place) = only {
                groups.step(place, calls, &row, run, &mut scratch)?;
                continue;
            }
            if let Some(columns) = &self.columns {
                key.clear();
                columns.iter().zip(&self.kinds).for_each(|(column, kind)| encode(&row[*column], *kind, &mut key));
                let values = |room: &mut Row| room.extend(columns.iter().map(|column| row[*column].clone()));
                match groups.place(&key, 0, &sets[0], calls, values, run)? {
                    Some(place) => groups.step(place, calls, &row, run, &mut scratch)?,
                    None => groups.wait(&key, &row)?,
                }
                continue;
            }
            // A row of a part is there once for each of its groups that waited.
            let of = if whole { None } else { row.pop().and_then(|number| number.as_i64()) };
            values.clear();
            for scalar in keys {
                values.push(scalar.value(&row, run)?);
            }
            for (number, set) in sets.iter().enumerate() {
                if of.is_some_and(|of| of != number as i64) {
                    continue;
                }
                self.write_key(number, set, &values, &mut key);
                let waited = groups.waits();
                let place = groups.place(&key, number, set, calls, |room| room.extend_from_slice(&values), run)?;
                if whole && !waited && groups.waits() {
                    self.begin_empty(groups)?;
                }
                match place {
                    Some(place) => groups.step(place, calls, &row, run, &mut scratch)?,
                    None => {
                        row.push(Value::Int4(number as i32));
                        groups.wait(&key, &row)?;
                        row.pop();
                    }
                }
            }
        }
        if whole { self.begin_empty(groups) } else { Ok(()) }
    }

    fn write_key(&self, number: usize, set: &[bool], values: &[Value], key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(&(number as u16).to_be_bytes());
        let within = values.iter().zip(&self.kinds).zip(set).filter(|(_, within)| **within);
        within.for_each(|((value, kind), _)| encode(value, *kind, key));
    }

    /// A grouping set without keys has a group even without rows.
    fn begin_empty(&self, groups: &mut Groups) -> Result<(), SqlError> {
        let Node::Aggregate { keys, calls, sets, .. } = self.node.as_ref() else { return Ok(()) };
        for (number, set) in sets.iter().enumerate().filter(|(_, set)| !set.contains(&true)) {
            let key = (number as u16).to_be_bytes();
            groups.place_anyway(&key, vec![Value::Null; keys.len()], number, set, calls, &self.run)?;
        }
        Ok(())
    }

    /// Takes a table's rows where they stand.
    fn take_table(
        &self,
        table: &mut TableRows,
        mut stored: StoredKeys,
        columns: &[usize],
        groups: &mut Groups,
    ) -> Result<(), SqlError> {
        let Node::Aggregate { calls, sets, .. } = self.node.as_ref() else { return Ok(()) };
        let (run, mut scratch, mut key) = (&self.run, Scratch::default(), Vec::new());
        table.each(|table, bytes| {
            if groups.waits() {
                // Of what is read again only these columns are asked for.
                table.decode(bytes, stored.slots())?;
                table.decode(bytes, stored.asked())?;
                let row = table.row();
                key.clear();
                columns.iter().zip(&self.kinds).for_each(|(column, kind)| encode(&row[*column], *kind, &mut key));
                return match groups.find(&key) {
                    Some(place) => groups.step(place, calls, row, run, &mut scratch),
                    None => groups.wait(&key, row),
                };
            }
            let place = match stored.group(bytes)? {
                (place, false) => place,
                (_, true) => {
                    table.decode(bytes, stored.slots())?;
                    let mut values: Row = columns.iter().map(|column| table.row()[*column].clone()).collect();
                    let place = groups.begin(&mut values, 0, &sets[0], calls, stored.key_bytes(), run)?;
                    if groups.waits() {
                        stored.forget();
                        groups.number_all(&self.kinds);
                    }
                    place
                }
            };
            table.decode(bytes, stored.asked())?;
            groups.step(place, calls, table.row(), run, &mut scratch)
        })
    }

    /// Divides all rows of a source by their keys.
    fn divide(&self, mut source: Source, level: u32) -> Result<Vec<Part>, SqlError> {
        let Node::Aggregate { keys, sets, .. } = self.node.as_ref() else { return Ok(Vec::new()) };
        let mut parts = Partitions::new(level, &self.run.context)?;
        let (mut row, mut values, mut key) = (Row::new(), Row::new(), Vec::new());
        while source.next(&mut row)? {
            self.run.tick()?;
            if let Some(columns) = &self.columns {
                key.clear();
                columns.iter().zip(&self.kinds).for_each(|(column, kind)| encode(&row[*column], *kind, &mut key));
                parts.write(&key, &row)?;
                continue;
            }
            let of = if level == 0 { None } else { row.pop().and_then(|number| number.as_i64()) };
            values.clear();
            for scalar in keys {
                values.push(scalar.value(&row, &self.run)?);
            }
            for (number, set) in sets.iter().enumerate() {
                if of.is_some_and(|of| of != number as i64) {
                    continue;
                }
                self.write_key(number, set, &values, &mut key);
                row.push(Value::Int4(number as i32));
                parts.write(&key, &row)?;
                row.pop();
            }
        }
        parts.finish()
    }
}

/// Groups that are being given.
#[derive(Default)]
struct Made {
    /// Groups still to give.
    left: usize,
    keys: std::vec::IntoIter<Value>,
    sets: std::vec::IntoIter<u16>,
    states: Option<std::iter::Flatten<std::vec::IntoIter<Vec<State>>>>,
    _share: Option<Share>,
}

struct Finished {
    grouping: Grouping,
    prefix: Prefix,
    made: Made,
    /// Rows of further groups.
    parts: Vec<Part>,
    written: Written,
}

impl Finished {
    /// Gives these groups next, then those of the rows that wait.
    fn use_groups(&mut self, mut groups: Groups) -> Result<(), SqlError> {
        let held = groups.share.bytes() as u64;
        self.written.memory_bytes = self.written.memory_bytes.max(held);
        let parts = groups.take_rest()?;
        self.add_parts(parts);
        self.made = Made {
            left: groups.count,
            keys: groups.keys.into_iter(),
            sets: groups.sets.into_iter(),
            states: Some(groups.states.into_iter().flatten()),
            _share: Some(groups.share),
        };
        Ok(())
    }

    fn add_parts(&mut self, mut parts: Vec<Part>) {
        parts.retain(|part| part.rows() > 0);
        if let [alone] = parts.as_mut_slice() {
            // To divide it again would not help.
            alone.level = LEVELS_MAX;
        }
        self.written.bytes += parts.iter().map(Part::bytes).sum::<u64>();
        self.written.batches += parts.len() as u64;
        self.parts.append(&mut parts);
    }

    /// What did not fit is read again: divided by its keys, or if that is of no use, with what its states hold in files.
    fn again(&mut self, mut source: Source, level: u32) -> Result<(), SqlError> {
        let Node::Aggregate { keys, .. } = self.grouping.node.as_ref() else { return Ok(()) };
        let run = self.grouping.run.clone();
        if keys.is_empty() || level >= LEVELS_MAX {
            let mut groups = Groups::new(&run, Way::Sorted, level);
            self.grouping.take_all(&mut source, &mut groups, level == 0)?;
            return self.use_groups(groups);
        }
        let parts = self.grouping.divide(source, level)?;
        self.add_parts(parts);
        Ok(())
    }

    /// Makes the groups of the next part; `false`: there is none.
    fn next_part(&mut self) -> Result<bool, SqlError> {
        let Some(part) = self.parts.pop() else { return Ok(false) };
        // What the last ones held is free before.
        self.made = Made::default();
        let (run, level) = (self.grouping.run.clone(), part.level);
        let open = || -> Source { Box::new(part.read(&run.context)) };
        let way = match (self.grouping.grows, level < LEVELS_MAX) {
            (true, _) => Way::Again,
            (false, true) => Way::Waits,
            (false, false) => Way::Fails,
        };
        let mut groups = Groups::new(&run, way, level);
        match self.grouping.take_all(&mut open(), &mut groups, false) {
            Ok(()) => self.use_groups(groups)?,
            Err(error) if groups.are_given_up(&error) && !self.grouping.changes => {
                drop(groups);
                self.again(open(), level)?;
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

impl Rows for Finished {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        while self.made.left == 0 {
            if !self.next_part()? {
                return Ok(false);
            }
        }
        let Node::Aggregate { keys, calls, sets, .. } = self.grouping.node.as_ref() else { return Ok(false) };
        self.made.left -= 1;
        row.clear();
        row.reserve(self.prefix.len() + keys.len() + calls.len());
        row.extend_from_slice(&self.prefix);
        row.extend(self.made.keys.by_ref().take(keys.len()));
        let set = self.made.sets.next().and_then(|number| sets.get(usize::from(number)));
        for (call, state) in calls.iter().zip(self.made.states.iter_mut().flatten()) {
            row.push(match call.function {
                Function::Grouping => Value::Int4(missing(&call.keys, set)),
                _ => {
                    let (value, written) = finish(call, state, &self.grouping.run)?;
                    self.written.bytes += written;
                    value
                }
            });
        }
        Ok(true)
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        if let Some(meters) = &self.grouping.run.context.meters {
            // What was in memory is one more.
            let batches = self.written.batches + 1;
            meters.wrote(place(&self.grouping.node), Written { batches, ..self.written });
        }
    }
}

/// The keys that are not in a grouping set, as bits: the last is the lowest.
fn missing(keys: &[usize], set: Option<&Vec<bool>>) -> i32 {
    let within = |key: usize| set.is_none_or(|set| set.get(key).copied().unwrap_or(true));
    keys.iter().fold(0, |bits, key| bits << 1 | i32::from(!within(*key)))
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
