use super::buffer::index_of;
use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{Read, Span};
use std::collections::BTreeMap;

/// Single keys remembered, beside those that are written as well, before neighbours are joined into spans.
pub const MAX_READ_KEYS: usize = 65_536;
/// Spans remembered before neighbours are joined.
pub const MAX_READ_SPANS: usize = 1024;
/// Keys remembered as present; more are certified by their version, and of those it is said in which span they lie.
pub const MAX_PRESENT_KEYS: usize = 65_536;
/// Keys of which it is remembered that nobody referred to them; for more, who looks certifies all that he looks through.
pub const MAX_UNREFERRED_KEYS: usize = 65_536;
/// Keys relied upon before those that are there twice are joined.
pub const MAX_RELIED_KEYS: usize = 4096;
/// So many neighbours become one.
const JOIN: usize = 8;
/// What a key or a span takes of memory, bytes, about.
const SEEN_BYTES: usize = 128;

/// One thing read.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The key, or the span's start.
    pub start: Bytes,
    /// The span's end; `None`: one key.
    pub end: Option<Bytes>,
    /// Known unchanged up to here.
    pub since: Timestamp,
    /// To be certified whatever the isolation level.
    pub certified: bool,
}

/// What a transaction read. Remembering more than was read is always safe: it can only refuse more.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    keys: Vec<Seen>,
    spans: Vec<Seen>,
    /// Keys that must have a value at the commit, with the snapshot of the time. No refresh asks for them: the snapshot is not theirs.
    present: BTreeMap<Bytes, Timestamp>,
    /// Between which keys those lie, of each index, that are relied upon beyond [`MAX_PRESENT_KEYS`], with the snapshot of the first.
    referred: BTreeMap<Bytes, (Bytes, Bytes, Timestamp)>,
    /// Keys to which nobody may have come to refer since a snapshot, and how many savepoints there were: see [`Reads::unreferred`].
    unreferred: BTreeMap<Bytes, (Timestamp, usize)>,
    /// What the caller relies on without having read it here (see [`super::Transaction::rely`]), and how many savepoints there were.
    relied: Vec<(Seen, usize)>,
    /// Beyond so many of those each is looked for among the others, again when they are twice as many.
    relied_looked_through: usize,
    /// Keys were forgotten because writes certify them: see [`Reads::bound_keys`].
    left_to_writes: bool,
}

impl Reads {
    /// Afterwards: [`Reads::bound_keys`], where [`Reads::has_many_keys`].
    pub fn key(&mut self, key: &[u8], since: Timestamp, certified: bool) {
        if let Some(last) = self.keys.last_mut()
            && *last.start == *key
            && last.since == since
        {
            last.certified |= certified;
            return;
        }
        self.keys.push(Seen { start: Bytes::copy_from_slice(key), end: None, since, certified });
    }

    /// The caller relies on the key as it was at `since`; there are so many savepoints.
    pub fn rely(&mut self, key: &Bytes, since: Timestamp, certified: bool, savepoints: usize) {
        self.relied.push((Seen { start: key.clone(), end: None, since, certified }, savepoints));
        if self.relied.len() > MAX_RELIED_KEYS.max(2 * self.relied_looked_through) {
            self.relied.sort_by(|(a, _), (b, _)| (&a.start, a.since).cmp(&(&b.start, b.since)));
            self.relied.dedup_by(|(later, later_savepoints), (first, savepoints)| {
                let same = later.start == first.start;
                if same {
                    first.certified |= later.certified;
                    *savepoints = (*savepoints).min(*later_savepoints);
                }
                same
            });
            self.relied_looked_through = self.relied.len();
        }
    }

    /// Forgets what was relied upon since there were more savepoints than these.
    pub fn forget_relied(&mut self, savepoints: usize) {
        self.relied.retain(|(_, then)| *then <= savepoints);
        self.unreferred.retain(|_, (_, then)| *then <= savepoints);
    }

    /// The caller has looked who refers to a key, at `since`, and remembers nothing of the look; there are so many savepoints. Of several looks the first counts: each has had its effects, and one for each
    /// foreign key is made. The snapshot moves up without it.
    pub fn unreferred(&mut self, key: &Bytes, since: Timestamp, savepoints: usize) {
        let known = self.unreferred.entry(key.clone()).or_insert((since, savepoints));
        known.0 = known.0.min(since);
    }

    /// Whether [`Reads::unreferred`] has room for more.
    pub fn remembers_unreferred(&self) -> bool {
        self.unreferred.len() < MAX_UNREFERRED_KEYS
    }

    /// Whether there are more keys than should be remembered.
    pub fn has_many_keys(&self) -> bool {
        self.keys.len() > MAX_READ_KEYS
    }

    /// Forgets keys that a write certifies as strictly, which `covered` says of a key and the snapshot of its read; joins the others where
    /// they are still many. Who takes such a write back remembers the key again: [`Reads::not_written`].
    pub fn bound_keys(&mut self, covered: impl Fn(&[u8], Timestamp) -> bool) {
        let before = self.keys.len();
        self.keys.retain(|seen| !covered(&seen.start, seen.since));
        self.left_to_writes |= self.keys.len() < before;
        // Half of them: what is looked through now is paid by what came since.
        if self.keys.len() > MAX_READ_KEYS / 2 {
            let keys = std::mem::take(&mut self.keys);
            self.spans.extend(join(keys));
            self.bound_spans();
        }
    }

    /// Writes, with the snapshots at which they were decided, that were taken back.
    pub fn not_written(&mut self, writes: impl Iterator<Item = (Bytes, Timestamp)>) {
        if self.left_to_writes {
            self.keys.extend(writes.map(|(start, since)| Seen { start, end: None, since, certified: true }));
        }
    }

    /// Bytes of memory, about.
    pub fn held_bytes(&self) -> usize {
        let references = self.present.len() + self.referred.len() + self.unreferred.len();
        (self.keys.len() + self.spans.len() + self.relied.len() + references) * SEEN_BYTES
    }

    /// The key must have a value at the commit. Afterwards: [`Reads::bound_keys`], where [`Reads::has_many_keys`].
    pub fn present(&mut self, key: &[u8], since: Timestamp) {
        if self.present.contains_key(key) {
            return;
        }
        if self.present.len() < MAX_PRESENT_KEYS {
            self.present.insert(Bytes::copy_from_slice(key), since);
            return;
        }
        self.key(key, since, true);
        let copied = || Bytes::copy_from_slice(key);
        match self.referred.get_mut(index_of(key)) {
            Some((first, last, _)) => {
                if *key < **first {
                    *first = copied();
                } else if *key > **last {
                    *last = copied();
                }
            }
            None => drop(self.referred.insert(Bytes::copy_from_slice(index_of(key)), (copied(), copied(), since))),
        }
    }

    /// A span read in chunks grows at its end (or start, in reverse).
    pub fn span(&mut self, span: &store::Span, since: Timestamp, certified: bool) {
        if let Some(last) = self.spans.last_mut()
            && last.since == since
            && last.certified == certified
            && let Some(end) = &mut last.end
        {
            if *end == span.start {
                *end = span.end.clone();
                return;
            }
            if last.start == span.end {
                last.start = span.start.clone();
                return;
            }
        }
        self.spans.push(Seen { start: span.start.clone(), end: Some(span.end.clone()), since, certified });
        self.bound_spans();
    }

    fn bound_spans(&mut self) {
        while self.spans.len() > MAX_READ_SPANS {
            let before = self.spans.len();
            self.spans = join(std::mem::take(&mut self.spans));
            // One of each index: what lies between two belongs to others.
            if self.spans.len() == before {
                break;
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
            && self.spans.is_empty()
            && self.present.is_empty()
            && self.relied.is_empty()
            && self.unreferred.is_empty()
    }
    pub fn iter(&self) -> impl Iterator<Item = &Seen> {
        self.keys.iter().chain(&self.spans).chain(self.relied.iter().map(|(seen, _)| seen))
    }

    /// All of it was found unchanged up to `at`.
    pub fn unchanged_up_to(&mut self, at: Timestamp) {
        let relied = self.relied.iter_mut().map(|(seen, _)| seen);
        self.keys.iter_mut().chain(&mut self.spans).chain(relied).for_each(|seen| seen.since = seen.since.max(at));
    }

    /// A READ COMMITTED statement begins: only what must be certified is remembered.
    pub fn forget_uncertified(&mut self) {
        self.keys.retain(|seen| seen.certified);
        self.spans.retain(|seen| seen.certified);
        self.relied.retain(|(seen, _)| seen.certified);
    }

    /// What the commit certifies; `all` where the isolation level asks for it.
    pub fn take_certified(&mut self, all: bool) -> Vec<Read> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.extend(self.relied.drain(..).map(|(seen, _)| seen));
        keys.retain(|seen| all || seen.certified);
        keys.sort_by(|a, b| (&a.start, a.since).cmp(&(&b.start, b.since)));
        keys.dedup_by(|later, first| later.start == first.start);
        let spans = std::mem::take(&mut self.spans);
        let spans = spans.into_iter().filter(|seen| all || seen.certified);
        let present = std::mem::take(&mut self.present).into_iter();
        let present = present.map(|(key, since)| Read::Present { key, since });
        let referred = std::mem::take(&mut self.referred).into_values();
        let referred =
            referred.map(|(first, last, since)| Read::Referred { span: Span::new(first, after(&last)), since });
        let unreferred = std::mem::take(&mut self.unreferred).into_iter();
        let unreferred = unreferred.map(|(key, (since, _))| Read::Unreferred { key, since });
        let references = present.chain(referred).chain(unreferred);
        keys.into_iter().chain(spans).map(Seen::into_read).chain(references).collect()
    }
}

impl Seen {
    fn into_read(self) -> Read {
        match self.end {
            None => Read::Key { key: self.start, since: self.since },
            Some(end) => Read::Span { span: Span { start: self.start, end }, since: self.since },
        }
    }
    fn end_or_after(&self) -> Bytes {
        self.end.clone().unwrap_or_else(|| after(&self.start))
    }
}

/// The least key above.
pub(crate) fn after(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

/// Joins neighbours of one index, [`JOIN`] at a time, into the spans that cover them: what lies between two indexes belongs to others.
fn join(mut seen: Vec<Seen>) -> Vec<Seen> {
    fn index(seen: &Seen) -> &[u8] {
        index_of(&seen.start)
    }
    seen.sort_by(|a, b| (index(a), a.certified, &a.start).cmp(&(index(b), b.certified, &b.start)));
    let cover = |group: &[Seen]| {
        let first = group.first()?;
        Some(Seen {
            start: first.start.clone(),
            end: group.iter().map(Seen::end_or_after).max(),
            since: group.iter().map(|s| s.since).min()?,
            certified: first.certified,
        })
    };
    let indexes = seen.chunk_by(|a, b| index(a) == index(b) && a.certified == b.certified);
    indexes.flat_map(|index| index.chunks(JOIN)).filter_map(cover).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u8, n: u32) -> Vec<u8> {
        [&[0, 0, 0, index], &n.to_be_bytes()[..]].concat()
    }

    fn at(n: u64) -> Timestamp {
        Timestamp::from_u64(n)
    }

    #[test]
    fn what_is_joined_covers_all_that_was_read_and_nothing_between_indexes() {
        let mut reads = Reads::default();
        // As an INSERT reads: the catalog once, then a key of each of two indexes for each row.
        reads.key(&key(1, 7), at(5), true);
        let rows = MAX_READ_KEYS as u32;
        for n in 0..rows {
            reads.key(&key(9, n), at(6), true);
            reads.key(&key(11, n.wrapping_mul(2_654_435_761)), at(7), n % 2 == 0);
            if reads.has_many_keys() {
                reads.bound_keys(|_, _| false);
            }
        }
        let seen: Vec<&Seen> = reads.iter().collect();
        assert!(seen.len() <= MAX_READ_KEYS + MAX_READ_SPANS, "{}", seen.len());
        assert!(seen.iter().all(|s| s.end.as_ref().is_none_or(|end| end[..4] == s.start[..4])), "across indexes");
        let covers = |key: &[u8], since: Timestamp, certified: bool| {
            seen.iter().any(|s| {
                let inside = *s.start <= *key && s.end.as_ref().map_or(*s.start == *key, |end| *key < **end);
                inside && s.since <= since && (s.certified || !certified)
            })
        };
        assert!(covers(&key(1, 7), at(5), true));
        for n in (0..rows).step_by(997) {
            assert!(covers(&key(9, n), at(6), true));
            assert!(covers(&key(11, n.wrapping_mul(2_654_435_761)), at(7), n % 2 == 0));
        }
        assert!(!covers(&key(10, 3), at(9), false), "nobody read it");
    }

    #[test]
    fn of_very_many_references_it_is_said_between_which_keys_they_lie() {
        let mut reads = Reads::default();
        for n in 0..MAX_PRESENT_KEYS as u32 {
            reads.present(&key(9, n), at(5));
        }
        for n in [80_000, 70_000, 90_000, 3] {
            reads.present(&key(9, n), at(6));
        }
        reads.present(&key(11, 7), at(7));
        let all = reads.take_certified(false);
        let keys: Vec<&[u8]> = all
            .iter()
            .filter_map(|read| if let Read::Key { key, .. } = read { Some(&key[..]) } else { None })
            .collect();
        assert_eq!(
            keys,
            [&key(9, 70_000)[..], &key(9, 80_000), &key(9, 90_000), &key(11, 7)],
            "they are certified, too"
        );
        let spans = all.into_iter().filter(|read| matches!(read, Read::Referred { .. }));
        let between = |index, first, last: u32, since| {
            let span = Span::new(key(index, first), after(&key(index, last)));
            Read::Referred { span, since: at(since) }
        };
        assert_eq!(spans.collect::<Vec<_>>(), [between(9, 70_000, 90_000, 6), between(11, 7, 7, 7)]);
    }

    #[test]
    fn of_several_looks_for_a_key_the_first_counts_that_was_not_taken_back() {
        let mut reads = Reads::default();
        let said = |reads: &mut Reads, since, savepoints| {
            reads.unreferred(&Bytes::from_static(b"abcdp"), at(since), savepoints)
        };
        said(&mut reads, 5, 2);
        said(&mut reads, 6, 3);
        reads.forget_relied(2);
        reads.unchanged_up_to(at(9));
        reads.forget_uncertified();
        said(&mut reads, 9, 2);
        let unreferred = |since| vec![Read::Unreferred { key: Bytes::from_static(b"abcdp"), since: at(since) }];
        assert_eq!(reads.take_certified(false), unreferred(5));
        said(&mut reads, 5, 2);
        reads.forget_relied(1);
        assert!(reads.is_empty());
        said(&mut reads, 7, 1);
        assert_eq!(reads.take_certified(true), unreferred(7));
    }

    #[test]
    fn keys_that_are_written_are_left_to_the_writes_until_those_are_taken_back() {
        let mut reads = Reads::default();
        for n in 0..=MAX_READ_KEYS as u32 {
            reads.key(&key(9, n), at(6), true);
        }
        assert!(reads.has_many_keys());
        // One write was decided at a later snapshot than the read: it does not certify what lies between.
        reads.bound_keys(|written, since| *written != key(9, 3) && since >= at(6));
        assert_eq!(reads.iter().map(|s| s.start.to_vec()).collect::<Vec<_>>(), [key(9, 3)]);
        reads.not_written([(Bytes::from(key(9, 5)), at(6))].into_iter());
        assert_eq!(reads.take_certified(false).len(), 2);
    }
}
