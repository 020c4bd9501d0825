//! Gathering: one pass over a table, a sample of its rows, one record.

use super::sample::{Reservoir, column};
use super::table::TableAccess;
use crate::SqlError;
use crate::catalog::{Table, key};
use crate::statistics::{Found, Key, Known, TableStatistics};
use crate::transaction::{Isolation, Kv, Patience, Sweep};
use crate::types::Value;
use std::sync::Arc;

/// Rows of a sample, at most.
const SAMPLE_ROWS_MAX: usize = 30_000;
/// Values of a sample, all columns together: bounds its memory, at about 100 bytes for each.
const SAMPLE_VALUES_MAX: usize = 500_000;
/// A row of a sample stays as it is stored while it takes no more bytes than this for each of its values: most rows that are chosen give way to later ones, and
/// need not be decoded. Larger ones are decoded at once, as little is kept of a value.
const STORED_BYTES_PER_VALUE: usize = 100;
/// Rows read at once.
const CHUNK_ROWS: usize = 4096;

/// Who has statistics gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// ANALYZE.
    Command,
    /// A node, since much was written.
    Itself,
}

/// Gathers a table's statistics as committed now, and keeps them. A transaction that is open elsewhere waits for nothing here. Whatever becomes of it, the
/// table was looked at.
///
/// # Errors
/// Those of the layers below; 57014 where the wait is ended.
pub fn analyze(kv: &dyn Kv, known: &Known, patience: &Patience, table: &Table, by: By) -> Result<(), SqlError> {
    let (written, before) = (known.begin(table.id), known.of(kv, table.id));
    let gathered = gather_and_keep(kv, patience, table, before.as_deref(), by);
    let ended_us = kv.monotonic_us();
    match gathered {
        Ok((statistics, took_us)) => {
            let rows = statistics.rows;
            if rows < written {
                known.missed(table.id, written);
            }
            known.put(table.id, Some(Arc::new(statistics)), ended_us);
            let found = Found { rows_before: before.map_or(0, |before| before.rows), rows, written, took_us };
            known.ended(table.id, ended_us, Some(found));
            Ok(())
        }
        Err(error) => {
            known.written(table.id, written);
            known.ended(table.id, ended_us, None);
            Err(error)
        }
    }
}

/// Gives what was gathered, and how long the sweep took, microseconds.
fn gather_and_keep(
    kv: &dyn Kv,
    patience: &Patience,
    table: &Table,
    before: Option<&TableStatistics>,
    by: By,
) -> Result<(TableStatistics, i64), SqlError> {
    let (mut statistics, took_us) = gather(kv, patience, table)?;
    let times = before.map_or((None, None), |before| (before.analyzed_us, before.autoanalyzed_us));
    (statistics.analyzed_us, statistics.autoanalyzed_us) = match by {
        By::Command => (Some(statistics.at_us), times.1),
        By::Itself => (times.0, Some(statistics.at_us)),
    };
    let mut txn = patience.begin(kv, Isolation::default())?;
    txn.overwrite(key::object(key::STATISTICS, table.id).to_vec().into(), Some(statistics.encode()?))?;
    patience.commit(txn.as_mut())?;
    Ok((statistics, took_us))
}

/// A row of the sample.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Chosen {
    Stored(Vec<u8>),
    Keys(Vec<Option<Key>>),
}

/// The rows of a table that were chosen.
struct Sample<'a> {
    access: &'a TableAccess,
    slots: Vec<usize>,
    chosen: Vec<Chosen>,
    row: Vec<Value>,
}

impl Sample<'_> {
    fn of(access: &TableAccess) -> Sample<'_> {
        let slots: Vec<usize> = (0..access.columns.len()).collect();
        let row = vec![Value::Null; slots.len()];
        Sample { access, slots, chosen: Vec::new(), row }
    }

    /// Puts a row at a place, or behind all.
    fn put(&mut self, at: usize, stored: &[u8]) -> Result<(), SqlError> {
        if stored.len() > STORED_BYTES_PER_VALUE * self.slots.len() {
            let keys = Chosen::Keys(self.keys(stored)?);
            match self.chosen.get_mut(at) {
                Some(place) => *place = keys,
                None => self.chosen.push(keys),
            }
            return Ok(());
        }
        match self.chosen.get_mut(at) {
            Some(Chosen::Stored(place)) => {
                place.clear();
                place.extend_from_slice(stored);
            }
            Some(place) => *place = Chosen::Stored(stored.to_vec()),
            None => self.chosen.push(Chosen::Stored(stored.to_vec())),
        }
        Ok(())
    }

    fn keys(&mut self, stored: &[u8]) -> Result<Vec<Option<Key>>, SqlError> {
        self.access.decode(stored, &self.slots, &mut self.row)?;
        Ok(self.row.iter().zip(&self.access.columns).map(|(value, column)| Key::of(value, &column.ty)).collect())
    }

    /// The values of each column.
    fn columns(mut self, check: impl Fn() -> Result<(), SqlError>) -> Result<Vec<Vec<Option<Key>>>, SqlError> {
        let rows = std::mem::take(&mut self.chosen);
        let mut columns: Vec<Vec<Option<Key>>> = self.slots.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for (at, row) in rows.into_iter().enumerate() {
            if at.is_multiple_of(CHUNK_ROWS) {
                check()?;
            }
            let keys = match row {
                Chosen::Stored(stored) => self.keys(&stored)?,
                Chosen::Keys(keys) => keys,
            };
            columns.iter_mut().zip(keys).for_each(|(column, key)| column.push(key));
        }
        Ok(columns)
    }
}

fn gather(kv: &dyn Kv, patience: &Patience, table: &Table) -> Result<(TableStatistics, i64), SqlError> {
    let access = TableAccess::new(table)?;
    let mut sample = Sample::of(&access);
    let places = SAMPLE_ROWS_MAX.min(SAMPLE_VALUES_MAX / sample.slots.len().max(1));
    let mut reservoir = Reservoir::new(places, u64::from(table.id));
    let mut txn = patience.begin(kv, Isolation::default())?;
    // From here on: who waits for a snapshot does no work.
    let began_us = kv.monotonic_us();
    let (mut rows, mut rest) = (0, Some(access.primary.span()));
    while let Some(span) = rest {
        let chunk = Sweep::of(txn.as_mut(), span, CHUNK_ROWS, false)?;
        for (_, stored) in chunk.rows() {
            if let Some(at) = reservoir.place(rows) {
                sample.put(at, stored)?;
            }
            rows += 1;
        }
        patience.check(|| kv.monotonic_us())?;
        rest = chunk.rest;
    }
    let samples = sample.columns(|| Ok(patience.check(|| kv.monotonic_us())?))?;
    let sampled = samples.first().map_or(0, Vec::len) as u64;
    let took_us = kv.monotonic_us().saturating_sub(began_us);
    let columns = samples.into_iter().zip(&access.columns).filter(|(_, column)| column.ty.is_orderable());
    let columns = columns.map(|(sample, access)| column(access.id, sample, rows)).collect();
    let statistics =
        TableStatistics { rows, sampled, at_us: kv.now_us(), analyzed_us: None, autoanalyzed_us: None, columns };
    Ok((statistics, took_us))
}
