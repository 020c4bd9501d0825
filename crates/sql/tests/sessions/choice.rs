//! Consistency is a choice of the transaction: the settings by which it begins, and where they may be said.

use super::{open, run, session, state_of};
use sql::transaction::memory::MemoryKv;

/// What the present transaction is, by EXPLAIN ANALYZE.
fn mode(session: &mut sql::Session) -> String {
    let lines = run(session, "EXPLAIN ANALYZE SELECT 1");
    let line = lines.iter().find_map(|line| line.trim().strip_prefix("Consistency: ").map(str::to_owned));
    line.unwrap_or_else(|| panic!("{lines:?}"))
}

/// Each way to say it, and what the next transaction is then.
#[test]
fn the_choice_holds_for_the_transaction_that_it_is_made_in() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    let shown = |a: &mut sql::Session| run(a, "SHOW timeball.consistency").remove(0);
    for name in ["strict", "hybrid", "token", "none", "stale"] {
        for begin in [
            format!("BEGIN CONSISTENCY {name}"),
            format!("START TRANSACTION ISOLATION LEVEL REPEATABLE READ, CONSISTENCY '{name}'"),
            format!("BEGIN; SET TRANSACTION CONSISTENCY {name}"),
            format!("BEGIN; SET LOCAL timeball.consistency = '{name}'"),
            format!("BEGIN CONSISTENCY hybrid; SET LOCAL timeball.consistency = {name}"),
            format!("BEGIN; SHOW timezone; SET LOCAL timeball.consistency = {name}"),
        ] {
            run(&mut a, &begin);
            assert_eq!((shown(&mut a), mode(&mut a)), (name.to_owned(), name.to_owned()), "{begin}");
            run(&mut a, "COMMIT");
            assert_eq!(shown(&mut a), "auto", "{begin}: it was said of that one");
        }
        run(&mut a, &format!("BEGIN; SET timeball.consistency = '{name}'"));
        assert_eq!(mode(&mut a), name);
        run(&mut a, "ROLLBACK");
        assert_eq!(shown(&mut a), "auto", "a rollback takes it back");
        run(&mut a, &format!("SET SESSION CHARACTERISTICS AS TRANSACTION CONSISTENCY {name}"));
        assert_eq!((shown(&mut a), mode(&mut a)), (name.to_owned(), name.to_owned()));
        run(&mut a, "RESET timeball.consistency");
    }
    for wrong in ["BEGIN CONSISTENCY eventual", "SET timeball.consistency = 'eventual'"] {
        assert!(matches!(state_of(&mut a, wrong).as_str(), "42601" | "22023"), "{wrong}");
    }
}

/// How a transaction begins cannot be said any more when it has.
#[test]
fn it_is_too_late_after_the_first_query() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    for late in [
        "SET TRANSACTION CONSISTENCY strict",
        "SET LOCAL timeball.consistency = 'strict'",
        "SET LOCAL timeball.commit_wait_budget = '1ms'",
        "SET LOCAL timeball.uncertainty = 'static'",
    ] {
        assert_eq!(state_of(&mut a, &format!("BEGIN; SELECT 1; {late}")), "25001", "{late}");
        run(&mut a, "ROLLBACK");
    }
    // Of the transactions to come it may be said at any time.
    run(&mut a, "BEGIN; SELECT 1; SET timeball.consistency = 'strict'; COMMIT");
    assert_eq!(mode(&mut a), "strict");
}

/// A block that leaves the past before its first query writes; one that a text's statements have begun goes on as it began.
#[test]
fn a_block_writes_by_what_it_is_when_it_writes() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (a int)");
    kv.advance_us(10_000_000);
    for set in
        ["SET LOCAL timeball.consistency = 'auto'", "SET timeball.consistency = 'auto'", "RESET timeball.consistency"]
    {
        run(&mut a, "SET timeball.consistency = 'stale'");
        assert_eq!(run(&mut a, &format!("BEGIN; {set}; SHOW transaction_read_only")), ["off"], "{set}");
        run(&mut a, "INSERT INTO t VALUES (1); COMMIT");
    }
    run(&mut a, "RESET timeball.consistency");
    run(&mut a, "SELECT 1; BEGIN; SET timeball.consistency = 'stale'; INSERT INTO t VALUES (1); COMMIT");
    run(&mut a, "RESET timeball.consistency");
    let shown = run(
        &mut a,
        "SELECT 1 AS x; BEGIN; SET default_transaction_isolation = 'read committed'; SHOW transaction_isolation; ROLLBACK",
    );
    assert_eq!(shown, ["1", "serializable"]);
    assert_eq!(run(&mut a, "SELECT count(*) FROM t"), ["4"]);
}

/// What SET says in a block is kept where its transaction begins again, and ends with it all the same.
#[test]
fn settings_outlive_a_transaction_that_begins_again() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    let begin = "BEGIN; SET LOCAL statement_timeout = '5s'; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    assert_eq!(run(&mut a, &format!("{begin}; SHOW statement_timeout; COMMIT")), ["5s"]);
    assert_eq!(run(&mut a, "SHOW statement_timeout"), ["0"], "it was LOCAL");
    let begin = "BEGIN; SET statement_timeout = '5s'; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    for (end, left) in
        [("ROLLBACK", "0"), ("SELECT 1 AS x; ROLLBACK", "0"), ("COMMIT", "5s"), ("SELECT 1 AS x; COMMIT", "5s")]
    {
        run(&mut a, &format!("{begin}; {end}"));
        assert_eq!(run(&mut a, "SHOW statement_timeout"), [left], "{end}");
        run(&mut a, "RESET statement_timeout");
    }
}

/// BEGIN behind a statement of its text comes too late for how the transaction begins, as SET TRANSACTION does.
#[test]
fn begin_within_a_text_says_nothing_that_does_not_hold() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (a int)");
    for late in ["AS OF SYSTEM TIME '-1us'", "CONSISTENCY strict", "ISOLATION LEVEL READ COMMITTED"] {
        assert_eq!(state_of(&mut a, &format!("SELECT 1; BEGIN {late}; SELECT * FROM t")), "25001", "{late}");
        assert_eq!(run(&mut a, "BEGIN; COMMIT; SELECT 1"), ["1"], "no block is left: {late}");
    }
    run(&mut a, "SELECT 1; BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO t VALUES (1); COMMIT");
    assert_eq!(state_of(&mut a, "SELECT 1; BEGIN READ ONLY; INSERT INTO t VALUES (1)"), "25006");
    run(&mut a, "ROLLBACK");
    for write in
        ["COPY (INSERT INTO t VALUES (1) RETURNING a) TO STDOUT", "COPY (SELECT * FROM t FOR UPDATE) TO STDOUT"]
    {
        assert_eq!(
            state_of(&mut a, &format!("BEGIN; SELECT 1; SET TRANSACTION READ ONLY; {write}")),
            "25006",
            "{write}"
        );
        run(&mut a, "ROLLBACK");
    }
    for on in ["'ON'", "'yes'", "'t'", "true", "1"] {
        assert_eq!(
            state_of(&mut a, &format!("BEGIN; SET transaction_read_only = {on}; INSERT INTO t VALUES (1)")),
            "25006",
            "{on}"
        );
        run(&mut a, "ROLLBACK");
    }
    assert_eq!(run(&mut a, "SELECT count(*) FROM t"), ["1"]);
}

#[test]
fn stale_transactions_read_the_past_and_write_nothing() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)");
    kv.advance_us(10_000_000);
    run(&mut a, "UPDATE t SET v = 2");
    kv.advance_us(4_500_000);
    kv.lags_by_us(5_000_000);
    let seen = |bound: &str| {
        let mut b = session(&db);
        run(&mut b, &format!("SET timeball.consistency = 'stale'; SET timeball.max_staleness = '{bound}'"));
        [run(&mut b, "SELECT v FROM t"), run(&mut b, "BEGIN; SELECT v FROM t; SELECT v FROM t; COMMIT")].concat()
    };
    assert_eq!(seen("0"), ["1", "1", "1"], "without a bound what is here, however old");
    assert_eq!(seen("2s"), ["2", "2", "2"]);
    assert_eq!(seen("30s"), ["1", "1", "1"], "what is here will do");
    let mut b = session(&db);
    run(&mut b, "SET timeball.consistency = 'stale'; SET timeball.max_staleness = '1s'; SELECT v FROM t");
    assert_eq!(run(&mut b, "SET timeball.max_staleness = 0; SELECT v FROM t"), ["2"], "snapshots never go back");
    let mut b = session(&db);
    run(&mut b, "SET timeball.consistency = 'stale'");
    for write in ["UPDATE t SET v = 3", "INSERT INTO t VALUES (2, 2)", "SELECT * FROM t FOR UPDATE", "DROP TABLE t"] {
        assert_eq!(state_of(&mut b, write), "25006", "{write}");
    }
    assert_eq!(
        run(&mut b, "SHOW transaction_read_only"),
        ["on"],
        "a transaction would be, as with default_transaction_read_only"
    );
    run(&mut b, "BEGIN CONSISTENCY auto; UPDATE t SET v = 3; COMMIT");
    assert_eq!(run(&mut b, "SELECT v FROM t"), ["3"], "a session sees what it wrote");
}

#[test]
fn budget_and_offset_are_as_precise_as_clocks() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    let mut set = |name: &str, value: &str| run(&mut a, &format!("SET {name} = '{value}'; SHOW {name}")).remove(0);
    assert_eq!(set("timeball.commit_wait_budget", "150us"), "150us");
    assert_eq!(set("timeball.commit_wait_budget", "0.5ms"), "500us");
    assert_eq!(set("timeball.commit_wait_budget", "2000us"), "2ms");
    assert_eq!(set("timeball.max_offset", "250ms"), "250ms");
    for wrong in ["0", "1001ms", "-1", "soon"] {
        assert_eq!(state_of(&mut a, &format!("SET timeball.max_offset = '{wrong}'")), "22023", "{wrong}");
    }
}

/// How old snapshots are is a setting like the others: by hand, or by what commits take.
#[test]
fn the_age_of_snapshots_is_set() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    for (value, shown) in [("auto", "auto"), ("14ms", "14ms"), ("250us", "250us"), ("0", "0"), ("1s", "1s")] {
        run(&mut a, &format!("SET timeball.snapshot_age = '{value}'"));
        assert_eq!(run(&mut a, "SHOW timeball.snapshot_age"), [shown]);
    }
    for wrong in ["2s", "old", "-1ms"] {
        assert_eq!(state_of(&mut a, &format!("SET timeball.snapshot_age = '{wrong}'")), "22023", "{wrong}");
    }
    assert_eq!(state_of(&mut a, "BEGIN; SELECT 1; SET LOCAL timeball.snapshot_age = '1ms'"), "25001");
}
