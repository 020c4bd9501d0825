//! Batches that come in parts, ahead of the command that they belong to.
//!
//! # Problem
//! An entry of a replicated log is small, so that heartbeats overtake it and a follower gets it in one message. A transaction is as large as its
//! owner wants.
//!
//! # Idea
//! The batch, as bytes, is cut; each part is a command of the range's log ([`super::Command::Stage`]). When all are there the range puts them together. Commit
//! and prepare then say which parts they mean ([`Staged`]) in place of reads and writes, and are certified like any other.
//!
//! # Invariants
//! 1. A part binds nobody: nothing is certified, held or seen before the command that names the parts is applied.
//! 2. That command is refused unless all its parts are there, sound, and of the same whole. What it says goes for the range or not at all.
//! 3. Parts go with the command that names them, with a fence, with a split that takes some of their keys away, and when a record above their
//!    `until` is applied: whoever sent them may be dead. All that is a function of the log.
//! 4. What is staged in a range, or announced to be, is at most the quota that the leader said with each part.

use super::codec::{read_batch, write_batch};
use super::{Batch, Cause, Span, TxnId};
use crate::wire::{Reader, Writer};
use bytes::Bytes;
use clock::Timestamp;
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
    /// Cuts it into parts of so many bytes at most.
    pub fn to_parts(&self, part_bytes: usize) -> (Staged, Vec<Bytes>) {
        let mut bytes = Vec::new();
        write_batch(&mut Writer(&mut bytes), self);
        let checksum = crc32fast::hash(&bytes);
        let rest = Bytes::from(bytes);
        let starts = (0..rest.len()).step_by(part_bytes.max(1));
        let parts: Vec<Bytes> =
            starts.map(|from| rest.slice(from..rest.len().min(from.saturating_add(part_bytes.max(1))))).collect();
        let staged = Staged { parts: parts.len() as u32, bytes: rest.len() as u64, checksum, span: self.extent() };
        (staged, parts)
    }

    /// From its first key to behind its last.
    fn extent(&self) -> Span {
        let behind = |key: &[u8]| Bytes::from([key, &[0]].concat());
        let reads = self.reads.iter().map(|read| match read {
            super::Read::Key { key, .. } | super::Read::Present { key, .. } | super::Read::Unreferred { key, .. } => {
                Span::new(key.clone(), behind(key))
            }
            super::Read::Span { span, .. } | super::Read::Referred { span, .. } => span.clone(),
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

#[derive(Clone, Debug, PartialEq, Eq)]
struct Staging {
    whole: Staged,
    until: Timestamp,
    parts: BTreeMap<u32, Bytes>,
    /// All parts, put together; then they themselves are gone.
    batch: Option<Arc<Batch>>,
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
        self.by_txn.get(&part.txn).is_some_and(|known| known.batch.is_some() || known.parts.contains_key(&part.number))
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
            let fresh = Staging { whole: whole.clone(), until: *until, parts: BTreeMap::new(), batch: None };
            self.by_txn.insert(*txn, fresh);
        }
        let Some(known) = self.by_txn.get_mut(txn) else { return Ok(()) };
        known.until = known.until.max(*until);
        if known.batch.is_some() {
            return Ok(());
        }
        known.parts.insert(*number, bytes.clone());
        if known.parts.len() < whole.parts as usize {
            return Ok(());
        }
        match joined(*txn, whole, std::mem::take(&mut known.parts)) {
            Some(batch) => known.batch = Some(Arc::new(batch)),
            None => {
                self.remove(*txn);
                return Err(Cause::Unstaged);
            }
        }
        Ok(())
    }

    /// The batch whose parts those are, if they are all here.
    pub fn batch(&self, txn: TxnId, whole: &Staged) -> Option<&Arc<Batch>> {
        self.by_txn.get(&txn).filter(|known| known.whole == *whole)?.batch.as_ref()
    }

    pub fn remove(&mut self, txn: TxnId) -> Option<Arc<Batch>> {
        let gone = self.by_txn.remove(&txn)?;
        self.bytes -= gone.whole.bytes;
        gone.batch
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
        for (txn, Staging { whole, until, parts, batch }) in &self.by_txn {
            super::codec::write_txn(w, *txn);
            w.time(*until);
            write_staged(w, whole);
            w.byte(u8::from(batch.is_some()));
            match batch {
                Some(batch) => write_batch(w, batch),
                None => {
                    w.number(parts.len() as u64);
                    for (number, bytes) in parts {
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
            let (mut parts, mut batch) = (BTreeMap::new(), None);
            match r.byte("whether all parts are there")? {
                0 => {
                    for _ in 0..r.count("parts")? {
                        let number = r.number("number of a part")?;
                        let number =
                            u32::try_from(number).map_err(|_| super::DecodeError::Damaged("number of a part"))?;
                        parts.insert(number, r.bytes("part")?);
                    }
                }
                _ => batch = Some(Arc::new(read_batch(r)?)),
            }
            all.bytes = all.bytes.saturating_add(whole.bytes);
            all.by_txn.insert(txn, Staging { whole, until, parts, batch });
        }
        Ok(all)
    }
}

/// The batch of these parts; `None`: they are not what they should be.
fn joined(txn: TxnId, whole: &Staged, parts: BTreeMap<u32, Bytes>) -> Option<Batch> {
    let all: Vec<&[u8]> = parts.values().map(|part| &part[..]).collect();
    let bytes = all.concat();
    drop(parts);
    if (bytes.len() as u64, crc32fast::hash(&bytes)) != (whole.bytes, whole.checksum) {
        return None;
    }
    let mut r = Reader(bytes.into());
    let batch = read_batch(&mut r).ok()?;
    (r.end("end").is_ok() && batch.txn == txn).then_some(batch)
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
        span: Span { start: r.bytes("staged start")?, end: r.bytes("staged end")? },
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
