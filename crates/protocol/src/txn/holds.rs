//! What undecided prepares hold, by key: so that certification looks at what it touches, and not at every transaction that is on its way.
//!
//! Invariant: it is a function of the prepares, and says of a write or a read exactly what looking through all of them would say: whether it
//! clashes with one of another transaction. But those of more than [`EACH_MAX`] keys are only named: an index of them would cost what they cost, and few
//! are on their way at a time ([`clash`]). What they say of references is kept in order, each by itself: that is asked with every lock.

use super::meeting::first_met;
use super::{Batch, Read, Span, TxnId, Write};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// A prepare of more writes and reads is looked through.
pub(super) const EACH_MAX: usize = 1024;

type ByKey = BTreeMap<Bytes, BTreeSet<TxnId>>;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holds {
    /// Keys written, and whether they are deleted. Two prepares never write the same.
    writes: BTreeMap<Bytes, (TxnId, bool)>,
    reads: ByKey,
    /// Keys that must have a value.
    present: ByKey,
    /// Spans read: few transactions on their way have any.
    spans: BTreeMap<TxnId, Vec<Read>>,
    /// Keys to which nobody may have come to refer.
    unreferred: ByKey,
    /// Spans of which keys are referred to: of transactions that refer to very many.
    referred: BTreeMap<TxnId, Vec<Span>>,
    large: BTreeMap<TxnId, Told>,
}

/// What a large prepare says of references: its keys, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    present: Vec<Bytes>,
    unreferred: Vec<Bytes>,
}

impl Told {
    fn of(batch: &Batch) -> Told {
        let mut told = Told::default();
        for read in &batch.reads {
            match read {
                Read::Present { key, .. } => told.present.push(key.clone()),
                Read::Unreferred { key, .. } => told.unreferred.push(key.clone()),
                Read::Key { .. } | Read::Span { .. } | Read::Referred { .. } => {}
            }
        }
        told.present.sort_unstable();
        told.unreferred.sort_unstable();
        told
    }
}

fn is_among(keys: &[Bytes], key: &[u8]) -> bool {
    keys.binary_search_by(|known| (**known).cmp(key)).is_ok()
}

fn other(by: Option<&BTreeSet<TxnId>>, txn: TxnId) -> Option<TxnId> {
    by?.iter().find(|of| **of != txn).copied()
}

impl Holds {
    /// A transaction is prepared.
    pub fn enter(&mut self, batch: &Batch) {
        for read in &batch.reads {
            if let Read::Referred { span, .. } = read {
                self.referred.entry(batch.txn).or_default().push(span.clone());
            }
        }
        if batch.writes.len() + batch.reads.len() > EACH_MAX {
            self.large.insert(batch.txn, Told::of(batch));
            return;
        }
        for write in &batch.writes {
            self.writes.insert(write.key.clone(), (batch.txn, write.value.is_none()));
        }
        for read in &batch.reads {
            match read {
                Read::Key { key, .. } => drop(self.reads.entry(key.clone()).or_default().insert(batch.txn)),
                Read::Present { key, .. } => drop(self.present.entry(key.clone()).or_default().insert(batch.txn)),
                Read::Unreferred { key, .. } => drop(self.unreferred.entry(key.clone()).or_default().insert(batch.txn)),
                Read::Referred { .. } => {}
                Read::Span { .. } => self.spans.entry(batch.txn).or_default().push(read.clone()),
            }
        }
    }

    /// It has its outcome.
    pub fn leave(&mut self, batch: &Batch) {
        self.referred.remove(&batch.txn);
        if self.large.remove(&batch.txn).is_some() {
            return;
        }
        for write in &batch.writes {
            self.writes.remove(&write.key);
        }
        let take = |from: &mut ByKey, key: &Bytes| {
            if let Some(by) = from.get_mut(key) {
                by.remove(&batch.txn);
                if by.is_empty() {
                    from.remove(key);
                }
            }
        };
        for read in &batch.reads {
            match read {
                Read::Key { key, .. } => take(&mut self.reads, key),
                Read::Present { key, .. } => take(&mut self.present, key),
                Read::Unreferred { key, .. } => take(&mut self.unreferred, key),
                Read::Span { .. } | Read::Referred { .. } => {}
            }
        }
        self.spans.remove(&batch.txn);
    }

    /// Transactions that are to be looked through.
    pub fn large(&self) -> impl Iterator<Item = TxnId> + '_ {
        self.large.keys().copied()
    }

    /// Another transaction that holds what `txn` would write.
    pub fn against_write(&self, txn: TxnId, write: &Write) -> Option<TxnId> {
        let writer = self.writes.get(&write.key).map(|(of, _)| *of).filter(|of| *of != txn);
        let reader = || other(self.reads.get(&write.key), txn);
        let relies = || if write.value.is_none() { other(self.present.get(&write.key), txn) } else { None };
        let spans = || {
            let mut others = self.spans.iter().filter(|(of, _)| **of != txn);
            others.find(|(_, spans)| spans.iter().any(|read| read.is_changed_by(write))).map(|(of, _)| *of)
        };
        writer.or_else(reader).or_else(relies).or_else(spans)
    }

    /// Whether some transaction relies on a key's having a value: it refers to it.
    pub fn needs(&self, key: &[u8]) -> bool {
        let referred = || self.referred.values().flatten().any(|span| span.contains(key));
        self.present.contains_key(key) || self.large.values().any(|told| is_among(&told.present, key)) || referred()
    }

    /// Another transaction that says the contrary of what a read says of references ([`Read::contradicts`]), of the large ones, too.
    pub fn against_references(&self, txn: TxnId, read: &Read) -> Option<TxnId> {
        let others = || self.large.iter().filter(|(of, _)| **of != txn);
        match read {
            Read::Present { key, .. } => other(self.unreferred.get(key), txn)
                .or_else(|| others().find(|(_, told)| is_among(&told.unreferred, key)).map(|(of, _)| *of)),
            Read::Unreferred { key, .. } => {
                let spans = || {
                    let mut others = self.referred.iter().filter(|(of, _)| **of != txn);
                    others.find(|(_, spans)| spans.iter().any(|span| span.contains(key))).map(|(of, _)| *of)
                };
                other(self.present.get(key), txn)
                    .or_else(|| others().find(|(_, told)| is_among(&told.present, key)).map(|(of, _)| *of))
                    .or_else(spans)
            }
            Read::Referred { span, .. } if !span.is_empty() => {
                let bounds = (std::ops::Bound::Included(&span.start[..]), span.end_bound());
                let mut inside = self.unreferred.range::<[u8], _>(bounds);
                let first_in = |keys: &[Bytes]| {
                    let from = keys.partition_point(|key| *key < span.start);
                    keys.get(from).is_some_and(|key| span.is_before_end(key))
                };
                inside
                    .find_map(|(_, by)| other(Some(by), txn))
                    .or_else(|| others().find(|(_, told)| first_in(&told.unreferred)).map(|(of, _)| *of))
            }
            Read::Key { .. } | Read::Span { .. } | Read::Referred { .. } => None,
        }
    }

    /// Another transaction that writes what `txn` has read, and where.
    pub fn against_read(&self, txn: TxnId, read: &Read) -> Option<(TxnId, &Bytes)> {
        match read {
            Read::Key { key, .. } | Read::Present { key, .. } => {
                let (key, (of, deletes)) = self.writes.get_key_value(key)?;
                let counts = *of != txn && (*deletes || !matches!(read, Read::Present { .. }));
                counts.then_some((*of, key))
            }
            Read::Unreferred { .. } | Read::Referred { .. } => None,
            Read::Span { span, .. } if span.is_empty() => None,
            Read::Span { span, .. } => {
                let inside =
                    self.writes.range::<[u8], _>((std::ops::Bound::Included(&span.start[..]), span.end_bound()));
                inside.filter(|(_, (of, _))| *of != txn).map(|(key, (of, _))| (*of, key)).next()
            }
        }
    }
}

/// The key with which a batch clashes with what another one holds, but for what they say of references ([`Holds::against_references`]).
pub(super) fn clash<'a>(theirs: &'a Batch, batch: &'a Batch) -> Option<&'a Bytes> {
    let held = |w: &&Write| theirs.write_of(&w.key).is_some() || theirs.reads.iter().any(|r| r.is_changed_by(w));
    let written = batch.writes.iter().find(held).map(|w| &w.key);
    written.or_else(|| batch.reads.iter().find_map(|read| written_by(theirs, read)))
}

/// As [`clash`], for a batch that may be large: neither's writes are gone through where the other has few, or others.
pub(super) fn clash_of_large<'a>(theirs: &'a Batch, batch: &'a Batch) -> Option<&'a Bytes> {
    let written = first_met(&theirs.writes, &batch.writes).map(|write| &write.key);
    let read_there = || theirs.reads.iter().find_map(|read| written_by(batch, read));
    written.or_else(read_there).or_else(|| batch.reads.iter().find_map(|read| written_by(theirs, read)))
}

/// What a batch writes of what was read.
fn written_by<'a>(batch: &'a Batch, read: &Read) -> Option<&'a Bytes> {
    let write = match read {
        Read::Key { key, .. } => batch.write_of(key),
        Read::Present { key, .. } => batch.write_of(key).filter(|write| write.value.is_none()),
        Read::Span { span, .. } => batch.write_in(span),
        Read::Unreferred { .. } | Read::Referred { .. } => None,
    };
    write.map(|write| &write.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::Timestamp;

    /// Looking through all prepares: what the index must agree with.
    fn clashes(prepared: &BTreeMap<TxnId, Batch>, batch: &Batch) -> bool {
        let contradicts =
            |theirs: &Batch| theirs.reads.iter().any(|theirs| batch.reads.iter().any(|read| read.contradicts(theirs)));
        let others = prepared.iter().filter(|(txn, _)| **txn != batch.txn);
        others.map(|(_, theirs)| theirs).any(|theirs| clash(theirs, batch).is_some() || contradicts(theirs))
    }

    #[test]
    fn it_says_what_looking_through_all_prepares_says() {
        let mut state = 5u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut holds, mut prepared, mut hits) = (Holds::default(), BTreeMap::new(), 0);
        for serial in 0..20_000 {
            let txn = TxnId { serial, node: 1 };
            let key = |n: u64| Bytes::from(vec![b'a' + n as u8]);
            let mut batch = Batch { txn, ..Batch::default() };
            let since = Timestamp::MIN;
            for n in 0..26 {
                match next(64) {
                    0 => batch.writes.push(Write { key: key(n), value: None, since }),
                    1 => batch.writes.push(Write { key: key(n), value: Some(key(n)), since }),
                    2 => batch.reads.push(Read::Key { key: key(n), since }),
                    3 => batch.reads.push(Read::Present { key: key(n), since }),
                    5 => batch.reads.push(Read::Unreferred { key: key(n), since }),
                    6 if next(4) == 0 => {
                        let end = if next(4) == 0 { Bytes::new() } else { key(next(26)) };
                        batch.reads.push(Read::Referred { span: Span { start: key(n), end }, since });
                    }
                    4 if next(2) == 0 => {
                        let end = if next(4) == 0 { Bytes::new() } else { key(next(26)) };
                        batch.reads.push(Read::Span { span: Span { start: key(n), end }, since });
                    }
                    _ => {}
                }
            }
            let by_write = batch.writes.iter().find_map(|w| holds.against_write(txn, w));
            let by_read = batch.reads.iter().find_map(|r| holds.against_read(txn, r)).map(|(of, _)| of);
            let by_read = by_read.or_else(|| batch.reads.iter().find_map(|r| holds.against_references(txn, r)));
            let clash = clashes(&prepared, &batch);
            assert_eq!(by_write.is_some() || by_read.is_some(), clash, "{batch:?} among {prepared:?}");
            let large = prepared.values().any(|theirs| clash_of_large(theirs, &batch).is_some());
            let large = large || batch.reads.iter().any(|r| holds.against_references(txn, r).is_some());
            assert_eq!(large, clash, "{batch:?} among {prepared:?}");
            hits += usize::from(clash);
            for n in 0..26 {
                let key = key(n);
                let referred = Read::Unreferred { key: key.clone(), since };
                let needed =
                    prepared.values().any(|theirs: &Batch| theirs.reads.iter().any(|read| read.contradicts(&referred)));
                assert_eq!(holds.needs(&key), needed, "{key:?} among {prepared:?}");
            }
            if !clash {
                holds.enter(&batch);
                prepared.insert(txn, batch);
            }
            if prepared.len() > 6 {
                let gone = prepared.keys().nth(next(6) as usize).copied().expect("one");
                holds.leave(&prepared.remove(&gone).expect("it is there"));
            }
        }
        assert!(hits > 2000 && hits < 18_000, "{hits}");
        prepared.values().for_each(|batch| holds.leave(batch));
        assert_eq!(holds, Holds::default());
    }
}
