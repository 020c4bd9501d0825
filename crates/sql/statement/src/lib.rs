//! What a statement runs in ([`statement`]), and what sessions see of each other: who is there ([`sessions`]), locks on numbers ([`advisory`]), who
//! waits for whom ([`contention`]), what nodes ask each other ([`peers`], [`answers`]), how far they are with what takes long ([`busy`]); numbers of sequences and what is known of tables' contents, which
//! they share.

pub mod advisory;
pub mod answers;
pub mod busy;
pub mod contention;
pub mod endings;
pub mod filled;
pub mod internal;
pub mod peers;
pub mod progress;
pub mod sequence;
pub mod sessions;
pub mod statement;
pub mod statistics;
pub mod temporary;
mod temporary_totals;
pub mod waits;

use sql_catalog as catalog;
use sql_value::{Kv, KvError, SqlError, SqlState, encoding, identifier, lists, memory, transaction, types, work};
