//! A message of one replica to another.

use super::entry::{read_entries, write_entries};
use super::envelope::small;
use super::ids::GroupId;
use super::options::MEMBERS_MAX;
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use clock::Timestamp;
use raft::eraftpb::{Entry, Message, MessageType};

/// What a letter takes without entries, about, and an entry without its payload.
const LETTER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 16;

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

    /// Bytes as it travels, about.
    pub fn bytes(&self) -> usize {
        LETTER_BYTES + self.message.entries.iter().map(entry_bytes).sum::<usize>()
    }

    /// In letters that each have at most so many bytes, or one entry: an append of many entries is the same as one of the first of them, and then one of the others.
    pub fn pieces(mut self, bytes_max: usize) -> Vec<Letter> {
        if self.bytes() <= bytes_max || self.message.msg_type != MessageType::MsgAppend {
            return vec![self];
        }
        let entries = self.message.take_entries();
        let (head, mut bytes) = (self, LETTER_BYTES);
        let mut pieces = vec![head.clone()];
        for entry in entries {
            bytes += entry_bytes(&entry);
            let full = pieces.last().and_then(|last| last.message.entries.last()).filter(|_| bytes > bytes_max);
            if let Some(before) = full {
                let mut next = head.clone();
                (next.message.index, next.message.log_term) = (before.index, before.term);
                bytes = LETTER_BYTES + entry_bytes(&entry);
                pieces.push(next);
            }
            if let Some(last) = pieces.last_mut() {
                last.message.entries.push(entry);
            }
        }
        pieces
    }
}

fn entry_bytes(entry: &Entry) -> usize {
    ENTRY_BYTES + entry.data.len() + entry.context.len()
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
    pub(super) fn write(&self, w: &mut Writer<'_>) {
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

    pub(super) fn read(r: &mut Reader) -> Result<Letter, Short> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn append(lens: &[usize]) -> Letter {
        let mut message =
            Message { msg_type: MessageType::MsgAppend, term: 7, log_term: 3, index: 10, ..Message::default() };
        for (n, len) in lens.iter().enumerate() {
            let entry =
                Entry { index: 11 + n as u64, term: 4 + n as u64 / 2, data: vec![1; *len].into(), ..Entry::default() };
            message.entries.push(entry);
        }
        Letter { closed_index: 9, ..Letter::new(GroupId(1), message) }
    }

    #[test]
    fn pieces_follow_each_other() {
        let whole = append(&[400, 10, 10, 900, 2000, 1, 1]);
        let pieces = whole.clone().pieces(1000);
        assert_eq!(pieces.iter().map(|piece| piece.message.entries.len()).collect::<Vec<_>>(), [3, 1, 1, 2]);
        let (mut index, mut term) = (10, 3);
        for piece in &pieces {
            assert_eq!((piece.message.index, piece.message.log_term, piece.closed_index), (index, term, 9));
            assert!(piece.bytes() <= 1000 || piece.message.entries.len() == 1);
            let last = piece.message.entries.last().expect("an entry");
            (index, term) = (last.index, last.term);
        }
        let joined = pieces.iter().flat_map(|piece| piece.message.entries.iter().cloned());
        assert!(joined.eq(whole.message.entries.iter().cloned()));
        assert_eq!(append(&[400, 10]).pieces(1000), [append(&[400, 10])]);
        assert_eq!(append(&[]).pieces(1), [append(&[])]);
    }
}
