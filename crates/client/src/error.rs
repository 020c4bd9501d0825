//! What can come of a transaction beside a commit.

use std::error::Error as StdError;
use tokio_postgres::error::SqlState;

/// A transaction has not committed, or nobody knows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has not committed: the server, or the connection, said why. The driver's words leave out the server's: see the source.
    #[error("the transaction has not committed")]
    Failed(#[from] tokio_postgres::Error),
    /// It conflicted with others as often as it was to be tried, and has not committed. Try later, or with more attempts.
    #[error("the transaction conflicted with others {attempts} times, and has not committed")]
    Conflict {
        /// So often.
        attempts: u32,
        /// What the last attempt failed with.
        #[source]
        last: tokio_postgres::Error,
    },
    /// It may have committed, or may not: the answer got lost (40003, or the connection). Look before doing it again.
    #[error("it is not known whether the transaction has committed")]
    Unknown(#[source] tokio_postgres::Error),
    /// Whoever ran it gave it up: see [`Error::give_up`].
    #[error("the transaction was given up")]
    GivenUp(#[source] Box<dyn StdError + Send + Sync>),
    /// The server says nothing of tokens.
    #[error("the server has no timeball.token: is it Timeball?")]
    NoToken,
}

impl Error {
    /// From inside a transaction: it is rolled back, and not tried again.
    pub fn give_up(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error::GivenUp(why.into())
    }

    /// What the server called it.
    pub fn code(&self) -> Option<&SqlState> {
        match self {
            Error::Failed(error) | Error::Conflict { last: error, .. } | Error::Unknown(error) => error.code(),
            Error::GivenUp(_) | Error::NoToken => None,
        }
    }

    /// A conflict with others: the whole transaction is to be run again.
    pub(crate) fn conflict(self) -> Result<tokio_postgres::Error, Error> {
        match self {
            Error::Failed(error) if is_conflict(&error) => Ok(error),
            other => Err(other),
        }
    }

    /// Of a commit that failed.
    pub(crate) fn of_commit(error: tokio_postgres::Error) -> Error {
        match error.code() {
            Some(code) if *code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN => Error::Failed(error),
            // 40003; or no answer at all.
            _ => Error::Unknown(error),
        }
    }
}

fn is_conflict(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(code) if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code))
}
