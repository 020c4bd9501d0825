//! Zones: by their names, `AT TIME ZONE`, and time with time zone.

use super::super::function::{Arguments, Function, Sig};
use super::date::{
    DATE_FIELDS, as_float, decimal, field_name, integer, is_infinite, not_recognized, not_supported, round_micros,
};
use super::{day_at, int_at, interval_at, micros_at, str_at, zoned_at};
use crate::types::EvalSettings;
use crate::types::calendar::{
    DAY_US, HOUR_US, MINUTE_US, SECOND_US, TimeZone, offset_at, posix_offset, round_fraction, to_local, to_utc,
    zone_by_name,
};
use crate::types::{Interval, SqlType as T, Value, ZonedTime, checked_timestamp, parse_offset, zone_abbreviation};
use crate::{SqlError, SqlState};

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);
const I4: Sig = Sig::Is(T::Int4);
const DATE: Sig = Sig::Is(T::Date);
const TIMETZ: Sig = Sig::Is(T::Timetz(None));
const TS: Sig = Sig::Is(T::Timestamp(None));
const TSTZ: Sig = Sig::Is(T::Timestamptz(None));
const INTERVAL: Sig = Sig::Is(T::Interval(None));

pub(super) static TABLE: &[Function] = &[
    Function::stable("current_time", &[], TIMETZ, |_, a| Ok(Value::Timetz(now(a)?))),
    Function::stable("current_time", &[I4], TIMETZ, |v, a| {
        let now = now(a)?;
        Ok(Value::Timetz(ZonedTime { micros: round_micros(now.micros, int_at(v, 0)?), ..now }))
    }),
    Function::pure("extract", &[TEXT, TIMETZ], Sig::Is(T::Numeric(None)), |v, _| extract(v)),
    Function::pure("date_part", &[TEXT, TIMETZ], Sig::Is(T::Float8), |v, _| as_float(extract(v)?)),
    Function::pure("timezone", &[TEXT, TS], TSTZ, |v, _| {
        let (zone, local) = (zone(str_at(v, 0)?)?, micros_at(v, 1)?);
        Ok(Value::Timestamptz(if is_infinite(local) { local } else { checked_timestamp(to_utc(zone, local))? }))
    }),
    Function::pure("timezone", &[TEXT, TSTZ], TS, |v, _| {
        let (zone, utc) = (zone(str_at(v, 0)?)?, micros_at(v, 1)?);
        Ok(Value::Timestamp(if is_infinite(utc) { utc } else { checked_timestamp(to_local(zone, utc))? }))
    }),
    Function::stable("timezone", &[TEXT, TIMETZ], TIMETZ, |v, a| {
        let east_s = offset_at(zone(str_at(v, 0)?)?, a.statement()?.transaction_us);
        Ok(Value::Timetz(zoned_at(v, 1)?.in_zone(west(east_s)?)))
    }),
    Function::pure("timezone", &[INTERVAL, TS], TSTZ, |v, _| {
        shifted(micros_at(v, 1)?, -zone_seconds(interval_at(v, 0)?)?).map(Value::Timestamptz)
    }),
    Function::pure("timezone", &[INTERVAL, TSTZ], TS, |v, _| {
        shifted(micros_at(v, 1)?, zone_seconds(interval_at(v, 0)?)?).map(Value::Timestamp)
    }),
    Function::pure("timezone", &[INTERVAL, TIMETZ], TIMETZ, |v, _| {
        Ok(Value::Timetz(zoned_at(v, 1)?.in_zone(west(zone_seconds(interval_at(v, 0)?)?)?)))
    }),
    Function::pure("timetz", &[TIMETZ, I4], TIMETZ, |v, _| {
        let (time, digits) = (zoned_at(v, 0)?, int_at(v, 1)?.clamp(0, 6) as u32);
        Ok(Value::Timetz(ZonedTime { micros: round_fraction(time.micros, digits), ..time }))
    }),
    Function::pure("+", &[TIMETZ, INTERVAL], TIMETZ, |v, _| plus(zoned_at(v, 0)?, interval_at(v, 1)?.micros)),
    Function::pure("+", &[INTERVAL, TIMETZ], TIMETZ, |v, _| plus(zoned_at(v, 1)?, interval_at(v, 0)?.micros)),
    Function::pure("-", &[TIMETZ, INTERVAL], TIMETZ, |v, _| {
        plus(zoned_at(v, 0)?, -(interval_at(v, 1)?.micros % DAY_US))
    }),
    Function::pure("+", &[DATE, TIMETZ], TSTZ, |v, _| on_day(day_at(v, 0)?, zoned_at(v, 1)?)),
    Function::pure("+", &[TIMETZ, DATE], TSTZ, |v, _| on_day(day_at(v, 1)?, zoned_at(v, 0)?)),
    Function::pure("timestamptz", &[DATE, TIMETZ], TSTZ, |v, _| on_day(day_at(v, 0)?, zoned_at(v, 1)?)),
];

fn unknown_zone(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, format!("time zone \"{name}\" not recognized"))
}

/// The zone of a name: an abbreviation, a place, or POSIX's form, which counts to the west.
pub(super) fn zone(name: &str) -> Result<TimeZone, SqlError> {
    if let Some(east_s) = zone_abbreviation(&name.to_ascii_lowercase()) {
        return Ok(TimeZone::Fixed(east_s as i32));
    }
    let named = zone_by_name(name).map(TimeZone::Named);
    named.or_else(|| posix_offset(name).map(TimeZone::Fixed)).ok_or_else(|| unknown_zone(name))
}

/// As [`zone`], but a number counts to the east, as it does behind a time.
pub(super) fn written_zone(name: &str) -> Result<TimeZone, SqlError> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        let message = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        let hint = "Numeric time zones must have \"-\" or \"+\" as first character.";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message).hint(hint));
    }
    if !name.starts_with(['+', '-']) {
        return zone(name);
    }
    match parse_offset(name) {
        Some(east_s) => Ok(TimeZone::Fixed(east_s as i32)),
        None => Err(SqlError::new(SqlState::INVALID_PARAMETER, format!("numeric time zone \"{name}\" out of range"))),
    }
}

/// An instant moved by seconds.
fn shifted(us: i64, by_s: i64) -> Result<i64, SqlError> {
    if is_infinite(us) {
        return Ok(us);
    }
    let moved = i128::from(us) + i128::from(by_s) * i128::from(SECOND_US);
    checked_timestamp(i64::try_from(moved).unwrap_or(i64::MAX))
}

/// Seconds east of UTC that an interval means as a zone.
fn zone_seconds(interval: Interval) -> Result<i64, SqlError> {
    if interval.months != 0 || interval.days != 0 {
        let shown = Value::Interval(interval).to_text(&T::Interval(None), &EvalSettings::default());
        let message = format!("interval time zone \"{shown}\" must not include months or days");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(interval.micros / SECOND_US)
}

/// A zone's seconds counted to the west, if a time of day may have it: POSIX allows a week.
fn west(east_s: i64) -> Result<i32, SqlError> {
    i32::try_from(-east_s).map_err(|_| SqlError::new(SqlState(*b"22009"), "time zone displacement out of range"))
}

fn now(arguments: &Arguments<'_>) -> Result<ZonedTime, SqlError> {
    Ok(ZonedTime::of_instant(arguments.statement()?.transaction_us, arguments.settings().time_zone))
}

fn extract(values: &[Value]) -> R {
    const TYPE: &str = "time with time zone";
    let (name, time) = (str_at(values, 0)?, zoned_at(values, 1)?);
    let field = field_name(name);
    let (east_s, seconds) = (-i64::from(time.west_s), time.micros % MINUTE_US);
    match field.as_str() {
        "timezone" => integer(east_s),
        "timezone_hour" => integer(east_s / 3600),
        "timezone_minute" => integer(east_s / 60 % 60),
        "epoch" => decimal(time.utc_us(), 6),
        "hour" => integer(time.micros / HOUR_US),
        "minute" => integer(time.micros / MINUTE_US % 60),
        "second" => decimal(seconds, 6),
        "milliseconds" => decimal(seconds, 3),
        "microseconds" => integer(seconds),
        field if DATE_FIELDS.contains(&field) => Err(not_supported(field, TYPE)),
        _ => Err(not_recognized(name, TYPE)),
    }
}

/// It goes round in its zone.
fn plus(time: ZonedTime, by: i64) -> R {
    Ok(Value::Timetz(ZonedTime { micros: (time.micros + by % DAY_US).rem_euclid(DAY_US), ..time }))
}

fn on_day(day: i32, time: ZonedTime) -> R {
    Ok(Value::Timestamptz(match day {
        i32::MIN => i64::MIN,
        i32::MAX => i64::MAX,
        day => checked_timestamp(i64::from(day).saturating_mul(DAY_US).saturating_add(time.utc_us()))?,
    }))
}
