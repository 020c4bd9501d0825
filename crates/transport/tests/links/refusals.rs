//! Whoever should not be here is refused, with a reason that both ends tell once.

use crate::node::{CLUSTER, TestNode, bind, bind_again, identity, peer, store_of, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;
use transport::{Event, Identity, Options, Parcel, Peer, Refusal, Transport};

/// Two nodes, of which the second comes as `identity`, and knows the first as `of_one`.
fn meet(second: Identity, of_one: impl Fn(String) -> Peer, of_two: impl Fn(String) -> Peer) -> [TestNode; 2] {
    let (one, two) = (bind(), bind());
    let addr = |listener: &std::net::TcpListener| listener.local_addr().unwrap().to_string();
    let (one_addr, two_addr) = (addr(&one), addr(&two));
    let one = TestNode::start(identity(1), one, vec![of_two(two_addr)]);
    let two = TestNode::start(second, two, vec![of_one(one_addr)]);
    [one, two]
}

/// The dialer's event and the acceptor's; told once each, though the attempts go on.
fn refused(dialer: &TestNode, acceptor: &TestNode, wanted: Refusal) {
    let at_dial =
        |e: &Event| matches!(e, Event::RefusedAtDial { by_this_node: false, refusal, .. } if *refusal == wanted);
    let at_door =
        |e: &Event| matches!(e, Event::RefusedAtDoor { by_this_node: true, refusal, .. } if *refusal == wanted);
    dialer.expect(&format!("refused at dial: {wanted}"), at_dial);
    acceptor.expect(&format!("refused at the door: {wanted}"), at_door);
    // A few more attempts.
    let failures = || dialer.transport.links()[0].failures;
    let before = failures();
    until("attempts go on", || failures() > before + 6);
    assert_eq!((dialer.count(at_dial), acceptor.count(at_door)), (1, 1));
}

#[test]
fn another_cluster() {
    let second = Identity { cluster: 77, ..identity(2) };
    let [one, two] = meet(second, |addr| peer(1, &addr), |addr| peer(2, &addr));
    refused(&two, &one, Refusal::Cluster { known: CLUSTER, named: 77 });
    refused(&one, &two, Refusal::Cluster { known: 77, named: CLUSTER });
}

#[test]
fn a_program_that_does_not_know_the_clusters_version() {
    let second = Identity { knows: 1..=1, ..identity(2) };
    let [one, two] = meet(second, |addr| peer(1, &addr), |addr| peer(2, &addr));
    one.wait_up(2);
    assert_eq!(one.link(2).knows, Some(1..=1));
    // The cluster is raised meanwhile: it ends with the link, at the latest.
    one.transport.set_cluster_version(2);
    let addr = two.addr.clone();
    one.transport.set_peers(Vec::new()).unwrap();
    one.transport.set_peers(vec![peer(2, &addr)]).unwrap();
    let refusal = Refusal::ClusterVersion { version: 2, min: 1, max: 1 };
    refused(&two, &one, refusal);
    assert!(refusal.to_string().contains("version 2 of the cluster"), "{refusal}");
}

#[test]
fn a_wiped_store_is_a_new_store() {
    let second = Identity { store: 0xdead, ..identity(2) };
    let [one, two] = meet(second, |addr| peer(1, &addr), |addr| peer(2, &addr));
    // Node 2 comes with another store than node 1 knows, and node 1 looks for a store that is not at node 2.
    refused(&two, &one, Refusal::Store { node: 2, known: store_of(2), named: 0xdead });
    refused(&one, &two, Refusal::Store { node: 2, known: 0xdead, named: store_of(2) });
    one.send(2, 0, "not for this store");
    assert!(two.got.lock().unwrap().is_empty());
    // An operator names the new store: it is another node from now on.
    let addr = two.addr.clone();
    one.transport.set_peers(vec![Peer { node: 2, store: 0xdead, addr }]).unwrap();
    one.wait_up(2);
    one.send(2, 0, "for this one");
    assert_eq!(two.take(1)[0].bytes, "for this one");
}

#[test]
fn a_node_that_takes_me_for_somebody_else() {
    // Node 2 believes that node 3 is where node 1 is.
    let [one, two] = meet(identity(2), |addr| peer(3, &addr), |addr| peer(2, &addr));
    refused(&two, &one, Refusal::Node { known: 1, named: 3 });
    refused(&one, &two, Refusal::Stranger { named: 1 });
}

#[test]
fn a_number_that_nobody_knows() {
    let [one, two] = meet(identity(7), |addr| peer(1, &addr), |addr| peer(2, &addr));
    refused(&two, &one, Refusal::Stranger { named: 7 });
}

#[test]
fn an_older_life_than_one_that_was_seen() {
    let second = Identity { incarnation: 5, ..identity(2) };
    let [one, two] = meet(second, |addr| peer(1, &addr), |addr| peer(2, &addr));
    one.wait_up(2);
    two.wait_up(1);
    let addr = two.addr.clone();
    drop(two);
    // An old copy of its store is started in its place.
    let old = Identity { incarnation: 4, ..identity(2) };
    let old = TestNode::start(old, bind_again(&addr), vec![peer(1, &one.addr)]);
    refused(&old, &one, Refusal::Incarnation { node: 2, known: 5, named: 4 });
    // Node 1 refuses it as well where it dials it, and tells it so.
    let by_dialer = |e: &Event| {
        matches!(
            e,
            Event::RefusedAtDial {
                by_this_node: true,
                refusal: Refusal::Incarnation { node: 2, known: 5, named: 4 },
                ..
            }
        )
    };
    one.expect("the dialer refuses, too", by_dialer);
    old.expect("and says so", |e| matches!(e, Event::RefusedAtDoor { node: 1, by_this_node: false, .. }));
    one.send(2, 0, "not for the past");
    assert!(old.got.lock().unwrap().is_empty());
}

/// A store was copied, and both are used: each start is a life of its own of one store, but not of two.
#[test]
fn the_same_life_in_another_process() {
    let second = Identity { incarnation: 2, start: 0xa, ..identity(2) };
    let [one, two] = meet(second, |addr| peer(1, &addr), |addr| peer(2, &addr));
    one.wait_up(2);
    two.wait_up(1);
    let copy = Identity { incarnation: 2, start: 0xb, ..identity(2) };
    let copy = TestNode::start(copy, bind(), vec![peer(1, &one.addr)]);
    let why = Refusal::Copy { node: 2, known: 0xa, named: 0xb };
    copy.expect("it is told why", |e| matches!(e, Event::RefusedAtDial { node: 1, refusal, .. } if *refusal == why));
    copy.send(1, 0, "of a copy");
    two.send(1, 0, "of the first one");
    until("the first one is heard", || one.got.lock().unwrap().iter().any(|p| p.bytes == "of the first one"));
    assert!(one.got.lock().unwrap().iter().all(|p| p.bytes != "of a copy"));
    // Who says nothing of its start is of an earlier release, and cannot be told apart.
    let silent = TestNode::start(Identity { incarnation: 2, ..identity(2) }, bind(), vec![peer(1, &one.addr)]);
    until("it is let in", || {
        silent.send(1, 0, "of an earlier release");
        one.got.lock().unwrap().iter().any(|p| p.bytes == "of an earlier release")
    });
}

#[test]
fn a_later_life_ends_the_links_of_the_earlier_one() {
    let [one, two] = meet(identity(2), |addr| peer(1, &addr), |addr| peer(2, &addr));
    one.wait_up(2);
    two.wait_up(1);
    // It comes back at another address while the old life still has its connections, as after a machine was cut off.
    let later = TestNode::start(Identity { incarnation: 2, ..identity(2) }, bind(), vec![peer(1, &one.addr)]);
    two.expect("its lanes to node 1 are cut", |e| matches!(e, Event::Down { node: 1, .. }));
    two.expect("it is told why", |e| {
        matches!(e, Event::RefusedAtDial { node: 1, refusal: Refusal::Incarnation { node: 2, known: 2, named: 1 }, .. })
    });
    until("the later life is heard", || {
        later.send(1, 0, "later");
        one.got.lock().unwrap().iter().any(|p| p.bytes == "later")
    });
}

#[test]
fn after_the_mistake_is_mended_they_meet() {
    let [one, two] = meet(identity(2), |addr| Peer { store: 1, ..peer(1, &addr) }, |addr| peer(2, &addr));
    refused(&two, &one, Refusal::Store { node: 1, known: store_of(1), named: 1 });
    let addr = one.addr.clone();
    two.transport.set_peers(vec![peer(1, &addr)]).unwrap();
    one.wait_up(2);
    two.wait_up(1);
}

/// A store was copied while its node ran, and the copy is started: a life of its own, and a later one.
#[test]
fn a_later_life_beside_one_that_goes_on() {
    let second = Identity { start: 0xa, ..identity(2) };
    let [one, two] = meet(second, |addr| peer(1, &addr), |addr| peer(2, &addr));
    one.wait_up(2);
    two.wait_up(1);
    let copy = Identity { incarnation: 2, start: 0xb, ..identity(2) };
    let copy = TestNode::start(copy, bind(), vec![peer(1, &one.addr)]);
    let why = Refusal::Alive { node: 2, known: 1, named: 2 };
    copy.expect("it is told why", |e| matches!(e, Event::RefusedAtDial { node: 1, refusal, .. } if *refusal == why));
    copy.expect(
        "and in the end that it is a copy",
        |e| matches!(e, Event::Copy { node: 1, refusal } if *refusal == why),
    );
    copy.send(1, 0, "of a copy");
    two.send(1, 0, "of the first one");
    until("the first one is heard", || one.got.lock().unwrap().iter().any(|p| p.bytes == "of the first one"));
    assert!(one.got.lock().unwrap().iter().all(|p| p.bytes != "of a copy"));
    assert_eq!(two.count(|e| matches!(e, Event::Down { .. } | Event::RefusedAtDial { .. })), 0, "nothing disturbs it");
}

/// Who has died is over at once, where that is seen, and its next life is let in.
#[test]
fn a_later_life_comes_after_the_earlier_one_has_ended() {
    let second = Identity { start: 0xa, ..identity(2) };
    let [one, two] = meet(second, |addr| peer(1, &addr), |addr| peer(2, &addr));
    one.wait_up(2);
    two.wait_up(1);
    let addr = two.addr.clone();
    drop(two);
    let later = Identity { incarnation: 2, start: 0xb, ..identity(2) };
    let later = TestNode::start(later, bind_again(&addr), vec![peer(1, &one.addr)]);
    later.wait_up(1);
    one.wait_up(2);
    assert_eq!(later.count(|e| matches!(e, Event::Copy { .. })), 0);
}

/// A peer met the copy first, and refuses the node; when the copy has said that it was one, and ended, it is heard.
#[test]
fn who_took_a_copy_for_the_node_is_told() {
    let (one, two, three) = (bind(), bind(), bind());
    let addr = |listener: &std::net::TcpListener| listener.local_addr().unwrap().to_string();
    let (one_addr, two_addr, copy_addr) = (addr(&one), addr(&two), addr(&three));
    let one = TestNode::start(identity(1), one, vec![peer(2, &copy_addr)]);
    let copy = Identity { incarnation: 2, start: 0xb, ..identity(2) };
    let copy = TestNode::start(copy, three, vec![peer(1, &one_addr)]);
    one.wait_up(2);
    one.transport.set_peers(vec![peer(2, &two_addr)]).unwrap();
    let two = TestNode::start(Identity { start: 0xa, ..identity(2) }, two, vec![peer(1, &one_addr)]);
    let why = Refusal::Incarnation { node: 2, known: 2, named: 1 };
    two.expect("it is refused", |e| matches!(e, Event::RefusedAtDial { node: 1, refusal, .. } if *refusal == why));
    assert!(!one.transport.disown(2, store_of(2), 2, 0xc), "nobody of that draw was seen");
    assert!(!one.transport.disown(2, 1, 2, 0xb), "another store's");
    assert!(one.transport.disown(2, store_of(2), 2, 0xb));
    two.wait_up(1);
    one.wait_up(2);
    // The copy goes on trying, and is not let in.
    let why = Refusal::Copy { node: 2, known: 0xa, named: 0xb };
    copy.expect("it is refused", |e| matches!(e, Event::RefusedAtDial { node: 1, refusal, .. } if *refusal == why));
    assert_eq!(one.link(2).seen, Some((1, "test".into())));
}

/// What a process said before it died is still being read, slowly, when its next life comes: that is no copy.
#[test]
fn a_later_life_beside_a_slow_reader_of_the_earlier_one() {
    let (listener, second) = (bind(), bind());
    let (addr, two_addr) = (listener.local_addr().unwrap().to_string(), second.local_addr().unwrap().to_string());
    let two = TestNode::start(Identity { start: 0xa, ..identity(2) }, second, vec![peer(1, &addr)]);
    let read = Arc::new(AtomicUsize::new(0));
    let counter = read.clone();
    let (_disk, slow) = std::sync::mpsc::channel::<()>();
    let slow = std::sync::Mutex::new(slow);
    let deliver = Box::new(move |parcels: Vec<Parcel>| {
        counter.fetch_add(parcels.len(), Relaxed);
        // A slow disk, and still within `ALIVE`: nobody writes here.
        assert!(slow.lock().unwrap().recv_timeout(Duration::from_secs(1)).is_err());
    });
    let one =
        Transport::start(listener, identity(1), vec![peer(2, &two_addr)], Options::default(), deliver, Box::new(|r| r));
    let one = one.unwrap();
    two.wait_up(1);
    until("node 1 reaches it, too", || one.links()[0].up);
    for _ in 0..64 {
        two.send(1, 2, vec![7; 64 << 10]);
    }
    until("the kernel has much of it", || two.link(1).lanes[2].sent_bytes > 1 << 20 && read.load(Relaxed) > 0);
    drop(two);
    let later = Identity { incarnation: 2, start: 0xb, ..identity(2) };
    let later = TestNode::start(later, bind_again(&two_addr), vec![peer(1, &addr)]);
    later.wait_up(1);
    assert_eq!(later.count(|e| matches!(e, Event::Copy { .. })), 0);
    drop(later);
    one.stop();
}

/// A node has told of its log up to record 10, and has ended; then it is started with a log that ends at `began_after`. What node 1 makes of that.
fn started_again(began_after: Option<u64>) -> (TestNode, TestNode) {
    let heard = Arc::new(AtomicU64::new(0));
    let told = heard.clone();
    let options =
        Options { heard_of: Arc::new(move |node| if node == 2 { told.load(SeqCst) } else { 0 }), ..Options::default() };
    let (one, two) = (bind(), bind());
    let [one_addr, two_addr] = [&one, &two].map(|listener| listener.local_addr().unwrap().to_string());
    let one = TestNode::start_with(identity(1), one, vec![peer(2, &two_addr)], options);
    let first = Identity { start: 0xa, began_after: Some(0), ..identity(2) };
    let two = TestNode::start(first, two, vec![peer(1, &one_addr)]);
    one.wait_up(2);
    two.wait_up(1);
    heard.store(10, SeqCst);
    drop(two);
    let later = Identity { incarnation: 2, start: 0xb, began_after, ..identity(2) };
    let later = TestNode::start(later, bind_again(&two_addr), vec![peer(1, &one_addr)]);
    (one, later)
}

/// 0218: an old copy of a store, or a disk that lost what it had synced. One that says so has told nothing here: the next copy is refused as well.
#[test]
fn a_later_life_that_has_forgotten_what_was_told() {
    let (one, later) = started_again(Some(9));
    let why = Refusal::Forgot { node: 2, known: 10, named: 9 };
    refused(&later, &one, why);
    later.send(1, 0, "of the past");
    one.expect(
        "who dials it refuses it as well",
        |e| matches!(e, Event::RefusedAtDial { by_this_node: true, refusal, .. } if *refusal == why),
    );
    assert!(one.got.lock().unwrap().is_empty());
    assert!(!one.transport.disown(2, store_of(2), 2, 0xb), "it was never heard");
    let addr = later.addr.clone();
    drop(later);
    let again = Identity { incarnation: 2, start: 0xc, began_after: Some(9), ..identity(2) };
    let again = TestNode::start(again, bind_again(&addr), vec![peer(1, &one.addr)]);
    refused(&again, &one, why);
    again.send(1, 0, "of the past");
    assert!(one.got.lock().unwrap().is_empty());
}

/// A copy was heard in the node's place, and has said so: what was told was that one's, and the node itself is heard.
#[test]
fn what_a_copy_has_told_is_not_asked_of_the_node() {
    let (one, copy) = started_again(Some(10));
    one.wait_up(2);
    let addr = copy.addr.clone();
    assert!(one.transport.disown(2, store_of(2), 2, 0xb));
    drop(copy);
    let node = Identity { incarnation: 1, start: 0xd, began_after: Some(9), ..identity(2) };
    let node = TestNode::start(node, bind_again(&addr), vec![peer(1, &one.addr)]);
    until("it is heard", || {
        node.send(1, 0, "here");
        one.got.lock().unwrap().iter().any(|p| p.bytes == "here")
    });
}

#[test]
fn a_later_life_that_has_all_that_was_told_is_heard() {
    // Who does not say where its log ended is of an earlier release.
    for began_after in [Some(10), Some(11), None] {
        let (one, later) = started_again(began_after);
        until("it is heard", || {
            later.send(1, 0, "here");
            one.got.lock().unwrap().iter().any(|p| p.bytes == "here")
        });
    }
}
