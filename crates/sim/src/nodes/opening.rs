//! A node opens, from what its machine's disk and engine hold.

use super::Nodes;
use super::body::Body;
use crate::cluster::Place;
use crate::machine::Failure;
use bytes::Bytes;
use clock::LadderLimits;
use node::cluster::{ClusterOptions, LogLimits, Opening, VERSION_MIN};
use node::{NodeOptions, Sabotage};
use std::sync::Arc;
use store::versions::SHOW_MIN;
use store::{Log, LogOptions, Versions, VersionsConfig};

/// Segments are small, so that runs cross many.
const SEGMENT_BYTES: u64 = 64 * 1024;
/// Little is kept of the log, so that whoever lags needs a snapshot.
const RECORDS_KEPT: u64 = 200;
/// The cluster's number.
const CLUSTER: u64 = 0x7a11;
/// Nothing that needs the bound is refused below this error: oscillators are bad here, nanoseconds.
const HYBRID_ERROR_NS: u64 = 1_000_000_000;

/// Reads everything back.
pub fn start(system: &mut Nodes, place: &mut Place<'_, ()>) -> Result<Body, Failure> {
    let fail = |what: &dyn core::fmt::Display| Failure(format!("machine {} does not open: {what}", place.machine));
    let mut records: Vec<(u64, Bytes)> = Vec::new();
    let options =
        LogOptions { segment_bytes: SEGMENT_BYTES, first_segment_bytes: SEGMENT_BYTES, held_back_bytes: 0, salt: 7 };
    let (log, found) = Log::open(Arc::new(place.disk.clone()), &options, &mut |position, record| {
        records.push((position, record));
        Ok(())
    })
    .map_err(|e| fail(&e))?;
    if found.torn.is_some() {
        place.probes.hit("torn tail cut off");
    }
    let engine = system.engines[place.machine].clone();
    // In every other world large commits, which are seen before they are in their places, are small.
    let show_min = if system.seed.is_multiple_of(2) { 2 } else { SHOW_MIN };
    let versions = Versions::open(engine, VersionsConfig { show_min, ..VersionsConfig::default() });
    let versions = versions.map_err(|e| fail(&e))?;
    let ladder = LadderLimits { hybrid_error_ns: HYBRID_ERROR_NS, ..LadderLimits::default() };
    // A few keys in a tick: much happens while a range is copied.
    let copied_bytes_per_tick = 200;
    let entries_kept = system.seed % 3 * 20;
    // In every fourth world a range splits where another replica needs more of it than this.
    let copied_bytes = if system.seed % 4 == 3 { 1500 } else { LogLimits::default().copied_bytes };
    // In every fifth one leader's followers may lack no more than a few transactions.
    let uncommitted_bytes = if system.seed % 5 == 4 { 1500 } else { LogLimits::default().uncommitted_bytes };
    let limits = LogLimits {
        entries_kept,
        uncommitted_bytes,
        records_kept: RECORDS_KEPT,
        copied_bytes_per_tick,
        copied_bytes,
        ..LogLimits::default()
    };
    let limits = match system.workload.entry_bytes {
        0 => limits,
        entry_bytes => LogLimits { entry_bytes, part_bytes: entry_bytes / 2, ..limits },
    };
    let newest = system.start_program(place.machine);
    let options = ClusterOptions {
        cluster: CLUSTER,
        node: system.node_of(place.machine),
        ranges: system.ranges(),
        versions: VERSION_MIN..=newest,
        version: system.version,
        seed: system.seed ^ place.rng.draw(),
        limits,
        node_options: NodeOptions { ladder, ..NodeOptions::default() },
    };
    let sabotage = Sabotage::default();
    if let Some(prepare) = system.prepare {
        prepare(&sabotage);
    }
    let mut opening = Opening::with(options, Arc::new(versions), &place.now, sabotage).map_err(|e| fail(&e))?;
    for (position, record) in &records {
        opening.replay(*position, record).map_err(|e| fail(&e))?;
    }
    let member = opening.finish(&place.now).map_err(|e| fail(&e))?;
    let mut body = Body::new(member, log, system.may_be_proved(place.machine));
    body.begin(system, place)?;
    Ok(body)
}
