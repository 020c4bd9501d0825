//! Which column a name means.

use crate::identifier::fold;
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::ast::Ident;

/// A column that expressions may name.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeColumn {
    /// Name or alias of its relation.
    pub relation: String,
    /// Schema of its relation; none if it has an alias.
    pub schema: Option<String>,
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// Found only with the relation's name in front: the rows of `excluded`.
    pub qualified_only: bool,
}

/// What the name of a numbered column of a row begins with: no text of a statement holds it.
pub const NUMBERED: &str = "\0#";

/// The columns of one or more relations. The place of a column here is its place in the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    columns: Vec<ScopeColumn>,
    /// Tables under another name: their own, and that.
    aliases: Vec<(String, String)>,
    /// Types of numbered columns, whose names are [`NUMBERED`] and their places; there are no others then.
    numbered: Vec<SqlType>,
}

impl Scope {
    /// No columns: for VALUES and defaults.
    pub fn new() -> Scope {
        Scope::default()
    }

    /// Columns that are known by their places: those of a row whose names are resolved.
    pub fn of_numbered(types: Vec<SqlType>) -> Scope {
        Scope { numbered: types, ..Scope::default() }
    }

    /// The type of the column at a place.
    pub(crate) fn ty(&self, place: usize) -> &SqlType {
        self.numbered.get(place).unwrap_or_else(|| &self.columns[place].ty)
    }

    /// The place of a numbered column.
    fn numbered(&self, parts: &[Ident]) -> Option<usize> {
        let [ident] = parts else { return None };
        let place = ident.value.strip_prefix(NUMBERED)?.parse().ok()?;
        (place < self.numbered.len()).then_some(place)
    }

    /// Appends the columns of a relation; gives the place of its first.
    pub fn add_relation<'a>(
        &mut self,
        schema: Option<&str>,
        relation: &str,
        columns: impl IntoIterator<Item = (&'a str, &'a SqlType)>,
    ) -> usize {
        let start = self.columns.len();
        self.columns.extend(columns.into_iter().map(|(name, ty)| ScopeColumn {
            relation: relation.to_owned(),
            schema: schema.map(str::to_owned),
            name: name.to_owned(),
            ty: ty.clone(),
            qualified_only: false,
        }));
        start
    }

    /// A relation of the scope is a table of another name.
    pub fn add_alias(&mut self, table: &str, relation: &str) {
        self.aliases.push((table.to_owned(), relation.to_owned()));
    }

    fn missing(&self, relation: &str) -> SqlError {
        let alias = self.aliases.iter().find(|(table, _)| table == relation);
        missing_relation(relation, alias.map(|(_, alias)| alias.as_str()))
    }

    /// Appends one column.
    pub fn add_column(&mut self, column: ScopeColumn) -> usize {
        self.columns.push(column);
        self.columns.len() - 1
    }

    /// The columns.
    pub fn columns(&self) -> &[ScopeColumn] {
        &self.columns
    }

    /// Whether a relation of this name is here.
    pub(crate) fn has_relation(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.relation == name)
    }

    /// The place of the column that `name`, `relation.name` or `schema.relation.name` means.
    ///
    /// # Errors
    /// 42703 if there is none, 42702 if there are several, 42P01 if the relation is not here.
    pub fn resolve(&self, parts: &[Ident]) -> Result<usize, SqlError> {
        if let Some(place) = self.numbered(parts) {
            return Ok(place);
        }
        let names: Vec<String> = parts.iter().map(fold).collect();
        let result = match names.as_slice() {
            [name] => self.find(name, name, |column| !column.qualified_only),
            [relation, name] => {
                if !self.has_relation(relation) {
                    return Err(at(self.missing(relation), parts.first()));
                }
                self.find(&format!("{relation}.{name}"), name, |column| column.relation == *relation)
            }
            [.., schema, relation, name] => {
                let matches =
                    |c: &ScopeColumn| c.relation == *relation && c.schema.as_deref().is_some_and(|s| s == schema);
                if !self.columns.iter().any(matches) {
                    let known = self.has_relation(relation);
                    let error = if known { hidden_relation(relation) } else { self.missing(relation) };
                    return Err(at(error, parts.first()));
                }
                self.find(&format!("{relation}.{name}"), name, matches)
            }
            [] => Err(SqlError::new(SqlState::SYNTAX_ERROR, "a column name is missing")),
        };
        result.map_err(|error| at(error, parts.first()))
    }

    fn find(&self, shown: &str, name: &str, wanted: impl Fn(&ScopeColumn) -> bool) -> Result<usize, SqlError> {
        let mut found = self.columns.iter().enumerate().filter(|(_, column)| column.name == name && wanted(column));
        let first = found.next().map(|(index, _)| index);
        if first.is_some() && found.next().is_some() {
            return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, format!("column reference \"{name}\" is ambiguous")));
        }
        first.ok_or_else(|| {
            let shown = if shown.contains('.') { shown.to_owned() } else { format!("\"{shown}\"") };
            SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column {shown} does not exist"))
        })
    }
}

/// 42P01 for a relation that is not in FROM, or is there under an alias.
pub fn missing_relation(relation: &str, alias: Option<&str>) -> SqlError {
    match alias {
        Some(alias) => {
            invalid_relation(relation).hint(format!("Perhaps you meant to reference the table alias \"{alias}\"."))
        }
        None => {
            let message = format!("missing FROM-clause entry for table \"{relation}\"");
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        }
    }
}

/// 42P01 for a relation that is in FROM, and cannot be named where it is.
pub fn hidden_relation(relation: &str) -> SqlError {
    invalid_relation(relation).hint(format!(
        "There is an entry for table \"{relation}\", but it cannot be referenced from this part of the query."
    ))
}

fn invalid_relation(relation: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_TABLE, format!("invalid reference to FROM-clause entry for table \"{relation}\""))
}

/// Adds the place in the text, which for a statement of one line is its column.
fn at(mut error: SqlError, ident: Option<&Ident>) -> SqlError {
    if let Some(ident) = ident
        && ident.span.start.line == 1
        && error.position.is_none()
    {
        error.position = u32::try_from(ident.span.start.column).ok();
    }
    error
}
