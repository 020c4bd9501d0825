//! Names: qualification; literals.

use crate::identifier::fold;
use sqlparser::ast::{ObjectName, ObjectNamePart};
use std::fmt;

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
