//! How values are written as keys.
//!
//! - [`key`]: order-preserving encoding of values, so that the order of keys is the order of rows in an index;
//! - `hash_key`: the same bytes for what counts as equal;
//! - [`span`]: which index a key belongs to, and the keys of an index.
//!
//! The value part of a row is `exec::row`'s.

mod hash_key;
pub mod key;
pub mod span;

pub use key::{decode_value, encode_value, is_exact, skip_value};
pub use span::{index_of, index_prefix, index_span};

#[cfg(test)]
mod tests;
