//! What the names in a query were found to mean, by where they stand in its text: for who writes the text anew, so that it keeps its meaning
//! while tables change below it (decision 0148).
//!
//! Notes are taken where names are resolved ([`Scope::note`]) and only while somebody asks ([`names_of`]). Views inside the query are not looked
//! into: their names are their own. A place that is resolved to different things is noted as unclear, and left as it is.

use super::bind::Binder;
use super::presence::{is_hidden, names_alone};
use super::scope::{Place, Scope, ScopeColumn, ScopeRelation};
use crate::SqlError;
use crate::catalog::Oid;
use crate::identifier::fold;
use crate::plan::PlanContext;
use sqlparser::ast::{Ident, Query, Spanned, TableFactor};
use sqlparser::tokenizer::Location;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The relation that an item of FROM names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The table.
    pub oid: Oid,
    /// It goes by another name.
    pub aliased: bool,
    /// So many of its columns go by the names of a list.
    pub listed: usize,
}

/// A column that a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameNote {
    /// How many parts the name has.
    pub parts: usize,
    /// The relation that it is of, if that stands in FROM by its name.
    pub of: Option<Named>,
    /// Its place among the columns there.
    pub number: usize,
    /// What it can be qualified by, where it stands.
    pub qualifier: Option<Vec<String>>,
}

/// What is known of a query's names, by the place of the last identifier of each.
#[derive(Debug, Default)]
pub struct Notes {
    /// Names of columns; `None` if unclear.
    pub names: BTreeMap<Location, Option<NameNote>>,
    /// Names of relations that mean their whole row.
    pub rows: BTreeMap<Location, Option<Named>>,
    /// The columns of each `*`, by its own place: qualifier and name.
    pub stars: BTreeMap<Location, Vec<(Option<Vec<String>>, String)>>,
    /// The columns that NATURAL merges, by the place of the item on its right.
    pub naturals: BTreeMap<Location, Vec<String>>,
    /// The relations in FROM, by the place of the first identifier of each.
    pub tables: BTreeMap<Location, Oid>,
}

impl Notes {
    /// The columns that are named, in the order of the text: the same before and after the text is written anew.
    pub fn columns(&self) -> Vec<Option<(Oid, usize)>> {
        let column = |note: &Option<NameNote>| note.as_ref().and_then(|note| Some((note.of?.oid, note.number)));
        self.names.values().map(column).collect()
    }
}

/// Notes being taken.
pub(super) type Journal = Rc<RefCell<Notes>>;

/// Resolves the names of a query.
///
/// # Errors
/// As planning it.
pub fn names_of(query: &Query, context: &PlanContext) -> Result<Notes, SqlError> {
    let journal = Journal::default();
    {
        let mut binder = Binder::new(context, None);
        binder.alone = names_alone(query)?;
        binder.query(query, &Scope { journal: Some(journal.clone()), ..Scope::default() })?;
    }
    Ok(journal.take())
}

/// Where an item of FROM begins.
pub fn place_of_item(factor: &TableFactor) -> Location {
    factor.span().start
}

fn is_place(place: Location) -> bool {
    place.line > 0
}

impl Scope<'_> {
    /// Notes what a name was found to be.
    pub(super) fn note(&self, idents: &[Ident]) {
        let Some(journal) = &self.journal else { return };
        let Some(place) = idents.last().map(|ident| ident.span.start).filter(|place| is_place(*place)) else { return };
        let parts: Vec<String> = idents.iter().map(fold).collect();
        let mut around: Vec<&Scope<'_>> = Vec::new();
        let mut scope = self;
        let column = loop {
            match (scope.here(&parts), scope.parent) {
                (Ok(Some(column)), _) => break column,
                (Ok(None), Some(parent)) => {
                    around.push(scope);
                    scope = parent;
                }
                _ => return,
            }
        };
        let shown = scope.qualifier(column);
        let hides = |inner: &&Scope<'_>, alias: &str| inner.relations.iter().any(|relation| relation.alias == alias);
        let qualifier = shown.filter(|parts| {
            let alias = parts.last().map_or("", String::as_str);
            !around.iter().any(|inner| hides(inner, alias))
        });
        let of = match column.place {
            Place::Merged(..) => None,
            _ => scope.relations.get(column.relation).and_then(|relation| relation.of),
        };
        let note = Some(NameNote { parts: parts.len(), of, number: column.number, qualifier });
        let mut notes = journal.borrow_mut();
        let known = notes.names.entry(place).or_insert_with(|| note.clone());
        if *known != note {
            *known = None;
        }
    }

    /// Notes that the name of a relation means its row.
    pub(super) fn note_row(&self, name: Option<&Ident>) {
        let (Some(journal), Some(name)) = (&self.journal, name) else { return };
        let alias = fold(name);
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(relation) = here.relations.iter().find(|relation| relation.alias == alias) {
                if is_place(name.span.start) {
                    journal.borrow_mut().rows.insert(name.span.start, relation.of);
                }
                return;
            }
            scope = here.parent;
        }
    }

    /// Notes what a `*` shows.
    pub(super) fn note_star(&self, place: Location, qualifiers: &[String]) {
        let Some(journal) = &self.journal else { return };
        if let Ok((scope, columns)) = self.starred(qualifiers) {
            let column = |column: &&ScopeColumn| (scope.qualifier(column), column.name.clone());
            journal.borrow_mut().stars.insert(place, columns.iter().map(column).collect());
        }
    }

    /// Notes the columns that NATURAL merges.
    pub(super) fn note_natural(&self, right: &TableFactor, names: &[String]) {
        if let Some(journal) = &self.journal {
            journal.borrow_mut().naturals.insert(place_of_item(right), names.to_vec());
        }
    }

    /// Notes the relation that an item names.
    pub(super) fn note_table(&self, first: Option<&Ident>, named: Option<Named>) {
        if let (Some(journal), Some(first), Some(named)) = (&self.journal, first, named) {
            journal.borrow_mut().tables.insert(first.span.start, named.oid);
        }
    }

    /// What a column can be qualified by here.
    fn qualifier(&self, column: &ScopeColumn) -> Option<Vec<String>> {
        if matches!(column.place, Place::Merged(..)) || is_hidden(&column.name) {
            return None;
        }
        let relation = self.relations.get(column.relation)?;
        let same = |other: &&ScopeRelation| other.alias == relation.alias;
        let alone = self.relations.iter().filter(same).count() == 1;
        match (&relation.schema, alone) {
            _ if relation.unnamed || relation.alias.is_empty() => None,
            (_, true) => Some(vec![relation.alias.clone()]),
            (Some(schema), false) => Some(vec![schema.clone(), relation.alias.clone()]),
            (None, false) => None,
        }
    }
}
