//! Replicated, timestamped logs (design §3). A log takes commands, gives each a timestamp and a place, and says when it can be
//! applied. Today there is [`Single`]: one replica, one durable log.

mod single;

pub use single::{Entry, LogIndex, Single};
