//! A store is one node's: who runs on a copy of it, beside the node, finds out and ends ([0188](../../../../docs/decisions/0188-a-later-life-waits-for-the-earlier-one.md)).
//!
//! # Problem
//! A peer goes on telling this process that an earlier life of its node is heard. Either this is a process on a copy of the node's store; or it is the node itself, started again,
//! and something is wrong with that peer. The first must not be heard, now or when the other process has ended: it lacks what that promised. The second must lose nothing.
//!
//! # Idea
//! The address of the node in the charter is asked which process is there. If it is the life that the peer hears, that runs, now: this is a copy. Then its store is marked, and
//! peers that met it first, and so refuse the node, are told to forget it.
//!
//! # Invariants
//! 1. A store is marked as a copy only if another process on the same store has answered after this one began, or if a peer was told of what is not in its log. Without that the process ends all the same, and a restart asks again.
//! 2. From when it is known nothing is said to peers any more, whatever charters come.

use super::Inner;
use super::control::{self, Life, Reply, Request};
use std::time::Duration;
use store::Engine;

/// Who is asked, or told, answers within this.
const ASKED_WITHIN: Duration = Duration::from_secs(1);

impl<E: Engine> Inner<E> {
    /// Which process this is; `None`: it is none of the cluster's.
    pub(super) fn own_life(&self) -> Option<Life> {
        let own = self.transport.get().filter(|_| self.removed.get().is_none())?.identity();
        let (cluster, node, store) = (own.cluster, own.node, own.store);
        Some(Life { cluster, node, store, life: own.incarnation, start: own.start })
    }

    /// A process was a copy, it says.
    pub(super) fn disown(&self, life: &Life) -> Reply {
        if let Some(transport) = self.transport.get()
            && life.cluster == self.charter().cluster
            && transport.disown(life.node, life.store, life.life, life.start)
        {
            let was = (format!("n{}", life.node), life.life);
            crate::log::warning("copy_forgotten", &[("node", &was.0), ("life", &was.1)]);
        }
        Reply::Ok(String::new())
    }

    /// n`told_by` goes on hearing life `known` of this node. (Several peers say so at the same time.)
    pub(super) fn is_a_copy(&self, told_by: u32, known: u64) {
        let _one = self.judging.lock();
        let Some(own) = self.own_life() else { return };
        let charter = self.charter();
        let addr = charter.place(self.node).map(|place| place.addr.clone()).unwrap_or_default();
        let answered = control::ask_within(&addr, &Request::Life, ASKED_WITHIN);
        let runs = is_another(&own, known, answered.as_ref());
        let why = match runs.then(|| self.founder.mark_copy(self.node, told_by)) {
            Some(Ok(why)) => why,
            Some(Err(error)) => format!(
                "n{} runs at {addr}, and this store is a copy of its: start on an empty --store to join anew, as another node ({error})",
                self.node
            ),
            None => format!(
                "n{told_by} goes on hearing life {known} of n{}, and this is life {}, but that one does not answer at {addr}: if another process uses a copy of this store, end it, or start this one on an empty --store; else start this one again",
                self.node, own.life
            ),
        };
        self.falls_silent(&why, runs.then_some(own));
    }

    /// n`told_by` says that it was told of record `heard` of this node's log by an earlier life of it, and that this one began with a log that ended at `end`. That is no matter of times or of
    /// who runs where: what this node has acknowledged is not in its store (decision 218).
    pub(super) fn has_forgotten(&self, told_by: u32, heard: u64, end: u64) {
        let _one = self.judging.lock();
        let Some(own) = self.own_life() else { return };
        if end != self.member.began_after().0 || heard <= end {
            return;
        }
        let why = self.founder.mark_forgot(self.node, told_by, heard, end).unwrap_or_else(|error| {
            format!(
                "n{} has told n{told_by} of record {heard} of its log, which ends at record {end} in this store: start on an empty --store to join anew, as another node ({error})",
                self.node
            )
        });
        self.falls_silent(&why, Some(own));
    }

    /// Nothing is said to peers any more. `disowns`: those that have heard this process forget it.
    pub(super) fn falls_silent(&self, why: &str, disowns: Option<Life>) {
        // Before its links end: no charter gives it peers again (`adopt`). And before its process ends, which it does when it is dismissed, the others are told.
        let _ = self.removed.set(why.to_owned());
        if let Some(transport) = self.transport.get() {
            let _ = transport.set_peers(Vec::new());
        }
        if let Some(own) = disowns {
            let (charter, request) = (self.charter(), Request::Disown(own));
            for place in charter.members.iter().filter(|place| place.node != self.node) {
                let _ = control::ask_within(&place.addr, &request, ASKED_WITHIN);
            }
        }
        self.dismissed(why);
    }
}

/// Whether what was answered is that another process runs on this store, in the life that a peer hears.
fn is_another(own: &Life, known: u64, answered: Result<&Reply, &String>) -> bool {
    let Ok(Reply::Ok(text)) = answered else { return false };
    Life::of_text(text).is_some_and(|other| {
        let same = |life: &Life| (life.cluster, life.node, life.store);
        same(&other) == same(own) && other.life == known && other.start != own.start
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_copy_only_if_another_process_on_it_has_answered() {
        let own = Life { cluster: 1, node: 3, store: 7, life: 2, start: 0xb };
        let told = |life: Life| is_another(&own, 1, Ok(&Reply::Ok(life.to_text())));
        let other = Life { life: 1, start: 0xa, ..own.clone() };
        assert!(told(other.clone()));
        assert!(!told(own.clone()), "it has asked itself");
        assert!(!told(Life { life: 3, ..other.clone() }), "not the one that is heard");
        assert!(!told(Life { store: 8, ..other.clone() }) && !told(Life { node: 2, ..other.clone() }));
        assert!(!told(Life { cluster: 2, ..other }));
        for reply in [Reply::Ok(String::new()), Reply::No("what?".into()), Reply::Later("n3 is starting".into())] {
            assert!(!is_another(&own, 1, Ok(&reply)));
        }
        assert!(!is_another(&own, 1, Err(&"nobody is there".to_owned())));
    }
}
