//! Commands of many writes: seen at once, put in their places later.
//!
//! Problem: records are applied one after the other, so who commits waits for the applying of what is before him in the log. A million writes
//! take most of a second to find their places in the layer and in the row cache. Idea: such a command comes with its writes in key order, and
//! what is in order can be searched as it is. So applying it is to list it ([`Versions::show`]): from then on everybody sees it, and who comes
//! next in the log need not wait. Its writes go to the layer and the cache afterwards ([`Versions::place`]), a slice at a time, by whoever has
//! the time and holds no lock that others need.
//!
//! Invariants:
//! 1. A command is listed until all its writes are in the active layer. Who reads looks at the list first, and at cache, layers and engine
//!    second: what moves in between moves towards him. A scan, which tells by no time what the engine has from what memory has, looks at list and
//!    layers at one moment, while it holds the layers.
//! 2. While it is listed, neither the cache nor the layers know its keys' newest versions: of what they know and what is listed the version
//!    with the greater time counts.
//! 3. No layer is closed while a command is listed ([`Versions::freeze`] places what is left): a layer stands for whole commands.
//! 4. Commands are placed in the order in which they came.
//! 5. Hot spans have it from the beginning; those in which it changes too much are given up.
//!
//! Caveats: a reader of a listed command's keys pays a search in its writes. At most [`SHOWN_MAX`] are listed; who comes with one more
//! places the oldest first, and no other.

use super::cache::Together;
use super::overlay::Look;
use super::prefixes::{Prefix, prefix_of};
use super::{APPLY_KEYS_MAX, Layers, Sabotage, Span, Version, Versions, overlay};
use crate::Engine;
use bytes::Bytes;
use clock::Timestamp;
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Commands that are listed at a time: a transaction over many ranges is as many of them at about one moment.
pub const SHOWN_MAX: usize = 16;
/// Mostly there are no more: so many stand without a vector of their own.
const SHOWN_INLINE: usize = 4;

/// The writes of one command: each key once, in key order.
pub trait Writes: Send + Sync {
    /// How many.
    fn count(&self) -> usize;
    /// One of them: its key, and its value or `None` where it is deleted.
    fn at(&self, number: usize) -> (&[u8], Option<&Bytes>);
}

impl Writes for Vec<super::Write> {
    fn count(&self) -> usize {
        self.len()
    }
    fn at(&self, number: usize) -> (&[u8], Option<&Bytes>) {
        (&self[number].0, self[number].1.as_ref())
    }
}

/// One that is listed.
pub(super) struct Whole {
    pub ts: Timestamp,
    writes: Arc<dyn Writes>,
    /// Its first and its last key, if it has any: most that are listed have nothing to do with what is asked.
    ends: Option<(Bytes, Bytes)>,
    /// So many are in the layer; changed by who holds the layers for writing.
    placed: AtomicUsize,
}

impl Whole {
    fn new(ts: Timestamp, writes: Arc<dyn Writes>) -> Whole {
        let key = |number| Bytes::copy_from_slice(writes.at(number).0);
        let ends = writes.count().checked_sub(1).map(|last| (key(0), key(last)));
        Whole { ts, writes, ends, placed: AtomicUsize::new(0) }
    }

    /// Whether what is asked of may lie between its ends.
    fn may_have(&self, lies: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        self.ends.as_ref().is_some_and(|(first, last)| lies(first, last))
    }

    /// The first write for which `is_before` does not hold; it holds up to there.
    fn first(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut from, mut to) = (0, self.writes.count());
        while from < to {
            let middle = from + (to - from) / 2;
            match is_before(self.writes.at(middle).0) {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }

    /// From the first key to behind the last.
    pub fn ends(&self) -> Option<Span> {
        let last = self.writes.count().checked_sub(1)?;
        let key = |number| self.writes.at(number).0;
        Some(Bytes::copy_from_slice(key(0))..super::scan::after(key(last)))
    }

    /// Which of its writes lie in a span.
    pub fn within(&self, span: &Span) -> Range<usize> {
        if !self.may_have(|first, last| first < &span.end[..] && &span.start[..] <= last) {
            return 0..0;
        }
        let from = self.first(|key| key < &span.start[..]);
        from..self.first(|key| key < &span.end[..]).max(from)
    }

    fn get(&self, key: &[u8]) -> Option<Version> {
        if !self.may_have(|first, last| first <= key && key <= last) {
            return None;
        }
        let at = self.first(|held| held < key);
        (at < self.writes.count() && self.writes.at(at).0 == key).then(|| self.version(at).1)
    }

    pub fn has_prefix(&self, prefix: Prefix) -> bool {
        if !self.may_have(|first, last| prefix_of(first) <= prefix && prefix <= prefix_of(last)) {
            return false;
        }
        let at = self.first(|key| prefix_of(key) < prefix);
        at < self.writes.count() && prefix_of(self.writes.at(at).0) == prefix
    }

    pub fn version(&self, number: usize) -> (&[u8], Version) {
        let (key, value) = self.writes.at(number);
        (key, Version { ts: self.ts, value: value.cloned() })
    }

    /// Shows its keys of a span.
    pub fn look<S: overlay::Sight>(&self, span: &Span, reverse: bool, look: &mut Look<S>) {
        let within = self.within(span);
        let mut meet = |number| {
            let (key, version) = self.version(number);
            look.see(key, &version)
        };
        let _enough = match reverse {
            true => within.rev().try_for_each(&mut meet),
            false => within.into_iter().try_for_each(&mut meet),
        };
    }
}

type Listed = SmallVec<[Arc<Whole>; SHOWN_INLINE]>;

/// All that are listed, oldest first.
#[derive(Default)]
pub(super) struct Wholes {
    list: RwLock<Listed>,
    /// How many: mostly none, and a read should not ask further.
    count: AtomicUsize,
    /// Nobody sees them: a broken rule.
    missed: bool,
}

impl Wholes {
    pub fn new(missed: bool) -> Wholes {
        Wholes { missed, ..Wholes::default() }
    }

    /// Asked before anything else is looked at (invariant 1).
    pub fn is_empty(&self) -> bool {
        self.missed || self.count.load(Ordering::Acquire) == 0
    }

    /// Those that are listed now.
    pub fn all(&self) -> Listed {
        if self.is_empty() { SmallVec::new() } else { self.list.read().clone() }
    }

    /// The newest version of a key in `(lo, hi]`, tombstones included.
    pub fn newest_of(&self, key: &[u8], lo: Timestamp, hi: Timestamp) -> Option<Version> {
        if self.is_empty() {
            return None;
        }
        let within = |whole: &Arc<Whole>| whole.ts > lo && whole.ts <= hi;
        // Under the list's lock, of which many may hold a part: each key of a read asks, and the list is not copied for each.
        let list = self.list.read();
        list.iter().filter(|whole| within(whole)).filter_map(|whole| whole.get(key)).max_by_key(|found| found.ts)
    }

    /// The newest version of any key of a span in `(lo, hi]`, and a key that has it.
    pub fn newest_in(&self, span: &Span, lo: Timestamp, hi: Timestamp) -> Option<(Bytes, Timestamp)> {
        let all = self.all();
        let within = all.iter().filter(|whole| whole.ts > lo && whole.ts <= hi);
        let found = within.filter_map(|whole| Some((whole, whole.within(span).next()?)));
        let newest = found.max_by_key(|(whole, _)| whole.ts);
        newest.map(|(whole, number)| (Bytes::copy_from_slice(whole.version(number).0), whole.ts))
    }

    fn change(&self, change: impl FnOnce(&mut Listed)) {
        let mut list = self.list.write();
        change(&mut list);
        self.count.store(list.len(), Ordering::Release);
    }
}

impl<E: Engine> Versions<E> {
    /// Whether a command of so many writes is worth to be shown ([`Versions::show`]) and not applied. While a log is replayed none is: nobody
    /// waits.
    pub fn shows(&self, writes: usize) -> bool {
        writes >= self.config.show_min && !self.is_cold()
    }

    /// As [`Versions::apply`], at once, whatever its size; the caller sees to it that somebody calls [`Versions::place`] soon. Nothing else is
    /// applied and no layer closed at the same time.
    pub fn show(&self, ts: Timestamp, writes: Arc<dyn Writes>) {
        // One at most: nobody else shows meanwhile.
        let oldest = || {
            let list = self.wholes.list.read();
            list.first().filter(|_| list.len() >= SHOWN_MAX).cloned()
        };
        while let Some(oldest) = oldest() {
            self.place_one(&oldest, &mut { usize::MAX }, &mut Together::default());
        }
        let whole = Arc::new(Whole::new(ts, writes));
        let mut layers = self.layers.write();
        self.wholes.change(|list| list.push(whole.clone()));
        layers.recent.pass(ts);
        // One of them may be such a key: to look in vain costs less than to look for it here.
        self.newest_bare.fetch_max(ts.as_u64(), Ordering::AcqRel);
        if self.config.sabotage != Some(Sabotage::HotMissesWrites) {
            self.hot.put_whole(&whole);
        }
    }

    /// Puts up to so many writes of what was shown in their places, the oldest first, with the overlay's lock held for no more than
    /// [`APPLY_KEYS_MAX`] at a time; nothing of what is shown meanwhile, or whoever places would place for others without end. `false`: nothing
    /// is left. From any thread.
    pub fn place(&self, keys_max: usize) -> bool {
        if self.wholes.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let (mut left, mut together) = (keys_max, Together::default());
        let listed = self.wholes.list.read().clone();
        for whole in listed {
            if !self.place_one(&whole, &mut left, &mut together) {
                return true;
            }
        }
        self.wholes.count.load(Ordering::Acquire) > 0
    }

    /// Places one of them, so many writes of it at most, which are counted down; whether that was all.
    fn place_one(&self, whole: &Arc<Whole>, left: &mut usize, together: &mut Together) -> bool {
        let mut placed = false;
        while !placed {
            if *left == 0 {
                return false;
            }
            let keys = APPLY_KEYS_MAX.min(*left);
            *left -= keys;
            placed = self.place_slice(whole, keys, together);
        }
        self.wholes.change(|list| list.retain(|listed| !Arc::ptr_eq(listed, whole)));
        true
    }

    /// Bytes in layers that came of commands that were shown, about. Until they were applied they stood in memory elsewhere.
    pub fn shown_bytes(&self) -> usize {
        self.shown_bytes.load(Ordering::Relaxed)
    }

    /// Whether all of it is in the layer then.
    fn place_slice(&self, whole: &Whole, keys: usize, together: &mut Together) -> bool {
        let thresholds = self.snapshots.thresholds();
        let mut layers = self.layers.write();
        let from = whole.placed.load(Ordering::Relaxed);
        let to = whole.writes.count().min(from + keys);
        let slice: Vec<(&[u8], Option<&Bytes>)> = (from..to).map(|number| whole.writes.at(number)).collect();
        self.cache.replace_all(&slice, whole.ts, together);
        let Layers { active, .. } = &mut *layers;
        let before = active.bytes();
        let puts = slice.iter().zip(together.took.drain(..)).map(|(&(key, value), base)| {
            let version = Version { ts: whole.ts, value: value.cloned() };
            (key, version, base)
        });
        active.insert_all(puts, &thresholds);
        let after = active.bytes();
        let shown_bytes = after.0.saturating_sub(before.0);
        active.shown_bytes += shown_bytes;
        self.shown_bytes.fetch_add(shown_bytes, Ordering::Relaxed);
        self.ledger.demand.change(before, after);
        whole.placed.store(to, Ordering::Relaxed);
        to == whole.writes.count()
    }
}
