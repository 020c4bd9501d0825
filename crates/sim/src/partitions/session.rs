//! One transaction at the machine that its client asked.

use super::Uncertain;
use super::load::{Task, key, number};
use crate::machine::Engine;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use node::cluster::{Member, Transaction};
use node::{BeginOptions, Consistency, Isolation, KeptUncertainty, TxnError, Uncertainty};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::Span;

/// What it waits for, or that it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A timestamp of the oracle.
    Oracle,
    /// The brain: it is woken.
    Brain,
    /// It has committed, or not.
    Ended(bool),
}

/// So often SQL tries a statement before it leaves that to its client (`sql::session`'s `STATEMENT_ATTEMPTS_MAX`, which is not within reach from here).
pub(super) const ATTEMPTS_MAX: u64 = 50;
/// Rows of one answer, at most: a block has fewer.
const ROWS_MAX: usize = 1_000;

enum Step {
    Scan(Span),
    Get(Bytes),
    Put(Bytes, u64),
}

/// See the module.
pub(super) struct Session {
    task: Task,
    promise: (Consistency, Uncertainty),
    steps: VecDeque<Step>,
    /// Timestamps of the oracle that it needs yet, before it begins and before it commits.
    wants_begin: bool,
    wants_commit: bool,
    /// It was asked for one.
    asking: bool,
    txn: Option<Transaction<Engine>>,
    /// What it keeps where it begins anew.
    kept: Option<KeptUncertainty>,
    /// What it did.
    pub seen: Seen,
    /// What uncertainty cost it.
    pub uncertain: Uncertain,
}

/// What is to be done, in order; `id`: of its first value.
fn steps_of(task: &Task, id: u64) -> VecDeque<Step> {
    let scans = task.reads.iter().map(|(partition, first, items)| {
        Step::Scan(Span { start: key(*partition, *first), end: key(*partition, first + items) })
    });
    let gets = task.gets.iter().map(|(partition, item)| Step::Get(key(*partition, *item)));
    let puts = task.writes.iter().zip(id..).map(|((partition, item), id)| Step::Put(key(*partition, *item), id));
    scans.chain(gets).chain(puts).collect()
}

/// A value of 64 bytes (004 section 2.6.1); the first eight say who wrote it.
fn value(id: u64) -> Bytes {
    let mut bytes = [7; 64];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    Bytes::copy_from_slice(&bytes)
}

/// Who wrote a value.
fn written_by(value: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*value.first_chunk()?))
}

/// What a transaction did, for its judge: keys as numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Key, snapshot, who wrote what was found.
    pub reads: Vec<(u64, u64, Option<u64>)>,
    /// Key, and the number that its value has.
    pub writes: Vec<(u64, u64)>,
    /// Its commit timestamp, or its snapshot.
    pub position: u64,
}

impl Session {
    /// `oracle`: timestamps come from there. `id`: of its first value, and the others count on from it.
    pub fn new(task: Task, promise: (Consistency, Uncertainty), oracle: bool, id: u64) -> Self {
        let steps = steps_of(&task, id);
        let wants_commit = oracle && !task.writes.is_empty();
        let (txn, kept, seen, uncertain) = Default::default();
        Session { task, promise, steps, wants_begin: oracle, wants_commit, asking: false, txn, kept, seen, uncertain }
    }

    /// What only reads begins anew by itself where its snapshot cannot move, as SQL's statements do.
    fn begins_anew(&mut self, done: &Result<(), TxnError>) -> bool {
        let met = self.txn.as_ref().map_or(0, |txn| txn.stats().uncertainty_restarts);
        self.uncertain.met += met;
        self.uncertain.met_at_once_max = self.uncertain.met_at_once_max.max(met);
        let may = self.uncertain.began_anew + 1 < ATTEMPTS_MAX;
        let anew = may && met > 0 && self.task.writes.is_empty() && matches!(done, Err(TxnError::Restart { .. }));
        if anew {
            self.uncertain.began_anew += 1;
            self.kept = self.txn.as_ref().and_then(Transaction::kept_uncertainty);
            (self.txn, self.seen, self.steps) = (None, Seen::default(), steps_of(&self.task, 0));
        }
        anew
    }

    /// The snapshot that it reads from, once it has begun.
    pub fn snapshot(&self) -> Option<Timestamp> {
        self.txn.as_ref().map(Transaction::snapshot)
    }

    /// Whether it waits for a timestamp: whatever wakes it meanwhile does not concern it.
    pub fn is_asking(&self) -> bool {
        self.asking
    }

    /// The oracle gave what it waited for.
    pub fn granted(&mut self) {
        self.asking = false;
        match self.wants_begin {
            true => self.wants_begin = false,
            false => self.wants_commit = false,
        }
    }

    /// Goes on as far as it can.
    pub fn turn(&mut self, member: &Arc<Member<Engine>>, now: &Reading, waker: &Waker) -> Standing {
        if self.wants_begin {
            self.asking = true;
            return Standing::Oracle;
        }
        loop {
            if let Some(standing) = self.begin(member, now) {
                return standing;
            }
            return match self.go_on(now, waker) {
                Poll::Pending if self.steps.is_empty() && self.wants_commit => {
                    self.asking = true;
                    Standing::Oracle
                }
                Poll::Pending => Standing::Brain,
                Poll::Ready(done) if self.begins_anew(&done) => continue,
                Poll::Ready(done) => Standing::Ended(done.is_ok()),
            };
        }
    }

    /// Begins, unless it has; how it ends, where it cannot.
    fn begin(&mut self, member: &Arc<Member<Engine>>, now: &Reading) -> Option<Standing> {
        if self.txn.is_none() {
            let past = || {
                let at_us = now.interval.earliest().physical_us().saturating_sub(self.task.age_us);
                Timestamp::new(at_us, 0)
            };
            let options = BeginOptions {
                isolation: Isolation::Snapshot,
                consistency: self.promise.0,
                uncertainty: self.promise.1,
                read_only: self.task.writes.is_empty(),
                as_of: (self.task.age_us > 0).then(past),
                kept: self.kept.take(),
                ..BeginOptions::default()
            };
            let Ok(mut txn) = Transaction::begin(member, now, &options) else { return Some(Standing::Ended(false)) };
            if txn.begin_statement(now).is_err() {
                return Some(Standing::Ended(false));
            }
            self.txn = Some(txn);
        }
        None
    }

    fn go_on(&mut self, now: &Reading, waker: &Waker) -> Poll<Result<(), TxnError>> {
        let Some(txn) = &mut self.txn else { return Poll::Pending };
        while let Some(step) = self.steps.pop_front() {
            match step_of(&step, txn, &mut self.seen, now, waker) {
                Poll::Pending => {
                    self.steps.push_front(step);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(Some(rest))) => self.steps.push_front(Step::Scan(rest)),
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        if self.wants_commit {
            return Poll::Pending;
        }
        txn.commit(now, waker).map(|done| done.map(|at| self.seen.position = at.as_u64()))
    }
}

/// One step; what of a span remains to be read.
fn step_of(
    step: &Step,
    txn: &mut Transaction<Engine>,
    seen: &mut Seen,
    now: &Reading,
    waker: &Waker,
) -> Poll<Result<Option<Span>, TxnError>> {
    match step {
        Step::Scan(span) => {
            let Poll::Ready(done) = txn.scan(now, span, false, ROWS_MAX, false, waker) else { return Poll::Pending };
            let chunk = done?;
            let at = txn.snapshot().as_u64();
            // Of keys that are missing nothing is said: nobody removes any.
            seen.reads.extend(chunk.rows.iter().map(|(key, value)| (number(key), at, written_by(value))));
            Poll::Ready(Ok(chunk.rest))
        }
        Step::Get(key) => {
            let Poll::Ready(done) = txn.get(now, key, false, waker) else { return Poll::Pending };
            let found = done?;
            seen.reads.push((number(key), txn.snapshot().as_u64(), found.as_deref().and_then(written_by)));
            Poll::Ready(Ok(None))
        }
        Step::Put(key, id) => {
            seen.writes.push((number(key), *id));
            Poll::Ready(txn.put(key.clone(), value(*id)).map(|()| None))
        }
    }
}
