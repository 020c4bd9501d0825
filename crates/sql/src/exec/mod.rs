//! Execution: rows and index entries over the transaction, scans, lookups, writes and what they check.

pub mod aggregate;
pub mod building;
pub mod claims;
pub mod cursor;
pub mod deferred;
pub mod evaluate;
pub mod formula;
pub mod index;
pub mod insert;
pub mod key_lock;
mod located;
pub mod modify;
pub mod parts;
pub mod path;
pub mod references;
pub mod row;
pub mod scan;
pub mod select;
pub mod sort;
pub mod span;
pub mod table;
pub mod target;
pub(crate) mod total;
pub mod write;
pub mod writer;
mod written;
