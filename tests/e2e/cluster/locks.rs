//! Row locks that are held by sessions of one node and wanted by those of another.

use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with, state, until};
use postgres::Client;

/// Makes a table in three ranges with rows 1 to 3, and a client at each node.
fn three_rows(nodes: &Nodes) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..3).map(|at| nodes.at(at).connect()).collect();
    clients[0]
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
        .unwrap();
    clients[0].batch_execute("ALTER TABLE t SPLIT AT VALUES (2), (3)").unwrap();
    clients
}

/// NOWAIT, SKIP LOCKED and the timeouts say what they say on one node; who waits gets the row when it is given back.
#[test]
fn a_row_that_is_locked_at_another_node() {
    repeat_with("cluster::locks::a_row_that_is_locked_at_another_node");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let mut clients = three_rows(&nodes);
    for (holder, other) in [(0, 1), (1, 2), (2, 0)] {
        clients[holder].batch_execute("BEGIN; UPDATE t SET v = v + 1 WHERE id = 2").unwrap();
        let client = &mut clients[other];
        let refused = client.query("SELECT * FROM t WHERE id = 2 FOR UPDATE NOWAIT", &[]).unwrap_err();
        assert_eq!(state(&refused), "55P03");
        let free = client.query("SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED", &[]).unwrap();
        assert_eq!(free.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1, 3]);
        for (setting, sqlstate) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
            client.batch_execute(&format!("SET {setting} = '200ms'")).unwrap();
            let ended = client.execute("UPDATE t SET v = v + 1 WHERE id = 2", &[]).unwrap_err();
            assert_eq!(state(&ended), sqlstate, "{setting}");
            client.batch_execute(&format!("SET {setting} = 0")).unwrap();
        }
        client.batch_execute("BEGIN; SET LOCAL lock_timeout = '200ms'").unwrap();
        let ended = client.execute("UPDATE t SET v = v + 1 WHERE id = 2", &[]).unwrap_err();
        assert_eq!(state(&ended), "55P03");
        client.batch_execute("ROLLBACK").unwrap();
        let token = client.cancel_token();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| client.execute("UPDATE t SET v = v + 1 WHERE id = 2", &[]));
            // A cancel that comes before its statement ends nothing: again, then.
            until("the wait ends", || {
                let _ = token.cancel_query(postgres::NoTls);
                waiting.is_finished().then_some(())
            });
            assert_eq!(state(&waiting.join().unwrap().unwrap_err()), "57014");
        });
        clients[holder].batch_execute("COMMIT").unwrap();
        // A cancel that came late ends this one instead.
        let client = &mut clients[other];
        until("the row is free", || client.execute("UPDATE t SET v = 0 WHERE id = 2", &[]).ok());
    }
}

/// A circle of two nodes' sessions: one of them is told, and the other goes on.
#[test]
fn a_deadlock_over_two_nodes() {
    repeat_with("cluster::locks::a_deadlock_over_two_nodes");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let mut clients = three_rows(&nodes);
    let (mut one, mut other) = (clients.remove(0), clients.remove(0));
    one.batch_execute("BEGIN; UPDATE t SET v = 1 WHERE id = 1").unwrap();
    other.batch_execute("BEGIN; UPDATE t SET v = 2 WHERE id = 3").unwrap();
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let done = one.execute("UPDATE t SET v = 1 WHERE id = 3", &[]).map(drop);
            if done.is_err() {
                one.batch_execute("ROLLBACK").unwrap();
            }
            done
        });
        let second = other.execute("UPDATE t SET v = 2 WHERE id = 1", &[]).map(drop);
        if second.is_err() {
            other.batch_execute("ROLLBACK").unwrap();
        }
        (first.join().unwrap(), second)
    });
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    let victim = first.err().or(second.err()).unwrap();
    assert_eq!(state(&victim), "40P01");
    let detail = victim.as_db_error().and_then(|error| error.detail()).unwrap_or_default();
    assert!(detail.contains("of another node") && !detail.contains("rocess 0"), "{detail}");
}
