//! What a bounded reading costs: `cargo bench -p timeball-clocksource`.
//!
//! Every contender runs in short rounds that take turns, so that a busy machine slows all of them alike; the medians of the
//! rounds are compared as ratios to a bare `clock_gettime(CLOCK_REALTIME)`.

#![allow(clippy::disallowed_methods, missing_docs)]

use clock::{HybridClock, Interval, Status, Timestamp};
use clocksource::{Clock, ClockSource, Measurement, Moment, Probe, ProbeError, Spec};
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::Instant;

const ROUNDS: usize = 31;
const CALLS: u32 = 200_000;

/// Always synchronised, so that the anchored path is measured whatever this machine's daemons do.
#[derive(Debug)]
struct Steady;

impl Probe for Steady {
    fn name(&self) -> &'static str {
        "anchored"
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let moment = Moment::capture();
        Ok(Measurement {
            moment,
            interval: Interval { earliest_ns: moment.real_ns - 50_000, latest_ns: moment.real_ns + 50_000 },
            updated_ns: moment.boot_ns,
            max_drift_ppb: 50_000,
            status: Status::Synchronized,
            leap: Default::default(),
            detail: String::new(),
        })
    }
}

type Contender = (String, f64, Arc<dyn Fn() + Send + Sync>);

fn bare(id: libc::clockid_t) -> libc::timespec {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for the call to fill.
    unsafe { libc::clock_gettime(id, &mut t) };
    t
}

fn contender<T>(name: impl Into<String>, goal: f64, call: impl Fn() -> T + Send + Sync + 'static) -> Contender {
    let run = move || {
        for _ in 0..CALLS {
            black_box(call());
        }
    };
    (name.into(), goal, Arc::new(run))
}

fn contenders() -> Vec<Contender> {
    let mut all = vec![
        contender("bare clock_gettime(REALTIME)", 1.0, || bare(libc::CLOCK_REALTIME)),
        contender("bare clock_gettime(BOOTTIME)", f64::NAN, || bare(libc::CLOCK_BOOTTIME)),
    ];
    let mut add = |clock: Arc<Clock>| {
        let (name, reader) = (clock.name(), Arc::clone(&clock));
        all.push(contender(format!("reading, {name}"), 2.0, move || reader.read()));
        let hybrid = HybridClock::default();
        all.push(contender(format!("hybrid now(), {name}"), 3.0, move || {
            hybrid.tick(clock.read().interval, Timestamp::MIN)
        }));
    };
    for spec in ["same-host", "static:5ms"] {
        add(Clock::open(&spec.parse::<Spec>().unwrap()).unwrap());
    }
    let anchored = Clock::with_probe(Box::new(Steady));
    anchored.poll();
    assert_eq!(anchored.read().status, Status::Synchronized);
    add(anchored);
    all
}

/// Nanoseconds a call, slowest of `threads` threads that run the contender at once.
fn round(run: &Arc<dyn Fn() + Send + Sync>, threads: usize) -> f64 {
    let barrier = Barrier::new(threads);
    let one = || {
        barrier.wait();
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
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
            for (i, (_, _, run)) in all.iter().enumerate() {
                times[i].push(round(run, threads));
            }
        }
        let median = |t: &mut Vec<f64>| {
            t.sort_by(f64::total_cmp);
            t[t.len() / 2]
        };
        let medians: Vec<f64> = times.iter_mut().map(median).collect();
        println!("\n{threads} thread(s): median of {ROUNDS} interleaved rounds of {CALLS} calls");
        println!("{:<34} {:>9} {:>7}  goal", "", "ns/call", "ratio");
        for ((name, goal, _), ns) in all.iter().zip(&medians) {
            let ratio = ns / medians[0];
            let verdict = match goal {
                g if g.is_nan() || *g == 1.0 => String::new(),
                g => format!("<= {g:.1}x {}", if ratio <= *g { "met" } else { "MISSED" }),
            };
            println!("{name:<34} {ns:>9.1} {ratio:>6.2}x  {verdict}");
        }
    }
}
