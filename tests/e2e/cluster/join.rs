//! Nodes that come later, and nodes that leave: numbers are used once, stores keep to their cluster.

use super::count;
use super::nodes::{Nodes, status_of};
use crate::node::{Scratch, Starting, binary, free_port, repeat_with, until};
use postgres::Client;
use std::process::Command;

/// A command of `timeball`; what it says against it.
pub fn ask(arguments: &[&str]) -> Result<String, String> {
    let told = Command::new(binary()).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if told.status.success() { Ok(text(told.stdout)) } else { Err(text(told.stderr)) }
}

/// How one node sees another: its state and last error.
fn seen(client: &mut Client, node: usize) -> Option<(String, String)> {
    let query = "SELECT state, coalesce(last_error, '') FROM timeball_internal.nodes WHERE node_id = $1";
    client.query_opt(query, &[&(node as i32)]).unwrap().map(|row| (row.get(0), row.get(1)))
}

fn replicas(client: &mut Client) -> String {
    let query = "SELECT replicas FROM timeball_internal.ranges ORDER BY start_key LIMIT 1";
    client.query_one(query, &[]).unwrap().get::<_, Option<String>>(0).unwrap_or_default()
}

/// A fourth node answers any statement, gets replicas, and goes on with what two that die held; one that held nothing any more leaves.
#[test]
fn a_node_joins_and_another_leaves() {
    repeat_with("cluster::join::a_node_joins_and_another_leaves");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut client = nodes.at(1).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 100)").unwrap();
    let fourth = nodes.join();
    let mut at_fourth = nodes.at(fourth).connect();
    assert_eq!(count(&mut at_fourth, "t"), 100);
    at_fourth.execute("INSERT INTO t VALUES (101)", &[]).unwrap();
    assert_eq!(count(&mut client, "t"), 101, "what it acknowledged is seen elsewhere");
    for at in 0..4 {
        let mut client = nodes.at(at).connect();
        for other in (0..4).filter(|other| *other != at) {
            until("everybody knows everybody", || {
                seen(&mut client, other + 1).filter(|(state, _)| state == "connected")
            });
        }
        assert!(nodes.at(at).get("/health").contains("\"nodes\":4"), "{}", nodes.at(at).get("/health"));
    }
    // It needs its store only, and is the one that it was.
    nodes.kill(fourth);
    nodes.restart(fourth);
    let host = nodes.peers()[fourth].clone();
    assert!(status_of(&host).unwrap().contains("this node"));
    let why = ask(&["node", "decommission", "1", "--host", &host]).unwrap_err();
    assert!(why.contains("n1 still has replicas of ranges (1)"), "{why}");
    let moved = ask(&["range", "move", "1", "--from", "1", "--to", "4", "--host", &host]).unwrap();
    assert!(moved.contains("n2, n3, n4"), "{moved}");
    assert_eq!(replicas(&mut nodes.at(2).connect()), "2,3,4");
    nodes.kill(0);
    nodes.kill(1);
    let mut at_fourth = nodes.at(fourth).connect();
    assert_eq!(count(&mut at_fourth, "t"), 101, "two of three replicas are a majority");
    let why = ask(&["node", "decommission", "1", "--host", &host]).unwrap_err();
    assert!(why.contains("n2 may know of replicas on n1"), "{why}");
    nodes.restart(1);
    let done = ask(&["node", "decommission", "1", "--host", &host]).unwrap();
    assert!(done.contains("n1 is no node of the cluster any more"), "{done}");
    until("everybody forgets it", || seen(&mut nodes.at(2).connect(), 1).is_none().then_some(()));
    // Its store is of no use any more, and says so.
    let why = nodes.spawn(0).ready().map(|_| ()).unwrap_err();
    assert!(why.contains("n1 was removed from the cluster"), "{why}");
    let fifth = nodes.join();
    assert!(seen(&mut nodes.at(fifth).connect(), 5).is_some(), "no number is used twice");
}

/// An operator says who leads a range, at any node.
#[test]
fn a_range_is_led_where_the_operator_says() {
    repeat_with("cluster::join::a_range_is_led_where_the_operator_says");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    nodes.at(0).connect().batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    for (asked, to) in [(0, 2), (2, 3), (0, 3), (1, 1)] {
        let led = ask(&["range", "lead", "1", "--to", &to.to_string(), "--host", &nodes.peers()[asked]]).unwrap();
        assert_eq!(led, format!("r1 is led by n{to}\n"));
        let mut there = nodes.at(to - 1).connect();
        let leases = "SELECT leader_node_id::int FROM timeball_internal.leases WHERE range_id::int8 = 1 AND lease_until IS NOT NULL";
        assert_eq!(there.query_one(leases, &[]).unwrap().get::<_, i32>(0), to as i32);
        assert_eq!(count(&mut there, "t"), 1);
    }
    let host = &nodes.peers()[0];
    let why = |words: &[&str]| ask(&[words, &["--host", host]].concat()).unwrap_err();
    assert!(why(&["range", "lead", "1", "--to", "9"]).contains("there is no n9"));
    assert!(why(&["range", "lead", "77", "--to", "2"]).contains("r77 is not known here"));
    assert!(why(&["range", "lead", "1"]).contains("--to"));
}

/// A range that is split while a replica of it moves: its halves go along, and say so.
#[test]
fn halves_go_along() {
    repeat_with("cluster::join::halves_go_along");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut client = nodes.at(0).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 100)").unwrap();
    let fourth = nodes.join();
    nodes.kill(fourth);
    let host = nodes.peers()[1].clone();
    let moving = std::thread::spawn(move || ask(&["range", "move", "1", "--to", "4", "--from", "3", "--host", &host]));
    let learners = "SELECT learners FROM timeball_internal.ranges WHERE range_id = 1 AND learners LIKE '%4%'";
    until("it has begun", || (0..3).find(|at| !nodes.at(*at).connect().query(learners, &[]).unwrap().is_empty()));
    client.batch_execute("ALTER TABLE t SPLIT AT VALUES (50)").unwrap();
    nodes.restart(fourth);
    let moved = moving.join().unwrap().unwrap();
    let lines: Vec<&str> = moved.lines().collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains("is replicated by n1, n2, n4")), "{moved}");
    assert!(lines[1].starts_with("(split off r1 meanwhile) "), "{moved}");
    until("nothing is on n3 any more", || ask(&["node", "decommission", "3", "--host", &nodes.peers()[0]]).ok());
    assert_eq!(count(&mut nodes.at(fourth).connect(), "t"), 100);
}

/// A node that is told to leave while it runs says that, to its clients and to who watches over it, and what to do.
#[test]
fn a_node_that_was_removed_says_so() {
    repeat_with("cluster::join::a_node_that_was_removed_says_so");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 1);
    nodes.at(0).connect().batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    let second = nodes.join();
    let mut client = nodes.at(second).connect();
    assert_eq!(count(&mut client, "t"), 1);
    ask(&["node", "decommission", "2", "--host", &nodes.peers()[0]]).unwrap();
    let says = |error: &postgres::Error| {
        let told =
            error.as_db_error().map(|e| (e.code().code().to_owned(), e.message().to_owned(), e.hint().is_some()));
        matches!(told, Some((code, why, false)) if code == "57P03" && why.contains("n2 was removed from the cluster"))
    };
    until("it says so", || client.query("SELECT * FROM t", &[]).err().filter(says));
    let refused = postgres::Client::connect(&nodes.at(second).url(), postgres::NoTls).err().unwrap();
    assert!(says(&refused), "{refused:?}");
    let health = nodes.at(second).get("/health/ready");
    assert!(health.starts_with("HTTP/1.1 503 ") && health.contains("\"status\":\"removed\""), "{health}");
    assert!(health.contains("empty --store to join anew") && !health.contains("storage failed"), "{health}");
}

/// When `timeball init` is done, clients may come.
#[test]
fn who_founds_a_cluster_is_served() {
    repeat_with("cluster::join::who_founds_a_cluster_is_served");
    let scratch = Scratch::new();
    let peer = format!("127.0.0.1:{}", free_port());
    let mut node = Starting::spawn(&scratch.path().join("n1"), &["--join", &peer, "--peer-addr", &peer]);
    node.line("peer ").unwrap();
    let told = ask(&["init", "--host", &peer]).unwrap();
    let address = told.split("n1 serves SQL at ").nth(1).and_then(|rest| rest.lines().next()).expect(&told);
    let mut client = Client::connect(&format!("postgresql://root@{address}/postgres"), postgres::NoTls).unwrap();
    client.batch_execute("CREATE TABLE t (id int)").unwrap();
    // It goes with the test.
    drop(node.ready().unwrap());
}

/// A store that was wiped comes back as a node of its own; what it held before is moved to it by hand.
#[test]
fn a_wiped_store_is_a_new_node() {
    repeat_with("cluster::join::a_wiped_store_is_a_new_node");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut client = nodes.at(0).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 100)").unwrap();
    nodes.kill(2);
    std::fs::remove_dir_all(scratch.path().join("n3")).unwrap();
    nodes.restart(2);
    assert_eq!(count(&mut nodes.at(2).connect(), "t"), 100);
    until("it is n4", || seen(&mut client, 4).filter(|(state, _)| state == "connected"));
    let (_, why) = until("n3 is not waited for", || seen(&mut client, 3).filter(|(state, _)| state == "replaced"));
    assert_eq!(why, "n4 is at its address");
    let clocks = client.query("SELECT node_id FROM timeball_internal.clocks ORDER BY node_id", &[]).unwrap();
    let clocks: Vec<i32> = clocks.iter().map(|row| row.get(0)).collect();
    assert!(clocks.starts_with(&[1]) && !clocks.contains(&3), "{clocks:?}");
    assert_eq!(replicas(&mut client), "1,2,3", "it takes no place by itself");
    let host = nodes.peers()[0].clone();
    ask(&["range", "move", "1", "--from", "3", "--to", "4", "--host", &host]).unwrap();
    assert_eq!(replicas(&mut client), "1,2,4");
    ask(&["node", "decommission", "3", "--host", &host]).unwrap();
    until("n3 is forgotten", || seen(&mut client, 3).is_none().then_some(()));
    assert_eq!(count(&mut client, "t"), 100);
}

/// A store goes with its cluster: told to join another it is refused, by the numbers of both; so are replicas for who is not there.
#[test]
fn another_clusters_store_is_refused() {
    repeat_with("cluster::join::another_clusters_store_is_refused");
    let scratch = Scratch::new();
    let number = |nodes: &Nodes| {
        let health = nodes.at(0).get("/health");
        health.split("\"cluster\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned()
    };
    let dirs = ["other", "own"].map(|name| scratch.path().join(name));
    dirs.iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
    let mut other = Nodes::found(&dirs[0], 1);
    let theirs = number(&other);
    other.stop(0);
    let nodes = Nodes::found(&dirs[1], 1);
    let ours = number(&nodes);
    let store = dirs[0].join("n1");
    let flags = ["--memory", "256MiB", "--join", &nodes.peers()[0]];
    let why = Starting::spawn(&store, &flags).ready().map(|_| ()).unwrap_err();
    assert!(why.contains(&ours) && why.contains(&theirs), "{ours}, {theirs}: {why}");
    let why = ask(&["range", "move", "1", "--to", "9", "--host", &nodes.peers()[0]]).unwrap_err();
    assert!(why.contains("there is no n9"), "{why}");
    let why = ask(&["range", "move", "1", "--from", "1", "--host", &nodes.peers()[0]]).unwrap_err();
    assert!(why.contains("the only replica"), "{why}");
}
