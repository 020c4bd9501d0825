//! Start, stop, restart.

use crate::node::{Node, Scratch, binary, is_gone, repeat_with, state, until};
use lab::client::{Client, Url};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn a_second_start_is_refused() {
    repeat_with("lifecycle::a_second_start_is_refused");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let node = Node::start(&store, &[]);
    let before = node.log().len();
    let Err(log) = Node::try_start(&store, &[]) else { panic!("two nodes on one store") };
    let said = &log[before..];
    assert!(said.contains(&format!("in use by process {}", node.pid())), "{said}");
    node.connect().batch_execute("SELECT 1").unwrap();
}

#[test]
fn only_loopback_unless_told() {
    repeat_with("lifecycle::only_loopback_unless_told");
    let scratch = Scratch::new();
    let start = |flags: &[&str]| {
        let store = scratch.path().join("store");
        Command::new(binary()).args(["start", "--store"]).arg(store).args(flags).output().unwrap()
    };
    let refused = start(&["--listen-addr", "0.0.0.0:0", "--http-addr", "127.0.0.1:0"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--insecure"));
    let nonsense = start(&["--clock", "sundial"]);
    assert!(!nonsense.status.success());
    assert!(String::from_utf8_lossy(&nonsense.stderr).contains("there is no clock source"));
}

/// What a node logs when statements take longer than its drain waits, and it interrupts them.
const INTERRUPTS: &str = "drain_interrupts";

/// SIGTERM: an idle session hears 57P01, one inside a transaction too; the statement that waited for its lock goes on and ends
/// well; and the process ends by itself, with 0.
#[test]
fn sigterm_drains() {
    repeat_with("lifecycle::sigterm_drains");
    // A disk that stands still for seconds uses up the time that a drain has for statements; the node says so.
    assert!((0..5).any(|_| drains()), "the statement was interrupted each time");
}

/// `false`: the machine was too slow for the drain, and the statement was interrupted.
fn drains() -> bool {
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut holder = node.connect();
    holder.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, n int4); INSERT INTO t VALUES (1, 0)").unwrap();
    holder.batch_execute("BEGIN; UPDATE t SET n = 1 WHERE id = 1").unwrap();
    let mut idle = node.connect();
    idle.batch_execute("SELECT 1").unwrap();
    // tokio-postgres would report the farewell that comes right after the answer in its place.
    let mut waiter = Client::connect(&Url::parse(&node.url()).unwrap()).unwrap();
    let waiting = std::thread::spawn(move || waiter.query("UPDATE t SET n = 2 WHERE id = 1"));
    until("the statement waits for the lock", || (node.metric("lock_waiters")? == 1.0).then_some(()));
    node.terminate();
    let status = node.wait();
    let log = std::fs::read_to_string(scratch.path().join("store.log")).unwrap();
    assert!(status.success(), "{status}: {log}");
    let told = idle.batch_execute("SELECT 1").unwrap_err();
    assert!(is_gone(&told) || state(&told) == "57P01", "{told}");
    assert!(holder.batch_execute("COMMIT").is_err());
    let waited = waiting.join().unwrap();
    if log.contains(INTERRUPTS) {
        return false;
    }
    waited.unwrap();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let n: i32 = node.connect().query_one("SELECT n FROM t", &[]).unwrap().get(0);
    assert_eq!(n, 2, "what was acknowledged while it drained");
    true
}

/// A statement that takes longer than a drain waits is interrupted.
#[test]
fn sigterm_interrupts_what_takes_too_long() {
    repeat_with("lifecycle::sigterm_interrupts_what_takes_too_long");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut sleeper = node.connect();
    let sleeping = std::thread::spawn(move || sleeper.batch_execute("SELECT pg_sleep(3600)"));
    until("the statement runs", || (node.metric("sql_statements_active")? == 1.0).then_some(()));
    node.terminate();
    assert!(node.wait().success());
    let log = std::fs::read_to_string(scratch.path().join("store.log")).unwrap();
    assert!(log.contains(INTERRUPTS), "{log}");
    let told = sleeping.join().unwrap().unwrap_err();
    assert!(is_gone(&told) || matches!(state(&told), "57014" | "57P01"), "{told}");
}

#[test]
fn an_idle_drain_is_quick_and_a_restart_keeps_data() {
    repeat_with("lifecycle::an_idle_drain_is_quick_and_a_restart_keeps_data");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let node = Node::start(&store, &[]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, s text); CREATE INDEX t_s ON t (s)").unwrap();
    for id in 0..100 {
        client.execute("INSERT INTO t VALUES ($1, $2)", &[&id, &format!("s{}", id % 7)]).unwrap();
    }
    client.batch_execute("UPDATE t SET s = 'new' WHERE id < 10; DELETE FROM t WHERE id >= 90").unwrap();
    node.terminate();
    assert!(node.wait().success());
    for _ in 0..3 {
        let node = Node::start(&store, &[]);
        let mut client = node.connect();
        let rows = client.query("SELECT id, s FROM t ORDER BY id", &[]).unwrap();
        assert_eq!(rows.len(), 90);
        assert_eq!(rows[3].get::<_, &str>(1), "new");
        assert_eq!(rows[50].get::<_, &str>(1), "s1");
        assert_eq!(client.query("SELECT id FROM t WHERE s = 'new'", &[]).unwrap().len(), 10);
        // Without a drain: the log is replayed.
        node.kill();
    }
}

#[test]
fn health_and_metrics() {
    repeat_with("lifecycle::health_and_metrics");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &["--clock", "static:5ms"]);
    let health = node.get("/health");
    assert!(health.starts_with("HTTP/1.1 200 "), "{health}");
    for part in ["\"status\":\"ok\"", "\"clock_source\":\"static:5ms\"", "\"clock_bound_ns\":5000000"] {
        assert!(health.contains(part), "{part} in {health}");
    }
    let mut client = node.connect();
    client.batch_execute("SELECT 1").unwrap();
    assert_eq!(node.metric("sql_conns"), Some(1.0));
    assert!(node.metric("sql_query_count").unwrap() >= 1.0);
    assert_eq!(node.metric("clock_bound_nanos"), Some(5e6));
    let metrics = node.get("/metrics");
    for name in [
        "sql_latency_count",
        "clock_status 1",
        "txn_commits",
        "txn_restarts_readwithinuncertainty",
        "txn_commit_waits",
        "commit_wait_nanos",
    ] {
        assert!(metrics.lines().any(|l| l.starts_with(name)), "{name} in {metrics}");
    }
    assert!(node.get("/nothing").starts_with("HTTP/1.1 404 "));
}

/// `demo --no-shell` serves the posts and likes of the seed.
#[test]
fn demo_serves_its_data() {
    repeat_with("lifecycle::demo_serves_its_data");
    use std::io::{BufRead, BufReader};
    let mut child = Command::new(binary())
        .args(["demo", "--no-shell", "--listen-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.find_map(|l| Some(l.ok()?.trim().strip_prefix("sql ")?.trim().to_owned())).unwrap();
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let counts = client.query_one("SELECT (SELECT count(*) FROM posts), (SELECT count(*) FROM likes)", &[]).unwrap();
    assert_eq!((counts.get::<_, i64>(0), counts.get::<_, i64>(1)), (100, 1000));
    let front = "SELECT posts.id, posts.title, COUNT(*) FROM posts LEFT JOIN likes ON posts.id = likes.post_id \
                 GROUP BY posts.id ORDER BY COUNT(*) DESC LIMIT 3";
    assert_eq!(client.query(front, &[]).unwrap().len(), 3);
    let terminated = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().unwrap();
    assert!(terminated.success());
    assert!(until("the demo ends", || child.try_wait().unwrap()).success());
}

/// Rule 1 with a bound of 200 ms: a strict update waits for its timestamp to be past, a hybrid one does not. Where the disk takes
/// longer than that, nothing is left to wait for: then the next one has to show it.
#[test]
fn strict_commits_wait_and_hybrid_ones_do_not() {
    repeat_with("lifecycle::strict_commits_wait_and_hybrid_ones_do_not");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &["--clock", "static:200ms"]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, n int4); INSERT INTO t VALUES (1, 0)").unwrap();
    let mut waits = |consistency: &str| -> f64 {
        client.batch_execute(&format!("SET timeball.consistency = '{consistency}'")).unwrap();
        let before = node.metric("txn_commit_waits").unwrap();
        client.batch_execute("UPDATE t SET n = n + 1 WHERE id = 1").unwrap();
        node.metric("txn_commit_waits").unwrap() - before
    };
    until("a strict update waits", || (waits("strict") == 1.0).then_some(()));
    assert_eq!((waits("hybrid"), waits("hybrid"), waits("hybrid")), (0.0, 0.0, 0.0));
    assert!(node.metric("commit_wait_nanos").unwrap() > 0.0);
}

/// Every file and directory below a path, with its mode.
fn modes(path: &std::path::Path) -> Vec<(std::path::PathBuf, u32)> {
    let meta = std::fs::symlink_metadata(path).unwrap();
    let mut found = vec![(path.to_owned(), meta.permissions().mode() & 0o777)];
    if meta.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| found.extend(modes(&entry.unwrap().path())));
    }
    found
}

/// Nobody else reads the rows: not in files that we make, nor in those of the engine, nor in a store that was open before.
#[test]
fn a_store_is_its_owners_alone() {
    repeat_with("lifecycle::a_store_is_its_owners_alone");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    for round in 0..2 {
        let node = Node::start(&store, &[]);
        let filled = "CREATE TABLE IF NOT EXISTS t (id int8); INSERT INTO t SELECT generate_series(1, 1000)";
        node.connect().batch_execute(filled).unwrap();
        node.terminate();
        node.wait();
        let found = modes(&store);
        assert!(found.len() > 8, "the engine and the log have files: {found:?}");
        let open: Vec<_> = found.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
        assert!(open.is_empty(), "round {round}: {open:?}");
        for (path, mode) in found {
            let loose = std::fs::Permissions::from_mode(mode | 0o055);
            std::fs::set_permissions(&path, loose).unwrap();
        }
    }
}

#[test]
fn statistics_come_by_themselves_and_stay() {
    repeat_with("lifecycle::statistics_come_by_themselves_and_stay");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let rows = |node: &Node| -> f32 {
        node.connect().query_one("SELECT reltuples FROM pg_class WHERE relname = 't'", &[]).unwrap().get(0)
    };
    let node = Node::start(&store, &[]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").unwrap();
    assert_eq!(rows(&node), -1.0, "nothing was known");
    client.batch_execute("INSERT INTO t SELECT generate_series(1, 500)").unwrap();
    until("they are gathered", || (rows(&node) == 500.0).then_some(()));
    drop(client);
    node.kill();
    let node = Node::start(&store, &[]);
    assert_eq!(rows(&node), 500.0);
}
