//! Copies of keys and values for who reads them, some hundred to an allocation.
//!
//! Problem: a row that a scan gives lives on while others read and write it. To count who holds it costs more than to copy it, where
//! several processors read the same rows: each count is a line that they take from one another. An allocation for each copy costs as
//! much again. So copies share pieces of memory, small ones, since who keeps one copy keeps its whole piece.

use super::Version;
use bytes::{Bytes, BytesMut};

/// Bytes of one piece, but for an entry that is larger.
const PIECE_BYTES_MAX: usize = 4096;
/// Room for an entry of a short scan.
const ENTRY_BYTES: usize = 64;
/// A value up to here is copied.
const COPIED_BYTES_MAX: usize = 256;

/// See the module.
pub(super) struct Copies {
    piece: BytesMut,
    /// Bytes of the next piece.
    next: usize,
}

impl Copies {
    /// For so many entries, about.
    pub fn of(entries: usize) -> Copies {
        Copies { piece: BytesMut::new(), next: entries.saturating_mul(ENTRY_BYTES).min(PIECE_BYTES_MAX) }
    }

    /// A copy of a key and of a version of it; what is large is shared.
    pub fn take(&mut self, key: &[u8], version: &Version) -> (Bytes, Version) {
        let copied = version.value.as_ref().filter(|value| value.len() <= COPIED_BYTES_MAX);
        let bytes = key.len() + copied.map_or(0, Bytes::len);
        self.make_room(bytes);
        let key = self.copy(key);
        let value = match copied {
            None => version.value.clone(),
            Some(value) => Some(self.copy(value)),
        };
        (key, Version { ts: version.ts, value })
    }

    /// A copy of a version for who keeps it, beside those before it; of what is large one of its own, for it may be a slice of something larger.
    pub fn keep(&mut self, version: Version) -> Version {
        let value = version.value.map(|value| match value.len() > COPIED_BYTES_MAX {
            true => Bytes::copy_from_slice(&value),
            false => {
                self.make_room(value.len());
                self.copy(&value)
            }
        });
        Version { ts: version.ts, value }
    }

    fn make_room(&mut self, bytes: usize) {
        if self.piece.capacity() < bytes {
            self.piece = BytesMut::with_capacity(self.next.max(bytes));
            self.next = PIECE_BYTES_MAX;
        }
    }

    fn copy(&mut self, of: &[u8]) -> Bytes {
        self.piece.extend_from_slice(of);
        self.piece.split().freeze()
    }
}
