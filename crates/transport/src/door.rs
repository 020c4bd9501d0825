//! A node that is not a member of a cluster yet.

use crate::Control;
use crate::entrance::Entrance;
use crate::guests::Guests;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Answers control requests and nothing else; who comes as a peer is told that this node is no member yet, and tries again.
///
/// Dropping it closes the listener.
pub struct Door {
    entrance: Arc<Entrance>,
    thread: Option<JoinHandle<TcpListener>>,
}

impl Door {
    /// Begins to answer.
    ///
    /// # Errors
    ///
    /// No thread, or no descriptor, is to be had.
    pub fn open(listener: TcpListener, control: Control) -> io::Result<Door> {
        let entrance = Entrance::new(Arc::new(Guests::default()), control, None)?;
        let thread = Some(entrance.open(listener)?);
        Ok(Door { entrance, thread })
    }

    /// Answers what was asked, takes no more, and gives the listener back, for [`crate::Transport::start`]. Who connects in between
    /// waits in the kernel's queue. Not to be called by the control callback itself.
    pub fn close(mut self) -> TcpListener {
        self.end().expect("a door is closed once")
    }

    fn end(&mut self) -> Option<TcpListener> {
        let thread = self.thread.take()?;
        self.entrance.close();
        let listener = thread.join().expect("the listener's thread does not panic");
        self.entrance.guests.close();
        Some(listener)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.end();
    }
}
