//! Which tables a transaction has written to since it made or emptied them.
//!
//! A table that is new in its transaction may be loaded beside it (`sql::ddl`, `load`), where nothing is known of what the transaction itself has in memory of the table: not its unique keys, and not
//! what it has deleted. So only a table that it has not written to yet is loaded.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// See the module. Of one session.
#[derive(Debug, Default)]
pub struct Filled {
    /// The transaction has made or emptied a table: else nobody will ask.
    watched: AtomicBool,
    tables: Mutex<BTreeSet<u32>>,
}

impl Filled {
    /// These tables were made, or emptied.
    pub fn fresh(&self, tables: &[u32]) {
        if !tables.is_empty() {
            self.watched.store(true, Ordering::Relaxed);
            let mut filled = self.tables.lock();
            filled.retain(|table| !tables.contains(table));
        }
    }

    /// A table was written to.
    pub fn wrote(&self, table: u32) {
        if self.watched.load(Ordering::Relaxed) {
            self.tables.lock().insert(table);
        }
    }

    /// Whether a table that was made or emptied in the transaction was written to since.
    pub fn contains(&self, table: u32) -> bool {
        self.tables.lock().contains(&table)
    }

    /// The transaction has ended.
    pub fn clear(&self) {
        if self.watched.swap(false, Ordering::Relaxed) {
            self.tables.lock().clear();
        }
    }
}
