//! Who waits for whom, in words.

use crate::advisory::Awaited;
use crate::catalog::described_row;
use crate::catalog::view::View;
use crate::sessions::Sessions;
use crate::transaction::{LockMode, RowWaiter};
use crate::types::EvalSettings;

/// Who waits for what, one line for each, as PostgreSQL writes it.
pub fn told(circle: &[RowWaiter], sessions: &Sessions, view: Option<&View>, settings: &EvalSettings) -> String {
    let all = sessions.all();
    // Sessions of other nodes are not known here.
    let process = |number: &Option<u64>, known: &str, other: &str| match all.iter().find(|b| Some(b.number) == *number)
    {
        Some(backend) => format!("{known} {}", backend.pid),
        None => format!("{other} process of another node"),
    };
    let line = |(place, row): (usize, &RowWaiter)| {
        let next = circle.get(place + 1).or(circle.first()).map_or(&None, |next| &next.session);
        let what = match Awaited::of(row.clone()) {
            Awaited::Advisory(key, mode) => key.described(mode),
            Awaited::Row(row) => {
                let found = described_row(&row.key, view, settings);
                format!("{} on {}", mode_name(row.mode), found.unwrap_or_else(|| "a row".into()))
            }
        };
        format!(
            "{} waits for {what}; blocked by {}.",
            process(&row.session, "Process", "A"),
            process(next, "process", "a")
        )
    };
    circle.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// A row's lock, as `pg_locks` names PostgreSQL's lock of the same strength on a tuple.
pub fn mode_name(mode: LockMode) -> &'static str {
    match mode {
        LockMode::KeyShare => "AccessShareLock",
        LockMode::Share => "RowShareLock",
        LockMode::NoKeyUpdate => "ExclusiveLock",
        LockMode::Update => "AccessExclusiveLock",
    }
}
