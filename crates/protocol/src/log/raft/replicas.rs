//! All replicas of one store.

use super::error::{Error, Refused};
use super::ids::{GroupId, RecordNumber};
use super::input::Input;
use super::options::Options;
use super::outputs::{Outputs, Proposed};
use bytes::Bytes;
use clock::{HybridClock, Reading, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All replicas of one store.
#[derive(Debug)]
pub struct Replicas {
    options: Options,
}

/// A store's log is read back.
#[derive(Debug)]
pub struct Recovery {
    options: Options,
}

impl Recovery {
    /// Begins. The hybrid clock is the node's own: readers ratchet it to their snapshots, and the leaders here stamp by it.
    pub fn new(options: Options, _clock: Arc<HybridClock>) -> Self {
        Recovery { options }
    }

    /// One record, in order. The first may have any number above 0.
    ///
    /// # Errors
    /// It is not a record of this version.
    pub fn record(&mut self, _number: RecordNumber, _bytes: &Bytes) -> Result<(), Error> {
        Ok(())
    }

    /// The log has no more. `applied` says, for each group, up to where the driver's state has applied it, durably; committed entries
    /// after it are handed out again.
    ///
    /// # Errors
    /// The log has less than was applied.
    pub fn finish(self, _now: &Reading, _applied: &BTreeMap<GroupId, u64>) -> Result<Replicas, Error> {
        Ok(Replicas { options: self.options })
    }
}

impl Replicas {
    /// One input. Outputs gather until [`Replicas::drain`].
    ///
    /// # Errors
    /// The input was refused, and has changed nothing; but of an envelope the other parts were taken.
    pub fn step(&mut self, _now: &Reading, _input: Input) -> Result<(), Error> {
        Ok(())
    }

    /// Proposes a command to the leader here, with a timestamp above `floor`.
    ///
    /// # Errors
    /// It was not taken, and is certainly not in the log.
    pub fn propose(
        &mut self,
        _now: &Reading,
        _group: GroupId,
        _payload: Bytes,
        _floor: Timestamp,
    ) -> Result<Proposed, Refused> {
        Err(Refused::NotLeader { hint: None })
    }

    /// Everything that has gathered.
    pub fn drain(&mut self) -> Outputs {
        Outputs::default()
    }

    /// The timestamps at which the leader here may serve: above the first, up to the second. `None` where it does not lead, or not yet, or
    /// has handed over. A lease once given is good for ever up to its end, unless the group is in [`Outputs::leases`] again.
    pub fn lease(&self, _group: GroupId) -> Option<(Timestamp, Timestamp)> {
        None
    }

    /// What is closed here: no later entry of the group has a timestamp at or below the first; whoever has applied the group up to the
    /// place has all that have.
    pub fn closed(&self, _group: GroupId) -> Option<(Timestamp, u64)> {
        None
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.options
    }
}
