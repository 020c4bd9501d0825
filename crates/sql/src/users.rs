//! Who changes a table waits for the open transactions that have written to it.
//!
//! # Problem
//! What a transaction has written by a version of a table cannot be committed once that version has ended: its token refuses it (decision 103), with 40001, at READ COMMITTED,
//! too. A block that inserts a row and takes its time is lost to whoever adds a column meanwhile. PostgreSQL lets the ALTER TABLE wait.
//!
//! # Idea
//! A change runs, and knows then which tokens it ends (`ddl::Run::ended`). Sessions say what their open transactions have written by (`reliance::Relied`). If there are such, the change
//! gives up all that it has done and holds, waits for them, and runs again.
//!
//! ```text
//! block A   writes t (by token v) ───────────────────── COMMIT
//! ALTER t            runs: ends v; A writes by v; begins anew ─ waits, holds nothing ─┤ runs, COMMIT
//! ```
//!
//! # Invariants
//! 1. Safety is the token's: what is said here is at best the truth of a moment. Whoever was missed, or came later, is refused at his commit as before.
//! 2. A change that is the first of its transaction waits with nothing held. Behind other statements of a block it waits with what they hold, and bars what it names ([`crate::ddl`]'s `barrier`, decision 239). Then somebody
//!    whom it waits for may wait for it: where that is certain it is a deadlock (40P01), where it may be, the change goes on (decision 217).
//!    Who has taken locks that outlive transactions (`pg_advisory_lock`) may be waited for all the same: he goes on once somebody whom he waits for has waited for a lock for a second.
//! 3. It waits for those transactions that it has found, not for later ones, and a statement does so a few times at most; then it goes on, and tokens decide (a block: those who come then wait for it).
//! 4. A change that is its whole transaction keeps others out from its last look until it has committed (decision 224): who would write by what it ends waits, if what he does can begin anew, and he has not written by that
//!    before. While the change waits for others he is kept out for [`KEPT_OUT_US`]: they may wait for him. All others begin by the old version.
//!
//! # Caveats
//! Who only reads is not waited for (at READ COMMITTED the next statement sees the table as it is then). A
//! node that does not answer within [`ASK_US`] when it is asked first is not waited for; one that has told of somebody is, until it has been silent for long. A transaction
//! without a block (a pipeline) is known by its present statement: behind the next one it counts as ended.

use crate::catalog::garbage::Loads;
use crate::sessions::Sessions;
use crate::transaction::{Interrupt, Wait, Waiting};
use bytes::Bytes;
use std::collections::BTreeMap;

/// How long other nodes may take to say who theirs are, microseconds.
pub(crate) const ASK_US: i64 = 500_000;
/// So long a change that waits keeps others out, microseconds.
pub(crate) const KEPT_OUT_US: i64 = 1_000_000;
/// The first word of the question to other nodes.
pub(crate) const QUESTION: &str = "users";
/// The same, where the tokens are about to be ended by a change of that number: who begins to write by them waits for it (`sql_statement::endings`).
pub(crate) const ENDING: &str = "ending";
/// The same, where an open block of that number holds the tokens until it ends: who begins to write by them waits for their locks.
pub(crate) const BARRED: &str = "barred";
/// The first word of the question whether a node makes something.
const MAKING: &str = "making";
/// A change is over.
pub(crate) const ENDED: &str = "ended";

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

fn written(tokens: &[Bytes]) -> String {
    let hex = |token: &Bytes| token.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    tokens.iter().map(hex).collect::<Vec<_>>().join(",")
}

/// Whether a node makes something: the OID of an index that is being made, or of a table of a condition.
pub(crate) fn making(made: u32) -> String {
    format!("{MAKING} {made}")
}

/// The answer to that.
pub(crate) fn is_made(builds: &Loads, question: &str) -> Option<bool> {
    let (MAKING, made) = question.split_once(' ')? else { return None };
    Some(builds.contains(made.parse().ok()?))
}

/// What other nodes are asked.
pub(crate) fn question(tokens: &[Bytes]) -> String {
    format!("{QUESTION} {}", written(tokens))
}

/// What other nodes are told and asked.
pub(crate) fn ending(change: u64, tokens: &[Bytes]) -> String {
    format!("{ENDING} {change} {}", written(tokens))
}

/// What other nodes are told and asked by a block.
pub(crate) fn barred(block: u64, tokens: &[Bytes]) -> String {
    format!("{BARRED} {block} {}", written(tokens))
}

/// What other nodes are told.
pub(crate) fn ended(change: u64) -> String {
    format!("{ENDED} {change}")
}

/// The answer to one of these: a line for each of this node that writes by one of the tokens. `None`: it is not understood.
pub(crate) fn answer(sessions: &Sessions, now_us: i64, question: &str) -> Option<String> {
    let (what, words) = question.split_once(' ')?;
    match what {
        QUESTION => users_told(sessions, now_us, &tokens_of(words)?),
        ENDING | BARRED => {
            let (change, words) = words.split_once(' ')?;
            let (change, tokens) = (change.parse().ok()?, tokens_of(words)?);
            match what {
                BARRED => sessions.endings.bar(change, &tokens, now_us),
                _ => sessions.endings.say(change, &tokens, now_us),
            }
            users_told(sessions, now_us, &tokens)
        }
        ENDED => {
            sessions.endings.take_back(words.parse().ok()?, now_us);
            Some(String::new())
        }
        _ => None,
    }
}

fn tokens_of(words: &str) -> Option<Vec<Bytes>> {
    let token = |hex: &str| {
        let digit = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        (0..hex.len()).step_by(2).map(digit).collect::<Option<Vec<u8>>>().map(Bytes::from)
    };
    words.split(',').map(token).collect()
}

fn users_told(sessions: &Sessions, now_us: i64, tokens: &[Bytes]) -> Option<String> {
    let found = local(sessions, None, tokens, now_us).users.into_iter();
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
        let tokens = [Bytes::from_static(b"\x09\xff"), Bytes::from_static(b"\0")];
        assert_eq!(question(&tokens), "users 09ff,00");
        assert_eq!((ending(7, &tokens), ended(7)), ("ending 7 09ff,00".into(), "ended 7".into()));
        assert_eq!(barred(8, &tokens), "barred 8 09ff,00");
        assert_eq!(tokens_of("09ff,00").as_deref(), Some(&tokens[..]));
        let builds = Loads::default();
        builds.begin(7);
        assert_eq!((is_made(&builds, &making(7)), is_made(&builds, &making(8))), (Some(true), Some(false)));
        assert_eq!(is_made(&builds, "users 7"), None);
        // Who understands nothing else understands that nobody is asked for.
        assert_eq!(answer(&crate::sessions::Backend::alone().sessions, 0, &question(&[])).as_deref(), Some(""));
    }

    #[test]
    fn what_is_about_to_end_is_told() {
        let backend = crate::sessions::Backend::alone();
        let (sessions, token) = (&backend.sessions, [Bytes::from_static(b"\x09\xff")]);
        let is_ending = || sessions.endings.contains(&token, || 1);
        assert_eq!(answer(sessions, 0, &ending(7, &token)).as_deref(), Some(""));
        assert!(is_ending());
        for misread in [
            "ending",
            "ending x 09ff",
            "ending 8",
            "barred",
            "barred 8",
            "barred x 09ff",
            "ended",
            "ended x",
            "users 0",
            "others 09ff",
        ] {
            assert_eq!(answer(sessions, 0, misread), None, "{misread}");
        }
        assert_eq!(answer(sessions, 0, &barred(8, &token)).as_deref(), Some(""));
        assert_eq!(answer(sessions, 0, &ended(7)).as_deref(), Some(""));
        let held = [(token[0].clone(), 8)];
        assert!(!is_ending() && sessions.endings.barred(&token, || i64::MAX) == held);
        assert_eq!(answer(sessions, 0, &ended(8)).as_deref(), Some(""));
        assert!(sessions.endings.barred(&token, || i64::MAX).is_empty());
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
}
