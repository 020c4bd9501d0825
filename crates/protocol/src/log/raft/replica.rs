//! One replica of one group: the library's node, and what it must not forget around it.
//!
//! One law: after every call of the library, [`Replica::after`]. It sees votes, terms and roles change, and does then and there what
//! has to come before anything that the library wants to send.

use super::elections::Urgency;
use super::envelope::Accept;
use super::error::Error;
use super::fate::Lost;
use super::ids::{GroupId, Member, RecordNumber, ReplicaId, StoreId};
use super::lead::Lead;
use super::letter::{Ends, Letter};
use super::options::{
    APPEND_BYTES_MAX, APPENDS_INFLIGHT_MAX, COMMITS_TOLD_PER_TICK, COMMITTED_BYTES_MAX, MEMBERS_MAX, Options,
    UNCOMMITTED_BYTES_MAX,
};
use super::outputs::{Role, RoleChange};
use super::record::{self, Form};
use super::store::Store;
use super::support::Support;
use super::tail::Tail;
use clock::{Reading, Timestamp};
use raft::eraftpb::{Message, MessageType};
use raft::{Config, Raft, RawNode, StateRole};
use std::collections::{BTreeMap, BTreeSet};

/// What was seen of the library's node after the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    term: u64,
    vote: u64,
    role: StateRole,
    leader: u64,
}

impl Seen {
    fn of(raft: &Raft<Tail>) -> Self {
        Seen { term: raft.term, vote: raft.vote, role: raft.state, leader: raft.leader_id }
    }
}

/// See the module.
pub(crate) struct Replica {
    pub group: GroupId,
    pub id: ReplicaId,
    pub raw: RawNode<Tail>,
    pub support: Support,
    pub lead: Option<Lead>,
    /// A candidate's term, and what its votes carry together.
    pub candidacy: Option<(u64, Ends)>,
    /// What the vote of a term carried, if it must be said again.
    pub vote_ends: Option<(u64, Ends)>,
    seen: Seen,
    timeout_ticks: usize,
    /// Where senders live that are not in the configuration (yet).
    pub routes: BTreeMap<u64, StoreId>,
    /// The stores that this replica's group has counted as neighbours.
    neighbours: BTreeSet<StoreId>,
    /// Its last record.
    pub record: RecordNumber,
    /// The oldest record that says anything about it which no later one says.
    pub base: RecordNumber,
    pub asleep: bool,
    /// It fell asleep after a leader: its store, and that store's last word before.
    pub slept_after: Option<(StoreId, u64)>,
    pub quiet_ticks: usize,
    pub urgency: Urgency,
    /// It slept when its last leader was lost, and nobody asked for it since.
    pub was_idle: bool,
    /// Elections in vain since it knew a leader.
    pub tries: u32,
    /// When it heard a leader last, in ticks.
    pub heard: u64,
    /// Closed by the leader, for whoever has applied up to the place.
    pub closed: (Timestamp, u64),
    pub lost: Vec<Lost>,
    /// A snapshot is being installed: the log must not move.
    pub installing: bool,
    /// What the snapshot is that the library is about to restore.
    pub form: Option<Form>,
    /// The record of its members.
    pub conf_record: RecordNumber,
    /// The greatest commit of which this leader has told, or may leave to what it sends anyway.
    pub commit_told: u64,
    /// Messages for commits alone since the last tick.
    pub told_in_tick: u32,
    /// The last change of the members is known to a majority of them (see `farewell`).
    pub conf_known: bool,
    /// Whom its leader removed, and tells once that is known.
    pub leaving: Vec<Member>,
    /// Who has left and may go, as the leader says.
    pub released: BTreeSet<u64>,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{} {:?}", self.group, self.id, self.seen)
    }
}

fn config(id: ReplicaId, options: &Options, applied: u64) -> Config {
    Config {
        id: id.0,
        election_tick: options.election_ticks,
        heartbeat_tick: options.heartbeat_ticks,
        applied,
        max_size_per_msg: APPEND_BYTES_MAX,
        max_inflight_msgs: APPENDS_INFLIGHT_MAX,
        check_quorum: true,
        pre_vote: true,
        batch_append: true,
        max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
        max_committed_size_per_ready: COMMITTED_BYTES_MAX,
        ..Config::default()
    }
}

impl Replica {
    /// From its log. `tail.applied` is where the driver's state stands. The caller writes its image.
    pub fn new(group: GroupId, id: ReplicaId, tail: Tail, support: Support, store: &mut Store) -> Result<Self, Error> {
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let config = config(id, &store.options, tail.applied);
        let raw = RawNode::new(&config, tail, &logger).map_err(|why| Error::Library { group, why: why.to_string() })?;
        let mut replica = Replica {
            group,
            id,
            seen: Seen::of(&raw.raft),
            raw,
            support,
            lead: None,
            candidacy: None,
            vote_ends: None,
            timeout_ticks: store.draw_timeout(),
            routes: BTreeMap::new(),
            neighbours: BTreeSet::new(),
            record: RecordNumber(0),
            base: RecordNumber(0),
            asleep: false,
            slept_after: None,
            quiet_ticks: 0,
            urgency: Urgency::Awake,
            was_idle: false,
            tries: 0,
            heard: 0,
            closed: (Timestamp::MIN, 0),
            lost: Vec::new(),
            installing: false,
            form: None,
            conf_record: RecordNumber(0),
            commit_told: 0,
            told_in_tick: 0,
            conf_known: false,
            leaving: Vec::new(),
            released: BTreeSet::new(),
        };
        // Founders need not be told of one another.
        replica.conf_known = replica.tail().conf.index == 0;
        replica.after(store);
        replica.count_neighbours(store);
        store.awake.insert(group);
        Ok(replica)
    }

    pub fn tail(&self) -> &Tail {
        self.raw.store()
    }
    pub fn term(&self) -> u64 {
        self.raw.raft.term
    }
    pub fn last_index(&self) -> u64 {
        self.raw.raft.raft_log.last_index()
    }
    pub fn committed(&self) -> u64 {
        self.raw.raft.raft_log.committed
    }
    pub fn store_of(&self, replica: u64) -> Option<StoreId> {
        self.tail().conf.stores.get(&replica).or_else(|| self.routes.get(&replica)).copied()
    }
    pub fn leader(&self) -> Option<StoreId> {
        self.store_of(self.raw.raft.leader_id)
    }

    /// Gives out a record of this replica.
    pub fn write(&mut self, store: &mut Store, bytes: Vec<u8>) {
        self.record = store.ledger.write(bytes);
    }

    /// Gives out all there is of it: earlier records say nothing new.
    pub fn write_image(&mut self, store: &mut Store) {
        let bytes = record::image(self.group, self.id, self.raw.store(), &self.support);
        self.write(store, bytes);
        self.base = self.record;
        self.conf_record = self.record;
    }

    /// To be called after every call of the library.
    pub fn after(&mut self, store: &mut Store) {
        let seen = Seen::of(&self.raw.raft);
        let old = std::mem::replace(&mut self.seen, seen);
        if (old.term, old.role) != (seen.term, seen.role) {
            self.timeout_ticks = store.draw_timeout();
        }
        // The library draws its own from the process's generator.
        self.raw.raft.set_randomized_election_timeout(self.timeout_ticks);
        self.tell_commits_seldom();
        let voted = seen.vote != 0 && (old.term, old.vote) != (seen.term, seen.vote);
        if voted {
            self.voted(store, seen.vote);
        }
        self.look_at_election(store, voted, old.leader);
        if self.lead.as_ref().is_some_and(|lead| seen.role != StateRole::Leader || lead.term != seen.term) {
            self.stop_leading(store);
        }
        if seen.role == StateRole::Leader && self.lead.is_none() {
            self.start_leading(store);
        }
        if (old.term, old.role, old.leader) != (seen.term, seen.role, seen.leader) {
            let role = match seen.role {
                StateRole::Follower => Role::Follower,
                StateRole::Leader => Role::Leader,
                StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
            };
            let change = RoleChange { group: self.group, term: seen.term, role, leader: self.leader() };
            store.out.roles.push(change);
        }
        store.dirty.insert(self.group);
    }

    /// Of what is committed the others hear by what they are sent next: appends and heartbeats say it. Messages for that alone leave a few times a tick
    /// ([`COMMITS_TOLD_PER_TICK`]): under load each commit would cost every follower one more message, and an answer to it.
    fn tell_commits_seldom(&mut self) {
        let committed = self.committed();
        if self.lead.is_some() && committed > self.commit_told {
            self.commit_told = committed;
            self.told_in_tick += 1;
            self.raw.raft.skip_bcast_commit(self.told_in_tick >= COMMITS_TOLD_PER_TICK);
        }
    }

    /// A tick later there may be some again.
    pub fn tell_commits_again(&mut self) {
        self.told_in_tick = 0;
        self.raw.raft.skip_bcast_commit(false);
    }

    /// Support is withdrawn before the vote leaves.
    fn voted(&mut self, store: &mut Store, vote: u64) {
        let candidate = self.store_of(vote).unwrap_or_default();
        let (mut ends, mut withdrawn) = self.support.let_go(store.id(), candidate, &store.promises, self.raw.store());
        if store.sabotage.keep_epoch() {
            withdrawn.clear();
        }
        for from in withdrawn {
            store.promises.withdraw(from);
            store.write_pair(from);
        }
        self.write_support(store);
        if store.sabotage.vote_without_ends() {
            ends = Ends::default();
        }
        let term = self.term();
        self.candidacy = (vote == self.id.0).then(|| (term, ends.clone()));
        self.vote_ends = Some((term, ends));
    }

    pub fn write_support(&mut self, store: &mut Store) {
        let bytes = record::support(self.group, self.id, &self.support);
        self.write(store, bytes);
    }

    /// Counts the stores of its members among the neighbours, which are asked for promises.
    pub fn count_neighbours(&mut self, store: &mut Store) {
        let own = store.id();
        let now: BTreeSet<StoreId> = self.tail().conf.stores.values().copied().filter(|s| *s != own).collect();
        store.count_neighbours(&self.neighbours, &now);
        self.neighbours = now;
    }

    pub fn forget_neighbours(&mut self, store: &mut Store) {
        store.count_neighbours(&std::mem::take(&mut self.neighbours), &BTreeSet::new());
    }

    pub fn wake(&mut self, store: &mut Store) {
        if self.asleep {
            let last_index = self.last_index();
            let own = store.id();
            if let Some(lead) = &mut self.lead {
                let members = self.raw.store().conf.stores.values().copied().filter(|on| *on != own);
                store.words.wakes(self.group, members);
                // It was not told anything while it slept: it looks whether it has a quorum an election later, not at once.
                self.raw.raft.election_elapsed = 0;
                self.told_in_tick = 0;
                self.raw.raft.skip_bcast_commit(false);
                lead.closed = lead.closed.max((store.words.closed, last_index));
            }
            self.leave_the_words(store);
            self.asleep = false;
            store.awake.insert(self.group);
            self.quiet_ticks = 0;
        }
    }

    /// What is closed where it sleeps.
    pub fn closed_asleep(&self, store: &Store) -> Option<Timestamp> {
        match self.slept_after {
            Some((on, before)) => store.words.closed_after(on, before),
            None => self.lead.as_ref().filter(|_| self.asleep).map(|_| store.words.closed),
        }
    }

    /// It takes no part in its leader's store's words any more; what they closed stays closed.
    pub fn leave_the_words(&mut self, store: &Store) {
        if let (Some(_), Some(at)) = (self.slept_after, self.closed_asleep(store)) {
            self.closed = self.closed.max((at, self.last_index()));
        }
        self.slept_after = None;
    }

    /// Whether it may look for votes: it has members, and the log's beginning, if that is new, is durable. (The library ends the process otherwise.)
    pub fn may_campaign(&self) -> bool {
        !self.tail().is_blank() && self.raw.raft.raft_log.applied >= self.tail().cut.index
    }

    /// Calls the library with a message.
    pub fn step(&mut self, store: &mut Store, message: Message) -> Result<(), Error> {
        let result = self.raw.step(message);
        self.after(store);
        result.map_err(|why| Error::Library { group: self.group, why: why.to_string() })
    }

    /// A letter of a peer.
    pub fn receive(&mut self, store: &mut Store, now: &Reading, from: StoreId, letter: Letter) -> Result<(), Error> {
        let kind = letter.message.msg_type;
        let (sender, term) = (letter.message.from, letter.message.term);
        self.check(from, &letter)?;
        if self.installing && matches!(kind, MessageType::MsgAppend | MessageType::MsgHeartbeat) {
            return Ok(());
        }
        if store.refuses_entries && kind == MessageType::MsgAppend && !letter.message.entries.is_empty() {
            store.put_off += 1;
            return Ok(());
        }
        self.routes.insert(sender, from);
        self.routes.retain(|replica, _| *replica == sender || !self.raw.store().conf.stores.contains_key(replica));
        if self.routes.len() > MEMBERS_MAX {
            self.routes.pop_first();
        }
        if self.tail().conf.has_left(sender) {
            self.see_off(store, from, sender, term);
            return Ok(());
        }
        if matches!(kind, MessageType::MsgRequestVote | MessageType::MsgRequestPreVote) {
            self.support.looks_for_votes(from, sender, term, &store.promises);
            if term > self.term()
                && self.support.forbids(store.id(), from, &store.promises, self.raw.store(), now.interval)
            {
                self.wake(store);
                return Ok(());
            }
        }
        if kind == MessageType::MsgTimeoutNow && !self.may_campaign() {
            return Ok(());
        }
        if kind == MessageType::MsgTimeoutNow
            && self.support.forbids(store.id(), store.id(), &store.promises, self.raw.store(), now.interval)
        {
            return Ok(());
        }
        if kind == MessageType::MsgRequestVoteResponse && !letter.message.reject {
            let Some(ends) = &letter.ends else {
                return Err(Error::Message { from, group: self.group, why: "a vote without the ends of promises" });
            };
            if let Some((of, votes)) = &mut self.candidacy
                && *of == term
            {
                votes.merge(ends);
            }
        }
        if !self.is_idle_talk(&letter) {
            self.wake(store);
        }
        let mut letter = letter;
        if self.installing {
            // Nothing may be handed out meanwhile: a vote tells of commits, too.
            letter.message.commit = 0;
        }
        let (accepted, closed) = (letter.accepted, (letter.closed, letter.closed_index));
        let (sleep, word) = (letter.sleep, letter.word);
        self.step(store, letter.message)?;
        let leads = matches!(kind, MessageType::MsgAppend | MessageType::MsgHeartbeat)
            && (self.raw.raft.leader_id, self.term()) == (sender, term);
        if leads {
            self.heard = store.elections.now();
            self.accept(store, from, sender, accepted);
            self.closed = self.closed.max(closed);
            if sleep {
                self.fall_asleep_after_leader(store, from, closed.1, word);
            }
        }
        Ok(())
    }

    /// Accepts the leader, where it does not know yet that it is accepted under the present epoch.
    fn accept(&mut self, store: &mut Store, leader: StoreId, replica: u64, known_epoch: u64) {
        let epoch = store.promises.pair(leader).epoch;
        let term = self.term();
        if self.support.accept(leader, replica, term, &store.promises) {
            self.write_support(store);
        } else if known_epoch == epoch {
            return;
        }
        let accept = Accept { group: self.group, replica: self.id, term, epoch };
        store.post.after(self.record, leader).accepts.push(accept);
    }

    /// What the library takes for granted of its peers, and would end the process for.
    fn check(&self, from: StoreId, letter: &Letter) -> Result<(), Error> {
        let m = &letter.message;
        let wrong = |why| Err(Error::Message { from, group: self.group, why });
        let log = &self.raw.raft.raft_log;
        if m.from == 0 || m.from == self.id.0 || m.to != self.id.0 || m.term == 0 {
            return wrong("it is not for the replica here");
        }
        if self.store_of(m.from).is_some_and(|known| known != from) {
            return wrong("its sender lives on another store");
        }
        match m.msg_type {
            MessageType::MsgAppend => {
                let follows = m.entries.iter().enumerate().all(|(n, entry)| {
                    entry.index == m.index + 1 + n as u64 && entry.term <= m.term && entry.term >= m.log_term
                });
                if !follows || m.log_term > m.term {
                    return wrong("its entries do not follow one another");
                }
            }
            MessageType::MsgHeartbeat if m.term >= self.term() && m.commit > log.last_index() => {
                return wrong("it commits what the log here does not have");
            }
            MessageType::MsgAppendResponse
                if m.term == self.term() && self.lead.is_some() && !m.reject && m.index > log.last_index() =>
            {
                return wrong("it acknowledges what was never sent");
            }
            _ => {}
        }
        Ok(())
    }
}
