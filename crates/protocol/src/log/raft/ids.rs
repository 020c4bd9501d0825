//! Names: stores, groups, replicas, places in a store's log.

use std::fmt;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $letter:literal),* $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
            pub struct $name(pub u64);

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, concat!($letter, "{}"), self.0)
                }
            }
            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Debug::fmt(self, f)
                }
            }
        )*
    };
}

names! {
    /// A store: one disk, one log. A wiped store comes back under another number. Never 0.
    StoreId: "s",
    /// A group: the replicas of one range.
    GroupId: "g",
    /// A replica of a group. A number is given out once in the life of a group, so that a store that comes back into a group
    /// does not replay the votes of its earlier life (design 4a.10). Never 0.
    ReplicaId: "r",
    /// A record of a store's one log: dense, in the order in which they are written; the first is 1.
    RecordNumber: "#",
}

/// A replica and the store that it lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The replica.
    pub replica: ReplicaId,
    /// Its store.
    pub store: StoreId,
}
