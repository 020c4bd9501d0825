//! `to_char`, `to_date` and `to_timestamp` for dates, times and intervals.
//!
//! A template is cut into fields and literal text. Known fields are those of PostgreSQL, without localisation (`TM`) and without
//! Roman months; `FM` drops padding, `TH` and `th` add ordinal endings.

use super::super::function::{Function, Sig};
use super::{day_at, interval_at, micros_at, number_format, str_at};
use crate::types::calendar::{
    DAY_US, EPOCH_JULIAN, HOUR_US, MINUTE_US, SECOND_US, abbreviation_at, day_of, days_in_month, fields_of, iso_week,
    iso_weekday, offset_at, to_local, to_utc,
};
use crate::types::{SqlType as T, Text, Value, checked_timestamp};
use crate::work::{Held, step};
use crate::{SqlError, SqlState};

type R = Result<Value, SqlError>;

/// Units of work of a character of a template: it is compared with the beginnings of all fields.
const CHARACTER_UNITS: usize = 256;
/// Units of work of a field that is written.
const FIELD_UNITS: usize = 128;

const TEXT: Sig = Sig::Is(T::Text);

pub(super) static TABLE: &[Function] = &[
    Function::pure("to_char", &[Sig::Is(T::Timestamp(None)), TEXT], TEXT, |v, _| {
        let local = micros_at(v, 0)?;
        if matches!(local, i64::MIN | i64::MAX) {
            Ok(Value::Null)
        } else {
            format(&Moment::of_local(local), str_at(v, 1)?)
        }
    }),
    Function::stable("to_char", &[Sig::Is(T::Timestamptz(None)), TEXT], TEXT, |v, a| {
        let zone = a.settings().time_zone;
        let utc = micros_at(v, 0)?;
        if matches!(utc, i64::MIN | i64::MAX) {
            return Ok(Value::Null);
        }
        let mut moment = Moment::of_local(to_local(zone, utc));
        moment.offset = Some(offset_at(zone, utc));
        moment.zone = abbreviation_at(zone, utc);
        format(&moment, str_at(v, 1)?)
    }),
    Function::pure("to_char", &[Sig::Is(T::Date), TEXT], TEXT, |v, _| {
        let day = day_at(v, 0)?;
        if matches!(day, i32::MIN | i32::MAX) {
            return Ok(Value::Null);
        }
        format(&Moment::of_local(checked_timestamp(i64::from(day).saturating_mul(DAY_US))?), str_at(v, 1)?)
    }),
    Function::pure("to_char", &[Sig::Is(T::Time(None)), TEXT], TEXT, |v, _| {
        format(&Moment::of_local(micros_at(v, 0)?), str_at(v, 1)?)
    }),
    Function::pure("to_char", &[Sig::Is(T::Interval(None)), TEXT], TEXT, |v, _| {
        let interval = interval_at(v, 0)?;
        format(&Moment::of_interval(interval.months, interval.days, interval.micros), str_at(v, 1)?)
    }),
    Function::pure("to_char", &[Sig::Is(T::Int4), TEXT], TEXT, number_format::to_char),
    Function::pure("to_char", &[Sig::Is(T::Int8), TEXT], TEXT, number_format::to_char),
    Function::pure("to_char", &[Sig::Is(T::Numeric(None)), TEXT], TEXT, number_format::to_char),
    Function::pure("to_char", &[Sig::Is(T::Float4), TEXT], TEXT, number_format::to_char),
    Function::pure("to_char", &[Sig::Is(T::Float8), TEXT], TEXT, number_format::to_char),
    Function::pure("to_number", &[TEXT, TEXT], Sig::Is(T::Numeric(None)), number_format::to_number),
    Function::stable("to_date", &[TEXT, TEXT], Sig::Is(T::Date), |v, _| {
        let local = parse(str_at(v, 0)?, str_at(v, 1)?)?.0;
        Ok(Value::Date(local.div_euclid(DAY_US) as i32))
    }),
    Function::stable("to_timestamp", &[TEXT, TEXT], Sig::Is(T::Timestamptz(None)), |v, a| {
        let (local, offset) = parse(str_at(v, 0)?, str_at(v, 1)?)?;
        Ok(Value::Timestamptz(match offset {
            Some(seconds) => local - seconds * SECOND_US,
            None => to_utc(a.settings().time_zone, local),
        }))
    }),
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// What a template shows parts of.
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// None for an interval.
    day_number: Option<i64>,
    /// Seconds east of UTC.
    offset: Option<i64>,
    zone: String,
}

impl Moment {
    fn of_local(us: i64) -> Moment {
        let f = fields_of(us);
        Moment {
            year: f.year,
            month: f.month.into(),
            day: f.day.into(),
            hour: f.hour.into(),
            minute: f.minute.into(),
            second: f.second.into(),
            micros: f.micros.into(),
            day_number: Some(us.div_euclid(DAY_US)),
            offset: None,
            zone: String::new(),
        }
    }

    fn of_interval(months: i32, days: i32, micros: i64) -> Moment {
        Moment {
            year: i64::from(months / 12),
            month: i64::from(months % 12),
            day: days.into(),
            hour: micros / HOUR_US,
            minute: micros / MINUTE_US % 60,
            second: micros / SECOND_US % 60,
            micros: micros % SECOND_US,
            day_number: None,
            offset: None,
            zone: String::new(),
        }
    }
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Field {
        name: &'static str,
        fill: bool,
        ordinal: Option<bool>,
    },
    Literal(String),
    /// Text in quotes: reading passes over as many characters, whatever they are.
    Quoted(String),
    /// FX: from here on reading is exact about blanks and separators.
    Exact,
}

/// Field names, longer ones before their beginnings. Names of numbers stand in capitals; they may be written in small letters, but not
/// in both.
const FIELDS: &[&str] = &[
    "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "IDDD", "ID", "IW", "I", "SSSSS", "SSSS", "SS", "HH24",
    "HH12", "HH", "MI", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "A.M.", "P.M.", "AM", "PM", "a.m.",
    "p.m.", "am", "pm", "MONTH", "Month", "month", "MON", "Mon", "mon", "MM", "DAY", "Day", "day", "DDD", "DD", "DY",
    "Dy", "dy", "D", "RM", "rm", "WW", "W", "CC", "Q", "J", "B.C.", "A.D.", "BC", "AD", "b.c.", "a.d.", "bc", "ad",
    "TZH", "TZM", "TZ", "tz", "OF",
];

/// The field at the beginning of a text.
fn field_at(text: &str) -> Option<&'static str> {
    // Names of words mean their case.
    let exact = FIELDS.iter().find(|name| text.starts_with(**name));
    let small =
        || FIELDS.iter().find(|name| text.bytes().take(name.len()).eq(name.bytes().map(|b| b.to_ascii_lowercase())));
    exact.or_else(small).copied()
}

/// The text in quotes at the beginning of a text (behind the opening one), and what is behind the closing one.
fn quoted(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    (out, chars.as_str())
}

fn cut(template: &str) -> Result<Vec<Part>, SqlError> {
    fn flush(literal: &mut String, parts: &mut Vec<Part>) {
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(literal)));
        }
    }
    let mut parts = Vec::new();
    let mut held = Held::default();
    let mut literal = String::new();
    let mut rest = template;
    let mut fill = true;
    while let Some(c) = rest.chars().next() {
        step(CHARACTER_UNITS)?;
        if let Some(after) = ["FM", "fm", "TM", "tm"].iter().find_map(|prefix| rest.strip_prefix(prefix)) {
            // Names in the language of the server (TM) are not padded.
            fill = false;
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("FX").or_else(|| rest.strip_prefix("fx")) {
            flush(&mut literal, &mut parts);
            parts.push(Part::Exact);
            rest = after;
            continue;
        }
        if let Some(inside) = rest.strip_prefix('"') {
            let (text, after) = quoted(inside);
            held.take(2 * size_of::<Part>())?;
            flush(&mut literal, &mut parts);
            parts.push(Part::Quoted(text));
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("\\\"") {
            literal.push('"');
            rest = after;
            continue;
        }
        if let Some(name) = field_at(rest) {
            held.take(2 * size_of::<Part>())?;
            flush(&mut literal, &mut parts);
            rest = &rest[name.len()..];
            let mut ordinal = None;
            while let Some(suffix @ ("TH" | "th" | "SP" | "sp")) = rest.get(..2) {
                // Numbers are not spelled out (SP).
                ordinal = match suffix {
                    "TH" => Some(true),
                    "th" => Some(false),
                    _ => ordinal,
                };
                rest = &rest[2..];
            }
            parts.push(Part::Field { name, fill, ordinal });
            fill = true;
            continue;
        }
        literal.push(c);
        rest = &rest[c.len_utf8()..];
    }
    flush(&mut literal, &mut parts);
    Ok(parts)
}

pub(super) fn ordinal(number: i64, upper: bool) -> &'static str {
    let lower = match (number.abs() % 100, number.abs() % 10) {
        (11..=13, _) => 3,
        (_, 1) => 0,
        (_, 2) => 1,
        (_, 3) => 2,
        _ => 3,
    };
    if upper { ["ST", "ND", "RD", "TH"][lower] } else { ["st", "nd", "rd", "th"][lower] }
}

fn format(moment: &Moment, template: &str) -> R {
    if template.is_empty() {
        return Ok(Value::Null);
    }
    let mut out = Text::new();
    for part in cut(template)? {
        step(FIELD_UNITS)?;
        match part {
            Part::Literal(text) | Part::Quoted(text) => out.push_str(&text)?,
            Part::Exact => {}
            Part::Field { name, fill, ordinal: ending } => {
                let text = field(moment, name, fill)?;
                out.push_str(&text)?;
                if let (Some(upper), Ok(number)) = (ending, text.trim().parse::<i64>()) {
                    out.push_str(ordinal(number, upper))?;
                }
            }
        }
    }
    Ok(out.into_value())
}

fn padded(number: i64, width: usize, fill: bool) -> String {
    if !fill {
        return number.to_string();
    }
    if number < 0 { format!("-{:0width$}", number.unsigned_abs()) } else { format!("{number:0width$}") }
}

/// A word in the case of its field's name, padded to the longest.
fn word(word: &str, name: &str, fill: bool, width: usize) -> String {
    let cased = match (name.as_bytes()[0].is_ascii_uppercase(), name.as_bytes()[1].is_ascii_uppercase()) {
        (true, true) => word.to_uppercase(),
        (true, false) => word.to_owned(),
        _ => word.to_lowercase(),
    };
    if fill { format!("{cased:<width$}") } else { cased }
}

fn field(m: &Moment, name: &str, fill: bool) -> Result<String, SqlError> {
    let needs_day = || {
        m.day_number.ok_or_else(|| {
            SqlError::new(SqlState::INVALID_DATETIME, "invalid format specification for an interval value")
                .hint("Intervals are not tied to specific calendar dates.")
        })
    };
    let year = if m.year <= 0 && m.day_number.is_some() { 1 - m.year } else { m.year };
    let is_bc = m.year <= 0;
    let hour12 = if m.hour % 12 == 0 { 12 } else { m.hour % 12 };
    let is_interval = m.day_number.is_none();
    let offset = m.offset.unwrap_or(0);
    let pick = |name: &str, first: bool, a: &str, b: &str| {
        let text = if first { a } else { b };
        let text = if name.contains('.') { format!("{}.{}.", &text[..1], &text[1..]) } else { text.to_owned() };
        if name.as_bytes()[0].is_ascii_uppercase() { text.to_uppercase() } else { text }
    };
    Ok(match name {
        "YYYY" => padded(year, 4, fill),
        "Y,YYY" => format!("{},{:03}", year / 1000, year % 1000),
        "YYY" => padded(year % 1000, 3, fill),
        "YY" => padded(year % 100, 2, fill),
        "Y" => padded(year % 10, 1, fill),
        "IYYY" => padded(iso_year(needs_day()?), 4, fill),
        "IYY" => padded(iso_year(needs_day()?) % 1000, 3, fill),
        "IY" => padded(iso_year(needs_day()?) % 100, 2, fill),
        "I" => padded(iso_year(needs_day()?) % 10, 1, fill),
        "IW" => padded(iso_week(needs_day()?).1.into(), 2, fill),
        "ID" => iso_weekday(needs_day()?).to_string(),
        "IDDD" => {
            let day = needs_day()?;
            padded((i64::from(iso_week(day).1) - 1) * 7 + iso_weekday(day), 3, fill)
        }
        "HH" | "HH12" => padded(hour12, 2, fill),
        "HH24" => padded(m.hour, 2, fill),
        "MI" => padded(m.minute, 2, fill),
        "SS" => padded(m.second, 2, fill),
        "MS" | "FF3" => format!("{:03}", m.micros / 1000),
        "US" | "FF6" => format!("{:06}", m.micros),
        "FF1" => format!("{}", m.micros / 100_000),
        "FF2" => format!("{:02}", m.micros / 10_000),
        "FF4" => format!("{:04}", m.micros / 100),
        "FF5" => format!("{:05}", m.micros / 10),
        "SSSS" | "SSSSS" => (m.hour * 3600 + m.minute * 60 + m.second).to_string(),
        "AM" | "PM" | "am" | "pm" | "A.M." | "P.M." | "a.m." | "p.m." => pick(name, m.hour % 24 < 12, "am", "pm"),
        "BC" | "AD" | "bc" | "ad" | "B.C." | "A.D." | "b.c." | "a.d." => {
            needs_day()?;
            pick(name, is_bc, "bc", "ad")
        }
        "MONTH" | "Month" | "month" => word(month_name(m, needs_day)?, name, fill, 9),
        "MON" | "Mon" | "mon" => word(&month_name(m, needs_day)?[..3], name, fill, 3),
        "MM" => padded(m.month, 2, fill),
        "RM" | "rm" => word(ROMAN[(m.month.clamp(1, 12) - 1) as usize], name, fill, 4),
        "DAY" | "Day" | "day" => word(DAYS[(iso_weekday(needs_day()?) % 7) as usize], name, fill, 9),
        "DY" | "Dy" | "dy" => word(&DAYS[(iso_weekday(needs_day()?) % 7) as usize][..3], name, fill, 3),
        // Months of 30 days, years of twelve.
        "DDD" if is_interval => padded((m.year * 12 + m.month) * 30 + m.day, 3, fill),
        "WW" if is_interval => padded(((m.year * 12 + m.month) * 30 + m.day - 1) / 7 + 1, 2, fill),
        "CC" if is_interval => padded(m.year / 100, 2, fill),
        "DDD" => padded(needs_day()? - day_of(m.year, 1, 1) + 1, 3, fill),
        // The sign of an interval's days takes one of the two places.
        "DD" if m.day < 0 => m.day.to_string(),
        "DD" => padded(m.day, 2, fill),
        "D" => (iso_weekday(needs_day()?) % 7 + 1).to_string(),
        "WW" => padded((needs_day()? - day_of(m.year, 1, 1)) / 7 + 1, 2, fill),
        "W" => ((m.day - 1) / 7 + 1).to_string(),
        "CC" => padded(if m.year > 0 { (m.year + 99) / 100 } else { m.year / 100 - 1 }, 2, fill),
        "Q" => ((m.month.max(1) - 1) / 3 + 1).to_string(),
        "J" => (needs_day()? + EPOCH_JULIAN).to_string(),
        "TZ" | "tz" | "TZH" | "TZM" | "OF" if is_interval => {
            needs_day()?;
            String::new()
        }
        "TZ" => m.zone.to_uppercase(),
        "tz" => m.zone.to_lowercase(),
        // A time without zone is one of UTC's.
        "TZH" => format!("{}{:02}", if offset < 0 { '-' } else { '+' }, offset.abs() / 3600),
        "TZM" => format!("{:02}", offset.abs() / 60 % 60),
        "OF" => {
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60 % 60);
            let minutes = if minutes == 0 { String::new() } else { format!(":{minutes:02}") };
            format!("{sign}{:02}{minutes}", offset.abs() / 3600)
        }
        _ => String::new(),
    })
}

/// The year of an ISO week, counted as people do: there is none before 1 but 1 BC.
fn iso_year(day: i64) -> i64 {
    let year = iso_week(day).0;
    if year <= 0 { 1 - year } else { year }
}

const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

fn month_name(m: &Moment, needs_day: impl Fn() -> Result<i64, SqlError>) -> Result<&'static str, SqlError> {
    needs_day()?;
    Ok(MONTHS[(m.month.clamp(1, 12) - 1) as usize])
}

/// What `to_date` and `to_timestamp` have read so far.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    week: Option<i64>,
    day_of_week: Option<i64>,
    /// The year is one of ISO weeks.
    iso: bool,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    afternoon: Option<bool>,
    bc: bool,
    offset: Option<i64>,
    /// The hour was read as one of twelve.
    twelve: bool,
    week_of_month: Option<i64>,
    century: Option<i64>,
}

fn invalid_value(text: &str, name: &str) -> SqlError {
    let width = match name {
        "HH24" | "HH12" => 2,
        "Mon" | "MON" | "mon" | "Month" | "MONTH" | "month" => 10,
        name => name.len(),
    };
    let shown: String = text.chars().take(width).take_while(|c| !c.is_whitespace()).collect();
    SqlError::new(SqlState::INVALID_DATETIME, format!("invalid value \"{shown}\" for \"{name}\""))
}

/// Reads a local time by a template, and the offset if the text has one.
fn parse(text: &str, template: &str) -> Result<(i64, Option<i64>), SqlError> {
    let mut read = Read::default();
    let mut rest = text.trim_start();
    let parts = cut(template)?;
    let mut exact = false;
    for (i, part) in parts.iter().enumerate() {
        match part {
            Part::Exact => exact = true,
            // Each character of the template stands for one of the text, whatever it is.
            Part::Literal(literal) if exact => {
                for _ in literal.chars() {
                    rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
                }
            }
            Part::Literal(literal) => {
                let signed = matches!(parts.get(i + 1), Some(Part::Field { name: "TZH", .. }));
                // Each blank or separator of the template stands for any number of them in the text.
                for wanted in literal.chars() {
                    if wanted.is_alphanumeric() {
                        rest = rest.strip_prefix(wanted).unwrap_or(rest);
                    } else {
                        rest = rest.trim_start_matches(|c: char| c.is_whitespace());
                        // A sign may belong to the zone that comes next.
                        let is_sign =
                            signed && rest.starts_with(['+', '-']) && !(wanted == '-' && rest.starts_with('-'));
                        if !is_sign && rest.starts_with(|c: char| !c.is_alphanumeric()) {
                            rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
                        }
                    }
                }
            }
            Part::Quoted(text) => {
                for _ in text.chars() {
                    rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
                }
            }
            Part::Field { name: name @ ("TZ" | "tz" | "OF"), .. } => {
                let message =
                    format!("formatting field \"{}\" is only supported in to_char", name.to_ascii_uppercase());
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            Part::Field { name, ordinal, .. } => {
                if rest.is_empty() {
                    break;
                }
                // Only numbers may stand behind blanks that the template does not have.
                if !exact || !is_word(name) {
                    rest = rest.trim_start();
                }
                if rest.is_empty() && !exact {
                    break;
                }
                // Digits are only limited where digits follow at once.
                let tight = matches!(parts.get(i + 1), Some(Part::Field { .. }));
                rest = read_field(&mut read, name, rest, tight)?;
                if ordinal.is_some() {
                    rest = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
                }
            }
        }
    }
    finish(read, text)
}

/// Whether a field is read as a word, and not as a number.
fn is_word(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    let words = ["month", "mon", "day", "dy", "am", "pm", "a.m.", "p.m.", "bc", "ad", "b.c.", "a.d.", "rm", "tzh"];
    words.contains(&small.as_str())
}

fn digits<'a>(rest: &'a str, width: usize, name: &str) -> Result<(i64, &'a str), SqlError> {
    let count = rest.bytes().take(width).take_while(u8::is_ascii_digit).count();
    let number = rest[..count].parse().map_err(|_| invalid_value(rest, name).detail("Value must be an integer."))?;
    Ok((number, &rest[count..]))
}

fn read_field<'a>(read: &mut Read, name: &str, rest: &'a str, tight: bool) -> Result<&'a str, SqlError> {
    let wide = |width: usize| if tight { width } else { 18 };
    // No word is longer.
    let lower = rest.chars().take(16).collect::<String>().to_ascii_lowercase();
    match name {
        "YYYY" | "IYYY" => {
            let (year, after) = digits(rest, wide(4), name)?;
            read.year = Some(year);
            read.iso = name == "IYYY";
            return Ok(after);
        }
        "Y,YYY" => {
            let (thousands, after) = digits(rest, 3, name)?;
            let after = after.strip_prefix(',').ok_or_else(|| invalid_value(rest, name))?;
            let (ones, after) = digits(after, 3, name)?;
            read.year = Some(thousands * 1000 + ones);
            return Ok(after);
        }
        "RM" | "rm" => {
            let months = ROMAN.iter().enumerate().filter(|(_, roman)| lower.starts_with(&roman.to_ascii_lowercase()));
            let (index, roman) = months.max_by_key(|(_, roman)| roman.len()).ok_or_else(|| {
                invalid_value(rest, name)
                    .detail("The given value did not match any of the allowed values for this field.")
            })?;
            read.month = Some(index as i64 + 1);
            return Ok(&rest[roman.len()..]);
        }
        "YYY" | "YY" | "Y" => {
            let (year, after) = digits(rest, wide(name.len()), name)?;
            // Years of fewer than four digits are those nearest to 2020.
            read.year = Some(match year {
                0..70 => year + 2000,
                70..100 => year + 1900,
                100..520 => year + 2000,
                520..1000 => year + 1000,
                year => year,
            });
            return Ok(after);
        }
        "MONTH" | "Month" | "month" | "MON" | "Mon" | "mon" => {
            let full = name.len() == 5;
            let found =
                MONTHS.iter().position(|m| lower.starts_with(&m.to_lowercase()[..if full { m.len() } else { 3 }]));
            let index = found.ok_or_else(|| {
                invalid_value(rest, name)
                    .detail("The given value did not match any of the allowed values for this field.")
            })?;
            read.month = Some(index as i64 + 1);
            return Ok(&rest[if full { MONTHS[index].len() } else { 3 }..]);
        }
        "DAY" | "Day" | "day" | "DY" | "Dy" | "dy" => {
            return Ok(rest.trim_start_matches(|c: char| c.is_alphabetic()));
        }
        "AM" | "PM" | "am" | "pm" | "A.M." | "P.M." | "a.m." | "p.m." => {
            read.afternoon = Some(lower.starts_with('p'));
            return Ok(rest.trim_start_matches(|c: char| c.is_alphabetic() || c == '.'));
        }
        "BC" | "AD" | "bc" | "ad" | "B.C." | "A.D." | "b.c." | "a.d." => {
            read.bc = lower.starts_with('b');
            return Ok(rest.trim_start_matches(|c: char| c.is_alphabetic() || c == '.'));
        }
        "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let count = rest.bytes().take_while(u8::is_ascii_digit).count();
            let fraction = format!("{:0<6}", &rest[..count]);
            read.micros = fraction[..6].parse().map_err(|_| invalid_value(rest, name))?;
            return Ok(&rest[count..]);
        }
        "TZH" | "OF" => {
            let end = rest
                .bytes()
                .position(|b| !(b.is_ascii_digit() || matches!(b, b'+' | b'-' | b':')))
                .unwrap_or(rest.len());
            let signed =
                if rest.starts_with(['+', '-']) { rest[..end].to_owned() } else { format!("+{}", &rest[..end]) };
            read.offset = crate::types::parse_offset(&signed);
            return Ok(&rest[end..]);
        }
        _ => {}
    }
    let width = match name {
        "DDD" => 3,
        "J" => 18,
        "D" | "Q" | "W" | "ID" => 1,
        _ => 2,
    };
    let (number, after) = digits(rest, wide(width), name)?;
    match name {
        "MM" => read.month = Some(number),
        "DD" => read.day = Some(number),
        "DDD" => read.day_of_year = Some(number),
        "J" => read.julian = Some(number),
        "WW" | "IW" => read.week = Some(number),
        "ID" => read.day_of_week = Some(number),
        "HH" | "HH12" => (read.hour, read.twelve) = (number, true),
        "HH24" => read.hour = number,
        "W" => read.week_of_month = Some(number),
        "CC" => read.century = Some(number),
        "Q" => {}
        "MI" => read.minute = number,
        "SS" => read.second = number,
        "SSSS" | "SSSSS" => (read.hour, read.minute, read.second) = (number / 3600, number / 60 % 60, number % 60),
        "TZM" => read.offset = read.offset.map(|o| o + number * 60 * o.signum()),
        _ => {}
    }
    // st, nd, rd, th
    Ok(after)
}

fn finish(read: Read, text: &str) -> Result<(i64, Option<i64>), SqlError> {
    let out = || SqlError::new(SqlState::DATETIME_OVERFLOW, format!("date/time field value out of range: \"{text}\""));
    let mut hour = read.hour;
    if read.twelve || read.afternoon.is_some() {
        if !(1..=12).contains(&hour) {
            return Err(SqlError::new(
                SqlState::INVALID_DATETIME,
                format!("hour \"{hour}\" is invalid for the 12-hour clock"),
            )
            .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        if let Some(afternoon) = read.afternoon {
            hour = hour % 12 + if afternoon { 12 } else { 0 };
        }
    }
    // A year not given is 1 BC, as PostgreSQL has it.
    let year = match read.year {
        Some(year) if read.bc => 1 - year,
        Some(year) => year,
        None => 0,
    };
    let year = match (read.century, read.year) {
        // The century says which hundred years a year of two digits is in; alone, its first year.
        (Some(century), Some(_)) => (century - 1) * 100 + year.rem_euclid(100) + if year % 100 == 0 { 100 } else { 0 },
        (Some(century), None) => (century - 1) * 100 + 1,
        _ => year,
    };
    if hour > 24 || read.minute > 59 || read.second > 59 || year.abs() > 5_874_897 {
        return Err(out());
    }
    let day = if let Some(julian) = read.julian {
        julian - EPOCH_JULIAN
    } else if let (true, Some(week)) = (read.iso, read.week) {
        // The week that holds January 4 is the first.
        let fourth = day_of(year, 1, 4);
        fourth - (iso_weekday(fourth) - 1) + (week - 1) * 7 + read.day_of_week.unwrap_or(1) - 1
    } else if let (false, Some(week), None) = (read.iso, read.week, read.month) {
        day_of(year, 1, 1) + (week - 1) * 7
    } else if let Some(day) = read.day_of_year {
        day_of(year, 1, 1) + day - 1
    } else {
        let of_week = read.week_of_month.map(|week| (week - 1) * 7 + 1);
        let (month, day) = (read.month.unwrap_or(1), read.day.or(of_week).unwrap_or(1));
        if !(1..=12).contains(&month) || day < 1 || day > i64::from(days_in_month(year, month as u32)) {
            return Err(out());
        }
        day_of(year, month as u32, day as u32)
    };
    let time = hour * HOUR_US + read.minute * MINUTE_US + read.second * SECOND_US + read.micros;
    let local = day.checked_mul(DAY_US).and_then(|us| us.checked_add(time)).ok_or_else(out)?;
    Ok((checked_timestamp(local)?, read.offset))
}
