//! Plans: what a statement's text becomes, once, for many executions.

use crate::SqlError;
use crate::context::StatementContext;
use crate::output::Field;
use crate::types::{Row, SqlType};
use std::sync::Arc;

/// A planned statement: immutable, shared between sessions, valid for one version of the catalog.
pub trait Plan: Send + Sync {
    /// Types of `$1`...
    fn parameters(&self) -> &[SqlType];
    /// Shape of the result; empty if the statement returns no rows.
    fn fields(&self) -> &[Field];
    /// Runs it. What must happen before the first row leaves (all of a DML statement) has happened when this returns.
    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError>;
    /// Lines of EXPLAIN.
    fn explain(&self) -> Vec<String>;
    /// Whether it only reads.
    fn is_read_only(&self) -> bool;
}

/// What an execution gives.
pub enum Execution {
    /// Rows to pull; the tag is `SELECT n` with the number of rows pulled.
    Rows(Box<dyn RowSource>),
    /// Done: a tag such as `UPDATE 3`, with the rows of RETURNING if there are any.
    Done {
        /// The command tag.
        tag: String,
        /// Rows of RETURNING.
        rows: Vec<Row>,
    },
}

/// Rows that are pulled.
pub trait RowSource: Send {
    /// Up to `max` further rows (at least one unless at the end); empty at the end.
    fn next(&mut self, max: usize) -> Result<Vec<Row>, SqlError>;
}
