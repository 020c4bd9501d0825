//! Plans a direct SELECT.

use super::analysis::Analysis;
use super::explain;
use super::grouping;
use super::inner;
use super::loops::{self, Goal, Loops, Source};
use super::refusal::{Planned, Refusal};
use super::returning;
use super::setless::refuse_sets;
use super::shape::{self, SelectShape};
use super::subquery::Subqueries;
use super::tree;
use super::watch::Watch;
use super::{Execution, Plan};
use crate::context::StatementContext;
use crate::engine::short::Short;
use crate::exec::cursor::Level;
use crate::exec::path::Path;
use crate::exec::select::{Grouping, Project, RowLock, Select};
use crate::exec::sort::SortKey;
use crate::explain::Operator;
use crate::expr::{Expr, Volatility, conjunction, hidden_relation, missing_relation, split_conjuncts};
use crate::identifier::fold;
use crate::output::Field;
use crate::syntax::forms::spread;
use crate::syntax::{key_lock, output_name};
use crate::transaction::{LockMode, LockWait};
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, LockClause, LockType, NonBlock, ObjectName, Query, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
};
use std::sync::Arc;

/// A planned SELECT.
pub struct SelectPlan {
    parameters: Vec<SqlType>,
    fields: Vec<Field>,
    select: Arc<Select>,
    subqueries: Subqueries,
    watches: Vec<Watch>,
}

impl Plan for SelectPlan {
    fn parameters(&self) -> &[SqlType] {
        &self.parameters
    }
    fn fields(&self) -> &[Field] {
        &self.fields
    }
    fn gives_rows(&self) -> bool {
        true
    }
    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        let context = self.subqueries.evaluate(context)?;
        Ok(Execution::Rows(Box::new(self.select.start(&context)?)))
    }
    fn explain(&self) -> Operator {
        self.subqueries.explain(explain::select(&self.select))
    }
    fn watches(&self) -> Vec<Watch> {
        self.watches.clone()
    }
    fn reads_nothing(&self) -> bool {
        let Project::Exprs(exprs) = &self.select.project else { return false };
        let known = |expr: &Expr| {
            let mut known = true;
            expr.visit(&mut |part| {
                if let Expr::Call { function, .. } = part {
                    // Others may show the snapshot, which is then the one to read at.
                    let lock = function.name.starts_with("pg_advisory") || function.name.starts_with("pg_try_advisory");
                    let own = ASK_NOBODY.contains(&function.name);
                    known &= lock || own || function.volatility == Volatility::Immutable;
                }
            });
            known
        };
        self.select.levels.is_empty() && self.subqueries.is_empty() && exprs.iter().all(known)
    }
    fn may_run_again(&self) -> bool {
        let Select { grouping, distinct, project, levels, constant, limit, offset, order, .. } = self.select.as_ref();
        let groups = grouping.as_ref().is_some_and(|grouping| !grouping.keys.is_empty());
        let plain = |expr: &Expr| expr.volatility() != Volatility::Volatile;
        let items = if let Project::Exprs(exprs) = project { exprs.as_slice() } else { &[] };
        let grouped = grouping.iter().flat_map(|grouping| {
            let arguments = grouping.aggregates.iter().filter_map(|aggregate| aggregate.argument.as_ref());
            grouping.keys.iter().map(|(key, _)| key).chain(arguments).chain(&grouping.having)
        });
        let filters = levels.iter().flat_map(|level| level.filter.iter().chain(&level.after));
        let alone = self.subqueries.is_empty() && self.is_read_only();
        let others = constant.iter().chain(limit).chain(offset).chain(order.iter().map(|key| &key.expr));
        (groups || distinct.is_some()) && alone && items.iter().chain(grouped).chain(filters).chain(others).all(plain)
    }
    fn is_read_only(&self) -> bool {
        self.select.locks.is_empty() && self.select.levels.iter().all(|level| level.lock.is_none())
    }
}

/// Functions that are not immutable, and look at nothing but their session and their node.
const ASK_NOBODY: [&str; 18] = [
    "now",
    "transaction_timestamp",
    "statement_timestamp",
    "clock_timestamp",
    "timeofday",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtime",
    "localtimestamp",
    "version",
    "pg_backend_pid",
    "pg_is_in_recovery",
    "inet_client_addr",
    "inet_client_port",
    "inet_server_addr",
    "inet_server_port",
    "gen_random_uuid",
];

/// One column of the result.
pub struct Item {
    /// What it is, over the joined row.
    pub expr: Expr,
    /// Its name and origin.
    pub field: Field,
}

/// Plans a query.
pub fn plan(query: &Query, analysis: Analysis<'_>) -> Planned<SelectPlan> {
    shape::select(query)?;
    if !inner::are_inside(query) {
        return plan_alone(query, analysis);
    }
    plan_inside(&mut query.clone(), analysis)
}

/// Plans a query that is taken apart meanwhile, and afterwards what it was.
pub fn plan_inside(query: &mut Query, analysis: Analysis<'_>) -> Planned<SelectPlan> {
    let shape = shape::select(query)?;
    if !inner::are_inside(query) {
        return plan_alone(query, analysis);
    }
    let names = names(shape.items);
    let mut inside = inner::take_out(query);
    let planned = plan_outer(query.clone(), names, &mut inside, analysis);
    inner::put_back(query, inside);
    planned
}

fn plan_outer(
    mut query: Query,
    names: Vec<Option<String>>,
    inside: &mut [Query],
    mut analysis: Analysis<'_>,
) -> Planned<SelectPlan> {
    if let SetExpr::Select(select) = query.body.as_mut() {
        give_names(&mut select.projection, names);
    }
    analysis.take_subqueries(&mut query, inside)?;
    plan_alone(&query, analysis)
}

/// Plans a query without queries inside.
fn plan_alone(query: &Query, mut analysis: Analysis<'_>) -> Planned<SelectPlan> {
    let bound = Bound::new(query, &mut analysis)?;
    let fields: Vec<Field> = bound.items.iter().map(|item| item.field.clone()).collect();
    let watches = Watch::of_sources(&bound.sources, &bound.conditions);
    let select = bound.assemble()?;
    let (parameters, subqueries) = analysis.finish()?;
    Ok(SelectPlan { parameters, fields, select: Arc::new(select), subqueries, watches })
}

/// Distinct rows or groups are few where there are so many times as many: a row that an index leads to costs what six to fifteen read in order do.
const FEW_PART: f64 = 20.0;

/// A SELECT with its names and types settled, before it is known how its tables are read.
struct Bound {
    sources: Vec<Source>,
    width: usize,
    conditions: Vec<Expr>,
    locks: Vec<(usize, LockMode, LockWait)>,
    items: Vec<Item>,
    order: Vec<SortKey>,
    grouping: Option<Grouping>,
    distinct: bool,
    limit: Option<Expr>,
    offset: Option<Expr>,
}

impl Bound {
    fn new(query: &Query, analysis: &mut Analysis<'_>) -> Planned<Self> {
        let shape = shape::select(query)?;
        let (mut sources, tables) = analysis.tables(&shape.from)?;
        let width = sources.iter().map(|source| source.access.columns.len()).sum();
        let mut binder = analysis.binder(tables);
        let mut conditions = Vec::new();
        for (at, item) in shape.from.iter().enumerate() {
            let Some(on) = item.on else { continue };
            // ON sees only the tables up to its own.
            let on = split_conjuncts(binder.condition(on, "JOIN/ON", at + 1)?);
            if sources[at].outer { sources[at].on = on } else { conditions.extend(on) }
        }
        if let Some(selection) = shape.selection {
            conditions.extend(split_conjuncts(binder.condition(selection, "WHERE", sources.len())?));
        }
        let locks = lock_sources(shape.locks, &mut sources)?;
        let Short { items, order, groups, limit, offset } = binder.select(query)?;
        analysis.take_back(binder);
        if groups.is_some() && sources.is_empty() {
            // Loops over no table see no row, where an aggregate sees one.
            return Err(Refusal::Engine("an aggregate without FROM"));
        }
        if groups.is_some() || shape.distinct {
            refuse_locks(&shape)?;
        }
        let items = items.into_iter().map(|(expr, field)| Item { expr, field }).collect();
        let grouping = groups.map(|groups| Grouping {
            keys: groups.keys.into_iter().map(with_type).collect(),
            aggregates: groups.aggregates,
            having: groups.having,
            first: false,
            in_turn: false,
            ends: Vec::new(),
        });
        let distinct = shape.distinct;
        Ok(Bound { sources, width, conditions, locks, items, order, grouping, distinct, limit, offset })
    }

    /// Whether rows leave the loops one by one, but for a sort.
    fn streams(&self) -> bool {
        self.grouping.is_none() && !self.distinct
    }

    /// The order of the first few of many distinct rows or groups, as places of columns: an index that gives it is read no further than they go.
    fn order_of_few(&self) -> Option<Vec<(usize, bool, bool)>> {
        let ([source], true) = (self.sources.as_slice(), self.conditions.is_empty() && self.locks.is_empty()) else {
            return None;
        };
        let order: Vec<_> = match &self.grouping {
            None if self.distinct => self.order.iter().map(column_order).collect::<Option<_>>()?,
            Some(grouping) if !self.distinct => grouping::order_of_groups(grouping, &self.order)?,
            _ => return None,
        };
        let count = |expr: &Expr| expr.constant()?.as_i64();
        let wanted = count(self.limit.as_ref()?)?.saturating_add(self.offset.as_ref().map_or(Some(0), count)?);
        let access = source.access.columns.get(order.first()?.0.checked_sub(source.base)?)?;
        let known = source.statistics.as_ref()?.column(access.id)?;
        (wanted as f64 * FEW_PART < known.distinct).then_some(order)
    }

    /// Places of the joined row that are read above the loops.
    fn output(&self) -> Vec<usize> {
        let mut out = Vec::new();
        match &self.grouping {
            None => {
                self.items.iter().for_each(|item| tree::columns(&item.expr, &mut out));
                self.order.iter().for_each(|key| tree::columns(&key.expr, &mut out));
            }
            Some(grouping) => {
                grouping.keys.iter().for_each(|(key, _)| tree::columns(key, &mut out));
                let arguments = grouping.aggregates.iter().filter_map(|aggregate| aggregate.argument.as_ref());
                arguments.for_each(|argument| tree::columns(argument, &mut out));
            }
        }
        if !self.locks.is_empty() {
            self.conditions.iter().for_each(|condition| tree::columns(condition, &mut out));
        }
        out
    }

    /// How rows come in each of several orders, if an index gives them in all of these; else none.
    fn ends(&self, orders: &[(usize, bool, bool)]) -> Planned<Vec<Arc<[Level]>>> {
        let ([_, _, ..], [_]) = (orders, self.sources.as_slice()) else { return Ok(Vec::new()) };
        let mut ends = Vec::with_capacity(orders.len());
        for key in orders {
            let (conditions, output) = (self.conditions.clone(), self.output());
            let goal = Goal {
                sources: &self.sources,
                conditions,
                order: Some(vec![*key]),
                limited: true,
                wide: false,
                output,
            };
            let mut loops = loops::plan(goal)?;
            if !loops.ordered {
                return Ok(Vec::new());
            }
            loops.levels.iter_mut().for_each(Level::read_entries);
            ends.push(loops.levels.into());
        }
        Ok(ends)
    }

    /// Chooses how the tables are read, and what is left to do above.
    fn assemble(mut self) -> Planned<Select> {
        let streams = self.streams();
        let extremes = self.grouping.as_ref().and_then(grouping::extremes).unwrap_or_default();
        let extreme = if let [only] = extremes.as_slice() { Some(*only) } else { None };
        let ends = self.ends(&extremes)?;
        let recheck = if self.locks.is_empty() { None } else { conjunction(self.conditions.clone()) };
        let output = self.output();
        let met = self.order_of_few();
        let conditions = std::mem::take(&mut self.conditions);
        let mut loops = if self.sources.is_empty() {
            Loops::none(conjunction(conditions))
        } else {
            let order = match extreme {
                Some(key) => Some(vec![key]),
                None if streams => self.order.iter().map(column_order).collect(),
                None => met.clone(),
            };
            let limited = self.limit.is_some() && streams || extreme.is_some() || met.is_some();
            loops::plan(Goal { sources: &self.sources, conditions, order, limited, wide: false, output })?
        };
        if let Some(grouping) = &mut self.grouping {
            grouping.first = extreme.is_some() && loops.ordered && loops.levels.len() == 1;
            grouping.ends = ends;
        }
        if self.distinct {
            self.order = distinct_order(self.order, &self.items)?;
        }
        if loops.ordered && (streams || met.is_some()) {
            self.order.clear();
            if let Some(grouping) = &mut self.grouping {
                grouping.in_turn = true;
            }
        }
        // A lock before the read would take more rows than a sort with a limit lets through.
        if !self.order.is_empty() && self.limit.is_some() {
            loops.levels.iter_mut().for_each(|level| level.lock = None);
        }
        for (level, source) in loops.levels.iter_mut().zip(&loops.sources) {
            let mut waits =
                self.locks.iter().filter(|(locked, ..)| locked == source).map(|(.., wait)| *wait).peekable();
            level.skips = waits.peek().is_some() && waits.all(|wait| wait == LockWait::Skip);
            if level.skips && !level.path.ways.is_empty() {
                // What leads to rows that are passed by would count as read.
                level.path = Path::whole();
            }
        }
        let locks = row_locks(&self.locks, &loops);
        if locks.is_empty() {
            loops.levels.iter_mut().for_each(Level::read_entries);
        }
        let types = || self.items.iter().map(|item| item.field.ty.clone()).collect();
        if self.distinct {
            self.items.iter().try_for_each(|item| item.field.ty.check_equality())?;
        }
        let distinct = self.distinct.then(types);
        let movable = loops.levels.len() <= 1 && locks.is_empty() && streams;
        Ok(Select {
            levels: loops.levels.into(),
            width: self.width,
            constant: loops.constant,
            recheck,
            locks,
            distinct,
            project: project(self.items, movable),
            grouping: self.grouping,
            order: self.order,
            limit: self.limit,
            offset: self.offset,
        })
    }
}

fn with_type(expr: Expr) -> (Expr, SqlType) {
    let ty = expr.ty();
    (expr, ty)
}

/// A sort key as the order of a column, if it is one.
fn column_order(key: &SortKey) -> Option<(usize, bool, bool)> {
    match key.expr {
        Expr::Column { index, .. } => Some((index, key.descending, key.nulls_first)),
        _ => None,
    }
}

fn project(items: Vec<Item>, movable: bool) -> Project {
    let places: Option<Vec<usize>> = items
        .iter()
        .map(|item| match item.expr {
            Expr::Column { index, .. } => Some(index),
            _ => None,
        })
        .collect();
    match places {
        Some(places) => {
            let mut sorted = places.clone();
            sorted.sort_unstable();
            let once = movable && sorted.windows(2).all(|pair| pair[0] != pair[1]);
            Project::Columns { places, once }
        }
        None => Project::Exprs(items.into_iter().map(|item| item.expr).collect()),
    }
}

/// Gives items the names that they have before subqueries are taken out of them.
pub(crate) fn keep_names(list: &mut [SelectItem]) {
    let names = names(list);
    give_names(list, names);
}

/// The names of items that have none but by what they are.
fn names(list: &[SelectItem]) -> Vec<Option<String>> {
    let name = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) if spread(expr).is_none() => {
            Some(output_name(expr)).filter(|name| name != "?column?")
        }
        _ => None,
    };
    list.iter().map(name).collect()
}

fn give_names(list: &mut [SelectItem], names: Vec<Option<String>>) {
    for (item, name) in list.iter_mut().zip(names) {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some(name) = name
        {
            let expr = std::mem::replace(expr, ast::Expr::Value(ast::Value::Null.with_empty_span()));
            *item = SelectItem::ExprWithAlias { expr, alias: ast::Ident::with_quote('"', name) };
        }
    }
}

/// A list of RETURNING.
///
/// # Errors
/// 42601 if it comes to nothing, as `*` of a table without columns does.
pub(crate) fn returned(list: &[SelectItem], sources: &[Source], analysis: &mut Analysis<'_>) -> Planned<Vec<Item>> {
    list.iter().try_for_each(|item| refuse_sets(item, "RETURNING"))?;
    let list = returning::with_rows(list, sources, analysis);
    let mut items = select_items(&list, sources, analysis)?;
    for item in &mut items {
        // Reg-types leave as names: what stays within the statement is told nobody.
        if !analysis.context.inside && matches!(item.field.ty, SqlType::Reg(_)) {
            let null = Expr::Literal(crate::types::Value::Null, SqlType::Text);
            let expr = Box::new(std::mem::replace(&mut item.expr, null));
            let from = item.field.ty.clone();
            item.expr = Expr::Cast { expr, from, to: SqlType::Text, explicit: true };
        }
    }
    if items.is_empty() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "RETURNING must have at least one column").into());
    }
    Ok(items)
}

/// The items of RETURNING: wildcards are expanded over the sources.
fn select_items(list: &[SelectItem], sources: &[Source], analysis: &mut Analysis<'_>) -> Planned<Vec<Item>> {
    let mut out = Vec::new();
    for item in list {
        match item {
            SelectItem::UnnamedExpr(expr) if spread(expr).is_some() => {
                return Err(Refusal::Engine("the fields of a value"));
            }
            SelectItem::UnnamedExpr(expr) => {
                let bound = analysis.bind(expr)?;
                let bound = analysis.output(bound)?;
                out.push(Item { field: field(output_name(expr), &bound, sources), expr: bound });
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let bound = analysis.bind(expr)?;
                let bound = analysis.output(bound)?;
                out.push(Item { field: field(fold(alias), &bound, sources), expr: bound });
            }
            SelectItem::Wildcard(options) if is_plain(options) => {
                if sources.is_empty() {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        "SELECT * with no tables specified is not valid",
                    )
                    .into());
                }
                sources.iter().for_each(|source| expand(source, sources, &mut out));
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                if is_plain(options) =>
            {
                let source = named(name, sources, analysis)?;
                expand(source, sources, &mut out);
            }
            _ => return Err(Refusal::Engine("this form of the select list")),
        }
    }
    fits_a_list(out.len())?;
    Ok(out)
}

/// Most columns of a select list or of RETURNING, as in PostgreSQL; the protocol counts them in 16 bits.
const LIST_COLUMNS_MAX: usize = 1664;

/// Whether a select list may have so many columns.
///
/// # Errors
/// 54011
pub(crate) fn fits_a_list(columns: usize) -> Result<(), SqlError> {
    if columns <= LIST_COLUMNS_MAX {
        return Ok(());
    }
    let message = format!("target lists can have at most {LIST_COLUMNS_MAX} entries");
    Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message))
}

fn is_plain(options: &ast::WildcardAdditionalOptions) -> bool {
    options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
}

fn named<'a>(name: &ObjectName, sources: &'a [Source], analysis: &Analysis<'_>) -> Planned<&'a Source> {
    let (schema, table) = shape::table_name(name)?;
    let found = sources.iter().find(|source| source.alias == table);
    if let (Some(_), Some(schema)) = (found, schema)
        && !analysis.has_relation(&schema, &table)
    {
        return Err(hidden_relation(&table).into());
    }
    found.ok_or_else(|| {
        let meant = sources.iter().find(|source| source.access.table.name == table);
        missing_relation(&table, meant.map(|source| source.alias.as_str())).into()
    })
}

fn expand(source: &Source, sources: &[Source], out: &mut Vec<Item>) {
    for (slot, column) in source.access.table.columns.iter().enumerate() {
        let expr = Expr::Column { index: source.base + slot, ty: column.ty.clone() };
        out.push(Item { field: field(column.name.clone(), &expr, sources), expr });
    }
}

/// A result column's description: a plain column says where it comes from.
fn field(name: String, expr: &Expr, sources: &[Source]) -> Field {
    let mut out = Field { name, ty: expr.ty(), table_oid: 0, column: 0 };
    if let Expr::Column { index, .. } = expr
        && let Some(source) = sources.iter().find(|s| (s.base..s.base + s.access.columns.len()).contains(index))
    {
        out.table_oid = source.access.table.id;
        out.column = source.access.columns[index - source.base].id;
    }
    out
}

/// DISTINCT sorts what was projected: every key must be an output column.
fn distinct_order(order: Vec<SortKey>, items: &[Item]) -> Planned<Vec<SortKey>> {
    order
        .into_iter()
        .map(|key| {
            let place = items.iter().position(|item| item.expr == key.expr).ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                )
            })?;
            Ok(SortKey { expr: Expr::Column { index: place, ty: key.ty.clone() }, ..key })
        })
        .collect()
}

fn refuse_locks(shape: &SelectShape<'_>) -> Result<(), SqlError> {
    if shape.locks.is_empty() {
        return Ok(());
    }
    let clause = match (shape.distinct, shape.group.is_empty()) {
        (true, _) => "DISTINCT clause",
        (false, false) => "GROUP BY clause",
        (false, true) => "aggregate functions",
    };
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("FOR UPDATE is not allowed with {clause}")))
}

/// The mode of a locking clause, and the tables that it names.
pub(super) fn lock_mode(clause: &LockClause) -> (LockMode, Option<ObjectName>) {
    let (keys, of) = match &clause.of {
        Some(name) => key_lock(name),
        None => (false, None),
    };
    let mode = match (&clause.lock_type, keys) {
        (LockType::Update, false) => LockMode::Update,
        (LockType::Update, true) => LockMode::NoKeyUpdate,
        (LockType::Share, false) => LockMode::Share,
        (LockType::Share, true) => LockMode::KeyShare,
    };
    (mode, of)
}

/// What is done where another transaction holds a lock.
pub(super) fn lock_wait(clause: &LockClause) -> LockWait {
    match clause.nonblock {
        None => LockWait::Wait,
        Some(NonBlock::Nowait) => LockWait::NoWait,
        Some(NonBlock::SkipLocked) => LockWait::Skip,
    }
}

/// Notes FOR UPDATE and its kind on the tables that it means.
fn lock_sources(clauses: &[LockClause], sources: &mut [Source]) -> Planned<Vec<(usize, LockMode, LockWait)>> {
    let mut out = Vec::new();
    for clause in clauses {
        let wait = lock_wait(clause);
        let (mode, of) = lock_mode(clause);
        let only = of.as_ref().map(shape::table_name).transpose()?;
        if let Some((_, name)) = &only
            && !sources.iter().any(|source| source.alias == *name)
        {
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{name}\" in FOR UPDATE clause not found in FROM clause"),
            )
            .into());
        }
        for (i, source) in sources.iter_mut().enumerate() {
            if only.as_ref().is_some_and(|(_, name)| source.alias != *name) {
                continue;
            }
            if source.outer {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "FOR UPDATE cannot be applied to the nullable side of an outer join",
                )
                .into());
            }
            // Named twice, the stronger one counts.
            let mode = source.lock.map_or(mode, |(other, _)| mode.max(other));
            source.lock = Some((mode, wait));
            out.push((i, mode, wait));
        }
    }
    Ok(out)
}

/// Locks of tables whose rows are not locked as they are found.
fn row_locks(locked: &[(usize, LockMode, LockWait)], loops: &Loops) -> Vec<RowLock> {
    let level_of = |source: usize| loops.sources.iter().position(|&s| s == source);
    locked
        .iter()
        .filter_map(|&(source, mode, wait)| Some(RowLock { level: level_of(source)?, mode, wait }))
        .filter(|lock| loops.levels[lock.level].lock.is_none())
        .collect()
}
