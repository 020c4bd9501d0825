//! A store is one node's: a copy of it that is started beside the node is not heard.

use super::count;
use super::nodes::Nodes;
use crate::node::{Node, Scratch, Starting, repeat_with, until};
use std::path::{Path, PathBuf};
use std::process::Command;

const FLAGS: [&str; 4] = ["--memory", "256MiB", "--peer-listen-addr", "127.0.0.1:0"];

/// Of the store of a node that sleeps: nothing comes and goes while it is copied.
fn copy_of(store: &Path, scratch: &Scratch) -> PathBuf {
    let copy = scratch.path().join("copy");
    let copied = Command::new("cp").arg("-r").arg(store).arg(&copy).status().unwrap();
    assert!(copied.success());
    copy
}

#[test]
fn a_copy_of_a_store_is_refused_and_ends() {
    repeat_with("cluster::copies::a_copy_of_a_store_is_refused_and_ends");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut client = nodes.at(2).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    nodes.sleep(2);
    let copy = copy_of(&nodes.store(2), &scratch);
    nodes.wake(2);
    // What the node confirms from now on the copy does not have.
    client.batch_execute("INSERT INTO t VALUES (2)").unwrap();
    let log = Node::try_start(&copy, &FLAGS).map(drop).unwrap_err();
    assert!(log.contains("hears life 1 of n3 still, and this is life 2"), "{log}");
    assert!(log.contains("is a copy of one that is in use") && log.contains("out_of_the_cluster"), "{log}");
    client.batch_execute("INSERT INTO t VALUES (3)").unwrap();
    // When the node has ended it is not taken for it either.
    nodes.kill(2);
    let log = Node::try_start(&copy, &FLAGS).map(drop).unwrap_err();
    assert!(log.trim_end().ends_with("COPY"), "it says what to remove: {log}");
    nodes.restart(2);
    assert_eq!(count(&mut nodes.at(2).connect(), "t"), 3);
    nodes.kill(0);
    assert_eq!(count(&mut nodes.at(2).connect(), "t"), 3);
}

/// A backup of a store is started when its node has ended: it lacks what the node acknowledged since, which the others were told of.
#[test]
fn an_old_copy_of_a_store_is_refused_when_its_node_has_ended() {
    repeat_with("cluster::copies::an_old_copy_of_a_store_is_refused_when_its_node_has_ended");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    nodes.at(1).connect().batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    nodes.sleep(2);
    let copy = copy_of(&nodes.store(2), &scratch);
    nodes.wake(2);
    // The second needs the third to acknowledge anything.
    nodes.kill(0);
    let insert = || {
        let mut client = postgres::Client::connect(&nodes.at(1).url(), postgres::NoTls).ok()?;
        client.batch_execute("INSERT INTO t VALUES (2) ON CONFLICT DO NOTHING").ok()
    };
    until("the two have a leader", insert);
    nodes.kill(2);
    let log = Node::try_start(&copy, &FLAGS).map(drop).unwrap_err();
    assert!(log.contains("n3 has told n2 of record") && log.contains("out_of_the_cluster"), "{log}");
    let log = Node::try_start(&copy, &FLAGS).map(drop).unwrap_err();
    assert!(log.contains("has lost what its node acknowledged") && log.trim_end().ends_with("COPY"), "{log}");
    // Its own store has all that.
    nodes.restart(2);
    let counted = || {
        let mut client = postgres::Client::connect(&nodes.at(2).url(), postgres::NoTls).ok()?;
        let row = client.query_one("SELECT count(*) FROM t", &[]).ok()?;
        Some(row.get::<_, i64>(0))
    };
    assert_eq!(until("the two have a leader again", counted), 2);
}

/// The node was not heard for a while, and its copy was taken for it; one peer has met the node since. When the copy finds out it tells the others, and they hear the node again.
#[test]
fn who_took_the_copy_for_the_node_hears_the_node_again() {
    repeat_with("cluster::copies::who_took_the_copy_for_the_node_hears_the_node_again");
    let scratch = Scratch::new();
    // The fourth has no replica, so that nothing hangs on what the copy confirms.
    let mut nodes = Nodes::found(scratch.path(), 4);
    nodes.sleep(3);
    let copy = copy_of(&nodes.store(3), &scratch);
    let log = copy.with_extension("log");
    let copy = Starting::spawn(&copy, &FLAGS);
    let signal = |name: &str| {
        assert!(Command::new("kill").arg(name).arg(copy.pid().to_string()).status().unwrap().success());
    };
    // (They dial the node's own address, so that the copy hears nothing of them.)
    let met = |node: u32| {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.lines().any(|line| line.contains(&format!("n{node} at ")) && line.contains(" is connected"))
    };
    until("all have taken it for the node", || (1..=3).all(met).then_some(()));
    signal("-STOP");
    nodes.kill(1);
    nodes.restart(1);
    nodes.wake(3);
    let connected = |nodes: &Nodes, at: usize, query: &str| {
        let query = format!("SELECT count(*) FROM timeball_internal.nodes WHERE state = 'connected' AND {query}");
        nodes.at(at).connect().query_one(&query, &[]).unwrap().get::<_, i64>(0)
    };
    until("the second hears the node", || (connected(&nodes, 1, "node_id = '4'") == 1).then_some(()));
    until("the first one does not", || {
        let log = nodes.at(3).log();
        log.contains("n1 at").then_some(()).filter(|()| log.contains("has seen life 2 of n4, and this is life 1"))
    });
    signal("-CONT");
    let log = copy.ready().map(drop).unwrap_err();
    assert!(log.contains("n2 hears another process as n4") && log.contains("is a copy of one that is in use"), "{log}");
    until("all hear the node", || {
        let all = (0..3).all(|at| connected(&nodes, at, "node_id = '4'") == 1);
        (all && connected(&nodes, 3, "node_id IN ('1', '2', '3')") == 3).then_some(())
    });
}
