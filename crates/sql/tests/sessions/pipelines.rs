//! Several statements before one Sync: one transaction, whose reads are bounded by nobody but themselves, and whose portals stay bound.

use super::{Arc, Conflicting, Conflicts, Ordering, Rows, open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::{Session, SqlError};

/// Parse and Bind, as one statement of a pipeline.
fn bind(session: &mut Session, portal: &str, text: &str, values: &[&str]) -> Result<(), SqlError> {
    session.parse(portal, text, &[])?;
    let values: Vec<Option<&[u8]>> = values.iter().map(|value| Some(value.as_bytes())).collect();
    session.bind(portal, portal, &values, &[], &[])
}

/// Execute behind which more is executed.
fn execute(session: &mut Session, portal: &str) -> Result<Vec<String>, SqlError> {
    let mut out = Rows::default();
    session.execute(portal, 0, false, &mut out)?;
    Ok(out.rows)
}

/// A row was 1 a while ago, and is 2 now; replicas lag.
fn changed(kv: &MemoryKv) -> Session {
    let mut a = session(&open(kv.clone()));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)");
    kv.advance_us(10_000_000);
    run(&mut a, "UPDATE t SET v = 2");
    kv.lags_by_us(5_000_000);
    a
}

/// The session's bound is for a query that is alone: a write behind another one, before the same Sync, writes at the present, and knows what that read.
#[test]
fn a_pipeline_under_a_bound_reads_and_writes_the_present() {
    let kv = MemoryKv::new();
    changed(&kv);
    let mut b = session(&open(kv.clone()));
    run(&mut b, "SET timeball.max_staleness = '30s'");
    assert_eq!(run(&mut b, "SELECT v FROM t"), ["1"], "alone it is bounded");
    bind(&mut b, "read", "SELECT v FROM t", &[]).unwrap();
    assert_eq!(execute(&mut b, "read").unwrap(), ["2"]);
    bind(&mut b, "write", "UPDATE t SET v = v + 10", &[]).unwrap();
    execute(&mut b, "write").unwrap();
    b.sync().unwrap();
    assert_eq!(run(&mut b, "SELECT v FROM t"), ["12"]);
    // A text of several statements is one transaction, too.
    let mut c = session(&open(kv.clone()));
    run(&mut c, "SET timeball.max_staleness = '30s'");
    assert_eq!(run(&mut c, "SELECT v FROM t; UPDATE t SET v = 3; SELECT v FROM t"), ["12", "3"]);
    // Whoever asks for the past of such a transaction says so, and is told.
    for (first, state) in [("SELECT v FROM t", "25001"), ("SELECT v FROM t AS OF SYSTEM TIME '-1s'", "25006")] {
        bind(&mut c, "first", first, &[]).unwrap();
        execute(&mut c, "first").unwrap();
        let second = match state {
            "25006" => "UPDATE t SET v = 4",
            _ => "SELECT v FROM t AS OF SYSTEM TIME '-1s'",
        };
        bind(&mut c, "second", second, &[]).unwrap();
        let error = execute(&mut c, "second").unwrap_err();
        assert_eq!(error.state.as_str(), state, "{error}");
        assert!(error.detail.as_deref().unwrap_or_default().contains("before one Sync"), "{error:?}");
        assert!(error.hint.is_some(), "{error:?}");
        c.sync().unwrap();
        for name in ["first", "second"] {
            c.close_statement(name);
        }
    }
    run(&mut c, "SET timeball.consistency = 'stale'");
    bind(&mut c, "first", "SELECT v FROM t", &[]).unwrap();
    execute(&mut c, "first").unwrap();
    bind(&mut c, "second", "SELECT v + 1 FROM t", &[]).unwrap();
    execute(&mut c, "second").unwrap();
    assert_eq!(state_of(&mut c, "UPDATE t SET v = 5"), "25006", "a mode that reads the past does so in pipelines, too");
}

/// EXECUTE is bounded as what it executes: alone, and nowhere else.
#[test]
fn an_execute_among_others_reads_and_writes_the_present() {
    let kv = MemoryKv::new();
    let mut a = changed(&kv);
    let mut b = session(&open(kv.clone()));
    run(&mut b, "SET timeball.max_staleness = '30s'");
    run(&mut b, "PREPARE sel AS SELECT v FROM t");
    assert_eq!(run(&mut b, "EXECUTE sel"), ["1"], "alone it is bounded");
    assert_eq!(run(&mut b, "EXECUTE sel; UPDATE t SET v = v + 10; EXECUTE sel"), ["2", "12"]);
    let mut c = session(&open(kv.clone()));
    run(&mut c, "SET timeball.max_staleness = '30s'");
    run(&mut c, "PREPARE sel AS SELECT v FROM t");
    run(&mut c, "EXPLAIN ANALYZE EXECUTE sel; UPDATE t SET v = v + 1");
    run(&mut a, "UPDATE t SET v = v + 1");
    bind(&mut c, "read", "EXECUTE sel", &[]).unwrap();
    assert_eq!(execute(&mut c, "read").unwrap(), ["14"]);
    bind(&mut c, "write", "UPDATE t SET v = 3", &[]).unwrap();
    execute(&mut c, "write").unwrap();
    c.sync().unwrap();
    // What is too young to be read alone is bound, and read.
    run(&mut a, "CREATE TABLE young (id int); INSERT INTO young VALUES (7)");
    bind(&mut c, "prepare", "PREPARE young AS SELECT id FROM young", &[]).unwrap();
    execute(&mut c, "prepare").unwrap();
    c.sync().unwrap();
    bind(&mut c, "run young", "EXECUTE young", &[]).unwrap();
    assert_eq!(execute(&mut c, "run young").unwrap(), ["7"]);
    c.sync().unwrap();
}

/// What says the time of the transaction says it after others have, too.
#[test]
fn the_same_words_say_the_same_time_after_others() {
    let kv = MemoryKv::new();
    changed(&kv);
    let mut b = session(&open(kv.clone()));
    let bounded = "SELECT v FROM t AS OF SYSTEM TIME with_max_staleness('9500ms')";
    for (name, text, values) in [
        ("first", "SELECT v FROM t AS OF SYSTEM TIME '-8s'", None),
        ("bounded", bounded, None),
        ("again", "SELECT v FROM t AS OF SYSTEM TIME $1", Some("-8s")),
        ("bounded again", bounded, None),
    ] {
        let values: Vec<&str> = values.into_iter().collect();
        bind(&mut b, name, text, &values).unwrap();
        assert_eq!(execute(&mut b, name).unwrap(), ["1"], "{name}");
        kv.advance_us(1_000_000);
    }
    // Another time that is bound is refused when it runs, and not before.
    bind(&mut b, "other", "SELECT v FROM t AS OF SYSTEM TIME $1", &["-1s"]).unwrap();
    bind(&mut b, "last", "SELECT v FROM t AS OF SYSTEM TIME '-8s'", &[]).unwrap();
    assert_eq!(execute(&mut b, "last").unwrap(), ["1"]);
    assert_eq!(execute(&mut b, "other").unwrap_err().state.as_str(), "25001");
    b.sync().unwrap();
}

/// What was planned by the past that the session lets a query read, and runs among others, has the shape of the present where nobody was told of another.
#[test]
fn a_pipeline_has_the_shape_of_the_present() {
    let kv = MemoryKv::new();
    let mut a = changed(&kv);
    run(&mut a, "ALTER TABLE t ADD COLUMN w int DEFAULT 7");
    for (told_of, rows) in [("nothing", Ok("1|2|7")), ("statement", Err("0A000")), ("portal", Ok("1|2|7"))] {
        let mut b = session(&open(kv.clone()));
        run(&mut b, "SET timeball.max_staleness = '30s'");
        b.parse("", "SELECT * FROM t", &[]).unwrap();
        if told_of == "statement" {
            assert_eq!(b.describe_statement("").unwrap().1.unwrap().len(), 2, "alone it is bounded");
        }
        b.bind("", "", &[], &[], &[]).unwrap();
        if told_of == "portal" {
            assert_eq!(b.describe_portal("", false).unwrap().0.unwrap().len(), 3, "it is told what it will read");
        }
        let seen = execute(&mut b, "").map_err(|error| error.state.as_str().to_owned());
        assert_eq!(seen, rows.map(|row| vec![row.to_owned()]).map_err(str::to_owned), "{told_of}");
        b.sync().unwrap();
    }
    // Bound before another run of the statement gave it the present's shape: it is told of by that, and has it.
    let mut b = session(&open(kv.clone()));
    run(&mut b, "SET timeball.max_staleness = '30s'");
    b.parse("all", "SELECT * FROM t", &[]).unwrap();
    for portal in ["one", "two"] {
        b.bind(portal, "all", &[], &[], &[]).unwrap();
    }
    assert_eq!(execute(&mut b, "one").unwrap(), ["1|2|7"]);
    assert_eq!(b.describe_portal("two", false).unwrap().0.unwrap().len(), 3);
    assert_eq!(execute(&mut b, "two").unwrap(), ["1|2|7"]);
    b.sync().unwrap();
}

/// How many columns a portal is told to have.
fn columns(session: &mut Session, portal: &str, alone: bool) -> usize {
    session.describe_portal(portal, alone).unwrap().0.unwrap().len()
}

/// What is described is what is read, whether it turns out to be alone or not; so is what an EXECUTE executes.
#[test]
fn a_portal_is_told_of_what_it_will_read() {
    let kv = MemoryKv::new();
    let mut a = changed(&kv);
    run(&mut a, "ALTER TABLE t ADD COLUMN w int DEFAULT 7");
    let bounded = || {
        let mut b = session(&open(kv.clone()));
        run(&mut b, "SET timeball.max_staleness = '30s'; PREPARE sel AS SELECT * FROM t");
        b
    };
    for text in ["SELECT * FROM t", "EXECUTE sel"] {
        for (alone, shape, row) in [(true, 2, "1|1"), (false, 3, "1|2|7")] {
            // Sync may be there when it is executed, though it was not when it was described.
            for commit in [alone, true] {
                let mut b = bounded();
                bind(&mut b, "p", text, &[]).unwrap();
                assert_eq!(columns(&mut b, "p", alone), shape, "{text}, alone: {alone}");
                let mut out = Rows::default();
                b.execute("p", 0, commit, &mut out).unwrap();
                assert_eq!(out.rows, [row], "{text}, alone: {alone}, committed: {commit}");
                b.sync().unwrap();
            }
        }
        // Described again when its Execute and Sync have come: it is told the same, and reads that.
        for (first, shape, row) in [(false, 3, "1|2|7"), (true, 2, "1|1")] {
            let mut b = bounded();
            bind(&mut b, "p", text, &[]).unwrap();
            for alone in [first, true, false, true] {
                assert_eq!(columns(&mut b, "p", alone), shape, "{text}, alone at first: {first}");
            }
            let mut out = Rows::default();
            b.execute("p", 0, true, &mut out).unwrap();
            assert_eq!(out.rows, [row], "{text}, alone at first: {first}");
            b.sync().unwrap();
        }
        // Bound before the transaction has read.
        let mut b = bounded();
        bind(&mut b, "p", text, &[]).unwrap();
        bind(&mut b, "first", "SELECT v FROM t", &[]).unwrap();
        assert_eq!(execute(&mut b, "first").unwrap(), ["2"]);
        assert_eq!(columns(&mut b, "p", false), 3, "{text}");
        assert_eq!(execute(&mut b, "p").unwrap(), ["1|2|7"], "{text}");
        b.sync().unwrap();
    }
}

/// The column comes to be seen between the moments at which a statement is described and executed: it is read at the one.
#[test]
fn what_is_alone_is_read_when_it_was_described() {
    let kv = MemoryKv::new();
    let mut a = changed(&kv);
    run(&mut a, "ALTER TABLE t ADD COLUMN w int DEFAULT 7");
    for text in ["SELECT * FROM t", "EXECUTE sel"] {
        let mut b = session(&open(kv.clone()));
        kv.lags_by_us(5_000_000);
        run(&mut b, "SET timeball.max_staleness = '30s'; PREPARE sel AS SELECT * FROM t");
        bind(&mut b, "p", text, &[]).unwrap();
        assert_eq!(columns(&mut b, "p", true), 2, "{text}");
        kv.lags_by_us(0);
        let mut out = Rows::default();
        b.execute("p", 0, true, &mut out).unwrap();
        assert_eq!(out.rows, ["1|1"], "{text}");
        b.sync().unwrap();
    }
}

/// DECLARE and EXPLAIN are run with values of the types that they were bound as, or not at all.
#[test]
fn values_of_another_catalog_are_bound_again() {
    let kv = MemoryKv::new();
    let mut a = changed(&kv);
    run(&mut a, "DROP TABLE t; CREATE TABLE t (id text PRIMARY KEY, v int); INSERT INTO t VALUES ('1', 7)");
    for text in [
        "DECLARE c CURSOR FOR SELECT v FROM t WHERE id = $1",
        "EXPLAIN SELECT v FROM t WHERE id = $1",
        "EXPLAIN ANALYZE SELECT v FROM t WHERE id = $1",
    ] {
        let mut b = session(&open(kv.clone()));
        run(&mut b, "SET timeball.max_staleness = '30s'");
        bind(&mut b, "s", text, &["1"]).unwrap();
        let error = execute(&mut b, "s").unwrap_err();
        assert_eq!(error.state.as_str(), "0A000", "{text}: {error}");
        assert!(error.hint.as_deref().unwrap_or_default().contains("Bind"), "{error:?}");
        b.sync().unwrap();
    }
}

/// What is of the present is prepared by it, though it would not be there if it were run alone.
#[test]
fn a_young_table_is_read_in_a_pipeline() {
    let kv = MemoryKv::new();
    let mut a = changed(&kv);
    let mut b = session(&open(kv.clone()));
    run(&mut b, "SET timeball.max_staleness = '30s'");
    run(&mut a, "CREATE TABLE young (id int); INSERT INTO young VALUES (7)");
    bind(&mut b, "young", "SELECT id FROM young", &[]).unwrap();
    assert_eq!(execute(&mut b, "young").unwrap(), ["7"]);
    b.sync().unwrap();
    let mut c = session(&open(kv.clone()));
    run(&mut c, "SET timeball.max_staleness = '30s'");
    assert_eq!(state_of(&mut c, "SELECT id FROM young"), "42P01", "five seconds ago it was not there");
}

/// A transaction that begins again, for its time or for a conflict, keeps what is bound in it.
#[test]
fn portals_stay_bound_where_the_transaction_begins_again() {
    let kv = MemoryKv::new();
    changed(&kv);
    let left = Arc::new(Conflicts::default());
    let mut b = session(&open(Conflicting { kv: kv.clone(), left: left.clone() }));
    // One that reads the past, bound behind others.
    bind(&mut b, "now", "SELECT v FROM t WHERE id = $1", &["1"]).unwrap();
    bind(&mut b, "then", "SELECT v FROM t AS OF SYSTEM TIME $1", &["-8s"]).unwrap();
    bind(&mut b, "again", "SELECT v FROM t AS OF SYSTEM TIME '-8s'", &[]).unwrap();
    assert_eq!(execute(&mut b, "then").unwrap(), ["1"]);
    assert_eq!(execute(&mut b, "again").unwrap(), ["1"], "the same time, as now() is one");
    assert_eq!(execute(&mut b, "now").unwrap(), ["1"], "it is of the same transaction");
    b.sync().unwrap();
    // A write that meets a conflict.
    bind(&mut b, "write", "UPDATE t SET v = v + 1 RETURNING v", &[]).unwrap();
    bind(&mut b, "", "SELECT v FROM t", &[]).unwrap();
    b.close_statement("now");
    bind(&mut b, "now", "SELECT v FROM t WHERE id = $1", &["1"]).unwrap();
    left.locks.store(1, Ordering::Relaxed);
    assert_eq!(execute(&mut b, "write").unwrap(), ["3"]);
    assert_eq!(left.locks.load(Ordering::Relaxed), 0, "it met one");
    assert_eq!(execute(&mut b, "").unwrap(), ["3"]);
    assert_eq!(execute(&mut b, "now").unwrap(), ["3"]);
    b.sync().unwrap();
    assert_eq!(execute(&mut b, "now").unwrap_err().state.as_str(), "34000", "Sync has ended it");
    b.sync().unwrap();
    // BEGIN behind a Bind.
    for name in ["now", "write"] {
        b.close_statement(name);
    }
    bind(&mut b, "now", "SELECT v FROM t WHERE id = $1", &["1"]).unwrap();
    bind(&mut b, "begin", "BEGIN ISOLATION LEVEL READ COMMITTED", &[]).unwrap();
    execute(&mut b, "begin").unwrap();
    assert_eq!(execute(&mut b, "now").unwrap(), ["3"]);
    b.sync().unwrap();
    assert_eq!(run(&mut b, "SHOW transaction_isolation; ROLLBACK"), ["read committed"]);
}

/// What has begun to run is of the transaction that it ran in.
#[test]
fn what_has_given_rows_does_not_outlive_its_transaction() {
    let kv = MemoryKv::new();
    let mut a = changed(&kv);
    run(&mut a, "INSERT INTO t VALUES (2, 2), (3, 3)");
    bind(&mut a, "part", "SELECT id FROM t ORDER BY id", &[]).unwrap();
    let mut out = Rows::default();
    a.execute("part", 1, false, &mut out).unwrap();
    assert_eq!(out.rows, ["1"]);
    bind(&mut a, "late", "SELECT v FROM t AS OF SYSTEM TIME $1", &["-1s"]).unwrap();
    assert_eq!(execute(&mut a, "part").unwrap(), ["2", "3"], "it goes on where it was");
    assert_eq!(execute(&mut a, "late").unwrap_err().state.as_str(), "25001");
    a.sync().unwrap();
    assert_eq!(execute(&mut a, "part").unwrap_err().state.as_str(), "34000");
    a.sync().unwrap();
}

/// A statement behind others of one transaction is not repeated alone when that transaction's commit fails.
#[test]
fn what_was_done_before_it_is_not_lost_when_a_commit_fails() {
    for isolation in ["read committed", "repeatable read", "serializable"] {
        for fails in [1, 2, 40] {
            let (mut a, left) = super::conflicting();
            run(&mut a, &format!("SET default_transaction_isolation = '{isolation}'"));
            let expected = |state: &str| match state {
                "00000" => ["2|1"],
                _ => ["1|0"],
            };
            let rows = "SELECT count(*), sum(v) FROM t";
            left.commits.store(fails, Ordering::Relaxed);
            let state = state_of(&mut a, "INSERT INTO t VALUES (2, 0); UPDATE t SET v = 1 WHERE id = 1");
            left.commits.store(0, Ordering::Relaxed);
            assert_eq!(run(&mut a, rows), expected(&state), "{isolation}, {fails} commits fail: {state}");
            run(&mut a, "DELETE FROM t WHERE id = 2; UPDATE t SET v = 0");
            // Without a text that could be run again as a whole.
            left.commits.store(fails, Ordering::Relaxed);
            bind(&mut a, "one", "INSERT INTO t VALUES (2, 0)", &[]).unwrap();
            execute(&mut a, "one").unwrap();
            bind(&mut a, "two", "UPDATE t SET v = 1 WHERE id = 1", &[]).unwrap();
            let mut out = Rows::default();
            let done = a.execute("two", 0, true, &mut out).and_then(|_| a.sync());
            left.commits.store(0, Ordering::Relaxed);
            let state = done.map_or_else(|error| error.state.as_str().to_owned(), |_| "00000".to_owned());
            if state != "00000" {
                let _ = a.sync();
            }
            assert_eq!(run(&mut a, rows), expected(&state), "{isolation}, {fails} commits fail, a pipeline: {state}");
        }
    }
}
