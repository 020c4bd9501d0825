//! Changes of the catalog, as asked for.

use super::command::Planned;
use super::name::Name;
use crate::catalog::{Collation, Deferral, Identity, ReferentialAction};
use sqlparser::ast::DataType;
use std::sync::Arc;

/// One DDL statement.
#[derive(Clone, Debug)]
pub enum Ddl {
    /// CREATE TABLE
    CreateTable(CreateTable),
    /// CREATE TABLE AS, SELECT INTO
    CreateTableAs {
        /// Its name.
        name: Name,
        /// Names of its columns, if given.
        columns: Vec<String>,
        /// IF NOT EXISTS
        if_not_exists: bool,
        /// The query.
        query: Arc<Planned>,
        /// Its text.
        text: Arc<str>,
        /// WITH NO DATA
        no_data: bool,
    },
    /// COMMENT ON TABLE or COLUMN
    Comment {
        /// The table.
        table: Name,
        /// Its column; `None` is the table itself.
        column: Option<String>,
        /// The text; `None` removes it.
        text: Option<String>,
    },
    /// ALTER TABLE
    AlterTable {
        /// Which.
        name: Name,
        /// IF EXISTS
        if_exists: bool,
        /// In order.
        actions: Vec<AlterAction>,
    },
    /// CREATE INDEX
    CreateIndex(CreateIndex),
    /// CREATE SEQUENCE
    CreateSequence {
        /// Its name.
        name: Name,
        /// IF NOT EXISTS
        if_not_exists: bool,
        /// Options.
        options: SequenceOptions,
    },
    /// ALTER SEQUENCE
    AlterSequence {
        /// Which.
        name: Name,
        /// IF EXISTS
        if_exists: bool,
        /// Options.
        options: SequenceOptions,
    },
    /// CREATE SCHEMA
    CreateSchema {
        /// Its name.
        name: String,
        /// IF NOT EXISTS
        if_not_exists: bool,
        /// AUTHORIZATION, by name.
        owner: Option<String>,
    },
    /// CREATE DATABASE
    CreateDatabase {
        /// Its name.
        name: String,
        /// IF NOT EXISTS (an extension)
        if_not_exists: bool,
        /// OWNER, by name.
        owner: Option<String>,
        /// TEMPLATE
        template: Option<String>,
    },
    /// CREATE EXTENSION
    CreateExtension {
        /// Its name.
        name: String,
        /// IF NOT EXISTS
        if_not_exists: bool,
        /// SCHEMA
        schema: Option<String>,
        /// VERSION
        version: Option<String>,
    },
    /// ALTER EXTENSION .. UPDATE
    UpdateExtension {
        /// Its name.
        name: String,
        /// TO
        version: Option<String>,
    },
    /// DROP EXTENSION
    DropExtension {
        /// Which.
        names: Vec<String>,
        /// IF EXISTS
        if_exists: bool,
    },
    /// CREATE VIEW
    CreateView {
        /// Its name.
        name: Name,
        /// OR REPLACE
        or_replace: bool,
        /// IF NOT EXISTS (an extension)
        if_not_exists: bool,
        /// Names of its columns, if given.
        columns: Vec<String>,
        /// The query.
        query: Arc<Planned>,
        /// Its text.
        text: Arc<str>,
    },
    /// DROP
    Drop {
        /// Of what kind.
        kind: ObjectKind,
        /// Which.
        names: Vec<Name>,
        /// IF EXISTS
        if_exists: bool,
        /// CASCADE
        cascade: bool,
    },
    /// TRUNCATE
    Truncate {
        /// Which tables.
        names: Vec<Name>,
        /// RESTART IDENTITY
        restart_identity: bool,
        /// CASCADE
        cascade: bool,
    },
    /// ALTER .. RENAME TO
    Rename {
        /// Of what kind.
        kind: ObjectKind,
        /// Which.
        name: Name,
        /// IF EXISTS
        if_exists: bool,
        /// The new name.
        to: String,
    },
    /// ALTER .. SET SCHEMA
    SetSchema {
        /// Of what kind.
        kind: ObjectKind,
        /// Which.
        name: Name,
        /// IF EXISTS
        if_exists: bool,
        /// The new schema.
        schema: String,
    },
    /// ALTER INDEX .. SPLIT AT VALUES
    SplitIndex {
        /// Which.
        name: Name,
        /// IF EXISTS
        if_exists: bool,
        /// Values of its first columns, as SQL text.
        rows: Vec<Vec<String>>,
    },
    /// ALTER SYSTEM RENEW TOKENS, ROTATE TOKENS
    RenewTokens {
        /// ROTATE: what was signed with the key before is taken for a while.
        rotate: bool,
    },
    /// ALTER DATABASE, ROLE, SYSTEM .. SET and RESET: what sessions begin with
    SetDefault {
        /// Of what.
        of: DefaultOf,
        /// What becomes of it.
        change: DefaultChange,
    },
}

/// Whose sessions begin with a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultOf {
    /// ALTER DATABASE
    Database(String),
    /// ALTER ROLE
    Role {
        /// `None`: ALL
        role: Option<DefaultRole>,
        /// IN DATABASE
        database: Option<String>,
    },
    /// ALTER SYSTEM: all of them
    System,
}

/// A role that ALTER ROLE names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultRole {
    /// By its name.
    Named(String),
    /// CURRENT_USER, SESSION_USER, CURRENT_ROLE
    Current,
}

/// What becomes of a setting that sessions begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultChange {
    /// SET name TO value; DEFAULT and RESET are `None`.
    Set(String, Option<String>),
    /// SET name FROM CURRENT
    FromCurrent(String),
    /// RESET ALL
    ResetAll,
}

impl Ddl {
    /// Its command, as PostgreSQL calls it.
    pub fn command(&self) -> String {
        let verb = match self {
            Ddl::CreateTable(_) => "CREATE TABLE",
            Ddl::CreateTableAs { .. } => "CREATE TABLE AS",
            Ddl::Comment { .. } => "COMMENT",
            Ddl::AlterTable { .. } => "ALTER TABLE",
            Ddl::SplitIndex { .. } => "ALTER INDEX",
            Ddl::CreateIndex(_) => "CREATE INDEX",
            Ddl::CreateSequence { .. } => "CREATE SEQUENCE",
            Ddl::AlterSequence { .. } => "ALTER SEQUENCE",
            Ddl::CreateSchema { .. } => "CREATE SCHEMA",
            Ddl::CreateDatabase { .. } => "CREATE DATABASE",
            Ddl::CreateExtension { .. } => "CREATE EXTENSION",
            Ddl::UpdateExtension { .. } => "ALTER EXTENSION",
            Ddl::DropExtension { .. } => "DROP EXTENSION",
            Ddl::CreateView { .. } => "CREATE VIEW",
            Ddl::Truncate { .. } => "TRUNCATE TABLE",
            Ddl::RenewTokens { .. } | Ddl::SetDefault { of: DefaultOf::System, .. } => "ALTER SYSTEM",
            Ddl::SetDefault { of: DefaultOf::Database(_), .. } => "ALTER DATABASE",
            Ddl::SetDefault { of: DefaultOf::Role { .. }, .. } => "ALTER ROLE",
            Ddl::Drop { kind, .. } => return format!("DROP {}", kind.word().to_uppercase()),
            Ddl::Rename { kind, .. } | Ddl::SetSchema { kind, .. } => {
                return format!("ALTER {}", kind.word().to_uppercase());
            }
        };
        verb.into()
    }
}

/// Kinds of objects that DROP and ALTER name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// TABLE
    Table,
    /// VIEW
    View,
    /// INDEX
    Index,
    /// SEQUENCE
    Sequence,
    /// SCHEMA
    Schema,
    /// DATABASE
    Database,
}

impl ObjectKind {
    /// Its word, lower case.
    pub fn word(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::View => "view",
            ObjectKind::Index => "index",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Schema => "schema",
            ObjectKind::Database => "database",
        }
    }
}

/// CREATE TABLE
#[derive(Clone, Debug, Default)]
pub struct CreateTable {
    /// Its name.
    pub name: Name,
    /// IF NOT EXISTS
    pub if_not_exists: bool,
    /// TEMPORARY
    pub temporary: bool,
    /// Columns.
    pub columns: Vec<ColumnDef>,
    /// Constraints of the table, after those of the columns.
    pub constraints: Vec<TableConstraint>,
    /// `INDEX (..)` elements (CockroachDB's form).
    pub indexes: Vec<CreateIndex>,
    /// `WITH (retention = ..)`, as it is written.
    pub retention: Option<String>,
    /// What was read and has no effect: told as a notice.
    pub ignored: Vec<String>,
}

/// A column as declared.
#[derive(Clone, Debug)]
pub struct ColumnDef {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: DataType,
    /// COLLATE
    pub collation: Option<Collation>,
    /// Its constraints, in order.
    pub constraints: Vec<ColumnConstraint>,
}

/// A constraint of one column.
#[derive(Clone, Debug)]
pub struct ColumnConstraint {
    /// Its name, if given.
    pub name: Option<String>,
    /// What it says.
    pub kind: ColumnConstraintKind,
}

/// What a column's constraint says.
#[derive(Clone, Debug)]
pub enum ColumnConstraintKind {
    /// NOT NULL
    NotNull,
    /// NULL
    Null,
    /// DEFAULT, as SQL text
    Default(String),
    /// PRIMARY KEY
    PrimaryKey,
    /// UNIQUE
    Unique,
    /// CHECK, as SQL text
    Check(String),
    /// REFERENCES
    References(References),
    /// GENERATED .. AS IDENTITY
    Identity(Identity, SequenceOptions),
    /// GENERATED ALWAYS AS (..) STORED, as SQL text
    Generated(String),
}

/// The other side of a foreign key.
#[derive(Clone, Debug)]
pub struct References {
    /// The table.
    pub table: Name,
    /// Its columns; none: its primary key.
    pub columns: Vec<String>,
    /// ON DELETE
    pub on_delete: ReferentialAction,
    /// ON UPDATE
    pub on_update: ReferentialAction,
    /// DEFERRABLE, INITIALLY
    pub deferral: Deferral,
}

/// A constraint of a table.
#[derive(Clone, Debug)]
pub struct TableConstraint {
    /// Its name, if given.
    pub name: Option<String>,
    /// What it says.
    pub kind: TableConstraintKind,
    /// INCLUDE, of a key
    pub include: Vec<String>,
}

/// What a table's constraint says.
#[derive(Clone, Debug)]
pub enum TableConstraintKind {
    /// PRIMARY KEY (..)
    PrimaryKey(Vec<String>),
    /// UNIQUE (..)
    Unique(Vec<String>),
    /// PRIMARY KEY or UNIQUE USING INDEX
    UsingIndex {
        /// PRIMARY KEY
        primary: bool,
        /// The index.
        index: String,
    },
    /// CHECK (..), as SQL text
    Check(String),
    /// FOREIGN KEY (..) REFERENCES ..
    ForeignKey(Vec<String>, References),
}

/// CREATE INDEX
#[derive(Clone, Debug, Default)]
pub struct CreateIndex {
    /// Its name, if given.
    pub name: Option<String>,
    /// The table.
    pub table: Name,
    /// What it orders.
    pub keys: Vec<IndexKey>,
    /// INCLUDE
    pub include: Vec<String>,
    /// WHERE, as SQL text
    pub predicate: Option<String>,
    /// UNIQUE
    pub unique: bool,
    /// IF NOT EXISTS
    pub if_not_exists: bool,
    /// CONCURRENTLY: without effect, nothing blocks here.
    pub concurrently: bool,
}

/// One key of an index as declared.
#[derive(Clone, Debug)]
pub struct IndexKey {
    /// What it holds.
    pub value: IndexValue,
    /// COLLATE
    pub collation: Option<Collation>,
    /// Its operator class, which must be one for its type: all of a type order alike here.
    pub operator_class: Option<Name>,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST or LAST, if it is not what the direction brings with it.
    pub nulls_first: Option<bool>,
}

/// What a key of an index holds.
#[derive(Clone, Debug)]
pub enum IndexValue {
    /// A column.
    Column(String),
    /// An expression, as SQL text, and the name that PostgreSQL would give it.
    Expression(String, String),
}

impl IndexKey {
    /// Its column, or the name of its expression.
    pub fn name(&self) -> &str {
        match &self.value {
            IndexValue::Column(name) | IndexValue::Expression(_, name) => name,
        }
    }
}

/// Options of a sequence; what is not said keeps its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SequenceOptions {
    /// AS
    pub ty: Option<DataType>,
    /// INCREMENT BY
    pub increment: Option<i64>,
    /// MINVALUE; `Some(None)` is NO MINVALUE
    pub min: Option<Option<i64>>,
    /// MAXVALUE; `Some(None)` is NO MAXVALUE
    pub max: Option<Option<i64>>,
    /// START WITH
    pub start: Option<i64>,
    /// RESTART; `Some(None)` is at START
    pub restart: Option<Option<i64>>,
    /// CYCLE or NO CYCLE
    pub cycle: Option<bool>,
    /// CACHE
    pub cache: Option<i64>,
    /// OWNED BY; `Some(None)` is NONE
    pub owned_by: Option<Option<(Name, String)>>,
    /// SEQUENCE NAME, for IDENTITY
    pub name: Option<Name>,
}

/// One action of ALTER TABLE.
#[derive(Clone, Debug)]
pub enum AlterAction {
    /// ADD COLUMN
    AddColumn {
        /// IF NOT EXISTS
        if_not_exists: bool,
        /// The column.
        column: ColumnDef,
    },
    /// DROP COLUMN
    DropColumn {
        /// IF EXISTS
        if_exists: bool,
        /// Its name.
        name: String,
        /// CASCADE
        cascade: bool,
    },
    /// RENAME COLUMN
    RenameColumn {
        /// Which.
        name: String,
        /// The new name.
        to: String,
    },
    /// ALTER VIEW .. RENAME COLUMN
    RenameViewColumn {
        /// Which.
        name: String,
        /// The new name.
        to: String,
    },
    /// RENAME CONSTRAINT
    RenameConstraint {
        /// Which.
        name: String,
        /// The new name.
        to: String,
    },
    /// ADD CONSTRAINT
    AddConstraint {
        /// The constraint.
        constraint: TableConstraint,
        /// NOT VALID: existing rows are not checked
        not_valid: bool,
    },
    /// DROP CONSTRAINT
    DropConstraint {
        /// IF EXISTS
        if_exists: bool,
        /// Its name.
        name: String,
        /// CASCADE
        cascade: bool,
    },
    /// VALIDATE CONSTRAINT
    ValidateConstraint(String),
    /// ALTER COLUMN
    AlterColumn {
        /// Which.
        name: String,
        /// How.
        change: ColumnChange,
    },
    /// SPLIT AT VALUES
    SplitAt(Vec<Vec<String>>),
    /// OWNER TO: a role by name; `None` is the current one.
    Owner(Option<String>),
    /// SET (retention = ..), as it is written; `None`: RESET
    Retention(Option<String>),
    /// CLUSTER ON, REPLICA IDENTITY USING INDEX: an index that must exist, and has no effect by that.
    NamesIndex(String),
    /// Accepted without effect: what the client is told, if anything.
    Ignored(Option<String>),
}

/// One change of a column.
#[derive(Clone, Debug)]
pub enum ColumnChange {
    /// SET DEFAULT, as SQL text
    SetDefault(String),
    /// DROP DEFAULT
    DropDefault,
    /// SET NOT NULL
    SetNotNull,
    /// DROP NOT NULL
    DropNotNull,
    /// TYPE
    Type {
        /// The new type.
        ty: DataType,
        /// COLLATE
        collation: Option<Collation>,
        /// USING, as SQL text
        using: Option<String>,
    },
    /// ADD GENERATED .. AS IDENTITY
    AddIdentity(Identity, SequenceOptions),
    /// SET GENERATED, and options of the sequence
    SetIdentity(Option<Identity>, SequenceOptions),
    /// DROP EXPRESSION
    DropExpression {
        /// IF EXISTS
        if_exists: bool,
    },
    /// DROP IDENTITY
    DropIdentity {
        /// IF EXISTS
        if_exists: bool,
    },
    /// SET STATISTICS, SET STORAGE, ..: without effect
    Ignored,
}
