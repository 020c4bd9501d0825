//! The seeds' experiments on our own system: `timeball lab NAME`.
//!
//! Problem: a claim of a paper is worth what somebody else can repeat. Idea: each experiment is a list of *points*, each of which gives a few
//! named numbers and nothing else; everything shown is a function of those numbers. So a long run can be interrupted between two points and
//! goes on there, the same numbers give the same tables and figures, and a verdict is computed from them, not written beside them.
//!
//! ```text
//!   Experiment::points ──► Point::measure ──► Values ──► NAME.points.tsv   (kept as they come: --resume)
//!                                               │
//!   Experiment::report ◄────────────────────────┘
//!        └─► Report: tables (CSV), figures (SVG, PNG), verdicts (TSV), words ──► the page NAME, and the index of all of them
//! ```
//!
//! Invariants:
//! 1. A simulated point is a function of its parameters and its seed: it reads no clock and no other point.
//! 2. A point's seed depends on its name and the run's seed alone, so a run that was interrupted gives what one in a piece gives.
//! 3. Numbers of a document are those that it prints. Where it prints a sentence, the sentence stands beside ours; nothing is read off a picture.
//! 4. Every page says what of it is the product's code, and how the opponents are set.

mod bounds;
mod catalogue;
mod clock_reading;
mod clock_rsm;
mod clock_rsm_model;
mod clock_si;
mod clock_si_model;
mod consistency;
mod hybridtime;
mod index;
mod on_cluster;
mod page;
mod posts_and_likes;
mod provenance;
mod record;
mod restarts;
mod run;
mod table;
mod ycsb;

pub use index::index;
pub use run::{Begin, Options, SEED, run};
pub use table::{Cell, Table};

use crate::cluster::ClusterError;
use crate::plot::{Bars, Chart, Drawing};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// How large a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds even where nothing is optimised: for tests.
    Quick,
    /// Minutes.
    Usual,
    /// As the document has it, where that is larger.
    Full,
}

/// What a point is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// How large.
    pub size: Size,
    /// Of all choices.
    pub seed: u64,
}

/// The numbers of a point, by name (units last).
pub type Values = BTreeMap<String, f64>;

/// How a point is measured: with a seed of its own, and what it needs of this machine.
pub type Measure = Box<dyn Fn(u64, &Ground) -> Result<Values, LabError>>;

/// What points that are measured on real clusters need of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The program of the nodes.
    pub binary: PathBuf,
    /// Where their data lie: below this folder.
    pub dir: PathBuf,
}

/// One measurement of an experiment.
pub struct Point {
    /// Its name, which no other point of the experiment has.
    pub name: String,
    /// Measures it.
    pub measure: Measure,
}

impl Point {
    /// A point.
    pub fn new(name: impl Into<String>, measure: impl Fn(u64) -> Result<Values, LabError> + 'static) -> Self {
        Point { name: name.into(), measure: Box::new(move |seed, _| measure(seed)) }
    }

    /// A point that is measured on this machine.
    pub fn here(name: impl Into<String>, measure: impl Fn(u64, &Ground) -> Result<Values, LabError> + 'static) -> Self {
        Point { name: name.into(), measure: Box::new(measure) }
    }

    /// A point that is measured on a real cluster.
    pub fn on_cluster(
        name: impl Into<String>,
        measure: impl Fn(u64, &Ground) -> Result<Values, ClusterError> + 'static,
    ) -> Self {
        let name = name.into();
        let point = name.clone();
        let failed = move |error: ClusterError| LabError::Point { point: point.clone(), reason: error.to_string() };
        Point { name, measure: Box::new(move |seed, ground| measure(seed, ground).map_err(&failed)) }
    }
}

/// Numbers by name, as a point gives them.
pub fn values<const N: usize>(numbers: [(&str, f64); N]) -> Values {
    numbers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What was measured, by the names of the points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured(BTreeMap<String, Values>);

impl Measured {
    /// A number of a point; not a number where it is missing.
    pub fn get(&self, point: &str, name: &str) -> f64 {
        self.0.get(point).and_then(|values| values.get(name)).copied().unwrap_or(f64::NAN)
    }

    /// A number of all points that have it.
    pub fn all(&self, name: &str) -> Vec<f64> {
        self.0.values().filter_map(|values| values.get(name)).copied().collect()
    }
}

/// How an item of a document stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Ours say the same.
    Agrees,
    /// Ours say something else; the page says why.
    Differs,
    /// It cannot be shown on this machine, or not by this system; the page says why.
    NotHere,
}

impl Stand {
    /// As pages write it.
    pub fn word(self) -> &'static str {
        match self {
            Stand::Agrees => "agrees",
            Stand::Differs => "differs",
            Stand::NotHere => "cannot be shown here",
        }
    }
    /// `Agrees` if so, else `Differs`.
    pub fn if_agrees(agrees: bool) -> Self {
        if agrees { Stand::Agrees } else { Stand::Differs }
    }
}

/// How many orders of magnitude a ratio is, to the nearest one: what a document's "about one" means.
fn orders_of_magnitude(ratio: f64) -> f64 {
    ratio.log10().round()
}

/// What an experiment says of one table or figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Which: an item of the catalogue.
    pub item: &'static str,
    /// What the document prints, or its sentence.
    pub document: String,
    /// What was found here.
    pub ours: String,
    /// How the two go together.
    pub stand: Stand,
}

/// A picture.
#[derive(Clone, Debug)]
pub enum Picture {
    /// Lines.
    Lines(Chart),
    /// Bars.
    Bars(Bars),
}

impl Picture {
    fn drawing(&self) -> &dyn Drawing {
        match self {
            Picture::Lines(chart) => chart,
            Picture::Bars(bars) => bars,
        }
    }
}

/// A part of a page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// Its words, as Markdown.
    pub text: String,
    /// A file name's end, and the picture.
    pub picture: Option<(String, Picture)>,
    /// A file name's end, and the table; on the page, too.
    pub table: Option<(String, Table)>,
}

/// All that an experiment has to say.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What stands where.
    pub verdicts: Vec<Verdict>,
    /// What is ours, what is the opponents', how both are set.
    pub settings: Vec<(String, String)>,
    /// The parts of the page.
    pub sections: Vec<Section>,
}

/// An experiment.
pub trait Experiment {
    /// As the command line has it.
    fn name(&self) -> &'static str;
    /// One line for the list.
    fn about(&self) -> &'static str;
    /// A paragraph for the head of the page.
    fn introduction(&self) -> &'static str;
    /// What is measured, in order.
    fn points(&self, scope: Scope) -> Vec<Point>;
    /// What the numbers say.
    fn report(&self, measured: &Measured, scope: Scope) -> Report;
}

/// All experiments, in the order of the list.
pub fn all() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(clock_si_model::ClockSiModel),
        Box::new(clock_rsm_model::ClockRsmModel),
        Box::new(clock_rsm::ClockRsmLatency),
        Box::new(clock_si::ClockSi),
        Box::new(consistency::ByConsistency),
        Box::new(bounds::Bounds),
        Box::new(clock_reading::ClockReading),
        Box::new(posts_and_likes::Posts),
        Box::new(restarts::Restarts),
        Box::new(ycsb::NoLoss),
        Box::new(hybridtime::HybridTime),
    ]
}

/// The list, for people.
pub fn list() -> String {
    let experiments = all();
    let width = experiments.iter().map(|e| e.name().len()).max().unwrap_or(0);
    experiments.iter().map(|e| format!("{:<width$}  {}\n", e.name(), e.about())).collect()
}

/// Why an experiment failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No experiment has this name.
    #[error("there is no experiment {name:?}; `timeball lab list` names them: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// What an interrupted run left is not of this run.
    #[error("{path} cannot be gone on with: {reason}; run with --anew to begin anew")]
    Resume {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process measures it, into the same folder.
    #[error(
        "{path} is being written by another run of this experiment: wait for its end, or give --out another folder"
    )]
    Running {
        /// Which file.
        path: PathBuf,
    },
    /// What an interrupted run left would be lost.
    #[error(
        "{path} holds {there} of the {all} points of a run that was interrupted: go on with it (--resume), or measure all of them anew (--anew)"
    )]
    Unfinished {
        /// Which file.
        path: PathBuf,
        /// Points that it has.
        there: usize,
        /// Points that a finished run would have.
        all: usize,
    },
    /// A file that is to be written is somebody else's.
    #[error("{path} is no index that this command wrote: give --out another folder, or move the file away")]
    NotAnIndex {
        /// Which file.
        path: PathBuf,
    },
    /// A measurement failed.
    #[error("{point}: {reason}")]
    Point {
        /// Which.
        point: String,
        /// Why.
        reason: String,
    },
}

#[cfg(test)]
mod tests;
