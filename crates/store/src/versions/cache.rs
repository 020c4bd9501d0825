//! The row cache: the newest version of hot keys, bounded by bytes.
//!
//! An entry holds the *newest* version of its key and may answer any snapshot at or above that version's timestamp.
//! Writers put every applied version here, but of a bulk change only what is here already: it would crowd out what is
//! read. Readers add what they had to fetch from the engine. Eviction is a clock hand per shard.

use super::Version;
use super::overlay::Key;
use super::prefixes::prefix_of;
use bytes::Bytes;
use clock::Timestamp;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use parking_lot::Mutex;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shards: a power of two, enough that two threads seldom meet.
const SHARDS: usize = 64;
/// Counts of entries by the prefix of their key, so that a bulk change does not look for keys of which the cache holds none: a power of two.
const COUNTS: usize = 1024;
/// What an entry costs beside its key and value.
const ENTRY_OVERHEAD: usize = 160;
/// Entries that one insert may evict or pass over: bounds its time.
const HAND_STEPS_MAX: usize = 64;

struct Slot {
    key: Key,
    version: Version,
    used: bool,
}

/// A key that is looked for with others: its hash, its place among them, and where it seems to stand in its shard.
struct Found {
    hash: u64,
    place: u32,
    at: u32,
}

/// What [`RowCache::replace_all`] works with, to be used again.
#[derive(Default)]
pub(super) struct Together {
    /// By shard.
    found: Vec<Vec<Found>>,
    /// What each write took the place of.
    pub took: Vec<Option<Version>>,
}

#[derive(Default)]
struct Shard {
    index: HashTable<u32>,
    slots: Vec<Slot>,
    hand: usize,
    bytes: usize,
}

pub(super) struct RowCache {
    shards: Vec<Mutex<Shard>>,
    hasher: FixedState,
    shard_bytes_max: AtomicUsize,
    counts: Vec<AtomicUsize>,
}

/// Where the entries of a key's prefix are counted, with those of others.
fn count_of<'a>(counts: &'a [AtomicUsize], key: &[u8]) -> &'a AtomicUsize {
    &counts[prefix_of(key) as usize % COUNTS]
}

fn cost(key: &[u8], version: &Version) -> usize {
    key.len() + version.value.as_ref().map_or(0, Bytes::len) + ENTRY_OVERHEAD
}

impl RowCache {
    pub fn new(bytes_max: usize) -> Self {
        RowCache {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: FixedState::with_seed(0x7469_6d65_6261_6c6c),
            shard_bytes_max: AtomicUsize::new(bytes_max / SHARDS),
            counts: (0..COUNTS).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// From now on it holds at most so many bytes; what is too much goes with the next puts.
    pub fn set_bytes_max(&self, bytes_max: usize) {
        self.shard_bytes_max.store(bytes_max / SHARDS, Ordering::Relaxed);
    }

    /// What is too much goes now, a shard at a time: others wait for one shard's part of it.
    pub fn shrink(&self) {
        let bytes_max = self.shard_bytes_max.load(Ordering::Relaxed);
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.make_room(self, bytes_max);
            // Places for entries that are gone are memory, too.
            let kept = shard.slots.len();
            shard.slots.shrink_to(kept);
            let Shard { index, slots, .. } = &mut *shard;
            index.shrink_to(kept, |at| self.hasher.hash_one(&slots[*at as usize].key[..]));
        }
    }

    /// Whether an entry of so many bytes of key and value would be kept at all.
    pub fn takes(&self, bytes: usize) -> bool {
        bytes + ENTRY_OVERHEAD <= self.shard_bytes_max.load(Ordering::Relaxed)
    }

    fn locate(&self, key: &[u8]) -> (u64, &Mutex<Shard>) {
        let hash = self.hasher.hash_one(key);
        (hash, &self.shards[(hash >> 40) as usize % SHARDS])
    }

    /// The newest version of `key`, if it is here.
    pub fn get(&self, key: &[u8]) -> Option<Version> {
        let (hash, shard) = self.locate(key);
        let mut shard = shard.lock();
        let at = shard.find(hash, key)?;
        let slot = &mut shard.slots[at];
        slot.used = true;
        Some(slot.version.clone())
    }

    /// The newest timestamp of `key`, if it is here.
    pub fn newest(&self, key: &[u8]) -> Option<Timestamp> {
        let (hash, shard) = self.locate(key);
        let shard = shard.lock();
        shard.find(hash, key).map(|at| shard.slots[at].version.ts)
    }

    /// Puts the newest version of a key; an older one than the cache holds is ignored. Gives the one that it took the place of: as the
    /// cache holds newest versions, nothing was between the two.
    pub fn put(&self, key: &[u8], version: Version) -> Option<Version> {
        let (hash, shard) = self.locate(key);
        let cost = cost(key, &version);
        let mut shard = shard.lock();
        if let Some(at) = shard.find(hash, key) {
            return shard.replace(at, version);
        }
        let bytes_max = self.shard_bytes_max.load(Ordering::Relaxed);
        if cost > bytes_max {
            return None;
        }
        shard.make_room(self, bytes_max - cost);
        let place = shard.slots.len() as u32;
        shard.slots.push(Slot { key: Key::from_slice(key), version, used: false });
        count_of(&self.counts, key).fetch_add(1, Ordering::Relaxed);
        shard.bytes += cost;
        let Shard { index, slots, .. } = &mut *shard;
        index.insert_unique(hash, place, |at| self.hasher.hash_one(&slots[*at as usize].key[..]));
        None
    }

    /// As [`RowCache::put`] of many keys with a version of one time each, where they are here already; for others nothing is put, and nobody puts them
    /// at the same time. [`Together::took`] gets, at the place of each, what it took the place of.
    ///
    /// Where the keys stand that are here is anybody's guess, so each is a wait for memory, several times over: for the index, for the slot, for
    /// the version in it. One at a time that was a quarter of what a DELETE of many rows cost. So they are gone through shard by shard, and in each in
    /// steps of one wait: none of a step depends on another, and the processor has many under way.
    pub fn replace_all<'k>(&self, writes: &[(&'k [u8], Option<&'k Bytes>)], ts: Timestamp, together: &mut Together) {
        let Together { found, took } = together;
        took.clear();
        took.resize(writes.len(), None);
        found.resize_with(SHARDS, Vec::new);
        let mut last = None;
        for (place, (key, _)) in writes.iter().enumerate() {
            let prefix = prefix_of(key);
            let known = match last {
                Some((known, held)) if known == prefix => held,
                _ => count_of(&self.counts, key).load(Ordering::Relaxed) > 0,
            };
            last = Some((prefix, known));
            if known {
                let hash = self.hasher.hash_one(*key);
                found[(hash >> 40) as usize % SHARDS].push(Found { hash, place: place as u32, at: u32::MAX });
            }
        }
        for (shard, found) in self.shards.iter().zip(found).filter(|(_, found)| !found.is_empty()) {
            let mut shard = shard.lock();
            for one in found.iter_mut() {
                // Whose hash begins alike is most likely the one.
                one.at = shard.index.find(one.hash, |_| true).copied().unwrap_or(u32::MAX);
            }
            found.retain(|one| one.at != u32::MAX);
            for one in found.iter_mut() {
                let (key, slot) = (writes[one.place as usize].0, &shard.slots[one.at as usize]);
                if slot.key[..] != *key {
                    one.at = u32::MAX;
                }
            }
            for one in found.drain(..) {
                let (key, value) = writes[one.place as usize];
                let at = if one.at == u32::MAX { shard.find(one.hash, key) } else { Some(one.at as usize) };
                if let Some(at) = at {
                    took[one.place as usize] = shard.replace(at, Version { ts, value: value.cloned() });
                }
            }
        }
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|s| s.lock().bytes).sum()
    }
}

impl Shard {
    fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        self.index.find(hash, |at| self.slots[*at as usize].key[..] == *key).map(|at| *at as usize)
    }

    /// Puts a version in the place of another, which it gives, unless that is newer or the same.
    fn replace(&mut self, at: usize, version: Version) -> Option<Version> {
        let slot = &mut self.slots[at];
        if slot.version.ts > version.ts {
            return None;
        }
        let size = |version: &Version| version.value.as_ref().map_or(0, Bytes::len);
        let new = size(&version);
        let old = std::mem::replace(&mut slot.version, version);
        let same = old.ts == slot.version.ts;
        self.bytes = self.bytes + new - size(&old);
        (!same).then_some(old)
    }

    fn make_room(&mut self, cache: &RowCache, bytes_max: usize) {
        let mut steps = 0;
        while self.bytes > bytes_max && !self.slots.is_empty() {
            steps += 1;
            self.hand %= self.slots.len();
            let slot = &mut self.slots[self.hand];
            if slot.used && steps < HAND_STEPS_MAX {
                slot.used = false;
                self.hand += 1;
            } else {
                self.evict(cache, self.hand);
            }
        }
    }

    fn evict(&mut self, cache: &RowCache, at: usize) {
        let last = self.slots.len() - 1;
        let hash = |key: &Key| cache.hasher.hash_one(&key[..]);
        if let Ok(entry) = self.index.find_entry(hash(&self.slots[at].key), |i| *i as usize == at) {
            entry.remove();
        }
        if at != last
            && let Some(moved) = self.index.find_mut(hash(&self.slots[last].key), |i| *i as usize == last)
        {
            *moved = at as u32;
        }
        let gone = self.slots.swap_remove(at);
        count_of(&cache.counts, &gone.key).fetch_sub(1, Ordering::Relaxed);
        self.bytes -= cost(&gone.key, &gone.version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_goes_at_once() {
        let cache = RowCache::new(1 << 20);
        let value = || Some(Bytes::from(vec![7; 100]));
        let key = |n: u32| n.to_be_bytes();
        for n in 0..10_000u32 {
            cache.put(&key(n), Version { ts: Timestamp::from_u64(1), value: value() });
        }
        assert!(cache.bytes() > (1 << 20) * 9 / 10);
        cache.set_bytes_max(64 << 10);
        cache.shrink();
        assert!(cache.bytes() <= 64 << 10);
        let kept: Vec<u32> = (0..10_000).filter(|n| cache.get(&key(*n)).is_some()).collect();
        assert!(kept.len() > 100, "some are still found: {}", kept.len());
        cache.put(&key(20_000), Version { ts: Timestamp::from_u64(2), value: value() });
        assert!(cache.get(&key(20_000)).is_some() && cache.bytes() <= 64 << 10);
        let counted: usize = cache.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        assert_eq!(counted, cache.shards.iter().map(|shard| shard.lock().slots.len()).sum::<usize>());
        cache.set_bytes_max(0);
        cache.shrink();
        assert!(cache.counts.iter().all(|count| count.load(Ordering::Relaxed) == 0), "what went is counted no more");
    }

    /// In shards so full that other keys' hashes begin alike, whichever of the keys are there, and also where they are told again.
    #[test]
    fn many_are_replaced_where_they_are_here_and_nothing_else_is() {
        let cache = RowCache::new(16 << 20);
        let key = |n: u32| Bytes::copy_from_slice(&[&[0, 0, 0, 3][..], &n.to_be_bytes()].concat());
        let version =
            |ts: u64, value: &[u8]| Version { ts: Timestamp::from_u64(ts), value: Some(Bytes::copy_from_slice(value)) };
        let mut model = std::collections::BTreeMap::new();
        for n in (0..40_000u32).filter(|n| n % 3 > 0) {
            let newer = version(if n % 100 == 1 { 9 } else { 1 }, &n.to_be_bytes());
            cache.put(&key(n), newer.clone());
            model.insert(key(n), newer);
        }
        let mut together = Together::default();
        for (from, ts) in [(0, 4), (0, 4), (10_000, 5), (39_000, 6)] {
            let value = |n: u32| (n % 2 == 1).then(|| Bytes::from_static(b"new"));
            let writes: Vec<_> = (from..from + 4096).map(|n| (key(n), value(n))).collect();
            let lent: Vec<_> = writes.iter().map(|(key, value)| (&key[..], value.as_ref())).collect();
            cache.replace_all(&lent, Timestamp::from_u64(ts), &mut together);
            let mut took = together.took.drain(..);
            for (key, value) in writes {
                let older = model.get(&key).filter(|held| held.ts < Timestamp::from_u64(ts)).cloned();
                if older.is_some() {
                    model.insert(key.clone(), Version { ts: Timestamp::from_u64(ts), value });
                }
                assert_eq!(took.next(), Some(older), "{key:?} at {ts}");
            }
        }
        assert!((0..45_000).all(|n| cache.get(&key(n)).as_ref() == model.get(&key(n))));
        assert_eq!(cache.bytes(), model.iter().map(|(key, version)| cost(key, version)).sum::<usize>());
    }
}
