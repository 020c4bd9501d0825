//! A peer that stops reading holds up nobody else, costs a bound, and is given up.

use crate::node::{CLUSTER, TestNode, bind, identity, peer, store_of, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use transport::hello::{ENVELOPE_BYTES, Kind, VERSION_MAX, VERSION_MIN, Welcome, encode_answer, open};
use transport::{Event, Options};

fn message(stream: &mut TcpStream) -> (Kind, Vec<u8>) {
    let mut envelope = [0; ENVELOPE_BYTES];
    stream.read_exact(&mut envelope).unwrap();
    let (kind, len) = open(&envelope).unwrap();
    let mut body = vec![0; len];
    stream.read_exact(&mut body).unwrap();
    (kind, body)
}

/// Shakes hands as node 2, and gives the connection to the test; as a process that is stopped just then. The first connection that learns which life of
/// node 2 this is ends those that are half made: they come again.
fn accept_as_two(listener: &TcpListener) -> (u8, TcpStream) {
    loop {
        let (stream, _) = listener.accept().unwrap();
        if let Some(made) = shake_hands_as_two(stream) {
            return made;
        }
    }
}

/// `None`: the other side has ended it meanwhile.
fn shake_hands_as_two(mut stream: TcpStream) -> Option<(u8, TcpStream)> {
    let is_open = |stream: &TcpStream| stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
    if !is_open(&stream) {
        return None;
    }
    let (kind, body) = message(&mut stream);
    assert_eq!(kind, Kind::Hello);
    let lane = transport::hello::Hello::decode(&body).unwrap().lane;
    let welcome = Welcome {
        version: VERSION_MAX.max(VERSION_MIN),
        cluster: CLUSTER,
        node: 2,
        store: store_of(2),
        incarnation: 1,
        release: "mute".into(),
        knows: 1..=2,
        start: 0,
        began_after: None,
    };
    stream.write_all(&encode_answer(&Ok(welcome))).ok()?;
    if !is_open(&stream) {
        return None;
    }
    assert_eq!(message(&mut stream).0, Kind::Verdict);
    Some((lane, stream))
}

#[test]
fn a_peer_that_stops_reading_holds_up_nobody_and_costs_its_bound() {
    const BOUND: usize = 1 << 20;
    let (one, mute, three) = (bind(), bind(), bind());
    let addr = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
    let peers = vec![peer(2, &addr(&mute)), peer(3, &addr(&three))];
    let options = Options { queue_bytes_max: [BOUND; 3], ..Options::default() };
    let three = TestNode::start(identity(3), three, vec![peer(1, &addr(&one))]);
    let one = TestNode::start_with(identity(1), one, peers, options);
    let silent: Vec<_> = (0..3).map(|_| accept_as_two(&mute)).collect();
    one.wait_up(3);
    until("all lanes to node 2 are connected", || one.link(2).up);

    // Lane 1 to node 2 is filled: the kernel's buffers, then the queue. Nobody waits.
    let part = vec![7u8; 64 << 10];
    until("parcels are dropped", || {
        one.send(2, 1, part.clone());
        one.link(2).lanes[1].dropped_parcels > 100
    });
    let lane = &one.link(2).lanes[1];
    assert!(lane.queued_bytes <= BOUND + (512 << 10), "{} bytes are queued", lane.queued_bytes);
    assert_eq!(one.count(|e| matches!(e, Event::Dropping { node: 2, lane: 1 })), 1);

    // Meanwhile the other lanes to it, and the other peer, go on.
    one.send(3, 1, "past the stalled one");
    assert_eq!(three.take(1)[0].bytes, "past the stalled one");
    one.send(2, 0, "a heartbeat");
    let (_, heartbeats) = silent.iter().find(|(lane, _)| *lane == 0).unwrap();
    heartbeats.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut seen = Vec::new();
    until("the heartbeat is past the stalled lane", || {
        let mut some = [0; 64];
        let read = (&*heartbeats).read(&mut some).unwrap();
        seen.extend_from_slice(&some[..read]);
        seen.windows(11).any(|w| w == b"a heartbeat")
    });

    // A stall does not last: the lane is given up, and dialed anew.
    one.expect("the stalled lane is given up", |e| matches!(e, Event::Down { node: 2, .. }));
    let (lane, mut again) = accept_as_two(&mute);
    assert_eq!(lane, 1);
    until("the lane is back", || one.link(2).lanes[1].connected);
    one.send(2, 1, "fresh");
    let mut seen = Vec::new();
    until("what is fresh arrives", || {
        let mut some = vec![0; 64 << 10];
        let read = again.read(&mut some).unwrap();
        seen.extend_from_slice(&some[..read]);
        seen.ends_with(b"fresh")
    });
}

#[test]
fn senders_do_not_wait_for_a_peer_that_is_not_there() {
    let nobody = bind().local_addr().unwrap().to_string();
    let options = Options { queue_bytes_max: [1000; 3], ..Options::default() };
    let node = TestNode::start_with(identity(1), bind(), vec![peer(2, &nobody)], options);
    (0..10_000).for_each(|_| node.send(2, 0, vec![1; 100]));
    let lane = node.link(2).lanes[0].clone();
    assert_eq!((lane.queued_bytes, lane.queued_parcels, lane.dropped_parcels), (1000, 10, 9_990));
    assert_eq!(node.count(|e| matches!(e, Event::Dropping { .. })), 0);
}

#[test]
fn a_receiver_that_takes_its_time_in_one_lane_delays_no_other() {
    let (one, two) = (bind(), bind());
    let addr = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
    let (one_addr, two_addr) = (addr(&one), addr(&two));
    let one = TestNode::start(identity(1), one, vec![peer(2, &two_addr)]);
    // Lane 2 is held until lane 0 has been heard.
    let (heard, hears) = std::sync::mpsc::channel();
    let (heard, hears) = (std::sync::Mutex::new(heard), std::sync::Mutex::new(hears));
    let (done, ends) = std::sync::mpsc::channel();
    let done = std::sync::Mutex::new(done);
    let deliver = transport::each(move |parcel: transport::Parcel| match parcel.lane {
        0 => heard.lock().unwrap().send(()).unwrap(),
        _ => {
            hears.lock().unwrap().recv_timeout(Duration::from_secs(60)).unwrap();
            done.lock().unwrap().send(()).unwrap();
        }
    });
    let peers = vec![peer(1, &one_addr)];
    let two =
        transport::Transport::start(two, identity(2), peers, Options::default(), deliver, Box::new(|r| r)).unwrap();
    one.wait_up(2);
    one.send(2, 2, vec![1; 1 << 20]);
    one.send(2, 0, "overtakes");
    ends.recv_timeout(Duration::from_secs(60)).unwrap();
    two.stop();
}

#[test]
fn an_idle_link_stays_and_a_silent_one_is_given_up() {
    let nodes = TestNode::cluster(2);
    nodes[0].wait_up(2);
    nodes[1].wait_up(1);
    // A member that shakes hands, and then says nothing: its machine was cut off. It takes the place of node 2's lane 0.
    let mut silent = TcpStream::connect(&nodes[0].addr).unwrap();
    let hello = transport::hello::Hello {
        version_min: VERSION_MIN,
        version_max: VERSION_MAX,
        cluster: CLUSTER,
        from: 2,
        from_store: store_of(2),
        incarnation: 1,
        to: 1,
        to_store: store_of(1),
        lane: 0,
        release: "silent".into(),
        knows: 1..=2,
        start: 0,
        began_after: None,
    };
    silent.write_all(&hello.encode()).unwrap();
    assert_eq!(message(&mut silent).0, Kind::Answer);
    silent.write_all(&transport::hello::encode_verdict(Ok(()))).unwrap();
    let since = Instant::now();
    silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0, "it is closed");
    // Either node 2 came back and took its place, or the silence was noticed. Node 2's own idle lanes outlive it.
    nodes[0].wait_up(2);
    until("longer than the silence that is allowed", || since.elapsed() > transport::SILENCE + transport::PROBE_EVERY);
    let link = nodes[0].link(2);
    assert!(link.up && link.since >= transport::SILENCE, "probes keep it: {link:?}");
    assert!((0..3).all(|lane| link.lanes[lane].connected_from));
}

#[test]
fn what_a_sender_could_not_write_is_written_later_in_its_place() {
    let (one, two) = (bind(), bind());
    let addr = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
    let (one_addr, two_addr) = (addr(&one), addr(&two));
    let one = TestNode::start(identity(1), one, vec![peer(2, &two_addr)]);
    let (go, goes) = std::sync::mpsc::channel::<()>();
    let (goes, got) = (std::sync::Mutex::new(goes), std::sync::Arc::new(std::sync::Mutex::new(Vec::new())));
    let inbox = got.clone();
    let deliver = transport::each(move |parcel: transport::Parcel| {
        let mut got = inbox.lock().unwrap();
        if got.is_empty() {
            goes.lock().unwrap().recv_timeout(Duration::from_secs(60)).unwrap();
        }
        got.push(parcel.bytes);
    });
    let peers = vec![peer(1, &one_addr)];
    let two =
        transport::Transport::start(two, identity(2), peers, Options::default(), deliver, Box::new(|r| r)).unwrap();
    one.wait_up(2);
    // One at a time and not too fast, so that senders write by themselves, until the kernel takes no more.
    let parcel = |n: u32| [&n.to_le_bytes()[..], &vec![n as u8; 7_000 + n as usize % 1_000]].concat();
    let mut sent = 0;
    until("the kernel is full", || {
        let at = Instant::now();
        until("the lane is idle", || at.elapsed() > Duration::from_micros(20));
        one.send(2, 0, parcel(sent));
        sent += 1;
        one.link(2).lanes[0].queued_parcels > 20
    });
    go.send(()).unwrap();
    until("all has arrived", || got.lock().unwrap().len() == sent as usize);
    assert!(got.lock().unwrap().iter().zip(0..).all(|(got, n)| got[..] == parcel(n)[..]));
    assert_eq!(one.link(2).lanes[0].dropped_parcels, 0);
    two.stop();
}
