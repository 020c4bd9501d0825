//! Which row an error is about, in the user's words: conflicts and locks name keys, of which only the catalog knows the tables.

use super::Session;
use crate::catalog::{Table, described_row, relations, table_of};
use crate::{SqlError, SqlState, waits};

impl Session {
    /// Adds the table and the values of the key that an error is about.
    pub(super) fn name_row(&self, error: SqlError) -> SqlError {
        let view = self.active.as_ref().map(|active| &active.view).or(self.view.as_ref()).map(|view| &**view);
        if !error.circle.is_empty() {
            let told = waits::told(&error.circle, &self.db.sessions, view, &self.settings.eval);
            return error.detail(told).with(|e| e.circle = Vec::new());
        }
        let Some(key) = error.key.clone() else { return error };
        let Some(what) = described_row(&key, view, &self.settings.eval) else { return error };
        let found = view.and_then(|view| table_of(&key, relations(view)));
        let table = found.as_ref().map(|(table, _)| table.name.clone());
        error.with(|e| {
            e.key = None;
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
                e.detail = Some(self.kept(known));
                e.hint = Some(
                    "A later time can be read; ALTER TABLE .. SET (retention = ..) keeps what ends from then on."
                        .into(),
                );
            }
            e.table = e.table.take().or(table);
        })
    }
}

impl Session {
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

/// What a lock that is not waited for is refused with.
pub(crate) const NO_LOCK: &str = "could not obtain lock on row";
