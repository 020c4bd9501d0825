//! Common table expressions, recursive ones among them.

use super::{Kept, Prefix, Rows, Run, Seen, Source, collect, held, listed, open as open_node};
use crate::SqlError;
use crate::engine::keys::{KeyKind, row_key};
use crate::engine::node::Node;
use crate::types::Row;
use std::sync::Arc;

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    match node.as_ref() {
        Node::Cte { id, plan, prefix: width, shared } => {
            // The query that defines it is around the one that uses it, so its prefix is the front of ours.
            let outer: Prefix = Arc::from(&prefix[..*width]);
            let rows = match run.cached_rows(*id) {
                Some(rows) if *shared => rows,
                _ => {
                    let mut reserved = run.reserve();
                    let rows = Arc::new(collect(open_node(plan, &outer, run)?, &mut reserved, run)?);
                    if *shared {
                        run.kept.lock().insert(*id, Kept { rows: rows.clone(), _reserved: reserved });
                    }
                    rows
                }
            };
            Ok(Box::new(Again { rows, place: 0, skip: *width, prefix: prefix.clone() }))
        }
        Node::Given { part } => {
            let rows = run.context.parts.as_ref().map(|parts| parts.rows(*part)).unwrap_or_default();
            Ok(Box::new(Again { rows, place: 0, skip: 0, prefix: prefix.clone() }))
        }
        Node::Working { id } => {
            let rows = run.working.lock().get(id).cloned().unwrap_or_default();
            Ok(Box::new(Again { rows, place: 0, skip: 0, prefix: prefix.clone() }))
        }
        Node::Recursive { id, prefix: width, kinds, base, step, all } => {
            recurse(*id, *width, kinds, (base, step), *all, prefix, run)
        }
        _ => Ok(listed(Vec::new())),
    }
}

/// Rows kept elsewhere: their first `skip` slots give way to the prefix.
struct Again {
    rows: Arc<Vec<Row>>,
    place: usize,
    skip: usize,
    prefix: Prefix,
}

impl Rows for Again {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Some(kept) = self.rows.get(self.place) else { return Ok(false) };
        self.place += 1;
        row.clear();
        row.reserve(self.prefix.len() + kept.len() - self.skip);
        row.extend_from_slice(&self.prefix);
        row.extend_from_slice(&kept[self.skip..]);
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
