//! Many machines and a network, on virtual time.
//!
//! ```text
//!   clients ──Talk──► network ──► cores ──► Body (one per machine) ──records──► disk (loses, tears, stalls, fills up)
//!      ▲               (late, lost,  (queues)   │ ▲                       │
//!      └──── Talk ◄──── twice, cut) ◄───────────┘ └───────── Synced ◄─────┘
//!   machines: clocks that drift, jump and lie; processes that die, stop, sleep, start again, come back with an empty disk
//! ```
//!
//! A run: chaos with the faults of a scenario; then everything heals, and everything must serve again; then nobody asks any more, and
//! all must come to rest, with equal replicas; then the power fails everywhere, and nothing may be missing afterwards.
//!
//! What runs on the machines is a [`System`]: `register` runs the replicated log's core alone.
//!
//! Invariants of the world: one event at a time; the effects of an input leave before the next input; no real time, no order of a hash. So
//! one seed gives one trace, to the byte.

mod faults;
mod host;
mod measured;
pub mod network;
mod phases;
mod place;
mod service;
mod world;

pub use faults::{Fault, Kind, Whom};
pub use network::{Class, Latency, Weather};
pub use place::{Act, Desk, Heard, Input, Operation, Place, System};
pub use service::Model;
pub use world::{Cluster, Layout};
