//! Binding of one statement: its tables, the scope they make, its parameters and subqueries.

use super::PlanContext;
use super::loops::Source;
use super::refusal::{Planned, Refusal};
use super::shape::{self, FromTable};
use super::subquery::{self, Subqueries};
use crate::catalog::{Relation, Table};
use crate::engine::short::{self, ShortBinder};
use crate::exec::table::TableAccess;
use crate::expr::{
    self, BindContext, BindError, Expr, Parameters, Scope, ScopeColumn, assign, coerce, split_conjuncts,
};
use crate::identifier::fold;
use crate::pg_catalog;
use crate::syntax::element::Place;
use crate::types::{CastKind, SqlType};
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, ObjectName, Query, VisitMut};
use std::sync::Arc;

/// A statement that is being bound.
pub struct Analysis<'a> {
    /// The catalog and settings.
    pub context: &'a PlanContext,
    scope: Scope,
    parameters: Parameters,
    subqueries: Subqueries,
}

impl From<BindError> for Refusal {
    fn from(error: BindError) -> Self {
        match error {
            BindError::NeedsEngine(what) => Refusal::Engine(what),
            // The engine may know a function that binding does not.
            BindError::Sql(error) if error.state == SqlState::UNDEFINED_FUNCTION => Refusal::Unknown(Box::new(error)),
            BindError::Sql(error) => error.into(),
        }
    }
}

impl<'a> Analysis<'a> {
    /// For a statement.
    pub fn new<V: ast::Visit>(statement: &V, context: &'a PlanContext) -> Self {
        Self::of(context, context.parameter_hints.len().max(subquery::parameters_in(statement)))
    }

    /// For a query inside of a statement whose parameters the context has.
    pub fn inside(context: &'a PlanContext) -> Self {
        Self::of(context, context.parameter_hints.len())
    }

    fn of(context: &'a PlanContext, declared: usize) -> Self {
        let mut types: Vec<SqlType> =
            context.parameter_hints.iter().map(|hint| hint.clone().unwrap_or(SqlType::Unknown)).collect();
        types.resize(declared, SqlType::Unknown);
        let subqueries = Subqueries::new(declared);
        let parameters = Parameters::new(&types).with_values(context.values.clone());
        Analysis { context, scope: Scope::new(), parameters, subqueries }
    }

    /// Runs subqueries apart: see [`super::subquery`]. `inside` are those that were taken out of the node before ([`super::inner`]).
    pub(crate) fn take_subqueries<V: VisitMut>(&mut self, node: &mut V, inside: &mut [Query]) -> Planned<()> {
        let mut types = self.parameters.types().to_vec();
        subquery::take(node, inside, self.context, &mut types, &mut self.subqueries)?;
        self.parameters = Parameters::new(&types).with_values(self.context.values.clone());
        Ok(())
    }

    /// Types of the user's parameters, and the subqueries.
    pub fn finish(self) -> Result<(Vec<SqlType>, Subqueries), SqlError> {
        let mut types = self.parameters.finish()?;
        types.truncate(self.subqueries.first);
        Ok((types, self.subqueries))
    }

    /// Types of the parameters so far, and the context.
    pub fn partial(self) -> (Vec<SqlType>, &'a PlanContext) {
        (self.parameters.types().to_vec(), self.context)
    }

    /// Types of the user's parameters so far, as hints for a query inside the statement.
    pub fn hints(&self) -> Vec<Option<SqlType>> {
        let known = &self.parameters.types()[..self.subqueries.first];
        known.iter().map(|ty| (*ty != SqlType::Unknown).then(|| ty.clone())).collect()
    }

    /// Takes the types of parameters that a query inside the statement has found.
    pub fn learn(&mut self, found: &[SqlType]) {
        for (index, ty) in found.iter().enumerate().take(self.subqueries.first) {
            self.parameters.set(index, ty);
        }
    }

    /// Places of a joined row so far.
    pub fn width(&self) -> usize {
        self.scope.columns().len()
    }

    /// Whether a table has a column of this name.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.scope.columns().iter().any(|column| column.name == name && !column.qualified_only)
    }

    /// Whether a relation of a schema is there by its own name.
    pub(crate) fn has_relation(&self, schema: &str, relation: &str) -> bool {
        let named = |column: &&ScopeColumn| column.relation == relation && column.schema.as_deref() == Some(schema);
        self.scope.columns().iter().find(named).is_some()
    }

    /// The columns of a relation.
    pub(crate) fn columns_of(&self, relation: &str) -> Vec<String> {
        let own = self.scope.columns().iter().filter(|column| column.relation == relation);
        own.map(|column| column.name.clone()).collect()
    }

    /// Adds a column of an invented relation.
    pub fn add_column(&mut self, relation: &str, name: &str, ty: &SqlType) {
        self.scope.add_column(ScopeColumn {
            relation: relation.into(),
            schema: None,
            name: name.into(),
            ty: ty.clone(),
            qualified_only: true,
        });
    }

    /// Adds a column of another item of FROM.
    pub(crate) fn add_named_column(&mut self, relation: &str, name: &str, ty: &SqlType) {
        let (relation, name, ty) = (relation.into(), name.into(), ty.clone());
        self.scope.add_column(ScopeColumn { relation, schema: None, name, ty, qualified_only: false });
    }

    /// The tables of FROM, added to the scope.
    pub fn from(&mut self, from: &[FromTable<'_>]) -> Planned<Vec<Source>> {
        let mut out: Vec<Source> = Vec::new();
        for item in from {
            let relation = relation(item.name, self.context)?;
            let Relation::Table(table) = relation.as_ref() else {
                return Err(Refusal::Engine("a view or a sequence in FROM"));
            };
            let alias = item.alias.map(|alias| fold(&alias.name));
            let mut source = self.add_table(table, alias.as_deref(), Arc::new(TableAccess::new(table)?), &out)?;
            source.outer = item.outer;
            out.push(source);
        }
        Ok(out)
    }

    /// The tables of a SELECT's FROM, and what its binder is told of them.
    pub(crate) fn tables(&mut self, from: &[FromTable<'_>]) -> Planned<(Vec<Source>, Vec<short::Table>)> {
        let (mut sources, mut tables): (Vec<Source>, Vec<short::Table>) = (Vec::new(), Vec::new());
        let mut base = 0;
        for item in from {
            let relation = relation(item.name, self.context)?;
            let Relation::Table(table) = relation.as_ref() else {
                return Err(Refusal::Engine("a view or a sequence in FROM"));
            };
            let alias = item.alias.map(|alias| fold(&alias.name));
            let access = Arc::new(TableAccess::new(table)?);
            let mut source = self.source(table, alias.as_deref(), access, base, &sources)?;
            source.outer = item.outer;
            let schema = if alias.is_some() { None } else { self.schema_name(table)? };
            tables.push(short::Table { relation: relation.clone(), alias: source.alias.clone(), schema });
            base += table.columns.len();
            sources.push(source);
        }
        Ok((sources, tables))
    }

    /// A table that is read, whose columns begin at `base`.
    fn source(
        &self,
        table: &Table,
        alias: Option<&str>,
        access: Arc<TableAccess>,
        base: usize,
        others: &[Source],
    ) -> Planned<Source> {
        let alias = alias.unwrap_or(&table.name).to_string();
        if others.iter().any(|source| source.alias == alias) {
            let message = format!("table name \"{alias}\" specified more than once");
            return Err(SqlError::new(SqlState(*b"42712"), message).into());
        }
        let statistics = self.context.statistics.of(self.context.kv.as_ref(), access.table.id);
        Ok(Source { access, alias, base, outer: false, statistics, on: Vec::new(), lock: None })
    }

    /// The binder of a SELECT over tables. It has the parameters until [`Analysis::take_back`].
    pub(crate) fn binder(&mut self, tables: Vec<short::Table>) -> ShortBinder<'a> {
        let parameters = std::mem::replace(&mut self.parameters, Parameters::none());
        ShortBinder::new(self.context, parameters, tables)
    }

    /// Takes what a binder has found of the parameters.
    pub(crate) fn take_back(&mut self, binder: ShortBinder<'_>) {
        self.parameters = binder.into_parameters();
    }

    /// Adds a table to the scope.
    pub(crate) fn add_table(
        &mut self,
        table: &Table,
        alias: Option<&str>,
        access: Arc<TableAccess>,
        others: &[Source],
    ) -> Planned<Source> {
        let source = self.source(table, alias, access, self.width(), others)?;
        let schema = match alias {
            Some(_) => None,
            None => self.schema_name(table)?,
        };
        let columns = table.columns.iter().map(|column| (column.name.as_str(), &column.ty));
        self.scope.add_relation(schema.as_deref(), &source.alias, columns);
        if source.alias != table.name {
            self.scope.add_alias(&table.name, &source.alias);
        }
        Ok(source)
    }

    /// Adds the row proposed for insertion, as `excluded`.
    pub(crate) fn add_excluded(&mut self, table: &Table) {
        for column in &table.columns {
            self.add_column("excluded", &column.name, &column.ty);
        }
    }

    /// The name of a table's schema.
    pub fn schema_name(&self, table: &Table) -> Result<Option<String>, SqlError> {
        let schemas = self.context.catalog.schemas()?;
        Ok(schemas.into_iter().find(|schema| schema.id == table.schema).map(|schema| schema.name))
    }

    /// Conditions of ON: those of outer joins go to their table, the others are answered.
    pub(crate) fn on_conditions(&mut self, from: &[FromTable<'_>], sources: &mut [Source]) -> Planned<Vec<Expr>> {
        let mut out = Vec::new();
        for (item, source) in from.iter().zip(sources) {
            let Some(on) = item.on else { continue };
            let conditions = split_conjuncts(self.condition(on, "JOIN/ON")?);
            // ON sees only the tables up to its own.
            let end = source.base + source.access.columns.len();
            if !conditions.iter().all(|c| super::tree::reads_only(c, &|place| place < end)) {
                return Err(Refusal::Engine("ON names a table that comes after it"));
            }
            if source.outer {
                source.on = conditions;
            } else {
                out.extend(conditions);
            }
        }
        Ok(out)
    }

    /// WHERE, cut at its ANDs.
    pub fn conditions(&mut self, selection: &ast::Expr) -> Planned<Vec<Expr>> {
        Ok(split_conjuncts(self.condition(selection, "WHERE")?))
    }

    fn condition(&mut self, condition: &ast::Expr, clause: &str) -> Planned<Expr> {
        let context = bind_context(self.context);
        Ok(expr::bind_condition(condition, clause, &self.scope, &mut self.parameters, &context)?)
    }

    /// WHERE, whole.
    pub(crate) fn bind_where(&mut self, condition: &ast::Expr) -> Planned<Expr> {
        self.condition(condition, "WHERE")
    }

    /// An expression over the scope.
    pub fn bind(&mut self, expr: &ast::Expr) -> Planned<Expr> {
        let context = bind_context(self.context);
        Ok(expr::bind(expr, &self.scope, &mut self.parameters, &context)?)
    }

    /// An expression over no columns.
    pub(crate) fn bind_alone(&mut self, expr: &ast::Expr) -> Planned<Expr> {
        let context = bind_context(self.context);
        Ok(expr::bind(expr, &Scope::new(), &mut self.parameters, &context)?)
    }

    /// Brings an expression to the type of the column that it is assigned to.
    pub fn assign(&mut self, expr: Expr, column: &str, to: &SqlType) -> Planned<Expr> {
        let context = bind_context(self.context);
        let assigned = assign(expr, column, to, &mut self.parameters, &context)?;
        expr::settle(&assigned)?;
        Ok(assigned)
    }

    /// An array of the row with another element or slice; `bind` binds its subscripts.
    pub(crate) fn assigned_at(
        &mut self,
        array: Expr,
        value: Expr,
        places: &[Place],
        mut bind: impl FnMut(&ast::Expr, &mut Self) -> Planned<Expr>,
    ) -> Planned<Expr> {
        let bound = expr::element::subscripts(places).map(|index| bind(index, self)).collect::<Planned<Vec<Expr>>>()?;
        let context = bind_context(self.context);
        Ok(expr::element::assigned(array, value, places, bound, &mut self.parameters, &context)?)
    }

    /// An expression of a select list: what has no type yet is text.
    pub fn output(&mut self, expr: Expr) -> Planned<Expr> {
        if expr.ty() != SqlType::Unknown {
            return Ok(expr);
        }
        let context = bind_context(self.context);
        let text = coerce(expr.clone(), &SqlType::Text, CastKind::Implicit, &mut self.parameters, &context)?;
        Ok(text.unwrap_or(expr))
    }
}

/// What sqlparser's expressions are bound with.
pub fn bind_context(context: &PlanContext) -> BindContext<'_> {
    BindContext { settings: &context.settings, objects: Some(context), pace: &context.pace }
}

/// The relation that a name means, if that is one of the catalog: not the system's own, of which the catalog is not even asked, as they are to be read where it cannot be reached.
pub fn relation(name: &ObjectName, context: &PlanContext) -> Planned<Arc<Relation>> {
    let (schema, table) = shape::table_name(name)?;
    if schema.is_none() && context.given.iter().any(|given| given.name == table) {
        return Err(Refusal::Engine("rows of WITH"));
    }
    if schema.as_deref() == Some("timeball_internal") || pg_catalog::lookup(schema.as_deref(), &table).is_some() {
        return Err(Refusal::Engine("the system's own views"));
    }
    stored_relation(name, context)
}

/// The relation of the catalog that a name means.
pub(crate) fn stored_relation(name: &ObjectName, context: &PlanContext) -> Planned<Arc<Relation>> {
    let (schema, table) = shape::table_name(name)?;
    context.catalog.relation(schema.as_deref(), &table)?.ok_or_else(|| {
        let shown = schema.map_or_else(|| table.clone(), |schema| format!("{schema}.{table}"));
        Refusal::Unknown(Box::new(SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{shown}\" does not exist"),
        )))
    })
}
