//! CREATE, ALTER and DROP EXTENSION: of those whose functions exist here.
//!
//! The functions are there with or without the extension; what is kept is that somebody created it, so that a tool finds what it asked for.

use super::Run;
use crate::catalog::extension::{AVAILABLE, Available, LANGUAGE, available, built_in};
use crate::catalog::{Database, Extension};
use crate::{SqlError, SqlState};

fn find(name: &str) -> Result<&'static Available, SqlError> {
    available(name).ok_or_else(|| {
        let names: Vec<&str> = AVAILABLE.iter().map(|extension| extension.name).collect();
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("extension \"{name}\" is not available"))
            .hint(format!("Extensions are part of the server; there are {}.", names.join(" and ")))
    })
}

fn check_version(extension: &Available, version: Option<&str>) -> Result<(), SqlError> {
    match version {
        Some(version) if version != extension.version => Err(SqlError::new(
            SqlState::INVALID_PARAMETER,
            format!(
                "extension \"{}\" has no installation script nor update path for version \"{version}\"",
                extension.name
            ),
        )
        .hint(format!("Its version is {}.", extension.version))),
        _ => Ok(()),
    }
}

fn missing(name: &str) -> String {
    format!("extension \"{name}\" does not exist")
}

impl Run<'_> {
    fn current_database(&self) -> Database {
        let newest = self.catalog().database_by_id(self.database.id);
        Database::clone(newest.unwrap_or(&self.database))
    }

    pub(super) fn create_extension(
        &mut self,
        name: &str,
        if_not_exists: bool,
        schema: Option<&str>,
        version: Option<&str>,
    ) -> Result<&'static str, SqlError> {
        let mut database = self.current_database();
        if built_in(name).is_some() || database.extensions.iter().any(|e| e.name == name) {
            let message = format!("extension \"{name}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
            }
            self.notice(format!("{message}, skipping"));
            return Ok("CREATE EXTENSION");
        }
        let extension = find(name)?;
        check_version(extension, version)?;
        let schema = match schema {
            Some(schema) => self.schema_named(schema)?,
            None => self.schema_for(&crate::syntax::Name::bare(name))?,
        };
        database.extensions.push(Extension { id: self.new_oid()?, name: name.into(), schema: schema.id });
        self.touch().put_database(database)?;
        Ok("CREATE EXTENSION")
    }

    pub(super) fn update_extension(&mut self, name: &str, version: Option<&str>) -> Result<&'static str, SqlError> {
        let has = if let Some(version) = built_in(name) {
            version
        } else if self.current_database().extensions.iter().any(|e| e.name == name) {
            find(name)?.version
        } else {
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, missing(name)));
        };
        if let Some(version) = version.filter(|version| *version != has) {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER,
                format!("extension \"{name}\" has no update path from version \"{has}\" to version \"{version}\""),
            ));
        }
        self.notice(format!("version \"{has}\" of extension \"{name}\" is already installed"));
        Ok("ALTER EXTENSION")
    }

    pub(super) fn drop_extensions(&mut self, names: &[String], if_exists: bool) -> Result<&'static str, SqlError> {
        let mut database = self.current_database();
        if let Some(name) = names.iter().find(|name| built_in(name).is_some()) {
            let message = format!("extension \"{name}\" cannot be dropped");
            let hint = match name.as_str() {
                LANGUAGE => "It counts as created in every database; its language is not there.",
                _ => "It is part of every database.",
            };
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint(hint));
        }
        for name in names {
            let before = database.extensions.len();
            database.extensions.retain(|e| e.name != *name);
            if database.extensions.len() < before {
                self.notice(format!("the functions of extension \"{name}\" stay: they are part of the server"));
                continue;
            }
            if !if_exists {
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, missing(name)));
            }
            self.notice(format!("{}, skipping", missing(name)));
        }
        if database.extensions != self.current_database().extensions {
            self.touch().put_database(database)?;
        }
        Ok("DROP EXTENSION")
    }
}
