//! Snapshots that are held for long: while a transaction can read the past, nothing of it is collected.
//!
//! A block whose snapshot is older than `timeball.snapshot_age_max` is rolled back: by whoever serves the session, while it waits for its
//! client ([`Session::give_up_old_snapshot`]), or when its next statement comes. Every statement then fails with 72000 until the block's
//! end, COMMIT too: what it would have committed is lost. A statement that is under way goes on; `statement_timeout` bounds it. But where it waits for a client
//! that does not read, in a block or alone, its connection ends ([`Session::may_wait_for_client`]).

use super::{Block, Session};
use crate::syntax::Command;
use crate::{SqlError, SqlState};
use std::sync::atomic::Ordering::Relaxed;

/// 72000
pub(super) fn too_old() -> SqlError {
    SqlError::new(SqlState::SNAPSHOT_TOO_OLD, "snapshot too old")
        .detail("The transaction was rolled back, because its snapshot was older than timeball.snapshot_age_max.")
        .hint("Run the transaction again, in less time, or raise timeball.snapshot_age_max.")
}

impl Session {
    /// Whether a statement may go on waiting until its client reads, to be asked now and then while it does: not once the snapshot that it holds is too old, nor once another session has ended this one.
    pub fn may_wait_for_client(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (db, backend, limit_ms) = (self.db.clone(), self.backend.clone(), self.snapshot_age_ms_max.clone());
        let interrupt = self.interrupt.clone();
        move || {
            if interrupt.is_ended() {
                return false;
            }
            let limit_us = limit_ms.load(Relaxed).saturating_mul(1000);
            let age_us = |(_, taken_us)| db.kv.monotonic_us().saturating_sub(taken_us).max(0).unsigned_abs();
            limit_us == 0 || backend.snapshot().is_none_or(|snapshot| age_us(snapshot) < limit_us)
        }
    }

    /// The milliseconds until the snapshot of the open block is too old; `None`: never.
    pub fn snapshot_left_ms(&self) -> Option<u64> {
        let limit_ms = self.settings.snapshot_age_ms_max;
        let active = self.active.as_ref().filter(|_| limit_ms > 0 && self.block == Block::Open)?;
        let age_us = self.db.kv.monotonic_us().saturating_sub(active.snapshot_us).max(0).unsigned_abs();
        // In full: one that is left at the last moment would be looked for again and again.
        Some(limit_ms.saturating_mul(1000).saturating_sub(age_us).div_ceil(1000))
    }

    /// A statement is over: its locks may have moved the snapshot up, which is as old as that from here on.
    pub(super) fn follow_snapshot(&mut self) {
        let Some(active) = self.active.as_mut().filter(|active| active.as_of.is_none()) else { return };
        let snapshot = active.txn.with(|t| t.snapshot());
        if snapshot != active.snapshot {
            (active.snapshot, active.snapshot_us) = (snapshot, self.db.kv.monotonic_us());
        }
    }

    /// Rolls the open block's transaction back if its snapshot is too old. Says whether it was.
    pub fn give_up_old_snapshot(&mut self) -> bool {
        let old = self.snapshot_left_ms() == Some(0);
        if old {
            // What a COPY has loaded goes with it; the COPY itself ends at its next message.
            self.leave_load();
            self.drop_active();
            self.block = Block::Failed;
            self.too_old = true;
            self.backend.sees(None);
        }
        old
    }

    /// What the session does under a lock that may be another's by now it should not do: it ends, as if its node had.
    fn refuse_lost_locks(&mut self) -> Result<(), SqlError> {
        if !self.backend.has_lost_locks() {
            return Ok(());
        }
        self.interrupt.end();
        Err(SqlError::new(SqlState::ADMIN_SHUTDOWN, "terminating connection: its advisory locks may be held by others now")
            .detail("This node has not heard who leads the range of the catalog, where they are held, for so long that they were given up.")
            .hint("Connect to a node that reaches a majority, and take them again."))
    }

    /// Before a statement: refuses it where the snapshot is too old; ROLLBACK is welcome.
    pub(super) fn refuse_old_snapshot(&mut self, command: Option<&Command>) -> Result<(), SqlError> {
        self.refuse_lost_locks()?;
        self.follow_snapshot();
        self.give_up_old_snapshot();
        match command {
            Some(Command::Commit { .. }) if self.too_old => {
                self.rollback();
                Err(too_old())
            }
            Some(Command::Rollback { .. } | Command::RollbackTo(_)) => Ok(()),
            _ if self.too_old => self.refuse_in_failed_block(),
            _ => Ok(()),
        }
    }
}
