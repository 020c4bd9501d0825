//! The lab's own clusters: what it injects arrives, and nothing of them is left.

use crate::node::{Scratch, binary, repeat_with};
use lab::client::Client;
use lab::cluster::{Boundary, Clock, Cluster, ClusterError, Delays, Plan, spread};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bounds, delays and places of leaders are those that were asked for; a node is reached where it says, and not where it listens.
#[test]
fn what_the_lab_injects_arrives_and_goes_with_the_cluster() {
    repeat_with("cluster::lab::what_the_lab_injects_arrives_and_goes_with_the_cluster");
    let scratch = Scratch::new();
    let (bound, way) = (Duration::from_millis(3), Duration::from_millis(20));
    let plan = Plan {
        binary: binary().into(),
        dir: scratch.path().to_owned(),
        nodes: 3,
        clocks: vec![Clock::Moving(Arc::new(move |_| bound))],
        delays: Some(Delays::equal(3, way)),
        memory_mib: 256,
    };
    let cluster = Cluster::start(&plan).unwrap();
    let mut client = Client::connect(&cluster.url_of(0, &["timeball.consistency=hybrid"])).unwrap();
    client.query("CREATE TABLE t (id int PRIMARY KEY, v int); CREATE INDEX t_v ON t (v)").unwrap();
    let boundaries =
        [Boundary("ALTER TABLE t SPLIT AT VALUES (0), (10)"), Boundary("ALTER INDEX t_v SPLIT AT VALUES (0), (5)")];
    let placement = spread(&cluster, &boundaries).unwrap();
    assert_eq!(placement.len(), 5);
    let leaders = client
        .query("SELECT leader_node_id FROM timeball_internal.ranges ORDER BY start_key")
        .unwrap()
        .into_iter()
        .map(|row| row[0].clone().unwrap())
        .collect::<Vec<_>>();
    assert_eq!(leaders, ["1", "2", "3", "1", "2"]);
    // The row goes to the third node, which asks for a majority: two ways there and back.
    let began = Instant::now();
    client.query("INSERT INTO t VALUES (20, 1)").unwrap();
    assert!(began.elapsed() >= 2 * way, "{:?}", began.elapsed());
    let bounds_ns = cluster.counters().unwrap()["clock_bound_nanos"];
    assert!(bounds_ns >= 3.0 * bound.as_nanos() as f64, "{bounds_ns}");
    assert!(cluster.counters().unwrap()["txn_commits"] >= 1.0);
    placement.check(&cluster).unwrap();
    // Nothing pins them: who has not stayed is named.
    let first = "SELECT range_id FROM timeball_internal.ranges ORDER BY start_key LIMIT 1";
    let range = client.query(first).unwrap()[0][0].clone().unwrap();
    for end in ["--from", "--to"] {
        cluster.command(&["range", "move", &range, end, "1", "--host", &cluster.peer_addr(0)]).unwrap();
    }
    let error = placement.check(&cluster).unwrap_err();
    assert!(matches!(error, ClusterError::Moved { .. }), "{error}");
    drop(client);
    drop(cluster);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "its folder is gone");
}
