//! interval: text forms and arithmetic.
//!
//! Reads PostgreSQL's verbose form, the SQL standard's (`1-2`, `3 04:05:06`) and ISO 8601 (`P1Y2M3DT4H5M6S`); writes the
//! `postgres` style. Fractions spill downwards as in PostgreSQL: months into days of 30, days into microseconds.

use super::calendar::{DAY_US, HOUR_US, MINUTE_US, SECOND_US};
use super::date_time::{fraction_us, put_fraction};
use super::{Interval, SqlType};
use crate::{SqlError, SqlState};
use bytes::BufMut;
use std::cmp::Ordering;

fn invalid(text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATETIME,
        format!("invalid input syntax for type {}: \"{text}\"", SqlType::Interval),
    )
}

fn overflow(text: &str) -> SqlError {
    SqlError::new(SqlState(*b"22015"), format!("interval field value out of range: \"{text}\""))
}

/// 22008 for a result that an interval cannot hold.
pub(crate) fn out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_OVERFLOW, "interval out of range")
}

/// A unit of an interval's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

impl Unit {
    pub(crate) fn by_name(name: &str) -> Option<Unit> {
        Some(match name.to_ascii_lowercase().as_str() {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" | "microsecon" => {
                Unit::Microsecond
            }
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" | "millisecon" => {
                Unit::Millisecond
            }
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennium" | "millennia" => Unit::Millennium,
            _ => return None,
        })
    }
}

/// A decimal number as whole part and microparts, both with the sign.
#[derive(Clone, Copy)]
struct Decimal {
    whole: i64,
    fraction: f64,
}

fn parse_decimal(text: &str) -> Option<Decimal> {
    let negative = text.starts_with('-');
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
    if (whole.is_empty() && fraction.is_empty()) || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: f64 = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
    Some(if negative { Decimal { whole: -whole, fraction: -fraction } } else { Decimal { whole, fraction } })
}

/// Sums fields in wide integers; the range is checked once, at the end.
#[derive(Default)]
struct Sum {
    months: i128,
    days: i128,
    micros: i128,
}

impl Sum {
    fn add(&mut self, number: Decimal, unit: Unit) {
        let whole = i128::from(number.whole);
        match unit {
            Unit::Microsecond => self.micros += whole + number.fraction.round() as i128,
            Unit::Millisecond => self.add_micros(whole * 1_000, number.fraction * 1_000.0),
            Unit::Second => self.add_micros(whole * i128::from(SECOND_US), number.fraction * SECOND_US as f64),
            Unit::Minute => self.add_micros(whole * i128::from(MINUTE_US), number.fraction * MINUTE_US as f64),
            Unit::Hour => self.add_micros(whole * i128::from(HOUR_US), number.fraction * HOUR_US as f64),
            Unit::Day => {
                self.days += whole;
                self.add_micros(0, number.fraction * DAY_US as f64);
            }
            Unit::Week => {
                self.days += whole * 7;
                self.add_fraction_days(number.fraction * 7.0);
            }
            Unit::Month => {
                self.months += whole;
                self.add_fraction_days(number.fraction * 30.0);
            }
            Unit::Year => self.add_years(whole, number.fraction, 1),
            Unit::Decade => self.add_years(whole, number.fraction, 10),
            Unit::Century => self.add_years(whole, number.fraction, 100),
            Unit::Millennium => self.add_years(whole, number.fraction, 1000),
        }
    }

    fn add_years(&mut self, whole: i128, fraction: f64, years: i64) {
        self.months += whole * 12 * i128::from(years) + (fraction * 12.0 * years as f64).round() as i128;
    }

    fn add_micros(&mut self, whole: i128, fraction: f64) {
        self.micros += whole + fraction.round() as i128;
    }

    fn add_fraction_days(&mut self, days: f64) {
        let whole = days.trunc();
        self.days += whole as i128;
        self.micros += ((days - whole) * DAY_US as f64).round() as i128;
    }

    fn negate(&mut self) {
        *self = Sum { months: -self.months, days: -self.days, micros: -self.micros };
    }

    fn finish(self, text: &str) -> Result<Interval, SqlError> {
        Ok(Interval {
            months: i32::try_from(self.months).map_err(|_| overflow(text))?,
            days: i32::try_from(self.days).map_err(|_| overflow(text))?,
            micros: i64::try_from(self.micros).map_err(|_| overflow(text))?,
        })
    }
}

/// Reads an interval. `unit` is the unit of a bare number (`INTERVAL '3' DAY`); seconds if none.
pub(crate) fn parse(text: &str, unit: Option<Unit>) -> Result<Interval, SqlError> {
    let body = text.trim();
    if let Some(iso) = body.strip_prefix('P') {
        return parse_iso(iso, text);
    }
    let words = split_words(body.strip_prefix('@').unwrap_or(body));
    if words.is_empty() {
        return Err(invalid(text));
    }
    let mut sum = Sum::default();
    let mut at = 0;
    while at < words.len() {
        let word = words[at];
        let next = words.get(at + 1).copied();
        if word.eq_ignore_ascii_case("ago") && at > 0 && next.is_none() {
            sum.negate();
            at += 1;
        } else if word.contains(':') {
            let fields = if matches!(unit, Some(Unit::Second)) && word.matches(':').count() == 1 {
                Unit::Second
            } else {
                Unit::Hour
            };
            let (negative, micros) = parse_clock(word, fields).ok_or_else(|| invalid(text))?;
            sum.micros += i128::from(if negative { -micros } else { micros });
            at += 1;
        } else if let Some((years, months)) = year_month(word) {
            sum.months += i128::from(years) * 12 + i128::from(months);
            at += 1;
        } else {
            let number = parse_decimal(word).ok_or_else(|| invalid(text))?;
            match next.and_then(Unit::by_name) {
                Some(named) => {
                    sum.add(number, named);
                    at += 2;
                }
                None if next.is_some_and(|n| n.contains(':')) => {
                    sum.add(number, Unit::Day);
                    at += 1;
                }
                None if next.is_none() || next.is_some_and(|n| n.eq_ignore_ascii_case("ago")) => {
                    sum.add(number, unit.unwrap_or(Unit::Second));
                    at += 1;
                }
                None => return Err(invalid(text)),
            }
        }
    }
    sum.finish(text)
}

/// Cuts at blanks and between a number and the letters behind it.
fn split_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in text.split_ascii_whitespace() {
        let mut rest = word;
        while !rest.is_empty() {
            let letters = rest.as_bytes()[0].is_ascii_alphabetic();
            let end = rest.bytes().position(|b| b.is_ascii_alphabetic() != letters).unwrap_or(rest.len());
            words.push(&rest[..end]);
            rest = &rest[end..];
        }
    }
    words
}

/// `1-2`: years and months.
fn year_month(word: &str) -> Option<(i64, i64)> {
    let negative = word.starts_with('-');
    let (years, months) = word.strip_prefix(['+', '-']).unwrap_or(word).split_once('-')?;
    let (years, months) = (years.parse::<i64>().ok()?, months.parse::<i64>().ok().filter(|m| (0..12).contains(m))?);
    if years > i64::from(i32::MAX) {
        return None;
    }
    Some(if negative { (-years, -months) } else { (years, months) })
}

/// `hh:mm[:ss[.f]]`, or `mm:ss` for an interval of seconds.
fn parse_clock(word: &str, first: Unit) -> Option<(bool, i64)> {
    let negative = word.starts_with('-');
    let body = word.strip_prefix(['+', '-']).unwrap_or(word);
    let parts: Vec<&str> = body.split(':').collect();
    let whole = |part: &str| if part.is_empty() { None } else { part.parse::<i64>().ok() };
    let seconds = |part: &str| {
        let (s, f) = part.split_once('.').unwrap_or((part, ""));
        Some(whole(s).filter(|s| *s < 60)? * SECOND_US + fraction_us(f)?)
    };
    let micros = match (parts.as_slice(), first) {
        ([m, s], Unit::Second) => whole(m)?.checked_mul(MINUTE_US)?.checked_add(seconds(s)?)?,
        ([h, m], _) if m.contains('.') => whole(h)?.checked_mul(MINUTE_US)?.checked_add(seconds(m)?)?,
        ([h, m], _) => whole(h)?.checked_mul(HOUR_US)?.checked_add(whole(m).filter(|m| *m < 60)? * MINUTE_US)?,
        ([h, m, s], _) => {
            whole(h)?.checked_mul(HOUR_US)?.checked_add(whole(m).filter(|m| *m < 60)? * MINUTE_US + seconds(s)?)?
        }
        _ => return None,
    };
    Some((negative, micros))
}

fn parse_iso(body: &str, text: &str) -> Result<Interval, SqlError> {
    let mut sum = Sum::default();
    let mut in_time = false;
    let mut rest = body;
    if rest.is_empty() {
        return Err(invalid(text));
    }
    if !rest.contains(|c: char| c.is_ascii_alphabetic() && c != 'T') {
        return parse_iso_alternative(rest, text);
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            in_time = true;
            rest = after;
            continue;
        }
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(|| invalid(text))?;
        let number = parse_decimal(&rest[..end]).ok_or_else(|| invalid(text))?;
        let unit = match (rest.as_bytes()[end], in_time) {
            (b'Y', false) => Unit::Year,
            (b'M', false) => Unit::Month,
            (b'W', false) => Unit::Week,
            (b'D', false) => Unit::Day,
            (b'H', true) => Unit::Hour,
            (b'M', true) => Unit::Minute,
            (b'S', true) => Unit::Second,
            _ => return Err(invalid(text)),
        };
        sum.add(number, unit);
        rest = &rest[end + 1..];
    }
    sum.finish(text)
}

/// `P0001-02-03T04:05:06`
fn parse_iso_alternative(body: &str, text: &str) -> Result<Interval, SqlError> {
    let (date, time) = body.split_once('T').unwrap_or((body, ""));
    let mut sum = Sum::default();
    if !date.is_empty() {
        for (part, unit) in date.splitn(3, '-').zip([Unit::Year, Unit::Month, Unit::Day]) {
            sum.add(parse_decimal(part).ok_or_else(|| invalid(text))?, unit);
        }
    }
    if !time.is_empty() {
        let (negative, micros) = parse_clock(time, Unit::Hour).ok_or_else(|| invalid(text))?;
        sum.micros += i128::from(if negative { -micros } else { micros });
    }
    sum.finish(text)
}

/// Writes the `postgres` style: `1 year 2 mons 3 days 04:05:06.789`.
pub(crate) fn write(value: Interval, out: &mut impl BufMut) {
    let (years, months) = (value.months / 12, value.months % 12);
    let mut wrote = false;
    let mut negative_before = false;
    for (count, name) in [(years, "year"), (months, "mon"), (value.days, "day")] {
        if count == 0 {
            continue;
        }
        let blank = if wrote { " " } else { "" };
        let plus = if negative_before && count > 0 { "+" } else { "" };
        let plural = if count == 1 { "" } else { "s" };
        out.put_slice(format!("{blank}{plus}{count} {name}{plural}").as_bytes());
        negative_before = count < 0;
        wrote = true;
    }
    if value.micros == 0 && wrote {
        return;
    }
    if wrote {
        out.put_u8(b' ');
    }
    if value.micros < 0 {
        out.put_u8(b'-');
    } else if negative_before {
        out.put_u8(b'+');
    }
    let us = value.micros.unsigned_abs();
    let (h, m, s) = (us / HOUR_US as u64, us / MINUTE_US as u64 % 60, us / SECOND_US as u64 % 60);
    out.put_slice(format!("{h:02}:{m:02}:{s:02}").as_bytes());
    put_fraction(us % SECOND_US as u64, out);
}

impl Interval {
    /// Reads an interval; `unit` is what SQL writes behind it (`INTERVAL '3' DAY`).
    ///
    /// # Errors
    /// 22007 for what is no interval, 22008 for one too long.
    pub fn parse(text: &str, unit: Option<&str>) -> Result<Interval, SqlError> {
        let unit = unit.and_then(Unit::by_name);
        let value = parse(text, unit)?;
        // The smallest field named cuts what is smaller.
        Ok(match unit {
            Some(Unit::Year) => Interval { months: value.months / 12 * 12, days: 0, micros: 0 },
            Some(Unit::Month) => Interval { days: 0, micros: 0, ..value },
            Some(Unit::Day) => Interval { micros: 0, ..value },
            Some(Unit::Hour) => Interval { micros: value.micros / HOUR_US * HOUR_US, ..value },
            Some(Unit::Minute) => Interval { micros: value.micros / MINUTE_US * MINUTE_US, ..value },
            _ => value,
        })
    }

    /// Its length for comparison: months of 30 days, days of 24 hours.
    pub fn total_us(&self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY_US) + i128::from(self.micros)
    }

    /// As PostgreSQL orders intervals: `1 month` equals `30 days`.
    pub fn compare(&self, other: &Interval) -> Ordering {
        self.total_us().cmp(&other.total_us())
    }

    /// Sum.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn add(&self, other: &Interval) -> Result<Interval, SqlError> {
        Ok(Interval {
            months: self.months.checked_add(other.months).ok_or_else(out_of_range)?,
            days: self.days.checked_add(other.days).ok_or_else(out_of_range)?,
            micros: self.micros.checked_add(other.micros).ok_or_else(out_of_range)?,
        })
    }

    /// The opposite.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn neg(&self) -> Result<Interval, SqlError> {
        Ok(Interval {
            months: self.months.checked_neg().ok_or_else(out_of_range)?,
            days: self.days.checked_neg().ok_or_else(out_of_range)?,
            micros: self.micros.checked_neg().ok_or_else(out_of_range)?,
        })
    }

    /// Product; fractions of months become days of 30, fractions of days microseconds.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn mul(&self, factor: f64) -> Result<Interval, SqlError> {
        let months = f64::from(self.months) * factor;
        let days = f64::from(self.days) * factor;
        if !months.is_finite() || !days.is_finite() || months.abs() > 2.1e9 || days.abs() > 2.1e9 {
            return Err(out_of_range());
        }
        let round = |x: f64| (x * 1e6).round() / 1e6;
        let month_days = round((months - months.trunc()) * 30.0);
        let seconds = round((days - days.trunc() + month_days - month_days.trunc()) * 86_400.0);
        let (extra_days, seconds) =
            if seconds.abs() >= 86_400.0 { ((seconds / 86_400.0).trunc(), seconds % 86_400.0) } else { (0.0, seconds) };
        let micros = (self.micros as f64 * factor + seconds * 1e6).round();
        if !(-9.2e18..9.2e18).contains(&micros) {
            return Err(out_of_range());
        }
        Ok(Interval {
            months: months.trunc() as i32,
            days: (days.trunc() + month_days.trunc() + extra_days) as i32,
            micros: micros as i64,
        })
    }
}
