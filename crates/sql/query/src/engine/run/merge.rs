//! Joins by merge: both sides come in the order of the keys, and are read beside each other.
//!
//! ```text
//!   left   1 2 2 3 5 7          the right rows of one key are kept, and joined with each left row of that key;
//!   right  2 2 2 4 5            a left row below them has no partner, a right row below the left one is passed by
//! ```
//!
//! **Idea.** Nothing is kept but the right rows of one key ([`Group`]), and what comes is in the order of the keys. Who plans says that both sides are in it ([`crate::engine::in_order`]);
//! where a hash join finds no room for either side, and both come in the order of the keys by themselves, it goes on here and not to temporary files.
//!
//! **Invariants.**
//! 1. Keys never go back, on either side: a side that does is an error of ours (XX000), not a wrong answer.
//! 2. A NULL in a key has no partner, and says nothing of the order. In a left join its row is given where it comes.
//! 3. What is kept is in the statement's memory as far as there is room, and in a temporary file beyond. Its rows in a file are read once for each left row of their key.
//!
//! **Caveat.** A file for each large key: one key of many rows on both sides is slower here than by hash, which reads them for a block of left rows at a time.

use super::super::explain::place;
use super::join::{add_nulls, join_of};
use super::runtime_filter::RuntimeFilter;
use super::{Prefix, Rows, Run, Source, open as open_node};
use crate::engine::in_order::MergeKey;
use crate::engine::node::{Join, JoinKind, Node};
use crate::engine::reach::is_sparing;
use crate::engine::scalar::all_true;
use crate::exec::sort::row_bytes;
use crate::exec::spill::Share;
use crate::exec::spill::partitions::{Part, PartReader, Partitions};
use crate::explain::Written;
use crate::types::{Row, SqlType, Value};
use crate::{SqlError, SqlState};
use std::cmp::Ordering;
use std::sync::Arc;

/// A key: its columns in rows of both sides, and how they are compared.
struct Key {
    left: usize,
    right: usize,
    ty: SqlType,
    descending: bool,
}

impl Key {
    fn compare(&self, a: &Value, b: &Value) -> Ordering {
        let order = match (integer(a), integer(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.compare(b, &self.ty),
        };
        if self.descending { order.reverse() } else { order }
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int2(n) => Some(i64::from(*n)),
        Value::Int4(n) => Some(i64::from(*n)),
        Value::Int8(n) => Some(*n),
        _ => None,
    }
}

/// The right rows of one key.
struct Group {
    key: Row,
    rows: Vec<Row>,
    share: Share,
    /// Those for which there was no room.
    rest: Option<Part>,
}

/// Where a left row is among them.
enum At {
    /// It is done.
    Nowhere,
    Row(usize),
    Rest(Box<PartReader>),
}

/// Rows that were read ahead of both sides, and their memory.
struct Held {
    lefts: usize,
    rights: usize,
    _share: Share,
}

pub(super) struct Merge {
    node: Arc<Node>,
    run: Arc<Run>,
    prefix: Prefix,
    keys: Vec<Key>,
    left: Source,
    right: Source,
    /// The left row and its key.
    row: Row,
    left_key: Row,
    /// It had a match.
    found: bool,
    at: At,
    group: Group,
    /// The right row behind the group, and its key.
    next: Option<Row>,
    right_key: Row,
    right_ended: bool,
    held: Option<Held>,
    written: Written,
}

/// Joins two sides that are planned to come in this order.
pub(super) fn open(
    node: &Arc<Node>,
    join: &Join,
    by: &[MergeKey],
    prefix: &Prefix,
    run: &Arc<Run>,
) -> Result<Source, SqlError> {
    let (left, right) = (open_node(&join.left, prefix, run)?, open_node(&join.right, prefix, run)?);
    Ok(start(node, by, (left, 0), (right, 0), Share::new(&run.context), prefix, run))
}

/// Joins two sides, of which so many rows were read ahead, in this memory.
pub(super) fn start(
    node: &Arc<Node>,
    by: &[MergeKey],
    (left, lefts): (Source, usize),
    (right, rights): (Source, usize),
    share: Share,
    prefix: &Prefix,
    run: &Arc<Run>,
) -> Source {
    let key = |(place, descending): &MergeKey| {
        let key = join_of(node)?.keys.get(*place)?;
        let (left, right) = (key.left.column()?, key.right.column()?);
        Some(Key { left, right, ty: key.left.ty.clone(), descending: *descending })
    };
    let keys = by.iter().filter_map(key).collect();
    let group = Group { key: Row::new(), rows: Vec::new(), share: Share::new(&run.context), rest: None };
    Box::new(Merge {
        node: node.clone(),
        run: run.clone(),
        prefix: prefix.clone(),
        keys,
        left,
        right,
        row: Row::new(),
        left_key: Row::new(),
        found: false,
        at: At::Nowhere,
        group,
        next: None,
        right_key: Row::new(),
        right_ended: false,
        held: Some(Held { lefts, rights, _share: share }),
        written: Written::default(),
    })
}

/// Puts the key of a row in place of the one before; `false`: it has a NULL, and the one before stays.
fn read_key(keys: &[Key], column: impl Fn(&Key) -> usize, row: &[Value], before: &mut Row) -> Result<bool, SqlError> {
    let value = |key: &Key| row.get(column(key)).filter(|value| !value.is_null());
    if keys.iter().any(|key| value(key).is_none()) {
        return Ok(false);
    }
    let goes_back = || {
        let orders = keys
            .iter()
            .zip(before.iter())
            .map(|(key, was)| value(key).map_or(Ordering::Equal, |is| key.compare(was, is)));
        orders.into_iter().find(|order| order.is_ne()) == Some(Ordering::Greater)
    };
    if goes_back() {
        return Err(SqlError::new(
            SqlState::INTERNAL_ERROR,
            "an input of a merge join is not in the order of its keys",
        ));
    }
    before.clear();
    before.extend(keys.iter().filter_map(value).cloned());
    Ok(true)
}

fn compare(keys: &[Key], a: &[Value], b: &[Value]) -> Ordering {
    let orders = keys.iter().zip(a.iter().zip(b)).map(|(key, (a, b))| key.compare(a, b));
    orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl Merge {
    /// Goes on to the next right row with a key.
    fn read_right(&mut self) -> Result<(), SqlError> {
        let mut row = self.next.take().unwrap_or_default();
        while !self.right_ended {
            if !self.right.next(&mut row)? {
                self.right_ended = true;
                break;
            }
            self.run.tick()?;
            if let Some(held) = &mut self.held {
                held.rights = held.rights.saturating_sub(1);
            }
            if read_key(&self.keys, |key| key.right, &row, &mut self.right_key)? {
                self.next = Some(row);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Brings the right side up to the left row's key; whether it has rows of it.
    fn meet(&mut self) -> Result<bool, SqlError> {
        if !self.group.key.is_empty() {
            match compare(&self.keys, &self.left_key, &self.group.key) {
                Ordering::Equal => return Ok(true),
                Ordering::Less => return Ok(false),
                Ordering::Greater => {}
            }
        }
        self.group.key.clear();
        self.group.rows.clear();
        self.group.rest = None;
        self.group.share.keep(0);
        if self.next.is_none() {
            self.read_right()?;
        }
        while self.next.is_some() {
            match compare(&self.keys, &self.left_key, &self.right_key) {
                Ordering::Less => return Ok(false),
                Ordering::Greater => self.read_right()?,
                Ordering::Equal => {
                    self.gather()?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Keeps the right rows of the key that the right side stands at.
    fn gather(&mut self) -> Result<(), SqlError> {
        self.group.key.clone_from(&self.right_key);
        let mut rest: Option<Partitions> = None;
        while let Some(mut row) = self.next.take() {
            row.drain(..self.prefix.len());
            let bytes = row_bytes(&row);
            match &mut rest {
                None if self.group.share.take(bytes) => self.group.rows.push(row),
                None => rest.insert(Partitions::new(0, &self.run.context)?).write(&[], &row)?,
                Some(rest) => rest.write(&[], &row)?,
            }
            self.read_right()?;
            if self.next.is_some() && compare(&self.keys, &self.group.key, &self.right_key).is_ne() {
                break;
            }
        }
        self.written.memory_bytes = self.written.memory_bytes.max(self.group.share.bytes() as u64);
        if let Some(rest) = rest {
            // (They have one key, and are in one part.)
            self.group.rest = rest.finish()?.into_iter().find(|part| part.rows() > 0);
            self.written.bytes += self.group.rest.as_ref().map_or(0, Part::bytes);
            self.written.batches += 1;
        }
        Ok(())
    }

    /// Goes on to the next left row; `false`: nothing comes any more.
    fn read_left(&mut self, join: &Join) -> Result<bool, SqlError> {
        let nothing_left = self.right_ended && self.next.is_none() && self.group.key.is_empty();
        if nothing_left && join.kind == JoinKind::Inner || !self.left.next(&mut self.row)? {
            return Ok(false);
        }
        self.run.tick()?;
        if let Some(held) = &mut self.held {
            held.lefts = held.lefts.saturating_sub(1);
            if held.lefts == 0 && held.rights == 0 {
                self.held = None;
            }
        }
        self.found = false;
        let has_key = read_key(&self.keys, |key| key.left, &self.row, &mut self.left_key)?;
        self.at = if has_key && self.meet()? { At::Row(0) } else { At::Nowhere };
        Ok(true)
    }

    /// Puts the left row and the next right row of its key in place of what `row` holds; `false`: there is none.
    fn pair(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        loop {
            match &mut self.at {
                At::Nowhere => return Ok(false),
                At::Row(at) => {
                    if let Some(own) = self.group.rows.get(*at) {
                        *at += 1;
                        row.clear();
                        row.reserve(self.row.len() + own.len());
                        row.extend_from_slice(&self.row);
                        row.extend_from_slice(own);
                        return Ok(true);
                    }
                    self.at = match &self.group.rest {
                        Some(rest) => At::Rest(Box::new(rest.read(&self.run.context))),
                        None => At::Nowhere,
                    };
                }
                At::Rest(rest) => {
                    let mut own = Row::new();
                    if rest.next(&mut own)? {
                        row.clear();
                        row.extend_from_slice(&self.row);
                        row.append(&mut own);
                        return Ok(true);
                    }
                    self.at = At::Nowhere;
                }
            }
        }
    }
}

impl Rows for Merge {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let node = self.node.clone();
        let Some(join) = join_of(&node) else { return Ok(false) };
        loop {
            while self.pair(row)? {
                self.run.tick()?;
                if all_true(&join.on, row, &self.run)? {
                    self.found = true;
                    return Ok(true);
                }
                self.run.unjoined(&node);
            }
            if !self.row.is_empty() && !self.found && join.kind == JoinKind::Left {
                std::mem::swap(row, &mut self.row);
                self.row.clear();
                add_nulls(row, join.right_width);
                return Ok(true);
            }
            if !self.read_left(join)? {
                self.row.clear();
                return Ok(false);
            }
        }
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        let below = |join: &&Join| is_sparing(join) && filter.is_below(join.left_width);
        join_of(&self.node).filter(below).is_some() && self.left.restrict(filter)
    }
}

impl Drop for Merge {
    fn drop(&mut self) {
        if let Some(meters) = &self.run.context.meters
            && self.written.bytes > 0
        {
            meters.wrote(place(&self.node), self.written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(descending: bool) -> Vec<Key> {
        vec![Key { left: 0, right: 1, ty: SqlType::Int4, descending }]
    }

    #[test]
    fn keys_that_go_back_are_an_error_and_no_answer() {
        let mut before = Row::new();
        let mut read = |n: Value| read_key(&keys(false), |key| key.left, &[n], &mut before);
        assert!(read(Value::Int4(1)).expect("a key"));
        assert!(!read(Value::Null).expect("no key"));
        assert!(read(Value::Int4(1)).expect("the same"));
        assert!(read(Value::Int4(2)).expect("the next"));
        assert_eq!(read(Value::Int4(1)).expect_err("back").state, SqlState::INTERNAL_ERROR);
        let mut before = Row::new();
        let mut read = |n: i64| read_key(&keys(true), |key| key.left, &[Value::Int8(n)], &mut before);
        assert!(read(2).expect("a key") && read(1).expect("the next"));
        assert!(read(2).is_err());
    }

    #[test]
    fn integers_of_all_widths_are_compared_as_numbers() {
        let [key] = &keys(false)[..] else { panic!("one key") };
        assert_eq!(key.compare(&Value::Int4(7), &Value::Int8(7)), Ordering::Equal);
        assert_eq!(key.compare(&Value::Int2(-7), &Value::Int8(1 << 40)), Ordering::Less);
    }
}
