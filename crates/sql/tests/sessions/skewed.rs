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
