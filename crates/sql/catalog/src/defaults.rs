//! What sessions begin with: ALTER DATABASE, ROLE and SYSTEM .. SET.
//!
//! One record of the catalog holds all of it: it is small, it changes seldom, and a session that begins needs several rows of it. Of two that set something at the same time
//! one hears of the other, as both write that record.

use super::Oid;
use crate::types::SettingSource;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of one database, one role, of both, or of everybody, as of one row of `pg_db_role_setting`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultsOf {
    /// OID of the database; 0 for all.
    pub database: Oid,
    /// OID of the role; 0 for all.
    pub role: Oid,
    /// By name, as they were given.
    pub settings: BTreeMap<String, String>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults(Vec<DefaultsOf>);

impl Defaults {
    /// All of them, in the order of their databases and roles.
    pub fn rows(&self) -> &[DefaultsOf] {
        &self.0
    }

    /// Sets one; `None` takes it back. 0 stands for all databases, or all roles.
    pub fn set(&mut self, database: Oid, role: Oid, name: &str, value: Option<String>) {
        let place = self.0.iter().position(|of| (of.database, of.role) == (database, role));
        let of = match place {
            Some(place) => &mut self.0[place],
            None => {
                let place = self.0.partition_point(|of| (of.database, of.role) < (database, role));
                self.0.insert(place, DefaultsOf { database, role, settings: BTreeMap::new() });
                &mut self.0[place]
            }
        };
        match value {
            Some(value) => drop(of.settings.insert(name.to_owned(), value)),
            None => drop(of.settings.remove(name)),
        }
        self.0.retain(|of| !of.settings.is_empty());
    }

    /// Takes back all of one database and role.
    pub fn reset(&mut self, database: Oid, role: Oid) {
        self.0.retain(|of| (of.database, of.role) != (database, role));
    }

    /// A database is gone. Whether it had any.
    pub(super) fn forget_database(&mut self, database: Oid) -> bool {
        let before = self.0.len();
        self.0.retain(|of| of.database != database);
        self.0.len() < before
    }

    /// What a session of a role in a database begins with: what is said later goes before. As in PostgreSQL what is said of a role goes before what is said of a database.
    pub fn of_session(&self, database: Oid, role: Oid) -> impl Iterator<Item = (SettingSource, &str, &str)> {
        let in_order = [
            (SettingSource::Global, (0, 0)),
            (SettingSource::Database, (database, 0)),
            (SettingSource::Role, (0, role)),
            (SettingSource::RoleInDatabase, (database, role)),
        ];
        let found = move |key| self.0.iter().find(move |of| (of.database, of.role) == key);
        let rows = in_order.into_iter().filter_map(move |(source, key)| Some((source, found(key)?)));
        rows.flat_map(|(source, of)| {
            of.settings.iter().map(move |(name, value)| (source, name.as_str(), value.as_str()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_less_goes_before_what_is_said_of_more() {
        let mut all = Defaults::default();
        for (database, role, value) in [(5, 10, "both"), (0, 10, "role"), (5, 0, "database"), (0, 0, "all")] {
            all.set(database, role, "a", Some(value.to_owned()));
        }
        let last = |all: &Defaults, database| all.of_session(database, 10).last().map(|(_, _, value)| value.to_owned());
        assert_eq!(last(&all, 5).as_deref(), Some("both"));
        assert_eq!(last(&all, 6).as_deref(), Some("role"));
        all.set(5, 10, "a", None);
        all.reset(0, 10);
        assert_eq!(last(&all, 5).as_deref(), Some("database"));
        assert!(all.forget_database(5) && !all.forget_database(5));
        assert_eq!(last(&all, 5).as_deref(), Some("all"));
        all.set(0, 0, "a", None);
        assert_eq!(all, Defaults::default(), "nothing is kept of what is taken back");
    }
}
