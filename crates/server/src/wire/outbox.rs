//! The send buffer: a session's answers, written once and sent together.

use super::backend::{self, Severity};
use super::value;
use sql::context::EvalSettings;
use sql::output::{Mark, check_row};
use sql::types::{SqlType, Value};
use sql::{Field, Output, SqlError, SqlState};
use std::io::{self, ErrorKind, Write};

/// Answers leave by themselves once so many bytes wait. Until then a statement can be run again without the client noticing.
pub const SEND_BYTES: usize = 256 << 10;
/// Capacity kept between batches.
const KEEP_BYTES: usize = 64 << 10;

/// Whether to go on waiting for a client that has read nothing for as long as the socket waits.
type MayWait = Box<dyn Fn() -> bool + Send + Sync>;

/// A send buffer over a stream.
pub struct Outbox<W> {
    buffer: Vec<u8>,
    sent_bytes: u64,
    stream: W,
    broken: Option<io::ErrorKind>,
    may_wait: Option<MayWait>,
}

impl<W: Write> Outbox<W> {
    /// An empty outbox over `stream`.
    pub fn new(stream: W) -> Self {
        Outbox { buffer: Vec::with_capacity(8 << 10), sent_bytes: 0, stream, broken: None, may_wait: None }
    }

    /// Asks this whenever the stream has taken nothing for as long as it waits, and gives the client up where the answer is no.
    pub fn waiting_while(self, may_wait: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Outbox { may_wait: Some(Box::new(may_wait)), ..self }
    }

    /// The waiting bytes: [`backend`] appends to them.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Whether a send failed: nobody hears us any more.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// Those of the socket; from then on everything is dropped.
    pub fn flush(&mut self) -> io::Result<()> {
        if let Some(kind) = self.broken {
            self.buffer.clear();
            return Err(kind.into());
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(e) = self.send() {
            self.broken = Some(e.kind());
            self.buffer.clear();
            return Err(e);
        }
        self.sent_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        if self.buffer.capacity() > SEND_BYTES {
            self.buffer.shrink_to(KEEP_BYTES);
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let mut rest = &self.buffer[..];
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => rest = &rest[sent..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if !self.may_wait.as_ref().is_some_and(|may_wait| may_wait()) {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn relieve(&mut self) -> Result<(), SqlError> {
        if self.buffer.len() < SEND_BYTES {
            return Ok(());
        }
        self.flush().map_err(|e| SqlError::new(SqlState(*b"08006"), format!("could not send data to client: {e}")))
    }

    /// An error of the current statement.
    pub fn error(&mut self, error: &SqlError) {
        backend::error(&mut self.buffer, Severity::Error, error);
    }
}

/// The format of column `i`.
fn format_of(formats: &[i16], i: usize) -> i16 {
    match formats {
        [] => 0,
        [one] => *one,
        each => each.get(i).copied().unwrap_or(0),
    }
}

impl<W: Write> Output for Outbox<W> {
    fn row_description(&mut self, fields: &[Field], formats: &[i16]) {
        let at = backend::begin(&mut self.buffer, b'T');
        self.buffer.extend_from_slice(&(fields.len() as u16).to_be_bytes());
        for (i, field) in fields.iter().enumerate() {
            backend::string(&mut self.buffer, &field.name);
            self.buffer.extend_from_slice(&field.table_oid.to_be_bytes());
            self.buffer.extend_from_slice(&field.column.to_be_bytes());
            self.buffer.extend_from_slice(&field.ty.oid().to_be_bytes());
            self.buffer.extend_from_slice(&field.ty.typlen().to_be_bytes());
            self.buffer.extend_from_slice(&field.ty.typmod().to_be_bytes());
            self.buffer.extend_from_slice(&format_of(formats, i).to_be_bytes());
        }
        backend::end(&mut self.buffer, at);
    }

    fn row(
        &mut self,
        values: &[Value],
        fields: &[Field],
        formats: &[i16],
        settings: &EvalSettings,
    ) -> Result<(), SqlError> {
        let before = self.buffer.len();
        let at = backend::begin(&mut self.buffer, b'D');
        self.buffer.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for (i, value) in values.iter().enumerate() {
            let ty = fields.get(i).map_or(&SqlType::Unknown, |f| &f.ty);
            value::write(&mut self.buffer, value, ty, format_of(formats, i), settings);
            if let Err(error) = check_row(self.buffer.len() - at) {
                self.buffer.truncate(before);
                return Err(error);
            }
        }
        backend::end(&mut self.buffer, at);
        self.relieve()
    }

    fn command_complete(&mut self, tag: &str) {
        backend::command_complete(&mut self.buffer, tag);
    }
    fn empty_query(&mut self) {
        backend::bare(&mut self.buffer, b'I');
    }
    fn notice(&mut self, notice: &SqlError) {
        backend::error(&mut self.buffer, Severity::Notice, notice);
    }
    fn parameter_status(&mut self, name: &str, value: &str) {
        backend::parameter_status(&mut self.buffer, name, value);
    }
    fn copy_in(&mut self, columns: usize, binary: bool) {
        copy_begin(&mut self.buffer, b'G', columns, binary);
    }
    fn copy_out(&mut self, columns: usize, binary: bool) {
        copy_begin(&mut self.buffer, b'H', columns, binary);
    }
    fn copy_data(&mut self, line: &[u8]) -> Result<(), SqlError> {
        let at = backend::begin(&mut self.buffer, b'd');
        self.buffer.extend_from_slice(line);
        backend::end(&mut self.buffer, at);
        self.relieve()
    }
    fn copy_done(&mut self) {
        backend::bare(&mut self.buffer, b'c');
    }
    fn mark(&self) -> Mark {
        Mark(self.sent_bytes + self.buffer.len() as u64)
    }
    fn rewind(&mut self, mark: Mark) -> bool {
        let Some(kept) = mark.0.checked_sub(self.sent_bytes) else { return false };
        self.buffer.truncate(kept as usize);
        true
    }
}

/// `CopyInResponse` and `CopyOutResponse`: every column in text.
fn copy_begin(out: &mut Vec<u8>, tag: u8, columns: usize, binary: bool) {
    let at = backend::begin(out, tag);
    out.push(u8::from(binary));
    out.extend_from_slice(&(columns as u16).to_be_bytes());
    for _ in 0..columns {
        out.extend_from_slice(&u16::from(binary).to_be_bytes());
    }
    backend::end(out, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, ty: SqlType) -> Field {
        Field { name: name.into(), ty, table_oid: 7, column: 2 }
    }

    #[test]
    fn rows_follow_their_formats() {
        let mut out = Outbox::new(Vec::new());
        let fields = [field("a", SqlType::Int4), field("b", SqlType::Int4), field("c", SqlType::Text)];
        let settings = EvalSettings::default();
        let row = [Value::Int4(7), Value::Int4(7), Value::Null];
        out.row(&row, &fields, &[0, 1, 0], &settings).unwrap();
        let expected = b"D\0\0\0\x17\0\x03\0\0\0\x017\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff";
        assert_eq!(out.buffer, expected);
        out.buffer.clear();
        out.row_description(&fields[..1], &[]);
        assert_eq!(out.buffer, b"T\0\0\0\x1a\0\x01a\0\0\0\0\x07\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
    }

    #[test]
    fn a_row_that_is_too_large_leaves_nothing_behind() {
        let mut out = Outbox::new(Vec::new());
        out.command_complete("A");
        let (large, mark) = (Value::text("x".repeat(16 << 20)), out.mark());
        let (fields, settings) = (vec![field("s", SqlType::Text); 300], EvalSettings::default());
        let error = out.row(&vec![large; 300], &fields, &[], &settings).unwrap_err();
        assert_eq!((error.state, out.mark()), (SqlState::PROGRAM_LIMIT_EXCEEDED, mark));
    }

    #[test]
    fn what_has_left_is_not_taken_back() {
        let mut out = Outbox::new(Vec::new());
        out.command_complete("A");
        let mark = out.mark();
        out.command_complete("B");
        assert!(out.rewind(mark));
        out.flush().unwrap();
        assert_eq!(out.stream, b"C\0\0\0\x06A\0");
        assert!(out.rewind(mark), "nothing was written since");
        out.command_complete("C");
        out.flush().unwrap();
        assert!(!out.rewind(mark));
    }

    #[test]
    fn a_full_buffer_leaves_by_itself() {
        let mut out = Outbox::new(Vec::new());
        let line = vec![b'x'; 1 << 10];
        for _ in 0..300 {
            out.copy_data(&line).unwrap();
        }
        assert!(out.stream.len() >= SEND_BYTES && out.buffer.len() < SEND_BYTES);
        assert_eq!(out.mark(), Mark(300 * (5 + (1 << 10))));
    }

    /// Takes nothing.
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_client_that_went_away_ends_the_statement() {
        let mut out = Outbox::new(Gone);
        let line = vec![b'x'; SEND_BYTES];
        assert_eq!(out.copy_data(&line).unwrap_err().state, SqlState(*b"08006"));
        assert!(out.is_broken());
        assert!(out.copy_data(&line).is_err(), "it stays gone, and nothing piles up");
        assert!(out.buffer.is_empty());
    }
}
