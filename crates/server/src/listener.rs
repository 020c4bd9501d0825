//! Accepts SQL connections and gives each a thread.

use crate::connection::{self, Shared};
use crate::log;
use sql::{SqlError, SqlState};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Stack of a connection's thread, in bytes: parsers and planners recurse as deep as the longest chain of operators that
/// `sql::syntax` lets through. Only pages that are touched cost memory.
const STACK_BYTES: usize = sql::stack::BYTES + (2 << 20);

/// Accepts until the registry drains (and one more connection is made, to wake the listener).
pub fn listen(listener: TcpListener, shared: Arc<Shared>) -> std::io::Result<()> {
    std::thread::Builder::new().name("sql-listener".into()).spawn(move || {
        for stream in listener.incoming() {
            if shared.registry.is_draining() {
                return;
            }
            match stream {
                Ok(stream) => accept(stream, &shared),
                Err(e) => {
                    // Out of file descriptors, say: do not spin on it.
                    log::warning("accept_failed", &[("error", &e)]);
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    })?;
    Ok(())
}

fn accept(stream: TcpStream, shared: &Arc<Shared>) {
    shared.metrics.accepted.fetch_add(1, Relaxed);
    let prepared = stream.set_nodelay(true).and_then(|()| stream.try_clone());
    let Ok(other) = prepared else { return };
    keep_alive(&stream);
    let Some(ticket) = shared.registry.admit(other) else {
        shared.metrics.refused.fetch_add(1, Relaxed);
        connection::fatal(&stream, &SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already"));
        return;
    };
    let shared = Arc::clone(shared);
    let name = format!("sql-{}", ticket.pid());
    let spawned = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
        connection::serve(&shared, &stream, &ticket);
    });
    if let Err(e) = spawned {
        log::error("thread_refused", &[("error", &e)]);
    }
}

/// Asks the kernel to notice clients that vanished without a word.
fn keep_alive(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the option's value is an int that outlives the call.
    let set = unsafe {
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE, (&raw const on).cast(), size)
    };
    if set != 0 {
        log::warning("keepalive_refused", &[("error", &std::io::Error::last_os_error())]);
    }
}
