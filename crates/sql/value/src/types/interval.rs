//! interval: text forms and arithmetic.
//!
//! Reads and writes PostgreSQL's two forms, the SQL standard's (`1-2`, `3 04:05:06`) and that of ISO 8601 (`P1Y2M3DT4H5M6S`). Fractions spill downwards as in PostgreSQL: months into days of 30, days into microseconds.

use super::calendar::{DAY_US, HOUR_US, MINUTE_US, SECOND_US};
use super::date_time::{fraction_us, put_fraction};
use super::style::IntervalStyle;
use super::{Interval, SqlType};
use crate::{SqlError, SqlState};
use bytes::BufMut;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

fn invalid(text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATETIME,
        format!("invalid input syntax for type {}: \"{text}\"", SqlType::Interval(None)),
    )
}

fn overflow(text: &str) -> SqlError {
    SqlError::new(SqlState(*b"22015"), format!("interval field value out of range: \"{text}\""))
}

/// One more than an i64 holds.
const I64_END: f64 = 9_223_372_036_854_775_808.0;

/// 22008 for a result that an interval cannot hold.
pub fn out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_OVERFLOW, "interval out of range")
}

/// A unit of an interval's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Microsecond = 0,
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
    pub fn by_name(name: &str) -> Option<Unit> {
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
            "mil" | "mils" | "millennium" | "millenniums" | "millennia" => Unit::Millennium,
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

/// What a type says of an interval's fields: `day to second(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct IntervalModifier {
    /// The greatest and the least field named.
    pub fields: Option<(Field, Field)>,
    /// Digits behind the point of seconds.
    pub precision: Option<u32>,
}

/// A field of an interval that a type can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Field {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

impl Field {
    const ALL: [Field; 6] = [Field::Year, Field::Month, Field::Day, Field::Hour, Field::Minute, Field::Second];

    /// Its bit in the catalog's mask of fields.
    fn bit(self) -> u8 {
        match self {
            Field::Year => 2,
            Field::Month => 1,
            Field::Day => 3,
            Field::Hour => 10,
            Field::Minute => 11,
            Field::Second => 12,
        }
    }
}

impl IntervalModifier {
    /// Whether there is a type `interval <first> TO <last>`.
    pub fn may_span(first: Field, last: Field) -> bool {
        match first {
            Field::Year => last == Field::Month,
            Field::Day => matches!(last, Field::Hour | Field::Minute | Field::Second),
            Field::Hour => matches!(last, Field::Minute | Field::Second),
            Field::Minute => last == Field::Second,
            _ => false,
        }
    }

    /// As the number beside a type in the catalog: a mask of fields above the digits.
    pub fn to_number(self) -> i32 {
        let digits = self.precision.map_or(0xffff, |digits| digits as i32);
        let mask = match self.fields {
            None => 0x7fff,
            Some((greatest, least)) => Field::ALL
                .iter()
                .filter(|field| (greatest as u8..=least as u8).contains(&(**field as u8)))
                .fold(0, |mask, field| mask | 1 << field.bit()),
        };
        mask << 16 | digits
    }

    /// From that number.
    pub fn from_number(number: i32) -> IntervalModifier {
        let (mask, digits) = (number >> 16 & 0x7fff, number & 0xffff);
        let named = |field: &&Field| mask & (1 << field.bit()) != 0;
        let (greatest, least) = (Field::ALL.iter().find(named), Field::ALL.iter().rfind(named));
        let fields = if mask == 0x7fff { None } else { greatest.copied().zip(least.copied()) };
        IntervalModifier { fields, precision: (digits <= 6).then_some(digits as u32) }
    }

    /// For seconds of so many digits.
    pub(crate) fn of_digits(digits: u32) -> IntervalModifier {
        IntervalModifier { fields: None, precision: Some(digits) }
    }

    /// The unit of a number without one.
    fn unit(&self) -> Unit {
        match self.fields.map(|(_, least)| least) {
            Some(Field::Year) => Unit::Year,
            Some(Field::Month) => Unit::Month,
            Some(Field::Day) => Unit::Day,
            Some(Field::Hour) => Unit::Hour,
            Some(Field::Minute) => Unit::Minute,
            Some(Field::Second) | None => Unit::Second,
        }
    }

    /// Cuts what is smaller than the least field, and rounds seconds.
    pub fn adjust(&self, value: Interval) -> Interval {
        let cut = match self.fields.map(|(_, least)| least) {
            Some(Field::Year) => Interval { months: value.months / 12 * 12, days: 0, micros: 0 },
            Some(Field::Month) => Interval { days: 0, micros: 0, ..value },
            Some(Field::Day) => Interval { micros: 0, ..value },
            Some(Field::Hour) => Interval { micros: value.micros / HOUR_US * HOUR_US, ..value },
            Some(Field::Minute) => Interval { micros: value.micros / MINUTE_US * MINUTE_US, ..value },
            Some(Field::Second) | None => value,
        };
        match self.precision {
            Some(digits) => Interval { micros: super::calendar::round_fraction(cut.micros, digits), ..cut },
            None => cut,
        }
    }
}

/// What stands behind the word `interval`: ` day to second(2)`.
impl fmt::Display for IntervalModifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |field: Field| match field {
            Field::Year => "year",
            Field::Month => "month",
            Field::Day => "day",
            Field::Hour => "hour",
            Field::Minute => "minute",
            Field::Second => "second",
        };
        match self.fields {
            None => {}
            Some((greatest, least)) if greatest == least => write!(f, " {}", word(greatest))?,
            Some((greatest, least)) => write!(f, " {} to {}", word(greatest), word(least))?,
        }
        self.precision.map_or(Ok(()), |digits| write!(f, "({digits})"))
    }
}

/// Fields that a text has named: none may be named twice.
#[derive(Default)]
struct Named(u16);

impl Named {
    const TIME: u16 = 1 << Unit::Hour as u16 | 1 << Unit::Minute as u16 | Named::SECONDS;
    const SECONDS: u16 = 1 << Unit::Second as u16 | 1 << Unit::Millisecond as u16 | 1 << Unit::Microsecond as u16;

    fn add(&mut self, mask: u16) -> Option<()> {
        let fresh = self.0 & mask == 0;
        self.0 |= mask;
        fresh.then_some(())
    }
    fn add_unit(&mut self, unit: Unit, number: Decimal) -> Option<()> {
        let whole = number.fraction == 0.0;
        self.add(if unit == Unit::Second && !whole { Named::SECONDS } else { 1 << unit as u16 })
    }
}

/// Reads an interval as a type of these fields has it. Words are read from the last to the first: `1 2:03` has its days before its time.
pub fn parse(text: &str, modifier: IntervalModifier, style: IntervalStyle) -> Result<Interval, SqlError> {
    let body = text.trim();
    if let Some(iso) = body.strip_prefix('P') {
        return parse_iso(iso, text);
    }
    let words = signed(split_words(body.strip_prefix('@').unwrap_or(body)), style);
    if words.is_empty() {
        return Err(invalid(text));
    }
    let bad = || invalid(text);
    let minutes = modifier.fields == Some((Field::Minute, Field::Second));
    let (mut sum, mut named) = (Sum::default(), Named::default());
    // The unit written behind a number, and that of a number with none.
    let (mut written, mut implied) = (None, None);
    let mut ago = false;
    for (back, word) in words.iter().map(Cow::as_ref).rev().enumerate() {
        if back == 0 && words.len() > 1 && word.eq_ignore_ascii_case("ago") {
            ago = true;
        } else if word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            if written.is_some() {
                return Err(bad());
            }
            written = Some(Unit::by_name(word).ok_or_else(bad)?);
        } else if word.contains(':') {
            let first = if minutes { Unit::Second } else { Unit::Hour };
            let (negative, micros) = parse_clock(word, first).filter(|_| written.is_none()).ok_or_else(bad)?;
            named.add(Named::TIME).ok_or_else(bad)?;
            sum.micros += i128::from(if negative { -micros } else { micros });
            implied = Some(Unit::Day);
        } else if let Some((years, months)) = year_month(word) {
            named
                .add(1 << Unit::Year as u16 | 1 << Unit::Month as u16)
                .filter(|()| written.is_none())
                .ok_or_else(bad)?;
            sum.months += i128::from(years) * 12 + i128::from(months);
            implied = Some(Unit::Day);
        } else {
            let number = parse_decimal(word).ok_or_else(bad)?;
            let unit = written.take().or(implied).unwrap_or_else(|| modifier.unit());
            named.add_unit(unit, number).ok_or_else(bad)?;
            sum.add(number, unit);
            implied = Some(if unit == Unit::Hour { Unit::Day } else { unit });
        }
    }
    if written.is_some() {
        return Err(bad());
    }
    if ago {
        sum.negate();
    }
    sum.finish(text)
}

/// In the standard's style a sign before the first number is that of all, if there is no other.
fn signed(words: Vec<&str>, style: IntervalStyle) -> Vec<Cow<'_, str>> {
    let signs = |word: &&str| word.starts_with(['+', '-']);
    let all = style == IntervalStyle::Standard
        && words.first().is_some_and(|word| word.starts_with('-'))
        && !words[1..].iter().any(signs);
    let word = |word: &'_ str| -> bool { all && word.starts_with(|c: char| c.is_ascii_digit() || c == '.') };
    words
        .into_iter()
        .map(|text| if word(text) { Cow::Owned(format!("-{text}")) } else { Cow::Borrowed(text) })
        .collect()
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

/// Writes an interval in a style.
pub fn write(value: Interval, style: IntervalStyle, out: &mut impl BufMut) {
    match style {
        IntervalStyle::Postgres => write_postgres(value, out),
        IntervalStyle::Verbose => out.put_slice(verbose(&Parts::of(value)).as_bytes()),
        IntervalStyle::Standard => out.put_slice(standard(&Parts::of(value)).as_bytes()),
        IntervalStyle::Iso => out.put_slice(iso(&Parts::of(value)).as_bytes()),
    }
}

/// The numbers of an interval as the other styles name them, each with its sign.
struct Parts {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
}

impl Parts {
    fn of(value: Interval) -> Parts {
        Parts {
            years: i64::from(value.months / 12),
            months: i64::from(value.months % 12),
            days: i64::from(value.days),
            hours: value.micros / HOUR_US,
            minutes: value.micros / MINUTE_US % 60,
            seconds: value.micros / SECOND_US % 60,
            micros: value.micros % SECOND_US,
        }
    }

    fn all(&self) -> [i64; 7] {
        [self.years, self.months, self.days, self.hours, self.minutes, self.seconds, self.micros]
    }

    /// `6`, `6.7`, without a sign; padded to two digits if asked for.
    fn seconds(&self, width: usize) -> String {
        let mut text = format!("{:0width$}", self.seconds.abs()).into_bytes();
        put_fraction(self.micros.unsigned_abs(), &mut text);
        String::from_utf8(text).unwrap_or_default()
    }

    fn has_seconds(&self) -> bool {
        self.seconds != 0 || self.micros != 0
    }
}

/// `@ 1 year 2 mons -3 days 4 hours ago`: the first number gives the sign of all.
fn verbose(parts: &Parts) -> String {
    let mut text = String::from("@");
    let mut ago = None;
    let units = ["year", "mon", "day", "hour", "min"];
    for (number, unit) in parts.all().into_iter().zip(units).filter(|(number, _)| *number != 0) {
        let turned = *ago.get_or_insert(number < 0);
        let number = if turned { -number } else { number };
        text += &format!(" {number} {unit}{}", if number == 1 { "" } else { "s" });
    }
    if parts.has_seconds() {
        let negative = parts.seconds < 0 || parts.micros < 0;
        let turned = *ago.get_or_insert(negative);
        let plural = if parts.seconds.abs() != 1 || parts.micros != 0 { "s" } else { "" };
        text += &format!(" {}{} sec{plural}", if negative == turned { "" } else { "-" }, parts.seconds(1));
    }
    match ago {
        None => text + " 0",
        Some(true) => text + " ago",
        Some(false) => text,
    }
}

/// `1-2`, `3 4:05:06`; what the standard has no form for has all its numbers with their signs.
fn standard(parts: &Parts) -> String {
    let Parts { years, months, days, hours, minutes, .. } = *parts;
    let all = parts.all();
    let (negative, positive) = (all.iter().any(|n| *n < 0), all.iter().any(|n| *n > 0));
    let (has_months, has_time) = (all[..2].iter().any(|n| *n != 0), all[2..].iter().any(|n| *n != 0));
    let sign = |negative: bool| if negative { '-' } else { '+' };
    if !negative && !positive {
        return "0".into();
    }
    let clock = format!("{}:{:02}:{}", hours.abs(), minutes.abs(), parts.seconds(2));
    if (negative && positive) || (has_months && has_time) {
        let (year_sign, day_sign) = (sign(years < 0 || months < 0), sign(days < 0));
        let clock_sign = sign(all[3..].iter().any(|n| *n < 0));
        return format!("{year_sign}{}-{} {day_sign}{} {clock_sign}{clock}", years.abs(), months.abs(), days.abs());
    }
    let minus = if negative { "-" } else { "" };
    match (has_months, days) {
        (true, _) => format!("{minus}{}-{}", years.abs(), months.abs()),
        (false, 0) => format!("{minus}{clock}"),
        (false, days) => format!("{minus}{} {clock}", days.abs()),
    }
}

/// `P1Y2M3DT4H5M6S`
fn iso(parts: &Parts) -> String {
    let all = parts.all();
    if all.iter().all(|n| *n == 0) {
        return "PT0S".into();
    }
    let part = |number: i64, unit: char| if number == 0 { String::new() } else { format!("{number}{unit}") };
    let mut text = format!("P{}{}{}", part(all[0], 'Y'), part(all[1], 'M'), part(all[2], 'D'));
    if all[3..].iter().any(|n| *n != 0) {
        text += &format!("T{}{}", part(all[3], 'H'), part(all[4], 'M'));
    }
    if parts.has_seconds() {
        let minus = if parts.seconds < 0 || parts.micros < 0 { "-" } else { "" };
        text += &format!("{minus}{}S", parts.seconds(1));
    }
    text
}

/// `1 year 2 mons 3 days 04:05:06.789`
fn write_postgres(value: Interval, out: &mut impl BufMut) {
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
    /// Reads an interval; `modifier` is what SQL writes beside it (`INTERVAL '3' DAY`).
    ///
    /// # Errors
    /// 22007 for what is no interval, 22008 for one too long.
    pub fn parse(text: &str, modifier: IntervalModifier, style: IntervalStyle) -> Result<Interval, SqlError> {
        Ok(modifier.adjust(parse(text, modifier, style)?))
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
        let fits = |number: f64| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
        if !fits(months) || !fits(days) {
            return Err(out_of_range());
        }
        let round = |x: f64| (x * 1e6).round() / 1e6;
        let month_days = round((months - months.trunc()) * 30.0);
        let seconds = round((days - days.trunc() + month_days - month_days.trunc()) * 86_400.0);
        let (extra_days, seconds) =
            if seconds.abs() >= 86_400.0 { ((seconds / 86_400.0).trunc(), seconds % 86_400.0) } else { (0.0, seconds) };
        let micros = (self.micros as f64 * factor + seconds * 1e6).round();
        // Of what an i64 holds, the largest is no f64: one more is.
        if !(-I64_END..I64_END).contains(&micros) {
            return Err(out_of_range());
        }
        Ok(Interval {
            months: months.trunc() as i32,
            days: (days.trunc() + month_days.trunc() + extra_days) as i32,
            micros: micros as i64,
        })
    }
}
