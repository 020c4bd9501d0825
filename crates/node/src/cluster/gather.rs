//! Commands that wait for company.
//!
//! # Problem
//! Each command that is proposed by itself becomes a record, and a message to each follower, which becomes a record and a sync there and a message back.
//! With many clients the messages cost more than the commands.
//!
//! # Idea
//! While a record of this node is on its way to the disk, commands gather here. When it is durable they are proposed together: one record, one message to
//! each follower. Where the disk is idle a command is proposed at once, so a single client waits for nobody.
//!
//! # Invariants
//! 1. What gathers was not proposed: it has no timestamp and no flight, and may still be refused, as if it had come later.
//! 2. Nothing gathers for longer than a tick, or beyond [`GATHERED_MAX`] commands or [`GATHERED_BYTES_MAX`] bytes: a leader whose disk stalls still replicates.
//!
//! # Caveats
//! A leader's first message leaves up to a sync later than it could, where others wait as well: throughput is bought with some of the latency under load.

use super::core::Core;
use super::shard::Asker;
use super::stage::record_bytes;
use clock::Reading;
use protocol::door::Request;
use protocol::log::raft::RecordNumber;
use protocol::txn::RangeId;
use store::{Engine, StoreError};

/// Commands that gather, at most.
const GATHERED_MAX: usize = 512;
/// And what they take as records, at most.
const GATHERED_BYTES_MAX: usize = 1 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    commands: Vec<(Asker, RangeId, Request)>,
    bytes: usize,
    /// The last record that is known to be durable.
    durable: RecordNumber,
    /// What gathered is proposed now.
    over: bool,
}

impl Gathering {
    /// After a start, when all records up to this one are durable.
    pub fn after(durable: RecordNumber) -> Self {
        Gathering { durable, ..Gathering::default() }
    }

    /// Up to where records are durable.
    pub fn reached(&self) -> RecordNumber {
        self.durable
    }

    /// A record, and all before it, are durable.
    pub fn durable(&mut self, record: RecordNumber) {
        self.durable = self.durable.max(record);
        self.end();
    }

    /// What gathered goes on.
    pub fn end(&mut self) {
        self.over = !self.commands.is_empty();
    }
}

impl<E: Engine> Core<E> {
    /// Takes a command that may wait, if others are on their way to the disk; gives back one that goes on at once.
    pub fn gather(&mut self, asker: Asker, range: RangeId, request: Request) -> Option<Request> {
        let (Request::Commit { batch, .. } | Request::Prepare { batch, .. }) = &request else { return Some(request) };
        let gathering = &mut self.gathering;
        if self.snapshots.last_record <= gathering.durable || self.sabotage.ack_before_durable() {
            return Some(request);
        }
        gathering.bytes += record_bytes(batch);
        gathering.commands.push((asker, range, request));
        gathering.over |= gathering.commands.len() >= GATHERED_MAX || gathering.bytes >= GATHERED_BYTES_MAX;
        self.counters.commands_gathered.one();
        None
    }

    /// Proposes what gathered, if it is time. `false`: it is not.
    pub fn propose_gathered(&mut self, now: &Reading) -> Result<bool, StoreError> {
        if !std::mem::take(&mut self.gathering.over) {
            return Ok(false);
        }
        self.gathering.bytes = 0;
        for (asker, range, request) in std::mem::take(&mut self.gathering.commands) {
            match self.led_until(range) {
                Some(_) => self.command(now, asker, range, request)?,
                None => self.refer(asker, range),
            }
        }
        Ok(true)
    }
}
