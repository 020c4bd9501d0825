//! Who belongs to a group: the configuration, and which changes fit it.

use super::entry::Body;
use super::error::ChangeError;
use super::ids::{GroupId, Member, ReplicaId, StoreId};
use super::input::Change;
use super::options::MEMBERS_MAX;
use super::outputs::Configuration;
use crate::wire::{Reader, Short, Writer};
use raft::eraftpb::ConfState;
use std::collections::{BTreeMap, BTreeSet};

/// A group's members, as of a place in its log.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conf {
    /// The library's form.
    pub state: ConfState,
    /// Where each member lives.
    pub stores: BTreeMap<u64, StoreId>,
    /// The place of the last change.
    pub index: u64,
    /// The greatest replica number that the group has had.
    pub greatest: u64,
}

impl Conf {
    /// The voters that found a group.
    pub fn founding(voters: &[Member]) -> Self {
        let stores: BTreeMap<u64, StoreId> = voters.iter().map(|m| (m.replica.0, m.store)).collect();
        let state = ConfState { voters: stores.keys().copied().collect(), ..ConfState::default() };
        let greatest = stores.keys().next_back().copied().unwrap_or(0);
        Conf { state, stores, index: 0, greatest }
    }

    pub fn is_joint(&self) -> bool {
        !self.state.voters_outgoing.is_empty()
    }

    pub fn is_voter(&self, replica: u64) -> bool {
        self.state.voters.contains(&replica) || self.state.voters_outgoing.contains(&replica)
    }

    /// Whether a replica was a member and is not any more.
    pub fn has_left(&self, replica: u64) -> bool {
        !self.stores.is_empty() && replica <= self.greatest && !self.stores.contains_key(&replica)
    }

    pub fn replica_on(&self, store: StoreId) -> Option<u64> {
        self.stores.iter().find(|(_, s)| **s == store).map(|(replica, _)| *replica)
    }

    fn members(&self, of: &[u64]) -> Vec<Member> {
        let mut of: Vec<u64> = of.to_vec();
        of.sort_unstable();
        let member = |r: u64| Some(Member { replica: ReplicaId(r), store: *self.stores.get(&r)? });
        of.into_iter().filter_map(member).collect()
    }

    pub fn shown(&self, group: GroupId) -> Configuration {
        Configuration {
            group,
            index: self.index,
            voters: self.members(&self.state.voters),
            outgoing: self.members(&self.state.voters_outgoing),
            learners: self.members(&[&self.state.learners[..], &self.state.learners_next[..]].concat()),
        }
    }

    /// Takes over what the library made of an entry. Returns who is a member no more.
    pub fn applied(&mut self, index: u64, body: &Body, state: ConfState) -> Vec<Member> {
        self.state = state;
        self.index = index;
        if let Body::Change(changes) = body {
            for change in changes {
                if let Change::AddLearner(member) = change {
                    self.stores.insert(member.replica.0, member.store);
                    self.greatest = self.greatest.max(member.replica.0);
                }
            }
        }
        let s = &self.state;
        let named: BTreeSet<u64> =
            [&s.voters, &s.voters_outgoing, &s.learners, &s.learners_next].into_iter().flatten().copied().collect();
        let gone = self.stores.iter().filter(|(replica, _)| !named.contains(replica));
        let gone: Vec<Member> = gone.map(|(r, s)| Member { replica: ReplicaId(*r), store: *s }).collect();
        self.stores.retain(|replica, _| named.contains(replica));
        gone
    }

    /// Whether the leader may propose these. `caught_up` says it of a learner.
    pub fn check(&self, changes: &[Change], caught_up: impl Fn(u64) -> bool) -> Result<(), ChangeError> {
        let mut named = BTreeSet::new();
        let mut voters: BTreeSet<u64> = self.state.voters.iter().copied().collect();
        let mut stores = self.stores.clone();
        if changes.is_empty() || changes.len() > MEMBERS_MAX {
            return Err(ChangeError::Shape);
        }
        // Places are freed first: a store may get a new replica in place of its old one.
        for change in changes {
            if let Change::Remove(replica) = change {
                stores.remove(&replica.0).ok_or(ChangeError::NotMember(*replica))?;
                voters.remove(&replica.0);
            }
        }
        for change in changes {
            let replica = match change {
                Change::AddLearner(member) => {
                    if member.replica.0 <= self.greatest {
                        return Err(ChangeError::NumberUsed(ReplicaId(self.greatest)));
                    }
                    if member.store.0 == 0 || stores.values().any(|store| *store == member.store) {
                        return Err(ChangeError::StoreUsed(member.store));
                    }
                    stores.insert(member.replica.0, member.store);
                    member.replica
                }
                Change::Promote(replica) => {
                    if !self.stores.contains_key(&replica.0) {
                        return Err(ChangeError::NotMember(*replica));
                    }
                    if !self.state.learners.contains(&replica.0) || !caught_up(replica.0) {
                        return Err(ChangeError::NotCaughtUp(*replica));
                    }
                    voters.insert(replica.0);
                    *replica
                }
                Change::Remove(replica) => *replica,
            };
            if !named.insert(replica) {
                return Err(ChangeError::Shape);
            }
        }
        if stores.len() > MEMBERS_MAX {
            return Err(ChangeError::Shape);
        }
        if voters.is_empty() {
            return Err(ChangeError::NoVoter);
        }
        Ok(())
    }

    pub fn write(&self, w: &mut Writer<'_>) {
        let s = &self.state;
        for list in [&s.voters, &s.voters_outgoing, &s.learners, &s.learners_next] {
            let mut list = list.clone();
            list.sort_unstable();
            w.number(list.len() as u64);
            list.into_iter().for_each(|replica| w.number(replica));
        }
        w.number(self.stores.len() as u64);
        for (replica, store) in &self.stores {
            w.number(*replica);
            w.number(store.0);
        }
        w.number(self.index);
        w.number(self.greatest);
    }

    pub fn read(r: &mut Reader) -> Result<Conf, Short> {
        let mut conf = Conf::default();
        let s = &mut conf.state;
        for list in [&mut s.voters, &mut s.voters_outgoing, &mut s.learners, &mut s.learners_next] {
            for _ in 0..r.count("members")? {
                list.push(r.number("member")?);
            }
        }
        for _ in 0..r.count("stores")? {
            conf.stores.insert(r.number("replica")?, StoreId(r.number("store")?));
        }
        conf.index = r.number("place of the configuration")?;
        conf.greatest = r.number("greatest replica")?;
        let s = &conf.state;
        let lists = [&s.voters, &s.voters_outgoing, &s.learners, &s.learners_next];
        let known = lists.into_iter().flatten().all(|replica| *replica != 0 && conf.stores.contains_key(replica));
        // The library takes these for granted.
        let once = lists.into_iter().all(|list| list.iter().collect::<BTreeSet<_>>().len() == list.len());
        let apart = s.learners.iter().all(|r| !s.voters.contains(r) && !s.voters_outgoing.contains(r));
        let next = s.learners_next.iter().all(|r| s.voters_outgoing.contains(r) && !s.voters.contains(r));
        let voters = !s.voters.is_empty() || conf.stores.is_empty();
        let sound = known && once && apart && next && voters && !s.auto_leave;
        if sound { Ok(conf) } else { Err(Short("store of a member")) }
    }
}
