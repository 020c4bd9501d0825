//! Queries: WITH, set operations, VALUES, and the ORDER BY and LIMIT around them.

use super::bind::{Binder, Cte, Output, Planned, direction};
use super::keys::own_kinds;
use super::literals::LiteralRows;
use super::named_items::name_parts;
use super::node::{CteScan, Node, SetKind, SortKey};
use super::recursive::{self, names_read, times_read};
use super::scalar::Scalar;
use super::scope::{Place, Scope, ScopeColumn, ScopeRelation, Visible};
use super::take::Clause;
use super::types::common;
use super::walk;
use crate::identifier::fold;
use crate::plan::select::fits_a_list;
use crate::syntax::literal_rows;
use crate::types::{CastKind, SqlType};
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, CteAsMaterialized, Expr, LimitClause, OrderBy, OrderByKind, Query, SetExpr, SetOperator, SetQuantifier,
    visit_expressions,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// NOT MATERIALIZED is heeded at each of several places while there are so many queries in what stands there, at most: a chain of such queries of which
/// each names the one before twice would be 2^n queries. It is a wish: what is computed once has the same rows.
const INLINED_QUERIES_MAX: usize = 64;

/// What a literal comes to as a [`Scalar`], bytes, about: what makes it one of the column's type may be around it.
const SCALAR_BYTES: usize = size_of::<Scalar>() + size_of::<crate::expr::Expr>();

/// What follows the body of a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail<'q> {
    pub(super) order: Option<&'q OrderBy>,
    pub(super) limit: Option<&'q Expr>,
    pub(super) offset: Option<&'q Expr>,
    pub(super) with_ties: bool,
}

/// LIMIT and OFFSET, bound.
pub(super) struct Limits {
    pub(super) limit: Option<Scalar>,
    pub(super) offset: Option<Scalar>,
}

impl Tail<'_> {
    /// What a sort may use of the LIMIT behind it.
    pub(super) fn of_sort(&self, limits: &Limits) -> Option<(Option<Scalar>, Scalar)> {
        let limit = limits.limit.clone().filter(|_| !self.with_ties)?;
        Some((limits.offset.clone(), limit))
    }
}

/// What follows the body of a query.
pub(super) fn tail(query: &Query) -> Result<Tail<'_>, SqlError> {
    let (mut limit, offset) = match &query.limit_clause {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(other) => return Err(SqlError::unsupported(other)),
    };
    let mut with_ties = false;
    if let Some(fetch) = &query.fetch {
        if fetch.percent {
            return Err(SqlError::unsupported("FETCH .. PERCENT"));
        }
        with_ties = fetch.with_ties;
        if with_ties && query.order_by.is_none() {
            let message = "WITH TIES cannot be specified without ORDER BY clause";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        // How many may stand in a LIMIT: see `syntax::reshape`.
        limit = fetch.quantity.as_ref().or(limit);
        if with_ties && limit.is_some_and(is_null) {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
            return Err(SqlError::new(SqlState(*b"2201W"), message));
        }
    }
    Ok(Tail { order: query.order_by.as_ref(), limit, offset, with_ties })
}

/// Whether NULL is written, as nothing else.
fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_null(inner),
        Expr::Value(value) => value.value == ast::Value::Null,
        _ => false,
    }
}

/// Refuses what PostgreSQL does not have or what this engine would have to leave out.
fn refuse(query: &Query) -> Result<(), SqlError> {
    if !query.locks.is_empty() {
        return Err(super::lockable::refusal(query));
    }
    if query.for_clause.is_some()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || !query.pipe_operators.is_empty()
    {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error: this clause is not PostgreSQL's"));
    }
    Ok(())
}

/// The keys of an ORDER BY.
pub(super) fn order_keys(order: &OrderBy) -> Result<&[ast::OrderByExpr], SqlError> {
    match &order.kind {
        OrderByKind::Expressions(keys) if order.interpolate.is_none() => Ok(keys),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error in ORDER BY")),
    }
}

/// An ordinal in ORDER BY or GROUP BY: the place of an output column.
pub(super) fn ordinal(expr: &Expr, count: usize, clause: &str) -> Result<Option<usize>, SqlError> {
    let mut inner = expr;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    let Expr::Value(value) = inner else { return Ok(None) };
    let text = match &value.value {
        ast::Value::Number(text, _) => text.as_str(),
        ast::Value::SingleQuotedString(_)
        | ast::Value::EscapedStringLiteral(_)
        | ast::Value::UnicodeStringLiteral(_)
        | ast::Value::DollarQuotedString(_)
        | ast::Value::Boolean(_)
        | ast::Value::Null => "",
        _ => return Ok(None),
    };
    match text.parse::<usize>() {
        Ok(n) if (1..=count).contains(&n) => Ok(Some(n - 1)),
        Ok(n) => Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!("{clause} position {n} is not in select list"),
        )),
        Err(_) => Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"))),
    }
}

impl Binder<'_> {
    /// Plans a query inside a scope.
    pub(super) fn query(&mut self, query: &Query, outer: &Scope<'_>) -> Result<Planned, SqlError> {
        refuse(query)?;
        let visible = self.ctes.len();
        let planned = self.nested(|binder| {
            if let Some(with) = &query.with {
                binder.with(with, query, outer)?;
            }
            let tail = tail(query)?;
            match query.body.as_ref() {
                SetExpr::Select(select) => binder.select(select, tail, outer),
                body => {
                    let planned = binder.body(body, outer)?;
                    let set = matches!(body, SetExpr::SetOperation { .. });
                    binder.finish(planned, set, tail, outer)
                }
            }
        });
        self.ctes.truncate(visible);
        planned
    }

    fn body(&mut self, body: &SetExpr, outer: &Scope<'_>) -> Result<Planned, SqlError> {
        match body {
            SetExpr::Select(select) => {
                let tail = Tail { order: None, limit: None, offset: None, with_ties: false };
                self.nested(|binder| binder.select(select, tail, outer))
            }
            SetExpr::Query(query) => self.query(query, outer),
            SetExpr::Values(values) => self.values(values, outer),
            SetExpr::SetOperation { .. } => self.set_operations(body, outer),
            SetExpr::Table(table) => {
                let (schema, Some(name)) = (table.schema_name.clone(), table.table_name.clone()) else {
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, "TABLE needs a name"));
                };
                let name = schema
                    .into_iter()
                    .chain([name])
                    .map(ast::Ident::new)
                    .map(ast::ObjectNamePart::Identifier)
                    .collect();
                self.whole_table(&ast::ObjectName(name), outer)
            }
            _ => {
                let message = "WITH clause containing a data-modifying statement must be at the top level";
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    fn values(&mut self, values: &ast::Values, outer: &Scope<'_>) -> Result<Planned, SqlError> {
        fits_a_list(values.rows.first().map_or(0, |row| literal_rows::width(&row.content)))?;
        if let Some(planned) = self.literals(values, outer)? {
            return Ok(planned);
        }
        // What was kept as text while it was read becomes as large as it is here, for as long as the plan is there.
        let mut held = self.share();
        held.take(literal_rows::kept_bytes(values, SCALAR_BYTES))?;
        let mut rows: Vec<Vec<Scalar>> = Vec::with_capacity(literal_rows::count(values));
        for row in literal_rows::all(values) {
            let row: Vec<Scalar> =
                row.iter().map(|expr| self.scalar(expr, outer, Clause::plain("VALUES"))).collect::<Result<_, _>>()?;
            if rows.first().is_some_and(|first| first.len() != row.len()) {
                return Err(unequal_rows());
            }
            rows.push(row);
        }
        let width = rows.first().map_or(0, Vec::len);
        let mut columns = Vec::with_capacity(width);
        for place in 0..width {
            let mut ty = rows.first().map_or(SqlType::Unknown, |row| row[place].ty.clone());
            for row in rows.iter().skip(1) {
                self.context.pace.step()?;
                ty = common(&ty, &row[place].ty, "VALUES")?;
            }
            if ty == SqlType::Unknown {
                ty = SqlType::Text;
            }
            columns.push(Output { name: format!("column{}", place + 1), ty, origin: None });
        }
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            self.context.pace.step()?;
            let row = row.into_iter().zip(&columns).map(|(scalar, column)| self.must_coerce(scalar, &column.ty));
            out.push(row.collect::<Result<_, _>>()?);
        }
        Ok(Planned { node: Arc::new(Node::Values { rows: out, _held: held }), columns })
    }

    /// Rows most of which are kept as text, as values; `None` where they are few, or something in them is no literal.
    fn literals(&mut self, values: &ast::Values, outer: &Scope<'_>) -> Result<Option<Planned>, SqlError> {
        let is_plain = |expr: &Expr| match expr {
            Expr::UnaryOp { expr, .. } => matches!(expr.as_ref(), Expr::Value(_)),
            Expr::Value(value) => !matches!(value.value, ast::Value::Placeholder(_)),
            _ => false,
        };
        let kept = values.rows.iter().any(|row| literal_rows::kept(&row.content).is_some());
        if !kept || !values.rows.iter().all(|row| row.content.iter().all(is_plain)) {
            return Ok(None);
        }
        let mut widths = values.rows.iter().map(|row| literal_rows::width(&row.content));
        let width = widths.next().unwrap_or(0);
        if widths.any(|other| other != width) {
            return Err(unequal_rows());
        }
        let mut types: Vec<Option<SqlType>> = vec![None; width];
        // Of the columns whose types do not match the first is told, wherever in it that is.
        let mut wrong: Option<(usize, SqlError)> = None;
        for row in literal_rows::all(values) {
            self.context.pace.step()?;
            for (place, (known, expr)) in types.iter_mut().zip(row.iter()).enumerate() {
                if wrong.as_ref().is_some_and(|(first, _)| place >= *first) {
                    break;
                }
                let ty = self.scalar(expr, outer, Clause::plain("VALUES"))?.ty;
                match known.as_ref().map_or(Ok(ty.clone()), |known| common(known, &ty, "VALUES")) {
                    Ok(ty) => *known = Some(ty),
                    Err(error) => wrong = Some((place, error)),
                }
            }
        }
        if let Some((_, error)) = wrong {
            return Err(error);
        }
        let column = |(place, ty): (usize, Option<SqlType>)| {
            let ty = ty.filter(|ty| *ty != SqlType::Unknown).unwrap_or(SqlType::Text);
            Output { name: format!("column{}", place + 1), ty, origin: None }
        };
        let columns: Vec<Output> = types.into_iter().enumerate().map(column).collect();
        let mut rows = LiteralRows::new(columns.len(), literal_rows::count(values), self.share())?;
        for row in literal_rows::all(values) {
            self.context.pace.step()?;
            let mut out = Vec::with_capacity(width);
            for (expr, column) in row.iter().zip(&columns) {
                let scalar = self.scalar(expr, outer, Clause::plain("VALUES"))?;
                let scalar = self.must_coerce(scalar, &column.ty)?;
                let Some(value) = scalar.expr.constant().filter(|_| scalar.steps.is_empty()) else { return Ok(None) };
                out.push(value);
            }
            rows.push(out)?;
        }
        Ok(Some(Planned { node: Arc::new(Node::Literals(rows)), columns }))
    }

    fn must_coerce(&mut self, scalar: Scalar, to: &SqlType) -> Result<Scalar, SqlError> {
        let from = scalar.ty.clone();
        self.coerce(scalar, to, CastKind::Assignment)?.ok_or_else(|| {
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("types {} and {} cannot be matched", from.base(), to.base()),
            )
        })
    }

    /// `a UNION b UNION c ..` nests to the left as deep as it is long: walked, not descended.
    fn set_operations(&mut self, body: &SetExpr, outer: &Scope<'_>) -> Result<Planned, SqlError> {
        let mut first = body;
        let mut links = Vec::new();
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = first {
            self.branch()?;
            links.push((*op, *set_quantifier, right));
            first = left;
        }
        let mut whole = self.body(first, outer)?;
        for (op, quantifier, right) in links.into_iter().rev() {
            whole = self.set_operation(whole, op, quantifier, right, outer)?;
        }
        Ok(whole)
    }

    fn set_operation(
        &mut self,
        left: Planned,
        op: SetOperator,
        quantifier: SetQuantifier,
        right: &SetExpr,
        outer: &Scope<'_>,
    ) -> Result<Planned, SqlError> {
        let (kind, name) = match op {
            SetOperator::Union => (SetKind::Union, "UNION"),
            SetOperator::Intersect => (SetKind::Intersect, "INTERSECT"),
            SetOperator::Except | SetOperator::Minus => (SetKind::Except, "EXCEPT"),
        };
        let all = match quantifier {
            SetQuantifier::All => true,
            SetQuantifier::Distinct | SetQuantifier::None => false,
            _ => return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error: BY NAME is not PostgreSQL's")),
        };
        let right = self.body(right, outer)?;
        let columns = agree(&left.columns, &right.columns, name)?;
        if !all {
            columns.iter().try_for_each(|column| column.ty.check_equality())?;
        }
        let prefix = outer.width();
        let left = self.cast_columns(left, &columns, prefix)?;
        let right = self.cast_columns(right, &columns, prefix)?;
        let kinds = own_kinds(columns.iter().map(|column| &column.ty));
        Ok(Planned { node: Arc::new(Node::Set { kind, all, prefix, kinds, left, right }), columns })
    }

    /// Brings the columns of a query to the types of others.
    pub(super) fn cast_columns(
        &mut self,
        planned: Planned,
        to: &[Output],
        prefix: usize,
    ) -> Result<Arc<Node>, SqlError> {
        if planned.columns.iter().zip(to).all(|(from, to)| from.ty == to.ty) {
            return Ok(planned.node);
        }
        let width = prefix + planned.columns.len();
        let mut columns = Vec::with_capacity(to.len());
        for (place, (from, to)) in planned.columns.iter().zip(to).enumerate() {
            // A literal of no type is a text, read as the type.
            let unknown = from.ty == SqlType::Unknown;
            let ty = if unknown { SqlType::Text } else { from.ty.clone() };
            let scalar = Self::slot(prefix + place, &ty, width);
            let kind = if unknown { CastKind::Explicit } else { CastKind::Assignment };
            let message = format!("types {} and {} cannot be matched", from.ty.base(), to.ty.base());
            columns.push(
                self.coerce(scalar, &to.ty, kind)?
                    .ok_or_else(|| SqlError::new(SqlState::DATATYPE_MISMATCH, message))?,
            );
        }
        Ok(Arc::new(Node::Project { input: planned.node, prefix, columns }))
    }

    /// Columns of unknown type become texts: their values are texts already.
    pub(super) fn known_columns(&mut self, mut planned: Planned, _prefix: usize) -> Planned {
        for column in planned.columns.iter_mut().filter(|column| column.ty == SqlType::Unknown) {
            column.ty = SqlType::Text;
        }
        planned
    }

    /// ORDER BY and LIMIT over the columns of a set operation or VALUES.
    fn finish(&mut self, planned: Planned, set: bool, tail: Tail<'_>, outer: &Scope<'_>) -> Result<Planned, SqlError> {
        let planned = self.known_columns(planned, outer.width());
        let scope = output_scope(&planned.columns, outer);
        let mut node = planned.node;
        let mut ties = Vec::new();
        // The columns of a set operation are known to its ORDER BY only.
        let nothing = Scope::inside(Some(outer));
        let limits = self.limits(&tail, if set { &nothing } else { &scope }, outer)?;
        if let Some(order) = tail.order {
            let mut keys = Vec::new();
            for key in order_keys(order)? {
                let place = ordinal(&key.expr, planned.columns.len(), "ORDER BY")?;
                if set && place.is_none() && !names_output(&key.expr, &planned.columns) {
                    return Err(set_order(&key.expr, &scope));
                }
                let by = match place {
                    Some(place) => Self::slot(outer.width() + place, &planned.columns[place].ty, scope.width()),
                    None => self.scalar(&key.expr, &scope, Clause::plain("ORDER BY"))?,
                };
                if tail.with_ties {
                    ties.push(by.clone());
                }
                let (descending, nulls_first) = direction(key);
                keys.push(SortKey { by, descending, nulls_first });
            }
            node = Arc::new(Node::Sort { input: node, keys, limit: tail.of_sort(&limits) });
        }
        let node = limited(node, limits, ties);
        Ok(Planned { node, columns: planned.columns })
    }

    /// LIMIT and OFFSET, bound; `own` are the names of the rows that they count.
    pub(super) fn limits(&mut self, tail: &Tail<'_>, own: &Scope<'_>, outer: &Scope<'_>) -> Result<Limits, SqlError> {
        let mut count = |expr: Option<&Expr>, word| expr.map(|expr| self.row_count(expr, word, own, outer)).transpose();
        Ok(Limits { limit: count(tail.limit, "LIMIT")?, offset: count(tail.offset, "OFFSET")? })
    }

    fn row_count(
        &mut self,
        expr: &Expr,
        word: &'static str,
        own: &Scope<'_>,
        outer: &Scope<'_>,
    ) -> Result<Scalar, SqlError> {
        let is_own =
            |expr: &Expr| name_parts(expr).is_some_and(|parts| matches!(own.here(&parts), Ok(Some(_)) | Err(_)));
        let varies = || {
            let message = format!("argument of {word} must not contain variables");
            SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
        };
        let mut alone = expr;
        while let Expr::Nested(inner) = alone {
            alone = inner;
        }
        if is_own(alone) {
            return Err(varies());
        }
        let scalar = self.scalar(expr, outer, Clause::plain(word)).map_err(|error| {
            let unknown = matches!(error.state, SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE);
            let names_own = unknown
                && visit_expressions(expr, |part| match is_own(part) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
                .is_break();
            if names_own { varies() } else { error }
        })?;
        let ty = scalar.ty.clone();
        let message = format!("argument of {word} must be type bigint, not type {ty}");
        self.coerce(scalar, &SqlType::Int8, CastKind::Assignment)?
            .ok_or_else(|| SqlError::new(SqlState::DATATYPE_MISMATCH, message))
    }

    /// Plans the common table expressions of a query.
    pub(super) fn with(&mut self, with: &ast::With, of: &Query, outer: &Scope<'_>) -> Result<(), SqlError> {
        // Once for all of them: a query may have thousands.
        let read = names_read(of)?;
        for cte in &with.cte_tables {
            let name = fold(&cte.alias.name);
            let recursive = with.recursive && times_read(&cte.query, &name, 1) > 0;
            let (frame, before) = (Scope::inside(Some(outer)), self.bounds.weight);
            let planned = match recursive {
                true => self.recursive(cte, &name, &frame)?,
                false => self.query(&cte.query, &frame)?,
            };
            let planned = self.known_columns(planned, outer.width());
            let weight = self.bounds.weight - before;
            let columns = renamed(planned.columns, &cte.alias.columns, &name)?;
            let once = read.get(&name) == Some(&1);
            let wanted = match &cte.materialized {
                _ if recursive || outer.width() > 0 => false,
                Some(CteAsMaterialized::Materialized) => false,
                Some(CteAsMaterialized::NotMaterialized) => once || weight <= INLINED_QUERIES_MAX,
                None => once,
            };
            let shared = !frame.uses_parent.get() && !walk::reads_round(&planned.node);
            let volatile = walk::is_volatile(&planned.node);
            let inlined = (wanted && !volatile).then(|| planned.node.clone());
            let names = columns.iter().map(|column| column.name.clone()).collect();
            let (id, plan, prefix) = (self.id(), planned.node, outer.width());
            let scan = CteScan { id, name: name.clone(), columns: names, plan, prefix, shared, volatile };
            self.ctes.push(Cte { name, columns, node: Arc::new(Node::Cte(scan)), inlined, weight });
        }
        Ok(())
    }

    fn recursive(&mut self, cte: &ast::Cte, name: &str, outer: &Scope<'_>) -> Result<Planned, SqlError> {
        let SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right } = cte.query.body.as_ref()
        else {
            let message = format!(
                "recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"
            );
            return Err(SqlError::new(SqlState(*b"42P19"), message));
        };
        if cte.query.order_by.is_some() || cte.query.limit_clause.is_some() || cte.query.with.is_some() {
            return Err(SqlError::unsupported("ORDER BY, LIMIT or WITH in a recursive query"));
        }
        recursive::check(name, left, right)?;
        let base = self.body(left, outer)?;
        let base = self.known_columns(base, outer.width());
        let columns = renamed(base.columns.clone(), &cte.alias.columns, name)?;
        let id = self.id();
        self.ctes.push(Cte {
            name: name.to_string(),
            columns: columns.clone(),
            node: Arc::new(Node::Working { id }),
            inlined: None,
            weight: 1,
        });
        let step = self.body(right, outer);
        self.ctes.pop();
        let step = step?;
        agree(&columns, &step.columns, "UNION")?;
        let step = self.cast_columns(step, &columns, outer.width())?;
        let all = *set_quantifier == SetQuantifier::All;
        let kinds = own_kinds(columns.iter().map(|column| &column.ty));
        let node = Node::Recursive { id, prefix: outer.width(), kinds, base: base.node, step, all };
        Ok(Planned { node: Arc::new(node), columns })
    }
}

fn unequal_rows() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "VALUES lists must all be the same length")
}

/// Cuts rows by LIMIT and OFFSET.
pub(super) fn limited(node: Arc<Node>, limits: Limits, ties: Vec<Scalar>) -> Arc<Node> {
    let Limits { limit, offset } = limits;
    if limit.is_none() && offset.is_none() {
        return node;
    }
    Arc::new(Node::Limit { input: node, offset, limit, ties })
}

/// The columns of a set operation: the left names, types that both sides can take.
fn agree(left: &[Output], right: &[Output], name: &str) -> Result<Vec<Output>, SqlError> {
    if left.len() != right.len() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("each {name} query must have the same number of columns"),
        ));
    }
    let both = left.iter().zip(right);
    both.map(|(l, r)| {
        let ty = match common(&l.ty, &r.ty, name)? {
            SqlType::Unknown => SqlType::Text,
            ty => ty,
        };
        Ok(Output { name: l.name.clone(), ty, origin: None })
    })
    .collect()
}

/// Whether a sort key is the name of an output column.
fn names_output(key: &Expr, columns: &[Output]) -> bool {
    matches!(key, Expr::Identifier(name) if columns.iter().any(|column| column.name == fold(name)))
}

/// The error of a sort key of a set operation that is none of its columns.
fn set_order(key: &Expr, scope: &Scope<'_>) -> SqlError {
    if let Expr::Identifier(name) = key
        && let Err(error) = scope.column(&[fold(name)])
    {
        return error.with(|e| e.position = super::take::place_of(Some(name)));
    }
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
        .detail("Only result column names can be used, not expressions or functions.")
        .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
}

/// A scope of the columns of a result, after the prefix.
pub(super) fn output_scope<'p>(columns: &[Output], outer: &'p Scope<'p>) -> Scope<'p> {
    let mut scope = Scope::inside(Some(outer));
    scope.relations.push(ScopeRelation {
        alias: String::new(),
        schema: None,
        table: None,
        scalar: false,
        of: None,
        unnamed: true,
        visible: Visible::Yes,
    });
    for (number, column) in columns.iter().enumerate() {
        let place = Place::Slot(scope.width());
        let name = column.name.clone();
        scope.types.push(column.ty.clone());
        scope.columns.push(ScopeColumn { relation: 0, number, name, place, origin: None, shadowed: false, rank: 0 });
    }
    scope
}

/// Columns under the names of an alias.
pub(super) fn renamed(
    mut columns: Vec<Output>,
    names: &[ast::TableAliasColumnDef],
    table: &str,
) -> Result<Vec<Output>, SqlError> {
    if names.len() > columns.len() {
        let message =
            format!("table \"{table}\" has {} columns available but {} columns specified", columns.len(), names.len());
        return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name = fold(&name.name);
    }
    Ok(columns)
}
