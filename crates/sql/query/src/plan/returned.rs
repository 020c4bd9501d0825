//! RETURNING of subqueries that depend on the row that was written, as a query over the rows that a part of the statement gives.
//!
//! ```text
//! DELETE FROM t x .. RETURNING f      WITH "returned rows" AS (DELETE FROM t x .. RETURNING x.*) SELECT f FROM "returned rows" AS x
//! ```
//! What a query of a statement with parts reads is what there was before it ([`crate::exec::parts`]), as RETURNING does.
//!
//! Caveat: the other items of FROM and USING have no names there; RETURNING of both is refused. A name without its table that both have is the
//! written one's.

use super::setless::refuse_sets;
use crate::SqlError;
use crate::work::Pace;
use sqlparser::ast::{
    Cte, FromTable, Ident, Insert, ObjectName, Query, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement,
    TableAlias, TableFactor, TableObject, Visit, Visitor, WildcardAdditionalOptions, With,
};
use std::ops::ControlFlow;

/// The part: no table that RETURNING reads can be called so by itself.
const PART: &str = "\0returned rows";

/// The statement as a query over the rows that it writes; `None` if its RETURNING holds no query, or the columns of other items of FROM.
///
/// # Errors
/// What is no value of one row.
pub(super) fn over_rows(statement: &Statement, pace: &Pace) -> Result<Option<Query>, SqlError> {
    let mut recursive = false;
    let (mut writes, mut tables) = match statement {
        Statement::Query(query) => match query.body.as_ref() {
            SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => {
                recursive = query.with.as_ref().is_some_and(|with| with.recursive);
                (inner.clone(), query.with.iter().flat_map(|with| with.cte_tables.iter().cloned()).collect())
            }
            _ => return Ok(None),
        },
        other => (other.clone(), Vec::new()),
    };
    let Some(alias) = target(&writes) else { return Ok(None) };
    let joined = reads_others(&writes);
    let Some(returning) = returning_of(&mut writes) else { return Ok(None) };
    if returning.visit(&mut Queries).is_continue() {
        return Ok(None);
    }
    returning.iter().try_for_each(|item| refuse_sets(item, "RETURNING"))?;
    // `*` is the columns of all items.
    if joined && returning.iter().any(|item| matches!(item, SelectItem::Wildcard(_))) {
        return Ok(None);
    }
    let name = ObjectName::from(alias.clone());
    let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
    let all = SelectItem::QualifiedWildcard(kind, WildcardAdditionalOptions::default());
    let list = std::mem::replace(returning, vec![all]);
    let mut query = *crate::syntax::parse_query("SELECT * FROM t AS t", pace)?.0;
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(None) };
    select.projection = list;
    if let Some(TableFactor::Table { name, alias: Some(known), .. }) =
        select.from.first_mut().map(|item| &mut item.relation)
    {
        *name = ObjectName::from(Ident::with_quote('"', PART));
        known.name = alias;
    }
    let body = match writes {
        writes @ Statement::Insert(_) => SetExpr::Insert(writes),
        writes @ Statement::Update(_) => SetExpr::Update(writes),
        writes => SetExpr::Delete(writes),
    };
    let mut part = query.clone();
    *part.body = body;
    let token = || sqlparser::ast::helpers::attached_token::AttachedToken::empty();
    let alias = TableAlias { explicit: true, name: Ident::with_quote('"', PART), columns: Vec::new(), at: None };
    let materialized = None;
    tables.push(Cte { alias, query: Box::new(part), from: None, materialized, closing_paren_token: token() });
    query.with = Some(With { with_token: token(), recursive, cte_tables: tables });
    Ok(Some(query))
}

/// The name that the table that is written has in RETURNING.
fn target(statement: &Statement) -> Option<Ident> {
    let last = |name: &ObjectName| name.0.last().and_then(|part| part.as_ident()).cloned();
    let named = |factor: &TableFactor| match factor {
        TableFactor::Table { name, alias, .. } => alias.as_ref().map(|alias| alias.name.clone()).or_else(|| last(name)),
        _ => None,
    };
    match statement {
        Statement::Insert(Insert { table: TableObject::TableName(name), table_alias, .. }) => {
            table_alias.as_ref().map(|alias| alias.alias.clone()).or_else(|| last(name))
        }
        Statement::Update(update) => named(&update.table.relation),
        Statement::Delete(delete) => match &delete.from {
            FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables) => named(&tables.first()?.relation),
        },
        _ => None,
    }
}

/// Whether there are items of FROM or USING beside the table that is written.
fn reads_others(statement: &Statement) -> bool {
    match statement {
        Statement::Update(update) => update.from.is_some() || !update.table.joins.is_empty(),
        Statement::Delete(delete) => delete.using.is_some(),
        _ => false,
    }
}

fn returning_of(statement: &mut Statement) -> Option<&mut Vec<SelectItem>> {
    match statement {
        Statement::Insert(insert) => insert.returning.as_mut(),
        Statement::Update(update) => update.returning.as_mut(),
        Statement::Delete(delete) => delete.returning.as_mut(),
        _ => None,
    }
}

/// Looks for a query.
struct Queries;

impl Visitor for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}
