//! The thread for space: versions go from memory to the engine, the log's segments come back.

use super::Inner;
use crate::kv::Room;
use node::cluster::Input;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use store::{Engine, StoreError};

/// The thread looks around this often.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// After a failed flush (a full disk) it waits this long.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// The log may have this many segments before the versions in memory are written out however few they are.
const SEGMENTS_MAX: usize = 12;
/// Frozen layers at which commits wait for the engine.
const CROWDED_LAYERS: usize = 4;
/// Versions go to the engine at least this often, however few: it bounds the replay of a restart.
const FREEZE_EVERY: Duration = Duration::from_secs(60);

pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    // What was replayed is written out at once: else the next crash replays it again.
    let mut frozen: Option<Instant> = None;
    while !inner.stopping.load(SeqCst) {
        std::thread::park_timeout(LOOK_EVERY);
        let versions = inner.member.versions();
        let room = Room::of(versions);
        tell_room(inner, room == Room::Full);
        versions.limit_cache(inner.memory.row_cache_bytes());
        let asked = inner.flush.swap(false, SeqCst);
        let long_ago = frozen.is_none_or(|at| at.elapsed() >= FREEZE_EVERY);
        let due = versions.freeze_due() || inner.journal.log().segments() > SEGMENTS_MAX || room != Room::Enough;
        if asked || long_ago || due {
            frozen = Some(Instant::now());
            inner.member.freeze();
        }
        match flush_some(inner) {
            Ok(()) => {}
            Err(StoreError::DiskFull) => {
                tell_room(inner, true);
                let _ = inner.journal.log().give_back_spares();
                std::thread::park_timeout(RETRY_AFTER);
            }
            Err(_) => {
                std::thread::park_timeout(RETRY_AFTER);
                continue;
            }
        }
        if room != Room::Full
            && let Err(e) = inner.journal.log().prepare()
        {
            crate::log::warning("no space could be made ready for the log", &[("cause", &e)]);
            std::thread::park_timeout(RETRY_AFTER);
        }
    }
}

/// Lets writes in, or keeps them out.
fn tell_room<E: Engine>(inner: &Inner<E>, full: bool) {
    if inner.full.swap(full, SeqCst) == full {
        return;
    }
    match full {
        true => crate::log::warning(
            "the disk is full: this node takes no writes of its clients until there is room; its ranges go on where the others have a majority",
            &[],
        ),
        false => crate::log::info("the disk has room again", &[]),
    }
}

/// Writes frozen versions to the engine and gives the log's space back.
fn flush_some<E: Engine>(inner: &Inner<E>) -> Result<(), StoreError> {
    let versions = inner.member.versions();
    loop {
        inner.crowded.store(versions.frozen_layers() >= CROWDED_LAYERS, SeqCst);
        match versions.flush() {
            Ok(true) => {
                inner.step_and_lead(Input::Flushed);
                let oldest = inner.member.oldest_record().0;
                if let Err(e) = inner.journal.log().truncate(oldest.saturating_sub(1)) {
                    crate::log::warning("the log's space could not be given back", &[("cause", &e)]);
                }
            }
            Ok(false) => return Ok(()),
            // They stay in memory.
            Err(StoreError::DiskFull) => return Err(StoreError::DiskFull),
            Err(e) => {
                inner.fail(&e.to_string());
                return Err(e);
            }
        }
    }
}

/// At the end: everything to the engine, so that the next start replays little.
pub(super) fn flush_all<E: Engine>(inner: &Inner<E>) {
    if inner.broken.lock().is_none() {
        inner.member.freeze();
        let _ = flush_some(inner);
    }
}
