//! Roles: there is one, by whatever name a client connects.

use crate::{SqlError, SqlState};

/// The role that exists whoever has connected.
pub(crate) const ROOT: &str = "root";

/// The OID of the one role, by whatever name it came: that of PostgreSQL's first.
pub const ROLE_OID: super::Oid = 10;

/// Whether there is a role of that name, seen by a user: every user is the one role, by whatever name it came.
pub fn is_role(name: &str, user: &str) -> bool {
    name == user || name == ROOT
}

/// 42704, with what there is.
pub fn unknown_role(name: &str, user: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
        .hint(format!("There is one role, \"{user}\", which may do everything."))
}
