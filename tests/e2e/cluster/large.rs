//! What is larger than an entry of the log, and what several nodes share: transactions of many rows, sequences.

use super::nodes::Nodes;
use super::{again, count};
use crate::node::{Scratch, repeat_with, until};
use std::io::Write;

/// Rows of two hundred bytes: more than one entry takes.
const ROWS: i64 = 30_000;

/// COPY, CREATE INDEX, UPDATE and DELETE of all rows are as on one node, at whatever node, and outlive its death.
#[test]
fn large_transactions_are_whole_at_every_node() {
    repeat_with("cluster::large::large_transactions_are_whole_at_every_node");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let leader = nodes.leader();
    let (writer, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let mut client = nodes.at(writer).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int, filler text)").unwrap();
    let mut copy = client.copy_in("COPY t FROM STDIN").unwrap();
    for id in 0..ROWS {
        writeln!(copy, "{id}\t{}\t{}", id % 100, "x".repeat(180)).unwrap();
    }
    assert_eq!(copy.finish().unwrap(), ROWS as u64);
    assert_eq!(count(&mut nodes.at(other).connect(), "t"), ROWS);
    client.batch_execute("CREATE INDEX ON t (n); CREATE TABLE u AS SELECT * FROM t").unwrap();
    assert_eq!(count(&mut nodes.at(leader).connect(), "u"), ROWS);
    let update = until("the update meets nobody", || match client.execute("UPDATE u SET n = n + 1", &[]) {
        Ok(rows) => Some(rows),
        Err(e) if again(&e) => None,
        Err(e) => panic!("{e}: {:?}", e.as_db_error()),
    });
    assert_eq!(update, ROWS as u64);
    nodes.kill(writer);
    let mut client = nodes.at(other).connect();
    let sum: i64 = until("a majority serves", || {
        client.query_one("SELECT sum(u.n - t.n) FROM t JOIN u USING (id)", &[]).ok().map(|row| row.get(0))
    });
    assert_eq!(sum, ROWS);
    let deleted = until("the deletion meets nobody", || match client.execute("DELETE FROM u", &[]) {
        Ok(rows) => Some(rows),
        Err(e) if again(&e) => None,
        Err(e) => panic!("{e}: {:?}", e.as_db_error()),
    });
    assert_eq!((deleted, count(&mut client, "u")), (ROWS as u64, 0));
    nodes.restart(writer);
    let mut back = nodes.at(writer).connect();
    assert_eq!((count(&mut back, "t"), count(&mut back, "u")), (ROWS, 0));
}

/// `setval` at one node, `nextval` at any.
#[test]
fn a_sequence_moved_at_one_node_has_moved_at_all() {
    repeat_with("cluster::large::a_sequence_moved_at_one_node_has_moved_at_all");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let mut clients: Vec<_> = (0..3).map(|at| nodes.at(at).connect()).collect();
    clients[0].batch_execute("CREATE SEQUENCE s").unwrap();
    let mut next = |at: usize| -> i64 { clients[at].query_one("SELECT nextval('s')", &[]).unwrap().get(0) };
    let mut seen: Vec<i64> = (0..30).map(|n| next(n % 3)).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 30, "no number twice");
    for (mover, base) in [(1, 100_000), (2, 50_000)] {
        nodes.at(mover).connect().query_one("SELECT setval('s', $1)", &[&i64::from(base)]).unwrap();
        let seen: Vec<i64> = (0..3).map(&mut next).collect();
        assert!(seen.iter().all(|n| (i64::from(base) + 1..i64::from(base) + 10_000).contains(n)), "{seen:?}");
        assert!(seen.contains(&(i64::from(base) + 1)), "{seen:?}");
    }
}
