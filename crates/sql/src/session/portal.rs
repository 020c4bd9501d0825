//! Portals: statements bound to values, and how far each has run. Cursors are portals with a name that SQL knows.

use super::lifted::Literals;
use super::prepared::Prepared;
use super::scroll::Scroll;
use crate::context::MemoryBudget;
use crate::exec::sort::{Reserved, row_bytes};
use crate::output::Field;
use crate::plan::{Plan, RowSource};
use crate::sessions::OpenCursor;
use crate::syntax::command::Direction;
use crate::types::{Row, SqlType, Value, heap_bytes};
use crate::{SqlError, SqlState};
use clock::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// See the module.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) params: Vec<Value>,
    /// What the values were in the text of a statement that is run by its shape.
    pub(super) literals: Option<Box<Literals>>,
    /// DECLARE and EXPLAIN that were bound: what the parameters of the query inside were then, as which the values were read.
    pub(super) inside_types: Vec<SqlType>,
    pub(super) formats: Vec<i16>,
    /// The plan as bound, for its shape; `None` for a statement without one.
    pub(super) plan: Option<Arc<dyn Plan>>,
    /// The shape of a statement without a plan; `None` if it gives no rows.
    pub(super) fields: Option<Vec<Field>>,
    pub(super) state: PortalState,
    /// What it will read, where the client was told of it under the session's bound: a time, or (`None`) the present.
    pub(super) reads: Option<Option<Timestamp>>,
    /// DECLARE: FETCH knows it, and it is not run by itself.
    pub(super) cursor: bool,
    /// Savepoints of its transaction that it stands behind.
    pub(super) savepoints: usize,
    /// Where its rows may be read to.
    pub(super) direction: Direction,
    /// A cursor that is to read what there was at its DECLARE, and reads from the transaction yet.
    pub(super) live: bool,
    /// WITH HOLD
    pub(super) hold: bool,
    /// WITH HOLD, and its transaction has committed.
    pub(super) kept: bool,
    /// What it was declared by, and when (microseconds since 2000): what `pg_cursors` shows; `None` of what has no name.
    pub(super) declared: Option<(Arc<str>, i64)>,
}

/// How far a portal has run.
#[derive(Default)]
pub(super) enum PortalState {
    /// Not begun.
    #[default]
    Ready,
    /// Rows are being pulled; so many have left.
    Running(Box<dyn RowSource>, u64),
    /// Rows are all there.
    Buffered(Buffered),
    /// A cursor that goes both ways.
    Scroll(Box<Scroll>),
    /// At its end.
    Done,
}

/// Rows that are all there, and their memory.
pub(super) struct Buffered {
    rows: VecDeque<Row>,
    /// So many have left.
    pub(super) taken: u64,
    /// The tag at the end, if it is not `SELECT n`.
    pub(super) tag: Option<String>,
    /// All have left, and more was asked for: it stands behind the last one, which `taken` counts.
    ended: bool,
    reserved: Reserved,
}

impl Buffered {
    /// One that stands behind the last of so many rows.
    pub(super) fn ended(rows: u64) -> Self {
        let reserved = Reserved::new(&Arc::new(MemoryBudget::new(0)));
        Buffered { rows: VecDeque::new(), taken: rows + 1, tag: None, ended: true, reserved }
    }

    /// # Errors
    /// 53200 beyond the memory.
    pub(super) fn new(rows: Vec<Row>, tag: Option<String>, memory: &Arc<MemoryBudget>) -> Result<Self, SqlError> {
        let mut buffered =
            Buffered { rows: VecDeque::new(), taken: 0, tag, ended: false, reserved: Reserved::new(memory) };
        buffered.add(rows)?;
        Ok(buffered)
    }

    /// # Errors
    /// 53200 beyond the memory.
    pub(super) fn add(&mut self, rows: Vec<Row>) -> Result<(), SqlError> {
        self.reserved.take(rows.iter().map(|row| row_bytes(row)).sum())?;
        if self.rows.is_empty() {
            self.rows = rows.into();
        } else {
            self.rows.extend(rows);
        }
        Ok(())
    }

    /// Further rows, at most so many. Their memory goes back with the rest: they are on their way out.
    pub(super) fn next(&mut self, wanted: usize) -> Vec<Row> {
        let rows: Vec<Row> = self.rows.drain(..wanted.min(self.rows.len())).collect();
        self.taken += rows.len() as u64;
        rows
    }
}

impl PortalState {
    /// Whether it stands behind its last row.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self, PortalState::Buffered(Buffered { ended: true, .. }))
    }
    /// How many rows have left.
    pub(super) fn taken(&self) -> u64 {
        match self {
            PortalState::Running(_, taken) => *taken,
            PortalState::Buffered(buffered) => buffered.taken,
            PortalState::Ready | PortalState::Scroll(_) | PortalState::Done => 0,
        }
    }
}

impl Portal {
    /// One without values.
    pub(super) fn unbound(prepared: Arc<Prepared>) -> Portal {
        Portal {
            prepared,
            params: Vec::new(),
            literals: None,
            inside_types: Vec::new(),
            formats: Vec::new(),
            plan: None,
            fields: None,
            state: PortalState::Ready,
            reads: None,
            cursor: false,
            savepoints: 0,
            direction: Direction::Forward,
            live: false,
            hold: false,
            kept: false,
            declared: None,
        }
    }

    /// Whether its values are what a plan of the query inside takes.
    pub(super) fn fits_inside(&self, plan: &dyn Plan) -> bool {
        self.params.is_empty() || self.inside_types == plan.parameters()
    }
    /// Bytes of the values that it is bound to.
    fn bytes(&self) -> usize {
        self.params.iter().map(heap_bytes).sum()
    }

    /// The shape of its result; `None` if it gives no rows.
    pub(super) fn shape(&self) -> Option<&[Field]> {
        match &self.plan {
            Some(plan) => plan.shape(),
            None => self.fields.as_deref(),
        }
    }
    pub(super) fn fields(&self) -> &[Field] {
        self.shape().unwrap_or_default()
    }
}

/// All portals of a session.
#[derive(Default)]
pub(super) struct Portals {
    unnamed: Option<Portal>,
    named: HashMap<String, Portal>,
    held: usize,
    /// Of the named ones that are here.
    bytes: usize,
    /// Whether there may be others than when they were shown last.
    changed: bool,
}

impl Portals {
    /// None, where there may have been some.
    pub(super) fn none_left() -> Self {
        Portals { changed: true, ..Portals::default() }
    }
    pub(super) fn get(&self, name: &str) -> Option<&Portal> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) }
    }
    /// Takes a portal out, to run it; [`Portals::put_back`] follows.
    pub(super) fn take(&mut self, name: &str) -> Option<Portal> {
        if name.is_empty() {
            return self.unnamed.take();
        }
        let portal = self.named.remove(name)?;
        self.bytes = self.bytes.saturating_sub(portal.bytes());
        Some(portal)
    }
    pub(super) fn put_back(&mut self, name: &str, portal: Portal) {
        if name.is_empty() {
            self.unnamed = Some(portal);
        } else {
            self.bytes += portal.bytes();
            // It was away, and may have been missed.
            self.changed = true;
            self.named.insert(name.into(), portal);
        }
    }
    /// Adds one.
    pub(super) fn put(&mut self, name: &str, portal: Portal) -> Result<(), SqlError> {
        if name.is_empty() {
            self.unnamed = Some(portal);
            return Ok(());
        }
        if self.named.contains_key(name) {
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
        }
        if self.named.len() >= super::PORTALS_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("the session has {} open portals, which is the limit", super::PORTALS_MAX),
            )
            .hint("Close some, or end the transaction."));
        }
        if self.bytes.saturating_add(portal.bytes()) > super::PORTAL_BYTES_MAX {
            let message = format!(
                "the open portals of the session are bound to more than {} bytes of values, which is the limit",
                super::PORTAL_BYTES_MAX
            );
            let hint = "Close some, or end the transaction.";
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint(hint));
        }
        self.held += usize::from(portal.hold);
        self.bytes += portal.bytes();
        self.changed = true;
        self.named.insert(name.into(), portal);
        Ok(())
    }
    pub(super) fn close(&mut self, name: &str) -> bool {
        let portal = self.take(name);
        self.changed = true;
        self.held -= usize::from(portal.as_ref().is_some_and(|p| p.hold));
        portal.is_some()
    }
    pub(super) fn close_cursors(&mut self) {
        self.named.retain(|_, p| !p.cursor);
        self.held = 0;
        self.count();
    }
    /// A savepoint is released: what is behind it is not any more.
    pub(super) fn release(&mut self, index: usize) {
        self.named.values_mut().for_each(|p| p.savepoints = p.savepoints.min(index));
    }
    /// The transaction goes back to a savepoint: cursors declared behind it end.
    pub(super) fn roll_back(&mut self, index: usize) {
        self.named.retain(|_, p| !p.cursor || p.savepoints <= index);
        self.held = self.named.values().filter(|p| p.hold).count();
        self.count();
    }
    /// Those with names, for others to see, if they may have changed since this was asked.
    pub(super) fn to_show(&mut self) -> Option<Vec<OpenCursor>> {
        let shown = |(name, portal): (&String, &Portal)| {
            let (statement, began_us) = portal.declared.clone()?;
            let is_scrollable = portal.cursor && portal.direction != Direction::Forward;
            Some(OpenCursor { name: name.clone(), statement, is_holdable: portal.hold, is_scrollable, began_us })
        };
        std::mem::take(&mut self.changed).then(|| self.named.iter().filter_map(shown).collect())
    }
    fn count(&mut self) {
        self.changed = true;
        self.bytes = self.named.values().map(Portal::bytes).sum();
    }
    pub(super) fn has_held(&self) -> bool {
        self.held > 0
    }
    /// Whether any cursor reads from the transaction yet.
    pub(super) fn any_live(&self) -> bool {
        self.named.values().any(|p| p.live)
    }
    pub(super) fn live(&mut self) -> impl Iterator<Item = &mut Portal> {
        self.named.values_mut().filter(|p| p.live)
    }
    pub(super) fn held(&mut self) -> impl Iterator<Item = &mut Portal> {
        self.named.values_mut().filter(|p| p.hold)
    }
    /// A transaction in which nothing has run begins again: what was bound and not run runs in the new one. Whatever has rows of the old one ends with it.
    pub(super) fn begin_again(&mut self) {
        let waits = |p: &Portal| p.kept || (!p.cursor && matches!(p.state, PortalState::Ready));
        self.unnamed = self.unnamed.take().filter(waits);
        self.named.retain(|_, p| waits(p));
        self.held = self.named.values().filter(|p| p.hold).count();
        self.count();
    }
    /// A transaction ends: portals end with it, unless held over a commit.
    pub(super) fn end_transaction(&mut self, committed: bool) {
        self.unnamed = None;
        if self.named.is_empty() {
            return;
        }
        self.named.retain(|_, p| {
            let full = match &p.state {
                PortalState::Buffered(..) | PortalState::Done => true,
                PortalState::Scroll(scroll) => scroll.is_whole(),
                PortalState::Ready | PortalState::Running(..) => false,
            };
            p.kept |= p.hold && committed && full;
            p.savepoints = 0;
            p.kept
        });
        self.held = self.named.len();
        self.count();
    }
}

/// Values were read as what the parameters were by a catalog that is not the one to run by.
pub(super) fn bind_again() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cached plan must not change result type")
        .hint("Bind the statement again.")
}

/// 34000
pub(super) fn unknown_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"))
}
