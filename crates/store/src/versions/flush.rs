//! Freezing the active layer and writing frozen ones to the engine.
//!
//! A flush writes what ended to the past first, and then, in one step with the log's position, the newest versions to the present. A
//! crash in between leaves versions in the past whose ends the present does not know yet: nobody asks the past about a key whose
//! present version is old enough, and the flush after the replay writes the same entries again (design §4a.9).

use super::overlay::{Chain, ENTRY_BYTES, Layer};
use super::prefixes::{Bounds, Prefix, prefix_of};
use super::retention::{Filing, Thresholds, counted};
use super::{Frozen, OVERLAY_LAYERS_MAX, Sabotage, UNMERGED_RUNS_MAX, Version, Versions, damaged_key};
use crate::engine::{Change, Tree};
use crate::keys::{Bucket, Past, Present};
use crate::{Engine, StoreError, keys};
use bytes::{Buf, BufMut, Bytes};
use clock::Timestamp;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Version of the header's form.
const FORMAT: u32 = 3;
/// What is followed and had to be read from the engine is held up to this size, if the layer is smaller, and written before more is read.
const FOLLOWED_BYTES_MIN: usize = 4 << 20;
/// So many chains are looked at ahead for what they follow, and no more once that has so many bytes.
const AHEAD: usize = 1024;
const AHEAD_BYTES: usize = 1 << 20;
/// Entries that a walk passes in vain before it is given up, and so many keys are looked up.
const MISSED_MAX: usize = 32;
const SPARSE: usize = 128;
/// What one of them costs beside its value.
const FOLLOWED_OVERHEAD: usize = 80;

/// What a full disk made the store give up of the past since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Flushes that found no room for what they had to keep of the past.
    pub times: u64,
    /// Versions that they did not keep, at least.
    pub versions: u64,
    /// Snapshots below this are refused since then, whatever the retention.
    pub below: Timestamp,
}

/// The store's own entry in the engine: written in the same step as the versions that it speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub position: u64,
    pub max_ts: Timestamp,
    /// The threshold that was logged: deletions at or below it may go.
    pub collected: Timestamp,
    /// Snapshots below it are refused: the threshold, or more where a full disk had no room for the past.
    pub floor: Timestamp,
    /// The thresholds of those that are kept apart, as they were raised.
    pub apart: BTreeMap<Prefix, Timestamp>,
    pub filing: Filing,
    /// Deletions that the present holds, by the bucket of their time: what [`Versions::compact`] would free in time.
    pub graves: BTreeMap<Bucket, u64>,
    /// Those that may go, and what newer entries hide: what it would free now.
    pub buried: u64,
    pub hidden: u64,
    /// How wide the past's buckets are: what it was when the store was made.
    pub bucket_shift: u32,
    pub state: Bytes,
}

impl Header {
    fn key() -> Bytes {
        keys::meta("header")
    }

    /// `None` in a store that was just made.
    pub fn read(engine: &impl Engine) -> Result<Option<Header>, StoreError> {
        let corrupt = |what: &str| StoreError::Corrupt { place: "the engine's header".into(), what: what.into() };
        let Some(raw) = engine.get(Tree::Present, &Self::key())? else {
            return Ok(None);
        };
        let Some((body, sum)) = raw.split_last_chunk::<4>() else {
            return Err(corrupt("it is too short"));
        };
        if crc32fast::hash(body) != u32::from_be_bytes(*sum) {
            return Err(corrupt("its checksum does not match"));
        }
        let mut body = raw.slice(..raw.len() - 4);
        if body.len() < 56 {
            return Err(corrupt("it is too short"));
        }
        let format = body.get_u32();
        if format < FORMAT {
            let cause = format!(
                "the store has format {format}, which was written by an earlier version, and this one reads format {FORMAT}; dump it with \
                 pg_dump on that version and load it into a new store"
            );
            return Err(StoreError::Failed { doing: "opening the store", cause });
        }
        if format > FORMAT {
            return Err(corrupt(&format!("format {format}, while this program writes format {FORMAT}")));
        }
        let position = body.get_u64();
        let max_ts = Timestamp::from_u64(body.get_u64());
        let collected = Timestamp::from_u64(body.get_u64());
        let floor = Timestamp::from_u64(body.get_u64());
        let bucket_shift = body.get_u32();
        let (buried, hidden) = (body.get_u64(), body.get_u64());
        let short = || corrupt("it is too short");
        let (filing, apart) = Filing::decode(&mut body).ok_or_else(short)?;
        let mut graves = BTreeMap::new();
        for _ in 0..counted(&mut body, 17).ok_or_else(short)? {
            let bucket = Bucket { class: body.get_u8(), number: body.get_u64() };
            graves.insert(bucket, body.get_u64());
        }
        let header = Header {
            position,
            max_ts,
            collected,
            floor,
            apart,
            filing,
            graves,
            buried,
            hidden,
            bucket_shift,
            state: body,
        };
        Ok(Some(header))
    }

    /// Writes that of a store that was just made.
    pub fn make(engine: &impl Engine, bucket_shift: u32) -> Result<Header, StoreError> {
        let header = Header { bucket_shift, ..Header::default() };
        engine.ingest(Tree::Present, ENTRY_BYTES, &mut std::iter::once(header.change()))?;
        engine.sync()?;
        Ok(header)
    }

    pub fn change(&self) -> Change {
        let mut raw = Vec::with_capacity(32 + self.state.len());
        raw.put_u32(FORMAT);
        raw.put_u64(self.position);
        raw.put_u64(self.max_ts.as_u64());
        raw.put_u64(self.collected.as_u64());
        raw.put_u64(self.floor.as_u64());
        raw.put_u32(self.bucket_shift);
        raw.put_u64(self.buried);
        raw.put_u64(self.hidden);
        self.filing.encode(&self.apart, &mut raw);
        raw.put_u32(self.graves.len() as u32);
        for (bucket, graves) in &self.graves {
            raw.put_u8(bucket.class);
            raw.put_u64(bucket.number);
            raw.put_u64(*graves);
        }
        raw.put_slice(&self.state);
        raw.put_u32(crc32fast::hash(&raw));
        (Self::key(), Some(Bytes::from(raw)))
    }
}

impl<E: Engine> Versions<E> {
    /// Whether the active layer is large enough to be frozen.
    pub fn freeze_due(&self) -> bool {
        self.layers.read().active.bytes >= self.config.freeze_bytes
    }

    /// Bytes that the active layer holds, about.
    pub fn active_bytes(&self) -> usize {
        self.layers.read().active.bytes
    }

    /// Whether layers hold as much as they may, however long a flush or a merge takes: whoever writes is to wait. Cheap.
    pub fn is_overlay_full(&self) -> bool {
        self.is_overlay_full_beside(0)
    }

    /// As [`Versions::is_overlay_full`], beside so many bytes that nobody is to wait for.
    pub fn is_overlay_full_beside(&self, bytes: usize) -> bool {
        self.overlay_bytes().saturating_sub(bytes) >= OVERLAY_LAYERS_MAX * self.config.freeze_bytes
    }

    /// Layers that wait for [`Versions::flush`].
    pub fn frozen_layers(&self) -> usize {
        self.layers.read().frozen.len()
    }

    /// The log below and at this position is in the engine, synced: segments up to it may be recycled.
    pub fn flushed_position(&self) -> u64 {
        self.flushed.load(Ordering::Acquire)
    }

    /// Closes the active layer. It holds the effects of all commands up to `position` and none after it; `state` is
    /// whatever else the caller must know at that position after a restart (undecided prepares, range bounds).
    /// Gives `false` where nothing happened since the last freeze. Cheap, unless a command was shown
    /// and is not in its place ([`Versions::place`]): the caller may hold its own locks.
    pub fn freeze(&self, position: u64, state: Bytes) -> bool {
        if self.config.sabotage != Some(Sabotage::ClosesWhatIsHalfPlaced) {
            while self.place(usize::MAX) {}
        }
        let mut layers = self.layers.write();
        let last = layers.frozen.last().map_or(self.flushed_position(), |f| f.position);
        debug_assert!(position >= last, "the applied position never goes back: {position} after {last}");
        if position == last && layers.active.is_empty() {
            return false;
        }
        let layer = std::mem::take(&mut layers.active);
        layers.frozen.push(Arc::new(Frozen { layer, position, state }));
        layers.freezes += 1;
        true
    }

    /// Writes the oldest frozen layer to the engine and syncs it: slow, for a background thread. Gives `false` where
    /// none waits, and where the engine has to merge first: call again later, as after an error; the layer is still in
    /// memory. Meanwhile [`Versions::frozen_layers`] tells when to hold writers back.
    ///
    /// # Errors
    /// What the engine says.
    pub fn flush(&self) -> Result<bool, StoreError> {
        self.hot.trim(|| self.forgettable());
        let _writer = self.writer.lock();
        self.engine.merge();
        if self.waits_for_merges() {
            return Ok(false);
        }
        self.flush_oldest(false)
    }

    /// Whether the engine has to merge before the next layer is written.
    fn waits_for_merges(&self) -> bool {
        // Where the disk fills, what is to be merged stays small: it needs room, too.
        let runs_max = if self.is_tight() { UNMERGED_RUNS_MAX / 2 } else { UNMERGED_RUNS_MAX };
        self.engine.unmerged_runs() >= runs_max
    }

    /// Whether layers wait for merges that the engine does not begin: space has to be reclaimed ([`Versions::reclaim`]).
    pub fn waits_in_vain(&self) -> bool {
        self.frozen_layers() > 0 && self.engine.merges_in_vain() && self.waits_for_merges()
    }

    /// As [`Versions::flush`], where that found no room and nothing else gives some: waits for no merge, keeps nothing free, and tries. What
    /// does not fit leaves everything as it was. Slow where it fails: not to be tried all the time.
    ///
    /// # Errors
    /// What the engine says.
    pub fn flush_at_last(&self) -> Result<bool, StoreError> {
        let _writer = self.writer.lock();
        self.flush_oldest(true)
    }

    /// The caller holds the writer's lock. `at_last`: there is no room, as far as is known.
    fn flush_oldest(&self, at_last: bool) -> Result<bool, StoreError> {
        let Some(frozen) = self.layers.read().frozen.first().cloned() else {
            return Ok(false);
        };
        let layer = &frozen.layer;
        let (thresholds, filing) = (self.snapshots.thresholds(), self.filing.read().clone());
        let chains: Chains<'_> = layer.chains().collect();
        let max_ts = {
            let mut prefixes = self.prefixes.write();
            prefixes.widen(layer.newest_by_prefix(), ends(layer), layer.max_ts);
            prefixes.max_ts
        };
        let past_last = self.config.sabotage == Some(Sabotage::PresentFirst);
        let mut followed = if past_last { 0 } else { self.keep_past(layer, &chains, &thresholds, &filing, at_last)? };
        let present_writer = self.present_writer.lock();
        let mut graves = self.graves.lock();
        let mut after = graves.clone();
        bury(&chains, &filing, &mut after, self.config.bucket_shift);
        let thresholds = self.snapshots.thresholds();
        let header = Header {
            position: frozen.position,
            max_ts,
            collected: self.logged(),
            floor: thresholds.common,
            apart: thresholds.apart.clone(),
            filing: Filing::clone(&filing),
            graves: after.clone(),
            buried: self.buried.load(Ordering::Relaxed),
            hidden: self.hidden.load(Ordering::Relaxed),
            bucket_shift: self.config.bucket_shift,
            state: frozen.state.clone(),
        };
        let present = chains.iter().filter_map(|(key, chain)| {
            let newest = chain.last()?;
            Some((keys::present(key), Some(Present::encode(newest.ts, newest.value.as_deref()))))
        });
        let bytes = present_bytes(&chains);
        let mut present = std::iter::once(header.change()).chain(present);
        match at_last {
            true => self.engine.ingest_at_last(Tree::Present, &mut present)?,
            false => self.engine.ingest(Tree::Present, bytes, &mut present)?,
        }
        self.engine.sync()?;
        *graves = after;
        drop((graves, present_writer));
        if past_last {
            followed = self.keep_past(layer, &chains, &thresholds, &filing, at_last)?;
        }
        let hides = followed + chains.iter().filter(|(_, chain)| chain.based).count() as u64;
        self.hidden.fetch_add(hides, Ordering::Relaxed);
        {
            let mut layers = self.layers.write();
            layers.frozen.remove(0);
            layers.retired += 1;
            self.ledger.demand.change(layer.bytes(), (0, 0));
            self.shown_bytes.fetch_sub(layer.shown_bytes, Ordering::Relaxed);
            if layers.frozen.is_empty() {
                self.ledger.written_out();
            }
        }
        self.flushed.store(frozen.position, Ordering::Release);
        Ok(true)
    }

    /// What a full disk made it give up of the past.
    pub fn given_up(&self) -> GivenUp {
        self.given_up.lock().clone()
    }

    /// Writes what ends in a layer, a part at a time where much of it has to be read first; gives how many versions had to be.
    fn keep_past(
        &self,
        layer: &Layer,
        chains: &Chains<'_>,
        thresholds: &Thresholds,
        filing: &Filing,
        at_last: bool,
    ) -> Result<u64, StoreError> {
        let (mut from, mut followed, mut ahead) = (0, 0, Ahead::default());
        while from < chains.len() {
            let part = Part::of(self, chains, from, layer.bytes, thresholds, filing, &mut ahead)?;
            (from, followed) = (part.to, followed + part.followed.len() as u64);
            if part.ended.is_empty() {
                continue;
            }
            let lost = || chains.iter().skip(part.from).map(|(key, _)| prefix_of(key)).collect();
            let kept = match self.has_room_for(part.followed_bytes) {
                true => {
                    self.buckets.write().add(part.buckets());
                    self.engine.ingest(Tree::Past, layer.bytes, &mut part.past())
                }
                false => Err(StoreError::DiskFull),
            };
            match kept {
                // A full disk must be able to take deletions: their tables have no past then, if nobody reads there.
                Err(StoreError::DiskFull) if self.snapshots.lift(layer.max_ts, &lost()) >= layer.max_ts => {
                    let mut given_up = self.given_up.lock();
                    given_up.times += 1;
                    given_up.versions += part.ended.len() as u64;
                    given_up.below = layer.max_ts.max(given_up.below);
                    break;
                }
                // Somebody reads there, and what is in memory is to go. (Where the present would not fit any more it waits for him: what took the last of the disk would stay, unreadable once he has gone.)
                Err(StoreError::DiskFull) if at_last && self.has_room_at_last(part.past_bytes as u64) => {
                    self.buckets.write().add(part.buckets());
                    self.engine.ingest_at_last(Tree::Past, &mut part.past())?;
                }
                done => done?,
            }
        }
        self.engine.sync()?;
        Ok(followed)
    }

    /// Whether so much of the past leaves room for the present: what took the last of it could never be given back, for that takes a
    /// flush.
    fn has_room_for(&self, past_bytes: usize) -> bool {
        let unwritten_bytes = (self.overlay_bytes() + past_bytes) as u64;
        self.engine.room().is_none_or(|room| room.free >= room.needed(unwritten_bytes))
    }

    /// Whether the engine may hold a key, by its prefix's `bounds`, which are read where they are another's.
    fn may_follow(&self, key: &[u8], bounds: &mut Option<(Prefix, Bounds)>) -> Result<bool, StoreError> {
        let prefix = prefix_of(key);
        if bounds.as_ref().is_none_or(|(known, _)| *known != prefix) {
            *bounds = Some((prefix, self.read_bounds(prefix)?));
        }
        Ok(matches!(bounds, Some((_, Some((least, greatest)))) if &least[..] <= key && key <= &greatest[..]))
    }

    /// What the engine holds of keys in ascending order, for the first of them at least: no more once that is [`AHEAD_BYTES`] large. Where
    /// they lie close together, as after a change of many rows, they are met by walking; elsewhere each is looked up.
    fn presents(&self, keys: &[&[u8]]) -> Result<Vec<Option<Version>>, StoreError> {
        // A copy: what the engine gives is a slice of a whole block, which would be held until the layer is written.
        let copied =
            |present: Present| Version { ts: present.ts, value: present.value.as_deref().map(Bytes::copy_from_slice) };
        let (mut found, mut bytes): (Vec<Option<Version>>, _) = (Vec::with_capacity(keys.len()), 0);
        let size = |version: &Version| version.value.as_ref().map_or(0, Bytes::len);
        let Some(upper) = keys.last().map(|last| keys::present(&[last, &[0][..]].concat())) else { return Ok(found) };
        while found.len() < keys.len() {
            let (mut missed, mut damaged, mut whole) = (0, None, true);
            let from = keys::present(keys[found.len()]);
            self.engine.scan(Tree::Present, &from, &upper, false, &mut |physical, entry| {
                let (key, present) = match keys::present_entry(physical, entry) {
                    Ok(entry) => entry,
                    Err(physical) => {
                        damaged = Some(damaged_key(&physical));
                        return ControlFlow::Break(());
                    }
                };
                while keys.get(found.len()).is_some_and(|asked| **asked < *key) {
                    found.push(None);
                }
                match keys.get(found.len()) {
                    Some(asked) if **asked == *key => {
                        let version = copied(present);
                        bytes += size(&version);
                        found.push(Some(version));
                        missed = 0;
                    }
                    _ => missed += 1,
                }
                whole = found.len() < keys.len() && missed < MISSED_MAX && bytes < AHEAD_BYTES;
                if whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            if let Some(damaged) = damaged {
                return Err(damaged);
            }
            if whole {
                found.resize(keys.len(), None);
            }
            for key in keys.iter().skip(found.len()).take(if missed < MISSED_MAX { 0 } else { SPARSE }) {
                let version = self.present(key)?.map(copied);
                bytes += version.as_ref().map_or(0, size);
                found.push(version);
                if bytes >= AHEAD_BYTES {
                    break;
                }
            }
            if bytes >= AHEAD_BYTES {
                break;
            }
        }
        Ok(found)
    }
}

/// What chains follow in the engine, read some ahead of where it is asked for.
#[derive(Default)]
struct Ahead {
    /// Chains below are known.
    to: usize,
    /// By chain.
    known: BTreeMap<u32, Version>,
    bounds: Option<(Prefix, Bounds)>,
}

impl Ahead {
    /// What a chain follows; asked in ascending order.
    fn of<E: Engine>(
        &mut self,
        versions: &Versions<E>,
        chains: &Chains<'_>,
        number: usize,
        thresholds: &Thresholds,
    ) -> Result<Option<Version>, StoreError> {
        if number >= self.to {
            let (mut asked, mut asked_keys) = (Vec::new(), Vec::new());
            let window = chains.iter().enumerate().skip(number).take(AHEAD);
            for (number, (key, chain)) in window {
                if wants(chain, thresholds.of(key)) && versions.may_follow(key, &mut self.bounds)? {
                    asked.push(number);
                    asked_keys.push(*key);
                }
            }
            let found = versions.presents(&asked_keys)?;
            self.to = asked.get(found.len()).copied().unwrap_or(number + AHEAD);
            let known = asked.into_iter().zip(found);
            self.known = known.filter_map(|(number, version)| Some((number as u32, version?))).collect();
        }
        Ok(self.known.remove(&(number as u32)))
    }
}

/// Whether what a chain follows is not known and can still be read.
fn wants(chain: &Chain, collected: Timestamp) -> bool {
    chain.first().is_some_and(|first| !chain.based && first.ts > collected)
}

/// What a layer holds, in key order.
type Chains<'a> = Vec<(&'a [u8], &'a Chain)>;

/// A version that ends in a layer: its place in the past, the chain, and the place in it of what ended it.
type Ended = (Bucket, u32, u32);

/// What ends in a part of a layer.
struct Part<'a> {
    chains: &'a Chains<'a>,
    /// The first chain that it looks at, and the first that it does not.
    from: usize,
    to: usize,
    /// What the first versions of some chains follow, by chain.
    followed: BTreeMap<u32, Version>,
    /// What that takes, about.
    followed_bytes: usize,
    /// What all that ends there takes in the past, about.
    past_bytes: usize,
    /// In the past's order.
    ended: Vec<Ended>,
}

impl<'a> Part<'a> {
    /// Looks for what ends in the layer and can still be read: the engine is asked where the layer does not know what a version follows,
    /// for about as much as the layer itself has, `layer_bytes`.
    fn of<E: Engine>(
        versions: &Versions<E>,
        chains: &'a Chains<'a>,
        from: usize,
        layer_bytes: usize,
        thresholds: &Thresholds,
        filing: &Filing,
        ahead: &mut Ahead,
    ) -> Result<Part<'a>, StoreError> {
        let bytes_max = layer_bytes.clamp(FOLLOWED_BYTES_MIN, versions.config.freeze_bytes.max(FOLLOWED_BYTES_MIN));
        let (mut followed, mut ended, mut bytes, mut to) = (BTreeMap::new(), Vec::new(), 0, from);
        let mut past_bytes = 0;
        for (number, (key, chain)) in chains.iter().enumerate().skip(from) {
            if bytes > bytes_max {
                break;
            }
            to = number + 1;
            let number = number as u32;
            let collected = thresholds.of(key);
            if wants(chain, collected)
                && let Some(version) = ahead.of(versions, chains, number as usize, thresholds)?
                && chain.first().is_some_and(|first| version.ts < first.ts)
            {
                bytes += version.value.as_ref().map_or(0, Bytes::len) + FOLLOWED_OVERHEAD;
                followed.insert(number, version);
            }
            let class = filing.class(key);
            for (place, version) in chain.iter().enumerate() {
                let before = match place {
                    0 => followed.get(&number),
                    _ => chain.get(place - 1),
                };
                if let Some(value) = before.and_then(|before| before.value.as_ref()).filter(|_| version.ts > collected)
                {
                    past_bytes += key.len() + value.len() + ENTRY_BYTES;
                    ended.push((Bucket::of(class, version.ts, versions.config.bucket_shift), number, place as u32));
                }
            }
        }
        ended.sort_unstable();
        Ok(Part { chains, from, to, followed, followed_bytes: bytes, past_bytes, ended })
    }

    fn buckets(&self) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = self.ended.iter().map(|(bucket, _, _)| *bucket).collect();
        buckets.dedup();
        buckets
    }

    fn past(&self) -> impl Iterator<Item = Change> + '_ {
        self.ended.iter().filter_map(|(bucket, number, place)| {
            let (key, chain) = self.chains.get(*number as usize)?;
            let before = match place {
                0 => self.followed.get(number)?,
                _ => chain.get(*place as usize - 1)?,
            };
            let end = chain.get(*place as usize)?.ts;
            Some((bucket.key(key, end), Some(Past::encode(before.ts, before.value.as_ref()?))))
        })
    }
}

/// About what the present's entries take.
fn present_bytes(chains: &Chains<'_>) -> usize {
    let size = |(key, chain): &(&[u8], &Chain)| {
        key.len() + chain.last().and_then(|v| v.value.as_ref()).map_or(0, Bytes::len) + ENTRY_BYTES
    };
    chains.iter().map(size).sum()
}

/// Counts the deletions.
fn bury(chains: &Chains<'_>, filing: &Filing, graves: &mut BTreeMap<Bucket, u64>, shift: u32) {
    for (key, chain) in chains {
        if let Some(deleted) = chain.last().filter(|newest| newest.value.is_none()) {
            *graves.entry(Bucket::of(filing.class(key), deleted.ts, shift)).or_default() += 1;
        }
    }
}

/// Least and greatest key of each prefix of a layer.
fn ends(layer: &Layer) -> Vec<(Prefix, Bytes, Bytes)> {
    let mut out: Vec<(Prefix, &[u8], &[u8])> = Vec::new();
    for (key, _) in layer.chains() {
        let prefix = prefix_of(key);
        match out.last_mut() {
            Some(last) if last.0 == prefix => last.2 = key,
            _ => out.push((prefix, key, key)),
        }
    }
    let copy = Bytes::copy_from_slice;
    out.into_iter().map(|(prefix, least, greatest)| (prefix, copy(least), copy(greatest))).collect()
}
