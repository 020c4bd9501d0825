//! Entries: what stands in a group's log.
//!
//! The library's entry has two byte strings. `data` is the payload, untouched; `context` is ours: what kind of entry it is, its timestamp,
//! and what a change of membership needs. The entry with which a leader begins its term has neither.

use super::error::DecodeError;
use super::ids::{Member, ReplicaId, StoreId};
use super::input::Change;
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use clock::Timestamp;
use raft::eraftpb::{ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2, Entry, EntryType};

const COMMAND: u8 = 1;
const RELEASE: u8 = 2;
const CHANGE: u8 = 3;
const LEAVE: u8 = 4;

/// One entry of a group's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its place; dense.
    pub index: u64,
    /// The term of the leader that made it.
    pub term: u64,
    /// Its timestamp: above those of all entries before it.
    pub at: Option<Timestamp>,
    /// What it is.
    pub body: Body,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A leader begins its term. The only entry without a timestamp.
    Begin,
    /// What was proposed.
    Command(Bytes),
    /// The leader of this term serves and stamps nothing above this entry: it hands over.
    Release,
    /// The membership changes; where voters change, the configuration is joint from here on.
    Change(Vec<Change>),
    /// The joint configuration is left.
    Leave {
        /// All that the leaders under it, and before it, have served lies at or below this.
        served: Timestamp,
    },
}

impl Body {
    /// The context of an entry.
    pub(crate) fn context(&self, at: Timestamp) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        let mut w = Writer(&mut out);
        w.byte(match self {
            Body::Begin => return out,
            Body::Command(_) => COMMAND,
            Body::Release => RELEASE,
            Body::Change(_) => CHANGE,
            Body::Leave { .. } => LEAVE,
        });
        w.time(at);
        match self {
            Body::Change(changes) => {
                w.number(changes.len() as u64);
                for change in changes {
                    let (kind, replica, store) = match change {
                        Change::AddLearner(member) => (1, member.replica, member.store),
                        Change::Promote(replica) => (2, *replica, StoreId(0)),
                        Change::Remove(replica) => (3, *replica, StoreId(0)),
                    };
                    w.byte(kind);
                    w.number(replica.0);
                    w.number(store.0);
                }
            }
            Body::Leave { served } => w.time(*served),
            _ => {}
        }
        out
    }

    /// The library's form of a change; `None` for other entries.
    pub(crate) fn conf_change(&self) -> Option<ConfChangeV2> {
        let mut change = ConfChangeV2::default();
        let Body::Change(changes) = self else {
            return matches!(self, Body::Leave { .. }).then_some(change);
        };
        let singles = changes.iter().map(|c| {
            let mut single = ConfChangeSingle::default();
            let (kind, replica) = match c {
                Change::AddLearner(member) => (ConfChangeType::AddLearnerNode, member.replica),
                Change::Promote(replica) => (ConfChangeType::AddNode, *replica),
                Change::Remove(replica) => (ConfChangeType::RemoveNode, *replica),
            };
            single.set_change_type(kind);
            single.node_id = replica.0;
            single
        });
        change.set_changes(singles.collect::<Vec<_>>().into());
        change.set_transition(match changes.as_slice() {
            // No voter changes: all quorums stay what they are.
            [Change::AddLearner(_)] => ConfChangeTransition::Auto,
            _ => ConfChangeTransition::Explicit,
        });
        Some(change)
    }

    /// Reads a context and a payload.
    fn read(context: &Bytes, data: &Bytes) -> Result<(Option<Timestamp>, Body), Short> {
        if context.is_empty() {
            return Ok((None, Body::Begin));
        }
        let mut r = Reader(context.clone());
        let kind = r.byte("kind of entry")?;
        let at = r.time("timestamp of an entry")?;
        let body = match kind {
            COMMAND => Body::Command(data.clone()),
            RELEASE => Body::Release,
            CHANGE => {
                let mut changes = Vec::new();
                for _ in 0..r.count("changes")? {
                    let kind = r.byte("kind of change")?;
                    let replica = ReplicaId(r.number("replica")?);
                    let store = StoreId(r.number("store")?);
                    changes.push(match kind {
                        1 => Change::AddLearner(Member { replica, store }),
                        2 => Change::Promote(replica),
                        3 => Change::Remove(replica),
                        _ => return Err(Short("kind of change")),
                    });
                }
                Body::Change(changes)
            }
            LEAVE => Body::Leave { served: r.time("served")? },
            _ => return Err(Short("kind of entry")),
        };
        r.end("end of an entry")?;
        Ok((Some(at), body))
    }
}

/// The timestamp of an entry, if it has one; a look at its first bytes.
pub(crate) fn stamp_of(entry: &Entry) -> Option<Timestamp> {
    let raw: [u8; 8] = entry.context.get(1..9)?.try_into().ok()?;
    Some(Timestamp::from_u64(u64::from_le_bytes(raw)))
}

/// The least that a later leader has to start above: the timestamp, and what is said to have been served.
pub(crate) fn floor_of(entry: &Entry) -> Timestamp {
    let at = stamp_of(entry).unwrap_or_default();
    let served = match entry.context.first() {
        Some(&LEAVE) => entry.context.get(9..17).and_then(|raw| raw.try_into().ok()).map(u64::from_le_bytes),
        _ => None,
    };
    at.max(Timestamp::from_u64(served.unwrap_or_default()))
}

/// Whether this is a command.
pub(crate) fn is_command(entry: &Entry) -> bool {
    entry.context.first() == Some(&COMMAND)
}

/// Whether this is the release of its term's leader.
pub(crate) fn is_release(entry: &Entry) -> bool {
    entry.context.first() == Some(&RELEASE)
}

impl LogEntry {
    /// From the library's entry, whose bytes were checked when they came in.
    pub(crate) fn from_raft(entry: &Entry) -> Result<Self, DecodeError> {
        let (at, body) = Body::read(&entry.context, &entry.data).map_err(|Short(what)| DecodeError::Damaged(what))?;
        Ok(LogEntry { index: entry.index, term: entry.term, at, body })
    }
}

/// Writes entries that follow one another.
pub(crate) fn write_entries(w: &mut Writer<'_>, entries: &[Entry]) {
    w.number(entries.len() as u64);
    for entry in entries {
        w.number(entry.term);
        w.bytes(&entry.context);
        // The library's own form of a change is of use to the leader that proposes it only.
        w.bytes(if entry.entry_type == EntryType::EntryNormal { &entry.data } else { &[] });
    }
}

/// Reads entries from the place `first` on. Their terms do not fall, and each can be understood.
pub(crate) fn read_entries(r: &mut Reader, first: u64) -> Result<Vec<Entry>, Short> {
    let count = r.count("entries")?;
    let mut entries = Vec::with_capacity(count);
    let mut least_term = 0;
    for index in first..first.saturating_add(count as u64) {
        let mut entry = Entry { index, term: r.number("term of an entry")?, ..Entry::default() };
        entry.context = r.bytes("context of an entry")?;
        entry.data = r.bytes("payload")?;
        let (_, body) = Body::read(&entry.context, &entry.data)?;
        if matches!(body, Body::Change(_) | Body::Leave { .. }) {
            entry.entry_type = EntryType::EntryConfChangeV2;
        }
        if entry.term < least_term {
            return Err(Short("terms of entries in order"));
        }
        least_term = entry.term;
        entries.push(entry);
    }
    Ok(entries)
}
