//! The listener: gives each connection a thread, and the thread a first look.

use crate::guests::{Guests, Place, Stage};
use crate::hello::{self, ENVELOPE_BYTES, Hello, Kind};
use crate::peer::Hub;
use crate::timed;
use crate::wake::Wake;
use crate::{Control, Event, HANDSHAKE_TIMEOUT, Refusal, inbound};
use bytes::Bytes;
use parking_lot::Mutex;
use rustix::event::PollFlags;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Stack of a connection's thread: what it delivers to may run a node. Only pages that are touched cost memory.
const STACK_BYTES: usize = 1 << 20;
/// So many connections may wait in the kernel to be accepted: beyond it the kernel lets them try again after a second, members too.
const BACKLOG: i32 = 1024;
/// Where nothing can be accepted, the next look is after so long.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// So many strangers are remembered as told of, and for so long.
const TOLD_MAX: usize = 64;
const TOLD_FOR: Duration = Duration::from_secs(600);

/// What all its threads share.
pub(crate) struct Entrance {
    pub guests: Arc<Guests>,
    pub control: Control,
    /// `None`: not a member of a cluster yet.
    pub hub: Option<Arc<Hub>>,
    told: Mutex<BTreeMap<(IpAddr, u32, u8), Instant>>,
    wake: Wake,
    closing: AtomicBool,
}

impl Entrance {
    pub fn new(guests: Arc<Guests>, control: Control, hub: Option<Arc<Hub>>) -> io::Result<Arc<Entrance>> {
        let (told, closing) = Default::default();
        Ok(Arc::new(Entrance { guests, control, hub, told, wake: Wake::new()?, closing }))
    }

    /// Accepts until [`Entrance::close`], which the thread answers with the listener.
    pub fn open(self: &Arc<Self>, listener: TcpListener) -> io::Result<JoinHandle<TcpListener>> {
        listener.set_nonblocking(true)?;
        rustix::net::listen(&listener, BACKLOG)?;
        let entrance = self.clone();
        thread::Builder::new().name("peer-listener".into()).stack_size(STACK_BYTES).spawn(move || {
            entrance.accept_all(&listener);
            // Should it fail, whoever uses the listener next finds out.
            let _ = listener.set_nonblocking(false);
            listener
        })
    }

    pub fn close(&self) {
        self.closing.store(true, SeqCst);
        self.wake.raise();
    }

    fn report(&self, event: &Event) {
        if let Some(hub) = &self.hub {
            hub.report(event);
        }
    }

    fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        let mut told = false;
        while !self.closing.load(SeqCst) {
            let error = match listener.accept() {
                Ok((stream, from)) => match self.admit(stream, from.ip()) {
                    Ok(()) => {
                        told = false;
                        continue;
                    }
                    Err(e) => e,
                },
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.wake.wait(Some((listener, PollFlags::IN)), None);
                    continue;
                }
                Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => continue,
                Err(e) => e,
            };
            if !std::mem::replace(&mut told, true) {
                self.report(&Event::NotAccepting { error: error.to_string() });
            }
            self.wake.wait(None, Some(ACCEPT_AGAIN));
        }
    }

    fn admit(self: &Arc<Self>, stream: TcpStream, from: IpAddr) -> io::Result<()> {
        let stream = Arc::new(stream);
        let Some(place) = self.guests.enter(stream.clone()) else { return Ok(()) };
        let entrance = self.clone();
        thread::Builder::new().name("peer-reader".into()).stack_size(STACK_BYTES).spawn(move || {
            place.begin();
            entrance.serve(&stream, from, &place);
            drop(stream);
            drop(entrance);
            drop(place);
        })?;
        Ok(())
    }

    fn serve(&self, stream: &TcpStream, from: IpAddr, place: &Place) {
        let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
        let served = stream.set_nodelay(true).and_then(|()| {
            // A connection that ends before its first byte is somebody who looks whether the port is open.
            stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
            if stream.peek(&mut [0])? == 0 {
                return Ok(());
            }
            self.open_with(stream, from, place, deadline)
        });
        if let Err(e) = served
            && e.get_ref().is_some_and(|inner| inner.is::<hello::Malformed>())
            && self.is_new(from, 0, 0)
        {
            self.report(&Event::Noise { from, problem: e.to_string() });
        }
    }

    fn open_with(&self, stream: &TcpStream, from: IpAddr, place: &Place, deadline: Instant) -> io::Result<()> {
        let mut envelope = [0; ENVELOPE_BYTES];
        timed::read_exact(stream, &mut envelope, deadline)?;
        let (kind, len) = hello::open(&envelope).map_err(io::Error::other)?;
        if !matches!(kind, Kind::Hello | Kind::Request) {
            return Err(io::Error::other(hello::Malformed::Kind(kind as u8)));
        }
        let body = timed::read_bytes(stream, len, deadline)?;
        if kind == Kind::Request {
            return self.answer(stream, place, body.into());
        }
        let hello = Hello::decode(&body).map_err(io::Error::other)?;
        let Some(hub) = &self.hub else {
            return timed::write_all(stream, &hello::encode_answer(&Err(Refusal::NotAMember)), deadline);
        };
        match inbound::shake_hands(hub, stream, &hello, deadline)? {
            Ok(peer) => {
                let lane = usize::from(hello.lane);
                let stage = Stage::Lane { node: peer.node, lane, life: hello.incarnation };
                if place.advance(stage) && !peer.is_gone() {
                    inbound::read_all(hub, &peer, lane, stream);
                }
            }
            Err((by_this_node, refusal)) => self.refused(from, &hello, by_this_node, refusal),
        }
        Ok(())
    }

    fn answer(&self, stream: &TcpStream, place: &Place, request: Bytes) -> io::Result<()> {
        if !place.advance(Stage::Control) {
            return Ok(());
        }
        let reply = (self.control)(request);
        // A longer one is the caller's mistake on this node; nobody else's connection suffers.
        let kept = &reply[..reply.len().min(crate::CONTROL_BYTES_MAX)];
        let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
        timed::write_all(stream, &hello::envelope(Kind::Reply, kept), deadline)
    }

    fn refused(&self, from: IpAddr, hello: &Hello, by_this_node: bool, refusal: Refusal) {
        let node = hello.from;
        let own = self.hub.as_ref().filter(|hub| hello.cluster == hub.identity.cluster);
        let known = own.and_then(|hub| hub.is_new_at_door(node, by_this_node, &refusal));
        if known.unwrap_or_else(|| self.is_new(from, node, refusal.kind())) {
            self.report(&Event::RefusedAtDoor { node, from, by_this_node, refusal });
        }
    }

    /// Whether this stranger was not told of yet.
    fn is_new(&self, from: IpAddr, node: u32, kind: u8) -> bool {
        let (now, mut told) = (Instant::now(), self.told.lock());
        told.retain(|_, since| now.saturating_duration_since(*since) < TOLD_FOR);
        let key = (from, node, kind);
        if told.contains_key(&key) || told.len() >= TOLD_MAX {
            return false;
        }
        told.insert(key, now);
        true
    }
}
