//! Whom a replica has accepted as leader, and how it lets go (the follower's side of `promise`).

use super::ids::StoreId;
use super::letter::Ends;
use super::promise::Promises;
use super::tail::Tail;
use crate::wire::{Reader, Short, Writer};
use clock::{Interval, Timestamp};
use std::collections::BTreeMap;

/// A leader that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backing {
    pub replica: u64,
    pub term: u64,
    pub epoch: u64,
    /// It is known not to lead in `term` any more: all that it served there ends here, whatever is promised to its store since. Not durable: it can be
    /// learned again, and then it may be later.
    pub ceased: Option<Timestamp>,
}

impl Backing {
    /// The greatest end that may have been promised to it in its term.
    fn end(&self, store: StoreId, promises: &Promises) -> Timestamp {
        promises.end(store, self.epoch).min(self.ceased.unwrap_or(Timestamp::MAX))
    }
}

/// What a replica's store supports in its group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Support {
    /// The greatest end that was carried by a vote, or belongs to a leader that is forgotten.
    pub past: Timestamp,
    /// By the store that led; of each the last term.
    pub backings: BTreeMap<StoreId, Backing>,
}

impl Support {
    /// Accepts a leader under the present epoch of the support for its store. `false`: it is accepted already.
    pub fn accept(&mut self, store: StoreId, replica: u64, term: u64, promises: &Promises) -> bool {
        let epoch = promises.pair(store).epoch;
        match self.backings.get(&store) {
            Some(old) if (old.term, old.epoch) == (term, epoch) => return false,
            Some(old) => self.past = self.past.max(old.end(store, promises)),
            None => {}
        }
        self.backings.insert(store, Backing { replica, term, epoch, ceased: None });
        true
    }

    /// A store's replica looks for votes in a term: it leads in no earlier one. (A late word of an earlier replica there says nothing.)
    pub fn looks_for_votes(&mut self, store: StoreId, replica: u64, term: u64, promises: &Promises) {
        if self.backings.get(&store).is_some_and(|backing| backing.replica == replica) {
            self.ceased(store, term.saturating_sub(1), promises);
        }
    }

    /// A store does not lead in a term any more: it says so, or it is this one and has restarted.
    pub fn ceased(&mut self, store: StoreId, term: u64, promises: &Promises) {
        if let Some(backing) = self.backings.get_mut(&store)
            && backing.term <= term
        {
            backing.ceased = Some(backing.end(store, promises));
        }
    }

    /// The replica here does not lead in a term any more, in which its lease reached to `end`.
    pub fn ceased_here(&mut self, own: StoreId, term: u64, end: Timestamp) {
        if let Some(backing) = self.backings.get_mut(&own)
            && backing.term == term
        {
            backing.ceased = Some(end);
        }
    }

    /// Of the leader that was accepted last: its store and term.
    pub fn last(&self) -> Option<(StoreId, u64)> {
        self.backings.iter().map(|(store, backing)| (*store, backing.term)).max_by_key(|(_, term)| *term)
    }

    /// Whether the promise to the leader that was accepted last forbids to vote for `candidate`'s replica.
    pub fn forbids(&self, own: StoreId, candidate: StoreId, promises: &Promises, tail: &Tail, now: Interval) -> bool {
        let Some((store, backing)) = self.backings.iter().max_by_key(|(_, backing)| backing.term) else { return false };
        *store != own
            && *store != candidate
            && backing.ceased.is_none()
            && promises.pair(*store).epoch == backing.epoch
            && promises.pair(*store).until > now.earliest()
            && tail.conf.replica_on(*store).is_some_and(|replica| tail.conf.is_voter(replica))
            && tail.release_of(backing.term).is_none()
    }

    /// A vote for `candidate`'s replica: what it carries, and from which stores support is withdrawn before it leaves.
    pub fn let_go(
        &mut self,
        own: StoreId,
        candidate: StoreId,
        promises: &Promises,
        tail: &Tail,
    ) -> (Ends, Vec<StoreId>) {
        let mut ends = Ends { past: self.past, terms: Vec::new() };
        let mut withdrawn = Vec::new();
        for (store, backing) in std::mem::take(&mut self.backings) {
            if let Some(release) = tail.release_of(backing.term) {
                ends.past = ends.past.max(release);
                self.past = self.past.max(release);
                continue;
            }
            let end = backing.end(store, promises);
            ends.terms.push((backing.term, end));
            self.past = self.past.max(end);
            let may_lead = store != own && store != candidate && backing.ceased.is_none();
            if may_lead && promises.pair(store).epoch == backing.epoch {
                withdrawn.push(store);
            }
        }
        (ends, withdrawn)
    }

    pub fn write(&self, w: &mut Writer<'_>) {
        w.time(self.past);
        w.number(self.backings.len() as u64);
        for (store, backing) in &self.backings {
            w.number(store.0);
            w.number(backing.replica);
            w.number(backing.term);
            w.number(backing.epoch);
        }
    }

    pub fn read(r: &mut Reader) -> Result<Support, Short> {
        let mut support = Support { past: r.time("end of promises")?, backings: BTreeMap::new() };
        for _ in 0..r.count("accepted leaders")? {
            let store = StoreId(r.number("store")?);
            let (replica, term) = (r.number("replica")?, r.number("term")?);
            let backing = Backing { replica, term, epoch: r.number("epoch")?, ceased: None };
            support.backings.insert(store, backing);
        }
        Ok(support)
    }
}
