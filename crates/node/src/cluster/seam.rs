//! What goes into a member of a cluster and what comes out of it: values, no effects.

use super::version::{VERSION_MAX, VERSION_MIN};
use crate::NodeOptions;
use bytes::Bytes;
use clock::Timestamp;
use protocol::log::raft::{PAYLOAD_BYTES_MAX, Record, RecordNumber, StoreId, UNCOMMITTED_BYTES_MAX};
use protocol::txn::RangeId;
use std::fmt;
use std::ops::RangeInclusive;
use std::task::Waker;

/// Between two ticks, nanoseconds.
pub const TICK_NS: u64 = 100_000_000;
/// No message has more bytes: a frame that says so is refused, and none such may be sent. The largest is an answer with the largest row (16 MiB) behind others (4 MiB).
pub const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// Bytes of large transactions that wait for their commits in one range, where nothing else is set.
pub const STAGED_BYTES_MAX: u64 = 1 << 30;

/// A node of a cluster, and its one store: a store that was wiped comes back under another number. Never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The store's number in the replicated log.
    pub fn store(self) -> StoreId {
        StoreId(u64::from(self.0))
    }
    /// The node of a store; `None` where no node can have that number.
    pub fn of_store(store: StoreId) -> Option<NodeId> {
        u32::try_from(store.0).ok().filter(|node| *node != 0).map(NodeId)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}
impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a message is: each class may have a connection of its own, so that the first overtakes the last. Within a class, too, order does
/// not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Consensus: heartbeats, votes, appends, promises.
    Consensus,
    /// Requests of transactions, and their answers.
    Request,
    /// Parts of snapshots.
    Bulk,
}

/// A message between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who sends it.
    pub from: NodeId,
    /// To whom.
    pub to: NodeId,
    /// What it is.
    pub class: Class,
    /// A frame: version, cluster, sender, receiver, the sender's clock, body.
    pub bytes: Bytes,
}

/// A message, and what must be durable before it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The message.
    pub message: Message,
    /// It leaves when this record, and all before it, are durable; `None`: at once.
    pub after: Option<RecordNumber>,
}

/// What a member is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// [`TICK_NS`] have passed. What is counted in ticks goes by these, whatever the clock shows.
    Tick,
    /// [`Outputs::timer`] is past.
    Due,
    /// A message arrived: late, twice, or damaged, as it may be.
    Message(Message),
    /// All records up to this one are durable.
    Durable(RecordNumber),
    /// The disk refused records for good: nothing is taken, served or sent any more.
    DiskFailed,
    /// [`store::Versions::flush`] has written something.
    Flushed,
}

/// What a member wants done. See the module for the order.
#[derive(Debug, Default)]
pub struct Outputs {
    /// For the log, in order; the number of a record is its position there.
    pub records: Vec<Record>,
    /// To be sent.
    pub messages: Vec<Outgoing>,
    /// To be woken, after every lock is free.
    pub wakers: Vec<Waker>,
    /// Step [`Input::Due`] once this is past: what rule 1 holds back first.
    pub timer: Option<Timestamp>,
    /// Versions were frozen, and somebody waits for them: flush, then [`Input::Flushed`].
    pub flush: bool,
    /// A large commit is seen and not in its places: call [`store::Versions::place`] soon, while nothing else waits for it.
    pub place: bool,
    /// To be read while others have the core, in any order: [`super::Member::read`].
    pub reads: Vec<super::LongRead>,
    /// What happened to the clock's level, for the log.
    pub clock_changes: Vec<clock::Change>,
    /// Ranges that this node begins to hand over by itself, as its clock is not believed any more; and its term.
    pub handovers: Vec<(RangeId, u64)>,
}

impl Outputs {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        !self.flush
            && !self.place
            && self.reads.is_empty()
            && self.records.is_empty()
            && self.messages.is_empty()
            && self.wakers.is_empty()
            && self.clock_changes.is_empty()
    }
}

/// A range that the cluster begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founding {
    /// Its number, which is its group's, too. Never 0.
    pub range: RangeId,
    /// Its first key. It ends where the next one begins; the first begins at the empty key.
    pub start: Bytes,
    /// The nodes that replicate it: the first replica is on the first, and so on. The same list on every node.
    pub replicas: Vec<NodeId>,
}

/// How large what goes into the log is, and how much of it stays that nobody here needs any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Entries of each range, for replicas that lag; those that lag more get a snapshot.
    pub entries_kept: u64,
    /// Records from the oldest that is needed to the last: beyond it, what idle ranges need of old ones is written again.
    pub records_kept: u64,
    /// As `entries_kept`, in bytes: where it is fewer entries.
    pub entry_bytes_kept: usize,
    /// As `entry_bytes_kept`, where the log core writes what is kept again, in one step; but what a replica lacks that was heard lately is kept all the same,
    /// up to `entry_bytes_kept` more of all ranges together.
    pub carried_bytes: usize,
    /// Bytes of a range that another replica needs are read in a tick, at most, or a few keys; and so many of a snapshot are installed at a time.
    pub copied_bytes_per_tick: usize,
    /// A range of which more was copied is split in two instead.
    pub copied_bytes: usize,
    /// As `records_kept`, in bytes: where it is fewer records.
    pub record_bytes_kept: u64,
    /// What a transaction asks of one range is one entry up to here; beyond it it is sent in parts.
    pub entry_bytes: usize,
    /// Of so many bytes.
    pub part_bytes: usize,
    /// What is staged in a range is at most so much, and what a node takes that is its leader in all of its ranges together.
    pub staged_bytes: u64,
    /// What a node leads, in all of its ranges together, and followers have not taken: beyond it writes are put off (`crowding`).
    pub uncommitted_bytes: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        LogLimits {
            entries_kept: 1000,
            records_kept: 100_000,
            entry_bytes_kept: 64 << 20,
            carried_bytes: 16 << 20,
            copied_bytes_per_tick: 4 << 20,
            copied_bytes: 256 << 20,
            record_bytes_kept: 256 << 20,
            // Beside it there is room for the names of participants.
            entry_bytes: PAYLOAD_BYTES_MAX - (64 << 10),
            part_bytes: 512 << 10,
            staged_bytes: STAGED_BYTES_MAX,
            uncommitted_bytes: 4 * UNCOMMITTED_BYTES_MAX,
        }
    }
}

/// How a node is a member of a cluster. Where it does not say otherwise, the same on every node.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The cluster's number: messages of another one are refused.
    pub cluster: u64,
    /// This node.
    pub node: NodeId,
    /// What it begins with, in key order. A node that no range names has no replicas yet, and can be a gateway.
    pub ranges: Vec<Founding>,
    /// The versions of the cluster that this program knows. Of this node.
    pub versions: RangeInclusive<u16>,
    /// The cluster's version, as far as is known here. Of this node.
    pub version: u16,
    /// Where the chance of election timeouts comes from. Of this node.
    pub seed: u64,
    /// What of the log is kept. Of this node.
    pub limits: LogLimits,
    /// Of this node; `node` and `alone` are set by what stands above.
    pub node_options: NodeOptions,
}

impl ClusterOptions {
    /// With the usual settings.
    pub fn new(cluster: u64, node: NodeId, ranges: Vec<Founding>, seed: u64) -> Self {
        let (limits, node_options) = (LogLimits::default(), NodeOptions::default());
        let (versions, version) = (VERSION_MIN..=VERSION_MAX, VERSION_MIN);
        ClusterOptions { cluster, node, ranges, versions, version, seed, limits, node_options }
    }
}
