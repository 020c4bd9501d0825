//! Descriptors: serialisable, versioned records of databases, schemas, tables, sequences and views.
//!
//! Expressions in descriptors (defaults, checks, views) are SQL text, parsed when a plan is made.

use crate::types::SqlType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::types::Oid;
/// First OID for what users create.
pub const FIRST_USER_OID: Oid = 16_384;

/// OID of the schema `timeball_internal`: above PostgreSQL's own, below users'.
pub const TIMEBALL_INTERNAL_OID: Oid = 13_900;
/// Name of the schema of our own views.
pub const TIMEBALL_INTERNAL: &str = "timeball_internal";

/// A database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Database {
    /// Its OID.
    pub id: Oid,
    /// Its name.
    pub name: String,
    /// What CREATE EXTENSION made in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
}

/// An extension that was created: its functions are there with or without it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    /// Its OID.
    pub id: Oid,
    /// Its name.
    pub name: String,
    /// OID of its schema.
    pub schema: Oid,
}

/// A schema of a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Its OID.
    pub id: Oid,
    /// OID of its database.
    pub database: Oid,
    /// Its name.
    pub name: String,
}

/// A table, its columns, indexes and constraints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its OID; part of the key of each of its rows.
    pub id: Oid,
    /// OID of its database.
    pub database: Oid,
    /// OID of its schema.
    pub schema: Oid,
    /// Its name.
    pub name: String,
    /// Columns in order, dropped ones removed; their ids are never reused.
    pub columns: Vec<Column>,
    /// The index that holds the rows. Its OID changes when the rows are rewritten (ADD PRIMARY KEY, TRUNCATE).
    pub primary: Index,
    /// Whether `primary` is declared by the user. If not, its key is the hidden column [`ROW_ID_COLUMN`], not in `columns`.
    pub has_primary_key: bool,
    /// Secondary indexes.
    pub indexes: Vec<Index>,
    /// An index that is being made while the table is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub building: Option<Building>,
    /// A condition that writers keep already, while the rows that were there are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Check>,
    /// A column that writers keep already, while the rows that were there get theirs. See `ddl`'s `filling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filling: Option<Filling>,
    /// Whoever writes by this version holds its token meanwhile (`FOR KEY SHARE`): a change is about to take that for itself. See `ddl`'s `exclusive`.
    #[serde(default, skip_serializing_if = "is_not")]
    pub gated: bool,
    /// The node that makes any of them: it takes them back if its process ends.
    #[serde(default, skip_serializing_if = "is_alone")]
    pub maker: u32,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// Foreign keys of this table.
    pub foreign_keys: Vec<ForeignKey>,
    /// Tables whose foreign keys point here: their OIDs (this one, for a self-reference).
    pub referenced_by: Vec<Oid>,
    /// Next column id.
    pub next_column: u16,
    /// COMMENT ON: of the table under 0, of columns under their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub comments: BTreeMap<u16, String>,
    /// How long its past is kept, where that is not as long as all others'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Grows with each change of this descriptor.
    pub version: u64,
}

fn is_alone(node: &u32) -> bool {
    *node == 0
}

fn is_not(said: &bool) -> bool {
    !*said
}

/// `retention` of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// As it was written.
    pub text: String,
    /// What it says, seconds.
    pub seconds: u64,
}

/// Id of the hidden row id of a table without a primary key (an int8, from `Kv::unique_id`).
pub const ROW_ID_COLUMN: u16 = 0;

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// From 1, never reused: PostgreSQL's attnum.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// NULL allowed.
    pub nullable: bool,
    /// Default, as SQL text.
    pub default: Option<String>,
    /// What rows written before the column was added hold, as text of its type (`None` = NULL).
    pub missing: Option<String>,
    /// GENERATED .. AS IDENTITY.
    pub identity: Option<Identity>,
    /// Sequence owned by the column (SERIAL, IDENTITY).
    pub owned_sequence: Option<Oid>,
    /// GENERATED ALWAYS AS (..) STORED: an immutable expression over the row, as SQL text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// COLLATE, if it is not the database's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<Collation>,
    /// Where rows hold it, if not under its id: its type was changed while they were written. From the same numbers as ids, never reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<u16>,
}

impl Column {
    /// Where rows hold it, from 1.
    pub fn place(&self) -> u16 {
        self.stored.unwrap_or(self.id)
    }
}

/// A column that is not shown yet: a new one, or one with its next type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filling {
    /// What it will be. One of the table's columns with the same id it takes the place of.
    pub column: Column,
    /// What it is computed of, over the row, as SQL text; else it is its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

impl Filling {
    /// Whether it is computed of the row, and not a default.
    pub fn is_formula(&self) -> bool {
        self.of.is_some() || self.column.generated.is_some()
    }
}

impl Table {
    /// Whether somebody makes something of it beside its writers, or has left that half-made.
    pub fn is_unfinished(&self) -> bool {
        self.building.is_some() || self.pending.is_some() || self.filling.is_some()
    }

    /// The table as it will be when the column that is being filled is shown.
    #[must_use]
    pub fn filled(mut self) -> Table {
        if let Some(Filling { column, .. }) = self.filling.take() {
            match self.columns.iter_mut().find(|known| known.id == column.id) {
                Some(known) => *known = column,
                None => self.columns.push(column),
            }
        }
        self
    }
}

/// What COLLATE says. Texts are compared by their bytes under each of them; who reads the catalogs is told what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Collation {
    /// The database's.
    Default,
    /// "C"
    C,
    /// "POSIX"
    Posix,
}

impl Collation {
    /// By its name.
    pub fn named(name: &str) -> Option<Collation> {
        match name {
            "default" => Some(Collation::Default),
            "C" | "ucs_basic" => Some(Collation::C),
            "POSIX" => Some(Collation::Posix),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Collation::Default => "default",
            Collation::C => "C",
            Collation::Posix => "POSIX",
        }
    }

    /// PostgreSQL's OID for it.
    pub fn oid(self) -> Oid {
        match self {
            Collation::Default => 100,
            Collation::C => 950,
            Collation::Posix => 951,
        }
    }
}

/// GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// Explicit values are refused unless OVERRIDING SYSTEM VALUE.
    Always,
    /// Explicit values win.
    ByDefault,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Its OID; part of the key of each of its entries.
    pub id: Oid,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<IndexColumn>,
    /// No two rows may share a key without NULLs.
    pub unique: bool,
    /// Made by a UNIQUE or PRIMARY KEY constraint of the same name (not by CREATE INDEX).
    pub constraint: bool,
    /// INCLUDE: ids of columns that are said to be stored beside the key. They are not: an entry leads to its row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<u16>,
    /// A partial index: only rows for which this holds have entries, and only they must be unique. SQL text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<String>,
}

/// An index that nobody reads yet: see `ddl`'s `online`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Building {
    /// What it will be.
    pub index: Index,
    /// The index id below which writers mark the entries that they would have made and removed.
    pub marks: Oid,
    /// Writers maintain it as any other; before that they only mark.
    pub maintained: bool,
}

impl Index {
    /// Its expressions and its predicate.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().filter_map(|part| part.expression.as_ref()).chain(&self.predicate)
    }

    /// Its expressions and its predicate, to change them.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.columns.iter_mut().filter_map(|part| part.expression.as_mut()).chain(&mut self.predicate)
    }

    /// Whether its entries stand for every row, by columns alone: what a foreign key or a constraint can lean on.
    pub fn is_plain(&self) -> bool {
        self.predicate.is_none() && self.columns.iter().all(|part| part.expression.is_none())
    }
}

/// Names of an index's columns as PostgreSQL chooses them: one that is there already takes a number.
pub fn key_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names {
        let numbered = (1..).map(|n| format!("{name}{n}"));
        let free = std::iter::once(name.to_string()).chain(numbered).find(|name| !out.contains(name));
        out.extend(free);
    }
    out
}

/// A column of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Id of the column; 0 for an expression.
    pub column: u16,
    /// Descending.
    pub descending: bool,
    /// Where NULLs go, if not where the direction puts them: last when ascending, first when descending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nulls_first: Option<bool>,
    /// An immutable expression over the row instead of a column, as SQL text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// COLLATE, if it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collation: Option<Collation>,
}

impl IndexColumn {
    /// A column of the table.
    pub fn column(column: u16, descending: bool) -> Self {
        IndexColumn { column, descending, nulls_first: None, expression: None, collation: None }
    }

    /// Whether NULLs come before all values.
    pub fn nulls_first(&self) -> bool {
        self.nulls_first.unwrap_or(self.descending)
    }
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The condition, as SQL text.
    pub expression: String,
    /// NOT VALID was said: rows that were there before it may not satisfy it.
    #[serde(default, skip_serializing_if = "is_not")]
    pub not_valid: bool,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// OID of the constraint.
    pub id: Oid,
    /// Its name.
    pub name: String,
    /// Ids of the referencing columns.
    pub columns: Vec<u16>,
    /// OID of the referenced table.
    pub referenced_table: Oid,
    /// Ids of the referenced columns, in the order of `columns`; they are the columns of a unique index there.
    pub referenced_columns: Vec<u16>,
    /// ON DELETE.
    pub on_delete: ReferentialAction,
    /// ON UPDATE.
    pub on_update: ReferentialAction,
    /// When it is checked.
    #[serde(default, skip_serializing_if = "Deferral::is_not")]
    pub deferral: Deferral,
    /// NOT VALID was said: rows that were there before it may refer to nothing.
    #[serde(default, skip_serializing_if = "is_not")]
    pub not_valid: bool,
}

/// When a constraint is checked, unless SET CONSTRAINTS says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deferral {
    /// At the end of each statement, always.
    #[default]
    NotDeferrable,
    /// DEFERRABLE: at the end of each statement.
    InitiallyImmediate,
    /// DEFERRABLE INITIALLY DEFERRED: before the commit.
    InitiallyDeferred,
}

impl Deferral {
    fn is_not(&self) -> bool {
        *self == Deferral::NotDeferrable
    }
}

/// What happens to referencing rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferentialAction {
    /// Refuse at the end of the statement.
    NoAction,
    /// Refuse.
    Restrict,
    /// Follow.
    Cascade,
    /// Set the referencing columns to NULL.
    SetNull,
    /// Set them to their defaults.
    SetDefault,
}

/// A sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// Its OID.
    pub id: Oid,
    /// OID of its database.
    pub database: Oid,
    /// OID of its schema.
    pub schema: Oid,
    /// Its name.
    pub name: String,
    /// smallint, integer or bigint.
    pub ty: SqlType,
    /// First value.
    pub start: i64,
    /// Step.
    pub increment: i64,
    /// Least value.
    pub min: i64,
    /// Greatest value.
    pub max: i64,
    /// Start over at the end.
    pub cycle: bool,
    /// CACHE: what is said of it. How many numbers are taken at once is found while they are.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cache: i64,
    /// Table and column that own it.
    pub owner: Option<(Oid, u16)>,
}

fn one() -> i64 {
    1
}

fn is_one(cache: &i64) -> bool {
    *cache == 1
}

/// A view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Its OID.
    pub id: Oid,
    /// OID of its database.
    pub database: Oid,
    /// OID of its schema.
    pub schema: Oid,
    /// Its name.
    pub name: String,
    /// Names and types of its columns.
    pub columns: Vec<(String, SqlType)>,
    /// The query, as SQL text.
    pub query: String,
    /// OIDs of the relations that it reads.
    pub reads: Vec<Oid>,
}

/// What a name in FROM may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Relation {
    /// A table.
    Table(Table),
    /// A view.
    View(View),
    /// A sequence.
    Sequence(Sequence),
}
