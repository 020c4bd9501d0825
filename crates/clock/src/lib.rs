//! Time as a value: timestamps, intervals, readings and the hybrid clock.
//!
//! Nothing here reads a clock. A reading comes in as an argument, a timestamp goes out as a value (design §2).
#![no_std]

mod hybrid;
mod interval;
mod reading;
mod timestamp;

pub use hybrid::{FutureTimestamp, HybridClock};
pub use interval::Interval;
pub use reading::{Reading, Status};
pub use timestamp::Timestamp;
