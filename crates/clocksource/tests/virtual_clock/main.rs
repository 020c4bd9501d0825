//! A real chronyd that disciplines a clock: steps of either sign, slews, SIGKILL. Is true time always inside?
//!
//! `cargo test -p timeball-clocksource --test virtual_clock -- --ignored --nocapture`
//!
//! The clock is not the machine's. A small C library (`vclock.c`), preloaded into chronyd and into this test, computes the kernel's clocks
//! from `CLOCK_MONOTONIC_RAW` and takes the calls that steer and set them; the real clock is out of reach, since both have given up the right
//! to set it. True time is `CLOCK_MONOTONIC_RAW`, and an NTP server of this test tells it.
//!
//! Needs Linux, root, chronyd and a C compiler; says so and passes where they are missing. Takes eight minutes. No timing is asserted: every
//! disturbance lasts until the clock has recovered from it.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod daemon;
mod truth;

use clock::Status;
use clocksource::auto::Auto;
use clocksource::chrony::{Chrony, ChronyAddress};
use clocksource::{Clock, ClockSource, Kernel, Poller, Settings, Spec};
use daemon::{Chronyd, World};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use truth::{Server, truth_ns};

/// Between two looks at all clocks.
const SAMPLE_EVERY: Duration = Duration::from_millis(1);
/// So long every disturbance is watched at least, true time, nanoseconds.
const WATCH_NS_MIN: u64 = 2_000_000_000;
/// The clock has recovered when its bound is under this (nanoseconds).
const SETTLED_NS: u64 = 2_000_000;
/// What has not recovered by then never will (true time, nanoseconds): a step of a second is slewed away in 12 s.
const PATIENCE_NS: u64 = 300_000_000_000;
/// So many trusted samples of each clock prove something.
const SAMPLES_MIN: u64 = 1_000;
/// A clock at rest is looked at so often at least: its median width is what a change of the rules may not make wider.
const STEADY_MIN: usize = 5_000;
/// So many trusted samples after a step go beyond the time for which the clock from before it is covered.
const ALONE_MIN: usize = 25_000;
/// A step below this (nanoseconds) is in the order of a busy machine's noise.
const SMALL_NS: i64 = 10_000_000;
/// Violations that are told in full.
const TOLD_MAX: u64 = 5;

const MS: i64 = 1_000_000;
const S: i64 = 1_000 * MS;

/// One clock under test, and what became of its readings.
struct Watched {
    name: &'static str,
    clock: Arc<Clock>,
    _poller: Poller,
    trusted: u64,
    untrusted: u64,
    violations: u64,
    worst_ns: i64,
    widest_ns: u64,
    /// Half the width of each trusted reading of this disturbance.
    errors_ns: Vec<u64>,
}

impl Watched {
    fn start(name: &'static str, clock: Arc<Clock>) -> Self {
        let poller = clock.start_poller(move |event| println!("    {name}: {event}")).unwrap();
        let worst_ns = i64::MAX;
        Watched {
            name,
            clock,
            _poller: poller,
            trusted: 0,
            untrusted: 0,
            violations: 0,
            worst_ns,
            widest_ns: 0,
            errors_ns: Vec::new(),
        }
    }
    fn sample(&mut self, during: &str) {
        let before = truth_ns();
        let reading = self.clock.read();
        let after = truth_ns();
        let Some(i) = reading.trusted() else {
            self.untrusted += 1;
            return;
        };
        self.trusted += 1;
        let margin = (after as i64 - i.earliest_ns as i64).min(i.latest_ns as i64 - before as i64);
        if margin < 0 {
            self.violations += 1;
            if self.violations <= TOLD_MAX {
                let (off, report) = (i.middle_ns() as i64 - before as i64, self.clock.report());
                println!(
                    "    VIOLATION {} during {during}: misses by {} ns, off by {off} ns, {reading:?}, {report:?}",
                    self.name, -margin
                );
            }
        }
        self.worst_ns = self.worst_ns.min(margin);
        self.widest_ns = self.widest_ns.max(i.error_ns());
        self.errors_ns.push(i.error_ns());
    }
    /// The median since the last call, nanoseconds; 0 if nothing was trusted.
    fn take_median_ns(&mut self) -> u64 {
        self.errors_ns.sort_unstable();
        let median_ns = self.errors_ns.get(self.errors_ns.len() / 2).copied().unwrap_or(0);
        self.errors_ns.clear();
        median_ns
    }
    fn is_well(&self) -> bool {
        let reading = self.clock.read();
        reading.status == Status::Synchronized && reading.interval.error_ns() < SETTLED_NS
    }
}

/// Samples all clocks until the first has recovered.
fn watch(clocks: &mut [Watched], during: &str, world: &World, done: impl Fn(&[Watched]) -> bool) {
    let began = truth_ns();
    let mut started = clocks.iter().map(|c| (c.trusted, c.untrusted)).collect::<Vec<_>>();
    while truth_ns() - began < WATCH_NS_MIN || !done(clocks) {
        clocks.iter_mut().for_each(|c| c.sample(during));
        let waited = truth_ns() - began;
        let reports = || clocks.iter().map(|c| format!("{:?}\n", c.clock.report())).collect::<String>();
        assert!(waited < PATIENCE_NS, "{during}: it does not recover\n{}\n{}", reports(), world.log());
        std::thread::sleep(SAMPLE_EVERY); // poll: the next sample is due
    }
    for (clock, (trusted, untrusted)) in clocks.iter_mut().zip(started.drain(..)) {
        let median_ns = clock.take_median_ns();
        println!(
            "{during:<44} {:<7} trusted {:>6}  untrusted {:>6}  violations {}  worst margin {:>8.1} us  widest {:>9.1} us  median {:>8.1} us",
            clock.name,
            clock.trusted - trusted,
            clock.untrusted - untrusted,
            clock.violations,
            clock.worst_ns as f64 / 1e3,
            clock.widest_ns as f64 / 1e3,
            median_ns as f64 / 1e3,
        );
    }
}

fn all_well(clocks: &[Watched]) -> bool {
    clocks.iter().all(Watched::is_well)
}

/// `kernel` does not say how far back its daemon goes, and stays wide for its 64 news: the next disturbance may come before that.
fn all_well_but_kernel(clocks: &[Watched]) -> bool {
    clocks.iter().all(|c| c.is_well() || c.name == "kernel")
}

fn open(world: &World, server: &Server) -> Vec<Watched> {
    let socket = world.socket();
    let drift_ppb = Settings::default().max_drift_ppb;
    let spec = |text: String| Clock::open(&text.parse::<Spec>().unwrap()).unwrap();
    let at = socket.clone();
    let auto = Auto::among(
        vec![
            Box::new(move || Some(Box::new(Chrony::new(ChronyAddress::Unix(PathBuf::from(&at)), drift_ppb)))),
            Box::new(|| Some(Box::<Kernel>::default())),
        ],
        clocksource::auto::RETRY_NS,
    );
    vec![
        Watched::start("chrony", spec(format!("chrony:{}", socket.display()))),
        Watched::start("ntp", spec(format!("ntp:{}", server.address()))),
        Watched::start("kernel", spec("kernel".into())),
        Watched::start("auto", Clock::with_probe(Box::new(auto))),
    ]
}

/// What the inner process does: everything, by virtual clocks.
fn story(world: &World) {
    let server = Server::start();
    let mut clocks = open(world, &server);
    println!("true time is 37 ms ahead of the system clock, whose oscillator gains 30 ppm");
    // It slews whatever it finds.
    let mut chronyd = Chronyd::start(world, server.address(), "");
    watch(&mut clocks, "chronyd starts and slews 37 ms away", world, all_well);
    watch(&mut clocks, "nothing happens", world, |c| all_well(c) && c[0].errors_ns.len() > STEADY_MIN);
    for step in [-300 * MS, 300 * MS, -5 * MS, 5 * MS, -S, S] {
        world.step(step);
        // Small ones are hidden in noise the longest: all come to their end.
        let well = if step.abs() < SMALL_NS { all_well } else { all_well_but_kernel };
        let done = |c: &[Watched]| well(c) && c[0].errors_ns.len() > ALONE_MIN;
        watch(&mut clocks, &format!("date -s by {:+.3} s, slewed away", step as f64 / 1e9), world, done);
    }
    drop(chronyd);
    watch(&mut clocks, "chronyd ends, and nothing has begun again", world, |_| true);
    // It steps what is more than two seconds.
    chronyd = Chronyd::start(world, server.address(), "makestep 2 -1");
    watch(&mut clocks, "another chronyd", world, all_well_but_kernel);
    for step in [-9 * S, 9 * S, -60 * S, 60 * S, -3600 * S, 3600 * S] {
        world.step(step);
        watch(
            &mut clocks,
            &format!("date -s by {:+.3} s, stepped back", step as f64 / 1e9),
            world,
            all_well_but_kernel,
        );
    }
    for step in [-300 * MS, 300 * MS] {
        world.step(step);
        watch(&mut clocks, &format!("date -s by {:+.3} s", step as f64 / 1e9), world, |_| world.is_slewed());
        chronyd.kill();
        watch(&mut clocks, "SIGKILL while chronyd slews", world, |_| true);
        assert!(world.is_slewed(), "the slew was left behind");
        chronyd = Chronyd::start(world, server.address(), "makestep 2 -1");
        watch(&mut clocks, "chronyd is back", world, all_well_but_kernel);
    }
    // Without a daemon, and with a slew that somebody else begins.
    chronyd.kill();
    watch(&mut clocks, "SIGKILL", world, |_| true);
    for ppm in [-83_333, 60_000, 0] {
        world.slew(ppm);
        watch(&mut clocks, &format!("no daemon, slewed by {ppm} ppm"), world, |_| true);
    }
    for clock in &clocks {
        println!(
            "ALL {:<7} trusted {} untrusted {} violations {}",
            clock.name, clock.trusted, clock.untrusted, clock.violations
        );
        assert_eq!(clock.violations, 0, "{}", clock.name);
        assert!(clock.trusted > SAMPLES_MIN, "{}", clock.name);
    }
}

#[test]
#[ignore = "a real chronyd for eight minutes; needs root: cargo test -p timeball-clocksource --test virtual_clock -- --ignored --nocapture"]
fn true_time_stays_inside_whoever_sets_the_clock() {
    match World::inside() {
        Some(world) => story(&world),
        None => match daemon::missing() {
            Some(what) => println!("SKIPPED: this machine has no {what}"),
            None => World::create().unwrap().run_again("true_time_stays_inside_whoever_sets_the_clock"),
        },
    }
}
