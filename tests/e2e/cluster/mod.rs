//! Three nodes as processes of their own: founded by hand, killed, started again.

mod advisory;
mod alone;
mod bank;
mod choice;
mod clock;
mod contention;
mod copies;
mod demo;
mod doubt;
mod full;
mod gates;
mod histories;
mod hosts;
mod join;
mod lab;
mod large;
mod lists;
mod locks;
mod majority;
mod network;
pub mod nodes;
mod partition;
mod psql;
mod sessions;
mod stall;
mod stop;
mod tokens;
mod upgrade;

use crate::node::{Scratch, binary, repeat_with, state, until};
use nodes::Nodes;
use postgres::Client;
use std::process::Command;

/// Whether a statement that failed changed nothing and is to be tried again: a conflict, or a range that changes its leader.
fn again(error: &postgres::Error) -> bool {
    matches!(state(error), "40001" | "40P01" | "57P03")
}

fn count(client: &mut Client, table: &str) -> i64 {
    let query = format!("SELECT count(*) FROM {table}");
    until("the table can be read", || match client.query_one(&query, &[]) {
        Ok(row) => Some(row.get(0)),
        Err(e) if again(&e) => None,
        Err(e) => panic!("{e}: {:?}", e.as_db_error()),
    })
}

/// What was acknowledged by any node is seen at every other at once; a leader that is killed takes nothing with it, and comes back.
#[test]
fn three_nodes_lose_nothing_when_a_leader_is_killed() {
    repeat_with("cluster::three_nodes_lose_nothing_when_a_leader_is_killed");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut clients: Vec<Client> = (0..3).map(|at| nodes.at(at).connect()).collect();
    clients[0].batch_execute("CREATE TABLE t (id int PRIMARY KEY, node int)").unwrap();
    for id in 0..30 {
        let (writer, reader) = (id % 3, (id + 1) % 3);
        clients[writer].execute("INSERT INTO t VALUES ($1, $2)", &[&(id as i32), &(writer as i32)]).unwrap();
        let seen = clients[reader].query("SELECT node FROM t WHERE id = $1", &[&(id as i32)]).unwrap();
        assert_eq!(seen.len(), 1, "row {id}, written at n{} and read at n{}", writer + 1, reader + 1);
    }
    let leader = nodes.leader();
    nodes.kill(leader);
    let alive: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    // Each statement either takes place or is refused, and rows of no known fate are looked for.
    let mut acknowledged: Vec<i32> = (0..30).collect();
    let mut unknown = Vec::new();
    for id in 30..60 {
        let client = &mut clients[alive[id as usize % 2]];
        until("a majority serves without the node that was killed", || {
            match client.execute("INSERT INTO t VALUES ($1, 9)", &[&id]) {
                Ok(_) => acknowledged.push(id),
                Err(e) if again(&e) => return None,
                Err(e) if state(&e) == "40003" => unknown.push(id),
                Err(e) => panic!("{e}: {:?}", e.as_db_error()),
            }
            Some(())
        });
    }
    nodes.restart(leader);
    let mut back = nodes.at(leader).connect();
    let total = count(&mut back, "t");
    let known = acknowledged.len() as i64;
    assert!((known..=known + unknown.len() as i64).contains(&total), "{total} rows, {known} acknowledged");
    for id in acknowledged {
        let rows = until("the row can be read", || back.query("SELECT 1 FROM t WHERE id = $1", &[&id]).ok());
        assert_eq!(rows.len(), 1, "row {id} was acknowledged");
    }
}

/// `init` at a node that knows a cluster founds no other; `node status` shows all.
#[test]
fn a_cluster_is_founded_once() {
    repeat_with("cluster::a_cluster_is_founded_once");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let init = |address: &str| Command::new(binary()).args(["init", "--host", address]).output().unwrap();
    let (first, again) = (init(&nodes.peers()[0]), init(&nodes.peers()[2]));
    assert!(first.status.success() && again.status.success());
    // Each says last that it serves, itself.
    let founded = |output: &std::process::Output| {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.lines().filter(|line| !line.contains(" serves SQL at ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(founded(&first), founded(&again), "one cluster, whoever is asked");
    assert_eq!(founded(&first).len(), 4);
    let status_of = |at: usize| {
        let by_sql = Command::new(binary()).args(["node", "status", "--url", &nodes.at(at).url()]).output().unwrap();
        [String::from_utf8_lossy(&by_sql.stdout).into_owned(), nodes.status(at).unwrap()]
    };
    // Who leads, until when, and that the lease holds: whoever is asked, and by whatever way.
    let holds = |shown: &String| shown.lines().any(|line| line.split_whitespace().any(|cell| cell == "yes"));
    for at in 0..3 {
        until("the lease is shown", || status_of(at).iter().all(holds).then_some(()));
    }
    let [shown, _] = status_of(1);
    assert!(nodes.peers().iter().all(|peer| shown.contains(peer)), "{shown}");
    assert!(shown.contains("1,2,3"), "the range's replicas: {shown}");
}

/// Without a majority nothing is served and nothing hangs: a clear error, and service again when the others are back.
#[test]
fn without_a_majority_statements_fail_in_time() {
    repeat_with("cluster::without_a_majority_statements_fail_in_time");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut client = nodes.at(0).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    nodes.kill(1);
    nodes.kill(2);
    let error = until("the last leases end", || client.query("SELECT * FROM t", &[]).err());
    assert_eq!(state(&error), "57P03", "{error:?}");
    assert!(format!("{error:?}").contains("range"), "{error:?}");
    nodes.restart(2);
    assert_eq!(count(&mut client, "t"), 1);
}

/// Old versions go when their time is over, and who asks for them is told how far back he can read.
#[test]
fn the_past_of_a_cluster_goes() {
    repeat_with("cluster::the_past_of_a_cluster_goes");
    let scratch = Scratch::new();
    let nodes = Nodes::found_with(scratch.path(), 3, &["--retention", "1s"]);
    let mut client = nodes.at(1).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)").unwrap();
    let then: String = client.query_one("SHOW timeball.token", &[]).unwrap().get(0);
    let old = format!("SELECT v FROM t AS OF SYSTEM TIME '{then}'");
    assert_eq!(client.query_one(&old, &[]).unwrap().get::<_, i32>(0), 0);
    let error = until("the past is collected", || {
        client.execute("UPDATE t SET v = v + 1", &[]).unwrap();
        client.query(&old, &[]).err()
    });
    assert_eq!(state(&error), "22023", "{error:?}");
    assert!(client.query_one("SELECT v FROM t", &[]).unwrap().get::<_, i32>(0) > 0);
}
