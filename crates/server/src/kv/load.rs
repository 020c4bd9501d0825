//! What goes past the log: bulk loads ([`store::Versions::load`]), and erasing what nobody can read ([`store::Versions::erase`]).

use super::{Inner, park};
use bytes::Bytes;
use clock::Timestamp;
use sql::KvError;
use sql::transaction::{Erased, Loading, Patience};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use store::{Engine, Loaded, StoreError};

/// Whoever waits for the engine's merges looks this often.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Where merges make room for a load it is asked for so often, at each look.
const MERGE_TRIES: usize = 2000;
/// What a row takes beside key and value, in bytes, about.
const ROW_BYTES: usize = 16;

/// Only where this node is all there is: others would not hear of rows that are in no log.
pub(super) fn load<E: Engine>(inner: &Inner<E>, rows: &[(Bytes, Bytes)], patience: &Patience) -> Result<bool, KvError> {
    if !inner.node.options().alone {
        return Ok(false);
    }
    let bytes = rows.iter().map(|(key, value)| key.len() + value.len() + ROW_BYTES).sum();
    let mut tries = 0;
    loop {
        if let Some(why) = &*inner.broken.lock() {
            return Err(KvError::Storage(why.clone()));
        }
        // It goes past the log, and takes room all the same.
        let Some(_promise) = inner.node.versions().promise(bytes, 0, false) else {
            // Who is refused has space given back, and that takes a while.
            tries += 1;
            if inner.stopping.load(SeqCst) {
                return Err(KvError::ShuttingDown);
            }
            if tries > MERGE_TRIES {
                return Err(KvError::DiskFull);
            }
            patience.check(|| inner.monotonic_us())?;
            park::pause(LOOK_EVERY);
            continue;
        };
        // What is visible was acknowledged, so it is in the log; and whoever begins now reads at or above it.
        let goes_on = || patience.check(|| inner.monotonic_us()).is_ok();
        match inner.node.versions().load_while(inner.node.visible(), rows, &goes_on) {
            Ok(Loaded::All) => return Ok(true),
            Ok(Loaded::NotYet) => {}
            // Whoever is told needs none of what he has loaded.
            Ok(Loaded::Part) => {
                return Err(patience.check(|| inner.monotonic_us()).err().unwrap_or(KvError::Interrupted));
            }
            Err(StoreError::DiskFull) => return Err(KvError::DiskFull),
            Err(e) => {
                inner.fail(&e.to_string());
                return Err(KvError::Storage(e.to_string()));
            }
        }
        if inner.stopping.load(SeqCst) {
            return Err(KvError::ShuttingDown);
        }
        patience.check(|| inner.monotonic_us())?;
        park::pause(LOOK_EVERY);
    }
}

/// As [`load`], by a thread of its own: who makes rows makes the next ones meanwhile. One for each statement that loads, as that waits for it
/// before it asks for another.
pub(super) fn load_aside<E: Engine>(
    inner: &Arc<Inner<E>>,
    rows: &Arc<Vec<(Bytes, Bytes)>>,
    patience: &Patience,
) -> Loading {
    if !inner.node.options().alone {
        return Loading::ended(Ok(false));
    }
    let started = {
        let (inner, rows, patience) = (inner.clone(), rows.clone(), patience.clone());
        std::thread::Builder::new().name("load".into()).spawn(move || load(&inner, &rows, &patience))
    };
    match started {
        Ok(thread) => Loading::running(move || {
            thread.join().unwrap_or_else(|_| Err(KvError::Storage("a thread that loaded rows has panicked".into())))
        }),
        // No thread can be had: then here.
        Err(_) => Loading::ended(load(inner, rows, patience)),
    }
}

/// See [`sql::Kv::erase`].
pub(super) fn erase<E: Engine>(
    inner: &Inner<E>,
    prefix: [u8; 4],
    witness: Option<&[u8]>,
) -> Result<Option<Erased>, KvError> {
    if !inner.node.options().alone {
        return Ok(None);
    }
    let versions = inner.node.versions();
    versions.forget_loaded(prefix);
    let is_past = |witness| {
        let readable_from = versions.collected().min(versions.collected_of(&prefix));
        let found = versions.get(witness, Timestamp::MAX)?;
        Ok(found.is_some_and(|(written, _)| written <= readable_from))
    };
    let erased = witness.map_or(Ok(true), is_past).and_then(|is_past| match is_past {
        true => versions.erase(prefix),
        false => Ok(store::Erased::NotYet),
    });
    match erased {
        Ok(store::Erased::All) => Ok(Some(Erased::All)),
        Ok(store::Erased::Part) => Ok(Some(Erased::Part)),
        Ok(store::Erased::NotYet) => Ok(Some(Erased::NotYet)),
        Err(StoreError::DiskFull) => Err(KvError::DiskFull),
        Err(e) => {
            inner.fail(&e.to_string());
            Err(KvError::Storage(e.to_string()))
        }
    }
}
