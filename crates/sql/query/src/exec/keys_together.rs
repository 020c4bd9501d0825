//! The unique keys of many new rows, locked together before the first of those rows is looked at.
//!
//! **Problem.** Who inserts a key locks it ([`super::claims`]), so that another who wants it waits; a lock for each key of a bulk statement, one by one, costs more than the row.
//! And a statement that is not repeated (COPY: its rows are gone) may not go by what it saw before it waited, nor certify a span of which it needs single keys: whoever inserts
//! beside them would refuse it.
//!
//! **Idea.** The keys of a group of rows are locked in the order of each index, at once ([`crate::transaction::Transaction::lock_all`]: in runs, decision 174), or asked for in one message where they are led elsewhere. Then one look at the
//! span of the primary keys stands for all of them, and is not remembered: what is put at the snapshot of the look is certified from there on by itself.
//! That is so while nobody is met. At the first row that has to wait for somebody the group is given back, and taken again up to that row, which is then written by itself.
//!
//! **Invariants.**
//! 1. Nothing is waited for here. A row of which a key could not be had at once, or seems to be taken, is inserted by itself ([`Writer::put_new`]), when those before it are: it waits there.
//! 2. While it waits no key of a row behind it is locked, in any index: who has what it waits for may write one of those, as in PostgreSQL (decision 244).
//! 3. A look counts only at the snapshot at which it was made ([`Writer::put_locked`]). Of rows of one group that have the same key only the first is looked at together with others.
//! 4. Rows that wait do not make their neighbours ask again and again: each that does halves the groups behind it, each group that meets nobody doubles the next.
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

/// Rows that are next, of which all keys are locked (or are past the most that are).
#[derive(Default)]
struct Group {
    /// How many. The one behind them, if there is one, waits for somebody, or seems to be a duplicate; of those behind that nothing is locked.
    rows: usize,
    /// At this snapshot nothing had a unique key of theirs.
    free: Option<Timestamp>,
}

/// Writes new rows in their order. `gaps`: whether rows have fallen into gaps so far; where that has to be asked elsewhere, what comes among others is not looked for so again. `done` is given
/// each row when it is written.
///
/// # Errors
/// Those of [`Writer::put_new`], and of `done`.
pub(super) fn put(
    target: &Arc<Target>,
    batch: Vec<(Row, RowImage)>,
    gaps: &mut bool,
    writer: &mut Writer<'_>,
    mut done: impl FnMut(&Row) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let most = rows_together(target, &batch);
    let mut size = most;
    let mut left = batch.into_iter();
    while !left.as_slice().is_empty() {
        let rows = &left.as_slice()[..size.min(left.len())];
        let asked = rows.len();
        // Beside somebody who is met at each row a group of one is asked for in vain.
        let singly = size < most && size == 1;
        let group = if singly { Group::default() } else { Group::lock(target, rows, gaps, writer.context)? };
        for (row, image) in left.by_ref().take(group.rows) {
            writer.put_locked(target, &row, image, group.free)?;
            done(&row)?;
        }
        let meets = group.rows < asked;
        if meets && let Some((row, image)) = left.next() {
            writer.put_new(target, &row, image)?;
            done(&row)?;
        }
        size = if meets && !singly { (size / 2).max(1) } else { (size * 2).min(most) };
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
    /// Locks the keys of rows, as many from the first on as meet nobody. What was locked beyond those is given back before anybody is waited for.
    fn lock(target: &Target, batch: &Batch, gaps: &mut bool, context: &StatementContext) -> Result<Group, SqlError> {
        let mut rows = batch;
        loop {
            let counted = context.claims.as_deref().map(|claims| (claims, claims.count()));
            context.txn.with(|txn| txn.note_locks());
            let group = Group::locked(target, rows, gaps, context)?;
            if group.rows == rows.len() {
                return Ok(group);
            }
            context.txn.with(|txn| txn.release_noted());
            if let Some((claims, count)) = counted {
                claims.count_back_to(count);
            }
            if group.rows == 0 {
                return Ok(group);
            }
            rows = &rows[..group.rows];
        }
    }

    /// Locks keys, and looks whether they are free, up to a row that meets somebody: where there is one, more than its keys may be locked.
    fn locked(target: &Target, batch: &Batch, gaps: &mut bool, context: &StatementContext) -> Result<Group, SqlError> {
        let access = &target.access;
        let indexes: Vec<Keys<'_>> = (0..=access.indexes.len()).map(|index| keys_of(target, batch, index)).collect();
        // What is twice among them is seen when the first of the two has been written.
        let twice = |keys: &Keys<'_>| keys.windows(2).filter(|two| two[0].0 == two[1].0).map(|two| two[1].1).min();
        if let Some(rows) = indexes.iter().filter_map(twice).min() {
            return Ok(Group { rows, free: None });
        }
        let far = ahead::is_far(&context.txn);
        let span = ascending(batch).filter(|_| access.table.has_primary_key);
        let in_gap = *gaps && span.is_some();
        if far {
            // On their way while locks are asked for.
            let first = usize::from(in_gap);
            ahead::reads(indexes[first..].iter().flatten().map(|(key, _)| (*key).clone()), &context.txn)?;
        }
        if let Some(claims) = context.claims.as_deref() {
            for keys in &indexes {
                if let Some(rows) = first_met(claims, keys, context)? {
                    return Ok(Group { rows, free: None });
                }
            }
        }
        let mut free = None;
        if let Some(span) = span.filter(|_| in_gap || !far) {
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
            ahead::reads(indexes[0].iter().map(|(key, _)| (*key).clone()), &context.txn)?;
        }
        context.txn.with(|txn| {
            let snapshot = txn.snapshot();
            let primary_is_free = free == Some(snapshot);
            for (row, (_, image)) in batch.iter().enumerate() {
                if image.seems_taken(txn, access, |index| !primary_is_free || index > 0)? {
                    return Ok(Group { rows: row, free: None });
                }
            }
            Ok(Group { rows: batch.len(), free: Some(snapshot) })
        })
    }
}

/// The keys of some rows in one index, in its order, with the numbers of their rows.
type Keys<'a> = Vec<(&'a Bytes, usize)>;

fn keys_of<'a>(target: &Target, batch: &'a Batch, index: usize) -> Keys<'a> {
    let of_row = |(number, (_, image)): (usize, &'a (Row, RowImage))| {
        image.keys_of(&target.access, move |known| known == index).map(move |key| (key, number))
    };
    let mut keys: Keys<'a> = batch.iter().enumerate().flat_map(of_row).collect();
    if !keys.is_sorted() {
        keys.sort_unstable();
    }
    keys
}

/// Locks keys of one index. Gives the row of the first that cannot be had at once, if there is one: what follows it is not locked.
fn first_met(claims: &Claims, keys: &Keys<'_>, context: &StatementContext) -> Result<Option<usize>, SqlError> {
    let room = claims.may_lock_some(keys.len());
    ahead::locks(keys[..room].iter().map(|(key, _)| (*key).clone()), LockMode::NoKeyUpdate, &context.txn);
    let names: Vec<&[u8]> = keys[..room].iter().map(|(key, _)| &key[..]).collect();
    context.txn.with(|txn| {
        let mut done = 0;
        while done < room {
            done += match txn.lock_all(&names[done..], LockMode::NoKeyUpdate)? {
                0 if txn.lock_as(names[done], LockMode::NoKeyUpdate, LockWait::Skip)? => 1,
                0 => return Ok(Some(keys[done].1)),
                more => more,
            };
        }
        Ok(None)
    })
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
