//! Casts: which there are (`kind`), and how they are done.

mod kind;
mod number;
mod time;

pub use kind::{CastKind, cannot_cast, cast_kind};
pub use time::is_special_time;

use super::json::Json;
use super::oid::Oid;
use super::{Array, EvalSettings, RegKind, SqlType, Value};
use crate::SqlError;
use number::{json_mismatch, to_float, to_integer, to_numeric};
use std::sync::Arc;
pub(super) use time::special_time;
use time::to_time;

/// Objects by name, and OIDs as names: what the catalog knows of them.
pub trait ObjectNames {
    /// The OID that a text of a reg-type stands for.
    ///
    /// # Errors
    /// 42P01 and the like if there is no such object; 42602 if the text is no name.
    fn resolve(&self, kind: RegKind, name: &str) -> Result<Oid, SqlError>;
    /// What an OID of a reg-type prints as.
    ///
    /// # Errors
    /// Those of reading the catalog.
    fn print(&self, kind: RegKind, oid: Oid) -> Result<String, SqlError>;
}

/// Nothing has a name: for who casts to other types.
struct Unnamed;

impl ObjectNames for Unnamed {
    fn resolve(&self, kind: RegKind, name: &str) -> Result<Oid, SqlError> {
        let unsupported = |_| SqlError::unsupported(format!("the name of a {} here", kind.name()));
        name.trim().parse().map_err(unsupported)
    }
    fn print(&self, kind: RegKind, oid: Oid) -> Result<String, SqlError> {
        Err(SqlError::unsupported(format!("the name of the {} {oid} here", kind.name())))
    }
}

/// What a cast may need beside the value.
#[derive(Clone, Copy)]
pub struct CastContext<'a> {
    /// Settings.
    pub settings: &'a EvalSettings,
    /// What `regclass` and its kin read and print.
    pub objects: &'a dyn ObjectNames,
    /// What `'now'` means: microseconds since 2000-01-01 UTC.
    pub now_us: Option<i64>,
}

impl<'a> CastContext<'a> {
    /// A context with settings only: objects are read as their numbers, and do not print.
    pub fn new(settings: &'a EvalSettings) -> Self {
        CastContext { settings, objects: &Unnamed, now_us: None }
    }
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
            (_, T::Date | T::Time(_) | T::Timetz(_) | T::Timestamp(_) | T::Timestamptz(_) | T::Interval(_)) => {
                to_time(self, from, to, context)?
            }
            (value, to) if value.natural_type() == to.base() => value.clone(),
            _ => return Err(cannot_cast(from, to)),
        })
    }

    /// Its text as a cast to text gives it: names for the reg types, `true` for booleans.
    pub fn to_output(&self, ty: &SqlType, context: &CastContext<'_>) -> Result<String, SqlError> {
        Ok(match (self, ty) {
            (Value::Bool(v), _) => if *v { "true" } else { "false" }.into(),
            (Value::Oid(oid), SqlType::Reg(kind)) => context.objects.print(*kind, *oid)?,
            _ => self.to_text(ty, context.settings),
        })
    }
}

fn from_string(text: &str, from: &SqlType, to: &SqlType, context: &CastContext<'_>) -> Result<Value, SqlError> {
    let trimmed = if matches!(from, SqlType::Char(_)) { text.trim_end_matches(' ') } else { text };
    match to {
        SqlType::Reg(kind) => context.objects.resolve(*kind, trimmed).map(Value::Oid),
        SqlType::Int4 if matches!(from, SqlType::SingleChar) => {
            Ok(Value::Int4(trimmed.bytes().next().map_or(0, |b| i32::from(b as i8))))
        }
        _ => Value::parse_text_at(to, trimmed, context.settings, context.now_us),
    }
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
