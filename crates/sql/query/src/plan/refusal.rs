//! Why the direct planner gives a statement back.

use crate::{SqlError, SqlState};

/// The direct planner's answer where it makes no plan.
#[derive(Debug)]
pub enum Refusal {
    /// The query engine must do it; says which part of the statement asks for it.
    Engine(&'static str),
    /// A name is unknown here; the query engine may know it.
    Unknown(Box<SqlError>),
    /// The statement is wrong.
    Wrong(Box<SqlError>),
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Self {
        Refusal::Wrong(Box::new(error))
    }
}

impl Refusal {
    /// Whether the query engine may do it.
    pub(crate) fn is_for_engine(&self) -> bool {
        !matches!(self, Refusal::Wrong(_))
    }

    /// The error where there is no engine to turn to.
    pub(crate) fn into_error(self) -> SqlError {
        match self {
            Refusal::Wrong(error) | Refusal::Unknown(error) => *error,
            Refusal::Engine(part) => {
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{part} is not supported here"))
                    .hint("A SELECT can do it: run that first, and write this statement over its result.")
            }
        }
    }
}

/// What planning gives.
pub type Planned<T> = Result<T, Refusal>;
