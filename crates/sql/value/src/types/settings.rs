//! What the text of values depends on beside their types, and what else of a session's settings evaluation asks for.

use super::calendar::TimeZone;
use super::style::Styles;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a setting's value came from, as `pg_settings.source` says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SettingSource {
    /// Nobody has set it.
    #[default]
    Default,
    /// The node was started with it.
    CommandLine,
    /// ALTER SYSTEM, ALTER ROLE ALL.
    Global,
    /// ALTER DATABASE
    Database,
    /// ALTER ROLE
    Role,
    /// ALTER ROLE .. IN DATABASE
    RoleInDatabase,
    /// The start-up message, `options` included.
    Client,
    /// SET, `set_config`.
    Session,
}

impl SettingSource {
    /// PostgreSQL's word.
    pub fn name(self) -> &'static str {
        match self {
            SettingSource::Default => "default",
            SettingSource::CommandLine => "command line",
            SettingSource::Global => "global",
            SettingSource::Database => "database",
            SettingSource::Role => "user",
            SettingSource::RoleInDatabase => "database user",
            SettingSource::Client => "client",
            SettingSource::Session => "session",
        }
    }
}

/// What is to be known of a setting beside its value.
#[derive(Clone, Debug)]
pub struct SettingAbout {
    /// When it can be changed: `internal`, `postmaster` (when the node starts) or `user`.
    pub context: &'static str,
    /// `bool`, `enum`, `integer` or `string`.
    pub vartype: &'static str,
    /// What it is where nobody says anything; `None`: it is the client's own.
    pub boot: Option<String>,
    /// What RESET goes back to.
    pub reset: Option<String>,
    /// Where its value came from.
    pub source: SettingSource,
}

/// The settings that evaluation and output depend on.
#[derive(Clone, Debug)]
pub struct EvalSettings {
    /// `TimeZone`
    pub time_zone: TimeZone,
    /// `search_path`, without the implicit `pg_catalog`.
    pub search_path: Vec<String>,
    /// `current_user`
    pub user: String,
    /// `current_database()`
    pub database: String,
    /// `application_name`
    pub application_name: String,
    /// Backend process id shown to the client.
    pub backend_pid: i32,
    /// `extra_float_digits`
    pub extra_float_digits: i32,
    /// `bytea_output = escape`
    pub bytea_escape: bool,
    /// `DateStyle` and `IntervalStyle`
    pub styles: Styles,
    /// Every setting that was set, as shown, by name; what is absent shows its default.
    pub values: Arc<BTreeMap<String, String>>,
    /// What RESET goes back to: start-up parameters.
    pub initial: Arc<BTreeMap<String, String>>,
    /// Where the values came from, those that RESET goes back to under `true`.
    pub sources: Arc<BTreeMap<(bool, String), SettingSource>>,
}

impl Default for EvalSettings {
    fn default() -> Self {
        EvalSettings {
            time_zone: chrono_tz::UTC.into(),
            search_path: vec!["public".into()],
            user: "root".into(),
            database: "postgres".into(),
            application_name: String::new(),
            backend_pid: 0,
            extra_float_digits: 1,
            bytea_escape: false,
            styles: Styles::default(),
            values: Arc::default(),
            initial: Arc::default(),
            sources: Arc::default(),
        }
    }
}
