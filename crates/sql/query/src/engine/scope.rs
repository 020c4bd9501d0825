//! What names mean: the relations in FROM, their columns, and where a column's value lies in a row.
//!
//! A row of a query begins with the row of the query around it (its *prefix*), so a slot number means the same in both, and a
//! correlated reference is an ordinary one.

use super::item_set::ItemSet;
use super::journal::{Journal, Named};
use super::presence::{hidden_name, is_hidden};
use crate::catalog::{Oid, Relation};
use crate::expr::{NUMBERED, hidden_relation, missing_relation};
use crate::plan::located::KEY_NAME;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::ast::{Expr, Ident};
use std::cell::Cell;
use std::sync::Arc;

/// Begins the identifiers that stand for something after names are resolved. No text of a statement holds it: a user's `"#3"` is a name.
pub(super) const RESERVED: char = '\0';

/// What follows the sign that tells one kind of such identifiers from another.
pub(super) fn reserved(expr: &Expr, sign: char) -> Option<&str> {
    match expr {
        Expr::Identifier(ident) => ident.value.strip_prefix(RESERVED)?.strip_prefix(sign),
        _ => None,
    }
}

/// The name of a slot's column.
pub(super) fn slot_name(slot: usize) -> String {
    format!("{NUMBERED}{slot}")
}

/// The expression that stands for a slot after names are resolved: an identifier that no user can write.
pub(super) fn slot_expr(slot: usize) -> Expr {
    Expr::Identifier(Ident {
        value: slot_name(slot),
        quote_style: Some('"'),
        span: sqlparser::tokenizer::Span::empty(),
    })
}

/// The slot that an expression of [`slot_expr`] stands for.
pub(super) fn slot_of(expr: &Expr) -> Option<usize> {
    reserved(expr, '#')?.parse().ok()
}

/// The slot that the text of such an expression stands for.
pub(super) fn slot_of_text(text: &str) -> Option<usize> {
    text.strip_prefix('"')?.strip_prefix(RESERVED)?.strip_prefix('#')?.strip_suffix('"')?.parse().ok()
}

/// The expression that stands for a column of a relation in FROM, wherever its slot will be.
pub(super) fn item_expr(relation: usize, number: usize) -> Expr {
    Expr::Identifier(Ident {
        value: format!("{RESERVED}@{relation}.{number}"),
        quote_style: Some('"'),
        span: sqlparser::tokenizer::Span::empty(),
    })
}

/// The relation of an expression of [`item_expr`].
pub(super) fn item_of(expr: &Expr) -> Option<usize> {
    item_column(expr).map(|(relation, _)| relation)
}

/// The relation and the column of an expression of [`item_expr`].
pub(super) fn item_column(expr: &Expr) -> Option<(usize, usize)> {
    let (relation, number) = reserved(expr, '@')?.split_once('.')?;
    Some((relation.parse().ok()?, number.parse().ok()?))
}

/// Where a column's value comes from.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A slot of the row.
    Slot(usize),
    /// An expression over slots: a column merged by USING. It belongs to no relation.
    Merged(Arc<Expr>, ItemSet),
    /// Nowhere: the query is grouped, and the column is neither grouped nor depends on what is.
    Ungrouped,
}

/// A column that can be named.
#[derive(Clone, Debug)]
pub(super) struct ScopeColumn {
    pub(super) relation: usize,
    /// Its place among the columns of its relation.
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) place: Place,
    /// Table and column number it comes from.
    pub(super) origin: Option<(Oid, u16)>,
    /// Merged into another by USING: only its qualified name finds it, and `*` leaves it out.
    pub(super) shadowed: bool,
    /// Its place in `*`, among those of the same rank as they come.
    pub(super) rank: usize,
}

/// A relation in FROM.
#[derive(Clone, Debug)]
pub(super) struct ScopeRelation {
    pub(super) alias: String,
    /// Schema, if it was named with one and has no alias.
    pub(super) schema: Option<String>,
    /// The table behind it, if it is one: for functional dependency.
    pub(super) table: Option<Arc<Relation>>,
    /// A function that gives one value: its whole row is that value.
    pub(super) scalar: bool,
    /// The relation that it names.
    pub(super) of: Option<Named>,
    /// A subquery without an alias.
    pub(super) unnamed: bool,
    /// Whether its columns may be named here.
    pub(super) visible: Visible,
}

/// Whether an item of FROM may be named in a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    Yes,
    /// It is there, but not for this part.
    Hidden,
    /// It comes later.
    Later,
}

/// The names that an expression may use.
#[derive(Debug, Default)]
pub(super) struct Scope<'p> {
    pub(super) parent: Option<&'p Scope<'p>>,
    pub(super) relations: Vec<ScopeRelation>,
    pub(super) columns: Vec<ScopeColumn>,
    /// The type of each slot of the row, the prefix included.
    pub(super) types: Vec<SqlType>,
    /// Whether a name was found in a scope around this one.
    pub(super) uses_parent: Cell<bool>,
    /// Where what names mean is noted, if somebody asks.
    pub(super) journal: Option<Journal>,
    /// For each relation the slot of its first column, if it is in the row; nothing is known if there are none.
    pub(super) bases: Vec<Option<usize>>,
}

/// What a name was found to be.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The expression over slots.
    pub(super) expr: Expr,
    pub(super) origin: Option<(Oid, u16)>,
}

/// The error of an ungrouped column, told of a query inside the grouped one.
fn from_outside(mut error: SqlError) -> SqlError {
    let ungrouped = "must appear in the GROUP BY clause or be used in an aggregate function";
    if error.state == SqlState::GROUPING_ERROR
        && let Some(column) = error.message.strip_suffix(ungrouped)
    {
        error.message = format!("subquery uses ungrouped {column}from outer query");
    }
    error
}

impl<'p> Scope<'p> {
    /// A scope without relations, inside another.
    pub(super) fn inside(parent: Option<&'p Scope<'p>>) -> Scope<'p> {
        let journal = parent.and_then(|parent| parent.journal.clone());
        Scope { parent, journal, types: parent.map_or_else(Vec::new, |p| p.types.clone()), ..Scope::default() }
    }

    /// A scope of the same row layout as `parent` in which none of its names are known: for views.
    pub(super) fn opaque(parent: Option<&Scope<'_>>) -> Scope<'static> {
        Scope { types: parent.map_or_else(Vec::new, |p| p.types.clone()), ..Scope::default() }
    }

    /// The same rows, with only these relations to be named.
    pub(super) fn limited(&self, own: ItemSet) -> Scope<'p> {
        let last = (0..self.relations.len()).rev().find(|relation| own.has(*relation)).unwrap_or(0);
        let relation = |(place, relation): (usize, &ScopeRelation)| {
            let visible = match own.has(place) {
                true => Visible::Yes,
                false if place > last => Visible::Later,
                false => Visible::Hidden,
            };
            ScopeRelation { visible, ..relation.clone() }
        };
        let within = |column: &&ScopeColumn| match &column.place {
            Place::Merged(_, items) => items.within(own),
            _ => own.has(column.relation),
        };
        Scope {
            parent: self.parent,
            relations: self.relations.iter().enumerate().map(relation).collect(),
            columns: self.columns.iter().filter(within).cloned().collect(),
            types: self.types.clone(),
            uses_parent: Cell::new(self.uses_parent.get()),
            journal: self.journal.clone(),
            bases: Vec::new(),
        }
    }

    /// Slots of a row.
    pub(super) fn width(&self) -> usize {
        self.types.len()
    }

    fn error(&self, parts: &[String]) -> SqlError {
        match parts {
            [name] => SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist")),
            [qualifiers @ .., name] if self.knows(qualifiers) => {
                let relation = &qualifiers[qualifiers.len() - 1];
                SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column {relation}.{name} does not exist"))
            }
            [qualifiers @ .., _] => self.missing(qualifiers),
            [] => SqlError::new(SqlState::SYNTAX_ERROR, "an empty name"),
        }
    }

    /// No relation of this name, which may be one of another schema than said.
    fn missing(&self, qualifiers: &[String]) -> SqlError {
        let Some(relation) = qualifiers.last() else { return SqlError::new(SqlState::SYNTAX_ERROR, "an empty name") };
        match self.hides(relation) || self.knows(std::slice::from_ref(relation)) {
            true => hidden_relation(relation),
            false => missing_relation(relation, self.alias_of(relation)),
        }
    }

    /// The name under which a table can be named.
    fn alias_of(&self, table: &str) -> Option<&str> {
        let is_meant = |r: &&ScopeRelation| {
            let own = r
                .table
                .as_ref()
                .is_some_and(|known| matches!(known.as_ref(), Relation::Table(known) if known.name == table));
            own && r.alias != table && r.visible == Visible::Yes
        };
        let here = self.relations.iter().find(is_meant).map(|relation| relation.alias.as_str());
        here.or_else(|| self.parent.and_then(|parent| parent.alias_of(table)))
    }

    /// Whether the qualifiers of a name mean a relation here or around.
    fn knows(&self, qualifiers: &[String]) -> bool {
        self.knows_here(qualifiers) || self.parent.is_some_and(|parent| parent.knows(qualifiers))
    }

    fn knows_here(&self, qualifiers: &[String]) -> bool {
        let is_meant = |(place, relation): (usize, &ScopeRelation)| {
            relation.visible == Visible::Yes && self.qualified(qualifiers, place)
        };
        self.relations.iter().enumerate().any(is_meant)
    }

    fn hides(&self, alias: &str) -> bool {
        self.relations.iter().any(|r| r.alias == alias && r.visible == Visible::Hidden)
            || self.parent.is_some_and(|parent| parent.hides(alias))
    }

    /// The relation here whose whole row is one value, and that value's column.
    pub(super) fn only_value(&self, alias: &str) -> Option<&ScopeColumn> {
        match self.relations.iter().position(|relation| relation.alias == alias) {
            Some(place) if self.relations[place].scalar => {
                self.columns.iter().find(|column| column.relation == place && !is_hidden(&column.name))
            }
            Some(_) => None,
            None => self.parent.and_then(|parent| parent.only_value(alias)),
        }
    }

    /// Relations that the qualifiers of a name may mean here.
    fn qualified(&self, qualifiers: &[String], relation: usize) -> bool {
        match (qualifiers, self.relations.get(relation)) {
            ([], _) => true,
            (_, None) => false,
            ([alias], Some(relation)) => relation.alias == *alias,
            ([.., schema, alias], Some(relation)) => {
                relation.alias == *alias && relation.schema.as_deref() == Some(schema)
            }
        }
    }

    pub(super) fn here(&self, parts: &[String]) -> Result<Option<&ScopeColumn>, SqlError> {
        let Some((name, qualifiers)) = parts.split_last().filter(|(name, _)| !is_hidden(name)) else { return Ok(None) };
        match (self.named(name, qualifiers)?, hidden_name(name)) {
            (None, Some(name)) => self.named(name, qualifiers),
            (found, _) => Ok(found),
        }
    }

    fn named(&self, name: &str, qualifiers: &[String]) -> Result<Option<&ScopeColumn>, SqlError> {
        let shown = name.trim_start_matches(RESERVED);
        let mut found: Option<&ScopeColumn> = None;
        for column in &self.columns {
            let qualified = !qualifiers.is_empty();
            // A merged column has no relation to be named with.
            let visible = if matches!(column.place, Place::Merged(..)) {
                !qualified && !column.shadowed
            } else {
                !column.shadowed || qualified
            };
            if visible && column.name == name && self.qualified(qualifiers, column.relation) {
                if found.is_some() {
                    let message = format!("column reference \"{shown}\" is ambiguous");
                    return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message));
                }
                found = Some(column);
            }
        }
        Ok(found)
    }

    /// Finds a column by its name.
    pub(super) fn column(&self, parts: &[String]) -> Result<Found, SqlError> {
        self.find(parts)?.ok_or_else(|| self.error(parts))
    }

    /// Finds a column by its name; `None` if there is none here or around.
    pub(super) fn find(&self, parts: &[String]) -> Result<Option<Found>, SqlError> {
        if let Some(column) = self.here(parts)? {
            return self.place(column).map(Some);
        }
        match self.parent {
            None => Ok(None),
            Some(parent) => {
                let found = parent.find(parts).map_err(from_outside)?;
                self.uses_parent.set(self.uses_parent.get() || found.is_some());
                Ok(found)
            }
        }
    }

    /// Notices that a slot is read: one of the prefix belongs to a query around.
    pub(super) fn read_slot(&self, slot: usize) {
        if let Some(parent) = self.parent.filter(|parent| slot < parent.width()) {
            self.uses_parent.set(true);
            parent.read_slot(slot);
        }
    }

    pub(super) fn place(&self, column: &ScopeColumn) -> Result<Found, SqlError> {
        let expr = match &column.place {
            Place::Slot(slot) => slot_expr(*slot),
            Place::Merged(expr, _) => expr.as_ref().clone(),
            Place::Ungrouped => {
                // A mark stands for the whole row.
                let shown = match column.name.trim_start_matches(RESERVED) {
                    "" => "*",
                    name => name,
                };
                let name = match self.relations.get(column.relation) {
                    Some(relation) => format!("{}.{shown}", relation.alias),
                    None => shown.to_string(),
                };
                let message =
                    format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function");
                return Err(SqlError::new(SqlState::GROUPING_ERROR, message));
            }
        };
        Ok(Found { expr, origin: column.origin })
    }

    /// The columns of `*`, or of `alias.*`.
    pub(super) fn star(&self, qualifiers: &[String]) -> Result<Vec<(String, Found)>, SqlError> {
        let (scope, columns) = self.starred(qualifiers)?;
        columns.into_iter().map(|column| Ok((column.name.clone(), scope.place(column)?))).collect()
    }

    /// The same, as the columns of the scope that knows them.
    pub(super) fn starred(&self, qualifiers: &[String]) -> Result<(&Scope<'p>, Vec<&ScopeColumn>), SqlError> {
        let named = self.columns.iter().filter(|column| !is_hidden(&column.name) && column.name != KEY_NAME);
        let columns = named.filter(|column| match qualifiers {
            [] => !column.shadowed,
            _ => !matches!(column.place, Place::Merged(..)) && self.qualified(qualifiers, column.relation),
        });
        if !qualifiers.is_empty() && !self.knows_here(qualifiers) {
            if let Some(parent) = self.parent.filter(|parent| parent.knows(qualifiers)) {
                self.uses_parent.set(true);
                return parent.starred(qualifiers);
            }
            return Err(self.missing(qualifiers));
        }
        let mut columns: Vec<&ScopeColumn> = columns.collect();
        if qualifiers.is_empty() {
            columns.sort_by_key(|column| column.rank);
        }
        Ok((self, columns))
    }

    /// The column that [`item_expr`] stands for.
    pub(super) fn item(&self, expr: &Expr) -> Option<Expr> {
        let (relation, number) = item_column(expr)?;
        if let Some(base) = self.bases.get(relation) {
            return base.map(|base| slot_expr(base + number));
        }
        let column = self
            .columns
            .iter()
            .find(|c| c.relation == relation && c.number == number && !matches!(c.place, Place::Merged(..)))?;
        self.place(column).ok().map(|found| found.expr)
    }

    /// Relations here (not around) that a name means.
    pub(super) fn relations_called(&self, qualifiers: &[String]) -> ItemSet {
        let called = (0..self.relations.len()).filter(|relation| self.qualified(qualifiers, *relation));
        called.map(ItemSet::one).fold(ItemSet::NONE, ItemSet::and)
    }

    /// Relations here (not around) that a name may be a column of.
    pub(super) fn relations_of(&self, parts: &[String]) -> ItemSet {
        match self.here(parts) {
            Ok(Some(column)) => match &column.place {
                Place::Merged(_, items) => *items,
                _ => ItemSet::one(column.relation),
            },
            // Either the name of a relation (its whole row), or not known here.
            _ => match parts {
                [name] => {
                    let found = self.relations.iter().position(|r| r.alias == *name);
                    found.map_or(ItemSet::NONE, ItemSet::one)
                }
                _ => ItemSet::NONE,
            },
        }
    }
}
