//! The ladder: what a node may still promise, given its clock.
//!
//! **Problem.** A clock gets worse by degrees, and databases answer with one cliff: they stop, often without a number in the log
//! (cockroach#44405, #69753), or they trust an old bound in silence.
//!
//! **Idea.** Five steps. Each poll puts one [`Reading`] in; each change of step comes out with its reason in numbers.
//!
//! ```text
//!   Waiting ──▶ Synchronized ◀──▶ Degraded ◀──▶ TooWide        (by the reading)
//!                     └──────────────┴──────────────┴──▶ Untrusted   (by proofs; back when they cease)
//! ```
//!
//! | level | `strict` | `hybrid` | `token`, the past, `none` (with peers, below `Degraded`, by the time that a leader says it is) |
//! | --- | --- | --- | --- |
//! | `Waiting`: started, no good bound yet | refused | refused | served |
//! | `Synchronized`: error at most `strict_error_ns` | served | served | served |
//! | `Degraded`: error at most `hybrid_error_ns` | served when asked for by name (it waits longer); `auto` is `hybrid` | served | served |
//! | `TooWide`: wider, void, unknown or disrupted | refused | refused | served |
//! | `Untrusted`: it is proved that this node's bound is or was broken | refused | refused | served |
//!
//! A proof (design §2): a message carries its sender's interval; if the receiver's `latest` is below the sender's `earliest`,
//! one of the two bounds is broken. It takes two claims: a reading that is not trusted claims nothing, proves nothing, and is not
//! proved wrong. One proof accuses two nodes. A node whose intervals miss those of `fence_peers` different
//! peers within `proof_memory_ns` takes itself to be the broken one. The node's own past is a witness as well: where its hybrid
//! clock lies beyond all that `latest` allows, the clock has been set back, and a bound that it relied upon was broken.
//!
//! **Invariants.**
//! 1. Down at once, up with slack: a level is regained only at `RISE_PERCENT` of its limit, so that a bound that saws around a
//!    limit does not flap.
//! 2. A reading that may not be relied upon is `TooWide`, whatever its width.
//! 3. No level ends the process.
//!
//! **Caveats.** The ladder sees only what it is given: between two steps the bound may have crossed a limit. Who needs the
//! limit exactly (a commit-wait) reads the clock itself.

use crate::{Reading, Status};
use core::fmt;

/// A better level is regained when the error is at most this share of its limit (percent).
pub const RISE_PERCENT: u64 = 80;
/// Peers whose proofs are remembered; more than a majority of any group that shares a range.
pub const PROOF_PEERS_MAX: usize = 16;

/// What the clock allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Level {
    /// Started, and the bound has not been under its limit yet.
    #[default]
    Waiting,
    /// `auto` is `strict`.
    Synchronized,
    /// `auto` is `hybrid`.
    Degraded,
    /// `strict` and `hybrid` are refused.
    TooWide,
    /// `strict` and `hybrid` are refused: it is proved that the bound is or was broken.
    Untrusted,
}

impl Level {
    /// The name, as metrics, JSON and SQL show it.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Waiting => "waiting",
            Level::Synchronized => "synchronized",
            Level::Degraded => "degraded",
            Level::TooWide => "too_wide",
            Level::Untrusted => "untrusted",
        }
    }
    /// Whether anything that depends on the bound (`strict`, `hybrid`) may be served.
    pub const fn serves_now(self) -> bool {
        matches!(self, Level::Synchronized | Level::Degraded)
    }
    /// Whether `auto` means `strict` (otherwise `hybrid`).
    pub const fn auto_is_strict(self) -> bool {
        matches!(self, Level::Synchronized)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The limits that the operator sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LadderLimits {
    /// Greatest error (half the width) at which `auto` is `strict`, nanoseconds. Half of the commit-wait budget of 10 ms.
    pub strict_error_ns: u64,
    /// Greatest error at which `hybrid` is served, nanoseconds. The default has room for an announced leap second, which adds
    /// half a second.
    pub hybrid_error_ns: u64,
    /// Different peers whose proofs fence this node. A majority of its peers is a good choice.
    pub fence_peers: usize,
    /// How long a proof counts, nanoseconds; also how long an untrusted node must be without a new one to be trusted again.
    pub proof_memory_ns: u64,
}

impl Default for LadderLimits {
    fn default() -> Self {
        LadderLimits {
            strict_error_ns: 5_000_000,
            hybrid_error_ns: 1_000_000_000,
            fence_peers: 2,
            proof_memory_ns: 60_000_000_000,
        }
    }
}

/// Why the ladder stands where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing was read yet.
    NoReading,
    /// The error is compared with a limit, nanoseconds.
    Error {
        /// Half the width of the interval.
        error_ns: u64,
        /// The limit that it met or broke.
        limit_ns: u64,
    },
    /// The source says that its bound may not be relied upon.
    Status(Status),
    /// The reading is past its expiry.
    Void {
        /// Nanoseconds since the statistics were taken.
        age_ns: u64,
    },
    /// Peers proved that the bound is broken.
    Proofs {
        /// How many different peers.
        peers: usize,
        /// The widest gap between the intervals, nanoseconds.
        gap_ns: u64,
    },
    /// The clock was set back: timestamps were given out that lie beyond all that it allows now.
    SetBack {
        /// By how much, nanoseconds: in so long it is trusted again, unless it is repaired.
        by_ns: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: &u64| *ns as f64 / 1e6;
        match self {
            Reason::NoReading => f.write_str("the clock was not read yet"),
            Reason::Error { error_ns, limit_ns } => {
                let word = if error_ns <= limit_ns { "within" } else { "beyond" };
                write!(f, "clock error {:.3} ms is {word} the limit of {:.3} ms", ms(error_ns), ms(limit_ns))
            }
            Reason::Status(status) => write!(f, "the clock source is {status}"),
            Reason::Void { age_ns } => write!(f, "the last word of the clock source is {:.1} s old", ms(age_ns) / 1e3),
            Reason::Proofs { peers, gap_ns } => {
                match peers {
                    1 => f.write_str("the clock of 1 peer proves")?,
                    _ => write!(f, "the clocks of {peers} peers prove")?,
                }
                write!(f, " this node's bound wrong, by up to {:.3} ms", ms(gap_ns))
            }
            Reason::SetBack { by_ns } => {
                let seconds = ms(by_ns) / 1e3;
                write!(f, "the clock was set back: it is {seconds:.3} s behind timestamps that this node gave out")
            }
        }
    }
}

/// The ladder took a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub from: Level,
    /// After.
    pub to: Level,
    /// Why, in numbers.
    pub reason: Reason,
}

impl Change {
    /// Whether more is allowed than before: good news, which nobody need be woken for.
    pub const fn is_recovery(&self) -> bool {
        rank(self.to) > rank(self.from)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clock level {} -> {}: {}", self.from, self.to, self.reason)
    }
}

/// A statement that depends on the bound is refused at this level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the clock is {level} ({reason}), and this consistency needs its bound: wait for the clock, or use timeball.consistency = 'token' or 'none', or read the past"
)]
pub struct ClockRefusal {
    /// Where the ladder stands.
    pub level: Level,
    /// Why.
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug)]
struct Proof {
    peer: u64,
    at_ns: u64,
    gap_ns: u64,
}

/// The state machine.
#[derive(Clone, Debug)]
pub struct Ladder {
    limits: LadderLimits,
    level: Level,
    reason: Reason,
    started: bool,
    proofs: [Option<Proof>; PROOF_PEERS_MAX],
}

impl Ladder {
    /// At the foot: [`Level::Waiting`].
    pub const fn new(limits: LadderLimits) -> Self {
        let proofs = [None; PROOF_PEERS_MAX];
        Ladder { limits, level: Level::Waiting, reason: Reason::NoReading, started: false, proofs }
    }
    /// Where it stands.
    pub const fn level(&self) -> Level {
        self.level
    }
    /// Why it stands there, by the last reading.
    pub const fn reason(&self) -> Reason {
        self.reason
    }
    /// The limits in force.
    pub const fn limits(&self) -> LadderLimits {
        self.limits
    }
    /// Whether a statement that depends on the bound may be served.
    ///
    /// # Errors
    /// [`ClockRefusal`], with the numbers for the client.
    pub const fn admit(&self) -> Result<(), ClockRefusal> {
        if self.level.serves_now() { Ok(()) } else { Err(ClockRefusal { level: self.level, reason: self.reason }) }
    }

    /// Whether the level holds for this reading too, so that no step is needed: for whoever asks often.
    pub const fn level_holds(level: Level, limits: &LadderLimits, reading: &Reading) -> bool {
        let limit_ns = match level {
            Level::Synchronized => limits.strict_error_ns,
            Level::Degraded => limits.hybrid_error_ns,
            Level::Waiting | Level::TooWide | Level::Untrusted => return false,
        };
        match reading.trusted() {
            Some(interval) => interval.error_ns() <= limit_ns,
            None => false,
        }
    }

    /// A peer's interval and ours, both claimed, did not meet, by `gap_ns`, when our monotonic clock showed `at_ns`
    /// ([`Reading::now_ns`]). Counts from the next step on.
    pub fn accuse(&mut self, peer: u64, gap_ns: u64, at_ns: u64) {
        let proof = Some(Proof { peer, at_ns, gap_ns });
        let known = self.proofs.iter().position(|p| p.is_some_and(|p| p.peer == peer));
        let free = self.proofs.iter().position(Option::is_none);
        let oldest = || (0..PROOF_PEERS_MAX).min_by_key(|i| self.proofs[*i].map_or(0, |p| p.at_ns));
        if let Some(i) = known.or(free).or_else(oldest) {
            self.proofs[i] = proof;
        }
    }

    /// Takes the current reading, and how far the node's hybrid clock lies beyond all that `latest` allows, nanoseconds (0 unless
    /// the clock was set back); says whether the level changed.
    pub fn step(&mut self, reading: &Reading, set_back_ns: u64) -> Option<Change> {
        for slot in &mut self.proofs {
            if slot.is_some_and(|p| reading.now_ns.saturating_sub(p.at_ns) > self.limits.proof_memory_ns) {
                *slot = None;
            }
        }
        let (to, reason) = self.judge(reading, set_back_ns);
        let from = core::mem::replace(&mut self.level, to);
        self.reason = reason;
        self.started |= to.serves_now();
        (from != to).then_some(Change { from, to, reason })
    }

    fn judge(&self, reading: &Reading, set_back_ns: u64) -> (Level, Reason) {
        let peers = self.proofs.iter().flatten().count();
        // Once fenced by proofs, every remembered one must have aged away; it takes `fence_peers` of them to be fenced, also
        // while the level is `Untrusted` for another reason.
        let fenced = self.level == Level::Untrusted && matches!(self.reason, Reason::Proofs { .. });
        let enough = if fenced { 1 } else { self.limits.fence_peers.max(1) };
        if peers >= enough {
            let gap_ns = self.proofs.iter().flatten().map(|p| p.gap_ns).max().unwrap_or(0);
            return (Level::Untrusted, Reason::Proofs { peers, gap_ns });
        }
        let bottom = if self.started { Level::TooWide } else { Level::Waiting };
        let Some(interval) = reading.trusted() else {
            let age_ns = reading.now_ns.saturating_sub(reading.as_of_ns);
            let void = reading.is_void() && reading.as_of_ns > 0;
            return (bottom, if void { Reason::Void { age_ns } } else { Reason::Status(reading.status) });
        };
        if set_back_ns > 0 {
            return (Level::Untrusted, Reason::SetBack { by_ns: set_back_ns });
        }
        let error_ns = interval.error_ns();
        let (strict_ns, hybrid_ns) = (
            self.limit_of(Level::Synchronized, self.limits.strict_error_ns),
            self.limit_of(Level::Degraded, self.limits.hybrid_error_ns),
        );
        // Whoever reads it knows the limit that he set; the one with slack is named only where it decides.
        let error = |limit_ns, slack_ns| {
            let within = error_ns <= slack_ns || error_ns > limit_ns;
            Reason::Error { error_ns, limit_ns: if within { limit_ns } else { slack_ns } }
        };
        match error_ns {
            e if e <= strict_ns => (Level::Synchronized, error(self.limits.strict_error_ns, strict_ns)),
            e if e <= hybrid_ns => (Level::Degraded, error(self.limits.strict_error_ns, strict_ns)),
            _ => (bottom, error(self.limits.hybrid_error_ns, hybrid_ns)),
        }
    }

    /// The limit of `level` as it counts now: with slack when it has to be regained.
    fn limit_of(&self, level: Level, limit_ns: u64) -> u64 {
        let regained = self.level != Level::Waiting && rank(self.level) < rank(level);
        if regained { limit_ns / 100 * RISE_PERCENT } else { limit_ns }
    }
}

impl Default for Ladder {
    fn default() -> Self {
        Ladder::new(LadderLimits::default())
    }
}

/// Better is higher.
const fn rank(level: Level) -> u8 {
    match level {
        Level::Waiting => 0,
        Level::Untrusted => 1,
        Level::TooWide => 2,
        Level::Degraded => 3,
        Level::Synchronized => 4,
    }
}
