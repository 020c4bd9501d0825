//! Errors that a user sees: message, SQLSTATE, detail, hint, position.

use crate::transaction::{KvError, RowWaiter};
use bytes::Bytes;
use std::fmt;

/// A five-character SQLSTATE.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState { $($(#[$doc])* pub const $name: SqlState = SqlState(*$code);)* }
    };
}
states! {
    /// successful_completion
    SUCCESS = b"00000";
    /// warning
    WARNING = b"01000";
    /// protocol_violation
    PROTOCOL_VIOLATION = b"08P01";
    /// feature_not_supported
    FEATURE_NOT_SUPPORTED = b"0A000";
    /// cardinality_violation
    CARDINALITY_VIOLATION = b"21000";
    /// string_data_right_truncation
    STRING_TOO_LONG = b"22001";
    /// numeric_value_out_of_range
    OUT_OF_RANGE = b"22003";
    /// invalid_datetime_format
    INVALID_DATETIME = b"22007";
    /// datetime_field_overflow
    DATETIME_OVERFLOW = b"22008";
    /// division_by_zero
    DIVISION_BY_ZERO = b"22012";
    /// invalid_parameter_value
    INVALID_PARAMETER = b"22023";
    /// invalid_text_representation
    INVALID_TEXT = b"22P02";
    /// invalid_binary_representation
    INVALID_BINARY = b"22P03";
    /// bad_copy_file_format
    BAD_COPY_FORMAT = b"22P04";
    /// restrict_violation
    RESTRICT_VIOLATION = b"23001";
    /// not_null_violation
    NOT_NULL_VIOLATION = b"23502";
    /// foreign_key_violation
    FOREIGN_KEY_VIOLATION = b"23503";
    /// unique_violation
    UNIQUE_VIOLATION = b"23505";
    /// check_violation
    CHECK_VIOLATION = b"23514";
    /// invalid_cursor_name's neighbour: invalid_transaction_state
    INVALID_TRANSACTION_STATE = b"25000";
    /// active_sql_transaction
    ACTIVE_TRANSACTION = b"25001";
    /// read_only_sql_transaction
    READ_ONLY_TRANSACTION = b"25006";
    /// no_active_sql_transaction
    NO_ACTIVE_TRANSACTION = b"25P01";
    /// snapshot_too_old
    SNAPSHOT_TOO_OLD = b"72000";
    /// in_failed_sql_transaction
    IN_FAILED_TRANSACTION = b"25P02";
    /// invalid_sql_statement_name
    INVALID_STATEMENT_NAME = b"26000";
    /// invalid_authorization_specification
    INVALID_AUTHORIZATION = b"28000";
    /// invalid_cursor_name
    INVALID_CURSOR_NAME = b"34000";
    /// invalid_cursor_definition
    INVALID_CURSOR_DEFINITION = b"42P11";
    /// invalid_catalog_name
    INVALID_CATALOG_NAME = b"3D000";
    /// invalid_schema_name
    INVALID_SCHEMA_NAME = b"3F000";
    /// invalid_savepoint_specification
    INVALID_SAVEPOINT = b"3B001";
    /// serialization_failure
    SERIALIZATION_FAILURE = b"40001";
    /// statement_completion_unknown
    STATEMENT_COMPLETION_UNKNOWN = b"40003";
    /// deadlock_detected
    DEADLOCK = b"40P01";
    /// insufficient_privilege
    INSUFFICIENT_PRIVILEGE = b"42501";
    /// syntax_error
    SYNTAX_ERROR = b"42601";
    /// invalid_column_reference
    INVALID_COLUMN_REFERENCE = b"42P10";
    /// undefined_column
    UNDEFINED_COLUMN = b"42703";
    /// undefined_function
    UNDEFINED_FUNCTION = b"42883";
    /// undefined_table
    UNDEFINED_TABLE = b"42P01";
    /// undefined_parameter
    UNDEFINED_PARAMETER = b"42P02";
    /// undefined_object
    UNDEFINED_OBJECT = b"42704";
    /// ambiguous_column
    AMBIGUOUS_COLUMN = b"42702";
    /// ambiguous_function
    AMBIGUOUS_FUNCTION = b"42725";
    /// duplicate_column
    DUPLICATE_COLUMN = b"42701";
    /// duplicate_database
    DUPLICATE_DATABASE = b"42P04";
    /// duplicate_prepared_statement
    DUPLICATE_PREPARED_STATEMENT = b"42P05";
    /// duplicate_schema
    DUPLICATE_SCHEMA = b"42P06";
    /// duplicate_table
    DUPLICATE_TABLE = b"42P07";
    /// duplicate_cursor
    DUPLICATE_CURSOR = b"42P03";
    /// duplicate_object
    DUPLICATE_OBJECT = b"42710";
    /// grouping_error
    GROUPING_ERROR = b"42803";
    /// datatype_mismatch
    DATATYPE_MISMATCH = b"42804";
    /// cannot_coerce
    CANNOT_COERCE = b"42846";
    /// indeterminate_datatype
    INDETERMINATE_DATATYPE = b"42P18";
    /// invalid_table_definition
    INVALID_TABLE_DEFINITION = b"42P16";
    /// invalid_foreign_key
    INVALID_FOREIGN_KEY = b"42830";
    /// invalid_object_definition
    INVALID_OBJECT_DEFINITION = b"42P17";
    /// wrong_object_type
    WRONG_OBJECT_TYPE = b"42809";
    /// dependent_objects_still_exist
    DEPENDENT_OBJECTS = b"2BP01";
    /// object_not_in_prerequisite_state
    NOT_IN_PREREQUISITE_STATE = b"55000";
    /// object_in_use
    OBJECT_IN_USE = b"55006";
    /// lock_not_available
    LOCK_NOT_AVAILABLE = b"55P03";
    /// disk_full
    DISK_FULL = b"53100";
    /// out_of_memory
    OUT_OF_MEMORY = b"53200";
    /// configuration_limit_exceeded
    LIMIT_EXCEEDED = b"53400";
    /// too_many_connections
    TOO_MANY_CONNECTIONS = b"53300";
    /// program_limit_exceeded
    PROGRAM_LIMIT_EXCEEDED = b"54000";
    /// too_many_columns
    TOO_MANY_COLUMNS = b"54011";
    /// statement_too_complex
    TOO_COMPLEX = b"54001";
    /// query_canceled
    QUERY_CANCELED = b"57014";
    /// admin_shutdown
    ADMIN_SHUTDOWN = b"57P01";
    /// cannot_connect_now
    CANNOT_CONNECT_NOW = b"57P03";
    /// io_error
    IO_ERROR = b"58030";
    /// internal_error
    INTERNAL_ERROR = b"XX000";
    /// sequence_generator_limit_exceeded
    SEQUENCE_LIMIT = b"2200H";
}

impl SqlState {
    /// Its five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}
impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a user is told. The message names the statement's object and the value; the hint names the remedy.
///
/// One word wide, so that a result which is almost always `Ok` stays small; the parts are read through it (`error.state`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError(Box<Report>);

/// What was tried, and may not be possible.
pub trait Attempt<T> {
    /// What came of it; `None` where it fails for what it is.
    ///
    /// # Errors
    /// Those that are [of the moment](SqlError::is_of_the_moment).
    fn attempted(self) -> Result<Option<T>, SqlError>;
}

impl<T> Attempt<T> for Result<T, SqlError> {
    fn attempted(self) -> Result<Option<T>, SqlError> {
        match self {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_of_the_moment() => Err(error),
            Err(_) => Ok(None),
        }
    }
}

/// What did not fit, and what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// What the transaction would hold to be written, or its statement to write it, bytes: not what it holds besides (hashes, sorts).
    pub bytes: usize,
    /// What there is for all sessions together where nothing else needs it, or for one transaction, bytes: a constant, whatever is left of it now.
    pub share: usize,
    /// What others hold of that now, bytes.
    pub others: usize,
    /// Where that refused it: what the statement itself may hold, bytes.
    pub own_limit: Option<usize>,
}

/// Of what there is for all, who is alone gets three quarters; of these, rows that its statement has found may be two, and do not count here.
const MOST_PART: usize = 4;
/// Where the node itself holds so much that little is left for statements, who is alone gets about a seventh of that.
const LEAST_PART: usize = 8;

impl Exceeded {
    /// Whether it is for the transaction itself, which held about what one may hold, or what little the node has left for statements: not for others, who hold the rest.
    pub fn by_itself(self) -> bool {
        // A statement has half of what there is for all, or less where there is much.
        let share = self.own_limit.map_or(self.share, |limit| self.share.min(limit.saturating_mul(2)));
        let is_alone = self.own_limit.is_none() && self.others < self.bytes;
        self.bytes >= share / if is_alone { LEAST_PART } else { MOST_PART }
    }

    /// Whether it held three quarters of what one may hold who is alone: what has come so far would hardly have fitted.
    pub fn nearly_all(self) -> bool {
        let of_one = self.share - self.share / MOST_PART;
        self.bytes >= of_one - of_one / MOST_PART
    }
}

/// The parts of a [`SqlError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its class, for programs.
    pub state: SqlState,
    /// One line, in PostgreSQL's words where it has them.
    pub message: String,
    /// More on this case.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// 1-based character of the statement text.
    pub position: Option<u32>,
    /// The table, column and constraint concerned: drivers read them.
    pub table: Option<String>,
    /// See `table`.
    pub column: Option<String>,
    /// See `table`.
    pub constraint: Option<String>,
    /// PostgreSQL's routine that reports it, where a driver asks for it.
    pub routine: Option<&'static str>,
    /// The key in the store that it is about: the session says which row that is.
    pub key: Option<Bytes>,
    /// The sessions that wait for each other, in a deadlock, and for what: the session tells them by their processes.
    pub circle: Vec<RowWaiter>,
    /// What a statement writes, or keeps to write it, does not fit what its transaction may hold: the states of that (53200, 54000) have other reasons, too.
    pub exceeds_writes: Option<Exceeded>,
}

impl SqlError {
    /// Whether it says nothing of what was asked, only that the statement was ended, or could not go on as things are: cancelled, out of memory,
    /// not reached, to be run again, damaged (classes 57, 53, 40, 08, 55 and 58, XX001 and XX002). Whoever tries things must not take it for an
    /// answer. XX000 is one: so is told what a descriptor says that cannot be read, and that is so at every moment.
    pub fn is_of_the_moment(&self) -> bool {
        matches!(&self.state.0[..2], b"57" | b"53" | b"40" | b"08" | b"55" | b"58")
            || matches!(&self.state.0, b"XX001" | b"XX002")
    }
    /// An error with a state and a message.
    pub fn new(state: SqlState, message: impl Into<String>) -> Self {
        SqlError(Box::new(Report {
            state,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            table: None,
            column: None,
            constraint: None,
            routine: None,
            key: None,
            circle: Vec::new(),
            exceeds_writes: None,
        }))
    }
    /// 0A000 with a remedy.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }
    /// The same error with other parts.
    pub fn with(mut self, change: impl FnOnce(&mut Report)) -> Self {
        change(&mut self.0);
        self
    }
    /// Adds a detail.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
    /// Adds a remedy.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Names the constraint and its table.
    pub fn constraint(mut self, table: impl Into<String>, constraint: impl Into<String>) -> Self {
        self.table = Some(table.into());
        self.constraint = Some(constraint.into());
        self
    }
    /// 55P03, after a wait.
    pub(crate) fn lock_timed_out() -> Self {
        Self::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
    }
    /// Whether the server may run the transaction again by itself.
    pub fn retry(&self) -> bool {
        self.state == SqlState::SERIALIZATION_FAILURE
    }
}

impl std::ops::Deref for SqlError {
    type Target = Report;
    fn deref(&self) -> &Report {
        &self.0
    }
}
impl std::ops::DerefMut for SqlError {
    fn deref_mut(&mut self) -> &mut Report {
        &mut self.0
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.state.as_str())
    }
}
impl std::error::Error for SqlError {}

impl From<KvError> for SqlError {
    fn from(e: KvError) -> Self {
        let state = match &e {
            KvError::Restart { .. } => SqlState::SERIALIZATION_FAILURE,
            KvError::Deadlock { .. } => SqlState::DEADLOCK,
            KvError::LockNotAvailable { .. } => SqlState::LOCK_NOT_AVAILABLE,
            KvError::Interrupted | KvError::TimedOut => SqlState::QUERY_CANCELED,
            KvError::Unacknowledged(_) | KvError::CommitUnknown => SqlState::STATEMENT_COMPLETION_UNKNOWN,
            KvError::DiskFull => SqlState::DISK_FULL,
            KvError::OutOfMemory { .. } | KvError::Crowded(_) => SqlState::OUT_OF_MEMORY,
            KvError::NeedsVersion(_) => SqlState::FEATURE_NOT_SUPPORTED,
            KvError::TooLarge { .. } => SqlState::PROGRAM_LIMIT_EXCEEDED,
            KvError::ReadOnly => SqlState::READ_ONLY_TRANSACTION,
            KvError::SnapshotUnavailable { .. } => SqlState::INVALID_PARAMETER,
            KvError::ClockUnavailable(_) | KvError::Unavailable { .. } | KvError::Removed(_) => {
                SqlState::CANNOT_CONNECT_NOW
            }
            KvError::Storage(_) => SqlState::IO_ERROR,
            KvError::ShuttingDown => SqlState::ADMIN_SHUTDOWN,
        };
        let err = SqlError::new(state, e.to_string());
        match e {
            KvError::Restart { key, .. } => err.hint("Run the transaction again from its start.").with(|e| e.key = key),
            KvError::SnapshotUnavailable { key, .. } => err.with(|e| e.key = key),
            KvError::Deadlock { circle } => err
                .hint("Run the transaction again; take locks in one order everywhere.")
                .with(|e| e.circle = circle),
            KvError::LockNotAvailable { key, waited } => {
                let error = if waited { SqlError::lock_timed_out() } else { err };
                error.with(|e| e.key = key)
            }
            KvError::Unacknowledged(_) => err.hint("Do not run the transaction again: it has committed."),
            KvError::CommitUnknown => err.hint("Look for what the transaction wrote before you run it again."),
            KvError::Unavailable { key, .. } => err
                .hint("Statements that do not need this range go on. Bring back the nodes that cannot be heard (`timeball node status --host`, at any node's --peer-addr, shows them), and try again.")
                .with(|e| e.key = key),
            KvError::DiskFull => err.hint(
                "Delete rows, some thousands at a time, drop or truncate tables (that is taken meanwhile), or free space on the store's disk; the node notices by itself.",
            ),
            KvError::TooLarge { what: "the transaction", bytes, limit } => err
                .hint("Write fewer rows in one transaction.")
                .with(|e| e.exceeds_writes = Some(Exceeded { bytes, share: limit, others: 0, own_limit: None })),
            KvError::Crowded(_) => err.hint(
                "Write fewer rows in one transaction, run it again once other large ones have committed, or start all nodes with more --memory.",
            ),
            KvError::OutOfMemory { bytes, share, others, .. } => {
                let hint = "Write fewer rows in one transaction, or start the node with more --memory.";
                err.hint(hint).with(|e| e.exceeds_writes = Some(Exceeded { bytes, share, others, own_limit: None }))
            }
            _ => err,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quarter of what there is for all, an eighth where others hold less; of what one statement may hold half, where that is less.
    #[test]
    fn who_held_about_what_one_may_is_too_large_by_itself() {
        for (bytes, others, own_limit, by_itself) in [
            (249, 249, None, false),
            (250, 750, None, true),
            (249, 248, None, true),
            (125, 0, None, true),
            (124, 0, None, false),
            (249, 0, Some(500), false),
            (250, 0, Some(500), true),
            (100, 0, Some(200), true),
            (99, 0, Some(200), false),
        ] {
            let exceeded = Exceeded { bytes, share: 1000, others, own_limit };
            assert_eq!(exceeded.by_itself(), by_itself, "{exceeded:?}");
        }
    }

    #[test]
    fn only_damage_is_of_the_moment_among_internal_errors() {
        let error = |state: &[u8; 5]| SqlError::new(SqlState(*state), "");
        for state in [b"57014", b"53200", b"40001", b"08006", b"55P03", b"58030", b"XX001", b"XX002"] {
            assert!(error(state).is_of_the_moment() && Err::<(), _>(error(state)).attempted().is_err());
        }
        for state in [b"XX000", b"42601", b"54001", b"22012"] {
            assert!(!error(state).is_of_the_moment() && Err::<(), _>(error(state)).attempted() == Ok(None));
        }
    }
}
