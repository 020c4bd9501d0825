//! Plans that are made anew where the values of an execution call for another: PostgreSQL's custom plans.
//!
//! **Problem.** A plan is made once and runs for all values. `WHERE k = $1` is few rows by an index, but where 99 % of the rows have one value all of them, each by a way of its own; and
//! planning each time costs more than a short statement itself. **Idea.** Planning notes the tables of which statistics say that values can make a difference ([`Watch`]); most
//! statements have none, and cost nothing more. With the others the rows are estimated anew before each execution. Where they are [`FACTOR`] times as many or as few as were planned for, the
//! statement is planned with its values as constants, for this execution alone. Where that comes to the same, such numbers of rows are known to need no other plan.
//!
//! `plan_cache_mode` says whether that is so (`auto`), or always (`force_custom_plan`), or never.

use super::watch::{ROWS_MIN, Watch};
use super::{Execution, Filling, Plan, PlanContext, Rewriting};
use crate::context::StatementContext;
use crate::explain::Operator;
use crate::output::Field;
use crate::syntax::{Inference, Overriding};
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use parking_lot::Mutex;
use sqlparser::ast::Statement;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// How many times more or fewer rows than planned for another plan may be worth its making.
const FACTOR: f64 = 10.0;
/// As [`FACTOR`], from numbers of rows for which planning came to the plan at hand: they were not what it was made for, and may lie just before where another is the right one.
const POINT_FACTOR: f64 = 2.0;
/// Numbers of rows that are remembered of those for which the plan at hand is the right one; further ones take the place of the oldest.
const CALM_MAX: usize = 64;
/// A statement that could not be planned with its values so often, one execution after the other, is planned so more seldom, until it succeeds: once in [`SELDOM`] executions.
const FAILURES_MAX: u32 = 8;
/// See [`FAILURES_MAX`].
const SELDOM: u32 = 16;

/// See the module.
struct Tuned {
    generic: Arc<dyn Plan>,
    statement: Statement,
    text: Arc<str>,
    /// What planning was told beside the statement.
    overriding: Option<Overriding>,
    inference: Option<Arc<Inference>>,
    always: bool,
    watches: Vec<Watch>,
    /// Numbers of rows, of all watches, near which the plan at hand is the right one. (Points: between two of them it may be another.)
    calm: Mutex<Calm>,
    failures: Failures,
    /// What the plan at hand is made of.
    shape: OnceLock<String>,
}

/// A plan, tuned to the values of each execution if they can make a difference and the session wants that.
pub fn tuned(plan: Arc<dyn Plan>, statement: &Statement, text: &Arc<str>, context: &PlanContext) -> Arc<dyn Plan> {
    if plan.parameters().is_empty() {
        return plan;
    }
    let always = match context.settings.values.get("plan_cache_mode").map(String::as_str) {
        Some("force_generic_plan") => return plan,
        mode => mode == Some("force_custom_plan"),
    };
    let watches = plan.watches();
    if watches.is_empty() && !always {
        return plan;
    }
    let calm = Calm::of(&watches);
    Arc::new(Tuned {
        generic: plan,
        statement: statement.clone(),
        text: text.clone(),
        overriding: context.overriding,
        inference: context.inference.clone(),
        always,
        watches,
        calm: Mutex::new(calm),
        failures: Failures::default(),
        shape: OnceLock::new(),
    })
}

/// Whether two numbers of rows are so much alike, or so small, that one plan is right for both. Of more than `part` no index is gone by that is right for fewer.
fn is_near(a: f64, b: f64, factor: f64, part: f64) -> bool {
    let (low, high) = (a.min(b), a.max(b));
    high <= ROWS_MIN || (high <= low * factor && (high <= part || low > part))
}

/// See [`Tuned::calm`].
struct Calm {
    generic: Vec<f64>,
    points: VecDeque<Vec<f64>>,
    /// Of each number, how many rows are more than an index should lead to.
    parts: Vec<f64>,
}

impl Calm {
    fn of(watches: &[Watch]) -> Calm {
        let generic = watches.iter().flat_map(|watch| watch.generic.iter().copied()).collect();
        let parts = watches.iter().flat_map(|watch| std::iter::repeat_n(watch.part(), watch.generic.len())).collect();
        Calm { generic, points: VecDeque::new(), parts }
    }
    fn has(&self, rows: &[f64]) -> bool {
        let all_near = |calm: &[f64], factor| {
            let mut each = rows.iter().zip(calm).zip(&self.parts);
            each.all(|((rows, calm), part)| is_near(*rows, *calm, factor, *part))
        };
        all_near(&self.generic, FACTOR) || self.points.iter().any(|point| all_near(point, POINT_FACTOR))
    }
    fn add(&mut self, rows: Vec<f64>) {
        if self.points.len() >= CALM_MAX {
            self.points.pop_front();
        }
        self.points.push_back(rows);
    }
}

/// Executions with whose values there was no plan, one after the other. All sessions share a plan: values that none can be made of are one client's error, and no other's.
#[derive(Default)]
struct Failures(AtomicU32);

impl Failures {
    /// Whether none is to be made this time.
    fn are_too_many(&self) -> bool {
        if self.0.load(Relaxed) < FAILURES_MAX {
            return false;
        }
        let turn = self.0.fetch_add(1, Relaxed).wrapping_sub(FAILURES_MAX);
        !(turn + 1).is_multiple_of(SELDOM)
    }
    fn note(&self, succeeded: bool) {
        match succeeded {
            true => self.0.store(0, Relaxed),
            false => drop(self.0.fetch_add(1, Relaxed)),
        }
    }
}

impl Tuned {
    /// The plan for the values of an execution, if it is another one.
    fn other(&self, context: &Arc<StatementContext>) -> Result<Option<Arc<dyn Plan>>, SqlError> {
        if self.failures.are_too_many() {
            return Ok(None);
        }
        if self.always {
            return self.custom(context);
        }
        let rows: Vec<f64> = self.watches.iter().flat_map(|watch| watch.rows(&context.params)).collect();
        if self.calm.lock().has(&rows) {
            return Ok(None);
        }
        let Some(custom) = self.custom(context)? else { return Ok(None) };
        let generic = self.shape.get_or_init(|| shape(&self.generic.explain()));
        if shape(&custom.explain()) != *generic {
            return Ok(Some(custom));
        }
        self.calm.lock().add(rows);
        Ok(None)
    }

    /// The plan with values as constants; `None` if there is none: then the other one says what is wrong.
    fn custom(&self, context: &Arc<StatementContext>) -> Result<Option<Arc<dyn Plan>>, SqlError> {
        let planning = PlanContext {
            parameter_hints: self.generic.parameters().iter().cloned().map(Some).collect(),
            values: Some(context.params.as_slice().into()),
            overriding: self.overriding,
            inference: self.inference.clone(),
            ..PlanContext::of_statement(context)
        };
        // Who asked was told of the columns.
        let custom = match super::prepare(&self.statement, &self.text, &planning) {
            Ok(plan) => Some(plan).filter(|plan| plan.fields() == self.generic.fields()),
            Err(error) if error.state == SqlState::QUERY_CANCELED => return Err(error),
            // (Another time it may go.)
            Err(error) if error.is_of_the_moment() => return Ok(None),
            Err(_) => None,
        };
        self.failures.note(custom.is_some());
        Ok(custom)
    }
}

/// Operators, what they read and what is said of them, without what conditions compare with.
fn shape(operator: &Operator) -> String {
    let facts: Vec<&str> = operator.facts.iter().map(|(name, ..)| *name).collect();
    let inputs: Vec<String> = operator.inputs.iter().map(|(_, input)| shape(input)).collect();
    format!("{} [{}] ({})", operator.title, facts.join(","), inputs.join(" | "))
}

impl Plan for Tuned {
    fn parameters(&self) -> &[SqlType] {
        self.generic.parameters()
    }
    fn fields(&self) -> &[Field] {
        self.generic.fields()
    }
    fn gives_rows(&self) -> bool {
        self.generic.gives_rows()
    }
    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        match self.other(context)? {
            Some(custom) => custom.execute(context),
            None => self.generic.execute(context),
        }
    }
    fn for_values(&self, context: &Arc<StatementContext>) -> Result<Option<Arc<dyn Plan>>, SqlError> {
        Ok(Some(self.other(context)?.unwrap_or_else(|| self.generic.clone())))
    }
    fn explain(&self) -> Operator {
        self.generic.explain()
    }
    fn is_read_only(&self) -> bool {
        self.generic.is_read_only()
    }
    fn may_run_again(&self) -> bool {
        self.generic.may_run_again()
    }
    fn is_direct(&self) -> bool {
        self.generic.is_direct()
    }
    fn reads_nothing(&self) -> bool {
        self.generic.reads_nothing()
    }
    fn rewriting(&self) -> Option<&dyn Rewriting> {
        self.generic.rewriting()
    }
    fn filling(&self) -> Option<&dyn Filling> {
        self.generic.filling()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One plan is right where one of two tables is large, but nobody asked about both.
    #[test]
    fn between_two_numbers_of_rows_another_plan_may_be_right() {
        let (generic, parts) = (vec![10.0, 10.0], vec![2e6; 2]);
        let mut calm = Calm { generic, points: VecDeque::new(), parts };
        calm.add(vec![1e6, 10.0]);
        calm.add(vec![10.0, 1e6]);
        assert!(calm.has(&[900.0, 3.0]) && calm.has(&[6e5, 1.0]) && calm.has(&[0.0, 15e5]));
        assert!(!calm.has(&[1e6, 1e6]) && !calm.has(&[2e5, 1.0]) && !calm.has(&[0.0, 4e6]));
        for n in 0..200 {
            calm.add(vec![1e3 + f64::from(n), 1e9]);
        }
        assert_eq!(calm.points.len(), CALM_MAX);
    }

    #[test]
    fn bad_values_end_no_plans_for_good() {
        let failures = Failures::default();
        (0..FAILURES_MAX).for_each(|_| failures.note(false));
        let tried = (0..SELDOM * 3).filter(|_| !failures.are_too_many()).count();
        assert_eq!(tried, 3);
        failures.note(true);
        assert!(!failures.are_too_many());
    }

    #[test]
    fn what_is_right_for_a_part_is_not_said_to_be_right_for_the_whole() {
        assert!(is_near(300.0, 2900.0, FACTOR, 3000.0) && is_near(4000.0, 9000.0, FACTOR, 3000.0));
        assert!(!is_near(2500.0, 4000.0, FACTOR, 3000.0) && !is_near(300.0, 3100.0, FACTOR, 1e9));
    }
}
