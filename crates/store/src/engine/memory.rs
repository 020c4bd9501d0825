//! An engine in memory, for tests and the simulator: it forgets what was not synced when told to crash.

use super::{Change, Engine, Tree, Visit};
use crate::StoreError;
use crate::disk::Room;
use crate::keys::{Burial, Kept, is_aged};
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Two maps in memory, with the steps that a crash would undo.
#[derive(Default)]
pub struct MemoryEngine {
    state: RwLock<State>,
}

type Map = BTreeMap<Bytes, Bytes>;

#[derive(Default)]
struct State {
    present: Map,
    past: Map,
    /// What each step since the last sync replaced, in order.
    undo: Vec<(Tree, Vec<Change>)>,
    buried: Burial,
    full: bool,
    room: Option<Room>,
    failing_syncs: u32,
}

impl State {
    fn map(&self, tree: Tree) -> &Map {
        match tree {
            Tree::Present => &self.present,
            Tree::Past => &self.past,
        }
    }
    fn map_mut(&mut self, tree: Tree) -> &mut Map {
        match tree {
            Tree::Present => &mut self.present,
            Tree::Past => &mut self.past,
        }
    }
}

impl MemoryEngine {
    /// An empty engine.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of what it holds that shares nothing with it, and what of that was not synced: a store that goes back to it. (What fails is not copied.)
    pub fn copy(&self) -> MemoryEngine {
        let state = self.state.read();
        let (present, past, undo) = (state.present.clone(), state.past.clone(), state.undo.clone());
        MemoryEngine { state: RwLock::new(State { present, past, undo, ..State::default() }) }
    }

    /// A crash: the last steps that were not synced are lost. `survive` of them reached the disk by themselves (a page
    /// cache may write early), the rest did not.
    pub fn crash(&self, survive: usize) {
        let mut state = self.state.write();
        state.buried = Burial::default();
        let undo = std::mem::take(&mut state.undo);
        let keep = survive.min(undo.len());
        for (tree, step) in undo.into_iter().skip(keep).rev() {
            let map = state.map_mut(tree);
            for (key, old) in step {
                match old {
                    Some(value) => map.insert(key, value),
                    None => map.remove(&key),
                };
            }
        }
    }

    /// From now on the disk is full, or no longer.
    pub fn set_full(&self, full: bool) {
        self.state.write().full = full;
    }

    /// What [`Engine::room`] says from now on.
    pub fn set_room(&self, room: Option<Room>) {
        self.state.write().room = room;
    }

    /// The next `n` syncs fail: what they should have made durable may be lost by a crash.
    pub fn fail_syncs(&self, n: u32) {
        self.state.write().failing_syncs = n;
    }

    /// Steps that a crash may lose now.
    pub fn unsynced_steps(&self) -> usize {
        self.state.read().undo.len()
    }
}

impl Engine for MemoryEngine {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.state.read().map(tree).get(key).cloned())
    }

    fn scan(&self, tree: Tree, from: &[u8], to: &[u8], reverse: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if from >= to {
            return Ok(());
        }
        let state = self.state.read();
        let mut range = state.map(tree).range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        while let Some((key, value)) = if reverse { range.next_back() } else { range.next() } {
            if visit(key.clone(), value.clone()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn ingest(&self, tree: Tree, _: usize, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        let mut state = self.state.write();
        if state.full {
            return Err(StoreError::DiskFull);
        }
        let map = state.map_mut(tree);
        let mut undo = Vec::new();
        for (key, value) in changes {
            let old = match value {
                Some(value) => map.insert(key.clone(), value),
                None => map.remove(&key),
            };
            debug_assert!(undo.last().is_none_or(|(last, _): &Change| *last < key), "ingested keys must ascend");
            undo.push((key, old));
        }
        state.undo.push((tree, undo));
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let mut state = self.state.write();
        if state.failing_syncs > 0 {
            state.failing_syncs -= 1;
            return Err(StoreError::Failed { doing: "syncing", cause: "the device reports an error".into() });
        }
        if state.full && !state.undo.is_empty() {
            return Err(StoreError::DiskFull);
        }
        state.undo.clear();
        Ok(())
    }

    fn room(&self) -> Option<Room> {
        self.state.read().room
    }

    fn bury(&self, burial: Burial) {
        self.state.write().buried = burial;
    }

    fn drop_past(&self, kept: &Kept) -> Result<bool, StoreError> {
        let mut state = self.state.write();
        // What a crash would undo stays: undoing it twice would bring a part of it back.
        if state.undo.is_empty() {
            state.past.retain(|key, _| !is_aged(key, kept));
        }
        Ok(true)
    }

    fn compact(&self) -> Result<(), StoreError> {
        let mut state = self.state.write();
        if state.undo.is_empty() {
            let buried = state.buried.clone();
            state.present.retain(|key, entry| !buried.takes(key, entry));
        }
        Ok(())
    }

    fn entries(&self, tree: Tree) -> u64 {
        self.state.read().map(tree).len() as u64
    }

    fn disk_bytes(&self) -> u64 {
        let state = self.state.read();
        state.present.iter().chain(&state.past).map(|(k, v)| (k.len() + v.len()) as u64).sum()
    }
}
