//! Which thresholds of collection a retention comes to.

use clock::Timestamp;
use sql::transaction::{KEPT_INDEXES_MAX, Retentions};
use store::versions::{APART_MAX, Apart, Threshold, class_of};

// With what is shared, there is room for all that SQL takes.
const _: () = assert!(KEPT_INDEXES_MAX + 16 <= APART_MAX);

/// One table that is kept for less than this does not make the whole node write its versions out more often.
const SHORT_SECONDS: u64 = 20;

/// The shortest of all retentions, seconds: how often a threshold is worth being raised goes by it.
pub(crate) fn shortest_seconds(kept: &Retentions, common_seconds: u64) -> u64 {
    kept.indexes.iter().map(|(_, seconds)| SHORT_SECONDS.max(*seconds)).fold(common_seconds, Ord::min)
}

/// The thresholds at `now_us`, where nothing is kept for more than `seconds_max`.
pub(crate) fn thresholds(kept: &Retentions, common_seconds: u64, seconds_max: u64, now_us: u64) -> Threshold {
    let threshold = |seconds: u64| {
        let us = seconds.min(seconds_max).saturating_mul(1_000_000);
        Timestamp::new(now_us.saturating_sub(us), 0)
    };
    let longest = kept.indexes.iter().map(|(_, seconds)| *seconds).fold(common_seconds, Ord::max);
    let shared = kept.shared.iter().filter(|_| longest > common_seconds).map(|index| (*index, longest));
    let all = shared.chain(kept.indexes.iter().copied());
    let apart = all.map(|(index, seconds)| Apart {
        index: index.to_be_bytes(),
        class: class_of(seconds),
        threshold: threshold(seconds),
    });
    Threshold { common: threshold(common_seconds), apart: apart.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_kept_longest() {
        let seconds = |kept: &Retentions, max| {
            let found = thresholds(kept, 300, max, 10_000_000_000);
            let ago = |ts: Timestamp| (10_000_000_000 - ts.physical_us()) / 1_000_000;
            let apart = found.apart.iter().map(|a| (u32::from_be_bytes(a.index), ago(a.threshold)));
            (ago(found.common), apart.collect::<Vec<_>>())
        };
        let longer = Retentions { indexes: vec![(100, 3600), (101, 10)], shared: vec![1, 2] };
        assert_eq!(seconds(&longer, u64::MAX), (300, vec![(1, 3600), (2, 3600), (100, 3600), (101, 10)]));
        assert_eq!(seconds(&longer, 20), (20, vec![(1, 20), (2, 20), (100, 20), (101, 10)]), "of a full disk");
        let shorter = Retentions { indexes: vec![(101, 10)], shared: vec![1, 2] };
        assert_eq!(seconds(&shorter, u64::MAX), (300, vec![(101, 10)]));
        assert_eq!((shortest_seconds(&longer, 300), shortest_seconds(&Retentions::default(), 10)), (20, 10));
    }
}
