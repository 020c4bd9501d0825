//! Dates and times: the clock, fields, truncation, construction.

use super::super::function::{Arguments, Function, Sig};
use super::zone::{written_zone, zone};
use super::{float_at, int_at, interval_at, micros_at, str_at, wrong_type};
use crate::types::calendar::TimeZone;
use crate::types::calendar::{
    DAY_US, EPOCH_OFFSET_DAYS, EPOCH_OFFSET_US, Fields, HOUR_US, MINUTE_US, SECOND_US, date_of, day_of, days_in_month,
    fields_of, iso_week, iso_weekday, offset_at, round_fraction, to_local, to_utc,
};
use crate::types::{
    Decimal, Interval, IntervalModifier, Numeric, SqlType as T, Value, add_months, checked_day, checked_timestamp,
};
use crate::{SqlError, SqlState};

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);
const I4: Sig = Sig::Is(T::Int4);
const F8: Sig = Sig::Is(T::Float8);
const N: Sig = Sig::Is(T::Numeric(None));
const DATE: Sig = Sig::Is(T::Date);
const TIME: Sig = Sig::Is(T::Time(None));
const TS: Sig = Sig::Is(T::Timestamp(None));
const TSTZ: Sig = Sig::Is(T::Timestamptz(None));
const INTERVAL: Sig = Sig::Is(T::Interval(None));

pub(super) static TABLE: &[Function] = &[
    Function::stable("now", &[], TSTZ, transaction_time),
    Function::stable("transaction_timestamp", &[], TSTZ, transaction_time),
    Function::stable("current_timestamp", &[], TSTZ, transaction_time),
    Function::stable("current_timestamp", &[I4], TSTZ, |v, a| {
        Ok(Value::Timestamptz(round_micros(a.statement()?.transaction_us, int_at(v, 0)?)))
    }),
    Function::stable("statement_timestamp", &[], TSTZ, |_, a| Ok(Value::Timestamptz(a.statement()?.statement_us))),
    Function::volatile("clock_timestamp", &[], TSTZ, |_, a| {
        Ok(Value::Timestamptz(a.statement()?.kv.now_us() - EPOCH_OFFSET_US))
    }),
    Function::volatile("timeofday", &[], TEXT, |_, a| {
        let now = Value::Timestamptz(a.statement()?.kv.now_us() - EPOCH_OFFSET_US);
        Ok(Value::text(now.to_text(&T::Timestamptz(None), a.settings())))
    }),
    Function::stable("current_date", &[], DATE, |_, a| Ok(Value::Date(local_now(a)?.div_euclid(DAY_US) as i32))),
    Function::stable("localtime", &[], TIME, |_, a| Ok(Value::Time(local_now(a)?.rem_euclid(DAY_US)))),
    Function::stable("localtime", &[I4], TIME, |v, a| {
        Ok(Value::Time(round_micros(local_now(a)?.rem_euclid(DAY_US), int_at(v, 0)?)))
    }),
    Function::stable("localtimestamp", &[I4], TS, |v, a| {
        Ok(Value::Timestamp(round_micros(local_now(a)?, int_at(v, 0)?)))
    }),
    Function::stable("localtimestamp", &[], TS, |_, a| Ok(Value::Timestamp(local_now(a)?))),
    Function::pure("extract", &[TEXT, DATE], N, |v, _| extract(v, Form::Date)),
    Function::pure("extract", &[TEXT, TIME], N, |v, _| extract(v, Form::Time)),
    Function::pure("extract", &[TEXT, TS], N, |v, _| extract(v, Form::Timestamp)),
    Function::stable("extract", &[TEXT, TSTZ], N, extract_zoned),
    Function::pure("extract", &[TEXT, INTERVAL], N, |v, _| extract_interval(v)),
    Function::pure("date_part", &[TEXT, DATE], F8, |v, _| as_float(extract(v, Form::Date)?)),
    Function::pure("date_part", &[TEXT, TIME], F8, |v, _| as_float(extract(v, Form::Time)?)),
    Function::pure("date_part", &[TEXT, TS], F8, |v, _| as_float(extract(v, Form::Timestamp)?)),
    Function::stable("date_part", &[TEXT, TSTZ], F8, |v, a| as_float(extract_zoned(v, a)?)),
    Function::pure("date_part", &[TEXT, INTERVAL], F8, |v, _| as_float(extract_interval(v)?)),
    Function::pure("date_trunc", &[TEXT, TS], TS, |v, _| {
        Ok(Value::Timestamp(truncate(str_at(v, 0)?, micros_at(v, 1)?, "timestamp without time zone")?))
    }),
    Function::stable("date_trunc", &[TEXT, TSTZ], TSTZ, |v, a| truncate_zoned(v, a.settings().time_zone)),
    Function::pure("date_trunc", &[TEXT, TSTZ, TEXT], TSTZ, |v, _| truncate_zoned(v, zone(str_at(v, 2)?)?)),
    Function::pure("date_trunc", &[TEXT, INTERVAL], INTERVAL, truncate_interval),
    Function::pure("date_bin", &[INTERVAL, TS, TS], TS, |v, _| Ok(Value::Timestamp(bin(v)?))),
    Function::pure("date_bin", &[INTERVAL, TSTZ, TSTZ], TSTZ, |v, _| Ok(Value::Timestamptz(bin(v)?))),
    Function::pure("age", &[TS, TS], INTERVAL, |v, _| Ok(Value::Interval(age(micros_at(v, 0)?, micros_at(v, 1)?)))),
    Function::stable("age", &[TSTZ, TSTZ], INTERVAL, |v, a| {
        let zone = a.settings().time_zone;
        Ok(Value::Interval(age(to_local(zone, micros_at(v, 0)?), to_local(zone, micros_at(v, 1)?))))
    }),
    Function::stable("age", &[TS], INTERVAL, |v, a| Ok(Value::Interval(age(midnight(a)?, micros_at(v, 0)?)))),
    Function::stable("age", &[TSTZ], INTERVAL, |v, a| {
        Ok(Value::Interval(age(midnight(a)?, to_local(a.settings().time_zone, micros_at(v, 0)?))))
    }),
    Function::pure("make_date", &[I4, I4, I4], DATE, make_date),
    Function::pure("make_time", &[I4, I4, F8], TIME, |v, _| Ok(Value::Time(clock(v, 0)?))),
    Function::pure("make_timestamp", &[I4, I4, I4, I4, I4, F8], TS, |v, _| Ok(Value::Timestamp(make_timestamp(v)?))),
    Function::stable("make_timestamptz", &[I4, I4, I4, I4, I4, F8], TSTZ, |v, a| {
        Ok(Value::Timestamptz(to_utc(a.settings().time_zone, make_timestamp(v)?)))
    }),
    Function::pure("make_timestamptz", &[I4, I4, I4, I4, I4, F8, TEXT], TSTZ, |v, _| {
        Ok(Value::Timestamptz(to_utc(written_zone(str_at(v, 6)?)?, make_timestamp(v)?)))
    }),
    Function::pure("make_interval", &[], INTERVAL, make_interval),
    Function::pure("make_interval", &[I4], INTERVAL, make_interval),
    Function::pure("make_interval", &[I4, I4], INTERVAL, make_interval),
    Function::pure("make_interval", &[I4, I4, I4], INTERVAL, make_interval),
    Function::pure("make_interval", &[I4, I4, I4, I4], INTERVAL, make_interval),
    Function::pure("make_interval", &[I4, I4, I4, I4, I4], INTERVAL, make_interval),
    Function::pure("make_interval", &[I4, I4, I4, I4, I4, I4], INTERVAL, make_interval),
    Function::pure("make_interval", &[I4, I4, I4, I4, I4, I4, F8], INTERVAL, make_interval),
    Function::pure("timestamp", &[TS, I4], TS, |v, _| Ok(Value::Timestamp(rounded(v)?))),
    Function::pure("timestamptz", &[TSTZ, I4], TSTZ, |v, _| Ok(Value::Timestamptz(rounded(v)?))),
    Function::pure("time", &[TIME, I4], TIME, |v, _| {
        Ok(Value::Time(round_fraction(micros_at(v, 0)?, int_at(v, 1)?.clamp(0, 6) as u32)))
    }),
    Function::pure("interval", &[INTERVAL, I4], INTERVAL, |v, _| {
        let modifier = IntervalModifier::from_number(int_at(v, 1)? as i32);
        Ok(Value::Interval(modifier.adjust(interval_at(v, 0)?)))
    }),
    Function::pure("isfinite", &[INTERVAL], Sig::Is(T::Bool), |_, _| Ok(Value::Bool(true))),
    Function::pure("to_timestamp", &[F8], TSTZ, |v, _| {
        let seconds = float_at(v, 0)?;
        if seconds.is_infinite() {
            return Ok(Value::Timestamptz(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
        }
        // Counted from 2000 before it is counted in microseconds, as PostgreSQL does: later years keep their digits.
        let since = seconds - EPOCH_OFFSET_US as f64 / 1e6;
        let us = (since * 1e6).round();
        let fits = us.is_finite() && us.abs() < 9.223_372e18 && checked_timestamp(us as i64).is_ok();
        if seconds.is_nan() {
            return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, "timestamp cannot be NaN"));
        }
        if !fits {
            let shown = short_float(seconds);
            return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, format!("timestamp out of range: \"{shown}\"")));
        }
        Ok(Value::Timestamptz(us as i64))
    }),
    Function::pure("justify_hours", &[INTERVAL], INTERVAL, |v, _| {
        Ok(Value::Interval(justify_hours(interval_at(v, 0)?)))
    }),
    Function::pure("justify_days", &[INTERVAL], INTERVAL, |v, _| Ok(Value::Interval(justify_days(interval_at(v, 0)?)))),
    Function::pure("justify_interval", &[INTERVAL], INTERVAL, |v, _| {
        Ok(Value::Interval(justify_interval(interval_at(v, 0)?)))
    }),
    Function::pure("isfinite", &[DATE], Sig::Is(T::Bool), |v, _| {
        Ok(Value::Bool(!matches!(v[0], Value::Date(i32::MIN | i32::MAX))))
    }),
    Function::pure("isfinite", &[TS], Sig::Is(T::Bool), |v, _| Ok(Value::Bool(!is_infinite(micros_at(v, 0)?)))),
    Function::pure("isfinite", &[TSTZ], Sig::Is(T::Bool), |v, _| Ok(Value::Bool(!is_infinite(micros_at(v, 0)?)))),
];

/// A number with six digits that count, as C's `%g` shows it.
fn short_float(x: f64) -> String {
    let text = format!("{x:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |digits: &str| {
        if digits.contains('.') {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            digits.to_owned()
        }
    };
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(digits), exponent.abs());
    }
    trim(&format!("{x:.*}", (5 - exponent).max(0) as usize))
}

fn transaction_time(_: &[Value], arguments: &Arguments<'_>) -> R {
    Ok(Value::Timestamptz(arguments.statement()?.transaction_us))
}

fn local_now(arguments: &Arguments<'_>) -> Result<i64, SqlError> {
    Ok(to_local(arguments.settings().time_zone, arguments.statement()?.transaction_us))
}

fn midnight(arguments: &Arguments<'_>) -> Result<i64, SqlError> {
    let now = local_now(arguments)?;
    Ok(now - now.rem_euclid(DAY_US))
}

pub(super) fn is_infinite(us: i64) -> bool {
    us == i64::MIN || us == i64::MAX
}

/// A timestamp rounded to the digits of its type.
fn rounded(values: &[Value]) -> Result<i64, SqlError> {
    let us = micros_at(values, 0)?;
    if is_infinite(us) {
        return Ok(us);
    }
    checked_timestamp(round_fraction(us, int_at(values, 1)?.clamp(0, 6) as u32))
}

pub(super) fn round_micros(us: i64, digits: i64) -> i64 {
    let unit = 10i64.pow((6 - digits.clamp(0, 6)) as u32);
    (us + unit / 2).div_euclid(unit) * unit
}

/// What fields a value has.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Date,
    Time,
    Timestamp,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Date => "date",
            Form::Time => "time without time zone",
            Form::Timestamp => "timestamp without time zone",
        }
    }
}

pub(super) fn integer(value: i64) -> R {
    Ok(Value::Numeric(Numeric::from(value)))
}

pub(super) fn decimal(digits: i64, scale: i64) -> R {
    Ok(Value::Numeric(Numeric::Finite(Decimal::new(digits.into(), scale))))
}

/// Seconds since 1970: the last years have more microseconds since then than an `i64` holds.
fn epoch(us: i64) -> R {
    match us.checked_add(EPOCH_OFFSET_US) {
        Some(since) => decimal(since, 6),
        // As PostgreSQL has them: by double precision, whose digits do not reach microseconds there.
        None => Ok(Value::Numeric(Numeric::from_f64((us as f64 + EPOCH_OFFSET_US as f64) / 1e6).round(6)?)),
    }
}

pub(super) fn as_float(value: Value) -> R {
    Ok(match value {
        Value::Numeric(n) => Value::Float8(n.to_f64()),
        other => other,
    })
}

/// Plural and short forms of a field's name.
pub(super) fn field_name(name: &str) -> String {
    let lower = name.trim().to_ascii_lowercase();
    let known = match lower.as_str() {
        "years" | "y" | "yr" | "yrs" => "year",
        "months" | "mon" | "mons" => "month",
        "weeks" | "w" => "week",
        "days" | "d" => "day",
        "hours" | "h" | "hr" | "hrs" => "hour",
        "minutes" | "m" | "min" | "mins" => "minute",
        "seconds" | "s" | "sec" | "secs" => "second",
        "microsecond" | "us" | "usec" | "usecs" => "microseconds",
        "millisecond" | "ms" | "msec" | "msecs" => "milliseconds",
        "decades" => "decade",
        "timezone_h" => "timezone_hour",
        "timezone_m" => "timezone_minute",
        "centuries" => "century",
        "millennia" | "millenniums" => "millennium",
        other => other,
    };
    known.to_owned()
}

pub(super) fn not_supported(field: &str, ty: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("unit \"{field}\" not supported for type {ty}"))
}

pub(super) fn not_recognized(field: &str, ty: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, format!("unit \"{field}\" not recognized for type {ty}"))
}

fn extract(values: &[Value], form: Form) -> R {
    let (at, infinite) = match values.get(1) {
        // The last dates have more microseconds than 64 bits hold.
        Some(Value::Date(day)) => ((i64::from(*day), 0), matches!(*day, i32::MIN | i32::MAX)),
        Some(Value::Time(us)) => ((us.div_euclid(DAY_US), us.rem_euclid(DAY_US)), false),
        Some(Value::Timestamp(us)) => ((us.div_euclid(DAY_US), us.rem_euclid(DAY_US)), is_infinite(*us)),
        _ => return Err(wrong_type()),
    };
    extract_field(str_at(values, 0)?, at, infinite, form, form.name())
}

fn extract_zoned(values: &[Value], arguments: &Arguments<'_>) -> R {
    let utc = micros_at(values, 1)?;
    let name = field_name(str_at(values, 0)?);
    let zone = arguments.settings().time_zone;
    match name.as_str() {
        "epoch" if !is_infinite(utc) => epoch(utc),
        "timezone" => integer(offset_at(zone, utc)),
        "timezone_hour" => integer(offset_at(zone, utc) / 3600),
        "timezone_minute" => integer(offset_at(zone, utc) / 60 % 60),
        _ => {
            let local = to_local(zone, utc);
            let at = (local.div_euclid(DAY_US), local.rem_euclid(DAY_US));
            extract_field(&name, at, is_infinite(utc), Form::Timestamp, "timestamp with time zone")
        }
    }
}

/// Fields that a time of day has not.
pub(super) const DATE_FIELDS: [&str; 13] = [
    "year",
    "month",
    "day",
    "decade",
    "century",
    "millennium",
    "quarter",
    "week",
    "dow",
    "isodow",
    "doy",
    "isoyear",
    "julian",
];

/// A field of a day and a time in it.
fn extract_field(name: &str, (day, time): (i64, i64), infinite: bool, form: Form, ty: &str) -> R {
    let field = field_name(name);
    let time_fields = ["hour", "minute", "second", "milliseconds", "microseconds"];
    let is_time = time_fields.contains(&field.as_str());
    let is_date = DATE_FIELDS.contains(&field.as_str());
    if !is_time && !is_date && field != "epoch" {
        return Err(if field.starts_with("timezone") { not_supported(&field, ty) } else { not_recognized(name, ty) });
    }
    if (form == Form::Date && is_time) || (form == Form::Time && is_date) {
        return Err(not_supported(&field, ty));
    }
    if infinite {
        // Fields that grow without bound are infinite, those that go round are unknown.
        let grows = ["year", "decade", "century", "millennium", "isoyear", "julian", "epoch"].contains(&field.as_str());
        let sign = if day > 0 { Numeric::Infinity } else { Numeric::NegInfinity };
        return Ok(if grows { Value::Numeric(sign) } else { Value::Null });
    }
    let (year, month, date) = date_of(day);
    let f = Fields { year, month, day: date, ..fields_of(time) };
    match field.as_str() {
        "epoch" if form == Form::Date => integer((day + EPOCH_OFFSET_DAYS) * 86_400),
        "epoch" if form == Form::Time => decimal(day * DAY_US + time, 6),
        "epoch" => epoch(day * DAY_US + time),
        "hour" => integer(i64::from(f.hour)),
        "minute" => integer(i64::from(f.minute)),
        "second" => decimal(i64::from(f.second) * SECOND_US + i64::from(f.micros), 6),
        "milliseconds" => decimal(i64::from(f.second) * SECOND_US + i64::from(f.micros), 3),
        "microseconds" => integer(i64::from(f.second) * SECOND_US + i64::from(f.micros)),
        "julian" => julian(day, time, form),
        other => integer(date_field(other, &f, day)),
    }
}

fn julian(day: i64, time: i64, form: Form) -> R {
    let whole = day + crate::types::calendar::EPOCH_JULIAN;
    if form == Form::Date {
        return integer(whole);
    }
    let fraction = Numeric::from(time).div(&Numeric::from(DAY_US))?;
    Ok(Value::Numeric(Numeric::from(whole).add(&fraction)?))
}

fn date_field(field: &str, f: &Fields, day: i64) -> i64 {
    // There is no year 0: 1 BC is -1.
    let shown_year = if f.year > 0 { f.year } else { f.year - 1 };
    match field {
        "year" => shown_year,
        "month" => i64::from(f.month),
        "day" => i64::from(f.day),
        "quarter" => i64::from((f.month - 1) / 3 + 1),
        "decade" => f.year.div_euclid(10),
        "century" => {
            if f.year > 0 {
                (f.year + 99) / 100
            } else {
                -((99 - (f.year - 1)) / 100)
            }
        }
        "millennium" => {
            if f.year > 0 {
                (f.year + 999) / 1000
            } else {
                -((999 - (f.year - 1)) / 1000)
            }
        }
        "week" => i64::from(iso_week(day).1),
        "isoyear" => match iso_week(day).0 {
            year if year > 0 => year,
            year => year - 1,
        },
        "dow" => iso_weekday(day) % 7,
        "isodow" => iso_weekday(day),
        _ => day - day_of(f.year, 1, 1) + 1,
    }
}

fn extract_interval(values: &[Value]) -> R {
    let value = interval_at(values, 1)?;
    let name = str_at(values, 0)?;
    let field = field_name(name);
    let (years, months) = (i64::from(value.months / 12), i64::from(value.months % 12));
    let seconds = value.micros % MINUTE_US;
    match field.as_str() {
        "year" => integer(years),
        "month" => integer(months),
        "day" => integer(i64::from(value.days)),
        "decade" => integer(years / 10),
        "century" => integer(years / 100),
        "millennium" => integer(years / 1000),
        "quarter" => integer(months / 3 + 1),
        "hour" => integer(value.micros / HOUR_US),
        "minute" => integer(value.micros / MINUTE_US % 60),
        "second" => decimal(seconds, 6),
        "milliseconds" => decimal(seconds, 3),
        "microseconds" => integer(seconds),
        "epoch" => {
            // A year of 365.25 days, a month of 30.
            let days = i128::from(years) * 36_525 * 864 + (i128::from(months) * 30 + i128::from(value.days)) * 86_400;
            let total = days * i128::from(SECOND_US) + i128::from(value.micros);
            Ok(Value::Numeric(Numeric::Finite(Decimal::new(total.into(), 6))))
        }
        "week" | "dow" | "isodow" | "doy" | "isoyear" | "julian" | "timezone" | "timezone_hour" | "timezone_minute" => {
            Err(not_supported(&field, "interval"))
        }
        _ => Err(not_recognized(name, "interval")),
    }
}

fn first_year_of(field: &str, year: i64) -> i64 {
    match field {
        "decade" => year.div_euclid(10) * 10,
        "century" => (year - 1).div_euclid(100) * 100 + 1,
        "millennium" => (year - 1).div_euclid(1000) * 1000 + 1,
        _ => year,
    }
}

fn truncate(name: &str, us: i64, ty: &str) -> Result<i64, SqlError> {
    let field = field_name(name);
    if is_infinite(us) {
        return Ok(us);
    }
    let f = fields_of(us);
    let day = us.div_euclid(DAY_US);
    let cut = |unit: i64| us - us.rem_euclid(unit);
    checked_timestamp(match field.as_str() {
        "microseconds" => us,
        "milliseconds" => cut(1_000),
        "second" => cut(SECOND_US),
        "minute" => cut(MINUTE_US),
        "hour" => cut(HOUR_US),
        "day" => day * DAY_US,
        "week" => (day - iso_weekday(day) + 1) * DAY_US,
        "month" => day_of(f.year, f.month, 1) * DAY_US,
        "quarter" => day_of(f.year, (f.month - 1) / 3 * 3 + 1, 1) * DAY_US,
        "year" | "decade" | "century" | "millennium" => day_of(first_year_of(&field, f.year), 1, 1) * DAY_US,
        "dow" | "isodow" | "doy" | "isoyear" | "epoch" | "julian" | "timezone" => {
            return Err(not_supported(&field, ty));
        }
        _ => return Err(not_recognized(name, ty)),
    })
}

fn truncate_zoned(values: &[Value], zone: TimeZone) -> R {
    let (name, utc) = (str_at(values, 0)?, micros_at(values, 1)?);
    if is_infinite(utc) {
        return Ok(Value::Timestamptz(utc));
    }
    let local = to_local(zone, utc);
    let cut = truncate(name, local, "timestamp with time zone")?;
    // Below a day the offset stays what it is, so that an hour repeated in autumn keeps its place.
    let small = matches!(field_name(name).as_str(), "hour" | "minute" | "second" | "milliseconds" | "microseconds");
    Ok(Value::Timestamptz(if small { utc - (local - cut) } else { to_utc(zone, cut) }))
}

fn truncate_interval(values: &[Value], _: &Arguments<'_>) -> R {
    let (name, value) = (str_at(values, 0)?, interval_at(values, 1)?);
    let cut = |unit: i64| Interval { micros: value.micros / unit * unit, ..value };
    let months = |unit: i32| Interval { months: value.months / unit * unit, days: 0, micros: 0 };
    Ok(Value::Interval(match field_name(name).as_str() {
        "microseconds" => value,
        "milliseconds" => cut(1_000),
        "second" => cut(SECOND_US),
        "minute" => cut(MINUTE_US),
        "hour" => cut(HOUR_US),
        "day" => Interval { micros: 0, ..value },
        "month" => months(1),
        "quarter" => months(3),
        "year" => months(12),
        "decade" => months(120),
        "century" => months(1_200),
        "millennium" => months(12_000),
        "week" => return Err(not_supported("week", "interval").detail("Months usually have fractional weeks.")),
        _ => return Err(not_recognized(name, "interval")),
    }))
}

fn bin(values: &[Value]) -> Result<i64, SqlError> {
    let (stride, at, origin) = (interval_at(values, 0)?, micros_at(values, 1)?, micros_at(values, 2)?);
    if stride.months != 0 {
        return Err(SqlError::unsupported("timestamps cannot be binned into intervals containing months or years"));
    }
    let stride = i64::from(stride.days).saturating_mul(DAY_US).saturating_add(stride.micros);
    if stride <= 0 {
        return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, "stride must be greater than zero"));
    }
    if is_infinite(at) || is_infinite(origin) {
        return Ok(at);
    }
    let distance =
        at.checked_sub(origin).ok_or_else(|| SqlError::new(SqlState::DATETIME_OVERFLOW, "interval out of range"))?;
    checked_timestamp(origin + distance.div_euclid(stride) * stride)
}

/// The difference in years, months and days, as people count ages.
fn age(later: i64, earlier: i64) -> Interval {
    if later < earlier {
        let back = age(earlier, later);
        return Interval { months: -back.months, days: -back.days, micros: -back.micros };
    }
    let (a, b) = (fields_of(later), fields_of(earlier));
    let mut months = (a.year - b.year) * 12 + i64::from(a.month) - i64::from(b.month);
    let mut days = i64::from(a.day) - i64::from(b.day);
    let mut micros = later.rem_euclid(DAY_US) - earlier.rem_euclid(DAY_US);
    if micros < 0 {
        micros += DAY_US;
        days -= 1;
    }
    if days < 0 {
        // Days of the earlier one's month are lent.
        days += i64::from(days_in_month(b.year, b.month));
        months -= 1;
    }
    Interval { months: months as i32, days: days as i32, micros }
}

fn year_argument(year: i64) -> Result<i64, SqlError> {
    // Negative years are BC.
    if year < 0 { Ok(year + 1) } else { Ok(year) }
}

fn make_day(values: &[Value]) -> Result<i64, SqlError> {
    let (y, m, d) = (int_at(values, 0)?, int_at(values, 1)?, int_at(values, 2)?);
    let year = year_argument(y)?;
    let exists = y != 0 && (1..=12).contains(&m) && d >= 1 && d <= i64::from(days_in_month(year, m as u32));
    if !exists || !(-4_713..=5_874_897).contains(&year) {
        return Err(SqlError::new(
            SqlState::DATETIME_OVERFLOW,
            format!("date field value out of range: {y}-{m:02}-{d:02}"),
        ));
    }
    Ok(day_of(year, m as u32, d as u32))
}

fn make_date(values: &[Value], _: &Arguments<'_>) -> R {
    Ok(Value::Date(checked_day(make_day(values)?)?))
}

fn clock(values: &[Value], from: usize) -> Result<i64, SqlError> {
    let (h, m, s) = (int_at(values, from)?, int_at(values, from + 1)?, float_at(values, from + 2)?);
    let fits = (0..=24).contains(&h) && (0..60).contains(&m) && (0.0..=60.0).contains(&s);
    let us = if fits { h * HOUR_US + m * MINUTE_US + (s * 1e6).round() as i64 } else { i64::MAX };
    if us > DAY_US {
        return Err(SqlError::new(
            SqlState::DATETIME_OVERFLOW,
            format!("time field value out of range: {h}:{m:02}:{s:02}"),
        ));
    }
    Ok(us)
}

fn make_timestamp(values: &[Value]) -> Result<i64, SqlError> {
    let day = make_day(values)?;
    let us = day.checked_mul(DAY_US).and_then(|us| us.checked_add(clock(values, 3).ok()?));
    match us {
        Some(us) => checked_timestamp(us),
        None => clock(values, 3).and_then(|_| checked_timestamp(i64::MAX)),
    }
}

fn make_interval(values: &[Value], _: &Arguments<'_>) -> R {
    let at = |i: usize| values.get(i).and_then(Value::as_i64).unwrap_or(0);
    let out = || SqlError::new(SqlState::DATETIME_OVERFLOW, "interval out of range");
    let seconds = match values.get(6) {
        Some(Value::Float8(s)) => *s,
        Some(other) => other.as_i64().unwrap_or(0) as f64,
        None => 0.0,
    };
    Ok(Value::Interval(Interval {
        months: i32::try_from(at(0) * 12 + at(1)).map_err(|_| out())?,
        days: i32::try_from(at(2) * 7 + at(3)).map_err(|_| out())?,
        micros: (at(4) * HOUR_US + at(5) * MINUTE_US).checked_add((seconds * 1e6).round() as i64).ok_or_else(out)?,
    }))
}

fn justify_hours(value: Interval) -> Interval {
    let (mut days, mut micros) = (value.days.saturating_add((value.micros / DAY_US) as i32), value.micros % DAY_US);
    if days > 0 && micros < 0 {
        (days, micros) = (days - 1, micros + DAY_US);
    } else if days < 0 && micros > 0 {
        (days, micros) = (days + 1, micros - DAY_US);
    }
    Interval { days, micros, ..value }
}

fn justify_days(value: Interval) -> Interval {
    let (mut months, mut days) = (value.months.saturating_add(value.days / 30), value.days % 30);
    if months > 0 && days < 0 {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && days > 0 {
        (months, days) = (months + 1, days - 30);
    }
    Interval { months, days, ..value }
}

fn justify_interval(value: Interval) -> Interval {
    let mut days = value.days.saturating_add((value.micros / DAY_US) as i32);
    let mut micros = value.micros % DAY_US;
    let mut months = value.months.saturating_add(days / 30);
    days %= 30;
    if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
        (months, days) = (months + 1, days - 30);
    }
    if days > 0 && micros < 0 {
        (days, micros) = (days - 1, micros + DAY_US);
    } else if days < 0 && micros > 0 {
        (days, micros) = (days + 1, micros - DAY_US);
    }
    Interval { months, days, micros }
}

/// Where a date or a timestamp lies after an interval, microseconds; `None` for other values.
pub fn moved_us(value: &Value, by: Interval, zone: TimeZone) -> Result<Option<i64>, SqlError> {
    Ok(Some(match value {
        Value::Date(i32::MIN) => i64::MIN,
        Value::Date(i32::MAX) => i64::MAX,
        Value::Date(day) => add_local(i64::from(*day).saturating_mul(DAY_US), by)?,
        Value::Timestamp(us) => add_local(*us, by)?,
        Value::Timestamptz(us) => add_zoned(*us, by, zone)?,
        _ => return Ok(None),
    }))
}

/// Adds an interval to a local time: months first, then days, then microseconds.
pub(super) fn add_local(us: i64, by: Interval) -> Result<i64, SqlError> {
    if is_infinite(us) {
        return Ok(us);
    }
    let day = us.div_euclid(DAY_US);
    let day = if by.months == 0 { day } else { add_months(day, i64::from(by.months)) };
    let out = || SqlError::new(SqlState::DATETIME_OVERFLOW, "timestamp out of range");
    let total = (day + i64::from(by.days))
        .checked_mul(DAY_US)
        .and_then(|d| d.checked_add(us.rem_euclid(DAY_US)))
        .and_then(|t| t.checked_add(by.micros))
        .ok_or_else(out)?;
    checked_timestamp(total)
}

/// Adds an interval to an instant: months and days by the local calendar.
pub(super) fn add_zoned(utc: i64, by: Interval, zone: TimeZone) -> Result<i64, SqlError> {
    if is_infinite(utc) {
        return Ok(utc);
    }
    let moved = if by.months == 0 && by.days == 0 {
        utc
    } else {
        to_utc(zone, add_local(to_local(zone, utc), Interval { micros: 0, ..by })?)
    };
    let out = || SqlError::new(SqlState::DATETIME_OVERFLOW, "timestamp out of range");
    checked_timestamp(moved.checked_add(by.micros).ok_or_else(out)?)
}
