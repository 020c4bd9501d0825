//! Whatever a client sends costs only its own connection.

use crate::node::{Node, Scratch, repeat_with, state, until};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// Seed of the random bytes; another one is as good.
const SEED: u64 = 8;

pub fn startup() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0root\0database\0postgres\0\0";
    [&(body.len() as i32 + 4).to_be_bytes(), body.as_slice()].concat()
}

pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag], (body.len() as i32 + 4).to_be_bytes().as_slice(), body].concat()
}

/// Reads to the end of the connection; a reset is an end as well.
fn read_all(mut socket: &TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    match socket.read_to_end(&mut all) {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
        Err(e) => panic!("the connection did not end: {e}"),
    }
    all
}

/// Reads up to ReadyForQuery.
pub fn read_ready(socket: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut head = [0; 5];
        socket.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        socket.read_exact(&mut body).unwrap();
        all.extend_from_slice(&head);
        all.extend_from_slice(&body);
        if head[0] == b'Z' {
            return all;
        }
    }
}

pub fn says(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|w| w == text.as_bytes())
}

/// The innocent bystander: a session that was there before, and a new one.
fn assert_others_live(node: &Node, bystander: &mut postgres::Client) {
    let one: i32 = bystander.query_one("SELECT 1", &[]).unwrap().get(0);
    let two: i32 = node.connect().query_one("SELECT 2", &[]).unwrap().get(0);
    assert_eq!((one, two), (1, 2));
}

#[test]
fn random_bytes() {
    repeat_with("bad_protocol::random_bytes");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut bystander = node.connect();
    let mut rng = SmallRng::seed_from_u64(SEED);
    for round in 0..200 {
        let mut socket = node.socket();
        let mut bytes = if round % 2 == 0 { Vec::new() } else { startup() };
        bytes.extend((0..rng.random_range(1..4000)).map(|_| rng.random::<u8>()));
        // The server may close before it has heard all.
        let _ = socket.write_all(&bytes);
        let _ = socket.shutdown(Shutdown::Write);
        read_all(&socket);
    }
    assert_others_live(&node, &mut bystander);
}

/// Valid messages with random bytes changed, cut or doubled: deeper than noise reaches.
#[test]
fn mangled_messages() {
    repeat_with("bad_protocol::mangled_messages");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut bystander = node.connect();
    let whole = [
        message(b'Q', b"SELECT 1\0"),
        message(b'P', b"s\0SELECT $1::int4\0\0\x01\0\0\0\x17"),
        message(b'B', b"\0s\0\0\x01\0\0\0\x01\0\0\0\x017\0\0"),
        message(b'D', b"P\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
        message(b'X', b""),
    ]
    .concat();
    let mut rng = SmallRng::seed_from_u64(SEED);
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..3) {
                0 => bytes[at] = rng.random(),
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, rng.random()),
            }
        }
        let mut socket = node.socket();
        let _ = socket.write_all(&[startup(), bytes].concat());
        let _ = socket.shutdown(Shutdown::Write);
        read_all(&socket);
    }
    assert_others_live(&node, &mut bystander);
    assert_eq!(node.metric("sql_session_panics"), Some(0.0));
}

#[test]
fn huge_lengths() {
    repeat_with("bad_protocol::huge_lengths");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut bystander = node.connect();
    for bytes in [[0x7f, 0xff, 0xff, 0xff, 0], [0, 0, 0, 1, 0], [0xff; 5]] {
        let mut socket = node.socket();
        socket.write_all(&bytes).unwrap();
        let answer = read_all(&socket);
        assert!(says(&answer, "C08P01"), "start-up {bytes:?}: {answer:?}");
    }
    for length in [i32::MAX, -1, 3, 65 << 20] {
        let mut socket = node.socket();
        socket.write_all(&startup()).unwrap();
        read_ready(&mut socket);
        socket.write_all(&[b"Q", length.to_be_bytes().as_slice()].concat()).unwrap();
        let answer = read_all(&socket);
        assert!(says(&answer, "FATAL") && says(&answer, "C08P01"), "length {length}: {answer:?}");
    }
    assert_others_live(&node, &mut bystander);
}

#[test]
fn half_messages() {
    repeat_with("bad_protocol::half_messages");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut bystander = node.connect();
    let mut held = Vec::new();
    for cut in [1, 4, 5, 9] {
        let mut socket = node.socket();
        socket.write_all(&startup()).unwrap();
        read_ready(&mut socket);
        socket.write_all(&message(b'Q', b"SELECT 1\0")[..cut]).unwrap();
        held.push(socket);
    }
    let mut half_startup = node.socket();
    half_startup.write_all(&startup()[..10]).unwrap();
    assert_others_live(&node, &mut bystander);
    drop((held, half_startup));
    assert_others_live(&node, &mut bystander);
    until("the half sessions are gone", || (node.metric("sql_conns")? == 1.0).then_some(()));
}

/// A client that never says who it is loses its place after ten seconds, however slowly it trickles.
#[test]
fn slow_startup() {
    repeat_with("bad_protocol::slow_startup");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut bystander = node.connect();
    let mut trickling = node.socket();
    let silent = node.socket();
    for byte in startup().iter().take(12) {
        // On a slow machine the ten seconds may end on the way.
        let _ = trickling.write_all(&[*byte]);
        assert_others_live(&node, &mut bystander);
    }
    for socket in [&trickling, &silent] {
        assert!(says(&read_all(socket), "took longer"));
    }
    assert_others_live(&node, &mut bystander);
}

#[test]
fn an_answered_error_leaves_the_session_usable() {
    repeat_with("bad_protocol::an_answered_error_leaves_the_session_usable");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut socket = node.socket();
    socket.write_all(&startup()).unwrap();
    read_ready(&mut socket);
    for (bytes, code) in [
        (message(b'F', b"\0\0\0\0"), "C0A000"),
        (message(b'Q', b"SELECT '\xff'\0"), "C22021"),
        (message(b'Q', b"SELECT 1"), "C08P01"),
        ([message(b'B', b"x"), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat(), "C08P01"),
    ] {
        socket.write_all(&bytes).unwrap();
        let answer = read_ready(&mut socket);
        assert!(says(&answer, code), "{code}: {}", String::from_utf8_lossy(&answer));
    }
    socket.write_all(&message(b'Q', b"SELECT 7\0")).unwrap();
    assert!(says(&read_ready(&mut socket), "SELECT 1"));
    // Copy messages outside of a COPY are dropped, as in PostgreSQL.
    socket.write_all(&[message(b'd', b"x"), message(b'c', b""), message(b'Q', b"SELECT 8\0")].concat()).unwrap();
    assert!(says(&read_ready(&mut socket), "SELECT 1"));
}

#[test]
fn encryption_is_declined_and_another_protocol_refused() {
    repeat_with("bad_protocol::encryption_is_declined_and_another_protocol_refused");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut socket = node.socket();
    for request in [80_877_103u32, 80_877_104] {
        socket.write_all(&[8u32.to_be_bytes(), request.to_be_bytes()].concat()).unwrap();
        let mut answer = [0];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"N");
    }
    socket.write_all(&startup()).unwrap();
    read_ready(&mut socket);
    let mut old = node.socket();
    old.write_all(&[9u32.to_be_bytes().as_slice(), &[0, 2, 0, 0, 0]].concat()).unwrap();
    assert!(says(&read_all(&old), "C0A000"));
    let mut newer = node.socket();
    let body = b"\0\x03\0\x02user\0root\0database\0postgres\0_pq_.sundial\0on\0\0";
    newer.write_all(&[&(body.len() as i32 + 4).to_be_bytes(), body.as_slice()].concat()).unwrap();
    let answer = read_ready(&mut newer);
    assert!(answer[0] == b'v' && says(&answer, "_pq_.sundial"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn too_many_connections() {
    repeat_with("bad_protocol::too_many_connections");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &["--max-connections", "2"]);
    let (mut first, second) = (node.connect(), node.connect());
    let refused = postgres::Client::connect(&node.url(), postgres::NoTls).err().unwrap();
    assert_eq!(state(&refused), "53300");
    drop(second);
    until("a place is free", || postgres::Client::connect(&node.url(), postgres::NoTls).ok());
    first.batch_execute("SELECT 1").unwrap();
}

/// Statements that nest or chain deeper than any stack: refused or answered, never fatal to the process.
#[test]
fn deep_statements() {
    repeat_with("bad_protocol::deep_statements");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut bystander = node.connect();
    bystander.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY)").unwrap();
    let n = 50_000;
    for text in [
        format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT 1{}", " + 1".repeat(n)),
        format!("SELECT {}1", "- ".repeat(n)),
        format!("SELECT {}true", "NOT ".repeat(n)),
        format!("SELECT * FROM t WHERE id = 0{}", " OR id = 1".repeat(n)),
        format!("SELECT * FROM t WHERE id = 0{}", " AND id = 1".repeat(n)),
        format!("SELECT 'a'{}", " || 'b'".repeat(n)),
        format!("SELECT 1{}", "::int8".repeat(n)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(n)),
        format!("SELECT {}1{}", "(SELECT ".repeat(n), ")".repeat(n)),
        format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(n), " END".repeat(n)),
        format!("DELETE FROM t WHERE id IN (0{})", ", 1".repeat(n)),
        format!("INSERT INTO t VALUES ({}1{})", "abs(".repeat(n), ")".repeat(n)),
    ] {
        let mut client = node.connect();
        if let Err(e) = client.simple_query(&text) {
            assert!(matches!(state(&e), "54001" | "42601" | "0A000" | "53200" | "54000"), "{e}: {:.60}", text);
        }
        assert_others_live(&node, &mut bystander);
    }
}
