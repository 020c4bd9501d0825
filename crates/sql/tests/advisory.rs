//! Advisory locks of one process: order, counts, circles, bounds.
// Tests own threads: sessions that wait for each other.
#![allow(clippy::disallowed_methods)]

use sql::advisory::{
    AdvisoryLocks, Awaited, ClusterLocks, KEYS_MAX, Key, LocalLocks, Mode, Refusal, Request, Scope, Shown,
    circle_through,
};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{Admin, AdminReply, BeginOptions, LockMode, LockWait, RowWaiter, SessionLock, ShownLock};
use sql::{Kv, KvError, SqlError, SqlState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const KEY: Key = Key { database: 5, class: 0, object: 7, pair: false };
const OTHER: Key = Key { object: 8, ..KEY };

fn request(session: u64, key: Key, mode: Mode) -> Request {
    Request { session, key, mode, scope: Scope::Session }
}

fn wait(locks: &LocalLocks, request: Request) -> Result<(), Refusal> {
    locks.lock(request, &MemoryKv::new(), &mut || Ok(()))
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// What stands below sessions of a cluster, pretended: a lock there is a session of one table.
struct Below {
    kv: MemoryKv,
    table: Arc<LocalLocks>,
    lost: Arc<AtomicBool>,
}

struct BelowLock {
    owner: u64,
    key: Key,
    table: Arc<LocalLocks>,
    lost: Arc<AtomicBool>,
}

impl SessionLock for BelowLock {
    fn take(&mut self, mode: LockMode, wait: LockWait, stop: &mut dyn FnMut() -> bool) -> Result<bool, KvError> {
        let mode = if mode == LockMode::Share { Mode::Share } else { Mode::Exclusive };
        loop {
            if self.table.try_lock(request(self.owner, self.key, mode)) == Some(true) {
                return Ok(true);
            }
            if wait == LockWait::NoWait {
                return Ok(false);
            }
            if stop() {
                return Err(KvError::Interrupted);
            }
            std::thread::yield_now();
        }
    }
    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }
}

impl Drop for BelowLock {
    fn drop(&mut self) {
        self.table.release_session(self.owner);
    }
}

impl Kv for Below {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn sql::Transaction>, KvError> {
        self.kv.begin(options)
    }
    fn unique_id(&self) -> u64 {
        self.kv.unique_id()
    }
    fn now_us(&self) -> i64 {
        self.kv.now_us()
    }
    fn admin(&self, request: Admin) -> Result<AdminReply, KvError> {
        self.kv.admin(request)
    }
    fn internal_table(&self, _: &str) -> Option<(Vec<String>, Vec<Vec<Option<String>>>)> {
        None
    }
    fn session_lock(&self, _: u64, key: &[u8]) -> Option<Box<dyn SessionLock>> {
        let (owner, key) = (self.kv.unique_id(), Key::of_bytes(key).expect("an advisory lock's key"));
        Some(Box::new(BelowLock { owner, key, table: self.table.clone(), lost: self.lost.clone() }))
    }
}

/// Two nodes over one table.
fn two_nodes() -> (ClusterLocks, ClusterLocks, Arc<LocalLocks>, Arc<AtomicBool>) {
    let (kv, table, lost) = (MemoryKv::new(), Arc::new(LocalLocks::default()), Arc::new(AtomicBool::new(false)));
    let node = || ClusterLocks::new(Arc::new(Below { kv: kv.clone(), table: table.clone(), lost: lost.clone() }));
    let (one, other) = (node(), node());
    (one, other, table, lost)
}

fn everywhere() -> [Box<dyn AdvisoryLocks>; 2] {
    [Box::new(LocalLocks::default()), Box::new(two_nodes().0)]
}

#[test]
fn keys_as_bytes() {
    for key in [KEY, OTHER, Key { class: u32::MAX, pair: true, ..KEY }] {
        assert_eq!(Key::of_bytes(&key.to_bytes()), Some(key));
    }
    assert_eq!(Key::of_bytes(b"0123456789abcdefg"), None);
    assert_eq!(Key::of_bytes(&KEY.to_bytes()[..16]), None);
}

#[test]
fn sessions_of_two_nodes_exclude_each_other() {
    let (one, other, table, lost) = two_nodes();
    assert_eq!(one.try_lock(request(1, KEY, Mode::Exclusive)), Some(true));
    assert_eq!(one.try_lock(request(1, KEY, Mode::Share)), Some(true));
    assert_eq!(other.try_lock(request(1, KEY, Mode::Share)), Some(false));
    assert!(one.unlock(1, KEY, Mode::Exclusive));
    assert_eq!(other.try_lock(request(1, KEY, Mode::Share)), Some(false), "it stays as strong until all is given up");
    assert_eq!(one.shown().len(), 1);
    // Who waits can be ended, and has nothing then.
    let ended = other.lock(request(1, KEY, Mode::Exclusive), &MemoryKv::new(), &mut || {
        Err(SqlError::new(SqlState::QUERY_CANCELED, "ended"))
    });
    assert!(matches!(ended, Err(Refusal::Ended(_))), "{ended:?}");
    assert!(other.shown().is_empty());
    assert!(!one.has_lost(1));
    lost.store(true, Ordering::SeqCst);
    assert!(one.has_lost(1) && !one.has_lost(2) && !other.has_lost(1));
    assert!(one.unlock(1, KEY, Mode::Share));
    assert!(!one.has_lost(1) && table.shown().is_empty());
    assert_eq!(other.try_lock(request(1, KEY, Mode::Exclusive)), Some(true));
    other.release_session(1);
    assert!(table.shown().is_empty());
}

#[test]
fn locks_are_counted_and_exclude() {
    for locks in everywhere() {
        counted_and_excluding(locks.as_ref());
    }
}

fn counted_and_excluding(locks: &dyn AdvisoryLocks) {
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
    for locks in everywhere() {
        given_up_since_a_mark(locks.as_ref());
    }
}

fn given_up_since_a_mark(locks: &dyn AdvisoryLocks) {
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
    let stopped = locks.lock(request(3, KEY, Mode::Share), &MemoryKv::new(), &mut || Err(end.clone()));
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
    let awaited = |key| Awaited::Advisory(key, Mode::Exclusive);
    let circle = vec![(Some(2), awaited(KEY)), (Some(1), awaited(OTHER))];
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

/// The rule of the search, on graphs: only circles through the one that asks are its own, and every one of them is found.
#[test]
fn a_search_finds_the_circles_of_who_asks() {
    let search = |from: u64, edges: &[(u64, &[u64])]| {
        let edge = |session: u64| {
            let (_, before) = edges.iter().find(|(of, _)| *of == session)?;
            Some((Awaited::Advisory(Key { object: session as u32, ..KEY }, Mode::Share), before.to_vec()))
        };
        let found = circle_through(from, &edge);
        found.map(|circle| circle.into_iter().map(|(session, _)| session.unwrap()).collect::<Vec<_>>())
    };
    assert_eq!(search(1, &[(1, &[2]), (2, &[3]), (3, &[1])]), Some(vec![1, 2, 3]));
    // Negative controls: a chain that ends, a circle beside, a circle behind.
    assert_eq!(search(1, &[(1, &[2, 3]), (2, &[3])]), None);
    assert_eq!(search(1, &[(2, &[3]), (3, &[2])]), None);
    assert_eq!(search(1, &[(1, &[2]), (2, &[3]), (3, &[2])]), None);
    // Behind a dead end, and behind what was seen already.
    assert_eq!(search(1, &[(1, &[4, 2]), (4, &[5]), (2, &[4, 3]), (3, &[4, 1])]), Some(vec![1, 2, 3]));
    // The shortest of two; and one that waits for itself.
    assert_eq!(search(1, &[(1, &[2, 4]), (2, &[3]), (3, &[1]), (4, &[1])]), Some(vec![1, 4]));
    assert_eq!(search(1, &[(1, &[1])]), Some(vec![1]));
}

/// One holds a key and waits for a row, the other holds the row and waits for the key: whichever of the two closes the circle.
#[test]
fn a_circle_over_a_row_is_found_whoever_closes_it() {
    let kv = MemoryKv::new();
    let begin = |session| kv.begin(&BeginOptions { session: Some(session), ..BeginOptions::default() }).unwrap();
    let circle = vec![
        (Some(2), Awaited::Advisory(KEY, Mode::Exclusive)),
        (Some(1), Awaited::Row(RowWaiter { session: Some(1), key: "row".into(), mode: LockMode::Share })),
    ];
    for row_first in [true, false] {
        let locks = Arc::new(LocalLocks::default());
        assert_eq!(locks.try_lock(request(1, KEY, Mode::Exclusive)), Some(true));
        let (mut one, mut two) = (begin(1), begin(2));
        two.hold(b"row", LockMode::Update).unwrap();
        let key_of_two = std::thread::spawn({
            let (locks, kv) = (locks.clone(), kv.clone());
            move || {
                if row_first {
                    until(|| row_locks(&kv).len() == 2);
                }
                let found = locks.lock(request(2, KEY, Mode::Exclusive), &kv, &mut || Ok(()));
                drop(two);
                found
            }
        });
        if !row_first {
            until(|| locks.in_the_way_of(2) == [1]);
        }
        assert_eq!(one.hold(b"row", LockMode::Share), Ok(()), "it goes on once the other one has ended");
        assert_eq!(key_of_two.join().unwrap(), Err(Refusal::Deadlock(circle.clone())), "row first: {row_first}");
        assert!(row_locks(&kv).is_empty());
    }
    // Negative control: without a session the row's lock is nobody's, and nothing closes the circle.
    let locks = LocalLocks::default();
    assert_eq!(locks.try_lock(request(1, KEY, Mode::Exclusive)), Some(true));
    let mut stranger = kv.begin(&BeginOptions::default()).unwrap();
    stranger.hold(b"row", LockMode::Update).unwrap();
    let waiting = std::thread::spawn({
        let mut one = begin(1);
        move || one.hold(b"row", LockMode::Share)
    });
    until(|| row_locks(&kv).len() == 2);
    let mut looks = 0;
    let end = SqlError::unsupported("waiting");
    let ended = locks.lock(request(2, KEY, Mode::Exclusive), &kv, &mut || {
        looks += 1;
        if looks < 5 { Ok(()) } else { Err(end.clone()) }
    });
    assert_eq!(ended, Err(Refusal::Ended(end.clone())));
    drop(stranger);
    assert_eq!(waiting.join().unwrap(), Ok(()));
}

fn row_locks(kv: &MemoryKv) -> Vec<ShownLock> {
    kv.shown_locks(true, (b"", 0), 100)
}
