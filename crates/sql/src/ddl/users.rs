//! A change of the catalog waits for those who write by what it ends: [`crate::users`].

use crate::catalog::{Oid, key};
use crate::context::StatementContext;
use crate::database::Database;
use crate::transaction::LockTimeout;
use crate::users::{ASK_US, Found, local, question, still, users_of, waits};
use crate::{KvError, SqlError};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often those who are waited for are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// So often, one after the other, all who are left must be seen to wait for locks that a circle is supposed: a second.
const CIRCLE_LOOKS: usize = 200;
/// How often other nodes are asked for theirs, microseconds.
const ASK_EVERY_US: i64 = 50_000;

/// Waits for users of tokens.
pub(crate) struct Users<'a> {
    db: &'a Database,
    statement: &'a StatementContext,
    lock_timeout: &'a LockTimeout,
    tokens: &'a [Bytes],
}

impl<'a> Users<'a> {
    /// Of these tokens.
    pub fn new(
        db: &'a Database,
        statement: &'a StatementContext,
        lock_timeout: &'a LockTimeout,
        tokens: &'a [Bytes],
    ) -> Users<'a> {
        Users { db, statement, lock_timeout, tokens }
    }

    fn here(&self) -> Found {
        local(&self.db.sessions, Some(self.statement.backend.number), self.tokens, self.db.kv.monotonic_us())
    }

    /// Those of other nodes, by node.
    fn elsewhere(&self) -> BTreeMap<u32, Found> {
        let kv = self.db.kv.as_ref();
        if kv.peers().is_empty() {
            return BTreeMap::new();
        }
        let (began_us, patience) = (kv.monotonic_us(), self.statement.patience());
        let mut stop =
            || kv.monotonic_us().saturating_sub(began_us) > ASK_US || patience.check(|| kv.monotonic_us()).is_err();
        let told = kv.ask_peers(&[question(self.tokens)], |_| None, &mut stop).into_iter();
        let found = |answers: &[String]| Found { users: answers.iter().flat_map(|text| users_of(text)).collect() };
        told.map(|told| (told.node, found(&told.answers))).collect()
    }

    /// Keeps others from beginning to write by the tokens, until [`Endings::withdraw`].
    pub fn announce(&self) {
        self.db.endings.announce(self.statement.backend.number, self.tokens);
    }

    /// Waits until those who write by the tokens now have ended. Gives whether they have; `false`, too, if they may wait for this one.
    ///
    /// # Errors
    /// What ends the wait: 57014, and 55P03 about the record of `table`.
    pub fn wait(&self, table: Option<Oid>) -> Result<bool, SqlError> {
        if self.tokens.is_empty() {
            return Ok(false);
        }
        let (mut here, mut elsewhere) = (self.here(), self.elsewhere());
        let any = |here: &Found| !here.users.is_empty() || elsewhere.values().any(|found| !found.users.is_empty());
        if !any(&here) {
            let own = self.statement.backend.number;
            self.db.endings.goes_on(own, true);
            here = self.here();
            if here.users.is_empty() {
                return Ok(false);
            }
            self.db.endings.goes_on(own, false);
        }
        let now_us = || self.db.kv.monotonic_us();
        let began_us = now_us();
        let (mut asked_us, mut looks) = (began_us, 0);
        let (lock, never) = (Mutex::new(()), Condvar::new());
        let _waiting = waits(&self.statement.interrupt, began_us);
        loop {
            let left = || here.users.iter().chain(elsewhere.values().flat_map(|found| &found.users));
            if left().next().is_none() {
                return Ok(true);
            }
            let waited_us = now_us().saturating_sub(began_us);
            let mut rows = BTreeSet::new();
            self.db.kv.look_at_row_waits(&mut |waits| {
                rows.extend(here.users.keys().map(|user| user.0).filter(|session| waits.of(*session).is_some()));
            });
            let all_wait = left().all(|((session, _), waited_us)| waited_us.is_some() || rows.contains(session));
            looks = if all_wait { looks + 1 } else { 0 };
            if looks >= CIRCLE_LOOKS {
                return Ok(false);
            }
            self.statement.patience().check(now_us)?;
            if self.lock_timeout.is_over_after(u64::try_from(waited_us).unwrap_or(0)) {
                let record = |id| Bytes::copy_from_slice(&key::object(key::RELATIONS, id));
                return Err(KvError::LockNotAvailable { key: table.map(record), waited: true }.into());
            }
            never.wait_for(&mut lock.lock(), LOOK_EVERY);
            here = still(&here, &self.here());
            let are_elsewhere = elsewhere.values().any(|found| !found.users.is_empty());
            if are_elsewhere && now_us().saturating_sub(asked_us) >= ASK_EVERY_US {
                let now = self.elsewhere();
                let of = |node: &u32, found: &Found| now.get(node).map_or_else(Found::default, |now| still(found, now));
                elsewhere = elsewhere.iter().map(|(node, found)| (*node, of(node, found))).collect();
                asked_us = now_us();
            }
        }
    }
}
