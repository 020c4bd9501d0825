//! Transactions of many writes.

use super::{World, bytes};
use node::{Isolation, Transaction, TxnError};
use store::MemoryEngine;

/// More writes of one index than are asked about each by itself.
const KEYS: usize = 100;

fn load(txn: &mut Transaction<MemoryEngine>, index: &str) {
    (0..KEYS).for_each(|i| txn.put(bytes(&format!("{index}{i:04}")), bytes("loaded")).unwrap());
}

/// An index that nobody else writes is asked about as a whole; a change of any of its keys is found all the same, in memory and in the
/// engine, and a change of another index does not matter.
#[test]
fn a_load_is_refused_exactly_if_one_of_its_keys_has_changed() {
    for flushed in [false, true] {
        for (other, conflicts) in [("idx10042", true), ("idx1beside", false), ("idx20042", false), ("idx0", false)] {
            let mut w = World::new();
            w.set(&[("idx10007", "old")]);
            let mut txn = w.begin(Isolation::Snapshot);
            load(&mut txn, "idx1");
            w.set(&[(other, "new")]);
            if flushed {
                w.node.freeze();
                while w.node.versions().flush().unwrap() {}
            }
            match w.commit(&mut txn) {
                Ok(_) => assert!(!conflicts, "{other} {flushed}"),
                Err(TxnError::Restart { .. }) => assert!(conflicts, "{other} {flushed}"),
                Err(e) => panic!("{e}"),
            }
            assert_eq!(w.value("idx10042").as_deref(), Some(if conflicts { "new" } else { "loaded" }));
            // The next load follows the last one.
            let mut next = w.begin(Isolation::Snapshot);
            load(&mut next, "idx1");
            w.commit(&mut next).unwrap();
        }
    }
}
