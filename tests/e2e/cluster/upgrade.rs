//! A newer release: what it brings is in force when an operator says so, and a program that does not know it is kept out.

use super::join::ask;
use super::nodes::Nodes;
use crate::node::{Scratch, Starting, repeat_with, until};

/// Version and commits of the first range, at a node.
fn version(nodes: &Nodes, at: usize) -> (i32, i64) {
    let query = "SELECT cluster_version, commits FROM timeball_internal.ranges ORDER BY start_key LIMIT 1";
    let row = nodes.at(at).connect().query_one(query, &[]).unwrap();
    (row.get(0), row.get(1))
}

/// A cluster that an earlier release founded goes on as it was, until it is raised; that needs all nodes. A range counts its commits from then on.
#[test]
fn a_cluster_is_raised_by_hand() {
    repeat_with("cluster::upgrade::a_cluster_is_raised_by_hand");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found_by_the_first_release(scratch.path(), 3);
    let mut client = nodes.at(1).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 10)").unwrap();
    for at in 0..3 {
        assert_eq!(version(&nodes, at), (1, 0), "n{}", at + 1);
        assert!(nodes.at(at).get("/health").contains("\"cluster_version\":1"));
    }
    // What its messages do not know yet is refused, not waited for.
    let early = client.batch_execute("SELECT pg_advisory_lock(1)").unwrap_err();
    let early = early.as_db_error().unwrap();
    assert_eq!(early.code().code(), "0A000", "{early:?}");
    assert!(early.message().contains("need version 3 of the cluster, and version 1 is in force"), "{early:?}");
    let host = nodes.peers()[0].clone();
    nodes.kill(2);
    let why = until("it is missed", || ask(&["cluster", "upgrade", "--host", &host]).err());
    assert!(why.contains("n3 is not connected"), "{why}");
    nodes.restart(2);
    let told = until("all are there", || ask(&["cluster", "upgrade", "--host", &host]).ok());
    assert!(told.contains("the cluster has version 4"), "{told}");
    for at in 0..3 {
        until("all ranges are raised at all nodes", || (version(&nodes, at).0 == 4).then_some(()));
        until("all nodes know it", || nodes.at(at).get("/health").contains("\"cluster_version\":4").then_some(()));
    }
    client.batch_execute("INSERT INTO t VALUES (11)").unwrap();
    for at in 0..3 {
        until("each replica counts", || (version(&nodes, at).1 > 0).then_some(()));
    }
    client.batch_execute("SELECT pg_advisory_lock(1); SELECT pg_advisory_unlock(1)").unwrap();
    // A program that knows less than the cluster has does not start; no more does this one, where the cluster has more.
    nodes.stop(2);
    let file = scratch.path().join("n3").join("CLUSTER");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\nversion 4\n"), "{text}");
    std::fs::write(&file, text.replace("\nversion 4\n", "\nversion 9\n")).unwrap();
    let why = nodes.spawn(2).ready().map(|_| ()).unwrap_err();
    assert!(why.contains("knows the versions 1 to 4") && why.contains("version 9"), "{why}");
    // Without the file it is neither a lone node's nor a new one, whatever it is told.
    std::fs::remove_file(&file).unwrap();
    let alone = Starting::spawn(&nodes.store(2), &["--memory", "256MiB"]).ready().map(|_| ()).unwrap_err();
    let joins = nodes.spawn(2).ready().map(|_| ()).unwrap_err();
    assert!([alone, joins].iter().all(|why| why.contains("its file CLUSTER is missing")));
}
