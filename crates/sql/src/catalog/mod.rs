//! The catalog: what there is, kept as rows of the store and read in the transaction that uses it.

pub mod descriptor;
pub use descriptor::*;
