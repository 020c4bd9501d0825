//! Common table expressions, recursive ones among them.

use super::{Prefix, Reservation, Rows, Run, Seen, Source, collect, held, listed, open as open_node};
use crate::SqlError;
use crate::engine::keys::{KeyKind, row_key};
use crate::engine::node::{CteScan, Node};
use crate::types::Row;
use std::sync::Arc;

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    match node.as_ref() {
        Node::Cte(scan) => common(scan, prefix, run),
        Node::Given { part } => {
            let rows = run.context.parts.as_ref().map(|parts| parts.rows(*part)).unwrap_or_default();
            Ok(again(rows, prefix, None))
        }
        Node::Working { id } => {
            let rows = run.working.lock().get(id).cloned().unwrap_or_default();
            Ok(again(rows, prefix, None))
        }
        Node::Recursive { id, prefix: width, kinds, base, step, all } => {
            recurse(*id, *width, kinds, (base, step), *all, prefix, run)
        }
        _ => Ok(listed(Vec::new())),
    }
}

/// The rows of a common table expression: kept for the statement, or for others who name it beside the same row around it.
fn common(scan: &CteScan, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    if scan.shared
        && let Some(rows) = run.cached_rows(scan.id)
    {
        return Ok(again(rows, prefix, None));
    }
    // The query that defines it is around the one that uses it, so its prefix is the front of ours.
    let outer: Prefix = Arc::from(&prefix[..scan.prefix]);
    let question = match (!scan.shared).then(|| run.recall(&scan.plan, &outer)) {
        Some(Ok(rows)) => return Ok(again(rows, prefix, None)),
        Some(Err(question)) => question,
        None => None,
    };
    let mut reserved = run.reserve();
    let mut rows = collect(open_node(&scan.plan, &outer, run)?, &mut reserved, run)?;
    rows.iter_mut().for_each(|row| drop(row.drain(..scan.prefix)));
    let rows = Arc::new(rows);
    if scan.shared {
        run.cache_rows(scan.id, rows.clone(), reserved);
        return Ok(again(rows, prefix, None));
    }
    if let Some(question) = question {
        run.remember(&scan.plan, question, &rows);
    }
    Ok(again(rows, prefix, Some(reserved)))
}

/// Rows without a prefix, behind this one.
fn again(rows: Arc<Vec<Row>>, prefix: &Prefix, reserved: Option<Reservation>) -> Source {
    Box::new(Again { rows, place: 0, prefix: prefix.clone(), _reserved: reserved })
}

/// Rows kept elsewhere.
struct Again {
    rows: Arc<Vec<Row>>,
    place: usize,
    prefix: Prefix,
    _reserved: Option<Reservation>,
}

impl Rows for Again {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Some(kept) = self.rows.get(self.place) else { return Ok(false) };
        self.place += 1;
        row.clear();
        row.reserve(self.prefix.len() + kept.len());
        row.extend_from_slice(&self.prefix);
        row.extend_from_slice(kept);
        Ok(true)
    }
}

fn recurse(
    id: usize,
    width: usize,
    kinds: &[KeyKind],
    (base, step): (&Arc<Node>, &Arc<Node>),
    all: bool,
    prefix: &Prefix,
    run: &Arc<Run>,
) -> Result<Source, SqlError> {
    let mut reserved = run.reserve();
    let (mut seen, mut key) = (Seen::new(run.seed), Vec::new());
    let mut fresh = |node| -> Result<Vec<Row>, SqlError> {
        let mut rows = Vec::new();
        for row in collect(open_node(node, prefix, run)?, &mut reserved, run)? {
            run.tick()?;
            // The working table is read without a prefix.
            row_key(&row[width..], kinds, &mut key);
            if all || seen.is_new(&key, &mut reserved)? {
                rows.push(row);
            }
        }
        Ok(rows)
    };
    let mut out = Vec::new();
    let mut round = fresh(base)?;
    while !round.is_empty() {
        run.check()?;
        let bare = round.iter().map(|row| row[width..].to_vec()).collect();
        run.working.lock().insert(id, Arc::new(bare));
        out.append(&mut round);
        round = fresh(step)?;
    }
    run.working.lock().remove(&id);
    Ok(held(out.into_iter(), reserved))
}
