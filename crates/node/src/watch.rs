//! The watch over the node's clock: what it may promise now, what its peers' clocks say.
//!
//! Every transaction that needs the bound asks here, so the common answer must cost next to nothing: the level is one atomic, and
//! [`Ladder::level_holds`] says whether the reading of this moment still fits it. Only where it does not, or a tick passes, is the
//! [`Ladder`] itself stepped, under a lock. Changes are kept until the next step of the node hands them to its shell for the log.
//!
//! Invariants:
//! 1. Nothing that needs the bound begins on a reading that its level does not allow, however long ago the last tick was.
//! 2. A node that was set back (see [`Watch::set_back_ns`]) is `Untrusted` until its clock has caught up.

use crate::TxnError;
use crate::options::{Consistency, NodeOptions, Wanted};
use crate::sabotage::Sabotage;
use clock::{Change, ClockRefusal, Interval, Ladder, Level, PROOF_PEERS_MAX, Reading, Reason, Timestamp};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

/// Changes of the level that wait to be logged, at most; older ones are dropped.
const CHANGES_MAX: usize = 64;

/// What a peer's message said of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerWord {
    /// Who.
    pub peer: u32,
    /// What it claims: its interval when it sent the message, if its reading was trusted. `None`: it claims nothing.
    pub claim: Option<Interval>,
    /// It has proof against this node: the `earliest` of a claim of ours lay beyond its `latest` by so much, nanoseconds; 0: none.
    pub accuses_ns: u64,
}

/// A peer's clock as last heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerClock {
    /// What it said.
    pub word: PeerWord,
    /// When, on this node's monotonic clock, nanoseconds.
    pub heard_ns: u64,
}

#[derive(Debug)]
struct State {
    ladder: Ladder,
    changes: Vec<Change>,
    peers: BTreeMap<u32, PeerClock>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Watch {
    level: AtomicU8,
    state: Mutex<State>,
}

/// In the order of their numbers.
const LEVELS: [Level; 5] = [Level::Waiting, Level::Synchronized, Level::Degraded, Level::TooWide, Level::Untrusted];

impl Watch {
    pub fn new(options: &NodeOptions) -> Self {
        let state = State { ladder: Ladder::new(options.ladder), changes: Vec::new(), peers: BTreeMap::new() };
        Watch { level: AtomicU8::new(Level::Waiting as u8), state: Mutex::new(state) }
    }

    /// How far the hybrid clock lies beyond all that `latest` allows, nanoseconds; 0 unless the clock was set back.
    ///
    /// Timestamps are taken at `earliest`, from a strict floor at `latest`, or up to the tolerance beyond `latest` from a peer; and
    /// a bound may have narrowed since. What lies further ahead was taken from a bound that did not hold.
    pub fn set_back_ns(options: &NodeOptions, now: &Reading, last: Timestamp) -> u64 {
        // The operator's limits may be as wide as a number goes.
        let tolerance_ns = options.tolerance_us.saturating_mul(1000);
        let slack_ns = options.ladder.hybrid_error_ns.saturating_mul(2).saturating_add(tolerance_ns);
        (last.physical_us() * 1000).saturating_sub(now.interval.latest_ns.saturating_add(slack_ns))
    }

    /// The level at the moment of `now`.
    pub fn level(&self, options: &NodeOptions, now: &Reading, last: Timestamp) -> Level {
        let level = self.settled();
        if Self::set_back_ns(options, now, last) == 0 && Ladder::level_holds(level, &options.ladder, now) {
            return level;
        }
        self.step(options, now, last);
        self.settled()
    }

    /// The level at the last step.
    pub fn settled(&self) -> Level {
        LEVELS.get(usize::from(self.level.load(SeqCst))).copied().unwrap_or_default()
    }

    /// The level at the last step, and why.
    pub fn reason(&self) -> (Level, Reason) {
        let state = self.state.lock();
        (state.ladder.level(), state.ladder.reason())
    }

    /// Puts a reading in; `last` is the hybrid clock's.
    pub fn step(&self, options: &NodeOptions, now: &Reading, last: Timestamp) {
        let mut state = self.state.lock();
        if let Some(change) = state.ladder.step(now, Self::set_back_ns(options, now, last)) {
            if state.changes.len() == CHANGES_MAX {
                state.changes.remove(0);
            }
            state.changes.push(change);
            self.level.store(change.to as u8, SeqCst);
        }
    }

    /// A peer's word: a proof counts from the next step on (design §2, bound violations are detected).
    ///
    /// A proof takes two claims. What the peer claims is held against our reading only if that is trusted: otherwise it claims
    /// nothing, and would fence the node for the memory of proofs after it has recovered.
    ///
    /// An accusation speaks of a claim that we made before, in a message. It counts whatever our reading is worth now: that we
    /// withdrew the claim meanwhile does not make it true, others may have relied on it, and a reference that misled us may still do
    /// so when the reading is trusted again. Counting it only while we are trusted would leave it to chance, to which of two
    /// things is noticed first, whether the node is fenced.
    pub fn hear(&self, sabotage: &Sabotage, now: &Reading, word: PeerWord) {
        let mut state = self.state.lock();
        let ours = if sabotage.always_claim() { Some(now.interval) } else { now.trusted() };
        let late_ns = match (word.claim, ours) {
            (Some(theirs), Some(ours)) => theirs.earliest_ns.saturating_sub(ours.latest_ns),
            _ => 0,
        };
        let gap_ns = late_ns.max(word.accuses_ns);
        if gap_ns > 0 {
            state.ladder.accuse(u64::from(word.peer), gap_ns, now.now_ns);
        }
        if state.peers.len() < PROOF_PEERS_MAX || state.peers.contains_key(&word.peer) {
            state.peers.insert(word.peer, PeerClock { word, heard_ns: now.now_ns });
        }
    }

    /// Peers heard of, by number.
    pub fn peers(&self) -> Vec<PeerClock> {
        self.state.lock().peers.values().copied().collect()
    }

    /// The changes since the last call.
    pub fn take_changes(&self) -> Vec<Change> {
        std::mem::take(&mut self.state.lock().changes)
    }

    /// The mode in force: `auto` resolved.
    ///
    /// # Errors
    /// [`TxnError::ClockUnavailable`], with what the clock lacks in numbers.
    pub fn settle(
        &self,
        options: &NodeOptions,
        sabotage: &Sabotage,
        now: &Reading,
        last: Timestamp,
        wanted: Wanted,
    ) -> Result<Consistency, TxnError> {
        let (alone, consistency) = (options.alone, wanted.consistency);
        match consistency {
            Consistency::Token | Consistency::None => return Ok(consistency),
            // Alone, nothing was acknowledged elsewhere: the hybrid clock is enough, whatever the bound.
            Consistency::Hybrid if alone => return Ok(consistency),
            Consistency::Auto if alone && !self.settled().serves_now() => return Ok(Consistency::Hybrid),
            Consistency::Strict if sabotage.skip_ladder() => return Ok(consistency),
            Consistency::Auto | Consistency::Strict | Consistency::Hybrid => {}
        }
        let level = self.level(options, now, last);
        let is_within_budget = match wanted.commit_wait_budget_ns {
            None => level.auto_is_strict(),
            Some(budget_ns) => {
                level.serves_now() && now.trusted().is_some_and(|bound| 2 * bound.error_ns() <= budget_ns)
            }
        };
        // A bound that is not known is done without; one that is proved wrong says that this clock is far off.
        let without_a_bound = wanted.uncertainty.does_without_a_bound() && level != Level::Untrusted;
        match consistency {
            Consistency::Auto if is_within_budget => Ok(Consistency::Strict),
            Consistency::Auto if level.serves_now() || alone => Ok(Consistency::Hybrid),
            Consistency::Auto | Consistency::Hybrid if without_a_bound => Ok(Consistency::Hybrid),
            _ if level.serves_now() => Ok(consistency),
            _ => {
                let (level, reason) = self.reason();
                Err(TxnError::ClockUnavailable(ClockRefusal { level, reason }.to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Uncertainty;
    use clock::Status;

    const T: u64 = 1_800_000_000_000_000_000;

    fn reading(error_ms: u64, status: Status) -> Reading {
        let mut r = Reading::with_error(T, error_ms * 1_000_000);
        r.status = status;
        r
    }

    struct Node(NodeOptions, Watch);

    impl Node {
        fn new(alone: bool) -> Self {
            let options = NodeOptions { alone, ..NodeOptions::default() };
            let watch = Watch::new(&options);
            Node(options, watch)
        }
        fn hear(&self, now: &Reading, word: PeerWord) {
            self.1.hear(&Sabotage::default(), now, word);
        }
        fn settle(&self, now: &Reading, consistency: Consistency) -> Result<Consistency, String> {
            self.settle_as(now, Wanted { consistency, ..Wanted::default() })
        }
        fn settle_as(&self, now: &Reading, wanted: Wanted) -> Result<Consistency, String> {
            let settled = self.1.settle(&self.0, &Sabotage::default(), now, now.interval.earliest(), wanted);
            settled.map_err(|e| e.to_string())
        }
    }

    #[test]
    fn strict_waits_for_the_bound_and_is_refused_when_it_is_lost() {
        let node = Node::new(true);
        let unknown = reading(0, Status::Unknown);
        assert!(node.settle(&unknown, Consistency::Strict).unwrap_err().contains("the clock source is unknown"));
        assert_eq!(node.settle(&unknown, Consistency::Auto), Ok(Consistency::Hybrid));
        assert_eq!(node.settle(&unknown, Consistency::Token), Ok(Consistency::Token));
        let wide = node.settle(&reading(1500, Status::Synchronized), Consistency::Strict).unwrap_err();
        assert!(wide.contains("1500.000 ms is beyond the limit of 1000.000 ms"), "{wide}");
        assert_eq!(node.settle(&reading(1, Status::Synchronized), Consistency::Strict), Ok(Consistency::Strict));
        assert_eq!(node.settle(&reading(1, Status::Synchronized), Consistency::Auto), Ok(Consistency::Strict));
        // No tick comes between: each is judged by the reading of its own moment.
        assert_eq!(node.settle(&reading(20, Status::FreeRunning), Consistency::Auto), Ok(Consistency::Hybrid));
        assert_eq!(node.settle(&reading(20, Status::FreeRunning), Consistency::Strict), Ok(Consistency::Strict));
        assert!(node.settle(&reading(1, Status::Disrupted), Consistency::Strict).unwrap_err().contains("disrupted"));
        assert_eq!(node.settle(&reading(1, Status::Synchronized), Consistency::Strict), Ok(Consistency::Strict));
        let steps: Vec<Level> = node.1.take_changes().into_iter().map(|c| c.to).collect();
        assert_eq!(steps, [Level::Synchronized, Level::Degraded, Level::TooWide, Level::Synchronized]);
    }

    #[test]
    fn with_other_nodes_hybrid_needs_the_bound_too() {
        let node = Node::new(false);
        let lost = reading(1, Status::Disrupted);
        for refused in [Consistency::Auto, Consistency::Hybrid, Consistency::Strict] {
            assert!(node.settle(&lost, refused).is_err(), "{refused:?}");
        }
        assert_eq!(node.settle(&lost, Consistency::None), Ok(Consistency::None));
        assert_eq!(node.settle(&reading(1, Status::Synchronized), Consistency::Hybrid), Ok(Consistency::Hybrid));
    }

    /// Each transaction may say for itself how much commit-wait is worth it.
    #[test]
    fn auto_goes_by_the_budget_of_its_transaction() {
        let node = Node::new(false);
        let auto = |budget_ms: u64| Wanted { commit_wait_budget_ns: Some(budget_ms * 1_000_000), ..Wanted::default() };
        let now = reading(20, Status::Synchronized);
        assert_eq!(node.settle_as(&now, auto(39)), Ok(Consistency::Hybrid));
        assert_eq!(node.settle_as(&now, auto(40)), Ok(Consistency::Strict));
        assert_eq!(node.settle_as(&reading(0, Status::Synchronized), auto(0)), Ok(Consistency::Strict));
        let wide = node.settle_as(&reading(1500, Status::Synchronized), auto(10_000)).unwrap_err();
        assert!(wide.contains("beyond the limit"), "{wide}");
    }

    /// By a static offset `hybrid` goes on without a bound, but not with one that is proved wrong; `strict` never does.
    #[test]
    fn a_static_offset_does_without_a_bound_but_not_with_a_wrong_one() {
        let node = Node::new(false);
        let lost = reading(1, Status::Disrupted);
        let as_of = |consistency, uncertainty| Wanted { consistency, uncertainty, ..Wanted::default() };
        for uncertainty in [Uncertainty::Static(500_000), Uncertainty::Fallback(500_000)] {
            for wanted in [Consistency::Hybrid, Consistency::Auto] {
                assert_eq!(
                    node.settle_as(&lost, as_of(wanted, uncertainty)),
                    Ok(Consistency::Hybrid),
                    "{uncertainty:?}"
                );
            }
            assert!(node.settle_as(&lost, as_of(Consistency::Strict, uncertainty)).is_err());
        }
        for peer in 2..4 {
            node.hear(&lost, PeerWord { peer, claim: None, accuses_ns: 9_000_000 });
        }
        node.1.step(&node.0, &reading(1, Status::Synchronized), Timestamp::MIN);
        let fenced = node.settle_as(&lost, as_of(Consistency::Hybrid, Uncertainty::Static(500_000)));
        assert!(fenced.clone().is_err_and(|e| e.contains("prove this node's bound wrong")), "{fenced:?}");
    }

    #[test]
    fn two_peers_fence_and_the_last_words_are_kept() {
        let node = Node::new(false);
        let now = reading(1, Status::Synchronized);
        let ahead = Interval { earliest_ns: T + 3_000_000, latest_ns: T + 4_000_000 };
        let meets = Interval { earliest_ns: T, latest_ns: T + 1_000_000 };
        node.hear(&now, PeerWord { peer: 2, claim: Some(ahead), accuses_ns: 0 });
        node.hear(&now, PeerWord { peer: 3, claim: Some(meets), accuses_ns: 0 });
        node.1.step(&node.0, &now, Timestamp::MIN);
        assert_eq!(node.settle(&now, Consistency::Hybrid), Ok(Consistency::Hybrid), "one proof accuses both sides");
        node.hear(&now, PeerWord { peer: 3, claim: Some(meets), accuses_ns: 9_000_000 });
        node.1.step(&node.0, &now, Timestamp::MIN);
        let fenced = node.settle(&now, Consistency::Hybrid).unwrap_err();
        assert!(fenced.contains("2 peers prove this node's bound wrong, by up to 9.000 ms"), "{fenced}");
        let peers: Vec<u32> = node.1.peers().iter().map(|p| p.word.peer).collect();
        assert_eq!(peers, [2, 3]);
    }

    /// What a peer claims proves nothing against a reading that claims nothing; nor does a peer that claims nothing.
    #[test]
    fn a_proof_takes_two_claims() {
        let node = Node::new(false);
        let (lost, well) = (reading(1, Status::Disrupted), reading(1, Status::Synchronized));
        let ahead = Interval { earliest_ns: T + 3_000_000, latest_ns: T + 4_000_000 };
        for peer in 2..5 {
            node.hear(&lost, PeerWord { peer, claim: Some(ahead), accuses_ns: 0 });
            node.hear(&well, PeerWord { peer, claim: None, accuses_ns: 0 });
        }
        node.1.step(&node.0, &well, Timestamp::MIN);
        assert_eq!(node.settle(&well, Consistency::Hybrid), Ok(Consistency::Hybrid));
    }

    /// An accusation that comes late speaks of what this node claimed before.
    #[test]
    fn an_accusation_counts_although_the_claim_was_withdrawn() {
        let node = Node::new(false);
        let lost = reading(1, Status::Disrupted);
        for peer in 2..4 {
            node.hear(&lost, PeerWord { peer, claim: None, accuses_ns: 9_000_000 });
        }
        let well = reading(1, Status::Synchronized);
        node.1.step(&node.0, &well, Timestamp::MIN);
        let fenced = node.settle(&well, Consistency::Hybrid).unwrap_err();
        assert!(fenced.contains("2 peers prove this node's bound wrong"), "{fenced}");
    }

    #[test]
    fn limits_as_wide_as_a_number_goes_say_nothing_of_a_clock_that_was_set_back() {
        let ladder = clock::LadderLimits { hybrid_error_ns: u64::MAX, ..Default::default() };
        let options = NodeOptions { ladder, ..NodeOptions::default() };
        assert_eq!(Watch::set_back_ns(&options, &reading(1, Status::Synchronized), Timestamp::MAX), 0);
    }

    #[test]
    fn a_clock_that_was_set_back_is_not_trusted_until_it_has_caught_up() {
        let node = Node::new(true);
        let now = reading(1, Status::Synchronized);
        let last = Timestamp::new((T + 3_600_000_000_000) / 1000, 0);
        let strict = Wanted { consistency: Consistency::Strict, ..Wanted::default() };
        let settle = |last| node.1.settle(&node.0, &Sabotage::default(), &now, last, strict);
        let refused = settle(last).unwrap_err().to_string();
        assert!(refused.contains("the clock was set back"), "{refused}");
        assert_eq!(settle(now.interval.latest()), Ok(Consistency::Strict));
    }
}
