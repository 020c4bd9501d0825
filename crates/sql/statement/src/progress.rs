//! How far a long statement is, as the others may ask: `pg_stat_progress_copy`, `pg_stat_progress_create_index`.
//!
//! The statement puts a [`Task`] into its session's [`Progress`] and counts in it as it goes; it is gone when the statement drops what
//! it was given ([`Shown`]), however it ends. Counting takes no lock.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// What is counted.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }
    /// So many.
    pub fn set(&self, count: u64) {
        self.0.store(count, Relaxed);
    }
    /// How many.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A COPY.
#[derive(Debug, Default)]
pub struct CopyProgress {
    /// The table; 0: a query.
    pub table: u32,
    /// Whether rows come in.
    pub from: bool,
    /// Bytes of data that went through.
    pub bytes: Count,
    /// Rows.
    pub rows: Count,
}

/// An index being made, alone or by rewriting its table.
#[derive(Debug, Default)]
pub struct IndexProgress {
    /// The table.
    pub table: u32,
    /// The index.
    pub index: u32,
    phase: AtomicU8,
    /// Rows or entries to go through in this phase; 0: nobody knows.
    pub total: Count,
    /// Of these, how many are done.
    pub done: Count,
}

/// What is done for an index now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPhase {
    /// Rows are read, and what is in order is written.
    Scanning = 0,
    /// Entries are merged and written.
    Loading = 1,
    /// Writers that do not know of the index yet are waited for.
    WaitingBefore = 2,
    /// Writers that do not maintain it yet are waited for.
    WaitingAfter = 3,
    /// What they have changed meanwhile is brought in.
    CatchingUp = 4,
}

impl IndexProgress {
    /// The next phase, of so many rows or entries.
    pub fn enter(&self, phase: IndexPhase, total: u64) {
        self.done.set(0);
        self.total.set(total);
        self.phase.store(phase as u8, Relaxed);
    }
    /// As PostgreSQL names it.
    pub fn phase(&self) -> &'static str {
        match self.phase.load(Relaxed) {
            0 => "building index: scanning table",
            1 => "building index: loading tuples in tree",
            2 => "waiting for writers before build",
            3 => "waiting for writers before validation",
            _ => "index validation: scanning table",
        }
    }
}

/// A column that the rows of a table get while it is written.
#[derive(Debug, Default)]
pub struct ColumnProgress {
    /// The table.
    pub table: u32,
    /// Where rows hold it.
    pub place: u16,
    phase: AtomicU8,
    /// Rows to go through; 0: nobody knows.
    pub total: Count,
    /// Of these, how many are done.
    pub done: Count,
}

/// What is done for a column now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnPhase {
    /// Writers that do not know of it yet are waited for.
    WaitingBefore = 0,
    /// The rows that were there get it.
    Filling = 1,
    /// It is shown, once those have ended who write the old one.
    WaitingAfter = 2,
}

impl ColumnProgress {
    /// The next phase.
    pub fn enter(&self, phase: ColumnPhase) {
        self.phase.store(phase as u8, Relaxed);
    }
    /// In words like those for indexes.
    pub fn phase(&self) -> &'static str {
        match self.phase.load(Relaxed) {
            0 => "waiting for writers before filling",
            1 => "filling rows",
            _ => "waiting for writers before showing",
        }
    }
}

/// What a session is busy with for long.
#[derive(Clone, Debug)]
pub enum Task {
    /// COPY.
    Copy(Arc<CopyProgress>),
    /// CREATE INDEX, ADD PRIMARY KEY.
    Index(Arc<IndexProgress>),
    /// ADD COLUMN, ALTER COLUMN .. TYPE beside writers.
    Column(Arc<ColumnProgress>),
}

/// The present task of a session.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Option<Task>>);

impl Progress {
    /// The task, if there is one.
    pub fn task(&self) -> Option<Task> {
        self.0.lock().clone()
    }

    /// Shows a COPY.
    pub fn show_copy(self: &Arc<Self>, table: u32, from: bool) -> Shown<CopyProgress> {
        let task = Arc::new(CopyProgress { table, from, ..CopyProgress::default() });
        *self.0.lock() = Some(Task::Copy(task.clone()));
        Shown { progress: self.clone(), task }
    }

    /// Shows the making of an index.
    pub fn show_index(self: &Arc<Self>, table: u32, index: u32) -> Shown<IndexProgress> {
        let task = Arc::new(IndexProgress { table, index, ..IndexProgress::default() });
        *self.0.lock() = Some(Task::Index(task.clone()));
        Shown { progress: self.clone(), task }
    }

    /// Shows the filling of a column.
    pub fn show_column(self: &Arc<Self>, table: u32, place: u16) -> Shown<ColumnProgress> {
        let task = Arc::new(ColumnProgress { table, place, ..ColumnProgress::default() });
        *self.0.lock() = Some(Task::Column(task.clone()));
        Shown { progress: self.clone(), task }
    }
}

/// A task that is shown until this is dropped.
pub struct Shown<T> {
    progress: Arc<Progress>,
    /// What is counted.
    pub task: Arc<T>,
}

impl<T> Drop for Shown<T> {
    fn drop(&mut self) {
        *self.progress.0.lock() = None;
    }
}
