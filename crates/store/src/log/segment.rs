//! One file of the log: a header sector, then frames.

use crate::disk::{DiskFile, SECTOR};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"TBALLOG\n";
/// Version of the form on disk: of headers and frames.
pub const FORMAT: u32 = 1;
/// Where the first frame begins.
pub(super) const FIRST_FRAME: usize = SECTOR;

/// The name of a segment's file.
pub(super) fn name(number: u64) -> String {
    format!("log.{number:016x}")
}

/// The number in a segment's name.
pub(super) fn number(name: &str) -> Option<u64> {
    let hex = name.strip_prefix("log.").filter(|hex| hex.len() == 16)?;
    u64::from_str_radix(hex, 16).ok()
}

/// The name of a segment's file while it is made.
pub(super) fn temporary_name(number: u64) -> String {
    format!("new.{number:016x}")
}

/// Whether this is the name of a file that was being made.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with("new.")
}

/// First sector of a segment: written and synced before the file gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub salt: u64,
    pub number: u64,
}

/// What the first sector of a file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Header(Header),
    /// No header: damaged, since a segment gets its name after its header.
    Nothing,
    /// Written by another version of this program.
    Format(u32),
}

impl Header {
    pub fn encode(&self) -> [u8; SECTOR] {
        let mut raw = [0; SECTOR];
        raw[..8].copy_from_slice(MAGIC);
        raw[8..12].copy_from_slice(&FORMAT.to_be_bytes());
        raw[12..20].copy_from_slice(&self.salt.to_be_bytes());
        raw[20..28].copy_from_slice(&self.number.to_be_bytes());
        let sum = crc32fast::hash(&raw[..28]);
        raw[28..32].copy_from_slice(&sum.to_be_bytes());
        raw
    }

    pub fn decode(raw: &[u8]) -> Found {
        let Some(raw) = raw.get(..32).filter(|raw| raw.starts_with(MAGIC)) else { return Found::Nothing };
        let word = |at: usize| u32::from_be_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        if crc32fast::hash(&raw[..28]) != word(28) {
            return Found::Nothing;
        }
        match word(8) {
            FORMAT => Found::Header(Header { salt: long(12), number: long(20) }),
            other => Found::Format(other),
        }
    }
}

/// A segment that is full, or was when the log was opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealed {
    pub number: u64,
    /// Last position of which a part is here.
    pub last: u64,
    pub bytes: u64,
}

/// A segment that waits to be written: it has its name and header, and no frame.
pub(super) struct Ready {
    pub number: u64,
    pub bytes: u64,
    pub file: Arc<dyn DiskFile>,
}
