//! What travels between two stores: one envelope per step, for all the groups that they share.

use super::closed::Word;
use super::error::DecodeError;
use super::ids::{GroupId, ReplicaId, StoreId};
use super::letter::Letter;
use super::part::Part;
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use clock::Timestamp;

const VERSION: u8 = 1;
/// Bytes of letters in one envelope that leaves, about, or one letter.
const ENVELOPE_BYTES_MAX: usize = 4 << 20;
/// Terms and places beyond this are nobody's: sums of them cannot overflow.
const NUMBER_MAX: u64 = 1 << 62;

/// Everything that one step of a store has for another.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// Who sends it.
    pub from: StoreId,
    /// To whom.
    pub to: StoreId,
    pub(crate) ask: Option<Ask>,
    pub(crate) grant: Option<Grant>,
    pub(crate) accepts: Vec<Accept>,
    pub(crate) letters: Vec<Letter>,
    pub(crate) parts: Vec<Part>,
    pub(crate) gone: Vec<(GroupId, ReplicaId)>,
    pub(crate) pokes: Vec<Poke>,
    pub(crate) ceased: Vec<(GroupId, u64)>,
}

/// A replica whose promise forbids it to look for votes asks the leader that it accepted whether it still leads in that term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poke {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub term: u64,
}

/// A store asks for support up to a timestamp, in all groups that it shares with the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub until: Timestamp,
    pub word: Word,
}

/// The answer: support under this epoch, up to this timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub epoch: u64,
    pub until: Timestamp,
    /// The asking store's last word that was heard.
    pub heard: u64,
}

/// A replica has accepted the receiver as leader of a term, under an epoch of its store's support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub group: GroupId,
    pub replica: ReplicaId,
    pub term: u64,
    pub epoch: u64,
}

impl Envelope {
    pub(crate) fn new(from: StoreId, to: StoreId) -> Self {
        Envelope {
            from,
            to,
            ask: None,
            grant: None,
            accepts: Vec::new(),
            letters: Vec::new(),
            parts: Vec::new(),
            gone: Vec::new(),
            pokes: Vec::new(),
            ceased: Vec::new(),
        }
    }

    /// As it leaves: what is bulky and can wait (parts of snapshots), which may travel apart, so that heartbeats overtake it; and all the rest, in envelopes that
    /// can be sent. Their order does not matter.
    pub fn apart(mut self) -> (Option<Envelope>, impl Iterator<Item = Envelope>) {
        let bulk = self.take_bulk();
        let excess = self.take_excess();
        (bulk, std::iter::once(self).chain(excess).filter(|envelope| !envelope.is_empty()))
    }

    fn take_bulk(&mut self) -> Option<Envelope> {
        let bulky = |part: &mut Part| matches!(part, Part::Chunk { .. });
        let parts: Vec<Part> = self.parts.extract_if(.., bulky).collect();
        (!parts.is_empty()).then(|| Envelope { parts, ..Envelope::new(self.from, self.to) })
    }

    /// Takes out the letters that make it large, in their order, an envelope for each [`ENVELOPE_BYTES_MAX`] of them: a follower that is far behind is sent tens of appends in one step
    /// (which the library joins to one), and all that is for its store, promises and heartbeats of other groups too, would be lost with what is too long to be sent. Letters
    /// may be lost and overtaken anyway.
    fn take_excess(&mut self) -> Vec<Envelope> {
        let mut excess = Vec::<Envelope>::new();
        if self.letters.iter().map(Letter::bytes).sum::<usize>() <= ENVELOPE_BYTES_MAX {
            return excess;
        }
        let letters = std::mem::take(&mut self.letters);
        let mut bytes = 0;
        for letter in letters.into_iter().flat_map(|letter| letter.pieces(ENVELOPE_BYTES_MAX)) {
            bytes += letter.bytes();
            let last = excess.last_mut().unwrap_or(self);
            // One that is longer by itself goes alone.
            if bytes <= ENVELOPE_BYTES_MAX || last.letters.is_empty() {
                last.letters.push(letter);
            } else {
                bytes = letter.bytes();
                excess.push(Envelope { letters: vec![letter], ..Envelope::new(self.from, self.to) });
            }
        }
        excess
    }

    /// Whether there is nothing in it (any more).
    fn is_empty(&self) -> bool {
        *self == Envelope::new(self.from, self.to)
    }

    /// As bytes, with a version in front.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut w = Writer(&mut out);
        w.byte(VERSION);
        w.number(self.from.0);
        w.number(self.to.0);
        w.byte(u8::from(self.ask.is_some()) | u8::from(self.grant.is_some()) << 1);
        if let Some(ask) = &self.ask {
            w.time(ask.until);
            w.number(ask.word.number);
            w.number(ask.word.since);
            w.time(ask.word.closed);
            w.number(ask.word.woken.len() as u64);
            ask.word.woken.iter().for_each(|group| w.number(group.0));
        }
        if let Some(grant) = &self.grant {
            w.number(grant.epoch);
            w.time(grant.until);
            w.number(grant.heard);
        }
        w.number(self.accepts.len() as u64);
        for accept in &self.accepts {
            for number in [accept.group.0, accept.replica.0, accept.term, accept.epoch] {
                w.number(number);
            }
        }
        w.number(self.letters.len() as u64);
        self.letters.iter().for_each(|letter| letter.write(&mut w));
        w.number(self.parts.len() as u64);
        self.parts.iter().for_each(|part| part.write(&mut w));
        w.number(self.gone.len() as u64);
        for (group, replica) in &self.gone {
            w.number(group.0);
            w.number(replica.0);
        }
        w.number(self.pokes.len() as u64);
        for poke in &self.pokes {
            [poke.group.0, poke.replica.0, poke.term].into_iter().for_each(|number| w.number(number));
        }
        w.number(self.ceased.len() as u64);
        for (group, term) in &self.ceased {
            w.number(group.0);
            w.number(*term);
        }
        out
    }

    /// From bytes. Trusts nothing.
    ///
    /// # Errors
    /// The version is another, or the bytes are damaged.
    pub fn decode(bytes: &Bytes) -> Result<Envelope, DecodeError> {
        let mut r = Reader(bytes.clone());
        let version = r.byte("version")?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let mut envelope = Envelope::new(StoreId(r.number("sender")?), StoreId(r.number("receiver")?));
        let flags = r.byte("flags")?;
        if flags & 1 != 0 {
            let until = r.time("asked")?;
            let (number, since) = (small(&mut r, "word")?, small(&mut r, "first word")?);
            let mut word = Word { number, since, closed: r.time("closed")?, woken: Vec::new() };
            for _ in 0..r.count("woken")? {
                word.woken.push(GroupId(r.number("group")?));
            }
            envelope.ask = Some(Ask { until, word });
        }
        if flags & 2 != 0 {
            let (epoch, until) = (r.number("epoch")?, r.time("promise")?);
            envelope.grant = Some(Grant { epoch, until, heard: r.number("word")? });
        }
        for _ in 0..r.count("accepts")? {
            envelope.accepts.push(Accept {
                group: GroupId(r.number("group")?),
                replica: ReplicaId(r.number("replica")?),
                term: small(&mut r, "term")?,
                epoch: small(&mut r, "epoch")?,
            });
        }
        for _ in 0..r.count("letters")? {
            envelope.letters.push(Letter::read(&mut r)?);
        }
        for _ in 0..r.count("parts")? {
            envelope.parts.push(Part::read(&mut r)?);
        }
        for _ in 0..r.count("gone")? {
            envelope.gone.push((GroupId(r.number("group")?), ReplicaId(r.number("replica")?)));
        }
        for _ in 0..r.count("pokes")? {
            let (group, replica) = (GroupId(r.number("group")?), ReplicaId(r.number("replica")?));
            envelope.pokes.push(Poke { group, replica, term: small(&mut r, "term")? });
        }
        for _ in 0..r.count("ceased")? {
            envelope.ceased.push((GroupId(r.number("group")?), small(&mut r, "term")?));
        }
        r.end("end of an envelope")?;
        Ok(envelope)
    }
}

impl From<Short> for DecodeError {
    fn from(Short(what): Short) -> Self {
        DecodeError::Damaged(what)
    }
}

pub(super) fn small(r: &mut Reader, what: &'static str) -> Result<u64, Short> {
    r.number(what).and_then(|number| if number < NUMBER_MAX { Ok(number) } else { Err(Short(what)) })
}
