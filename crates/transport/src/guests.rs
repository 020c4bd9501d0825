//! Who is connected to this node, from the first byte to the last.

use crate::GUESTS_MAX;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread::{self, ThreadId};

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not said yet what it wants.
    Opening,
    /// Its control request is being answered.
    Control,
    /// It carries parcels.
    Lane { node: u32, lane: usize, life: u64 },
    /// It was ended; its thread will notice.
    Leaving,
}

struct Guest {
    stream: Arc<TcpStream>,
    thread: Option<ThreadId>,
    stage: Stage,
}

#[derive(Default)]
struct Table {
    next: u64,
    guests: BTreeMap<u64, Guest>,
    closed: bool,
}

/// All connections that were accepted, in the order in which they came.
#[derive(Default)]
pub(crate) struct Guests {
    table: Mutex<Table>,
    left: Condvar,
}

/// A connection's place: given back when it is dropped, which is the last that its thread does.
pub(crate) struct Place {
    guests: Arc<Guests>,
    id: u64,
}

fn cut(guest: &mut Guest) {
    guest.stage = Stage::Leaving;
    let _ = guest.stream.shutdown(Shutdown::Both);
}

impl Guests {
    /// A place for a connection. Where [`GUESTS_MAX`] have not become lanes the oldest that has not said what it wants gives way; none of them:
    /// there is no place.
    pub fn enter(self: &Arc<Self>, stream: Arc<TcpStream>) -> Option<Place> {
        let mut table = self.table.lock();
        let strangers = table.guests.values().filter(|guest| !matches!(guest.stage, Stage::Lane { .. }));
        let leaving = strangers.clone().filter(|guest| guest.stage == Stage::Leaving).count();
        // Those that leave still have their threads.
        if table.closed || leaving >= GUESTS_MAX {
            return None;
        }
        if strangers.count() - leaving >= GUESTS_MAX {
            cut(table.guests.values_mut().find(|guest| guest.stage == Stage::Opening)?);
        }
        let id = table.next;
        table.next += 1;
        table.guests.insert(id, Guest { stream, thread: None, stage: Stage::Opening });
        Some(Place { guests: self.clone(), id })
    }

    /// Ends what carries parcels of lives of a node before this one.
    pub fn cut_node(&self, named: u32, before: u64) {
        for guest in self.table.lock().guests.values_mut() {
            if matches!(guest.stage, Stage::Lane { node, life, .. } if node == named && life < before) {
                cut(guest);
            }
        }
    }

    /// Whether a lane from this node is connected.
    pub fn has(&self, named: u32, wanted: usize) -> bool {
        let is =
            |guest: &Guest| matches!(guest.stage, Stage::Lane { node, lane, .. } if (node, lane) == (named, wanted));
        self.table.lock().guests.values().any(is)
    }

    /// Whether this life of a node has a lane.
    pub fn has_life(&self, named: u32, wanted: u64) -> bool {
        let is =
            |guest: &Guest| matches!(guest.stage, Stage::Lane { node, life, .. } if (node, life) == (named, wanted));
        self.table.lock().guests.values().any(is)
    }

    /// Ends all but the control requests that are being answered, and waits until every thread has left, except where it is this one.
    pub fn close(&self) {
        let mut table = self.table.lock();
        table.closed = true;
        table.guests.values_mut().filter(|guest| guest.stage != Stage::Control).for_each(cut);
        let own = Some(thread::current().id());
        while table.guests.values().any(|guest| guest.thread.is_none() || guest.thread != own) {
            self.left.wait(&mut table);
        }
    }
}

impl Place {
    /// The thread that serves it; the first that it does.
    pub fn begin(&self) {
        if let Some(guest) = self.guests.table.lock().guests.get_mut(&self.id) {
            guest.thread = Some(thread::current().id());
        }
    }

    /// It is at another stage; `false` if it was ended meanwhile. A lane takes the place of the same lane of the same node.
    pub fn advance(&self, stage: Stage) -> bool {
        let mut table = self.guests.table.lock();
        if table.guests.get(&self.id).is_none_or(|guest| guest.stage == Stage::Leaving) {
            return false;
        }
        if let Stage::Lane { node, lane, .. } = stage {
            let is = |guest: &&mut Guest| matches!(guest.stage, Stage::Lane { node: n, lane: l, .. } if (n, l) == (node, lane));
            table.guests.values_mut().filter(is).for_each(cut);
        }
        table.guests.get_mut(&self.id).is_some_and(|guest| {
            guest.stage = stage;
            true
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.guests.table.lock().guests.remove(&self.id);
        self.guests.left.notify_all();
    }
}
