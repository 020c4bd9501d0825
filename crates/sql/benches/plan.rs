//! CPU of planning short statements, nanoseconds of the thread: `cargo bench -p timeball-sql --bench plan`. Beside what [`sql::plan::prepare`] takes
//! stands what the engine's own planning of the same text takes, where it plans it.
#![allow(missing_docs, clippy::disallowed_methods)]

#[path = "../tests/direct/free.rs"]
#[allow(dead_code)]
mod free;
#[path = "../tests/direct/world.rs"]
#[allow(dead_code)]
mod world;

use free::cpu_ns;
use sql::{engine, plan};
use std::hint::black_box;
use world::{World, parse};

const ROUNDS: usize = 15;
const RUNS: usize = 2_000;

const TABLES: &[&str] = &[
    "CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))",
    "CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
    "CREATE TABLE sbtest1 (id int PRIMARY KEY, k int, c char(120), pad char(60))",
    "CREATE INDEX k_1 ON sbtest1 (k)",
];

const STATEMENTS: &[&str] = &[
    "SELECT abalance FROM accounts WHERE aid = 4711",
    "SELECT c FROM sbtest1 WHERE id BETWEEN 10 AND 20 ORDER BY c",
    "SELECT sum(k) FROM sbtest1 WHERE id BETWEEN 10 AND 20",
    "SELECT k, count(*) FROM sbtest1 WHERE id < 10 GROUP BY k ORDER BY k",
    "SELECT a.aid, s.c FROM accounts a JOIN sbtest1 s ON s.id = a.bid WHERE a.aid = 1",
    "UPDATE accounts SET abalance = abalance + 17 WHERE aid = 4711",
    "INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (1, 2, 3, 4, CURRENT_TIMESTAMP)",
    "DELETE FROM accounts WHERE aid = 4711",
];

fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = cpu_ns();
            (0..RUNS).for_each(|_| run());
            (cpu_ns() - start) / RUNS as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn main() {
    let world = World::new();
    TABLES.iter().for_each(|text| {
        world.run(text).unwrap();
    });
    let context = world.plan_context();
    for text in STATEMENTS {
        let statement = parse(text);
        let whole = median(|| drop(black_box(plan::prepare(&statement, text, &context))));
        let engine = match engine::prepare(&statement, text, &context) {
            Ok(_) => format!("{:>8.0} ns", median(|| drop(black_box(engine::prepare(&statement, text, &context))))),
            Err(_) => "          -".into(),
        };
        println!("{whole:>8.0} ns, engine {engine}  -- {text}");
    }
}
