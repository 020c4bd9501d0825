//! The open connections: how many there may be, who may cancel whom, and how they end together.

use parking_lot::{Condvar, Mutex};
use sql::peers::PID_BITS;
use sql::transaction::Interrupt;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{Shutdown, TcpStream};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Connections beyond the limit of sessions that may exist while they start: to be told 53300, or to cancel.
pub const STARTING_MAX: usize = 32;
/// Connections that gave way to newer ones and have not ended yet.
pub const LEAVING_MAX: usize = 256;

#[derive(Debug)]
struct Entry {
    stream: TcpStream,
    interrupt: Interrupt,
    session: bool,
    /// Grows with each connection: the least is the oldest.
    number: u64,
    /// It had not said who it is when a newer connection needed a place.
    gave_way: bool,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<i32, Entry>,
    sessions: usize,
    last_pid: i32,
    last_number: u64,
    leaving: usize,
}

impl State {
    /// Makes the oldest connection give way that has not said who it is; `false` if there is none.
    fn make_room(&mut self) -> bool {
        if self.leaving >= LEAVING_MAX {
            return false;
        }
        let waiting = self.entries.values_mut().filter(|entry| !entry.session && !entry.gave_way);
        let Some(oldest) = waiting.min_by_key(|entry| entry.number) else { return false };
        oldest.gave_way = true;
        self.leaving += 1;
        // Wakes its `recv`; its own thread says goodbye.
        let _ = oldest.stream.shutdown(Shutdown::Read);
        true
    }
}

/// The open connections of a server.
#[derive(Debug)]
pub struct Registry {
    sessions_max: usize,
    /// The process ids that it gives out.
    pids: RangeInclusive<i32>,
    /// Secrets are a keyed hash of the process id, under keys that the system drew at random.
    secrets: RandomState,
    state: Mutex<State>,
    /// Set under the lock, so that nobody is admitted after a drain has told everybody; read without it.
    draining: AtomicBool,
    left: Condvar,
}

impl Registry {
    /// At most `sessions_max` sessions at a time.
    pub fn new(sessions_max: usize) -> Arc<Self> {
        Self::of_node(sessions_max, 0)
    }

    /// As [`Registry::new`], of a node of a cluster: its process ids are no other's. 0: it is alone.
    pub fn of_node(sessions_max: usize, node: u32) -> Arc<Self> {
        let first = i32::try_from(node).ok().and_then(|node| node.checked_mul(1 << PID_BITS)).unwrap_or(0);
        let pids = if first == 0 { 1..=i32::MAX } else { first + 1..=first + (1 << PID_BITS) - 1 };
        let secrets = RandomState::new();
        Arc::new(Registry {
            sessions_max,
            pids,
            secrets,
            state: Mutex::default(),
            draining: AtomicBool::new(false),
            left: Condvar::new(),
        })
    }

    /// Takes a connection in; `None` if there are too many, or the server is stopping. Where there is no place, the oldest connection
    /// that has not said who it is gives way: clients that open and say nothing keep nobody out.
    pub fn admit(self: &Arc<Self>, stream: TcpStream) -> Option<Ticket> {
        let mut state = self.state.lock();
        if self.is_draining() {
            return None;
        }
        if state.entries.len() - state.leaving >= self.sessions_max + STARTING_MAX && !state.make_room() {
            return None;
        }
        let mut pid = state.last_pid;
        loop {
            pid = if self.pids.contains(&pid) && pid < *self.pids.end() { pid + 1 } else { *self.pids.start() };
            if !state.entries.contains_key(&pid) {
                break;
            }
        }
        state.last_pid = pid;
        state.last_number += 1;
        let number = state.last_number;
        let interrupt = Interrupt::default();
        let registry = Arc::downgrade(self);
        interrupt.set_probe(move || registry.upgrade().is_some_and(|registry| registry.is_gone(pid)));
        let entry = Entry { stream, interrupt: interrupt.clone(), session: false, number, gave_way: false };
        state.entries.insert(pid, entry);
        Some(Ticket { registry: Arc::clone(self), pid, interrupt })
    }

    fn secret(&self, pid: i32) -> i32 {
        self.secrets.hash_one(pid) as i32
    }

    /// A CancelRequest: ends the current statement of the session, if the secret is right.
    pub fn cancel(&self, pid: i32, secret: i32) {
        if secret == self.secret(pid)
            && let Some(entry) = self.state.lock().entries.get(&pid)
        {
            entry.interrupt.raise();
        }
    }

    /// The greatest number of sessions.
    pub fn sessions_max(&self) -> usize {
        self.sessions_max
    }

    /// Sessions open now.
    pub fn sessions(&self) -> usize {
        self.state.lock().sessions
    }

    /// Whether [`Registry::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Admits nobody any more and ends every session where it next waits for its client. Statements that run go on.
    pub fn drain(&self) {
        let state = self.state.lock();
        self.draining.store(true, Ordering::SeqCst);
        for entry in state.entries.values() {
            // Wakes a blocked `recv`. A socket that is already closed needs no waking.
            let _ = entry.stream.shutdown(Shutdown::Read);
        }
    }

    /// Whether the client of a connection has closed it, as far as a look at its socket tells. A drain closes the reading side itself,
    /// so nobody counts as gone then.
    fn is_gone(&self, pid: i32) -> bool {
        let state = self.state.lock();
        if self.is_draining() {
            return false;
        }
        state.entries.get(&pid).is_some_and(|entry| is_closed(&entry.stream))
    }

    /// Ends a connection where it next waits for its client; who serves it says why.
    fn end(&self, pid: i32) {
        if let Some(entry) = self.state.lock().entries.get(&pid) {
            // Wakes a blocked `recv`. A socket that is already closed needs no waking.
            let _ = entry.stream.shutdown(Shutdown::Read);
        }
    }

    /// Raises the interrupt of every connection.
    pub fn interrupt_all(&self) {
        for entry in self.state.lock().entries.values() {
            entry.interrupt.raise();
        }
    }

    /// Waits until every connection has ended; `false` if some are left at `deadline`.
    pub fn wait_empty(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        while !state.entries.is_empty() {
            if self.left.wait_until(&mut state, deadline).timed_out() {
                return state.entries.is_empty();
            }
        }
        true
    }
}

/// Whether the other side closed the connection, whatever it sent before: clients say goodbye first. One that only shut down its
/// sending side counts as gone, as with PostgreSQL's `client_connection_check_interval`: the two cannot be told apart. Does not block.
fn is_closed(stream: &TcpStream) -> bool {
    let mut socket = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: the descriptor is open while `stream` lives, and the array has one element, as said.
    let ready = unsafe { libc::poll(&raw mut socket, 1, 0) };
    ready > 0 && socket.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0
}

/// A connection, as other sessions may end it.
#[derive(Debug)]
struct Connection {
    registry: Weak<Registry>,
    pid: i32,
}

impl sql::Client for Connection {
    fn end(&self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.end(self.pid);
        }
    }
}

/// A connection's place; dropping it leaves.
#[derive(Debug)]
pub struct Ticket {
    registry: Arc<Registry>,
    pid: i32,
    interrupt: Interrupt,
}

impl Ticket {
    /// The process id shown to the client.
    pub fn pid(&self) -> i32 {
        self.pid
    }
    /// What a CancelRequest must say.
    pub fn secret(&self) -> i32 {
        self.registry.secret(self.pid)
    }
    /// What ends the session's statement.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }
    /// How other sessions end it.
    pub fn client(&self) -> Arc<dyn sql::Client> {
        Arc::new(Connection { registry: Arc::downgrade(&self.registry), pid: self.pid })
    }
    /// Whether it had to end for a newer connection before it became a session.
    pub fn gave_way(&self) -> bool {
        self.registry.state.lock().entries.get(&self.pid).is_some_and(|entry| entry.gave_way)
    }
    /// Becomes a session; `false` if there are too many.
    pub fn begin_session(&self) -> bool {
        let mut state = self.registry.state.lock();
        if state.sessions >= self.registry.sessions_max {
            return false;
        }
        let Some(entry) = state.entries.get_mut(&self.pid).filter(|entry| !entry.gave_way) else { return false };
        entry.session = true;
        state.sessions += 1;
        true
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.registry.state.lock();
        if let Some(entry) = state.entries.remove(&self.pid) {
            state.sessions -= usize::from(entry.session);
            state.leaving -= usize::from(entry.gave_way);
        }
        self.registry.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;
    use std::time::Duration;

    fn stream() -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap()
    }

    #[test]
    fn sessions_are_bounded_and_places_come_back() {
        let registry = Registry::new(1);
        let (a, b) = (registry.admit(stream()).unwrap(), registry.admit(stream()).unwrap());
        assert!(a.begin_session());
        assert!(!b.begin_session());
        drop(a);
        assert!(b.begin_session());
        assert_eq!(registry.sessions(), 1);
    }

    /// Whoever opens and says nothing loses the place to a newer connection, the oldest first; sessions keep theirs.
    #[test]
    fn silent_connections_give_way() {
        let registry = Registry::new(1);
        let session = registry.admit(stream()).unwrap();
        assert!(session.begin_session());
        let silent: Vec<Ticket> = (0..STARTING_MAX + 40).map(|_| registry.admit(stream()).unwrap()).collect();
        assert!(silent[..40].iter().all(Ticket::gave_way) && !silent[40..].iter().any(Ticket::gave_way));
        assert!(!session.gave_way() && !silent[0].begin_session());
        drop(silent);
        let left = |state: &State| (state.leaving, state.entries.len());
        assert_eq!(left(&registry.state.lock()), (0, 1));
        // Those that were told, and do not end, are bounded.
        let stubborn: Vec<Ticket> =
            (0..STARTING_MAX + LEAVING_MAX).map(|_| registry.admit(stream()).unwrap()).collect();
        assert!(registry.admit(stream()).is_none());
        drop(stubborn);
        assert!(registry.admit(stream()).is_some());
    }

    #[test]
    fn cancelling_needs_the_secret() {
        let registry = Registry::new(1);
        let ticket = registry.admit(stream()).unwrap();
        registry.cancel(ticket.pid(), ticket.secret().wrapping_add(1));
        registry.cancel(ticket.pid() + 1, ticket.secret());
        assert!(!ticket.interrupt().is_raised());
        registry.cancel(ticket.pid(), ticket.secret());
        assert!(ticket.interrupt().is_raised());
    }

    #[test]
    fn a_connection_that_is_ended_hears_nothing_more() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut stream = listener.accept().unwrap().0;
        let registry = Registry::new(1);
        let ticket = registry.admit(stream.try_clone().unwrap()).unwrap();
        ticket.client().end();
        assert_eq!(std::io::Read::read(&mut stream, &mut [0; 1]).unwrap(), 0);
    }

    /// A wait that takes long looks for its client, behind what it has sent; during a drain nobody counts as gone.
    #[test]
    fn a_client_that_has_gone_raises_the_interrupt_of_who_looks() {
        for (half, goodbye) in [(false, &b""[..]), (false, b"X\0\0\0\x04"), (true, b""), (true, b"X\0\0\0\x04")] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let registry = Registry::new(4);
            let ticket = registry.admit(listener.accept().unwrap().0).unwrap();
            client.write_all(goodbye).unwrap();
            assert!(!ticket.interrupt().look(), "what it sends is no end");
            let _listens = half.then(|| client.shutdown(Shutdown::Write).map(|()| client).unwrap());
            let late = Instant::now() + Duration::from_secs(60);
            while !ticket.interrupt().look() {
                assert!(Instant::now() < late, "nobody noticed");
                std::thread::yield_now();
            }
        }
        let registry = Registry::new(4);
        let ticket = registry.admit(stream()).unwrap();
        registry.drain();
        assert!(!ticket.interrupt().look());
    }

    #[test]
    fn a_drain_waits_for_the_last_one() {
        let registry = Registry::new(4);
        let ticket = registry.admit(stream()).unwrap();
        registry.drain();
        assert!(registry.admit(stream()).is_none());
        assert!(!registry.wait_empty(Instant::now()));
        let waiter = std::thread::spawn({
            let registry = registry.clone();
            move || registry.wait_empty(Instant::now() + Duration::from_secs(60))
        });
        drop(ticket);
        assert!(waiter.join().unwrap());
    }
}
