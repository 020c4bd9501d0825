//! The binary form of a range's state: written beside the versions whenever those are made durable, so that replay can begin
//! there.

use super::codec::{read_batch, read_index, read_ranges, read_txn, write_batch, write_ranges, write_txn};
use super::{DecodeError, Outcome, Prepared, Range, RangeId, Span};
use crate::wire::{Reader, Writer};
use bytes::Bytes;

const VERSION: u8 = 3;
/// Without indexes that are kept apart.
const VERSION_WITHOUT_APART: u8 = 2;
/// Without a lease.
const VERSION_WITHOUT_LEASE: u8 = 1;
const ABORTED: u8 = 0;
const COMMITTED: u8 = 1;

impl Range {
    /// The state as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut w = Writer(&mut out);
        w.byte(VERSION);
        w.fixed(self.id.0);
        w.bytes(&self.span.start);
        w.bytes(&self.span.end);
        w.time(self.applied);
        w.time(self.collected);
        w.time(self.lease_end);
        w.number(self.apart.len() as u64);
        for (index, threshold) in &self.apart {
            w.bytes(index);
            w.time(*threshold);
        }
        w.number(self.prepared.len() as u64);
        for prepared in self.prepared.values() {
            w.time(prepared.at);
            write_ranges(&mut w, &prepared.participants);
            write_batch(&mut w, &prepared.batch);
        }
        w.number(self.outcomes.len() as u64);
        for (txn, outcome) in &self.outcomes {
            write_txn(&mut w, *txn);
            match outcome {
                Outcome::Aborted => w.byte(ABORTED),
                Outcome::Committed(at) => {
                    w.byte(COMMITTED);
                    w.time(*at);
                }
            }
        }
        out
    }

    /// The state from its bytes.
    ///
    /// # Errors
    /// The bytes are not a state of this version.
    pub fn decode(bytes: &Bytes) -> Result<Range, DecodeError> {
        let mut r = Reader(bytes.clone());
        let version = r.byte("version")?;
        if !matches!(version, VERSION | VERSION_WITHOUT_APART | VERSION_WITHOUT_LEASE) {
            return Err(DecodeError::Version(version));
        }
        let id = RangeId(r.fixed("range")?);
        let span = Span { start: r.bytes("range start")?, end: r.bytes("range end")? };
        let mut range = Range::new(id, span);
        range.applied = r.time("applied")?;
        range.collected = r.time("collected")?;
        if version != VERSION_WITHOUT_LEASE {
            range.lease_end = r.time("end of the lease")?;
        }
        if version == VERSION {
            for _ in 0..r.count("indexes apart")? {
                let index = read_index(&mut r)?;
                range.apart.insert(index, r.time("threshold of an index")?);
            }
        }
        for _ in 0..r.count("prepared")? {
            let at = r.time("prepare timestamp")?;
            let participants = read_ranges(&mut r)?;
            let batch = read_batch(&mut r)?;
            range.prepared.insert(batch.txn, Prepared { at, batch, participants });
        }
        for _ in 0..r.count("outcomes")? {
            let txn = read_txn(&mut r)?;
            let outcome = match r.byte("outcome")? {
                ABORTED => Outcome::Aborted,
                COMMITTED => Outcome::Committed(r.time("commit timestamp")?),
                _ => return Err(DecodeError::Damaged("outcome")),
            };
            range.outcomes.insert(txn, outcome);
        }
        r.end("end")?;
        Ok(range)
    }
}
