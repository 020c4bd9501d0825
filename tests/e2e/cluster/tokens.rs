//! Tokens go from node to node of one cluster, and no further (design 4a.12).

use super::Nodes;
use crate::node::{Node, Scratch, repeat_with, state};
use postgres::Client;

fn token(client: &mut Client) -> String {
    client.query_one("SHOW timeball.token", &[]).unwrap().get(0)
}

fn take(client: &mut Client, token: &str) -> Result<(), postgres::Error> {
    client.batch_execute(&format!("SET timeball.token = '{token}'"))
}

fn why(client: &mut Client, token: &str) -> String {
    let error = take(client, token).unwrap_err();
    assert_eq!(state(&error), "22023", "{error:?}");
    error.as_db_error().unwrap().detail().unwrap().to_owned()
}

#[test]
fn a_token_is_taken_by_its_own_cluster() {
    repeat_with("cluster::tokens::a_token_is_taken_by_its_own_cluster");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut clients: Vec<Client> = (0..3).map(|at| nodes.at(at).connect()).collect();
    clients[0].batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    let given = token(&mut clients[0]);
    clients[2].batch_execute("SET timeball.consistency = 'token'").unwrap();
    take(&mut clients[2], &given).unwrap();
    assert_eq!(clients[2].query("SELECT * FROM t", &[]).unwrap().len(), 1);
    // It names the cluster as operators know it.
    let health = nodes.at(0).get("/health");
    let cluster = given.split('-').nth(1).unwrap();
    assert!(health.contains(cluster), "{cluster}: {health}");
    let alone = Node::start(&scratch.path().join("alone"), &[]);
    assert!(why(&mut alone.connect(), &given).contains(cluster));
    // The keys outlive a node, and are renewed for all at once.
    nodes.kill(1);
    nodes.restart(1);
    take(&mut nodes.at(1).connect(), &given).unwrap();
    clients[2].batch_execute("ALTER SYSTEM RENEW TOKENS").unwrap();
    for at in 0..3 {
        assert!(why(&mut nodes.at(at).connect(), &given).contains("incarnation 1"), "n{}", at + 1);
    }
    assert!(why(&mut clients[0], &given).contains("incarnation 1"), "a session that was there");
    let new = token(&mut clients[0]);
    take(&mut clients[2], &new).unwrap();
}
