//! YCSB's workloads B and F, which 000 section 3.4.1 tried: rows of a kilobyte, keys drawn by Zipf's law.
//!
//! B: 95 % reads, 5 % updates of single rows. F: 50 % reads, 50 % transactions that read a row and write it back. Which rows are popular is scattered over the
//! keys, as YCSB does it.

use super::{Progress, Workload};
use crate::client::{Client, ClientError};
use rand::Rng;
use rand::rngs::SmallRng;
use std::fmt::Write as _;

/// Rows of one INSERT while loading.
const BATCH_ROWS: u32 = 100;
/// Bytes of a row's value: YCSB has ten fields of a hundred.
const VALUE_BYTES: usize = 1_000;
/// YCSB's exponent of Zipf's law.
const ZIPF: f64 = 0.99;
/// An odd number: multiplied by it, successive numbers lie far apart and stay different.
const SCATTER: u32 = 0x9e37_79b1;
/// Of a hundred operations of B, those that read; of F.
const READS_B: u32 = 95;
const READS_F: u32 = 50;

/// Which workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Mostly reads.
    B,
    /// Reads, and read-modify-writes.
    F,
}

/// The workload.
#[derive(Debug)]
pub struct Ycsb {
    mix: Mix,
    /// By rank: how often this row or a more popular one is drawn.
    popularity: Vec<f64>,
    value: String,
}

impl Ycsb {
    /// A table of so many rows.
    pub fn new(mix: Mix, rows: u32) -> Self {
        let mut popularity: Vec<f64> = Vec::new();
        for rank in 1..=rows {
            popularity.push(popularity.last().unwrap_or(&0.0) + f64::from(rank).powf(-ZIPF));
        }
        let all = popularity.last().copied().unwrap_or(1.0);
        popularity.iter_mut().for_each(|share| *share /= all);
        let letter = |n: usize| char::from(b'a' + (n * n % 26) as u8);
        Ycsb { mix, popularity, value: (0..VALUE_BYTES).map(letter).collect() }
    }

    fn rows(&self) -> u32 {
        u32::try_from(self.popularity.len()).unwrap_or(u32::MAX)
    }

    /// The key of the row of a rank.
    fn key(rank: u32) -> String {
        rank.wrapping_mul(SCATTER).to_string()
    }

    fn modify(&self, client: &mut Client, key: &str) -> Result<(), ClientError> {
        client.query("BEGIN")?;
        let done = client
            .execute("read", &[key])
            .and_then(|_| client.execute("update", &[key, &self.value]))
            .and_then(|_| client.query("COMMIT"));
        if done.is_err() {
            client.query("ROLLBACK")?;
        }
        done.map(|_| ())
    }
}

impl Workload for Ycsb {
    fn name(&self) -> &'static str {
        match self.mix {
            Mix::B => "ycsb-b",
            Mix::F => "ycsb-f",
        }
    }
    fn operations(&self) -> &'static [&'static str] {
        match self.mix {
            Mix::B => &["read", "update"],
            Mix::F => &["read", "read-modify-write"],
        }
    }

    fn load(&self, client: &mut Client, _rng: &mut SmallRng, progress: &mut Progress<'_>) -> Result<(), ClientError> {
        client.query("DROP TABLE IF EXISTS usertable")?;
        client.query("CREATE TABLE usertable (id bigint PRIMARY KEY, field text NOT NULL)")?;
        for first in (0..self.rows()).step_by(BATCH_ROWS as usize) {
            let end = self.rows().min(first + BATCH_ROWS);
            let mut text = String::from("INSERT INTO usertable (id, field) VALUES ");
            for rank in first..end {
                let comma = if rank == first { "" } else { ", " };
                let _ = write!(text, "{comma}({}, '{}')", Self::key(rank), self.value);
            }
            client.query(&text)?;
            progress(u64::from(end), u64::from(self.rows()));
        }
        Ok(())
    }

    fn prepare(&self, client: &mut Client) -> Result<(), ClientError> {
        client.prepare("update", "UPDATE usertable SET field = $2 WHERE id = $1")?;
        client.prepare("read", "SELECT field FROM usertable WHERE id = $1")
    }

    fn choose(&self, rng: &mut SmallRng) -> (usize, u32) {
        let reads = match self.mix {
            Mix::B => READS_B,
            Mix::F => READS_F,
        };
        let operation = usize::from(rng.random_range(0..100) >= reads);
        let drawn: f64 = rng.random();
        let rank = self.popularity.partition_point(|share| *share < drawn);
        (operation, u32::try_from(rank).unwrap_or(0).min(self.rows().saturating_sub(1)))
    }

    fn run(&self, client: &mut Client, operation: usize, parameter: u32) -> Result<(), ClientError> {
        let key = Self::key(parameter);
        match (operation, self.mix) {
            (0, _) => client.execute("read", &[&key]).map(|_| ()),
            (_, Mix::B) => client.execute("update", &[&key, &self.value]).map(|_| ()),
            (_, Mix::F) => self.modify(client, &key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mix, Ycsb};
    use crate::bench::Workload;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    #[test]
    fn keys_follow_zipfs_law_and_operations_the_mix() {
        let (rows, mut rng) = (1_000, SmallRng::seed_from_u64(1));
        for (mix, reads) in [(Mix::B, 0.95), (Mix::F, 0.5)] {
            let ycsb = Ycsb::new(mix, rows);
            let drawn: Vec<(usize, u32)> = (0..50_000).map(|_| ycsb.choose(&mut rng)).collect();
            let share = |is: &dyn Fn(&(usize, u32)) -> bool| drawn.iter().filter(|d| is(d)).count() as f64 / 50_000.0;
            assert!((share(&|d| d.0 == 0) - reads).abs() < 0.01);
            // The sum of 1/rank^0.99 of a thousand is 7.73: the first has 12.9 %, the tenth a tenth of that, nearly.
            let (first, tenth) = (share(&|d| d.1 == 0), share(&|d| d.1 == 9));
            assert!((first - 0.129).abs() < 0.01 && (tenth - 0.0132).abs() < 0.003, "{first} {tenth}");
            assert!(drawn.iter().all(|d| d.1 < rows));
        }
    }
}
