//! Few rows looked up in a column of few values find the whole table, again and again: what is looked at is counted.

use super::{Rows, open, run, session};
use sql::transaction::memory::MemoryKv;

/// Rows that a query looks at, about.
fn looked_at(session: &mut sql::Session, query: &str) -> (u64, Vec<String>) {
    let before = sql::work::looks();
    let mut out = Rows::default();
    session.simple_query(query, &mut out).expect(query);
    // One look for every 256 rows.
    ((sql::work::looks() - before) * 256, out.rows)
}

#[test]
fn lookups_that_find_too_much_become_a_hash_join() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE l (id int PRIMARY KEY, v int, w int)");
    run(&mut a, "CREATE TABLE r (id int PRIMARY KEY, v int, w int)");
    run(&mut a, "CREATE INDEX r_v ON r (v)");
    run(&mut a, "INSERT INTO l SELECT i, i % 4, i * 7 FROM generate_series(1, 100) i");
    run(
        &mut a,
        "INSERT INTO r SELECT i, CASE WHEN i % 100 = 0 THEN i ELSE i % 4 END, i FROM generate_series(1, 20000) i",
    );
    for known in [false, true] {
        for (query, answer) in [
            ("SELECT count(*), sum(r.id) FROM l JOIN r ON r.v = l.v AND r.w = l.w", "49|17150"),
            ("SELECT count(*), sum(r.id) FROM l LEFT JOIN r ON r.v = l.v AND r.w = l.w", "100|17150"),
            ("SELECT count(*), sum(r.id) FROM l JOIN r ON r.v = l.v AND r.w = 5", "25|125"),
        ] {
            let (rows, got) = looked_at(&mut a, query);
            assert_eq!(got, [answer], "{query}");
            // 25 lookups of each value find 4,950 rows each time: 495,000.
            assert!(rows < 90_000, "{query}: {rows} rows, statistics: {known}");
        }
        // Few rows of many values are looked up still.
        let (rows, got) = looked_at(&mut a, "SELECT count(*), sum(r.id) FROM l JOIN r ON r.v = l.id * 100");
        assert_eq!(got, ["100|505000"]);
        assert!(rows < 5_000, "{rows} rows, statistics: {known}");
        run(&mut a, "ANALYZE");
    }
}

/// A FROM of which `a` is joined last, 50 rows to each of `b`, and a condition that reads all of `c` for each row that it is asked of.
#[test]
fn a_subquery_is_asked_of_the_input_that_has_fewest_rows() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE a (id int PRIMARY KEY, k int, x int)");
    run(&mut a, "CREATE TABLE b (id int PRIMARY KEY, k int)");
    run(&mut a, "CREATE TABLE c (id int PRIMARY KEY, y int)");
    run(&mut a, "INSERT INTO a SELECT i, i % 2, i FROM generate_series(1, 100) i");
    run(&mut a, "INSERT INTO b SELECT i, i % 2 FROM generate_series(1, 40) i");
    run(&mut a, "INSERT INTO c SELECT i, i FROM generate_series(1, 100) i");
    run(&mut a, "ANALYZE");
    for (condition, answer) in [
        ("EXISTS (SELECT FROM c WHERE c.y > a.x + 40)", "1180"),
        ("(SELECT count(*) FROM c WHERE c.y > a.x) > 50", "980"),
        ("NOT EXISTS (SELECT FROM c WHERE c.y > a.x + 40)", "820"),
    ] {
        let query = format!("SELECT count(*) FROM b JOIN a USING (k) WHERE {condition}");
        let (rows, got) = looked_at(&mut a, &query);
        assert_eq!(got, [answer], "{query}");
        // Of 100 rows, each beside 100 of `c`, and a look when each begins; after the join 2,000 would be asked.
        assert!(rows < 80_000, "{query}: {rows} rows");
        // A join that narrows comes first.
        let query = format!("SELECT count(*) FROM b JOIN a ON a.id = b.id + 98 WHERE {condition}");
        let (rows, _) = looked_at(&mut a, &query);
        assert!(rows < 20_000, "{query}: {rows} rows");
    }
}

#[test]
fn a_subquery_of_the_select_list_is_asked_for_what_comes_out() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, x int)");
    run(&mut a, "INSERT INTO t SELECT i, i * 7919 % 500 FROM generate_series(1, 500) i");
    for (query, answer) in [
        ("SELECT id, (SELECT count(*) FROM t o WHERE o.x > t.x) FROM t ORDER BY x LIMIT 2", ["500|499", "179|498"]),
        ("SELECT (SELECT count(*) FROM t o WHERE o.x > t.x), id FROM t ORDER BY x DESC, 2 LIMIT 2", ["0|321", "1|142"]),
        (
            "SELECT x % 3, count(*), (SELECT count(*) FROM t o WHERE o.x > max(t.x) - 5) FROM t GROUP BY 1 ORDER BY 1 OFFSET 1 LIMIT 2",
            ["1|167|5", "2|166|7"],
        ),
    ] {
        let (rows, got) = looked_at(&mut a, query);
        assert_eq!(got, answer, "{query}");
        // Of every row it would be 250,000, and 128,000 for their beginnings.
        assert!(rows < 20_000, "{query}: {rows} rows");
    }
}
