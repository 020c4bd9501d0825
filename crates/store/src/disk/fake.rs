//! A disk in memory that behaves as badly as disks may: for tests and the simulator.
//!
//! It keeps, per file, what is durable and what was only written. A crash keeps everything that was synced; of the
//! writes since then it keeps some sectors and loses others, drawn from the seed, and of the name changes since
//! [`Disk::sync_names`] it keeps a prefix.

use super::{Disk, DiskError, DiskFile, SECTOR};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How much of the unsynced a crash keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Nothing: power failed before the disk began.
    LoseUnsynced,
    /// Everything: the process died, the machine did not.
    KeepAll,
    /// Whole writes in order up to one, which is torn at a sector; nothing after it.
    TearLast,
    /// Each sector by the toss of a coin.
    Scatter,
}

#[derive(Clone, Default)]
struct Content {
    durable: Vec<u8>,
    current: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

#[derive(Clone)]
enum NameChange {
    Link(String, usize),
    Rename(String, String),
    Delete(String),
}

#[derive(Default)]
struct State {
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    changes: Vec<NameChange>,
    capacity: Option<u64>,
    failing_syncs: u32,
    /// Counts crashes: files opened before one are dead.
    era: u64,
    random: u64,
    syncs: u64,
}

/// A disk in memory.
#[derive(Clone, Default)]
pub struct FakeDisk {
    state: Arc<Mutex<State>>,
}

struct FakeFile {
    disk: FakeDisk,
    name: String,
    id: usize,
    era: u64,
}

fn change(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Link(name, id) => {
            names.insert(name.clone(), *id);
        }
        NameChange::Rename(from, to) => {
            if let Some(id) = names.remove(from) {
                names.insert(to.clone(), id);
            }
        }
        NameChange::Delete(name) => {
            names.remove(name);
        }
    }
}

impl State {
    /// splitmix64.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { usize::try_from(self.draw() % n as u64).unwrap_or(0) }
    }

    fn used(&self) -> u64 {
        self.names.values().map(|id| self.files[*id].current.len() as u64).sum()
    }

    fn rename(&mut self, what: NameChange) {
        change(&mut self.names, &what);
        self.changes.push(what);
    }

    fn crash_file(&mut self, id: usize, how: Crash) {
        let writes = std::mem::take(&mut self.files[id].unsynced);
        let whole = if how == Crash::TearLast { self.below(writes.len() + 1) } else { writes.len() };
        let mut durable = std::mem::take(&mut self.files[id].durable);
        for (n, (offset, data)) in writes.iter().enumerate() {
            let sectors = data.len().div_ceil(SECTOR);
            let torn_at = if n == whole { self.below(sectors) } else { 0 };
            for sector in 0..sectors {
                let keep = match how {
                    Crash::LoseUnsynced => false,
                    Crash::KeepAll => true,
                    Crash::TearLast => n < whole || (n == whole && sector < torn_at),
                    Crash::Scatter => self.draw().is_multiple_of(2),
                };
                if keep {
                    let from = sector * SECTOR;
                    let to = (from + SECTOR).min(data.len());
                    durable[offset + from..offset + to].copy_from_slice(&data[from..to]);
                }
            }
        }
        self.files[id].current = durable.clone();
        self.files[id].durable = durable;
    }
}

impl FakeDisk {
    /// An empty disk; its faults are drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        let disk = Self::default();
        disk.state.lock().random = seed;
        disk
    }

    /// The machine loses power. Open files are dead from now on; open them again.
    pub fn crash(&self, how: Crash) {
        let mut state = self.state.lock();
        state.era += 1;
        let changes = std::mem::take(&mut state.changes);
        let kept = match how {
            Crash::LoseUnsynced => 0,
            Crash::KeepAll => changes.len(),
            Crash::TearLast | Crash::Scatter => state.below(changes.len() + 1),
        };
        let mut names = state.durable_names.clone();
        changes[..kept].iter().for_each(|c| change(&mut names, c));
        state.names = names.clone();
        state.durable_names = names;
        for id in 0..state.files.len() {
            state.crash_file(id, how);
        }
    }

    /// All files together hold at most this many bytes; `None`: no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// The next `n` syncs of data fail, and what they should have made durable stays unsynced.
    pub fn fail_syncs(&self, n: u32) {
        self.state.lock().failing_syncs = n;
    }

    /// Flips one bit of a file, on the disk itself. Gives whether there was such a byte.
    pub fn flip_bit(&self, name: &str, byte: u64, bit: u8) -> bool {
        let mut state = self.state.lock();
        let Some(id) = state.names.get(name).copied() else { return false };
        let at = usize::try_from(byte).unwrap_or(usize::MAX);
        let file = &mut state.files[id];
        if at >= file.current.len() {
            return false;
        }
        file.current[at] ^= 1 << (bit % 8);
        file.durable[at] ^= 1 << (bit % 8);
        true
    }

    /// What a file holds now.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state.lock();
        state.names.get(name).map(|id| state.files[*id].current.clone())
    }

    /// Replaces what a file holds, durably.
    pub fn set_content(&self, name: &str, content: Vec<u8>) {
        let mut state = self.state.lock();
        let id = state.files.len();
        state.files.push(Content { durable: content.clone(), current: content, unsynced: Vec::new() });
        state.names.insert(name.into(), id);
        state.durable_names.insert(name.into(), id);
    }

    /// A copy that shares nothing with this disk: tests damage it.
    pub fn copy(&self) -> FakeDisk {
        let state = self.state.lock();
        let copy = State {
            files: state.files.clone(),
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            changes: state.changes.clone(),
            random: state.random,
            ..State::default()
        };
        FakeDisk { state: Arc::new(Mutex::new(copy)) }
    }

    /// Syncs of data so far.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    fn handle(&self, state: &State, name: &str, id: usize) -> Arc<dyn DiskFile> {
        Arc::new(FakeFile { disk: self.clone(), name: name.into(), id, era: state.era })
    }
}

impl Disk for FakeDisk {
    fn list(&self) -> Result<Vec<String>, DiskError> {
        Ok(self.state.lock().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        let state = self.state.lock();
        let id = state.names.get(name).copied().ok_or_else(|| DiskError::NotFound(name.into()))?;
        Ok(self.handle(&state, name, id))
    }

    fn create_zeroed(&self, name: &str, bytes: u64) -> Result<Arc<dyn DiskFile>, DiskError> {
        let mut state = self.state.lock();
        if state.capacity.is_some_and(|limit| state.used() + bytes > limit) {
            return Err(DiskError::Full);
        }
        let zeroes = vec![0; usize::try_from(bytes).unwrap_or(0)];
        let id = state.files.len();
        state.files.push(Content { durable: zeroes.clone(), current: zeroes, unsynced: Vec::new() });
        state.rename(NameChange::Link(name.into(), id));
        Ok(self.handle(&state, name, id))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut state = self.state.lock();
        if !state.names.contains_key(from) {
            return Err(DiskError::NotFound(from.into()));
        }
        state.rename(NameChange::Rename(from.into(), to.into()));
        Ok(())
    }

    fn delete(&self, name: &str) -> Result<(), DiskError> {
        self.state.lock().rename(NameChange::Delete(name.into()));
        Ok(())
    }

    fn sync_names(&self) -> Result<(), DiskError> {
        let mut state = self.state.lock();
        state.durable_names = state.names.clone();
        state.changes.clear();
        Ok(())
    }
}

impl FakeFile {
    fn with<R>(
        &self,
        doing: &'static str,
        f: impl FnOnce(&mut State, usize) -> Result<R, String>,
    ) -> Result<R, DiskError> {
        let mut state = self.disk.state.lock();
        let result = if state.era == self.era { f(&mut state, self.id) } else { Err("the machine crashed".into()) };
        result.map_err(|cause| DiskError::Failed { doing, file: self.name.clone(), cause })
    }
}

impl DiskFile for FakeFile {
    fn size(&self) -> Result<u64, DiskError> {
        self.with("measure", |state, id| Ok(state.files[id].current.len() as u64))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.with("write", |state, id| {
            let file = &mut state.files[id];
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let place = file.current.get_mut(from..from.saturating_add(data.len())).ok_or("it ends before")?;
            place.copy_from_slice(data);
            file.unsynced.push((from, data.to_vec()));
            Ok(())
        })
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        self.with("read", |state, id| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let place = state.files[id].current.get(from..from.saturating_add(into.len())).ok_or("it ends before")?;
            into.copy_from_slice(place);
            Ok(())
        })
    }

    fn shrink(&self, bytes: u64) -> Result<(), DiskError> {
        self.with("shrink", |state, id| {
            let file = &mut state.files[id];
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            file.unsynced.retain(|(offset, data)| offset + data.len() <= bytes);
            file.current.truncate(bytes);
            file.durable.truncate(bytes);
            Ok(())
        })
    }

    fn sync_data(&self) -> Result<(), DiskError> {
        self.with("sync", |state, id| {
            state.syncs += 1;
            if state.failing_syncs > 0 {
                state.failing_syncs -= 1;
                return Err("the device reports an error".into());
            }
            let file = &mut state.files[id];
            for (offset, data) in std::mem::take(&mut file.unsynced) {
                file.durable[offset..offset + data.len()].copy_from_slice(&data);
            }
            Ok(())
        })
    }
}
