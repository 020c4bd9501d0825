//! How the links are: values for views, health and metrics.

use crate::LANES;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A link to a peer, as it was a moment ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// The peer.
    pub node: u32,
    /// Its store.
    pub store: u128,
    /// Where it should be.
    pub addr: String,
    /// Whether all lanes to it are connected.
    pub up: bool,
    /// For how long this has been so.
    pub since: Duration,
    /// The latest life of it that was seen, and its release; `None` before the first handshake.
    pub seen: Option<(u64, String)>,
    /// The versions of the cluster that its program knows; `None` before the first handshake.
    pub knows: Option<RangeInclusive<u16>>,
    /// Its lanes.
    pub lanes: [LaneStatus; LANES],
    /// How often it was dialed in vain since it was named.
    pub failures: u64,
    /// The last thing that went wrong, though all may be well again, and how long ago that was.
    pub last_error: Option<(String, Duration)>,
}

/// A lane of a link, both ways. All counts are since the peer was named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneStatus {
    /// Whether parcels can leave.
    pub connected: bool,
    /// For how long this has been so.
    pub since: Duration,
    /// Whether the peer has a connection to this node.
    pub connected_from: bool,
    /// What waits to be written.
    pub queued_parcels: usize,
    /// Its bytes.
    pub queued_bytes: usize,
    /// Parcels that were dropped: the queue was full, they became stale, or the connection broke under them.
    pub dropped_parcels: u64,
    /// Parcels that were given to the kernel.
    pub sent_parcels: u64,
    /// Their bytes, without headers.
    pub sent_bytes: u64,
    /// Parcels that arrived.
    pub received_parcels: u64,
    /// Their bytes, without headers.
    pub received_bytes: u64,
}

impl LinkStatus {
    /// Bytes that wait in all lanes.
    pub fn queued_bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.queued_bytes).sum()
    }
    /// Parcels that were dropped in all lanes.
    pub fn dropped_parcels(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.dropped_parcels).sum()
    }
}
