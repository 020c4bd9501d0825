//! The database as one process holds it: the layers below, and what all sessions share.

use crate::SqlError;
use crate::advisory::{AdvisoryLocks, ClusterLocks, LocalLocks};
use crate::answers;
use crate::catalog::garbage::{Loads, Progress, drain};
use crate::catalog::oid::Oids;
use crate::catalog::{Cache, Relation, Wait, bootstrap, retentions};
use crate::context::{MemoryBudget, MemoryPool, RuntimeFilters};
use crate::ddl::Writers;
use crate::exec::gather::{By, analyze};
use crate::sequence::Numbers;
use crate::session::{GENERATION_TEXT_BYTES_MAX, TextCache};
use crate::sessions::Sessions;
use crate::transaction::{BeginOptions, Interrupt, Isolation, Kv, Patience};
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::users;
use clock::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;

/// How long a clean stop waits to return the numbers of sequences, microseconds.
pub const CLOSE_WAIT_US: i64 = 1_000_000;

/// What [`Database::open`] may be told.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Version string shown by `SHOW server_version` after PostgreSQL's number.
    pub product_version: String,
    /// Memory that one statement may use unless the session says otherwise, bytes (`timeball.query_memory_bytes`).
    pub query_memory_bytes: usize,
    /// `timeball.snapshot_age_max` of sessions that do not say otherwise, milliseconds; 0 is never.
    pub snapshot_age_ms_max: u64,
    /// `timeball.commit_wait_budget` of sessions that do not say otherwise, microseconds: what the node goes by, to be shown.
    pub commit_wait_budget_us: Option<u64>,
    /// What the statements of all sessions share.
    pub memory_pool: Arc<MemoryPool>,
    /// How long the past of tables is kept that have no retention of their own, seconds: `timeball.retention`.
    pub retention_seconds: Option<u64>,
    /// The memory of the whole node, where it has a bound: `timeball.memory_bytes`.
    pub memory_bytes: Option<usize>,
    /// Texts that are kept with what they were parsed and planned to, bytes; what is made of them is some tens of times as large.
    pub cached_text_bytes: usize,
    /// Seed of the hash tables of queries. No answer depends on it; one that clients cannot guess keeps them from choosing keys that
    /// make a query slow. The default is always the same: draw one where there is chance.
    pub hash_seed: u64,
    /// Whether hash joins hand their keys down to scans.
    pub runtime_filters: RuntimeFilters,
    /// Changes of tables wait for those who have written to them (`users`). `false`, for tests: nobody does, and tokens refuse whoever is met.
    pub waits_for_users: bool,
    /// Who would begin to write by what a change is about to end waits for it (decision 224). For negative controls.
    pub keeps_out: bool,
    /// Who makes something of a table beside its writers looks in each step whether others have taken it back (`ddl`'s `orphans`). For negative controls.
    pub looks_for_its_own: bool,
    /// Before a column is given to the rows that were there, those are waited for who write without it, and they are ended (`ddl`'s `filling`). For negative controls.
    pub ends_versions: bool,
    /// What somebody may have seen is erased only once nobody can look at it any more (`catalog`'s `garbage`). For negative controls.
    pub keeps_seen: bool,
    /// Of a load that has failed it is said on record before what it has written is erased: its transaction may have committed all the same. For negative controls.
    pub withdraws_first: bool,
    /// What a COPY holds as writes of its transaction before it looks whether it can be loaded, bytes; `None`: by the memory of the node. For tests.
    pub held_bytes_max: Option<usize>,
    /// Unique keys that one transaction locks at most, as it inserts them. For tests.
    pub locked_keys_max: usize,
    /// The greatest number of sessions, where whoever opens them enforces one: `max_connections`.
    pub sessions_max: Option<usize>,
    /// Names of the settings among these that somebody has said where the node was started: `source` of `pg_settings` tells. The rest is what the node
    /// takes by itself.
    pub said: Vec<&'static str>,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        DatabaseOptions {
            product_version: env!("CARGO_PKG_VERSION").into(),
            query_memory_bytes: 256 << 20,
            snapshot_age_ms_max: 0,
            commit_wait_budget_us: None,
            memory_pool: Arc::default(),
            retention_seconds: None,
            memory_bytes: None,
            cached_text_bytes: GENERATION_TEXT_BYTES_MAX,
            hash_seed: 0,
            runtime_filters: RuntimeFilters::On,
            waits_for_users: true,
            keeps_out: true,
            looks_for_its_own: true,
            ends_versions: true,
            keeps_seen: true,
            withdraws_first: true,
            held_bytes_max: None,
            locked_keys_max: crate::exec::claims::LOCKED_MAX,
            sessions_max: None,
            said: Vec::new(),
        }
    }
}

/// Shared by all sessions of a process.
pub struct Database {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) options: DatabaseOptions,
    pub(crate) catalog: Cache,
    pub(crate) oids: Oids,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) loads: Loads,
    /// The indexes that are being made while their tables are written.
    pub(crate) builds: Arc<Loads>,
    pub(crate) left: Mutex<Writers>,
    drained: Progress,
    /// The catalog of which the layers below know the retentions.
    told: Mutex<Option<u64>>,
    pub(crate) texts: TextCache,
    pub(crate) sessions: Arc<Sessions>,
}

impl Database {
    /// Opens the database in `kv`; an empty one is given the database `postgres`, the schema `public` and the user `root`.
    ///
    /// # Errors
    /// Those of the layers below; 58030 if the catalog was written by a newer version.
    pub fn open(kv: Arc<dyn Kv>, options: DatabaseOptions) -> Result<Arc<Database>, SqlError> {
        bootstrap::bootstrap(kv.as_ref())?;
        Ok(Self::over(kv, options, Cache::default()))
    }

    /// Opens a database that nobody leads now, by the catalog of the past that is here: `stale` and what needs no range are served, all else says that nobody answers. When somebody leads
    /// again it is as if it had been opened then.
    ///
    /// # Errors
    /// Nothing is here, or no catalog is in it.
    pub fn open_by_the_past(kv: Arc<dyn Kv>, options: DatabaseOptions) -> Result<Arc<Database>, SqlError> {
        let (catalog, patience) = (Cache::default(), Patience::default());
        let at = kv.freshest_alone(Timestamp::MIN);
        let mut txn = kv.begin(&BeginOptions { as_of: Some(at), read_only: true, ..BeginOptions::default() })?;
        catalog.look(kv.as_ref(), &patience, txn.as_mut(), None, Wait::Hasty)?;
        drop(txn);
        Ok(Self::over(kv, options, catalog))
    }

    fn over(kv: Arc<dyn Kv>, options: DatabaseOptions, catalog: Cache) -> Arc<Database> {
        let advisory: Box<dyn AdvisoryLocks> = match kv.node() {
            0 => Box::new(LocalLocks::default()),
            _ => Box::new(ClusterLocks::new(kv.clone())),
        };
        let sessions = Sessions::new(kv.now_us() - EPOCH_OFFSET_US, advisory);
        // The layers below outlive this.
        let (asked, below) = (Arc::downgrade(&sessions), Arc::downgrade(&kv));
        let builds: Arc<Loads> = Arc::default();
        let made = builds.clone();
        kv.answer_peers(Box::new(move |question| {
            let (sessions, kv) = (asked.upgrade()?, below.upgrade()?);
            users::answer(&sessions, kv.monotonic_us(), question)
                .or_else(|| users::is_made(&made, question).map(|is_made| is_made.to_string()))
                .or_else(|| answers::answer(&sessions, kv.as_ref(), question))
        }));
        Arc::new(Database {
            kv,
            texts: TextCache::new(options.cached_text_bytes),
            options,
            catalog,
            oids: Oids::default(),
            numbers: Arc::default(),
            loads: Loads::default(),
            builds,
            left: Mutex::default(),
            drained: Progress::default(),
            told: Mutex::default(),
            sessions,
        })
    }

    /// The number of the node; 0: it is alone.
    pub fn node(&self) -> u32 {
        self.kv.node()
    }

    /// How many versions open blocks hold, as far as this node has heard (decision 239). For tests.
    pub fn open_barriers(&self) -> usize {
        self.sessions.endings.all_barred(self.kv.monotonic_us()).len()
    }

    /// The memory of a statement: at most so many bytes, and what the pool has.
    pub(crate) fn budget(&self, limit_bytes: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget::of(self.options.memory_pool.clone(), limit_bytes))
    }

    /// Takes back indexes that were being made when their process ended, and deletes some rows of dropped or truncated tables; `false` if there are none. For a maintenance thread, which calls it
    /// again while it answers `true`, and now and then. Raising the interrupt ends its waits.
    ///
    /// # Errors
    /// Those of the layers below; one that says to retry means to call again.
    pub fn drain_garbage(&self, interrupt: &Interrupt) -> Result<bool, SqlError> {
        let patience = Patience { interrupt: interrupt.clone(), ..Patience::default() };
        let settled = crate::ddl::take_back_orphans(self, &patience)?;
        Ok(drain(self.kv.as_ref(), &patience, &self.catalog, &self.loads, &self.drained, self.options.keeps_seen)?
            || settled)
    }

    /// Gathers the statistics of one table of which much was written since, or which has none; `false` if there is none such. For a maintenance thread,
    /// now and then. Raising the interrupt ends it.
    ///
    /// # Errors
    /// Those of the layers below: the first one, after all tables that come behind the one that failed.
    pub fn gather_statistics(&self, interrupt: &Interrupt) -> Result<bool, SqlError> {
        let patience = Patience { interrupt: interrupt.clone(), ..Patience::default() };
        let known = &self.sessions.statistics;
        let mut txn = patience.begin(self.kv.as_ref(), Isolation::default())?;
        let catalog = self.catalog.current(self.kv.as_ref(), &patience, txn.as_mut(), None)?;
        drop(txn);
        let mut failed = None;
        for relation in catalog.all_relations() {
            let Relation::Table(table) = relation.as_ref() else { continue };
            if interrupt.is_raised() || !known.is_due(self.kv.as_ref(), table.id) {
                continue;
            }
            match analyze(self.kv.as_ref(), known, &patience, table, By::Itself) {
                Ok(()) if failed.is_none() => return Ok(true),
                Ok(()) => {}
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        failed.map_or(Ok(false), Err)
    }

    /// Tells the layers below how long tables are kept ([`Kv::keep`]), where that may have changed. For a maintenance thread, now and then.
    ///
    /// # Errors
    /// Those of the layers below; they go by what they were told before, or wait.
    pub fn tell_retentions(&self, interrupt: &Interrupt) -> Result<(), SqlError> {
        let patience = Patience { interrupt: interrupt.clone(), ..Patience::default() };
        let mut txn = patience.begin(self.kv.as_ref(), Isolation::default())?;
        let catalog = self.catalog.current(self.kv.as_ref(), &patience, txn.as_mut(), None)?;
        let mut told = self.told.lock();
        if *told != Some(catalog.version()) {
            self.kv.keep(retentions(&catalog));
            *told = Some(catalog.version());
        }
        Ok(())
    }

    /// Returns unused sequence numbers: at a clean stop, when all sessions have ended. A clock that cannot be relied upon is waited for
    /// no longer than [`CLOSE_WAIT_US`].
    ///
    /// # Errors
    /// Those of the layers below; sequences then skip some numbers, and nothing else is lost.
    pub fn close(&self) -> Result<(), SqlError> {
        let patience = Patience::default();
        patience.deadline.set(self.kv.monotonic_us().saturating_add(CLOSE_WAIT_US));
        self.numbers.give_back(self.kv.as_ref(), &patience)
    }
}
