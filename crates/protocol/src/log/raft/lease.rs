//! How far a leader's lease reaches: what is promised, and by whom.

use super::lead::Lead;
use super::replica::Replica;
use super::store::Store;
use clock::{Interval, Timestamp};

impl Replica {
    /// The end that a quorum of `voters` supports.
    pub(super) fn quorum_end(&self, store: &Store, lead: &Lead, voters: &[u64]) -> Timestamp {
        let mut ends: Vec<Timestamp> = voters.iter().map(|replica| self.end_of(store, lead, *replica)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends.get(ends.len() / 2).copied().unwrap_or(Timestamp::MAX)
    }

    pub(super) fn end_of(&self, store: &Store, lead: &Lead, replica: u64) -> Timestamp {
        match (lead.accepted.get(&replica), self.tail().conf.stores.get(&replica)) {
            (Some(epoch), Some(on)) => store.promises.held_end(*on, *epoch),
            _ => Timestamp::MIN,
        }
    }

    /// What is supported now: by quorums of both halves of the configuration, and by the leader's own store.
    pub(super) fn supported(&self, store: &Store, lead: &Lead) -> Timestamp {
        let conf = &self.tail().conf.state;
        let incoming = self.quorum_end(store, lead, &conf.voters);
        let outgoing = self.quorum_end(store, lead, &conf.voters_outgoing);
        incoming.min(outgoing).min(self.end_of(store, lead, self.id.0))
    }

    /// Where the lease ends; a release cuts it.
    pub fn lease_end(&self, store: &Store, lead: &Lead) -> Timestamp {
        match lead.handover {
            Some(_) => lead.end,
            None => lead.end.max(self.supported(store, lead)),
        }
    }

    /// Keeps the end that is promised now, before something may lower it.
    pub fn settle(&mut self, store: &Store) {
        if let Some(lead) = &self.lead {
            let end = self.lease_end(store, lead);
            self.lead.as_mut().expect("it leads").end = end;
        }
    }

    pub fn lease(&self, store: &Store) -> Option<(Timestamp, Timestamp)> {
        let lead = self.lead.as_ref().filter(|lead| lead.open && lead.ready && lead.handover.is_none())?;
        let end = self.lease_end(store, lead);
        (end > lead.start).then_some((lead.start, end))
    }

    /// Opens the lease once its start is past, and tells when there is one.
    pub fn look_at_lease(&mut self, store: &mut Store, now: Interval) {
        let Some(lead) = &mut self.lead else { return };
        lead.open |= lead.start < now.earliest();
        let told = lead.told;
        if told != self.lease(store).is_some() {
            store.out.leases.push(self.group);
            self.lead.as_mut().expect("it leads").told = !told;
        }
    }
}
