//! The calendar and time zones: days and microseconds to fields and back.
//!
//! Day 0 is 2000-01-01 in the proleptic Gregorian calendar; year 0 is 1 BC.

use chrono::{NaiveDateTime, Offset, TimeZone as _};
use chrono_tz::{OffsetName, Tz};

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;
/// Microseconds of an hour.
pub const HOUR_US: i64 = 3_600_000_000;
/// Microseconds of a minute.
pub const MINUTE_US: i64 = 60_000_000;
/// Microseconds of a second.
pub const SECOND_US: i64 = 1_000_000;
/// Microseconds from the Unix epoch to 2000-01-01.
pub const EPOCH_OFFSET_US: i64 = 946_684_800_000_000;
/// Days from the Unix epoch to 2000-01-01.
pub const EPOCH_OFFSET_DAYS: i64 = 10_957;
/// Julian day number of 2000-01-01.
pub const EPOCH_JULIAN: i64 = 2_451_545;
/// First day that a date may be: 4714-11-24 BC.
pub(crate) const MIN_DAY: i64 = -2_451_545;
/// First day beyond what a date may be: 5874898-01-01.
pub(crate) const END_DAY: i64 = 2_145_031_949;
/// First microsecond of a timestamp.
pub(crate) const MIN_TIMESTAMP_US: i64 = -211_813_488_000_000_000;
/// First microsecond beyond a timestamp: 294277-01-01.
pub(crate) const END_TIMESTAMP_US: i64 = 9_223_371_331_200_000_000;

/// Microseconds rounded to so many digits of a second, halves away from zero.
pub fn round_fraction(us: i64, digits: u32) -> i64 {
    let unit = 10i64.pow(6 - digits.min(6));
    let up = |us: i64| us.saturating_add(unit / 2) / unit * unit;
    if us >= 0 { up(us) } else { up(us.saturating_neg()).saturating_neg() }
}

/// Fields of a point in time without zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 to 999999.
    pub micros: u32,
}

/// The day number of a date that exists.
pub fn day_of(year: i64, month: u32, day: u32) -> i64 {
    // Years begin in March, so that the leap day is the last of its year; eras are 400 years.
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 - EPOCH_OFFSET_DAYS
}

/// Year, month and day of a day number.
pub fn date_of(day: i64) -> (i64, u32, u32) {
    let z = day + EPOCH_OFFSET_DAYS + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * mp + 2) / 5 + 1) as u32;
    let month = if mp < 10 { mp + 3 } else { mp - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Whether the year has a 29th of February.
pub(crate) fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Days of a month.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Fields of a timestamp.
pub fn fields_of(us: i64) -> Fields {
    let (day, time) = (us.div_euclid(DAY_US), us.rem_euclid(DAY_US));
    let (year, month, day) = date_of(day);
    Fields {
        year,
        month,
        day,
        hour: (time / HOUR_US) as u32,
        minute: (time / MINUTE_US % 60) as u32,
        second: (time / SECOND_US % 60) as u32,
        micros: (time % SECOND_US) as u32,
    }
}

/// ISO week: (year, week 1 to 53).
pub fn iso_week(day: i64) -> (i64, u32) {
    // The week belongs to the year of its Thursday.
    let thursday = day - iso_weekday(day) + 4;
    let (year, _, _) = date_of(thursday);
    (year, ((thursday - day_of(year, 1, 1)) / 7 + 1) as u32)
}

/// Monday is 1, Sunday 7.
pub fn iso_weekday(day: i64) -> i64 {
    (day + 5).rem_euclid(7) + 1
}

/// First year that is mapped to an earlier one of the same calendar: the tables of zones end some time after it.
const LAST_TABLE_YEAR: i64 = 2037;

/// An instant of the same place in a year with the same calendar that the tables know: rules go on as they are.
fn within_tables(utc_us: i64) -> i64 {
    let day = utc_us.div_euclid(DAY_US);
    let (year, _, _) = date_of(day);
    if year <= LAST_TABLE_YEAR {
        return utc_us;
    }
    let first = day_of(year, 1, 1);
    let same = |y: &i64| is_leap(*y) == is_leap(year) && iso_weekday(day_of(*y, 1, 1)) == iso_weekday(first);
    // 28 years hold every calendar.
    match (LAST_TABLE_YEAR - 27..=LAST_TABLE_YEAR).find(same) {
        Some(like) => utc_us - (first - day_of(like, 1, 1)) * DAY_US,
        None => utc_us,
    }
}

/// What `TimeZone` is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeZone {
    /// A place, with its history.
    Named(Tz),
    /// Always so many seconds east of UTC.
    Fixed(i32),
}

impl From<Tz> for TimeZone {
    fn from(zone: Tz) -> Self {
        TimeZone::Named(zone)
    }
}

/// Seconds east of UTC at an instant.
pub fn offset_at(zone: impl Into<TimeZone>, utc_us: i64) -> i64 {
    let zone = match zone.into() {
        TimeZone::Fixed(east) => return i64::from(east),
        TimeZone::Named(Tz::UTC) => return 0,
        TimeZone::Named(zone) => zone,
    };
    naive(within_tables(utc_us)).map_or(0, |at| i64::from(zone.offset_from_utc_datetime(&at).fix().local_minus_utc()))
}

/// What a zone is called at an instant: `CET`, `CEST`; `None` for one that is a number.
pub(crate) fn zone_name_at(zone: TimeZone, utc_us: i64) -> Option<String> {
    let TimeZone::Named(zone) = zone else { return None };
    let offset = zone.offset_from_utc_datetime(&naive(within_tables(utc_us))?);
    offset.abbreviation().map(str::to_string)
}

/// Local time of an instant.
pub fn to_local(zone: impl Into<TimeZone>, utc_us: i64) -> i64 {
    if utc_us == i64::MIN || utc_us == i64::MAX {
        return utc_us;
    }
    utc_us.saturating_add(offset_at(zone, utc_us) * SECOND_US)
}

/// The instant of a local time. In a gap the offset before it is used, in an overlap standard time, as PostgreSQL does.
pub fn to_utc(zone: impl Into<TimeZone>, local_us: i64) -> i64 {
    let zone = zone.into();
    if local_us == i64::MIN || local_us == i64::MAX || zone == TimeZone::Named(Tz::UTC) {
        return local_us;
    }
    let before = offset_at(zone, local_us.saturating_sub(DAY_US));
    let after = offset_at(zone, local_us.saturating_add(DAY_US));
    let with = |offset: i64| local_us.saturating_sub(offset * SECOND_US);
    if before == after {
        return with(before);
    }
    let fits = |offset: i64| offset_at(zone, with(offset)) == offset;
    match (fits(before), fits(after)) {
        // Two instants have this local time: the one after the change.
        (true, true) | (false, true) => with(after),
        (true, false) | (false, false) => with(before),
    }
}

/// Abbreviation of the zone at an instant: `CET`, or `+03` where there is none.
pub fn abbreviation_at(zone: impl Into<TimeZone>, utc_us: i64) -> String {
    let zone = match zone.into() {
        TimeZone::Named(zone) => zone,
        TimeZone::Fixed(east) => {
            let (sign, all) = (if east < 0 { '-' } else { '+' }, east.unsigned_abs());
            let minutes = all / 60 % 60;
            let minutes = if minutes == 0 { String::new() } else { format!(":{minutes:02}") };
            return format!("{sign}{:02}{minutes}", all / 3600);
        }
    };
    match naive(utc_us) {
        Some(at) => zone.offset_from_utc_datetime(&at).to_string(),
        None => "UTC".into(),
    }
}

fn naive(utc_us: i64) -> Option<NaiveDateTime> {
    let unix = utc_us.checked_add(EPOCH_OFFSET_US)?;
    chrono::DateTime::from_timestamp_micros(unix).map(|at| at.naive_utc())
}

/// The zone of a name, in any case: `Europe/Berlin`, `utc`, `CET`, `Z`.
pub fn zone_by_name(name: &str) -> Option<Tz> {
    if let Ok(zone) = name.parse::<Tz>() {
        return Some(zone);
    }
    match name.to_ascii_uppercase().as_str() {
        "Z" | "ZULU" | "UTC" | "GMT" | "UT" => return Some(Tz::UTC),
        _ => {}
    }
    chrono_tz::TZ_VARIANTS.iter().copied().find(|zone| zone.name().eq_ignore_ascii_case(name))
}

/// POSIX allows a week, seconds; so does PostgreSQL.
pub const OFFSET_SECONDS_END: i64 = 168 * 3600;

/// `[name][+-]hh[:mm[:ss]]`, the name in letters or in `<>`; seconds east of UTC. POSIX counts to the west.
pub fn posix_offset(value: &str) -> Option<i32> {
    let rest = match value.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?.1,
        None => value.trim_start_matches(|c: char| c.is_ascii_alphabetic()),
    };
    let (west, digits) = match rest.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, rest.strip_prefix('+').unwrap_or(rest)),
    };
    let mut seconds = 0;
    let mut unit = 3600;
    for part in digits.split(':') {
        if part.is_empty() || part.len() > 3 || unit == 0 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: i64 = part.parse().ok()?;
        if unit < 3600 && number > 59 {
            return None;
        }
        seconds += number * unit;
        unit /= 60;
    }
    if seconds >= OFFSET_SECONDS_END { None } else { i32::try_from(-west * seconds).ok() }
}

/// Adds months to a day, the last day of the month kept within it.
pub fn add_months(day: i64, months: i64) -> i64 {
    let (y, m, d) = date_of(day);
    let total = y * 12 + i64::from(m) - 1 + months;
    let (y, m) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    day_of(y, m, d.min(days_in_month(y, m)))
}
