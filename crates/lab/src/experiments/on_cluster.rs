//! What experiments on real clusters have in common: counters before and after, who else used the machine, repeated points.

use super::{Measured, Values};
use crate::cluster::{Cluster, ClusterError, Usage};
use std::collections::BTreeMap;

/// Counters that points keep, as the nodes name them.
const COUNTERS: [&str; 7] = [
    "txn_commits",
    "txn_commits_readonly",
    "txn_restarts_readwithinuncertainty",
    "txn_refreshes",
    "txn_refresh_failures",
    "txn_commit_waits",
    "commit_wait_nanos",
];
/// Shares of the machine's processor time.
const OWN: &str = "own_share";
const OTHERS: &str = "others_share";

/// How sessions read: 000's static offset and dynamic bounds, and commit-wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Static,
    Dynamic,
    Strict,
}

pub(super) const MODES: [Mode; 3] = [Mode::Static, Mode::Dynamic, Mode::Strict];

impl Mode {
    pub fn word(self) -> &'static str {
        match self {
            Mode::Static => "static",
            Mode::Dynamic => "dynamic",
            Mode::Strict => "strict",
        }
    }
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Mode::Static => {
                &["timeball.consistency=hybrid", "timeball.uncertainty=static", "timeball.max_offset=500ms"]
            }
            Mode::Dynamic => &["timeball.consistency=hybrid", "timeball.uncertainty=dynamic"],
            Mode::Strict => &["timeball.consistency=strict"],
        }
    }
}

/// From here on it counts.
pub(super) struct Watch {
    before: BTreeMap<String, f64>,
    usage: Usage,
}

impl Watch {
    pub fn begin(cluster: &Cluster) -> Result<Watch, ClusterError> {
        Ok(Watch { before: cluster.counters()?, usage: cluster.usage() })
    }

    /// What was counted since: the sum of all nodes.
    pub fn end(self, cluster: &Cluster) -> Result<Values, ClusterError> {
        let (own, others) = cluster.usage().since(&self.usage);
        let after = cluster.counters()?;
        let of = |counters: &BTreeMap<String, f64>, name: &str| counters.get(name).copied().unwrap_or(f64::NAN);
        let counted = COUNTERS.map(|name| (name.to_owned(), of(&after, name) - of(&self.before, name)));
        Ok(counted.into_iter().chain([(OWN.to_owned(), own), (OTHERS.to_owned(), others)]).collect())
    }
}

/// The mean of some numbers, and their standard deviation (of a sample; one number has none).
pub(super) fn mean_and_deviation(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|n| (n - mean).powi(2)).sum();
    (mean, if numbers.len() < 2 { f64::NAN } else { (squares / (count - 1.0)).sqrt() })
}

/// A line of a page's settings: how much of the machine the run had.
pub(super) fn company(measured: &Measured) -> (String, String) {
    let percent = |name: &str| {
        let all = measured.all(name);
        let most = all.iter().copied().fold(f64::NAN, f64::max);
        (mean_and_deviation(&all).0 * 100.0, most * 100.0)
    };
    let ((own, _), (others, most)) = (percent(OWN), percent(OTHERS));
    let text = format!(
        "nodes, relays and clients had {own:.0} % of the machine's processor time on average, other processes {others:.0} % (at most {most:.0} % in a point){}",
        if others > 5.0 {
            ": the machine was shared, so ratios of neighbouring points count, and not rates"
        } else {
            ""
        }
    );
    ("the machine".to_owned(), text)
}

/// A line of a page's settings: where nodes and clients run. The page's head says how their program was built.
pub(super) fn program() -> (String, String) {
    (
        "nodes and clients".to_owned(),
        "of one program, that of the head of this page; all on one machine, over its loopback interface".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::mean_and_deviation;

    #[test]
    fn deviations_are_those_of_samples() {
        assert_eq!(mean_and_deviation(&[2.0, 4.0, 6.0]), (4.0, 2.0));
        let (mean, deviation) = mean_and_deviation(&[3.0]);
        assert!(mean == 3.0 && deviation.is_nan());
    }
}
