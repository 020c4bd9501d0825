//! The range of the catalog does not answer: what needs nothing of it goes on, what does says so.

use super::*;

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
