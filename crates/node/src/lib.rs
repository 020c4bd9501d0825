//! One whole node: clock, protocol and store behind a few functions; no disk, no clock of its own, no thread.
//!
//! # How a shell drives it
//! The server and the simulator drive the same code:
//!
//! 1. **Open.** [`Node::open`] over [`store::Versions`]; [`Input::Replay`] for each record of the log after [`Node::applied`], in
//!    order; [`Input::Recovered`]; drive the log until [`Node::has_batch`] is false; wait until [`Node::is_ready`].
//! 2. **Transactions.** [`Transaction::begin`], then its operations. One that returns [`std::task::Poll::Pending`] has kept the
//!    [`std::task::Waker`] that it was given; call it again with the same arguments after the wake-up (spurious ones are
//!    harmless). Dropping a transaction rolls it back; [`Transaction::give_up_commit`] ends the wait for a commit that the clock holds back.
//! 3. **The log.** While [`Transaction::commit`] is pending somebody must drive the log: [`Node::take_batch`]; append and sync
//!    its records; [`Node::step`] with [`Input::Durable`] and the batch's last place (or [`Input::AppendFailed`] with its
//!    first, if nothing of it is on the disk); then wake [`Outputs::wakers`]. One taker at a time; steps may come late and out of order.
//! 4. **Time.** When [`Outputs::timer`] is past (rule 1: `earliest` reached it), and at least every second, [`Input::Tick`]. A
//!    tick may propose records: look at [`Node::has_batch`] after it. [`Input::Heard`] for what a peer's message says of clocks.
//!    Log [`Outputs::clock_changes`].
//! 5. **Space.** [`Node::freeze`], then [`store::Versions::flush`]; the log up to [`store::Versions::flushed_position`] may go.
//!    [`Node::collect`] now and then, drive the log, and once [`Node::collectable`] allows it [`store::Versions::collect`].
//!
//! 6. **Stop.** [`Node::close`], [`Node::give_back_lease`], drive the log until [`Node::has_batch`] is false. Or a crash: nothing is
//!    lost, but with peers the next start waits for the lease.
//!
//! Log places ([`LogIndex`]) are dense and begin at 1; a record read back is decoded with [`Record::decode`]. What a restart
//! must know beside versions and log (ranges, undecided prepares) travels with [`Node::freeze`].
//!
//! # What runs where
//! Reads touch only what is shared ([`Transaction`] may live on any thread): the hybrid clock, the writes in flight
//! (`inflight`, whose essay argues why two locks suffice), the versions. Commits, splits and applying go through one lock
//! (`core`). Row locks have their own.
//!
//! # Invariants
//! Of the parts: `core`, `inflight`, `transaction` here; `protocol::txn` below. Of the whole: rule 1 and rule 2 of the design;
//! a snapshot never changes; what was acknowledged survives.
//!
//! # Caveats
//! The node leads all its ranges for ever (the `single` log). With [`NodeOptions::alone`] off it takes its snapshots as a
//! member of a cluster would: from the clock, waiting for writes in flight, meeting uncertain versions. A strict commit
//! pushes the hybrid clock ahead of true time by up to twice the error, so hybrid commits right after it wait as well.
#![warn(missing_docs)]

pub mod cluster;
mod core;
mod counters;
mod error;
mod inflight;
mod large;
mod lease;
mod locks;
mod many;
mod node;
mod options;
mod references;
mod reply;
mod sabotage;
mod state;
mod timeline;
mod transaction;
mod versions;
mod watch;

pub use crate::core::{AppendError, Input, LogBatch, Outputs, QUEUE_MAX};
pub use crate::node::{Node, Ticket};
pub use counters::{Counter, Counters};
pub use error::TxnError;
pub use many::UNDECIDED_AFTER_NS;
pub use options::{
    BeginOptions, Consistency, IfRefused, Isolation, KeptUncertainty, NodeOptions, SnapshotAge, Uncertainty,
};
pub use protocol::log::LogIndex;
pub use protocol::txn::{
    LockMode, LockOwner, LockTable, LockWait, RangeId, Record, Refusal, ShownLock, Span, TxnId, Waiter,
};
pub use reply::CommitError;
pub use sabotage::Sabotage;
pub use transaction::{
    Chunk, MAX_KEY_BYTES, MAX_READ_KEYS, MAX_READ_SPANS, MAX_TXN_BYTES, MAX_VALUE_BYTES, Now, Op, Stats, Transaction,
    WhenLocked,
};
pub use watch::{PeerClock, PeerWord};
