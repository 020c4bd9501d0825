//! What can come of a transaction beside a commit.

use std::error::Error as StdError;
use tokio_postgres::error::SqlState;

/// A transaction has not committed, or nobody knows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has not committed: the server, or the connection, said why, in a way that leaves no doubt. The driver's words leave out the server's: see the source.
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
    /// It may have committed, or may not: COMMIT was sent, and its answer got lost (40003, or the connection), or does not tell (57014, XX000, ..). Look before
    /// doing it again, in a transaction with [`Consistency::Strict`](crate::Consistency::Strict): the token was not raised, so nothing weaker need see what was
    /// committed. That it finds nothing is proof only once the commit cannot arrive any more: for five seconds after COMMIT was sent it may (the server's `until`).
    #[error("it is not known whether the transaction has committed")]
    Unknown(#[source] tokio_postgres::Error),
    /// Whoever ran it gave it up: see [`Error::give_up`].
    #[error("the transaction was given up")]
    GivenUp(#[source] Box<dyn StdError + Send + Sync>),
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
            Error::GivenUp(_) => None,
        }
    }

    /// A conflict with others: the whole transaction is to be run again.
    pub(crate) fn conflict(self) -> Result<tokio_postgres::Error, Error> {
        match self {
            Error::Failed(error) if is_conflict(&error) => Ok(error),
            other => Err(other),
        }
    }

    /// Of a text that commits, of which COMMIT has not been answered.
    pub(crate) fn of_commit(error: tokio_postgres::Error) -> Error {
        if error.code().is_some_and(|code| refuses_commit(code.code())) {
            return Error::Failed(error);
        }
        Error::Unknown(error)
    }
}

/// What a server says only where it has not committed. A code that is not here may come of a commit that was under way.
fn refuses_commit(code: &str) -> bool {
    // 40003 is of class 40, and says the contrary. 25P02 is of the SELECT before COMMIT.
    matches!(code, "40000" | "40001" | "40002" | "40P01" | "25P02") || code.starts_with("23")
}

fn is_conflict(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(code) if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code))
}

#[cfg(test)]
mod tests {
    use super::refuses_commit;

    #[test]
    fn only_what_leaves_no_doubt_refuses_a_commit() {
        for code in ["40000", "40001", "40002", "40P01", "25P02", "23505", "23503"] {
            assert!(refuses_commit(code), "{code}");
        }
        for code in ["40003", "57014", "57P01", "57P03", "08006", "XX000", "53200", "42704"] {
            assert!(!refuses_commit(code), "{code}");
        }
    }
}
