//! SQL at a node of the world: the transactions of a session are the ones of the product, and what they wait for makes the world go on.

use super::world::{Engine, World};
use crate::kv::transaction::KvTransaction;
use crate::kv::{MemoryLog, RecordLog, Shell, convert, park};
use crate::memory::{Allocator, Memory, Shares};
use bytes::Bytes;
use clock::{Reading, Timestamp};
use node::cluster::Member;
use sql::transaction::{Admin, AdminReply, BeginOptions};
use sql::{Kv, KvError};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::Versions;

/// What the transactions at a node share.
pub struct Place {
    world: Arc<World>,
    node: u32,
    memory: Arc<Memory>,
    log: MemoryLog,
}

impl Place {
    fn member(&self) -> &Arc<Member<Engine>> {
        self.world.member(self.node)
    }
}

impl Shell for Place {
    type Txn = node::cluster::Transaction<Engine>;
    type Engine = Engine;

    fn now(&self) -> Reading {
        self.world.now()
    }
    fn monotonic_ns(&self) -> u64 {
        self.world.now_us() * 1000
    }
    fn counters(&self) -> &node::Counters {
        self.member().counters()
    }
    fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }
    fn lead(&self) -> bool {
        self.world.advance();
        true
    }
    fn settle(&self, _: bool) {
        if self.member().is_touched() {
            self.world.drain(self.node);
        }
    }
    fn wait<R>(&self, mut poll: impl FnMut(&Waker) -> Poll<R>) -> R {
        loop {
            if let Poll::Ready(result) = park::with_waker(&mut poll) {
                return result;
            }
            self.world.advance();
        }
    }
    fn failed(&self) -> Option<String> {
        None
    }
    fn is_full(&self, _: usize) -> bool {
        false
    }
    fn versions(&self) -> &Versions<Engine> {
        self.member().versions()
    }
    fn log(&self) -> &dyn RecordLog {
        &self.log
    }
    fn is_crowded(&self, _large: bool) -> bool {
        false
    }
}

/// The database below SQL, at a node of the world.
pub struct Gateway(Arc<Place>);

impl Gateway {
    pub fn new(world: &Arc<World>, node: u32) -> Gateway {
        let memory = Memory::new(Shares::default(), Allocator::default());
        Gateway(Arc::new(Place { world: world.clone(), node, memory, log: MemoryLog::default() }))
    }

    fn split(&self, key: &Bytes) -> Result<(), KvError> {
        // A transaction that is undecided there keeps it back.
        for _ in 0..100 {
            let ticket = self.0.member().split(&self.0.now(), key.clone(), &park::waker());
            self.0.settle(true);
            match self.0.wait(|waker| ticket.poll(waker)) {
                Err(node::CommitError::Refused(_)) => self.0.world.go_on(super::world::LINK_US),
                done => return done.map_err(|e| convert::error(e.into())),
            }
        }
        Err(KvError::Storage("the range is never free to be split".into()))
    }
}

impl Kv for Gateway {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn sql::Transaction>, KvError> {
        let now = self.0.now();
        let txn = node::cluster::Transaction::begin(self.0.member(), &now, &convert::begin(options));
        Ok(KvTransaction::new(self.0.clone(), txn.map_err(convert::error)?, &now, options))
    }
    fn unique_id(&self) -> u64 {
        self.0.member().unique_id()
    }
    fn node(&self) -> u32 {
        self.0.node
    }
    fn now_us(&self) -> i64 {
        i64::try_from(self.0.world.now_us()).unwrap_or(i64::MAX)
    }
    fn ago(&self, age_us: u64) -> Timestamp {
        self.0.member().ago(&self.0.now(), age_us)
    }
    fn admin(&self, request: Admin) -> Result<AdminReply, KvError> {
        match request {
            Admin::Split(key) => self.split(&key).map(|()| AdminReply::Done),
            Admin::Ranges(span) => {
                let ranges = self.0.member().ranges_over(&node::Span::new(span.start, span.end));
                Ok(AdminReply::Ranges(ranges.into_iter().map(|(start, id)| (start, id.0)).collect()))
            }
        }
    }
    fn internal_table(&self, _: &str) -> Option<(Vec<String>, Vec<Vec<Option<String>>>)> {
        None
    }
}
