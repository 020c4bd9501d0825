//! COPY, both ways.

use super::Session;
use super::run::Outcome;
use crate::output::Output;
use crate::syntax::Copy;
use crate::{SqlError, SqlState};

/// A COPY FROM STDIN under way.
pub(super) struct CopyIn {}

impl Session {
    pub(super) fn run_copy(&mut self, copy: &Copy, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        let _ = (copy, out);
        Err(SqlError::unsupported("this statement"))
    }

    /// Whether a COPY FROM STDIN is under way.
    pub fn in_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// CopyData.
    ///
    /// # Errors
    /// 22P04 and those of the rows; the COPY is over then, and the caller skips to CopyDone or CopyFail.
    pub fn copy_data(&mut self, data: &[u8]) -> Result<(), SqlError> {
        let _ = data;
        Err(SqlError::unsupported("COPY"))
    }

    /// CopyDone; goes on with the rest of a simple query.
    ///
    /// # Errors
    /// Those of the rows, or of the statements that follow.
    pub fn copy_done(&mut self, out: &mut dyn Output) -> Result<(), SqlError> {
        self.after_copy(out)
    }

    /// CopyFail: gives the error to send.
    pub fn copy_fail(&mut self, message: &str) -> SqlError {
        self.failed();
        SqlError::new(SqlState::QUERY_CANCELED, format!("COPY from stdin failed: {message}"))
    }
}
