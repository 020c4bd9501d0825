use super::buffer::Buffer;
use super::reads::Reads;
use super::writes::Whole;
use super::{Op, Transaction};
use crate::TxnError;
use crate::reply::{CommitError, Reply};
use crate::sabotage::Sabotage;
use clock::{Reading, Timestamp};
use protocol::txn::{Batch, Read, TxnId};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::Engine;

impl<E: Engine> Transaction<E> {
    /// Commits. Gives the commit timestamp (the snapshot, where nothing was written) once it is durable and certainly past.
    ///
    /// While this is pending, somebody must drive the log: see [`crate::Node::take_batch`].
    ///
    /// With peers, nothing is proposed while the clock does not tell when it would be past: readers need not wait for it, and
    /// [`Transaction::give_up_commit`] can still take it back.
    pub fn commit(&mut self, now: &Reading, waker: &Waker) -> Op<Timestamp> {
        if self.commit.is_none() {
            if let Some(at) = self.commit_reads() {
                return Poll::Ready(Ok(at));
            }
            if self.node.holds_back(now, waker) {
                return Poll::Pending;
            }
            let txn = self.id_or_new();
            let batch = self.batch(txn);
            self.propose(now, batch, waker);
        }
        let Some(reply) = &self.commit else { return Poll::Pending };
        let Some(result) = reply.poll(waker) else { return Poll::Pending };
        self.stats.commit_wait = reply.wait();
        if let Ok(at) = &result {
            self.stats.commit_wait.hidden_ns = reply.hidden_ns(*at);
            self.node.shared.counters.commit_wait_hidden_nanos.add(self.stats.commit_wait.hidden_ns);
        }
        self.conclude(result.is_ok());
        Poll::Ready(result.map_err(TxnError::from))
    }

    /// As [`Transaction::commit`] of a transaction that has written nothing, which takes no time: gives the snapshot. `None`: it has.
    pub fn commit_reads(&mut self) -> Option<Timestamp> {
        if self.commit.is_some() || !self.draft.buffer.is_empty() {
            return None;
        }
        self.node.shared.counters.txn_commits_readonly.one();
        self.end();
        Some(self.snapshot)
    }

    /// Ends the wait of a pending commit, where the clock holds it back for nobody knows how long; the error says what became of it.
    /// `None`: it cannot be ended. It is on its way to the disk, or will be past within the clock's error.
    ///
    /// The outcome is certain: [`TxnError::ClockUnavailable`], it was not proposed, and nothing happened;
    /// [`TxnError::Unacknowledged`], it is committed, and only the answer is missing.
    pub fn give_up_commit(&mut self, now: &Reading) -> Option<TxnError> {
        if !self.is_held_back(now) {
            return None;
        }
        let committed = match &self.commit {
            None => None,
            Some(reply) => Some(reply.committed_at()?),
        };
        let (level, reason) = self.node.clock_level_of(now);
        let clock = format!("the clock is {level} ({reason})");
        self.conclude(committed.is_some());
        Some(match committed.filter(|_| !self.node.shared.sabotage.deny_commits()) {
            None => TxnError::ClockUnavailable(format!(
                "{clock}, and with other nodes a write waits until its bound is known: nothing was written, run the transaction again later"
            )),
            Some(at) => TxnError::Unacknowledged { at, clock },
        })
    }

    /// Counts what became of it, and ends it.
    fn conclude(&mut self, committed: bool) {
        let counters = &self.node.shared.counters;
        if committed {
            counters.txn_commits.one()
        } else {
            counters.txn_aborts.one()
        }
        self.end();
    }

    /// Whether a commit that is pending now may wait for nobody knows how long. Cheap.
    pub fn is_held_back(&self, now: &Reading) -> bool {
        !self.ended && !self.node.shared.clock_tells(now)
    }

    fn propose(&mut self, now: &Reading, batch: (Batch, Option<Whole>), waker: &Waker) {
        let reply = Arc::new(Reply::new(waker));
        if let Some(interval) = now.trusted() {
            reply.began(interval.earliest());
        }
        self.node.propose(now, self.floor, batch, &reply);
        self.commit = Some(reply);
    }

    fn batch(&mut self, txn: TxnId) -> (Batch, Option<Whole>) {
        let shared = &self.node.shared;
        self.draft.take_large(txn, &shared.sabotage, |writes| shared.store.0.shows(writes))
    }
}

/// What is written, and what is certified: a read of a key that is also written from the same snapshot or an older one is
/// certified by the write. `all`: every read is certified.
pub(super) fn batch(reads: &mut Reads, buffer: &mut Buffer, all: bool, txn: TxnId, sabotage: &Sabotage) -> Batch {
    let reads = reads.take_certified(all);
    let mut writes = buffer.take();
    let find = |key: &[u8]| writes.binary_search_by(|w| (*w.key).cmp(key)).ok();
    let reads = beside_writes(reads, |key| find(key).map(|at| writes[at].since), sabotage);
    if sabotage.skip_write_certification() {
        writes.iter_mut().for_each(|w| w.since = Timestamp::MAX);
    }
    Batch { txn, until: None, staged: None, reads, writes }
}

/// As [`batch`], for writes that stand somewhere else.
pub(super) fn large_batch(
    reads: &mut Reads,
    buffer: &mut Buffer,
    all: bool,
    txn: TxnId,
    sabotage: &Sabotage,
) -> (Batch, Option<Whole>) {
    let mut whole = buffer.take_whole();
    let reads = beside_writes(reads.take_certified(all), |key| whole.decided_of(key), sabotage);
    if sabotage.skip_write_certification() {
        whole.forget_decisions();
    }
    (Batch { txn, reads, ..Batch::default() }, Some(whole))
}

/// Those reads that no write certifies; `decided` says of a key when its write was decided, if there is one.
fn beside_writes(mut reads: Vec<Read>, decided: impl Fn(&[u8]) -> Option<Timestamp>, sabotage: &Sabotage) -> Vec<Read> {
    reads.retain(|read| match read {
        Read::Key { key, since } => decided(key).is_none_or(|decided| decided > *since),
        // What it writes itself it had looked at before.
        Read::Present { key, .. } => decided(key).is_none(),
        // Whatever stands there in the end: what was seen of who refers to it has had its effects.
        Read::Unreferred { .. } | Read::Referred { .. } | Read::Span { .. } => true,
    });
    if sabotage.forget_references() {
        reads.retain(|read| !matches!(read, Read::Present { .. } | Read::Referred { .. }));
    }
    if sabotage.skip_read_certification() {
        reads.retain(|read| !matches!(read, Read::Key { .. } | Read::Span { .. }));
    }
    reads
}

impl From<CommitError> for TxnError {
    fn from(e: CommitError) -> Self {
        match e {
            CommitError::Refused(refusal) => refusal.into(),
            CommitError::DiskFull => TxnError::DiskFull,
            CommitError::Unknown => TxnError::Storage(
                "the disk failed while the transaction was committing; whether it did shows after a restart of the node".to_owned(),
            ),
            CommitError::Overloaded => TxnError::Restart { reason: "too many commits wait for the disk".to_owned(), key: None },
            CommitError::Unanswered => TxnError::CommitUnknown,
            CommitError::Unsent(why) => *why,
            CommitError::ShuttingDown => TxnError::ShuttingDown,
        }
    }
}
