//! A machine starts: what its disk holds becomes replicas and states.

use super::body::Body;
use super::state::State;
use super::{Registers, Talk};
use crate::cluster::Place;
use crate::machine::Failure;
use bytes::Bytes;
use clock::{HybridClock, Timestamp};
use protocol::log::raft::{GroupId, Input, RecordNumber, Recovery};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Log, LogOptions};

/// Segments are small, so that runs cross many.
const SEGMENT_BYTES: u64 = 32 * 1024;

/// The file that holds a group's state.
pub fn file_of(group: GroupId) -> String {
    format!("state-{}", group.0)
}

/// The file that holds the state of a replica that is a member no more, behind the number of the record that says so: until that is durable,
/// it may still be one.
pub fn doomed_of(group: GroupId) -> String {
    format!("doomed-{}", group.0)
}

/// Reads everything back.
pub fn start(system: &mut Registers, place: &mut Place<'_, Talk>) -> Result<Body, Failure> {
    let fail = |what: &dyn core::fmt::Display| Failure(format!("machine {}: {what}", place.machine));
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
    let store = system.store_of(place.machine);
    let hybrid = Arc::new(HybridClock::default());
    let mut recovery =
        Recovery::new(system.workload.log.options(store, system.seed ^ place.rng.draw()), hybrid.clone());
    for (position, record) in &records {
        recovery.record(RecordNumber(*position), record).map_err(|e| fail(&e))?;
    }
    let mut states = BTreeMap::new();
    for group in system.groups() {
        let doomed = place.disk.content(&doomed_of(group)).unwrap_or_default();
        if let Some((number, state)) = doomed.split_first_chunk::<8>() {
            if u64::from_le_bytes(*number) > found.last {
                place.disk.set_content(&file_of(group), state.to_vec());
            }
            place.disk.set_content(&doomed_of(group), Vec::new());
        }
        if let Some(bytes) = place.disk.content(&file_of(group)).filter(|bytes| !bytes.is_empty()) {
            let state = State::decode(&bytes).ok_or_else(|| fail(&"a state cannot be read"))?;
            states.insert(group, state);
        }
    }
    let applied = states.iter().map(|(group, state): (&GroupId, &State)| (*group, state.applied)).collect();
    let mut replicas = recovery.finish(&applied).map_err(|e| fail(&e))?;
    if let Some(tamper) = system.controls.tamper {
        tamper(&mut replicas);
    }
    // What was deleted with its replica, or never had a state of its own.
    states.retain(|group, _| replicas.status(*group).is_some());
    for group in replicas.groups() {
        states.entry(group).or_default();
    }
    let mut body = Body::new(store, replicas, hybrid, log, states);
    if system.lives[place.machine] == 0 {
        for group in system.groups() {
            let voters = system.founders(group);
            let here = voters.iter().any(|member| member.store == store);
            if here && system.founded.insert((place.machine, group)) {
                place.disk.set_content(&file_of(group), State::default().encode());
                body.states.insert(group, State::default());
                body.tell(system, place, Input::Create { group, voters, floor: Timestamp::MIN })?;
            }
        }
    }
    Ok(body)
}
