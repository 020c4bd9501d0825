//! What functions ask of what stands above them.

use super::{all_settings, duration_ms, setting_shown, setting_trial};
use crate::SqlError;
use crate::pg_catalog::{functions, names};
use crate::statement::{Statement, System};
use crate::types::{EvalSettings, ObjectNames, Oid, RegKind, Value};
use std::sync::Arc;

/// The catalogs of the system and the table of settings, as each session has them.
pub struct WholeSystem;

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
        let shown = setting_shown(settings, name)?;
        Some(if name.ends_with("_timeout") { duration_ms(&shown).to_string() } else { shown })
    }
    fn settings(&self, settings: &EvalSettings) -> Vec<(String, &'static str)> {
        all_settings(settings)
    }
    fn setting_trial(&self, settings: &Arc<EvalSettings>, name: &str, value: Option<&str>) -> Result<String, SqlError> {
        setting_trial(settings, name, value)
    }
}
