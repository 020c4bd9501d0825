use clock::Timestamp;
use parking_lot::Mutex;
use protocol::door::CommitWait;
use protocol::txn::Refusal;
use std::task::Waker;

/// A commit did not take place (but see [`CommitError::Unknown`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// Certification refused it.
    Refused(Refusal),
    /// No space on the disk.
    DiskFull,
    /// The disk failed while the commit was on its way: whether it took place shows after a restart.
    Unknown,
    /// The ranges that it concerns did not say in time what became of it: perhaps it took place, or will.
    Unanswered,
    /// It was not sent, for this reason: nothing was done.
    Unsent(Box<crate::TxnError>),
    /// Too many records wait for the disk.
    Overloaded,
    /// The node is stopping.
    ShuttingDown,
}

/// Where a proposal's result arrives; its owner polls, and is woken once.
#[derive(Debug)]
pub(crate) struct Reply(Mutex<State>);

#[derive(Debug)]
struct State {
    result: Option<Result<Timestamp, CommitError>>,
    committed: Option<Timestamp>,
    waker: Option<Waker>,
    wait: CommitWait,
    began: Timestamp,
}

impl Reply {
    pub fn new(waker: &Waker) -> Self {
        Reply(Mutex::new(State {
            result: None,
            committed: None,
            waker: Some(waker.clone()),
            wait: CommitWait::NONE,
            began: Timestamp::MAX,
        }))
    }
    /// The result, if it is there; otherwise `waker` will be woken.
    pub fn poll(&self, waker: &Waker) -> Option<Result<Timestamp, CommitError>> {
        let mut state = self.0.lock();
        if state.result.is_none() && !state.waker.as_ref().is_some_and(|w| w.will_wake(waker)) {
            state.waker = Some(waker.clone());
        }
        state.result.clone()
    }
    pub fn give(&self, result: Result<Timestamp, CommitError>, wakers: &mut Vec<Waker>) {
        let mut state = self.0.lock();
        state.result = Some(result);
        wakers.extend(state.waker.take());
    }
    /// It is committed at `at`, for certain; the result is held back for rule 1.
    pub fn committed(&self, at: Timestamp) {
        self.0.lock().committed = Some(at);
    }
    /// Where it is known to be committed although the result is held back.
    pub fn committed_at(&self) -> Option<Timestamp> {
        let state = self.0.lock();
        state.committed.filter(|_| state.result.is_none())
    }
    /// What it took until the result may be shown (rule 1).
    pub fn took(&self, wait: CommitWait) {
        let mut state = self.0.lock();
        state.wait.hidden_ns += wait.hidden_ns;
        state.wait.held_ns += wait.held_ns;
    }
    /// What was certainly past when it was asked for.
    pub fn began(&self, earliest: Timestamp) {
        self.0.lock().began = earliest;
    }
    /// How long ago that was, microseconds.
    pub fn age_us(&self, earliest: Timestamp) -> u64 {
        earliest.physical_us().saturating_sub(self.0.lock().began.physical_us())
    }
    /// How long a commit timestamp took to be past since then, but for what it was held back, nanoseconds: the disk took that anyway.
    pub fn hidden_ns(&self, at: Timestamp) -> u64 {
        let state = self.0.lock();
        let ahead_us = at.physical_us().saturating_sub(state.began.physical_us());
        ahead_us.saturating_mul(1000).saturating_sub(state.wait.held_ns)
    }
    /// As it was told.
    pub fn wait(&self) -> CommitWait {
        self.0.lock().wait
    }
    /// The owner's waker: whoever finished with the disk wakes the next to use it.
    pub fn waker(&self) -> Option<Waker> {
        self.0.lock().waker.clone()
    }
}
