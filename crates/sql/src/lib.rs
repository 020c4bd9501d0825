//! SQL over a transaction that it is given: the top of the rooms of `crates/sql`, and what is seen of them from outside.
//!
//! What is needed of the world below is declared in [`transaction`] ([`Kv`], [`Transaction`]). The world above is offered a [`Session`], which speaks in
//! messages of the PostgreSQL protocol without knowing the wire.

mod copy;
mod database;
mod ddl;
pub mod session;
mod users;

pub use database::{Database, DatabaseOptions};
pub use session::{Executed, Session, Startup, TransactionStatus};

pub use sql_catalog as catalog;
pub use sql_expr as expr;
pub use sql_query::output::{Field, Output};
pub use sql_query::{context, engine, exec, explain, output, pg_catalog, plan};
pub use sql_statement::sessions::{Backend, Client, Sessions};
pub use sql_statement::{advisory, contention, internal, peers, sequence, sessions, statistics, waits};
pub use sql_syntax as syntax;
pub use sql_value::{Attempt, Kv, KvError, SqlError, SqlState, Transaction, TxnRef};
pub use sql_value::{identifier, memory, stack, transaction, types, work};

use sql_statement::{answers, filled, progress, statement, temporary};
use sql_value::{encoding, lists};
