//! Catalog, types, planning and execution of SQL over a transaction that it is given.
//!
//! The crate declares what it needs of the world below ([`Kv`], [`Transaction`]) and offers the world above a [`Session`],
//! which speaks in messages of the PostgreSQL protocol without knowing the wire.

pub mod advisory;
pub mod contention;
pub mod context;
pub mod copy;
pub mod database;
pub mod ddl;
pub mod engine;
pub mod exec;
pub mod explain;
pub mod expr;
pub mod internal;
pub mod output;
pub mod peers;
pub mod pg_catalog;
pub mod plan;
pub mod progress;
pub mod sequence;
pub mod session;
pub mod sessions;
pub mod statistics;
pub mod waits;

pub use database::{Database, DatabaseOptions};
pub use output::{Field, Output};
pub use session::{Executed, Session, Startup, TransactionStatus};
pub use sessions::{Backend, Client, Sessions};
pub use sql_catalog as catalog;
pub use sql_syntax as syntax;
pub use sql_value::{Kv, KvError, SqlError, SqlState, Transaction, TxnRef};
pub use sql_value::{encoding, error, identifier, lists, memory, stack, transaction, types, work};
