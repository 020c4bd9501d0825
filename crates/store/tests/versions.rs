//! `Versions` against a dumb oracle, on the engine in memory.

mod model;

use model::{Step, World, step};
use proptest::prelude::*;
use std::sync::Arc;
use store::MemoryEngine;

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
    }
    let steps = [Step::Apply(vec![(1, Some(1))], 1), Step::Freeze, Step::Flush, Step::Crash(0)];
    assert!(model::run(&mut Forgetful(Memory::default()), &steps, 0).is_err());
}
