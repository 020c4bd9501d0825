//! The engine on disk: fjall, a log-structured merge tree, fed by sorted ingestion only (decision 0020).
//!
//! fjall's own journal stays empty: an ingestion writes tables, syncs them and registers them in one atomic step, so
//! [`Engine::sync`] has nothing left to do. Its memtables stay empty too, since the overlay is ours.
//!
//! Every ingestion is one more run on level 0, and a read of versions looks into each run: it seeks, so no filter can
//! spare it a block (decision 0020 has the figures). fjall itself would let ingestions pile them up: it looks for one merge
//! per ingestion, where a tree of three levels needs about two, and it slows down writes, not ingestions. So we say how many
//! runs there are ([`Engine::unmerged_runs`]), and have it look again for as long as it finds something ([`Engine::merge`]).
//!
//! Caveat: fjall ends its compaction thread for good when a compaction fails (a full disk, say). The next ingestion
//! notices and opens the database anew. When merges make way for what is more urgent: [`super::merges`]. How a full disk gets space back: [`reclaim`].

mod reclaim;

use super::merges::{Merges, PastFilters, PresentFilters};
use super::{Change, Engine, Lend, SMALL_BYTES, Tree, Visit, blocks, runs};
use crate::StoreError;
use crate::disk::{Room, real};
use crate::keys::{Bucket, Burial, Kept};
use crate::versions::Demand;
use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::compaction::filter::Factory;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry, HashRatioPolicy, RestartIntervalPolicy,
};
use fjall::{AbstractTree, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode};
use parking_lot::{Mutex, RwLock};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Default of [`FjallOptions::cache_bytes`].
pub const BLOCK_CACHE_BYTES: u64 = 256 << 20;
/// Threads that compact. More would only compete with sessions for the processor.
const COMPACTION_THREADS: usize = 1;
/// Size of a data block before compression.
const BLOCK_BYTES: u32 = 8 * 1024;
/// A key of a data block is written whole after so many that share their beginning with it: a read passes half as many.
const RESTART_EVERY: u8 = 4;
/// Bytes of a data block's hash index per entry: it leads a read of one key to those that share their beginning.
const HASH_RATIO: f32 = 1.0;
/// What an ingestion needs beside its own size: blocks' heads, an index, the list of tables. It is never begun where it does not fit, for a
/// failed one leaves files behind until the database is opened anew. That merges have room, too, is seen to by whoever lets writes in.
const INGESTION_BYTES: u64 = 4 << 20;
/// Files of tables that fjall keeps open, for all readers: half of the descriptors that a process may have where nobody says otherwise. The others are for sockets and logs.
const FILES_OPEN_MAX: usize = 512;
/// A past of at most this size is written anew when a part of it was dropped.
const PAST_TIDY_BYTES: u64 = 4 << 20;
/// States of a tree that fjall goes through before it gives up an older one.
const STATES: usize = 3;
/// So often a drop of the past makes way for a merge; it is tried again about 20 times a second.
const PUT_OFF_MAX: u32 = 200;
/// And so often a drop of files, which is tried again every few seconds at least.
const FILES_PUT_OFF_MAX: u32 = 20;
/// Runs of one level, of which fjall counts no more than 255: beyond, it could not read its own list of tables.
const RUNS_MAX: usize = 200;
/// fjall merges by itself again once nobody reclaimed space for so many looks: there are about 20 in a second.
const QUIET_LOOKS: u32 = 100;
/// fjall, asked to merge, found nothing if it has not begun after so many looks.
const IDLE_LOOKS: u32 = 20;
/// Sizes in bytes.
#[derive(Clone, Debug)]
pub struct FjallOptions {
    /// Blocks of tables kept in memory.
    pub cache_bytes: u64,
}

impl Default for FjallOptions {
    fn default() -> Self {
        FjallOptions { cache_bytes: BLOCK_CACHE_BYTES }
    }
}

/// Size of a table where the disk's is not known.
const TABLE_BYTES: u64 = 64 << 20;
/// Bits of a filter per key of the present: one key in a hundred that is not there is looked for in vain.
const FILTER_BITS: f32 = 10.0;
/// The trees' names in fjall.
const PRESENT: &str = "present";
const PAST: &str = "past";
/// What the one tree of stores before 2026-11-22 was called: versions of present and past side by side.
const BEFORE: &str = "versions";

struct Open {
    database: Database,
    present: Keyspace,
    past: Keyspace,
    /// What [`Open::merge`] saw last of each.
    seen: Mutex<[Seen; 2]>,
    /// fjall merges nothing by itself: space is being reclaimed, by merges that choose otherwise than it does. Two of them at once would make
    /// tables of one level overlap.
    quiet: bool,
}

/// A state of the tree, by fjall's number for it.
#[derive(Default)]
struct Seen {
    state: Option<u64>,
    /// Whether we had fjall look at it: if it is still the same, there was nothing to merge.
    looked: bool,
    /// So often it was the same since, and fjall at no merge.
    idle_looks: u32,
}

/// Below the directory of a tree: fjall's name for where its tables are.
const TABLES_DIR: &str = "tables";

/// A file beside fjall's that holds nothing: the reserve.
const BALLAST: &str = "ballast";

/// A fjall database in a directory.
pub struct FjallEngine {
    path: PathBuf,
    options: FjallOptions,
    merges: Arc<Merges>,
    /// The present is being written anew.
    compacting: AtomicBool,
    /// `None` only while it is opened anew. What takes long holds it without the lock ([`FjallEngine::hold`]), and meanwhile nothing is opened
    /// anew: who waited for that would make readers wait behind itself.
    open: RwLock<Option<Arc<Open>>>,
    /// How often the past was not dropped since, as a merge was under way.
    put_off: AtomicU32,
    /// The same of files of the present.
    files_put_off: AtomicU32,
    reclaiming: reclaim::Reclaiming,
    /// Looks since space was reclaimed.
    quiet_looks: AtomicU32,
    /// A reserve is set aside.
    ballast: AtomicBool,
}

fn of_io(doing: &'static str, error: &io::Error) -> StoreError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::DiskFull,
        _ => StoreError::Failed { doing, cause: error.to_string() },
    }
}

fn of(doing: &'static str, error: &fjall::Error) -> StoreError {
    use fjall::Error::{InvalidTag, InvalidTrailer, InvalidVersion, Io, JournalRecovery, Storage, Unrecoverable};
    match error {
        Io(e) | Storage(LsmError::Io(e)) => of_io(doing, e),
        Storage(_) | JournalRecovery(_) | InvalidVersion(_) | InvalidTrailer | InvalidTag(_) | Unrecoverable => {
            StoreError::Corrupt { place: "the engine".into(), what: format!("while {doing}: {error}") }
        }
        _ => StoreError::Failed { doing, cause: error.to_string() },
    }
}

fn gone() -> StoreError {
    StoreError::Failed { doing: "reading", cause: "the engine could not be opened again".into() }
}

impl Open {
    fn at(path: &Path, options: &FjallOptions, merges: &Arc<Merges>, quiet: bool) -> Result<Open, StoreError> {
        let merges = merges.clone();
        let builder = Database::builder(path)
            .cache_size(options.cache_bytes)
            .max_cached_files(Some(FILES_OPEN_MAX))
            .worker_threads_unchecked(if quiet { 0 } else { COMPACTION_THREADS })
            .manual_journal_persist(true)
            .with_compaction_filter_factories(Arc::new(move |name| match name {
                PRESENT => Some(Arc::new(PresentFilters(merges.clone())) as Arc<dyn Factory>),
                PAST => Some(Arc::new(PastFilters(merges.clone())) as Arc<dyn Factory>),
                _ => None,
            }));
        let failed = |e| of("opening the engine", &e);
        let database = builder.open().map_err(failed)?;
        if database.keyspace_exists(BEFORE) {
            return Err(StoreError::Failed {
                doing: "opening the engine",
                cause: "the store was written by a version before 2026-11-22, in a format that this one does not read; dump it with \
                        pg_dump on that version and load it into a new store"
                    .into(),
            });
        }
        let table_bytes = real::room(path).map_or(TABLE_BYTES, |room| room.table_bytes());
        let options = || {
            KeyspaceCreateOptions::default()
                .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(table_bytes)))
                .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
                .data_block_restart_interval_policy(RestartIntervalPolicy::all(RESTART_EVERY))
                .data_block_hash_ratio_policy(HashRatioPolicy::all(HASH_RATIO))
        };
        let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS));
        // The past is sought, never got: a filter would not be asked.
        let (present, past) = (FilterPolicy::all(bloom), FilterPolicy::disabled());
        let present = database.keyspace(PRESENT, || options().filter_policy(present)).map_err(failed)?;
        let past = database.keyspace(PAST, || options().filter_policy(past)).map_err(failed)?;
        Ok(Open { database, present, past, seen: Mutex::default(), quiet })
    }

    fn tree(&self, tree: Tree) -> &Keyspace {
        match tree {
            Tree::Present => &self.present,
            Tree::Past => &self.past,
        }
    }

    /// Has fjall look for one more merge in each tree, unless it is at one or found nothing the last time.
    fn merge(&self) -> Result<(), fjall::Error> {
        for (tree, seen) in [&self.present, &self.past].into_iter().zip(self.seen.lock().iter_mut()) {
            self.merge_tree(tree, seen)?;
        }
        Ok(())
    }

    fn merge_tree(&self, keyspace: &Keyspace, seen: &mut Seen) -> Result<(), fjall::Error> {
        let tree = &keyspace.tree;
        let state = Some(tree.current_version().id());
        if seen.state != state {
            // It looks by itself after an ingestion: let it begin.
            *seen = Seen { state, ..Seen::default() };
            return Ok(());
        }
        if self.database.active_compactions() > 0 {
            seen.idle_looks = 0;
            return Ok(());
        }
        if seen.looked {
            seen.idle_looks = seen.idle_looks.saturating_add(1);
            return Ok(());
        }
        Self::nudge(keyspace)?;
        seen.looked = true;
        Ok(())
    }

    /// Ends an ingestion of nothing, at which fjall looks for merges, and for states of the tree that nobody reads any more.
    fn nudge(keyspace: &Keyspace) -> Result<(), fjall::Error> {
        // It changes nothing, but leaves its empty table file behind; its number is the one between ours. Should a merge take numbers just
        // then, the file stays until the next start.
        let tree = &keyspace.tree;
        let before = tree.get_next_table_id();
        let empty = keyspace.start_ingestion()?;
        if tree.get_next_table_id() == before + 2 {
            let file = keyspace.path().join(TABLES_DIR).join((before + 1).to_string());
            std::fs::remove_file(file).map_err(fjall::Error::Io)?;
        }
        empty.finish()
    }

    /// Whether fjall was asked to merge a tree, and for a while found nothing that it would.
    fn is_idle(&self, tree: Tree) -> bool {
        let seen = &self.seen.lock()[usize::from(tree == Tree::Past)];
        seen.state == Some(self.tree(tree).tree.current_version().id()) && seen.idle_looks >= IDLE_LOOKS
    }

    /// Whether fjall has stopped its threads after an error.
    fn is_dead(&self) -> bool {
        matches!(self.database.persist(PersistMode::Buffer), Err(fjall::Error::Poisoned))
    }
}

impl FjallEngine {
    /// Opens the database in `path`, or begins one.
    ///
    /// # Errors
    /// [`StoreError::Failed`], [`StoreError::Corrupt`], [`StoreError::DiskFull`].
    pub fn open(path: &Path, options: FjallOptions) -> Result<Self, StoreError> {
        let merges = Arc::new(Merges::new(path));
        let open = Open::at(path, &options, &merges, false)?;
        Ok(FjallEngine {
            path: path.to_path_buf(),
            options,
            merges,
            compacting: AtomicBool::new(false),
            open: RwLock::new(Some(Arc::new(open))),
            put_off: AtomicU32::new(0),
            files_put_off: AtomicU32::new(0),
            reclaiming: reclaim::Reclaiming::new(reclaim::RECLAIM_BYTES_MAX),
            quiet_looks: AtomicU32::new(0),
            ballast: AtomicBool::new(path.join(BALLAST).exists()),
        })
    }

    fn with<R>(&self, f: impl FnOnce(&Open) -> Result<R, StoreError>) -> Result<R, StoreError> {
        match &*self.open.read() {
            Some(open) => f(open),
            None => Err(gone()),
        }
    }

    /// The database, for what takes longer than a scan.
    fn hold(&self) -> Result<Arc<Open>, StoreError> {
        self.open.read().clone().ok_or_else(gone)
    }

    /// Opens the database anew where fjall gave up, or where that failed before.
    fn revive(&self) -> Result<(), StoreError> {
        if self.open.read().as_ref().is_some_and(|open| !open.is_dead()) {
            return Ok(());
        }
        self.reopen()
    }

    /// As it was.
    fn reopen(&self) -> Result<(), StoreError> {
        let quiet = self.open.read().as_ref().is_some_and(|open| open.quiet);
        self.reopen_as(quiet)
    }

    fn reopen_as(&self, quiet: bool) -> Result<(), StoreError> {
        let mut open = self.open.write();
        if open.as_ref().is_some_and(|open| Arc::strong_count(open) > 1) {
            // Whoever asks tries again.
            return Err(StoreError::DiskFull);
        }
        *open = None;
        *open = Some(Arc::new(Open::at(&self.path, &self.options, &self.merges, quiet)?));
        Ok(())
    }

    /// Sees to it that so much is free, if it can be: what merges left behind for readers of before is deleted when the database is opened,
    /// and not before the next merge, for which a full disk has no room.
    fn make_room(&self, bytes: u64) -> Result<(), StoreError> {
        if self.lacks(bytes) && self.obsolete_bytes()? > 0 {
            self.reopen()?;
        }
        if self.lacks(bytes) { Err(StoreError::DiskFull) } else { Ok(()) }
    }

    fn lacks(&self, bytes: u64) -> bool {
        self.room().is_some_and(|room| room.free < bytes)
    }

    /// Opens the database anew where that gives space back.
    fn tidy(&self) -> Result<(), StoreError> {
        if self.obsolete_bytes()? > INGESTION_BYTES { self.reopen() } else { Ok(()) }
    }

    /// The space of files that were dropped, however little: merges may find room again. Where nothing was they would find none.
    fn give_back_at_once(&self, dropped: bool) -> Result<(), StoreError> {
        if !dropped {
            return self.tidy();
        }
        self.reopen()?;
        self.merges.resume();
        Ok(())
    }

    /// Bytes of tables that no state names any more which is read from now on.
    fn obsolete_bytes(&self) -> Result<u64, StoreError> {
        self.with(|open| {
            let failed = |e: io::Error| of_io("looking for room", &e);
            let mut found = 0;
            for keyspace in [&open.present, &open.past] {
                let files = std::fs::read_dir(keyspace.path().join(TABLES_DIR)).map_err(failed)?;
                // One may be deleted while it is looked at.
                found += files.flatten().filter_map(|file| Some(file.metadata().ok()?.len())).sum::<u64>();
            }
            Ok(found.saturating_sub(open.present.disk_space() + open.past.disk_space()))
        })
    }

    /// Writes changes, whatever is free.
    fn ingest_now(&self, tree: Tree, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        if self.with(|open| Ok(open.tree(tree).tree.l0_run_count()))? >= RUNS_MAX {
            return Err(StoreError::DiskFull);
        }
        let ingested = self.with(|open| {
            let failed = |e: fjall::Error| of("writing to the engine", &e);
            let mut ingestion = open.tree(tree).start_ingestion().map_err(failed)?;
            for (key, value) in changes {
                match value {
                    Some(value) => ingestion.write(key, value),
                    None => ingestion.write_tombstone(key),
                }
                .map_err(failed)?;
            }
            ingestion.finish().map_err(failed)
        });
        self.tidied(ingested)
    }

    /// After a step that found no room: what it had written is deleted when the database is opened.
    fn tidied(&self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        if matches!(result, Err(StoreError::DiskFull)) {
            self.reopen()?;
        }
        result
    }
}

impl Engine for FjallEngine {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.with(|open| Ok(open.tree(tree).get(key).map_err(|e| of("reading", &e))?.map(Bytes::from)))
    }

    fn scan(&self, tree: Tree, from: &[u8], to: &[u8], reverse: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if from >= to {
            return Ok(());
        }
        self.with(|open| {
            let tree = &open.tree(tree).tree;
            let scanned = if reverse { runs::scan(tree, from, to, visit) } else { blocks::scan(tree, from, to, visit) };
            scanned.map_err(|e| of("reading", &fjall::Error::Storage(e)))
        })
    }

    fn sweep(&self, tree: Tree, from: &[u8], to: &[u8], visit: &mut Lend<'_>) -> Result<(), StoreError> {
        if from >= to {
            return Ok(());
        }
        self.with(|open| {
            let tree = &open.tree(tree).tree;
            blocks::sweep(tree, from, to, visit).map_err(|e| of("reading", &fjall::Error::Storage(e)))
        })
    }

    fn ingest(&self, tree: Tree, bytes: usize, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        self.revive()?;
        let bytes = INGESTION_BYTES.saturating_add(bytes as u64);
        if self.lacks(bytes) {
            // One that is under way may have what is lacking.
            self.merges.pause();
        }
        self.make_room(bytes)?;
        self.ingest_now(tree, changes)?;
        self.merges.set_stuck(false);
        Ok(())
    }

    fn ingest_at_last(&self, tree: Tree, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        self.revive()?;
        // One that is under way has what is lacking, and what earlier ones left behind counts, however little.
        self.merges.pause();
        if self.obsolete_bytes()? > 0 {
            self.reopen()?;
        }
        let ingested = self.ingest_now(tree, changes);
        // For the past no merge may take what the present needs.
        if matches!(tree, Tree::Present) {
            self.merges.set_stuck(matches!(ingested, Err(StoreError::DiskFull)));
        }
        ingested
    }

    fn ingest_small(&self, tree: Tree, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        self.revive()?;
        if self.lacks(SMALL_BYTES) {
            self.merges.pause();
            if self.obsolete_bytes()? > 0 {
                self.reopen()?;
            }
        }
        self.ingest_now(tree, changes)
    }

    fn unmerged_runs(&self) -> usize {
        // A dead database merges nothing: the ingestion that opens it anew must not wait for that.
        // While the present is written anew nothing else is merged: reads meet more runs meanwhile, but commits go on.
        if self.compacting.load(Ordering::Acquire) || self.merges.are_paused() {
            return 0;
        }
        let open = self.open.read();
        open.as_ref().filter(|open| !open.is_dead() && !open.quiet).map_or(0, |open| {
            let runs = |keyspace: &Keyspace| keyspace.tree.l0_run_count();
            runs(&open.present).max(runs(&open.past))
        })
    }

    fn merges_in_vain(&self) -> bool {
        let runs = self.unmerged_runs();
        let stands = |open: &Open, tree| open.tree(tree).tree.l0_run_count() == runs && open.is_idle(tree);
        runs > 0
            && self.open.read().as_ref().is_some_and(|open| stands(open, Tree::Present) || stands(open, Tree::Past))
    }

    fn unmerged_bytes(&self) -> u64 {
        let open = self.open.read();
        let Some(open) = open.as_ref() else { return 0 };
        let version = open.present.tree.current_version();
        let tables = version.iter_levels().take(1).flat_map(|level| level.iter()).flat_map(|run| run.iter());
        tables.map(|table| table.metadata.file_size).sum()
    }

    fn merge(&self) {
        let quiet = self.open.read().as_ref().is_some_and(|open| open.quiet);
        if quiet {
            if self.quiet_looks.fetch_add(1, Ordering::Relaxed) >= QUIET_LOOKS {
                // What fails is tried again at the next look.
                let _ = self.reopen_as(false);
            }
            return;
        }
        if !self.merges.look() {
            // What the last one had written before it ended. What fails is tried again at the next look.
            let _ = self.tidy();
            return;
        }
        // What could not be opened before might be now; who reads next would be told otherwise.
        let _ = self.revive();
        if let Some(open) = &*self.open.read() {
            // What fails here (a full disk) fails again at the next ingestion, which says it.
            let _ = open.merge();
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        // An ingestion is durable when it returns.
        Ok(())
    }

    fn bury(&self, burial: Burial) {
        if self.merges.bury(burial) {
            self.reclaiming.wake();
        }
    }

    fn drop_past(&self, kept: &Kept) -> Result<bool, StoreError> {
        self.merges.keep(kept);
        let open = self.hold()?;
        // It would wait for a merge of the past, and whoever calls this has flushes to do.
        if open.database.active_compactions() > 0 && self.put_off.fetch_add(1, Ordering::Relaxed) < PUT_OFF_MAX {
            return Ok(false);
        }
        self.put_off.store(0, Ordering::Relaxed);
        let failed = |e: fjall::Error| of("dropping the past", &e);
        let before = open.past.disk_space();
        for (class, first) in kept {
            let (from, to) = (Bucket { class: *class, number: 0 }, Bucket { class: *class, number: *first });
            let dropped = open.past.tree.drop_range(from.lower()..to.lower());
            dropped.map_err(|e| failed(fjall::Error::Storage(e)))?;
        }
        if self.merges.are_paused() || self.lacks(INGESTION_BYTES) {
            let dropped = open.past.disk_space() < before;
            drop(open);
            // For what makes a later state there is no room.
            self.give_back_at_once(dropped)?;
            return Ok(true);
        }
        // Files go when a later state of the tree is made. Where there is little left, nobody would make one for long.
        if open.past.disk_space() > PAST_TIDY_BYTES {
            return Ok(true);
        }
        // A state is given up once two later ones are known to be read.
        for _ in 0..STATES {
            Open::nudge(&open.past).map_err(failed)?;
            open.past.major_compact().map_err(failed)?;
        }
        Ok(true)
    }

    fn drop_files(&self, from: &[u8], to: &[u8]) -> Result<bool, StoreError> {
        self.revive()?;
        let open = self.hold()?;
        // As for the past: it would wait for a merge, or for as long as the present is written anew, and flushes would wait for it.
        let merging = open.database.active_compactions() > 0
            && self.files_put_off.fetch_add(1, Ordering::Relaxed) < FILES_PUT_OFF_MAX;
        if merging || self.compacting.load(Ordering::Acquire) {
            return Ok(false);
        }
        self.files_put_off.store(0, Ordering::Relaxed);
        let before = open.present.disk_space();
        let done = open.present.tree.drop_range(from..to);
        done.map_err(|e| of("dropping files", &fjall::Error::Storage(e)))?;
        if self.merges.are_paused() {
            let dropped = open.present.disk_space() < before;
            drop(open);
            // And not with a later merge, for which there is no room.
            self.give_back_at_once(dropped)?;
        }
        Ok(true)
    }

    fn compact(&self) -> Result<(), StoreError> {
        self.revive()?;
        self.make_room(INGESTION_BYTES + self.disk_bytes())?;
        let open = self.hold()?;
        self.compacting.store(true, Ordering::Release);
        let done = self.rewrite(&open).map_err(|e| of("merging the engine", &e));
        self.compacting.store(false, Ordering::Release);
        drop(open);
        if done.is_err() {
            // What it had written is deleted when the database is opened.
            self.reopen()?;
        }
        done
    }

    fn entries(&self, tree: Tree) -> u64 {
        self.open.read().as_ref().map_or(0, |open| open.tree(tree).approximate_len() as u64)
    }

    fn disk_bytes(&self) -> u64 {
        self.open.read().as_ref().map_or(0, |open| open.present.disk_space() + open.past.disk_space())
    }

    fn cache_bytes(&self) -> u64 {
        self.open.read().as_ref().map_or(0, |open| open.database.cache_size())
    }

    fn room(&self) -> Option<Room> {
        real::room(&self.path).ok()
    }

    fn lacks_room_to_merge(&self) -> bool {
        self.merges.are_paused()
    }

    fn heed(&self, demand: &Arc<Demand>) {
        self.merges.heed(demand);
    }

    fn has_ballast(&self) -> bool {
        self.ballast.load(Ordering::Acquire)
    }

    fn set_ballast(&self, bytes: u64) -> Result<(), StoreError> {
        let file = self.path.join(BALLAST);
        let set = if bytes == 0 { real::give_back(&file) } else { real::set_aside(&file, bytes) };
        set.map_err(|e| of_io("setting a reserve of the disk aside", &e))?;
        self.ballast.store(bytes > 0, Ordering::Release);
        Ok(())
    }

    fn runs(&self) -> usize {
        self.open.read().as_ref().map_or(0, |open| open.present.tree.l0_run_count())
    }

    fn reclaim(&self, buried: u64) -> Result<bool, StoreError> {
        self.reclaim_a_little(buried)
    }
}

impl FjallEngine {
    /// Writes the present anew, in tables of the size that all others have: fjall's own way makes them so large that a small disk could never
    /// merge one again.
    fn rewrite(&self, open: &Open) -> Result<(), fjall::Error> {
        let table_bytes = real::room(&self.path).map_or(TABLE_BYTES, |room| room.table_bytes());
        // Nobody reads by number: a reader holds the tables that it reads.
        let seen = open.database.visible_seqno();
        open.present.tree.major_compact(table_bytes, seen).map_err(fjall::Error::Storage)
    }
}

#[cfg(test)]
mod tests;
