//! What statements may hold: each has a budget, and all of them together share a pool.
//!
//! **Problem.** A bound for each statement bounds nothing as long as there may be hundreds of sessions. One counter for all of them would
//! be written by every row of every statement. **Idea.** A budget counts for itself, and takes from the pool in chunks of
//! [`CHUNK_BYTES`] what it holds beyond [`OWN_BYTES`]: statements that hold little never meet the pool.
//!
//! What there is goes to those who come first, but for the last part of it: that is for those who hold little. Without it two large sorts
//! would have everybody else refused who needs a few megabytes.
//!
//! What can be written out instead ([`MemoryBudget::take_spare`]) is refused a little earlier, and without an error: a sort does not take the last
//! bytes of a query whose other parts cannot do without them.
//!
//! Invariant: the pool has given a budget at least what that holds beyond its own bytes, but for what it took anyway, and gets everything back
//! when the budget goes.

use crate::error::Exceeded;
use crate::{SqlError, SqlState};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A budget takes so much of the pool at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// What a statement holds without asking the pool.
pub const OWN_BYTES: usize = 256 << 10;
/// The last part of the pool, which who holds more than others may not have.
const RESERVE_PART: usize = 4;
/// What is written out where it does not fit leaves this part of a statement's limit to what cannot be.
const UNSPILLED_PART: usize = 8;
/// A budget that has so much too much gives it back before its end.
const SPARE_BYTES_MAX: usize = 4 * CHUNK_BYTES;

thread_local! {
    static HELD_MUCH: Cell<bool> = const { Cell::new(false) };
}

/// Whether a statement of this thread has held more than [`OWN_BYTES`] since this was last asked: what it freed may still be with the
/// thread's allocator.
pub fn held_much() -> bool {
    HELD_MUCH.replace(false)
}

/// The memory of all statements together.
#[derive(Debug)]
pub struct MemoryPool {
    used_bytes: AtomicUsize,
    /// What it has where nothing else needs it.
    share_bytes: usize,
    limit_bytes: AtomicUsize,
    /// Budgets that have something of it.
    holders: AtomicUsize,
}

impl Default for MemoryPool {
    /// One without a bound.
    fn default() -> Self {
        MemoryPool {
            used_bytes: AtomicUsize::new(0),
            share_bytes: usize::MAX,
            limit_bytes: AtomicUsize::new(usize::MAX),
            holders: AtomicUsize::new(0),
        }
    }
}

impl MemoryPool {
    /// One of so many bytes.
    pub fn new(limit_bytes: usize) -> Arc<MemoryPool> {
        let share_bytes = limit_bytes;
        Arc::new(MemoryPool { share_bytes, limit_bytes: AtomicUsize::new(limit_bytes), ..MemoryPool::default() })
    }
    /// What it was made with, whatever is left of that now ([`MemoryPool::set_limit_bytes`]).
    pub fn share_bytes(&self) -> usize {
        self.share_bytes
    }
    /// The greatest number of bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes.load(Relaxed)
    }
    /// From now on it gives out at most so many: what is out already stays out.
    pub fn set_limit_bytes(&self, limit_bytes: usize) {
        self.limit_bytes.store(limit_bytes, Relaxed);
    }
    /// Bytes given out now.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Relaxed)
    }
    /// Takes bytes for who has `held` already, and is one of the holders because of that, or not.
    fn take(&self, held: usize, bytes: usize, is_holder: bool) -> bool {
        let limit = self.limit_bytes();
        // As if one more came: there is to be something for it.
        let others = self.holders.load(Relaxed) + usize::from(held == 0 || !is_holder);
        let much = held.saturating_add(bytes) > limit / (others + 1);
        let limit = if much { limit - limit / RESERVE_PART } else { limit };
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
        self.used_bytes.fetch_update(Relaxed, Relaxed, more).is_ok()
    }
    fn give(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Relaxed);
    }
    /// Who had `before` has `after` now.
    fn count(&self, before: usize, after: usize) {
        match (before, after) {
            (0, 1..) => self.holders.fetch_add(1, Relaxed),
            (1.., 0) => self.holders.fetch_sub(1, Relaxed),
            _ => 0,
        };
    }
}

/// Bounds the memory of one statement (sorts, hashes, buffers).
#[derive(Debug)]
pub struct MemoryBudget {
    used_bytes: AtomicUsize,
    /// Of these, what is kept to be written.
    to_write_bytes: AtomicUsize,
    limit_bytes: usize,
    pool: Arc<MemoryPool>,
    /// Taken from the pool.
    reserved_bytes: AtomicUsize,
    /// Holds without asking the pool, and takes of it at a time.
    own_bytes: usize,
    chunk_bytes: usize,
    /// Whether others leave room for it once it has something: not if it only keeps what it has, as a prepared statement's tree.
    is_holder: bool,
}

impl MemoryBudget {
    /// A budget of `limit_bytes`, in a pool of its own.
    pub fn new(limit_bytes: usize) -> Self {
        MemoryBudget::of(Arc::default(), limit_bytes)
    }
    /// A budget of `limit_bytes` from a pool.
    pub fn of(pool: Arc<MemoryPool>, limit_bytes: usize) -> Self {
        let (used_bytes, to_write_bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (reserved_bytes, own_bytes, chunk_bytes) = (AtomicUsize::new(0), OWN_BYTES, CHUNK_BYTES);
        let is_holder = true;
        MemoryBudget {
            used_bytes,
            to_write_bytes,
            limit_bytes,
            pool,
            reserved_bytes,
            own_bytes,
            chunk_bytes,
            is_holder,
        }
    }
    /// Another one from the same pool, which nothing else bounds, and which lessens what others may have by no more than it holds.
    pub fn beside(&self) -> MemoryBudget {
        let mut budget = MemoryBudget::of(self.pool.clone(), usize::MAX);
        budget.is_holder = false;
        budget
    }
    /// As [`MemoryBudget::beside`], with nothing of its own, and never more than it holds: there may be very many of them.
    pub fn exact(&self) -> MemoryBudget {
        let mut budget = self.beside();
        (budget.own_bytes, budget.chunk_bytes) = (0, 1);
        budget
    }
    /// The greatest number of bytes.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }
    /// Takes bytes.
    ///
    /// # Errors
    /// 53200 beyond the limit or the pool's, with the setting to change.
    #[inline]
    pub fn take(&self, bytes: usize) -> Result<(), SqlError> {
        let used = self.used_bytes.fetch_add(bytes, Relaxed) + bytes;
        let refused = if used > self.limit_bytes {
            self.beyond_the_limit()
        } else if self.reserve(used) {
            return Ok(());
        } else {
            self.beyond_the_pool()
        };
        self.used_bytes.fetch_sub(bytes, Relaxed);
        Err(refused)
    }
    /// Takes bytes of what is kept to be written.
    ///
    /// # Errors
    /// As [`MemoryBudget::take`]; it says that what the statement writes does not fit.
    pub fn take_to_write(&self, bytes: usize) -> Result<(), SqlError> {
        match self.take(bytes) {
            Ok(()) => {
                self.to_write_bytes.fetch_add(bytes, Relaxed);
                Ok(())
            }
            Err(e) => Err(e.with(|e| e.exceeds_writes = Some(self.exceeded(bytes)))),
        }
    }
    /// So much of what is held is not kept to be written any more. It is still to be given back.
    pub fn is_written(&self, bytes: usize) {
        self.to_write_bytes.fetch_sub(bytes, Relaxed);
    }
    /// What so many bytes more do not fit.
    fn exceeded(&self, more_bytes: usize) -> Exceeded {
        let is_own = self.used_bytes.load(Relaxed).saturating_add(more_bytes) > self.limit_bytes;
        Exceeded {
            bytes: self.to_write_bytes.load(Relaxed).saturating_add(more_bytes),
            share: self.pool.share_bytes(),
            others: self.pool.used_bytes().saturating_sub(self.reserved_bytes.load(Relaxed)),
            own_limit: is_own.then_some(self.limit_bytes),
        }
    }
    /// Takes bytes of what can be written out instead: what can not finds [`UNSPILLED_PART`] of the limit left. Whether they were there.
    #[inline]
    pub fn take_spare(&self, bytes: usize) -> bool {
        let used = self.used_bytes.fetch_add(bytes, Relaxed) + bytes;
        if used <= self.limit_bytes - self.limit_bytes / UNSPILLED_PART && self.reserve(used) {
            return true;
        }
        self.used_bytes.fetch_sub(bytes, Relaxed);
        false
    }
    /// Takes bytes without which nothing goes on, whatever the limit: they are few, and missing to those who ask.
    pub fn take_anyway(&self, bytes: usize) {
        let used = self.used_bytes.fetch_add(bytes, Relaxed) + bytes;
        self.reserve(used);
    }
    /// Gives bytes back.
    #[inline]
    pub fn give(&self, bytes: usize) {
        let used = self.used_bytes.fetch_sub(bytes, Relaxed) - bytes;
        let needed = used.saturating_sub(self.own_bytes);
        let reserved = self.reserved_bytes.load(Relaxed);
        if reserved.saturating_sub(needed) > SPARE_BYTES_MAX {
            let kept = needed.next_multiple_of(self.chunk_bytes);
            // Another thread of the statement may have been faster: then it is its affair.
            if self.reserved_bytes.compare_exchange(reserved, kept, Relaxed, Relaxed).is_ok() {
                self.pool.give(reserved - kept);
                self.count(reserved, kept);
            }
        }
    }

    /// Gives bytes back, and to the pool all that is not held any more: there will be no more.
    pub fn settle(&self, bytes: usize) {
        let used = self.used_bytes.fetch_sub(bytes, Relaxed) - bytes;
        let (kept, reserved) = (used.saturating_sub(self.own_bytes), self.reserved_bytes.load(Relaxed));
        if kept < reserved && self.reserved_bytes.compare_exchange(reserved, kept, Relaxed, Relaxed).is_ok() {
            self.pool.give(reserved - kept);
            self.count(reserved, kept);
        }
    }

    /// Who has `before` of the pool has `after` now.
    fn count(&self, before: usize, after: usize) {
        if self.is_holder {
            self.pool.count(before, after);
        }
    }

    /// Has the pool give what holding `used` bytes needs.
    fn reserve(&self, used: usize) -> bool {
        let reserved = self.reserved_bytes.load(Relaxed);
        let missing = used.saturating_sub(self.own_bytes).saturating_sub(reserved);
        if missing == 0 {
            return true;
        }
        let chunks = missing.next_multiple_of(self.chunk_bytes);
        let taken = [chunks, missing].into_iter().find(|bytes| self.pool.take(reserved, *bytes, self.is_holder));
        if used > OWN_BYTES {
            HELD_MUCH.set(true);
        }
        let more = taken.unwrap_or(0);
        let before = self.reserved_bytes.fetch_add(more, Relaxed);
        self.count(before, before + more);
        taken.is_some()
    }

    #[cold]
    fn beyond_the_limit(&self) -> SqlError {
        let message = format!("the statement needs more than {} bytes of memory", self.limit_bytes);
        SqlError::new(SqlState::OUT_OF_MEMORY, message)
            .hint("Read fewer rows at a time, or raise timeball.query_memory_bytes.")
    }

    #[cold]
    fn beyond_the_pool(&self) -> SqlError {
        let limit = self.pool.limit_bytes();
        let message = format!("the statements of all sessions together need more than {limit} bytes of memory");
        SqlError::new(SqlState::OUT_OF_MEMORY, message).hint(
            "Read fewer rows at a time, run fewer such statements at a time, or start the node with more --memory.",
        )
    }
}

impl Drop for MemoryBudget {
    fn drop(&mut self) {
        let reserved = *self.reserved_bytes.get_mut();
        // Mostly there is none: then what all sessions share is not touched.
        if reserved > 0 {
            self.pool.give(reserved);
            self.count(reserved, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_statements_do_not_meet_the_pool() {
        let pool = MemoryPool::new(0);
        let budget = MemoryBudget::of(pool.clone(), 1 << 30);
        budget.take(OWN_BYTES).unwrap();
        let refused = budget.take(1).unwrap_err();
        assert_eq!((refused.state, pool.used_bytes()), (SqlState::OUT_OF_MEMORY, 0));
        assert!(held_much() && !held_much(), "it was said once");
        assert!(refused.message.contains("all sessions") && refused.hint.as_deref().unwrap().contains("--memory"));
        budget.give(OWN_BYTES);
        budget.take(OWN_BYTES).unwrap();
    }

    #[test]
    fn statements_share_what_there_is() {
        let pool = MemoryPool::new(8 << 20);
        let (one, other) = (MemoryBudget::of(pool.clone(), 1 << 30), MemoryBudget::of(pool.clone(), 3 << 20));
        assert!(other.take((3 << 20) + 1).unwrap_err().message.contains("the statement needs more than 3145728"));
        one.take(6 << 20).unwrap();
        other.take(2 << 20).unwrap();
        assert_eq!(pool.used_bytes(), 8 << 20, "in whole chunks");
        assert!(other.take(1 << 20).unwrap_err().message.contains("all sessions"));
        one.give(6 << 20);
        other.take(1 << 20).unwrap();
        drop(one);
        drop(other);
        assert_eq!(pool.used_bytes(), 0);
    }

    #[test]
    fn what_can_be_written_out_leaves_something() {
        let budget = MemoryBudget::new(8 << 20);
        assert!(budget.take_spare(7 << 20) && !budget.take_spare(1));
        budget.take(1 << 20).unwrap();
        assert!(budget.take(1).is_err());
        budget.take_anyway(64 << 10);
        budget.give((8 << 20) + (64 << 10));
        assert!(budget.take_spare(7 << 20));
    }

    #[test]
    fn what_was_taken_anyway_goes_back_as_the_rest() {
        let pool = MemoryPool::new(1 << 20);
        let (one, other) = (MemoryBudget::of(pool.clone(), 1 << 30), MemoryBudget::of(pool.clone(), 1 << 30));
        one.take(1 << 20).unwrap();
        assert!(!other.take_spare(2 << 20));
        other.take_anyway(2 << 20);
        assert!(pool.used_bytes() <= 1 << 20);
        other.give(2 << 20);
        drop((one, other));
        assert_eq!(pool.used_bytes(), 0);
    }

    /// Not what is held besides, nor what others have left of the pool.
    #[test]
    fn what_is_kept_to_be_written_is_compared_with_the_share() {
        let pool = MemoryPool::new(8 << 20);
        let budget = MemoryBudget::of(pool.clone(), 1 << 30);
        budget.take(4 << 20).unwrap();
        budget.take_to_write(1 << 20).unwrap();
        let other = MemoryBudget::of(pool.clone(), 1 << 30);
        other.take(2 << 20).unwrap();
        pool.set_limit_bytes(2 << 20);
        let exceeded = |bytes| budget.take_to_write(bytes).unwrap_err().exceeds_writes.unwrap();
        let others = pool.used_bytes() - budget.reserved_bytes.load(Relaxed);
        assert!(others > 1 << 20, "{others}");
        assert_eq!(exceeded(3 << 20), Exceeded { bytes: 4 << 20, share: 8 << 20, others, own_limit: None });
        assert!(exceeded(2 << 20).by_itself() && !exceeded(512 << 10).by_itself());
        budget.is_written(1 << 20);
        assert_eq!(exceeded(3 << 20).bytes, 3 << 20);
        let small = MemoryBudget::of(pool, 1 << 20);
        assert_eq!(small.take_to_write(2 << 20).unwrap_err().exceeds_writes.unwrap().own_limit, Some(1 << 20));
    }

    #[test]
    fn a_lower_limit_takes_nothing_back() {
        let pool = MemoryPool::new(8 << 20);
        let budget = MemoryBudget::of(pool.clone(), 1 << 30);
        budget.take(4 << 20).unwrap();
        pool.set_limit_bytes(2 << 20);
        assert!(budget.take(1 << 20).unwrap_err().message.contains("more than 2097152 bytes"));
        assert_eq!(pool.used_bytes(), 4 << 20);
        pool.set_limit_bytes(8 << 20);
        budget.take(1 << 20).unwrap();
    }

    #[test]
    fn the_last_bytes_of_the_pool_are_given_too() {
        let pool = MemoryPool::new(100);
        let budget = MemoryBudget::of(pool.clone(), 1 << 30);
        budget.take(OWN_BYTES + 75).unwrap();
        assert_eq!(pool.used_bytes(), 75);
        assert!(budget.take(1).is_err());
        let other = MemoryBudget::of(pool.clone(), 1 << 30);
        other.take(OWN_BYTES + 25).unwrap();
        assert_eq!(pool.used_bytes(), 100);
    }

    /// What lies there lessens what others may have by itself, not by a share for each.
    #[test]
    fn what_is_kept_is_no_holder() {
        let pool = MemoryPool::new(64 << 20);
        let budget = MemoryBudget::of(pool.clone(), 1 << 30);
        let kept: Vec<_> = (0..10).map(|_| budget.beside()).collect();
        for one in &kept {
            one.take(OWN_BYTES + (2 << 20)).unwrap();
            one.settle(1 << 20);
        }
        assert_eq!((pool.used_bytes(), pool.holders.load(Relaxed)), (10 << 20, 0));
        while budget.take(1 << 20).is_ok() {}
        assert_eq!(pool.used_bytes(), 48 << 20, "one alone may have nearly all of the rest");
        assert!(kept[0].take(40 << 20).is_err());
        drop((budget, kept));
        assert_eq!((pool.used_bytes(), pool.holders.load(Relaxed)), (0, 0));
    }

    /// Very many of them hold what they hold together.
    #[test]
    fn what_is_exact_counts_from_its_first_byte() {
        let pool = MemoryPool::new(1 << 20);
        let budget = MemoryBudget::of(pool.clone(), 1 << 30);
        let many: Vec<_> = (0..120).map(|_| budget.exact()).collect();
        held_much();
        assert_eq!(many.iter().filter(|one| one.take(10_000).is_ok()).count(), 104);
        assert_eq!((pool.used_bytes(), pool.holders.load(Relaxed), held_much()), (1_040_000, 0, false));
        drop(many);
        assert_eq!(pool.used_bytes(), 0);
    }

    #[test]
    fn something_is_left_for_those_who_hold_little() {
        let pool = MemoryPool::new(64 << 20);
        let budgets: Vec<_> = (0..6).map(|_| MemoryBudget::of(pool.clone(), 1 << 30)).collect();
        let [sort, hash, others @ ..] = &budgets[..] else { panic!("six") };
        while sort.take(1 << 20).is_ok() {}
        let lone = pool.used_bytes();
        assert_eq!(lone, 48 << 20, "one alone may have nearly all");
        sort.give(24 << 20);
        while hash.take(1 << 20).is_ok() {}
        assert!(pool.used_bytes() <= 48 << 20, "two together no more");
        for other in others {
            other.take(4 << 20).unwrap();
        }
        assert!(others[0].take(16 << 20).is_err(), "who then wants much is as they are");
        drop(budgets);
        assert_eq!((pool.used_bytes(), pool.holders.load(Relaxed)), (0, 0));
    }
}
