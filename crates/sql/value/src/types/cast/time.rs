//! Casts between dates, times and intervals, and the texts that mean an instant.

use super::CastContext;
use super::kind::cannot_cast;
use crate::types::calendar::{DAY_US, TimeZone, round_fraction, to_local, to_utc};
use crate::types::{Interval, SqlType, Value, ZonedTime, date_time};
use crate::{SqlError, SqlState};

/// Whether a text means another instant each time it is read.
pub fn is_special_time(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "now" | "today" | "tomorrow" | "yesterday")
}

/// The instant of `now`, `today`, `tomorrow`, `yesterday`, if it is read as a type of times: a time of day knows `now` only.
pub(in crate::types) fn special_time(ty: &SqlType, text: &str, now: i64, zone: TimeZone) -> Option<i64> {
    let days = match ty {
        SqlType::Date | SqlType::Timestamp(_) | SqlType::Timestamptz(_) => true,
        SqlType::Time(_) | SqlType::Timetz(_) => false,
        _ => return None,
    };
    if !is_special_time(text) || !(days || text.trim().eq_ignore_ascii_case("now")) {
        return None;
    }
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

impl Value {
    /// Fits a time to the precision and the fields of its type.
    pub fn rounded(self, ty: &SqlType) -> Value {
        let round = |us: i64, digits: u8| {
            if matches!(us, i64::MIN | i64::MAX) { us } else { round_fraction(us, u32::from(digits)) }
        };
        match (self, ty) {
            (Value::Time(us), SqlType::Time(Some(digits))) => Value::Time(round(us, *digits)),
            (Value::Timetz(time), SqlType::Timetz(Some(digits))) => {
                Value::Timetz(ZonedTime { micros: round(time.micros, *digits), ..time })
            }
            (Value::Timestamp(us), SqlType::Timestamp(Some(digits))) => Value::Timestamp(round(us, *digits)),
            (Value::Timestamptz(us), SqlType::Timestamptz(Some(digits))) => Value::Timestamptz(round(us, *digits)),
            (Value::Interval(value), SqlType::Interval(Some(modifier))) => Value::Interval(modifier.adjust(value)),
            (other, _) => other,
        }
    }
}

/// Casts between types of times, to the precision of the one wanted.
pub(super) fn to_time(
    value: &Value,
    from: &SqlType,
    to: &SqlType,
    context: &CastContext<'_>,
) -> Result<Value, SqlError> {
    Ok(convert(value, from, to, context)?.rounded(to))
}

fn convert(value: &Value, from: &SqlType, to: &SqlType, context: &CastContext<'_>) -> Result<Value, SqlError> {
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
        (Value::Time(v), SqlType::Time(_)) => Value::Time(*v),
        (Value::Timetz(v), SqlType::Timetz(_)) => Value::Timetz(*v),
        (Value::Timetz(v), SqlType::Time(_)) => Value::Time(v.micros),
        (Value::Time(v), SqlType::Timetz(_)) => {
            Value::Timetz(date_time::zoned_today(*v, zone, context.now_us.unwrap_or_default()))
        }
        (Value::Timestamptz(i64::MIN | i64::MAX), SqlType::Timetz(_)) => Value::Null,
        (Value::Timestamptz(v), SqlType::Timetz(_)) => Value::Timetz(ZonedTime::of_instant(*v, zone)),
        (Value::Timestamp(v), SqlType::Timestamp(_)) => Value::Timestamp(*v),
        (Value::Timestamptz(v), SqlType::Timestamptz(_)) => Value::Timestamptz(*v),
        (Value::Interval(v), SqlType::Interval(_)) => Value::Interval(*v),
        (Value::Date(v), SqlType::Timestamp(_)) => Value::Timestamp(midnight(*v)?),
        (Value::Date(v), SqlType::Timestamptz(_)) => Value::Timestamptz(to_utc(zone, midnight(*v)?)),
        (Value::Timestamp(v), SqlType::Timestamptz(_)) => Value::Timestamptz(to_utc(zone, *v)),
        (Value::Timestamptz(v), SqlType::Timestamp(_)) => Value::Timestamp(to_local(zone, *v)),
        (Value::Timestamp(v), SqlType::Date) => Value::Date(day_part(*v)),
        (Value::Timestamptz(v), SqlType::Date) => Value::Date(day_part(to_local(zone, *v))),
        (Value::Timestamp(i64::MIN | i64::MAX) | Value::Timestamptz(i64::MIN | i64::MAX), SqlType::Time(_)) => {
            Value::Null
        }
        (Value::Timestamp(v), SqlType::Time(_)) => Value::Time(v.rem_euclid(DAY_US)),
        (Value::Timestamptz(v), SqlType::Time(_)) => Value::Time(to_local(zone, *v).rem_euclid(DAY_US)),
        (Value::Time(v), SqlType::Interval(_)) => Value::Interval(Interval { months: 0, days: 0, micros: *v }),
        (Value::Interval(v), SqlType::Time(_)) => Value::Time(v.micros.rem_euclid(DAY_US)),
        _ => return Err(cannot_cast(from, to)),
    })
}

fn date_too_far() -> SqlError {
    SqlError::new(SqlState::DATETIME_OVERFLOW, "date out of range for timestamp")
}
