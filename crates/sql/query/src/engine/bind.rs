//! The binder: from the syntax tree to the tree of nodes.
//!
//! Expressions go through three steps: [`Binder::take`] resolves names and takes out what needs a query; [`Binder::compile`] turns
//! what was taken into steps and gives the rest to [`crate::expr`], whose rules of types are PostgreSQL's; clauses coerce results
//! where they must agree.

use super::aggregate::{AggregateCall, Function as Aggregate};
use super::bounds::{Bounds, holds_query};
use super::lower::Lower;
use super::node::{Node, SortKey};
use super::scalar::{Scalar, Subplan};
use super::scan::Names;
use super::scope::{Scope, slot_expr, slot_of, slot_of_text};
use super::take::{Clause, Held, Taker, call_args, call_expr, function_name, mark_expr, mark_of, whole_rows};
use super::walk;
use crate::catalog::Oid;
use crate::expr::{self, BindContext, Parameters};
use crate::identifier::fold;
use crate::plan::PlanContext;
use crate::plan::assignment::{self, Shared};
use crate::syntax::marks::written;
use crate::types::{CastKind, SqlType};
use crate::work;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    OrderByExpr, VisitMut, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Arguments of grouping(), at most: they are the bits of an int4.
const GROUPING_ARGS_MAX: usize = 31;

/// A column of a query's result.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) name: String,
    pub(super) ty: SqlType,
    /// Table and column it comes from.
    pub(super) origin: Option<(Oid, u16)>,
}

/// A planned query: its rows are the prefix and the columns.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) node: Arc<Node>,
    pub(super) columns: Vec<Output>,
}

/// A common table expression that can be named.
#[derive(Clone, Debug)]
pub(super) struct Cte {
    pub(super) name: String,
    pub(super) columns: Vec<Output>,
    pub(super) node: Arc<Node>,
    /// Its rows as part of a query that nothing is around: so what is asked of them there can go into it.
    pub(super) inlined: Option<Arc<Node>>,
    /// Queries of its plan, one that stands in several places as often as it does.
    pub(super) weight: usize,
}

/// The binder of one statement.
pub(super) struct Binder<'c> {
    pub(super) context: &'c PlanContext,
    pub(super) params: Parameters,
    /// What marks stand for.
    pub(super) held: Vec<Held>,
    /// Window and set functions of the query being bound, in `held`.
    pub(super) windows: Vec<usize>,
    pub(super) sets: Vec<usize>,
    pub(super) ctes: Vec<Cte>,
    /// Words of the statement and of its views: a column whose name is none of them is not read.
    words: BTreeSet<String>,
    /// Columns may be read by names that are not their own: a scan planned now reads them all.
    pub(super) every: bool,
    /// Columns that are read without a word of theirs: by `*`, by NATURAL, as part of a whole row.
    unsaid: BTreeSet<String>,
    names: Names,
    /// Names that stand alone in the statement or in its views: a relation's whole row may be read by them.
    pub(super) alone: BTreeSet<String>,
    /// Aggregates taken out of subqueries: see [`super::lift`].
    pub(super) lifted: Vec<ast::Function>,
    /// What is planned now is planned for its names.
    pub(super) names_only: bool,
    /// The direct path asks ([`super::short`]): what its evaluator knows by itself is no step.
    pub(super) short: bool,
    /// What an expression held that is none of the evaluator's.
    pub(super) not_scalar: Option<&'static str>,
    /// Subqueries that several columns are set from, by number and width of the row around.
    shared: BTreeMap<(usize, usize), (Subplan, Arc<[Output]>)>,
    /// Subqueries that marks stand for, by their place in `held` and the width of the row around: what is compiled for two uses is planned once. Planned twice at
    /// each level, queries within queries would be planned 2^n times.
    planned: BTreeMap<(usize, usize), (Subplan, Arc<[Output]>)>,
    next_id: usize,
    pub(super) bounds: Bounds,
    /// Memory of syntax trees that are copied, until the statement is bound.
    pub(super) copied: work::Held,
}

/// The grouping of a query whose select list is bound.
pub(super) struct Grouping<'s> {
    /// Names before grouping.
    pub(super) from: &'s Scope<'s>,
    /// Keys: their canonical text, and their slot.
    pub(super) keys: Vec<(String, usize)>,
    /// Slot of the first aggregate.
    pub(super) first: usize,
    pub(super) calls: Vec<AggregateCall>,
    texts: Vec<String>,
    /// What is bound may be an item of the select list said once more: then a volatile aggregate, too, is the one that is there.
    pub(super) repeats: bool,
}

impl<'s> Grouping<'s> {
    pub(super) fn new(from: &'s Scope<'s>, keys: Vec<(String, usize)>, first: usize) -> Self {
        Grouping { from, keys, first, calls: Vec::new(), texts: Vec::new(), repeats: false }
    }

    /// The slot of a grouping key that an expression is.
    ///
    /// # Errors
    /// Those of the moment.
    pub(super) fn key_of(&self, expr: &Expr) -> Result<Option<usize>, SqlError> {
        let simple = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        if !simple && self.keys.iter().all(|(text, _)| slot_of_text(text).is_some()) {
            return Ok(None);
        }
        let Some(text) = canonical(expr, self.from)? else { return Ok(None) };
        Ok(self.keys.iter().find(|(key, _)| *key == text).map(|(_, slot)| *slot))
    }

    /// The slot of an aggregate's value.
    pub(super) fn call(&mut self, binder: &mut Binder<'_>, function: ast::Function) -> Result<Expr, SqlError> {
        if function_name(&function.name).is_some_and(|(_, name)| name == "grouping") {
            return self.grouping(&function);
        }
        let mut taken = Expr::Function(function);
        let text = canonical(&taken, self.from)?;
        let is_volatile = |call: &AggregateCall| {
            let keys = call.order.iter().map(|key| &key.by);
            call.args.iter().chain(keys).chain(&call.filter).any(walk::scalar_is_volatile)
        };
        if let Some(place) = text.as_ref().and_then(|text| self.texts.iter().position(|known| known == text))
            && (self.repeats || !is_volatile(&self.calls[place]))
        {
            return Ok(slot_expr(self.first + place));
        }
        if let Expr::Function(function) = &mut taken {
            whole_rows(function);
            let clause = Clause::plain(super::take::AGGREGATE_CALLS);
            let mut taker = Taker { binder, scope: self.from, grouping: None, clause };
            taker.run(&mut function.args)?;
            taker.run(&mut function.filter)?;
            taker.run(&mut function.within_group)?;
            let call = binder.aggregate(function, self.from)?;
            self.calls.push(call);
            self.texts.push(text.unwrap_or_default());
        }
        Ok(slot_expr(self.first + self.calls.len() - 1))
    }
}

impl Grouping<'_> {
    /// The slot of `grouping(..)`: which of these keys are not in the row's grouping set, as bits.
    fn grouping(&mut self, function: &ast::Function) -> Result<Expr, SqlError> {
        let args = call_args(function)?;
        if args.len() > GROUPING_ARGS_MAX {
            let message = "GROUPING must have fewer than 32 arguments";
            return Err(SqlError::new(SqlState(*b"54023"), message));
        }
        let place = |arg: &Expr| {
            let text = canonical(arg, self.from)?;
            text.and_then(|text| self.keys.iter().position(|(key, _)| *key == text)).ok_or_else(|| {
                let message = "arguments to GROUPING must be grouping expressions of the associated query level";
                SqlError::new(SqlState::GROUPING_ERROR, message)
            })
        };
        let keys = args.iter().map(place).collect::<Result<Vec<usize>, SqlError>>()?;
        self.calls.push(AggregateCall {
            function: Aggregate::Grouping,
            args: Vec::new(),
            distinct: false,
            order: Vec::new(),
            filter: None,
            ty: SqlType::Int4,
            lines: false,
            descending: false,
            keys,
        });
        self.texts.push(String::new());
        Ok(slot_expr(self.first + self.calls.len() - 1))
    }
}

/// Resolves columns and nothing else.
struct Canonical<'a, 's>(&'a Scope<'s>);

impl VisitorMut for Canonical<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let parts = match expr {
            _ if slot_of(expr).is_some() => return ControlFlow::Continue(()),
            Expr::Identifier(ident) => std::slice::from_ref(ident),
            Expr::CompoundIdentifier(parts) => parts.as_slice(),
            Expr::Function(function) => {
                if let Some((_, name)) = function_name(&function.name) {
                    function.name = ast::ObjectName(vec![ast::ObjectNamePart::Identifier(ast::Ident::new(name))]);
                }
                return ControlFlow::Continue(());
            }
            Expr::Nested(inner) => {
                *expr = std::mem::replace(inner.as_mut(), Expr::value(ast::Value::Null));
                return self.pre_visit_expr(expr);
            }
            _ => return ControlFlow::Continue(()),
        };
        match self.0.find(&parts.iter().map(fold).collect::<Vec<_>>()) {
            Ok(Some(found)) => {
                self.0.note(parts);
                *expr = found.expr;
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        }
    }
}

/// The text of an expression with its columns resolved: equal for expressions that mean the same column or call. `None` for what
/// holds a subquery or a name that is not known.
///
/// # Errors
/// Those of the moment.
pub(super) fn canonical(expr: &Expr, scope: &Scope<'_>) -> Result<Option<String>, SqlError> {
    // It has no such text: it is not copied to find that out.
    if holds_query(expr) {
        return Ok(None);
    }
    let mut copy = expr.clone();
    match copy.visit(&mut Canonical(scope)) {
        ControlFlow::Continue(()) => written(copy).map(Some),
        ControlFlow::Break(()) => Ok(None),
    }
}

/// A part of the statement, as a common table expression that can be named.
fn given(part: &crate::plan::parts::Given) -> Cte {
    let column = |field: &crate::output::Field| Output { name: field.name.clone(), ty: field.ty.clone(), origin: None };
    let columns = part.columns.iter().map(column).collect();
    Cte { name: part.name.clone(), columns, node: Arc::new(Node::Given { part: part.part }), inlined: None, weight: 1 }
}

impl<'c> Binder<'c> {
    pub(super) fn new(context: &'c PlanContext, words: Option<BTreeSet<String>>) -> Binder<'c> {
        let declared: Vec<SqlType> =
            context.parameter_hints.iter().map(|hint| hint.clone().unwrap_or(SqlType::Unknown)).collect();
        Binder {
            context,
            params: Parameters::new(&declared).with_values(context.values.clone()),
            held: Vec::new(),
            windows: Vec::new(),
            sets: Vec::new(),
            ctes: context.given.iter().map(given).collect(),
            every: words.is_none(),
            words: words.unwrap_or_default(),
            unsaid: BTreeSet::new(),
            names: Names::default(),
            alone: BTreeSet::new(),
            lifted: Vec::new(),
            names_only: false,
            short: false,
            not_scalar: None,
            shared: BTreeMap::new(),
            planned: BTreeMap::new(),
            next_id: 0,
            bounds: Bounds::default(),
            copied: work::Held::default(),
        }
    }

    /// Says that columns are read which no word of the statement may name.
    pub(super) fn read_unsaid<'n>(&mut self, names: impl IntoIterator<Item = &'n String>) {
        self.unsaid.extend(names.into_iter().map(|name| name.to_lowercase()));
    }

    /// Takes the words of a view's query.
    ///
    /// # Errors
    /// 57014 where the statement was ended meanwhile.
    pub(super) fn add_words(&mut self, text: &str) -> Result<(), SqlError> {
        match super::words_of(text)? {
            Some(more) => self.words.extend(more),
            None => self.every = true,
        }
        Ok(())
    }

    /// The words of the statement, if they are known.
    pub(super) fn words(&self) -> Option<&BTreeSet<String>> {
        (!self.words.is_empty()).then_some(&self.words)
    }

    /// The columns that a scan planned now reads: those in words, and those that will have been read without one when all is bound.
    pub(super) fn names(&self) -> Option<Names> {
        (!self.every).then(|| self.names.clone())
    }

    /// The statement is bound: nothing more is read.
    pub(super) fn settle_names(&mut self) {
        let mut names = std::mem::take(&mut self.words);
        names.append(&mut self.unsaid);
        // It is set once: a binder binds one statement.
        let _ = self.names.set(names);
    }

    pub(super) fn id(&mut self) -> usize {
        self.next_id += 1;
        self.next_id
    }

    pub(super) fn hold(&mut self, held: Held) -> usize {
        self.held.push(held);
        self.held.len() - 1
    }

    /// Whether what is bound belongs to the statement's own query.
    pub(super) fn is_outermost(&self) -> bool {
        self.bounds.depth == 1
    }

    /// Resolves the names of an expression outside a grouped select list.
    pub(super) fn take(&mut self, mut expr: Expr, scope: &Scope<'_>, clause: Clause) -> Result<Expr, SqlError> {
        Taker { binder: self, scope, grouping: None, clause }.run(&mut expr)?;
        Ok(expr)
    }

    /// Binds an expression without marks over slots of these types.
    pub(super) fn bind(&mut self, expr: &Expr, types: &[SqlType]) -> Result<expr::Expr, SqlError> {
        self.bind_over(expr, types.to_vec())
    }

    fn bind_over(&mut self, expr: &Expr, types: Vec<SqlType>) -> Result<expr::Expr, SqlError> {
        let scope = expr::Scope::of_numbered(types);
        let context =
            BindContext { settings: &self.context.settings, objects: Some(self.context), pace: &self.context.pace };
        expr::bind(expr, &scope, &mut self.params, &context).map_err(|error| {
            if let expr::BindError::NeedsEngine(what) = &error {
                self.not_scalar = Some(*what);
            }
            error.into_sql()
        })
    }

    /// Turns an expression whose names are resolved into one that can be evaluated on rows of the scope.
    pub(super) fn compile(&mut self, mut expr: Expr, scope: &Scope<'_>) -> Result<Scalar, SqlError> {
        let (types, steps) = Lower::lowered(self, scope, &mut expr)?;
        let expr = self.bind_over(&expr, types)?;
        Ok(Scalar { ty: expr.ty(), expr, steps, width: scope.width() })
    }

    /// A slot as an expression.
    pub(super) fn slot(slot: usize, ty: &SqlType, width: usize) -> Scalar {
        Scalar { steps: Vec::new(), expr: expr::Expr::Column { index: slot, ty: ty.clone() }, ty: ty.clone(), width }
    }

    /// As [`Binder::take`] and [`Binder::compile`].
    pub(super) fn scalar(&mut self, expr: &Expr, scope: &Scope<'_>, clause: Clause) -> Result<Scalar, SqlError> {
        let copy = self.copy(expr)?;
        let taken = self.take(copy, scope, clause)?;
        self.compile(taken, scope)
    }

    /// Brings an expression to a type.
    pub(super) fn coerce(&mut self, scalar: Scalar, to: &SqlType, kind: CastKind) -> Result<Option<Scalar>, SqlError> {
        let context =
            BindContext { settings: &self.context.settings, objects: Some(self.context), pace: &self.context.pace };
        let Scalar { steps, expr, width, .. } = scalar;
        let expr = expr::coerce(expr, to, kind, &mut self.params, &context)?;
        Ok(expr.map(|expr| Scalar { ty: expr.ty(), expr, steps, width }))
    }

    /// A condition: boolean, or an error that names its clause.
    pub(super) fn condition(&mut self, scalar: Scalar, clause: &str) -> Result<Scalar, SqlError> {
        let ty = scalar.ty.clone();
        self.coerce(scalar, &SqlType::Bool, CastKind::Implicit)?.ok_or_else(|| {
            SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {clause} must be type boolean, not type {}", ty.base()),
            )
        })
    }

    /// A literal or parameter of no type becomes a text.
    pub(super) fn known(&mut self, scalar: Scalar) -> Result<Scalar, SqlError> {
        if scalar.ty != SqlType::Unknown {
            return Ok(scalar);
        }
        let Scalar { steps, expr, width, .. } = scalar;
        let expr = self.text_if_unknown(expr)?;
        Ok(Scalar { ty: expr.ty(), expr, steps, width })
    }

    pub(super) fn text_if_unknown(&mut self, expr: expr::Expr) -> Result<expr::Expr, SqlError> {
        self.as_type_if_unknown(expr, &SqlType::Text)
    }

    pub(super) fn as_type_if_unknown(&mut self, expr: expr::Expr, ty: &SqlType) -> Result<expr::Expr, SqlError> {
        if expr.ty() != SqlType::Unknown {
            return Ok(expr);
        }
        let context =
            BindContext { settings: &self.context.settings, objects: Some(self.context), pace: &self.context.pace };
        let copy = expr.clone();
        Ok(expr::coerce(expr, ty, CastKind::Implicit, &mut self.params, &context)?.unwrap_or(copy))
    }

    /// Plans a query inside an expression.
    pub(super) fn subplan(
        &mut self,
        query: &ast::Query,
        scope: &Scope<'_>,
    ) -> Result<(Subplan, Vec<Output>), SqlError> {
        // A frame of its own, so that references to the row around it are noticed.
        let frame = Scope::inside(Some(scope));
        let planned = self.query(query, &frame)?;
        let planned = self.known_columns(planned, frame.width());
        let (id, correlated) = (self.id(), frame.uses_parent.get() || walk::reads_round(&planned.node));
        let plan = Subplan { id, node: planned.node, prefix: scope.width(), correlated, probe: None };
        Ok((plan, planned.columns))
    }

    /// The query that a mark stands for, planned once however often it is compiled.
    pub(super) fn marked_plan(
        &mut self,
        place: usize,
        query: &ast::Query,
        scope: &Scope<'_>,
    ) -> Result<(Subplan, Arc<[Output]>), SqlError> {
        let key = (place, scope.width());
        if let Some(known) = self.planned.get(&key) {
            return Ok(known.clone());
        }
        let (plan, columns) = self.subplan(query, scope)?;
        let made: (Subplan, Arc<[Output]>) = (plan, columns.into());
        self.planned.insert(key, made.clone());
        Ok(made)
    }

    /// A subquery that several columns are set from, planned once for all of them.
    pub(super) fn shared_plan(
        &mut self,
        shared: &Shared<'_>,
        scope: &Scope<'_>,
    ) -> Result<(Subplan, Arc<[Output]>), SqlError> {
        let key = (shared.number, scope.width());
        if let Some(known) = self.shared.get(&key) {
            return Ok(known.clone());
        }
        let (plan, columns) = self.subplan(shared.query, scope)?;
        assignment::check_width(shared, columns.len())?;
        let made: (Subplan, Arc<[Output]>) = (plan, columns.into());
        self.shared.insert(key, made.clone());
        Ok(made)
    }

    /// Types of the arguments of a function of the catalogs: OIDs may come as text, numbers as text.
    pub(super) fn catalog_arguments(&mut self, name: &str, args: Vec<expr::Expr>) -> Result<Vec<expr::Expr>, SqlError> {
        let mut out = Vec::with_capacity(args.len());
        for (place, arg) in args.into_iter().enumerate() {
            let unknown = arg.ty() == SqlType::Unknown;
            let by_name = name.ends_with("_size")
                || name.starts_with("to_reg")
                || matches!(name, "pg_get_serial_sequence" | "pg_get_viewdef" | "pg_sequence_last_value");
            let ty = if name == "oidvectortypes" {
                SqlType::OidVector
            } else if place > 0
                || by_name
                || name.starts_with("quote")
                || matches!(name, "pg_char_to_encoding" | "current_setting" | "acldefault")
            {
                SqlType::Text
            } else {
                SqlType::Oid
            };
            if !unknown {
                out.push(arg);
                continue;
            }
            let context =
                BindContext { settings: &self.context.settings, objects: Some(self.context), pace: &self.context.pace };
            let copy = arg.clone();
            out.push(expr::coerce(arg, &ty, CastKind::Implicit, &mut self.params, &context)?.unwrap_or(copy));
        }
        Ok(out)
    }

    /// An aggregate whose arguments have their names resolved, over rows of a scope.
    pub(super) fn aggregate(&mut self, function: &ast::Function, scope: &Scope<'_>) -> Result<AggregateCall, SqlError> {
        let name = function_name(&function.name).map_or_else(String::new, |(_, name)| name);
        let Some(kind) = Aggregate::named(&name) else {
            return Err(SqlError::unsupported(format!("the aggregate {name}")));
        };
        let star = matches!(&function.args, FunctionArguments::List(list)
            if matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]));
        let mut args = if star { Vec::new() } else { call_args(function)? };
        let mut keys: &[OrderByExpr] = &[];
        let mut distinct = false;
        if let FunctionArguments::List(list) = &function.args {
            distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
            for clause in &list.clauses {
                match clause {
                    FunctionArgumentClause::OrderBy(by) => keys = by,
                    other => return Err(SqlError::unsupported(format!("{other} in a call"))),
                }
            }
        }
        let mut order = self.sort_keys(keys, scope)?;
        if distinct {
            self.sort_distinct(&mut order, keys, &args, scope)?;
        }
        let mut descending = false;
        if kind.is_ordered_set() {
            if distinct {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "cannot use DISTINCT with WITHIN GROUP"));
            }
            let [key] = function.within_group.as_slice() else {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("WITHIN GROUP is required for ordered-set aggregate {name}"),
                ));
            };
            descending = direction(key).0;
            args.insert(0, key.expr.clone());
        }
        if !star && !args.is_empty() && kind != Aggregate::Grouping && !kind.takes(args.len()) {
            if kind.is_ordered_set() {
                args.rotate_left(1);
            }
            return Err(self.no_aggregate(&name, args, scope));
        }
        // PostgreSQL starts a line for each element that is an array or a row.
        // For that it is bound for its type, and again below: but for the queries in it.
        let typed = args.first().filter(|_| kind == Aggregate::JsonAgg { binary: false });
        let lines = match typed {
            Some(arg) => {
                mark_of(arg).is_some_and(|place| matches!(self.held[place], Held::RowJson { row: true, .. }))
                    || matches!(self.compile(arg.clone(), scope)?.ty, SqlType::Array(_) | SqlType::Record)
            }
            None => false,
        };
        match kind {
            Aggregate::JsonAgg { binary } => wrap(&mut args, 0, binary),
            Aggregate::JsonObjectAgg { binary } => {
                wrap(&mut args, 1, binary);
                if let Some(key) = args.first_mut() {
                    let inner = std::mem::replace(key, Expr::value(ast::Value::Null));
                    *key = super::types::cast_expr(inner, &SqlType::Text);
                }
            }
            _ => {}
        }
        let mut scalars = Vec::with_capacity(args.len());
        for arg in args {
            let scalar = self.compile(arg, scope)?;
            scalars.push(self.known(scalar)?);
        }
        let types: Vec<SqlType> = scalars.iter().map(|scalar| scalar.ty.clone()).collect();
        let Some(ty) = kind.result(&types).filter(|_| star || kind == Aggregate::Count || !types.is_empty()) else {
            return Err(undefined(&name, &types));
        };
        if kind == Aggregate::Count && !star && types.is_empty() {
            let message = "count(*) must be used to call a parameterless aggregate function";
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        let filter = match &function.filter {
            Some(filter) => {
                let scalar = self.compile(filter.as_ref().clone(), scope)?;
                Some(self.condition(scalar, "FILTER")?)
            }
            None => None,
        };
        if distinct && !kind.heeds_order(&types) {
            order.clear();
        }
        let keys = Vec::new();
        Ok(AggregateCall { function: kind, args: scalars, distinct, order, filter, ty, lines, descending, keys })
    }

    /// The error of an aggregate with arguments that it has not.
    fn no_aggregate(&mut self, name: &str, args: Vec<Expr>, scope: &Scope<'_>) -> SqlError {
        let mut types = Vec::with_capacity(args.len());
        for arg in args {
            match self.compile(arg, scope) {
                Ok(scalar) => types.push(scalar.ty),
                Err(error) => return error,
            }
        }
        undefined(name, &types)
    }

    /// DISTINCT within a call sorts: by the call's ORDER BY, which must be arguments, then by the other arguments.
    fn sort_distinct(
        &mut self,
        order: &mut Vec<SortKey>,
        keys: &[OrderByExpr],
        args: &[Expr],
        scope: &Scope<'_>,
    ) -> Result<(), SqlError> {
        let args: Vec<Expr> = args.iter().map(|arg| self.row_of(arg)).collect();
        let plain: Vec<Expr> = args.iter().map(|arg| self.plain(arg)).collect();
        let sorted: Vec<Expr> = keys.iter().map(|key| self.plain(&key.expr)).collect();
        if sorted.iter().any(|key| !plain.contains(key)) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        for (arg, plain) in args.into_iter().zip(&plain) {
            if !sorted.contains(plain) {
                let by = self.compile(arg, scope)?;
                order.push(SortKey { by: self.known(by)?, descending: false, nulls_first: false });
            }
        }
        order.iter().try_for_each(|key| key.by.ty.check_equality())
    }

    /// The row that an argument of `json_agg` is, which the aggregate's own argument holds as json already.
    fn row_of(&mut self, arg: &Expr) -> Expr {
        let Some(place) = mark_of(arg) else { return arg.clone() };
        let Held::RowJson { names, values, mark, row: true, .. } = &self.held[place] else { return arg.clone() };
        // Each value is a call of to_json or to_jsonb on the column.
        let column = |value: &Expr| match value {
            Expr::Function(call) => call_args(call).ok().and_then(|mut args| args.pop()),
            _ => None,
        };
        let Some(fields) = values.iter().map(column).collect() else { return arg.clone() };
        mark_expr(self.hold(Held::Record { fields, names: names.clone(), mark: mark.clone() }))
    }

    /// Sort keys whose names are resolved.
    pub(super) fn sort_keys(&mut self, keys: &[OrderByExpr], scope: &Scope<'_>) -> Result<Vec<SortKey>, SqlError> {
        let mut out = Vec::with_capacity(keys.len());
        for key in keys {
            let by = self.compile(key.expr.clone(), scope)?;
            let by = self.known(by)?;
            by.ty.check_order()?;
            let (descending, nulls_first) = direction(key);
            out.push(SortKey { by, descending, nulls_first });
        }
        Ok(out)
    }
}

fn undefined(name: &str, types: &[SqlType]) -> SqlError {
    let list = types.iter().map(|ty| ty.base().to_string()).collect::<Vec<_>>().join(", ");
    let message = format!("function {name}({list}) does not exist");
    let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(hint)
}

/// Descending, and where NULLs go: last when ascending, first when descending.
pub(super) fn direction(key: &OrderByExpr) -> (bool, bool) {
    let descending = key.options.asc == Some(false);
    (descending, key.options.nulls_first.unwrap_or(descending))
}

/// Wraps an argument in to_json or to_jsonb.
fn wrap(args: &mut [Expr], place: usize, binary: bool) {
    if let Some(arg) = args.get_mut(place) {
        let inner = std::mem::replace(arg, Expr::value(ast::Value::Null));
        *arg = call_expr(if binary { "to_jsonb" } else { "to_json" }, vec![inner]);
    }
}
