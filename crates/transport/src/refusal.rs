//! Why a handshake ends without a link.

use thiserror::Error;

/// One end says no, and why. `known` is what the end that refuses knows, `named` what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No version of the protocol is spoken by both.
    #[error("speaks versions {min} to {max} of the protocol only: upgrade the older one of the two nodes")]
    Versions {
        /// The oldest that the end that refuses speaks.
        min: u16,
        /// The newest.
        max: u16,
    },
    /// A node of another cluster.
    #[error("belongs to cluster {known:016x}, not to {named:016x}: check the addresses")]
    Cluster {
        /// The cluster of the end that refuses.
        known: u64,
        /// The cluster that was named.
        named: u64,
    },
    /// Somebody else was looked for here.
    #[error("is n{known}, not n{named}: two nodes' addresses are mixed up")]
    Node {
        /// Who the end that refuses is.
        known: u32,
        /// Who was looked for.
        named: u32,
    },
    /// Nobody knows this node here.
    #[error("knows no n{named}: it was never a member, or is none any more")]
    Stranger {
        /// Who came.
        named: u32,
    },
    /// A node's number with another store than the one known under it.
    #[error(
        "knows n{node} by its store {known:032x}, not {named:032x}: a store that was wiped must join as a new node"
    )]
    Store {
        /// The node in question: either of the two.
        node: u32,
        /// The store that is known under that number.
        known: u128,
        /// The one that was named.
        named: u128,
    },
    /// An older life of a node than one that was seen.
    #[error(
        "has seen life {known} of n{node}, and this is life {named}: an old copy of its store, or a process that was thought dead. (If the later one was the copy, and has ended: start this node again, until its life is a later one)"
    )]
    Incarnation {
        /// The node in question.
        node: u32,
        /// The latest life that was seen.
        known: u64,
        /// The one that came.
        named: u64,
    },
    /// The node is not a member of a cluster yet: only control requests are answered.
    #[error("is not a member of a cluster yet")]
    NotAMember,
    /// There is no such lane.
    #[error("has {known} lanes, and no lane {named}")]
    Lane {
        /// How many there are.
        known: u8,
        /// The one that was named.
        named: u8,
    },
    /// The other's program does not know the version that the cluster has.
    #[error(
        "goes by version {version} of the cluster, and the other's program knows the versions {min} to {max}: start a newer release there"
    )]
    ClusterVersion {
        /// The cluster's.
        version: u16,
        /// The oldest that the other knows.
        min: u16,
        /// The newest.
        max: u16,
    },
    /// The same life of a node, in another process: its store was copied, and both are used.
    #[error(
        "hears another process as n{node}, on a copy of this store (they drew {known:016x} and {named:016x} at their starts): stop one of the two for good; a copy starts on an empty --store to join anew; the node itself, when the copy has ended, is started once more"
    )]
    Copy {
        /// The node in question.
        node: u32,
        /// What the one that is heard drew when it started.
        known: u64,
        /// What the one that came drew.
        named: u64,
    },
    /// An earlier life of the node goes on: its connections stand, and something came over them a moment ago.
    #[error(
        "hears life {known} of n{node} still, and this is life {named}: if that one has just died this is over in {} s, else this is a copy of its store",
        crate::ALIVE.as_secs()
    )]
    Alive {
        /// The node in question.
        node: u32,
        /// The life that is heard.
        known: u64,
        /// The one that came.
        named: u64,
    },
    /// A later life of a node, and a log that ends before what an earlier life has acknowledged.
    #[error(
        "was told of record {known} by n{node}, and the log that this life of it began with ends at {named}: an old copy of its store, or a disk that lost what it had synced; what it acknowledged is not in it. Start the node on an empty --store to join anew, as another node"
    )]
    Forgot {
        /// The node in question.
        node: u32,
        /// What it has told of, in an earlier life.
        known: u64,
        /// Where its log ended.
        named: u64,
    },
    /// A reason that this release does not know, by its number.
    #[error("refuses for a reason that this release does not know (number {0}): upgrade it")]
    Unknown(u8),
}

impl Refusal {
    /// Its number on the wire, never 0, and its two values, with the node that they are about.
    pub(crate) fn to_wire(self) -> (u8, u32, u128, u128) {
        match self {
            Refusal::Versions { min, max } => (1, 0, min.into(), max.into()),
            Refusal::Cluster { known, named } => (2, 0, known.into(), named.into()),
            Refusal::Node { known, named } => (3, 0, known.into(), named.into()),
            Refusal::Stranger { named } => (4, named, 0, 0),
            Refusal::Store { node, known, named } => (5, node, known, named),
            Refusal::Incarnation { node, known, named } => (6, node, known.into(), named.into()),
            Refusal::NotAMember => (7, 0, 0, 0),
            Refusal::Lane { known, named } => (8, 0, known.into(), named.into()),
            Refusal::ClusterVersion { version, min, max } => {
                (9, 0, version.into(), u128::from(min) | u128::from(max) << 16)
            }
            Refusal::Copy { node, known, named } => (10, node, known.into(), named.into()),
            Refusal::Alive { node, known, named } => (11, node, known.into(), named.into()),
            Refusal::Forgot { node, known, named } => (12, node, known.into(), named.into()),
            Refusal::Unknown(code) => (code.max(1), 0, 0, 0),
        }
    }

    /// What [`Refusal::to_wire`] made; values out of their range make it [`Refusal::Unknown`].
    pub(crate) fn from_wire(code: u8, node: u32, known: u128, named: u128) -> Refusal {
        let read = || {
            Some(match code {
                1 => Refusal::Versions { min: known.try_into().ok()?, max: named.try_into().ok()? },
                2 => Refusal::Cluster { known: known.try_into().ok()?, named: named.try_into().ok()? },
                3 => Refusal::Node { known: known.try_into().ok()?, named: named.try_into().ok()? },
                4 => Refusal::Stranger { named: node },
                5 => Refusal::Store { node, known, named },
                6 => Refusal::Incarnation { node, known: known.try_into().ok()?, named: named.try_into().ok()? },
                7 => Refusal::NotAMember,
                8 => Refusal::Lane { known: known.try_into().ok()?, named: named.try_into().ok()? },
                9 => Refusal::ClusterVersion {
                    version: known.try_into().ok()?,
                    min: (named & 0xffff) as u16,
                    max: (named >> 16).try_into().ok()?,
                },
                10 => Refusal::Copy { node, known: known.try_into().ok()?, named: named.try_into().ok()? },
                11 => Refusal::Alive { node, known: known.try_into().ok()?, named: named.try_into().ok()? },
                12 => Refusal::Forgot { node, known: known.try_into().ok()?, named: named.try_into().ok()? },
                _ => return None,
            })
        };
        read().unwrap_or(Refusal::Unknown(code.max(1)))
    }

    /// Whether both are the same reason, whatever the values.
    pub(crate) fn kind(&self) -> u8 {
        self.to_wire().0
    }
}
