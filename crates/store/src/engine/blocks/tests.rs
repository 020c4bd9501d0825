//! The reader of blocks beside the library's own.

use super::*;
use lsm_tree::{AnyTree, Cache, CompressionType, Config, InternalValue, SequenceNumberCounter, ValueType};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A block of these bytes, as it is read from a file.
fn written(bytes: &[u8]) -> DataBlock {
    let mut written = Vec::new();
    Block::write_into(&mut written, bytes, BlockType::Data, CompressionType::None).unwrap();
    DataBlock::new(Block::from_reader(&mut &written[..], CompressionType::None).unwrap())
}

/// A block of these entries: keys in order, those of a `None` removed.
fn block(entries: &BTreeMap<Vec<u8>, (Option<Vec<u8>>, u64)>, interval: u8) -> DataBlock {
    let items: Vec<InternalValue> = entries
        .iter()
        .map(|(key, (value, number))| match value {
            Some(value) => InternalValue::from_components(&key[..], &value[..], *number, ValueType::Value),
            None => InternalValue::from_components(&key[..], &[][..], *number, ValueType::Tombstone),
        })
        .collect();
    written(&DataBlock::encode_into_vec(&items, interval, 0.0).unwrap())
}

/// An entry of a run: its key, number and value.
type Entry = (Vec<u8>, SeqNo, Option<Vec<u8>>);

/// What a run of this one block gives from a key on.
fn run_from(block: &DataBlock, from: &[u8]) -> Vec<Entry> {
    let mut run = Run::new(Tables { tree: 0, files: None }, from, None, &[]);
    run.enter(block.clone());
    let (mut here, mut found) = (run.begin().unwrap(), Vec::new());
    while here {
        found.push((run.key().to_vec(), run.number(), run.value().map(<[u8]>::to_vec)));
        here = run.step().unwrap();
    }
    found
}

/// The same by the library's reader.
fn library_from(block: &DataBlock, from: &[u8]) -> Vec<Entry> {
    let bytes = &block.inner.data;
    let entries = block.iter().map(|entry| {
        let item = item(&entry);
        let span = |(from, to): (u32, u32)| (from as usize, to as usize);
        let key = [part(bytes, item.shared), part(bytes, item.rest)].concat();
        (key, item.number, item.value.map(span).map(|(from, to)| bytes[from..to].to_vec()))
    });
    entries.filter(|(key, ..)| &key[..] >= from).collect()
}

/// Keys of two bytes, and what lies before, between and behind them.
fn needles(keys: u16) -> impl Iterator<Item = Vec<u8>> {
    (0..=keys).flat_map(|n| {
        let key = n.to_be_bytes();
        [key.to_vec(), key[..1].to_vec(), [&key[..], &[0]].concat()]
    })
}

/// A key may have versions on both sides of where an interval begins: the newest is the first of them, and it alone is given out.
#[test]
fn the_newest_version_is_found_wherever_an_interval_begins() {
    const KEYS: u16 = 60;
    for interval in 1..=9 {
        let mut items = Vec::new();
        for n in 0..KEYS {
            for number in (0..=u64::from(n % 5)).rev() {
                let value = [&n.to_be_bytes()[..], &number.to_be_bytes()].concat();
                items.push(InternalValue::from_components(n.to_be_bytes(), value, 7 + number, ValueType::Value));
            }
        }
        let block = written(&DataBlock::encode_into_vec(&items, interval, 0.0).unwrap());
        for needle in needles(KEYS) {
            assert_eq!(run_from(&block, &needle), library_from(&block, &needle), "{needle:?} {interval}");
            let mut run = Run::new(Tables { tree: 0, files: None }, &needle, None, &[]);
            run.enter(block.clone());
            let mut found = Vec::new();
            if run.begin().unwrap() {
                let visit = |run: &Run<'_>| {
                    found.push((run.key().to_vec(), run.number()));
                    ControlFlow::Continue(())
                };
                alone(&mut run, visit).unwrap();
            }
            let newest = (0..KEYS).map(|n| (n.to_be_bytes().to_vec(), 7 + u64::from(n % 5)));
            let expected: Vec<_> = newest.filter(|(key, _)| *key >= needle).collect();
            assert_eq!(found, expected, "{needle:?} {interval}");
        }
    }
}

/// From what is not understood on the library reads, and all is given out, once.
#[test]
fn a_block_of_another_form_is_left_to_the_library() {
    const KEYS: u16 = 21;
    for interval in 1..=5 {
        for odd in 0..KEYS {
            let items: Vec<InternalValue> = (0..KEYS)
                .map(|n| {
                    // A value that stands in a file of its own: we have none.
                    let kind = if n == odd { ValueType::Indirection } else { ValueType::Value };
                    InternalValue::from_components(n.to_be_bytes(), [n as u8; 3], 7, kind)
                })
                .collect();
            let block = written(&DataBlock::encode_into_vec(&items, interval, 0.0).unwrap());
            assert!(!list(&block.inner.data, Place::default(), &mut Vec::new()), "it is not understood");
            for needle in needles(KEYS) {
                assert_eq!(run_from(&block, &needle), library_from(&block, &needle), "{needle:?} {interval} {odd}");
            }
        }
    }
}

/// A block that says another number of entries, or of whole keys, than it has: the library reads it from its beginning.
#[test]
fn a_block_whose_counts_disagree_is_left_to_the_library() {
    for interval in 1..=4u8 {
        for keys in 1..=13u16 {
            let items: Vec<InternalValue> = (0..keys)
                .map(|n| InternalValue::from_components(n.to_be_bytes(), [n as u8; 3], 7, ValueType::Value))
                .collect();
            let whole = DataBlock::encode_into_vec(&items, interval, 0.0).unwrap();
            for by in [-1, 1] {
                let mut bytes = whole.clone();
                let at = bytes.len() - 4;
                let count = i32::from(keys) + by;
                bytes[at..].copy_from_slice(&count.to_le_bytes());
                let block = written(&bytes);
                let agrees = (count as usize).div_ceil(interval.into()) == usize::from(keys).div_ceil(interval.into());
                for needle in needles(keys) {
                    let place = Place::below(&block.inner.data, &needle);
                    assert_eq!(place.is_some(), agrees && count > 0, "{count} of {keys} by {interval}");
                    assert_eq!(
                        run_from(&block, &needle),
                        library_from(&block, &needle),
                        "{count} of {keys} by {interval}"
                    );
                }
            }
        }
    }
}

/// Places beyond 64 KiB have four bytes; between them and the end stands what leads from a key to its interval, or nothing.
#[test]
fn large_blocks_and_those_with_a_hash_index_are_understood() {
    const KEYS: u16 = 60;
    for value_bytes in [3, 3000] {
        for hash_ratio in [0.0, 1.0] {
            for interval in [1, 4, 16] {
                let items: Vec<InternalValue> = (0..KEYS)
                    .map(|n| {
                        InternalValue::from_components(n.to_be_bytes(), vec![n as u8; value_bytes], 7, ValueType::Value)
                    })
                    .collect();
                let block = written(&DataBlock::encode_into_vec(&items, interval, hash_ratio).unwrap());
                let bytes = &block.inner.data;
                assert_eq!(bytes.len() > 1 << 16, value_bytes > 3);
                assert_eq!(block.hash_bucket_count().is_some(), hash_ratio > 0.0);
                assert!(list(bytes, Place::default(), &mut Vec::new()));
                for needle in needles(KEYS) {
                    let place = Place::below(bytes, &needle).unwrap();
                    let least = (0..KEYS).filter(|n| n.to_be_bytes()[..] < needle[..]).count();
                    assert!(
                        place.number <= least && least <= place.number + usize::from(interval),
                        "{needle:?} {place:?}"
                    );
                    assert_eq!(run_from(&block, &needle), library_from(&block, &needle), "{needle:?} {interval}");
                }
            }
        }
    }
}

/// A tree of one table with so many rows, of which a block has a few.
fn tree(path: &std::path::Path, cache_bytes: u64, rows: u16) -> AnyTree {
    let cache = Arc::new(Cache::with_capacity_bytes(cache_bytes));
    let config = Config::new(path, SequenceNumberCounter::default(), SequenceNumberCounter::default());
    let tree = config.use_cache(cache).open().unwrap();
    let mut ingestion = tree.ingestion().unwrap();
    for n in 0..rows {
        // Nothing to compress.
        let noise = (0..125).flat_map(|i| (u64::from(n) * 125 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        ingestion.write(n.to_be_bytes(), noise.collect::<Vec<u8>>()).unwrap();
    }
    ingestion.finish().unwrap();
    tree
}

/// Sweeps from the first row on, and ends with the row of this number.
fn sweep_up_to(tree: &AnyTree, last: u16) {
    let mut next = 0;
    let visit = &mut |key: LentKey<'_>, _: &[u8]| {
        assert_eq!(key.to_vec(), u16::to_be_bytes(next));
        next += 1;
        if next <= last { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    sweep(tree, &[], &[255; 3], visit).unwrap();
    assert_eq!(next, last + 1);
}

/// Blocks that are not in memory are read one by one at first: who looks a row up reads the one that it lies in.
#[test]
fn a_short_stretch_reads_no_block_that_it_does_not_need() {
    // Blocks of about 4 KiB; long ones are read 64 KiB at once.
    for (last, blocks) in [(0, 1..=1), (3, 1..=1), (7, 2..=2), (100, 15..=50)] {
        let dir = tempfile::tempdir().unwrap();
        let tree = tree(dir.path(), 16 << 20, 1000);
        let version = tree.current_version();
        let table = version.iter_levels().flat_map(|level| level.iter()).flat_map(|run| run.iter()).next().unwrap();
        sweep_up_to(&tree, last);
        let mut reader = Reader::new(Tables { tree: tree.id(), files: None }, table);
        let mut read = 0;
        while reader.look_up(&[]).unwrap() {
            let handles = std::mem::take(&mut reader.handles);
            read += handles.iter().filter(|at| table.cache.get_block(reader.id, at.offset()).is_some()).count();
        }
        assert!(blocks.contains(&read), "{read} blocks for {} rows", last + 1);
    }
}

/// As many files are open as there are tables, however many read them.
#[test]
fn who_reads_shares_the_open_files() {
    const READERS: u32 = 40;
    fn nested(tree: &AnyTree, readers: u32, open: &dyn Fn() -> usize) -> usize {
        let mut found = 0;
        let visit = &mut |_: LentKey<'_>, _: &[u8]| {
            found = if readers > 1 { nested(tree, readers - 1, open) } else { open() };
            ControlFlow::Break(())
        };
        sweep(tree, &[], &[255; 3], visit).unwrap();
        found
    }
    let dir = tempfile::tempdir().unwrap();
    // Nothing stays in memory: each reads the file.
    let tree = tree(dir.path(), 0, 1000);
    let path = dir.path().canonicalize().unwrap();
    let open = || {
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        links.filter_map(|link| std::fs::read_link(link.path()).ok()).filter(|file| file.starts_with(&path)).count()
    };
    let before = nested(&tree, 1, &open);
    assert_eq!(nested(&tree, READERS, &open), before);
}

/// Lists a block's entries from a place on; whether all were understood.
fn list(bytes: &[u8], mut place: Place, items: &mut Vec<Item>) -> bool {
    loop {
        match place.next(bytes) {
            Next::Entry(item) => items.push(item),
            Next::End => return true,
            Next::Unknown => return false,
        }
    }
}

proptest! {
    #[test]
    fn a_block_is_listed_as_the_library_reads_it(
        entries in prop::collection::btree_map(
            prop::collection::vec(0..3u8, 1..200),
            (prop::option::of(prop::collection::vec(any::<u8>(), 0..200)), any::<u64>()),
            1..60,
        ),
        interval in 1..20u8,
    ) {
        let block = block(&entries, interval);
        let expected: Vec<Item> = block.iter().map(|entry| item(&entry)).collect();
        let mut items = Vec::new();
        prop_assert!(list(&block.inner.data, Place::default(), &mut items));
        prop_assert_eq!(&items, &expected);
        // Whoever seeks a key, which may lie between two, begins at most an interval before it.
        for key in entries.keys() {
            for needle in [&key[..], &key[..key.len() - 1], &[&key[..], &[0]].concat()] {
                let place = Place::below(&block.inner.data, needle).unwrap();
                let least = entries.keys().filter(|key| &key[..] < needle).count();
                prop_assert!(place.number <= least && least <= place.number + usize::from(interval), "{least} {place:?}");
                items.clear();
                prop_assert!(list(&block.inner.data, place, &mut items));
                prop_assert_eq!(&items[..], &expected[place.number..]);
            }
        }
    }

    /// Of a key of one byte no more can be shared, whatever a block says.
    #[test]
    fn what_is_shared_lies_within_the_first_key(common in 0..128u8) {
        let mut bytes = vec![0, 1, 1, b'a', 0, 0, 1, common, 1, b'b', 0, 255];
        bytes.push(2);
        bytes.extend([0; 30]);
        let mut items = Vec::new();
        prop_assert_eq!(list(&bytes, Place::default(), &mut items), common <= 1);
    }

    #[test]
    fn any_bytes_are_refused_or_listed(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        needle in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        list(&bytes, Place::default(), &mut Vec::new());
        if let Some(place) = Place::below(&bytes, &needle) {
            list(&bytes, place, &mut Vec::new());
        }
    }
}
