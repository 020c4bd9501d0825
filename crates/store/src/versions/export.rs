//! All that is stored of a span, for a copy of it elsewhere: every key, every version, deletions included.
//!
//! Invariant: while nobody applies or collects, what is given is the state of one moment, whatever lies in memory and what in the engine.

use super::{Span, Version, Versions, damaged_key};
use crate::engine::Tree;
use crate::keys::Past;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

impl<E: Engine> Versions<E> {
    /// Up to `limit` keys of a span of which anything is stored, in order. The span ends before the last one where there are more.
    ///
    /// # Errors
    /// What the engine says; [`StoreError::Corrupt`] on an entry that is no version.
    pub fn keys_in(&self, span: &Span, limit: usize) -> Result<Vec<Bytes>, StoreError> {
        Ok(self.keys_within(span, limit, usize::MAX)?.0)
    }

    /// As [`Versions::keys_in`], looking at no more than so many bytes of the engine, but for one key; and whether that were all.
    fn keys_within(&self, span: &Span, limit: usize, bytes: usize) -> Result<(Vec<Bytes>, bool), StoreError> {
        if span.start >= span.end {
            return Ok((Vec::new(), true));
        }
        while self.place(usize::MAX) {}
        let mut found: BTreeSet<Bytes> = BTreeSet::new();
        for layer in self.layers.read().newest_first() {
            found.extend(layer.keys_in(span).take(limit).map(Bytes::copy_from_slice));
        }
        let (from, to) = (keys::present(&span.start), keys::present(&span.end));
        let (mut left, mut met, mut end, mut damaged) = (limit, 0, None, None);
        self.engine.scan(Tree::Present, &from, &to, false, &mut |key, entry| {
            left = left.saturating_sub(1);
            met += key.len() + entry.len();
            match keys::user_key(key) {
                Ok(key) => {
                    end = (met > bytes).then(|| key.clone());
                    found.insert(key);
                }
                Err(key) => damaged = Some(damaged_key(&key)),
            }
            if left == 0 || end.is_some() || damaged.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if let Some(damaged) = damaged {
            return Err(damaged);
        }
        // Behind where the engine was left there may be more than the layers have.
        found.retain(|key| end.as_ref().is_none_or(|end| key <= end));
        let whole = end.is_none() && found.len() < limit;
        Ok((found.into_iter().take(limit).collect(), whole))
    }

    /// As [`Versions::keys_in`], with every version of each key, oldest first; fewer keys, one at least, where they have more than so many bytes of the past.
    ///
    /// # Errors
    /// As [`Versions::keys_in`].
    pub fn histories_in(&self, span: &Span, limit: usize, bytes: usize) -> Result<Histories, StoreError> {
        let (mut keys, mut whole) = self.keys_within(span, limit, bytes)?;
        let past = loop {
            match self.past_of(&keys, bytes)? {
                Some(past) => break past,
                None => {
                    keys.truncate(keys.len() / 2);
                    whole = false;
                }
            }
        };
        let with = |(key, past): (Bytes, Vec<Past>)| {
            let versions = self.versions_of(&key, past)?;
            Ok((key, versions))
        };
        let keys = keys.into_iter().zip(past).map(with).collect::<Result<_, StoreError>>()?;
        Ok(Histories { keys, whole })
    }

    /// Every version of `key` that is still stored, oldest first: for inspection, not for transactions.
    ///
    /// # Errors
    /// What the engine says.
    pub fn history(&self, key: &[u8]) -> Result<Vec<Version>, StoreError> {
        let key = Bytes::copy_from_slice(key);
        let past = self.past_of(std::slice::from_ref(&key), usize::MAX)?.unwrap_or_default();
        self.versions_of(&key, past.into_iter().flatten().collect())
    }

    fn versions_of(&self, key: &[u8], past: Vec<Past>) -> Result<Vec<Version>, StoreError> {
        while self.place(usize::MAX) {}
        let mut found = std::collections::BTreeMap::new();
        {
            let layers = self.layers.read();
            let chains = layers.newest_first().filter_map(|layer| layer.chain(key));
            found.extend(chains.flatten().map(|v| (v.ts, v.value.clone())));
        }
        for past in past {
            // Where it ended, something began: a deletion, unless another version says otherwise.
            found.entry(past.end).or_insert(None);
            found.insert(past.begin, Some(past.value));
        }
        if let Some(present) = self.present(key)? {
            found.insert(present.ts, present.value);
        }
        Ok(found.into_iter().map(|(ts, value)| Version { ts, value }).collect())
    }
}

/// Keys of a span, with all their versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histories {
    /// In order, each with its versions, oldest first.
    pub keys: Vec<(Bytes, Vec<Version>)>,
    /// There are no more in the span.
    pub whole: bool,
}
