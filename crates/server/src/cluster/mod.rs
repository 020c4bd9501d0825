//! The blocking shell around a member of a cluster ([`node::cluster::Member`]): real threads, a real clock, a real disk, a real network.
//!
//! # Problem
//! A member has inputs, records that somebody must write, messages of which some may leave only when their record is durable, and a time
//! that somebody must tell. SQL wants calls that block. And before there is a cluster somebody must say who is in it.
//!
//! # Idea
//! ```text
//!   session ── KvTransaction ── operation ─┐                    ┌─► journal: records, held messages ── who leads writes and syncs
//!   peer ── transport's reader ── step ────┼──► Member ──► see_to ─► transport: what may leave
//!   beat: ticks, what is due ── step ──────┘                    ├─► wakers of sessions
//!                                                               └─► space: flushes
//! ```
//! Whoever gives the member an input sees to its outputs ([`Inner::see_to`]), and then leads, if records wait: writes and syncs them once, lets go the
//! messages that waited for them, and tells the member. So a follower's answer takes no switch between threads but those of the network.
//!
//! # Invariants
//! 1. Records are appended in the order of their numbers, without gaps, by one thread at a time (the baton, `journal`).
//! 2. A message that waits for a record leaves after that record, and all before it, are durable.
//! 3. If records wait, somebody leads or will be woken to lead: whoever puts the baton down looks again, and calls the `log` thread.
//! 4. After a failure of the disk that is not a full disk nothing is taken, sent or shown until a restart.
//!
//! # Caveats
//! Nothing is encrypted and nobody is authenticated between nodes. Who is in a cluster is said by `timeball init` ([`founding`]), and by those who join or
//! leave later (`roster`).

mod beat;
pub mod charter;
pub mod control;
mod copies;
pub mod founding;
mod halves;
mod handover;
pub mod identity;
mod info;
mod journal;
mod leading;
mod open;
mod peers;
mod placing;
mod reading;
mod replicas;
mod roster;
mod session_lock;
mod space;

pub use open::{ClusterSettings, OpenError};

use crate::kv::park::Sleeper;
use crate::kv::{NodeClock, RecordLog, Room, Shell, convert, park, scratch, transaction::KvTransaction, waits};
use bytes::Bytes;
use charter::Charter;
use clock::{Reading, Timestamp};
use founding::Founder;
use journal::Journal;
use node::cluster::{Class, Input, Member, Message, Outputs};
use parking_lot::{Mutex, RwLock};
use sql::transaction::{
    Admin, AdminReply, BeginOptions as SqlOptions, Interrupt, LockOwner, MemoryScratch, PeerAnswer, PeerAnswers,
    PreparedPart, Retentions, RowWaits, Scratch, SessionLock, ShownLock, Sweeper, Sweeping,
};
use sql::{Kv, KvError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::{Engine, Versions};
use transport::{PARCEL_BYTES_MAX, Parcel, Transport};

// What a member sends can be carried.
const _: () = assert!(node::cluster::MESSAGE_BYTES_MAX <= PARCEL_BYTES_MAX);

/// A thread that waits for the log or for peers looks around this often, though it will be woken.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A split that meets an undecided transaction is tried again this often, with a pause between.
const SPLIT_TRIES: usize = 200;
const SPLIT_PAUSE: Duration = Duration::from_millis(5);

/// What the threads of a member share.
pub(crate) struct Inner<E> {
    pub member: Arc<Member<E>>,
    /// This node's number.
    pub node: u32,
    pub founder: Arc<Founder>,
    /// As this node goes by it.
    pub charter: RwLock<Arc<Charter>>,
    /// An edition of it was made here, and the others have to hear of it.
    pub proclaims: AtomicBool,
    /// Ends what this node asks of its own database.
    pub interrupt: Interrupt,
    pub clock: Arc<NodeClock>,
    pub journal: Journal,
    pub beat: beat::Handle,
    pub transport: OnceLock<Transport>,
    pub memory: Arc<crate::Memory>,
    pub scratch_dir: Option<PathBuf>,
    /// Versions younger than this can be read with `AS OF SYSTEM TIME`, seconds.
    pub retention_seconds: u64,
    /// What is kept for another time than the rest; `None`: not known yet.
    pub kept: Mutex<Option<Arc<Retentions>>>,
    pub began: Instant,
    pub crowded: AtomicBool,
    pub full: AtomicBool,
    /// Somebody waits for a flush.
    pub flush: AtomicBool,
    /// Who puts large commits in their places.
    pub placing: Sleeper,
    /// What is read for other nodes.
    pub reading: reading::Queue,
    /// The thread for space.
    pub space: Sleeper,
    /// What it leads goes to others; then it stops.
    pub leaving: AtomicBool,
    pub stopping: AtomicBool,
    /// What answers other nodes' questions about SQL.
    pub answer: OnceLock<PeerAnswer>,
    /// Why nothing is served any more.
    pub broken: Mutex<Option<String>>,
    /// Held by who finds out whether this store is a copy.
    pub judging: Mutex<()>,
    /// Why this node is none of the cluster's any more, if that is why.
    pub removed: OnceLock<String>,
    /// What other nodes said last that keeps them from serving.
    pub ailing: Mutex<BTreeMap<u32, String>>,
    /// Where clients find it, once they are served.
    pub sql_addr: OnceLock<SocketAddr>,
}

impl<E: Engine> Inner<E> {
    /// One input; `true` if records wait.
    pub fn step(&self, input: Input) -> bool {
        match self.member.step(&self.clock.read(), input) {
            Ok(out) => self.see_to(out),
            Err(e) => {
                self.fail(&e.to_string());
                false
            }
        }
    }

    /// One input, and what waits for the disk is written.
    pub fn step_and_lead(&self, input: Input) {
        if self.step(input) {
            journal::lead(self);
        }
    }

    /// What a member wants done; `true` if records wait.
    pub fn see_to(&self, out: Outputs) -> bool {
        let Outputs { records, messages, wakers, timer, flush, place, reads, clock_changes, .. } = out;
        self.clock.log_changes(&clock_changes);
        let (ready, waiting) = self.journal.take(records, messages);
        self.send(ready);
        wakers.into_iter().for_each(Waker::wake);
        if let Some(at) = timer {
            self.beat.set(at);
        }
        if flush {
            self.flush.store(true, SeqCst);
            self.space.wake();
        }
        if place {
            self.placing.wake();
        }
        self.reading.add(reads);
        waiting
    }

    /// Gives messages to the network.
    pub fn send(&self, messages: Vec<Message>) {
        let Some(transport) = self.transport.get().filter(|_| !messages.is_empty()) else { return };
        transport.send_all(messages.into_iter().map(|Message { from, to, class, bytes }| Parcel {
            from: from.0,
            to: to.0,
            lane: lane(class),
            bytes,
        }));
    }

    /// A failure that is not a full disk.
    pub fn fail(&self, what: &str) {
        let mut broken = self.broken.lock();
        if broken.is_none() {
            crate::log::error("storage failed, the node serves nothing until a restart", &[("cause", &what)]);
            *broken = Some(what.to_owned());
            self.member.close();
        }
    }

    /// Microseconds since the start, wherever the clock is set.
    pub fn monotonic_us(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

/// The connection of a class.
fn lane(class: Class) -> usize {
    match class {
        Class::Consensus => 0,
        Class::Request => 1,
        Class::Bulk => 2,
    }
}

/// The class of a connection.
fn class(lane: usize) -> Class {
    match lane {
        0 => Class::Consensus,
        1 => Class::Request,
        _ => Class::Bulk,
    }
}

impl<E: Engine> Shell for Inner<E> {
    type Txn = node::cluster::Transaction<E>;
    type Engine = E;

    fn now(&self) -> Reading {
        self.clock.read()
    }
    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
    fn counters(&self) -> &node::Counters {
        self.member.counters()
    }
    fn memory(&self) -> &Arc<crate::Memory> {
        &self.memory
    }
    fn lead(&self) -> bool {
        journal::lead(self)
    }
    fn settle(&self, leads: bool) {
        // Most reads leave nothing to be done.
        if self.member.is_touched() && self.see_to(self.member.drain(&self.clock.read())) && !leads {
            self.journal.call_writer();
        }
    }
    fn wait<R>(&self, mut poll: impl FnMut(&Waker) -> Poll<R>) -> R {
        loop {
            if let Poll::Ready(result) = park::with_waker(&mut poll) {
                return result;
            }
            if !journal::lead(self) {
                park::pause(LOOK_EVERY);
            }
        }
    }
    fn is_full(&self, _: usize) -> bool {
        self.full.load(SeqCst) && Room::is_full(self.member.versions(), self.journal.log())
    }
    fn versions(&self) -> &Versions<E> {
        self.member.versions()
    }
    fn log(&self) -> &dyn RecordLog {
        self.journal.log()
    }
    fn removed(&self) -> Option<KvError> {
        self.removed.get().cloned().map(KvError::Removed)
    }
    fn failed(&self) -> Option<String> {
        self.broken.lock().clone()
    }
    fn is_crowded(&self, large: bool) -> bool {
        let crowded = self.crowded.load(SeqCst) || self.member.is_overlay_full(large);
        crowded && self.broken.lock().is_none()
    }
}

/// A member of a cluster on a real disk and network, as SQL wants it.
pub struct ClusterNode<E: Engine> {
    inner: Arc<Inner<E>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl<E: Engine> ClusterNode<E> {
    /// The node core, for figures.
    pub fn member(&self) -> &Arc<Member<E>> {
        &self.inner.member
    }

    /// Clients are served, there.
    pub fn serves_at(&self, sql_addr: SocketAddr) {
        // Once.
        let _ = self.inner.sql_addr.set(sql_addr);
    }

    /// Why it serves nothing any more, until a restart.
    pub fn trouble(&self) -> Option<String> {
        self.inner.broken.lock().clone()
    }

    /// Stops: hands over what it leads, takes nothing any more, writes out what waits, ends the threads. Once.
    pub fn shutdown(&self) {
        if self.inner.leaving.swap(true, SeqCst) {
            return;
        }
        self.inner.interrupt.raise();
        handover::run(&self.inner);
        self.inner.stopping.store(true, SeqCst);
        self.inner.founder.call();
        self.inner.member.close();
        for thread in self.threads.lock().drain(..) {
            thread.thread().unpark();
            if thread.join().is_err() {
                crate::log::error("a background thread ended by a panic", &[]);
            }
        }
        if let Some(transport) = self.inner.transport.get() {
            transport.stop();
        }
        journal::lead(&*self.inner);
        space::flush_all(&self.inner);
    }

    fn split(&self, key: Bytes) -> Result<(), KvError> {
        let inner = &self.inner;
        for _ in 0..SPLIT_TRIES {
            let ticket = inner.member.split(&inner.clock.read(), key.clone(), &park::waker());
            inner.settle(true);
            match inner.wait(|waker| ticket.poll(waker)) {
                Ok(()) => return Ok(()),
                Err(node::CommitError::Refused(_)) => park::pause(SPLIT_PAUSE),
                Err(other) => return Err(convert::error(other.into())),
            }
        }
        Err(KvError::Restart { reason: "the range has transactions that are committing".into(), key: None })
    }
}

impl<E: Engine> Drop for ClusterNode<E> {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl<E: Engine> Kv for ClusterNode<E> {
    fn begin(&self, options: &SqlOptions) -> Result<Box<dyn sql::Transaction>, KvError> {
        let inner = &self.inner;
        if let Some(removed) = inner.removed() {
            return Err(removed);
        }
        let now = inner.clock.read();
        let txn = node::cluster::Transaction::begin(&inner.member, &now, &convert::begin(options));
        Ok(KvTransaction::new(inner.clone(), txn.map_err(convert::error)?, &inner.clock.shown(now), options))
    }
    fn sweep_aside(&self, sweeper: Sweeper) -> Sweeping {
        crate::kv::sweeping::aside(sweeper)
    }
    fn unique_id(&self) -> u64 {
        self.inner.member.unique_id()
    }
    fn node(&self) -> u32 {
        self.inner.node
    }
    fn has_left(&self, node: u32) -> bool {
        self.inner.charter().is_gone(node)
    }
    fn cluster(&self) -> Option<u64> {
        Some(self.inner.charter().cluster)
    }
    fn now_us(&self) -> i64 {
        let now = self.inner.clock.shown(self.inner.clock.read());
        i64::try_from(now.interval.middle_ns() / 1000).unwrap_or(i64::MAX)
    }
    fn monotonic_us(&self) -> i64 {
        self.inner.monotonic_us()
    }
    fn ago(&self, age_us: u64) -> Timestamp {
        self.inner.member.ago(&self.inner.clock.read(), age_us)
    }
    fn freshest(&self, least: Timestamp) -> Timestamp {
        self.inner.member.freshest(&self.inner.clock.read(), least)
    }
    fn freshest_alone(&self, least: Timestamp) -> Timestamp {
        self.inner.member.freshest_alone(&self.inner.clock.read(), least)
    }
    fn scratch(&self) -> Result<Box<dyn Scratch>, KvError> {
        Ok(match &self.inner.scratch_dir {
            Some(dir) => {
                let inner = self.inner.clone();
                let has_room = move |bytes| inner.member.versions().lacks_room(bytes) == 0;
                Box::new(scratch::FileScratch::open(dir, Box::new(has_room))?)
            }
            None => Box::new(MemoryScratch::default()),
        })
    }
    fn look_at_row_waits(&self, look: &mut dyn FnMut(&dyn RowWaits)) {
        self.inner.member.look_at_locks(|table| look(&waits::Waits::of(table)));
    }
    fn shown_locks(&self, contended: bool, at: (&[u8], usize), max: usize) -> Vec<ShownLock> {
        self.inner.member.shown_locks(contended, at, max).into_iter().map(convert::shown_lock).collect()
    }
    fn lock_owners(&self) -> Vec<LockOwner> {
        self.inner.member.look_at_locks(|table| table.owners().map(convert::lock_owner).collect())
    }
    fn prepared(&self, max: usize) -> Vec<PreparedPart> {
        self.inner.member.prepared(max).into_iter().map(convert::prepared).collect()
    }
    fn peers(&self) -> Vec<u32> {
        let others = self.inner.charter().members.clone().into_iter().map(|place| place.node);
        others.filter(|node| *node != self.inner.node).collect()
    }
    fn ask_peer(&self, node: u32, question: &str) -> Result<String, String> {
        let charter = self.inner.charter();
        let place = charter.members.iter().find(|place| place.node == node);
        control::ask_sql(&place.ok_or_else(|| format!("the cluster has no node {node}"))?.addr, question)
    }
    fn ask_peers(
        &self,
        questions: &[String],
        next: fn(&str) -> Option<String>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Vec<PeerAnswers> {
        let all = self.inner.charter();
        let others = all.members.iter().filter(|place| place.node != self.inner.node);
        peers::ask(others.map(|place| (place.node, place.addr.clone())).collect(), questions, next, stop)
    }
    fn answer_peers(&self, answer: PeerAnswer) {
        let _ = self.inner.answer.set(answer);
    }
    fn session_lock(&self, session: u64, key: &[u8]) -> Option<Box<dyn SessionLock>> {
        Some(Box::new(session_lock::BlockingLock::new(&self.inner, session, key)))
    }
    fn keep(&self, retentions: Retentions) {
        *self.inner.kept.lock() = Some(Arc::new(retentions));
    }
    fn admin(&self, request: Admin) -> Result<AdminReply, KvError> {
        match request {
            Admin::Split(key) => self.split(key).map(|()| AdminReply::Done),
            Admin::Ranges(span) => {
                let ranges = self.inner.member.ranges_over(&node::Span::new(span.start, span.end));
                Ok(AdminReply::Ranges(ranges.into_iter().map(|(start, id)| (start, id.0)).collect()))
            }
        }
    }
    fn internal_table(&self, name: &str) -> Option<(Vec<String>, Vec<Vec<Option<String>>>)> {
        info::table(&self.inner, name)
    }
    fn has_internal_table(&self, name: &str) -> bool {
        matches!(name, "clocks" | "memory" | "nodes" | "past" | "ranges")
    }
}

#[cfg(test)]
mod tests {
    use super::charter::Place;
    use super::founding::Founder;
    use super::identity::{self, Membership};
    use super::*;
    use crate::memory::{Allocator, Memory, Shares};
    use store::{MemoryEngine, VersionsConfig};

    /// More than what a log makes ready by itself, bytes.
    const LARGE_BYTES: usize = 512 << 20;

    type Alone = ClusterNode<MemoryEngine>;

    /// A member of a cluster, the only one so far; and its directory.
    fn member(name: &str) -> (Arc<Alone>, std::path::PathBuf) {
        let dir = std::env::temp_dir().join(format!("timeball-member-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let store = identity::store_id(&dir, || 7).unwrap();
        let place = Place { node: 1, store, addr: addr.clone(), locality: String::new() };
        let charter = Charter::of_founders(0xabc, node::cluster::VERSION_MAX, vec![place]);
        let membership = Membership { charter, node: 1 };
        identity::save(&dir, &membership).unwrap();
        let founder = Founder::open(dir.clone(), Vec::new(), addr, String::new(), false).unwrap();
        let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
        let clock = clocksource::Clock::open(&"same-host".parse().unwrap()).unwrap();
        let settings = ClusterSettings {
            node: node::NodeOptions { alone: false, ..node::NodeOptions::default() },
            retention_seconds: 600,
            memory: Memory::new(Shares::default(), Allocator::default()),
            scratch_dir: None,
        };
        let log = dir.join("log");
        std::fs::create_dir_all(&log).unwrap();
        (ClusterNode::start(&log, versions, clock, listener, &founder, membership, settings).unwrap(), dir)
    }

    /// The next edition: one node more, which nobody has started.
    fn with_another(member: &Alone) -> Membership {
        let mut charter = (*member.inner.charter()).clone();
        let node = charter.members.len() as u32 + 1;
        charter.edition += 1;
        // (Nothing listens there.)
        let addr = "127.0.0.1:1".to_owned();
        charter.members.push(Place { node, store: u128::from(node), addr, locality: String::new() });
        Membership { charter, node: 1 }
    }

    fn peers(member: &Alone) -> Vec<u32> {
        let links = member.inner.transport.get().map(transport::Transport::links).unwrap_or_default();
        links.iter().map(|link| link.node).collect()
    }

    #[test]
    fn who_has_fallen_silent_gets_no_peers_by_a_later_charter() {
        let (member, dir) = member("silent");
        member.inner.adopt(with_another(&member));
        assert_eq!(peers(&member), [2]);
        member.inner.falls_silent("it is a copy", None);
        assert_eq!(peers(&member), [0u32; 0]);
        let later = with_another(&member);
        member.inner.adopt(later.clone());
        assert_eq!(member.inner.charter().edition, later.charter.edition, "it knows of it");
        assert_eq!(peers(&member), [0u32; 0], "and speaks to nobody");
        let why = member.inner.removed.get().map(String::as_str);
        assert_eq!(why, Some("it is a copy"), "the first cause stays");
        member.shutdown();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_store_that_has_not_what_its_node_told_of_is_marked() {
        let (member, dir) = member("forgot");
        let end = member.inner.member.began_after().0;
        member.inner.adopt(with_another(&member));
        // Not about this life; and nothing that is missing.
        member.inner.has_forgotten(2, end + 10, end + 1);
        member.inner.has_forgotten(2, end, end);
        assert_eq!((identity::copied(&dir), peers(&member)), (Ok(None), vec![2]));
        member.inner.has_forgotten(2, end + 10, end);
        let why = identity::copied(&dir).unwrap().unwrap();
        assert!(why.contains(&format!("n1 has told n2 of record {}", end + 10)), "{why}");
        assert_eq!(member.inner.removed.get(), Some(&why));
        assert_eq!(peers(&member), [0u32; 0]);
        member.shutdown();
        std::fs::remove_dir_all(dir).unwrap();
    }

    /// What a transaction writes comes to a member's log in parts, or not at all: room for the whole would be taken from the records of others.
    #[test]
    fn a_member_says_how_far_back_it_reads() {
        let (member, dir) = member("past");
        assert!(member.has_internal_table("past"));
        let (columns, rows) = member.internal_table("past").unwrap();
        assert_eq!(columns[..2], ["index_id", "retention_seconds"]);
        assert_eq!(rows[0][..2], [None, Some("600".to_owned())]);
        member.shutdown();
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_member_makes_no_room_for_a_transaction_of_its_clients() {
        let (member, dir) = member("room");
        member.inner.make_room(LARGE_BYTES);
        let files = std::fs::read_dir(dir.join("log")).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
        let bytes: u64 = files.sum();
        assert!(bytes > 0 && bytes < LARGE_BYTES as u64, "{bytes}");
        member.shutdown();
        std::fs::remove_dir_all(dir).unwrap();
    }
}
