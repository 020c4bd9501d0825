//! `JOIN u USING (a, b) AS j`: a name for the columns that the join merges, and for nothing else.
//!
//! The library does not read it. It is marked by one more name in the list of columns, and taken out of the tree again: `j.a` is the merged
//! column, which `a` alone names, `j.*` all of them, and `j` the row of them. (PostgreSQL, SELECT, "FROM Clause", `join_using_alias`.)
//!
//! In a query inside, `a` alone would be that query's own: there it is the column of the side that the join takes it from. Where that is no
//! single item of FROM (FULL JOIN, a join of joins) it is refused.
//!
//! Caveat: where another item of FROM has a column of that name, too, it is ambiguous.

use super::forms::NAMED_ROW;
use super::locking::{key_lock, lock_words};
use super::naming::output_name;
use super::tokens::is;
use super::tree::{call, constraint_mut, constraint_of};
use crate::identifier::fold;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    AccessExpr, Array, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinConstraint,
    JoinOperator, LockClause, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableFactor, TableWithJoins, Value, VisitMut, VisitorMut,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::ops::ControlFlow;

/// Begins the name that marks an alias: no text of a statement holds it.
const ALIAS: &str = "\0as ";

/// Marks the aliases; whether there are any.
pub(super) fn mark(tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, bool) {
    let kind = |at: usize| tokens.get(at).map(|t| &t.token);
    // The parenthesis behind USING that closes a list of names before AS and a name.
    let closing = |at: usize| {
        if !is(tokens.get(at), "USING") || kind(at + 1) != Some(&Token::LParen) {
            return None;
        }
        // Names and commas in turn: `USING (TABLE u) AS s` is an item of FROM.
        let mut close = at + 3;
        while kind(close) == Some(&Token::Comma) {
            close += 2;
        }
        let mut names = (at + 2..close).step_by(2);
        let named = names.all(|name| matches!(kind(name), Some(Token::Word(_))))
            && kind(close) == Some(&Token::RParen)
            && is(tokens.get(close + 1), "AS")
            && matches!(kind(close + 2), Some(Token::Word(_)));
        named.then_some(close)
    };
    let mut out = Vec::with_capacity(tokens.len());
    let mut found = false;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let Some(close) = closing(at) else {
            out.push(token.clone());
            at += 1;
            continue;
        };
        out.extend(tokens[at..close].iter().cloned());
        if let Some(Token::Word(alias)) = kind(close + 2) {
            let name = fold(&Ident { value: alias.value.clone(), quote_style: alias.quote_style, span: token.span });
            let word = Word { value: format!("{ALIAS}{name}"), quote_style: Some('"'), keyword: Keyword::NoKeyword };
            out.push(TokenWithSpan { token: Token::Comma, span: token.span });
            out.push(TokenWithSpan { token: Token::Word(word), span: token.span });
        }
        out.push(tokens[close].clone());
        found = true;
        at = close + 3;
    }
    (out, found)
}

/// An alias, and the columns that it names.
struct Named {
    alias: String,
    columns: Vec<Ident>,
    /// The item of FROM that the columns are taken from, if it is one.
    side: Option<Ident>,
}

impl Named {
    fn column(&self, name: &Ident) -> Option<&Ident> {
        let name = fold(name);
        self.columns.iter().find(|column| fold(column) == name)
    }
}

/// The aliases of a FROM, taken out of it.
fn taken(from: &mut [TableWithJoins]) -> Result<Vec<Named>, SqlError> {
    let mut named = Vec::new();
    from.iter_mut().for_each(|item| take(item, &mut named));
    if !named.is_empty() {
        let mut names = Vec::new();
        from.iter().for_each(|item| names_in(item, &mut names));
        names.extend(named.iter().map(|named| named.alias.clone()));
        let is_twice = |named: &&Named| names.iter().filter(|name| **name == named.alias).count() > 1;
        if let Some(twice) = named.iter().find(is_twice) {
            let message = format!("table name \"{}\" specified more than once", twice.alias);
            return Err(SqlError::new(SqlState(*b"42712"), message));
        }
    }
    Ok(named)
}

fn visited<T: VisitMut>(node: &mut T, mut resolve: Resolve) -> Result<(), SqlError> {
    match node.visit(&mut resolve) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Names the columns that ORDER BY means by the aliases of its query's joins.
///
/// # Errors
/// 0A000 for a lock on such an alias.
pub(super) fn resolve_order(query: &mut Query) -> Result<(), SqlError> {
    let of = |lock: &LockClause| lock.of.as_ref().and_then(|of| key_lock(of).1);
    if query.order_by.is_none() && query.locks.iter().all(|lock| of(lock).is_none()) {
        return Ok(());
    }
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    // The aliases are there for the list, too.
    let named = taken(&mut select.from.clone())?;
    if named.is_empty() {
        return Ok(());
    }
    if let Some(lock) = query.locks.iter().find(|lock| of(lock).is_some_and(|name| find(&named, &name).is_some())) {
        let message = format!("{} cannot be applied to a join", lock_words(lock));
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let Some(order) = &mut query.order_by else { return Ok(()) };
    // A name of the list comes before a column.
    let mut labels = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(_) => {}
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) if column_of(&named, parts).is_some() => {}
            SelectItem::UnnamedExpr(expr) => labels.push(output_name(expr)),
            SelectItem::ExprWithAlias { alias, .. } => labels.push(fold(alias)),
            _ => labels.extend(named.iter().flat_map(|named| &named.columns).map(fold)),
        }
    }
    visited(order, Resolve { named, labels, hidden: Vec::new() })
}

/// The same for what writes: its items of FROM or USING have no query of their own.
pub(super) fn resolve_written<T: VisitMut>(
    statement: &mut T,
    from: impl FnOnce(&mut T) -> &mut [TableWithJoins],
) -> Result<(), SqlError> {
    let named = taken(from(statement))?;
    if named.is_empty() {
        return Ok(());
    }
    visited(statement, Resolve { named, labels: Vec::new(), hidden: Vec::new() })
}

/// Takes the aliases of a query's joins out of it.
pub(super) fn resolve(select: &mut Select) -> Result<(), SqlError> {
    let named = taken(&mut select.from)?;
    if named.is_empty() {
        return Ok(());
    }
    let mut projection = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match &item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                match find(&named, name) {
                    Some(found) => projection.extend(found.columns.iter().map(|column| item_of(column.clone()))),
                    None => projection.push(item),
                }
            }
            // Its name is that of the column, or of the alias.
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) if column_of(&named, parts).is_some() => {
                projection.extend(column_of(&named, parts).map(item_of));
            }
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) if row_of(&named, ident).is_some() => {
                projection.extend(row_of(&named, ident).map(|found| SelectItem::ExprWithAlias {
                    expr: row(found, found.columns.iter().cloned().map(Expr::Identifier)),
                    alias: ident.clone(),
                }));
            }
            _ => projection.push(item),
        }
    }
    select.projection = projection;
    visited(select, Resolve { named, labels: Vec::new(), hidden: Vec::new() })
}

/// The names of an item of FROM, and of all that is joined to it.
fn names_in(item: &TableWithJoins, names: &mut Vec<String>) {
    for factor in std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => names_in(table_with_joins, names),
            factor => names.push(name_of(factor).map(|name| fold(&name)).unwrap_or_default()),
        }
    }
    for join in &item.joins {
        if let Some(JoinConstraint::Using(columns)) = constraint_of(&join.join_operator) {
            names.extend(columns.iter().filter_map(alias_in));
        }
    }
}

/// The name that an item of FROM has.
fn name_of(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => match alias {
            Some(alias) => Some(alias.name.clone()),
            None => name.0.last()?.as_ident().cloned(),
        },
        TableFactor::Derived { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_ref().map(|alias| alias.name.clone()),
        _ => None,
    }
}

/// The names of FROM in a query.
fn names_of(body: &SetExpr, names: &mut Vec<String>) {
    match body {
        SetExpr::Select(select) => select.from.iter().for_each(|item| names_in(item, names)),
        SetExpr::Query(query) => names_of(&query.body, names),
        SetExpr::SetOperation { left, right, .. } => {
            names_of(left, names);
            names_of(right, names);
        }
        _ => {}
    }
}

fn item_of(column: Ident) -> SelectItem {
    SelectItem::ExprWithAlias { expr: Expr::Identifier(column.clone()), alias: column }
}

fn take(item: &mut TableWithJoins, named: &mut Vec<Named>) {
    use JoinOperator as J;
    if let TableFactor::NestedJoin { table_with_joins, .. } = &mut item.relation {
        take(table_with_joins, named);
    }
    // What the join is to the right of, if it is one item.
    let mut left = single(&item.relation);
    for join in &mut item.joins {
        if let TableFactor::NestedJoin { table_with_joins, .. } = &mut join.relation {
            take(table_with_joins, named);
        }
        let left = left.take();
        let side = match &join.join_operator {
            J::Join(_) | J::Inner(_) | J::Left(_) | J::LeftOuter(_) => left,
            J::Right(_) | J::RightOuter(_) => single(&join.relation),
            _ => None,
        };
        let Some(JoinConstraint::Using(columns)) = constraint_mut(&mut join.join_operator) else { continue };
        let Some(alias) = columns.last().and_then(alias_in) else { continue };
        columns.pop();
        let columns = columns.iter().filter_map(|column| column.0.last()?.as_ident().cloned()).collect();
        named.push(Named { alias, columns, side });
    }
}

fn single(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::NestedJoin { .. } => None,
        factor => name_of(factor),
    }
}

fn alias_in(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident()?.value.strip_prefix(ALIAS).map(str::to_owned)
}

fn find<'n>(named: &'n [Named], name: &ObjectName) -> Option<&'n Named> {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
    let alias = fold(ident);
    named.iter().find(|named| named.alias == alias)
}

fn column_of(named: &[Named], parts: &[Ident]) -> Option<Ident> {
    let [alias, column] = parts else { return None };
    let alias = fold(alias);
    named.iter().find(|named| named.alias == alias)?.column(column).cloned()
}

fn row_of<'n>(named: &'n [Named], ident: &Ident) -> Option<&'n Named> {
    let alias = fold(ident);
    // A column of that name comes first.
    let is_column = |named: &Named| named.columns.iter().any(|column| fold(column) == alias);
    named.iter().find(|named| named.alias == alias).filter(|found| !is_column(found))
}

/// The row of the columns of an alias, which has their names; `fields` are what they are.
fn row(found: &Named, fields: impl Iterator<Item = Expr>) -> Expr {
    let text = |column: &Ident| Expr::value(Value::SingleQuotedString(fold(column)));
    let names = Expr::Array(Array { elem: found.columns.iter().map(text).collect(), named: true });
    call(Ident::with_quote('"', NAMED_ROW), std::iter::once(names).chain(fields).collect())
}

/// Names the columns themselves, in queries inside, too.
struct Resolve {
    named: Vec<Named>,
    /// Names that a column alone does not mean here.
    labels: Vec<String>,
    /// For each query inside: the names in its FROM, which come before the aliases.
    hidden: Vec<Vec<String>>,
}

impl Resolve {
    fn is_hidden(&self, alias: &Ident) -> bool {
        let alias = fold(alias);
        self.hidden.iter().any(|names| names.contains(&alias))
    }

    fn meant(&self, found: &Named, column: &Ident) -> Result<Expr, SqlError> {
        // Nothing in between has columns.
        if self.hidden.iter().all(Vec::is_empty) && !self.labels.contains(&fold(column)) {
            return Ok(Expr::Identifier(column.clone()));
        }
        match &found.side {
            Some(side) if !self.is_hidden(side) => Ok(Expr::CompoundIdentifier(vec![side.clone(), column.clone()])),
            _ => {
                let message = format!("{}.{} in this place", found.alias, fold(column));
                let hint = "Give the columns that the join merges names by a subquery in FROM.";
                Err(SqlError::unsupported(message).hint(hint))
            }
        }
    }

    /// What `alias.column` is; `None` if the alias is none of the joins'.
    fn column(&self, alias: &Ident, column: &Ident) -> Result<Option<Expr>, SqlError> {
        let name = fold(alias);
        let Some(found) = self.named.iter().find(|named| named.alias == name) else { return Ok(None) };
        if self.is_hidden(alias) {
            return Ok(None);
        }
        let Some(known) = found.column(column) else {
            let message = format!("column {name}.{} does not exist", fold(column));
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        self.meant(found, known).map(Some)
    }

    /// The columns that the row of an alias has.
    fn fields(&self, alias: &Ident) -> Result<Option<(&Named, Vec<Expr>)>, SqlError> {
        let Some(found) = row_of(&self.named, alias).filter(|_| !self.is_hidden(alias)) else { return Ok(None) };
        let fields: Result<Vec<Expr>, SqlError> =
            found.columns.iter().map(|column| self.meant(found, column)).collect();
        Ok(Some((found, fields?)))
    }

    /// The row that an alias stands for.
    fn row(&self, alias: &Ident) -> Result<Option<Expr>, SqlError> {
        Ok(self.fields(alias)?.map(|(found, fields)| row(found, fields.into_iter())))
    }

    /// `f(j.*)` is `f(j)`, and `row(j.*)` a row of the columns.
    fn arguments(&self, function: &mut Function) -> Result<(), SqlError> {
        let is_row = matches!(function.name.0.as_slice(), [name] if name.as_ident().is_some_and(|n| fold(n) == "row"));
        let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
        let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
        let mut args = Vec::with_capacity(list.args.len());
        for arg in std::mem::take(&mut list.args) {
            let fields = match &arg {
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => match name.0.as_slice() {
                    [ObjectNamePart::Identifier(ident)] => self.fields(ident)?,
                    _ => None,
                },
                _ => None,
            };
            match fields {
                Some((_, fields)) if is_row => args.extend(fields.into_iter().map(argument)),
                Some((found, fields)) => args.push(argument(row(found, fields.into_iter()))),
                None => args.push(arg),
            }
        }
        list.args = args;
        Ok(())
    }

    fn resolve(&self, expr: &mut Expr) -> Result<(), SqlError> {
        match expr {
            Expr::CompoundIdentifier(parts) => {
                if let [alias, column] = parts.as_slice()
                    && let Some(column) = self.column(alias, column)?
                {
                    *expr = column;
                }
            }
            // In a query inside it may be a column of its own.
            Expr::Identifier(ident) if self.hidden.is_empty() => {
                if let Some(row) = self.row(ident)? {
                    *expr = row;
                }
            }
            // `(j).column`
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let (Expr::Nested(inner), [AccessExpr::Dot(Expr::Identifier(field))]) =
                    (root.as_ref(), access_chain.as_slice())
                    && let Expr::Identifier(alias) = inner.as_ref()
                    && row_of(&self.named, alias).is_some_and(|found| found.column(field).is_some())
                    && let Some(column) = self.column(alias, field)?
                {
                    *expr = column;
                }
            }
            Expr::Function(function) => self.arguments(function)?,
            Expr::QualifiedWildcard(name, _) => {
                if let [ObjectNamePart::Identifier(ident)] = name.0.as_slice()
                    && let Some(row) = self.row(ident)?
                {
                    *expr = row;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl VisitorMut for Resolve {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        let mut names = Vec::new();
        names_of(&query.body, &mut names);
        self.hidden.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.hidden.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match self.resolve(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
