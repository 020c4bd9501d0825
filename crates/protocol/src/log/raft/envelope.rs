//! What travels between two stores: one envelope per step, for all the groups that they share.

use super::closed::Word;
use super::entry::{read_entries, write_entries};
use super::error::DecodeError;
use super::ids::{GroupId, ReplicaId, StoreId};
use super::options::MEMBERS_MAX;
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use clock::Timestamp;
use raft::eraftpb::{Message, MessageType};

const VERSION: u8 = 1;
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

/// What a voter may have supported in a group: goes with its vote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Of terms of which nothing more is known.
    pub past: Timestamp,
    /// Of leaders by their terms: a release in the winner's log cuts its term's end.
    pub terms: Vec<(u64, Timestamp)>,
}

impl Ends {
    /// With what another vote carries.
    pub fn merge(&mut self, other: &Ends) {
        self.past = self.past.max(other.past);
        for (term, end) in &other.terms {
            match self.terms.iter_mut().find(|(known, _)| known == term) {
                Some((_, known)) => *known = (*known).max(*end),
                None => self.terms.push((*term, *end)),
            }
        }
        if self.terms.len() > MEMBERS_MAX {
            // More leaders than a group has members: which term it was is not worth knowing.
            self.past = self.terms.drain(..).map(|(_, end)| end).max().unwrap_or_default().max(self.past);
        }
    }
}

/// A message of one replica to another, and what rides on it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Letter {
    pub group: GroupId,
    pub message: Message,
    /// From a leader: the epoch under which it knows the receiver to have accepted it in this term, or 0.
    pub accepted: u64,
    /// From a leader: nothing at or below this is stamped any more; holds once the log is applied up to `closed_index`.
    pub closed: Timestamp,
    pub closed_index: u64,
    /// With a vote.
    pub ends: Option<Ends>,
    /// From a leader: the group goes to sleep at `closed_index`.
    pub sleep: bool,
    /// With it: the last word of the leader's store.
    pub word: u64,
}

impl Letter {
    pub fn new(group: GroupId, message: Message) -> Self {
        Letter {
            group,
            message,
            accepted: 0,
            closed: Timestamp::MIN,
            closed_index: 0,
            ends: None,
            sleep: false,
            word: 0,
        }
    }
}

/// A step of a snapshot's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// From the leader: there is a snapshot for you. Sent again until it is answered.
    Offer { group: GroupId, to: ReplicaId, index: u64, bytes: u64, meta: Bytes },
    /// From the receiver: it has all before `offset`. Asks for what follows, and resumes after a cut.
    Want { group: GroupId, index: u64, offset: u64 },
    /// From the leader: bytes from `offset` on.
    Chunk { group: GroupId, index: u64, offset: u64, bytes: Bytes },
    /// From the receiver: no place now, or no use for it.
    Refuse { group: GroupId, index: u64 },
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

    /// Takes out what is bulky and can wait (parts of snapshots), so that it may travel apart: heartbeats overtake it. The order of
    /// the two does not matter.
    pub fn take_bulk(&mut self) -> Option<Envelope> {
        let bulky = |part: &mut Part| matches!(part, Part::Chunk { .. });
        let parts: Vec<Part> = self.parts.extract_if(.., bulky).collect();
        (!parts.is_empty()).then(|| Envelope { parts, ..Envelope::new(self.from, self.to) })
    }

    /// Whether there is nothing in it (any more).
    pub fn is_empty(&self) -> bool {
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

fn small(r: &mut Reader, what: &'static str) -> Result<u64, Short> {
    r.number(what).and_then(|number| if number < NUMBER_MAX { Ok(number) } else { Err(Short(what)) })
}

/// The library's messages that travel, and nothing else.
const KINDS: [MessageType; 9] = [
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
    MessageType::MsgTimeoutNow,
];
/// The library marks votes of a transfer by this context.
pub(crate) const TRANSFER: &[u8] = b"CampaignTransfer";

impl Letter {
    fn write(&self, w: &mut Writer<'_>) {
        let m = &self.message;
        let kind = KINDS.iter().position(|kind| *kind == m.msg_type).unwrap_or(KINDS.len());
        w.byte(kind as u8);
        w.byte(
            u8::from(m.reject)
                | u8::from(self.sleep) << 1
                | u8::from(m.context[..] == *TRANSFER) << 2
                | u8::from(self.ends.is_some()) << 3,
        );
        for number in [
            self.group.0,
            m.to,
            m.from,
            m.term,
            m.log_term,
            m.index,
            m.commit,
            m.commit_term,
            m.reject_hint,
            self.accepted,
            self.closed_index,
            self.word,
        ] {
            w.number(number);
        }
        w.time(self.closed);
        write_entries(w, &m.entries);
        if let Some(ends) = &self.ends {
            w.time(ends.past);
            w.number(ends.terms.len() as u64);
            for (term, end) in &ends.terms {
                w.number(*term);
                w.time(*end);
            }
        }
    }

    fn read(r: &mut Reader) -> Result<Letter, Short> {
        let mut m = Message::default();
        let kind = KINDS.get(usize::from(r.byte("kind of message")?)).ok_or(Short("kind of message"))?;
        m.set_msg_type(*kind);
        let flags = r.byte("flags of a message")?;
        m.reject = flags & 1 != 0;
        let group = GroupId(r.number("group")?);
        m.to = small(r, "receiver")?;
        m.from = small(r, "sender")?;
        m.term = small(r, "term")?;
        m.log_term = small(r, "term of the log")?;
        m.index = small(r, "place")?;
        m.commit = small(r, "commit")?;
        m.commit_term = small(r, "term of the commit")?;
        m.reject_hint = small(r, "hint")?;
        if flags & 4 != 0 {
            m.context = Bytes::from_static(TRANSFER);
        }
        let accepted = small(r, "accepted epoch")?;
        let closed_index = small(r, "closed place")?;
        let word = small(r, "word")?;
        let closed = r.time("closed")?;
        m.set_entries(read_entries(r, m.index + 1)?.into());
        let ends = match flags & 8 != 0 {
            false => None,
            true => {
                let mut ends = Ends { past: r.time("end of promises")?, terms: Vec::new() };
                for _ in 0..r.count("ends of promises")? {
                    ends.terms.push((r.number("term")?, r.time("end of a promise")?));
                }
                Some(ends)
            }
        };
        Ok(Letter { group, message: m, accepted, closed, closed_index, ends, sleep: flags & 2 != 0, word })
    }
}

impl Part {
    fn write(&self, w: &mut Writer<'_>) {
        match self {
            Part::Offer { group, to, index, bytes, meta } => {
                w.byte(1);
                [group.0, to.0, *index, *bytes].into_iter().for_each(|number| w.number(number));
                w.bytes(meta);
            }
            Part::Want { group, index, offset } => {
                w.byte(2);
                [group.0, *index, *offset].into_iter().for_each(|number| w.number(number));
            }
            Part::Chunk { group, index, offset, bytes } => {
                w.byte(3);
                [group.0, *index, *offset].into_iter().for_each(|number| w.number(number));
                w.bytes(bytes);
            }
            Part::Refuse { group, index } => {
                w.byte(4);
                [group.0, *index].into_iter().for_each(|number| w.number(number));
            }
        }
    }

    fn read(r: &mut Reader) -> Result<Part, Short> {
        let kind = r.byte("kind of part")?;
        let group = GroupId(r.number("group")?);
        let mut number = || small(r, "part of a snapshot");
        Ok(match kind {
            1 => {
                let (to, index, bytes) = (ReplicaId(number()?), number()?, number()?);
                Part::Offer { group, to, index, bytes, meta: r.bytes("snapshot's form")? }
            }
            2 => Part::Want { group, index: number()?, offset: number()? },
            3 => Part::Chunk { group, index: number()?, offset: number()?, bytes: r.bytes("chunk")? },
            4 => Part::Refuse { group, index: number()? },
            _ => return Err(Short("kind of part")),
        })
    }
}
