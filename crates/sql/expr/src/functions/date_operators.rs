//! Operators between dates, times and intervals.

use super::super::function::{Arguments, Function, Sig};
use super::date::{add_local, add_zoned};
use super::{day_at, float_at, int_at, interval_at, micros_at};
use crate::types::calendar::{DAY_US, to_utc};
use crate::types::{Interval, SqlType as T, Value, checked_day, checked_timestamp, division_by_zero};
use crate::{SqlError, SqlState};

type R = Result<Value, SqlError>;

const I4: Sig = Sig::Is(T::Int4);
const F8: Sig = Sig::Is(T::Float8);
const DATE: Sig = Sig::Is(T::Date);
const TIME: Sig = Sig::Is(T::Time(None));
const TS: Sig = Sig::Is(T::Timestamp(None));
const TSTZ: Sig = Sig::Is(T::Timestamptz(None));
const IV: Sig = Sig::Is(T::Interval(None));

/// A date as the timestamp that it is compared as: one beyond all timestamps is short of infinity. No text of a statement holds the name.
pub const MIDNIGHT: &str = "\0midnight";

/// The same in the session's time zone.
pub const ZONED_MIDNIGHT: &str = "\0zoned midnight";

/// What a date becomes where it is compared with a value of the type `beside`: by which function, and of which type. `None`: as anything else does.
pub fn beside_moment(ty: &T, beside: &T) -> Option<(&'static str, T)> {
    match (ty, beside) {
        (T::Date, T::Timestamp(_)) => Some((MIDNIGHT, T::Timestamp(None))),
        (T::Date, T::Timestamptz(_)) => Some((ZONED_MIDNIGHT, T::Timestamptz(None))),
        _ => None,
    }
}

pub(super) static TABLE: &[Function] = &[
    Function::pure(MIDNIGHT, &[DATE], TS, |v, _| Ok(Value::Timestamp(day_begins(v)?))),
    Function::stable(ZONED_MIDNIGHT, &[DATE], TSTZ, |v, a| {
        let us = day_begins(v)?;
        let known = checked_timestamp(us).is_ok() && !matches!(us, i64::MIN | i64::MAX);
        Ok(Value::Timestamptz(if known { to_utc(a.settings().time_zone, us) } else { us }))
    }),
    Function::pure("+", &[DATE, I4], DATE, |v, _| date_plus(day_at(v, 0)?, int_at(v, 1)?)),
    Function::pure("+", &[I4, DATE], DATE, |v, _| date_plus(day_at(v, 1)?, int_at(v, 0)?)),
    Function::pure("-", &[DATE, I4], DATE, |v, _| date_plus(day_at(v, 0)?, -int_at(v, 1)?)),
    Function::pure("-", &[DATE, DATE], I4, |v, _| {
        let (a, b) = (day_at(v, 0)?, day_at(v, 1)?);
        if [a, b].iter().any(|d| matches!(*d, i32::MIN | i32::MAX)) {
            return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, "cannot subtract infinite dates"));
        }
        Ok(Value::Int4(a - b))
    }),
    Function::pure("+", &[DATE, IV], TS, |v, _| Ok(Value::Timestamp(add_local(midnight(v, 0)?, interval_at(v, 1)?)?))),
    Function::pure("+", &[IV, DATE], TS, |v, _| Ok(Value::Timestamp(add_local(midnight(v, 1)?, interval_at(v, 0)?)?))),
    Function::pure("-", &[DATE, IV], TS, |v, _| {
        Ok(Value::Timestamp(add_local(midnight(v, 0)?, interval_at(v, 1)?.neg()?)?))
    }),
    Function::pure("+", &[DATE, TIME], TS, |v, _| at_time(midnight(v, 0)?, micros_at(v, 1)?)),
    Function::pure("+", &[TIME, DATE], TS, |v, _| at_time(midnight(v, 1)?, micros_at(v, 0)?)),
    Function::pure("+", &[TS, IV], TS, |v, _| Ok(Value::Timestamp(add_local(micros_at(v, 0)?, interval_at(v, 1)?)?))),
    Function::pure("+", &[IV, TS], TS, |v, _| Ok(Value::Timestamp(add_local(micros_at(v, 1)?, interval_at(v, 0)?)?))),
    Function::pure("-", &[TS, IV], TS, |v, _| {
        Ok(Value::Timestamp(add_local(micros_at(v, 0)?, interval_at(v, 1)?.neg()?)?))
    }),
    Function::stable("+", &[TSTZ, IV], TSTZ, |v, a| zoned(micros_at(v, 0)?, interval_at(v, 1)?, a)),
    Function::stable("+", &[IV, TSTZ], TSTZ, |v, a| zoned(micros_at(v, 1)?, interval_at(v, 0)?, a)),
    Function::stable("-", &[TSTZ, IV], TSTZ, |v, a| zoned(micros_at(v, 0)?, interval_at(v, 1)?.neg()?, a)),
    Function::pure("-", &[TS, TS], IV, difference),
    Function::pure("-", &[TSTZ, TSTZ], IV, difference),
    Function::pure("+", &[TIME, IV], TIME, |v, _| time_plus(micros_at(v, 0)?, interval_at(v, 1)?.micros)),
    Function::pure("+", &[IV, TIME], TIME, |v, _| time_plus(micros_at(v, 1)?, interval_at(v, 0)?.micros)),
    Function::pure("-", &[TIME, IV], TIME, |v, _| time_plus(micros_at(v, 0)?, -(interval_at(v, 1)?.micros % DAY_US))),
    Function::pure("-", &[TIME, TIME], IV, |v, _| {
        Ok(Value::Interval(Interval { months: 0, days: 0, micros: micros_at(v, 0)? - micros_at(v, 1)? }))
    }),
    Function::pure("+", &[IV, IV], IV, |v, _| Ok(Value::Interval(interval_at(v, 0)?.add(&interval_at(v, 1)?)?))),
    Function::pure("-", &[IV, IV], IV, |v, _| Ok(Value::Interval(interval_at(v, 0)?.add(&interval_at(v, 1)?.neg()?)?))),
    Function::pure("-", &[IV], IV, |v, _| Ok(Value::Interval(interval_at(v, 0)?.neg()?))),
    Function::pure("*", &[IV, F8], IV, |v, _| Ok(Value::Interval(interval_at(v, 0)?.mul(float_at(v, 1)?)?))),
    Function::pure("*", &[F8, IV], IV, |v, _| Ok(Value::Interval(interval_at(v, 1)?.mul(float_at(v, 0)?)?))),
    Function::pure("/", &[IV, F8], IV, |v, _| {
        let by = float_at(v, 1)?;
        if by == 0.0 {
            return Err(division_by_zero());
        }
        Ok(Value::Interval(interval_at(v, 0)?.mul(1.0 / by)?))
    }),
];

fn date_plus(day: i32, by: i64) -> R {
    if matches!(day, i32::MIN | i32::MAX) {
        return Ok(Value::Date(day));
    }
    Ok(Value::Date(checked_day(i64::from(day) + by)?))
}

fn midnight(values: &[Value], i: usize) -> Result<i64, SqlError> {
    Ok(match day_at(values, i)? {
        i32::MIN => i64::MIN,
        i32::MAX => i64::MAX,
        day => i64::from(day).saturating_mul(DAY_US),
    })
}

/// When a day begins, for comparing: a finite one lies within infinity.
fn day_begins(values: &[Value]) -> Result<i64, SqlError> {
    Ok(match day_at(values, 0)? {
        i32::MIN => i64::MIN,
        i32::MAX => i64::MAX,
        day => i64::from(day).saturating_mul(DAY_US).clamp(i64::MIN + 1, i64::MAX - 1),
    })
}

fn at_time(midnight: i64, time: i64) -> R {
    if matches!(midnight, i64::MIN | i64::MAX) {
        return Ok(Value::Timestamp(midnight));
    }
    Ok(Value::Timestamp(checked_timestamp(midnight.saturating_add(time))?))
}

/// A time of day goes round.
pub(super) fn time_plus(time: i64, by: i64) -> R {
    Ok(Value::Time((time + by % DAY_US).rem_euclid(DAY_US)))
}

pub(super) fn zoned(us: i64, by: Interval, arguments: &Arguments<'_>) -> R {
    Ok(Value::Timestamptz(add_zoned(us, by, arguments.settings().time_zone)?))
}

fn difference(values: &[Value], _: &Arguments<'_>) -> R {
    let (a, b) = (micros_at(values, 0)?, micros_at(values, 1)?);
    if [a, b].iter().any(|us| matches!(*us, i64::MIN | i64::MAX)) {
        return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, "cannot subtract infinite timestamps"));
    }
    let us = a.checked_sub(b).ok_or_else(|| SqlError::new(SqlState::DATETIME_OVERFLOW, "interval out of range"))?;
    Ok(Value::Interval(Interval { months: 0, days: (us / DAY_US) as i32, micros: us % DAY_US }))
}
