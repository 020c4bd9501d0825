//! A node that serves: what `start` and `demo` have in common.

use crate::args::NodeOptions;
use crate::cluster::{JoinOptions, PEER_ADDR};
use clock::Status;
use clocksource::{Clock, ClockSource, Poller};
use node::cluster::Past;
use server::cluster::control::{self, Reply, Request};
use server::cluster::founding::Founder;
use server::cluster::{ClusterNode, ClusterSettings, identity};
use server::kv::{KvNode, KvOptions};
use server::server::{DRAIN_INTERRUPT_SECONDS, DRAIN_STATEMENT_SECONDS};
use server::{Health, Memory, NodeView, Server, StoreDir, log, privacy};
use sql::{Database, DatabaseOptions, Kv, SqlState};
use std::hash::{BuildHasher, RandomState};
use std::net::{TcpListener, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{FjallEngine, FjallOptions, Versions, VersionsConfig};

/// A stop that takes longer than this is cut off, in seconds: the promise is ten.
const STOP_SECONDS_MAX: u64 = 8;
/// Statements have their time to end and to be interrupted before the stop is cut off.
const _: () = assert!(DRAIN_STATEMENT_SECONDS + DRAIN_INTERRUPT_SECONDS < STOP_SECONDS_MAX && STOP_SECONDS_MAX < 10);

/// A seed of its own for each process, and the number of sessions that the server enforces.
fn sql_options(options: &NodeOptions, memory: &Memory) -> DatabaseOptions {
    let shares = &memory.shares;
    DatabaseOptions {
        hash_seed: RandomState::new().hash_one(0),
        sessions_max: Some(options.server.connections_max),
        snapshot_age_ms_max: u64::try_from(options.snapshot_age_max.as_millis()).unwrap_or(u64::MAX),
        commit_wait_budget_us: Some(options.ladder.strict_error_ns.saturating_mul(2) / 1000),
        query_memory_bytes: shares.query_bytes,
        memory_pool: memory.queries.clone(),
        retention_seconds: Some(options.retention.as_secs()),
        memory_bytes: Some(shares.total_bytes),
        cached_text_bytes: shares.cached_text_bytes(),
        said: options.said.clone(),
        ..DatabaseOptions::default()
    }
}

/// A member that starts and finds no majority for so long serves the past that it has (0205).
const PAST_AFTER: Duration = Duration::from_secs(10);
/// A statement that a range of the cluster could not answer yet is tried again so often while a member starts.
const START_PAUSE: Duration = Duration::from_millis(200);

/// What stands below SQL.
enum Node {
    Alone(Arc<KvNode<FjallEngine>>),
    Member(Arc<ClusterNode<FjallEngine>>),
}

impl Node {
    fn kv(&self) -> Arc<dyn Kv> {
        match self {
            Node::Alone(node) => node.clone(),
            Node::Member(node) => node.clone(),
        }
    }
    fn view(&self) -> Arc<dyn NodeView> {
        match self {
            Node::Alone(node) => node.clone(),
            Node::Member(node) => node.clone(),
        }
    }
    /// Why it will not serve any more.
    fn trouble(&self) -> Option<String> {
        match self {
            Node::Alone(_) => None,
            Node::Member(node) => node.trouble(),
        }
    }
    fn shutdown(&self) {
        match self {
            Node::Alone(node) => node.shutdown(),
            Node::Member(node) => node.shutdown(),
        }
    }
}

/// A running node.
pub struct Serving {
    server: Server,
    node: Node,
    _poller: Option<Poller>,
    _store: StoreDir,
}

impl Serving {
    /// Opens the store and begins to serve, alone.
    pub fn start(store: &Path, options: &NodeOptions) -> Result<Serving, String> {
        let store = open_store(store, options)?;
        let health = Health::open(&options.server).map_err(|e| e.to_string())?;
        let (clock, poller) = open_clock(options)?;
        let memory = Memory::new(options.shares, crate::ALLOCATOR_REQUESTS);
        log_memory(&memory);
        let node = Node::Alone(open_node(&store, clock, options, &memory)?);
        health.has_node(node.view());
        let db = Database::open(node.kv(), sql_options(options, &memory)).map_err(|e| e.to_string())?;
        Self::serve(store, poller, node, (db, health), options, memory)
    }

    /// Opens the store and begins to serve as a member of a cluster; waits until it is in one, and until that answers.
    pub fn start_member(store: &Path, options: &NodeOptions, join: &JoinOptions) -> Result<Serving, String> {
        let store = open_store(store, options)?;
        let known = identity::load(store.path())?;
        let ran_alone = known.is_none() && store.engine().exists();
        shared_clock_fits(options, join)?;
        let health = Health::open(&options.server).map_err(|e| e.to_string())?;
        let (clock, poller) = open_clock(options)?;
        let memory = Memory::new(options.shares, crate::ALLOCATOR_REQUESTS);
        log_memory(&memory);
        if ran_alone {
            nobodys_member(&store, &memory)?;
        }
        if let Some(known) = &known {
            same_cluster(store.path(), known, join)?;
        }
        let own = known.as_ref().and_then(|known| known.charter.place(known.node));
        let address = join.peer_addr.clone().or(own.map(|place| place.addr.clone()));
        let address = address.unwrap_or_else(|| PEER_ADDR.to_owned());
        let (listen_at, flag) = match &join.peer_listen_addr {
            Some(listen_at) => (listen_at, "--peer-listen-addr"),
            None => (&address, "--peer-addr"),
        };
        let (listener, bound) =
            server::server::bind(listen_at, flag, options.server.insecure).map_err(|e| e.to_string())?;
        // Port 0 takes a free one; one that others listen at in this node's place is theirs to say.
        let is_free = address.ends_with(":0") && join.peer_listen_addr.is_none();
        let found_at = if is_free { bound.to_string() } else { address };
        let founder =
            Founder::open(store.path().to_owned(), join.join.clone(), found_at, join.locality.clone(), ran_alone)?;
        let (listener, membership) = match known {
            Some(membership) => (listener, membership),
            None => found(listener, bound, &founder)?,
        };
        let began = Instant::now();
        let versions = open_member_versions(&store, clock.clone(), options, &memory, &membership)?;
        let settings = ClusterSettings {
            node: node::NodeOptions { ladder: options.ladder, ..node::NodeOptions::default() },
            retention_seconds: options.retention.as_secs(),
            memory: memory.clone(),
            scratch_dir: Some(store.path().to_owned()),
        };
        let (cluster, number) = (format!("{:016x}", membership.charter.cluster), membership.node);
        let member = ClusterNode::start(&store.log(), versions, clock, listener, &founder, membership, settings)
            .map_err(|e| e.to_string())?;
        let millis = began.elapsed().as_millis();
        log::info(
            "recovered",
            &[("store", &store.path().display()), ("cluster", &cluster), ("node", &number), ("millis", &millis)],
        );
        let node = Node::Member(member);
        health.has_node(node.view());
        let db = open_database(&node, options, &memory)?;
        Self::serve(store, poller, node, (db, health), options, memory)
    }

    fn serve(
        store: StoreDir,
        poller: Option<Poller>,
        node: Node,
        (db, health): (Arc<Database>, Health),
        options: &NodeOptions,
        memory: Arc<Memory>,
    ) -> Result<Serving, String> {
        let server = server::Options { memory, ..options.server.clone() };
        let server = Server::start(&server, health, db).map_err(|e| e.to_string())?;
        if let Node::Member(member) = &node {
            member.serves_at(server.sql_addr());
        }
        Ok(Serving { server, node, _poller: poller, _store: store })
    }

    /// A URL for clients.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://root@{}/{database}", self.server.sql_addr())
    }
    /// Address of `/health` and `/metrics`.
    pub fn http(&self) -> String {
        format!("http://{}", self.server.http_addr())
    }

    /// Stops within ten seconds.
    pub fn stop(self) {
        let cut_off = std::thread::Builder::new().name("stop-limit".into()).spawn(|| {
            std::thread::sleep(Duration::from_secs(STOP_SECONDS_MAX));
            // What was acknowledged is in the log: the next start replays it.
            log::warning("stop_cut_off", &[("seconds", &STOP_SECONDS_MAX)]);
            std::process::exit(0);
        });
        if let Err(e) = cut_off {
            log::warning("stop_has_no_limit", &[("error", &e)]);
        }
        self.server.drain();
        self.node.shutdown();
        log::info("stopped", &[]);
    }
}

fn open_store(store: &Path, options: &NodeOptions) -> Result<StoreDir, String> {
    privacy::make_files_private();
    log::set_format(options.log);
    std::panic::set_hook(Box::new(|panic| log::error("panic", &[("what", panic)])));
    StoreDir::open(store).map_err(|e| e.to_string())
}

fn open_clock(options: &NodeOptions) -> Result<(Arc<Clock>, Option<Poller>), String> {
    let clock = Clock::open(&options.clock).map_err(|e| e.to_string())?;
    let poller = clock.needs_polling().then(|| clock.start_poller(log_event));
    let poller = poller.transpose().map_err(|e| e.to_string())?;
    log_clock(&clock);
    Ok((clock, poller))
}

/// The default says that all nodes share this machine's clock: with other machines that is a promise that nobody made.
fn shared_clock_fits(options: &NodeOptions, join: &JoinOptions) -> Result<(), String> {
    let elsewhere = |address: &&String| {
        let resolved = address.to_socket_addrs();
        resolved.map_or(true, |mut all| all.any(|address| !address.ip().is_loopback()))
    };
    let Some(address) = join.join.iter().find(elsewhere).filter(|_| !options.clock_given) else { return Ok(()) };
    Err(format!(
        "--join names {address}, which may be another machine, and by default all nodes are taken to share this machine's clock: say with --clock how wrong the clock may be (auto, chrony, static:10ms), or --clock same-host if all are on this machine"
    ))
}

/// A store that is a member's was told to join nodes of another cluster: nothing good comes of either. (Those of its own charter are asked by the
/// transport, who they are.)
fn same_cluster(store: &Path, known: &identity::Membership, join: &JoinOptions) -> Result<(), String> {
    let own = known.charter.cluster;
    let strangers = join.join.iter().filter(|addr| known.charter.members.iter().all(|place| place.addr != **addr));
    let asked: Vec<_> = std::thread::scope(|scope| {
        // At once: who does not answer costs time.
        let ask = |addr: &String| control::ask(addr, &Request::Hello).ok();
        let threads: Vec<_> = strangers.map(|addr| (addr, scope.spawn(move || ask(addr)))).collect();
        threads.into_iter().map(|(addr, asked)| (addr, asked.join().ok().flatten())).collect()
    });
    match asked.into_iter().find_map(|(addr, reply)| match reply {
        Some(Reply::Member(charter)) if charter.cluster != own => Some((addr, charter.cluster)),
        _ => None,
    }) {
        None => Ok(()),
        Some((addr, other)) => Err(format!(
            "the store {} is n{} of the cluster {own:016x}, and the node at {addr}, which --join names, is of the cluster {other:016x}: mend --join, or start on an empty directory to join that one",
            store.display(),
            known.node
        )),
    }
}

/// Waits for `timeball init`, or for a cluster that lets this store in.
fn found(
    listener: TcpListener,
    bound: std::net::SocketAddr,
    founder: &Arc<Founder>,
) -> Result<(TcpListener, identity::Membership), String> {
    log::info("waiting_for_init", &[("peer_addr", &bound), ("store", &format!("{:032x}", founder.store()))]);
    crate::say(&format!(
        "peer  {bound}\nIn no cluster yet: it joins the one that --join leads to; where there is none, found it with `timeball init --host {bound}`, once, when all nodes run.\n"
    ));
    let answers = founder.clone();
    let answer = move |request: bytes::Bytes| bytes::Bytes::from(answers.answer(&request));
    let door = transport::Door::open(listener, Box::new(answer)).map_err(|e| e.to_string())?;
    let membership = founder.wait();
    let listener = door.close();
    Ok((listener, membership?))
}

/// The catalog is a range of the cluster: until that has a leader nobody can be served.
fn open_database(node: &Node, options: &NodeOptions, memory: &Memory) -> Result<Arc<Database>, String> {
    let (mut told, began) = (String::new(), Instant::now());
    loop {
        if let Some(why) = node.trouble() {
            return Err(why);
        }
        match Database::open(node.kv(), sql_options(options, memory)) {
            Ok(db) => return Ok(db),
            // The others may come yet: this node has nothing to do but to wait for them.
            Err(e)
                if e.retry()
                    || e.state == SqlState::CANNOT_CONNECT_NOW
                    || e.state == SqlState::STATEMENT_COMPLETION_UNKNOWN =>
            {
                if e.to_string() != told {
                    told = e.to_string();
                    log::warning("waiting_for_the_cluster", &[("cause", &told)]);
                }
                // Nobody comes: what this node has of the past it can show.
                if began.elapsed() >= PAST_AFTER
                    && let Ok(db) = Database::open_by_the_past(node.kv(), sql_options(options, memory))
                {
                    log::warning("serves_the_past", &[("cause", &told)]);
                    return Ok(db);
                }
                std::thread::sleep(START_PAUSE);
            }
            Err(e) => return Err(e.to_string()),
        }
    }
}

fn log_event(event: &clocksource::Event) {
    match event.is_good_news() {
        true => log::info("clock", &[("event", event)]),
        false => log::warning("clock", &[("event", event)]),
    }
}

fn log_clock(clock: &Clock) {
    let (reading, report) = (clock.read(), clock.report());
    let known = reading.status != Status::Unknown;
    let bound = if known { reading.interval.error_ns().to_string() } else { "unknown".to_owned() };
    log::info(
        "clock",
        &[("source", &report.source), ("status", &reading.status), ("bound_ns", &bound), ("detail", &report.detail)],
    );
}

/// What gets how much, mebibytes.
fn log_memory(memory: &Memory) {
    let mib: Vec<(&str, usize)> =
        memory.table(0, 0, 0).into_iter().map(|(name, share, _)| (name, share >> 20)).collect();
    let fields: Vec<(&str, &dyn std::fmt::Display)> = mib.iter().map(|(name, mib)| (*name, mib as _)).collect();
    log::info("memory_mib", &fields);
}

/// Recovers the versions and the log below a store's directory.
fn open_node(
    store: &StoreDir,
    clock: Arc<Clock>,
    options: &NodeOptions,
    memory: &Arc<Memory>,
) -> Result<Arc<KvNode<FjallEngine>>, String> {
    open_alone(store, open_versions(store, memory)?, clock, options, memory)
}

/// What a member's store holds. Of a node that ran alone until now it becomes a member's first: it may take several starts.
fn open_member_versions(
    store: &StoreDir,
    clock: Arc<Clock>,
    options: &NodeOptions,
    memory: &Arc<Memory>,
    membership: &identity::Membership,
) -> Result<Versions<FjallEngine>, String> {
    let versions = open_versions(store, memory)?;
    let has_log = || std::fs::read_dir(store.log()).is_ok_and(|mut files| files.next().is_some());
    let cannot = |why: String| format!("the store {} does not become a member's: {why}", store.path().display());
    match Past::of(&versions.recovered().state).map_err(|e| e.to_string())? {
        Past::Member { .. } => return Ok(versions),
        Past::Unwritten if !has_log() => return Ok(versions),
        Past::Unwritten | Past::Alone => {
            let node = open_alone(store, versions, clock, options, memory)?;
            node.become_member(membership.charter.cluster, membership.node).map_err(cannot)?;
            log::info("no_longer_alone", &[("store", &store.path().display()), ("node", &membership.node)]);
        }
        Past::Converted { .. } => drop(versions),
    }
    // It is all in the engine, and no member has written here yet.
    if store.log().exists() {
        std::fs::remove_dir_all(store.log()).map_err(|e| cannot(format!("its old log cannot be removed: {e}")))?;
    }
    open_versions(store, memory)
}

/// A store with data and without the file that says of which cluster they are is that of a lone node, or was a member's.
fn nobodys_member(store: &StoreDir, memory: &Memory) -> Result<(), String> {
    let versions = open_versions(store, memory)?;
    match Past::of(&versions.recovered().state).map_err(|e| e.to_string())? {
        Past::Member { cluster, node } => Err(format!(
            "the store {} is that of n{node} of the cluster {cluster:016x}, and its file CLUSTER is missing: restore it from a copy, or from another node's (its `node` line is the node's own)",
            store.path().display()
        )),
        _ => Ok(()),
    }
}

/// A lone node over its versions and its log.
fn open_alone(
    store: &StoreDir,
    versions: Versions<FjallEngine>,
    clock: Arc<Clock>,
    options: &NodeOptions,
    memory: &Arc<Memory>,
) -> Result<Arc<KvNode<FjallEngine>>, String> {
    let began = Instant::now();
    let flushed = versions.recovered().position;
    let core = node::NodeOptions { ladder: options.ladder, ..node::NodeOptions::default() };
    let (gc_ttl_seconds, scratch_dir) = (options.retention.as_secs(), Some(store.path().to_owned()));
    let kv = KvOptions { node: core, gc_ttl_seconds, awaits_retentions: true, scratch_dir, memory: memory.clone() };
    let node = KvNode::with_log_in(&store.log(), versions, clock, kv).map_err(|e| e.to_string())?;
    let (applied, millis) = (node.node().applied().0, began.elapsed().as_millis());
    let replayed = applied.saturating_sub(flushed);
    log::info(
        "recovered",
        &[("store", &store.path().display()), ("applied", &applied), ("replayed", &replayed), ("millis", &millis)],
    );
    Ok(node)
}

fn open_versions(store: &StoreDir, memory: &Memory) -> Result<Versions<FjallEngine>, String> {
    let shares = &memory.shares;
    let engine = FjallOptions { cache_bytes: shares.block_cache_bytes as u64 };
    let versions = VersionsConfig {
        cache_bytes: shares.row_cache_bytes,
        freeze_bytes: shares.layer_bytes,
        ..VersionsConfig::default()
    };
    let engine = FjallEngine::open(&store.engine(), engine).map_err(|e| e.to_string())?;
    Versions::open(engine, versions).map_err(|e| e.to_string())
}
