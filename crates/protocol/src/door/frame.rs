//! What travels: one frame per message.
//!
//! ```text
//! version u8 | cluster u64 | from | to | flags u8 | [earliest u64 | latest u64] | accuses | [reached] | kind u8 | body
//! ```

use super::{Answer, Request, Returned, VERSION_OF_NEAR_READS, VERSION_OF_SESSION_LOCKS, words};
use crate::log::raft::{self, Envelope};
use crate::txn::{RangeId, TxnId};
use crate::wire::{Reader, Short, Writer};
use bytes::Bytes;
use clock::{Interval, Timestamp};

const VERSION: u8 = 1;

const ENVELOPE: u8 = 1;
const REQUEST: u8 = 2;
const ANSWER: u8 = 3;
const LOCKS: u8 = 4;
const UNLOCK: u8 = 5;
const PROBE: u8 = 6;
const VICTIM: u8 = 7;
const OLDEST: u8 = 8;
const RELAY: u8 = 9;
const FORWARD: u8 = 10;
const NEAR: u8 = 11;

/// What a frame says of its sender's clock, and of its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its interval when the frame was made, if it could be trusted.
    pub interval: Option<Interval>,
    /// It has proof against the receiver's bound: by so much, nanoseconds.
    pub accuses_ns: u64,
    /// Records of its store's log up to this one are durable by the time that the frame leaves; 0: it does not say. From [`VERSION_OF_REACHES`] on.
    pub reached: u64,
}

/// In place of whether there is an interval: this is added where the frame says how far the log reaches.
const REACHED: u8 = 2;

/// What a frame carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Of the replicated log.
    Envelope(Envelope),
    /// A request for the leader of a range.
    Request {
        /// Its number, of the sender's.
        id: u64,
        /// The range.
        range: RangeId,
        /// What is asked.
        request: Request,
    },
    /// A request for the leader of a range whom the sender does not hear: the receiver asks in its place, and passes on the answer.
    Relay {
        /// Its number, of the sender's.
        id: u64,
        /// The range.
        range: RangeId,
        /// What is asked.
        request: Request,
    },
    /// A read of the past for the replica at the receiver, whether it leads or not.
    Near {
        /// Its number, of the sender's.
        id: u64,
        /// The range.
        range: RangeId,
        /// What is asked.
        request: Request,
    },
    /// What a request got.
    Answer {
        /// The request's number.
        id: u64,
        /// The answer.
        answer: Answer,
    },
    /// These transactions of the sender's live, and hold locks at the receiver.
    Locks {
        /// They.
        txns: Vec<TxnId>,
    },
    /// A transaction of the sender's gives back its locks.
    Unlock {
        /// It.
        txn: TxnId,
        /// Some of them; `None`: all, it has ended.
        returned: Option<Returned>,
    },
    /// The oldest snapshot that a transaction of the sender's has open.
    Oldest {
        /// It.
        snapshot: Timestamp,
    },
    /// Word about locks between two nodes that may not hear each other: whoever gets it and is not meant passes it on.
    Forward {
        /// Who says it.
        from: u32,
        /// To whom.
        to: u32,
        /// [`Body::Locks`], [`Body::Unlock`], [`Body::Probe`] or [`Body::Victim`].
        word: Box<Body>,
    },
    /// Who is in the way of whom: a search for deadlocks.
    Probe {
        /// Each waits for the next one, the last for the one that the probe is about; with the keys that they wait for.
        path: Vec<(TxnId, Bytes)>,
        /// Whoever is in the way of the last.
        about: TxnId,
    },
    /// A transaction of the receiver's is the victim of a deadlock.
    Victim {
        /// It.
        txn: TxnId,
        /// The circle.
        circle: Vec<(TxnId, Bytes)>,
    },
}

/// A message between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The cluster's number.
    pub cluster: u64,
    /// The sender's number.
    pub from: u32,
    /// The receiver's.
    pub to: u32,
    /// The sender's clock.
    pub claim: Claim,
    /// What it carries.
    pub body: Body,
}

/// A frame that is none. Drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Written by a version that this one does not know.
    #[error("a message of version {0}, which this node does not know: upgrade it")]
    Version(u8),
    /// Damaged or foreign.
    #[error("a message is damaged at its {0}")]
    Damaged(&'static str),
}

impl From<Short> for FrameError {
    fn from(Short(what): Short) -> Self {
        FrameError::Damaged(what)
    }
}

fn node(r: &mut Reader) -> Result<u32, Short> {
    u32::try_from(r.number("node")?).map_err(|_| Short("node"))
}

impl Frame {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let w = &mut Writer(&mut out);
        w.byte(VERSION);
        w.fixed(self.cluster);
        w.number(u64::from(self.from));
        w.number(u64::from(self.to));
        let Claim { interval, accuses_ns, reached } = self.claim;
        w.byte(u8::from(interval.is_some()) | if reached > 0 { REACHED } else { 0 });
        if let Some(interval) = &interval {
            words::write_bounds(w, interval);
        }
        w.number(accuses_ns);
        if reached > 0 {
            w.number(reached);
        }
        self.body.write(w);
        out
    }

    /// From bytes. Trusts nothing.
    ///
    /// # Errors
    /// The version is another, or the bytes are damaged.
    pub fn decode(bytes: &Bytes) -> Result<Frame, FrameError> {
        let r = &mut Reader(bytes.clone());
        let version = r.byte("version")?;
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let cluster = r.fixed("cluster")?;
        let (from, to) = (node(r)?, node(r)?);
        let flags = r.byte("flags")?;
        if flags > 1 | REACHED {
            return Err(FrameError::Damaged("flags"));
        }
        let interval = if flags & 1 > 0 { Some(words::read_bounds(r)?) } else { None };
        let accuses_ns = r.number("accusation")?;
        let reached = if flags & REACHED > 0 { r.number("reached")? } else { 0 };
        let claim = Claim { interval, accuses_ns, reached };
        let body = Body::read(r)?;
        r.end("end")?;
        Ok(Frame { cluster, from, to, claim, body })
    }
}

impl Body {
    /// Whether it is word about locks: nobody answers it, and it may come late, twice, or by way of a third.
    pub fn is_word(&self) -> bool {
        matches!(self, Body::Locks { .. } | Body::Unlock { .. } | Body::Probe { .. } | Body::Victim { .. })
    }

    /// The version of the cluster from which on every program can read it: it is not sent before that is in force. (An answer has the form that who
    /// asked knows.)
    pub fn needs_version(&self) -> u16 {
        match self {
            Body::Request { request, .. } | Body::Relay { request, .. } => request.needs_version(),
            Body::Near { request, .. } => request.needs_version().max(VERSION_OF_NEAR_READS),
            Body::Forward { .. } => VERSION_OF_SESSION_LOCKS,
            Body::Answer { answer, .. } => answer.needs_version(),
            _ => 1,
        }
    }

    fn read_word(r: &mut Reader) -> Result<Body, FrameError> {
        // Looked at before it is read: nothing lies within itself.
        match r.0.first() {
            Some(&(LOCKS | UNLOCK | PROBE | VICTIM)) => Body::read(r),
            _ => Err(FrameError::Damaged("word")),
        }
    }

    fn write(&self, w: &mut Writer<'_>) {
        match self {
            Body::Envelope(envelope) => {
                w.byte(ENVELOPE);
                w.bytes(&envelope.encode());
            }
            Body::Request { id, range, request }
            | Body::Relay { id, range, request }
            | Body::Near { id, range, request } => {
                w.byte(match self {
                    Body::Relay { .. } => RELAY,
                    Body::Near { .. } => NEAR,
                    _ => REQUEST,
                });
                w.fixed(*id);
                w.number(range.0);
                request.write(w);
            }
            Body::Answer { id, answer } => {
                w.byte(ANSWER);
                w.fixed(*id);
                answer.write(w);
            }
            Body::Locks { txns } => {
                w.byte(LOCKS);
                w.number(txns.len() as u64);
                txns.iter().for_each(|txn| words::write_txn(w, *txn));
            }
            Body::Unlock { txn, returned } => {
                w.byte(UNLOCK);
                words::write_txn(w, *txn);
                words::write_option(w, returned.as_ref(), |w, returned| returned.write(w));
            }
            Body::Forward { from, to, word } => {
                w.byte(FORWARD);
                w.number(u64::from(*from));
                w.number(u64::from(*to));
                word.write(w);
            }
            Body::Oldest { snapshot } => {
                w.byte(OLDEST);
                w.time(*snapshot);
            }
            Body::Probe { path: waits, about: txn } | Body::Victim { txn, circle: waits } => {
                w.byte(if matches!(self, Body::Probe { .. }) { PROBE } else { VICTIM });
                words::write_txn(w, *txn);
                words::write_waits(w, waits);
            }
        }
    }

    fn read(r: &mut Reader) -> Result<Body, FrameError> {
        Ok(match r.byte("kind")? {
            ENVELOPE => {
                let inner = r.bytes("envelope")?;
                let envelope = Envelope::decode(&inner).map_err(|why| match why {
                    raft::DecodeError::Version(version) => FrameError::Version(version),
                    raft::DecodeError::Damaged(what) => FrameError::Damaged(what),
                })?;
                Body::Envelope(envelope)
            }
            kind @ (REQUEST | RELAY | NEAR) => {
                let id = r.fixed("request's number")?;
                let range = RangeId(r.number("range")?);
                let request = Request::read(r)?;
                match kind {
                    REQUEST => Body::Request { id, range, request },
                    NEAR => Body::Near { id, range, request },
                    _ => Body::Relay { id, range, request },
                }
            }
            ANSWER => Body::Answer { id: r.fixed("request's number")?, answer: Answer::read(r)? },
            LOCKS => {
                let count = r.count("transactions")?;
                Body::Locks { txns: (0..count).map(|_| words::read_txn(r)).collect::<Result<_, _>>()? }
            }
            UNLOCK => {
                let txn = words::read_txn(r)?;
                Body::Unlock { txn, returned: words::read_option(r, Returned::read)? }
            }
            FORWARD => {
                let (from, to) = (node(r)?, node(r)?);
                let word = Body::read_word(r)?;
                Body::Forward { from, to, word: Box::new(word) }
            }
            OLDEST => Body::Oldest { snapshot: r.time("snapshot")? },
            PROBE => {
                let about = words::read_txn(r)?;
                Body::Probe { path: words::read_waits(r)?, about }
            }
            VICTIM => Body::Victim { txn: words::read_txn(r)?, circle: words::read_waits(r)? },
            _ => return Err(FrameError::Damaged("kind")),
        })
    }
}
