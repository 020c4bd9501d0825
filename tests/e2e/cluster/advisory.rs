//! Advisory locks: one session's at a time, whichever node it is at.

use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with, state, until};
use postgres::Client;

fn clients(nodes: &Nodes) -> Vec<Client> {
    (0..3).map(|at| nodes.at(at).connect()).collect()
}

fn says(client: &mut Client, call: &str) -> bool {
    client.query_one(&format!("SELECT {call}"), &[]).unwrap().get(0)
}

#[test]
fn an_advisory_lock_is_held_in_the_whole_cluster() {
    repeat_with("cluster::advisory::an_advisory_lock_is_held_in_the_whole_cluster");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let mut clients = clients(&nodes);
    for holder in 0..3 {
        let (one, other) = ((holder + 1) % 3, (holder + 2) % 3);
        clients[holder].batch_execute("SELECT pg_advisory_lock(7)").unwrap();
        // As often as it likes; others not, as long as it has it once.
        assert!(says(&mut clients[holder], "pg_try_advisory_lock(7)"));
        assert!(!says(&mut clients[one], "pg_try_advisory_lock(7)"));
        assert!(!says(&mut clients[other], "pg_try_advisory_lock_shared(7)"));
        assert!(says(&mut clients[holder], "pg_advisory_unlock(7)"));
        assert!(!says(&mut clients[one], "pg_try_advisory_xact_lock(7)"));
        let shown = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND granted";
        assert_eq!(clients[holder].query_one(shown, &[]).unwrap().get::<_, i64>(0), 1);
        clients[one].batch_execute("SET lock_timeout = '200ms'").unwrap();
        assert_eq!(state(&clients[one].batch_execute("SELECT pg_advisory_lock(7)").unwrap_err()), "55P03");
        clients[one].batch_execute("SET lock_timeout = 0").unwrap();
        assert!(says(&mut clients[holder], "pg_advisory_unlock(7)"));
        assert!(!says(&mut clients[holder], "pg_advisory_unlock(7)"));
        // Shared by two, for the length of a transaction.
        until("it is free", || says(&mut clients[one], "pg_try_advisory_lock_shared(7)").then_some(()));
        clients[other].batch_execute("BEGIN; SELECT pg_advisory_xact_lock_shared(7)").unwrap();
        assert!(!says(&mut clients[holder], "pg_try_advisory_lock(7)"));
        clients[other].batch_execute("COMMIT").unwrap();
        assert!(says(&mut clients[one], "pg_advisory_unlock_shared(7)"));
        until("it is free", || says(&mut clients[holder], "pg_try_advisory_lock(7)").then_some(()));
        clients[holder].batch_execute("SELECT pg_advisory_unlock_all()").unwrap();
        until("it is free", || says(&mut clients[other], "pg_try_advisory_lock(7)").then_some(()));
        // A session that ends holds nothing.
        clients[other] = nodes.at(other).connect();
        until("it is free", || says(&mut clients[one], "pg_try_advisory_lock(7)").then_some(()));
        assert!(says(&mut clients[one], "pg_advisory_unlock(7)"));
    }
}

/// What migration tools do, started at three nodes at once: one after the other.
#[test]
fn migrations_run_one_at_a_time() {
    repeat_with("cluster::advisory::migrations_run_one_at_a_time");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    clients(&nodes)[0].batch_execute("CREATE TABLE applied (version int)").unwrap();
    std::thread::scope(|scope| {
        for mut client in clients(&nodes) {
            scope.spawn(move || {
                for version in 1..=5 {
                    client.batch_execute("SELECT pg_advisory_lock(77431, 1)").unwrap();
                    let known = client.query("SELECT 1 FROM applied WHERE version = $1", &[&version]).unwrap();
                    if known.is_empty() {
                        client.batch_execute(&format!("CREATE TABLE m{version} (id int PRIMARY KEY)")).unwrap();
                        client.execute("INSERT INTO applied VALUES ($1)", &[&version]).unwrap();
                    }
                    assert!(says(&mut client, "pg_advisory_unlock(77431, 1)"));
                }
            });
        }
    });
    let rows = nodes.at(2).connect().query("SELECT version FROM applied ORDER BY 1", &[]).unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1, 2, 3, 4, 5]);
}

#[test]
fn the_locks_of_a_killed_node_pass_on() {
    repeat_with("cluster::advisory::the_locks_of_a_killed_node_pass_on");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let leader = nodes.leader();
    for holder in [(leader + 1) % 3, leader] {
        let other = (holder + 1) % 3;
        let mut killed = nodes.at(holder).connect();
        killed.batch_execute("SELECT pg_advisory_lock(9)").unwrap();
        let mut waiting = nodes.at(other).connect();
        assert!(!says(&mut waiting, "pg_try_advisory_lock(9)"));
        nodes.kill(holder);
        until("the lock passes on", || match waiting.batch_execute("SELECT pg_advisory_lock(9)") {
            Ok(()) => Some(()),
            Err(error) if state(&error) == "57P03" => None,
            Err(error) => panic!("{error:?}"),
        });
        assert!(says(&mut waiting, "pg_advisory_unlock(9)"));
        nodes.restart(holder);
    }
}

/// One holds an advisory lock and wants a row, the other the other way round, at two nodes.
#[test]
fn a_deadlock_over_locks_of_both_kinds_and_two_nodes() {
    repeat_with("cluster::advisory::a_deadlock_over_locks_of_both_kinds_and_two_nodes");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let mut clients = clients(&nodes);
    let (mut one, mut other) = (clients.remove(0), clients.remove(0));
    one.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    one.batch_execute("BEGIN; SELECT pg_advisory_lock(3)").unwrap();
    other.batch_execute("BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE").unwrap();
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let done = one.batch_execute("SELECT * FROM t WHERE id = 1 FOR UPDATE");
            one.batch_execute("ROLLBACK; SELECT pg_advisory_unlock_all()").unwrap();
            done
        });
        let second = other.batch_execute("SELECT pg_advisory_lock(3)");
        other.batch_execute("ROLLBACK; SELECT pg_advisory_unlock_all()").unwrap();
        (first.join().unwrap(), second)
    });
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    let victim = first.err().or(second.err()).unwrap();
    assert_eq!(state(&victim), "40P01");
    let detail = victim.as_db_error().and_then(|error| error.detail()).unwrap_or_default();
    assert!(detail.contains("ExclusiveLock on advisory lock [5,0,3,1]"), "{detail}");
}
