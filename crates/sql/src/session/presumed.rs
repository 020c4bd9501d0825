//! The catalog of a statement, where it is not known what the present one is: it is taken to be what it was, and confirmed before anything is told.

use super::Session;
use super::prepared::{Prepared, Purpose};
use crate::SqlError;
use crate::catalog::{Wait, cache, key};
use crate::plan::Plan;
use crate::transaction::{Isolation, KvError};
use bytes::Bytes;
use clock::Timestamp;
use std::sync::Arc;

/// Parts of the names of functions that do what is not undone with the transaction. `nextval` may leave a gap.
const ACT_AT_ONCE: [&[u8]; 4] = [b"setval", b"advisory", b"pg_cancel_backend", b"pg_terminate_backend"];

/// Whether a statement may do what stays done though it is repeated; its text is enough to go by, since the catalog is only looked at earlier where it says so.
fn acts_at_once(text: &str) -> bool {
    let names = |name: &&[u8]| text.as_bytes().windows(name.len()).any(|part| part.eq_ignore_ascii_case(name));
    ACT_AT_ONCE.iter().any(names)
}

impl Session {
    /// The transaction, and the plan of a statement in it that is not to run yet. One that looks nothing up needs no catalog: while it is not known what the present one is (on
    /// a node of a cluster it never is), a statement is planned by the one of before. What then neither looks up nor reads anything (`SELECT 1`) runs, and
    /// waits for nobody; anything else asks for the catalog of its snapshot first.
    pub(super) fn ensure_planned(
        &mut self,
        prepared: &Prepared,
        as_of: Option<Timestamp>,
    ) -> Result<Arc<dyn Plan>, SqlError> {
        self.planned_for(prepared, as_of, (false, Purpose::Tell))
    }

    /// As [`Session::ensure_planned`], for who confirms the catalog before anything is told: where it is led elsewhere, whether it is still what is known is asked
    /// together with what the statement asks first.
    pub(super) fn presume_planned(
        &mut self,
        prepared: &Prepared,
        as_of: Option<Timestamp>,
        purpose: Purpose,
    ) -> Result<Arc<dyn Plan>, SqlError> {
        self.planned_for(prepared, as_of, (true, purpose))
    }

    /// What cannot be planned by a catalog that was only presumed is planned by the present one: no error is told that is not true of it.
    fn planned_for(
        &mut self,
        prepared: &Prepared,
        as_of: Option<Timestamp>,
        (presumes, purpose): (bool, Purpose),
    ) -> Result<Arc<dyn Plan>, SqlError> {
        match self.planned_once(prepared, as_of, (presumes, purpose)) {
            Err(e) if !SqlError::retry(&e) && self.active.as_ref().is_some_and(|active| active.presumed) => {
                self.follow_catalog(Wait::Patient)?;
                self.plan_with(prepared, None, purpose)
            }
            done => done,
        }
    }

    fn planned_once(
        &mut self,
        prepared: &Prepared,
        as_of: Option<Timestamp>,
        (presumes, purpose): (bool, Purpose),
    ) -> Result<Arc<dyn Plan>, SqlError> {
        let active = self.ensure_begun(as_of)?;
        let presumes = presumes && (active.unreached || active.presumed) && !acts_at_once(&prepared.text);
        if !active.unreached {
            if active.presumed && !presumes {
                self.follow_catalog(Wait::Patient)?;
            }
            return self.plan_with(prepared, None, purpose);
        }
        let made = self.plan_by_what_is_known(prepared);
        let looks_up = made.as_ref().is_none_or(|made| !made.uses.is_empty());
        // What may look something up as it runs, and found that it has changed, is not to go by the same catalog again.
        let may_look_up = looks_up || self.met_conflict || made.as_ref().is_none_or(|made| !made.plan.reads_nothing());
        if may_look_up && !(presumes && looks_up && made.is_some() && self.presume_catalog()?) {
            self.follow_catalog(Wait::Hasty)?;
        }
        if looks_up && self.active.as_ref().is_some_and(|active| active.unreached) {
            self.follow_catalog(Wait::Patient)?;
        }
        self.plan_with(prepared, made, purpose)
    }

    /// Takes the catalog to be what it was when it was last looked at, and asks whether it is, without a wait for the answer. `false`: it is to be looked at; nobody would
    /// be spared a wait, or a statement that goes by another one could not be repeated.
    fn presume_catalog(&mut self) -> Result<bool, SqlError> {
        let met_conflict = self.met_conflict;
        let newest = self.db.catalog.newest();
        let Some(active) = self.active.as_mut() else { return Ok(false) };
        // A change that is known here already: its catalog is looked up.
        let outdated = newest.is_none_or(|(newest, _)| newest.version() != active.number);
        let repeatable = active.has_done_nothing() || active.isolation == Isolation::ReadCommitted;
        if met_conflict || outdated || !repeatable || active.as_of.is_some() || !active.own.is_empty() {
            return Ok(false);
        }
        let asked = active.txn.with(|t| match t.is_far() {
            true => t.read_ahead(&[Bytes::from_static(&key::VERSION_KEY)]).map(|()| true),
            false => Ok(false),
        })?;
        if asked {
            (active.unreached, active.presumed) = (false, true);
            let now = active.snapshot_now();
            active.use_view(active.view.clone(), now);
        }
        Ok(asked)
    }

    /// The catalog is what it was taken for. To be asked before anything is told that a statement has found, done or failed of. Costs nothing where nothing was presumed.
    ///
    /// # Errors
    /// A restart where it has changed.
    pub(super) fn confirm_catalog(&mut self) -> Result<(), SqlError> {
        let Some(active) = self.active.as_mut().filter(|active| active.presumed) else { return Ok(()) };
        let number = active.txn.with(|t| cache::read_number(t, Wait::Patient))?;
        active.presumed = false;
        if number != active.number {
            // It is known to be another: whoever repeats the statement in this transaction looks at it.
            active.unreached = true;
            let reason = "the catalog has changed since it was last looked at".to_owned();
            return Err(KvError::Restart { reason, key: None }.into());
        }
        if self.view.as_ref().is_some_and(|view| Arc::ptr_eq(view, &active.view)) {
            self.view_at = active.looked_at;
        }
        Ok(())
    }
}
