//! The text of a view, written so that it keeps its meaning while what it reads changes (decision 0148).
//!
//! A view refers to columns, not to what they are called. Its text is settled when it is made: `*` becomes the columns that there are, NATURAL the
//! columns that it merges, and every column that can be is named through its relation, so that nothing added later is meant by it. A rename
//! is written into it; where a name cannot be (USING has one for both sides), the relation gets the old names as an alias, as PostgreSQL shows it.

use super::Run;
use super::view::qualified;
use crate::catalog::{Oid, Relation, View, snapshot};
use crate::engine::journal::{Notes, names_of, place_of_item};
use crate::identifier::{fold, is_bare};
use crate::syntax::marks::written;
use crate::syntax::view::{column_label, query_of};
use crate::syntax::{Command, Name, tree};
use crate::{Attempt, SqlError};
use sqlparser::ast::{
    self, Expr, Ident, JoinConstraint, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, Statement,
    TableAlias, TableAliasColumnDef, TableFactor, VisitMut, VisitorMut,
};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// The place of a column that is dropped.
const GONE: usize = usize::MAX;

/// What becomes of a text.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// It is settled.
    Settle,
    /// A column has another name.
    Column { of: Oid, number: usize, to: String },
    /// The columns of a relation keep these names.
    List { of: Oid, names: Vec<String> },
    /// A column leaves the lists of names.
    Unlist { of: Oid, number: usize },
    /// A relation is called something else.
    Relation { of: Oid, schema: String, name: String },
    /// The same, but the view goes on calling it as it did.
    Alias { of: Oid, schema: String, name: String, alias: String },
    /// A schema is called something else.
    Schema { from: String, to: String },
}

/// A view's new text, in the order of preference, and what its names must mean.
pub(super) struct Rewritten {
    view: View,
    texts: Vec<String>,
    columns: Vec<Option<(Oid, usize)>>,
}

/// An identifier that is read back as a name.
pub(super) fn ident(name: &str) -> Ident {
    if is_bare(name) { Ident::new(name) } else { Ident::with_quote('"', name) }
}

/// The name, where an identifier stood.
fn renamed(old: &Ident, name: &str) -> Ident {
    Ident { span: old.span, ..ident(name) }
}

struct Rewriter<'a> {
    notes: &'a Notes,
    change: &'a Change,
    /// The labels of the select lists around.
    labels: Vec<Vec<Option<String>>>,
}

impl Rewriter<'_> {
    /// The name that an identifier of a column gets.
    fn column(&self, last: &Ident) -> Option<&str> {
        let note = self.notes.names.get(&last.span.start)?.as_ref()?;
        match self.change {
            Change::Column { of, number, to } => {
                let named = note.of.filter(|named| named.oid == *of && named.listed <= note.number)?;
                (note.number == *number && named.oid == *of).then_some(to.as_str())
            }
            _ => None,
        }
    }

    /// What a qualified name gets as its qualifiers.
    fn qualifiers(&self, parts: &mut [Ident]) {
        let Some((last, qualifiers)) = parts.split_last_mut() else { return };
        let note = self.notes.names.get(&last.span.start).and_then(Option::as_ref);
        match (self.change, qualifiers) {
            (Change::Schema { from, to }, [.., schema, _]) if fold(schema) == *from => *schema = ident(to),
            (Change::Relation { of, schema, name }, qualifiers) => {
                if note.and_then(|note| note.of).is_none_or(|named| named.oid != *of || named.aliased) {
                    return;
                }
                if let [.., relation] = qualifiers {
                    *relation = ident(name);
                }
                if let [.., named, _] = qualifiers {
                    *named = ident(schema);
                }
            }
            _ => {}
        }
    }

    /// The name that an identifier of a relation, for its row, gets.
    fn row(&self, name: &Ident) -> Option<&str> {
        let named = self.notes.rows.get(&name.span.start)?.as_ref()?;
        match self.change {
            Change::Relation { of, name, .. } if named.oid == *of && !named.aliased => Some(name),
            _ => None,
        }
    }

    fn object(&self, name: &mut ObjectName) {
        if let Some(ObjectNamePart::Identifier(last)) = name.0.last_mut()
            && let Some(new) = self.row(last)
        {
            *last = renamed(last, new);
        }
    }

    fn star(&self, item: &SelectItem) -> Option<Vec<SelectItem>> {
        let options = match item {
            SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => options,
            _ => return None,
        };
        let columns = self.notes.stars.get(&options.wildcard_token.0.span.start)?;
        let column = |(qualifier, name): &(Option<Vec<String>>, String)| {
            SelectItem::UnnamedExpr(match qualifier {
                None => Expr::Identifier(ident(name)),
                Some(parts) => Expr::CompoundIdentifier(parts.iter().chain([name]).map(|part| ident(part)).collect()),
            })
        };
        (!columns.is_empty()).then(|| columns.iter().map(column).collect())
    }

    fn settle(&self, select: &mut Select) {
        let items = std::mem::take(&mut select.projection);
        select.projection = items.into_iter().flat_map(|item| self.star(&item).unwrap_or_else(|| vec![item])).collect();
        for table in &mut select.from {
            self.settle_joins(table);
        }
    }

    fn settle_joins(&self, table: &mut ast::TableWithJoins) {
        let nested = |factor: &mut TableFactor| {
            if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
                self.settle_joins(table_with_joins);
            }
        };
        nested(&mut table.relation);
        for join in &mut table.joins {
            nested(&mut join.relation);
            let Some(constraint) = tree::constraint_mut(&mut join.join_operator) else { continue };
            if let JoinConstraint::Natural = constraint
                && let Some(names) = self.notes.naturals.get(&place_of_item(&join.relation))
            {
                let name = |name: &String| ObjectName(vec![ObjectNamePart::Identifier(ident(name))]);
                *constraint = match names.as_slice() {
                    [] => JoinConstraint::On(Expr::value(ast::Value::Boolean(true))),
                    names => JoinConstraint::Using(names.iter().map(name).collect()),
                };
            }
        }
    }

    fn table(&self, name: &mut ObjectName, alias: &mut Option<TableAlias>) {
        let first = name.0.first().and_then(|part| part.as_ident()).map(|first| first.span.start);
        let Some(oid) = first.and_then(|place| self.notes.tables.get(&place)) else { return };
        let called = alias.as_ref().map(|alias| alias.name.clone());
        let called = called.or_else(|| name.0.last().and_then(|part| part.as_ident()).cloned());
        let bare =
            |name: Ident, columns: Vec<TableAliasColumnDef>| TableAlias { explicit: true, name, columns, at: None };
        match self.change {
            Change::List { of, names } if of == oid => {
                let Some(called) = called else { return };
                let listed = alias.as_ref().map_or(&[][..], |alias| alias.columns.as_slice()).to_vec();
                let rest = names.iter().skip(listed.len());
                let rest = rest.map(|name| TableAliasColumnDef { name: ident(name), data_type: None });
                let columns = listed.iter().cloned().chain(rest).collect();
                *alias = Some(bare(Ident { span: sqlparser::tokenizer::Span::empty(), ..called }, columns));
            }
            Change::Unlist { of, number } if of == oid => {
                if let Some(alias) = alias
                    && *number < alias.columns.len()
                {
                    alias.columns.remove(*number);
                }
            }
            Change::Relation { of, schema, name: new } if of == oid => *name = qualified(schema, new),
            Change::Alias { of, schema, name: new, alias: old } if of == oid => {
                *name = qualified(schema, new);
                if alias.is_none() {
                    *alias = Some(bare(ident(old), Vec::new()));
                }
            }
            Change::Schema { from, to } => {
                if let Some(named) = Name::from_object(name)
                    && named.schema.as_ref() == Some(from)
                {
                    *name = qualified(to, &named.name);
                }
            }
            _ => {}
        }
    }
}

impl VisitorMut for Rewriter<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let Change::Settle = self.change {
            self.settle(select);
        }
        let label = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => Some(column_label(expr)),
            _ => None,
        };
        self.labels.push(select.projection.iter().map(label).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let labels = self.labels.pop().unwrap_or_default();
        for (item, label) in select.projection.iter_mut().zip(labels) {
            if let (SelectItem::UnnamedExpr(expr), Some(label)) = (&*item, label)
                && column_label(expr) != label
            {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: ident(&label) };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor {
            self.table(name, alias);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => {
                if let Some(new) = self.column(name).or_else(|| self.row(name)) {
                    *name = renamed(name, new);
                } else if let Change::Settle = self.change
                    && let Some(Some(note)) = self.notes.names.get(&name.span.start)
                    && note.parts == 1
                    && let Some(qualifier) = &note.qualifier
                {
                    let parts = qualifier.iter().map(|part| ident(part)).chain([name.clone()]);
                    *expr = Expr::CompoundIdentifier(parts.collect());
                }
            }
            Expr::CompoundIdentifier(parts) => {
                self.qualifiers(parts);
                if let Some(last) = parts.last_mut()
                    && let Some(new) = self.column(last)
                {
                    *last = renamed(last, new);
                }
            }
            Expr::QualifiedWildcard(name, _) => self.object(name),
            Expr::Function(function) => {
                let ast::FunctionArguments::List(list) = &mut function.args else { return ControlFlow::Continue(()) };
                for arg in &mut list.args {
                    if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(name)) = arg {
                        self.object(name);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// `TABLE x` as the query that it is short for.
struct WholeTables;

impl VisitorMut for WholeTables {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        fn spell(body: &mut SetExpr) {
            match body {
                SetExpr::Table(table) => {
                    if let Some(SetExpr::Select(select)) = spelled(table) {
                        *body = SetExpr::Select(select);
                    }
                }
                SetExpr::SetOperation { left, right, .. } => {
                    spell(left);
                    spell(right);
                }
                _ => {}
            }
        }
        spell(query.body.as_mut());
        ControlFlow::Continue(())
    }
}

fn spelled(table: &ast::Table) -> Option<SetExpr> {
    let parts = table.schema_name.iter().chain(&table.table_name).map(|part| crate::identifier::quote_identifier(part));
    let text = format!("SELECT * FROM {}", parts.collect::<Vec<_>>().join("."));
    match crate::syntax::parse_printed(&text).ok()?.pop()?.command {
        Command::Planned(planned) => match planned.statement {
            Statement::Query(query) => Some(*query.body),
            _ => None,
        },
        _ => None,
    }
}

impl Run<'_> {
    /// A query's text after a change; `None` where it cannot be read.
    fn rewritten(&self, text: &str, change: &Change) -> Result<Option<String>, SqlError> {
        let Some(mut query) = query_of(text)? else { return Ok(None) };
        if let Change::Settle = change {
            let _ = query.visit(&mut WholeTables);
            // Places in the text are what names are known by.
            let Some(again) = query_of(&written(query)?)? else { return Ok(None) };
            query = again;
        }
        let Some(notes) = names_of(&query, &self.plan_context()).attempted()? else { return Ok(None) };
        let _ = query.visit(&mut Rewriter { notes: &notes, change, labels: Vec::new() });
        written(query).map(Some)
    }

    /// The text of a view to be made: settled, if it then gives the same columns, and with their names.
    ///
    /// # Errors
    /// Those of the moment: a view that was not settled would mean something else later.
    pub(super) fn settled(&self, view: View) -> Result<View, SqlError> {
        let view = match self.rewritten(&view.query, &Change::Settle)? {
            Some(query) if query != view.query => {
                let settled = View { query, ..view.clone() };
                if self.view_still_works(&settled)? { settled } else { view }
            }
            _ => view,
        };
        self.with_names(view)
    }

    /// What the texts of the views over a relation become, by each of some changes. To be said before the catalog changes.
    ///
    /// # Errors
    /// Those of the moment.
    pub(super) fn rewrite_views(&self, of: Oid, changes: &[Change]) -> Result<Vec<Rewritten>, SqlError> {
        self.views_of(of).into_iter().filter_map(|view| self.rewrite_view(view, changes).transpose()).collect()
    }

    /// The same of the views over any relation of a schema.
    ///
    /// # Errors
    /// Those of the moment.
    pub(super) fn rewrite_views_within(&self, schema: Oid, change: &Change) -> Result<Vec<Rewritten>, SqlError> {
        let catalog = self.catalog();
        let within = |oid: &Oid| catalog.relation(*oid).is_some_and(|found| snapshot::schema_of(found) == schema);
        let relations = catalog.relations(self.database.id).into_iter();
        let views = relations.filter_map(|relation| match &*relation {
            Relation::View(view) if view.reads.iter().any(within) => Some(view.clone()),
            _ => None,
        });
        views.filter_map(|view| self.rewrite_view(view, std::slice::from_ref(change)).transpose()).collect()
    }

    fn rewrite_view(&self, view: View, changes: &[Change]) -> Result<Option<Rewritten>, SqlError> {
        // One of an older catalog may not be settled yet.
        let view = self.settled(view)?;
        let Some(notes) = self.notes(&view.query)? else { return Ok(None) };
        let mut columns = notes.columns();
        for change in changes {
            let Change::Unlist { of, number } = change else { continue };
            for (_, place) in columns.iter_mut().flatten().filter(|(oid, _)| oid == of) {
                *place = match (*place).cmp(number) {
                    Ordering::Less => *place,
                    Ordering::Equal => GONE,
                    Ordering::Greater => *place - 1,
                };
            }
        }
        let texts = changes.iter().filter_map(|change| self.rewritten(&view.query, change).transpose());
        let texts = texts.collect::<Result<_, _>>()?;
        Ok(Some(Rewritten { view, texts, columns }))
    }

    /// Takes the first of the texts with which a view still means what it meant. Gives the views for which there is none: they keep their own.
    pub(super) fn put_views(&mut self, rewritten: Vec<Rewritten>) -> Result<Vec<Oid>, SqlError> {
        let mut broken = Vec::new();
        for Rewritten { view, texts, columns } in rewritten {
            // It may have another name by now, or schema.
            let Some(Relation::View(now)) = self.catalog().relation(view.id).map(|found| (**found).clone()) else {
                continue;
            };
            let mut found = false;
            for query in texts {
                let changed = View { query, ..now.clone() };
                let notes = self.notes(&changed.query)?;
                if notes.is_some_and(|notes| notes.columns() == columns) && self.view_still_works(&changed)? {
                    self.touch().put_relation(Relation::View(changed))?;
                    found = true;
                    break;
                }
            }
            if !found {
                broken.push(view.id);
            }
        }
        Ok(broken)
    }
}
