//! When the present is written anew: much of it is garbage, or the node is idle.

use std::sync::Arc;
use std::thread::JoinHandle;
use store::{Engine, StoreError, Versions};

/// The present is written anew at most this often, also where that failed.
const COMPACT_EVERY_NS: u64 = 60_000_000_000;
/// A node that committed nothing for so long is idle: less garbage is then worth writing the present anew.
const IDLE_NS: u64 = 30_000_000_000;

/// The present being written anew, on a thread of its own: it may take minutes, while flushes go on.
#[derive(Default)]
pub(crate) struct Compaction {
    running: Option<JoinHandle<()>>,
    /// Commits, and since when there was none.
    quiet: (u64, u64),
    /// The next one may begin.
    not_before_ns: u64,
}

impl Compaction {
    /// Begins one, if it is due. `written`: commits so far.
    pub fn look<E: Engine>(&mut self, versions: &Arc<Versions<E>>, written: u64, now_ns: u64) {
        if self.quiet.0 != written {
            self.quiet = (written, now_ns);
        }
        if self.running.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        self.running = None;
        let idle = now_ns.saturating_sub(self.quiet.1) >= IDLE_NS;
        if now_ns < self.not_before_ns || !versions.compaction_due(idle) {
            return;
        }
        self.not_before_ns = now_ns + COMPACT_EVERY_NS;
        let versions = versions.clone();
        // It is not waited for at the end: what it wrote and nobody names is removed by the next start.
        let compact = move || match versions.compact() {
            Ok(()) | Err(StoreError::DiskFull) => {}
            Err(e) => crate::log::warning("the present could not be written anew", &[("cause", &e)]),
        };
        self.running = std::thread::Builder::new().name("compaction".into()).spawn(compact).ok();
    }
}
