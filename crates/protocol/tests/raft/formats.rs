//! Bytes that come from elsewhere: what was written once can be read for ever, and nothing that can be read does harm.

use super::machine::Watch;
use super::network::Rng;
use super::runs::lying_watch;
use super::world::World;
use bytes::Bytes;
use clock::{HybridClock, Reading};
use protocol::log::raft::{
    DecodeError, Envelope, Error, GroupId, Input, Options, RecordNumber, Recovery, Sabotage, StoreId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Records and envelopes as this version writes them. A change here is a change of the format: it needs a new version.
#[test]
fn what_is_written_stays_what_it_is() {
    let mut world = World::new(8, 3, &Sabotage::default(), |_| Watch {
        offset_us: 0,
        drift_ppm: 0,
        error_us: 1000,
        ..Watch::default()
    });
    world.found(GroupId(1), &[1, 2, 3]).expect("a group");
    world.overheard = Some(Vec::new());
    world.run(150_000).expect("it runs");
    world.input(StoreId(1), Input::Campaign { group: GroupId(1) }).expect("it runs");
    world.run(10_000).expect("it runs");
    let records: Vec<String> = world.machines[&StoreId(1)].disk.iter().map(|record| hex(&record.bytes)).collect();
    kept("records.txt", &records);
    let heard = world.overheard.take().expect("envelopes");
    for bytes in &heard {
        let envelope = Envelope::decode(&bytes.to_vec().into()).expect("its own form");
        assert_eq!(envelope.encode(), *bytes, "it is written as it was read");
    }
    kept("envelopes.txt", &heard.iter().map(|bytes| hex(bytes)).collect::<Vec<_>>());
}

fn kept(name: &str, all: &[String]) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/raft").join(name);
    let text = all.join("\n") + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("the fixture");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("the fixture"), text);
}

#[test]
fn a_later_version_is_refused_by_name() {
    let later = Bytes::from_static(&[2, 8, 1, 1]);
    assert_eq!(Envelope::decode(&later), Err(DecodeError::Version(2)));
    let mut recovery = Recovery::new(Options::new(StoreId(1), 1), Arc::new(HybridClock::default()));
    let refused = recovery.record(RecordNumber(1), &later);
    assert_eq!(refused, Err(Error::Decode(DecodeError::Version(2))));
}

/// Envelopes and records with bytes changed, cut off and repeated: refused, or taken and survived.
#[test]
fn nothing_that_can_be_read_does_harm() {
    let mut rng = Rng::new(1);
    for seed in 0..4 {
        let mut world = World::new(seed, 3, &Sabotage::default(), lying_watch);
        world.found(GroupId(1), &[1, 2, 3]).expect("a group");
        world.overheard = Some(Vec::new());
        world.ticks(40).expect("it runs");
        let _ = world.propose(world.leader(GroupId(1)).expect("a leader"), GroupId(1), b"a".to_vec().into());
        world.ticks(5).expect("it runs");
        let heard = world.overheard.take().expect("envelopes");
        let now = Reading::with_error(world.now_us * 1000, 1_000_000);
        for bytes in &heard {
            for _ in 0..100 {
                let mut bytes = bytes.to_vec();
                for _ in 0..rng.range(1, 4) {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] = rng.draw() as u8;
                }
                if rng.percent(20) {
                    bytes.truncate(rng.below(bytes.len() as u64) as usize);
                }
                if let Ok(mut envelope) = Envelope::decode(&bytes.into()) {
                    envelope.to = StoreId(1);
                    let replicas = world.machines.get_mut(&StoreId(1)).unwrap().replicas.as_mut().unwrap();
                    let _ = replicas.step(&now, Input::Message(envelope));
                    let _ = replicas.drain();
                }
            }
        }
        let disk = world.machines[&StoreId(2)].disk.clone();
        for _ in 0..500 {
            let mut recovery = Recovery::new(Options::new(StoreId(2), 1), Arc::new(HybridClock::default()));
            let broken = rng.below(disk.len() as u64) as usize;
            let sound = disk.iter().enumerate().all(|(n, record)| {
                let mut bytes = record.bytes.clone();
                if n == broken {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] = rng.draw() as u8;
                }
                recovery.record(record.number, &bytes.into()).is_ok()
            });
            if sound {
                let _ = recovery.finish(&BTreeMap::new());
            }
        }
    }
}
