//! An ordered map in leaves that readers take away and look at later.
//!
//! Problem: a scan copies thousands of entries. Under the lock of the map that keeps writers waiting, and where there are more threads
//! than processors the kernel sooner or later puts a reader aside in the midst of it: then all wait for its next turn. Idea: entries
//! lie in leaves of some dozens; a reader takes counted references to those of its span, which is quick, and reads them with no lock
//! held. A writer changes a leaf in place while nobody has it, and a copy of it while somebody has.
//!
//! Invariants:
//! 1. Leaves stand under lower bounds of their keys; the first one's is empty, so that there is one for every key.
//! 2. No leaf is empty, none holds more than [`LEAF_KEYS_MAX`], keys ascend within it and from one to the next.
//! 3. What a [`Cut`] holds never changes.

use super::Span;
use super::overlay::Key;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;

/// Entries of one leaf at most: what one insertion moves, or copies if a reader has the leaf.
pub(super) const LEAF_KEYS_MAX: usize = 32;
/// What a full leaf keeps, of which the end grows: the next keys will most likely come behind the last one.
const LEAF_KEYS_KEPT: usize = LEAF_KEYS_MAX * 3 / 4;
/// Leaves of a short span.
const CUT_LEAVES_FIRST: usize = 4;

type Leaf<V> = Vec<(Key, V)>;

/// See the module.
pub(super) struct Leaves<V> {
    leaves: BTreeMap<Key, Arc<Leaf<V>>>,
    len: usize,
}

/// The leaves of a span as they were, in the order asked for.
pub(super) struct Cut<V> {
    leaves: SmallVec<[Arc<Leaf<V>>; CUT_LEAVES_FIRST]>,
    /// Where those begin (end, where it goes down) that were left out.
    pub rest: Option<Key>,
}

impl<V> Default for Leaves<V> {
    fn default() -> Self {
        Leaves { leaves: BTreeMap::new(), len: 0 }
    }
}

fn search<V>(leaf: &Leaf<V>, key: &[u8]) -> Result<usize, usize> {
    leaf.binary_search_by(|(held, _)| held[..].cmp(key))
}

/// Which entries of a leaf lie in a span.
fn within<V>(leaf: &Leaf<V>, span: &Span) -> Range<usize> {
    // Most leaves of a long span lie in it whole.
    let first = match leaf.first() {
        Some((key, _)) if key[..] >= span.start[..] => 0,
        _ => leaf.partition_point(|(key, _)| key[..] < span.start[..]),
    };
    let last = match leaf.last() {
        Some((key, _)) if key[..] < span.end[..] => leaf.len(),
        _ => first + leaf[first..].partition_point(|(key, _)| key[..] < span.end[..]),
    };
    first..last
}

fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

/// The leaf for changing; a copy of it where somebody holds it.
fn own<V: Clone>(leaf: &mut Arc<Leaf<V>>) -> &mut Leaf<V> {
    if Arc::get_mut(leaf).is_none() {
        let mut copy = Vec::with_capacity((leaf.len() + 1).next_power_of_two());
        copy.extend(leaf.iter().map(|(key, value)| (Key::from_slice(key), value.clone())));
        *leaf = Arc::new(copy);
    }
    Arc::make_mut(leaf)
}

impl<V> Leaves<V> {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, key: &[u8]) -> Option<&V> {
        let (_, leaf) = self.leaves.range::<[u8], _>(up_to(key)).next_back()?;
        Some(&leaf[search(leaf, key).ok()?].1)
    }

    /// The greatest.
    pub fn last_key(&self) -> Option<&[u8]> {
        let (_, leaf) = self.leaves.last_key_value()?;
        leaf.last().map(|(key, _)| &key[..])
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &V)> {
        self.leaves.values().flat_map(|leaf| leaf.iter().map(|(key, value)| (&key[..], value)))
    }

    /// The entries of a span, in order or backwards.
    pub fn range<'s>(&'s self, span: &Span) -> impl DoubleEndedIterator<Item = (&'s [u8], &'s V)> {
        let entries = |leaf: &'s Arc<Leaf<V>>| leaf[within(leaf, span)].iter().map(|(key, value)| (&key[..], value));
        self.leaves_of(span).flat_map(move |(_, leaf)| entries(leaf))
    }

    /// The leaves that may hold keys of a span.
    fn leaves_of<'s>(&'s self, span: &Span) -> impl DoubleEndedIterator<Item = (&'s Key, &'s Arc<Leaf<V>>)> {
        let first = self.leaves.range::<[u8], _>(up_to(&span.start)).next_back();
        let empty = span.start >= span.end;
        // A span that ends before it begins has no range.
        let end = if empty { &span.start[..] } else { &span.end[..] };
        let from = match first {
            Some((first, _)) if !empty => Bound::Included(&first[..]),
            _ => Bound::Included(end),
        };
        self.leaves.range::<[u8], _>((from, Bound::Excluded(end)))
    }

    /// What holds the entries of a span, from where it is read, until there are so many leaves: quick, whatever is in them.
    pub fn cut(&self, span: &Span, reverse: bool, leaves_max: usize) -> Cut<V> {
        let mut cut = Cut { leaves: SmallVec::new(), rest: None };
        let mut leaves = self.leaves_of(span);
        let mut last: Option<&Key> = None;
        while let Some((bound, leaf)) = if reverse { leaves.next_back() } else { leaves.next() } {
            if cut.leaves.len() >= leaves_max.max(1) {
                cut.rest = if reverse { last.cloned() } else { Some(bound.clone()) };
                break;
            }
            last = Some(bound);
            cut.leaves.push(leaf.clone());
        }
        cut
    }
}

impl<V: Clone> Leaves<V> {
    /// Changes what stands under a key, or puts something there: one search for both.
    pub fn put<T>(&mut self, key: &[u8], new: T, change: impl FnOnce(&mut V, T), make: impl FnOnce(T) -> V) {
        let Some((bound, leaf)) = self.leaves.range_mut::<[u8], _>(up_to(key)).next_back() else {
            self.leaves.insert(Key::new(), Arc::new(vec![(Key::from_slice(key), make(new))]));
            self.len = 1;
            return;
        };
        let at = match search(leaf, key) {
            Ok(at) => return change(&mut own(leaf)[at].1, new),
            Err(at) => at,
        };
        self.len += 1;
        let entry = (Key::from_slice(key), make(new));
        if leaf.len() < LEAF_KEYS_MAX {
            own(leaf).insert(at, entry);
            return;
        }
        let bound = bound.clone();
        self.split(&bound, at, entry);
    }

    /// As [`Leaves::put`] of each, for many of which most come in order: those that belong into one leaf are joined with it at once, and what
    /// is too much for one leaf becomes several.
    pub fn put_all<'k, T>(
        &mut self,
        entries: impl Iterator<Item = (&'k [u8], T)>,
        mut change: impl FnMut(&[u8], &mut V, T),
        mut make: impl FnMut(&[u8], T) -> V,
    ) {
        let mut entries = entries.peekable();
        // A run of thousands grows once; a lone entry needs nothing.
        let mut all = Vec::new();
        while let Some((key, new)) = entries.next() {
            if entries.peek().is_none() {
                return self.put(key, new, |held, new| change(key, held, new), |new| make(key, new));
            }
            let behind = (Bound::Excluded(key), Bound::Unbounded);
            let next = self.leaves.range::<[u8], _>(behind).next().map(|(bound, _)| bound.clone());
            let belongs = |last: &[u8], (key, _): &(&'k [u8], T)| {
                last < *key && next.as_ref().is_none_or(|next| *key < &next[..])
            };
            if !entries.peek().is_some_and(|entry| belongs(key, entry)) {
                self.put(key, new, |held, new| change(key, held, new), |new| make(key, new));
                continue;
            }
            let bound = match self.leaves.range_mut::<[u8], _>(up_to(key)).next_back() {
                Some((bound, _)) => bound.clone(),
                None => Key::new(),
            };
            let leaf = self.leaves.entry(bound.clone()).or_default();
            let mut held = std::mem::take(own(leaf)).into_iter().peekable();
            let before = held.len();
            all.reserve(2 * LEAF_KEYS_MAX);
            let mut taken = Some((key, new));
            while let Some((key, new)) = taken {
                while let Some(entry) = held.next_if(|(held, _)| held[..] < *key) {
                    all.push(entry);
                }
                match held.next_if(|(held, _)| held[..] == *key) {
                    Some((held, mut value)) => {
                        change(key, &mut value, new);
                        all.push((held, value));
                    }
                    None => all.push((Key::from_slice(key), make(key, new))),
                }
                taken = entries.next_if(|entry| belongs(key, entry));
            }
            all.extend(held);
            self.len += all.len() - before;
            self.divide(bound, &mut all);
        }
    }

    /// Moves entries into as many leaves as they need, the first of which stands under a bound.
    fn divide(&mut self, bound: Key, entries: &mut Leaf<V>) {
        let (mut left, mut leaves) = (entries.len(), entries.len().div_ceil(LEAF_KEYS_MAX));
        let (mut entries, mut bound) = (entries.drain(..), Some(bound));
        while leaves > 0 {
            let mut leaf = Vec::with_capacity(LEAF_KEYS_MAX);
            leaf.extend(entries.by_ref().take(left.div_ceil(leaves)));
            (left, leaves) = (left - leaf.len(), leaves - 1);
            let first = || leaf.first().map(|(key, _)| key.clone());
            if let Some(bound) = bound.take().or_else(first) {
                self.leaves.insert(bound, Arc::new(leaf));
            }
        }
    }

    /// Makes two leaves of a full one, and puts an entry at its place in it.
    fn split(&mut self, bound: &Key, at: usize, entry: (Key, V)) {
        let next = self.leaves.range::<Key, _>((Bound::Excluded(bound), Bound::Unbounded)).next();
        let kept = match at {
            LEAF_KEYS_MAX if next.is_none() => LEAF_KEYS_MAX,
            LEAF_KEYS_MAX => LEAF_KEYS_KEPT,
            _ => LEAF_KEYS_MAX / 2,
        };
        let Some(leaf) = self.leaves.get_mut(bound) else { return };
        let leaf = own(leaf);
        let mut right = Vec::with_capacity(LEAF_KEYS_MAX);
        right.extend(leaf.drain(kept..));
        match at < kept {
            true => leaf.insert(at, entry),
            false => right.insert(at - kept, entry),
        }
        if let Some((first, _)) = right.first() {
            self.leaves.insert(first.clone(), Arc::new(right));
        }
    }
}

impl<V: Clone> Leaves<V> {
    /// Takes out what is not to be kept.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &V) -> bool) {
        let mut all: Vec<(Key, Arc<Leaf<V>>)> = Vec::with_capacity(self.leaves.len());
        self.len = 0;
        for (bound, mut leaf) in std::mem::take(&mut self.leaves) {
            let stays: SmallVec<[bool; LEAF_KEYS_MAX]> = leaf.iter().map(|(key, value)| keep(key, value)).collect();
            let kept = stays.iter().filter(|stays| **stays).count();
            self.len += kept;
            if kept == 0 {
                continue;
            }
            if kept < leaf.len() {
                let mut stays = stays.iter();
                own(&mut leaf).retain(|_| stays.next().is_some_and(|stays| *stays));
            }
            match all.last_mut() {
                // Small neighbours become one.
                Some((_, last)) if last.len() + kept <= LEAF_KEYS_MAX / 2 => own(last).append(own(&mut leaf)),
                Some(_) => all.push((bound, leaf)),
                None => all.push((Key::new(), leaf)),
            }
        }
        self.leaves = all.into_iter().collect();
    }

    /// Takes over what stands in another, whose keys are all greater.
    pub fn append(&mut self, other: &mut Leaves<V>) {
        for (_, leaf) in std::mem::take(&mut other.leaves) {
            let first = leaf.first().filter(|_| !self.leaves.is_empty());
            let bound = first.map(|(key, _)| key.clone()).unwrap_or_default();
            self.leaves.insert(bound, leaf);
        }
        self.len += std::mem::take(&mut other.len);
    }
}

impl<V> Cut<V> {
    /// The entries of a span, of which this was cut, in the order asked for.
    pub fn visit(
        &self,
        span: &Span,
        reverse: bool,
        visit: &mut impl FnMut(&[u8], &V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for leaf in &self.leaves {
            let mut entries = leaf[within(leaf, span)].iter();
            let mut visit = |(key, value): &(Key, V)| visit(key, value);
            match reverse {
                true => entries.rev().try_for_each(&mut visit)?,
                false => entries.try_for_each(&mut visit)?,
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    type Model = BTreeMap<Vec<u8>, u32>;

    /// Keys near each other, some a prefix of another.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![prop::collection::vec(0..4u8, 0..4), (0..600u16).prop_map(|n| n.to_be_bytes().to_vec()),]
    }

    fn check(map: &Leaves<u32>) {
        assert!(map.leaves.first_key_value().is_none_or(|(bound, _)| bound.is_empty()));
        let mut bounds = map.leaves.keys().skip(1).map(Some).chain([None]);
        for (bound, leaf) in &map.leaves {
            let next = bounds.next().flatten();
            assert!(!leaf.is_empty() && leaf.len() <= LEAF_KEYS_MAX);
            assert!(leaf.is_sorted_by(|(a, _), (b, _)| a < b));
            assert!(leaf.iter().all(|(key, _)| bound <= key && next.is_none_or(|next| key < next)));
        }
    }

    fn read(cut: &Cut<u32>, span: &Span, reverse: bool) -> Vec<(Vec<u8>, u32)> {
        let mut out = Vec::new();
        let all = cut.visit(span, reverse, &mut |key, value| {
            out.push((key.to_vec(), *value));
            ControlFlow::Continue(())
        });
        assert!(all.is_continue());
        out
    }

    fn expected(model: &Model, span: &Span, reverse: bool) -> Vec<(Vec<u8>, u32)> {
        let of = |(key, value): (&Vec<u8>, &u32)| (key.clone(), *value);
        let mut all: Vec<_> = match span.start < span.end {
            true => model.range(span.start.to_vec()..span.end.to_vec()).map(of).collect(),
            false => Vec::new(),
        };
        if reverse {
            all.reverse();
        }
        all
    }

    proptest! {
        /// It is a map, whatever is put in in which order; and what was cut stays as it was.
        #[test]
        fn a_map_of_which_cuts_stay(
            puts in prop::collection::vec((key(), 0..1_000_000u32), 0..400),
            runs in prop::collection::vec((0..600u16, 0..80u16, any::<bool>()), 0..4),
            more in prop::collection::vec((0..900u16, 0..200u16, any::<bool>()), 0..4),
            from in key(), to in key(), reverse: bool, leaves_max in 1..5usize, cut_at in 0..400usize,
        ) {
            let run = |(from, n, down): (u16, u16, bool)| (0..n).map(move |i| (if down { from + n - i } else { from + i }, i.into()));
            let mut puts = puts;
            puts.extend(runs.into_iter().flat_map(run).map(|(key, n): (u16, u32)| (key.to_be_bytes().to_vec(), n)));
            let span = Bytes::from(from.clone())..Bytes::from(to);
            let (mut map, mut model) = (Leaves::default(), Model::new());
            let mut cut = None;
            for (n, (key, value)) in puts.into_iter().enumerate() {
                if n == cut_at {
                    cut = Some((map.cut(&span, reverse, usize::MAX), model.clone()));
                }
                map.put(&key, value, |held, new| *held = new, |new| new);
                model.insert(key, value);
            }
            check(&map);
            // Many at once, most of them in order, give the same, beside what is there and beside what is taken away.
            let more: Vec<(Vec<u8>, u32)> = more.into_iter().flat_map(run).map(|(key, n)| (key.to_be_bytes().to_vec(), n)).collect();
            let (taken, before) = (map.cut(&span, reverse, usize::MAX), model.clone());
            let together = more.iter().map(|(key, n)| (&key[..], *n));
            map.put_all(together, |_, held, new| *held += new, |_, new| new);
            for (key, n) in more {
                model.entry(key).and_modify(|held| *held += n).or_insert(n);
            }
            check(&map);
            prop_assert_eq!(map.len(), model.len());
            prop_assert_eq!(read(&taken, &span, reverse), expected(&before, &span, reverse));
            prop_assert_eq!(map.is_empty(), model.is_empty());
            prop_assert_eq!(map.get(&from), model.get(&from));
            prop_assert!(map.iter().map(|(key, value)| (key.to_vec(), *value)).eq(model.clone()));
            let range = map.range(&span).map(|(key, value)| (key.to_vec(), *value));
            prop_assert_eq!(range.collect::<Vec<_>>(), expected(&model, &span, false));
            if let Some((cut, model)) = cut {
                prop_assert!(cut.rest.is_none());
                prop_assert_eq!(read(&cut, &span, reverse), expected(&model, &span, reverse));
            }
            // What is not kept is gone, and what another has is taken over.
            let (mut some, mut others) = (model.clone(), Leaves::default());
            for (key, value) in model.range(from.clone()..) {
                others.put(key, *value, |_, _| (), |new| new);
            }
            for below in [false, true] {
                map.retain(|key, value| value % 3 > 0 && (!below || key < &from[..]));
                some.retain(|key, value| *value % 3 > 0 && (!below || key < &from));
                check(&map);
                prop_assert!(map.iter().map(|(key, value)| (key.to_vec(), *value)).eq(some.clone()));
                prop_assert_eq!(map.len(), some.len());
            }
            map.append(&mut others);
            some.extend(model.range(from..).map(|(key, value)| (key.clone(), *value)));
            check(&map);
            prop_assert!(others.is_empty() && map.len() == some.len());
            prop_assert!(map.iter().map(|(key, value)| (key.to_vec(), *value)).eq(some.clone()));
            let model = some;
            // In parts it is the same.
            let (mut rest, mut parts) = (Some(span.clone()), Vec::new());
            while let Some(part) = rest.take() {
                let cut = map.cut(&part, reverse, leaves_max);
                parts.extend(read(&cut, &part, reverse));
                rest = cut.rest.map(|at| Bytes::copy_from_slice(&at)).map(|at| if reverse { part.start..at } else { at..part.end });
            }
            prop_assert_eq!(parts, expected(&model, &span, reverse));
        }
    }
}
