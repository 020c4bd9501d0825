use clock::{LadderLimits, Reading, Timestamp};
use protocol::txn::MAX_LOCKS_PER_TXN;

/// Isolation level (design §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Every read is certified at commit.
    #[default]
    Serializable,
    /// Snapshot isolation: writes are certified.
    Snapshot,
    /// Writes are certified; each statement reads from a snapshot of its own.
    ReadCommitted,
}

/// What a transaction wants to know of the present (design §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Consistency {
    /// `Strict` while twice the clock's error is within the budget, `Hybrid` beyond it.
    #[default]
    Auto,
    /// Commit-wait: ordered after everything acknowledged before, anywhere.
    Strict,
    /// The hybrid clock, with an uncertainty limit.
    Hybrid,
    /// The hybrid clock along the session's token only.
    Token,
    /// The raw physical clock: a consistent snapshot, possibly stale.
    None,
}

/// Up to where a version may have been acknowledged before a `hybrid` transaction began: its uncertainty limit (000 section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Uncertainty {
    /// Up to the reader's own `latest`, as measured now: a better clock restarts less.
    #[default]
    Dynamic,
    /// So far above what the reader's clock shows, microseconds, however good that is: as CockroachDB has it, for comparison. Nothing is asked of the
    /// bound then, so `hybrid` reads go on where it is lost; all clocks must lie within this of each other.
    Static(u64),
    /// As `Dynamic` while the bound is known, as `Static` while it is lost (000 section 5.2).
    Fallback(u64),
}

impl Uncertainty {
    /// The limit of a snapshot that was taken now.
    pub(crate) fn limit(self, now: &Reading, snapshot: Timestamp) -> Timestamp {
        let static_limit = |max_offset_us: u64| {
            let shown_us = (now.interval.middle_ns() / 1000).max(snapshot.physical_us());
            Timestamp::new(shown_us.saturating_add(max_offset_us), Timestamp::LOGICAL_MAX)
        };
        match self {
            Uncertainty::Dynamic => now.interval.latest(),
            Uncertainty::Static(max_offset_us) => static_limit(max_offset_us),
            Uncertainty::Fallback(max_offset_us) => match now.trusted() {
                Some(interval) => interval.latest(),
                None => static_limit(max_offset_us),
            },
        }
    }

    /// Whether `hybrid` reads go on without a bound.
    pub(crate) fn does_without_a_bound(self) -> bool {
        self != Uncertainty::Dynamic
    }
}

/// How much older than the present the snapshot of a `token` or `none` transaction is (004 section 2.4.3): what is being committed lies above it then, and is not
/// waited for. A snapshot is never below the session's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SnapshotAge {
    /// Not at all.
    #[default]
    Present,
    /// So much, microseconds.
    Fixed(u64),
    /// As long as commits take here, and as clocks may be apart.
    Tuned,
}

/// What becomes of a transaction of a cluster's node whose clock cannot give the consistency that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IfRefused {
    /// It does not begin.
    #[default]
    AtOnce,
    /// The first operation that needs a snapshot is refused: what reads and writes nothing asks nothing of a clock.
    WhenItReads,
    /// It is `token`: what is begun beside somebody's transaction, who did not ask for more.
    Token,
}

/// What a transaction wants of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    pub consistency: Consistency,
    pub uncertainty: Uncertainty,
    pub commit_wait_budget_ns: Option<u64>,
    pub snapshot_age: SnapshotAge,
}

/// What a `hybrid` transaction or statement that begins anew, for the same message of its client, keeps of what was uncertain to it
/// (decision 213): [`crate::cluster::Transaction::kept_uncertainty`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptUncertainty {
    /// Where it ended when the message was first begun: what was acknowledged before that lies at or below.
    pub limit: Timestamp,
    /// The snapshot lies at least here: past the times of those who have been met.
    pub least: Timestamp,
    /// The numbers of the nodes that have been met: what they stamp above `least` was not there when the message came.
    pub caught_up: Vec<u32>,
}

/// How a transaction begins.
#[derive(Clone, Debug, Default)]
pub struct BeginOptions {
    /// Isolation level.
    pub isolation: Isolation,
    /// Consistency.
    pub consistency: Consistency,
    /// Where the uncertainty of `hybrid` ends.
    pub uncertainty: Uncertainty,
    /// `auto` is `strict` while twice the error is at most this, nanoseconds; `None`: as the node is set ([`LadderLimits::strict_error_ns`]).
    pub commit_wait_budget_ns: Option<u64>,
    /// How old the snapshot of `token` and `none` is; on a node alone, where no read waits for a commit, not at all.
    pub snapshot_age: SnapshotAge,
    /// The greatest timestamp that the session has seen.
    pub token: Timestamp,
    /// Writes are refused; nothing read is remembered.
    pub read_only: bool,
    /// An exact snapshot of the past: read-only, neither uncertainty nor certification.
    pub as_of: Option<Timestamp>,
    /// The session that it is of: its locks say so to those who look for circles ([`crate::Node::look_at_locks`]).
    pub session: Option<u64>,
    /// What becomes of it where the clock cannot give its consistency. On a node alone it is refused at once.
    pub if_refused: IfRefused,
    /// It begins anew, by itself, for what its client has sent before (never: for something that the client has sent since). On a node alone nothing is uncertain.
    pub kept: Option<KeptUncertainty>,
}

impl BeginOptions {
    pub(crate) fn wanted(&self) -> Wanted {
        let BeginOptions { consistency, uncertainty, commit_wait_budget_ns, snapshot_age, .. } = *self;
        Wanted { consistency, uncertainty, commit_wait_budget_ns, snapshot_age }
    }
}

/// A node's own settings.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// This node's number: part of transaction numbers.
    pub node: u32,
    /// This node leads every range of the cluster. Then a snapshot at the last visible commit already covers everything that
    /// was ever acknowledged, so no reader waits for a write that is on its way to the disk, and no read is uncertain.
    pub alone: bool,
    /// At which error of the clock `auto` is strict, and at which nothing that needs the bound is served.
    pub ladder: LadderLimits,
    /// A node that is not alone promises its readers at most this much of the future, nanoseconds; a restart after a crash waits
    /// it out (a clean stop gives it back).
    pub lease_ns: u64,
    /// A timestamp from outside may lie this far beyond `latest`, microseconds.
    pub tolerance_us: u64,
    /// A transaction of a node alone holds at most this many row locks; beyond it certification alone protects its rows.
    pub locks_per_txn_max: usize,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            node: 1,
            alone: true,
            ladder: LadderLimits::default(),
            lease_ns: 2_000_000_000,
            tolerance_us: 1_000_000,
            locks_per_txn_max: MAX_LOCKS_PER_TXN,
        }
    }
}
