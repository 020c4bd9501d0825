use bytes::Bytes;
use clock::Timestamp;

/// What went wrong below, and what the caller must do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No space is left: nothing was written. Refuse writes until space is freed; reads go on.
    #[error("the disk is full: free space, then writes resume by themselves")]
    DiskFull,
    /// The disk or the engine failed. Stop the node: what it holds in memory is no longer what the disk holds.
    #[error("storage failed while {doing}: {cause}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// What the layer below said.
        cause: String,
    },
    /// Stored bytes are not what was written. Restore this replica from another one or from a backup.
    #[error("stored data is damaged in {place}: {what}; restore from a replica or a backup")]
    Corrupt {
        /// File or key.
        place: String,
        /// What does not fit.
        what: String,
    },
    /// Versions at this snapshot may be collected already: take a snapshot at or above `oldest`.
    #[error("snapshot {asked} is older than {oldest}, below which old versions are collected")]
    Collected {
        /// The snapshot asked for.
        asked: Timestamp,
        /// The oldest that can be read.
        oldest: Timestamp,
        /// What was to be read, where that is what is too old: other tables may be kept for longer.
        key: Option<Bytes>,
    },
}
