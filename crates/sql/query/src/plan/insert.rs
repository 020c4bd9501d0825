//! Plans INSERT, and the inserter of COPY FROM.

use super::analysis::Analysis;
use super::explain;
use super::implication::implies;
use super::modify::{bind_set, column_slot, is_default, target};
use super::refusal::{Planned, Refusal};
use super::scope;
use super::select::{keep_names, returned};
use super::shape;
use super::subquery::Subqueries;
use super::watch::Watch;
use super::{Execution, Filling, Plan, PlanContext, Rewriting};
use crate::catalog::{Identity, Relation, Table};
use crate::context::StatementContext;
use crate::exec::insert::{BulkInsert, Conflict, ConflictUpdate, Insert, Source};
use crate::exec::key_lock::KeyLock;
use crate::exec::literal_rows::LiteralRows;
use crate::exec::load::{Duplicate, Load};
use crate::exec::table::IndexAccess;
use crate::exec::target::Target;
use crate::exec::write::Touch;
use crate::explain::Operator;
use crate::expr::Expr;
use crate::expr::element::type_at;
use crate::identifier::fold;
use crate::output::Field;
use crate::syntax::element::{self, Place};
use crate::syntax::literal_rows;
use crate::syntax::marks::written;
use crate::syntax::{Inference, Overriding};
use crate::types::{SqlType, Value};
use crate::work::Pooled;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, AssignmentTarget, ConflictTarget, OnConflict, OnConflictAction, OnInsert, Query, SelectItem, SetExpr,
    Statement, TableObject, visit_relations,
};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a literal comes to that is put into an array, bytes, about: it, its place, and what puts it there.
const ELEMENT_BYTES: usize = 4 * size_of::<Expr>();

/// A planned INSERT.
pub struct InsertPlan {
    parameters: Vec<SqlType>,
    fields: Vec<Field>,
    insert: Insert,
    subqueries: Subqueries,
}

impl Plan for InsertPlan {
    fn parameters(&self) -> &[SqlType] {
        &self.parameters
    }
    fn fields(&self) -> &[Field] {
        &self.fields
    }
    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        let context = self.subqueries.evaluate(context)?;
        let (count, rows) = self.insert.run(&context)?;
        Ok(Execution::Done { tag: format!("INSERT 0 {count}"), rows })
    }
    fn explain(&self) -> Operator {
        self.subqueries.explain(explain::insert(&self.insert))
    }
    fn is_direct(&self) -> bool {
        match &self.insert.source {
            Source::Values { .. } | Source::Literals(_) => true,
            Source::Plan { plan, .. } => plan.is_direct(),
        }
    }
    fn is_read_only(&self) -> bool {
        false
    }
    fn watches(&self) -> Vec<Watch> {
        match &self.insert.source {
            Source::Plan { plan, .. } => plan.watches(),
            Source::Values { .. } | Source::Literals(_) => Vec::new(),
        }
    }
    fn filling(&self) -> Option<&dyn Filling> {
        self.insert.filling().is_some().then_some(self)
    }
    fn rewriting(&self) -> Option<&dyn Rewriting> {
        self.insert.rewrites().then_some(self)
    }
}

impl Rewriting for InsertPlan {
    fn table(&self) -> &Table {
        &self.insert.target.access.table
    }
    fn rewrite(
        &self,
        context: &Arc<StatementContext>,
        new: &Arc<Target>,
        load: &mut dyn Load,
    ) -> Result<String, SqlError> {
        let count = self.insert.rewrite(&self.subqueries.evaluate(context)?, new, load)?;
        Ok(format!("INSERT 0 {count}"))
    }
}

impl Filling for InsertPlan {
    fn table(&self) -> &Table {
        &self.insert.target.access.table
    }
    fn load(&self, context: &Arc<StatementContext>, load: &mut dyn Load) -> Result<u64, SqlError> {
        self.insert.load(&self.subqueries.evaluate(context)?, load)
    }
    fn twice(&self, context: &Arc<StatementContext>, found: &Duplicate<'_>) -> SqlError {
        self.insert.target.twice(context, found)
    }
}

/// Plans an INSERT.
pub fn plan(insert: &ast::Insert, context: &PlanContext) -> Planned<InsertPlan> {
    refuse_dialects(insert)?;
    let mut analysis = Analysis::new(insert, context);
    // The query of INSERT .. SELECT keeps its subqueries: it is planned by itself.
    let query = insert.source.as_deref();
    let mut insert = without_source(insert);
    keep_names(insert.returning.as_deref_mut().unwrap_or_default());
    if let Some(OnInsert::OnConflict(conflict)) = &mut insert.on
        && let OnConflictAction::DoUpdate(update) = &mut conflict.action
    {
        super::assignment::take_apart(&mut update.assignments)?;
    }
    analysis.take_subqueries(&mut insert, &mut [])?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::unsupported("INSERT INTO a function").into());
    };
    let target = target(name, context)?;
    let table = &target.access.table;
    let given = columns(&insert, &target)?;
    let source = match query {
        None => Source::Values { rows: vec![target.defaults.clone()], _held: Pooled::default() },
        Some(query) => source(query, &given, !insert.columns.is_empty(), &target, &mut analysis)?,
    };
    let alias = insert.table_alias.as_ref().map(|alias| fold(&alias.alias));
    let sources = [analysis.add_table(table, alias.as_deref(), target.access.clone(), &[])?];
    let items = match &insert.returning {
        Some(list) => Some(returned(list, &sources, &mut analysis)?),
        None => None,
    };
    let conflict = match &insert.on {
        None => None,
        Some(OnInsert::OnConflict(conflict)) => Some(on_conflict(conflict, &target, &mut analysis)?),
        Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY UPDATE").hint("Say ON CONFLICT.").into()),
    };
    let fields = items.iter().flatten().map(|item| item.field.clone()).collect();
    let returning = items.map(|items| items.into_iter().map(|item| item.expr).collect());
    let (parameters, subqueries) = analysis.finish()?;
    Ok(InsertPlan { parameters, fields, insert: Insert { target, source, conflict, returning }, subqueries })
}

fn refuse_dialects(insert: &ast::Insert) -> Result<(), SqlError> {
    let foreign = insert.or.is_some()
        || insert.ignore
        || insert.overwrite
        || !insert.assignments.is_empty()
        || insert.partitioned.is_some()
        || !insert.after_columns.is_empty()
        || insert.output.is_some()
        || insert.replace_into
        || insert.priority.is_some()
        || insert.insert_alias.is_some()
        || insert.settings.is_some()
        || insert.format_clause.is_some()
        || insert.multi_table_insert_type.is_some();
    if foreign {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "this form of INSERT belongs to another dialect"));
    }
    Ok(())
}

/// A column that the statement gives, or a part of it.
struct Given {
    slot: usize,
    /// Of an array.
    places: Option<Vec<Place>>,
    /// Of the value.
    ty: SqlType,
}

/// The columns that the statement gives, in its order.
fn columns(insert: &ast::Insert, target: &Target) -> Result<Vec<Given>, SqlError> {
    let table = &target.access.table;
    let whole = |slot: usize| Given { slot, places: None, ty: table.columns[slot].ty.clone() };
    if insert.columns.is_empty() {
        return Ok((0..table.columns.len()).map(whole).collect());
    }
    let mut out: Vec<Given> = Vec::with_capacity(insert.columns.len());
    for name in &insert.columns {
        let slot = column_slot(table, name)?;
        let places = element::of_column(name)?;
        if out.iter().any(|other| other.slot == slot && (places.is_none() || other.places.is_none())) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", table.columns[slot].name),
            ));
        }
        out.push(match places {
            None => whole(slot),
            Some(places) => Given { slot, ty: type_at(&table.columns[slot].ty, &places)?, places: Some(places) },
        });
    }
    Ok(out)
}

/// Puts a value into its column, or into its place in it.
fn put(
    given: &Given,
    value: Expr,
    table: &Table,
    begun: &mut [bool],
    out: &mut [Option<Expr>],
    analysis: &mut Analysis<'_>,
) -> Planned<()> {
    let value = analysis.assign(value, &table.columns[given.slot].name, &given.ty)?;
    let Some(places) = &given.places else {
        out[given.slot] = Some(value);
        return Ok(());
    };
    let nothing = Expr::Literal(Value::Null, table.columns[given.slot].ty.clone());
    // The default is of a column of which nothing is given.
    let before = if std::mem::replace(&mut begun[given.slot], true) { out[given.slot].take() } else { None };
    out[given.slot] =
        Some(analysis.assigned_at(before.unwrap_or(nothing), value, places, |index, analysis| analysis.bind(index))?);
    Ok(())
}

/// Where rows come from.
fn source(
    query: &Query,
    given: &[Given],
    listed: bool,
    target: &Arc<Target>,
    analysis: &mut Analysis<'_>,
) -> Planned<Source> {
    let plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    if plain && let SetExpr::Values(values) = query.body.as_ref() {
        // A copy of them all would be as large as the statement: mostly none is needed.
        let values = if values.rows.iter().any(|row| row.content.iter().any(asks)) {
            let mut values = values.clone();
            analysis.take_subqueries(&mut values, &mut [])?;
            Cow::Owned(values)
        } else {
            Cow::Borrowed(values)
        };
        let mut lengths = values.rows.iter().map(|row| literal_rows::width(&row.content));
        let first = lengths.next().unwrap_or(0);
        check_count(first, given.len(), listed)?;
        if lengths.any(|length| length != first) {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "VALUES lists must all be the same length").into());
        }
        let given = &given[..first];
        let count = literal_rows::count(&values);
        if values.rows.len() < count && given.iter().all(|given| given.places.is_none()) {
            return literals(&values, count, given, target, analysis);
        }
        // What was kept as text while it was read becomes as large as it is here, for as long as the plan is there. (It is one of its statement, and waits among
        // the plans of all sessions: a row or two count there.)
        let held = Pooled::new();
        let whole = count * target.defaults.len() * size_of::<Expr>();
        held.take(literal_rows::kept_bytes(&values, ELEMENT_BYTES) + whole)?;
        let rows = literal_rows::all(&values).map(|row| values_row(&row, given, target, analysis));
        return Ok(Source::Values { rows: rows.collect::<Planned<_>>()?, _held: held });
    }
    from_query(query.clone(), given, listed, target, analysis)
}

/// Rows of which many are literals alone: each is bound while its tree is there.
fn literals(
    values: &ast::Values,
    count: usize,
    given: &[Given],
    target: &Target,
    analysis: &mut Analysis<'_>,
) -> Planned<Source> {
    let slots: Vec<usize> = given.iter().map(|given| given.slot).collect();
    let mut others = target.defaults.clone();
    slots.iter().for_each(|slot| others[*slot] = None);
    let mut rows = LiteralRows::new(slots, others, count)?;
    for row in literal_rows::all(values) {
        rows.push(values_row(&row, given, target, analysis)?)?;
    }
    Ok(Source::Literals(rows))
}

/// A copy without the rows, which may be many.
fn without_source(insert: &ast::Insert) -> ast::Insert {
    ast::Insert {
        insert_token: insert.insert_token.clone(),
        optimizer_hints: insert.optimizer_hints.clone(),
        or: insert.or,
        ignore: insert.ignore,
        into: insert.into,
        table: insert.table.clone(),
        table_alias: insert.table_alias.clone(),
        columns: insert.columns.clone(),
        overwrite: insert.overwrite,
        source: None,
        assignments: insert.assignments.clone(),
        partitioned: insert.partitioned.clone(),
        after_columns: insert.after_columns.clone(),
        has_table_keyword: insert.has_table_keyword,
        on: insert.on.clone(),
        returning: insert.returning.clone(),
        output: insert.output.clone(),
        replace_into: insert.replace_into,
        priority: insert.priority,
        insert_alias: insert.insert_alias.clone(),
        settings: insert.settings.clone(),
        format_clause: insert.format_clause.clone(),
        multi_table_insert_type: insert.multi_table_insert_type.clone(),
        multi_table_into_clauses: insert.multi_table_into_clauses.clone(),
        multi_table_when_clauses: insert.multi_table_when_clauses.clone(),
        multi_table_else_clause: insert.multi_table_else_clause.clone(),
    }
}

/// Whether there is a query in an expression.
fn asks(expr: &ast::Expr) -> bool {
    struct Finds;
    impl ast::Visitor for Finds {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    ast::Visit::visit(expr, &mut Finds).is_break()
}

/// One row of VALUES, by slot.
fn values_row(
    row: &[ast::Expr],
    given: &[Given],
    target: &Target,
    analysis: &mut Analysis<'_>,
) -> Planned<Vec<Option<Expr>>> {
    let table = &target.access.table;
    let mut out = target.defaults.clone();
    let mut begun = vec![false; out.len()];
    for (value, given) in row.iter().zip(given) {
        if is_default(value) && given.places.is_some() {
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot set an array element to DEFAULT").into());
        }
        if is_default(value) || !takes_value(table, given.slot, analysis.context)? {
            continue;
        }
        let bound = analysis.bind_alone(value).map_err(|refusal| match refusal {
            Refusal::Engine("an aggregate function") => {
                SqlError::new(SqlState::GROUPING_ERROR, "aggregate functions are not allowed in VALUES").into()
            }
            other => other,
        })?;
        put(given, bound, table, &mut begun, &mut out, analysis)?;
    }
    Ok(out)
}

/// 42601 unless there are as many values as columns. Without a list of columns there may be fewer.
fn check_count(values: usize, columns: usize, listed: bool) -> Result<(), SqlError> {
    if values > columns {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "INSERT has more expressions than target columns"));
    }
    if values < columns && listed {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "INSERT has more target columns than expressions"));
    }
    Ok(())
}

/// Whether a column takes the value given: an identity column may insist on its own.
///
/// # Errors
/// 428C9 for a value given to a column GENERATED ALWAYS.
fn takes_value(table: &Table, slot: usize, context: &PlanContext) -> Result<bool, SqlError> {
    let column = &table.columns[slot];
    if column.generated.is_some() {
        return Err(SqlError::new(
            SqlState(*b"428C9"),
            format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name),
        )
        .detail(format!("Column \"{}\" is a generated column.", column.name)));
    }
    match (column.identity, context.overriding) {
        (None, _) | (Some(_), Some(Overriding::System)) | (Some(Identity::ByDefault), None) => Ok(true),
        (Some(_), Some(Overriding::User)) => Ok(false),
        (Some(Identity::Always), None) => Err(SqlError::new(
            SqlState(*b"428C9"),
            format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name),
        )
        .detail(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name))
        .hint("Use OVERRIDING SYSTEM VALUE to override.")),
    }
}

/// INSERT .. SELECT, and VALUES with an ORDER BY or LIMIT.
fn from_query(
    mut query: Query,
    given: &[Given],
    listed: bool,
    target: &Arc<Target>,
    analysis: &mut Analysis<'_>,
) -> Planned<Source> {
    let table = &target.access.table;
    let unfolded = Pooled::new();
    literal_rows::unfold(&mut query.body, &unfolded)?;
    type_items(&mut query, given)?;
    let materialise = reads(&query, &table.name, analysis.context);
    let statement = Statement::Query(Box::new(query));
    let mut context = PlanContext { inside: true, ..analysis.context.clone() };
    context.parameter_hints = analysis.hints();
    let plan = super::prepare(&statement, &statement.to_string(), &context)?;
    analysis.learn(plan.parameters());
    check_count(plan.fields().len(), given.len(), listed)?;
    let mut columns = target.defaults.clone();
    let mut begun = vec![false; columns.len()];
    for (place, (field, given)) in plan.fields().iter().zip(given).enumerate() {
        if !takes_value(table, given.slot, analysis.context)? {
            continue;
        }
        let value = Expr::Column { index: place, ty: field.ty.clone() };
        put(given, value, table, &mut begun, &mut columns, analysis)?;
    }
    Ok(Source::Plan { plan, columns, materialise })
}

/// Bare literals and parameters of the select list take the type of the column that they fill.
fn type_items(query: &mut Query, given: &[Given]) -> Result<(), SqlError> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    for (item, given) in select.projection.iter_mut().zip(given) {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return Ok(()) };
        let ast::Expr::Value(value) = &*expr else { continue };
        let open =
            matches!(value.value, ast::Value::Placeholder(_) | ast::Value::SingleQuotedString(_) | ast::Value::Null);
        if open {
            let literal = written(expr.clone())?;
            *expr = scope::parse(&format!("CAST({literal} AS {})", scope::open_type(&given.ty)))?;
        }
    }
    Ok(())
}

/// Whether a query may read a table (or a view that does): if it names it, or anything that is not a table.
fn reads(query: &Query, table: &str, context: &PlanContext) -> bool {
    visit_relations(query, |name| {
        let other = shape::table_name(name).is_ok_and(|(_, name)| name != table);
        let stored = super::analysis::stored_relation(name, context);
        let is_view = stored.is_ok_and(|relation| matches!(*relation, Relation::View(_)));
        if other && !is_view { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .is_break()
}

fn on_conflict(conflict: &OnConflict, target: &Arc<Target>, analysis: &mut Analysis<'_>) -> Planned<Conflict> {
    let access = &target.access;
    let arbiters = match &conflict.conflict_target {
        None => match analysis.context.inference.clone() {
            Some(inference) => Some(inferred(&inference, target, analysis)?),
            None => None,
        },
        Some(ConflictTarget::Columns(columns)) => {
            let keys = columns.iter().map(|column| ast::Expr::Identifier(column.clone())).collect();
            Some(inferred(&Inference { keys, predicate: None }, target, analysis)?)
        }
        Some(ConflictTarget::OnConstraint(name)) => {
            let name = name.0.last().and_then(|part| part.as_ident()).map(fold).unwrap_or_default();
            let found = (0..=access.indexes.len()).find(|&i| {
                access.index(i).name == name
                    && access.index(i).unique
                    && access.index(i).is_plain()
                    && (i > 0 || access.table.has_primary_key)
            });
            Some(vec![found.ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("constraint \"{name}\" for table \"{}\" does not exist", access.table.name),
                )
            })?])
        }
    };
    let update = match &conflict.action {
        OnConflictAction::DoNothing => None,
        OnConflictAction::DoUpdate(update) => {
            if arbiters.is_none() {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                )
                .hint("For example, ON CONFLICT (column_name).")
                .into());
            }
            analysis.add_excluded(&access.table);
            let mut set = Vec::new();
            for assignment in &update.assignments {
                match (&assignment.target, &assignment.value) {
                    (AssignmentTarget::ColumnName(name), value) => set.push((name, value)),
                    _ => return Err(SqlError::unsupported("this form of SET").into()),
                }
            }
            let set = bind_set(&set, target, analysis)?;
            let condition = update.selection.as_ref().map(|selection| analysis.bind_where(selection)).transpose()?;
            let slots: Vec<usize> = set.iter().map(|(slot, _)| *slot).collect();
            let touch = Touch::new(access, &slots);
            let lock = KeyLock::new(access, &touch, &set);
            Some(ConflictUpdate { touch, set, condition, lock })
        }
    };
    Ok(Conflict { arbiters, update })
}

/// Unique indexes on exactly these columns and expressions; partial ones where the predicate given implies theirs.
fn inferred(inference: &Inference, target: &Target, analysis: &mut Analysis<'_>) -> Planned<Vec<usize>> {
    let access = &target.access;
    let (mut slots, mut expressions) = (Vec::new(), Vec::new());
    for key in &inference.keys {
        match key {
            ast::Expr::Identifier(column) => {
                slots.push(column_slot(&access.table, &ast::ObjectName::from(column.clone()))?);
            }
            expression => match analysis.bind(strip(expression))? {
                Expr::Column { index, .. } => slots.push(index),
                bound => expressions.push(bound),
            },
        }
    }
    slots.sort_unstable();
    slots.dedup();
    let given = match &inference.predicate {
        Some(predicate) => analysis.conditions(predicate)?,
        None => Vec::new(),
    };
    let meant = |index: &IndexAccess| {
        let mut own: Vec<usize> = index.columns.iter().filter_map(|column| column.slot).collect();
        own.sort_unstable();
        own.dedup();
        let mut keys = index.columns.iter().filter_map(|column| column.expression.as_ref());
        index.unique
            && own == slots
            && keys.all(|key| expressions.contains(key))
            && expressions.iter().all(|wanted| index.columns.iter().any(|c| c.expression.as_ref() == Some(wanted)))
            && index.predicate.as_ref().is_none_or(|predicate| implies(&given, predicate))
    };
    let found: Vec<usize> = (0..=access.indexes.len())
        .filter(|&i| (i > 0 || access.table.has_primary_key) && meant(access.index(i)))
        .collect();
    if found.is_empty() {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        )
        .into());
    }
    Ok(found)
}

/// An expression without its parentheses.
fn strip(expr: &ast::Expr) -> &ast::Expr {
    match expr {
        ast::Expr::Nested(inner) => strip(inner),
        other => other,
    }
}

/// An inserter for COPY FROM: the columns given (by id) take COPY's values, the others their defaults.
pub fn bulk(table: &Arc<Relation>, columns: &[u16], context: &PlanContext) -> Result<BulkInsert, SqlError> {
    let Relation::Table(table) = table.as_ref() else {
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "COPY FROM fills tables only"));
    };
    let target = Target::new(table, context)?;
    let mut out = target.defaults.clone();
    for (place, &id) in columns.iter().enumerate() {
        let slot = target.access.slot(id).ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_COLUMN, format!("table \"{}\" has no column number {id}", table.name))
        })?;
        out[slot] = Some(Expr::Column { index: place, ty: table.columns[slot].ty.clone() });
    }
    for (slot, expr) in out.iter_mut().enumerate() {
        // What is neither given nor has a default is NULL, said once here instead of for each row.
        expr.get_or_insert_with(|| Expr::Literal(Value::Null, table.columns[slot].ty.clone()));
    }
    Ok(BulkInsert { target, columns: out, gaps: true })
}
