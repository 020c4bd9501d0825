//! Joins: by hash where there are equalities, by a lookup for each left row where the right side has an index on them and the left
//! side turns out to be short, nested loops otherwise.
//!
//! **How the choice is made.** There are no statistics, so it is made while running: the first [`LOOKUP_ROWS_MAX`] left rows are read.
//! If that was all, each is looked up; if there are more, the right side is read once into a hash table.

use super::{Prefix, Reservation, Rows, Run, Source, collect, listed, open as open_node};
use crate::SqlError;
use crate::engine::key_table::{KEY_BYTES, KeyTable};
use crate::engine::keys::{self, KeyKind};
use crate::engine::node::{Join, JoinKey, JoinKind, Node};
use crate::engine::scalar::{Scalar, all_true};
use crate::types::{Row, Value};
use std::sync::Arc;

/// Left rows up to which each is looked up in the right side's index.
const LOOKUP_ROWS_MAX: usize = 100;

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    let Node::Join(join) = node.as_ref() else { return Ok(listed(Vec::new())) };
    let mut left = open_node(&join.left, prefix, run)?;
    if join.lateral {
        return Ok(Box::new(Lateral {
            left,
            node: node.clone(),
            right: join.right.clone(),
            run: run.clone(),
            current: None,
        }));
    }
    if let Some(lookup) = &join.lookup {
        let mut reserved = run.reserve();
        let mut first = Vec::new();
        while first.len() <= LOOKUP_ROWS_MAX {
            let mut row = Row::new();
            if !left.next(&mut row)? {
                let left = listed(first);
                return Ok(Box::new(Lateral {
                    left,
                    node: node.clone(),
                    right: lookup.clone(),
                    run: run.clone(),
                    current: None,
                }));
            }
            reserved.row(&row)?;
            first.push(row);
        }
        left = Box::new(Chained { first: first.into_iter(), rest: left });
    }
    Hashed::start(node, join, left, prefix, run)
}

/// Rows read ahead, then the rest of their source.
struct Chained {
    first: std::vec::IntoIter<Row>,
    rest: Source,
}

impl Rows for Chained {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        match self.first.next() {
            Some(first) => *row = first,
            None => return self.rest.next(row),
        }
        Ok(true)
    }
}

fn join_of(node: &Node) -> Option<&Join> {
    if let Node::Join(join) = node { Some(join) } else { None }
}

fn add_nulls(row: &mut Row, width: usize) {
    row.resize(row.len() + width, Value::Null);
}

/// The right side runs once for each left row, which is its prefix.
struct Lateral {
    left: Source,
    node: Arc<Node>,
    right: Arc<Node>,
    run: Arc<Run>,
    current: Option<(Row, Source, bool)>,
}

impl Rows for Lateral {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Some(join) = join_of(&self.node) else { return Ok(false) };
        loop {
            if let Some((left, source, matched)) = &mut self.current {
                while source.next(row)? {
                    self.run.tick()?;
                    if all_true(&join.on, row, &self.run)? {
                        *matched = true;
                        return Ok(true);
                    }
                }
                let (unmatched, left) = (!*matched, std::mem::take(left));
                self.current = None;
                if unmatched && join.kind == JoinKind::Left {
                    *row = left;
                    add_nulls(row, join.right_width);
                    return Ok(true);
                }
            }
            let mut left = Row::new();
            if !self.left.next(&mut left)? {
                return Ok(false);
            }
            self.run.tick()?;
            let source = open_node(&self.right, &Arc::from(left.as_slice()), &self.run)?;
            self.current = Some((left, source, false));
        }
    }
}

/// The right side in memory, by key if there are keys.
struct Hashed {
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
    _reserved: Reservation,
}

/// Right rows by key: those of one key are a chain, in their order.
struct Buckets {
    keys: KeyTable,
    kinds: Vec<KeyKind>,
    /// By number of the key; by right row.
    first: Vec<u32>,
    next: Vec<u32>,
    /// Room for a left row's key.
    key: Vec<u8>,
}

/// The end of a chain: no right row has this place.
const END: u32 = u32::MAX;

impl Buckets {
    fn new(join: &Join, rows: &[Row], reserved: &mut Reservation, run: &Arc<Run>) -> Result<Buckets, SqlError> {
        let kind = |key: &JoinKey| keys::kind(&key.left.ty, &key.right.ty).unwrap_or(KeyKind::Plain);
        let kinds: Vec<KeyKind> = join.keys.iter().map(kind).collect();
        let (mut keys, mut first, mut next) = (KeyTable::new(run.seed), Vec::new(), vec![END; rows.len()]);
        let (mut last, mut key) = (Vec::new(), Vec::new());
        for (place, row) in rows.iter().enumerate() {
            run.tick()?;
            reserved.bytes(size_of::<u32>())?;
            if !write_key(join.keys.iter().map(side_right), &kinds, row, run, &mut key)? {
                continue;
            }
            let (number, new) = keys.number(&key);
            if new {
                reserved.bytes(key.len() + KEY_BYTES + 2 * size_of::<u32>())?;
                first.push(place as u32);
                last.push(place);
            } else {
                next[std::mem::replace(&mut last[number], place)] = place as u32;
            }
        }
        Ok(Buckets { keys, kinds, first, next, key })
    }

    /// The first right row for a left row; beyond all rows if there is none.
    fn first(&mut self, join: &Join, row: &[Value], run: &Arc<Run>) -> Result<usize, SqlError> {
        if !write_key(join.keys.iter().map(side_left), &self.kinds, row, run, &mut self.key)? {
            return Ok(END as usize);
        }
        Ok(self.keys.find(&self.key).map_or(END, |number| self.first[number]) as usize)
    }
}

fn side_left(key: &JoinKey) -> (&Scalar, bool) {
    (&key.left, key.null_equal)
}

fn side_right(key: &JoinKey) -> (&Scalar, bool) {
    (&key.right, key.null_equal)
}

/// Writes the key of a row; `false` if a NULL in it makes it equal to nothing.
fn write_key<'a>(
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
    fn start(node: &Arc<Node>, join: &Join, left: Source, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
        let mut reserved = run.reserve();
        let mut rows = collect(open_node(&join.right, prefix, run)?, &mut reserved, run)?;
        let buckets = if join.keys.is_empty() { None } else { Some(Buckets::new(join, &rows, &mut reserved, run)?) };
        if !prefix.is_empty() {
            rows.iter_mut().for_each(|row| drop(row.drain(..prefix.len())));
        }
        let matched = if join.kind == JoinKind::Full { vec![false; rows.len()] } else { Vec::new() };
        Ok(Box::new(Hashed {
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
            _reserved: reserved,
        }))
    }

    /// Joins the left row with the next right row that matches it; `false` if there is none.
    fn matching(&mut self, join: &Join, row: &mut Row) -> Result<bool, SqlError> {
        while let Some(place) = self.at.take_if(|at| *at < self.rows.len()) {
            self.run.tick()?;
            let next = self.buckets.as_ref().map_or(place + 1, |buckets| buckets.next[place] as usize);
            let last = next >= self.rows.len();
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
                if !self.found && join.kind != JoinKind::Inner {
                    std::mem::swap(row, &mut self.row);
                    add_nulls(row, join.right_width);
                    return Ok(true);
                }
            }
            if !self.left.next(&mut self.row)? {
                self.left_done = true;
                break;
            }
            self.run.tick()?;
            let first = match &mut self.buckets {
                Some(buckets) => buckets.first(join, &self.row, &self.run)?,
                None => 0,
            };
            (self.at, self.found) = (Some(first), false);
        }
        // Full join: right rows that no left row matched.
        while self.tail < self.matched.len() {
            let place = self.tail;
            self.tail += 1;
            self.run.tick()?;
            if !self.matched[place] {
                row.clear();
                row.extend_from_slice(&self.prefix);
                add_nulls(row, join.left_width - self.prefix.len());
                row.extend_from_slice(&self.rows[place]);
                return Ok(true);
            }
        }
        Ok(false)
    }
}
