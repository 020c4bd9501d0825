//! Settings of a session: those that do something are typed, the rest are remembered for the client's sake.

use super::setting_table::{Kind, find, parse_duration_us, show_duration, show_duration_us};
use crate::context::EvalSettings;
use crate::database::DatabaseOptions;
use crate::transaction::{Consistency, Isolation, SnapshotAge, Uncertainty};
use crate::types::{SettingAbout, SettingSource};
use crate::{SqlError, SqlState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What sessions run with. Cheap to keep a copy of: see [`Settings::values`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// What evaluation reads.
    pub eval: Arc<EvalSettings>,
    /// `default_transaction_isolation`
    pub isolation: Isolation,
    /// `default_transaction_isolation` is READ UNCOMMITTED, which is READ COMMITTED under another name.
    pub uncommitted: bool,
    /// `default_transaction_read_only`
    pub read_only: bool,
    /// `default_transaction_deferrable`
    pub deferrable: bool,
    /// `timeball.consistency`
    pub consistency: Consistency,
    /// `timeball.uncertainty`, with `timeball.max_offset`
    pub uncertainty: Uncertainty,
    /// `timeball.commit_wait_budget`, nanoseconds; `None`: the node's own
    pub commit_wait_budget_ns: Option<u64>,
    /// `timeball.snapshot_age`
    pub snapshot_age: SnapshotAge,
    /// `timeball.report_token`
    pub report_token: bool,
    /// `timeball.max_staleness`, microseconds; 0 reads the present.
    pub max_staleness_us: i64,
    /// `statement_timeout`, milliseconds; 0 is never.
    pub statement_timeout_ms: u64,
    /// `lock_timeout`, milliseconds; 0 is never.
    pub lock_timeout_ms: u64,
    /// `idle_in_transaction_session_timeout`, milliseconds; 0 is never.
    pub idle_in_transaction_ms: u64,
    /// `idle_session_timeout`, milliseconds; 0 is never.
    pub idle_session_ms: u64,
    /// `timeball.query_memory_bytes`
    pub query_memory_bytes: usize,
    /// `timeball.snapshot_age_max`, milliseconds; 0 is never.
    pub snapshot_age_ms_max: u64,
}

impl Settings {
    /// Defaults, for a user and a database.
    pub fn new(user: &str, database: &str, backend_pid: i32, options: &DatabaseOptions) -> Settings {
        let mut fixed = vec![
            ("session_authorization", user.to_string()),
            ("server_version", format!("15.10 (Timeball {})", options.product_version)),
            ("timeball.query_memory_bytes", options.query_memory_bytes.to_string()),
        ];
        if let Some(sessions_max) = options.sessions_max {
            fixed.push(("max_connections", sessions_max.to_string()));
        }
        if options.snapshot_age_ms_max > 0 {
            fixed.push(("timeball.snapshot_age_max", show_duration(options.snapshot_age_ms_max)));
        }
        if let Some(us) = options.commit_wait_budget_us {
            fixed.push(("timeball.commit_wait_budget", show_duration_us(us)));
        }
        if let Some(seconds) = options.retention_seconds {
            fixed.push(("timeball.retention", show_duration(seconds.saturating_mul(1000))));
        }
        if let Some(memory_bytes) = options.memory_bytes {
            fixed.push(("timeball.memory_bytes", memory_bytes.to_string()));
        }
        let values: Arc<BTreeMap<String, String>> =
            Arc::new(fixed.into_iter().map(|(n, v)| (n.to_string(), v)).collect());
        let by_start = values.keys().filter(|name| options.said.contains(&name.as_str()));
        let by_start = by_start.flat_map(|name| [true, false].map(|reset| (reset, name.clone())));
        let sources = Arc::new(by_start.map(|key| (key, SettingSource::CommandLine)).collect());
        Settings::of(Arc::new(EvalSettings {
            sources,
            user: user.into(),
            database: database.into(),
            backend_pid,
            initial: values.clone(),
            values,
            ..EvalSettings::default()
        }))
    }

    /// What a setting would show after a SET, or a RESET without a value.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn trial(eval: &Arc<EvalSettings>, name: &str, value: Option<&str>) -> Result<String, SqlError> {
        let mut settings = Settings::of(eval.clone());
        settings.set(name, value)?;
        Ok(settings.show(name).unwrap_or_default())
    }

    fn of(eval: Arc<EvalSettings>) -> Settings {
        let query_memory_bytes = eval.values.get("timeball.query_memory_bytes").and_then(|v| v.parse().ok());
        let snapshot_age_ms_max = eval.values.get("timeball.snapshot_age_max").map_or(0, |shown| milliseconds(shown));
        Settings {
            eval,
            isolation: Isolation::Serializable,
            uncommitted: false,
            read_only: false,
            deferrable: false,
            consistency: Consistency::Auto,
            uncertainty: Uncertainty::Dynamic,
            commit_wait_budget_ns: None,
            snapshot_age: SnapshotAge::Present,
            report_token: false,
            max_staleness_us: 0,
            statement_timeout_ms: 0,
            lock_timeout_ms: 0,
            idle_in_transaction_ms: 0,
            idle_session_ms: 0,
            snapshot_age_ms_max,
            query_memory_bytes: query_memory_bytes.unwrap_or(DatabaseOptions::default().query_memory_bytes),
        }
    }

    /// A setting as SHOW gives it; `None` if there is none of that name.
    pub fn show(&self, name: &str) -> Option<String> {
        show(&self.eval, name)
    }

    /// Names, values and descriptions of all, in order.
    pub fn all(&self) -> Vec<(String, String, &'static str)> {
        let row = |(name, description): (String, &'static str)| {
            let value = self.show(&name).unwrap_or_default();
            (name, value, description)
        };
        all(&self.eval).into_iter().map(row).collect()
    }

    /// Marks the present values as those that RESET goes back to: after start-up.
    pub fn seal(&mut self) {
        let eval = Arc::make_mut(&mut self.eval);
        eval.initial = eval.values.clone();
        let now = eval.sources.iter().filter(|((of_reset, _), _)| !of_reset);
        let initial = now.map(|((_, name), source)| ((true, name.clone()), *source)).collect::<Vec<_>>();
        Arc::make_mut(&mut eval.sources).extend(initial);
    }

    /// SET, or RESET without a value.
    ///
    /// # Errors
    /// 42704 for an unknown name, 55P02 for one that cannot be changed, 22023 for a bad value.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        self.set_by(SettingSource::Session, name, value)
    }

    /// As [`Settings::set`], where somebody else says it.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn set_by(&mut self, source: SettingSource, name: &str, value: Option<&str>) -> Result<(), SqlError> {
        let name = match name {
            "time zone" => "timezone",
            "role" => "role",
            other => other,
        };
        let known = find(name);
        if known.is_none() && !name.contains('.') {
            return Err(unknown(name));
        }
        if name.starts_with("timeball.") && known.is_none() {
            return Err(unknown(name));
        }
        let by_reset = || self.eval.sources.get(&(true, name.to_string())).copied().unwrap_or_default();
        let source = if value.is_some() { source } else { by_reset() };
        let value = match value {
            Some(value) => value.to_string(),
            None => match self.eval.initial.get(name) {
                Some(initial) => initial.clone(),
                None => known.map_or(String::new(), |s| s.default.to_string()),
            },
        };
        let shown = match known {
            Some(s) => self.apply(s.name, s.kind, &value)?,
            None => value,
        };
        let eval = Arc::make_mut(&mut self.eval);
        Arc::make_mut(&mut eval.values).insert(name.into(), shown);
        Arc::make_mut(&mut eval.sources).insert((false, name.into()), source);
        Ok(())
    }

    /// RESET ALL
    pub fn reset_all(&mut self) {
        let names: Vec<String> = self.eval.values.keys().cloned().collect();
        for name in names {
            // A value that was accepted before is accepted again; what is fixed keeps its value.
            let _ = self.set(&name, None);
        }
    }

    /// Checks a value and makes it effective; gives the form that SHOW shows.
    fn apply(&mut self, name: &str, kind: Kind, value: &str) -> Result<String, SqlError> {
        let shown = kind.normalize(name, value)?;
        match name {
            "timezone" => {
                let (zone, shown) = super::zone::parse(value)?;
                Arc::make_mut(&mut self.eval).time_zone = zone;
                return Ok(shown);
            }
            "search_path" => {
                let path = split_list(value);
                Arc::make_mut(&mut self.eval).search_path = path.iter().map(|n| self.resolve_user(n)).collect();
            }
            "role" | "session_authorization" => {
                let none = name == "role" && value == "none";
                if !none && value != self.eval.user {
                    let error = crate::catalog::role::unknown_role(value, &self.eval.user);
                    return Err(error.with(|e| e.state = SqlState::INVALID_PARAMETER));
                }
            }
            "application_name" => Arc::make_mut(&mut self.eval).application_name = value.into(),
            "datestyle" => {
                let styles = self.eval.styles.with_date_style(value).unwrap_or(self.eval.styles);
                Arc::make_mut(&mut self.eval).styles = styles;
                return Ok(styles.date_style());
            }
            "intervalstyle" => {
                let styles = self.eval.styles.with_interval_style(&shown).unwrap_or(self.eval.styles);
                Arc::make_mut(&mut self.eval).styles = styles;
            }
            "extra_float_digits" => Arc::make_mut(&mut self.eval).extra_float_digits = shown.parse().unwrap_or(1),
            "bytea_output" => Arc::make_mut(&mut self.eval).bytea_escape = shown == "escape",
            "default_transaction_isolation" => {
                self.isolation = parse_isolation(&shown).unwrap_or_default();
                self.uncommitted = shown == READ_UNCOMMITTED;
            }
            "default_transaction_read_only" => self.read_only = shown == "on",
            "default_transaction_deferrable" => self.deferrable = shown == "on",
            "timeball.consistency" => self.consistency = Consistency::of_name(&shown).unwrap_or_default(),
            "timeball.uncertainty" => self.uncertainty = uncertainty(&shown, self.max_offset_us()),
            "timeball.max_offset" => {
                let known = self.eval.values.get("timeball.uncertainty").cloned().unwrap_or_default();
                self.uncertainty = uncertainty(&known, milliseconds(&shown) * 1000);
            }
            "timeball.commit_wait_budget" => self.commit_wait_budget_ns = parse_duration_us(&shown).map(|us| us * 1000),
            "timeball.snapshot_age" => {
                self.snapshot_age = match parse_duration_us(&shown) {
                    Some(0) => SnapshotAge::Present,
                    Some(us) => SnapshotAge::Fixed(us),
                    None => SnapshotAge::Tuned,
                };
            }
            "timeball.report_token" => self.report_token = shown == "on",
            "timeball.max_staleness" => self.max_staleness_us = milliseconds(&shown) as i64 * 1000,
            "statement_timeout" => self.statement_timeout_ms = milliseconds(&shown),
            "lock_timeout" => self.lock_timeout_ms = milliseconds(&shown),
            "idle_in_transaction_session_timeout" => self.idle_in_transaction_ms = milliseconds(&shown),
            "idle_session_timeout" => self.idle_session_ms = milliseconds(&shown),
            "timeball.snapshot_age_max" => self.snapshot_age_ms_max = milliseconds(&shown),
            "timeball.query_memory_bytes" => self.query_memory_bytes = shown.parse().unwrap_or(self.query_memory_bytes),
            _ => {}
        }
        Ok(shown)
    }

    fn max_offset_us(&self) -> u64 {
        self.show("timeball.max_offset").map_or(0, |shown| milliseconds(&shown) * 1000)
    }

    fn resolve_user(&self, name: &str) -> String {
        if name == "$user" { self.eval.user.clone() } else { name.into() }
    }
}

/// A setting as SHOW gives it; `None` if there is none of that name.
pub fn show(eval: &EvalSettings, name: &str) -> Option<String> {
    match eval.values.get(name) {
        Some(value) => Some(value.clone()),
        None => find(name).map(|s| s.default.to_string()),
    }
}

/// What is to be known of a setting beside its value; `None` if there is none of that name.
pub fn about(eval: &EvalSettings, name: &str) -> Option<SettingAbout> {
    let known = find(name);
    if known.is_none() && !eval.values.contains_key(name) {
        return None;
    }
    let boot = known.map(|s| s.default.to_string());
    let (context, vartype) = match known.map(|s| s.kind) {
        Some(Kind::Fixed) if name.starts_with("timeball.") || name == "max_connections" => ("postmaster", "string"),
        Some(Kind::Fixed) => ("internal", "string"),
        Some(Kind::Flag) => ("user", "bool"),
        Some(Kind::Number(..)) => ("user", "integer"),
        Some(Kind::OneOf(_)) => ("user", "enum"),
        _ => ("user", "string"),
    };
    Some(SettingAbout {
        context,
        vartype,
        reset: eval.initial.get(name).cloned().or_else(|| boot.clone()),
        boot,
        source: eval.sources.get(&(false, name.to_string())).copied().unwrap_or_default(),
    })
}

/// Names and descriptions of all settings, in order.
pub fn all(eval: &EvalSettings) -> Vec<(String, &'static str)> {
    let mut all: BTreeMap<String, &'static str> =
        super::setting_table::all().map(|s| (s.name.into(), s.description)).collect();
    for name in eval.values.keys() {
        all.entry(name.clone()).or_insert("A setting of the client's own.");
    }
    all.into_iter().collect()
}

/// Splits a list of names; quotes are taken off, the rest is folded.
pub fn split_list(value: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut rest = value.trim();
    while !rest.is_empty() {
        if let Some(mut quoted) = rest.strip_prefix('"') {
            let mut item = String::new();
            loop {
                let (part, tail) = quoted.split_once('"').unwrap_or((quoted, ""));
                item.push_str(part);
                quoted = tail;
                // Two quotes are one within the name.
                let Some(tail) = quoted.strip_prefix('"') else { break };
                item.push('"');
                quoted = tail;
            }
            items.push(item);
            rest = quoted.trim_start().trim_start_matches(',').trim_start();
        } else {
            let (item, tail) = rest.split_once(',').unwrap_or((rest, ""));
            items.push(item.trim().to_lowercase());
            rest = tail.trim_start();
        }
    }
    items.retain(|i| !i.is_empty());
    items
}

fn uncertainty(shown: &str, max_offset_us: u64) -> Uncertainty {
    match shown {
        "static" => Uncertainty::Static(max_offset_us),
        "fallback" => Uncertainty::Fallback(max_offset_us),
        _ => Uncertainty::Dynamic,
    }
}

pub(crate) fn milliseconds(shown: &str) -> u64 {
    super::setting_table::parse_duration_ms(shown).unwrap_or(0)
}

/// What behaves as READ COMMITTED, as in PostgreSQL, and is shown as it was set.
pub(super) const READ_UNCOMMITTED: &str = "read uncommitted";

pub(super) fn parse_isolation(text: &str) -> Option<Isolation> {
    match text {
        "serializable" => Some(Isolation::Serializable),
        "repeatable read" => Some(Isolation::RepeatableRead),
        "read committed" | "read uncommitted" => Some(Isolation::ReadCommitted),
        _ => None,
    }
}

pub(super) fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Serializable => "serializable",
        Isolation::RepeatableRead => "repeatable read",
        Isolation::ReadCommitted => "read committed",
    }
}

pub(super) fn unknown(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

pub(super) fn invalid(name: &str, value: &str) -> SqlError {
    // PostgreSQL writes a few of its names with capitals.
    let name = match name {
        "datestyle" => "DateStyle",
        "timezone" => "TimeZone",
        name => name,
    };
    SqlError::new(SqlState::INVALID_PARAMETER, format!("invalid value for parameter \"{name}\": \"{value}\""))
}
