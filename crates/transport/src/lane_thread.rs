//! The thread of a lane: dials, writes, and dials again.

use crate::backoff::Backoff;
use crate::frame::{self, PROBE};
use crate::lane::Lane;
use crate::peer::{Hub, PeerState};
use crate::{BACKOFF_MAX, PROBE_EVERY, dial};
use bytes::Bytes;
use rustix::event::PollFlags;
use std::io::{self, IoSlice, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One write takes about so much at most.
const BATCH_BYTES: usize = 256 << 10;
/// A parcel of so many bytes is written from where it lies.
const COPY_BYTES_MAX: usize = 16 << 10;

pub(crate) fn run(hub: &Hub, peer: &PeerState, lane: &Lane) {
    let salt = u64::from(peer.node) << 8 | lane.index as u64;
    let mut backoff = Backoff::new(hub.options.seed ^ salt);
    while !hub.is_over(peer) {
        match dial::dial(hub, peer, lane) {
            Ok(stream) => {
                let begun = Instant::now();
                hub.lane_is_up(peer);
                let error = pump(hub, peer, lane, &stream);
                lose(lane, &stream);
                hub.lane_is_down(peer, &error);
                if begun.elapsed() > BACKOFF_MAX {
                    backoff.reset();
                }
            }
            Err(failure) => hub.dial_failed(peer, failure),
        }
        rest(hub, peer, lane, backoff.wait());
    }
}

fn lose(lane: &Lane, stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
    let mut state = lane.state.lock();
    state.link = None;
    state.rest = Vec::new();
    state.since = Instant::now();
}

/// Waits, unless somebody is in a hurry.
fn rest(hub: &Hub, peer: &PeerState, lane: &Lane, time: Duration) {
    let deadline = Instant::now() + time;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if std::mem::take(&mut lane.state.lock().hurry) || hub.is_over(peer) || left.is_zero() {
            return;
        }
        lane.wake.wait(None, Some(left));
    }
}

/// Writes what is queued until the connection ends, and gives why.
fn pump(hub: &Hub, peer: &PeerState, lane: &Lane, stream: &Arc<TcpStream>) -> io::Error {
    let mut buffer = Vec::new();
    loop {
        if hub.is_over(peer) {
            return io::Error::other("it is not wanted any more");
        }
        let mut state = lane.state.lock();
        let idle = state.queue.is_empty() && state.rest.is_empty();
        if state.writing || idle {
            let probe_at = state.wrote_at + PROBE_EVERY;
            state.asleep = true;
            drop(state);
            if let Err(e) = sleep(lane, stream, probe_at) {
                return e;
            }
            continue;
        }
        state.writing = true;
        let rest = std::mem::take(&mut state.rest);
        let batch = state.take(BATCH_BYTES);
        drop(state);
        let written = write(stream, rest, &batch, &mut buffer);
        lane.state.lock().wrote(written.is_ok());
        if let Err(e) = written {
            return e;
        }
    }
}

/// Until there is something to write, the connection ends, or a probe is due; which it writes.
fn sleep(lane: &Lane, mut stream: &TcpStream, probe_at: Instant) -> io::Result<()> {
    let left = probe_at.saturating_duration_since(Instant::now());
    let woken = lane.wake.wait(Some((&stream, PollFlags::IN | PollFlags::RDHUP)), Some(left));
    let mut state = lane.state.lock();
    state.asleep = false;
    if woken.ready {
        // Nothing is ever sent this way: it ended, or is broken.
        drop(state);
        let error = stream.take_error()?;
        return Err(error.unwrap_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "it was closed by the peer")));
    }
    let idle = state.queue.is_empty() && state.rest.is_empty();
    if woken.flag || state.writing || !idle || state.wrote_at + PROBE_EVERY > Instant::now() {
        return Ok(());
    }
    state.writing = true;
    drop(state);
    let written = stream.write_all(&PROBE).map_err(stalled);
    lane.state.lock().wrote(written.is_ok());
    written
}

/// Small parcels are gathered in the buffer, large ones go from where they lie.
fn write(stream: &TcpStream, rest: Vec<u8>, batch: &[Bytes], buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    buffer.extend_from_slice(&rest);
    for bytes in batch {
        buffer.extend_from_slice(&frame::header(bytes));
        if bytes.len() <= COPY_BYTES_MAX {
            buffer.extend_from_slice(bytes);
        } else {
            write_both(stream, buffer, bytes)?;
            buffer.clear();
        }
    }
    write_both(stream, buffer, &[])
}

fn write_both(mut stream: &TcpStream, first: &[u8], second: &[u8]) -> io::Result<()> {
    let slices = &mut [IoSlice::new(first), IoSlice::new(second)][..];
    let mut slices = slices;
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match stream.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut slices, n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(stalled(e)),
        }
    }
    Ok(())
}

fn stalled(e: io::Error) -> io::Error {
    match e.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing any more"),
        _ => e,
    }
}
