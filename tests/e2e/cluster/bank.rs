//! A bank in four ranges, with tellers and auditors at all nodes, while leaders die: the total never changes.

use super::again;
use super::histories::rounds;
use super::nodes::{Nodes, Urls};
use crate::node::{Scratch, is_gone, repeat_with, state, until};
use postgres::{Client, NoTls};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

const ACCOUNTS: i32 = 40;
const OPENING: i64 = 100;
/// Audits and transfers at each node after which it is taken to serve.
const SERVES: u64 = 5;

struct Bank {
    urls: Urls,
    level: &'static str,
    open: AtomicBool,
    /// By node.
    transfers: Vec<AtomicU64>,
    audits: Vec<AtomicU64>,
}

/// Lets the clients end, also by a panic of whoever breaks things.
struct Closing<'a>(&'a Bank);
impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.open.store(false, SeqCst);
    }
}

impl Bank {
    /// Does the same again and again, with a connection as long as it lasts.
    fn run(&self, at: usize, done: &AtomicU64, mut work: impl FnMut(&mut Client) -> Result<(), postgres::Error>) {
        let mut client: Option<Client> = None;
        while self.open.load(SeqCst) {
            let url = self.urls.lock().unwrap()[at].clone();
            let Some(open) = client.as_mut().filter(|client| !client.is_closed()) else {
                client = url.and_then(|url| Client::connect(&url, NoTls).ok());
                if client.is_none() {
                    std::thread::sleep(Duration::from_millis(20)); // poll: the node is down, or does not serve
                }
                continue;
            };
            match work(open) {
                Ok(()) => drop(done.fetch_add(1, SeqCst)),
                Err(e) if is_gone(&e) || state(&e) == "57P01" => client = None,
                // Whether it took place or not, the total is the same.
                Err(e) if again(&e) || state(&e) == "40003" => drop(open.batch_execute("ROLLBACK")),
                Err(e) => panic!("{e}: {:?}", e.as_db_error()),
            }
        }
    }

    fn transfer(&self, client: &mut Client, rng: &mut SmallRng) -> Result<(), postgres::Error> {
        let from = rng.random_range(0..ACCOUNTS);
        let to = (from + rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let amount = rng.random_range(1..30);
        client.batch_execute(&format!("BEGIN ISOLATION LEVEL {}", self.level))?;
        let balance = "SELECT balance FROM accounts WHERE id = $1";
        let a: i64 = client.query_one(balance, &[&from])?.get(0);
        let b: i64 = client.query_one(balance, &[&to])?.get(0);
        if a >= amount {
            let set = "UPDATE accounts SET balance = $2 WHERE id = $1";
            client.execute(set, &[&from, &(a - amount)])?;
            client.execute(set, &[&to, &(b + amount)])?;
        }
        client.batch_execute("COMMIT")
    }

    fn audit(&self, client: &mut Client) -> Result<(), postgres::Error> {
        client.batch_execute(&format!("BEGIN ISOLATION LEVEL {}", self.level))?;
        let rows = client.query("SELECT balance FROM accounts ORDER BY id", &[])?;
        client.batch_execute("COMMIT")?;
        let sum: i64 = rows.iter().map(|row| row.get::<_, i64>(0)).sum();
        assert_eq!((rows.len(), sum), (ACCOUNTS as usize, i64::from(ACCOUNTS) * OPENING));
        Ok(())
    }

    /// Waits until nodes have moved money and audited.
    fn served_at(&self, nodes: &[usize]) {
        let done = |at: &usize| [self.transfers[*at].load(SeqCst), self.audits[*at].load(SeqCst)];
        let before: Vec<[u64; 2]> = nodes.iter().map(done).collect();
        until("the nodes serve", || {
            assert!(self.open.load(SeqCst), "a client found something wrong");
            let more =
                |(at, before): (&usize, &[u64; 2])| done(at).iter().zip(before).all(|(now, b)| *now >= b + SERVES);
            nodes.iter().zip(&before).all(more).then_some(())
        });
    }
}

fn run_bank(level: &'static str) {
    let scratch = Scratch::new();
    let mut nodes = Nodes::found(scratch.path(), 3);
    let mut client = nodes.at(0).connect();
    client.batch_execute("CREATE TABLE accounts (id int4 PRIMARY KEY, balance int8 NOT NULL)").unwrap();
    client.batch_execute("ALTER TABLE accounts SPLIT AT VALUES (10), (20), (30)").unwrap();
    let open = format!("INSERT INTO accounts SELECT g, {OPENING} FROM generate_series(0, {}) g", ACCOUNTS - 1);
    client.batch_execute(&open).unwrap();
    let counts = || (0..3).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let bank = Bank { urls: nodes.urls(), level, open: AtomicBool::new(true), transfers: counts(), audits: counts() };
    std::thread::scope(|scope| {
        let bank = &bank;
        for at in 0..3 {
            for teller in 0..2 {
                let mut rng = SmallRng::seed_from_u64(at as u64 * 10 + teller);
                scope.spawn(move || {
                    let closing = Closing(bank);
                    closing.0.run(at, &bank.transfers[at], |client| bank.transfer(client, &mut rng));
                });
            }
            scope.spawn(move || {
                let closing = Closing(bank);
                closing.0.run(at, &bank.audits[at], |client| bank.audit(client));
            });
        }
        let _closing = Closing(bank);
        bank.served_at(&[0, 1, 2]);
        for _ in 0..rounds() {
            let leader = nodes.leader();
            nodes.kill(leader);
            bank.served_at(&[(leader + 1) % 3, (leader + 2) % 3]);
            nodes.restart(leader);
            bank.served_at(&[0, 1, 2]);
        }
    });
    until("the last audit", || bank.audit(&mut nodes.at(1).connect()).ok());
}

#[test]
fn the_total_holds_at_serializable() {
    repeat_with("cluster::bank::the_total_holds_at_serializable");
    run_bank("SERIALIZABLE");
}

#[test]
fn the_total_holds_at_repeatable_read() {
    repeat_with("cluster::bank::the_total_holds_at_repeatable_read");
    run_bank("REPEATABLE READ");
}
