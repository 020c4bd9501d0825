//! What each source makes of what its daemon says, without daemons: reports and fakes written here.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use clock::{Interval, Status};
use clocksource::auto::{Auto, Candidate, FAILURES_MAX};
use clocksource::chrony::{Chrony, ChronyAddress, Tracking};
use clocksource::{Clock, ClockSource, Event, Leap, Measurement, Memory, Moment, Probe, ProbeError};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

const S: u64 = 1_000_000_000;

fn moment() -> Moment {
    Moment {
        boot_ns: 5_000 * S,
        mono_ns: 4_000 * S,
        real_ns: 1_800_000_000 * S,
        raw_ns: 3_000 * S,
        width_ns: 0,
        steering_ppb: Some(0),
    }
}

fn tracking() -> Tracking {
    Tracking {
        reference_id: 0x0a00_0001,
        address: "10.0.0.1".into(),
        stratum: 3,
        reference_unix_ns: moment().real_ns - 10 * S,
        current_correction_s: -0.000_100,
        root_delay_s: 0.000_400,
        root_dispersion_s: 0.000_050,
        update_interval_s: 16.0,
        ..Tracking::default()
    }
}

#[test]
fn chrony_adds_up_everything_that_can_be_wrong() {
    let m = tracking().measure(moment(), 50_000).unwrap();
    // 100 us to correct + 50 us dispersion + half of 400 us delay + 10 s at 50 ppm.
    assert_eq!(m.interval.error_ns(), 100_000 + 50_000 + 200_000 + 500_000);
    assert_eq!((m.status, m.leap, m.updated_ns), (Status::Synchronized, Leap::None, 4_990 * S));
}

#[test]
fn chrony_that_does_not_know_gives_no_bound() {
    let bad = [
        Tracking { leap_status: 3, ..tracking() },
        Tracking { root_delay_s: 0.0, root_dispersion_s: 0.0, ..tracking() },
        Tracking { reference_id: 0x7f7f_0101, address: String::new(), ..tracking() },
        Tracking { root_delay_s: f64::NAN, ..tracking() },
        Tracking { current_correction_s: 1e9, ..tracking() },
    ];
    for t in bad {
        assert!(t.measure(moment(), 50_000).is_err(), "{t:?}");
    }
    assert_eq!(Tracking { leap_status: 1, ..tracking() }.measure(moment(), 0).unwrap().leap, Leap::Insert);
    let late = Tracking { reference_unix_ns: moment().real_ns - 129 * S, ..tracking() };
    assert_eq!(late.measure(moment(), 0).unwrap().status, Status::FreeRunning, "eight update intervals are over");
    let future = Tracking { reference_unix_ns: moment().real_ns + 3 * S, ..tracking() };
    assert!(future.measure(moment(), 50_000).unwrap().interval.error_ns() >= 350_000);
}

#[test]
fn chrony_opens_the_bound_as_fast_as_it_may_be_wrong_of_the_frequency() {
    let t = Tracking { frequency_ppm: 12.5, skew_ppm: 3.0, residual_ppm: -0.5, ..tracking() };
    // Without a slew the kernel makes up for what chronyd says the clock would gain.
    let steady = t.measure(Moment { steering_ppb: Some(-12_500), ..moment() }, 50_000).unwrap();
    assert_eq!((steady.max_drift_ppb, steady.growth_ppb(-12_500)), (53_500, 53_500));
    // A tenth of true time is a ninth of a clock that is slow by it; and the drift on top.
    let slewed = steady.growth_ppb(-100_012_500);
    assert!((111_111_111 + 53_500..111_190_000).contains(&slewed), "{slewed}");
    assert_eq!([i64::MIN, i64::MAX, 2_000_000_000].map(|s| steady.growth_ppb(s)), [u32::MAX; 3]);

    let start = Tracking { skew_ppm: 1_140_000.0, ..tracking() };
    let refused = start.measure(moment(), 50_000).unwrap_err().to_string();
    assert!(refused.contains("too few samples"), "{refused}");
    for bad in [f64::NAN, f64::INFINITY, 1e9] {
        assert!(Tracking { frequency_ppm: bad, ..tracking() }.measure(moment(), 50_000).is_err(), "{bad}");
        assert!(Tracking { skew_ppm: bad, ..tracking() }.measure(moment(), 50_000).is_err(), "{bad}");
    }
}

/// A source whose error is set from outside; negative means that it does not answer.
#[derive(Debug)]
struct Fake(&'static str, Arc<AtomicI64>, i64);

impl Probe for Fake {
    fn name(&self) -> &'static str {
        self.0
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let error = self.1.load(Ordering::Relaxed);
        if error < 0 {
            return Err(ProbeError::Unsynchronised { source_name: self.0, reason: "gone".into() });
        }
        let moment = Moment::capture();
        let middle = moment.real_ns.saturating_add_signed(self.2);
        Ok(Measurement {
            moment,
            interval: Interval { earliest_ns: middle - error as u64, latest_ns: middle + error as u64 },
            updated_ns: moment.boot_ns,
            max_drift_ppb: 0,
            steady_ppb: Some(0),
            follows_slews: true,
            remembers: Memory::Unstepped,
            status: Status::Synchronized,
            leap: Leap::None,
            detail: String::new(),
        })
    }
}

fn fake(name: &'static str, error: &Arc<AtomicI64>, offset_ns: i64) -> Candidate {
    let error = Arc::clone(error);
    Box::new(move || Some(Box::new(Fake(name, Arc::clone(&error), offset_ns))))
}

#[test]
fn auto_takes_the_best_leaves_a_lost_one_and_never_jumps() {
    let (best, second) = (Arc::new(AtomicI64::new(-1)), Arc::new(AtomicI64::new(900_000)));
    // The two disagree by 800 us, within their errors.
    let mut auto = Auto::among(vec![fake("best", &best, 0), fake("second", &second, 800_000)], 0);
    assert_eq!(auto.probe().unwrap().interval.error_ns(), 900_000);
    assert_eq!(auto.source(), "second");

    best.store(1_000, Ordering::Relaxed);
    let m = auto.probe().unwrap();
    assert_eq!(auto.source(), "best");
    let offset = |ns: u64| ns as i64 - m.moment.real_ns as i64;
    assert!(offset(m.interval.latest_ns) > 1_600_000 && offset(m.interval.earliest_ns) <= -1_000, "covers both: {m:?}");

    best.store(-1, Ordering::Relaxed);
    let failures = (1..).find(|_| auto.probe().is_ok());
    assert_eq!((failures, auto.source().as_str()), (Some(FAILURES_MAX), "second"));
    let switches: Vec<_> = auto.take_events().into_iter().map(|e| e.to_string()).collect();
    assert_eq!(switches.len(), 3, "{switches:?}");
    assert!(switches[2].starts_with("clock source best -> second: the old source was lost"), "{switches:?}");

    second.store(-1, Ordering::Relaxed);
    assert!((0..10).all(|_| auto.probe().is_err()));
    best.store(5, Ordering::Relaxed);
    assert!(auto.probe().is_ok() && auto.source() == "best");
}

#[test]
fn auto_without_any_source_says_why_each_was_refused() {
    let gone = Arc::new(AtomicI64::new(-1));
    let mut auto = Auto::among(vec![fake("a", &gone, 0), fake("b", &gone, 0)], 0);
    let error = auto.probe().unwrap_err().to_string();
    assert!(auto.take_events().is_empty());
    assert!(error.contains("a is not synchronised: gone; b is not synchronised: gone"), "{error}");
}

/// What a source says: how far off it is and how sure, nanoseconds, and of itself; nothing, and it does not answer.
type Word = Arc<Mutex<Option<(i64, u64, Status)>>>;

#[derive(Debug)]
struct Speaker(&'static str, Word);

impl Probe for Speaker {
    fn name(&self) -> &'static str {
        self.0
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let mut fake = Fake(self.0, Arc::new(AtomicI64::new(-1)), 0);
        let Some((offset_ns, error_ns, status)) = *self.1.lock().unwrap() else { return fake.probe() };
        (fake.1, fake.2) = (Arc::new(AtomicI64::new(error_ns as i64)), offset_ns);
        Ok(Measurement { status, ..fake.probe()? })
    }
}

fn speakers() -> (Auto, Word, Word) {
    let (best, second) = (Word::default(), Word::default());
    let candidate = |name, word: &Word| -> Candidate {
        let word = Arc::clone(word);
        Box::new(move || Some(Box::new(Speaker(name, Arc::clone(&word)))))
    };
    (Auto::among(vec![candidate("best", &best), candidate("second", &second)], u64::MAX), best, second)
}

/// One of two sources that contradict each other is wrong: a handover that covered both would say that all is well.
#[test]
fn auto_does_not_hide_that_its_sources_contradict_each_other() {
    for (apart_ns, contradict) in [(5_000_000_000, true), (-5_000_000_000, true), (900_000, false)] {
        let (auto, best, second) = speakers();
        *best.lock().unwrap() = Some((0, 1_000_000, Status::Synchronized));
        *second.lock().unwrap() = Some((apart_ns, 1_000_000, Status::Synchronized));
        let clock = Clock::with_probe(Box::new(auto));
        clock.poll();
        assert_eq!((clock.read().status, clock.source().as_str()), (Status::Synchronized, "best"));
        *best.lock().unwrap() = None;
        let events: Vec<Event> = (0..FAILURES_MAX).flat_map(|_| clock.poll()).collect();
        assert_eq!(clock.source(), "second");
        let said = events.iter().any(|e| matches!(e, Event::Contradiction(_)));
        assert_eq!((said, clock.now().is_err()), (contradict, contradict), "{events:?}");
    }
}

#[test]
fn auto_begins_with_a_source_that_runs_free_if_there_is_no_other() {
    let (mut auto, best, second) = speakers();
    *second.lock().unwrap() = Some((0, 7_000_000, Status::FreeRunning));
    let m = auto.probe().unwrap();
    assert_eq!((m.status, m.interval.error_ns(), auto.source().as_str()), (Status::FreeRunning, 7_000_000, "second"));
    *best.lock().unwrap() = Some((0, 1_000_000, Status::Synchronized));
    let looks = (1..100).find(|_| auto.probe().unwrap().status == Status::Synchronized);
    assert!(looks <= Some(FAILURES_MAX as i32) && auto.source() == "best", "{looks:?}");
}

/// What a process that was killed has left in the daemon's directory is removed, and nothing else.
#[test]
fn sockets_of_processes_that_were_killed_are_removed() {
    let directory = std::env::temp_dir().join(format!("tb-sweep-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let at = |name: &str| directory.join(name);
    drop(UnixDatagram::bind(at("timeball.1.dead.sock")).unwrap());
    drop(UnixDatagram::bind(at("chronyc.1.sock")).unwrap());
    let _alive = UnixDatagram::bind(at("timeball.1.alive.sock")).unwrap();
    let mut chrony = Chrony::new(ChronyAddress::Unix(at("chronyd.sock")), 0);
    assert!(chrony.tracking().is_err(), "there is no daemon");
    let mut left: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["chronyc.1.sock", "timeball.1.alive.sock"]);
    std::fs::remove_dir_all(&directory).unwrap();
}
