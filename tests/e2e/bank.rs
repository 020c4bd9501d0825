//! A bank whose accounts lie in several ranges: transfers move money, the total never changes.

use crate::node::{Node, Scratch, repeat_with, state};
use postgres::Client;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const ACCOUNTS: i32 = 40;
const OPENING: i64 = 100;
const TELLERS: u64 = 6;
const TRANSFERS: u32 = 60;
/// Audits that must have happened while money moved.
const AUDITS: u32 = 10;

/// Lets the tellers end when the auditor ends, also by a panic.
struct Enough<'a>(&'a AtomicU32);
impl Drop for Enough<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(AUDITS, Ordering::SeqCst);
        }
    }
}

/// Moves money; `false`: the transaction is to be run again.
fn transfer(client: &mut Client, level: &str, from: i32, to: i32, amount: i64) -> Result<bool, postgres::Error> {
    let run = |client: &mut Client| -> Result<(), postgres::Error> {
        client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}"))?;
        let balance = "SELECT balance FROM accounts WHERE id = $1";
        let a: i64 = client.query_one(balance, &[&from])?.get(0);
        let b: i64 = client.query_one(balance, &[&to])?.get(0);
        if a >= amount {
            let set = "UPDATE accounts SET balance = $2 WHERE id = $1";
            client.execute(set, &[&from, &(a - amount)])?;
            client.execute(set, &[&to, &(b + amount)])?;
        }
        client.batch_execute("COMMIT")
    };
    match run(client) {
        Ok(()) => Ok(true),
        Err(e) if matches!(state(&e), "40001" | "40P01") => {
            client.batch_execute("ROLLBACK")?;
            Ok(false)
        }
        Err(e) => Err(e),
    }
}

fn total(client: &mut Client, level: &str) -> Option<i64> {
    let mut run = || -> Result<i64, postgres::Error> {
        client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}"))?;
        let rows = client.query("SELECT balance FROM accounts ORDER BY id", &[])?;
        assert_eq!(rows.len(), ACCOUNTS as usize);
        let sum = rows.iter().map(|r| r.get::<_, i64>(0)).sum();
        client.batch_execute("COMMIT")?;
        Ok(sum)
    };
    match run() {
        Ok(sum) => Some(sum),
        Err(e) if state(&e) == "40001" => {
            client.batch_execute("ROLLBACK").unwrap();
            None
        }
        Err(e) => panic!("{e}: {:?}", e.as_db_error()),
    }
}

fn run_bank(level: &str) {
    let scratch = Scratch::new();
    let node = Node::start(&scratch.path().join("store"), &[]);
    let mut auditor = node.connect();
    auditor.batch_execute("CREATE TABLE accounts (id int4 PRIMARY KEY, balance int8 NOT NULL)").unwrap();
    auditor.batch_execute("ALTER TABLE accounts SPLIT AT VALUES (10), (20), (30)").unwrap();
    for id in 0..ACCOUNTS {
        auditor.execute("INSERT INTO accounts VALUES ($1, $2)", &[&id, &OPENING]).unwrap();
    }
    let (open, audited) = (&AtomicBool::new(true), &AtomicU32::new(0));
    let (moved, audits) = std::thread::scope(|scope| {
        let tellers: Vec<_> = (0..TELLERS)
            .map(|seed| {
                let mut client = node.connect();
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed);
                    let mut moved = 0;
                    // Money keeps moving until the auditor has looked often enough while it did: audits of a bank at rest show nothing.
                    while moved < TRANSFERS || audited.load(Ordering::SeqCst) < AUDITS {
                        let from = rng.random_range(0..ACCOUNTS);
                        let to = (from + rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
                        let amount = rng.random_range(1..30);
                        while !transfer(&mut client, level, from, to, amount).unwrap() {}
                        moved += 1;
                    }
                    moved
                })
            })
            .collect();
        let auditing = scope.spawn(|| {
            // However it ends, the tellers must not wait for audits that never come.
            let enough = Enough(audited);
            while open.load(Ordering::SeqCst) {
                if let Some(sum) = total(&mut auditor, level) {
                    let audits = enough.0.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(sum, i64::from(ACCOUNTS) * OPENING, "after {audits} audits");
                }
            }
            enough.0.load(Ordering::SeqCst)
        });
        let moved: u32 = tellers.into_iter().map(|t| t.join().unwrap()).sum();
        open.store(false, Ordering::SeqCst);
        (moved, auditing.join().unwrap())
    });
    assert!(moved >= TELLERS as u32 * TRANSFERS, "{moved} transfers");
    assert!(audits >= AUDITS, "{audits} audits while money moved");
    let sum = (0..100).find_map(|_| total(&mut node.connect(), level));
    assert_eq!(sum, Some(i64::from(ACCOUNTS) * OPENING));
    eprintln!("{level}: {moved} transfers, {audits} audits");
}

#[test]
fn the_total_holds_at_serializable() {
    repeat_with("bank::the_total_holds_at_serializable");
    run_bank("SERIALIZABLE");
}

#[test]
fn the_total_holds_at_repeatable_read() {
    repeat_with("bank::the_total_holds_at_repeatable_read");
    run_bank("REPEATABLE READ");
}
