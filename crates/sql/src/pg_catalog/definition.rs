//! Objects as SQL text, in the words of PostgreSQL's `ruleutils`.

use super::Objects;
use crate::SqlError;
use crate::catalog::{Check, Column, ForeignKey, Index, ReferentialAction, Relation, Table};
use crate::context::CatalogView;
use crate::identifier::{quote_identifier, quote_qualified};

pub(super) fn column_name(table: &Table, id: u16) -> &str {
    table.columns.iter().find(|column: &&Column| column.id == id).map_or("?", |column| column.name.as_str())
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(quote_identifier).collect::<Vec<_>>().join(", ")
}

/// `pg_get_indexdef`: of the whole index, or of its column `part` from 1.
pub(super) fn index(schema: Option<&str>, table: &Table, index: &Index, part: usize) -> String {
    let column = |place: usize| {
        let part = &index.columns[place];
        quote_identifier(column_name(table, part.column))
    };
    if part > 0 {
        return if part <= index.columns.len() { column(part - 1) } else { String::new() };
    }
    let columns: Vec<String> = (0..index.columns.len())
        .map(|place| column(place) + if index.columns[place].descending { " DESC" } else { "" })
        .collect();
    format!(
        "CREATE {}INDEX {} ON {} USING btree ({})",
        if index.unique { "UNIQUE " } else { "" },
        quote_identifier(&index.name),
        quote_qualified(schema, &table.name),
        columns.join(", ")
    )
}

/// A column's default as PostgreSQL shows it: a bare string literal with its type.
pub(super) fn default_text(column: &Column) -> Option<String> {
    let text = column.default.as_deref().filter(|_| column.identity.is_none())?;
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let literal = inner.is_some_and(|inner| !inner.replace("''", "").contains('\''));
    Some(if literal { format!("{text}::{}", column.ty.base()) } else { text.to_string() })
}

/// `pg_get_constraintdef` of a PRIMARY KEY or UNIQUE constraint.
pub(super) fn unique(table: &Table, index: &Index) -> String {
    let kind = if table.has_primary_key && index.id == table.primary.id { "PRIMARY KEY" } else { "UNIQUE" };
    format!("{kind} ({})", list(index.columns.iter().map(|part| column_name(table, part.column))))
}

/// `pg_get_constraintdef` of a CHECK constraint.
pub(super) fn check(check: &Check, pretty: bool) -> String {
    if pretty {
        return format!("CHECK {}", parenthesized(&check.expression));
    }
    format!("CHECK ({})", parenthesized(&check.expression))
}

fn parenthesized(expression: &str) -> String {
    let trimmed = expression.trim();
    if is_wrapped(trimmed) { trimmed.to_string() } else { format!("({trimmed})") }
}

/// Whether the first character is a parenthesis that the last one closes.
fn is_wrapped(text: &str) -> bool {
    let mut depth = 0i32;
    let mut quoted = false;
    for (i, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 && i + c.len_utf8() < text.len() {
            return false;
        }
    }
    depth == 0 && text.starts_with('(')
}

fn action(action: ReferentialAction) -> Option<&'static str> {
    Some(match action {
        ReferentialAction::NoAction => return None,
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    })
}

/// `pg_get_constraintdef` of a foreign key.
pub(super) fn foreign_key(
    catalog: &dyn CatalogView,
    objects: &Objects,
    path: &[String],
    table: &Table,
    key: &ForeignKey,
) -> Result<String, SqlError> {
    let columns = list(key.columns.iter().map(|id| column_name(table, *id)));
    let target = catalog.relation_by_id(key.referenced_table)?;
    let (name, referenced) = match target.as_deref() {
        Some(Relation::Table(target)) => {
            let schema = objects.schema_name(target.schema);
            let hidden = path.iter().all(|s| s != schema);
            let name = quote_qualified(hidden.then_some(schema), &target.name);
            (name, list(key.referenced_columns.iter().map(|id| column_name(target, *id))))
        }
        _ => ("?".to_string(), String::new()),
    };
    let mut text = format!("FOREIGN KEY ({columns}) REFERENCES {name}({referenced})");
    if let Some(word) = action(key.on_update) {
        text += &format!(" ON UPDATE {word}");
    }
    if let Some(word) = action(key.on_delete) {
        text += &format!(" ON DELETE {word}");
    }
    Ok(text)
}
