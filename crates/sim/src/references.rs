//! Rows that refer to others: a child is written only while its parent is there.
//!
//! They lie beside what the histories tell of (the checker knows no deletions), and their rule is checked in what is stored at the end: at
//! the timestamp of each child its parent has a value. And one parent is deleted only by who has looked for its child, and found none, without a promise: at the timestamp of such a deletion there is no child.

use crate::machine::SimNode;
use crate::workload::encode_key;
use bytes::Bytes;
use clock::Timestamp;
use store::{StoreError, Version};

/// Parents, and as many children: few, so that those who delete and those who refer meet.
pub const PARENTS: u64 = 2;
/// The parent that is kept while it has a child.
pub const KEPT: u64 = 1;
/// Below the accounts, and above them: a split may lie between a parent and its child.
const PARENTS_FROM: u64 = 50;
const CHILDREN_FROM: u64 = 150;

/// The key of a parent.
pub fn parent(n: u64) -> Bytes {
    encode_key(PARENTS_FROM + n)
}

/// The key of its child.
pub fn child(n: u64) -> Bytes {
    encode_key(CHILDREN_FROM + n)
}

/// A child that was written while its parent was not there.
pub fn orphan(node: &SimNode) -> Result<Option<String>, StoreError> {
    let versions = node.versions();
    // What lies below it may be collected.
    let collected = |n: u64| versions.collected_of(&child(n)).max(versions.collected_of(&parent(n)));
    orphan_of(|key| versions.history(key), collected)
}

/// The same, of stores that lie apart: below what `collected` says of each number versions may be gone.
pub fn orphan_of<E>(
    history: impl Fn(&Bytes) -> Result<Vec<Version>, E>,
    collected: impl Fn(u64) -> Timestamp,
) -> Result<Option<String>, E> {
    for n in 0..PARENTS {
        let parents = history(&parent(n))?;
        let children = history(&child(n))?;
        for deleted in parents.iter().filter(|parent| n == KEPT && parent.value.is_none() && parent.ts > collected(n)) {
            let left = children.iter().rev().find(|child| child.ts <= deleted.ts);
            if left.is_some_and(|child| child.value.is_some()) {
                return Ok(Some(format!("parent {n} was deleted at {}, and its child refers to it", deleted.ts)));
            }
        }
        for child in children {
            if child.ts <= collected(n) || child.value.is_none() {
                continue;
            }
            let at = parents.iter().rev().find(|version| version.ts <= child.ts);
            if at.is_none_or(|version| version.value.is_none()) {
                return Ok(Some(format!("child {n}, written at {}, refers to a parent that is not there", child.ts)));
            }
        }
    }
    Ok(None)
}
