//! The simulated world: virtual time, a disk that loses and tears, clocks that drift, step and lie, crashes; around the very
//! node core that the server runs.
//!
//! Problem: the bugs of a database live where a crash meets a clock step meets a full disk, and no test on real machines gets
//! there twice. Idea: the node core takes time, disk and wake-ups as arguments, so a seeded event loop can be its whole world.
//! One integer reproduces a run: `cargo x sim --seed N`.
//!
//! ```text
//!   sessions ──poll──► Transaction ──► Node ──batch──► Log ──► FakeDisk      (loses, tears, fills up)
//!      ▲                                │  └─flush──► Versions ──► MemoryEngine (forgets unsynced steps)
//!      └───── wakers, true time ────────┘
//!   what sessions saw ──► checker ──► verdict
//! ```
//!
//! A run: load, chaos with faults from a plan drawn from the seed, rest (everything that runs must end), a last crash, then the
//! checker judges. A run fails on a verdict, a hang, or an error that the product must not give.
//!
//! Many machines and a network are in [`cluster`]; a run is a data file, see [`scenario`].
//!
//! Caveat: a sync is one event, but a crash may fall between its write and its sync.
#![warn(missing_docs)]

mod agenda;
mod batch;
mod client;
mod clock;
pub mod cluster;
mod command;
mod machine;
pub mod nodes;
pub mod partitions;
mod plan;
mod probes;
mod references;
pub mod register;
mod rng;
mod run;
pub mod scenario;
mod trace;
mod workload;
mod world;

pub use agenda::Agenda;
pub use clock::{Blind, ClockKind, Health, SimClock, Trouble};
pub use command::main;
pub use machine::{Failure, Prepare, SimNode};
pub use plan::Plan;
pub use probes::{Probes, WANTED};
pub use rng::Rng;
pub use run::{Report, run};
pub use trace::{Show, Trace};
pub use world::{Controls, START_NS};
