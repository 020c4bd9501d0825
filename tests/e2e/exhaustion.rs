//! Work that would never end, and clients that ask for too much: each is ended, and nobody else waits.

use crate::bad_protocol::{message, startup};
use crate::node::{Node, PATIENCE, Scratch, repeat_with, until};
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc;

/// Statements that would be busy for hours, each in another place.
const ENDLESS: &[&str] = &[
    "SELECT count(*) FROM generate_series(1, 100000000000)",
    "SELECT repeat('a', 8000000) LIKE '%' || repeat('a', 4000000) || 'b%'",
    "SELECT length(to_char(n, repeat('Month', 2000000))) FROM generate_series(now(), now() + '10000 days', '1 day') n",
    "SELECT array_agg(i) @> array_agg(300000 - i) FROM generate_series(0, 300000) i",
    "SELECT jsonb_agg(i) @> jsonb_agg(300000 - i) FROM generate_series(0, 300000) i",
    "SELECT sum(power(1.000000000000001 + i, 0.123456789)) FROM generate_series(1, 100000000) i",
    "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b ON a < b",
    "SELECT i FROM generate_series(1, 3000000) i, generate_series(1, 1000) j ORDER BY -i LIMIT 1",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r WHERE n < 0",
    "CREATE TABLE endless AS SELECT i FROM generate_series(1, 100000000000) i WHERE i < 0",
    "INSERT INTO work SELECT i FROM generate_series(1, 100000000000) i WHERE i < 0",
    "COPY (SELECT i FROM generate_series(1, 100000000000) i WHERE i < 0) TO STDOUT",
    "CREATE INDEX ON work ((repeat('a', 4000000 + a) LIKE '%' || repeat('a', 2000000 + a) || 'b%'))",
    "ALTER TABLE work ALTER a TYPE bigint USING (repeat('a', 8000000 + a) LIKE '%' || repeat('a', 4000000 + a) || 'b%')::int",
];

fn node_with_work(scratch: &Scratch, flags: &[&str]) -> Node {
    let node = Node::start(&scratch.path().join("store"), flags);
    node.connect().batch_execute("CREATE TABLE work (a int); INSERT INTO work VALUES (1), (2)").unwrap();
    node
}

/// A statement of many, in one message.
fn many_sleeps() -> String {
    "SELECT pg_sleep(1);".repeat(50_000)
}

#[test]
fn endless_work_is_cancelled() {
    repeat_with("exhaustion::endless_work_is_cancelled");
    let scratch = Scratch::new();
    let node = node_with_work(&scratch, &[]);
    let sleeps = many_sleeps();
    // The driver has a call of its own for COPY.
    for sql in ENDLESS.iter().copied().filter(|sql| !sql.starts_with("COPY")).chain([sleeps.as_str()]) {
        let shown = &sql[..sql.len().min(100)];
        let mut client = node.connect();
        let cancel = client.cancel_token();
        let (done, ended) = mpsc::channel();
        let sql = sql.to_owned();
        std::thread::spawn(move || {
            let _ = done.send(client.batch_execute(&sql));
        });
        let answer = until("the statement ends", || {
            // Before it has begun there is nothing to cancel: asked for until it is.
            cancel.cancel_query(postgres::NoTls).unwrap();
            ended.try_recv().ok()
        });
        let error = answer.expect_err(shown);
        assert_eq!(error.code().map(|code| code.code()), Some("57014"), "{shown}: {error}");
    }
    until("nothing is left running", || (node.metric("sql_statements_active")? == 0.0).then_some(()));
}

#[test]
fn endless_work_ends_with_its_client() {
    repeat_with("exhaustion::endless_work_ends_with_its_client");
    let scratch = Scratch::new();
    let node = node_with_work(&scratch, &[]);
    let sleeps = many_sleeps();
    for sql in ENDLESS.iter().copied().chain([sleeps.as_str()]) {
        let mut socket = node.socket();
        socket.write_all(&startup()).unwrap();
        socket.write_all(&message(b'Q', &[sql.as_bytes(), b"\0"].concat())).unwrap();
        until("it runs", || (node.metric("sql_statements_active")? > 0.0).then_some(()));
        drop(socket);
        until("it ends", || (node.metric("sql_statements_active")? == 0.0).then_some(()));
    }
}

/// Clients that connect and do not say who they are keep nobody out.
#[test]
fn silent_connections_keep_nobody_out() {
    repeat_with("exhaustion::silent_connections_keep_nobody_out");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &["--max-connections", "8"]);
    let mut before = node.connect();
    let mut silent: Vec<TcpStream> = Vec::new();
    for round in 0..400 {
        let mut socket = node.socket();
        if round % 2 == 0 {
            socket.write_all(&startup()[..6]).unwrap();
        }
        silent.push(socket);
        if round % 20 == 0 {
            let one: i32 = node.connect().query_one("SELECT 1", &[]).unwrap().get(0);
            assert_eq!(one, 1);
        }
    }
    let two: i32 = before.query_one("SELECT 2", &[]).unwrap().get(0);
    assert_eq!(two, 2, "sessions keep their places");
}

/// Resident memory, bytes.
fn resident_bytes(node: &Node) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() << 10
}

/// Large messages of all clients share a bound; small ones go on; memory comes back.
#[test]
fn unfinished_messages_share_a_bound() {
    /// Of each message, bytes.
    const LARGE_BYTES: usize = 59 << 20;
    repeat_with("exhaustion::unfinished_messages_share_a_bound");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut bystander = node.connect();
    let before = resident_bytes(&node);
    let piece = vec![b' '; 1 << 20];
    let mut sockets = Vec::new();
    for _ in 0..20 {
        let mut socket = node.socket();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(&startup()).unwrap();
        socket.write_all(b"Q").unwrap();
        socket.write_all(&(LARGE_BYTES as i32 + 4).to_be_bytes()).unwrap();
        for _ in 1..LARGE_BYTES >> 20 {
            socket.write_all(&piece).unwrap();
        }
        sockets.push(socket);
        let one: i32 = bystander.query_one("SELECT 1", &[]).unwrap().get(0);
        assert_eq!(one, 1);
    }
    // The bound, and buffers that were left for larger ones and have not gone back yet; without a bound it is twice that.
    let held = resident_bytes(&node).saturating_sub(before);
    assert!(held < 640 << 20, "{held} bytes are held");
    // One that was dropped is told so, and its connection goes on.
    let mut last = sockets.pop().unwrap();
    last.write_all(&piece).unwrap();
    last.write_all(&message(b'Q', b"SELECT 'still here'\0")).unwrap();
    let mut seen = Vec::new();
    let mut chunk = [0; 4096];
    until("both are answered", || {
        let n = std::io::Read::read(&mut last, &mut chunk).unwrap();
        seen.extend_from_slice(&chunk[..n]);
        let says = |text: &[u8]| seen.windows(text.len()).any(|window| window == text);
        (says(b"53200") && says(b"still here")).then_some(())
    });
    drop((sockets, last));
    until("memory comes back", || (resident_bytes(&node) < before + (96 << 20)).then_some(()));
}
