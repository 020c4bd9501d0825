//! A store is lost that led thousands of groups, and the two that are left are busy: what they do costs time, and messages wait.

use clock::{HybridClock, Reading, Timestamp};
use protocol::log::raft::{
    Envelope, GroupId, Input, Member, Options, RecordNumber, Recovery, ReplicaId, Replicas, Sabotage, StoreId,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const TICK_US: u64 = 100_000;
const LATENCY_US: u64 = 500;
const SYNC_US: u64 = 2_000;

enum Event {
    /// A store has time again.
    Free(usize),
    Tick(usize),
    Deliver(usize, Envelope),
    Synced(usize, RecordNumber),
}

/// Three stores. Each does one thing at a time.
struct Busy {
    stores: Vec<Replicas>,
    lost: Option<usize>,
    now_us: u64,
    /// When each has time again, and what waits for it.
    free_us: [u64; 3],
    inbox: [VecDeque<Event>; 3],
    /// What a store reads or writes down costs it so much for a kilobyte, microseconds: a letter is about 50 bytes.
    kilobyte_us: u64,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    groups: u64,
}

impl Busy {
    fn new(groups: u64, seed: u64, sabotage: &Sabotage) -> Self {
        let voters: Vec<Member> = (1..=3).map(|n| Member { replica: ReplicaId(n), store: StoreId(n) }).collect();
        let stores = (1..=3).map(|n| {
            let options = Options::new(StoreId(n), seed * 10 + n);
            let mut replicas =
                Recovery::new(options, Arc::new(HybridClock::default())).finish(&BTreeMap::new()).expect("empty");
            *replicas.sabotage() = sabotage.clone();
            replicas
        });
        let now_us = 1_700_000_000_000_000;
        let mut busy = Busy {
            stores: stores.collect(),
            lost: None,
            now_us,
            free_us: [0; 3],
            inbox: Default::default(),
            kilobyte_us: 0,
            events: BTreeMap::new(),
            sequence: 0,
            groups,
        };
        for store in 0..3 {
            for group in (1..=groups).map(GroupId) {
                busy.input(store, Input::Create { group, voters: voters.clone(), floor: Timestamp::MIN });
            }
            // Clocks do not tick together.
            busy.later(now_us + store as u64 * 31_000, Event::Tick(store));
        }
        for group in (1..=groups).map(GroupId) {
            busy.input((group.0 % 3) as usize, Input::Campaign { group });
        }
        busy.until("all sleep", |busy| busy.stores.iter().all(|store| store.awake() == 0) && busy.led() == groups);
        busy.kilobyte_us = 800;
        busy
    }

    fn later(&mut self, at_us: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((at_us, self.sequence), event);
    }

    fn input(&mut self, store: usize, input: Input) {
        let now = Reading::with_error(self.now_us * 1000, 100_000);
        let _ = self.stores[store].step(&now, input);
        let out = self.stores[store].drain();
        let bytes: usize = out.records.iter().map(|record| record.bytes.len()).sum();
        let done_us = self.work(store, bytes);
        for envelope in out.messages_now {
            self.send(done_us, envelope);
        }
        for (_, envelope) in out.messages_after {
            self.send(done_us + SYNC_US, envelope);
        }
        if let Some(last) = out.records.last() {
            self.later(done_us + SYNC_US, Event::Synced(store, last.number));
        }
    }

    fn send(&mut self, at_us: u64, envelope: Envelope) {
        let to = envelope.to.0 as usize - 1;
        self.later(at_us + LATENCY_US, Event::Deliver(to, envelope));
    }

    /// It reads or writes so many bytes: when it has.
    fn work(&mut self, store: usize, bytes: usize) -> u64 {
        self.free_us[store] = self.now_us.max(self.free_us[store]) + bytes as u64 * self.kilobyte_us / 1024;
        self.free_us[store]
    }

    /// The next event. Who is busy gets to it later, in order.
    fn event(&mut self) {
        let ((at_us, _), event) = self.events.pop_first().expect("ticks go on");
        self.now_us = at_us;
        let store = match &event {
            Event::Free(store) | Event::Tick(store) | Event::Deliver(store, _) | Event::Synced(store, _) => *store,
        };
        if self.lost == Some(store) {
            return;
        }
        if !matches!(event, Event::Free(_)) {
            self.inbox[store].push_back(event);
        }
        if self.free_us[store] > self.now_us {
            if self.inbox[store].len() == 1 {
                self.later(self.free_us[store], Event::Free(store));
            }
            return;
        }
        if let Some(event) = self.inbox[store].pop_front() {
            self.take(event);
            if !self.inbox[store].is_empty() {
                self.later(self.free_us[store].max(self.now_us), Event::Free(store));
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Tick(store) => {
                self.later(self.now_us + TICK_US, Event::Tick(store));
                self.input(store, Input::Tick);
            }
            Event::Deliver(store, envelope) => {
                self.work(store, envelope.encode().len());
                self.input(store, Input::Message(envelope));
            }
            Event::Synced(store, record) => self.input(store, Input::Persisted(record)),
            Event::Free(_) => {}
        }
    }

    fn leads(&self, group: u64) -> bool {
        let running = (0..3).filter(|store| self.lost != Some(*store));
        running.into_iter().any(|store| self.stores[store].lease(GroupId(group)).is_some())
    }

    fn led(&self) -> u64 {
        (1..=self.groups).filter(|group| self.leads(*group)).count() as u64
    }

    #[track_caller]
    fn until(&mut self, what: &str, holds: impl Fn(&Busy) -> bool) {
        let (begun_us, mut look_us) = (self.now_us, 0);
        while self.now_us < begun_us + 200_000_000 {
            if self.now_us >= look_us {
                if holds(self) {
                    return;
                }
                look_us = self.now_us + 20_000;
            }
            self.event();
        }
        panic!("it never came to it: {what}");
    }
}

const GROUPS: u64 = 1500;
/// A promise may have been given just now: it is past after so long.
const PROMISE_US: u64 = 3_000_000;
/// What the elections of one group cost the two stores, with room for a bad hand.
const ELECTION_US: u64 = 600;

/// For how long some group has no leader, microseconds.
fn loses_a_store(seed: u64, sabotage: &Sabotage) -> u64 {
    let mut busy = Busy::new(GROUPS, seed, sabotage);
    busy.lost = Some(0);
    let begun_us = busy.now_us;
    busy.until("all have leaders", |busy| busy.led() == GROUPS);
    let shares =
        [1, 2].map(|store: usize| (1..=GROUPS).filter(|g| busy.stores[store].lease(GroupId(*g)).is_some()).count());
    println!("seed {seed}: {} ms, shares {shares:?}", (busy.now_us - begun_us) / 1000);
    busy.now_us - begun_us
}

#[test]
fn a_lost_stores_groups_have_leaders_in_a_time_proportional_to_their_number() {
    let most_us = PROMISE_US + 2 * TICK_US + GROUPS / 3 * ELECTION_US;
    for seed in 0..4 {
        let took_us = loses_a_store(seed, &Sabotage::default());
        assert!(took_us < most_us, "seed {seed}: {took_us} us, not {most_us}");
    }
    let at_once = Sabotage { elections_at_once: true, ..Sabotage::default() };
    assert!((0..4).any(|seed| loses_a_store(seed, &at_once) > most_us), "the order is not needed");
}

/// Somebody asks for a few of them.
#[test]
fn who_is_asked_for_comes_first() {
    let mut busy = Busy::new(GROUPS, 7, &Sabotage::default());
    let lost: Vec<u64> = (1..=GROUPS).filter(|g| busy.stores[0].lease(GroupId(*g)).is_some()).collect();
    let wanted: Vec<u64> = lost.iter().copied().skip(450).step_by(5).collect();
    busy.lost = Some(0);
    // Ten times as slow: it takes a second.
    busy.kilobyte_us *= 10;
    let waits =
        |busy: &Busy| lost.iter().any(|g| busy.stores[1].status(GroupId(*g)).is_some_and(|s| s.leader.is_none()));
    busy.until("they wait for their elections", waits);
    for group in &wanted {
        for store in [1, 2] {
            busy.input(store, Input::Wanted { group: GroupId(*group) });
        }
    }
    busy.until("they have leaders", |busy| wanted.iter().all(|group| busy.leads(*group)));
    let others = lost.iter().filter(|group| busy.leads(**group)).count() - wanted.len();
    println!("{others} others of {}, {} wanted", lost.len(), wanted.len());
    assert!(others < lost.len() * 3 / 4, "{others} of {} came before the last of {}", lost.len(), wanted.len());
}
