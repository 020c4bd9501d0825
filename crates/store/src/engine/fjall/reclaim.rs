//! Space is given back on a full disk, by merges of a few tables each.
//!
//! Problem: fjall merges what has grown, and all of a level at once where it must, for which a full disk has no room; and it knows nothing of what waits
//! in upper levels to hide what lies below. Idea: we merge level by level down to the last one, a little at a time, with strategies that take the level
//! that we name ([`levels`]); fjall itself rests meanwhile.

use super::{FjallEngine, INGESTION_BYTES, Open, TABLE_BYTES, of};
use crate::StoreError;
use crate::disk::real;
use crate::engine::levels;
use fjall::AbstractTree;
use fjall::compaction::Leveled;
use lsm_tree::compaction::{CompactionStrategy, PullDown};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where space could not be reclaimed it is tried again after so many calls: it fills the disk until it fails.
const RECLAIM_PUT_OFF: u32 = 40;
/// And after so many where nothing more could be merged a little at a time, and what is left did not fit: for a part of them fjall merges by itself.
const RECLAIM_REST: u32 = 300;
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
    /// Nothing more can be merged a little at a time, and what is left not at once.
    NoMore,
}

impl FjallEngine {
    /// Merges step by step, each of a few tables: what lies in the upper levels comes down to the last one, and what it hides goes.
    pub(super) fn reclaim_a_little(&self, buried: u64) -> Result<bool, StoreError> {
        if self.reclaim_put_off.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
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
            Ok(Reclaimed::All) => {
                // Now fjall's own may find room.
                self.merges.resume();
                self.reopen().map(|()| true)
            }
            Ok(Reclaimed::NoMore) => {
                // What may go is still there. When others have given room back it is looked at again.
                self.reclaim_put_off.store(RECLAIM_REST, Ordering::Relaxed);
                self.merges.resume();
                self.reopen().map(|()| false)
            }
            Err(error) => {
                self.reclaim_put_off.store(RECLAIM_PUT_OFF, Ordering::Relaxed);
                self.tidied(Err(error))?;
                Ok(false)
            }
        }
    }

    fn reclaim_some(&self, open: &Open, buried: u64) -> Result<Reclaimed, fjall::Error> {
        let table_bytes = real::room(&self.path).map_or(TABLE_BYTES, |room| room.table_bytes()) / RECLAIM_TABLE_PART;
        match self.reclaim_steps(open, table_bytes.max(RECLAIM_TABLE_BYTES_MIN))? {
            Reclaimed::NoMore if self.reclaim_last(open, buried, RECLAIM_BYTES_MAX)? => Ok(Reclaimed::All),
            reclaimed => Ok(reclaimed),
        }
    }

    /// Merges a little: [`Reclaimed::Part`], or [`Reclaimed::NoMore`].
    pub(super) fn reclaim_steps(&self, open: &Open, table_bytes: u64) -> Result<Reclaimed, fjall::Error> {
        let tree = &open.present.tree;
        let step = |strategy: Arc<dyn CompactionStrategy>| {
            let before = tree.current_version().id();
            // Nobody reads by number: a reader holds the tables that it reads.
            let seen = open.database.visible_seqno();
            self.merges.unleashed(|| tree.compact(strategy, seen)).map_err(fjall::Error::Storage)?;
            Ok::<_, fjall::Error>(tree.current_version().id() != before)
        };
        for _ in 0..RECLAIM_STEPS {
            let version = tree.current_version();
            let tables = version.level(0).map_or(0, |level| level.table_count());
            let sizes: Vec<u64> = version.iter_levels().map(|level| level.size()).collect();
            drop(version);
            // What cannot come down must not keep what waits above it from being merged: that is what deletions wait for.
            if tables > 0 {
                if let Some(level) = levels::swollen(tables, &sizes)
                    && !self.lacks(INGESTION_BYTES.saturating_add(sizes[level] + sizes[level + 1]))
                {
                    step(Arc::new(PullDown(level as u8, level as u8 + 1)))?;
                    continue;
                }
                let narrow = levels::narrow(sizes[0], RECLAIM_TABLE_BYTES_MIN, table_bytes);
                let ratios = levels::taking_in(tables, &sizes, narrow);
                let leveled = Leveled::default().with_l0_threshold(1).with_table_target_size(narrow);
                if step(Arc::new(leveled.with_level_ratio_policy(ratios)))? {
                    continue;
                }
            }
            // Down to the last level, from the one above it that has something to give: one whose tables each span much (the header is in one)
            // stays as it is, as it would take the whole of the level below, and is passed over.
            let mut came_down = false;
            for level in levels::from_below(&sizes) {
                if step(Arc::new(Self::taking_down(level, tables, &sizes, table_bytes)))? {
                    came_down = true;
                    break;
                }
            }
            if !came_down {
                return Ok(Reclaimed::NoMore);
            }
        }
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
    /// `false`: there is none, or it is more than `bytes_max`, and something may go.
    pub(super) fn reclaim_last(&self, open: &Open, buried: u64, bytes_max: u64) -> Result<bool, fjall::Error> {
        let (bytes, entries) = (open.present.disk_space(), open.present.approximate_len().max(1) as u64);
        // With what may go goes what it hides.
        let left = entries.saturating_sub(2 * buried);
        let stays = u128::from(bytes) * u128::from(left) / u128::from(entries);
        let stays = u64::try_from(stays).unwrap_or(u64::MAX);
        if stays > bytes_max || self.lacks(INGESTION_BYTES.saturating_add(stays + stays / 8)) {
            return Ok(buried == 0);
        }
        self.merges.unleashed(|| self.rewrite(open)).map(|()| true)
    }
}
