//! INSERT of one row of literals runs by its shape, and says what it says without.

use super::{Rows, open, run, session, state_of};
use sql::Session;
use sql::transaction::memory::MemoryKv;

const TABLE: &str = "(id int PRIMARY KEY, i bigint, n numeric(6, 2), d double precision, t text, c char(3), v varchar(4), b boolean, day date, \
     at timestamptz, bytes bytea, a int[], j jsonb, s smallint CHECK (s < 100), x int DEFAULT 7, u uuid UNIQUE)";

/// A comment before it keeps a text from being looked at.
const AS_SENT: &str = "/**/";

/// What becomes of a statement: rows, tags, or all of the error.
fn told(session: &mut Session, sql: &str, before: u32) -> String {
    let mut out = Rows::default();
    match session.simple_query(sql, &mut out) {
        Ok(()) => format!("{:?} {:?}", out.rows, out.tags),
        Err(e) => {
            let position = e.position.map(|position| position - before);
            format!("{} {} {:?} {:?} {position:?}", e.state.as_str(), e.message, e.detail, e.hint)
        }
    }
}

/// Rows of all kinds, right and wrong, by their shape and as they are.
#[test]
fn a_shape_says_what_the_text_says() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, &format!("CREATE TABLE p {TABLE}; CREATE TABLE q {TABLE}; SET timezone = 'Europe/Berlin'"));
    run(&mut a, "CREATE TABLE pm (m interval, r regclass); CREATE TABLE qm (m interval, r regclass)");
    run(&mut a, "CREATE VIEW pv AS SELECT id, t FROM p; CREATE VIEW qv AS SELECT id, t FROM q");
    let inserts = [
        "INSERT INTO @ VALUES (1, 5, 1.005, 2, 'it''s', 'ab', 'abcd', true, '2020-02-29', '2020-06-01 12:00', '\\x00ff', '{1,NULL}', '{\"k\": 1}', 3, DEFAULT, NULL)",
        "INSERT INTO @ (id) VALUES (2) RETURNING *",
        "INSERT INTO @ (id) VALUES (2)",
        "INSERT INTO @ (id, t) VALUES ('3', 4) RETURNING id, t, x",
        "INSERT INTO @ (id, i) VALUES (-2147483648, -9223372036854775808)",
        "INSERT INTO @ (id) VALUES (2147483648)",
        "INSERT INTO @m (r) VALUES (-2147483648) RETURNING r::oid",
        "INSERT INTO @ (id, i) VALUES (4, 9223372036854775808)",
        "INSERT INTO @ (id, n) VALUES (5, 12345678.9)",
        "INSERT INTO @ (id, n) VALUES (6, 1.999)",
        "INSERT INTO @ (id, d) VALUES (7, 0.1)",
        "INSERT INTO @ (id, i) VALUES (8, 1.5)",
        "INSERT INTO @ (id, i) VALUES (9, '1.5')",
        "INSERT INTO @ (id, c) VALUES (10, 'abcd')",
        "INSERT INTO @ (id, c) VALUES (10, 'abc   ')",
        "INSERT INTO @ (id, v) VALUES (11, 'abcde')",
        "INSERT INTO @ (id, v) VALUES (11, 12345)",
        "INSERT INTO @ (id, b) VALUES (12, 1)",
        "INSERT INTO @ (id, b) VALUES (12, 'yes')",
        "INSERT INTO @ (id, day) VALUES (13, 'infinity')",
        "INSERT INTO @ (id, day) VALUES (14, '2020-02-30')",
        "INSERT INTO @ (id, day) VALUES (14, 20200228)",
        "INSERT INTO @ (id, bytes) VALUES (15, 'a\\\\b')",
        "INSERT INTO @ (id, j) VALUES (16, '{')",
        "INSERT INTO @ (id, a) VALUES (17, '{x}')",
        "INSERT INTO @ (id, s) VALUES (18, 100)",
        "INSERT INTO @ (id, s) VALUES (18, 40000)",
        "INSERT INTO @ (id, u) VALUES (19, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
        "INSERT INTO @ (id, u) VALUES (20, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
        "INSERT INTO @ (id, u) VALUES (21, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11') ON CONFLICT DO NOTHING",
        "INSERT INTO @ AS o (id, x) VALUES (2, 9) ON CONFLICT (id) DO UPDATE SET x = o.x + excluded.x, t = 'again' WHERE o.id < 5 RETURNING id, x, t, 'a;b', 1",
        "INSERT INTO @ (id, x) VALUES (2, 9) ON CONFLICT (id) DO UPDATE SET x = 1 + 'z'",
        "INSERT INTO @ (id, nosuch) VALUES (22, 1)",
        "INSERT INTO @ (id, id) VALUES (22, 1)",
        "INSERT INTO @ (id, t) VALUES (22)",
        "INSERT INTO @ (id) VALUES (22, 'more')",
        "INSERT INTO @ (id, t) VALUES (NULL, 'null')",
        "INSERT INTO @ (id, t) VALUES (23, '\u{fc}\u{6f22}'\n)",
        "INSERT INTO nosuch@ (id) VALUES (1)",
        "INSERT INTO @v (id, t) VALUES (24, 'by a view')",
        "INSERT INTO @m VALUES ('1 day', '@')",
        "INSERT INTO @m VALUES ('glad', '@')",
        "INSERT INTO @m VALUES ('2 days', 'nosuch')",
    ];
    for _ in 0..2 {
        for insert in inserts {
            let shape = told(&mut a, &insert.replace('@', "p"), 0);
            let sent = told(&mut a, &format!("{AS_SENT}{}", insert.replace('@', "q")), 4);
            let sent = sent.replace("\"q", "\"p").replace("nosuchq", "nosuchp");
            assert_eq!(shape, sent, "{insert}");
        }
    }
    for (columns, of) in [("*", ""), ("m, r IS NULL", "m")] {
        let all = |table: &str| format!("SELECT {columns} FROM {table}{of} ORDER BY 1");
        let (p, q) = (run(&mut a, &all("p")), run(&mut a, &all("q")));
        assert!(!p.is_empty());
        assert_eq!(p, q);
    }
}

/// In a block an error ends it, and what is seen of the statement is its text.
#[test]
fn a_shape_is_a_statement_as_any() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    run(&mut a, "INSERT INTO t VALUES (1, 'one')");
    run(&mut a, "BEGIN; SAVEPOINT s");
    assert_eq!(state_of(&mut a, "INSERT INTO t VALUES (1, 'again')"), "23505");
    assert_eq!(state_of(&mut a, "INSERT INTO t VALUES (2, 'two')"), "25P02");
    run(&mut a, "ROLLBACK TO s");
    run(&mut a, "INSERT INTO t VALUES (2, 'two')");
    let seen = "SELECT query FROM pg_stat_activity WHERE query LIKE 'INSERT%'";
    assert_eq!(run(&mut b, seen), ["INSERT INTO t VALUES (2, 'two')"]);
    run(&mut a, "COMMIT");
    run(&mut b, "SET default_transaction_read_only = on");
    assert_eq!(state_of(&mut b, "INSERT INTO t VALUES (3, 'three')"), "25006");
    assert_eq!(run(&mut a, "SELECT count(*) FROM t"), ["2"]);
}

/// A column that has another type meanwhile: the literals are read by that, also of whom has not looked since.
#[test]
fn a_type_that_has_changed_is_the_one_that_counts() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    run(&mut b, "INSERT INTO t VALUES (1, '007')");
    run(&mut a, "ALTER TABLE t ALTER v TYPE int USING v::int");
    run(&mut b, "INSERT INTO t VALUES (2, '008')");
    assert_eq!(run(&mut b, "SELECT v FROM t ORDER BY id"), ["7", "8"]);
    assert_eq!(state_of(&mut b, "INSERT INTO t VALUES (3, 'x')"), "22P02");
    run(&mut a, "ALTER TABLE t ALTER v TYPE text");
    run(&mut b, "INSERT INTO t VALUES (3, 'x')");
    run(&mut b, "BEGIN; ALTER TABLE t ADD w date; INSERT INTO t VALUES (4, 'y', '2020-01-01'); COMMIT");
    run(&mut b, "BEGIN; ALTER TABLE t DROP w");
    run(&mut b, "INSERT INTO t VALUES (5, 'z')");
    assert_eq!(run(&mut b, "SELECT v FROM t WHERE id = 5"), ["z"]);
    run(&mut b, "ROLLBACK");
    assert_eq!(
        run(&mut b, "SELECT v, w FROM t WHERE id >= 3 ORDER BY id"),
        ["x|NULL", "y|2020-01-01"].map(|row| row.replace("NULL", ""))
    );
}

/// `now` in a literal is when the transaction began, as DEFAULT now() is; and what cannot be planned any more is told with its place in the text.
#[test]
fn what_is_told_of_now_and_of_places_is_the_texts() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    run(
        &mut a,
        "CREATE TABLE t (at timestamptz, made timestamptz DEFAULT now(), CHECK (at = made)); CREATE TABLE u (a text)",
    );
    run(&mut b, "SELECT 1 FROM u");
    for _ in 0..20 {
        run(&mut b, "INSERT INTO t VALUES ('now')");
    }
    for (name, next) in [("a", "c"), ("c", "d")] {
        run(&mut a, &format!("ALTER TABLE u RENAME {name} TO {next}"));
        let text = format!("INSERT INTO u VALUES ('longlonglonglonglong') RETURNING *, {name}");
        let place = u32::try_from(text.len()).expect("it is short");
        let error = b.simple_query(&text, &mut Rows::default()).expect_err("the column is gone");
        assert_eq!((error.state.as_str(), error.position), ("42703", Some(place)));
        run(&mut b, &format!("INSERT INTO u VALUES ('x') RETURNING {next}"));
    }
}
