//! Describe of a portal: its client is told what it will give.
//!
//! Problem: under `timeball.max_staleness` a query reads the past if it is its whole transaction, and the present if it is one of several before a Sync (decision 208).
//! Drivers describe what they have bound before they execute it, and read its rows by that; where a column was added within the bound, the two have other shapes.
//! Idea: what a portal will read is settled when it is described, by what is there of the messages behind it, and Execute keeps to it:
//!
//! 1. Execute and Sync are there: it is alone. It reads the very snapshot that it was described at.
//! 2. Anything else: it reads the present, which is within every bound, also if Sync is there when it is executed.
//! 3. It is settled once: who describes a portal again is told the same.

use super::portal::{Portal, PortalState, bind_again, unknown_portal};
use super::prepared::Prepared;
use super::{Block, Session};
use crate::SqlError;
use crate::output::Field;
use crate::plan::Plan;
use crate::syntax::Command;
use clock::Timestamp;
use std::sync::Arc;

impl Session {
    /// The result's shape (`None`: NoData) and its formats as given at bind. Borrowed: libpq asks for it at every execution. `alone`: the next messages in the
    /// caller's buffer are an Execute and a Sync.
    ///
    /// # Errors
    /// 34000 for an unknown portal; those of planning, where the catalog that it was bound by was only presumed, and is another one, or is not that of what it
    /// will read.
    pub fn describe_portal(&mut self, name: &str, alone: bool) -> Result<(Option<&[Field]>, &[i16]), SqlError> {
        if self.portals.get(name).is_none() {
            self.failed();
            return Err(unknown_portal(name));
        }
        let bounded = self.settings.max_staleness_us > 0 && self.block == Block::None;
        if bounded || self.active.as_ref().is_some_and(|active| active.presumed) {
            self.begin_message();
            let planned = self.with_limits(|session| {
                let planned = match bounded {
                    true => session.settle_portal(name, alone),
                    false => session.plan_described(name, None),
                };
                session.deadline.clear();
                planned
            });
            if let Err(e) = planned {
                self.failed();
                return Err(e);
            }
        }
        if let Err(e) = self.tell_of_portal(name) {
            self.failed();
            return Err(e);
        }
        let portal = self.portals.get(name).ok_or_else(|| unknown_portal(name))?;
        Ok((portal.shape(), &portal.formats))
    }

    /// The client is told of a portal: its statement keeps to that.
    fn tell_of_portal(&mut self, name: &str) -> Result<(), SqlError> {
        let Some(portal) = self.portals.get(name) else { return Ok(()) };
        let Some(bound) = &portal.plan else { return Ok(()) };
        portal.prepared.tell(bound.as_ref());
        if !matches!(portal.state, PortalState::Ready) {
            return Ok(());
        }
        portal.prepared.confirm();
        // The statement was planned again since, by a catalog that gave it another shape: it would run by that.
        let instead = match portal.prepared.time_parameter() {
            Some(_) => None,
            None => portal.prepared.plan_instead(bound.as_ref()),
        };
        let Some(instead) = instead else { return Ok(()) };
        if bound.parameters() != instead.parameters() {
            return Err(bind_again());
        }
        if let Some(mut portal) = self.portals.take(name) {
            portal.plan = Some(instead);
            self.portals.put_back(name, portal);
        }
        Ok(())
    }

    /// See the module.
    fn settle_portal(&mut self, name: &str, alone: bool) -> Result<(), SqlError> {
        let Some(portal) = self.portals.get(name).filter(|portal| matches!(portal.state, PortalState::Ready)) else {
            return Ok(());
        };
        if portal.reads.is_some() {
            return Ok(());
        }
        let prepared = portal.prepared.clone();
        match prepared.command() {
            Some(Command::Execute { name: executed, .. }) => {
                let Some(inner) = self.find_prepared(executed).ok().cloned() else { return Ok(()) };
                let Some(reads) = self.what_is_read(&inner, alone)? else { return Ok(()) };
                let plan = self.plan_to_read(&inner, reads)?;
                inner.confirm();
                self.change_portal(name, |portal| {
                    portal.fields = plan.shape().map(<[Field]>::to_vec);
                    portal.reads = Some(reads);
                });
                Ok(())
            }
            _ => {
                let reads = self.what_is_read(&prepared, alone)?;
                self.plan_described(name, reads)
            }
        }
    }

    /// What a statement reads that the session's bound may hold for: a time, or the present. `None`: it says its own time, or has no plan.
    fn what_is_read(&mut self, prepared: &Prepared, alone: bool) -> Result<Option<Option<Timestamp>>, SqlError> {
        match prepared.planned() {
            Some(planned) if planned.as_of.is_none() => {}
            _ => return Ok(None),
        }
        if self.reads_its_time() {
            return Ok(Some(None));
        }
        self.statement_as_of(prepared, &[], alone).map(Some)
    }

    fn plan_to_read(&mut self, prepared: &Prepared, reads: Option<Timestamp>) -> Result<Arc<dyn Plan>, SqlError> {
        match reads {
            Some(_) => self.plan_aside(prepared, reads),
            None => self.ensure_planned(prepared, None),
        }
    }

    fn change_portal(&mut self, name: &str, change: impl FnOnce(&mut Portal)) {
        if let Some(mut portal) = self.portals.take(name) {
            change(&mut portal);
            self.portals.put_back(name, portal);
        }
    }

    /// A portal is told of by the catalog of what it will read: the present one, where that is not the one that was presumed when it was bound, or that of
    /// `reads`.
    fn plan_described(&mut self, name: &str, reads: Option<Option<Timestamp>>) -> Result<(), SqlError> {
        let unbegun = |portal: &&Portal| matches!(portal.state, PortalState::Ready) && portal.plan.is_some();
        let presumed = self.active.as_ref().is_some_and(|active| active.presumed);
        let Some(portal) = self.portals.get(name).filter(unbegun).filter(|_| presumed || reads.is_some()) else {
            return Ok(());
        };
        let prepared = portal.prepared.clone();
        let plan = self.plan_to_read(&prepared, reads.flatten())?;
        let fits =
            self.portals.get(name).and_then(|p| p.plan.as_ref()).is_none_or(|p| p.parameters() == plan.parameters());
        self.change_portal(name, |portal| {
            portal.plan = Some(plan);
            portal.reads = reads;
        });
        prepared.confirm();
        match fits {
            true => Ok(()),
            // Its values were read as what its parameters were then.
            false => Err(bind_again()),
        }
    }
}
