//! EXPLAIN ANALYZE: what a node does is counted, and its time taken.

use super::super::explain::place;
use super::super::node::Node;
use super::runtime_filter::RuntimeFilter;
use super::{Prefix, Rows, Run, Source, started};
use crate::SqlError;
use crate::explain::{Done, Meters, Removed};
use crate::types::Row;
use std::sync::Arc;

struct Measured {
    source: Source,
    run: Arc<Run>,
    meters: Arc<Meters>,
    place: usize,
    done: Done,
    removed: Removed,
}

/// Starts a node, measured. Its rows come one by one: what looks at the rows of a table where they stand does not do so now.
pub(super) fn open(
    node: &Arc<Node>,
    prefix: &Prefix,
    run: &Arc<Run>,
    meters: &Arc<Meters>,
) -> Result<Source, SqlError> {
    let began_us = run.context.kv.now_us();
    let source = started(node, prefix, run)?;
    let us = run.context.kv.now_us() - began_us;
    let done = Done { loops: 1, rows: 0, first_us: us, us };
    Ok(Box::new(Measured {
        source,
        run: run.clone(),
        meters: meters.clone(),
        place: place(node),
        done,
        removed: Removed::default(),
    }))
}

impl Rows for Measured {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let began_us = self.run.context.kv.now_us();
        let found = self.source.next_counted(row, &mut self.removed)?;
        let us = self.run.context.kv.now_us() - began_us;
        self.done.us += us;
        if self.done.rows == 0 {
            self.done.first_us += us;
        }
        self.done.rows += u64::from(found);
        Ok(found)
    }

    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        self.source.restrict(filter)
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.meters.add(self.place, self.done);
        self.meters.removed(self.place, self.removed);
    }
}
