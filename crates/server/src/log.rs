//! Structured log lines on standard error, as text or as JSON.
//!
//! A line is a level, a fixed event name and named values: what a program filters on is never inside a sentence. Written by hand:
//! the node logs a few lines per minute, and `tracing` with its subscriber would be the larger part of a light build.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// `2026-11-20T08:30:00.123456Z INFO listening sql=127.0.0.1:26257`
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// In the ordinary course.
    Info,
    /// Somebody should look.
    Warning,
    /// Something failed.
    Error,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        }
    }
}

static JSON: AtomicBool = AtomicBool::new(false);

/// Chooses the format of the process.
pub fn set_format(format: LogFormat) {
    JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// Named values of a line.
pub type Fields<'a> = &'a [(&'a str, &'a dyn Display)];

/// Logs an event in the ordinary course.
pub fn info(event: &str, fields: Fields<'_>) {
    write(Level::Info, event, fields);
}
/// Logs something that somebody should look at.
pub fn warning(event: &str, fields: Fields<'_>) {
    write(Level::Warning, event, fields);
}
/// Logs a failure.
pub fn error(event: &str, fields: Fields<'_>) {
    write(Level::Error, event, fields);
}

fn write(level: Level, event: &str, fields: Fields<'_>) {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64);
    let format = if JSON.load(Ordering::Relaxed) { LogFormat::Json } else { LogFormat::Text };
    let mut line = line(format, micros, level, event, fields);
    line.push('\n');
    // A log that cannot be written is no reason to stop serving.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn line(format: LogFormat, unix_us: i64, level: Level, event: &str, fields: Fields<'_>) -> String {
    let time = rfc3339(unix_us);
    let mut out = String::new();
    match format {
        LogFormat::Text => {
            let _ = write!(out, "{time} {} {event}", level.word());
            for (name, value) in fields {
                let text = value.to_string();
                let plain =
                    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '"' || c.is_control());
                let _ = if plain { write!(out, " {name}={text}") } else { write!(out, " {name}={}", quoted(&text)) };
            }
        }
        LogFormat::Json => {
            let _ = write!(out, "{{\"time\":\"{time}\",\"level\":\"{}\",\"event\":{}", level.word(), quoted(event));
            for (name, value) in fields {
                let text = value.to_string();
                let number = text.len() < 20 && text.parse::<i64>().is_ok_and(|n| n.to_string() == text);
                let _ = write!(out, ",{}:{}", quoted(name), if number { text } else { quoted(&text) });
            }
            out.push('}');
        }
    }
    out
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// UTC with microseconds. Days become a date by the era arithmetic of H. Hinnant's `civil_from_days`.
pub fn rfc3339(unix_us: i64) -> String {
    let (seconds, micros) = (unix_us.div_euclid(1_000_000), unix_us.rem_euclid(1_000_000));
    let (days, in_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (in_day / 3600, in_day / 60 % 60, in_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(rfc3339(951_782_400_000_001), "2000-02-29T00:00:00.000001Z");
        assert_eq!(rfc3339(1_795_163_228_123_456), "2026-11-20T08:27:08.123456Z");
    }

    #[test]
    fn lines() {
        let fields: Fields<'_> = &[("n", &5), ("why", &"it \"broke\"\n"), ("a", &"127.0.0.1:1")];
        assert_eq!(
            line(LogFormat::Text, 0, Level::Info, "listening", fields),
            r#"1970-01-01T00:00:00.000000Z INFO listening n=5 why="it \"broke\"\n" a=127.0.0.1:1"#
        );
        assert_eq!(
            line(LogFormat::Json, 0, Level::Error, "listening", fields),
            r#"{"time":"1970-01-01T00:00:00.000000Z","level":"ERROR","event":"listening","n":5,"why":"it \"broke\"\n","a":"127.0.0.1:1"}"#
        );
    }
}
