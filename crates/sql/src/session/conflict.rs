//! Which row an error is about, in the user's words: conflicts and locks name keys, of which only the catalog knows the tables.

use super::Session;
use crate::catalog::{Table, described_row, relations, table_of};
use crate::context::EvalSettings;
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState, waits};
use clock::Timestamp;

/// What is here becomes older while it is read.
const STALENESS_SPARE_S: u64 = 60;

impl Session {
    /// Adds the table and the values of the key that an error is about.
    pub(super) fn name_row(&self, error: SqlError) -> SqlError {
        let view = self.active.as_ref().map(|active| &active.view).or(self.view.as_ref()).map(|view| &**view);
        if !error.circle.is_empty() {
            let told = waits::told(&error.circle, &self.db.sessions, view, &self.settings.eval);
            return error.detail(told).with(|e| e.circle = Vec::new());
        }
        let error = by_the_wall(error, &self.settings.eval);
        let Some(key) = error.key.clone() else { return self.kept_by_all(error) };
        let Some(what) = described_row(&key, view, &self.settings.eval) else { return error };
        let found = view.and_then(|view| table_of(&key, relations(view)));
        let table = found.as_ref().map(|(table, _)| table.name.clone());
        let stale = self.why_so_recent(&error);
        error.with(|e| {
            e.key = None;
            e.hint = stale.or(e.hint.take());
            match &table {
                Some(table) if e.message == NO_LOCK => e.message = format!("{NO_LOCK} in relation \"{table}\""),
                _ => {}
            }
            let detail = format!("It is about {what}.");
            e.detail = Some(match e.detail.take() {
                Some(known) => format!("{known}\n{detail}"),
                None => detail,
            });
            if e.state == SqlState::INVALID_PARAMETER
                && let Some((known, _)) = &found
            {
                e.detail = e.detail.take().map(|told| format!("{told}\n{}", self.kept(known)));
                e.hint = Some(KEEP_MORE.into());
            }
            e.table = e.table.take().or(table);
        })
    }
}

impl Session {
    /// What a snapshot of all tables is refused with, and for how long such are kept.
    fn kept_by_all(&self, error: SqlError) -> SqlError {
        if error.state != SqlState::INVALID_PARAMETER || !error.message.ends_with(COLLECTED) {
            return error;
        }
        let kept = match self.db.options.retention_seconds {
            Some(seconds) => format!("The past is kept for {seconds}s (the node's --retention)."),
            None => "The past is kept for the node's --retention.".into(),
        };
        let told = error.detail.clone().unwrap_or_default();
        error.detail(format!("{told}\n{kept}")).hint(KEEP_MORE)
    }

    /// A read of the past that nobody can serve, where this node alone could serve an older one: why it is not that.
    fn why_so_recent(&self, error: &SqlError) -> Option<String> {
        let asked = self.active.as_ref().filter(|_| error.state == SqlState::CANNOT_CONNECT_NOW)?.as_of?;
        let here = self.db.kv.freshest(Timestamp::MIN);
        if here >= asked {
            return None;
        }
        let now_us = self.db.kv.now_us().max(0).unsigned_abs();
        let ago = |at: Timestamp| now_us.saturating_sub(at.physical_us()).div_ceil(1_000_000);
        let (age, asked_age) = (ago(here), ago(asked));
        let so = format!("Without the others this node can serve what was so {age} s ago");
        Some(match asked <= self.token {
            true => format!(
                "{so}, and this session has seen the database as it was {asked_age} s ago: its snapshots never go back. Another session reads what is here, with timeball.max_staleness = '{}s' or more.",
                age + STALENESS_SPARE_S
            ),
            false => format!(
                "{so}, and {asked_age} s ago is the oldest that was asked for: timeball.max_staleness = '{}s' or more reads what is here.",
                age + STALENESS_SPARE_S
            ),
        })
    }

    /// For how long a table can be read back.
    fn kept(&self, table: &Table) -> String {
        let of = |text: &str| format!("The past of table \"{}\" is kept for {text}", table.name);
        match (&table.retention, self.db.options.retention_seconds) {
            (Some(retention), _) => format!("{} (its retention).", of(&retention.text)),
            (None, Some(seconds)) => format!("{} (the node's --retention).", of(&format!("{seconds}s"))),
            (None, None) => format!("{}.", of("as long as all others")),
        }
    }
}

/// What the node says of a snapshot that is too old.
const COLLECTED: &str = " are collected";
const KEEP_MORE: &str = "A later time can be read; ALTER TABLE .. SET (retention = ..) keeps what ends from then on.";

/// A refused snapshot by the wall clock, too: whoever asked for it said a time.
fn by_the_wall(error: SqlError, settings: &EvalSettings) -> SqlError {
    if error.state != SqlState::INVALID_PARAMETER || !error.message.starts_with("snapshot ") {
        return error;
    }
    let parts = error.message.split([' ', ':']).filter_map(|part| part.parse::<Timestamp>().ok());
    let told = parts.map(|at| {
        let us = i64::try_from(at.physical_us()).unwrap_or(i64::MAX).saturating_sub(EPOCH_OFFSET_US);
        format!("{at} is {}", Value::Timestamptz(us).to_text(&SqlType::Timestamptz(None), settings))
    });
    let told = format!("{}.", told.collect::<Vec<_>>().join("; "));
    error.detail(told)
}

/// What a lock that is not waited for is refused with.
pub(crate) const NO_LOCK: &str = "could not obtain lock on row";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_snapshots_are_told_as_times() {
        let message =
            "snapshot 1700000000000000.0042 cannot be read: versions below 1700000003500000.0000 are collected";
        let error = SqlError::new(SqlState::INVALID_PARAMETER, message);
        let told = by_the_wall(error, &EvalSettings::default());
        assert_eq!(
            told.detail.as_deref(),
            Some("1700000000000000.0042 is 2023-11-14 22:13:20+00; 1700000003500000.0000 is 2023-11-14 22:13:23.5+00.")
        );
    }
}
