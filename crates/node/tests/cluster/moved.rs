//! Who has moved past a node's time is told by that node alone that nothing there is uncertain to him (decision 0191), and by that node only while nobody else can
//! lead: two schedules in which he would believe another, and miss what was acknowledged before he began.

use super::client::{Txn, pairs, set, value};
use super::links::lead;
use super::world::{Env, Prepare, World, key};
use node::RangeId;
use node::cluster::{Class, Founding, Message, NodeId};
use protocol::door::{Body, Frame};
use std::cell::Cell;
use std::rc::Rc;

fn intact(_: &node::Sabotage) {}

fn range(number: u64, start: &str, nodes: &[u32]) -> Founding {
    let replicas = nodes.iter().map(|node| NodeId(*node)).collect();
    Founding { range: RangeId(number), start: key(start), replicas }
}

async fn put(env: Env, name: &'static str) {
    let mut txn = Txn::hybrid(&env).unwrap();
    txn.put(name, "1");
    txn.commit().await.unwrap();
}

/// What a transaction at a node has read, once it has.
type Seen = Rc<Cell<Option<Option<String>>>>;

fn reads_on(w: &mut World, node: u32, mut txn: Txn, name: &'static str) -> Seen {
    let seen = Seen::default();
    let told = seen.clone();
    w.spawn(node, move |_| {
        Box::pin(async move {
            told.set(Some(txn.get(name).await.unwrap()));
        })
    });
    seen
}

/// Node 1 leads x on {1, 2, 3}, and y alone; its clock is behind by three seconds, within its bound. It sleeps longer than what was promised to it for x, cut off
/// from {2, 3}, which choose a leader and write x. Then it wakes up, and goes on leading x for as long as it has not missed an election's time. A reader at `gateway`
/// who begins now meets y, which was just written at node 1, as uncertain, and moves past node 1's time: that is still within its old lease of x. Then he reads x.
fn deposed_in_its_sleep(gateway: u32, prepare: Prepare) -> Option<String> {
    let mut w = World::new(31, 5, vec![range(1, "", &[1, 2, 3]), range(2, "y", &[1])], prepare);
    w.set_watch(1, -1_500_000, 1_500_000);
    (2..=3).for_each(|node| w.set_watch(node, 0, 100));
    (4..=5).for_each(|node| w.set_watch(node, -1_600_000, 1_600_000));
    lead(&mut w, 1, 1);
    for node in [1, 4, 5] {
        w.ask(node, async |env| set(env, pairs(&[("x", "0"), ("y", "0")])).await);
    }
    w.run(5_000_000);
    w.weather.cuts.extend([(1, 2), (2, 1), (1, 3), (3, 1)]);
    w.pause(1);
    w.until("others lead x", |w| w.leader(1).is_some_and(|leader| leader != 1));
    w.ask(2, async |env| put(env, "x").await);
    w.resume(1);
    assert!(w.member(1).status(RangeId(1)).unwrap().lease.is_some(), "node 1 believes that it leads");
    let txn = w.ask(gateway, async |env| Txn::hybrid(&env).unwrap());
    w.ask(5, async |env| put(env, "y").await);
    let txn = w.ask(gateway, async move |_| {
        let mut txn = txn;
        assert_eq!(txn.get("y").await.unwrap().as_deref(), Some("1"));
        assert_eq!(txn.txn.stats().uncertainty_restarts, 1);
        txn
    });
    let seen = reads_on(&mut w, gateway, txn, "x");
    w.run(10_000);
    let leads = w.member(1).status(RangeId(1)).unwrap().lease.is_some();
    assert!(leads, "node 1 still believes that it leads when it is asked");
    w.run(3_000_000);
    w.heal();
    w.run(10_000_000);
    seen.take().expect("it is read")
}

#[test]
fn a_leader_deposed_in_its_sleep_answers_for_no_time_but_its_own() {
    for gateway in [4, 1] {
        assert_eq!(deposed_in_its_sleep(gateway, intact).as_deref(), Some("1"), "n{gateway}");
        let stale = deposed_in_its_sleep(gateway, |sabotage| sabotage.set_clip_under_any_lease(true));
        assert_eq!(stale.as_deref(), Some("0"), "n{gateway}: stale");
    }
}

/// Node 1 is a gateway that does not hear node 2, and believes that node 2 leads range 1, whose leader is node 3, behind by more than half a second. The clocks of 2
/// and 4 are right. It has met a range that node 2 does lead, so that it goes by way of node 4.
fn by_way_of_another(prepare: Prepare) -> World {
    let ranges = vec![
        range(1, "", &[2, 4, 3]),
        range(2, "g", &[2, 4, 5]),
        range(3, "m", &[4, 2, 5]),
        range(4, "t", &[2]),
        range(5, "z", &[5, 1, 2, 3, 4]),
    ];
    let mut w = World::new(32, 5, ranges, prepare);
    for (node, behind_us) in [(1, 900_000), (2, 50), (3, 300_000), (4, 50), (5, 900_000)] {
        w.set_watch(node, -behind_us, behind_us as u64);
    }
    for (range, node) in [(1, 2), (2, 2), (3, 4), (5, 5)] {
        lead(&mut w, range, node);
    }
    let all = [("a", "0"), ("h", "0"), ("p", "0"), ("u", "0"), ("z", "0")];
    w.ask(1, async move |env| set(env, pairs(&all)).await);
    lead(&mut w, 1, 3);
    w.run(3_000_000);
    cut(&mut w);
    assert_eq!(w.ask(1, async |env| value(env, "h").await).as_deref(), Some("0"));
    w
}

fn cut(w: &mut World) {
    w.weather.cuts.extend([(1, 2), (2, 1)]);
}

/// h is written at node 2 before a reader begins, and a at node 3 afterwards. What he reads of h, once he has read a and hears node 2 again.
fn relayed(prepare: Prepare) -> Option<String> {
    let mut w = by_way_of_another(prepare);
    w.ask(5, async |env| put(env, "h").await);
    let txn = w.ask(1, async |env| Txn::hybrid(&env).unwrap());
    w.ask(3, async |env| put(env, "a").await);
    let mut txn = w.ask(1, async move |_| {
        let mut txn = txn;
        assert_eq!(txn.get("a").await.unwrap().as_deref(), Some("1"));
        assert_eq!(txn.txn.stats().uncertainty_restarts, 1);
        txn
    });
    w.heal();
    w.run(6_000_000);
    w.ask(1, async move |_| txn.get("h").await.unwrap())
}

#[test]
fn what_another_relayed_is_no_word_of_whom_it_was_to_ask() {
    assert_eq!(relayed(intact).as_deref(), Some("1"));
    assert_eq!(relayed(|sabotage| sabotage.set_trust_relays(true)).as_deref(), Some("0"), "stale");
}

/// p is written at node 4 before a reader begins, and a at node 3 afterwards; node 4, who asks node 3 for him, does not hear the answer, until the reader's
/// gateway has asked node 2 once more itself. What he reads of p. `None`: the gateway was answered by another way.
fn relayed_late(prepare: Prepare, after_us: u64) -> Option<String> {
    let mut w = by_way_of_another(prepare);
    w.ask(5, async |env| put(env, "p").await);
    let txn = w.ask(1, async |env| Txn::hybrid(&env).unwrap());
    w.ask(3, async |env| put(env, "a").await);
    w.lose = Some(|message: &Message| {
        let body = || Frame::decode(&message.bytes).map(|frame| frame.body);
        let answers = message.class == Class::Request && matches!(body(), Ok(Body::Answer { .. }));
        (message.from, message.to) == (NodeId(3), NodeId(4)) && answers
    });
    let seen = Rc::new(Cell::new(None));
    let told = seen.clone();
    w.spawn(1, move |_| {
        Box::pin(async move {
            let mut txn = txn;
            assert_eq!(txn.get("a").await.unwrap().as_deref(), Some("1"));
            told.set(Some(txn));
        })
    });
    w.run(1_000_000);
    // It has no other replica to go by: node 2 is asked, and heard.
    w.heal();
    assert_eq!(w.ask(1, async |env| value(env, "u").await).as_deref(), Some("0"));
    cut(&mut w);
    w.run(after_us);
    w.lose = None;
    w.until("a is read", |w| w.jobs() == 0);
    w.heal();
    let mut txn = seen.take().expect("it was read");
    w.ask(1, async move |_| txn.get("p").await.unwrap())
}

#[test]
fn what_another_relayed_late_is_no_word_of_its_own() {
    let delays = || (0..8).map(|step| step * 100_000);
    for after_us in delays() {
        assert_eq!(relayed_late(intact, after_us).as_deref(), Some("1"), "{after_us} us");
    }
    let stale = delays().any(|after_us| {
        let seen = relayed_late(|sabotage| sabotage.set_forget_relays(true), after_us);
        seen.as_deref() == Some("0")
    });
    assert!(stale, "an answer came by way of node 4 once it was forgotten that it would");
}
