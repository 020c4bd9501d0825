//! From files to a member that serves.

use super::control::{Reply, Request};
use super::founding::Founder;
use super::identity::Membership;
use super::journal::{self, Journal};
use super::{ClusterNode, Inner, beat, class, info, placing, reading, roster, space};
use crate::kv::info::FULL;
use crate::kv::park::Sleeper;
use crate::kv::{NodeClock, Room, Shell, disk_log};
use crate::memory::Memory;
use bytes::Bytes;
use clocksource::ClockSource;
use node::NodeOptions;
use node::cluster::{
    ClusterOptions, Founding, Input, Message, NodeId, Opening, STAGED_BYTES_MAX, VERSION_MAX, VERSION_MIN,
};
use parking_lot::{Mutex, RwLock};
use sql::transaction::Interrupt;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;
use store::{Engine, Versions};
use transport::{Identity, Parcel, Transport};

pub use crate::kv::OpenError;

/// The range that a cluster begins with.
const FIRST_RANGE: u64 = 1;
/// Replicas of a range, at most: the first nodes of a charter.
pub const REPLICAS: usize = 3;

/// Settings of the shell.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The node core's settings.
    pub node: NodeOptions,
    /// Versions younger than this can be read with `AS OF SYSTEM TIME`, seconds.
    pub retention_seconds: u64,
    /// What the store shares with the rest of the node.
    pub memory: Arc<Memory>,
    /// Where statements put what does not fit their memory; `None`: in memory after all.
    pub scratch_dir: Option<PathBuf>,
}

impl<E: Engine> ClusterNode<E> {
    /// A member over versions, with its log in the directory `dir`, which its peers reach at `listener`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn start(
        dir: &Path,
        versions: Versions<E>,
        clock: Arc<dyn ClockSource>,
        listener: TcpListener,
        founder: &Arc<Founder>,
        membership: Membership,
        settings: ClusterSettings,
    ) -> Result<Arc<Self>, OpenError> {
        let clock = Arc::new(NodeClock::new(clock, false));
        let options = options(&membership, &settings);
        let mut opening = Opening::new(options, Arc::new(versions), &clock.read())?;
        let mut last = 0;
        let log = disk_log::open(dir, 0, &mut |position, record: Bytes| {
            last = position;
            opening.replay(position, &record).map_err(|e| e.to_string())
        })?;
        let member = opening.finish(&clock.read())?;
        member.set_nodes(roster::nodes(&membership.charter));
        let inner = Arc::new(Inner {
            member,
            node: membership.node,
            founder: founder.clone(),
            charter: RwLock::new(Arc::new(membership.charter)),
            proclaims: AtomicBool::new(false),
            interrupt: Interrupt::default(),
            clock,
            journal: Journal::new(log, last),
            beat: beat::Handle::default(),
            transport: OnceLock::new(),
            memory: settings.memory,
            scratch_dir: settings.scratch_dir,
            retention_seconds: settings.retention_seconds,
            kept: Mutex::new(None),
            began: Instant::now(),
            crowded: AtomicBool::new(false),
            full: AtomicBool::new(false),
            flush: AtomicBool::new(true),
            placing: Sleeper::default(),
            reading: reading::Queue::default(),
            space: Sleeper::default(),
            leaving: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            answer: OnceLock::new(),
            broken: Mutex::new(None),
            judging: Mutex::default(),
            removed: OnceLock::new(),
            ailing: Mutex::default(),
            sql_addr: OnceLock::new(),
        });
        // Before the first write is let in.
        space::tell_room(&inner, Room::is_full(inner.member.versions(), inner.journal.log()));
        // A peer may refuse it before it is known here that it is connected, and says so once.
        let judging = inner.judging.lock();
        let transport = connect(&inner, listener)?;
        let _ = inner.transport.set(transport);
        drop(judging);
        inner.see_to(inner.member.drain(&inner.clock.read()));
        journal::lead(&*inner);
        let mut threads = Vec::new();
        let mut spawn = |name: &str, run: fn(&Arc<Inner<E>>)| {
            let shared = inner.clone();
            threads.push(std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&shared))?);
            Ok::<(), std::io::Error>(())
        };
        spawn("ticks", |inner| beat::run(inner))?;
        spawn("log", |inner| journal::run(inner))?;
        spawn("placing", |inner| placing::run(inner))?;
        for _ in 0..reading::READERS {
            spawn("reading", |inner| reading::run(inner))?;
        }
        spawn("maintenance", |inner| space::run(inner))?;
        spawn("charter", roster::run)?;
        Ok(Arc::new(ClusterNode { inner, threads: Mutex::new(threads) }))
    }
}

fn options(membership: &Membership, settings: &ClusterSettings) -> ClusterOptions {
    // Who joined later has its first replica by hand, and founds nothing.
    let founders = (1..=membership.charter.founders).take(REPLICAS);
    let replicas = founders.map(NodeId).collect();
    let ranges = vec![Founding { range: node::RangeId(FIRST_RANGE), start: Bytes::new(), replicas }];
    let seed = super::founding::draw();
    let mut options = ClusterOptions::new(membership.charter.cluster, NodeId(membership.node), ranges, seed);
    options.version = membership.charter.version;
    options.node_options = settings.node.clone();
    options.limits.staged_bytes = settings.memory.shares.staged_bytes().min(STAGED_BYTES_MAX);
    options
}

/// Begins to hear its peers, and to speak to them.
fn connect<E: Engine>(inner: &Arc<Inner<E>>, listener: TcpListener) -> Result<Transport, OpenError> {
    let charter = inner.charter();
    let identity = Identity {
        cluster: charter.cluster,
        node: inner.node,
        store: inner.founder.store(),
        incarnation: inner.member.incarnation(),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        knows: VERSION_MIN..=VERSION_MAX,
        start: super::founding::draw(),
        began_after: Some(inner.member.began_after().0),
    };
    let peers = roster::peers(&charter, inner.node);
    // The transport's threads must not keep the node alive.
    let heard: Weak<Inner<E>> = Arc::downgrade(inner);
    let deliver = move |parcels: Vec<Parcel>| {
        let Some(inner) = heard.upgrade() else { return };
        let mut waits = false;
        for Parcel { from, to, lane, bytes } in parcels {
            let message = Message { from: NodeId(from), to: NodeId(to), class: class(lane), bytes };
            waits |= inner.step(Input::Message(message));
        }
        // What came together is synced together.
        if waits {
            journal::lead(&*inner);
        }
    };
    let founder = inner.founder.clone();
    let asked = Arc::downgrade(inner);
    let control = move |request: Bytes| Bytes::from(answer(&asked, &founder, &request));
    let shared = Arc::downgrade(inner);
    let report = Arc::new(move |event: &transport::Event| {
        log_event(event);
        if let transport::Event::Copy { node, refusal: transport::Refusal::Alive { known, .. } } = event
            && let Some(inner) = shared.upgrade()
        {
            inner.is_a_copy(*node, *known);
        }
        if let transport::Event::RefusedAtDial { node: told_by, by_this_node: false, refusal, .. }
        | transport::Event::RefusedAtDoor { node: told_by, by_this_node: false, refusal, .. } = event
            && let transport::Refusal::Forgot { node, known, named } = refusal
            && let Some(inner) = shared.upgrade().filter(|inner| inner.node == *node)
        {
            inner.has_forgotten(*told_by, *known, *named);
        }
    });
    let knows = Arc::downgrade(inner);
    let heard_of = move |node| knows.upgrade().map_or(0, |inner| inner.member.heard_of(NodeId(node)).0);
    let seed = super::founding::draw();
    let options = transport::Options { seed, report, heard_of: Arc::new(heard_of), ..transport::Options::default() };
    let transport = Transport::start(listener, identity, peers, options, Box::new(deliver), Box::new(control))?;
    transport.set_cluster_version(charter.version);
    Ok(transport)
}

/// Answers a control request: what is of the cluster as it runs is the member's, the rest the founder's.
fn answer<E: Engine>(asked: &Weak<Inner<E>>, founder: &Founder, request: &[u8]) -> Vec<u8> {
    let Some(inner) = asked.upgrade() else { return founder.answer(request) };
    let reply = match Request::of_bytes(request) {
        Some(Request::Status) => Reply::Ok(info::status_text(&inner)),
        Some(Request::Join(newcomer)) => inner.join(&newcomer),
        Some(Request::Life) => inner.own_life().map_or_else(
            || Reply::Later("it hears no other node of its cluster now".to_owned()),
            |life| Reply::Ok(life.to_text()),
        ),
        Some(Request::Disown(life)) => inner.disown(&life),
        Some(Request::Holds(node)) => inner.holds(node),
        Some(Request::Ails) => Reply::Ok(if inner.is_full(0) { FULL.to_owned() } else { String::new() }),
        Some(Request::Sql(question)) => match inner.answer.get().and_then(|answer| answer(&question)) {
            Some(told) => Reply::Ok(told),
            None => Reply::Later("it serves no SQL yet, or does not understand the question".into()),
        },
        Some(Request::Serves) => match inner.sql_addr.get() {
            Some(address) => Reply::Ok(format!("n{} serves SQL at {address}\n", inner.node)),
            None => Reply::Later(format!("n{} is about to serve", inner.node)),
        },
        Some(Request::Leave(node)) => inner.leave(node),
        Some(Request::Replicas(replacement)) => inner.replace(&replacement),
        Some(Request::Lead(leadership)) => inner.hand_lead(&leadership),
        Some(Request::Parts(range, keys)) => inner.parts(range, keys),
        Some(Request::Upgrade) => inner.upgrade(),
        _ => return founder.answer(request),
    };
    reply.to_bytes()
}

fn log_event(event: &transport::Event) {
    match matches!(event, transport::Event::Up { .. }) {
        true => crate::log::info("peer", &[("event", event)]),
        false => crate::log::warning("peer", &[("event", event)]),
    }
}
