//! Collection: forgetting the past that no snapshot can read any more.
//!
//! The past goes by whole buckets of time, in which nothing needs to be looked at. Deletions stand in the present until nobody can look
//! behind them; then merges drop them, and where many of them wait, the present is written anew ([`Versions::compact`]).

use super::flush::Header;
use super::{UNMERGED_RUNS_MAX, Versions};
use crate::engine::Tree;
use crate::keys::Bucket;
use crate::{Engine, StoreError};
use clock::Timestamp;
use std::sync::atomic::Ordering;

/// Fewer deletions than this do not make [`Versions::compaction_due`].
const GRAVES_MIN: u64 = 10_000;
/// The present is written anew when one entry in so many is a deletion that may go: each entry is then written about so often once more.
const GRAVES_PART: u64 = 5;
/// Where nothing else is to be done, when one in so many may go or is hidden by a newer one.
const IDLE_PART: u64 = 10;
/// But not for fewer than this.
const IDLE_MIN: u64 = 1_000;

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
    /// Raises the threshold to at most `threshold`, as far as open snapshots allow, gives it, and gives back the past below it. Snapshots
    /// below it are refused from now on. Cheap: to be called often, by a background thread.
    ///
    /// # Errors
    /// What the engine says; what was not given back goes with a later call.
    pub fn collect(&self, threshold: Timestamp) -> Result<Timestamp, StoreError> {
        self.share_cache();
        let _writer = self.writer.lock();
        let raised = self.snapshots.raise(threshold);
        // A full disk may have raised it further; deletions go by what was logged.
        let threshold = threshold.min(raised).max(self.logged());
        let shift = self.config.bucket_shift;
        // The bucket that the threshold is in waits until it has passed all of it, so that little is written often.
        let aged = Bucket::of(0, threshold.next(), shift);
        if aged.number <= self.dropped.load(Ordering::Acquire) || self.engine.unmerged_runs() >= UNMERGED_RUNS_MAX {
            return Ok(raised);
        }
        // A start must refuse what this one refuses: the threshold is on disk before anything goes.
        let mut graves = self.graves.lock();
        let header = Header {
            collected: threshold,
            floor: raised,
            graves: graves.clone(),
            bucket_shift: shift,
            ..Header::read(&self.engine)?.unwrap_or_default()
        };
        self.engine.ingest(Tree::Present, 0, &mut std::iter::once(header.change()))?;
        self.engine.sync()?;
        self.logged.store(threshold.as_u64(), Ordering::Release);
        self.engine.bury(threshold);
        let kept = graves.split_off(&aged.number);
        let buried: u64 = std::mem::replace(&mut *graves, kept).into_values().sum();
        self.buried.fetch_add(buried, Ordering::Relaxed);
        drop(graves);
        self.buckets.write().forget(aged);
        self.dropped.store(aged.number, Ordering::Release);
        self.engine.drop_past_below(&aged.lower())?;
        Ok(raised)
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
        self.counted(|engine| engine.compact())
    }

    /// Gives back at once what deletions that may go take up, for a full disk ([`Engine::reclaim`]).
    ///
    /// # Errors
    /// What the engine says; nothing is lost.
    pub fn reclaim(&self) -> Result<(), StoreError> {
        self.counted(|engine| engine.reclaim())
    }

    /// Runs what rewrites the present; what had to go before it is gone after it.
    fn counted(&self, rewrite: impl FnOnce(&E) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let counts = [&self.buried, &self.hidden].map(|count| (count, count.load(Ordering::Relaxed)));
        rewrite(&self.engine)?;
        for (count, before) in counts {
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_sub(before)));
        }
        Ok(())
    }

    /// How much of the past there is.
    pub fn garbage(&self) -> Garbage {
        let buried = self.buried.load(Ordering::Relaxed);
        Garbage {
            past: self.engine.entries(Tree::Past),
            buckets: self.buckets.read().len() as u64,
            graves: buried + self.graves.lock().values().sum::<u64>(),
            buried,
        }
    }
}
