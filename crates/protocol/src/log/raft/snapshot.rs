//! Snapshots: how a follower gets what the log does not have any more.
//!
//! # Problem
//! A snapshot is large, and its way is slow and gets cut. It must not fill memory, starve the log, or begin anew for each cut.
//!
//! # Idea
//! It travels in parts, each of which the receiver asks for:
//!
//! ```text
//!   leader                                   follower
//!   Take ◄ (driver) SnapshotTaken
//!      ── Offer(index, bytes, form) ────────►  Begin ► (driver)
//!      ◄───────────────── Want(index, 0) ────
//!   Read ◄ (driver) SnapshotRead
//!      ── Chunk(index, 0, bytes) ───────────►  Write ► (driver)
//!      ◄────────── Want(index, next offset) ─      … the last one: the intention is a record; once durable:
//!                                              Install ► (driver) SnapshotInstalled; the log begins after it
//!      ◄──────────── acknowledgement (Raft) ─
//! ```
//!
//! # Invariants
//! 1. One goes out and one comes in per store; what leaves in one tick is bounded; a part is bounded.
//! 2. After a cut the offer is made again, and the receiver asks for the part at which it stopped.
//! 3. What goes out goes to a store that is heard. There is one place for all groups, so who is silent gives it up to those who are not ([`SILENT_RETRIES`] where it had begun to answer), and
//!    has no turn while it is silent: a dead store that many groups have to copy for would keep all repairs waiting, ten seconds for each group. It has a turn again with its first answer to a heartbeat.
//! 4. The log moves to the snapshot only when the driver's state is the snapshot's, durably; while it is being installed nothing of the group is
//!    handed out. After a crash in between the applied place tells which of the two happened.
//!
//! # Caveats
//! Parts are not ahead of one another: a part per round trip.

use super::error::Error;
use super::ids::{GroupId, ReplicaId, StoreId};
use super::ledger::Durable;
use super::options::{CHUNK_BYTES_MAX, Options};
use super::outputs::SnapshotTask;
use super::part::Part;
use super::record::{self, Form};
use super::replica::Replica;
use super::store::Store;
use super::tail::Cut;
use crate::wire::{Reader, Writer};
use bytes::Bytes;
use raft::SnapshotStatus;
use raft::eraftpb::{Message, MessageType, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// An offer is made this often before the leader gives up and looks anew at what the follower needs.
const OFFERS_MAX: usize = 5;
/// Who has asked for a part of it and falls silent loses the place to others after so many times the wait for an answer: what is here of it would have to travel again.
const SILENT_RETRIES: u64 = 2;

/// What goes out and what comes in.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// Groups and replicas that need one.
    pub wanted: BTreeSet<(GroupId, u64)>,
    outgoing: Option<Outgoing>,
    incoming: Option<Incoming>,
    /// What may still leave in this tick, bytes.
    budget: usize,
    /// When each neighbour was heard last, or was offered something first, in ticks.
    heard: BTreeMap<StoreId, u64>,
    ticks: u64,
}

#[derive(Debug)]
struct Outgoing {
    group: GroupId,
    to: ReplicaId,
    on: StoreId,
    index: u64,
    bytes: u64,
    form: Option<Bytes>,
    /// The part that is being read, or waits for the next tick.
    reading: Option<u64>,
    waiting: Option<u64>,
    idle_ticks: usize,
    offers: usize,
    /// It has asked for a part.
    asked: bool,
}

#[derive(Debug)]
struct Incoming {
    group: GroupId,
    replica: ReplicaId,
    from: StoreId,
    form: Form,
    bytes: u64,
    offset: u64,
    idle_ticks: usize,
}

impl Incoming {
    fn is_whole(&self) -> bool {
        self.offset == self.bytes
    }
}

impl Snapshots {
    /// Places up to this one must stay in the log of a group whose snapshot is on its way.
    pub fn holds_back(&self, group: GroupId) -> Option<u64> {
        self.outgoing.as_ref().filter(|o| o.group == group).map(|o| o.index)
    }

    /// A store says something.
    pub fn hears(&mut self, from: StoreId) {
        self.heard.insert(from, self.ticks);
    }

    /// Whether a store has said something in the time that is given for an answer.
    pub fn heard_lately(&self, on: StoreId, options: &Options) -> bool {
        self.heard.get(&on).is_some_and(|at| self.ticks - at < options.snapshot_retry_ticks as u64)
    }

    /// A group is gone from this store.
    pub fn forget(&mut self, group: GroupId, tasks: &mut Vec<SnapshotTask>) {
        self.wanted.retain(|(of, _)| *of != group);
        if self.outgoing.take_if(|o| o.group == group).is_some() {
            tasks.push(SnapshotTask::Drop { group });
        }
        if self.incoming.take_if(|i| i.group == group).is_some() {
            tasks.push(SnapshotTask::Abandon { group });
        }
    }
}

type Groups = BTreeMap<GroupId, Box<Replica>>;

/// Begins the next one that is wanted, and looks after those on their way; once per tick.
pub(crate) fn tick(store: &mut Store, groups: &mut Groups) {
    store.snapshots.budget = store.options.snapshot_bytes_per_tick.max(1);
    store.snapshots.ticks += 1;
    let neighbours: BTreeSet<StoreId> = store.neighbours().into_iter().collect();
    store.snapshots.heard.retain(|on, _| neighbours.contains(on));
    let retry = store.options.snapshot_retry_ticks;
    let yields = yields(store, groups);
    if let Some(out) = &mut store.snapshots.outgoing {
        // The driver takes it as long as it takes, and says so if it cannot.
        out.idle_ticks += usize::from(out.form.is_some());
        let (group, to, again) = (out.group, out.to, out.idle_ticks >= retry);
        let needed = groups.get(&group).is_some_and(|replica| replica.needs_snapshot(to.0));
        if !needed || yields || (again && out.offers >= OFFERS_MAX) {
            give_up(store, groups);
        } else if again {
            offer(store);
        } else if let Some(offset) = out.waiting.take() {
            read(store, offset);
        }
    }
    if let Some(incoming) = &mut store.snapshots.incoming {
        incoming.idle_ticks += 1;
        if !incoming.is_whole() && incoming.idle_ticks >= retry * OFFERS_MAX {
            abandon(store);
        }
    }
    start(store, groups);
}

/// Invariant 3: nothing was heard of a store for so many times the wait for an answer.
fn is_silent(store: &Store, on: StoreId, retries: u64) -> bool {
    let ticks = retries * store.options.snapshot_retry_ticks as u64;
    let heard = store.snapshots.heard.get(&on);
    heard.is_some_and(|at| store.snapshots.ticks - at >= ticks) && !store.sabotage.copy_for_the_silent()
}

/// Invariant 3: the place is taken for a silent store, and others want it.
fn yields(store: &Store, groups: &Groups) -> bool {
    let Some(out) = &store.snapshots.outgoing else { return false };
    let wants = |(group, to): &(GroupId, u64)| {
        let replica = groups.get(group).filter(|replica| replica.needs_snapshot(*to));
        replica.and_then(|replica| replica.store_of(*to)).is_some_and(|on| !is_silent(store, on, 1))
    };
    let retries = if out.asked { SILENT_RETRIES } else { 1 };
    is_silent(store, out.on, retries) && store.snapshots.wanted.iter().any(wants)
}

/// Begins the next one that is wanted.
pub(crate) fn start(store: &mut Store, groups: &mut Groups) {
    while store.snapshots.outgoing.is_none() {
        let Some((group, to)) = store.snapshots.wanted.pop_first() else { return };
        let Some(replica) = groups.get_mut(&group).filter(|replica| replica.needs_snapshot(to)) else { continue };
        let Some(on) = replica.store_of(to) else { continue };
        if is_silent(store, on, 1) {
            replica.copy_fails(store, to);
            continue;
        }
        let ticks = store.snapshots.ticks;
        store.snapshots.heard.entry(on).or_insert(ticks);
        let index = replica.tail().applied;
        store.out.snapshots.push(SnapshotTask::Take { group, index });
        let to = ReplicaId(to);
        let (form, reading, waiting, asked) = (None, None, None, false);
        let out = Outgoing { group, to, on, index, bytes: 0, form, reading, waiting, idle_ticks: 0, offers: 0, asked };
        store.snapshots.outgoing = Some(out);
    }
}

/// The driver holds a snapshot.
pub(crate) fn taken(
    store: &mut Store,
    groups: &mut Groups,
    group: GroupId,
    index: u64,
    bytes: u64,
) -> Result<(), Error> {
    let replica = groups.get(&group).ok_or(Error::NoReplica(group))?;
    let Some(out) = store.snapshots.outgoing.as_mut().filter(|o| o.group == group && o.form.is_none()) else {
        store.out.snapshots.push(SnapshotTask::Drop { group });
        return Ok(());
    };
    let tail = replica.tail();
    let term = tail.term_at(index).filter(|_| index >= out.index && index <= tail.applied);
    let Some(term) = term else {
        give_up(store, groups);
        return Ok(());
    };
    let cut = Cut { index, term, floor: tail.floor_up_to(index) };
    let mut form = Vec::new();
    Form { cut, conf: tail.conf.clone() }.write(&mut Writer(&mut form));
    (out.index, out.bytes, out.form) = (index, bytes, Some(form.into()));
    offer(store);
    Ok(())
}

fn offer(store: &mut Store) {
    let Some(out) = &mut store.snapshots.outgoing else { return };
    out.idle_ticks = 0;
    out.offers += 1;
    (out.reading, out.waiting) = (None, None);
    let Some(form) = out.form.clone() else { return };
    let part = Part::Offer { group: out.group, to: out.to, index: out.index, bytes: out.bytes, meta: form };
    store.post.now(out.on).parts.push(part);
}

fn read(store: &mut Store, offset: u64) {
    let budget = store.snapshots.budget;
    let Some(out) = &mut store.snapshots.outgoing else { return };
    let most = CHUNK_BYTES_MAX.min(store.options.snapshot_bytes_per_tick.max(1));
    let bytes = most.min(usize::try_from(out.bytes - offset).unwrap_or(usize::MAX));
    if bytes > budget {
        out.waiting = Some(offset);
        return;
    }
    out.reading = Some(offset);
    store.snapshots.budget -= bytes;
    store.out.snapshots.push(SnapshotTask::Read { group: out.group, offset, bytes });
}

/// The driver has read a part.
pub(crate) fn sent(store: &mut Store, group: GroupId, offset: u64, bytes: Bytes) -> Result<(), Error> {
    let Some(out) = store.snapshots.outgoing.as_mut().filter(|o| o.group == group && o.reading == Some(offset)) else {
        return Ok(());
    };
    if bytes.is_empty() || bytes.len() > CHUNK_BYTES_MAX || offset + bytes.len() as u64 > out.bytes {
        return Err(Error::Chunk { group });
    }
    let part = Part::Chunk { group, index: out.index, offset, bytes };
    let on = out.on;
    store.post.now(on).parts.push(part);
    Ok(())
}

/// Lets go of what goes out; the library looks anew at what the follower needs.
pub(crate) fn give_up(store: &mut Store, groups: &mut Groups) {
    let Some(out) = store.snapshots.outgoing.take() else { return };
    store.out.snapshots.push(SnapshotTask::Drop { group: out.group });
    if let Some(replica) = groups.get_mut(&out.group).filter(|replica| replica.needs_snapshot(out.to.0)) {
        replica.copy_fails(store, out.to.0);
    }
}

fn abandon(store: &mut Store) {
    if let Some(incoming) = store.snapshots.incoming.take() {
        store.out.snapshots.push(SnapshotTask::Abandon { group: incoming.group });
    }
}

/// The driver gives up.
pub(crate) fn failed(store: &mut Store, groups: &mut Groups, group: GroupId) {
    // It may have sent one when it led, and get one now.
    let gets = store.snapshots.incoming.as_ref().is_some_and(|i| i.group == group)
        && groups.get(&group).is_some_and(|replica| replica.lead.is_none());
    if !gets && store.snapshots.outgoing.as_ref().is_some_and(|o| o.group == group) {
        give_up(store, groups);
    } else if let Some(incoming) = store.snapshots.incoming.as_ref().filter(|i| i.group == group) {
        // Its place is free for others, at both ends.
        let (from, index) = (incoming.from, incoming.form.cut.index);
        store.post.now(from).parts.push(Part::Refuse { group, index });
        abandon(store);
        if let Some(replica) = groups.get_mut(&group) {
            replica.installing = false;
        }
    }
}

/// A part came in.
pub(crate) fn receive(store: &mut Store, groups: &mut Groups, from: StoreId, part: Part) -> Result<(), Error> {
    match part {
        Part::Offer { group, to, index, bytes, meta } => {
            let form = Form::read(&mut Reader(meta)).map_err(super::DecodeError::from)?;
            let fits = form.cut.index == index && form.conf.stores.contains_key(&to.0);
            let Some(replica) = groups.get_mut(&group).filter(|replica| replica.id == to && fits) else {
                store.post.now(from).parts.push(Part::Refuse { group, index });
                return Ok(());
            };
            offered(store, replica, from, form, bytes);
        }
        Part::Chunk { group, index, offset, bytes } => {
            let incoming = store.snapshots.incoming.as_mut();
            let Some(incoming) = incoming.filter(|i| i.group == group && i.form.cut.index == index) else {
                return Ok(());
            };
            let end = offset.saturating_add(bytes.len() as u64);
            if bytes.is_empty() || bytes.len() > CHUNK_BYTES_MAX || end > incoming.bytes {
                return Err(Error::Chunk { group });
            }
            if offset == incoming.offset {
                (incoming.offset, incoming.idle_ticks, incoming.from) = (end, 0, from);
                store.out.snapshots.push(SnapshotTask::Write { group, offset, bytes });
                if let (true, Some(replica)) = (incoming.is_whole(), groups.get_mut(&group)) {
                    whole(store, replica);
                }
            }
            want(store);
        }
        Part::Want { group, index, offset } => {
            let out = store.snapshots.outgoing.as_mut();
            let Some(out) = out.filter(|o| o.group == group && o.index == index && o.on == from) else { return Ok(()) };
            // A part that is on its way is not read again: if it is lost, the offer is made again.
            let news = out.reading.is_none_or(|reading| offset > reading) && out.waiting.is_none();
            if offset <= out.bytes && news {
                (out.idle_ticks, out.offers, out.asked) = (0, 1, true);
                if offset < out.bytes {
                    read(store, offset);
                }
            }
        }
        Part::Refuse { group, index } => {
            let out = store.snapshots.outgoing.as_ref();
            if out.is_some_and(|o| o.group == group && o.index == index && o.on == from) {
                give_up(store, groups);
            }
        }
    }
    Ok(())
}

fn offered(store: &mut Store, replica: &mut Replica, from: StoreId, form: Form, bytes: u64) {
    let (group, index) = (replica.group, form.cut.index);
    if replica.has(&form.cut) {
        // What a snapshot stands for is committed.
        let log = &mut replica.raw.raft.raft_log;
        log.commit_to(index.max(log.committed));
        replica.acknowledge(store);
        return;
    }
    let retry = store.options.snapshot_retry_ticks;
    if let Some(present) = &mut store.snapshots.incoming {
        let same = present.group == group && present.form == form && present.bytes == bytes;
        let newer = present.group == group && index > present.form.cut.index;
        if same {
            (present.idle_ticks, present.from) = (0, from);
        } else if !present.is_whole() && (newer || present.idle_ticks >= 2 * retry) {
            abandon(store);
        } else {
            store.post.now(from).parts.push(Part::Refuse { group, index });
            return;
        }
    }
    if store.snapshots.incoming.is_none() {
        store.out.snapshots.push(SnapshotTask::Begin { group, index, bytes });
        let incoming = Incoming { group, replica: replica.id, from, form, bytes, offset: 0, idle_ticks: 0 };
        store.snapshots.incoming = Some(incoming);
        if bytes == 0 {
            whole(store, replica);
        }
    }
    want(store);
}

fn want(store: &mut Store) {
    let Some(incoming) = &store.snapshots.incoming else { return };
    let (group, index, offset) = (incoming.group, incoming.form.cut.index, incoming.offset);
    let from = incoming.from;
    store.post.now(from).parts.push(Part::Want { group, index, offset });
}

/// All of it is here: the intention becomes a record.
fn whole(store: &mut Store, replica: &mut Replica) {
    let Some(incoming) = &store.snapshots.incoming else { return };
    if replica.has(&incoming.form.cut) {
        return abandon(store);
    }
    replica.installing = true;
    let bytes = record::installing(replica.group, replica.id, &incoming.form);
    replica.write(store, bytes);
    let what = Durable::Installing { group: replica.group, replica: replica.id };
    store.ledger.then(replica.record, what);
}

/// The intention is durable.
pub(crate) fn intended(store: &mut Store, group: GroupId, replica: ReplicaId) {
    let Some(incoming) = &store.snapshots.incoming else { return };
    if incoming.group == group && incoming.replica == replica && incoming.is_whole() {
        store.out.snapshots.push(SnapshotTask::Install { group, index: incoming.form.cut.index });
    }
}

/// The driver's state is the snapshot's.
pub(crate) fn installed(store: &mut Store, groups: &mut Groups, group: GroupId) -> Result<(), Error> {
    let replica = groups.get_mut(&group).ok_or(Error::NoReplica(group))?;
    let Some(incoming) = store.snapshots.incoming.take_if(|i| i.group == group && i.is_whole()) else {
        return Err(Error::Chunk { group });
    };
    replica.installing = false;
    replica.restore(store, incoming.form);
    Ok(())
}

impl Replica {
    /// Whether a follower waits for a snapshot, as far as the leader here knows.
    fn needs_snapshot(&self, replica: u64) -> bool {
        let progress = self.raw.raft.prs().get(replica);
        self.lead.is_some() && progress.is_some_and(|progress| progress.state == raft::ProgressState::Snapshot)
    }

    /// It is looked at anew when the follower answers a heartbeat.
    fn copy_fails(&mut self, store: &mut Store, to: u64) {
        self.raw.report_snapshot(to, SnapshotStatus::Failure);
        self.after(store);
    }

    /// Whether the log has this place, and it is the same one.
    fn has(&self, cut: &Cut) -> bool {
        let log = &self.raw.raft.raft_log;
        cut.index <= log.committed || (cut.index <= log.last_index() && log.term(cut.index).ok() == Some(cut.term))
    }

    /// Tells the leader what is here, so that it goes on from there.
    fn acknowledge(&mut self, store: &mut Store) {
        let leader = self.raw.raft.leader_id;
        if leader == 0 || self.lead.is_some() {
            return;
        }
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgAppendResponse);
        (message.from, message.to, message.term) = (self.id.0, leader, self.term());
        (message.index, message.commit) = (self.committed(), self.committed());
        self.raw.raft.msgs.push(message);
        self.after(store);
    }

    pub(super) fn restore(&mut self, store: &mut Store, form: Form) {
        if self.raw.raft.state != raft::StateRole::Follower {
            self.step_down(store);
            self.flush(store);
        }
        let mut snapshot = Snapshot::default();
        let meta = snapshot.mut_metadata();
        (meta.index, meta.term) = (form.cut.index, form.cut.term);
        meta.set_conf_state(form.conf.state.clone());
        self.lost.retain(|lost| lost.to > form.cut.index);
        self.form = Some(form);
        if self.raw.raft.restore(snapshot) {
            self.acknowledge(store);
        } else {
            self.form = None;
        }
        self.wake(store);
        self.after(store);
    }
}
