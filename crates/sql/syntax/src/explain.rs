//! What EXPLAIN is asked for.

use crate::types::SqlType;

/// How a plan is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines.
    Text,
    /// One JSON value.
    Json,
}

/// What stands in the parentheses of EXPLAIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// ANALYZE: run it.
    pub analyze: bool,
    /// VERBOSE: columns too.
    pub verbose: bool,
    /// COSTS: estimates.
    pub costs: bool,
    /// TIMING: times of operators.
    pub timing: bool,
    /// SUMMARY: times of the whole; with ANALYZE, if it does not say otherwise.
    pub summary: Option<bool>,
    /// FORMAT.
    pub format: Format,
}

impl Default for Options {
    fn default() -> Self {
        Options { analyze: false, verbose: false, costs: true, timing: true, summary: None, format: Format::Text }
    }
}

impl Options {
    /// Type of the column that comes.
    pub fn ty(&self) -> SqlType {
        match self.format {
            Format::Text => SqlType::Text,
            Format::Json => SqlType::Json,
        }
    }
}
