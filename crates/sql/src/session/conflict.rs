//! Which row an error is about, in the user's words: conflicts and locks name keys, of which only the catalog knows the tables.

use super::Session;
use crate::catalog::view::View;
use crate::catalog::{Index, Oid, Relation, Table};
use crate::context::EvalSettings;
use crate::encoding::{index_of, key};
use crate::{SqlError, SqlState, catalog, waits};
use std::sync::Arc;

/// Longest text of a key's values that is shown, bytes.
const SHOWN_BYTES_MAX: usize = 200;

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

/// The table that a key is of, and its index, if it is not the rows themselves.
pub(crate) fn table_of(
    key: &[u8],
    relations: impl IntoIterator<Item = Arc<Relation>>,
) -> Option<(Table, Option<Index>)> {
    let index = index_of(key)?;
    relations.into_iter().find_map(|relation| match &*relation {
        Relation::Table(table) if table.primary.id == index => Some((table.clone(), None)),
        Relation::Table(table) => {
            let found = table.indexes.iter().find(|known| known.id == index)?.clone();
            Some((table.clone(), Some(found)))
        }
        Relation::View(_) | Relation::Sequence(_) => None,
    })
}

pub(super) fn relations(view: &View) -> Vec<Arc<Relation>> {
    view.snapshot().relations(view.database().id)
}

/// Which row a key is of, in words.
pub(crate) fn described_row(key: &[u8], view: Option<&View>, settings: &EvalSettings) -> Option<String> {
    match view.and_then(|view| table_of(key, relations(view))) {
        Some((table, secondary)) => {
            Some(described(&table, secondary.as_ref().unwrap_or(&table.primary), key, settings))
        }
        None => in_catalog(key, view),
    }
}

/// What of the catalog a key is of.
fn in_catalog(key: &[u8], view: Option<&View>) -> Option<String> {
    let area = index_of(key).filter(|index| *index < catalog::FIRST_USER_OID)?;
    let object = || view?.snapshot().relation(catalog::key::object_id(key)?).cloned();
    let said = match area {
        catalog::key::VERSION | catalog::key::RELATIONS | catalog::key::VERSIONS => {
            object().map(|relation| format!("the definition of \"{}\"", catalog::snapshot::name_of(&relation)))
        }
        catalog::key::NAMES => {
            key.get(8..).and_then(|name| Some(format!("the name \"{}\"", std::str::from_utf8(name).ok()?)))
        }
        _ => None,
    };
    Some(said.unwrap_or_else(|| "the catalog".into()))
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

/// `the row (id)=(1) of table "t"`.
fn described(table: &Table, index: &Index, key: &[u8], settings: &EvalSettings) -> String {
    let place = if index.id == table.primary.id {
        format!("of table \"{}\"", table.name)
    } else {
        format!("of index \"{}\" of table \"{}\"", index.name, table.name)
    };
    if index.id == table.primary.id && !table.has_primary_key {
        return format!("a row {place}");
    }
    match key_values(table, index, key, settings) {
        Some(values) => format!("the row {values} {place}"),
        None => format!("rows {place}"),
    }
}

/// `(id)=(1)`: the columns of an index, and what a key says of them. `None`: it says nothing that a user would know.
pub(crate) fn key_values(table: &Table, index: &Index, key: &[u8], settings: &EvalSettings) -> Option<String> {
    if index.id == table.primary.id && !table.has_primary_key {
        return None;
    }
    let mut rest = key.get(std::mem::size_of::<Oid>()..).unwrap_or_default();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for part in &index.columns {
        let Some(column) = table.columns.iter().find(|column| column.id == part.column) else { break };
        // The end of a span stands for no row; what can be read of it says where it lies.
        let Ok(value) = key::decode_value(&mut rest, &column.ty, part.descending) else { break };
        names.push(column.name.as_str());
        values.push(if value.is_null() { "null".into() } else { value.to_text(&column.ty, settings) });
    }
    if names.is_empty() {
        return None;
    }
    let values = values.join(", ");
    let shown = crate::identifier::cut(&values, SHOWN_BYTES_MAX);
    let rest = if shown.len() < values.len() { ".." } else { "" };
    Some(format!("({})=({shown}{rest})", names.join(", ")))
}
