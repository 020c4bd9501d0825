//! What evaluation runs in: the transaction, the catalog in it, parameters, settings, limits, the session and by it all others.

use crate::catalog::CatalogView;
use crate::lists::Lists;
use crate::memory::MemoryBudget;
use crate::sequence::Sequences;
use crate::sessions::Backend;
use crate::transaction::{Consistency, Deadline, Interrupt, Kv, KvError, Patience, TxnRef};
use crate::types::{EvalSettings, ObjectNames, Oid, RegKind, SettingAbout, Value};
use crate::{SqlError, SqlState, work};
use clock::Timestamp;
use std::sync::Arc;

/// What functions and casts ask of what stands above them: the catalogs of the system, and the table of settings.
pub trait System: Send + Sync {
    /// The OID of an object by its name: see [`ObjectNames::resolve`].
    ///
    /// # Errors
    /// 42P01 and the like if there is no such object; 42602 if the text is no name.
    fn resolve(&self, kind: RegKind, name: &str, statement: &Statement) -> Result<Oid, SqlError>;
    /// What an OID prints as: see [`ObjectNames::print`].
    ///
    /// # Errors
    /// Those of reading the catalog.
    fn print(&self, kind: RegKind, oid: Oid, statement: &Statement) -> Result<String, SqlError>;
    /// Calls a function that reads the catalogs.
    ///
    /// # Errors
    /// Those of reading the catalog.
    fn call(&self, function: &str, values: &[Value], statement: &Statement) -> Result<Value, SqlError>;
    /// A setting as SHOW shows it; `None` if there is none of that name.
    fn setting(&self, settings: &EvalSettings, name: &str) -> Option<String>;
    /// As [`System::setting`], as a table lists it: times without their unit, in milliseconds.
    fn setting_listed(&self, settings: &EvalSettings, name: &str) -> Option<String>;
    /// What is to be known of a setting beside that, listed likewise; `None` if there is none of that name.
    fn setting_about(&self, settings: &EvalSettings, name: &str) -> Option<SettingAbout>;
    /// Names and descriptions of all settings, in order.
    fn settings(&self, settings: &EvalSettings) -> Vec<(String, &'static str)>;
    /// What SHOW would show if a setting was given a value (`None`: its default).
    ///
    /// # Errors
    /// Those of SET.
    fn setting_trial(&self, settings: &Arc<EvalSettings>, name: &str, value: Option<&str>) -> Result<String, SqlError>;
}

impl ObjectNames for Statement {
    fn resolve(&self, kind: RegKind, name: &str) -> Result<Oid, SqlError> {
        self.system.resolve(kind, name, self)
    }
    fn print(&self, kind: RegKind, oid: Oid) -> Result<String, SqlError> {
        self.system.print(kind, oid, self)
    }
}

/// What expressions of one statement are evaluated with.
#[derive(Clone)]
pub struct Statement {
    /// The transaction.
    pub txn: TxnRef,
    /// The catalog in it.
    pub catalog: Arc<dyn CatalogView>,
    /// What its functions ask of what stands above them.
    pub system: &'static dyn System,
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
    /// Of hash tables: see `DatabaseOptions`.
    pub hash_seed: u64,
    /// The session, and by it all others.
    pub backend: Arc<Backend>,
    /// What settings of the transaction show.
    pub modes: ShownModes,
    /// Long arrays that it looks into.
    pub lists: Lists,
}

/// Settings that belong to the transaction, as SHOW, `current_setting` and `pg_settings` show them.
#[derive(Clone, Copy, Debug)]
pub struct ShownModes {
    /// `transaction_isolation`
    pub isolation: &'static str,
    /// `transaction_read_only`
    pub read_only: bool,
    /// `transaction_deferrable`
    pub deferrable: bool,
    /// `timeball.consistency`
    pub consistency: Consistency,
    /// Whether it reads the past.
    pub as_of: bool,
    /// `timeball.token`
    pub token: Timestamp,
}

impl Default for ShownModes {
    fn default() -> Self {
        ShownModes {
            isolation: "serializable",
            read_only: false,
            deferrable: false,
            consistency: Consistency::Auto,
            as_of: false,
            token: Timestamp::MIN,
        }
    }
}

impl ShownModes {
    /// A setting by name, if the transaction says what it is.
    pub fn shown(&self, name: &str) -> Option<&'static str> {
        let flag = |on| if on { "on" } else { "off" };
        match name {
            "transaction_isolation" => Some(self.isolation),
            "transaction_read_only" => Some(flag(self.read_only)),
            "transaction_deferrable" => Some(flag(self.deferrable)),
            "timeball.consistency" => Some(self.consistency.name()),
            _ => None,
        }
    }

    /// Refuses what may write where nothing may; `what` is its name.
    ///
    /// # Errors
    /// 25006, with the way out where PostgreSQL has no such transactions.
    pub fn let_write(&self, what: &str) -> Result<(), SqlError> {
        if !self.read_only {
            return Ok(());
        }
        let message = format!("cannot execute {what} in a read-only transaction");
        let refused = SqlError::new(SqlState::READ_ONLY_TRANSACTION, message);
        Err(match (self.consistency, self.as_of) {
            (Consistency::Stale, _) => {
                refused.hint("timeball.consistency is stale, which reads the past: BEGIN CONSISTENCY auto to write.")
            }
            (_, true) => refused.hint(
                "It reads the past (AS OF SYSTEM TIME, timeball.max_staleness): write in a transaction of the present.",
            ),
            _ => refused,
        })
    }
}

impl Statement {
    /// Rows of a table were written: see [`crate::statistics`].
    pub fn wrote(&self, table: u32, rows: u64) {
        self.backend.sessions.statistics.written(table, rows);
        if rows > 0 {
            self.backend.filled.wrote(table);
        }
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
