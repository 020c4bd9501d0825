use crate::disk::DiskError;

/// Why the log cannot do what it was asked, and what the caller must do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No space for another segment: the record was not taken. Refuse writes; once space is free, appends work again.
    #[error("the disk is full: the log cannot grow until space is freed")]
    DiskFull,
    /// The record is larger than the log takes. Refuse it.
    #[error("a record of {bytes} bytes exceeds the log's limit of {limit}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The greatest size.
        limit: usize,
    },
    /// Too much waits to be written: the disk does not keep up. Refuse the record, or try again.
    #[error("{bytes} bytes wait to be written to the log, more than {limit}: the disk does not keep up")]
    Busy {
        /// What waits.
        bytes: usize,
        /// The greatest backlog.
        limit: usize,
    },
    /// A write or a sync failed, so what the disk holds is unknown. Stop the node and start it again: recovery finds out.
    #[error("the log failed and takes nothing more: {0}; restart the node once the disk works")]
    Broken(DiskError),
    /// Good records follow damaged ones: this is no torn tail, acknowledged data is lost here.
    #[error(
        "the log is damaged: {file} has no good record at offset {offset} (position {position}), but good ones follow in \
         {next_file} at offset {next_offset}; nothing was changed: restore this node from a replica or a backup"
    )]
    Hole {
        /// The damaged file.
        file: String,
        /// Where the bad record is, bytes from the start of the file.
        offset: u64,
        /// The position that is missing.
        position: u64,
        /// Where the next good record was found.
        next_file: String,
        /// Its offset there.
        next_offset: u64,
    },
    /// The first sector of a segment is not what was written there. Nothing was changed.
    #[error("the header of {file} is damaged: restore this node from a replica or a backup")]
    Header {
        /// The damaged file.
        file: String,
    },
    /// A file was written by another version of this program: use that one.
    #[error("{file} has format {found}, this program reads and writes format {known}")]
    Format {
        /// The file.
        file: String,
        /// Its format.
        found: u32,
        /// The format of this program.
        known: u32,
    },
    /// The disk failed outside of writing records.
    #[error(transparent)]
    Disk(DiskError),
    /// The caller of recovery refused a record.
    #[error("a record of the log is refused: {0}")]
    Refused(String),
}

impl From<DiskError> for LogError {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Full => LogError::DiskFull,
            other => LogError::Disk(other),
        }
    }
}
