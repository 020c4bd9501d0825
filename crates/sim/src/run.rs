//! One run from one seed, judged.

use crate::machine::Failure;
use crate::plan::Plan;
use crate::probes::Probes;
use crate::trace::Show;
use crate::workload::{ACCOUNTS, FIRST_BALANCE};
use crate::world::{Controls, World};
use checker::bank::Bank;
use checker::storage::settle;
use checker::{Outcome, Promises, Verdict, judge};

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// How it was laid out.
    pub plan: Plan,
    /// The hash of its trace: one seed has one.
    pub hash: u64,
    /// Transactions committed.
    pub committed: usize,
    /// Transactions begun.
    pub begun: usize,
    /// What the checker found.
    pub verdict: Verdict,
    /// Why the run ended early, if it did.
    pub failure: Option<String>,
    /// Rare paths.
    pub probes: Probes,
    /// The lines of its trace, where they were kept.
    pub lines: Vec<String>,
    /// Events.
    pub events: u64,
    /// Virtual time, nanoseconds.
    pub virtual_ns: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.failure.is_none() && self.verdict.is_good()
    }
}

/// Runs a seed. `controls` break rules.
pub fn run(seed: u64, controls: Controls) -> Report {
    run_shown(seed, controls, Show::Nothing)
}

/// Runs a seed, and shows its trace.
pub fn run_shown(seed: u64, controls: Controls, show: Show) -> Report {
    let mut world = World::new(seed, controls, show);
    let promises = Promises {
        bounds_hold: world.bounds_hold(),
        bank: Some(Bank { accounts: ACCOUNTS, total: FIRST_BALANCE * (ACCOUNTS.end - ACCOUNTS.start).cast_signed() }),
    };
    let (mut verdict, mut committed, mut begun) = (Verdict::default(), 0, 0);
    let failure = match world.run() {
        Err(Failure(why)) => Some(why),
        Ok((mut history, stored)) => {
            let unknown: Vec<usize> =
                (0..history.txns.len()).filter(|at| history.txns[*at].outcome == Outcome::Unknown).collect();
            settle(&mut history, &stored, &mut verdict);
            for at in unknown {
                let was_committed = history.txns[at].outcome == Outcome::Committed;
                let name = if was_committed { "unknown outcome was committed" } else { "unknown outcome was aborted" };
                world.probes.hit(name);
            }
            verdict.found.extend(judge(&history, &promises).found);
            committed = history.txns.iter().filter(|t| t.outcome == Outcome::Committed).count();
            begun = history.txns.len();
            None
        }
    };
    let plan = world.plan().clone();
    let ((hash, lines), (events, virtual_ns)) = (world.traced(), world.pace());
    Report { seed, plan, hash, committed, begun, verdict, failure, probes: world.probes, lines, events, virtual_ns }
}
