//! Plans: what a statement's text becomes, once, for many executions.

pub mod access;
mod again;
pub mod analysis;
pub mod assignment;
mod batch;
pub mod direct;
pub mod explain;
pub mod grouping;
pub mod implication;
pub mod implied;
mod inner;
pub mod insert;
pub mod located;
pub mod locked;
pub mod loops;
mod merged;
pub mod modify;
pub(crate) mod negation;
pub mod parts;
pub mod refusal;
mod returned;
mod returning;
mod row_locks;
pub mod scope;
pub mod select;
pub(crate) mod setless;
pub mod shape;
pub mod share;
pub mod subquery;
pub mod tree;
mod tuned;
pub mod watch;
mod ways;

pub use batch::{BATCH_BYTES, Batch};
pub use tuned::tuned;

use crate::catalog::{Relation, Table};
use crate::context::{CatalogView, EvalSettings, StatementContext};
use crate::exec::load::{Duplicate, Load};
use crate::exec::target::Target;
use crate::explain::Operator;
use crate::output::Field;
use crate::pg_catalog::names;
use crate::statistics::Known;
use crate::syntax::{Inference, Overriding};
use crate::types::{ObjectNames, Oid, RegKind, Row, SqlType, Value};
use crate::work::Pace;
use crate::{Kv, SqlError, SqlState};
use analysis::Analysis;
use refusal::{Planned, Refusal};
use sqlparser::ast::{Query, Statement};
use std::sync::Arc;

/// What planning depends on. A plan may be cached under (text, parameter hints, settings that planning reads), as long as what it looked up is the same.
#[derive(Clone)]
pub struct PlanContext {
    /// The catalog in the transaction that plans.
    pub catalog: Arc<dyn CatalogView>,
    /// The database below: it knows the tables of `timeball_internal`.
    pub kv: Arc<dyn Kv>,
    /// What is known of tables' contents.
    pub statistics: Arc<Known>,
    /// `search_path`, user, database: names resolve along them.
    pub settings: Arc<EvalSettings>,
    /// Types that the client declared for `$1`... (`None` or missing: to be inferred).
    pub parameter_hints: Vec<Option<SqlType>>,
    /// Of planning: it ends with its statement.
    pub pace: Pace,
    /// INSERT said OVERRIDING SYSTEM VALUE (or USER VALUE), which the syntax tree cannot say.
    pub overriding: Option<Overriding>,
    /// ON CONFLICT names more than columns, which the syntax tree cannot say.
    pub inference: Option<Arc<Inference>>,
    /// The query locates rows to write: its first table has a column for their keys (see [`located`]).
    pub locates: bool,
    /// What the query gives for locks of its rows.
    pub keyed: Arc<Keyed>,
    /// What is planned gives its rows to another part of the statement, not to a client: reg-types stay numbers.
    pub inside: bool,
    /// Parts of the statement that the query may read by their names.
    pub given: Arc<[parts::Given]>,
    /// Values of the statement's parameters, if it is planned for these alone.
    pub values: Option<Arc<[Value]>>,
}

/// What a query gives behind its own columns, so that its rows can be locked (see `row_locks`).
#[derive(Clone, Debug, Default)]
pub struct Keyed {
    /// Names of tables in FROM that have a column for the keys of their rows.
    pub tables: Vec<String>,
    /// Items of the list that the statement does not have.
    pub behind: usize,
    /// The rows are asked for one by one, up to a LIMIT that the query does not say.
    pub is_limited: bool,
}

impl PlanContext {
    /// For planning inside a running statement.
    pub(crate) fn of_statement(context: &StatementContext) -> Self {
        PlanContext {
            catalog: context.catalog.clone(),
            kv: context.kv.clone(),
            statistics: context.backend.sessions.statistics.clone(),
            settings: context.settings.clone(),
            parameter_hints: Vec::new(),
            pace: Pace::default(),
            overriding: None,
            inference: None,
            locates: false,
            keyed: Arc::default(),
            inside: false,
            given: Arc::default(),
            values: None,
        }
    }
}

/// The names that literals of a statement see while it is planned.
impl ObjectNames for PlanContext {
    fn resolve(&self, kind: RegKind, name: &str) -> Result<Oid, SqlError> {
        names::Known { catalog: self.catalog.as_ref(), settings: &self.settings }.resolve(kind, name)
    }
    fn print(&self, kind: RegKind, oid: Oid) -> Result<String, SqlError> {
        names::Known { catalog: self.catalog.as_ref(), settings: &self.settings }.print(kind, oid)
    }
}

/// Inserts rows that COPY has decoded.
pub trait RowInserter: Send {
    /// Inserts rows of the columns that the inserter was made for; defaults fill the rest, constraints are checked. Gives
    /// the number of rows inserted. It writes through the transaction of `context`, which may differ from call to call.
    ///
    /// # Errors
    /// As for INSERT.
    fn insert(&mut self, context: &Arc<StatementContext>, rows: Vec<Row>) -> Result<u64, SqlError>;

    /// As [`RowInserter::insert`], into a fresh table by a load of all its indexes.
    ///
    /// # Errors
    /// As for INSERT.
    fn load(&mut self, context: &Arc<StatementContext>, rows: Vec<Row>, load: &mut dyn Load) -> Result<u64, SqlError>;

    /// The error of a unique key that shows only at the end of a load to be there twice.
    fn twice(&self, context: &Arc<StatementContext>, found: &Duplicate<'_>) -> SqlError;
}

/// An inserter for a table and some of its columns (ids, in the order of the values).
///
/// # Errors
/// As for planning an INSERT.
pub fn row_inserter(
    table: &Arc<Relation>,
    columns: &[u16],
    context: &PlanContext,
) -> Result<Box<dyn RowInserter>, SqlError> {
    Ok(Box::new(insert::bulk(table, columns, context)?))
}

/// Plans one SELECT, VALUES, INSERT, UPDATE, DELETE (or a set operation or WITH over them): directly where the statement is
/// short work for the key-value layer, through the query engine otherwise. `text` is the statement as the client sent it.
///
/// # Errors
/// PostgreSQL's binding errors (42P01, 42703, 42804, ...); 0A000 for what neither path can do.
pub fn prepare(statement: &Statement, text: &str, context: &PlanContext) -> Result<Arc<dyn Plan>, SqlError> {
    match or_without_locks(as_it_is(statement, text, context), statement, || text.into(), context) {
        // A part of a statement stays one: what is around it would not be known within parts of its own.
        Err(error) if error.state == SqlState::FEATURE_NOT_SUPPORTED && context.given.is_empty() && !context.inside => {
            parts::returning(statement, text, context)?.ok_or(error)
        }
        planned => planned,
    }
}

/// Plans a statement with its locks where they stand.
fn as_it_is(statement: &Statement, text: &str, context: &PlanContext) -> Result<Arc<dyn Plan>, SqlError> {
    if let Some((query, with)) = parts::with_of(statement) {
        return parts::prepare(query, with, text, context);
    }
    let planned = settled(direct::plan(statement, context), direct::may_run_in_engine(statement));
    let again = |plan| again::or_again(plan, || statement.clone(), context, crate::engine::prepare);
    planned.map(|planned| planned.map(again)).unwrap_or_else(|| crate::engine::prepare(statement, text, context))
}

/// Plans a query inside of a statement by itself. It is taken apart meanwhile, and afterwards what it was.
///
/// # Errors
/// As for [`prepare`].
fn prepare_inside(query: &mut Query, context: &PlanContext) -> Result<Arc<dyn Plan>, SqlError> {
    // Where there are parts it is copied; the engine, or a refusal, is next.
    if parts::is_modifying(query) || query.with.is_some() {
        let statement = Statement::Query(Box::new(query.clone()));
        return prepare(&statement, &statement.to_string(), context);
    }
    let direct = select::plan_inside(query, Analysis::inside(context)).map(|plan| Arc::new(plan) as Arc<dyn Plan>);
    let direct = settled(direct, true);
    if let Some(Ok(plan)) = direct {
        let statement = || Statement::Query(Box::new(query.clone()));
        return Ok(again::or_again(plan, statement, context, crate::engine::prepare));
    }
    let statement = Statement::Query(Box::new(std::mem::replace(query, inner::nothing())));
    let planned = direct.unwrap_or_else(|| crate::engine::prepare(&statement, &statement.to_string(), context));
    let planned = or_without_locks(planned, &statement, || statement.to_string(), context);
    if let Statement::Query(inside) = statement {
        *query = *inside;
    }
    planned
}

/// What is not supported may be once the locks are in a part of their own.
fn or_without_locks(
    planned: Result<Arc<dyn Plan>, SqlError>,
    statement: &Statement,
    text: impl FnOnce() -> String,
    context: &PlanContext,
) -> Result<Arc<dyn Plan>, SqlError> {
    match planned {
        Err(error) if error.state == SqlState::FEATURE_NOT_SUPPORTED => {
            // Once: what is refused again would be asked again.
            let Some(tables) = locked::through(statement, context)? else {
                let text = text();
                return with_lifted_locks(found(error, statement, &text, context), statement, || text.clone(), context);
            };
            let text = tables.to_string();
            let planned = as_it_is(&tables, &text, context);
            let planned = planned.or_else(|error| match error.state {
                SqlState::FEATURE_NOT_SUPPORTED => found(error, &tables, &text, context),
                _ => Err(error),
            });
            with_lifted_locks(planned, &tables, || text.clone(), context)
        }
        planned => planned,
    }
}

/// What a statement comes to whose rows are found first, and locked then; the error if it does not.
fn found(error: SqlError, statement: &Statement, text: &str, context: &PlanContext) -> Result<Arc<dyn Plan>, SqlError> {
    row_locks::plan(statement, text, context).map_or_else(Err, |plan| plan.ok_or(error))
}

fn with_lifted_locks(
    planned: Result<Arc<dyn Plan>, SqlError>,
    statement: &Statement,
    text: impl FnOnce() -> String,
    context: &PlanContext,
) -> Result<Arc<dyn Plan>, SqlError> {
    match planned {
        Err(error) if error.state == SqlState::FEATURE_NOT_SUPPORTED => {
            let lifted = parts::lift_locks(statement, &context.pace)?;
            let Some((query, with)) = lifted.as_ref().and_then(parts::with_of) else { return Err(error) };
            parts::prepare(query, with, &text(), context).map_err(|_| error)
        }
        planned => planned,
    }
}

/// What the direct planner's answer comes to; `None` if the engine is to plan the statement.
fn settled(planned: Planned<Arc<dyn Plan>>, may_run_in_engine: bool) -> Option<Result<Arc<dyn Plan>, SqlError>> {
    match planned {
        // Reg-types leave as names, which the engine knows to find.
        Ok(plan) if may_run_in_engine && plan.fields().iter().any(|f| f.ty.names().is_some()) => None,
        Ok(plan) => Some(Ok(plan)),
        Err(refusal) if refusal.is_for_engine() && may_run_in_engine => None,
        // The name of a table may stand for its whole row, which only the engine knows.
        Err(Refusal::Wrong(error)) if error.state == SqlState::UNDEFINED_COLUMN && may_run_in_engine => None,
        Err(refusal) => Some(Err(refusal.into_error())),
    }
}

/// A planned statement: immutable, shared between sessions, valid as long as its lookups give the same (`catalog::Uses`).
pub trait Plan: Send + Sync {
    /// Types of `$1`...
    fn parameters(&self) -> &[SqlType];
    /// Shape of the result. A query may have rows of no columns: see [`Plan::gives_rows`].
    fn fields(&self) -> &[Field];
    /// Whether there is a result at all.
    fn gives_rows(&self) -> bool {
        !self.fields().is_empty()
    }
    /// Shape of the result; `None` if the statement returns no rows.
    fn shape(&self) -> Option<&[Field]> {
        self.gives_rows().then(|| self.fields())
    }
    /// Runs it. What must happen before the first row leaves (all of a DML statement) has happened when this returns.
    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError>;
    /// What it is made of.
    fn explain(&self) -> Operator;
    /// Whether it only reads.
    fn is_read_only(&self) -> bool;
    /// Whether it fails for want of memory before it has given or changed anything, and does nothing that must not be done twice.
    fn may_run_again(&self) -> bool {
        false
    }
    /// Whether the direct path runs all of it, and the engine nothing.
    fn is_direct(&self) -> bool {
        true
    }
    /// Whether it is known to read nothing that a transaction can change: `SELECT pg_try_advisory_xact_lock(7)`.
    fn reads_nothing(&self) -> bool {
        false
    }
    /// The plan by which it runs with the values of an execution, if that is one of several.
    ///
    /// # Errors
    /// 57014
    fn for_values(&self, _: &Arc<StatementContext>) -> Result<Option<Arc<dyn Plan>>, SqlError> {
        Ok(None)
    }
    /// Tables for which values of parameters may call for another plan.
    fn watches(&self) -> Vec<watch::Watch> {
        Vec::new()
    }
    /// An UPDATE, a DELETE or an INSERT of a query's rows that may be run by writing its table anew: no other table's rows have to do with it.
    fn rewriting(&self) -> Option<&dyn Rewriting> {
        None
    }
    /// An INSERT of a query's rows which may go into its table by a load, if that is fresh: it reads nothing of the table, keeps none of the rows, and refers to none of another.
    fn filling(&self) -> Option<&dyn Filling> {
        None
    }
}

/// See [`Plan::filling`].
pub trait Filling {
    /// What it fills.
    fn table(&self) -> &Table;
    /// Runs it: its rows go to a load of all indexes of the table. Gives how many they are.
    ///
    /// # Errors
    /// As for INSERT.
    fn load(&self, context: &Arc<StatementContext>, load: &mut dyn Load) -> Result<u64, SqlError>;
    /// The error of a unique key that shows only at the end of a load to be there twice.
    fn twice(&self, context: &Arc<StatementContext>, found: &Duplicate<'_>) -> SqlError;
}

/// See [`Plan::rewriting`].
pub trait Rewriting {
    /// What it writes.
    fn table(&self) -> &Table;
    /// Whether less is there afterwards, however many rows it means.
    fn only_deletes(&self) -> bool {
        false
    }
    /// Runs it: all rows, as they are afterwards, go to a load of all indexes of `new`, which is the table with other index ids. Gives its tag.
    ///
    /// # Errors
    /// As for the statement.
    fn rewrite(
        &self,
        context: &Arc<StatementContext>,
        new: &Arc<Target>,
        load: &mut dyn Load,
    ) -> Result<String, SqlError>;
}

/// What an execution gives.
pub enum Execution {
    /// Rows to pull; the tag is `SELECT n` with the number of rows pulled.
    Rows(Box<dyn RowSource>),
    /// Done: a tag such as `UPDATE 3`, with the rows of RETURNING if there are any.
    Done {
        /// The command tag.
        tag: String,
        /// Rows of RETURNING.
        rows: Vec<Row>,
    },
}

/// Rows that are pulled.
pub trait RowSource: Send {
    /// Up to `max` further rows, fewer where they are large (see [`Batch`]), at least one unless at the end; empty at the end.
    fn next(&mut self, max: usize) -> Result<Vec<Row>, SqlError>;
}
