//! The catalog as whoever binds and runs statements sees it.

use super::{Database, Defaults, Relation, Schema, Seal};
use crate::SqlError;
use std::sync::Arc;

/// The catalog as the statement's transaction sees it. What is looked up by name or OID is relied upon: see [`super::reliance`].
pub trait CatalogView: Send + Sync {
    /// Looks a table, view or sequence up; without a schema, along the search path (`pg_catalog` first). `None` if there is none.
    /// Virtual tables (`pg_catalog`, `information_schema`) are not here: see `pg_catalog::lookup`.
    fn relation(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Relation>>, SqlError>;
    /// By OID.
    fn relation_by_id(&self, id: u32) -> Result<Option<Arc<Relation>>, SqlError>;
    /// The same of a table that what is written leads to, by a foreign key: rows of it may be written, or must stay.
    fn relation_to_write(&self, id: u32) -> Result<Option<Arc<Relation>>, SqlError> {
        self.relation_by_id(id)
    }
    /// Every relation of the current database.
    fn relations(&self) -> Result<Vec<Arc<Relation>>, SqlError>;
    /// Every relation of all databases as it was last known: nobody is asked, and nothing is relied upon. For what is shown where nothing may be served.
    fn known_relations(&self) -> Vec<Arc<Relation>> {
        self.relations().unwrap_or_default()
    }
    /// As [`CatalogView::databases`], and as [`CatalogView::known_relations`].
    fn known_databases(&self) -> Vec<Database> {
        self.databases().unwrap_or_default()
    }
    /// Schemas of the current database, `pg_catalog` and `information_schema` included.
    fn schemas(&self) -> Result<Vec<Schema>, SqlError>;
    /// Every database.
    fn databases(&self) -> Result<Vec<Database>, SqlError>;
    /// The database that the session is connected to.
    fn current_database(&self) -> Database;
    /// What sessions begin with.
    fn defaults(&self) -> Arc<Defaults> {
        Arc::default()
    }
    /// What signs tokens.
    fn seal(&self) -> Option<Arc<Seal>> {
        None
    }
}
