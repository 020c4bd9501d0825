//! EXPLAIN: the tree of nodes, one a line.

use super::node::{Join, JoinKind, Node, SetKind};
use std::sync::Arc;

/// Removes nodes that do nothing.
pub(super) fn simplify(node: Arc<Node>) -> Arc<Node> {
    match node.as_ref() {
        Node::Filter { input, conditions } if conditions.is_empty() => simplify(input.clone()),
        _ => node,
    }
}

/// The lines of EXPLAIN.
pub(super) fn lines(node: &Node) -> Vec<String> {
    let mut out = Vec::new();
    describe(node, 0, &mut out);
    out
}

fn join_name(join: &Join) -> String {
    let how = match (join.lateral, join.keys.is_empty(), &join.lookup) {
        (true, ..) => "Nested Loop",
        (_, _, Some(_)) => "Lookup or Hash Join",
        (_, false, _) => "Hash Join",
        _ => "Nested Loop",
    };
    let kind = match join.kind {
        JoinKind::Inner => "",
        JoinKind::Left => " (left)",
        JoinKind::Full => " (full)",
    };
    format!("{how}{kind}")
}

fn table_name(scan: &super::scan::TableScan) -> String {
    let index = scan.access.index(scan.path.index);
    let table = &scan.access.table.name;
    let only = scan.reading().levels.iter().all(|level| level.entries.is_some());
    let how = match (scan.path.is_narrowed(), only) {
        (true, true) => "Index Only Scan",
        (true, false) => "Index Scan",
        (false, true) => "Index Only Scan of all",
        (false, false) => "Scan",
    };
    format!("{how} on {table} using {}", index.name)
}

fn describe(node: &Node, depth: usize, out: &mut Vec<String>) {
    let (name, inputs): (String, Vec<&Arc<Node>>) = match node {
        Node::One => ("Result".into(), vec![]),
        Node::Values(rows) => (format!("Values ({} rows)", rows.len()), vec![]),
        Node::Table(scan) => (table_name(scan), vec![]),
        Node::Virtual { table, .. } => (format!("Catalog Scan on {}.{}", table.schema, table.name), vec![]),
        Node::Internal { name } => (format!("Internal Scan on {name}"), vec![]),
        Node::Sequence { .. } => ("Sequence".into(), vec![]),
        Node::Function { .. } => ("Function Scan".into(), vec![]),
        Node::Filter { input, .. } => ("Filter".into(), vec![input]),
        Node::Project { input, .. } => ("Project".into(), vec![input]),
        Node::Cut { input, .. } => return describe(input, depth, out),
        Node::ProjectSet { input, .. } => ("ProjectSet".into(), vec![input]),
        Node::Join(join) => (join_name(join), vec![&join.left, &join.right]),
        Node::Aggregate { input, keys, .. } => {
            ((if keys.is_empty() { "Aggregate" } else { "HashAggregate" }).into(), vec![input])
        }
        Node::Window { input, .. } => ("WindowAgg".into(), vec![input]),
        Node::Sort { input, limit, .. } => ((if limit.is_some() { "Top-N Sort" } else { "Sort" }).into(), vec![input]),
        Node::Limit { input, .. } => ("Limit".into(), vec![input]),
        Node::Distinct { input, .. } => ("Distinct".into(), vec![input]),
        Node::Set { kind, left, right, .. } => {
            let name = match kind {
                SetKind::Union => "Union",
                SetKind::Intersect => "Intersect",
                SetKind::Except => "Except",
            };
            (name.into(), vec![left, right])
        }
        Node::Cte { plan, .. } => ("CTE Scan".into(), vec![plan]),
        Node::Recursive { base, step, .. } => ("Recursive Union".into(), vec![base, step]),
        Node::Given { .. } => ("CTE Scan".into(), vec![]),
        Node::Working { .. } => ("WorkTable Scan".into(), vec![]),
    };
    let arrow = if depth == 0 { "" } else { "->  " };
    out.push(format!(
        "{}{arrow}{name}",
        "  ".repeat(depth.saturating_mul(3).saturating_sub(2) / 2 + usize::from(depth > 0))
    ));
    inputs.into_iter().for_each(|input| describe(input, depth + 1, out));
}
