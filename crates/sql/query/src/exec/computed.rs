//! What the columns of a row hold while it is made.
//!
//! A row is counted once it is whole, by who keeps it or sends it. With a thousand columns of 16 MB it would never become that.

use crate::SqlError;
use crate::output::ROW_BYTES_MAX;
use crate::types::{Value, wide_bytes};
use crate::work::Held;

/// The values of one row that were computed for it. What is more than any row that can be sent is the statement's memory.
#[derive(Default)]
pub struct Computed {
    bytes: usize,
    held: Held,
}

impl Computed {
    /// Counts a value.
    ///
    /// # Errors
    /// 53200 beyond the statement's memory.
    #[inline]
    pub fn count(&mut self, value: Value) -> Result<Value, SqlError> {
        let bytes = wide_bytes(&value);
        if bytes > 0 {
            self.bytes += bytes;
            if self.bytes > ROW_BYTES_MAX {
                self.held.take(bytes)?;
            }
        }
        Ok(value)
    }
}
