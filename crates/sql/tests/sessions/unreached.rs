//! The range of the catalog does not answer: what needs nothing of it goes on, what does says so.

use super::*;

impl ConflictingTxn {
    /// What a key that is to be read gets; the snapshot is taken then at the latest.
    pub(super) fn reach(&mut self, key: &[u8]) -> Result<(), KvError> {
        self.left.reached(key, self.past)?;
        if !std::mem::replace(&mut self.placed, true) {
            self.txn.begin_statement()?;
        }
        Ok(())
    }
}

impl Conflicting {
    pub(super) fn here(&self) -> clock::Timestamp {
        match self.left.here_age_us.load(Ordering::Relaxed) {
            0 => clock::Timestamp::MAX,
            age_us => self.kv.ago(age_us),
        }
    }
}

#[test]
fn what_needs_no_catalog_goes_on_without_it() {
    let left = Arc::new(Conflicts::default());
    let db = open(Conflicting { kv: MemoryKv::new(), left: left.clone() });
    let mut old = session(&db);
    run(&mut old, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10)");
    left.lost.store(true, Ordering::Relaxed);
    // A session that was open, and one that comes now.
    for mut session in [old, session(&db)] {
        assert_eq!(run(&mut session, "SELECT 1"), ["1"]);
        assert_eq!(run(&mut session, "SET search_path = public, other; SHOW search_path"), ["public, other"]);
        assert_eq!(
            run(&mut session, "BEGIN; SET LOCAL lock_timeout = 7; SELECT 2; SAVEPOINT a; SELECT 3; COMMIT"),
            ["2", "3"]
        );
        session.parse("", "SELECT $1::int + 1", &[]).unwrap();
        session.bind("", "", &[Some(b"41")], &[], &[]).unwrap();
        let mut out = Rows::default();
        session.execute("", 0, true, &mut out).unwrap();
        assert_eq!(out.rows, ["42"]);
        assert_eq!(run(&mut session, "SELECT v FROM t AS OF SYSTEM TIME '-1us'"), ["10"]);
        for needs in [
            "SELECT * FROM t",
            "SELECT * FROM nothing",
            "INSERT INTO t VALUES (2, 0)",
            "CREATE TABLE u (id int)",
            "SELECT relname FROM pg_class",
            "SELECT 't'::regclass",
            "SELECT to_regclass('t')",
            "SELECT pg_get_viewdef(1)",
        ] {
            let error = session.simple_query(needs, &mut Rows::default()).expect_err(needs);
            assert_eq!(error.state.as_str(), "57P03", "{needs}: {error}");
        }
        let error = session.simple_query("SELECT * FROM t", &mut Rows::default()).unwrap_err();
        assert_eq!(error.detail.as_deref(), Some("It is about the catalog."));
    }
    let startup = Startup { user: "root".into(), database: "elsewhere".into(), ..Startup::default() };
    let error = Session::new(db.clone(), startup, Interrupt::default()).map(drop).unwrap_err();
    assert_eq!(error.state.as_str(), "57P03", "what is not known here may be there: {error}");
    left.lost.store(false, Ordering::Relaxed);
    assert_eq!(run(&mut session(&db), "SELECT v FROM t"), ["10"]);
}

/// What was changed elsewhere meanwhile is seen as soon as it can be.
#[test]
fn a_catalog_that_changed_meanwhile_is_the_present_one() {
    let kv = MemoryKv::new();
    let left = Arc::new(Conflicts::default());
    let (here, there) = (open(Conflicting { kv: kv.clone(), left: left.clone() }), open(kv));
    let (mut a, mut b) = (session(&here), session(&there));
    run(&mut b, "CREATE TABLE t (id int PRIMARY KEY)");
    assert!(run(&mut a, "SELECT * FROM t").is_empty());
    left.lost.store(true, Ordering::Relaxed);
    assert_eq!(run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1"), ["1"]);
    run(&mut b, "ALTER TABLE t ADD COLUMN v int DEFAULT 5; INSERT INTO t VALUES (1)");
    left.lost.store(false, Ordering::Relaxed);
    assert_eq!(run(&mut a, "SELECT * FROM t"), ["1|5"]);
    assert_eq!(run(&mut a, "COMMIT; SELECT * FROM t"), ["1|5"]);
}

/// Whoever leads the catalog's range may have died a moment ago, which nobody knows yet: what needs nothing of it must not ask.
#[test]
fn what_needs_no_catalog_asks_nobody() {
    let left = Arc::new(Conflicts::default());
    let db = open(Conflicting { kv: MemoryKv::new(), left: left.clone() });
    let mut s = session(&db);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10)");
    let asked = |s: &mut Session, text: &str| {
        let before = left.asked.load(Ordering::Relaxed);
        run(s, text);
        left.asked.load(Ordering::Relaxed) - before
    };
    for needs_nothing in [
        "SELECT 1",
        "SELECT 1 + 2, 'a' || 'b'",
        "SELECT version(), pg_backend_pid(), pg_is_in_recovery(), inet_server_addr(), inet_server_port()",
        "SELECT now(), current_timestamp, current_date, clock_timestamp() > '2000-01-01'",
        "BEGIN; SELECT now(); SELECT 1; COMMIT",
        "SET lock_timeout = 7",
        "SHOW lock_timeout",
        "BEGIN; SET LOCAL lock_timeout = 8; SAVEPOINT a; SELECT 1; ROLLBACK TO a; SELECT 2; COMMIT",
        "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1; SELECT 2; COMMIT",
        "BEGIN; SET LOCAL timeball.consistency = 'hybrid'; SELECT 1; ROLLBACK",
    ] {
        assert_eq!(asked(&mut s, needs_nothing), 0, "{needs_nothing}");
    }
    let before = left.asked.load(Ordering::Relaxed);
    for _ in 0..2 {
        s.parse("", "SELECT $1::int + 1", &[]).unwrap();
        s.bind("", "", &[Some(b"41")], &[], &[]).unwrap();
        let mut out = Rows::default();
        s.execute("", 0, true, &mut out).unwrap();
        assert_eq!(out.rows, ["42"]);
    }
    assert_eq!(left.asked.load(Ordering::Relaxed), before);
    // By which keys a token is signed is asked for, and not waited for.
    let hasty = left.hasty.load(Ordering::Relaxed);
    let asked_for_token = asked(&mut s, "SHOW timeball.token");
    assert_eq!(left.hasty.load(Ordering::Relaxed) - hasty, asked_for_token);
    left.lost.store(true, Ordering::Relaxed);
    assert_eq!(run(&mut s, "SHOW timeball.token").len(), 1);
    left.lost.store(false, Ordering::Relaxed);
    let shown = run(&mut s, "BEGIN; SELECT now(); SELECT count(*) FROM t; SELECT now(); COMMIT");
    assert_eq!(shown[0], shown[2], "one time for all of a transaction");
    for needs_it in ["SELECT v FROM t", "SELECT 't'::regclass", "SELECT current_database()"] {
        assert!(asked(&mut s, needs_it) > 0, "{needs_it}");
    }
}

/// A transaction that began without a look at the catalog sees all the same the one of its snapshot, and so does the session's next one.
#[test]
fn who_has_not_looked_yet_looks_when_it_matters() {
    let kv = MemoryKv::new();
    let left = Arc::new(Conflicts::default());
    let (here, there) = (open(Conflicting { kv: kv.clone(), left: left.clone() }), open(kv));
    let (mut a, mut b) = (session(&here), session(&there));
    run(&mut b, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    assert_eq!(run(&mut a, "SELECT 1"), ["1"]);
    assert_eq!(run(&mut a, "BEGIN; SELECT 1; SELECT * FROM t; SELECT 't'::regclass; COMMIT"), ["1", "1", "t"]);
    run(&mut b, "ALTER TABLE t ADD COLUMN v int DEFAULT 5; CREATE SEQUENCE s");
    assert_eq!(
        run(&mut a, "BEGIN; SELECT 2; SAVEPOINT x; SELECT nextval('s'); ROLLBACK TO x; SELECT * FROM t; COMMIT"),
        ["2", "1", "1|5"]
    );
    run(&mut b, "ALTER TABLE t RENAME TO u");
    assert_eq!(run(&mut a, "SELECT * FROM u"), ["1|5"]);
    let error = a.simple_query("SELECT * FROM t", &mut Rows::default()).unwrap_err();
    assert_eq!(error.state.as_str(), "42P01", "{error}");
    // Its own changes, undone.
    assert_eq!(
        run(
            &mut a,
            "BEGIN; SAVEPOINT x; CREATE TABLE own (id int PRIMARY KEY); ROLLBACK TO x; SET LOCAL lock_timeout = 1; SELECT 3; COMMIT"
        ),
        ["3"]
    );
    let error = a.simple_query("SELECT * FROM own", &mut Rows::default()).unwrap_err();
    assert_eq!(error.state.as_str(), "42P01", "{error}");
}

/// What is left of a majority has an older past than a session has seen, or than it may show: it says so, and how to read that.
#[test]
fn a_past_that_is_too_recent_says_what_is_here() {
    let left = Arc::new(Conflicts::default());
    let db = open(Conflicting { kv: MemoryKv::new(), left: left.clone() });
    let mut seen = session(&db);
    run(&mut seen, "CREATE TABLE t (id int PRIMARY KEY); SELECT * FROM t");
    left.here_age_us.store(30_000_000, Ordering::Relaxed);
    left.lost.store(true, Ordering::Relaxed);
    let mut fresh = session(&db);
    for (session, bound, why) in
        [(&mut seen, "1h", "its snapshots never go back"), (&mut fresh, "10s", "is the oldest that was asked for")]
    {
        run(session, &format!("SET timeball.consistency = 'stale'; SET timeball.max_staleness = '{bound}'"));
        let error = session.simple_query("SELECT * FROM t", &mut Rows::default()).unwrap_err();
        assert_eq!(error.state.as_str(), "57P03", "{error}");
        let hint = error.hint.as_deref().unwrap_or_default();
        let said = |ages: [&str; 2]| ages.iter().any(|age| hint.contains(age));
        assert!(said(["can serve what was so 30 s ago", "can serve what was so 31 s ago"]), "{hint}");
        assert!(hint.contains(why) && said(["max_staleness = '90s'", "max_staleness = '91s'"]), "{hint}");
    }
    // Where nothing is here that the node could say so of, it does not.
    run(&mut fresh, "RESET timeball.consistency; RESET timeball.max_staleness");
    let error = fresh.simple_query("SELECT * FROM t", &mut Rows::default()).unwrap_err();
    assert!(error.hint.as_deref().is_some_and(|hint| !hint.contains("max_staleness")), "{error:?}");
}

/// READ COMMITTED at a node that comes to doubt its clock: a statement's snapshot is taken when it reads, and lies above the one whose catalog is known.
#[test]
fn who_takes_his_snapshot_late_goes_by_the_catalog_of_then() {
    let kv = MemoryKv::new();
    let left = Arc::new(Conflicts::default());
    let (here, there) = (open(Conflicting { kv: kv.clone(), left: left.clone() }), open(kv));
    let (mut a, mut b) = (session(&here), session(&there));
    run(&mut b, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE log (n int); INSERT INTO t VALUES (1)");
    assert_eq!(run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT id FROM t"), ["1"]);
    left.doubts.store(true, Ordering::Relaxed);
    run(&mut b, "TRUNCATE t; INSERT INTO t VALUES (2), (3); INSERT INTO log VALUES (2)");
    assert_eq!(run(&mut a, "SELECT count(*), (SELECT count(*) FROM log) FROM t"), ["2|1"], "one snapshot");
    run(&mut b, "ALTER TABLE t ADD COLUMN v int DEFAULT 5");
    assert_eq!(run(&mut a, "SELECT * FROM t ORDER BY id"), ["2|5", "3|5"]);
    run(&mut b, "DROP TABLE log; CREATE TABLE other (n int)");
    let asked = left.asked.load(Ordering::Relaxed);
    assert_eq!(run(&mut a, "SELECT 7"), ["7"]);
    assert_eq!(left.asked.load(Ordering::Relaxed), asked, "what needs no catalog asks nobody");
    assert_eq!(run(&mut a, "SELECT count(*) FROM other"), ["0"]);
    assert_eq!(state_of(&mut a, "SELECT * FROM log"), "42P01");
    left.doubts.store(false, Ordering::Relaxed);
    assert_eq!(run(&mut a, "ROLLBACK; SELECT count(*) FROM t"), ["2"]);
}

/// A node starts, and nobody leads: it opens by the catalog of the past that it has, and goes on when somebody leads again.
#[test]
fn a_database_opens_by_the_past_that_is_here() {
    let kv = MemoryKv::new();
    let left = Arc::new(Conflicts::default());
    let here = || Arc::new(Conflicting { kv: kv.clone(), left: left.clone() }) as Arc<dyn Kv>;
    assert!(Database::open_by_the_past(here(), DatabaseOptions::default()).is_err(), "there is no database yet");
    let there = open(kv.clone());
    run(&mut session(&there), "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10)");
    left.lost.store(true, Ordering::Relaxed);
    let error = Database::open(here(), DatabaseOptions::default()).map(drop).unwrap_err();
    assert_eq!(error.state.as_str(), "57P03", "{error}");
    let db = Database::open_by_the_past(here(), DatabaseOptions::default()).expect("open");
    let mut s = session(&db);
    assert_eq!(run(&mut s, "SELECT 1"), ["1"]);
    assert_eq!(state_of(&mut s, "SELECT v FROM t"), "57P03");
    assert_eq!(run(&mut s, "SET timeball.consistency = 'stale'; SELECT v FROM t"), ["10"]);
    run(&mut session(&there), "ALTER TABLE t ADD COLUMN w int DEFAULT 5; UPDATE t SET v = 11");
    left.lost.store(false, Ordering::Relaxed);
    assert_eq!(run(&mut s, "RESET timeball.consistency; SELECT * FROM t"), ["1|11|5"]);
    assert_eq!(run(&mut session(&db), "SELECT * FROM t"), ["1|11|5"]);
}
