//! Sessions of all nodes, seen and ended from any.

use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with, state, until};

#[test]
fn sessions_are_seen_and_ended_from_another_node() {
    repeat_with("cluster::sessions::sessions_are_seen_and_ended_from_another_node");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut clients: Vec<postgres::Client> = (0..3).map(|at| nodes.at(at).connect()).collect();
    let pid =
        |client: &mut postgres::Client| -> i32 { client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0) };
    let pids: Vec<i32> = clients.iter_mut().map(pid).collect();
    let query = "SELECT pid, node_id FROM timeball_internal.cluster_sessions WHERE error IS NULL ORDER BY node_id";
    for client in &mut clients {
        let seen: Vec<(i32, i32)> =
            client.query(query, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
        let known: Vec<(i32, i32)> = pids.iter().copied().zip(1..).collect();
        assert_eq!(seen, known);
    }
    let (mut first, mut second) = (clients.remove(0), clients.remove(0));
    first.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| second.batch_execute("SELECT pg_advisory_lock(1)").unwrap_err());
        let cancel = format!("SELECT pg_cancel_backend({})", pids[1]);
        // One that comes before its statement ends nothing: again, then.
        until("the wait ends", || {
            assert!(first.query_one(&cancel, &[]).unwrap().get::<_, bool>(0));
            waits.is_finished().then_some(())
        });
        assert_eq!(state(&waits.join().unwrap()), "57014");
    });
    assert!(first.query_one(&format!("SELECT pg_terminate_backend({})", pids[1]), &[]).unwrap().get::<_, bool>(0));
    until("the session ends", || second.batch_execute("SELECT 1").err());
    // There is none of that number any more, nor a node that could know one.
    until("it is gone", || {
        let gone = first.query_one(&format!("SELECT pg_cancel_backend({})", pids[1]), &[]).unwrap();
        (!gone.get::<_, bool>(0)).then_some(())
    });
    nodes.kill(2);
    let error: String = first
        .query_one("SELECT error FROM timeball_internal.cluster_sessions WHERE node_id = '3'", &[])
        .unwrap()
        .get(0);
    assert!(error.contains("cannot be reached"), "{error}");
}
