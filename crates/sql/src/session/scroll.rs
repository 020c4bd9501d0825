//! Cursors that go both ways: rows that were read stay, within the memory of their query.
//!
//! The place is before the first row, on a row, or behind the last one. Rows are read from the query only as far as the place has been:
//! `FETCH 10` of a million reads ten.
//!
//! A cursor declared neither SCROLL nor NO SCROLL goes back, too, as long as what it has read is no more than [`KEPT_BYTES_MAX`]; beyond that it
//! forgets its rows and goes forward only: it may be read to its end whatever its size.

use super::cursor::PULL_ROWS;
use super::read_out::ReadOut;
use crate::context::MemoryBudget;
use crate::exec::sort::{Reserved, row_bytes};
use crate::plan::RowSource;
use crate::syntax::command::Move;
use crate::types::Row;
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Rows of a scrollable cursor, and where it stands.
pub(super) struct Scroll {
    /// What gives further rows; `None` when there are no more.
    source: Option<Box<dyn RowSource>>,
    rows: Vec<Row>,
    /// 0 is before the first row; one more than there are rows is behind the last one.
    at: usize,
    reserved: Reserved,
    /// What the rows take, bytes.
    bytes: usize,
    /// It forgets its rows when they are too many; whether they are.
    forgets: bool,
    too_many: bool,
}

/// What a cursor that was not declared SCROLL keeps to go back to, bytes.
pub(super) const KEPT_BYTES_MAX: usize = 1 << 20;

/// What a movement came to: rows to give, in this order.
pub(super) enum Moved<'a> {
    /// None; so many were passed, as MOVE counts.
    Passed(u64),
    /// In the order of the query.
    Forward(&'a [Row]),
    /// From the last to the first.
    Backward(&'a [Row]),
}

impl Scroll {
    /// A cursor before its first row.
    pub(super) fn new(source: Option<Box<dyn RowSource>>, rows: Vec<Row>, memory: &Arc<MemoryBudget>) -> Self {
        Scroll { source, rows, at: 0, reserved: Reserved::new(memory), bytes: 0, forgets: false, too_many: false }
    }

    /// The same, which forgets its rows when they are too many.
    pub(super) fn forgetting(self) -> Self {
        Scroll { forgets: true, ..self }
    }

    /// Whether it may forget its rows.
    pub(super) fn forgets(&self) -> bool {
        self.forgets
    }

    /// From here on it keeps all.
    pub(super) fn keep(&mut self) {
        self.forgets = false;
    }

    /// How many rows are before the place.
    pub(super) fn before(&self) -> u64 {
        self.at as u64
    }

    /// Whether it keeps too much, and has no row that was not given yet: it may go on as one that goes forward only.
    pub(super) fn should_forget(&self) -> bool {
        self.forgets && self.too_many && self.at >= self.rows.len()
    }

    /// What gives further rows, and how many were read.
    pub(super) fn forget(&mut self) -> (Option<Box<dyn RowSource>>, u64) {
        (self.source.take(), self.rows.len() as u64)
    }

    /// Reads all that is left, unless that is too much: whether it has.
    pub(super) fn reads_all(&mut self) -> Result<bool, SqlError> {
        while self.source.is_some() && !(self.forgets && self.too_many) {
            self.read_to(self.rows.len() + PULL_ROWS)?;
        }
        Ok(self.source.is_none())
    }

    /// Whether it needs its query no more.
    pub(super) fn is_whole(&self) -> bool {
        self.source.is_none()
    }

    /// Reads rows until so many are there, or no more. One that forgets stops when they are too many, with one batch more at least.
    pub(super) fn read_to(&mut self, wanted: usize) -> Result<(), SqlError> {
        while self.rows.len() < wanted
            && let Some(source) = &mut self.source
        {
            let more = source.next((wanted - self.rows.len()).min(PULL_ROWS))?;
            if more.is_empty() {
                self.source = None;
                break;
            }
            let bytes = more.iter().map(|row| row_bytes(row)).sum();
            self.bytes += bytes;
            self.too_many |= self.bytes > KEPT_BYTES_MAX;
            match self.reserved.take(bytes) {
                Err(_) if self.forgets => self.too_many = true,
                taken => taken?,
            }
            self.rows.extend(more);
            if self.forgets && self.too_many {
                break;
            }
        }
        Ok(())
    }

    /// Reads all that is left to where it waits to be asked for.
    pub(super) fn read_out(&mut self, memory: &Arc<MemoryBudget>) {
        if let Some(source) = &mut self.source {
            ReadOut::replace(source, memory);
        }
    }

    /// Reads all that is left.
    pub(super) fn read_all(&mut self) -> Result<(), SqlError> {
        self.read_to(usize::MAX)
    }

    /// The next rows at most, as a portal without a direction reads them.
    pub(super) fn next(&mut self, wanted: usize) -> Result<Vec<Row>, SqlError> {
        Ok(self.forward(wanted)?.to_vec())
    }

    /// The next rows, at most so many.
    pub(super) fn forward(&mut self, wanted: usize) -> Result<&[Row], SqlError> {
        let end = self.at.saturating_add(wanted);
        self.read_to(end)?;
        let first = self.at.min(self.rows.len());
        let last = end.min(self.rows.len());
        if wanted > 0 {
            // Fewer rows than wanted, and no more: it stands behind the last one.
            self.at = if self.source.is_some() { last } else { end.min(self.rows.len() + 1) };
        }
        Ok(&self.rows[first..last])
    }

    fn backward(&mut self, wanted: usize) -> &[Row] {
        let last = self.at.saturating_sub(1);
        let first = last.saturating_sub(wanted);
        if wanted > 0 {
            self.at = self.at.saturating_sub(wanted);
        }
        &self.rows[first..last]
    }

    /// Goes and gives the rows on the way; `skip`: only their number, where it differs.
    pub(super) fn go(&mut self, movement: Move, skip: bool) -> Result<Moved<'_>, SqlError> {
        let rows = |n: i64| usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
        Ok(match movement {
            Move::By(0) => {
                let on_row = (1..=self.rows.len()).contains(&self.at);
                match (on_row, skip) {
                    (true, true) => Moved::Passed(1),
                    (true, false) => Moved::Forward(&self.rows[self.at - 1..self.at]),
                    (false, _) => Moved::Passed(0),
                }
            }
            Move::By(n) if n > 0 => Moved::Forward(self.forward(rows(n))?),
            Move::By(n) => Moved::Backward(self.backward(rows(n))),
            Move::ToEnd => Moved::Forward(self.forward(usize::MAX)?),
            Move::ToStart => Moved::Backward(self.backward(usize::MAX)),
            Move::To(0) => {
                self.at = 0;
                Moved::Passed(0)
            }
            Move::To(n) if n > 0 => {
                self.at = rows(n) - 1;
                self.read_to(self.at)?;
                self.at = self.at.min(self.rows.len() + 1);
                Moved::Forward(self.forward(1)?)
            }
            Move::To(n) => {
                self.read_all()?;
                self.at = (self.rows.len() + 2).saturating_sub(rows(n));
                Moved::Backward(self.backward(1))
            }
            Move::Over(n) if n > 0 => {
                self.forward(rows(n) - 1)?;
                Moved::Forward(self.forward(1)?)
            }
            Move::Over(0) => return self.go(Move::By(0), skip),
            Move::Over(n) => {
                self.backward(rows(n) - 1);
                Moved::Backward(self.backward(1))
            }
        })
    }
}

/// A movement that goes forward from where so many rows are before it, as rows to pass, then rows to give (`None`: all).
pub(super) fn forward_steps(movement: Move, before: u64) -> Option<(u64, Option<u64>)> {
    let count = |n: i64| u64::try_from(n).ok().filter(|n| *n > 0);
    Some(match movement {
        Move::ToEnd => (0, None),
        Move::By(n) => (0, Some(count(n)?)),
        Move::Over(n) => (count(n)? - 1, Some(1)),
        Move::To(n) => (count(n)?.checked_sub(before + 1)?, Some(1)),
        Move::ToStart => return None,
    })
}

/// 55000
pub(super) fn backward() -> SqlError {
    SqlError::new(SqlState::NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
        .hint("Declare it with SCROLL option to enable backward scan.")
}

/// What a cursor that only goes forward can make of a movement: rows to pass, then rows to give (`None`: all). `taken` rows have left it; behind
/// its last row, one more.
pub(super) fn only_forward(movement: Move, taken: u64, on_row: bool) -> Result<(u64, Option<u64>), SqlError> {
    let count = |n: i64| u64::try_from(n).map_err(|_| backward());
    Ok(match movement {
        Move::ToEnd => (0, None),
        Move::By(0) | Move::Over(0) if !on_row => (0, Some(0)),
        Move::To(0) if taken == 0 => (0, Some(0)),
        Move::By(0) | Move::Over(0) | Move::To(0) | Move::ToStart => return Err(backward()),
        Move::By(n) => (0, Some(count(n)?)),
        Move::Over(n) => (count(n)? - 1, Some(1)),
        Move::To(n) => (count(n)?.checked_sub(taken + 1).ok_or_else(backward)?, Some(1)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Value;

    struct Numbers(i32, i32);

    impl RowSource for Numbers {
        fn next(&mut self, max: usize) -> Result<Vec<Row>, SqlError> {
            let end = self.1.min(self.0.saturating_add(i32::try_from(max).unwrap_or(i32::MAX)));
            let rows = (self.0..end).map(|n| vec![Value::Int4(n + 1)]).collect();
            self.0 = end;
            Ok(rows)
        }
    }

    #[test]
    fn rows_are_read_only_as_far_as_the_place_has_been() {
        let mut scroll =
            Scroll::new(Some(Box::new(Numbers(0, 1_000_000))), Vec::new(), &Arc::new(MemoryBudget::new(1 << 16)));
        assert_eq!(scroll.next(10).unwrap().len(), 10);
        assert_eq!(scroll.rows.len(), 10);
        // The memory of the query bounds what is kept.
        assert_eq!(scroll.read_all().unwrap_err().state, SqlState::OUT_OF_MEMORY);
    }
}
