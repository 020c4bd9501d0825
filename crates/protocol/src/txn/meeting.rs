//! Where two lists of writes, both in the order of their keys, have a key in common.
//!
//! Idea: whoever stands behind jumps to where the other is, by steps that double ([`jump`]): few against many costs a search for each of the few, many
//! against many a step for each, and what lies apart nothing.

use super::Write;

/// What came of looking.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// Both have the key, here.
    At(usize, usize),
    /// That was enough for now: go on from here.
    NotYet(usize),
    Nowhere,
}

/// The first write at or behind `from` whose key is not below `key`.
fn jump(writes: &[Write], from: usize, key: &[u8]) -> usize {
    let (mut low, mut step) = (from, 1);
    while writes.get(low + step - 1).is_some_and(|write| *write.key < *key) {
        low += step;
        step *= 2;
    }
    let high = writes.len().min(low + step - 1);
    low + writes.get(low..high).map_or(0, |between| between.partition_point(|write| *write.key < *key))
}

/// The first of `left`, from `from` on, whose key `right` has, too, with no more than so many looks, which are counted down.
pub(super) fn meet(left: &[Write], from: usize, right: &[Write], looks: &mut usize) -> Met {
    let (mut at, mut place) = (from, 0);
    while let Some(write) = left.get(at) {
        if *looks == 0 {
            return Met::NotYet(at);
        }
        *looks -= 1;
        place = jump(right, place, &write.key);
        match right.get(place) {
            None => return Met::Nowhere,
            Some(found) if found.key == write.key => return Met::At(at, place),
            Some(behind) => at = jump(left, at, &behind.key),
        }
    }
    Met::Nowhere
}

/// A write of `left` whose key `right` has, too.
pub(super) fn first_met<'a>(left: &'a [Write], right: &[Write]) -> Option<&'a Write> {
    match meet(left, 0, right, &mut { usize::MAX }) {
        Met::At(at, _) => left.get(at),
        Met::NotYet(_) | Met::Nowhere => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use clock::Timestamp;

    fn writes(keys: impl IntoIterator<Item = u64>) -> Vec<Write> {
        let write = |n: u64| Write { key: Bytes::from(format!("{n:03}")), value: None, since: Timestamp::MIN };
        keys.into_iter().map(write).collect()
    }

    #[test]
    fn all_that_two_lists_share_is_met_however_few_looks_there_are_at_a_time() {
        let mut state = 7u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..2_000 {
            let (every, other) = (1 + next(30), 1 + next(30));
            let left = writes((0..200).filter(|_| next(every) == 0));
            let right = writes((0..200).filter(|_| next(other) == 0));
            let (mut from, mut met) = (0, Vec::new());
            loop {
                match meet(&left, from, &right, &mut (1 + next(5) as usize)) {
                    Met::At(at, place) => {
                        assert_eq!(left[at].key, right[place].key);
                        met.push(left[at].key.clone());
                        from = at + 1;
                    }
                    Met::NotYet(at) => {
                        assert!(at > from || from == 0, "it goes on");
                        from = at;
                    }
                    Met::Nowhere => break,
                }
            }
            let shared = left.iter().filter(|write| right.iter().any(|other| other.key == write.key));
            assert_eq!(met, shared.map(|write| write.key.clone()).collect::<Vec<_>>());
            assert_eq!(first_met(&left, &right).map(|write| &write.key), met.first());
        }
    }
}
