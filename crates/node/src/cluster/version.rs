//! Versions of the cluster: what programs of several releases do together.
//!
//! # Problem
//! Releases are put on one node after the other. A newer program may know records, forms and rules that an older one does not. Were each to go by what it
//! knows itself, two replicas would make different states of one log.
//!
//! # Idea
//! What is new waits until everybody knows it, and somebody says so. A program knows the versions of the cluster from [`VERSION_MIN`] to [`VERSION_MAX`]. The
//! cluster's version stands in its charter, and is raised by hand, when all programs know the next one. Leaders hear of it from their shells
//! ([`Member::set_version`]), at different times, and write it into the logs of their ranges, as a record ([`Command::Raise`]). From that place on, and not before, the
//! range does what is new: at all replicas alike, whatever their programs know.
//!
//! | version | what is new |
//! | --- | --- |
//! | 1 | |
//! | 2 | a range counts its commits ([`RangeStatus::commits`](super::RangeStatus)) |
//! | 3 | messages: locks of sessions (`holds`), word about locks by way of a third; reads by who has moved past a node's time (`serve`, invariant 4); what time took of a commit; negotiated snapshots (`settled`); reads of the nearest replica (`near`); time that is lent (`lent`); requests for many keys (`many_keys`) |
//! | 4 | commits say at which snapshot nobody referred to a key, and leaders refuse them where somebody has come to since (`references`): who looks for references goes by that. A range keeps no parts of what it refused |
//!
//! # Invariants
//! 1. What applying a record does depends on the range's version, never on the program's.
//! 2. A range's version never falls; what splits off has the same.
//! 3. A program that meets a version that it does not know stops, before it applies anything by it.
//! 4. What is written where an older program may read it (states of ranges, in snapshots) has the least form that says it.
//! 5. No message leaves that says what is of a later version than the one in force here ([`Body::needs_version`]): a node that hears of a version knows
//!    that all programs know it, so whoever gets such a message can read it.
//!
//! # Caveats
//! The frames of messages have a version of their own, which two ends agree on (`transport::hello`). A version is not lowered again.

use super::core::{Core, range_of};
use super::member::Member;
use crate::TxnError;
use clock::{Reading, Timestamp};
#[cfg(doc)]
use protocol::door::Body;
use protocol::txn::{Command, RangeId};
use std::ops::RangeInclusive;
use store::{Engine, StoreError};

/// The oldest version of the cluster that this program knows.
pub const VERSION_MIN: u16 = 1;
/// The newest.
pub const VERSION_MAX: u16 = 4;

/// From this version on every leader knows what a read means whose uncertainty ends at its snapshot.
pub(super) const VERSION_OF_CATCHING_UP: u16 = 3;

/// Ranges that are raised in one tick, at most: of ten thousand each takes a record.
const RAISES_MAX: usize = 64;
/// A record that was not applied after so many ticks is proposed again.
const AGAIN_TICKS: u64 = 20;

pub(super) fn unknown(what: impl std::fmt::Display, version: u16, known: &RangeInclusive<u16>) -> StoreError {
    let cause = format!(
        "{what} is of version {version} of the cluster, and this program knows the versions {} to {}: start the release that ran here before, or a newer one",
        known.start(),
        known.end()
    );
    StoreError::Failed { doing: "going on", cause }
}

impl<E: Engine> Core<E> {
    /// Whether a replica here may be raised to a version.
    pub fn knows(&self, range: RangeId, version: u16) -> Result<(), StoreError> {
        let known = &self.options.versions;
        if known.contains(&version) { Ok(()) } else { Err(unknown(range, version, known)) }
    }

    /// Invariant 5: whether all programs know what a version brings.
    pub fn in_force(&self, version: u16) -> bool {
        version <= self.options.version || self.sabotage.say_what_is_new()
    }

    /// What a later version of the cluster brings is refused until that is in force.
    pub fn require(&self, what: &'static str, needs: u16) -> Result<(), TxnError> {
        if self.in_force(needs) {
            return Ok(());
        }
        Err(TxnError::NeedsVersion { what, needs, version: self.options.version })
    }

    /// Ranges that are led here come to the cluster's version.
    pub fn tick_version(&mut self, now: &Reading) {
        let (version, ticks) = (self.options.version, self.ticks);
        let shards = &self.shards;
        let behind = |range: &RangeId| {
            shards.get(range).is_some_and(|shard| shard.led.is_some() && shard.range.version() < version)
        };
        self.behind.retain(|range, _| behind(range));
        let due = self.behind.iter_mut().filter(|(_, asked)| asked.is_none_or(|tick| ticks > tick + AGAIN_TICKS));
        let due: Vec<RangeId> = due
            .take(RAISES_MAX)
            .map(|(range, asked)| {
                *asked = Some(ticks);
                *range
            })
            .collect();
        for range in due {
            self.propose(now, None, range, Command::Raise { version }, Timestamp::MIN);
        }
    }

    /// A range is led here from now on, or the cluster's version is another.
    pub fn look_at_version(&mut self, range: RangeId) {
        let version = self.options.version;
        let found = self.shards.get(&range);
        if found.is_some_and(|shard| shard.led.is_some() && shard.range.version() < version) {
            self.behind.entry(range).or_default();
        }
    }
}

impl<E: Engine> Member<E> {
    /// The cluster's version is this from now on, or was known to be later. Whoever says so knows that all programs know it.
    pub fn set_version(&self, version: u16) {
        let mut core = self.look();
        if version <= core.options.version {
            return;
        }
        core.options.version = version;
        let groups: Vec<_> = core.replicas.groups().collect();
        groups.into_iter().for_each(|group| core.look_at_version(range_of(group)));
    }

    /// The cluster's version, as far as is known here.
    pub fn version(&self) -> u16 {
        self.look().options.version
    }
}
