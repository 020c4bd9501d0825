//! A statement of several parts: `WITH a AS (DELETE .. RETURNING *) INSERT ..`. Each part runs once, to its end; its rows are given to those
//! that name it.
//!
//! **Problem.** PostgreSQL lets no part see what another one writes: all read the state before the statement, and RETURNING is the only way
//! from one to the next. But what a part writes is checked (unique keys, foreign keys) against what the others have written.
//!
//! **Idea.** Two views of one transaction. Writes go through the one, which keeps what each key held before its first write; reads of rows go
//! through the other, which puts that back.
//!
//! **Invariants.**
//! 1. [`StatementContext::reads`] answers as if nothing had been written since the statement began.
//! 2. A row that a part has written is left alone by all others ([`StatementContext::is_written`]).
//! 3. Foreign keys are asked when all parts are done: a part may refer to what a later one inserts. What they do to other rows
//!    ([`Action`]) they do then, too: those rows are what the parts have left of them.
//!
//! **Caveat.** A reference that finds its row when its part ends is not asked again where a later part deletes that row and says CASCADE: it goes
//! along, where PostgreSQL refuses.

use super::deferred::Deferred;
use super::sort::{Reserved, row_bytes};
use super::target::Target;
use super::writer::Writer;
use crate::SqlError;
use crate::context::{MemoryBudget, StatementContext};
use crate::transaction::{
    Committed, KvError, LockMode, LockWait, ScanChunk, ScanRequest, Span, Transaction, TxnRef, TxnStats,
};
use crate::types::Row;
use bytes::Bytes;
use clock::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a key held before the statement wrote it.
type Images = BTreeMap<Bytes, Option<Bytes>>;

/// What the parts of one running statement share.
pub struct Parts {
    rows: Mutex<Vec<Arc<Vec<Row>>>>,
    /// Memory of those rows.
    reserved: Mutex<Reserved>,
    before: Option<Before>,
    /// What is left to do to rows that point at written ones.
    actions: Mutex<Vec<Action>>,
}

/// A row that went or changed its key, and what pointed at it.
pub(super) struct Action {
    pub(super) target: Arc<Target>,
    /// Which of the keys that point at the table.
    pub(super) key: usize,
    pub(super) old: Row,
    pub(super) new: Option<Row>,
    /// Broken references that were met before: they are asked first.
    pub(super) held: usize,
}

struct Before {
    reads: TxnRef,
    images: Arc<Mutex<Images>>,
}

impl Parts {
    /// For a statement of so many parts: what they share, and the transaction that they write to.
    pub fn new(context: &StatementContext, count: usize, writes: bool) -> (Parts, TxnRef) {
        let rows = Mutex::new(vec![Arc::default(); count]);
        let reserved = Mutex::new(Reserved::new(&context.memory));
        if !writes {
            return (Parts { rows, reserved, before: None, actions: Mutex::default() }, context.txn.clone());
        }
        let images = Arc::<Mutex<Images>>::default();
        let view = |before| {
            let (inner, images, memory) = (context.txn.clone(), images.clone(), context.memory.clone());
            TxnRef::new(Box::new(View { inner, images, before, memory }))
        };
        let (reads, writer) = (view(true), view(false));
        (Parts { rows, reserved, before: Some(Before { reads, images }), actions: Mutex::default() }, writer)
    }

    /// Takes the rows of a part.
    ///
    /// # Errors
    /// 53200 beyond the statement's memory.
    pub fn give(&self, part: usize, rows: Vec<Row>) -> Result<(), SqlError> {
        self.reserved.lock().take(rows.iter().map(|row| row_bytes(row)).sum())?;
        self.rows.lock()[part] = Arc::new(rows);
        Ok(())
    }

    /// Keeps what a foreign key has to do until all parts are done.
    ///
    /// # Errors
    /// 53200 beyond the statement's memory.
    pub(super) fn queue(&self, action: Action) -> Result<(), SqlError> {
        self.reserved.lock().take(row_bytes(&action.old) + action.new.as_deref().map_or(0, row_bytes))?;
        self.actions.lock().push(action);
        Ok(())
    }

    /// Whether parts of the statement write.
    pub(super) fn writes(&self) -> bool {
        self.before.is_some()
    }

    /// All parts are done: does what foreign keys say about the rows that point at those written, and asks the broken references that were
    /// met before. `context`: the statement's own, in which nothing
    /// is put back.
    ///
    /// # Errors
    /// Those of the writes.
    pub fn act(&self, held: &Deferred, context: &Arc<StatementContext>) -> Result<(), SqlError> {
        let actions = std::mem::take(&mut *self.actions.lock());
        let mut writer = Writer::new(context);
        let mut settled = 0;
        for Action { target, key, old, new, held: before } in actions {
            context.check()?;
            held.settle(before - settled, &context.deferred, context)?;
            settled = before;
            writer.follow(&target, key, &old, new.as_deref())?;
        }
        writer.finish()
    }

    /// The rows of a part that has run.
    pub fn rows(&self, part: usize) -> Arc<Vec<Row>> {
        self.rows.lock().get(part).cloned().unwrap_or_default()
    }
}

impl StatementContext {
    /// The transaction as rows are read from it: without what other parts of the statement have written.
    pub fn reads(&self) -> &TxnRef {
        let before = self.parts.as_ref().and_then(|parts| parts.before.as_ref());
        before.map_or(&self.txn, |before| &before.reads)
    }

    /// Whether a part of the statement has written this key.
    pub(crate) fn is_written(&self, key: &[u8]) -> bool {
        let before = self.parts.as_ref().and_then(|parts| parts.before.as_ref());
        before.is_some_and(|before| before.images.lock().contains_key(key))
    }
}

/// One of the two views of a transaction.
struct View {
    inner: TxnRef,
    images: Arc<Mutex<Images>>,
    /// Reads give what was there before.
    before: bool,
    memory: Arc<MemoryBudget>,
}

impl View {
    /// Keeps what a key holds, before its first write.
    fn keep(&self, key: &Bytes) -> Result<(), KvError> {
        if self.images.lock().contains_key(key) {
            return Ok(());
        }
        let image = self.inner.with(|txn| txn.get(key))?;
        let bytes = key.len() + image.as_ref().map_or(0, Bytes::len);
        if self.memory.take(bytes).is_err() {
            let limit = self.memory.limit_bytes();
            return Err(KvError::TooLarge { what: "a statement that writes in WITH", bytes: limit + bytes, limit });
        }
        self.images.lock().insert(key.clone(), image);
        Ok(())
    }

    fn image(&self, key: &[u8]) -> Option<Option<Bytes>> {
        if self.before { self.images.lock().get(key).cloned() } else { None }
    }

    /// Puts back what a chunk's keys held.
    fn restore(&self, request: &ScanRequest, chunk: &mut ScanChunk) {
        if !self.before {
            return;
        }
        let (mut start, mut end) = (request.span.start.clone(), request.span.end.clone());
        match &chunk.rest {
            Some(rest) if request.reverse => start = rest.end.clone(),
            Some(rest) => end = rest.start.clone(),
            None => {}
        }
        let images = self.images.lock();
        if start >= end {
            return;
        }
        let mut written = images.range(start..end).peekable();
        if written.peek().is_none() {
            return;
        }
        let mut rows: BTreeMap<Bytes, Bytes> = chunk.rows.drain(..).collect();
        for (key, image) in written {
            match image {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        chunk.rows = if request.reverse { rows.into_iter().rev().collect() } else { rows.into_iter().collect() };
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if !self.before {
            let bytes = |(key, image): (&Bytes, &Option<Bytes>)| key.len() + image.as_ref().map_or(0, Bytes::len);
            self.memory.give(self.images.lock().iter().map(bytes).sum());
        }
    }
}

impl Transaction for View {
    fn snapshot(&self) -> Timestamp {
        self.inner.with(|txn| txn.snapshot())
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.image(key).map_or_else(|| self.inner.with(|txn| txn.get(key)), Ok)
    }
    fn get_certified(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.image(key).map_or_else(|| self.inner.with(|txn| txn.get_certified(key)), Ok)
    }
    fn scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        let mut chunk = self.inner.with(|txn| txn.scan(request))?;
        self.restore(request, &mut chunk);
        Ok(chunk)
    }
    fn peek(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.image(key).map_or_else(|| self.inner.with(|txn| txn.peek(key)), Ok)
    }
    fn peek_scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        let mut chunk = self.inner.with(|txn| txn.peek_scan(request))?;
        self.restore(request, &mut chunk);
        Ok(chunk)
    }
    fn observe_scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        let mut chunk = self.inner.with(|txn| txn.observe_scan(request))?;
        self.restore(request, &mut chunk);
        Ok(chunk)
    }
    fn guards_references(&self) -> bool {
        self.inner.with(|txn| txn.guards_references())
    }
    fn unreferred(&mut self, key: &Bytes, since: Timestamp) -> bool {
        self.inner.with(|txn| txn.unreferred(key, since))
    }
    fn rely(&mut self, key: &Bytes, since: Timestamp, certified: bool) -> Result<(), KvError> {
        self.inner.with(|txn| txn.rely(key, since, certified))
    }
    fn scan_certified(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        let mut chunk = self.inner.with(|txn| txn.scan_certified(request))?;
        self.restore(request, &mut chunk);
        Ok(chunk)
    }
    fn lock_as(&mut self, key: &[u8], mode: LockMode, wait: LockWait) -> Result<bool, KvError> {
        self.inner.with(|txn| txn.lock_as(key, mode, wait))
    }
    fn hold(&mut self, key: &[u8], mode: LockMode) -> Result<(), KvError> {
        self.inner.with(|txn| txn.hold(key, mode))
    }
    fn is_full_of_locks(&self) -> bool {
        self.inner.with(|txn| txn.is_full_of_locks())
    }
    fn is_far(&self) -> bool {
        self.inner.with(|txn| txn.is_far())
    }
    fn read_ahead(&mut self, keys: &[Bytes]) -> Result<(), KvError> {
        self.inner.with(|txn| txn.read_ahead(keys))
    }
    fn scan_ahead(&mut self, requests: &[ScanRequest]) -> Result<bool, KvError> {
        self.inner.with(|txn| txn.scan_ahead(requests))
    }
    fn find_gap(&mut self, span: &Span, end: &Bytes) -> Result<bool, KvError> {
        self.inner.with(|txn| txn.find_gap(span, end))
    }
    fn lock_ahead(&mut self, keys: &[Bytes], mode: LockMode) {
        self.inner.with(|txn| txn.lock_ahead(keys, mode));
    }
    fn present(&mut self, key: &[u8]) -> Result<bool, KvError> {
        self.inner.with(|txn| txn.present(key))
    }
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), KvError> {
        self.keep(&key)?;
        self.inner.with(|txn| txn.put(key, value))
    }
    fn delete(&mut self, key: Bytes) -> Result<(), KvError> {
        self.keep(&key)?;
        self.inner.with(|txn| txn.delete(key))
    }
    fn overwrite(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), KvError> {
        self.inner.with(|txn| txn.overwrite(key, value))
    }
    fn frees_space(&mut self) {
        self.inner.with(|txn| txn.frees_space());
    }
    fn begin_statement(&mut self) -> Result<(), KvError> {
        self.inner.with(|txn| txn.begin_statement())
    }
    fn savepoint(&mut self) -> u32 {
        self.inner.with(|txn| txn.savepoint())
    }
    fn rollback_to(&mut self, savepoint: u32) {
        self.inner.with(|txn| txn.rollback_to(savepoint));
    }
    fn release_since(&mut self, savepoint: u32) {
        self.inner.with(|txn| txn.release_since(savepoint));
    }
    fn note_locks(&mut self) {
        self.inner.with(|txn| txn.note_locks());
    }
    fn release_noted(&mut self) {
        self.inner.with(|txn| txn.release_noted());
    }
    fn has_writes(&self) -> bool {
        self.inner.with(|txn| txn.has_writes())
    }
    fn commit(&mut self) -> Result<Committed, KvError> {
        self.inner.with(|txn| txn.commit())
    }
    fn rollback(&mut self) {
        self.inner.with(|txn| txn.rollback());
    }
    fn stats(&self) -> TxnStats {
        self.inner.with(|txn| txn.stats())
    }
}
