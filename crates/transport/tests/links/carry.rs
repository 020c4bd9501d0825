//! Parcels arrive: whole, in their lane, again after a restart, at another address.

use crate::node::{TestNode, bind, bind_again, identity, peer, until};
use bytes::Bytes;
use transport::{Event, Identity, LANES, PARCEL_BYTES_MAX, Parcel};

fn bytes_of(seed: usize, len: usize) -> Bytes {
    (0..len).map(|at| (at * 31 + seed * 7 + at / 251) as u8).collect::<Vec<_>>().into()
}

#[test]
fn parcels_of_every_size_arrive_whole_and_in_order_in_every_lane() {
    let nodes = TestNode::cluster(2);
    nodes[0].wait_up(2);
    let lens = [1, 7, 8, 100, 16_383, 16_384, 16_385, 65_527, 65_528, 65_529, 70_000, 1_000_003, PARCEL_BYTES_MAX, 5];
    for lane in 0..LANES {
        for (seed, len) in lens.into_iter().enumerate() {
            // One after the other, so that no queue is full.
            nodes[0].send(2, lane, bytes_of(seed, len));
            let got = nodes[1].take(1);
            assert_eq!((got.len(), got[0].from, got[0].to, got[0].lane), (1, 1, 2, lane));
            assert!(got[0].bytes == bytes_of(seed, len), "{len} bytes");
        }
    }
    for lane in &nodes[0].link(2).lanes {
        assert_eq!((lane.sent_parcels, lane.dropped_parcels), (lens.len() as u64, 0));
        assert_eq!(lane.sent_bytes, lens.iter().sum::<usize>() as u64);
    }
    for lane in &nodes[1].link(1).lanes {
        assert_eq!(lane.received_parcels, lens.len() as u64);
        assert_eq!(lane.received_bytes, lens.iter().sum::<usize>() as u64);
    }
}

#[test]
fn a_lane_keeps_the_order_of_many_whoever_writes_them() {
    const COUNT: u32 = 30_000;
    let nodes = TestNode::cluster(3);
    nodes[0].wait_up(2);
    nodes[0].wait_up(3);
    // Alone, in groups, small, and now and then large.
    let parcel = |n: u32, to: u32| {
        let len = if n.is_multiple_of(1000) { 40_000 } else { 4 + n as usize % 300 };
        let mut bytes = vec![n as u8; len];
        bytes[..4].copy_from_slice(&n.to_le_bytes());
        Parcel { from: 1, to, lane: (n % 2) as usize, bytes: bytes.into() }
    };
    let mut n = 0;
    while n < COUNT {
        let group = (n..COUNT.min(n + 1 + n % 7)).flat_map(|n| [parcel(n, 2), parcel(n, 3)]);
        nodes[0].transport.send_all(group);
        n += 1 + n % 7;
    }
    for node in &nodes[1..] {
        let got = node.take(COUNT as usize);
        for lane in 0..2 {
            let numbers =
                got.iter().filter(|p| p.lane == lane).map(|p| u32::from_le_bytes(p.bytes[..4].try_into().unwrap()));
            assert!(numbers.eq((0..COUNT).filter(|n| *n as usize % 2 == lane)), "lane {lane}");
        }
        assert!(got.iter().all(|p| p.bytes[4..].iter().all(|b| *b == p.bytes[4..][0])));
    }
}

#[test]
fn senders_on_many_threads_lose_nothing() {
    const EACH: usize = 2_000;
    let nodes = TestNode::cluster(2);
    nodes[0].wait_up(2);
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            let node = &nodes[0];
            scope.spawn(move || (0..EACH).for_each(|_| node.send(2, 0, vec![thread; 100])));
        }
    });
    let got = nodes[1].take(8 * EACH);
    assert!((0..8).all(|thread| got.iter().filter(|p| p.bytes[0] == thread).count() == EACH));
}

#[test]
fn a_peer_that_restarts_is_back_and_what_waited_too_long_is_not_sent() {
    let mut nodes = TestNode::cluster(2);
    nodes[0].wait_up(2);
    let (addr, own) = (nodes[1].addr.clone(), nodes[0].addr.clone());
    drop(nodes.pop());
    nodes[0].expect("the loss is told", |e| matches!(e, Event::Down { node: 2, .. }));
    nodes[0].expect("that nothing is there is told", |e| matches!(e, Event::Unreachable { node: 2, .. }));
    nodes[0].send(2, 0, "stale");
    let since = std::time::Instant::now();
    until("it is stale", || since.elapsed() > 2 * transport::STALE);

    let again = TestNode::start(Identity { incarnation: 2, ..identity(2) }, bind_again(&addr), vec![peer(1, &own)]);
    nodes[0].wait_up(2);
    again.wait_up(1);
    nodes[0].send(2, 0, "fresh");
    again.send(1, 2, "from the new life");
    assert_eq!(again.take(1)[0].bytes, "fresh");
    assert_eq!(nodes[0].take(1)[0].bytes, "from the new life");
    let link = nodes[0].link(2);
    assert_eq!((link.seen.unwrap().0, link.lanes[0].dropped_parcels), (2, 1));
    assert_eq!(nodes[0].count(|e| matches!(e, Event::Up { node: 2, .. })), 2);
    assert_eq!(nodes[0].count(|e| matches!(e, Event::Down { node: 2, .. })), 1);
    assert_eq!(nodes[0].count(|e| matches!(e, Event::Unreachable { node: 2, .. })), 1);
}

#[test]
fn peers_come_move_and_go() {
    let (one, two) = (bind(), bind());
    let two_addr = two.local_addr().unwrap().to_string();
    let one = TestNode::start(identity(1), one, vec![]);
    let two = TestNode::start(identity(2), two, vec![peer(1, &one.addr)]);
    two.expect("node 1 does not know node 2", |e| {
        matches!(e, Event::RefusedAtDial { node: 1, by_this_node: false, .. })
    });
    one.send(2, 0, "for nobody");

    one.transport.set_peers(vec![peer(1, &one.addr), peer(2, &two_addr)]).unwrap();
    one.wait_up(2);
    one.send(2, 0, "first");
    assert_eq!(two.take(1)[0].bytes, "first");

    // It moves; the old place goes on to answer.
    let moved = TestNode::start(Identity { incarnation: 2, ..identity(2) }, bind(), vec![peer(1, &one.addr)]);
    one.transport.set_peers(vec![peer(2, &moved.addr)]).unwrap();
    one.wait_up(2);
    until("the new place is the one", || one.link(2).up && one.link(2).seen.is_some_and(|(life, _)| life == 2));
    until("a parcel arrives there", || {
        one.send(2, 1, "second");
        !moved.got.lock().unwrap().is_empty()
    });

    moved.wait_up(1);
    one.transport.set_peers(vec![]).unwrap();
    assert!(one.transport.links().is_empty());
    moved.expect("it is no member any more", |e| matches!(e, Event::Down { node: 1, .. }));
    moved.expect("and is told so", |e| matches!(e, Event::RefusedAtDial { node: 1, by_this_node: false, .. }));
}

#[test]
fn what_cannot_be_sent_is_told_and_harms_nobody() {
    let nodes = TestNode::cluster(2);
    nodes[0].wait_up(2);
    nodes[0].send(2, 0, Bytes::new());
    nodes[0].send(2, 0, vec![0; PARCEL_BYTES_MAX + 1]);
    nodes[0].send(2, LANES, "no such lane");
    nodes[0].send(9, 0, "nobody");
    nodes[0].send(1, 0, "myself");
    nodes[0].send(2, 0, "well");
    assert_eq!(nodes[1].take(1)[0].bytes, "well");
    assert_eq!(nodes[0].count(|e| matches!(e, Event::Unsendable { node: 2, .. })), 1);
}

#[test]
fn stop_ends_it_while_peers_cannot_be_reached_and_can_be_called_by_what_is_delivered() {
    // An address that is listened to, where nobody answers, and one where nobody listens.
    let mute = bind();
    let deaf = bind().local_addr().unwrap().to_string();
    let peers = vec![peer(2, &mute.local_addr().unwrap().to_string()), peer(3, &deaf)];
    let node = TestNode::start(identity(1), bind(), peers);
    node.expect("nobody listens", |e| matches!(e, Event::Unreachable { node: 3, .. }));
    node.transport.stop();
    node.transport.stop();

    let (one, two) = (bind(), bind());
    let addrs = [one.local_addr().unwrap().to_string(), two.local_addr().unwrap().to_string()];
    let sender = TestNode::start(identity(1), one, vec![peer(2, &addrs[1])]);
    let (stopped, cell) = (std::sync::mpsc::channel(), std::sync::Arc::new(std::sync::OnceLock::new()));
    let held: std::sync::Arc<std::sync::OnceLock<transport::Transport>> = cell;
    let weak = std::sync::Arc::downgrade(&held);
    let tell = std::sync::Mutex::new(stopped.0);
    let deliver = Box::new(move |_| {
        if let Some(transport) = weak.upgrade().as_ref().and_then(|held| held.get()) {
            transport.stop();
            tell.lock().unwrap().send(()).unwrap();
        }
    });
    let peers = vec![peer(1, &addrs[0])];
    let transport =
        transport::Transport::start(two, identity(2), peers, Default::default(), deliver, Box::new(|request| request));
    held.set(transport.unwrap()).ok().unwrap();
    until("it was stopped from inside", || {
        sender.send(2, 0, "stop");
        stopped.1.try_recv().is_ok()
    });
}
