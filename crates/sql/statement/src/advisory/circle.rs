//! Sessions that wait for each other, over locks of all kinds.
//!
//! **Problem.** Rows are locked below, advisory locks here; each kind finds the circles among its own. A session that holds one kind and waits
//! for the other closes a circle that neither sees.
//!
//! **Idea.** A graph of sessions: an edge leads from one that waits to each that is in its way. A circle over both kinds goes through somebody
//! who waits for an advisory lock, so it is enough that those look: when they begin to wait, and every now and then while they do
//! (`advisory`).
//!
//! **Invariants.**
//! 1. A session waits for one thing at a time: it runs on one thread.
//! 2. A search sees one moment: it holds the advisory locks' table and the rows' table, in this order, until it is over.

use super::{Key, Mode};
use crate::transaction::{LockMode, RowWaiter};
use crate::{KvError, SqlError};
use std::collections::{BTreeSet, VecDeque};

/// What a session waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// An advisory lock.
    Advisory(Key, Mode),
    /// A row.
    Row(RowWaiter),
}

impl Awaited {
    /// A key of the layers below: a row, unless it stands for an advisory lock.
    pub fn of(row: RowWaiter) -> Awaited {
        match Key::of_bytes(&row.key) {
            Some(key) if row.mode <= LockMode::Share => Awaited::Advisory(key, Mode::Share),
            Some(key) => Awaited::Advisory(key, Mode::Exclusive),
            None => Awaited::Row(row),
        }
    }

    /// Its key for the layers below: the reverse of [`Awaited::of`].
    fn into_row(self, session: Option<u64>) -> RowWaiter {
        match self {
            Awaited::Row(row) => RowWaiter { session, ..row },
            Awaited::Advisory(key, Mode::Share) => RowWaiter { session, key: key.to_bytes(), mode: LockMode::Share },
            Awaited::Advisory(key, Mode::Exclusive) => {
                RowWaiter { session, key: key.to_bytes(), mode: LockMode::Update }
            }
        }
    }
}

/// Sessions that wait for each other, each for the next one and the last for the first.
pub type Circle = Vec<(Option<u64>, Awaited)>;

/// The circle that the wait of a session closes, itself first; the shortest, if there are several. `edges`: what a session waits for, and
/// who is in its way.
pub fn circle_through(session: u64, edges: &dyn Fn(u64) -> Option<(Awaited, Vec<u64>)>) -> Option<Circle> {
    // Those that wait, in the order in which they were met: by whom (a place in this list), and for what.
    let mut met: Vec<(usize, u64, Awaited)> = Vec::new();
    let mut seen = BTreeSet::from([session]);
    let mut open = VecDeque::from([(0, session)]);
    while let Some((by, who)) = open.pop_front() {
        let Some((awaited, before)) = edges(who) else { continue };
        met.push((by, who, awaited));
        let mut at = met.len() - 1;
        if before.contains(&session) {
            let mut circle = VecDeque::new();
            loop {
                let (by, who, awaited) = &met[at];
                circle.push_front((Some(*who), awaited.clone()));
                if at == 0 {
                    return Some(circle.into());
                }
                at = *by;
            }
        }
        open.extend(before.into_iter().filter(|next| seen.insert(*next)).map(|next| (at, next)));
    }
    None
}

/// 40P01, to be told in full by `waits::told`.
pub fn deadlock(circle: Circle) -> SqlError {
    KvError::Deadlock { circle: circle.into_iter().map(|(session, awaited)| awaited.into_row(session)).collect() }
        .into()
}
