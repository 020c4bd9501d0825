//! One way to one peer: what waits, and the connection that it waits for.
//!
//! Writes are made by one thread at a time, whoever has the baton (`writing`): the lane's own, or a sender's, which writes without blocking what little
//! there is and leaves the rest to the lane's. Where parcels come in a stream this would make a system call of each, so then they wait for the
//! lane's thread, which writes all that came since its last write at once. `docs/benchmarks/transport.md` has both.

use crate::frame;
use crate::queue::Queue;
use crate::wake::Wake;
use bytes::Bytes;
use parking_lot::Mutex;
use rustix::net::SendFlags;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// A sender writes no more than this by itself.
const DIRECT_BYTES_MAX: usize = 16 << 10;
/// Parcels that come while another is written, or so soon after ...
const STREAM_GAP: Duration = Duration::from_nanos(1_500);
/// ... so often in a row, are a stream, which is cheaper to write together ...
const STREAM_ROW: u32 = 3;
/// ... and no sender writes by itself until it has ceased for so long.
const STREAM_OVER: Duration = Duration::from_millis(1);

/// The outgoing half of a lane, and the counters of both.
pub(crate) struct Lane {
    pub index: usize,
    pub wake: Wake,
    pub received_parcels: AtomicU64,
    pub received_bytes: AtomicU64,
    pub state: Mutex<State>,
}

pub(crate) struct State {
    pub queue: Queue,
    pub link: Option<Link>,
    /// Somebody writes.
    pub writing: bool,
    /// The lane's thread waits for its wake.
    pub asleep: bool,
    /// What a sender could not write of its frames.
    pub rest: Vec<u8>,
    /// Parcels and their bytes that are being written.
    pub in_flight: (usize, usize),
    pub wrote_at: Instant,
    /// When there last was a stream of parcels, and how many have come close together just now.
    streamed_at: Option<Instant>,
    in_a_row: u32,
    pub since: Instant,
    pub sent_parcels: u64,
    pub sent_bytes: u64,
    /// Dial now, whatever the backoff says.
    pub hurry: bool,
    /// The full queue was told of.
    pub told_dropping: bool,
    spare: Vec<u8>,
}

/// A connection: being made while `life` is `None`.
pub(crate) struct Link {
    pub stream: Arc<TcpStream>,
    /// Which life of the peer is at its other end.
    pub life: Option<u64>,
}

impl State {
    /// The connection, if parcels may go there.
    pub fn established(&self) -> Option<&Arc<TcpStream>> {
        self.link.as_ref().filter(|link| link.life.is_some()).map(|link| &link.stream)
    }

    pub fn is_on(&self, stream: &Arc<TcpStream>) -> bool {
        self.established().is_some_and(|own| Arc::ptr_eq(own, stream))
    }

    /// A write ended.
    pub fn wrote(&mut self, all: bool) {
        let (parcels, bytes) = std::mem::take(&mut self.in_flight);
        self.writing = false;
        self.wrote_at = Instant::now();
        if all {
            self.sent_parcels += parcels as u64;
            self.sent_bytes += bytes as u64;
        } else {
            self.queue.lost(parcels as u64);
        }
    }

    /// Parcels for a write, counted as on their way.
    pub fn take(&mut self, bytes_max: usize) -> Vec<Bytes> {
        let mut batch = Vec::new();
        self.queue.take(bytes_max, &mut batch);
        self.in_flight = (batch.len(), batch.iter().map(Bytes::len).sum());
        self.told_dropping &= !self.queue.is_empty();
        batch
    }
}

impl Lane {
    pub fn new(index: usize, bytes_max: usize) -> io::Result<Lane> {
        let now = Instant::now();
        let state = State {
            queue: Queue::new(bytes_max),
            link: None,
            writing: false,
            asleep: false,
            rest: Vec::new(),
            in_flight: (0, 0),
            wrote_at: now,
            streamed_at: None,
            in_a_row: 0,
            since: now,
            sent_parcels: 0,
            sent_bytes: 0,
            hurry: false,
            told_dropping: false,
            spare: Vec::new(),
        };
        let (received_parcels, received_bytes) = Default::default();
        Ok(Lane { index, wake: Wake::new()?, received_parcels, received_bytes, state: Mutex::new(state) })
    }

    /// Queues a parcel; [`Lane::nudge`] sends it on its way. `true` if this is the first drop of a queue that is full.
    pub fn push(&self, now: Instant, bytes: Bytes) -> bool {
        let mut state = self.state.lock();
        let up = state.established().is_some();
        let fitted = state.queue.push(now, bytes, up);
        // Where the link is down that is said already.
        !fitted && up && !std::mem::replace(&mut state.told_dropping, true)
    }

    /// Sees to it that what is queued leaves: writes it, or wakes whoever does.
    pub fn nudge(&self, now: Instant) {
        let mut state = self.state.lock();
        if state.writing || now.saturating_duration_since(state.wrote_at) < STREAM_GAP {
            state.in_a_row += 1;
            if state.in_a_row >= STREAM_ROW {
                state.streamed_at = Some(now);
            }
        } else {
            state.in_a_row = 0;
        }
        if state.queue.is_empty() || state.writing {
            return;
        }
        let Some(stream) = state.established().cloned() else { return };
        let streams = state.streamed_at.is_some_and(|at| now.saturating_duration_since(at) < STREAM_OVER);
        if streams || !state.rest.is_empty() || state.queue.bytes() > DIRECT_BYTES_MAX {
            let asleep = std::mem::take(&mut state.asleep);
            drop(state);
            if asleep {
                self.wake.raise();
            }
            return;
        }
        state.writing = true;
        let batch = state.take(DIRECT_BYTES_MAX);
        let mut buffer = std::mem::take(&mut state.spare);
        drop(state);

        buffer.clear();
        for bytes in &batch {
            buffer.extend_from_slice(&frame::header(bytes));
            buffer.extend_from_slice(bytes);
        }
        let written = match rustix::net::send(&*stream, &buffer, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(written) => Some(written),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Some(0),
            Err(_) => None,
        };
        let mut state = self.state.lock();
        let here = state.is_on(&stream);
        state.wrote(written.is_some() && here);
        match written {
            Some(written) if here && written < buffer.len() => state.rest = buffer.split_off(written),
            // The lane's thread sees that, and makes another connection.
            None => drop(stream.shutdown(Shutdown::Both)),
            Some(_) => {}
        }
        state.spare = buffer;
        let more = !state.rest.is_empty() || !state.queue.is_empty();
        if more && std::mem::take(&mut state.asleep) {
            drop(state);
            self.wake.raise();
        }
    }

    /// Ends the connection if its life is older than this one, and makes another at once.
    pub fn cut_before(&self, life: Option<u64>) {
        let mut state = self.state.lock();
        state.hurry = true;
        if let Some(link) = &state.link
            && life.is_none_or(|life| link.life.is_some_and(|own| own < life))
        {
            let _ = link.stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.wake.raise();
    }

    /// Dials at once if there is no connection.
    pub fn hurry(&self) {
        let mut state = self.state.lock();
        if state.link.is_none() && !std::mem::replace(&mut state.hurry, true) {
            drop(state);
            self.wake.raise();
        }
    }
}
