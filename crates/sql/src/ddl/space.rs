//! CREATE SCHEMA and DATABASE.

use super::Run;
use crate::catalog::role::{is_role, unknown_role};
use crate::catalog::{Database, Schema};
use crate::{SqlError, SqlState};

impl Run<'_> {
    /// Whoever is to own something must be a role.
    pub(super) fn check_owner(&self, role: Option<&str>) -> Result<(), SqlError> {
        let user = &self.statement.settings.user;
        match role {
            Some(role) if !is_role(role, user) => Err(unknown_role(role, user)),
            _ => Ok(()),
        }
    }

    pub(super) fn create_schema(&mut self, name: &str, if_not_exists: bool) -> Result<&'static str, SqlError> {
        if name.starts_with("pg_") || name == "information_schema" || name == "timeball_internal" {
            return Err(SqlError::new(SqlState(*b"42939"), format!("unacceptable schema name \"{name}\""))
                .detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        if self.catalog().schema(self.database.id, name).is_some() {
            if if_not_exists {
                self.notice(format!("schema \"{name}\" already exists, skipping"));
                return Ok("CREATE SCHEMA");
            }
            return Err(SqlError::new(SqlState::DUPLICATE_SCHEMA, format!("schema \"{name}\" already exists")));
        }
        let schema = Schema { id: self.new_oid()?, database: self.database.id, name: name.into() };
        self.touch().put_schema(schema)?;
        Ok("CREATE SCHEMA")
    }

    pub(super) fn create_database(
        &mut self,
        name: &str,
        if_not_exists: bool,
        template: Option<&str>,
    ) -> Result<&'static str, SqlError> {
        // The templates that PostgreSQL comes with are empty, and are not kept here.
        if let Some(template) = template.filter(|template| !matches!(*template, "template0" | "template1")) {
            if self.catalog().database(template).is_none() {
                let message = format!("template database \"{template}\" does not exist");
                return Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message));
            }
            return Err(SqlError::unsupported(format!("a copy of the database \"{template}\""))
                .hint("Leave TEMPLATE out, and load what the other database holds by pg_dump."));
        }
        if self.catalog().database(name).is_some() {
            if if_not_exists {
                self.notice(format!("database \"{name}\" already exists, skipping"));
                return Ok("CREATE DATABASE");
            }
            return Err(SqlError::new(SqlState::DUPLICATE_DATABASE, format!("database \"{name}\" already exists")));
        }
        let database = Database { id: self.new_oid()?, name: name.into(), extensions: Vec::new() };
        let public = Schema { id: self.new_oid()?, database: database.id, name: "public".into() };
        self.touch().put_database(database)?;
        self.touch().put_schema(public)?;
        Ok("CREATE DATABASE")
    }
}
