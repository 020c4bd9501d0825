//! A node that is a member of a cluster: the same ranges and transactions, over replicated logs, and in messages.
//!
//! # Problem
//! With one node everything that is durable is committed, everybody who asks is here, and a reply stands beside its record. With several, who leads a
//! range changes, a record may be durable and yet be lost, requests and answers get lost or come twice, and the one who began a transaction may die at any
//! step of it. Nothing that the one node promises may get weaker by that.
//!
//! # Idea
//! ```text
//!     client ── Transaction ── gateway ──┬── call ──► door of a range led here ──► its log ──► majority ──► apply
//!                 snapshot,     requests,  │            reads: at once, under the lease                          │
//!                 buffer,       again until└── frames ► door of a range led elsewhere                            ▼
//!                 reads         answered                                                             verdict, answer, versions
//! ```
//! A range has one door (`protocol::door`), and only its leader answers there, under its lease: reads at once (`serve`), changes when its log has them and
//! they are applied (`propose`); large ones go there in parts before (`stage`). Who falls behind with them says so (`crowding`). The gateway asks until it is answered (`gateway`); what changes a range is done once, however often it is asked
//! (`protocol::txn`, invariant 8). A transaction of many ranges is decided by its prepares; whoever asks all of them knows, so anybody
//! may finish what another left (`commit`). Who doubts his own clock asks a leader for the time (`lent`).
//!
//! # Invariants
//! Of the parts: `serve`, `propose`, `commit`, `flights`, `collect`, `lent` here; `protocol::txn`, `protocol::log::raft`, `protocol::door` below. Of the whole:
//! 1. What was acknowledged is in the logs of majorities, and is seen by whoever begins afterwards (rules 1 and 2 of the design).
//! 2. All replicas of a range hold the same at the same place of its log ([`Member::digest`]).
//! 3. No outcome is guessed: committed, aborted, or [`crate::TxnError::CommitUnknown`].
//! 4. Nothing prepared, no outcome and no lock stays for ever.
//!
//! # How a shell drives it
//! The server and the simulator drive the same code. One law: one input, or one operation of a transaction; then its [`Outputs`] are
//! taken and seen to; then the next.
//!
//! 1. **Open.** [`Opening::new`] over [`store::Versions`]; [`Opening::replay`] for each record of the log, in order, with its position;
//!    [`Opening::finish`]. A fresh store has no records, and founds the replicas that [`ClusterOptions::ranges`] places on it.
//! 2. **Inputs.** [`Member::step`] with [`Input`]: a tick every [`TICK_NS`], what peers sent, what the disk did.
//! 3. **Outputs.** Append [`Outputs::records`] to the log, in order: the number of a record *is* its position there. When they are synced,
//!    [`Input::Durable`]. Send each of [`Outputs::messages`] once the record that it waits for, and all before that, are durable; one that
//!    waits for none may leave at once. What was not sent when the process ends is lost, and nobody minds. Wake
//!    [`Outputs::wakers`] after every lock is free. Step [`Input::Due`] when [`Outputs::timer`] is past.
//! 4. **Transactions.** [`Transaction::begin`], then its operations, polled with a waker as those of [`crate::Transaction`]. Each may leave
//!    outputs: [`Member::drain`] takes them.
//! 5. **Space.** Now and then [`Member::freeze`], and always when [`Outputs::flush`] asks: [`store::Versions::flush`] until no layer is frozen (on another
//!    thread, if wanted), then [`Input::Flushed`]. The log before
//!    [`Member::oldest_record`] may go.
//! 6. **The past.** Every few seconds [`Member::collect`] with what the retention says, on every node; then [`store::Versions::collect`] with what
//!    [`Member::collectable`] gives, on another thread if wanted.
//! 7. **A full disk.** Keep the records and append them later. A disk that fails for good ends the life of this value:
//!    [`Input::DiskFailed`], then open anew from what the disk holds.
//!
//! The network may lose, delay, double and reorder messages. [`Message::class`] says what may overtake what; bytes are a frame with a
//! version, the cluster's number, the sender's clock interval, and are refused where they are not ours.
//!
//! # Caveats
//! Ranges are split by hand, and never merged. A member is one state machine behind one lock, and a large transaction is applied at once under it.

mod carried;
mod collect;
mod commit;
mod conversion;
mod copying;
mod core;
mod crowding;
mod deadlock;
mod digest;
mod fence;
mod flights;
mod follow;
#[cfg(test)]
mod formats;
mod gateway;
mod gather;
mod holds;
mod installing;
mod lent;
mod locks;
mod many_keys;
mod member;
mod near;
mod opening;
mod post;
mod propose;
mod replicas;
mod routes;
mod rows;
mod seam;
mod serve;
mod settled;
mod shard;
mod silence;
mod snapshot;
mod split;
mod stage;
mod staged;
mod state;
mod transaction;
mod version;

pub use commit::{COMMIT_TICKS_MAX, COMMIT_US, UNDECIDED_AFTER_US};
pub use conversion::{NotYet, Past};
pub use crowding::spared_bytes;
pub use gateway::UNAVAILABLE_TICKS;
pub use holds::SessionLock;
pub use member::{Member, NODE_MAX, RangeStatus};
pub use opening::Opening;
pub use protocol::log::raft::{Record, RecordNumber, Role};
pub use replicas::{ChangeRefused, ReplicaChange};
pub use serve::{LongRead, READING_MAX};
pub use silence::PROBE_TICKS;
pub use snapshot::{FreezeReason, Frozen, SNAPSHOT_BYTES_MAX};
pub use stage::STAGED_US;
pub(crate) use state::VERSION as STATE_VERSION;
pub use transaction::{SPANS_MAX, SpanAhead, Transaction};
pub use version::{VERSION_MAX, VERSION_MIN};

pub use seam::{
    Class, ClusterOptions, Founding, Input, LogLimits, MESSAGE_BYTES_MAX, Message, NodeId, Outgoing, Outputs,
    STAGED_BYTES_MAX, TICK_NS,
};
