//! How far long statements are, of a cluster's nodes together: what `pg_stat_progress_copy`, `pg_stat_progress_create_index` and
//! `timeball_internal.schema_changes` show.
//!
//! **Problem.** A load runs at the node that its client is connected to; who wants to know how far it is may be connected to another.
//!
//! **Idea.** Each node says what its own sessions are busy with, when it is asked (`answers`), some at a time, in the order of their process ids. Who is asked by
//! a client asks all others at a time.
//!
//! **Invariants.**
//! 1. It takes no longer than [`Kv::ask_peers`] does, whoever hangs, and ends with its statement.
//! 2. What a node says is of the moment at which it says it: a row is whole, rows of two nodes need not be of one moment.
//! 3. Kinds of work that this program does not know are left out: a later one may tell more.

use crate::peers::{self, Row, is_full, rows_of};
use crate::progress::Task;
use crate::sessions::Sessions;
use crate::transaction::Kv;

/// What a session is busy with for long, as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// The session's process id.
    pub pid: i32,
    /// Its database.
    pub database: u32,
    /// With what.
    pub with: With,
}

/// See [`crate::progress`], which has the same while it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum With {
    /// COPY.
    Copy {
        /// The table; 0: a query.
        table: u32,
        /// Whether rows come in.
        from: bool,
        /// Bytes of data that went through.
        bytes: i64,
        /// Rows.
        rows: i64,
    },
    /// CREATE INDEX, ADD PRIMARY KEY.
    Index {
        /// The table.
        table: u32,
        /// The index.
        index: u32,
        /// As PostgreSQL names it.
        phase: String,
        /// Rows or entries of this phase; 0: nobody knows.
        total: i64,
        /// Of these, how many are done.
        done: i64,
    },
    /// A column that the rows of a table get while it is written.
    Column {
        /// The table.
        table: u32,
        /// See [`crate::progress::ColumnProgress::phase`].
        phase: String,
        /// Rows to go through; 0: nobody knows.
        total: i64,
        /// Of these, how many are done.
        done: i64,
    },
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Busy {
    fn written(&self) -> Row {
        let told: [String; 7] = match &self.with {
            With::Copy { table, from, bytes, rows } => {
                let kind = if *from { "copy from" } else { "copy to" };
                [
                    kind.into(),
                    table.to_string(),
                    "0".into(),
                    String::new(),
                    "0".into(),
                    bytes.to_string(),
                    rows.to_string(),
                ]
            }
            With::Index { table, index, phase, total, done } => {
                let (table, index) = (table.to_string(), index.to_string());
                ["index".into(), table, index, phase.clone(), total.to_string(), "0".into(), done.to_string()]
            }
            With::Column { table, phase, total, done } => {
                let (table, total) = (table.to_string(), total.to_string());
                ["column".into(), table, "0".into(), phase.clone(), total, "0".into(), done.to_string()]
            }
        };
        [self.pid.to_string(), self.database.to_string()].into_iter().chain(told).map(Some).collect()
    }

    fn read(row: &Row) -> Option<Busy> {
        let cell = |at: usize| row.get(at)?.as_deref();
        let number = |at: usize| cell(at)?.parse::<i64>().ok();
        let oid = |at: usize| u32::try_from(number(at)?).ok();
        let (table, bytes, rows) = (oid(3)?, number(7)?, number(8)?);
        let with = match cell(2)? {
            "copy from" => With::Copy { table, from: true, bytes, rows },
            "copy to" => With::Copy { table, from: false, bytes, rows },
            "index" => With::Index { table, index: oid(4)?, phase: cell(5)?.to_owned(), total: number(6)?, done: rows },
            "column" => With::Column { table, phase: cell(5)?.to_owned(), total: number(6)?, done: rows },
            _ => return None,
        };
        Some(Busy { pid: i32::try_from(number(0)?).ok()?, database: oid(1)?, with })
    }
}

/// What the sessions of this node are busy with, in the order of their process ids.
fn own(sessions: &Sessions) -> Vec<Busy> {
    let mut all: Vec<Busy> = sessions
        .all()
        .iter()
        .filter_map(|backend| {
            let with = match backend.progress.task()? {
                Task::Copy(copy) => With::Copy {
                    table: copy.table,
                    from: copy.from,
                    bytes: count(copy.bytes.get()),
                    rows: count(copy.rows.get()),
                },
                Task::Index(index) => With::Index {
                    table: index.table,
                    index: index.index,
                    phase: index.phase().to_owned(),
                    total: count(index.total.get()),
                    done: count(index.done.get()),
                },
                Task::Column(column) => With::Column {
                    table: column.table,
                    phase: column.phase().to_owned(),
                    total: count(column.total.get()),
                    done: count(column.done.get()),
                },
            };
            Some(Busy { pid: backend.pid, database: backend.database, with })
        })
        .collect();
    all.sort_by_key(|busy| busy.pid);
    all
}

/// Answers a question of another node: those behind a process id, as many as one answer holds, and what is to be asked for the rest.
pub(crate) fn asked(sessions: &Sessions, words: &mut std::str::Split<'_, char>) -> Option<Vec<Row>> {
    let after: i32 = words.next()?.parse().ok()?;
    let mut rows = Vec::new();
    let mut last = after;
    for busy in own(sessions).into_iter().filter(|busy| busy.pid > after) {
        if is_full(&rows) {
            rows.push(vec![Some("+".to_owned()), Some(format!("progress {last}"))]);
            break;
        }
        last = busy.pid;
        rows.push(busy.written());
    }
    Some(rows)
}

/// What the sessions of all nodes are busy with, and which nodes did not say all of it, and why. `stop` ends it.
pub fn all(sessions: &Sessions, kv: &dyn Kv, stop: &mut dyn FnMut() -> bool) -> (Vec<Busy>, Vec<(u32, String)>) {
    let (mut busy, mut silent) = (own(sessions), Vec::new());
    for told in kv.ask_peers(&["progress 0".to_owned()], peers::next_question, stop) {
        let theirs = told.answers.iter().flat_map(|text| rows_of(text));
        busy.extend(theirs.filter_map(|row| Busy::read(&row)));
        silent.extend(told.error.map(|why| (told.node, why)));
    }
    (busy, silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read() {
        let copy = |from| With::Copy { table: 16_384, from, bytes: 1 << 40, rows: 7 };
        let phase = "building index: scanning table".to_owned();
        let index = With::Index { table: 16_384, index: 16_390, phase: phase.clone(), total: 0, done: i64::MAX };
        let column = With::Column { table: 16_384, phase, total: 8, done: 7 };
        for with in [copy(true), copy(false), index, column] {
            let busy = Busy { pid: (3 << peers::PID_BITS) + 5, database: 5, with };
            let text = peers::written(&[busy.written()]);
            assert_eq!(rows_of(&text).iter().map(Busy::read).collect::<Vec<_>>(), [Some(busy)]);
        }
        for other in ["5\t5\tvacuum\t1\t0\t\t0\t0\t0\n", "+\tprogress 7\n", "\n"] {
            assert_eq!(rows_of(other).iter().map(Busy::read).collect::<Vec<_>>(), [None], "{other}");
        }
    }
}
