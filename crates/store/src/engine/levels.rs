//! Which level fjall's strategy takes first, where space is given back.
//!
//! Problem: it takes the level that is heaviest beside what it is to hold, and where that one can be merged with nothing (one wide table, whose window of
//! the level below would be too large) it takes none: what waits in level 0 waits for good, and deletions with it. Idea: what levels are to hold is
//! ours to say, for each merge anew.

/// How fjall's strategy weighs level 0, which it measures by its tables: at least.
fn weight(tables: usize) -> f64 {
    tables.max(2) as f64
}

/// What is nearer to each other than this share cannot be told apart by ratios: the strategy multiplies up to seven of them, of 24 bits each.
const APART: f64 = 0.01;

/// A level that holds so much more than the next that fjall's strategy would take it before level 0 ([`taking_in`]), and cannot merge it: a few wide
/// tables above a few narrow ones.
pub(super) fn swollen(tables: usize, sizes: &[u64]) -> Option<usize> {
    let is_swollen = |pair: &[u64]| pair[1] > 0 && pair[0] as f64 / weight(tables) >= pair[1] as f64 * (1.0 - APART);
    sizes.windows(2).skip(1).position(is_swollen).map(|above| above + 1)
}

/// The ratios of levels with which fjall's strategy takes the `tables` of level 0 before anything else; where there is one, into an empty level
/// above those that hold something: that takes room for themselves, and not for what they overlap. `sizes` are those of all levels, in bytes, and
/// `base_bytes` is what the strategy's first level is to hold.
///
/// The strategy counts levels from the uppermost that holds something, or from the one above it if all hold more than they are to. Then it takes the
/// level that holds most beside what it is to hold; of level 0 it counts the tables instead.
pub(super) fn taking_in(tables: usize, sizes: &[u64], base_bytes: u64) -> Vec<f32> {
    let Some(top) = (1..sizes.len()).find(|level| sizes[*level] > 0) else { return Vec::from([1.0]) };
    let size = |level: usize| sizes.get(level).copied().unwrap_or(0) as f64;
    let (base, score) = (base_bytes as f64, weight(tables));
    let is_above = top > 1 && size(top) > base;
    let target = |count: usize| {
        // Who is counted so before there is one more level, and after that.
        let (before, after) = (size(top + count - 1), size(top + count - 2));
        match is_above {
            true if before > 0.0 => f64::midpoint(after / score, before),
            true => 2.0 * after,
            false => 2.0 * before,
        }
    };
    let targets: Vec<f64> = (2..=sizes.len()).map(|count| target(count).max(1.0)).collect();
    let before = std::iter::once(&base).chain(&targets);
    targets.iter().zip(before).map(|(target, before)| (target / before) as f32).collect()
}

/// More than any level holds, in bytes.
const ENOUGH: f64 = 1e15;
/// So much heavier than anything else is the level that is to be taken.
const HEAVIER: f64 = 1e6;

/// Levels that can come down, the lowest first.
pub(super) fn from_below(sizes: &[u64]) -> impl Iterator<Item = usize> {
    (1..sizes.len().saturating_sub(1)).rev().filter(|level| sizes[*level] > 0)
}

/// The ratios of levels with which fjall's strategy takes tables of this level into the next one, where one below it holds something. Of the uppermost of
/// those that hold something `base_bytes` is to be less than it holds ([`base_below`]).
///
/// One that weighs most and can be merged with nothing kept all above it where it was, deletions of nearly everything among that, and a full disk full:
/// a level is to be asked for by itself. (No target is less than a byte: a level of fewer bytes than the uppermost holds times its base is passed over
/// for that one. No table is as small as that.)
pub(super) fn taking_down(level: usize, sizes: &[u64], base_bytes: u64) -> Vec<f32> {
    let Some(top) = (1..sizes.len()).find(|level| sizes[*level] > 0) else { return Vec::from([1.0]) };
    let target = |count: usize| match top + count - 1 == level {
        true => (sizes[level] as f64 / HEAVIER).max(1.0),
        false => ENOUGH,
    };
    let targets: Vec<f64> = (2..=sizes.len()).map(target).collect();
    let before = std::iter::once(base_bytes as f64).chain(targets.iter().copied());
    targets.iter().zip(before).map(|(target, before)| (target / before) as f32).collect()
}

/// What the strategy's first level is to hold, where it is to take a level that holds `bytes` rather than the `tables` of level 0: at most `base_bytes`.
pub(super) fn base_below(bytes: u64, tables: usize, base_bytes: u64) -> u64 {
    base_bytes.min(bytes.saturating_sub(1) / (tables as u64 + 1)).max(1)
}

/// Tables that level 0 comes into, beside those of the level that its entries hide: so many at least, unless they would be smaller than this. One that
/// spans everything could be merged with nothing but all of the last level.
const PARTS: u64 = 64;

/// Their size in bytes, no more than `bytes_max`.
pub(super) fn narrow(level_0_bytes: u64, bytes_min: u64, bytes_max: u64) -> u64 {
    (level_0_bytes / PARTS).max(bytes_min).min(bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million deletions of rows of a large disk lay above the last level, and were too few for a level to come down.
    #[test]
    fn what_is_too_little_for_a_level_comes_down() {
        let sizes = [0, 0, 0, 267_212, 5_151_177, 790_046, 83_318_720];
        for (tables, most) in [(0, 480 << 10), (0, 16 << 20), (7, 16 << 20)] {
            let base = base_below(sizes[3], tables, most);
            assert_eq!(weighed(tables, &sizes, base, &taking_down(3, &sizes, base)), (3, false));
        }
        assert_eq!(base_below(1 << 30, 0, 16 << 20), 16 << 20);
        assert_eq!(narrow(14 << 20, 256 << 10, 16 << 20), 256 << 10);
        assert_eq!(narrow(128 << 20, 256 << 10, 16 << 20), 2 << 20);
        assert_eq!(narrow(1 << 40, 256 << 10, 16 << 20), 16 << 20);
        assert_eq!(narrow(1, 256 << 10, 16 << 10), 16 << 10);
    }

    /// What fjall's strategy takes first, as it weighs levels: the first of all, or another one.
    fn weighed(tables: usize, sizes: &[u64], base: u64, ratios: &[f32]) -> (usize, bool) {
        let top = (1..7).find(|level| sizes[*level] > 0).unwrap_or(6);
        let target =
            |count: usize| ratios.iter().take(count - 1).fold(base as f64, |size, ratio| size * f64::from(*ratio));
        let held = |level: &usize| sizes[*level] > 0;
        let is_above = top > 1 && (1..7).filter(held).all(|level| sizes[level] as f64 > target(level + 1 - top));
        let count = |level: usize| level + 1 - top + usize::from(is_above);
        let score = |level: usize| sizes[level] as f64 / target(count(level));
        let heaviest = (1..6).filter(held).max_by(|a, b| score(*a).total_cmp(&score(*b)));
        let taken = heaviest.filter(|level| score(*level) > 1.0 && score(*level) > tables as f64).unwrap_or(0);
        (taken, is_above)
    }

    /// A level whose few tables can be merged with nothing kept those of level 0 from being merged, and a full disk full.
    #[test]
    fn what_waits_comes_before_what_cannot_come_down() {
        let base = 256 << 10;
        // As a full disk of 200 MiB had it.
        let sizes = [43_879_243, 0, 0, 0, 0, 14_760_466, 65_275_898];
        assert_eq!(swollen(23, &sizes), None);
        assert_eq!(weighed(23, &sizes, base, &taking_in(23, &sizes, base)), (0, true));
        // And another: first the swollen level goes into the one below.
        let sizes = [31_223_000, 0, 0, 14_760_300, 268_132, 267_036, 89_204_154];
        assert_eq!(swollen(18, &sizes), Some(3));
        let sizes = [31_223_000, 0, 0, 0, 15_028_432, 267_036, 89_204_154];
        assert_eq!(swollen(18, &sizes), Some(4));
        let sizes = [31_223_000, 0, 0, 0, 0, 15_295_468, 89_204_154];
        assert_eq!(swollen(18, &sizes), None);
        assert_eq!(weighed(18, &sizes, base, &taking_in(18, &sizes, base)), (0, true));
    }

    /// Levels whose weights lie a byte apart were taken one for the other.
    #[test]
    fn what_is_all_but_swollen_is() {
        let sizes = [0, 0, 0, (1 << 26) + 1, (1 << 23) + 1, (1 << 20) + 1, (1 << 18) + 1];
        assert_eq!(swollen(8, &sizes), Some(3));
    }

    /// Deletions of 260,000 rows lay above three tables that spanned everything, for good.
    #[test]
    fn a_level_is_taken_though_the_one_below_cannot_come_down() {
        let base = 480 << 10;
        // As a full disk of 120 MiB had it.
        let sizes = [0, 0, 0, 267_212, 5_151_177, 790_046, 83_318_720];
        assert_eq!(from_below(&sizes).collect::<Vec<_>>(), [5, 4, 3]);
        assert_eq!(weighed(0, &sizes, base, &taking_down(5, &sizes, base)), (5, false));
        assert_eq!(weighed(0, &sizes, base, &taking_down(4, &sizes, base)), (4, false));
    }

    proptest::proptest! {
        #[test]
        fn the_level_that_is_asked_for_is_taken(
            top in 1usize..6, below in 0usize..5, tables in 0usize..20, sizes in proptest::collection::vec(12u32..31, 7)
        ) {
            let sizes: Vec<u64> =
                sizes.iter().enumerate().map(|(level, bits)| if level < top { 0 } else { (1 << bits) + 1 }).collect();
            let level = (top + below).min(5);
            let base = if level == top { base_below(sizes[level], tables, 256 << 10) } else { 256 << 10 };
            proptest::prop_assert_eq!(weighed(tables, &sizes, base, &taking_down(level, &sizes, base)), (level, false));
        }

        #[test]
        fn level_0_is_always_taken_first(tables in 2usize..200, top in 2usize..7, sizes in proptest::collection::vec(18u32..31, 7)) {
            let base = 256 << 10;
            let sizes: Vec<u64> =
                sizes.iter().enumerate().map(|(level, bits)| if level < top { 0 } else { (1 << bits) + 1 }).collect();
            if swollen(tables, &sizes).is_none() {
                let (taken, is_above) = weighed(tables, &sizes, base, &taking_in(tables, &sizes, base));
                proptest::prop_assert_eq!((taken, is_above), (0, true));
            }
        }
    }
}
