//! Which keys come next, said to a transaction that may have to ask for each elsewhere (`Transaction::read_ahead`, `Transaction::lock_ahead`): distance costs round
//! trips per statement then, and not per row.
//!
//! Invariants
//! 1. Nothing depends on it: what is said to be read or locked next may be left out, and what was not said may be read.
//! 2. What is said to be locked is locked, unless the statement fails: no row is named whose condition was not asked. (But for the keys of a lone INSERT .. ON CONFLICT: it ends with them.)

use super::cursor::Level;
use super::span::Keys;
use crate::SqlError;
use crate::context::StatementContext;
use crate::transaction::{LockMode, LockWait, ScanRequest, Span, TxnRef};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Rows of which is said at a time what comes next.
pub(crate) const AHEAD_ROWS: usize = 256;

/// Keys that are asked for at a time where nothing is to be locked: as many as are known at a time below.
pub(crate) const KEYS_MAX: usize = 1024;
/// Bytes of keys that are asked for together at most: as many as a node takes.
pub(crate) const KEY_BYTES_MAX: usize = 1 << 20;

/// Rows of index entries and of tables that are scanned ahead at a time, all spans together, and of the rows that entries lead to.
const SPAN_ROWS: usize = 4096;
const ENTRY_ROWS: usize = 2 * AHEAD_ROWS;

/// Whether it pays to say what comes next.
pub(crate) fn is_far(txn: &TxnRef) -> bool {
    txn.with(|txn| txn.is_far())
}

/// The rows that entries of a level's index lead to are read next.
pub(super) fn rows_of_entries(
    level: &Level,
    entries: &[(Bytes, Bytes)],
    context: &StatementContext,
) -> Result<(), SqlError> {
    if entries.len() < 2 || level.skips || !is_far(context.reads()) {
        return Ok(());
    }
    let rows = entries.iter().map(|(key, value)| level.access.row_key_of_entry(key, value));
    let rows: Vec<Bytes> = rows.collect::<Result<_, SqlError>>()?;
    Ok(context.reads().with(|txn| txn.read_ahead(&rows))?)
}

/// What these keys of a level's index lead to is read next, of each span a chunk of at most so many rows; and locked before that if the level says so and `locks`: all of them come to be locked.
pub(crate) fn rows_of_keys<'a>(
    level: &Level,
    keys: impl Iterator<Item = &'a Keys>,
    locks: bool,
    chunk_rows: usize,
    context: &StatementContext,
) -> Result<(), SqlError> {
    if level.skips || !is_far(context.reads()) {
        return Ok(());
    }
    let (mut points, mut spans) = (Vec::new(), Vec::new());
    for keys in keys.take(AHEAD_ROWS) {
        match keys {
            Keys::One(key) => points.push(key.clone()),
            Keys::Span(span) => spans.push(span.clone()),
        }
    }
    if points.len() + spans.len() < 2 {
        return Ok(());
    }
    rows_of_points(level, points, locks, context)?;
    rows_of_spans(level, spans, chunk_rows, context)
}

fn rows_of_points(
    level: &Level,
    mut keys: Vec<Bytes>,
    locks: bool,
    context: &StatementContext,
) -> Result<(), SqlError> {
    if keys.is_empty() {
        return Ok(());
    }
    context.reads().with(|txn| {
        txn.read_ahead(&keys)?;
        if level.path.index != 0 {
            if level.entries.is_some() {
                return Ok(());
            }
            let mut rows = Vec::with_capacity(keys.len());
            for key in &keys {
                if let Some(entry) = txn.peek(key)? {
                    rows.push(level.access.row_key_of_entry(key, &entry)?);
                }
            }
            keys = rows;
            txn.read_ahead(&keys)?;
        }
        if locks && let (Some((mode, LockWait::Wait)), None) = (level.lock, &level.key_lock) {
            txn.lock_ahead(&distinct(keys.into_iter()), mode);
        }
        Ok(())
    })
}

fn rows_of_spans(
    level: &Level,
    spans: Vec<Span>,
    chunk_rows: usize,
    context: &StatementContext,
) -> Result<(), SqlError> {
    if spans.is_empty() {
        return Ok(());
    }
    let limit = (SPAN_ROWS / spans.len()).clamp(1, chunk_rows.max(1));
    let reverse = level.path.reverse;
    let requests: Vec<ScanRequest> = spans.into_iter().map(|span| ScanRequest { span, reverse, limit }).collect();
    context.reads().with(|txn| {
        if !txn.scan_ahead(&requests)? || !level.reads_rows() {
            return Ok(());
        }
        let mut rows = Vec::new();
        for request in &requests {
            for (key, value) in txn.peek_scan(request)?.rows {
                rows.push(level.access.row_key_of_entry(&key, &value)?);
            }
            if rows.len() >= ENTRY_ROWS {
                break;
            }
        }
        rows.truncate(ENTRY_ROWS);
        Ok(txn.read_ahead(&rows)?)
    })
}

/// Rows that were found are locked next, all in one mode.
pub(crate) fn locks(keys: impl Iterator<Item = Bytes>, mode: LockMode, txn: &TxnRef) {
    if is_far(txn) {
        let keys = distinct(keys);
        txn.with(|txn| txn.lock_ahead(&keys, mode));
    }
}

/// Keys in their order, each once: one is locked once, however many rows lead to it.
pub(crate) fn distinct(keys: impl Iterator<Item = Bytes>) -> Vec<Bytes> {
    let mut seen = BTreeSet::new();
    keys.filter(|key| seen.insert(key.clone())).collect()
}

/// Keys are read next.
pub(super) fn reads(keys: impl Iterator<Item = Bytes>, txn: &TxnRef) -> Result<(), SqlError> {
    if is_far(txn) {
        let keys: Vec<Bytes> = keys.collect();
        txn.with(|txn| txn.read_ahead(&keys))?;
    }
    Ok(())
}
