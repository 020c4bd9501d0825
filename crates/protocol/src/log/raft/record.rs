//! The records of a store's one log, as bytes. Each says its version, and whose it is.

use super::entry::{read_entries, write_entries};
use super::error::DecodeError;
use super::ids::{GroupId, ReplicaId, StoreId};
use super::membership::Conf;
use super::promise::Pair;
use super::support::Support;
use super::tail::{Cut, Tail};
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use raft::eraftpb::{Entry, HardState};

/// What an entry takes beside its data, about, bytes.
const ENTRY_BYTES: usize = 48;
const VERSION: u8 = 1;
const APPEND: u8 = 1;
const IMAGE: u8 = 2;
const CONF: u8 = 3;
const CUT: u8 = 4;
const SUPPORT: u8 = 5;
const INSTALLING: u8 = 6;
const REMOVED: u8 = 7;
const PAIR: u8 = 8;

/// What a snapshot is: goes before its bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Form {
    /// The place, term and floor that it stands for.
    pub cut: Cut,
    pub conf: Conf,
}

impl Form {
    pub fn write(&self, w: &mut Writer<'_>) {
        write_cut(w, &self.cut);
        self.conf.write(w);
    }
    pub fn read(r: &mut Reader) -> Result<Form, Short> {
        Ok(Form { cut: read_cut(r)?, conf: Conf::read(r)? })
    }
}

/// One record, read.
#[derive(Debug)]
pub(crate) enum Log {
    /// Term, vote and commit; entries from a place on.
    Append(HardState, Vec<Entry>),
    /// All there is of a replica's log.
    Image(Box<Tail>, Support),
    Conf(Conf),
    Cut(u64),
    Support(Support),
    /// A snapshot is here and about to be installed.
    Installing(Form),
    /// The replica is gone: its number and all below are used up.
    Removed,
}

/// Whose it is.
#[derive(Debug)]
pub(crate) enum Record {
    Replica(GroupId, ReplicaId, Log),
    Pair(StoreId, Pair),
}

fn write_cut(w: &mut Writer<'_>, cut: &Cut) {
    w.number(cut.index);
    w.number(cut.term);
    w.time(cut.floor);
}

fn read_cut(r: &mut Reader) -> Result<Cut, Short> {
    Ok(Cut { index: r.number("place")?, term: r.number("term")?, floor: r.time("floor")? })
}

fn write_hard(w: &mut Writer<'_>, hard: &HardState) {
    [hard.term, hard.vote, hard.commit].into_iter().for_each(|number| w.number(number));
}

fn read_hard(r: &mut Reader) -> Result<HardState, Short> {
    let (term, vote, commit) = (r.number("term")?, r.number("vote")?, r.number("commit")?);
    Ok(HardState { term, vote, commit, ..HardState::default() })
}

fn record(group: GroupId, replica: ReplicaId, kind: u8, body: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = Writer(&mut out);
    w.byte(VERSION);
    w.byte(kind);
    w.number(group.0);
    w.number(replica.0);
    body(&mut w);
    out
}

pub(crate) fn append(group: GroupId, replica: ReplicaId, hard: &HardState, entries: &[Entry]) -> Vec<u8> {
    record(group, replica, APPEND, |w| {
        write_hard(w, hard);
        w.number(entries.first().map_or(0, |entry| entry.index));
        write_entries(w, entries);
    })
}

pub(crate) fn image(group: GroupId, replica: ReplicaId, tail: &Tail, support: &Support) -> Vec<u8> {
    record(group, replica, IMAGE, |w| {
        write_hard(w, &tail.hard);
        write_cut(w, &tail.cut);
        tail.conf.write(w);
        support.write(w);
        let entries: Vec<Entry> = tail.entries.iter().cloned().collect();
        // Growing it would copy it several times over.
        w.0.reserve(entries.iter().map(|entry| entry.data.len() + ENTRY_BYTES).sum());
        write_entries(w, &entries);
    })
}

pub(crate) fn conf(group: GroupId, replica: ReplicaId, conf: &Conf) -> Vec<u8> {
    record(group, replica, CONF, |w| conf.write(w))
}

pub(crate) fn cut(group: GroupId, replica: ReplicaId, index: u64) -> Vec<u8> {
    record(group, replica, CUT, |w| w.number(index))
}

pub(crate) fn support(group: GroupId, replica: ReplicaId, support: &Support) -> Vec<u8> {
    record(group, replica, SUPPORT, |w| support.write(w))
}

pub(crate) fn installing(group: GroupId, replica: ReplicaId, form: &Form) -> Vec<u8> {
    record(group, replica, INSTALLING, |w| form.write(w))
}

pub(crate) fn removed(group: GroupId, replica: ReplicaId) -> Vec<u8> {
    record(group, replica, REMOVED, |_| {})
}

pub(crate) fn pair(store: StoreId, pair: &Pair) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = Writer(&mut out);
    w.byte(VERSION);
    w.byte(PAIR);
    w.number(store.0);
    w.number(pair.epoch);
    w.time(pair.until);
    w.time(pair.ended);
    out
}

/// Reads one. Trusts nothing.
pub(crate) fn read(bytes: &Bytes) -> Result<Record, DecodeError> {
    let mut r = Reader(bytes.clone());
    let version = r.byte("version")?;
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    let kind = r.byte("kind of record")?;
    if kind == PAIR {
        let store = StoreId(r.number("store")?);
        let pair = Pair { epoch: r.number("epoch")?, until: r.time("promise")?, ended: r.time("earlier promises")? };
        r.end("end of a record")?;
        return Ok(Record::Pair(store, pair));
    }
    let (group, replica) = (GroupId(r.number("group")?), ReplicaId(r.number("replica")?));
    let log = match kind {
        APPEND => {
            let hard = read_hard(&mut r)?;
            let first = r.number("first place")?;
            Log::Append(hard, read_entries(&mut r, first)?)
        }
        IMAGE => {
            let (hard, cut, conf) = (read_hard(&mut r)?, read_cut(&mut r)?, Conf::read(&mut r)?);
            let support = Support::read(&mut r)?;
            let entries = read_entries(&mut r, cut.index.saturating_add(1))?.into();
            Log::Image(Box::new(Tail { cut, entries, hard, conf, applied: cut.index, ..Tail::default() }), support)
        }
        CONF => Log::Conf(Conf::read(&mut r)?),
        CUT => Log::Cut(r.number("place")?),
        SUPPORT => Log::Support(Support::read(&mut r)?),
        INSTALLING => Log::Installing(Form::read(&mut r)?),
        REMOVED => Log::Removed,
        _ => return Err(DecodeError::Damaged("kind of record")),
    };
    r.end("end of a record")?;
    Ok(Record::Replica(group, replica, log))
}
