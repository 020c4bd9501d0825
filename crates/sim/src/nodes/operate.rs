//! What an operator does to ranges: cuts them in two, hands them over, moves their replicas, makes them whole again.

use super::body::Body;
use super::{Nodes, load};
use crate::cluster::{Operation, Place};
use crate::machine::Failure;
use node::cluster::{NodeId, RangeStatus, ReplicaChange, VERSION_MAX};
use protocol::txn::RangeId;
use std::task::Waker;

impl Body {
    /// The ranges that are led here under a lease.
    fn led(&self) -> Vec<(RangeId, RangeStatus)> {
        let status = |range| Some((range, self.member.status(range).filter(|status| status.lease.is_some())?));
        self.member.ranges().into_iter().filter_map(status).collect()
    }

    /// An operator asks for something, where there is something to be done.
    pub fn operate(
        &mut self,
        system: &mut Nodes,
        place: &mut Place<'_, ()>,
        operation: Operation,
    ) -> Result<(), Failure> {
        match operation {
            Operation::Truncate => self.flush(system, place),
            Operation::Split => {
                let Some(key) = place
                    .rng
                    .below(load::keys().len() as u64)
                    .try_into()
                    .ok()
                    .and_then(|n: usize| load::keys().get(n).cloned())
                else {
                    return Ok(());
                };
                // Whether it is done is nobody's business: it may be refused where a transaction is undecided.
                drop(self.member.split(&place.now, key, Waker::noop()));
                self.drained(place)
            }
            Operation::Transfer => {
                let led = self.led();
                let Some((range, status)) = led.get(usize::try_from(place.rng.below(led.len() as u64)).unwrap_or(0))
                else {
                    return Ok(());
                };
                let Some(to) = place.rng.pick(&status.voters).filter(|to| *to != self.member.node()) else {
                    return Ok(());
                };
                self.hand_over(system, place, *range, status, to)
            }
            Operation::Leave => {
                for (range, status) in self.led() {
                    let others: Vec<NodeId> =
                        status.voters.iter().copied().filter(|to| *to != self.member.node()).collect();
                    if let Some(to) = place.rng.pick(&others) {
                        self.hand_over(system, place, range, &status, to)?;
                    }
                }
                Ok(())
            }
            Operation::Members => {
                let led = self.led();
                let Some((range, status)) = led.get(usize::try_from(place.rng.below(led.len() as u64)).unwrap_or(0))
                else {
                    return Ok(());
                };
                let changes = self.moves(system, place, status);
                self.change(place, *range, &changes)
            }
        }
    }

    fn hand_over(
        &mut self,
        system: &mut Nodes,
        place: &mut Place<'_, ()>,
        range: RangeId,
        status: &RangeStatus,
        to: NodeId,
    ) -> Result<(), Failure> {
        if self.member.hand_over(&place.now, range, to).is_ok() {
            system.chronicle.released(range, status.term);
            place.probes.hit("a range was handed over");
        }
        self.drained(place)
    }

    /// A replica more, or one that takes the place of another: drawn.
    fn moves(&self, system: &Nodes, place: &mut Place<'_, ()>, status: &RangeStatus) -> Vec<ReplicaChange> {
        let seats: Vec<NodeId> = status.voters.iter().chain(&status.learners).copied().collect();
        let machines = 0..system.lives.len();
        let free: Vec<NodeId> = machines.map(|m| system.node_of(m)).filter(|node| !seats.contains(node)).collect();
        if let Some(new) = place.rng.pick(&status.learners) {
            let old = place.rng.pick(&status.voters).filter(|_| status.voters.len() >= system.copies());
            return [Some(ReplicaChange::Promote(new)), old.map(ReplicaChange::Remove)].into_iter().flatten().collect();
        }
        place.rng.pick(&free).map(ReplicaChange::Add).into_iter().collect()
    }

    /// Where a replica's node is gone for good, or was left behind, its leader sees to it that the range is whole.
    pub fn repair(&mut self, system: &mut Nodes, place: &mut Place<'_, ()>) -> Result<(), Failure> {
        for (range, status) in self.led().into_iter().filter(|(_, status)| !status.joint) {
            let current = |node: &&NodeId| system.is_current(**node);
            let gone = status.voters.iter().find(|node| !current(node)).copied();
            let lost = status.learners.iter().find(|node| !current(node)).copied();
            let new = status.learners.iter().find(current).copied();
            let machines = 0..system.lives.len();
            let free = machines
                .map(|m| system.node_of(m))
                .find(|n| !status.voters.contains(n) && !status.learners.contains(n));
            let few = status.voters.len() < system.copies();
            let changes = match (lost, gone, new, free) {
                (Some(lost), ..) => vec![ReplicaChange::Remove(lost)],
                (None, Some(gone), Some(new), _) => vec![ReplicaChange::Promote(new), ReplicaChange::Remove(gone)],
                (None, Some(_), None, Some(free)) => vec![ReplicaChange::Add(free)],
                (None, Some(gone), None, None) => vec![ReplicaChange::Remove(gone)],
                (None, None, Some(new), _) if few => vec![ReplicaChange::Promote(new)],
                (None, None, None, Some(free)) if few => vec![ReplicaChange::Add(free)],
                _ => continue,
            };
            self.change(place, range, &changes)?;
        }
        Ok(())
    }

    /// An operator raises the cluster's version, when all programs know the next; each node hears of it in its own time.
    pub fn hear_version(&mut self, system: &mut Nodes, place: &mut Place<'_, ()>) {
        if system.may_raise() {
            system.version = VERSION_MAX;
            place.note(format!("the cluster is raised to version {VERSION_MAX}"));
            place.probes.hit("the cluster's version was raised");
        }
        self.member.set_version(system.version);
    }

    fn change(&mut self, place: &mut Place<'_, ()>, range: RangeId, changes: &[ReplicaChange]) -> Result<(), Failure> {
        if changes.is_empty() {
            return Ok(());
        }
        if self.member.change_replicas(&place.now, range, changes).is_ok() {
            place.note(format!("{range}: {changes:?}"));
            place.probes.hit("replicas of a range changed");
        }
        self.drained(place)
    }

    fn drained(&mut self, place: &mut Place<'_, ()>) -> Result<(), Failure> {
        let out = self.member.drain(&place.now);
        self.see_to(place, out)
    }
}
