//! SQL types and values: text and binary forms, comparison, casts.
//!
//! [`SqlType`] names a type (`oid`, `name`), [`Value`] holds a value of one. A value does not carry its type: text, varchar, char and
//! name are all [`Value::Text`], and what differs (blanks of char(n), the setting of a zone) is said by the type given beside it.

mod array;
mod binary_form;
mod build;
mod bytea;
pub mod calendar;
mod cast;
mod chance;
mod date_time;
mod decimal;
mod identity;
mod interval;
pub mod json;
mod logarithm;
mod name;
mod number;
pub mod numeric;
mod oid;
mod order;
mod record;
mod settings;
mod size;
mod stored;
pub mod style;
mod text_form;
mod zoned_time;

pub use array::check_bounds;
pub use array::{MAX_DIMENSIONS, fits_dimensions};
pub use build::{Items, Text};
pub use bytea::{parse_bytea, parse_hex};
pub use calendar::add_months;
pub use cast::{CastContext, CastKind, ObjectNames, cannot_cast, cast_kind, is_special_time};
pub use chance::fill_by_chance;
pub use date_time::{checked_day, checked_timestamp, has_zone, parse_offset, zone_abbreviation};
pub use decimal::Decimal;
pub use interval::{Field, IntervalModifier};
pub use name::DeclaredType;
pub use number::{float_overflow, float_underflow, out_of_range};
pub use numeric::division_by_zero;
pub use oid::Oid;
pub use record::{Names, Record};
pub use settings::{EvalSettings, SettingAbout, SettingSource};
pub use size::{ELEMENT_BYTES, VALUE_BYTES_MAX, bounded, heap_bytes, large_bytes, value_bytes, value_fits, wide_bytes};
pub use zoned_time::ZonedTime;

use crate::{SqlError, SqlState};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A column's or an expression's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum SqlType {
    /// boolean
    Bool,
    /// smallint
    Int2,
    /// integer
    Int4,
    /// bigint
    Int8,
    /// real
    Float4,
    /// double precision
    Float8,
    /// numeric, with precision and scale if declared
    Numeric(Option<(u16, i16)>),
    /// text
    Text,
    /// varchar(n)
    Varchar(Option<u32>),
    /// char(n), blank-padded
    Char(u32),
    /// name: identifiers in catalogs
    Name,
    /// "char": one byte, in catalogs
    SingleChar,
    /// bytea
    Bytea,
    /// date
    Date,
    /// time without time zone, with the digits of its seconds' fraction if declared
    Time(Option<u8>),
    /// time with time zone, likewise
    Timetz(Option<u8>),
    /// timestamp without time zone, likewise
    Timestamp(Option<u8>),
    /// timestamp with time zone, likewise
    Timestamptz(Option<u8>),
    /// interval, with its fields and the digits of its seconds' fraction if declared
    Interval(Option<IntervalModifier>),
    /// uuid
    Uuid,
    /// json
    Json,
    /// jsonb
    Jsonb,
    /// oid
    Oid,
    /// regclass, regtype, regproc, regnamespace: an oid that prints as a name
    Reg(RegKind),
    /// int2vector: in catalogs
    Int2Vector,
    /// oidvector: in catalogs
    OidVector,
    /// An array of scalars
    Array(Box<SqlType>),
    /// A composite value: `ROW(..)`
    Record,
    /// A literal or parameter whose type is not yet known
    Unknown,
    /// What a function without a result returns
    Void,
}

/// What a reg-type names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RegKind {
    /// regclass
    Class,
    /// regtype
    Type,
    /// regproc
    Proc,
    /// regnamespace
    Namespace,
    /// regprocedure
    Procedure,
    /// regoperator
    Operator,
    /// regrole
    Role,
}

/// One value, of three words: rows are many, and are copied. Days and microseconds count from 2000-01-01 (PostgreSQL's epoch); `i64::MIN`/`MAX` are -infinity and infinity.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// NULL of any type
    #[default]
    Null,
    /// boolean
    Bool(bool),
    /// smallint
    Int2(i16),
    /// integer
    Int4(i32),
    /// bigint
    Int8(i64),
    /// real
    Float4(f32),
    /// double precision
    Float8(f64),
    /// numeric
    Numeric(Numeric),
    /// text, varchar, char (padded), name, "char", unknown
    Text(Arc<str>),
    /// bytea
    Bytea(Arc<[u8]>),
    /// days since 2000-01-01
    Date(i32),
    /// microseconds since midnight
    Time(i64),
    /// a time of day and its zone
    Timetz(ZonedTime),
    /// microseconds since 2000-01-01
    Timestamp(i64),
    /// microseconds since 2000-01-01 UTC
    Timestamptz(i64),
    /// months, days, microseconds
    Interval(Interval),
    /// uuid
    Uuid([u8; 16]),
    /// json: the text as given
    Json(Arc<str>),
    /// jsonb: normalised text (keys sorted by length then bytes, duplicates dropped, PostgreSQL's spacing)
    Jsonb(Arc<str>),
    /// oid and the reg types
    Oid(u32),
    /// array of scalars; also int2vector and oidvector
    Array(Arc<Array>),
    /// composite
    Record(Arc<Record>),
}

const _: () = assert!(size_of::<Value>() == 24);

/// numeric: with PostgreSQL's special values.
#[derive(Clone, Debug)]
pub enum Numeric {
    /// A number; its scale is what it shows.
    Finite(Decimal),
    /// NaN: equal to itself, above all else
    NaN,
    /// Infinity
    Infinity,
    /// -Infinity
    NegInfinity,
}

/// interval
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// An array: its element type, dimensions with lower bounds, and elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Element type.
    pub element: SqlType,
    /// (length, lower bound) of each dimension; none for an empty array.
    pub dimensions: Vec<(i32, i32)>,
    /// Elements.
    pub values: Vec<Value>,
}

/// A row.
pub type Row = Vec<Value>;

impl Value {
    /// A row as a value; without names its fields are f1, f2 and so on.
    ///
    /// # Errors
    /// 54000 if rows within rows would be too long a text: quotes double with each level.
    pub fn record(fields: Vec<Value>, names: Option<Names>) -> Result<Value, SqlError> {
        let nested = fields.iter().any(|field| matches!(field, Value::Record(_)));
        if nested && nested_text_bytes(&fields) > RECORD_BYTES_MAX {
            let message = format!("rows within rows are a text of more than {RECORD_BYTES_MAX} bytes");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("Nest fewer rows."));
        }
        Ok(Value::Record(Arc::new(Record::new(fields, names))))
    }
}

/// Longest text of rows within rows, bytes.
const RECORD_BYTES_MAX: usize = 16 << 20;

/// An upper bound of the text of a row. It goes as deep as a row has been let to nest.
fn nested_text_bytes(fields: &[Value]) -> usize {
    text_size(fields).0
}

/// Bytes of the text of a row or an array, about, and how many of them are quotes and backslashes: each becomes two where the text is
/// a field of another.
fn text_size(fields: &[Value]) -> (usize, usize) {
    let quoted = |(bytes, quotes): (usize, usize)| {
        let doubled = quotes.saturating_mul(2).saturating_add(2);
        (bytes.saturating_add(quotes).saturating_add(2), doubled)
    };
    let size = |field: &Value| match field {
        Value::Text(text) | Value::Json(text) | Value::Jsonb(text) => {
            quoted((text.len(), text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()))
        }
        Value::Array(array) => quoted(text_size(&array.values)),
        Value::Record(inner) => quoted(text_size(inner)),
        Value::Null | Value::Bool(_) => (1, 0),
        Value::Int2(_) | Value::Int4(_) | Value::Int8(_) | Value::Oid(_) => {
            (field.as_i64().map_or(20, |n| 2 + n.unsigned_abs().checked_ilog10().unwrap_or(0) as usize), 0)
        }
        _ => (64, 0),
    };
    fields
        .iter()
        .map(size)
        .fold((2, 0), |sum, field| (sum.0.saturating_add(field.0).saturating_add(1), sum.1.saturating_add(field.1)))
}
