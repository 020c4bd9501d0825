//! The file of a scenario.

use crate::clock::ClockKind;
use crate::cluster::{Fault, Layout, Model, Weather};
use crate::nodes;
use crate::register::Workload;
use serde::Deserialize;

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// One whole node on one machine: everything is drawn from the seed, and the file says no more.
    Alone,
    /// Replicated registers: the replicated log's core alone.
    Register,
    /// Whole nodes, with transactions over ranges that are replicated on them.
    Nodes,
}

/// What must hold besides the promises of what runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Checks {
    /// After everything heals, all serves again within so long, milliseconds.
    pub serves_again_ms: u64,
    /// Of a hundred operations at least so many are answered: a run in which nothing happens proves nothing.
    pub answered_percent: usize,
    /// Rare paths that a batch of seeds reaches at least once.
    pub reaches: Vec<String>,
}

impl Default for Checks {
    fn default() -> Self {
        Checks { serves_again_ms: 20_000, answered_percent: 20, reaches: Vec::new() }
    }
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// Where it lies below `scenarios`, without its ending: `fast/crashes`.
    #[serde(skip)]
    pub name: String,
    /// What it is for, in a sentence.
    pub about: String,
    /// What runs.
    pub what: What,
    /// Machines.
    #[serde(default = "three")]
    pub machines: usize,
    /// For how long there are faults, milliseconds.
    #[serde(default = "four_seconds")]
    pub length_ms: u64,
    /// The clocks of the machines; the list begins anew where there are more.
    #[serde(default = "honest")]
    pub clocks: Vec<ClockKind>,
    /// The network.
    #[serde(default)]
    pub network: Weather,
    /// What a machine is worth.
    #[serde(default)]
    pub machine: Model,
    /// What clients do, of registers.
    #[serde(default)]
    pub workload: Workload,
    /// What sessions do, of whole nodes.
    #[serde(default)]
    pub sessions: nodes::Workload,
    /// What goes wrong.
    #[serde(default)]
    pub fault: Vec<Fault>,
    /// What must hold.
    #[serde(default)]
    pub checks: Checks,
}

fn three() -> usize {
    3
}

fn four_seconds() -> u64 {
    4_000
}

fn honest() -> Vec<ClockKind> {
    vec![ClockKind::Honest]
}

impl Scenario {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read(name: &str, text: &str) -> Result<Scenario, String> {
        let scenario: Scenario = toml::from_str(text).map_err(|e| format!("{name}: {e}"))?;
        let scenario = Scenario { name: name.into(), ..scenario };
        match scenario.wrong() {
            Some(what) => Err(format!("{name}: {what}")),
            None => Ok(scenario),
        }
    }

    fn wrong(&self) -> Option<String> {
        // Stores are numbered from 1, and a machine that came back empty by hundreds on top.
        if !(1..=99).contains(&self.machines) {
            return Some(format!("{} machines: 1 to 99", self.machines));
        }
        if self.clocks.is_empty() {
            return Some("clocks: at least one".into());
        }
        if self.machine.sync_us.0 > self.machine.sync_us.1 {
            return Some("machine: sync-us goes down".into());
        }
        let faults = self.fault.iter().find_map(Fault::wrong);
        let workload = if self.what == What::Register { self.workload.wrong(self.machines) } else { None };
        faults.or_else(|| self.network.latency.wrong()).or(workload)
    }

    /// How its world is laid out.
    pub fn layout(&self) -> Layout {
        Layout {
            machines: self.machines,
            length_ns: self.length_ms * 1_000_000,
            serves_again_ns: self.checks.serves_again_ms * 1_000_000,
            weather: self.network.clone(),
            model: self.machine.clone(),
            clocks: self.clocks.clone(),
            faults: self.fault.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Scenario;

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| Scenario::read("x", &format!("about = 'a'\n{text}")).unwrap_err();
        assert!(wrong("what = 'registers'").contains("registers"));
        assert!(wrong("what = 'register'\nmachine-count = 3").contains("machine-count"));
        assert!(wrong("what = 'register'\nmachines = 2").contains("3 replicas on 2 machines"));
        assert!(wrong("what = 'register'\n[[fault]]\nkind = 'kill'").contains("never happens"));
        assert!(wrong("what = 'register'\n[[fault]]\nkind = 'loss'\nevery-ms = 5").contains("much"));
        assert!(wrong("what = 'register'\n[network]\nlatency = { uniform-us = [5, 1] }").contains("above"));
        assert!(Scenario::read("x", "about = 'a'\nwhat = 'alone'").is_ok());
    }
}
