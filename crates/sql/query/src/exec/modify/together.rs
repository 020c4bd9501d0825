//! DELETE of the rows of one chunk together.
//!
//! **Problem.** A statement that finds half of a million rows in the bytes of a scan's chunks copied each key, asked for each lock, looked at what may have changed
//! since, and handed each key on by itself: each a little, and together most of what the statement cost.
//!
//! **Idea.** The rows of a chunk that pass WHERE are only noted, and the keys of their entries written one behind the other. Then all are locked at once, and
//! what is locked is deleted, an index at a time.
//!
//! **Invariants.**
//! 1. No row is deleted that is not locked, or that has a version above the snapshot at which WHERE was asked: [`crate::transaction::Transaction::lock_all`].
//! 2. The first that cannot be had so is locked and deleted by itself, as if all were ([`Run::lock_and_write`]); then those behind it are tried again.
//! 3. What WHERE fails with comes behind the rows before it.
//! 4. Only rows of which nothing but the keys matters: nobody points at them, and nothing is returned.

use super::{Action, BATCH_BYTES, Level, Run};
use crate::SqlError;
use crate::exec::cursor::Cursor;
use crate::expr::Expr;
use crate::transaction::LockMode;
use crate::types::{Row, Value};
use bytes::Bytes;

/// The entries of some rows in one index.
#[derive(Default)]
struct Entries {
    keys: Vec<u8>,
    /// Of each: the number of its row, and where its key ends.
    ends: Vec<(u32, u32)>,
}

impl Entries {
    /// The keys of the rows from one number up to another.
    fn of(&self, from: usize, to: usize) -> Vec<&[u8]> {
        let place = |row: usize| self.ends.partition_point(|(of, _)| (*of as usize) < row);
        let end = |at: usize| at.checked_sub(1).map_or(0, |before| self.ends[before].1 as usize);
        (place(from)..place(to)).map(|at| &self.keys[end(at)..end(at + 1)]).collect()
    }
}

/// Rows of one chunk.
#[derive(Default)]
struct Found {
    /// Where key and value of each lie in its bytes.
    places: Vec<[u32; 4]>,
    /// Of each index.
    entries: Vec<Entries>,
}

impl Run<'_> {
    /// Whether a row's going is that of its keys.
    pub(super) fn deletes_together(&self) -> bool {
        let target = &self.modify.target;
        matches!(self.modify.action, Action::Delete)
            && self.apart
            && self.modify.returning.is_none()
            && self.context.parts.is_none()
            && target.inbound.is_empty()
            && target.access.building.is_none()
    }

    /// Deletes the row that the cursor stands at, and those behind it that are at hand in the same bytes. `false`: it stands alone.
    pub(super) fn delete_together(
        &mut self,
        cursor: &mut Cursor,
        level: &Level,
        recheck: Option<&Expr>,
    ) -> Result<bool, SqlError> {
        // All of them would be locked and read anew one by one.
        if self.context.txn.with(|txn| txn.snapshot()) != self.began {
            return Ok(false);
        }
        let Some(chunk) = cursor.place(0).map(|(chunk, _)| chunk.clone()) else { return Ok(false) };
        let mut found = Found::default();
        found.entries.resize_with(level.access.indexes.len(), Entries::default);
        let mut bytes = self.note(cursor, level, &chunk, &mut found)?;
        let failed = loop {
            match cursor.advance_at_hand() {
                Ok(true) => bytes += self.note(cursor, level, &chunk, &mut found)?,
                Ok(false) => break None,
                Err(error) => break Some(error),
            }
            if bytes >= BATCH_BYTES {
                break None;
            }
        };
        self.delete_found(&chunk, &found, level, recheck, cursor.row().len())?;
        failed.map_or(Ok(true), Err)
    }

    /// Notes the row that the cursor stands at; gives the bytes that its entries take.
    fn note(&self, cursor: &Cursor, level: &Level, chunk: &Bytes, found: &mut Found) -> Result<usize, SqlError> {
        let Some((_, place)) = cursor.place(0) else { return Ok(0) };
        let row = &cursor.row()[level.places()];
        let number = found.places.len() as u32;
        let mut bytes = 0;
        for (index, entries) in level.access.indexes.iter().zip(&mut found.entries) {
            let before = entries.keys.len();
            if index.append_key(row, part(chunk, place[0], place[1]), &mut entries.keys)? {
                entries.ends.push((number, entries.keys.len() as u32));
            }
            bytes += entries.keys.len() - before;
        }
        found.places.push(place);
        Ok(bytes)
    }

    fn delete_found(
        &mut self,
        chunk: &Bytes,
        found: &Found,
        level: &Level,
        recheck: Option<&Expr>,
        width: usize,
    ) -> Result<(), SqlError> {
        self.context.check()?;
        let keys: Vec<&[u8]> = found.places.iter().map(|place| part(chunk, place[0], place[1])).collect();
        let mut done = 0;
        while done < keys.len() {
            let locked = self.context.txn.with(|txn| {
                // A row that is newer than the snapshot moves it.
                if txn.snapshot() != self.began {
                    return Ok(0);
                }
                let locked = txn.lock_all(&keys[done..], LockMode::Update)?;
                for entries in &found.entries {
                    txn.delete_all(&entries.of(done, done + locked))?;
                }
                txn.delete_all(&keys[done..done + locked])?;
                Ok::<_, SqlError>(locked)
            })?;
            self.written.add_all(locked);
            done += locked;
            if let Some(&[key, key_end, value, value_end]) = found.places.get(done) {
                let stored = chunk.slice_ref(part(chunk, value, value_end));
                let mut row: Row = vec![Value::Null; width];
                level.access.decode(&stored, &level.slots, &mut row[level.places()])?;
                let key = Bytes::copy_from_slice(part(chunk, key, key_end));
                self.lock_and_write(&key, &stored, level, recheck, &mut row)?;
                done += 1;
            }
        }
        Ok(())
    }
}

fn part(chunk: &Bytes, from: u32, to: u32) -> &[u8] {
    chunk.get(from as usize..to as usize).unwrap_or_default()
}
