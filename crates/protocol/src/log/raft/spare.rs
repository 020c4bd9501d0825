//! Appends that nobody waits for leave together.
//!
//! # Problem
//! A commit waits for a majority, and yet each batch of commands is sent to every follower at once: of three nodes the slower follower gets as many messages as the other one, syncs as
//! often and answers as often, for nothing. Where processors are what is short, that is a tenth of what a transaction costs.
//!
//! # Idea
//! At each commit a leader sees whose acknowledgement it had, and whose not. Who was *late* is a *spare*: what it is sent leaves at most once in [`SPARE_EVERY_NS`], joined to one append. Where
//! there is little to do, that is at once.
//!
//! # Invariants
//! 1. What is held leaves with whatever else leaves for its store, before it; when it is due; and when it is large. So appends stay in their order.
//! 2. Who is late is found anew at each commit: where a follower that was waited for fails, the next commit waits for a spare, at most [`SPARE_EVERY_NS`] longer than otherwise, and from
//!    then on that one is sent to at once.
//! 3. Nothing is acknowledged, counted or promised by what is held: to the library it is on its way.
//!
//! # Caveats
//! A spare knows of commits up to [`SPARE_EVERY_NS`] later: so much later whoever reads there sees them.

use super::ids::StoreId;
use super::letter::Letter;
use super::options::{SPARE_BYTES_MAX, SPARE_EVERY_NS};
use raft::eraftpb::MessageType;
use std::collections::BTreeMap;

/// What is held for one store.
#[derive(Debug, Default)]
struct Held {
    letters: Vec<Letter>,
    bytes: usize,
    /// Monotonic nanoseconds at which something left for it, or is to.
    next_ns: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Spare(BTreeMap<StoreId, Held>);

impl Spare {
    /// Holds an append for a spare; it is given back if it may leave now.
    pub fn hold(&mut self, now_ns: u64, to: StoreId, letter: Letter) -> Option<Letter> {
        let held = self.0.entry(to).or_default();
        if held.letters.is_empty() && held.next_ns <= now_ns {
            held.next_ns = now_ns.saturating_add(SPARE_EVERY_NS);
            return Some(letter);
        }
        held.bytes += letter.bytes();
        if let Some(letter) = joined(held.letters.last_mut(), letter) {
            held.letters.push(letter);
        }
        if held.bytes >= SPARE_BYTES_MAX {
            held.next_ns = now_ns;
        }
        None
    }

    /// When the first of what is held is due, monotonic nanoseconds.
    pub fn due_ns(&self) -> Option<u64> {
        self.0.values().filter(|held| !held.letters.is_empty()).map(|held| held.next_ns).min()
    }

    /// The stores for which something is due.
    pub fn due(&self, now_ns: u64) -> Vec<StoreId> {
        let is_due = |held: &Held| !held.letters.is_empty() && held.next_ns <= now_ns;
        self.0.iter().filter(|(_, held)| is_due(held)).map(|(to, _)| *to).collect()
    }

    /// What is held for a store; it leaves now.
    pub fn take(&mut self, now_ns: u64, to: StoreId) -> Vec<Letter> {
        let Some(held) = self.0.get_mut(&to).filter(|held| !held.letters.is_empty()) else { return Vec::new() };
        held.next_ns = now_ns.saturating_add(SPARE_EVERY_NS);
        held.bytes = 0;
        std::mem::take(&mut held.letters)
    }

    /// Nothing leaves any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Joins an append to the one before it, where it goes on there; else it is given back.
fn joined(before: Option<&mut Letter>, letter: Letter) -> Option<Letter> {
    let Some(before) = before else { return Some(letter) };
    let (m, n) = (&before.message, &letter.message);
    let both = [m, n].iter().all(|message| message.msg_type == MessageType::MsgAppend);
    let same = (before.group, m.to, m.from, m.term) == (letter.group, n.to, n.from, n.term);
    let goes_on = m.entries.last().is_some_and(|last| (last.index, last.term) == (n.index, n.log_term));
    if !(both && same && goes_on) {
        return Some(letter);
    }
    let Letter { message, accepted, closed, closed_index, .. } = letter;
    before.message.commit = before.message.commit.max(message.commit);
    before.message.entries.extend(message.entries);
    (before.accepted, before.closed, before.closed_index) = (accepted, closed, closed_index);
    None
}
