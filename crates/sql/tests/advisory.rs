//! Advisory locks of one process: order, counts, circles, bounds.
// Tests own threads: sessions that wait for each other.
#![allow(clippy::disallowed_methods)]

use sql::SqlError;
use sql::advisory::{AdvisoryLocks, KEYS_MAX, Key, LocalLocks, Mode, Refusal, Request, Scope, Shown};
use std::sync::Arc;

const KEY: Key = Key { database: 5, class: 0, object: 7, pair: false };
const OTHER: Key = Key { object: 8, ..KEY };

fn request(session: u64, key: Key, mode: Mode) -> Request {
    Request { session, key, mode, scope: Scope::Session }
}

fn wait(locks: &LocalLocks, request: Request) -> Result<(), Refusal> {
    locks.lock(request, &mut || Ok(()))
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

#[test]
fn locks_are_counted_and_exclude() {
    let locks = LocalLocks::default();
    assert_eq!(locks.try_lock(request(1, KEY, Mode::Exclusive)), Some(true));
    assert_eq!(locks.try_lock(request(1, KEY, Mode::Exclusive)), Some(true));
    assert_eq!(locks.try_lock(request(2, KEY, Mode::Share)), Some(false));
    assert!(locks.unlock(1, KEY, Mode::Exclusive));
    assert_eq!(locks.try_lock(request(2, KEY, Mode::Share)), Some(false));
    assert!(!locks.unlock(1, KEY, Mode::Share) && !locks.unlock(2, KEY, Mode::Exclusive));
    assert!(locks.unlock(1, KEY, Mode::Exclusive));
    assert!(!locks.unlock(1, KEY, Mode::Exclusive));
    for session in [2, 3] {
        assert_eq!(locks.try_lock(request(session, KEY, Mode::Share)), Some(true));
    }
    assert_eq!(locks.try_lock(request(2, KEY, Mode::Exclusive)), Some(false));
    locks.release_session(3);
    assert_eq!(locks.try_lock(request(2, KEY, Mode::Exclusive)), Some(true));
    locks.release_session(2);
    assert!(locks.shown().is_empty());
}

#[test]
fn a_transaction_gives_up_what_it_took_since_a_mark() {
    let locks = LocalLocks::default();
    let take = |key| locks.try_lock(Request { scope: Scope::Transaction, ..request(1, key, Mode::Exclusive) });
    assert_eq!(take(KEY), Some(true));
    let mark = locks.transaction_mark(1);
    assert_eq!((mark, take(OTHER), take(KEY)), (1, Some(true), Some(true)));
    assert!(!locks.unlock(1, KEY, Mode::Exclusive), "it is the transaction's");
    locks.release_transaction(1, mark);
    assert_eq!(locks.try_lock(request(2, OTHER, Mode::Exclusive)), Some(true));
    assert_eq!(locks.try_lock(request(2, KEY, Mode::Exclusive)), Some(false));
    locks.release_transaction(1, 0);
    assert_eq!(locks.try_lock(request(2, KEY, Mode::Exclusive)), Some(true));
}

#[test]
fn who_waits_is_served_in_order_and_can_be_stopped() {
    let locks = Arc::new(LocalLocks::default());
    assert_eq!(locks.try_lock(request(1, KEY, Mode::Share)), Some(true));
    let writer = std::thread::spawn({
        let locks = locks.clone();
        move || wait(&locks, request(2, KEY, Mode::Exclusive))
    });
    until(|| locks.shown().len() == 2);
    assert_eq!(locks.try_lock(request(3, KEY, Mode::Share)), Some(false), "the writer came first");
    assert_eq!(locks.try_lock(request(1, KEY, Mode::Share)), Some(true), "it holds it already");
    let end = SqlError::unsupported("waiting");
    let stopped = locks.lock(request(3, KEY, Mode::Share), &mut || Err(end.clone()));
    assert_eq!(stopped, Err(Refusal::Ended(end)));
    locks.unlock_all(1);
    assert_eq!(writer.join().unwrap(), Ok(()));
    assert_eq!(locks.shown(), [Shown { session: 2, key: KEY, mode: Mode::Exclusive, granted: true }]);
}

#[test]
fn a_circle_is_found_by_who_closes_it() {
    let locks = Arc::new(LocalLocks::default());
    assert_eq!(locks.try_lock(request(1, KEY, Mode::Exclusive)), Some(true));
    assert_eq!(locks.try_lock(request(2, OTHER, Mode::Exclusive)), Some(true));
    let first = std::thread::spawn({
        let locks = locks.clone();
        move || wait(&locks, request(1, OTHER, Mode::Exclusive))
    });
    until(|| locks.shown().len() == 3);
    let second = wait(&locks, request(2, KEY, Mode::Exclusive));
    let circle = vec![(2, KEY, Mode::Exclusive), (1, OTHER, Mode::Exclusive)];
    assert_eq!(second, Err(Refusal::Deadlock(circle)));
    locks.release_session(2);
    assert_eq!(first.join().unwrap(), Ok(()));
}

#[test]
fn keys_are_bounded() {
    let locks = LocalLocks::default();
    for object in 0..KEYS_MAX as u32 {
        assert_eq!(locks.try_lock(request(1, Key { object, ..KEY }, Mode::Share)), Some(true));
    }
    let beyond = request(1, Key { pair: true, ..KEY }, Mode::Share);
    assert_eq!((locks.try_lock(beyond), wait(&locks, beyond)), (None, Err(Refusal::Full)));
    assert_eq!(locks.try_lock(request(2, KEY, Mode::Share)), Some(true));
    locks.release_session(1);
    assert_eq!(locks.try_lock(beyond), Some(true));
}
