//! Time as a value: timestamps, intervals, readings and the hybrid clock.
//!
//! Nothing here reads a clock. A reading comes in as an argument, a timestamp goes out as a value (design §2). The crate needs
//! no operating system (`no_std`) and allocates nothing.
//!
//! | module | noun |
//! | --- | --- |
//! | `timestamp` | [`Timestamp`]: 52 bits of microseconds, 12 logical bits, one integer |
//! | `interval` | [`Interval`]: true time lies in `[earliest, latest]` |
//! | `reading` | [`Reading`]: an interval with an expiry and a [`Status`] |
//! | `ladder` | [`Ladder`]: what a node may still promise, given its clock |
//! | `hybrid` | [`HybridClock`]: HybridTime's clock (002 algorithm 2) in one atomic word |
#![no_std]

mod hybrid;
mod interval;
mod ladder;
mod reading;
mod timestamp;

pub use hybrid::{FutureTimestamp, HybridClock};
pub use interval::Interval;
pub use ladder::{Change, ClockRefusal, Ladder, LadderLimits, Level, PROOF_PEERS_MAX, RISE_PERCENT, Reason};
pub use reading::{Reading, Status};
pub use timestamp::{ParseTimestampError, Timestamp};
