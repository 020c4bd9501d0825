//! Lines of EXPLAIN for direct plans, in PostgreSQL's manner.

use crate::exec::cursor::Level;
use crate::exec::modify::{Action, Find, Modify};
use crate::exec::path::{Reach, Term};
use crate::exec::select::Select;

/// How one table is read: `Index Scan Backward using t_pkey on t`.
pub fn access_line(level: &Level) -> String {
    let (access, path) = (&level.access, &level.path);
    let index = access.index(path.index);
    let backward = if path.reverse { " Backward" } else { "" };
    let table = &access.table.name;
    if !path.is_narrowed() && path.index == 0 {
        return format!("Seq Scan{backward} on {table}");
    }
    let point = path.reaches.iter().all(|reach| reach.is_point(index));
    let kind = match (point, &level.entries) {
        (true, None) => "Point Lookup",
        (true, Some(_)) => "Index Only Lookup",
        (false, None) => "Index Scan",
        (false, Some(_)) => "Index Only Scan",
    };
    format!("{kind}{backward} using {} on {table}", index.name)
}

/// What the keys are made of: `Index Cond: (aid = ..)`.
fn condition_line(level: &Level) -> Option<String> {
    let mut said: Vec<String> = Vec::new();
    for reach in &level.path.reaches {
        let condition = condition(level, reach)?;
        if !said.contains(&condition) {
            said.push(condition);
        }
    }
    let count = level.path.reaches.len();
    match said.as_slice() {
        [one] if count == 1 => Some(format!("Index Cond: {one}")),
        several => Some(format!("Index Cond: {count} alternatives, {}", several.join(" OR "))),
    }
}

fn condition(level: &Level, reach: &Reach) -> Option<String> {
    let index = level.access.index(level.path.index);
    let name = |at: usize| Some(index.column_name(&level.access, index.columns.get(at)?));
    let mut parts = Vec::new();
    for (at, term) in reach.prefix.iter().enumerate() {
        let name = name(at)?;
        parts.push(match term {
            Term::One(_) => format!("{name} = .."),
            Term::Any(list) => format!("{name} IN ({} values)", list.len()),
            Term::AnyOf(_) => format!("{name} = ANY (..)"),
            Term::Null => format!("{name} IS NULL"),
        });
    }
    if let Some(range) = &reach.range {
        let name = name(reach.prefix.len())?;
        if let Some((_, inclusive)) = &range.low {
            parts.push(format!("{name} {} ..", if *inclusive { ">=" } else { ">" }));
        }
        if let Some((_, inclusive)) = &range.high {
            parts.push(format!("{name} {} ..", if *inclusive { "<=" } else { "<" }));
        }
    }
    (!parts.is_empty()).then(|| format!("({})", parts.join(" AND ")))
}

fn level_lines(levels: &[Level], depth: usize, out: &mut Vec<String>) {
    let nested = levels.len() > 1;
    if nested {
        let kind = if levels.iter().any(|level| level.outer) { "Nested Loop Left Join" } else { "Nested Loop" };
        push(out, depth, kind);
    }
    for level in levels {
        let depth = if nested { depth + 1 } else { depth };
        push(out, depth, &access_line(level));
        let extra = [
            condition_line(level),
            level.filter.as_ref().map(|_| "Filter: yes".to_string()),
            level.lock.map(|_| "Locks rows".to_string()),
        ];
        for line in extra.into_iter().flatten() {
            out.push(format!("{}{line}", " ".repeat(depth * 6 + 2)));
        }
    }
}

fn push(out: &mut Vec<String>, depth: usize, line: &str) {
    let arrow = if depth == 0 { String::new() } else { format!("{}->  ", " ".repeat(depth * 6 - 4)) };
    out.push(format!("{arrow}{line}"));
}

/// Lines of a SELECT.
pub fn select(select: &Select) -> Vec<String> {
    let mut out = Vec::new();
    let mut depth = 0;
    let mut node = |out: &mut Vec<String>, name: &str| {
        push(out, depth, name);
        depth += 1;
    };
    if select.limit.is_some() || select.offset.is_some() {
        node(&mut out, "Limit");
    }
    if !select.locks.is_empty() {
        node(&mut out, "LockRows");
    }
    if !select.order.is_empty() {
        node(&mut out, "Sort");
    }
    if select.distinct.is_some() {
        node(&mut out, "Unique");
    }
    match &select.grouping {
        Some(grouping) if !grouping.keys.is_empty() => node(&mut out, "HashAggregate"),
        Some(_) => node(&mut out, "Aggregate"),
        None => {}
    }
    if select.levels.is_empty() {
        node(&mut out, "Result");
    } else {
        level_lines(&select.levels, depth, &mut out);
    }
    out
}

/// Lines of an UPDATE or DELETE.
pub fn modify(modify: &Modify) -> Vec<String> {
    let verb = if matches!(modify.action, Action::Delete) { "Delete" } else { "Update" };
    let mut out = vec![format!("{verb} on {}", modify.target.access.table.name)];
    match &modify.find {
        Find::Loops { levels, .. } => level_lines(levels, 1, &mut out),
        Find::Plan(plan) => nest(&plan.explain(), &mut out),
    }
    out
}

/// Lines of a plan under another.
pub fn nest(lines: &[String], out: &mut Vec<String>) {
    for (i, line) in lines.iter().enumerate() {
        out.push(if i == 0 { format!("  ->  {line}") } else { format!("      {line}") });
    }
}
