//! DISTINCT, UNION: of equal rows the first, in the order in which they came.
//!
//! Keys that were met are in memory. Where they find no room, no more are taken in: rows of other keys wait in parts, each with its number, and are
//! looked through part by part when the others have gone by. What is left of them is sorted by those numbers, so the order is that of memory.

use super::Run;
use crate::SqlError;
use crate::engine::key_table::{KEY_BYTES, KeyTable};
use crate::exec::spill::Share;
use crate::exec::spill::partitions::{LEVELS_MAX, Part, Partitions};
use crate::exec::spill::sorter::{SortedRows, Sorter, by_number};
use crate::types::{Row, Value};
use std::sync::Arc;

/// See the module.
pub(super) struct Sieve {
    met: Met,
    run: Arc<Run>,
    /// Rows that waited.
    numbered: i64,
    /// Those that are left of them.
    rest: Option<Box<SortedRows>>,
}

/// Keys that were met, and rows of others.
struct Met {
    keys: KeyTable,
    share: Share,
    waiting: Option<Partitions>,
    level: u32,
}

impl Met {
    fn new(run: &Run, level: u32) -> Met {
        Met { keys: KeyTable::new(run.seed), share: Share::new(&run.context), waiting: None, level }
    }

    /// Whether a key is met for the first time; none: that is not known yet.
    #[inline]
    fn is_new(&mut self, key: &[u8], run: &Run) -> Result<Option<bool>, SqlError> {
        if self.waiting.is_some() {
            return Ok(self.keys.find(key).map(|_| false));
        }
        let (_, new) = self.keys.number(key);
        if new {
            let bytes = key.len() + KEY_BYTES;
            if !self.share.take(bytes) {
                match self.level < LEVELS_MAX {
                    true => {
                        self.share.take_anyway(bytes);
                        self.waiting = Some(Partitions::new(self.level, &run.context)?);
                    }
                    false => self.share.take_fixed(bytes)?,
                }
            }
        }
        Ok(Some(new))
    }
}

impl Sieve {
    pub(super) fn new(run: &Arc<Run>) -> Sieve {
        Sieve { met: Met::new(run, 0), run: run.clone(), numbered: 0, rest: None }
    }

    /// Whether a row, by its key, is the first of its equals, and known to be.
    #[inline]
    pub(super) fn passes(&mut self, key: &[u8], row: &mut Row) -> Result<bool, SqlError> {
        match self.met.is_new(key, &self.run)? {
            Some(new) => Ok(new),
            None => {
                row.push(Value::Int8(self.numbered));
                self.numbered += 1;
                self.met.waiting.as_mut().map_or(Ok(()), |waiting| waiting.write(key, row))?;
                Ok(false)
            }
        }
    }

    /// When all rows have gone by: the next of those that waited. `key` writes the key of a row.
    pub(super) fn next(
        &mut self,
        row: &mut Row,
        mut key: impl FnMut(&[Value], &mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<bool, SqlError> {
        if let Some(waiting) = self.met.waiting.take() {
            self.rest = Some(Box::new(self.look_through(waiting, &mut key)?));
        }
        let found = self.rest.as_mut().map_or(Ok(false), |rest| rest.next(row))?;
        if found {
            row.pop();
        }
        Ok(found)
    }

    /// The first of equals among the rows that waited.
    fn look_through(
        &mut self,
        waiting: Partitions,
        key_of: &mut impl FnMut(&[Value], &mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<SortedRows, SqlError> {
        let run = self.run.clone();
        self.met = Met::new(&run, 0);
        let mut parts: Vec<Part> = waiting.finish()?;
        let mut sorter: Option<Sorter> = None;
        let (mut row, mut key) = (Row::new(), Vec::new());
        while let Some(part) = parts.pop() {
            let mut met = Met::new(&run, part.level);
            let mut rows = part.read(&run.context);
            while rows.next(&mut row)? {
                run.tick()?;
                let number = row.len() - 1;
                key.clear();
                key_of(&row[..number], &mut key)?;
                match met.is_new(&key, &run)? {
                    Some(false) => {}
                    Some(true) => {
                        let sorter =
                            sorter.get_or_insert_with(|| Sorter::new(by_number(number), None, &run.context).modest());
                        row = sorter.push(std::mem::take(&mut row))?.unwrap_or_default();
                    }
                    None => met.waiting.as_mut().map_or(Ok(()), |waiting| waiting.write(&key, &row))?,
                }
            }
            if let Some(waiting) = met.waiting.take() {
                parts.append(&mut waiting.finish()?);
            }
        }
        let sorter = sorter.unwrap_or_else(|| Sorter::new(by_number(0), None, &run.context));
        Ok(sorter.finish()?.0)
    }
}
