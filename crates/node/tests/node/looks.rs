//! What everybody looks at and few change.

use super::*;

/// Whether the key that everybody looks at is what it was is known without a look, and never said of one that was written.
#[test]
fn what_everybody_looks_at_is_known_to_be_as_it_was() {
    let mut w = World::new();
    let begin = |w: &mut World| w.begin(Isolation::Serializable);
    w.set(&[("all!", "1")]);
    let mut first = begin(&mut w);
    assert_eq!(w.get(&mut first, "all!").as_deref(), Some("1"));
    let since = first.snapshot();
    w.set(&[("another", "1")]);
    let later = begin(&mut w);
    assert!(later.is_as_it_was(b"all!", since), "a longer key was written only");
    assert!(!later.is_as_it_was(b"all!", since.max(later.snapshot()).next()), "its snapshot is older");
    assert!(!later.is_as_it_was(b"another", since), "a key of a row");
    let mut own = begin(&mut w);
    own.put(bytes("all!"), bytes("2")).unwrap();
    assert!(!own.is_as_it_was(b"all!", since), "its own write");
    own.rollback();
    // In flight: proposed, and not yet on the disk.
    let mut writer = begin(&mut w);
    writer.put(bytes("all!"), bytes("2")).unwrap();
    assert!(writer.commit(&w.now(), Waker::noop()).is_pending());
    w.pass(1_000_000);
    let token = w.now().interval.earliest();
    let meanwhile =
        [Consistency::Auto, Consistency::Strict, Consistency::None, Consistency::Token].map(|consistency| {
            let options = BeginOptions { consistency, token, ..BeginOptions::default() };
            let txn = Transaction::begin(&w.node, &w.now(), &options).unwrap();
            (txn.is_as_it_was(b"all!", since), txn)
        });
    assert!(later.is_as_it_was(b"all!", since), "it lies above this snapshot");
    let at = w.commit(&mut writer).unwrap();
    for (said, txn) in &meanwhile {
        assert_eq!(*said, txn.snapshot() < at, "{} beside {at}", txn.snapshot());
    }
    assert!(meanwhile.iter().any(|(said, _)| !said), "one reads from where it is in flight");
    let after = begin(&mut w);
    assert!(after.snapshot() >= at && !after.is_as_it_was(b"all!", since));
    assert!(after.is_as_it_was(b"all!", at));
    let past = BeginOptions { as_of: Some(since), ..BeginOptions::default() };
    assert!(!Transaction::begin(&w.node, &w.now(), &past).unwrap().is_as_it_was(b"all!", since));
    drop((first, later, meanwhile, after));
    w.crash();
    let again = begin(&mut w);
    assert!(!again.is_as_it_was(b"all!", since) && again.is_as_it_was(b"all!", at), "the log tells of it");
}
