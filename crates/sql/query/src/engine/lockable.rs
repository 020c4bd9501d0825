//! FOR UPDATE that is refused, in PostgreSQL's words where it refuses, too: by what OF names.

use crate::identifier::fold;
use crate::syntax::{key_lock, lock_words};
use crate::{SqlError, SqlState};
use sqlparser::ast::{LockClause, Query, SetExpr, TableFactor, TableWithJoins};

/// What a name in FROM is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Rows,
    Join,
    Function,
    With,
}

/// Why a query's rows cannot be locked as it says.
pub(super) fn refusal(query: &Query) -> SqlError {
    let named = query.locks.iter().find_map(|lock| of_name(lock, query));
    named.unwrap_or_else(|| {
        SqlError::unsupported("FOR UPDATE in this query").hint(
            "It locks rows of one table found by its keys: simplify the query, or lock the rows first by their keys.",
        )
    })
}

fn of_name(lock: &LockClause, query: &Query) -> Option<SqlError> {
    let (_, of) = lock.of.as_ref().map(key_lock)?;
    let name = fold(of?.0.last()?.as_ident()?);
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let mut names = Vec::new();
    select.from.iter().for_each(|item| within(item, query, &mut names));
    let words = lock_words(lock);
    let what = match names.iter().find(|(known, _)| *known == name).map(|(_, what)| what) {
        Some(Named::Rows) => return None,
        Some(Named::Join) => "a join",
        Some(Named::Function) => "a function",
        Some(Named::With) => "a WITH query",
        None => {
            let message = format!("relation \"{name}\" in {words} clause not found in FROM clause");
            return Some(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
    };
    Some(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{words} cannot be applied to {what}")))
}

/// The names of an item of FROM, and what they are; those within a join that has a name of its own are not seen.
fn within(item: &TableWithJoins, query: &Query, names: &mut Vec<(String, Named)>) {
    for factor in std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => within(table_with_joins, query, names),
            TableFactor::NestedJoin { alias: Some(alias), .. } => names.push((fold(&alias.name), Named::Join)),
            TableFactor::Table { name, alias, args, .. } => {
                let Some(own) = name.0.last().and_then(|part| part.as_ident()).map(fold) else { continue };
                let of_with = || {
                    let tables = query.with.iter().flat_map(|with| &with.cte_tables);
                    name.0.len() == 1 && tables.into_iter().any(|table| fold(&table.alias.name) == own)
                };
                let what = match args {
                    Some(_) => Named::Function,
                    None if of_with() => Named::With,
                    None => Named::Rows,
                };
                names.push((alias.as_ref().map_or(own, |alias| fold(&alias.name)), what));
            }
            TableFactor::Derived { alias: Some(alias), .. } => names.push((fold(&alias.name), Named::Rows)),
            TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::TableFunction { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => names.push((fold(&alias.name), Named::Function)),
            _ => {}
        }
    }
}
