//! 002 section 5.1: YCSB's rows of about a kilobyte, 60 % inserts, 20 % updates, 20 % reads of single rows.
//!
//! The document names neither the number of rows nor how keys are drawn: here they are uniform. Several runs may share one value of this type and
//! one table: the keys of inserts are drawn from it, so that no two are the same.

use super::{Progress, Workload};
use crate::client::{Client, ClientError};
use rand::Rng;
use rand::rngs::SmallRng;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows of one INSERT while loading.
const BATCH_ROWS: u32 = 100;
/// Of a hundred operations: inserts, and updates after them; the others read.
const INSERTS: u32 = 60;
const UPDATES: u32 = 20;
/// Bytes of a row's value: YCSB has ten fields of a hundred.
const VALUE_BYTES: usize = 1_000;
/// An odd number: multiplied by it, successive numbers lie far apart and stay different.
const SCATTER: u32 = 0x9e37_79b1;

/// The workload.
#[derive(Debug)]
pub struct Rows {
    rows: u32,
    next: AtomicU32,
    value: String,
}

impl Rows {
    /// A table of so many rows at the start.
    pub fn new(rows: u32) -> Self {
        let letter = |n: usize| char::from(b'a' + (n * n % 26) as u8);
        Rows { rows, next: AtomicU32::new(rows), value: (0..VALUE_BYTES).map(letter).collect() }
    }

    /// The key of the nth row.
    fn key(n: u32) -> String {
        n.wrapping_mul(SCATTER).to_string()
    }
}

impl Workload for Rows {
    fn name(&self) -> &'static str {
        "rows"
    }
    fn operations(&self) -> &'static [&'static str] {
        &["insert", "update", "read"]
    }

    fn load(&self, client: &mut Client, _rng: &mut SmallRng, progress: &mut Progress<'_>) -> Result<(), ClientError> {
        client.query("DROP TABLE IF EXISTS usertable")?;
        client.query("CREATE TABLE usertable (id bigint PRIMARY KEY, field text NOT NULL)")?;
        for first in (0..self.rows).step_by(BATCH_ROWS as usize) {
            let end = self.rows.min(first + BATCH_ROWS);
            let mut text = String::from("INSERT INTO usertable (id, field) VALUES ");
            for n in first..end {
                let comma = if n == first { "" } else { ", " };
                let _ = write!(text, "{comma}({}, '{}')", Self::key(n), self.value);
            }
            client.query(&text)?;
            progress(u64::from(end), u64::from(self.rows));
        }
        Ok(())
    }

    fn prepare(&self, client: &mut Client) -> Result<(), ClientError> {
        client.prepare("insert", "INSERT INTO usertable (id, field) VALUES ($1, $2)")?;
        client.prepare("update", "UPDATE usertable SET field = $2 WHERE id = $1")?;
        client.prepare("read", "SELECT field FROM usertable WHERE id = $1")
    }

    fn choose(&self, rng: &mut SmallRng) -> (usize, u32) {
        match rng.random_range(0..100) {
            n if n < INSERTS => (0, self.next.fetch_add(1, Ordering::Relaxed)),
            n if n < INSERTS + UPDATES => (1, rng.random_range(0..self.rows)),
            _ => (2, rng.random_range(0..self.rows)),
        }
    }

    fn run(&self, client: &mut Client, operation: usize, parameter: u32) -> Result<(), ClientError> {
        let key = Self::key(parameter);
        let done = match operation {
            0 => client.execute("insert", &[&key, &self.value]),
            1 => client.execute("update", &[&key, &self.value]),
            _ => client.execute("read", &[&key]),
        };
        done.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::Rows;
    use crate::bench::Workload;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use std::collections::BTreeSet;

    #[test]
    fn the_mix_is_the_documents_and_no_key_comes_twice() {
        let (rows, mut rng) = (Rows::new(1_000), SmallRng::seed_from_u64(1));
        let drawn: Vec<(usize, u32)> = (0..20_000).map(|_| rows.choose(&mut rng)).collect();
        let share = |operation| drawn.iter().filter(|(o, _)| *o == operation).count() as f64 / drawn.len() as f64;
        assert!((share(0) - 0.6).abs() < 0.02 && (share(1) - 0.2).abs() < 0.02, "{} {}", share(0), share(1));
        let inserted: Vec<u32> = drawn.iter().filter(|(o, _)| *o == 0).map(|(_, n)| *n).collect();
        let keys: BTreeSet<String> = inserted.iter().copied().chain(0..1_000).map(Rows::key).collect();
        assert_eq!(keys.len(), inserted.len() + 1_000);
    }
}
