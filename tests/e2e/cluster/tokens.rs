//! Tokens go from node to node of one cluster, and no further (design 4a.12).

use super::Nodes;
use crate::clients::{client, java, pgx_program, python, quick_starts, succeed};
use crate::node::{Node, Scratch, repeat_with, skip, state};
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

/// Keys are rotated at any node, and no session of any node is turned away with what was on its way.
#[test]
fn keys_are_rotated_while_tokens_travel() {
    repeat_with("cluster::tokens::keys_are_rotated_while_tokens_travel");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let mut clients: Vec<Client> = (0..3).map(|at| nodes.at(at).connect()).collect();
    clients[0].batch_execute("CREATE TABLE t (id int PRIMARY KEY)").unwrap();
    let mut before = token(&mut clients[0]);
    for round in 0..3 {
        let (rotates, writes) = (round % 3, (round + 1) % 3);
        clients[rotates].batch_execute("ALTER SYSTEM ROTATE TOKENS").unwrap();
        clients[writes].execute("INSERT INTO t VALUES ($1)", &[&(round as i32)]).unwrap();
        let after = token(&mut clients[writes]);
        assert_ne!(before.split('-').nth(2), after.split('-').nth(2), "another key");
        for client in &mut clients {
            take(client, &before).unwrap();
            take(client, &after).unwrap();
        }
        if round > 0 {
            assert!(why(&mut clients[0], "1-2-3-4-5").contains("form"));
        }
        before = after;
    }
}

#[path = "../../../crates/client/examples/token_pool.rs"]
mod token_pool;
#[path = "../../../crates/client/examples/token_pool_tokio.rs"]
mod token_pool_tokio;

/// The same with the Rust client, blocking and on tokio.
#[test]
fn a_rust_process_carries_its_token() {
    repeat_with("cluster::tokens::a_rust_process_carries_its_token");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let urls = [nodes.at(0).url(), nodes.at(2).url()];
    token_pool::run(&urls).unwrap();
    token_pool_tokio::run(&urls).unwrap();
}

/// Programs that share one token over connections to two nodes, in three languages.
#[test]
fn pools_share_one_token() {
    repeat_with("cluster::tokens::pools_share_one_token");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let urls = [nodes.at(0).url(), nodes.at(2).url()];
    match python() {
        Some(python) => {
            let program = quick_starts().join("psycopg/token_pool.py");
            let out = succeed(client(&python).arg(program).args(&urls));
            assert!(out.contains("all fine"), "psycopg: {out}");
        }
        None => skip("python3 with the packages of requirements.txt cannot be set up"),
    }
    if let Some(mut program) = pgx_program("./token_pool", "pgx_token_pool") {
        let out = succeed(program.args(&urls));
        assert!(out.contains("all fine"), "pgx: {out}");
    }
    if let Some(mut program) = java("TokenPool") {
        let urls = [0, 2].map(|at| format!("jdbc:postgresql://{}/postgres?user=root", nodes.at(at).sql));
        let out = succeed(program.args(&urls));
        assert!(out.contains("all fine"), "pgjdbc: {out}");
    }
}
