//! The tracker against a small world in which true time is known: what is published must contain it, or say that it is not sure.

use clock::{Interval, Reading, Status};
use clocksource::{Anchor, Event, Leap, Measurement, Memory, Moment, ProbeError, Tracker};

const S: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
/// Noon of 2026-06-30, UTC.
const NOON: i64 = 1_782_820_800 * S;

/// True time and a machine's clocks, nanoseconds. Every change goes through `pass`, `step` or `sleep`.
struct World {
    truth: i64,
    boot: i64,
    mono: i64,
    real: i64,
    raw: i64,
    steering: Option<i64>,
    steady: i64,
    updated: i64,
    follows: bool,
    remembers: Memory,
    leap: Leap,
    tracker: Tracker,
    events: Vec<Event>,
    anchor: Anchor,
}

impl World {
    fn at(truth: i64) -> Self {
        let (tracker, events, anchor) = (Tracker::default(), Vec::new(), Anchor::UNKNOWN);
        World {
            truth,
            boot: 500 * S,
            mono: 400 * S,
            real: truth,
            raw: 300 * S,
            steering: Some(0),
            steady: 0,
            updated: 500 * S,
            follows: true,
            remembers: Memory::Unstepped,
            leap: Leap::None,
            tracker,
            events,
            anchor,
        }
    }
    /// True time passes; the machine's clocks run `ppm` fast.
    fn pass(&mut self, ns: i64, ppm: i64) {
        self.pass_slewed(ns, ppm, 0);
    }
    /// So much of it is the oscillator's fault, and so much a slew.
    fn pass_slewed(&mut self, ns: i64, ppm: i64, slew_ppm: i64) {
        let local = ns + ns / 1_000_000 * (ppm + slew_ppm);
        self.truth += ns;
        self.raw += ns + ns / 1_000_000 * ppm;
        (self.boot, self.mono, self.real) = (self.boot + local, self.mono + local, self.real + local);
    }
    /// The machine sleeps; the time it believes to have slept is off by `wrong` nanoseconds.
    fn sleep(&mut self, ns: i64, wrong: i64) {
        self.truth += ns;
        (self.boot, self.real) = (self.boot + ns + wrong, self.real + ns + wrong);
    }
    fn moment(&self) -> Moment {
        Moment {
            boot_ns: self.boot as u64,
            mono_ns: self.mono as u64,
            real_ns: self.real as u64,
            raw_ns: self.raw as u64,
            width_ns: 100,
            steering_ppb: self.steering,
        }
    }
    /// A poll that finds a source with this error; `fresh` says whether it has just heard from its reference.
    fn poll(&mut self, error: i64, fresh: bool) -> Reading {
        if fresh {
            self.updated = self.boot;
        }
        self.poll_as(self.truth, error, Status::Synchronized)
    }
    fn poll_as(&mut self, middle: i64, error: i64, status: Status) -> Reading {
        let answer = Measurement {
            moment: self.moment(),
            interval: Interval { earliest_ns: (middle - error) as u64, latest_ns: (middle + error) as u64 },
            updated_ns: self.updated as u64,
            max_drift_ppb: 50_000,
            steady_ppb: Some(self.steady),
            follows_slews: self.follows,
            remembers: self.remembers,
            status,
            leap: self.leap,
            detail: "test".into(),
        };
        self.anchor = self.tracker.step(self.moment(), Ok(answer), &mut self.events);
        self.read()
    }
    fn poll_fails(&mut self) -> Reading {
        let error = ProbeError::Unsynchronised { source_name: "test", reason: "gone".into() };
        self.anchor = self.tracker.step(self.moment(), Err(error), &mut self.events);
        self.read()
    }
    fn poll_finds_nobody(&mut self) -> Reading {
        let error = std::io::ErrorKind::ConnectionRefused.into();
        let error = ProbeError::Unreachable { source_name: "test", place: "here".into(), error, advice: "Start it" };
        self.anchor = self.tracker.step(self.moment(), Err(error), &mut self.events);
        self.read()
    }
    fn read(&self) -> Reading {
        let was_set = |ahead_ns| self.real - self.boot != ahead_ns;
        self.anchor.read(self.boot as u64, || self.raw as u64, || self.boot - self.mono, was_set)
    }
    fn assert_contains(&self) {
        let i = self.read().interval;
        assert!((i.earliest_ns..=i.latest_ns).contains(&(self.truth as u64)), "{} outside {i:?}", self.truth);
    }
    fn saw(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(wanted)
    }
}

/// A busy machine: the poller was not woken yet, and the daemon has noticed the step and slews already.
#[test]
fn a_slew_behind_a_step_that_no_poll_has_seen_is_inside_the_bound() {
    for slew_ppm in [100_000i64, -100_000] {
        let mut w = World::at(1_000_000 * S);
        assert_eq!(w.poll(MS / 10, true).status, Status::Synchronized);
        w.pass(S / 10, 0);
        w.real -= 5 * MS * slew_ppm.signum();
        w.pass_slewed(17 * MS, 0, slew_ppm);
        assert_eq!(w.read().status, Status::FreeRunning);
        w.assert_contains();
        // The control: nobody looks.
        w.anchor.ahead_ns = None;
        let unaware = w.read();
        assert_eq!(unaware.status, Status::Synchronized);
        assert!(unaware.interval.error_ns() < MS as u64, "the test shows nothing");
        assert!(!(unaware.interval.earliest_ns..=unaware.interval.latest_ns).contains(&(w.truth as u64)));
    }
}

#[test]
fn before_the_first_answer_nothing_is_known() {
    let mut w = World::at(NOON);
    assert_eq!(w.poll_fails().status, Status::Unknown);
    assert_eq!(w.read().trusted(), None);
    assert_eq!(w.poll(MS, true).status, Status::Synchronized);
    assert!(w.saw(|e| matches!(e, Event::Status { from: Status::Unknown, to: Status::Synchronized, .. })));
}

#[test]
fn between_polls_the_bound_contains_a_clock_that_drifts_as_much_as_it_may() {
    for ppm in [-49, 0, 49] {
        let mut w = World::at(NOON);
        for _ in 0..20 {
            assert_eq!(w.poll(100, true).status, Status::Synchronized);
            for _ in 0..10 {
                w.pass(S, ppm);
                w.assert_contains();
            }
        }
    }
}

#[test]
fn a_dead_daemon_lets_the_bound_grow_until_it_is_void_and_comes_back() {
    let mut w = World::at(NOON);
    let first = w.poll(MS, true).interval.error_ns();
    w.pass(100 * S, 40);
    let later = w.poll_fails();
    assert_eq!(later.status, Status::FreeRunning);
    assert!(later.interval.error_ns() >= first + 5 * MS as u64, "100 s at 50 ppm are 5 ms");
    w.assert_contains();
    w.pass(901 * S, 40);
    assert_eq!(w.read().status, Status::Unknown, "void, also when the poller is dead too");
    assert_eq!(w.poll_fails().trusted(), None);
    assert_eq!(w.poll(MS, true).status, Status::Synchronized);
    assert!(w.read().interval.error_ns() <= first + 10);
}

/// chronyd, killed while it takes 40 ms off a clock that is fast: nobody ends the slew.
#[test]
fn a_slew_that_a_killed_daemon_left_behind_stays_inside_the_bound() {
    for (behind, steering, ppm) in [(-40 * MS, -83_333_000, -83_333), (40 * MS, 83_333_000, 83_333)] {
        let mut w = World::at(NOON);
        (w.real, w.steady) = (w.truth - behind, -20_000);
        w.steering = Some(steering + w.steady);
        assert_eq!(w.poll_as(w.real, behind.abs() + MS, Status::Synchronized).status, Status::Synchronized);
        for _ in 0..200 {
            w.pass_slewed(S / 20, 20, ppm - 20);
            w.assert_contains();
            assert_eq!(w.poll_fails().status, Status::FreeRunning);
            w.assert_contains();
        }
        // Somebody sees to it: from here on it is only the oscillator that drifts.
        w.steering = Some(w.steady);
        let wide = w.poll_fails().interval.error_ns();
        w.pass_slewed(S, 49, -20);
        w.assert_contains();
        assert!(w.poll_fails().interval.error_ns() < wide + 60_000, "it still opens at the rate of the slew");
    }
}

#[test]
fn a_slew_that_begins_after_the_daemon_died_is_seen_at_the_next_poll() {
    for ppm in [-100_000, -400, 400, 100_000] {
        let mut w = World::at(NOON);
        w.poll(MS, true);
        w.pass(10 * S, 30);
        w.poll_fails();
        // It began right after that poll.
        w.pass_slewed(S / 4, 30, ppm);
        w.steering = Some(ppm * 1000);
        for _ in 0..40 {
            w.poll_fails();
            w.assert_contains();
            w.pass_slewed(S / 4, 30, ppm);
            w.assert_contains();
        }
    }
}

#[test]
fn a_daemon_that_polls_rarely_stays_synchronized() {
    let mut w = World::at(NOON);
    w.poll(MS, true);
    for _ in 0..1030 {
        w.pass(S, 40);
        assert_eq!(w.poll(2 * MS, false).status, Status::Synchronized, "its last news are old, its answers are not");
    }
}

#[test]
fn a_step_of_the_system_clock_does_not_move_the_interval() {
    for step in [-5 * S, 3 * MS, 7200 * S] {
        let mut w = World::at(NOON);
        w.poll(MS, true);
        w.pass(S, 10);
        w.real += step;
        w.assert_contains();
        // The daemon has not noticed yet: what it says of the stepped clock is not believed.
        let wrong = w.poll_as(w.truth + step, MS, Status::Synchronized);
        assert_eq!(wrong.status, Status::FreeRunning);
        w.assert_contains();
        assert!(w.saw(|e| matches!(e, Event::Stepped(by) if (by - step).abs() < 2_000)));
        w.pass(S, 10);
        assert_eq!(w.poll(MS, true).status, Status::Synchronized, "the daemon has heard from its reference since");
        w.assert_contains();
    }
}

/// Set back, the clock makes the daemon's last word look younger than the step. It stays the same word, however often it is repeated.
#[test]
fn after_a_step_old_news_stay_old_however_often_they_are_told() {
    let mut w = World::at(NOON);
    w.poll(MS, true);
    w.pass(30 * S, 10);
    w.real -= 9 * S;
    for _ in 0..300 {
        let reading = w.poll_as(w.real, MS, Status::Synchronized);
        assert_eq!(reading.status, Status::FreeRunning);
        w.assert_contains();
        w.pass(S / 4, 10);
    }
}

/// A source that mixes samples from before and after a step is wrong by up to that, and does not know it.
#[test]
fn after_a_step_the_news_of_a_source_that_mixes_are_not_believed_alone() {
    // The step is smaller than the bound: nothing contradicts anything.
    let mut w = World::at(NOON);
    w.poll(4 * MS, true);
    w.pass(S, 0);
    w.real -= 3 * MS;
    w.poll_fails();
    for _ in 0..Tracker::CONSISTENT_AFTER {
        w.pass(S, 0);
        w.updated = w.boot;
        w.poll_as(w.truth - 3 * MS, MS / 10, Status::Synchronized);
        w.assert_contains();
    }
    w.pass(S, 0);
    assert!(w.poll(MS / 10, true).interval.error_ns() < 2 * MS as u64 / 10, "in the end it is");

    // Greater: it contradicts what was known, which holds; it is back as soon as it meets that again.
    let mut w = World::at(NOON);
    w.poll(MS, true);
    w.pass(S, 0);
    w.real -= 9 * S;
    w.poll_fails();
    for wrong in [8 * S, 5 * S, 300 * MS] {
        for fresh in [true, false, false] {
            w.pass(S / 4, 0);
            w.updated = if fresh { w.boot } else { w.updated };
            assert_eq!(w.poll_as(w.truth - wrong, MS, Status::Synchronized).trusted(), None);
        }
    }
    assert_eq!(w.events.iter().filter(|e| matches!(e, Event::Contradiction(_))).count(), 1, "said once");
    w.pass(S / 4, 0);
    assert_eq!(w.poll(MS, true).status, Status::Synchronized);
    w.assert_contains();
}

/// Its bound does not say that it mixes, and it may go on for long: as long as it keeps samples. What it said meanwhile is not kept.
#[test]
fn after_a_step_the_anchor_from_before_is_covered_until_the_source_has_forgotten() {
    let wrong = 3 * MS;
    let quiet = |w: &mut World| {
        w.poll(MS / 10, true);
        w.pass(S, 0);
        w.real -= wrong;
        w.poll_fails();
    };
    // It says how far back it goes: the samples of a clock that was set back look younger by that.
    let mut w = World::at(NOON);
    quiet(&mut w);
    let stepped = w.boot;
    let hear = |w: &mut World, off: i64, oldest: i64| {
        w.pass(S, 0);
        (w.updated, w.remembers) = (w.boot, Memory::Since(oldest as u64));
        w.poll_as(w.truth - off, 4 * MS, Status::Synchronized)
    };
    for news in 0..40 {
        hear(&mut w, wrong, stepped + wrong - news % 2);
        w.assert_contains();
        assert!(w.read().interval.error_ns() < 5 * MS as u64, "what it said before does not add up");
    }
    for _ in 1..Tracker::CONSISTENT_AFTER {
        hear(&mut w, 4 * MS, stepped + wrong + 1);
        w.assert_contains();
    }
    // One more report with something old in it, and it begins anew.
    hear(&mut w, 4 * MS, stepped);
    for _ in 0..Tracker::CONSISTENT_AFTER {
        assert!(w.anchor.bare.is_some());
        hear(&mut w, 4 * MS, stepped + wrong + 1);
    }
    hear(&mut w, 0, stepped + S);
    assert_eq!(w.anchor.bare, None, "in the end it is believed alone");

    // It does not say: as many news as it may keep, counted from the last step.
    let mut w = World::at(NOON);
    quiet(&mut w);
    w.remembers = Memory::News(64);
    for covered in [30, 64] {
        for _ in 0..covered {
            w.pass(S, 0);
            w.updated = w.boot;
            w.poll_as(w.truth - wrong, 4 * MS, Status::Synchronized);
            w.assert_contains();
        }
        w.real += i64::from(covered == 30) * MS;
        if covered == 30 {
            w.poll_fails();
        }
    }
    w.pass(S, 0);
    assert!(w.poll(MS / 10, true).interval.error_ns() < 2 * MS as u64 / 10 && w.anchor.bare.is_none());
}

/// A new process, which never heard of its source: that hung while the clock was set, and mixes. One that had said that it knows nothing has nothing to mix.
#[test]
fn a_source_that_was_silent_during_a_step_is_not_believed_at_once() {
    let mut w = World::at(NOON);
    w.poll_finds_nobody();
    w.real -= S;
    w.poll_finds_nobody();
    let mut wrong = S / 16;
    for _ in 0..Tracker::CONSISTENT_AFTER {
        w.pass(S, 0);
        w.updated = w.boot;
        assert_eq!(w.poll_as(w.truth - wrong, MS, Status::Synchronized).trusted(), None);
        wrong /= 16;
    }
    for _ in 0..Tracker::CONSISTENT_AFTER {
        w.pass(S, 0);
        w.poll(MS, true);
    }
    assert_eq!(w.read().status, Status::Synchronized);
    w.assert_contains();

    let mut w = World::at(NOON);
    w.poll_fails();
    w.real -= S;
    w.poll_fails();
    w.pass(S, 0);
    assert_eq!(w.poll(MS, true).status, Status::Synchronized);
}

/// A second step finds an anchor that is made of such a mixture: the source is not held to that.
#[test]
fn an_anchor_on_probation_says_nothing_of_what_comes_after_a_step() {
    let mut w = World::at(NOON);
    w.poll_finds_nobody();
    w.real -= 2 * S;
    w.poll_finds_nobody();
    w.pass(S, 0);
    w.updated = w.boot;
    assert_eq!(w.poll_as(w.truth - S / 8, MS, Status::Synchronized).trusted(), None);
    w.real -= S / 10;
    w.poll_finds_nobody();
    for _ in 0..2 * Tracker::CONSISTENT_AFTER {
        w.pass(S, 0);
        w.poll(MS, true);
    }
    assert_eq!(w.read().status, Status::Synchronized);
    w.assert_contains();
}

/// A source may repeat what contradicted its former word a thousand times in a second: that is one word.
#[test]
fn a_contradiction_is_outlived_by_news_not_by_polls() {
    let mut w = World::at(NOON);
    w.poll(MS, true);
    w.truth += 2 * S;
    w.pass(MS, 0);
    assert_eq!(w.poll(MS, true).status, Status::Disrupted);
    for _ in 0..1000 {
        w.pass(MS, 0);
        assert_eq!(w.poll(MS, false).status, Status::Disrupted);
    }
    let news = (1..20).find(|_| {
        w.pass(S, 0);
        w.poll(MS, true).status == Status::Synchronized
    });
    assert_eq!(news, Some(Tracker::CONSISTENT_AFTER as i32 - 1));
}

/// `ntp` beside a chronyd, and `chrony` after a step: the interval floats, and somebody slews the clock that readers go by.
#[test]
fn a_slew_of_somebody_elses_does_not_carry_a_floating_interval_away() {
    for slew in [-83_333, 400, 83_333] {
        let mut w = World::at(NOON);
        w.follows = false;
        for _ in 0..40 {
            assert_eq!(w.poll(MS / 10, true).status, Status::Synchronized);
            // It begins right after the poll and ends right before the next.
            for _ in 0..5 {
                w.pass_slewed(S / 20, 40, slew);
                w.assert_contains();
                assert!(w.read().interval.error_ns() < 2 * MS as u64 / 10);
            }
        }
        // The daemon dies after a step: from then on the anchor floats.
        w.follows = true;
        w.poll(MS / 10, true);
        w.real -= 3 * S;
        w.poll_fails();
        for _ in 0..40 {
            w.pass_slewed(S / 4, 40, slew);
            w.assert_contains();
            assert_eq!(w.poll_fails().status, Status::FreeRunning);
            w.assert_contains();
        }
    }
}

#[test]
fn a_sleep_shows_over_the_bare_oscillator_too() {
    let mut w = World::at(NOON);
    w.follows = false;
    w.poll(MS, true);
    w.pass_slewed(S / 10, 40, -83_333);
    assert_eq!(w.read().status, Status::Synchronized);
    w.sleep(S / 4, 0);
    assert_eq!(w.read().status, Status::Disrupted, "the oscillator did not count it, and the poller comes later");
}

/// Where the kernel does not say how it steers, slews are taken to go on all the time: nothing moves with them, and it is said.
#[test]
fn where_the_steering_is_unknown_slews_are_harmless_and_it_is_said_once() {
    let mut w = World::at(NOON);
    w.steering = None;
    for _ in 0..20 {
        assert_eq!(w.poll(MS / 10, true).status, Status::Synchronized);
        w.pass_slewed(S / 4, 40, 83_333);
        w.assert_contains();
    }
    assert_eq!(w.events.iter().filter(|e| matches!(e, Event::SteeringUnknown)).count(), 1);
}

#[test]
fn after_a_suspend_nothing_is_trusted_until_the_source_has_news() {
    let mut w = World::at(NOON);
    w.poll(MS, true);
    w.pass(S, 0);
    assert_eq!(w.read().status, Status::Synchronized, "the poller missed a turn or two, and nothing happened");
    w.sleep(S, -700 * MS);
    assert_eq!(w.read().status, Status::Disrupted, "readers do not wait for the poller to see it");
    assert_eq!(w.poll(MS, false).status, Status::Disrupted);
    assert!(w.saw(|e| matches!(e, Event::Suspended(_))));
    w.pass(2 * S, 0);
    assert_eq!(w.poll_fails().status, Status::Disrupted);
    assert_eq!(w.poll(MS, true).status, Status::Synchronized);
    w.assert_contains();
    assert!(!w.saw(|e| matches!(e, Event::Contradiction(_))));
    w.sleep(3600 * S, -700 * MS);
    assert_eq!(w.read().status, Status::Unknown, "the anchor expired during a long sleep, before any poll");
    assert_eq!(w.poll(MS, false).trusted(), None);
}

#[test]
fn a_machine_that_was_moved_waits_for_news_of_its_source() {
    let mut w = World::at(NOON);
    w.poll(MS, true);
    w.tracker.disrupt(w.moment(), &mut w.events);
    w.pass(S / 4, 0);
    assert_eq!(w.poll(MS, false).status, Status::Disrupted);
    w.truth += 30 * S;
    assert_eq!(w.poll(MS, true).status, Status::Synchronized, "whatever the bound was before");
    assert!(w.saw(|e| *e == Event::Moved) && !w.saw(|e| matches!(e, Event::Contradiction(_))));
}

#[test]
fn a_machine_that_was_frozen_unnoticed_shows_as_a_contradiction() {
    let mut w = World::at(NOON);
    w.poll(MS, true);
    // A hypervisor stopped every clock of the guest for two seconds.
    w.truth += 2 * S;
    w.pass(MS, 0);
    assert_eq!(w.poll(MS, true).status, Status::Disrupted);
    assert!(w.saw(|e| matches!(e, Event::Contradiction(gap) if *gap > 1_900 * MS as u64)));
    let polls = (1..20).find(|_| {
        w.pass(S, 0);
        w.poll(MS, true).status == Status::Synchronized
    });
    assert_eq!(polls, Some(clocksource::Tracker::CONSISTENT_AFTER as i32 - 1));
    w.assert_contains();
}

/// A daemon whose own statistics are wrong: it claims microseconds and is off by more with every answer. Each answer alone looks good.
#[test]
fn a_source_that_lies_within_its_own_statistics_is_not_trusted_while_it_lies() {
    let mut w = World::at(NOON);
    assert_eq!(w.poll(10_000, true).status, Status::Synchronized);
    for n in 1..=20 {
        w.pass(S, 0);
        w.updated = w.boot;
        let reading = w.poll_as(w.truth + n * 5 * MS, 10_000, Status::Synchronized);
        assert_eq!((reading.status, reading.trusted()), (Status::Disrupted, None), "answer {n}");
    }
    let contradictions = w.events.iter().filter(|e| matches!(e, Event::Contradiction(gap) if *gap > 4 * MS as u64));
    assert_eq!(contradictions.count(), 20);
    // It is honest again: its return is one more contradiction, then it must be consistent for a while.
    let honest = (0..50).map(|_| {
        w.pass(S, 0);
        w.poll(10_000, true).status
    });
    let trusted_after = honest.take_while(|s| *s == Status::Disrupted).count();
    assert_eq!(trusted_after, clocksource::Tracker::CONSISTENT_AFTER as usize - 1);
    w.assert_contains();
}

#[test]
fn a_source_that_loses_its_reference_never_narrows_the_bound() {
    let mut w = World::at(NOON);
    w.poll(MS, true);
    w.pass(100 * S, 30);
    let before = w.poll_fails().interval;
    let after = w.poll_as(w.truth, 10, Status::FreeRunning).interval;
    assert!(after.earliest_ns <= before.earliest_ns && after.latest_ns >= before.latest_ns);
    assert_eq!(w.read().status, Status::FreeRunning);
}

#[test]
fn a_leap_second_widens_the_bound_around_it_and_order_holds() {
    for (leap, by) in [(Leap::Insert, -S), (Leap::Delete, S)] {
        let mut w = World::at(NOON + 12 * 3600 * S - 120 * S);
        let midnight = NOON + 12 * 3600 * S;
        w.leap = leap;
        let hybrid = clock::HybridClock::default();
        let (mut last, mut leapt, mut widest) = (clock::Timestamp::MIN, false, 0);
        for _ in 0..1200 {
            w.pass(S / 4, 20);
            if !leapt && w.truth >= midnight {
                // Unix time repeats or skips a second, and the kernel follows.
                (w.truth, w.real, leapt, w.leap) = (w.truth + by, w.real + by, true, Leap::None);
                w.assert_contains();
            }
            assert_eq!(w.poll(MS, true).status, Status::Synchronized);
            w.assert_contains();
            widest = widest.max(w.read().interval.error_ns());
            let ts = hybrid.tick(w.read().interval, clock::Timestamp::MIN);
            assert!(ts > last);
            last = ts;
        }
        assert!(widest >= (S / 2) as u64, "the bound was widened");
        assert!(w.read().interval.error_ns() < 2 * MS as u64, "and is narrow again");
        assert!(!w.saw(|e| matches!(e, Event::Stepped(_) | Event::Contradiction(_))), "{:?}", w.events);
        assert!(w.saw(|e| *e == Event::Leap(Leap::None)));
    }
}

/// The daemon dies before the leap second that it announced: nobody says whether it took place, so both names are covered.
#[test]
fn a_leap_second_after_the_daemon_died_stays_inside_the_bound() {
    for (leap, by) in [(Leap::Insert, -S), (Leap::Delete, S)] {
        for kernel_leaps in [true, false] {
            let midnight = NOON + 12 * 3600 * S;
            let mut w = World::at(midnight - 60 * S);
            w.leap = leap;
            w.poll(MS, true);
            let mut leapt = false;
            for _ in 0..1200 {
                w.pass(S / 4, 20);
                if !leapt && w.truth >= midnight {
                    (w.truth, leapt) = (w.truth + by, true);
                    w.real += if kernel_leaps { by } else { 0 };
                }
                w.poll_fails();
                w.assert_contains();
            }
        }
    }
}

/// Somebody sets the clock by less than a millisecond between the two polls around the leap second: the daemon does not know yet.
#[test]
fn a_step_together_with_a_leap_second_is_still_a_step() {
    let midnight = NOON + 12 * 3600 * S;
    for (leap, by) in [(Leap::Insert, -S), (Leap::Delete, S)] {
        let mut w = World::at(midnight - S / 10);
        w.leap = leap;
        w.poll(MS / 100, true);
        w.pass(S / 4, 0);
        (w.truth, w.real) = (w.truth + by, w.real + by - 770_000);
        // What the daemon last heard is from before: it adds nothing to the clock.
        w.poll_as(w.real, MS / 100, Status::Synchronized);
        w.assert_contains();
        assert!(w.saw(|e| matches!(e, Event::Stepped(_))), "{:?}", w.events);
    }
}

/// The system clock is ahead, so the kernel takes the leap second early; and it is its midnight that counts for nothing.
#[test]
fn a_kernel_that_leaps_early_stays_inside_the_bound() {
    let midnight = NOON + 12 * 3600 * S;
    let mut w = World::at(midnight - 2 * S);
    w.real += 700 * MS;
    w.leap = Leap::Insert;
    for tick in 0..400 {
        w.pass(S / 100, 0);
        if tick == 130 {
            w.real -= S;
        }
        if tick == 200 {
            w.truth -= S;
        }
        // The daemon adds what it knew before to a clock that has leapt.
        let believed = w.real - 700 * MS;
        w.updated = w.boot;
        w.poll_as(believed, MS, Status::Synchronized);
        w.assert_contains();
    }
}

#[test]
fn a_leap_second_that_the_daemon_slews_away_is_inside_the_bound() {
    let midnight = NOON + 12 * 3600 * S;
    let mut w = World::at(midnight - 60 * S);
    w.leap = Leap::Insert;
    let mut leapt = false;
    for _ in 0..400 {
        w.pass(S / 4, 0);
        if !leapt && w.truth >= midnight {
            (w.truth, leapt, w.leap) = (w.truth - S, true, Leap::None);
        }
        assert_eq!(w.poll(MS, true).status, Status::Synchronized);
        w.assert_contains();
    }
}

#[test]
fn good_news_wake_nobody() {
    let mut w = World::at(NOON);
    w.poll(MS, true);
    assert!(w.events.iter().all(Event::is_good_news), "{:?}", w.events);
    w.events.clear();
    w.poll_fails();
    w.real += 3 * S;
    w.poll_fails();
    assert!(w.events.len() == 2 && !w.events.iter().any(Event::is_good_news), "{:?}", w.events);
    w.events.clear();
    w.pass(S, 0);
    w.poll(MS, true);
    assert!(w.events.len() == 1 && w.events.iter().all(Event::is_good_news), "{:?}", w.events);
}
