//! CPU per execution of the hot statements, over a store that costs next to nothing: `cargo bench -p timeball-sql
//! --bench direct`. A figure is the median of rounds, nanoseconds of the thread's CPU time.
#![allow(missing_docs)]

#[path = "../tests/direct/world.rs"]
#[allow(dead_code)]
mod world;

#[path = "../tests/direct/free.rs"]
mod free;

use bytes::Bytes;
use free::{Free, cpu_ns};
use sql::plan::{Execution, Plan};
use sql::transaction::TxnRef;
use sql::types::Value;
use std::hint::black_box;
use std::sync::Arc;
use world::World;

const ROUNDS: usize = 15;
const RUNS: usize = 20_000;

fn measure(name: &str, mut run: impl FnMut(usize)) {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let start = cpu_ns();
            (0..RUNS).for_each(|i| run(round * RUNS + i));
            (cpu_ns() - start) / RUNS as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<44} {:>8.0} ns", times[ROUNDS / 2]);
}

fn main() {
    let world = World::new();
    for text in [
        "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))",
        "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
        "CREATE TABLE sbtest1 (id int PRIMARY KEY, k int, c char(120), pad char(60))",
        "CREATE INDEX k_1 ON sbtest1 (k)",
    ] {
        world.run(text).unwrap();
    }
    let txn = TxnRef::new(Box::new(Free::default()));
    for i in 1..=1000 {
        let text = format!("INSERT INTO pgbench_accounts VALUES ({i}, 1, 0, 'x')");
        world.run_in(&txn, &text, Vec::new()).unwrap();
        world.run_in(&txn, &format!("INSERT INTO sbtest1 VALUES ({i}, {i}, 'c', 'p')"), Vec::new()).unwrap();
    }
    let prepare = |text: &str| world.prepare(text).unwrap();
    let run = |plan: &Arc<dyn Plan>, params: Vec<Value>| {
        let context = world.context(&txn, params);
        match plan.execute(&context).unwrap() {
            Execution::Rows(mut rows) => while !black_box(rows.next(1024).unwrap()).is_empty() {},
            done => {
                black_box(done);
            }
        }
    };
    let id = |i: usize| Value::Int4((i * 7919 % 1000 + 1) as i32);

    measure("context alone", |_| {
        black_box(world.context(&txn, vec![Value::Int4(1)]));
    });
    let key = Bytes::from_static(&[0; 9]);
    measure("get of the store alone", |_| {
        black_box(txn.with(|txn| txn.get(&key))).unwrap();
    });
    let plan = prepare("SELECT abalance FROM pgbench_accounts WHERE aid = $1");
    measure("pgbench select", |i| run(&plan, vec![id(i)]));
    let plan = prepare("UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2");
    measure("pgbench update", |i| run(&plan, vec![Value::Int4(5), id(i)]));
    let plan = prepare(
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, '2026-01-01 00:00:00')",
    );
    measure("pgbench insert into history", |i| {
        run(&plan, vec![Value::Int4(1), Value::Int4(1), id(i), Value::Int4(5)]);
    });
    let plan = prepare("SELECT c FROM sbtest1 WHERE id = $1");
    measure("sysbench point select", |i| run(&plan, vec![id(i)]));
    let plan = prepare("UPDATE sbtest1 SET k = k + 1 WHERE id = $1");
    measure("sysbench update_index", |i| run(&plan, vec![id(i)]));
    let plan = prepare("SELECT sum(k) FROM sbtest1 WHERE id BETWEEN $1 AND $2");
    let range = |i: usize| vec![Value::Int4((i % 900) as i32), Value::Int4((i % 900) as i32 + 99)];
    measure("sysbench sum range (100 rows)", |i| {
        if i % 20 == 0 {
            run(&plan, range(i))
        }
    });
    let plan = prepare("SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c");
    measure("sysbench order range (100 rows), of 20", |i| {
        if i % 20 == 0 {
            run(&plan, range(i))
        }
    });
    let mut inserter = world.inserter("pgbench_accounts");
    let mut next = 1_000_000;
    measure("COPY, a row, in batches of 1000", |i| {
        if i % 1000 == 0 {
            let rows = (0..1000)
                .map(|_| {
                    next += 1;
                    vec![Value::Int4(next), Value::Int4(1), Value::Int4(0), Value::Text("x".into())]
                })
                .collect();
            inserter.insert(&world.context(&txn, Vec::new()), rows).unwrap();
        }
    });
}
