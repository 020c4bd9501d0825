//! What is known of a peer, and everybody that is known.

use crate::frame::FrameError;
use crate::guests::Guests;
use crate::hello::{self, Hello, Welcome};
use crate::lane::Lane;
use crate::{ALIVE, COPY_AFTER, Deliver, Event, Identity, LANES, LaneStatus, LinkStatus, Options, Peer, Refusal};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A peer, from when it is named until it is no more.
pub(crate) struct PeerState {
    pub node: u32,
    pub store: u128,
    pub lanes: [Lane; LANES],
    addr: Mutex<String>,
    gone: AtomicBool,
    news: Mutex<News>,
    began: Instant,
    /// When something came of the life that was seen last, in milliseconds after that, and one; 0: never.
    heard_ms: AtomicU64,
}

/// What was seen of it, and what was told.
struct News {
    /// Its latest life, and release.
    seen: Option<(u64, String)>,
    /// What that life said that it drew at its start; 0: nothing.
    start: u64,
    /// A life, and what that drew, which said itself that it was a copy's: it is not heard again.
    disowned: Option<(u64, u64)>,
    /// Such a one was heard here: what is known of the node's log is that one's word.
    told_by_copy: bool,
    /// The versions of the cluster that it knows.
    knows: Option<RangeInclusive<u16>>,
    lanes_up: usize,
    up: bool,
    since: Instant,
    told: BTreeSet<Told>,
    failures: u64,
    last_error: Option<(String, Instant)>,
    /// Since when it says, each time, that an earlier life of this node goes on.
    alive_since: Option<Instant>,
}

/// What is told once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Unreachable,
    RefusedAtDial(bool, u8),
    RefusedAtDoor(bool, u8),
    Unsendable,
    Broken,
    Copy,
}

/// Why there is no link.
pub(crate) enum Failure {
    Io(io::Error),
    Refused {
        by_this_node: bool,
        refusal: Refusal,
    },
    /// The attempt is not wanted any more: it is over, or the next one should come at once.
    Unwanted,
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Io(e)
    }
}

impl PeerState {
    fn new(peer: &Peer, options: &Options) -> io::Result<PeerState> {
        let lane = |index: usize| Lane::new(index, options.queue_bytes_max[index]);
        let news = News {
            seen: None,
            start: 0,
            disowned: None,
            told_by_copy: false,
            knows: None,
            lanes_up: 0,
            up: false,
            since: Instant::now(),
            told: BTreeSet::new(),
            failures: 0,
            last_error: None,
            alive_since: None,
        };
        Ok(PeerState {
            node: peer.node,
            store: peer.store,
            lanes: [lane(0)?, lane(1)?, lane(2)?],
            addr: Mutex::new(peer.addr.clone()),
            gone: AtomicBool::new(false),
            news: Mutex::new(news),
            began: Instant::now(),
            heard_ms: AtomicU64::new(0),
        })
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Something came from it.
    pub fn is_heard(&self) {
        self.heard_ms.store(self.age_ms() + 1, Relaxed);
    }

    fn was_heard_within(&self, time: Duration) -> bool {
        let heard_ms = self.heard_ms.load(Relaxed);
        heard_ms > 0 && u128::from((self.age_ms() + 1).saturating_sub(heard_ms)) <= time.as_millis()
    }

    /// A connection that this node dialed leads to this very life, and stands.
    fn reaches_life(&self, wanted: u64) -> bool {
        let life = |lane: &Lane| lane.state.lock().link.as_ref().and_then(|link| link.life);
        self.lanes.iter().any(|lane| life(lane) == Some(wanted))
    }

    pub fn addr(&self) -> String {
        self.addr.lock().clone()
    }

    pub fn is_gone(&self) -> bool {
        self.gone.load(SeqCst)
    }

    fn status(&self, guests: &Guests) -> LinkStatus {
        let now = Instant::now();
        let since = |then: Instant| now.saturating_duration_since(then);
        let lanes = std::array::from_fn(|index| {
            let lane = &self.lanes[index];
            let state = lane.state.lock();
            LaneStatus {
                connected: state.established().is_some(),
                since: since(state.since),
                connected_from: guests.has(self.node, index),
                queued_parcels: state.queue.len() + state.in_flight.0,
                queued_bytes: state.queue.bytes() + state.in_flight.1,
                dropped_parcels: state.queue.dropped(),
                sent_parcels: state.sent_parcels,
                sent_bytes: state.sent_bytes,
                received_parcels: lane.received_parcels.load(Relaxed),
                received_bytes: lane.received_bytes.load(Relaxed),
            }
        });
        let (addr, news) = (self.addr(), self.news.lock());
        LinkStatus {
            node: self.node,
            store: self.store,
            addr,
            up: news.up,
            since: since(news.since),
            seen: news.seen.clone(),
            knows: news.knows.clone(),
            lanes,
            failures: news.failures,
            last_error: news.last_error.clone().map(|(error, at)| (error, since(at))),
        }
    }
}

/// What all threads of a transport share.
pub(crate) struct Hub {
    pub identity: Identity,
    pub options: Options,
    pub deliver: Deliver,
    pub guests: Arc<Guests>,
    pub peers: RwLock<BTreeMap<u32, Arc<PeerState>>>,
    /// The cluster's version; 0: it was not said.
    cluster_version: AtomicU16,
    stopping: AtomicBool,
}

impl Hub {
    pub fn new(identity: Identity, options: Options, deliver: Deliver, guests: Arc<Guests>) -> Hub {
        let (peers, cluster_version, stopping) = Default::default();
        Hub { identity, options, deliver, guests, peers, cluster_version, stopping }
    }

    pub fn set_cluster_version(&self, version: u16) {
        self.cluster_version.store(version, SeqCst);
    }

    /// Whether the other's program knows the version that the cluster has.
    fn judge_program(&self, knows: &RangeInclusive<u16>) -> Result<(), Refusal> {
        let version = self.cluster_version.load(SeqCst);
        if version == 0 || knows.contains(&version) {
            return Ok(());
        }
        Err(Refusal::ClusterVersion { version, min: *knows.start(), max: *knows.end() })
    }

    pub fn is_over(&self, peer: &PeerState) -> bool {
        self.stopping.load(SeqCst) || peer.is_gone()
    }

    pub fn report(&self, event: &Event) {
        (self.options.report)(event);
    }

    pub fn links(&self) -> Vec<LinkStatus> {
        self.peers.read().values().map(|peer| peer.status(&self.guests)).collect()
    }

    /// These are the peers from now on; gives those that are new, whose lanes want threads.
    pub fn set_peers(&self, named: &[Peer]) -> io::Result<Vec<Arc<PeerState>>> {
        let mut peers = self.peers.write();
        if self.stopping.load(SeqCst) {
            return Ok(Vec::new());
        }
        let mut new = Vec::new();
        for peer in named.iter().filter(|peer| peer.node != self.identity.node) {
            if peers.get(&peer.node).is_none_or(|known| known.store != peer.store) {
                new.push(Arc::new(PeerState::new(peer, &self.options)?));
            }
        }
        let stays = |known: &PeerState| named.iter().any(|p| (p.node, p.store) == (known.node, known.store));
        peers.retain(|_, known| stays(known) || self.retire(known));
        for peer in named {
            if let Some(known) = peers.get(&peer.node)
                && std::mem::replace(&mut *known.addr.lock(), peer.addr.clone()) != peer.addr
            {
                known.lanes.iter().for_each(|lane| lane.cut_before(None));
            }
        }
        peers.extend(new.iter().map(|peer| (peer.node, peer.clone())));
        Ok(new)
    }

    /// No peer any more. Gives `false`.
    fn retire(&self, peer: &PeerState) -> bool {
        peer.gone.store(true, SeqCst);
        peer.lanes.iter().for_each(|lane| lane.cut_before(None));
        self.guests.cut_node(peer.node, u64::MAX);
        false
    }

    pub fn stop(&self) {
        // Under the lock of the peers: nobody is added after it.
        let peers = self.peers.write();
        self.stopping.store(true, SeqCst);
        peers.values().flat_map(|peer| &peer.lanes).for_each(|lane| lane.cut_before(None));
    }

    pub fn hello(&self, peer: &PeerState, lane: usize) -> Hello {
        Hello {
            version_min: hello::VERSION_MIN,
            version_max: hello::VERSION_MAX,
            cluster: self.identity.cluster,
            from: self.identity.node,
            from_store: self.identity.store,
            incarnation: self.identity.incarnation,
            to: peer.node,
            to_store: peer.store,
            lane: lane as u8,
            release: self.identity.release.clone(),
            knows: self.identity.knows.clone(),
            start: self.identity.start,
            began_after: self.identity.began_after,
        }
    }

    /// Whether this is somebody who may send here.
    pub fn judge_hello(&self, hello: &Hello) -> Result<(Welcome, Arc<PeerState>), Refusal> {
        let own = &self.identity;
        let version = hello::common_version(hello)?;
        if hello.cluster != own.cluster {
            return Err(Refusal::Cluster { known: own.cluster, named: hello.cluster });
        }
        if hello.to != own.node {
            return Err(Refusal::Node { known: own.node, named: hello.to });
        }
        if hello.to_store != own.store {
            return Err(Refusal::Store { node: own.node, known: own.store, named: hello.to_store });
        }
        let peer = self.peers.read().get(&hello.from).cloned().ok_or(Refusal::Stranger { named: hello.from })?;
        if hello.from_store != peer.store {
            return Err(Refusal::Store { node: peer.node, known: peer.store, named: hello.from_store });
        }
        if usize::from(hello.lane) >= LANES {
            return Err(Refusal::Lane { known: LANES as u8, named: hello.lane });
        }
        self.judge_program(&hello.knows)?;
        self.judge_life(&peer, hello.incarnation, hello.start)?;
        self.judge_log(&peer, (hello.incarnation, hello.start), hello.began_after)?;
        let welcome = Welcome {
            version,
            cluster: own.cluster,
            node: own.node,
            store: own.store,
            incarnation: own.incarnation,
            release: own.release.clone(),
            knows: own.knows.clone(),
            start: own.start,
            began_after: own.began_after,
        };
        Ok((welcome, peer))
    }

    /// Whether this is who was dialed.
    pub fn judge_welcome(&self, peer: &PeerState, welcome: &Welcome) -> Result<(), Refusal> {
        if !(hello::VERSION_MIN..=hello::VERSION_MAX).contains(&welcome.version) {
            return Err(Refusal::Versions { min: hello::VERSION_MIN, max: hello::VERSION_MAX });
        }
        if welcome.cluster != self.identity.cluster {
            return Err(Refusal::Cluster { known: self.identity.cluster, named: welcome.cluster });
        }
        if welcome.node != peer.node {
            return Err(Refusal::Stranger { named: welcome.node });
        }
        if welcome.store != peer.store {
            return Err(Refusal::Store { node: peer.node, known: peer.store, named: welcome.store });
        }
        self.judge_program(&welcome.knows)?;
        self.judge_life(peer, welcome.incarnation, welcome.start)?;
        self.judge_log(peer, (welcome.incarnation, welcome.start), welcome.began_after)
    }

    fn judge_life(&self, peer: &PeerState, life: u64, start: u64) -> Result<(), Refusal> {
        self.judge_life_by(&peer.news.lock(), peer, life, start)
    }

    /// Whether a life that is new here has all that an earlier one has told of. Of one that was seen before nothing is asked: it has told of what it wrote since. Nor where a copy
    /// was heard in the node's place: what was told was that one's. (One that said so and was refused from the first has told nothing: the next copy is asked as it was.)
    fn judge_log(&self, peer: &PeerState, (life, start): (u64, u64), began_after: Option<u64>) -> Result<(), Refusal> {
        let heard = (self.options.heard_of)(peer.node);
        let news = peer.news.lock();
        let is_seen = news.seen.as_ref().is_some_and(|(seen, _)| *seen == life) && news.start == start;
        match began_after {
            Some(end) if end < heard && !is_seen && !news.told_by_copy => {
                Err(Refusal::Forgot { node: peer.node, known: heard, named: end })
            }
            _ => Ok(()),
        }
    }

    fn judge_life_by(&self, news: &News, peer: &PeerState, life: u64, start: u64) -> Result<(), Refusal> {
        let node = peer.node;
        // What came of a process that has died may lie in the kernel's buffers for long, so that it is heard still; a connection that was dialed to it ends with it.
        let alive =
            |seen: u64| self.guests.has_life(node, seen) && peer.was_heard_within(ALIVE) && peer.reaches_life(seen);
        match &news.seen {
            _ if start != 0 && news.disowned == Some((life, start)) => {
                Err(Refusal::Copy { node, known: news.start, named: start })
            }
            Some((seen, _)) if *seen > life => Err(Refusal::Incarnation { node, known: *seen, named: life }),
            // Each start of one store is another life of it: these are two stores.
            Some((seen, _)) if *seen == life && start != 0 && news.start != 0 && news.start != start => {
                Err(Refusal::Copy { node, known: news.start, named: start })
            }
            // The process of an earlier life is gone before a later one begins, except where that has a copy of the store.
            Some((seen, _)) if *seen < life && start != 0 && news.start != 0 && alive(*seen) => {
                Err(Refusal::Alive { node, known: *seen, named: life })
            }
            _ => Ok(()),
        }
    }

    /// Both ends agreed: what is left of older lives of the peer ends.
    pub fn admit(
        &self,
        peer: &PeerState,
        (life, start): (u64, u64),
        release: &str,
        knows: &RangeInclusive<u16>,
    ) -> Result<(), Refusal> {
        let mut news = peer.news.lock();
        self.judge_life_by(&news, peer, life, start)?;
        news.knows = Some(knows.clone());
        if news.seen.as_ref().is_some_and(|(seen, _)| *seen == life) {
            if news.start == 0 {
                news.start = start;
            }
            return Ok(());
        }
        (news.seen, news.start) = (Some((life, release.to_owned())), start);
        drop(news);
        self.guests.cut_node(peer.node, life);
        peer.lanes.iter().for_each(|lane| lane.cut_before(Some(life)));
        Ok(())
    }

    /// A process says that it was a copy: where it is what was seen of the peer that is forgotten, so that an earlier life is let in. `true`: it was.
    pub fn disown(&self, node: u32, store: u128, (life, start): (u64, u64)) -> bool {
        let known = self.peers.read().get(&node).filter(|peer| peer.store == store && start != 0).cloned();
        let Some(peer) = known else { return false };
        let mut news = peer.news.lock();
        news.disowned = Some((life, start));
        let was_seen = news.start == start && news.seen.as_ref().is_some_and(|(seen, _)| *seen == life);
        if was_seen {
            (news.seen, news.start) = (None, 0);
            news.told_by_copy = true;
        }
        drop(news);
        if was_seen {
            let next = life.saturating_add(1);
            self.guests.cut_node(node, next);
            peer.lanes.iter().for_each(|lane| lane.cut_before(Some(next)));
        }
        was_seen
    }

    /// A lane to the peer is connected.
    pub fn lane_is_up(&self, peer: &PeerState) {
        let mut news = peer.news.lock();
        news.alive_since = None;
        news.lanes_up += 1;
        if news.lanes_up == LANES && !news.up {
            news.up = true;
            news.since = Instant::now();
            news.told.clear();
            let (incarnation, release) = news.seen.clone().unwrap_or_default();
            drop(news);
            self.report(&Event::Up { node: peer.node, addr: peer.addr(), incarnation, release });
        }
    }

    /// A lane to the peer was lost.
    pub fn lane_is_down(&self, peer: &PeerState, error: &io::Error) {
        let mut news = peer.news.lock();
        news.lanes_up -= 1;
        news.last_error = Some((error.to_string(), Instant::now()));
        if std::mem::replace(&mut news.up, false) {
            news.since = Instant::now();
            drop(news);
            if !self.is_over(peer) {
                self.report(&Event::Down { node: peer.node, error: error.to_string() });
            }
        }
    }

    /// An attempt failed.
    pub fn dial_failed(&self, peer: &PeerState, failure: Failure) {
        let (node, addr) = (peer.node, peer.addr());
        let outlived = match &failure {
            Failure::Refused { by_this_node: false, refusal: refusal @ Refusal::Alive { .. } } => Some(*refusal),
            _ => None,
        };
        let (told, event, error) = match failure {
            Failure::Unwanted => return,
            Failure::Io(e) => {
                let error = e.to_string();
                (Told::Unreachable, Event::Unreachable { node, addr, error: error.clone() }, error)
            }
            Failure::Refused { by_this_node, refusal } => (
                Told::RefusedAtDial(by_this_node, refusal.kind()),
                Event::RefusedAtDial { node, addr, by_this_node, refusal },
                format!("{} {refusal}", if by_this_node { "this node" } else { "the peer" }),
            ),
        };
        let mut news = peer.news.lock();
        news.failures += 1;
        news.last_error = Some((error, Instant::now()));
        let is_new = news.told.insert(told);
        let since = outlived.map(|_| *news.alive_since.get_or_insert_with(Instant::now));
        news.alive_since = since;
        let is_copy = since.is_some_and(|since| since.elapsed() >= COPY_AFTER) && news.told.insert(Told::Copy);
        drop(news);
        if is_new && !self.is_over(peer) {
            self.report(&event);
        }
        if let Some(refusal) = outlived.filter(|_| is_copy && !self.is_over(peer)) {
            self.report(&Event::Copy { node, refusal });
        }
    }

    /// Whether this refusal of a known node at the door was not told yet.
    pub fn is_new_at_door(&self, node: u32, by_this_node: bool, refusal: &Refusal) -> Option<bool> {
        let peer = self.peers.read().get(&node).cloned()?;
        let mut news = peer.news.lock();
        news.last_error =
            Some((format!("{} {refusal}", if by_this_node { "this node" } else { "the peer" }), Instant::now()));
        Some(news.told.insert(Told::RefusedAtDoor(by_this_node, refusal.kind())))
    }

    /// A peer sent what cannot be read: its connection ends.
    pub fn broken(&self, peer: &PeerState, error: &FrameError) {
        let mut news = peer.news.lock();
        news.last_error = Some((error.to_string(), Instant::now()));
        if news.told.insert(Told::Broken) {
            drop(news);
            self.report(&Event::Broken { node: peer.node, error: *error });
        }
    }

    /// A parcel that cannot be sent: to be told, if it is the first.
    pub fn unsendable(&self, peer: &PeerState, problem: &'static str) -> Option<Event> {
        let is_new = peer.news.lock().told.insert(Told::Unsendable);
        is_new.then_some(Event::Unsendable { node: peer.node, problem })
    }
}
