//! Casts: which there are (`pg_cast`), and how they are done.

use super::calendar::{DAY_US, date_of, day_of, to_local, to_utc};
use super::json::Json;
use super::number::out_of_range;
use super::{Array, Interval, Numeric, RegKind, SqlType, Value, date_time};
use crate::catalog::{Oid, Relation};
use crate::context::{CatalogView, EvalSettings};
use crate::identifier::{quote_identifier, quote_qualified, split_name};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// When a cast may be applied without being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastKind {
    /// Anywhere.
    Implicit,
    /// When a value is assigned to a column.
    Assignment,
    /// Only when written.
    Explicit,
}

/// What a cast may need beside the value.
#[derive(Clone, Copy)]
pub struct CastContext<'a> {
    /// Settings.
    pub settings: &'a EvalSettings,
    /// Names of relations, for `regclass`; without it only numbers are read.
    pub catalog: Option<&'a dyn CatalogView>,
    /// What `'now'` means: microseconds since 2000-01-01 UTC.
    pub now_us: Option<i64>,
}

impl<'a> CastContext<'a> {
    /// A context with settings only.
    pub fn new(settings: &'a EvalSettings) -> Self {
        CastContext { settings, catalog: None, now_us: None }
    }
}

fn is_stringlike(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name)
}

/// How values of a type become values of another: `None` if they never do. Modifiers do not matter here.
pub fn cast_kind(from: &SqlType, to: &SqlType) -> Option<CastKind> {
    use CastKind::{Assignment, Explicit, Implicit};
    use SqlType as T;
    if from == to || from.base() == to.base() {
        return Some(Implicit);
    }
    Some(match (from, to) {
        (T::Unknown, _) => Implicit,
        (T::Void, _) | (_, T::Void | T::Unknown) => return None,
        (T::Int2, T::Int4 | T::Int8 | T::Float4 | T::Float8 | T::Numeric(_) | T::Oid | T::Reg(_)) => Implicit,
        (T::Int4, T::Int8 | T::Float4 | T::Float8 | T::Numeric(_) | T::Oid | T::Reg(_)) => Implicit,
        (T::Int8, T::Float4 | T::Float8 | T::Numeric(_) | T::Oid | T::Reg(_)) => Implicit,
        (T::Float4, T::Float8) | (T::Numeric(_), T::Float4 | T::Float8) => Implicit,
        (a, b) if a.is_number() && b.is_number() => Assignment,
        (T::Int4, T::Bool | T::SingleChar) | (T::Bool | T::SingleChar, T::Int4) => Explicit,
        (T::Oid, T::Reg(_)) | (T::Reg(_), T::Oid) => Implicit,
        (T::Reg(_), T::Reg(_)) => return None,
        (T::Oid | T::Reg(_), T::Int4 | T::Int8) => Assignment,
        (T::Name, T::Varchar(_) | T::Char(_)) => Assignment,
        (T::Text, T::Reg(RegKind::Class)) => Implicit,
        (a, b) if is_stringlike(a) && is_stringlike(b) => Implicit,
        (T::SingleChar, b) if is_stringlike(b) => {
            if *to == T::Text {
                Implicit
            } else {
                Assignment
            }
        }
        (a, T::SingleChar) if is_stringlike(a) => Assignment,
        (T::Date, T::Timestamp | T::Timestamptz) | (T::Timestamp, T::Timestamptz) | (T::Time, T::Interval) => Implicit,
        (T::Timestamp, T::Date | T::Time)
        | (T::Timestamptz, T::Date | T::Time | T::Timestamp)
        | (T::Interval, T::Time) => Assignment,
        (T::Json, T::Jsonb) | (T::Jsonb, T::Json) => Assignment,
        (T::Jsonb, T::Bool) => Explicit,
        (T::Jsonb, b) if b.is_number() => Explicit,
        (T::Int2Vector | T::OidVector, T::Array(_)) => Implicit,
        (T::Array(a), T::Array(b)) => return cast_kind(a, b),
        // Through text, as PostgreSQL's I/O conversions.
        (_, b) if is_stringlike(b) => Assignment,
        (a, _) if is_stringlike(a) => Explicit,
        _ => return None,
    })
}

/// 42846 in PostgreSQL's words.
pub fn cannot_cast(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(SqlState::CANNOT_COERCE, format!("cannot cast type {} to {}", from.base(), to.base()))
}

impl Value {
    /// Casts a value of type `from` to type `to`, its length and precision included. `explicit` cuts strings that are too long
    /// instead of refusing them. The caller has checked [`cast_kind`].
    ///
    /// # Errors
    /// As the input function of `to`; 22003 for numbers beyond it; 42846 if there is no such cast.
    pub fn cast(
        &self,
        from: &SqlType,
        to: &SqlType,
        explicit: bool,
        context: &CastContext<'_>,
    ) -> Result<Value, SqlError> {
        use SqlType as T;
        if self.is_null() {
            return Ok(Value::Null);
        }
        Ok(match (self, to) {
            (Value::Int4(_), T::Int4) | (Value::Int8(_), T::Int8) | (Value::Bool(_), T::Bool) => self.clone(),
            (Value::Text(text), T::Text) => match from {
                T::Char(_) => Value::text(text.trim_end_matches(' ')),
                _ => self.clone(),
            },
            (Value::Text(text), T::Varchar(_) | T::Char(_) | T::Name) => {
                let text = if matches!((from, to), (T::Char(_), T::Varchar(_) | T::Name)) {
                    text.trim_end_matches(' ')
                } else {
                    text
                };
                Value::fit_string(text, to, explicit)?
            }
            (Value::Text(text), _) => from_string(text, from, to, context)?,
            (Value::Array(array), T::Array(element)) => cast_array(array, element, explicit, context)?,
            (_, T::Text | T::Varchar(_) | T::Char(_) | T::Name) => {
                Value::fit_string(&self.to_output(from, context)?, to, explicit)?
            }
            (_, T::Int2 | T::Int4 | T::Int8 | T::Oid | T::Reg(_)) => to_integer(self, to)?,
            (_, T::Float4 | T::Float8) => to_float(self, to)?,
            (_, T::Numeric(limits)) => to_numeric(self, *limits)?,
            (Value::Int4(v), T::Bool) => Value::Bool(*v != 0),
            (Value::Int4(v), T::SingleChar) => {
                Value::text(u8::try_from(*v).map_or(String::new(), |b| (b as char).to_string()))
            }
            (Value::Jsonb(text), T::Bool) => match Json::parse(text)? {
                Json::Bool(v) => Value::Bool(v),
                other => return Err(json_mismatch(&other, to)),
            },
            (Value::Json(text), T::Jsonb) => Value::Jsonb(Json::parse(text)?.normalize().to_string().into()),
            (Value::Jsonb(text), T::Json) => Value::Json(text.clone()),
            (Value::Json(_), T::Json) | (Value::Jsonb(_), T::Jsonb) => self.clone(),
            (_, T::Date | T::Time | T::Timestamp | T::Timestamptz | T::Interval) => to_time(self, from, to, context)?,
            (value, to) if value.natural_type() == to.base() => value.clone(),
            _ => return Err(cannot_cast(from, to)),
        })
    }

    /// Its text as a cast to text gives it: names for the reg types, `true` for booleans.
    pub fn to_output(&self, ty: &SqlType, context: &CastContext<'_>) -> Result<String, SqlError> {
        Ok(match (self, ty) {
            (Value::Bool(v), _) => if *v { "true" } else { "false" }.into(),
            (Value::Oid(oid), SqlType::Reg(kind)) => reg_name(*oid, *kind, context)?,
            _ => self.to_text(ty, context.settings),
        })
    }
}

fn from_string(text: &str, from: &SqlType, to: &SqlType, context: &CastContext<'_>) -> Result<Value, SqlError> {
    let trimmed = if matches!(from, SqlType::Char(_)) { text.trim_end_matches(' ') } else { text };
    match to {
        SqlType::Reg(kind) => reg_from_name(trimmed, *kind, context).map(Value::Oid),
        SqlType::Int4 if matches!(from, SqlType::SingleChar) => {
            Ok(Value::Int4(trimmed.bytes().next().map_or(0, |b| i32::from(b as i8))))
        }
        SqlType::Date | SqlType::Timestamp | SqlType::Timestamptz | SqlType::Time => {
            match special_time(trimmed, context) {
                Some(instant) => to_time(&Value::Timestamptz(instant), &SqlType::Timestamptz, to, context),
                None => Value::parse_text(to, trimmed, context.settings),
            }
        }
        _ => Value::parse_text(to, trimmed, context.settings),
    }
}

/// Whether a text means another instant each time it is read.
pub fn is_special_time(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "now" | "today" | "tomorrow" | "yesterday")
}

/// The instant of `now`, `today`, `tomorrow`, `yesterday`.
fn special_time(text: &str, context: &CastContext<'_>) -> Option<i64> {
    if !is_special_time(text) {
        return None;
    }
    let now = context.now_us?;
    let zone = context.settings.time_zone;
    let midnight = |days: i64| {
        let local = to_local(zone, now);
        to_utc(zone, local - local.rem_euclid(DAY_US) + days * DAY_US)
    };
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "today" => midnight(0),
        "tomorrow" => midnight(1),
        "yesterday" => midnight(-1),
        _ => now,
    })
}

fn to_integer(value: &Value, to: &SqlType) -> Result<Value, SqlError> {
    let number = match value {
        Value::Float4(v) => float_to_i64(f64::from(*v)),
        Value::Float8(v) => float_to_i64(*v),
        Value::Numeric(v) => match v {
            Numeric::NaN => {
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot convert NaN to {to}")));
            }
            Numeric::Infinity | Numeric::NegInfinity => {
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot convert infinity to {to}")));
            }
            Numeric::Finite(_) => v.to_i64(),
        },
        Value::Bool(v) => Some(i64::from(*v)),
        Value::Jsonb(text) => match Json::parse(text)? {
            Json::Number(number) => Numeric::parse(&number)?.to_i64(),
            other => return Err(json_mismatch(&other, to)),
        },
        other => match other.as_i64() {
            Some(v) => Some(v),
            None => return Err(cannot_cast(&other.natural_type(), to)),
        },
    };
    let fit = |v: i64| {
        Some(match to {
            SqlType::Int2 => Value::Int2(i16::try_from(v).ok()?),
            SqlType::Int4 => Value::Int4(i32::try_from(v).ok()?),
            SqlType::Int8 => Value::Int8(v),
            // int4 to oid keeps the bits.
            _ => Value::Oid(if matches!(value, Value::Int2(_) | Value::Int4(_)) {
                v as u32
            } else {
                u32::try_from(v).ok()?
            }),
        })
    };
    number.and_then(fit).ok_or_else(|| out_of_range(if matches!(to, SqlType::Reg(_)) { &SqlType::Oid } else { to }))
}

fn float_to_i64(value: f64) -> Option<i64> {
    let rounded = value.round_ties_even();
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded).then_some(rounded as i64)
}

fn to_float(value: &Value, to: &SqlType) -> Result<Value, SqlError> {
    let number = match value {
        Value::Float4(v) => {
            return Ok(match to {
                SqlType::Float4 => Value::Float4(*v),
                _ => Value::Float8(f64::from(*v)),
            });
        }
        Value::Float8(v) => *v,
        Value::Numeric(v) => {
            let float = v.to_f64();
            if float.is_infinite() && matches!(v, Numeric::Finite(_)) {
                return Err(SqlError::new(SqlState::OUT_OF_RANGE, format!("\"{v}\" is out of range for type {to}")));
            }
            float
        }
        Value::Jsonb(text) => match Json::parse(text)? {
            Json::Number(number) => Numeric::parse(&number)?.to_f64(),
            other => return Err(json_mismatch(&other, to)),
        },
        other => match other.as_i64() {
            Some(v) => v as f64,
            None => return Err(cannot_cast(&other.natural_type(), to)),
        },
    };
    if *to == SqlType::Float8 {
        return Ok(Value::Float8(number));
    }
    let small = number as f32;
    if small.is_infinite() && number.is_finite() {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "value out of range: overflow"));
    }
    if small == 0.0 && number != 0.0 {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "value out of range: underflow"));
    }
    Ok(Value::Float4(small))
}

fn to_numeric(value: &Value, limits: Option<(u16, i16)>) -> Result<Value, SqlError> {
    let number = match value {
        Value::Numeric(v) => v.clone(),
        Value::Float4(v) => Numeric::from_f32(*v),
        Value::Float8(v) => Numeric::from_f64(*v),
        Value::Jsonb(text) => match Json::parse(text)? {
            Json::Number(number) => Numeric::parse(&number)?,
            other => return Err(json_mismatch(&other, &SqlType::Numeric(None))),
        },
        other => match other.as_i64() {
            Some(v) => Numeric::from(v),
            None => return Err(cannot_cast(&other.natural_type(), &SqlType::Numeric(None))),
        },
    };
    Ok(Value::Numeric(match limits {
        Some((precision, scale)) => number.fit(precision, scale)?,
        None => number,
    }))
}

fn json_mismatch(value: &Json, to: &SqlType) -> SqlError {
    let kind = match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "numeric",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    SqlError::new(SqlState::INVALID_PARAMETER, format!("cannot cast jsonb {kind} to type {}", to.base()))
}

fn to_time(value: &Value, from: &SqlType, to: &SqlType, context: &CastContext<'_>) -> Result<Value, SqlError> {
    let zone = context.settings.time_zone;
    let day_part = |us: i64| match us {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        us => us.div_euclid(DAY_US) as i32,
    };
    let midnight = |day: i32| match day {
        i32::MIN => Ok(i64::MIN),
        i32::MAX => Ok(i64::MAX),
        day => i64::from(day)
            .checked_mul(DAY_US)
            .ok_or_else(date_too_far)
            .and_then(|us| date_time::checked_timestamp(us).map_err(|_| date_too_far())),
    };
    Ok(match (value, to) {
        (Value::Date(v), SqlType::Date) => Value::Date(*v),
        (Value::Time(v), SqlType::Time) => Value::Time(*v),
        (Value::Timestamp(v), SqlType::Timestamp) => Value::Timestamp(*v),
        (Value::Timestamptz(v), SqlType::Timestamptz) => Value::Timestamptz(*v),
        (Value::Interval(v), SqlType::Interval) => Value::Interval(*v),
        (Value::Date(v), SqlType::Timestamp) => Value::Timestamp(midnight(*v)?),
        (Value::Date(v), SqlType::Timestamptz) => Value::Timestamptz(to_utc(zone, midnight(*v)?)),
        (Value::Timestamp(v), SqlType::Timestamptz) => Value::Timestamptz(to_utc(zone, *v)),
        (Value::Timestamptz(v), SqlType::Timestamp) => Value::Timestamp(to_local(zone, *v)),
        (Value::Timestamp(v), SqlType::Date) => Value::Date(day_part(*v)),
        (Value::Timestamptz(v), SqlType::Date) => Value::Date(day_part(to_local(zone, *v))),
        (Value::Timestamp(i64::MIN | i64::MAX) | Value::Timestamptz(i64::MIN | i64::MAX), SqlType::Time) => Value::Null,
        (Value::Timestamp(v), SqlType::Time) => Value::Time(v.rem_euclid(DAY_US)),
        (Value::Timestamptz(v), SqlType::Time) => Value::Time(to_local(zone, *v).rem_euclid(DAY_US)),
        (Value::Time(v), SqlType::Interval) => Value::Interval(Interval { months: 0, days: 0, micros: *v }),
        (Value::Interval(v), SqlType::Time) => Value::Time(v.micros.rem_euclid(DAY_US)),
        _ => return Err(cannot_cast(from, to)),
    })
}

fn date_too_far() -> SqlError {
    SqlError::new(SqlState::DATETIME_OVERFLOW, "date out of range for timestamp")
}

fn cast_array(array: &Array, element: &SqlType, explicit: bool, context: &CastContext<'_>) -> Result<Value, SqlError> {
    let values: Result<Vec<Value>, SqlError> =
        array.values.iter().map(|value| value.cast(&array.element, element, explicit, context)).collect();
    Ok(Value::Array(Arc::new(Array {
        element: element.clone(),
        dimensions: array.dimensions.clone(),
        values: values?,
    })))
}

fn reg_from_name(text: &str, kind: RegKind, context: &CastContext<'_>) -> Result<Oid, SqlError> {
    if text == "-" {
        return Ok(0);
    }
    if let Ok(number) = text.trim().parse::<u32>() {
        return Ok(number);
    }
    match kind {
        RegKind::Type => {
            SqlType::from_name(text.trim().trim_start_matches("pg_catalog.")).map(|ty| ty.oid()).ok_or_else(|| {
                SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{}\" does not exist", text.trim()))
            })
        }
        RegKind::Class => relation_oid(text, context),
        RegKind::Namespace => {
            let name = split_name(text)?.pop().unwrap_or_default();
            let catalog = context.catalog.ok_or_else(|| SqlError::unsupported("a schema name here"))?;
            let schemas = catalog.schemas()?;
            schemas.iter().find(|schema| schema.name == name).map(|schema| schema.id).ok_or_else(|| {
                SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))
            })
        }
        RegKind::Proc => {
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("function \"{text}\" does not exist")))
        }
    }
}

fn relation_oid(text: &str, context: &CastContext<'_>) -> Result<Oid, SqlError> {
    let parts = split_name(text)?;
    let catalog = context.catalog.ok_or_else(|| SqlError::unsupported("a relation name here"))?;
    let (schema, name) = match parts.as_slice() {
        [name] => (None, name.as_str()),
        [schema, name] => (Some(schema.as_str()), name.as_str()),
        [_, schema, name] => (Some(schema.as_str()), name.as_str()),
        _ => return Err(SqlError::new(SqlState(*b"42602"), "invalid name syntax")),
    };
    if matches!(schema, None | Some("pg_catalog"))
        && let Some((_, oid)) = SYSTEM_RELATIONS.iter().find(|(known, _)| *known == name)
    {
        return Ok(*oid);
    }
    if let Some(relation) = catalog.relation(schema, name)? {
        return Ok(match relation.as_ref() {
            Relation::Table(table) => table.id,
            Relation::View(view) => view.id,
            Relation::Sequence(sequence) => sequence.id,
        });
    }
    // Indexes are relations too, by name.
    for relation in catalog.relations()? {
        if let Relation::Table(table) = relation.as_ref() {
            let primary = table.has_primary_key.then_some(&table.primary);
            if let Some(index) = primary.into_iter().chain(&table.indexes).find(|index| index.name == name) {
                return Ok(index.id);
            }
        }
    }
    Err(SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", parts.join("."))))
}

/// Relations of `pg_catalog` that clients name, with their OIDs in PostgreSQL.
pub const SYSTEM_RELATIONS: &[(&str, Oid)] = &[
    ("pg_type", 1247),
    ("pg_attribute", 1249),
    ("pg_proc", 1255),
    ("pg_class", 1259),
    ("pg_authid", 1260),
    ("pg_database", 1262),
    ("pg_attrdef", 2604),
    ("pg_cast", 2605),
    ("pg_constraint", 2606),
    ("pg_depend", 2608),
    ("pg_description", 2609),
    ("pg_index", 2610),
    ("pg_inherits", 2611),
    ("pg_language", 2612),
    ("pg_namespace", 2615),
    ("pg_operator", 2617),
    ("pg_rewrite", 2618),
    ("pg_trigger", 2620),
    ("pg_opclass", 2616),
    ("pg_am", 2601),
    ("pg_tablespace", 1213),
    ("pg_sequence", 2224),
    ("pg_enum", 3501),
    ("pg_range", 3541),
    ("pg_collation", 3456),
    ("pg_shdescription", 2396),
    ("pg_statistic_ext", 3381),
    ("pg_policy", 3256),
    ("pg_publication", 6104),
    ("pg_publication_rel", 6106),
];

fn reg_name(oid: Oid, kind: RegKind, context: &CastContext<'_>) -> Result<String, SqlError> {
    if oid == 0 {
        return Ok("-".into());
    }
    let found = match (kind, context.catalog) {
        (RegKind::Type, _) => SqlType::from_oid(oid).map(|ty| ty.to_string()),
        (RegKind::Class, Some(catalog)) => relation_name(oid, catalog, context.settings)?,
        (RegKind::Namespace, Some(catalog)) => {
            catalog.schemas()?.into_iter().find(|schema| schema.id == oid).map(|schema| quote_identifier(&schema.name))
        }
        _ => None,
    };
    Ok(found.unwrap_or_else(|| oid.to_string()))
}

/// The name of a relation as `regclass` shows it: with its schema only if it is not on the search path.
pub fn relation_name(oid: Oid, catalog: &dyn CatalogView, settings: &EvalSettings) -> Result<Option<String>, SqlError> {
    if let Some((name, _)) = SYSTEM_RELATIONS.iter().find(|(_, known)| *known == oid) {
        return Ok(Some((*name).to_owned()));
    }
    let qualify = |schema: Oid, name: &str| -> Result<String, SqlError> {
        let schemas = catalog.schemas()?;
        let schema = schemas.iter().find(|s| s.id == schema).map(|s| s.name.clone());
        Ok(match schema {
            Some(schema) if !settings.search_path.contains(&schema) && schema != "pg_catalog" => {
                quote_qualified(Some(&schema), name)
            }
            _ => quote_identifier(name),
        })
    };
    if let Some(relation) = catalog.relation_by_id(oid)? {
        return Ok(Some(match relation.as_ref() {
            Relation::Table(table) => qualify(table.schema, &table.name)?,
            Relation::View(view) => qualify(view.schema, &view.name)?,
            Relation::Sequence(sequence) => qualify(sequence.schema, &sequence.name)?,
        }));
    }
    for relation in catalog.relations()? {
        if let Relation::Table(table) = relation.as_ref()
            && let Some(index) = std::iter::once(&table.primary).chain(&table.indexes).find(|index| index.id == oid)
        {
            return Ok(Some(qualify(table.schema, &index.name)?));
        }
    }
    Ok(None)
}

/// Adds months to a day, the last day of the month kept within it.
pub(crate) fn add_months(day: i64, months: i64) -> i64 {
    let (y, m, d) = date_of(day);
    let total = y * 12 + i64::from(m) - 1 + months;
    let (y, m) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    day_of(y, m, d.min(super::calendar::days_in_month(y, m)))
}
