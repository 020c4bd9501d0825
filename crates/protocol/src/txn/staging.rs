//! Batches that come in parts, ahead of the command that they belong to.
//!
//! # Problem
//! An entry of a replicated log is small, so that heartbeats overtake it and a follower gets it in one message. A transaction is as large as its
//! owner wants.
//!
//! # Idea
//! The batch, as bytes, is cut; each part is a command of the range's log ([`super::Command::Stage`]). The range reads them as they come (`unfolding`). Commit
//! and prepare then say which parts they mean ([`Staged`]) in place of reads and writes, and are certified like any other.
//!
//! # Invariants
//! 1. A part binds nobody: nothing is certified, held or seen before the command that names the parts is applied.
//! 2. That command is refused unless all its parts are there, sound, and of the same whole. What it says goes for the range or not at all.
//! 3. Parts go with the command that names them, with a fence, with a split that takes some of their keys away, and when a record above their
//!    `until` is applied: whoever sent them may be dead. All that is a function of the log.
//! 4. What is staged in a range, or announced to be, is at most the quota that the leader said with each part.
//! 5. A part is as much work as it is large, and as those are that wait for it: who sends keeps these few.

use super::ahead::{Ahead, LOOKS_BESIDE_MAX, LOOKS_MAX, PART_WRITES};
use super::codec::{read_batch, write_batch};
use super::unfolding::{ENTRY_BYTES_MIN, Unfolding, Whole, announced, span_apart};
use super::{Batch, Cause, Read, Span, TxnId, VersionStore, Write};
use crate::wire::{Reader, Writer};
use bytes::Bytes;
use clock::Timestamp;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was staged, as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    /// So many parts.
    pub parts: u32,
    /// With so many bytes together.
    pub bytes: u64,
    /// Their CRC-32.
    pub checksum: u32,
    /// All keys that are read or written lie in here.
    pub span: Span,
}

/// Some of the bytes of a transaction's batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whose.
    pub txn: TxnId,
    /// A part with a greater timestamp is not taken, and what was staged goes with the first record above the greatest of its parts' times.
    pub until: Timestamp,
    /// What it is a part of.
    pub whole: Staged,
    /// Which one, from 0.
    pub number: u32,
    /// The bytes.
    pub bytes: Bytes,
}

impl Batch {
    /// Cuts it into parts of so many bytes at most, and of about so many writes as a step should have.
    pub fn to_parts(&self, part_bytes: usize) -> (Staged, Vec<Bytes>) {
        let entries =
            self.writes.iter().map(|write| write.key.len() + write.value.as_ref().map_or(0, Bytes::len) + ENTRY_BYTES);
        // Growing it would copy it several times over.
        let mut bytes = Vec::with_capacity(entries.sum());
        write_batch(&mut Writer(&mut bytes), self);
        let checksum = crc32fast::hash(&bytes);
        let rest = Bytes::from(bytes);
        let steps = self.writes.len().div_ceil(PART_WRITES).max(1);
        let part_bytes = part_bytes.min(rest.len().div_ceil(steps)).max(1);
        let starts = (0..rest.len()).step_by(part_bytes);
        let parts: Vec<Bytes> =
            starts.map(|from| rest.slice(from..rest.len().min(from.saturating_add(part_bytes)))).collect();
        let staged = Staged { parts: parts.len() as u32, bytes: rest.len() as u64, checksum, span: self.extent() };
        (staged, parts)
    }

    /// From its first key to behind its last.
    fn extent(&self) -> Span {
        let behind = |key: &[u8]| Bytes::from([key, &[0]].concat());
        let reads = self.reads.iter().map(|read| match read {
            Read::Key { key, .. } | Read::Present { key, .. } | Read::Unreferred { key, .. } => {
                Span::new(key.clone(), behind(key))
            }
            Read::Span { span, .. } | Read::Referred { span, .. } => span.clone(),
        });
        // Writes are in order.
        let ends = self.writes.first().into_iter().chain(self.writes.last());
        let writes = ends.map(|write| Span::new(write.key.clone(), behind(&write.key)));
        let joined = |a: Span, b: Span| Span {
            start: a.start.min(b.start),
            end: if a.end.is_empty() || b.end.is_empty() { Bytes::new() } else { a.end.max(b.end) },
        };
        writes.chain(reads).reduce(joined).unwrap_or_default()
    }
}

/// What a write takes in a record beside key and value, about, bytes.
const ENTRY_BYTES: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Staging {
    whole: Staged,
    until: Timestamp,
    came: Came,
    ahead: Ahead,
}

/// What came of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Came {
    Some {
        /// What the first parts say.
        read: Box<Unfolding>,
        /// Parts that one is missing before.
        apart: BTreeMap<u32, Bytes>,
    },
    All(Whole),
}

impl Staging {
    fn is_behind(&self) -> bool {
        self.ahead.is_behind(self.came.writes())
    }
}

/// What so many bytes take that are so many reads and writes.
fn memory_bytes(bytes: u64, (reads, writes): (u64, u64)) -> u64 {
    // There cannot be more.
    let of = |count: u64, size: usize| count.min(bytes / ENTRY_BYTES_MIN).saturating_mul(size as u64);
    bytes.saturating_add(of(reads, size_of::<Read>())).saturating_add(of(writes, size_of::<Write>()))
}

impl Part {
    /// What all that it is a part of will take in memory, about, as far as it says so: the first part says how many reads there are, and, where they end
    /// in it, how many writes.
    pub fn memory_bytes(&self) -> u64 {
        memory_bytes(self.whole.bytes, if self.number == 0 { announced(&self.bytes) } else { (0, 0) })
    }
}

impl Came {
    /// How many reads and writes there are, or will be, as far as that is known.
    fn counts(&self) -> (u64, u64) {
        match self {
            Came::Some { read, .. } => read.counts(),
            Came::All(all) => (all.batch.reads.len() as u64, all.batch.writes.len() as u64),
        }
    }

    /// The writes that were read, from the first one on.
    fn writes(&self) -> &[Write] {
        match self {
            Came::Some { read, .. } => read.writes(),
            Came::All(all) => &all.batch.writes,
        }
    }
}

/// What was staged, and what is known of it.
pub(super) struct UsedUp {
    pub whole: Whole,
    pub ahead: Ahead,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stagings {
    by_txn: BTreeMap<TxnId, Staging>,
    /// Of all that was announced.
    bytes: u64,
}

impl Stagings {
    pub fn is_empty(&self) -> bool {
        self.by_txn.is_empty()
    }
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn knows(&self, txn: TxnId) -> bool {
        self.by_txn.contains_key(&txn)
    }

    pub fn has(&self, part: &Part) -> bool {
        self.by_txn.get(&part.txn).is_some_and(|known| match &known.came {
            Came::All(_) => true,
            Came::Some { read, apart } => part.number < read.parts() || apart.contains_key(&part.number),
        })
    }

    /// A part comes.
    pub fn take(&mut self, part: &Part, quota: u64) -> Result<(), Cause> {
        let Part { txn, until, whole, number, bytes } = part;
        if *number >= whole.parts || self.by_txn.get(txn).is_some_and(|known| known.whole != *whole) {
            return Err(Cause::Unstaged);
        }
        if !self.by_txn.contains_key(txn) {
            if self.bytes.saturating_add(whole.bytes) > quota {
                return Err(Cause::Crowded { bytes: whole.bytes, staged: self.bytes, quota });
            }
            self.bytes += whole.bytes;
            let came = Came::Some { read: Box::default(), apart: BTreeMap::new() };
            self.by_txn.insert(*txn, Staging { whole: whole.clone(), until: *until, came, ahead: Ahead::default() });
        }
        let Some(known) = self.by_txn.get_mut(txn) else { return Ok(()) };
        known.until = known.until.max(*until);
        let Came::Some { read, apart } = &mut known.came else { return Ok(()) };
        if *number >= read.parts() {
            apart.insert(*number, bytes.clone());
        }
        while let Some(next) = apart.remove(&read.parts()) {
            read.take(&next, whole);
        }
        if read.parts() < whole.parts {
            return Ok(());
        }
        match std::mem::take(&mut **read).finish(*txn, whole) {
            Some(all) => known.came = Came::All(all),
            None => {
                self.remove(*txn);
                return Err(Cause::Unstaged);
            }
        }
        Ok(())
    }

    /// The batch whose parts those are, if they are all here.
    pub fn batch(&self, txn: TxnId, whole: &Staged) -> Option<&Arc<Batch>> {
        match &self.by_txn.get(&txn).filter(|known| known.whole == *whole)?.came {
            Came::All(all) => Some(&all.batch),
            Came::Some { .. } => None,
        }
    }

    /// What came of a transaction is used up; the batch, if those are its parts and all were here.
    pub fn use_up(&mut self, txn: TxnId, whole: &Staged) -> Option<UsedUp> {
        let Staging { came, ahead, .. } = self.remove(txn).filter(|gone| gone.whole == *whole)?;
        match came {
            Came::All(whole) => Some(UsedUp { whole, ahead }),
            Came::Some { .. } => None,
        }
    }

    /// A part of a transaction was applied: some of its writes are looked at.
    pub fn look_at<V: VersionStore>(&mut self, txn: TxnId, versions: &V) -> Result<(), V::Error> {
        let Some(Staging { came, ahead, .. }) = self.by_txn.get_mut(&txn) else { return Ok(()) };
        ahead.look(came.writes(), versions, &mut { LOOKS_MAX })
    }

    /// Some of what was not looked at is. `false`: there was nothing.
    pub fn look_ahead<V: VersionStore>(&mut self, versions: &V) -> Result<bool, V::Error> {
        let mut looks = LOOKS_BESIDE_MAX;
        for Staging { came, ahead, .. } in self.by_txn.values_mut().filter(|staging| staging.is_behind()) {
            ahead.look(came.writes(), versions, &mut looks)?;
        }
        Ok(looks < LOOKS_BESIDE_MAX)
    }

    /// The range writes something; `whole` is all of it, to be kept, and is made only where it is needed.
    pub fn note(&mut self, written: &[Write], whole: impl Fn() -> Arc<Batch>, at: Timestamp) {
        let made = OnceCell::new();
        let whole = || made.get_or_init(&whole).clone();
        self.by_txn.values_mut().for_each(|Staging { came, ahead, .. }| ahead.note(came.writes(), written, whole, at));
    }

    /// About what all but one take in memory.
    pub fn memory_bytes(&self, without: TxnId) -> u64 {
        let others = self.by_txn.iter().filter(|(txn, _)| **txn != without);
        others.map(|(_, staging)| memory_bytes(staging.whole.bytes, staging.came.counts())).sum()
    }

    /// See [`super::Range::overlook`].
    pub fn overlook(&mut self) {
        self.by_txn.values_mut().for_each(|staging| staging.ahead.overlook());
    }

    fn remove(&mut self, txn: TxnId) -> Option<Staging> {
        let gone = self.by_txn.remove(&txn)?;
        self.bytes -= gone.whole.bytes;
        Some(gone)
    }

    /// It is given up.
    pub fn drop_all_of(&mut self, txn: TxnId) {
        self.remove(txn);
    }

    /// A record at `at` is applied.
    pub fn sweep(&mut self, at: Timestamp) {
        self.retain(|staging| staging.until >= at);
    }
    /// Whether it would take something away.
    pub fn is_sweepable(&self, at: Timestamp) -> bool {
        self.by_txn.values().any(|staging| staging.until < at)
    }
    /// The range ends at a key from now on.
    pub fn end_at(&mut self, key: &Bytes) {
        self.retain(|staging| !staging.whole.span.end.is_empty() && staging.whole.span.end <= *key);
    }

    fn retain(&mut self, keep: impl Fn(&Staging) -> bool) {
        if self.by_txn.is_empty() {
            return;
        }
        self.by_txn.retain(|_, staging| keep(staging));
        self.bytes = self.by_txn.values().map(|staging| staging.whole.bytes).sum();
    }

    pub fn write(&self, w: &mut Writer<'_>) {
        w.number(self.by_txn.len() as u64);
        for (txn, Staging { whole, until, came, .. }) in &self.by_txn {
            super::codec::write_txn(w, *txn);
            w.time(*until);
            write_staged(w, whole);
            w.byte(u8::from(matches!(came, Came::All(_))));
            match came {
                Came::All(all) => write_batch(w, &all.batch),
                Came::Some { read, apart } => {
                    w.number(u64::from(read.parts()) + apart.len() as u64);
                    read.write(w);
                    for (number, bytes) in apart {
                        w.number(u64::from(*number));
                        w.bytes(bytes);
                    }
                }
            }
        }
    }

    pub fn read(r: &mut Reader) -> Result<Self, super::DecodeError> {
        let mut all = Stagings::default();
        for _ in 0..r.count("staged transactions")? {
            let txn = super::codec::read_txn(r)?;
            let until = r.time("end of the time for parts")?;
            let whole = read_staged(r)?;
            let came = match r.byte("whether all parts are there")? {
                0 => {
                    let (mut read, mut apart) = (Box::<Unfolding>::default(), BTreeMap::new());
                    for _ in 0..r.count("parts")? {
                        let number = r.number("number of a part")?;
                        let number =
                            u32::try_from(number).map_err(|_| super::DecodeError::Damaged("number of a part"))?;
                        // A copy: else it keeps the whole state in memory.
                        apart.insert(number, Bytes::copy_from_slice(&r.bytes("part")?));
                    }
                    while let Some(next) = apart.remove(&read.parts()) {
                        read.take(&next, &whole);
                    }
                    Came::Some { read, apart }
                }
                _ => Came::All(Whole::of(read_batch(r)?)),
            };
            all.bytes = all.bytes.saturating_add(whole.bytes);
            all.by_txn.insert(txn, Staging { whole, until, came, ahead: Ahead::default() });
        }
        Ok(all)
    }
}

pub(crate) fn write_staged(w: &mut Writer<'_>, staged: &Staged) {
    w.number(u64::from(staged.parts));
    w.number(staged.bytes);
    w.number(u64::from(staged.checksum));
    w.bytes(&staged.span.start);
    w.bytes(&staged.span.end);
}

pub(crate) fn read_staged(r: &mut Reader) -> Result<Staged, crate::wire::Short> {
    let number = |r: &mut Reader, what| u32::try_from(r.number(what)?).map_err(|_| crate::wire::Short(what));
    Ok(Staged {
        parts: number(r, "parts")?,
        bytes: r.number("staged bytes")?,
        checksum: number(r, "checksum")?,
        // Apart: else it keeps the first part in memory, or a whole state.
        span: span_apart(Span { start: r.bytes("staged start")?, end: r.bytes("staged end")? }),
    })
}

pub(crate) fn write_part(w: &mut Writer<'_>, part: &Part) {
    super::codec::write_txn(w, part.txn);
    w.time(part.until);
    write_staged(w, &part.whole);
    w.number(u64::from(part.number));
    w.bytes(&part.bytes);
}

pub(crate) fn read_part(r: &mut Reader) -> Result<Part, crate::wire::Short> {
    Ok(Part {
        txn: super::codec::read_txn(r)?,
        until: r.time("end of the time for parts")?,
        whole: read_staged(r)?,
        number: u32::try_from(r.number("number of a part")?).map_err(|_| crate::wire::Short("number of a part"))?,
        bytes: r.bytes("part")?,
    })
}
