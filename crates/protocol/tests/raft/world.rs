//! The event loop: virtual time, one input at a time, everything seen to before the next.

use super::app::{App, mix};
use super::machine::{Machine, Watch};
use super::network::{Rng, Weather};
use super::watch::{Checks, Verdict, short};
use bytes::Bytes;
use clock::Timestamp;
use protocol::log::raft::{
    Change, Envelope, Fate, GroupId, Input, Member, Options, Outputs, Proposed, Record, RecordNumber, Refused,
    ReplicaId, Role, Sabotage, SnapshotTask, StoreId,
};
use std::collections::BTreeMap;

pub const TICK_US: u64 = 100_000;
pub const BEGIN_US: u64 = 1_700_000_000_000_000;

#[derive(Clone, Debug)]
enum Event {
    Tick(StoreId, u64),
    Deliver(StoreId, Bytes),
    Synced(StoreId, u64, RecordNumber),
    Driver(StoreId, u64, Input),
}

pub struct World {
    pub now_us: u64,
    pub rng: Rng,
    pub weather: Weather,
    pub machines: BTreeMap<StoreId, Machine>,
    pub checks: Checks,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    /// Of everything that happened.
    pub digest: u64,
    pub story: Option<Vec<String>>,
    /// Envelopes as they were sent, if anybody listens.
    pub overheard: Option<Vec<Bytes>>,
    /// Bytes that a snapshot is padded to.
    pub padding: usize,
    pub greatest: BTreeMap<GroupId, u64>,
    /// Reads are served all the time.
    pub reading: bool,
}

impl World {
    pub fn new(seed: u64, stores: u64, sabotage: &Sabotage, mut watch: impl FnMut(&mut Rng) -> Watch) -> Self {
        let mut rng = Rng::new(seed);
        let mut world = World {
            now_us: BEGIN_US,
            weather: Weather::calm(),
            machines: BTreeMap::new(),
            checks: Checks::default(),
            events: BTreeMap::new(),
            sequence: 0,
            digest: 0,
            story: None,
            overheard: None,
            padding: 1000,
            greatest: BTreeMap::new(),
            reading: true,
            rng: rng.clone(),
        };
        for id in 1..=stores {
            let watch = watch(&mut rng);
            let mut options = Options::new(StoreId(id), seed * 100 + id);
            // Odd seeds close as early as can be.
            options.close_after_us = if seed.is_multiple_of(2) { 3_000_000 } else { 150_000 };
            let machine = Machine::new(options, watch, sabotage.clone());
            world.machines.insert(StoreId(id), machine);
            world.later(rng.below(TICK_US), Event::Tick(StoreId(id), 1));
        }
        world.rng = rng;
        world
    }

    fn later(&mut self, after_us: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now_us + after_us, self.sequence), event);
    }

    pub fn note(&mut self, line: impl FnOnce(&World) -> String) {
        let Some(mut story) = self.story.take() else { return };
        let ms = (self.now_us - BEGIN_US) / 1000;
        story.push(format!("{ms:>6} {}", line(self)));
        self.story = Some(story);
    }

    /// Founds a group.
    pub fn found(&mut self, group: GroupId, stores: &[u64]) -> Verdict {
        self.found_on(group, stores, stores)
    }

    /// Founds a group with voters on some stores, on some of them.
    pub fn found_on(&mut self, group: GroupId, stores: &[u64], on: &[u64]) -> Verdict {
        let voters: Vec<Member> =
            (1..).zip(stores).map(|(r, s)| Member { replica: ReplicaId(r), store: StoreId(*s) }).collect();
        self.greatest.insert(group, stores.len() as u64);
        for store in on {
            let machine = self.machines.get_mut(&StoreId(*store)).unwrap();
            machine.apps.entry(group).or_default();
            machine.durable_apps.entry(group).or_default();
            let input = Input::Create { group, voters: voters.clone(), floor: Timestamp::MIN };
            self.input(StoreId(*store), input)?;
        }
        Ok(())
    }

    /// Runs for so long.
    pub fn run(&mut self, us: u64) -> Verdict {
        let until = self.now_us + us;
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= until) {
            self.now_us = entry.key().0;
            let event = entry.remove();
            self.event(event)?;
        }
        self.now_us = until;
        Ok(())
    }

    pub fn ticks(&mut self, ticks: u64) -> Verdict {
        self.run(ticks * TICK_US)
    }

    fn event(&mut self, event: Event) -> Verdict {
        match event {
            Event::Tick(store, life) => {
                let machine = &self.machines[&store];
                if machine.life != life {
                    return Ok(());
                }
                self.later(TICK_US, Event::Tick(store, life));
                if self.machines[&store].paused { Ok(()) } else { self.input(store, Input::Tick) }
            }
            Event::Deliver(to, bytes) => {
                let machine = self.machines.get_mut(&to).unwrap();
                if machine.replicas.is_none() {
                    return Ok(());
                }
                if machine.paused {
                    machine.mailbox.push(bytes);
                    return Ok(());
                }
                let envelope = Envelope::decode(&bytes).map_err(|why| why.to_string())?;
                self.input(to, Input::Message(envelope))
            }
            Event::Synced(store, life, upto) => {
                let machine = self.machines.get_mut(&store).unwrap();
                if machine.life != life {
                    return Ok(());
                }
                if machine.stalled || machine.paused {
                    self.later(TICK_US, Event::Synced(store, life, upto));
                    return Ok(());
                }
                let done = machine.unsynced.iter().take_while(|record| record.number <= upto).count();
                machine.disk.extend(machine.unsynced.drain(..done));
                machine.forget(upto);
                let go = machine.held.iter().take_while(|(number, _)| *number <= upto).count();
                let go: Vec<Envelope> = machine.held.drain(..go).map(|(_, envelope)| envelope).collect();
                for envelope in go {
                    self.send(envelope);
                }
                self.input(store, Input::Persisted(upto))
            }
            Event::Driver(store, life, input) => {
                if self.machines[&store].life != life {
                    return Ok(());
                }
                if self.machines[&store].paused {
                    self.later(TICK_US, Event::Driver(store, life, input));
                    return Ok(());
                }
                self.input(store, input)
            }
        }
    }

    fn send(&mut self, envelope: Envelope) {
        let (from, to) = (envelope.from, envelope.to);
        let bytes: Bytes = envelope.encode().into();
        self.digest = mix(self.digest, &bytes);
        if let Some(overheard) = &mut self.overheard {
            overheard.push(bytes.clone());
        }
        if self.weather.cuts.contains(&(from, to)) || self.rng.percent(self.weather.loss_percent) {
            return;
        }
        let copies = 1 + u64::from(self.rng.percent(self.weather.double_percent));
        for _ in 0..copies {
            let latency = self.weather.latency(&mut self.rng);
            self.later(latency, Event::Deliver(to, bytes.clone()));
        }
    }

    /// One input, and everything that comes of it.
    pub fn input(&mut self, store: StoreId, input: Input) -> Verdict {
        let now_us = self.now_us;
        let machine = self.machines.get_mut(&store).unwrap();
        let reading = machine.watch.read(now_us);
        let Some(replicas) = &mut machine.replicas else { return Ok(()) };
        let refused = replicas.step(&reading, input).err();
        if let Some(why) = refused {
            self.note(|_| format!("{store} refuses: {why}"));
        }
        self.drain(store)
    }

    pub fn propose(
        &mut self,
        store: StoreId,
        group: GroupId,
        payload: Bytes,
    ) -> Result<Result<Proposed, Refused>, String> {
        let now_us = self.now_us;
        let machine = self.machines.get_mut(&store).unwrap();
        let reading = machine.watch.read(now_us);
        let Some(replicas) = machine.replicas.as_mut().filter(|_| !machine.paused) else {
            return Ok(Err(Refused::Dropped));
        };
        let result = replicas.propose(&reading, group, payload, Timestamp::MIN);
        if let Ok(proposed) = &result {
            if let Some(lease) = replicas.lease(group) {
                self.checks.serves(store, group, proposed.term, lease, Timestamp::MIN)?;
            }
            self.checks.stamped(group, proposed)?;
        }
        self.drain(store)?;
        Ok(result)
    }

    fn drain(&mut self, store: StoreId) -> Verdict {
        let machine = self.machines.get_mut(&store).unwrap();
        let out = machine.replicas.as_mut().unwrap().drain();
        let life = machine.life;
        for Record { number, bytes } in &out.records {
            self.digest = mix(mix(self.digest, &number.0.to_le_bytes()), bytes);
        }
        if let Some(last) = out.records.last() {
            let sync_us = self.rng.range(self.weather.sync_us.0, self.weather.sync_us.1);
            let number = last.number;
            self.later(sync_us, Event::Synced(store, life, number));
        }
        let machine = self.machines.get_mut(&store).unwrap();
        machine.unsynced.extend(out.records.iter().cloned());
        machine.held.extend(out.messages_after.iter().cloned());
        self.show(store, &out);
        for envelope in out.messages_now.iter().cloned() {
            let (bulk, rest) = envelope.apart();
            bulk.into_iter().chain(rest).for_each(|envelope| self.send(envelope));
        }
        self.apply(store, &out)?;
        for change in &out.roles {
            let replicas = self.machines[&store].replicas.as_ref().unwrap();
            if change.role == Role::Leader {
                self.checks.leads(store, change.group, change.term, replicas)?;
            }
        }
        for fate in &out.fates {
            if let Fate::Absent { group, term, from } = fate {
                self.checks.is_absent(*group, *term, *from)?;
            }
        }
        for task in out.snapshots {
            self.snapshot(store, task)?;
        }
        self.serve(store)?;
        for (group, replica) in out.removed {
            self.note(|_| format!("{store} {group}: {replica} is no member any more"));
            self.machines.get_mut(&store).unwrap().apps.remove(&group);
            self.input(store, Input::Remove { group })?;
            let machine = self.machines.get_mut(&store).unwrap();
            if let Some(last) = machine.unsynced.last() {
                machine.doomed.push((last.number, group));
            }
        }
        Ok(())
    }

    fn apply(&mut self, store: StoreId, out: &Outputs) -> Verdict {
        let machine = self.machines.get_mut(&store).unwrap();
        for run in &out.committed {
            let app = machine.apps.entry(run.group).or_insert_with(|| App { applied: 0, ..App::default() });
            for entry in &run.entries {
                app.apply(entry);
                self.checks.applied(store, run.group, entry, app)?;
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, store: StoreId, task: SnapshotTask) -> Verdict {
        let padding = self.padding;
        let machine = self.machines.get_mut(&store).unwrap();
        let life = machine.life;
        let answer = match task {
            SnapshotTask::Take { group, .. } => {
                let app = &machine.apps[&group];
                let (index, bytes) = (app.applied, app.snapshot(padding));
                machine.taken.insert(group, bytes.clone());
                Some(Input::SnapshotTaken { group, index, bytes: bytes.len() as u64 })
            }
            SnapshotTask::Read { group, offset, bytes } => {
                let from = offset as usize;
                let bytes = machine.taken[&group].slice(from..from + bytes);
                Some(Input::SnapshotRead { group, offset, bytes })
            }
            SnapshotTask::Drop { group } => {
                machine.taken.remove(&group);
                None
            }
            SnapshotTask::Begin { group, bytes, .. } => {
                machine.staged.insert(group, Vec::with_capacity(bytes as usize));
                None
            }
            SnapshotTask::Write { group, offset, bytes } => {
                let staged = machine.staged.get_mut(&group).expect("it has begun");
                assert_eq!(staged.len() as u64, offset, "parts come in order");
                staged.extend_from_slice(&bytes);
                None
            }
            SnapshotTask::Install { group, index } => {
                let app = App::restore(&machine.staged.remove(&group).expect("it is here"));
                assert_eq!(app.applied, index);
                machine.apps.insert(group, app.clone());
                machine.durable_apps.insert(group, app.clone());
                self.checks.installed(store, group, &app)?;
                Some(Input::SnapshotInstalled { group })
            }
            SnapshotTask::Abandon { group } => {
                machine.staged.remove(&group);
                None
            }
        };
        if let Some(input) = answer {
            let after_us = 500 + self.rng.below(2000);
            self.later(after_us, Event::Driver(store, life, input));
        }
        Ok(())
    }

    /// Whoever has a lease serves a read at its `latest`, and lets its clock know.
    fn serve(&mut self, store: StoreId) -> Verdict {
        let machine = &self.machines[&store];
        let replicas = machine.replicas.as_ref().unwrap();
        let latest = machine.watch.read(self.now_us).interval.latest();
        for group in replicas.groups() {
            if let Some(lease) = replicas.lease(group) {
                let term = replicas.status(group).expect("it leads").term;
                let at = if self.reading { latest.min(lease.1) } else { Timestamp::MIN };
                if at > lease.0 {
                    machine.hybrid.ratchet(at);
                }
                self.checks.serves(store, group, term, lease, at)?;
            }
            if let Some((at, index)) = replicas.closed(group) {
                self.checks.closed(group, at, index)?;
            }
        }
        Ok(())
    }

    fn show(&mut self, store: StoreId, out: &Outputs) {
        if self.story.is_none() {
            return;
        }
        for change in &out.roles {
            let leader = change.leader.map_or("nobody".into(), |leader| leader.to_string());
            let role = short(change.role);
            let (group, term) = (change.group, change.term);
            self.note(|_| format!("{store} {group}: {role} in term {term}, led by {leader}"));
        }
        for conf in &out.configurations {
            let line = format!(
                "{store} {}: voters {:?} outgoing {:?} learners {:?}",
                conf.group,
                conf.voters.iter().map(|m| m.store).collect::<Vec<_>>(),
                conf.outgoing.iter().map(|m| m.store).collect::<Vec<_>>(),
                conf.learners.iter().map(|m| m.store).collect::<Vec<_>>(),
            );
            self.note(|_| line);
        }
        for group in &out.leases {
            let has = self.machines[&store].replicas.as_ref().unwrap().lease(*group).is_some();
            self.note(|_| format!("{store} {group}: {}", if has { "has a lease" } else { "has no lease" }));
        }
        for run in &out.committed {
            let (first, last) = (run.entries[0].index, run.entries.last().unwrap().index);
            let names: Vec<&str> = run
                .entries
                .iter()
                .map(|entry| match entry.body {
                    protocol::log::raft::Body::Begin => "begin",
                    protocol::log::raft::Body::Command(_) => "command",
                    protocol::log::raft::Body::Release => "release",
                    protocol::log::raft::Body::Change(_) => "change",
                    protocol::log::raft::Body::Leave { .. } => "leave",
                })
                .collect();
            let group = run.group;
            self.note(|_| format!("{store} {group}: applies {first}..={last} {}", names.join(" ")));
        }
        for task in &out.snapshots {
            let line = match task {
                SnapshotTask::Take { group, .. } => format!("{group}: takes a snapshot"),
                SnapshotTask::Read { group, offset, bytes } => format!("{group}: reads {bytes} bytes at {offset}"),
                SnapshotTask::Drop { group } => format!("{group}: drops its snapshot"),
                SnapshotTask::Begin { group, bytes, .. } => format!("{group}: a snapshot of {bytes} bytes begins"),
                SnapshotTask::Write { group, offset, bytes } => {
                    format!("{group}: writes {} bytes at {offset}", bytes.len())
                }
                SnapshotTask::Install { group, index } => format!("{group}: installs the snapshot up to {index}"),
                SnapshotTask::Abandon { group } => format!("{group}: abandons the snapshot"),
            };
            self.note(|_| format!("{store} {line}"));
        }
        for fate in &out.fates {
            let line = format!("{store} {fate:?}");
            self.note(|_| line);
        }
    }

    pub fn crash(&mut self, store: StoreId) {
        let machine = self.machines.get_mut(&store).unwrap();
        let kept = self.rng.below(machine.unsynced.len() as u64 + 1) as usize;
        machine.crash(kept);
        self.note(|_| format!("{store} crashes"));
    }

    pub fn restart(&mut self, store: StoreId) {
        let after_us = self.rng.below(TICK_US);
        let machine = self.machines.get_mut(&store).unwrap();
        if machine.replicas.is_none() {
            machine.start();
            let life = machine.life;
            self.later(after_us, Event::Tick(store, life));
            self.note(|_| format!("{store} starts"));
        }
    }

    pub fn pause(&mut self, store: StoreId) {
        self.machines.get_mut(&store).unwrap().paused = true;
        self.note(|_| format!("{store} is paused"));
    }

    pub fn resume(&mut self, store: StoreId) -> Verdict {
        let machine = self.machines.get_mut(&store).unwrap();
        machine.paused = false;
        let mailbox = std::mem::take(&mut machine.mailbox);
        self.note(|_| format!("{store} goes on"));
        for bytes in mailbox {
            self.event(Event::Deliver(store, bytes))?;
        }
        Ok(())
    }

    /// The log up to what is applied goes; so do segments that nobody needs.
    pub fn truncate(&mut self, store: StoreId, group: GroupId) -> Verdict {
        let machine = self.machines.get_mut(&store).unwrap();
        let Some(app) = machine.apps.get(&group).cloned().filter(|_| machine.replicas.is_some()) else { return Ok(()) };
        let index = app.applied;
        machine.durable_apps.insert(group, app);
        self.input(store, Input::Truncate { group, index })
    }

    pub fn leader(&self, group: GroupId) -> Option<StoreId> {
        let leads = |machine: &&Machine| {
            let status = machine.replicas.as_ref().and_then(|replicas| replicas.status(group));
            status.filter(|status| status.role == Role::Leader).map(|status| status.term)
        };
        let best = self.machines.values().filter(|m| leads(m).is_some()).max_by_key(leads)?;
        Some(best.id)
    }

    pub fn change(&mut self, group: GroupId, changes: Vec<Change>) -> Verdict {
        let Some(leader) = self.leader(group) else { return Ok(()) };
        self.note(|_| format!("{leader} {group}: should change {changes:?}"));
        self.input(leader, Input::Change { group, changes })
    }

    pub fn transfer(&mut self, group: GroupId, to: StoreId) -> Verdict {
        let Some(leader) = self.leader(group).filter(|leader| !self.machines[leader].paused) else { return Ok(()) };
        let term = self.machines[&leader].replicas.as_ref().unwrap().status(group).unwrap().term;
        self.checks.hands_over(group, term);
        self.note(|_| format!("{leader} {group}: should hand over to {to}"));
        self.input(leader, Input::Transfer { group, to })
    }

    pub fn cut(&mut self, from: u64, to: u64) {
        self.weather.cuts.insert((StoreId(from), StoreId(to)));
    }

    pub fn isolate(&mut self, store: StoreId) {
        for other in self.machines.keys().copied().filter(|other| *other != store) {
            self.weather.cuts.insert((store, other));
            self.weather.cuts.insert((other, store));
        }
        self.note(|_| format!("{store} is cut off"));
    }

    pub fn heal(&mut self) {
        self.weather.cuts.clear();
        self.note(|_| "the network heals".into());
    }
}
