//! A prepared statement, named or not.

use super::Session;
use super::text_cache::{Made, PlanKey};
use crate::catalog::reliance::{Recorder, Uses};
use crate::catalog::view::View;
use crate::output::Field;
use crate::plan::{self, Plan, PlanContext};
use crate::syntax::{AsOf, Command, Parsed, Planned};
use crate::transaction::Span;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// See the module.
pub(super) struct Prepared {
    pub(super) text: Arc<str>,
    pub(super) statement: Statement,
    /// Types that the client declared; 0 is to be inferred.
    pub(super) declared: Vec<u32>,
    /// Characters of the client's text before this statement.
    pub(super) offset: u32,
    plan: Mutex<Option<Current>>,
    /// Where its time is a parameter: what its client was told of it.
    told: OnceLock<Told>,
}

/// What the parameters and the result of a statement are, as its client knows them.
struct Told {
    parameters: Vec<u32>,
    fields: Vec<Field>,
}

impl Told {
    /// Whether a plan takes and gives just that. A parameter of which nothing was known is of any type.
    fn fits(&self, plan: &dyn Plan) -> bool {
        let parameters = oids(plan);
        let same = |(told, is): (&u32, &u32)| *told == 0 || told == is;
        self.parameters.len() == parameters.len()
            && self.parameters.iter().zip(&parameters).all(same)
            && are_same(&self.fields, plan.fields())
    }
}

/// What a prepared statement holds on to.
#[derive(Clone)]
pub(super) enum Statement {
    /// A statement of a text.
    Parsed(Arc<[Parsed]>, usize),
    /// A statement inside another: EXECUTE's, DECLARE's.
    Inner(Arc<Planned>),
    /// An empty text.
    Empty,
}

/// What a statement is planned for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It is to run by it now.
    Run,
    /// Something is told of it: what it takes and gives, how it would run. It is planned again when it runs, perhaps by another catalog: until then it writes by nothing.
    Tell,
}

/// A plan, and what it was made for.
struct Current {
    made: Made,
    generation: u64,
    /// By a catalog that was only taken to be the one that it runs by, and nothing was told of it: what it gives may change.
    presumed: bool,
}

impl Prepared {
    pub(super) fn new(text: Arc<str>, statement: Statement, declared: Vec<u32>, offset: u32) -> Prepared {
        Prepared { text, statement, declared, offset, plan: Mutex::new(None), told: OnceLock::new() }
    }
    pub(super) fn parsed(all: &Arc<[Parsed]>, index: usize, declared: Vec<u32>) -> Prepared {
        let parsed = &all[index];
        Prepared::new(parsed.text.clone(), Statement::Parsed(all.clone(), index), declared, parsed.offset)
    }
    /// The client is told what it takes and gives. Where its time is a parameter, it keeps to that from now on: drivers ask once, and read the rows of every
    /// time by the answer.
    pub(super) fn tell(&self, plan: &dyn Plan) {
        if self.time_parameter().is_some() {
            self.told.get_or_init(|| Told { parameters: oids(plan), fields: plan.fields().to_vec() });
        }
    }
    /// Where its time is a parameter: the plan of the time that was bound last. Some clients ask for a statement's shape behind its Bind.
    pub(super) fn bound_plan(&self) -> Option<Arc<dyn Plan>> {
        self.time_parameter().and_then(|_| self.plan.lock().as_ref().map(|current| current.made.plan.clone()))
    }
    /// The catalog that it was planned by is the present one, and its rows are told: it keeps its shape from now on.
    pub(super) fn confirm(&self) {
        if let Some(current) = self.plan.lock().as_mut() {
            current.presumed = false;
        }
    }
    /// Whether nobody relies yet on what it gives.
    pub(super) fn is_open(&self) -> bool {
        self.plan.lock().as_ref().is_none_or(|current| current.presumed)
    }
    /// The catalog that it was planned by may not be the one that it runs by, and nothing was told of it yet.
    pub(super) fn leave_open(&self) {
        if let Some(current) = self.plan.lock().as_mut() {
            current.presumed = true;
        }
    }
    /// The plan that it would run by, if that is still to be had: where the shape is another one than that of a portal's, the portal was bound by another catalog.
    pub(super) fn plan_instead(&self, bound: &dyn Plan) -> Option<Arc<dyn Plan>> {
        let held = self.plan.lock();
        let plan = &held.as_ref()?.made.plan;
        (!are_same(plan.fields(), bound.fields())).then(|| plan.clone())
    }
    /// The next plan may have another shape: nobody was told of this one's.
    pub(super) fn forget_plan(&self) {
        *self.plan.lock() = None;
    }
    /// `None`: an empty text, or a statement inside another.
    pub(super) fn command(&self) -> Option<&Command> {
        match &self.statement {
            Statement::Parsed(all, index) => Some(&all[*index].command),
            Statement::Inner(_) | Statement::Empty => None,
        }
    }
    pub(super) fn planned(&self) -> Option<&Planned> {
        match &self.statement {
            Statement::Inner(planned) => Some(planned),
            _ => match self.command() {
                Some(Command::Planned(planned)) => Some(planned),
                _ => None,
            },
        }
    }
    /// The query inside DECLARE or EXPLAIN, with the types that the client declared.
    pub(super) fn inside(&self) -> Option<Prepared> {
        match self.command()? {
            Command::Declare { query, text, .. } | Command::Explain { statement: query, text, .. } => {
                Some(Prepared::new(text.clone(), Statement::Inner(query.clone()), self.declared.clone(), 0))
            }
            _ => None,
        }
    }
    /// What its plan has looked up.
    pub(super) fn uses(&self) -> Option<Arc<Uses>> {
        self.plan.lock().as_ref().map(|held| held.made.uses.clone())
    }
    /// The same, if that has versions that writers hold.
    pub(super) fn gated_uses(&self) -> Option<Arc<Uses>> {
        let held = self.plan.lock();
        let uses = &held.as_ref()?.made.uses;
        uses.gated().next().is_some().then(|| uses.clone())
    }
    /// Moves an error's place from the statement to the client's text.
    pub(super) fn place(&self, mut error: SqlError) -> SqlError {
        if self.offset > 0 {
            error.position = error.position.map(|p| p + self.offset);
        }
        error
    }
}

impl Session {
    /// The plan of a prepared statement, made again if what it is made of or the settings have changed; the transaction relies on it. There must be
    /// one.
    pub(super) fn plan_of(&mut self, prepared: &Prepared) -> Result<Arc<dyn Plan>, SqlError> {
        self.plan_with(prepared, None, Purpose::Run)
    }

    /// As [`Session::plan_of`], where one has been made of the catalog of before ([`Session::plan_by_what_is_known`]): if it holds, it is that one.
    pub(super) fn plan_with(
        &mut self,
        prepared: &Prepared,
        before: Option<Made>,
        purpose: Purpose,
    ) -> Result<Arc<dyn Plan>, SqlError> {
        let mut held = prepared.plan.lock();
        let Some(active) = self.active.as_mut() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a statement is planned without a transaction"));
        };
        let told = prepared.told.get();
        let fits = |current: &&mut Current| told.is_none_or(|told| told.fits(current.made.plan.as_ref()));
        if let Some(current) = held.as_mut().filter(|current| current.generation == self.generation).filter(fits) {
            let number = active.view.snapshot().version();
            if current.made.number == number || current.made.uses.hold(&active.view) {
                current.made.number = number;
                current.presumed &= active.presumed;
                let Made { plan, uses, .. } = &current.made;
                active.rely_on(uses, plan.as_ref(), (&self.backend.filled, purpose))?;
                return Ok(plan.clone());
            }
        }
        let Some(planned) = prepared.planned() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "this statement has no plan"));
        };
        let number = active.view.snapshot().version();
        let before = before.filter(|made| held.is_none() && (made.number == number || made.uses.hold(&active.view)));
        let timed = prepared.time_parameter().is_some();
        // Types of parameters, once found, are what the client sends. At another time they may be others, unless it was told.
        let known: Option<Vec<u32>> = match timed {
            true => told.map(|told| told.parameters.clone()),
            // Of a plan by a catalog that was only presumed nobody was told.
            false => held.as_ref().filter(|old| !old.presumed).map(|old| oids(old.made.plan.as_ref())),
        };
        let made = match before {
            Some(before) => Made { number, ..before },
            None => self.plan_statement(planned, &prepared.text, known.as_ref().unwrap_or(&prepared.declared))?,
        };
        let plan = made.plan.clone();
        let fits = match timed {
            true => told.is_none_or(|told| told.fits(plan.as_ref())),
            false => held.as_ref().is_none_or(|old| old.presumed || are_same(old.made.plan.fields(), plan.fields())),
        };
        if !fits {
            let refused = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cached plan must not change result type")
                // By this name JDBC knows that it may prepare it again by itself.
                .with(|e| e.routine = Some("RevalidateCachedQuery"));
            return Err(match timed {
                true => refused.detail("At the time that is to be read the result had other columns, or other types, than the client was told of.").hint(
                    "Name the columns that there were at both times, prepare the statement again, or write its time as a literal.",
                ),
                false => refused.hint("Prepare the statement again."),
            });
        }
        if let Some(active) = self.active.as_mut() {
            active.rely_on(&made.uses, plan.as_ref(), (&self.backend.filled, purpose))?;
        }
        let presumed = self.active.as_ref().is_some_and(|active| active.presumed);
        let presumed = presumed && held.as_ref().is_none_or(|old| old.presumed);
        *held = Some(Current { made, generation: self.generation, presumed });
        Ok(plan)
    }

    /// A statement's plan by what was last known of the catalog. One that has looked nothing up would be the same by any other.
    pub(super) fn plan_by_what_is_known(&mut self, prepared: &Prepared) -> Option<Made> {
        let planned = prepared.planned()?;
        let generation = self.generation;
        let held =
            prepared.plan.lock().as_ref().filter(|held| held.generation == generation).map(|held| held.made.clone());
        held.or_else(|| self.plan_statement(planned, &prepared.text, &prepared.declared).ok())
    }

    /// Where a statement reads, by what was last known of the catalog; `None`: anywhere.
    pub(super) fn spans_of(&mut self, prepared: &Prepared) -> Option<Vec<Span>> {
        let view = self.active.as_ref().map(|active| &active.view).or(self.view.as_ref())?.clone();
        self.plan_in(&view, prepared.planned()?, &prepared.text, &prepared.declared).ok()?.uses.spans()
    }

    /// A plan, from the cache or made.
    fn plan_statement(&mut self, planned: &Planned, text: &Arc<str>, declared: &[u32]) -> Result<Made, SqlError> {
        let Some(active) = self.active.as_ref() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a statement is planned without a transaction"));
        };
        let view = active.view.clone();
        self.plan_in(&view, planned, text, declared)
    }

    pub(super) fn plan_in(
        &mut self,
        view: &Arc<View>,
        planned: &Planned,
        text: &Arc<str>,
        declared: &[u32],
    ) -> Result<Made, SqlError> {
        let key = PlanKey {
            text: text.clone(),
            parameters: declared.to_vec(),
            settings: self.plan_settings.clone(),
            statistics: self.db.sessions.statistics.epoch(),
        };
        if let Some(made) = self.db.texts.plan(&key, view) {
            return Ok(made);
        }
        let recorder = Arc::new(Recorder::new(view.clone()));
        let number = view.snapshot().version();
        let context = PlanContext {
            catalog: recorder.clone(),
            kv: self.db.kv.clone(),
            statistics: self.db.sessions.statistics.clone(),
            settings: self.settings.eval.clone(),
            parameter_hints: hints(declared, planned.as_of.as_ref().and_then(AsOf::parameter))?,
            pace: self.pace.clone(),
            overriding: planned.overriding,
            inference: planned.inference.clone(),
            locates: false,
            keyed: Arc::default(),
            inside: false,
            given: Arc::default(),
            values: None,
        };
        let plan = plan::prepare(&planned.statement, text, &context)?;
        let plan = plan::tuned(plan, &planned.statement, text, &context);
        let made = Made { number, uses: Arc::new(recorder.take()), plan };
        self.db.texts.keep_plan(key, made.clone());
        Ok(made)
    }

    /// What planning depends on now. There must be a transaction.
    pub(super) fn plan_context(&self) -> Result<PlanContext, SqlError> {
        let Some(active) = self.active.as_ref() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a statement is planned without a transaction"));
        };
        Ok(PlanContext {
            catalog: active.catalog.clone(),
            kv: self.db.kv.clone(),
            statistics: self.db.sessions.statistics.clone(),
            settings: self.settings.eval.clone(),
            parameter_hints: Vec::new(),
            pace: self.pace.clone(),
            overriding: None,
            inference: None,
            locates: false,
            keyed: Arc::default(),
            inside: false,
            given: Arc::default(),
            values: None,
        })
    }
}

/// Types of parameters as the client declared them. The one that says a time in the past, if none was declared, is text: an interval or a timestamp.
fn hints(declared: &[u32], time: Option<usize>) -> Result<Vec<Option<SqlType>>, SqlError> {
    let mut hints: Vec<Option<SqlType>> = declared.iter().copied().map(hint).collect::<Result<_, _>>()?;
    if let Some(index) = time {
        hints.resize(hints.len().max(index + 1), None);
        hints[index].get_or_insert(SqlType::Text);
    }
    Ok(hints)
}

/// A type that a client declared; `None`: it is to be inferred.
pub(super) fn hint(oid: u32) -> Result<Option<SqlType>, SqlError> {
    match oid {
        // 705 is "unknown".
        0 | 705 => Ok(None),
        oid => SqlType::from_oid(oid)
            .map(Some)
            .ok_or_else(|| SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type with OID {oid} does not exist"))),
    }
}

/// Whether results have one shape.
fn are_same(a: &[Field], b: &[Field]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name && a.ty == b.ty)
}

/// What the parameters of a plan are; 0 where that is open.
fn oids(plan: &dyn Plan) -> Vec<u32> {
    let oid = |ty: &SqlType| if *ty == SqlType::Unknown { 0 } else { ty.oid() };
    plan.parameters().iter().map(oid).collect()
}
