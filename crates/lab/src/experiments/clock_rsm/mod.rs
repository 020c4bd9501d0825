//! `clock-rsm`: commit latency of four replication protocols at the sites of table 3.3, simulated: 004 figures 3.1 to 3.8.
//!
//! `clock-rsm-model` has what the formulas of section 3.4 say; here messages travel, so there are means, percentiles and distributions as the document
//! measured them. The protocols are small models of their own, which exist here only ([`world::Replica`]): the product replicates by another protocol.

mod mencius;
mod paxos;
mod report;
mod rsm;
mod world;

use super::clock_rsm_model::formulas::SITES;
use super::{Experiment, Measured, Point, Report, Scope, Size, Values};
use mencius::Mencius;
use paxos::Paxos;
use rsm::ClockRsm;
use world::{MS, Outcome, Setup, run};

/// The experiment.
pub(super) struct ClockRsmLatency;

/// Three and five sites of section 3.6.2, as positions in table 3.3.
const THREE: &[usize] = &[0, 1, 2];
const FIVE: &[usize] = &[0, 1, 2, 3, 4];
/// Leaders of figures 3.1 to 3.8, as positions in either.
const CA: usize = 0;
const VA: usize = 1;
/// Clocks are at most so far from true time, nanoseconds: ours, the document says NTP with a public server nearby.
const CLOCK_NS: u64 = 2 * MS;
/// Steps of a distribution.
const QUANTILES: u32 = 100;

/// Which protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Paxos,
    PaxosBcast,
    Mencius,
    ClockRsm,
}

const PROTOCOLS: [Protocol; 4] = [Protocol::Paxos, Protocol::PaxosBcast, Protocol::Mencius, Protocol::ClockRsm];

impl Protocol {
    fn word(self) -> &'static str {
        match self {
            Protocol::Paxos => "Paxos",
            Protocol::PaxosBcast => "Paxos-bcast",
            Protocol::Mencius => "Mencius-bcast",
            Protocol::ClockRsm => "Clock-RSM",
        }
    }

    fn has_leader(self) -> bool {
        matches!(self, Protocol::Paxos | Protocol::PaxosBcast)
    }

    fn run(self, setup: &Setup, leader: usize) -> Outcome {
        let replicas = setup.sites.len();
        match self {
            Protocol::Paxos => run(setup, |_| Paxos::new(replicas, leader, false)),
            Protocol::PaxosBcast => run(setup, |_| Paxos::new(replicas, leader, true)),
            Protocol::Mencius => run(setup, |me| Mencius::new(me, replicas)),
            Protocol::ClockRsm => run(setup, |_| ClockRsm::new(replicas)),
        }
    }
}

/// The name of a point; `only`: the one site with clients.
fn name(protocol: Protocol, sites: &[usize], leader: usize, only: Option<usize>) -> String {
    let leader = if protocol.has_leader() { format!(" leader {}", SITES[sites[leader]]) } else { String::new() };
    let only = only.map_or(String::new(), |only| format!(" only {}", SITES[sites[only]]));
    format!("{} {}{leader}{only}", sites.len(), protocol.word())
}

/// Mean, percentiles and distribution of latencies at each site that has any.
fn numbers(sites: &[usize], outcome: &Outcome) -> Values {
    let mut all = Values::new();
    for (site, took_ns) in sites.iter().zip(&outcome.took_ns).filter(|(_, took_ns)| !took_ns.is_empty()) {
        let mut took_ms: Vec<f64> = took_ns.iter().map(|ns| *ns as f64 / MS as f64).collect();
        took_ms.sort_by(f64::total_cmp);
        let last = (took_ms.len() - 1) as f64;
        let site = SITES[*site];
        all.insert(format!("{site} commands"), took_ms.len() as f64);
        all.insert(format!("{site} mean_ms"), took_ms.iter().sum::<f64>() / took_ms.len() as f64);
        for n in 0..=QUANTILES {
            let at = (last * f64::from(n) / f64::from(QUANTILES)).round() as usize;
            all.insert(format!("{site} q{n:03}_ms"), took_ms[at]);
        }
    }
    all
}

impl Experiment for ClockRsmLatency {
    fn name(&self) -> &'static str {
        "clock-rsm"
    }

    fn about(&self) -> &'static str {
        "commit latency of Clock-RSM, both Paxos and Mencius between data centers, simulated (004 figures 3.1-3.8)"
    }

    fn introduction(&self) -> &'static str {
        "Document 004 deploys four replication protocols in three and five data centers and measures at each how long a command takes to commit. Here the same protocols\n\
         exchange messages in a simulator whose links take what table 3.3 says, so that the figures have the document's axes: means, 95th percentiles and distributions.\n\
         `timeball lab clock-rsm-model` has what the formulas of section 3.4 say of the same sites."
    }

    fn points(&self, scope: Scope) -> Vec<Point> {
        let length_ns = match scope.size {
            Size::Quick => 1_000 * MS,
            Size::Usual => 10_000 * MS,
            Size::Full => 600_000 * MS,
        };
        let mut points = Vec::new();
        let mut add = |protocol: Protocol, sites: &'static [usize], leader: usize, only: Option<usize>| {
            points.push(Point::new(name(protocol, sites, leader, only), move |seed| {
                let setup = Setup { sites, only, ramp_up_ns: 1_000 * MS, length_ns, clock_ns: CLOCK_NS, seed };
                Ok(numbers(sites, &protocol.run(&setup, leader)))
            }));
        };
        for sites in [FIVE, THREE] {
            for protocol in PROTOCOLS {
                add(protocol, sites, CA, None);
                if protocol.has_leader() {
                    add(protocol, sites, VA, None);
                }
            }
        }
        for only in 0..FIVE.len() {
            PROTOCOLS.into_iter().for_each(|protocol| add(protocol, FIVE, CA, Some(only)));
        }
        points
    }

    fn report(&self, measured: &Measured, _scope: Scope) -> Report {
        report::report(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::world::{Command, MS, Outcome, Setup, run};
    use super::{CA, CLOCK_NS, ClockRsm, FIVE, Mencius, PROTOCOLS, Protocol, THREE, VA};
    use crate::experiments::clock_rsm_model::formulas::{Group, mean};

    fn setup(sites: &'static [usize], only: Option<usize>, seed: u64) -> Setup {
        Setup { sites, only, ramp_up_ns: 1_000 * MS, length_ns: 2_000 * MS, clock_ns: CLOCK_NS, seed }
    }

    /// All replicas executed the same, as far as each came, and each command once.
    fn is_one_order(outcome: &Outcome) -> bool {
        let longest = outcome.executed.iter().max_by_key(|executed| executed.len()).unwrap();
        let mut once: Vec<u64> = longest.iter().map(|Command(number)| *number).collect();
        once.sort_unstable();
        once.dedup();
        once.len() == longest.len() && outcome.executed.iter().all(|executed| longest.starts_with(executed))
    }

    #[test]
    fn all_replicas_execute_in_one_order() {
        for protocol in PROTOCOLS {
            for seed in 1..=3 {
                let outcome = protocol.run(&setup(FIVE, None, seed), VA);
                assert!(outcome.executed.iter().all(|executed| executed.len() > 1_000), "{protocol:?} {seed}");
                assert!(is_one_order(&outcome), "{protocol:?} {seed}");
            }
            assert!(is_one_order(&protocol.run(&setup(FIVE, Some(4), 1), CA)), "{protocol:?}");
        }
    }

    /// Without the stable order, a command is executed before an earlier one has come.
    #[test]
    fn who_does_not_wait_for_the_stable_order_is_found_out() {
        let unstable = |_| {
            let mut replica = ClockRsm::new(FIVE.len());
            replica.unstable = true;
            replica
        };
        assert!(!is_one_order(&run(&setup(FIVE, None, 1), unstable)));
    }

    /// Who skips a slot that its owner may use yet executes later ones first.
    #[test]
    fn who_skips_a_slot_too_many_is_found_out() {
        let hasty = |me| {
            let mut replica = Mencius::new(me, FIVE.len());
            replica.hasty = true;
            replica
        };
        assert!(!is_one_order(&run(&setup(FIVE, None, 1), hasty)));
    }

    /// A command comes to clocks that have not reached its stamp (algorithm 3, line 8): the order holds, and it takes longer.
    #[test]
    fn clocks_that_are_farther_apart_than_a_link_cost_time_and_no_order() {
        let outcome = |clock_ns| Protocol::ClockRsm.run(&Setup { clock_ns, ..setup(FIVE, None, 1) }, CA);
        let (near, apart) = (outcome(CLOCK_NS), outcome(300 * MS));
        let longest = |outcome: &Outcome| outcome.took_ns.iter().flatten().copied().max().unwrap();
        assert!(apart.executed.iter().all(|executed| executed.len() > 500) && is_one_order(&apart));
        assert!(longest(&apart) > longest(&near) + 100 * MS, "{} {}", longest(&near), longest(&apart));
    }

    #[test]
    fn one_seed_gives_one_outcome() {
        for protocol in PROTOCOLS {
            let of = |seed| protocol.run(&setup(THREE, None, seed), CA);
            assert_eq!(of(4), of(4));
            assert_ne!(of(4), of(5));
        }
    }

    /// What takes no turns with others takes what the formulas say, and the way to the client.
    #[test]
    fn simulated_latencies_are_those_of_the_formulas() {
        let near = |ours: f64, formula: f64| (ours - formula - 0.6).abs() < 0.03 * formula + 1.0;
        for sites in [THREE, FIVE] {
            let group = Group::at(sites);
            for leader in [CA, VA] {
                for (protocol, formula) in [
                    (Protocol::Paxos, group.each(|origin| group.paxos_ms(leader, origin))),
                    (Protocol::PaxosBcast, group.each(|origin| group.paxos_bcast_ms(leader, origin))),
                ] {
                    let outcome = protocol.run(&setup(sites, None, 7), leader);
                    for (took_ns, formula) in outcome.took_ns.iter().zip(formula) {
                        let all: Vec<f64> = took_ns.iter().map(|ns| *ns as f64 / MS as f64).collect();
                        assert!(near(mean(&all), formula), "{protocol:?} {} {formula}", mean(&all));
                    }
                }
            }
            for origin in 0..sites.len() {
                let alone = |protocol: Protocol| {
                    let outcome = protocol.run(&setup(sites, Some(origin), 7), CA);
                    let all: Vec<f64> = outcome.took_ns[origin].iter().map(|ns| *ns as f64 / MS as f64).collect();
                    mean(&all)
                };
                let (mencius, rsm) = (alone(Protocol::Mencius), alone(Protocol::ClockRsm));
                assert!(near(mencius, group.mencius_imbalanced_ms(origin)), "{mencius} at {origin}");
                // A message of each: up to Δ later, and clocks are apart.
                let formula = group.clock_rsm_imbalanced_ms(origin);
                assert!(rsm > formula - 5.0 && rsm < formula + 12.0, "{rsm} {formula} at {origin}");
            }
        }
    }
}
