//! The state machine of one range: what its log has made of it.

use super::certify::certify;
use super::versions::INDEX_BYTES;
use super::{Apart, Batch, Cause, Command, RangeId, Refusal, Span, TxnId, VersionStore};
use clock::Timestamp;
use std::collections::BTreeMap;

/// The index of a key; of a key that is shorter than an index, the one that it is in order with.
fn index_of(key: &[u8]) -> [u8; INDEX_BYTES] {
    let mut index = [0; INDEX_BYTES];
    let length = key.len().min(INDEX_BYTES);
    index[..length].copy_from_slice(&key[..length]);
    index
}

/// What became of a transaction, as a participant remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Committed at this timestamp.
    Committed(Timestamp),
    /// Aborted, or fenced before it could prepare.
    Aborted,
}

/// A prepare without an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The prepare's timestamp.
    pub at: Timestamp,
    /// What it will write, and what it relies on.
    pub batch: Batch,
    /// Every range that has a part.
    pub participants: Vec<RangeId>,
}

/// What a range knows of a transaction: its answer to a recoverer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Prepared at this timestamp, undecided.
    Prepared(Timestamp),
    /// Decided.
    Decided(Outcome),
    /// Neither: it must log a fence before it answers.
    Unknown,
}

/// What applying a record did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The transaction of one range is committed at the record's timestamp.
    Committed,
    /// This range's part is prepared at the record's timestamp.
    Prepared,
    /// Certification failed: nothing was written.
    Refused(Refusal),
    /// The prepared transaction committed at this timestamp, its versions are written.
    Applied(Timestamp),
    /// The prepared transaction aborted, or a fence stands.
    Aborted,
    /// There was a prepare or an outcome already: the fence was not needed.
    NotFenced,
    /// The range ends earlier; this is the new one.
    Split(Box<Range>),
    /// Nothing to tell: it had no effect, or only on this range's memory.
    Done,
}

/// One range: span, prepared transactions, remembered outcomes. Its versions live in a [`VersionStore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub(super) id: RangeId,
    pub(super) span: Span,
    pub(super) applied: Timestamp,
    pub(super) collected: Timestamp,
    /// Indexes whose threshold is another one.
    pub(super) apart: BTreeMap<[u8; INDEX_BYTES], Timestamp>,
    pub(super) lease_end: Timestamp,
    pub(super) prepared: BTreeMap<TxnId, Prepared>,
    pub(super) outcomes: BTreeMap<TxnId, Outcome>,
}

impl Range {
    /// An empty range.
    pub fn new(id: RangeId, span: Span) -> Self {
        Range {
            id,
            span,
            applied: Timestamp::MIN,
            collected: Timestamp::MIN,
            apart: BTreeMap::new(),
            lease_end: Timestamp::MIN,
            prepared: BTreeMap::new(),
            outcomes: BTreeMap::new(),
        }
    }
    /// Its number.
    pub fn id(&self) -> RangeId {
        self.id
    }
    /// The keys it holds.
    pub fn span(&self) -> &Span {
        &self.span
    }
    /// The timestamp of the last record applied.
    pub fn applied(&self) -> Timestamp {
        self.applied
    }
    /// No snapshot below this can be read or certified, but of indexes that are kept apart.
    pub fn collected(&self) -> Timestamp {
        self.collected
    }
    /// Those indexes, and what holds for each.
    pub fn apart(&self) -> &BTreeMap<[u8; INDEX_BYTES], Timestamp> {
        &self.apart
    }
    /// As [`Range::collected`], of one key.
    pub fn collected_of(&self, key: &[u8]) -> Timestamp {
        if self.apart.is_empty() { self.collected } else { self.collected_at(index_of(key)) }
    }
    /// As [`Range::collected`], of all keys of a span.
    pub(super) fn collected_in(&self, span: &Span) -> Timestamp {
        let to = if span.end.is_empty() { [u8::MAX; INDEX_BYTES] } else { index_of(&span.end) };
        let from = index_of(&span.start);
        let apart = if from <= to { self.apart.range(from..=to).map(|(_, at)| *at).max() } else { None };
        apart.map_or(self.collected, |highest| highest.max(self.collected))
    }
    fn collected_at(&self, index: [u8; INDEX_BYTES]) -> Timestamp {
        self.apart.get(&index).copied().unwrap_or(self.collected)
    }
    /// Snapshots up to here may have been served: no later leader writes at or below it.
    pub fn lease_end(&self) -> Timestamp {
        self.lease_end
    }
    /// Prepared, undecided transactions.
    pub fn prepared(&self) -> &BTreeMap<TxnId, Prepared> {
        &self.prepared
    }
    /// Outcomes remembered.
    pub fn outcomes(&self) -> &BTreeMap<TxnId, Outcome> {
        &self.outcomes
    }
    /// What this range knows of a transaction.
    pub fn standing(&self, txn: TxnId) -> Standing {
        match (self.outcomes.get(&txn), self.prepared.get(&txn)) {
            (Some(outcome), _) => Standing::Decided(*outcome),
            (None, Some(prepared)) => Standing::Prepared(prepared.at),
            (None, None) => Standing::Unknown,
        }
    }

    /// Applies the next record of the log.
    ///
    /// # Errors
    /// The version store failed; the range must not go on.
    pub fn apply<V: VersionStore>(
        &mut self,
        at: Timestamp,
        command: &Command,
        versions: &V,
    ) -> Result<Verdict, V::Error> {
        assert!(at > self.applied, "invariant 1: {} applied {}, then {at}", self.id, self.applied);
        self.applied = at;
        match command {
            Command::Commit(batch) => self.commit(at, batch, versions),
            Command::Prepare { batch, participants } => self.prepare(at, batch, participants, versions),
            Command::Fence { txn } => Ok(self.fence(*txn)),
            Command::Outcome { txn, commit } => self.outcome(*txn, *commit, versions),
            Command::Forget { txns } => {
                self.outcomes.retain(|txn, _| !txns.contains(txn));
                Ok(Verdict::Done)
            }
            Command::Split { at: key, right } => Ok(self.split(key, *right)),
            Command::Collect { threshold, apart } => {
                self.collect(*threshold, apart);
                Ok(Verdict::Done)
            }
            Command::Lease { end } => {
                self.lease_end = self.lease_end.max(*end);
                Ok(Verdict::Done)
            }
            Command::Release => {
                self.lease_end = self.lease_end.min(at);
                Ok(Verdict::Done)
            }
        }
    }

    /// No threshold falls: what was forgotten stays forgotten when an index is to be kept for longer.
    fn collect(&mut self, threshold: Timestamp, apart: &[Apart]) {
        let common = threshold.max(self.collected);
        let mut all: BTreeMap<_, _> = self.apart.iter().map(|(index, at)| (*index, common.max(*at))).collect();
        all.extend(apart.iter().map(|apart| (apart.index, apart.threshold.max(self.collected_at(apart.index)))));
        all.retain(|_, at| *at != common);
        self.collected = common;
        self.apart = all;
    }

    fn commit<V: VersionStore>(&mut self, at: Timestamp, batch: &Batch, versions: &V) -> Result<Verdict, V::Error> {
        if let Err(refusal) = certify(self, batch, versions)? {
            return Ok(Verdict::Refused(refusal));
        }
        versions.write(&batch.writes, at, at)?;
        Ok(Verdict::Committed)
    }

    fn prepare<V: VersionStore>(
        &mut self,
        at: Timestamp,
        batch: &Batch,
        participants: &[RangeId],
        versions: &V,
    ) -> Result<Verdict, V::Error> {
        if self.standing(batch.txn) != Standing::Unknown {
            return Ok(Verdict::Refused(Refusal::bare(Cause::Fenced)));
        }
        if let Err(refusal) = certify(self, batch, versions)? {
            return Ok(Verdict::Refused(refusal));
        }
        self.prepared.insert(batch.txn, Prepared { at, batch: batch.clone(), participants: participants.to_vec() });
        Ok(Verdict::Prepared)
    }

    fn fence(&mut self, txn: TxnId) -> Verdict {
        match self.standing(txn) {
            Standing::Unknown => {
                self.outcomes.insert(txn, Outcome::Aborted);
                Verdict::Aborted
            }
            Standing::Prepared(_) | Standing::Decided(_) => Verdict::NotFenced,
        }
    }

    fn outcome<V: VersionStore>(
        &mut self,
        txn: TxnId,
        commit: Option<Timestamp>,
        versions: &V,
    ) -> Result<Verdict, V::Error> {
        let Some(prepared) = self.prepared.remove(&txn) else {
            // An abort can overtake the prepare: it must refuse it as a fence would.
            return Ok(match commit {
                None => self.fence(txn),
                Some(_) => Verdict::Done,
            });
        };
        let Some(commit) = commit else {
            self.outcomes.insert(txn, Outcome::Aborted);
            return Ok(Verdict::Aborted);
        };
        assert!(
            commit >= prepared.at,
            "invariant 6: {txn} prepared {} on {}, committed {commit}",
            prepared.at,
            self.id
        );
        assert!(
            commit < self.applied,
            "invariant 6: the outcome of {txn} at {} must come above {commit}",
            self.applied
        );
        versions.write(&prepared.batch.writes, commit, prepared.at)?;
        self.outcomes.insert(txn, Outcome::Committed(commit));
        Ok(Verdict::Applied(commit))
    }

    /// A range with undecided transactions does not split: their participants are named by range.
    fn split(&mut self, key: &bytes::Bytes, right: RangeId) -> Verdict {
        if !self.span.contains(key) || *key == self.span.start {
            return Verdict::Done;
        }
        if let Some(txn) = self.prepared.keys().next() {
            return Verdict::Refused(Refusal::new(key, Cause::Undecided { txn: *txn }));
        }
        let mut new = Range::new(right, Span::new(key.clone(), self.span.end.clone()));
        new.applied = self.applied;
        new.collected = self.collected;
        new.apart = self.apart.clone();
        new.lease_end = self.lease_end;
        self.span.end = key.clone();
        Verdict::Split(Box::new(new))
    }
}
