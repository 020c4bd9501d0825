//! Views: a query's text with the schemas of its relations written out, so that it means the same under any search path.

use super::Run;
use super::run::wrong_kind;
use super::view_text::Change;
use crate::catalog::{Oid, Relation, View, snapshot};
use crate::engine::recursion;
use crate::expr::literals;
use crate::identifier::{fold, is_bare, quote_qualified};
use crate::plan;
use crate::syntax::marks::written;
use crate::syntax::{Command, Name, Planned};
use crate::types::SqlType;
use crate::{Attempt, SqlError, SqlState};
use sqlparser::ast::{self, Ident, ObjectName, ObjectNamePart, Statement};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Run<'_> {
    pub(super) fn create_view(
        &mut self,
        name: &Name,
        or_replace: bool,
        if_not_exists: bool,
        columns: &[String],
        query: &Arc<Planned>,
        text: &str,
    ) -> Result<&'static str, SqlError> {
        let Statement::Query(_) = &query.statement else {
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, "a view must be of a query"));
        };
        if matches!(&query.statement, Statement::Query(query) if plan::parts::is_modifying(query)) {
            let message = "views must not contain data-modifying statements in WITH";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let schema = self.schema_for(name)?;
        let existing = match self.relation(&Name { schema: Some(schema.name.clone()), ..name.clone() })?.as_deref() {
            Some(Relation::View(view)) if or_replace => Some(view.clone()),
            Some(_) if or_replace => return Err(wrong_kind(name, "a view")),
            _ => None,
        };
        if existing.is_none() && self.taken(&schema, &name.name, if_not_exists)? {
            return Ok("CREATE VIEW");
        }
        let mut statement = query.statement.clone();
        let reads = self.qualify(&mut statement)?;
        let context = self.plan_context();
        literals::settle(&mut statement, |statement| plan::prepare(statement, text, &context).map(drop))?;
        let plan = plan::prepare(&statement, text, &self.plan_context())?;
        if !plan.parameters().is_empty() {
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        let columns = view_columns(plan.fields(), columns)?;
        if let Some(old) = &existing {
            check_replaced(old, &columns)?;
        }
        let id = match existing {
            Some(old) => old.id,
            None => self.new_oid()?,
        };
        if self.reads_view(&reads, id) {
            return Err(recursion(&name.name));
        }
        let view = View {
            id,
            database: schema.database,
            schema: schema.id,
            name: name.name.clone(),
            columns,
            query: written(statement)?,
            reads,
        };
        let view = self.settled(view)?;
        self.touch().put_relation(Relation::View(view))?;
        // Whoever reads it unfolds one view more than was unfolded here.
        let reading = format!("SELECT * FROM {}", quote_qualified(Some(&schema.name), &name.name));
        for parsed in crate::syntax::parse_printed(&reading)? {
            if let Command::Planned(planned) = &parsed.command {
                plan::prepare(&planned.statement, &reading, &self.plan_context())?;
            }
        }
        Ok("CREATE VIEW")
    }

    /// Whether relations are, or read through views, the view of an OID.
    fn reads_view(&self, relations: &[Oid], view: Oid) -> bool {
        let (mut pending, mut seen) = (relations.to_vec(), BTreeSet::new());
        while let Some(id) = pending.pop() {
            if id == view {
                return true;
            }
            if seen.insert(id)
                && let Some(Relation::View(found)) = self.catalog().relation(id).map(|r| r.as_ref())
            {
                pending.extend(&found.reads);
            }
        }
        false
    }

    /// Writes the schema of every relation into a query; gives the relations.
    fn qualify(&self, statement: &mut Statement) -> Result<Vec<Oid>, SqlError> {
        let inner = common_tables(statement);
        let mut reads = Vec::new();
        let mut wrong = None;
        let _ = ast::visit_relations_mut(statement, |object| {
            let Some(name) = Name::from_object(object) else { return ControlFlow::Continue(()) };
            if name.schema.is_none() && inner.contains(&name.name) {
                return ControlFlow::Continue(());
            }
            match self.relation(&name) {
                Ok(Some(relation)) => {
                    reads.push(snapshot::id_of(&relation));
                    if let Some(schema) = self.catalog().schema_by_id(snapshot::schema_of(&relation)) {
                        *object = qualified(&schema.name, &name.name);
                    }
                    ControlFlow::Continue(())
                }
                // A virtual table, or nothing: planning tells.
                Ok(None) => ControlFlow::Continue(()),
                Err(e) => {
                    wrong = Some(e);
                    ControlFlow::Break(())
                }
            }
        });
        reads.sort_unstable();
        reads.dedup();
        match wrong {
            Some(e) => Err(e),
            None => Ok(reads),
        }
    }

    /// Gives a view's column another name; views over it follow.
    pub(super) fn rename_view_column(&mut self, mut view: View, name: &str, to: &str) -> Result<(), SqlError> {
        let Some(number) = view.columns.iter().position(|(known, _)| known == name) else {
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist")));
        };
        if view.columns.iter().any(|(known, _)| known == to) {
            let message = format!("column \"{to}\" of relation \"{}\" already exists", view.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let names = view.columns.iter().map(|(name, _)| name.clone()).collect();
        let change = Change::Column { of: view.id, number, to: to.to_string() };
        let views = self.rewrite_views(view.id, &[change, Change::List { of: view.id, names }])?;
        view.columns[number].0 = to.to_string();
        let view = self.with_names(view)?;
        self.touch().put_relation(Relation::View(view))?;
        let broken = self.put_views(views)?;
        self.refuse_broken(&broken, &format!("rename column {name}"))
    }

    /// Whether a view can still be planned, with the same columns.
    ///
    /// # Errors
    /// Those of the moment.
    pub(super) fn view_still_works(&self, view: &View) -> Result<bool, SqlError> {
        self.view_works(view, &self.plan_context())
    }

    /// The same, where something else is in the catalog.
    ///
    /// # Errors
    /// Those of the moment.
    pub(super) fn view_works(&self, view: &View, context: &plan::PlanContext) -> Result<bool, SqlError> {
        let Some(parsed) = crate::syntax::parse_printed(&view.query).attempted()? else { return Ok(false) };
        let Some(crate::syntax::Command::Planned(planned)) = parsed.first().map(|p| &p.command) else {
            return Ok(false);
        };
        Ok(match plan::prepare(&planned.statement, &view.query, context).attempted()? {
            Some(plan) => {
                // A literal of no type is text in a view.
                let same = |(field, (_, ty)): (&crate::Field, &(String, SqlType))| {
                    field.ty == *ty || field.ty == SqlType::Unknown && *ty == SqlType::Text
                };
                plan.fields().len() == view.columns.len() && plan.fields().iter().zip(&view.columns).all(same)
            }
            None => false,
        })
    }
}

pub(super) fn qualified(schema: &str, name: &str) -> ObjectName {
    let ident = |text: &str| {
        ObjectNamePart::Identifier(if is_bare(text) { Ident::new(text) } else { Ident::with_quote('"', text) })
    };
    ObjectName(vec![ident(schema), ident(name)])
}

/// Names of the statement's WITH queries, at any depth.
fn common_tables(statement: &Statement) -> Vec<String> {
    struct Names(Vec<String>);
    impl ast::Visitor for Names {
        type Break = ();
        fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
            if let Some(with) = &query.with {
                self.0.extend(with.cte_tables.iter().map(|c| fold(&c.alias.name)));
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(Vec::new());
    let _ = ast::Visit::visit(statement, &mut names);
    names.0
}

fn view_columns(fields: &[crate::Field], names: &[String]) -> Result<Vec<(String, SqlType)>, SqlError> {
    if names.len() > fields.len() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "CREATE VIEW specifies more column names than columns"));
    }
    let mut columns: Vec<(String, SqlType)> = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let name = names.get(at).unwrap_or(&field.name).clone();
        let ty = if field.ty == SqlType::Unknown { SqlType::Text } else { field.ty.clone() };
        if columns.iter().any(|(n, _)| *n == name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        columns.push((name, ty));
    }
    Ok(columns)
}

/// CREATE OR REPLACE may only add columns at the end.
fn check_replaced(old: &View, columns: &[(String, SqlType)]) -> Result<(), SqlError> {
    let wrong = |message: String| Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    if columns.len() < old.columns.len() {
        return wrong("cannot drop columns from view".into());
    }
    for ((old_name, old_ty), (name, ty)) in old.columns.iter().zip(columns) {
        if old_name != name {
            return wrong(format!("cannot change name of view column \"{old_name}\" to \"{name}\""));
        }
        if old_ty != ty {
            return wrong(format!("cannot change data type of view column \"{name}\" from {old_ty} to {ty}"));
        }
    }
    Ok(())
}
