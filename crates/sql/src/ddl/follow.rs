//! Defaults that name relations: they follow a rename, and stand in the way of a DROP.

use super::Run;
use crate::SqlError;
use crate::catalog::snapshot::id_of;
use crate::catalog::{Column, Oid, Relation, Table};
use crate::identifier::{quote_qualified, split_name};
use crate::plan::scope::parse;
use crate::syntax::Name;
use crate::syntax::marks::written;
use crate::syntax::regclass::{each_named_relation, may_name_relations};
use std::sync::Arc;

/// Defaults with other texts: of a table, by the ids of their columns.
pub(super) type Followers = Vec<(Oid, Vec<(u16, String)>)>;

impl Run<'_> {
    /// The relation that a literal names.
    pub(super) fn named_by(&self, literal: &str) -> Result<Option<Arc<Relation>>, SqlError> {
        match Name::from_parts(split_name(literal)?) {
            Some(name) => self.relation(&name),
            None => Ok(None),
        }
    }

    /// The defaults as they are when a relation has another schema or name. To be put once it has.
    pub(super) fn followers(&self, id: Oid, schema: &str, name: &str) -> Result<Followers, SqlError> {
        let Some(relation) = self.catalog().relation(id) else { return Ok(Vec::new()) };
        let before = crate::catalog::snapshot::name_of(relation).to_string();
        self.followers_of(&before, &mut |literal| {
            let named = self.named_by(literal)?;
            Ok(named.filter(|named| id_of(named) == id).map(|_| quote_qualified(Some(schema), name)))
        })
    }

    /// The same of a schema.
    pub(super) fn followers_of_schema(&self, from: &str, to: &str) -> Result<Followers, SqlError> {
        self.followers_of(from, &mut |literal| {
            let mut parts = split_name(literal)?;
            let name = parts.pop().unwrap_or_default();
            Ok((parts.pop().as_deref() == Some(from)).then(|| quote_qualified(Some(to), &name)))
        })
    }

    fn followers_of(
        &self,
        word: &str,
        other: &mut dyn FnMut(&str) -> Result<Option<String>, SqlError>,
    ) -> Result<Followers, SqlError> {
        let mut found = Vec::new();
        for relation in self.catalog().relations(self.database.id) {
            let Relation::Table(table) = relation.as_ref() else { continue };
            let mut texts = Vec::new();
            for (column, text) in naming(table, word) {
                let mut expr = parse(text)?;
                if each_named_relation(&mut expr, &mut *other)? {
                    texts.push((column.id, written(expr)?));
                }
            }
            if !texts.is_empty() {
                found.push((table.id, texts));
            }
        }
        Ok(found)
    }

    pub(super) fn put_followers(&mut self, followers: Followers) -> Result<(), SqlError> {
        for (table, texts) in followers {
            let mut table = self.table(table)?;
            for (id, text) in texts {
                if let Some(column) = table.columns.iter_mut().find(|column| column.id == id) {
                    column.default = Some(text);
                }
            }
            self.put_table(table)?;
        }
        Ok(())
    }

    /// The tables with defaults that name a relation, and the columns of those.
    pub(super) fn drawing_from(&self, relation: &Relation) -> Result<Vec<(Table, Vec<u16>)>, SqlError> {
        let (id, name) = (id_of(relation), crate::catalog::snapshot::name_of(relation));
        let mut found = Vec::new();
        for other in self.catalog().relations(self.database.id) {
            let Relation::Table(table) = other.as_ref() else { continue };
            let mut columns = Vec::new();
            for (column, text) in naming(table, name) {
                if self.names(text, id)? {
                    columns.push(column.id);
                }
            }
            if !columns.is_empty() {
                found.push((table.clone(), columns));
            }
        }
        Ok(found)
    }

    /// Whether a default names a relation.
    pub(super) fn names(&self, text: &str, id: Oid) -> Result<bool, SqlError> {
        let mut named = false;
        each_named_relation(&mut parse(text)?, |literal| {
            named |= self.named_by(literal)?.is_some_and(|relation| id_of(&relation) == id);
            Ok(None)
        })?;
        Ok(named)
    }
}

/// The defaults of a table that may name what is called so: all others need not be read.
fn naming<'t>(table: &'t Table, name: &str) -> impl Iterator<Item = (&'t Column, &'t String)> {
    let written = name.replace('"', "\"\"").replace('\'', "''");
    let texts = table.columns.iter().filter_map(|column| Some((column, column.default.as_ref()?)));
    texts.filter(move |(_, text)| may_name_relations(text) && (text.contains('\\') || text.contains(&written)))
}
