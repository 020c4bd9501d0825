//! WITH whose queries write or lock rows: each becomes a part that is planned and run by itself. See [`crate::exec::parts`].
//!
//! A part runs before what names it; one that writes and that nobody names runs after the main query, as in PostgreSQL.

use super::explain;
use super::subquery::parameters_in;
use super::{Execution, Plan, PlanContext};
use crate::context::StatementContext;
use crate::exec::deferred::Deferred;
use crate::exec::parts::Parts;
use crate::exec::sort::{Reserved, row_bytes};
use crate::explain::Operator;
use crate::identifier::{fold, quote_identifier};
use crate::output::Field;
use crate::syntax::element;
use crate::types::{Row, SqlType};
use crate::work::Pace;
use crate::{Attempt, SqlError, SqlState};
use sqlparser::ast::{
    self, Cte, Expr, Ident, Query, SetExpr, Statement, TableAlias, VisitMut, VisitorMut, With, visit_expressions,
    visit_relations,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows pulled at a time from a part.
const ROWS: usize = 1024;

/// A part by its name, for the queries that read it.
#[derive(Clone, Debug)]
pub struct Given {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Field>,
    /// Its number.
    pub part: usize,
}

fn writes(query: &Query) -> bool {
    matches!(query.body.as_ref(), SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_))
}

/// Whether a query writes, or has a WITH that does.
pub fn is_modifying(query: &Query) -> bool {
    writes(query) || query.with.iter().flat_map(|with| &with.cte_tables).any(|cte| writes(&cte.query))
}

/// The WITH of a statement, if it has parts.
pub(crate) fn with_of(statement: &Statement) -> Option<(&Query, &With)> {
    let Statement::Query(query) = statement else { return None };
    let with = query.with.as_ref()?;
    let acts = with.cte_tables.iter().any(|cte| writes(&cte.query) || !cte.query.locks.is_empty());
    acts.then_some((query, with))
}

/// A statement with parts.
struct PartsPlan {
    parameters: Vec<SqlType>,
    parts: Vec<Part>,
    /// Numbers of those that run before the main query.
    before: Vec<usize>,
    /// Of those that run after it.
    after: Vec<usize>,
    main: Arc<dyn Plan>,
    writes: bool,
    /// The part whose tag is that of the statement, if that is not the main query's.
    told: Option<usize>,
}

struct Part {
    name: String,
    plan: Arc<dyn Plan>,
}

/// Plans a statement that has parts.
///
/// # Errors
/// Those of its parts.
pub fn prepare(query: &Query, with: &With, text: &str, context: &PlanContext) -> Result<Arc<dyn Plan>, SqlError> {
    Ok(Arc::new(planned(query, with, text, context)?))
}

/// Plans a statement whose RETURNING asks more than one row can say, as two parts: one that writes, and gives all columns, and a query over
/// what it gives. `None` if it is none, or returns what is not of the table that it writes.
///
/// # Errors
/// What RETURNING may not hold; what says nothing of the statement ([`SqlError::is_of_the_moment`]).
pub(crate) fn returning(
    statement: &Statement,
    text: &str,
    context: &PlanContext,
) -> Result<Option<Arc<dyn Plan>>, SqlError> {
    let Some(mut query) = super::returned::over_rows(statement, &context.pace)? else { return Ok(None) };
    let Some(with) = query.with.take() else { return Ok(None) };
    let plan = planned(&query, &with, text, context).attempted()?;
    let told = Some(with.cte_tables.len() - 1);
    Ok(plan.map(|plan| Arc::new(PartsPlan { told, ..plan }) as Arc<dyn Plan>))
}

fn planned(query: &Query, with: &With, text: &str, context: &PlanContext) -> Result<PartsPlan, SqlError> {
    let names: Vec<String> = with.cte_tables.iter().map(|cte| fold(&cte.alias.name)).collect();
    if let Some(twice) = (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
        let message = format!("WITH query name \"{}\" specified more than once", names[twice]);
        return Err(SqlError::new(SqlState(*b"42712"), message));
    }
    let mut main = query.clone();
    main.with = None;
    let order = Order::new(&with.cte_tables, &names, &main);
    let mut planner = Planner::new(query, context)?;
    let mut parts = Vec::with_capacity(names.len());
    for (number, (cte, name)) in with.cte_tables.iter().zip(&names).enumerate() {
        let plan = planner.part(cte, name, with.recursive, text)?;
        let columns = renamed(plan.fields(), cte, name)?;
        if writes(&cte.query) && columns.is_empty() && order.is_named(number) {
            let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        planner.given.push(Given { name: name.clone(), columns, part: number });
        parts.push(Part { name: name.clone(), plan });
    }
    let main_writes = writes(&main);
    let main = planner.plan(&Statement::Query(Box::new(main)), text, false)?;
    let parameters = planner.parameters()?;
    let writes = main_writes || with.cte_tables.iter().any(|cte| writes(&cte.query));
    Ok(PartsPlan { parameters, parts, before: order.before, after: order.after, main, writes, told: None })
}

/// The columns of a part under the names of its alias.
fn renamed(fields: &[Field], cte: &Cte, name: &str) -> Result<Vec<Field>, SqlError> {
    let mut fields = fields.to_vec();
    if cte.alias.columns.len() > fields.len() {
        let (have, given) = (fields.len(), cte.alias.columns.len());
        let message = format!("WITH query \"{name}\" has {have} columns available but {given} columns specified");
        return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
    }
    for (field, column) in fields.iter_mut().zip(&cte.alias.columns) {
        field.name = fold(&column.name);
    }
    Ok(fields)
}

/// Which parts run, and when.
struct Order {
    before: Vec<usize>,
    after: Vec<usize>,
    named: BTreeSet<usize>,
}

impl Order {
    fn new(ctes: &[Cte], names: &[String], main: &Query) -> Order {
        let named_by: Vec<Vec<usize>> =
            ctes.iter().enumerate().map(|(i, cte)| named(&cte.query, &names[..i])).collect();
        let mut order = Order { before: Vec::new(), after: Vec::new(), named: BTreeSet::new() };
        let mut seen = BTreeSet::new();
        for part in named(main, names) {
            order.named.insert(part);
            visit(part, &named_by, &mut seen, &mut order.before);
        }
        for part in (0..ctes.len()).rev().filter(|&part| writes(&ctes[part].query)) {
            visit(part, &named_by, &mut seen, &mut order.after);
        }
        order.named.extend(seen.iter().flat_map(|&part| named_by[part].iter().copied()));
        order
    }

    fn is_named(&self, part: usize) -> bool {
        self.named.contains(&part)
    }
}

/// A part and, before it, those that it names.
fn visit(part: usize, named_by: &[Vec<usize>], seen: &mut BTreeSet<usize>, out: &mut Vec<usize>) {
    if !seen.insert(part) {
        return;
    }
    // A part names only those before it.
    named_by[part].iter().for_each(|&other| visit(other, named_by, seen, out));
    out.push(part);
}

/// Which of these names a query has in a FROM.
fn named(query: &Query, names: &[String]) -> Vec<usize> {
    let mut out = Vec::new();
    let _ = visit_relations(query, |relation| {
        if let [part] = relation.0.as_slice()
            && let Some(name) = part.as_ident().map(fold)
            && let Some(place) = names.iter().position(|known| *known == name)
            && !out.contains(&place)
        {
            out.push(place);
        }
        ControlFlow::<()>::Continue(())
    });
    out
}

/// Plans parts one after the other; what one finds of the parameters the next ones know.
struct Planner<'a> {
    context: &'a PlanContext,
    /// Types of parameters.
    types: Vec<Option<SqlType>>,
    given: Vec<Given>,
}

impl<'a> Planner<'a> {
    fn new(query: &Query, context: &'a PlanContext) -> Result<Self, SqlError> {
        let inserts = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| cte.query.as_ref()).chain([query]);
        let inserts = inserts.filter(|query| matches!(query.body.as_ref(), SetExpr::Insert(_))).count();
        if inserts > 1 && (context.overriding.is_some() || context.inference.is_some()) {
            let what = "OVERRIDING, or ON CONFLICT of an expression or a partial index, beside another INSERT in one statement";
            return Err(SqlError::unsupported(what).hint("Write two statements, in one transaction."));
        }
        let mut types = context.parameter_hints.clone();
        types.resize(types.len().max(parameters_in(query)), None);
        Ok(Planner { context, types, given: Vec::new() })
    }

    fn part(&mut self, cte: &Cte, name: &str, recursive: bool, text: &str) -> Result<Arc<dyn Plan>, SqlError> {
        if cte.query.with.iter().flat_map(|with| &with.cte_tables).any(|inner| writes(&inner.query)) {
            let message = "WITH clause containing a data-modifying statement must be at the top level";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        if !recursive || writes(&cte.query) || named(&cte.query, &[name.to_string()]).is_empty() {
            return self.plan(&Statement::Query(cte.query.clone()), text, true);
        }
        let mut query = whole(name, &self.context.pace)?;
        let with_token = ast::helpers::attached_token::AttachedToken::empty();
        query.with = Some(With { with_token, recursive: true, cte_tables: vec![cte.clone()] });
        self.plan(&Statement::Query(Box::new(query)), text, true)
    }

    /// Plans a statement over the parts so far; `inside`: it is a part too.
    fn plan(&mut self, statement: &Statement, text: &str, inside: bool) -> Result<Arc<dyn Plan>, SqlError> {
        let used = used_parameters(statement);
        let mut context = self.context.clone();
        context.inside |= inside;
        // A parameter of other parts is of no type that this one could tell.
        let hint = |(place, ty): (usize, &Option<SqlType>)| {
            ty.clone().or_else(|| (!used.contains(&place)).then_some(SqlType::Text))
        };
        context.parameter_hints = self.types.iter().enumerate().map(hint).collect();
        context.given = self.given.clone().into();
        let plan = super::prepare(statement, text, &context)?;
        for (place, ty) in plan.parameters().iter().enumerate() {
            if used.contains(&place) && self.types[place].is_none() && *ty != SqlType::Unknown {
                self.types[place] = Some(ty.clone());
            }
        }
        Ok(plan)
    }

    fn parameters(&self) -> Result<Vec<SqlType>, SqlError> {
        let undetermined = |number: usize| {
            let message = format!("could not determine data type of parameter ${number}");
            SqlError::new(SqlState::INDETERMINATE_DATATYPE, message)
        };
        let known = self.types.iter().enumerate();
        known.map(|(place, ty)| ty.clone().ok_or_else(|| undetermined(place + 1))).collect()
    }
}

/// Places of the parameters that a statement names.
fn used_parameters(statement: &Statement) -> BTreeSet<usize> {
    let mut used = BTreeSet::new();
    let _ = visit_expressions(statement, |expr| {
        if let Expr::Value(value) = expr
            && let ast::Value::Placeholder(name) = &value.value
            && let Some(number) = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok())
        {
            used.insert(number.saturating_sub(1));
        }
        ControlFlow::<()>::Continue(())
    });
    let statement = match statement {
        Statement::Query(query) => match query.body.as_ref() {
            SetExpr::Insert(insert) => insert,
            _ => statement,
        },
        other => other,
    };
    if let Statement::Insert(insert) = statement {
        used.extend(insert.columns.iter().flat_map(element::parameters_of).map(|number| number.saturating_sub(1)));
    }
    used
}

/// `SELECT * FROM name`
fn whole(name: &str, pace: &Pace) -> Result<Query, SqlError> {
    Ok(*crate::syntax::parse_query(&format!("SELECT * FROM {}", quote_identifier(name)), pace)?.0)
}

/// A statement whose subqueries that lock rows are parts; `None` if it has none.
pub(crate) fn lift_locks(statement: &Statement, pace: &Pace) -> Result<Option<Statement>, SqlError> {
    let mut lifted = statement.clone();
    let mut lift = Lift { outermost: matches!(statement, Statement::Query(_)), found: Vec::new(), pace, error: None };
    let _ = lifted.visit(&mut lift);
    if let Some(error) = lift.error {
        return Err(error);
    }
    if lift.found.is_empty() {
        return Ok(None);
    }
    let mut query = match lifted {
        Statement::Query(query) => *query,
        other => {
            let mut query = whole("t", pace)?;
            *query.body = match other {
                Statement::Insert(_) => SetExpr::Insert(other),
                Statement::Update(_) => SetExpr::Update(other),
                Statement::Delete(_) => SetExpr::Delete(other),
                _ => return Ok(None),
            };
            query
        }
    };
    let with_token = ast::helpers::attached_token::AttachedToken::empty();
    let with = query.with.get_or_insert_with(|| With { with_token, recursive: false, cte_tables: Vec::new() });
    with.cte_tables.splice(0..0, lift.found);
    Ok(Some(Statement::Query(Box::new(query))))
}

struct Lift<'a> {
    /// The next query is the statement itself.
    outermost: bool,
    found: Vec<Cte>,
    pace: &'a Pace,
    error: Option<SqlError>,
}

impl VisitorMut for Lift<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if std::mem::take(&mut self.outermost) || query.locks.is_empty() {
            return ControlFlow::Continue(());
        }
        let name = format!("locked rows {}", self.found.len() + 1);
        let replacement = match whole(&name, self.pace) {
            Ok(replacement) => replacement,
            Err(error) => {
                self.error = Some(error);
                return ControlFlow::Break(());
            }
        };
        let alias = TableAlias { explicit: true, name: Ident::with_quote('"', name), columns: Vec::new(), at: None };
        let cte_query = Box::new(std::mem::replace(query, replacement));
        let closing = ast::helpers::attached_token::AttachedToken::empty();
        self.found.push(Cte { alias, query: cte_query, from: None, materialized: None, closing_paren_token: closing });
        ControlFlow::Continue(())
    }
}

impl PartsPlan {
    /// The tag and the rows of a part.
    fn run(&self, part: usize, context: &Arc<StatementContext>) -> Result<(String, Vec<Row>), SqlError> {
        drain(self.parts[part].plan.execute(context)?, context)
    }
}

/// The tag of an execution, and all its rows.
fn drain(execution: Execution, context: &StatementContext) -> Result<(String, Vec<Row>), SqlError> {
    let mut source = match execution {
        Execution::Done { tag, rows } => return Ok((tag, rows)),
        Execution::Rows(source) => source,
    };
    let mut reserved = Reserved::new(&context.memory);
    let mut out = Vec::new();
    loop {
        let rows = source.next(ROWS)?;
        if rows.is_empty() {
            return Ok((format!("SELECT {}", out.len()), out));
        }
        reserved.take(rows.iter().map(|row| row_bytes(row)).sum())?;
        out.extend(rows);
    }
}

impl Plan for PartsPlan {
    fn parameters(&self) -> &[SqlType] {
        &self.parameters
    }

    fn fields(&self) -> &[Field] {
        self.main.fields()
    }
    fn gives_rows(&self) -> bool {
        self.main.gives_rows()
    }

    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        let (parts, txn) = Parts::new(context, self.parts.len(), self.writes);
        let parts = Arc::new(parts);
        let mut inner = StatementContext { parts: Some(parts.clone()), ..StatementContext::clone(context) };
        inner.txn = txn;
        if self.writes {
            inner.deferred = Arc::new(Deferred::until_the_end());
        }
        let inner = Arc::new(inner);
        let mut told = None;
        for &part in &self.before {
            let (tag, rows) = self.run(part, &inner)?;
            parts.give(part, rows)?;
            told = told.or_else(|| (self.told == Some(part)).then_some(tag));
        }
        if !self.writes {
            return self.main.execute(&inner);
        }
        let (tag, rows) = drain(self.main.execute(&inner)?, &inner)?;
        for &part in &self.after {
            parts.give(part, self.run(part, &inner)?.1)?;
        }
        parts.act(&inner.deferred, context)?;
        inner.deferred.settle(usize::MAX, &context.deferred, context)?;
        Ok(Execution::Done { tag: told.unwrap_or(tag), rows })
    }

    fn explain(&self) -> Operator {
        explain::parts(self.main.as_ref(), self.parts.iter().map(|part| (part.name.as_str(), part.plan.as_ref())))
    }

    fn is_direct(&self) -> bool {
        false
    }
    fn is_read_only(&self) -> bool {
        false
    }
}
