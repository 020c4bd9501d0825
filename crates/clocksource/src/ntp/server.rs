//! What is known of one server: the last few exchanges, as intervals on the boot-time clock.
//!
//! The request left at boot time `b1`, the reply came at `b4`. The server read its clock in between, first `received`, then `sent`.
//! Whatever the network did in either direction, at `b4`:
//!
//! ```text
//!   earliest = sent - distance                          the reply did not travel backwards in time
//!   latest   = received + distance + (b4 - b1)          nor did the request
//! ```
//!
//! So no assumption is made of symmetrical delays: asymmetry moves true time inside the interval, not out of it.
//!
//! **Invariants.** 1. True time lies in every sample as long as the server's own distance holds. 2. Samples that do not meet are not
//! both true; then only the newest is kept, and the server is said to be inconsistent.

use super::packet::Reply;
use clock::Interval;
use std::collections::VecDeque;

/// Exchanges that are kept and intersected.
const SAMPLES_MAX: usize = 8;

/// One exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    /// When it ended, on the boot-time clock, nanoseconds.
    heard_ns: u64,
    /// Where true time lay at `as_of_ns`.
    at: Interval,
    as_of_ns: u64,
}

/// The samples of one server.
#[derive(Debug, Default)]
pub struct Samples {
    recent: VecDeque<Sample>,
    inconsistent: bool,
}

/// `at`, carried on for `elapsed_ns` on a clock that drifts by at most `ppb`.
fn carried(at: Interval, elapsed_ns: u64, ppb: u32) -> Interval {
    let drift_ns = (u128::from(elapsed_ns) * u128::from(ppb)).div_ceil(1_000_000_000) as u64;
    Interval {
        earliest_ns: at.earliest_ns.saturating_add(elapsed_ns).saturating_sub(drift_ns),
        latest_ns: at.latest_ns.saturating_add(elapsed_ns).saturating_add(drift_ns),
    }
}

impl Samples {
    /// Adds an exchange that took from `b1_ns` to `b4_ns` on the boot-time clock.
    pub fn add(&mut self, reply: &Reply, b1_ns: u64, b4_ns: u64, max_drift_ppb: u32) {
        let received = Interval { earliest_ns: 0, latest_ns: reply.received_ns.saturating_add(reply.distance_ns) };
        let at = Interval {
            earliest_ns: reply.sent_ns.saturating_sub(reply.distance_ns),
            latest_ns: carried(received, b4_ns.saturating_sub(b1_ns), max_drift_ppb).latest_ns,
        };
        let sample = Sample { heard_ns: b4_ns, at, as_of_ns: b4_ns };
        self.inconsistent = self.interval(b4_ns, max_drift_ppb).is_some_and(|known| !known.meets(at));
        if self.inconsistent {
            self.recent.clear();
        }
        if self.recent.len() == SAMPLES_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(sample);
    }
    /// Where true time lies by this server when the boot-time clock shows `boot_ns`.
    pub fn interval(&self, boot_ns: u64, max_drift_ppb: u32) -> Option<Interval> {
        self.recent
            .iter()
            .map(|s| carried(s.at, boot_ns.saturating_sub(s.as_of_ns), max_drift_ppb))
            .reduce(|a, b| Interval {
                earliest_ns: a.earliest_ns.max(b.earliest_ns),
                latest_ns: a.latest_ns.min(b.latest_ns),
            })
            .filter(|i| i.earliest_ns <= i.latest_ns)
    }
    /// Carries all samples on to boot time `boot_ns`; from there on another drift may hold.
    pub fn carry(&mut self, boot_ns: u64, max_drift_ppb: u32) {
        for s in &mut self.recent {
            let elapsed = boot_ns.saturating_sub(s.as_of_ns);
            (s.at, s.as_of_ns) = (carried(s.at, elapsed, max_drift_ppb), s.as_of_ns.saturating_add(elapsed));
        }
    }
    /// Boot time of the newest sample.
    pub fn newest_ns(&self) -> Option<u64> {
        self.recent.back().map(|s| s.heard_ns)
    }
    /// Whether the newest sample contradicted the ones before.
    pub fn inconsistent(&self) -> bool {
        self.inconsistent
    }
    /// Forgets everything: the boot-time clock slept.
    pub fn clear(&mut self) {
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Delays of any asymmetry, a server that is wrong within its distance, a local clock that drifts within its rate.
        #[test]
        fn true_time_stays_inside(
            exchanges in prop::collection::vec((0..50_000_000u64, 0..50_000_000u64, 0..1_000_000u64, -1_000i64..=1_000), 1..20),
            pause_ns in 1_000_000..60_000_000_000u64,
            share in -1_000i128..=1_000,
            carries in 0..4u64,
        ) {
            let (ppb, distance_ns) = (200_000u32, 1_000_000u64);
            let mut samples = Samples::default();
            let start = 1_800_000_000_000_000_000u64;
            let boot_at = |truth: u64| {
                let elapsed = i128::from(truth - start);
                7_000_000_000u64 + (elapsed + elapsed * i128::from(ppb) * share / 1_000_000_000_001) as u64
            };
            let mut truth = start;
            for (there, back, work, wrong) in exchanges {
                let b1 = boot_at(truth);
                let error = (distance_ns as i64 / 1_000 - 1) * wrong;
                let received = (truth + there).saturating_add_signed(error);
                truth += there + work + back;
                let reply = Reply {
                    leap: 0, stratum: 1, smeared: false, distance_ns,
                    received_ns: received, sent_ns: received + work,
                };
                samples.add(&reply, b1, boot_at(truth), ppb);
                prop_assert!(!samples.inconsistent());
                for wait in [0, pause_ns] {
                    for _ in 0..carries {
                        truth += wait / 7;
                        samples.carry(boot_at(truth), ppb);
                    }
                    truth += wait;
                    let i = samples.interval(boot_at(truth), ppb).unwrap();
                    let rounding = 2 + 2 * carries;
                    prop_assert!(i.earliest_ns <= truth + rounding && truth <= i.latest_ns + rounding, "{} in {:?}", truth, i);
                }
            }
        }
    }

    #[test]
    fn a_server_that_jumps_is_noticed_and_only_its_newest_word_counts() {
        let mut s = Samples::default();
        let reply =
            |t: u64| Reply { leap: 0, stratum: 1, smeared: false, distance_ns: 1_000, received_ns: t, sent_ns: t };
        s.add(&reply(1_000_000_000), 0, 10, 0);
        s.add(&reply(9_000_000_000), 1_000, 1_010, 0);
        assert!(s.inconsistent() && s.interval(1_010, 0).unwrap().earliest_ns > 8_000_000_000);
        s.add(&reply(9_000_001_000), 2_000, 2_010, 0);
        assert!(!s.inconsistent());
    }
}
