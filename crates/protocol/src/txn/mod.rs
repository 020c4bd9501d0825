//! Transactions over timestamped logs.
//!
//! # Problem
//! A transaction reads a snapshot, buffers its writes, and must then commit atomically in one range or in many, without a
//! central timestamp service, so that every replica of a range reaches the same verdict whatever its clock says.
//!
//! # Idea
//! Clock-SI (seed 004, chapter 2) with three changes. The timestamp of a commit is the timestamp of its record in the range's
//! log (algorithm 2, lines 5-10), and **certification happens when the record is applied**, in log order, so it is a function of
//! the log alone. A commit in many ranges needs no decision record (algorithm 2, line 19): each `Prepare` names all
//! participants, and the transaction *is* committed once every participant has logged a successful one, at the greatest
//! prepare timestamp (line 18). Serializable transactions also certify what they read, and a prepare protects its reads until
//! the outcome is known.
//!
//! ```text
//!            one range                          many ranges
//!   client --Commit--> log(A)          client --Prepare{A,B}--> log(A)   p1
//!          <-verdict-- apply                  --Prepare{A,B}--> log(B)   p2
//!                                             <-- both prepared: committed at max(p1,p2)
//!                                             --Outcome--> log(A), log(B)      afterwards
//! ```
//!
//! # Invariants
//! 1. *Log order is timestamp order* within a range: a record's timestamp is greater than that of every record before it.
//! 2. *Verdicts are a function of the log*: [`Range::apply`] uses only the record, the range's state and the versions that
//!    records before it wrote.
//! 3. *First committer wins*: a write is refused if its key has a version above the write's `since`, or is held by a foreign
//!    prepare.
//! 4. *A certified read is unchanged*: refused if any key of it has a version above the read's `since`, or is in the writes of
//!    a foreign prepare; and while a prepare holds a read, no other command writes there. Of a key that must only be *present* (a row
//!    that another refers to) just a deletion counts, wherever the snapshot lies: it must have a value at the commit. Who says that
//!    nobody has come to refer to a key is refused where the record says that somebody has, and while a prepare refers to it; and the other way round.
//! 5. *One decision*: committed exactly when every participant logged a successful prepare. A participant that answers
//!    "no prepare" has first logged a fence (an `aborted` outcome), which refuses a late prepare for ever.
//! 6. *The commit timestamp is at least each prepare timestamp*, so a reader that waits for prepares at or below its snapshot
//!    misses nothing; and an outcome's record comes with a timestamp above the commit timestamp, so later commands of the
//!    range stay above it (with 1: versions of one key are written in timestamp order).
//! 7. *An outcome is remembered until every participant has it*; only then a `Forget` drops it.
//! 8. *At most once*: of a transaction whose commands say until when they may come, no copy does anything that the first did not, and whoever
//!    asks again hears what became of it (see `memory`). A refused prepare stands as a fence. The list of participants belongs to a
//!    transaction's identity: what is divided anew has a new number.
//! 9. *Large ones in parts*: a batch may be staged ahead of the command that names it (see `staging`). Parts bind nobody, and the command is
//!    refused unless all of them are there.
//! 10. *One version*: what applying a record does depends on the range's version ([`Range::version`]), which a record raised. So replicas whose programs
//!     know more or less of what is to come hold the same.
//!
//! # Caveats
//! A prepare whose transaction is undecided blocks readers above it until recovery decides; how soon is the driver's choice.
//! Certification of a span read is conservative: a version of a key in the span counts even if the reader's filter would
//! have skipped it.

mod ahead;
mod certify;
pub(crate) mod codec;
mod command;
mod coordinator;
#[cfg(test)]
mod formats;
mod holds;
mod id;
mod lent;
mod lock_mode;
mod lock_sessions;
mod lock_shown;
mod locks;
mod meeting;
mod memory;
mod range;
mod runs;
pub(crate) mod staging;
mod state_codec;
mod unfolding;
mod versions;

pub use certify::{Cause, Refusal, by_index};
pub use codec::{DecodeError, HEADER_BYTES, Record, encode_commit, encode_record, stamp_record};
pub use command::{Apart, Batch, Command, Read, Span, Write};
pub use coordinator::{Answer, Coordinator, Decision};
pub use id::{RangeId, TxnId};
pub use lent::{LentWrites, decided, indexes};
pub use lock_mode::LockMode;
pub use lock_shown::{LockOwner, ShownLock};
pub use locks::{LockReply, LockTable, LockWait, MAX_LOCKS_PER_TXN, Waiter, Wakeup};
pub use memory::REMEMBERED_US;
pub use range::{
    FIRST_VERSION, Outcome, Prepared, Range, SPLITS_REMEMBERED_MAX, Standing, VERSION_COUNTS_COMMITS, Verdict,
};
pub use staging::{Part, Staged};
pub use versions::{VersionStore, told_of};
