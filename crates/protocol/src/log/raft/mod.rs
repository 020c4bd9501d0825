//! The replicated log: the groups of a store, over a Raft library, with leases that are promises of stores.
//!
//! # Problem
//! A range must survive the loss of a machine, give each command one place and one timestamp, and let its leader serve reads without a
//! round trip. A node has thousands of ranges, most of them idle, and one disk.
//!
//! # Idea
//! Each group is a Raft group (the library keeps terms, votes, places and membership; decision 0100). What is added here:
//!
//! ```text
//!             Input                                    Outputs
//!   peers' envelopes ─┐   ┌──────────────────────┐   ┌─► records ──► one log, one sync for all groups
//!   ticks ────────────┼──►│ Replicas             │───┼─► messages_now (appends of a leader: its own sync overlaps)
//!   Persisted(n) ─────┤   │  Replica, Replica, … │   ├─► messages_after (votes, acks, promises: once durable)
//!   propose ──────────┘   │  Promises (per pair  │   ├─► committed entries, to be applied in order
//!                         │  of stores)          │   └─► roles, leases, fates, snapshots
//!                         └──────────────────────┘
//! ```
//!
//! * **Timestamps.** The leader stamps each entry by the node's hybrid clock, above every entry in its log, inside its lease.
//! * **Leases** are promises of stores, one per pair and not per group: see `promise`.
//! * **What must be durable before what is sent** is a value: a record has a number, and a message names the record that it waits for.
//! * **Idle groups sleep**: no ticks, no messages. They are woken by anything that is said to them, and when the promise between the
//!   two stores ends.
//!
//! # How a shell drives it
//! 1. **Start.** [`Recovery`]: the records of the log in order, then the applied place of each group.
//! 2. [`Replicas::step`] one input, or [`Replicas::propose`] a few; then [`Replicas::drain`], and see to all of it, before the next input.
//! 3. Append [`Outputs::records`]; when they are synced, [`Input::Persisted`]. Envelopes of `messages_after` leave then.
//! 4. Apply [`Outputs::committed`]. Mirror [`Replicas::lease`] of the groups in [`Outputs::leases`]; that a lease grows is not told: ask.
//!    Where one ended say [`Replicas::served`], if readers do not ratchet the store's clock.
//! 5. Now and then [`Input::Truncate`], and [`Input::Carry`] before segments of the log are recycled.
//!
//! # Invariants
//! 1. One leader per term; what was committed is in the log of every later leader (Raft's).
//! 2. Timestamps of a group rise with its places, whoever leads.
//! 3. What is handed out as committed is durable in a quorum's logs, this store's among them. So a restart finds again what was applied.
//!    (A leader's own entry may be *counted* committed by the others' acknowledgements before its own disk has it; it is handed out,
//!    and acknowledged to a client, when its own disk has it too.)
//! 4. A vote, an acknowledgement, an acceptance and a promise leave only when they are durable.
//! 5. The same seed and inputs give the same outputs, byte by byte.
//!
//! # Caveats
//! A disk that fails for good ends the life of this value ([`Input::PersistFailed`]): the library cannot take back what it appended.

mod chance;
mod closed;
mod elections;
mod entry;
mod envelope;
mod error;
mod farewell;
mod fate;
mod handover;
mod ids;
mod input;
mod lead;
mod lease;
mod ledger;
mod letter;
mod membership;
mod options;
mod outputs;
mod part;
mod peers;
mod post;
mod promise;
mod ready;
mod record;
mod recovery;
mod replica;
mod replicas;
mod sabotage;
mod sleep;
mod snapshot;
mod status;
mod store;
mod support;
mod tail;
mod ticks;

pub use elections::ELECTIONS_MAX;
pub use entry::{Body, LogEntry};
pub use envelope::Envelope;
pub use error::{ChangeError, DecodeError, Error, Refused};
pub use ids::{GroupId, Member, RecordNumber, ReplicaId, StoreId};
pub use input::{Change, Input};
pub use options::{
    APPEND_BYTES_MAX, APPENDS_INFLIGHT_MAX, CHUNK_BYTES_MAX, CLOSE_AFTER_US, COMMITTED_BYTES_MAX, LOST_TERMS_MAX,
    MEMBERS_MAX, Options, PAYLOAD_BYTES_MAX, RECORDS_WAITING_MAX, UNCOMMITTED_BYTES_MAX,
};
pub use outputs::{Committed, Configuration, Fate, Outputs, Proposed, Record, Role, RoleChange, SnapshotTask};
pub use recovery::Recovery;
pub use replicas::Replicas;
pub use sabotage::Sabotage;
pub use status::Status;
