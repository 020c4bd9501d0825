//! What the SQL layers of a cluster's nodes answer each other: who is there, who waits for whom; and to end what one of them does.

use crate::busy;
use crate::contention::{leases, lines};
use crate::peers::{ANSWER_BYTES_MAX, Row, TOLD_QUERY_CHARS_MAX, is_full, rows_of, written};
use crate::sessions::{Backend, Sessions};
use crate::transaction::Kv;
use crate::types::calendar::EPOCH_OFFSET_US;
use std::sync::Arc;

/// Columns of `timeball_internal.cluster_sessions`.
pub const COLUMNS: [&str; 13] = [
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

/// Answers a question of another node; `None`: it is not understood.
pub fn answer(sessions: &Sessions, kv: &dyn Kv, question: &str) -> Option<String> {
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
        "progress" => Some(written(&busy::asked(sessions, &mut words)?)),
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
    let now_us = kv.now_us() - EPOCH_OFFSET_US;
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
pub fn all(sessions: &Sessions, kv: &dyn Kv, stop: &mut dyn FnMut() -> bool) -> Vec<Row> {
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
