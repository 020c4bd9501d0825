//! What one statement runs with, shared by all of its operators: what its expressions are evaluated with, and what its writes and its measures share.

pub use crate::catalog::CatalogView;
use crate::exec::claims::Claims;
use crate::exec::deferred::Deferred;
use crate::exec::parts::Parts;
use crate::explain::Meters;
pub use crate::memory::{MemoryBudget, MemoryPool};
pub use crate::sequence::Sequences;
pub use crate::statement::{ShownModes, Statement};
pub use crate::transaction::Deadline;
pub use crate::types::EvalSettings;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Whether hash joins hand their keys down to scans (decision 222). No answer depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeFilters {
    /// They do.
    #[default]
    On,
    /// For tests: they do not.
    Off,
    /// For tests, and wrong: left joins offer theirs to their left side, too, and a LIMIT passes them on.
    Unsound,
}

/// All that one statement runs with.
#[derive(Clone)]
pub struct StatementContext {
    /// What its expressions are evaluated with; its parts are read through the context (`context.txn`).
    pub statement: Statement,
    /// What the parts of the statement share, if it has several.
    pub parts: Option<Arc<Parts>>,
    /// Foreign keys that are checked before the commit.
    pub deferred: Arc<Deferred>,
    /// Unique keys that the transaction has inserted; `None`: nobody is waited for.
    pub claims: Option<Arc<Claims>>,
    /// Whether joins hand their keys down to scans.
    pub runtime_filters: RuntimeFilters,
    /// What its operators do is measured: EXPLAIN ANALYZE.
    pub meters: Option<Arc<Meters>>,
    /// How the client takes the columns of its rows, as Bind says it: none = all as text, one = for all, else one each (0 text, 1 binary).
    pub formats: Vec<i16>,
}

impl StatementContext {
    /// Whether the client takes a column of the rows as bytes.
    pub fn is_binary(&self, column: usize) -> bool {
        let format = if self.formats.len() == 1 { self.formats.first() } else { self.formats.get(column) };
        format.is_some_and(|format| *format == 1)
    }
}

impl Deref for StatementContext {
    type Target = Statement;
    #[inline]
    fn deref(&self) -> &Statement {
        &self.statement
    }
}

impl DerefMut for StatementContext {
    fn deref_mut(&mut self) -> &mut Statement {
        &mut self.statement
    }
}
