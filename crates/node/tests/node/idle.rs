//! A node that nobody writes to any more.

use crate::World;
use clock::Timestamp;

#[test]
fn what_was_written_last_ages_though_nothing_follows() {
    let mut w = World::new();
    let last = w.set(&[("a", "1")]);
    for _ in 0..3 {
        w.pass(10_000_000_000);
        let a_second_ago = Timestamp::new(w.now().interval.earliest().physical_us() - 1_000_000, 0);
        w.node.collect(&w.now(), a_second_ago);
        w.sync();
        w.node.freeze();
        assert_eq!(w.node.versions().flush(), Ok(true));
    }
    let threshold = w.node.collectable().map(|threshold| threshold.common);
    assert!(threshold > Some(last), "{threshold:?} against {last}");
    assert_eq!(w.value("a").as_deref(), Some("1"));
}
