//! Plans UPDATE and DELETE.
//!
//! What nested loops cannot find (correlated subqueries, derived tables, views beside the table) a query locates: it gives the
//! primary keys of the rows, and the values that SET computes from other tables.

use super::analysis::{self, Analysis};
use super::assignment;
use super::explain;
use super::located;
use super::loops::{self, Goal, Source};
use super::refusal::{Planned, Refusal};
use super::scope;
use super::select::{Item, keep_names, returned};
use super::setless::refuse_sets;
use super::shape;
use super::subquery::Subqueries;
use super::tree;
use super::watch::Watch;
use super::{Execution, Plan, PlanContext, Rewriting};
use crate::catalog::{Identity, Relation, Table};
use crate::context::StatementContext;
use crate::exec::cursor::Level;
use crate::exec::load::Load;
use crate::exec::modify::{Action, Find, Modify};
use crate::exec::target::Target;
use crate::explain::Operator;
use crate::expr::element::{is_assigned, type_at};
use crate::expr::{Expr, conjunction};
use crate::identifier::{fold, quote_identifier, quote_qualified};
use crate::output::Field;
use crate::syntax::element;
use crate::syntax::marks::written;
use crate::transaction::LockWait;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, Assignment, AssignmentTarget, Delete, FromTable, ObjectName, SelectItem, TableAlias, TableWithJoins, Update,
    UpdateTableFromKind, With,
};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// A planned UPDATE or DELETE.
pub struct ModifyPlan {
    parameters: Vec<SqlType>,
    fields: Vec<Field>,
    modify: Modify,
    subqueries: Subqueries,
    watches: Vec<Watch>,
}

impl Plan for ModifyPlan {
    fn parameters(&self) -> &[SqlType] {
        &self.parameters
    }
    fn fields(&self) -> &[Field] {
        &self.fields
    }
    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        let context = self.subqueries.evaluate(context)?;
        let (count, rows) = self.modify.run(&context)?;
        Ok(Execution::Done { tag: self.tag(count), rows })
    }
    fn explain(&self) -> Operator {
        self.subqueries.explain(explain::modify(&self.modify))
    }
    fn is_direct(&self) -> bool {
        matches!(self.modify.find, Find::Loops { .. })
    }
    fn is_read_only(&self) -> bool {
        false
    }
    fn watches(&self) -> Vec<Watch> {
        self.watches.clone()
    }
    fn rewriting(&self) -> Option<&dyn Rewriting> {
        self.modify.rewrites().then_some(self)
    }
}

impl Rewriting for ModifyPlan {
    fn table(&self) -> &Table {
        &self.modify.target.access.table
    }
    fn only_deletes(&self) -> bool {
        matches!(self.modify.action, Action::Delete)
    }
    fn rewrite(
        &self,
        context: &Arc<StatementContext>,
        new: &Arc<Target>,
        load: &mut dyn Load,
    ) -> Result<String, SqlError> {
        self.modify.rewrite(&self.subqueries.evaluate(context)?, new, load).map(|count| self.tag(count))
    }
}

impl ModifyPlan {
    fn tag(&self, count: u64) -> String {
        let verb = if matches!(self.modify.action, Action::Delete) { "DELETE" } else { "UPDATE" };
        format!("{verb} {count}")
    }
}

/// An UPDATE or DELETE, taken apart.
pub struct Shape<'a> {
    table: &'a ObjectName,
    alias: Option<&'a TableAlias>,
    /// FROM or USING.
    others: &'a [TableWithJoins],
    selection: Option<&'a ast::Expr>,
    /// SET; `None` for DELETE.
    set: Option<Vec<(&'a ObjectName, &'a ast::Expr)>>,
    returning: Option<&'a [SelectItem]>,
}

/// Takes an UPDATE apart.
fn update_shape(update: &Update) -> Planned<Shape<'_>> {
    if update.output.is_some() || update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "UPDATE takes no ORDER BY, LIMIT or OUTPUT").into());
    }
    if !update.table.joins.is_empty() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "UPDATE names one table; join others in FROM").into());
    }
    let (table, alias) = shape::table(&update.table.relation)?;
    let others: &[TableWithJoins] = match &update.from {
        None => &[],
        Some(UpdateTableFromKind::AfterSet(tables)) => tables,
        Some(UpdateTableFromKind::BeforeSet(_)) => {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "FROM comes after SET").into());
        }
    };
    let mut set = Vec::new();
    for Assignment { target, value } in &update.assignments {
        match target {
            AssignmentTarget::ColumnName(name) => set.push((name, value)),
            AssignmentTarget::Tuple(_) => {
                return Err(
                    SqlError::new(SqlState::INTERNAL_ERROR, "SET of several columns was not taken apart").into()
                );
            }
        }
    }
    Ok(Shape {
        table,
        alias,
        others,
        selection: update.selection.as_ref(),
        set: Some(set),
        returning: update.returning.as_deref(),
    })
}

/// Takes a DELETE apart.
fn delete_shape(delete: &Delete) -> Planned<Shape<'_>> {
    if delete.output.is_some() || !delete.order_by.is_empty() || delete.limit.is_some() || !delete.tables.is_empty() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "DELETE takes no ORDER BY, LIMIT or OUTPUT").into());
    }
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [TableWithJoins { relation, joins }] = from.as_slice() else {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "DELETE names one table; join others in USING").into());
    };
    if !joins.is_empty() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "DELETE names one table; join others in USING").into());
    }
    let (table, alias) = shape::table(relation)?;
    Ok(Shape {
        table,
        alias,
        others: delete.using.as_deref().unwrap_or(&[]),
        selection: delete.selection.as_ref(),
        set: None,
        returning: delete.returning.as_deref(),
    })
}

/// UPDATE or DELETE.
pub trait Modification: ast::Visit + ast::VisitMut + Clone {
    /// Takes it apart.
    ///
    /// # Errors
    /// What the syntax tree can say and PostgreSQL does not take.
    fn shape(&self) -> Planned<Shape<'_>>;
    /// RETURNING.
    fn returning_mut(&mut self) -> Option<&mut Vec<SelectItem>>;
    /// SET.
    fn assignments_mut(&mut self) -> Option<&mut Vec<Assignment>>;
}

impl Modification for Update {
    fn shape(&self) -> Planned<Shape<'_>> {
        update_shape(self)
    }
    fn returning_mut(&mut self) -> Option<&mut Vec<SelectItem>> {
        self.returning.as_mut()
    }
    fn assignments_mut(&mut self) -> Option<&mut Vec<Assignment>> {
        Some(&mut self.assignments)
    }
}

impl Modification for Delete {
    fn shape(&self) -> Planned<Shape<'_>> {
        delete_shape(self)
    }
    fn returning_mut(&mut self) -> Option<&mut Vec<SelectItem>> {
        self.returning.as_mut()
    }
    fn assignments_mut(&mut self) -> Option<&mut Vec<Assignment>> {
        None
    }
}

/// Plans an UPDATE or a DELETE.
///
/// # Errors
/// What is wrong with it, or who else must plan it.
pub fn plan<M: Modification>(statement: &M, with: Option<&With>, context: &PlanContext) -> Planned<ModifyPlan> {
    let mut statement = statement.clone();
    if let Some(assignments) = statement.assignments_mut() {
        assignment::take_apart(assignments)?;
    }
    let statement = &statement;
    let shape = statement.shape()?;
    let direct = |wide| {
        let mut analysis = Analysis::new(statement, context);
        let mut statement = statement.clone();
        keep_names(statement.returning_mut().map_or(&mut [], Vec::as_mut_slice));
        analysis.take_subqueries(&mut statement, &mut [])?;
        by_loops(&statement.shape()?, analysis, wide)
    };
    // Nested loops know tables only.
    let first = if with.is_some() { Err(Refusal::Engine("WITH")) } else { direct(false) };
    match first {
        Err(refusal) if refusal.is_for_engine() => {
            let located = by_query(&shape, with, Analysis::new(statement, context), refusal);
            if with.is_some() {
                return located;
            }
            located.or_else(|error| direct(true).map_err(|_| error))
        }
        other => other,
    }
}

/// The table that a statement writes.
pub fn target(name: &ObjectName, context: &PlanContext) -> Planned<Arc<Target>> {
    let relation = match analysis::stored_relation(name, context) {
        // What only the engine knows cannot be written.
        Err(Refusal::Unknown(error)) => return Err(Refusal::Wrong(error)),
        other => other?,
    };
    match relation.as_ref() {
        Relation::Table(table) => Ok(Target::new(table, context)?),
        Relation::View(view) => {
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("cannot write to view \"{}\"", view.name))
                .hint("Write to the tables that it reads.")
                .into())
        }
        Relation::Sequence(sequence) => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot open relation \"{}\": it is a sequence", sequence.name),
        )
        .into()),
    }
}

/// The slot of a column that SET or INSERT names.
pub(crate) fn column_slot(table: &Table, name: &ObjectName) -> Result<usize, SqlError> {
    // What follows a dot is a field of the column.
    let column = name.0.first().and_then(|part| part.as_ident()).map(fold).unwrap_or_default();
    table.columns.iter().position(|c| c.name == column).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{}\" does not exist", table.name),
        )
    })
}

/// Whether an expression is the word DEFAULT.
pub(crate) fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// Binds SET: slots and their new values.
pub(crate) fn bind_set(
    set: &[(&ObjectName, &ast::Expr)],
    target: &Target,
    analysis: &mut Analysis<'_>,
) -> Planned<Vec<(usize, Expr)>> {
    let mut out: Vec<(usize, Expr)> = Vec::new();
    for (name, value) in set {
        set_one(name, value, target, analysis, &mut out, |value, place, analysis| {
            let bound = analysis.bind(value)?;
            match place {
                Some((column, ty)) => analysis.assign(bound, column, ty),
                None => Ok(bound),
            }
        })?;
    }
    Ok(out)
}

/// Binds one assignment of SET. `bind` brings its value to the type of what it is assigned to: the column, or an element of it. It binds the
/// subscripts too: these have no such place.
fn set_one<'a>(
    name: &ObjectName,
    value: &ast::Expr,
    target: &Target,
    analysis: &mut Analysis<'a>,
    out: &mut Vec<(usize, Expr)>,
    mut bind: impl FnMut(&ast::Expr, Option<(&str, &SqlType)>, &mut Analysis<'a>) -> Planned<Expr>,
) -> Planned<()> {
    let table = &target.access.table;
    let slot = column_slot(table, name)?;
    let column = &table.columns[slot];
    let part = element::assigned(value);
    let before = out.iter().position(|(other, _)| *other == slot);
    if let Some(before) = before
        && (part.is_none() || !is_assigned(&out[before].1))
    {
        let message = format!("multiple assignments to same column \"{}\"", column.name);
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).into());
    }
    if let Some((value, _)) = &part
        && is_default(value)
    {
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot set an array element to DEFAULT").into());
    }
    if part.is_none() && is_default(value) {
        let default = target.defaults[slot].clone();
        out.push((slot, default.unwrap_or(Expr::Literal(crate::types::Value::Null, column.ty.clone()))));
        return Ok(());
    }
    let kind = match (column.identity, &column.generated) {
        (Some(Identity::Always), _) => Some("an identity column defined as GENERATED ALWAYS"),
        (_, Some(_)) => Some("a generated column"),
        _ => None,
    };
    if let Some(kind) = kind {
        return Err(SqlError::new(
            SqlState(*b"428C9"),
            format!("column \"{}\" can only be updated to DEFAULT", column.name),
        )
        .detail(format!("Column \"{}\" is {kind}.", column.name))
        .into());
    }
    let Some((value, places)) = part else {
        out.push((slot, bind(value, Some((&column.name, &column.ty)), analysis)?));
        return Ok(());
    };
    let ty = type_at(&column.ty, &places)?;
    let value = bind(value, Some((&column.name, &ty)), analysis)?;
    // The table that is written stands first in the row.
    let column = Expr::Column { index: slot, ty: column.ty.clone() };
    let array = match before {
        Some(before) => std::mem::replace(&mut out[before].1, column),
        None => column,
    };
    let array = analysis.assigned_at(array, value, &places, |index, analysis| bind(index, None, analysis))?;
    match before {
        Some(before) => out[before].1 = array,
        None => out.push((slot, array)),
    }
    Ok(())
}

/// Plans by nested loops.
fn by_loops(shape: &Shape<'_>, mut analysis: Analysis<'_>, wide: bool) -> Planned<ModifyPlan> {
    let target = target(shape.table, analysis.context)?;
    let alias = shape.alias.map(|alias| fold(&alias.name));
    let first = analysis.add_table(&target.access.table, alias.as_deref(), target.access.clone(), &[])?;
    let others = shape::tables(shape.others)?;
    if others.iter().any(|table| table.outer) {
        return Err(Refusal::Engine("an outer join in FROM of UPDATE or DELETE"));
    }
    let mut sources = vec![first];
    let mut rest = analysis.from(&others)?;
    let mut conditions = analysis.on_conditions(&others, &mut rest)?;
    sources.extend(rest);
    if let Some(clash) = sources[1..].iter().find(|source| source.alias == sources[0].alias) {
        return Err(SqlError::new(
            SqlState(*b"42712"),
            format!("table name \"{}\" specified more than once", clash.alias),
        )
        .into());
    }
    if let Some(selection) = shape.selection {
        conditions.extend(analysis.conditions(selection)?);
    }
    let action = match &shape.set {
        None => Action::Delete,
        Some(set) => Action::update(&target.access, bind_set(set, &target, &mut analysis)?),
    };
    let items = match shape.returning {
        Some(list) => Some(returned(list, &sources, &mut analysis)?),
        None => None,
    };
    sources[0].lock = Some((action.lock(), LockWait::Wait));
    let width = analysis.width();
    let output = needed(&action, &target, items.as_deref(), &conditions);
    let recheck = conjunction(conditions.clone());
    let watches = Watch::of_sources(&sources, &conditions);
    let mut loops = loops::plan(Goal { sources: &sources, conditions, order: None, limited: false, wide, output })?;
    let at = loops.sources.iter().position(|&source| source == 0).unwrap_or(0);
    settle_lock(&mut loops.levels, at, &action);
    let immediate = is_immediate(&loops, &action, &target);
    let find = Find::Loops { levels: loops.levels.into(), at, width, constant: loops.constant, recheck, immediate };
    let fields = items.iter().flatten().map(|item| item.field.clone()).collect();
    let returning = items.map(|items| items.into_iter().map(|item| item.expr).collect());
    let (parameters, subqueries) = analysis.finish()?;
    Ok(ModifyPlan { parameters, fields, modify: Modify { target, find, action, returning }, subqueries, watches })
}

/// Lets the mode of an UPDATE's locks depend on the row, where that makes a difference.
fn settle_lock(levels: &mut [Level], at: usize, action: &Action) {
    let Action::Update { lock, .. } = action else { return };
    let Some(open) = Some(lock).filter(|lock| lock.is_open()) else { return };
    let known: Vec<Range<usize>> = levels.iter().take(at + 1).map(Level::places).collect();
    let Some(level) = levels.get_mut(at) else { return };
    match open.reads_only(&|place| known.iter().any(|places| places.contains(&place))) {
        true => level.key_lock = Some(open.clone()),
        // How to lock it is known when all tables have been read.
        false => level.lock = None,
    }
}

/// Places of the joined row that the writes need.
fn needed(action: &Action, target: &Target, items: Option<&[Item]>, conditions: &[Expr]) -> Vec<usize> {
    let mut output = match action {
        Action::Delete => target.delete_needs(),
        Action::Update { touch, set, .. } => {
            let mut output = target.update_needs(touch);
            set.iter().for_each(|(_, expr)| tree::columns(expr, &mut output));
            output
        }
    };
    items.into_iter().flatten().for_each(|item| tree::columns(&item.expr, &mut output));
    conditions.iter().for_each(|condition| tree::columns(condition, &mut output));
    output
}

/// Whether rows may be written as they are found: no write changes what is found next. Where they are found by key that is so whatever
/// referential actions do, for the keys are made before.
fn is_immediate(loops: &loops::Loops, action: &Action, target: &Target) -> bool {
    let [level] = loops.levels.as_slice() else { return false };
    let apart = match action {
        Action::Delete => true,
        Action::Update { touch, .. } => !touch.key && !touch.indexes.contains(&level.path.index),
    };
    apart && (level.lock.is_some() || !target.acts_on_others())
}

/// Plans by a query that locates the rows.
fn by_query(
    shape: &Shape<'_>,
    with: Option<&With>,
    mut analysis: Analysis<'_>,
    refusal: Refusal,
) -> Planned<ModifyPlan> {
    let target = target(shape.table, analysis.context)?;
    let table = &target.access.table;
    let alias = shape.alias.map_or_else(|| table.name.clone(), |alias| fold(&alias.name));
    // The key's place: see `located::key`.
    let mut list: Vec<String> = vec!["NULL".into()];
    let mut shared = Vec::new();
    let source = analysis.add_table(table, Some(&alias), target.access.clone(), &[])?;
    let width = analysis.width();
    let mut set = Vec::new();
    if let Some(assignments) = &shape.set {
        for (name, value) in assignments {
            refuse_sets(*value, "UPDATE")?;
            set_one(name, value, &target, &mut analysis, &mut set, |value, place, analysis| {
                let bound = analysis.bind(value).and_then(|bound| match place {
                    Some((column, ty)) => analysis.assign(bound, column, ty),
                    None => Ok(bound),
                });
                bound.or_else(|error| {
                    let (value, number) = assignment::plain(value);
                    shared.extend(number.map(|number| (list.len(), number)));
                    let (column, ty) = place.unwrap_or(("", &SqlType::Int4));
                    located_value(&value, column, ty, analysis, &mut list, width, error)
                })
            })?;
        }
    }
    let sources: Vec<Source> = vec![source];
    let mut from = format!(" FROM {} AS {}", written(shape.table.clone())?, quote_identifier(&alias));
    if analysis.context.given.iter().any(|given| given.name == table.name) {
        // The table is meant, not the rows of WITH that have its name.
        let schema = analysis.schema_name(table)?;
        from = format!(" FROM {} AS {}", quote_qualified(schema.as_deref(), &table.name), quote_identifier(&alias));
    }
    for other in shape.others {
        let _ = write!(from, ", {}", written(other.clone())?);
    }
    let with = with.map(|with| written(with.clone())).transpose()?.map_or_else(String::new, |with| format!("{with} "));
    let items = match shape.returning {
        Some(returning) => {
            for _ in 1..list.len() {
                // The places of what SET computes: no name finds them.
                analysis.add_column("", "", &SqlType::Unknown);
            }
            let around = located::Around { with: &with, from: &from, target: &alias };
            let others = located::others(shape.others, &around, &mut analysis, &mut list)?;
            let returning = located::expand(returning, table, &alias, &others);
            Some(returned(&returning, &sources, &mut analysis)?)
        }
        None => None,
    };
    let mut text = format!("{with}SELECT {}{from}", list.join(", "));
    if let Some(selection) = shape.selection {
        let _ = write!(text, " WHERE {}", written(selection.clone())?);
    }
    let (parameters, plan) = located::plan(&text, &alias, &shared, analysis, &refusal)?;
    let action = match shape.set {
        None => Action::Delete,
        Some(_) => Action::update(&target.access, set),
    };
    let fields = items.iter().flatten().map(|item| item.field.clone()).collect();
    let returning = items.map(|items| items.into_iter().map(|item| item.expr).collect());
    let watches = plan.watches();
    let modify = Modify { target, find: Find::Plan(plan), action, returning };
    Ok(ModifyPlan { parameters, fields, modify, subqueries: Subqueries::default(), watches })
}

/// A value of SET that only the query can compute: a column behind the target's, given by the query.
fn located_value(
    value: &ast::Expr,
    column: &str,
    ty: &SqlType,
    analysis: &mut Analysis<'_>,
    list: &mut Vec<String>,
    width: usize,
    error: Refusal,
) -> Planned<Expr> {
    // The key stands before them.
    let place = width + list.len() - 1;
    if let Refusal::Wrong(error) = &error
        && !matches!(error.state, SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE)
    {
        return Err(error.as_ref().clone().into());
    }
    // The cast gives the query's literals and parameters the column's type.
    let open = scope::open_type(ty);
    list.push(format!("CAST({} AS {open})", written(value.clone())?));
    let given = Expr::Column { index: place, ty: open };
    analysis.assign(given, column, ty)
}
