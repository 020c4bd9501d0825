//! A node that is a member of a cluster: the same ranges and transactions, over replicated logs, and in messages.
//!
//! # How a shell drives it
//! The server and the simulator drive the same code. One law: one input, or one operation of a transaction; then its [`Outputs`] are
//! taken and seen to; then the next.
//!
//! 1. **Open.** `Opening::new` over [`store::Versions`]; `Opening::replay` for each record of the log, in order, with its position;
//!    `Opening::finish`. A fresh store has no records, and founds the replicas that [`ClusterOptions::ranges`] places on it.
//! 2. **Inputs.** `Member::step` with [`Input`]: a tick every [`TICK_NS`], what peers sent, what the disk did.
//! 3. **Outputs.** Append [`Outputs::records`] to the log, in order: the number of a record *is* its position there. When they are synced,
//!    [`Input::Durable`]. Send each of [`Outputs::messages`] once the record that it waits for, and all before that, are durable; one that
//!    waits for none may leave at once. What was not sent when the process ends is lost, and nobody minds. Wake
//!    [`Outputs::wakers`] after every lock is free. Step [`Input::Tick`] early, when [`Outputs::timer`] is past.
//! 4. **Transactions.** `Transaction::begin`, then its operations, polled with a waker as those of [`crate::Transaction`]. Each may leave
//!    outputs: `Member::drain` takes them.
//! 5. **Space.** `Member::freeze`, [`store::Versions::flush`] (on another thread, if wanted), then [`Input::Flushed`]. The log before
//!    `Member::oldest_record` may go.
//! 6. **A full disk.** Keep the records and append them later. A disk that fails for good ends the life of this value:
//!    [`Input::DiskFailed`], then open anew from what the disk holds.
//!
//! The network may lose, delay, double and reorder messages. [`Message::class`] says what may overtake what; bytes are a frame with a
//! version, the cluster's number, the sender's clock interval, and are refused where they are not ours.

mod seam;

pub use seam::{
    Class, ClusterOptions, Founding, Input, MESSAGE_BYTES_MAX, Message, NodeId, Outgoing, Outputs, TICK_NS,
};
