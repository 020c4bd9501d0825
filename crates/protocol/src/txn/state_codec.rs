//! The binary form of a range's state: written beside the versions whenever those are made durable, so that replay can begin
//! there.

use super::codec::{read_batch, read_index, read_ranges, read_txn, write_batch, write_ranges, write_txn};
use super::staging::Stagings;
use super::unfolding::span_apart;
use super::{DecodeError, FIRST_VERSION, Outcome, Prepared, Range, RangeId, Span};
use crate::wire::{Reader, Writer};
use bytes::Bytes;
use clock::Timestamp;
use std::sync::Arc;

const VERSION: u8 = 8;
/// Of version 1 of the cluster: what is of no later one is written so, as an older program may have to read it.
const VERSION_UNRAISED: u8 = 7;
/// Without the ranges that were split off.
const VERSION_WITHOUT_HEIRS: u8 = 6;
/// Without parts of transactions.
const VERSION_WITHOUT_PARTS: u8 = 5;
/// Without what was split off.
const VERSION_WITHOUT_RIGHT: u8 = 4;
/// Without the times until which copies may come.
const VERSION_WITHOUT_UNTIL: u8 = 3;
// 2: without indexes that are kept apart.
/// Without a lease.
const VERSION_WITHOUT_LEASE: u8 = 1;
const ABORTED: u8 = 0;
const COMMITTED: u8 = 1;

fn write_until(w: &mut Writer<'_>, until: Option<Timestamp>) {
    w.byte(u8::from(until.is_some()));
    if let Some(until) = until {
        w.time(until);
    }
}

fn read_until(r: &mut Reader) -> Result<Option<Timestamp>, DecodeError> {
    match r.byte("whether copies may come")? {
        0 => Ok(None),
        1 => Ok(Some(r.time("end of the time for copies")?)),
        _ => Err(DecodeError::Damaged("whether copies may come")),
    }
}

impl Range {
    /// The state as bytes.
    pub fn encode(&self) -> Vec<u8> {
        // What is staged is most of it, where something is: growing would copy it.
        let mut out = Vec::with_capacity(usize::try_from(self.stagings.bytes()).unwrap_or(0));
        let mut w = Writer(&mut out);
        let raised = self.version > FIRST_VERSION;
        w.byte(if raised { VERSION } else { VERSION_UNRAISED });
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
        w.number(self.prepared().len() as u64);
        for prepared in self.prepared().values() {
            w.time(prepared.at);
            write_until(&mut w, prepared.until);
            write_ranges(&mut w, &prepared.participants);
            write_batch(&mut w, &prepared.batch);
        }
        w.time(self.memory.swept);
        w.number(self.memory.outcomes.len() as u64);
        for (txn, outcome) in &self.memory.outcomes {
            write_txn(&mut w, *txn);
            match outcome {
                Outcome::Aborted => w.byte(ABORTED),
                Outcome::Committed(at) => {
                    w.byte(COMMITTED);
                    w.time(*at);
                }
            }
            let kept = self.memory.kept.get(txn);
            write_until(&mut w, kept.map(|kept| kept.until));
            write_ranges(&mut w, kept.map_or(&[], |kept| &kept.owed_to));
        }
        w.byte(u8::from(self.right.is_some()));
        if let Some((range, nodes)) = &self.right {
            w.number(range.0);
            w.number(nodes.len() as u64);
            nodes.iter().for_each(|node| w.number(u64::from(*node)));
        }
        self.stagings.write(&mut w);
        w.number(self.heirs.len() as u64);
        self.heirs.iter().for_each(|heir| w.number(heir.0));
        if raised {
            w.number(u64::from(self.version));
            w.number(self.commits);
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
        if !(VERSION_WITHOUT_LEASE..=VERSION).contains(&version) {
            return Err(DecodeError::Version(version));
        }
        let id = RangeId(r.fixed("range")?);
        // Nothing here is a slice of the bytes: they may be all that a store knows.
        let span = span_apart(Span { start: r.bytes("range start")?, end: r.bytes("range end")? });
        let mut range = Range::new(id, span);
        range.applied = r.time("applied")?;
        range.collected = r.time("collected")?;
        if version != VERSION_WITHOUT_LEASE {
            range.lease_end = r.time("end of the lease")?;
        }
        if version >= VERSION_WITHOUT_UNTIL {
            for _ in 0..r.count("indexes apart")? {
                let index = read_index(&mut r)?;
                range.apart.insert(index, r.time("threshold of an index")?);
            }
        }
        for _ in 0..r.count("prepared")? {
            let at = r.time("prepare timestamp")?;
            let until = if version >= VERSION_WITHOUT_RIGHT { read_until(&mut r)? } else { None };
            let participants = read_ranges(&mut r)?;
            let batch = Arc::new(read_batch(&mut r)?.apart());
            range.hold(Prepared { at, batch, until, participants });
        }
        if version >= VERSION_WITHOUT_RIGHT {
            range.memory.swept = r.time("swept")?;
        }
        for _ in 0..r.count("outcomes")? {
            let txn = read_txn(&mut r)?;
            let outcome = match r.byte("outcome")? {
                ABORTED => Outcome::Aborted,
                COMMITTED => Outcome::Committed(r.time("commit timestamp")?),
                _ => return Err(DecodeError::Damaged("outcome")),
            };
            let (until, owed_to) = match version {
                VERSION_WITHOUT_RIGHT.. => (read_until(&mut r)?, read_ranges(&mut r)?),
                _ => (None, Vec::new()),
            };
            range.memory.remember(txn, outcome, until, owed_to);
        }
        if version > VERSION_WITHOUT_RIGHT && r.byte("whether something was split off")? != 0 {
            let right = RangeId(r.number("what was split off")?);
            let mut nodes = Vec::new();
            for _ in 0..r.count("nodes of what was split off")? {
                let node = u32::try_from(r.number("node")?).map_err(|_| DecodeError::Damaged("node"))?;
                nodes.push(node);
            }
            range.right = Some((right, nodes));
        }
        if version > VERSION_WITHOUT_PARTS {
            range.stagings = Stagings::read(&mut r)?;
        }
        if version > VERSION_WITHOUT_HEIRS {
            for _ in 0..r.count("what was split off before")? {
                range.heirs.push_back(RangeId(r.number("what was split off before")?));
            }
        }
        if version > VERSION_UNRAISED {
            let raised = u16::try_from(r.number("version of the cluster")?);
            range.version = raised.map_err(|_| DecodeError::Damaged("version of the cluster"))?;
            range.commits = r.number("commits")?;
        }
        r.end("end")?;
        Ok(range)
    }
}
