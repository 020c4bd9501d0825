//! A load that goes on beside who asked for it: see [`super::Kv::load_aside`].

use crate::KvError;

/// How a load ends. Who drops this waits for the end, too: nothing is written once it is gone.
pub struct Loading(State);

enum State {
    Ended(Result<bool, KvError>),
    Running(Box<dyn FnOnce() -> Result<bool, KvError> + Send>),
}

impl Loading {
    /// One that has ended.
    pub fn ended(result: Result<bool, KvError>) -> Loading {
        Loading(State::Ended(result))
    }

    /// One that goes on: `wait` gives its end when it is there.
    pub fn running(wait: impl FnOnce() -> Result<bool, KvError> + Send + 'static) -> Loading {
        Loading(State::Running(Box::new(wait)))
    }

    /// Waits for its end: what [`super::Kv::load`] gives.
    ///
    /// # Errors
    /// Those of [`super::Kv::load`].
    pub fn wait(mut self) -> Result<bool, KvError> {
        self.end()
    }

    fn end(&mut self) -> Result<bool, KvError> {
        match std::mem::replace(&mut self.0, State::Ended(Ok(true))) {
            State::Ended(result) => result,
            State::Running(wait) => wait(),
        }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn who_drops_a_load_has_waited_for_it() {
        let waited = Arc::new(AtomicU32::new(0));
        let loading = || {
            let waited = waited.clone();
            Loading::running(move || {
                waited.fetch_add(1, Relaxed);
                Err(KvError::DiskFull)
            })
        };
        assert_eq!(loading().wait(), Err(KvError::DiskFull));
        drop(loading());
        assert_eq!(waited.load(Relaxed), 2, "once each");
        assert_eq!(Loading::ended(Ok(false)).wait(), Ok(false));
    }
}
