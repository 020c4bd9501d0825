//! A connection that a peer made: its half of the handshake, and its parcels.

use crate::dial::read_body;
use crate::frame::Cutter;
use crate::hello::{self, Hello, Kind};
use crate::peer::{Hub, PeerState};
use crate::timed;
use crate::{Parcel, Refusal, SILENCE};
use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Who it is; or who refused whom (`true`: this node did), and why.
pub(crate) fn shake_hands(
    hub: &Hub,
    stream: &TcpStream,
    hello: &Hello,
    deadline: Instant,
) -> io::Result<Result<Arc<PeerState>, (bool, Refusal)>> {
    let (answer, peer) = match hub.judge_hello(hello) {
        Ok((welcome, peer)) => (Ok(welcome), Ok(peer)),
        Err(refusal) => (Err(refusal), Err((true, refusal))),
    };
    timed::write_all(stream, &hello::encode_answer(&answer), deadline)?;
    let peer = match peer {
        Ok(peer) => peer,
        Err(refused) => return Ok(Err(refused)),
    };
    let body = read_body(stream, Kind::Verdict, deadline)?;
    if let Err(refusal) = hello::decode_verdict(&body).map_err(io::Error::other)? {
        return Ok(Err((false, refusal)));
    }
    if let Err(refusal) = hub.admit(&peer, (hello.incarnation, hello.start), &hello.release, &hello.knows) {
        return Ok(Err((true, refusal)));
    }
    peer.is_heard();
    // It is alive: what this node has for it need not wait.
    peer.lanes.iter().for_each(|lane| lane.hurry());
    Ok(Ok(peer))
}

/// Delivers until the connection ends, which may have any reason: the dialer makes another, and tells of it.
pub(crate) fn read_all(hub: &Hub, peer: &PeerState, lane: usize, mut stream: &TcpStream) {
    if stream.set_read_timeout(Some(SILENCE)).is_err() {
        return;
    }
    let mut cutter = Cutter::default();
    let counters = &peer.lanes[lane];
    loop {
        match stream.read(cutter.space()) {
            Ok(0) => return,
            Ok(n) => {
                peer.is_heard();
                cutter.filled(n);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        let mut parcels = Vec::new();
        let ended = loop {
            let bytes = match cutter.next_parcel() {
                Ok(Some(bytes)) => bytes,
                ended => break ended,
            };
            counters.received_parcels.fetch_add(1, Relaxed);
            counters.received_bytes.fetch_add(bytes.len() as u64, Relaxed);
            parcels.push(Parcel { from: peer.node, to: hub.identity.node, lane, bytes });
        };
        if !parcels.is_empty() {
            (hub.deliver)(parcels);
        }
        if let Err(e) = ended {
            return hub.broken(peer, &e);
        }
    }
}
