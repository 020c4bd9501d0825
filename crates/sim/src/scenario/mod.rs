//! Scenarios: a run as a data file. What runs, on which machines, under which load, and what goes wrong.
//!
//! `scenarios/fast` is run by every check, `scenarios/slow` by longer ones, `scenarios/rare` holds what is hunted for. How to write one is
//! in the guide (`docs/guide/3-sim.md`).

mod file;
mod find;
mod run;

pub use file::{Scenario, What};
pub use find::find;
pub use run::{Controls, Outcome, run};
