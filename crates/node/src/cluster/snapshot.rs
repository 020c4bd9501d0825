//! Snapshots of ranges, and what a flush lets go of.

use super::core::Core;
use clock::Reading;
use protocol::log::raft::{Input, SnapshotTask};
use store::{Engine, StoreError};

impl<E: Engine> Core<E> {
    pub fn snapshot_task(&mut self, now: &Reading, task: SnapshotTask) -> Result<(), StoreError> {
        match task {
            SnapshotTask::Take { group, .. }
            | SnapshotTask::Read { group, .. }
            | SnapshotTask::Begin { group, .. }
            | SnapshotTask::Install { group, .. } => self.log(now, Input::SnapshotFailed { group }),
            SnapshotTask::Write { .. } | SnapshotTask::Drop { .. } | SnapshotTask::Abandon { .. } => {}
        }
        Ok(())
    }

    pub fn flushed(&mut self, _now: &Reading) {}
}
