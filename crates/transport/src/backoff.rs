//! How long to wait before the next attempt.

use crate::{BACKOFF_FIRST, BACKOFF_MAX};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// Doubles from [`BACKOFF_FIRST`] to [`BACKOFF_MAX`]; each wait is between half of that and the whole, so that nodes that started together
/// do not knock together.
pub(crate) struct Backoff {
    next: Duration,
    chance: SmallRng,
}

impl Backoff {
    pub fn new(seed: u64) -> Backoff {
        Backoff { next: BACKOFF_FIRST, chance: SmallRng::seed_from_u64(seed) }
    }

    /// An attempt failed.
    pub fn wait(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(BACKOFF_MAX);
        whole.mul_f64(self.chance.random_range(0.5..1.0))
    }

    /// One succeeded, and held.
    pub fn reset(&mut self) {
        self.next = BACKOFF_FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_start_over_after_a_success() {
        let mut backoff = Backoff::new(7);
        let mut whole = BACKOFF_FIRST;
        for _ in 0..20 {
            let wait = backoff.wait();
            assert!(wait >= whole / 2 && wait <= whole, "{wait:?} of {whole:?}");
            whole = (whole * 2).min(BACKOFF_MAX);
        }
        backoff.reset();
        assert!(backoff.wait() <= BACKOFF_FIRST);
    }

    #[test]
    fn one_seed_gives_one_row_of_waits_and_another_another() {
        let row = |seed| {
            let mut backoff = Backoff::new(seed);
            (0..8).map(|_| backoff.wait()).collect::<Vec<_>>()
        };
        assert_eq!(row(1), row(1));
        assert_ne!(row(1), row(2));
    }
}
