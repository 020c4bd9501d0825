//! What functions ask of what stands above them.

use super::{all_settings, duration_ms, setting_about, setting_shown, setting_trial};
use crate::SqlError;
use crate::pg_catalog::{functions, names};
use crate::statement::{Statement, System};
use crate::types::{EvalSettings, ObjectNames, Oid, RegKind, SettingAbout, Value};
use std::sync::Arc;

/// The catalogs of the system and the table of settings, as each session has them.
pub struct WholeSystem;

fn listed(name: &str, shown: String) -> String {
    if name.ends_with("_timeout") { duration_ms(&shown).to_string() } else { shown }
}

impl System for WholeSystem {
    fn resolve(&self, kind: RegKind, name: &str, statement: &Statement) -> Result<Oid, SqlError> {
        names::Known { catalog: statement.catalog.as_ref(), settings: &statement.settings }.resolve(kind, name)
    }
    fn print(&self, kind: RegKind, oid: Oid, statement: &Statement) -> Result<String, SqlError> {
        names::Known { catalog: statement.catalog.as_ref(), settings: &statement.settings }.print(kind, oid)
    }
    fn call(&self, function: &str, values: &[Value], statement: &Statement) -> Result<Value, SqlError> {
        functions::call(function, values, statement)
    }
    fn setting(&self, settings: &EvalSettings, name: &str) -> Option<String> {
        setting_shown(settings, name)
    }
    fn setting_listed(&self, settings: &EvalSettings, name: &str) -> Option<String> {
        setting_shown(settings, name).map(|shown| listed(name, shown))
    }
    fn setting_about(&self, settings: &EvalSettings, name: &str) -> Option<SettingAbout> {
        let mut about = setting_about(settings, name)?;
        about.boot = about.boot.map(|shown| listed(name, shown));
        about.reset = about.reset.map(|shown| listed(name, shown));
        Some(about)
    }
    fn settings(&self, settings: &EvalSettings) -> Vec<(String, &'static str)> {
        all_settings(settings)
    }
    fn setting_trial(&self, settings: &Arc<EvalSettings>, name: &str, value: Option<&str>) -> Result<String, SqlError> {
        setting_trial(settings, name, value)
    }
}
