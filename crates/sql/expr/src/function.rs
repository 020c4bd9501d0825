//! Functions: their signatures, how to find them, how to call them.

use super::functions;
use crate::statement::Statement;
use crate::types::EvalSettings;
use crate::types::{CastContext, SqlType, Value, bounded, large_bytes};
use crate::{SqlError, SqlState, work};
use std::sync::LazyLock;

/// Units of work of any call.
const CALL_UNITS: usize = 64;

/// How often a function's result may differ for the same arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Never: calls of constants are folded.
    Immutable,
    /// Not within a statement.
    Stable,
    /// At each call.
    Volatile,
}

/// Type of an argument or a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Sig {
    /// This type.
    Is(SqlType),
    /// An array of this type.
    ArrayOf(SqlType),
    /// Any type; all of these are the same one (`anyelement`).
    Element,
    /// An array of what `Element` is (`anyarray`).
    ArrayOfElement,
    /// Any type, each its own (`"any"`).
    Any,
    /// Any type but an array (`anynonarray`).
    NonArray,
}

/// What a function gets beside its arguments.
pub struct Arguments<'a> {
    /// Types of the arguments.
    pub types: &'a [SqlType],
    /// Type of the result.
    pub result: &'a SqlType,
    /// The statement; none while constants are folded.
    pub statement: Option<&'a Statement>,
}

static DEFAULT_SETTINGS: LazyLock<EvalSettings> = LazyLock::new(EvalSettings::default);

impl<'a> Arguments<'a> {
    /// Settings.
    pub fn settings(&self) -> &'a EvalSettings {
        self.statement.map_or(&DEFAULT_SETTINGS, |statement| &statement.settings)
    }

    /// The statement.
    ///
    /// # Errors
    /// XX000 if there is none; only volatile and stable functions ask, and those are not folded.
    pub fn statement(&self) -> Result<&'a Statement, SqlError> {
        self.statement
            .ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "a stable function was called without a statement"))
    }

    /// What casts need.
    pub fn cast_context(&self) -> CastContext<'a> {
        cast_context(self.statement)
    }
}

/// What casts need, from a statement if there is one.
pub fn cast_context(statement: Option<&Statement>) -> CastContext<'_> {
    match statement {
        Some(statement) => {
            CastContext { settings: &statement.settings, objects: statement, now_us: Some(statement.transaction_us) }
        }
        None => CastContext::new(&DEFAULT_SETTINGS),
    }
}

pub use crate::syntax::forms::NAMED_ROW;
pub use functions::date_operators::{MIDNIGHT, ZONED_MIDNIGHT, beside_moment};

/// The body of a function.
pub type Body = fn(&[Value], &Arguments<'_>) -> Result<Value, SqlError>;

/// A function, or an operator under its symbol.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Types of its arguments.
    pub args: &'static [Sig],
    /// The last argument may repeat, or be left out.
    pub variadic: bool,
    /// Type of its result.
    pub result: Sig,
    /// See [`Volatility`].
    pub volatility: Volatility,
    /// NULL if any argument is NULL, without a call.
    pub strict: bool,
    /// Its body.
    pub body: Body,
}

impl Function {
    /// An immutable, strict function.
    pub const fn pure(name: &'static str, args: &'static [Sig], result: Sig, body: Body) -> Function {
        Function { name, args, variadic: false, result, volatility: Volatility::Immutable, strict: true, body }
    }

    /// A stable, strict one.
    pub const fn stable(name: &'static str, args: &'static [Sig], result: Sig, body: Body) -> Function {
        Function { name, args, variadic: false, result, volatility: Volatility::Stable, strict: true, body }
    }

    /// A volatile, strict one.
    pub const fn volatile(name: &'static str, args: &'static [Sig], result: Sig, body: Body) -> Function {
        Function { name, args, variadic: false, result, volatility: Volatility::Volatile, strict: true, body }
    }

    /// Called with NULLs too.
    pub(crate) const fn lax(mut self) -> Function {
        self.strict = false;
        self
    }

    /// The last argument repeats, or may be left out.
    pub const fn many(mut self) -> Function {
        self.variadic = true;
        self
    }

    /// Calls it. A call is work, by the size of its arguments; its result is a value that may be.
    ///
    /// # Errors
    /// What its body finds wrong.
    pub fn call(&self, values: &[Value], arguments: &Arguments<'_>) -> Result<Value, SqlError> {
        if self.strict && values.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        work::step(CALL_UNITS + values.iter().map(large_bytes).sum::<usize>())?;
        bounded((self.body)(values, arguments)?)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        std::ptr::eq(self, other)
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every function, operators included: for `pg_proc`, and for engines that want them.
pub fn all() -> impl Iterator<Item = &'static Function> {
    functions::TABLES.iter().flat_map(|table| table.iter())
}

/// Functions of a name, sorted by name once.
pub fn by_name(name: &str) -> &'static [&'static Function] {
    static SORTED: LazyLock<Vec<&'static Function>> = LazyLock::new(|| {
        let mut sorted: Vec<&'static Function> = all().collect();
        sorted.sort_by_key(|function| function.name);
        sorted
    });
    let start = SORTED.partition_point(|function| function.name < name);
    let count = SORTED[start..].partition_point(|function| function.name == name);
    &SORTED[start..start + count]
}

/// Functions that give rows and do not read the catalogs: they need the engine.
const SETS: &[&str] = &[
    "_pg_expandarray",
    "generate_series",
    "generate_subscripts",
    "json_array_elements",
    "json_array_elements_text",
    "json_each",
    "json_each_text",
    "json_object_keys",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_each",
    "jsonb_each_text",
    "jsonb_object_keys",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "unnest",
];

/// Those of them that the catalogs answer: `pg_catalog`.
pub const CATALOG_SETS: &[&str] =
    &["pg_partition_ancestors", "pg_get_keywords", "pg_options_to_table", "aclexplode", "pg_listening_channels"];

/// Whether a function gives rows.
pub fn is_set_returning(name: &str) -> bool {
    SETS.contains(&name) || CATALOG_SETS.contains(&name)
}
