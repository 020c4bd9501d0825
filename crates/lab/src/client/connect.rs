//! From a URL to a session: start-up and authentication.

use super::{CHUNK_BYTES, CancelKey, Client, ClientError, ServerMessage, Url};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The longest that a connection attempt may take, in seconds.
const CONNECT_SECONDS_MAX: u64 = 10;

pub(super) fn connect(url: &Url) -> Result<Client, ClientError> {
    let unreachable =
        |error: String| ClientError::Usage(format!("cannot connect to {}:{}: {error}", url.host, url.port));
    let addresses = (url.host.as_str(), url.port).to_socket_addrs().map_err(|e| unreachable(e.to_string()))?;
    let mut last = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, Duration::from_secs(CONNECT_SECONDS_MAX)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                let client = Client {
                    stream,
                    incoming: BytesMut::with_capacity(CHUNK_BYTES),
                    outgoing: BytesMut::new(),
                    chunk: vec![0; CHUNK_BYTES],
                    status: b'I',
                    parameters: Vec::new(),
                    cancel: CancelKey { address, pid: 0, secret: 0 },
                };
                return start(client, url);
            }
            Err(e) => last = e.to_string(),
        }
    }
    Err(unreachable(last))
}

fn start(mut client: Client, url: &Url) -> Result<Client, ClientError> {
    let given = url.parameters.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    let known = [("user", url.user.as_str()), ("database", url.database.as_str()), ("client_encoding", "UTF8")];
    frontend::startup_message(known.into_iter().chain(given), &mut client.outgoing)
        .map_err(|e| ClientError::Usage(e.to_string()))?;
    client.send()?;
    let password = || {
        let password = url.password.as_deref();
        password.ok_or_else(|| ClientError::Usage("the server asks for a password: put it into the URL".into()))
    };
    loop {
        match client.receive()? {
            Message::AuthenticationOk | Message::NoticeResponse(_) => {}
            Message::AuthenticationCleartextPassword => {
                frontend::password_message(password()?.as_bytes(), &mut client.outgoing)?;
                client.send()?;
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(url.user.as_bytes(), password()?.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), &mut client.outgoing)?;
                client.send()?;
            }
            Message::AuthenticationSasl(body) => scram(&mut client, &body, password()?)?,
            Message::BackendKeyData(body) => {
                client.cancel.pid = body.process_id();
                client.cancel.secret = body.secret_key();
            }
            Message::ReadyForQuery(body) => {
                client.status = body.status();
                return Ok(client);
            }
            Message::ErrorResponse(body) => {
                return Err(ClientError::Server(Box::new(ServerMessage::read(body.fields()))));
            }
            _ => {
                return Err(ClientError::Usage(
                    "the server asks for an authentication that this client does not know".into(),
                ));
            }
        }
    }
}

fn scram(client: &mut Client, offered: &AuthenticationSaslBody, password: &str) -> Result<(), ClientError> {
    let known = offered.mechanisms().any(|m| Ok(m == SCRAM_SHA_256)).map_err(ClientError::Io)?;
    if !known {
        return Err(ClientError::Usage("the server offers no SASL mechanism that this client knows".into()));
    }
    let mut exchange = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    frontend::sasl_initial_response(SCRAM_SHA_256, exchange.message(), &mut client.outgoing)?;
    client.send()?;
    loop {
        match client.receive()? {
            Message::AuthenticationSaslContinue(body) => {
                exchange.update(body.data())?;
                frontend::sasl_response(exchange.message(), &mut client.outgoing)?;
                client.send()?;
            }
            Message::AuthenticationSaslFinal(body) => return Ok(exchange.finish(body.data())?),
            Message::ErrorResponse(body) => {
                return Err(ClientError::Server(Box::new(ServerMessage::read(body.fields()))));
            }
            _ => return Err(ClientError::Protocol("an unexpected message during authentication".into())),
        }
    }
}
