//! Rows to which several ways lead: conditions one of which must hold, each by an index of its own (`id = 5 OR s = 'x'`).
//!
//! The ways are gone to their ends first, and what they lead to is kept as keys of rows: in their order, each once, however many ways lead to it. Then rows are read by these keys as by those of any
//! list. Which way a row was found by is not known afterwards, so all conditions are asked of it.
//!
//! What was read is what the ways lead to, and these rows: another transaction that writes elsewhere in the table is nothing to it.
//!
//! Where rows are far, the entries that the ways look up are asked for together, and the first chunks of their stretches; the rows that they lead to are asked for as
//! they are read ([`super::cursor`]).

use super::ahead;
use super::cursor::CHUNK_ROWS_MAX;
use super::metered::{JOIN, SCAN, place};
use super::path::Path;
use super::sort::Reserved;
use super::span::Keys;
use super::table::TableAccess;
use crate::SqlError;
use crate::context::StatementContext;
use crate::explain::Done;
use crate::transaction::{ScanRequest, Span};
use crate::types::Value;
use bytes::Bytes;

/// Keys of rows that are kept at most, and their bytes; beyond that the whole table is read instead, under the same conditions.
const KEYS_MAX: usize = 1 << 16;
const KEY_BYTES_MAX: usize = 8 << 20;
/// Keys between two looks at whether the statement was ended.
const KEYS_PER_CHECK: usize = 1024;
/// Entries that are scanned ahead at a time, all stretches together, and how many stretches that are at most.
const AHEAD_ROWS: usize = 4096;
const AHEAD_SPANS: usize = 256;

/// What these keys take while they are kept, bytes.
pub(super) fn bytes(keys: &[Keys]) -> usize {
    let text = |keys: &Keys| if let Keys::One(key) = keys { key.len() } else { 0 };
    keys.iter().map(|keys| size_of::<Keys>() + text(keys)).sum()
}

/// The keys to read, in their order.
pub(super) fn keys(
    ways: &[Path],
    access: &TableAccess,
    row: &[Value],
    context: &StatementContext,
) -> Result<Vec<Keys>, SqlError> {
    let mut found = Found { keys: Vec::new(), bytes: 0, held: Reserved::new(&context.memory) };
    let mut all_us = 0;
    for way in ways {
        let (before, began_us) = (found.keys.len(), context.meters.as_ref().map(|_| context.kv.now_us()));
        let goes_on = found.by(way, access, row, context)?;
        if let (Some(meters), Some(began_us)) = (&context.meters, began_us) {
            let us = context.kv.now_us() - began_us;
            let rows = (found.keys.len() - before) as u64;
            meters.add(place(way, SCAN), Done { loops: 1, rows, first_us: us, us });
            all_us += us;
        }
        if !goes_on {
            return Ok(vec![Keys::Span(access.index(0).span())]);
        }
    }
    if let (Some(meters), Some(first)) = (&context.meters, ways.first()) {
        // What they lead to together is no row yet.
        meters.add(place(first, JOIN), Done { loops: 1, rows: 0, first_us: all_us, us: all_us });
    }
    let mut keys = found.keys;
    keys.sort_unstable();
    keys.dedup();
    Ok(keys.into_iter().map(Keys::One).collect())
}

/// What the ways have led to.
struct Found {
    keys: Vec<Bytes>,
    bytes: usize,
    held: Reserved,
}

impl Found {
    /// Adds a key of its own, which keeps nothing else; `false`: they are too many, or others need the memory.
    fn add(&mut self, key: &[u8], context: &StatementContext) -> Result<bool, SqlError> {
        // (It is a key and is then in a list of keys.)
        let bytes = key.len() + size_of::<Bytes>() + size_of::<Keys>();
        if !self.held.take_spare(bytes) {
            return Ok(false);
        }
        self.bytes += bytes;
        self.keys.push(Bytes::copy_from_slice(key));
        if self.keys.len().is_multiple_of(KEYS_PER_CHECK) {
            context.check()?;
        }
        Ok(self.keys.len() <= KEYS_MAX && self.bytes <= KEY_BYTES_MAX)
    }

    /// Goes a way to its end; `false`: it leads to too much.
    fn by(
        &mut self,
        way: &Path,
        access: &TableAccess,
        row: &[Value],
        context: &StatementContext,
    ) -> Result<bool, SqlError> {
        let (mut points, mut spans) = (Vec::new(), Vec::new());
        for keys in way.keys(access, row, context)? {
            match keys {
                Keys::One(key) => points.push(key),
                Keys::Span(span) => spans.push(span),
            }
        }
        if way.index == 0 {
            for key in points {
                if !self.add(&key, context)? {
                    return Ok(false);
                }
            }
        } else {
            for piece in points.chunks(ahead::KEYS_MAX) {
                // Also those that lead nowhere are work.
                context.check()?;
                ahead::reads(piece.iter().cloned(), context.reads())?;
                for key in piece {
                    if let Some(entry) = context.reads().with(|txn| txn.get(key))?
                        && !self.add(&access.row_key_of_entry(key, &entry)?, context)?
                    {
                        return Ok(false);
                    }
                }
            }
        }
        for piece in spans.chunks(AHEAD_SPANS) {
            let limit = (AHEAD_ROWS / piece.len()).clamp(1, CHUNK_ROWS_MAX);
            if piece.len() > 1 && ahead::is_far(context.reads()) {
                let request = |span: &Span| ScanRequest { span: span.clone(), reverse: false, limit };
                let requests: Vec<ScanRequest> = piece.iter().map(request).collect();
                context.reads().with(|txn| txn.scan_ahead(&requests))?;
            }
            for span in piece {
                if !self.within(span, way, access, limit, context)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Adds what the entries of a stretch lead to; `false`: that is too much.
    fn within(
        &mut self,
        span: &Span,
        way: &Path,
        access: &TableAccess,
        mut limit: usize,
        context: &StatementContext,
    ) -> Result<bool, SqlError> {
        let mut rest = Some(span.clone());
        while let Some(span) = rest.take() {
            context.check()?;
            let request = ScanRequest { span, reverse: false, limit };
            let chunk = context.reads().with(|txn| txn.scan(&request))?;
            for (key, value) in &chunk.rows {
                let added = match way.index {
                    0 => self.add(key, context)?,
                    _ => self.add(&access.row_key_of_entry(key, value)?, context)?,
                };
                if !added {
                    return Ok(false);
                }
            }
            (rest, limit) = (chunk.rest, CHUNK_ROWS_MAX);
        }
        Ok(true)
    }
}
