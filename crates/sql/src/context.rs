//! What one statement runs with: its transaction, catalog, parameters, settings, limits. Shared by every operator of the statement.

pub use crate::catalog::CatalogView;
use crate::exec::claims::Claims;
use crate::exec::deferred::Deferred;
use crate::exec::parts::Parts;
use crate::explain::Meters;
use crate::lists::Lists;
pub use crate::memory::{MemoryBudget, MemoryPool};
pub use crate::transaction::Deadline;
use crate::transaction::{Interrupt, Kv, Patience, TxnRef};
pub use crate::types::EvalSettings;
use crate::types::Value;
use crate::{Backend, KvError, SqlError, work};
use clock::Timestamp;
use std::sync::Arc;

/// Sequences; numbers drawn are not given back when the transaction rolls back.
pub trait Sequences: Send + Sync {
    /// `nextval`
    fn next(&self, sequence: u32) -> Result<i64, SqlError>;
    /// `currval`: 55000 before the session's first `nextval`.
    fn current(&self, sequence: u32) -> Result<i64, SqlError>;
    /// `lastval`
    fn last(&self) -> Result<i64, SqlError>;
    /// `setval`
    fn set(&self, sequence: u32, value: i64, is_called: bool) -> Result<i64, SqlError>;
    /// Where it stands, whoever drew from it last: its number, and whether that was handed out.
    fn position(&self, sequence: u32) -> Result<(i64, bool), SqlError> {
        self.current(sequence).map(|value| (value, true))
    }
}

/// All that one statement runs with.
#[derive(Clone)]
pub struct StatementContext {
    /// The transaction.
    pub txn: TxnRef,
    /// What the parts of the statement share, if it has several.
    pub parts: Option<Arc<Parts>>,
    /// The catalog in it.
    pub catalog: Arc<dyn CatalogView>,
    /// The database below: row ids, the clock.
    pub kv: Arc<dyn Kv>,
    /// Sequences of the session.
    pub sequences: Arc<dyn Sequences>,
    /// Values of `$1`...
    pub params: Vec<Value>,
    /// Settings.
    pub settings: Arc<EvalSettings>,
    /// `now()`: when the transaction began, microseconds since 2000-01-01 UTC.
    pub transaction_us: i64,
    /// `statement_timestamp()`, microseconds since 2000-01-01 UTC.
    pub statement_us: i64,
    /// Raised to end the statement.
    pub interrupt: Interrupt,
    /// When `statement_timeout` ends the statement.
    pub deadline: Deadline,
    /// Memory of this statement.
    pub memory: Arc<MemoryBudget>,
    /// Foreign keys that are checked before the commit.
    pub deferred: Arc<Deferred>,
    /// Unique keys that the open block has inserted; `None` outside of one.
    pub claims: Option<Arc<Claims>>,
    /// Of hash tables: see [`crate::DatabaseOptions`].
    pub hash_seed: u64,
    /// The session, and by it all others.
    pub backend: Arc<Backend>,
    /// What settings of the transaction show.
    pub modes: ShownModes,
    /// Long arrays that it looks into.
    pub lists: Lists,
    /// What its operators do is measured: EXPLAIN ANALYZE.
    pub meters: Option<Arc<Meters>>,
}

/// Settings that belong to the transaction, as `current_setting` shows them.
#[derive(Clone, Copy, Debug)]
pub struct ShownModes {
    /// `transaction_isolation`
    pub isolation: &'static str,
    /// `transaction_read_only`
    pub read_only: bool,
    /// `timeball.token`
    pub token: Timestamp,
}

impl Default for ShownModes {
    fn default() -> Self {
        ShownModes { isolation: "serializable", read_only: false, token: Timestamp::MIN }
    }
}

impl StatementContext {
    /// Rows of a table were written: see [`crate::statistics`].
    pub(crate) fn wrote(&self, table: u32, rows: u64) {
        self.backend.sessions.statistics.written(table, rows);
    }

    /// What the transactions that the statement runs beside its own wait with.
    pub fn patience(&self) -> Patience {
        Patience { interrupt: self.interrupt.clone(), deadline: self.deadline.clone() }
    }
    /// Ends the statement if it was cancelled, or if its time is over. Every loop over rows asks, the longer ones every few hundred rows.
    ///
    /// # Errors
    /// 57014.
    pub fn check(&self) -> Result<(), SqlError> {
        if self.interrupt.is_raised() {
            return Err(KvError::Interrupted.into());
        }
        if self.deadline.has_passed(self.kv.as_ref()) {
            return Err(work::timed_out());
        }
        // The client that has gone is seen there.
        work::step(work::UNITS_PER_CHECK)
    }
}
