//! Agreement among clocks of which some may be wrong (Marzullo 1984; RFC 5905 §11.2.1 builds on it).
//!
//! Each server gives an interval. If at most `f` of `n` are wrong, true time lies in at least `n - f` of them; so it lies between
//! the lowest and the highest point that `n - f` intervals share.
//!
//! ```text
//!   a   [-----------]
//!   b        [---------]
//!   c                         [---]     wrong
//!            [======]                   shared by 2 of 3
//! ```
//!
//! **Invariants.** 1. With at most `f` wrong intervals the result contains true time. 2. No result where no point has `n - f`.

use clock::Interval;

/// The agreement of `intervals` if at most `wrong` of them do not contain true time; `None` where even that cannot be.
pub fn agree(intervals: &[Interval], wrong: usize) -> Option<Interval> {
    let needed = intervals.len().checked_sub(wrong).filter(|n| *n > 0)?;
    // At one point, intervals that begin there count before those that end there: touching is sharing.
    let mut edges: Vec<(u64, bool)> =
        intervals.iter().flat_map(|i| [(i.earliest_ns, false), (i.latest_ns, true)]).collect();
    edges.sort_unstable();
    let (mut open, mut lowest, mut highest) = (0usize, None, None);
    for (at, ends) in edges {
        if ends {
            if open >= needed {
                highest = Some(at);
            }
            open -= 1;
        } else {
            open += 1;
            if open >= needed {
                lowest.get_or_insert(at);
            }
        }
    }
    Some(Interval { earliest_ns: lowest?, latest_ns: highest? })
}

/// How many of `n` servers may be wrong for the others to be a majority.
pub const fn tolerable(n: usize) -> usize {
    n.saturating_sub(1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn oracle(intervals: &[Interval], wrong: usize) -> Option<(u64, u64)> {
        let needed = intervals.len() - wrong;
        let good = |t: &u64| intervals.iter().filter(|i| i.earliest_ns <= *t && *t <= i.latest_ns).count() >= needed;
        let all: Vec<u64> = (0..60).filter(good).collect();
        Some((*all.first()?, *all.last()?))
    }

    proptest! {
        #[test]
        fn agreement_is_what_trying_every_point_gives(raw in prop::collection::vec((0..50u64, 0..10u64), 1..8), wrong in 0..4usize) {
            let intervals: Vec<_> = raw.iter().map(|(a, w)| Interval { earliest_ns: *a, latest_ns: a + w }).collect();
            prop_assume!(wrong < intervals.len());
            let got = agree(&intervals, wrong).map(|i| (i.earliest_ns, i.latest_ns));
            prop_assert_eq!(got, oracle(&intervals, wrong));
        }

        #[test]
        fn a_minority_of_liars_never_moves_true_time_out(
            honest in prop::collection::vec((0..100u64, 0..100u64), 2..6),
            liars in prop::collection::vec((0..1000u64, 0..100u64), 0..3),
        ) {
            let truth = 500;
            let mut all: Vec<_> = honest.iter().map(|(a, b)| Interval { earliest_ns: truth - a, latest_ns: truth + b }).collect();
            all.extend(liars.iter().map(|(a, w)| Interval { earliest_ns: *a, latest_ns: a + w }));
            prop_assume!(liars.len() <= tolerable(all.len()));
            let got = agree(&all, tolerable(all.len())).unwrap();
            prop_assert!(got.earliest_ns <= truth && truth <= got.latest_ns);
        }
    }

    #[test]
    fn nobody_agrees_with_nobody() {
        assert_eq!(agree(&[], 0), None);
        let apart = [Interval { earliest_ns: 0, latest_ns: 1 }, Interval { earliest_ns: 5, latest_ns: 6 }];
        assert_eq!(agree(&apart, 0), None);
        assert_eq!((tolerable(1), tolerable(2), tolerable(3), tolerable(5)), (0, 0, 1, 2));
    }
}
