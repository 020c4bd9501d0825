//! How fast it is: printed, not asserted. `cargo test --release -p timeball-protocol --test raft speed -- --ignored --nocapture`.

use clock::{HybridClock, Reading, Timestamp};
use protocol::log::raft::{
    Envelope, GroupId, Input, Member, Options, RecordNumber, Recovery, ReplicaId, Replicas, StoreId,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Three stores in one thread: messages arrive and disks sync at once, in turns.
struct Three {
    stores: Vec<Replicas>,
    now_us: u64,
    committed: usize,
}

impl Three {
    fn new(groups: u64) -> Self {
        let voters: Vec<Member> = (1..=3).map(|n| Member { replica: ReplicaId(n), store: StoreId(n) }).collect();
        let stores = (1..=3).map(|n| {
            let recovery = Recovery::new(Options::new(StoreId(n), n), Arc::new(HybridClock::default()));
            recovery.finish(&BTreeMap::new()).expect("an empty log")
        });
        let mut three = Three { stores: stores.collect(), now_us: 1_700_000_000_000_000, committed: 0 };
        for group in (1..=groups).map(GroupId) {
            for store in 0..3 {
                let voters = voters.clone();
                three.input(store, Input::Create { group, voters, floor: Timestamp::MIN });
            }
        }
        three.turn();
        for group in (1..=groups).map(GroupId) {
            three.input((group.0 % 3) as usize, Input::Campaign { group });
        }
        three.turn();
        for _ in 0..30 {
            three.tick();
        }
        three
    }

    fn reading(&self) -> Reading {
        Reading::with_error(self.now_us * 1000, 100_000)
    }

    fn input(&mut self, store: usize, input: Input) {
        let now = self.reading();
        self.stores[store].step(&now, input).expect("all is well");
    }

    /// Until nobody has anything to say.
    fn turn(&mut self) {
        let mut queue: VecDeque<Envelope> = VecDeque::new();
        loop {
            let mut quiet = true;
            for store in 0..3 {
                self.now_us += 1;
                let out = self.stores[store].drain();
                self.committed += out.committed.iter().map(|run| run.entries.len()).sum::<usize>();
                queue.extend(out.messages_now);
                if let Some(last) = out.records.last() {
                    quiet = false;
                    let last: RecordNumber = last.number;
                    self.input(store, Input::Persisted(last));
                }
                queue.extend(out.messages_after.into_iter().map(|(_, envelope)| envelope));
            }
            while let Some(envelope) = queue.pop_front() {
                quiet = false;
                let to = envelope.to.0 as usize - 1;
                let now = self.reading();
                let _ = self.stores[to].step(&now, Input::Message(envelope));
            }
            if quiet {
                return;
            }
        }
    }

    fn tick(&mut self) {
        self.now_us += 100_000;
        for store in 0..3 {
            self.input(store, Input::Tick);
        }
        self.turn();
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    #[allow(clippy::disallowed_methods, reason = "a measurement")]
    let begin = std::time::Instant::now();
    work();
    begin.elapsed()
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    for at_once in [1usize, 64, 1024] {
        let mut three = Three::new(1);
        let rounds = 200_000 / (at_once + 10);
        let payload = bytes::Bytes::from(vec![7u8; 100]);
        three.committed = 0;
        let took = timed(|| {
            for round in 0..rounds {
                for _ in 0..at_once {
                    let now = three.reading();
                    three.stores[1].propose(&now, GroupId(1), payload.clone(), Timestamp::MIN).expect("it leads");
                }
                three.turn();
                if round % 100 == 0 {
                    three.tick();
                }
                if round % 16 == 0 {
                    for store in 0..3 {
                        let index = three.stores[store].status(GroupId(1)).expect("it is there").applied;
                        three.input(store, Input::Truncate { group: GroupId(1), index });
                    }
                }
            }
        });
        let proposals = rounds * at_once;
        assert!(three.committed >= proposals * 3, "all are applied by all");
        println!("{at_once} at once: {:.0} proposals/s", proposals as f64 / took.as_secs_f64());
    }
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).map(str::to_owned);
        line.and_then(|l| l.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok())).unwrap_or(0)
    };
    let before = resident();
    let mut three = Three::new(10_000);
    let awake: Vec<usize> = three.stores.iter().map(Replicas::awake).collect();
    let took = timed(|| (0..1000).for_each(|_| three.tick()));
    println!(
        "10,000 groups, awake {awake:?}: {:.1} us per tick of three stores, {} KiB for them all",
        took.as_secs_f64() * 1000.0,
        resident().saturating_sub(before)
    );
}

/// Whatever sleeps costs nothing: between two requests for promises a tick says nothing at all.
#[test]
fn sleepers_say_nothing() {
    let mut three = Three::new(300);
    assert!(three.stores.iter().all(|store| store.awake() == 0), "all sleep");
    let (mut quiet, mut records) = (0, 0);
    for _ in 0..20 {
        three.now_us += 100_000;
        three.input(0, Input::Tick);
        let out = three.stores[0].drain();
        assert!(out.messages_now.is_empty() && out.committed.is_empty());
        records += out.records.len();
        quiet += usize::from(out.records.is_empty() && out.messages_after.is_empty());
        if let Some(last) = out.records.last() {
            three.input(0, Input::Persisted(last.number));
        }
    }
    assert_eq!((quiet, records), (16, 4), "one record for each request, for all groups together");
}
