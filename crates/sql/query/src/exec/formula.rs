//! Expressions that indexes and generated columns keep as text: immutable, over the columns of one row.
//!
//! What is immutable needs neither settings nor a catalog, so a formula is bound and evaluated without a statement: the same row
//! has the same entries whoever writes it.

use crate::catalog::Table;
use crate::context::EvalSettings;
use crate::expr::{self, BindContext, Expr, Parameters, Scope};
use crate::plan::scope::parse;
use crate::types::SqlType;
use crate::work::Pace;
use crate::{SqlError, SqlState};
use std::cell::OnceCell;

/// What 42P17 says of a generated column's expression.
const GENERATED_REFUSAL: &str = "generation expression is not immutable";

/// Binds expressions of a table over its columns by slot.
pub struct Formulas {
    scope: Scope,
}

/// The binder of a table's formulas, made when the first of them is met: most tables have none.
pub struct LazyFormulas<'a> {
    table: &'a Table,
    made: OnceCell<Formulas>,
}

impl<'a> LazyFormulas<'a> {
    /// For a table.
    pub fn new(table: &'a Table) -> Self {
        LazyFormulas { table, made: OnceCell::new() }
    }

    /// The binder.
    pub fn get(&self) -> &Formulas {
        self.made.get_or_init(|| Formulas::new(self.table))
    }
}

impl Formulas {
    /// For a table.
    pub fn new(table: &Table) -> Self {
        let mut scope = Scope::new();
        scope.add_relation(None, &table.name, table.columns.iter().map(|c| (c.name.as_str(), &c.ty)));
        Formulas { scope }
    }

    /// A value.
    ///
    /// # Errors
    /// What binding finds wrong; 42P17 unless it is immutable, with `refusal` for a message.
    pub fn value(&self, text: &str, refusal: &str) -> Result<Expr, SqlError> {
        let settings = EvalSettings::default();
        let context = BindContext { settings: &settings, objects: None, pace: &Pace::default() };
        let mut none = Parameters::none();
        let bound = expr::bind(&parse(text)?, &self.scope, &mut none, &context).map_err(expr::BindError::into_sql)?;
        // A bare literal is text, as in a select list.
        let bound = match bound.ty() {
            SqlType::Unknown => expr::assign(bound, "", &SqlType::Text, &mut none, &context)?,
            _ => bound,
        };
        immutable(bound, refusal)
    }

    /// A generated column's value, brought to its type.
    ///
    /// # Errors
    /// As [`Formulas::value`]; 42804 if the column cannot hold it.
    pub fn assigned(&self, text: &str, column: &str, ty: &SqlType) -> Result<Expr, SqlError> {
        let settings = EvalSettings::default();
        let context = BindContext { settings: &settings, objects: None, pace: &Pace::default() };
        let mut none = Parameters::none();
        let bound = expr::bind(&parse(text)?, &self.scope, &mut none, &context).map_err(expr::BindError::into_sql)?;
        let bound = immutable(bound, GENERATED_REFUSAL)?;
        let assigned = expr::assign(bound, column, ty, &mut none, &context).map_err(|error| {
            // PostgreSQL calls it a default here.
            let message = error.message.replace("but expression is", "but default expression is");
            error.with(|error| error.message = message)
        })?;
        immutable(assigned, GENERATED_REFUSAL)
    }

    /// A condition.
    ///
    /// # Errors
    /// As [`Formulas::value`]; 42804 unless it is boolean.
    pub fn condition(&self, text: &str, refusal: &str) -> Result<Expr, SqlError> {
        let settings = EvalSettings::default();
        let context = BindContext { settings: &settings, objects: None, pace: &Pace::default() };
        let mut none = Parameters::none();
        let bound = expr::bind_condition(&parse(text)?, "WHERE", &self.scope, &mut none, &context);
        immutable(bound.map_err(expr::BindError::into_sql)?, refusal)
    }
}

fn immutable(bound: Expr, refusal: &str) -> Result<Expr, SqlError> {
    if bound.is_immutable() {
        return Ok(bound);
    }
    Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, refusal))
}
