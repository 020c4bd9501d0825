//! Who decides a transaction of many ranges: its coordinator, or anybody who meets a prepare that is too old.
//!
//! Both run the same machine, because the decision is not theirs: it is a function of what the participants' logs hold
//! (invariant 5 of the module). The coordinator hears the verdicts of its prepares; a recoverer asks every participant and a
//! participant without a prepare logs a fence before it answers. So two of them never decide differently.

use super::{Outcome, RangeId, TxnId};
use clock::Timestamp;
use std::collections::BTreeMap;

/// What became of a transaction: its commit timestamp, or `None` for aborted.
pub type Decision = Option<Timestamp>;

/// What one participant's log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A successful prepare, at this timestamp.
    Prepared(Timestamp),
    /// Its prepare was refused, or it logged a fence.
    Refused,
    /// It already has the outcome.
    Known(Outcome),
}

/// Gathers the participants' answers and decides; then follows the outcome to each of them.
#[derive(Clone, Debug)]
pub struct Coordinator {
    txn: TxnId,
    answers: BTreeMap<RangeId, Option<Answer>>,
    informed: BTreeMap<RangeId, bool>,
    decision: Option<Decision>,
}

impl Coordinator {
    /// Waits for the answer of every participant.
    pub fn new(txn: TxnId, participants: &[RangeId]) -> Self {
        Coordinator {
            txn,
            answers: participants.iter().map(|r| (*r, None)).collect(),
            informed: participants.iter().map(|r| (*r, false)).collect(),
            decision: None,
        }
    }
    /// The transaction.
    pub fn txn(&self) -> TxnId {
        self.txn
    }
    /// The decision, once there is one.
    pub fn decision(&self) -> Option<Decision> {
        self.decision
    }
    /// Every participant.
    pub fn participants(&self) -> impl Iterator<Item = RangeId> + '_ {
        self.answers.keys().copied()
    }
    /// Participants that have not answered.
    pub fn unanswered(&self) -> Vec<RangeId> {
        self.answers.iter().filter(|(_, a)| a.is_none()).map(|(r, _)| *r).collect()
    }
    /// Takes an answer. Returns the decision when this answer is the one that makes it.
    ///
    /// One refusal decides: no commit is possible any more. The others may still prepare; their outcome is `aborted`.
    pub fn answer(&mut self, range: RangeId, answer: Answer) -> Option<Decision> {
        let slot = self.answers.get_mut(&range)?;
        *slot = Some(answer);
        if self.decision.is_some() {
            return None;
        }
        self.decision = match answer {
            Answer::Refused | Answer::Known(Outcome::Aborted) => Some(None),
            Answer::Known(Outcome::Committed(at)) => Some(Some(at)),
            Answer::Prepared(_) => self.all_prepared().map(Some),
        };
        self.decision
    }
    /// The participant applied the outcome. Returns whether now every participant has it, so that all may forget.
    pub fn informed(&mut self, range: RangeId) -> bool {
        if let Some(slot) = self.informed.get_mut(&range) {
            *slot = true;
        }
        self.informed.values().all(|done| *done)
    }
    fn all_prepared(&self) -> Option<Timestamp> {
        let mut greatest = Timestamp::MIN;
        for answer in self.answers.values() {
            match answer {
                Some(Answer::Prepared(at)) => greatest = greatest.max(*at),
                _ => return None,
            }
        }
        Some(greatest)
    }
}
