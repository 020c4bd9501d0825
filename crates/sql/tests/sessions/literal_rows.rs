//! INSERT of many rows of literals: kept as text until each row is bound (decision 237).

use super::{Rows, open, run, session, state_of};
use sql::context::MemoryPool;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions};
use std::sync::Arc;

const TABLE: &str = "(id int PRIMARY KEY, i bigint, n numeric(12, 2), r real, d double precision, t text, c char(5), b boolean, \
     day date, at timestamptz, bytes bytea, a int[], j jsonb, x int DEFAULT 7, y text DEFAULT 'def')";

/// A row of literals of all kinds that is another one for each number.
fn row(n: i64) -> String {
    let text = ["'it''s'", "''", "null", "E'\\t\\''", "'(1, 2), (3'", "'ü — 漢'", "'a\nb'", "'-- no comment'"];
    let number = ["1", "-1", "+1.5", ".5", "1.", "1e3", "-2.5E-1", "NULL"][(n % 8) as usize];
    let other = ["7", "default", "DEFAULT", "null"][(n % 4) as usize];
    format!(
        "({n} ,{number},\t{number}, {number},\n{number}, {}, 'ab', {}, '2020-01-{:02}', '2020-06-01 12:00:00', '\\x0{}ff', '{{{n},2}}', '{{\"k\": {n}}}', {other}, {other})",
        text[(n % 8) as usize],
        ["true", "FALSE", "null"][(n % 3) as usize],
        n % 28 + 1,
        n % 10,
    )
}

/// A row that is kept as text says what it would say alone.
#[test]
fn many_rows_say_what_each_says_alone() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, &format!("CREATE TABLE together {TABLE}; CREATE TABLE apart {TABLE}; SET timezone = 'Europe/Berlin'"));
    let rows: Vec<String> =
        (0..400).map(|n| row(n).replace("E'\\t\\''", if n == 203 { "E'\\t\\''" } else { "'e'" })).collect();
    for row in &rows {
        run(&mut a, &format!("INSERT INTO apart VALUES {row}"));
    }
    run(&mut a, &format!("INSERT INTO together VALUES\n{} ;", rows.join(" ,\n ")));
    let all = |table: &str| format!("SELECT * FROM {table} ORDER BY id");
    let (together, apart) = (run(&mut a, &all("together")), run(&mut a, &all("apart")));
    assert_eq!(together.len(), 400);
    assert_eq!(together, apart);
    // By some of the columns, in another order, with what comes behind.
    let few: Vec<String> = (0..2000).map(|n| format!("('t{n}', {n})")).collect();
    let few = few.join(",");
    run(&mut a, &format!("TRUNCATE together; INSERT INTO together (t, id) VALUES {few}"));
    assert_eq!(
        run(&mut a, "SELECT count(*), sum(id), min(x), min(y), max(t) FROM together"),
        ["2000|1999000|7|def|t999"]
    );
    let again = format!(
        "INSERT INTO together AS o (t, id) VALUES {few} ON CONFLICT (id) DO UPDATE SET x = o.x + 1 WHERE o.id < 10 RETURNING id, x"
    );
    let mut out = Rows::default();
    a.simple_query(&again, &mut out).expect("again");
    assert_eq!((out.tags, out.rows.len(), out.rows[9].as_str()), (vec!["INSERT 0 10".to_owned()], 10, "9|8"));
}

/// What is wrong with one of many rows is told as with a few, and none of them is there.
#[test]
fn what_is_wrong_in_the_midst_is_told() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v varchar(8))");
    let with = |odd: &str| {
        let rows = |from: i64| (from..from + 1000).map(|n| format!("({n}, 'v{n}')")).collect::<Vec<_>>().join(",");
        format!("INSERT INTO t VALUES {}, {odd}, {}", rows(0), rows(2000))
    };
    for (odd, state) in [
        ("(1500, 'v'", "42601"),
        ("(1500)", "42601"),
        ("(1500, 'v', 3)", "42601"),
        ("(1500, v)", "42703"),
        ("('x', 'v')", "22P02"),
        ("(3000000000, 'v')", "22003"),
        ("(1500, 'longer than eight')", "22001"),
        ("(7, 'twice')", "23505"),
        ("(null, 'v')", "23502"),
        ("(true, 'v')", "42804"),
        ("(1500, 'v') (1501, 'v')", "42601"),
        ("(1500, 'v'),, (1501, 'v')", "42601"),
        ("(1500, 'v' 'w')", "42601"),
        ("(15a, 'v')", "42601"),
        ("(1500, count(*))", "42803"),
    ] {
        assert_eq!(state_of(&mut a, &with(odd)), state, "{odd}");
        assert_eq!(run(&mut a, "SELECT count(*) FROM t"), ["0"], "{odd}");
    }
    // What is no literal is read as ever, whatever stands around it.
    for odd in [
        "(1000 + 500, lower('V'))",
        "(1500, (SELECT 'v')) -- (1, 'x')",
        "(1500, 'v' /* , (1 */)",
        "(1500, 'a'\n'b')",
        "(1500, $$v$$), (1501, U&'v')",
    ] {
        run(&mut a, &with(odd));
        assert_eq!(run(&mut a, "DELETE FROM t; SELECT count(*) FROM t"), ["0"]);
    }
    let text = with("(1500, 'v', 3) ");
    let error = a.simple_query(&text, &mut Rows::default()).unwrap_err();
    assert_eq!(error.message, "VALUES lists must all be the same length");
    let text = format!("{} nonsense", with("(1500, 'ü')"));
    let error = a.simple_query(&text, &mut Rows::default()).unwrap_err();
    let place = text[..text.find(" nonsense").unwrap() + 1].chars().count() as u32 + 1;
    assert_eq!((error.message.as_str(), error.position), ("syntax error at or near \"nonsense\"", Some(place)));
}

/// Rows that go through a query are rows all the same.
#[test]
fn rows_may_go_through_a_query() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    let rows = (0..1000).map(|n| format!("({n}, 'v{n}')")).collect::<Vec<_>>().join(",");
    for (text, count) in [
        (format!("INSERT INTO t VALUES {rows} LIMIT 10"), "10"),
        (format!("INSERT INTO t VALUES {rows} ORDER BY 1 DESC LIMIT 3"), "3"),
        (format!("INSERT INTO t SELECT 5000, 'x' UNION ALL VALUES {rows}"), "1001"),
        (format!("INSERT INTO t (id, v) VALUES {rows}; INSERT INTO t VALUES (5000, 'x'), (5001, 'y')"), "1002"),
        (format!("INSERT INTO t SELECT * FROM (VALUES {rows}) x"), "1000"),
        (
            format!("WITH x AS (INSERT INTO t VALUES {rows} RETURNING id) INSERT INTO t SELECT id + 10000, 'w' FROM x"),
            "2000",
        ),
        (format!("PREPARE p AS INSERT INTO t VALUES {rows}; EXECUTE p; DEALLOCATE p"), "1000"),
        (format!("EXPLAIN ANALYZE INSERT INTO t VALUES {rows}"), "1000"),
    ] {
        run(&mut a, &text);
        assert_eq!(run(&mut a, "SELECT count(*) FROM t"), [count], "{}", &text[..60]);
        run(&mut a, "DELETE FROM t");
    }
    a.parse("s", &format!("INSERT INTO t VALUES {rows}"), &[]).expect("parse");
    for _ in 0..2 {
        a.bind("", "s", &[], &[], &[]).expect("bind");
        a.execute("", 0, false, &mut Rows::default()).expect("execute");
        a.sync().expect("sync");
        assert_eq!(run(&mut a, "SELECT count(*) FROM t; DELETE FROM t"), ["1000"]);
    }
}

/// 250,000 literals of six bytes of text each, in 40 MB.
#[test]
fn a_literal_takes_few_bytes() {
    let pool = MemoryPool::new(40 << 20);
    let options = DatabaseOptions { memory_pool: pool.clone(), ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(MemoryKv::new()), options).expect("open");
    let mut a = session(&db);
    let columns: Vec<String> = (0..50).map(|n| format!("c{n} int")).collect();
    run(&mut a, &format!("CREATE TABLE t ({})", columns.join(", ")));
    let row: Vec<String> = (0..50).map(|n| (10_000 + n).to_string()).collect();
    let rows = vec![format!("({})", row.join(", ")); 5000].join(", ");
    run(&mut a, &format!("INSERT INTO t VALUES {rows}"));
    assert_eq!(run(&mut a, "SELECT count(*), sum(c49) FROM t"), ["5000|50245000"]);
    assert_eq!(pool.used_bytes(), 0);
}

/// Rows of a query's VALUES: their types are those of all, wherever they stand.
#[test]
fn queries_read_many_rows_too() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(
        &mut a,
        "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 50) g",
    );
    let rows = (0..1000).map(|n| format!("({n}, 'v{n}', {n}.5, null, true)")).collect::<Vec<_>>().join(",\n");
    for (text, answer) in [
        (
            format!(
                "SELECT count(*), sum(a), max(b), sum(c), count(d), bool_and(e), pg_typeof(min(c)) FROM (VALUES {rows}) x (a, b, c, d, e)"
            ),
            "1000|499500|v999|500000.0|0|t|numeric",
        ),
        (
            format!(
                "SELECT count(*) FROM (VALUES {rows}, (null, '', 1e30, 'd', false)) x (a, b, c, d, e) WHERE d = 'd' OR c = 1.5"
            ),
            "2",
        ),
        (
            format!(
                "SELECT count(*), pg_typeof(min(c)) FROM (VALUES {rows}, (5::bigint, 'x', 2.5::float8, 'd', false)) x (a, b, c, d, e) WHERE c = 2.5 GROUP BY ()"
            ),
            "2|double precision",
        ),
        (
            format!(
                "WITH x (a, b, c, d, e) AS (VALUES {rows}) SELECT count(*) FROM x JOIN t ON x.a = t.id AND x.b = t.v"
            ),
            "50",
        ),
        (format!("SELECT count(*) FROM t WHERE (id, v) IN (SELECT a, b FROM (VALUES {rows}) x (a, b, c, d, e))"), "50"),
        (format!("SELECT count(*) FROM t, LATERAL (VALUES {rows}) x (a, b, c, d, e) WHERE a = id + 950"), "49"),
        (
            format!(
                "SELECT sum(n) FROM (SELECT count(*) n FROM (VALUES {rows}) x UNION ALL SELECT count(*) FROM (VALUES {rows}, (1, 'v1', 1, null, false)) y) z"
            ),
            "2001",
        ),
        (
            format!("SELECT t.v FROM t JOIN (VALUES {rows}) x (a, b, c, d, e) ON a = id WHERE id = 7 FOR UPDATE OF t"),
            "v7",
        ),
        (
            format!(
                "WITH x AS (DELETE FROM t USING (VALUES {rows}) x (a, b, c, d, e) WHERE id = a AND id > 40 RETURNING id) SELECT count(*) FROM x"
            ),
            "10",
        ),
        (format!("VALUES {rows} ORDER BY 1 DESC LIMIT 1"), "999|v999|999.5||t"),
    ] {
        assert_eq!(
            run(&mut a, &text).iter().map(|row| row.replace("NULL", "")).collect::<Vec<_>>(),
            [answer],
            "{}",
            &text[..80]
        );
    }
    for (text, state) in [
        (format!("SELECT * FROM (VALUES {rows}, (1, 2)) x"), "42601"),
        (format!("SELECT * FROM (VALUES {rows}, ('z', '', 1, '', true)) x"), "22P02"),
        (format!("SELECT * FROM (VALUES {rows}, (true, '', 1, '', true)) x"), "42804"),
        (format!("SELECT * FROM (VALUES {rows}"), "42601"),
        // A longer row is as wrong as a shorter one, wherever it stands; that is told before their types are looked at.
        (format!("SELECT * FROM (VALUES {rows}, (1, 'v', 1, null, true, 6)) x"), "42601"),
        (format!("SELECT * FROM (VALUES (0), {rows}) x"), "42601"),
        (format!("SELECT * FROM (VALUES (0), (1), {rows}) x"), "42601"),
        (format!("SELECT * FROM (VALUES (true, 1, 1, 1, 1, 1), {rows}) x"), "42601"),
        (format!("SELECT * FROM (VALUES {rows}, (true, '', 1, '', true), (1)) x"), "42601"),
    ] {
        assert_eq!(state_of(&mut a, &text), state, "{}", &text[text.len() - 40..]);
    }
    // Of several columns whose types do not match the first is told.
    let wrong = format!("VALUES {rows}, (1, '', 1, '', 5), (true, '', 1, '', true)");
    let error = a.simple_query(&wrong, &mut Rows::default()).unwrap_err();
    assert_eq!(error.message, "VALUES types integer and boolean cannot be matched");
}

/// More than twenty stretches, each behind a place where the text is cut into pieces.
#[test]
fn a_text_is_cut_where_rows_that_are_kept_begin() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (v text)");
    let stretch = format!(",('{}'||'b') {}", "x".repeat(65_600), ",('100000')".repeat(600));
    run(&mut a, &format!("INSERT INTO t VALUES ('0'){}", stretch.repeat(20)));
    assert_eq!(run(&mut a, "SELECT count(*), sum(length(v)) FROM t"), [format!("12021|{}", 20 * (65_601 + 3_600) + 1)]);
}

/// What is printed and read again has its rows in it.
#[test]
fn rows_may_stand_where_a_statement_is_put_together_anew() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v text, n int); INSERT INTO t VALUES (1, 'a', 2), (2, 'b', 3)");
    let rows = (0..1000).map(|n| format!("({n}, 'it''s {n}')")).collect::<Vec<_>>().join(",");
    let update = format!("UPDATE t SET (n, v) = (SELECT x, y FROM (VALUES {rows}) z (x, y) WHERE x = n * 10)");
    run(&mut a, &update);
    assert_eq!(run(&mut a, "SELECT * FROM t ORDER BY id"), ["1|it's 20|20", "2|it's 30|30"]);
    run(&mut a, &format!("CREATE VIEW w AS SELECT * FROM (VALUES {rows}) z (x, y)"));
    assert_eq!(run(&mut a, "SELECT y FROM w WHERE x = 7"), ["it's 7"]);
    run(&mut a, "UPDATE t SET (n, v) = (SELECT x, y FROM w WHERE x = n + 1)");
    assert_eq!(run(&mut a, "SELECT * FROM t ORDER BY id"), ["1|it's 21|21", "2|it's 31|31"]);
}

/// VALUES may be a name, and what stands in brackets behind it no rows.
#[test]
fn a_column_may_be_called_values() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (values int); INSERT INTO t VALUES (5000)");
    let list = (0..1000).map(|n| format!("({n})")).collect::<Vec<_>>().join(",");
    for (text, answer) in [
        (format!("SELECT greatest(t.values, {list}) FROM t"), "5000"),
        (format!("SELECT greatest(values, {list}) FROM t"), "5000"),
        (format!("SELECT cardinality(array[t.values, {list}]) FROM t"), "1001"),
        (format!("SELECT count(*) FROM t WHERE 7 IN (t.values, {list})"), "1"),
        (format!("SELECT count(*) FROM t WHERE t.values IN ({list}, (5000))"), "1"),
        (format!("SELECT greatest(1 - t.values, {list}) FROM t"), "999"),
    ] {
        assert_eq!(run(&mut a, &text), [answer], "{}", &text[..60]);
    }
}

/// What is wrong is told with the word that is wrong, not with the rows that begin there.
#[test]
fn an_error_names_the_comma_alone() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    let rows = (0..2000).map(|n| format!("({n})")).collect::<Vec<_>>().join(",");
    for text in [format!("SELECT 1 WHERE 5 > ALL (VALUES {rows} 5)"), format!("SELECT 1 WHERE 5 > ALL (VALUES {rows})")]
    {
        let error = a.simple_query(&text, &mut Rows::default()).expect_err("a comma is wrong");
        assert_eq!(error.message, "syntax error at or near \",\"");
    }
}

/// Rows some of which are no literals are as large as they are, and count for that while they are there.
#[test]
fn rows_with_an_expression_among_them_count() {
    let pool = MemoryPool::new(40 << 20);
    let options = DatabaseOptions { memory_pool: pool.clone(), ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(MemoryKv::new()), options).expect("open");
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (a int[], b int)");
    let row = format!("({})", ["1"; 50].join(","));
    let rows = vec![row.as_str(); 10_000].join(",");
    let first = row.replacen('1', "1::int", 1);
    let query = |rows: &str| format!("SELECT count(*) FROM (VALUES {first},{rows}) x");
    assert_eq!(run(&mut a, &query(&vec![row.as_str(); 300].join(","))), ["301"]);
    assert_eq!(state_of(&mut a, &query(&rows)), "53200");
    let pairs = vec!["(1,2)"; 300_000].join(",");
    assert_eq!(state_of(&mut a, &format!("INSERT INTO t (a[1], b) VALUES {pairs}")), "53200");
    assert_eq!(pool.used_bytes(), 0);
}

/// Each of many lists counts for all of what it comes to, however little that is.
#[test]
fn each_of_many_lists_counts() {
    let pool = MemoryPool::new(40 << 20);
    let options = DatabaseOptions { memory_pool: pool.clone(), ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(MemoryKv::new()), options).expect("open");
    let mut a = session(&db);
    let rows = vec!["(1)"; 1040].join(",");
    let one = format!("(SELECT count(*) FROM (VALUES (1::int),{rows}) x)");
    let lists = |count: usize| format!("SELECT {}", vec![one.as_str(); count].join(", "));
    assert_eq!(run(&mut a, &lists(20)), [vec!["1041"; 20].join("|")]);
    assert_eq!(state_of(&mut a, &lists(300)), "53200");
    assert_eq!(pool.used_bytes(), 0);
}
