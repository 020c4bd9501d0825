//! The two statements of sysbench's `oltp_update_index` and `oltp_point_select`, on its table, with uniform keys.

use super::{Progress, Workload};
use crate::client::{Client, ClientError};
use rand::Rng;
use rand::rngs::SmallRng;
use std::fmt::Write as _;

/// Rows of one INSERT while loading.
const BATCH_ROWS: u32 = 500;

/// Which statement is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// `UPDATE sbtest SET k = k + 1 WHERE id = $1`, with an index on `k`.
    UpdateIndex,
    /// `SELECT c FROM sbtest WHERE id = $1`.
    PointSelect,
}

/// The workload.
#[derive(Clone, Copy, Debug)]
pub struct Sysbench {
    /// Which statement is run.
    pub statement: Statement,
    /// Rows of the table.
    pub rows: u32,
}

impl Sysbench {
    fn insert(&self, client: &mut Client, rng: &mut SmallRng, first: u32) -> Result<(), ClientError> {
        let mut text = String::from("INSERT INTO sbtest (id, k, c, pad) VALUES ");
        for id in first..=self.rows.min(first + BATCH_ROWS - 1) {
            let mut digits = |groups: usize| {
                let group = |rng: &mut SmallRng| format!("{:011}", rng.random_range(0..100_000_000_000u64));
                (0..groups).map(|_| group(rng)).collect::<Vec<_>>().join("-")
            };
            let (c, pad) = (digits(10), digits(5));
            let k = rng.random_range(1..=self.rows);
            let _ = write!(text, "{}({id}, {k}, '{c}', '{pad}')", if id == first { "" } else { ", " });
        }
        client.query(&text).map(|_| ())
    }
}

impl Workload for Sysbench {
    fn name(&self) -> &'static str {
        match self.statement {
            Statement::UpdateIndex => "update-index",
            Statement::PointSelect => "point-select",
        }
    }
    fn operations(&self) -> &'static [&'static str] {
        match self.statement {
            Statement::UpdateIndex => &["update"],
            Statement::PointSelect => &["select"],
        }
    }

    fn load(&self, client: &mut Client, rng: &mut SmallRng, progress: &mut Progress<'_>) -> Result<(), ClientError> {
        client.query("DROP TABLE IF EXISTS sbtest")?;
        client.query(
            "CREATE TABLE sbtest (id INTEGER PRIMARY KEY, k INTEGER NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', \
             pad CHAR(60) NOT NULL DEFAULT '')",
        )?;
        let mut first = 1;
        while first <= self.rows {
            self.insert(client, rng, first)?;
            first += BATCH_ROWS;
            progress(u64::from(self.rows.min(first - 1)), u64::from(self.rows));
        }
        client.query("CREATE INDEX k_1 ON sbtest (k)").map(|_| ())
    }

    fn prepare(&self, client: &mut Client) -> Result<(), ClientError> {
        let text = match self.statement {
            Statement::UpdateIndex => "UPDATE sbtest SET k = k + 1 WHERE id = $1",
            Statement::PointSelect => "SELECT c FROM sbtest WHERE id = $1",
        };
        client.prepare("it", text)
    }

    fn choose(&self, rng: &mut SmallRng) -> (usize, u32) {
        (0, rng.random_range(1..=self.rows))
    }

    fn run(&self, client: &mut Client, _operation: usize, parameter: u32) -> Result<(), ClientError> {
        client.execute("it", &[&parameter.to_string()]).map(|_| ())
    }
}
