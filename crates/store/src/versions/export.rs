//! All that is stored of a span, for a copy of it elsewhere: every key, every version, deletions included.
//!
//! Invariant: while nobody applies or collects, what is given is the state of one moment, whatever lies in memory and what in the engine.

use super::{Span, Version, Versions, damaged_key};
use crate::engine::Tree;
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
        if span.start >= span.end {
            return Ok(Vec::new());
        }
        let mut found: BTreeSet<Bytes> = BTreeSet::new();
        for layer in self.layers.read().newest_first() {
            found.extend(layer.keys_in(span).take(limit).map(Bytes::copy_from_slice));
        }
        let (from, to) = (keys::present(&span.start), keys::present(&span.end));
        let (mut left, mut damaged) = (limit, None);
        self.engine.scan(Tree::Present, &from, &to, false, &mut |key, _| {
            match keys::user_key(key) {
                Ok(key) => drop(found.insert(key)),
                Err(key) => damaged = Some(damaged_key(&key)),
            }
            left = left.saturating_sub(1);
            if left == 0 || damaged.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match damaged {
            Some(damaged) => Err(damaged),
            None => Ok(found.into_iter().take(limit).collect()),
        }
    }

    /// As [`Versions::keys_in`], with every version of each key, oldest first.
    ///
    /// # Errors
    /// As [`Versions::keys_in`].
    pub fn histories_in(&self, span: &Span, limit: usize) -> Result<Vec<(Bytes, Vec<Version>)>, StoreError> {
        let keys = self.keys_in(span, limit)?.into_iter();
        keys.map(|key| Ok((key.clone(), self.history(&key)?))).collect()
    }
}
