//! What the replicas of a store share: its log, its promises, its outgoing messages, its clock.

use super::chance::Chance;
use super::closed::Words;
use super::elections::Elections;
use super::error::Refused;
use super::ids::{GroupId, RecordNumber, ReplicaId, StoreId};
use super::ledger::Ledger;
use super::options::{Options, RECORDS_WAITING_MAX};
use super::outputs::Outputs;
use super::post::Post;
use super::promise::Promises;
use super::record;
use super::sabotage::Sabotage;
use super::snapshot::Snapshots;
use clock::HybridClock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Store {
    pub options: Options,
    pub clock: Arc<HybridClock>,
    pub ledger: Ledger,
    pub promises: Promises,
    pub post: Post,
    pub out: Outputs,
    pub chance: Chance,
    pub snapshots: Snapshots,
    /// Groups that get ticks.
    pub awake: BTreeSet<GroupId>,
    /// Groups whose library has something to hand out.
    pub dirty: BTreeSet<GroupId>,
    /// Where the record of each promise stands.
    pub pair_records: BTreeMap<StoreId, RecordNumber>,
    /// How many groups here have a member on each other store.
    neighbours: BTreeMap<StoreId, usize>,
    /// Promises are asked for at the next tick.
    pub ask_soon: bool,
    pub words: Words,
    pub elections: Elections,
    /// The stores that are known to live: their promises are running.
    pub elections_heard: BTreeSet<StoreId>,
    /// Entries of leaders elsewhere are not taken now: what carries them counts as lost.
    pub refuses_entries: bool,
    /// What leaders here have proposed and is not committed, bytes: as of the last tick, with what came since.
    pub uncommitted_bytes: u64,
    /// So many messages were refused for it.
    pub put_off: u64,
    pub sabotage: Sabotage,
}

impl Store {
    pub fn new(options: Options, clock: Arc<HybridClock>, last: RecordNumber) -> Self {
        Store {
            clock,
            ledger: Ledger::new(last),
            promises: Promises::default(),
            post: Post::new(options.store),
            out: Outputs::default(),
            chance: Chance::new(options.seed),
            snapshots: Snapshots::default(),
            awake: BTreeSet::new(),
            dirty: BTreeSet::new(),
            pair_records: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            ask_soon: true,
            words: Words::default(),
            elections: Elections::default(),
            elections_heard: BTreeSet::new(),
            refuses_entries: false,
            uncommitted_bytes: 0,
            put_off: 0,
            sabotage: Sabotage::default(),
            options,
        }
    }

    pub fn id(&self) -> StoreId {
        self.options.store
    }

    /// Writes down what is promised to a store.
    pub fn write_pair(&mut self, to: StoreId) -> RecordNumber {
        let number = self.ledger.write(record::pair(to, &self.promises.pair(to)));
        self.pair_records.insert(to, number);
        number
    }

    /// A group's other stores were `old` and are `new`.
    pub fn count_neighbours(&mut self, old: &BTreeSet<StoreId>, new: &BTreeSet<StoreId>) {
        for store in new.difference(old) {
            let count = self.neighbours.entry(*store).or_default();
            *count += 1;
            self.ask_soon |= *count == 1;
        }
        for store in old.difference(new) {
            if let Some(count) = self.neighbours.get_mut(store) {
                *count -= 1;
                if *count == 0 {
                    self.neighbours.remove(store);
                }
            }
        }
    }

    /// The replica here is no member any more.
    pub fn tell_removed(&mut self, group: GroupId, replica: ReplicaId) {
        if !self.out.removed.contains(&(group, replica)) {
            self.out.removed.push((group, replica));
        }
    }

    /// The other stores that groups here have members on.
    pub fn neighbours(&self) -> Vec<StoreId> {
        self.neighbours.keys().copied().collect()
    }

    pub fn is_neighbour(&self, store: StoreId) -> bool {
        self.neighbours.contains_key(&store)
    }

    /// Whether the disk keeps up.
    pub fn check_load(&self) -> Result<(), Refused> {
        if self.ledger.waiting() < RECORDS_WAITING_MAX { Ok(()) } else { Err(Refused::Overloaded) }
    }

    /// A new draw of an election timeout, ticks.
    pub fn draw_timeout(&mut self) -> usize {
        let least = self.options.election_ticks;
        least + self.chance.below(least)
    }
}
