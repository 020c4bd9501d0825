//! One machine: a store's replicas, its clock, its log on a disk that loses what is not synced, its state.

use super::app::App;
use bytes::Bytes;
use clock::{HybridClock, Reading};
use protocol::log::raft::{Envelope, GroupId, Options, Record, RecordNumber, Recovery, Replicas, Sabotage, StoreId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A clock: how far it is off, how fast it drifts, and how wrong it says it may be.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    pub offset_us: i64,
    pub drift_ppm: i64,
    pub error_us: u64,
    /// Nobody vouches for it.
    pub dark: bool,
}

impl Watch {
    pub fn read(&self, true_us: u64) -> Reading {
        let shown =
            true_us as i64 + self.offset_us + (true_us - super::world::BEGIN_US) as i64 * self.drift_ppm / 1_000_000;
        let mut reading = Reading::with_error(shown as u64 * 1000, self.error_us * 1000);
        if self.dark {
            reading.status = clock::Status::Disrupted;
        }
        reading
    }
}

pub struct Machine {
    pub id: StoreId,
    pub watch: Watch,
    pub replicas: Option<Replicas>,
    pub hybrid: Arc<HybridClock>,
    /// Counts the lives: events of an earlier one are void.
    pub life: u64,
    pub paused: bool,
    /// What comes in meanwhile.
    pub mailbox: Vec<Bytes>,
    pub stalled: bool,
    /// The log.
    pub disk: Vec<Record>,
    pub unsynced: Vec<Record>,
    pub held: Vec<(RecordNumber, Envelope)>,
    /// The state, and as much of it as is durable.
    pub apps: BTreeMap<GroupId, App>,
    pub durable_apps: BTreeMap<GroupId, App>,
    /// State of replicas that are gone: it goes when this record is durable.
    pub doomed: Vec<(RecordNumber, GroupId)>,
    /// Snapshots held for sending, and coming in.
    pub taken: BTreeMap<GroupId, Bytes>,
    pub staged: BTreeMap<GroupId, Vec<u8>>,
    pub options: Options,
    pub sabotage: Sabotage,
}

impl Machine {
    pub fn new(options: Options, watch: Watch, sabotage: Sabotage) -> Self {
        let mut machine = Machine {
            id: options.store,
            watch,
            replicas: None,
            hybrid: Arc::default(),
            life: 0,
            paused: false,
            mailbox: Vec::new(),
            stalled: false,
            disk: Vec::new(),
            unsynced: Vec::new(),
            held: Vec::new(),
            apps: BTreeMap::new(),
            durable_apps: BTreeMap::new(),
            doomed: Vec::new(),
            taken: BTreeMap::new(),
            staged: BTreeMap::new(),
            options,
            sabotage,
        };
        machine.start();
        machine
    }

    /// Reads the log back.
    pub fn start(&mut self) {
        self.life += 1;
        self.options.seed = self.options.seed.wrapping_mul(31).wrapping_add(self.life);
        self.hybrid = Arc::default();
        let mut recovery = Recovery::new(self.options.clone(), self.hybrid.clone());
        for record in &self.disk {
            recovery.record(record.number, &record.bytes.clone().into()).expect("the log is sound");
        }
        self.apps = self.durable_apps.clone();
        let applied = self.apps.iter().map(|(group, app)| (*group, app.applied)).collect();
        let mut replicas = recovery.finish(&applied).expect("the log fits the state");
        *replicas.sabotage() = self.sabotage.clone();
        self.replicas = Some(replicas);
    }

    /// The process dies, and of what was not synced the disk has the first `kept` records.
    pub fn crash(&mut self, kept: usize) {
        self.replicas = None;
        self.life += 1;
        self.paused = false;
        self.disk.extend(self.unsynced.drain(..).take(kept));
        self.held.clear();
        // Of records that were kept nobody was told: look again.
        let last = self.disk.last().map_or(RecordNumber(0), |record| record.number);
        self.forget(last);
        self.doomed.clear();
        self.mailbox.clear();
        self.taken.clear();
        self.staged.clear();
    }

    /// The state of replicas whose removal is durable goes.
    pub fn forget(&mut self, durable: RecordNumber) {
        let over: Vec<GroupId> = self.doomed.extract_if(.., |(n, _)| *n <= durable).map(|(_, group)| group).collect();
        for group in over {
            self.durable_apps.remove(&group);
        }
    }

    /// Segments before the oldest record that is needed are recycled.
    pub fn recycle(&mut self) {
        if let Some(replicas) = &self.replicas {
            let oldest = replicas.oldest_record();
            self.disk.retain(|record| record.number >= oldest);
        }
    }
}
