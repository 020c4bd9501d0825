//! The catalog: what there is, kept as rows of the store and read in the transaction that uses it.
//!
//! Descriptors are records; what they say in SQL (defaults, checks, views) is text here, and read above.

pub mod bootstrap;
pub mod cache;
pub mod change;
pub mod codec;
pub mod defaults;
mod described;
pub mod descriptor;
pub mod extension;
pub mod garbage;
pub mod key;
pub mod oid;
mod overlay;
pub mod reliance;
mod retention;
pub mod role;
pub mod seal;
pub mod snapshot;
pub mod view;
mod visible;

use sql_value::{KvError, SqlError, SqlState, identifier, transaction, types};

pub use cache::{Cache, Wait};
pub use change::{Change, Changed};
pub use defaults::{Defaults, DefaultsOf};
pub use described::{described_row, key_values, relations, table_of};
pub use descriptor::*;
pub use overlay::Overlay;
pub use reliance::Uses;
pub use retention::retentions;
pub use seal::Seal;
pub use snapshot::{Named, Snapshot};
pub use visible::CatalogView;
