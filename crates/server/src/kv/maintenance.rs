//! The thread for space: versions go from memory to the engine, the log's segments come back, old versions are collected.

use super::compaction::Compaction;
use super::flush::{self, LastResort, RETRY_AFTER, SEGMENTS_MAX};
use super::reclaim::{FULL_TTL_SECONDS, Pressure, Reclaiming};
use super::{Inner, Room, retention};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use store::{Engine, StoreError};

/// The thread looks around this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The threshold of collection is raised this often, or four times per retention window if that is more often. Raising it costs a
/// record of the log.
const COLLECT_EVERY_NS: u64 = 10_000_000_000;
const COLLECT_EVERY_NS_MIN: u64 = 500_000_000;
/// Versions go to the engine at least this often, however few: it bounds the replay of a restart.
const FREEZE_EVERY_NS: u64 = 120_000_000_000;
/// And this often while there is a past to collect: a threshold counts once the engine holds what was before it.
const FREEZE_EVERY_NS_COLLECTING: u64 = 20_000_000_000;

/// Loaded rows are cached once nothing was loaded for so long: what is only a step to something else is dropped by then.
const WARM_AFTER_NS: u64 = 1_000_000_000;
/// So many rows at once, about a millisecond's work, and so long a rest behind them: who is waiting for the processor is not kept waiting for a whole slice of it.
const WARM_ROWS: usize = 1_000;
const WARM_REST: Duration = Duration::from_millis(1);
/// So often at a look: some hundredths of a second.
const WARM_TIMES: usize = 20;

/// Log written since the last freeze at which the next is due: a restart replays what no flush has taken over. Bytes, and records, which
/// may be small.
const FREEZE_LOG_BYTES: u64 = 64 << 20;
const FREEZE_LOG_RECORDS: u64 = 400_000;
/// With a full disk what is in memory is written out this often, for the log's sake.
const FULL_FREEZE_EVERY_NS: u64 = 1_000_000_000;

/// When the versions in memory were last frozen.
struct Frozen {
    at_ns: u64,
    log_bytes: u64,
    log_records: u64,
}

impl Frozen {
    fn now<E: Engine>(inner: &Inner<E>) -> Frozen {
        let counters = inner.node.counters();
        Frozen {
            at_ns: inner.monotonic_ns(),
            log_bytes: counters.log_bytes.get(),
            log_records: counters.log_records.get(),
        }
    }
    fn is_long_ago<E: Engine>(&self, inner: &Inner<E>, every_ns: u64) -> bool {
        let now = Frozen::now(inner);
        now.at_ns.saturating_sub(self.at_ns) >= every_ns
            || now.log_bytes - self.log_bytes >= FREEZE_LOG_BYTES
            || now.log_records - self.log_records >= FREEZE_LOG_RECORDS
    }
}

pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    let ttl_seconds = inner.options.gc_ttl_seconds;
    let mut told = Some(Arc::<sql::transaction::Retentions>::default());
    let mut given_up = store::versions::GivenUp::default();
    // What was replayed is written out at once: else the next crash replays it again.
    let mut frozen: Option<Frozen> = None;
    let mut collected_ns = inner.monotonic_ns();
    let mut compaction = Compaction::default();
    let mut warming = Warming::default();
    let (mut pressure, mut reclaiming) = (Pressure::default(), Reclaiming::default());
    let mut last = LastResort::default();
    while !inner.stopping.load(SeqCst) {
        std::thread::park_timeout(LOOK_EVERY);
        let now_ns = inner.monotonic_ns();
        // Who committed it does so, unless the client waited no longer. Until then it would cost all who read.
        inner.node.versions().place(usize::MAX);
        let room = Room::of(inner.node.versions(), inner.driver.log());
        let full = room == Room::Full;
        tell_room(inner, full);
        let room = pressure.look(inner.node.versions(), room, now_ns);
        inner.node.versions().limit_cache(inner.options.memory.row_cache_bytes());
        let ttl_seconds_max = room.ttl_seconds_max();
        let kept = inner.kept.lock().clone();
        let shortest = kept.as_ref().map_or(ttl_seconds, |kept| retention::shortest_seconds(kept, ttl_seconds));
        let collect_every_ns =
            (shortest.min(ttl_seconds_max).saturating_mul(250_000_000)).clamp(COLLECT_EVERY_NS_MIN, COLLECT_EVERY_NS);
        let garbage = inner.node.versions().garbage();
        let freeze_every_ns = match garbage.past + garbage.graves {
            0 => FREEZE_EVERY_NS,
            _ => FREEZE_EVERY_NS_COLLECTING.min(2 * collect_every_ns),
        };
        if frozen.as_ref().is_none_or(|frozen| freeze_due(inner, room, frozen, freeze_every_ns)) {
            frozen = Some(Frozen::now(inner));
            inner.node.freeze();
        }
        let flushed = flush_some(inner, &mut last);
        tell_given_up(inner, &mut given_up);
        match flushed {
            Ok(()) => last.look(inner.node.versions(), inner.driver.log()),
            Err(StoreError::DiskFull) => {
                tell_room(inner, true);
                std::thread::park_timeout(RETRY_AFTER);
            }
            Err(_) => {
                std::thread::park_timeout(RETRY_AFTER);
                continue;
            }
        }
        if let Err(e) = Room::prepare(inner.node.versions(), inner.driver.log()) {
            crate::log::warning("no space could be made ready for the log", &[("cause", &e)]);
            std::thread::park_timeout(RETRY_AFTER);
        }
        collect_some(inner, room, &mut reclaiming);
        compaction.look(inner.node.versions(), inner.node.counters().txn_commits.get(), now_ns);
        warming.look(inner, now_ns);
        // Deletions that may go wait for merges, not for a threshold.
        let past = garbage.past + (garbage.graves - garbage.buried) > 0 || inner.node.versions().active_bytes() > 0;
        let due = (past && now_ns.saturating_sub(collected_ns) >= collect_every_ns) || kept != told;
        if let Some(kept) = kept.filter(|_| due) {
            collected_ns = now_ns;
            let now = inner.clock.read();
            let now_us = now.interval.earliest().physical_us();
            let thresholds = retention::thresholds(&kept, ttl_seconds, ttl_seconds_max, now_us);
            if inner.node.collect(&now, thresholds).is_some() {
                inner.driver.lead(inner);
            }
            if told.as_ref() != Some(&kept) {
                // What ends from now on is to be filed by it: the engine must hold what was before.
                frozen = None;
                told = Some(kept);
            }
        }
    }
}

/// Loaded rows go to the row cache when loads rest.
#[derive(Default)]
struct Warming {
    /// Loads, and since when there was none.
    quiet: (u64, u64),
    /// Of the loads so far nothing is left to cache.
    done: bool,
}

impl Warming {
    fn look<E: Engine>(&mut self, inner: &Inner<E>, now_ns: u64) {
        let versions = inner.node.versions();
        let loads = versions.loads();
        if self.quiet.0 != loads {
            *self = Warming { quiet: (loads, now_ns), done: false };
        }
        if self.done || now_ns.saturating_sub(self.quiet.1) < WARM_AFTER_NS {
            return;
        }
        for _ in 0..WARM_TIMES {
            // What cannot be read is said to who asks for it.
            self.done = !versions.warm_loaded(WARM_ROWS).unwrap_or(false);
            if self.done || inner.stopping.load(SeqCst) || versions.loads() != self.quiet.0 {
                return;
            }
            std::thread::park_timeout(WARM_REST);
        }
    }
}

/// Lets ordinary writes in, or keeps them out.
pub(super) fn tell_room<E: Engine>(inner: &Inner<E>, full: bool) {
    if inner.full.swap(full, SeqCst) == full {
        return;
    }
    match full {
        true => {
            let kept = inner.options.gc_ttl_seconds.min(FULL_TTL_SECONDS);
            crate::log::warning(
                "the disk is full: only what frees space is written until there is room again, and whatever its retention the past is \
                 kept for a short while only. Free space, or delete rows; open transactions that are old hold the past",
                &[("kept_seconds", &kept)],
            )
        }
        false => crate::log::info("the disk has room again: everything is written", &[]),
    }
}

/// What a full disk took from readers of the past is said once for each time.
fn tell_given_up<E: Engine>(inner: &Inner<E>, told: &mut store::versions::GivenUp) {
    let now = inner.node.versions().given_up();
    if now.times > told.times {
        crate::log::warning(
            "the disk is full: old versions were given up so that the present can be written; AS OF SYSTEM TIME reaches no further \
             back than this. Free space, or shorten the retention of tables that are written much",
            &[("versions", &(now.versions - told.versions)), ("readable_from", &now.below)],
        );
        *told = now;
    }
}

/// Whether the versions in memory are to be written out.
fn freeze_due<E: Engine>(inner: &Inner<E>, room: Room, frozen: &Frozen, every_ns: u64) -> bool {
    let versions = inner.node.versions();
    let often = room == Room::Full && frozen.is_long_ago(inner, FULL_FREEZE_EVERY_NS);
    often
        || room.is_freeze_due(versions)
        || versions.freeze_due()
        || inner.driver.log().segments() > SEGMENTS_MAX
        || frozen.is_long_ago(inner, every_ns)
}

/// Writes frozen versions to the engine and gives the log's space back.
fn flush_some<E: Engine>(inner: &Inner<E>, last: &mut LastResort) -> Result<(), StoreError> {
    let versions = inner.node.versions();
    let flushed = || versions.flushed_position();
    let last = (last, inner.monotonic_ns());
    flush::flush_some(versions, inner.driver.log(), &inner.crowded, last, flushed, |why| inner.fail(why))
}

/// At the end: everything to the engine, so that the next start replays nothing.
pub(super) fn flush_all<E: Engine>(inner: &Inner<E>) {
    if inner.broken.lock().is_none() {
        inner.node.freeze();
        let _ = flush_some(inner, &mut LastResort::default());
    }
}

/// Gives the past below the threshold back, if one is allowed; where there is little room, what that freed in the engine at once.
fn collect_some<E: Engine>(inner: &Inner<E>, room: Room, reclaiming: &mut Reclaiming) {
    if let Err(e) = reclaiming.collect(inner.node.versions(), inner.node.collectable(), room) {
        inner.fail(&e.to_string());
    }
}
