//! A store goes back to an older state of itself, and has forgotten what its node acknowledged (decision 218).

use super::client::{pairs, set, value};
use super::links::lead;
use super::world::{World, founding};
use node::cluster::{Class, Message, VERSION_MAX};
use protocol::door::{Body, Frame};

fn intact(_: &node::Sabotage) {}

/// Of what is replicated node 3 gets nothing; what else is said it hears.
fn appends_to_the_third(message: &Message) -> bool {
    let to_it = message.to.0 == 3 && message.class == Class::Consensus && message.from.0 == 1;
    to_it && matches!(Frame::decode(&message.bytes).unwrap().body, Body::Envelope(_))
}

/// A write is acknowledged by nodes 1 and 2, while node 3 hears nothing of it. Node 1 dies for good; node 2 dies, and comes back with its disk as it is, or as it was before the write
/// (`goes_back`). Whether node 3 hears it; what is read, if two of three agree (`believes`: it is heard whatever is said against it).
fn after_the_write(version: u16, goes_back: bool, believes: bool) -> (bool, Option<String>) {
    let mut w = World::of_version(version, 41, 3, founding(&[""], &[1, 2, 3]), intact);
    lead(&mut w, 1, 1);
    w.ask(1, async |env| set(env, pairs(&[("x", "0")])).await);
    w.run(3_000_000);
    let before = w.disk(2);
    w.lose = Some(appends_to_the_third);
    w.ask(1, async |env| set(env, pairs(&[("x", "1")])).await);
    // Node 2 goes on speaking to node 3, of promises at least.
    let told = w.member(3).heard_of(node::cluster::NodeId(2));
    if version == VERSION_MAX {
        w.until("node 3 hears of that record of node 2's log", |w| {
            w.member(3).heard_of(node::cluster::NodeId(2)) > told
        });
    }
    w.crash(1);
    w.crash(2);
    w.lose = None;
    if goes_back {
        w.go_back(2, before);
    }
    w.start(2);
    let is_heard = w.who_refuses(2).is_empty();
    if !is_heard && !believes {
        // It is refused, and ends.
        w.crash(2);
        return (false, None);
    }
    (is_heard, w.ask(2, async |env| value(env, "x").await))
}

#[test]
fn a_store_that_has_gone_back_is_not_heard() {
    assert_eq!(after_the_write(VERSION_MAX, true, false), (false, None));
    // Where it is, what was acknowledged is lost.
    assert_eq!(after_the_write(VERSION_MAX, true, true), (false, Some("0".to_owned())));
}

#[test]
fn a_store_that_has_all_that_it_told_of_is_heard() {
    assert_eq!(after_the_write(VERSION_MAX, false, false), (true, Some("1".to_owned())));
}

/// Programs of before do not tell: it is as it was.
#[test]
fn nothing_is_told_before_all_programs_can_read_it() {
    assert_eq!(after_the_write(2, true, false), (true, Some("0".to_owned())));
}

/// Nodes die at any time, with any part of what was not synced, and start again; logs are let go of: nobody is ever refused for what it lost honestly.
#[test]
fn who_has_lost_only_what_was_not_synced_is_heard() {
    for seed in 0..6 {
        let mut w = World::new(4200 + seed, 3, founding(&["", "m"], &[1, 2, 3]), intact);
        w.await_leader(1);
        for round in 0..12u32 {
            let node = 1 + round % 3;
            let asked = 1 + (round + 1) % 3;
            let text = round.to_string();
            w.spawn(asked, move |env| {
                Box::pin(async move {
                    for name in ["a", "n", "b", "o"] {
                        set(env.clone(), vec![(name.to_owned(), text.clone())]).await;
                    }
                })
            });
            let us = w.rng.below(400_000);
            w.run(us);
            if round % 4 == 3 {
                w.flush(node);
            }
            w.crash(node);
            w.start(node);
            assert_eq!(w.who_refuses(node), [0u32; 0], "seed {seed}, round {round}");
            w.await_leader(1);
        }
    }
}
