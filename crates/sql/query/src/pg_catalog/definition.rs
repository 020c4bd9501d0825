//! Objects as SQL text, in the words of PostgreSQL's `ruleutils`.

use super::Objects;
use crate::SqlError;
use crate::catalog::CatalogView;
use crate::catalog::{
    Check, Collation, Column, Deferral, ForeignKey, Index, IndexColumn, ReferentialAction, Relation, Table,
};
use crate::exec::formula::Formulas;
use crate::exec::index::{EXPRESSION_REFUSAL, PREDICATE_REFUSAL};
use crate::expr::{Expr, deparse::Deparse};
use crate::identifier::{quote_identifier, quote_qualified, split_name};
use crate::syntax::marks::written;
use crate::syntax::output_name;
use crate::syntax::regclass::{each_named_relation, may_name_relations};

pub(super) fn column_name(table: &Table, id: u16) -> &str {
    table.columns.iter().find(|column: &&Column| column.id == id).map_or("?", |column| column.name.as_str())
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(quote_identifier).collect::<Vec<_>>().join(", ")
}

/// A key of an index that is an expression, bound.
pub(super) fn expression(table: &Table, part: &IndexColumn) -> Option<Expr> {
    Formulas::new(table).value(part.expression.as_deref()?, EXPRESSION_REFUSAL).ok()
}

/// Writes an expression over a table's row.
fn deparsed<R>(table: &Table, pretty: bool, write: impl FnOnce(&Deparse<'_>) -> R) -> R {
    let name = |slot: usize| table.columns.get(slot).map_or("?", |column| column.name.as_str());
    write(&Deparse { names: &|slot| quote_identifier(name(slot)), pretty })
}

/// A key of an index: a column, or an expression as it stands in an index's definition.
fn key(table: &Table, part: &IndexColumn, pretty: bool) -> String {
    match &part.expression {
        None => quote_identifier(column_name(table, part.column)),
        Some(text) => match expression(table, part) {
            Some(expr) => deparsed(table, pretty, |deparse| deparse.key(&expr)),
            None => format!("({text})"),
        },
    }
}

/// The names that an index's columns have as attributes.
pub(super) fn key_names(table: &Table, index: &Index) -> Vec<String> {
    let name = |part: &IndexColumn| match &part.expression {
        None => column_name(table, part.column).to_string(),
        Some(text) => match crate::plan::scope::parse(text).map(|expr| output_name(&expr)) {
            Ok(name) if name != "?column?" => name,
            _ => "expr".into(),
        },
    };
    let included = index.include.iter().map(|id| column_name(table, *id).to_string());
    let names: Vec<String> = index.columns.iter().map(name).chain(included).collect();
    crate::catalog::key_names(names.iter().map(String::as_str))
}

/// The expressions of an index, as `pg_get_expr` shows `pg_index.indexprs`.
pub(super) fn expressions(table: &Table, index: &Index) -> Option<String> {
    let found = index.columns.iter().filter(|part| part.expression.is_some());
    let texts: Vec<String> = found
        .map(|part| match expression(table, part) {
            Some(expr) => deparsed(table, false, |deparse| deparse.text(&expr)),
            None => part.expression.clone().unwrap_or_default(),
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The predicate of a partial index.
pub(super) fn predicate(table: &Table, index: &Index, pretty: bool) -> Option<String> {
    let text = index.predicate.as_deref()?;
    Some(match Formulas::new(table).condition(text, PREDICATE_REFUSAL) {
        Ok(expr) => deparsed(table, pretty, |deparse| deparse.text(&expr)),
        Err(_) => text.to_string(),
    })
}

/// `pg_get_indexdef`: of the whole index, or of its column `part` from 1.
pub(super) fn index(schema: Option<&str>, table: &Table, index: &Index, part: usize, pretty: bool) -> String {
    if part > 0 {
        let included = || index.include.get(part - 1 - index.columns.len());
        return match index.columns.get(part - 1) {
            Some(part) => key(table, part, pretty),
            None => included().map_or_else(String::new, |id| quote_identifier(column_name(table, *id))),
        };
    }
    let columns: Vec<String> =
        index.columns.iter().map(|part| key(table, part, pretty) + &collated(table, part) + direction(part)).collect();
    let mut text = format!(
        "CREATE {}INDEX {} ON {} USING btree ({})",
        if index.unique { "UNIQUE " } else { "" },
        quote_identifier(&index.name),
        quote_qualified(schema, &table.name),
        columns.join(", ")
    );
    text += &include(table, index);
    if let Some(predicate) = predicate(table, index, pretty) {
        text += &format!(" WHERE {predicate}");
    }
    text
}

/// COLLATE, where it is not the column's own.
fn collated(table: &Table, part: &IndexColumn) -> String {
    let column = table.columns.iter().find(|column| column.id == part.column);
    let own = column.and_then(|column| column.collation).unwrap_or(Collation::Default);
    match part.collation {
        Some(said) if said != own => format!(" COLLATE {}", quote_identifier(said.name())),
        _ => String::new(),
    }
}

fn direction(part: &IndexColumn) -> &'static str {
    match (part.descending, part.nulls_first()) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    }
}

fn include(table: &Table, index: &Index) -> String {
    match index.include.as_slice() {
        [] => String::new(),
        ids => format!(" INCLUDE ({})", list(ids.iter().map(|id| column_name(table, *id)))),
    }
}

/// The expression of a generated column.
pub(super) fn generated(table: &Table, column: &Column) -> Option<String> {
    let text = column.generated.as_deref()?;
    Some(match Formulas::new(table).assigned(text, &column.name, &column.ty) {
        Ok(expr) => deparsed(table, false, |deparse| deparse.text(&expr)),
        Err(_) => format!("({text})"),
    })
}

/// The pretty form of an expression as it was shown of a table. What is not a formula only loses the parentheses around it.
pub(super) fn pretty(table: Option<&Table>, shown: &str) -> String {
    let formula = |table: &Table| {
        let mut generated = table.columns.iter().filter_map(|column| self::generated(table, column));
        let mut predicates = table.indexes.iter().filter_map(|index| predicate(table, index, false));
        if !generated.any(|own| own == shown) && !predicates.any(|own| own == shown) {
            return None;
        }
        let expr = Formulas::new(table).value(shown, EXPRESSION_REFUSAL).ok()?;
        Some(deparsed(table, true, |deparse| deparse.text(&expr)))
    };
    let bare = || if is_wrapped(shown) { shown[1..shown.len() - 1].to_string() } else { shown.to_string() };
    table.and_then(formula).unwrap_or_else(bare)
}

/// A column's default as PostgreSQL shows it: a bare string literal with its type.
pub(super) fn default_text(column: &Column, path: &[String]) -> Option<String> {
    let text = column.default.as_deref().filter(|_| column.identity.is_none())?;
    if let Some(shown) = without_schemas(text, path) {
        return Some(shown);
    }
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let literal = inner.is_some_and(|inner| !inner.replace("''", "").contains('\''));
    Some(if literal { format!("{text}::{}", column.ty.boundless_name()) } else { text.to_string() })
}

/// A default whose relations are named without their schemas, where the path has those; `None` if there are none.
fn without_schemas(text: &str, path: &[String]) -> Option<String> {
    if !may_name_relations(text) {
        return None;
    }
    let mut expr = crate::syntax::parse_expression(text).ok()?;
    let bare = |name: &str| match split_name(name)?.as_slice() {
        [schema, name] if path.contains(schema) => Ok(Some(quote_identifier(name))),
        _ => Ok(None),
    };
    each_named_relation(&mut expr, bare).ok()?.then(|| written(expr).ok())?
}

/// `pg_get_constraintdef` of a PRIMARY KEY or UNIQUE constraint.
pub(super) fn unique(table: &Table, index: &Index) -> String {
    let kind = if table.has_primary_key && index.id == table.primary.id { "PRIMARY KEY" } else { "UNIQUE" };
    let columns = list(index.columns.iter().map(|part| column_name(table, part.column)));
    format!("{kind} ({columns}){}", include(table, index))
}

/// `pg_get_constraintdef` of a CHECK constraint.
pub(super) fn check(check: &Check, pretty: bool) -> String {
    let condition = parenthesized(&check.expression);
    let condition = if pretty { condition } else { format!("({condition})") };
    format!("CHECK {condition}{}", unless_valid(check.not_valid))
}

fn unless_valid(not_valid: bool) -> &'static str {
    if not_valid { " NOT VALID" } else { "" }
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
    text += match key.deferral {
        Deferral::NotDeferrable => "",
        Deferral::InitiallyImmediate => " DEFERRABLE",
        Deferral::InitiallyDeferred => " DEFERRABLE INITIALLY DEFERRED",
    };
    text += unless_valid(key.not_valid);
    Ok(text)
}
