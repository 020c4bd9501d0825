//! Space is given back on a full disk, by merges of a few tables each.
//!
//! Problem: fjall merges what has grown, and all of a level at once where it must, for which a full disk has no room; and it knows nothing of what waits
//! in upper levels to hide what lies below. Idea: we merge level by level down to the last one, a little at a time, with strategies that take the level
//! that we name ([`levels`]); fjall itself rests meanwhile.

use super::{FjallEngine, INGESTION_BYTES, Open, TABLE_BYTES, of};
use crate::StoreError;
use crate::disk::real;
use crate::engine::{Engine, levels};
use fjall::AbstractTree;
use fjall::compaction::Leveled;
use lsm_tree::compaction::{CompactionStrategy, PullDown};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Where space could not be reclaimed it is tried again after so many calls at most: it fills the disk until it fails.
const PUT_OFF_CALLS_MAX: u32 = 40;
/// And after so many where nothing more could be merged a little at a time, and what is left did not fit. What would come of it is known until
/// something has changed ([`Rest`]).
const REST_CALLS_MAX: u32 = 6000;
/// That is: what may go has grown by this part,
const BURIED_PART: u64 = 16;
/// or what is free by this part and what an ingestion needs,
const FREE_PART: u64 = 4;
/// or so many runs have come.
const RUNS_MORE: usize = 4;
/// Merges of one call that reclaims space: who calls has other things to do, too.
const RECLAIM_STEPS: usize = 8;
/// Tables that it makes are this part of the others, so that later merges need less room; but not smaller than this.
const RECLAIM_TABLE_PART: u64 = 4;
const RECLAIM_TABLE_BYTES_MIN: u64 = 256 << 10;
/// What is left of a tree is written anew as a whole if it is at most so large: more would take too long.
pub(super) const RECLAIM_BYTES_MAX: u64 = 1 << 30;

/// What a look for space came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reclaimed {
    /// There is more.
    Part,
    All,
    /// One level found no room: what it had written is to be deleted, and then those above it are tried.
    Refused,
    /// Nothing more can be merged a little at a time, and what is left not at once.
    NoMore,
}

/// What a merge came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Made,
    Nothing,
    Refused,
}

/// What is known of it between calls.
pub(super) struct Reclaiming {
    rest: Mutex<Option<Rest>>,
    /// Levels that found no room since a step was made, a bit each.
    refused: AtomicU8,
    /// What is left is written anew as a whole if it is at most so large.
    bytes_max: u64,
    /// Levels that find no room, whatever there is.
    #[cfg(test)]
    pub(super) no_room: AtomicU8,
}

/// As things were when nothing more could be done.
struct Rest {
    buried: u64,
    runs: usize,
    free: u64,
    calls_left: u32,
}

impl Reclaiming {
    pub fn new(bytes_max: u64) -> Reclaiming {
        Reclaiming {
            rest: Mutex::new(None),
            refused: AtomicU8::new(0),
            bytes_max,
            #[cfg(test)]
            no_room: AtomicU8::new(0),
        }
    }

    /// Something changed that is not seen otherwise.
    pub fn wake(&self) {
        *self.rest.lock() = None;
    }

    fn is_refused(&self, level: usize) -> bool {
        self.refused.load(Ordering::Relaxed) & (1 << level) != 0
    }
}

impl FjallEngine {
    /// Whether things are as they were when nothing could be done.
    fn is_resting(&self, buried: u64) -> bool {
        let (runs, free) = (self.runs(), self.free());
        let mut rest = self.reclaiming.rest.lock();
        let goes_on = |rest: &mut Rest| {
            let more = buried > rest.buried.saturating_add(rest.buried / BURIED_PART)
                || runs >= rest.runs + RUNS_MORE
                || free > rest.free.saturating_add(rest.free / FREE_PART + INGESTION_BYTES);
            let left = rest.calls_left.checked_sub(1).filter(|_| !more);
            rest.calls_left = left.unwrap_or(0);
            left.is_some()
        };
        let rests = rest.as_mut().is_some_and(goes_on);
        if !rests {
            *rest = None;
        }
        rests
    }

    fn rest(&self, buried: u64, calls_left: u32) {
        let rest = Rest { buried, runs: self.runs(), free: self.free(), calls_left };
        *self.reclaiming.rest.lock() = Some(rest);
    }

    fn free(&self) -> u64 {
        self.room().map_or(0, |room| room.free)
    }

    /// Merges step by step, each of a few tables: what lies in the upper levels comes down to the last one, and what it hides goes.
    pub(super) fn reclaim_a_little(&self, buried: u64) -> Result<bool, StoreError> {
        if self.is_resting(buried) {
            return Err(StoreError::DiskFull);
        }
        self.revive()?;
        if !self.hold()?.quiet {
            self.reopen_as(true)?;
        }
        self.quiet_looks.store(0, Ordering::Relaxed);
        let open = self.hold()?;
        let merged = self.reclaim_some(&open, buried).map_err(|e| of("merging the engine", &e));
        drop(open);
        match merged {
            // The files of before are kept for readers of before until a later merge, for which a full disk may have no room and nobody a
            // reason. Opening deletes what no version names.
            Ok(Reclaimed::Part) => self.tidy().map(|()| false),
            Ok(Reclaimed::Refused) => self.reopen().map(|()| false),
            Ok(Reclaimed::All) => {
                self.merges.resume();
                self.reopen().map(|()| true)
            }
            Ok(Reclaimed::NoMore) => {
                // What may go is still there. Now fjall's own may find room, and when something has changed it is looked at again.
                self.merges.resume();
                let opened = self.reopen_as(false);
                self.rest(buried, REST_CALLS_MAX);
                opened.map(|()| false)
            }
            Err(error) => {
                let tidied = self.tidied(Err(error));
                self.rest(buried, PUT_OFF_CALLS_MAX);
                tidied.map(|()| false)
            }
        }
    }

    fn reclaim_some(&self, open: &Open, buried: u64) -> Result<Reclaimed, fjall::Error> {
        let table_bytes = real::room(&self.path).map_or(TABLE_BYTES, |room| room.table_bytes()) / RECLAIM_TABLE_PART;
        let before = open.present.approximate_len();
        let reclaimed = self.reclaim_steps(open, table_bytes.max(RECLAIM_TABLE_BYTES_MIN))?;
        // Each of them went with what it hid.
        let gone = before.saturating_sub(open.present.approximate_len()) as u64 / 2;
        match reclaimed {
            Reclaimed::NoMore if self.reclaim_last(open, buried, gone, self.reclaiming.bytes_max)? => {
                Ok(Reclaimed::All)
            }
            reclaimed => Ok(reclaimed),
        }
    }

    /// Merges a little: [`Reclaimed::Part`], [`Reclaimed::Refused`], or [`Reclaimed::NoMore`].
    ///
    /// A level that finds no room holds nothing up: the next call begins above it, and only where none has found any it is put off.
    pub(super) fn reclaim_steps(&self, open: &Open, table_bytes: u64) -> Result<Reclaimed, fjall::Error> {
        let tree = &open.present.tree;
        let refused = &self.reclaiming.refused;
        let step = |level: usize, strategy: Arc<dyn CompactionStrategy>| {
            #[cfg(test)]
            if self.reclaiming.no_room.load(Ordering::Relaxed) & (1 << level) != 0 {
                refused.fetch_or(1 << level, Ordering::Relaxed);
                return Ok(Step::Refused);
            }
            let before = tree.current_version().id();
            // Nobody reads by number: a reader holds the tables that it reads.
            let seen = open.database.visible_seqno();
            match self.merges.unleashed(|| tree.compact(strategy, seen)).map_err(fjall::Error::Storage) {
                Ok(_) if tree.current_version().id() != before => Ok(Step::Made),
                Ok(_) => Ok(Step::Nothing),
                Err(e) if of("merging the engine", &e) == StoreError::DiskFull => {
                    refused.fetch_or(1 << level, Ordering::Relaxed);
                    Ok(Step::Refused)
                }
                Err(e) => Err(e),
            }
        };
        for made in 0..RECLAIM_STEPS {
            let version = tree.current_version();
            let tables = version.level(0).map_or(0, |level| level.table_count());
            let sizes: Vec<u64> = version.iter_levels().map(|level| level.size()).collect();
            drop(version);
            // What cannot come down must not keep what waits above it from being merged: that is what deletions wait for.
            let mut came_down = Step::Nothing;
            if tables > 0 && !self.reclaiming.is_refused(0) {
                if let Some(level) = levels::swollen(tables, &sizes)
                    && !self.lacks(INGESTION_BYTES.saturating_add(sizes[level] + sizes[level + 1]))
                {
                    came_down = step(0, Arc::new(PullDown(level as u8, level as u8 + 1)))?;
                } else {
                    let narrow = levels::narrow(sizes[0], RECLAIM_TABLE_BYTES_MIN, table_bytes);
                    let ratios = levels::taking_in(tables, &sizes, narrow);
                    let leveled = Leveled::default().with_l0_threshold(1).with_table_target_size(narrow);
                    came_down = step(0, Arc::new(leveled.with_level_ratio_policy(ratios)))?;
                }
            }
            // Down to the last level, from the one above it that has something to give: one whose tables each span much (the header is in one)
            // stays as it is, as it would take the whole of the level below, and is passed over.
            for level in levels::from_below(&sizes).filter(|level| !self.reclaiming.is_refused(*level)) {
                if came_down != Step::Nothing {
                    break;
                }
                came_down = step(level, Arc::new(Self::taking_down(level, tables, &sizes, table_bytes)))?;
            }
            match came_down {
                Step::Made => {}
                Step::Refused => return Ok(Reclaimed::Refused),
                // Those that found no room may find what the others gave back.
                Step::Nothing if refused.swap(0, Ordering::Relaxed) == 0 => return Ok(Reclaimed::NoMore),
                Step::Nothing if made == 0 => return Err(fjall::Error::Io(ErrorKind::StorageFull.into())),
                Step::Nothing => return Ok(Reclaimed::Part),
            }
        }
        refused.store(0, Ordering::Relaxed);
        Ok(Reclaimed::Part)
    }

    /// What takes some of a level into the next one.
    fn taking_down(level: usize, tables: usize, sizes: &[u64], table_bytes: u64) -> Leveled {
        let leveled = Leveled::default().with_l0_threshold(1).with_table_target_size(table_bytes);
        let is_held = |level: &usize| sizes[*level] > 0;
        if (1..sizes.len() - 1).filter(is_held).eq([level]) {
            // Nothing is held but this and the last: the first level is to hold nothing at all, whatever it holds.
            return leveled.with_l0_threshold(0);
        }
        let base = match (1..level).any(|above| is_held(&above)) {
            true => table_bytes,
            // Tables become as small as that. It is what a few deletions pay that lie above others that cannot come down.
            false => levels::base_below(sizes[level], tables, table_bytes),
        };
        leveled.with_table_target_size(base).with_level_ratio_policy(levels::taking_down(level, sizes, base))
    }

    /// Nothing more can be merged a little at a time: what may go lies in the last level (a part of an index that was dropped), or a few deletions
    /// of large rows span all of it. All at once takes room for what stays.
    /// `false`: there is none, or it is more than `bytes_max`, and something may go. Of what may go so many are gone.
    pub(super) fn reclaim_last(
        &self,
        open: &Open,
        buried: u64,
        gone: u64,
        bytes_max: u64,
    ) -> Result<bool, fjall::Error> {
        let (bytes, entries) = (open.present.disk_space(), open.present.approximate_len().max(1) as u64);
        // With what may go goes what it hides.
        let left = entries.saturating_sub(2 * buried.saturating_sub(gone));
        let stays = u128::from(bytes) * u128::from(left) / u128::from(entries);
        let stays = u64::try_from(stays).unwrap_or(u64::MAX);
        if stays > bytes_max || self.lacks(INGESTION_BYTES.saturating_add(stays + stays / 8)) {
            return Ok(buried == 0);
        }
        self.merges.unleashed(|| self.rewrite(open)).map(|()| true)
    }
}
