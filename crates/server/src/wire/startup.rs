//! The first packet of a connection: start-up parameters, or a request for encryption or cancellation.

use super::frontend::Body;
use sql::{SqlError, SqlState};

/// The newest minor version of protocol 3 that is spoken here.
pub const MINOR_VERSION: u32 = 0;
const CANCEL_REQUEST: u32 = (1234 << 16) | 5678;
const SSL_REQUEST: u32 = (1234 << 16) | 5679;
const GSSENC_REQUEST: u32 = (1234 << 16) | 5680;
/// The greatest number of start-up parameters.
const PARAMETERS_MAX: usize = 100;

/// What the first packet asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum StartupPacket<'a> {
    /// TLS or GSSAPI: answered `N`; another packet follows.
    Encryption,
    /// End the statement of another session.
    Cancel {
        /// Its process id.
        pid: i32,
        /// Its secret.
        secret: i32,
    },
    /// A session.
    Session {
        /// Minor version asked for.
        minor: u32,
        /// Names and values, in order.
        parameters: Vec<(&'a str, &'a str)>,
    },
}

/// Reads a start-up packet (without its length).
///
/// # Errors
/// 0A000 for another major version, 08P01 for another shape.
pub fn read(bytes: &[u8]) -> Result<StartupPacket<'_>, SqlError> {
    let mut body = Body::new(bytes);
    let version = body.int32()? as u32;
    match version {
        SSL_REQUEST | GSSENC_REQUEST => return Ok(StartupPacket::Encryption),
        CANCEL_REQUEST => return Ok(StartupPacket::Cancel { pid: body.int32()?, secret: body.int32()? }),
        _ => {}
    }
    let (major, minor) = (version >> 16, version & 0xffff);
    if major != 3 {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("unsupported frontend protocol {major}.{minor}: server supports 3.{MINOR_VERSION}"),
        ));
    }
    let mut parameters = Vec::new();
    loop {
        let name = body.string()?;
        if name.is_empty() {
            break;
        }
        parameters.push((name, body.string()?));
        if parameters.len() > PARAMETERS_MAX {
            let message = format!("invalid startup packet: more than {PARAMETERS_MAX} parameters");
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
    }
    if !body.remaining().is_empty() {
        let message = "invalid startup packet layout: expected terminator as last byte";
        return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
    }
    Ok(StartupPacket::Session { minor, parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_and_requests() {
        assert_eq!(read(&SSL_REQUEST.to_be_bytes()).unwrap(), StartupPacket::Encryption);
        let cancel = [CANCEL_REQUEST.to_be_bytes(), 7u32.to_be_bytes(), 9u32.to_be_bytes()].concat();
        assert_eq!(read(&cancel).unwrap(), StartupPacket::Cancel { pid: 7, secret: 9 });
        let session = b"\0\x03\0\x02user\0root\0database\0demo\0\0";
        let parameters = vec![("user", "root"), ("database", "demo")];
        assert_eq!(read(session).unwrap(), StartupPacket::Session { minor: 2, parameters });
    }

    #[test]
    fn other_shapes_are_refused() {
        for bad in [b"\0\x02\0\0user\0x\0\0".as_slice(), b"\0\x03\0\0user\0x\0", b"\0\x03\0\0\0x", b"\0\x03", b""] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
