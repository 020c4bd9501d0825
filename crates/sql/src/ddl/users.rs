//! A change of the catalog waits for those who write by what it ends: [`crate::users`].

use crate::database::Database;
use crate::sessions::{Backend, Sessions};
use crate::transaction::{Interrupt, Kv, LockMode, LockTimeout, Patience, RowWaiter, RowWaits};
use crate::users::{ASK_US, Found, KEPT_OUT_US, ended, ending, local, question, still, users_of, waits};
use crate::{KvError, SqlError};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often those who are waited for are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// So often, one after the other, one who is waited for must be seen to wait for a lock that he is supposed to wait for one of this session's: a second.
const CIRCLE_LOOKS: u32 = 200;
/// So long one at another node must have waited, microseconds.
const CIRCLE_US: i64 = 1_000_000;
/// How often other nodes are asked for theirs, microseconds.
const ASK_EVERY_US: i64 = 50_000;
/// So many questions, one after the other, a node may leave without an answer until those whom it has told of are taken to have ended with it.
const MISSED_MAX: u32 = 20;

/// Those who write by tokens.
#[derive(Default)]
pub(crate) struct All {
    here: Found,
    /// Those of other nodes by node, and how many questions that has left without an answer since.
    elsewhere: BTreeMap<u32, (Found, u32)>,
}

impl All {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.here.users.is_empty() && self.elsewhere.values().all(|(found, _)| found.users.is_empty())
    }

    fn new(here: Found, elsewhere: BTreeMap<u32, Found>) -> All {
        let elsewhere = elsewhere.into_iter().filter(|(_, found)| !found.users.is_empty());
        All { here, elsewhere: elsewhere.map(|(node, found)| (node, (found, 0))).collect() }
    }

    /// Those who write by tokens now; where some were found `before`, those of them that still do. For who need not wait.
    pub fn now(db: &Database, patience: &Patience, tokens: &[Bytes], before: Option<All>) -> All {
        let here = local(&db.sessions, None, tokens, db.kv.monotonic_us());
        let elsewhere = elsewhere(db, patience, &[question(tokens)]);
        match before {
            None => All::new(here, elsewhere),
            Some(mut all) => {
                all.here = still(&all.here, &here);
                all.hear(&elsewhere, &db.kv.peers());
                all
            }
        }
    }

    /// What other nodes answer now of those who were found before.
    fn hear(&mut self, now: &BTreeMap<u32, Found>, members: &[u32]) {
        for (node, (found, missed)) in &mut self.elsewhere {
            (*found, *missed) = match now.get(node) {
                Some(now) => (still(found, now), 0),
                None => (std::mem::take(found), *missed + 1),
            };
        }
        self.elsewhere.retain(|node, (_, missed)| *missed < MISSED_MAX && members.contains(node));
    }
}

/// Looks and waits for users of tokens.
pub(crate) struct Users<'a> {
    /// Of which database.
    pub db: &'a Database,
    /// Who does.
    pub own: &'a Backend,
    /// These.
    pub tokens: &'a [Bytes],
    /// What ends it.
    pub patience: Patience,
    /// What is held meanwhile.
    pub holds: Holds,
    /// Who else would begin to write by them is kept out.
    pub ending: Option<&'a Ending>,
}

/// Tokens that a change is about to end: until this is dropped, or taken back, who has done nothing yet waits before he writes by them, at all nodes that have heard of it
/// (`sql_statement::endings`).
pub(crate) struct Ending {
    kv: Arc<dyn Kv>,
    sessions: Arc<Sessions>,
    change: u64,
    /// Others have been told.
    said: AtomicBool,
}

impl Ending {
    /// Of a change that is its whole transaction. Nothing is said yet.
    pub fn new(db: &Database) -> Ending {
        Ending {
            kv: db.kv.clone(),
            sessions: db.sessions.clone(),
            change: db.kv.unique_id(),
            said: AtomicBool::new(false),
        }
    }

    /// Nobody waits for it any more. Others are told, and not waited for: what they do not hear of ends by itself.
    fn take_back(&self) {
        if !self.said.swap(false, Ordering::Relaxed) {
            return;
        }
        self.sessions.endings.take_back(self.change, self.kv.monotonic_us());
        if !self.kv.peers().is_empty() {
            self.kv.ask_peers(&[ended(self.change)], |_| None, &mut || true);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // Behind a panic it ends by itself.
        if !std::thread::panicking() {
            self.take_back();
        }
    }
}

/// What a session holds while it waits for others, who may come to wait for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Nothing.
    Nothing,
    /// Locks: of a table against other changes of it, of rows. Whoever waits for one of these, himself or by way of others, is not waited for; nor is who waits so long
    /// for what is not known here that it may be one.
    Locks,
    /// The same, of a block, which can be given up: who certainly waits for it makes a deadlock.
    Block,
}

/// Whether somebody who is waited for waits for who waits for him.
enum Circle {
    None,
    /// He may.
    Perhaps,
    /// The session that is waited for does, and has written by the tokens. Who waits for what, from it to one who waits for this session.
    Certain(Vec<RowWaiter>),
    /// It does, and would only write by them: behind its wait it begins its statement anew.
    Anew(u64),
}

/// Those of the other nodes that answer the last of these questions, or those before that.
fn elsewhere(db: &Database, patience: &Patience, questions: &[String]) -> BTreeMap<u32, Found> {
    let kv = db.kv.as_ref();
    if kv.peers().is_empty() {
        return BTreeMap::new();
    }
    let began_us = kv.monotonic_us();
    let mut stop =
        || kv.monotonic_us().saturating_sub(began_us) > ASK_US || patience.check(|| kv.monotonic_us()).is_err();
    let told = kv.ask_peers(questions, |_| None, &mut stop).into_iter();
    let found = |answer: &String| Found { users: users_of(answer).collect() };
    told.filter_map(|told| Some((told.node, found(told.answers.last()?)))).collect()
}

impl Users<'_> {
    fn here(&self) -> Found {
        local(&self.db.sessions, Some(self.own.number), self.tokens, self.db.kv.monotonic_us())
    }

    /// Those who write by the tokens now. Behind that nobody begins to, if others are kept out.
    pub fn find(&self) -> All {
        if self.tokens.is_empty() {
            return All::default();
        }
        let says = self.ending.filter(|_| self.db.options.keeps_out).map(|Ending { change, said, .. }| {
            said.store(true, Ordering::Relaxed);
            self.db.sessions.endings.say(*change, self.tokens, self.db.kv.monotonic_us());
            ending(*change, self.tokens)
        });
        self.find_telling(says)
    }

    /// The same; other nodes are told something in words that those of the release before do not understand, which is also the question.
    pub fn find_telling(&self, says: Option<String>) -> All {
        let questions: Vec<String> = [question(self.tokens)].into_iter().chain(says).collect();
        let elsewhere = elsewhere(self.db, &self.patience, &questions);
        All::new(self.here(), elsewhere)
    }

    /// Waits until those who were found have ended. `false`: they may wait for this session.
    ///
    /// # Errors
    /// What ends the wait: 57014, and 55P03; 40P01 where somebody certainly waits for this block.
    pub fn wait(&self, mut all: All, lock_timeout: &LockTimeout, interrupt: &Interrupt) -> Result<bool, SqlError> {
        let now_us = || self.db.kv.monotonic_us();
        let began_us = now_us();
        let mut asked_us = began_us;
        // How often sessions of this node were seen to wait for locks.
        let mut stuck: BTreeMap<u64, u32> = BTreeMap::new();
        // And how often they were seen to wait for what is not known here.
        let mut unknown: BTreeMap<u64, u32> = BTreeMap::new();
        let holds = self.own.has_locked.load(Ordering::Relaxed);
        let (lock, never) = (Mutex::new(()), Condvar::new());
        let _waiting = waits(interrupt, began_us);
        let (mut ending, asked) = (self.ending, [question(self.tokens)]);
        while !all.is_empty() {
            self.patience.check(now_us)?;
            let waited_us = now_us().saturating_sub(began_us);
            if let Some(ending) = ending.take_if(|_| waited_us >= KEPT_OUT_US) {
                ending.take_back();
            }
            if lock_timeout.is_over_after(u64::try_from(waited_us).unwrap_or(0)) {
                return Err(KvError::LockNotAvailable { key: None, waited: true }.into());
            }
            match self.holds {
                Holds::Nothing => {}
                Holds::Locks | Holds::Block => match self.circle(&all, &mut unknown) {
                    Circle::Certain(circle) if self.holds == Holds::Block => {
                        return Err(KvError::Deadlock { circle: self.closed(circle) }.into());
                    }
                    Circle::Certain(_) | Circle::Perhaps => return Ok(false),
                    Circle::Anew(session) => all.here.users.retain(|user, _| user.0 != session),
                    Circle::None => {}
                },
            }
            if holds && self.are_stuck(&all, &mut stuck) {
                return Ok(false);
            }
            never.wait_for(&mut lock.lock(), LOOK_EVERY);
            all.here = still(&all.here, &self.here());
            all.elsewhere.retain(|_, (found, _)| !found.users.is_empty());
            if !all.elsewhere.is_empty() && now_us().saturating_sub(asked_us) >= ASK_EVERY_US {
                all.hear(&elsewhere(self.db, &self.patience, &asked), &self.db.kv.peers());
                asked_us = now_us();
            }
        }
        Ok(true)
    }

    /// Whether somebody who is waited for waits for a lock of this session's, himself or by way of others; or he, or one of those, for so long for what is not known
    /// here (such a wait as this, a lock at another node) that it may be one.
    fn circle(&self, all: &All, looks: &mut BTreeMap<u64, u32>) -> Circle {
        let (mut circle, mut unknown) = (None, BTreeSet::new());
        self.db.kv.look_at_row_waits(&mut |waits| {
            let mut open: Vec<u64> = all.here.users.keys().map(|user| user.0).collect();
            // Each with who waits for him.
            let mut seen: BTreeMap<u64, Option<u64>> = open.iter().map(|session| (*session, None)).collect();
            while let Some(session) = open.pop().filter(|_| circle.is_none()) {
                let Some((_, before)) = waits.of(session) else {
                    unknown.insert(session);
                    continue;
                };
                if before.contains(&self.own.number) {
                    circle = Some(path(waits, &seen, session));
                }
                for next in before {
                    seen.entry(next).or_insert_with(|| {
                        open.push(next);
                        Some(session)
                    });
                }
            }
        });
        let sessions = self.db.sessions.all();
        if let Some((first, circle)) = circle {
            let has_written = |other: &Arc<Backend>| other.number == first && other.relied.has_written_by(self.tokens);
            return match sessions.iter().any(has_written) {
                true => Circle::Certain(circle),
                false => Circle::Anew(first),
            };
        }
        let waiting = sessions.iter().filter(|other| other.waits_for_lock_since_us().is_some());
        let waiting: BTreeSet<u64> = waiting.map(|other| other.number).collect();
        unknown.retain(|session| waiting.contains(session));
        looks.retain(|session, _| unknown.contains(session));
        for session in unknown {
            *looks.entry(session).or_default() += 1;
        }
        let elsewhere = || all.elsewhere.values().flat_map(|(found, _)| found.users.values());
        let long = looks.values().any(|looks| *looks >= CIRCLE_LOOKS)
            || elsewhere().flatten().any(|waited_us| *waited_us >= CIRCLE_US);
        if long { Circle::Perhaps } else { Circle::None }
    }

    /// A circle with this session in it, which waits for the end of what is written by the tokens.
    fn closed(&self, mut circle: Vec<RowWaiter>) -> Vec<RowWaiter> {
        let key = self.tokens.first().cloned().unwrap_or_default();
        circle.insert(0, RowWaiter { session: Some(self.own.number), key, mode: LockMode::Update });
        circle
    }

    /// Whether somebody who is waited for has waited for locks for so long that he may wait for one of this session's.
    fn are_stuck(&self, all: &All, looks: &mut BTreeMap<u64, u32>) -> bool {
        let mut rows = BTreeSet::new();
        self.db.kv.look_at_row_waits(&mut |waits| {
            rows.extend(all.here.users.keys().map(|user| user.0).filter(|session| waits.of(*session).is_some()));
        });
        let here = all.here.users.iter();
        let waiting: BTreeSet<u64> =
            here.filter(|(user, us)| us.is_some() || rows.contains(&user.0)).map(|(user, _)| user.0).collect();
        looks.retain(|session, _| waiting.contains(session));
        for session in waiting {
            *looks.entry(session).or_default() += 1;
        }
        let elsewhere = all.elsewhere.values().flat_map(|(found, _)| found.users.values());
        looks.values().any(|looks| *looks >= CIRCLE_LOOKS)
            || elsewhere.flatten().any(|waited_us| *waited_us >= CIRCLE_US)
    }
}

/// Who waits for what, from where `seen` begins to a session; and whose session is there.
fn path(waits: &dyn RowWaits, seen: &BTreeMap<u64, Option<u64>>, session: u64) -> (u64, Vec<RowWaiter>) {
    let (mut path, mut first) = (Vec::new(), session);
    let mut at = Some(session);
    while let Some(session) = at {
        first = session;
        path.extend(waits.of(session).map(|(waiter, _)| waiter));
        at = seen.get(&session).copied().flatten();
    }
    path.reverse();
    (first, path)
}
