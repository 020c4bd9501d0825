//! Tokens that a change of the catalog is about to end: who can begin anew waits before he writes by one.
//!
//! **Problem.** Whoever begins to write by a version between the last look of a change for such (`sql::users`) and its commit is refused at his own. Between nodes that time is some round trips; where the
//! change is one statement of a block, it is as long as the block.
//!
//! **Idea.** The change says first, to each node, what it will end; then it looks. A statement says what it writes by first ([`crate::catalog::reliance::Relied`]); then it looks here. So one of the two sees the
//! other. Decision 224. A block says of what it has ended that it holds the token's lock: who would write by that waits for the lock, as for a row (decision 239).
//!
//! **Invariants.**
//! 1. Safety is the tokens': all of this may be lost, or come late.
//! 2. What is about to end by one statement ends by itself here ([`STANDS_US`]), should its node be gone. What a block holds stands until the block is over, or until somebody was given the lock: then nobody
//!    has it, whatever is said here.
//! 3. When a block is over what it held stands for [`STANDS_US`] more: whoever has planned by that before, and looks only now, finds by the lock, which is free, whether it has ended.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// So long it stands unless it is said again or taken back, microseconds.
pub const STANDS_US: i64 = 2_000_000;
/// So many changes can be about to end something; of more nobody hears.
pub const ENDINGS_MAX: usize = 256;
/// So many tokens can be held by blocks; of more nobody hears.
pub const BARRED_MAX: usize = 1 << 14;

/// See the module. Of one node.
#[derive(Debug, Default)]
pub struct Endings {
    /// There may be some.
    any: AtomicBool,
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    /// By the number of the change: what it ends, and until when that stands.
    soon: BTreeMap<u64, (Vec<Bytes>, i64)>,
    /// What open blocks have ended and hold, each with the number of the block; and until when that stands, if the block is over.
    barred: BTreeMap<Bytes, (u64, Option<i64>)>,
    /// By block: those of these of which it is not known that they are over.
    open: BTreeMap<u64, BTreeSet<Bytes>>,
    /// Those that are over, the next one to be forgotten first; each with until when it stands, and whose it was. At most [`BARRED_MAX`].
    over: VecDeque<(i64, Bytes, u64)>,
}

impl All {
    fn is_empty(&self) -> bool {
        self.soon.is_empty() && self.barred.is_empty()
    }

    /// Forgets one that is over, unless more was said of it since.
    fn forget(&mut self, until_us: i64, token: &Bytes, block: u64) {
        if self.barred.get(token) == Some(&(block, Some(until_us))) {
            self.barred.remove(token);
        }
    }

    /// Forgets what has been over for long enough.
    fn forget_old(&mut self, now_us: i64) {
        self.soon.retain(|_, (_, until_us)| *until_us > now_us);
        while self.over.front().is_some_and(|(until_us, ..)| *until_us <= now_us)
            && let Some((until_us, token, block)) = self.over.pop_front()
        {
            self.forget(until_us, &token, block);
        }
    }

    /// A block does not hold it any more; that stands for a while.
    fn end(&mut self, token: &Bytes, block: u64, now_us: i64) {
        let until_us = now_us.saturating_add(STANDS_US);
        let Some(known) = self.barred.get_mut(token).filter(|known| **known == (block, None)) else { return };
        known.1 = Some(until_us);
        self.over.push_back((until_us, token.clone(), block));
        if self.over.len() > BARRED_MAX
            && let Some((until_us, token, block)) = self.over.pop_front()
        {
            self.forget(until_us, &token, block);
        }
    }

    /// It is not among those of a block any more.
    fn is_not_open(&mut self, token: &Bytes, block: u64) {
        if let Some(tokens) = self.open.get_mut(&block) {
            tokens.remove(token);
            if tokens.is_empty() {
                self.open.remove(&block);
            }
        }
    }
}

impl Endings {
    /// Says something; what others write by is looked at afterwards.
    fn say_by(&self, say: impl FnOnce(&mut All)) {
        let mut all = self.all.lock();
        say(&mut all);
        self.any.store(!all.is_empty(), Ordering::SeqCst);
        drop(all);
        fence(Ordering::SeqCst);
    }

    /// A change will end these tokens. What it writes by is looked at afterwards.
    pub fn say(&self, change: u64, tokens: &[Bytes], now_us: i64) {
        self.say_by(|all| {
            all.forget_old(now_us);
            if all.soon.len() < ENDINGS_MAX || all.soon.contains_key(&change) {
                all.soon.insert(change, (tokens.to_vec(), now_us.saturating_add(STANDS_US)));
            }
        });
    }

    /// A block has ended these tokens, or is about to, and holds their locks until it ends.
    pub fn bar(&self, block: u64, tokens: &[Bytes], now_us: i64) {
        self.say_by(|all| {
            all.forget_old(now_us);
            for token in tokens {
                // Who looks late is less than who has not heard of it at all.
                while all.barred.len() >= BARRED_MAX
                    && let Some((until_us, token, block)) = all.over.pop_front()
                {
                    all.forget(until_us, &token, block);
                }
                if all.barred.len() < BARRED_MAX || all.barred.contains_key(token) {
                    if let Some((before, _)) = all.barred.insert(token.clone(), (block, None)) {
                        all.is_not_open(token, before);
                    }
                    all.open.entry(block).or_default().insert(token.clone());
                }
            }
        });
    }

    /// A change has ended them, or will not; a block is over.
    pub fn take_back(&self, change: u64, now_us: i64) {
        self.say_by(|all| {
            all.forget_old(now_us);
            all.soon.remove(&change);
            for token in all.open.remove(&change).unwrap_or_default() {
                all.end(&token, change, now_us);
            }
        });
    }

    /// A block does not hold it, or not any more. (What another has said of it since stands.)
    pub fn unbar(&self, token: &Bytes, block: u64) {
        self.say_by(|all| {
            all.is_not_open(token, block);
            if all.barred.get(token).is_some_and(|(by, _)| *by == block) {
                all.barred.remove(token);
            }
        });
    }

    /// Somebody was given its lock: so the block is over, whatever is said here.
    pub fn is_over(&self, token: &Bytes, block: u64, now_us: i64) {
        self.say_by(|all| {
            all.is_not_open(token, block);
            all.end(token, block, now_us);
        });
    }

    /// All that blocks hold that are not over, as far as is known, each with the number of the block.
    pub fn all_barred(&self, now_us: i64) -> Vec<(Bytes, u64)> {
        if !self.any() {
            return Vec::new();
        }
        let mut barred = Vec::new();
        self.say_by(|all| {
            all.forget_old(now_us);
            let open = all.barred.iter().filter(|(_, (_, until_us))| until_us.is_none());
            barred.extend(open.map(|(token, (block, _))| (token.clone(), *block)));
        });
        barred
    }

    /// Whether there may be any. Whoever writes by something has said so before.
    pub fn any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.any.load(Ordering::SeqCst)
    }

    /// Whether one of these is about to end by a change that is one statement.
    pub fn contains(&self, tokens: &[Bytes], now_us: impl Fn() -> i64) -> bool {
        if !self.any() {
            return false;
        }
        let mut all = self.all.lock();
        all.forget_old(now_us());
        self.any.store(!all.is_empty(), Ordering::SeqCst);
        all.soon.values().any(|(ended, _)| ended.iter().any(|token| tokens.contains(token)))
    }

    /// Those of these that blocks hold, each with the number of the block.
    pub fn barred(&self, tokens: &[Bytes], now_us: impl Fn() -> i64) -> Vec<(Bytes, u64)> {
        if !self.any() {
            return Vec::new();
        }
        let mut all = self.all.lock();
        all.forget_old(now_us());
        self.any.store(!all.is_empty(), Ordering::SeqCst);
        let found = tokens.iter().filter_map(|token| Some((token.clone(), all.barred.get(token)?.0)));
        found.collect()
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
        endings.take_back(1, 11);
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

    #[test]
    fn what_a_block_holds_stands_until_it_is_over_or_nobody_has_it() {
        let endings = Endings::default();
        let (other, tokens) = (Bytes::from_static(b"u"), [TOKEN, Bytes::from_static(b"u")]);
        let barred = |tokens: &[Bytes], now_us| -> Vec<Bytes> {
            endings.barred(tokens, || now_us).into_iter().map(|(token, _)| token).collect()
        };
        endings.bar(1, &tokens, 0);
        endings.bar(2, &[Bytes::from_static(b"v")], 0);
        assert!(barred(&tokens, i64::MAX) == tokens && !endings.contains(&tokens, || i64::MAX));
        endings.unbar(&TOKEN, 2);
        assert_eq!(barred(&tokens, 0), tokens);
        endings.unbar(&TOKEN, 1);
        assert_eq!(endings.all_barred(0), [(other.clone(), 1), (Bytes::from_static(b"v"), 2)]);
        assert_eq!(barred(&tokens, 0), std::slice::from_ref(&other));
        // For who looks late.
        endings.take_back(1, 7);
        assert_eq!(barred(&tokens, STANDS_US), [other]);
        assert!(barred(&tokens, STANDS_US + 7).is_empty() && endings.any());
        endings.take_back(2, 8);
        assert!(barred(&tokens, STANDS_US + 8).is_empty() && !endings.any());
        (0..=BARRED_MAX).for_each(|n| endings.bar(3, &[Bytes::from(n.to_string())], 0));
        assert!(barred(&[Bytes::from(BARRED_MAX.to_string())], 0).is_empty());
        assert_eq!(barred(&[Bytes::from_static(b"7")], 0).len(), 1);
    }

    #[test]
    fn each_block_that_is_over_is_forgotten_in_its_time() {
        let endings = Endings::default();
        let (other, second) = (Bytes::from_static(b"u"), STANDS_US / 4 * 3);
        let barred = |now_us| endings.barred(&[TOKEN, other.clone()], || now_us);
        endings.bar(1, &[TOKEN], 0);
        endings.bar(2, std::slice::from_ref(&other), 0);
        endings.take_back(1, 0);
        endings.take_back(2, second);
        assert_eq!(barred(STANDS_US - 1), [(TOKEN, 1), (other.clone(), 2)]);
        assert_eq!(barred(STANDS_US), [(other.clone(), 2)]);
        // One that is barred anew stands; and its own end is not that of the block before.
        endings.bar(3, &[TOKEN], STANDS_US);
        endings.is_over(&TOKEN, 1, STANDS_US);
        assert_eq!(barred(second + STANDS_US), [(TOKEN, 3)]);
        assert_eq!(endings.all_barred(second + STANDS_US), [(TOKEN, 3)]);
        endings.take_back(1, second + STANDS_US);
        assert_eq!(barred(i64::MAX), [(TOKEN, 3)]);
        // However many end, there is room for those that stand.
        for block in 4..BARRED_MAX as u64 * 2 {
            endings.bar(block, &[Bytes::from(block.to_string())], 0);
            endings.take_back(block, 0);
        }
        endings.bar(2, std::slice::from_ref(&other), 0);
        assert_eq!(barred(0), [(TOKEN, 3), (other.clone(), 2)]);
    }
}
