//! Rows that go into a fresh table beside all transactions: see [`crate::transaction::Kv::load`]. Who gathers and writes them is given.

use crate::SqlError;
use bytes::Bytes;

/// Where such rows and the entries of their indexes go.
pub trait Load {
    /// The value of a key that it has.
    ///
    /// # Errors
    /// Those of the layers below.
    fn contains(&mut self, key: &[u8]) -> Result<Option<Bytes>, SqlError>;
    /// Takes an entry.
    ///
    /// # Errors
    /// Those of the layers below.
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), SqlError>;
}

/// A key that is there twice: the ordinal of its index among those of the load, the key, and the value of one of the two.
pub struct Duplicate<'a> {
    /// See above.
    pub index: usize,
    /// See above.
    pub key: &'a [u8],
    /// See above.
    pub value: &'a [u8],
}
