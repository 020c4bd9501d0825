//! From a URL to a session: start-up and authentication.

use super::{CHUNK_BYTES, CancelKey, Client, ClientError, ServerMessage, Target, Url};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The longest that a connection attempt may take, in seconds.
const CONNECT_SECONDS_MAX: u64 = 10;

/// Connects to the first host that will do, from the one of that number on, in turn.
pub(super) fn connect(url: &Url, first: usize) -> Result<Client, ClientError> {
    let count = url.hosts.len().max(1);
    let order: Vec<usize> = (0..count).map(|n| (first + n) % count).collect();
    let targets: &[Target] = match url.target {
        Target::PreferStandby => &[Target::ReadOnly, Target::Any],
        _ => &[url.target],
    };
    let mut told: Vec<String> = Vec::new();
    for target in targets {
        for host in &order {
            match connect_to(url, *host).and_then(|client| fitting(client, *target)) {
                Ok(client) => return Ok(client),
                Err(error) if count == 1 && targets.len() == 1 => return Err(error),
                Err(error) if may_be_served_elsewhere(&error) => told.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
    }
    told.dedup();
    Err(ClientError::Usage(format!("none of the {count} servers will do:\n{}", told.join("\n"))))
}

/// Whether another server may say something else: a wrong password is wrong everywhere.
fn may_be_served_elsewhere(error: &ClientError) -> bool {
    match error {
        ClientError::Server(message) => message.code.starts_with("57P") || message.code == "53300",
        ClientError::Closed | ClientError::Io(_) | ClientError::Protocol(_) | ClientError::Usage(_) => true,
    }
}

/// Whether the session is what is wanted.
fn fitting(mut client: Client, target: Target) -> Result<Client, ClientError> {
    let wanted = match target {
        Target::Any | Target::PreferStandby => return Ok(client),
        Target::ReadWrite => "off",
        Target::ReadOnly => "on",
    };
    let rows = client.query("SHOW transaction_read_only")?;
    match rows.first().and_then(|row| row.first()).and_then(Option::as_deref) == Some(wanted) {
        true => Ok(client),
        false => {
            let is = if wanted == "off" { "takes no writes" } else { "is not read-only" };
            Err(ClientError::Usage(format!("the session at {} {is}", client.cancel.address)))
        }
    }
}

fn connect_to(url: &Url, host: usize) -> Result<Client, ClientError> {
    let Some((name, port)) = url.hosts.get(host) else { return Err(ClientError::Usage("there is no host".into())) };
    let unreachable = |error: String| ClientError::Usage(format!("cannot connect to {name}:{port}: {error}"));
    let addresses = (name.as_str(), *port).to_socket_addrs().map_err(|e| unreachable(e.to_string()))?;
    let mut last = "the name has no address".to_owned();
    let most = Duration::from_secs(url.connect_seconds.unwrap_or(CONNECT_SECONDS_MAX));
    // One that takes connections and answers nothing should not keep the others from being asked.
    let answer_most = (url.connect_seconds.is_some() || url.hosts.len() > 1).then_some(most);
    for address in addresses {
        match TcpStream::connect_timeout(&address, most) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(answer_most)?;
                let client = Client {
                    stream,
                    incoming: BytesMut::with_capacity(CHUNK_BYTES),
                    outgoing: BytesMut::new(),
                    chunk: vec![0; CHUNK_BYTES],
                    status: b'I',
                    parameters: Vec::new(),
                    cancel: CancelKey { address, pid: 0, secret: 0 },
                    host,
                };
                let client = match start(client, url) {
                    Err(ClientError::Io(e)) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                        return Err(unreachable(format!("it has not answered for {} seconds", most.as_secs())));
                    }
                    started => started?,
                };
                client.stream.set_read_timeout(None)?;
                return Ok(client);
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
