//! A node that ran alone, and is the first of a cluster from then on.

use super::join::ask;
use super::nodes::Nodes;
use super::{again, clock, count};
use crate::node::{Node, Scratch, Starting, repeat_with, skip, until};
use std::time::{SystemTime, UNIX_EPOCH};

/// Its data are the cluster's; others join, get replicas by hand, and go on without it.
#[test]
fn a_node_that_ran_alone_becomes_one_of_three() {
    repeat_with("cluster::alone::a_node_that_ran_alone_becomes_one_of_three");
    let scratch = Scratch::new();
    let store = scratch.path().join("n1");
    let alone = Node::start(&store, &["--memory", "256MiB"]);
    let mut client = alone.connect();
    client
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL, n serial); CREATE INDEX ON t (v)")
        .unwrap();
    client.batch_execute("INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 500) g").unwrap();
    client.batch_execute("ALTER TABLE t SPLIT AT VALUES (250); UPDATE t SET v = 'both' WHERE id IN (1, 400)").unwrap();
    drop(client);
    // Some of it is in its log only.
    alone.kill();
    let mut nodes = Nodes::found(scratch.path(), 1);
    let mut client = nodes.at(0).connect();
    assert_eq!(count(&mut client, "t"), 500);
    let both = "SELECT count(*) FROM t WHERE v = 'both'";
    assert_eq!(client.query_one(both, &[]).unwrap().get::<_, i64>(0), 2);
    client.execute("INSERT INTO t VALUES (501, 'as a member')", &[]).unwrap();
    let greatest = "SELECT max(n) FROM t";
    let greatest: i32 = client.query_one(greatest, &[]).unwrap().get(0);
    assert!(greatest > 500, "sequences go on: {greatest}");
    let (second, third) = (nodes.join(), nodes.join());
    assert_eq!(count(&mut nodes.at(second).connect(), "t"), 501);
    let host = nodes.peers()[third].clone();
    let ranges = client.query("SELECT range_id FROM timeball_internal.ranges", &[]).unwrap();
    assert_eq!(ranges.len(), 2);
    for range in ranges {
        let range = range.get::<_, i64>(0).to_string();
        for to in ["2", "3"] {
            ask(&["range", "move", &range, "--to", to, "--host", &host]).unwrap();
        }
    }
    nodes.kill(0);
    let mut client = nodes.at(third).connect();
    until("the others go on", || match client.execute("INSERT INTO t VALUES (502, 'without it')", &[]) {
        Ok(_) => Some(()),
        Err(e) if again(&e) => None,
        Err(e) => panic!("{e}: {:?}", e.as_db_error()),
    });
    assert_eq!(count(&mut client, "t"), 502);
    nodes.restart(0);
    assert_eq!(count(&mut nodes.at(0).connect(), "t"), 502);
}

/// While it ran alone its clock was ahead, and was set back: it is no member before all that it acknowledged is past.
#[test]
fn a_node_that_was_ahead_of_time_waits() {
    repeat_with("cluster::alone::a_node_that_was_ahead_of_time_waits");
    let Some(library) = clock::library() else { return skip("no libfaketime (Debian: faketime)") };
    let scratch = Scratch::new();
    let shift = scratch.path().join("shift");
    std::fs::write(&shift, "+12\n").unwrap();
    let launcher = [vec!["env".to_owned()], clock::environment(library, &shift)].concat();
    let flags = ["--memory", "256MiB", "--clock", "static:5ms"];
    let alone = Starting::spawn_by(&launcher, "127.0.0.1", &scratch.path().join("n1"), &flags).ready().unwrap();
    let mut client = alone.connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").unwrap();
    let ahead = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let then: i64 = client.query_one(ahead, &[]).unwrap().get(0);
    client.batch_execute("INSERT INTO t VALUES (1)").unwrap();
    alone.terminate();
    assert!(alone.wait().success());
    let mut nodes = Nodes::found(scratch.path(), 1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    assert!(now >= u128::try_from(then).unwrap(), "it serves at {now}, and has committed after {then}");
    let second = nodes.join();
    assert_eq!(count(&mut nodes.at(second).connect(), "t"), 1);
}

/// With data it joins no cluster that there is: it is told what does.
#[test]
fn a_node_with_data_joins_no_cluster() {
    repeat_with("cluster::alone::a_node_with_data_joins_no_cluster");
    let scratch = Scratch::new();
    let store = scratch.path().join("alone");
    let alone = Node::start(&store, &["--memory", "256MiB"]);
    alone.connect().batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    alone.terminate();
    assert!(alone.wait().success());
    let nodes = Nodes::found(scratch.path(), 1);
    let flags = ["--memory", "256MiB", "--join", &nodes.peers()[0], "--peer-addr", "127.0.0.1:0"];
    let why = Starting::spawn(&store, &flags).ready().map(|_| ()).unwrap_err();
    assert!(why.contains("ran alone") && why.contains("pg_dump"), "{why}");
    // It is what it was.
    let alone = Node::start(&store, &["--memory", "256MiB"]);
    assert_eq!(count(&mut alone.connect(), "t"), 1);
}
