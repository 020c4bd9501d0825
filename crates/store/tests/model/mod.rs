//! A dumb oracle for `Versions`, and the run that compares both.

use bytes::Bytes;
use clock::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use store::versions::Sabotage;
use store::{Engine, SnapshotGuard, Span, Versions, VersionsConfig, Write};

/// One step of a run. Numbers are reduced to what the state allows.
#[derive(Clone, Debug)]
pub enum Step {
    Apply(Vec<(u8, Option<u8>)>, u8),
    Freeze,
    Flush,
    FlushFails,
    SyncFails,
    Collect(u8),
    Crash(u8),
    Open(u8),
    Close(u8),
    Get(u8, u8),
    Between(u8, u8, u8),
    BetweenIn(u8, u8, u8, u8),
    Scan { from: u8, to: u8, snapshot: u8, reverse: bool, limit: u8 },
}

pub fn step() -> impl Strategy<Value = Step> {
    let write = (any::<u8>(), prop::option::weighted(0.8, any::<u8>()));
    prop_oneof![
        8 => (prop::collection::vec(write, 1..6), 1..4u8).prop_map(|(w, gap)| Step::Apply(w, gap)),
        2 => Just(Step::Freeze),
        2 => Just(Step::Flush),
        1 => Just(Step::FlushFails),
        1 => Just(Step::SyncFails),
        1 => any::<u8>().prop_map(Step::Collect),
        1 => any::<u8>().prop_map(Step::Crash),
        1 => any::<u8>().prop_map(Step::Open),
        1 => any::<u8>().prop_map(Step::Close),
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

struct Run<'w, W: World> {
    world: &'w mut W,
    versions: Option<Versions<W::E>>,
    book: Book,
    log: Vec<(u64, Vec<Write>)>,
    now: u64,
    guards: Vec<SnapshotGuard>,
}

fn config(dice: u8, sabotage: Option<Sabotage>) -> VersionsConfig {
    VersionsConfig {
        cache_bytes: [0, 64 * 400, 1 << 20][dice as usize % 3],
        freeze_bytes: 1 << 20,
        bucket_shift: STEP + dice as u32 % 5,
        hot_after: [0, 3, 64][dice as usize / 3 % 3],
        sabotage,
    }
}

pub fn run<W: World>(world: &mut W, steps: &[Step], dice: u8) -> Result<(), TestCaseError> {
    let versions = Some(Versions::open(world.open(), config(dice, world.sabotage())).unwrap());
    let mut run = Run { world, versions, book: Book::new(), log: Vec::new(), now: 1, guards: Vec::new() };
    for step in steps {
        run.step(step)?;
    }
    for n in 0..24 {
        run.get(&key(n), run.now)?;
    }
    Ok(())
}

impl<W: World> Run<'_, W> {
    fn versions(&self) -> &Versions<W::E> {
        self.versions.as_ref().unwrap()
    }

    /// A snapshot that may still be read.
    fn snapshot(&self, dice: u8) -> u64 {
        let oldest = self.versions().collected().at();
        let width = self.now + 2 - oldest.min(self.now);
        oldest + dice as u64 * width / 255
    }

    fn visible(&self, key: &Bytes, snapshot: u64) -> Option<(u64, Bytes)> {
        let (at, value) = self.book.get(key)?.iter().rev().find(|(at, _)| *at <= snapshot)?;
        Some((*at, value.clone()?))
    }

    fn get(&self, key: &Bytes, snapshot: u64) -> Result<(), TestCaseError> {
        let got = self.versions().get(key, ts(snapshot)).unwrap();
        prop_assert_eq!(got.map(|(t, v)| (t.at(), v)), self.visible(key, snapshot), "get {:?} at {}", key, snapshot);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Apply(writes, gap) => self.apply(writes, *gap),
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
            Step::Get(k, s) => self.get(&key(*k), self.snapshot(*s))?,
            Step::Between(k, a, b) => self.between(&key(*k), self.snapshot(*a), self.snapshot(*b))?,
            Step::BetweenIn(k, l, a, b) => {
                self.between_in(&(key(*k)..key(*l)), self.snapshot(*a), self.snapshot(*b))?;
            }
            Step::Scan { from, to, snapshot, reverse, limit } => {
                self.scan(&(key(*from)..key(*to)), self.snapshot(*snapshot), *reverse, *limit as usize)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, writes: &[(u8, Option<u8>)], gap: u8) {
        self.now += gap as u64;
        let writes: BTreeMap<Bytes, Option<Bytes>> =
            writes.iter().map(|(k, v)| (key(*k), v.map(|v| Bytes::from(vec![v; v as usize % 9])))).collect();
        let writes: Vec<Write> = writes.into_iter().collect();
        for (key, value) in &writes {
            self.book.entry(key.clone()).or_default().push((self.now, value.clone()));
        }
        self.versions().apply(ts(self.now), &writes);
        self.log.push((self.now, writes));
    }

    fn collect(&mut self, dice: u8) -> Result<(), TestCaseError> {
        let asked = self.snapshot(dice).min(self.now);
        let before = self.versions().collected().at();
        let oldest_open = self.guards.iter().map(|g| g.timestamp().at()).min();
        let threshold = self.versions().collect(ts(asked)).unwrap();
        prop_assert_eq!(threshold.at(), asked.min(oldest_open.unwrap_or(asked)).max(before));
        prop_assert_eq!(threshold, self.versions().collected());
        if threshold.at() > 0 {
            prop_assert!(self.versions().open_snapshot(threshold.prev()).is_err());
        }
        self.versions().compact().unwrap();
        Ok(())
    }

    fn crash(&mut self, dice: u8) -> Result<(), TestCaseError> {
        let (safe, collected) = (self.versions().flushed_position(), self.versions().collected());
        self.guards.clear();
        self.versions = None;
        self.world.crash(dice);
        let versions = Versions::open(self.world.open(), config(dice, self.world.sabotage())).unwrap();
        let recovered = versions.recovered().clone();
        prop_assert!(recovered.position >= safe);
        prop_assert!(versions.collected() <= collected);
        if recovered.position > 0 {
            prop_assert_eq!(recovered.state, format!("state {}", recovered.position));
        }
        for (at, writes) in &self.log[recovered.position as usize..] {
            versions.apply(ts(*at), writes);
        }
        // What was collected stays refused: a node replays its threshold from the log as well.
        versions.collect(collected).unwrap();
        self.versions = Some(versions);
        Ok(())
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
        let each = self.book.range(span.clone()).map(|(k, _)| self.newest_between(k, lo, hi));
        let [all, changes] = each.fold([None, None], |[a, b], [c, d]| [a.max(c), b.max(d)]);
        let got = self.versions().version_between_in(span, ts(lo), ts(hi)).unwrap().map(|t| t.at());
        prop_assert!(
            changes <= got && got <= all,
            "between {lo} and {hi} in {span:?}: {got:?}, not {changes:?}..={all:?}"
        );
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
        let mut got = Vec::new();
        let mut rest = Some(span.clone());
        while let Some(span) = rest.take() {
            let chunk = self.versions().scan(&span, ts(snapshot), reverse, limit).unwrap();
            prop_assert!(chunk.rows.len() <= limit);
            prop_assert!(chunk.rest.as_ref() != Some(&span), "a chunk must move on");
            got.extend(chunk.rows.into_iter().map(|(k, at, v)| (k, at.at(), v)));
            rest = chunk.rest;
        }
        prop_assert_eq!(got, want, "scan of {:?} at {}", span, snapshot);
        Ok(())
    }
}
