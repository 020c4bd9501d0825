//! The memory of a node: one setting, and what gets which share of it.
//!
//! **Problem.** Caches, versions on their way to the disk, statements and messages each have a bound. An operator has one figure: what
//! the node may take of the machine. **Idea.** All bounds are parts of that figure ([`Shares::of`]), as `docs/guide/3-server.md` has
//! them in a table; what is left over is for what nobody counts: stacks, the allocator's slack, the log, merges.
//!
//! What is not counted may be more than what is left for it: hundreds of sessions, each with pages of its own in the allocator. So the
//! process is measured, too ([`Memory::balance`], [`crate::purge`]). Where it nears the setting, freed memory goes back at once, then the
//! row cache gives way, and last the statements are told that there is no more (decision 86).
//!
//! Invariants:
//! 1. The shares together are at most 17/24 of the setting, for every setting from [`MEMORY_BYTES_MIN`] on.
//! 2. More memory makes no share smaller.
//! 3. What the process measures makes bounds smaller, never greater than their shares.
//!
//! **Caveats.** A cache's own bookkeeping is an estimate, so a share is meant within some percent.

use crate::wire::budget::MessageBudget;
use sql::context::MemoryPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// A node takes no smaller setting: below it, what is not shared out would not fit.
pub const MEMORY_BYTES_MIN: usize = 128 * MIB;
/// A node takes this part of the machine unless it is told otherwise.
pub const MACHINE_PART: usize = 4;
/// Taken where the machine does not say what it has.
const FALLBACK_BYTES: usize = 1024 * MIB;
/// Layers of versions in memory: the one that is written to, those that wait for the engine, and one that is being written out.
const LAYERS: usize = store::versions::OVERLAY_LAYERS_MAX;
/// Texts of statements are kept in two generations, once with what they were parsed to and once with their plans, each about so many
/// times as large as its text.
const PLAN_FACTOR: usize = 64;
const MIB: usize = 1 << 20;
/// Memory is scarce while the process has more than so many 24th of the setting, and until it has less than [`AMPLE_PARTS`].
const SCARCE_PARTS: usize = 16;
/// See [`SCARCE_PARTS`].
const AMPLE_PARTS: usize = 14;
/// From so many 24th on the row cache gives way.
const CACHE_PARTS: usize = 20;
/// And so many are meant to stay unreached: statements are given what is left up to here.
const FULL_PARTS: usize = 23;
/// Statements may always have so many 24th together, whatever the process measures: a node that answers nothing is of no use.
const QUERY_PARTS_MIN: usize = 1;
/// The row cache gives way to no less than this part of its share,
const CACHE_PART_MIN: usize = 8;
/// in steps of this part of it.
const CACHE_STEPS: usize = 8;

/// What gets how much, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// All of it.
    pub total_bytes: usize,
    /// Newest versions of rows.
    pub row_cache_bytes: usize,
    /// Blocks of the engine's tables.
    pub block_cache_bytes: usize,
    /// One layer of versions that the engine does not hold yet.
    pub layer_bytes: usize,
    /// The statements of all sessions together.
    pub queries_bytes: usize,
    /// One statement, unless its session says otherwise.
    pub query_bytes: usize,
    /// Large messages of all clients together.
    pub messages_bytes: usize,
    /// Statements' texts with what they were parsed and planned to.
    pub plans_bytes: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Shares::of(6144 * MIB)
    }
}

/// So many 24th of the whole, at most `most`.
fn part(total: usize, part: usize, most: usize) -> usize {
    (total * part / 24).min(most)
}

impl Shares {
    /// The shares of a setting.
    pub fn of(total_bytes: usize) -> Shares {
        let queries_bytes = part(total_bytes, 5, usize::MAX);
        Shares {
            total_bytes,
            // On a large machine they go on growing from 6 GiB on, half as fast.
            row_cache_bytes: part(total_bytes, 4, 512 * MIB).max(part(total_bytes, 2, usize::MAX)),
            block_cache_bytes: part(total_bytes, 2, 256 * MIB).max(part(total_bytes, 1, usize::MAX)),
            // Larger layers would only make a restart longer.
            layer_bytes: part(total_bytes, 3, 64 * MIB * LAYERS) / LAYERS,
            queries_bytes,
            query_bytes: (queries_bytes / 2).min(256 * MIB),
            messages_bytes: part(total_bytes, 2, 256 * MIB),
            plans_bytes: part(total_bytes, 1, 256 * MIB),
        }
    }

    /// Those of [`MACHINE_PART`] of this machine, or of the container that the process runs in.
    pub fn of_machine() -> Shares {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"].map(read);
        let machine = machine_bytes(&read("/proc/meminfo"), &limits);
        Shares::of(machine.map_or(FALLBACK_BYTES, |bytes| (bytes / MACHINE_PART).max(MEMORY_BYTES_MIN)))
    }

    /// What large transactions of members of a cluster may have in a range before they commit: no session writes more than statements have.
    pub fn staged_bytes(&self) -> u64 {
        self.queries_bytes as u64
    }

    /// Texts that one generation of the cache of plans may have.
    pub fn cached_text_bytes(&self) -> usize {
        self.plans_bytes / PLAN_FACTOR
    }

    fn layers_bytes(&self) -> usize {
        self.layer_bytes * LAYERS
    }
}

/// What the machine has, or the least that limits allow of it.
fn machine_bytes(meminfo: &str, limits: &[String]) -> Option<usize> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = total.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)?;
    // Without a limit a word stands there, or a number beyond any machine.
    let limits = limits.iter().filter_map(|limit| limit.trim().parse::<usize>().ok());
    Some(limits.fold(total, usize::min))
}

/// The memory of the process in the machine's, bytes, if the system tells.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// How the allocator is asked for what was freed: the binary knows which one it has. By itself an allocator keeps pages for a next time
/// that may never come.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// The calling thread's empty pages are for all threads. Cheap: for a session that has done something large.
    pub tidy: fn(),
    /// Empty pages go back to the system.
    pub give_back: fn(),
    /// Whether it keeps empty pages for a while (the start), or gives each back as soon as it is empty: slower, and no more than needed.
    pub keep: fn(bool),
}

impl Default for Allocator {
    /// One that gives back by itself.
    fn default() -> Self {
        Allocator { tidy: || {}, give_back: || {}, keep: |_| {} }
    }
}

/// What the parts of a node share.
#[derive(Debug)]
pub struct Memory {
    /// The bounds.
    pub shares: Shares,
    /// Of statements.
    pub queries: Arc<MemoryPool>,
    /// Of messages.
    pub messages: Arc<MessageBudget>,
    /// For what was freed.
    pub allocator: Allocator,
    row_cache_bytes: AtomicUsize,
    scarce: AtomicBool,
    freed: AtomicBool,
}

impl Memory {
    /// One with these bounds.
    pub fn new(shares: Shares, allocator: Allocator) -> Arc<Memory> {
        Arc::new(Memory {
            shares,
            queries: MemoryPool::new(shares.queries_bytes),
            messages: MessageBudget::new(shares.messages_bytes, allocator.give_back),
            allocator,
            row_cache_bytes: AtomicUsize::new(shares.row_cache_bytes),
            scarce: AtomicBool::new(false),
            freed: AtomicBool::new(false),
        })
    }

    /// What the row cache may hold now.
    pub fn row_cache_bytes(&self) -> usize {
        self.row_cache_bytes.load(Relaxed)
    }

    /// Whether the process has so much of its setting that nothing freed is kept for later.
    pub fn is_scarce(&self) -> bool {
        self.scarce.load(Relaxed)
    }

    /// The calling session has done something large, or has nothing to do: what it freed is for all, and soon the system's.
    pub fn tidy(&self) {
        (self.allocator.tidy)();
        self.freed.store(true, Relaxed);
    }

    /// Whether a session has tidied up since this was last asked.
    pub fn was_freed(&self) -> bool {
        self.freed.load(Relaxed) && self.freed.swap(false, Relaxed)
    }

    /// Goes by what the process holds of the machine, `resident` bytes: to be told often. By one thread at a time.
    pub fn balance(&self, resident: usize) {
        let shares = &self.shares;
        let parts = |parts: usize| shares.total_bytes / 24 * parts;
        let scarce = resident > parts(if self.is_scarce() { AMPLE_PARTS } else { SCARCE_PARTS });
        if scarce != self.scarce.swap(scarce, Relaxed) {
            // First what is empty already: who keeps nothing does not look for it again.
            (self.allocator.give_back)();
            (self.allocator.keep)(!scarce);
        }
        let (least, step) = (shares.row_cache_bytes / CACHE_PART_MIN, shares.row_cache_bytes / CACHE_STEPS);
        let cache = match self.row_cache_bytes() {
            now if resident > parts(CACHE_PARTS) => now.saturating_sub(step).max(least),
            now if !scarce => (now + step).min(shares.row_cache_bytes),
            now => now,
        };
        self.row_cache_bytes.store(cache, Relaxed);
        // What statements hold is in what was measured. Until it is measured again they may take half of what is left: a byte that is
        // counted for a row is more than one of the machine's.
        let left = parts(FULL_PARTS).saturating_sub(resident) / 2;
        let queries = (self.queries.used_bytes() + left).max(parts(QUERY_PARTS_MIN));
        self.queries.set_limit_bytes(shares.queries_bytes.min(queries));
    }

    /// Each share: its name, its bound, and what it holds now where that is counted; the whole first. The store knows its own part.
    pub fn table(&self, row_cache: usize, block_cache: u64, layers: usize) -> Vec<(&'static str, usize, Option<u64>)> {
        let shares = &self.shares;
        vec![
            ("total", shares.total_bytes, resident_bytes()),
            ("row_cache", shares.row_cache_bytes, Some(row_cache as u64)),
            ("block_cache", shares.block_cache_bytes, Some(block_cache)),
            ("unwritten_versions", shares.layers_bytes(), Some(layers as u64)),
            ("statements", shares.queries_bytes, Some(self.queries.used_bytes() as u64)),
            ("large_messages", shares.messages_bytes, Some(self.messages.used_bytes() as u64)),
            ("plans", shares.plans_bytes, None),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(s: &Shares) -> [usize; 6] {
        [s.row_cache_bytes, s.block_cache_bytes, s.layers_bytes(), s.queries_bytes, s.messages_bytes, s.plans_bytes]
    }

    #[test]
    fn shares_fit_and_grow() {
        let mut before = Shares::of(MEMORY_BYTES_MIN);
        for total in (MEMORY_BYTES_MIN..64 << 30).step_by(61 * MIB) {
            let shares = Shares::of(total);
            assert!(parts(&shares).iter().sum::<usize>() <= total / 24 * 17 + 17, "{shares:?}");
            assert!(parts(&shares).iter().zip(parts(&before)).all(|(now, before)| *now >= before), "{shares:?}");
            assert!(shares.query_bytes <= shares.queries_bytes);
            before = shares;
        }
    }

    #[test]
    fn the_least_setting_leaves_something_to_each() {
        let least = Shares::of(MEMORY_BYTES_MIN);
        assert!(least.row_cache_bytes >= 16 * MIB && least.block_cache_bytes >= 8 * MIB, "{least:?}");
        assert!(least.layer_bytes >= 2 * MIB && least.query_bytes >= 8 * MIB && least.messages_bytes >= 8 * MIB);
    }

    /// A gibibyte of which the process has so many 24th.
    fn balanced(memory: &Memory, parts: usize) -> (bool, usize, usize) {
        memory.balance(memory.shares.total_bytes / 24 * parts + 1);
        (memory.is_scarce(), memory.row_cache_bytes(), memory.queries.limit_bytes())
    }

    #[test]
    fn what_the_process_measures_makes_bounds_smaller() {
        static KEEPS: AtomicUsize = AtomicUsize::new(0);
        let keep = |keep: bool| KEEPS.store(1 + usize::from(keep), Relaxed);
        let memory = Memory::new(Shares::of(1024 * MIB), Allocator { keep, ..Allocator::default() });
        let (cache, queries) = (memory.shares.row_cache_bytes, memory.shares.queries_bytes);
        assert_eq!(balanced(&memory, 10), (false, cache, queries));
        assert_eq!((balanced(&memory, 12), KEEPS.load(Relaxed)), ((false, cache, queries), 0));
        let (scarce, same, less) = balanced(&memory, 16);
        assert!(scarce && same == cache && less < queries);
        assert_eq!((balanced(&memory, 15).0, KEEPS.load(Relaxed)), (true, 1), "not to and fro");
        let (_, smaller, _) = balanced(&memory, 20);
        assert!(smaller < cache);
        // Beyond the setting statements and the cache keep something.
        let full: Vec<_> = (0..20).map(|_| balanced(&memory, 25)).collect();
        assert_eq!(full.last(), Some(&(true, cache / CACHE_PART_MIN, 1024 * MIB / 24)));
        assert_eq!((balanced(&memory, 10).2, KEEPS.load(Relaxed)), (queries, 2));
        for _ in 0..20 {
            balanced(&memory, 10);
        }
        assert_eq!(balanced(&memory, 10), (false, cache, queries), "all of it comes back");
    }

    #[test]
    fn what_statements_hold_is_theirs() {
        let memory = Memory::new(Shares::of(1024 * MIB), Allocator::default());
        let budget = sql::context::MemoryBudget::of(memory.queries.clone(), usize::MAX);
        budget.take(64 * MIB).unwrap();
        let (_, _, limit) = balanced(&memory, 24);
        assert_eq!(limit, memory.queries.used_bytes(), "no more, and what is out stays");
        assert!(budget.take(2 * MIB).is_err());
        balanced(&memory, 20);
        budget.take(2 * MIB).unwrap();
    }

    #[test]
    fn six_gibibytes_are_what_was_there_before_the_setting() {
        let shares = Shares::default();
        let (versions, engine) = (store::VersionsConfig::default(), store::FjallOptions::default());
        assert_eq!((shares.row_cache_bytes, shares.layer_bytes), (versions.cache_bytes, versions.freeze_bytes));
        assert_eq!(shares.block_cache_bytes as u64, engine.cache_bytes);
        let sql = sql::DatabaseOptions::default();
        assert_eq!((shares.query_bytes, shares.cached_text_bytes()), (sql.query_memory_bytes, sql.cached_text_bytes));
    }

    #[test]
    fn a_container_has_less_than_its_machine() {
        let meminfo = "MemTotal:       24530564 kB\nMemFree:  1 kB\n";
        let limits = |text: &str| [text.to_owned(), String::new()];
        assert_eq!(machine_bytes(meminfo, &limits("max\n")), Some(24_530_564 << 10));
        assert_eq!(machine_bytes(meminfo, &limits("1073741824\n")), Some(1 << 30));
        assert_eq!(machine_bytes(meminfo, &limits("9223372036854771712\n")), Some(24_530_564 << 10));
        assert_eq!(machine_bytes("", &limits("max")), None);
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
