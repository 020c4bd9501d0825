//! Real daemons: does the bound contain true time while the network delays, leans to one side and loses packets?
//!
//! `cargo test -p timeball-clocksource --test containment -- --ignored --nocapture`
//!
//! Needs root, chronyd and `ip` (Debian: chrony, iproute2); says so and passes where they are missing. Takes a minute.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

// Its end-to-end user needs more of it.
#[allow(dead_code)]
mod daemons;
mod relay;

use clock::{Reading, Status};
use clocksource::{Clock, ClockSource, Spec};
use relay::{Relay, Truth, Weather, real_ns};
use std::sync::Arc;
use std::time::{Duration, Instant};

const fn weather(there_us: u64, back_us: u64, loss: u64) -> Weather {
    Weather { there_us, back_us, loss }
}

/// What the network does, in turns.
const SEASONS: [(&str, Weather); 7] = [
    ("calm", weather(0, 0, 0)),
    ("delay 2 ms each way", weather(2_000, 2_000, 0)),
    ("8 ms more on the way back", weather(0, 8_000, 0)),
    ("8 ms more on the way there", weather(8_000, 0, 10)),
    ("20 ms back, 30 % lost", weather(500, 20_000, 30)),
    ("60 % lost", weather(100, 100, 60)),
    ("calm again", weather(0, 0, 0)),
];
const SEASON: Duration = Duration::from_secs(5);
const SAMPLE_EVERY: Duration = Duration::from_millis(2);
/// Time for daemons to start and to come back, on the slowest machine: only a failure costs it.
const PATIENCE: Duration = Duration::from_secs(600);
/// So many samples prove something, if most of them were trusted.
const SAMPLES_MIN: u64 = 1_000;

#[derive(Default, Debug)]
struct Tally {
    samples: u64,
    untrusted: u64,
    violations: u64,
    worst_margin_ns: Option<i64>,
    widest_ns: u64,
}

impl Tally {
    fn is_enough(&self) -> bool {
        self.samples > SAMPLES_MIN && self.untrusted < self.samples / 2
    }
    /// One sample: true time lay between its values just before and just after the reading.
    fn sample(&mut self, clock: &Clock, truth: Truth) {
        let before = truth.at(real_ns());
        let reading = clock.read();
        let after = truth.at(real_ns());
        self.samples += 1;
        let Some(i) = reading.trusted() else {
            self.untrusted += 1;
            return;
        };
        let margin = (after as i64 - i.earliest_ns as i64).min(i.latest_ns as i64 - before as i64);
        self.violations += u64::from(margin < 0);
        self.worst_margin_ns = Some(self.worst_margin_ns.map_or(margin, |w| w.min(margin)));
        self.widest_ns = self.widest_ns.max(i.error_ns());
    }
}

/// The first reading that is as it should be.
fn wait_for(what: &str, clock: &Clock, log: impl Fn() -> String, good: impl Fn(&Reading) -> bool) -> Reading {
    let start = Instant::now();
    loop {
        let reading = clock.read();
        if good(&reading) {
            return reading;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}: {:?}\n{}", clock.report(), log());
        std::thread::sleep(Duration::from_millis(20)); // poll: the daemon answers
    }
}

#[test]
#[ignore = "real chronyds for a minute; needs root: cargo test -p timeball-clocksource --test containment -- --ignored --nocapture"]
fn true_time_stays_inside_whatever_the_network_does() {
    if let Some(what) = daemons::missing() {
        println!("SKIPPED: this machine has no {what}");
        return;
    }
    let place = daemons::Place::create().unwrap();
    let namespace = daemons::Namespace::create().unwrap();
    let _reference = place.reference(&namespace).unwrap();
    let truth = Truth { start_ns: real_ns() as i64, offset_ns: 37_000_000, drift_ppm: 20 };
    let relay = Relay::start(format!("{}:123", namespace.address).parse().unwrap(), truth);
    let client = place.client(relay.address()).unwrap();

    let open = |spec: String| {
        let clock = Clock::open(&spec.parse::<Spec>().unwrap()).unwrap();
        let poller = clock.start_poller(|e| println!("    event: {e}")).unwrap();
        (clock, poller)
    };
    let (chrony, _p1) = open(format!("chrony:{}", place.socket().display()));
    let (ntp, _p2) = open(format!("ntp:127.0.0.1:{}", relay.port));
    let bound = place.clockbound();
    let clockbound = match &bound {
        Some((_, segment)) => Some(open(format!("clockbound:{}", segment.display()))),
        None => {
            println!(
                "NOT COVERED: this machine has no ClockBound daemon (cargo install clock-bound-d, or TIMEBALL_CLOCKBOUND)"
            );
            None
        }
    };
    let mut clocks: Vec<(&str, &Arc<Clock>)> = vec![("chrony", &chrony), ("ntp", &ntp)];
    clocks.extend(clockbound.iter().map(|(clock, _)| ("clockbound", clock)));
    let clocks = clocks.as_slice();
    for (_, clock) in clocks {
        wait_for("synchronisation", clock, || place.log("client"), |r| r.status == Status::Synchronized);
    }

    println!("true time is 37 ms ahead of the system clock and gains 20 ppm");
    let fresh = || clocks.iter().map(|_| Tally::default()).collect::<Vec<_>>();
    let mut totals = fresh();
    for (name, w) in SEASONS {
        relay.set(w);
        let (start, mut season) = (Instant::now(), fresh());
        // A busy machine samples rarely and polls late: there the last, calm season goes on until it has made up for it.
        let last = name == SEASONS[SEASONS.len() - 1].0;
        let lacks = |season: &[Tally]| {
            let so_far = season.iter().zip(&totals).map(|(tally, total)| Tally {
                samples: tally.samples + total.samples,
                untrusted: tally.untrusted + total.untrusted,
                ..Tally::default()
            });
            last && start.elapsed() < PATIENCE && !so_far.into_iter().all(|t| t.is_enough())
        };
        while start.elapsed() < SEASON || lacks(&season) {
            for (tally, (_, clock)) in season.iter_mut().zip(clocks) {
                tally.sample(clock, truth);
            }
            std::thread::sleep(SAMPLE_EVERY); // poll: the next sample is due
        }
        for ((tally, total), (source, _)) in season.iter().zip(&mut totals).zip(clocks) {
            println!("{name:<28} {source:<10} {}", line(tally));
            total.samples += tally.samples;
            total.untrusted += tally.untrusted;
            total.violations += tally.violations;
            total.worst_margin_ns = total.worst_margin_ns.into_iter().chain(tally.worst_margin_ns).min();
            total.widest_ns = total.widest_ns.max(tally.widest_ns);
        }
    }
    for (total, (source, _)) in totals.iter().zip(clocks) {
        println!("{:<28} {source:<10} {}", "ALL", line(total));
        assert_eq!(total.violations, 0, "{source}");
        assert!(total.is_enough(), "{source}: {total:?}");
    }
    a_dead_daemon_and_its_return(&place, &relay, &chrony, client);
}

fn line(t: &Tally) -> String {
    format!(
        "samples {:>6}  violations {}  worst margin {:>9.1} us  widest error {:>9.1} us  untrusted {}",
        t.samples,
        t.violations,
        t.worst_margin_ns.map_or(f64::NAN, |m| m as f64 / 1e3),
        t.widest_ns as f64 / 1e3,
        t.untrusted
    )
}

fn a_dead_daemon_and_its_return(place: &daemons::Place, relay: &Relay, chrony: &Arc<Clock>, client: daemons::Daemon) {
    drop(client);
    let alone = |r: &Reading| r.status == Status::FreeRunning;
    let first = wait_for("FreeRunning", chrony, String::new, alone).interval.error_ns();
    let grown = |r: &Reading| alone(r) && r.interval.error_ns() > first + 50_000;
    let before = wait_for("growth", chrony, String::new, grown).interval.error_ns();
    let _client = place.client(relay.address()).unwrap();
    let back = wait_for("its return", chrony, || place.log("client"), |r| r.status == Status::Synchronized);
    let after = back.interval.error_ns();
    println!("chronyd killed: FreeRunning, error {first} ns grew to {before} ns; back: {after} ns");
}
