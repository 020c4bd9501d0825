//! The shape of a statement's syntax tree: taken apart if the direct path knows every part of it, given back otherwise. Nothing
//! that the parser has read is ever ignored: a field that is set and not known here is a refusal.

use super::refusal::{Planned, Refusal};
use crate::identifier::fold;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Join, JoinConstraint, JoinOperator, LimitClause, LockClause, ObjectName, OrderByExpr,
    OrderByKind, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
};

/// Most tables of one nested loop.
pub const TABLES_MAX: usize = 4;

/// A SELECT that the direct path may know.
pub struct SelectShape<'a> {
    /// Tables, in the order written.
    pub from: Vec<FromTable<'a>>,
    /// The select list.
    pub items: &'a [SelectItem],
    /// DISTINCT.
    pub distinct: bool,
    /// WHERE.
    pub selection: Option<&'a Expr>,
    /// GROUP BY.
    pub group: &'a [Expr],
    /// HAVING.
    pub having: Option<&'a Expr>,
    /// ORDER BY.
    pub order: &'a [OrderByExpr],
    /// LIMIT.
    pub limit: Option<&'a Expr>,
    /// OFFSET.
    pub offset: Option<&'a Expr>,
    /// FOR UPDATE and its kind.
    pub locks: &'a [LockClause],
}

/// One table of FROM.
pub struct FromTable<'a> {
    /// Its name.
    pub name: &'a ObjectName,
    /// Its alias.
    pub alias: Option<&'a TableAlias>,
    /// LEFT JOIN.
    pub outer: bool,
    /// ON.
    pub on: Option<&'a Expr>,
}

/// Takes a query apart.
pub fn select(query: &Query) -> Planned<SelectShape<'_>> {
    if query.with.is_some() {
        return Err(Refusal::Engine("WITH"));
    }
    if query.for_clause.is_some()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || !query.pipe_operators.is_empty()
    {
        return Err(Refusal::Engine("a clause of another dialect"));
    }
    let SetExpr::Select(select) = query.body.as_ref() else {
        return Err(Refusal::Engine("a set operation, VALUES or a nested query"));
    };
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having,
        named_window,
        qualify,
        window_before_qualify: _,
        value_table_mode,
        flavor: _,
    } = select.as_ref();
    if select_modifiers.is_some()
        || top.is_some()
        || exclude.is_some()
        || into.is_some()
        || !lateral_views.is_empty()
        || prewhere.is_some()
        || !connect_by.is_empty()
        || !cluster_by.is_empty()
        || !distribute_by.is_empty()
        || !sort_by.is_empty()
        || !named_window.is_empty()
        || qualify.is_some()
        || value_table_mode.is_some()
    {
        return Err(Refusal::Engine("a window or a clause of another dialect"));
    }
    let distinct = match distinct {
        None | Some(Distinct::All) => false,
        Some(Distinct::Distinct) => true,
        Some(Distinct::On(_)) => return Err(Refusal::Engine("DISTINCT ON")),
    };
    let group = match group_by {
        GroupByExpr::Expressions(group, modifiers) if modifiers.is_empty() => group.as_slice(),
        _ => return Err(Refusal::Engine("GROUP BY with a modifier")),
    };
    let (limit, offset) = limits(query)?;
    Ok(SelectShape {
        from: tables(from)?,
        items: projection,
        distinct,
        selection: selection.as_ref(),
        group,
        having: having.as_ref(),
        order: order(query)?,
        limit,
        offset,
        locks: &query.locks,
    })
}

fn order(query: &Query) -> Planned<&[OrderByExpr]> {
    let Some(order) = &query.order_by else { return Ok(&[]) };
    match &order.kind {
        OrderByKind::Expressions(keys) if order.interpolate.is_none() && keys.iter().all(|k| k.with_fill.is_none()) => {
            Ok(keys)
        }
        _ => Err(Refusal::Engine("ORDER BY ALL")),
    }
}

fn limits(query: &Query) -> Planned<(Option<&Expr>, Option<&Expr>)> {
    let (mut limit, offset) = match &query.limit_clause {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(_) => return Err(Refusal::Engine("LIMIT of another dialect")),
    };
    if let Some(fetch) = &query.fetch {
        match &fetch.quantity {
            Some(quantity) if !fetch.with_ties && !fetch.percent && limit.is_none() => limit = Some(quantity),
            _ => return Err(Refusal::Engine("FETCH with PERCENT or WITH TIES")),
        }
    }
    Ok((limit, offset))
}

/// Takes FROM apart.
pub fn tables(from: &[TableWithJoins]) -> Planned<Vec<FromTable<'_>>> {
    let mut out = Vec::new();
    for item in from {
        let (name, alias) = table(&item.relation)?;
        out.push(FromTable { name, alias, outer: false, on: None });
        for join in &item.joins {
            out.push(joined(join)?);
        }
    }
    if out.len() > TABLES_MAX {
        return Err(Refusal::Engine("a join of many tables"));
    }
    // A comma after a left join would change what the left side is; nested loops know one chain.
    if from.len() > 1 && out.iter().any(|table| table.outer) {
        return Err(Refusal::Engine("an outer join beside other tables"));
    }
    Ok(out)
}

fn joined(join: &Join) -> Planned<FromTable<'_>> {
    let (outer, constraint) = match &join.join_operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) | JoinOperator::CrossJoin(constraint) => {
            (false, constraint)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (true, constraint),
        _ => return Err(Refusal::Engine("this kind of join")),
    };
    let on = match constraint {
        JoinConstraint::On(on) => Some(on),
        JoinConstraint::None if !outer => None,
        _ => return Err(Refusal::Engine("a join with USING or NATURAL")),
    };
    if join.global {
        return Err(Refusal::Engine("GLOBAL JOIN"));
    }
    let (name, alias) = table(&join.relation)?;
    Ok(FromTable { name, alias, outer, on })
}

/// A plain table of FROM.
pub fn table(factor: &TableFactor) -> Planned<(&ObjectName, Option<&TableAlias>)> {
    let TableFactor::Table {
        name,
        alias,
        args,
        with_hints,
        version,
        with_ordinality,
        partitions,
        json_path,
        sample,
        index_hints,
    } = factor
    else {
        return Err(Refusal::Engine("a derived table or a function in FROM"));
    };
    if args.is_some()
        || !with_hints.is_empty()
        || version.is_some()
        || *with_ordinality
        || !partitions.is_empty()
        || json_path.is_some()
        || sample.is_some()
        || !index_hints.is_empty()
    {
        return Err(Refusal::Engine("a function or a sample in FROM"));
    }
    if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty() || alias.at.is_some()) {
        return Err(Refusal::Engine("an alias with column names"));
    }
    Ok((name, alias.as_ref()))
}

/// `[schema.]name`, folded.
pub fn table_name(name: &ObjectName) -> Result<(Option<String>, String), SqlError> {
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
    match parts.as_deref() {
        Some([table]) => Ok((None, table.clone())),
        Some([schema, table]) => Ok((Some(schema.clone()), table.clone())),
        // The database must be the current one; the session has only one.
        Some([_, schema, table]) => Ok((Some(schema.clone()), table.clone())),
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("improper qualified name (too many dotted names): {name}"),
        )),
    }
}
