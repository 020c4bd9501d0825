//! What a statement may use up while it computes: how it is ended inside one long function, and what it may hold there.
//!
//! **Problem.** Loops over rows look at the statement's context whether it was cancelled. Below them lie functions, casts, folding and
//! parsers: hundreds of small pieces that are given values and nothing else, some of them before there is a statement. One call of one
//! of them may take minutes, or make a gigabyte.
//!
//! **Idea.** A statement runs on one thread. Its session lends its limits to the thread for as long as it handles a message
//! ([`Limits::lend`]). Whoever loops over the insides of a value says what it has done ([`step`]), whoever builds one takes what it
//! will hold ([`Held`]) and asks whether a value may be so large (`types::value_fits`). `types::Text` and `types::Items` do all three.
//!
//! **Invariants.**
//! 1. A call of a function is at least as many units as its arguments have bytes: a function that is linear in them needs no steps of
//!    its own. All others take steps.
//! 2. Between two looks lie at most [`UNITS_PER_LOOK`] units and one step.
//! 3. No value is larger than `types::VALUE_BYTES_MAX`: builders know it before they allocate, and results are weighed in one place besides
//!    (`types::bounded`).
//!
//! **Caveats.** Outside a session (tests, background work) nothing is lent: steps succeed, and only values are bounded.

mod pace;

pub use pace::{Pace, STEPS_PER_LOOK};

use crate::error::{SqlError, SqlState};
use crate::memory::MemoryBudget;
use crate::transaction::{Kv, KvError, Patience};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Units of work between two looks. A unit is about what a byte costs that is copied and compared: a nanosecond, or a few.
pub const UNITS_PER_LOOK: usize = 1 << 20;
/// Units that a check between rows counts for: rows alone bring a look, too.
pub const UNITS_PER_CHECK: usize = UNITS_PER_LOOK / 16;
/// The client is looked for so often, microseconds: it is a system call.
const PROBE_EVERY_US: i64 = 50_000;

/// The limits of a session's statements.
pub struct Limits {
    patience: Patience,
    kv: Arc<dyn Kv>,
    probed_us: AtomicI64,
}

/// What the thread was lent.
#[derive(Default)]
pub struct Lent {
    limits: Option<Arc<Limits>>,
    /// For work before a statement runs.
    memory: Option<Arc<MemoryBudget>>,
    /// Of the statement that runs.
    statement: Option<Arc<MemoryBudget>>,
}

impl Lent {
    const NOTHING: Lent = Lent { limits: None, memory: None, statement: None };
}

thread_local! {
    static LENT: RefCell<Lent> = const { RefCell::new(Lent::NOTHING) };
    static LEFT: Cell<usize> = const { Cell::new(UNITS_PER_LOOK) };
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

impl Limits {
    /// What ends the statements of a session, and whose clock tells.
    pub fn new(patience: Patience, kv: Arc<dyn Kv>) -> Arc<Limits> {
        Arc::new(Limits { patience, kv, probed_us: AtomicI64::new(0) })
    }

    /// Lends them to this thread, until the loan is dropped. `memory` is that of work before a statement runs: see [`use_memory`].
    #[must_use]
    pub fn lend(self: &Arc<Self>, memory: Arc<MemoryBudget>) -> Loan {
        let lent = Lent { limits: Some(self.clone()), memory: Some(memory), statement: None };
        Loan { before: LENT.replace(lent), not_send: PhantomData }
    }

    fn look(&self) -> Result<(), SqlError> {
        if self.patience.interrupt.is_raised() {
            return Err(KvError::Interrupted.into());
        }
        let now_us = self.kv.monotonic_us();
        if self.patience.deadline.has_passed_at(|| now_us) {
            return Err(timed_out());
        }
        if now_us.saturating_sub(self.probed_us.load(Ordering::Relaxed)).saturating_abs() >= PROBE_EVERY_US {
            self.probed_us.store(now_us, Ordering::Relaxed);
            if self.patience.interrupt.look() {
                return Err(KvError::Interrupted.into());
            }
        }
        Ok(())
    }
}

/// The limits of a session, while they are not lent. Lending moves them: a session lends with every message, so nothing is counted.
pub struct Purse(Lent);

impl Purse {
    /// A session's.
    pub fn new(limits: Arc<Limits>) -> Purse {
        Purse(Lent { limits: Some(limits), ..Lent::NOTHING })
    }

    /// Lends what is in it to this thread, with the memory of work before a statement runs; gives what the thread had. `None`: it is lent already.
    /// [`Purse::take_back`] follows. (After a panic it does not: then the session is given up, and the next loan takes its place.)
    pub fn lend(&mut self, memory: &Arc<MemoryBudget>) -> Option<Lent> {
        self.0.limits.as_ref()?;
        if !self.0.memory.as_ref().is_some_and(|known| Arc::ptr_eq(known, memory)) {
            self.0.memory = Some(memory.clone());
        }
        Some(LENT.replace(std::mem::take(&mut self.0)))
    }

    /// The thread works for the session no more: it has again what it had.
    pub fn take_back(&mut self, before: Option<Lent>) {
        if let Some(before) = before {
            self.0 = LENT.replace(before);
            self.0.statement = None;
        }
    }
}

/// Limits lent to a thread; dropping it takes them back.
pub struct Loan {
    before: Lent,
    not_send: PhantomData<*const ()>,
}

impl Drop for Loan {
    fn drop(&mut self) {
        LENT.set(std::mem::take(&mut self.before));
    }
}

/// 57014
pub fn timed_out() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
}

/// From here on the thread works for this statement: what it holds inside functions counts with the rest of it.
pub fn use_memory(memory: &Arc<MemoryBudget>) {
    LENT.with_borrow_mut(|lent| {
        if lent.limits.is_some() {
            lent.statement = Some(memory.clone());
        }
    });
}

/// So many units of work were done, or are about to be. See [`UNITS_PER_LOOK`].
///
/// # Errors
/// 57014 if the statement was cancelled, its time is over, or its client has gone.
#[inline]
pub fn step(units: usize) -> Result<(), SqlError> {
    let left = LEFT.get();
    if units < left {
        LEFT.set(left - units);
        return Ok(());
    }
    look()
}

/// Looks now.
///
/// # Errors
/// As [`step`].
#[cold]
pub fn look() -> Result<(), SqlError> {
    LEFT.set(UNITS_PER_LOOK);
    LOOKS.set(LOOKS.get() + 1);
    let limits = LENT.with_borrow(|lent| lent.limits.clone());
    limits.map_or(Ok(()), |limits| limits.look())
}

/// How often this thread has looked: tests count it.
pub fn looks() -> u64 {
    LOOKS.get()
}

/// Memory of what a text is read and planned to, of the pool that all statements share: it is there before the statement's own, and
/// after it. Given back when dropped.
#[derive(Debug, Default)]
pub struct Pooled {
    memory: Option<MemoryBudget>,
}

impl Pooled {
    /// Of the pool of the session that the thread works for, if it works for one.
    pub fn new() -> Pooled {
        Pooled { memory: LENT.with_borrow(|lent| lent.memory.as_ref().map(|memory| memory.beside())) }
    }

    /// As [`Pooled::new`], for one of many that a statement may have: each byte is the pool's from the first one on.
    pub fn exact() -> Pooled {
        Pooled { memory: LENT.with_borrow(|lent| lent.memory.as_ref().map(|memory| memory.exact())) }
    }

    /// Whether anybody counts.
    pub fn is_counted(&self) -> bool {
        self.memory.is_some()
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// 53200 beyond the pool.
    pub fn take(&self, bytes: usize) -> Result<(), SqlError> {
        self.memory.as_ref().map_or(Ok(()), |memory| memory.take(bytes))
    }

    /// Gives some of them back: what remains is kept as it is.
    pub fn settle(&self, bytes: usize) {
        if let Some(memory) = &self.memory {
            memory.settle(bytes);
        }
    }
}

/// Bytes that a [`Share`] takes at a time where it grows little by little.
const LITTLE_BYTES: usize = 16 << 10;

/// A part of what several count for together ([`Pooled`]), given back when dropped.
#[derive(Debug, Default)]
pub struct Share {
    of: Arc<Pooled>,
    bytes: usize,
    /// Taken, and not yet used.
    spare_bytes: usize,
}

impl Share {
    /// Of these, and nothing yet.
    pub fn of(all: &Arc<Pooled>) -> Share {
        Share { of: all.clone(), bytes: 0, spare_bytes: 0 }
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// As [`Pooled::take`].
    pub fn take(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.of.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes few bytes, as happens often: of all together they are taken so many at a time.
    ///
    /// # Errors
    /// As [`Share::take`].
    pub fn take_little(&mut self, bytes: usize) -> Result<(), SqlError> {
        if bytes > self.spare_bytes {
            let taken = (bytes - self.spare_bytes).next_multiple_of(LITTLE_BYTES);
            self.take(taken)?;
            self.spare_bytes += taken;
        }
        self.spare_bytes -= bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.settle(self.bytes);
    }
}

/// Memory taken from the statement that the thread works for, given back when dropped.
#[derive(Debug, Default)]
pub struct Held {
    memory: Option<Arc<MemoryBudget>>,
    bytes: usize,
}

impl Held {
    /// Takes bytes.
    ///
    /// # Errors
    /// 53200 beyond the statement's memory.
    pub fn take(&mut self, bytes: usize) -> Result<(), SqlError> {
        if self.memory.is_none() {
            self.memory = LENT.with_borrow(|lent| lent.statement.as_ref().or(lent.memory.as_ref()).cloned());
        }
        if let Some(memory) = &self.memory {
            memory.take(bytes)?;
            self.bytes += bytes;
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            memory.give(self.bytes);
        }
    }
}
