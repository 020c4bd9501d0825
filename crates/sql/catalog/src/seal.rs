//! What the tokens of sessions are signed with.
//!
//! # Problem
//! A token (`timeball.token`) leaves the database and comes back by way of programs. As a bare timestamp it could be anybody's: invented, of another cluster, or of
//! this one before a copy of it was put back in its place, where what the token stands for is gone. Whoever takes such a one believes that his snapshots hold
//! what caused it, and they do not (design 4a.12).
//!
//! # Idea
//! ```text
//! 1700000000000000.0042-00c0ffee00c0ffee-5eed5eed-1-0123456789abcdef0123456789abcdef
//! timestamp             cluster          key      │ signature: of all before it
//!                                                 incarnation
//! ```
//! The keys are a record of the catalog: made with it, replicated with it, and known to a session as the catalog is. `ALTER SYSTEM RENEW TOKENS` begins the next incarnation, with a
//! key of its own: an operator says so when he has put a copy back, or when a key may be known to others. `ALTER SYSTEM ROTATE TOKENS` takes the next key in the same one: what was signed
//! with the key before is taken beside it, until keys are rotated once more, so that nobody who is on his way with a token is turned away.
//!
//! # Invariants
//! 1. A timestamp is taken from a token only where a key of this catalog has signed it, for this cluster, in the present incarnation.
//! 2. An incarnation never falls, and each has other keys. So what a cluster and a copy of it sign differs from the moment at which either is renewed.
//! 3. At most two keys are taken at a time: the present one, and the one before it in its incarnation.
//! 4. Signatures are compared in a time that does not depend on where they differ.
//!
//! # Caveats
//! A signature says that a node of this cluster has given the token out, not to whom. That a copy was put back nobody notices by himself. Keys are stored as they are, as the data are.

use crate::{SqlError, SqlState};
use clock::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;

/// Keys that are remembered, the present one included: a token of one that was forgotten is refused as one that nobody knows.
pub const KEYS_MAX: usize = 16;
/// Keys by which tokens are taken: the present one, and the one before it in the same incarnation.
pub const KEYS_TAKEN: usize = 2;
/// Bytes of a signature: half of what SHA-256 gives, as many as it takes to make guessing hopeless.
const SIGNATURE_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;
/// What is signed begins so: a signature of something else is none of a token.
const PURPOSE: &[u8] = b"timeball.token 1 ";
/// Fields of a token.
const FIELDS: usize = 5;

/// See the module.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The cluster's number, or one drawn for a node that is alone.
    cluster: u64,
    /// The newest last.
    keys: Vec<Key>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Key {
    id: u32,
    incarnation: u32,
    secret: [u8; SECRET_BYTES],
}

/// Nobody reads a key in a log.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").field("cluster", &self.cluster).field("incarnation", &self.incarnation()).finish()
    }
}

/// Why a text is no token that this cluster takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has not the form of one.
    #[error("It has not the form of a token.")]
    Malformed,
    /// A bare timestamp.
    #[error("It is a timestamp without a signature.")]
    Unsigned,
    /// Another cluster's.
    #[error("It is of the cluster {theirs:016x}, and this one is {ours:016x}.")]
    Foreign {
        /// Whose it says it is.
        theirs: u64,
        /// This one.
        ours: u64,
    },
    /// Its key is not known: a copy of this cluster has renewed its own, or it is very old.
    #[error("It is signed with a key ({0:08x}) that this cluster does not know.")]
    UnknownKey(u32),
    /// It is not what was signed.
    #[error("Its signature is not that of this cluster: it was changed on its way, or invented.")]
    Forged,
    /// Its key was taken out of use.
    #[error("It is signed with a key ({0:08x}) that is out of use: keys were rotated more than once since.")]
    Expired(u32),
    /// It lies ahead of true time.
    #[error("It lies in the future: where it was given out a clock was ahead of its bound.")]
    Future,
    /// Of an earlier incarnation.
    #[error(
        "It is of incarnation {theirs} of the cluster, and this is {ours}: a copy was put back since, or tokens were renewed, and what it stands for may be gone."
    )]
    Older {
        /// Its own.
        theirs: u32,
        /// The present one.
        ours: u32,
    },
}

impl Refusal {
    /// 22023, as an error about a setting.
    pub fn of(self, text: &str) -> SqlError {
        let hint = match self {
            Refusal::Older { .. } | Refusal::UnknownKey(_) | Refusal::Expired(_) | Refusal::Future => {
                "Go on without it, or with what SHOW timeball.token answers now."
            }
            _ => "Give what SHOW timeball.token answered in another session of this cluster, unchanged.",
        };
        let shown = crate::identifier::cut(text, SHOWN_BYTES_MAX);
        let message = format!("invalid value for parameter \"timeball.token\": \"{shown}\"");
        SqlError::new(SqlState::INVALID_PARAMETER, message).detail(self.to_string()).hint(hint)
    }
}

/// What is looked at (invariant 1). Rules to be broken on purpose: see the tests.
#[derive(Clone, Copy)]
struct Checks {
    cluster: bool,
    signature: bool,
    incarnation: bool,
    age: bool,
}

const ALL: Checks = Checks { cluster: true, signature: true, incarnation: true, age: true };

/// What is refused is shown so far.
const SHOWN_BYTES_MAX: usize = 120;

impl Seal {
    /// The first keys of a cluster: a number of its own if it has none. `fill` gives bytes that nobody can guess.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn draw<E>(cluster: Option<u64>, fill: &dyn Fn(&mut [u8]) -> Result<(), E>) -> Result<Seal, E> {
        let cluster = match cluster {
            Some(cluster) => cluster,
            None => {
                let mut drawn = [0; 8];
                fill(&mut drawn)?;
                u64::from_be_bytes(drawn)
            }
        };
        let mut seal = Seal { cluster, keys: Vec::new() };
        seal.renew(fill)?;
        Ok(seal)
    }

    /// Begins the next incarnation.
    ///
    /// # Errors
    /// Those of `fill`; nothing has changed then.
    pub fn renew<E>(&mut self, fill: &dyn Fn(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
        self.begin_key(self.incarnation().saturating_add(1), fill)
    }

    /// Takes the next key in the same incarnation.
    ///
    /// # Errors
    /// Those of `fill`; nothing has changed then.
    pub fn rotate<E>(&mut self, fill: &dyn Fn(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
        self.begin_key(self.incarnation(), fill)
    }

    fn begin_key<E>(&mut self, incarnation: u32, fill: &dyn Fn(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
        let (mut id, mut secret) = ([0; 4], [0; SECRET_BYTES]);
        fill(&mut id)?;
        fill(&mut secret)?;
        // Two keys of one number are told apart by their signatures, so that one in four billion does not matter.
        let id = u32::from_be_bytes(id);
        self.keys.push(Key { id, incarnation, secret });
        let forgotten = self.keys.len().saturating_sub(KEYS_MAX);
        self.keys.drain(..forgotten);
        Ok(())
    }

    /// The present one, from 1.
    pub fn incarnation(&self) -> u32 {
        self.keys.last().map_or(0, |key| key.incarnation)
    }

    /// A timestamp as a token.
    pub fn sign(&self, timestamp: Timestamp) -> String {
        let Some(key) = self.keys.last() else { return timestamp.to_string() };
        let mut text = format!("{timestamp}-{:016x}-{:08x}-{}", self.cluster, key.id, key.incarnation);
        let signature = key.over(&text).finalize().into_bytes();
        text.push('-');
        signature.iter().take(SIGNATURE_BYTES).for_each(|byte| text.push_str(&format!("{byte:02x}")));
        text
    }

    /// The timestamp of a token (invariant 1).
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn read(&self, text: &str) -> Result<Timestamp, Refusal> {
        self.read_by(text, ALL)
    }

    fn read_by(&self, text: &str, checks: Checks) -> Result<Timestamp, Refusal> {
        let text = text.trim();
        let fields: Vec<&str> = text.splitn(FIELDS + 1, '-').collect();
        let [timestamp, cluster, id, incarnation, signature] = fields[..] else {
            return Err(if text.parse::<Timestamp>().is_ok() { Refusal::Unsigned } else { Refusal::Malformed });
        };
        let read = || {
            let number = |text: &str, digits: usize| {
                let plain =
                    text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
                plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
            };
            let id = u32::try_from(number(id, 8)?).ok()?;
            let pairs =
                signature.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok().and_then(|p| number(p, 2)));
            let signature: Vec<u8> = pairs.map(|byte| u8::try_from(byte?).ok()).collect::<Option<_>>()?;
            let whole = signature.len() == SIGNATURE_BYTES;
            whole.then_some((timestamp.parse().ok()?, number(cluster, 16)?, id, incarnation.parse().ok()?, signature))
        };
        let (timestamp, theirs, id, incarnation, signature): (Timestamp, u64, u32, u32, Vec<u8>) =
            read().ok_or(Refusal::Malformed)?;
        if checks.cluster && theirs != self.cluster {
            return Err(Refusal::Foreign { theirs, ours: self.cluster });
        }
        let signed = text.strip_suffix(fields[FIELDS - 1]).and_then(|text| text.strip_suffix('-')).unwrap_or_default();
        let mut known = self.keys.iter().rev().enumerate().filter(|(_, key)| key.id == id).peekable();
        if known.peek().is_none() {
            return Err(Refusal::UnknownKey(id));
        }
        let sound = |key: &Key| key.over(signed).verify_truncated_left(&signature).is_ok();
        let signs = |(_, key): &(usize, &Key)| key.incarnation == incarnation && (!checks.signature || sound(key));
        match known.find(signs) {
            None => Err(Refusal::Forged),
            Some((_, key)) if key.incarnation != self.incarnation() && checks.incarnation => {
                Err(Refusal::Older { theirs: key.incarnation, ours: self.incarnation() })
            }
            Some((age, _)) if age >= KEYS_TAKEN && checks.age => Err(Refusal::Expired(id)),
            Some(_) => Ok(timestamp),
        }
    }
}

impl Key {
    fn over(&self, text: &str) -> Hmac<Sha256> {
        // A key of any length will do.
        let mut mac = match Hmac::<Sha256>::new_from_slice(&self.secret) {
            Ok(mac) => mac,
            Err(_) => unreachable!("HMAC takes keys of any length"),
        };
        mac.update(PURPOSE);
        mac.update(text.as_bytes());
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::convert::Infallible;

    fn chance(seed: u8) -> impl Fn(&mut [u8]) -> Result<(), Infallible> {
        let next = Cell::new(seed);
        move |bytes| {
            bytes.iter_mut().for_each(|byte| {
                next.set(next.get().wrapping_mul(197).wrapping_add(31));
                *byte = next.get();
            });
            Ok(())
        }
    }

    fn drawn(cluster: u64, seed: u8) -> Seal {
        let Ok(seal) = Seal::draw(Some(cluster), &chance(seed));
        seal
    }

    #[test]
    fn what_was_signed_is_read_and_nothing_else() {
        let (seal, at) = (drawn(0xc0ffee, 1), Timestamp::new(1_700_000_000_000_000, 42));
        let token = seal.sign(at);
        assert_eq!(seal.read(&token), Ok(at));
        assert_eq!(seal.read(&format!(" {token}\n")), Ok(at), "spaces around it are nobody's");
        assert_eq!(seal.read(&at.to_string()), Err(Refusal::Unsigned));
        for text in [
            "",
            "x",
            "-",
            "----",
            "-----",
            &"-".repeat(10_000),
            &format!("{token}-"),
            &token[1..],
            &token[..token.len() - 1],
        ] {
            assert!(seal.read(text).is_err(), "{text}");
        }
        // Each character matters.
        for place in 0..token.len() {
            for other in *b"0123456789abcdef-." {
                let mut changed = token.clone().into_bytes();
                if changed[place] != other {
                    changed[place] = other;
                    let changed = String::from_utf8(changed).unwrap();
                    assert!(seal.read(&changed).is_err(), "{changed} is taken for {token}");
                }
            }
        }
    }

    #[test]
    fn others_and_earlier_ones_are_told_apart() {
        let at = Timestamp::new(1_700_000_000_000_000, 0);
        let mut seal = drawn(7, 1);
        let (first, mut copy) = (seal.sign(at), seal.clone());
        assert_eq!(drawn(8, 1).read(&first), Err(Refusal::Foreign { theirs: 7, ours: 8 }));
        assert!(matches!(drawn(7, 9).read(&first), Err(Refusal::UnknownKey(_))));
        let Ok(()) = seal.renew(&chance(2));
        assert_eq!(seal.read(&first), Err(Refusal::Older { theirs: 1, ours: 2 }));
        assert_eq!(seal.read(&seal.sign(at)), Ok(at));
        assert!(matches!(copy.read(&seal.sign(at)), Err(Refusal::UnknownKey(_))), "the copy has not renewed");
        let Ok(()) = copy.renew(&chance(3));
        assert!(matches!(copy.read(&seal.sign(at)), Err(Refusal::UnknownKey(_))), "both have renewed");
        for round in 0..2 * KEYS_MAX {
            let Ok(()) = seal.renew(&chance(50 + round as u8));
        }
        assert_eq!((seal.keys.len(), seal.incarnation()), (KEYS_MAX, 2 + 2 * KEYS_MAX as u32));
        assert!(matches!(seal.read(&first), Err(Refusal::UnknownKey(_))));
        assert!(!format!("{seal:?}").contains("secret"));
    }

    #[test]
    fn a_key_is_followed_by_another_and_nobody_is_turned_away() {
        let at = Timestamp::new(1_700_000_000_000_000, 0);
        let mut seal = drawn(7, 1);
        let (before, first) = (seal.clone(), seal.sign(at));
        let Ok(()) = seal.rotate(&chance(2));
        let second = seal.sign(at);
        assert_ne!(first, second, "it signs with the new one");
        assert_eq!((seal.read(&first), seal.read(&second), seal.incarnation()), (Ok(at), Ok(at), 1));
        assert!(matches!(before.read(&second), Err(Refusal::UnknownKey(_))), "who has not heard of it has to ask");
        let Ok(()) = seal.rotate(&chance(3));
        assert_eq!(seal.read(&second), Ok(at));
        assert!(matches!(seal.read(&first), Err(Refusal::Expired(_))));
        // Without that rule a key that is known to others is good for as long as it is remembered.
        assert_eq!(seal.read_by(&first, Checks { age: false, ..ALL }), Ok(at));
        let Ok(()) = seal.renew(&chance(4));
        let third = seal.sign(at);
        assert!(matches!(seal.read(&second), Err(Refusal::Older { theirs: 1, ours: 2 })), "renewed is none of the two");
        let Ok(()) = seal.rotate(&chance(5));
        assert_eq!((seal.read(&third), seal.incarnation()), (Ok(at), 2));
    }

    /// Each rule of design 4a.12, the schedule that breaks without it, and that it does.
    #[test]
    fn each_rule_of_tokens_is_needed() {
        let at = Timestamp::new(1_700_000_000_000_000, 0);
        // Another cluster that was made of a copy of this one's keys: what was seen there is not here.
        let ours = drawn(7, 1);
        let theirs = Seal { cluster: 8, ..ours.clone() };
        let foreign = theirs.sign(at);
        assert!(matches!(ours.read(&foreign), Err(Refusal::Foreign { .. })));
        assert_eq!(ours.read_by(&foreign, Checks { cluster: false, ..ALL }), Ok(at));
        // Somebody writes a time of his own into a token.
        let (given, later) = (ours.sign(at), Timestamp::new(1_800_000_000_000_000, 0));
        let forged = given.replacen(&at.to_string(), &later.to_string(), 1);
        assert_eq!(ours.read(&forged), Err(Refusal::Forged));
        assert_eq!(ours.read_by(&forged, Checks { signature: false, ..ALL }), Ok(later));
        // A copy is put back: what the cluster gave out after the copy was made stands for what is gone.
        let mut restored = ours.clone();
        let Ok(()) = restored.renew(&chance(2));
        assert!(matches!(restored.read(&given), Err(Refusal::Older { .. })));
        assert_eq!(restored.read_by(&given, Checks { incarnation: false, ..ALL }), Ok(at));
    }

    /// Bytes that were written once are read for ever.
    #[test]
    fn its_record_and_its_tokens_stay_what_they_are() {
        let seal = drawn(7, 1);
        let record = serde_json::to_string(&seal).unwrap();
        assert_eq!(record, include_str!("seal.json").trim());
        assert_eq!(serde_json::from_str::<Seal>(&record).unwrap(), seal);
        let token = seal.sign(Timestamp::new(1_700_000_000_000_000, 42));
        assert_eq!(token, include_str!("seal.txt").trim());
    }
}
