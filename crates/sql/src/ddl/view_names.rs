//! The names of a view's columns, in its text: `CREATE VIEW v (p, q) AS ..`, and what renames them later, name columns otherwise than the
//! query does, and a dump has the text alone.
//!
//! The select list on top says the names with `AS`; of a set operation that of its first branch, of VALUES one that is put around. What is sorted
//! or grouped by a name of that list goes by its place instead. Where the text would not mean the same then, the whole query becomes an
//! item of FROM with a list of names.

use super::Run;
use super::view_text::{ident, query_of};
use crate::catalog::View;
use crate::engine::column_label;
use crate::engine::journal::{Notes, names_of};
use crate::identifier::{fold, quote_identifier};
use crate::plan;
use crate::syntax::Command;
use sqlparser::ast::{Distinct, Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Value};

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
pub(crate) fn definition(view: &View) -> String {
    let text = view.query.trim_end_matches(';');
    let shown = query_of(text).map_or(Shown::Same, |query| shown(&query.body, view));
    match shown {
        Shown::Same => text.to_string(),
        Shown::Otherwise | Shown::Unclear => listed(text, view),
    }
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
fn label(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(column_label(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    }
}

fn names(view: &View) -> impl Iterator<Item = &String> {
    view.columns.iter().map(|(name, _)| name)
}

/// A query as an item of FROM that names its columns.
fn listed(text: &str, view: &View) -> String {
    let quoted: Vec<String> = names(view).map(|name| quote_identifier(name)).collect();
    let columns: Vec<String> = quoted.iter().map(|name| format!("{LISTED}.{name}")).collect();
    format!("SELECT {} FROM ({text}) AS {LISTED} ({})", columns.join(", "), quoted.join(", "))
}

/// A text with the names in its select list; `None` where there is no such list.
fn named(text: &str, view: &View, notes: &Notes) -> Option<String> {
    let mut query = query_of(text)?;
    name_query(&mut query, view, notes)?;
    Some(query.to_string())
}

/// Names the columns of a query; gives what they were called.
fn name_query(query: &mut Query, view: &View, notes: &Notes) -> Option<Vec<String>> {
    let labels = name_body(&mut query.body, view, notes)?;
    if let Some(order_by) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order_by.kind
    {
        keys.iter_mut().for_each(|key| by_place(&mut key.expr, &labels));
    }
    Some(labels)
}

fn name_body(body: &mut SetExpr, view: &View, notes: &Notes) -> Option<Vec<String>> {
    match body {
        SetExpr::Select(select) => name_select(select, view, notes),
        SetExpr::SetOperation { left, .. } => name_body(left, view, notes),
        SetExpr::Query(query) => name_query(query, view, notes),
        SetExpr::Values(_) => {
            let columns = (1..=view.columns.len()).map(|at| format!("column{at}"));
            let labels: Vec<String> = columns.collect();
            let items: Vec<String> = labels.iter().map(|column| format!("\"*VALUES*\".{column}")).collect();
            let around = query_of(&format!("SELECT {} FROM ({body}) AS \"*VALUES*\"", items.join(", ")))?;
            *body = *around.body;
            name_body(body, view, notes)
        }
        _ => None,
    }
}

fn name_select(select: &mut Select, view: &View, notes: &Notes) -> Option<Vec<String>> {
    let labels: Vec<String> = select.projection.iter().map(label).collect::<Option<_>>()?;
    if labels.len() != view.columns.len() {
        return None;
    }
    for ((item, label), name) in select.projection.iter_mut().zip(&labels).zip(names(view)) {
        if label != name
            && let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = &*item
        {
            *item = if column_label(expr) == *name {
                SelectItem::UnnamedExpr(expr.clone())
            } else {
                SelectItem::ExprWithAlias { expr: expr.clone(), alias: ident(name) }
            };
        }
    }
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        // A column of FROM goes before a name of the list.
        let column = |key: &Expr| matches!(key, Expr::Identifier(name) if notes.names.contains_key(&name.span.start));
        keys.iter_mut().filter(|key| !column(key)).for_each(|key| by_place(key, &labels));
    }
    if let Some(Distinct::On(keys)) = &mut select.distinct {
        keys.iter_mut().for_each(|key| by_place(key, &labels));
    }
    Some(labels)
}

fn begins_with_values(body: &SetExpr) -> bool {
    match body {
        SetExpr::SetOperation { left, .. } => begins_with_values(left),
        SetExpr::Query(query) => begins_with_values(&query.body),
        body => matches!(body, SetExpr::Values(_)),
    }
}

/// A name of the select list becomes its place there.
fn by_place(key: &mut Expr, labels: &[String]) {
    let place = |name: &Ident| labels.iter().position(|label| *label == fold(name));
    if let Expr::Identifier(name) = key
        && let Some(at) = place(name)
    {
        *key = Expr::value(Value::Number((at + 1).to_string(), false));
    }
}

impl Run<'_> {
    /// A view whose text names its columns as it does, if there is such a text.
    pub(super) fn with_names(&self, view: View) -> View {
        let says_them = |view: &View| self.labels(view).is_some_and(|labels| labels.iter().eq(names(view)));
        if says_them(&view) {
            return view;
        }
        let Some((query, notes)) = query_of(&view.query).zip(self.notes(&view.query)) else { return view };
        let means_the_same = |text: String, every: bool| {
            let now = self.notes(&text)?;
            let new = View { query: text, ..view.clone() };
            let same = match every {
                true => now.columns() == notes.columns(),
                false => now.columns().iter().flatten().eq(notes.columns().iter().flatten()),
            };
            (same && says_them(&new) && self.view_still_works(&new)).then_some(new)
        };
        // What is put around names columns of its own.
        let every = !begins_with_values(&query.body);
        let named = named(&view.query, &view, &notes).and_then(|text| means_the_same(text, every));
        named.or_else(|| means_the_same(listed(&view.query, &view), false)).unwrap_or(view)
    }

    fn notes(&self, text: &str) -> Option<Notes> {
        names_of(&*query_of(text)?, &self.plan_context()).ok()
    }

    /// What a view's text calls its columns.
    fn labels(&self, view: &View) -> Option<Vec<String>> {
        let parsed = crate::syntax::parse(&view.query).ok()?;
        let Command::Planned(planned) = &parsed.first()?.command else { return None };
        let plan = plan::prepare(&planned.statement, &view.query, &self.plan_context()).ok()?;
        Some(plan.fields().iter().map(|field| field.name.clone()).collect())
    }
}
