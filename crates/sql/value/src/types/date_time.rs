//! date, time, timestamp, timestamptz: their text forms are read here; times are written, the others in `style`.
//!
//! Reads the ISO forms and the common others that PostgreSQL reads (`Jan 8, 1999`, `1/8/1999` as month first, `19990108`,
//! `99.008` is not). A text is cut into fields first and each field is then placed, as PostgreSQL's `ParseDateTime` and
//! `DecodeDateTime` do; what cannot be placed is 22007, what is placed but does not exist is 22008.

use super::calendar::{
    DAY_US, END_DAY, END_TIMESTAMP_US, EPOCH_JULIAN, HOUR_US, MIN_DAY, MIN_TIMESTAMP_US, MINUTE_US, SECOND_US,
    TimeZone, date_of, day_of, days_in_month, to_local, to_utc, zone_by_name,
};
use super::style::{DateOrder, put_offset};
use super::{SqlType, ZonedTime};
use crate::{SqlError, SqlState};
use bytes::BufMut;
use chrono_tz::Tz;

/// What a text said.
#[derive(Default)]
struct Parsed {
    date: Option<(i64, u32, u32)>,
    time_us: Option<i64>,
    zone: Option<Zone>,
    special: Option<Special>,
    afternoon: Option<bool>,
    /// `T` was said, and a time of day must follow.
    owes_time: bool,
    dates: Dates,
}

/// How numbers are read as dates.
#[derive(Clone, Copy, Default)]
struct Dates {
    order: DateOrder,
    /// The text says BC somewhere: then a year of two digits is what it says.
    bc: bool,
}

#[derive(Clone, Copy)]
enum Zone {
    /// Seconds east of UTC.
    Offset(i64),
    Named(Tz),
}

#[derive(Clone, Copy, PartialEq)]
enum Special {
    Infinity,
    NegInfinity,
    Epoch,
}

fn invalid(ty: &SqlType, text: &str) -> SqlError {
    let ty = match ty {
        SqlType::Time(_) => "time".to_owned(),
        SqlType::Timetz(_) => "time with time zone".to_owned(),
        SqlType::Timestamp(_) => "timestamp".to_owned(),
        other => other.to_string(),
    };
    SqlError::new(SqlState::INVALID_DATETIME, format!("invalid input syntax for type {ty}: \"{text}\""))
}

fn field_overflow(text: &str) -> SqlError {
    SqlError::new(SqlState::DATETIME_OVERFLOW, format!("date/time field value out of range: \"{text}\""))
}

/// 22008 for a result that the type cannot hold.
pub(crate) fn timestamp_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_OVERFLOW, "timestamp out of range")
}

/// 22008 for a day that a date cannot hold.
pub(crate) fn date_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_OVERFLOW, "date out of range")
}

/// A day number within what a date holds; the ends are the infinities.
pub fn checked_day(day: i64) -> Result<i32, SqlError> {
    if (MIN_DAY..END_DAY).contains(&day) { Ok(day as i32) } else { Err(date_out_of_range()) }
}

/// A timestamp within its range.
pub fn checked_timestamp(us: i64) -> Result<i64, SqlError> {
    if (MIN_TIMESTAMP_US..END_TIMESTAMP_US).contains(&us) { Ok(us) } else { Err(timestamp_out_of_range()) }
}

/// Reads a date as a day number.
pub(crate) fn parse_date(text: &str, order: DateOrder) -> Result<i32, SqlError> {
    if let Some(day) = plain_date(text.as_bytes()) {
        return Ok(day);
    }
    let parsed = parse(&SqlType::Date, text, order)?;
    match parsed.special {
        Some(Special::Infinity) => return Ok(i32::MAX),
        Some(Special::NegInfinity) => return Ok(i32::MIN),
        Some(Special::Epoch) => return Ok(-(super::calendar::EPOCH_OFFSET_DAYS as i32)),
        None => {}
    }
    let (y, m, d) = parsed.date.ok_or_else(|| invalid(&SqlType::Date, text))?;
    checked_day(day_of(y, m, d))
        .map_err(|_| SqlError::new(SqlState::DATETIME_OVERFLOW, format!("date out of range: \"{text}\"")))
}

/// `YYYY-MM-DD` and nothing else: what programs send.
fn plain_date(b: &[u8]) -> Option<i32> {
    if b.len() != 10 || b[4] != b'-' || b[7] != b'-' {
        return None;
    }
    let n = |from: usize, to: usize| {
        b[from..to].iter().try_fold(0i64, |sum, c| c.is_ascii_digit().then(|| sum * 10 + i64::from(c - b'0')))
    };
    let (y, m, d) = (n(0, 4)?, n(5, 7)? as u32, n(8, 10)? as u32);
    if y < 100 || !(1..=12).contains(&m) || d == 0 || d > days_in_month(y, m) {
        return None;
    }
    Some(day_of(y, m, d) as i32)
}

/// Reads a time of day as microseconds; `24:00` is allowed.
pub(crate) fn parse_time(text: &str, order: DateOrder) -> Result<i64, SqlError> {
    let parsed = parse(&SqlType::Time(None), text, order)?;
    if parsed.special.is_some() {
        return Err(invalid(&SqlType::Time(None), text));
    }
    // A place has another zone from day to day.
    if parsed.date.is_none() && matches!(parsed.zone, Some(Zone::Named(named)) if !is_fixed(named)) {
        return Err(invalid(&SqlType::Time(None), text));
    }
    parsed.time_us.ok_or_else(|| invalid(&SqlType::Time(None), text))
}

/// Reads a time of day with its zone. Where the text names none it is that of `zone`, on the text's day or today (by `now_us`); the zone of a
/// place needs a day.
pub(crate) fn parse_zoned_time(
    text: &str,
    zone: TimeZone,
    order: DateOrder,
    now_us: Option<i64>,
) -> Result<ZonedTime, SqlError> {
    let ty = SqlType::Timetz(None);
    let parsed = parse(&ty, text, order)?;
    let micros = parsed.time_us.filter(|_| parsed.special.is_none()).ok_or_else(|| invalid(&ty, text))?;
    let on_day = |zone: TimeZone, day: i64| {
        let local = day.saturating_mul(DAY_US).saturating_add(micros);
        // 24:00 stays what it is.
        ZonedTime { micros, ..ZonedTime::of_local(local, zone) }
    };
    let day = parsed.date.map(|(y, m, d)| day_of(y, m, d));
    Ok(match (parsed.zone, day) {
        (Some(Zone::Offset(east)), _) => ZonedTime { micros, west_s: -east as i32 },
        (Some(Zone::Named(named)), Some(day)) => on_day(named.into(), day),
        (Some(Zone::Named(named)), None) if is_fixed(named) => on_day(named.into(), 0),
        (Some(Zone::Named(_)), None) => return Err(invalid(&ty, text)),
        (None, Some(day)) => on_day(zone, day),
        (None, None) => zoned_today(micros, zone, now_us.unwrap_or_default()),
    })
}

/// A time of day in a zone, as it is on the day of an instant.
pub(crate) fn zoned_today(micros: i64, zone: TimeZone, now_us: i64) -> ZonedTime {
    let today = to_local(zone, now_us).div_euclid(DAY_US);
    ZonedTime { micros, ..ZonedTime::of_local(today * DAY_US + micros, zone) }
}

/// Whether a zone is the same all the year, and always was.
fn is_fixed(zone: Tz) -> bool {
    let name = zone.name();
    name.starts_with("Etc/") || matches!(name, "UTC" | "UCT" | "GMT" | "Zulu" | "Universal" | "Greenwich" | "GMT0")
}

/// Whether it is a time of day, of which a day is no part.
fn is_clock(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Time(_) | SqlType::Timetz(_))
}

/// Reads a timestamp; a zone in the text is ignored, as PostgreSQL does.
pub(crate) fn parse_timestamp(text: &str, order: DateOrder) -> Result<i64, SqlError> {
    let parsed = parse(&SqlType::Timestamp(None), text, order)?;
    if let Some(special) = special_us(&parsed) {
        return Ok(special);
    }
    local_us(&parsed, &SqlType::Timestamp(None), text)
}

/// Reads an instant; without a zone in the text it is local to `zone`.
pub(crate) fn parse_timestamptz(text: &str, zone: impl Into<TimeZone>, order: DateOrder) -> Result<i64, SqlError> {
    let parsed = parse(&SqlType::Timestamptz(None), text, order)?;
    if let Some(special) = special_us(&parsed) {
        return Ok(special);
    }
    let local = local_us(&parsed, &SqlType::Timestamptz(None), text)?;
    let utc = match parsed.zone {
        Some(Zone::Offset(seconds)) => local - seconds * SECOND_US,
        Some(Zone::Named(named)) => to_utc(named, local),
        None => to_utc(zone, local),
    };
    checked_timestamp(utc)
        .map_err(|_| SqlError::new(SqlState::DATETIME_OVERFLOW, format!("timestamp out of range: \"{text}\"")))
}

/// Whether the text of a timestamptz or timetz says its zone, so that its meaning does not depend on settings.
pub fn has_zone(ty: &SqlType, text: &str, order: DateOrder) -> bool {
    parse(&ty.base(), text, order).is_ok_and(|parsed| parsed.zone.is_some() || parsed.special.is_some())
}

fn special_us(parsed: &Parsed) -> Option<i64> {
    parsed.special.map(|special| match special {
        Special::Infinity => i64::MAX,
        Special::NegInfinity => i64::MIN,
        Special::Epoch => -super::calendar::EPOCH_OFFSET_US,
    })
}

fn local_us(parsed: &Parsed, ty: &SqlType, text: &str) -> Result<i64, SqlError> {
    let (y, m, d) = parsed.date.ok_or_else(|| invalid(ty, text))?;
    let out = || SqlError::new(SqlState::DATETIME_OVERFLOW, format!("timestamp out of range: \"{text}\""));
    let us = day_of(y, m, d)
        .checked_mul(DAY_US)
        .and_then(|us| us.checked_add(parsed.time_us.unwrap_or(0)))
        .ok_or_else(out)?;
    checked_timestamp(us).map_err(|_| out())
}

/// Cuts a text into fields: runs without blanks, with a `T` between date and time taken as a blank.
fn split_fields(text: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    for word in text.split(|c: char| c.is_ascii_whitespace() || c == ',') {
        if word.is_empty() {
            continue;
        }
        let bytes = word.as_bytes();
        let t = bytes.iter().position(|b| *b == b'T' || *b == b't').filter(|&at| {
            at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
        });
        // A zone may stand right behind a date, too: 1970-01-01+00.
        let zone = word.find('+').filter(|&at| at > 0 && !word[..at].contains(|c: char| c == ':' || c.is_alphabetic()));
        // So may that of UTC: 1970-01-01Z.
        let dated = |date: &&str| date.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'/' | b'.'));
        let utc = word.strip_suffix(['Z', 'z']).filter(|date| date.len() > 1).filter(dated);
        if let Some(date) = utc {
            fields.extend([date, "Z"]);
            continue;
        }
        match (t, zone) {
            (Some(at), _) => fields.extend([&word[..at], &word[at + 1..]]),
            (None, Some(at)) => fields.extend([&word[..at], &word[at..]]),
            (None, None) => fields.push(word),
        }
    }
    fields
}

/// `040506-08`, of a time of day: the digits, and the zone behind them.
fn zone_behind_digits(field: &str, clock: bool) -> [&str; 2] {
    let digits = field.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    if clock
        && matches!(digits, 4 | 6..)
        && field[digits..].starts_with('-')
        && field[digits + 1..].len() > 1
        && !field[digits + 1..].contains('-')
    {
        return [&field[..digits], &field[digits..]];
    }
    [field, ""]
}

fn parse(ty: &SqlType, text: &str, order: DateOrder) -> Result<Parsed, SqlError> {
    const MAX_FIELDS: usize = 12;
    let fields = split_fields(text);
    if fields.is_empty() || fields.len() > MAX_FIELDS {
        return Err(invalid(ty, text));
    }
    let is_bc =
        |field: &&str| field.get(field.len().saturating_sub(2)..).is_some_and(|end| end.eq_ignore_ascii_case("bc"));
    let dates = Dates { order, bc: fields.iter().any(is_bc) };
    let mut parsed = Parsed { dates, ..Parsed::default() };
    let mut loose: Vec<&str> = Vec::new();
    let mut month_name: Option<u32> = None;
    let clock = is_clock(ty);
    for field in fields.into_iter().flat_map(|field| zone_behind_digits(field, clock)).filter(|part| !part.is_empty()) {
        if field.eq_ignore_ascii_case("-infinity") || field.eq_ignore_ascii_case("-inf") {
            parsed.special = Some(Special::NegInfinity);
        } else if field.contains(':') && !field.starts_with(['+', '-']) {
            read_time_field(field, &mut parsed, ty, text)?;
        } else if field.as_bytes()[0].is_ascii_alphabetic() {
            read_word(field, &mut parsed, &mut month_name, ty, text)?;
        } else if field.starts_with(['+', '-']) && (parsed.time_us.is_some() || parsed.date.is_some()) {
            let offset = parse_offset(field).ok_or_else(|| bad_offset(field, ty, text))?;
            set_zone(&mut parsed, Zone::Offset(offset), ty, text)?;
        } else if field.as_bytes()[0].is_ascii_digit() {
            read_number_field(field, &mut parsed, &mut loose, &mut month_name, ty, text)?;
        } else {
            return Err(invalid(ty, text));
        }
    }
    if parsed.date.is_none() && (!loose.is_empty() || month_name.is_some()) {
        parsed.date = Some(loose_date(&loose, month_name, dates).ok_or_else(|| invalid(ty, text))?);
    } else if !loose.is_empty() || parsed.owes_time && parsed.time_us.is_none() {
        return Err(invalid(ty, text));
    }
    finish(&mut parsed, text)?;
    Ok(parsed)
}

fn finish(parsed: &mut Parsed, text: &str) -> Result<(), SqlError> {
    if let (Some(afternoon), Some(time)) = (parsed.afternoon, parsed.time_us) {
        let hour = time / HOUR_US;
        if !(1..=12).contains(&hour) {
            return Err(field_overflow(text));
        }
        let noon = if hour == 12 { time - 12 * HOUR_US } else { time };
        parsed.time_us = Some(if afternoon { noon + 12 * HOUR_US } else { noon });
    }
    if let Some((year, month, day)) = parsed.date.as_mut() {
        if parsed.dates.bc {
            if *year <= 0 {
                return Err(field_overflow(text));
            }
            *year = 1 - *year;
        } else if *year == 0 {
            return Err(field_overflow(text));
        }
        if !(1..=12).contains(month) {
            return Err(field_overflow(text).hint("Perhaps you need a different \"datestyle\" setting."));
        }
        if *day < 1 || *day > days_in_month(*year, *month) {
            let err = field_overflow(text);
            return Err(if *day > 31 { err.hint("Perhaps you need a different \"datestyle\" setting.") } else { err });
        }
    }
    Ok(())
}

fn set_zone(parsed: &mut Parsed, zone: Zone, ty: &SqlType, text: &str) -> Result<(), SqlError> {
    if parsed.zone.replace(zone).is_some() { Err(invalid(ty, text)) } else { Ok(()) }
}

fn bad_offset(field: &str, ty: &SqlType, text: &str) -> SqlError {
    let is_offset = field[1..].split(':').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    if is_offset {
        SqlError::new(SqlState(*b"22009"), format!("time zone displacement out of range: \"{text}\""))
    } else {
        invalid(ty, text)
    }
}

/// `J2458883`: a day of the Julian calendar's count.
fn julian_date(word: &str) -> Option<(i64, u32, u32)> {
    let digits = word.strip_prefix('j').filter(|d| (1..=9).contains(&d.len()))?;
    digits.parse::<i64>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit())).map(|n| date_of(n - EPOCH_JULIAN))
}

/// `2020-034`, `2020.034`: a day of a year.
fn ordinal_date(parts: &[&str]) -> Option<(i64, u32, u32)> {
    let [year, day] = parts else { return None };
    if year.len() < 4 || day.len() != 3 || !year.bytes().chain(day.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (year, day) = (year.parse::<i64>().ok()?, day.parse::<i64>().ok().filter(|day| (1..=366).contains(day))?);
    Some(date_of(day_of(year, 1, 1) + day - 1))
}

fn read_word(
    field: &str,
    parsed: &mut Parsed,
    month: &mut Option<u32>,
    ty: &SqlType,
    text: &str,
) -> Result<(), SqlError> {
    let lower = field.trim_end_matches('.').to_ascii_lowercase();
    match lower.as_str() {
        "infinity" | "inf" => parsed.special = Some(Special::Infinity),
        "epoch" => parsed.special = Some(Special::Epoch),
        // Already seen.
        "bc" | "ad" => {}
        "am" => parsed.afternoon = Some(false),
        "pm" => parsed.afternoon = Some(true),
        "t" => parsed.owes_time = true,
        "at" | "on" => {}
        "allballs" => {
            parsed.time_us = Some(0);
            set_zone(parsed, Zone::Offset(0), ty, text)?;
        }
        word => {
            if let Some(number) = month_by_name(word) {
                *month = Some(number);
            } else if let Some(date) = julian_date(word).filter(|_| parsed.date.is_none()) {
                parsed.date = Some(date);
            } else if is_weekday(word) {
            } else if word.contains('-') && word.as_bytes()[word.len() - 1].is_ascii_digit() {
                // Jan-08-1999
                let mut parts = word.split('-');
                *month = parts.next().and_then(month_by_name);
                let rest: Vec<&str> = parts.collect();
                if month.is_none() {
                    return Err(unknown_zone(field));
                }
                parsed.date = Some(loose_date(&rest, *month, parsed.dates).ok_or_else(|| invalid(ty, text))?);
            } else if let Some(zone) =
                zone_abbreviation(word).map(Zone::Offset).or_else(|| zone_by_name(field).map(Zone::Named))
            {
                if parsed.time_us.is_none() && parsed.date.is_none() {
                    return Err(invalid(ty, text));
                }
                set_zone(parsed, zone, ty, text)?;
            } else if field.contains('/') {
                return Err(unknown_zone(field));
            } else {
                return Err(invalid(ty, text));
            }
        }
    }
    Ok(())
}

fn unknown_zone(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, format!("time zone \"{name}\" not recognized"))
}

fn read_number_field<'a>(
    field: &'a str,
    parsed: &mut Parsed,
    loose: &mut Vec<&'a str>,
    month: &mut Option<u32>,
    ty: &SqlType,
    text: &str,
) -> Result<(), SqlError> {
    let separator = field.find(['-', '/', '.']).map(|at| field.as_bytes()[at] as char);
    if let Some(separator) = separator {
        let parts: Vec<&str> = field.split(separator).collect();
        if parts.len() == 3 && parts.iter().all(|p| !p.is_empty()) {
            if parsed.date.is_some() {
                return Err(invalid(ty, text));
            }
            if let Some(named) = month_by_name(&parts[1].to_ascii_lowercase()) {
                // 08-Jan-1999
                *month = Some(named);
                parsed.date =
                    Some(loose_date(&[parts[0], parts[2]], *month, parsed.dates).ok_or_else(|| invalid(ty, text))?);
                return Ok(());
            }
            parsed.date = Some(three_numbers(&parts, parsed.dates).ok_or_else(|| invalid(ty, text))?);
            return Ok(());
        }
        if let Some(date) = ordinal_date(&parts).filter(|_| parsed.date.is_none() && separator != '/') {
            parsed.date = Some(date);
            return Ok(());
        }
        if separator != '.' || !is_clock(ty) {
            return Err(invalid(ty, text));
        }
    }
    let digits = field.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 6
        && is_clock(ty)
        && let Some(fraction) = field[digits..].strip_prefix('.').and_then(fraction_us)
    {
        read_number_field(&field[..digits], parsed, loose, month, ty, text)?;
        parsed.time_us = parsed.time_us.map(|us| us + fraction);
        return Ok(());
    }
    if digits < field.len() && field.as_bytes()[digits].is_ascii_alphabetic() {
        // 08am, 1999BC
        read_number_field(&field[..digits], parsed, loose, month, ty, text)?;
        return read_word(&field[digits..], parsed, month, ty, text);
    }
    match (field.len(), is_clock(ty) || parsed.date.is_some()) {
        (4 | 6, true) => {
            let pair = |at: usize| field.get(at..at + 2).and_then(|p| p.parse::<i64>().ok());
            let (h, m, s) = (pair(0), pair(2), if field.len() == 6 { pair(4) } else { Some(0) });
            parsed.time_us = Some(clock_us(h, m, s, 0).ok_or_else(|| field_overflow(text))?);
        }
        (8, false) => {
            let number = |from: usize, to: usize| field.get(from..to).and_then(|p| p.parse::<i64>().ok());
            let date = number(0, 4).zip(number(4, 6)).zip(number(6, 8)).ok_or_else(|| invalid(ty, text))?;
            parsed.date = Some((date.0.0, date.0.1 as u32, date.1 as u32));
        }
        (6, false) => {
            let number = |from: usize, to: usize| field.get(from..to).and_then(|p| p.parse::<i64>().ok());
            let date = number(0, 2).zip(number(2, 4)).zip(number(4, 6)).ok_or_else(|| invalid(ty, text))?;
            parsed.date = Some((two_digit_year(date.0.0), date.0.1 as u32, date.1 as u32));
        }
        _ => loose.push(field),
    }
    Ok(())
}

fn two_digit_year(year: i64) -> i64 {
    if year < 70 { year + 2000 } else { year + 1900 }
}

fn year_of(text: &str, dates: Dates) -> Option<i64> {
    let year: i64 = text.parse().ok().filter(|y| *y <= 9_999_999)?;
    Some(if text.len() <= 2 && !dates.bc { two_digit_year(year) } else { year })
}

/// `1999-01-08`, `1/8/1999`, `1/8/99`: a long first number is the year, else the order says which is which.
fn three_numbers(parts: &[&str], dates: Dates) -> Option<(i64, u32, u32)> {
    if !parts.iter().all(|p| p.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let small = |text: &str| text.parse::<u32>().ok();
    let (year, month, day) = match dates.order {
        _ if parts[0].len() >= 3 => (0, 1, 2),
        DateOrder::Ymd => (0, 1, 2),
        DateOrder::Dmy => (2, 1, 0),
        DateOrder::Mdy => (2, 0, 1),
    };
    Some((year_of(parts[year], dates)?, small(parts[month])?, small(parts[day])?))
}

/// Loose numbers around the name of a month: `Jan 8 1999`, `8 Jan 1999`, `1999 Jan 8`.
fn loose_date(numbers: &[&str], month: Option<u32>, dates: Dates) -> Option<(i64, u32, u32)> {
    match (numbers, month) {
        ([a, b], Some(month)) => {
            // A long number is the year wherever it stands.
            let year_first = a.len() >= 3 || (dates.order == DateOrder::Ymd && b.len() < 3);
            let (year, day) = if year_first { (a, b) } else { (b, a) };
            Some((year_of(year, dates)?, month, day.parse().ok()?))
        }
        ([_, _, _], None) => three_numbers(numbers, dates),
        _ => None,
    }
}

fn month_by_name(word: &str) -> Option<u32> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    if word == "sept" {
        return Some(9);
    }
    MONTHS.iter().position(|name| *name == word || &name[..3] == word).map(|i| i as u32 + 1)
}

fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    DAYS.iter().any(|name| *name == word || &name[..3] == word)
        || matches!(word, "tues" | "wednes" | "weds" | "thur" | "thurs")
}

/// Seconds east of UTC of the abbreviations that PostgreSQL's default set has and people use.
pub fn zone_abbreviation(word: &str) -> Option<i64> {
    let hours = match word {
        "z" | "zulu" | "utc" | "gmt" | "ut" | "wet" => 0,
        "est" => -5,
        "edt" => -4,
        "cst" => -6,
        "cdt" => -5,
        "mst" => -7,
        "mdt" => -6,
        "pst" => -8,
        "pdt" => -7,
        "cet" | "bst" | "west" | "met" => 1,
        "cest" | "eet" | "mest" => 2,
        "eest" | "msk" => 3,
        "jst" | "kst" => 9,
        _ => return None,
    };
    Some(hours * 3600)
}

/// Seconds east of UTC of `+05:30`, `-0800`, `+2`.
pub fn parse_offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let body = text.strip_prefix(['+', '-'])?;
    let (h, m, s) = if body.contains(':') {
        let mut parts = body.split(':');
        let h = parts.next()?.parse::<i64>().ok()?;
        let m = parts.next()?.parse::<i64>().ok()?;
        let s = parts.next().map_or(Some(0), |p| p.parse::<i64>().ok())?;
        (h, m, s)
    } else if !body.is_empty() && body.len() <= 4 && body.bytes().all(|b| b.is_ascii_digit()) {
        let n: i64 = body.parse().ok()?;
        if body.len() <= 2 { (n, 0, 0) } else { (n / 100, n % 100, 0) }
    } else {
        return None;
    };
    let fits = (0..=15).contains(&h) && (0..60).contains(&m) && (0..60).contains(&s);
    fits.then(|| sign * (h * 3600 + m * 60 + s))
}

fn clock_us(h: Option<i64>, m: Option<i64>, s: Option<i64>, micros: i64) -> Option<i64> {
    let (h, m, s) = (h?, m?, s?);
    let us = h * HOUR_US + m * MINUTE_US + s * SECOND_US + micros;
    (h <= 24 && m < 60 && s <= 60 && us <= DAY_US).then_some(us)
}

/// `13:04[:05[.678]]`, with a zone or AM/PM right behind it.
fn read_time_field(field: &str, parsed: &mut Parsed, ty: &SqlType, text: &str) -> Result<(), SqlError> {
    let end = field.bytes().position(|b| !(b.is_ascii_digit() || b == b':' || b == b'.')).unwrap_or(field.len());
    let (clock, rest) = field.split_at(end);
    let mut parts = clock.split(':');
    let whole = |part: Option<&str>| part.filter(|p| !p.is_empty() && p.len() <= 7).and_then(|p| p.parse::<i64>().ok());
    let h = whole(parts.next());
    let m = whole(parts.next());
    let (s, micros) = match parts.next() {
        None => (Some(0), 0),
        Some(seconds) => {
            let (s, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
            (whole(Some(s)), fraction_us(fraction).ok_or_else(|| invalid(ty, text))?)
        }
    };
    if h.is_none() || m.is_none() || s.is_none() || parts.next().is_some() || parsed.time_us.is_some() {
        return Err(invalid(ty, text));
    }
    parsed.time_us = Some(clock_us(h, m, s, micros).ok_or_else(|| field_overflow(text))?);
    if rest.starts_with(['+', '-']) {
        let offset = parse_offset(rest).ok_or_else(|| bad_offset(rest, ty, text))?;
        return set_zone(parsed, Zone::Offset(offset), ty, text);
    }
    if !rest.is_empty() {
        let mut month = None;
        read_word(rest, parsed, &mut month, ty, text)?;
    }
    Ok(())
}

/// Microseconds of the digits behind the point, rounded.
pub(crate) fn fraction_us(digits: &str) -> Option<i64> {
    if digits.is_empty() {
        return Some(0);
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut us = 0i64;
    for i in 0..6 {
        us = us * 10 + i64::from(digits.as_bytes().get(i).map_or(0, |b| b - b'0'));
    }
    Some(us + i64::from(digits.as_bytes().get(6).is_some_and(|b| *b >= b'5')))
}

pub(crate) fn put_padded(value: u64, width: usize, out: &mut impl BufMut) {
    let mut buffer = [b'0'; 20];
    let mut at = buffer.len();
    let mut rest = value;
    while rest > 0 || buffer.len() - at < width {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.put_slice(&buffer[at..]);
}

/// `hh:mm:ss[.ffffff]`, without zeros at the end of the fraction.
pub(crate) fn put_clock(hours: u64, minutes: u64, seconds: u64, micros: u64, out: &mut impl BufMut) {
    put_padded(hours, 2, out);
    out.put_u8(b':');
    put_padded(minutes, 2, out);
    out.put_u8(b':');
    put_padded(seconds, 2, out);
    put_fraction(micros, out);
}

pub(crate) fn put_fraction(micros: u64, out: &mut impl BufMut) {
    if micros == 0 {
        return;
    }
    let (mut digits, mut width) = (micros, 6);
    while digits.is_multiple_of(10) {
        digits /= 10;
        width -= 1;
    }
    out.put_u8(b'.');
    put_padded(digits, width, out);
}

/// `hh:mm:ss[.ffffff]+hh[:mm[:ss]]`, whatever the style.
pub(crate) fn write_zoned_time(time: ZonedTime, out: &mut impl BufMut) {
    write_time(time.micros, out);
    put_offset(-i64::from(time.west_s), false, out);
}

pub(crate) fn write_time(us: i64, out: &mut impl BufMut) {
    let us = us as u64;
    put_clock(us / HOUR_US as u64, us / MINUTE_US as u64 % 60, us / SECOND_US as u64 % 60, us % SECOND_US as u64, out);
}
