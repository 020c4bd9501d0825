//! Composite values: the fields of a row, and what they are called.
//!
//! Names go with the value, for it is asked for them where its query is long out of sight: `to_json` of an array of rows, of a CASE,
//! of what a window function gave. All rows of one expression share them.

use super::{SqlType, Value};
use crate::{SqlError, SqlState};
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// Names and types of the fields of rows.
pub type Names = Arc<[(String, SqlType)]>;

/// The fields of a row. Two are equal if their values are, whatever they are called.
#[derive(Clone, Debug)]
pub struct Record {
    values: Box<[Value]>,
    names: Option<Names>,
}

impl Record {
    /// A row of these values.
    pub fn new(values: Vec<Value>, names: Option<Names>) -> Record {
        Record { values: values.into(), names }
    }

    /// What its fields are called, if they have names of their own.
    pub fn names(&self) -> Option<&Names> {
        self.names.as_ref()
    }

    /// The name of a field: f1, f2 and so on where it has none of its own.
    pub fn name(&self, place: usize) -> Cow<'_, str> {
        match self.names.as_ref().and_then(|names| names.get(place)) {
            Some((name, _)) => Cow::Borrowed(name),
            None => Cow::Owned(format!("f{}", place + 1)),
        }
    }

    /// The type of a field, or what its value tells of it.
    pub fn field_type(&self, place: usize) -> SqlType {
        match self.names.as_ref().and_then(|names| names.get(place)) {
            Some((_, ty)) => ty.clone(),
            None => self.values.get(place).map_or(SqlType::Unknown, Value::natural_type),
        }
    }
}

impl Record {
    /// Whether two rows can be told apart: as far as they are equal their fields have the same types, and there are as many.
    ///
    /// # Errors
    /// 42804 if not.
    pub fn comparable(&self, other: &Record) -> Result<(), SqlError> {
        for (place, (a, b)) in self.iter().zip(other.iter()).enumerate() {
            let types = (self.field_type(place).base(), other.field_type(place).base());
            if types.0 != types.1 && types.0 != SqlType::Unknown && types.1 != SqlType::Unknown {
                let column = place + 1;
                let message = format!(
                    "cannot compare dissimilar column types {} and {} at record column {column}",
                    types.0, types.1
                );
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
            }
            if a.compare(b, &types.0).is_ne() {
                return Ok(());
            }
        }
        if self.len() == other.len() {
            return Ok(());
        }
        let message = "cannot compare record types with different numbers of columns";
        Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
    }
}

impl Deref for Record {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.values
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.values == other.values
    }
}
