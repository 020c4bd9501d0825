//! Lookups of rows by keys, in batches: the inner side of the query engine's lookup join.

use super::path::{Fit, fit};
use super::span::{self, Keys};
use super::table::TableAccess;
use crate::SqlError;
use crate::context::StatementContext;
use crate::transaction::{ScanRequest, Span};
use crate::types::{Row, SqlType, Value};
use bytes::Bytes;
use std::sync::Arc;

/// Entries fetched at a time for one key.
const CHUNK_ROWS: usize = 256;

/// Looks rows up by the leading columns of an index.
pub struct Lookup {
    access: Arc<TableAccess>,
    index: usize,
    projection: Vec<usize>,
    types: Vec<SqlType>,
}

impl Lookup {
    /// For an index (see [`TableAccess::index`]) and the slots wanted. Keys are given for the first columns of the index, as many
    /// as the caller has.
    pub fn new(access: &Arc<TableAccess>, index: usize, projection: &[usize]) -> Lookup {
        let types = access.index(index).columns.iter().map(|column| column.ty.clone()).collect();
        Lookup { access: access.clone(), index, projection: projection.to_vec(), types }
    }

    /// An index that starts with these columns, in some order: its ordinal, and for each of its columns the place in `slots`.
    /// A unique one that they fill comes first.
    pub fn index_for(access: &TableAccess, slots: &[usize]) -> Option<(usize, Vec<usize>)> {
        let mut best: Option<(usize, Vec<usize>, bool)> = None;
        for ordinal in 0..=access.indexes.len() {
            let index = access.index(ordinal);
            if index.predicate.is_some() {
                continue;
            }
            let Some(head) = index.columns.get(..slots.len()) else { continue };
            let places: Option<Vec<usize>> =
                head.iter().map(|column| slots.iter().position(|&slot| column.slot == Some(slot))).collect();
            if let Some(places) = places {
                let unique = index.unique && index.columns.len() == slots.len();
                if best.as_ref().is_none_or(|(_, _, before)| unique && !before) {
                    best = Some((ordinal, places, unique));
                }
            }
        }
        best.map(|(ordinal, places, _)| (ordinal, places))
    }

    /// The projected rows of each key, in the order of the keys. A key with a NULL has none.
    pub fn rows(&self, context: &Arc<StatementContext>, keys: &[Vec<Value>]) -> Result<Vec<Vec<Row>>, SqlError> {
        keys.iter().map(|key| self.rows_of(context, key)).collect()
    }

    fn rows_of(&self, context: &StatementContext, key: &[Value]) -> Result<Vec<Row>, SqlError> {
        let mut prefix = Vec::with_capacity(key.len());
        for (value, ty) in key.iter().zip(&self.types) {
            match fit(value.clone(), ty) {
                Fit::Exact(value) => prefix.push(value),
                Fit::Null | Fit::Below | Fit::Above => return Ok(Vec::new()),
            }
        }
        let mut out = Vec::new();
        match span::equal(self.access.index(self.index), &prefix) {
            Keys::One(key) => {
                if let Some(value) = context.txn.with(|txn| txn.get(&key))? {
                    self.push(context, &key, value, &mut out)?;
                }
            }
            Keys::Span(span) => self.scan(context, span, &mut out)?,
        }
        Ok(out)
    }

    fn scan(&self, context: &StatementContext, span: Span, out: &mut Vec<Row>) -> Result<(), SqlError> {
        let mut rest = Some(span);
        while let Some(span) = rest {
            let request = ScanRequest { span, reverse: false, limit: CHUNK_ROWS };
            let chunk = context.txn.with(|txn| txn.scan(&request))?;
            for (key, value) in chunk.rows {
                self.push(context, &key, value, out)?;
            }
            rest = chunk.rest;
        }
        Ok(())
    }

    /// Decodes the row that a key of the index leads to.
    fn push(&self, context: &StatementContext, key: &[u8], value: Bytes, out: &mut Vec<Row>) -> Result<(), SqlError> {
        let stored = if self.index == 0 {
            value
        } else {
            let row_key = self.access.row_key_of_entry(key, &value)?;
            match context.txn.with(|txn| txn.get(&row_key))? {
                Some(stored) => stored,
                None => return Ok(()),
            }
        };
        let mut row = vec![Value::Null; self.access.columns.len()];
        self.access.decode(&stored, &self.projection, &mut row)?;
        out.push(self.projection.iter().map(|&slot| row[slot].clone()).collect());
        Ok(())
    }
}
