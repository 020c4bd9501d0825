//! What a store does when time has passed.

use super::envelope::Ask;
use super::ids::{GroupId, StoreId};
use super::ledger::Durable;
use super::replicas::Replicas;
use super::snapshot;
use clock::{Reading, Timestamp};

impl Replicas {
    pub(super) fn tick(&mut self, now: &Reading) {
        self.ticks += 1;
        let store = &mut self.store;
        let due = store.ask_soon || self.ticks.is_multiple_of(store.options.ask_ticks.max(1) as u64);
        self.store.elections.tick();
        self.watch_promises(now);
        if due {
            self.renew(now);
        }
        let awake: Vec<GroupId> = self.store.awake.iter().copied().collect();
        let mut uncommitted_bytes = 0;
        for group in awake {
            if let Some(replica) = self.groups.get_mut(&group) {
                replica.tick(&mut self.store, now);
                replica.flush(&mut self.store);
                uncommitted_bytes += replica.uncommitted_bytes();
            }
        }
        self.store.uncommitted_bytes = uncommitted_bytes;
        snapshot::tick(&mut self.store, &mut self.groups);
    }

    /// Promises itself more, and asks the others for more once that is durable.
    pub(super) fn renew(&mut self, now: &Reading) {
        let Some(interval) = now.trusted() else { return };
        let store = &mut self.store;
        store.ask_soon = false;
        if self.groups.is_empty() {
            return;
        }
        let own = store.id();
        let until = Timestamp::new(interval.latest().physical_us() + store.options.promise_us, 0);
        store.promises.extend(own, until);
        let pair = store.promises.pair(own);
        let record = store.write_pair(own);
        store.ledger.then(record, Durable::OwnPromise { epoch: pair.epoch, until: pair.until });
        let behind_us = interval.earliest().physical_us().saturating_sub(store.options.close_after_us);
        store.words.close(record.0, Timestamp::new(behind_us, 0));
        for to in store.neighbours() {
            let mut word = store.words.word(to);
            if store.sabotage.forget_the_woken() {
                word.woken.clear();
            }
            store.post.after(record, to).ask = Some(Ask { until, word });
        }
    }

    /// Wakes what slept behind a promise that is past; gives up leading where the own disk takes no promise.
    pub(super) fn watch_promises(&mut self, now: &Reading) {
        let store = &mut self.store;
        let earliest = now.interval.earliest();
        let own = store.id();
        let given = store.promises.given.iter();
        let running: Vec<StoreId> = given.filter(|(_, pair)| pair.until > earliest).map(|(of, _)| *of).collect();
        for over in self.running.iter().filter(|of| !running.contains(of)) {
            for replica in self.groups.values_mut().filter(|r| r.lead.is_none() && r.leader() == Some(*over)) {
                replica.lose_leader(store);
            }
        }
        self.running = running;
        let held = store.promises.held.iter();
        let held: Vec<StoreId> = held.filter(|(_, held)| held.until > earliest).map(|(of, _)| *of).collect();
        if self.held.iter().any(|of| !held.contains(of)) {
            // Without a lease a leader does not sleep.
            for replica in self.groups.values_mut().filter(|replica| replica.asleep) {
                if replica.lead.as_ref().is_some_and(|lead| replica.lease_end(store, lead) <= earliest) {
                    replica.wake(store);
                }
            }
        }
        store.elections_heard = held.iter().copied().collect();
        self.held = held;
        // A store that restarted without a clock has promised itself nothing: its groups would have a leader, and never a lease.
        match store.promises.held.get(&own) {
            Some(held) if held.until > earliest => self.own_late_ticks = 0,
            _ => self.own_late_ticks += 1,
        }
        if self.own_late_ticks >= store.options.election_ticks {
            self.own_late_ticks = 0;
            for replica in self.groups.values_mut().filter(|replica| replica.lead.is_some()) {
                replica.step_down(store);
            }
        }
    }
}
