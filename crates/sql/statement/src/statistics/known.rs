//! What a process knows of statistics, how much was written since they were gathered, and when they may be gathered again.

use super::TableStatistics;
use crate::catalog::{Oid, key};
use crate::transaction::{Isolation, Kv, Patience};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was read is read again after so long: another node may have gathered since.
const READ_EVERY_US: i64 = 60_000_000;
/// Planning waits no longer for them.
const WAIT_US_MAX: i64 = 100_000;
/// Tables whose statistics are kept.
const TABLES_MAX: usize = 10_000;
/// Counters of written rows: tables share one where their OIDs are so far apart.
const COUNTERS: usize = 1024;
/// Gathered anew after so many written rows ..
const CHANGED_ROWS: u64 = 50;
/// .. and this part of the table ..
const CHANGED_PART: u64 = 10;
/// .. but not sooner than this after the last time. Where the table was found to be what it was, twice as long each time that was not enough, up to the
/// second: one that is updated without end has changed by a tenth at every look.
const AGAIN_US: i64 = 10_000_000;
const AGAIN_US_MAX: i64 = 80_000_000;
/// And there so many times as long as the sweep took, but for the longest: about a hundredth of one processor goes to each table.
const REST_FACTOR: i64 = 100;
const REST_US_MAX: i64 = 300_000_000;

/// See the module.
pub struct Known {
    tables: Mutex<HashMap<Oid, Read>>,
    /// When each table was looked at last by this process.
    looks: Mutex<HashMap<Oid, Look>>,
    changes: AtomicU64,
    written: Vec<AtomicU64>,
}

/// What a look at a table found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Rows that were known before; 0: nothing was.
    pub rows_before: u64,
    /// Rows found.
    pub rows: u64,
    /// Rows written since the look before, as [`Known::begin`] gave them.
    pub written: u64,
    /// The sweep took so long, microseconds.
    pub took_us: i64,
}

impl Found {
    /// The table is what it was: it is not being loaded, with rows that are not committed yet, nor was it emptied or filled.
    fn is_as_before(&self) -> bool {
        self.rows_before > 0
            && self.rows >= self.written
            && self.rows.abs_diff(self.rows_before) <= self.rows_before / 2
    }
}

#[derive(Clone, Copy)]
struct Look {
    ended_us: i64,
    /// The table rests for so long.
    rest_us: i64,
}

struct Read {
    at_us: i64,
    statistics: Option<Arc<TableStatistics>>,
}

impl Default for Known {
    fn default() -> Known {
        let written = (0..COUNTERS).map(|_| AtomicU64::new(0)).collect();
        Known { tables: Mutex::default(), looks: Mutex::default(), changes: AtomicU64::new(0), written }
    }
}

impl Known {
    /// A number that is another one when some table's statistics are.
    pub fn epoch(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Those of a table that has rows; `None` where there are none, or the store does not answer soon.
    pub fn of(&self, kv: &dyn Kv, table: Oid) -> Option<Arc<TableStatistics>> {
        let now_us = kv.monotonic_us();
        if let Some(read) = self.tables.lock().get(&table).filter(|read| now_us - read.at_us < READ_EVERY_US) {
            return read.statistics.clone().filter(|statistics| statistics.rows > 0);
        }
        let patience = Patience::default();
        patience.deadline.set(now_us.saturating_add(WAIT_US_MAX));
        let read =
            patience.begin(kv, Isolation::default()).and_then(|mut txn| txn.get(&key::object(key::STATISTICS, table)));
        let statistics = read.ok().flatten().and_then(|bytes| TableStatistics::decode(&bytes).ok()).map(Arc::new);
        self.put(table, statistics.clone(), now_us);
        statistics.filter(|statistics| statistics.rows > 0)
    }

    /// Takes what was gathered or read; `None`: there is none.
    pub fn put(&self, table: Oid, statistics: Option<Arc<TableStatistics>>, now_us: i64) {
        let mut tables = self.tables.lock();
        if tables.len() >= TABLES_MAX && !tables.contains_key(&table) {
            tables.clear();
        }
        let before = tables.insert(table, Read { at_us: now_us, statistics: statistics.clone() });
        if before.and_then(|before| before.statistics) != statistics {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counter(&self, table: Oid) -> &AtomicU64 {
        &self.written[table as usize % COUNTERS]
    }

    /// Rows of a table were written, whether that commits or not.
    pub fn written(&self, table: Oid, rows: u64) {
        self.counter(table).fetch_add(rows, Ordering::Relaxed);
    }

    /// Whether so much was written that a table's statistics are to be gathered; or, asked of a table that has none, whether anything was.
    /// One that was looked at lately rests.
    pub fn is_due(&self, kv: &dyn Kv, table: Oid) -> bool {
        let written = self.counter(table).load(Ordering::Relaxed);
        if written < CHANGED_ROWS || self.rests(table, kv.monotonic_us()) {
            return false;
        }
        self.of(kv, table).is_none_or(|known| written >= CHANGED_ROWS + known.rows / CHANGED_PART)
    }

    /// A table's statistics are being gathered: what is written from now on counts. Gives the rows that were written before.
    pub fn begin(&self, table: Oid) -> u64 {
        self.counter(table).swap(0, Ordering::Relaxed)
    }

    /// A table is being emptied: nothing is known of it until it is looked at again, which may be soon.
    pub fn emptied(&self, table: Oid, now_us: i64) {
        self.put(table, None, now_us);
        self.looks.lock().remove(&table);
        self.begin(table);
    }

    fn rests(&self, table: Oid, now_us: i64) -> bool {
        self.looks.lock().get(&table).is_some_and(|look| now_us.saturating_sub(look.ended_us) < look.rest_us)
    }

    /// A table was looked at until then (microseconds, monotonic): what was found; `None`: the look failed.
    pub fn ended(&self, table: Oid, ended_us: i64, found: Option<Found>) {
        let mut looks = self.looks.lock();
        if looks.len() >= TABLES_MAX && !looks.contains_key(&table) {
            looks.clear();
        }
        let took_us = found.map_or(0, |found| found.took_us);
        let began_us = ended_us.saturating_sub(took_us);
        // Looked at as soon as it had rested, or nearly.
        let again = looks.get(&table).filter(|last| began_us.saturating_sub(last.ended_us) < 2 * last.rest_us);
        let doubled_us = again.map_or(AGAIN_US, |last| last.rest_us.saturating_mul(2).min(AGAIN_US_MAX));
        let rest_us = match found {
            Some(found) if !found.is_as_before() => AGAIN_US,
            _ => doubled_us.max(took_us.saturating_mul(REST_FACTOR).min(REST_US_MAX)),
        };
        looks.insert(table, Look { ended_us, rest_us });
    }

    /// More was written than was found: it may have committed later. Some of it counts on, so that the table is looked at again, a few times.
    pub fn missed(&self, table: Oid, written: u64) {
        self.written(table, written / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::memory::MemoryKv;

    fn rows(rows: u64) -> Option<Arc<TableStatistics>> {
        let (analyzed_us, autoanalyzed_us) = (None, None);
        let columns = Vec::new();
        Some(Arc::new(TableStatistics { rows, sampled: rows, at_us: 0, analyzed_us, autoanalyzed_us, columns }))
    }

    #[test]
    fn what_was_written_in_part_is_due() {
        let (kv, known) = (MemoryKv::new(), Known::default());
        known.written(7, CHANGED_ROWS - 1);
        assert!(!known.is_due(&kv, 7));
        known.written(7, 1);
        assert!(known.is_due(&kv, 7) && known.of(&kv, 7).is_none());
        assert_eq!(known.begin(7), CHANGED_ROWS);
        known.put(7, rows(1000), kv.monotonic_us());
        assert_eq!(known.of(&kv, 7).map(|known| known.rows), Some(1000));
        known.written(7, CHANGED_ROWS + 99);
        assert!(!known.is_due(&kv, 7));
        known.written(7, 1);
        assert!(known.is_due(&kv, 7));
    }

    #[test]
    fn what_commits_after_it_was_looked_for_is_looked_for_again_and_not_for_ever() {
        let (kv, known) = (MemoryKv::new(), Known::default());
        known.written(7, 1_000_000);
        let mut times = 0;
        while known.is_due(&kv, 7) {
            times += 1;
            let written = known.begin(7);
            known.put(7, rows(0), kv.monotonic_us());
            known.missed(7, written);
        }
        assert!((10..20).contains(&times), "{times}");
    }

    /// Of a thousand rows that are updated without end a tenth has changed at any time, and of many large ones a look takes long.
    #[test]
    fn a_table_that_was_looked_at_rests() {
        let (kv, known) = (MemoryKv::new(), Known::default());
        let look = |took_us: i64| {
            let written = known.begin(7);
            kv.advance_us(took_us as u64);
            known.put(7, rows(1000), kv.monotonic_us());
            let found = Found { rows_before: 1000, rows: 1000, written, took_us };
            known.ended(7, kv.monotonic_us(), Some(found));
        };
        let rests_us = |step_us: i64| {
            let since_us = kv.monotonic_us();
            known.written(7, 200);
            while !known.is_due(&kv, 7) {
                kv.advance_us(step_us as u64);
            }
            kv.monotonic_us() - since_us
        };
        assert!(rests_us(1) < 100, "nobody has looked yet");
        let mut rests = Vec::new();
        for took_us in [1000, 1000, 1000, 1000, 1000, 2_000_000, 36_000_000] {
            look(took_us);
            rests.push(rests_us(1_000_000) / 1_000_000);
        }
        assert_eq!(rests, [10, 20, 40, 80, 80, 200, 300]);
        kv.advance_us(1_000_000_000);
        look(1000);
        assert_eq!(rests_us(1_000_000) / 1_000_000, 10, "it was quiet");
        assert!(known.begin(8) == 0 && !known.is_due(&kv, 8));
        known.written(8, 1_000_000);
        assert!(known.is_due(&kv, 8), "others do not rest with it");
    }

    /// Statistics of a table that is being loaded, or was just emptied or filled, are worthless soon: it does not rest long from a look that took long. One that failed has found nothing,
    /// and is not repeated at once.
    #[test]
    fn a_table_that_is_not_what_it_was_rests_shortly() {
        let (kv, known) = (MemoryKv::new(), Known::default());
        let rests_s = |table: Oid, found: Option<Found>| {
            let ended_us = kv.monotonic_us();
            known.ended(table, ended_us, found);
            let times = (0..1000).find(|s| !known.rests(table, ended_us + s * 1_000_000));
            kv.advance_us(1_000_000 * times.unwrap_or(0) as u64);
            times
        };
        let found = |rows_before, rows, written| Some(Found { rows_before, rows, written, took_us: 20_000_000 });
        for (table, loaded) in [
            // Of an empty table nothing has committed, or all; of another one not all, or much was deleted.
            (1, found(0, 0, 1_000_000)),
            (2, found(0, 1_000_000, 1_000_000)),
            (3, found(100, 100, 1_000_000)),
            (4, found(100, 151, 51)),
            (5, found(100, 49, 49)),
        ] {
            assert_eq!([0; 3].map(|_| rests_s(table, loaded)), [Some(10); 3], "{loaded:?}");
            assert_eq!(rests_s(table, found(100, 150, 50)), Some(300));
        }
        assert_eq!([0; 5].map(|_| rests_s(6, None)), [10, 20, 40, 80, 80].map(Some));
    }

    #[test]
    fn a_table_that_is_emptied_is_not_known_and_does_not_rest() {
        let (kv, known) = (MemoryKv::new(), Known::default());
        known.put(7, rows(1_000_000), kv.monotonic_us());
        known.written(7, 1_000_000);
        let written = known.begin(7);
        let found = Found { rows_before: 1_000_000, rows: 1_000_000, written, took_us: 10_000_000 };
        known.ended(7, kv.monotonic_us(), Some(found));
        known.written(7, 1000);
        let before = known.epoch();
        known.emptied(7, kv.monotonic_us());
        assert!(known.of(&kv, 7).is_none() && known.epoch() != before && !known.is_due(&kv, 7));
        known.written(7, CHANGED_ROWS);
        assert!(known.is_due(&kv, 7));
    }

    #[test]
    fn plans_are_made_anew_when_something_else_is_known() {
        let (kv, known) = (MemoryKv::new(), Known::default());
        let before = known.epoch();
        assert!(known.of(&kv, 7).is_none() && known.epoch() == before);
        known.put(7, rows(10), 0);
        let after = known.epoch();
        assert_ne!(before, after);
        known.put(7, rows(10), 0);
        assert_eq!(known.epoch(), after);
    }
}
