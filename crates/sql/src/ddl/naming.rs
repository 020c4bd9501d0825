//! Names that PostgreSQL would choose: `t_a_b_key`, `t_pkey`, `t_a_seq`, made unique by a number.

use super::Run;
use crate::catalog::{Oid, Table};
use crate::identifier::{NAME_BYTES_MAX, cut};

impl Run<'_> {
    /// A name for an object of a schema, not taken yet, nor among `also`.
    pub(super) fn free_name(&self, schema: Oid, parts: &[&str], suffix: &str, also: &[String]) -> String {
        let taken = |name: &str| self.catalog().named(schema, name).is_some() || also.iter().any(|a| a == name);
        choose(parts, suffix, taken)
    }
}

/// A name for a constraint of a table.
pub(super) fn constraint_name(table: &Table, parts: &[&str], suffix: &str) -> String {
    choose(parts, suffix, |name| constraint_names(table).any(|n| n == name))
}

/// Names of all constraints of a table.
pub(crate) fn constraint_names(table: &Table) -> impl Iterator<Item = &str> {
    let primary = table.has_primary_key.then_some(table.primary.name.as_str());
    let unique = table.indexes.iter().filter(|i| i.constraint).map(|i| i.name.as_str());
    let checks = table.checks.iter().map(|c| c.name.as_str());
    primary.into_iter().chain(unique).chain(checks).chain(table.foreign_keys.iter().map(|f| f.name.as_str()))
}

fn choose(parts: &[&str], suffix: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut base = parts.join("_");
    let room = NAME_BYTES_MAX - suffix.len() - 4;
    base.truncate(cut(&base, room).len());
    let first = format!("{base}_{suffix}");
    if !taken(&first) {
        return first;
    }
    (1..).map(|n| format!("{base}_{suffix}{n}")).find(|name| !taken(name)).unwrap_or(first)
}
