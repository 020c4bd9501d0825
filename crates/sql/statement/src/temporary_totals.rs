//! What temporary files there were, for the statistics: below the sessions, which hold it, and the files, which add to it.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// What temporary files of ended statements there were in each database: `pg_stat_database.temp_files`, `temp_bytes`.
#[derive(Debug, Default)]
pub struct TemporaryTotals(Mutex<BTreeMap<u32, (u64, u64)>>);

impl TemporaryTotals {
    /// How many files there were in a database, and their bytes.
    pub fn of(&self, database: u32) -> (u64, u64) {
        self.0.lock().get(&database).copied().unwrap_or_default()
    }

    pub(crate) fn add(&self, database: u32, bytes: u64) {
        let mut all = self.0.lock();
        let (files, sum) = all.entry(database).or_default();
        (*files, *sum) = (*files + 1, *sum + bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_database_is_what_its_files_had() {
        let totals = TemporaryTotals::default();
        [(5, 10), (7, 1), (5, 30)].into_iter().for_each(|(database, bytes)| totals.add(database, bytes));
        assert_eq!([totals.of(5), totals.of(7), totals.of(9)], [(2, 40), (1, 1), (0, 0)]);
    }
}
