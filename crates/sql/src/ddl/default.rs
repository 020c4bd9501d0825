//! ALTER DATABASE, ROLE and SYSTEM .. SET and RESET: what sessions begin with.
//!
//! ALTER SYSTEM says the same as ALTER ROLE ALL: there is no file of one server that it could write, and what holds for the whole cluster stands in the catalog.

use super::Run;
use crate::catalog::role::{ROLE_OID, is_role, unknown_role};
use crate::catalog::{Defaults, Oid};
use crate::syntax::{DefaultChange, DefaultOf, DefaultRole};
use crate::{SqlError, SqlState};

impl Run<'_> {
    pub(super) fn set_default(&mut self, of: &DefaultOf, change: &DefaultChange) -> Result<&'static str, SqlError> {
        let (tag, database, role) = match of {
            DefaultOf::Database(name) => ("ALTER DATABASE", self.database_named(name)?, 0),
            DefaultOf::System => ("ALTER SYSTEM", 0, 0),
            DefaultOf::Role { role, database } => {
                let role = match role {
                    Some(DefaultRole::Named(name)) if !is_role(name, &self.statement.settings.user) => {
                        return Err(unknown_role(name, &self.statement.settings.user));
                    }
                    Some(_) => ROLE_OID,
                    None => 0,
                };
                let database = database.as_deref().map(|name| self.database_named(name)).transpose()?;
                ("ALTER ROLE", database.unwrap_or(0), role)
            }
        };
        let mut defaults = Defaults::clone(self.catalog().defaults());
        match change {
            DefaultChange::ResetAll => defaults.reset(database, role),
            DefaultChange::Set(name, value) => {
                // A value that no session could begin with is refused now; what is taken back need not be known any more.
                if let Some(value) = value {
                    let system = &self.statement.system;
                    system.setting_trial(&self.statement.settings, name, Some(value))?;
                }
                defaults.set(database, role, name, value.clone());
            }
            DefaultChange::FromCurrent(name) => {
                let shown = self.statement.system.setting(&self.statement.settings, name);
                let shown = shown.ok_or_else(|| {
                    let message = format!("unrecognized configuration parameter \"{name}\"");
                    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
                })?;
                self.statement.system.setting_trial(&self.statement.settings, name, Some(&shown))?;
                defaults.set(database, role, name, Some(shown));
            }
        }
        if defaults != **self.catalog().defaults() {
            self.touch().put_defaults_of(database, defaults)?;
        }
        Ok(tag)
    }

    fn database_named(&self, name: &str) -> Result<Oid, SqlError> {
        let found = self.catalog().database(name).map(|database| database.id);
        found
            .ok_or_else(|| SqlError::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist")))
    }
}
