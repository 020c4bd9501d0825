//! Room on a disk: what is in memory and what was promised can be written out at any time, whatever else takes room; and where others fill the disk,
//! it goes on once they give back.

use bytes::Bytes;
use clock::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use store::disk::Room;
use store::engine::{Tree, Visit};
use store::keys::{Burial, Kept};
use store::versions::Demand;
use store::{Change, Engine, MemoryEngine, StoreError, Versions, VersionsConfig};

const MIB: u64 = 1 << 20;
/// All of the disk.
const TOTAL: u64 = 200 * MIB;
/// The log takes room by segments of so many bytes.
const SEGMENT: u64 = 8 * MIB;
/// What the log holds back.
const HELD_BACK: u64 = 4 * MIB;
/// Larger values are not kept: what they take is all that matters.
const KEPT_BYTES_MAX: usize = 4096;
static ZEROES: [u8; 8 << 20] = [0; 8 << 20];

/// A dumb model of a disk with an engine on it, which has files, merges them, and nothing else.
#[derive(Default)]
struct Model {
    engine: MemoryEngine,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    demand: Arc<Demand>,
    /// What each key's newest entry takes.
    live: BTreeMap<Bytes, u64>,
    /// Files that are merged, and those that wait for it.
    merged: u64,
    unmerged: u64,
    /// What a merge under way has written.
    merging: u64,
    log: u64,
    others: u64,
    ballast: u64,
    /// Runs of the present that wait.
    runs: usize,
    /// It writes nothing, whatever room there is.
    refuses: bool,
    /// Entries of the present that newer ones hide, and no merge has met.
    hidden: u64,
    /// Merges do not look at what is to be written.
    careless: bool,
}

impl State {
    fn free(&self) -> u64 {
        let used = self.merged + self.unmerged + self.merging + self.log + self.others + self.ballast;
        TOTAL.saturating_sub(used)
    }

    fn room(&self) -> Room {
        Room { free: self.free(), total: TOTAL }
    }

    /// Merges go on until `left` must be left, and are over once they have written all that is live.
    fn merge(&mut self, bytes: u64, left: u64) {
        let all: u64 = self.live.values().sum();
        let left = if self.careless { 0 } else { left };
        let more = bytes.min(self.free().saturating_sub(left));
        self.merging += more;
        if self.merging >= all {
            (self.merged, self.unmerged, self.merging) = (all, 0, 0);
        } else if more < bytes {
            // It found no room and ended: what it had written goes.
            self.merging = 0;
        }
    }
}

impl Model {
    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.lock().unwrap())
    }

    fn write(&self, tree: Tree, pad: u64, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        let changes: Vec<Change> = changes.collect();
        let size = |(key, value): &Change| (key.len() + value.as_ref().map_or(0, Bytes::len)) as u64;
        let bytes: u64 = changes.iter().map(size).sum();
        self.with(|state| {
            if state.free() < bytes + pad || state.refuses {
                return Err(StoreError::DiskFull);
            }
            state.unmerged += bytes;
            for change in &changes {
                state.live.insert(change.0.clone(), size(change));
            }
            Ok(())
        })?;
        let small = |(key, value): Change| (key, value.map(|value| value.slice(..value.len().min(KEPT_BYTES_MAX))));
        self.engine.ingest(tree, 0, &mut changes.into_iter().map(small))
    }
}

impl Engine for Model {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.engine.get(tree, key)
    }
    fn scan(&self, tree: Tree, from: &[u8], to: &[u8], reverse: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.engine.scan(tree, from, to, reverse, visit)
    }
    fn ingest(&self, tree: Tree, _: usize, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        self.write(tree, 4 * MIB, changes)
    }
    fn ingest_at_last(&self, tree: Tree, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        self.with(|state| state.merging = 0);
        self.write(tree, 0, changes)
    }
    fn unmerged_bytes(&self) -> u64 {
        self.with(|state| state.unmerged)
    }
    fn heed(&self, demand: &Arc<Demand>) {
        self.with(|state| state.demand = demand.clone());
    }
    fn has_ballast(&self) -> bool {
        self.with(|state| state.ballast > 0)
    }
    fn set_ballast(&self, bytes: u64) -> Result<(), StoreError> {
        self.with(|state| state.ballast = bytes);
        Ok(())
    }
    fn sync(&self) -> Result<(), StoreError> {
        self.engine.sync()
    }
    fn bury(&self, burial: Burial) {
        self.engine.bury(burial);
    }
    fn drop_past(&self, kept: &Kept) -> Result<bool, StoreError> {
        self.engine.drop_past(kept)
    }
    fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }
    fn entries(&self, tree: Tree) -> u64 {
        let hidden = if tree == Tree::Present { self.with(|state| state.hidden) } else { 0 };
        self.engine.entries(tree) + hidden
    }
    fn runs(&self) -> usize {
        self.with(|state| state.runs)
    }
    fn reclaim(&self, _: u64) -> Result<bool, StoreError> {
        self.with(|state| state.hidden = 0);
        self.engine.compact()?;
        Ok(false)
    }
    fn disk_bytes(&self) -> u64 {
        self.with(|state| state.merged + state.unmerged)
    }
    fn room(&self) -> Option<Room> {
        Some(self.with(|state| state.room()))
    }
}

/// Draws from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// Small ones more often.
    fn bytes(&mut self) -> usize {
        let magnitude = self.below(14);
        (512 << magnitude) + self.below(512 << magnitude) as usize
    }
}

/// A node on the disk: its log, its versions, and what a restart replays.
struct World {
    engine: Arc<Model>,
    versions: Versions<Arc<Model>>,
    dice: Dice,
    /// Of the log: records that no flush has taken over, and all that they take.
    records: Vec<(u64, u64, usize)>,
    written: u64,
    position: u64,
}

impl World {
    fn new(seed: u64, careless: bool) -> World {
        let engine = Arc::new(Model::default());
        engine.with(|state| (state.log, state.careless) = (SEGMENT, careless));
        let versions = Self::open(&engine);
        World { engine, versions, dice: Dice(seed), records: Vec::new(), written: 0, position: 0 }
    }

    fn open(engine: &Arc<Model>) -> Versions<Arc<Model>> {
        let config = VersionsConfig { cache_bytes: 0, ..VersionsConfig::default() };
        Versions::open(engine.clone(), config).unwrap()
    }

    fn growth(&self, bytes: usize) -> u64 {
        let log = self.engine.with(|state| state.log);
        (self.written + bytes as u64 + HELD_BACK).saturating_sub(log).div_ceil(SEGMENT) * SEGMENT
    }

    fn put(&mut self, key: u64, bytes: usize) {
        self.position += 1;
        self.written += bytes as u64;
        let grown = (self.written).saturating_sub(self.engine.with(|state| state.log)).div_ceil(SEGMENT) * SEGMENT;
        self.engine.with(|state| state.log += grown);
        self.records.push((self.position, key, bytes));
        self.apply(self.position, key, bytes);
    }

    fn apply(&self, position: u64, key: u64, bytes: usize) {
        let value = Bytes::from_static(&ZEROES[..bytes]);
        let key = Bytes::from(key.to_be_bytes().to_vec());
        self.versions.apply(Timestamp::from_u64(position), &[(key, Some(value))]);
    }

    fn commit(&mut self) {
        let (key, bytes, frees) = (self.dice.below(200), self.dice.bytes(), self.dice.below(4) == 0);
        if bytes < 64 << 10 && self.versions.lacks_room(self.growth(0)) == 0 && self.versions.goes_unasked(bytes) {
            return self.put(key, bytes);
        }
        if let Some(_promise) = self.versions.promise(bytes, self.growth(bytes), frees) {
            // Others take room between the promise and the commit.
            self.merge();
            self.put(key, bytes);
        } else if frees && self.versions.lend(bytes) {
            self.put(key, bytes);
        }
    }

    fn load(&mut self) {
        let (key, bytes) = (1000 + self.dice.below(200), self.dice.bytes());
        if let Some(_promise) = self.versions.promise(bytes, 0, false) {
            let row = (Bytes::from(key.to_be_bytes().to_vec()), Bytes::from_static(&ZEROES[..bytes]));
            self.versions.load(Timestamp::from_u64(self.position), &[row]).unwrap();
        }
    }

    fn merge(&mut self) {
        let (bytes, gently) = (self.dice.below(40 * MIB), self.dice.below(2) == 0);
        self.engine.with(|state| {
            let left = match gently {
                true => state.room().needed(state.demand.at_ease()),
                false => 2 * MIB + state.demand.at_least(),
            };
            state.merge(bytes, left);
        });
    }

    fn freeze(&mut self) {
        self.versions.freeze(self.position, Bytes::new());
    }

    fn flushed(&mut self) {
        let done = self.versions.flushed_position();
        self.records.retain(|(position, ..)| *position > done);
        if self.records.is_empty() {
            self.written = 0;
            self.engine.with(|state| state.log = SEGMENT);
        }
    }

    fn flush(&mut self) {
        self.freeze();
        while self.versions.flush() == Ok(true) {}
        self.flushed();
        let _ = self.versions.set_ballast();
    }

    /// Killed, and started again: everything of the log is in memory.
    fn restart(&mut self) {
        self.engine.with(|state| state.merging = 0);
        self.versions = Self::open(&self.engine);
        for (position, key, bytes) in &self.records {
            self.apply(*position, *key, *bytes);
        }
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0 => self.restart(),
            1..=3 => self.flush(),
            4 => self.freeze(),
            5..=8 => self.merge(),
            9 => self.load(),
            _ => self.commit(),
        }
    }

    /// What is in memory can be written out.
    fn fits(&self) -> bool {
        let unwritten = self.versions.unwritten_bytes() as u64;
        self.engine.with(|state| state.free()) >= unwritten
    }

    /// Writes everything out as the thread for space does.
    fn flush_at_last(&mut self) -> bool {
        self.freeze();
        let _ = self.versions.give_up_ballast();
        while self.versions.frozen_layers() > 0 {
            if self.versions.flush() != Ok(true) && self.versions.flush_at_last() != Ok(true) {
                return false;
            }
        }
        self.flushed();
        true
    }
}

/// What ends in a large layer is kept for who reads there only beside what the present needs. It took the last of the disk, and was given up when he went: the layer fitted never again.
#[test]
fn a_reader_takes_nothing_of_what_is_promised() {
    const ROWS: u32 = 8000;
    // Parts of the past are some 5 MB, the deletions 4: wherever the last part ends, one of these has no room for them.
    for left in 19..24 {
        let mut world = World::new(1, false);
        let key = |n: u32| Bytes::from([&[b'k'; 500][..], &n.to_be_bytes()].concat());
        let all = |value: Option<Bytes>| (0..ROWS).map(|n| (key(n), value.clone())).collect::<Vec<_>>();
        world.position = 1;
        world.versions.apply(Timestamp::from_u64(1), &all(Some(Bytes::from_static(&ZEROES[..4000]))));
        world.flush();
        let reader = world.versions.open_snapshot(Timestamp::from_u64(1)).unwrap();
        world.position = 2;
        world.versions.apply(Timestamp::from_u64(2), &all(None));
        world.engine.with(|state| state.others = state.free() - left * MIB);
        world.freeze();
        assert_eq!(world.versions.flush(), Err(StoreError::DiskFull));
        world.versions.give_up_ballast().unwrap();
        let mut past = Vec::new();
        for _ in 0..3 {
            assert_eq!(world.versions.flush_at_last(), Err(StoreError::DiskFull), "somebody reads there");
            assert!(world.fits(), "{left}: {} are free", world.engine.with(|state| state.free()));
            past.push(world.engine.with(|state| state.unmerged));
        }
        assert!(past.iter().all(|bytes| *bytes == past[0]), "no try takes more: {past:?}");
        assert!(world.versions.get(&key(7), Timestamp::from_u64(1)).unwrap().is_some());
        drop(reader);
        assert!(world.flush_at_last(), "{left}");
        assert_eq!((world.versions.overlay_bytes(), world.versions.given_up().times), (0, 1));
    }
}

#[test]
fn what_is_in_memory_can_be_written_out() {
    let mut fullest = TOTAL;
    for seed in 0..40 {
        let mut world = World::new(seed, false);
        for step in 0..150 {
            world.step();
            let free = world.engine.with(|state| state.free());
            fullest = fullest.min(free);
            assert!(world.fits(), "seed {seed}, step {step}: {free} are free for {}", world.versions.unwritten_bytes());
        }
        assert!(world.flush_at_last(), "seed {seed}");
        assert_eq!((world.versions.overlay_bytes(), world.versions.unwritten_bytes()), (0, 0), "seed {seed}");
    }
    assert!(fullest < TOTAL / 8, "no disk was full: {fullest} bytes were free at least");
}

/// The negative control: merges that do not look at the ledger take what it needs.
#[test]
fn merges_that_look_away_are_found_out() {
    let broken = (0..40).any(|seed| {
        let mut world = World::new(seed, true);
        (0..150).any(|_| {
            world.step();
            !world.fits()
        })
    });
    assert!(broken);
}

/// Others fill the disk to the last byte: what is set aside is enough for a layer that fits it, and when they give back, all is written.
#[test]
fn a_reserve_is_there_when_others_fill_the_disk() {
    for seed in 0..20 {
        let mut world = World::new(seed, false);
        assert_eq!(world.versions.set_ballast(), Ok(true));
        for _ in 0..50 {
            world.step();
        }
        assert!(world.flush_at_last());
        world.engine.with(|state| state.others = 0);
        let filled = match world.versions.set_ballast() {
            Ok(true) => world.engine.with(|state| {
                state.merging = 0;
                state.others = state.free();
                state.ballast
            }),
            // It is full by itself.
            other => {
                assert_eq!(other, Ok(false));
                continue;
            }
        };
        world.put(7, 64 << 10);
        world.freeze();
        assert_eq!(world.versions.flush(), Err(StoreError::DiskFull), "seed {seed}");
        assert!(world.versions.flush_at_last().is_err(), "seed {seed}: nothing was given up yet");
        assert!(filled > 1 << 20 && world.flush_at_last(), "seed {seed}: {filled} bytes were set aside");
        world.engine.with(|state| state.others = 0);
        assert_eq!(world.versions.overlay_bytes(), 0);
    }
}

/// The past of a disk that became full may go, and its room with it: to say so takes a few hundred bytes, and not what a flush keeps free. It stayed
/// for good, and the disk full.
#[test]
fn the_past_goes_where_no_layer_fits() {
    for (with_ballast, left) in [(false, 64 << 10), (true, 64 << 10), (true, 0)] {
        let mut world = World::new(1, false);
        for bytes in [100, 200, 300] {
            world.put(7, bytes);
            world.flush();
        }
        assert_eq!(world.engine.entries(Tree::Past), 2);
        if !with_ballast {
            world.versions.give_up_ballast().unwrap();
        }
        world.engine.with(|state| state.others = state.free() - left);
        world.put(8, 100);
        world.freeze();
        assert_eq!(world.versions.flush(), Err(StoreError::DiskFull), "nothing fits as it does elsewhere");
        // Long after the bucket of all that was.
        world.versions.collect(Timestamp::from_u64(u64::MAX / 2)).unwrap();
        assert_eq!(world.engine.entries(Tree::Past), 0);
        // It is given up where the header does not fit without it.
        assert_eq!(world.engine.has_ballast(), with_ballast && left > 0);
    }
}

/// An engine that refuses for another reason than want of room does not take what is set aside.
#[test]
fn a_reserve_stays_where_it_would_not_help() {
    let mut world = World::new(1, false);
    world.put(7, 100);
    world.flush();
    world.put(7, 200);
    world.flush();
    assert!(world.engine.has_ballast());
    world.engine.with(|state| state.refuses = true);
    assert_eq!(world.versions.collect(Timestamp::from_u64(u64::MAX / 2)), Err(StoreError::DiskFull));
    assert!(world.engine.has_ballast());
    // Nor is a header written where as many runs wait as it may.
    world.engine.with(|state| (state.refuses, state.runs) = (false, 100));
    let entries = world.engine.entries(Tree::Past);
    world.versions.collect(Timestamp::from_u64(u64::MAX / 2)).unwrap();
    assert_eq!(world.engine.entries(Tree::Past), entries);
    world.engine.with(|state| state.runs = 99);
    world.versions.collect(Timestamp::from_u64(u64::MAX / 2)).unwrap();
    assert_eq!((entries, world.engine.entries(Tree::Past)), (1, 0));
}

/// What steps gave back is counted no more, though they were not the last: it was reclaimed again without end, where there was no room for the rest.
#[test]
fn what_steps_gave_back_is_counted_no_more() {
    const ROWS: u64 = 100;
    let mut world = World::new(1, false);
    (0..ROWS).for_each(|key| world.put(key, 100));
    world.flush();
    for key in 0..ROWS {
        world.position += 1;
        let key = Bytes::from(key.to_be_bytes().to_vec());
        world.versions.apply(Timestamp::from_u64(world.position), &[(key, None)]);
    }
    world.flush();
    world.engine.with(|state| state.hidden = ROWS);
    world.versions.collect(Timestamp::from_u64(u64::MAX / 2)).unwrap();
    assert_eq!(world.versions.garbage().buried, ROWS);
    assert_eq!(world.versions.reclaim(), Ok(false), "there is more");
    assert_eq!(world.versions.garbage().buried, 0);
}
