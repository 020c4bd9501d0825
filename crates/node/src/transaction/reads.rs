use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{Read, Span};
use std::collections::BTreeMap;

/// Single keys remembered before neighbours are joined into spans.
pub const MAX_READ_KEYS: usize = 4096;
/// Spans remembered before neighbours are joined.
pub const MAX_READ_SPANS: usize = 1024;
/// Keys remembered as present; more are remembered as read, whose every change counts.
pub const MAX_PRESENT_KEYS: usize = 65_536;
/// So many neighbours become one.
const JOIN: usize = 8;

/// One thing read.
#[derive(Clone, Debug)]
pub(super) struct Seen {
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
pub(super) struct Reads {
    keys: Vec<Seen>,
    spans: Vec<Seen>,
    /// Keys that must have a value at the commit, with the snapshot of the time. No refresh asks for them: the snapshot is not theirs.
    present: BTreeMap<Bytes, Timestamp>,
}

impl Reads {
    pub fn key(&mut self, key: &[u8], since: Timestamp, certified: bool) {
        if let Some(last) = self.keys.last_mut()
            && *last.start == *key
            && last.since == since
        {
            last.certified |= certified;
            return;
        }
        self.keys.push(Seen { start: Bytes::copy_from_slice(key), end: None, since, certified });
        if self.keys.len() > MAX_READ_KEYS {
            let keys = std::mem::take(&mut self.keys);
            self.spans.extend(join(keys));
            self.bound_spans();
        }
    }

    /// The key must have a value at the commit.
    pub fn present(&mut self, key: &[u8], since: Timestamp) {
        if self.present.contains_key(key) {
            return;
        }
        if self.present.len() >= MAX_PRESENT_KEYS {
            self.key(key, since, true);
            return;
        }
        self.present.insert(Bytes::copy_from_slice(key), since);
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
        if self.spans.len() > MAX_READ_SPANS {
            let spans = std::mem::take(&mut self.spans);
            self.spans = join(spans);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.spans.is_empty() && self.present.is_empty()
    }
    pub fn iter(&self) -> impl Iterator<Item = &Seen> {
        self.keys.iter().chain(&self.spans)
    }

    /// All of it was found unchanged up to `at`.
    pub fn unchanged_up_to(&mut self, at: Timestamp) {
        self.keys.iter_mut().chain(&mut self.spans).for_each(|seen| seen.since = seen.since.max(at));
    }

    /// A READ COMMITTED statement begins: only what must be certified is remembered.
    pub fn forget_uncertified(&mut self) {
        self.keys.retain(|seen| seen.certified);
        self.spans.retain(|seen| seen.certified);
    }

    /// What the commit certifies; `all` where the isolation level asks for it.
    pub fn take_certified(&mut self, all: bool) -> Vec<Read> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.retain(|seen| all || seen.certified);
        keys.sort_by(|a, b| (&a.start, a.since).cmp(&(&b.start, b.since)));
        keys.dedup_by(|later, first| later.start == first.start);
        let spans = std::mem::take(&mut self.spans);
        let spans = spans.into_iter().filter(|seen| all || seen.certified);
        let present = std::mem::take(&mut self.present).into_iter();
        let present = present.map(|(key, since)| Read::Present { key, since });
        keys.into_iter().chain(spans).map(Seen::into_read).chain(present).collect()
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
pub(super) fn after(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

/// Joins neighbours, [`JOIN`] at a time, into the spans that cover them.
fn join(mut seen: Vec<Seen>) -> Vec<Seen> {
    seen.sort_by(|a, b| a.start.cmp(&b.start));
    let cover = |group: &[Seen]| {
        let first = group.first()?;
        Some(Seen {
            start: first.start.clone(),
            end: group.iter().map(Seen::end_or_after).max(),
            since: group.iter().map(|s| s.since).min()?,
            certified: group.iter().any(|s| s.certified),
        })
    };
    seen.chunks(JOIN).filter_map(cover).collect()
}
