use super::{Op, Transaction};
use crate::TxnError;
use crate::options::Isolation;
use crate::reply::{CommitError, Reply};
use clock::{Reading, Timestamp};
use protocol::txn::{Batch, Read, TxnId};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::Engine;

impl<E: Engine> Transaction<E> {
    /// Commits. Gives the commit timestamp (the snapshot, where nothing was written) once it is durable and certainly past.
    ///
    /// While this is pending, somebody must drive the log: see [`crate::Node::take_batch`].
    pub fn commit(&mut self, now: &Reading, waker: &Waker) -> Op<Timestamp> {
        if self.commit.is_none() {
            if self.buffer.is_empty() {
                self.node.shared.counters.txn_commits_readonly.one();
                self.end();
                return Poll::Ready(Ok(self.snapshot));
            }
            let txn = self.id_or_new();
            let batch = self.batch(txn);
            self.propose(now, batch, waker);
        }
        let Some(reply) = &self.commit else { return Poll::Pending };
        let Some(result) = reply.poll(waker) else { return Poll::Pending };
        self.stats.commit_wait_ns = reply.waited_ns();
        let counters = &self.node.shared.counters;
        if result.is_ok() {
            counters.txn_commits.one()
        } else {
            counters.txn_aborts.one()
        }
        self.end();
        Poll::Ready(result.map_err(TxnError::from))
    }

    fn propose(&mut self, now: &Reading, batch: Batch, waker: &Waker) {
        let reply = Arc::new(Reply::new(waker));
        self.node.propose(now, self.floor, batch, &reply);
        self.commit = Some(reply);
    }

    /// What is written, and what is certified: a read of a key that is also written from the same snapshot or an older one is
    /// certified by the write.
    fn batch(&mut self, txn: TxnId) -> Batch {
        let sabotage = &self.node.shared.sabotage;
        let mut reads = self.reads.take_certified(self.isolation == Isolation::Serializable);
        let mut writes = self.buffer.take();
        let find = |key: &[u8]| writes.binary_search_by(|w| (*w.key).cmp(key)).ok();
        reads.retain(|read| match read {
            Read::Key { key, since } => find(key).is_none_or(|at| writes[at].since > *since),
            Read::Span { .. } => true,
        });
        if sabotage.skip_read_certification() {
            reads.clear();
        }
        if sabotage.skip_write_certification() {
            writes.iter_mut().for_each(|w| w.since = Timestamp::MAX);
        }
        Batch { txn, reads, writes }
    }
}

impl From<CommitError> for TxnError {
    fn from(e: CommitError) -> Self {
        match e {
            CommitError::Refused(refusal) => refusal.into(),
            CommitError::DiskFull => TxnError::DiskFull,
            CommitError::Unknown => TxnError::Storage(
                "the disk failed while the transaction was committing; whether it did shows after a restart of the node".to_owned(),
            ),
            CommitError::Overloaded => TxnError::Restart { reason: "too many commits wait for the disk".to_owned() },
            CommitError::ShuttingDown => TxnError::ShuttingDown,
        }
    }
}
