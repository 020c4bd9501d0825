//! A node of a test: a transport, what it got, and what it reported.

use bytes::Bytes;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use transport::{Event, Identity, LANES, LinkStatus, Options, Parcel, Peer, Transport};

pub const CLUSTER: u64 = 0x7e57;
/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a condition, and says which one never held.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "it never came true: {what}");
        std::thread::sleep(Duration::from_millis(1)); // poll: the condition
    }
}

pub fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// The port of a node that is gone; the kernel may still have connections of it.
pub fn bind_again(addr: &str) -> TcpListener {
    let mut bound = None;
    until("the port is free again", || {
        bound = TcpListener::bind(addr).ok();
        bound.is_some()
    });
    bound.unwrap()
}

pub fn store_of(node: u32) -> u128 {
    0xabc0_0000 + u128::from(node)
}

pub fn identity(node: u32) -> Identity {
    Identity {
        cluster: CLUSTER,
        node,
        store: store_of(node),
        incarnation: 1,
        release: "test".into(),
        knows: 1..=2,
        start: 0,
        began_after: None,
    }
}

pub fn peer(node: u32, addr: &str) -> Peer {
    Peer { node, store: store_of(node), addr: addr.into() }
}

pub struct TestNode {
    pub transport: Transport,
    pub addr: String,
    pub got: Arc<Mutex<Vec<Parcel>>>,
    pub events: Arc<Mutex<Vec<Event>>>,
    node: u32,
}

impl TestNode {
    pub fn start(identity: Identity, listener: TcpListener, peers: Vec<Peer>) -> TestNode {
        Self::start_with(identity, listener, peers, Options::default())
    }

    pub fn start_with(identity: Identity, listener: TcpListener, peers: Vec<Peer>, options: Options) -> TestNode {
        let (got, events) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (addr, node) = (listener.local_addr().unwrap().to_string(), identity.node);
        let told = events.clone();
        let options = Options { report: Arc::new(move |e: &Event| told.lock().unwrap().push(e.clone())), ..options };
        let inbox = got.clone();
        let deliver = transport::each(move |parcel| inbox.lock().unwrap().push(parcel));
        let transport = Transport::start(listener, identity, peers, options, deliver, Box::new(|request| request));
        TestNode { transport: transport.unwrap(), addr, got, events, node }
    }

    /// Nodes 1 to `count`, each with all others as its peers.
    pub fn cluster(count: u32) -> Vec<TestNode> {
        let listeners: Vec<_> = (1..=count).map(|node| (node, bind())).collect();
        let addr = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        let peers: Vec<_> = listeners.iter().map(|(node, listener)| peer(*node, &addr(listener))).collect();
        let start = |(node, listener)| TestNode::start(identity(node), listener, peers.clone());
        listeners.into_iter().map(start).collect()
    }

    pub fn send(&self, to: u32, lane: usize, bytes: impl Into<Bytes>) {
        self.transport.send(Parcel { from: self.node, to, lane, bytes: bytes.into() });
    }

    pub fn link(&self, to: u32) -> LinkStatus {
        self.transport.links().into_iter().find(|link| link.node == to).unwrap()
    }

    pub fn wait_up(&self, to: u32) {
        until(&format!("n{} is connected to n{to}", self.node), || {
            let link = self.link(to);
            link.up && (0..LANES).all(|lane| link.lanes[lane].connected_from)
        });
    }

    /// Waits until so many parcels have come, and takes them.
    pub fn take(&self, count: usize) -> Vec<Parcel> {
        until(&format!("{count} parcels at n{}", self.node), || self.got.lock().unwrap().len() >= count);
        std::mem::take(&mut *self.got.lock().unwrap())
    }

    /// Waits for an event.
    pub fn expect(&self, what: &str, mut is: impl FnMut(&Event) -> bool) {
        until(what, || self.events.lock().unwrap().iter().any(&mut is));
    }

    pub fn count(&self, mut is: impl FnMut(&Event) -> bool) -> usize {
        self.events.lock().unwrap().iter().filter(|event| is(event)).count()
    }
}
