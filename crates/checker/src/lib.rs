//! Histories and verdicts: judges what clients saw, and knows no product code.
//!
//! Problem: a database promises isolation, recency and durability; the promise must be tested by somebody who shares no code
//! with it. Idea (Adya's thesis; Elle): clients write values that are unique, so each read names the transaction that it read
//! from. With the order of the versions of each key, three kinds of edges follow: *ww* (the next version), *wr* (read from),
//! *rw* (read, and somebody replaced it). A history is serializable exactly when these edges have no cycle.
//!
//! ```text
//!     T1 ──ww──► T2      T1 wrote the version before T2's
//!     T1 ──wr──► T2      T2 read what T1 wrote
//!     T1 ──rw──► T2      T1 read the version that T2 replaced
//! ```
//!
//! What is judged, each by a module of its own:
//! - [`cycles`]: G0, G1c, G-single, G2, by the isolation that each transaction asked for.
//! - [`reads`]: G1a, G1b, values from nowhere, and snapshots that are torn or change.
//! - [`updates`]: lost updates.
//! - [`realtime`]: strict and hybrid recency, against true time.
//! - [`session`]: read your writes, monotonic reads.
//! - [`bank`]: a total that never changes.
//! - [`storage`]: what was acknowledged is stored, whole, and what was aborted is not; settles unknown outcomes.
//!
//! Of many machines, each by itself:
//! - [`linear`]: linearizability of a register, by search.
//! - [`appends`]: strict serializability of lists, by what is read alone.
//! - [`leases`]: no two leaders of a group share a timestamp.
//! - [`replicas`]: equal logs make equal states.
//! - [`shown`]: rule 1.
//! - [`leftovers`]: nothing is held for ever.
//!
//! Caveats: the order of versions is taken from the timestamps that the database reports. A wrong report makes cycles or
//! broken snapshots; it hides none. Deletes are not modelled: a missing key is the version before the first.
#![warn(missing_docs)]

pub mod appends;
pub mod bank;
pub mod cycles;
mod graph;
mod history;
mod index;
pub mod leases;
pub mod leftovers;
pub mod linear;
pub mod reads;
pub mod realtime;
pub mod replicas;
pub mod session;
pub mod shown;
pub mod storage;
pub mod updates;
mod verdict;

pub use history::{Action, History, Isolation, Key, Op, Outcome, Recency, Txn, Value};
pub use index::Index;
pub use verdict::{Anomaly, Verdict};

/// What a run promises: which checks apply.
#[derive(Clone, Debug)]
pub struct Promises {
    /// Clock bounds held: recency is judged against true time.
    pub bounds_hold: bool,
    /// Accounts and their total, where the workload has a bank.
    pub bank: Option<bank::Bank>,
}

/// Every check on a history whose unknown outcomes are settled (see [`storage::settle`]).
pub fn judge(history: &History, promises: &Promises) -> Verdict {
    let index = Index::new(history);
    let mut verdict = Verdict::default();
    reads::judge(&index, &mut verdict);
    updates::judge(&index, &mut verdict);
    cycles::judge(&index, &mut verdict);
    session::judge(&index, &mut verdict);
    if promises.bounds_hold {
        realtime::judge(&index, &mut verdict);
    }
    if let Some(bank) = &promises.bank {
        bank.judge(&index, &mut verdict);
    }
    verdict
}
