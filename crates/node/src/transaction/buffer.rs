use crate::TxnError;
use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::Write;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

/// Bytes of keys and values, and [`WRITE_OVERHEAD`] for each, that one transaction may write: one record must hold it.
pub const MAX_TXN_BYTES: usize = 900 << 20;
/// What a write takes in a record beside its key and value, bytes, at most.
const WRITE_OVERHEAD: usize = 24;
/// What a write takes of memory beside its key and value, bytes, about.
const WRITE_MEMORY_BYTES: usize = 112;
/// Bytes of one value.
pub const MAX_VALUE_BYTES: usize = 64 << 20;
/// Bytes of one key.
pub const MAX_KEY_BYTES: usize = 16 << 10;

/// A key, inside the map's node while it is short: a search then follows no pointer for each comparison.
type Key = SmallVec<[u8; 24]>;

/// A buffered write: the value, and the snapshot at which it was decided.
#[derive(Clone, Debug)]
struct Pending {
    value: Option<Bytes>,
    since: Timestamp,
}

/// The writes of one index: keys with the same first [`INDEX_BYTES`].
///
/// Statements over many rows mostly write keys in order, which need no tree: 72 bytes each instead of 110, and a tenth of the time.
#[derive(Debug)]
enum Part {
    /// In key order, as they came.
    Run(Vec<Write>),
    /// They did not come in order.
    Tree(BTreeMap<Key, Pending>),
}

/// Bytes of a key that name its index.
const INDEX_BYTES: usize = 4;
/// A run at whose end so many writes stand behind a new one takes it in; behind more it becomes a tree.
const RUN_SHIFT_MAX: usize = 16;

fn index_of(key: &[u8]) -> &[u8] {
    &key[..key.len().min(INDEX_BYTES)]
}

impl Part {
    fn get(&self, key: &[u8]) -> Option<(Option<&Bytes>, Timestamp)> {
        match self {
            // What is asked for is mostly what is to be written next.
            Part::Run(run) if run.last().is_none_or(|last| *last.key < *key) => None,
            Part::Run(run) => {
                let at = run.binary_search_by(|w| (*w.key).cmp(key)).ok()?;
                Some((run[at].value.as_ref(), run[at].since))
            }
            Part::Tree(tree) => tree.get(key).map(|pending| (pending.value.as_ref(), pending.since)),
        }
    }

    fn tree(&mut self) -> &mut BTreeMap<Key, Pending> {
        if let Part::Run(run) = self {
            let run = std::mem::take(run);
            let pairs = run.into_iter().map(|w| (Key::from_slice(&w.key), Pending { value: w.value, since: w.since }));
            *self = Part::Tree(pairs.collect());
        }
        match self {
            Part::Tree(tree) => tree,
            Part::Run(_) => unreachable!("it was made a tree"),
        }
    }

    /// Sets a write; gives the one before.
    fn set(&mut self, key: Bytes, pending: Pending) -> Option<Pending> {
        if let Part::Run(run) = self {
            let place = match run.last() {
                Some(last) if last.key >= key => run.binary_search_by(|w| w.key.cmp(&key)),
                _ => Err(run.len()),
            };
            let Pending { value, since } = pending;
            match place {
                Ok(at) => {
                    let before = std::mem::replace(&mut run[at].value, value);
                    return Some(Pending { value: before, since: std::mem::replace(&mut run[at].since, since) });
                }
                Err(at) if run.len() - at <= RUN_SHIFT_MAX => {
                    run.insert(at, Write { key, value, since });
                    return None;
                }
                Err(_) => return self.tree().insert(Key::from_slice(&key), Pending { value, since }),
            }
        }
        self.tree().insert(Key::from_slice(&key), pending)
    }

    /// Sets a write in place of one whose decision stays, or a new one; gives the one before.
    fn write(&mut self, key: Bytes, value: Option<Bytes>, since: Timestamp) -> Option<Pending> {
        let replaced = |held: &mut Option<Bytes>, since: Timestamp, value: Option<Bytes>| {
            Some(Pending { value: std::mem::replace(held, value), since })
        };
        if let Part::Run(run) = self {
            let place = match run.last() {
                Some(last) if last.key >= key => run.binary_search_by(|w| w.key.cmp(&key)),
                _ => Err(run.len()),
            };
            match place {
                Ok(at) => {
                    let since = run[at].since;
                    return replaced(&mut run[at].value, since, value);
                }
                Err(at) if run.len() - at <= RUN_SHIFT_MAX => {
                    run.insert(at, Write { key, value, since });
                    return None;
                }
                Err(_) => {}
            }
        }
        match self.tree().entry(Key::from_slice(&key)) {
            Entry::Occupied(mut held) => {
                let since = held.get().since;
                replaced(&mut held.get_mut().value, since, value)
            }
            Entry::Vacant(place) => {
                place.insert(Pending { value, since });
                None
            }
        }
    }

    fn remove(&mut self, key: &[u8]) {
        match self {
            Part::Run(run) if run.last().is_some_and(|last| *last.key == *key) => drop(run.pop()),
            _ => drop(self.tree().remove(key)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Part::Run(run) => run.len(),
            Part::Tree(tree) => tree.len(),
        }
    }
    fn deletes(&self) -> usize {
        match self {
            Part::Run(run) => run.iter().filter(|w| w.value.is_none()).count(),
            Part::Tree(tree) => tree.values().filter(|pending| pending.value.is_none()).count(),
        }
    }
    fn into_writes(self) -> Vec<Write> {
        match self {
            Part::Run(run) => run,
            Part::Tree(tree) => {
                let write = |(key, p): (Key, Pending)| Write {
                    key: Bytes::copy_from_slice(&key),
                    value: p.value,
                    since: p.since,
                };
                tree.into_iter().map(write).collect()
            }
        }
    }

    fn range<'a>(&'a self, start: &[u8], end: &[u8]) -> Range<'a> {
        match self {
            Part::Run(run) => {
                let from = run.partition_point(|w| *w.key < *start);
                let to = run.partition_point(|w| *w.key < *end).max(from);
                Range::Run(run[from..to].iter())
            }
            Part::Tree(tree) => {
                Range::Tree(tree.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end.max(start)))))
            }
        }
    }
}

enum Range<'a> {
    Run(std::slice::Iter<'a, Write>),
    Tree(std::collections::btree_map::Range<'a, Key, Pending>),
}

impl<'a> Iterator for Range<'a> {
    type Item = (&'a [u8], Option<&'a Bytes>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Range::Run(run) => run.next().map(|w| (&w.key[..], w.value.as_ref())),
            Range::Tree(tree) => tree.next().map(|(key, pending)| (&key[..], pending.value.as_ref())),
        }
    }
}

/// Where a savepoint stands.
#[derive(Clone, Copy, Debug)]
struct Mark {
    undo: usize,
    bytes: usize,
    set: usize,
}

/// Buffered writes in key order, with marks to go back to.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// By index, in the order of their keys. None is empty for long.
    parts: Vec<Part>,
    /// What each part's keys begin with.
    indexes: Vec<Bytes>,
    undo: Vec<(Bytes, Option<Pending>)>,
    marks: Vec<Mark>,
    bytes: usize,
    set: usize,
}

impl Buffer {
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.len() == 0)
    }
    /// How many keys are written.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }
    /// Whether more keys are deleted than written. (An update of an indexed column deletes one entry and writes two.)
    pub fn deletes_most(&self) -> bool {
        2 * self.parts.iter().map(Part::deletes).sum::<usize>() > self.parts.iter().map(Part::len).sum()
    }
    /// What was buffered so far. A key that is written twice counts twice; what a rollback to a savepoint took back does not.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// What that takes of memory, about: here, and once more in the log's record when it commits.
    pub fn held_bytes(&self) -> usize {
        2 * self.bytes + self.set * (WRITE_MEMORY_BYTES - WRITE_OVERHEAD)
    }
    /// The own write of a key: its value, or `None` inside where it is deleted.
    pub fn get(&self, key: &[u8]) -> Option<Option<&Bytes>> {
        let at = self.find(key).ok()?;
        self.parts[at].get(key).map(|(value, _)| value)
    }

    /// Whether the write of a key, decided at `since` or before, certifies that it is unchanged since then.
    pub fn certifies(&self, key: &[u8], since: Timestamp) -> bool {
        let write = self.find(key).ok().and_then(|at| self.parts[at].get(key));
        write.is_some_and(|(_, decided)| decided <= since)
    }

    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let index = index_of(key);
        self.indexes.binary_search_by(|own| (**own).cmp(index))
    }

    fn part_of(&mut self, key: &Bytes) -> &mut Part {
        let at = match self.find(key) {
            Ok(at) => at,
            Err(at) => {
                self.indexes.insert(at, key.slice(..key.len().min(INDEX_BYTES)));
                self.parts.insert(at, Part::Run(Vec::new()));
                at
            }
        };
        &mut self.parts[at]
    }

    /// The first decision on a key counts for certification, unless it was made again at a higher snapshot after a refresh:
    /// the earlier `since` is the stricter one, and it stays.
    pub fn set(&mut self, key: Bytes, value: Option<Bytes>, since: Timestamp) -> Result<(), TxnError> {
        let size = value.as_ref().map_or(0, Bytes::len);
        limit("a key", key.len(), MAX_KEY_BYTES)?;
        limit("a value", size, MAX_VALUE_BYTES)?;
        limit("the transaction", self.bytes + key.len() + size + WRITE_OVERHEAD, MAX_TXN_BYTES)?;
        self.bytes += key.len() + size + WRITE_OVERHEAD;
        self.set += 1;
        let undo_key = (!self.marks.is_empty()).then(|| key.clone());
        let before = self.part_of(&key).write(key, value, since);
        if let Some(key) = undo_key {
            self.undo.push((key, before));
        }
        Ok(())
    }

    pub fn savepoint(&mut self) -> u32 {
        self.marks.push(Mark { undo: self.undo.len(), bytes: self.bytes, set: self.set });
        (self.marks.len() - 1) as u32
    }

    /// Goes back to a mark and forgets the later ones. An unknown mark changes nothing. Gives the keys that are not written any more,
    /// and when their writes were decided.
    pub fn rollback_to(&mut self, mark: u32) -> Vec<(Bytes, Timestamp)> {
        let mut gone = Vec::new();
        let Some(keep) = self.marks.get(mark as usize).copied() else { return gone };
        while self.undo.len() > keep.undo {
            let Some((key, before)) = self.undo.pop() else { break };
            let part = self.part_of(&key);
            match before {
                Some(pending) => drop(part.set(key, pending)),
                None => {
                    gone.extend(part.get(&key).map(|(_, since)| (key.clone(), since)));
                    part.remove(&key);
                }
            }
        }
        (self.bytes, self.set) = (keep.bytes, keep.set);
        self.marks.truncate(mark as usize + 1);
        gone
    }

    /// Own writes with `start <= key < end`: keys, and values (`None`: deleted).
    pub fn range<'a>(&'a self, start: &'a [u8], end: &'a [u8]) -> impl Iterator<Item = (&'a [u8], Option<&'a Bytes>)> {
        let from = self.indexes.partition_point(|own| **own < *index_of(start));
        let to = self.indexes.partition_point(|own| **own <= *index_of(end)).max(from);
        self.parts[from..to].iter().flat_map(move |part| part.range(start, end))
    }

    /// Rows of a span, in key order or backwards, with own writes merged in.
    pub fn merge(&self, rows: Vec<(Bytes, Bytes)>, covered: &store::Span, reverse: bool) -> Vec<(Bytes, Bytes)> {
        if self.is_empty() {
            return rows;
        }
        let mut own = self.range(&covered.start, &covered.end).peekable();
        if own.peek().is_none() {
            return rows;
        }
        let mut rows = rows;
        if reverse {
            rows.reverse();
        }
        let mut merged = Vec::with_capacity(rows.len());
        for (key, value) in rows {
            while let Some((mine, own)) = own.next_if(|(mine, _)| *mine < &key[..]) {
                merged.extend(own.map(|v| (Bytes::copy_from_slice(mine), v.clone())));
            }
            match own.next_if(|(mine, _)| *mine == &key[..]) {
                Some((_, own)) => merged.extend(own.map(|v| (key, v.clone()))),
                None => merged.push((key, value)),
            }
        }
        merged.extend(own.filter_map(|(mine, own)| Some((Bytes::copy_from_slice(mine), own?.clone()))));
        if reverse {
            merged.reverse();
        }
        merged
    }

    /// The writes for the log, in key order; the buffer is empty afterwards but still remembers that it is not reusable.
    pub fn take(&mut self) -> Vec<Write> {
        self.undo = Vec::new();
        self.indexes = Vec::new();
        let mut parts = std::mem::take(&mut self.parts).into_iter();
        let mut writes = parts.next().map(Part::into_writes).unwrap_or_default();
        parts.for_each(|part| writes.append(&mut part.into_writes()));
        writes
    }
}

fn limit(what: &'static str, bytes: usize, limit: usize) -> Result<(), TxnError> {
    if bytes > limit { Err(TxnError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the buffer means: a map, with copies of it at the marks.
    type Model = BTreeMap<Vec<u8>, (Option<Vec<u8>>, u64)>;

    fn check(buffer: &Buffer, model: &Model, from: &[u8], to: &[u8]) {
        assert_eq!(buffer.is_empty(), model.is_empty());
        let all: Vec<_> = buffer.range(from, to).map(|(k, v)| (k.to_vec(), v.map(|v| v.to_vec()))).collect();
        let expected: Vec<_> = match from < to {
            true => model.range(from.to_vec()..to.to_vec()).map(|(k, (v, _))| (k.clone(), v.clone())).collect(),
            false => Vec::new(),
        };
        assert_eq!(all, expected);
        for (key, (value, _)) in model {
            assert_eq!(buffer.get(key).map(|v| v.map(|v| v.to_vec())), Some(value.clone()));
        }
        let deleted = model.values().filter(|(value, _)| value.is_none()).count();
        assert_eq!(buffer.deletes_most(), 2 * deleted > model.len());
    }

    /// A statement that is repeated from a savepoint writes the same again.
    #[test]
    fn what_is_taken_back_does_not_count() {
        let mut buffer = Buffer::default();
        let write = |buffer: &mut Buffer, key: &'static [u8]| {
            buffer.set(Bytes::from_static(key), Some(Bytes::from_static(&[0; 100])), Timestamp::MIN).unwrap();
        };
        write(&mut buffer, b"before");
        let mark = buffer.savepoint();
        let before = (buffer.bytes(), buffer.held_bytes());
        assert!(buffer.held_bytes() > 2 * 106, "here and in the record");
        let mut once = None;
        for _ in 0..10 {
            buffer.rollback_to(mark);
            assert_eq!((buffer.bytes(), buffer.held_bytes()), before);
            write(&mut buffer, b"again");
            write(&mut buffer, b"before");
            assert_eq!(*once.get_or_insert(buffer.bytes()), buffer.bytes());
        }
    }

    #[test]
    fn it_means_a_map_whatever_the_order_of_keys() {
        let mut state = 7u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for round in 0..200 {
            let (mut buffer, mut model, mut marks) = (Buffer::default(), Model::new(), Vec::new());
            for step in 0..next(200) {
                let n = match round % 3 {
                    0 => step as u32,
                    1 => (step * 3 + next(8)) as u32,
                    _ => next(300) as u32,
                };
                let mut key = if next(20) == 0 { Vec::new() } else { vec![0, 0, 0, next(3) as u8] };
                key.extend_from_slice(&n.to_be_bytes()[2..]);
                let value = (next(3) > 0).then(|| vec![step as u8]);
                let since = Timestamp::from_u64(100 + step);
                buffer.set(Bytes::from(key.clone()), value.clone().map(Bytes::from), since).unwrap();
                let first = model.get(&key).map_or(100 + step, |(_, since)| *since);
                model.insert(key, (value, first));
                match next(12) {
                    0 => {
                        assert_eq!(buffer.savepoint() as usize, marks.len());
                        marks.push(model.clone());
                    }
                    1 if !marks.is_empty() => {
                        let mark = next(marks.len() as u64) as usize;
                        buffer.rollback_to(mark as u32);
                        marks.truncate(mark + 1);
                        model.clone_from(&marks[mark]);
                    }
                    _ => {}
                }
                let (from, to) = (next(300) as u32, next(300) as u32);
                let bound = |part: u64, n: u32| [&[0, 0, 0, part as u8][..], &n.to_be_bytes()[2..]].concat();
                check(&buffer, &model, &bound(next(3), from), &bound(next(3), to));
            }
            check(&buffer, &model, b"", b"\xff");
            let writes: Vec<_> = buffer
                .take()
                .into_iter()
                .map(|w| (w.key.to_vec(), (w.value.map(|v| v.to_vec()), w.since.as_u64())))
                .collect();
            assert_eq!(writes, model.into_iter().collect::<Vec<_>>());
            assert!(buffer.is_empty());
        }
    }
}
