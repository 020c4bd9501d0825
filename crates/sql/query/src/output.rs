//! Where a session's answers go. The wire implements it; tests collect.

use crate::types::EvalSettings;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};

/// Greatest row of a result, or line of COPY, bytes as they are sent. Its length has 32 bits, and it is in memory as a whole.
pub const ROW_BYTES_MAX: usize = 64 << 20;

/// Whether a row may be sent.
///
/// # Errors
/// 54000 beyond [`ROW_BYTES_MAX`].
pub fn check_row(bytes: usize) -> Result<(), SqlError> {
    if bytes <= ROW_BYTES_MAX {
        return Ok(());
    }
    let message = format!("a row of more than {ROW_BYTES_MAX} bytes cannot be sent");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        .hint("Ask for fewer columns at once, or for parts of large values."))
}

/// One column of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// OID of the table it comes from; 0 if none.
    pub table_oid: u32,
    /// Number of the column in that table, from 1; 0 if none.
    pub column: u16,
}

/// A place in the output to which it can be rewound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub u64);

/// Receives a session's answers, in protocol order. Calls only buffer, except where the buffer is full.
pub trait Output {
    /// A result's shape (simple protocol, and describe).
    fn row_description(&mut self, fields: &[Field], formats: &[i16]);
    /// One row; `formats` as given at bind: none = all text, one = for all, else one each (0 text, 1 binary).
    /// Text forms follow `settings`.
    fn row(
        &mut self,
        values: &[Value],
        fields: &[Field],
        formats: &[i16],
        settings: &EvalSettings,
    ) -> Result<(), SqlError>;
    /// A statement is done: its tag, such as `INSERT 0 1`.
    fn command_complete(&mut self, tag: &str);
    /// The text was empty.
    fn empty_query(&mut self);
    /// A NOTICE or WARNING.
    fn notice(&mut self, notice: &SqlError);
    /// A setting that clients follow has changed.
    fn parameter_status(&mut self, name: &str, value: &str);
    /// `COPY FROM STDIN` begins: the client is asked for data in `columns` columns (text format).
    fn copy_in(&mut self, columns: usize, binary: bool);
    /// `COPY TO STDOUT` begins.
    fn copy_out(&mut self, columns: usize, binary: bool);
    /// A line of `COPY TO STDOUT`.
    fn copy_data(&mut self, line: &[u8]) -> Result<(), SqlError>;
    /// `COPY TO STDOUT` ends.
    fn copy_done(&mut self);
    /// Where the output stands.
    fn mark(&self) -> Mark;
    /// Takes back everything since the mark; `false` (and no change) if some of it has left for the client.
    fn rewind(&mut self, mark: Mark) -> bool;
}

/// Takes everything, and drops it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Output for Nowhere {
    fn row_description(&mut self, _: &[Field], _: &[i16]) {}
    fn row(&mut self, _: &[Value], _: &[Field], _: &[i16], _: &EvalSettings) -> Result<(), SqlError> {
        Ok(())
    }
    fn command_complete(&mut self, _: &str) {}
    fn empty_query(&mut self) {}
    fn notice(&mut self, _: &SqlError) {}
    fn parameter_status(&mut self, _: &str, _: &str) {}
    fn copy_in(&mut self, _: usize, _: bool) {}
    fn copy_out(&mut self, _: usize, _: bool) {}
    fn copy_data(&mut self, _: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_done(&mut self) {}
    fn mark(&self) -> Mark {
        Mark(0)
    }
    fn rewind(&mut self, _: Mark) -> bool {
        true
    }
}
