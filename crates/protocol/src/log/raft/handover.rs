//! A leader hands over, or steps down.

use super::entry::Body;
use super::error::{ChangeError, Error, Refused};
use super::ids::{ReplicaId, StoreId};
use super::replica::Replica;
use super::store::Store;
use clock::{Reading, Timestamp};
use raft::eraftpb::{Message, MessageType};

/// How far a handover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handover {
    /// It serves no more; whoever mirrors the lease is told before the release gets its timestamp, and says up to where it served.
    Told,
    /// The release has this place.
    Logged(u64),
    /// The library was asked to hand over.
    Sent,
}

impl Replica {
    pub fn transfer(&mut self, store: &mut Store, to: StoreId) -> Result<(), Error> {
        let target = self.tail().conf.replica_on(to).filter(|replica| self.tail().conf.state.voters.contains(replica));
        if self.lead.is_none() {
            return Err(Refused::NotLeader { hint: self.leader() }.into());
        }
        let Some(target) = target.filter(|target| *target != self.id.0) else {
            return Err(Error::Change {
                group: self.group,
                why: ChangeError::NotMember(ReplicaId(target.unwrap_or(0))),
            });
        };
        if self.tail().conf.is_joint() || self.raw.raft.has_pending_conf() {
            return Err(Error::Change { group: self.group, why: ChangeError::Unfinished });
        }
        self.settle(store);
        let lead = self.lead.as_mut().expect("it leads");
        if lead.handover.is_none() {
            lead.handover = Some((ReplicaId(target), Handover::Told));
            lead.told = false;
            store.out.leases.push(self.group);
        }
        self.wake(store);
        Ok(())
    }

    /// Once the release is applied here, and so committed, the library hands over.
    pub fn relieve(&mut self) {
        let applied = self.tail().applied;
        if let Some(lead) = &mut self.lead
            && let Some((to, Handover::Logged(index))) = lead.handover
            && index <= applied
        {
            lead.handover = Some((to, Handover::Sent));
            self.raw.transfer_leader(to.0);
        }
    }

    /// The next step of a handover, a tick after the last one.
    pub(super) fn hand_over(&mut self, store: &mut Store, now: &Reading) {
        let Some((to, stage)) = self.lead.as_ref().and_then(|lead| lead.handover) else { return };
        let next = match stage {
            Handover::Told => {
                let at = self.stamp_release(store);
                match self.append(store, at, Body::Release) {
                    Ok(proposed) => Handover::Logged(proposed.index),
                    Err(_) => return,
                }
            }
            Handover::Logged(_) => return,
            Handover::Sent if self.raw.raft.lead_transferee.is_none() => return self.lead_again(store, now),
            Handover::Sent => return,
        };
        if let Some(lead) = &mut self.lead {
            lead.handover = Some((to, next));
        }
    }

    /// Nobody has taken over. It serves nothing more in this term, and the others do not miss it yet: so it does as if it had been handed over to itself, and begins
    /// another. What it had promised ends at its release. Without a clock it would have no lease, and leaves it to others.
    fn lead_again(&mut self, store: &mut Store, now: &Reading) {
        self.step_down(store);
        if now.trusted().is_none() || !self.may_campaign() {
            return;
        }
        let (own, term) = (self.id.0, self.term());
        let message = Message { msg_type: MessageType::MsgTimeoutNow, to: own, from: own, term, ..Message::default() };
        // Refused where a change of the members is not applied yet: its patience begins anew.
        let _ = self.step(store, message);
    }

    /// Above all that was stamped, closed and served, whatever the clock says: it may be the reason to go, and who comes waits until this is past.
    fn stamp_release(&mut self, store: &Store) -> Timestamp {
        let lead = self.lead.as_mut().expect("it leads");
        lead.last = lead.last.max(lead.closed.0).max(store.words.closed).max(store.clock.last()).next();
        lead.last
    }

    pub fn step_down(&mut self, store: &mut Store) {
        let term = self.term();
        self.raw.raft.become_follower(term, raft::INVALID_ID);
        self.after(store);
        self.wake(store);
    }
}
