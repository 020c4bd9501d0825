//! `kill -9` in the middle of concurrent commits. The clients keep their own book: nothing that was acknowledged is lost, and
//! nothing is applied by half.
//!
//! Each writer numbers its transactions. One transaction writes a row into each of two tables, whose ranges are split apart, and
//! moves the writer's counter: a one-range commit and a many-range commit would each show their halves. After a restart
//! the store must hold, for each writer, exactly `1..=m` in both tables and `m` in its counter, with `m` the last
//! acknowledged number or the one that was under way.

use crate::node::{Node, Scratch, repeat_with};
use postgres::Client;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicU64, Ordering};

const ROUNDS: u32 = 20;
const WRITERS: usize = 6;
/// Seed of the moments at which the node dies.
const SEED: u64 = 20;

/// What a writer knows: the last number acknowledged.
type Book = [i32; WRITERS];

fn create(client: &mut Client) {
    client
        .batch_execute(
            "CREATE TABLE lefts (writer int4, n int4, PRIMARY KEY (writer, n));
             CREATE TABLE rights (writer int4, n int4, filler text, PRIMARY KEY (writer, n));
             CREATE TABLE counters (writer int4 PRIMARY KEY, n int4 NOT NULL);
             ALTER TABLE rights SPLIT AT VALUES (0, 0), (3, 0)",
        )
        .unwrap();
    for writer in 0..WRITERS as i32 {
        client.execute("INSERT INTO counters VALUES ($1, 0)", &[&writer]).unwrap();
    }
}

/// One numbered transaction. Odd writers stay in one range: they leave the right table alone.
fn commit(client: &mut Client, writer: i32, n: i32) -> Result<(), postgres::Error> {
    let mut txn = client.transaction()?;
    txn.execute("INSERT INTO lefts VALUES ($1, $2)", &[&writer, &n])?;
    if writer % 2 == 0 {
        txn.execute("INSERT INTO rights VALUES ($1, $2, $3)", &[&writer, &n, &"x".repeat(n as usize % 3000)])?;
    }
    txn.execute("UPDATE counters SET n = $2 WHERE writer = $1", &[&writer, &n])?;
    txn.commit()
}

/// Commits until the node dies under it; gives the last number acknowledged.
fn write(mut client: Client, writer: i32, mut acknowledged: i32, total: &AtomicU64) -> i32 {
    while commit(&mut client, writer, acknowledged + 1).is_ok() {
        acknowledged += 1;
        total.fetch_add(1, Ordering::SeqCst);
    }
    acknowledged
}

/// Compares the store with the book, and brings the book up to what was under way.
fn check(client: &mut Client, book: &mut Book, round: u32) {
    for (writer, acknowledged) in book.iter_mut().enumerate() {
        let id = writer as i32;
        let numbers = |client: &mut Client, table: &str| -> Vec<i32> {
            let text = format!("SELECT n FROM {table} WHERE writer = $1 ORDER BY n");
            client.query(&text, &[&id]).unwrap().iter().map(|r| r.get(0)).collect()
        };
        let lefts = numbers(client, "lefts");
        let m = lefts.len() as i32;
        let context = format!("round {round}, writer {writer}, acknowledged {acknowledged}");
        assert_eq!(lefts, (1..=m).collect::<Vec<_>>(), "{context}: lefts have a hole");
        assert!(m == *acknowledged || m == *acknowledged + 1, "{context}: the store has {m}");
        if writer % 2 == 0 {
            assert_eq!(numbers(client, "rights"), lefts, "{context}: half of a transaction");
        }
        let counter: i32 = client.query_one("SELECT n FROM counters WHERE writer = $1", &[&id]).unwrap().get(0);
        assert_eq!(counter, m, "{context}: half of a transaction");
        *acknowledged = m;
    }
}

#[test]
fn kill_nine() {
    repeat_with("crash::kill_nine");
    let scratch = Scratch::new();
    let store = scratch.path().join("store");
    let mut rng = SmallRng::seed_from_u64(SEED);
    let mut book: Book = [0; WRITERS];
    let mut node = Node::start(&store, &[]);
    create(&mut node.connect());
    for round in 1..=ROUNDS {
        let enough = rng.random_range(5..120);
        let clients: Vec<Client> = (0..WRITERS).map(|_| node.connect()).collect();
        let total = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let total = &total;
            let writers: Vec<_> = clients
                .into_iter()
                .zip(book)
                .enumerate()
                .map(|(i, (client, acknowledged))| scope.spawn(move || write(client, i as i32, acknowledged, total)))
                .collect();
            crate::node::until("enough commits", || {
                let all_gave_up = writers.iter().all(|w| w.is_finished());
                (total.load(Ordering::SeqCst) >= enough || all_gave_up).then_some(())
            });
            node.kill();
            for (known, writer) in book.iter_mut().zip(writers) {
                *known = writer.join().unwrap();
            }
        });
        assert!(total.load(Ordering::SeqCst) >= enough, "the writers gave up before the node died");
        node = Node::start(&store, &[]);
        check(&mut node.connect(), &mut book, round);
    }
    eprintln!("{ROUNDS} kills, {} transactions kept", book.iter().sum::<i32>());
}
