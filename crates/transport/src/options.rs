//! What can be set, and the named bounds.

use crate::{Event, LANES};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// No parcel has more bytes: a length beyond it ends the connection.
pub const PARCEL_BYTES_MAX: usize = 32 << 20;
/// No control request and no reply has more bytes.
pub const CONTROL_BYTES_MAX: usize = 64 << 10;
/// Parcels that wait for one lane of one peer.
pub const QUEUE_PARCELS_MAX: usize = 65_536;
/// Connections that have not said who they are, or ask for control: beyond it the oldest gives way.
pub const GUESTS_MAX: usize = 64;

/// How long a connection may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(1000);
/// How long a whole handshake may take, or the reading of a control request.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(2000);
/// A lane that has nothing to write says so this often.
pub const PROBE_EVERY: Duration = Duration::from_millis(1000);
/// A connection on which the other side takes nothing, or acknowledges nothing, for so long is given up.
pub const STALL: Duration = Duration::from_millis(3000);
/// A connection on which nothing arrives for so long, not even a probe, is given up.
pub const SILENCE: Duration = Duration::from_millis(4000);
/// A life of a node from which something was read so recently, with connections that stand in both directions, is not over: a later one waits. (What is read may have waited here for long; the
/// connection that was dialed to a process ends with it.)
pub const ALIVE: Duration = Duration::from_millis(2000);
/// Who was told for so long, by one peer without a break, that an earlier life of its node goes on, is a copy: whoever died is forgotten after [`ALIVE`].
pub const COPY_AFTER: Duration = Duration::from_millis(6000);
/// What waited longer for a link that was down is not sent when it is up again: whoever sent it has tried something else since.
pub const STALE: Duration = Duration::from_millis(1000);
/// The first attempt after a failure comes after about so long; each further one after twice as long.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(20);
/// No attempt comes later than this after the one before.
pub const BACKOFF_MAX: Duration = Duration::from_millis(1000);

/// Where events go, on the thread that they happen on.
pub type Report = Arc<dyn Fn(&Event) + Send + Sync>;

/// How far the log of a peer's store reaches, as far as that has told in what was delivered here; 0: nothing was told.
pub type HeardOf = Arc<dyn Fn(u32) -> u64 + Send + Sync>;

/// How a transport behaves.
#[derive(Clone)]
pub struct Options {
    /// Bytes that may wait for each lane of each peer. A single parcel always finds room in an empty queue.
    pub queue_bytes_max: [usize; LANES],
    /// Where the jitter between attempts comes from.
    pub seed: u64,
    /// Told of what an operator may want to read.
    pub report: Report,
    /// Asked when a life of a peer comes that was not seen before.
    pub heard_of: HeardOf,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            queue_bytes_max: [16 << 20, 16 << 20, 32 << 20],
            seed: 0,
            report: Arc::new(|_| {}),
            heard_of: Arc::new(|_| 0),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { queue_bytes_max, seed, report: _, heard_of: _ } = self;
        f.debug_struct("Options").field("queue_bytes_max", queue_bytes_max).field("seed", seed).finish_non_exhaustive()
    }
}
