//! `timeball clock`: looking at a bounded clock, recording it, drawing it, and improving it.
//!
//! * [`watch`]: what the clock says now, live or as JSON;
//! * [`peers`]: what the nodes of a cluster say of their clocks;
//! * [`record`]: appendix B of 000 (the width of the bound every 250 ms, five minutes to a bucket, twelve hours);
//! * [`figure`]: its figure 4.17, with the document's table E.1 beside a recording;
//! * [`doctor`]: what in chronyd's settings keeps the bound wide, and what a change would gain.

pub mod doctor;
pub mod figure;
pub mod peers;
pub mod record;
pub mod watch;

use std::io;
use std::path::PathBuf;

/// Why a clock command failed.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The source cannot be opened.
    #[error(transparent)]
    Open(#[from] clocksource::OpenError),
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file is not a recording.
    #[error("line {line} of the recording cannot be read: {reason}; recordings are made by `timeball clock record`")]
    Recording {
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A node cannot be asked.
    #[error(transparent)]
    Node(#[from] crate::client::ClientError),
    /// Writing what the command has to say failed.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}
