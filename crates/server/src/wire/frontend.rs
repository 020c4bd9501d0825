//! Messages from the client, read where they lie in the inbox.

use sql::{SqlError, SqlState};

/// The greatest number of parameters: the count has 16 bits.
pub const PARAMETERS_MAX: usize = u16::MAX as usize;

/// What a name in Describe or Close names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// One message.
#[derive(Debug, PartialEq)]
pub enum Frontend<'a> {
    /// A simple query.
    Query(&'a str),
    /// Prepare.
    Parse {
        /// Name of the statement; empty for the unnamed one.
        name: &'a str,
        /// Its text.
        text: &'a str,
        /// OIDs of its first parameters; 0 where the client leaves it open.
        types: Vec<u32>,
    },
    /// Bind parameters to a statement.
    Bind(Bind<'a>),
    /// Describe a statement or portal.
    Describe(Target, &'a str),
    /// Run a portal, for at most so many rows (0: all).
    Execute {
        /// Name of the portal.
        portal: &'a str,
        /// 0 for all.
        max_rows: u32,
    },
    /// Close a statement or portal.
    Close(Target, &'a str),
    /// End of a batch.
    Sync,
    /// Send what there is.
    Flush,
    /// A piece of `COPY FROM STDIN`.
    CopyData(&'a [u8]),
    /// Its end.
    CopyDone,
    /// The client gave up, and says why.
    CopyFail(&'a str),
    /// The function-call sub-protocol: refused.
    FunctionCall,
    /// A password: nobody asked.
    Password,
    /// Goodbye.
    Terminate,
}

/// The body of a Bind message.
#[derive(Debug, PartialEq)]
pub struct Bind<'a> {
    /// Name of the portal; empty for the unnamed one.
    pub portal: &'a str,
    /// Name of the statement.
    pub statement: &'a str,
    /// Formats of the parameters: none = all text, one = for all, else one each.
    pub formats: Formats,
    /// The parameters, `None` for NULL.
    pub parameters: Parameters<'a>,
    /// Formats of the results, as `formats`.
    pub result_formats: Formats,
}

/// Format codes: 0 text, 1 binary.
pub type Formats = smallvec::SmallVec<[i16; 8]>;
/// Values of parameters in their wire form.
pub type Parameters<'a> = smallvec::SmallVec<[Option<&'a [u8]>; 8]>;

/// 08P01: the message does not have the shape that its type demands.
fn malformed(what: &str) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, format!("invalid message format: {what}"))
}

/// A message's body, consumed from the front.
pub struct Body<'a> {
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    /// Reads from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Body { rest: bytes }
    }
    fn take(&mut self, n: usize) -> Result<&'a [u8], SqlError> {
        let (head, rest) =
            self.rest.split_at_checked(n).ok_or_else(|| malformed("insufficient data left in message"))?;
        self.rest = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| malformed("insufficient data left in message"))
    }
    /// One byte.
    pub fn byte(&mut self) -> Result<u8, SqlError> {
        Ok(u8::from_be_bytes(self.array()?))
    }
    /// A 16-bit count or format code.
    pub fn int16(&mut self) -> Result<i16, SqlError> {
        Ok(i16::from_be_bytes(self.array()?))
    }
    /// A 32-bit number.
    pub fn int32(&mut self) -> Result<i32, SqlError> {
        Ok(i32::from_be_bytes(self.array()?))
    }
    /// A string that ends with a zero byte.
    pub fn string(&mut self) -> Result<&'a str, SqlError> {
        let end = self.rest.iter().position(|b| *b == 0).ok_or_else(|| malformed("a string does not end"))?;
        let bytes = self.take(end)?;
        self.take(1)?;
        std::str::from_utf8(bytes).map_err(|e| {
            let at = e.valid_up_to();
            let wrong = bytes[at..].iter().take(4).map(|b| format!("0x{b:02x}")).collect::<Vec<_>>().join(" ");
            SqlError::new(SqlState(*b"22021"), format!("invalid byte sequence for encoding \"UTF8\": {wrong}"))
        })
    }
    /// Whatever is left.
    pub fn remaining(&self) -> &'a [u8] {
        self.rest
    }
    /// A 16-bit count, then as many codes.
    fn formats(&mut self) -> Result<Formats, SqlError> {
        let count = self.int16()? as u16;
        let mut formats = Formats::new();
        for _ in 0..count {
            match self.int16()? {
                code @ (0 | 1) => formats.push(code),
                code => return Err(malformed(&format!("unsupported format code: {code}"))),
            }
        }
        Ok(formats)
    }
    fn target(&mut self) -> Result<Target, SqlError> {
        match self.byte()? {
            b'S' => Ok(Target::Statement),
            b'P' => Ok(Target::Portal),
            other => Err(malformed(&format!("invalid subtype {other}"))),
        }
    }
    fn bind(&mut self) -> Result<Bind<'a>, SqlError> {
        let portal = self.string()?;
        let statement = self.string()?;
        let formats = self.formats()?;
        let count = self.int16()? as u16;
        let mut parameters = Parameters::new();
        for _ in 0..count {
            parameters.push(match self.int32()? {
                -1 => None,
                length => {
                    let length = usize::try_from(length).map_err(|_| malformed("a parameter's length is negative"))?;
                    Some(self.take(length)?)
                }
            });
        }
        if formats.len() > 1 && formats.len() != parameters.len() {
            return Err(malformed(&format!(
                "bind message has {} parameter formats but {} parameters",
                formats.len(),
                parameters.len()
            )));
        }
        Ok(Bind { portal, statement, formats, parameters, result_formats: self.formats()? })
    }
    fn parse(&mut self) -> Result<Frontend<'a>, SqlError> {
        let name = self.string()?;
        let text = self.string()?;
        let count = self.int16()? as u16;
        let mut types = Vec::new();
        for _ in 0..count {
            types.push(self.int32()? as u32);
        }
        Ok(Frontend::Parse { name, text, types })
    }
}

/// Reads one message.
///
/// # Errors
/// 08P01 where it has another shape than its type demands, 22021 where a string is not UTF-8.
pub fn read(tag: u8, bytes: &[u8]) -> Result<Frontend<'_>, SqlError> {
    let mut body = Body::new(bytes);
    let message = match tag {
        b'B' => Frontend::Bind(body.bind()?),
        b'E' => Frontend::Execute { portal: body.string()?, max_rows: body.int32()?.max(0) as u32 },
        b'S' => Frontend::Sync,
        b'Q' => Frontend::Query(body.string()?),
        b'P' => body.parse()?,
        b'D' => Frontend::Describe(body.target()?, body.string()?),
        b'C' => Frontend::Close(body.target()?, body.string()?),
        b'H' => Frontend::Flush,
        b'd' => return Ok(Frontend::CopyData(bytes)),
        b'c' => Frontend::CopyDone,
        b'f' => Frontend::CopyFail(body.string()?),
        b'F' => return Ok(Frontend::FunctionCall),
        b'p' => return Ok(Frontend::Password),
        // Whatever it brings along: nobody is there any more.
        b'X' => return Ok(Frontend::Terminate),
        other => return Err(malformed(&format!("invalid frontend message type {other}"))),
    };
    if !body.rest.is_empty() {
        return Err(malformed(&format!("{} bytes too many", body.rest.len())));
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_is_read_in_place() {
        let body = b"\0s1\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0";
        let Ok(Frontend::Bind(bind)) = read(b'B', body) else { panic!("not a bind") };
        assert_eq!((bind.portal, bind.statement), ("", "s1"));
        assert_eq!(bind.formats.as_slice(), [1]);
        assert_eq!(bind.parameters.as_slice(), [Some(b"ab".as_slice()), None]);
        assert!(bind.result_formats.is_empty());
    }

    #[test]
    fn every_cut_of_a_message_is_refused() {
        let bodies: [(u8, &[u8]); 4] = [
            (b'B', b"p\0s1\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0"),
            (b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x17"),
            (b'E', b"p\0\0\0\0\x05"),
            (b'D', b"Sname\0"),
        ];
        for (tag, body) in bodies {
            assert!(read(tag, body).is_ok());
            for cut in 0..body.len() {
                let error = read(tag, &body[..cut]).unwrap_err();
                assert_eq!(error.state, SqlState::PROTOCOL_VIOLATION, "{} cut at {cut}", char::from(tag));
            }
            let longer = [body, b"\0"].concat();
            assert!(read(tag, &longer).is_err(), "{} with a byte more", char::from(tag));
        }
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        assert!(read(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0").is_err());
        assert!(read(b'B', b"\0\0\0\0\0\x01\x80\x00\x00\x00\0\0").is_err());
        assert!(read(b'B', b"\0\0\xff\xff\0\0\0\0").is_err());
    }

    #[test]
    fn text_must_be_utf8() {
        assert_eq!(read(b'Q', b"SELECT '\xff'\0").unwrap_err().state, SqlState(*b"22021"));
    }
}
