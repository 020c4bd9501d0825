//! From commands to rows: binding and planning ([`plan`], [`engine`]), running ([`exec`], [`engine`]), the system's own catalogs as tables ([`pg_catalog`]),
//! and what EXPLAIN shows ([`explain`]).
//!
//! [`plan`] and [`exec`] are the direct path: point, index and short-range statements and every write. Every other query is the [`engine`]'s.

pub mod context;
pub mod engine;
pub mod exec;
pub mod explain;
pub mod output;
pub mod pg_catalog;
pub mod plan;

use sql_catalog as catalog;
use sql_expr as expr;
use sql_statement::sessions::Backend;
use sql_statement::{
    advisory, busy, contention, internal, sequence, sessions, statement, statistics, temporary, waits,
};
use sql_syntax as syntax;
use sql_value::{
    Attempt, Kv, KvError, SqlError, SqlState, encoding, identifier, memory, stack, transaction, types, work,
};
