//! Frequent values in the order of their keys: a statement whose values are looked at before each run asks for dozens of them.

use super::Key;
use std::sync::OnceLock;

/// A value, its share of all rows, and that of all frequent values below it.
#[derive(Debug)]
struct Place {
    key: Key,
    share: f64,
    below: f64,
}

#[derive(Debug)]
struct Places {
    ascending: Vec<Place>,
    total: f64,
}

/// Made of the list of frequent values when it is first asked; says nothing that the list does not, so two are always equal.
#[derive(Debug, Default)]
pub struct ByKey(OnceLock<Places>);

impl Clone for ByKey {
    fn clone(&self) -> ByKey {
        ByKey::default()
    }
}

impl PartialEq for ByKey {
    fn eq(&self, _: &ByKey) -> bool {
        true
    }
}

impl ByKey {
    fn of(&self, common: &[(Key, f64)]) -> &Places {
        self.0.get_or_init(|| {
            let mut sorted: Vec<&(Key, f64)> = common.iter().collect();
            sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
            let mut below = 0.0;
            let place = |(key, share): &(Key, f64)| {
                let place = Place { key: key.clone(), share: *share, below };
                below += share;
                place
            };
            let ascending = sorted.into_iter().map(place).collect();
            Places { ascending, total: common.iter().map(|(_, share)| share).sum() }
        })
    }

    /// Of all frequent values together.
    pub(super) fn total(&self, common: &[(Key, f64)]) -> f64 {
        self.of(common).total
    }

    /// Of one, if it is frequent.
    pub(super) fn share(&self, common: &[(Key, f64)], key: &Key) -> Option<f64> {
        let places = self.of(common);
        let at = places.ascending.binary_search_by(|place| place.key.cmp(key)).ok()?;
        Some(places.ascending.get(at)?.share)
    }

    /// Of those below a value.
    pub(super) fn below(&self, common: &[(Key, f64)], key: &Key) -> f64 {
        let places = self.of(common);
        let at = places.ascending.partition_point(|place| place.key < *key);
        places.ascending.get(at).map_or(places.total, |place| place.below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{SqlType, Value};

    /// What is looked up is what the list says, whether a value is in it, or before, between or behind those that are.
    #[test]
    fn what_is_looked_up_is_what_the_list_says() {
        let key = |n: i32| Key::of(&Value::Int4(n), &SqlType::Int4).unwrap();
        for values in [&[][..], &[7], &[500, -3, 7, 40, 2]] {
            let share = |place: usize| 0.5 / (place + 1) as f64;
            let common: Vec<(Key, f64)> = values.iter().enumerate().map(|(place, n)| (key(*n), share(place))).collect();
            let by_key = ByKey::default();
            for n in -5..510 {
                let found = common.iter().find(|(known, _)| *known == key(n)).map(|(_, share)| *share);
                assert_eq!(by_key.share(&common, &key(n)), found, "{n}");
                let below: f64 = common.iter().filter(|(known, _)| *known < key(n)).map(|(_, share)| share).sum();
                assert!((by_key.below(&common, &key(n)) - below).abs() < 1e-9, "{n}");
            }
            let total: f64 = common.iter().map(|(_, share)| share).sum();
            assert_eq!(by_key.total(&common), total);
        }
    }
}
