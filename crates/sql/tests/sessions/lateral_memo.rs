//! LATERAL that is asked once for the same values (decision 237): what it remembers is all that it gives, whatever stands above it.

use super::{open, run, session};
use sql::transaction::memory::MemoryKv;

const TABLES: &str = "CREATE TABLE o (k int, y int); INSERT INTO o SELECT g % 5, g % 7 FROM generate_series(1, 40) g; \
     CREATE TABLE a (k int); INSERT INTO a SELECT g % 6 FROM generate_series(1, 30) g; \
     CREATE TABLE t (id int PRIMARY KEY, k int, x int); INSERT INTO t SELECT g, g % 6, g % 50 FROM generate_series(1, 3000) g; \
     CREATE TABLE b (x int, y int); INSERT INTO b SELECT g % 50, g % 7 FROM generate_series(1, 100) g; \
     ANALYZE o; ANALYZE a; ANALYZE t; ANALYZE b";

/// The hash join above has another side for each row around it, and its filter thins what the LATERAL below gives.
#[test]
fn what_is_remembered_is_not_what_a_filter_above_let_through() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, TABLES);
    let inner = "a CROSS JOIN LATERAL (SELECT t.id, t.x FROM t WHERE t.k = a.k AND t.id < 300) z";
    let within = format!("({inner}) JOIN (SELECT * FROM b WHERE b.y = o.y) b ON b.x = z.x");
    for (text, answer) in [
        (format!("SELECT count(*) FROM o, LATERAL (SELECT a.k ak, z.id, z.x FROM {within}) q"), "17100"),
        (format!("SELECT sum((SELECT count(*) FROM {within})) FROM o"), "17100"),
        (format!("SELECT sum(n) FROM o, LATERAL (SELECT count(*) n FROM {within}) q"), "17100"),
    ] {
        assert_eq!(run(&mut a, &text), [answer], "{text}");
    }
}

/// A common table expression of the row around it is another one for each.
#[test]
fn what_reads_a_shared_query_of_the_row_around_it_is_not_taken_for_the_same() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, TABLES);
    for (text, answer) in [
        (
            "SELECT count(*), sum(q.n) FROM o, LATERAL (WITH c AS MATERIALIZED (SELECT b.x FROM b WHERE b.y = o.y) \
             SELECT n FROM a, LATERAL (SELECT count(*) n FROM c WHERE c.x % 6 = a.k) z) q",
            "1200|2860",
        ),
        (
            "SELECT count(*), sum(q.n) FROM o, LATERAL (WITH c AS (SELECT b.x FROM b WHERE b.y = o.y) \
             SELECT n FROM a, LATERAL (SELECT count(*) n FROM c c1, c c2 WHERE c1.x = c2.x AND c1.x % 6 = a.k) z) q",
            "1200|2860",
        ),
        (
            "SELECT count(*), sum(q.n) FROM o, LATERAL (WITH c AS MATERIALIZED (SELECT t.x FROM t WHERE t.id < 20 + o.y) \
             SELECT a.k, n FROM a, LATERAL (SELECT sum(c.x) n FROM c WHERE c.x < a.k) z) q",
            "1200|4000",
        ),
        (
            "SELECT count(*), sum(q.n) FROM o, LATERAL (WITH c AS MATERIALIZED (SELECT o.y v) \
             SELECT n FROM a, LATERAL (SELECT c.v * 10 + a.k n FROM c) z) q",
            "1200|39000",
        ),
    ] {
        assert_eq!(run(&mut a, text), [answer], "{text}");
    }
}
