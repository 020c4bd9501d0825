//! Steps of an expression, computed only where the expression asks for them.
//!
//! **Problem.** A step's value stands in a slot before the rest of the expression is evaluated. In `CASE WHEN a THEN (SELECT ..) END` most
//! rows do not ask for the subquery: it must not run for them, for the time that it takes and for the errors that it may give.
//!
//! **Idea.** Before the evaluation the expression is walked as the evaluation will walk it. Where that depends on a value (CASE, COALESCE,
//! AND, OR), the value is computed with the slots that it needs, and decides where the walk goes on.
//!
//! **Caveat.** What decides is evaluated twice; if that may give two values (`random()`), all slots are filled.

use super::run::Run;
use super::scalar::Step;
use crate::SqlError;
use crate::exec::evaluate;
use crate::expr::{Expr, Volatility};
use crate::types::Value;
use std::sync::Arc;

/// A row and the slots of the steps behind it.
pub(super) struct Lazy<'a> {
    steps: &'a [Step],
    /// Slots of the row itself.
    width: usize,
    row: Vec<Value>,
    filled: Vec<bool>,
    run: &'a Arc<Run>,
}

impl<'a> Lazy<'a> {
    /// No step computed yet.
    pub(super) fn new(steps: &'a [Step], row: &[Value], run: &'a Arc<Run>) -> Self {
        let mut slots = Vec::with_capacity(row.len() + steps.len());
        slots.extend_from_slice(row);
        slots.resize(row.len() + steps.len(), Value::Null);
        Lazy { steps, width: row.len(), row: slots, filled: vec![false; steps.len()], run }
    }

    /// The value of an expression, with the steps that it needs.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Value, SqlError> {
        self.need(expr)?;
        evaluate::value(expr, &self.row, &self.run.context)
    }

    /// Fills the slots that the evaluation of an expression will read.
    fn need(&mut self, expr: &Expr) -> Result<(), SqlError> {
        match expr {
            Expr::Column { index, .. } if *index >= self.width => self.fill(*index - self.width),
            Expr::Case { operand, branches, otherwise, .. } if is_steady(expr) => {
                let operand = match operand {
                    Some((operand, ty)) => Some((self.value(operand)?, ty)),
                    None => None,
                };
                for (when, then) in branches {
                    let when = self.value(when)?;
                    let taken = match &operand {
                        Some((value, ty)) => !value.is_null() && !when.is_null() && value.compare(&when, ty).is_eq(),
                        None => when == Value::Bool(true),
                    };
                    if taken {
                        return self.need(then);
                    }
                }
                otherwise.as_ref().map_or(Ok(()), |otherwise| self.need(otherwise))
            }
            Expr::Coalesce(list, _) if is_steady(expr) => self.until(list, |value| !value.is_null()),
            Expr::And(list) if is_steady(expr) => self.until(list, |value| *value == Value::Bool(false)),
            Expr::Or(list) if is_steady(expr) => self.until(list, |value| *value == Value::Bool(true)),
            other => {
                let mut parts = Vec::new();
                other.for_each_child(&mut |part| parts.push(part));
                parts.into_iter().try_for_each(|part| self.need(part))
            }
        }
    }

    /// Needs expressions one after the other, up to the first whose value ends the search.
    fn until(&mut self, list: &[Expr], ends: impl Fn(&Value) -> bool) -> Result<(), SqlError> {
        let Some((last, before)) = list.split_last() else { return Ok(()) };
        for part in before {
            if ends(&self.value(part)?) {
                return Ok(());
            }
        }
        self.need(last)
    }

    fn fill(&mut self, place: usize) -> Result<(), SqlError> {
        let steps = self.steps;
        let Some(step) = steps.get(place) else { return Ok(()) };
        if !std::mem::replace(&mut self.filled[place], true) {
            step.parts().into_iter().try_for_each(|part| self.need(part))?;
            self.row[self.width + place] = step.value(&self.row[..self.width + place], self.run)?;
        }
        Ok(())
    }
}

/// Whether a second evaluation gives the same value.
fn is_steady(expr: &Expr) -> bool {
    expr.volatility() != Volatility::Volatile
}
