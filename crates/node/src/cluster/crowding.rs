//! Who applies faster than his engine takes it holds writers back, wherever they are.
//!
//! # Problem
//! What is applied is in memory until the engine has it. A gateway waits with its commits while its own engine falls behind, and knows nothing of the engines of those who
//! apply them: a leader elsewhere, and each follower. Their memory grew with whatever was sent.
//!
//! # Idea
//! ```text
//!   gateway ── Stage, Commit, Prepare ──► leader, crowded: Waiting, and asked again   (or, past its time: into the log, which refuses it)
//!   leader  ── append ──────────────────► follower, crowded: as if it were lost; heartbeats are answered
//! ```
//! A node is *crowded* while its layers hold as much as they may ([`store::Versions::is_overlay_full`]). One crowded follower holds nobody back where the others are a majority: what it did not take
//! is sent again, from the log or as a snapshot. Where a majority is crowded nothing more is committed, its leader has at most `UNCOMMITTED_BYTES_MAX` of it in its log, and of all that it leads [`LogLimits::uncommitted_bytes`](super::LogLimits); the gateway keeps what it has.
//!
//! # Invariants
//! 1. What is put off is not in the log, and has no timestamp. It is put off only while it could still come in time (`until`): afterwards it is proposed, and the log says for certain that nothing
//!    was done. So nobody is left to guess.
//! 2. A leader never puts off what ends something: a fence, an outcome, a commit whose parts are here. It frees memory, or takes none. (A follower takes nothing that is in the log, so where the others are
//!    no majority without it these wait as well, and so does the first entry of a new term, before which nobody serves: until its engine has caught up.)
//! 3. An append that is not taken is one that was lost: nothing of it is answered. So nothing depends on who is crowded.
//! 4. With a full disk nobody is held back for it: what frees space has to come through (decision 151).
//!
//! # Caveats
//! What a large transaction brought at once is left out, up to half of what may be staged, and as far as what is staged by now leaves room there ([`spared_bytes`]): it alone would fill the overlay, and hold
//! up all who commit until it is written. Only parts of the next one wait for it.
//! A message that is put off comes again each [`super::gateway::RESEND_TICKS`]. What comes in snapshots does not count: it is bounded by the snapshot.

use super::core::Core;
use super::member::Member;
use super::propose::slot_of;
use clock::Reading;
use protocol::txn::{Batch, Command, RangeId};
use std::sync::atomic::Ordering::SeqCst;
use store::{Engine, Versions};

/// What layers hold of large transactions, and nobody waits for: it stood in memory before, as parts, of which there may be so many bytes, and are `staged_bytes`.
pub fn spared_bytes<E: Engine>(versions: &Versions<E>, staged_bytes: u64, staged_bytes_max: u64) -> usize {
    let room = staged_bytes_max.saturating_sub(staged_bytes).min(staged_bytes_max / 2);
    versions.shown_bytes().min(usize::try_from(room).unwrap_or(usize::MAX))
}

impl<E: Engine> Member<E> {
    /// Whether the disk of this node is full, as its shell finds: then nobody waits for the engine.
    pub fn tell_disk_full(&self, full: bool) {
        self.look().disk_full = full;
    }
}

impl<E: Engine> Core<E> {
    /// Whether layers here hold as much as they may.
    pub fn is_crowded(&self) -> bool {
        self.is_full_beside(spared_bytes(&self.store.0, self.staged_here(), self.options.limits.staged_bytes))
    }

    /// As [`Core::is_crowded`], for who brings parts of a large transaction: the one before it is to be written out first.
    pub(super) fn is_crowded_for_parts(&self) -> bool {
        self.is_full_beside(0)
    }

    fn is_full_beside(&self, bytes: usize) -> bool {
        let installed = self.snapshots.installed_bytes.load(SeqCst);
        let full = || self.store.0.is_overlay_full_beside(installed.saturating_add(bytes));
        !self.disk_full && !self.sabotage.take_when_crowded() && full()
    }

    /// Whether what is led here and not committed, as followers do not take it, is as much as there is room for.
    fn has_too_much_uncommitted(&self) -> bool {
        let bytes = self.replicas.uncommitted_bytes();
        bytes > self.options.limits.uncommitted_bytes && !self.sabotage.take_when_crowded()
    }

    /// Whether a command that came just now should come again later.
    pub fn puts_off(&self, now: &Reading, range: RangeId, command: &Command) -> bool {
        let fills = |batch: &Batch| batch.staged.is_none() && !batch.writes.is_empty();
        let until = match command {
            Command::Stage { part, .. } => Some(part.until),
            Command::Commit(batch) | Command::Prepare { batch, .. } if fills(batch) => batch.until,
            _ => None,
        };
        let on_its_way = || {
            let shard = self.shards.get(&range);
            shard.zip(slot_of(command)).is_some_and(|(shard, slot)| shard.by_slot.contains_key(&slot))
        };
        let full = || match command {
            Command::Stage { .. } => self.is_crowded_for_parts(),
            _ => self.is_crowded(),
        };
        let crowded = || full() || self.has_too_much_uncommitted();
        until.is_some_and(|until| until > now.interval.latest()) && crowded() && !on_its_way()
    }
}
