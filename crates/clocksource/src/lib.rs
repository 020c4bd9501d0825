//! Reads real clocks and says how wrong they may be.
//!
//! **Problem.** A database reads the clock for every transaction. Asking a time daemon takes tens of microseconds, a bare system
//! clock says nothing of its error, and one static maximum for the whole cluster makes everybody pay for the worst clock
//! (000 §3.3.1: 50 µs for the daemon, 250 ns for the library that replaced it, 60 ns for the bare clock).
//!
//! **Idea.** Ask rarely, extrapolate often. A thread asks the source (chrony, the kernel, ...) a few times a second and publishes an
//! [`Anchor`]: two straight lines over a clock of the kernel that nobody steps, between which true time lies. A reading loads the
//! anchor, reads that clock through the vDSO, and evaluates both lines: no lock, no system call, no daemon.
//!
//! ```text
//!   source ──probe──▶ Tracker ──anchor──▶ AnchorCell ◀──load── read() ──▶ [earliest, latest]
//!   (a thread, every 250 ms; off the hot path)            (hot: two cache lines and one clock_gettime, or two)
//! ```
//!
//! **Use.**
//! ```
//! use clocksource::{Clock, ClockSource, Spec};
//! let clock = Clock::open(&"same-host".parse::<Spec>()?)?;
//! let now = clock.now()?;
//! assert!(now.earliest_ns <= now.latest_ns);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Invariants.**
//! 1. True time lies inside a trusted reading, provided that what the source says of its own error holds and that the local
//!    oscillator drifts by no more than the rate in force.
//! 2. A source that does not know its error gives `Unknown`, never a small bound: an error field of 0 is not an error of 0.
//! 3. Every loss (a dead daemon, a step, a suspend) widens the bound or changes the status. None ends the process.
//!
//! **Caveats.** A source that lies consistently cannot be found out from one machine; nodes find it by comparing intervals.
//!
//! This is the one crate with the clock system calls; it runs on Linux.

// This crate is a shell: it reads clocks, asks daemons over sockets and owns the polling thread.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod anchor;
pub mod auto;
#[cfg(feature = "c-abi")]
pub mod capi;
mod cell;
pub mod chrony;
mod clock;
pub mod clockbound;
mod kernel;
mod measurement;
mod memory;
mod moment;
mod news;
pub mod ntp;
mod poller;
pub mod ptp;
mod source;
mod spec;
mod tracker;
mod vmclock;

pub use crate::clock::{Clock, OpenError, POLL_EVERY, Report, Settings};
pub use anchor::{Anchor, Bare, LATE_AFTER_NS, LOOK_AFTER_NS};
pub use cell::AnchorCell;
pub use kernel::{Kernel, KernelTime};
pub use measurement::{ANSWER_NS_MAX, Leap, Measurement, Probe, ProbeError, SLEW_PPB_MAX};
pub use memory::Memory;
pub use moment::Moment;
pub use poller::Poller;
pub use source::{ClockSource, Untrusted};
pub use spec::{ParseSpecError, Spec};
pub use tracker::{Event, LEAP_AFTER_NS, LEAP_BEFORE_NS, Tracker, VOID_AFTER_NS};
pub use vmclock::VmClock;
