//! What the SQL layers of a cluster's nodes ask each other: who is there, and to end what one of them does.
//!
//! One question, one answer, as text, by way of the layers below ([`Kv::ask_peer`]): rare, by hand, and understood by later versions or refused.

use crate::contention::{leases, lines};
use crate::sessions::{Backend, Sessions};
use crate::transaction::Kv;
use std::sync::Arc;

/// Bytes of one answer, at most, but for its last row: the layers below carry 64 KiB.
const ANSWER_BYTES_MAX: usize = 48 << 10;
/// Characters of a statement that other nodes are told.
pub(crate) const TOLD_QUERY_CHARS_MAX: usize = 200;
/// Bits of a process id that count the sessions of one node; above them stands the node's number.
pub const PID_BITS: u32 = 18;

/// Columns of `timeball_internal.cluster_sessions`.
pub(crate) const COLUMNS: [&str; 13] = [
    "node_id",
    "pid",
    "user_name",
    "database_id",
    "application_name",
    "client_addr",
    "state",
    "state_age_ms",
    "transaction_age_ms",
    "wait_event_type",
    "wait_event",
    "query",
    "error",
];

/// One row.
pub type Row = Vec<Option<String>>;

/// The node whose session a process id is; `None`: it is alone, or it is no id of a cluster's.
pub(crate) fn node_of(pid: i64) -> Option<u32> {
    u32::try_from(pid >> PID_BITS).ok().filter(|node| *node != 0)
}

/// Answers a question of another node; `None`: it is not understood.
pub(crate) fn answer(sessions: &Sessions, kv: &dyn Kv, question: &str) -> Option<String> {
    let mut words = question.split(' ');
    let pid = |words: &mut std::str::Split<'_, char>| words.next()?.parse::<i32>().ok();
    match words.next()? {
        // Those after one of these, as many as one answer holds.
        "sessions" => {
            let after = pid(&mut words)?;
            let mut text = String::new();
            for row in own(sessions, kv, after) {
                text.push_str(&written(&[row]));
                if text.len() > ANSWER_BYTES_MAX {
                    break;
                }
            }
            Some(text)
        }
        "locks" => Some(written(&lines::locks_asked(kv, &mut words, &is_full)?)),
        "transactions" => Some(written(&lines::transactions_asked(sessions, kv, &mut words, &is_full)?)),
        "leases" => Some(written(&leases::asked(kv, &mut words, &is_full)?)),
        "cancel" => {
            let found = sessions.find(pid(&mut words)?);
            found.iter().for_each(|backend| backend.cancel());
            Some(found.is_some().to_string())
        }
        "terminate" => {
            let found = sessions.find(pid(&mut words)?);
            found.iter().for_each(|backend| backend.terminate());
            Some(found.is_some().to_string())
        }
        _ => None,
    }
}

/// The sessions of this node with greater process ids than this, in their order.
fn own(sessions: &Sessions, kv: &dyn Kv, after: i32) -> Vec<Row> {
    let now_us = kv.now_us() - crate::session::PG_EPOCH_US;
    let row = |backend: &Arc<Backend>| {
        let activity = backend.activity();
        let age = |us: Option<i64>| us.map(|us| (now_us.saturating_sub(us).max(0) / 1000).to_string());
        let (wait_type, wait) = backend.wait().unzip();
        vec![
            Some(kv.node().to_string()),
            Some(backend.pid.to_string()),
            Some(backend.user.clone()),
            Some(backend.database.to_string()),
            Some(activity.application_name),
            backend.client_addr.map(|addr| addr.to_string()),
            Some(activity.state.name().to_owned()),
            age(activity.changed_us),
            age(activity.transaction_us),
            wait_type.map(str::to_owned),
            wait.map(str::to_owned),
            activity.query.map(|query| query.chars().take(TOLD_QUERY_CHARS_MAX).collect()),
            None,
        ]
    };
    let mut all = sessions.all();
    all.retain(|backend| backend.pid > after);
    all.sort_by_key(|backend| backend.pid);
    all.iter().map(row).collect()
}

/// The question for the sessions after those that were told.
fn next_sessions(told: &str) -> Option<String> {
    let last = rows_of(told).pop()?;
    Some(format!("sessions {}", last.get(1)?.as_deref()?.parse::<i32>().ok()?))
}

/// The sessions of all nodes; of a node that does not answer, that, and why. `stop` ends it.
pub(crate) fn all(sessions: &Sessions, kv: &dyn Kv, stop: &mut dyn FnMut() -> bool) -> Vec<Row> {
    let mut rows = own(sessions, kv, 0);
    for told in kv.ask_peers(&["sessions 0".to_owned()], next_sessions, stop) {
        let theirs = told.answers.iter().flat_map(|text| rows_of(text));
        rows.extend(theirs.filter(|row| row.len() == COLUMNS.len()));
        if let Some(why) = told.error {
            let mut row = vec![None; COLUMNS.len()];
            (row[0], row[COLUMNS.len() - 1]) = (Some(told.node.to_string()), Some(why));
            rows.push(row);
        }
    }
    rows
}

/// Whether rows are as much as one answer takes.
fn is_full(rows: &[Row]) -> bool {
    let cell = |cell: &Option<String>| cell.as_ref().map_or(2, String::len) + 1;
    rows.iter().flatten().map(cell).sum::<usize>() > ANSWER_BYTES_MAX / 2
}

/// What is to be asked for the rest of an answer, if it says so: the second cell of a last row that begins with a plus.
pub fn next_question(told: &str) -> Option<String> {
    let mut last = rows_of(told).pop()?;
    if last.len() == 2 && last[0].as_deref() == Some("+") { last.pop().flatten() } else { None }
}

/// A line for each row, a tab between cells; NULL is `\\N`.
fn written(rows: &[Row]) -> String {
    let cell = |cell: &Option<String>| match cell {
        None => "\\N".to_owned(),
        Some(text) => text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"),
    };
    rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("\t") + "\n").collect()
}

/// The rows of an answer, as text: a line for each, a tab between cells, NULL is `\\N`.
pub fn rows_of(text: &str) -> Vec<Row> {
    let cell = |cell: &str| {
        if cell == "\\N" {
            return None;
        }
        let (mut out, mut chars) = (String::new(), cell.chars());
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some('t') => out.push('\t'),
                    Some('n') => out.push('\n'),
                    Some('r') => out.push('\r'),
                    Some(other) => out.push(other),
                    None => {}
                },
                c => out.push(c),
            }
        }
        Some(out)
    };
    text.lines().map(|line| line.split('\t').map(cell).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_as_text() {
        let mut row: Row = vec![None; COLUMNS.len()];
        (row[0], row[3]) = (Some("7".into()), Some(String::new()));
        row[11] = Some("SELECT 'a\tb\\N',\r\n 1".into());
        let rows = vec![row.clone(), row];
        assert_eq!(rows_of(&written(&rows)), rows);
        assert_eq!(rows_of(""), Vec::<Row>::new());
        let more = vec![vec![Some("+".to_owned()), Some("locks all - 0 7".to_owned())]];
        assert_eq!(next_question(&written(&more)).as_deref(), Some("locks all - 0 7"));
        assert_eq!((next_question(""), next_question("a\tb\n"), next_question("+\n")), (None, None, None));
    }

    #[test]
    fn process_ids_name_their_node() {
        assert_eq!((node_of(5), node_of(-5), node_of((3 << PID_BITS) + 5)), (None, None, Some(3)));
    }
}
