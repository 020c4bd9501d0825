//! What `TimeZone` may be set to: a name, hours, an interval, or POSIX's form of a fixed zone.

use super::settings::invalid;
use crate::SqlError;
use crate::types::calendar::{OFFSET_SECONDS_END, TimeZone, posix_offset, zone_by_name};
use crate::types::{Interval, IntervalModifier};

/// A zone, and what SHOW shows of it.
///
/// # Errors
/// 22023.
pub fn parse(value: &str) -> Result<(TimeZone, String), SqlError> {
    let bad = || invalid("TimeZone", value);
    if let Some(text) = value.strip_prefix("interval '").and_then(|text| text.strip_suffix('\'')) {
        let interval = Interval::parse(text, IntervalModifier::default(), Default::default())?;
        let refuse = |unit: &str| Err(bad().detail(format!("Cannot specify {unit} in time zone interval.")));
        return match interval {
            Interval { months, .. } if months != 0 => refuse("months"),
            Interval { days, .. } if days != 0 => refuse("days"),
            Interval { micros, .. } => fixed(micros / 1_000_000).ok_or_else(bad),
        };
    }
    if let Ok(hours) = value.trim().parse::<f64>() {
        let seconds = hours * 3600.0;
        let inside = seconds.abs() < OFFSET_SECONDS_END as f64;
        let zone = if inside { fixed(seconds as i64) } else { None };
        return zone.ok_or_else(|| bad().detail("UTC timezone offset is out of range."));
    }
    match zone_by_name(value).filter(|_| !value.eq_ignore_ascii_case("z")) {
        Some(zone) => Ok((TimeZone::Named(zone), zone.name().to_string())),
        None => match posix_offset(value) {
            Some(east) => Ok((TimeZone::Fixed(east), value.to_string())),
            None => Err(bad()),
        },
    }
}

/// A fixed zone, by seconds east of UTC, in the form that PostgreSQL gives it.
fn fixed(east: i64) -> Option<(TimeZone, String)> {
    if east.abs() >= OFFSET_SECONDS_END {
        return None;
    }
    let (sign, turned) = if east < 0 { ('-', '+') } else { ('+', '-') };
    let all = east.unsigned_abs();
    let mut offset = format!("{:02}", all / 3600);
    for (part, below) in [(all / 60 % 60, 3600), (all % 60, 60)] {
        if !all.is_multiple_of(below) {
            offset.push_str(&format!(":{part:02}"));
        }
    }
    let zone = TimeZone::Fixed(i32::try_from(east).ok()?);
    Some((zone, format!("<{sign}{offset}>{turned}{offset}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forms, what they show, and seconds east, as PostgreSQL 15 answers.
    #[test]
    fn zones_as_postgresql_reads_them() {
        let cases = [
            ("+00:00", "+00:00", 0),
            ("+05:30", "+05:30", -19_800),
            ("-05:30", "-05:30", 19_800),
            ("5.5", "<+05:30>-05:30", 19_800),
            ("-3", "<-03>+03", -10_800),
            ("interval '+00:00'", "<+00>-00", 0),
            ("interval '-08:00'", "<-08>+08", -28_800),
            ("UTC+3", "UTC+3", -10_800),
            ("GMT+05:30", "GMT+05:30", -19_800),
            ("<+03>-03", "<+03>-03", 10_800),
            ("<+05:30>-05:30", "<+05:30>-05:30", 19_800),
        ];
        for (value, shown, east) in cases {
            assert_eq!(parse(value).unwrap(), (TimeZone::Fixed(east), shown.to_string()), "{value}");
        }
        assert_eq!(parse("europe/berlin").unwrap().1, "Europe/Berlin");
        for value in ["Z", "nowhere/x", "200", "abc", "FOO+168", "interval '1 month'", "+1:2:3:4", "<x", ""] {
            assert!(parse(value).is_err(), "{value}");
        }
    }
}
