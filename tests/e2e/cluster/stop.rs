//! Nodes that stop, and what an operator is told while little or nothing is served.

use super::count;
use super::nodes::Nodes;
use crate::node::{Scratch, Starting, repeat_with, until};

/// Rounds in which a node may fail to hand over in time: it has two seconds, which a crowded machine may not give it.
const ROUNDS: usize = 5;

/// The leaders of all ranges as a node sees them.
fn leaders(nodes: &Nodes, at: usize) -> Vec<String> {
    let shown = nodes.status(at).unwrap();
    let ranges = shown.split_once("Ranges\n").expect("a table of ranges").1;
    let mut lines = ranges.lines().take_while(|line| !line.is_empty());
    let place = lines.next().unwrap().split_whitespace().position(|column| column == "leader_node_id").unwrap();
    lines.map(|line| line.split_whitespace().nth(place).unwrap().to_owned()).collect()
}

/// A node that is told to stop hands its ranges over first: when its process is gone others lead them, and nobody waits for an election.
#[test]
fn a_node_that_stops_hands_over() {
    repeat_with("cluster::stop::a_node_that_stops_hands_over");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut client = nodes.at(0).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t SPLIT AT VALUES (1), (2), (3)").unwrap();
    drop(client);
    let mut told = Vec::new();
    for _ in 0..ROUNDS {
        let leader = nodes.leader();
        nodes.stop(leader);
        let other = (leader + 1) % 3;
        told = leaders(&nodes, other);
        let itself = (leader + 1).to_string();
        let handed_over = !told.contains(&itself) && !told.contains(&"-".to_owned());
        nodes.restart(leader);
        assert_eq!(count(&mut nodes.at(leader).connect(), "t"), 0);
        if handed_over {
            return;
        }
    }
    panic!("{ROUNDS} times ranges were left without a leader: {told:?}");
}

/// `node status --host` needs no majority, and no SQL.
#[test]
fn a_node_without_a_majority_tells_what_it_sees() {
    repeat_with("cluster::stop::a_node_without_a_majority_tells_what_it_sees");
    let scratch = Scratch::new();
    let join = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:0";
    let mut alone = Starting::spawn(&scratch.path().join("alone"), &["--join", join, "--peer-addr", "127.0.0.1:0"]);
    let own = alone.line("peer ").unwrap();
    let why = super::nodes::status_of(&own).unwrap_err();
    assert!(why.contains("timeball init"), "{why}");
    alone.kill();

    let mut nodes = Nodes::found(scratch.path(), 3);
    nodes.kill(0);
    nodes.kill(1);
    until("both are missed", || {
        Some(nodes.status(2).unwrap().matches("unreachable").count()).filter(|missed| *missed == 2)
    });
    // Nor where it never had one since it was started.
    nodes.kill(2);
    let starting = nodes.spawn(2);
    let shown = until("it answers its peers", || nodes.status(2).ok());
    assert!(shown.contains("this node") && shown.contains("1,2,3"), "{shown}");
    starting.kill();
}
