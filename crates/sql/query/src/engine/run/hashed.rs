//! Hash joins: one side in memory by its keys, beside which the rows of the other pass.

use super::key_bits::{KeyBits, Reach, integer_of};
use super::key_place::{KeyPlace, write_integers};
use super::leaf::TableRows;
use super::runtime_filter::{Filters, RuntimeFilter};
use super::{Prefix, Rows, Run, Source, Step};
use crate::SqlError;
use crate::context::RuntimeFilters;
use crate::engine::explain::place;
use crate::engine::key_table::{KEY_BYTES, KeyTable};
use crate::engine::keys::{self, KeyKind};
use crate::engine::node::{Join, JoinKey, JoinKind, Node};
use crate::engine::reach::{is_sparing, key_columns};
use crate::engine::run::join::{add_nulls, join_of};
use crate::engine::scalar::{Scalar, all_true};
use crate::exec::sort::row_bytes;
use crate::exec::spill::Share;
use crate::types::{Row, Value};
use std::collections::VecDeque;
use std::sync::Arc;

/// The right side in memory, by key if there are keys.
pub(super) struct Hashed {
    left: Source,
    node: Arc<Node>,
    run: Arc<Run>,
    /// Right rows without their prefix.
    rows: Vec<Row>,
    buckets: Option<Buckets>,
    /// Full join: which right rows had a match.
    matched: Vec<bool>,
    prefix: Prefix,
    /// The left row, and the next right row to try with it; none: it is done.
    row: Row,
    at: Option<usize>,
    /// It had a match.
    found: bool,
    /// Full join: the next right row to give if it had no match.
    tail: usize,
    left_done: bool,
    /// Of one of several joins with the same left rows: which of these had a match in any, and the next one's place. None is given without.
    over_all: Option<(Vec<bool>, usize)>,
    /// Of joins above, over joined rows.
    filters: Filters,
    _share: Share,
}

/// Rows of one side by key: those of one key are a chain, in their order.
pub(super) struct Buckets {
    keys: Arc<KeyTable>,
    /// Of a column of the key, where there is one of integers.
    bits: Option<Arc<KeyBits>>,
    kinds: Arc<[KeyKind]>,
    /// By number of the key; by row.
    first: Vec<u32>,
    next: Vec<u32>,
    /// Room for a key of the other side.
    key: Vec<u8>,
    /// Where that stands in rows of a table; asked once.
    place: Option<Option<KeyPlace>>,
}

/// The end of a chain: no row has this place.
const END: u32 = u32::MAX;

/// For EXPLAIN ANALYZE: what the side in memory takes.
fn held(node: &Arc<Node>, share: &Share, run: &Run) {
    if let Some(meters) = &run.context.meters {
        meters.held(place(node), share.bytes());
    }
}

/// How the keys of a join are written.
pub(super) fn kinds_of(join: &Join) -> Vec<KeyKind> {
    let kind = |key: &JoinKey| keys::kind(&key.left.ty, &key.right.ty).unwrap_or(KeyKind::Plain);
    join.keys.iter().map(kind).collect()
}

/// The bits of a column of the keys: of that which has the fewest of its reach. Only of plain columns: another expression is computed once for each
/// row, for its key. Where there is no room for them it goes without.
fn bits_of(
    join: &Join,
    side: Side,
    kinds: &[KeyKind],
    (rows, first): (&[Row], &[u32]),
    share: &mut Share,
    run: &Arc<Run>,
) -> Result<Option<KeyBits>, SqlError> {
    let mut best: Option<(f64, usize, usize, Reach)> = None;
    for (column, key) in join.keys.iter().enumerate() {
        let Some(slot) = side(key).0.column().filter(|_| kinds[column] != KeyKind::Float) else { continue };
        let mut reach = Reach::NONE;
        for place in first {
            run.tick()?;
            let Some(number) = integer_of(&rows[*place as usize][slot]) else {
                reach = Reach::NONE;
                break;
            };
            reach.add(number);
        }
        if let Some(density) = reach.density()
            && best.is_none_or(|(least, ..)| density < least)
        {
            best = Some((density, column, slot, reach));
        }
    }
    let Some((_, column, slot, reach)) = best.filter(|(.., reach)| share.take(reach.bytes())) else { return Ok(None) };
    let mut bits = KeyBits::new(column, reach);
    for place in first {
        run.tick()?;
        integer_of(&rows[*place as usize][slot]).into_iter().for_each(|number| bits.add(number));
    }
    Ok(Some(bits))
}

impl Buckets {
    /// None where there is no room for them; `anyway`: there is to be.
    pub(super) fn new(
        join: &Join,
        side: Side,
        rows: &[Row],
        share: &mut Share,
        anyway: bool,
        run: &Arc<Run>,
    ) -> Result<Option<Buckets>, SqlError> {
        let kinds = kinds_of(join);
        let mut take = |bytes: usize| match share.take(bytes) {
            true => true,
            false if anyway => {
                share.take_anyway(bytes);
                true
            }
            false => false,
        };
        if !take(rows.len() * size_of::<u32>()) {
            return Ok(None);
        }
        let (mut keys, mut first, mut next) = (KeyTable::new(run.seed), Vec::new(), vec![END; rows.len()]);
        let (mut last, mut key) = (Vec::new(), Vec::new());
        for (place, row) in rows.iter().enumerate() {
            run.tick()?;
            if !write_key(join.keys.iter().map(side), &kinds, row, run, &mut key)? {
                continue;
            }
            let (number, new) = keys.number(&key);
            if new {
                if !take(key.len() + KEY_BYTES + 2 * size_of::<u32>()) {
                    return Ok(None);
                }
                first.push(place as u32);
                last.push(place);
            } else {
                next[std::mem::replace(&mut last[number], place)] = place as u32;
            }
        }
        let bits = bits_of(join, side, &kinds, (rows, &first), share, run)?.map(Arc::new);
        Ok(Some(Buckets { keys: Arc::new(keys), bits, kinds: kinds.into(), first, next, key, place: None }))
    }

    /// The first row for a row of the other side; beyond all rows if there is none.
    fn first(&mut self, join: &Join, side: Side, row: &[Value], run: &Arc<Run>) -> Result<usize, SqlError> {
        if !write_key(join.keys.iter().map(side), &self.kinds, row, run, &mut self.key)? {
            return Ok(END as usize);
        }
        Ok(self.keys.find(&self.key).map_or(END, |number| self.first[number]) as usize)
    }

    /// Moves a table to the next row whose key is here, looking at rows where they stand: what came of it, and the first row of the key. `None`: that cannot be
    /// done.
    fn step_in(
        &mut self,
        table: &mut TableRows,
        (join, side): (&Join, Side),
        most: &mut u64,
        row: &mut Row,
        run: &Arc<Run>,
    ) -> Result<Option<(Step, usize)>, SqlError> {
        let Buckets { keys, bits, kinds, first, key, place, .. } = self;
        let place = place.get_or_insert_with(|| KeyPlace::of(table, join.keys.iter().map(side), kinds));
        let mut found = END;
        let mut find = |key: &[u8], is_whole: bool| -> Result<bool, SqlError> {
            let number = if is_whole { keys.find(key) } else { None };
            found = number.map_or(END, |number| first[number]);
            Ok(found != END)
        };
        let step = match place {
            None => return Ok(None),
            Some(KeyPlace::Integers(ids)) => {
                let mut lets = |stored: &[u8]| -> Result<bool, SqlError> {
                    let is_whole = write_integers(ids, bits.as_deref(), stored, key)?;
                    find(key, is_whole)
                };
                table.step_by_key(most, &mut lets, row)?
            }
            Some(KeyPlace::Slots(slots)) => {
                let lets = |row: &[Value]| -> Result<bool, SqlError> {
                    let is_whole = write_key(join.keys.iter().map(side), kinds, row, run, key)?;
                    find(key, is_whole)
                };
                table.step_to(slots, most, lets, row)?
            }
        };
        Ok(Some((step, found as usize)))
    }
}

/// Offers the keys in memory to the side that passes. A table is looked at where it stands already.
fn offer(join: &Join, passing: &Node, side: Side, buckets: &Buckets, source: &mut Source, run: &Run) {
    if run.context.runtime_filters != RuntimeFilters::Off
        && !matches!(passing, Node::Table(_))
        && let Some(columns) = key_columns(join, |key| side(key).0)
    {
        let Buckets { keys, bits, kinds, .. } = buckets;
        source.restrict(&RuntimeFilter::new(columns, kinds.clone(), keys.clone(), bits.clone()));
    }
}

/// A key of one side.
pub(super) type Side = fn(&JoinKey) -> (&Scalar, bool);

pub(super) fn side_left(key: &JoinKey) -> (&Scalar, bool) {
    (&key.left, key.null_equal)
}

pub(super) fn side_right(key: &JoinKey) -> (&Scalar, bool) {
    (&key.right, key.null_equal)
}

/// Writes the key of a row; `false` if a NULL in it makes it equal to nothing.
pub(super) fn write_key<'a>(
    sides: impl Iterator<Item = (&'a Scalar, bool)>,
    kinds: &[KeyKind],
    row: &[Value],
    run: &Arc<Run>,
    key: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    key.clear();
    for ((side, null_equal), kind) in sides.zip(kinds) {
        let value = side.value_ref(row, run)?;
        if value.is_null() && !null_equal {
            return Ok(false);
        }
        keys::encode(&value, *kind, key);
    }
    Ok(true)
}

impl Hashed {
    /// `rows` are the right side's, by their keys if there are any; `share` is theirs.
    pub(super) fn start(
        node: &Arc<Node>,
        mut left: Source,
        mut rows: Vec<Row>,
        buckets: Option<Buckets>,
        share: Share,
        prefix: &Prefix,
        run: &Arc<Run>,
    ) -> Hashed {
        if !prefix.is_empty() {
            rows.iter_mut().for_each(|row| drop(row.drain(..prefix.len())));
        }
        let unsound = run.context.runtime_filters == RuntimeFilters::Unsound;
        let offers = |join: &&Join| join.kind == JoinKind::Inner || unsound && join.kind == JoinKind::Left;
        if let (Some(join), Some(buckets)) = (join_of(node).filter(offers), &buckets) {
            offer(join, &join.left, side_left, buckets, &mut left, run);
        }
        held(node, &share, run);
        let is_full = join_of(node).is_some_and(|join| join.kind == JoinKind::Full);
        let matched = if is_full { vec![false; rows.len()] } else { Vec::new() };
        Hashed {
            left,
            node: node.clone(),
            run: run.clone(),
            rows,
            buckets,
            matched,
            prefix: prefix.clone(),
            row: Row::new(),
            at: None,
            found: false,
            tail: 0,
            left_done: false,
            over_all: None,
            filters: Filters::default(),
            _share: share,
        }
    }

    /// Moves to the next left row, and gives the first right row of its key: beyond all rows if there is none. Of a table's rows in an inner join those without
    /// one are passed where they stand.
    fn pull(&mut self, join: &Join) -> Result<Option<usize>, SqlError> {
        let Hashed { left, run, buckets, row, over_all, .. } = self;
        // The row that is joined next grows in it.
        row.clear();
        row.reserve(join.left_width + join.right_width);
        if let (Some(buckets), JoinKind::Inner, None) = (&mut *buckets, join.kind, over_all)
            && let Some(table) = left.table()
            && let Some((step, first)) = buckets.step_in(table, (join, side_left), &mut { u64::MAX }, row, run)?
        {
            return Ok((step == Step::Row).then_some(first));
        }
        if !left.next(row)? {
            return Ok(None);
        }
        run.tick()?;
        match buckets {
            Some(buckets) => buckets.first(join, side_left, row, run).map(Some),
            None => Ok(Some(0)),
        }
    }

    /// As one of several joins with the same left rows: `matched` says which of these had a match before.
    pub(super) fn one_of_several(self, matched: Vec<bool>) -> Hashed {
        Hashed { over_all: Some((matched, 0)), ..self }
    }

    /// Which left rows had a match, once it is at its end.
    pub(super) fn into_matched(self) -> Vec<bool> {
        self.over_all.map(|(matched, _)| matched).unwrap_or_default()
    }

    /// Joins the left row with the next right row that matches it; `false` if there is none.
    fn matching(&mut self, join: &Join, row: &mut Row) -> Result<bool, SqlError> {
        while let Some(place) = self.at.take_if(|at| *at < self.rows.len()) {
            self.run.tick()?;
            let next = self.buckets.as_ref().map_or(place + 1, |buckets| buckets.next[place] as usize);
            let last = next >= self.rows.len();
            if !self.filters.let_pair_in(&self.row, &self.rows[place], join.left_width) {
                self.at = Some(next);
                continue;
            }
            if last {
                // The left row is needed no more if it matches.
                std::mem::swap(row, &mut self.row);
            } else {
                row.clear();
                row.extend_from_slice(&self.row);
            }
            row.extend_from_slice(&self.rows[place]);
            self.at = Some(next);
            if all_true(&join.on, row, &self.run)? {
                self.found = true;
                if let Some(matched) = self.matched.get_mut(place) {
                    *matched = true;
                }
                return Ok(true);
            }
            self.run.unjoined(&self.node);
            if last {
                row.truncate(join.left_width);
                std::mem::swap(row, &mut self.row);
            }
        }
        Ok(false)
    }
}

impl Rows for Hashed {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let node = self.node.clone();
        let Some(join) = join_of(&node) else { return Ok(false) };
        while !self.left_done {
            if self.at.is_some() {
                if self.matching(join, row)? {
                    return Ok(true);
                }
                self.at = None;
                if let Some((matched, place)) = &mut self.over_all {
                    if let Some(matched) = matched.get_mut(*place) {
                        *matched |= self.found;
                    }
                    *place += 1;
                } else if !self.found && join.kind != JoinKind::Inner {
                    std::mem::swap(row, &mut self.row);
                    add_nulls(row, join.right_width);
                    return Ok(true);
                }
            }
            let Some(first) = self.pull(join)? else {
                self.left_done = true;
                break;
            };
            (self.at, self.found) = (Some(first), false);
        }
        // Full join: right rows that no left row matched.
        let Some(place) = unmatched(&self.matched, &mut self.tail, &self.run)? else { return Ok(false) };
        row.clear();
        row.extend_from_slice(&self.prefix);
        add_nulls(row, join.left_width - self.prefix.len());
        row.extend_from_slice(&self.rows[place]);
        Ok(true)
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        let Some(join) = join_of(&self.node).filter(|join| is_sparing(join)) else { return false };
        match join.kind {
            JoinKind::Inner | JoinKind::Left if filter.is_below(join.left_width) => self.left.restrict(filter),
            JoinKind::Inner => self.filters.add(filter),
            _ => false,
        }
    }
}

/// The next row in memory that had no match, from `tail` on.
fn unmatched(matched: &[bool], tail: &mut usize, run: &Run) -> Result<Option<usize>, SqlError> {
    while let Some(found) = matched.get(*tail) {
        let place = *tail;
        *tail += 1;
        run.tick()?;
        if !found {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// The left side in memory by key, beside which the right side's rows pass: an inner or a left join with keys.
pub(super) struct Turned {
    node: Arc<Node>,
    run: Arc<Run>,
    prefix: Prefix,
    /// Left rows.
    rows: Vec<Row>,
    buckets: Buckets,
    /// Left join: which left rows had a match.
    matched: Vec<bool>,
    right: Source,
    right_done: bool,
    /// Right rows that were read ahead and have their key's left rows, the first of which stands before them.
    ahead: VecDeque<(usize, Row)>,
    /// A right row without its prefix, and the next left row to try with it.
    own: Row,
    at: usize,
    /// Left join: the next left row to give if it had no match.
    tail: usize,
    share: Share,
    /// There was no room to read on ahead.
    full: bool,
    /// Of joins above, over joined rows.
    filters: Filters,
}

/// What came of going on in the right side.
enum Pulled {
    /// A row, and the first left row of its key: beyond all rows if there is none.
    Row(usize),
    End,
    /// So many were looked at.
    Spent,
}

impl Turned {
    /// `rows` are the left side's, by their keys; `share` is theirs.
    pub(super) fn start(
        node: &Arc<Node>,
        rows: Vec<Row>,
        buckets: Buckets,
        right: Source,
        share: Share,
        prefix: &Prefix,
        run: &Arc<Run>,
    ) -> Turned {
        held(node, &share, run);
        let is_left = join_of(node).is_some_and(|join| join.kind == JoinKind::Left);
        let matched = if is_left { vec![false; rows.len()] } else { Vec::new() };
        let (node, run, prefix) = (node.clone(), run.clone(), prefix.clone());
        let (ahead, own) = (VecDeque::new(), Row::new());
        let at = END as usize;
        Turned {
            node,
            run,
            prefix,
            rows,
            buckets,
            matched,
            right,
            right_done: false,
            ahead,
            own,
            at,
            tail: 0,
            share,
            full: false,
            filters: Filters::default(),
        }
    }

    /// Offers its keys to the right side, of which it will read all: what is left out there cannot be counted any more.
    pub(super) fn offering(mut self) -> Turned {
        let node = self.node.clone();
        if let Some(join) = join_of(&node) {
            offer(join, &join.right, side_right, &self.buckets, &mut self.right, &self.run);
        }
        self
    }

    /// How many left rows there are.
    pub(super) fn left_rows(&self) -> usize {
        self.rows.len()
    }

    /// Whether there was no room to read on ahead.
    pub(super) fn lacks_room(&self) -> bool {
        self.full
    }

    /// The next right row, looking at no more than `most`. Those of a table that have no left row are passed where they stand.
    fn pull(&mut self, join: &Join, row: &mut Row, most: &mut u64) -> Result<Pulled, SqlError> {
        if self.right_done {
            return Ok(Pulled::End);
        }
        let Turned { right, run, buckets, .. } = self;
        if let Some(table) = right.table()
            && let Some((step, first)) = buckets.step_in(table, (join, side_right), most, row, run)?
        {
            return Ok(match step {
                Step::Row => Pulled::Row(first),
                Step::Spent => Pulled::Spent,
                Step::End => {
                    self.right_done = true;
                    Pulled::End
                }
            });
        }
        if !right.next(row)? {
            self.right_done = true;
            return Ok(Pulled::End);
        }
        *most = most.saturating_sub(1);
        run.tick()?;
        buckets.first(join, side_right, row, run).map(Pulled::Row)
    }

    /// Reads up to so many right rows ahead, as far as there is room; whether those were all.
    pub(super) fn read_ahead(&mut self, rows_max: usize) -> Result<bool, SqlError> {
        let node = self.node.clone();
        let Some(join) = join_of(&node) else { return Ok(true) };
        let (mut row, mut most) = (Row::new(), rows_max as u64);
        while most > 0 {
            let first = match self.pull(join, &mut row, &mut most)? {
                Pulled::Row(first) => first,
                Pulled::End => return Ok(true),
                Pulled::Spent => break,
            };
            if first < self.rows.len() {
                let own: Row = row.drain(self.prefix.len()..).collect();
                let bytes = row_bytes(&own);
                let room = self.share.take(bytes);
                if !room {
                    self.share.take_anyway(bytes);
                }
                self.ahead.push_back((first, own));
                if !room {
                    self.full = true;
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// The left rows, for another way of joining, and their memory.
    pub(super) fn into_left(self) -> (Vec<Row>, Share) {
        let Turned { rows, mut share, .. } = self;
        share.keep(rows.iter().map(|row| row_bytes(row)).sum());
        (rows, share)
    }

    /// Goes on to the next right row whose key some left rows have; `false` at the end.
    fn advance(&mut self, join: &Join, row: &mut Row) -> Result<bool, SqlError> {
        if let Some((first, own)) = self.ahead.pop_front() {
            (self.at, self.own) = (first, own);
            return Ok(true);
        }
        let mut most = u64::MAX;
        while let Pulled::Row(first) = self.pull(join, row, &mut most)? {
            if first < self.rows.len() {
                self.at = first;
                self.own.clear();
                self.own.extend(row.drain(self.prefix.len()..));
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Rows for Turned {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let node = self.node.clone();
        let Some(join) = join_of(&node) else { return Ok(false) };
        loop {
            while let Some(left) = self.rows.get(self.at) {
                self.run.tick()?;
                let place = self.at;
                self.at = self.buckets.next[place] as usize;
                if !self.filters.let_pair_in(left, &self.own, join.left_width) {
                    continue;
                }
                row.clear();
                row.reserve(left.len() + self.own.len());
                row.extend_from_slice(left);
                row.extend_from_slice(&self.own);
                if all_true(&join.on, row, &self.run)? {
                    if let Some(matched) = self.matched.get_mut(place) {
                        *matched = true;
                    }
                    return Ok(true);
                }
                self.run.unjoined(&self.node);
            }
            if !self.advance(join, row)? {
                break;
            }
        }
        let Some(place) = unmatched(&self.matched, &mut self.tail, &self.run)? else { return Ok(false) };
        row.clear();
        row.append(&mut self.rows[place]);
        add_nulls(row, join.right_width);
        Ok(true)
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        let inner = |join: &&Join| join.kind == JoinKind::Inner && is_sparing(join);
        let Some(join) = join_of(&self.node).filter(inner) else { return false };
        let own = self.prefix.len();
        let of_right = filter.mapped(|column| match column {
            column if column < own => Some(column),
            column => column.checked_sub(join.left_width).map(|place| place + own),
        });
        match of_right {
            Some(filter) => self.right.restrict(&filter),
            None => self.filters.add(filter),
        }
    }
}
