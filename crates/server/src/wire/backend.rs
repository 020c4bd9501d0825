//! Messages to the client, as bytes appended to a buffer.

use sql::{SqlError, SqlState};

/// Begins a message: its type and a length to be filled in. Gives back where [`end`] finds it.
pub fn begin(out: &mut Vec<u8>, tag: u8) -> usize {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

/// Ends the message that began at `at`: fills its length in.
pub fn end(out: &mut [u8], at: usize) {
    // The outbox leaves for the client long before a message reaches 2 GiB: values are bounded, rows too.
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// A string with its closing zero. Zero bytes inside cannot be said on the wire and are left out.
pub fn string(out: &mut Vec<u8>, text: &str) {
    if text.as_bytes().contains(&0) {
        out.extend(text.bytes().filter(|b| *b != 0));
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(0);
}

/// A message without a body.
pub fn bare(out: &mut Vec<u8>, tag: u8) {
    out.extend_from_slice(&[tag, 0, 0, 0, 4]);
}

/// `AuthenticationOk`.
pub fn authentication_ok(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'R', 0, 0, 0, 8, 0, 0, 0, 0]);
}

/// `BackendKeyData`: what a CancelRequest must name.
pub fn backend_key(out: &mut Vec<u8>, pid: i32, secret: i32) {
    let at = begin(out, b'K');
    out.extend_from_slice(&pid.to_be_bytes());
    out.extend_from_slice(&secret.to_be_bytes());
    end(out, at);
}

/// `NegotiateProtocolVersion`: the newest minor version spoken here, and the options not known.
pub fn negotiate_version(out: &mut Vec<u8>, minor: u32, unknown: &[&str]) {
    let at = begin(out, b'v');
    out.extend_from_slice(&((3 << 16) | minor).to_be_bytes());
    out.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
    for name in unknown {
        string(out, name);
    }
    end(out, at);
}

/// `ParameterStatus`.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    let at = begin(out, b'S');
    string(out, name);
    string(out, value);
    end(out, at);
}

/// `ReadyForQuery`: `I` idle, `T` in a transaction, `E` in a failed one.
pub fn ready_for_query(out: &mut Vec<u8>, status: u8) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
}

/// `CommandComplete`.
pub fn command_complete(out: &mut Vec<u8>, tag: &str) {
    let at = begin(out, b'C');
    string(out, tag);
    end(out, at);
}

/// How bad it is: decides what the client does with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The connection ends.
    Fatal,
    /// The statement failed.
    Error,
    /// The statement went on; NOTICE where the state is 00000, else WARNING.
    Notice,
}

impl Severity {
    fn word(self, state: SqlState) -> &'static str {
        match self {
            Severity::Fatal => "FATAL",
            Severity::Error => "ERROR",
            Severity::Notice if state == SqlState::SUCCESS => "NOTICE",
            Severity::Notice => "WARNING",
        }
    }
}

/// `ErrorResponse` or `NoticeResponse`, with every field that is known.
pub fn error(out: &mut Vec<u8>, severity: Severity, error: &SqlError) {
    let at = begin(out, if severity == Severity::Notice { b'N' } else { b'E' });
    let word = severity.word(error.state);
    let mut field = |code: u8, text: &str| {
        out.push(code);
        string(out, text);
    };
    field(b'S', word);
    field(b'V', word);
    field(b'C', error.state.as_str());
    field(b'M', &error.message);
    if let Some(position) = error.position {
        field(b'P', &position.to_string());
    }
    let texts = [
        (b'D', &error.detail),
        (b'H', &error.hint),
        (b't', &error.table),
        (b'c', &error.column),
        (b'n', &error.constraint),
    ];
    for (code, text) in texts {
        if let Some(text) = text {
            field(code, text);
        }
    }
    if let Some(routine) = error.routine {
        field(b'R', routine);
    }
    out.push(0);
    end(out, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_carries_its_fields() {
        let mut out = Vec::new();
        let e = SqlError::new(SqlState::UNIQUE_VIOLATION, "twice").detail("d").constraint("t", "t_pkey");
        error(&mut out, Severity::Error, &e);
        assert_eq!(out, b"E\0\0\0\x2fSERROR\0VERROR\0C23505\0Mtwice\0Dd\0tt\0nt_pkey\0\0");
        assert_eq!(u32::from_be_bytes([out[1], out[2], out[3], out[4]]) as usize, out.len() - 1);
    }

    #[test]
    fn zero_bytes_cannot_end_a_string_early() {
        let mut out = Vec::new();
        command_complete(&mut out, "SEL\0ECT");
        assert_eq!(out, b"C\0\0\0\x0bSELECT\0");
    }
}
