//! Running an experiment: point by point, kept as they come, then everything that is shown of them.

use super::page::page;
use super::provenance::Provenance;
use super::record::Record;
use super::{Experiment, Ground, LabError, Point, Report, Scope, Size, Table, all};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What becomes of the points that another run of the experiment left in the folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// Those of a run that was finished are measured anew; those of an interrupted one are not thrown away unasked.
    #[default]
    UnlessUnfinished,
    /// The run goes on where that one stopped.
    Resume,
    /// All is measured anew.
    Anew,
}

/// How to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which experiment.
    pub name: String,
    /// How large.
    pub size: Size,
    /// Where everything is written.
    pub out: PathBuf,
    /// What becomes of points that another run left.
    pub begin: Begin,
    /// Seed of all choices.
    pub seed: u64,
    /// For experiments on real clusters.
    pub ground: Ground,
}

/// The usual seed.
pub const SEED: u64 = 1;

impl Options {
    /// The line that does it again.
    pub fn command(&self) -> String {
        let mut line = format!("timeball lab {}", self.name);
        if self.size == Size::Full {
            line.push_str(" --full");
        }
        if self.seed != SEED {
            line.push_str(&format!(" --seed {}", self.seed));
        }
        line
    }
}

/// Seeds of points differ, and do not depend on the order in which they are measured (FNV-1a).
pub(super) fn seed_of(seed: u64, point: &str) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    point.bytes().chain(seed.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, hash)
}

/// Seconds as people say them.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 100.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    fs::write(path, bytes).map_err(|error| LabError::File { path: path.to_owned(), error })
}

/// Runs it and writes everything; gives the page's path. `progress` is told a line for each point.
///
/// # Errors
/// [`LabError`].
pub fn run(options: &Options, mut progress: impl FnMut(&str)) -> Result<PathBuf, LabError> {
    let experiments = all();
    let Some(experiment) = experiments.iter().find(|e| e.name() == options.name) else {
        let known: Vec<&str> = experiments.iter().map(|e| e.name()).collect();
        return Err(LabError::Unknown { name: options.name.clone(), known: known.join(", ") });
    };
    let scope = Scope { size: options.size, seed: options.seed };
    fs::create_dir_all(&options.out).map_err(|error| LabError::File { path: options.out.clone(), error })?;
    let (begin, here) = (options.begin, Provenance::here(&options.ground.binary));
    // From here on no other run writes it.
    let mut record = Record::open(&options.out, experiment.name(), scope, begin == Begin::Resume, &here)?;
    if begin == Begin::UnlessUnfinished {
        Record::is_finished(&options.out, experiment.as_ref())?;
    }
    let points = experiment.points(scope);
    let is_whole = points.iter().all(|point| record.measured.0.contains_key(&point.name));
    if !is_whole {
        record.is_of(&here)?;
    }
    measure(experiment.as_ref(), scope, &options.ground, &mut record, &mut progress)?;
    let report = experiment.report(&record.measured, scope);
    files(&options.out, experiment.as_ref(), &report)?;
    let begun = &record.begun;
    let commit = match begun.commit == here.commit {
        true => here.commit,
        false => format!("{}; the page was written at {}", begun.commit, here.commit),
    };
    let text = page(
        experiment.as_ref(),
        &report,
        &[
            ("command", format!("`{}`", options.command())),
            ("machine", begun.machine.clone()),
            ("date", begun.date.clone()),
            ("commit", commit),
            ("program", begun.program.clone()),
            ("measuring took", time(record.took_s)),
        ],
    );
    let path = options.out.join(format!("{}.md", experiment.name()));
    write(&path, text.as_bytes())?;
    Ok(path)
}

/// Measures what the record lacks.
fn measure(
    experiment: &dyn Experiment,
    scope: Scope,
    ground: &Ground,
    record: &mut Record,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let points = experiment.points(scope);
    let missing: Vec<(usize, &Point)> =
        points.iter().enumerate().filter(|(_, point)| !record.measured.0.contains_key(&point.name)).collect();
    if missing.len() < points.len() {
        let there = points.len() - missing.len();
        progress(&format!("{}: {there} of {} points are there", experiment.name(), points.len()));
    }
    let begun = Instant::now();
    for (done, (n, point)) in missing.iter().enumerate() {
        let started = Instant::now();
        let values = (point.measure)(seed_of(scope.seed, &point.name), ground)?;
        let took_s = started.elapsed().as_secs_f64();
        record.add(&point.name, values, took_s)?;
        let left_s = begun.elapsed().as_secs_f64() / (done + 1) as f64 * (missing.len() - done - 1) as f64;
        progress(&format!(
            "{}: {}/{} {} ({}; about {} left)",
            experiment.name(),
            n + 1,
            points.len(),
            point.name,
            time(took_s),
            time(left_s)
        ));
    }
    Ok(())
}

/// Tables, figures and verdicts.
fn files(out: &Path, experiment: &dyn Experiment, report: &Report) -> Result<(), LabError> {
    let path = |end: &str| out.join(format!("{}-{end}", experiment.name()));
    for section in &report.sections {
        if let Some((end, table)) = &section.table {
            write(&path(&format!("{end}.csv")), table.csv().as_bytes())?;
        }
        if let Some((end, picture)) = &section.picture {
            write(&path(&format!("{end}.svg")), picture.drawing().svg().as_bytes())?;
            write(&path(&format!("{end}.png")), &picture.drawing().png())?;
        }
    }
    let mut verdicts = Table::new(["item", "stand", "document", "ours"]);
    for v in &report.verdicts {
        verdicts.row([v.item.into(), v.stand.word().into(), v.document.as_str().into(), v.ours.as_str().into()]);
    }
    write(&path("verdicts.csv"), verdicts.csv().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::seed_of;

    #[test]
    fn points_have_seeds_of_their_own() {
        assert_eq!(seed_of(1, "a"), seed_of(1, "a"));
        assert!(seed_of(1, "a") != seed_of(2, "a") && seed_of(1, "a") != seed_of(1, "b"));
    }
}
