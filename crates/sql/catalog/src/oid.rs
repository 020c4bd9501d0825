//! Hands OIDs out: in durable blocks, outside transactions, so that no two objects ever share one.

use super::{FIRST_USER_OID, Oid, key};
use crate::transaction::{Isolation, Kv, KvError, LockWait, Patience};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use parking_lot::Mutex;
use std::ops::Range;

/// OIDs taken at once: a crash or a stop loses at most this many.
pub const BLOCK: u32 = 64;
/// Attempts to take a block against other nodes.
pub const ATTEMPTS_MAX: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Oids(Mutex<Range<Oid>>);

impl Oids {
    /// A fresh OID.
    ///
    /// # Errors
    /// Those of the layers below; 54000 when all are used.
    pub fn next(&self, kv: &dyn Kv, patience: &Patience) -> Result<Oid, SqlError> {
        let mut block = patience.lock(kv, &self.0)?;
        if block.is_empty() {
            *block = take_block(kv, patience)?;
        }
        let id = block.start;
        block.start += 1;
        Ok(id)
    }
}

fn take_block(kv: &dyn Kv, patience: &Patience) -> Result<Range<Oid>, SqlError> {
    let mut last = None;
    for _ in 0..ATTEMPTS_MAX {
        match try_take(kv, patience) {
            Ok(range) => return Ok(range),
            Err(e) if e.retry() => last = Some(e),
            Err(e) => return Err(e),
        }
    }
    Err(last.unwrap_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "no OID could be taken")))
}

fn try_take(kv: &dyn Kv, patience: &Patience) -> Result<Range<Oid>, SqlError> {
    let mut txn = patience.begin(kv, Isolation::default())?;
    txn.lock(&key::NEXT_OID_KEY, LockWait::Wait)?;
    let stored = txn.get_certified(&key::NEXT_OID_KEY)?;
    let start = match stored {
        Some(value) => u32::from_be_bytes(
            value
                .as_ref()
                .try_into()
                .map_err(|_| SqlError::from(KvError::Storage("the OID allocator's record is damaged".into())))?,
        ),
        None => FIRST_USER_OID,
    };
    let end = start
        .checked_add(BLOCK)
        .ok_or_else(|| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "all object identifiers have been used"))?;
    // TRUNCATE needs a number, too.
    txn.frees_space();
    txn.put(Bytes::from_static(&key::NEXT_OID_KEY), Bytes::copy_from_slice(&end.to_be_bytes()))?;
    patience.commit(txn.as_mut())?;
    Ok(start..end)
}
