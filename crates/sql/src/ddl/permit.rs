//! Few statements write their tables anew at a time: what their loads hold is counted nowhere, and so many fit the part of the memory that is given to nobody.
//!
//! # Idea
//! A permit is a lock, one of a few. Whoever has one goes on to its end and waits for no other transaction: its table is behind its gate before, and those who had written to it have ended. Where no permit is free the gate is opened
//! again, and nothing is held until one is.
//!
//! # Invariants
//! 1. Who waits for those who have written to its table holds no permit, but for [`HELD_MS_MAX`] in each of its waits (the guard, the users, the version): a block that stays open keeps nobody else from a permit.
//! 2. Who waits for a permit keeps nobody from writing, and has no snapshot open but for the moment of a look: nothing is kept for it.
//! 3. Whichever permit comes free is taken.
//!
//! # Caveats
//! Who waits is not in a queue: who comes when one has just come free may have it. Other loads (ALTER TABLE .. TYPE, CREATE INDEX, COPY, CREATE TABLE AS) ask for none.

use super::exclusive::Gates;
use super::load::loads_max;
use super::online::{Online, STEP_ATTEMPTS_MAX};
use crate::catalog::{Oid, key};
use crate::transaction::{Isolation, LockMode, LockTimeout, LockWait, Transaction};
use crate::users::waits;
use crate::{KvError, SqlError, SqlState};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::time::Duration;

/// So many statements write their tables anew at a time, where there is memory for so many loads.
const TOGETHER_MAX: u32 = 2;
/// So long who has waited for a permit keeps it while others keep its table, milliseconds.
const HELD_MS_MAX: u64 = 1000;
/// How often who waits asks whether he is to go on.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// Between his looks for a free one he asks once, then twice as often, and so on; so often at most.
const ASKS_MAX: u32 = 50;

/// A table behind its gate, which nobody writes to any more, and the permit.
pub(super) struct Admitted<'a> {
    /// (The gate is opened before the permit goes.)
    pub gates: Gates<'a>,
    pub permit: Box<dyn Transaction>,
}

/// How many statements write their tables anew at a time on a node of so much memory.
fn together_max(memory_bytes: Option<usize>) -> u32 {
    memory_bytes
        .map_or(TOGETHER_MAX, |bytes| u32::try_from(loads_max(bytes)).unwrap_or(u32::MAX).clamp(1, TOGETHER_MAX))
}

impl<'a> Online<'a> {
    /// Waits for the table and for a permit. `None`: it is not there any more. `looks` is asked once the table is held, before its gate is closed.
    ///
    /// # Errors
    /// What `looks` says; what ended its waits; 40001 where others were met each time.
    pub(super) fn admitted(
        &mut self,
        table: Oid,
        looks: &dyn Fn(&Self) -> Result<(), SqlError>,
    ) -> Result<Option<Admitted<'a>>, SqlError> {
        // Where none is free nobody is kept from writing before one is.
        let mut permit = match self.free_permit()? {
            Some(_) => None,
            None => Some(self.wait_for_permit()?),
        };
        for _ in 0..STEP_ATTEMPTS_MAX {
            let own = self.options.lock_timeout.clone();
            let hastens = permit.is_some() && own.ms().is_none_or(|ms| ms > HELD_MS_MAX);
            if hastens {
                self.options.lock_timeout = LockTimeout::default();
                self.options.lock_timeout.set_ms(HELD_MS_MAX);
            }
            let closed = self.behind_gate(table, looks);
            self.options.lock_timeout = own;
            let gates = match closed {
                // They are waited for without it (invariant 1).
                Err(e) if hastens && e.state == SqlState::LOCK_NOT_AVAILABLE => {
                    permit = None;
                    continue;
                }
                closed => closed?,
            };
            let Some(gates) = gates else { return Ok(None) };
            let free = match permit.take() {
                Some(permit) => Some(permit),
                None => self.free_permit()?,
            };
            if let Some(permit) = free {
                return Ok(Some(Admitted { gates, permit }));
            }
            drop(gates);
            permit = Some(self.wait_for_permit()?);
        }
        let reason = "other statements wrote their tables anew, or others wrote to this one, each time".to_owned();
        Err(KvError::Restart { reason, key: None }.into())
    }

    /// Nobody else changes the table, nor writes to it. `None`: it is not there any more.
    fn behind_gate(
        &mut self,
        table: Oid,
        looks: &dyn Fn(&Self) -> Result<(), SqlError>,
    ) -> Result<Option<Gates<'a>>, SqlError> {
        let Some(guard) = self.hold_by_id(table)? else { return Ok(None) };
        looks(self)?;
        let mut gates = Gates::new(self.db, guard, BTreeSet::from([table]));
        let tokens = self.close_gates(&gates.tables)?;
        tokens.iter().try_for_each(|token| gates.guard.hold(token, LockMode::Update))?;
        Ok(Some(gates))
    }

    /// A permit that nobody has now.
    fn free_permit(&self) -> Result<Option<Box<dyn Transaction>>, SqlError> {
        let mut permit = self.begin(Isolation::RepeatableRead)?;
        for number in 0..together_max(self.db.options.memory_bytes) {
            if permit.lock(&key::permit(number), LockWait::Skip)? {
                return Ok(Some(permit));
            }
        }
        permit.rollback();
        Ok(None)
    }

    /// Waits for one, in fresh transactions (invariants 2 and 3).
    fn wait_for_permit(&self) -> Result<Box<dyn Transaction>, SqlError> {
        let now_us = || self.db.kv.monotonic_us();
        let (began_us, patience) = (now_us(), self.context.patience());
        let (lock, never) = (Mutex::new(()), Condvar::new());
        let mut asks = 1;
        let _waiting = waits(&self.options.interrupt, began_us);
        loop {
            if let Some(permit) = self.free_permit()? {
                return Ok(permit);
            }
            for _ in 0..asks {
                patience.check(now_us)?;
                let waited_us = now_us().saturating_sub(began_us);
                if self.options.lock_timeout.is_over_after(u64::try_from(waited_us).unwrap_or(0)) {
                    return Err(KvError::LockNotAvailable { key: Some(key::permit(0)), waited: true }.into());
                }
                never.wait_for(&mut lock.lock(), ASK_EVERY);
            }
            asks = (2 * asks).min(ASKS_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_a_time_as_there_is_memory_for() {
        for (mib, together) in [(128, 1), (512, 1), (1024, 2), (65536, 2)] {
            assert_eq!(together_max(Some(mib << 20)), together, "{mib} MiB");
        }
        assert_eq!(together_max(None), TOGETHER_MAX);
    }
}
