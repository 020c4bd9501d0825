//! A store is one node's: a copy of it that is started beside the node is not heard.

use super::count;
use super::nodes::Nodes;
use crate::node::{Node, Scratch, repeat_with};
use std::process::Command;

#[test]
fn a_copy_of_a_store_is_refused_and_ends() {
    repeat_with("cluster::copies::a_copy_of_a_store_is_refused_and_ends");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut client = nodes.at(2).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    let copy = scratch.path().join("copy");
    let copied = Command::new("cp").arg("-r").arg(nodes.store(2)).arg(&copy).status().unwrap();
    assert!(copied.success());
    // What the node confirms from now on the copy does not have.
    client.batch_execute("INSERT INTO t VALUES (2)").unwrap();
    let flags = ["--memory", "256MiB", "--peer-listen-addr", "127.0.0.1:0"];
    let log = Node::try_start(&copy, &flags).map(drop).unwrap_err();
    assert!(log.contains("hears life 1 of n3 still, and this is life 2"), "{log}");
    assert!(log.contains("is a copy of one that is in use") && log.contains("out_of_the_cluster"), "{log}");
    client.batch_execute("INSERT INTO t VALUES (3)").unwrap();
    // When the node has ended it is not taken for it either.
    nodes.kill(2);
    let log = Node::try_start(&copy, &flags).map(drop).unwrap_err();
    assert!(log.trim_end().ends_with("COPY"), "it says what to remove: {log}");
    nodes.restart(2);
    assert_eq!(count(&mut nodes.at(2).connect(), "t"), 3);
    nodes.kill(0);
    assert_eq!(count(&mut nodes.at(2).connect(), "t"), 3);
}
