//! The extended protocol, cancellation and COPY, through an independent client.

use crate::node::{Node, Scratch, repeat_with, state, until};
use postgres::NoTls;
use postgres::types::Type;
use std::io::{Read, Write};

fn node() -> (Scratch, Node) {
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    (scratch, node)
}

#[test]
fn prepared_statements_and_types() {
    repeat_with("extended_protocol::prepared_statements_and_types");
    let (_scratch, node) = node();
    let mut client = node.connect();
    client
        .batch_execute("CREATE TABLE t (id int8 PRIMARY KEY, s text, f float8, b bool, bin bytea, a int4[])")
        .unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6)").unwrap();
    assert_eq!(insert.params()[0], Type::INT8);
    for id in 0..10i64 {
        let text = (id % 3 != 0).then(|| format!("row {id} ä"));
        let n = client.execute(
            &insert,
            &[&id, &text, &(id as f64 / 4.0), &(id % 2 == 0), &vec![id as u8; 3], &vec![id as i32, -1]],
        );
        assert_eq!(n.unwrap(), 1);
    }
    let select = client.prepare("SELECT id, s, f, b, bin, a FROM t WHERE id = $1").unwrap();
    let row = client.query_one(&select, &[&4i64]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 4);
    assert_eq!(row.get::<_, Option<String>>(1).as_deref(), Some("row 4 ä"));
    assert_eq!((row.get::<_, f64>(2), row.get::<_, bool>(3)), (1.0, true));
    assert_eq!((row.get::<_, Vec<u8>>(4), row.get::<_, Vec<i32>>(5)), (vec![4; 3], vec![4, -1]));
    assert!(client.query_one(&select, &[&3i64]).unwrap().get::<_, Option<String>>(1).is_none());
    assert!(client.query_opt(&select, &[&77i64]).unwrap().is_none());
}

#[test]
fn portals_with_row_limits() {
    repeat_with("extended_protocol::portals_with_row_limits");
    let (_scratch, node) = node();
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY)").unwrap();
    for id in 0..25 {
        client.execute("INSERT INTO t VALUES ($1)", &[&id]).unwrap();
    }
    let mut txn = client.transaction().unwrap();
    let portal = txn.bind("SELECT id FROM t ORDER BY id", &[]).unwrap();
    let mut seen = Vec::new();
    loop {
        let rows = txn.query_portal(&portal, 10).unwrap();
        if rows.is_empty() {
            break;
        }
        seen.push(rows.len());
    }
    assert_eq!(seen, [10, 10, 5]);
}

#[test]
fn errors_carry_their_fields_and_blocks_fail() {
    repeat_with("extended_protocol::errors_carry_their_fields_and_blocks_fail");
    let (_scratch, node) = node();
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, n int4 NOT NULL)").unwrap();
    client.execute("INSERT INTO t VALUES (1, 1)", &[]).unwrap();
    let error = client.execute("INSERT INTO t VALUES (1, 2)", &[]).unwrap_err();
    let db = error.as_db_error().unwrap();
    assert_eq!((db.code().code(), db.constraint(), db.table()), ("23505", Some("t_pkey"), Some("t")));
    assert!(db.detail().unwrap().contains("(id)=(1)"), "{db:?}");
    let syntax = client.batch_execute("SELEC 1").unwrap_err();
    assert_eq!(state(&syntax), "42601");
    client.batch_execute("BEGIN").unwrap();
    assert_eq!(state(&client.batch_execute("SELECT * FROM nowhere").unwrap_err()), "42P01");
    assert_eq!(state(&client.batch_execute("SELECT 1").unwrap_err()), "25P02");
    client.batch_execute("ROLLBACK").unwrap();
    client.batch_execute("SELECT 1").unwrap();
}

/// A statement that waits for a lock ends with 57014 when its session's secret says so.
#[test]
fn cancellation() {
    repeat_with("extended_protocol::cancellation");
    let (_scratch, node) = node();
    let mut holder = node.connect();
    holder.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, n int4); INSERT INTO t VALUES (1, 0)").unwrap();
    holder.batch_execute("BEGIN; UPDATE t SET n = 1 WHERE id = 1").unwrap();
    let mut waiter = node.connect();
    let token = waiter.cancel_token();
    let waiting = std::thread::spawn(move || waiter.batch_execute("UPDATE t SET n = 2 WHERE id = 1"));
    // The request may come before the statement: asked again until it has ended.
    until("the statement ends", || {
        token.cancel_query(NoTls).unwrap();
        waiting.is_finished().then_some(())
    });
    assert_eq!(state(&waiting.join().unwrap().unwrap_err()), "57014");
    holder.batch_execute("COMMIT").unwrap();
}

#[test]
fn copy_in_and_out() {
    repeat_with("extended_protocol::copy_in_and_out");
    let (_scratch, node) = node();
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int4 PRIMARY KEY, s text)").unwrap();
    let mut writer = client.copy_in("COPY t FROM STDIN").unwrap();
    for id in 0..1000 {
        writeln!(writer, "{id}\tline {id}").unwrap();
    }
    writer.write_all(b"1000\t\\N\n").unwrap();
    assert_eq!(writer.finish().unwrap(), 1001);
    let mut text = String::new();
    client.copy_out("COPY t TO STDOUT (FORMAT csv)").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text.lines().count(), 1001);
    assert!(text.contains("7,line 7\n") && text.contains("1000,\n"));
    // A COPY that fails, and one that the client gives up, change nothing; the session goes on.
    let mut bad = client.copy_in("COPY t FROM STDIN").unwrap();
    bad.write_all(b"2000\tfine\nnot a number\tx\n").unwrap();
    assert_eq!(state(&bad.finish().unwrap_err()), "22P02");
    drop(client.copy_in("COPY t FROM STDIN").unwrap());
    let n: i64 = client.query_one("SELECT count(*) FROM t", &[]).unwrap().get(0);
    assert_eq!(n, 1001);
}
