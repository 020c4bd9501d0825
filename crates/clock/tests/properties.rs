//! Properties of timestamps and the hybrid clock, against an oracle that keeps a pair and compares lexicographically.

use clock::{HybridClock, Interval, ParseTimestampError, Timestamp};
use proptest::prelude::*;

/// Algorithm 2 written down dumbly, in 128-bit arithmetic on (physical, logical) pairs.
#[derive(Default)]
struct Oracle {
    last: (u128, u128),
}

impl Oracle {
    fn carry((p, l): (u128, u128)) -> (u128, u128) {
        if l > 4095 { (p + 1, 0) } else { (p, l) }
    }
    fn tick(&mut self, earliest_us: u128, floor: (u128, u128)) -> (u128, u128) {
        let after_last = Self::carry((self.last.0, self.last.1 + 1));
        let after_floor = Self::carry((floor.0, floor.1 + 1));
        self.last = after_last.max(after_floor).max((earliest_us, 0));
        self.last
    }
    fn observe(&mut self, ts: (u128, u128), latest_ns: u128, tolerance_us: u128) -> bool {
        let accepted = ts.0 <= latest_ns.div_ceil(1000) + tolerance_us;
        if accepted {
            self.last = self.last.max(ts);
        }
        accepted
    }
}

fn pair(ts: Timestamp) -> (u128, u128) {
    (ts.physical_us().into(), ts.logical().into())
}

#[derive(Clone, Debug)]
enum Step {
    Tick { mid: u64, error: u64, floor: Timestamp },
    Observe { ts: Timestamp, mid: u64, error: u64, tolerance: u64 },
}

fn timestamps() -> impl Strategy<Value = Timestamp> {
    (0..60u64, prop_oneof![Just(0u16), Just(1), Just(4094), Just(4095), 0..4096u16])
        .prop_map(|(p, l)| Timestamp::new(p, l))
}

fn steps() -> impl Strategy<Value = Step> {
    let (mid, error) = (0..60_000u64, 0..8_000u64);
    prop_oneof![
        (mid.clone(), error.clone(), timestamps()).prop_map(|(mid, error, floor)| Step::Tick { mid, error, floor }),
        (timestamps(), mid, error, 0..10u64).prop_map(|(ts, mid, error, tolerance)| Step::Observe {
            ts,
            mid,
            error,
            tolerance
        }),
    ]
}

fn interval(mid: u64, error: u64) -> Interval {
    Interval { earliest_ns: mid.saturating_sub(error), latest_ns: mid + error }
}

proptest! {
    #[test]
    fn the_clock_does_what_the_oracle_does(story in prop::collection::vec(steps(), 0..60)) {
        let (clock, mut oracle) = (HybridClock::default(), Oracle::default());
        for step in story {
            let before = clock.last();
            match step {
                Step::Tick { mid, error, floor } => {
                    let now = interval(mid, error);
                    let got = clock.tick(now, floor);
                    prop_assert_eq!(pair(got), oracle.tick((now.earliest_ns / 1000).into(), pair(floor)));
                    prop_assert!(got > before && got > floor && got == clock.last());
                    // Ahead of `earliest` only where something seen or asked for is.
                    prop_assert!(now.is_past(got) || got == before.next() || got == floor.next());
                }
                Step::Observe { ts, mid, error, tolerance } => {
                    let now = interval(mid, error);
                    let got = clock.observe(ts, now, tolerance);
                    prop_assert_eq!(got.is_ok(), oracle.observe(pair(ts), now.latest_ns.into(), tolerance.into()));
                    prop_assert_eq!(clock.last(), if got.is_ok() { before.max(ts) } else { before });
                }
            }
        }
    }

    #[test]
    fn text_round_trips(raw in any::<u64>()) {
        let ts = Timestamp::from_u64(raw);
        prop_assert_eq!(ts.to_string().parse(), Ok(ts));
        prop_assert_eq!(Timestamp::new(ts.physical_us(), ts.logical()), ts);
    }

    #[test]
    fn only_the_canonical_text_parses(text in "[0-9+ .-]{0,24}") {
        if let Ok(ts) = text.parse::<Timestamp>() {
            prop_assert_eq!(ts.to_string(), text);
        }
    }

    #[test]
    fn order_is_the_order_of_pairs(a in any::<u64>(), b in any::<u64>()) {
        let (a, b) = (Timestamp::from_u64(a), Timestamp::from_u64(b));
        prop_assert_eq!(a.cmp(&b), pair(a).cmp(&pair(b)));
        prop_assert!(a.next() > a || a == Timestamp::MAX);
        prop_assert!(a.next().prev() == a || a == Timestamp::MAX);
    }

    #[test]
    fn rounding_is_outwards(earliest_ns in any::<u64>(), width in 0..10_000_000u64) {
        let i = Interval { earliest_ns, latest_ns: earliest_ns.saturating_add(width) };
        prop_assert!(u128::from(i.earliest().physical_us()) * 1000 <= i.earliest_ns.into() || i.earliest() == Timestamp::MAX);
        prop_assert!(u128::from(i.latest().physical_us()) * 1000 >= i.latest_ns.into() || i.latest() == Timestamp::MAX);
        prop_assert!(!i.is_future(i.latest()) && !i.is_future(i.earliest()));
        prop_assert!(i.is_past(i.earliest()) || i.earliest() == Timestamp::MAX);
    }
}

#[test]
fn wrong_texts_say_what_is_wrong() {
    for (text, error) in [
        ("", ParseTimestampError::NoDot),
        ("12", ParseTimestampError::NoDot),
        (".0000", ParseTimestampError::Physical),
        ("+1.0000", ParseTimestampError::Physical),
        ("01.0000", ParseTimestampError::Physical),
        ("4503599627370496.0000", ParseTimestampError::PhysicalTooLarge),
        ("99999999999999999999999.0000", ParseTimestampError::PhysicalTooLarge),
        ("1.42", ParseTimestampError::Logical),
        ("1.00420", ParseTimestampError::Logical),
        ("1.4096", ParseTimestampError::LogicalTooLarge),
    ] {
        assert_eq!(text.parse::<Timestamp>(), Err(error), "{text}");
    }
}

#[test]
fn threads_never_share_a_timestamp_and_each_sees_its_own_increase() {
    const PER_THREAD: usize = 20_000;
    let clock = HybridClock::default();
    let run = |seed: u64| {
        let clock = &clock;
        move || {
            let mut mine = Vec::with_capacity(PER_THREAD);
            for i in 0..PER_THREAD as u64 {
                // Clocks of the threads disagree and go backwards.
                let now = interval((i * 37 + seed * 1009) % 5_000_000, seed * 13);
                if i % 97 == 0 {
                    clock.ratchet(Timestamp::new(i, 4095));
                }
                mine.push(clock.tick(now, Timestamp::MIN));
            }
            mine
        }
    };
    let mut all: Vec<Vec<Timestamp>> = std::thread::scope(|s| {
        let handles: Vec<_> = (0..4).map(|seed| s.spawn(run(seed))).collect();
        handles.into_iter().map(|h| h.join().unwrap()).collect()
    });
    assert!(all.iter().all(|mine| mine.windows(2).all(|w| w[0] < w[1])));
    let mut all: Vec<_> = all.drain(..).flatten().collect();
    all.sort_unstable();
    assert!(all.windows(2).all(|w| w[0] < w[1]), "two ticks returned the same timestamp");
    assert_eq!(clock.last(), *all.last().unwrap());
}

#[test]
fn the_end_of_time_is_a_wall_not_a_wrap() {
    let now = Interval { earliest_ns: u64::MAX, latest_ns: u64::MAX };
    let clock = HybridClock::new(Timestamp::MAX);
    assert_eq!(clock.tick(now, Timestamp::MAX), Timestamp::MAX);
    assert_eq!(clock.observe(Timestamp::MAX, now, u64::MAX), Ok(()));
    assert_eq!(Timestamp::new(u64::MAX, 0), Timestamp::MAX);
}
