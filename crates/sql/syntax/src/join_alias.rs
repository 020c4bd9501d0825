//! `JOIN u USING (a, b) AS j`: a name for the columns that the join merges, and for nothing else.
//!
//! The library does not read it. It is marked by one more name in the list of columns, and taken out of the tree again: `j.a` is the merged
//! column, which `a` alone names, `j.*` all of them, and `j` the row of them. (PostgreSQL, SELECT, "FROM Clause", `join_using_alias`.)
//!
//! Caveat: where another item of FROM has a column of that name, too, it is ambiguous.

use super::tokens::is;
use crate::identifier::fold;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, JoinConstraint, JoinOperator,
    ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
    TableWithJoins, VisitMut, VisitorMut,
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
        let mut close = at + 2;
        while matches!(kind(close), Some(Token::Word(_) | Token::Comma)) {
            close += 1;
        }
        let named = kind(close) == Some(&Token::RParen)
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
}

/// Names the columns that ORDER BY means by the aliases of its query's joins.
pub(super) fn resolve_order(query: &mut Query) {
    let Some(order) = &mut query.order_by else { return };
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let mut named = Vec::new();
    // The aliases are there for the list, too.
    select.from.clone().iter_mut().for_each(|item| take(item, &mut named));
    if !named.is_empty() {
        let _ = order.visit(&mut Resolve { named, inside: 0 });
    }
}

/// The same for what writes: its items of FROM or USING have no query of their own.
pub(super) fn resolve_written<T: VisitMut>(statement: &mut T, from: impl FnOnce(&mut T) -> &mut [TableWithJoins]) {
    let mut named = Vec::new();
    from(statement).iter_mut().for_each(|item| take(item, &mut named));
    if !named.is_empty() {
        let _ = statement.visit(&mut Resolve { named, inside: 0 });
    }
}

/// Takes the aliases of a query's joins out of it.
pub(super) fn resolve(select: &mut Select) {
    let mut named = Vec::new();
    select.from.iter_mut().for_each(|item| take(item, &mut named));
    if named.is_empty() {
        return;
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
                projection
                    .extend(row_of(&named, ident).map(|expr| SelectItem::ExprWithAlias { expr, alias: ident.clone() }));
            }
            _ => projection.push(item),
        }
    }
    select.projection = projection;
    let _ = select.visit(&mut Resolve { named, inside: 0 });
}

fn item_of(column: Ident) -> SelectItem {
    SelectItem::ExprWithAlias { expr: Expr::Identifier(column.clone()), alias: column }
}

fn take(item: &mut TableWithJoins, named: &mut Vec<Named>) {
    use JoinOperator as J;
    if let TableFactor::NestedJoin { table_with_joins, .. } = &mut item.relation {
        take(table_with_joins, named);
    }
    for join in &mut item.joins {
        if let TableFactor::NestedJoin { table_with_joins, .. } = &mut join.relation {
            take(table_with_joins, named);
        }
        let constraint = match &mut join.join_operator {
            J::Join(constraint)
            | J::Inner(constraint)
            | J::Left(constraint)
            | J::LeftOuter(constraint)
            | J::Right(constraint)
            | J::RightOuter(constraint)
            | J::FullOuter(constraint) => constraint,
            _ => continue,
        };
        let JoinConstraint::Using(columns) = constraint else { continue };
        let Some(alias) = columns.last().and_then(alias_in) else { continue };
        columns.pop();
        let columns = columns.iter().filter_map(|column| column.0.last()?.as_ident().cloned()).collect();
        named.push(Named { alias, columns });
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
    let (alias, name) = (fold(alias), fold(column));
    let found = named.iter().find(|named| named.alias == alias)?;
    found.columns.iter().find(|column| fold(column) == name).cloned()
}

fn row_of(named: &[Named], ident: &Ident) -> Option<Expr> {
    let alias = fold(ident);
    // A column of that name comes first.
    let is_column = |named: &Named| named.columns.iter().any(|column| fold(column) == alias);
    let found = named.iter().find(|named| named.alias == alias).filter(|found| !is_column(found))?;
    let fields = found
        .columns
        .iter()
        .map(|column| FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(column.clone()))));
    Some(Expr::Function(sqlparser::ast::Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new("ROW"))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: fields.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }))
}

/// Names the columns themselves, in queries inside, too.
struct Resolve {
    named: Vec<Named>,
    inside: usize,
}

impl VisitorMut for Resolve {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.inside += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.inside -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::CompoundIdentifier(parts) => {
                if let Some(column) = column_of(&self.named, parts) {
                    *expr = Expr::Identifier(column);
                }
            }
            // In a query inside it may be a column of its own.
            Expr::Identifier(ident) if self.inside == 0 => {
                if let Some(row) = row_of(&self.named, ident) {
                    *expr = row;
                }
            }
            Expr::Function(function) => {
                let FunctionArguments::List(list) = &mut function.args else { return ControlFlow::Continue(()) };
                for arg in &mut list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) = arg
                        && let [ObjectNamePart::Identifier(ident)] = name.0.as_slice()
                        && let Some(row) = row_of(&self.named, ident)
                    {
                        *arg = FunctionArg::Unnamed(FunctionArgExpr::Expr(row));
                    }
                }
            }
            Expr::QualifiedWildcard(name, _) => {
                if let [ObjectNamePart::Identifier(ident)] = name.0.as_slice()
                    && let Some(row) = row_of(&self.named, ident)
                {
                    *expr = row;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
