//! A version store for tests: a map of everything that was ever written.

use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{Span, VersionStore, Write};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;

#[derive(Default)]
pub struct Model(RefCell<BTreeMap<(Bytes, Timestamp), Option<Bytes>>>);

impl Model {
    #[allow(dead_code, reason = "each test file uses its part")]
    pub fn get(&self, key: &[u8], at: Timestamp) -> Option<(Timestamp, Option<Bytes>)> {
        let map = self.0.borrow();
        let versions = map.iter().filter(|((k, t), _)| **k == *key && *t <= at);
        versions.last().map(|((_, t), v)| (*t, v.clone()))
    }
}

impl VersionStore for Model {
    type Error = Infallible;

    fn changed_since(&self, key: &[u8], since: Timestamp) -> Result<Option<Timestamp>, Infallible> {
        Ok(self.0.borrow().keys().filter(|(k, t)| **k == *key && *t > since).map(|(_, t)| *t).max())
    }
    fn span_changed_since(&self, span: &Span, since: Timestamp) -> Result<Option<(Bytes, Timestamp)>, Infallible> {
        let map = self.0.borrow();
        Ok(map.keys().filter(|(k, t)| span.contains(k) && *t > since).max_by_key(|(_, t)| *t).cloned())
    }
    fn is_present(&self, key: &[u8]) -> Result<bool, Infallible> {
        Ok(self.get(key, Timestamp::MAX).is_some_and(|(_, value)| value.is_some()))
    }
    fn write(&self, writes: &[Write], at: Timestamp, local: Timestamp) -> Result<(), Infallible> {
        assert!(local <= at);
        for write in writes {
            self.0.borrow_mut().insert((write.key.clone(), at), write.value.clone());
        }
        Ok(())
    }
}
