//! Theorem 2 of 002 (section 3.2, equation 4): along any causal chain the physical part of a hybrid timestamp stays within the errors of two clocks of the time at
//! which an event really happened: that of the clock which the part was taken from, when it was taken, and that of the event's own.

use clock::{HybridClock, Interval, Timestamp};
use proptest::prelude::*;

/// An event of a process: by how much time went on before it, how far its clock is off and what error it states, microseconds, and of which earlier event it is told first.
#[derive(Clone, Debug)]
struct Event {
    process: usize,
    after_us: u64,
    offset_us: i64,
    error_us: u64,
    told: Option<usize>,
}

const PROCESSES: usize = 4;
const BEGIN_US: u64 = 1_000_000_000;

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (0..PROCESSES, 1..2_000u64, -1.0..=1.0f64, 0..50_000u64, any::<Option<usize>>());
    let event = event.prop_map(|(process, after_us, share, error_us, told)| {
        // Within its bound, as clocks that keep it are.
        let offset_us = (share * error_us as f64) as i64;
        Event { process, after_us, offset_us, error_us, told }
    });
    prop::collection::vec(event, 1..200)
}

/// Of each event: the time at which it happened, its timestamp, its error, and the error of the clock from which the physical part was taken, then.
struct Stamped {
    real_us: u64,
    at: Timestamp,
    error_us: u64,
    taken_error_us: u64,
}

/// `reads`: what a process takes its clock for, by the time that it shows and the error.
fn stamp(events: &[Event], reads: fn(u64, u64) -> Interval) -> Vec<Stamped> {
    let clocks: Vec<HybridClock> = (0..PROCESSES).map(|_| HybridClock::default()).collect();
    let mut lasts: [Option<usize>; PROCESSES] = [None; PROCESSES];
    let (mut real_us, mut stamped) = (BEGIN_US, Vec::<Stamped>::new());
    for event in events {
        real_us += event.after_us;
        let now = reads(real_us.saturating_add_signed(event.offset_us), event.error_us);
        let clock = &clocks[event.process];
        let told = event.told.and_then(|told| told.checked_rem(stamped.len()));
        if let Some(told) = told {
            clock.observe(stamped[told].at, now, 200_000).expect("nothing is far in the future");
        }
        let at = clock.tick(now, Timestamp::MIN);
        // It was taken here, or it is that of whatever was seen before.
        let taken = match at.physical_us() == now.earliest().physical_us() {
            true => None,
            false => told.into_iter().chain(lasts[event.process]).max_by_key(|seen| stamped[*seen].at),
        };
        let taken_error_us = taken.map_or(event.error_us, |seen| stamped[seen].taken_error_us);
        lasts[event.process] = Some(stamped.len());
        stamped.push(Stamped { real_us, at, error_us: event.error_us, taken_error_us });
    }
    stamped
}

/// As the paper has it: the clock shows one time, in the middle.
fn middle(shown_us: u64, _error_us: u64) -> Interval {
    Interval { earliest_ns: shown_us * 1_000, latest_ns: shown_us * 1_000 }
}

/// As it is here.
fn bounded(shown_us: u64, error_us: u64) -> Interval {
    Interval { earliest_ns: (shown_us - error_us) * 1_000, latest_ns: (shown_us + error_us) * 1_000 }
}

fn off_us(event: &Stamped) -> i64 {
    event.real_us as i64 - event.at.physical_us() as i64
}

proptest! {
    #[test]
    fn theorem_2_of_hybrid_time(events in events()) {
        for event in stamp(&events, middle) {
            let range = -(event.taken_error_us as i64)..=event.error_us as i64;
            prop_assert!(range.contains(&off_us(&event)), "{} is not in {range:?}", off_us(&event));
        }
    }

    /// Taken from the lower bound no timestamp lies in the future, and each at most twice its event's own error in the past: nothing is left of the other clock's.
    #[test]
    fn theorem_2_from_the_lower_bound(events in events()) {
        for event in stamp(&events, bounded) {
            let range = 0..=2 * event.error_us as i64;
            prop_assert!(range.contains(&off_us(&event)), "{} is not in {range:?}", off_us(&event));
        }
    }
}

/// The negative control: of a clock that is further off than it says the theorem says nothing, and its time spreads along the chain.
#[test]
fn theorem_2_needs_bounds_that_hold() {
    let event = |process, offset_us, told: bool| Event {
        process,
        after_us: 10,
        offset_us,
        error_us: 100,
        told: told.then_some(0),
    };
    let stamped = stamp(&[event(0, 5_000, false), event(1, 0, true)], middle);
    assert!(off_us(&stamped[1]) < -(stamped[1].taken_error_us as i64), "{}", off_us(&stamped[1]));
}
