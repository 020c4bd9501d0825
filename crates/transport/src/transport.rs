//! The handle.

use crate::entrance::Entrance;
use crate::guests::Guests;
use crate::peer::{Hub, PeerState};
use crate::{
    Control, Deliver, Event, Identity, LANES, LinkStatus, Options, PARCEL_BYTES_MAX, Parcel, Peer, lane_thread,
};
use parking_lot::Mutex;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Stack of a lane's thread: it writes, and reports.
const STACK_BYTES: usize = 256 << 10;

/// A node's links to all others. Stopped when it is dropped.
pub struct Transport {
    hub: Arc<Hub>,
    entrance: Arc<Entrance>,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    listener: Option<JoinHandle<TcpListener>>,
    lanes: Vec<JoinHandle<()>>,
}

impl Transport {
    /// Listens, dials, and delivers from now on. A peer with this node's number is this node, and passed over.
    ///
    /// # Errors
    ///
    /// No thread, or no descriptor, is to be had.
    pub fn start(
        listener: TcpListener,
        identity: Identity,
        peers: Vec<Peer>,
        options: Options,
        deliver: Deliver,
        control: Control,
    ) -> io::Result<Transport> {
        let guests = Arc::new(Guests::default());
        let hub = Arc::new(Hub::new(identity, options, deliver, guests.clone()));
        let entrance = Entrance::new(guests, control, Some(hub.clone()))?;
        let transport = Transport { hub, entrance, threads: Mutex::default() };
        // First the peers: a peer that dials at once should not be a stranger.
        transport.set_peers(peers)?;
        transport.threads.lock().listener = Some(transport.entrance.open(listener)?);
        Ok(transport)
    }

    /// Sends a parcel, or drops it: see [`Transport::send_all`].
    pub fn send(&self, parcel: Parcel) {
        self.send_all([parcel]);
    }

    /// Sends parcels; those for one lane of one peer leave together. Never blocks: what finds its queue full is dropped and counted, and what is for nobody
    /// known is dropped. Nobody acknowledges anything.
    pub fn send_all(&self, parcels: impl IntoIterator<Item = Parcel>) {
        let now = Instant::now();
        let peers = self.hub.peers.read();
        let mut touched: Vec<(u32, usize)> = Vec::new();
        let mut last = None;
        // Told when no lock is held any more.
        let mut events = Vec::new();
        for Parcel { from: _, to, lane, bytes } in parcels {
            let Some(peer) = peers.get(&to) else { continue };
            let Some(way) = peer.lanes.get(lane) else {
                events.extend(self.hub.unsendable(peer, "it has no such lane"));
                continue;
            };
            if bytes.is_empty() || bytes.len() > PARCEL_BYTES_MAX {
                events.extend(self.hub.unsendable(peer, "it is empty, or longer than 32 MiB"));
                continue;
            }
            if way.push(now, bytes) {
                events.push(Event::Dropping { node: to, lane });
            }
            // A single parcel takes no memory here.
            if last != Some((to, lane))
                && let Some(before) = last.replace((to, lane))
                && !touched.contains(&before)
            {
                touched.push(before);
            }
        }
        for (node, lane) in touched.into_iter().chain(last) {
            peers[&node].lanes[lane].nudge(now);
        }
        drop(peers);
        events.iter().for_each(|event| self.hub.report(event));
    }

    /// The cluster has this version from now on: whoever's program does not know it gets no link, from the next handshake on.
    pub fn set_cluster_version(&self, version: u16) {
        self.hub.set_cluster_version(version);
    }

    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.hub.identity
    }

    /// A process that came as this life of a node, and drew `start`, says that it was a copy of the node's store, and has ended: it is not heard again, and where it was taken for the node
    /// an earlier life is let in. `true`: it was. (Nothing else than the process itself may say so.)
    pub fn disown(&self, node: u32, store: u128, life: u64, start: u64) -> bool {
        self.hub.disown(node, store, (life, start))
    }

    /// How each link is.
    pub fn links(&self) -> Vec<LinkStatus> {
        self.hub.links()
    }

    /// These are the peers from now on: new ones are dialed, links of those that are not named end, and one whose address is another is
    /// dialed there. A number with another store is another node.
    ///
    /// # Errors
    ///
    /// No thread, or no descriptor, is to be had: the peers that were new may lack lanes.
    pub fn set_peers(&self, peers: Vec<Peer>) -> io::Result<()> {
        let mut threads = self.threads.lock();
        threads.lanes.retain(|thread| !thread.is_finished());
        for peer in self.hub.set_peers(&peers)? {
            for lane in 0..LANES {
                threads.lanes.push(spawn(&self.hub, &peer, lane)?);
            }
        }
        Ok(())
    }

    /// Ends all links and all threads, and waits for them, except for the one that it is called on. What is queued is dropped; a control request
    /// that is being answered is answered first.
    pub fn stop(&self) {
        self.hub.stop();
        self.entrance.close();
        let Threads { listener, lanes } = std::mem::take(&mut *self.threads.lock());
        if let Some(listener) = listener {
            drop(listener.join());
        }
        self.hub.guests.close();
        for thread in lanes.into_iter().filter(|lane| lane.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(hub: &Arc<Hub>, peer: &Arc<PeerState>, lane: usize) -> io::Result<JoinHandle<()>> {
    let (hub, peer) = (hub.clone(), peer.clone());
    let name = format!("peer-{}-{lane}", peer.node);
    thread::Builder::new()
        .name(name)
        .stack_size(STACK_BYTES)
        .spawn(move || lane_thread::run(&hub, &peer, &peer.lanes[lane]))
}
