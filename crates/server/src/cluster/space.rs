//! The thread for space: versions go from memory to the engine, the log's segments come back, the past is collected.

use super::Inner;
use crate::kv::compaction::Compaction;
use crate::kv::flush::{self, LastResort, RETRY_AFTER, SEGMENTS_MAX};
use crate::kv::reclaim::{Pressure, Reclaiming};
use crate::kv::{Room, Shell, retention};
use node::cluster::{FreezeReason, Frozen, Input};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use store::{Engine, StoreError};

/// The thread looks around this often, beside writers.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// And so often where nothing was written since it looked last: what it looks at are calls of the system.
const LOOK_EVERY_IDLE: Duration = Duration::from_millis(200);
/// What of the past may go is said this often, or four times per retention if that is more often.
const COLLECT_EVERY_NS: u64 = 10_000_000_000;
const COLLECT_EVERY_NS_MIN: u64 = 500_000_000;
/// Versions go to the engine at least this often, however few: it bounds the replay of a restart.
const FREEZE_EVERY: Duration = Duration::from_secs(60);
/// With a full disk so often, for the log's sake.
const FULL_FREEZE_EVERY: Duration = Duration::from_secs(1);

pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    // What was replayed is written out at once: else the next crash replays it again.
    let mut frozen: Option<Instant> = None;
    let mut collected_ns = inner.monotonic_ns();
    let mut compaction = Compaction::default();
    let (mut pressure, mut reclaiming) = (Pressure::default(), Reclaiming::default());
    let mut last = LastResort::default();
    inner.space.is_this_thread();
    let mut nap = LOOK_EVERY;
    while !inner.stopping.load(SeqCst) {
        std::thread::park_timeout(nap);
        let versions = inner.member.versions();
        let written_bytes = versions.active_bytes();
        let room = Room::of(versions, inner.journal.log());
        tell_room(inner, room == Room::Full);
        let now_ns = inner.monotonic_ns();
        let room = pressure.look(versions, room, now_ns);
        versions.limit_cache(inner.memory.row_cache_bytes());
        let asked = inner.flush.swap(false, SeqCst);
        let every = if room == Room::Full { FULL_FREEZE_EVERY } else { FREEZE_EVERY };
        let long_ago = frozen.is_none_or(|at| at.elapsed() >= every);
        let for_room = room.is_freeze_due(versions);
        let due = versions.freeze_due() || inner.journal.log().segments() > SEGMENTS_MAX;
        let is_asked_for = asked || long_ago || due || for_room;
        if is_asked_for && inner.member.freeze(reason_of(room, for_room)) != Frozen::PutOff {
            frozen = Some(Instant::now());
        }
        match flush_some(inner, &mut last) {
            Ok(()) => last.look(versions, inner.journal.log()),
            Err(StoreError::DiskFull) => {
                tell_room(inner, true);
                std::thread::park_timeout(RETRY_AFTER);
            }
            Err(_) => {
                std::thread::park_timeout(RETRY_AFTER);
                continue;
            }
        }
        if let Err(e) = Room::prepare(versions, inner.journal.log()) {
            crate::log::warning("no space could be made ready for the log", &[("cause", &e)]);
            std::thread::park_timeout(RETRY_AFTER);
        }
        collect(inner, room, now_ns, &mut collected_ns, &mut reclaiming);
        compaction.look(versions, inner.member.counters().txn_commits.get(), now_ns);
        // Who asks for a layer wakes it.
        let idle = room == Room::Enough && versions.frozen_layers() == 0 && versions.active_bytes() == written_bytes;
        nap = if idle { LOOK_EVERY_IDLE } else { LOOK_EVERY };
    }
}

/// Why a layer is to be closed, with so much room.
fn reason_of(room: Room, for_room: bool) -> FreezeReason {
    match room {
        Room::Tight if for_room => FreezeReason::Tight,
        Room::Full if for_room => FreezeReason::Room,
        _ => FreezeReason::Due,
    }
}

/// Says what of the past may go, and lets go what may.
fn collect<E: Engine>(inner: &Inner<E>, room: Room, now_ns: u64, collected_ns: &mut u64, reclaiming: &mut Reclaiming) {
    let Some(kept) = inner.kept.lock().clone() else { return };
    let ttl_seconds_max = room.ttl_seconds_max();
    let shortest = retention::shortest_seconds(&kept, inner.retention_seconds).min(ttl_seconds_max);
    let every_ns = shortest.saturating_mul(250_000_000).clamp(COLLECT_EVERY_NS_MIN, COLLECT_EVERY_NS);
    if now_ns.saturating_sub(*collected_ns) >= every_ns {
        *collected_ns = now_ns;
        let now = inner.clock.read();
        let now_us = now.interval.earliest().physical_us();
        inner.member.collect(&now, retention::thresholds(&kept, inner.retention_seconds, ttl_seconds_max, now_us));
        inner.settle(false);
    }
    if let Err(e) = reclaiming.collect(inner.member.versions(), inner.member.collectable(), room) {
        inner.fail(&e.to_string());
    }
}

/// Lets writes in, or keeps them out.
pub(super) fn tell_room<E: Engine>(inner: &Inner<E>, full: bool) {
    if inner.full.swap(full, SeqCst) == full {
        return;
    }
    inner.member.tell_disk_full(full);
    match full {
        true => crate::log::warning(
            "the disk is full: this node takes no writes of its clients until there is room; its ranges go on where the others have a majority",
            &[],
        ),
        false => crate::log::info("the disk has room again", &[]),
    }
}

/// Writes frozen versions to the engine and gives the log's space back.
fn flush_some<E: Engine>(inner: &Inner<E>, last: &mut LastResort) -> Result<(), StoreError> {
    let flushed = || {
        inner.step_and_lead(Input::Flushed);
        inner.member.oldest_record().0.saturating_sub(1)
    };
    let (versions, log) = (inner.member.versions(), inner.journal.log());
    let last = (last, inner.monotonic_ns());
    flush::flush_some(versions, log, &inner.crowded, last, flushed, |why| inner.fail(why))
}

/// At the end: everything to the engine, so that the next start replays little.
pub(super) fn flush_all<E: Engine>(inner: &Inner<E>) {
    if inner.broken.lock().is_none() {
        inner.member.freeze(FreezeReason::Room);
        let _ = flush_some(inner, &mut LastResort::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_closed_for_room_where_there_is_none_and_beside_what_is_staged_where_there_is_little() {
        let reasons = [Room::Enough, Room::Tight, Room::Full].map(|room| reason_of(room, true));
        assert_eq!(reasons, [FreezeReason::Due, FreezeReason::Tight, FreezeReason::Room]);
        assert_eq!(reason_of(Room::Full, false), FreezeReason::Due, "it is due for something else");
    }
}
