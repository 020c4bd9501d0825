//! What everybody waits for, asked at any node, while some do not answer, and without a majority.

use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with, until};
use postgres::Client;

fn pid(client: &mut Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0)
}

fn blocking(client: &mut Client, pid: i32) -> Vec<i32> {
    client.query_one("SELECT pg_blocking_pids($1)", &[&pid]).unwrap().get(0)
}

/// One that answers in time whatever hangs: nobody here waits for longer than for one who hangs.
fn watcher(nodes: &Nodes, at: usize) -> Client {
    let mut client = nodes.at(at).connect();
    client.batch_execute("SET statement_timeout = '20s'").unwrap();
    client
}

/// Nodes of which a view says that they do not answer.
fn silent(client: &mut Client, view: &str) -> Vec<i32> {
    // A range of which nobody who answers says that he leads it has an error, too.
    let (node, and) = match view {
        "locks" => ("lock_node_id", ""),
        "leases" => ("leader_node_id", "AND range_id IS NULL"),
        _ => ("node_id", ""),
    };
    let query = format!("SELECT {node} FROM timeball_internal.{view} WHERE error IS NOT NULL {and} ORDER BY 1");
    client.query(&query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn who_blocks_whom_is_seen_at_every_node() {
    repeat_with("cluster::contention::who_blocks_whom_is_seen_at_every_node");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut clients: Vec<Client> = (0..3).map(|at| nodes.at(at).connect()).collect();
    clients[0]
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
        .unwrap();
    clients[0].batch_execute("ALTER TABLE t SPLIT AT VALUES (2), (3)").unwrap();
    // The holder at n1, who waits at n2, and who asks at all three: wherever the row is led, somebody is elsewhere.
    let mut holder = clients.remove(0);
    let mut waiter = clients.remove(0);
    let (holder_pid, waiter_pid) = (pid(&mut holder), pid(&mut waiter));
    let mut watchers: Vec<Client> = (0..3).map(|at| watcher(&nodes, at)).collect();
    for row in 1..=3 {
        holder.batch_execute(&format!("BEGIN; UPDATE t SET v = v + 1 WHERE id = {row}")).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| waiter.execute("UPDATE t SET v = v + 1 WHERE id = $1", &[&row]).unwrap());
            for (at, watcher) in watchers.iter_mut().enumerate() {
                until("the wait is seen", || (blocking(watcher, waiter_pid) == [holder_pid]).then_some(()));
                assert_eq!(blocking(watcher, holder_pid), Vec::<i32>::new(), "at n{}", at + 1);
                let locks = "SELECT table_name, row_key, granted, holder_node_id, holder_pid, waiter_node_id, waiter_pid, blocked_by \
                    FROM timeball_internal.locks WHERE locktype = 'row' ORDER BY granted";
                type Shown = (String, String, bool, i32, i32, Option<i32>, Option<i32>, Option<String>);
                let found: Vec<Shown> = watcher
                    .query(locks, &[])
                    .unwrap()
                    .iter()
                    .map(|r| (r.get(0), r.get(1), r.get(2), r.get(3), r.get(4), r.get(5), r.get(6), r.get(7)))
                    .collect();
                let key = format!("(id)=({row})");
                let blocked_by = Some(holder_pid.to_string());
                let expected = [
                    ("t".into(), key.clone(), false, 1, holder_pid, Some(2), Some(waiter_pid), blocked_by),
                    ("t".into(), key, true, 1, holder_pid, None, None, None),
                ];
                assert_eq!(found, expected, "at n{}", at + 1);
                let open = "SELECT node_id, pid, state, locked_keys, written_keys FROM timeball_internal.transactions ORDER BY node_id";
                let found: Vec<(i32, i32, String, i64, i64)> = watcher
                    .query(open, &[])
                    .unwrap()
                    .iter()
                    .map(|r| (r.get(0), r.get(1), r.get(2), r.get(3), r.get(4)))
                    .collect();
                let expected = [(1, holder_pid, "idle".into(), 1, 1), (2, waiter_pid, "waiting".into(), 0, 0)];
                assert_eq!(found, expected, "at n{}", at + 1);
            }
            // As it is asked of PostgreSQL, at the node of who waits.
            let query = "SELECT pid, pg_blocking_pids(pid), wait_event_type FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0";
            let found = watchers[1].query_one(query, &[]).unwrap();
            let found: (i32, Vec<i32>, &str) = (found.get(0), found.get(1), found.get(2));
            assert_eq!(found, (waiter_pid, vec![holder_pid], "Lock"));
            let query = "SELECT w.pid, h.pid, w.relation::regclass::text FROM pg_locks w JOIN pg_locks h ON h.granted AND NOT w.granted \
                AND h.locktype = w.locktype AND h.relation = w.relation AND h.page = w.page AND h.tuple = w.tuple";
            let found = watchers[1].query_one(query, &[]).unwrap();
            let found: (i32, i32, &str) = (found.get(0), found.get(1), found.get(2));
            assert_eq!(found, (waiter_pid, holder_pid, "t"));
            holder.batch_execute("COMMIT").unwrap();
            waits.join().unwrap();
        });
    }
    // An advisory lock, too.
    holder.batch_execute("SELECT pg_advisory_lock(7)").unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| waiter.batch_execute("SELECT pg_advisory_lock(7)").unwrap());
        for watcher in &mut watchers {
            until("the wait is seen", || (blocking(watcher, waiter_pid) == [holder_pid]).then_some(()));
            let locks = "SELECT holder_pid, waiter_pid FROM timeball_internal.locks WHERE locktype = 'advisory' AND NOT granted";
            let found = watcher.query_one(locks, &[]).unwrap();
            assert_eq!((found.get::<_, i32>(0), found.get::<_, i32>(1)), (holder_pid, waiter_pid));
            // A lock of a session is no transaction.
            let open = "SELECT count(*) FROM timeball_internal.transactions";
            assert_eq!(watcher.query_one(open, &[]).unwrap().get::<_, i64>(0), 0);
        }
        holder.batch_execute("SELECT pg_advisory_unlock(7)").unwrap();
        waits.join().unwrap();
    });
    waiter.batch_execute("SELECT pg_advisory_unlock(7)").unwrap();
    // Each range is led by one, whoever is asked, and its lease holds.
    let ranges: i64 = watchers[0].query_one("SELECT count(*) FROM timeball_internal.ranges", &[]).unwrap().get(0);
    for watcher in &mut watchers {
        until("all are led", || {
            let query = "SELECT count(*), count(DISTINCT range_id), bool_and(holds = 'yes' AND lease_left_ms > 0 AND term > 0), \
                count(*) FILTER (WHERE table_name = 't') FROM timeball_internal.leases";
            let row = watcher.query_one(query, &[]).unwrap();
            let told: (i64, i64, Option<bool>, i64) = (row.get(0), row.get(1), row.get(2), row.get(3));
            (told == (ranges, ranges, Some(true), 2)).then_some(())
        });
    }
    // One that hangs is named, and so is one that is gone; without a majority what can be told is told.
    nodes.sleep(2);
    let views = ["locks", "transactions", "leases"];
    views.iter().for_each(|view| assert_eq!(silent(&mut watchers[0], view), [3], "{view}"));
    nodes.wake(2);
    nodes.kill(2);
    views.iter().for_each(|view| assert_eq!(silent(&mut watchers[0], view), [3], "{view}"));
    // What it holds may be led by those who are gone soon.
    until("it is locked", || {
        let done = holder.batch_execute("BEGIN; UPDATE t SET v = 9").ok();
        if done.is_none() {
            holder.batch_execute("ROLLBACK").unwrap();
        }
        done
    });
    nodes.kill(1);
    views.iter().for_each(|view| assert_eq!(silent(&mut watchers[0], view), [2, 3], "{view}"));
    let open = "SELECT pid, locked_keys >= 0, written_keys FROM timeball_internal.transactions WHERE error IS NULL";
    let found = watchers[0].query_one(open, &[]).unwrap();
    assert_eq!((found.get::<_, i32>(0), found.get::<_, bool>(1), found.get::<_, i64>(2)), (holder_pid, true, 3));
    for query in ["SELECT count(*) FROM pg_stat_activity", "SELECT count(*) FROM pg_locks"] {
        watchers[0].query_one(query, &[]).unwrap();
    }
    // Also when the others are silent for so long that the catalog's range is: in a new session, too.
    until("the catalog is out of reach", || watchers[0].query("SELECT * FROM t", &[]).is_err().then_some(()));
    let mut new = watcher(&nodes, 0);
    for client in [&mut watchers[0], &mut new] {
        views.iter().for_each(|view| assert_eq!(silent(client, view), [2, 3], "{view}"));
        for view in ["pg_stat_activity", "pg_locks", "timeball_internal.nodes", "timeball_internal.ranges"] {
            client.query_one(&format!("SELECT count(*) FROM {view}"), &[]).unwrap_or_else(|e| panic!("{view}: {e}"));
        }
    }
    // And a wait for who does not answer ends when it is told to.
    let names = "SELECT DISTINCT table_name FROM timeball_internal.leases WHERE table_name IS NOT NULL";
    assert_eq!(watchers[0].query_one(names, &[]).unwrap().get::<_, &str>(0), "t");
}
