//! The thread for space: versions go from memory to the engine, the log's segments come back, old versions are collected.

use super::Inner;
use bytes::Bytes;
use clock::Timestamp;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use store::{Engine, StoreError};

/// The thread looks around this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// After a failed flush (a full disk) it waits this long.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// The log may have this many segments before the versions in memory are written out however few they are.
const SEGMENTS_MAX: usize = 12;
/// Frozen layers at which commits wait for the engine.
const CROWDED_LAYERS: usize = 4;
/// Collections begin at least this far apart, and half a retention window: each walks the whole engine.
const COLLECT_EVERY_NS_MIN: u64 = 1_000_000_000;
/// Versions go to the engine at least this often, however few: it bounds the replay of a restart, and lets collection go on.
const FREEZE_EVERY_NS: u64 = 120_000_000_000;

/// How far a collection has come.
#[derive(Default)]
struct Sweep {
    threshold: Option<Timestamp>,
    from: Option<Bytes>,
}

pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    let collect_every_ns = (inner.options.gc_ttl_seconds * 500_000_000).max(COLLECT_EVERY_NS_MIN);
    let mut frozen_ns = inner.monotonic_ns();
    let mut collected_ns = frozen_ns;
    let mut sweep = Sweep::default();
    while !inner.stopping.load(SeqCst) {
        std::thread::park_timeout(LOOK_EVERY);
        let now_ns = inner.monotonic_ns();
        let due = inner.node.versions().freeze_due() || inner.driver.log().segments() > SEGMENTS_MAX;
        if due || now_ns.saturating_sub(frozen_ns) >= FREEZE_EVERY_NS.min(collect_every_ns) {
            frozen_ns = now_ns;
            inner.node.freeze();
        }
        let full = flush_some(inner).is_err();
        inner.full.store(full, SeqCst);
        if full {
            std::thread::park_timeout(RETRY_AFTER);
            continue;
        }
        if let Err(e) = inner.driver.log().prepare() {
            crate::log::warning("no space could be made ready for the log", &[("cause", &e)]);
            std::thread::park_timeout(RETRY_AFTER);
        }
        collect_some(inner, &mut sweep);
        if now_ns.saturating_sub(collected_ns) >= collect_every_ns {
            collected_ns = now_ns;
            propose_collection(inner);
        }
    }
}

/// Writes frozen versions to the engine and gives the log's space back.
fn flush_some<E: Engine>(inner: &Inner<E>) -> Result<(), StoreError> {
    let versions = inner.node.versions();
    loop {
        inner.crowded.store(versions.frozen_layers() >= CROWDED_LAYERS, SeqCst);
        match versions.flush() {
            Ok(true) => {
                if let Err(e) = inner.driver.log().truncate(versions.flushed_position()) {
                    crate::log::warning("the log's space could not be given back", &[("cause", &e)]);
                }
            }
            Ok(false) => return Ok(()),
            Err(StoreError::DiskFull) => {
                crate::log::warning("the disk is full: versions stay in memory", &[]);
                return Err(StoreError::DiskFull);
            }
            Err(e) => {
                inner.fail(&e.to_string());
                return Err(e);
            }
        }
    }
}

/// At the end: everything to the engine, so that the next start replays nothing.
pub(super) fn flush_all<E: Engine>(inner: &Inner<E>) {
    if inner.broken.lock().is_none() {
        inner.node.freeze();
        let _ = flush_some(inner);
    }
}

fn propose_collection<E: Engine>(inner: &Inner<E>) {
    let now = inner.clock.read();
    let ttl_us = inner.options.gc_ttl_seconds.saturating_mul(1_000_000);
    let threshold = Timestamp::new(now.interval.earliest().physical_us().saturating_sub(ttl_us), 0);
    if inner.node.collect(&now, threshold).is_some() {
        inner.driver.lead(inner);
    }
}

/// One bounded part of a collection, if one is allowed.
fn collect_some<E: Engine>(inner: &Inner<E>, sweep: &mut Sweep) {
    let Some(threshold) = inner.node.collectable() else { return };
    if sweep.from.is_none() && sweep.threshold == Some(threshold) {
        return;
    }
    sweep.threshold = Some(threshold);
    match inner.node.versions().collect(threshold, sweep.from.as_ref()) {
        Ok(done) => sweep.from = done.next,
        Err(StoreError::DiskFull) => {}
        Err(e) => inner.fail(&e.to_string()),
    }
}
