//! Writes of one index, in a list: few as they came, many in little room.
//!
//! Problem: a write that stands for itself takes 72 bytes and two blocks of memory for its key, of which eleven bytes are the key. A statement over
//! half a million rows with one index more touched 120 MB for a million of them, each page for the first time, and nearly half of its time was the
//! kernel's, which clears them. Idea: from [`MANY_MIN`] on keys lie one behind the other, in pieces that never move, and a write is a [`Place`] of 16 bytes.
//!
//! Invariants:
//! 1. Values are kept as they came: who keeps one does not keep its neighbours.
//! 2. A piece never grows beyond the memory that it began with, so what lies in it is copied once.
//! 3. What is taken out leaves its key in the piece until all is dropped, unless it came last. Its value goes at once, and the next one takes its place.
//!
//! Caveat: behind a savepoint the buffer keeps each key once more, to go back by.

use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{LentWrites, Write};

/// So many writes of one index are packed. (Tests, which are small, would not come so far.)
const MANY_MIN: usize = if cfg!(test) { 24 } else { 1024 };
/// Bytes of a piece of keys, at most and at least.
const PIECE_BYTES: usize = 256 << 10;
const PIECE_BYTES_MIN: usize = 4 << 10;
/// Bytes before each key that give its length.
const LENGTH_BYTES: usize = 2;
/// The value of what is deleted.
const NO_VALUE: u32 = u32::MAX;
/// Bytes of a key that are the same in all of the list: they name its index.
pub(super) const INDEX_BYTES: usize = 4;
/// Bytes behind [`INDEX_BYTES`] that are compared as one number when a list is sorted.
const LEAD_BYTES: usize = 8;

/// A vector of so many grows by this factor, and no more by two: what a transaction of a million writes took was mostly copied and touched anew each
/// time that it doubled. What is not touched takes addresses and no memory, where the system promises more than there is: beyond so many more it
/// doubles again.
const GROWN_WRITES: usize = 16 << 10;
const GROWTH: usize = 8;
const GROWN_BY_WRITES_MAX: usize = 1 << 20;

/// Room for so many more where there is none.
fn grown_by(held: usize) -> usize {
    ((GROWTH - 1) * held).min(GROWN_BY_WRITES_MAX.max(held))
}

fn append<T>(list: &mut Vec<T>, one: T) {
    let held = list.len();
    if held == list.capacity() && held >= GROWN_WRITES {
        list.reserve_exact(grown_by(held));
    }
    list.push(one);
}

fn lead_of(key: &[u8]) -> u64 {
    let mut lead = [0; LEAD_BYTES];
    let behind = key.get(INDEX_BYTES..).unwrap_or_default();
    let length = behind.len().min(LEAD_BYTES);
    lead[..length].copy_from_slice(&behind[..length]);
    u64::from_be_bytes(lead)
}

/// Where a write lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The piece that holds its key, and where in it.
    piece: u32,
    offset: u32,
    /// The number of its value, or [`NO_VALUE`].
    value: u32,
    /// The number of the snapshot at which it was decided.
    since: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    pieces: Vec<Vec<u8>>,
    places: Vec<Place>,
    values: Vec<Bytes>,
    /// Values that are none any more: the next ones stand there.
    free: Vec<u32>,
    sinces: Vec<Timestamp>,
}

/// See the module.
#[derive(Debug)]
pub(crate) enum Writes {
    Few(Vec<Write>),
    Many(Packed),
}

impl Default for Writes {
    fn default() -> Writes {
        Writes::Few(Vec::new())
    }
}

impl Packed {
    fn of(writes: Vec<Write>) -> Packed {
        let bytes: usize = writes.iter().map(|write| LENGTH_BYTES + write.key.len()).sum();
        let mut packed = Packed {
            pieces: vec![Vec::with_capacity(bytes)],
            places: Vec::with_capacity(writes.len()),
            ..Packed::default()
        };
        for Write { key, value, since } in writes {
            packed.push(&key, value, since);
        }
        packed
    }

    fn place(&mut self, key: &[u8], value: Option<Bytes>, since: Timestamp) -> Place {
        let room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= LENGTH_BYTES + key.len();
        if !self.pieces.last().is_some_and(room) {
            // Of a few writes that were sorted not many more need come.
            let bytes = self.pieces.last().map_or(0, |last| 2 * last.capacity()).clamp(PIECE_BYTES_MIN, PIECE_BYTES);
            self.pieces.push(Vec::with_capacity(bytes.max(LENGTH_BYTES + key.len())));
        }
        let number = self.pieces.len() - 1;
        let piece = &mut self.pieces[number];
        let offset = piece.len() as u32;
        piece.extend_from_slice(&(key.len() as u16).to_le_bytes());
        piece.extend_from_slice(key);
        Place { piece: number as u32, offset, value: self.value_of(value), since: self.since_of(since) }
    }

    fn value_of(&mut self, value: Option<Bytes>) -> u32 {
        let Some(value) = value else { return NO_VALUE };
        if let Some(number) = self.free.pop() {
            self.values[number as usize] = value;
            return number;
        }
        append(&mut self.values, value);
        self.values.len() as u32 - 1
    }

    fn let_go(&mut self, number: u32) -> Bytes {
        self.free.push(number);
        std::mem::take(&mut self.values[number as usize])
    }

    fn since_of(&mut self, since: Timestamp) -> u32 {
        if self.sinces.last() != Some(&since) {
            self.sinces.push(since);
        }
        self.sinces.len() as u32 - 1
    }

    fn push(&mut self, key: &[u8], value: Option<Bytes>, since: Timestamp) {
        let place = self.place(key, value, since);
        append(&mut self.places, place);
    }

    fn key_at(&self, place: &Place) -> &[u8] {
        let (length, rest) = self.pieces[place.piece as usize][place.offset as usize..].split_at(LENGTH_BYTES);
        &rest[..usize::from(u16::from_le_bytes([length[0], length[1]]))]
    }

    fn value_at(&self, place: &Place) -> Option<&Bytes> {
        (place.value != NO_VALUE).then(|| &self.values[place.value as usize])
    }

    /// Gives the value that was there.
    fn replace(&mut self, at: usize, value: Option<Bytes>) -> Option<Bytes> {
        let held = self.places[at].value;
        match (held, value) {
            (NO_VALUE, value) => {
                self.places[at].value = self.value_of(value);
                None
            }
            (held, Some(value)) => Some(std::mem::replace(&mut self.values[held as usize], value)),
            (held, None) => {
                self.places[at].value = NO_VALUE;
                Some(self.let_go(held))
            }
        }
    }

    fn sort(&mut self, told: &mut impl FnMut(usize, Option<Bytes>, Timestamp)) {
        let mut order: Vec<(u64, u32)> =
            self.places.iter().zip(0..).map(|(place, at)| (lead_of(self.key_at(place)), at)).collect();
        let key = |at: u32| self.key_at(&self.places[at as usize]);
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))).then(a.1.cmp(&b.1)));
        let mut places: Vec<Place> = Vec::with_capacity(order.len());
        let (mut last_lead, mut free) = (None, Vec::new());
        for (lead, at) in order {
            let place = self.places[at as usize];
            let same = |last: &&mut Place| last_lead == Some(lead) && self.key_at(last) == self.key_at(&place);
            match places.last_mut().filter(same) {
                Some(last) => {
                    let value = std::mem::replace(&mut last.value, place.value);
                    let value = (value != NO_VALUE).then(|| {
                        free.push(value);
                        std::mem::take(&mut self.values[value as usize])
                    });
                    told(at as usize, value, self.sinces[last.since as usize]);
                }
                None => places.push(place),
            }
            last_lead = Some(lead);
        }
        self.places = places;
        self.free.append(&mut free);
    }

    fn into_writes(self, out: &mut Vec<Write>) {
        let Packed { pieces, places, mut values, sinces, .. } = self;
        let pieces: Vec<Bytes> = pieces.into_iter().map(Bytes::from).collect();
        out.extend(places.iter().map(|place| {
            let piece = &pieces[place.piece as usize];
            let begin = place.offset as usize + LENGTH_BYTES;
            let length = u16::from_le_bytes([piece[begin - 2], piece[begin - 1]]);
            let value = (place.value != NO_VALUE).then(|| std::mem::take(&mut values[place.value as usize]));
            Write { key: piece.slice(begin..begin + usize::from(length)), value, since: sinces[place.since as usize] }
        }));
    }
}

/// All that a large transaction writes, in key order: lent to who encodes, certifies and shows it.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    /// By index. None is empty.
    parts: Vec<Writes>,
    /// How many writes stand before the end of each.
    ends: Vec<usize>,
}

impl Whole {
    pub fn of(parts: impl Iterator<Item = Writes>) -> Whole {
        let parts: Vec<Writes> = parts.filter(|part| part.len() > 0).collect();
        let mut count = 0;
        let ends = parts.iter().map(|part| {
            count += part.len();
            count
        });
        Whole { ends: ends.collect(), parts }
    }

    fn part(&self, at: usize) -> (&Writes, usize) {
        let part = self.ends.partition_point(|end| *end <= at);
        (&self.parts[part], at - part.checked_sub(1).map_or(0, |before| self.ends[before]))
    }

    /// The first key and the last one.
    pub fn ends(&self) -> Option<(&[u8], &[u8])> {
        let last = self.count().checked_sub(1)?;
        Some((self.key(0), self.key(last)))
    }

    /// When a key's write was decided, if it has one.
    pub fn decided_of(&self, key: &[u8]) -> Option<Timestamp> {
        let at = self.first_from(0, |held| held < key);
        (at < self.count() && self.key(at) == key).then(|| self.since(at))
    }

    /// Key and value.
    pub fn at(&self, at: usize) -> (&[u8], Option<&Bytes>) {
        let (part, at) = self.part(at);
        (part.key(at), part.value(at))
    }

    /// They meet no other: a broken rule.
    pub fn forget_decisions(&mut self) {
        for part in &mut self.parts {
            match part {
                Writes::Few(few) => few.iter_mut().for_each(|write| write.since = Timestamp::MAX),
                Writes::Many(many) => many.sinces.fill(Timestamp::MAX),
            }
        }
    }

    /// As [`Whole::to_writes`], for the last who has them.
    pub fn into_writes(self) -> Vec<Write> {
        let mut out = Vec::with_capacity(self.count());
        self.parts.into_iter().for_each(|part| part.into_writes(&mut out));
        out
    }

    /// As a batch has them.
    pub fn to_writes(&self) -> Vec<Write> {
        let write = |at| {
            let (key, value) = self.at(at);
            Write { key: Bytes::copy_from_slice(key), value: value.cloned(), since: self.since(at) }
        };
        (0..self.count()).map(write).collect()
    }
}

impl LentWrites for Whole {
    fn count(&self) -> usize {
        self.ends.last().copied().unwrap_or_default()
    }
    fn key(&self, at: usize) -> &[u8] {
        let (part, at) = self.part(at);
        part.key(at)
    }
    fn value(&self, at: usize) -> Option<&[u8]> {
        let (part, at) = self.part(at);
        part.value(at).map(|value| &value[..])
    }
    fn since(&self, at: usize) -> Timestamp {
        let (part, at) = self.part(at);
        part.since(at)
    }
}

impl Writes {
    pub fn len(&self) -> usize {
        match self {
            Writes::Few(few) => few.len(),
            Writes::Many(many) => many.places.len(),
        }
    }

    pub fn key(&self, at: usize) -> &[u8] {
        match self {
            Writes::Few(few) => &few[at].key,
            Writes::Many(many) => many.key_at(&many.places[at]),
        }
    }

    pub fn value(&self, at: usize) -> Option<&Bytes> {
        match self {
            Writes::Few(few) => few[at].value.as_ref(),
            Writes::Many(many) => many.value_at(&many.places[at]),
        }
    }

    pub fn since(&self, at: usize) -> Timestamp {
        match self {
            Writes::Few(few) => few[at].since,
            Writes::Many(many) => many.sinces[many.places[at].since as usize],
        }
    }

    pub fn deletes(&self) -> usize {
        match self {
            Writes::Few(few) => few.iter().filter(|write| write.value.is_none()).count(),
            Writes::Many(many) => many.places.iter().filter(|place| place.value == NO_VALUE).count(),
        }
    }

    pub fn push(&mut self, key: Bytes, value: Option<Bytes>, since: Timestamp) {
        match self {
            Writes::Few(few) if few.len() < MANY_MIN => few.push(Write { key, value, since }),
            _ => self.many().push(&key, value, since),
        }
    }

    /// As [`Writes::push`], of a key that is copied where it has to be.
    pub fn push_lent(&mut self, key: &[u8], value: Option<Bytes>, since: Timestamp) {
        match self {
            Writes::Few(few) if few.len() < MANY_MIN => {
                few.push(Write { key: Bytes::copy_from_slice(key), value, since })
            }
            _ => self.many().push(key, value, since),
        }
    }

    pub fn insert(&mut self, at: usize, key: Bytes, value: Option<Bytes>, since: Timestamp) {
        match self {
            Writes::Few(few) if few.len() < MANY_MIN => few.insert(at, Write { key, value, since }),
            _ => {
                let many = self.many();
                let place = many.place(&key, value, since);
                many.places.insert(at, place);
            }
        }
    }

    /// Puts a value in the place of another, which it gives.
    pub fn replace(&mut self, at: usize, value: Option<Bytes>) -> Option<Bytes> {
        match self {
            Writes::Few(few) => std::mem::replace(&mut few[at].value, value),
            Writes::Many(many) => many.replace(at, value),
        }
    }

    pub fn set_since(&mut self, at: usize, since: Timestamp) {
        match self {
            Writes::Few(few) => few[at].since = since,
            // A decision that is put back is mostly the one that stands there.
            Writes::Many(many) if many.sinces[many.places[at].since as usize] == since => {}
            Writes::Many(many) => many.places[at].since = many.since_of(since),
        }
    }

    pub fn pop(&mut self) {
        match self {
            Writes::Few(few) => drop(few.pop()),
            Writes::Many(many) => {
                let Some(Place { piece, offset, value, .. }) = many.places.pop() else { return };
                if value != NO_VALUE {
                    many.let_go(value);
                }
                // What came last lies last: a savepoint that is gone back to again and again should not fill memory with keys.
                let piece = &mut many.pieces[piece as usize];
                let length = u16::from_le_bytes([piece[offset as usize], piece[offset as usize + 1]]);
                if offset as usize + LENGTH_BYTES + usize::from(length) == piece.len() {
                    piece.truncate(offset as usize);
                }
            }
        }
    }

    fn many(&mut self) -> &mut Packed {
        if let Writes::Few(few) = self {
            *self = Writes::Many(Packed::of(std::mem::take(few)));
        }
        match self {
            Writes::Many(many) => many,
            Writes::Few(_) => unreachable!("they were packed"),
        }
    }

    /// Sorts what came in no order. Of a key that is there more than once the value of the last is kept, and the decision of the first: `told` hears,
    /// for the number of each such write in the order in which they came, what was before it.
    pub fn sort(&mut self, mut told: impl FnMut(usize, Option<Bytes>, Timestamp)) {
        self.many().sort(&mut told);
    }

    /// The first, of those in order, for whose key `before` does not hold.
    pub fn partition_point(&self, before: impl Fn(&[u8]) -> bool) -> usize {
        match self {
            Writes::Few(few) => few.partition_point(|write| before(&write.key)),
            Writes::Many(many) => many.places.partition_point(|place| before(many.key_at(place))),
        }
    }

    /// Where a key stands, or belongs, among writes in order: what comes last mostly does.
    pub fn place_of(&self, key: &[u8]) -> Result<usize, usize> {
        match self.len().checked_sub(1) {
            Some(last) if self.key(last) >= key => match self {
                Writes::Few(few) => few.binary_search_by(|write| (*write.key).cmp(key)),
                Writes::Many(many) => many.places.binary_search_by(|place| many.key_at(place).cmp(key)),
            },
            _ => Err(self.len()),
        }
    }

    /// Adds them to a list.
    pub fn into_writes(self, out: &mut Vec<Write>) {
        match self {
            Writes::Few(few) if out.capacity() == 0 => *out = few,
            Writes::Few(mut few) => out.append(&mut few),
            Writes::Many(many) => many.into_writes(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that one transaction may write had addresses for eight times as much.
    #[test]
    fn what_is_large_doubles() {
        assert_eq!(grown_by(GROWN_WRITES), 7 * GROWN_WRITES);
        assert_eq!(grown_by(1 << 18), GROWN_BY_WRITES_MAX);
        assert_eq!(grown_by(8 << 20), 8 << 20);
    }

    /// Keys longer than a piece has room for begin another, and what is popped gives its room back.
    #[test]
    fn pieces_do_not_grow() {
        let mut writes = Writes::default();
        let key = |n: usize| Bytes::from(vec![(n % 251) as u8; 1 + n * 97 % (16 << 10)]);
        for n in 0..20 * MANY_MIN {
            writes.push(key(n), (n % 3 == 0).then(|| key(n)), Timestamp::from_u64(n as u64 / 100));
        }
        let Writes::Many(many) = &writes else { panic!("they are many") };
        let large = many.pieces.iter().filter(|piece| piece.capacity() == PIECE_BYTES).count();
        assert!(large >= 2 && many.pieces[1..].iter().all(|piece| piece.capacity() <= PIECE_BYTES));
        for n in 0..20 * MANY_MIN {
            assert_eq!(writes.key(n), &key(n)[..]);
            assert_eq!(writes.value(n), (n % 3 == 0).then(|| key(n)).as_ref());
            assert_eq!(writes.since(n), Timestamp::from_u64(n as u64 / 100));
        }
        let bytes = |writes: &Writes| match writes {
            Writes::Many(many) => many.pieces.iter().map(Vec::len).sum::<usize>() + many.values.len() - many.free.len(),
            Writes::Few(_) => 0,
        };
        let before = bytes(&writes);
        for n in 0..100 {
            writes.push(key(7), Some(key(n)), Timestamp::MIN);
            writes.pop();
        }
        assert_eq!(bytes(&writes), before);
    }

    /// What is put over a deletion and taken back, before and behind what came last: the values that a savepoint takes back are not kept.
    #[test]
    fn values_that_are_taken_back_go() {
        let mut writes = Writes::default();
        let key = |n: u32| Bytes::copy_from_slice(&n.to_be_bytes());
        for n in 0..2 * MANY_MIN as u32 {
            writes.push(key(n), (n > 0).then(|| key(n)), Timestamp::MIN);
        }
        let held = |writes: &Writes| match writes {
            Writes::Many(many) => {
                (many.values.iter().map(Bytes::len).sum::<usize>(), many.values.len(), many.sinces.len())
            }
            Writes::Few(_) => (0, 0, 0),
        };
        let mut before = held(&writes);
        for turn in 0..100 {
            writes.push(key(u32::MAX), Some(Bytes::from(vec![7; 1000])), Timestamp::MIN);
            assert_eq!(writes.replace(0, Some(key(turn))), None);
            assert_eq!(writes.replace(0, None), Some(key(turn)));
            writes.set_since(0, Timestamp::MIN);
            writes.pop();
            if turn == 0 {
                // Places for those two.
                before.1 += 2;
            }
            assert_eq!(held(&writes), before);
        }
        assert_eq!((writes.len(), writes.value(0), writes.value(1)), (2 * MANY_MIN, None, Some(&key(1))));
    }

    /// Keys that come one before the last are packed as well.
    #[test]
    fn what_is_inserted_is_packed_too() {
        let mut writes = Writes::default();
        let key = |n: usize| Bytes::copy_from_slice(&(n as u32).to_be_bytes());
        writes.push(key(usize::MAX), None, Timestamp::MIN);
        (0..3 * MANY_MIN).for_each(|n| writes.insert(n, key(n), None, Timestamp::MIN));
        assert!(matches!(writes, Writes::Many(_)));
        assert!((0..3 * MANY_MIN).all(|n| writes.key(n) == &key(n)[..]));
    }
}
