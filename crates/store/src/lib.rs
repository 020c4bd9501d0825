//! Versions over an engine, and the durable log, over a disk that it is given.
//!
//! Two halves, which the layers above join:
//!
//! - [`Versions`]: every key with its versions in time. Commits land in an ordered map in memory (the overlay); a frozen
//!   overlay is written to an [`Engine`] in one atomic step that carries the applied log position.
//! - [`Log`]: the one place where durability comes from. What the engine lost in a crash is replayed from it.
//!
//! No thread starts here and no clock is read: the caller decides when to freeze, flush, collect and sync.

pub mod disk;
pub mod engine;
mod error;
pub mod keys;
pub mod log;
pub mod versions;

pub use engine::fjall::{FjallEngine, FjallOptions};
pub use engine::memory::MemoryEngine;
pub use engine::{Change, Engine};
pub use error::StoreError;
pub use log::{Log, LogError, LogOptions, LogRecovery};
pub use versions::{
    Erased, Histories, Loaded, Pick, Read, Recovered, Scan, SnapshotGuard, Span, Sweep, Version, Versions,
    VersionsConfig, Write,
};
