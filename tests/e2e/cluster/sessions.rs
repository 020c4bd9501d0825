//! Sessions of all nodes, seen and ended from any.

use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with, state, until};
use std::io::Write;
use std::sync::{Arc, Mutex};

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

/// How far a COPY is is seen at each node. Who does not answer is named, and hides nothing of the others.
#[test]
fn how_far_a_copy_is_is_seen_from_another_node() {
    repeat_with("cluster::sessions::how_far_a_copy_is_is_seen_from_another_node");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut first = nodes.at(0).connect();
    first.batch_execute("CREATE TABLE loaded (id int PRIMARY KEY)").unwrap();
    let pid: i32 = first.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let warnings = Arc::new(Mutex::new(Vec::<String>::new()));
    let told = warnings.clone();
    let mut config: postgres::Config = nodes.at(1).url().parse().unwrap();
    config.notice_callback(move |notice| told.lock().unwrap().push(notice.message().to_owned()));
    let mut second = config.connect(postgres::NoTls).unwrap();
    let mut seen = || {
        let query = "SELECT relid::regclass::text, command, tuples_processed FROM pg_stat_progress_copy WHERE pid = $1";
        let row = second.query_opt(query, &[&pid]).unwrap();
        row.map(|row| (row.get::<_, String>(0), row.get::<_, String>(1), row.get::<_, i64>(2)))
    };
    assert_eq!(seen(), None);
    let mut copy = first.copy_in("COPY loaded FROM STDIN").unwrap();
    (0..3000).for_each(|id| writeln!(copy, "{id}").unwrap());
    copy.flush().unwrap();
    // Whole groups of rows are taken.
    let expected = ("loaded".to_owned(), "COPY FROM".to_owned(), 2048);
    until("it is seen", || seen().filter(|seen| *seen == expected));
    assert_eq!(*warnings.lock().unwrap(), [] as [String; 0]);
    nodes.kill(2);
    assert_eq!(seen(), Some(expected));
    let warned = std::mem::take(&mut *warnings.lock().unwrap());
    assert!(warned.len() == 1 && warned[0].starts_with("node 3 does not say what its sessions do"), "{warned:?}");
    assert_eq!(copy.finish().unwrap(), 3000);
    assert_eq!(seen(), None);
}
