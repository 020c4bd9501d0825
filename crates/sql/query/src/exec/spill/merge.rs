//! Sorted runs as one: of equal rows those of the earlier run come first.

use super::Share;
use super::run::{Run, RunReader};
use super::{READ_PART, Spool};
use crate::SqlError;
use crate::context::StatementContext;
use crate::exec::sort::{Keyed, Order};
use crate::types::Row;
use std::cmp::Ordering;
use std::sync::Arc;

/// A run being read, and its present row.
struct Input {
    rows: Rows,
    current: Keyed,
}

enum Rows {
    File(RunReader),
    Memory(std::vec::IntoIter<Keyed>),
}

/// See the module.
pub(crate) struct Merge {
    /// In the order of the runs.
    inputs: Vec<Input>,
    /// Those that are not at their end: a heap, the one with the least row first.
    heap: Vec<usize>,
    order: Arc<Order>,
    /// Of the buffers, and of what is in memory.
    _share: Share,
}

impl Merge {
    /// Runs of files, and behind them rows in memory, whose bytes `share` has.
    ///
    /// # Errors
    /// Those of the files.
    pub fn new(
        runs: Vec<(Arc<Spool>, Run)>,
        memory: Vec<Keyed>,
        order: &Arc<Order>,
        mut share: Share,
        context: &StatementContext,
    ) -> Result<Merge, SqlError> {
        let read_bytes = Share::spilled_bytes_max(context) / READ_PART / runs.len().max(1);
        let mut inputs = Vec::with_capacity(runs.len() + 1);
        let mut begin = |mut rows: Rows, order: &Order| -> Result<(), SqlError> {
            if let Some(current) = rows.next(order, Row::new())? {
                inputs.push(Input { rows, current });
            }
            Ok(())
        };
        for (spool, run) in runs {
            let reader = RunReader::new(&spool, run, read_bytes);
            share.take_anyway(reader.buffer_bytes());
            begin(Rows::File(reader), order)?;
        }
        begin(Rows::Memory(memory.into_iter()), order)?;
        let heap = (0..inputs.len()).collect::<Vec<_>>();
        let mut merge = Merge { inputs, heap, order: order.clone(), _share: share };
        for top in (0..merge.heap.len() / 2).rev() {
            merge.sink(top);
        }
        Ok(merge)
    }

    /// Puts the next row in place of what `row` holds; `false` at the end.
    ///
    /// # Errors
    /// Those of the files.
    pub fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let Some(first) = self.heap.first().copied() else { return Ok(false) };
        let input = &mut self.inputs[first];
        // What was in `row` is room for the next one.
        std::mem::swap(row, &mut input.current.row);
        match input.rows.next(&self.order, std::mem::take(&mut input.current.row)) {
            Ok(Some(next)) => input.current = next,
            Ok(None) => drop(self.heap.swap_remove(0)),
            Err(error) => {
                // Its row is gone: nothing can be compared with it any more.
                self.heap.clear();
                return Err(error);
            }
        }
        self.sink(0);
        Ok(true)
    }

    fn before(&self, a: usize, b: usize) -> bool {
        let (first, second) = (&self.inputs[a].current, &self.inputs[b].current);
        self.order.compare(first, second).then_with(|| a.cmp(&b)) == Ordering::Less
    }

    /// Moves what stands at a place of the heap down to where it belongs.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.before(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

impl Rows {
    fn next(&mut self, order: &Order, mut room: Row) -> Result<Option<Keyed>, SqlError> {
        match self {
            Rows::Memory(rows) => Ok(rows.next()),
            Rows::File(reader) => {
                let found = reader.next(&mut room)?;
                Ok(found.then(|| order.keyed(room)))
            }
        }
    }
}
