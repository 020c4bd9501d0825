//! Groups in memory: their keys, and the states of their aggregates.
//!
//! **Memory.** A group that finds no room is the last one that is taken in; from then on rows of those that are there go on, and others wait in parts
//! ([`Groups::wait`]). Where states grow with their rows (DISTINCT, ORDER BY, `array_agg`) that would not help: then the groups are
//! [given up](Groups::are_given_up), and their rows are read again, divided by their keys ([`super::aggregate`]).

use super::sort::{compare_rows, key_values};
use super::{Run, Seen};
use crate::engine::aggregate::{Accumulator, AggregateCall, Function};
use crate::engine::key_table::{KEY_BYTES, KeyTable, Seed};
use crate::engine::keys::{KeyKind, encode, own_kind};
use crate::exec::sort::{Order, OrderKey, in_order, row_bytes};
use crate::exec::spill::Share;
use crate::exec::spill::partitions::{Part, Partitions};
use crate::exec::spill::sorter::Sorter;
use crate::types::{Row, Value, wide_bytes};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// An aggregate of one group.
pub(super) struct State {
    accumulator: Accumulator,
    /// Of those with DISTINCT or ORDER BY: groups may be many, and most states have neither.
    held: Option<Box<Held>>,
}

/// What stands before an aggregate with DISTINCT or ORDER BY.
struct Held {
    seen: Option<Seen>,
    /// Rows that must be sorted first: their sort keys, and the arguments.
    kept: Vec<(Row, Row)>,
    /// In place of both, where they do not fit memory: the sort keys, then the arguments.
    sorter: Option<Sorter>,
}

/// Whether something stands before an aggregate.
fn is_held(call: &AggregateCall) -> bool {
    call.distinct || !call.order.is_empty()
}

/// What an aggregate's state of one group takes from the start.
fn state_bytes(call: &AggregateCall) -> usize {
    size_of::<State>() + call.state_bytes() + if is_held(call) { size_of::<Held>() } else { 0 }
}

/// Groups whose states lie in one piece: what is large is not moved when there are more of them.
const BLOCK_GROUPS: usize = 256;

/// How groups are made where memory ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Rows of further groups wait; if those that are there grow beyond it, all are given up likewise.
    Waits,
    /// All of them are given up, and their rows read again.
    Again,
    /// What DISTINCT and ORDER BY hold is sorted, in files if need be; the rest is an error.
    Sorted,
    /// It is an error.
    Fails,
}

/// Groups by number: their keys and the states of their aggregates, one group after the other.
pub(super) struct Groups {
    pub(super) count: usize,
    /// Numbers of keys, but where these are found otherwise: see [`super::grouped::StoredKeys`].
    table: KeyTable,
    seed: Seed,
    pub(super) keys: Vec<Value>,
    /// The grouping set of each, if there are several.
    pub(super) sets: Vec<u16>,
    pub(super) states: Vec<Vec<State>>,
    pub(super) share: Share,
    way: Way,
    /// There was no room, and they are to be given up.
    full: bool,
    /// Rows of groups that are not there.
    rest: Option<Partitions>,
    level: u32,
    /// For the values of a new one.
    room: Row,
}

impl Groups {
    pub(super) fn new(run: &Run, way: Way, level: u32) -> Groups {
        Groups {
            count: 0,
            table: KeyTable::new(run.seed),
            seed: run.seed,
            keys: Vec::new(),
            sets: Vec::new(),
            states: Vec::new(),
            share: Share::new(&run.context),
            way,
            full: false,
            rest: None,
            level,
            room: Row::new(),
        }
    }

    /// Whether they are to be given up: the error that came is no error then. A value that was being made for one of them may have been what found
    /// no room.
    pub(super) fn are_given_up(&self, error: &SqlError) -> bool {
        let may_be = matches!(self.way, Way::Waits | Way::Again);
        self.full || may_be && self.count > 0 && error.state == SqlState::OUT_OF_MEMORY
    }

    /// Whether rows of other groups wait.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        self.rest.is_some()
    }

    /// The rows of other groups.
    pub(super) fn take_rest(&mut self) -> Result<Vec<Part>, SqlError> {
        self.rest.take().map_or(Ok(Vec::new()), Partitions::finish)
    }

    /// A row of a group.
    #[inline]
    pub(super) fn step(
        &mut self,
        place: usize,
        calls: &[AggregateCall],
        row: &[Value],
        run: &Arc<Run>,
        scratch: &mut Scratch,
    ) -> Result<(), SqlError> {
        let block = &mut self.states[place / BLOCK_GROUPS];
        let states = &mut block[place % BLOCK_GROUPS * calls.len()..][..calls.len()];
        let mut memory = Memory { share: &mut self.share, way: self.way, full: &mut self.full };
        for (call, state) in calls.iter().zip(states) {
            step(call, state, row, run, &mut memory, scratch)?;
        }
        Ok(())
    }

    /// The number of the group of a key, whose values are asked for if it is new; none: its rows wait.
    #[inline]
    pub(super) fn place(
        &mut self,
        key: &[u8],
        number: usize,
        set: &[bool],
        calls: &[AggregateCall],
        values: impl FnOnce(&mut Row),
        run: &Arc<Run>,
    ) -> Result<Option<usize>, SqlError> {
        if self.rest.is_some() {
            return Ok(self.table.find(key));
        }
        match self.table.number(key) {
            (place, false) => Ok(Some(place)),
            (_, true) => {
                let mut room = std::mem::take(&mut self.room);
                values(&mut room);
                let place = self.begin(&mut room, number, set, calls, key.len(), run);
                self.room = room;
                place.map(Some)
            }
        }
    }

    /// As [`Groups::place`], for a group that is there without rows, even if those of others wait.
    pub(super) fn place_anyway(
        &mut self,
        key: &[u8],
        mut values: Row,
        number: usize,
        set: &[bool],
        calls: &[AggregateCall],
        run: &Arc<Run>,
    ) -> Result<(), SqlError> {
        if self.table.number(key).1 {
            let rest = self.rest.take();
            let begun = self.begin(&mut values, number, set, calls, key.len(), run);
            self.rest = rest.or(self.rest.take());
            begun?;
        }
        Ok(())
    }

    /// Begins the next group, whose values are taken out of theirs; gives its number.
    pub(super) fn begin(
        &mut self,
        values: &mut Row,
        number: usize,
        set: &[bool],
        calls: &[AggregateCall],
        key_bytes: usize,
        run: &Arc<Run>,
    ) -> Result<usize, SqlError> {
        let place = self.count;
        let bytes = row_bytes(values) + key_bytes + KEY_BYTES + calls.iter().map(state_bytes).sum::<usize>();
        let room = Memory { share: &mut self.share, way: self.way, full: &mut self.full }.take_group(bytes)?;
        self.count += 1;
        if calls.iter().any(|call| call.function == Function::Grouping) {
            self.sets.push(number as u16);
        }
        let keys = values.drain(..).zip(set);
        self.keys.extend(keys.map(|(value, within)| if *within { value } else { Value::Null }));
        if place.is_multiple_of(BLOCK_GROUPS) {
            self.states.push(Vec::new());
        }
        let sorted = self.way == Way::Sorted;
        self.states[place / BLOCK_GROUPS].extend(calls.iter().map(|call| {
            let held = || {
                Box::new(Held {
                    seen: (call.distinct && !sorted).then(|| Seen::new(self.seed)),
                    kept: Vec::new(),
                    sorter: sorted.then(|| Sorter::new(order_of(call), None, &run.context).modest()),
                })
            };
            State { accumulator: call.start(), held: is_held(call).then(held) }
        }));
        if !room {
            self.rest = Some(Partitions::new(self.level, &run.context)?);
        }
        Ok(place)
    }

    /// Numbers the keys of all groups, which were found otherwise before: `kinds` are those of their values.
    pub(super) fn number_all(&mut self, kinds: &[KeyKind]) {
        let mut key = Vec::new();
        for values in self.keys.chunks(kinds.len().max(1)) {
            key.clear();
            values.iter().zip(kinds).for_each(|(value, kind)| encode(value, *kind, &mut key));
            self.table.number(&key);
        }
    }

    /// Whether the group of a key is there.
    pub(super) fn find(&self, key: &[u8]) -> Option<usize> {
        self.table.find(key)
    }

    /// Puts a row of another group with those that wait.
    pub(super) fn wait(&mut self, key: &[u8], row: &[Value]) -> Result<(), SqlError> {
        self.rest.as_mut().map_or(Ok(()), |rest| rest.write(key, row))
    }
}

/// The memory of groups, and what is done where it ends.
struct Memory<'a> {
    share: &'a mut Share,
    way: Way,
    full: &'a mut bool,
}

impl Memory<'_> {
    /// Takes what a state grows by.
    #[inline]
    fn take(&mut self, bytes: usize) -> Result<(), SqlError> {
        if self.way == Way::Again {
            *self.full = !self.share.take(bytes);
            // The error of who cannot read again: no memory has so much.
            return if *self.full { self.share.take_fixed(isize::MAX as usize) } else { Ok(()) };
        }
        let taken = self.share.take_fixed(bytes);
        *self.full = taken.is_err() && self.way == Way::Waits;
        taken
    }

    /// Takes what a group needs; whether there is room for more of them.
    fn take_group(&mut self, bytes: usize) -> Result<bool, SqlError> {
        if self.way != Way::Waits {
            return self.take(bytes).map(|()| true);
        }
        let room = self.share.take(bytes);
        if !room {
            self.share.take_anyway(bytes);
        }
        Ok(room)
    }
}

/// How the rows of a call are sorted: its sort keys first, or for DISTINCT alone the arguments.
fn order_of(call: &AggregateCall) -> Order {
    let key = |(place, by): (usize, (&crate::types::SqlType, bool, bool))| {
        let (ty, descending, nulls_first) = by;
        OrderKey { place, ty: ty.clone(), descending, nulls_first }
    };
    let own = call.order.iter().map(|key| (&key.by.ty, key.descending, key.nulls_first));
    let args = call.args.iter().filter(|_| call.order.is_empty()).map(|arg| (&arg.ty, false, false));
    Order(own.chain(args).enumerate().map(key).collect())
}

/// Room for the arguments of a call, and for their key.
#[derive(Default)]
pub(super) struct Scratch {
    args: Row,
    key: Vec<u8>,
}

/// What tells the rows of a DISTINCT call apart: what the arguments were before they were written as json, where it is sorted.
fn distinct_key(call: &AggregateCall, sort: &[Value], args: &[Value], key: &mut Vec<u8>) {
    key.clear();
    if call.order.is_empty() {
        args.iter().zip(&call.args).for_each(|(value, scalar)| encode(value, own_kind(&scalar.ty), key));
    } else {
        sort.iter().zip(&call.order).for_each(|(value, by)| encode(value, own_kind(&by.by.ty), key));
    }
}

#[inline]
fn step(
    call: &AggregateCall,
    state: &mut State,
    row: &[Value],
    run: &Arc<Run>,
    memory: &mut Memory<'_>,
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
            return grown(state, memory);
        }
        _ => {}
    }
    let Scratch { args, key } = scratch;
    args.clear();
    for arg in &call.args {
        args.push(arg.value(row, run)?);
    }
    let mut sort = key_values(&call.order, row, run)?;
    if let Some(held) = &mut state.held {
        if let Some(sorter) = &mut held.sorter {
            sort.append(args);
            return sorter.push(sort).map(drop);
        }
        if let Some(seen) = &mut held.seen {
            distinct_key(call, &sort, args, key);
            let (_, new) = seen.0.number(key);
            if !new {
                return Ok(());
            }
            memory.take(key.len() + KEY_BYTES)?;
        }
        if !call.order.is_empty() {
            memory.take(row_bytes(args))?;
            held.kept.push((sort, std::mem::take(args)));
            return Ok(());
        }
    }
    if call.function.holds_values() {
        memory.take(row_bytes(args))?;
    }
    state.accumulator.add(args)?;
    grown(state, memory)
}

/// Takes what a state holds more than before.
#[inline]
fn grown(state: &mut State, memory: &mut Memory<'_>) -> Result<(), SqlError> {
    match state.accumulator.take_grown() {
        0 => Ok(()),
        bytes => memory.take(bytes),
    }
}

/// The result of a call, and what was written to files for it.
pub(super) fn finish(call: &AggregateCall, mut state: State, run: &Run) -> Result<(Value, u64), SqlError> {
    let mut written = 0;
    let mut reserved = run.reserve();
    let (sorter, kept) = state.held.map_or((None, Vec::new()), |held| (held.sorter, held.kept));
    if let Some(sorter) = sorter {
        let (mut rows, done) = sorter.finish()?;
        written = done.disk_bytes;
        let (mut row, mut key, mut last) = (Row::new(), Vec::new(), None);
        while rows.next(&mut row)? {
            run.tick()?;
            let (sort, args) = row.split_at(call.order.len());
            if call.distinct {
                distinct_key(call, sort, args, &mut key);
                if last.as_ref() == Some(&key) {
                    continue;
                }
                std::mem::swap(last.get_or_insert_default(), &mut key);
            }
            let before = state.accumulator.held_bytes();
            state.accumulator.add(args)?;
            let own = state.accumulator.held_bytes().saturating_sub(before) + state.accumulator.take_grown();
            // What an array or a percentile is made of is kept value by value.
            let kept = if state.accumulator.keeps_values() { args.first().map_or(0, wide_bytes) } else { 0 };
            if own + kept > 0 {
                reserved.bytes(own + kept)?;
            }
        }
    }
    let kept = in_order(kept, |(a, _), (b, _)| compare_rows(a, b, &call.order), &run.context)?;
    for (_, args) in &kept {
        run.tick()?;
        state.accumulator.add(args)?;
    }
    Ok((state.accumulator.finish(call, &run.context)?, written))
}
