//! Commits of many writes: little of them happens while others wait.
//!
//! Problem: every commit passes through the core's lock, and is applied in the order of the log. A million writes are encoded in some ten
//! milliseconds, certified in as much or, where others write the same table, in a second, and applied in half a second. Meanwhile nobody
//! else commits. Idea: what does not depend on the order is done before the lock is taken, or after it is free.
//!
//! 1. The record is encoded before ([`Ready`]): its place and its time are stamped in.
//! 2. What it read and writes is looked at before: if nothing has changed up to some moment ([`store::versions::Arrivals`]), certifying it is to
//!    look at the few writes that came since. Where it has changed, or too many came, it is certified as any other: the verdict is the same.
//! 3. It is shown whole ([`store::Versions::show`]) and put in place afterwards ([`store::Versions::place`]) by a thread that holds no lock.
//!
//! Caveats: commits of one range only. A replay does nothing of it: it has nobody to hold up.

use crate::transaction::writes::Whole;
use crate::versions::{Store, bounded};
use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{Batch, LentWrites, RangeId, Read, Span, VersionStore, Write, decided, encode_commit, indexes};
use std::sync::Arc;
use store::versions::{Arrivals, Writes};
use store::{Engine, StoreError};

/// What a write takes in a record beside key and value, about, bytes.
const WRITE_BYTES: usize = 16;

/// What was done for a commit before it took the core's lock. Its batch has no writes: they are here.
pub(crate) struct Ready {
    pub whole: Arc<Whole>,
    /// The record, not stamped.
    pub encoded: Vec<u8>,
    /// Nothing that it reads or writes had changed when so many writes had come.
    pub unchanged: Option<Arrivals>,
}

/// A large commit that is proposed: see [`Ready`].
#[derive(Debug)]
pub(crate) struct Large {
    pub whole: Arc<Whole>,
    pub unchanged: Option<Arrivals>,
}

impl Ready {
    pub fn of<E: Engine>(store: &Store<E>, batch: &Batch, whole: Whole) -> Ready {
        let unchanged = unchanged(store, batch, &whole);
        Ready { encoded: encoded(batch, &whole), whole: Arc::new(whole), unchanged }
    }

    /// For a second try, of which nothing is known: the range was split under the first one.
    pub fn again(batch: &Batch, whole: Arc<Whole>) -> Ready {
        Ready { encoded: encoded(batch, &whole), whole, unchanged: None }
    }
}

fn encoded(batch: &Batch, whole: &Whole) -> Vec<u8> {
    let size = |(key, value): (&[u8], Option<&Bytes>)| WRITE_BYTES + key.len() + value.map_or(0, Bytes::len);
    // Growing it would copy it several times over.
    let mut encoded = Vec::with_capacity((0..LentWrites::count(whole)).map(|at| size(whole.at(at))).sum());
    encode_commit(RangeId(0), Timestamp::MIN, batch, whole, &mut encoded);
    encoded
}

/// Until when nothing has changed that a batch reads or writes, if nothing has. What the store cannot tell is for the certification.
fn unchanged<E: Engine>(store: &Store<E>, batch: &Batch, whole: &Whole) -> Option<Arrivals> {
    let arrivals = store.0.arrivals();
    for places in indexes(whole) {
        if !store.index_may_have_changed(whole.key(places.start), decided(whole, places.clone())) {
            continue;
        }
        for at in places {
            if store.changed_since(whole.key(at), whole.since(at)) != Ok(None) {
                return None;
            }
        }
    }
    let same = |read: &Read| match read {
        Read::Present { .. } | Read::Unreferred { .. } | Read::Referred { .. } => true,
        Read::Key { key, since } => store.changed_since(key, *since) == Ok(None),
        Read::Span { span, since } => store.span_changed_since(span, *since) == Ok(None),
    };
    batch.reads.iter().all(same).then_some(arrivals)
}

/// The store as a large commit is certified against it, which writes nothing: that is shown whole by who applies.
pub(crate) struct Unwritten<'s, E> {
    store: &'s Store<E>,
    /// All that has changed since it was looked at.
    since: Option<(Arrivals, bool)>,
}

impl<'s, E: Engine> Unwritten<'s, E> {
    pub fn new(store: &'s Store<E>, Large { whole, unchanged }: &Large) -> Self {
        let clashes = |key: &[u8], ts: Timestamp| whole.decided_of(key).is_some_and(|decided| decided < ts);
        let since = unchanged.and_then(|arrivals| Some((arrivals, store.0.arrived_since(arrivals, clashes)?)));
        Unwritten { store, since }
    }
}

impl<E: Engine> VersionStore for Unwritten<'_, E> {
    type Error = StoreError;

    fn changed_since(&self, key: &[u8], since: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.store.changed_since(key, since)
    }
    fn index_may_have_changed(&self, key: &[u8], since: Timestamp) -> bool {
        !matches!(self.since, Some((_, false))) && self.store.index_may_have_changed(key, since)
    }
    fn span_changed_since(
        &self,
        span: &Span,
        since: Timestamp,
    ) -> Result<Option<(bytes::Bytes, Timestamp)>, StoreError> {
        let bounds = bounded(span);
        let within = |key: &[u8], ts: Timestamp| ts > since && bounds.start[..] <= *key && *key < bounds.end[..];
        match self.since.and_then(|(arrivals, _)| self.store.0.arrived_since(arrivals, within)) {
            Some(false) => Ok(None),
            _ => self.store.span_changed_since(span, since),
        }
    }
    fn is_present(&self, key: &[u8]) -> Result<bool, StoreError> {
        self.store.is_present(key)
    }
    fn write(&self, _: &[Write], _: Timestamp, _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Writes for Whole {
    fn count(&self) -> usize {
        LentWrites::count(self)
    }
    fn at(&self, number: usize) -> (&[u8], Option<&Bytes>) {
        Whole::at(self, number)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Node, NodeOptions};
    use bytes::Bytes;
    use clock::{Reading, Timestamp};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use store::versions::Writes;
    use store::{MemoryEngine, Versions, VersionsConfig, Write};

    /// Writes that see whether the core is free while they are placed.
    struct Watched {
        node: Arc<Node<MemoryEngine>>,
        writes: Vec<Write>,
        placed: Arc<[AtomicUsize; 2]>,
    }

    impl Writes for Watched {
        fn count(&self) -> usize {
            self.writes.len()
        }
        fn at(&self, number: usize) -> (&[u8], Option<&Bytes>) {
            let free = self.node.core.try_lock().is_some();
            self.placed[usize::from(free)].fetch_add(1, SeqCst);
            (&self.writes[number].0, self.writes[number].1.as_ref())
        }
    }

    #[test]
    fn who_freezes_lets_others_commit_while_a_large_commit_is_placed() {
        let versions = Arc::new(Versions::open(MemoryEngine::new(), VersionsConfig::default()).unwrap());
        let now = Reading::with_error(1_800_000_000_000_000_000, 1_000_000);
        let node = Arc::new(Node::open(NodeOptions::default(), versions.clone(), &now).unwrap());
        let placed = Arc::<[AtomicUsize; 2]>::default();
        let writes = (0..10_000u32).map(|n| (Bytes::copy_from_slice(&n.to_be_bytes()), None)).collect();
        let watched = Watched { node: node.clone(), writes, placed: placed.clone() };
        versions.show(Timestamp::new(1_000_000, 0), Arc::new(watched));
        placed.iter().for_each(|count| count.store(0, SeqCst));
        assert!(node.freeze());
        assert_eq!(placed.each_ref().map(|count| count.load(SeqCst)), [0, 10_000], "none while it is locked");
        assert!(!versions.place(0));
    }
}
