//! The names of a view's columns, in its text: `CREATE VIEW v (p, q) AS ..`, and what renames them later, name columns otherwise than the
//! query does, and a dump has the text alone.
//!
//! The select list on top says the names with `AS`; of a set operation that of its first branch, of VALUES one that is put around. What is sorted
//! or grouped by a name of that list goes by its place instead. Where the text would not mean the same then, the whole query becomes an
//! item of FROM with a list of names.

use super::Run;
use super::view_text::ident;
use crate::catalog::View;
use crate::engine::journal::{Notes, names_of};
use crate::identifier::fold;
use crate::plan;
use crate::syntax::Command;
use crate::syntax::marks::{written, written_body};
use crate::syntax::view::{column_label, label, listed, names, query_of};
use crate::{Attempt, SqlError};
use sqlparser::ast::{Distinct, Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, Value};

/// A text with the names in its select list; `None` where there is no such list.
fn named(text: &str, view: &View, notes: &Notes) -> Result<Option<String>, SqlError> {
    let Some(mut query) = query_of(text)? else { return Ok(None) };
    if name_query(&mut query, view, notes)?.is_none() {
        return Ok(None);
    }
    written(query).map(Some)
}

/// Names the columns of a query; gives what they were called.
fn name_query(query: &mut Query, view: &View, notes: &Notes) -> Result<Option<Vec<String>>, SqlError> {
    let Some(labels) = name_body(&mut query.body, view, notes)? else { return Ok(None) };
    if let Some(order_by) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order_by.kind
    {
        keys.iter_mut().for_each(|key| by_place(&mut key.expr, &labels));
    }
    Ok(Some(labels))
}

fn name_body(body: &mut SetExpr, view: &View, notes: &Notes) -> Result<Option<Vec<String>>, SqlError> {
    match body {
        SetExpr::Select(select) => Ok(name_select(select, view, notes)),
        SetExpr::SetOperation { left, .. } => name_body(left, view, notes),
        SetExpr::Query(query) => name_query(query, view, notes),
        SetExpr::Values(_) => {
            let columns = (1..=view.columns.len()).map(|at| format!("column{at}"));
            let labels: Vec<String> = columns.collect();
            let items: Vec<String> = labels.iter().map(|column| format!("\"*VALUES*\".{column}")).collect();
            let around = query_of(&format!(
                "SELECT {} FROM ({}) AS \"*VALUES*\"",
                items.join(", "),
                written_body(body.clone())?
            ))?;
            let Some(around) = around else { return Ok(None) };
            *body = *around.body;
            name_body(body, view, notes)
        }
        _ => Ok(None),
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
    ///
    /// # Errors
    /// Those of the moment.
    pub(super) fn with_names(&self, view: View) -> Result<View, SqlError> {
        let says_them = |view: &View| -> Result<bool, SqlError> {
            Ok(self.labels(view)?.is_some_and(|labels| labels.iter().eq(names(view))))
        };
        if says_them(&view)? {
            return Ok(view);
        }
        let Some((query, notes)) = query_of(&view.query)?.zip(self.notes(&view.query)?) else { return Ok(view) };
        let means_the_same = |text: String, every: bool| -> Result<Option<View>, SqlError> {
            let Some(now) = self.notes(&text)? else { return Ok(None) };
            let new = View { query: text, ..view.clone() };
            let same = match every {
                true => now.columns() == notes.columns(),
                false => now.columns().iter().flatten().eq(notes.columns().iter().flatten()),
            };
            Ok((same && says_them(&new)? && self.view_still_works(&new)?).then_some(new))
        };
        // What is put around names columns of its own.
        let every = !begins_with_values(&query.body);
        if let Some(text) = named(&view.query, &view, &notes)?
            && let Some(named) = means_the_same(text, every)?
        {
            return Ok(named);
        }
        Ok(means_the_same(listed(&view.query, &view), false)?.unwrap_or(view))
    }

    /// What the names in a text mean; `None` where it cannot be read.
    pub(super) fn notes(&self, text: &str) -> Result<Option<Notes>, SqlError> {
        match query_of(text)? {
            Some(query) => names_of(&query, &self.plan_context()).attempted(),
            None => Ok(None),
        }
    }

    /// What a view's text calls its columns.
    fn labels(&self, view: &View) -> Result<Option<Vec<String>>, SqlError> {
        let Some(parsed) = crate::syntax::parse_printed(&view.query).attempted()? else { return Ok(None) };
        let Some(Command::Planned(planned)) = parsed.first().map(|parsed| &parsed.command) else { return Ok(None) };
        let plan = plan::prepare(&planned.statement, &view.query, &self.plan_context()).attempted()?;
        Ok(plan.map(|plan| plan.fields().iter().map(|field| field.name.clone()).collect()))
    }
}
