//! Changes of a block, and who would write by what they end: both sides of [`crate::ddl::Barrier`], and of what is about to end by a change that is its whole transaction (decisions 224, 239).

use super::active::Active;
use super::prepared::Prepared;
use super::schema_change::users_waited_for;
use super::{STATEMENT_ATTEMPTS_MAX, Session};
use crate::catalog::Uses;
use crate::database::Database;
use crate::ddl::{Barrier, Holds, UsersFound};
use crate::plan::Plan;
use crate::transaction::{Isolation, LockMode, LockWait};
use crate::users::waits;
use crate::{KvError, SqlError};
use bytes::Bytes;
use clock::Timestamp;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often whoever waits for a change looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Why a statement that would write runs again.
fn change_waited_for() -> SqlError {
    KvError::Restart { reason: "a change of the table was waited for".into(), key: None }.into()
}

impl Active {
    /// So much is barred.
    pub(super) fn barred(&self) -> usize {
        self.barrier.as_ref().map_or(0, Barrier::len)
    }
}

impl Session {
    /// A change inside a block ends these: until the block is over nobody begins to write by them. Waits for those who have, with what the block holds. Where the change is the first of its transaction they are
    /// given back instead: it is to give up what it holds, and wait then.
    ///
    /// # Errors
    /// A restart, at READ COMMITTED: the change is to see what they have done; what ends the wait.
    pub(super) fn bar(&mut self, db: &Database, tokens: &[Bytes]) -> Result<Option<UsersFound>, SqlError> {
        let Some(active) = self.active.as_mut().filter(|_| db.options.waits_for_users) else { return Ok(None) };
        let tokens = active.barrier.as_ref().map_or_else(|| tokens.to_vec(), |barrier| barrier.missing(tokens));
        if tokens.is_empty() {
            return Ok(None);
        }
        let mut says = None;
        if db.options.keeps_out {
            active.txn.with(|t| {
                t.lock_ahead(&tokens, LockMode::Update);
                tokens.iter().try_for_each(|token| t.hold(token, LockMode::Update))
            })?;
            says = Some(active.barrier.get_or_insert_with(|| Barrier::new(db)).bar(&tokens));
        }
        let (first, isolation) = (active.has_done_nothing(), active.isolation);
        let found = self.users_of(db, &tokens, Holds::Block).find_telling(says);
        if found.is_empty() {
            return Ok(None);
        }
        let repeats = self.may_wait_for_users();
        if first && repeats {
            return Ok(Some(found));
        }
        let users = self.users_of(db, &tokens, Holds::Block);
        let ended = users.wait(found, &self.backend.lock_timeout, &self.interrupt)?;
        self.has_waited_for_users(ended);
        match repeats && !first && isolation == Isolation::ReadCommitted {
            true => Err(users_waited_for()),
            false => Ok(None),
        }
    }

    /// Who is to write by what a change is about to end begins anew when that is over: his transaction, if it has done nothing yet; at READ COMMITTED else this statement, unless it has written by what that
    /// change ends (`mark`: what it had written by before). So the change does not wait for him, and whoever waits for him does so for as long as the change keeps others out. The first time at once, since it
    /// may be over here. All others go on, and are waited for, or refused at their commit. (Who writes by a gated version waits there: decision 216.)
    ///
    /// # Errors
    /// A restart; what ends the wait.
    pub(super) fn wait_for_changes(&mut self, tokens: &[Bytes], mark: usize) -> Result<(), SqlError> {
        let now_us = || self.db.kv.monotonic_us();
        let endings = &self.db.sessions.endings;
        let Some(active) = self.active.as_ref().filter(|_| !self.backend.effects.is_final()) else { return Ok(()) };
        if !endings.contains(tokens, now_us) {
            return Ok(());
        }
        match active.has_done_nothing() {
            true => self.restart(),
            false if active.isolation != Isolation::ReadCommitted => return Ok(()),
            false if endings.contains(&self.backend.relied.before(mark), now_us) => return Ok(()),
            false => self.backend.relied.back_to(mark),
        }
        if std::mem::replace(&mut self.met_ending, true) {
            self.give_back_tried();
            let (db, patience) = (self.db.clone(), self.patience());
            let now_us = || db.kv.monotonic_us();
            let began_us = now_us();
            let (lock, never) = (Mutex::new(()), Condvar::new());
            let _waiting = waits(&self.interrupt, began_us);
            while db.sessions.endings.contains(tokens, now_us) {
                patience.check(now_us)?;
                let waited_us = u64::try_from(now_us().saturating_sub(began_us)).unwrap_or(0);
                if self.backend.lock_timeout.is_over_after(waited_us) {
                    return Err(KvError::LockNotAvailable { key: None, waited: true }.into());
                }
                never.wait_for(&mut lock.lock(), LOOK_EVERY);
            }
        }
        Err(change_waited_for())
    }

    /// Whoever writes by versions that are held holds them, and waits for who has taken them for himself; and for blocks that have barred what he writes by. `repeats`: the statement is repeated where it may be.
    /// Whether it has waited for such, and goes on.
    ///
    /// # Errors
    /// A restart; those of the locks.
    pub(super) fn hold_versions(&self, prepared: &Prepared, repeats: bool) -> Result<bool, SqlError> {
        let Some(active) = self.active.as_ref() else { return Ok(false) };
        let uses = prepared.uses().filter(|_| self.db.sessions.endings.any());
        let is_barred = |uses: &Arc<Uses>| !self.barred_for(uses.tokens(), active.written_by).is_empty();
        if uses.as_ref().is_some_and(is_barred) {
            self.give_back_tried();
        }
        let Some(gated) = prepared.gated_uses() else {
            return uses.map_or(Ok(false), |uses| self.wait_at_barriers(uses.tokens(), active.written_by, repeats));
        };
        let hold = || gated.gated().try_for_each(|table| active.catalog.hold(table));
        let Some(uses) = uses else {
            hold()?;
            return Ok(false);
        };
        let free = active.txn.with(|t| t.savepoint());
        hold()?;
        if is_barred(&uses) {
            // Who is waited for may come to one of these gates.
            active.txn.with(|t| t.release_since(free));
        }
        let waited = self.wait_at_barriers(uses.tokens(), active.written_by, repeats)?;
        if waited {
            hold()?;
        }
        Ok(waited)
    }

    /// Who is to write by what a block has barred waits for its lock, unless he has written by that before (`mark`). Meanwhile he writes by nothing of what he is to. Behind that he begins anew, as where a change
    /// of a whole transaction was waited for; or goes on, if he cannot and it is as it was: whether he has waited.
    ///
    /// # Errors
    /// A restart; those of the locks.
    pub(super) fn wait_at_barriers(&self, tokens: &[Bytes], mark: usize, repeats: bool) -> Result<bool, SqlError> {
        let Some(active) = self.active.as_ref() else { return Ok(false) };
        let (endings, relied) = (&self.db.sessions.endings, &self.backend.relied);
        let can = active.has_done_nothing() || active.isolation == Isolation::ReadCommitted;
        let begins_anew = repeats && can && !self.backend.effects.is_final() && !self.met_barrier.get();
        let mut barred = self.barred_for(tokens, mark);
        if barred.is_empty() {
            return Ok(false);
        }
        let said = relied.behind(mark);
        // The locks are only waited for: who begins anew may come to wait for another change, which is to be given them.
        let free = active.txn.with(|t| t.savepoint());
        let mut passed: BTreeSet<Bytes> = BTreeSet::new();
        while !barred.is_empty() {
            relied.back_to(mark);
            for (token, block) in barred {
                let holds = active.txn.with(|t| {
                    t.lock_as(&token, LockMode::KeyShare, LockWait::Wait)?;
                    Ok::<_, KvError>(!t.is_full_of_locks())
                })?;
                if holds {
                    // Nobody else has it, whatever was said. (Others may have planned before that, and look only now.)
                    endings.is_over(&token, block, self.db.kv.monotonic_us());
                }
                passed.insert(token);
            }
            if begins_anew {
                break;
            }
            // Who goes on is known by what he says: before the locks go, so whoever bars one of these next waits for him. Who has barred another of his tokens meanwhile has not seen him.
            relied.add(&said);
            barred = self.barred_for(tokens, mark);
            barred.retain(|(token, _)| !passed.contains(token));
        }
        let looked = if begins_anew { Ok(()) } else { self.look_for_ended(&said, &passed) };
        active.txn.with(|t| t.release_since(free));
        looked?;
        match begins_anew {
            true => {
                self.met_barrier.set(true);
                Err(change_waited_for())
            }
            false => Ok(true),
        }
    }

    /// Who has waited and goes on was nobody's user meanwhile, and what he is to go by may have ended in a way that no word says any more. He says it again by now, so that from here on he is waited for. What he has `passed`
    /// has been looked at as he was given its lock; of what somebody holds now the loop before this knows.
    ///
    /// # Errors
    /// A restart.
    fn look_for_ended(&self, said: &[Bytes], passed: &BTreeSet<Bytes>) -> Result<(), SqlError> {
        let Some(active) = self.active.as_ref() else { return Ok(()) };
        let tokens: BTreeSet<Bytes> = said.iter().filter(|token| !passed.contains(*token)).cloned().collect();
        let tokens = Vec::from_iter(tokens);
        active.txn.with(|t| {
            t.lock_ahead(&tokens, LockMode::KeyShare);
            for token in &tokens {
                match t.lock_as(token, LockMode::KeyShare, LockWait::NoWait) {
                    Err(KvError::LockNotAvailable { .. }) => {}
                    looked => drop(looked?),
                }
            }
            Ok(())
        })
    }

    /// A statement that is repeated has kept the locks of rows that it has tried to write. Before it waits for a change it gives them back: the change may wait for who waits for one of these.
    fn give_back_tried(&self) {
        let Some(active) = self.active.as_ref() else { return };
        if let Some(mark) = active.tried_from.or(active.beginning.filter(|_| active.has_done_nothing())) {
            active.txn.with(|t| t.release_since(mark));
        }
    }

    /// The plan of a query that locks rows and is run by another statement (DECLARE), which does nothing else yet: so where its tables are changed it waits first, and is planned behind that. One that locks nothing, too.
    ///
    /// # Errors
    /// Those of planning, of the locks; a restart above READ COMMITTED, if the transaction has done something.
    pub(super) fn plan_to_hold(
        &mut self,
        prepared: &Prepared,
        as_of: Option<Timestamp>,
    ) -> Result<Arc<dyn Plan>, SqlError> {
        let (mut mark, mut attempts) = (None, 0);
        loop {
            attempts += 1;
            self.ensure_active(as_of)?;
            if let Some(active) = self.active.as_mut().filter(|active| active.isolation == Isolation::ReadCommitted) {
                mark.get_or_insert_with(|| active.txn.with(|t| t.savepoint()));
            }
            let plan = self.plan_of(prepared);
            let held = plan.and_then(|plan| match plan.is_read_only() {
                true => Ok(plan),
                false => self.begin_write(prepared).map(|_| plan),
            });
            let refused = match held {
                Err(e) if SqlError::retry(&e) && attempts < STATEMENT_ATTEMPTS_MAX => e,
                held => return held,
            };
            self.patience().check(|| self.db.kv.monotonic_us())?;
            // Nobody was told of its shape.
            prepared.forget_plan();
            match (self.active.as_mut(), mark) {
                (Some(active), _) if active.has_done_nothing() => {
                    self.restart();
                    mark = None;
                }
                (Some(active), Some(mark)) => {
                    active.txn.with(|t| t.rollback_to(mark));
                    active.forget_relied();
                    self.backend.relied.back_to(active.written_by);
                }
                _ => return Err(refused),
            }
        }
    }

    /// What blocks have barred of what a statement is to write by; not what the transaction has barred itself, nor what its statements have written by before (`mark`).
    pub(super) fn barred_for(&self, tokens: &[Bytes], mark: usize) -> Vec<(Bytes, u64)> {
        let mut barred = self.db.sessions.endings.barred(tokens, || self.db.kv.monotonic_us());
        if barred.is_empty() {
            return barred;
        }
        let own = self.active.as_ref().and_then(|active| active.barrier.as_ref());
        let written = self.backend.relied.before(mark);
        barred.retain(|(token, _)| !written.contains(token) && own.is_none_or(|own| !own.has(token)));
        barred
    }

    /// A statement that has written may have waited for a row of a block that has barred its table since, and did not wait for it: the block is over then, and what it has gone by may have ended. Who still holds a token waits for
    /// this session.
    ///
    /// # Errors
    /// A restart.
    pub(super) fn look_back(&self, prepared: &Prepared) -> Result<(), SqlError> {
        let Some(active) = self.active.as_ref().filter(|_| self.db.sessions.endings.any()) else { return Ok(()) };
        let can = active.has_done_nothing() || active.isolation == Isolation::ReadCommitted;
        let Some(uses) = prepared.uses().filter(|_| can && !self.backend.effects.is_final()) else { return Ok(()) };
        for (token, _) in self.barred_for(uses.tokens(), active.written_by) {
            let looked = active.txn.with(|t| {
                let free = t.savepoint();
                let looked = t.lock_as(&token, LockMode::KeyShare, LockWait::NoWait);
                t.release_since(free);
                looked
            });
            match looked {
                Err(KvError::LockNotAvailable { .. }) => {}
                looked => drop(looked?),
            }
        }
        Ok(())
    }
}
