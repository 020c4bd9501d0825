//! CPU of queries over big scans, per statement, milliseconds of the thread: `cargo bench -p timeball-sql --bench engine [rounds]`. The
//! store below costs next to nothing, so this is what planning, decoding and running rows cost. The same statements run on PostgreSQL
//! over the tables that are printed first: docs/benchmarks/scans.md.

#![allow(missing_docs, clippy::disallowed_methods)]

#[path = "../tests/direct/free.rs"]
mod free;
#[path = "../tests/direct/world.rs"]
#[allow(dead_code)]
mod world;

use free::{Free, cpu_ns};
use sql::plan::Execution;
use sql::transaction::TxnRef;
use std::hint::black_box;
use world::World;

const TABLES: &[&str] = &[
    "CREATE TABLE posts (id int PRIMARY KEY, title text)",
    "CREATE TABLE likes (post_id int, user_id int, PRIMARY KEY (post_id, user_id))",
    "CREATE TABLE big (id int PRIMARY KEY, g int, n int, t text)",
];

const ROWS: &[&str] = &[
    "INSERT INTO posts SELECT g, 'post ' || g FROM generate_series(1, 100) g",
    "INSERT INTO likes SELECT g % 100 + 1, g FROM generate_series(1, 1000) g",
    "INSERT INTO big SELECT g, g % 100, g % 7, 'row ' || g FROM generate_series(1, 100000) g",
];

const STATEMENTS: &[(&str, &str)] = &[
    ("count", "SELECT count(*) FROM (SELECT id FROM big OFFSET 0) x"),
    ("group, direct path", "SELECT g, count(*), sum(n), avg(n) FROM big GROUP BY g ORDER BY g"),
    ("group", "SELECT g, count(*), sum(n) FILTER (WHERE n > 1), avg(n) FROM big GROUP BY g ORDER BY g"),
    ("group by text", "SELECT t, count(*) FILTER (WHERE n > 1) FROM big GROUP BY t"),
    ("aggregates", "SELECT count(*), sum(n) FILTER (WHERE g > 1), min(t), max(id), stddev(n) FROM big"),
    ("count distinct", "SELECT count(DISTINCT t) FROM big"),
    ("filter", "SELECT count(*) FROM (SELECT t FROM big WHERE n = 3 AND t LIKE '%9%' OFFSET 0) x"),
    ("selective filter", "SELECT * FROM (SELECT id, g, t FROM big OFFSET 0) x WHERE g = 5 AND id % 7 = 1"),
    ("hash join, 100 rows", "SELECT count(*) FROM (SELECT g FROM big OFFSET 0) b JOIN posts p ON p.id = b.g"),
    ("hash join, 100,000 rows", "SELECT count(*) FROM (SELECT id FROM big OFFSET 0) a JOIN big b ON b.id = a.id"),
    ("in a subquery", "SELECT count(*) FROM big WHERE g IN (SELECT id FROM posts WHERE id < 50 OFFSET 0)"),
    ("sort", "SELECT count(*) FROM (SELECT id, t FROM big ORDER BY t DESC OFFSET 0) x"),
    ("sort by two", "SELECT count(*) FROM (SELECT id FROM big ORDER BY g, n DESC OFFSET 0) x"),
    ("top 10", "SELECT id, t FROM (SELECT * FROM big OFFSET 0) x ORDER BY t DESC LIMIT 10"),
    ("distinct", "SELECT DISTINCT g, n FROM (SELECT * FROM big OFFSET 0) x"),
    ("union", "SELECT count(*) FROM (SELECT g, t FROM big UNION SELECT n, t FROM big) x"),
    (
        "union all, group, top 5",
        "SELECT g, count(*), max(t) FROM (SELECT g, t FROM big WHERE n > 1 UNION ALL SELECT g, t FROM big WHERE n < 4) x \
         GROUP BY g ORDER BY 2 DESC, 1 LIMIT 5",
    ),
    ("except", "SELECT count(*) FROM (SELECT id FROM big EXCEPT SELECT id FROM big WHERE n = 1) x"),
    ("window", "SELECT max(r) FROM (SELECT rank() OVER (PARTITION BY g ORDER BY n) AS r FROM big) x"),
    (
        "correlated exists, 100 rows",
        "SELECT count(*) FROM posts p WHERE EXISTS (SELECT 1 FROM likes l WHERE l.post_id = p.id AND l.user_id > 990)",
    ),
];

fn main() {
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(5usize);
    let (world, txn) = (World::new(), TxnRef::new(Box::new(Free::default())));
    for text in TABLES {
        world.run(text).expect("creates");
    }
    for text in ROWS {
        world.run_in(&txn, text, Vec::new()).expect("inserts");
    }
    TABLES.iter().chain(ROWS).for_each(|text| println!("{text};"));
    for (name, text) in STATEMENTS {
        let plan = world.prepare(text).expect("plans");
        let mut times: Vec<f64> = (0..rounds)
            .map(|_| {
                let start = cpu_ns();
                let context = world.context(&txn, Vec::new());
                if let Execution::Rows(mut rows) = plan.execute(&context).expect("runs") {
                    while !black_box(rows.next(1024).expect("runs")).is_empty() {}
                }
                (cpu_ns() - start) / 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name:<28} {:>9.2} ms  -- {text}", times[rounds / 2]);
    }
}
