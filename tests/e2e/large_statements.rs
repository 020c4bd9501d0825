//! DELETE, UPDATE and INSERT .. SELECT of more than the node's memory: they are run by writing their table anew (decision 238), and one that is killed leaves nothing half-done.

use crate::node::{Node, Scratch, bytes_of, repeat_with, state, until};
use postgres::Client;

/// Rows of 2 KB: a half of them is more than all statements of the least node may have.
const ROWS: i64 = 20_000;
const FLAGS: [&str; 4] = ["--memory", "128MiB", "--retention", "5s"];

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, k int UNIQUE, v int DEFAULT 0, pad text NOT NULL)";

fn fill(client: &mut Client) {
    let rows = "BEGIN; TRUNCATE t; INSERT INTO t SELECT g, (g::int8 * 7919 % 20000)::int, 0, repeat('x', 2000) FROM generate_series(0, 19999) g; COMMIT";
    client.batch_execute(rows).unwrap();
}

/// Rows, the sum of their keys, of the other keys, how many were changed, and how many are whole.
fn whole(client: &mut Client) -> [i64; 5] {
    let whole = "SELECT count(*), coalesce(sum(id), 0)::int8, coalesce(sum(k), 0)::int8, coalesce(sum(v), 0)::int8, count(*) FILTER (WHERE length(pad) = 2000) FROM t";
    let row = client.query_one(whole, &[]).unwrap();
    std::array::from_fn(|at| row.get(at))
}

#[test]
fn what_does_not_fit_is_run_in_steady_memory() {
    repeat_with("large_statements::what_does_not_fit_is_run_in_steady_memory");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let node = Node::start(&store, &FLAGS);
    let mut client = node.connect();
    client.batch_execute(TABLE).unwrap();
    fill(&mut client);
    let sum = ROWS * (ROWS - 1) / 2;
    let (others, pad) = (&mut node.connect(), "y".repeat(2000));
    assert_eq!(client.execute("UPDATE t SET v = 1, pad = $1 WHERE id >= $2", &[&pad, &0]).unwrap(), ROWS as u64);
    assert_eq!(whole(others), [ROWS, sum, sum, ROWS, ROWS]);
    assert_eq!(client.execute("DELETE FROM t WHERE k >= 5000", &[]).unwrap(), ROWS as u64 - 5_000);
    let [count, ..] = whole(others);
    assert_eq!(count, 5_000);
    let inserted = client
        .execute("INSERT INTO t SELECT id + g * 100000, k + g * 100000, 2, pad FROM t, generate_series(1, 3) g", &[]);
    assert_eq!(inserted.unwrap(), 15_000);
    assert_eq!(whole(others)[3..], [5_000 + 2 * 15_000, ROWS]);
    for (sql, expected) in [
        ("UPDATE t SET k = 5", "23505"),
        ("INSERT INTO t SELECT id, k + 1000000, 2, pad FROM t", "23505"),
        ("UPDATE t SET v = 3, pad = pad || 'z' RETURNING id", "53200"),
        ("BEGIN; UPDATE t SET v = 3, pad = pad || 'z'", "53200"),
    ] {
        assert_eq!(client.batch_execute(sql).as_ref().map_err(state), Err(expected), "{sql}");
        client.batch_execute("ROLLBACK").unwrap();
    }
    assert_eq!(whole(others)[3..], [5_000 + 2 * 15_000, ROWS]);
    assert_eq!(node.metric("memory_statements_bytes"), Some(0.0), "what was held comes back");
    // And after a restart.
    node.kill();
    let node = Node::start(&store, &FLAGS);
    let mut client = node.connect();
    assert_eq!(whole(&mut client)[3..], [5_000 + 2 * 15_000, ROWS]);
    assert_eq!(client.execute("DELETE FROM t", &[]).unwrap(), ROWS as u64);
    assert_eq!(whole(&mut client), [0; 5]);
}

/// All of it is there or nothing; its writers wait for nobody, and the space comes back.
#[test]
fn nothing_half_done_is_left_of_one_that_was_killed() {
    repeat_with("large_statements::nothing_half_done_is_left_of_one_that_was_killed");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let mut node = Node::start(&store, &FLAGS);
    node.connect().batch_execute(TABLE).unwrap();
    fill(&mut node.connect());
    let sum = ROWS * (ROWS - 1) / 2;
    let before = bytes_of(&store);
    for (sql, done) in [
        ("UPDATE t SET v = 1, pad = translate(pad, 'x', 'y')", [ROWS, sum, sum, ROWS, ROWS]),
        (
            "INSERT INTO t SELECT id + 100000, k + 100000, 0, pad FROM t",
            [2 * ROWS, 2 * sum + ROWS * 100_000, 2 * sum + ROWS * 100_000, 0, 2 * ROWS],
        ),
    ] {
        let mut client = node.connect();
        let statement = std::thread::spawn(move || client.batch_execute(sql).is_ok());
        // Chunks of it are in the engine, or it is done.
        until("it writes", || (statement.is_finished() || bytes_of(&store) > before + (12 << 20)).then_some(()));
        node.kill();
        let told = statement.join().unwrap();
        node = Node::start(&store, &FLAGS);
        let mut client = node.connect();
        let found = whole(&mut client);
        assert!(found == done || !told && found == [ROWS, sum, sum, 0, ROWS], "{sql}, {told}: {found:?}");
        client
            .batch_execute(
                "SET lock_timeout = '20s'; INSERT INTO t VALUES (-1, -1, 0, 'x'); DELETE FROM t WHERE id = -1",
            )
            .unwrap();
        fill(&mut client);
        until("its space is free", || (bytes_of(&store) < before + (20 << 20)).then_some(()));
    }
}
