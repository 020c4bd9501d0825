//! What correlated subqueries gave, by the values of the row around them that they read.
//!
//! A subquery that runs for every row is often asked the same: the column that it compares has few values, or a join has multiplied the rows around it.
//! What it gave is kept while that pays: a subquery that is nearly always asked something new is no longer looked up.

use super::{Reservation, Run};
use crate::engine::keys::{self, KeyKind};
use crate::engine::node::Node;
use crate::engine::walk;
use crate::exec::sort::row_bytes;
use crate::types::{Row, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Answers of one subquery that are kept.
const ANSWERS_MAX: usize = 4_096;
/// What the answers of one subquery take at most, bytes: what comes later in the statement needs memory, too.
const BYTES_MAX: usize = 4 << 20;
/// Rows of an answer that is kept.
pub(super) const ROWS_MAX: usize = 64;
/// After so many questions it is looked at whether it pays.
const TRIAL: u32 = 256;
/// It pays where one of so many questions was asked before.
const PAYING: u32 = 4;

/// The answers of one subquery.
pub(super) struct Memo {
    /// Whose they are: it lives as long as its address is a key.
    _node: Arc<Node>,
    /// The slots around it that it reads; `None`: nothing is kept.
    reads: Option<Arc<[usize]>>,
    asked: u32,
    found: u32,
    answers: BTreeMap<Vec<u8>, Arc<Vec<Row>>>,
    /// Of questions and answers.
    bytes: usize,
    reserved: Option<Reservation>,
}

impl Memo {
    fn new(node: &Arc<Node>, prefix: usize) -> Memo {
        let reads = walk::repeatable_reads(node, prefix).map(Arc::from);
        Memo { _node: node.clone(), reads, asked: 0, found: 0, answers: BTreeMap::new(), bytes: 0, reserved: None }
    }

    fn stop(&mut self) {
        self.reads = None;
        self.answers.clear();
        self.bytes = 0;
        self.reserved = None;
    }
}

/// A question that may be asked again.
pub(in crate::engine) struct Question(Vec<u8>);

/// The values as a question; `None` for those that can be equal and yet look different.
fn question(reads: &[usize], row: &[Value]) -> Option<Question> {
    let mut key = Vec::new();
    for slot in reads {
        let value = row.get(*slot)?;
        let exact = matches!(
            value,
            Value::Null
                | Value::Bool(_)
                | Value::Int2(_)
                | Value::Int4(_)
                | Value::Int8(_)
                | Value::Text(_)
                | Value::Date(_)
                | Value::Timestamp(_)
                | Value::Timestamptz(_)
                | Value::Uuid(_)
                | Value::Oid(_)
        );
        if !exact {
            return None;
        }
        keys::encode(value, KeyKind::Plain, &mut key);
    }
    Some(Question(key))
}

impl Run {
    /// The rows of a correlated subquery, if it was asked this before; else the question to keep them by.
    pub(in crate::engine) fn recall(
        &self,
        node: &Arc<Node>,
        around: &[Value],
    ) -> Result<Arc<Vec<Row>>, Option<Question>> {
        let mut memos = self.memos.lock();
        let memo = memos.entry(Arc::as_ptr(node) as usize).or_insert_with(|| Memo::new(node, around.len()));
        let Some(question) = memo.reads.as_ref().and_then(|reads| question(reads, around)) else { return Err(None) };
        memo.asked = memo.asked.saturating_add(1);
        match memo.answers.get(&question.0) {
            Some(rows) => {
                memo.found = memo.found.saturating_add(1);
                Ok(rows.clone())
            }
            None if memo.asked >= TRIAL && memo.found < memo.asked / PAYING => {
                memo.stop();
                Err(None)
            }
            None => Err(Some(question)),
        }
    }

    /// Keeps what a correlated subquery gave, if there is room.
    pub(in crate::engine) fn remember(&self, node: &Arc<Node>, question: Question, rows: &Arc<Vec<Row>>) {
        let mut memos = self.memos.lock();
        let Some(memo) = memos.get_mut(&(Arc::as_ptr(node) as usize)).filter(|memo| memo.reads.is_some()) else {
            return;
        };
        if rows.len() > ROWS_MAX || memo.answers.len() >= ANSWERS_MAX {
            return;
        }
        let bytes = question.0.len() + super::KEY_BYTES + rows.iter().map(|row| row_bytes(row)).sum::<usize>();
        if memo.bytes + bytes > BYTES_MAX {
            return;
        }
        memo.bytes += bytes;
        let reserved = memo.reserved.get_or_insert_with(|| self.reserve());
        match reserved.bytes(bytes) {
            Ok(()) => drop(memo.answers.insert(question.0, rows.clone())),
            // What others need comes first.
            Err(_) => memo.stop(),
        }
    }
}
