//! `DateStyle` and `IntervalStyle`: how dates and intervals are written, and in which order the numbers of a date are read.

use super::calendar::{Fields, SECOND_US, TimeZone, date_of, day_of, fields_of, offset_at, zone_name_at};
use super::date_time::{put_clock, put_padded};
use bytes::BufMut;

/// The form of dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateStyle {
    /// `1997-12-17 07:37:16-08`
    #[default]
    Iso,
    /// `12/17/1997 07:37:16.00 PST`
    Sql,
    /// `Wed Dec 17 07:37:16 1997 PST`
    Postgres,
    /// `17.12.1997 07:37:16.00 PST`
    German,
}

/// The order of year, month and day, where a text does not tell it otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateOrder {
    /// Month, day, year.
    #[default]
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// The form of intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntervalStyle {
    /// `1 year 2 mons 3 days 04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    Verbose,
    /// `+1-2 +3 +4:05:06`
    Standard,
    /// `P1Y2M3DT4H5M6S`
    Iso,
}

/// All of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Styles {
    /// Form of dates.
    pub date: DateStyle,
    /// Order of their parts.
    pub order: DateOrder,
    /// Form of intervals.
    pub interval: IntervalStyle,
}

impl Styles {
    /// `DateStyle` as SHOW has it.
    pub fn date_style(&self) -> String {
        let style = match self.date {
            DateStyle::Iso => "ISO",
            DateStyle::Sql => "SQL",
            DateStyle::Postgres => "Postgres",
            DateStyle::German => "German",
        };
        let order = match self.order {
            DateOrder::Mdy => "MDY",
            DateOrder::Dmy => "DMY",
            DateOrder::Ymd => "YMD",
        };
        format!("{style}, {order}")
    }

    /// Reads a `DateStyle`; what it does not say stays.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn with_date_style(mut self, value: &str) -> Result<Styles, String> {
        let (mut style, mut order) = (None, None);
        for word in value.split(',').map(|word| word.trim().to_ascii_lowercase()).filter(|word| !word.is_empty()) {
            let agrees = match word.as_str() {
                "iso" => said(&mut style, DateStyle::Iso),
                "sql" => said(&mut style, DateStyle::Sql),
                "german" => said(&mut style, DateStyle::German),
                word if word.starts_with("postgres") => said(&mut style, DateStyle::Postgres),
                "ymd" => said(&mut order, DateOrder::Ymd),
                "dmy" => said(&mut order, DateOrder::Dmy),
                "mdy" | "us" => said(&mut order, DateOrder::Mdy),
                word if word.starts_with("euro") => said(&mut order, DateOrder::Dmy),
                word if word.starts_with("noneuro") => said(&mut order, DateOrder::Mdy),
                // What is not said yet goes back to the default.
                "default" => {
                    style = style.or(Some(DateStyle::default()));
                    order = order.or(Some(DateOrder::default()));
                    true
                }
                _ => return Err(format!("Unrecognized key word: \"{word}\".")),
            };
            if !agrees {
                return Err("Conflicting \"datestyle\" specifications.".into());
            }
        }
        if style == Some(DateStyle::German) {
            order = order.or(Some(DateOrder::Dmy));
        }
        self.date = style.unwrap_or(self.date);
        self.order = order.unwrap_or(self.order);
        Ok(self)
    }

    /// Reads an `IntervalStyle`; `None` if there is none of that name.
    pub fn with_interval_style(mut self, value: &str) -> Option<Styles> {
        self.interval = match value {
            "postgres" => IntervalStyle::Postgres,
            "postgres_verbose" => IntervalStyle::Verbose,
            "sql_standard" => IntervalStyle::Standard,
            "iso_8601" => IntervalStyle::Iso,
            _ => return None,
        };
        Some(self)
    }
}

fn said<T: Copy + PartialEq>(known: &mut Option<T>, meant: T) -> bool {
    let agrees = known.is_none_or(|known| known == meant);
    *known = Some(meant);
    agrees
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// From the day 2000-01-01, which is day 0.
const DAYS: [&str; 7] = ["Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri"];

/// Numbers of two digits and the year, each with what stands before it.
fn put_parts(parts: [(&str, u64, usize); 3], out: &mut impl BufMut) {
    for (before, number, width) in parts {
        out.put_slice(before.as_bytes());
        put_padded(number, width, out);
    }
}

fn put_date(year: i64, month: u32, day: u32, styles: Styles, out: &mut impl BufMut) {
    let year = (if year > 0 { year as u64 } else { (1 - year) as u64 }, 4);
    let (month, day) = ((u64::from(month), 2), (u64::from(day), 2));
    let day_first = styles.order == DateOrder::Dmy;
    let (sign, first, second, third) = match styles.date {
        DateStyle::Iso => ("-", year, month, day),
        DateStyle::German => (".", day, month, year),
        DateStyle::Sql if day_first => ("/", day, month, year),
        DateStyle::Sql => ("/", month, day, year),
        DateStyle::Postgres if day_first => ("-", day, month, year),
        DateStyle::Postgres => ("-", month, day, year),
    };
    put_parts([("", first.0, first.1), (sign, second.0, second.1), (sign, third.0, third.1)], out);
}

pub(crate) fn write_date(day: i32, styles: Styles, out: &mut impl BufMut) {
    match day {
        i32::MAX => out.put_slice(b"infinity"),
        i32::MIN => out.put_slice(b"-infinity"),
        day => {
            let (y, m, d) = date_of(i64::from(day));
            put_date(y, m, d, styles, out);
            if y <= 0 {
                out.put_slice(b" BC");
            }
        }
    }
}

fn put_local(fields: &Fields, styles: Styles, out: &mut impl BufMut) {
    let clock = |out: &mut _| {
        let Fields { hour, minute, second, micros, .. } = *fields;
        put_clock(u64::from(hour), u64::from(minute), u64::from(second), u64::from(micros), out);
    };
    if styles.date != DateStyle::Postgres {
        put_date(fields.year, fields.month, fields.day, styles, out);
        out.put_u8(b' ');
        return clock(out);
    }
    let weekday = day_of(fields.year, fields.month, fields.day).rem_euclid(7) as usize;
    let month = MONTHS[(fields.month as usize).clamp(1, 12) - 1];
    let text = match styles.order {
        DateOrder::Dmy => format!("{} {:02} {month} ", DAYS[weekday], fields.day),
        _ => format!("{} {month} {:02} ", DAYS[weekday], fields.day),
    };
    out.put_slice(text.as_bytes());
    clock(out);
    out.put_u8(b' ');
    put_padded(if fields.year > 0 { fields.year as u64 } else { (1 - fields.year) as u64 }, 4, out);
}

fn put_infinite(us: i64, out: &mut impl BufMut) -> bool {
    match us {
        i64::MAX => out.put_slice(b"infinity"),
        i64::MIN => out.put_slice(b"-infinity"),
        _ => return false,
    }
    true
}

pub(crate) fn write_timestamp(us: i64, styles: Styles, out: &mut impl BufMut) {
    if put_infinite(us, out) {
        return;
    }
    let fields = fields_of(us);
    put_local(&fields, styles, out);
    if fields.year <= 0 {
        out.put_slice(b" BC");
    }
}

pub(crate) fn write_timestamptz(us: i64, zone: impl Into<TimeZone>, styles: Styles, out: &mut impl BufMut) {
    if put_infinite(us, out) {
        return;
    }
    let zone = zone.into();
    let offset = offset_at(zone, us);
    let fields = fields_of(us.saturating_add(offset * SECOND_US));
    put_local(&fields, styles, out);
    match zone_name_at(zone, us).filter(|_| styles.date != DateStyle::Iso) {
        Some(name) => {
            out.put_u8(b' ');
            out.put_slice(name.as_bytes());
        }
        None => put_offset(offset, styles.date != DateStyle::Iso, out),
    }
    if fields.year <= 0 {
        out.put_slice(b" BC");
    }
}

/// An offset from UTC, seconds to the east, as `+hh[:mm[:ss]]`; behind a space where it stands `apart`.
pub(super) fn put_offset(offset: i64, apart: bool, out: &mut impl BufMut) {
    if apart {
        out.put_u8(b' ');
    }
    out.put_u8(if offset < 0 { b'-' } else { b'+' });
    let offset = offset.unsigned_abs();
    put_padded(offset / 3600, 2, out);
    if !offset.is_multiple_of(3600) {
        out.put_u8(b':');
        put_padded(offset / 60 % 60, 2, out);
        if !offset.is_multiple_of(60) {
            out.put_u8(b':');
            put_padded(offset % 60, 2, out);
        }
    }
}
