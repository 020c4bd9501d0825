//! Sources without an input: tables, virtual tables, VALUES, functions.

use super::key_place::integers;
use super::runtime_filter::{FILTERS_MAX, RuntimeFilter};
use super::{Prefix, Rows, Run, Source, Step, listed};
use crate::engine::explain::place;
use crate::engine::node::Node;
use crate::engine::scalar::{Scalar, all_true};
use crate::engine::scan::{Reading, TableScan};
use crate::engine::set_function::SetRows;
use crate::engine::walk::scalar_is_volatile;
use crate::exec::byte_filter::{Around, ByteFilter};
use crate::exec::computed::Computed;
use crate::exec::cursor::Cursor;
use crate::explain::Removed;
use crate::pg_catalog::{self, VirtualTable};
use crate::types::{Row, Value};
use crate::work::UNITS_PER_CHECK;
use crate::{SqlError, SqlState};
use std::ops::ControlFlow;
use std::sync::Arc;

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    Ok(match node.as_ref() {
        Node::One => listed(vec![prefix.to_vec()]),
        Node::Values { .. } | Node::Literals(_) => {
            Box::new(ValueRows { node: node.clone(), prefix: prefix.clone(), next: 0, run: run.clone() })
        }
        Node::Table(scan) => {
            let mut cursor = Cursor::new(&run.context, &scan.reading().levels, scan.width, None);
            cursor.row_mut()[..prefix.len()].clone_from_slice(prefix);
            if !prefix.is_empty() {
                // It may be opened for the next row around it.
                cursor.sweep_few(&run.last_stretch);
            }
            let tested = Tested::new(scan, &mut cursor, prefix, run).map(Box::new);
            let (node, prefix, run) = (node.clone(), prefix.len(), run.clone());
            let (filters, key, picking) = (Vec::new(), Vec::new(), Picking::default());
            Box::new(TableRows { cursor, node, prefix, tested, filters, key, picking, run, sifted: 0 })
        }
        Node::Virtual { table, relation, filter } => {
            let (rows, filter) = virtual_rows(table, relation.as_ref(), filter, prefix, run)?;
            if let Some(meters) = &run.context.meters {
                meters.removed(place(node), Removed { filter, ..Removed::default() });
            }
            listed(rows)
        }
        Node::Internal { name } => listed(internal(name, prefix, run)?),
        Node::Sequence { id } => {
            let mut row = prefix.to_vec();
            row.extend(sequence(*id, run)?);
            listed(vec![row])
        }
        Node::Function { calls, ordinality } => {
            let rows = SetRows::start(calls, prefix, run)?;
            Box::new(Function { rows, prefix: prefix.clone(), ordinality: *ordinality, count: 0, run: run.clone() })
        }
        _ => listed(Vec::new()),
    })
}

/// VALUES, worked out row by row where they are no literals.
struct ValueRows {
    node: Arc<Node>,
    prefix: Prefix,
    next: usize,
    run: Arc<Run>,
}

impl Rows for ValueRows {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let next = match self.node.as_ref() {
            Node::Values { rows, .. } => rows.get(self.next).map(|exprs| (exprs.as_slice(), [].as_slice())),
            Node::Literals(rows) => rows.row(self.next).map(|values| ([].as_slice(), values)),
            _ => None,
        };
        let Some((exprs, values)) = next else { return Ok(false) };
        self.next += 1;
        self.run.tick()?;
        row.clear();
        row.reserve(self.prefix.len() + exprs.len() + values.len());
        row.extend_from_slice(&self.prefix);
        row.extend_from_slice(values);
        let mut computed = Computed::default();
        for expr in exprs {
            row.push(computed.count(expr.value(&self.prefix, &self.run)?)?);
        }
        Ok(true)
    }
}

pub(in crate::engine) struct TableRows {
    cursor: Cursor,
    node: Arc<Node>,
    /// Slots of the prefix.
    prefix: usize,
    /// Conditions that are asked of the bytes.
    tested: Option<Box<Tested>>,
    /// Filters of joins above.
    filters: Vec<Handed>,
    /// Room for a key of theirs.
    key: Vec<u8>,
    picking: Picking,
    run: Arc<Run>,
    /// Rows that the filters of joins above left out, counted where the statement is measured.
    sifted: u64,
}

/// A filter of a join above.
struct Handed {
    filter: RuntimeFilter,
    /// Columns to decode before it is asked.
    slots: Vec<usize>,
    /// Where its columns stand in a row's bytes, if it can be asked of these.
    ids: Option<Vec<u16>>,
}

/// What is asked of a row's bytes before it leaves the store, and is asked again of those that come.
type KeyTest<'a> = dyn FnMut(&[u8]) -> Result<bool, SqlError> + 'a;

/// Rows that the first chunk may pass in the store: who wants one row, as EXISTS does for each row around it, pays for no more than he looks at.
const PICKED_ROWS_FIRST: u64 = 64;
/// Rows that any chunk may pass: whoever opens the engine anew waits for them.
const PICKED_ROWS_MAX: u64 = 16 << 10;
/// Each chunk may pass so many times what the one before might.
const PICKED_ROWS_GROWTH: u64 = 4;
/// Work that a row is at least: of small ones 256 are asked about between two looks at whether the statement is to end.
const PICKED_ROW_UNITS_MIN: usize = UNITS_PER_CHECK / 256;
/// Rows from which on it is looked at whether asking beforehand is worth it.
const PICKED_ROWS_TRIAL: u64 = 1024;
/// It is, if at least one of so many rows was left out.
const PICKED_PART_MIN: u64 = 4;

/// How asking beforehand went.
struct Picking {
    asked: u64,
    left_out: u64,
    /// Rows that the next chunk may pass.
    left_max: u64,
}

impl Default for Picking {
    fn default() -> Picking {
        Picking { asked: 0, left_out: 0, left_max: PICKED_ROWS_FIRST }
    }
}

impl Picking {
    /// More is asked from now on.
    fn anew(&mut self) {
        (self.asked, self.left_out) = (0, 0);
    }

    /// The scan begins anew.
    fn rewind(&mut self) {
        self.left_max = PICKED_ROWS_FIRST;
    }

    fn grow(&mut self) {
        self.left_max = (self.left_max * PICKED_ROWS_GROWTH).min(PICKED_ROWS_MAX);
    }

    fn is_worth(&self) -> bool {
        self.asked < PICKED_ROWS_TRIAL || self.left_out * PICKED_PART_MIN >= self.asked
    }
}

/// Rows that are thought to be read from which on it is worth the while to make tests of the conditions.
const TESTED_ROWS_MIN: f64 = 64.0;

/// What is asked of rows in their bytes: the cursor decodes nothing then.
struct Tested {
    filter: ByteFilter,
    /// How many of the conditions that are.
    conditions: usize,
    /// No other condition need see each row: keys may be asked before.
    steady: bool,
    /// Columns that the other conditions need.
    early: Vec<usize>,
    /// All others.
    left: Vec<usize>,
}

impl Tested {
    fn new(scan: &TableScan, cursor: &mut Cursor, prefix: &Prefix, run: &Run) -> Option<Tested> {
        if scan.way().path.is_narrowed() && scan.way().found < TESTED_ROWS_MIN {
            return None;
        }
        let Reading { levels, late, .. } = scan.reading();
        let level = levels.first()?;
        let plain = scan.way().filter.iter().take_while(|scalar| scalar.steps.is_empty()).map(|scalar| &scalar.expr);
        let around =
            Around { columns: &scan.access.columns, base: level.base, row: prefix, params: &run.context.params };
        let (filter, conditions) = ByteFilter::compile(plain, around);
        // Where nothing is asked of its bytes a row is left undecoded for who looks at it where it stands, or asks for its key.
        if !cursor.bare() {
            return None;
        }
        let steady = !scan.way().filter[conditions..].iter().any(scalar_is_volatile);
        let rest: Vec<Option<Vec<usize>>> = scan.way().filter[conditions..].iter().map(Scalar::columns).collect();
        // Of a step nobody knows what it reads.
        let reads =
            |place: usize| rest.iter().any(|columns| columns.as_ref().is_none_or(|columns| columns.contains(&place)));
        let (early, mut left): (Vec<usize>, Vec<usize>) =
            level.slots.iter().partition(|slot| reads(level.base + **slot));
        left.extend_from_slice(late);
        Some(Tested { filter, conditions, steady, early, left })
    }
}

/// Whether the filters of joins above let the row in that a cursor stands on; `asked`: those that can be were asked of its bytes.
#[inline]
fn let_in(filters: &[Handed], asked: bool, cursor: &mut Cursor, key: &mut Vec<u8>) -> Result<bool, SqlError> {
    for Handed { filter, slots, ids } in filters {
        if !(asked && ids.is_some()) && filter.is_worth() {
            cursor.decode(slots)?;
            if !filter.lets(cursor.row(), key) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether those filters let a row in that can be asked of its bytes.
#[inline]
fn let_in_stored(filters: &[Handed], stored: &[u8], key: &mut Vec<u8>) -> Result<bool, SqlError> {
    for Handed { filter, ids, .. } in filters {
        if let Some(ids) = ids
            && filter.is_worth()
            && !filter.lets_stored(ids, stored, key)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is asked of rows in the store.
struct Asked<'a, 'k> {
    tested: Option<&'a Tested>,
    filters: &'a [Handed],
    /// Room for a key of theirs.
    room: &'a mut Vec<u8>,
    key: Option<&'a mut KeyTest<'k>>,
    /// See [`TableRows`].
    sifted: &'a mut u64,
}

/// Moves a cursor on. What fails the tests of the bytes is passed in the store where that is worth it, and so is what no key lets through, if no other condition
/// must see it. `most` counts what was passed there.
fn advance(
    cursor: &mut Cursor,
    asks: Asked<'_, '_>,
    picking: &mut Picking,
    most: &mut u64,
    run: &Run,
) -> Result<bool, SqlError> {
    let Asked { tested, filters, room, key, sifted } = asks;
    let Some(tested) = tested.filter(|_| picking.is_worth()) else { return cursor.advance() };
    let mut key = key.filter(|_| tested.steady);
    let filters = if tested.steady { filters } else { &[] };
    if tested.filter.is_empty() && key.is_none() && filters.is_empty() {
        return cursor.advance();
    }
    let (left_max, asked, mut left_out) = ((*most).min(picking.left_max), picking.asked, 0);
    let (mut units, mut ended) = (0, None);
    let metered = run.context.meters.is_some();
    let mut pick = |stored: &[u8]| {
        picking.asked += 1;
        units += stored.len().max(PICKED_ROW_UNITS_MIN);
        if units >= UNITS_PER_CHECK {
            units = 0;
            if let Err(e) = run.check() {
                ended = Some(e);
                return ControlFlow::Break(());
            }
        }
        let mut fits = false;
        let passes = tested.filter.passes(stored).and_then(|passes| {
            fits = passes;
            Ok(passes && let_in_stored(filters, stored, room)? && key.as_mut().map_or(Ok(true), |key| key(stored))?)
        });
        match passes {
            Ok(false) if left_out + 1 < left_max => {
                left_out += 1;
                if metered && fits {
                    *sifted += 1;
                }
                ControlFlow::Continue(false)
            }
            Ok(true) => ControlFlow::Continue(true),
            // What fails fails again when the row is looked at.
            Ok(false) | Err(_) => ControlFlow::Break(()),
        }
    };
    let advanced = cursor.advance_picking(Some(&mut pick))?;
    picking.left_out += left_out;
    *most -= left_out;
    if picking.asked > asked {
        picking.grow();
    }
    ended.map_or(Ok(advanced), Err)
}

impl TableRows {
    /// Moves to the next row that passes the filter; `false` at the end. Columns that only such rows need are not decoded yet.
    fn step(&mut self) -> Result<bool, SqlError> {
        let mut most = u64::MAX;
        Ok(self.step_within(&mut most)? == Step::Row)
    }

    /// As [`TableRows::step`], looking at no more than `most` rows.
    fn step_within(&mut self, most: &mut u64) -> Result<Step, SqlError> {
        self.step_picking(most, None)
    }

    /// As [`TableRows::step_within`]; rows that `key` does not let through may be passed, where nothing is asked of them that could fail.
    fn step_picking(&mut self, most: &mut u64, mut key: Option<&mut KeyTest<'_>>) -> Result<Step, SqlError> {
        let Node::Table(scan) = self.node.as_ref() else { return Ok(Step::End) };
        while *most > 0 {
            let asks = Asked {
                tested: self.tested.as_deref(),
                filters: &self.filters,
                room: &mut self.key,
                key: key.as_deref_mut(),
                sifted: &mut self.sifted,
            };
            if !advance(&mut self.cursor, asks, &mut self.picking, most, &self.run)? {
                return Ok(Step::End);
            }
            *most -= 1;
            self.run.tick()?;
            let (mut conditions, mut asked) = (&scan.way().filter[..], false);
            if let Some(tested) = &self.tested {
                let stored = self.cursor.stored_ref();
                if !tested.filter.passes(stored)? {
                    continue;
                }
                conditions = &conditions[tested.conditions..];
                asked = tested.steady;
                // A key costs less than a condition that is computed. (Where there is none who looks for the key asks for it next.)
                let key = key.as_mut().filter(|_| asked && !conditions.is_empty());
                if asked && !let_in_stored(&self.filters, stored, &mut self.key)?
                    || !key.map_or(Ok(true), |key| key(stored))?
                {
                    self.sifted += u64::from(self.run.context.meters.is_some());
                    continue;
                }
                self.cursor.decode(&tested.early)?;
            }
            if all_true(conditions, self.cursor.row(), &self.run)? {
                if let_in(&self.filters, asked, &mut self.cursor, &mut self.key)? {
                    return Ok(Step::Row);
                }
                self.sifted += u64::from(self.run.context.meters.is_some());
            }
        }
        Ok(Step::Spent)
    }

    /// Whether a row of a chunk of a bare cursor passes.
    fn lets_in(&mut self, stored: &[u8]) -> Result<bool, SqlError> {
        let (Node::Table(scan), Some(tested)) = (self.node.as_ref(), &self.tested) else { return Ok(true) };
        if !tested.filter.passes(stored)? {
            return Ok(false);
        }
        self.cursor.decode_from(stored, &tested.early)?;
        all_true(&scan.way().filter[tested.conditions..], self.cursor.row(), &self.run)
    }

    /// Columns that a step does not decode.
    fn undecoded(&self) -> &[usize] {
        match (&self.tested, self.node.as_ref()) {
            (Some(tested), _) => &tested.left,
            (None, Node::Table(scan)) => &scan.reading().late,
            _ => &[],
        }
    }

    /// Moves to the next row that passes the filter, and the key of which is let through: `keys` are what it is made of, over [`TableRows::row`]. Looks at
    /// no more than `most` rows. See [`TableRows::decodes`].
    pub(in crate::engine) fn step_to(
        &mut self,
        slots: &[usize],
        most: &mut u64,
        mut lets: impl FnMut(&[Value]) -> Result<bool, SqlError>,
        row: &mut Row,
    ) -> Result<Step, SqlError> {
        let lets = |cursor: &mut Cursor| {
            cursor.decode(slots)?;
            lets(cursor.row())
        };
        self.step_where(most, lets, row)
    }

    /// As [`TableRows::step_by`], where `lets` does nothing but to say: it is asked of some rows in the store already, and of those that pass again.
    pub(super) fn step_by_key(
        &mut self,
        most: &mut u64,
        lets: &mut KeyTest<'_>,
        row: &mut Row,
    ) -> Result<Step, SqlError> {
        loop {
            let step = self.step_picking(most, Some(&mut *lets))?;
            if step != Step::Row {
                return Ok(step);
            }
            if lets(self.cursor.stored_ref())? {
                self.take(row)?;
                return Ok(Step::Row);
            }
        }
    }

    /// As [`TableRows::step_to`], for who looks at the stored bytes: see [`TableRows::stored_scan`].
    pub(in crate::engine) fn step_by(
        &mut self,
        most: &mut u64,
        mut lets: impl FnMut(&[u8]) -> Result<bool, SqlError>,
        row: &mut Row,
    ) -> Result<Step, SqlError> {
        self.step_where(most, |cursor| lets(cursor.stored_ref()), row)
    }

    #[inline]
    fn step_where(
        &mut self,
        most: &mut u64,
        mut lets: impl FnMut(&mut Cursor) -> Result<bool, SqlError>,
        row: &mut Row,
    ) -> Result<Step, SqlError> {
        loop {
            let step = self.step_within(most)?;
            if step != Step::Row {
                return Ok(step);
            }
            if lets(&mut self.cursor)? {
                self.take(row)?;
                return Ok(Step::Row);
            }
        }
    }

    /// What is to be decoded before some expressions are asked of a row where it stands; `None`: that is not to be told.
    pub(super) fn decodes<'a>(&self, exprs: impl Iterator<Item = &'a Scalar>) -> Option<Vec<usize>> {
        let columns = exprs.map(Scalar::columns).collect::<Option<Vec<_>>>()?;
        self.decodes_columns(columns.into_iter().flatten())
    }

    /// As [`TableRows::decodes`], for columns of its rows.
    pub(in crate::engine) fn decodes_columns(&self, columns: impl Iterator<Item = usize>) -> Option<Vec<usize>> {
        let Node::Table(scan) = self.node.as_ref() else { return None };
        let own = columns.filter(|column| *column >= self.prefix);
        let mut slots = own.map(|column| scan.slot(column)).collect::<Option<Vec<_>>>()?;
        slots.retain(|slot| self.undecoded().contains(slot));
        Some(slots)
    }

    /// Puts the row that it stands on in place of what `row` holds.
    fn take(&mut self, row: &mut Row) -> Result<(), SqlError> {
        let Node::Table(scan) = self.node.as_ref() else { return Ok(()) };
        self.cursor.decode(self.tested.as_ref().map_or(&scan.reading().late, |tested| &tested.left))?;
        let (outer, own) = self.cursor.row_mut().split_at_mut(self.prefix);
        row.clear();
        row.reserve(scan.width);
        row.extend_from_slice(outer);
        // The cursor decodes its columns anew for each row.
        row.extend(own.iter_mut().map(std::mem::take));
        if scan.keyed {
            row.push(Value::Bytea(self.cursor.key(0)[..].into()));
        }
        Ok(())
    }

    /// Columns that were not decoded hold what rows before had there.
    pub(super) fn row(&self) -> &[Value] {
        self.cursor.row()
    }

    /// Shows the bytes of each row that is left and passes the filter. The visitor may have columns of them [decoded](TableRows::decode).
    pub(super) fn each(
        &mut self,
        mut visit: impl FnMut(&mut TableRows, &[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        while self.step()? {
            let stored = self.cursor.stored_lent(0);
            visit(self, &stored)?;
            let Some((bytes, places)) = self.cursor.take_chunk() else { continue };
            for [_, _, from, to] in places {
                self.run.tick()?;
                let stored = bytes.get(from as usize..to as usize).unwrap_or_default();
                if self.lets_in(stored)? {
                    visit(self, stored)?;
                }
            }
        }
        Ok(())
    }

    /// Decodes columns of a row into their places.
    pub(super) fn decode(&mut self, stored: &[u8], slots: &[usize]) -> Result<(), SqlError> {
        self.cursor.decode_from(stored, slots)
    }

    /// What is read, where rows are read as they are stored.
    pub(in crate::engine) fn stored_scan(&self) -> Option<&TableScan> {
        let Node::Table(scan) = self.node.as_ref() else { return None };
        let stored = scan.reading().levels.iter().all(|level| level.entries.is_none());
        (stored && !scan.keyed).then_some(scan)
    }

    /// Leaves decoding to who asks, from now on: gives the columns that a step does not decode.
    pub(super) fn leave_stored(&mut self) -> &[usize] {
        let Node::Table(scan) = self.node.as_ref() else { return &[] };
        let Reading { levels, late, .. } = scan.reading();
        if let Some(tested) = &self.tested {
            return &tested.left;
        }
        match levels.first() {
            Some(level) if scan.way().filter.is_empty() && self.cursor.bare() => &level.slots,
            _ => late,
        }
    }
}

impl Rows for TableRows {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        if !self.step()? {
            return Ok(false);
        }
        self.take(row)?;
        Ok(true)
    }

    fn next_counted(&mut self, row: &mut Row, removed: &mut Removed) -> Result<bool, SqlError> {
        let (mut most, sifted) = (u64::MAX, self.sifted);
        let found = self.step_within(&mut most)? == Step::Row;
        if found {
            self.take(row)?;
        }
        let sifted = self.sifted - sifted;
        removed.runtime += sifted;
        removed.filter += (u64::MAX - most - u64::from(found)).saturating_sub(sifted);
        Ok(found)
    }

    fn next_within(&mut self, row: &mut Row, most: &mut u64) -> Result<Step, SqlError> {
        let step = self.step_within(most)?;
        if step == Step::Row {
            self.take(row)?;
        }
        Ok(step)
    }

    fn any(&mut self) -> Result<bool, SqlError> {
        self.step()
    }

    fn reopens(&self) -> bool {
        // What stands in tests is settled for the row around it.
        self.tested.as_ref().is_none_or(|tested| tested.conditions == 0)
    }

    fn reopen(&mut self, prefix: &[Value]) {
        self.rest();
        let places = self.cursor.row_mut().iter_mut().take(self.prefix);
        places.zip(prefix).for_each(|(place, value)| place.clone_from(value));
    }

    fn rest(&mut self) {
        self.cursor.rewind();
        self.picking.rewind();
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        if self.filters.len() == FILTERS_MAX {
            return false;
        }
        let Some(slots) = self.decodes_columns(filter.columns().iter().copied()) else { return false };
        let ids = integers(self, filter.parts());
        self.filters.push(Handed { filter: filter.clone(), slots, ids });
        self.picking.anew();
        true
    }

    fn table(&mut self) -> Option<&mut TableRows> {
        Some(self)
    }
}

fn virtual_rows(
    table: &'static VirtualTable,
    relation: Option<&Scalar>,
    filter: &[Scalar],
    prefix: &Prefix,
    run: &Arc<Run>,
) -> Result<(Vec<Row>, u64), SqlError> {
    let (mut rows, mut removed) = (Vec::new(), 0);
    let relation = match relation.map(|scalar| scalar.value(prefix, run)).transpose()? {
        Some(Value::Null) => return Ok((rows, 0)),
        Some(Value::Oid(oid)) => Some(oid),
        Some(Value::Int4(n)) => u32::try_from(n).ok(),
        Some(Value::Int8(n)) => u32::try_from(n).ok(),
        Some(Value::Text(text)) => text.trim().parse().ok(),
        _ => None,
    };
    let source = pg_catalog::Source { relation, ..pg_catalog::Source::of(&run.context) };
    for found in table.rows(&source)? {
        run.tick()?;
        let mut row = prefix.to_vec();
        row.extend(found);
        if all_true(filter, &row, run)? {
            rows.push(row);
        } else {
            removed += 1;
        }
    }
    Ok((rows, removed))
}

fn internal(name: &str, prefix: &Prefix, run: &Run) -> Result<Vec<Row>, SqlError> {
    let Some(rows) = crate::internal::rows(&run.context, name)? else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"timeball_internal.{name}\" does not exist"),
        ));
    };
    Ok(rows.into_iter().map(|row| prefix.iter().cloned().chain(row).collect()).collect())
}

/// `SELECT * FROM sequence`: last_value, log_cnt, is_called.
fn sequence(id: u32, run: &Run) -> Result<Row, SqlError> {
    let (value, is_called) = run.context.sequences.position(id)?;
    Ok(vec![Value::Int8(value), Value::Int8(0), Value::Bool(is_called)])
}

struct Function {
    rows: SetRows,
    prefix: Prefix,
    ordinality: bool,
    count: i64,
    run: Arc<Run>,
}

impl Rows for Function {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Some(values) = self.rows.next() else { return Ok(false) };
        self.count += 1;
        self.run.tick()?;
        row.clear();
        row.extend_from_slice(&self.prefix);
        row.extend(values);
        if self.ordinality {
            row.push(Value::Int8(self.count));
        }
        Ok(true)
    }
}
