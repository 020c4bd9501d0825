//! Statements of the past that are prepared, and run later: their time is that of each run.

use super::{Arc, Conflicting, Conflicts, Ordering, Rows, open, run, session, state_of};
use sql::Session;
use sql::transaction::memory::MemoryKv;

/// Bind and Execute as a driver sends them.
fn execute(session: &mut Session, name: &str, values: &[&str]) -> Result<Vec<String>, String> {
    let mut out = Rows::default();
    let values: Vec<Option<&[u8]>> = values.iter().map(|value| Some(value.as_bytes())).collect();
    let done = session.bind("", name, &values, &[], &[]).and_then(|()| session.execute("", 0, true, &mut out));
    let done = done.and_then(|_| session.sync());
    done.map(|()| out.rows).map_err(|error| error.state.as_str().to_owned())
}

fn prepare(session: &mut Session, name: &str, text: &str) {
    session.parse(name, text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
    session.describe_statement(name).unwrap();
    session.sync().unwrap();
}

/// A row is 1 in the first ten seconds, 2 in the next ten, and so on.
fn grown(kv: &MemoryKv) -> Session {
    let mut a = session(&open(kv.clone()));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)");
    kv.advance_us(10_000_000);
    run(&mut a, "UPDATE t SET v = 2");
    kv.advance_us(10_000_000);
    a
}

#[test]
fn each_run_of_a_prepared_statement_takes_its_time_anew() {
    let kv = MemoryKv::new();
    let mut a = grown(&kv);
    let mut b = session(&open(kv.clone()));
    kv.lags_by_us(3_000_000);
    let forms = [
        ("exact", "AS OF SYSTEM TIME '-15s'", None),
        ("follower", "AS OF SYSTEM TIME follower_read_timestamp()", None),
        ("bounded", "AS OF SYSTEM TIME with_max_staleness('15s')", None),
        ("least", "AS OF SYSTEM TIME with_min_timestamp('-15s')", None),
        ("parameter", "AS OF SYSTEM TIME $1", Some("-15s")),
        ("bounded_by", "AS OF SYSTEM TIME with_max_staleness($1)", Some("15s")),
        ("least_of", "AS OF SYSTEM TIME with_min_timestamp($1::text)", Some("-15s")),
    ];
    for (name, form, _) in forms {
        prepare(&mut b, name, &format!("SELECT v FROM t {form}"));
    }
    let seen = |b: &mut Session, name: &str| {
        let value = forms.iter().find(|(known, ..)| *known == name).and_then(|(.., value)| *value);
        execute(b, name, &value.into_iter().collect::<Vec<_>>()).unwrap_or_else(|state| panic!("{name}: {state}"))
    };
    // The exact past first: what is fresher moves the session's snapshots, which never go back where nobody says to when.
    for (name, first) in [("exact", "1"), ("parameter", "1"), ("follower", "2"), ("bounded", "2"), ("least", "2")] {
        assert_eq!(seen(&mut b, name), [first], "{name}");
    }
    run(&mut a, "UPDATE t SET v = 3");
    // Three seconds are not here yet, 4.2 are not over.
    for name in ["follower", "bounded", "bounded_by", "least", "least_of"] {
        assert_eq!(seen(&mut b, name), ["2"], "{name}");
    }
    kv.advance_us(6_000_000);
    for name in ["follower", "bounded", "bounded_by", "least", "least_of"] {
        assert_eq!(seen(&mut b, name), ["3"], "{name}");
    }
    for name in ["exact", "parameter"] {
        assert_eq!(seen(&mut b, name), ["2"], "{name}");
    }
    // What a client declares is as good as text.
    b.parse("typed", "SELECT v FROM t AS OF SYSTEM TIME $1", &[1186]).unwrap();
    assert_eq!(execute(&mut b, "typed", &["-15 seconds"]).unwrap(), ["2"]);
    b.parse("twice", "SELECT v FROM t WHERE id = $1 AS OF SYSTEM TIME $2", &[]).unwrap();
    assert_eq!(execute(&mut b, "twice", &["1", "-15s"]).unwrap(), ["2"]);
    assert_eq!(execute(&mut b, "twice", &["1", "15s"]).unwrap_err(), "22023");
    assert_eq!(execute(&mut b, "twice", &["1", "soon"]).unwrap_err(), "22023");
    b.bind("", "parameter", &[None], &[], &[]).unwrap();
    let error = b.execute("", 0, true, &mut Rows::default()).unwrap_err();
    assert_eq!(error.state.as_str(), "22004", "{error}");
    assert_eq!(state_of(&mut b, "SELECT v FROM t AS OF SYSTEM TIME $1"), "42P02");
    assert_eq!(state_of(&mut b, "BEGIN AS OF SYSTEM TIME $1; SELECT 1"), "42P02");
    run(&mut b, "ROLLBACK");
    assert_eq!(state_of(&mut b, "SELECT v FROM t AS OF SYSTEM TIME $0"), "42601");
}

/// `timeball.max_staleness` holds for drivers as for psql: a statement that was only prepared has shown nothing of the present.
#[test]
fn a_bound_of_the_session_holds_for_what_is_prepared() {
    let kv = MemoryKv::new();
    let mut a = grown(&kv);
    run(&mut a, "UPDATE t SET v = 3");
    kv.lags_by_us(5_000_000);
    let db = open(kv.clone());
    for bound in ["timeball.max_staleness = '30s'", "timeball.consistency = 'stale'"] {
        let mut b = session(&db);
        run(&mut b, &format!("SET {bound}"));
        prepare(&mut b, "p", "SELECT v FROM t WHERE id = $1");
        assert_eq!(execute(&mut b, "p", &["1"]).unwrap(), ["2"], "{bound}");
        // All of it in one go, as drivers do that keep no statements.
        b.parse("", "SELECT v FROM t", &[]).unwrap();
        assert_eq!(execute(&mut b, "", &[]).unwrap(), ["2"], "{bound}");
        assert_eq!(run(&mut b, "EXECUTE p(1)"), ["2"], "{bound}");
        assert_eq!(run(&mut b, "PREPARE q AS SELECT v FROM t; EXECUTE q"), ["2"], "{bound}");
        kv.advance_us(6_000_000);
        assert_eq!(execute(&mut b, "p", &["1"]).unwrap(), ["3"], "{bound}: later it is younger");
        run(&mut a, "UPDATE t SET v = 2");
        kv.advance_us(6_000_000);
        run(&mut a, "UPDATE t SET v = 3");
    }
    let mut b = session(&db);
    run(&mut b, "SET timeball.max_staleness = '30s'");
    // What writes writes at the present, also after one that reads was planned in the same go.
    b.parse("read", "SELECT v FROM t", &[]).unwrap();
    b.parse("write", "UPDATE t SET v = v + 10", &[]).unwrap();
    execute(&mut b, "write", &[]).unwrap();
    assert_eq!(execute(&mut b, "read", &[]).unwrap(), ["13"], "it wrote that");
    // What was bound ends with Sync, whether a transaction was begun for it or not.
    for _ in 0..2 {
        b.bind("named", "read", &[], &[], &[]).unwrap();
        b.sync().unwrap();
    }
}

/// By EXPLAIN ANALYZE, which looks at the clock once more.
fn is_15_s_old(lines: &[String]) -> bool {
    let age = lines.iter().find_map(|line| line.trim().strip_prefix("Snapshot age: ")?.strip_suffix(" ms"));
    age.is_some_and(|ms| (14_990.0..15_010.0).contains(&ms.parse::<f64>().unwrap()))
}

/// Where a cursor is declared through Parse, Bind and Execute, its time is that of the DECLARE.
#[test]
fn a_prepared_declare_reads_when_it_runs() {
    let kv = MemoryKv::new();
    let mut a = grown(&kv);
    let mut b = session(&open(kv.clone()));
    prepare(&mut b, "d", "DECLARE c CURSOR FOR SELECT v FROM t AS OF SYSTEM TIME $1");
    prepare(&mut b, "e", "DECLARE c CURSOR FOR SELECT v FROM t AS OF SYSTEM TIME follower_read_timestamp()");
    let fetched = |b: &mut Session, name: &str, values: &[&str]| {
        run(b, "BEGIN");
        execute(b, name, values).unwrap();
        run(b, "FETCH c; COMMIT")
    };
    assert_eq!(fetched(&mut b, "d", &["-15s"]), ["1"]);
    assert_eq!(fetched(&mut b, "e", &[]), ["2"]);
    run(&mut a, "UPDATE t SET v = 3");
    kv.advance_us(6_000_000);
    assert_eq!(fetched(&mut b, "d", &["-15s"]), ["2"]);
    assert_eq!(fetched(&mut b, "e", &[]), ["3"]);
    prepare(&mut b, "x", "EXPLAIN ANALYZE SELECT v FROM t AS OF SYSTEM TIME $1");
    let age = execute(&mut b, "x", &["-15s"]).unwrap();
    assert!(is_15_s_old(&age), "{age:?}");
    run(&mut b, "PREPARE p AS SELECT v FROM t AS OF SYSTEM TIME $1");
    assert_eq!(run(&mut b, "EXECUTE p('-15s')"), ["2"]);
    let age = run(&mut b, "EXPLAIN ANALYZE EXECUTE p('-15s')");
    assert!(is_15_s_old(&age), "{age:?}");
}

/// What is not there any more is read as it was, and nobody of now is asked for it.
#[test]
fn the_past_is_planned_in_the_past() {
    let kv = MemoryKv::new();
    let left = Arc::new(Conflicts::default());
    let mut a = grown(&kv);
    let db = open(Conflicting { kv: kv.clone(), left: left.clone() });
    let mut b = session(&db);
    assert_eq!(run(&mut b, "SELECT v FROM t AS OF SYSTEM TIME '-15s'"), ["1"]);
    run(&mut a, "DROP TABLE t");
    left.lost.store(true, Ordering::Relaxed);
    prepare(&mut b, "p", "SELECT v FROM t AS OF SYSTEM TIME '-15s'");
    assert_eq!(execute(&mut b, "p", &[]).unwrap(), ["1"]);
    left.lost.store(false, Ordering::Relaxed);
    let error = b.parse("", "SELECT v FROM t", &[]).unwrap_err();
    assert_eq!(error.state.as_str(), "42P01", "{error}");
    // What the session says after it has prepared counts.
    prepare(&mut b, "q", "SELECT v FROM t AS OF SYSTEM TIME '-15s'");
    run(&mut b, "SET timeball.consistency = 'hybrid'");
    assert_eq!(run(&mut b, "SHOW timeball.consistency"), ["hybrid"]);
    assert_eq!(run(&mut b, "BEGIN; SHOW timeball.consistency; COMMIT"), ["hybrid"]);
}
