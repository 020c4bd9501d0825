//! From a sample of rows to statistics of their columns.

use crate::statistics::{ColumnStatistics, Key};
use std::collections::BTreeMap;

/// Frequent values that are kept of a column.
pub(crate) const COMMON_MAX: usize = 20;
/// Parts of equal number that bounds make of the others.
pub const PARTS_MAX: usize = 50;
/// A value that is not so many times as frequent as the average one is none of the frequent.
const COMMON_FACTOR: f64 = 1.25;

/// Draws which rows of a sequence are kept, so that each is as likely as any other: of the row that comes as number `seen` (from 0), where it
/// is put among `places`; `None`: nowhere.
pub struct Reservoir {
    places: usize,
    state: u64,
}

impl Reservoir {
    /// For so many rows; the seed may be anything.
    pub fn new(places: usize, seed: u64) -> Reservoir {
        Reservoir { places, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// See the type.
    pub fn place(&mut self, seen: u64) -> Option<usize> {
        if seen < self.places as u64 {
            return Some(seen as usize);
        }
        // xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let draw = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        let at = draw % (seen + 1);
        (at < self.places as u64).then_some(at as usize)
    }
}

/// What a sample says of a column. `keys`: of its values, NULL as `None`; `rows`: of the table.
pub fn column(id: u16, mut keys: Vec<Option<Key>>, rows: u64) -> ColumnStatistics {
    let sampled = keys.len().max(1) as f64;
    let bytes: usize = keys.iter().flatten().map(|key| key.0.len()).sum();
    keys.sort_unstable();
    let nulls = keys.partition_point(Option::is_none);
    let mut counts: Vec<(Key, usize)> = Vec::new();
    for key in keys.drain(..).flatten() {
        match counts.last_mut() {
            Some((last, count)) if *last == key => *count += 1,
            _ => counts.push((key, 1)),
        }
    }
    let values: usize = counts.iter().map(|(_, count)| count).sum();
    let null_share = nulls as f64 / sampled;
    let distinct = distinct(&counts, values, rows as f64 * (1.0 - null_share));
    let common = common(&counts, values);
    let others = counts.iter().filter(|(key, _)| !common.contains_key(key));
    let bounds = bounds(&others.collect::<Vec<_>>());
    let mut common: Vec<(Key, f64)> =
        common.into_iter().map(|(key, count)| (key.clone(), count as f64 / sampled)).collect();
    common.sort_by(|(a, a_share), (b, b_share)| b_share.total_cmp(a_share).then_with(|| a.cmp(b)));
    let width_bytes = u32::try_from(bytes / values.max(1)).unwrap_or(u32::MAX);
    ColumnStatistics { id, nulls: null_share, distinct, width_bytes, common, bounds, by_key: Default::default() }
}

/// Duj1: see the module's parent.
fn distinct(counts: &[(Key, usize)], values: usize, all: f64) -> f64 {
    let (sampled, found) = (values as f64, counts.len() as f64);
    let once = counts.iter().filter(|(_, count)| *count == 1).count() as f64;
    if once == 0.0 || all <= sampled {
        return found;
    }
    if once == sampled {
        return all;
    }
    (sampled * found / (sampled - once + once * sampled / all)).clamp(found, all)
}

/// The frequent values, and how often they were found: all, where there are few.
fn common(counts: &[(Key, usize)], values: usize) -> BTreeMap<&Key, usize> {
    let average = values as f64 / counts.len().max(1) as f64;
    let frequent = |count: usize| count > 1 && (counts.len() <= COMMON_MAX || count as f64 > COMMON_FACTOR * average);
    let mut found: Vec<&(Key, usize)> = counts.iter().filter(|(_, count)| frequent(*count)).collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found.truncate(COMMON_MAX);
    found.into_iter().map(|(key, count)| (key, *count)).collect()
}

/// Values between which equally many lie.
fn bounds(counts: &[&(Key, usize)]) -> Vec<Key> {
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    if counts.len() < 2 {
        return Vec::new();
    }
    let parts = PARTS_MAX.min(counts.len() - 1);
    let (mut bounds, mut passed, mut next) = (Vec::with_capacity(parts + 1), 0, 0);
    for (key, count) in counts {
        passed += count;
        while next <= parts && passed > next * (all - 1) / parts {
            bounds.push(key.clone());
            next += 1;
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{SqlType, Value};

    fn keys(values: impl IntoIterator<Item = Option<i32>>) -> Vec<Option<Key>> {
        values.into_iter().map(|v| Key::of(&v.map_or(Value::Null, Value::Int4), &SqlType::Int4)).collect()
    }

    #[test]
    fn each_row_is_as_likely_as_any_other() {
        let mut times = [0; 100];
        for seed in 0..2000 {
            let mut reservoir = Reservoir::new(10, seed);
            let mut kept = [0; 10];
            for seen in 0..100 {
                if let Some(at) = reservoir.place(seen) {
                    kept[at] = seen as usize;
                }
            }
            kept.iter().for_each(|seen| times[*seen] += 1);
        }
        // 200 times each on average.
        assert!(times.iter().all(|times| (120..280).contains(times)), "{times:?}");
    }

    #[test]
    fn keys_of_a_table_are_all_different() {
        let column = column(3, keys((0..1000).map(Some)), 1_000_000);
        assert_eq!((column.id, column.distinct, column.nulls, column.width_bytes), (3, 1e6, 0.0, 5));
        assert!(column.common.is_empty());
        assert_eq!(column.bounds.len(), PARTS_MAX + 1);
        assert!(column.bounds.is_sorted());
    }

    #[test]
    fn few_values_are_all_frequent() {
        let column = column(1, keys((0..900).map(|n| (n % 3 > 0).then_some(n % 3))), 90_000);
        assert_eq!((column.distinct, column.common.len(), column.bounds.len()), (2.0, 2, 0));
        assert!((column.nulls - 1.0 / 3.0).abs() < 1e-9 && (column.common[0].1 - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_frequent_value_stands_out() {
        let column = column(1, keys((0..1000).map(|n| Some(if n % 2 == 0 { 7 } else { n }))), 100_000);
        assert_eq!(column.common.len(), 1);
        assert!((column.common[0].1 - 0.5).abs() < 0.01);
        assert!(column.distinct > 500.0 && !column.bounds.contains(&column.common[0].0));
    }

    #[test]
    fn no_row_says_nothing() {
        let column = column(1, Vec::new(), 0);
        assert_eq!((column.distinct, column.nulls, column.bounds.len()), (0.0, 0.0, 0));
    }
}
