//! `pg_catalog` and `information_schema`: virtual tables, computed when they are read.
//!
//! **Problem.** Drivers, ORMs and tools learn what a database holds by querying PostgreSQL's catalogs, with joins over dozens of
//! tables and columns of which most are empty in any one database.
//!
//! **Idea.** The *shape* of the catalogs (names, columns, types, OIDs) is data taken from PostgreSQL 15 itself: `data/columns.txt`,
//! one relation a line. What never changes (types, access methods, functions) is data too: `data/<table>.tsv`, in COPY's text form.
//! What the user made is computed from the descriptors by a producer. A relation with neither is empty, as it is in a
//! PostgreSQL that does not use the feature. So any query that PostgreSQL's catalogs accept finds its tables and columns here.
//!
//! **Invariants.**
//! 1. OIDs of built-in objects are PostgreSQL's; OIDs of users' objects are their descriptors'.
//! 2. Each row has as many values as its table has columns, each NULL or of the column's type.
//! 3. Constraints have no OID of their own in descriptors. An index's constraint takes the index's OID, a CHECK one above
//!    [`CHECK_OID_BASE`]: unique within `pg_constraint`, which is all that PostgreSQL promises too.
//!
//! **Caveats.** There is one role; privileges are all granted. Of statistics there is what plans go by, and no counters. Column order and defaults follow PostgreSQL 15.

mod constraints;
mod definition;
pub mod encodings;
mod fixed;
pub mod functions;
mod information;
pub mod names;
mod relations;
mod rows;
mod sessions;
mod signatures;
mod statistics;

use crate::catalog::CatalogView;
use crate::catalog::{Oid, Relation, Schema};
pub use crate::catalog::{TIMEBALL_INTERNAL, TIMEBALL_INTERNAL_OID};
use crate::sequence::Sequences;
use crate::statement::Statement;
use crate::types::EvalSettings;
use crate::types::{Row, SqlType};
use crate::{Backend, Kv, SqlError, internal};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// OID of the role that owns everything.
pub(crate) const OWNER_OID: Oid = crate::catalog::role::ROLE_OID;
/// OID of the schema `pg_catalog`.
pub(crate) const PG_CATALOG_OID: Oid = 11;
/// OID of the schema `information_schema`.
pub(crate) const INFORMATION_SCHEMA_OID: Oid = 13_207;
/// OID of the extension that owns it: dumps leave out what is an extension's (decision 159).
pub(crate) const TIMEBALL_OID: Oid = 13_899;
/// CHECK constraints have OIDs from here: this + 64 * (table's OID - first user OID) + place in the table.
pub(crate) const CHECK_OID_BASE: Oid = 0x8000_0000;

/// A column of a virtual table.
#[derive(Clone, Debug)]
pub struct VirtualColumn {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: SqlType,
}

/// A table whose rows are computed.
#[derive(Debug)]
pub struct VirtualTable {
    /// `pg_catalog`, `information_schema` or `timeball_internal`; the last one's rows are [`crate::internal`]'s.
    pub schema: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its OID in PostgreSQL.
    pub oid: Oid,
    /// Whether PostgreSQL has it as a view.
    pub is_view: bool,
    /// Its columns.
    pub columns: Vec<VirtualColumn>,
}

/// What the rows are computed from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The catalog, in the reading transaction.
    pub catalog: &'a dyn CatalogView,
    /// The session's settings.
    pub settings: &'a EvalSettings,
    /// The session that asks, and by it all others; none where only names are looked up.
    pub backend: Option<&'a Backend>,
    /// The statement that asks, by which locks are looked at.
    pub statement: Option<&'a Statement>,
    /// The database below.
    pub kv: Option<&'a dyn Kv>,
    /// What tells where sequences stand.
    pub sequences: Option<&'a dyn Sequences>,
    /// Only rows on this relation are wanted (its `pg_class`, `pg_attribute`, `pg_index`, ... rows); others may be left out.
    pub relation: Option<Oid>,
}

impl<'a> Source<'a> {
    /// All relations, as a statement sees them.
    pub fn of(context: &'a Statement) -> Source<'a> {
        Source {
            catalog: context.catalog.as_ref(),
            settings: &context.settings,
            backend: Some(&context.backend),
            statement: Some(context),
            kv: Some(context.kv.as_ref()),
            sequences: Some(context.sequences.as_ref()),
            relation: None,
        }
    }
}

/// What users made, read once per use of a virtual table.
struct Objects {
    schemas: Vec<Schema>,
    relations: Vec<Arc<Relation>>,
}

impl Objects {
    fn read(source: &Source<'_>) -> Result<Objects, SqlError> {
        let relations = match source.relation {
            _ if source.relation.is_none() => source.catalog.relations()?,
            // An index is found through its table only, so an OID that is no relation of its own asks for all.
            Some(oid) => match source.catalog.relation_by_id(oid)? {
                Some(relation) => vec![relation],
                None if oid < crate::catalog::FIRST_USER_OID => Vec::new(),
                None => source.catalog.relations()?,
            },
            None => Vec::new(),
        };
        Ok(Objects { schemas: source.catalog.schemas()?, relations })
    }

    fn schema_name(&self, id: Oid) -> &str {
        self.schemas.iter().find(|schema| schema.id == id).map_or("public", |schema| schema.name.as_str())
    }

    /// The OID shown for a schema.
    fn schema_oid(schema: &Schema) -> Oid {
        match schema.name.as_str() {
            "pg_catalog" => PG_CATALOG_OID,
            "information_schema" => INFORMATION_SCHEMA_OID,
            _ => schema.id,
        }
    }
}

type Tables = BTreeMap<(&'static str, &'static str), VirtualTable>;

fn parse_line(line: &'static str) -> Option<VirtualTable> {
    let mut words = line.split(' ');
    let (schema, name) = words.next()?.split_once('.')?;
    let oid = words.next()?.parse().ok()?;
    let is_view = words.next()? == "v";
    let columns =
        words.filter_map(|word| word.split_once(':')).map(|(name, ty)| VirtualColumn { name, ty: column_type(ty) });
    Some(VirtualTable { schema, name, oid, is_view, columns: columns.collect() })
}

/// The type of a catalog's column; types that we do not have are shown as text.
fn column_type(name: &str) -> SqlType {
    let name = name.replace('_', " ");
    if let Some(element) = name.strip_suffix("[]") {
        return SqlType::Array(Box::new(column_type(element)));
    }
    match name.as_str() {
        "xid" | "xid8" => SqlType::Int8,
        other => SqlType::from_name(other).unwrap_or(SqlType::Text),
    }
}

fn all() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let lines = include_str!("data/columns.txt").lines().filter_map(parse_line);
        let internal = internal::NAMES.into_iter().zip(TIMEBALL_INTERNAL_OID + 1..).map(|(name, oid)| VirtualTable {
            schema: TIMEBALL_INTERNAL,
            name,
            oid,
            is_view: true,
            columns: internal::shape(name)
                .unwrap_or_default()
                .into_iter()
                .map(|(name, ty)| VirtualColumn { name, ty })
                .collect(),
        });
        lines.chain(internal).map(|table| ((table.schema, table.name), table)).collect()
    })
}

/// Every virtual table.
pub fn tables() -> impl Iterator<Item = &'static VirtualTable> {
    all().values()
}

/// Those that there are here.
fn listed<'a>(source: &'a Source<'_>) -> impl Iterator<Item = &'static VirtualTable> + 'a {
    let is_there = |name| source.kv.is_some_and(|kv| internal::is_there(kv, name));
    tables().filter(move |table| table.schema != TIMEBALL_INTERNAL || is_there(table.name))
}

/// A virtual table by name; without a schema, one of `pg_catalog`.
pub fn lookup(schema: Option<&str>, name: &str) -> Option<&'static VirtualTable> {
    let schema = match schema {
        None | Some("pg_catalog") => "pg_catalog",
        Some("information_schema") => "information_schema",
        Some(_) => return None,
    };
    // The key's lifetime is static, hence the search by comparison.
    all()
        .range((schema, "")..)
        .take_while(|((s, _), _)| *s == schema)
        .find(|((_, n), _)| *n == name)
        .map(|(_, table)| table)
}

/// A virtual table by OID.
pub(crate) fn by_oid(oid: Oid) -> Option<&'static VirtualTable> {
    all().values().find(|table| table.oid == oid)
}

impl VirtualTable {
    /// OID of its schema.
    pub(crate) fn schema_oid(&self) -> Oid {
        match self.schema {
            "pg_catalog" => PG_CATALOG_OID,
            TIMEBALL_INTERNAL => TIMEBALL_INTERNAL_OID,
            _ => INFORMATION_SCHEMA_OID,
        }
    }

    /// Its rows, all of them.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub fn rows(&self, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
        if self.schema == "information_schema" {
            return information::rows(self, source);
        }
        if let Some(rows) = relations::rows(self, source)? {
            return Ok(rows);
        }
        if let Some(rows) = constraints::rows(self, source)? {
            return Ok(rows);
        }
        if let Some(rows) = statistics::rows(self, source)? {
            return Ok(rows);
        }
        fixed::rows(self, source)
    }
}

#[cfg(test)]
mod tests;
