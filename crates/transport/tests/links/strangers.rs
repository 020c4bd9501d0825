//! Whoever knocks with noise costs a bound, and members come in all the same.

use crate::node::{TestNode, bind, identity, peer, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use transport::hello::{Kind, envelope};
use transport::{Event, GUESTS_MAX, HANDSHAKE_TIMEOUT};

fn knock(node: &TestNode, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(&node.addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The other end may have closed it already.
    let _ = stream.write_all(bytes);
    stream
}

fn is_closed(mut stream: &TcpStream) -> bool {
    let mut some = [0; 1024];
    loop {
        match stream.read(&mut some) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) => return e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn noise_of_every_kind_is_closed_and_told_once() {
    let node = TestNode::start(identity(1), bind(), vec![]);
    let mut noise: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n".to_vec(),
        vec![0; 100_000],
        vec![0xff; 100_000],
        b"tmbl".iter().copied().chain([99; 20]).collect(),
        // Lengths that would be much memory.
        [&b"tmbl\x01"[..], &u32::MAX.to_le_bytes()].concat(),
        [&b"tmbl\x02"[..], &(transport::CONTROL_BYTES_MAX as u32 + 1).to_le_bytes()].concat(),
        // Messages that do not open a connection, and a hello that is cut short.
        envelope(Kind::Answer, &[]),
        envelope(Kind::Verdict, &[0]),
        envelope(Kind::Hello, &[1, 0, 1, 0, 5]),
        envelope(Kind::Hello, &[]),
    ];
    noise.push(transport::frame::PROBE.to_vec());
    noise.push(vec![0; transport::hello::ENVELOPE_BYTES]);
    for bytes in &noise {
        assert!(is_closed(&knock(&node, bytes)), "{:?}", &bytes[..bytes.len().min(20)]);
    }
    // Who only looks whether the port is open is not worth a word.
    drop(knock(&node, b""));
    assert_eq!(node.count(|e| matches!(e, Event::Noise { .. })), 1);
    assert_eq!(node.count(|_| true), 1, "{:?}", node.events.lock().unwrap());
}

#[test]
fn a_half_handshake_and_a_slow_one_end_in_time() {
    let node = TestNode::start(identity(1), bind(), vec![]);
    let begun = Instant::now();
    let half = knock(&node, b"tmb");
    let announced = knock(&node, &envelope(Kind::Hello, &[7; 100])[..50]);
    let mute = knock(&node, b"");
    // One byte at a time, for as long as it is taken.
    let whole = envelope(Kind::Request, &vec![1; 60_000]);
    let slow = knock(&node, &whole[..20]);
    let mut sent = 20;
    until("the slow one is closed", || {
        sent += 1;
        (&slow).write_all(&whole[sent..=sent]).is_err()
    });
    assert!(is_closed(&half) && is_closed(&announced) && is_closed(&mute));
    // No earlier than it may, which is all that can be said of time here; later is the machine's doing.
    assert!(begun.elapsed() >= HANDSHAKE_TIMEOUT / 2);
}

#[test]
fn thousands_of_connections_are_bounded_and_members_come_in() {
    let (one, two) = (bind(), bind());
    let (one_addr, two_addr) = (one.local_addr().unwrap().to_string(), two.local_addr().unwrap().to_string());
    let one = TestNode::start(identity(1), one, vec![peer(2, &two_addr)]);
    // Few at a time stay open here, so that the test's own descriptors do.
    let mut held = std::collections::VecDeque::new();
    let most = std::cell::Cell::new(0);
    let threads = || {
        let readers = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        readers.map(name).filter(|name| name.trim() == "peer-reader").count()
    };
    for n in 0..3000 {
        held.push_back(knock(&one, if n % 2 == 0 { b"" } else { b"tmbl" }));
        if held.len() > 400 {
            held.pop_front();
        }
        if n % 100 == 0 {
            most.set(most.get().max(threads()));
        }
    }
    let two = TestNode::start(identity(2), two, vec![peer(1, &one_addr)]);
    one.wait_up(2);
    two.wait_up(1);
    two.send(1, 0, "a member");
    assert_eq!(one.take(1)[0].bytes, "a member");
    // Other tests of this process have threads of that name, too: a bound on all is enough to tell it from thousands.
    assert!(most.get() < 4 * GUESTS_MAX, "{} threads", most.get());
}
