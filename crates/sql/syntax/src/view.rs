//! What a view's text calls its columns, and its definition with their names.

use super::forms::spread;
use super::{Command, output_name};
use crate::catalog::View;
use crate::identifier::{fold, quote_identifier};
use crate::{Attempt, SqlError};
use sqlparser::ast::{AccessExpr, Expr, FunctionArguments, Query, SelectItem, SetExpr, Statement};

/// What an item of FROM is called that exists for its list of names.
const LISTED: &str = "listed";

/// Whether a text names the columns on top as its view does.
enum Shown {
    Same,
    Otherwise,
    /// Its names are those of a `*`.
    Unclear,
}

/// What `pg_get_viewdef` shows of a view: with its names, also where it is of a version that kept them apart from the text.
///
/// # Errors
/// Those of the moment.
pub fn view_definition(view: &View) -> Result<String, SqlError> {
    let text = view.query.trim_end_matches(';');
    let shown = query_of(text)?.map_or(Shown::Same, |query| shown(&query.body, view));
    Ok(match shown {
        Shown::Same => text.to_string(),
        Shown::Otherwise | Shown::Unclear => listed(text, view),
    })
}

fn shown(body: &SetExpr, view: &View) -> Shown {
    match body {
        SetExpr::Select(select) => {
            let labels: Option<Vec<String>> = select.projection.iter().map(label).collect();
            match labels {
                None => Shown::Unclear,
                Some(labels) if labels.iter().eq(view.columns.iter().map(|(name, _)| name)) => Shown::Same,
                Some(_) => Shown::Otherwise,
            }
        }
        SetExpr::SetOperation { left, .. } => shown(left, view),
        SetExpr::Query(query) => shown(&query.body, view),
        SetExpr::Values(_) => {
            let own = |(at, (name, _)): (usize, &(String, _))| *name == format!("column{}", at + 1);
            if view.columns.iter().enumerate().all(own) { Shown::Same } else { Shown::Otherwise }
        }
        _ => Shown::Unclear,
    }
}

/// The name that an item of a select list has; `None` of those that show more than one column.
pub fn label(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => spread(expr).is_none().then(|| column_label(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    }
}

/// The names of a view's columns.
pub fn names(view: &View) -> impl Iterator<Item = &String> {
    view.columns.iter().map(|(name, _)| name)
}

/// A query as an item of FROM that names its columns.
pub fn listed(text: &str, view: &View) -> String {
    let quoted: Vec<String> = names(view).map(|name| quote_identifier(name)).collect();
    let columns: Vec<String> = quoted.iter().map(|name| format!("{LISTED}.{name}")).collect();
    format!("SELECT {} FROM ({text}) AS {LISTED} ({})", columns.join(", "), quoted.join(", "))
}

/// The query that a text is; `None` if it is none.
///
/// # Errors
/// Those of the moment.
pub fn query_of(text: &str) -> Result<Option<Box<Query>>, SqlError> {
    let parsed = super::parse_printed(text).attempted()?.and_then(|parsed| parsed.into_iter().next());
    Ok(match parsed.map(|parsed| parsed.command) {
        Some(Command::Planned(planned)) => match planned.statement {
            Statement::Query(query) => Some(query),
            _ => None,
        },
        _ => None,
    })
}

/// The name of an output column: that of the field, where one is taken of a record.
pub fn column_label(expr: &Expr) -> String {
    match expr {
        Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
            Some(AccessExpr::Dot(Expr::Identifier(field))) => fold(field),
            _ => output_name(expr),
        },
        Expr::Function(function) if matches!(function.args, FunctionArguments::Subquery(_)) => "array".into(),
        _ => output_name(expr),
    }
}
