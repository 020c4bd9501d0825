//! Sources that pass rows on: filters, projections, limits, DISTINCT, set operations.

use super::{Prefix, Reservation, Rows, Run, Seen, Source, open as open_node};
use crate::engine::keys::row_key;
use crate::engine::node::{Node, SetKind};
use crate::engine::scalar::{Scalar, all_true};
use crate::engine::set_function::SetRows;
use crate::types::{Row, Value};
use crate::{SqlError, SqlState};
use std::collections::HashMap;
use std::sync::Arc;

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    let base = |input: &Arc<Node>| -> Result<Base, SqlError> {
        Ok(Base { input: open_node(input, prefix, run)?, node: node.clone(), run: run.clone() })
    };
    Ok(match node.as_ref() {
        Node::Filter { input, .. } => Box::new(Filter(base(input)?)),
        Node::Project { input, .. } => Box::new(Project(base(input)?)),
        Node::Cut { input, .. } => Box::new(Cut(base(input)?)),
        Node::ProjectSet { input, .. } => Box::new(ProjectSet { base: base(input)?, row: Vec::new(), sets: None }),
        Node::Limit { input, offset, limit, .. } => {
            let count =
                |scalar: &Option<Scalar>, word| scalar.as_ref().map_or(Ok(None), |s| count(s, word, prefix, run));
            let (skip, take) = (count(offset, "OFFSET")?.unwrap_or(0), count(limit, "LIMIT")?);
            Box::new(Limit { base: base(input)?, skip, take, last: None })
        }
        Node::Distinct { input, .. } => {
            Box::new(Distinct { base: base(input)?, seen: Seen::default(), reserved: run.reserve() })
        }
        Node::Set { kind, all, prefix: width, left, right } => {
            set_operation(*kind, *all, *width, (left, right), prefix, run)?
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

struct Base {
    input: Source,
    node: Arc<Node>,
    run: Arc<Run>,
}

struct Filter(Base);

impl Rows for Filter {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        let Node::Filter { conditions, .. } = self.0.node.as_ref() else { return Ok(None) };
        while let Some(row) = self.0.input.next()? {
            self.0.run.tick()?;
            if all_true(conditions, &row, &self.0.run)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

struct Project(Base);

impl Rows for Project {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        let Node::Project { prefix, columns, .. } = self.0.node.as_ref() else { return Ok(None) };
        let Some(row) = self.0.input.next()? else { return Ok(None) };
        let mut out = Vec::with_capacity(prefix + columns.len());
        out.extend_from_slice(&row[..*prefix]);
        for column in columns {
            out.push(column.value(&row, &self.0.run)?);
        }
        Ok(Some(out))
    }
}

struct Cut(Base);

impl Rows for Cut {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        let Node::Cut { width, .. } = self.0.node.as_ref() else { return Ok(None) };
        let mut row = self.0.input.next()?;
        if let Some(row) = &mut row {
            row.truncate(*width);
        }
        Ok(row)
    }
}

struct ProjectSet {
    base: Base,
    row: Row,
    sets: Option<SetRows>,
}

impl Rows for ProjectSet {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        let Node::ProjectSet { calls, .. } = self.base.node.as_ref() else { return Ok(None) };
        loop {
            if let Some(sets) = &mut self.sets
                && let Some(values) = sets.next()
            {
                self.base.run.tick()?;
                let mut row = self.row.clone();
                row.extend(values);
                return Ok(Some(row));
            }
            let Some(row) = self.base.input.next()? else { return Ok(None) };
            self.base.run.tick()?;
            self.sets = Some(SetRows::start(calls, &row, &self.base.run)?);
            self.row = row;
        }
    }
}

struct Limit {
    base: Base,
    skip: usize,
    take: Option<usize>,
    last: Option<Row>,
}

impl Rows for Limit {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        while self.skip > 0 {
            self.skip -= 1;
            self.base.run.tick()?;
            if self.base.input.next()?.is_none() {
                return Ok(None);
            }
        }
        let Node::Limit { ties, .. } = self.base.node.as_ref() else { return Ok(None) };
        let beyond = self.take == Some(0);
        match &mut self.take {
            None => return self.base.input.next(),
            Some(0) if self.last.is_none() => return Ok(None),
            Some(0) => {}
            Some(left) => *left -= 1,
        }
        let Some(row) = self.base.input.next()? else { return Ok(None) };
        if !ties.is_empty() {
            let keys = ties.iter().map(|tie| tie.value(&row, &self.base.run)).collect::<Result<Row, _>>()?;
            if beyond && self.last.as_ref().is_some_and(|last| row_key(last) != row_key(&keys)) {
                // Beyond the limit and no tie: nothing more follows.
                self.last = None;
                return Ok(None);
            }
            self.last = Some(keys);
        }
        Ok(Some(row))
    }
}

struct Distinct {
    base: Base,
    seen: Seen,
    reserved: Reservation,
}

impl Rows for Distinct {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        let Node::Distinct { prefix, on, .. } = self.base.node.as_ref() else { return Ok(None) };
        while let Some(row) = self.base.input.next()? {
            self.base.run.tick()?;
            let key = match on {
                None => row_key(&row[*prefix..]),
                Some(on) => {
                    row_key(&on.iter().map(|expr| expr.value(&row, &self.base.run)).collect::<Result<Row, _>>()?)
                }
            };
            if self.seen.is_new(key, &mut self.reserved)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

type Sides<'a> = (&'a Arc<Node>, &'a Arc<Node>);

fn set_operation(
    kind: SetKind,
    all: bool,
    width: usize,
    sides: Sides<'_>,
    prefix: &Prefix,
    run: &Arc<Run>,
) -> Result<Source, SqlError> {
    let left = open_node(sides.0, prefix, run)?;
    let mut right = open_node(sides.1, prefix, run)?;
    if kind == SetKind::Union {
        let both = Union {
            inputs: [Some(left), Some(right)],
            seen: (!all).then(Seen::default),
            run: run.clone(),
            width,
            reserved: run.reserve(),
        };
        return Ok(Box::new(both));
    }
    let mut reserved = run.reserve();
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    while let Some(row) = right.next()? {
        run.tick()?;
        let key = row_key(&row[width..]);
        reserved.bytes(key.len() + 56)?;
        *counts.entry(key).or_default() += 1;
    }
    Ok(Box::new(Matching {
        left,
        counts,
        seen: Seen::default(),
        run: run.clone(),
        keep_matched: kind == SetKind::Intersect,
        all,
        width,
        reserved,
    }))
}

struct Union {
    inputs: [Option<Source>; 2],
    seen: Option<Seen>,
    run: Arc<Run>,
    width: usize,
    reserved: Reservation,
}

impl Rows for Union {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        for input in &mut self.inputs {
            while let Some(source) = input {
                let Some(row) = source.next()? else {
                    *input = None;
                    break;
                };
                self.run.tick()?;
                let Some(seen) = &mut self.seen else { return Ok(Some(row)) };
                if seen.is_new(row_key(&row[self.width..]), &mut self.reserved)? {
                    return Ok(Some(row));
                }
            }
        }
        Ok(None)
    }
}

/// INTERSECT and EXCEPT.
struct Matching {
    left: Source,
    counts: HashMap<Vec<u8>, usize>,
    seen: Seen,
    run: Arc<Run>,
    keep_matched: bool,
    all: bool,
    width: usize,
    reserved: Reservation,
}

impl Rows for Matching {
    fn next(&mut self) -> Result<Option<Row>, SqlError> {
        while let Some(row) = self.left.next()? {
            self.run.tick()?;
            let key = row_key(&row[self.width..]);
            let matched = match self.counts.get_mut(&key) {
                Some(0) | None => false,
                Some(count) if self.all => {
                    *count -= 1;
                    true
                }
                Some(_) => true,
            };
            if matched == self.keep_matched && (self.all || self.seen.is_new(key, &mut self.reserved)?) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
