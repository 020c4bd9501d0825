//! What one statement runs with: its transaction, catalog, parameters, settings, limits. Shared by every operator of the statement.

use crate::catalog::{Database, Relation, Schema, Seal};
use crate::exec::claims::Claims;
use crate::exec::deferred::Deferred;
use crate::exec::parts::Parts;
use crate::explain::Meters;
use crate::lists::Lists;
pub use crate::memory::{MemoryBudget, MemoryPool};
pub use crate::transaction::Deadline;
use crate::transaction::{Interrupt, Kv, Patience, TxnRef};
use crate::types::Value;
use crate::types::calendar::TimeZone;
use crate::types::style::Styles;
use crate::{Backend, KvError, SqlError, work};
use clock::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The catalog as the statement's transaction sees it. What is looked up by name or OID is relied upon: see [`crate::catalog::reliance`].
pub trait CatalogView: Send + Sync {
    /// Looks a table, view or sequence up; without a schema, along the search path (`pg_catalog` first). `None` if there is none.
    /// Virtual tables (`pg_catalog`, `information_schema`) are not here: see `pg_catalog::lookup`.
    fn relation(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Relation>>, SqlError>;
    /// By OID.
    fn relation_by_id(&self, id: u32) -> Result<Option<Arc<Relation>>, SqlError>;
    /// Every relation of the current database.
    fn relations(&self) -> Result<Vec<Arc<Relation>>, SqlError>;
    /// Every relation of all databases as it was last known: nobody is asked, and nothing is relied upon. For what is shown where nothing may be served.
    fn known_relations(&self) -> Vec<Arc<Relation>> {
        self.relations().unwrap_or_default()
    }
    /// As [`CatalogView::databases`], and as [`CatalogView::known_relations`].
    fn known_databases(&self) -> Vec<Database> {
        self.databases().unwrap_or_default()
    }
    /// Schemas of the current database, `pg_catalog` and `information_schema` included.
    fn schemas(&self) -> Result<Vec<Schema>, SqlError>;
    /// Every database.
    fn databases(&self) -> Result<Vec<Database>, SqlError>;
    /// The database that the session is connected to.
    fn current_database(&self) -> Database;
    /// What signs tokens.
    fn seal(&self) -> Option<Arc<Seal>> {
        None
    }
}

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

/// The settings that evaluation and output depend on.
#[derive(Clone, Debug)]
pub struct EvalSettings {
    /// `TimeZone`
    pub time_zone: TimeZone,
    /// `search_path`, without the implicit `pg_catalog`.
    pub search_path: Vec<String>,
    /// `current_user`
    pub user: String,
    /// `current_database()`
    pub database: String,
    /// `application_name`
    pub application_name: String,
    /// Backend process id shown to the client.
    pub backend_pid: i32,
    /// `extra_float_digits`
    pub extra_float_digits: i32,
    /// `bytea_output = escape`
    pub bytea_escape: bool,
    /// `DateStyle` and `IntervalStyle`
    pub styles: Styles,
    /// Every setting that was set, as shown, by name; what is absent shows its default.
    pub values: Arc<BTreeMap<String, String>>,
    /// What RESET goes back to: start-up parameters.
    pub initial: Arc<BTreeMap<String, String>>,
}

impl Default for EvalSettings {
    fn default() -> Self {
        EvalSettings {
            time_zone: chrono_tz::UTC.into(),
            search_path: vec!["public".into()],
            user: "root".into(),
            database: "postgres".into(),
            application_name: String::new(),
            backend_pid: 0,
            extra_float_digits: 1,
            bytea_escape: false,
            styles: Styles::default(),
            values: Arc::default(),
            initial: Arc::default(),
        }
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
