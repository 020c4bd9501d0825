use super::words;
use crate::txn::{RangeId, Refusal, Span, TxnId};
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use clock::{Interval, Timestamp};

/// A range, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The range.
    pub range: RangeId,
    /// Its first key.
    pub start: Bytes,
    /// The nodes that replicate it.
    pub nodes: Vec<u32>,
}

/// What it took until a commit's timestamp was past (rule 1), by the clock of whoever waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitWait {
    /// Nanoseconds of it that replication took anyway.
    pub hidden_ns: u64,
    /// Nanoseconds for which the commit was held back after that.
    pub held_ns: u64,
}

impl CommitWait {
    /// The timestamp was past when it was given.
    pub const NONE: CommitWait = CommitWait { hidden_ns: 0, held_ns: 0 };
}

/// What a snapshot sees of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// When it was written, and the value, `None` where it was deleted.
    pub version: Option<(Timestamp, Option<Bytes>)>,
    /// A version that is uncertain.
    pub newer: Option<Timestamp>,
}

/// What is known of a key whose lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockedKey {
    /// The key has a version above the asking transaction's snapshot.
    pub newer: Option<Timestamp>,
    /// It has a value now.
    pub present: bool,
}

/// What a range's door says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This replica does not lead.
    NotLeader {
        /// The node that might.
        hint: Option<u32>,
    },
    /// It leads, and cannot now: it has no lease that reaches so far, or too much to do.
    TryLater,
    /// It is being seen to: the answer waits for another transaction.
    Waiting,
    /// [`super::Request::Get`].
    Value {
        /// What the snapshot sees: when it was written, and the value, `None` where it was deleted.
        version: Option<(Timestamp, Option<Bytes>)>,
        /// A version that is uncertain.
        newer: Option<Timestamp>,
    },
    /// [`super::Request::GetMany`]: of the first keys, in their order. What is not answered may be asked again.
    Values(Vec<Found>),
    /// [`super::Request::Present`].
    Present(bool),
    /// [`super::Request::Scan`].
    Rows {
        /// In the order asked for.
        rows: Vec<(Bytes, Bytes)>,
        /// What remains to be asked for.
        rest: Option<Span>,
        /// An uncertain version, and then no rows.
        newer: Option<Timestamp>,
    },
    /// [`super::Request::Changed`]: what, and when.
    Changed(Option<(Bytes, Timestamp)>),
    /// [`super::Request::Settled`]: up to here.
    Settled(Timestamp),
    /// [`super::Request::Time`]: true time lies in this; `None`: the clock of who leads is in doubt.
    Time(Option<Interval>),
    /// The lock is held.
    Locked {
        /// It was queued for.
        waited: bool,
        /// The key has a version above the asking transaction's snapshot.
        newer: Option<Timestamp>,
        /// So many does the transaction hold at the answering node now.
        held: u64,
    },
    /// [`super::Request::LockMany`]: the locks on the first keys are held, without a wait.
    LockedMany {
        /// Of these, in their order.
        keys: Vec<LockedKey>,
        /// So many does the transaction hold at the answering node now.
        held: u64,
    },
    /// [`super::Request::Keep`]: all is held, but for these.
    Kept {
        /// They.
        lost: Vec<TxnId>,
    },
    /// The lock is held by another.
    Busy,
    /// The asking transaction is the victim of a deadlock: the circle, with the keys that each waits for.
    Deadlock(Vec<(TxnId, Bytes)>),
    /// Prepared, at this timestamp.
    Prepared(Timestamp),
    /// Committed, at this timestamp.
    Committed(Timestamp),
    /// Committed, at this timestamp, which was not past when it was given: what that took.
    CommittedLate(Timestamp, CommitWait),
    /// Nothing was done, and will not be by any copy.
    Refused(Refusal),
    /// It was asked so late that nobody remembers.
    Forgotten,
    /// It is done, or was before.
    Done,
    /// What is asked for does not lie in this range, or not all of it: where it lies, as far as is known here.
    Moved(Vec<Place>),
    /// The snapshot lies below what is kept.
    Collected {
        /// Nothing below this is kept.
        oldest: Timestamp,
        /// Of what.
        key: Option<Bytes>,
    },
}

/// From this version of the cluster on a commit's answer says what time took of it.
pub const VERSION_OF_COMMIT_WAITS: u16 = 3;

const NOT_LEADER: u8 = 1;
const TRY_LATER: u8 = 2;
const WAITING: u8 = 3;
const VALUE: u8 = 4;
const PRESENT: u8 = 5;
const ROWS: u8 = 6;
const CHANGED: u8 = 7;
const LOCKED: u8 = 8;
const BUSY: u8 = 9;
const DEADLOCK: u8 = 10;
const PREPARED: u8 = 11;
const COMMITTED: u8 = 12;
const REFUSED: u8 = 13;
const FORGOTTEN: u8 = 14;
const DONE: u8 = 15;
const COLLECTED: u8 = 16;
const MOVED: u8 = 17;
const KEPT: u8 = 18;
const COMMITTED_LATE: u8 = 19;
const SETTLED: u8 = 20;
const TIME: u8 = 21;
const VALUES: u8 = 22;
const LOCKED_MANY: u8 = 23;

fn write_found(w: &mut Writer<'_>, version: Option<&(Timestamp, Option<Bytes>)>, newer: Option<&Timestamp>) {
    words::write_option(w, version, |w, (at, value)| {
        w.time(*at);
        words::write_option(w, value.as_ref(), |w, value| w.bytes(value));
    });
    words::write_option(w, newer, |w, at| w.time(*at));
}

fn read_found(r: &mut Reader) -> Result<Found, Short> {
    let version = words::read_option(r, |r| {
        let at = r.time("version")?;
        Ok((at, words::read_option(r, |r| r.bytes("value"))?))
    })?;
    Ok(Found { version, newer: words::read_option(r, |r| r.time("timestamp"))? })
}

impl Answer {
    /// The version of the cluster from which on every program can read it.
    pub fn needs_version(&self) -> u16 {
        match self {
            Answer::CommittedLate(..) => VERSION_OF_COMMIT_WAITS,
            Answer::Settled(_) => super::VERSION_OF_NEGOTIATION,
            Answer::Time(_) => super::VERSION_OF_LENT_TIME,
            Answer::Values(_) | Answer::LockedMany { .. } => super::VERSION_OF_MANY_KEYS,
            _ => 1,
        }
    }

    pub(super) fn write(&self, w: &mut Writer<'_>) {
        match self {
            Answer::NotLeader { hint } => {
                w.byte(NOT_LEADER);
                w.number(u64::from(hint.unwrap_or(0)));
            }
            Answer::TryLater => w.byte(TRY_LATER),
            Answer::Waiting => w.byte(WAITING),
            Answer::Value { version, newer } => {
                w.byte(VALUE);
                write_found(w, version.as_ref(), newer.as_ref());
            }
            Answer::Values(values) => {
                w.byte(VALUES);
                w.number(values.len() as u64);
                values.iter().for_each(|found| write_found(w, found.version.as_ref(), found.newer.as_ref()));
            }
            Answer::Present(is) => {
                w.byte(PRESENT);
                w.byte(u8::from(*is));
            }
            Answer::Rows { rows, rest, newer } => {
                w.byte(ROWS);
                w.number(rows.len() as u64);
                for (key, value) in rows {
                    w.bytes(key);
                    w.bytes(value);
                }
                words::write_option(w, rest.as_ref(), words::write_span);
                words::write_option(w, newer.as_ref(), |w, at| w.time(*at));
            }
            Answer::Changed(changed) => {
                w.byte(CHANGED);
                words::write_option(w, changed.as_ref(), |w, (key, at)| {
                    w.bytes(key);
                    w.time(*at);
                });
            }
            Answer::Settled(at) => {
                w.byte(SETTLED);
                w.time(*at);
            }
            Answer::Time(interval) => {
                w.byte(TIME);
                words::write_interval(w, interval.as_ref());
            }
            Answer::Locked { waited, newer, held } => {
                w.byte(LOCKED);
                w.byte(u8::from(*waited));
                words::write_option(w, newer.as_ref(), |w, at| w.time(*at));
                w.number(*held);
            }
            Answer::LockedMany { keys, held } => {
                w.byte(LOCKED_MANY);
                w.number(keys.len() as u64);
                for key in keys {
                    words::write_option(w, key.newer.as_ref(), |w, at| w.time(*at));
                    w.byte(u8::from(key.present));
                }
                w.number(*held);
            }
            Answer::Kept { lost } => {
                w.byte(KEPT);
                w.number(lost.len() as u64);
                lost.iter().for_each(|txn| words::write_txn(w, *txn));
            }
            Answer::Busy => w.byte(BUSY),
            Answer::Deadlock(circle) => {
                w.byte(DEADLOCK);
                words::write_waits(w, circle);
            }
            Answer::Prepared(at) => {
                w.byte(PREPARED);
                w.time(*at);
            }
            Answer::Committed(at) => {
                w.byte(COMMITTED);
                w.time(*at);
            }
            Answer::CommittedLate(at, wait) => {
                w.byte(COMMITTED_LATE);
                w.time(*at);
                w.number(wait.hidden_ns);
                w.number(wait.held_ns);
            }
            Answer::Refused(refusal) => {
                w.byte(REFUSED);
                words::write_refusal(w, refusal);
            }
            Answer::Forgotten => w.byte(FORGOTTEN),
            Answer::Done => w.byte(DONE),
            Answer::Moved(places) => {
                w.byte(MOVED);
                w.number(places.len() as u64);
                for place in places {
                    w.number(place.range.0);
                    w.bytes(&place.start);
                    w.number(place.nodes.len() as u64);
                    place.nodes.iter().for_each(|node| w.number(u64::from(*node)));
                }
            }
            Answer::Collected { oldest, key } => {
                w.byte(COLLECTED);
                w.time(*oldest);
                words::write_option(w, key.as_ref(), |w, key| w.bytes(key));
            }
        }
    }

    pub(super) fn read(r: &mut Reader) -> Result<Answer, Short> {
        let time = |r: &mut Reader| r.time("timestamp");
        Ok(match r.byte("kind of answer")? {
            NOT_LEADER => {
                let hint = u32::try_from(r.number("hint")?).map_err(|_| Short("hint"))?;
                Answer::NotLeader { hint: (hint != 0).then_some(hint) }
            }
            TRY_LATER => Answer::TryLater,
            WAITING => Answer::Waiting,
            VALUE => {
                let Found { version, newer } = read_found(r)?;
                Answer::Value { version, newer }
            }
            VALUES => {
                let count = r.count("values")?;
                Answer::Values((0..count).map(|_| read_found(r)).collect::<Result<_, _>>()?)
            }
            PRESENT => Answer::Present(words::read_flag(r)?),
            ROWS => {
                let count = r.count("rows")?;
                let rows = (0..count).map(|_| Ok((r.bytes("key")?, r.bytes("value")?)));
                let rows = rows.collect::<Result<_, Short>>()?;
                let rest = words::read_option(r, words::read_span)?;
                Answer::Rows { rows, rest, newer: words::read_option(r, time)? }
            }
            CHANGED => Answer::Changed(words::read_option(r, |r| Ok((r.bytes("key")?, r.time("version")?)))?),
            SETTLED => Answer::Settled(r.time("settled")?),
            TIME => Answer::Time(words::read_interval(r)?),
            LOCKED => {
                let (waited, newer) = (words::read_flag(r)?, words::read_option(r, time)?);
                Answer::Locked { waited, newer, held: r.number("locks held")? }
            }
            LOCKED_MANY => {
                let count = r.count("locks")?;
                let key = |_| Ok(LockedKey { newer: words::read_option(r, time)?, present: words::read_flag(r)? });
                let keys = (0..count).map(key).collect::<Result<_, Short>>()?;
                Answer::LockedMany { keys, held: r.number("locks held")? }
            }
            KEPT => {
                let count = r.count("locks")?;
                Answer::Kept { lost: (0..count).map(|_| words::read_txn(r)).collect::<Result<_, _>>()? }
            }
            BUSY => Answer::Busy,
            DEADLOCK => Answer::Deadlock(words::read_waits(r)?),
            PREPARED => Answer::Prepared(r.time("prepare")?),
            COMMITTED => Answer::Committed(r.time("commit")?),
            COMMITTED_LATE => {
                let at = r.time("commit")?;
                let (hidden_ns, held_ns) = (r.number("hidden wait")?, r.number("wait")?);
                Answer::CommittedLate(at, CommitWait { hidden_ns, held_ns })
            }
            REFUSED => Answer::Refused(words::read_refusal(r)?),
            FORGOTTEN => Answer::Forgotten,
            DONE => Answer::Done,
            MOVED => {
                let mut places = Vec::new();
                for _ in 0..r.count("places")? {
                    let (range, start) = (RangeId(r.number("range")?), r.bytes("start")?);
                    let count = r.count("nodes")?;
                    let node = |_| u32::try_from(r.number("node")?).map_err(|_| Short("node"));
                    places.push(Place { range, start, nodes: (0..count).map(node).collect::<Result<_, _>>()? });
                }
                Answer::Moved(places)
            }
            COLLECTED => {
                let oldest = r.time("threshold")?;
                Answer::Collected { oldest, key: words::read_option(r, |r| r.bytes("key"))? }
            }
            _ => return Err(Short("kind of answer")),
        })
    }
}
