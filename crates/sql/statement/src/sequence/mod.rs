//! Sequences: numbers that no transaction gives back.
//!
//! Problem: `nextval` must not make transactions conflict, must never give a number twice, and may not cost a durable commit
//! each. Idea: a process takes blocks of numbers in transactions of their own, and hands them out from memory.
//!
//! 1. A number is handed out only after a durable record says that it is taken.
//! 2. In one process without a crash numbers are dense: a block continues the one before, and [`Numbers::give_back`] returns
//!    what is left at a clean stop. A crash loses at most [`BLOCK_MAX`] numbers of a sequence, and so does a statement that is
//!    ended while it waits for a block.
//!
//! 3. In a cluster a block is good for [`GRANT_US`]; what is left then is taken anew, or lost if another node took numbers meanwhile. Whoever moves
//!    a sequence (`setval`, RESTART) from which another node may hold a block waits until that is over. So every `nextval` that begins after
//!    a `setval` has ended obeys it, wherever it runs, and none of them asks.
//!
//! Caveats: ALTER SEQUENCE .. RESTART and TRUNCATE .. RESTART IDENTITY do not roll back. Several nodes hand out their
//! blocks side by side, so numbers do not follow time across nodes.

mod numbers;
mod session;

pub use numbers::{BLOCK_MAX, BLOCK_MIN, GRANT_US, Numbers, Position};
pub use session::SessionSequences;

use crate::SqlError;

/// Sequences; numbers drawn are not given back when the transaction rolls back.
pub trait Sequences: Send + Sync {
    /// `nextval`
    fn next(&self, sequence: u32) -> Result<i64, SqlError>;
    /// `currval`: 55000 before the session's first `nextval`.
    fn current(&self, sequence: u32) -> Result<i64, SqlError>;
    /// `lastval`
    fn last(&self) -> Result<i64, SqlError>;
    /// `setval`
    fn set(&self, sequence: u32, value: i64, is_called: bool) -> Result<i64, SqlError>;
    /// Where it stands, whoever drew from it last: its number, and whether that was handed out.
    fn position(&self, sequence: u32) -> Result<(i64, bool), SqlError> {
        self.current(sequence).map(|value| (value, true))
    }
}

#[cfg(test)]
mod tests;
