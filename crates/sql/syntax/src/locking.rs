//! What FOR UPDATE and its kin were written as.

use sqlparser::ast::{LockClause, LockType, ObjectName};

/// Stands in OF for the strengths of row locks that the library cannot read. No name of a client's has a NUL.
pub(super) const KEY_LOCK: &str = "\0key";

/// Whether OF has the mark of a lock that is about keys, and what it names besides.
pub fn key_lock(of: &ObjectName) -> (bool, Option<ObjectName>) {
    match of.0.split_first() {
        Some((first, rest)) if first.as_ident().is_some_and(|ident| ident.value == KEY_LOCK) => {
            (true, (!rest.is_empty()).then(|| ObjectName(rest.to_vec())))
        }
        _ => (false, Some(of.clone())),
    }
}

/// What a lock was written as.
pub fn lock_words(lock: &LockClause) -> &'static str {
    let of_keys = lock.of.as_ref().is_some_and(|of| key_lock(of).0);
    match (&lock.lock_type, of_keys) {
        (LockType::Update, false) => "FOR UPDATE",
        (LockType::Update, true) => "FOR NO KEY UPDATE",
        (LockType::Share, false) => "FOR SHARE",
        (LockType::Share, true) => "FOR KEY SHARE",
    }
}
