//! Who changes a table waits for the open transactions that have written to it.
//!
//! # Problem
//! What a transaction has written by a version of a table cannot be committed once that version has ended: its token refuses it (decision 103), with 40001, at READ COMMITTED,
//! too. A block that inserts a row and takes its time is lost to whoever adds a column meanwhile. PostgreSQL lets the ALTER TABLE wait.
//!
//! # Idea
//! A change runs, and knows then which tokens it ends (`ddl::Run::ended`). Sessions say what their open transactions have written by (`reliance::Relied`). If there are such,
//! the change says so to all ([`Endings`]), waits for them, and runs again, where it can. Who would begin to write by one of those tokens meanwhile waits for it: else there would always be another.
//!
//! ```text
//! block A   writes t (by token v) ───────────────────── COMMIT
//! ALTER t            runs: ends v; A writes by v ─ waits ─┤ runs again, COMMIT
//! block B                            writes t: is kept out ──────────────┤ plans by v + 1, writes
//! ```
//!
//! # Invariants
//! 1. Safety is the token's: what is said here is at best the truth of a moment. Whoever was missed is refused at his commit as before.
//! 2. Nobody waits for ever where he would wait for himself: a change waits for those transactions that it finds first, and once all that are left have waited for locks for a second
//!    (`ddl::users`) it goes on (they may wait for it); who is kept out goes on after [`KEPT_OUT_MAX`].
//! 3. A transaction that writes by a token already is not kept out by it.
//! 4. Of a change that announces and looks for users, and a session that says that it is one and looks for announcements, one sees the other. A change that has found none says that it goes on and looks
//!    once more; who becomes a user after that is repeated ([`Endings::has_missed`]).
//! 5. Who would write by a snapshot from before the end of a change takes a new one first, where the level allows it ([`Endings::ended`]).
//! 6. What is announced is taken back when the statement has ended: in a transaction of its own with the commit.
//!
//! # Caveats
//! Who only reads is not waited for (at READ COMMITTED the next statement sees the table as it is then). Sessions of other nodes are asked and waited for, and not kept out. Schemas that are renamed end the tokens of their tables without a wait. A
//! node that does not answer within [`ASK_US`] is not waited for.

use crate::catalog::reliance::Relied;
use crate::sessions::Sessions;
use crate::transaction::{Interrupt, Wait, Waiting};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long other nodes may take to say who theirs are, microseconds.
pub(crate) const ASK_US: i64 = 500_000;
/// How long a statement is kept out.
const KEPT_OUT_MAX: Duration = Duration::from_secs(1);
/// The first word of the question to other nodes.
pub(crate) const QUESTION: &str = "users";

/// Tokens that changes under way are about to end, by which session each, and whether that one has looked for users and goes on.
type Announced = BTreeMap<Bytes, BTreeMap<u64, bool>>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    any: AtomicBool,
    /// Statements that had announced something and are over.
    ended: AtomicU64,
    announced: Mutex<Announced>,
    fewer: Condvar,
}

impl Endings {
    /// A session's change is about to end tokens.
    pub fn announce(&self, session: u64, tokens: &[Bytes]) {
        let mut announced = self.announced.lock();
        for token in tokens {
            announced.entry(token.clone()).or_default().insert(session, false);
        }
        self.any.store(!announced.is_empty(), Ordering::SeqCst);
    }

    /// The session's change has found no user, and goes on (or does not). Those who become users from now on hear of it ([`Endings::has_missed`]); those who did before are found by
    /// whoever looks again.
    pub fn goes_on(&self, session: u64, on: bool) {
        let mut announced = self.announced.lock();
        announced.values_mut().filter_map(|sessions| sessions.get_mut(&session)).for_each(|goes| *goes = on);
    }

    /// After a session has said that it writes by tokens: whether a change of another, which did not see that, goes on to end one.
    pub fn has_missed(&self, session: u64, tokens: &[Bytes]) -> bool {
        if !self.any.load(Ordering::SeqCst) {
            return false;
        }
        let announced = self.announced.lock();
        let goes_on = |sessions: &BTreeMap<u64, bool>| sessions.iter().any(|(by, goes_on)| *by != session && *goes_on);
        tokens.iter().any(|token| announced.get(token).is_some_and(goes_on))
    }

    /// The session's change has ended.
    pub fn withdraw(&self, session: u64) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        let mut announced = self.announced.lock();
        announced.retain(|_, sessions| {
            sessions.remove(&session);
            !sessions.is_empty()
        });
        self.any.store(!announced.is_empty(), Ordering::SeqCst);
        self.fewer.notify_all();
    }

    /// How many changes that were announced are over: a snapshot that was taken after this was asked sees what those have done.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// Before a session writes by tokens: waits for changes of others that are about to end one by which its transaction does not write yet. Gives whether it has waited: then what it
    /// goes by may be of before.
    pub fn keep_out(
        &self,
        session: u64,
        tokens: &[Bytes],
        relied: &Relied,
        begin_wait: impl FnOnce() -> Waiting,
    ) -> bool {
        if !self.any.load(Ordering::SeqCst) {
            return false;
        }
        let mut announced = self.announced.lock();
        let mut waiting = None;
        let mut begin_wait = Some(begin_wait);
        let ends = |announced: &Announced| {
            let by_others = |sessions: &BTreeMap<u64, bool>| sessions.keys().any(|by| *by != session);
            tokens.iter().any(|token| announced.get(token).is_some_and(by_others) && !relied.has(token))
        };
        while ends(&announced) {
            if let Some(begin) = begin_wait.take() {
                waiting = Some(begin());
            }
            if self.fewer.wait_for(&mut announced, KEPT_OUT_MAX).timed_out() {
                break;
            }
        }
        waiting.is_some()
    }
}

/// A transaction that writes by a token: the session, and when the transaction began.
pub(crate) type User = (u64, Option<i64>);

/// What becomes of those who were found first.
#[derive(Default)]
pub(crate) struct Found {
    /// Each with since when it has waited for locks, microseconds.
    pub users: BTreeMap<User, Option<i64>>,
}

/// The sessions of this node whose transactions write by one of the tokens, but for `own`.
pub(crate) fn local(sessions: &Sessions, own: Option<u64>, tokens: &[Bytes], now_us: i64) -> Found {
    let all = sessions.all().into_iter();
    let using = all.filter(|other| Some(other.number) != own && tokens.iter().any(|token| other.relied.has(token)));
    let users = using.map(|other| {
        let waited_us = other.waits_for_lock_since_us().map(|since_us| now_us.saturating_sub(since_us));
        ((other.number, other.activity().transaction_us), waited_us)
    });
    Found { users: users.collect() }
}

/// What other nodes are asked.
pub(crate) fn question(tokens: &[Bytes]) -> String {
    let hex = |token: &Bytes| token.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{QUESTION} {}", tokens.iter().map(hex).collect::<Vec<_>>().join(","))
}

/// The answer: a line for each of this node that writes by one of the tokens. `None`: it is not understood.
pub(crate) fn answer(sessions: &Sessions, now_us: i64, words: &str) -> Option<String> {
    let token = |hex: &str| {
        let digit = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        (0..hex.len()).step_by(2).map(digit).collect::<Option<Vec<u8>>>().map(Bytes::from)
    };
    let tokens = words.split(',').map(token).collect::<Option<Vec<Bytes>>>()?;
    let found = local(sessions, None, &tokens, now_us).users.into_iter();
    let line = |((number, began_us), waited_us): (User, Option<i64>)| {
        format!("{number} {} {}\n", began_us.unwrap_or(-1), waited_us.unwrap_or(-1))
    };
    Some(found.map(line).collect())
}

/// Those of an answer.
pub(crate) fn users_of(answer: &str) -> impl Iterator<Item = (User, Option<i64>)> + '_ {
    answer.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let number = words.next()?.parse().ok()?;
        let mut next = || words.next()?.parse::<i64>().ok();
        let (began_us, waited_us) = (next()?, next()?);
        Some(((number, Some(began_us)), (waited_us >= 0).then_some(waited_us)))
    })
}

/// Those who were found before and are there now.
pub(crate) fn still(before: &Found, now: &Found) -> Found {
    let there = now.users.iter().filter(|(user, _)| before.users.contains_key(*user));
    Found { users: there.map(|(user, waited_us)| (*user, *waited_us)).collect() }
}

/// Others see that it waits, and since when.
pub(crate) fn waits(interrupt: &Interrupt, now_us: i64) -> Waiting {
    interrupt.begin_wait_at(Wait::Row, now_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_is_what_is_read() {
        let told = "7 1000 -1\n9 -1 2000000\nnonsense\n\n";
        let found: Vec<_> = users_of(told).collect();
        assert_eq!(found, [((7, Some(1000)), None), ((9, Some(-1)), Some(2_000_000))]);
        assert_eq!(question(&[Bytes::from_static(b"\x09\xff"), Bytes::from_static(b"\0")]), "users 09ff,00");
    }

    #[test]
    fn who_was_not_there_before_is_not_waited_for() {
        let found = |users: &[u64]| Found { users: users.iter().map(|n| ((*n, Some(1)), None)).collect() };
        let left = still(&found(&[1, 2]), &found(&[2, 3]));
        assert_eq!(left.users.keys().map(|(n, _)| *n).collect::<Vec<_>>(), [2]);
        // Another transaction of the same session is another.
        let later = Found { users: BTreeMap::from([((2, Some(5)), None)]) };
        assert!(still(&left, &later).users.is_empty());
    }

    #[test]
    fn announcements_end_with_their_session() {
        let endings = Endings::default();
        let token = [Bytes::from_static(b"t")];
        endings.announce(1, &token);
        endings.announce(2, &token);
        endings.withdraw(1);
        assert!(endings.any.load(Ordering::SeqCst));
        // Its own keeps nobody out.
        assert!(!endings.keep_out(2, &token, &Relied::default(), || waits(&Interrupt::default(), 0)));
        assert!(!endings.has_missed(1, &token));
        endings.goes_on(2, true);
        assert!(endings.has_missed(1, &token) && !endings.has_missed(2, &token));
        endings.withdraw(2);
        assert!(!endings.any.load(Ordering::SeqCst));
    }
}
