//! Locks of many keys that are asked for together.

use super::{LockReply, LockTable, LockWait, Owner, TxnId, Wakeup};
use crate::txn::LockMode;

impl LockTable {
    /// As [`LockTable::request`] of each, without waiting, for keys in ascending order, up to the first that cannot be had at once; gives how many were granted. Whoever
    /// has queued for a key, or is to be told that it is a victim, is granted none: that one is asked for by itself.
    pub fn request_all(&mut self, txn: TxnId, keys: &[&[u8]], mode: LockMode, wakeups: &mut Vec<Wakeup>) -> usize {
        let busy = |owner: &Owner| owner.waited || owner.waits_for.is_some() || owner.victim_of.is_some();
        if self.owners.get(&txn).is_some_and(busy) {
            return 0;
        }
        let mut granted = 0;
        while let Some(key) = keys.get(granted) {
            // As in a request: nobody has a key behind all of them.
            let is_last = self.keys.last_key_value().is_none_or(|(last, _)| last[..] < **key);
            let taken = self.owners.get(&txn).filter(|_| is_last).map(|owner| owner.taken.len());
            let in_run = taken.map_or(0, |taken| self.runs.go_on_with(txn, taken, &keys[granted..], mode));
            granted += in_run;
            if in_run > 0 {
                continue;
            }
            match self.request(txn, key, mode, LockWait::NoWait, wakeups) {
                LockReply::Granted { .. } => granted += 1,
                LockReply::Queued | LockReply::Busy | LockReply::Deadlock(_) => break,
            }
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::runs::Runs;
    use proptest::prelude::*;

    fn txn(serial: u64) -> TxnId {
        TxnId { serial, node: 1 }
    }

    proptest! {
        /// Keys that are asked for together are had where they are had one by one, whoever has and awaits which, in runs and out of them.
        #[test]
        fn together_is_one_by_one(
            steps in prop::collection::vec((0..11u8, 1..4u64, 0..40u8, 1..20u8, 0..4usize), 0..50),
        ) {
            let modes = [LockMode::KeyShare, LockMode::Share, LockMode::NoKeyUpdate, LockMode::Update];
            let table = || LockTable { run_min: 3, runs: Runs::at_most(2), ..LockTable::default() };
            let (mut together, mut apart) = (table(), table());
            let mut wakeups = [Vec::new(), Vec::new()];
            let mut marks = [0; 4];
            for (what, of, key, count, mode) in steps {
                let (of, mode) = (txn(of), modes[mode]);
                let mark = &mut marks[of.serial as usize];
                match what {
                    0 => {
                        let asked = together.request(of, &[key], mode, LockWait::Wait, &mut wakeups[0]);
                        prop_assert_eq!(asked, apart.request(of, &[key], mode, LockWait::Wait, &mut wakeups[1]));
                    }
                    1 => {
                        together.release(of, &mut wakeups[0]);
                        apart.release(of, &mut wakeups[1]);
                        *mark = 0;
                    }
                    2 => {
                        together.cancel(of, &mut wakeups[0]);
                        apart.cancel(of, &mut wakeups[1]);
                    }
                    3 => *mark = apart.mark(of),
                    4 | 5 => {
                        together.release_since(of, *mark, &mut wakeups[0]);
                        apart.release_since(of, *mark, &mut wakeups[1]);
                    }
                    _ => {
                        let keys: Vec<[u8; 1]> = (key..key + count).map(|key| [key]).collect();
                        let lent: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                        let had = together.request_all(of, &lent, mode, &mut wakeups[0]);
                        let busy = apart.owners.get(&of).is_some_and(|o| o.waited || o.waits_for.is_some() || o.victim_of.is_some());
                        let mut granted = 0;
                        while !busy && granted < lent.len() {
                            let reply = apart.request(of, lent[granted], mode, LockWait::NoWait, &mut wakeups[1]);
                            if !matches!(reply, LockReply::Granted { .. }) {
                                break;
                            }
                            granted += 1;
                        }
                        prop_assert_eq!(had, granted);
                    }
                }
                let shown = |table: &LockTable| table.shown(false, (b"", 0), usize::MAX - 1, |_| true);
                prop_assert_eq!(shown(&together), shown(&apart));
                prop_assert_eq!((together.size(), together.mark(of)), (apart.size(), apart.mark(of)));
                prop_assert_eq!(&wakeups[0], &wakeups[1]);
            }
        }
    }

    /// Lest the test above is about nothing: what is given back of a run is what was taken since.
    #[test]
    fn what_went_into_a_run_together_is_given_back_since_a_mark() {
        let (mut table, mut wakeups) = (LockTable { run_min: 3, ..LockTable::default() }, Vec::new());
        let keys: Vec<[u8; 1]> = (0..20).map(|key| [key]).collect();
        let lent: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        assert_eq!(table.request_all(txn(1), &lent[..9], LockMode::Update, &mut wakeups), 9);
        let mark = table.mark(txn(1));
        assert_eq!(table.request_all(txn(1), &lent[9..], LockMode::Update, &mut wakeups), 11);
        assert!(table.runs.held(txn(1)) > 11);
        table.release_since(txn(1), mark, &mut wakeups);
        assert_eq!((table.mark(txn(1)), table.size()), (9, (9, 0)));
        assert_eq!(table.request_all(txn(2), &lent[9..], LockMode::Update, &mut wakeups), 11);
        assert_eq!(table.request_all(txn(2), &lent, LockMode::Update, &mut wakeups), 0);
    }

    /// Who was granted what it waited for in the moment it gave up waits for nothing, and has nothing to be told.
    #[test]
    fn who_gave_up_is_granted_many_again() {
        let (mut table, mut wakeups) = (LockTable::default(), Vec::new());
        table.request(txn(1), b"a", LockMode::Update, LockWait::Wait, &mut wakeups);
        let asked = table.request(txn(2), b"a", LockMode::Update, LockWait::Wait, &mut wakeups);
        assert_eq!(asked, LockReply::Queued);
        table.release(txn(1), &mut wakeups);
        assert_eq!(table.request_all(txn(2), &[b"b", b"c"], LockMode::Update, &mut wakeups), 0, "it is to be told");
        table.cancel(txn(2), &mut wakeups);
        assert_eq!(table.request_all(txn(2), &[b"b", b"c"], LockMode::Update, &mut wakeups), 2);
        let asked = table.request(txn(2), b"a", LockMode::Update, LockWait::Wait, &mut wakeups);
        assert_eq!(asked, LockReply::Granted { waited: false });
    }
}
