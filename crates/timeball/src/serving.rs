//! A node that serves: what `start` and `demo` have in common.

use crate::args::NodeOptions;
use clocksource::{Clock, ClockSource, Poller};
use server::kv::{KvNode, KvOptions};
use server::server::{DRAIN_INTERRUPT_SECONDS, DRAIN_STATEMENT_SECONDS};
use server::{Memory, Server, StoreDir, log, privacy};
use sql::{Database, DatabaseOptions};
use std::hash::{BuildHasher, RandomState};
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
        query_memory_bytes: shares.query_bytes,
        memory_pool: memory.queries.clone(),
        retention_seconds: Some(options.retention.as_secs()),
        memory_bytes: Some(shares.total_bytes),
        cached_text_bytes: shares.cached_text_bytes(),
        ..DatabaseOptions::default()
    }
}

/// A running node.
pub struct Serving {
    server: Server,
    node: Arc<KvNode<FjallEngine>>,
    _poller: Option<Poller>,
    _store: StoreDir,
}

impl Serving {
    /// Opens the store and begins to serve.
    pub fn start(store: &Path, options: &NodeOptions) -> Result<Serving, String> {
        privacy::make_files_private();
        log::set_format(options.log);
        std::panic::set_hook(Box::new(|panic| log::error("panic", &[("what", panic)])));
        let store = StoreDir::open(store).map_err(|e| e.to_string())?;
        let clock = Clock::open(&options.clock).map_err(|e| e.to_string())?;
        let poller = clock.needs_polling().then(|| clock.start_poller(log_event));
        let poller = poller.transpose().map_err(|e| e.to_string())?;
        log_clock(&clock);
        let memory = Memory::new(options.shares, crate::ALLOCATOR_REQUESTS);
        log_memory(&memory);
        let node = open_node(&store, clock, options, &memory)?;
        let sql = sql_options(options, &memory);
        let db = Database::open(node.clone(), sql).map_err(|e| e.to_string())?;
        let server = server::Options { memory, ..options.server.clone() };
        let server = Server::start(&server, db, node.clone()).map_err(|e| e.to_string())?;
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

fn log_event(event: &clocksource::Event) {
    match event.is_good_news() {
        true => log::info("clock", &[("event", event)]),
        false => log::warning("clock", &[("event", event)]),
    }
}

fn log_clock(clock: &Clock) {
    let (reading, report) = (clock.read(), clock.report());
    let bound = reading.interval.error_ns();
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
    let shares = &memory.shares;
    let engine = FjallOptions { cache_bytes: shares.block_cache_bytes as u64 };
    let versions = VersionsConfig {
        cache_bytes: shares.row_cache_bytes,
        freeze_bytes: shares.layer_bytes,
        ..VersionsConfig::default()
    };
    let began = Instant::now();
    let engine = FjallEngine::open(&store.engine(), engine).map_err(|e| e.to_string())?;
    let versions = Versions::open(engine, versions).map_err(|e| e.to_string())?;
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
