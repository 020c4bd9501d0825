//! Every setting: its kind, default, and what it does.

use super::measure::Measure;
use super::settings::invalid;
use crate::pg_catalog::encodings;
use crate::temporary::LIMIT_SETTING;
use crate::types::style::Styles;
use crate::{SqlError, SqlState};
use std::sync::LazyLock;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name, lower case.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Its default, as shown.
    pub default: &'static str,
    /// What it does.
    pub description: &'static str,
}

/// What values a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Cannot be changed.
    Fixed,
    /// on or off
    Flag,
    /// A whole number within bounds.
    Number(i64, i64),
    /// A time, milliseconds if without a unit.
    Duration,
    /// A time, as precise as microseconds.
    FineDuration,
    /// `auto`, or a time of at most so many microseconds, as precise as that.
    AutoOrFine(u64),
    /// A time within bounds, milliseconds.
    ShortDuration(u64, u64),
    /// Bytes, or with a unit.
    Bytes,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
    /// An encoding under any of its names: one that nothing has to be converted to.
    Encoding,
    /// A role: the settings know which there are.
    Role,
    /// DateStyle: what is not said stays, which the settings know.
    DateStyle,
    /// IntervalStyle
    IntervalStyle,
    /// A number with a unit.
    Measure(Measure),
    /// What PostgreSQL takes, with a default or an effect of our own.
    Theirs,
    /// What is called by one of these names; first the word for it.
    Named(&'static str, &'static [&'static str]),
    /// A list of tablespaces.
    Tablespaces,
    /// A locale's name.
    Locale,
    /// A configuration for text search.
    SearchConfig,
}

/// The configurations that PostgreSQL comes with.
const SEARCH_CONFIGS: &[&str] = &[
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "greek",
    "hindi",
    "hungarian",
    "indonesian",
    "irish",
    "italian",
    "lithuanian",
    "nepali",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "simple",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
    "yiddish",
];

const UNITS: &str = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";

/// A leader serves a read only under a lease that reaches to the end of its uncertainty, and leases reach a few seconds ahead.
const MAX_OFFSET_MS_MAX: u64 = 1000;

/// The oldest that `timeball.snapshot_age` may make a snapshot, microseconds.
const SNAPSHOT_AGE_US_MAX: u64 = 1_000_000;

const ISOLATIONS: &[&str] = &["serializable", "repeatable read", "read committed", "read uncommitted"];
const LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "info", "warning", "error", "fatal",
    "panic",
];

const fn s(name: &'static str, kind: Kind, default: &'static str, description: &'static str) -> Setting {
    Setting { name, kind, default, description }
}

/// Sorted by name.
pub const TABLE: &[Setting] = &[
    s("application_name", Kind::Text, "", "Name of the application, shown among the sessions."),
    s("bytea_output", Kind::OneOf(&["hex", "escape"]), "hex", "Text form of bytea."),
    s("check_function_bodies", Kind::Flag, "on", "Accepted without effect."),
    s("client_encoding", Kind::Encoding, "UTF8", "UTF8, or SQL_ASCII, which is not looked at: nothing is converted."),
    s("client_min_messages", Kind::OneOf(LEVELS), "notice", "Which messages beside errors are sent to the client."),
    s("datestyle", Kind::DateStyle, "ISO, MDY", "Text form of dates, and the order of their parts."),
    s("default_table_access_method", Kind::Named("Table access method", &["heap"]), "heap", "Accepted without effect."),
    s(
        "default_tablespace",
        Kind::Named("Tablespace", &["", "pg_default", "pg_global"]),
        "",
        "Accepted without effect.",
    ),
    s("default_text_search_config", Kind::SearchConfig, "pg_catalog.simple", "Accepted without effect."),
    s("default_toast_compression", Kind::Theirs, "pglz", "Accepted without effect."),
    s("default_transaction_deferrable", Kind::Flag, "off", "Accepted without effect: readers never abort."),
    s("default_transaction_isolation", Kind::OneOf(ISOLATIONS), "serializable", "Isolation of new transactions."),
    s("default_transaction_read_only", Kind::Flag, "off", "Whether new transactions may not write."),
    s("effective_cache_size", Kind::Theirs, "4GB", "Accepted without effect."),
    s("enable_hashjoin", Kind::Flag, "on", "Off: joins whose sides come in the order of their keys are merged."),
    s("enable_mergejoin", Kind::Flag, "on", "Whether joins may be merges of sides in the order of their keys."),
    s("enable_nestloop", Kind::Flag, "on", "Accepted without effect."),
    s("enable_seqscan", Kind::Flag, "on", "Accepted without effect."),
    s("escape_string_warning", Kind::Flag, "on", "Accepted without effect."),
    s("extra_float_digits", Kind::Number(-15, 3), "1", "Digits of floats in text: above 0 the shortest exact form."),
    s("force_parallel_mode", Kind::Theirs, "off", "Accepted without effect."),
    s("geqo", Kind::Flag, "on", "Accepted without effect."),
    s("gin_pending_list_limit", Kind::Theirs, "4MB", "Accepted without effect."),
    s(
        "idle_in_transaction_session_timeout",
        Kind::Duration,
        "0",
        "Ends a session that waits this long inside a transaction.",
    ),
    s("idle_session_timeout", Kind::Duration, "0", "Ends a session that waits this long."),
    s("in_hot_standby", Kind::Fixed, "off", "Whether this is a standby."),
    s("integer_datetimes", Kind::Fixed, "on", "Times are whole microseconds."),
    s("intervalstyle", Kind::IntervalStyle, "postgres", "Text form of intervals."),
    s("is_superuser", Kind::Fixed, "on", "Every user may do everything."),
    s("jit", Kind::Flag, "off", "Accepted without effect."),
    s("lc_collate", Kind::Fixed, "C", "Text is in byte order."),
    s("lc_ctype", Kind::Fixed, "C.UTF-8", "Classes of characters."),
    s("lc_messages", Kind::Locale, "C", "Messages are in English."),
    s("lc_monetary", Kind::Locale, "C", "Accepted without effect."),
    s("lc_numeric", Kind::Locale, "C", "Accepted without effect."),
    s("lc_time", Kind::Locale, "C", "Accepted without effect."),
    s("lock_timeout", Kind::Duration, "0", "Longest wait for one lock."),
    s("maintenance_work_mem", Kind::Theirs, "64MB", "Accepted without effect."),
    s("max_connections", Kind::Fixed, "1000", "Set when the server starts."),
    s("max_identifier_length", Kind::Fixed, "63", "Longest name, bytes."),
    s("max_index_keys", Kind::Fixed, "32", "Most columns of an index."),
    s("max_parallel_workers_per_gather", Kind::Theirs, "0", "Accepted without effect."),
    s("password_encryption", Kind::Theirs, "scram-sha-256", "Accepted without effect."),
    s(
        "plan_cache_mode",
        Kind::OneOf(&["auto", "force_generic_plan", "force_custom_plan"]),
        "auto",
        "Whether a plan is made anew for values that call for another one (auto), always, or never.",
    ),
    s("quote_all_identifiers", Kind::Flag, "off", "Accepted without effect."),
    s("role", Kind::Role, "none", "The one role that there is, or none."),
    s("row_security", Kind::Flag, "on", "Accepted without effect."),
    s("search_path", Kind::Text, "\"$user\", public", "Schemas in which unqualified names are looked up."),
    s("seq_page_cost", Kind::Theirs, "1", "Accepted without effect."),
    s("server_encoding", Kind::Fixed, "UTF8", "UTF8, or SQL_ASCII, which is not looked at: nothing is converted."),
    s("server_version", Kind::Fixed, "15.10", "The PostgreSQL version that clients should expect."),
    s("server_version_num", Kind::Fixed, "150010", "The same as a number."),
    s("session_authorization", Kind::Role, "root", "Who connected."),
    s("session_replication_role", Kind::Theirs, "origin", "Accepted without effect."),
    s("shared_buffers", Kind::Fixed, "128MB", "Not used."),
    s("ssl", Kind::Fixed, "off", "Whether TLS is on."),
    s("standard_conforming_strings", Kind::OneOf(&["on"]), "on", "Backslashes in plain strings are ordinary."),
    s("statement_timeout", Kind::Duration, "0", "Longest time for one statement."),
    s("synchronize_seqscans", Kind::Flag, "on", "Accepted without effect."),
    s("synchronous_commit", Kind::Theirs, "on", "Commits are always durable."),
    s("temp_buffers", Kind::Theirs, "8MB", "Accepted without effect."),
    s("temp_tablespaces", Kind::Tablespaces, "", "Accepted without effect."),
    s(
        "timeball.commit_wait_budget",
        Kind::FineDuration,
        "10ms",
        "The longest wait at a commit for which auto is strict: twice the clock's error.",
    ),
    s(
        "timeball.consistency",
        Kind::OneOf(&["auto", "strict", "hybrid", "token", "none", "stale"]),
        "auto",
        "What a new transaction is sure to see.",
    ),
    s(
        "timeball.max_offset",
        Kind::ShortDuration(1, MAX_OFFSET_MS_MAX),
        "500ms",
        "How far clocks are taken to lie apart where timeball.uncertainty is static.",
    ),
    s("timeball.max_staleness", Kind::Duration, "0", "Reads outside blocks may be this old; 0 reads the present."),
    s("timeball.memory_bytes", Kind::Fixed, "0", "Memory of the whole node, set when it starts; 0 has no bound."),
    s("timeball.query_memory_bytes", Kind::Bytes, "268435456", "Memory that one statement may use."),
    s(
        "timeball.report_token",
        Kind::Flag,
        "off",
        "Whether the client is told the session's token after each transaction that moves it, as a parameter.",
    ),
    s(
        "timeball.retention",
        Kind::Fixed,
        "5min",
        "How long the past can be read of tables without a retention of their own, set when the node starts.",
    ),
    s(
        "timeball.snapshot_age",
        Kind::AutoOrFine(SNAPSHOT_AGE_US_MAX),
        "0",
        "How much older than the present snapshots of token and none are, so that they wait for no commit; auto: as long as commits take.",
    ),
    s(
        "timeball.snapshot_age_max",
        Kind::Duration,
        "0",
        "A transaction block whose snapshot is older is rolled back: it keeps old versions from being collected.",
    ),
    s(
        "timeball.uncertainty",
        Kind::OneOf(&["dynamic", "static", "fallback"]),
        "dynamic",
        "Where the uncertainty of hybrid reads ends: at the measured bound, at max_offset, or at max_offset while the bound is lost.",
    ),
    s("timezone", Kind::Text, "UTC", "Time zone of timestamptz in text."),
    s("transaction_deferrable", Kind::Fixed, "off", "Of the present transaction."),
    s("transaction_timeout", Kind::Duration, "0", "Accepted without effect."),
    s("vacuum_cost_delay", Kind::Theirs, "0", "Accepted without effect."),
    s("wal_level", Kind::Fixed, "replica", "Not used."),
    s("work_mem", Kind::Theirs, "4MB", "Accepted without effect: see timeball.query_memory_bytes."),
    s("xmloption", Kind::Theirs, "content", "Accepted without effect."),
];

/// Parameters that are reported to the client at the start and when they change, under these names.
pub const REPORTED: &[(&str, &str)] = &[
    ("application_name", "application_name"),
    ("client_encoding", "client_encoding"),
    ("datestyle", "DateStyle"),
    ("default_transaction_read_only", "default_transaction_read_only"),
    ("in_hot_standby", "in_hot_standby"),
    ("integer_datetimes", "integer_datetimes"),
    ("intervalstyle", "IntervalStyle"),
    ("is_superuser", "is_superuser"),
    ("server_encoding", "server_encoding"),
    ("server_version", "server_version"),
    ("session_authorization", "session_authorization"),
    ("standard_conforming_strings", "standard_conforming_strings"),
    ("timezone", "TimeZone"),
];

/// A setting by name.
pub fn find(name: &str) -> Option<&'static Setting> {
    match TABLE.binary_search_by(|s| s.name.cmp(name)) {
        Ok(place) => Some(&TABLE[place]),
        Err(_) => {
            let theirs = theirs();
            theirs.binary_search_by(|s| s.name.cmp(name)).ok().map(|place| &theirs[place])
        }
    }
}

/// All of them: those that are read here, then the others of PostgreSQL.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    let others = theirs().iter().filter(|s| TABLE.binary_search_by(|known| known.name.cmp(s.name)).is_err());
    TABLE.iter().chain(others)
}

/// Of the others of PostgreSQL those that something below the sessions reads.
fn described(name: &str) -> &'static str {
    match name {
        LIMIT_SETTING => "Temporary files that a session's statements may have together; -1 has no bound.",
        _ => "Accepted without effect.",
    }
}

/// What a user of PostgreSQL 15 may set and nothing here reads: name, type, default, and words or unit and bounds, from its
/// `pg_settings`. Clients send such settings at start-up.
fn theirs() -> &'static [Setting] {
    static THEIRS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
        let line = |line: &'static str| {
            let mut cells = line.split('\t');
            let (name, kind, default) = (cells.next()?, cells.next()?, cells.next()?);
            let kind = match (kind, cells.next()) {
                ("bool", _) => Kind::Flag,
                ("enum", Some(words)) => Kind::OneOf(words.split(',').collect::<Vec<_>>().leak()),
                ("integer" | "real", Some(line)) => {
                    Measure::read(kind == "integer", line).map_or(Kind::Text, Kind::Measure)
                }
                _ => Kind::Text,
            };
            let default = if let Kind::Measure(measure) = kind { measure.show_default(default) } else { default };
            Some(Setting { name, kind, default, description: described(name) })
        };
        include_str!("postgres_settings.tsv").lines().filter_map(line).collect()
    });
    &THEIRS
}

impl Kind {
    /// Checks a value; gives the form that SHOW shows.
    pub(super) fn normalize(self, name: &str, value: &str) -> Result<String, SqlError> {
        let bad = || invalid(name, value);
        match self {
            Kind::Fixed => Err(cannot_change(name)),
            Kind::Flag => parse_flag(value).map(|on| if on { "on" } else { "off" }.to_string()).ok_or_else(bad),
            Kind::Number(min, max) => {
                let number: i64 = value.trim().parse().map_err(|_| bad())?;
                if number < min || number > max {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER,
                        format!("{number} is outside the valid range for parameter \"{name}\" ({min} .. {max})"),
                    ));
                }
                Ok(number.to_string())
            }
            Kind::Duration => parse_duration_ms(value).map(show_duration).ok_or_else(|| bad().hint(UNITS)),
            Kind::FineDuration => parse_duration_us(value).map(show_duration_us).ok_or_else(|| bad().hint(UNITS)),
            Kind::AutoOrFine(_) if value.trim().eq_ignore_ascii_case("auto") => Ok("auto".into()),
            Kind::AutoOrFine(most) => match parse_duration_us(value) {
                Some(us) if us <= most => Ok(show_duration_us(us)),
                Some(us) => {
                    let (shown, most) = (show_duration_us(us), show_duration_us(most));
                    let message = format!("{shown} is outside the valid range for parameter \"{name}\" (0 .. {most})");
                    Err(SqlError::new(SqlState::INVALID_PARAMETER, message))
                }
                None => Err(bad().hint("Give auto, or a time: \"us\", \"ms\", \"s\".")),
            },
            Kind::ShortDuration(least, most) => {
                let ms = parse_duration_ms(value).ok_or_else(|| bad().hint(UNITS))?;
                if ms < least || ms > most {
                    let message = format!(
                        "{} is outside the valid range for parameter \"{name}\" ({} .. {})",
                        show_duration(ms),
                        show_duration(least),
                        show_duration(most)
                    );
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
                }
                Ok(show_duration(ms))
            }
            Kind::Bytes => {
                let bytes = parse_bytes(value)
                    .filter(|b| *b > 0)
                    .ok_or_else(|| bad().hint("Give bytes, or a number with kB, MB or GB."))?;
                Ok(bytes.to_string())
            }
            Kind::OneOf(words) => {
                let word = value.trim().to_ascii_lowercase();
                // Where on and off are among the words, so are their other names.
                let word = match (parse_flag(&word), word.as_str()) {
                    (Some(true), _) if words == ["on"] => "on".into(),
                    (_, "true" | "yes" | "1") if words.contains(&"on") => "on".into(),
                    (_, "false" | "no" | "0") if words.contains(&"off") => "off".into(),
                    _ => word,
                };
                if words.contains(&word.as_str()) {
                    return Ok(word);
                }
                Err(bad().hint(format!("Available values: {}.", words.join(", "))))
            }
            Kind::Text | Kind::Role => Ok(value.into()),
            Kind::Measure(measure) => measure.normalize(name, value),
            Kind::Theirs => {
                let theirs = theirs();
                let found = theirs.binary_search_by(|s| s.name.cmp(name)).ok().map(|place| theirs[place].kind);
                found.map_or_else(|| Ok(value.into()), |kind| kind.normalize(name, value))
            }
            Kind::Named(_, names) if names.contains(&value) => Ok(value.into()),
            Kind::Named(_, _) if value.is_empty() => Err(bad().detail(format!("{name} cannot be empty."))),
            Kind::Named(what, _) => Err(bad().detail(format!("{what} \"{value}\" does not exist."))),
            Kind::Tablespaces => {
                let known = |name: &&String| !matches!(name.as_str(), "pg_default" | "pg_global");
                match super::settings::split_list(value).iter().find(known) {
                    Some(lost) => Err(crate::syntax::no_tablespace(lost)),
                    None => Ok(value.into()),
                }
            }
            Kind::Locale if is_locale(value) => Ok(value.into()),
            Kind::Locale => Err(bad()),
            Kind::SearchConfig => {
                let plain = value.strip_prefix("pg_catalog.").unwrap_or(value);
                if SEARCH_CONFIGS.contains(&plain) { Ok(format!("pg_catalog.{plain}")) } else { Err(bad()) }
            }
            Kind::Encoding => encodings::of_client(value).map(str::to_owned),
            Kind::DateStyle => {
                let styles = Styles::default().with_date_style(value).map_err(|detail| bad().detail(detail))?;
                Ok(styles.date_style())
            }
            Kind::IntervalStyle => {
                let word = value.to_ascii_lowercase();
                let known = Styles::default().with_interval_style(&word).is_some();
                known
                    .then_some(word)
                    .ok_or_else(|| bad().hint("Available values: postgres, postgres_verbose, sql_standard, iso_8601."))
            }
        }
    }
}

/// What is settled when the server is built or starts, in PostgreSQL's words, to whatever value: the present one, too.
fn cannot_change(name: &str) -> SqlError {
    let when = match name {
        "max_connections" | "shared_buffers" | "wal_level" => " without restarting the server",
        "ssl" => " now",
        _ => "",
    };
    let error = SqlError::new(SqlState(*b"55P02"), format!("parameter \"{name}\" cannot be changed{when}"));
    if name.starts_with("timeball.") { error.hint("It is given to the node when it starts.") } else { error }
}

/// Whether it is the name of a locale that a system may have: which ones a client's has is not known here.
fn is_locale(name: &str) -> bool {
    if matches!(name, "" | "C" | "POSIX") {
        return true;
    }
    let language = name.split(['.', '@']).next().unwrap_or_default();
    let (language, country) = language.split_once('_').unwrap_or((language, ""));
    let small = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase());
    let named = (2..=3).contains(&language.len()) && small(language) && country.len() == 2;
    named && country.bytes().all(|b| b.is_ascii_uppercase()) || name.starts_with("C.")
}

fn parse_flag(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

fn split_unit(value: &str) -> Option<(f64, &str)> {
    let value = value.trim();
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    Some((value[..end].parse().ok()?, value[end..].trim()))
}

/// A time in milliseconds; the unit may be missing.
pub(super) fn parse_duration_ms(value: &str) -> Option<u64> {
    parse_duration(value).map(|ms| ms.round() as u64)
}

/// As [`parse_duration_ms`], in microseconds.
pub(super) fn parse_duration_us(value: &str) -> Option<u64> {
    parse_duration(value).map(|ms| (ms * 1000.0).round() as u64)
}

/// As [`show_duration`], of microseconds.
pub(super) fn show_duration_us(us: u64) -> String {
    if us.is_multiple_of(1000) { show_duration(us / 1000) } else { format!("{us}us") }
}

fn parse_duration(value: &str) -> Option<f64> {
    let (number, unit) = split_unit(value)?;
    let factor = match unit {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    let ms = number * factor;
    (ms <= i32::MAX as f64).then_some(ms)
}

pub(super) fn show_duration(ms: u64) -> String {
    for (factor, unit) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")] {
        if ms >= factor && ms.is_multiple_of(factor) {
            return format!("{}{unit}", ms / factor);
        }
    }
    if ms == 0 { "0".into() } else { format!("{ms}ms") }
}

fn parse_bytes(value: &str) -> Option<u64> {
    let (number, unit) = split_unit(value)?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        _ => return None,
    };
    Some((number * factor as f64) as u64)
}
