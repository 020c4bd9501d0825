//! Execution: rows and index entries over the transaction, scans, lookups, writes and what they check.

pub mod row;
