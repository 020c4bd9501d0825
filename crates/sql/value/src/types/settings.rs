//! What the text of values depends on beside their types, and what else of a session's settings evaluation asks for.

use super::calendar::TimeZone;
use super::style::Styles;
use std::collections::BTreeMap;
use std::sync::Arc;

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
        }
    }
}
