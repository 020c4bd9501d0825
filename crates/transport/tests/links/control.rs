//! Control requests, before and after a node is a member.

use crate::node::{TestNode, bind, identity, peer, until};
use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use transport::{CONTROL_BYTES_MAX, Door, Event, Options, Refusal, Transport};

const PATIENCE: Duration = Duration::from_secs(60);

fn reversed(request: Bytes) -> Bytes {
    request.iter().rev().copied().collect::<Vec<_>>().into()
}

#[test]
fn a_request_of_any_length_gets_its_reply() {
    let listener = bind();
    let addr = listener.local_addr().unwrap().to_string();
    let door = Door::open(listener, Box::new(reversed)).unwrap();
    for len in [0, 1, 5_000, CONTROL_BYTES_MAX] {
        let request: Vec<u8> = (0..len).map(|n| n as u8).collect();
        assert_eq!(transport::control(&addr, &request, PATIENCE).unwrap(), reversed(request.into()));
    }
    let too_long = transport::control(&addr, &vec![0; CONTROL_BYTES_MAX + 1], PATIENCE).unwrap_err();
    assert_eq!(too_long.kind(), std::io::ErrorKind::InvalidInput);
    drop(door);
    transport::control(&addr, b"anybody?", PATIENCE).unwrap_err();
}

#[test]
fn a_reply_that_does_not_come_is_not_waited_for() {
    let mute = bind();
    let addr = mute.local_addr().unwrap().to_string();
    let error = transport::control(&addr, b"hello?", Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

#[test]
fn a_door_becomes_a_transport_and_whoever_knocked_before_comes_in() {
    let (listener, other) = (bind(), bind());
    let addr = listener.local_addr().unwrap().to_string();
    let other_addr = other.local_addr().unwrap().to_string();
    let door = Door::open(listener, Box::new(|_| "no member".into())).unwrap();
    assert_eq!(transport::control(&addr, b"who are you?", PATIENCE).unwrap(), "no member");

    let two = TestNode::start(identity(2), other, vec![peer(1, &addr)]);
    let told = |e: &Event| matches!(e, Event::RefusedAtDial { node: 1, refusal: Refusal::NotAMember, .. });
    two.expect("it is told that node 1 is no member", told);

    let one = TestNode::start(identity(1), door.close(), vec![peer(2, &other_addr)]);
    two.wait_up(1);
    one.wait_up(2);
    two.send(1, 0, "welcome");
    assert_eq!(one.take(1)[0].bytes, "welcome");
    assert_eq!(two.count(told), 1);
    assert_eq!(transport::control(&addr, b"echo", PATIENCE).unwrap(), "echo");
}

#[test]
fn closing_a_door_waits_for_the_answers_that_are_under_way() {
    let listener = bind();
    let addr = listener.local_addr().unwrap().to_string();
    let (asked, is_asked) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    let (asked, goes) = (Mutex::new(asked), Mutex::new(goes));
    let control = move |_| {
        asked.lock().unwrap().send(()).unwrap();
        goes.lock().unwrap().recv().unwrap();
        Bytes::from("done")
    };
    let door = Door::open(listener, Box::new(control)).unwrap();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| transport::control(&addr, b"go", PATIENCE));
        is_asked.recv_timeout(PATIENCE).unwrap();
        let closes = scope.spawn(|| door.close());
        go.send(()).unwrap();
        assert_eq!(client.join().unwrap().unwrap(), "done");
        closes.join().unwrap();
    });
}

#[test]
fn a_callback_that_panics_costs_its_own_connection() {
    let listener = bind();
    let addr = listener.local_addr().unwrap().to_string();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let control = move |request: Bytes| {
        counted.fetch_add(1, SeqCst);
        assert_ne!(request, "bad", "the callback's own mistake, on purpose");
        request
    };
    let deliver = Box::new(|_| {});
    let node = Transport::start(listener, identity(1), vec![], Options::default(), deliver, Box::new(control)).unwrap();
    transport::control(&addr, b"bad", PATIENCE).unwrap_err();
    assert_eq!(transport::control(&addr, b"good", PATIENCE).unwrap(), "good");
    until("both were called", || calls.load(SeqCst) == 2);
    node.stop();
}
