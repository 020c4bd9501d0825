//! Nested loops over tables, each read by its access path: the row source under every direct statement.
//!
//! Level 0 is read once; level n once for each row of the levels before it, with keys made from that row. A joined row has a
//! fixed place for every column of every table; a level fills the places of its own. One table is the case of one level.
//!
//! Invariants
//! 1. Rows come out in key order of level 0's path, then of level 1's, ...: what lets an index satisfy ORDER BY.
//! 2. With [`Level::lock`], a row that is found by one key is locked before it is read, so a queue of writers on a hot row reads
//!    one after the other instead of failing to certify what it read before it waited.
//! 3. With [`Level::skips`] nothing is remembered as read but a row under its lock.
//! 4. Of a whole table whose rows must satisfy conditions, those in front are asked of a row's bytes where they can be ([`super::byte_filter`]), and columns
//!    are decoded as the others ask for them: most rows are left at the first. As everywhere the conditions are asked in their order, and none after
//!    one that is not true.
//! 5. At most [`CHUNK_ROWS_MAX`] rows of each level are in memory, and where rows are far as many joined ones as [`super::batches`] says.

use super::ahead::{AHEAD_ROWS, KEY_BYTES_MAX};
use super::batches::{Batch, Left};
use super::byte_filter::{Around, ByteFilter};
use super::evaluate;
use super::key_lock::KeyLock;
use super::metered::LoopMeter;
use super::path::Path;
use super::sort::Reserved;
use super::span::Keys;
use super::stretch::LastStretch;
use super::table::{EntryColumns, TableAccess};
use crate::SqlError;
use crate::context::StatementContext;
use crate::expr::Expr;
use crate::transaction::{LockMode, LockWait, Pick, ScanChunk, ScanRequest, Span, Sweep, Transaction};
use crate::types::Value;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Rows in the first chunk of a scan without a limit: short ranges are the rule.
pub(crate) const CHUNK_ROWS_FIRST: usize = 64;
/// Rows in the greatest chunk.
pub const CHUNK_ROWS_MAX: usize = 1024;
/// Each chunk of a scan is so many times the one before.
const CHUNK_GROWTH: usize = 4;
/// Chunks from here on are looked at in their bytes: few rows are quicker one by one.
const SWEPT_ROWS_MIN: usize = 256;

/// One table of a nested loop, settled when the statement is planned.
#[derive(Debug, Clone)]
pub struct Level {
    /// The table.
    pub access: Arc<TableAccess>,
    /// What the statement calls it.
    pub alias: Arc<str>,
    /// First place of its columns in the joined row.
    pub base: usize,
    /// Slots to decode.
    pub slots: Vec<usize>,
    /// How its rows are found.
    pub path: Path,
    /// What a row must satisfy beyond the path (ON of a left join), over the joined row so far.
    pub filter: Option<Expr>,
    /// Left join: without a match the columns are NULL.
    pub outer: bool,
    /// Left join: WHERE on the joined row, whether matched or not.
    pub after: Option<Expr>,
    /// Lock rows found by one key before reading them.
    pub lock: Option<(LockMode, LockWait)>,
    /// UPDATE: how strongly such a row is locked, where that depends on the row.
    pub key_lock: Option<Arc<KeyLock>>,
    /// Rows are taken from the entries of the path's index, which hold all of `slots`; the key and the bytes of a row are its entry's then.
    pub entries: Option<EntryColumns>,
    /// SKIP LOCKED: rows are looked at, and only those that are locked afterwards count as read (decision 55).
    pub skips: bool,
    /// Rows that its path is thought to find, each time.
    pub expected: f64,
}

impl Level {
    /// Spares the way from index entries to their rows, where an entry holds all that is asked for. Not for who wants the stored rows.
    pub fn read_entries(&mut self) {
        if self.path.index != 0 && self.lock.is_none() {
            self.entries = self.access.entry_columns(self.access.index(self.path.index), &self.slots);
        }
    }

    /// Its columns in the joined row.
    pub fn places(&self) -> Range<usize> {
        self.base..self.base + self.access.columns.len()
    }

    /// Whether what its path finds are entries that lead to its rows.
    pub(super) fn reads_rows(&self) -> bool {
        self.path.index != 0 && self.entries.is_none()
    }

    /// Whether many of its rows may be looked at in the bytes of their chunk.
    fn is_swept(&self) -> bool {
        !self.skips && !self.path.reverse && !self.reads_rows()
    }

    /// Decodes a row that was found into its places.
    fn decode(&self, key: &[u8], stored: &[u8], places: &mut [Value]) -> Result<(), SqlError> {
        let access = &self.access;
        match &self.entries {
            None => access.decode(stored, &self.slots, places),
            Some(held) => access.decode_entry(access.index(self.path.index), held, (key, stored), places),
        }
    }
}

/// A running nested loop.
pub struct Cursor {
    pub(super) context: Arc<StatementContext>,
    pub(super) levels: Arc<[Level]>,
    states: Vec<State>,
    pub(super) row: Vec<Value>,
    /// Levels opened so far: 0 before the first row.
    open: usize,
    /// Rows that the caller wants, if it knows.
    hint: Option<usize>,
    /// Of each level: rows before it that are joined next. None where levels are entered row by row.
    pub(super) batches: Vec<Batch>,
    /// Rows of the last level are not decoded but by [`Cursor::decode`].
    bare: bool,
    /// See [`Cursor::locks_ahead`].
    pub(super) locks_ahead: bool,
    /// EXPLAIN ANALYZE.
    meter: Option<Box<LoopMeter>>,
}

/// A condition of a filter, and the columns that it needs beyond those before it; without a condition, all that is left.
struct Stage {
    slots: Vec<usize>,
    condition: Option<Expr>,
}

/// The filter of a level: what is asked of the bytes, then stages; `None` where it is asked as a whole.
fn stages(level: &Level, params: &[Value]) -> Option<(ByteFilter, Vec<Stage>)> {
    let plain = level.is_swept() && !level.path.is_narrowed() && level.entries.is_none();
    let parts = match &level.filter {
        Some(Expr::And(parts)) => parts.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => return None,
    };
    if !plain || level.outer || level.after.is_some() {
        return None;
    }
    // (Places of the row before this level's are others each time that it is entered.)
    let around = Around { columns: &level.access.columns, base: level.base, row: &[], params };
    let (tests, asked) = ByteFilter::compile(parts.iter(), around);
    let parts = &parts[asked..];
    let mut left = level.slots.clone();
    let mut stages = Vec::with_capacity(parts.len() + 1);
    for part in parts {
        let asked = part.columns();
        let (slots, others) = left.into_iter().partition(|slot| asked.contains(&(level.base + slot)));
        stages.push(Stage { slots, condition: Some(part.clone()) });
        left = others;
    }
    stages.push(Stage { slots: left, condition: None });
    Some((tests, stages))
}

#[derive(Default)]
struct State {
    stages: Option<(ByteFilter, Vec<Stage>)>,
    /// Keys still to read, last first.
    keys: Vec<Keys>,
    /// Of the statement's memory, for those that several ways have led to.
    held: Option<Reserved>,
    /// How many of them were looked at one by one.
    looked: usize,
    /// How many of those that come next were said to be read, where several ways have led to them.
    said: usize,
    rest: Option<Span>,
    /// Few rows are looked at in their bytes, too; those that were last are here.
    sweeps_few: Option<Arc<LastStretch>>,
    rows: Rows,
    chunk: usize,
    matched: bool,
    row: Found,
    /// How the row was locked before it was read.
    locked: LockMode,
}

/// Rows of a chunk that are left.
enum Rows {
    /// Each with a key and a value of its own.
    Apart(std::vec::IntoIter<(Bytes, Bytes)>),
    /// All in the same bytes: see [`Sweep`].
    Together(Bytes, std::vec::IntoIter<[u32; 4]>),
}

impl Default for Rows {
    fn default() -> Rows {
        Rows::Apart(Vec::new().into_iter())
    }
}

/// The current row of a level.
enum Found {
    /// Its key and its bytes; both are empty if a left join found none.
    Apart(Bytes, Bytes),
    /// Where they lie in the bytes of the chunk.
    Together([u32; 4]),
}

impl Default for Found {
    fn default() -> Found {
        Found::Apart(Bytes::new(), Bytes::new())
    }
}

impl State {
    /// It is at its end.
    fn clear(&mut self) {
        *self = State { sweeps_few: self.sweeps_few.take(), ..State::default() };
    }
    fn part(&self, from: u32, to: u32) -> &[u8] {
        let Rows::Together(bytes, _) = &self.rows else { return &[] };
        bytes.get(from as usize..to as usize).unwrap_or_default()
    }
    fn key(&self) -> &[u8] {
        match &self.row {
            Found::Apart(key, _) => key,
            Found::Together(at) => self.part(at[0], at[1]),
        }
    }
    fn stored(&self) -> &[u8] {
        match &self.row {
            Found::Apart(_, stored) => stored,
            Found::Together(at) => self.part(at[2], at[3]),
        }
    }
    /// Key and bytes of the row, which keep the chunk that it lies in.
    fn kept(&self) -> (Bytes, Bytes) {
        match (&self.row, &self.rows) {
            (Found::Apart(key, stored), _) => (key.clone(), stored.clone()),
            (Found::Together(_), Rows::Together(bytes, _)) => {
                (bytes.slice_ref(self.key()), bytes.slice_ref(self.stored()))
            }
            (Found::Together(_), _) => (Bytes::new(), Bytes::new()),
        }
    }
}

impl Cursor {
    /// A cursor over rows of `width` places. `hint`: how many rows the caller wants, if it knows.
    pub fn new(context: &Arc<StatementContext>, levels: &Arc<[Level]>, width: usize, hint: Option<usize>) -> Self {
        let mut states = Vec::with_capacity(levels.len());
        states.resize_with(levels.len(), State::default);
        Cursor {
            context: context.clone(),
            levels: levels.clone(),
            states,
            row: std::iter::repeat_with(|| Value::Null).take(width).collect(),
            open: 0,
            hint,
            batches: Vec::new(),
            bare: false,
            locks_ahead: false,
            meter: None,
        }
    }

    /// If the statement is measured, what its tables do is.
    pub(super) fn metered(mut self) -> Self {
        self.meter = LoopMeter::new(&self.context, &self.levels);
        self
    }

    /// It is read to its end, so the rows that its keys lead to may be locked together. Not for a SELECT: a LIMIT, or a portal that is not read on, would leave
    /// rows locked that it never gave.
    pub(crate) fn locks_ahead(mut self) -> Self {
        self.locks_ahead = true;
        self
    }

    /// Looks at few rows in the bytes of their chunk, too, as long as that can be had: for who reads many short spans one after the other, others perhaps the same.
    pub(crate) fn sweep_few(&mut self, last: &Arc<LastStretch>) {
        self.states.iter_mut().for_each(|state| state.sweeps_few = Some(last.clone()));
    }

    /// Leaves decoding to the caller, for rows of one table under no condition; `false`: there is one.
    pub fn bare(&mut self) -> bool {
        let unconditional = |level: &Level| level.filter.is_none() && level.after.is_none() && level.entries.is_none();
        self.bare = self.levels.len() == 1 && self.levels.iter().all(unconditional);
        self.bare
    }

    /// The joined row; valid after [`Cursor::advance`] gave `true`.
    pub fn row(&self) -> &[Value] {
        &self.row
    }

    /// The joined row, to be taken from.
    pub(crate) fn row_mut(&mut self) -> &mut Vec<Value> {
        &mut self.row
    }

    /// As [`Cursor::advance`], for one table, to the next row of those at hand in the bytes of one chunk: `false` at its end.
    pub(super) fn advance_at_hand(&mut self) -> Result<bool, SqlError> {
        let Cursor { context, levels, states, row, meter, .. } = self;
        let ([level], [state]) = (&levels[..], &mut states[..]) else { return Ok(false) };
        if level.outer || level.after.is_some() {
            return Ok(false);
        }
        loop {
            let Rows::Together(_, places) = &mut state.rows else { return Ok(false) };
            let Some(at) = places.next() else { return Ok(false) };
            state.row = Found::Together(at);
            let found = match state.stages.is_some() {
                true => passes(state, level, context, row)?,
                false => {
                    level.decode(state.key(), state.stored(), &mut row[level.places()])?;
                    holds(level.filter.as_ref(), row, context)?
                }
            };
            if let Some(meter) = meter {
                if found { meter.stepped(0, 0, 1) } else { meter.removed(0) }
            }
            if found {
                return Ok(true);
            }
        }
    }

    /// The bytes that the current row of a level lies in, with others, and where its key and its value do.
    pub(super) fn place(&self, level: usize) -> Option<(&Bytes, [u32; 4])> {
        match (&self.states[level].row, &self.states[level].rows) {
            (Found::Together(place), Rows::Together(bytes, _)) => Some((bytes, *place)),
            _ => None,
        }
    }

    /// Key of the current row of a level; empty if a left join found none.
    pub fn key(&self, level: usize) -> Bytes {
        match &self.states[level].row {
            Found::Apart(key, _) => key.clone(),
            // A copy: who keeps a few rows does not keep all of their chunk.
            Found::Together(_) => Bytes::copy_from_slice(self.states[level].key()),
        }
    }

    /// Bytes of the current row of a level.
    pub fn stored(&self, level: usize) -> Bytes {
        match &self.states[level].row {
            Found::Apart(_, stored) => stored.clone(),
            Found::Together(_) => Bytes::copy_from_slice(self.states[level].stored()),
        }
    }

    /// As [`Cursor::stored`], for who does not keep it: it keeps the chunk that the row lies in.
    pub fn stored_lent(&self, level: usize) -> Bytes {
        let state = &self.states[level];
        match (&state.row, &state.rows) {
            (Found::Apart(_, stored), _) => stored.clone(),
            (Found::Together([.., from, to]), Rows::Together(bytes, _))
                if from <= to && *to as usize <= bytes.len() =>
            {
                bytes.slice(*from as usize..*to as usize)
            }
            (Found::Together(_), _) => Bytes::new(),
        }
    }

    /// The bytes of the current row of a [bare](Cursor::bare) cursor.
    #[inline]
    pub(crate) fn stored_ref(&self) -> &[u8] {
        self.states.last().map_or(&[], State::stored)
    }

    /// How the current row of a level was locked by [`Level::lock`].
    pub fn locked(&self, level: usize) -> LockMode {
        self.states[level].locked
    }

    /// The rows of a [bare](Cursor::bare) cursor that are at hand behind the current one: their bytes, and where each lies in them. It goes on
    /// behind them.
    pub(crate) fn take_chunk(&mut self) -> Option<(Bytes, std::vec::IntoIter<[u32; 4]>)> {
        let state = self.states.last_mut().filter(|_| self.bare)?;
        match &mut state.rows {
            Rows::Together(bytes, places) => {
                let places = std::mem::take(places);
                if let Some(meter) = &mut self.meter {
                    meter.stepped(self.levels.len() - 1, 0, places.len() as u64);
                }
                Some((bytes.clone(), places))
            }
            Rows::Apart(_) => None,
        }
    }

    /// Decodes columns of the last level from a row's bytes.
    pub(crate) fn decode_from(&mut self, stored: &[u8], slots: &[usize]) -> Result<(), SqlError> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        level.access.decode(stored, slots, &mut self.row[level.places()])
    }

    /// Decodes further columns of the current row of the last level: those that only rows which the caller wants need.
    pub fn decode(&mut self, slots: &[usize]) -> Result<(), SqlError> {
        let (Some(level), Some(state)) = (self.levels.last(), self.states.last()) else { return Ok(()) };
        let places = level.places();
        if slots.is_empty() { Ok(()) } else { level.access.decode(state.stored(), slots, &mut self.row[places]) }
    }

    /// Goes back to where it began, and lets go of the rows that it has at hand.
    pub(crate) fn rewind(&mut self) {
        self.open = 0;
        self.batches.clear();
        for state in &mut self.states {
            (state.rows, state.row, state.rest) = (Rows::default(), Found::default(), None);
            state.keys.clear();
            state.held = None;
        }
    }

    /// Moves to the next joined row; `false` at the end.
    pub fn advance(&mut self) -> Result<bool, SqlError> {
        self.advance_picking(None)
    }

    /// As [`Cursor::advance`], for who asks something of the bytes of a [bare](Cursor::bare) cursor's rows: of those that `pick` does not want some may be passed. It must not use
    /// the transaction.
    pub(crate) fn advance_picking(&mut self, mut pick: Option<&mut Pick<'_>>) -> Result<bool, SqlError> {
        let last = self.levels.len() - 1;
        if self.open == 0 {
            self.enter(0, None)?;
            self.open = 1;
            self.batches = Batch::of_levels(&self.levels, self.hint, self.locks_ahead, &self.context);
        }
        if !self.batches.is_empty() {
            return self.pull(last);
        }
        loop {
            let at = self.open - 1;
            if !self.step_picking(at, pick.as_deref_mut())? {
                self.open -= 1;
                if self.open == 0 {
                    // A cursor that is asked again stays at its end.
                    self.states[0].clear();
                    self.open = 1;
                    return Ok(false);
                }
                continue;
            }
            if at == last {
                return Ok(true);
            }
            self.enter(at + 1, None)?;
            self.open += 1;
        }
    }

    /// Starts reading a level for the current row of those before it; `keys`: what its path says of that row, if it was asked.
    pub(super) fn enter(&mut self, at: usize, keys: Option<Vec<Keys>>) -> Result<(), SqlError> {
        if self.meter.is_none() {
            return self.enter_level(at, keys);
        }
        let began_us = self.context.kv.now_us();
        let entered = self.enter_level(at, keys);
        let us = self.context.kv.now_us() - began_us;
        self.meter.iter_mut().for_each(|meter| meter.entered(at, us));
        entered
    }

    fn enter_level(&mut self, at: usize, keys: Option<Vec<Keys>>) -> Result<(), SqlError> {
        let level = &self.levels[at];
        let chunk = self.first_chunk(level);
        let mut keys = match keys {
            Some(keys) => keys,
            None => {
                let keys = level.path.keys(&level.access, &self.row, &self.context)?;
                if level.path.ways.is_empty() {
                    super::ahead::rows_of_keys(level, keys.iter(), self.locks_ahead, chunk, &self.context)?;
                }
                keys
            }
        };
        keys.reverse();
        let mut held = None;
        if !level.path.ways.is_empty() {
            let mut taken = Reserved::new(&self.context.memory);
            // (It was there while they were found.)
            taken.take_anyway(super::ways::bytes(&keys));
            held = Some(taken);
        }
        let state = &mut self.states[at];
        (state.held, state.said) = (held, 0);
        if state.stages.is_none() && self.hint.is_none() {
            state.stages = stages(level, &self.context.params);
        }
        state.keys = keys;
        state.rest = None;
        state.rows = Rows::default();
        state.matched = false;
        state.chunk = chunk;
        Ok(())
    }

    /// Rows of the first chunk of a scan.
    pub(super) fn first_chunk(&self, level: &Level) -> usize {
        match self.hint {
            Some(rows) => rows.clamp(1, CHUNK_ROWS_MAX),
            None if level.is_swept() && !level.path.is_narrowed() => SWEPT_ROWS_MIN,
            None if super::ahead::is_far(self.context.reads()) => AHEAD_ROWS,
            None => CHUNK_ROWS_FIRST,
        }
    }

    /// Of the first level: its next row; it stays at its end.
    pub(super) fn step_first(&mut self) -> Result<bool, SqlError> {
        let found = self.step(0)?;
        if !found {
            self.states[0].clear();
        }
        Ok(found)
    }

    /// The current rows of all levels before this one.
    pub(super) fn left(&self, at: usize) -> Left {
        let found = self.states[..at].iter().map(|state| (state.kept(), state.locked)).collect();
        Left { row: self.row.clone(), found, keys: None }
    }

    /// Goes back to rows of the levels before this one.
    pub(super) fn restore(&mut self, left: &Left) {
        self.row.clone_from_slice(&left.row);
        for (state, ((key, stored), locked)) in self.states.iter_mut().zip(&left.found) {
            state.row = Found::Apart(key.clone(), stored.clone());
            state.locked = *locked;
        }
    }

    /// Next row of one level; `false` at its end.
    pub(super) fn step(&mut self, at: usize) -> Result<bool, SqlError> {
        self.step_picking(at, None)
    }

    fn step_picking(&mut self, at: usize, pick: Option<&mut Pick<'_>>) -> Result<bool, SqlError> {
        if self.meter.is_none() {
            return self.step_level(at, pick);
        }
        let began_us = self.context.kv.now_us();
        let found = self.step_level(at, pick);
        let us = self.context.kv.now_us() - began_us;
        self.meter.iter_mut().for_each(|meter| meter.stepped(at, us, u64::from(matches!(found, Ok(true)))));
        found
    }

    #[inline]
    fn step_level(&mut self, at: usize, pick: Option<&mut Pick<'_>>) -> Result<bool, SqlError> {
        let Cursor { context, levels, states, row, bare, meter, .. } = self;
        let (level, state) = (&levels[at], &mut states[at]);
        if *bare {
            return fetch(state, level, context, row, pick);
        }
        let places = level.places();
        if state.stages.is_some() {
            while fetch(state, level, context, row, None)? {
                if passes(state, level, context, row)? {
                    return Ok(true);
                }
                if let Some(meter) = meter {
                    meter.removed(at);
                }
            }
            return Ok(false);
        }
        while fetch(state, level, context, row, None)? {
            level.decode(state.key(), state.stored(), &mut row[places.clone()])?;
            if holds(level.filter.as_ref(), row, context)? {
                state.matched = true;
                if holds(level.after.as_ref(), row, context)? {
                    return Ok(true);
                }
                if let Some(meter) = meter {
                    meter.removed_after(at);
                }
            } else if let Some(meter) = meter {
                meter.removed(at);
            }
        }
        if level.outer && !state.matched {
            state.matched = true;
            state.row = Found::default();
            row[places].fill(Value::Null);
            let found = holds(level.after.as_ref(), row, context)?;
            if let Some(meter) = meter {
                meter.lone(at);
                if !found {
                    meter.removed_after(at);
                }
            }
            return Ok(found);
        }
        Ok(false)
    }
}

#[inline]
fn holds(condition: Option<&Expr>, row: &[Value], context: &StatementContext) -> Result<bool, SqlError> {
    condition.map_or(Ok(true), |condition| evaluate::truth(condition, row, context))
}

/// Decodes a row stage by stage; `false` at the first condition that is not true, behind which nothing is decoded.
fn passes(state: &State, level: &Level, context: &StatementContext, row: &mut [Value]) -> Result<bool, SqlError> {
    let Some((tests, stages)) = &state.stages else { return Ok(true) };
    if !tests.is_empty() && !tests.passes(state.stored())? {
        return Ok(false);
    }
    for stage in stages {
        level.access.decode(state.stored(), &stage.slots, &mut row[level.places()])?;
        if !holds(stage.condition.as_ref(), row, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Next stored row of one level into its state; `false` at the end. Of what `pick` does not want rows may be passed.
fn fetch(
    state: &mut State,
    level: &Level,
    context: &StatementContext,
    joined: &mut [Value],
    mut pick: Option<&mut Pick<'_>>,
) -> Result<bool, SqlError> {
    loop {
        let next = match &mut state.rows {
            Rows::Apart(rows) => rows.next().map(|(key, value)| Found::Apart(key, value)),
            Rows::Together(_, places) => places.next().map(Found::Together),
        };
        match next {
            Some(Found::Apart(key, value)) if level.reads_rows() => {
                let row_key = level.access.row_key_of_entry(&key, &value)?;
                if let Some(stored) = context.reads().with(|txn| look(txn, level, &row_key))? {
                    state.row = Found::Apart(row_key, stored);
                    return Ok(true);
                }
                continue;
            }
            Some(row) => {
                state.row = row;
                return Ok(true);
            }
            None => {}
        }
        if let Some(span) = state.rest.take() {
            context.check()?;
            let limit = state.chunk;
            state.chunk = (state.chunk * CHUNK_GROWTH).min(CHUNK_ROWS_MAX);
            if (limit >= SWEPT_ROWS_MIN || state.sweeps_few.is_some()) && level.is_swept() {
                if let Some(Sweep { bytes, places, rest }) = sweep(state, &span, limit, context, pick.as_deref_mut())? {
                    (state.rows, state.rest) = (Rows::Together(bytes, places.into_iter()), rest);
                    continue;
                }
                // Written just now by a large command, or far away.
                state.sweeps_few = None;
            }
            let request = ScanRequest { span, reverse: level.path.reverse, limit };
            let ScanChunk { rows, rest } = context.reads().with(|txn| match level.skips {
                true => txn.peek_scan(&request),
                false => txn.scan(&request),
            })?;
            if level.reads_rows() {
                super::ahead::rows_of_entries(level, &rows, context)?;
            }
            (state.rows, state.rest) = (Rows::Apart(rows.into_iter()), rest);
        } else {
            if !level.path.ways.is_empty() {
                say_next(state, context)?;
            }
            match state.keys.pop() {
                None => return Ok(false),
                Some(Keys::Span(span)) => state.rest = Some(span),
                Some(Keys::One(key)) => {
                    state.looked += 1;
                    if state.looked.is_multiple_of(CHUNK_ROWS_MAX) {
                        context.check()?;
                    }
                    let lock = match (level.lock, &level.key_lock) {
                        (Some((_, wait)), Some(open)) => Some((foresee(level, open, &key, context, joined)?, wait)),
                        (lock, _) => lock,
                    };
                    if let Some((key, stored)) = context.reads().with(|txn| one(txn, level, lock, key))? {
                        state.locked = lock.map_or(LockMode::KeyShare, |(mode, _)| mode);
                        state.row = Found::Apart(key, stored);
                        return Ok(true);
                    }
                }
            }
        }
    }
}

/// The rows of the keys that come next, of those that several ways have led to, are read next.
fn say_next(state: &mut State, context: &StatementContext) -> Result<(), SqlError> {
    if state.said == 0 {
        let mut bytes = 0;
        let next = state.keys.iter().rev().map_while(|keys| match keys {
            Keys::One(key) if bytes < KEY_BYTES_MAX => {
                bytes += key.len();
                Some(key.clone())
            }
            _ => None,
        });
        // Who reads beside this cursor says what comes there, too, and all that is known at a time has one bound.
        let next: Vec<Bytes> = next.take(AHEAD_ROWS).collect();
        state.said = next.len();
        if next.len() > 1 {
            super::ahead::reads(next.into_iter(), context.reads())?;
        }
    }
    state.said = state.said.saturating_sub(1);
    Ok(())
}

/// Rows of a span in the bytes of a chunk, of which those may be missing that `pick` does not want. `None`: they cannot be had so.
fn sweep(
    state: &State,
    span: &Span,
    limit: usize,
    context: &StatementContext,
    pick: Option<&mut Pick<'_>>,
) -> Result<Option<Sweep>, SqlError> {
    let last = state.sweeps_few.as_ref();
    let read_before = last.and_then(|last| last.of(span));
    if read_before.is_some() {
        return Ok(read_before);
    }
    let all = pick.is_none();
    let swept = context.reads().with(|txn| match pick {
        Some(pick) => txn.sweep_picked(span, limit, false, pick),
        None => txn.sweep(span, limit, false),
    })?;
    if let (Some(last), Some(swept), true) = (last, &swept, all) {
        last.keep(span.clone(), swept);
    }
    Ok(swept)
}

/// Reads a key on the way to a row.
fn look(txn: &mut dyn Transaction, level: &Level, key: &[u8]) -> Result<Option<Bytes>, SqlError> {
    Ok(if level.skips { txn.peek(key)? } else { txn.get(key)? })
}

/// How an UPDATE will lock the row that a key of a unique index leads to. The row's places of the joined row are overwritten.
fn foresee(
    level: &Level,
    open: &KeyLock,
    key: &Bytes,
    context: &StatementContext,
    joined: &mut [Value],
) -> Result<LockMode, SqlError> {
    let seen = context.reads().with(|txn| {
        if level.path.index == 0 {
            return txn.peek(key).map_err(SqlError::from);
        }
        let Some(entry) = txn.peek(key)? else { return Ok(None) };
        Ok(txn.peek(&level.access.row_key_of_entry(key, &entry)?)?)
    })?;
    let Some(stored) = seen else { return Ok(open.mode()) };
    let places = level.places();
    level.access.decode(&stored, &level.slots, &mut joined[places])?;
    Ok(open.foresee(&level.access, level.base, joined, context))
}

/// The row that one key of a unique index leads to, locked first if `lock` says so.
fn one(
    txn: &mut dyn Transaction,
    level: &Level,
    lock: Option<(LockMode, LockWait)>,
    key: Bytes,
) -> Result<Option<(Bytes, Bytes)>, SqlError> {
    let row_key = if level.path.index == 0 {
        key
    } else {
        let Some(entry) = look(txn, level, &key)? else { return Ok(None) };
        if level.entries.is_some() {
            return Ok(Some((key, entry)));
        }
        level.access.row_key_of_entry(&key, &entry)?
    };
    if lock.is_some() && txn.is_far() {
        // What the snapshot sees of it, while the lock is asked for: unless that moves the snapshot it is the newest.
        txn.read_ahead(std::slice::from_ref(&row_key))?;
    }
    if let Some((mode, wait)) = lock
        && !txn.lock_as(&row_key, mode, wait)?
    {
        return Ok(None);
    }
    let stored = if lock.is_some() { txn.get(&row_key)? } else { look(txn, level, &row_key)? };
    Ok(stored.map(|stored| (row_key, stored)))
}
