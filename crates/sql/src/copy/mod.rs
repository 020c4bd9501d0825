//! The formats of COPY: text, csv and binary, as PostgreSQL reads and writes them.
//!
//! ```text
//! bytes in any chunks --LineSplitter--> lines --CopyFormat::decode--> values
//! values --CopyFormat::encode--> one line each
//! ```
//! (in binary format a [`TupleSplitter`] in place of the first, and tuples in place of lines)
//!
//! The splitter knows just enough of a format to find where a row ends: in csv a newline within quotes is data, in text one behind a
//! backslash. A line longer than [`LINE_BYTES_MAX`] is refused before it fills memory.

mod binary;
mod decode;
mod encode;
mod format;
mod splitter;

pub use binary::{HEADER, TRAILER, TupleSplitter};
pub use format::CopyFormat;
pub use splitter::{LINE_BYTES_MAX, Splitter};

#[cfg(test)]
mod tests;
