//! Which row a key is of, in the users' words: the layers below name keys, of which only the catalog knows the tables.

use super::view::View;
use super::{FIRST_USER_OID, Index, Oid, Relation, Table, key as keys, snapshot};
use crate::types::EvalSettings;
use sql_value::encoding::{index_of, key};
use std::sync::Arc;

/// Longest text of a key's values that is shown, bytes.
const SHOWN_BYTES_MAX: usize = 200;

/// The table that a key is of, and its index, if it is not the rows themselves.
pub fn table_of(key: &[u8], relations: impl IntoIterator<Item = Arc<Relation>>) -> Option<(Table, Option<Index>)> {
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

/// The relations that a view shows.
pub fn relations(view: &View) -> Vec<Arc<Relation>> {
    view.snapshot().relations(view.database().id)
}

/// Which row a key is of, in words.
pub fn described_row(key: &[u8], view: Option<&View>, settings: &EvalSettings) -> Option<String> {
    match view.and_then(|view| table_of(key, relations(view))) {
        Some((table, secondary)) => {
            Some(described(&table, secondary.as_ref().unwrap_or(&table.primary), key, settings))
        }
        None => in_catalog(key, view),
    }
}

/// What of the catalog a key is of.
fn in_catalog(key: &[u8], view: Option<&View>) -> Option<String> {
    let area = index_of(key).filter(|index| *index < FIRST_USER_OID)?;
    let object = || view?.snapshot().relation(keys::object_id(key)?).cloned();
    let said = match area {
        keys::VERSION if keys::is_permit(key) => Some("the permit to write a table anew".into()),
        keys::VERSION | keys::RELATIONS | keys::VERSIONS => {
            object().map(|relation| format!("the definition of \"{}\"", snapshot::name_of(&relation)))
        }
        keys::NAMES => key.get(8..).and_then(|name| Some(format!("the name \"{}\"", std::str::from_utf8(name).ok()?))),
        _ => None,
    };
    Some(said.unwrap_or_else(|| "the catalog".into()))
}

/// `the row (id)=(1) of table "t"`.
fn described(table: &Table, index: &Index, key: &[u8], settings: &EvalSettings) -> String {
    let place = if index.id == table.primary.id {
        format!("of table \"{}\"", table.name)
    } else {
        format!("of index \"{}\" of table \"{}\"", index.name, table.name)
    };
    if key.len() > std::mem::size_of::<Oid>() && index.id == table.primary.id && !table.has_primary_key {
        return format!("a row {place}");
    }
    match key_values(table, index, key, settings) {
        Some(values) => format!("the row {values} {place}"),
        None => format!("rows {place}"),
    }
}

/// `(id)=(1)`: the columns of an index, and what a key says of them. `None`: it says nothing that a user would know.
pub fn key_values(table: &Table, index: &Index, key: &[u8], settings: &EvalSettings) -> Option<String> {
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
