//! The engine: two ordered maps of bytes on disk, behind a trait as narrow as our use of it.
//!
//! The engine is never asked to be durable for each commit: the log is. It takes whole overlays, sorted, each tree's part in one
//! atomic step ([`Engine::ingest`]), and says when that step will survive a crash ([`Engine::sync`]).
//!
//! Invariants that each implementation keeps:
//! 1. `ingest` is atomic, for concurrent scans and across a crash.
//! 2. After `sync` returned, everything that was ingested before it survives a crash.
//! 3. A crash loses whole steps from the end, never one from the middle.
//! 4. A `scan` sees one state of a tree, however long it runs.

mod blocks;
mod entries;
pub mod fjall;
mod lent;
mod levels;
pub mod memory;
mod merges;
mod runs;

pub use lent::LentKey;

use crate::StoreError;
use crate::disk::Room;
use crate::keys::{Burial, Kept};
use crate::versions::Demand;
use bytes::Bytes;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What [`Engine::ingest_small`] needs: a table's file, and a new list of tables.
pub(crate) const SMALL_BYTES: u64 = 256 << 10;

/// One change of a tree: a key, and its new value or `None` to remove it.
pub type Change = (Bytes, Option<Bytes>);

/// What a scan calls for each entry: `Break` ends the scan. It must not call the engine.
pub type Visit<'a> = dyn FnMut(Bytes, Bytes) -> ControlFlow<()> + 'a;

/// What a sweep calls for each entry, which it lends: `Break` ends it. It must not call the engine.
pub type Lend<'a> = dyn FnMut(LentKey<'_>, &[u8]) -> ControlFlow<()> + 'a;

/// One of the two maps. Their entries: [`crate::keys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tree {
    /// The newest version of each key.
    Present,
    /// Versions that were followed by others, by when that was.
    Past,
}

/// Two ordered maps of bytes.
pub trait Engine: Send + Sync + 'static {
    /// The value of one key.
    ///
    /// # Errors
    /// [`StoreError::Failed`] or [`StoreError::Corrupt`].
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// Visits the entries with `from <= key < to` in order (highest first where `reverse`), until the visitor breaks.
    ///
    /// # Errors
    /// [`StoreError::Failed`] or [`StoreError::Corrupt`]; entries may have been visited before.
    fn scan(&self, tree: Tree, from: &[u8], to: &[u8], reverse: bool, visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// As [`Engine::scan`], forwards: for who looks at many entries and keeps none of them.
    ///
    /// # Errors
    /// As [`Engine::scan`].
    fn sweep(&self, tree: Tree, from: &[u8], to: &[u8], visit: &mut Lend<'_>) -> Result<(), StoreError> {
        self.scan(tree, from, to, false, &mut |key, value| visit(key[..].into(), &value))
    }

    /// Applies all changes of a tree or none; they are about `bytes` large. Keys must come in strictly ascending order.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] where nothing changed; else [`StoreError::Failed`].
    fn ingest(&self, tree: Tree, bytes: usize, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError>;

    /// Sorted runs of a tree that wait to be merged, of the tree that has most. A read that no row cache answers looks into each of
    /// them, so the caller holds ingestions back while there are many. An engine that keeps one run has none.
    fn unmerged_runs(&self) -> usize {
        0
    }

    /// Whether nothing merges them: it was asked to, and for a while found nothing that it would. (fjall may prefer another level that it cannot
    /// merge either.) Who waits for that waits for ever, unless they are merged otherwise ([`Engine::reclaim`]).
    fn merges_in_vain(&self) -> bool {
        false
    }

    /// About what the runs of the present take that wait to be merged: merging them takes as much room for a while.
    fn unmerged_bytes(&self) -> u64 {
        0
    }

    /// Asks an engine that merges in the background to go on with it: a hint, which returns at once. To be given now and
    /// then, most of all while ingestions are held back.
    fn merge(&self) {}

    /// As [`Engine::ingest`], of what waits although there is too little room for it as far as is known: it is tried. What does not fit leaves
    /// nothing behind.
    ///
    /// # Errors
    /// As [`Engine::ingest`].
    fn ingest_at_last(&self, tree: Tree, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        self.ingest(tree, 0, changes)
    }

    /// As [`Engine::ingest_at_last`], of a few hundred bytes that are not in memory to be written out: it tells nothing of what is, and others make way
    /// only where there is next to no room.
    ///
    /// # Errors
    /// As [`Engine::ingest`].
    fn ingest_small(&self, tree: Tree, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        self.ingest_at_last(tree, changes)
    }

    /// Whether merges ended for want of room, and rest: what waits for them is given back otherwise ([`Engine::reclaim`]).
    fn lacks_room_to_merge(&self) -> bool {
        false
    }

    /// What is still to be written, now and later: merges leave room for it.
    fn heed(&self, demand: &Arc<Demand>) {
        let _ = demand;
    }

    /// Whether a reserve is set aside on its disk.
    fn has_ballast(&self) -> bool {
        true
    }

    /// Sets a reserve of so many bytes aside, or gives it up (0).
    ///
    /// # Errors
    /// [`StoreError::DiskFull`], with nothing left behind; [`StoreError::Failed`].
    fn set_ballast(&self, bytes: u64) -> Result<(), StoreError> {
        let _ = bytes;
        Ok(())
    }

    /// Sorted runs of the present that wait to be merged, whether or not anybody is to wait for that.
    fn runs(&self) -> usize {
        0
    }

    /// Makes everything ingested so far durable.
    ///
    /// # Errors
    /// As [`Engine::ingest`].
    fn sync(&self) -> Result<(), StoreError>;

    /// From now on merges may drop entries of the present where [`Burial::takes`] them: deletions, and what is dead.
    fn bury(&self, burial: Burial);

    /// Gives back what is [aged](crate::keys::is_aged) of the past, as far as that is cheap: nobody reads there any more. The rest goes with
    /// merges, or a later call. `false`: it would have had to wait for a merge, and is to be called again soon.
    ///
    /// # Errors
    /// [`StoreError::Failed`]; nothing that can be read is lost.
    fn drop_past(&self, kept: &Kept) -> Result<bool, StoreError>;

    /// Gives back files of the present that lie wholly in `[from, to)`, where nobody reads or writes any more. What they hid in other files
    /// comes to light. `false`: it would have had to wait for a merge; call again later.
    ///
    /// # Errors
    /// As [`Engine::ingest`]; nothing else is lost.
    fn drop_files(&self, from: &[u8], to: &[u8]) -> Result<bool, StoreError> {
        let _ = (from, to);
        Ok(true)
    }

    /// Writes the present anew, without what is hidden or buried: slow, and may go on beside reads and ingestions. For a background
    /// thread.
    ///
    /// # Errors
    /// As [`Engine::ingest`]; nothing is lost.
    fn compact(&self) -> Result<(), StoreError>;

    /// Entries of a tree, about.
    fn entries(&self, tree: Tree) -> u64;

    /// Bytes on disk, about.
    fn disk_bytes(&self) -> u64;

    /// Bytes of memory that its caches hold, about.
    fn cache_bytes(&self) -> u64 {
        0
    }

    /// The room where it is; `None`: it knows no bound, or cannot tell.
    fn room(&self) -> Option<Room> {
        None
    }

    /// Gives back some of what removals hide, a little at a time as there is little room: for a full disk. `buried` entries of the present may
    /// go, about. `false`: there is more to be done, also where there is no room for it: call again.
    ///
    /// # Errors
    /// As [`Engine::ingest`]; nothing is lost.
    fn reclaim(&self, buried: u64) -> Result<bool, StoreError> {
        let _ = buried;
        Ok(true)
    }
}

impl<E: Engine> Engine for Arc<E> {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        E::get(self, tree, key)
    }
    fn scan(&self, tree: Tree, from: &[u8], to: &[u8], reverse: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        E::scan(self, tree, from, to, reverse, visit)
    }
    fn sweep(&self, tree: Tree, from: &[u8], to: &[u8], visit: &mut Lend<'_>) -> Result<(), StoreError> {
        E::sweep(self, tree, from, to, visit)
    }
    fn ingest(&self, tree: Tree, bytes: usize, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        E::ingest(self, tree, bytes, changes)
    }
    fn unmerged_runs(&self) -> usize {
        E::unmerged_runs(self)
    }
    fn merges_in_vain(&self) -> bool {
        E::merges_in_vain(self)
    }
    fn unmerged_bytes(&self) -> u64 {
        E::unmerged_bytes(self)
    }
    fn merge(&self) {
        E::merge(self);
    }
    fn ingest_at_last(&self, tree: Tree, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        E::ingest_at_last(self, tree, changes)
    }
    fn ingest_small(&self, tree: Tree, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        E::ingest_small(self, tree, changes)
    }
    fn lacks_room_to_merge(&self) -> bool {
        E::lacks_room_to_merge(self)
    }
    fn heed(&self, demand: &Arc<Demand>) {
        E::heed(self, demand);
    }
    fn has_ballast(&self) -> bool {
        E::has_ballast(self)
    }
    fn set_ballast(&self, bytes: u64) -> Result<(), StoreError> {
        E::set_ballast(self, bytes)
    }
    fn runs(&self) -> usize {
        E::runs(self)
    }
    fn sync(&self) -> Result<(), StoreError> {
        E::sync(self)
    }
    fn bury(&self, burial: Burial) {
        E::bury(self, burial);
    }
    fn drop_past(&self, kept: &Kept) -> Result<bool, StoreError> {
        E::drop_past(self, kept)
    }
    fn drop_files(&self, from: &[u8], to: &[u8]) -> Result<bool, StoreError> {
        E::drop_files(self, from, to)
    }
    fn compact(&self) -> Result<(), StoreError> {
        E::compact(self)
    }
    fn entries(&self, tree: Tree) -> u64 {
        E::entries(self, tree)
    }
    fn disk_bytes(&self) -> u64 {
        E::disk_bytes(self)
    }
    fn cache_bytes(&self) -> u64 {
        E::cache_bytes(self)
    }
    fn room(&self) -> Option<Room> {
        E::room(self)
    }
    fn reclaim(&self, buried: u64) -> Result<bool, StoreError> {
        E::reclaim(self, buried)
    }
}
