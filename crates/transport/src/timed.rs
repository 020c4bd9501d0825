//! Reading and writing a whole message until a deadline, however slowly the other end goes.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it took too long")
}

fn left(deadline: Instant) -> io::Result<std::time::Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    // A timeout of zero would mean none.
    if left.is_zero() { Err(late()) } else { Ok(left) }
}

fn named(e: io::Error) -> io::Error {
    if e.kind() == io::ErrorKind::WouldBlock { late() } else { e }
}

/// Fills the buffer.
pub(crate) fn read_exact(mut stream: &TcpStream, mut buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(buffer) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it was closed by the other end")),
            Ok(n) => buffer = &mut buffer[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(named(e)),
        }
    }
    Ok(())
}

/// Reads so many bytes; memory is taken as they arrive, not as they are announced.
pub(crate) fn read_bytes(stream: &TcpStream, len: usize, deadline: Instant) -> io::Result<Vec<u8>> {
    const STEP: usize = 4096;
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let from = bytes.len();
        bytes.resize(len.min(from + STEP), 0);
        read_exact(stream, &mut bytes[from..], deadline)?;
    }
    Ok(bytes)
}

/// Writes it all.
pub(crate) fn write_all(mut stream: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(named(e)),
        }
    }
    Ok(())
}
