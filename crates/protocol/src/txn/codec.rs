//! The binary form of a log record.
//!
//! ```text
//! version u8 | range u64 | timestamp u64 | kind u8 | body
//! ```
//! The header has a fixed size, so a body is encoded before its timestamp is known (outside every lock) and stamped later.
//! A record has the least version that knows its kind: an older program refuses what it does not know, and reads the rest.
//! Snapshots inside a batch are written as the distance below the batch's greatest one: usually one byte, a zero.

use super::lent::LentWrites;
use super::staging::{read_part, read_staged, write_part, write_staged};
use super::versions::INDEX_BYTES;
use super::{Apart, Batch, Command, RangeId, Read, Span, TxnId, Write};
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use clock::Timestamp;

const VERSION: u8 = 1;
/// The first with [`Command::Release`].
const VERSION_RELEASE: u8 = 2;
/// The first with [`Read::Present`].
const VERSION_PRESENT: u8 = 3;
/// The first with indexes apart in [`Command::Collect`].
const VERSION_APART: u8 = 4;
/// The first with [`Batch::until`].
const VERSION_UNTIL: u8 = 5;
/// The first with [`Command::Stage`] and [`Batch::staged`].
const VERSION_STAGED: u8 = 6;
/// The first with [`Command::Raise`].
const VERSION_RAISE: u8 = 7;
/// The first with [`Read::Unreferred`] and [`Read::Referred`].
const VERSION_REFERENCES: u8 = 8;
/// Bytes before the command.
pub const HEADER_BYTES: usize = 17;

const COMMIT: u8 = 1;
const PREPARE: u8 = 2;
const FENCE: u8 = 3;
const OUTCOME: u8 = 4;
const FORGET: u8 = 5;
const SPLIT: u8 = 6;
const COLLECT: u8 = 7;
const LEASE: u8 = 8;
const RELEASE: u8 = 9;
const COLLECT_APART: u8 = 10;
const COMMIT_UNTIL: u8 = 11;
const PREPARE_UNTIL: u8 = 12;
const FENCE_UNTIL: u8 = 13;
const OUTCOME_UNTIL: u8 = 14;
const SPLIT_ON: u8 = 15;
const STAGE: u8 = 16;
const COMMIT_STAGED: u8 = 17;
const PREPARE_STAGED: u8 = 18;
const RAISE: u8 = 19;

const READ_KEY: u8 = 0;
const READ_SPAN: u8 = 1;
const READ_PRESENT: u8 = 2;
const READ_UNREFERRED: u8 = 3;
const READ_REFERRED: u8 = 4;
const DELETE: u8 = 0;
const PUT: u8 = 1;

/// A log record does not have the form that this version writes. Do not apply it: the log is damaged, or was written by a newer
/// version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by a version that this one does not know.
    #[error("record version {0} is unknown: it was written by a newer version of timeball")]
    Version(u8),
    /// Damaged.
    #[error("a record is damaged at its {0}")]
    Damaged(&'static str),
}

impl From<Short> for DecodeError {
    fn from(short: Short) -> Self {
        DecodeError::Damaged(short.0)
    }
}

/// One record of a range's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Whose log.
    pub range: RangeId,
    /// Its timestamp.
    pub at: Timestamp,
    /// What it says.
    pub command: Command,
}

/// Until when copies of it may come.
fn until_of(command: &Command) -> Option<Timestamp> {
    match command {
        Command::Commit(batch) | Command::Prepare { batch, .. } => batch.until,
        Command::Fence { until, .. } | Command::Outcome { until, .. } => *until,
        _ => None,
    }
}

/// As [`encode_record`] of a commit whose writes stand somewhere else; the batch has none, and no `until`.
pub fn encode_commit(
    range: RangeId,
    at: Timestamp,
    batch: &Batch,
    writes: &(impl LentWrites + ?Sized),
    out: &mut Vec<u8>,
) {
    debug_assert!(batch.until.is_none() && batch.staged.is_none() && batch.writes.is_empty());
    let mut w = Writer(out);
    w.byte(match batch {
        batch if batch.tells_of_references() => VERSION_REFERENCES,
        batch if batch.needs_presence() => VERSION_PRESENT,
        _ => VERSION,
    });
    w.fixed(range.0);
    w.time(at);
    w.byte(COMMIT);
    write_batch_of(&mut w, batch, writes);
}

/// Appends the record to `out`. With [`Timestamp::MIN`], [`stamp_record`] sets the time later.
pub fn encode_record(range: RangeId, at: Timestamp, command: &Command, out: &mut Vec<u8>) {
    let mut w = Writer(out);
    w.byte(match command {
        Command::Raise { .. } => VERSION_RAISE,
        Command::Commit(batch) | Command::Prepare { batch, .. } if batch.tells_of_references() => VERSION_REFERENCES,
        Command::Stage { .. } => VERSION_STAGED,
        Command::Commit(batch) | Command::Prepare { batch, .. } if batch.staged.is_some() => VERSION_STAGED,
        _ if until_of(command).is_some() => VERSION_UNTIL,
        Command::Split { nodes, .. } if !nodes.is_empty() => VERSION_UNTIL,
        Command::Release => VERSION_RELEASE,
        Command::Collect { apart, .. } if !apart.is_empty() => VERSION_APART,
        Command::Commit(batch) | Command::Prepare { batch, .. } if batch.needs_presence() => VERSION_PRESENT,
        _ => VERSION,
    });
    w.fixed(range.0);
    w.time(at);
    let until = until_of(command);
    let mut kind = |without, with| match until {
        None => w.byte(without),
        Some(until) => {
            w.byte(with);
            w.time(until);
        }
    };
    match command {
        Command::Stage { part, quota } => {
            w.byte(STAGE);
            w.number(*quota);
            write_part(&mut w, part);
        }
        Command::Commit(Batch { txn, staged: Some(staged), .. }) => {
            w.byte(COMMIT_STAGED);
            w.time(until.unwrap_or_default());
            write_txn(&mut w, *txn);
            write_staged(&mut w, staged);
        }
        Command::Prepare { batch: Batch { txn, staged: Some(staged), .. }, participants } => {
            w.byte(PREPARE_STAGED);
            w.time(until.unwrap_or_default());
            write_ranges(&mut w, participants);
            write_txn(&mut w, *txn);
            write_staged(&mut w, staged);
        }
        Command::Commit(batch) => {
            kind(COMMIT, COMMIT_UNTIL);
            write_batch(&mut w, batch);
        }
        Command::Prepare { batch, participants } => {
            kind(PREPARE, PREPARE_UNTIL);
            write_ranges(&mut w, participants);
            write_batch(&mut w, batch);
        }
        Command::Fence { txn, .. } => {
            kind(FENCE, FENCE_UNTIL);
            write_txn(&mut w, *txn);
        }
        Command::Outcome { txn, commit, .. } => {
            kind(OUTCOME, OUTCOME_UNTIL);
            write_txn(&mut w, *txn);
            w.time(commit.unwrap_or(Timestamp::MIN));
        }
        Command::Forget { txns } => {
            w.byte(FORGET);
            w.number(txns.len() as u64);
            txns.iter().for_each(|txn| write_txn(&mut w, *txn));
        }
        Command::Split { at, right, nodes } => {
            w.byte(if nodes.is_empty() { SPLIT } else { SPLIT_ON });
            w.bytes(at);
            w.fixed(right.0);
            if !nodes.is_empty() {
                w.number(nodes.len() as u64);
                nodes.iter().for_each(|node| w.number(u64::from(*node)));
            }
        }
        Command::Collect { threshold, apart } if apart.is_empty() => {
            w.byte(COLLECT);
            w.time(*threshold);
        }
        Command::Collect { threshold, apart } => {
            w.byte(COLLECT_APART);
            w.time(*threshold);
            w.number(apart.len() as u64);
            for apart in apart {
                w.bytes(&apart.index);
                w.byte(apart.class);
                w.time(apart.threshold);
            }
        }
        Command::Lease { end } => {
            w.byte(LEASE);
            w.time(*end);
        }
        Command::Release => w.byte(RELEASE),
        Command::Raise { version } => {
            w.byte(RAISE);
            w.number(u64::from(*version));
        }
    }
}

/// Sets the range and the timestamp of an encoded record.
pub fn stamp_record(record: &mut [u8], range: RangeId, at: Timestamp) {
    record[1..9].copy_from_slice(&range.0.to_le_bytes());
    record[9..HEADER_BYTES].copy_from_slice(&at.as_u64().to_le_bytes());
}

impl Record {
    /// Reads one record; keys and values share `bytes`.
    ///
    /// # Errors
    /// The bytes are not a record of this version.
    pub fn decode(bytes: &Bytes) -> Result<Record, DecodeError> {
        let mut r = Reader(bytes.clone());
        match r.byte("version")? {
            VERSION..=VERSION_REFERENCES => {}
            other => return Err(DecodeError::Version(other)),
        }
        let range = RangeId(r.fixed("range")?);
        let at = r.time("timestamp")?;
        let command = read_command(&mut r)?;
        r.end("end")?;
        Ok(Record { range, at, command })
    }
}

fn read_command(r: &mut Reader) -> Result<Command, DecodeError> {
    let kind = r.byte("kind")?;
    let until = match kind {
        COMMIT_UNTIL | PREPARE_UNTIL | FENCE_UNTIL | OUTCOME_UNTIL | COMMIT_STAGED | PREPARE_STAGED => {
            Some(r.time("end of the time for copies")?)
        }
        _ => None,
    };
    let staged = |r: &mut Reader| -> Result<Batch, DecodeError> {
        let (txn, staged) = (read_txn(r)?, Some(read_staged(r)?));
        Ok(Batch { txn, until, staged, ..Batch::default() })
    };
    Ok(match kind {
        STAGE => {
            let quota = r.number("quota")?;
            Command::Stage { part: read_part(r)?, quota }
        }
        COMMIT_STAGED => Command::Commit(staged(r)?),
        PREPARE_STAGED => {
            let participants = read_ranges(r)?;
            Command::Prepare { batch: staged(r)?, participants }
        }
        COMMIT | COMMIT_UNTIL => Command::Commit(Batch { until, ..read_batch(r)? }),
        PREPARE | PREPARE_UNTIL => {
            let participants = read_ranges(r)?;
            Command::Prepare { batch: Batch { until, ..read_batch(r)? }, participants }
        }
        FENCE | FENCE_UNTIL => Command::Fence { txn: read_txn(r)?, until },
        OUTCOME | OUTCOME_UNTIL => {
            let txn = read_txn(r)?;
            let commit = r.time("commit timestamp")?;
            Command::Outcome { txn, commit: (commit != Timestamp::MIN).then_some(commit), until }
        }
        FORGET => {
            let count = r.count("transactions")?;
            let txns = (0..count).map(|_| read_txn(r)).collect::<Result<_, _>>()?;
            Command::Forget { txns }
        }
        SPLIT | SPLIT_ON => {
            let (at, right) = (r.bytes("split key")?, RangeId(r.fixed("new range")?));
            let count = if kind == SPLIT_ON { r.count("nodes")? } else { 0 };
            let node = |_| u32::try_from(r.number("node")?).map_err(|_| Short("node"));
            Command::Split { at, right, nodes: (0..count).map(node).collect::<Result<_, _>>()? }
        }
        COLLECT => Command::Collect { threshold: r.time("threshold")?, apart: Vec::new() },
        COLLECT_APART => {
            let threshold = r.time("threshold")?;
            let count = r.count("indexes apart")?;
            let apart = (0..count).map(|_| {
                let (index, class) = (read_index(r)?, r.byte("class")?);
                Ok(Apart { index, class, threshold: r.time("threshold of an index")? })
            });
            Command::Collect { threshold, apart: apart.collect::<Result<_, DecodeError>>()? }
        }
        LEASE => Command::Lease { end: r.time("end of the lease")? },
        RELEASE => Command::Release,
        RAISE => {
            let version = u16::try_from(r.number("version of the cluster")?);
            Command::Raise { version: version.map_err(|_| DecodeError::Damaged("version of the cluster"))? }
        }
        _ => return Err(DecodeError::Damaged("kind")),
    })
}

pub(super) fn read_index(r: &mut Reader) -> Result<[u8; INDEX_BYTES], DecodeError> {
    r.bytes("index")?.as_ref().try_into().map_err(|_| DecodeError::Damaged("index"))
}

pub(crate) fn write_txn(w: &mut Writer<'_>, txn: TxnId) {
    w.fixed(txn.serial);
    w.number(u64::from(txn.node));
}

pub(crate) fn read_txn(r: &mut Reader) -> Result<TxnId, Short> {
    let serial = r.fixed("transaction")?;
    let node = u32::try_from(r.number("transaction's node")?).map_err(|_| Short("transaction's node"))?;
    Ok(TxnId { serial, node })
}

pub(crate) fn write_ranges(w: &mut Writer<'_>, ranges: &[RangeId]) {
    w.number(ranges.len() as u64);
    ranges.iter().for_each(|r| w.number(r.0));
}

pub(crate) fn read_ranges(r: &mut Reader) -> Result<Vec<RangeId>, Short> {
    let count = r.count("participants")?;
    (0..count).map(|_| r.number("participant").map(RangeId)).collect()
}

pub(crate) fn write_batch(w: &mut Writer<'_>, batch: &Batch) {
    write_batch_of(w, batch, &batch.writes[..]);
}

fn write_batch_of(w: &mut Writer<'_>, batch: &Batch, writes: &(impl LentWrites + ?Sized)) {
    let reads = batch.reads.iter().map(Read::since);
    let base = (0..writes.count()).map(|at| writes.since(at)).chain(reads).max().unwrap_or_default();
    write_head(w, batch.txn, base, batch.reads.len() as u64);
    batch.reads.iter().for_each(|read| write_read(w, base, read));
    w.number(writes.count() as u64);
    for at in 0..writes.count() {
        write_write(w, base, writes.key(at), writes.value(at), writes.since(at));
    }
}

/// What stands before the reads of a batch: `base` is its greatest snapshot.
pub(super) fn write_head(w: &mut Writer<'_>, txn: TxnId, base: Timestamp, reads: u64) {
    write_txn(w, txn);
    w.time(base);
    w.number(reads);
}

pub(super) fn write_read(w: &mut Writer<'_>, base: Timestamp, read: &Read) {
    let kind = match read {
        Read::Key { .. } => READ_KEY,
        Read::Present { .. } => READ_PRESENT,
        Read::Span { .. } => READ_SPAN,
        Read::Unreferred { .. } => READ_UNREFERRED,
        Read::Referred { .. } => READ_REFERRED,
    };
    w.byte(kind);
    w.number(base.as_u64() - read.since().as_u64());
    match read {
        Read::Key { key, .. } | Read::Present { key, .. } | Read::Unreferred { key, .. } => w.bytes(key),
        Read::Span { span, .. } | Read::Referred { span, .. } => {
            w.bytes(&span.start);
            w.bytes(&span.end);
        }
    }
}

pub(super) fn write_write(w: &mut Writer<'_>, base: Timestamp, key: &[u8], value: Option<&[u8]>, since: Timestamp) {
    w.number(base.as_u64() - since.as_u64());
    w.bytes(key);
    match value {
        None => w.byte(DELETE),
        Some(value) => {
            w.byte(PUT);
            w.bytes(value);
        }
    }
}

/// What [`write_head`] wrote.
pub(super) fn read_head(r: &mut Reader) -> Result<(TxnId, Timestamp, u64), Short> {
    Ok((read_txn(r)?, r.time("snapshot")?, r.number("reads")?))
}

fn read_since(r: &mut Reader, base: Timestamp) -> Result<Timestamp, DecodeError> {
    let raw = base.as_u64().checked_sub(r.number("snapshot of a key")?);
    raw.map(Timestamp::from_u64).ok_or(DecodeError::Damaged("snapshot"))
}

pub(super) fn read_read(r: &mut Reader, base: Timestamp) -> Result<Read, DecodeError> {
    let kind = r.byte("read")?;
    let since = read_since(r, base)?;
    Ok(match kind {
        READ_KEY => Read::Key { key: r.bytes("read key")?, since },
        READ_PRESENT => Read::Present { key: r.bytes("key that is there")?, since },
        READ_UNREFERRED => Read::Unreferred { key: r.bytes("key that nobody refers to")?, since },
        READ_SPAN | READ_REFERRED => {
            let span = Span { start: r.bytes("span start")?, end: r.bytes("span end")? };
            if kind == READ_SPAN { Read::Span { span, since } } else { Read::Referred { span, since } }
        }
        _ => return Err(DecodeError::Damaged("read")),
    })
}

pub(super) fn read_write(r: &mut Reader, base: Timestamp) -> Result<Write, DecodeError> {
    let since = read_since(r, base)?;
    let key = r.bytes("key")?;
    let value = match r.byte("write")? {
        DELETE => None,
        PUT => Some(r.bytes("value")?),
        _ => return Err(DecodeError::Damaged("write")),
    };
    Ok(Write { key, value, since })
}

pub(crate) fn read_batch(r: &mut Reader) -> Result<Batch, DecodeError> {
    let (txn, base) = (read_txn(r)?, r.time("snapshot")?);
    let count = r.count("reads")?;
    let mut reads = Vec::with_capacity(count.min(1024));
    for _ in 0..count {
        reads.push(read_read(r, base)?);
    }
    let count = r.count("writes")?;
    let mut writes = Vec::with_capacity(count.min(65536));
    for _ in 0..count {
        writes.push(read_write(r, base)?);
    }
    if !writes.windows(2).all(|pair| pair[0].key < pair[1].key) {
        return Err(DecodeError::Damaged("order of keys"));
    }
    Ok(Batch { txn, until: None, staged: None, reads, writes })
}
