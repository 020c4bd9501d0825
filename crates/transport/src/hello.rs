//! The first bytes of a connection, and the handshake.
//!
//! ```text
//! "tmbl" | kind u8 | length u32 | body            every message of a handshake
//!
//! dialer                                              acceptor
//!   ── Hello: versions, cluster, from, to, stores, life, lane ──▶
//!   ◀── Answer: the version to speak and who I am, or a refusal ──
//!   ── Verdict: yes, or a refusal ──▶
//!   ── parcels ... ──▶
//! ```
//!
//! Little-endian. The envelope, and the two versions in front of a hello, stay as they are for ever, so that any two releases understand at least
//! that they do not understand each other. Later versions may add fields at the end of a body: what is left over is not read.

use crate::{CONTROL_BYTES_MAX, Refusal};
use std::ops::RangeInclusive;
use thiserror::Error;

/// The versions of the protocol that this release speaks.
pub const VERSION_MIN: u16 = 1;
/// The newest.
pub const VERSION_MAX: u16 = 1;

/// In front of each message of a handshake.
pub const ENVELOPE_BYTES: usize = 9;
/// No body of a handshake is longer.
pub const BODY_BYTES_MAX: usize = 1024;
/// Of a release's name, this much is told.
pub const RELEASE_BYTES_MAX: usize = 64;

const MAGIC: [u8; 4] = *b"tmbl";

/// What follows an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A [`Hello`]: a lane.
    Hello = 1,
    /// A control request.
    Request = 2,
    /// An answer to a hello.
    Answer = 3,
    /// What the dialer makes of the answer.
    Verdict = 4,
    /// The reply to a control request.
    Reply = 5,
}

impl Kind {
    fn body_bytes_max(self) -> usize {
        match self {
            Kind::Hello | Kind::Answer | Kind::Verdict => BODY_BYTES_MAX,
            Kind::Request | Kind::Reply => CONTROL_BYTES_MAX,
        }
    }
}

/// Not a message of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Some other protocol.
    #[error("it does not speak this protocol")]
    Magic,
    /// Another kind of message than the one that should come.
    #[error("a message of kind {0} does not belong there")]
    Kind(u8),
    /// Too long.
    #[error("{bytes} bytes are announced, at most {bytes_max} are allowed")]
    Length {
        /// What was announced.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// It ends too early, or says what cannot be.
    #[error("it is damaged at its {0}")]
    Damaged(&'static str),
}

/// The envelope of a body.
pub fn envelope(kind: Kind, body: &[u8]) -> Vec<u8> {
    assert!(body.len() <= kind.body_bytes_max(), "a body of {} bytes", body.len());
    let mut out = Vec::with_capacity(ENVELOPE_BYTES + body.len());
    out.extend_from_slice(&MAGIC);
    out.push(kind as u8);
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(body);
    out
}

/// What an envelope announces.
pub fn open(envelope: &[u8; ENVELOPE_BYTES]) -> Result<(Kind, usize), Malformed> {
    let [a, b, c, d, kind, length @ ..] = *envelope;
    if [a, b, c, d] != MAGIC {
        return Err(Malformed::Magic);
    }
    let known = [Kind::Hello, Kind::Request, Kind::Answer, Kind::Verdict, Kind::Reply];
    let kind = known.into_iter().find(|known| *known as u8 == kind).ok_or(Malformed::Kind(kind))?;
    let (bytes, bytes_max) = (u32::from_le_bytes(length) as usize, kind.body_bytes_max());
    if bytes > bytes_max { Err(Malformed::Length { bytes, bytes_max }) } else { Ok((kind, bytes)) }
}

/// Who dials, and whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The oldest version that the dialer speaks.
    pub version_min: u16,
    /// The newest.
    pub version_max: u16,
    /// Its cluster.
    pub cluster: u64,
    /// Its node.
    pub from: u32,
    /// Its store.
    pub from_store: u128,
    /// Its life.
    pub incarnation: u64,
    /// The node that it looks for.
    pub to: u32,
    /// The store that it knows under that number.
    pub to_store: u128,
    /// The lane that this connection is for.
    pub lane: u8,
    /// Its release.
    pub release: String,
    /// The versions of the cluster that it knows.
    pub knows: RangeInclusive<u16>,
    /// Drawn when its process started; 0: it did not say.
    pub start: u64,
    /// Where its store's log ended then; `None`: it did not say.
    pub began_after: Option<u64>,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that both speak from now on.
    pub version: u16,
    /// Its cluster.
    pub cluster: u64,
    /// Its node.
    pub node: u32,
    /// Its store.
    pub store: u128,
    /// Its life.
    pub incarnation: u64,
    /// Its release.
    pub release: String,
    /// The versions of the cluster that it knows.
    pub knows: RangeInclusive<u16>,
    /// Drawn when its process started; 0: it did not say.
    pub start: u64,
    /// Where its store's log ended then; `None`: it did not say.
    pub began_after: Option<u64>,
}

/// The newest version that both speak.
pub fn common_version(hello: &Hello) -> Result<u16, Refusal> {
    let version = hello.version_max.min(VERSION_MAX);
    let spoken = version >= hello.version_min && version >= VERSION_MIN;
    if spoken { Ok(version) } else { Err(Refusal::Versions { min: VERSION_MIN, max: VERSION_MAX }) }
}

/// Takes numbers from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn fixed<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed::Damaged(what))?;
        self.0 = rest;
        Ok(*first)
    }
    fn byte(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.fixed::<1>(what).map(|[byte]| byte)
    }
    fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        self.fixed(what).map(u16::from_le_bytes)
    }
    fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        self.fixed(what).map(u32::from_le_bytes)
    }
    fn u64(&mut self, what: &'static str) -> Result<u64, Malformed> {
        self.fixed(what).map(u64::from_le_bytes)
    }
    fn u128(&mut self, what: &'static str) -> Result<u128, Malformed> {
        self.fixed(what).map(u128::from_le_bytes)
    }
    /// The first releases said nothing of it.
    fn known(&mut self) -> Result<RangeInclusive<u16>, Malformed> {
        if self.0.is_empty() {
            return Ok(KNOWN_UNSAID);
        }
        Ok(self.u16("versions of the cluster")?..=self.u16("versions of the cluster")?)
    }
    /// Nor of this.
    fn start(&mut self) -> Result<u64, Malformed> {
        if self.0.is_empty() { Ok(0) } else { self.u64("start") }
    }
    /// Nor of this. One is added to it: 0 says nothing.
    fn began_after(&mut self) -> Result<Option<u64>, Malformed> {
        if self.0.is_empty() { Ok(None) } else { Ok(self.u64("end of the log")?.checked_sub(1)) }
    }
    fn release(&mut self) -> Result<String, Malformed> {
        let len = usize::from(self.byte("release")?);
        let (text, rest) = self.0.split_at_checked(len).ok_or(Malformed::Damaged("release"))?;
        self.0 = rest;
        // It goes into a log: nothing in it may look like the end of a line.
        let shown = |c: &char| c.is_ascii_graphic() || *c == ' ';
        Ok(String::from_utf8_lossy(text).chars().filter(shown).take(RELEASE_BYTES_MAX).collect())
    }
}

/// Whoever does not say it knows this.
const KNOWN_UNSAID: RangeInclusive<u16> = 1..=1;

fn push_known(out: &mut Vec<u8>, knows: &RangeInclusive<u16>) {
    out.extend_from_slice(&knows.start().to_le_bytes());
    out.extend_from_slice(&knows.end().to_le_bytes());
}

fn push_began_after(out: &mut Vec<u8>, began_after: Option<u64>) {
    out.extend_from_slice(&began_after.map_or(0, |end| end.saturating_add(1)).to_le_bytes());
}

fn push_release(out: &mut Vec<u8>, release: &str) {
    let len = (0..=release.len().min(RELEASE_BYTES_MAX)).rev().find(|at| release.is_char_boundary(*at)).unwrap_or(0);
    out.push(len as u8);
    out.extend_from_slice(&release.as_bytes()[..len]);
}

impl Hello {
    /// With its envelope.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.version_min.to_le_bytes());
        out.extend_from_slice(&self.version_max.to_le_bytes());
        out.extend_from_slice(&self.cluster.to_le_bytes());
        out.extend_from_slice(&self.from.to_le_bytes());
        out.extend_from_slice(&self.from_store.to_le_bytes());
        out.extend_from_slice(&self.incarnation.to_le_bytes());
        out.extend_from_slice(&self.to.to_le_bytes());
        out.extend_from_slice(&self.to_store.to_le_bytes());
        out.push(self.lane);
        push_release(&mut out, &self.release);
        push_known(&mut out, &self.knows);
        out.extend_from_slice(&self.start.to_le_bytes());
        push_began_after(&mut out, self.began_after);
        envelope(Kind::Hello, &out)
    }

    /// From a body. Of a hello whose versions are all unknown only these are read: the rest may be laid out otherwise.
    pub fn decode(body: &[u8]) -> Result<Hello, Malformed> {
        let r = &mut Reader(body);
        let (version_min, version_max) = (r.u16("versions")?, r.u16("versions")?);
        let mut hello = Hello {
            version_min,
            version_max,
            cluster: 0,
            from: 0,
            from_store: 0,
            incarnation: 0,
            to: 0,
            to_store: 0,
            lane: 0,
            release: String::new(),
            knows: KNOWN_UNSAID,
            start: 0,
            began_after: None,
        };
        if common_version(&hello).is_err() {
            return Ok(hello);
        }
        hello.cluster = r.u64("cluster")?;
        hello.from = r.u32("node")?;
        hello.from_store = r.u128("store")?;
        hello.incarnation = r.u64("incarnation")?;
        hello.to = r.u32("node")?;
        hello.to_store = r.u128("store")?;
        hello.lane = r.byte("lane")?;
        hello.release = r.release()?;
        hello.knows = r.known()?;
        hello.start = r.start()?;
        hello.began_after = r.began_after()?;
        Ok(hello)
    }
}

const ACCEPTED: u8 = 0;

fn push_refusal(out: &mut Vec<u8>, refusal: Refusal) {
    let (code, node, known, named) = refusal.to_wire();
    out.push(code);
    out.extend_from_slice(&node.to_le_bytes());
    out.extend_from_slice(&known.to_le_bytes());
    out.extend_from_slice(&named.to_le_bytes());
}

fn read_refusal(r: &mut Reader<'_>) -> Result<Option<Refusal>, Malformed> {
    let code = r.byte("code")?;
    if code == ACCEPTED {
        return Ok(None);
    }
    // A newer release's reason may say less.
    let mut values = || Ok::<_, Malformed>((r.u32("refusal")?, r.u128("refusal")?, r.u128("refusal")?));
    Ok(Some(match values() {
        Ok((node, known, named)) => Refusal::from_wire(code, node, known, named),
        Err(_) => Refusal::Unknown(code),
    }))
}

/// An answer, with its envelope.
pub fn encode_answer(answer: &Result<Welcome, Refusal>) -> Vec<u8> {
    let mut out = Vec::new();
    match answer {
        Ok(welcome) => {
            out.push(ACCEPTED);
            out.extend_from_slice(&welcome.version.to_le_bytes());
            out.extend_from_slice(&welcome.cluster.to_le_bytes());
            out.extend_from_slice(&welcome.node.to_le_bytes());
            out.extend_from_slice(&welcome.store.to_le_bytes());
            out.extend_from_slice(&welcome.incarnation.to_le_bytes());
            push_release(&mut out, &welcome.release);
            push_known(&mut out, &welcome.knows);
            out.extend_from_slice(&welcome.start.to_le_bytes());
            push_began_after(&mut out, welcome.began_after);
        }
        Err(refusal) => push_refusal(&mut out, *refusal),
    }
    envelope(Kind::Answer, &out)
}

/// An answer's body.
pub fn decode_answer(body: &[u8]) -> Result<Result<Welcome, Refusal>, Malformed> {
    let r = &mut Reader(body);
    if let Some(refusal) = read_refusal(r)? {
        return Ok(Err(refusal));
    }
    Ok(Ok(Welcome {
        version: r.u16("version")?,
        cluster: r.u64("cluster")?,
        node: r.u32("node")?,
        store: r.u128("store")?,
        incarnation: r.u64("incarnation")?,
        release: r.release()?,
        knows: r.known()?,
        start: r.start()?,
        began_after: r.began_after()?,
    }))
}

/// A verdict, with its envelope.
pub fn encode_verdict(verdict: Result<(), Refusal>) -> Vec<u8> {
    let mut out = Vec::new();
    match verdict {
        Ok(()) => out.push(ACCEPTED),
        Err(refusal) => push_refusal(&mut out, refusal),
    }
    envelope(Kind::Verdict, &out)
}

/// A verdict's body.
pub fn decode_verdict(body: &[u8]) -> Result<Result<(), Refusal>, Malformed> {
    Ok(read_refusal(&mut Reader(body))?.map_or(Ok(()), Err))
}
