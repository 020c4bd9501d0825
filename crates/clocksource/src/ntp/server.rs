//! What is known of one server: the last few exchanges, as intervals over the bare oscillator, which nobody slews.
//!
//! The request left when the oscillator showed `b1`, the reply came at `b4`. The server read its clock in between, first `received`, then `sent`.
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
    /// When it ended, by the bare oscillator and by the boot-time clock, nanoseconds.
    heard_raw_ns: u64,
    heard_ns: u64,
    /// Where true time lay then.
    at: Interval,
}

/// Two clocks of the kernel, nanoseconds: the bare oscillator and the boot-time clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Instants {
    /// `CLOCK_MONOTONIC_RAW`.
    pub raw_ns: u64,
    /// `CLOCK_BOOTTIME`.
    pub boot_ns: u64,
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
    /// Adds an exchange that took from when the oscillator showed `asked_raw_ns` until `heard`.
    pub fn add(&mut self, reply: &Reply, asked_raw_ns: u64, heard: Instants, max_drift_ppb: u32) {
        let received = Interval { earliest_ns: 0, latest_ns: reply.received_ns.saturating_add(reply.distance_ns) };
        let at = Interval {
            earliest_ns: reply.sent_ns.saturating_sub(reply.distance_ns),
            latest_ns: carried(received, heard.raw_ns.saturating_sub(asked_raw_ns), max_drift_ppb).latest_ns,
        };
        let sample = Sample { heard_raw_ns: heard.raw_ns, heard_ns: heard.boot_ns, at };
        self.inconsistent = self.interval(heard.raw_ns, max_drift_ppb).is_some_and(|known| !known.meets(at));
        if self.inconsistent {
            self.recent.clear();
        }
        if self.recent.len() == SAMPLES_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(sample);
    }
    /// Where true time lies by this server when the bare oscillator shows `raw_ns`.
    pub fn interval(&self, raw_ns: u64, max_drift_ppb: u32) -> Option<Interval> {
        self.recent
            .iter()
            .map(|s| carried(s.at, raw_ns.saturating_sub(s.heard_raw_ns), max_drift_ppb))
            .reduce(|a, b| Interval {
                earliest_ns: a.earliest_ns.max(b.earliest_ns),
                latest_ns: a.latest_ns.min(b.latest_ns),
            })
            .filter(|i| i.earliest_ns <= i.latest_ns)
    }
    /// Boot time of the newest sample.
    pub fn newest_ns(&self) -> Option<u64> {
        self.recent.back().map(|s| s.heard_ns)
    }
    /// Whether the newest sample contradicted the ones before.
    pub fn inconsistent(&self) -> bool {
        self.inconsistent
    }
    /// Forgets everything: the machine slept, and the oscillator did not count.
    pub fn clear(&mut self) {
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ns: u64) -> Instants {
        Instants { raw_ns: ns, boot_ns: ns }
    }

    proptest! {
        /// Delays of any asymmetry, a server that is wrong within its distance, a local clock that drifts within its rate.
        #[test]
        fn true_time_stays_inside(
            exchanges in prop::collection::vec((0..50_000_000u64, 0..50_000_000u64, 0..1_000_000u64, -1_000i64..=1_000), 1..20),
            pause_ns in 1_000_000..60_000_000_000u64,
            share in -1_000i128..=1_000,
        ) {
            let (ppb, distance_ns) = (200_000u32, 1_000_000u64);
            let mut samples = Samples::default();
            let start = 1_800_000_000_000_000_000u64;
            let raw_at = |truth: u64| {
                let elapsed = i128::from(truth - start);
                7_000_000_000u64 + (elapsed + elapsed * i128::from(ppb) * share / 1_000_000_000_001) as u64
            };
            let mut truth = start;
            for (there, back, work, wrong) in exchanges {
                let b1 = raw_at(truth);
                let error = (distance_ns as i64 / 1_000 - 1) * wrong;
                let received = (truth + there).saturating_add_signed(error);
                truth += there + work + back;
                let reply = Reply {
                    leap: 0, stratum: 1, smeared: false, distance_ns,
                    received_ns: received, sent_ns: received + work,
                };
                samples.add(&reply, b1, at(raw_at(truth)), ppb);
                prop_assert!(!samples.inconsistent());
                for wait in [0, pause_ns] {
                    truth += wait;
                    let i = samples.interval(raw_at(truth), ppb).unwrap();
                    let rounding = 2;
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
        s.add(&reply(1_000_000_000), 0, at(10), 0);
        s.add(&reply(9_000_000_000), 1_000, at(1_010), 0);
        assert!(s.inconsistent() && s.interval(1_010, 0).unwrap().earliest_ns > 8_000_000_000);
        s.add(&reply(9_000_001_000), 2_000, at(2_010), 0);
        assert!(!s.inconsistent());
    }
}
