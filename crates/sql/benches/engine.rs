//! CPU of the query engine, per statement: `cargo bench -p timeball-sql --bench engine`. The same statements run on PostgreSQL by `psql`
//! or `pgbench -f` over the tables that are printed first.

#![allow(missing_docs, clippy::disallowed_methods)]

#[path = "../tests/direct/world.rs"]
#[allow(dead_code)]
mod world;

use std::time::{Duration, Instant};
use world::World;

/// How long each statement is repeated.
const TIME: Duration = Duration::from_millis(700);

const SETUP: &[&str] = &[
    "CREATE TABLE posts (id int PRIMARY KEY, title text)",
    "CREATE TABLE likes (post_id int, user_id int, PRIMARY KEY (post_id, user_id))",
    "CREATE TABLE big (id int PRIMARY KEY, g int, n int, t text)",
    "INSERT INTO posts SELECT g, 'post ' || g FROM generate_series(1, 100) g",
    "INSERT INTO likes SELECT g % 100 + 1, g FROM generate_series(1, 1000) g",
    "INSERT INTO big SELECT g, g % 100, g % 7, 'row ' || g FROM generate_series(1, 100000) g",
];

const STATEMENTS: &[(&str, &str)] = &[
    (
        "posts and likes, all",
        "SELECT posts.id, posts.title, COUNT(*) FROM posts LEFT JOIN likes ON posts.id = likes.post_id GROUP BY posts.id \
         ORDER BY COUNT(*) DESC LIMIT 10",
    ),
    (
        "correlated exists",
        "SELECT count(*) FROM posts p WHERE EXISTS (SELECT 1 FROM likes l WHERE l.post_id = p.id AND l.user_id > 990)",
    ),
    ("lookup join", "SELECT b.t FROM (SELECT id * 7 AS k FROM posts WHERE id <= 10) p JOIN big b ON b.id = p.k"),
    ("group 100,000 rows", "SELECT g, count(*), sum(n), avg(n) FROM big GROUP BY g ORDER BY g"),
    ("filter 100,000 rows", "SELECT count(*) FROM big WHERE n = 3 AND t LIKE '%9%'"),
    ("hash join 100,000 rows", "SELECT count(*) FROM big b JOIN posts p ON p.id = b.g"),
    ("sort 100,000 rows", "SELECT id FROM big ORDER BY t DESC LIMIT 10"),
    ("window over 100,000 rows", "SELECT max(r) FROM (SELECT rank() OVER (PARTITION BY g ORDER BY n) AS r FROM big) x"),
];

fn main() {
    let world = World::new();
    for text in SETUP {
        println!("{text};");
        if let Err(error) = world.run(text) {
            println!("{error}");
            return;
        }
    }
    println!("{:<28} {:>12} {:>12}", "statement", "plan µs", "run µs");
    for (name, text) in STATEMENTS {
        let plan_us = mean_us(|| drop(world.prepare(text)));
        let plan = world.prepare(text).expect("plans");
        let run_us = mean_us(|| {
            let txn = world.begin();
            drop(world.execute(&txn, plan.as_ref(), Vec::new()));
        });
        println!("{name:<28} {plan_us:>12.1} {run_us:>12.1}");
    }
}

fn mean_us(mut f: impl FnMut()) -> f64 {
    f();
    let (start, mut count) = (Instant::now(), 0u32);
    while start.elapsed() < TIME {
        f();
        count += 1;
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}
