//! Anchors, the cell, the text of sources, and what the kernel says.

use clock::{Interval, Status, Timestamp};
use clocksource::{
    Anchor, AnchorCell, Bare, Clock, ClockSource, KernelTime, LATE_AFTER_NS, LOOK_AFTER_NS, Leap, Moment,
    ParseSpecError, ProbeError, Spec,
};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

proptest! {
    /// The integer arithmetic against exact rational arithmetic.
    #[test]
    fn an_anchor_contains_every_clock_that_drifts_as_much_as_it_may(
        truth in 1_000_000_000u64..4_000_000_000_000_000_000,
        error in 0..1_000_000_000u64,
        elapsed in 0..3_000_000_000_000u64,
        ppb in 0..1_000_000u32,
        share in -1_000i128..=1_000,
    ) {
        let at = Interval { earliest_ns: truth - error, latest_ns: truth + error };
        let anchor = Anchor { as_of_ns: 7, at, max_drift_ppb: ppb, ..Anchor::UNKNOWN };
        let got = anchor.interval(7 + elapsed, 0);
        // True time passed is the local elapsed time plus at most ppb of it, either way.
        let drift = i128::from(elapsed) * i128::from(ppb) * share / 1_000_000_000_000;
        let now = i128::from(truth) + i128::from(elapsed) + drift;
        prop_assert!(i128::from(got.earliest_ns) <= now && now <= i128::from(got.latest_ns));
        let widest = u128::from(2 * error) + 2 * (u128::from(elapsed) * u128::from(ppb) / 1_000_000_000) + 2_000;
        prop_assert!(u128::from(got.latest_ns - got.earliest_ns) <= widest, "not wider than it must be");
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,30}") {
        let _ = text.parse::<Spec>();
        let _ = format!("static:{text}").parse::<Spec>();
    }
}

/// The poller is overdue: the machine slept, or the poller hangs. The interval grows on, but is not relied upon.
#[test]
fn a_reading_long_after_the_last_poll_looks_whether_the_machine_slept() {
    let (at, look) = (Interval { earliest_ns: 1_000_000, latest_ns: 2_000_000 }, 1_000);
    let (late, void) = (look + LATE_AFTER_NS - LOOK_AFTER_NS, look + 2 * LATE_AFTER_NS);
    let anchor = |status| Anchor {
        as_of_ns: 10,
        void_after_ns: void,
        look_after_ns: look,
        asleep_ns: 7,
        at,
        bare: None,
        ahead_ns: None,
        max_drift_ppb: 0,
        status,
    };
    let status = |of, now_ns, asleep_ns| anchor(of).read(now_ns, || 0, || asleep_ns, |_| true).status;
    assert_eq!(status(Status::Synchronized, look, 8), Status::Synchronized, "a reader in time does not look");
    for known in [Status::Synchronized, Status::FreeRunning, Status::Disrupted] {
        assert_eq!(status(known, look + 1, 7), known);
        assert_eq!(status(known, late, 7), known);
        assert_eq!(status(known, look + 1, 8), Status::Disrupted, "it slept");
        assert_eq!(status(known, late + 1, 7), Status::Disrupted, "the poller hangs");
        assert_eq!(status(known, void + 1, 7), Status::Unknown);
    }
    assert_eq!(status(Status::Unknown, look + 1, 8), Status::Unknown);
    assert_eq!(
        anchor(Status::Synchronized).read(1_001, || 0, || 8, |_| true).interval.earliest_ns,
        at.earliest_ns + 991 - 1
    );
}

/// Where the poller may be woken late, a daemon can have slewed the boot-time clock for so long: 10 % at most.
#[test]
fn a_reader_that_finds_the_clock_set_opens_its_bound_by_what_a_slew_may_have_done() {
    let polled = 50_000_000_000;
    let anchor = Anchor {
        as_of_ns: polled,
        void_after_ns: u64::MAX,
        look_after_ns: polled + LOOK_AFTER_NS,
        at: Interval { earliest_ns: 1_000_000_000, latest_ns: 1_000_200_000 },
        ahead_ns: Some(77),
        status: Status::Synchronized,
        ..Anchor::UNKNOWN
    };
    let late_ns = 16_000_000;
    let read = |anchor: Anchor, was_set: bool| {
        let told = |ahead_ns| {
            assert_eq!(ahead_ns, 77);
            was_set
        };
        anchor.read(polled + late_ns, || 0, || 0, told)
    };
    let (calm, set) = (read(anchor, false), read(anchor, true));
    assert_eq!((calm.status, set.status), (Status::Synchronized, Status::FreeRunning));
    // Of what the boot-time clock showed a tenth was the slew's.
    let truth_ns = anchor.at.earliest_ns + late_ns - late_ns / 10;
    assert!(set.interval.earliest_ns <= truth_ns && truth_ns <= set.interval.latest_ns);
    assert!(calm.interval.earliest_ns > truth_ns, "the test shows nothing");
    assert_eq!(set.interval.latest_ns - calm.interval.latest_ns, late_ns / 8 + 1);
    let disrupted = Anchor { status: Status::Disrupted, ..anchor };
    assert_eq!(read(disrupted, true).status, Status::Disrupted);
    let alone = Anchor { ahead_ns: None, ..anchor };
    assert_eq!(read(alone, true), calm, "nobody asks where somebody is woken in time");
}

#[test]
fn readers_never_see_half_an_anchor() {
    let (cell, done) = (AnchorCell::default(), AtomicBool::new(false));
    let anchor = |n: u64| Anchor {
        as_of_ns: n,
        void_after_ns: n,
        look_after_ns: n,
        asleep_ns: n.cast_signed(),
        at: Interval { earliest_ns: n, latest_ns: n },
        bare: (n % 2 == 1).then_some(Bare { as_of_ns: n, rate_ppb: 1 - n as i32 % Bare::RATE_PPB_MAX }),
        ahead_ns: (n % 4 == 2).then_some(1_000_000_000_000_000_000 - n.cast_signed() * 20_000_000_000_000),
        max_drift_ppb: n as u32,
        status: Status::Synchronized,
    };
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let got = cell.load();
                    if got != Anchor::UNKNOWN {
                        assert_eq!(got, anchor(got.as_of_ns));
                        assert!(got.as_of_ns >= last, "an older anchor came back");
                        last = got.as_of_ns;
                    }
                }
            });
        }
        (1..100_000).for_each(|n| cell.publish(anchor(n)));
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn an_unsynchronised_kernel_is_not_trusted() {
    let moment = Moment { steering_ppb: Some(-30_000), ..Moment::capture() };
    let good = KernelTime {
        status: 0x2001,
        maxerror_us: 700,
        offset: -20_000,
        tolerance: 500 << 16,
        tai_s: 37,
        tick_us: 10_000,
        frequency: -30 << 16,
        ..KernelTime::default()
    };
    assert_eq!(Some(good.steering_ppb()), moment.steering_ppb);
    assert_eq!(KernelTime { tick_us: 10_833, frequency: 33 << 16, ..good }.steering_ppb(), 83_333_000);
    let m = good.measure(moment).unwrap();
    assert_eq!(m.interval.error_ns(), 700_000 + 20_000 + moment.width_ns);
    assert_eq!((m.max_drift_ppb, m.leap), (500_000, Leap::None));
    assert_eq!(KernelTime { state: 1, ..good }.measure(moment).unwrap().leap, Leap::Insert);
    assert_eq!(KernelTime { state: 2, ..good }.measure(moment).unwrap().leap, Leap::Delete);
    // The flags say what is to be done at midnight; while it happens and afterwards they still stand.
    let told = |state: i32, flag: i32| KernelTime { state, status: good.status | flag, ..good }.leap();
    assert_eq!((told(0, 0x10), told(0, 0x20), told(0, 0)), (Leap::Insert, Leap::Delete, Leap::None));
    assert_eq!([told(3, 0x10), told(4, 0x10), told(4, 0x20)], [Leap::None; 3]);
    for bad in [
        KernelTime { state: 5, ..good },
        KernelTime { status: 0x2041, ..good },
        KernelTime { maxerror_us: 0, ..good },
        KernelTime { maxerror_us: -1, ..good },
    ] {
        assert!(matches!(bad.measure(moment), Err(ProbeError::Unsynchronised { .. })), "{bad:?}");
    }
    let slewed = good.measure(Moment { steering_ppb: Some(83_333_000), ..moment }).unwrap_err().to_string();
    assert!(slewed.contains("being slewed at 83333.0 ppm"), "{slewed}");
}

#[test]
fn a_clock_over_this_kernel_agrees_with_the_kernel() {
    let kernel = || KernelTime::query().unwrap().measure(Moment::capture()).map(drop).map_err(|e| e.to_string());
    // A daemon of this machine may set the kernel's state meanwhile, and a reading that comes long after its poll is not trusted.
    let quietly = (0..100).find_map(|_| {
        let before = kernel();
        let clock = Clock::open(&Spec::Kernel).unwrap();
        let reading = clock.read();
        (before == kernel() && reading.status != Status::Disrupted).then_some((clock, reading, before))
    });
    let (clock, reading, said) = quietly.expect("the kernel's state changes all the time");
    match said {
        Ok(()) => assert_eq!(reading.status, Status::Synchronized),
        Err(e) => {
            assert_eq!(reading.trusted(), None);
            assert_eq!(clock.report().error, Some(e));
        }
    }
    let poller = clock.start_poller(|_| {}).unwrap();
    drop(poller);
    assert!(clock.needs_polling() && clock.report().polls >= 1);
}

/// The thread does not exist in a forked child: to wait for its end would end the child.
#[test]
fn a_forked_child_may_drop_the_clock() {
    let clock = Clock::open(&Spec::Kernel).unwrap();
    let poller = clock.start_poller(|_| {}).unwrap();
    // SAFETY: the child only drops what it holds, reads a clock, and leaves without unwinding.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        drop(poller);
        let _ = clock.read();
        // SAFETY: ends the process.
        unsafe { libc::_exit(7) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the call.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "the child ended with {status:#x}");
    drop(poller);
}

#[test]
fn same_host_and_static_read_the_system_clock() {
    let host = Clock::open(&"same-host".parse().unwrap()).unwrap();
    let fixed = Clock::open(&"static:5ms".parse().unwrap()).unwrap();
    assert!(!host.needs_polling() && !fixed.needs_polling());
    let (a, b, c) = (host.now().unwrap(), fixed.now().unwrap(), host.now().unwrap());
    assert_eq!((a.error_ns(), b.error_ns()), (0, 5_000_000));
    assert!(b.earliest_ns + 5_000_000 >= a.earliest_ns && b.latest_ns - 5_000_000 <= c.latest_ns);
    assert_eq!(fixed.name(), "static:5ms");
    let tomorrow = Timestamp::new(b.latest_ns / 1000 + 86_400_000_000, 0);
    assert_eq!((fixed.after(tomorrow), fixed.before(tomorrow)), (Ok(false), Ok(true)));
    let ts = host.now().unwrap().latest();
    host.wait_until_after(ts).unwrap();
    assert_eq!(host.after(ts), Ok(true));
}

#[test]
fn the_text_of_a_source_says_what_may_be_chosen() {
    for text in [
        "same-host",
        "static:5ms",
        "static:250µs",
        "static:1.5s",
        "kernel",
        "auto",
        "chrony",
        "chrony:/run/x.sock",
        "chrony:127.0.0.1:323",
        "chrony:[::1]:323",
        "clockbound",
        "clockbound:/tmp/shm0",
        "ptp",
        "ptp:/dev/ptp1",
        "ptp:/dev/ptp0,error=2us,tai",
        "ntp:a,b:1123,10.0.0.1",
    ] {
        let spec: Spec = text.parse().unwrap();
        assert_eq!(spec.to_string().parse(), Ok(spec.clone()), "{text}");
    }
    let error = "sundial".parse::<Spec>().unwrap_err();
    for word in ["sundial", "same-host", "static:<error>", "kernel", "chrony", "clockbound", "ptp", "ntp:", "auto"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    for text in ["static", "static:", "static:5", "static:ms", "static:-1ms", "static:1e9s", "static:2h", "static:..5s"]
    {
        assert!(matches!(text.parse::<Spec>(), Err(ParseSpecError::StaticError(_))), "{text}");
    }
    for text in [
        "chrony:",
        "chrony:x",
        "ptp:",
        "ptp:/dev/ptp0,error=0us",
        "ptp:/dev/ptp0,utc",
        "ntp",
        "ntp:",
        "ntp:a,,b",
        "clockbound:x",
    ] {
        assert!(text.parse::<Spec>().is_err(), "{text}");
    }
}
