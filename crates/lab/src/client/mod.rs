//! A small blocking client of the PostgreSQL protocol, over the codec of `postgres-protocol`.
//!
//! A workload measures the server, so its client must cost little: no runtime, no conversion of values, one send and as few
//! receives as there are round trips. The shell needs what full drivers hide: command tags, notices, every field of an error.
//!
//! **Caveats.** No TLS (`sslmode=require` is refused), TCP only.

mod connect;
mod error;
mod url;

pub use error::{ClientError, ServerMessage};
pub use url::{Target, Url};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Bytes asked of the socket at a time.
const CHUNK_BYTES: usize = 16 << 10;
/// Rows of a COPY that go out as one message.
const COPY_PART_BYTES: usize = 64 << 10;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
}

/// A row's values as text, `None` for NULL.
pub type TextRow = Vec<Option<String>>;

/// What a simple query answers, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A result begins.
    Columns(Vec<Column>),
    /// One of its rows.
    Row(TextRow),
    /// A statement is done.
    Tag(String),
    /// A notice or warning.
    Notice(ServerMessage),
    /// The text, or the rest of it, failed.
    Error(ServerMessage),
}

/// How to cancel what a client runs, from another thread.
#[derive(Clone, Debug)]
pub struct CancelKey {
    address: SocketAddr,
    pid: i32,
    secret: i32,
}

impl CancelKey {
    /// Asks the server to end the current statement.
    ///
    /// # Errors
    /// Those of the connection that carries the request.
    pub fn cancel(&self) -> Result<(), ClientError> {
        let mut request = BytesMut::new();
        frontend::cancel_request(self.pid, self.secret, &mut request);
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(&request)?;
        // The server closes when the request has been heard.
        let _ = stream.read(&mut [0]);
        Ok(())
    }
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    incoming: BytesMut,
    outgoing: BytesMut,
    chunk: Vec<u8>,
    status: u8,
    parameters: Vec<(String, String)>,
    cancel: CancelKey,
    /// Which of the hosts of the URL it is.
    host: usize,
}

impl Client {
    /// Connects and authenticates.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn connect(url: &Url) -> Result<Client, ClientError> {
        connect::connect(url, 0)
    }

    /// As [`Client::connect`], the hosts from this one on first.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn connect_from(url: &Url, host: usize) -> Result<Client, ClientError> {
        connect::connect(url, host)
    }

    /// As [`Client::connect`], in place of one that was lost: the hosts after its own first.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn connect_again(&self, url: &Url) -> Result<Client, ClientError> {
        connect::connect(url, self.host + 1)
    }

    /// Which of the hosts of its URL it is connected to.
    pub fn host(&self) -> usize {
        self.host
    }

    /// `I` idle, `T` in a transaction, `E` in a failed one.
    pub fn transaction_status(&self) -> char {
        char::from(self.status)
    }
    /// A parameter that the server reported, such as `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
    /// For another thread.
    pub fn cancel_key(&self) -> CancelKey {
        self.cancel.clone()
    }

    fn send(&mut self) -> Result<(), ClientError> {
        let sent = self.stream.write_all(&self.outgoing);
        self.outgoing.clear();
        Ok(sent?)
    }

    fn receive(&mut self) -> Result<Message, ClientError> {
        loop {
            match Message::parse(&mut self.incoming).map_err(|e| ClientError::Protocol(e.to_string()))? {
                Some(Message::ParameterStatus(body)) => {
                    let name = body.name().map_err(ClientError::Io)?.to_owned();
                    let value = body.value().map_err(ClientError::Io)?.to_owned();
                    self.parameters.push((name, value));
                }
                Some(message) => return Ok(message),
                None => match self.stream.read(&mut self.chunk) {
                    Ok(0) => return Err(ClientError::Closed),
                    Ok(n) => self.incoming.extend_from_slice(&self.chunk[..n]),
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(e.into()),
                },
            }
        }
    }

    /// Runs a text of any number of statements, and shows each answer as it comes.
    ///
    /// # Errors
    /// The connection's; what the server refuses is an [`Event::Error`].
    pub fn query_events(&mut self, sql: &str, see: impl FnMut(Event)) -> Result<(), ClientError> {
        self.converse(sql, None, see)
    }

    /// As [`Client::query_events`], for a `COPY .. FROM STDIN` whose rows come from `data`.
    ///
    /// # Errors
    /// As there; where `data` cannot be read, the server is told and refuses the statement.
    pub fn copy_events(&mut self, sql: &str, data: &mut dyn Read, see: impl FnMut(Event)) -> Result<(), ClientError> {
        self.converse(sql, Some(data), see)
    }

    fn converse(
        &mut self,
        sql: &str,
        mut data: Option<&mut dyn Read>,
        mut see: impl FnMut(Event),
    ) -> Result<(), ClientError> {
        frontend::query(sql, &mut self.outgoing).map_err(|e| ClientError::Usage(e.to_string()))?;
        self.send()?;
        loop {
            match self.receive()? {
                Message::RowDescription(body) => {
                    let columns = body
                        .fields()
                        .map(|f| Ok(Column { name: f.name().to_owned(), type_oid: f.type_oid() }))
                        .collect()
                        .map_err(|e| ClientError::Protocol(e.to_string()))?;
                    see(Event::Columns(columns));
                }
                Message::DataRow(body) => {
                    let bytes = body.buffer();
                    let row = body
                        .ranges()
                        .map(|range| Ok(range.map(|r| String::from_utf8_lossy(&bytes[r]).into_owned())))
                        .collect()
                        .map_err(|e| ClientError::Protocol(e.to_string()))?;
                    see(Event::Row(row));
                }
                Message::CommandComplete(body) => see(Event::Tag(body.tag().map_err(ClientError::Io)?.to_owned())),
                Message::NoticeResponse(body) => see(Event::Notice(ServerMessage::read(body.fields()))),
                Message::ErrorResponse(body) => see(Event::Error(ServerMessage::read(body.fields()))),
                Message::ReadyForQuery(body) => {
                    self.status = body.status();
                    return Ok(());
                }
                Message::CopyInResponse(_) => {
                    let refusal = match data.take() {
                        Some(data) => self.send_rows(data)?,
                        None => Some("this client has no data for COPY FROM STDIN".to_owned()),
                    };
                    match refusal {
                        Some(reason) => {
                            frontend::copy_fail(&reason, &mut self.outgoing).map_err(ClientError::Io)?;
                        }
                        None => frontend::copy_done(&mut self.outgoing),
                    }
                    self.send()?;
                }
                Message::CopyData(body) => {
                    let line = String::from_utf8_lossy(body.data());
                    see(Event::Row(vec![Some(line.trim_end_matches('\n').to_owned())]));
                }
                _ => {}
            }
        }
    }

    /// Sends rows for a COPY, a part at a time; says why not all of them could be read.
    fn send_rows(&mut self, data: &mut dyn Read) -> Result<Option<String>, ClientError> {
        let mut part = vec![0; COPY_PART_BYTES];
        loop {
            match data.read(&mut part) {
                Ok(0) => return Ok(None),
                Ok(n) => {
                    let message = frontend::CopyData::new(&part[..n]).map_err(ClientError::Io)?;
                    message.write(&mut self.outgoing);
                    self.send()?;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Ok(Some(format!("the data cannot be read: {e}"))),
            }
        }
    }

    /// Runs a text and gives the rows of its results, one after another.
    ///
    /// # Errors
    /// The connection's, or the first that the server gave.
    pub fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, ClientError> {
        let (mut rows, mut failed) = (Vec::new(), None);
        self.query_events(sql, |event| match event {
            Event::Row(row) => rows.push(row),
            Event::Error(e) if failed.is_none() => failed = Some(e),
            _ => {}
        })?;
        match failed {
            Some(e) => Err(ClientError::Server(Box::new(e))),
            None => Ok(rows),
        }
    }

    /// Prepares a statement under a name.
    ///
    /// # Errors
    /// The connection's or the server's.
    pub fn prepare(&mut self, name: &str, sql: &str) -> Result<(), ClientError> {
        let io = |e: std::io::Error| ClientError::Usage(e.to_string());
        frontend::parse(name, sql, [], &mut self.outgoing).map_err(io)?;
        frontend::sync(&mut self.outgoing);
        self.send()?;
        self.finish().map(|_| ())
    }

    /// Runs a prepared statement with parameters in text; gives the number of rows that came back.
    ///
    /// # Errors
    /// The connection's or the server's.
    pub fn execute(&mut self, name: &str, parameters: &[&str]) -> Result<usize, ClientError> {
        let bound = frontend::bind(
            "",
            name,
            [],
            parameters,
            |p, buf| {
                buf.extend_from_slice(p.as_bytes());
                Ok(IsNull::No)
            },
            [],
            &mut self.outgoing,
        );
        bound.map_err(|_| ClientError::Usage("the parameters do not fit in a message".into()))?;
        frontend::execute("", 0, &mut self.outgoing).map_err(ClientError::Io)?;
        frontend::sync(&mut self.outgoing);
        self.send()?;
        self.finish()
    }

    /// Reads to ReadyForQuery.
    fn finish(&mut self) -> Result<usize, ClientError> {
        let (mut rows, mut failed) = (0, None);
        loop {
            match self.receive()? {
                Message::DataRow(_) => rows += 1,
                Message::ErrorResponse(body) if failed.is_none() => failed = Some(ServerMessage::read(body.fields())),
                Message::ReadyForQuery(body) => {
                    self.status = body.status();
                    return match failed {
                        Some(e) => Err(ClientError::Server(Box::new(e))),
                        None => Ok(rows),
                    };
                }
                _ => {}
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.outgoing.clear();
        frontend::terminate(&mut self.outgoing);
        let _ = self.send();
    }
}
