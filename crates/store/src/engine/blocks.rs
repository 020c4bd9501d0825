//! Entries of a fjall tree, read block by block, upwards: lent to who looks at them ([`sweep`]), or given to who keeps them ([`scan`]).
//!
//! Problem: of what a scan of many rows cost, 40 % was fjall's hand-over of each entry: an allocation for its key, which is stored without what
//! it shares with the one before, two counts of holders for its slices of the block, and a move through four iterators. Who counts or sums
//! keeps none of it. And of what it cost to look a few rows up, most was to make these iterators. Idea: in a block it is kept where the next entry
//! lies, and no more; the key of the entry that is looked at is lent in the two parts that it has there, its value where it lies.
//!
//! The table's index leads to blocks by fjall's own readers, to few at first; the places in a block come from [`entries`], or where that does not understand it from
//! fjall's own reader again. Blocks that the cache does not hold are read several at a time, as they lie one behind the other, once a stretch is longer than those looked up
//! at first. Their files are those that fjall keeps open, which all readers share, each held for one read: sessions times runs would be more than a process may open.
//!
//! Invariants: those of [`super::runs`]. Forwards only.

use super::entries::{Item, Next, Place};
use super::{Lend, LentKey, Visit};
use bytes::Bytes;
use fjall::{AbstractTree, LsmError};
use lsm_tree::descriptor_table::DescriptorTable;
use lsm_tree::file_accessor::FileAccessor;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::data_block::DataBlockParsedItem;
use lsm_tree::table::util::load_block;
use lsm_tree::table::{Block, BlockHandle, DataBlock, IndexBlock};
use lsm_tree::{GlobalTableId, SeqNo, Table, TreeId};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes of blocks that are read at once where the cache holds none of them.
const READ_BYTES_MAX: usize = 64 << 10;
/// Blocks that are looked up in a table's index at first: the one where reading begins, and the next one, for a stretch that goes on in it.
const HANDLES_FIRST: usize = 2;
/// Blocks that are looked up at once, later on.
const HANDLES_MAX: usize = 64;

/// What the library's reader says of an entry.
fn item(item: &DataBlockParsedItem) -> Item {
    let shared = item.prefix.as_ref().map_or((0, 0), |at| (at.0 as u32, at.1 as u32));
    let value = item.value.as_ref().filter(|_| !item.value_type.is_tombstone());
    Item {
        shared,
        rest: (item.key.0 as u32, item.key.1 as u32),
        value: value.map(|at| (at.0 as u32, at.1 as u32)),
        number: item.seqno,
    }
}

fn part(bytes: &[u8], (from, to): (u32, u32)) -> &[u8] {
    bytes.get(from as usize..to as usize).unwrap_or_default()
}

/// What the tables of a tree have in common.
#[derive(Clone, Copy)]
struct Tables<'a> {
    tree: TreeId,
    /// Files that are open: as many as fjall was told (`FILES_OPEN_MAX`).
    files: Option<&'a DescriptorTable>,
}

/// A table that is being read.
struct Reader<'a> {
    id: GlobalTableId,
    table: &'a Table,
    files: Option<&'a DescriptorTable>,
    /// Blocks to be read next.
    handles: VecDeque<BlockHandle>,
    /// Blocks that were read with the one before.
    ahead: VecDeque<Block>,
    /// The index was looked up once more: a short stretch ends before, and reads no block that it does not need.
    reads_ahead: bool,
    /// Up to where the index was looked up: the last key of a block, and where it lies.
    looked_up: Option<(Vec<u8>, u64)>,
}

impl<'a> Reader<'a> {
    fn new(tables: Tables<'a>, table: &'a Table) -> Reader<'a> {
        let id = GlobalTableId::from((tables.tree, table.metadata.id));
        let (handles, ahead) = (VecDeque::new(), VecDeque::new());
        Reader { id, table, files: tables.files, handles, ahead, reads_ahead: false, looked_up: None }
    }

    /// Its file, for one read.
    fn file(&self) -> Result<Arc<File>, LsmError> {
        if let Some(file) = self.files.and_then(|files| files.access_for_table(&self.id)) {
            return Ok(file);
        }
        let file = Arc::new(File::open(&*self.table.path)?);
        if let Some(files) = self.files {
            files.insert_for_table(self.id, file.clone());
        }
        Ok(file)
    }

    fn index(&self, handle: BlockHandle) -> Result<IndexBlock, LsmError> {
        let table = self.table;
        if let Some(block) = table.cache.get_block(self.id, handle.offset()) {
            return Ok(IndexBlock::new(block));
        }
        let file = FileAccessor::File(self.file()?);
        let compression = table.metadata.index_block_compression;
        let block = load_block(self.id, &table.path, &file, &table.cache, &handle, BlockType::Index, compression)?;
        Ok(IndexBlock::new(block))
    }

    /// Looks up the next blocks: those that may hold `from` and what comes behind it. `false`: there are no more.
    fn look_up(&mut self, from: &[u8]) -> Result<bool, LsmError> {
        let known = self.looked_up.take();
        let (needle, behind) = known.as_ref().map_or((from, None), |(key, offset)| (&key[..], Some(*offset)));
        let top = self.index(self.table.regions.tli)?;
        let mut last = None;
        self.reads_ahead = known.is_some();
        let handles_max = if self.reads_ahead { HANDLES_MAX } else { HANDLES_FIRST };
        let mut note = |index: &IndexBlock, handles: &mut VecDeque<BlockHandle>| {
            let mut entries = index.iter();
            if !entries.seek(needle, SeqNo::MAX) {
                return;
            }
            for entry in entries.filter(|entry| behind.is_none_or(|behind| entry.offset.0 > behind)) {
                handles.push_back(BlockHandle::new(entry.offset, entry.size));
                let shared = entry.prefix.as_ref().and_then(|at| index.as_slice().get(at.0..at.1));
                let rest = index.as_slice().get(entry.end_key.0..entry.end_key.1);
                last = Some(([shared.unwrap_or_default(), rest.unwrap_or_default()].concat(), entry.offset.0));
                if handles.len() >= handles_max {
                    break;
                }
            }
        };
        if self.table.regions.index.is_none() {
            note(&top, &mut self.handles);
        } else {
            let mut parts = top.iter();
            if parts.seek(needle, SeqNo::MAX) {
                for at in parts {
                    let index = self.index(BlockHandle::new(at.offset, at.size))?;
                    note(&index, &mut self.handles);
                    if !self.handles.is_empty() {
                        break;
                    }
                }
            }
        }
        self.looked_up = last;
        Ok(!self.handles.is_empty())
    }

    /// The next block.
    fn next(&mut self, from: &[u8]) -> Result<Option<DataBlock>, LsmError> {
        if self.handles.is_empty() && !self.look_up(from)? {
            return Ok(None);
        }
        let Some(handle) = self.handles.pop_front() else { return Ok(None) };
        if let Some(block) = self.ahead.pop_front() {
            return Ok(Some(DataBlock::new(block)));
        }
        let block = match self.table.cache.get_block(self.id, handle.offset()) {
            Some(block) => block,
            None => self.read(handle)?,
        };
        Ok(Some(DataBlock::new(block)))
    }

    /// Reads a block, and of a longer stretch those behind it that come next and are not cached.
    fn read(&mut self, first: BlockHandle) -> Result<Block, LsmError> {
        let (file, table) = (self.file()?, self.table);
        let (from, mut end) = (first.offset().0, first.offset().0 + u64::from(first.size()));
        let mut wanted = vec![first];
        for handle in self.handles.iter().filter(|_| self.reads_ahead) {
            let next = end + u64::from(handle.size());
            let fits = handle.offset().0 == end && (next - from) as usize <= READ_BYTES_MAX;
            if !fits || table.cache.get_block(self.id, handle.offset()).is_some() {
                break;
            }
            end = next;
            wanted.push(*handle);
        }
        let mut bytes = vec![0; (end - from) as usize];
        file.read_exact_at(&mut bytes, from)?;
        let mut rest = &bytes[..];
        for handle in wanted {
            let (mut this, others) = rest.split_at(handle.size() as usize);
            rest = others;
            let block = Block::from_reader(&mut this, table.metadata.data_block_compression)?;
            if block.header.block_type != BlockType::Data {
                return Err(LsmError::InvalidTag(("BlockType", block.header.block_type.into())));
            }
            table.cache.insert_block(self.id, handle.offset(), block.clone());
            self.ahead.push_back(block);
        }
        self.ahead.pop_front().ok_or(LsmError::Unrecoverable)
    }
}

/// One run, or what is left of it: it stands at an entry.
struct Run<'a> {
    origin: Tables<'a>,
    from: &'a [u8],
    /// Where reading ends, if the run goes on beyond.
    far: Option<&'a [u8]>,
    tables: std::slice::Iter<'a, Table>,
    reader: Option<Reader<'a>>,
    block: Option<DataBlock>,
    place: Place,
    /// Entries of the block that are left, if they are listed by the library's reader.
    listed: Option<std::vec::IntoIter<Item>>,
    item: Option<Item>,
    /// The entry before it, if that is of the same block; else its key stands in `last`.
    before: Option<Item>,
    last: Vec<u8>,
    /// Added to the numbers of the table's entries.
    base: SeqNo,
    /// The table may hold keys from `far` on.
    crosses: bool,
    /// The key of the entry in one piece, for who compares runs: see [`Run::join_key`].
    key: Vec<u8>,
}

impl<'a> Run<'a> {
    fn new(origin: Tables<'a>, from: &'a [u8], far: Option<&'a [u8]>, tables: &'a [Table]) -> Run<'a> {
        Run {
            origin,
            from,
            far,
            tables: tables.iter(),
            reader: None,
            block: None,
            place: Place::default(),
            listed: None,
            item: None,
            before: None,
            last: Vec::new(),
            base: 0,
            crosses: false,
            key: Vec::new(),
        }
    }

    fn number(&self) -> SeqNo {
        self.item.map_or(0, |item| item.number) + self.base
    }

    fn key_of(&self, item: Item) -> LentKey<'_> {
        let bytes = self.block.as_ref().map_or(&[][..], |block| &block.inner.data);
        LentKey::new(part(bytes, item.shared), part(bytes, item.rest))
    }

    #[inline]
    fn key(&self) -> LentKey<'_> {
        self.item.map_or_else(|| [][..].into(), |item| self.key_of(item))
    }

    /// Puts the key together.
    fn join_key(&mut self) {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        self.key().write(&mut key);
        self.key = key;
    }

    /// Whether the entry has the key of the one before it.
    #[inline]
    fn repeats(&self) -> bool {
        match self.before {
            Some(before) => self.key().same(&self.key_of(before)),
            None => self.key().order(&self.last).is_eq(),
        }
    }

    fn value(&self) -> Option<&[u8]> {
        Some(part(&self.block.as_ref()?.inner.data, self.item?.value?))
    }

    /// The value, for who keeps it.
    fn kept_value(&self) -> Option<Bytes> {
        let (from, to) = self.item?.value?;
        Some(Bytes::from(self.block.as_ref()?.inner.data.slice(from as usize..to as usize)))
    }

    /// Goes on to the next block; `false`: there is none.
    fn load(&mut self) -> Result<bool, LsmError> {
        loop {
            let block = match &mut self.reader {
                Some(reader) => reader.next(self.from)?,
                None => None,
            };
            let Some(block) = block else {
                let Some(table) = self.tables.next() else { return Ok(false) };
                self.base = table.global_seqno();
                self.crosses = self.far.is_some_and(|far| table.metadata.key_range.max()[..] >= *far);
                self.reader = Some(Reader::new(self.origin, table));
                continue;
            };
            self.enter(block);
            return Ok(true);
        }
    }

    /// Stands before a block's entries; of the first block what lies below `from` is passed.
    fn enter(&mut self, block: DataBlock) {
        self.place = match self.block {
            Some(_) => Place::default(),
            None => Place::below(&block.inner.data, self.from).unwrap_or_default(),
        };
        (self.block, self.listed) = (Some(block), None);
    }

    /// The next entry of the block.
    #[inline(always)]
    fn next_here(&mut self) -> Option<Item> {
        let block = self.block.as_ref()?;
        if self.listed.is_none() {
            match self.place.next(&block.inner.data) {
                Next::Entry(item) => return Some(item),
                Next::End if self.place.number == block.len() => return None,
                Next::End | Next::Unknown => {}
            }
            self.list();
        }
        self.listed.as_mut()?.next()
    }

    /// Leaves what comes next in the block to the library's reader.
    #[cold]
    fn list(&mut self) {
        let Some(block) = &self.block else { return };
        let items: Vec<Item> = block.iter().skip(self.place.number).map(|entry| item(&entry)).collect();
        self.listed = Some(items.into_iter());
    }

    /// Moves to the first entry at or above `from`; `false`: there is none.
    fn begin(&mut self) -> Result<bool, LsmError> {
        let mut here = self.step()?;
        while here && self.key().order(self.from).is_lt() {
            here = self.step()?;
        }
        Ok(here)
    }

    /// Moves to the next entry; `false` at the end.
    #[inline]
    fn step(&mut self) -> Result<bool, LsmError> {
        self.before = self.item;
        let item = loop {
            if let Some(item) = self.next_here() {
                break item;
            }
            self.leave();
            if !self.load()? {
                self.item = None;
                return Ok(false);
            }
        };
        self.item = Some(item);
        Ok(!self.crosses || self.far.is_none_or(|far| self.key_of(item).order(far).is_lt()))
    }

    /// The block is at its end: what is asked of its last entry is kept.
    #[cold]
    fn leave(&mut self) {
        if let Some(before) = self.before.take() {
            let mut last = std::mem::take(&mut self.last);
            last.clear();
            self.key_of(before).write(&mut last);
            self.last = last;
        }
    }
}

/// Lends the entries with `from <= key < to` in order, until the visitor breaks.
pub(super) fn sweep(tree: &impl AbstractTree, from: &[u8], to: &[u8], visit: &mut Lend<'_>) -> Result<(), LsmError> {
    each(tree, from, to, |run| match run.value() {
        Some(value) => visit(run.key(), value),
        None => ControlFlow::Continue(()),
    })
}

/// Gives the entries with `from <= key < to` in order, until the visitor breaks.
pub(super) fn scan(tree: &impl AbstractTree, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), LsmError> {
    each(tree, from, to, |run| match run.kept_value() {
        Some(value) => visit(Bytes::from(run.key().to_vec()), value),
        None => ControlFlow::Continue(()),
    })
}

/// Stands at each entry in order, removals among them.
fn each(
    tree: &impl AbstractTree,
    from: &[u8],
    to: &[u8],
    mut visit: impl FnMut(&Run<'_>) -> ControlFlow<()>,
) -> Result<(), LsmError> {
    let version = tree.current_version();
    let origin = Tables { tree: tree.id(), files: tree.tree_config().descriptor_table.as_deref() };
    let range = from..to;
    let mut runs = SmallVec::<[Run<'_>; 1]>::new();
    for run in version.iter_levels().flat_map(|level| level.iter()) {
        let Some((first, last)) = run.range_overlap_indexes::<&[u8], _>(&range) else { continue };
        let Some(tables) = run.get(first..=last) else { continue };
        let crosses = tables.last().is_some_and(|table| table.metadata.key_range.max()[..] >= *to);
        let mut run = Run::new(origin, from, crosses.then_some(to), tables);
        if run.begin()? {
            runs.push(run);
        }
    }
    if let [run] = runs.as_mut_slice() {
        return alone(run, visit);
    }
    runs.iter_mut().for_each(Run::join_key);
    // What was visited last hides what has its key and a lesser number, in its own table, too.
    let (mut last, mut begun) = (Vec::new(), false);
    while let Some(at) = first(&runs) {
        let run = &mut runs[at];
        if !begun || run.key != last {
            if visit(run).is_break() {
                break;
            }
            begun = true;
            std::mem::swap(&mut last, &mut run.key);
        }
        match run.step()? {
            true => run.join_key(),
            false => drop(runs.remove(at)),
        }
    }
    Ok(())
}

/// Stands at what is left of the only run.
fn alone(run: &mut Run<'_>, mut visit: impl FnMut(&Run<'_>) -> ControlFlow<()>) -> Result<(), LsmError> {
    loop {
        if visit(run).is_break() {
            return Ok(());
        }
        // What has the same key and a lesser number is hidden.
        loop {
            if !run.step()? {
                return Ok(());
            }
            if !run.repeats() {
                break;
            }
        }
    }
}

/// The run whose entry comes first: the least key, and of equal ones the greatest number.
fn first(runs: &[Run<'_>]) -> Option<usize> {
    let (mut first, mut least) = (0, runs.first()?);
    for (place, run) in runs.iter().enumerate().skip(1) {
        let order = run.key.cmp(&least.key).then_with(|| least.number().cmp(&run.number()));
        if order.is_lt() {
            (first, least) = (place, run);
        }
    }
    Some(first)
}

#[cfg(test)]
mod tests;
