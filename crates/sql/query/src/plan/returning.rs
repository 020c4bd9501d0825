//! RETURNING: a name that is no column may be that of a table, and means its row.
//!
//! A query leaves that to the engine; what a statement that writes returns is computed here, from the row that was written. So the names
//! become rows of columns before they are bound.

use super::analysis::Analysis;
use super::loops::Source;
use crate::expr::function::NAMED_ROW;
use crate::identifier::fold;
use crate::syntax::forms::spread;
use crate::syntax::tree;
use sqlparser::ast::{
    AccessExpr, Array, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Query, SelectItem, SelectItemQualifiedWildcardKind, Value, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};
use std::ops::ControlFlow;

/// The column that a table's own OID is read by.
const TABLEOID: &str = "tableoid";

/// The list with rows in the place of tables.
pub(super) fn with_rows(list: &[SelectItem], sources: &[Source], analysis: &Analysis<'_>) -> Vec<SelectItem> {
    let mut list = list.to_vec();
    super::select::keep_names(&mut list);
    let mut rows = Rows { sources, analysis, inside: 0 };
    for item in &mut list {
        // `(t).*` is `t.*`.
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some(alias) = spread(expr).and_then(alone)
            && rows.columns(alias).is_some()
        {
            let name = ObjectName::from(alias.clone());
            let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
            *item = SelectItem::QualifiedWildcard(kind, WildcardAdditionalOptions::default());
        }
        let _ = item.visit(&mut rows);
    }
    list
}

/// The name that an expression is.
fn alone(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Nested(inner) => alone(inner),
        Expr::Identifier(ident) => Some(ident),
        _ => None,
    }
}

struct Rows<'a, 'c> {
    sources: &'a [Source],
    analysis: &'a Analysis<'c>,
    /// Queries around.
    inside: usize,
}

fn argument(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

impl Rows<'_, '_> {
    /// The columns of a table that a name means.
    fn columns(&self, ident: &Ident) -> Option<Vec<Expr>> {
        let name = fold(ident);
        if self.analysis.has_column(&name) {
            return None;
        }
        let columns = self.analysis.columns_of(&name);
        let column = |column: String| Expr::CompoundIdentifier(vec![ident.clone(), Ident::with_quote('"', column)]);
        (!columns.is_empty()).then(|| columns.into_iter().map(column).collect())
    }

    /// The row of a table that a name means.
    fn row(&self, ident: &Ident) -> Option<Expr> {
        let columns = self.columns(ident)?;
        let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
        let names = columns.iter().filter_map(|column| match column {
            Expr::CompoundIdentifier(parts) => parts.last().map(|part| text(&part.value)),
            _ => None,
        });
        let names = Expr::Array(Array { elem: names.collect(), named: true });
        Some(tree::call(Ident::with_quote('"', NAMED_ROW), std::iter::once(names).chain(columns).collect()))
    }

    /// The OID of the table that is written.
    fn table(&self, ident: &Ident) -> Option<Expr> {
        let [source] = self.sources else { return None };
        let asked = fold(ident) == TABLEOID && !self.analysis.has_column(TABLEOID);
        asked.then(|| Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::value(Value::Number(source.access.table.id.to_string(), false))),
            data_type: DataType::Custom(ObjectName::from(Ident::new("oid")), Vec::new()),
            array: false,
            format: None,
        })
    }
}

impl VisitorMut for Rows<'_, '_> {
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
        // A query inside has names of its own.
        if self.inside > 0 {
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::Identifier(ident) => {
                if let Some(meant) = self.row(ident).or_else(|| self.table(ident)) {
                    *expr = meant;
                }
            }
            Expr::CompoundIdentifier(parts) => {
                if let [alias, ident] = parts.as_slice()
                    && self.sources.iter().any(|source| source.alias == fold(alias))
                    && let Some(oid) = self.table(ident)
                {
                    *expr = oid;
                }
            }
            // `(t).column`
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let (Some(alias), [AccessExpr::Dot(Expr::Identifier(field))]) =
                    (alone(root), access_chain.as_slice())
                    && matches!(root.as_ref(), Expr::Nested(_))
                    && self.columns(alias).is_some()
                {
                    *expr = Expr::CompoundIdentifier(vec![alias.clone(), field.clone()]);
                }
            }
            Expr::Function(function) => self.arguments(function),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Rows<'_, '_> {
    /// `f(t.*)` is `f(t)`, and `row(t.*)` a row of the columns.
    fn arguments(&self, function: &mut Function) {
        let is_row = matches!(function.name.0.as_slice(), [name] if name.as_ident().is_some_and(|n| fold(n) == "row"));
        let FunctionArguments::List(list) = &mut function.args else { return };
        let mut args = Vec::with_capacity(list.args.len());
        for arg in std::mem::take(&mut list.args) {
            let whole = match &arg {
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                    name.0.last().and_then(|part| part.as_ident())
                }
                _ => None,
            };
            match whole.map(|alias| (self.columns(alias), self.row(alias))) {
                Some((Some(columns), _)) if is_row => args.extend(columns.into_iter().map(argument)),
                Some((_, Some(row))) => args.push(argument(row)),
                _ => args.push(arg),
            }
        }
        list.args = args;
    }
}
