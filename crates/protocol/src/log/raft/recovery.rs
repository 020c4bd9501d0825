//! A store's log is read back.

use super::error::{DecodeError, Error};
use super::ids::{GroupId, RecordNumber, ReplicaId, StoreId};
use super::options::Options;
use super::promise::Pair;
use super::record::{self, Form, Log, Record};
use super::replica::Replica;
use super::replicas::{Replicas, Tombs};
use super::store::Store;
use super::support::Support;
use super::tail::Tail;
use bytes::Bytes;
use clock::HybridClock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A replica as far as its records were read.
#[derive(Debug)]
struct Draft {
    replica: ReplicaId,
    tail: Tail,
    support: Support,
    installing: Option<Form>,
    base: RecordNumber,
    last: RecordNumber,
}

/// A store's log is read back: its records, in order, then [`Recovery::finish`].
#[derive(Debug)]
pub struct Recovery {
    options: Options,
    clock: Arc<HybridClock>,
    last: RecordNumber,
    drafts: BTreeMap<GroupId, Draft>,
    tombs: Tombs,
    pairs: BTreeMap<StoreId, (RecordNumber, Pair)>,
}

impl Recovery {
    /// Begins. The hybrid clock is the node's own: readers ratchet it to their snapshots, and the leaders here stamp by it.
    pub fn new(options: Options, clock: Arc<HybridClock>) -> Self {
        Recovery {
            options,
            clock,
            last: RecordNumber(0),
            drafts: BTreeMap::new(),
            tombs: Tombs::new(),
            pairs: BTreeMap::new(),
        }
    }

    /// One record, in order. The first may have any number above 0.
    ///
    /// # Errors
    /// It is not a record of this version, or one before it is missing.
    pub fn record(&mut self, number: RecordNumber, bytes: &Bytes) -> Result<(), Error> {
        let missing = Error::Decode(DecodeError::Damaged("an earlier record"));
        let follows = number > self.last && (self.last.0 == 0 || number.0 == self.last.0 + 1);
        if !follows {
            return Err(missing);
        }
        self.last = number;
        let (group, replica, log) = match record::read(bytes)? {
            Record::Pair(store, pair) => {
                self.pairs.insert(store, (number, pair));
                return Ok(());
            }
            Record::Replica(group, replica, log) => (group, replica, log),
        };
        if let Log::Image(tail, support) = log {
            let draft = Draft { replica, tail: *tail, support, installing: None, base: number, last: number };
            self.drafts.insert(group, draft);
            return Ok(());
        }
        if let Log::Removed = log {
            // It may have been carried along, past the image of a later replica.
            if self.drafts.get(&group).is_some_and(|draft| draft.replica <= replica) {
                self.drafts.remove(&group);
            }
            self.tombs.insert(group, (replica, number));
            return Ok(());
        }
        // Records of a replica may begin in the middle where its image comes later (segments before were recycled).
        let Some(draft) = self.drafts.get_mut(&group).filter(|draft| draft.replica == replica) else { return Ok(()) };
        draft.last = number;
        match log {
            Log::Append(hard, entries) => {
                let first = entries.first().map_or(draft.tail.last_index() + 1, |entry| entry.index);
                if first <= draft.tail.cut.index || first > draft.tail.last_index() + 1 {
                    return Err(missing);
                }
                draft.tail.hard = hard;
                draft.tail.append(&entries);
            }
            Log::Conf(conf) => draft.tail.conf = conf,
            Log::Cut(index) => {
                draft.tail.truncate(index);
            }
            Log::Support(support) => draft.support = support,
            Log::Installing(form) => draft.installing = Some(form),
            Log::Image(..) | Log::Removed => {}
        }
        Ok(())
    }

    /// The log has no more. `applied` says, for each group, up to where the driver's state has applied it, durably; committed entries
    /// after it are handed out again.
    ///
    /// # Errors
    /// The log has less than was applied, or begins after it.
    pub fn finish(self, applied: &BTreeMap<GroupId, u64>) -> Result<Replicas, Error> {
        let mut store = Store::new(self.options, self.clock, self.last);
        for (of, (number, pair)) in self.pairs {
            store.promises.given.insert(of, pair);
            store.pair_records.insert(of, number);
        }
        let mut groups = BTreeMap::new();
        for (group, mut draft) in self.drafts {
            let tail = &mut draft.tail;
            let mut applied = applied.get(&group).copied().unwrap_or(tail.cut.index);
            // It has no log yet, nor what it was about to install: the driver's state is that of an earlier replica, which was removed.
            if tail.last_index() == 0 && draft.installing.as_ref().is_none_or(|form| form.cut.index != applied) {
                (applied, draft.installing) = (tail.cut.index, None);
            }
            // Was it installed before the crash? The driver's state knows.
            let form = draft.installing.filter(|form| {
                form.cut.index <= applied
                    && tail.term_at(form.cut.index) != Some(form.cut.term)
                    && form.cut.index > tail.cut.index
            });
            let restored = form.is_some();
            if let Some(form) = form {
                tail.restore(form.cut, form.conf);
            }
            if applied < tail.cut.index || applied > tail.last_index() {
                return Err(Error::Applied { group, applied, first: tail.cut.index, last: tail.last_index() });
            }
            // A change of the members is written down when it is applied, and so it was committed.
            let known = applied.max(tail.conf.index);
            tail.hard.commit = tail.hard.commit.max(known).min(tail.last_index());
            tail.applied = applied;
            // Whatever led here does so no more.
            draft.support.ceased(store.id(), u64::MAX, &store.promises);
            // What is committed says itself what it closed: whoever stamps after it, in this term or a later one, does so above its timestamps. (Not above the floor: who
            // says up to where he serves stamps below that himself.)
            let committed = tail.hard.commit;
            let closed = (tail.stamped_up_to(committed), committed);
            let mut replica = Replica::new(group, draft.replica, draft.tail, draft.support, &mut store)?;
            replica.closed = closed;
            (replica.base, replica.record) = (draft.base, draft.last);
            replica.recall_members(&mut store);
            if restored {
                replica.write_image(&mut store);
            }
            groups.insert(group, Box::new(replica));
        }
        Ok(Replicas::from_parts(store, groups, self.tombs))
    }
}
