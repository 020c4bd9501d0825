//! DDL, from the session's side: the change runs in the session's transaction, which then sees the new catalog.

use super::Session;
use super::run::Outcome;
use crate::SqlError;
use crate::output::Output;
use crate::syntax::Ddl;

impl Session {
    pub(super) fn run_ddl(&mut self, ddl: &Ddl, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        let _ = (ddl, out);
        Err(SqlError::unsupported("this statement"))
    }
}
