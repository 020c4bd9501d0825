//! Tokens that a change of the catalog is about to end: who can begin anew waits before he writes by one.
//!
//! **Problem.** Whoever begins to write by a version between the last look of a change for such (`sql::users`) and its commit is refused at his own. Between nodes that time is some round trips.
//!
//! **Idea.** The change says first, to each node, what it will end; then it looks. A statement says what it writes by first ([`crate::catalog::reliance::Relied`]); then it looks here. So one of the two sees the
//! other. Decision 224.
//!
//! **Invariants.**
//! 1. Safety is the tokens': all of this may be lost, or come late.
//! 2. What is said here ends by itself ([`STANDS_US`]), should its node be gone.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// So long it stands unless it is said again or taken back, microseconds.
pub const STANDS_US: i64 = 2_000_000;
/// So many changes can be about to end something; of more nobody hears.
pub const ENDINGS_MAX: usize = 256;

/// See the module. Of one node.
#[derive(Debug, Default)]
pub struct Endings {
    /// There may be some.
    any: AtomicBool,
    /// By the number of the change: what it ends, and until when that stands.
    all: Mutex<BTreeMap<u64, (Vec<Bytes>, i64)>>,
}

impl Endings {
    /// A change will end these tokens. What it writes by is looked at afterwards.
    pub fn say(&self, change: u64, tokens: &[Bytes], now_us: i64) {
        let mut all = self.all.lock();
        all.retain(|_, (_, until_us)| *until_us > now_us);
        if all.len() < ENDINGS_MAX || all.contains_key(&change) {
            all.insert(change, (tokens.to_vec(), now_us.saturating_add(STANDS_US)));
        }
        self.any.store(true, Ordering::SeqCst);
        drop(all);
        fence(Ordering::SeqCst);
    }

    /// It has ended them, or will not.
    pub fn take_back(&self, change: u64) {
        let mut all = self.all.lock();
        all.remove(&change);
        self.any.store(!all.is_empty(), Ordering::SeqCst);
    }

    /// Whether there may be any. Whoever writes by something has said so before.
    pub fn any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.any.load(Ordering::SeqCst)
    }

    /// Whether one of these is about to end.
    pub fn contains(&self, tokens: &[Bytes], now_us: impl Fn() -> i64) -> bool {
        if !self.any() {
            return false;
        }
        let mut all = self.all.lock();
        let now_us = now_us();
        all.retain(|_, (_, until_us)| *until_us > now_us);
        self.any.store(!all.is_empty(), Ordering::SeqCst);
        all.values().any(|(ended, _)| ended.iter().any(|token| tokens.contains(token)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Bytes = Bytes::from_static(b"t");

    #[test]
    fn what_is_said_stands_until_it_is_taken_back_or_old() {
        let endings = Endings::default();
        let is_held = |now_us| endings.contains(&[TOKEN], || now_us);
        assert!(!is_held(0));
        endings.say(1, &[TOKEN], 0);
        endings.say(2, &[TOKEN, Bytes::from_static(b"u")], 10);
        assert!(is_held(11) && !endings.contains(&[Bytes::from_static(b"v")], || 11));
        endings.take_back(1);
        assert!(is_held(STANDS_US + 9));
        assert!(!is_held(STANDS_US + 10) && !is_held(11));
    }

    #[test]
    fn they_are_bounded() {
        let endings = Endings::default();
        (0..ENDINGS_MAX as u64).for_each(|change| endings.say(change, &[], 0));
        endings.say(u64::MAX, &[TOKEN], 0);
        assert!(!endings.contains(&[TOKEN], || 1));
        endings.say(0, &[TOKEN], 0);
        assert!(endings.contains(&[TOKEN], || 1));
    }
}
