//! Types by name: `format_type` and what the parser gives.

use super::{Field, IntervalModifier, RegKind, SqlType};
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, IntervalFields, TimezoneInfo,
};
use std::fmt;

/// A column's declared type: SERIAL kinds are an integer plus a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredType {
    /// The type of the column.
    pub ty: SqlType,
    /// SMALLSERIAL, SERIAL, BIGSERIAL: DDL makes a sequence, a default and NOT NULL.
    pub serial: bool,
}

/// As PostgreSQL's `format_type(oid, typmod)`: `character varying(3)`, `integer[]`.
impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            SqlType::Bool => "boolean",
            SqlType::Int2 => "smallint",
            SqlType::Int4 => "integer",
            SqlType::Int8 => "bigint",
            SqlType::Float4 => "real",
            SqlType::Float8 => "double precision",
            SqlType::Numeric(None) => "numeric",
            SqlType::Numeric(Some((precision, scale))) => return write!(f, "numeric({precision},{scale})"),
            SqlType::Text => "text",
            SqlType::Varchar(None) => "character varying",
            SqlType::Varchar(Some(n)) => return write!(f, "character varying({n})"),
            SqlType::Char(0) => "character",
            SqlType::Char(n) => return write!(f, "character({n})"),
            SqlType::Name => "name",
            SqlType::SingleChar => "\"char\"",
            SqlType::Bytea => "bytea",
            SqlType::Date => "date",
            SqlType::Time(Some(digits)) => return write!(f, "time({digits}) without time zone"),
            SqlType::Time(None) => "time without time zone",
            SqlType::Timetz(Some(digits)) => return write!(f, "time({digits}) with time zone"),
            SqlType::Timetz(None) => "time with time zone",
            SqlType::Timestamp(Some(digits)) => return write!(f, "timestamp({digits}) without time zone"),
            SqlType::Timestamp(None) => "timestamp without time zone",
            SqlType::Timestamptz(Some(digits)) => return write!(f, "timestamp({digits}) with time zone"),
            SqlType::Timestamptz(None) => "timestamp with time zone",
            SqlType::Interval(Some(modifier)) => return write!(f, "interval{modifier}"),
            SqlType::Interval(None) => "interval",
            SqlType::Uuid => "uuid",
            SqlType::Json => "json",
            SqlType::Jsonb => "jsonb",
            SqlType::Oid => "oid",
            SqlType::Reg(kind) => kind.name(),
            SqlType::Int2Vector => "int2vector",
            SqlType::OidVector => "oidvector",
            SqlType::Array(element) => return write!(f, "{element}[]"),
            SqlType::Record => "record",
            SqlType::Unknown => "unknown",
            SqlType::Void => "void",
        };
        f.write_str(name)
    }
}

impl SqlType {
    /// The name of the type without a length, for a cast that cuts nothing: `character` alone would be one character long.
    pub fn boundless_name(&self) -> String {
        match self.base() {
            SqlType::Char(_) => "bpchar".to_string(),
            SqlType::Array(element) if matches!(*element, SqlType::Char(_)) => "bpchar[]".to_string(),
            ty => ty.to_string(),
        }
    }

    /// The type by its plain name, as in `pg_type` or SQL: `int4`, `character varying`, `timestamptz`, `_int4`, `int4[]`.
    /// Modifiers in parentheses are not read here.
    pub fn from_name(name: &str) -> Option<SqlType> {
        let name = name.trim();
        if let Some(element) = name.strip_suffix("[]") {
            return SqlType::from_name(element.trim_end_matches("[]")).map(|ty| SqlType::Array(Box::new(ty)));
        }
        let lower = name.to_ascii_lowercase();
        if name != "\"char\"" && lower == "char" {
            return Some(SqlType::Char(1));
        }
        SqlType::scalars().find(|ty| ty.typname() == lower || ty.to_string() == lower).or_else(|| {
            Some(match lower.as_str() {
                "int" => SqlType::Int4,
                "decimal" | "dec" => SqlType::Numeric(None),
                "float" => SqlType::Float8,
                "timestamp" => SqlType::Timestamp(None),
                "time" => SqlType::Time(None),
                "string" => SqlType::Text,
                _ => {
                    let element = lower.strip_prefix('_')?;
                    return SqlType::from_name(element).map(|ty| SqlType::Array(Box::new(ty)));
                }
            })
        })
    }

    /// The type that an SQL statement names.
    ///
    /// # Errors
    /// 42704 for a type that does not exist, 0A000 for one that is not supported, 22023 for a bad modifier.
    pub fn from_ast(ty: &DataType) -> Result<SqlType, SqlError> {
        let declared = DeclaredType::from_ast(ty)?;
        if declared.serial {
            return Err(undefined_type(ty));
        }
        Ok(declared.ty)
    }
}

fn named_fields(fields: &IntervalFields) -> (Field, Field) {
    match fields {
        IntervalFields::Year => (Field::Year, Field::Year),
        IntervalFields::Month => (Field::Month, Field::Month),
        IntervalFields::Day => (Field::Day, Field::Day),
        IntervalFields::Hour => (Field::Hour, Field::Hour),
        IntervalFields::Minute => (Field::Minute, Field::Minute),
        IntervalFields::Second => (Field::Second, Field::Second),
        IntervalFields::YearToMonth => (Field::Year, Field::Month),
        IntervalFields::DayToHour => (Field::Day, Field::Hour),
        IntervalFields::DayToMinute => (Field::Day, Field::Minute),
        IntervalFields::DayToSecond => (Field::Day, Field::Second),
        IntervalFields::HourToMinute => (Field::Hour, Field::Minute),
        IntervalFields::HourToSecond => (Field::Hour, Field::Second),
        IntervalFields::MinuteToSecond => (Field::Minute, Field::Second),
    }
}

fn undefined_type(ty: &DataType) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{}\" does not exist", ty.to_string().to_lowercase()))
}

fn plain(ty: SqlType) -> DeclaredType {
    DeclaredType { ty, serial: false }
}

impl DeclaredType {
    /// The type that a column definition names.
    ///
    /// # Errors
    /// As [`SqlType::from_ast`].
    pub fn from_ast(ty: &DataType) -> Result<DeclaredType, SqlError> {
        Ok(plain(match ty {
            DataType::Bool | DataType::Boolean => SqlType::Bool,
            DataType::SmallInt(_) | DataType::Int2(_) => SqlType::Int2,
            DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => SqlType::Int4,
            DataType::BigInt(_) | DataType::Int8(_) | DataType::Int64 => SqlType::Int8,
            DataType::Real | DataType::Float4 => SqlType::Float4,
            DataType::DoublePrecision | DataType::Double(_) | DataType::Float8 | DataType::Float64 => SqlType::Float8,
            DataType::Float(info) => float_type(info)?,
            DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => numeric_type(info)?,
            DataType::Text | DataType::String(_) => SqlType::Text,
            DataType::Varchar(n) | DataType::CharacterVarying(n) | DataType::CharVarying(n) | DataType::Nvarchar(n) => {
                SqlType::Varchar(length(n.as_ref(), "varchar")?)
            }
            DataType::Char(n) | DataType::Character(n) => SqlType::Char(length(n.as_ref(), "char")?.unwrap_or(1)),
            DataType::Bytea => SqlType::Bytea,
            DataType::Date => SqlType::Date,
            DataType::Time(precision, zone) => match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => SqlType::Time(digits(*precision)),
                TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => SqlType::Timetz(digits(*precision)),
            },
            DataType::Timestamp(precision, zone) => match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => SqlType::Timestamp(digits(*precision)),
                TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => SqlType::Timestamptz(digits(*precision)),
            },
            DataType::Datetime(_) | DataType::TimestampNtz(_) => return Err(undefined_type(ty)),
            DataType::Interval { fields: None, precision: None } => SqlType::Interval(None),
            DataType::Interval { fields, precision } => {
                let fields = fields.as_ref().map(named_fields);
                let precision = digits(*precision).map(u32::from);
                SqlType::Interval(Some(IntervalModifier { fields, precision }))
            }
            DataType::Uuid => SqlType::Uuid,
            DataType::JSON => SqlType::Json,
            DataType::JSONB => SqlType::Jsonb,
            DataType::Regclass => SqlType::Reg(RegKind::Class),
            DataType::Array(element) => array_type(element, ty)?,
            DataType::Custom(name, modifiers) => return custom_type(name, modifiers, ty),
            other => return Err(undefined_type(other)),
        }))
    }
}

/// The greatest precision of seconds: microseconds.
const DIGITS_MAX: u64 = 6;

fn digits(precision: Option<u64>) -> Option<u8> {
    precision.map(|precision| precision.min(DIGITS_MAX) as u8)
}

fn array_type(element: &ArrayElemTypeDef, whole: &DataType) -> Result<SqlType, SqlError> {
    let element = match element {
        ArrayElemTypeDef::SquareBracket(element, _)
        | ArrayElemTypeDef::AngleBracket(element)
        | ArrayElemTypeDef::Parenthesis(element) => SqlType::from_ast(element)?,
        ArrayElemTypeDef::None => return Err(undefined_type(whole)),
    };
    // PostgreSQL does not tell int[] from int[][].
    Ok(match element {
        SqlType::Array(_) => element,
        scalar => SqlType::Array(Box::new(scalar)),
    })
}

fn custom_type(name: &ast::ObjectName, modifiers: &[String], whole: &DataType) -> Result<DeclaredType, SqlError> {
    let parts: Vec<&ast::Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    let last = match parts.as_slice() {
        [last] => *last,
        [schema, last] if schema.value.eq_ignore_ascii_case("pg_catalog") => *last,
        _ => return Err(undefined_type(whole)),
    };
    if last.quote_style.is_some() && last.value == "char" {
        return Ok(plain(modified(SqlType::SingleChar, modifiers, "char")?));
    }
    if last.quote_style.is_some() {
        // A quoted name is that of pg_type, as it stands there: no word of SQL.
        let element = last.value.strip_prefix('_');
        let named = |name: &str| SqlType::scalars().find(|ty| ty.typname() == name);
        let found = named(&last.value)
            .or_else(|| element.and_then(named).map(|ty| SqlType::Array(Box::new(ty))))
            .ok_or_else(|| undefined_type(whole))?;
        return Ok(plain(modified(found, modifiers, &last.value)?));
    }
    let lower = last.value.to_ascii_lowercase();
    let serial = match lower.as_str() {
        "serial" | "serial4" => Some(SqlType::Int4),
        "bigserial" | "serial8" => Some(SqlType::Int8),
        "smallserial" | "serial2" => Some(SqlType::Int2),
        _ => None,
    };
    if let Some(ty) = serial {
        return Ok(DeclaredType { ty, serial: true });
    }
    let ty = SqlType::from_name(&lower).ok_or_else(|| undefined_type(whole))?;
    Ok(plain(modified(ty, modifiers, &lower)?))
}

/// A type with what stands in parentheses behind its name.
fn modified(ty: SqlType, modifiers: &[String], name: &str) -> Result<SqlType, SqlError> {
    let invalid = |message: String| SqlError::new(SqlState::INVALID_PARAMETER, message);
    let number = |text: &String| {
        let wrong =
            || SqlError::new(SqlState::INVALID_TEXT, format!("invalid input syntax for type integer: \"{text}\""));
        text.trim().parse::<i64>().map_err(|_| wrong())
    };
    let numbers = modifiers.iter().map(number).collect::<Result<Vec<i64>, SqlError>>()?;
    let precision = |n: i64| digits(u64::try_from(n).ok());
    Ok(match (ty, numbers.as_slice()) {
        (ty, []) => ty,
        (SqlType::Array(element), _) => SqlType::Array(Box::new(modified(*element, modifiers, name)?)),
        (SqlType::Numeric(_), [precision]) => checked_numeric(*precision, 0)?,
        (SqlType::Numeric(_), [precision, scale]) => checked_numeric(*precision, *scale)?,
        (SqlType::Numeric(_), _) => return Err(invalid("invalid NUMERIC type modifier".into())),
        (SqlType::Varchar(_), [n]) => SqlType::Varchar(Some(checked_length(*n, "varchar")?)),
        (SqlType::Char(_), [n]) => SqlType::Char(checked_length(*n, "char")?),
        (SqlType::Time(_), [n]) => SqlType::Time(precision(*n)),
        (SqlType::Timetz(_), [n]) => SqlType::Timetz(precision(*n)),
        (SqlType::Timestamp(_), [n]) => SqlType::Timestamp(precision(*n)),
        (SqlType::Timestamptz(_), [n]) => SqlType::Timestamptz(precision(*n)),
        (SqlType::Interval(_), [n]) => {
            let digits = (*n).clamp(0, DIGITS_MAX as i64) as u32;
            SqlType::Interval(Some(IntervalModifier::of_digits(digits)))
        }
        (
            SqlType::Varchar(_)
            | SqlType::Char(_)
            | SqlType::Time(_)
            | SqlType::Timetz(_)
            | SqlType::Timestamp(_)
            | SqlType::Timestamptz(_)
            | SqlType::Interval(_),
            _,
        ) => return Err(invalid("invalid type modifier".into())),
        _ => {
            let message = format!("type modifier is not allowed for type \"{name}\"");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
    })
}

fn float_type(info: &ExactNumberInfo) -> Result<SqlType, SqlError> {
    match info {
        ExactNumberInfo::None => Ok(SqlType::Float8),
        ExactNumberInfo::Precision(0) => {
            Err(SqlError::new(SqlState::INVALID_PARAMETER, "precision for type float must be at least 1 bit"))
        }
        ExactNumberInfo::Precision(p) if *p <= 24 => Ok(SqlType::Float4),
        ExactNumberInfo::Precision(p) if *p <= 53 => Ok(SqlType::Float8),
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER, "precision for type float must be less than 54 bits")),
    }
}

fn numeric_type(info: &ExactNumberInfo) -> Result<SqlType, SqlError> {
    match info {
        ExactNumberInfo::None => Ok(SqlType::Numeric(None)),
        ExactNumberInfo::Precision(p) => checked_numeric(i64::try_from(*p).unwrap_or(i64::MAX), 0),
        ExactNumberInfo::PrecisionAndScale(p, s) => checked_numeric(i64::try_from(*p).unwrap_or(i64::MAX), *s),
    }
}

fn checked_numeric(precision: i64, scale: i64) -> Result<SqlType, SqlError> {
    if !(1..=1000).contains(&precision) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER,
            format!("NUMERIC precision {precision} must be between 1 and 1000"),
        ));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER,
            format!("NUMERIC scale {scale} must be between -1000 and 1000"),
        ));
    }
    Ok(SqlType::Numeric(Some((precision as u16, scale as i16))))
}

fn length(n: Option<&CharacterLength>, name: &str) -> Result<Option<u32>, SqlError> {
    match n {
        Some(CharacterLength::IntegerLength { length, .. }) => {
            checked_length(i64::try_from(*length).unwrap_or(i64::MAX), name).map(Some)
        }
        _ => Ok(None),
    }
}

fn checked_length(n: i64, name: &str) -> Result<u32, SqlError> {
    const MAX: i64 = 10_485_760;
    if n < 1 {
        Err(SqlError::new(SqlState::INVALID_PARAMETER, format!("length for type {name} must be at least 1")))
    } else if n > MAX {
        Err(SqlError::new(SqlState::INVALID_PARAMETER, format!("length for type {name} cannot exceed {MAX}")))
    } else {
        Ok(n as u32)
    }
}
