//! The state machine of one range: what its log has made of it.

use super::certify::{certify, certify_whole};
use super::holds::Holds;
use super::lent::{LentWrites, certify_lent};
use super::memory::Memory;
use super::staging::{Stagings, UsedUp};
use super::versions::INDEX_BYTES;
use super::{Apart, Batch, Cause, Command, Part, RangeId, Refusal, Span, TxnId, VersionStore};
use clock::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The index of a key; of a key that is shorter than an index, the one that it is in order with.
fn index_of(key: &[u8]) -> [u8; INDEX_BYTES] {
    let mut index = [0; INDEX_BYTES];
    let length = key.len().min(INDEX_BYTES);
    index[..length].copy_from_slice(&key[..length]);
    index
}

/// The version of the cluster that a range begins with.
pub const FIRST_VERSION: u16 = 1;
/// From this version on a range counts its commits.
pub const VERSION_COUNTS_COMMITS: u16 = 2;
/// From this version on a range does not keep the parts of what it refuses: who proposes that may have refused it without looking at them.
const VERSION_DROPS_PARTS: u16 = 4;

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
    /// What it will write, and what it relies on. Its `until` stands beside it.
    pub batch: Arc<Batch>,
    /// As [`Batch::until`].
    pub until: Option<Timestamp>,
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
    /// The part is here.
    Staged,
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
    /// It is a copy: this had become of the transaction before.
    Already(Standing),
    /// It comes so late that nobody remembers what became of the transaction. Nothing was done.
    Forgotten,
    /// Nothing to tell: it had no effect, or only on this range's memory.
    Done,
}

/// A range remembers so many of its splits: a replica that has one of them in its log, and lags by more than so many others, may miss it.
pub const SPLITS_REMEMBERED_MAX: usize = 64;

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
    /// What was split off last: it begins where this one ends, or did. And the nodes that it began on.
    pub(super) right: Option<(RangeId, Vec<u32>)>,
    /// What was split off of it by its own log, the last ones: see [`SPLITS_REMEMBERED_MAX`].
    pub(super) heirs: VecDeque<RangeId>,
    prepared: BTreeMap<TxnId, Prepared>,
    holds: Holds,
    pub(super) memory: Memory,
    pub(super) stagings: Stagings,
    pub(super) version: u16,
    pub(super) commits: u64,
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
            right: None,
            heirs: VecDeque::new(),
            prepared: BTreeMap::new(),
            holds: Holds::default(),
            memory: Memory::default(),
            stagings: Stagings::default(),
            version: FIRST_VERSION,
            commits: 0,
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
    /// As [`Range::collected`], for who reads a span: of one index that is what holds for it. (Certification goes by [`Range::collected_in`], which asks more:
    /// what applying gives must not depend on the release.)
    pub fn collected_for(&self, span: &Span) -> Timestamp {
        let from = index_of(&span.start);
        let next = u32::from_be_bytes(from).checked_add(1).map(u32::to_be_bytes);
        let within = !span.end.is_empty() && next.is_some_and(|next| span.end[..] <= next[..]);
        if within { self.collected_at(from) } else { self.collected_in(span) }
    }
    /// As [`Range::collected`], of all keys of a span.
    pub fn collected_in(&self, span: &Span) -> Timestamp {
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
    /// The range that begins where this one ends, if it came of a split, and the nodes that it began on: whoever has this range can say where
    /// the keys are that it had.
    pub fn right(&self) -> Option<(RangeId, &[u32])> {
        self.right.as_ref().map(|(range, nodes)| (*range, &nodes[..]))
    }
    /// What was split off of it, the last [`SPLITS_REMEMBERED_MAX`], in that order: a snapshot says by it which splits are behind it.
    pub fn heirs(&self) -> impl Iterator<Item = RangeId> + '_ {
        self.heirs.iter().copied()
    }
    /// Prepared, undecided transactions.
    pub fn prepared(&self) -> &BTreeMap<TxnId, Prepared> {
        &self.prepared
    }
    /// Outcomes remembered.
    pub fn outcomes(&self) -> &BTreeMap<TxnId, Outcome> {
        &self.memory.outcomes
    }
    /// The commits of transactions of many ranges of which not every participant is known to have heard: when, whom, until when copies may come.
    pub fn owed(&self) -> impl Iterator<Item = (TxnId, Timestamp, &[RangeId], Timestamp)> {
        let owed = self.memory.owed.iter().filter_map(|txn| self.memory.kept.get_key_value(txn));
        owed.filter_map(|(txn, kept)| match self.memory.outcomes.get(txn) {
            Some(Outcome::Committed(at)) => Some((*txn, *at, &kept.owed_to[..], kept.until)),
            _ => None,
        })
    }
    /// The version of the cluster that is in force here: what applying a record does depends on this, and on nothing that a replica has for itself, its
    /// program least of all. It never falls.
    pub fn version(&self) -> u16 {
        self.version
    }
    /// Transactions that wrote here and were committed since the range came to [`VERSION_COUNTS_COMMITS`].
    pub fn commits(&self) -> u64 {
        self.commits
    }
    /// As the same range in a log of its own on these nodes, which begins above all that this one's had: with nothing under way, and nobody who could ask again
    /// for what is over. `None`: something is under way.
    pub fn begun_anew(&self, nodes: &[u32]) -> Option<Range> {
        if !self.prepared.is_empty() || !self.stagings.is_empty() {
            return None;
        }
        let mut new = Range::new(self.id, self.span.clone());
        new.applied = self.applied;
        new.collected = self.collected;
        new.apart = self.apart.clone();
        new.right = self.right.as_ref().map(|(right, _)| (*right, nodes.to_vec()));
        new.version = self.version;
        Some(new)
    }
    /// What [`Command::Raise`] does.
    pub fn raise(&mut self, version: u16) {
        self.version = self.version.max(version);
    }
    fn count_commit(&mut self) {
        if self.version >= VERSION_COUNTS_COMMITS {
            self.commits += 1;
        }
    }
    /// Whether a record at `at` would forget something.
    pub fn is_sweepable(&self, at: Timestamp) -> bool {
        self.memory.is_sweepable(at) || self.stagings.is_sweepable(at)
    }
    /// Whether parts of transactions wait here for their command.
    pub fn is_staging(&self) -> bool {
        !self.stagings.is_empty()
    }
    /// Bytes of parts that are here, or announced.
    pub fn staged_bytes(&self) -> u64 {
        self.stagings.bytes()
    }
    /// What it takes in memory, about, of all but one transaction ([`Part::memory_bytes`]).
    pub fn staged_memory_bytes(&self, without: TxnId) -> u64 {
        self.stagings.memory_bytes(without)
    }
    /// Whether some part of a transaction is here.
    pub fn stages(&self, txn: TxnId) -> bool {
        self.stagings.knows(txn)
    }
    /// Whether a part is here.
    pub fn has_part(&self, part: &Part) -> bool {
        self.stagings.has(part)
    }
    /// Reads and writes of a batch that was staged, where all its parts are here.
    pub fn staged(&self, batch: &Batch) -> Option<&Arc<Batch>> {
        self.stagings.batch(batch.txn, batch.staged.as_ref()?)
    }
    /// What this range knows of a transaction.
    pub fn standing(&self, txn: TxnId) -> Standing {
        match (self.memory.outcomes.get(&txn), self.prepared.get(&txn)) {
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
        self.advance(at);
        let verdict = self.act(at, command, versions)?;
        if !matches!(command, Command::Stage { .. }) {
            self.stagings.look_ahead(versions)?;
        }
        Ok(verdict)
    }

    fn act<V: VersionStore>(&mut self, at: Timestamp, command: &Command, versions: &V) -> Result<Verdict, V::Error> {
        match command {
            Command::Commit(batch) => self.commit(at, batch, versions),
            Command::Prepare { batch, participants } => self.prepare(at, batch, participants, versions),
            Command::Stage { part, quota } => {
                let verdict = self.stage(part, *quota);
                self.stagings.look_at(part.txn, versions)?;
                Ok(verdict)
            }
            Command::Fence { txn, until } => Ok(self.fence(*txn, *until)),
            Command::Outcome { txn, commit, until } => self.outcome(*txn, *commit, *until, versions),
            Command::Forget { txns } => {
                self.memory.forget(txns);
                Ok(Verdict::Done)
            }
            Command::Split { at: key, right, nodes } => Ok(self.split(key, *right, nodes)),
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
            Command::Raise { version } => {
                self.raise(*version);
                Ok(Verdict::Done)
            }
        }
    }

    /// As [`Range::apply`] of a commit on a log that makes no copies, whose writes stand somewhere else ([`LentWrites`]). They are certified; where the verdict
    /// is [`Verdict::Committed`], the caller writes them.
    ///
    /// # Errors
    /// As [`Range::apply`].
    pub fn apply_lent<V: VersionStore>(
        &mut self,
        at: Timestamp,
        batch: &Batch,
        writes: &impl LentWrites,
        versions: &V,
    ) -> Result<Verdict, V::Error> {
        debug_assert!(batch.until.is_none() && batch.staged.is_none() && batch.writes.is_empty());
        self.advance(at);
        if let Err(refusal) = certify_lent(self, batch, writes, versions)? {
            return Ok(self.refuse(batch, refusal));
        }
        self.count_commit();
        Ok(Verdict::Committed)
    }

    fn advance(&mut self, at: Timestamp) {
        assert!(at > self.applied, "invariant 1: {} applied {}, then {at}", self.id, self.applied);
        self.applied = at;
        self.memory.sweep(at);
        self.stagings.sweep(at);
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

    /// Whether a command of a transaction is a copy, or comes too late (invariant 8 of the module).
    fn repeated(&self, batch: &Batch) -> Option<Verdict> {
        let until = batch.until?;
        match self.standing(batch.txn) {
            Standing::Unknown if self.applied <= until => None,
            Standing::Unknown if until <= self.memory.swept => Some(Verdict::Forgotten),
            Standing::Unknown => Some(Verdict::Refused(Refusal::bare(Cause::Late))),
            known => Some(Verdict::Already(known)),
        }
    }

    /// Whether the range may have known what became of a transaction whose commands come until then, and has forgotten it.
    pub fn may_have_forgotten(&self, until: Timestamp) -> bool {
        until <= self.memory.swept
    }

    /// Certification failed: of what may come again it is remembered, and nobody comes for its parts.
    fn refuse(&mut self, batch: &Batch, refusal: Refusal) -> Verdict {
        if self.version >= VERSION_DROPS_PARTS {
            self.stagings.drop_all_of(batch.txn);
        }
        if batch.until.is_some() {
            self.memory.remember(batch.txn, Outcome::Aborted, batch.until, Vec::new());
        }
        Verdict::Refused(refusal)
    }

    fn stage(&mut self, part: &Part, quota: u64) -> Verdict {
        let cause = match self.standing(part.txn) {
            Standing::Unknown if self.applied > part.until => Cause::Late,
            Standing::Unknown if !self.span.covers(&part.whole.span) => Cause::Moved,
            Standing::Unknown => match self.stagings.take(part, quota) {
                Ok(()) => return Verdict::Staged,
                Err(cause) => cause,
            },
            Standing::Prepared(_) | Standing::Decided(_) => Cause::Fenced,
        };
        Verdict::Refused(Refusal::bare(cause))
    }

    /// Certifies a batch: where its reads and writes were staged those, which are used up.
    fn certified<V: VersionStore>(
        &mut self,
        batch: &Batch,
        versions: &V,
    ) -> Result<Result<Option<Arc<Batch>>, Refusal>, V::Error> {
        let Some(staged) = &batch.staged else { return Ok(certify(self, batch, versions)?.map(|()| None)) };
        let Some(UsedUp { whole, ahead }) = self.stagings.use_up(batch.txn, staged) else {
            return Ok(Err(Refusal::bare(Cause::Unstaged)));
        };
        Ok(certify_whole(self, &whole, ahead, versions)?.map(|()| Some(whole.batch)))
    }

    /// Looks at some of what is staged and was not looked at yet (`ahead`): that is no part of the state. `false`: there was nothing.
    ///
    /// # Errors
    /// The version store failed.
    pub fn look_ahead<V: VersionStore>(&mut self, versions: &V) -> Result<bool, V::Error> {
        self.stagings.look_ahead(versions)
    }

    /// What was written since parts of transactions were looked at is forgotten: for tests, which break a rule by it.
    #[doc(hidden)]
    pub fn overlook(&mut self) {
        self.stagings.overlook();
    }

    fn commit<V: VersionStore>(&mut self, at: Timestamp, batch: &Batch, versions: &V) -> Result<Verdict, V::Error> {
        if let Some(known) = self.repeated(batch) {
            return Ok(known);
        }
        match self.certified(batch, versions)? {
            Ok(None) => {
                versions.write(&batch.writes, at, at)?;
                // What came as one entry stands in it, with its keys.
                let apart = || Batch { writes: batch.writes.clone(), ..Batch::default() }.apart();
                self.stagings.note(&batch.writes, || Arc::new(apart()), at);
            }
            Ok(Some(whole)) => {
                versions.write_whole(&whole, at, at)?;
                self.stagings.note(&whole.writes, || whole.clone(), at);
            }
            Err(refusal) => return Ok(self.refuse(batch, refusal)),
        }
        if batch.until.is_some() {
            self.memory.remember(batch.txn, Outcome::Committed(at), batch.until, Vec::new());
        }
        self.count_commit();
        Ok(Verdict::Committed)
    }

    fn prepare<V: VersionStore>(
        &mut self,
        at: Timestamp,
        batch: &Batch,
        participants: &[RangeId],
        versions: &V,
    ) -> Result<Verdict, V::Error> {
        if let Some(known) = self.repeated(batch) {
            let others = self.prepared.get(&batch.txn).is_some_and(|first| first.participants != participants);
            return Ok(if others { Verdict::Refused(Refusal::bare(Cause::Fenced)) } else { known });
        }
        if self.standing(batch.txn) != Standing::Unknown {
            return Ok(Verdict::Refused(Refusal::bare(Cause::Fenced)));
        }
        let whole = match self.certified(batch, versions)? {
            Ok(Some(whole)) => whole,
            Ok(None) => Arc::new(Batch { until: None, ..batch.clone() }),
            Err(refusal) => return Ok(self.refuse(batch, refusal)),
        };
        self.hold(Prepared { at, batch: whole, until: batch.until, participants: participants.to_vec() });
        Ok(Verdict::Prepared)
    }

    pub(super) fn hold(&mut self, prepared: Prepared) {
        self.holds.enter(&prepared.batch);
        self.prepared.insert(prepared.batch.txn, prepared);
    }

    fn let_go(&mut self, txn: TxnId) -> Option<Prepared> {
        let prepared = self.prepared.remove(&txn)?;
        self.holds.leave(&prepared.batch);
        Some(prepared)
    }

    /// Whether a prepared, undecided transaction relies on a key's having a value: it refers to it, or will not have.
    pub fn is_referred_to(&self, key: &[u8]) -> bool {
        self.holds.needs(key)
    }

    /// What its prepares hold.
    pub(super) fn holds(&self) -> &Holds {
        &self.holds
    }

    /// A late fence need not be remembered: a prepare that comes after it comes too late by itself. One that is so late that outcomes of its time
    /// are forgotten knows nothing: the transaction may have been committed, and everybody told.
    fn fence(&mut self, txn: TxnId, until: Option<Timestamp>) -> Verdict {
        self.stagings.drop_all_of(txn);
        match self.standing(txn) {
            Standing::Unknown if until.is_some_and(|until| until <= self.memory.swept) => Verdict::Forgotten,
            Standing::Unknown => {
                if until.is_none_or(|until| self.applied <= until) {
                    self.memory.remember(txn, Outcome::Aborted, until, Vec::new());
                }
                Verdict::Aborted
            }
            Standing::Prepared(_) | Standing::Decided(_) => Verdict::NotFenced,
        }
    }

    fn outcome<V: VersionStore>(
        &mut self,
        txn: TxnId,
        commit: Option<Timestamp>,
        until: Option<Timestamp>,
        versions: &V,
    ) -> Result<Verdict, V::Error> {
        let Some(prepared) = self.let_go(txn) else {
            // An abort can overtake the prepare: it must refuse it as a fence would.
            return Ok(match commit {
                None => self.fence(txn, until),
                Some(_) => Verdict::Done,
            });
        };
        let Some(commit) = commit else {
            self.memory.remember(txn, Outcome::Aborted, prepared.until, Vec::new());
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
        versions.write_whole(&prepared.batch, commit, prepared.at)?;
        self.stagings.note(&prepared.batch.writes, || prepared.batch.clone(), commit);
        let Prepared { until, participants, .. } = prepared;
        self.memory.remember(txn, Outcome::Committed(commit), until, participants);
        self.count_commit();
        Ok(Verdict::Applied(commit))
    }

    /// A range with undecided transactions does not split: their participants are named by range.
    fn split(&mut self, key: &bytes::Bytes, right: RangeId, nodes: &[u32]) -> Verdict {
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
        new.version = self.version;
        new.memory = self.memory.inherited();
        new.right = self.right.replace((right, nodes.to_vec()));
        self.heirs.push_back(right);
        if self.heirs.len() > SPLITS_REMEMBERED_MAX {
            self.heirs.pop_front();
        }
        self.span.end = key.clone();
        self.stagings.end_at(key);
        Verdict::Split(Box::new(new))
    }
}
