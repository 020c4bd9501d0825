//! A history made ready for questions: who wrote what, and in which order.

use crate::history::{Action, History, Isolation, Key, Outcome, Txn, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Where a version stands in the order of its key: 0 is "never written".
pub(crate) type Place = usize;

/// One committed version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub position: u64,
    /// Its transaction's place in the history.
    pub txn: usize,
    pub id: u64,
}

/// Who wrote a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub txn: usize,
    pub key: Key,
    /// Whether it is the transaction's last write of the key.
    pub last: bool,
}

/// One key that a transaction read, and what it found; own writes are left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub key: Key,
    pub found: Option<Value>,
    pub snapshot: Option<u64>,
    /// When the statement began.
    pub began: u64,
}

/// A history with its versions in order.
pub struct Index<'h> {
    pub(crate) history: &'h History,
    pub(crate) keys: BTreeSet<Key>,
    pub(crate) written: BTreeMap<u64, Written>,
    versions: BTreeMap<Key, Vec<Version>>,
    places: BTreeMap<u64, Place>,
}

impl<'h> Index<'h> {
    /// Reads a history once.
    pub fn new(history: &'h History) -> Self {
        let mut written = BTreeMap::new();
        let mut versions: BTreeMap<Key, Vec<Version>> = BTreeMap::new();
        for (txn, t) in history.txns.iter().enumerate() {
            let mut last: BTreeMap<Key, u64> = BTreeMap::new();
            for op in &t.ops {
                if let Action::Write { key, value } = op.action {
                    written.insert(value.id, Written { txn, key, last: false });
                    last.insert(key, value.id);
                }
            }
            for (key, id) in last {
                written.insert(id, Written { txn, key, last: true });
                if t.outcome == Outcome::Committed {
                    versions.entry(key).or_default().push(Version { position: t.position, txn, id });
                }
            }
        }
        let mut places = BTreeMap::new();
        for chain in versions.values_mut() {
            chain.sort_by_key(|v| v.position);
            places.extend(chain.iter().enumerate().map(|(at, v)| (v.id, at + 1)));
        }
        Index { history, keys: history.keys(), written, versions, places }
    }

    pub(crate) fn txn(&self, at: usize) -> &'h Txn {
        &self.history.txns[at]
    }

    /// Committed transactions, with their places in the history.
    pub(crate) fn committed(&self) -> impl Iterator<Item = (usize, &'h Txn)> {
        let txns = &self.history.txns;
        txns.iter().enumerate().filter(|(_, t)| t.outcome == Outcome::Committed)
    }

    /// The versions of a key, oldest first; place `n` is entry `n - 1`.
    pub(crate) fn versions(&self, key: Key) -> &[Version] {
        self.versions.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn chains(&self) -> impl Iterator<Item = (Key, &[Version])> {
        self.versions.iter().map(|(k, v)| (*k, v.as_slice()))
    }

    /// The place of what a read found; `None` where it is no committed version.
    pub(crate) fn place(&self, found: Option<Value>) -> Option<Place> {
        found.map_or(Some(0), |value| self.places.get(&value.id).copied())
    }

    /// The version that replaced the one at `place`.
    pub(crate) fn next(&self, key: Key, place: Place) -> Option<&Version> {
        self.versions(key).get(place)
    }

    /// What a transaction read from others: a scan read every key of its span, also those that were not there.
    pub(crate) fn seen(&self, txn: &Txn) -> Vec<Seen> {
        let mut own = BTreeSet::new();
        let mut out = Vec::new();
        for op in &txn.ops {
            match &op.action {
                Action::Write { key, .. } => {
                    own.insert(*key);
                }
                Action::Read { key, snapshot, found } if !own.contains(key) => {
                    out.push(Seen { key: *key, found: *found, snapshot: *snapshot, began: op.began });
                }
                Action::Read { .. } => {}
                Action::Scan { from, to, snapshot, found } => {
                    let rows: BTreeMap<Key, Value> = found.iter().copied().collect();
                    for key in self.keys.range(*from..*to).filter(|key| !own.contains(key)) {
                        let found = rows.get(key).copied();
                        out.push(Seen { key: *key, found, snapshot: *snapshot, began: op.began });
                    }
                }
            }
        }
        out
    }

    /// Whether a transaction has one snapshot for all its reads.
    pub(crate) fn one_snapshot(txn: &Txn) -> bool {
        txn.isolation != Isolation::ReadCommitted
    }
}
