//! Scalar expressions: typed, bound to columns, parameters and functions, evaluated row by row.
//!
//! ```text
//! syntax tree --bind--> Expr --eval(row, context)--> Value
//!     scope: which column is meant        columns are places in the row
//!     parameters: types are inferred      casts are written out
//! ```
//!
//! [`bind`] follows PostgreSQL's analysis: unknown literals and parameters take the type of what they meet, operators and functions
//! are chosen by argument types with implicit casts (`resolve`), immutable calls of constants are folded. What needs rows of other
//! relations (subqueries, aggregates, windows, set-returning functions) is not an error of the user's but [`BindError::NeedsEngine`].
//!
//! Invariants:
//! 1. Operands of an [`Expr::Compare`] or [`Expr::Arithmetic`] hold values of its operand type: binding inserted the casts.
//! 2. An expression without columns, parameters and volatile or stable parts is a literal after binding.
//! 3. Evaluation draws time and entropy only from the context, never from the system.

pub mod aggregate;
mod analysis;
mod arithmetic;
mod bind;
mod bind_function;
mod bind_operator;
mod coerce;
pub mod deparse;
mod eval;
mod fold;
pub mod function;
mod functions;
pub mod literals;
mod parameters;
mod pattern;
mod regex;
mod resolve;
mod scope;
pub use functions::date::moved_us;
pub use scope::{hidden_relation, missing_relation};
#[cfg(test)]
mod tests;

pub use analysis::{conjunction, split_conjuncts};
pub use bind::element;
pub use bind::{BindContext, BindError, bind, bind_condition, bind_lazily, known_collation};
pub use bind_operator::argument_of_all;
pub use bind_operator::operator_named;
pub use bind_operator::row_fields;
pub use coerce::{assign, coerce};
pub use fold::settle;
pub use function::{Arguments, Function, Volatility};
pub use functions::regexp;
pub use parameters::{PARAMETERS_MAX, Parameters};
pub use scope::{NUMBERED, Scope, ScopeColumn};

use sql_statement::{advisory, contention, peers, sessions, statement};
use sql_syntax as syntax;
use sql_value::{Attempt, SqlError, SqlState, identifier, transaction, types, work};
use types::{SqlType, Value};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
}

impl CompareOp {
    /// As SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "=",
            CompareOp::NotEq => "<>",
            CompareOp::Lt => "<",
            CompareOp::LtEq => "<=",
            CompareOp::Gt => ">",
            CompareOp::GtEq => ">=",
        }
    }

    /// The comparison with its operands exchanged.
    pub fn flipped(self) -> CompareOp {
        match self {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::LtEq => CompareOp::GtEq,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::GtEq => CompareOp::LtEq,
            same => same,
        }
    }

    /// Whether it holds for an order of its operands.
    #[inline]
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            CompareOp::Eq => order.is_eq(),
            CompareOp::NotEq => order.is_ne(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::LtEq => order.is_le(),
            CompareOp::Gt => order.is_gt(),
            CompareOp::GtEq => order.is_ge(),
        }
    }
}

/// Arithmetic on numbers of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
}

impl ArithmeticOp {
    /// As SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            ArithmeticOp::Add => "+",
            ArithmeticOp::Sub => "-",
            ArithmeticOp::Mul => "*",
            ArithmeticOp::Div => "/",
            ArithmeticOp::Mod => "%",
        }
    }
}

/// A bound expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Value, SqlType),
    /// A column: a place in the row.
    Column {
        /// Place in the row.
        index: usize,
        /// Its type.
        ty: SqlType,
    },
    /// A parameter: a place in the context's `params`.
    Parameter {
        /// From 0: `$1` is 0.
        index: usize,
        /// Its type.
        ty: SqlType,
    },
    /// A comparison of two values of type `ty`.
    Compare {
        /// Which.
        op: CompareOp,
        /// Type of both operands.
        ty: SqlType,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// Arithmetic on two numbers of type `ty`, which is the result's type too.
    Arithmetic {
        /// Which.
        op: ArithmeticOp,
        /// Type of operands and result.
        ty: SqlType,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// All hold.
    And(Vec<Expr>),
    /// One holds.
    Or(Vec<Expr>),
    /// NOT
    Not(Box<Expr>),
    /// IS [NOT] NULL
    IsNull {
        /// Operand.
        expr: Box<Expr>,
        /// IS NOT NULL.
        negated: bool,
    },
    /// IS [NOT] TRUE, FALSE
    IsBool {
        /// Operand.
        expr: Box<Expr>,
        /// TRUE or FALSE.
        value: bool,
        /// IS NOT.
        negated: bool,
    },
    /// IS [NOT] DISTINCT FROM
    IsDistinct {
        /// Type of both operands.
        ty: SqlType,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
        /// IS NOT DISTINCT FROM.
        negated: bool,
    },
    /// [NOT] IN (...)
    InList {
        /// Type of all operands.
        ty: SqlType,
        /// Left operand.
        expr: Box<Expr>,
        /// The list.
        list: Vec<Expr>,
        /// NOT IN.
        negated: bool,
    },
    /// `left op ANY (array)`, `left op ALL (array)`
    AnyAll {
        /// Which comparison.
        op: CompareOp,
        /// Type of the left operand and the elements.
        ty: SqlType,
        /// Left operand.
        left: Box<Expr>,
        /// The array.
        array: Box<Expr>,
        /// ALL.
        all: bool,
    },
    /// CASE
    Case {
        /// What the branches are compared with, and the type of the comparison.
        operand: Option<(Box<Expr>, SqlType)>,
        /// WHEN, THEN.
        branches: Vec<(Expr, Expr)>,
        /// ELSE.
        otherwise: Option<Box<Expr>>,
        /// Type of the result.
        ty: SqlType,
    },
    /// COALESCE
    Coalesce(Vec<Expr>, SqlType),
    /// NULLIF
    NullIf {
        /// Gives the result.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
        /// Type of the comparison.
        ty: SqlType,
    },
    /// GREATEST, LEAST: NULLs do not count.
    Extreme {
        /// Candidates, all of type `ty`.
        list: Vec<Expr>,
        /// Type of all.
        ty: SqlType,
        /// GREATEST.
        greatest: bool,
    },
    /// A cast.
    Cast {
        /// Operand.
        expr: Box<Expr>,
        /// Its type.
        from: SqlType,
        /// Type of the result.
        to: SqlType,
        /// Written by the user, or implied.
        explicit: bool,
    },
    /// A function or an operator that is one.
    Call {
        /// The function.
        function: &'static Function,
        /// Arguments, cast to what the function takes.
        args: Vec<Expr>,
        /// Their types.
        types: Vec<SqlType>,
        /// Type of the result.
        ty: SqlType,
    },
    /// `ARRAY[...]`
    Array {
        /// Elements: scalars of type `element`, or arrays of it.
        items: Vec<Expr>,
        /// Type of an element.
        element: SqlType,
    },
    /// `array[i]`, `array[i][j]`
    Subscript {
        /// The array.
        array: Box<Expr>,
        /// One index for each dimension.
        indexes: Vec<Expr>,
        /// Type of the result.
        ty: SqlType,
    },
    /// `ROW(...)`
    Row(Vec<Expr>),
}

impl Expr {
    /// Type of its values.
    pub fn ty(&self) -> SqlType {
        match self {
            Expr::Literal(_, ty)
            | Expr::Column { ty, .. }
            | Expr::Parameter { ty, .. }
            | Expr::Arithmetic { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::Coalesce(_, ty)
            | Expr::Extreme { ty, .. }
            | Expr::Cast { to: ty, .. }
            | Expr::Subscript { ty, .. }
            | Expr::Call { ty, .. } => ty.clone(),
            Expr::Compare { .. }
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull { .. }
            | Expr::IsBool { .. }
            | Expr::IsDistinct { .. }
            | Expr::InList { .. }
            | Expr::AnyAll { .. } => SqlType::Bool,
            Expr::NullIf { left, .. } => left.ty(),
            Expr::Array { element, .. } => SqlType::Array(Box::new(element.clone())),
            Expr::Row(_) => SqlType::Record,
        }
    }

    /// A literal of its own type.
    pub fn literal(value: Value) -> Expr {
        let ty = value.natural_type();
        Expr::Literal(value, ty)
    }
}
