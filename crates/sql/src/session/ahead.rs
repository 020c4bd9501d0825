//! Statements that are planned before they run: by Bind and Describe, by Parse and PREPARE.
//!
//! One that is to read the past is planned by the catalog of then, in a transaction of its own that ends at once: its time is taken anew whenever it runs, and
//! the leader of the catalog of now need not be there. Until it runs, nothing of the session has moved.
//!
//! Where the time is a parameter (`AS OF SYSTEM TIME $1`) it is known at Bind, and the statement is planned then, by the catalog of that time: what was dropped
//! since is read as it was. Parse plans nothing. A client that asks for the shape before (Describe of the statement) is told that of the present, and keeps to
//! it: a time at which the result had another one is refused ([`Prepared::tell`]).

use super::Session;
use super::prepared::{Prepared, Purpose};
use crate::plan::Plan;
use crate::syntax::AsOf;
use crate::transaction::Consistency;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use clock::Timestamp;
use std::sync::Arc;

impl Session {
    /// The plan of a statement that is not to run yet.
    ///
    /// # Errors
    /// Those of planning.
    pub(super) fn plan_ahead(&mut self, prepared: &Prepared) -> Result<Arc<dyn Plan>, SqlError> {
        self.plan_ahead_by(prepared, false)
    }

    /// As [`Session::plan_ahead`], of which nothing is told: the catalog is looked at when something is.
    ///
    /// # Errors
    /// Those of planning.
    pub(super) fn plan_ahead_unseen(&mut self, prepared: &Prepared) -> Result<Arc<dyn Plan>, SqlError> {
        self.plan_ahead_by(prepared, true)
    }

    fn plan_ahead_by(&mut self, prepared: &Prepared, unseen: bool) -> Result<Arc<dyn Plan>, SqlError> {
        let of_the_present = |session: &mut Session| match unseen {
            true => session.presume_planned(prepared, None, Purpose::Tell),
            false => session.ensure_planned(prepared, None),
        };
        if self.active.is_some() {
            return of_the_present(self);
        }
        if prepared.time_parameter().is_some() {
            return self.plan_aside(prepared, None);
        }
        let Some(past) = self.past_ahead(prepared, true) else { return of_the_present(self) };
        let by_bound = prepared.planned().is_some_and(|planned| planned.as_of.is_none());
        // That it runs at the present, among others, is open until it does.
        let open = by_bound && prepared.is_open();
        match self.plan_aside(prepared, Some(past)) {
            Ok(plan) if open => {
                prepared.leave_open();
                Ok(plan)
            }
            // It may come to run at the present: only a statement that is alone is bounded by the session.
            Err(error) if by_bound && self.consistency() != Consistency::Stale && is_of_names(&error) => {
                of_the_present(self)
            }
            planned => planned,
        }
    }

    /// The plan of a statement whose parameters have values by now: of the time that one of them may say. `unseen`: nothing is told of it yet.
    ///
    /// # Errors
    /// Those of planning.
    pub(super) fn plan_bound(
        &mut self,
        prepared: &Prepared,
        time: Option<Timestamp>,
        unseen: bool,
    ) -> Result<Arc<dyn Plan>, SqlError> {
        // Whether it may read that time there is said when it runs.
        let Some(time) = time.filter(|_| !self.reads_its_time()) else { return self.plan_ahead_by(prepared, unseen) };
        if self.active.is_some() {
            self.restart();
        }
        self.plan_aside(prepared, Some(time))
    }

    /// Whether a statement cannot say any more which time the transaction reads.
    pub(super) fn reads_its_time(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.as_of.is_some() || !active.has_done_nothing())
    }

    /// The time that a parameter says, by the values up to it. `None`: no parameter does, there is no value for it, or leaders would have to be asked.
    ///
    /// # Errors
    /// What is wrong with the time.
    pub(super) fn time_bound(
        &mut self,
        prepared: &Prepared,
        read: impl FnOnce(&mut Session, usize, &SqlType) -> Result<Option<Value>, SqlError>,
    ) -> Result<Option<Timestamp>, SqlError> {
        let Some((index, ty)) = prepared.time_parameter() else { return Ok(None) };
        let Some(as_of) = prepared.planned().and_then(|planned| planned.as_of.clone()) else { return Ok(None) };
        if matches!(as_of, AsOf::Negotiated(_)) {
            return Ok(None);
        }
        let Some(value) = read(self, index, &ty?)? else { return Ok(None) };
        let mut values = vec![Value::Null; index];
        values.push(value);
        self.resolve_as_of(&as_of, Some((prepared, &values))).map(Some)
    }

    /// A plan, made in a transaction that ends at once. There must be none.
    pub(super) fn plan_aside(
        &mut self,
        prepared: &Prepared,
        as_of: Option<Timestamp>,
    ) -> Result<Arc<dyn Plan>, SqlError> {
        let modes = self.modes.clone();
        let plan = self.ensure_planned(prepared, as_of);
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

    /// The time that a statement would read if it ran now, first in its transaction (`alone`: as all of it); `None`: the present, or it is not known yet. There
    /// must be no transaction.
    pub(super) fn past_ahead(&mut self, prepared: &Prepared, alone: bool) -> Option<Timestamp> {
        match &prepared.planned()?.as_of {
            // For this leaders are asked.
            Some(AsOf::Negotiated(_)) => None,
            Some(as_of) if as_of.parameter().is_some() => None,
            // What is wrong with it is said when it runs.
            _ => self.statement_as_of(prepared, &[], alone).ok().flatten(),
        }
    }
}

impl Prepared {
    /// The parameter that says the statement's time, counted from 0, and its type: as declared, else text, which is an interval or a timestamp.
    pub(super) fn time_parameter(&self) -> Option<(usize, Result<SqlType, SqlError>)> {
        let index = self.planned()?.as_of.as_ref()?.parameter()?;
        let ty = super::prepared::hint(self.declared.get(index).copied().unwrap_or_default());
        Some((index, ty.map(|ty| ty.unwrap_or(SqlType::Text))))
    }
}

/// Whether something that is named is not there, or not as it is used: with another catalog that may be otherwise.
fn is_of_names(error: &SqlError) -> bool {
    let state = error.state.as_str();
    state.starts_with("42") || state == SqlState::INVALID_SCHEMA_NAME.as_str()
}
