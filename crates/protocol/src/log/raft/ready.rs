//! What the library hands out becomes records, letters and committed entries.

use super::entry::LogEntry;
use super::ledger::Durable;
use super::letter::{Ends, Letter};
use super::outputs::Committed;
use super::record;
use super::replica::Replica;
use super::store::Store;
use raft::StateRole;
use raft::eraftpb::{Entry, Message, MessageType};

impl Replica {
    /// Takes everything that the library has.
    pub fn flush(&mut self, store: &mut Store) {
        while self.raw.has_ready() {
            let mut ready = self.raw.ready();
            let number = ready.number();
            if !ready.snapshot().is_empty() {
                let form = self.form.take().expect("only a snapshot that came is restored");
                self.raw.mut_store().restore(form.cut, form.conf);
                self.conf_known = self.tail().conf.index == 0;
                self.count_neighbours(store);
                store.out.configurations.push(self.tail().conf.shown(self.group));
            }
            let entries = ready.take_entries();
            let tail = self.raw.mut_store();
            if let Some(hard) = ready.hs() {
                tail.hard = hard.clone();
            }
            tail.append(&entries);
            if !ready.snapshot().is_empty() {
                self.write_image(store);
            } else if ready.must_sync() {
                let bytes = record::append(self.group, self.id, &self.tail().hard, &entries);
                self.write(store, bytes);
            }
            let now = ready.take_messages();
            let after = ready.take_persisted_messages();
            let committed = ready.take_committed_entries();
            self.raw.advance_append_async(ready);
            self.post(store, now, true);
            if store.ledger.is_durable(self.record) || store.sabotage.ack_before_durable() {
                self.raw.on_persist_ready(number);
            } else {
                let what = Durable::Ready { group: self.group, replica: self.id, number };
                store.ledger.then(self.record, what);
            }
            self.hand_out(store, committed);
            // After what was handed out: an answer says which members are written down here.
            self.post(store, after, false);
            self.advance();
            self.relieve();
            self.after(store);
        }
        store.dirty.remove(&self.group);
    }

    /// A record is durable, and with it what the library handed out under this number.
    pub fn persisted(&mut self, store: &mut Store, number: u64) {
        self.raw.on_persist_ready(number);
        self.advance();
        self.after(store);
    }

    /// Tells the library what was handed out to be applied.
    fn advance(&mut self) {
        let log = &self.raw.raft.raft_log;
        let to = self.tail().applied.min(log.committed).min(log.persisted);
        if to > log.applied {
            self.raw.advance_apply_to(to);
        }
    }

    fn post(&mut self, store: &mut Store, mut messages: Vec<Message>, now: bool) {
        messages.sort_by_key(|message| message.to);
        for message in messages {
            if message.msg_type == MessageType::MsgSnapshot {
                store.snapshots.wanted.insert((self.group, message.to));
                continue;
            }
            let Some(to) = self.store_of(message.to) else { continue };
            let letter = self.letter(message);
            let early = match letter.message.msg_type {
                MessageType::MsgAppendResponse => store.sabotage.ack_before_durable(),
                MessageType::MsgRequestVote | MessageType::MsgRequestVoteResponse => {
                    store.sabotage.vote_before_durable()
                }
                _ => false,
            };
            let envelope = if now || early || store.ledger.is_durable(self.record) {
                store.post.now(to)
            } else {
                store.post.after(self.record, to)
            };
            envelope.letters.push(letter);
        }
    }

    fn letter(&self, message: Message) -> Letter {
        let mut letter = Letter::new(self.group, message);
        let m = &letter.message;
        match (&self.lead, m.msg_type) {
            (Some(lead), MessageType::MsgAppend | MessageType::MsgHeartbeat) => {
                letter.accepted = lead.accepted.get(&m.to).copied().unwrap_or(0);
                (letter.closed, letter.closed_index) = lead.closed;
            }
            (_, MessageType::MsgAppendResponse | MessageType::MsgHeartbeatResponse) => {
                letter.message.commit = self.says_its_conf();
            }
            (_, MessageType::MsgRequestVoteResponse) if !m.reject => {
                let said = self.vote_ends.as_ref().filter(|(term, _)| *term == m.term).map(|(_, ends)| ends.clone());
                letter.ends = Some(said.unwrap_or_else(|| Ends { past: self.support.past, terms: Vec::new() }));
            }
            _ => {}
        }
        letter
    }

    fn hand_out(&mut self, store: &mut Store, committed: Vec<Entry>) {
        let Some(last) = committed.last().map(|entry| entry.index) else { return };
        let mut entries = Vec::with_capacity(committed.len());
        for entry in &committed {
            self.find(store, entry.index, entry.term);
            let entry = LogEntry::from_raft(entry).expect("entries are checked when they come in");
            if entry.body.conf_change().is_some() {
                self.apply_change(store, &entry);
            }
            entries.push(entry);
        }
        self.raw.mut_store().applied = last;
        if let Some(lead) = &mut self.lead {
            lead.ready |= last >= lead.begin;
        }
        match store.out.committed.last_mut() {
            Some(run) if run.group == self.group => run.entries.extend(entries),
            _ => store.out.committed.push(Committed { group: self.group, entries }),
        }
    }

    /// After a restart. The driver's state lies elsewhere than the log, and may be ahead of the record of the members. The entries that changed them are in the log all the same,
    /// as nothing is handed out that is not durable there; and nothing of the log is cut off before such a record is.
    pub fn recall_members(&mut self, store: &mut Store) {
        let tail = self.tail();
        let behind = tail.entries.iter().filter(|entry| entry.index > tail.conf.index && entry.index <= tail.applied);
        let changes: Vec<LogEntry> = behind.filter_map(|entry| LogEntry::from_raft(entry).ok()).collect();
        for entry in changes.iter().filter(|entry| entry.body.conf_change().is_some()) {
            self.apply_change(store, entry);
        }
    }

    /// The membership changes here and now. (After a restart an entry may come again: the configuration knows its place.)
    fn apply_change(&mut self, store: &mut Store, entry: &LogEntry) {
        if entry.index <= self.tail().conf.index {
            return;
        }
        self.settle(store);
        let change = entry.body.conf_change().expect("it is a change");
        // One that does not fit (the leader has looked) changes nothing, on any replica.
        let Ok(state) = self.raw.apply_conf_change(&change) else { return };
        let gone = self.raw.mut_store().conf.applied(entry.index, &entry.body, state);
        let bytes = record::conf(self.group, self.id, &self.tail().conf);
        self.write(store, bytes);
        self.conf_record = self.record;
        self.conf_known &= gone.is_empty() && !self.tail().conf.is_joint();
        self.count_neighbours(store);
        store.out.configurations.push(self.tail().conf.shown(self.group));
        for member in &gone {
            if member.replica == self.id {
                if store.sabotage.leave_at_once() {
                    store.tell_removed(self.group, self.id);
                }
            } else if self.lead.is_some() {
                self.leaving.push(*member);
            }
            self.routes.insert(member.replica.0, member.store);
        }
        self.wait_for_founders();
        let voter = self.tail().conf.is_voter(self.id.0);
        if let Some(lead) = &mut self.lead {
            lead.accepted.retain(|replica, _| self.raw.raft.prs().get(*replica).is_some());
            if !voter && self.raw.raft.state == StateRole::Leader {
                let term = self.term();
                self.raw.raft.become_follower(term, raft::INVALID_ID);
            }
        }
    }
}
