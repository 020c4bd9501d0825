//! Without a majority: what needs one fails in time and says why, all else goes on, and whoever watches over the node knows.

use super::count;
use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with, state, until};
use postgres::Client;

/// A node whose two peers are away answers what it can.
fn answers_what_it_can(nodes: &Nodes, then: &str) {
    until("it is not ready any more", || {
        let health = nodes.at(0).get("/health");
        let says = health.starts_with("HTTP/1.1 503 ") && health.contains("not ready");
        (says && health.contains("of which n2, n3 cannot be heard")).then_some(())
    });
    assert!(nodes.at(0).get("/health/live").starts_with("HTTP/1.1 200 "));
    let metrics = nodes.at(0).get("/metrics");
    assert!(metrics.contains("\nready 0\n") && metrics.contains("\nranges_silent 1\n"), "{metrics}");
    // Whoever waits for somebody here waits for longer than that.
    let mut client = nodes.at(0).connect();
    client.batch_execute("SET statement_timeout = '9s'").unwrap();
    assert_eq!(client.query_one("SELECT 1", &[]).unwrap().get::<_, i32>(0), 1);
    assert_eq!(client.query_one("SELECT $1::int + 1", &[&1]).unwrap().get::<_, i32>(0), 2);
    assert_eq!(client.query_one("SHOW statement_timeout", &[]).unwrap().get::<_, String>(0), "9s");
    client.batch_execute("BEGIN; SELECT 1; COMMIT").unwrap();
    let past = format!("SELECT id FROM t AS OF SYSTEM TIME '{then}'");
    assert_eq!(client.query_one(&past, &[]).unwrap().get::<_, i32>(0), 1);
    for mode in ["none", "stale"] {
        let mut client = nodes.at(0).connect();
        client.batch_execute(&format!("SET timeball.consistency = '{mode}'; SET statement_timeout = '2s'")).unwrap();
        assert_eq!(client.query_one("SELECT id FROM t", &[]).unwrap().get::<_, i32>(0), 1, "{mode}");
    }
    client.batch_execute("RESET statement_timeout").unwrap();
    for statement in ["SELECT * FROM t", "INSERT INTO t VALUES (2)", "DELETE FROM t", "CREATE TABLE u (id int)"] {
        let error = client.execute(statement, &[]).expect_err(statement);
        assert_eq!(state(&error), "57P03", "{statement}: {error:?}");
        let told = error.as_db_error().unwrap();
        assert!(told.message().contains("node n1 asks; its replicas are on n1, n2, n3"), "{told:?}");
        assert!(told.hint().is_some_and(|hint| hint.contains("timeball node status")), "{told:?}");
    }
}

fn with_rows(nodes: &Nodes) -> (Client, String) {
    let mut client = nodes.at(0).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    let then: String = client.query_one("SHOW timeball.token", &[]).unwrap().get(0);
    let began: std::time::SystemTime = client.query_one("SELECT clock_timestamp()", &[]).unwrap().get(0);
    until("what was written is closed everywhere", || {
        let row = client.query_one("SELECT clock_timestamp() - $1 > interval '8s'", &[&began]).unwrap();
        row.get::<_, bool>(0).then_some(())
    });
    (client, then)
}

fn serves_again(nodes: &Nodes, client: &mut Client) {
    assert_eq!(count(client, "t"), 1);
    until("it is ready again", || nodes.at(0).get("/health").starts_with("HTTP/1.1 200 ").then_some(()));
    assert!(nodes.at(0).get("/metrics").contains("\nready 1\n"));
}

#[test]
fn two_of_three_are_killed() {
    repeat_with("cluster::majority::two_of_three_are_killed");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let (_, then) = with_rows(&nodes);
    nodes.kill(1);
    nodes.kill(2);
    answers_what_it_can(&nodes, &then);
    // One that starts and finds nobody is alive, and says for what it waits.
    nodes.kill(0);
    let waiting = nodes.spawn(0);
    let http = waiting.http();
    assert!(crate::node::get(&http, "/health/live").starts_with("HTTP/1.1 200 "));
    let health = crate::node::get(&http, "/health");
    assert!(health.starts_with("HTTP/1.1 503 ") && health.contains("\"starting\""), "{health}");
    // In the end it serves the past that it has.
    let survivor = waiting.ready().unwrap();
    let mut client = survivor.connect();
    client.batch_execute("SET statement_timeout = '9s'").unwrap();
    assert_eq!(client.query_one("SELECT 1", &[]).unwrap().get::<_, i32>(0), 1);
    assert_eq!(state(&client.query("SELECT id FROM t", &[]).unwrap_err()), "57P03");
    // (A session that has asked for the present never goes back.)
    let mut client = survivor.connect();
    client.batch_execute("SET timeball.consistency = 'stale'").unwrap();
    assert_eq!(client.query_one("SELECT id FROM t", &[]).unwrap().get::<_, i32>(0), 1);
    assert!(survivor.get("/health").starts_with("HTTP/1.1 503 "));
    survivor.kill();
    nodes.restart_all();
    let mut client = nodes.at(0).connect();
    serves_again(&nodes, &mut client);
}

#[test]
fn two_of_three_sleep() {
    repeat_with("cluster::majority::two_of_three_sleep");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let (mut client, then) = with_rows(&nodes);
    nodes.sleep(1);
    nodes.sleep(2);
    answers_what_it_can(&nodes, &then);
    // Their links stand, and they say nothing.
    let query = "SELECT state, last_error FROM timeball_internal.nodes WHERE node_id = '2'";
    let (state, since) = nodes.at(0).connect().query_one(query, &[]).map(|row| (row.get(0), row.get(1))).unwrap();
    let (state, since): (String, String) = (state, since);
    assert!(state == "silent" && since.starts_with("nothing heard for "), "{state}: {since}");
    nodes.wake(1);
    nodes.wake(2);
    serves_again(&nodes, &mut client);
    until("they are heard again", || {
        let state: String = client.query_one(query, &[]).unwrap().get(0);
        (state == "connected").then_some(())
    });
}
