//! How long a message is on its way.

use crate::rng::Rng;
use serde::Deserialize;

/// A model of latency, one way.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Latency {
    /// Always the same, microseconds.
    ConstantUs(u64),
    /// Between two, microseconds.
    UniformUs(u64, u64),
    /// Mostly the base; the tail is heavy: so often (percent) it is doubled, and so often again, up to `doublings` times.
    HeavyTail {
        /// Microseconds, and up to a quarter more.
        base_us: u64,
        /// How often, percent.
        percent: u64,
        /// How often again, at most.
        doublings: u32,
    },
    /// By the sites of sender and receiver, microseconds, and up to so much more.
    MatrixUs {
        /// One row per sending site. Machine `n` stands at site `n % sites`; clients stand at the site of their first machine.
        sites: Vec<Vec<u64>>,
        /// At most so much more, percent.
        jitter_percent: u64,
    },
}

impl Latency {
    /// Draws one, nanoseconds.
    pub fn draw_ns(&self, from: usize, to: usize, rng: &mut Rng) -> u64 {
        match self {
            Latency::ConstantUs(us) => us * 1000,
            Latency::UniformUs(low, high) => rng.range(low * 1000, high * 1000 + 1),
            Latency::HeavyTail { base_us, percent, doublings } => {
                let mut ns = base_us * 1000;
                ns += rng.below(ns / 4 + 1);
                for _ in 0..*doublings {
                    if !rng.chance(*percent) {
                        break;
                    }
                    ns *= 2;
                }
                ns
            }
            Latency::MatrixUs { sites, jitter_percent } => {
                let row = &sites[from % sites.len().max(1)];
                let ns = row[to % row.len().max(1)] * 1000;
                ns + rng.below(ns * jitter_percent / 100 + 1)
            }
        }
    }

    /// What is wrong with it, if anything.
    pub fn wrong(&self) -> Option<String> {
        match self {
            Latency::UniformUs(low, high) if low > high => Some(format!("latency: {low} is above {high}")),
            Latency::HeavyTail { doublings, .. } if *doublings > 20 => {
                Some(format!("latency: {doublings} doublings are too many, at most 20"))
            }
            Latency::MatrixUs { sites, .. } if sites.is_empty() || sites.iter().any(|row| row.len() != sites.len()) => {
                Some("latency: the matrix must have as many columns as rows, and at least one".into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Latency;
    use crate::rng::Rng;

    #[test]
    fn a_heavy_tail_has_many_short_and_few_long_ones() {
        let mut rng = Rng::new(1);
        let model = Latency::HeavyTail { base_us: 100, percent: 20, doublings: 12 };
        let drawn: Vec<u64> = (0..10_000).map(|_| model.draw_ns(0, 1, &mut rng)).collect();
        assert!(drawn.iter().filter(|ns| **ns < 126_000).count() > 7_500);
        assert!(drawn.iter().any(|ns| *ns > 3_200_000));
    }

    #[test]
    fn a_matrix_is_asked_by_sites() {
        let model = Latency::MatrixUs { sites: vec![vec![1, 50], vec![60, 2]], jitter_percent: 0 };
        let mut rng = Rng::new(1);
        assert_eq!(model.draw_ns(0, 1, &mut rng), 50_000);
        assert_eq!(model.draw_ns(3, 2, &mut rng), 60_000);
        assert_eq!(model.draw_ns(2, 4, &mut rng), 1_000);
        assert!(Latency::MatrixUs { sites: vec![vec![1, 2]], jitter_percent: 0 }.wrong().is_some());
    }
}
