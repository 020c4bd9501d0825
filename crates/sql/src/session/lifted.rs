//! INSERT of a row of literals runs as its shape, prepared, with the literals as values: see [`crate::syntax::lifted`].
//!
//! Its values are read before it runs, by the types that the plan has which would be made by what is known of the catalog: if that fails in any way, the
//! text is run as it was sent, and what is wrong is told as ever. Where the plan is another one by the time that it runs, they are read once more by that.

use super::Session;
use super::portal::Portal;
use super::prepared::Prepared;
use crate::SqlError;
use crate::syntax::Command;
use crate::syntax::lifted::{self, Lifted};
use crate::types::{SqlType, Value};
use std::sync::Arc;

/// The literals of a portal's text.
pub(super) struct Literals {
    /// What others see of the statement: the text as it was sent, cut.
    pub(super) shown: Arc<str>,
    lifted: Lifted,
}

impl Session {
    /// A text by its shape; `None`: it has none, or is to be run as it is.
    pub(super) fn lifted(&mut self, sql: &str) -> Option<Portal> {
        let lifted = lifted::lift(sql)?;
        let view = self.active.as_ref().map(|active| &active.view).or(self.view.as_ref())?.clone();
        let all = self.db.texts.parse(&lifted.shape, &self.pace).ok()?;
        if !matches!(&*all, [only] if matches!(only.command, Command::Planned(_))) {
            return None;
        }
        let declared = lifted.values.iter().map(|(oid, _)| *oid).collect();
        let prepared = Prepared::parsed(&all, 0, declared);
        let plan = self.plan_in(&view, prepared.planned()?, &prepared.text, &prepared.declared).ok()?.plan;
        let mut values = lifted.values.iter().zip(plan.parameters());
        if values.any(|((_, text), ty)| may_be_of_now(text, ty)) {
            return None;
        }
        let params = self.read_literals(&lifted, plan.parameters()).ok()?;
        let literals = Literals { shown: super::shown(sql), lifted };
        let literals = Some(Box::new(literals));
        Some(Portal { params, plan: Some(plan), literals, ..Portal::unbound(Arc::new(prepared)) })
    }

    /// A portal's values, of other types than they were read by.
    ///
    /// # Errors
    /// What is wrong with a value; 0A000 where they were bound by the client.
    pub(super) fn bind_again(&self, portal: &mut Portal, types: &[SqlType]) -> Result<(), SqlError> {
        let literals = portal.literals.as_ref().ok_or_else(super::portal::bind_again)?;
        portal.params = self.read_literals(&literals.lifted, types)?;
        Ok(())
    }

    /// An error of a statement that ran by its shape, with its place in the text.
    pub(super) fn place_in_text(portal: &Portal, mut error: SqlError, sql: &str) -> SqlError {
        if let (Some(literals), Some(position)) = (&portal.literals, error.position) {
            error.position = Some(literals.lifted.place(position, sql));
        }
        error
    }

    fn read_literals(&self, lifted: &Lifted, types: &[SqlType]) -> Result<Vec<Value>, SqlError> {
        if types.len() != lifted.values.len() {
            return Err(super::portal::bind_again());
        }
        let values = lifted.values.iter().zip(types).enumerate();
        values.map(|(index, ((_, text), ty))| self.read_parameter(index, Some(text.as_bytes()), ty, 0)).collect()
    }
}

/// Whether a literal may say something of when its transaction began, which it has not yet.
fn may_be_of_now(text: &str, ty: &SqlType) -> bool {
    let ty = match ty {
        SqlType::Array(of) => of,
        ty => ty,
    };
    let says = |word: &&str| text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
    // The zone of a time of day that names none is that of the day.
    ty.is_time() && (matches!(ty, SqlType::Timetz(..)) || ["now", "today", "tomorrow", "yesterday"].iter().any(says))
}
