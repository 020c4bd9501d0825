//! What the messages of all clients together may hold while they are received and handled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An inbox has so many bytes of its own: messages that fit never meet another client's.
pub const OWN_BYTES: usize = 256 << 10;

/// The bytes that inboxes have beyond their own. A message that does not fit is read and dropped, and its client told so (53200).
#[derive(Debug)]
pub struct MessageBudget {
    used_bytes: AtomicUsize,
    limit_bytes: usize,
    give_back: fn(),
}

impl MessageBudget {
    /// One of so many bytes. `give_back` asks the allocator for what was freed, on the thread that freed it: by itself it keeps pages
    /// for a next time that may never come.
    pub fn new(limit_bytes: usize, give_back: fn()) -> Arc<MessageBudget> {
        Arc::new(MessageBudget { used_bytes: AtomicUsize::new(0), limit_bytes, give_back })
    }
    /// The greatest number of bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }
    /// Bytes taken now.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Relaxed)
    }
    /// Takes bytes, if there are so many.
    #[must_use]
    pub fn take(&self, bytes: usize) -> bool {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit_bytes);
        self.used_bytes.fetch_update(Relaxed, Relaxed, more).is_ok()
    }
    /// Gives bytes back that were freed.
    pub fn give(&self, bytes: usize) {
        if bytes > 0 {
            self.used_bytes.fetch_sub(bytes, Relaxed);
            (self.give_back)();
        }
    }
}
