//! What a transaction or a statement that begins anew keeps of what was uncertain to it (decision 213).

use super::client::{Txn, pairs, set};
use super::links::lead;
use super::world::{Prepare, World, founding};
use node::{BeginOptions, Consistency, Isolation, KeptUncertainty, TxnError, Uncertainty};

/// So often a reader is let begin.
const BEGINS_MAX: u64 = 6;

fn intact(_: &node::Sabotage) {}

fn options(isolation: Isolation, uncertainty: Uncertainty) -> BeginOptions {
    BeginOptions { isolation, consistency: Consistency::Hybrid, uncertainty, ..BeginOptions::default() }
}

const HALF_A_SECOND: Uncertainty = Uncertainty::Static(500_000);

/// x is led at node 1, y at node 2, z at node 3; their clocks are right.
fn three(seed: u64, prepare: Prepare) -> World {
    let mut w = World::new(seed, 3, founding(&["", "y", "z"], &[1, 2, 3]), prepare);
    (1..=3).for_each(|node| w.set_watch(node, 0, 100));
    (1..=3).for_each(|node| lead(&mut w, u64::from(node), node));
    w.ask(1, async |env| set(env, pairs(&[("x", "0"), ("y", "0"), ("z", "0")])).await);
    w.run(1_000_000);
    w
}

fn write(w: &mut World, node: u32, names: &'static [&'static str], value: u64) {
    let all = names.iter().map(|name| ((*name).to_owned(), value.to_string())).collect();
    w.ask(node, async move |env| set(env, all).await);
}

fn is_restart<T>(done: &Result<T, TxnError>) -> bool {
    matches!(done, Err(TxnError::Restart { .. }))
}

/// A reader reads x, then y; both are written in between, each time that it begins. What it reads in the end, and how often it began.
fn written_each_time(prepare: Prepare) -> (Option<String>, Option<String>, u64) {
    let mut w = three(31, prepare);
    let mut kept: Option<KeptUncertainty> = None;
    for begins in 1..=BEGINS_MAX {
        let before = kept.take();
        let (mut txn, x) = w.ask(1, async move |env| {
            let options = BeginOptions { kept: before, ..options(Isolation::Serializable, HALF_A_SECOND) };
            let mut txn = Txn::with(&env, options).unwrap();
            let x = txn.get("x").await.unwrap();
            (txn, x)
        });
        write(&mut w, 2, &["x", "y"], begins);
        let (y, txn) = w.ask(1, async move |_| (txn.get("y").await, txn));
        match y {
            Ok(y) => return (x, y, begins),
            Err(TxnError::Restart { .. }) => kept = txn.txn.kept_uncertainty(),
            Err(other) => panic!("{other}"),
        }
    }
    (None, None, BEGINS_MAX)
}

#[test]
fn who_begins_anew_does_not_meet_the_same_node_again() {
    let one = || Some("1".to_owned());
    assert_eq!(written_each_time(intact), (one(), one(), 2));
    // What was there before: each time it may have been acknowledged before this begin, and so it begins again.
    assert_eq!(written_each_time(|sabotage| sabotage.set_forget_uncertainty(true)), (None, None, BEGINS_MAX));
}

/// As above, by a statement of READ COMMITTED, within its transaction: whether it restarts the second time too, and what it reads.
fn repeated_statement(prepare: Prepare) -> (bool, Option<String>, Option<String>) {
    let mut w = three(32, prepare);
    let mut txn = w.ask(1, async move |env| {
        let mut txn = Txn::with(&env, options(Isolation::ReadCommitted, HALF_A_SECOND)).unwrap();
        txn.get("x").await.unwrap();
        txn
    });
    write(&mut w, 2, &["x", "y"], 1);
    let (mut txn, x) = w.ask(1, async move |env| {
        let met = txn.get("y").await;
        assert!(is_restart(&met), "{met:?}");
        txn.txn.repeat_statement(&env.now()).unwrap();
        let x = txn.get("x").await.unwrap();
        (txn, x)
    });
    write(&mut w, 2, &["x", "y"], 2);
    let y = w.ask(1, async move |_| txn.get("y").await);
    (is_restart(&y), x, y.ok().flatten())
}

#[test]
fn a_statement_that_is_repeated_does_not_meet_the_same_node_again() {
    let one = || Some("1".to_owned());
    assert_eq!(repeated_statement(intact), (false, one(), one()));
    assert_eq!(repeated_statement(|sabotage| sabotage.set_forget_uncertainty(true)), (true, one(), None));
}

/// Another statement of the same transaction is sent by who may have heard of more: of y, written since the first one, by node 2. What it reads of y.
fn next_statement(prepare: Prepare) -> Option<String> {
    let mut w = three(33, prepare);
    w.set_watch(1, -300_000, 300_000);
    let mut txn = w.ask(1, async move |env| {
        let mut txn = Txn::with(&env, options(Isolation::ReadCommitted, Uncertainty::Dynamic)).unwrap();
        txn.get("x").await.unwrap();
        txn
    });
    w.run(1_000_000);
    write(&mut w, 2, &["y"], 1);
    w.ask(1, async move |env| {
        txn.txn.begin_statement(&env.now()).unwrap();
        txn.get("y").await.unwrap()
    })
}

#[test]
fn the_next_statement_sees_what_was_acknowledged_before_it() {
    assert_eq!(next_statement(intact).as_deref(), Some("1"));
    let stale = next_statement(|sabotage| sabotage.set_keep_uncertainty(true));
    assert_eq!(stale.as_deref(), Some("0"), "it keeps what was true of another one");
}

/// z is written at node 3 before the reader begins, and again afterwards; nodes 1 and 2 are slow, and so what they meet lies below all of that. The reader begins anew because of
/// y, and then reads z, where it has not been. What it reads, and how many uncertain versions it meets the second time.
fn not_met_before() -> (Option<String>, u64) {
    let mut w = three(34, intact);
    (1..=2).for_each(|node| w.set_watch(node, -300_000, 300_000));
    // What was stamped by a right clock before is past, also by theirs.
    w.run(1_000_000);
    write(&mut w, 3, &["z"], 1);
    let mut txn = w.ask(1, async move |env| {
        let mut txn = Txn::with(&env, options(Isolation::Serializable, Uncertainty::Dynamic)).unwrap();
        txn.get("x").await.unwrap();
        txn
    });
    write(&mut w, 2, &["x", "y"], 1);
    let kept = w.ask(1, async move |_| {
        let met = txn.get("y").await;
        assert!(is_restart(&met), "{met:?}");
        txn.txn.kept_uncertainty().unwrap()
    });
    assert_eq!(kept.caught_up, [2]);
    let limit = kept.limit;
    w.run(100_000);
    write(&mut w, 3, &["z"], 2);
    w.ask(1, async move |env| {
        let options = BeginOptions { kept: Some(kept), ..options(Isolation::Serializable, Uncertainty::Dynamic) };
        let mut txn = Txn::with(&env, options).unwrap();
        assert!(txn.txn.snapshot() < limit, "else nothing is uncertain to it");
        let z = txn.get("z").await.unwrap();
        (z, txn.txn.stats().uncertainty_restarts)
    })
}

#[test]
fn who_begins_anew_sees_what_was_acknowledged_before_the_first_begin() {
    // And nothing that came later makes it begin again.
    assert_eq!(not_met_before(), (Some("1".to_owned()), 1));
}

/// A reader by a clock that is fast meets nothing; what it would keep is nothing to `strict`, whose snapshot lies above all that.
#[test]
fn strict_keeps_nothing() {
    let mut w = three(35, intact);
    w.ask(1, async move |env| {
        let first = Txn::strict(&env).unwrap();
        assert_eq!(first.txn.kept_uncertainty(), None);
        let kept = KeptUncertainty { limit: first.txn.snapshot(), least: first.txn.snapshot(), caught_up: vec![2] };
        let options = BeginOptions { consistency: Consistency::Strict, kept: Some(kept), ..BeginOptions::default() };
        assert_eq!(Txn::with(&env, options).unwrap().txn.kept_uncertainty(), None);
    });
}
