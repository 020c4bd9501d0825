//! count, sum, avg, min, max, bool_and, bool_or, with PostgreSQL's result types: a sum of int4 is int8, of int8 numeric; an
//! average of integers is numeric.

use super::total::Total;
use crate::SqlError;
use crate::context::StatementContext;
use crate::expr::Expr;
pub use crate::expr::aggregate::Function;
use crate::types::{SqlType, Value, wide_bytes};
use std::borrow::Cow;

/// One aggregate of a statement.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// Which.
    pub function: Function,
    /// Its argument, over the joined row; `None` is `*`.
    pub argument: Option<Expr>,
    /// Type of the argument.
    pub ty: SqlType,
}

impl Aggregate {
    /// One that this code runs; `None` where only the engine does.
    pub fn new(function: Function, argument: Option<Expr>) -> Option<Aggregate> {
        use SqlType::*;
        let ty = argument.as_ref().map_or(Int8, Expr::ty);
        let runs = matches!(
            (function, &ty),
            (Function::Count, _)
                | (Function::Sum | Function::Avg, Int2 | Int4 | Int8 | Numeric(_) | Float4 | Float8)
                | (Function::Min | Function::Max, Int2 | Int4 | Int8 | Float4 | Float8 | Numeric(_))
                | (Function::Min | Function::Max, Date | Time(_) | Timestamp(_) | Timestamptz(_) | Interval(_))
                | (Function::Min | Function::Max, Text | Varchar(_) | Name | Unknown | Char(_) | Oid | Bytea)
                | (Function::BoolAnd | Function::BoolOr, Bool)
        );
        runs.then_some(Aggregate { function, argument, ty })
    }

    /// Type of the result.
    pub fn result(&self) -> SqlType {
        let argument = std::slice::from_ref(&self.ty);
        self.function.result(argument).unwrap_or_else(|| self.ty.clone())
    }
}

/// A running aggregate.
#[derive(Debug, Clone)]
pub struct Accumulator {
    function: Function,
    ty: SqlType,
    count: i64,
    total: Total,
    best: Value,
    /// The most that `best` has held, bytes, and what of it nobody took of the statement's memory yet.
    held_bytes: usize,
    unpaid_bytes: usize,
}

impl Aggregate {
    /// Starts.
    pub fn start(&self) -> Accumulator {
        Accumulator {
            function: self.function,
            ty: self.ty.clone(),
            count: 0,
            total: Total::default(),
            best: Value::Null,
            held_bytes: 0,
            unpaid_bytes: 0,
        }
    }

    /// Takes a row.
    pub fn step(&self, to: &mut Accumulator, row: &[Value], context: &StatementContext) -> Result<(), SqlError> {
        match &self.argument {
            None => {
                to.count += 1;
                Ok(())
            }
            Some(expr) => to.add(expr.eval_ref(row, context)?),
        }
    }
}

impl Accumulator {
    fn add(&mut self, value: Cow<'_, Value>) -> Result<(), SqlError> {
        if value.is_null() {
            return Ok(());
        }
        self.count += 1;
        match self.function {
            Function::Sum | Function::Avg => self.total.add(&value)?,
            Function::Min | Function::BoolAnd if self.count == 1 || value.compare(&self.best, &self.ty).is_lt() => {
                self.keep(value.into_owned());
            }
            Function::Max | Function::BoolOr if self.count == 1 || value.compare(&self.best, &self.ty).is_gt() => {
                self.keep(value.into_owned());
            }
            // A count, or nothing better; there are no others: see [`Aggregate::new`].
            _ => {}
        }
        Ok(())
    }

    /// Takes further rows of which it reads nothing: `count(*)`.
    pub(crate) fn count_rows(&mut self, rows: usize) {
        self.count += rows as i64;
    }

    fn keep(&mut self, value: Value) {
        let more = wide_bytes(&value).saturating_sub(self.held_bytes);
        self.held_bytes += more;
        self.unpaid_bytes += more;
        self.best = value;
    }

    /// By how many bytes what it holds has grown since this was last asked.
    pub(crate) fn take_grown(&mut self) -> usize {
        std::mem::take(&mut self.unpaid_bytes)
    }

    /// Whether it has met a value.
    pub(crate) fn is_settled(&self) -> bool {
        self.count > 0
    }

    /// The result.
    pub fn finish(self) -> Result<Value, SqlError> {
        if self.function == Function::Count {
            return Ok(Value::Int8(self.count));
        }
        if self.count == 0 {
            return Ok(Value::Null);
        }
        match self.function {
            Function::Sum => self.total.sum(&self.ty),
            Function::Avg => self.total.average(&self.ty),
            _ => Ok(self.best),
        }
    }
}
