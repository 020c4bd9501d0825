//! Names: folding, quoting, qualification.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use std::fmt;

/// Longest name, bytes; the rest is cut off, as in PostgreSQL.
pub const NAME_BYTES_MAX: usize = 63;

/// The name that an identifier stands for: lower case unless quoted.
pub fn fold(ident: &Ident) -> String {
    let mut name = if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() };
    if name.len() > NAME_BYTES_MAX {
        let end = (0..=NAME_BYTES_MAX).rev().find(|i| name.is_char_boundary(*i)).unwrap_or(0);
        name.truncate(end);
    }
    name
}

/// A name as it must be written to be read back.
pub fn quote_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !sqlparser::keywords::ALL_KEYWORDS.contains(&name.to_ascii_uppercase().as_str());
    if plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A string as a literal.
pub fn quote_literal(text: &str) -> String {
    if text.contains('\\') {
        format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// A name, qualified or not.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Name {
    /// The database, if given.
    pub database: Option<String>,
    /// The schema, if given.
    pub schema: Option<String>,
    /// The name.
    pub name: String,
}

impl Name {
    /// From the library's form; `None` if it has parts that are no identifiers, or too many.
    pub fn from_object(object: &ObjectName) -> Option<Name> {
        let mut parts = Vec::with_capacity(object.0.len());
        for part in &object.0 {
            match part {
                ObjectNamePart::Identifier(ident) => parts.push(fold(ident)),
                ObjectNamePart::Function(_) => return None,
            }
        }
        Name::from_parts(parts)
    }
    /// From one to three parts.
    pub fn from_parts(mut parts: Vec<String>) -> Option<Name> {
        let name = parts.pop()?;
        let schema = parts.pop();
        let database = parts.pop();
        parts.is_empty().then_some(Name { database, schema, name })
    }
    /// Without qualification.
    pub fn bare(name: impl Into<String>) -> Name {
        Name { database: None, schema: None, name: name.into() }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        f.write_str(&self.name)
    }
}
