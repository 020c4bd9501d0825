//! What was measured, in a file: a run that is ended goes on where it was.

use crate::bench::report::output;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// One look at the hot rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Since the updates began.
    pub at_seconds: f64,
    /// A scan of them.
    pub scan_ms: f64,
    /// Everything that the system keeps on disk.
    pub disk_bytes: f64,
}

/// What one case gave on one system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The commit that was measured.
    pub commit: String,
    /// The day.
    pub date: String,
    /// Figures by name; the case knows which.
    pub figures: BTreeMap<String, f64>,
    /// What was refused or failed, by the figure's name.
    pub failures: BTreeMap<String, String>,
    /// Of the hot rows.
    pub samples: Vec<Sample>,
}

impl Measured {
    /// Nothing yet, today.
    pub fn new() -> Measured {
        Measured { date: output("date", &["+%Y-%m-%d"]), ..Measured::default() }
    }
    /// Adds a figure.
    pub fn put(&mut self, name: impl Into<String>, figure: f64) {
        self.figures.insert(name.into(), figure);
    }

    fn to_json(&self) -> Value {
        let samples: Vec<Value> = self.samples.iter().map(|s| json!([s.at_seconds, s.scan_ms, s.disk_bytes])).collect();
        json!({
            "commit": self.commit, "date": self.date, "figures": self.figures, "failures": self.failures, "samples": samples
        })
    }

    fn from_json(value: &Value) -> Option<Measured> {
        let figures = value["figures"].as_object()?.iter().filter_map(|(name, f)| Some((name.clone(), f.as_f64()?)));
        let failures = value["failures"].as_object()?.iter();
        let sample = |s: &Value| {
            Some(Sample { at_seconds: s[0].as_f64()?, scan_ms: s[1].as_f64()?, disk_bytes: s[2].as_f64()? })
        };
        Some(Measured {
            commit: value["commit"].as_str()?.to_owned(),
            date: value["date"].as_str()?.to_owned(),
            figures: figures.collect(),
            failures: failures.filter_map(|(n, why)| Some((n.clone(), why.as_str()?.to_owned()))).collect(),
            samples: value["samples"].as_array()?.iter().filter_map(sample).collect(),
        })
    }
}

/// Everything that was measured with the same lengths.
#[derive(Debug, Default, PartialEq)]
pub struct State {
    lengths: String,
    measured: BTreeMap<(String, String), Measured>,
}

impl State {
    /// What a file holds; nothing where there is none, or where its lengths are others.
    pub fn load(path: &Path, lengths: &dyn Display) -> State {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        State::read(&text, &lengths.to_string())
    }

    fn read(text: &str, lengths: &str) -> State {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let mut state = State { lengths: lengths.to_owned(), measured: BTreeMap::new() };
        if value["lengths"] != lengths {
            return state;
        }
        for (name, measured) in value["measured"].as_object().into_iter().flatten() {
            if let (Some((case, system)), Some(measured)) = (name.split_once('/'), Measured::from_json(measured)) {
                state.put(case, system, measured);
            }
        }
        state
    }

    fn write(&self) -> String {
        let measured: Map<String, Value> =
            self.measured.iter().map(|((case, system), m)| (format!("{case}/{system}"), m.to_json())).collect();
        json!({ "lengths": self.lengths, "measured": measured }).to_string()
    }

    /// Keeps it in a file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), String> {
        let new = path.with_extension("new");
        let written = std::fs::write(&new, self.write()).and_then(|()| std::fs::rename(&new, path));
        written.map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Drops what is named.
    pub fn forget(&mut self, named: impl Fn(&str, &str, &Measured) -> bool) {
        self.measured.retain(|(case, system), measured| !named(case, system, measured));
    }
    /// What a case gave on a system.
    pub fn get(&self, case: &str, system: &str) -> Option<&Measured> {
        self.measured.get(&(case.to_owned(), system.to_owned()))
    }
    /// Takes that in.
    pub fn put(&mut self, case: &str, system: &str, measured: Measured) {
        self.measured.insert((case.to_owned(), system.to_owned()), measured);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let mut state = State { lengths: "short".into(), ..State::default() };
        let mut measured = Measured { commit: "abc".into(), date: "2026-01-02".into(), ..Measured::default() };
        measured.put("fresh ms", 1.25);
        measured.failures.insert("DELETE".into(), "53200: no \"memory\"".into());
        measured.samples.push(Sample { at_seconds: 1.0, scan_ms: 0.5, disk_bytes: 4096.0 });
        state.put("hot", "timeball", measured.clone());
        state.put("hot", "postgres", Measured { commit: "old".into(), ..measured });
        let text = state.write();
        assert_eq!(State::read(&text, "short"), state);
        assert_eq!(State::read(&text, "long"), State { lengths: "long".into(), ..State::default() }, "other lengths");
        assert_eq!(State::read("{torn", "short"), State { lengths: "short".into(), ..State::default() });
        state.forget(|_, system, measured| system == "timeball" && measured.commit != "def");
        assert!(state.get("hot", "timeball").is_none() && state.get("hot", "postgres").is_some());
    }
}
