//! Reads of the past that drivers prepare: their bounds and times come over the wire, when they run.

use crate::bad_protocol::{message, read_ready, says, startup};
use crate::cluster::nodes::Nodes;
use crate::node::{Node, Scratch, repeat_with, state, until};
use postgres::Client;
use postgres::types::Type;
use std::io::Write;
use std::net::TcpStream;

fn token(client: &mut Client) -> String {
    client.query_one("SHOW timeball.token", &[]).unwrap().get(0)
}

/// A time in a parameter is read by the catalog of that time; a driver that has been told a result's columns is never given others.
#[test]
fn a_bound_time_is_read_by_the_catalog_of_then() {
    repeat_with("prepared_bounds::a_bound_time_is_read_by_the_catalog_of_then");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10)").unwrap();
    let first = token(&mut client);
    client.batch_execute("ALTER TABLE t ADD COLUMN w text DEFAULT 'x'; UPDATE t SET v = 20").unwrap();
    let second = token(&mut client);
    let named = client.prepare("SELECT v FROM t WHERE id = $2 AS OF SYSTEM TIME $1").unwrap();
    let all = client.prepare("SELECT * FROM t AS OF SYSTEM TIME $1").unwrap();
    assert_eq!((named.params(), all.columns().len()), (&[Type::TEXT, Type::INT4][..], 3));
    for gone in [false, true] {
        for (time, v) in [(&first, 10), (&second, 20), (&first, 10)] {
            let row = client.query_one(&named, &[time, &1]).unwrap();
            assert_eq!(row.get::<_, i32>(0), v);
        }
        assert_eq!(client.query_one(&all, &[&second]).unwrap().get::<_, String>(2), "x");
        let refused = client.query(&all, &[&first]).unwrap_err();
        assert_eq!(state(&refused), "0A000", "{refused:?}");
        if !gone {
            client.batch_execute("DROP TABLE t").unwrap();
        }
    }
    // Prepared now, there is nothing to tell; bound first, there is.
    let refused = client.prepare("SELECT * FROM t AS OF SYSTEM TIME $1").unwrap_err();
    assert_eq!(state(&refused), "42P01");
    assert!(refused.as_db_error().unwrap().hint().unwrap().contains("literal"), "{refused:?}");
    for (time, columns) in [(&first, 2), (&second, 3)] {
        let rows = client.query_typed("SELECT * FROM t AS OF SYSTEM TIME $1", &[(time, Type::TEXT)]).unwrap();
        assert_eq!((rows.len(), rows[0].columns().len()), (1, columns));
    }
}

/// Parse, Bind and Execute of a statement without parameters, by the unnamed names.
fn executed(text: &str) -> Vec<u8> {
    let parse = message(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat());
    [parse, message(b'B', b"\0\0\0\0\0\0\0\0"), message(b'E', b"\0\0\0\0\0")].concat()
}

/// What is executed before one Sync is one transaction, and may write, whatever bound the session has; one that asks for the past is told why it may not.
#[test]
fn a_pipeline_writes_under_a_bound() {
    repeat_with("prepared_bounds::a_pipeline_writes_under_a_bound");
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut client = node.connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10)").unwrap();
    let mut socket = TcpStream::connect(&node.sql).unwrap();
    socket.write_all(&startup()).unwrap();
    read_ready(&mut socket);
    socket.write_all(&message(b'Q', b"SET timeball.max_staleness = '30s'\0")).unwrap();
    read_ready(&mut socket);
    let mut pipeline = |parts: &[&str]| {
        let sync = message(b'S', b"");
        socket.write_all(&[parts.iter().flat_map(|part| executed(part)).collect(), sync].concat()).unwrap();
        read_ready(&mut socket)
    };
    let answer = pipeline(&["SELECT v FROM t", "UPDATE t SET v = v + 1", "SELECT v FROM t"]);
    assert!(says(&answer, "UPDATE 1") && says(&answer, "11"), "{}", String::from_utf8_lossy(&answer));
    let answer = pipeline(&["SELECT v FROM t AS OF SYSTEM TIME '-1us'", "UPDATE t SET v = 0"]);
    assert!(says(&answer, "25006") && says(&answer, "before one Sync"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(client.query_one("SELECT v FROM t", &[]).unwrap().get::<_, i32>(0), 11);
}

/// A driver that describes what it has bound, as libpq does, reads the rows that it was told of: in a pipeline the present's, alone those of the past.
#[test]
fn a_pipeline_is_told_what_it_reads() {
    repeat_with("prepared_bounds::a_pipeline_is_told_what_it_reads");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let mut client = nodes.at(0).connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10)").unwrap();
    let mut socket = TcpStream::connect(&nodes.at(1).sql).unwrap();
    socket.write_all(&startup()).unwrap();
    read_ready(&mut socket);
    let mut send = |parts: &[Vec<u8>]| {
        socket.write_all(&parts.concat()).unwrap();
        read_ready(&mut socket)
    };
    let query = |text: &str| message(b'Q', &[text.as_bytes(), b"\0"].concat());
    until("the past has the table", || {
        says(&send(&[query("SELECT * FROM t AS OF SYSTEM TIME '-4200ms'")]), "10").then_some(())
    });
    client.batch_execute("ALTER TABLE t ADD COLUMN added int DEFAULT 77").unwrap();
    let answer = send(&[query("SET timeball.max_staleness = '1h'")]);
    assert!(says(&answer, "SET"));
    let part = |text: &str| {
        let parse = message(b'P', &[b"\0", text.as_bytes(), b"\0\0\0"].concat());
        let bind = message(b'B', b"\0\0\0\0\0\0\0\0");
        [parse, bind, message(b'D', b"P\0"), message(b'E', b"\0\0\0\0\0")].concat()
    };
    let sync = || message(b'S', b"");
    let answer = send(&[part("SELECT * FROM t"), part("UPDATE t SET v = v + 1"), part("SELECT * FROM t"), sync()]);
    let shown = String::from_utf8_lossy(&answer).into_owned();
    assert!(shown.matches("added").count() == 2 && shown.matches("77").count() == 2, "{shown}");
    assert!(says(&answer, "UPDATE 1") && says(&answer, "11"), "{shown}");
}

/// Bounds in prepared statements are served by the replica that is here, while all others sleep; a bound that it does not keep to asks for more.
#[test]
fn prepared_bounds_are_served_here() {
    repeat_with("prepared_bounds::prepared_bounds_are_served_here");
    let scratch = Scratch::new();
    let nodes = Nodes::found(scratch.path(), 3);
    let mut writer = nodes.at(0).connect();
    writer.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 7)").unwrap();
    let least = token(&mut writer);
    let leader = nodes.leader();
    let follower = (leader + 1) % 3;
    let mut bounded = nodes.at(follower).connect();
    bounded.batch_execute("SET timeball.max_staleness = '1h'").unwrap();
    let mut client = nodes.at(follower).connect();
    until("the follower has resolved the row", || {
        let read = |client: &mut Client, text: &str| client.query(text, &[]).is_ok_and(|rows| rows.len() == 1);
        let here = read(&mut bounded, "SELECT v FROM t");
        (here && read(&mut client, "SELECT v FROM t AS OF SYSTEM TIME with_max_staleness('1h')")).then_some(())
    });
    let by_session = bounded.prepare("SELECT v FROM t WHERE id = $1").unwrap();
    let text = |form: &str| format!("SELECT v FROM t WHERE id = $2 AS OF SYSTEM TIME {form}");
    let forms = [("with_max_staleness($1)", "1h"), ("with_min_timestamp($1)", &least), ("$1", &least)];
    let others = [leader, (leader + 2) % 3];
    let prepared: Vec<_> = forms.iter().map(|(form, value)| (client.prepare(&text(form)).unwrap(), *value)).collect();
    others.iter().for_each(|at| nodes.sleep(*at));
    for _ in 0..5 {
        assert_eq!(bounded.query_one(&by_session, &[&1]).unwrap().get::<_, i32>(0), 7);
        for (statement, value) in &prepared {
            assert_eq!(client.query_one(statement, &[value, &1]).unwrap().get::<_, i32>(0), 7, "{value}");
        }
    }
    others.iter().for_each(|at| nodes.wake(*at));
    let least: String = until("a write goes through", || {
        writer.execute("UPDATE t SET v = 8", &[]).ok()?;
        Some(token(&mut writer))
    });
    let newer = until("what was asked for is there", || client.query_one(&prepared[1].0, &[&least, &1]).ok());
    assert_eq!(newer.get::<_, i32>(0), 8, "not before the least that was asked for");
}
