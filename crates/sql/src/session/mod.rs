//! A client's session: messages of the PostgreSQL protocol in, answers to an [`Output`].

mod startup;
pub use startup::{Executed, Startup, TransactionStatus};

use crate::database::Database;
use crate::output::{Field, Output};
use crate::transaction::Interrupt;
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// One client's session. All calls come from one thread; another may raise the interrupt.
pub struct Session {
    db: Arc<Database>,
    startup: Startup,
    interrupt: Interrupt,
}

impl Session {
    /// Opens a session.
    ///
    /// # Errors
    /// 3D000 if the database does not exist, 28000 for an unknown user, 22023 for a bad start-up parameter.
    pub fn new(db: Arc<Database>, startup: Startup, interrupt: Interrupt) -> Result<Session, SqlError> {
        Ok(Session { db, startup, interrupt })
    }

    /// ParameterStatus messages that follow a successful start, in order.
    pub fn initial_parameters(&self) -> Vec<(String, String)> {
        let _ = (&self.db.kv, &self.db.options, &self.startup, &self.interrupt);
        Vec::new()
    }

    /// For ReadyForQuery.
    pub fn transaction_status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// A Query message. On error the rest of the text is skipped; the caller sends the error, then ReadyForQuery. When
    /// [`Session::in_copy`] holds afterwards, the caller feeds `copy_data` and sends ReadyForQuery only after `copy_done` or
    /// `copy_fail` has returned with `in_copy` false.
    ///
    /// # Errors
    /// The statement's.
    pub fn simple_query(&mut self, sql: &str, out: &mut dyn Output) -> Result<(), SqlError> {
        let _ = (sql, out);
        Err(unfinished())
    }

    /// A Parse message; type 0 leaves a parameter to be inferred.
    ///
    /// # Errors
    /// Syntax and binding errors; 42P05 if the name is taken.
    pub fn parse(&mut self, name: &str, sql: &str, param_oids: &[u32]) -> Result<(), SqlError> {
        let _ = (name, sql, param_oids);
        Err(unfinished())
    }

    /// A Bind message: none = all text, one format = for all, else one each (0 text, 1 binary).
    ///
    /// # Errors
    /// 26000 for an unknown statement, 08P01 for a wrong number of values, 22P02/22P03 for malformed ones.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        params: &[Option<&[u8]>],
        param_formats: &[i16],
        result_formats: &[i16],
    ) -> Result<(), SqlError> {
        let _ = (portal, statement, params, param_formats, result_formats);
        Err(unfinished())
    }

    /// Parameter type OIDs and the result's shape (empty: NoData).
    ///
    /// # Errors
    /// 26000 for an unknown statement.
    pub fn describe_statement(&mut self, name: &str) -> Result<(Vec<u32>, Vec<Field>), SqlError> {
        let _ = name;
        Err(unfinished())
    }

    /// The result's shape (empty: NoData) and its formats as given at bind. Borrowed: libpq asks for it at every execution.
    ///
    /// # Errors
    /// 34000 for an unknown portal.
    pub fn describe_portal(&mut self, name: &str) -> Result<(&[Field], &[i16]), SqlError> {
        let _ = name;
        Err(unfinished())
    }

    /// An Execute message; 0 rows means all. `sync_follows`: the next message in the caller's buffer is Sync, so a lone
    /// statement may commit here, and be retried here.
    ///
    /// # Errors
    /// The statement's, or the commit's.
    pub fn execute(
        &mut self,
        portal: &str,
        max_rows: u32,
        sync_follows: bool,
        out: &mut dyn Output,
    ) -> Result<Executed, SqlError> {
        let _ = (portal, max_rows, sync_follows, out);
        Err(unfinished())
    }

    /// A Close message for a statement; an unknown name is no error.
    pub fn close_statement(&mut self, name: &str) {
        let _ = name;
    }

    /// A Close message for a portal; an unknown name is no error.
    pub fn close_portal(&mut self, name: &str) {
        let _ = name;
    }

    /// A Sync message: commits an implicit transaction.
    ///
    /// # Errors
    /// The commit's.
    pub fn sync(&mut self) -> Result<(), SqlError> {
        Ok(())
    }

    /// The wire failed a message by itself, or skips to Sync after an error that the session did not see: an implicit
    /// transaction is rolled back, a block fails.
    pub fn fail(&mut self) {}

    /// Whether a COPY FROM STDIN is under way.
    pub fn in_copy(&self) -> bool {
        false
    }

    /// CopyData.
    ///
    /// # Errors
    /// 22P04 and those of the rows; the COPY is over then, and the caller skips to CopyDone or CopyFail.
    pub fn copy_data(&mut self, data: &[u8]) -> Result<(), SqlError> {
        let _ = data;
        Err(unfinished())
    }

    /// CopyDone; goes on with the rest of a simple query.
    ///
    /// # Errors
    /// Those of the rows, or of the statements that follow.
    pub fn copy_done(&mut self, out: &mut dyn Output) -> Result<(), SqlError> {
        let _ = out;
        Err(unfinished())
    }

    /// CopyFail: gives the error to send.
    pub fn copy_fail(&mut self, message: &str) -> SqlError {
        SqlError::new(SqlState::QUERY_CANCELED, format!("COPY from stdin failed: {message}"))
    }

    /// The milliseconds after which a session in its present state is to be ended for being idle
    /// (`idle_session_timeout`, `idle_in_transaction_session_timeout`); 0 is never.
    pub fn idle_timeout_ms(&self) -> u64 {
        0
    }
}

fn unfinished() -> SqlError {
    SqlError::unsupported("this statement")
}
