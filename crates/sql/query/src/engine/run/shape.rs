//! Sources that pass rows on: filters, projections, limits, DISTINCT, set operations.

use super::runtime_filter::RuntimeFilter;
use super::sieve::Sieve;
use super::{Prefix, Reservation, Rows, Run, Seen, Source, Step, open as open_node};
use crate::context::RuntimeFilters;
use crate::engine::key_table::{KEY_BYTES, KeyTable};
use crate::engine::keys::{KeyKind, encode, own_kind, row_key};
use crate::engine::node::{Node, SetKind};
use crate::engine::reach::projected;
use crate::engine::scalar::{Scalar, all_true};
use crate::engine::set_function::SetRows;
use crate::engine::walk::scalar_is_volatile;
use crate::exec::computed::Computed;
use crate::exec::evaluate;
use crate::explain::Removed;
use crate::types::{Row, Value};
use crate::{SqlError, SqlState};
use std::sync::Arc;

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    let base = |input: &Arc<Node>| -> Result<Base, SqlError> {
        Ok(Base { input: open_node(input, prefix, run)?, node: node.clone(), run: run.clone() })
    };
    Ok(match node.as_ref() {
        Node::Filter { input, .. } => Box::new(Filter(base(input)?)),
        Node::Project { input, prefix, columns } => {
            Box::new(Project { base: base(input)?, row: Row::new(), once: read_once(columns, *prefix) })
        }
        Node::Cut { input, .. } => Box::new(Cut(base(input)?)),
        Node::ProjectSet { input, .. } => Box::new(ProjectSet { base: base(input)?, row: Vec::new(), sets: None }),
        Node::Limit { input, offset, limit, .. } => {
            let count =
                |scalar: &Option<Scalar>, word| scalar.as_ref().map_or(Ok(None), |s| count(s, word, prefix, run));
            let (skip, take) = (count(offset, "OFFSET")?.unwrap_or(0), count(limit, "LIMIT")?);
            Box::new(Limit { base: base(input)?, skip, take, last: None })
        }
        Node::Distinct { input, .. } => {
            Box::new(Distinct { base: base(input)?, sieve: Sieve::new(run), key: Vec::new(), ended: false })
        }
        Node::Set { kind, all, prefix: width, kinds, left, right } => {
            set_operation((*kind, *all), *width, kinds, (left, right), prefix, run)?
        }
        _ => return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a node without a source")),
    })
}

/// A LIMIT's or OFFSET's number; `None` for NULL.
pub(super) fn count(scalar: &Scalar, word: &str, prefix: &Prefix, run: &Arc<Run>) -> Result<Option<usize>, SqlError> {
    let value = match scalar.value(prefix, run)? {
        Value::Null => return Ok(None),
        Value::Int2(n) => i64::from(n),
        Value::Int4(n) => i64::from(n),
        Value::Int8(n) => n,
        Value::Numeric(n) => n.round(0)?.to_i64().unwrap_or(i64::MAX),
        Value::Float8(n) => n.round() as i64,
        Value::Text(text) => text.trim().parse().map_err(|_| {
            SqlError::new(SqlState::INVALID_TEXT, format!("invalid input syntax for type bigint: \"{text}\""))
        })?,
        _ => return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, format!("argument of {word} must be type bigint"))),
    };
    usize::try_from(value).map(Some).map_err(|_| {
        SqlError::new(
            SqlState(if word == "LIMIT" { *b"2201W" } else { *b"2201X" }),
            format!("{word} must not be negative"),
        )
    })
}

/// The key that expressions have on a row, in place of what `key` held.
fn key_of(exprs: &[Scalar], row: &[Value], run: &Arc<Run>, key: &mut Vec<u8>) -> Result<(), SqlError> {
    key.clear();
    for expr in exprs {
        encode(&*expr.value_ref(row, run)?, own_kind(&expr.ty), key);
    }
    Ok(())
}

struct Base {
    input: Source,
    node: Arc<Node>,
    run: Arc<Run>,
}

struct Filter(Base);

impl Rows for Filter {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Node::Filter { conditions, .. } = self.0.node.as_ref() else { return Ok(false) };
        while self.0.input.next(row)? {
            self.0.run.tick()?;
            if all_true(conditions, row, &self.0.run)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn next_counted(&mut self, row: &mut Row, removed: &mut Removed) -> Result<bool, SqlError> {
        let Node::Filter { conditions, .. } = self.0.node.as_ref() else { return Ok(false) };
        while self.0.input.next(row)? {
            self.0.run.tick()?;
            if all_true(conditions, row, &self.0.run)? {
                return Ok(true);
            }
            removed.filter += 1;
        }
        Ok(false)
    }

    fn next_within(&mut self, row: &mut Row, most: &mut u64) -> Result<Step, SqlError> {
        let Node::Filter { conditions, .. } = self.0.node.as_ref() else { return Ok(Step::End) };
        filter_within(&mut self.0.input, conditions, row, most, &self.0.run)
    }

    fn reopens(&self) -> bool {
        self.0.input.reopens()
    }

    fn reopen(&mut self, prefix: &[Value]) {
        self.0.input.reopen(prefix);
    }

    fn rest(&mut self) {
        self.0.input.rest();
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        let Node::Filter { conditions, .. } = self.0.node.as_ref() else { return false };
        !conditions.iter().any(scalar_is_volatile) && self.0.input.restrict(filter)
    }
}

/// The rows of a filter, of which some are looked at.
fn filter_within(
    input: &mut Source,
    conditions: &[Scalar],
    row: &mut Row,
    most: &mut u64,
    run: &Arc<Run>,
) -> Result<Step, SqlError> {
    loop {
        let step = input.next_within(row, most)?;
        if step != Step::Row {
            return Ok(step);
        }
        run.tick()?;
        if all_true(conditions, row, run)? {
            return Ok(Step::Row);
        }
        if *most == 0 {
            return Ok(Step::Spent);
        }
    }
}

struct Project {
    base: Base,
    /// The input's row.
    row: Row,
    /// Columns that are a slot of it which nothing else reads: their values are moved, not copied.
    once: Vec<Option<usize>>,
}

/// For each expression its slot, if it is a column after the prefix and no other expression reads it.
fn read_once(columns: &[Scalar], prefix: usize) -> Vec<Option<usize>> {
    let mut read = Vec::new();
    columns.iter().for_each(|scalar| evaluate::columns(&scalar.expr, &mut read));
    // A step may read the whole row.
    let plain = columns.iter().all(|scalar| scalar.steps.is_empty());
    let alone = |slot: &usize| plain && *slot >= prefix && read.iter().filter(|other| *other == slot).count() == 1;
    columns.iter().map(|scalar| evaluate::column(&scalar.expr).filter(alone)).collect()
}

impl Rows for Project {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Node::Project { prefix, columns, .. } = self.base.node.as_ref() else { return Ok(false) };
        if !self.base.input.next(&mut self.row)? {
            return Ok(false);
        }
        row.clear();
        row.reserve(prefix + columns.len());
        row.extend_from_slice(&self.row[..*prefix]);
        let mut computed = Computed::default();
        for (column, once) in columns.iter().zip(&self.once) {
            row.push(match once {
                Some(slot) => std::mem::take(&mut self.row[*slot]),
                // What is in the input's row is counted there, if anywhere.
                None if evaluate::column(&column.expr).is_some() => column.value(&self.row, &self.base.run)?,
                None => computed.count(column.value(&self.row, &self.base.run)?)?,
            });
        }
        Ok(true)
    }

    fn any(&mut self) -> Result<bool, SqlError> {
        self.base.input.any()
    }

    fn reopens(&self) -> bool {
        self.base.input.reopens()
    }

    fn reopen(&mut self, prefix: &[Value]) {
        self.base.input.reopen(prefix);
    }

    fn rest(&mut self) {
        self.base.input.rest();
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        let Node::Project { prefix, columns, .. } = self.base.node.as_ref() else { return false };
        if columns.iter().any(scalar_is_volatile) {
            return false;
        }
        filter
            .mapped(|place| projected(place, *prefix, columns))
            .is_some_and(|filter| self.base.input.restrict(&filter))
    }
}

struct Cut(Base);

impl Rows for Cut {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Node::Cut { width, .. } = self.0.node.as_ref() else { return Ok(false) };
        let found = self.0.input.next(row)?;
        row.truncate(*width);
        Ok(found)
    }

    fn any(&mut self) -> Result<bool, SqlError> {
        self.0.input.any()
    }

    fn reopens(&self) -> bool {
        self.0.input.reopens()
    }

    fn reopen(&mut self, prefix: &[Value]) {
        self.0.input.reopen(prefix);
    }

    fn rest(&mut self) {
        self.0.input.rest();
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        self.0.input.restrict(filter)
    }
}

struct ProjectSet {
    base: Base,
    row: Row,
    sets: Option<SetRows>,
}

impl Rows for ProjectSet {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Node::ProjectSet { calls, .. } = self.base.node.as_ref() else { return Ok(false) };
        loop {
            if let Some(sets) = &mut self.sets
                && let Some(values) = sets.next()
            {
                self.base.run.tick()?;
                row.clear();
                row.extend_from_slice(&self.row);
                row.extend(values);
                return Ok(true);
            }
            if !self.base.input.next(&mut self.row)? {
                return Ok(false);
            }
            self.base.run.tick()?;
            self.sets = Some(SetRows::start(calls, &self.row, &self.base.run)?);
        }
    }
}

struct Limit {
    base: Base,
    skip: usize,
    take: Option<usize>,
    /// WITH TIES: the key of the last row.
    last: Option<Vec<u8>>,
}

impl Rows for Limit {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        while self.skip > 0 {
            self.skip -= 1;
            self.base.run.tick()?;
            if !self.base.input.next(row)? {
                return Ok(false);
            }
        }
        let Node::Limit { ties, .. } = self.base.node.as_ref() else { return Ok(false) };
        let beyond = self.take == Some(0);
        match &mut self.take {
            None => return self.base.input.next(row),
            Some(0) if self.last.is_none() => return Ok(false),
            Some(0) => {}
            Some(left) => *left -= 1,
        }
        if !self.base.input.next(row)? {
            return Ok(false);
        }
        if !ties.is_empty() {
            let mut key = Vec::new();
            key_of(ties, row, &self.base.run, &mut key)?;
            if beyond && self.last.as_ref().is_some_and(|last| *last != key) {
                // Beyond the limit and no tie: nothing more follows.
                self.last = None;
                return Ok(false);
            }
            self.last = Some(key);
        }
        Ok(true)
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        self.base.run.context.runtime_filters == RuntimeFilters::Unsound && self.base.input.restrict(filter)
    }
}

struct Distinct {
    base: Base,
    sieve: Sieve,
    key: Vec<u8>,
    ended: bool,
}

impl Rows for Distinct {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Node::Distinct { prefix, kinds, on, .. } = self.base.node.as_ref() else { return Ok(false) };
        let run = &self.base.run;
        let key_of = |row: &[Value], key: &mut Vec<u8>| match on {
            None => {
                row_key(&row[*prefix..], kinds, key);
                Ok(())
            }
            Some(on) => key_of(on, row, run, key),
        };
        while !self.ended && self.base.input.next(row)? {
            run.tick()?;
            key_of(row, &mut self.key)?;
            if self.sieve.passes(&self.key, row)? {
                return Ok(true);
            }
        }
        self.ended = true;
        self.sieve.next(row, key_of)
    }
}

type Sides<'a> = (&'a Arc<Node>, &'a Arc<Node>);

fn set_operation(
    (kind, all): (SetKind, bool),
    width: usize,
    kinds: &[KeyKind],
    sides: Sides<'_>,
    prefix: &Prefix,
    run: &Arc<Run>,
) -> Result<Source, SqlError> {
    let left = open_node(sides.0, prefix, run)?;
    let mut right = open_node(sides.1, prefix, run)?;
    if kind == SetKind::Union {
        let both = Union {
            inputs: [Some(left), Some(right)],
            sieve: (!all).then(|| Sieve::new(run)),
            key: Vec::new(),
            run: run.clone(),
            width,
            kinds: kinds.to_vec(),
        };
        return Ok(Box::new(both));
    }
    let mut reserved = run.reserve();
    let (mut keys, mut counts) = (KeyTable::new(run.seed), Vec::new());
    let (mut row, mut key) = (Row::new(), Vec::new());
    while right.next(&mut row)? {
        run.tick()?;
        row_key(&row[width..], kinds, &mut key);
        let (number, new) = keys.number(&key);
        if new {
            reserved.bytes(key.len() + KEY_BYTES + size_of::<usize>())?;
            counts.push(0);
        }
        counts[number] += 1;
    }
    Ok(Box::new(Matching {
        left,
        keys,
        counts,
        seen: Seen::new(run.seed),
        key,
        run: run.clone(),
        keep_matched: kind == SetKind::Intersect,
        all,
        width,
        kinds: kinds.to_vec(),
        reserved,
    }))
}

struct Union {
    inputs: [Option<Source>; 2],
    sieve: Option<Sieve>,
    key: Vec<u8>,
    run: Arc<Run>,
    width: usize,
    kinds: Vec<KeyKind>,
}

impl Rows for Union {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        for input in &mut self.inputs {
            while let Some(source) = input {
                if !source.next(row)? {
                    *input = None;
                    break;
                }
                self.run.tick()?;
                let Some(sieve) = &mut self.sieve else { return Ok(true) };
                row_key(&row[self.width..], &self.kinds, &mut self.key);
                if sieve.passes(&self.key, row)? {
                    return Ok(true);
                }
            }
        }
        let Some(sieve) = &mut self.sieve else { return Ok(false) };
        sieve.next(row, |row, key| {
            row_key(&row[self.width..], &self.kinds, key);
            Ok(())
        })
    }
}

/// INTERSECT and EXCEPT.
struct Matching {
    left: Source,
    /// Rows of the right side, and how often each is there.
    keys: KeyTable,
    counts: Vec<usize>,
    seen: Seen,
    key: Vec<u8>,
    run: Arc<Run>,
    keep_matched: bool,
    all: bool,
    width: usize,
    kinds: Vec<KeyKind>,
    reserved: Reservation,
}

impl Rows for Matching {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        while self.left.next(row)? {
            self.run.tick()?;
            row_key(&row[self.width..], &self.kinds, &mut self.key);
            let matched = match self.keys.find(&self.key).map(|number| &mut self.counts[number]) {
                Some(0) | None => false,
                Some(count) if self.all => {
                    *count -= 1;
                    true
                }
                Some(_) => true,
            };
            if matched == self.keep_matched && (self.all || self.seen.is_new(&self.key, &mut self.reserved)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
