//! Schedules of the design's rules of distance (section 4a): each with the rule, and broken on purpose.

use super::client::{Txn, pairs, set, value};
use super::world::{CLUSTER, Prepare, World, founding};
use node::cluster::{Class, Input, Message, NodeId};
use node::{BeginOptions, Consistency, TxnError};
use protocol::door::{Answer, Body, Frame, Request};
use std::cell::RefCell;
use std::rc::Rc;

fn intact(_: &node::Sabotage) {}

fn body(message: &Message) -> Option<Body> {
    (message.class == Class::Request).then(|| Frame::decode(&message.bytes).expect("a frame").body)
}

/// 4a.1: a commit is replicated, its answer is lost, and its copy reaches another leader. The client hears "committed".
fn answer_lost(prepare: Prepare) -> (Result<(), TxnError>, Option<String>) {
    let mut w = World::new(11, 4, founding(&[""], &[1, 2, 3]), prepare);
    let leader = w.await_leader(1);
    w.ask(4, async |env| set(env, pairs(&[("x", "0")])).await);
    w.lose = Some(|message| {
        matches!(body(message), Some(Body::Answer { answer: Answer::Committed(_) | Answer::CommittedLate(..), .. }))
    });
    let result = Rc::new(RefCell::new(None));
    let told = result.clone();
    w.spawn(4, move |env| {
        Box::pin(async move {
            let mut txn = Txn::begin(&env).unwrap();
            txn.get("x").await.unwrap();
            txn.put("x", "1");
            *told.borrow_mut() = Some(txn.commit().await.map(drop));
        })
    });
    w.run(200_000);
    assert!(result.borrow().is_none(), "the answer is lost");
    w.crash(leader);
    w.lose = None;
    w.until("an answer", |_| result.borrow().is_some());
    let told = result.borrow_mut().take().unwrap();
    (told, w.ask(4, async |env| value(env, "x").await))
}

#[test]
fn a_commit_whose_answer_was_lost_is_committed() {
    assert_eq!(answer_lost(intact), (Ok(()), Some("1".to_owned())));
    let (told, x) = answer_lost(|sabotage| sabotage.set_without_until(true));
    assert!(
        matches!(told, Err(TxnError::Restart { .. })) && x.as_deref() == Some("1"),
        "it would be done twice: {told:?}"
    );
}

/// 4a.1 and 2: a commit is replicated, its answer is lost; the range forgets it, early by clocks that jump, and is split. Then its copy comes to where it was done, and its key is elsewhere.
fn forgotten_and_split(seed: u64, prepare: Prepare) -> Result<(), TxnError> {
    let mut w = World::new(seed, 4, founding(&[""], &[1, 2, 3]), prepare);
    w.await_leader(1);
    w.ask(4, async |env| set(env, pairs(&[("x", "0")])).await);
    w.lose = Some(|message| matches!(body(message), Some(Body::Answer { .. })));
    let result = Rc::new(RefCell::new(None));
    let told = result.clone();
    w.spawn(4, move |env| {
        Box::pin(async move {
            let mut txn = Txn::hybrid(&env).unwrap();
            txn.put("x", "1");
            *told.borrow_mut() = Some(txn.commit().await.map(drop));
        })
    });
    w.run(200_000);
    w.cut_off(4);
    (1..=3).for_each(|node| w.machines.get_mut(&node).unwrap().watch.offset_us += 15_000_000);
    w.run(200_000);
    let leader = w.await_leader(1);
    w.ask(leader, async |env| set(env, pairs(&[("a", "1")])).await);
    super::splits::split(&mut w, leader, "m");
    assert!(result.borrow().is_none(), "seed {seed}: it waits for its answer");
    w.lose = None;
    w.heal();
    w.until("the client hears", |_| result.borrow().is_some());
    assert_eq!(w.member(leader).stored(b"x").unwrap().as_deref(), Some(&b"1"[..]), "seed {seed}: it was done");
    result.take().unwrap()
}

#[test]
fn what_was_done_before_a_split_and_forgotten_is_not_denied() {
    for seed in 0..4 {
        assert_eq!(forgotten_and_split(seed, intact), Err(TxnError::CommitUnknown), "seed {seed}");
        let denied = forgotten_and_split(seed, |sabotage| sabotage.set_deny_the_forgotten(true));
        assert!(matches!(denied, Err(TxnError::Restart { .. })), "seed {seed}: {denied:?}");
    }
}

/// 4a.1: an aborted transaction is forgotten; then copies of all its prepares come.
fn late_prepares(prepare: Prepare) -> (Result<(), TxnError>, Option<String>, Option<String>) {
    let mut w = World::new(12, 4, founding(&["", "m"], &[1, 2, 3]), prepare);
    w.await_leader(1);
    w.await_leader(2);
    w.ask(4, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
    w.overheard = Some(Vec::new());
    // The second prepare never arrives: the coordinator asks for a fence.
    w.lose = Some(|message| match body(message) {
        Some(Body::Request { range, request: Request::Prepare { .. }, .. }) => range.0 == 2,
        _ => false,
    });
    let told = w.ask(4, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        txn.put("a", "1");
        txn.put("p", "1");
        txn.commit().await.map(drop)
    });
    w.lose = None;
    w.run(15_000_000);
    let copies: Vec<Message> = w.overheard.take().unwrap();
    for message in copies {
        let Some(Body::Request { id, range, request: request @ Request::Prepare { .. } }) = body(&message) else {
            continue;
        };
        // To whoever leads now, as a forwarding network might.
        let leader = w.leader(range.0).unwrap();
        let frame = Frame {
            cluster: CLUSTER,
            from: 4,
            to: leader,
            claim: Default::default(),
            body: Body::Request { id, range, request },
        };
        let bytes = frame.encode().into();
        let copy = Message { from: NodeId(4), to: NodeId(leader), class: Class::Request, bytes };
        w.input(leader, Input::Message(copy));
    }
    w.run(10_000_000);
    let a = w.ask(1, async |env| value(env, "a").await);
    (told, a, w.ask(1, async |env| value(env, "p").await))
}

#[test]
fn copies_of_prepares_that_come_after_all_is_forgotten_do_nothing() {
    let (told, a, p) = late_prepares(intact);
    assert!(matches!(told, Err(TxnError::Restart { .. })), "{told:?}");
    assert_eq!((a.as_deref(), p.as_deref()), (Some("0"), Some("0")));
    let (told, a, p) = late_prepares(|sabotage| sabotage.set_without_until(true));
    assert!(matches!(told, Err(TxnError::Restart { .. })), "{told:?}");
    assert_eq!((a.as_deref(), p.as_deref()), (Some("1"), Some("1")), "told aborted, and committed");
}

/// A gateway stops while it commits. Others finish that, tell everybody, and forget; then it asks for a fence.
#[test]
fn a_commit_that_all_have_forgotten_is_not_told_to_have_failed() {
    let mut w = World::new(15, 4, founding(&["", "m"], &[1, 2, 3]), intact);
    w.await_leader(1);
    w.await_leader(2);
    w.ask(4, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
    w.lose = Some(|message| matches!(body(message), Some(Body::Answer { answer: Answer::Prepared(_), .. })));
    let result = Rc::new(RefCell::new(None));
    let told = result.clone();
    w.spawn(4, move |env| {
        Box::pin(async move {
            let mut txn = Txn::begin(&env).unwrap();
            txn.put("a", "1");
            txn.put("p", "1");
            *told.borrow_mut() = Some(txn.commit().await.map(drop));
        })
    });
    w.run(200_000);
    w.pause(4);
    // Copies of its prepares would be answered rightly.
    w.lose = Some(|message| matches!(body(message), Some(Body::Request { request: Request::Prepare { .. }, .. })));
    w.run(30_000_000);
    for range in [1, 2] {
        let leader = w.leader(range).unwrap();
        assert_eq!(w.member(leader).status(node::RangeId(range)).unwrap().outcomes, 0, "all is forgotten");
    }
    w.resume(4);
    w.until("an answer", |_| result.borrow().is_some());
    assert_eq!(w.ask(1, async |env| value(env, "a").await).as_deref(), Some("1"));
    let told = result.borrow_mut().take().unwrap();
    assert_eq!(told, Err(TxnError::CommitUnknown), "it is committed");
}

/// A commit takes longer than a tick, and nothing else happens: it is forgotten all the same.
#[test]
fn an_outcome_is_forgotten_though_nothing_comes_after_it() {
    let mut w = World::new(16, 3, founding(&[""], &[1, 2, 3]), intact);
    w.await_leader(1);
    w.run(3_000_000);
    w.weather.sync_us = (250_000, 250_001);
    w.ask(1, async |env| set(env, pairs(&[("x", "0")])).await);
    w.run(30_000_000);
    for node in 1..=3 {
        assert_eq!(w.member(node).status(node::RangeId(1)).unwrap().outcomes, 0, "node {node}");
    }
}

/// Rule 1: a strict commit lies up to twice the error ahead; it is acknowledged when that is past.
fn strict_commit_seen(prepare: Prepare) -> Option<String> {
    let mut w = World::new(13, 3, founding(&[""], &[1, 2, 3]), prepare);
    w.await_leader(1);
    w.set_watch(1, 90_000, 90_000);
    w.set_watch(2, 0, 1_000);
    w.set_watch(3, 0, 1_000);
    w.ask(1, async |env| {
        let mut txn = Txn::strict(&env).unwrap();
        txn.put("x", "1");
        txn.commit().await.unwrap();
    });
    w.ask(2, async |env| Txn::strict(&env).unwrap().get("x").await.unwrap())
}

#[test]
fn a_strict_commit_is_acknowledged_when_it_is_past() {
    assert_eq!(strict_commit_seen(intact).as_deref(), Some("1"));
    assert_eq!(strict_commit_seen(|sabotage| sabotage.set_skip_rule_one(true)), None, "acknowledged, and not seen");
}

/// 4a.3: a strict reader with a wide bound reads ahead of time, and its range is handed over; another writes under the new leader.
fn snapshot_over_a_transfer(prepare: Prepare) -> (Option<String>, Option<String>) {
    let mut w = World::new(17, 4, founding(&[""], &[1, 2, 3]), prepare);
    (1..=3).for_each(|node| w.set_watch(node, 0, 100));
    w.set_watch(4, 0, 1_500_000);
    let leader = w.await_leader(1);
    w.ask(leader, async |env| set(env, pairs(&[("x", "0")])).await);
    let (mut txn, first) = w.ask(4, async |env| {
        let mut txn = Txn::strict(&env).unwrap();
        let first = txn.get("x").await.unwrap();
        (txn, first)
    });
    let next = leader % 3 + 1;
    let now = w.env(leader).now();
    w.member(leader).hand_over(&now, node::RangeId(1), NodeId(next)).unwrap();
    w.drain(leader);
    w.until("the other leads", |w| w.leader(1) == Some(next));
    w.ask(next, async |env| set(env, pairs(&[("x", "1")])).await);
    (first, w.ask(4, async move |_| txn.get("x").await.unwrap()))
}

#[test]
fn a_snapshot_stays_as_it_was_though_its_range_is_handed_over() {
    let zero = Some("0".to_owned());
    assert_eq!(snapshot_over_a_transfer(intact), (zero.clone(), zero.clone()));
    let broken = snapshot_over_a_transfer(|sabotage| sabotage.set_release_below_reads(true));
    assert_eq!(broken, (zero, Some("1".to_owned())), "the snapshot has changed");
}

/// A leader's clock is not believed any more. For how long a write waits that begins half a second later, at another node, and a second one at once after it, microseconds; and whether the leader went.
fn writes_to_a_fenced_leader(seed: u64, ahead: bool, prepare: Prepare) -> (u64, bool) {
    let mut w = World::new(seed, 4, founding(&["", "m"], &[1, 2, 3]), prepare);
    (1..=4).for_each(|node| w.set_watch(node, 0, 300));
    let leader = w.await_leader(1);
    w.await_leader(2);
    w.ask(4, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
    w.run(1_000_000);
    let watch = &mut w.machines.get_mut(&leader).unwrap().watch;
    match ahead {
        // Its peers prove it.
        true => watch.offset_us = 300_000,
        false => watch.error_us = 11_000_000,
    }
    w.run(900_000);
    let began_us = w.now_us();
    for _ in 0..2 {
        // Of one range: who leads it says when it is past.
        let written = w.ask(4, async |env| {
            let mut txn = Txn::hybrid(&env).unwrap();
            txn.put("a", 1);
            txn.commit().await.map(drop)
        });
        assert!(matches!(written, Ok(()) | Err(TxnError::CommitUnknown)), "{written:?}");
    }
    let waited_us = w.now_us() - began_us;
    w.run(2_000_000);
    w.check_replicas();
    (waited_us, [1, 2].iter().all(|range| w.leader(*range).is_some_and(|now| now != leader)))
}

#[test]
fn a_fenced_leader_hands_over_while_it_may_serve() {
    for seed in 30..34 {
        for ahead in [false, true] {
            let (waited_us, gone) = writes_to_a_fenced_leader(seed, ahead, intact);
            assert!(gone && waited_us < 1_000_000, "seed {seed}, ahead: {ahead}: {waited_us} us, gone: {gone}");
        }
        let (_, gone) = writes_to_a_fenced_leader(seed, true, |sabotage| sabotage.set_keep_when_fenced(true));
        assert!(!gone, "seed {seed}: it goes anyway");
        let (waited_us, _) = writes_to_a_fenced_leader(seed, false, |sabotage| sabotage.set_keep_when_fenced(true));
        assert!(waited_us > 3_000_000, "seed {seed}: nobody waits anyway: {waited_us} us");
    }
}

/// 4a.5: a strict reader with a wide bound reads one range; a writer of another range at the same leader does not wait for it.
fn wait_of_a_neighbour(prepare: Prepare) -> u64 {
    let mut w = World::new(14, 2, founding(&["", "m"], &[1]), prepare);
    w.set_watch(1, 0, 100);
    w.set_watch(2, 0, 400_000);
    w.await_leader(1);
    w.await_leader(2);
    w.ask(2, async |env| {
        let mut txn = Txn::strict(&env).unwrap();
        txn.get("a").await.unwrap();
    });
    let began_us = w.now_us();
    let done = Rc::new(RefCell::new(None));
    let told = done.clone();
    w.spawn(1, move |env| {
        Box::pin(async move {
            let mut txn = Txn::hybrid(&env).unwrap();
            txn.put("p", "1");
            txn.commit().await.unwrap();
            *told.borrow_mut() = Some(env.true_us.get());
        })
    });
    w.until("the write is done", |_| done.borrow().is_some());
    let ended_us = done.borrow().unwrap();
    ended_us - began_us
}

#[test]
fn strict_readers_of_one_range_tax_no_other() {
    let free = wait_of_a_neighbour(intact);
    let taxed = wait_of_a_neighbour(|sabotage| sabotage.set_reads_ratchet_the_node(true));
    // Virtual time: a round trip of 2 ms and two syncs, or the reader's bound.
    assert!(free < 20_000, "{free} us");
    assert!(taxed > 200_000, "{taxed} us");
}

/// 4a.6: a range moves to a node whose clock is behind; what was committed before, above that clock, is still in the past of who begins now.
fn read_after_a_move(prepare: Prepare) -> Option<String> {
    let mut w = World::new(15, 4, founding(&[""], &[1, 2, 3]), prepare);
    let old = w.await_leader(1);
    w.ask(old, async |env| set(env, pairs(&[("x", "0")])).await);
    for node in 1..=4 {
        let (offset_us, error_us) = if node == old { (0, 100) } else { (-290_000, 300_000) };
        w.set_watch(node, offset_us, error_us);
    }
    // The gateway is further behind than the range's next leader.
    w.set_watch(4, -900_000, 900_000);
    w.run(1_000_000);
    w.ask(old, async |env| {
        let mut txn = Txn::hybrid(&env).unwrap();
        txn.put("x", "1");
        txn.commit().await.unwrap();
    });
    w.crash(old);
    w.until("another leader", |w| w.leader(1).is_some());
    // The bound holds for the reader: the commit is up to 1.8 seconds old, and above its snapshot.
    w.set_watch(4, -4_900_000, 4_900_000);
    w.ask(4, async |env| Txn::hybrid(&env).map(|mut txn| async move { txn.get("x").await }).unwrap().await.unwrap())
}

#[test]
fn what_was_committed_before_a_range_moved_is_seen() {
    assert_eq!(read_after_a_move(intact).as_deref(), Some("1"));
    assert_ne!(read_after_a_move(|sabotage| sabotage.set_clip_limit(true)).as_deref(), Some("1"), "stale");
}

/// 4a.10: a gateway dies; its next life's first transaction is not taken for its last life's.
fn second_life(prepare: Prepare) -> (bool, Option<String>) {
    let mut w = World::new(16, 4, founding(&[""], &[1, 2, 3]), prepare);
    w.await_leader(1);
    w.ask(4, async |env| set(env, pairs(&[("x", "1")])).await);
    w.crash(4);
    w.start(4);
    let told = w.ask(4, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        txn.put("y", "1");
        txn.commit().await.is_ok()
    });
    (told, w.ask(1, async |env| value(env, "y").await))
}

#[test]
fn a_node_names_its_transactions_anew_in_each_life() {
    assert_eq!(second_life(intact), (true, Some("1".to_owned())));
    let lost = second_life(|sabotage| sabotage.set_reuse_ids(true));
    assert_eq!(lost, (true, None), "acknowledged, and lost");
}

/// A gateway dies right after its prepares left: others see it through, one way or the other, and nothing stays prepared.
#[test]
fn what_a_dead_gateway_left_is_decided_by_others() {
    let mut ends = [0, 0];
    for seed in 0..30 {
        let mut w = World::new(seed, 4, founding(&["", "h", "p"], &[1, 2, 3]), intact);
        for range in 1..=3 {
            w.await_leader(range);
        }
        w.ask(4, async |env| set(env, pairs(&[("a", "0"), ("h", "0"), ("p", "0")])).await);
        w.spawn(4, |env| {
            Box::pin(async move {
                let mut txn = Txn::begin(&env).unwrap();
                ["a", "h", "p"].into_iter().for_each(|name| txn.put(name, "1"));
                let _ = txn.commit().await;
            })
        });
        w.weather.loss_percent = 20;
        w.run(500 + 300 * seed);
        w.crash(4);
        w.weather.loss_percent = 0;
        w.run(12_000_000);
        let mut seen = Vec::new();
        for name in ["a", "h", "p"] {
            seen.push(w.ask(1, async move |env| value(env, name).await).unwrap());
        }
        assert!(seen.iter().all(|value| *value == seen[0]), "seed {seed}: half a commit: {seen:?}");
        ends[usize::from(seen[0] == "1")] += 1;
        for node in 1..=3 {
            for range in w.member(node).ranges() {
                let status = w.member(node).status(range).unwrap();
                assert_eq!(
                    (status.prepared, status.untold, status.flights),
                    (0, 0, 0),
                    "seed {seed} n{node} {status:?}"
                );
            }
            assert_eq!(w.member(node).committing(), 0, "seed {seed} n{node}");
        }
        w.check_replicas();
    }
    assert!(ends[0] > 0 && ends[1] > 0, "both ends are reached: {ends:?}");
}

/// A majority is lost: its range says so in time, others go on.
#[test]
fn a_range_without_a_majority_says_so_and_others_go_on() {
    let mut ranges = founding(&["", "m"], &[1, 2, 3]);
    ranges[1].replicas = vec![NodeId(3), NodeId(4), NodeId(5)];
    let mut w = World::new(17, 5, ranges, intact);
    w.await_leader(1);
    w.await_leader(2);
    w.ask(3, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
    w.crash(4);
    w.crash(5);
    w.run(5_000_000);
    let began_us = w.now_us();
    let read = w.ask(3, async |env| Txn::begin(&env).unwrap().get("p").await);
    assert!(matches!(read, Err(TxnError::Unavailable { .. })), "{read:?}");
    let wrote = w.ask(3, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        txn.put("p", "1");
        txn.commit().await
    });
    assert!(matches!(wrote, Err(TxnError::Unavailable { .. })), "it was not sent: {wrote:?}");
    assert!(w.now_us() - began_us < 25_000_000, "within the stated time");
    w.ask(3, async |env| set(env, pairs(&[("a", "1")])).await);
    assert_eq!(w.ask(1, async |env| value(env, "a").await).as_deref(), Some("1"));
}

#[test]
fn messages_that_are_not_ours_or_not_sound_cost_nothing() {
    let mut w = World::new(18, 3, founding(&[""], &[1, 2, 3]), intact);
    w.overheard = Some(Vec::new());
    w.await_leader(1);
    w.ask(1, async |env| set(env, pairs(&[("x", "1")])).await);
    let heard = w.overheard.take().unwrap();
    let before = w.member(1).counters().messages_refused.get();
    let mut sent = 0;
    for (n, message) in heard.iter().enumerate().filter(|(_, message)| message.to == NodeId(1)) {
        let mut bytes = message.bytes.to_vec();
        match n % 3 {
            0 => bytes.truncate(n % bytes.len()),
            1 => bytes[1] ^= 1,
            _ => bytes.push(0),
        }
        w.input(1, Input::Message(Message { bytes: bytes.into(), ..message.clone() }));
        sent += 1;
        // Whatever a byte is changed to, nothing falls over.
        let mut bytes = message.bytes.to_vec();
        let at = (n * 7919) % bytes.len();
        bytes[at] = bytes[at].wrapping_add(1 + n as u8);
        w.input(2, Input::Message(Message { to: NodeId(2), bytes: bytes.into(), ..message.clone() }));
    }
    assert_eq!(w.member(1).counters().messages_refused.get() - before, sent);
    w.run(1_000_000);
    assert_eq!(w.ask(2, async |env| value(env, "x").await).as_deref(), Some("1"));
}

/// How long a write at a node with a right clock takes at most, microseconds of virtual time, while somebody reads what is there at a node whose clock was proved wrong: two seconds ahead.
fn write_beside_a_reader_ahead(prepare: Prepare) -> u64 {
    let mut w = World::new(7, 3, founding(&[""], &[1, 2, 3]), prepare);
    (1..=3).for_each(|node| w.set_watch(node, 0, 1_000));
    let leader = w.await_leader(1);
    let (wrong, right) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    w.ask(right, async |env| set(env, pairs(&[("a", "0")])).await);
    w.machines.get_mut(&wrong).unwrap().watch.offset_us = 2_000_000;
    w.run(5_000_000);
    let mut longest_us = 0;
    for round in 0..10 {
        let read = w.ask(wrong, async |env| {
            let options = BeginOptions { consistency: Consistency::None, ..BeginOptions::default() };
            Txn::with(&env, options).unwrap().get("a").await.unwrap()
        });
        assert!(read.is_some());
        let (began_us, text) = (w.now_us(), round.to_string());
        w.ask(right, async move |env| set(env, pairs(&[("a", &text)])).await);
        longest_us = longest_us.max(w.now_us() - began_us);
    }
    longest_us
}

#[test]
fn who_reads_by_a_wrong_clock_holds_up_no_writer() {
    let longest_us = write_beside_a_reader_ahead(intact);
    assert!(longest_us < 500_000, "{longest_us} us");
    let broken_us = write_beside_a_reader_ahead(|sabotage| sabotage.set_borrow_nothing(true));
    assert!(broken_us > 1_500_000, "{broken_us} us");
}
