use super::{
    VERSION_OF_LENT_TIME, VERSION_OF_MANY_KEYS, VERSION_OF_NEGOTIATION, VERSION_OF_REFERENCES,
    VERSION_OF_SESSION_LOCKS, words,
};
use crate::txn::staging::{read_part, write_part};
use crate::txn::{Batch, LockMode, LockWait, Part, RangeId, Span, TxnId};
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use clock::Timestamp;

/// How a read looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// What is seen is as of here, and stays so.
    pub snapshot: Timestamp,
    /// Versions above the snapshot, up to here, are told of: they may have been acknowledged before the transaction began. At or below the
    /// snapshot: none are.
    pub limit: Timestamp,
    /// What is in flight is not waited for: nothing follows from what is seen.
    pub peek: bool,
}

/// Something that was read: a key, or a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The key, or the span's first.
    pub start: Bytes,
    /// The span's end; `None`: one key.
    pub end: Option<Bytes>,
    /// Known unchanged up to here.
    pub since: Timestamp,
}

/// What a transaction gave back of the locks that it held at a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// How often it gave back something, anywhere.
    pub round: u64,
    /// It kept so many at the receiver, the first ones.
    pub kept: u64,
}

impl Returned {
    pub(super) fn write(self, w: &mut Writer<'_>) {
        w.number(self.round);
        w.number(self.kept);
    }
    pub(super) fn read(r: &mut Reader) -> Result<Self, Short> {
        Ok(Returned { round: r.number("round")?, kept: r.number("locks kept")? })
    }
}

/// A lock that a session holds, or believes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its number.
    pub txn: TxnId,
    /// The key.
    pub key: Bytes,
    /// The mode.
    pub mode: LockMode,
}

/// What is asked of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The value of a key.
    Get {
        /// The key.
        key: Bytes,
        /// How.
        look: Look,
    },
    /// The values of many keys of this range, in one answer.
    GetMany {
        /// The keys.
        keys: Vec<Bytes>,
        /// How.
        look: Look,
    },
    /// Whether a key has a value now.
    Present {
        /// The key.
        key: Bytes,
    },
    /// Rows of a span of this range.
    Scan {
        /// The span.
        span: Span,
        /// How.
        look: Look,
        /// From its end.
        reverse: bool,
        /// At most so many.
        rows: usize,
    },
    /// Whether something that was read has changed up to a time. What is not stays so.
    Changed {
        /// What was read.
        seen: Vec<Seen>,
        /// Up to here.
        target: Timestamp,
    },
    /// The newest snapshot at which a span can be read without waiting for anybody. From then on it stays so.
    Settled {
        /// The span, of this range.
        span: Span,
        /// The asker has seen this, or wants nothing older: the answer is below it only where something is in the way.
        least: Timestamp,
    },
    /// What time it is, by the clock of who leads.
    Time,
    /// The advisory lock on a key; and whether the key has a version above a snapshot.
    Lock {
        /// For whom.
        txn: TxnId,
        /// The key.
        key: Bytes,
        /// The mode.
        mode: LockMode,
        /// What to do where it is held.
        wait: LockWait,
        /// The asking transaction's snapshot; `None`: it only holds.
        newer_than: Option<Timestamp>,
        /// What it gave back at the receiver before.
        returned: Returned,
    },
    /// The advisory locks on many keys of this range, in their order, up to the first that would have to be waited for; and what is known of each.
    LockMany {
        /// For whom.
        txn: TxnId,
        /// The keys.
        keys: Vec<Bytes>,
        /// The mode.
        mode: LockMode,
        /// The asking transaction's snapshot; `None`: it only holds.
        newer_than: Option<Timestamp>,
        /// What it gave back at the receiver before.
        returned: Returned,
    },
    /// The lock on a key for a session, until it says that it has it no more, or says nothing.
    Hold {
        /// For whom: a number that is used for this lock only.
        txn: TxnId,
        /// The key.
        key: Bytes,
        /// The mode.
        mode: LockMode,
        /// What to do where it is held.
        wait: LockWait,
    },
    /// Sessions of the asker's hold these.
    Keep {
        /// They.
        held: Vec<Held>,
    },
    /// A part of what a commit or prepare will ask for.
    Stage(Part),
    /// A whole transaction.
    Commit {
        /// It.
        batch: Batch,
        /// Its timestamp lies above this.
        floor: Timestamp,
    },
    /// This range's part of a transaction.
    Prepare {
        /// The part.
        batch: Batch,
        /// All that have one, in order.
        participants: Vec<RangeId>,
        /// Its timestamp lies above this.
        floor: Timestamp,
    },
    /// What became of a transaction's prepare here; if it has not come, it never will.
    Fence {
        /// The transaction.
        txn: TxnId,
        /// Until when its commands may come.
        until: Option<Timestamp>,
    },
    /// What became of a transaction.
    Outcome {
        /// The transaction.
        txn: TxnId,
        /// Its commit timestamp; `None`: aborted.
        commit: Option<Timestamp>,
        /// Until when its commands may come.
        until: Option<Timestamp>,
    },
    /// The range ends at a key, and a new one begins there.
    Split {
        /// The key.
        at: Bytes,
    },
    /// Everybody who took part in these knows what became of them.
    Forget {
        /// The transactions.
        txns: Vec<TxnId>,
    },
}

const GET: u8 = 1;
const PRESENT: u8 = 2;
const SCAN: u8 = 3;
const CHANGED: u8 = 4;
const LOCK: u8 = 5;
const COMMIT: u8 = 6;
const PREPARE: u8 = 7;
const FENCE: u8 = 8;
const OUTCOME: u8 = 9;
const FORGET: u8 = 10;
const SPLIT: u8 = 11;
const STAGE: u8 = 12;
const HOLD: u8 = 13;
const KEEP: u8 = 14;
const SETTLED: u8 = 15;
const TIME: u8 = 16;
const GET_MANY: u8 = 17;
const LOCK_MANY: u8 = 18;

fn write_look(w: &mut Writer<'_>, look: &Look) {
    w.time(look.snapshot);
    w.time(look.limit);
    w.byte(u8::from(look.peek));
}

fn write_keys(w: &mut Writer<'_>, keys: &[Bytes]) {
    w.number(keys.len() as u64);
    keys.iter().for_each(|key| w.bytes(key));
}

fn read_keys(r: &mut Reader) -> Result<Vec<Bytes>, Short> {
    let count = r.count("keys")?;
    (0..count).map(|_| r.bytes("key")).collect()
}

fn read_look(r: &mut Reader) -> Result<Look, Short> {
    Ok(Look { snapshot: r.time("snapshot")?, limit: r.time("limit")?, peek: words::read_flag(r)? })
}

impl Request {
    /// The one key that it is about, if it is about one: it finds its range anew where that has moved.
    pub fn key(&self) -> Option<&Bytes> {
        match self {
            Request::Get { key, .. }
            | Request::Present { key }
            | Request::Lock { key, .. }
            | Request::Hold { key, .. } => Some(key),
            Request::Split { at } => Some(at),
            _ => None,
        }
    }

    /// The lock that it asks for, and for whom.
    pub fn wanted_lock(&self) -> Option<(TxnId, &Bytes, LockMode)> {
        match self {
            Request::Lock { txn, key, mode, .. } | Request::Hold { txn, key, mode, .. } => Some((*txn, key, *mode)),
            _ => None,
        }
    }

    /// The node whose transactions or sessions want, or hold, the locks that it is about.
    pub fn owner_of_locks(&self) -> Option<u32> {
        match self {
            Request::LockMany { txn, .. } => Some(txn.node),
            Request::Keep { held } => held.first().map(|held| held.txn.node),
            other => other.wanted_lock().map(|(txn, ..)| txn.node),
        }
    }

    /// How it looks, if it is a read of the past or the present.
    pub fn look(&self) -> Option<&Look> {
        match self {
            Request::Get { look, .. } | Request::GetMany { look, .. } | Request::Scan { look, .. } => Some(look),
            _ => None,
        }
    }

    /// Where its uncertainty ends; `None`: nothing is uncertain to it.
    fn limit_mut(&mut self) -> Option<&mut Timestamp> {
        match self {
            Request::Get { look, .. } | Request::GetMany { look, .. } | Request::Scan { look, .. }
                if look.limit > look.snapshot =>
            {
                Some(&mut look.limit)
            }
            _ => None,
        }
    }

    /// A read of whoever has moved past all that its receiver has stamped: its uncertainty ends at its snapshot. Where it ended before, if it did so later.
    pub fn clip_limit(&mut self) -> Option<Timestamp> {
        let snapshot = self.look().filter(|look| look.limit > look.snapshot)?.snapshot;
        self.limit_mut().map(|limit| std::mem::replace(limit, snapshot))
    }

    /// Whether it comes from [`Request::clip_limit`]: who has no uncertainty at all says `MIN`.
    pub fn is_clipped(&self) -> bool {
        self.look().is_some_and(|look| look.limit == look.snapshot)
    }

    /// Takes back [`Request::clip_limit`].
    pub fn set_limit(&mut self, limit: Timestamp) {
        if let Request::Get { look, .. } | Request::GetMany { look, .. } | Request::Scan { look, .. } = self {
            look.limit = limit;
        }
    }

    /// The version of the cluster from which on every program can read it.
    pub fn needs_version(&self) -> u16 {
        match self {
            Request::Hold { .. } | Request::Keep { .. } => VERSION_OF_SESSION_LOCKS,
            Request::Settled { .. } => VERSION_OF_NEGOTIATION,
            Request::Time => VERSION_OF_LENT_TIME,
            Request::GetMany { .. } | Request::LockMany { .. } => VERSION_OF_MANY_KEYS,
            Request::Commit { batch, .. } | Request::Prepare { batch, .. } if batch.tells_of_references() => {
                VERSION_OF_REFERENCES
            }
            _ => 1,
        }
    }

    /// The first key that it is about.
    pub fn first_key(&self) -> Option<&Bytes> {
        match self {
            Request::Scan { span, .. } | Request::Settled { span, .. } => Some(&span.start),
            Request::Changed { seen, .. } => seen.first().map(|one| &one.start),
            Request::Keep { held } => held.first().map(|one| &one.key),
            Request::GetMany { keys, .. } | Request::LockMany { keys, .. } => keys.first(),
            other => other.key(),
        }
    }

    pub(super) fn write(&self, w: &mut Writer<'_>) {
        match self {
            Request::Get { key, look } => {
                w.byte(GET);
                w.bytes(key);
                write_look(w, look);
            }
            Request::GetMany { keys, look } => {
                w.byte(GET_MANY);
                write_keys(w, keys);
                write_look(w, look);
            }
            Request::Present { key } => {
                w.byte(PRESENT);
                w.bytes(key);
            }
            Request::Scan { span, look, reverse, rows } => {
                w.byte(SCAN);
                words::write_span(w, span);
                write_look(w, look);
                w.byte(u8::from(*reverse));
                w.number(*rows as u64);
            }
            Request::Changed { seen, target } => {
                w.byte(CHANGED);
                w.time(*target);
                w.number(seen.len() as u64);
                for one in seen {
                    w.bytes(&one.start);
                    words::write_option(w, one.end.as_ref(), |w, end| w.bytes(end));
                    w.time(one.since);
                }
            }
            Request::Settled { span, least } => {
                w.byte(SETTLED);
                words::write_span(w, span);
                w.time(*least);
            }
            Request::Time => w.byte(TIME),
            Request::Lock { txn, key, mode, wait, newer_than, returned } => {
                w.byte(LOCK);
                words::write_txn(w, *txn);
                w.bytes(key);
                w.byte(words::mode_to_byte(*mode));
                w.byte(u8::from(*wait == LockWait::Wait));
                words::write_option(w, newer_than.as_ref(), |w, at| w.time(*at));
                returned.write(w);
            }
            Request::LockMany { txn, keys, mode, newer_than, returned } => {
                w.byte(LOCK_MANY);
                words::write_txn(w, *txn);
                write_keys(w, keys);
                w.byte(words::mode_to_byte(*mode));
                words::write_option(w, newer_than.as_ref(), |w, at| w.time(*at));
                returned.write(w);
            }
            Request::Hold { txn, key, mode, wait } => {
                w.byte(HOLD);
                words::write_txn(w, *txn);
                w.bytes(key);
                w.byte(words::mode_to_byte(*mode));
                w.byte(u8::from(*wait == LockWait::Wait));
            }
            Request::Keep { held } => {
                w.byte(KEEP);
                w.number(held.len() as u64);
                for Held { txn, key, mode } in held {
                    words::write_txn(w, *txn);
                    w.bytes(key);
                    w.byte(words::mode_to_byte(*mode));
                }
            }
            Request::Stage(part) => {
                w.byte(STAGE);
                write_part(w, part);
            }
            Request::Commit { batch, floor } => {
                w.byte(COMMIT);
                w.time(*floor);
                words::write_batch(w, batch);
            }
            Request::Prepare { batch, participants, floor } => {
                w.byte(PREPARE);
                w.time(*floor);
                words::write_ranges(w, participants);
                words::write_batch(w, batch);
            }
            Request::Fence { txn, until } => {
                w.byte(FENCE);
                words::write_txn(w, *txn);
                words::write_option(w, until.as_ref(), |w, at| w.time(*at));
            }
            Request::Outcome { txn, commit, until } => {
                w.byte(OUTCOME);
                words::write_txn(w, *txn);
                words::write_option(w, commit.as_ref(), |w, at| w.time(*at));
                words::write_option(w, until.as_ref(), |w, at| w.time(*at));
            }
            Request::Split { at } => {
                w.byte(SPLIT);
                w.bytes(at);
            }
            Request::Forget { txns } => {
                w.byte(FORGET);
                w.number(txns.len() as u64);
                txns.iter().for_each(|txn| words::write_txn(w, *txn));
            }
        }
    }

    pub(super) fn read(r: &mut Reader) -> Result<Request, Short> {
        let time = |r: &mut Reader| r.time("timestamp");
        Ok(match r.byte("kind of request")? {
            GET => Request::Get { key: r.bytes("key")?, look: read_look(r)? },
            PRESENT => Request::Present { key: r.bytes("key")? },
            SCAN => Request::Scan {
                span: words::read_span(r)?,
                look: read_look(r)?,
                reverse: words::read_flag(r)?,
                rows: usize::try_from(r.number("rows")?).map_err(|_| Short("rows"))?,
            },
            CHANGED => {
                let target = r.time("target")?;
                let count = r.count("things read")?;
                let seen = (0..count).map(|_| {
                    let start = r.bytes("key")?;
                    let end = words::read_option(r, |r| r.bytes("end"))?;
                    Ok(Seen { start, end, since: r.time("since")? })
                });
                Request::Changed { seen: seen.collect::<Result<_, Short>>()?, target }
            }
            SETTLED => Request::Settled { span: words::read_span(r)?, least: time(r)? },
            TIME => Request::Time,
            LOCK => Request::Lock {
                txn: words::read_txn(r)?,
                key: r.bytes("key")?,
                mode: words::mode_of_byte(r.byte("mode")?)?,
                wait: if words::read_flag(r)? { LockWait::Wait } else { LockWait::NoWait },
                newer_than: words::read_option(r, time)?,
                returned: Returned::read(r)?,
            },
            GET_MANY => Request::GetMany { keys: read_keys(r)?, look: read_look(r)? },
            LOCK_MANY => Request::LockMany {
                txn: words::read_txn(r)?,
                keys: read_keys(r)?,
                mode: words::mode_of_byte(r.byte("mode")?)?,
                newer_than: words::read_option(r, time)?,
                returned: Returned::read(r)?,
            },
            HOLD => Request::Hold {
                txn: words::read_txn(r)?,
                key: r.bytes("key")?,
                mode: words::mode_of_byte(r.byte("mode")?)?,
                wait: if words::read_flag(r)? { LockWait::Wait } else { LockWait::NoWait },
            },
            KEEP => {
                let count = r.count("locks")?;
                let held = (0..count).map(|_| {
                    let (txn, key) = (words::read_txn(r)?, r.bytes("key")?);
                    Ok(Held { txn, key, mode: words::mode_of_byte(r.byte("mode")?)? })
                });
                Request::Keep { held: held.collect::<Result<_, Short>>()? }
            }
            STAGE => Request::Stage(read_part(r)?),
            COMMIT => {
                let floor = r.time("floor")?;
                Request::Commit { batch: words::read_batch(r)?, floor }
            }
            PREPARE => {
                let floor = r.time("floor")?;
                let participants = words::read_ranges(r)?;
                Request::Prepare { batch: words::read_batch(r)?, participants, floor }
            }
            FENCE => Request::Fence { txn: words::read_txn(r)?, until: words::read_option(r, time)? },
            OUTCOME => Request::Outcome {
                txn: words::read_txn(r)?,
                commit: words::read_option(r, time)?,
                until: words::read_option(r, time)?,
            },
            SPLIT => Request::Split { at: r.bytes("key")? },
            FORGET => {
                let count = r.count("transactions")?;
                Request::Forget { txns: (0..count).map(|_| words::read_txn(r)).collect::<Result<_, _>>()? }
            }
            _ => return Err(Short("kind of request")),
        })
    }
}
