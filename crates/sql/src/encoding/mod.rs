//! How rows and index entries are written as keys and values.
//!
//! - [`key`]: order-preserving encoding of values, so that the order of keys is the order of rows in an index;
//! - [`span`]: the keys of an index, of an equality prefix, of a range;
//! - [`row`]: the value part, by column ids, so that columns can be added and dropped without rewriting rows.

pub mod key;
pub mod row;
pub mod span;

pub use key::{decode_key, decode_value, encode_key, encode_value, skip_value};
pub use row::{RowDecoder, RowEncoder, WantedColumn};
pub use span::{index_prefix, index_span, prefix_end, prefix_span, range_span};

#[cfg(test)]
mod tests;
