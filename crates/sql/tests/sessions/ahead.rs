//! Statements of the past that are prepared, and run later: their time is that of each run.

use super::{Arc, Conflicting, Conflicts, Ordering, Rows, open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::{Session, SqlError};

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
    let error = b.bind("", "parameter", &[None], &[], &[]).unwrap_err();
    assert_eq!(error.state.as_str(), "22004", "{error}");
    b.sync().unwrap();
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

/// The table as it was in the first ten seconds, in the next ten, and gone since.
fn reshaped(kv: &MemoryKv) -> Session {
    let mut a = grown(kv);
    run(&mut a, "ALTER TABLE t ADD COLUMN w text DEFAULT 'x'; UPDATE t SET w = 'y'");
    kv.advance_us(10_000_000);
    a
}

/// Bind, Describe of the portal, Execute: the names of its columns, and its rows.
fn described(session: &mut Session, name: &str, values: &[&str]) -> Result<(String, Vec<String>), SqlError> {
    let values: Vec<Option<&[u8]>> = values.iter().map(|value| Some(value.as_bytes())).collect();
    session.bind("", name, &values, &[], &[])?;
    let fields = session.describe_portal("", true)?.0.unwrap_or_default();
    let names = fields.iter().map(|field| field.name.as_ref()).collect::<Vec<&str>>().join(",");
    let mut out = Rows::default();
    session.execute("", 0, true, &mut out)?;
    session.sync()?;
    Ok((names, out.rows))
}

/// A time in a parameter is read by the catalog of that time, as one in a literal.
#[test]
fn a_time_that_is_bound_is_planned_by_its_own_catalog() {
    let kv = MemoryKv::new();
    let mut a = reshaped(&kv);
    let mut b = session(&open(kv.clone()));
    let text = "SELECT * FROM t WHERE id = $2 AS OF SYSTEM TIME $1";
    let ask = |b: &mut Session, time: &str| {
        b.parse("", text, &[]).unwrap();
        described(b, "", &[time, "1"]).unwrap_or_else(|error| panic!("{time}: {error}"))
    };
    for round in 0..2 {
        assert_eq!(ask(&mut b, "-5s"), ("id,v,w".into(), vec!["1|2|y".into()]), "{round}");
        assert_eq!(ask(&mut b, "-15s"), ("id,v".into(), vec!["1|2".into()]), "{round}: before the column");
        assert_eq!(ask(&mut b, "-25s"), ("id,v".into(), vec!["1|1".into()]), "{round}: before the update");
        // The second round: the table is gone, and another one has its name.
        run(&mut a, "DROP TABLE t");
        if round == 0 {
            assert_eq!(ask(&mut b, "-5s").0, "id,v,w");
            run(&mut a, "CREATE TABLE t (id text, other bytea)");
        }
    }
    // By SQL, too, and inside other statements.
    run(&mut b, "PREPARE p AS SELECT * FROM t AS OF SYSTEM TIME $1");
    assert_eq!(run(&mut b, "EXECUTE p('-15s')"), ["1|2"]);
    assert_eq!(run(&mut b, "EXECUTE p('-5s')"), ["1|2|y"]);
    assert!(run(&mut b, "EXPLAIN EXECUTE p('-5s')").join("").contains('t'));
    b.parse("x", "EXPLAIN SELECT * FROM t AS OF SYSTEM TIME $1", &[]).unwrap();
    assert!(!execute(&mut b, "x", &["-15s"]).unwrap().is_empty());
    b.parse("d", "DECLARE c CURSOR FOR SELECT * FROM t AS OF SYSTEM TIME $1", &[]).unwrap();
    run(&mut b, "BEGIN");
    execute(&mut b, "d", &["-15s"]).unwrap();
    assert_eq!(run(&mut b, "FETCH c; COMMIT"), ["1|2"]);
    b.parse("e", "EXECUTE p('-15s')", &[]).unwrap();
    assert_eq!(described(&mut b, "e", &[]).unwrap(), ("id,v".into(), vec!["1|2".into()]));
    // Behind a statement that was only planned, and first in a block.
    b.parse("other", "SELECT 1", &[]).unwrap();
    b.parse("", text, &[]).unwrap();
    b.bind("other", "other", &[], &[], &[]).unwrap();
    assert_eq!(described(&mut b, "", &["-15s", "1"]).unwrap().1, ["1|2"]);
    run(&mut b, "BEGIN");
    b.parse("", text, &[]).unwrap();
    assert_eq!(described(&mut b, "", &["-15s", "1"]).unwrap().1, ["1|2"]);
    assert_eq!(run(&mut b, "SHOW transaction_read_only; COMMIT"), ["on"]);
    b.parse("", text, &[]).unwrap();
    let error = described(&mut b, "", &["-40s", "1"]).unwrap_err();
    assert_eq!(error.state.as_str(), "22023", "there was nothing yet: {error}");
    b.sync().unwrap();
}

/// Who is told of a statement's result before its time is known keeps to what it was told: drivers read rows by it.
#[test]
fn what_a_client_was_told_of_holds_at_every_time() {
    let kv = MemoryKv::new();
    let mut a = reshaped(&kv);
    let mut b = session(&open(kv.clone()));
    b.parse("all", "SELECT * FROM t AS OF SYSTEM TIME $1", &[]).unwrap();
    b.parse("named", "SELECT v FROM t WHERE id = $2 AS OF SYSTEM TIME $1", &[]).unwrap();
    assert_eq!(b.describe_statement("all").unwrap().1.unwrap().len(), 3);
    assert_eq!(b.describe_statement("named").unwrap().0, [25, 23]);
    assert_eq!(execute(&mut b, "all", &["-5s"]).unwrap(), ["1|2|y"]);
    assert_eq!(execute(&mut b, "named", &["-25s", "1"]).unwrap(), ["1"]);
    let error = described(&mut b, "all", &["-15s"]).unwrap_err();
    assert_eq!(error.state.as_str(), "0A000", "{error}");
    assert!(error.hint.as_deref().unwrap_or_default().contains("Name the columns"), "{error:?}");
    b.sync().unwrap();
    // A driver may ask of the first portal only.
    b.parse("once", "SELECT * FROM t AS OF SYSTEM TIME $1", &[]).unwrap();
    assert_eq!(described(&mut b, "once", &["-15s"]).unwrap().0, "id,v");
    assert_eq!(execute(&mut b, "once", &["-25s"]).unwrap(), ["1|1"]);
    assert_eq!(execute(&mut b, "once", &["-5s"]).unwrap_err(), "0A000");
    b.sync().unwrap();
    run(&mut a, "DROP TABLE t");
    assert_eq!(execute(&mut b, "named", &["-25s", "1"]).unwrap(), ["1"]);
    b.parse("late", "SELECT v FROM t AS OF SYSTEM TIME $1", &[]).unwrap();
    let error = b.describe_statement("late").unwrap_err();
    assert_eq!(error.state.as_str(), "42P01");
    assert!(error.hint.as_deref().unwrap_or_default().contains("literal"), "{error:?}");
    b.sync().unwrap();
    assert_eq!(described(&mut b, "late", &["-5s"]).unwrap().1, ["2"], "bound, it is there");
    // Some ask behind Bind, but of the statement.
    b.parse("", "SELECT * FROM t AS OF SYSTEM TIME $1", &[]).unwrap();
    b.bind("", "", &[Some(b"-15s")], &[], &[]).unwrap();
    assert_eq!(b.describe_statement("").unwrap().1.unwrap().len(), 2);
    let mut out = Rows::default();
    b.execute("", 0, true, &mut out).unwrap();
    assert_eq!(out.rows, ["1|2"]);
    b.sync().unwrap();
}

/// A block that has read a time reads no other one.
#[test]
fn a_block_of_the_past_has_one_time() {
    let kv = MemoryKv::new();
    grown(&kv);
    let mut a = session(&open(kv.clone()));
    let block = |a: &mut Session, statement: &str| {
        let state = state_of(a, &format!("BEGIN AS OF SYSTEM TIME '-15s'; {statement}"));
        run(a, "ROLLBACK");
        state
    };
    for other in ["'-5s'", "follower_read_timestamp()", "with_negotiated_timestamp()", "with_max_staleness('5s')"] {
        assert_eq!(block(&mut a, &format!("SELECT 1; SELECT v FROM t AS OF SYSTEM TIME {other}")), "25001", "{other}");
    }
    for same in ["'-15s'", "with_max_staleness('30s')", "with_min_timestamp('-30s')"] {
        let text =
            format!("BEGIN AS OF SYSTEM TIME '-15s'; SELECT 1; SELECT v FROM t AS OF SYSTEM TIME {same}; COMMIT");
        assert_eq!(run(&mut a, &text), ["1", "1"], "{same}");
    }
    let negotiated = "AS OF SYSTEM TIME with_negotiated_timestamp()";
    let first = format!("BEGIN AS OF SYSTEM TIME '-15s'; SELECT v FROM t {negotiated}; COMMIT");
    assert_eq!(run(&mut a, &first), ["2"], "the first one may say its own");
    let both = format!("BEGIN {negotiated}; SELECT v FROM t {negotiated}; SELECT v FROM t {negotiated}; COMMIT");
    assert_eq!(run(&mut a, &both), ["2", "2"]);
}
