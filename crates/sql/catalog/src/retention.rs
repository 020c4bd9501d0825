//! Which tables are kept for another time than the rest, for the layers below.

use super::{Relation, Snapshot, key};
use crate::transaction::Retentions;

/// As the catalog has it. Whoever reads the past of a table reads the catalog of that time, too.
pub fn retentions(catalog: &Snapshot) -> Retentions {
    let mut indexes = Vec::new();
    for relation in catalog.databases().flat_map(|database| catalog.relations(database.id)) {
        if let Relation::Table(table) = &*relation
            && let Some(retention) = &table.retention
        {
            let all = std::iter::once(&table.primary).chain(&table.indexes);
            indexes.extend(all.map(|index| (index.id, retention.seconds)));
        }
    }
    indexes.sort_unstable();
    let shared = match indexes.is_empty() {
        true => Vec::new(),
        false => vec![key::VERSION, key::DATABASES, key::SCHEMAS, key::RELATIONS],
    };
    Retentions { indexes, shared }
}
