//! One setting bounds the memory of a node, and everything shows it; what holds old versions is shown, and bounded, too.

use crate::bad_protocol::{message, startup};
use crate::node::{Node, Scratch, bytes_of, repeat_with, state, until};
use std::io::Write;
use std::net::TcpStream;

/// Holds more than the statements' share of the least node, and nothing of it goes to temporary files.
const LARGE: &str = "SELECT sum(n) FROM (SELECT row_number() OVER (ORDER BY repeat('x', 100) || g) AS n FROM generate_series(1, 400000) g) q";

#[test]
fn one_setting_is_shared_out_and_shown() {
    repeat_with("memory::one_setting_is_shared_out_and_shown");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &["--memory", "128MiB"]);
    let mut client = node.connect();
    let shown: String = client.query_one("SHOW timeball.memory_bytes", &[]).unwrap().get(0);
    assert_eq!(shown, (128 << 20).to_string());
    let rows =
        client.query("SELECT name, share_bytes::int8, used_bytes::int8 FROM timeball_internal.memory", &[]).unwrap();
    let share = |name: &str| rows.iter().find(|row| row.get::<_, &str>(0) == name).map(|row| row.get::<_, i64>(1));
    assert_eq!(share("total"), Some(128 << 20));
    let parts: i64 = rows.iter().filter(|row| row.get::<_, &str>(0) != "total").map(|row| row.get::<_, i64>(1)).sum();
    assert!(parts > 0 && parts <= (128 << 20) / 24 * 17 + 17, "{parts}");
    assert!(
        rows.iter().any(|row| row.get::<_, Option<i64>>(2).is_some_and(|used| used > 0)),
        "the process holds something"
    );
    assert_eq!(node.metric("memory_limit_bytes"), Some(f64::from(128 << 20)));
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    assert!(!status.contains("THP_enabled:\t1"), "the system fills up no pages that nobody asked for");
    assert!(node.get("/health").contains("\"memory_bytes\":134217728") && node.log().contains("memory_mib total=128"));
}

#[test]
fn statements_have_one_bound_together() {
    repeat_with("memory::statements_have_one_bound_together");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &["--memory", "128MiB"]);
    let mut client = node.connect();
    let refused = client.query_one(LARGE, &[]).unwrap_err();
    assert!(
        state(&refused) == "53200" && refused.as_db_error().unwrap().message().contains("the statement needs"),
        "{refused:?}"
    );
    // What a session allows itself is still no more than what all have.
    client.batch_execute("SET timeball.query_memory_bytes = '100GB'").unwrap();
    let refused = client.query_one(LARGE, &[]).unwrap_err();
    assert!(
        state(&refused) == "53200" && refused.as_db_error().unwrap().message().contains("all sessions"),
        "{refused:?}"
    );
    assert_eq!(node.metric("memory_statements_bytes"), Some(0.0), "what a refused statement held comes back");
    assert_eq!(client.query_one("SELECT 1", &[]).unwrap().get::<_, i32>(0), 1);
    let refused = Node::try_start(&scratch.path().join("other"), &["--memory", "1MiB"]).err().unwrap();
    assert!(refused.contains("--memory") || refused.contains("at least 128MiB"), "{refused}");
}

#[test]
fn a_snapshot_that_is_held_too_long_is_given_up() {
    repeat_with("memory::a_snapshot_that_is_held_too_long_is_given_up");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &["--snapshot-age-max", "300ms"]);
    let (mut old, mut other) = (node.connect(), node.connect());
    assert_eq!(other.query_one("SHOW timeball.snapshot_age_max", &[]).unwrap().get::<_, &str>(0), "300ms");
    old.batch_execute("BEGIN; SELECT 1").unwrap();
    // Nothing comes from its client: the server rolls it back.
    let holders = "SELECT pid FROM timeball_internal.snapshots WHERE state LIKE 'idle in transaction%'";
    until("nobody holds a snapshot", || other.query(holders, &[]).unwrap().is_empty().then_some(()));
    assert_eq!(state(&old.batch_execute("SELECT 1").unwrap_err()), "72000");
    assert_eq!(state(&old.batch_execute("COMMIT").unwrap_err()), "72000");
    assert_eq!(old.query_one("SELECT 1", &[]).unwrap().get::<_, i32>(0), 1);
}

/// A client, and one who has asked for more than its socket takes, and reads nothing.
fn beside_one_who_does_not_read(node: &Node) -> (postgres::Client, TcpStream) {
    let mut other = node.connect();
    other
        .batch_execute("CREATE TABLE t AS SELECT g AS id, repeat('x', 1000) AS text FROM generate_series(1, 100000) g")
        .unwrap();
    let mut deaf = node.socket();
    deaf.write_all(&[startup(), message(b'Q', b"SELECT * FROM t\0")].concat()).unwrap();
    (other, deaf)
}

/// Who asks for much and reads nothing of it: what is held for him is given up.
#[test]
fn a_client_that_does_not_read_holds_no_snapshot_for_ever() {
    repeat_with("memory::a_client_that_does_not_read_holds_no_snapshot_for_ever");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &["--snapshot-age-max", "300ms"]);
    let (mut other, _deaf) = beside_one_who_does_not_read(&node);
    let asked = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT * FROM t' AND state = 'active'";
    until("the statement is under way", || (!other.query(asked, &[]).unwrap().is_empty()).then_some(()));
    until("nobody holds a snapshot for it", || other.query(asked, &[]).unwrap().is_empty().then_some(()));
    assert_eq!(
        other
            .query(
                "SELECT pid FROM timeball_internal.snapshots WHERE state = 'active' AND pid <> pg_backend_pid()",
                &[]
            )
            .unwrap()
            .len(),
        0
    );
}

/// Who reads nothing can be ended by another session.
#[test]
fn a_client_that_does_not_read_is_ended() {
    repeat_with("memory::a_client_that_does_not_read_is_ended");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let (mut other, deaf) = beside_one_who_does_not_read(&node);
    let asked = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT * FROM t'";
    let active = format!("{asked} AND state = 'active'");
    let pid: i32 = until("the statement is under way", || other.query(&active, &[]).unwrap().first().map(|r| r.get(0)));
    // It has left as much as the socket takes, which is far less than all of it.
    until("it has answered", || deaf.peek(&mut [0; 1 << 16]).is_ok_and(|bytes| bytes == 1 << 16).then_some(()));
    assert!(other.query_one("SELECT pg_terminate_backend($1)", &[&pid]).unwrap().get::<_, bool>(0));
    until("it is gone", || other.query(asked, &[]).unwrap().is_empty().then_some(()));
}

/// 400,000 rows of more than 40 MB, where one statement has 13 MiB and all of them 26 MiB.
#[test]
fn what_is_more_than_the_memory_goes_to_temporary_files() {
    repeat_with("memory::what_is_more_than_the_memory_goes_to_temporary_files");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let node = Node::start(&store, &["--memory", "128MiB"]);
    let mut client = node.connect();
    // Loaded past the log: what ordinary transactions write is held in memory.
    let load = "CREATE TABLE t AS SELECT g AS id, (g::int8 * 7919 % 400000)::int AS k, repeat('x', 100) || (g::int8 * 7919 % 400000) AS text \
        FROM generate_series(0, 399999) g";
    client.batch_execute(load).unwrap();
    let files = |client: &mut postgres::Client| -> (i64, i64) {
        let shown = "SELECT temp_files, temp_bytes FROM pg_stat_database WHERE datname = current_database()";
        let row = client.query_one(shown, &[]).unwrap();
        (row.get(0), row.get(1))
    };
    for (query, expected) in [
        // Sorted, in order.
        (
            "SELECT count(*) FILTER (WHERE k < 0), count(*) FROM (SELECT text, k FROM t ORDER BY text OFFSET 0) q",
            (0, 400_000),
        ),
        ("SELECT count(*), sum(n)::int8 FROM (SELECT text, count(*) AS n FROM t GROUP BY text) q", (400_000, 400_000)),
        ("SELECT count(*), count(DISTINCT text) FROM t", (400_000, 400_000)),
        (
            "SELECT count(*), sum(length(text)) - 100 * count(*) FROM (SELECT DISTINCT text FROM t) q",
            (400_000, 2_288_890),
        ),
        ("SELECT count(*), count(b.id) FROM t a LEFT JOIN t b ON a.text = b.text AND b.id >= 100", (400_000, 399_900)),
    ] {
        let before = files(&mut client);
        let row = client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), expected, "{query}");
        let after = files(&mut client);
        assert!(after.0 > before.0 && after.1 - before.1 > 10 << 20, "{query}: {before:?} {after:?}");
    }
    let rows = client.query("SELECT k FROM t ORDER BY text, id", &[]).unwrap();
    let texts: Vec<String> = rows.iter().map(|row| row.get::<_, i32>(0).to_string()).collect();
    assert!(texts.len() == 400_000 && texts.is_sorted());
    assert_eq!(node.metric("memory_statements_bytes"), Some(0.0));
    client.batch_execute("SET temp_file_limit = '1MB'").unwrap();
    assert_eq!(state(&client.query("SELECT * FROM t ORDER BY text", &[]).unwrap_err()), "53400");
    client.batch_execute("RESET temp_file_limit; SET statement_timeout = '200ms'").unwrap();
    assert_eq!(state(&client.query("SELECT * FROM t ORDER BY text DESC", &[]).unwrap_err()), "57014");
    let left: Vec<_> = std::fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("scratch")), "{left:?}");
}

/// Rows of 2 KB: a sixth of them is more than all statements of the least node may have.
const LARGE_ROWS: usize = 60_000;

/// Begins a COPY, and gives so many rows.
fn copy_rows(client: &mut postgres::Client, rows: std::ops::Range<usize>) -> Result<u64, postgres::Error> {
    let mut into = client.copy_in("COPY t FROM STDIN")?;
    for id in rows {
        // What its connection says, the end of the COPY says, too, and better.
        if writeln!(into, "{id}\t{}\t{}", id / LARGE_ROWS * LARGE_ROWS + id * 7919 % LARGE_ROWS, "x".repeat(2000))
            .is_err()
        {
            break;
        }
    }
    into.finish()
}

/// As a plain dump does it: the table is committed long before its rows come.
#[test]
fn a_table_that_is_there_and_empty_takes_a_copy_of_any_size() {
    repeat_with("memory::a_table_that_is_there_and_empty_takes_a_copy_of_any_size");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let node = Node::start(&store, &["--memory", "128MiB"]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, k int UNIQUE, pad text NOT NULL)").unwrap();
    assert_eq!(copy_rows(&mut client, 0..LARGE_ROWS).unwrap(), LARGE_ROWS as u64);
    let whole = "SELECT count(*), sum(id)::int8, sum(k)::int8, count(*) FILTER (WHERE pad = repeat('x', 2000)) FROM t";
    let (count, sum) = (LARGE_ROWS as i64, (LARGE_ROWS * (LARGE_ROWS - 1) / 2) as i64);
    let row = client.query_one(whole, &[]).unwrap();
    let found: Vec<i64> = (0..4).map(|at| row.get(at)).collect();
    assert_eq!(found, [count, sum, sum, count]);
    // Where it has rows it cannot be, and says what can.
    let refused = copy_rows(&mut client, LARGE_ROWS..2 * LARGE_ROWS).unwrap_err();
    let told = refused.as_db_error().expect("of the database");
    assert!(told.code().code() == "53200" && told.hint().is_some_and(|hint| hint.contains("TRUNCATE")), "{told:?}");
    assert_eq!(client.query_one("SELECT count(*) FROM t", &[]).unwrap().get::<_, i64>(0), count);
    assert_eq!(node.metric("memory_statements_bytes"), Some(0.0));
}

/// Killed in the middle of it: the table is empty, its writers wait for nobody, and the space comes back.
#[test]
fn nothing_is_left_of_a_copy_that_was_killed() {
    repeat_with("memory::nothing_is_left_of_a_copy_that_was_killed");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let flags = ["--memory", "128MiB", "--retention", "1s"];
    let node = Node::start(&store, &flags);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, k int UNIQUE, pad text NOT NULL)").unwrap();
    let before = bytes_of(&store);
    let mut into = client.copy_in("COPY t FROM STDIN").unwrap();
    let mut ids = 0..LARGE_ROWS;
    // Far more than what is held as writes: chunks of it are in the engine.
    while bytes_of(&store) < before + (40 << 20) {
        let id = ids.next().expect("it is loaded before it ends");
        writeln!(into, "{id}\t{id}\t{}", "x".repeat(2000)).unwrap();
        if id % 100 == 0 {
            into.flush().unwrap();
        }
    }
    node.kill();
    drop(into.finish());
    drop(client);
    let node = Node::start(&store, &flags);
    let mut client = node.connect();
    assert_eq!(client.query_one("SELECT count(*) FROM t", &[]).unwrap().get::<_, i64>(0), 0);
    client.batch_execute("SET lock_timeout = '20s'; INSERT INTO t VALUES (1, 1, 'x'); DELETE FROM t").unwrap();
    until("its space is free", || (bytes_of(&store) < before + (20 << 20)).then_some(()));
    assert_eq!(copy_rows(&mut client, 0..LARGE_ROWS).unwrap(), LARGE_ROWS as u64);
    assert_eq!(client.query_one("SELECT count(*) FROM t", &[]).unwrap().get::<_, i64>(0), LARGE_ROWS as i64);
}
