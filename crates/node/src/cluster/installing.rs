//! How a replica takes a snapshot, a slice at a time, while its node goes on.
//!
//! # Problem
//! A snapshot may have a million versions, and each is compared with what is here. Who does that at once does nothing else for seconds: no heartbeat, no statement, no answer to who watches.
//!
//! # Idea
//! While a snapshot is installed the log core hands out nothing of its group, and nobody votes it into office. So the replica's state stands still, and the rows can be added to the store slice by
//! slice, in each tick as much as [`super::LogLimits::copied_bytes_per_tick`] says, and no more than [`LOOKS_MAX`] versions. The state, and the applied place, follow at the end.
//!
//! # Invariants
//! 1. No layer is closed while a snapshot is half installed: it is durable as a whole or not at all. Who wants one closed (a flush) takes a slice instead.
//! 2. Nobody reads the replica meanwhile: what is deleted for the new state lies where the old one could be read.
//! 3. What cannot be read to the end is refused before anything of it is written; all of it is looked at first, a slice at a time, too.
//! 4. Rows and the keys that are here come in the same order: a key that is here, and not in the snapshot, is met before the next row is written.
//! 5. Who gives up half way still obeys invariant 1: where the replica is removed, until the record of that is durable (a restart before it finds the replica with its old state); where the store
//!    fails, until the restart.
//! 6. What is installed holds up no client: those who look how much waits for the disk leave it out ([`super::Member::installed_bytes`]). It takes the place of the parts in which it came.
//!
//! # Caveats
//! What other ranges write meanwhile waits for the end of it to be flushed. The rows that are not installed yet are in memory, in the parts in which they came, and what is installed is in one layer, whatever
//! its size.

use super::core::{Core, group_of, range_of};
use super::rows::{Row, Rows};
use super::shard::Shard;
use crate::transaction::after;
use crate::versions::bounded;
use bytes::Bytes;
use clock::Timestamp;
use protocol::log::raft::{GroupId, RecordNumber};
use protocol::txn::{Range, RangeId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::SeqCst;
use store::{Engine, Span, StoreError, Version};

/// Versions and keys looked at in a slice, at most: some 10 ms.
const LOOKS_MAX: usize = 2048;
const LOOKS_MIN: usize = 8;
/// So many bytes of a slice are a look.
const LOOK_BYTES: usize = 512;
/// Keys that are here are read together.
const KEYS_MAX: usize = 1024;

/// A snapshot on its way into the store.
#[derive(Debug)]
pub(super) struct Installing {
    group: GroupId,
    applied: u64,
    state: Range,
    rows: Rows,
    /// The next row.
    next: Option<Row>,
    /// Keys that are here, and were not met yet; and the span of those that follow.
    here: VecDeque<Bytes>,
    unread: Option<Span>,
    /// Nothing more of it is written; and what is there may be durable once this record is, for that takes its replica away.
    ends_with: Option<RecordNumber>,
    /// Rules that are broken.
    buries_what_is_prepared: bool,
    joins_what_came_again: bool,
}

/// What is to be written, and when.
type Steps = BTreeMap<Timestamp, Vec<store::Write>>;

impl Installing {
    /// Invariant 5: its replica is removed by a record.
    pub fn end_with(&mut self, record: RecordNumber) {
        self.ends_with.get_or_insert(record);
    }

    pub fn group(&self) -> GroupId {
        self.group
    }

    pub fn is_over(&self, durable: RecordNumber) -> bool {
        self.ends_with.is_some_and(|record| record <= durable)
    }

    /// Writes as much as so many bytes, or a little more; `true`: that was all.
    fn go_on<E: Engine>(&mut self, versions: &store::Versions<E>, bytes: usize) -> Result<bool, StoreError> {
        let looks_max = (bytes / LOOK_BYTES).clamp(LOOKS_MIN, LOOKS_MAX);
        let (mut left, until) = (looks_max, self.rows.bytes().saturating_sub(bytes.max(LOOK_BYTES)));
        let mut steps = Steps::new();
        let mut whole = false;
        while left > 0 && (self.rows.bytes() > until || until == 0) {
            if self.here.is_empty()
                && let Some(mut unread) = self.unread.take()
            {
                let found = versions.keys_in(&unread, looks_max.min(KEYS_MAX))?;
                if let Some(last) = found.last().filter(|_| found.len() == looks_max.min(KEYS_MAX)) {
                    unread.start = after(last);
                    self.unread = Some(unread);
                }
                self.here.extend(found);
            }
            self.next = self.next.take().or_else(|| self.rows.next());
            match (self.here.front(), &self.next) {
                (None, None) => {
                    whole = true;
                    break;
                }
                (Some(here), next) if next.as_ref().is_none_or(|(key, _)| here < key) => {
                    left -= 1;
                    let Some(key) = self.here.pop_front() else { continue };
                    self.bury(versions, &key, &mut steps)?;
                }
                (here, _) => {
                    let Some((key, history)) = self.next.take() else { continue };
                    if here.is_some_and(|here| *here == key) {
                        self.here.pop_front();
                    }
                    left = left.saturating_sub(history.len().max(1));
                    self.put(versions, key, history, &mut steps)?;
                }
            }
        }
        for (at, writes) in steps {
            versions.apply(at, &writes);
        }
        Ok(whole)
    }

    /// The deletion came after the value, and what is prepared after the deletion.
    fn gone_at(&self, key: &[u8], here: &Version) -> Timestamp {
        match self.buries_what_is_prepared {
            true => self.state.collected_of(key).max(here.ts.next()),
            false => here.ts.next(),
        }
    }

    /// The snapshot has nothing of a key.
    fn bury<E: Engine>(&self, versions: &store::Versions<E>, key: &Bytes, steps: &mut Steps) -> Result<(), StoreError> {
        let newest = versions.version_at(key, Timestamp::MAX)?;
        if let Some(newest) = newest.filter(|newest| newest.value.is_some()) {
            steps.entry(self.gone_at(key, &newest)).or_default().push((key.clone(), None));
        }
        Ok(())
    }

    fn put<E: Engine>(
        &self,
        versions: &store::Versions<E>,
        key: Bytes,
        history: Vec<Version>,
        steps: &mut Steps,
    ) -> Result<(), StoreError> {
        let newest = versions.newest(&key)?.unwrap_or(Timestamp::MIN);
        let threshold = self.state.collected_of(&key);
        let came_again = history.first().is_some_and(|first| first.ts > threshold) && newest < threshold;
        if came_again && !self.joins_what_came_again {
            self.bury(versions, &key, steps)?;
        }
        for version in history.into_iter().filter(|version| version.ts > newest) {
            steps.entry(version.ts).or_default().push((key.clone(), version.value));
        }
        Ok(())
    }
}

impl<E: Engine> Core<E> {
    /// Begins with a snapshot that was looked at.
    pub(super) fn begin_installing(&mut self, group: GroupId, state: Range, applied: u64, rows: Rows) {
        self.snapshots.current = Some(Installing {
            group,
            applied,
            unread: Some(bounded(state.span())),
            state,
            rows,
            next: None,
            here: VecDeque::new(),
            ends_with: None,
            buries_what_is_prepared: self.sabotage.bury_what_is_prepared(),
            joins_what_came_again: self.sabotage.join_what_came_again(),
        });
    }

    /// Invariant 2.
    pub(super) fn is_installing(&self, range: RangeId) -> bool {
        self.snapshots.current.as_ref().is_some_and(|installing| installing.group == group_of(range))
    }

    /// The next slice, if there is one.
    pub(super) fn tick_installing(&mut self) -> Result<(), StoreError> {
        // What is read here would else have it all put in its places first.
        if self.snapshots.current.is_some() && self.store.0.place(LOOKS_MAX) {
            self.out.flush = true;
            return Ok(());
        }
        let next = self.snapshots.current.take_if(|installing| installing.ends_with.is_none());
        let Some(mut installing) = next else { return Ok(()) };
        let before = self.store.0.active_bytes();
        let gone_on = installing.go_on(&self.store.0, self.options.limits.copied_bytes_per_tick);
        let written = self.store.0.active_bytes().saturating_sub(before);
        self.snapshots.installed_bytes.fetch_add(written, SeqCst);
        match gone_on {
            Ok(true) => {}
            Ok(false) => {
                self.snapshots.current = Some(installing);
                // Who flushes takes the next one, before the next tick.
                self.out.flush = true;
                return Ok(());
            }
            // Invariant 5: rows are lost, so it never ends.
            Err(why) => {
                installing.end_with(RecordNumber(u64::MAX));
                self.snapshots.current = Some(installing);
                return Err(why);
            }
        }
        let Installing { group, state, applied, .. } = installing;
        let range = range_of(group);
        self.collection.taken(group);
        self.proposals_before(range, applied);
        self.jumps_over(&state);
        match self.shards.get_mut(&range) {
            Some(shard) => shard.restore(state, applied),
            None => drop(self.shards.insert(range, Box::new(Shard::new(state, applied)))),
        }
        self.staged.note(range);
        self.learn_own();
        self.count += 1;
        self.counters.snapshots_installed.one();
        self.freeze();
        self.is_frozen_with(group);
        self.out.flush = true;
        Ok(())
    }
}
