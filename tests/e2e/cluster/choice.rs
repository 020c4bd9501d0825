//! Consistency is a choice of each transaction, at any node of a real cluster.

use super::{Nodes, again};
use crate::clients::{succeed, tool};
use crate::node::{Scratch, has_program, repeat_with, skip, state, until};
use postgres::{Client, Error};

const MODES: [&str; 5] = ["strict", "hybrid", "token", "none", "stale"];

/// Does something in a block of this consistency, until no conflict is in the way.
fn within<T>(client: &mut Client, mode: &str, mut work: impl FnMut(&mut Client) -> Result<T, Error>) -> T {
    until("a transaction goes through", || {
        client.batch_execute(&format!("BEGIN CONSISTENCY {mode}")).unwrap();
        let done = work(client);
        let ended = client.batch_execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" });
        match (done, ended) {
            (Ok(value), Ok(())) => Some(value),
            (Err(e), _) | (_, Err(e)) if again(&e) => None,
            (Err(e), _) | (_, Err(e)) => panic!("{mode}: {e}: {:?}", e.as_db_error()),
        }
    })
}

fn seen(client: &mut Client, mode: &str) -> i32 {
    within(client, mode, |client| client.query_one("SELECT v FROM t", &[]).map(|row| row.get(0)))
}

/// Each mode reads and writes at each node, and keeps what it promises beside the others.
#[test]
fn each_mode_is_served_by_any_node() {
    repeat_with("cluster::choice::each_mode_is_served_by_any_node");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let mut clients: Vec<Client> = (0..3).map(|at| nodes.at(at).connect()).collect();
    clients[0].batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)").unwrap();
    // Old enough for whoever reads the past.
    for client in &mut clients {
        until("the past has it", || {
            client.batch_execute("BEGIN CONSISTENCY stale").unwrap();
            let found = client.query("SELECT v FROM t", &[]).is_ok_and(|rows| rows.len() == 1);
            client.batch_execute("ROLLBACK").unwrap();
            found.then_some(())
        });
    }
    let mut n = 0;
    for mode in MODES {
        for at in 0..3 {
            n += 1;
            let (writer, other) = ((at + 1) % 3, (at + 2) % 3);
            within(&mut clients[writer], "strict", |client| client.execute("UPDATE t SET v = $1", &[&n]));
            let token: String = clients[writer].query_one("SHOW timeball.token", &[]).unwrap().get(0);
            if mode == "token" {
                clients[at].batch_execute(&format!("SET timeball.token = '{token}'")).unwrap();
            }
            let read = seen(&mut clients[at], mode);
            match mode {
                "none" | "stale" => assert!((0..=n).contains(&read), "{mode} at n{}: {read} of {n}", at + 1),
                _ => assert_eq!(read, n, "{mode} at n{}", at + 1),
            }
            let client = &mut clients[at];
            if mode == "stale" {
                client.batch_execute("BEGIN CONSISTENCY stale").unwrap();
                let refused = client.execute("UPDATE t SET v = 0", &[]).unwrap_err();
                assert_eq!(state(&refused), "25006", "{refused:?}");
                client.batch_execute("ROLLBACK").unwrap();
                continue;
            }
            n += 1;
            within(client, mode, |client| client.execute("UPDATE t SET v = $1", &[&n]));
            for reader in [at, other] {
                assert_eq!(seen(&mut clients[reader], "strict"), n, "written by {mode} at n{}", at + 1);
            }
        }
    }
    // EXPLAIN ANALYZE says what time cost, and with what.
    let explain = "EXPLAIN (ANALYZE) UPDATE t SET v = v";
    let lines: Vec<String> = until("it goes through", || {
        clients[1].batch_execute("SET timeball.consistency = 'strict'").unwrap();
        let rows = clients[1].query(explain, &[]).ok()?;
        Some(rows.iter().map(|row| row.get(0)).collect())
    });
    for line in ["Consistency: strict", "Commit wait hidden by replication: ", "Commit wait beyond replication: "] {
        assert!(lines.iter().any(|shown| shown.starts_with(line)), "{line}: {lines:?}");
    }
}

/// What a replica here has resolved it serves, whoever is there to ask.
#[test]
fn the_past_is_read_while_all_others_sleep() {
    repeat_with("cluster::choice::the_past_is_read_while_all_others_sleep");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    nodes
        .at(0)
        .connect()
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 7)")
        .unwrap();
    let leader = nodes.leader();
    let follower = (leader + 1) % 3;
    let mut client = nodes.at(follower).connect();
    // Without a bound, as old as it takes.
    client.batch_execute("SET timeball.consistency = 'stale'").unwrap();
    let read = |client: &mut Client| client.query("SELECT v FROM t", &[]);
    until("the follower has resolved the row", || read(&mut client).is_ok_and(|rows| rows.len() == 1).then_some(()));
    let others = [leader, (leader + 2) % 3];
    others.iter().for_each(|at| nodes.sleep(*at));
    for _ in 0..20 {
        assert_eq!(read(&mut client).unwrap()[0].get::<_, i32>(0), 7);
    }
    let lines = client.query("EXPLAIN ANALYZE SELECT v FROM t", &[]).unwrap();
    let lines: Vec<String> = lines.iter().map(|row| row.get(0)).collect();
    let age = lines.iter().find_map(|line| line.strip_prefix("Snapshot age: ")?.strip_suffix(" ms"));
    assert!(age.is_some_and(|ms| ms.parse::<f64>().unwrap() > 0.0), "{lines:?}");
    others.iter().for_each(|at| nodes.wake(*at));
    let mut strict = nodes.at(follower).connect();
    strict.batch_execute("SET timeball.consistency = 'strict'").unwrap();
    until("the present is served again", || read(&mut strict).ok());
}

/// What is said of the database and the cluster at one node is what sessions of all nodes begin with, and goes along with a dump.
#[test]
fn defaults_are_of_the_whole_cluster() {
    repeat_with("cluster::choice::defaults_are_of_the_whole_cluster");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let shown = |at: usize, name: &str| -> String {
        nodes.at(at).connect().query_one(&format!("SHOW {name}"), &[]).unwrap().get(0)
    };
    let mut client = nodes.at(0).connect();
    client.batch_execute("ALTER DATABASE postgres SET timeball.consistency = 'hybrid'").unwrap();
    client.batch_execute("ALTER SYSTEM SET timeball.uncertainty = 'fallback'").unwrap();
    client.batch_execute("ALTER ROLE root SET search_path = s, public").unwrap();
    for at in 0..3 {
        assert_eq!(shown(at, "timeball.consistency"), "hybrid", "n{}", at + 1);
        assert_eq!(shown(at, "timeball.uncertainty"), "fallback", "n{}", at + 1);
    }
    if !has_program("pg_dump") || !has_program("pg_dumpall") {
        return skip("pg_dump and pg_dumpall are missing");
    }
    let (url, host) = (nodes.at(1).url(), nodes.at(1).sql.clone());
    let dump = succeed(tool("pg_dump").args(["--create", &url]));
    assert!(dump.contains("ALTER DATABASE postgres SET \"timeball.consistency\" TO 'hybrid';"), "{dump}");
    let (host, port) = host.split_once(':').unwrap();
    let globals =
        succeed(tool("pg_dumpall").args(["--globals-only", "-h", host, "-p", port, "-U", "root", "-l", "postgres"]));
    assert!(globals.contains("ALTER ROLE root SET search_path TO 's', 'public';"), "{globals}");
}
