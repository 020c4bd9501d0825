//! How a run is laid out.

use crate::clock::{Blind, ClockKind};
use crate::rng::Rng;
use clock::LadderLimits;
use clocksource::Leap;

/// How a run is laid out: all of it drawn from the seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The clock.
    pub clock: ClockKind,
    /// Sessions.
    pub clients: usize,
    /// How long sessions begin transactions, nanoseconds.
    pub length_ns: u64,
    /// Mean time between crashes, nanoseconds; 0: none.
    pub crash_ns: u64,
    /// The node knows that it leads everything.
    pub alone: bool,
    /// A leap second at midnight, in the middle of the run.
    pub leap: Leap,
    /// The limits of the ladder.
    pub ladder: LadderLimits,
}

impl Plan {
    /// From a seed.
    pub fn draw(rng: &mut Rng) -> Self {
        let mut plan = Plan {
            clock: rng
                .pick(&[
                    ClockKind::Exact,
                    ClockKind::Honest,
                    ClockKind::Honest,
                    ClockKind::Honest,
                    ClockKind::Lying,
                    ClockKind::Lying,
                    ClockKind::Set,
                ])
                .unwrap_or(ClockKind::Exact),
            clients: usize::try_from(rng.range(2, 9)).unwrap_or(2),
            length_ns: rng.range(1, 6) * 1_000_000_000,
            crash_ns: rng.pick(&[0, 300_000_000, 1_000_000_000]).unwrap_or(0),
            alone: rng.chance(40),
            leap: match rng.below(10) {
                0 => Leap::Insert,
                1 => Leap::Delete,
                _ => Leap::None,
            },
            ladder: LadderLimits {
                strict_error_ns: 5_000_000,
                hybrid_error_ns: rng.pick(&[15_000_000, 100_000_000, 1_000_000_000]).unwrap_or(0),
                fence_peers: 2,
                proof_memory_ns: rng.pick(&[500_000_000, 2_000_000_000]).unwrap_or(0),
            },
        };
        if plan.leap != Leap::None {
            // Past midnight.
            plan.length_ns = plan.length_ns.max(4_000_000_000);
        }
        plan
    }

    /// Lays the run out so that this blindness shows.
    pub fn expose(&mut self, blind: Blind) {
        self.clock = ClockKind::Honest;
        if blind == Blind::Leaps {
            (self.leap, self.length_ns) = (Leap::Insert, 4_000_000_000);
        }
    }
}
