//! What a node says of itself: rows for `timeball_internal`, fields for `/health`, metrics.

use super::{Inner, KvNode, NodeClock, Shell};
use crate::memory::{Memory, resident_bytes};
use crate::metrics::MetricsText;
use clock::{Level, Reason, Timestamp};
use node::{PeerClock, PeerWord, Span};
use parking_lot::Mutex;
use sql::internal;
use sql::transaction::Retentions;
use std::fmt::Write as _;
use store::{Engine, Versions};

type Table = (Vec<String>, Vec<Vec<Option<String>>>);

pub(super) fn table<E: Engine>(inner: &Inner<E>, name: &str) -> Option<Table> {
    match name {
        "clocks" => {
            let node = &inner.node;
            Some(clock_table(
                node.options().node,
                &inner.clock,
                node.clock_level(),
                node.clock_last(),
                node.peer_clocks(),
            ))
        }
        "ranges" => Some(ranges(inner)),
        "led" => Some(led(inner)),
        "memory" => Some(memory_table(&inner.options.memory, inner.node.versions())),
        "past" => {
            let versions = inner.node.versions();
            let kept = inner.kept.lock().clone().unwrap_or_default();
            Some(past_table(versions, versions.collected(), inner.options.gc_ttl_seconds, &kept))
        }
        _ => None,
    }
}

pub(crate) fn named(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|c| (*c).to_owned()).collect()
}

/// A value of a row.
pub(crate) fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// The node's clock, and what peers said of theirs.
pub(crate) fn clock_table(
    node: u32,
    clock: &NodeClock,
    (level, reason): (Level, Reason),
    hybrid: Timestamp,
    peers: Vec<PeerClock>,
) -> Table {
    let now = clock.read();
    let columns = named(&internal::CLOCKS);
    let row = vec![
        text(node),
        Some(clock.source()),
        Some(now.status.name().to_owned()),
        clock.error_ns().map(|ns| ns.to_string()),
        Some(now.interval.earliest_ns.to_string()),
        Some(now.interval.latest_ns.to_string()),
        text(hybrid),
        Some(now.max_drift_ppb.to_string()),
        Some(level.name().to_owned()),
        Some(reason.to_string()),
    ];
    let peers = peers.into_iter().map(peer_clock);
    (columns, std::iter::once(row).chain(peers).collect())
}

/// What a peer's last message said; what it did not say is null.
fn peer_clock(clock: PeerClock) -> Vec<Option<String>> {
    let PeerClock { word: PeerWord { peer, claim, .. }, .. } = clock;
    vec![
        Some(peer.to_string()),
        None,
        None,
        claim.map(|interval| interval.error_ns().to_string()),
        claim.map(|interval| interval.earliest_ns.to_string()),
        claim.map(|interval| interval.latest_ns.to_string()),
        None,
        None,
        None,
        None,
    ]
}

/// What gets which share of the node's memory, and what it holds of it.
pub(crate) fn memory_table<E: Engine>(memory: &Memory, versions: &Versions<E>) -> Table {
    let row = |(name, share, used): (&str, usize, Option<u64>)| {
        vec![Some(name.to_owned()), Some(share.to_string()), used.map(|used| used.to_string())]
    };
    (named(&internal::MEMORY), {
        let (cache, blocks) = (versions.cache_bytes(), versions.engine().cache_bytes());
        memory.table(cache, blocks, versions.overlay_bytes()).into_iter().map(row).collect()
    })
}

/// How far back each index can be read here; the first row is of all that are not named: from `collected` on, if nothing is set for it.
pub(crate) fn past_table<E: Engine>(
    versions: &Versions<E>,
    collected: Timestamp,
    retention_seconds: u64,
    kept: &Retentions,
) -> Table {
    let given_up = versions.given_up();
    let mut rows = vec![vec![
        None,
        Some(retention_seconds.to_string()),
        Some(collected.to_string()),
        Some(versions.garbage().past.to_string()),
        Some(given_up.versions.to_string()),
        (given_up.times > 0).then(|| given_up.below.to_string()),
    ]];
    let seconds = |index: u32| kept.indexes.iter().find(|(known, _)| *known == index).map(|(_, seconds)| *seconds);
    let apart = versions.collected_apart().into_iter().map(|(index, ts)| (u32::from_be_bytes(index), ts));
    rows.extend(apart.map(|(index, ts)| {
        let seconds = seconds(index).map(|seconds| seconds.to_string());
        vec![Some(index.to_string()), seconds, Some(ts.to_string()), None, None, None]
    }));
    (named(&internal::PAST), rows)
}

pub(crate) fn hex(key: &[u8]) -> String {
    key.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn ranges<E: Engine>(inner: &Inner<E>) -> Table {
    let columns = named(&internal::RANGES[..5]);
    let ranges = inner.node.ranges(&Span::ALL);
    let ends = ranges.iter().skip(1).map(|(start, _)| Some(hex(start))).chain([None]);
    let row = |((start, id), end): (&(bytes::Bytes, node::RangeId), Option<String>)| {
        vec![
            Some(id.0.to_string()),
            Some(hex(start)),
            end,
            Some("single".to_owned()),
            Some(inner.node.options().node.to_string()),
        ]
    };
    (columns, ranges.iter().zip(ends).map(row).collect())
}

/// What this node leads, which is everything: it needs no lease. The columns: range, start key, end key, term, from and until when a lease holds, and how
/// long that is still, milliseconds, and whether it does ([`sql::contention`]).
fn led<E: Engine>(inner: &Inner<E>) -> Table {
    let (_, rows) = ranges(inner);
    let row = |row: Vec<Option<String>>| row.into_iter().take(3).chain([None, None, None, text("- alone")]).collect();
    (Vec::new(), rows.into_iter().map(row).collect())
}

impl<E: Engine> crate::NodeView for KvNode<E> {
    fn health(&self) -> Vec<(&'static str, String)> {
        let inner = &self.inner;
        let status = if self.is_healthy() { "\"ok\"" } else { "\"failed\"" };
        let mut fields = vec![("status", status.to_owned()), ("node", inner.node.options().node.to_string())];
        fields.extend(health_fields(&inner.clock, inner.node.clock_level(), &inner.options.memory, &inner.broken));
        fields
    }
    fn is_healthy(&self) -> bool {
        self.inner.broken.lock().is_none()
    }
    fn not_ready(&self) -> Option<String> {
        self.inner.is_full(0).then(|| FULL.to_owned())
    }
    fn render(&self, text: &mut MetricsText) {
        let inner = &self.inner;
        for (name, help, value) in inner.node.counters().all() {
            text.counter(name, help, value);
        }
        render_clock(text, &inner.clock, inner.node.clock_level().0);
        let (locked, queued) = inner.node.lock_counts();
        text.gauge("lock_keys", "Rows locked", locked as u64);
        text.gauge("lock_waiters", "Transactions that queue for a row", queued as u64);
        text.gauge("ranges", "Ranges on this node", inner.node.ranges(&Span::ALL).len() as u64);
        text.gauge("log_segments", "Segments of the log in use", inner.driver.log().segments() as u64);
        render_store(text, inner.node.versions(), &inner.options.memory);
    }
}

/// Why clients should write elsewhere.
pub(crate) const FULL: &str = "its disk is full: it takes no writes of its clients but those that free space (DELETE in pieces, TRUNCATE, DROP); reads go on; free space on the store's disk, the node notices by itself";

/// The clock's figures.
pub(crate) fn render_clock(text: &mut MetricsText, clock: &NodeClock, level: Level) {
    let now = clock.read();
    // Where there is no bound there is no number: any would be taken for one.
    if let Some(error_ns) = clock.error_ns() {
        text.gauge("clock_bound_nanos", "Half the width of the clock's interval, if it has a bound", error_ns);
    }
    text.named("clock_source", "What the clock follows", "source", &clock.source());
    text.gauge("clock_status", "0 unknown, 1 synchronized, 2 free running, 3 disrupted", now.status as u64);
    text.gauge("clock_level", "0 waiting, 1 synchronized, 2 degraded, 3 too wide, 4 untrusted", level as u64);
}

/// The store's and the memory's figures.
pub(crate) fn render_store<E: Engine>(text: &mut MetricsText, versions: &Versions<E>, memory: &Memory) {
    text.gauge(
        "store_overlay_bytes",
        "Versions in memory that the engine does not hold yet",
        versions.overlay_bytes() as u64,
    );
    text.gauge("store_cache_bytes", "Rows cached", versions.cache_bytes() as u64);
    text.gauge("store_block_cache_bytes", "Blocks of the engine cached", versions.engine().cache_bytes());
    let (garbage, given_up) = (versions.garbage(), versions.given_up());
    text.gauge("store_past_versions", "Versions that others have followed, in the engine", garbage.past);
    text.gauge("store_deletions", "Deletions in the engine's present", garbage.graves);
    text.gauge("store_deletions_buried", "Those of them that may go", garbage.buried);
    text.counter("store_past_given_up", "Flushes that had no room for the past", given_up.times);
    text.counter("store_past_given_up_versions", "Versions that they did not keep, at least", given_up.versions);
    text.gauge("memory_limit_bytes", "What the node may take of the machine", memory.shares.total_bytes as u64);
    text.gauge("memory_statements_bytes", "What statements hold", memory.queries.used_bytes() as u64);
    text.gauge("memory_messages_bytes", "What large messages hold", memory.messages.used_bytes() as u64);
    if let Some(bytes) = resident_bytes() {
        text.gauge("process_resident_memory_bytes", "What the process holds of the machine", bytes);
    }
    text.gauge("store_frozen_layers", "Layers that wait for the engine", versions.frozen_layers() as u64);
}

/// What both nodes say of their clock, their memory, and what broke them.
pub(crate) fn health_fields(
    clock: &NodeClock,
    (level, reason): (Level, Reason),
    memory: &Memory,
    broken: &Mutex<Option<String>>,
) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("clock_source", format!("{:?}", clock.source())),
        ("clock_status", format!("{:?}", clock.read().status.name())),
        ("clock_bound_ns", clock.error_ns().map_or("null".to_owned(), |ns| ns.to_string())),
        ("clock_level", format!("{:?}", level.name())),
        ("clock_reason", format!("{:?}", reason.to_string())),
        ("clock_detail", format!("{:?}", clock.detail())),
        ("memory_bytes", memory.shares.total_bytes.to_string()),
    ];
    fields.extend(resident_bytes().map(|bytes| ("resident_bytes", bytes.to_string())));
    if let Some(cause) = &*broken.lock() {
        fields.push(("cause", format!("{cause:?}")));
    }
    fields
}
