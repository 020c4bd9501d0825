//! The workers of a soak: each does one thing, over and over, until it is told to stop.

use lab::client::{Client, ClientError, Url};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows that are updated.
const ROWS: u64 = 100_000;
/// Rows of one COPY.
const COPY_ROWS: u64 = 200_000;
/// Connections that come and go together.
const CROWD: usize = 200;
/// Statements of each of them.
const CROWD_STATEMENTS: u64 = 5;
/// SQLSTATEs that say to run the statement again.
const REPEAT: [&str; 3] = ["40001", "40P01", "55P03"];
const OUT_OF_MEMORY: &str = "53200";

/// What a worker came to.
#[derive(Debug, Default)]
pub struct Done {
    /// Statements that worked.
    pub done: u64,
    /// For want of memory.
    pub refused: u64,
    /// Conflicts.
    pub repeated: u64,
    /// What was said of want of memory, without its numbers, and how often.
    pub reasons: BTreeMap<String, u64>,
}

/// One worker.
pub struct Worker {
    pub name: &'static str,
    round: fn(&mut Hand<'_>) -> Result<(), ClientError>,
}

/// All that work at the same time.
pub const WORKERS: [Worker; 8] = [
    Worker { name: "updates 1", round: update },
    Worker { name: "updates 2", round: update },
    Worker { name: "updates 3", round: update },
    Worker { name: "COPY", round: copy },
    Worker { name: "sorts", round: sort },
    Worker { name: "hashes", round: hash },
    Worker { name: "deletes", round: delete },
    Worker { name: "crowd", round: crowd },
];

/// Makes the tables.
pub fn prepare(url: &str) -> Result<(), String> {
    let make = format!(
        "CREATE TABLE hot (id int PRIMARY KEY, k int NOT NULL, c text NOT NULL); CREATE INDEX hot_k ON hot (k); \
         CREATE TABLE loaded (id int PRIMARY KEY, pad text NOT NULL); CREATE TABLE halved (id int PRIMARY KEY, pad text NOT NULL); \
         INSERT INTO hot SELECT g, g, repeat('x', 100) FROM generate_series(1, {ROWS}) g"
    );
    let failed = |e: ClientError| format!("making the tables: {e}");
    Client::connect(&Url::parse(url).map_err(failed)?).and_then(|mut client| client.query(&make)).map_err(failed)?;
    Ok(())
}

/// A worker's connection, its numbers and its count.
struct Hand<'a> {
    url: Url,
    client: Client,
    stop: &'a AtomicBool,
    next: u64,
    done: Done,
}

impl Worker {
    /// Works until it is told to stop. An error that is neither a conflict nor want of memory ends it.
    pub fn run(&self, url: &str, stop: &AtomicBool) -> Result<Done, String> {
        let url = Url::parse(url).map_err(|e| e.to_string())?;
        let client = Client::connect(&url).map_err(|e| e.to_string())?;
        // Each worker has its own numbers, the same in every run.
        let seed = self.name.bytes().fold(0u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut hand = Hand { url, client, stop, next: seed | 1, done: Done::default() };
        while !stop.load(Ordering::Relaxed) {
            (self.round)(&mut hand).map_err(|e| e.to_string())?;
        }
        Ok(hand.done)
    }
}

impl Hand<'_> {
    /// A number below `below`.
    fn number(&mut self, below: u64) -> u64 {
        // Marsaglia's xorshift: any spread will do.
        self.next ^= self.next << 13;
        self.next ^= self.next >> 7;
        self.next ^= self.next << 17;
        self.next % below
    }

    fn count(&mut self, result: Result<(), ClientError>) -> Result<(), ClientError> {
        match result {
            Ok(()) => self.done.done += 1,
            Err(ClientError::Server(e)) if e.code == OUT_OF_MEMORY => {
                self.done.refused += 1;
                let words: Vec<_> = e.message.split_whitespace().filter(|word| word.parse::<u64>().is_err()).collect();
                *self.done.reasons.entry(words.join(" ")).or_default() += 1;
            }
            Err(ClientError::Server(e)) if REPEAT.contains(&e.code.as_str()) => self.done.repeated += 1,
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn statement(&mut self, sql: &str) -> Result<(), ClientError> {
        let result = self.client.query(sql).map(|_| ());
        self.count(result)
    }
}

fn update(hand: &mut Hand<'_>) -> Result<(), ClientError> {
    let id = hand.number(ROWS) + 1;
    let column = if hand.number(2) == 0 { "k = k + 1" } else { "c = md5(c) || repeat('y', 68)" };
    hand.statement(&format!("UPDATE hot SET {column} WHERE id = {id}"))
}

fn copy(hand: &mut Hand<'_>) -> Result<(), ClientError> {
    hand.statement("TRUNCATE loaded")?;
    let rows: String = (1..=COPY_ROWS).map(|id| format!("{id}\t{id:0100}\n")).collect();
    let mut refused = None;
    hand.client.copy_events("COPY loaded FROM STDIN", &mut Cursor::new(rows), |event| {
        if let lab::client::Event::Error(e) = event {
            refused = Some(e);
        }
    })?;
    hand.count(refused.map_or(Ok(()), |e| Err(ClientError::Server(Box::new(e)))))
}

/// Some fit into a statement's memory, some do not.
fn sort(hand: &mut Hand<'_>) -> Result<(), ClientError> {
    let rows = 10_000 + hand.number(2_000_000);
    hand.statement(&format!(
        "SELECT count(*) FROM (SELECT g, md5(g::text) AS m FROM generate_series(1, {rows}) g ORDER BY m OFFSET 1) q"
    ))
}

fn hash(hand: &mut Hand<'_>) -> Result<(), ClientError> {
    let groups = 1_000 + hand.number(1_000_000);
    hand.statement(&format!(
        "SELECT count(*) FROM (SELECT md5(g::text), count(*) FROM generate_series(1, {groups}) g GROUP BY 1) q"
    ))
}

fn delete(hand: &mut Hand<'_>) -> Result<(), ClientError> {
    let rows = 1_000 + hand.number(100_000);
    hand.statement(&format!(
        "INSERT INTO halved SELECT g, repeat('z', 80) FROM generate_series(1, {rows}) g ON CONFLICT DO NOTHING"
    ))?;
    hand.statement("DELETE FROM halved WHERE id % 2 = 0")?;
    hand.statement("DELETE FROM halved")
}

fn crowd(hand: &mut Hand<'_>) -> Result<(), ClientError> {
    let mut crowd = Vec::with_capacity(CROWD);
    while crowd.len() < CROWD && !hand.stop.load(Ordering::Relaxed) {
        crowd.push(Client::connect(&hand.url)?);
    }
    for _ in 0..CROWD_STATEMENTS {
        for client in &mut crowd {
            let (id, message) = (hand.number(ROWS) + 1, 1 + hand.number(300_000));
            let sql = format!("SELECT *, length('{}') FROM hot WHERE id = {id}", "m".repeat(message as usize));
            let result = client.query(&sql).map(|_| ());
            hand.count(result)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn workers_differ_by_name() {
        let names: BTreeSet<&str> = WORKERS.iter().map(|worker| worker.name).collect();
        assert_eq!(names.len(), WORKERS.len());
    }
}
