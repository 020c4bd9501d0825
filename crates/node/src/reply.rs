use clock::Timestamp;
use parking_lot::Mutex;
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
    waited_ns: u64,
}

impl Reply {
    pub fn new(waker: &Waker) -> Self {
        Reply(Mutex::new(State { result: None, committed: None, waker: Some(waker.clone()), waited_ns: 0 }))
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
    /// The result is held back for rule 1, so long already: nanoseconds.
    pub fn held_back(&self, ns: u64) {
        self.0.lock().waited_ns += ns;
    }
    /// How long the result was held back for rule 1, nanoseconds.
    pub fn waited_ns(&self) -> u64 {
        self.0.lock().waited_ns
    }
    /// The owner's waker: whoever finished with the disk wakes the next to use it.
    pub fn waker(&self) -> Option<Waker> {
        self.0.lock().waker.clone()
    }
}
