//! What the changes of an open block end is barred: who would write by it waits until the block is over.
//!
//! # Problem
//! A migration is a block: ALTER TABLE, some other statements, COMMIT. Whoever writes to the table between the first and the last of these goes by a version that ends with the COMMIT: he is refused then (40001), at READ
//! COMMITTED, too; or he refuses the migration, if he commits at that moment. PostgreSQL lets him wait.
//!
//! # Idea
//! The lock on the token of a version is what writers wait for at a gate ([`super::exclusive`]), in a queue where deadlocks are found. A gate is said in the descriptor, by a commit. Here it is said to the nodes, in words
//! (`sql_statement::endings`): nothing is to be committed, or taken back behind a crash.
//!
//! ```text
//! block     ALTER TABLE t: locks t's guard, then the token of v; says "barred"; waits for those who have written by v ── ... ── COMMIT: v + 1
//! writers   say what they write by, then look: v is barred, so they take back what they have said, and ask for the token's lock ──────┤ plan anew
//! ```
//!
//! # Invariants
//! 1. Safety is the tokens'. Whoever has not heard of it, or was given the lock because its table was lost, is refused, or refuses the block.
//! 2. The lock comes first, then the word, then the look for users. So whoever is not seen by that look sees the word; and if he is given the lock, nobody has it: then the word stands no longer than that of a block that is over. Who goes on behind that says all that he writes by before he gives the lock back, and looks again. He gives the lock back: he may come to wait
//!    for the same block in words, which gave all up and is to be given the lock again.
//! 3. Guards come before tokens, here as elsewhere.
//! 4. Who has written by the version before does not wait here: the block waits for him.
//! 5. The words outlive the block for a while: who has planned before its COMMIT, and looks behind it, is given the lock, and finds that what he would go by has ended.
//! 6. Who waits here counts as no user of anything else that his statement would write by, and holds no rows for it.
//! 7. What a statement was told of by (Parse, Bind, Describe, EXPLAIN) it does not write by: it says and looks when it runs.
//!
//! # Caveats
//! Tables that a change finds as it runs (the parent of a new reference, what CASCADE takes along) are barred when it has run. What ROLLBACK TO SAVEPOINT takes back is barred in words at other nodes, until somebody is given
//! the lock or the block is over. Who waits for a row of the block in a statement that would write is not waited for ([`super::users`]): he looks back when his statement has run. Decision 239.

use crate::database::Database;
use crate::sessions::Sessions;
use crate::transaction::Kv;
use crate::users::{barred, ended};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Of one block. Dropped, when its locks are free, it is over.
pub(crate) struct Barrier {
    kv: Arc<dyn Kv>,
    sessions: Arc<Sessions>,
    block: u64,
    /// In the order in which they were barred.
    tokens: Vec<Bytes>,
    /// The same.
    known: BTreeSet<Bytes>,
}

impl Barrier {
    /// Nothing is barred yet.
    pub fn new(db: &Database) -> Barrier {
        let (kv, sessions, block) = (db.kv.clone(), db.sessions.clone(), db.kv.unique_id());
        Barrier { kv, sessions, block, tokens: Vec::new(), known: BTreeSet::new() }
    }

    /// How much is barred: a mark to go back to.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether this is.
    pub fn has(&self, token: &Bytes) -> bool {
        self.known.contains(token)
    }

    /// Those of these that are not barred yet.
    pub fn missing(&self, tokens: &[Bytes]) -> Vec<Bytes> {
        tokens.iter().filter(|token| !self.has(token)).cloned().collect()
    }

    /// Bars these, whose locks the block has. Gives what other nodes are to be told.
    pub fn bar(&mut self, tokens: &[Bytes]) -> String {
        self.tokens.extend_from_slice(tokens);
        self.known.extend(tokens.iter().cloned());
        self.sessions.endings.bar(self.block, tokens, self.kv.monotonic_us());
        barred(self.block, tokens)
    }

    /// The locks of what was barred since a mark are free.
    pub fn back_to(&mut self, mark: usize) {
        for token in self.tokens.drain(mark.min(self.tokens.len())..) {
            self.sessions.endings.unbar(&token, self.block);
            self.known.remove(&token);
        }
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        self.sessions.endings.take_back(self.block, self.kv.monotonic_us());
        // They are told, and not waited for: whoever does not hear it finds out.
        if !std::thread::panicking() && !self.kv.peers().is_empty() {
            self.kv.ask_peers(&[ended(self.block)], |_| None, &mut || true);
        }
    }
}
