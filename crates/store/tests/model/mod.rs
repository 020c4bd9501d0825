//! A dumb oracle for `Versions`, and the run that compares both.

use bytes::Bytes;
use clock::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use store::versions::{Apart, Sabotage, Threshold};
use store::{Engine, Erased, SnapshotGuard, Span, StoreError, Versions, VersionsConfig, Write};

/// One step of a run. Numbers are reduced to what the state allows.
#[derive(Clone, Debug)]
pub enum Step {
    Apply(Vec<(u8, Option<u8>)>, u8),
    Show(Vec<(u8, Option<u8>)>, u8),
    Place(u8),
    Freeze,
    Flush,
    FlushFails,
    SyncFails,
    Collect(u8),
    Retain(u8, u8),
    Crash(u8),
    Open(u8),
    Close(u8),
    Load(u8),
    Erase(u8),
    Get(u8, u8),
    Between(u8, u8, u8),
    BetweenIn(u8, u8, u8, u8),
    Scan { from: u8, to: u8, snapshot: u8, reverse: bool, limit: u8 },
}

pub fn step() -> impl Strategy<Value = Step> {
    let write = || (any::<u8>(), prop::option::weighted(0.8, any::<u8>()));
    prop_oneof![
        6 => (prop::collection::vec(write(), 1..6), 1..4u8).prop_map(|(w, gap)| Step::Apply(w, gap)),
        3 => (prop::collection::vec(write(), 1..12), 1..4u8).prop_map(|(w, gap)| Step::Show(w, gap)),
        2 => (1..9u8).prop_map(Step::Place),
        2 => Just(Step::Freeze),
        2 => Just(Step::Flush),
        1 => Just(Step::FlushFails),
        1 => Just(Step::SyncFails),
        1 => any::<u8>().prop_map(Step::Collect),
        1 => any::<(u8, u8)>().prop_map(|(table, class)| Step::Retain(table, class)),
        1 => any::<u8>().prop_map(Step::Crash),
        1 => any::<u8>().prop_map(Step::Open),
        1 => any::<u8>().prop_map(Step::Close),
        1 => any::<u8>().prop_map(Step::Load),
        2 => any::<u8>().prop_map(Step::Erase),
        8 => any::<(u8, u8)>().prop_map(|(k, s)| Step::Get(k, s)),
        3 => any::<(u8, u8, u8)>().prop_map(|(k, a, b)| Step::Between(k, a, b)),
        3 => any::<(u8, u8, u8, u8)>().prop_map(|(k, l, a, b)| Step::BetweenIn(k, l, a, b)),
        4 => (any::<u8>(), any::<u8>(), any::<u8>(), any::<bool>(), 1..9u8)
            .prop_map(|(from, to, snapshot, reverse, limit)| Step::Scan { from, to, snapshot, reverse, limit }),
    ]
}

/// Twenty-four keys over four prefixes, some a prefix of another, some with zeroes.
fn key(n: u8) -> Bytes {
    let (table, row) = (n % 4, n / 4 % 6);
    let mut key = vec![0, 0, 0, table];
    key.extend_from_slice([&[][..], &[0], &[0, 0], &[0, 1], &[7], &[7, 0xff]][row as usize]);
    if table == 3 {
        key.truncate(2 + row as usize % 3);
    }
    Bytes::from(key)
}

/// Classes that tables may have, and how much higher (lower) than the common one their thresholds are.
const CLASSES: [(u8, i64); 4] = [(3, 9), (40, -12), (41, -14), (90, -60)];

/// A quarter of a second per step of the run's clock.
const STEP: u32 = 30;

fn ts(n: u64) -> Timestamp {
    Timestamp::from_u64(n << STEP)
}

/// Back to the run's clock.
trait RunTime {
    fn at(self) -> u64;
}

impl RunTime for Timestamp {
    fn at(self) -> u64 {
        self.as_u64() >> STEP
    }
}

/// What a run needs of an engine beside the trait.
pub trait World {
    type E: Engine;
    fn open(&mut self) -> Self::E;
    fn crash(&mut self, dice: u8);
    fn set_full(&mut self, full: bool);
    fn fail_sync(&mut self);
    /// A rule to break.
    fn sabotage(&self) -> Option<Sabotage> {
        None
    }
}

type Book = BTreeMap<Bytes, Vec<(u64, Option<Bytes>)>>;

/// An index that was loaded past the log; its number is used once.
struct Loaded {
    rows: Vec<(Bytes, Bytes)>,
    at: u64,
    /// It is being erased: nobody reads it any more.
    dropped: bool,
    erased: bool,
}

/// The first number of such an index: no scan of the others reaches there.
const LOADED_FROM: u8 = 10;

struct Run<'w, W: World> {
    world: &'w mut W,
    versions: Option<Versions<W::E>>,
    book: Book,
    log: Vec<(u64, Vec<Write>)>,
    now: u64,
    guards: Vec<SnapshotGuard>,
    /// Which of [`CLASSES`] a table has.
    classes: BTreeMap<u8, usize>,
    /// The last threshold that was logged.
    logged: Threshold,
    /// By number.
    loaded: Vec<Loaded>,
}

fn config(dice: u8, sabotage: Option<Sabotage>) -> VersionsConfig {
    VersionsConfig {
        cache_bytes: [0, 64 * 400, 1 << 20][dice as usize % 3],
        freeze_bytes: 1 << 20,
        bucket_shift: STEP + dice as u32 % 5,
        hot_after: [0, 3, 64][dice as usize / 3 % 3],
        keeps_ranges: !dice.is_multiple_of(5),
        erase_max: [2, 65_536][dice as usize % 2],
        show_min: usize::MAX,
        sabotage,
    }
}

pub fn run<W: World>(world: &mut W, steps: &[Step], dice: u8) -> Result<(), TestCaseError> {
    let versions = Some(Versions::open(world.open(), config(dice, world.sabotage())).unwrap());
    let mut run = Run {
        world,
        versions,
        book: Book::new(),
        log: Vec::new(),
        now: 1,
        guards: Vec::new(),
        classes: BTreeMap::new(),
        logged: Threshold::default(),
        loaded: Vec::new(),
    };
    for step in steps {
        run.step(step)?;
    }
    run.loaded_is_there()?;
    // All that is not collected is there, for each table by its own threshold.
    for key in (0..24).map(key) {
        let oldest = run.versions().collected_of(&key).at();
        for at in oldest.saturating_sub(1)..=run.now {
            run.get(&key, at)?;
        }
    }
    Ok(())
}

impl<W: World> Run<'_, W> {
    fn versions(&self) -> &Versions<W::E> {
        self.versions.as_ref().unwrap()
    }

    /// A snapshot that may still be read, of some table.
    fn snapshot(&self, dice: u8) -> u64 {
        let oldest = (0..24).map(|n| self.versions().collected_of(&key(n))).min().unwrap();
        self.snapshot_from(oldest.min(self.versions().collected()), dice)
    }

    fn snapshot_from(&self, oldest: Timestamp, dice: u8) -> u64 {
        let oldest = oldest.at();
        let width = self.now + 2 - oldest.min(self.now);
        oldest + dice as u64 * width / 255
    }

    fn visible(&self, key: &Bytes, snapshot: u64) -> Option<(u64, Bytes)> {
        let (at, value) = self.book.get(key)?.iter().rev().find(|(at, _)| *at <= snapshot)?;
        Some((*at, value.clone()?))
    }

    fn get(&self, key: &Bytes, snapshot: u64) -> Result<(), TestCaseError> {
        let oldest = self.versions().collected_of(key);
        let got = self.versions().get(key, ts(snapshot));
        if ts(snapshot) < oldest {
            let refused = StoreError::Collected { asked: ts(snapshot), oldest, key: Some(key.clone()) };
            prop_assert_eq!(got, Err(refused));
            return Ok(());
        }
        prop_assert_eq!(
            got.unwrap().map(|(t, v)| (t.at(), v)),
            self.visible(key, snapshot),
            "get {:?} at {}",
            key,
            snapshot
        );
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Apply(writes, gap) => {
                let (at, writes) = self.commit(writes, *gap);
                self.versions().apply(at, &writes);
            }
            Step::Show(writes, gap) => {
                let (at, writes) = self.commit(writes, *gap);
                self.versions().show(at, Arc::new(writes));
            }
            Step::Place(keys) => {
                self.versions().place(*keys as usize);
            }
            Step::Freeze => {
                self.versions().freeze(self.log.len() as u64, Bytes::from(format!("state {}", self.log.len())));
            }
            Step::Flush => {
                self.versions().flush().unwrap();
            }
            Step::FlushFails => {
                self.world.set_full(true);
                let _ = self.versions().flush();
                self.world.set_full(false);
            }
            // Of a flush that fails half-way a crash may keep the past without the present.
            Step::SyncFails => {
                if self.versions().frozen_layers() > 0 {
                    self.world.fail_sync();
                }
                while matches!(self.versions().flush(), Ok(true)) {}
            }
            Step::Collect(dice) => self.collect(*dice)?,
            Step::Crash(dice) => self.crash(*dice)?,
            Step::Open(dice) => self.guards.push(self.versions().open_snapshot(ts(self.snapshot(*dice))).unwrap()),
            Step::Close(dice) => {
                if !self.guards.is_empty() {
                    let _ = self.guards.swap_remove(*dice as usize % self.guards.len());
                }
            }
            Step::Load(rows) => self.load(*rows),
            Step::Erase(dice) => self.erase(*dice)?,
            Step::Get(k, s) => self.get(&key(*k), self.snapshot(*s))?,
            Step::Between(k, a, b) => {
                let oldest = self.versions().collected_of(&key(*k));
                self.between(&key(*k), self.snapshot_from(oldest, *a), self.snapshot_from(oldest, *b))?;
            }
            Step::BetweenIn(k, l, a, b) => {
                let span = key(*k)..key(*l);
                let oldest = self.versions().collected_in(&span);
                self.between_in(&span, self.snapshot_from(oldest, *a), self.snapshot_from(oldest, *b))?;
            }
            Step::Retain(table, class) => {
                match *class as usize % (CLASSES.len() + 1) {
                    0 => self.classes.remove(&(table % 3)),
                    class => self.classes.insert(table % 3, class - 1),
                };
            }
            Step::Scan { from, to, snapshot, reverse, limit } => {
                self.scan(&(key(*from)..key(*to)), self.snapshot(*snapshot), *reverse, *limit as usize)?;
            }
        }
        Ok(())
    }

    /// A command in the log, and in the book.
    fn commit(&mut self, writes: &[(u8, Option<u8>)], gap: u8) -> (Timestamp, Vec<Write>) {
        self.now += gap as u64;
        let writes: BTreeMap<Bytes, Option<Bytes>> =
            writes.iter().map(|(k, v)| (key(*k), v.map(|v| Bytes::from(vec![v; v as usize % 9])))).collect();
        let writes: Vec<Write> = writes.into_iter().collect();
        for (key, value) in &writes {
            self.book.entry(key.clone()).or_default().push((self.now, value.clone()));
        }
        self.log.push((self.now, writes.clone()));
        (ts(self.now), writes)
    }

    fn load(&mut self, rows: u8) {
        // Its time is that of a commit that is in the log.
        let Some((at, _)) = self.log.last() else { return };
        let (at, index) = (*at, LOADED_FROM + (self.loaded.len() % 200) as u8);
        let row = |n: u8| (Bytes::copy_from_slice(&[0, 0, 0, index, n]), Bytes::from(vec![n; n as usize % 9]));
        let rows: Vec<_> = (0..rows % 12).map(row).collect();
        // In two parts, between which the loader looks.
        let (first, second) = rows.split_at(rows.len() / 2);
        if self.loaded.len() < 200 && self.versions().load(ts(at), first).unwrap() {
            let span = Bytes::copy_from_slice(&[0, 0, 0, index])..Bytes::copy_from_slice(&[0, 0, 0, index + 1]);
            let seen = self.versions().scan(&span, ts(self.now), false, 100).unwrap().rows.len();
            assert_eq!(seen, first.len(), "the first part of a load");
            while !self.versions().load(ts(at), second).unwrap() {}
            self.loaded.push(Loaded { rows, at, dropped: false, erased: false });
        }
    }

    fn erase(&mut self, dice: u8) -> Result<(), TestCaseError> {
        if self.loaded.is_empty() {
            return Ok(());
        }
        let at = dice as usize % self.loaded.len();
        let erased = self.versions().erase([0, 0, 0, LOADED_FROM + at as u8]).unwrap();
        let loaded = &mut self.loaded[at];
        loaded.dropped = true;
        loaded.erased |= erased == Erased::All;
        self.loaded_is_there()
    }

    /// What was loaded is there, unless it was dropped; of what was erased is nothing there.
    fn loaded_is_there(&self) -> Result<(), TestCaseError> {
        for (number, loaded) in self.loaded.iter().enumerate().filter(|(_, l)| l.erased || !l.dropped) {
            let index = [0, 0, 0, LOADED_FROM + number as u8];
            let span = Bytes::copy_from_slice(&index)..Bytes::from([&index[..], &[0xff]].concat());
            let found = self.versions().scan(&span, ts(self.now), false, 100).unwrap();
            let rows = if loaded.erased { &[][..] } else { &loaded.rows[..] };
            let want: Vec<_> = rows.iter().map(|(key, value)| (key.clone(), ts(loaded.at), value.clone())).collect();
            prop_assert_eq!(found.rows, want, "index {:?}", index);
        }
        Ok(())
    }

    fn collect(&mut self, dice: u8) -> Result<(), TestCaseError> {
        let asked = self.snapshot_from(self.versions().collected(), dice).min(self.now);
        let apart = self.classes.iter().map(|(table, class)| {
            let (class, above) = CLASSES[*class];
            let threshold = ts(asked.saturating_add_signed(above).min(self.now));
            Apart { index: [0, 0, 0, *table], class, threshold }
        });
        self.logged = Threshold { common: ts(asked), apart: apart.collect() };
        let before = self.versions().collected().at();
        let each: Vec<Timestamp> = (0..24).map(|n| self.versions().collected_of(&key(n))).collect();
        let oldest_open = self.guards.iter().map(|g| g.timestamp().at()).min();
        let threshold = self.versions().collect(self.logged.clone()).unwrap();
        prop_assert_eq!(threshold.at(), asked.min(oldest_open.unwrap_or(asked)).max(before));
        prop_assert_eq!(threshold, self.versions().collected());
        let mut lowest = threshold;
        for (n, before) in each.into_iter().enumerate() {
            let now = self.versions().collected_of(&key(n as u8));
            lowest = lowest.min(now);
            let open = oldest_open.is_none_or(|open| now.at() <= open);
            prop_assert!(now == before || (now > before && open), "a threshold rises, and passes no snapshot");
            let mut index = key(n as u8).to_vec();
            index.resize(4, 0);
            let own = self.logged.apart.iter().find(|apart| apart.index[..] == index);
            let own = own.map_or(self.logged.common, |apart| apart.threshold);
            prop_assert!(now >= own.min(ts(oldest_open.unwrap_or(u64::MAX >> STEP))), "it is as high as was logged");
        }
        if lowest.at() > 0 {
            prop_assert!(self.versions().open_snapshot(lowest.prev()).is_err());
        }
        self.versions().compact().unwrap();
        Ok(())
    }

    fn crash(&mut self, dice: u8) -> Result<(), TestCaseError> {
        let safe = self.versions().flushed_position();
        let collected: Vec<_> = (0..24).map(|n| self.versions().collected_of(&key(n))).collect();
        self.guards.clear();
        self.versions = None;
        self.world.crash(dice);
        let versions = Versions::open(self.world.open(), config(dice, self.world.sabotage())).unwrap();
        let recovered = versions.recovered().clone();
        prop_assert!(recovered.position >= safe);
        for (n, before) in collected.into_iter().enumerate() {
            prop_assert!(versions.collected_of(&key(n as u8)) <= before);
        }
        if recovered.position > 0 {
            prop_assert_eq!(recovered.state, format!("state {}", recovered.position));
        }
        for (at, writes) in &self.log[recovered.position as usize..] {
            versions.apply(ts(*at), writes);
        }
        // What was collected stays refused: a node replays its threshold from the log as well.
        versions.collect(self.logged.clone()).unwrap();
        self.versions = Some(versions);
        self.loaded_is_there()
    }

    /// What may be named as the newest version of a key in `(lo, hi]`: the newest, or the newest that changed something. Deleting what is not
    /// there changes nothing, and leaves no trace in the past.
    fn newest_between(&self, key: &Bytes, lo: u64, hi: u64) -> [Option<u64>; 2] {
        let Some(chain) = self.book.get(key) else { return [None, None] };
        let within = |at: &u64| *at > lo && *at <= hi;
        let all = chain.iter().map(|(at, _)| *at).rfind(within);
        let before = std::iter::once(&None).chain(chain.iter().map(|(_, value)| value));
        let changes = chain.iter().zip(before).filter(|((_, now), before)| now.is_some() || before.is_some());
        [all, changes.map(|((at, _), _)| *at).filter(within).last()]
    }

    fn between(&self, key: &Bytes, lo: u64, hi: u64) -> Result<(), TestCaseError> {
        let want = self.newest_between(key, lo, hi);
        let got = self.versions().version_between(key, ts(lo), ts(hi)).unwrap();
        // A collected tombstone below the threshold may be forgotten; certification asks at or above it.
        prop_assert!(want.contains(&got.map(|t| t.at())), "between {lo} and {hi} of {key:?}: {got:?}, not {want:?}");
        let read = self.versions().read(key, ts(lo), ts(hi)).unwrap();
        prop_assert!(want.contains(&read.newer.map(|t| t.at())), "read between {lo} and {hi} of {key:?}");
        let value = read.version.and_then(|v| Some((v.ts.at(), v.value?)));
        prop_assert_eq!(value, self.visible(key, lo));
        Ok(())
    }

    fn between_in(&self, span: &Span, lo: u64, hi: u64) -> Result<(), TestCaseError> {
        if span.start >= span.end {
            return Ok(());
        }
        let changes = self.book.range(span.clone()).any(|(k, _)| self.newest_between(k, lo, hi)[1].is_some());
        let written = |key: &Bytes, at: u64| {
            let mut inside = self.book.range(span.clone()).filter(|(known, _)| *known == key);
            inside.any(|(_, chain)| chain.iter().any(|(t, _)| *t == at))
        };
        let got = self.versions().version_between_in(span, ts(lo), ts(hi)).unwrap().map(|(key, t)| (key, t.at()));
        match got {
            None => prop_assert!(!changes, "between {lo} and {hi} in {span:?} something changed"),
            Some((key, at)) => {
                let fits = at > lo && at <= hi && written(&key, at);
                prop_assert!(fits, "between {lo} and {hi} in {span:?}: {at} of {key:?}");
            }
        }
        Ok(())
    }

    fn scan(&self, span: &Span, snapshot: u64, reverse: bool, limit: usize) -> Result<(), TestCaseError> {
        let mut want: Vec<(Bytes, u64, Bytes)> = Vec::new();
        if span.start < span.end {
            let rows = self.book.range(span.clone());
            want.extend(rows.filter_map(|(k, _)| self.visible(k, snapshot).map(|(at, v)| (k.clone(), at, v))));
        }
        if reverse {
            want.reverse();
        }
        let oldest = self.versions().collected_in(span);
        if ts(snapshot) < oldest {
            let refused = StoreError::Collected { asked: ts(snapshot), oldest, key: Some(span.start.clone()) };
            prop_assert_eq!(self.versions().scan(span, ts(snapshot), reverse, limit), Err(refused));
            return Ok(());
        }
        let mut got = Vec::new();
        let mut rest = Some(span.clone());
        while let Some(span) = rest.take() {
            let chunk = self.versions().scan(&span, ts(snapshot), reverse, limit).unwrap();
            prop_assert!(chunk.rows.len() <= limit);
            prop_assert!(chunk.rest.as_ref() != Some(&span), "a chunk must move on");
            got.extend(chunk.rows.into_iter().map(|(k, at, v)| (k, at.at(), v)));
            rest = chunk.rest;
        }
        prop_assert_eq!(&got, &want, "scan of {:?} at {}", span, snapshot);
        if reverse {
            return Ok(());
        }
        let (mut got, mut rest) = (Vec::new(), Some(span.clone()));
        while let Some(span) = rest.take() {
            let rows = match self.versions().sweep(&span, ts(snapshot), limit).unwrap() {
                Some(chunk) => {
                    prop_assert!(chunk.places.len() <= limit);
                    prop_assert!(chunk.rest.as_ref() != Some(&span), "a chunk must move on");
                    got.extend(chunk.rows().map(|(k, v)| (k.to_vec(), v.to_vec())));
                    rest = chunk.rest;
                    continue;
                }
                None => self.versions().scan(&span, ts(snapshot), false, limit).unwrap(),
            };
            got.extend(rows.rows.into_iter().map(|(k, _, v)| (k.to_vec(), v.to_vec())));
            rest = rows.rest;
        }
        let want: Vec<_> = want.into_iter().map(|(k, _, v)| (k.to_vec(), v.to_vec())).collect();
        prop_assert_eq!(got, want.clone(), "sweep of {:?} at {}", span, snapshot);
        self.pick(span, snapshot, limit, &want)
    }

    /// What is left out of a sweep is what was not wanted, and nothing is left out unasked. (Asked again, as who picks does, it is exactly what is wanted.)
    fn pick(&self, span: &Span, snapshot: u64, limit: usize, all: &[(Vec<u8>, Vec<u8>)]) -> Result<(), TestCaseError> {
        let wanted = |value: &[u8]| value.iter().fold(value.len(), |sum, byte| sum + usize::from(*byte)) % 3 == 0;
        let (mut got, mut rest) = (Vec::new(), Some(span.clone()));
        while let Some(span) = rest.take() {
            let (mut asked, mut left_out) = (0, 0);
            let mut pick = |value: &[u8]| {
                asked += 1;
                match wanted(value) {
                    _ if asked == 2 * limit => ControlFlow::Break(()),
                    wanted => {
                        left_out += usize::from(!wanted);
                        ControlFlow::Continue(wanted)
                    }
                }
            };
            let rows: Vec<(Vec<u8>, Vec<u8>)>;
            match self.versions().sweep_picked(&span, ts(snapshot), limit, Some(&mut pick)).unwrap() {
                Some(chunk) => {
                    prop_assert!(chunk.places.len() <= limit && asked <= 2 * limit);
                    prop_assert!(chunk.rest.as_ref() != Some(&span), "a chunk must move on");
                    rows = chunk.rows().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
                    rest = chunk.rest;
                }
                None => {
                    let chunk = self.versions().scan(&span, ts(snapshot), false, limit).unwrap();
                    rows = chunk.rows.into_iter().map(|(k, _, v)| (k.to_vec(), v.to_vec())).collect();
                    rest = chunk.rest;
                }
            }
            let covers = |key: &[u8]| key >= &span.start[..] && rest.as_ref().is_none_or(|rest| key < &rest.start[..]);
            let within = all.iter().filter(|(key, _)| covers(key)).count();
            prop_assert_eq!(rows.len() + left_out, within, "sweep of {:?} at {}", span, snapshot);
            got.extend(rows.into_iter().filter(|(_, value)| wanted(value)));
        }
        let want: Vec<_> = all.iter().filter(|(_, value)| wanted(value)).cloned().collect();
        prop_assert_eq!(got, want, "picked of {:?} at {}", span, snapshot);
        Ok(())
    }
}
