//! One partition of Clock-SI, simulated event by event: what the formulas of section 2.5 speak of, counted.
//!
//! As 004 section 2.6.5 has it, each transaction reads a fixed number of items and writes a fixed number, all of one partition, uniformly. It takes its
//! snapshot, reads one item after the other (algorithm 1, lines 4-18), then asks to commit (algorithm 2, lines 5-10): it is certified against
//! what was committed, or is being committed, since its snapshot, takes its commit timestamp, and its writes are in the way of later
//! snapshots until they are on the disk. Transactions arrive at random (Poisson), and one that aborts is not tried again.
//!
//! The clock is exact: a single partition has only one. The disk is either the model's, in which every commit takes `S` by itself, or the
//! document's system (section 2.6.1), which commits in groups: one sync at a time, and all that waits goes with the next.

use super::formulas::Store;
use sim::{Agenda, Rng};
use std::collections::{BTreeMap, VecDeque};

/// How commits reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Each takes S, whoever else commits.
    Apart,
    /// One sync at a time takes S, for all that waits.
    Groups,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Transactions that ended.
    pub transactions: u64,
    /// Those whose reads a pending commit delayed.
    pub delayed: u64,
    /// Those that aborted.
    pub aborted: u64,
    /// How long delayed ones waited, all together, nanoseconds.
    pub delay_ns: u64,
}

impl Counted {
    /// Share of transactions that were delayed.
    pub fn delay_rate(&self) -> f64 {
        self.delayed as f64 / self.transactions.max(1) as f64
    }
    /// How long a delayed one waited, milliseconds.
    pub fn delay_ms(&self) -> f64 {
        self.delay_ns as f64 / 1e6 / self.delayed.max(1) as f64
    }
    /// Share of transactions that aborted.
    pub fn abort_rate(&self) -> f64 {
        self.aborted as f64 / self.transactions.max(1) as f64
    }
}

/// A write that was committed, or is being.
#[derive(Clone, Copy, Debug)]
struct Write {
    commit_ns: u64,
    /// On the disk from now on, and told to whom waits.
    done_ns: u64,
}

struct Running {
    began_ns: u64,
    snapshot_ns: u64,
    read: u32,
    waited_ns: u64,
}

enum Event {
    Arrive,
    Read(u32),
    Commit(u32),
}

fn ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

/// A number between 0 (left out) and 1.
fn share(rng: &mut Rng) -> f64 {
    ((rng.draw() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

struct Partition<'s> {
    store: &'s Store,
    disk: Disk,
    rng: Rng,
    agenda: Agenda<Event>,
    running: BTreeMap<u32, Running>,
    last: u32,
    /// Writes by item, in the order of their timestamps, as long as a transaction may meet them.
    writes: BTreeMap<u64, VecDeque<Write>>,
    /// The same in the order in which they may be forgotten.
    forget: VecDeque<(u64, u64)>,
    /// When the disk is free.
    free_ns: u64,
    counted: Counted,
    end_ns: u64,
}

impl Partition<'_> {
    fn next_arrival(&mut self) {
        let wait_s = -share(&mut self.rng).ln() / self.store.updates_per_s;
        self.agenda.after((wait_s * 1e9).round() as u64, Event::Arrive);
    }

    fn item(&mut self) -> u64 {
        self.rng.below(self.store.items as u64)
    }

    /// Until when a read at a snapshot waits for this item.
    fn pending_ns(&self, item: u64, snapshot_ns: u64, now_ns: u64) -> Option<u64> {
        let writes = self.writes.get(&item)?;
        let pending = writes.iter().filter(|w| w.commit_ns <= snapshot_ns && w.done_ns > now_ns);
        pending.map(|w| w.done_ns).max()
    }

    fn read(&mut self, id: u32) {
        let (now_ns, item) = (self.agenda.now_ns(), self.item());
        let Some(snapshot_ns) = self.running.get(&id).map(|t| t.snapshot_ns) else { return };
        let wait_ns = self.pending_ns(item, snapshot_ns, now_ns).map_or(0, |done_ns| done_ns - now_ns);
        let Some(txn) = self.running.get_mut(&id) else { return };
        txn.waited_ns += wait_ns;
        txn.read += 1;
        let (read, began_ns, waited_ns) = (txn.read, txn.began_ns, txn.waited_ns);
        if f64::from(read) < self.store.reads {
            let due_ms = self.store.read_ms * f64::from(read) / self.store.reads;
            self.agenda.at(began_ns + waited_ns + ns(due_ms), Event::Read(id));
        } else {
            self.agenda.at(began_ns + waited_ns + ns(self.store.update_ms), Event::Commit(id));
        }
    }

    fn commit(&mut self, id: u32) {
        let now_ns = self.agenda.now_ns();
        let Some(txn) = self.running.remove(&id) else { return };
        let items: Vec<u64> = (0..self.store.writes as u32).map(|_| self.item()).collect();
        let newer = |item: &u64| self.writes.get(item).is_some_and(|w| w.iter().any(|w| w.commit_ns > txn.snapshot_ns));
        let aborts = items.iter().any(newer);
        self.counted.transactions += 1;
        self.counted.delayed += u64::from(txn.waited_ns > 0);
        self.counted.delay_ns += txn.waited_ns;
        self.counted.aborted += u64::from(aborts);
        if aborts {
            return;
        }
        let sync_ns = ns(self.store.sync_ms);
        let synced_ns = match self.disk {
            Disk::Apart => now_ns + sync_ns,
            // A sync that is to begin takes this one along; while one runs, the next does.
            Disk::Groups if self.free_ns <= now_ns => now_ns + sync_ns,
            Disk::Groups if self.free_ns > now_ns + sync_ns => self.free_ns,
            Disk::Groups => self.free_ns + sync_ns,
        };
        self.free_ns = self.free_ns.max(synced_ns);
        let done_ns = synced_ns + ns(self.store.round_trip_ms);
        for item in items {
            self.writes.entry(item).or_default().push_back(Write { commit_ns: now_ns, done_ns });
            self.forget.push_back((now_ns, item));
        }
    }

    /// Forgets writes that no transaction can meet any more.
    fn collect(&mut self) {
        let oldest_ns = self.running.values().next().map_or(u64::MAX, |txn| txn.snapshot_ns);
        let now_ns = self.agenda.now_ns();
        // Snapshots to come lie beyond this one, and syncs under way take at most two times S.
        let keep_ns = ns(self.store.age_ms).max(2 * ns(self.store.sync_ms)) + ns(self.store.round_trip_ms);
        let bound_ns = oldest_ns.min(now_ns.saturating_sub(keep_ns));
        while let Some((commit_ns, item)) = self.forget.front().copied().filter(|(at, _)| *at < bound_ns) {
            self.forget.pop_front();
            if let Some(writes) = self.writes.get_mut(&item) {
                writes.retain(|w| w.commit_ns != commit_ns);
                if writes.is_empty() {
                    self.writes.remove(&item);
                }
            }
        }
    }
}

/// Runs for so many virtual seconds.
pub fn simulate(store: &Store, disk: Disk, seconds: f64, seed: u64) -> Counted {
    /// Old snapshots lie before the beginning.
    const BEGIN_NS: u64 = 1_000_000_000_000;
    let end_ns = BEGIN_NS + (seconds * 1e9) as u64;
    let mut partition = Partition {
        store,
        disk,
        rng: Rng::new(seed),
        agenda: Agenda::new(BEGIN_NS),
        running: BTreeMap::new(),
        last: 0,
        writes: BTreeMap::new(),
        forget: VecDeque::new(),
        free_ns: 0,
        counted: Counted::default(),
        end_ns,
    };
    partition.next_arrival();
    while let Some(event) = partition.agenda.advance() {
        match event {
            Event::Arrive => {
                let now_ns = partition.agenda.now_ns();
                if now_ns > partition.end_ns {
                    continue;
                }
                partition.collect();
                partition.last += 1;
                let (began_ns, snapshot_ns) = (now_ns, now_ns - ns(store.age_ms));
                partition.running.insert(partition.last, Running { began_ns, snapshot_ns, read: 0, waited_ns: 0 });
                let id = partition.last;
                partition.read(id);
                partition.next_arrival();
            }
            Event::Read(id) => partition.read(id),
            Event::Commit(id) => partition.commit(id),
        }
    }
    partition.counted
}

/// What a wait for a slow clock costs (algorithm 1, lines 19-22), and what our ratchet does instead.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// Share of accesses to another partition that waited.
    pub delay_rate: f64,
    /// How long those waited, milliseconds.
    pub delay_ms: f64,
}

/// So many accesses to another partition, whose clock is behind by a normally distributed skew.
pub fn arrivals(skew: &super::formulas::Skew, round_trip_ms: f64, age_ms: f64, count: u64, seed: u64) -> Arrivals {
    let mut rng = Rng::new(seed);
    let (mut delayed, mut waited_ms) = (0u64, 0.0);
    for _ in 0..count {
        // Box and Muller's way to a normal distribution.
        let (u, v) = (share(&mut rng), share(&mut rng));
        let normal = (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos();
        let behind_ms = skew.mean_ms + skew.deviation_ms * normal;
        // It left with its own clock's time less the age, and was on its way for half a round trip.
        let wait_ms = behind_ms - age_ms - 0.5 * round_trip_ms;
        if wait_ms > 0.0 {
            delayed += 1;
            waited_ms += wait_ms;
        }
    }
    Arrivals { delay_rate: delayed as f64 / count as f64, delay_ms: waited_ms / delayed.max(1) as f64 }
}

#[cfg(test)]
mod tests {
    use super::{Disk, arrivals, simulate};
    use crate::experiments::clock_si_model::formulas::{Skew, Store};

    const SMALL: Store = Store {
        items: 50_000.0,
        reads: 10.0,
        writes: 10.0,
        updates_per_s: 1_000.0,
        sync_ms: 6.7,
        round_trip_ms: 0.0,
        read_ms: 1.0,
        update_ms: 1.0,
        age_ms: 0.0,
    };

    #[test]
    fn one_seed_gives_one_count() {
        let run = |seed| simulate(&SMALL, Disk::Groups, 3.0, seed);
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        assert!(run(7).transactions > 2_500);
    }

    #[test]
    fn what_is_counted_is_what_the_model_says_where_its_assumptions_hold() {
        let counted = simulate(&SMALL, Disk::Apart, 40.0, 1);
        let near = |counted: f64, model: f64, within: f64| (counted / model - 1.0).abs() < within;
        assert!(near(counted.delay_rate(), SMALL.delay_probability(), 0.15), "{counted:?}");
        assert!(near(counted.delay_ms(), SMALL.delay_ms(), 0.15), "{counted:?}");
        let older = Store { age_ms: 7.0, ..SMALL };
        let counted = simulate(&older, Disk::Apart, 40.0, 1);
        assert_eq!((counted.delayed, counted.delay_ns), (0, 0), "older than a commit takes");
        assert!(near(counted.abort_rate(), older.abort_probability(), 0.15), "{counted:?}");
    }

    #[test]
    fn groups_keep_commits_pending_for_longer() {
        let [apart, groups] = [Disk::Apart, Disk::Groups].map(|disk| simulate(&SMALL, disk, 20.0, 3));
        assert!(groups.delay_rate() > 1.2 * apart.delay_rate(), "{groups:?} {apart:?}");
        // Two syncs at most.
        let older = Store { age_ms: 13.5, ..SMALL };
        assert_eq!(simulate(&older, Disk::Groups, 20.0, 3).delayed, 0);
    }

    #[test]
    fn skew_delays_as_the_model_says() {
        let skew = Skew { mean_ms: 0.0, deviation_ms: 0.1 };
        let counted = arrivals(&skew, 0.14, 0.0, 200_000, 5);
        assert!((counted.delay_rate / skew.delay_probability(0.14, 0.0) - 1.0).abs() < 0.03);
        assert!((counted.delay_ms / skew.delay_ms(0.14, 0.0) - 1.0).abs() < 0.03);
    }
}
