//! Messages on their way out, gathered into one envelope per store (and per record that they wait for).

use super::envelope::Envelope;
use super::ids::{RecordNumber, StoreId};
use std::collections::BTreeMap;

/// What leaves.
#[derive(Debug, Default)]
pub(crate) struct Post {
    from: StoreId,
    now: BTreeMap<StoreId, Envelope>,
    after: BTreeMap<(RecordNumber, StoreId), Envelope>,
}

impl Post {
    pub fn new(from: StoreId) -> Self {
        Post { from, ..Post::default() }
    }
    /// The envelope that may leave at once.
    pub fn now(&mut self, to: StoreId) -> &mut Envelope {
        self.now.entry(to).or_insert_with(|| Envelope::new(self.from, to))
    }
    /// The one that leaves once `record` is durable.
    pub fn after(&mut self, record: RecordNumber, to: StoreId) -> &mut Envelope {
        self.after.entry((record, to)).or_insert_with(|| Envelope::new(self.from, to))
    }
    pub fn take_now(&mut self) -> Vec<Envelope> {
        std::mem::take(&mut self.now).into_values().collect()
    }
    pub fn take_after(&mut self) -> Vec<(RecordNumber, Envelope)> {
        std::mem::take(&mut self.after).into_iter().map(|((record, _), envelope)| (record, envelope)).collect()
    }
    pub fn clear(&mut self) {
        self.now.clear();
        self.after.clear();
    }
}
