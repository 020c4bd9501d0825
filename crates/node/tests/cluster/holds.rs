//! Locks of sessions: one at a time, over nodes, leaders and deaths.

use super::client::{Txn, pairs, set};
use super::links::lead;
use super::world::{Engine, Env, Prepare, World, founding, key, poll_fn};
use node::cluster::SessionLock;
use node::{BeginOptions, LockMode, LockWait, TxnError};
use std::cell::RefCell;
use std::rc::Rc;

const TICK_US: u64 = 100_000;

struct Lock {
    env: Env,
    lock: SessionLock<Engine>,
}

impl Lock {
    fn new(env: &Env, session: u64, name: &str) -> Lock {
        Lock { env: env.clone(), lock: SessionLock::new(&env.member, session, key(name)) }
    }
    async fn take(&mut self, mode: LockMode, wait: LockWait) -> Result<bool, TxnError> {
        poll_fn(|cx| self.lock.take(&self.env.now(), mode, wait, cx.waker())).await
    }
    fn is_lost(&self) -> bool {
        self.lock.is_lost(&self.env.now())
    }
}

/// Takes a lock for a session of a node, alone; `None`: another has it.
fn taken(w: &mut World, node: u32, mode: LockMode, wait: LockWait) -> Option<Lock> {
    w.ask(node, async move |env| {
        let mut lock = Lock::new(&env, u64::from(node), "job");
        let taken = lock.take(mode, wait).await.unwrap();
        taken.then_some(lock)
    })
}

fn exclusive(w: &mut World, node: u32) -> Option<Lock> {
    taken(w, node, LockMode::Update, LockWait::NoWait)
}

/// Somebody at a node who waits for the lock, and what becomes of it.
fn waiting(w: &mut World, node: u32) -> Rc<RefCell<Option<Lock>>> {
    let got = Rc::new(RefCell::new(None));
    let cell = got.clone();
    w.spawn(node, move |env| {
        Box::pin(async move {
            let mut lock = Lock::new(&env, 100 + u64::from(node), "job");
            assert_eq!(lock.take(LockMode::Update, LockWait::Wait).await, Ok(true));
            *cell.borrow_mut() = Some(lock);
        })
    });
    got
}

fn world(seed: u64, prepare: Prepare) -> World {
    let mut w = World::new(seed, 3, founding(&[""], &[1, 2, 3]), prepare);
    w.await_leader(1);
    w
}

fn dropped(w: &mut World, node: u32, lock: Lock) {
    drop(lock);
    w.drain(node);
}

#[test]
fn a_lock_is_one_session_s_at_a_time() {
    let mut w = world(0, |_| {});
    // A range that nobody led before has no locks to wait for.
    let began_us = w.now_us();
    let first = exclusive(&mut w, 1).expect("free");
    assert!(w.now_us() - began_us < 2 * TICK_US);
    for node in [1, 2, 3] {
        assert!(exclusive(&mut w, node).is_none(), "n{node}");
    }
    let next = waiting(&mut w, 2);
    w.run(30_000_000);
    assert!(next.borrow().is_none() && !first.is_lost());
    dropped(&mut w, 1, first);
    w.until("the lock passes on", |_| next.borrow().is_some());
    assert!(exclusive(&mut w, 3).is_none());
    let next = next.borrow_mut().take().unwrap();
    dropped(&mut w, 2, next);
    w.run(1_000_000);
    // Many may share it; one of them makes it stronger when the others are gone.
    let shared: Vec<Lock> =
        [1, 2, 3].into_iter().map(|node| taken(&mut w, node, LockMode::Share, LockWait::NoWait).unwrap()).collect();
    assert!(exclusive(&mut w, 1).is_none());
    let [mut one, two, three] = <[Lock; 3]>::try_from(shared).ok().unwrap();
    dropped(&mut w, 2, two);
    let mut one = w.ask(1, async move |_| {
        assert_eq!(one.take(LockMode::Update, LockWait::NoWait).await, Ok(false));
        one
    });
    dropped(&mut w, 3, three);
    w.run(1_000_000);
    let one = w.ask(1, async move |_| {
        assert_eq!(one.take(LockMode::Update, LockWait::NoWait).await, Ok(true));
        one
    });
    assert!(taken(&mut w, 2, LockMode::Share, LockWait::NoWait).is_none());
    dropped(&mut w, 1, one);
    w.run(1_000_000);
    assert!(exclusive(&mut w, 3).is_some());
}

/// Its leader dies: the next one has heard of it before it gives it to anybody. `true`: another got it.
fn another_gets_it(prepare: Prepare) -> bool {
    let mut w = world(1, prepare);
    let leader = w.await_leader(1);
    let (holder, other) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    let lock = exclusive(&mut w, holder).expect("free");
    w.crash(leader);
    let got = exclusive(&mut w, other).is_some();
    if !got {
        assert!(!lock.is_lost());
        // It goes on so, and passes on in the end.
        let next = waiting(&mut w, other);
        w.start(leader);
        w.run(20_000_000);
        assert!(next.borrow().is_none() && !lock.is_lost());
        dropped(&mut w, holder, lock);
        w.until("the lock passes on", |_| next.borrow().is_some());
    }
    got
}

#[test]
fn a_lock_outlives_its_leader() {
    assert!(!another_gets_it(|_| {}));
    assert!(another_gets_it(|sabotage| sabotage.set_grant_without_grace(true)), "it would be taken from who has it");
}

#[test]
fn a_lock_passes_on_when_its_node_dies() {
    let mut w = world(2, |_| {});
    let leader = w.await_leader(1);
    let holder = leader % 3 + 1;
    let lock = exclusive(&mut w, holder).expect("free");
    let next = waiting(&mut w, leader);
    w.run(20_000_000);
    assert!(next.borrow().is_none());
    w.crash(holder);
    drop(lock);
    let began_us = w.now_us();
    w.until("the lock passes on", |_| next.borrow().is_some());
    let after_us = w.now_us() - began_us;
    assert!((80 * TICK_US..120 * TICK_US).contains(&after_us), "{after_us} us");
}

/// Its node is cut off. When another gets it, does the holder believe that it has it?
fn both_believe(prepare: Prepare) -> bool {
    let mut both = false;
    for (seed, cut_the_leader) in [(3, false), (4, true)] {
        let mut w = world(seed, prepare);
        let leader = w.await_leader(1);
        let holder = if cut_the_leader { leader } else { leader % 3 + 1 };
        let other = (leader + 1) % 3 + 1;
        let lock = exclusive(&mut w, holder).expect("free");
        w.cut_off(holder);
        let next = waiting(&mut w, other);
        w.until("the lock passes on", |_| next.borrow().is_some());
        both |= !lock.is_lost();
        w.heal();
        w.run(20_000_000);
        assert!(!next.borrow().as_ref().unwrap().is_lost());
        assert!(exclusive(&mut w, holder).is_none());
    }
    both
}

#[test]
fn who_is_cut_off_knows_before_another_has_its_lock() {
    assert!(!both_believe(|_| {}));
    assert!(both_believe(|sabotage| sabotage.set_count_on_locks_for_ever(true)));
}

/// A circle of a session's lock and a row's, held by sessions of two nodes.
#[test]
fn a_circle_over_locks_of_both_kinds_is_found() {
    for seed in 5..9 {
        let mut w = World::new(seed, 3, founding(&["", "m"], &[1, 2, 3]), |_| {});
        w.await_leader(1);
        w.await_leader(2);
        w.ask(1, async |env| set(env, pairs(&[("row", "0")])).await);
        let told: Rc<RefCell<Vec<bool>>> = Rc::default();
        let begun = [1, 2].map(|node| {
            w.ask(node, async move |env| {
                let options = BeginOptions { session: Some(u64::from(node)), ..BeginOptions::default() };
                let mut txn = Txn::with(&env, options).unwrap();
                let mut lock = Lock::new(&env, u64::from(node), "job");
                match node {
                    1 => assert_eq!(lock.take(LockMode::Update, LockWait::Wait).await, Ok(true)),
                    _ => assert_eq!(txn.lock("row").await, Ok(true)),
                }
                (txn, lock)
            })
        });
        for (node, (mut txn, mut lock)) in [1, 2].into_iter().zip(begun) {
            let told = told.clone();
            w.spawn(node, move |_| {
                Box::pin(async move {
                    let done = match node {
                        1 => txn.lock("row").await,
                        _ => lock.take(LockMode::Update, LockWait::Wait).await,
                    };
                    match done {
                        Ok(true) => told.borrow_mut().push(true),
                        Err(TxnError::Deadlock { cycle }) => {
                            assert_eq!(cycle.len(), 2);
                            told.borrow_mut().push(false);
                        }
                        other => panic!("{other:?}"),
                    }
                    drop((txn, lock));
                })
            });
        }
        w.until("both are told", |_| told.borrow().len() == 2);
        let mut told = told.take();
        told.sort_unstable();
        assert_eq!(told, [false, true], "seed {seed}: one is the victim, the other goes on");
    }
}

/// A session's lock that was granted by way of a third, as its node does not hear who leads: it is given back there, too, and at once.
#[test]
fn a_lock_that_came_through_a_third_is_given_back() {
    let mut w = world(9, |_| {});
    let leader = w.await_leader(1);
    let (here, third) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    w.ask(here, async |env| set(env, pairs(&[("a", "1")])).await);
    w.weather.cuts.extend([(leader, here), (here, leader)]);
    w.run(1_000_000);
    let held = exclusive(&mut w, here).expect("free");
    // Long enough for it to be asked after.
    w.run(8_000_000);
    assert!(exclusive(&mut w, third).is_none() && !held.is_lost());
    dropped(&mut w, here, held);
    w.run(1_000_000);
    assert!(exclusive(&mut w, third).is_some(), "it is free");
}

/// A session waits for a lock by way of a third, which leads itself by now, and gives up; then who has it gives it back. Whether it is free: else it is given to who wants it no more.
fn free_after_giving_up(seed: u64, prepare: Prepare) -> bool {
    // n4 has no replica, and does not hear who led.
    let mut w = World::new(seed, 4, founding(&[""], &[1, 2, 3]), prepare);
    lead(&mut w, 1, 1);
    w.ask(4, async |env| set(env, pairs(&[("a", "0")])).await);
    let held = exclusive(&mut w, 3).expect("free");
    w.weather.cuts.extend([(1, 4), (4, 1)]);
    let waits = w.ask(4, async |env| {
        let mut lock = Lock::new(&env, 104, "job");
        let pending = poll_fn(|cx| {
            let taken = lock.lock.take(&lock.env.now(), LockMode::Update, LockWait::Wait, cx.waker());
            std::task::Poll::Ready(taken.is_pending())
        });
        assert!(pending.await);
        lock
    });
    // The third leads, and its grace is over.
    w.run(1_000_000);
    lead(&mut w, 1, 2);
    w.run(12_000_000);
    assert!(!held.is_lost() && exclusive(&mut w, 1).is_none());
    dropped(&mut w, 4, waits);
    w.run(50_000);
    dropped(&mut w, 3, held);
    w.run(50_000);
    exclusive(&mut w, 1).is_some()
}

#[test]
fn a_lock_that_was_waited_for_by_way_of_a_third_is_not_given_to_who_gave_up() {
    for seed in 40..44 {
        assert!(free_after_giving_up(seed, |_| {}), "seed {seed}");
    }
    let caught = (40..44).any(|seed| !free_after_giving_up(seed, |sabotage| sabotage.set_pass_no_word_on(true)));
    assert!(caught, "it is given to one that wants it no more");
}
