//! What can be set, and the bounds that cannot.

use super::ids::StoreId;

/// How far behind now timestamps are closed unless it is said otherwise, microseconds.
pub const CLOSE_AFTER_US: u64 = 3_000_000;
/// A payload of more bytes is refused: larger transactions travel in parts.
pub const PAYLOAD_BYTES_MAX: usize = 4 << 20;
/// Entries of one append message, in bytes, at most (or one entry).
pub const APPEND_BYTES_MAX: u64 = 1 << 20;
/// Append messages on their way to one follower of one group, at most.
pub const APPENDS_INFLIGHT_MAX: usize = 64;
/// Proposals of one group that are not committed yet, in bytes: beyond it proposals are refused as `Overloaded`.
pub const UNCOMMITTED_BYTES_MAX: u64 = 32 << 20;
/// Records that wait for the disk, at most: beyond it proposals are refused as `Overloaded`. Only a disk that stalls brings it about.
pub const RECORDS_WAITING_MAX: usize = 65_536;
/// Committed entries handed out of one group at a time, in bytes, at most (or one entry).
pub const COMMITTED_BYTES_MAX: u64 = 8 << 20;
/// Messages that a group's leader sends in a tick for nothing but to tell each follower of a commit, at most.
pub const COMMITS_TOLD_PER_TICK: u32 = 4;
/// Former terms whose unfinished proposals a replica keeps account of.
pub const LOST_TERMS_MAX: usize = 8;
/// Members of one group, learners and both halves of a joint configuration together.
pub const MEMBERS_MAX: usize = 32;
/// One part of a snapshot, in bytes.
pub const CHUNK_BYTES_MAX: usize = 256 << 10;

/// Settings of one store's replicas. All stores of a cluster should agree.
#[derive(Clone, Debug)]
pub struct Options {
    /// This store.
    pub store: StoreId,
    /// Where the chance of election timeouts comes from. The same seed and inputs give the same outputs, byte by byte.
    pub seed: u64,
    /// Ticks between two heartbeats of a group that is awake.
    pub heartbeat_ticks: usize,
    /// Ticks without a leader before a follower looks for votes; the actual number is drawn from once to twice this.
    pub election_ticks: usize,
    /// Ticks without anything to do before a group goes to sleep.
    pub quiet_ticks: usize,
    /// Ticks between two requests for a longer promise, one per pair of stores.
    pub ask_ticks: usize,
    /// How far beyond now a promise reaches, microseconds. Several times the ticks between two requests.
    pub promise_us: u64,
    /// How far behind now timestamps are closed, microseconds.
    pub close_after_us: u64,
    /// Bytes of snapshots that leave in one tick, at most.
    pub snapshot_bytes_per_tick: usize,
    /// Ticks without news of a snapshot after which its part is sent again, or the place for it is free for another.
    pub snapshot_retry_ticks: usize,
}

impl Options {
    /// For a tick of 100 ms.
    pub fn new(store: StoreId, seed: u64) -> Self {
        Options {
            store,
            seed,
            heartbeat_ticks: 2,
            election_ticks: 10,
            quiet_ticks: 10,
            ask_ticks: 5,
            promise_us: 3_000_000,
            close_after_us: CLOSE_AFTER_US,
            snapshot_bytes_per_tick: 4 << 20,
            snapshot_retry_ticks: 20,
        }
    }
}
