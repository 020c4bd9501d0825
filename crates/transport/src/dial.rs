//! Makes a connection to a peer, and shakes hands.

use crate::hello::{self, ENVELOPE_BYTES, Kind};
use crate::lane::{Lane, Link};
use crate::peer::{Failure, Hub, PeerState};
use crate::timed;
use crate::wake::Wake;
use crate::{CONNECT_TIMEOUT, HANDSHAKE_TIMEOUT, STALL};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Host and port, as addresses.
pub(crate) fn resolve(addr: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = addr.parse() {
        return Ok(vec![address]);
    }
    let found: Vec<SocketAddr> = addr.to_socket_addrs()?.collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("{addr} has no address")));
    }
    Ok(found)
}

/// Connects until the deadline; `None` if `is_over` when it was woken.
pub(crate) fn connect(
    addr: SocketAddr,
    deadline: Instant,
    wake: &Wake,
    is_over: impl Fn() -> bool,
) -> io::Result<Option<TcpStream>> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &addr) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing answers"));
            }
            let woken = wake.wait(Some((&socket, PollFlags::OUT)), Some(left));
            if is_over() {
                return Ok(None);
            }
            if woken.ready {
                sockopt::socket_error(&socket)??;
                break;
            }
        },
        Err(e) => return Err(e.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    Ok(Some(stream))
}

/// What is not acknowledged for so long ends the connection: a machine that was cut off sends nothing, not even that it is gone.
fn give_up_after(stream: &TcpStream, time: Duration) -> io::Result<()> {
    Ok(sockopt::set_tcp_user_timeout(stream, u32::try_from(time.as_millis()).unwrap_or(u32::MAX))?)
}

/// A connection to the peer on which parcels may be sent.
pub(crate) fn dial(hub: &Hub, peer: &PeerState, lane: &Lane) -> Result<Arc<TcpStream>, Failure> {
    let mut failure = None;
    for addr in resolve(&peer.addr())? {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        // The kernel repeats the first packet after a second only: who is in a hurry sends a new one.
        match connect(addr, deadline, &lane.wake, || hub.is_over(peer) || lane.state.lock().hurry) {
            Ok(Some(stream)) => {
                let stream = Arc::new(stream);
                lane.state.lock().link = Some(Link { stream: stream.clone(), life: None });
                let made =
                    if hub.is_over(peer) { Err(Failure::Unwanted) } else { shake_hands(hub, peer, lane, &stream) };
                match made {
                    Ok(()) => return Ok(stream),
                    Err(e) => failure = Some(e),
                }
                lane.state.lock().link = None;
            }
            Ok(None) => return Err(Failure::Unwanted),
            Err(e) => failure = Some(failure.unwrap_or(e.into())),
        }
    }
    Err(failure.expect("there was an address"))
}

fn shake_hands(hub: &Hub, peer: &PeerState, lane: &Lane, stream: &Arc<TcpStream>) -> Result<(), Failure> {
    give_up_after(stream, STALL)?;
    let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
    timed::write_all(stream, &hub.hello(peer, lane.index).encode(), deadline)?;
    let body = read_body(stream, Kind::Answer, deadline)?;
    let answer = hello::decode_answer(&body).map_err(io::Error::other)?;
    let welcome = answer.map_err(|refusal| Failure::Refused { by_this_node: false, refusal })?;
    let judged = hub
        .judge_welcome(peer, &welcome)
        .and_then(|()| hub.admit(peer, (welcome.incarnation, welcome.start), &welcome.release, &welcome.knows));
    timed::write_all(stream, &hello::encode_verdict(judged), deadline)?;
    judged.map_err(|refusal| Failure::Refused { by_this_node: true, refusal })?;

    stream.set_write_timeout(Some(STALL))?;
    let now = Instant::now();
    let mut state = lane.state.lock();
    let Some(link) = state.link.as_mut().filter(|link| Arc::ptr_eq(&link.stream, stream)) else {
        return Err(Failure::Unwanted);
    };
    link.life = Some(welcome.incarnation);
    state.queue.drop_stale(now);
    state.since = now;
    state.hurry = false;
    Ok(())
}

/// The body of the one kind of message that may come now.
pub(crate) fn read_body(stream: &TcpStream, wanted: Kind, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut envelope = [0; ENVELOPE_BYTES];
    timed::read_exact(stream, &mut envelope, deadline)?;
    let (kind, len) = hello::open(&envelope).map_err(io::Error::other)?;
    if kind != wanted {
        return Err(io::Error::other(hello::Malformed::Kind(kind as u8)));
    }
    timed::read_bytes(stream, len, deadline)
}
