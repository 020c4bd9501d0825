//! The ground on which SQL stands: what it needs of the world below ([`transaction`]), errors, what a statement may use up ([`work`], [`memory`],
//! [`stack`]), names ([`identifier`]), types and values ([`types`]) and the keys that are made of them ([`encoding`]).
//!
//! Nothing here knows a statement, a table or a session.

pub mod encoding;
pub mod error;
pub mod identifier;
pub mod lists;
pub mod memory;
pub mod stack;
pub mod transaction;
pub mod types;
pub mod work;

pub use error::{Attempt, SqlError, SqlState};
pub use transaction::{Kv, KvError, Transaction, TxnRef};
