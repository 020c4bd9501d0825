//! `Versions` against a dumb oracle, on the engine in memory.

mod model;

use bytes::Bytes;
use clock::Timestamp;
use model::{Step, World, step};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::sync::Arc;
use store::versions::Sabotage;
use store::{MemoryEngine, Versions, VersionsConfig};

#[derive(Default)]
struct Memory(Arc<MemoryEngine>);

impl World for Memory {
    type E = Arc<MemoryEngine>;
    fn open(&mut self) -> Self::E {
        self.0.clone()
    }
    fn crash(&mut self, dice: u8) {
        self.0.crash(dice as usize % 3);
    }
    fn set_full(&mut self, full: bool) {
        self.0.set_full(full);
    }
    fn fail_sync(&mut self) {
        self.0.fail_syncs(1);
    }
}

/// With a rule broken.
struct Broken(Memory, Sabotage);
impl World for Broken {
    type E = Arc<MemoryEngine>;
    fn open(&mut self) -> Self::E {
        self.0.open()
    }
    fn crash(&mut self, dice: u8) {
        self.0.crash(dice);
    }
    fn set_full(&mut self, full: bool) {
        self.0.set_full(full);
    }
    fn fail_sync(&mut self) {
        self.0.fail_sync();
    }
    fn sabotage(&self) -> Option<Sabotage> {
        Some(self.1)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn versions_agree_with_the_oracle(steps in prop::collection::vec(step(), 1..120), dice in any::<u8>()) {
        model::run(&mut Memory::default(), &steps, dice)?;
    }
}

#[test]
fn the_model_notices_a_forgotten_version() {
    // Negative control: an engine that loses a synced step must be caught.
    struct Forgetful(Memory);
    impl World for Forgetful {
        type E = Arc<MemoryEngine>;
        fn open(&mut self) -> Self::E {
            self.0.open()
        }
        fn crash(&mut self, _: u8) {
            self.0 = Memory::default();
        }
        fn set_full(&mut self, full: bool) {
            self.0.set_full(full);
        }
        fn fail_sync(&mut self) {}
    }
    let steps = [Step::Apply(vec![(1, Some(1))], 1), Step::Freeze, Step::Flush, Step::Crash(0)];
    assert!(model::run(&mut Forgetful(Memory::default()), &steps, 0).is_err());
}

/// A first flush fails half-way, what it wrote of the past is kept, and the store is opened with another width of buckets.
#[test]
fn the_past_is_read_with_the_width_that_it_was_filed_by() {
    let steps = [
        Step::Apply(vec![(107, Some(0))], 3),
        Step::Apply(vec![(155, Some(0))], 2),
        Step::Apply(vec![(107, None)], 2),
        Step::Freeze,
        Step::SyncFails,
        Step::Load(1),
        Step::Crash(96),
        Step::Freeze,
        Step::Flush,
    ];
    model::run(&mut Memory::default(), &steps, 117).unwrap();
}

/// An index comes to the common class, whose threshold is higher than its own, and leaves it while a snapshot below is open.
#[test]
fn who_joined_a_class_late_lost_nothing_there() {
    let mut steps = vec![Step::Retain(0, 2)];
    steps.extend((0..4).map(|_| Step::Apply(vec![(0, None)], 1)));
    steps.extend([Step::Collect(73), Step::Retain(0, 0), Step::Open(0), Step::Load(13), Step::Collect(0)]);
    steps.extend([Step::Retain(0, 1), Step::Collect(0)]);
    model::run(&mut Memory::default(), &steps, 0).unwrap();
}

/// An index comes to a class that has forgotten more, before a flush has filed what only the index still has.
fn a_class_joined_early() -> Vec<Step> {
    let row = |n, value| Step::Apply(vec![(n, value)], 1);
    let mut steps = vec![Step::Retain(1, 2), row(225, Some(0)), row(0, None), row(33, None), row(0, None)];
    steps.extend([Step::Collect(183), Step::Retain(1, 0), Step::Open(0), Step::Collect(0), Step::Retain(0, 1)]);
    steps.extend([row(0, None), Step::Freeze, Step::Flush, Step::Collect(0)]);
    steps
}

#[test]
fn who_joins_a_class_files_nothing_where_it_is_forgotten() {
    model::run(&mut Memory::default(), &a_class_joined_early(), 25).unwrap();
    let control = &mut Broken(Memory::default(), Sabotage::ClassesTakeInEarly);
    assert!(model::run(control, &a_class_joined_early(), 25).is_err());
}

/// What nobody has asked for yet takes no memory; afterwards rows are cached, and what was replayed is read right.
#[test]
fn nothing_is_cached_while_a_log_is_replayed() {
    let versions = Versions::open(MemoryEngine::new(), VersionsConfig::default()).unwrap();
    let (key, ts) = (Bytes::from_static(b"key"), Timestamp::from_u64);
    let value = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    versions.begin_replay();
    versions.apply(ts(1), &[(key.clone(), value("old"))]);
    versions.freeze(1, Bytes::new());
    versions.flush().unwrap();
    assert_eq!(versions.get(&key, ts(1)).unwrap().map(|(at, _)| at), Some(ts(1)));
    versions.apply(ts(2), &[(key.clone(), value("new"))]);
    assert_eq!(versions.cache_bytes(), 0);
    versions.end_replay();
    assert_eq!(versions.get(&key, ts(9)).unwrap().map(|(_, value)| value), value("new"));
    versions.apply(ts(3), &[(key.clone(), value("newer"))]);
    assert!(versions.cache_bytes() > 0);
    assert_eq!(versions.get(&key, ts(9)).unwrap().map(|(_, value)| value), value("newer"));
    assert_eq!(versions.get(&key, ts(1)).unwrap().map(|(_, value)| value), value("old"));
}

/// Each rule broken is caught by the same steps that pass otherwise.
/// Also while nobody freezes or flushes: layers are counted by their bytes.
#[test]
fn an_overlay_that_nobody_writes_out_is_full() {
    let config = VersionsConfig { freeze_bytes: 10_000, ..VersionsConfig::default() };
    let versions = Versions::open(MemoryEngine::default(), config).unwrap();
    let mut commits = 0u64;
    while !versions.is_overlay_full() {
        commits += 1;
        let key = Bytes::copy_from_slice(&commits.to_be_bytes());
        versions.apply(Timestamp::from_u64(commits), &[(key, Some(Bytes::from(vec![7; 1000])))]);
        assert!(versions.overlay_bytes() < 70_000);
    }
    assert_eq!((versions.frozen_layers(), versions.overlay_bytes() / 10_000), (0, 6));
    versions.freeze(commits, Bytes::new());
    versions.flush().unwrap();
    assert!(!versions.is_overlay_full());
}

#[test]
fn broken_rules_are_caught() {
    let rules = [
        Sabotage::PresentFirst,
        Sabotage::HotMissesWrites,
        Sabotage::HotForgets,
        Sabotage::ClassesAgeAlike,
        Sabotage::ClassesForgetWhoLeft,
        Sabotage::GravesAgeAlike,
        Sabotage::ClosesWhatIsHalfPlaced,
        Sabotage::ReadersMissWhatIsShown,
    ];
    for rule in rules {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let caught = (0..4000).find(|_| {
            let steps = prop::collection::vec(step(), 60..120).new_tree(&mut runner).unwrap().current();
            // Caches small and hot spans at once.
            model::run(&mut Broken(Memory::default(), rule), &steps, 2).is_err()
        });
        assert!(caught.is_some(), "{rule:?} was not caught");
    }
}
