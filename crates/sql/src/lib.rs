//! Catalog, types, planning and execution of SQL over a transaction that it is given.
//!
//! The crate declares what it needs of the world below ([`Kv`], [`Transaction`]) and offers the world above a [`Session`],
//! which speaks in messages of the PostgreSQL protocol without knowing the wire.

pub mod advisory;
pub mod catalog;
pub mod contention;
pub mod context;
pub mod copy;
pub mod database;
pub mod ddl;
pub mod encoding;
pub mod engine;
pub mod error;
pub mod exec;
pub mod explain;
pub mod expr;
pub mod identifier;
pub mod internal;
pub mod lists;
pub mod memory;
pub mod output;
pub mod peers;
pub mod pg_catalog;
pub mod plan;
pub mod progress;
pub mod sequence;
pub mod session;
pub mod sessions;
pub mod stack;
pub mod statistics;
pub mod syntax;
pub mod transaction;
pub mod types;
pub mod waits;
pub mod work;

pub use database::{Database, DatabaseOptions};
pub use error::{SqlError, SqlState};
pub use output::{Field, Output};
pub use session::{Executed, Session, Startup, TransactionStatus};
pub use sessions::{Backend, Client, Sessions};
pub use transaction::{Kv, KvError, Transaction, TxnRef};
