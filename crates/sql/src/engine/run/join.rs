//! Joins: by hash where there are equalities, by a lookup for each left row where the right side has an index on them and the left
//! side turns out to be short, nested loops otherwise.
//!
//! **How the choice is made.** There are no statistics, so it is made while running: the first [`LOOKUP_ROWS_MAX`] left rows are read.
//! If that was all, each is looked up; if there are more, the right side is read once into a hash table.

use super::{Prefix, Reservation, Rows, Run, Source, collect, listed, open as open_node};
use crate::SqlError;
use crate::engine::keys::{self, KeyKind};
use crate::engine::node::{Join, JoinKind, Node};
use crate::engine::scalar::{Scalar, all_true};
use crate::types::{Row, Value};
use std::collections::HashMap;
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
            let Some(row) = left.next()? else {
                let left = listed(first);
                return Ok(Box::new(Lateral {
                    left,
                    node: node.clone(),
                    right: lookup.clone(),
                    run: run.clone(),
                    current: None,
                }));
            };
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
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        match self.first.next() {
            Some(row) => Ok(Some(row)),
            None => self.rest.next(),
        }
    }
}

fn join_of(node: &Node) -> Option<&Join> {
    if let Node::Join(join) = node { Some(join) } else { None }
}

fn with_nulls(mut row: Row, width: usize) -> Row {
    row.resize(row.len() + width, Value::Null);
    row
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
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        let Some(join) = join_of(&self.node) else { return Ok(None) };
        loop {
            if let Some((left, source, matched)) = &mut self.current {
                while let Some(row) = source.next()? {
                    self.run.tick()?;
                    if all_true(&join.on, &row, &self.run)? {
                        *matched = true;
                        return Ok(Some(row));
                    }
                }
                let (unmatched, left) = (!*matched, std::mem::take(left));
                self.current = None;
                if unmatched && join.kind == JoinKind::Left {
                    return Ok(Some(with_nulls(left, join.right_width)));
                }
            }
            let Some(left) = self.left.next()? else { return Ok(None) };
            self.run.tick()?;
            let source = open_node(&self.right, &Arc::from(left.as_slice()), &self.run)?;
            self.current = Some((left, source, false));
        }
    }
}

/// The right side in memory, in a hash table if there are keys.
struct Hashed {
    left: Source,
    node: Arc<Node>,
    run: Arc<Run>,
    /// Right rows without their prefix.
    rows: Vec<Row>,
    matched: Vec<bool>,
    table: Option<HashMap<Vec<u8>, Vec<u32>>>,
    prefix: Prefix,
    current: Option<Current>,
    /// Full join: the next right row to give if it had no match.
    tail: usize,
    left_done: bool,
    _reserved: Reservation,
}

/// A left row, and the candidates still to try.
struct Current {
    row: Row,
    candidates: Candidates,
    matched: bool,
}

enum Candidates {
    All(usize),
    Listed(std::vec::IntoIter<u32>),
}

/// The key of a row; `None` if a NULL in it makes it equal to nothing.
fn key<'a>(
    sides: impl Iterator<Item = (&'a Scalar, KeyKind, bool)>,
    row: &[Value],
    run: &Arc<Run>,
) -> Result<Option<Vec<u8>>, SqlError> {
    let mut out = Vec::new();
    for (side, kind, null_equal) in sides {
        let value = side.value(row, run)?;
        if value == Value::Null && !null_equal {
            return Ok(None);
        }
        keys::encode(&value, kind, &mut out);
    }
    Ok(Some(out))
}

fn key_kind(join: &Join, place: usize) -> KeyKind {
    let key = &join.keys[place];
    keys::kind(&key.left.ty, &key.right.ty).unwrap_or(KeyKind::Plain)
}

fn left_key(join: &Join, row: &[Value], run: &Arc<Run>) -> Result<Option<Vec<u8>>, SqlError> {
    key(join.keys.iter().enumerate().map(|(i, k)| (&k.left, key_kind(join, i), k.null_equal)), row, run)
}

fn right_key(join: &Join, row: &[Value], run: &Arc<Run>) -> Result<Option<Vec<u8>>, SqlError> {
    key(join.keys.iter().enumerate().map(|(i, k)| (&k.right, key_kind(join, i), k.null_equal)), row, run)
}

impl Hashed {
    fn start(node: &Arc<Node>, join: &Join, left: Source, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
        let mut reserved = run.reserve();
        let mut rows = collect(open_node(&join.right, prefix, run)?, &mut reserved, run)?;
        let mut table = None;
        if !join.keys.is_empty() {
            let mut map: HashMap<Vec<u8>, Vec<u32>> = HashMap::with_capacity(rows.len());
            for (place, row) in rows.iter().enumerate() {
                run.tick()?;
                if let Some(key) = right_key(join, row, run)? {
                    reserved.bytes(key.len() + 56)?;
                    map.entry(key).or_default().push(place as u32);
                }
            }
            table = Some(map);
        }
        if !prefix.is_empty() {
            rows.iter_mut().for_each(|row| drop(row.drain(..prefix.len())));
        }
        let matched = if join.kind == JoinKind::Full { vec![false; rows.len()] } else { Vec::new() };
        Ok(Box::new(Hashed {
            left,
            node: node.clone(),
            run: run.clone(),
            rows,
            matched,
            table,
            prefix: prefix.clone(),
            current: None,
            tail: 0,
            left_done: false,
            _reserved: reserved,
        }))
    }

    fn candidates(&self, join: &Join, row: &[Value]) -> Result<Candidates, SqlError> {
        let Some(table) = &self.table else { return Ok(Candidates::All(0)) };
        let places = match left_key(join, row, &self.run)? {
            Some(key) => table.get(&key).cloned().unwrap_or_default(),
            None => Vec::new(),
        };
        Ok(Candidates::Listed(places.into_iter()))
    }
}

impl Candidates {
    fn next(&mut self, count: usize) -> Option<usize> {
        match self {
            Candidates::All(place) => {
                *place += 1;
                (*place <= count).then(|| *place - 1)
            }
            Candidates::Listed(places) => places.next().map(|place| place as usize),
        }
    }
}

impl Rows for Hashed {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        let node = self.node.clone();
        let Some(join) = join_of(&node) else { return Ok(None) };
        while !self.left_done {
            if let Some(current) = &mut self.current {
                while let Some(place) = current.candidates.next(self.rows.len()) {
                    self.run.tick()?;
                    let mut row = current.row.clone();
                    row.extend_from_slice(&self.rows[place]);
                    if all_true(&join.on, &row, &self.run)? {
                        current.matched = true;
                        if let Some(matched) = self.matched.get_mut(place) {
                            *matched = true;
                        }
                        return Ok(Some(row));
                    }
                }
                let unmatched = !current.matched;
                let row = std::mem::take(&mut current.row);
                self.current = None;
                if unmatched && join.kind != JoinKind::Inner {
                    return Ok(Some(with_nulls(row, join.right_width)));
                }
            }
            match self.left.next()? {
                Some(row) => {
                    self.run.tick()?;
                    let candidates = self.candidates(join, &row)?;
                    self.current = Some(Current { row, candidates, matched: false });
                }
                None => self.left_done = true,
            }
        }
        // Full join: right rows that no left row matched.
        while self.tail < self.matched.len() {
            let place = self.tail;
            self.tail += 1;
            self.run.tick()?;
            if !self.matched[place] {
                let mut row = with_nulls(self.prefix.to_vec(), join.left_width - self.prefix.len());
                row.extend_from_slice(&self.rows[place]);
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
