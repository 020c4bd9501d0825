//! Commit latency of four replication protocols, from one-way delays alone: 004 section 3.4 and table 3.2.
//!
//! The median of replicas is over all, the own one with its delay of 0 included: with an odd number of them it is what a majority needs. Local work, disks and
//! clock skew are left out, and delays are symmetric.

/// The sites of table 3.3.
pub const SITES: [&str; 7] = ["CA", "VA", "IR", "JP", "SG", "AU", "BR"];

/// Table 3.3: round trips between data centers, milliseconds.
const ROUND_TRIPS_MS: [[u16; 7]; 7] = [
    [0, 83, 170, 125, 171, 187, 212],
    [83, 0, 101, 215, 254, 220, 137],
    [170, 101, 0, 280, 216, 305, 216],
    [125, 215, 280, 0, 77, 129, 368],
    [171, 254, 216, 77, 0, 188, 369],
    [187, 220, 305, 129, 188, 0, 349],
    [212, 137, 216, 368, 369, 349, 0],
];

/// Replicas at some sites, and how far apart they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// One-way delays, milliseconds.
    delays_ms: Vec<Vec<f64>>,
}

fn median(mut delays_ms: Vec<f64>) -> f64 {
    delays_ms.sort_by(f64::total_cmp);
    delays_ms.get(delays_ms.len() / 2).copied().unwrap_or(f64::NAN)
}

fn greatest(delays_ms: impl Iterator<Item = f64>) -> f64 {
    delays_ms.fold(0.0, f64::max)
}

impl Group {
    /// At these sites of table 3.3.
    pub fn at(sites: &[usize]) -> Self {
        Self::with(sites, |_, _| 0.0)
    }

    /// The same, each round trip longer by what `more_ms` gives for the pair.
    pub fn with(sites: &[usize], mut more_ms: impl FnMut(usize, usize) -> f64) -> Self {
        let mut delays_ms = vec![vec![0.0; sites.len()]; sites.len()];
        for a in 0..sites.len() {
            for b in 0..a {
                let round_trip_ms = f64::from(ROUND_TRIPS_MS[sites[a]][sites[b]]) + more_ms(sites[a], sites[b]);
                (delays_ms[a][b], delays_ms[b][a]) = (round_trip_ms / 2.0, round_trip_ms / 2.0);
            }
        }
        Group { delays_ms }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.delays_ms.len()
    }

    /// From one replica to another.
    pub fn one_way_ms(&self, from: usize, to: usize) -> f64 {
        self.delays_ms[from][to]
    }

    /// From one replica to a majority and back.
    fn majority_ms(&self, from: usize) -> f64 {
        2.0 * median(self.delays_ms[from].clone())
    }

    /// From one replica by way of a majority to another.
    fn through_majority_ms(&self, from: usize, to: usize) -> f64 {
        median((0..self.len()).map(|k| self.delays_ms[from][k] + self.delays_ms[k][to]).collect())
    }

    /// From one replica to the farthest.
    pub fn farthest_ms(&self, from: usize) -> f64 {
        greatest(self.delays_ms[from].iter().copied())
    }

    /// Paxos: forward, a majority of the leader's, and back.
    pub fn paxos_ms(&self, leader: usize, origin: usize) -> f64 {
        2.0 * self.delays_ms[origin][leader] + self.majority_ms(leader)
    }

    /// Paxos whose acknowledgements go to all (section 3.4.2): forward, then from the leader by way of a majority.
    pub fn paxos_bcast_ms(&self, leader: usize, origin: usize) -> f64 {
        self.delays_ms[origin][leader] + self.through_majority_ms(leader, origin)
    }

    /// The same as table 3.2 prints it for a replica that does not lead; the text and table 3.4 have the other.
    pub fn paxos_bcast_as_printed_ms(&self, leader: usize, origin: usize) -> f64 {
        self.delays_ms[origin][leader] + self.majority_ms(leader)
    }

    /// Mencius with broadcast acknowledgements where one replica proposes: the farthest and back.
    pub fn mencius_imbalanced_ms(&self, origin: usize) -> f64 {
        2.0 * self.farthest_ms(origin)
    }

    /// The same where all do: from Clock-RSM's latency to so much more.
    pub fn mencius_balanced_ms(&self, origin: usize) -> (f64, f64) {
        let least_ms = self.clock_rsm_balanced_ms(origin);
        (least_ms, least_ms + self.farthest_ms(origin))
    }

    /// Clock-RSM where one replica proposes: a majority, and a message from each.
    pub fn clock_rsm_imbalanced_ms(&self, origin: usize) -> f64 {
        self.majority_ms(origin).max(self.farthest_ms(origin))
    }

    /// Clock-RSM where all do: those, and what each proposed before must be replicated.
    pub fn clock_rsm_balanced_ms(&self, origin: usize) -> f64 {
        let prefix_ms = greatest((0..self.len()).map(|from| self.through_majority_ms(from, origin)));
        self.clock_rsm_imbalanced_ms(origin).max(prefix_ms)
    }

    /// Latencies at all replicas.
    pub fn each(&self, latency_ms: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..self.len()).map(latency_ms).collect()
    }

    /// The leader with which the mean latency of all is least.
    pub fn best_leader(&self, latency_ms: impl Fn(&Self, usize, usize) -> f64) -> usize {
        let mean = |leader| mean(&self.each(|origin| latency_ms(self, leader, origin)));
        (0..self.len()).min_by(|a, b| mean(*a).total_cmp(&mean(*b))).unwrap_or(0)
    }
}

/// The mean of latencies.
pub fn mean(all_ms: &[f64]) -> f64 {
    all_ms.iter().sum::<f64>() / all_ms.len().max(1) as f64
}

/// All sets of so many of `of`, in order.
pub fn combinations(of: usize, size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    (size - 1..of)
        .flat_map(|last| {
            combinations(last, size - 1).into_iter().map(move |mut set| {
                set.push(last);
                set
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Group, SITES, combinations, mean};

    fn sites(names: &[&str]) -> Vec<usize> {
        names.iter().map(|name| SITES.iter().position(|site| site == name).unwrap()).collect()
    }

    #[test]
    fn latencies_of_three_sites_are_those_of_a_hand_calculation() {
        // CA-VA 83, CA-IR 170, VA-IR 101.
        let group = Group::at(&sites(&["CA", "VA", "IR"]));
        assert_eq!(group.each(|i| group.paxos_ms(1, i)), [83.0 + 83.0, 83.0, 101.0 + 83.0]);
        // Section 3.6.2: with the best leader each needs one round trip to the nearest.
        assert_eq!(group.each(|i| group.paxos_bcast_ms(1, i)), [83.0, 83.0, 101.0]);
        assert_eq!(group.each(|i| group.clock_rsm_imbalanced_ms(i)), [85.0, 83.0, 101.0]);
        assert_eq!(group.each(|i| group.clock_rsm_balanced_ms(i)), [85.0, 83.0, 101.0]);
        assert_eq!(group.mencius_imbalanced_ms(0), 170.0);
        assert_eq!(group.best_leader(Group::paxos_bcast_ms), 1);
    }

    #[test]
    fn the_printed_formula_is_another_one() {
        let group = Group::at(&sites(&["CA", "VA", "IR"]));
        assert_eq!(group.paxos_bcast_as_printed_ms(1, 2), 50.5 + 83.0);
        assert!(group.paxos_bcast_as_printed_ms(1, 2) > group.paxos_bcast_ms(1, 2));
    }

    #[test]
    fn mencius_at_tokyo_is_where_the_text_has_it() {
        // Section 3.6.2, figure 3.5: "varies from 134 ms to 230 ms"; by the formulas from 155.5 to 295.5 in the worst case.
        let group = Group::at(&sites(&["CA", "VA", "IR", "JP", "SG"]));
        let (least, most) = group.mencius_balanced_ms(3);
        assert_eq!(group.farthest_ms(3), 140.0);
        assert!(least >= 140.0 && most == least + 140.0, "{least} {most}");
    }

    #[test]
    fn all_sets_are_there_once() {
        assert_eq!([3, 5, 7].map(|size| combinations(7, size).len()), [35, 21, 1]);
        assert_eq!(combinations(3, 2), [[0, 1], [0, 2], [1, 2]]);
        assert_eq!(mean(&[1.0, 2.0]), 1.5);
    }
}
