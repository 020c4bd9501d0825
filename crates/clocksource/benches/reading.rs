//! What a bounded reading costs: `cargo bench -p timeball-clocksource`.
//!
//! Every contender runs in short rounds that take turns, so that a busy machine slows all of them alike; the medians of the
//! rounds are compared as ratios to a bare `clock_gettime(CLOCK_REALTIME)`. Sources whose daemon runs on this machine are measured
//! too, and with `--features compare-clockbound` ClockBound's own client beside them.

#![allow(clippy::disallowed_methods, missing_docs)]

use clock::{HybridClock, Interval, Status, Timestamp};
use clocksource::chrony::{Chrony, ChronyAddress};
use clocksource::{Clock, ClockSource, Measurement, Memory, Moment, Probe, ProbeError, Spec};
use std::hint::black_box;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Instant;

const ROUNDS: usize = 31;
const CALLS: u32 = 200_000;
const READING_GOAL: f64 = 1.5;
const HYBRID_GOAL: f64 = 3.0;

/// Always synchronised, so that the anchored path is measured whatever this machine's daemons do: over the boot-time clock, or over the
/// bare oscillator, as `ntp` and `ptp` are.
#[derive(Debug)]
struct Steady(bool);

impl Probe for Steady {
    fn name(&self) -> &'static str {
        if self.0 { "anchored" } else { "anchored, bare" }
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let moment = Moment::capture();
        Ok(Measurement {
            moment,
            interval: Interval { earliest_ns: moment.real_ns - 50_000, latest_ns: moment.real_ns + 50_000 },
            updated_ns: moment.boot_ns,
            max_drift_ppb: 50_000,
            steady_ppb: Some(0),
            follows_slews: self.0,
            remembers: Memory::Unstepped,
            status: Status::Synchronized,
            leap: Default::default(),
            detail: String::new(),
        })
    }
}

struct Contender {
    name: String,
    goal: Option<f64>,
    calls: u32,
    run: Arc<dyn Fn(u32) + Send + Sync>,
}

fn bare(id: libc::clockid_t) -> libc::timespec {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for the call to fill.
    unsafe { libc::clock_gettime(id, &mut t) };
    t
}

fn contender<T>(name: impl Into<String>, goal: Option<f64>, call: impl Fn() -> T + Send + Sync + 'static) -> Contender {
    let run = move |calls| {
        for _ in 0..calls {
            black_box(call());
        }
    };
    Contender { name: name.into(), goal, calls: CALLS, run: Arc::new(run) }
}

fn contenders() -> Vec<Contender> {
    let mut all = vec![
        contender("bare clock_gettime(REALTIME)", None, || bare(libc::CLOCK_REALTIME)),
        contender("bare clock_gettime(BOOTTIME)", None, || bare(libc::CLOCK_BOOTTIME)),
    ];
    let mut clocks: Vec<_> = [true, false].map(|follows| Clock::with_probe(Box::new(Steady(follows)))).into();
    for anchored in &clocks {
        anchored.poll();
        assert_eq!(anchored.read().status, Status::Synchronized);
    }
    for spec in ["same-host", "static:5ms", "chrony", "clockbound", "kernel"] {
        let clock = Clock::open(&spec.parse::<Spec>().unwrap()).unwrap();
        match clock.read().status {
            Status::Synchronized => clocks.push(clock),
            _ => println!("not measured, {spec}: {}", clock.report().detail),
        }
    }
    for clock in clocks {
        let (name, reader) = (clock.name(), Arc::clone(&clock));
        // As in use: somebody polls, four times a second.
        let poller = clock.start_poller(|_| {}).unwrap();
        let read = move || {
            let _polled = &poller;
            reader.read()
        };
        all.push(contender(format!("reading, {name}"), Some(READING_GOAL), read));
        let hybrid = HybridClock::default();
        let now = move || hybrid.tick(clock.read().interval, Timestamp::MIN);
        all.push(contender(format!("hybrid now(), {name}"), Some(HYBRID_GOAL), now));
    }
    let mut chrony = Chrony::new(ChronyAddress::Usual, 50_000);
    if chrony.tracking().is_ok() {
        let chrony = Mutex::new(chrony);
        let ask = contender("asking chronyd each time", None, move || chrony.lock().unwrap().tracking());
        all.push(Contender { calls: 200, ..ask });
    }
    all.extend(clockbound_client());
    all
}

#[cfg(feature = "compare-clockbound")]
fn clockbound_client() -> Option<Contender> {
    use clock_bound_client::ClockBoundClient;
    use std::cell::RefCell;
    thread_local!(static CLIENT: RefCell<Option<ClockBoundClient>> = RefCell::new(ClockBoundClient::new().ok()));
    let call = || CLIENT.with_borrow_mut(|c| c.as_mut().map(|c| c.now()));
    match call() {
        Some(Ok(_)) => Some(contender("clock-bound-client 2.0.3 now()", None, call)),
        _ => {
            println!("not measured, clock-bound-client: its daemon does not run");
            None
        }
    }
}

#[cfg(not(feature = "compare-clockbound"))]
fn clockbound_client() -> Option<Contender> {
    println!("not measured, clock-bound-client: needs --features compare-clockbound");
    None
}

/// Nanoseconds a call, slowest of `threads` threads that run the contender at once.
fn round(contender: &Contender, threads: usize) -> f64 {
    let barrier = Barrier::new(threads);
    let one = || {
        barrier.wait();
        let start = Instant::now();
        (contender.run)(contender.calls);
        start.elapsed().as_nanos() as f64 / f64::from(contender.calls)
    };
    std::thread::scope(|s| {
        let others: Vec<_> = (1..threads).map(|_| s.spawn(one)).collect();
        let mine = one();
        others.into_iter().map(|h| h.join().unwrap()).fold(mine, f64::max)
    })
}

fn main() {
    let all = contenders();
    for threads in [1, 2] {
        let mut times = vec![Vec::with_capacity(ROUNDS); all.len()];
        for _ in 0..ROUNDS {
            for (contender, times) in all.iter().zip(&mut times) {
                times.push(round(contender, threads));
            }
        }
        let median = |t: &mut Vec<f64>| {
            t.sort_by(f64::total_cmp);
            t[t.len() / 2]
        };
        let medians: Vec<f64> = times.iter_mut().map(median).collect();
        println!("\n{threads} thread(s): median of {ROUNDS} interleaved rounds");
        println!("{:<34} {:>9} {:>8}  goal", "", "ns/call", "ratio");
        for (contender, ns) in all.iter().zip(&medians) {
            let ratio = ns / medians[0];
            let verdict = contender.goal.map_or(String::new(), |goal| {
                format!("<= {goal:.1}x {}", if ratio <= goal { "met" } else { "MISSED" })
            });
            println!("{:<34} {ns:>9.1} {ratio:>7.2}x  {verdict}", contender.name);
        }
    }
}
