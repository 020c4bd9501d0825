//! Collection: forgetting the past that no snapshot can read any more.
//!
//! The past goes by whole buckets of time, in which nothing needs to be looked at. Deletions stand in the present until nobody can look
//! behind them; then merges drop them, and where many of them wait, the present is written anew ([`Versions::compact`]).

use super::flush::Header;
use super::prefixes::{Prefix, prefix_of};
use super::retention::{COMMON, Filing, Moment, Threshold, Thresholds};
use super::{Sabotage, UNMERGED_RUNS_MAX, Versions};
use crate::engine::{SMALL_BYTES, Tree};
use crate::keys::{Bucket, Burial, Kept};
use crate::{Engine, StoreError};
use clock::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Fewer deletions than this do not make [`Versions::compaction_due`].
const GRAVES_MIN: u64 = 10_000;
/// The present is written anew when one entry in so many is a deletion that may go: each entry is then written about so often once more.
const GRAVES_PART: u64 = 5;
/// Where nothing else is to be done, when one in so many may go or is hidden by a newer one.
const IDLE_PART: u64 = 10;
/// But not for fewer than this.
const IDLE_MIN: u64 = 1_000;

/// Where so many runs of the present wait, no header is written by itself: the rest of those that the engine can bear are for what is in memory.
const RESTING_RUNS_MAX: usize = 100;

/// What there is of the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// Entries of the past, about.
    pub past: u64,
    /// Stretches of time that they lie in.
    pub buckets: u64,
    /// Deletions in the present, about.
    pub graves: u64,
    /// Those of them that may go.
    pub buried: u64,
}

impl<E: Engine> Versions<E> {
    /// Raises the thresholds, as far as open snapshots allow, gives the common one, and gives back the past below each. Snapshots
    /// below them are refused from now on. Cheap: to be called often, by one background thread.
    ///
    /// # Errors
    /// What the engine says; what was not given back goes with a later call.
    pub fn collect(&self, logged: impl Into<Threshold>) -> Result<Timestamp, StoreError> {
        let logged = logged.into();
        self.share_cache();
        let raised = self.raise(&logged)?;
        // Without the writer's lock: it may take a while, and flushes go on meanwhile.
        if self.drop_due.swap(false, Ordering::Relaxed) {
            let dropped = self.dropped.lock().clone();
            let done = self.engine.drop_past(&dropped);
            self.drop_due.store(done != Ok(true), Ordering::Relaxed);
            done?;
        }
        Ok(raised)
    }

    /// Raises the thresholds; gives the common one.
    fn raise(&self, logged: &Threshold) -> Result<Timestamp, StoreError> {
        let mut settled = self.settled.lock();
        if settled.as_ref() == Some(logged) {
            return Ok(self.snapshots.collected());
        }
        let _writers = (self.writer.lock(), self.present_writer.lock());
        let shift = self.config.bucket_shift;
        let mut dropped = self.dropped.lock();
        let shown = self.wholes.all().iter().map(|whole| whole.ts).min().unwrap_or(Timestamp::MAX);
        let in_layers = self.layers.read().newest_first().map(|layer| layer.min_ts).min().unwrap_or(Timestamp::MAX);
        let last = |(class, first): (&u8, &u64)| {
            Some((*class, Bucket { class: *class, number: first.checked_sub(1)? }.last_end(shift)))
        };
        let mut now = Moment {
            oldest: Timestamp::MAX,
            newest: self.prefixes.read().max_ts,
            unfiled: shown.min(in_layers),
            forgotten: dropped.iter().filter_map(last).collect(),
        };
        let mut filing = Filing::clone(&self.filing.read());
        let (common, aged, held_back) = self.snapshots.raise(|before, oldest| {
            now.oldest = oldest;
            let (after, aged, waits) = filing.turn(before, logged, &now, self.config.sabotage);
            let common = after.common;
            (after, (common, aged, waits || oldest < logged.highest()))
        });
        // A full disk may have raised it further; deletions go by what was logged.
        let threshold = logged.common.min(common).max(self.logged());
        let mut kept = Kept::new();
        for class in self.buckets.read().classes().into_iter().chain([COMMON]) {
            let first = aged.first(class, shift).number;
            if dropped.get(&class).is_none_or(|known| *known < first) {
                kept.insert(class, first);
            }
        }
        let turned = filing != **self.filing.read();
        let done = || (!held_back).then(|| logged.clone());
        if kept.is_empty() && !turned {
            *settled = done();
            return Ok(common);
        }
        // (Where merges rest nobody waits for them, and each header is one more run.)
        if self.engine.unmerged_runs() >= UNMERGED_RUNS_MAX || self.engine.runs() >= RESTING_RUNS_MAX {
            return Ok(common);
        }
        // A start must refuse what this one refuses: the thresholds are on disk before anything goes. And nothing is filed by what is not.
        let mut graves = self.graves.lock();
        let stays = |bucket: &Bucket| bucket.number >= aged.first(bucket.class, shift).number;
        let (left, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = graves.iter().partition(|(bucket, _)| stays(bucket));
        let buried: u64 = gone.into_values().sum();
        let thresholds = self.snapshots.thresholds();
        let header = Header {
            collected: threshold,
            floor: common,
            apart: thresholds.apart.clone(),
            filing: filing.clone(),
            graves: left.clone(),
            buried: self.buried.load(Ordering::Relaxed) + buried,
            hidden: self.hidden.load(Ordering::Relaxed),
            bucket_shift: shift,
            ..Header::read(&self.engine)?.unwrap_or_default()
        };
        self.write_header(&header)?;
        self.logged.store(threshold.as_u64(), Ordering::Release);
        *self.filing.write() = Arc::new(filing);
        *self.buried_below.lock() = self.buried_below(logged, threshold, &thresholds);
        self.tell_burial();
        *graves = left;
        self.buried.fetch_add(buried, Ordering::Relaxed);
        let mut buckets = self.buckets.write();
        for (class, first) in &kept {
            buckets.forget(Bucket { class: *class, number: *first });
            dropped.insert(*class, *first);
        }
        self.drop_due.store(true, Ordering::Relaxed);
        *settled = done();
        Ok(common)
    }

    /// Which deletions may go: by what was logged, and where nobody reads below.
    fn buried_below(&self, logged: &Threshold, common: Timestamp, thresholds: &Thresholds) -> Thresholds {
        if self.config.sabotage == Some(Sabotage::GravesAgeAlike) {
            return Thresholds { common, ..Thresholds::default() };
        }
        let wanted = |prefix: Prefix| {
            let found = logged.apart.binary_search_by_key(&prefix, |apart| prefix_of(&apart.index));
            found.ok().and_then(|at| logged.apart.get(at))
        };
        let of = |(prefix, ts): (&Prefix, &Timestamp)| {
            let logged = wanted(*prefix).map_or(common, |apart| apart.threshold);
            (*prefix, logged.min(*ts))
        };
        Thresholds { common, apart: thresholds.apart.iter().map(of).collect() }
    }

    /// Tells merges what they may drop. The caller holds the writer's lock.
    pub(super) fn tell_burial(&self) {
        let below = self.buried_below.lock().clone();
        let dead = self.dead.lock().keys().copied().collect();
        self.engine.bury(Burial { below, dead });
    }

    /// Whether so many deletions may go that the present is worth being written anew; where the node is `idle`, what newer entries hide
    /// counts, too.
    pub fn compaction_due(&self, idle: bool) -> bool {
        let buried = self.buried.load(Ordering::Relaxed);
        let hidden = self.hidden.load(Ordering::Relaxed);
        let entries = self.engine.entries(Tree::Present);
        buried >= GRAVES_MIN.max(entries / GRAVES_PART)
            || (idle && buried + hidden >= IDLE_MIN.max(entries / IDLE_PART))
    }

    /// Writes the present anew without deletions that may go, and without what newer entries hide: slow, for a thread of its own.
    ///
    /// # Errors
    /// What the engine says; nothing is lost.
    pub fn compact(&self) -> Result<(), StoreError> {
        self.counted(|engine| engine.compact().map(|()| true)).map(drop)
    }

    /// Gives back some of what deletions that may go take up, for a full disk ([`Engine::reclaim`]). `false`: there is more, call again.
    ///
    /// # Errors
    /// What the engine says; nothing is lost.
    pub fn reclaim(&self) -> Result<bool, StoreError> {
        let buried = self.buried.load(Ordering::Relaxed);
        let before = self.engine.entries(Tree::Present);
        let done = self.counted(|engine| engine.reclaim(buried));
        if done != Ok(true) {
            self.uncount(before.saturating_sub(self.engine.entries(Tree::Present)));
        }
        done
    }

    /// So many entries of the present went, of those that may go: what is counted of them was else taken to be there still, and reclaimed without
    /// end. Each count has its share. (What was ingested meanwhile makes it fewer: then something is looked for that is gone.)
    fn uncount(&self, gone: u64) {
        let counts = [&self.buried, &self.hidden].map(|count| (count, count.load(Ordering::Relaxed)));
        let all: u128 = counts.iter().map(|(_, count)| u128::from(*count)).sum();
        for (count, before) in counts {
            let share = (u128::from(gone) * u128::from(before)).div_ceil(all.max(1));
            let share = u64::try_from(share).unwrap_or(u64::MAX);
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_sub(share)));
        }
    }

    /// Runs what rewrites the present; what had to go before it is gone after it, unless it says `false`: that is given on.
    fn counted(&self, rewrite: impl FnOnce(&E) -> Result<bool, StoreError>) -> Result<bool, StoreError> {
        let counts = [&self.buried, &self.hidden].map(|count| (count, count.load(Ordering::Relaxed)));
        if !rewrite(&self.engine)? {
            return Ok(false);
        }
        self.compactions.fetch_add(1, Ordering::Relaxed);
        if counts.iter().all(|(_, before)| *before == 0) {
            return Ok(true);
        }
        for (count, before) in counts {
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_sub(before)));
        }
        // Else the next start would do it again.
        let _writers = (self.writer.lock(), self.present_writer.lock());
        let Some(header) = Header::read(&self.engine)? else { return Ok(true) };
        let [buried, hidden] = [&self.buried, &self.hidden].map(|count| count.load(Ordering::Relaxed));
        let graves = self.graves.lock().clone();
        let header = Header { buried, hidden, graves, ..header };
        self.write_header(&header)?;
        Ok(true)
    }

    /// Writes the header alone, also where what flushes keep free is not there: it takes a table of a few hundred bytes and a new list of tables, and
    /// whatever waits for it gives room back. On a full disk the past stayed for good, as nothing said that it may go. The reserve is given up for want
    /// of room only: an engine may refuse for other reasons, too. The caller holds the writers' locks.
    fn write_header(&self, header: &Header) -> Result<(), StoreError> {
        let header = || std::iter::once(header.change());
        let mut written = self.engine.ingest_small(Tree::Present, &mut header());
        let lacks_room = || self.engine.room().is_some_and(|room| room.free < SMALL_BYTES);
        if written == Err(StoreError::DiskFull) && lacks_room() && self.give_up_ballast()? {
            written = self.engine.ingest_small(Tree::Present, &mut header());
        }
        written?;
        self.engine.sync()
    }

    /// How much of the past there is.
    pub fn garbage(&self) -> Garbage {
        let buried = self.buried.load(Ordering::Relaxed);
        // One lock after the other: a collection holds the second while it waits for the first.
        let buckets = self.buckets.read().len() as u64;
        let graves: u64 = self.graves.lock().values().sum();
        Garbage { past: self.engine.entries(Tree::Past), buckets, graves: buried + graves, buried }
    }
}
