//! A table that goes from version to version while its rows are written: design 4a.4, as SQL does it (decisions 103 and 104).
//!
//! The number of the present version stands under one key, which everybody looks at and nobody certifies. Each version has a token; whoever
//! writes a row by it relies on the token, and whoever ends the version writes it, after the next one has begun. From then on he takes the rows that he reads for all that were written by
//! the version: an index that is made of them lacks what comes later.
//!
//! 1. No row was written by a version at or after its end. (With [`node::Sabotage`]'s `forget_versions` it is only looked at when the row is written, not when it is committed.)

use crate::workload::encode_key;
use bytes::Bytes;
use clock::Timestamp;
use std::collections::BTreeMap;
use store::Version;

/// Rows: few, so that they are written all the time.
pub const ROWS: u64 = 4;
/// Beside registers and accounts: a cut lies between the tokens and the rows.
const NUMBER: u64 = 60;
const TOKENS: u64 = 61;
const ROWS_FROM: u64 = 170;

/// Where the number of the present version stands.
pub fn number() -> Bytes {
    encode_key(NUMBER)
}

/// The token of a version.
pub fn token(version: u64) -> Bytes {
    Bytes::from([&encode_key(TOKENS)[..], &version.to_be_bytes()].concat())
}

/// A row's key.
pub fn row(n: u64) -> Bytes {
    encode_key(ROWS_FROM + n)
}

/// A number, or a row: which version it was written by.
pub fn encode(version: u64) -> Bytes {
    Bytes::copy_from_slice(&version.to_be_bytes())
}

/// See [`encode`]; nothing is version 0.
pub fn decode(raw: Option<&[u8]>) -> u64 {
    raw.and_then(|raw| Some(u64::from_be_bytes(raw.try_into().ok()?))).unwrap_or(0)
}

/// What a transaction did.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// Wrote a row by a version.
    Row(u64),
    /// Ended a version.
    End(u64),
}

/// What was done.
#[derive(Debug, Default)]
pub struct Table {
    written: Vec<(u64, Timestamp)>,
    ended: BTreeMap<u64, Timestamp>,
}

impl Table {
    /// A transaction has committed.
    pub fn note(&mut self, change: Change, at: Timestamp) {
        match change {
            Change::Row(version) => self.written.push((version, at)),
            Change::End(version) => {
                let first = self.ended.entry(version).or_insert(at);
                *first = at.min(*first);
            }
        }
    }

    /// What is stored of it: outcomes that nobody was told are among it.
    ///
    /// # Errors
    /// Those of the history.
    pub fn see<E>(&mut self, history: impl Fn(&Bytes) -> Result<Vec<Version>, E>) -> Result<(), E> {
        for n in 0..ROWS {
            let versions = history(&row(n))?.into_iter().filter(|version| version.value.is_some());
            versions.for_each(|version| self.note(Change::Row(decode(version.value.as_deref())), version.ts));
        }
        let newest = self.written.iter().map(|(version, _)| *version).max().unwrap_or(0);
        for version in 0..=newest {
            history(&token(version))?.first().into_iter().for_each(|end| self.note(Change::End(version), end.ts));
        }
        Ok(())
    }

    /// A row that came after the end of its version.
    pub fn broken(&self) -> Option<String> {
        let late = |(version, at): &&(u64, Timestamp)| self.ended.get(version).is_some_and(|end| at >= end);
        let (version, at) = self.written.iter().find(late)?;
        Some(format!(
            "a row was written at {at} by version {version} of its table, which ended at {}",
            self.ended[version]
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_after_the_end_of_its_version_is_seen() {
        let at = |us| Timestamp::new(us, 0);
        let mut table = Table::default();
        table.note(Change::Row(3), at(118));
        table.note(Change::End(3), at(120));
        table.note(Change::Row(4), at(130));
        assert_eq!(table.broken(), None);
        table.note(Change::Row(3), at(130));
        assert!(table.broken().is_some_and(|why| why.contains("version 3")));
        assert_eq!(decode(Some(&encode(7))), 7);
        assert_eq!(decode(None), 0);
    }
}
