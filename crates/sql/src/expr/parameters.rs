//! Types of `$1`..., found while a statement is bound.

use crate::types::SqlType;
use crate::{SqlError, SqlState};

/// Greatest number of a parameter: the wire counts them in 16 bits.
pub const PARAMETERS_MAX: usize = 65_535;

/// Types of parameters; [`SqlType::Unknown`] until one is found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    types: Vec<SqlType>,
    allowed: bool,
}

impl Parameters {
    /// Parameters whose first ones may be declared by the client (`Unknown` where it left that open).
    pub fn new(declared: &[SqlType]) -> Parameters {
        Parameters { types: declared.to_vec(), allowed: true }
    }

    /// For statements that take none (DDL): any `$1` is 42P02.
    pub fn none() -> Parameters {
        Parameters { types: Vec::new(), allowed: false }
    }

    /// The place and type so far of a parameter as written: `$1`.
    ///
    /// # Errors
    /// 42P02 if there can be no such parameter.
    pub fn reference(&mut self, text: &str) -> Result<(usize, SqlType), SqlError> {
        let undefined = || SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter {text}"));
        let number: usize = text.strip_prefix('$').and_then(|n| n.parse().ok()).ok_or_else(undefined)?;
        if !self.allowed || number == 0 || number > PARAMETERS_MAX {
            return Err(undefined());
        }
        if self.types.len() < number {
            self.types.resize(number, SqlType::Unknown);
        }
        Ok((number - 1, self.types[number - 1].clone()))
    }

    /// Notes the type of a parameter; the first one found stays.
    pub fn set(&mut self, index: usize, ty: &SqlType) {
        if let Some(slot) = self.types.get_mut(index).filter(|slot| **slot == SqlType::Unknown) {
            *slot = ty.base();
        }
    }

    /// Types so far.
    pub fn types(&self) -> &[SqlType] {
        &self.types
    }

    /// All types, when the statement is bound.
    ///
    /// # Errors
    /// 42P18 for a parameter whose type nothing tells.
    pub fn finish(self) -> Result<Vec<SqlType>, SqlError> {
        match self.types.iter().position(|ty| *ty == SqlType::Unknown) {
            Some(index) => Err(SqlError::new(
                SqlState::INDETERMINATE_DATATYPE,
                format!("could not determine data type of parameter ${}", index + 1),
            )),
            None => Ok(self.types),
        }
    }
}
