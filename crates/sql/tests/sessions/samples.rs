//! What ANALYZE finds of a table that has more rows than a sample, small ones and large ones.

use super::{open, run, session};
use sql::transaction::memory::MemoryKv;

#[test]
fn rows_that_are_decoded_at_once_and_at_the_end_make_one_sample() {
    let db = open(MemoryKv::new());
    let mut session = session(&db);
    // A quarter is NULL, a quarter is larger than what is kept undecoded.
    let filler = "CASE g % 4 WHEN 0 THEN NULL WHEN 1 THEN repeat('large', 300) WHEN 2 THEN 'two' ELSE 'three' END";
    run(&mut session, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    for from in (0..40_000).step_by(10_000) {
        let rows = format!("SELECT g, {filler} FROM generate_series({from}, {}) g", from + 9_999);
        run(&mut session, &format!("INSERT INTO t {rows}"));
    }
    run(&mut session, "ANALYZE t");
    let found = "SELECT attname, n_distinct, round(null_frac::numeric, 1), round(null_frac::numeric, 2) BETWEEN 0.23 AND 0.27 \
                 FROM pg_stats WHERE tablename = 't' ORDER BY 1";
    let found = run(&mut session, found);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("a|-1|0.0|"), "{found:?}");
    assert!(found[1].starts_with("b|3|") && found[1].ends_with("|t"), "{found:?}");
}
