//! The catalog as one session sees it: a database, a search path, a [`Snapshot`].

use super::CatalogView;
use super::snapshot::{INFORMATION_SCHEMA, PG_CATALOG};
use super::{Database, Named, Oid, Relation, Schema, Snapshot, key};
use super::{TIMEBALL_INTERNAL, TIMEBALL_INTERNAL_OID};
use crate::SqlError;
use bytes::Bytes;
use std::sync::Arc;

/// See the module. Made once per number and search path.
#[derive(Debug)]
pub struct View {
    snapshot: Arc<Snapshot>,
    database: Arc<Database>,
    search_path: Vec<String>,
    /// The schemas of the search path; what is not there by its name.
    path: Vec<Result<Oid, String>>,
}

impl View {
    /// A view; names of the search path without a schema are passed over.
    pub fn new(snapshot: Arc<Snapshot>, database: Arc<Database>, search_path: &[String]) -> View {
        let schema =
            |name: &String| snapshot.schema(database.id, name).map(|schema| schema.id).ok_or_else(|| name.clone());
        let path = search_path.iter().map(schema).collect();
        // Renamed databases keep their OID: show the newest name.
        let database = snapshot.database_by_id(database.id).cloned().unwrap_or(database);
        View { snapshot, database, search_path: search_path.to_vec(), path }
    }
    /// The whole catalog.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }
    /// The search path that it was made with.
    pub fn search_path(&self) -> &[String] {
        &self.search_path
    }
    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }
    /// What a name stands for: along the search path unless a schema is given.
    pub fn named(&self, schema: Option<&str>, name: &str) -> Option<Named> {
        match schema {
            Some(schema) => self.snapshot.named(self.snapshot.schema(self.database.id, schema)?.id, name),
            None => self.path.iter().flatten().find_map(|schema| self.snapshot.named(*schema, name)),
        }
    }
    /// As [`View::named`]; `passed` gets the tokens of what was looked for in vain on the way.
    pub fn lookup(&self, schema: Option<&str>, name: &str, passed: &mut dyn FnMut(Bytes)) -> Option<Named> {
        let mut within = |schema: Result<Oid, &str>| {
            let found = schema.ok().and_then(|schema| self.snapshot.named(schema, name));
            match schema {
                _ if found.is_some() => {}
                Ok(schema) => passed(key::absence(schema, name)),
                Err(missing) => passed(key::absence(self.database.id, missing)),
            }
            found
        };
        match schema {
            Some(schema) => within(self.snapshot.schema(self.database.id, schema).map(|s| s.id).ok_or(schema)),
            None => self.path.iter().find_map(|schema| within(schema.as_ref().copied().map_err(String::as_str))),
        }
    }
}

impl CatalogView for View {
    fn relation(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(match self.named(schema, name) {
            Some(Named::Relation(id)) => self.snapshot.relation(id).cloned(),
            _ => None,
        })
    }
    fn relation_by_id(&self, id: u32) -> Result<Option<Arc<Relation>>, SqlError> {
        Ok(self.snapshot.relation(id).cloned())
    }
    fn relations(&self) -> Result<Vec<Arc<Relation>>, SqlError> {
        Ok(self.snapshot.relations(self.database.id))
    }
    fn schemas(&self) -> Result<Vec<Schema>, SqlError> {
        let fixed = [
            ("pg_catalog", PG_CATALOG),
            ("information_schema", INFORMATION_SCHEMA),
            (TIMEBALL_INTERNAL, TIMEBALL_INTERNAL_OID),
        ];
        let fixed = fixed.map(|(name, id)| Schema { id, database: self.database.id, name: name.into() });
        Ok(fixed.into_iter().chain(self.snapshot.schemas(self.database.id).map(|s| (**s).clone())).collect())
    }
    fn databases(&self) -> Result<Vec<Database>, SqlError> {
        Ok(self.snapshot.databases().map(|d| (**d).clone()).collect())
    }
    fn current_database(&self) -> Database {
        (*self.database).clone()
    }
}
