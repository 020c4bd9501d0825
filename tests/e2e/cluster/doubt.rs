//! A node whose clock is in doubt (decision 203): sessions open there, what needs no bound is served by the time of the others, and what needs it is refused, whatever came before.

use super::clock::{environment, library};
use super::nodes::Nodes;
use crate::node::{Scratch, repeat_with, skip, state, until};
use postgres::Client;
use std::io::Write;

/// Rows of a COPY: more than goes into one entry of a log.
const COPIED: i32 = 20_000;

/// The one value of the first row.
fn one(client: &mut Client, query: &str) -> i64 {
    client.query_one(query, &[]).unwrap_or_else(|e| panic!("{query}: {e}: {:?}", e.as_db_error())).get(0)
}

/// What a client finds at a node whose clock is in doubt, and what of it another node sees.
fn works_without_a_clock(nodes: &Nodes, at: usize, other: usize, name: &str) {
    let mut client = nodes.at(at).connect();
    let run = |client: &mut Client, text: &str| {
        client.batch_execute(text).unwrap_or_else(|e| panic!("{name}: {text}: {e}: {:?}", e.as_db_error()));
    };
    // What reads nothing asks nothing of a clock; what reads is refused after it as before it.
    for mode in ["auto", "strict", "hybrid"] {
        run(&mut client, &format!("SET timeball.consistency = '{mode}'"));
        run(&mut client, "SELECT 1");
        let refused = client.query("SELECT v FROM kept", &[]).unwrap_err();
        assert_eq!(state(&refused), "57P03", "{name}: {mode}: {refused:?}");
        assert!(refused.as_db_error().unwrap().message().contains("'token'"), "{name}: {refused:?}");
        run(&mut client, "BEGIN");
        run(&mut client, "SELECT 1");
        let refused = client.query("SELECT v FROM kept", &[]).unwrap_err();
        assert_eq!(state(&refused), "57P03", "{name}: {mode}, in a block: {refused:?}");
        run(&mut client, "ROLLBACK");
        let refused = client.execute("INSERT INTO kept VALUES (9, 9)", &[]).unwrap_err();
        assert_eq!(state(&refused), "57P03", "{name}: {mode}: {refused:?}");
    }
    for mode in ["token", "none"] {
        let table = format!("{name}_{mode}");
        run(&mut client, &format!("SET timeball.consistency = '{mode}'"));
        run(&mut client, "SELECT 1");
        // DDL, with a sequence and an index.
        run(&mut client, &format!("CREATE TABLE {table} (id serial PRIMARY KEY, v int8)"));
        run(&mut client, &format!("INSERT INTO {table} (v) SELECT n FROM generate_series(1, 100) n"));
        run(&mut client, &format!("CREATE INDEX {table}_v ON {table} (v)"));
        run(&mut client, &format!("CREATE SEQUENCE {table}_s"));
        assert_eq!(one(&mut client, &format!("SELECT nextval('{table}_s')")), 1);
        assert_eq!(one(&mut client, &format!("SELECT setval('{table}_s', 500)")), 500);
        assert_eq!(one(&mut client, &format!("SELECT nextval('{table}_s')")), 501);
        // Two ranges, both led elsewhere: one transaction over them.
        run(&mut client, &format!("ALTER TABLE {table} SPLIT AT VALUES (50)"));
        run(&mut client, &format!("BEGIN; UPDATE {table} SET v = v + 1000 WHERE id IN (1, 99); COMMIT"));
        assert_eq!(one(&mut client, &format!("SELECT count(*) FROM {table} WHERE v > 1000")), 2, "{name}: {mode}");
        // READ COMMITTED takes a snapshot for each statement.
        run(
            &mut client,
            &format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT * FROM {table} WHERE id = 2 FOR UPDATE; UPDATE {table} SET v = 7 WHERE id = 2; COMMIT"
            ),
        );
        let mut copy = client.copy_in(&format!("COPY {table} (v) FROM STDIN")).unwrap();
        for n in 0..COPIED {
            writeln!(copy, "{}", 5_000 + n).unwrap();
        }
        assert_eq!(copy.finish().unwrap(), COPIED as u64);
        assert_eq!(
            one(&mut client, &format!("SELECT count(*) FROM {table}")),
            i64::from(COPIED) + 100,
            "{name}: {mode}"
        );
        run(&mut client, &format!("ALTER TABLE {table} ADD COLUMN more text DEFAULT 'x'"));
        // Whoever asks elsewhere afterwards sees all of it, though he carries no token.
        let mut there = nodes.at(other).connect();
        assert_eq!(one(&mut there, &format!("SELECT count(*) FROM {table} WHERE more = 'x'")), i64::from(COPIED) + 100);
        assert_eq!(one(&mut there, &format!("SELECT sum(v)::int8 FROM {table} WHERE id = 2")), 7);
        // What is written there is seen here along a token.
        run(&mut there, &format!("UPDATE {table} SET v = 8 WHERE id = 2"));
        let token: String = there.query_one("SHOW timeball.token", &[]).unwrap().get(0);
        run(&mut client, &format!("SET timeball.token = '{token}'"));
        if mode == "token" {
            assert_eq!(one(&mut client, &format!("SELECT v FROM {table} WHERE id = 2")), 8);
        }
        run(&mut client, &format!("DROP TABLE {table}"));
    }
    // The past, as it was a moment ago and as the replica here has it.
    run(&mut client, "SET timeball.consistency = 'token'");
    run(&mut client, "INSERT INTO kept VALUES (2, 20) ON CONFLICT (id) DO UPDATE SET v = kept.v + 1");
    until("the past has it", || {
        // At first the table is younger than that: 42P01.
        let then = client.query_one("SELECT count(*) FROM kept AS OF SYSTEM TIME '-5s'", &[]).ok()?;
        (then.get::<_, i64>(0) == 2).then_some(())
    });
    assert_eq!(one(&mut client, "SELECT count(*) FROM kept AS OF SYSTEM TIME with_max_staleness('30s')"), 2);
    run(&mut client, "SET timeball.consistency = 'stale'");
    assert_eq!(one(&mut client, "SELECT count(*) FROM kept"), 2);
    let future = client.query("SELECT v FROM kept AS OF SYSTEM TIME '2100-01-01'", &[]).unwrap_err();
    assert!(
        future.to_string().contains("future") || future.as_db_error().unwrap().message().contains("future"),
        "{future:?}"
    );
}

#[test]
fn a_clock_that_is_an_hour_off_stops_nothing_that_needs_no_bound() {
    repeat_with("cluster::doubt::a_clock_that_is_an_hour_off_stops_nothing_that_needs_no_bound");
    let Some(library) = library() else { return skip("no libfaketime (Debian: faketime)") };
    let scratch = Scratch::new();
    let shift = scratch.path().join("shift");
    let set = |by: &str| {
        let new = scratch.path().join("shift.new");
        std::fs::write(&new, format!("{by}\n")).unwrap();
        std::fs::rename(&new, &shift).unwrap();
    };
    set("+0");
    let nodes = Nodes::found_apart(scratch.path(), 3, &["--clock", "static:5ms"], &environment(library, &shift));
    let mut other = nodes.at(0).connect();
    other.batch_execute("CREATE TABLE kept (id int PRIMARY KEY, v int8); INSERT INTO kept VALUES (1, 10)").unwrap();
    let mut client = nodes.at(2).connect();
    for (by, name) in [("+3600", "ahead"), ("-3600", "behind")] {
        set(by);
        until("the others prove its clock wrong", || client.query("SELECT v FROM kept", &[]).err());
        // Proofs last a minute, so it stays so; and what it led it hands over.
        until("others lead", || (nodes.leader() != 2).then_some(()));
        works_without_a_clock(&nodes, 2, 0, name);
    }
}

#[test]
fn a_clock_that_says_nothing_stops_nothing_that_needs_no_bound() {
    repeat_with("cluster::doubt::a_clock_that_says_nothing_stops_nothing_that_needs_no_bound");
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut other = nodes.at(0).connect();
    other.batch_execute("CREATE TABLE kept (id int PRIMARY KEY, v int8); INSERT INTO kept VALUES (1, 10)").unwrap();
    nodes.stop(2);
    let nobody = format!("chrony:{}", scratch.path().join("nobody.sock").display());
    nodes.restart_with(2, &["--clock", &nobody]);
    works_without_a_clock(&nodes, 2, 0, "silent");
}
