//! Types of `$1`..., found while a statement is bound.

use super::Expr;
use crate::syntax::depth;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Greatest number of a parameter: the wire counts them in 16 bits.
pub const PARAMETERS_MAX: usize = 65_535;

/// Parts of expressions that binding one statement may copy: an operand that is asked twice (BETWEEN) is copied, so that such
/// operands within each other double.
const COPIED_MAX: usize = 1_000_000;

/// Types of parameters; [`SqlType::Unknown`] until one is found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    types: Vec<SqlType>,
    allowed: bool,
    /// Parts copied so far.
    copied: usize,
    /// What they are, if the statement is planned for these values alone.
    values: Option<Arc<[Value]>>,
}

impl Parameters {
    /// Parameters whose first ones may be declared by the client (`Unknown` where it left that open).
    pub fn new(declared: &[SqlType]) -> Parameters {
        Parameters { types: declared.to_vec(), allowed: true, copied: 0, values: None }
    }

    /// For statements that take none (DDL): any `$1` is 42P02.
    pub fn none() -> Parameters {
        Parameters { types: Vec::new(), allowed: false, copied: 0, values: None }
    }

    /// Those whose values are known while planning.
    #[must_use]
    pub fn with_values(self, values: Option<Arc<[Value]>>) -> Parameters {
        Parameters { values, ..self }
    }

    /// A parameter as it stands in an expression: by its place, or by its value where that is known.
    ///
    /// # Errors
    /// 42P02 if there can be no such parameter.
    pub(super) fn expression(&mut self, text: &str) -> Result<Expr, SqlError> {
        let (index, ty) = self.reference(text)?;
        let value = self.values.as_ref().filter(|_| ty != SqlType::Unknown).and_then(|values| values.get(index));
        Ok(match value {
            Some(value) => Expr::Literal(value.clone(), ty),
            None => Expr::Parameter { index, ty },
        })
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

    /// A copy of an operand. A parameter has the type that it was found to have since.
    ///
    /// # Errors
    /// 54001 if the statement has copied too much.
    pub(super) fn copy(&mut self, expr: &Expr) -> Result<Expr, SqlError> {
        expr.visit(&mut |_| self.copied += 1);
        if self.copied > COPIED_MAX {
            return Err(depth::too_deep().hint("Operands of BETWEEN, of IN or of comparisons of rows grow too large."));
        }
        Ok(match expr {
            Expr::Parameter { index, .. } => {
                Expr::Parameter { index: *index, ty: self.types.get(*index).cloned().unwrap_or(SqlType::Unknown) }
            }
            other => other.clone(),
        })
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
