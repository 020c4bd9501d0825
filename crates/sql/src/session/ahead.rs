//! Statements that are planned before they run: by Parse, Bind and Describe, by PREPARE.
//!
//! One that is to read the past is planned by the catalog of then, in a transaction of its own that ends at once: its time is taken anew whenever it runs, and
//! the leader of the catalog of now need not be there. Until it runs, nothing of the session has moved.

use super::Session;
use super::prepared::Prepared;
use crate::SqlError;
use crate::plan::Plan;
use crate::syntax::AsOf;
use clock::Timestamp;
use std::sync::Arc;

impl Session {
    /// The plan of a statement that is not to run yet.
    ///
    /// # Errors
    /// Those of planning.
    pub(super) fn plan_ahead(&mut self, prepared: &Prepared) -> Result<Arc<dyn Plan>, SqlError> {
        let past = if self.active.is_none() { self.past_ahead(prepared) } else { None };
        if past.is_none() {
            return self.ensure_planned(prepared, None);
        }
        let modes = self.modes.clone();
        let plan = self.ensure_planned(prepared, past);
        self.modes = modes;
        if let Some(mut active) = self.active.take() {
            active.txn.with(|t| t.rollback());
            self.carried = active.settings.take();
            self.backend.relied.clear();
            self.backend.sees(None);
            self.backend.has_done(None);
        }
        plan
    }

    /// The time that a statement would read if it ran now; `None`: the present, or it is not known yet. There must be no transaction.
    pub(super) fn past_ahead(&mut self, prepared: &Prepared) -> Option<Timestamp> {
        match &prepared.planned()?.as_of {
            // For this leaders are asked.
            Some(AsOf::Negotiated(_)) => None,
            Some(as_of) if as_of.parameter().is_some() => None,
            // What is wrong with it is said when it runs.
            _ => self.statement_as_of(prepared, &[]).ok().flatten(),
        }
    }
}
