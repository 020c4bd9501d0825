//! The receive buffer: bytes from the socket, cut into messages where they lie.

use super::budget::{MessageBudget, OWN_BYTES};
use super::{MESSAGE_BYTES_MAX, SMALL_MESSAGE_BYTES_MAX};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

/// Bytes asked of the socket at a time.
const CHUNK_BYTES: usize = 16 << 10;

/// Messages between an Execute and its Sync that are looked at.
const BEFORE_SYNC_MAX: usize = 4;

/// Why no further message can be read. The connection ends; [`InboxError::reason`] is for the client.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The client went away between messages: the ordinary end.
    #[error("the client closed the connection")]
    Closed,
    /// The client went away inside a message.
    #[error("the client closed the connection inside a message")]
    Torn,
    /// The length is impossible, or beyond the bound.
    #[error("invalid message length {length} of message type {tag:?}: at most {limit} bytes are accepted")]
    Length {
        /// Type of the message.
        tag: char,
        /// What it claims, in bytes.
        length: i32,
        /// The bound, in bytes.
        limit: usize,
    },
    /// No message of the protocol begins so.
    #[error("invalid frontend message type {0}")]
    Tag(u8),
    /// The start-up took longer than it may.
    #[error("the start-up took longer than {0} seconds")]
    Slow(u64),
    /// The socket failed.
    #[error("receive: {0}")]
    Io(#[from] io::Error),
}

impl InboxError {
    /// What to tell the client before the connection closes; `None` where nobody listens.
    pub fn reason(&self) -> Option<String> {
        match self {
            InboxError::Closed | InboxError::Torn | InboxError::Io(_) => None,
            _ => Some(self.to_string()),
        }
    }
}

/// One message: its type, and where its body lies in the inbox until the next one is asked for.
#[derive(Clone, Debug)]
pub struct Message {
    /// Type byte.
    pub tag: u8,
    /// It was too large beside those of other clients, and is not there: its client is to be told.
    pub is_dropped: bool,
    body: Range<usize>,
}

/// A receive buffer.
#[derive(Debug)]
pub struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    budget: Arc<MessageBudget>,
    /// Of the budget.
    taken_bytes: usize,
}

/// What receiving came to.
enum Filled {
    More,
    Ended,
    /// The messages of all clients are too large together.
    Full,
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.buffer = Vec::new();
        self.budget.give(self.taken_bytes);
    }
}

impl Inbox {
    /// An empty inbox.
    pub fn new(budget: Arc<MessageBudget>) -> Self {
        Inbox { buffer: vec![0; CHUNK_BYTES], start: 0, end: 0, budget, taken_bytes: 0 }
    }

    /// Gives back what it grew by.
    fn shrink(&mut self) {
        self.buffer = vec![0; CHUNK_BYTES];
        self.budget.give(std::mem::take(&mut self.taken_bytes));
    }

    /// Gives back what it grew by, where nothing is in it.
    pub fn tidy(&mut self) {
        if self.start == self.end && self.buffer.len() > CHUNK_BYTES {
            (self.start, self.end) = (0, 0);
            self.shrink();
        }
    }

    /// The bytes received and not yet consumed.
    fn pending(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Receives once, making room first; `wanted` bytes from `start` are known to be needed.
    fn fill(&mut self, stream: &mut impl Read, wanted: usize) -> io::Result<Filled> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > OWN_BYTES && wanted < CHUNK_BYTES {
                self.shrink();
            }
        }
        if self.end == self.buffer.len() || self.start + wanted > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // Grows by what has arrived, never by what a length claims.
            let grown = (self.buffer.len() * 2).min(wanted.max(self.buffer.len() + CHUNK_BYTES));
            let more = grown.saturating_sub(OWN_BYTES).saturating_sub(self.taken_bytes);
            if more > 0 {
                if !self.budget.take(more) {
                    return Ok(Filled::Full);
                }
                self.taken_bytes += more;
            }
            self.buffer.reserve_exact(grown - self.end);
            self.buffer.resize(grown, 0);
        }
        loop {
            match stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(Filled::Ended),
                Ok(n) => {
                    self.end += n;
                    return Ok(Filled::More);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The length field at `at` bytes into what is pending.
    fn length_at(&self, at: usize) -> Option<i32> {
        let field = self.pending().get(at..at + 4)?;
        Some(i32::from_be_bytes(field.try_into().ok()?))
    }

    /// The next message; blocks until it is complete.
    ///
    /// # Errors
    /// See [`InboxError`]: no further message will come.
    pub fn next(&mut self, stream: &mut impl Read) -> Result<Message, InboxError> {
        let mut wanted = 5;
        loop {
            if let Some(&tag) = self.pending().first() {
                let limit = length_limit(tag).ok_or(InboxError::Tag(tag))?;
                if let Some(length) = self.length_at(1) {
                    let size = usize::try_from(length).ok().filter(|n| (4..=limit).contains(n));
                    let size = size.ok_or(InboxError::Length { tag: char::from(tag), length, limit })?;
                    wanted = 1 + size;
                    if self.pending().len() >= wanted {
                        let body = self.start + 5..self.start + wanted;
                        self.start += wanted;
                        return Ok(Message { tag, is_dropped: false, body });
                    }
                }
            }
            match self.fill(stream, wanted)? {
                Filled::More => {}
                Filled::Ended if self.start == self.end => return Err(InboxError::Closed),
                Filled::Ended => return Err(InboxError::Torn),
                Filled::Full => return self.drop_message(stream, wanted),
            }
        }
    }

    /// Reads a message of `size` bytes to its end, and forgets it.
    fn drop_message(&mut self, stream: &mut impl Read, size: usize) -> Result<Message, InboxError> {
        let tag = self.pending().first().copied().unwrap_or_default();
        let mut left = size.saturating_sub(self.pending().len());
        (self.start, self.end) = (0, 0);
        self.shrink();
        while left > 0 {
            let room = left.min(self.buffer.len());
            match stream.read(&mut self.buffer[..room]) {
                Ok(0) => return Err(InboxError::Torn),
                Ok(n) => left -= n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Message { tag, is_dropped: true, body: 0..0 })
    }

    /// The next start-up packet, without its length: 4 to `limit` bytes.
    ///
    /// # Errors
    /// See [`InboxError`].
    pub fn next_startup(&mut self, stream: &mut impl Read, limit: usize) -> Result<&[u8], InboxError> {
        let mut wanted = 8;
        loop {
            if let Some(length) = self.length_at(0) {
                let size = usize::try_from(length).ok().filter(|n| (8..=limit).contains(n));
                wanted = size.ok_or(InboxError::Length { tag: ' ', length, limit })?;
                if self.pending().len() >= wanted {
                    let body = self.start + 4..self.start + wanted;
                    self.start += wanted;
                    return Ok(&self.buffer[body]);
                }
            }
            match self.fill(stream, wanted)? {
                Filled::More => {}
                Filled::Ended if self.start == self.end => return Err(InboxError::Closed),
                // A start-up packet fits what the inbox has of its own.
                Filled::Ended | Filled::Full => return Err(InboxError::Torn),
            }
        }
    }

    /// The body of the message that [`Inbox::next`] gave last.
    pub fn body(&self, message: &Message) -> &[u8] {
        &self.buffer[message.body.clone()]
    }

    /// Whether nothing that came after it waits to be handled.
    pub fn is_empty(&self) -> bool {
        self.pending().is_empty()
    }

    /// Whether the message of this type that [`Inbox::next`] gave last can be handled together with what comes after it, and has already arrived: Sync
    /// ([`Inbox::sync_follows`]), or after CopyData another one, whole.
    pub fn goes_on(&self, tag: u8) -> bool {
        if tag != b'd' {
            return self.sync_follows(tag);
        }
        let whole = |length: i32| usize::try_from(length).is_ok_and(|length| self.pending().len() > length);
        self.pending().first() == Some(&b'd') && self.length_at(1).is_some_and(whole)
    }

    /// Whether Sync comes after the message of this type that [`Inbox::next`] gave last, and has already arrived, with nothing between that is to run: some
    /// drivers close the portal first, or ask for a flush. After a Describe one Execute may stand between: it is of what was described.
    pub fn sync_follows(&self, tag: u8) -> bool {
        let mut described = tag == b'D';
        let mut at = 0;
        for _ in 0..BEFORE_SYNC_MAX {
            match self.pending().get(at) {
                Some(b'S') => return true,
                Some(b'C' | b'H') => {}
                Some(b'E') if described => described = false,
                _ => return false,
            }
            let Some(size) = self.length_at(at + 1).and_then(|length| usize::try_from(length).ok()) else {
                return false;
            };
            at = at.saturating_add(1).saturating_add(size);
        }
        false
    }
}

/// The greatest length field of a message of this type; `None`: there is no such type.
fn length_limit(tag: u8) -> Option<usize> {
    match tag {
        b'Q' | b'P' | b'B' | b'd' | b'F' => Some(MESSAGE_BYTES_MAX),
        b'D' | b'E' | b'C' | b'S' | b'H' | b'X' | b'c' | b'f' | b'p' => Some(SMALL_MESSAGE_BYTES_MAX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes a few at a time.
    struct Dribble<'a>(&'a [u8], usize);
    impl Read for Dribble<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(into.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn inbox() -> Inbox {
        Inbox::new(MessageBudget::new(MESSAGE_BYTES_MAX, || {}))
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut out = vec![tag];
        out.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
        out.extend_from_slice(body);
        out
    }

    #[test]
    fn messages_arrive_whole_however_they_are_cut() {
        let big = vec![7u8; 300_000];
        let stream = [message(b'Q', b"one\0"), message(b'S', b""), message(b'd', &big), message(b'X', b"")].concat();
        for piece in [1, 3, 4096, usize::MAX] {
            let (mut inbox, mut from) = (inbox(), Dribble(&stream, piece));
            let mut seen = Vec::new();
            let end = loop {
                match inbox.next(&mut from) {
                    Ok(m) => seen.push((m.tag, inbox.body(&m).len())),
                    Err(e) => break e,
                }
            };
            assert_eq!(seen, [(b'Q', 4), (b'S', 0), (b'd', big.len()), (b'X', 0)], "pieces of {piece}");
            assert!(matches!(end, InboxError::Closed));
        }
    }

    #[test]
    fn a_claimed_length_allocates_nothing() {
        let mut bytes = vec![b'Q'];
        bytes.extend_from_slice(&(MESSAGE_BYTES_MAX as i32).to_be_bytes());
        bytes.extend_from_slice(&[1; 100]);
        let mut inbox = inbox();
        assert!(matches!(inbox.next(&mut Dribble(&bytes, 50)), Err(InboxError::Torn)));
        assert!(inbox.buffer.len() <= 2 * CHUNK_BYTES);
    }

    #[test]
    fn impossible_lengths_and_types_are_refused() {
        for (tag, length) in [(b'Q', 3), (b'Q', -1), (b'Q', i32::MAX), (b'S', 20_000)] {
            let mut bytes = vec![tag];
            bytes.extend_from_slice(&i32::to_be_bytes(length));
            let refused = inbox().next(&mut Dribble(&bytes, 99));
            assert!(matches!(refused, Err(InboxError::Length { .. })), "{length}");
        }
        assert!(matches!(inbox().next(&mut Dribble(&[0, 0, 0], 99)), Err(InboxError::Tag(0))));
    }

    #[test]
    fn the_next_type_is_seen_without_waiting() {
        let execute = message(b'E', b"\0\0\0\0\0");
        let followed_by = |rest: &[u8]| {
            let stream = [execute.clone(), rest.to_vec()].concat();
            let mut inbox = inbox();
            assert_eq!(inbox.next(&mut Dribble(&stream, usize::MAX)).unwrap().tag, b'E');
            (inbox.is_empty(), inbox.sync_follows(b'E'))
        };
        let (sync, flush, close) = (message(b'S', b""), message(b'H', b""), message(b'C', b"P\0"));
        assert_eq!(followed_by(&[]), (true, false));
        assert_eq!(followed_by(&sync), (false, true));
        assert_eq!(followed_by(&sync[..1]), (false, true), "its type says it");
        for between in [&flush[..], &close, &[close.clone(), flush.clone()].concat()] {
            assert_eq!(followed_by(&[between, &sync].concat()), (false, true));
            assert_eq!(followed_by(between), (false, false));
            assert_eq!(followed_by(&[between, &execute, &sync].concat()), (false, false));
        }
        assert_eq!(followed_by(&[close.repeat(BEFORE_SYNC_MAX), sync.clone()].concat()), (false, false));
        // What is described may be executed in between, once.
        let described = |rest: &[&[u8]]| {
            let describe = message(b'D', b"P\0");
            let mut inbox = inbox();
            let stream = [describe, rest.concat()].concat();
            assert_eq!(inbox.next(&mut Dribble(&stream, usize::MAX)).unwrap().tag, b'D');
            inbox.sync_follows(b'D')
        };
        assert!(described(&[&execute, &sync]) && described(&[&execute, &close, &flush, &sync]) && described(&[&sync]));
        for more in [
            &[&execute[..]][..],
            &[&execute, &flush],
            &[&execute, &execute, &sync],
            &[&execute, &message(b'P', b"\0\0\0\0"), &sync],
        ] {
            assert!(!described(more), "{more:?}");
        }
        for torn in [&b"C"[..], b"C\0\0\0", b"C\xff\xff\xff\xff", b"C\x7f\xff\xff\xffS"] {
            assert!(!followed_by(torn).1, "{torn:?}");
        }
    }

    #[test]
    fn data_of_a_copy_goes_on_where_more_of_it_has_arrived_whole() {
        let first = message(b'd', b"1\n");
        let goes_on = |rest: &[u8]| {
            let mut inbox = inbox();
            let stream = [&first[..], rest].concat();
            assert_eq!(inbox.next(&mut Dribble(&stream, usize::MAX)).unwrap().tag, b'd');
            inbox.goes_on(b'd')
        };
        let next = message(b'd', b"2\n");
        assert!(goes_on(&next) && goes_on(&message(b'd', b"")));
        (0..next.len()).for_each(|end| assert!(!goes_on(&next[..end]), "{end}"));
        assert!(!goes_on(&message(b'c', b"")) && !goes_on(&message(b'S', b"")));
        // Of anything else only Sync counts.
        let mut inbox = inbox();
        let stream = [message(b'E', b"\0\0\0\0\0"), next.clone()].concat();
        assert_eq!(inbox.next(&mut Dribble(&stream, usize::MAX)).unwrap().tag, b'E');
        assert!(!inbox.goes_on(b'E'));
    }

    /// Large messages of all clients share a bound; small ones do not meet it, and what a large one held comes back.
    #[test]
    fn large_messages_share_a_bound() {
        let budget = MessageBudget::new(1 << 20, || {});
        let (mut first, mut second) = (Inbox::new(budget.clone()), Inbox::new(budget.clone()));
        let large = message(b'Q', &vec![7; 1_200_000]);
        let small = message(b'Q', b"small\0");
        let held = first.next(&mut Dribble(&large, 4096)).unwrap();
        assert!(!held.is_dropped && budget.used_bytes() > 0);
        // Another one has no room: it is read to its end, and the next one follows.
        let stream = [large.clone(), small.clone()].concat();
        let mut from = Dribble(&stream, 4096);
        let dropped = second.next(&mut from).unwrap();
        assert!(dropped.is_dropped && dropped.tag == b'Q' && second.body(&dropped).is_empty());
        let next = second.next(&mut from).unwrap();
        assert_eq!((next.is_dropped, second.body(&next)), (false, &b"small\0"[..]));
        // The first one goes on with what is small, and gives back.
        let next = first.next(&mut Dribble(&small, 4096)).unwrap();
        assert_eq!((first.body(&next), budget.used_bytes()), (&b"small\0"[..], 0));
        assert!(!second.next(&mut Dribble(&large, 4096)).unwrap().is_dropped);
        drop(second);
        assert_eq!(budget.used_bytes(), 0);
    }
}
