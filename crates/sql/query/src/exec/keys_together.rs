//! The unique keys of many new rows, locked together before the first of those rows is looked at.
//!
//! **Problem.** Who inserts a key locks it ([`super::claims`]), so that another who wants it waits; a lock for each key of a bulk statement, one by one, costs more than the row.
//! And a statement that is not repeated (COPY: its rows are gone) may not go by what it saw before it waited, nor certify a span of which it needs single keys: whoever inserts
//! beside them would refuse it.
//!
//! **Idea.** The keys of a group of rows are locked in the order of each index, at once ([`crate::transaction::Transaction::lock_all`]: in runs, decision 174), or asked for in one message where they are led elsewhere. Then one look at the
//! span of the primary keys stands for all of them, and is not remembered: what is put at the snapshot of the look is certified from there on by itself.
//!
//! **Invariants.**
//! 1. Nothing is waited for here. A row of which a key could not be had at once is inserted by itself ([`Writer::put_new`]), when those before it are: it waits there.
//! 2. Where primary keys ascend, none is locked beyond a row that must wait for its own; beyond one that waits for a key of another index those of its group are (decision 244, Costs).
//! 3. A look counts only at the snapshot at which it was made ([`Writer::put_locked`]).
//!
//! **Caveats.** Beyond [`super::claims::LOCKED_MAX`] keys none is locked: a duplicate beside somebody who writes at that moment is a conflict at the commit. Decision 244.

use super::ahead;
use super::claims::Claims;
use super::target::Target;
use super::write::RowImage;
use super::writer::Writer;
use crate::SqlError;
use crate::context::StatementContext;
use crate::transaction::{LockMode, LockWait, ScanRequest, Span};
use crate::types::Row;
use bytes::Bytes;
use clock::Timestamp;
use std::sync::Arc;

/// Rows that are written together.
type Batch = [(Row, RowImage)];

/// What is known of a group of rows when the first of them is written.
struct Group {
    /// Of which rows all keys are locked, or are past the most that are.
    held: Vec<bool>,
    /// At this snapshot nothing had a primary key of theirs.
    free: Option<Timestamp>,
}

/// Writes new rows in their order. `gaps`: whether rows have fallen into gaps so far; where that has to be asked elsewhere, what comes among others is not looked for so again. `done` is given
/// each row when it is written.
///
/// # Errors
/// Those of [`Writer::put_new`], and of `done`.
pub(super) fn put(
    target: &Arc<Target>,
    mut batch: Vec<(Row, RowImage)>,
    gaps: &mut bool,
    writer: &mut Writer<'_>,
    mut done: impl FnMut(&Row) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let together = rows_together(target, &batch);
    while !batch.is_empty() {
        let rest = batch.split_off(together.min(batch.len()));
        let group = Group::lock(target, &batch, gaps, writer.context)?;
        for ((row, image), held) in batch.into_iter().zip(group.held) {
            match held {
                true => writer.put_locked(target, &row, image, group.free)?,
                false => writer.put_new(target, &row, image)?,
            }
            done(&row)?;
        }
        batch = rest;
    }
    Ok(())
}

/// Rows whose keys are asked for together.
fn rows_together(target: &Target, batch: &Batch) -> usize {
    // Of NULLs there are no keys: no row has more than the longest.
    let of_row = |(_, image): &(Row, RowImage)| {
        let keys = image.keys_of(&target.access, |_| true);
        keys.fold((0, 0), |(keys, bytes), key| (keys + 1, bytes + key.len()))
    };
    let (each, bytes) = batch.iter().map(of_row).fold((1, 1), |a: (usize, usize), b| (a.0.max(b.0), a.1.max(b.1)));
    (ahead::KEYS_MAX / each).min(ahead::KEY_BYTES_MAX / bytes).max(1)
}

impl Group {
    /// Locks keys, and looks whether the primary ones are free.
    fn lock(target: &Target, batch: &Batch, gaps: &mut bool, context: &StatementContext) -> Result<Group, SqlError> {
        let far = ahead::is_far(&context.txn);
        let span = ascending(batch).filter(|_| target.access.table.has_primary_key);
        let keys = |primary: bool| {
            batch.iter().flat_map(move |(_, image)| image.keys_of(&target.access, move |index| (index == 0) == primary))
        };
        let in_gap = *gaps && span.is_some();
        if far {
            // On their way while locks are asked for.
            ahead::reads(keys(true).filter(|_| !in_gap).chain(keys(false)).cloned(), &context.txn)?;
        }
        let held = match context.claims.as_deref() {
            Some(claims) => locked(claims, target, batch, context)?,
            None => vec![true; batch.len()],
        };
        let mut free = None;
        if let Some(span) = span.filter(|_| held.iter().all(|held| *held) && (in_gap || !far)) {
            if far {
                *gaps = find_gap(target, &span, context)?;
            }
            if *gaps || !far {
                free = context.txn.with(|txn| {
                    let chunk = txn.observe_scan(&ScanRequest { span, reverse: false, limit: 1 })?;
                    Ok::<_, SqlError>(chunk.rows.is_empty().then(|| txn.snapshot()))
                })?;
            }
        }
        if far && free.is_none() && in_gap {
            ahead::reads(keys(true).cloned(), &context.txn)?;
        }
        Ok(Group { held, free })
    }
}

/// Of which rows all keys are locked.
fn locked(claims: &Claims, target: &Target, batch: &Batch, context: &StatementContext) -> Result<Vec<bool>, SqlError> {
    let access = &target.access;
    let mut held = vec![true; batch.len()];
    // Of the other indexes only keys of rows before the first that waits for its primary key.
    let mut rows = batch.len();
    for index in 0..=access.indexes.len() {
        let keys = batch[..rows].iter().enumerate().flat_map(|(number, (_, image))| {
            image.keys_of(access, move |known| known == index).map(move |key| (key, number))
        });
        let mut keys: Vec<(&Bytes, usize)> = keys.collect();
        if !keys.is_sorted() {
            keys.sort_unstable();
        }
        let room = claims.may_lock_some(keys.len());
        ahead::locks(keys[..room].iter().map(|(key, _)| (*key).clone()), LockMode::NoKeyUpdate, &context.txn);
        let names: Vec<&[u8]> = keys[..room].iter().map(|(key, _)| &key[..]).collect();
        let done = context.txn.with(|txn| {
            let mut done = 0;
            while done < room {
                done += match txn.lock_all(&names[done..], LockMode::NoKeyUpdate)? {
                    0 if txn.lock_as(names[done], LockMode::NoKeyUpdate, LockWait::Skip)? => 1,
                    0 => break,
                    more => more,
                };
            }
            Ok::<_, SqlError>(done)
        })?;
        for (_, number) in &keys[done..room] {
            held[*number] = false;
            if index == 0 {
                rows = rows.min(*number);
            }
        }
        held[rows..].fill(false);
    }
    Ok(held)
}

/// The span of rows whose primary keys ascend.
fn ascending(batch: &Batch) -> Option<Span> {
    let ((_, first), (_, last)) = (batch.first()?, batch.last()?);
    let ascends = batch.windows(2).all(|pair| pair[0].1.key < pair[1].1.key);
    ascends.then(|| first.key.clone()..super::span::successor(&last.key))
}

/// Whether nothing lies in a span of a table's primary keys, as far as is known; where that has to be asked elsewhere it is asked for all that come behind as well.
fn find_gap(target: &Target, span: &Span, context: &StatementContext) -> Result<bool, SqlError> {
    let end = crate::encoding::index_span(target.access.table.primary.id).end;
    Ok(context.txn.with(|txn| txn.find_gap(span, &end))?)
}
