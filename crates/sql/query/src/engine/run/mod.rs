//! Running a plan: rows are pulled through a tree of sources, one at a time.
//!
//! What a source must hold (a sort's rows, a hash join's one side, groups) it takes from the statement's memory budget, and gives
//! back when it is dropped. What does not fit is written out by those that can: [`sort`], [`aggregate`] with [`groups`], [`sieve`], [`grace`].
//!
//! Every loop over rows, whichever operator it is in, calls [`Run::tick`] once a row; so a cancelled statement ends within
//! [`ROWS_PER_CHECK`] rows of all its loops together. Sorts end within a run of theirs (`exec::sort::in_order`).

mod aggregate;
mod divided;
mod grace;
mod grouped;
mod groups;
mod hashed;
mod join;
mod key_bits;
mod key_place;
mod leaf;
mod lookup;
mod measured;
mod memo;
mod merge;
mod recursive;
mod runtime_filter;
mod shape;
mod sieve;
mod sort;
mod window;

pub(super) use join::ROWS_PER_LOOKUP;
pub(super) use key_place::{integers, write_integers};
pub(super) use leaf::TableRows;

use super::explain::place;
use super::key_table::{KEY_BYTES, KeyTable, Seed};
use super::node::Node;
use super::probe::Progress;
use super::scalar::InSet;
use crate::SqlError;
use crate::context::StatementContext;
use crate::exec::sort::{Reserved, row_bytes};
use crate::exec::spill::Share;
use crate::exec::stretch::LastStretch;
use crate::explain::Removed;
use crate::types::{Row, Value};
use parking_lot::Mutex;
use runtime_filter::RuntimeFilter;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Rows, of all loops of a statement together, between two looks at whether it was cancelled or its time is over.
const ROWS_PER_CHECK: u32 = 256;

/// Rows that begin with the prefix.
pub(super) trait Rows: Send {
    /// Puts the next row in place of what `row` holds; `false` at the end (and ever after), when `row` may hold anything.
    ///
    /// A reader that looks at each row and goes on gives the same `row` again, so nothing is allocated; a reader that keeps rows
    /// takes them out of it.
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError>;

    /// As [`Rows::next`], looking at no more than `most` rows of what is read, from which those it looked at are taken: a filter may
    /// let few of them through.
    fn next_within(&mut self, row: &mut Row, most: &mut u64) -> Result<Step, SqlError> {
        *most = most.saturating_sub(1);
        Ok(if self.next(row)? { Step::Row } else { Step::End })
    }

    /// As [`Rows::next`], saying how many rows a condition left out: for EXPLAIN ANALYZE alone, so that nobody else counts them.
    fn next_counted(&mut self, row: &mut Row, removed: &mut Removed) -> Result<bool, SqlError> {
        let _ = removed;
        self.next(row)
    }

    /// Whether there is a row, for who does not look at it: that of a table is not made, a select list is not computed.
    fn any(&mut self) -> Result<bool, SqlError> {
        self.next(&mut Row::new())
    }

    /// Whether it can begin anew.
    fn reopens(&self) -> bool {
        false
    }

    /// Begins anew for another row around it, as if it were opened for that, if it [can](Rows::reopens): a source of one row or two costs more to make than
    /// to read.
    fn reopen(&mut self, prefix: &[Value]) {
        let _ = prefix;
    }

    /// Lets go of the rows that it has at hand: it is not read on before it is [begun anew](Rows::reopen).
    fn rest(&mut self) {}

    /// Rows that the filter does not let through may be left out from now on; whether some are. See [`runtime_filter`].
    fn restrict(&mut self, filter: &RuntimeFilter) -> bool {
        let _ = filter;
        false
    }

    /// The table whose rows they are, for who looks at each where it stands.
    fn table(&mut self) -> Option<&mut leaf::TableRows> {
        None
    }
}

/// What a step that looks at so many rows came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Row,
    End,
    /// So many were looked at, and none of them passed.
    Spent,
}

/// A source of rows.
pub(super) type Source = Box<dyn Rows>;

/// The row around a query.
pub(super) type Prefix = Arc<[Value]>;

/// Rows computed once for the whole statement, and the memory that they hold.
struct Kept {
    rows: Arc<Vec<Row>>,
    _reserved: Reservation,
}

/// One execution of a plan.
pub(super) struct Run {
    pub(super) context: Arc<StatementContext>,
    kept: Mutex<BTreeMap<usize, Kept>>,
    sets: Mutex<BTreeMap<usize, Arc<InSet>>>,
    /// For each shared subquery the last row around it, and its rows for that.
    shared: Mutex<BTreeMap<usize, (Row, Arc<Vec<Row>>)>>,
    working: Mutex<BTreeMap<usize, Arc<Vec<Row>>>>,
    /// Tables of correlated subqueries.
    pub(super) probes: Mutex<BTreeMap<usize, Progress>>,
    /// Answers of correlated subqueries, by the address of their plan.
    memos: Mutex<BTreeMap<usize, memo::Memo>>,
    /// Sources of correlated subqueries between two runs, by the address of their plan, which they hold.
    spares: Mutex<BTreeMap<usize, Source>>,
    /// What a correlated subquery read last.
    last_stretch: Arc<LastStretch>,
    /// Of every table of keys.
    pub(super) seed: Seed,
    /// Rows since the statement began, of all its loops. One thread runs them: a count may be lost, never a check for long.
    ticks: AtomicU32,
}

/// Memory taken from the statement's budget until dropped.
pub(super) struct Reservation(Reserved);

impl From<Share> for Reservation {
    fn from(share: Share) -> Reservation {
        Reservation(share.into_reserved())
    }
}

impl Reservation {
    /// Takes what a row needs.
    pub(super) fn row(&mut self, row: &[Value]) -> Result<(), SqlError> {
        self.0.take(row_bytes(row))
    }

    /// Takes what a row needs, if there is more than what cannot be written out may want.
    pub(super) fn spare_row(&mut self, row: &[Value]) -> bool {
        self.0.take_spare(row_bytes(row))
    }

    /// Gives bytes back, as far as it has them.
    pub(super) fn give(&mut self, bytes: usize) {
        self.0.keep(self.0.bytes().saturating_sub(bytes));
    }

    /// Takes bytes.
    pub(super) fn bytes(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.0.take(bytes)
    }
}

impl Run {
    pub(super) fn new(context: &Arc<StatementContext>) -> Arc<Run> {
        Arc::new(Run {
            context: context.clone(),
            seed: Seed::new(context.hash_seed),
            kept: Mutex::default(),
            sets: Mutex::default(),
            shared: Mutex::default(),
            working: Mutex::default(),
            probes: Mutex::default(),
            memos: Mutex::default(),
            spares: Mutex::default(),
            last_stretch: Arc::default(),
            ticks: AtomicU32::new(0),
        })
    }

    /// The source of a correlated subquery for a row around it.
    pub(super) fn correlated(self: &Arc<Run>, node: &Arc<Node>, around: &[Value]) -> Result<Source, SqlError> {
        let spare = self.spares.lock().remove(&Arc::as_ptr(node).addr());
        match spare {
            Some(mut source) => {
                source.reopen(around);
                Ok(source)
            }
            None => open(node, &Arc::from(around), self),
        }
    }

    /// Keeps it for the next row, if it can begin anew.
    pub(super) fn spare(&self, node: &Arc<Node>, mut source: Source) {
        if source.reopens() {
            source.rest();
            self.spares.lock().insert(Arc::as_ptr(node).addr(), source);
        }
    }

    /// Lets go of what it keeps for itself: sources know the run.
    pub(super) fn end(&self) {
        let spares = std::mem::take(&mut *self.spares.lock());
        drop(spares);
    }

    pub(super) fn reserve(&self) -> Reservation {
        Reservation(Reserved::new(&self.context.memory))
    }

    /// One row of a loop: fails, every [`ROWS_PER_CHECK`] rows, if the statement was cancelled or its time is over.
    #[inline]
    pub(super) fn tick(&self) -> Result<(), SqlError> {
        let ticks = self.ticks.load(Relaxed).wrapping_add(1);
        self.ticks.store(ticks, Relaxed);
        if ticks.is_multiple_of(ROWS_PER_CHECK) { self.context.check() } else { Ok(()) }
    }

    /// A join's condition was not true of two rows that its keys have brought together.
    #[inline]
    pub(super) fn unjoined(&self, node: &Node) {
        if let Some(meters) = &self.context.meters {
            meters.removed(place(node), Removed { join_filter: 1, ..Removed::default() });
        }
    }

    /// Fails if the statement was cancelled or its time is over.
    pub(super) fn check(&self) -> Result<(), SqlError> {
        self.context.check()
    }

    pub(super) fn cached_rows(&self, id: usize) -> Option<Arc<Vec<Row>>> {
        self.kept.lock().get(&id).map(|kept| kept.rows.clone())
    }

    pub(super) fn cache_rows(&self, id: usize, rows: Arc<Vec<Row>>, reserved: Reservation) {
        self.kept.lock().insert(id, Kept { rows, _reserved: reserved });
    }

    /// What a shared subquery gave last, if that was for this row.
    pub(super) fn shared_rows(&self, id: usize, around: &[Value]) -> Option<Arc<Vec<Row>>> {
        self.shared.lock().get(&id).filter(|(known, _)| known == around).map(|(_, rows)| rows.clone())
    }

    pub(super) fn share_rows(&self, id: usize, around: &[Value], rows: &Arc<Vec<Row>>) {
        self.shared.lock().insert(id, (around.to_vec(), rows.clone()));
    }

    pub(super) fn cached_set(&self, id: usize) -> Option<Arc<InSet>> {
        self.sets.lock().get(&id).cloned()
    }

    pub(super) fn cache_set(&self, id: usize, set: Arc<InSet>) {
        self.sets.lock().insert(id, set);
    }
}

/// Rows that are already there, and the memory that they hold.
struct Listed<I> {
    rows: I,
    _reserved: Option<Reservation>,
}

impl<I: Iterator<Item = Row> + Send> Rows for Listed<I> {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let next = self.rows.next();
        let found = next.is_some();
        *row = next.unwrap_or_default();
        Ok(found)
    }
}

/// A source of rows that are already there.
fn listed(rows: Vec<Row>) -> Source {
    Box::new(Listed { rows: rows.into_iter(), _reserved: None })
}

/// A source of rows that an operator holds.
fn held(rows: impl Iterator<Item = Row> + Send + 'static, reserved: Reservation) -> Source {
    Box::new(Listed { rows, _reserved: Some(reserved) })
}

/// Keys that were met before.
struct Seen(KeyTable);

impl Seen {
    fn new(seed: Seed) -> Seen {
        Seen(KeyTable::new(seed))
    }

    /// Whether a key is met for the first time.
    fn is_new(&mut self, key: &[u8], reserved: &mut Reservation) -> Result<bool, SqlError> {
        let (_, new) = self.0.number(key);
        if new {
            reserved.bytes(key.len() + KEY_BYTES)?;
        }
        Ok(new)
    }
}

/// All rows of a source, within the budget.
fn collect(mut source: Source, reserved: &mut Reservation, run: &Run) -> Result<Vec<Row>, SqlError> {
    let mut rows = Vec::new();
    let mut row = Row::new();
    while source.next(&mut row)? {
        run.tick()?;
        reserved.row(&row)?;
        rows.push(std::mem::take(&mut row));
    }
    Ok(rows)
}

/// Starts a node on a prefix.
pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    // A plan may be opened for ever without a row.
    run.tick()?;
    match &run.context.meters {
        None => started(node, prefix, run),
        Some(meters) => measured::open(node, prefix, run, meters),
    }
}

fn started(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    match node.as_ref() {
        Node::One | Node::Values { .. } | Node::Literals(_) | Node::Table(_) => leaf::open(node, prefix, run),
        Node::Virtual { .. } | Node::Internal { .. } => leaf::open(node, prefix, run),
        Node::Sequence { .. } | Node::Function { .. } => leaf::open(node, prefix, run),
        Node::Filter { .. }
        | Node::Project { .. }
        | Node::Cut { .. }
        | Node::ProjectSet { .. }
        | Node::Limit { .. } => shape::open(node, prefix, run),
        Node::Distinct { .. } | Node::Set { .. } => shape::open(node, prefix, run),
        Node::Join(_) => join::open(node, prefix, run),
        Node::Aggregate { .. } => aggregate::open(node, prefix, run),
        Node::Window { .. } => window::open(node, prefix, run),
        Node::Sort { .. } => sort::open(node, prefix, run),
        Node::Cte(_) | Node::Given { .. } | Node::Recursive { .. } | Node::Working { .. } => {
            recursive::open(node, prefix, run)
        }
    }
}
