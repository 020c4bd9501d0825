use super::writes::{INDEX_BYTES, Whole, Writes};
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
/// Statements over many rows mostly write keys in order, which need no tree: 72 bytes each instead of 110, of many about 30, and a tenth of the time. The
/// entries of their other indexes come in no order, and mostly nobody asks for one before the commit: those are piled up and sorted once.
#[derive(Debug)]
enum Part {
    /// In key order, as they came or after they were sorted.
    Run {
        writes: Writes,
        /// They were a pile before. Who asks for what he has just written, again and again, should not have all sorted each time: what
        /// comes out of order from now on makes a tree.
        sorted: bool,
    },
    /// As they came, in no order, and some perhaps twice.
    Pile(Writes),
    /// They did not come in order, and were asked for.
    Tree(BTreeMap<Key, Pending>),
}

/// What stood under a key before a write of it.
#[derive(Debug)]
enum Before {
    Nothing,
    Was(Pending),
    /// It was not looked for: the write lies on the pile, and will know when that is sorted.
    Unknown,
}

/// A run at whose end so many writes stand behind a new one takes it in; behind more it becomes a pile, or a tree.
const RUN_SHIFT_MAX: usize = 16;

pub(super) fn index_of(key: &[u8]) -> &[u8] {
    &key[..key.len().min(INDEX_BYTES)]
}

impl Default for Part {
    fn default() -> Part {
        Part::Run { writes: Writes::default(), sorted: false }
    }
}

impl Part {
    /// Of a pile this looks at all of it: see [`Buffer::settle`].
    fn get(&self, key: &[u8]) -> Option<(Option<&Bytes>, Timestamp)> {
        match self {
            // What is asked for is mostly what is to be written next.
            Part::Run { writes, .. } => {
                let at = writes.place_of(key).ok()?;
                Some((writes.value(at), writes.since(at)))
            }
            Part::Pile(pile) => {
                let mut all = (0..pile.len()).filter(|at| pile.key(*at) == key);
                let first = all.next()?;
                Some((pile.value(all.next_back().unwrap_or(first)), pile.since(first)))
            }
            Part::Tree(tree) => tree.get(key).map(|pending| (pending.value.as_ref(), pending.since)),
        }
    }

    fn tree(&mut self) -> &mut BTreeMap<Key, Pending> {
        if let Part::Run { writes, .. } | Part::Pile(writes) = self {
            let mut all = Vec::with_capacity(writes.len());
            std::mem::take(writes).into_writes(&mut all);
            let pairs = all.into_iter().map(|w| (Key::from_slice(&w.key), Pending { value: w.value, since: w.since }));
            *self = Part::Tree(pairs.collect());
        }
        match self {
            Part::Tree(tree) => tree,
            Part::Run { .. } | Part::Pile(_) => unreachable!("it was made a tree"),
        }
    }

    /// Sorts a pile; of a key that lies there more than once the value of the last is kept, and the decision of the first. Gives, for the
    /// last `told` writes in the order in which they came, what was before each.
    fn settle(&mut self, told: usize) -> Vec<Before> {
        let Part::Pile(pile) = self else { return Vec::new() };
        let mut writes = std::mem::take(pile);
        let first_told = writes.len().saturating_sub(told);
        let mut before: Vec<Before> = (first_told..writes.len()).map(|_| Before::Nothing).collect();
        writes.sort(|at, value, since| {
            if let Some(told) = at.checked_sub(first_told) {
                before[told] = Before::Was(Pending { value, since });
            }
        });
        *self = Part::Run { writes, sorted: true };
        before
    }

    /// Puts a write back in the place of a later one.
    fn set(&mut self, key: Bytes, pending: Pending) {
        let Pending { value, since } = pending;
        if let Part::Run { writes, .. } = self
            && let Ok(at) = writes.place_of(&key)
        {
            writes.replace(at, value);
            return writes.set_since(at, since);
        }
        self.tree().insert(Key::from_slice(&key), Pending { value, since });
    }

    /// Sets a write in place of one whose decision stays, or a new one; says what was before it.
    fn write(&mut self, key: Bytes, value: Option<Bytes>, since: Timestamp) -> Before {
        match self {
            Part::Run { writes, sorted } => match writes.place_of(&key) {
                Ok(at) => {
                    let since = writes.since(at);
                    return Before::Was(Pending { value: writes.replace(at, value), since });
                }
                Err(at) if at == writes.len() => {
                    writes.push(key, value, since);
                    return Before::Nothing;
                }
                Err(at) if writes.len() - at <= RUN_SHIFT_MAX => {
                    writes.insert(at, key, value, since);
                    return Before::Nothing;
                }
                Err(_) if !*sorted => {
                    let mut pile = std::mem::take(writes);
                    pile.push(key, value, since);
                    *self = Part::Pile(pile);
                    return Before::Unknown;
                }
                Err(_) => {}
            },
            Part::Pile(pile) => {
                pile.push(key, value, since);
                return Before::Unknown;
            }
            Part::Tree(_) => {}
        }
        match self.tree().entry(Key::from_slice(&key)) {
            Entry::Occupied(mut held) => {
                let since = held.get().since;
                Before::Was(Pending { value: std::mem::replace(&mut held.get_mut().value, value), since })
            }
            Entry::Vacant(place) => {
                place.insert(Pending { value, since });
                Before::Nothing
            }
        }
    }

    /// As [`Part::write`] of a deletion, whose key is copied where it has to be.
    fn delete(&mut self, key: &[u8], since: Timestamp) -> Before {
        match self {
            Part::Run { writes, .. } if writes.place_of(key) == Err(writes.len()) => {
                writes.push_lent(key, None, since);
                Before::Nothing
            }
            Part::Pile(pile) => {
                pile.push_lent(key, None, since);
                Before::Unknown
            }
            _ => self.write(Bytes::copy_from_slice(key), None, since),
        }
    }

    fn remove(&mut self, key: &[u8]) {
        match self {
            Part::Run { writes, .. } if writes.len() > 0 && writes.key(writes.len() - 1) == key => writes.pop(),
            _ => drop(self.tree().remove(key)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Part::Run { writes, .. } | Part::Pile(writes) => writes.len(),
            Part::Tree(tree) => tree.len(),
        }
    }
    fn deletes(&self) -> usize {
        match self {
            Part::Run { writes, .. } | Part::Pile(writes) => writes.deletes(),
            Part::Tree(tree) => tree.values().filter(|pending| pending.value.is_none()).count(),
        }
    }
    fn into_sorted(mut self) -> Writes {
        self.settle(0);
        match self {
            Part::Run { writes, .. } | Part::Pile(writes) => writes,
            Part::Tree(tree) => {
                let mut writes = Writes::default();
                tree.into_iter().for_each(|(key, p)| writes.push(Bytes::copy_from_slice(&key), p.value, p.since));
                writes
            }
        }
    }

    fn range<'a>(&'a self, start: &[u8], end: &[u8]) -> Range<'a> {
        match self {
            Part::Run { writes, .. } | Part::Pile(writes) => {
                let from = writes.partition_point(|key| key < start);
                let to = writes.partition_point(|key| key < end).max(from);
                Range::Run(writes, from..to)
            }
            Part::Tree(tree) => {
                Range::Tree(tree.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end.max(start)))))
            }
        }
    }
}

enum Range<'a> {
    Run(&'a Writes, std::ops::Range<usize>),
    Tree(std::collections::btree_map::Range<'a, Key, Pending>),
}

impl<'a> Iterator for Range<'a> {
    type Item = (&'a [u8], Option<&'a Bytes>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Range::Run(writes, left) => left.next().map(|at| (writes.key(at), writes.value(at))),
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
    undo: Vec<(Bytes, Before)>,
    marks: Vec<Mark>,
    bytes: usize,
    set: usize,
}

impl Buffer {
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.len() == 0)
    }
    /// How many keys are written. One that is written twice may count twice before anybody has asked for it.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }
    /// Whether more keys are deleted than written. (An update of an indexed column deletes one entry and writes two.)
    pub fn deletes_most(&mut self) -> bool {
        self.settle_all();
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
    pub fn get(&mut self, key: &[u8]) -> Option<Option<&Bytes>> {
        let at = self.find(key).ok()?;
        self.settle(at);
        self.parts[at].get(key).map(|(value, _)| value)
    }

    /// Whether a key is written. Slow where its index has writes in no order: for keys of which there are few.
    pub fn has(&self, key: &[u8]) -> bool {
        self.find(key).is_ok_and(|at| self.parts[at].get(key).is_some())
    }

    /// Puts what is written in order, for [`Buffer::certifies`].
    pub fn settle_all(&mut self) {
        (0..self.parts.len()).for_each(|at| self.settle(at));
    }

    fn settle(&mut self, at: usize) {
        if !matches!(self.parts[at], Part::Pile(_)) {
            return;
        }
        let index = &self.indexes[at];
        let unknown =
            |(key, before): &&mut (Bytes, Before)| matches!(before, Before::Unknown) && *index_of(key) == **index;
        let told = self.undo.iter_mut().filter(unknown).count();
        let before = self.parts[at].settle(told);
        self.undo.iter_mut().filter(unknown).zip(before).for_each(|((_, unknown), before)| *unknown = before);
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

    fn place_of(&mut self, key: &[u8]) -> usize {
        self.find(key).unwrap_or_else(|at| {
            self.indexes.insert(at, Bytes::copy_from_slice(index_of(key)));
            self.parts.insert(at, Part::default());
            at
        })
    }

    fn part_of(&mut self, key: &[u8]) -> &mut Part {
        let at = self.place_of(key);
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

    /// As [`Buffer::set`] of each, of keys that are deleted: those of one index are put there together, and copied once.
    pub fn delete_all(&mut self, keys: &[&[u8]], since: Timestamp) -> Result<(), TxnError> {
        let mut left = keys;
        while let Some(first) = left.first() {
            let (these, others) = left.split_at(left.iter().take_while(|key| index_of(key) == index_of(first)).count());
            left = others;
            for key in these {
                limit("a key", key.len(), MAX_KEY_BYTES)?;
                limit("the transaction", self.bytes + key.len() + WRITE_OVERHEAD, MAX_TXN_BYTES)?;
                self.bytes += key.len() + WRITE_OVERHEAD;
            }
            self.set += these.len();
            let undone = !self.marks.is_empty();
            let at = self.place_of(first);
            let (part, undo) = (&mut self.parts[at], &mut self.undo);
            for key in these {
                let before = part.delete(key, since);
                if undone {
                    undo.push((Bytes::copy_from_slice(key), before));
                }
            }
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
        self.settle_all();
        while self.undo.len() > keep.undo {
            let Some((key, before)) = self.undo.pop() else { break };
            let part = self.part_of(&key);
            match before {
                Before::Was(pending) => part.set(key, pending),
                Before::Nothing | Before::Unknown => {
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
    pub fn range<'a>(
        &'a mut self,
        start: &'a [u8],
        end: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], Option<&'a Bytes>)> {
        let from = self.indexes.partition_point(|own| **own < *index_of(start));
        // What begins where the span ends is not asked for: a pile stays one.
        let to = self.indexes.partition_point(|own| **own < *end).max(from);
        (from..to).for_each(|at| self.settle(at));
        self.parts[from..to].iter().flat_map(move |part| part.range(start, end))
    }

    /// Rows of a span, in key order or backwards, with own writes merged in.
    pub fn merge(&mut self, rows: Vec<(Bytes, Bytes)>, covered: &store::Span, reverse: bool) -> Vec<(Bytes, Bytes)> {
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

    /// As [`Buffer::take`], in less room.
    pub fn take_whole(&mut self) -> Whole {
        self.undo = Vec::new();
        self.indexes = Vec::new();
        Whole::of(std::mem::take(&mut self.parts).into_iter().map(Part::into_sorted))
    }

    /// The writes for the log, in key order; the buffer is empty afterwards but still remembers that it is not reusable.
    pub fn take(&mut self) -> Vec<Write> {
        self.undo = Vec::new();
        self.indexes = Vec::new();
        let mut writes = Vec::new();
        let parts = std::mem::take(&mut self.parts);
        if parts.len() > 1 {
            writes.reserve_exact(parts.iter().map(Part::len).sum());
        }
        parts.into_iter().for_each(|part| part.into_sorted().into_writes(&mut writes));
        writes
    }
}

fn limit(what: &'static str, bytes: usize, limit: usize) -> Result<(), TxnError> {
    if bytes > limit { Err(TxnError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::txn::LentWrites;

    /// What the buffer means: a map, with copies of it at the marks.
    type Model = BTreeMap<Vec<u8>, (Option<Vec<u8>>, u64)>;

    fn check(buffer: &mut Buffer, model: &Model, from: &[u8], to: &[u8]) {
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

    /// DELETE reads one index, writes all of a table, and index ids follow each other: a look at the one before made a tree of what lies in no order.
    #[test]
    fn who_reads_one_index_leaves_the_next_as_it_is() {
        let mut buffer = Buffer::default();
        let key = |index: u32, n: u32| Bytes::from([index.to_be_bytes(), n.to_be_bytes()].concat());
        for n in 0..100u32 {
            buffer.set(key(1, n), None, Timestamp::MIN).unwrap();
            buffer.set(key(2, n.wrapping_mul(2_654_435_761)), None, Timestamp::MIN).unwrap();
            assert_eq!(buffer.range(&1u32.to_be_bytes(), &2u32.to_be_bytes()).count(), n as usize + 1);
        }
        assert!(matches!(buffer.parts[1], Part::Pile(_)));
        assert_eq!(buffer.range(&1u32.to_be_bytes(), &key(2, 0)).count(), 100);
        assert_eq!(buffer.range(&1u32.to_be_bytes(), &[&key(2, 0)[..], &[0]].concat()).count(), 101);
        assert!(matches!(buffer.parts[1], Part::Run { sorted: true, .. }), "its keys were asked for");
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
                // Some of one index behind each other, and then of another one.
                let many = if value.is_none() && step % 2 == 0 { next(5) as u32 } else { 0 };
                let behind =
                    |part: u8| (1..=many).map(move |m| [&[0, 0, 0, part][..], &(n + m).to_be_bytes()[2..]].concat());
                let keys: Vec<Vec<u8>> = [key].into_iter().chain(behind(2)).chain(behind(0)).collect();
                match &value {
                    None if step % 2 == 0 => {
                        let lent: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                        buffer.delete_all(&lent, since).unwrap();
                    }
                    value => buffer.set(Bytes::from(keys[0].clone()), value.clone().map(Bytes::from), since).unwrap(),
                }
                for key in keys {
                    let first = model.get(&key).map_or(100 + step, |(_, since)| *since);
                    model.insert(key, (value.clone(), first));
                }
                match next(12) {
                    0 => {
                        assert_eq!(buffer.savepoint() as usize, marks.len());
                        marks.push(model.clone());
                    }
                    1 if !marks.is_empty() => {
                        let mark = next(marks.len() as u64) as usize;
                        let gone = buffer.rollback_to(mark as u32);
                        marks.truncate(mark + 1);
                        let written = |key: &Vec<u8>| !marks[mark].contains_key(key);
                        let mut taken_back: Vec<_> =
                            gone.into_iter().map(|(key, at)| (key.to_vec(), at.as_u64())).collect();
                        taken_back.sort();
                        let all = model.iter().filter(|(key, _)| written(key)).map(|(key, (_, at))| (key.clone(), *at));
                        assert_eq!(taken_back, all.collect::<Vec<_>>());
                        model.clone_from(&marks[mark]);
                    }
                    _ => {}
                }
                // Who looks has all put in order: in every other round that is seldom.
                if round % 2 > 0 && next(16) > 0 {
                    continue;
                }
                let (from, to) = (next(300) as u32, next(300) as u32);
                let bound = |part: u64, n: u32| [&[0, 0, 0, part as u8][..], &n.to_be_bytes()[2..]].concat();
                check(&mut buffer, &model, &bound(next(3), from), &bound(next(3), to));
            }
            check(&mut buffer, &model, b"", b"\xff");
            if round % 2 > 0 {
                let whole = buffer.take_whole();
                let expected: Vec<_> = model.into_iter().collect();
                let at = |at| {
                    let (key, value) = whole.at(at);
                    assert_eq!((key, value.map(|value| &value[..])), (whole.key(at), whole.value(at)));
                    assert_eq!(whole.decided_of(key), Some(whole.since(at)));
                    (key.to_vec(), (value.map(|value| value.to_vec()), whole.since(at).as_u64()))
                };
                assert_eq!((0..whole.count()).map(at).collect::<Vec<_>>(), expected);
                assert_eq!(whole.decided_of(b"\0\0\0\x09"), None);
                let ends = expected.first().zip(expected.last());
                assert_eq!(whole.ends(), ends.map(|(first, last)| (&first.0[..], &last.0[..])));
                assert_eq!(whole.to_writes(), whole.into_writes());
                continue;
            }
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
