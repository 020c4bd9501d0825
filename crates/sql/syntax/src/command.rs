//! What a statement asks for.

use super::ddl::{Ddl, ObjectKind};
use super::explain::Options;
use super::name::Name;
use crate::SqlError;
use crate::transaction::{Consistency, Isolation};
use sqlparser::ast::{DataType, Statement};
use std::sync::Arc;

/// One statement.
#[derive(Clone, Debug)]
pub enum Command {
    /// A query, INSERT, UPDATE or DELETE: goes to the planner.
    Planned(Planned),
    /// BEGIN, START TRANSACTION
    Begin(Modes),
    /// COMMIT, END; with AND CHAIN?
    Commit {
        /// Begin another.
        chain: bool,
    },
    /// ROLLBACK, ABORT
    Rollback {
        /// Begin another.
        chain: bool,
    },
    /// SAVEPOINT
    Savepoint(String),
    /// RELEASE
    Release(String),
    /// ROLLBACK TO
    RollbackTo(String),
    /// SET TRANSACTION
    SetTransaction(Modes),
    /// SET SESSION CHARACTERISTICS AS TRANSACTION
    SetCharacteristics(Modes),
    /// SET CONSTRAINTS
    SetConstraints {
        /// Which; `None` is ALL.
        names: Option<Vec<Name>>,
        /// DEFERRED, else IMMEDIATE.
        deferred: bool,
    },
    /// SET, RESET (no value)
    Set {
        /// LOCAL: until the transaction ends.
        local: bool,
        /// Name, lower case.
        name: String,
        /// New value as text; `None` is DEFAULT.
        value: Option<String>,
    },
    /// RESET ALL
    ResetAll,
    /// SHOW
    Show(String),
    /// SHOW ALL
    ShowAll,
    /// A SHOW form of CockroachDB or ours that is short for a query.
    ShowQuery(String),
    /// DISCARD
    Discard(Discard),
    /// PREPARE
    Prepare {
        /// Its name.
        name: String,
        /// Declared parameter types.
        types: Vec<DataType>,
        /// What to run, and its text.
        statement: Arc<Planned>,
        /// Its text.
        text: Arc<str>,
    },
    /// EXECUTE
    Execute {
        /// Which prepared statement.
        name: String,
        /// Its arguments, as text of constant expressions.
        arguments: Vec<String>,
    },
    /// DEALLOCATE; `None` is ALL
    Deallocate(Option<String>),
    /// DECLARE .. CURSOR FOR
    Declare {
        /// Its name.
        name: String,
        /// SCROLL, NO SCROLL, or neither.
        direction: Direction,
        /// WITH HOLD.
        hold: bool,
        /// The query.
        query: Arc<Planned>,
        /// Its text.
        text: Arc<str>,
    },
    /// FETCH, MOVE
    Fetch {
        /// Which cursor.
        name: String,
        /// Where to.
        movement: Move,
        /// MOVE: without giving them.
        skip: bool,
    },
    /// CLOSE; `None` is ALL
    Close(Option<String>),
    /// EXPLAIN
    Explain {
        /// What is asked of it.
        options: Options,
        /// What to explain.
        statement: Arc<Planned>,
        /// Its text.
        text: Arc<str>,
    },
    /// EXPLAIN EXECUTE
    ExplainExecute {
        /// What is asked of it.
        options: Options,
        /// Which prepared statement.
        name: String,
        /// Its arguments, as text of constant expressions.
        arguments: Vec<String>,
    },
    /// COPY
    Copy(Box<Copy>),
    /// A change of the catalog
    Ddl(Box<Ddl>),
    /// ANALYZE, VACUUM ANALYZE
    Analyze {
        /// Its command tag.
        tag: &'static str,
        /// Refused inside a block (VACUUM).
        outside_block: bool,
        /// Which tables, and columns of them that must be there; none: all of the database.
        tables: Vec<(Name, Vec<String>)>,
    },
    /// Accepted without effect.
    Nothing {
        /// Its command tag.
        tag: &'static str,
        /// What the client is told.
        notice: Option<String>,
        /// Refused inside a block (VACUUM).
        outside_block: bool,
        /// What it names, which must exist all the same.
        mentions: Box<Mentions>,
    },
    /// DROP ROLE, DROP OWNED, REASSIGN OWNED: refused for the roles that exist.
    Roles(Roles),
    /// LOCK TABLE
    LockTable(Vec<Name>),
}

/// What a statement without effect names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Roles, PUBLIC and the current ones left out.
    pub roles: Vec<String>,
    /// Tables, views, sequences, indexes.
    pub relations: Vec<Name>,
    /// Schemas.
    pub schemas: Vec<String>,
    /// Databases.
    pub databases: Vec<String>,
    /// Extensions.
    pub extensions: Vec<String>,
    /// Relations and indexes that must be of a kind; none is a database.
    pub kinds: Vec<(ObjectKind, Name)>,
    /// Constraints, and their tables.
    pub constraints: Vec<(String, Name)>,
    /// Columns, and their relations.
    pub columns: Vec<(Name, String)>,
    /// Functions, procedures, aggregates.
    pub functions: Vec<Routine>,
    /// Operator classes and families of btree, and which of both.
    pub classes: Vec<(Name, &'static str)>,
    /// Settings.
    pub parameters: Vec<String>,
    /// What can never have been made here.
    pub missing: Option<SqlError>,
    /// Relations on which something is granted; whether that is USAGE, which only sequences have.
    pub granted: Vec<(Name, bool)>,
    /// A privilege that what it is granted on does not have: told when all that is named is there.
    pub privilege: Option<SqlError>,
}

/// A function by its name, and the types of its arguments if they are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// `function`, `procedure`, `routine` or `aggregate`.
    pub word: &'static str,
    /// Its name.
    pub name: Name,
    /// Types, by their names.
    pub arguments: Option<Vec<String>>,
}

/// A statement about roles that cannot be done to the one there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Its command tag.
    pub tag: &'static str,
    /// Which.
    pub names: Vec<String>,
    /// IF EXISTS
    pub if_exists: bool,
    /// Why it cannot be done, before the role's name.
    pub refusal: &'static str,
}

/// A statement for the planner.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its syntax tree.
    pub statement: Statement,
    /// AS OF SYSTEM TIME.
    pub as_of: Option<AsOf>,
    /// OVERRIDING.
    pub overriding: Option<Overriding>,
    /// ON CONFLICT with expressions or a predicate.
    pub inference: Option<Arc<Inference>>,
}

/// `ON CONFLICT (keys) WHERE predicate`: which unique indexes are meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Inference {
    /// Columns and expressions.
    pub keys: Vec<sqlparser::ast::Expr>,
    /// The predicate of a partial index.
    pub predicate: Option<sqlparser::ast::Expr>,
}

/// `INSERT .. OVERRIDING { SYSTEM | USER } VALUE`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overriding {
    /// Explicit values win even over GENERATED ALWAYS.
    System,
    /// Explicit values of identity columns are ignored.
    User,
}

/// AS OF SYSTEM TIME: an expression that is evaluated before the transaction begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// An interval (`-10s`), a timestamp, or a decimal of nanoseconds since the Unix epoch.
    At(Moment),
    /// `follower_read_timestamp()`
    FollowerRead,
    /// `with_max_staleness(interval)`
    MaxStaleness(Moment),
    /// `with_min_timestamp(timestamp)`
    MinTimestamp(Moment),
    /// `with_negotiated_timestamp([interval])`
    Negotiated(Option<Moment>),
}

impl AsOf {
    /// The parameter that says it, counted from 0.
    pub fn parameter(&self) -> Option<usize> {
        match self {
            AsOf::At(Moment::Parameter(index))
            | AsOf::MaxStaleness(Moment::Parameter(index))
            | AsOf::MinTimestamp(Moment::Parameter(index))
            | AsOf::Negotiated(Some(Moment::Parameter(index))) => Some(*index),
            _ => None,
        }
    }
}

/// A time, or how long ago, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// In a literal.
    Text(String),
    /// In a parameter of the statement, counted from 0.
    Parameter(usize),
}

/// Modes of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// ISOLATION LEVEL
    pub isolation: Option<Isolation>,
    /// READ UNCOMMITTED was said, which is READ COMMITTED under another name.
    pub uncommitted: bool,
    /// READ ONLY or READ WRITE
    pub read_only: Option<bool>,
    /// DEFERRABLE or not: a snapshot never aborts a reader here, so there is nothing to defer
    pub deferrable: Option<bool>,
    /// AS OF SYSTEM TIME
    pub as_of: Option<AsOf>,
    /// CONSISTENCY
    pub consistency: Option<Consistency>,
}

/// What DISCARD drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// ALL
    All,
    /// PLANS
    Plans,
    /// SEQUENCES
    Sequences,
    /// TEMP: there are none
    Temp,
}

/// COPY
#[derive(Clone, Debug)]
pub struct Copy {
    /// What is copied.
    pub source: CopySource,
    /// FROM STDIN, else TO STDOUT.
    pub from: bool,
    /// Its options.
    pub options: CopyOptions,
}

/// What COPY copies.
#[derive(Clone, Debug)]
pub enum CopySource {
    /// A table, and some of its columns (none: all).
    Table(Name, Vec<String>),
    /// A query and its text.
    Query(Arc<Planned>, Arc<str>),
}

/// Where to a cursor may go, as it was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// NO SCROLL, or of a query that locks.
    Forward,
    /// Nothing was said.
    Open,
    /// SCROLL
    Both,
}

/// Where a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// FORWARD n, BACKWARD n (negative), NEXT, PRIOR: over so many rows, each of which is given. By 0: the present row.
    By(i64),
    /// FORWARD ALL
    ToEnd,
    /// BACKWARD ALL
    ToStart,
    /// ABSOLUTE n, FIRST, LAST (-1): to a row, from the end if negative.
    To(i64),
    /// RELATIVE n: over so many rows, of which the last one is given.
    Over(i64),
}

/// How COPY lays out a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyLayout {
    /// A line, fields between tabs.
    #[default]
    Text,
    /// A line, fields between commas, quoted where they must be.
    Csv,
    /// Counted fields in the types' binary forms.
    Binary,
}

/// Options of COPY, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// FORMAT
    pub layout: CopyLayout,
    /// FREEZE: load a table that this transaction created or truncated in the quickest way.
    pub freeze: bool,
    /// DELIMITER
    pub delimiter: Option<char>,
    /// NULL
    pub null: Option<String>,
    /// HEADER
    pub header: bool,
    /// QUOTE
    pub quote: Option<char>,
    /// ESCAPE
    pub escape: Option<char>,
    /// FORCE_QUOTE: columns; `*` is an empty list
    pub force_quote: Option<Vec<String>>,
    /// FORCE_NOT_NULL
    pub force_not_null: Vec<String>,
    /// FORCE_NULL
    pub force_null: Vec<String>,
}
