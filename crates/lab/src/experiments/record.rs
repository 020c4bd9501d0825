//! What was measured so far, on disk as it comes: an interrupted run goes on where it stopped.

use super::provenance::Provenance;
use super::{Experiment, LabError, Measured, Scope, Size, Values};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// First word of the first line.
const HEAD: &str = "# timeball lab points 1";
/// How long a point took, among its numbers: it is of the run, not of what is measured.
const TOOK_S: &str = "took_s";

/// A file of points: a line that says which run it is of, one that says where that took place, and one for each point. One run has it at a time.
///
/// What another run left stays until the first point of this one is there: who fails before that has lost nothing.
pub(super) struct Record {
    path: PathBuf,
    file: File,
    /// The first two lines, where they are to take the place of what is there.
    head: Option<String>,
    /// What is there.
    pub measured: Measured,
    /// How long that took, seconds.
    pub took_s: f64,
    /// Where the run began.
    pub begun: Provenance,
}

fn head(experiment: &str, scope: Scope) -> String {
    format!("{HEAD}\t{experiment}\t{:?}\tseed {}", scope.size, scope.seed)
}

fn line(point: &str, values: &Values, took_s: f64) -> String {
    let mut line = format!("{point}\t{TOOK_S}={took_s:.3}");
    for (name, value) in values {
        // Writing to a String cannot fail. The shortest text that reads back as the same number.
        let _ = write!(line, "\t{name}={value:?}");
    }
    line
}

fn parse_line(line: &str) -> Option<(String, Values, f64)> {
    let mut fields = line.split('\t');
    let point = fields.next()?.to_owned();
    let number = |field: &str| {
        let (name, value) = field.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    let mut values = fields.map(number).collect::<Option<Values>>()?;
    let took_s = values.remove(TOOK_S)?;
    Some((point, values, took_s))
}

/// Size and seed of a first line.
fn scope_of(line: &str, experiment: &str) -> Option<Scope> {
    let mut fields = line.strip_prefix(HEAD)?.strip_prefix('\t')?.split('\t');
    let (name, size, seed) = (fields.next()?, fields.next()?, fields.next()?.strip_prefix("seed ")?);
    let size = [Size::Quick, Size::Usual, Size::Full].into_iter().find(|known| format!("{known:?}") == size)?;
    (name == experiment).then_some(Scope { size, seed: seed.parse().ok()? })
}

fn path_of(dir: &Path, experiment: &str) -> PathBuf {
    dir.join(format!("{experiment}.points.tsv"))
}

impl Record {
    /// Nothing is lost if a new run takes the place of what is there: nothing is there, or all points of the run that its first line names.
    ///
    /// # Errors
    /// [`LabError::Unfinished`], also where the first line names no run: somebody should look.
    pub fn is_finished(dir: &Path, experiment: &dyn Experiment) -> Result<(), LabError> {
        let path = path_of(dir, experiment.name());
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(LabError::File { path, error }),
        };
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let scope = lines.next().and_then(|first| scope_of(first, experiment.name()));
        // A run that ended before its first point.
        if text.is_empty() {
            return Ok(());
        }
        let there: BTreeSet<&str> = lines.skip(1).filter_map(|line| line.split('\t').next()).collect();
        let wanted = experiment.points(scope.unwrap_or(Scope { size: Size::Usual, seed: 0 }));
        let missing = wanted.iter().filter(|point| !there.contains(point.name.as_str())).count();
        // A run that stopped before its first point has left nothing to be lost.
        match scope.is_some() && (missing == 0 || there.is_empty()) {
            true => Ok(()),
            false => Err(LabError::Unfinished { path, there: there.len(), all: wanted.len() }),
        }
    }

    /// A new file, of a run that begins `here`, or what an interrupted run of the same experiment, size and seed left.
    ///
    /// # Errors
    /// The system's; [`LabError::Running`]; [`LabError::Resume`] where what is there is of another run.
    pub fn open(dir: &Path, experiment: &str, scope: Scope, resume: bool, here: &Provenance) -> Result<Self, LabError> {
        let path = path_of(dir, experiment);
        let failed = |error| LabError::File { path: path.clone(), error };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LabError::Running { path }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let (mut measured, mut took_s, mut begun) = (Measured::default(), 0.0, here.clone());
        let text = fs::read_to_string(&path).map_err(failed)?;
        let anew = !resume || text.is_empty();
        if !anew {
            let wrong = |reason: String| LabError::Resume { path: path.clone(), reason };
            // A line without an end was being written when the run ended: it is measured again.
            let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
            let mut lines = whole.lines();
            let (found, wanted) = (lines.next().unwrap_or_default(), head(experiment, scope));
            if found != wanted {
                return Err(wrong(format!("it begins with {found:?}, this run's would with {wanted:?}")));
            }
            let told = lines.next().and_then(Provenance::parse);
            begun = told.ok_or_else(|| wrong("line 2 does not say where the run began".into()))?;
            for (n, text) in lines.enumerate() {
                let Some((point, values, seconds)) = parse_line(text) else {
                    return Err(wrong(format!("line {} cannot be read", n + 3)));
                };
                took_s += seconds;
                measured.0.insert(point, values);
            }
            file.set_len(whole.len() as u64).map_err(failed)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        let head = anew.then(|| format!("{}\n{}\n", head(experiment, scope), begun.line()));
        Ok(Record { path, file, head, measured, took_s, begun })
    }

    /// Why a program of this commit, or built in this way, does not go on with it, if it is another: one page would be of two programs.
    ///
    /// # Errors
    /// [`LabError::Resume`].
    pub fn is_of(&self, here: &Provenance) -> Result<(), LabError> {
        let (begun, wrong) = (&self.begun, |reason| Err(LabError::Resume { path: self.path.clone(), reason }));
        if begun.commit != here.commit {
            return wrong(format!("it was begun at {}, this is {}", begun.commit, here.commit));
        }
        match begun.program == here.program {
            true => Ok(()),
            false => wrong(format!("it was begun by {}, this is {}", begun.program, here.program)),
        }
    }

    /// A point was measured.
    pub fn add(&mut self, point: &str, values: Values, took_s: f64) -> Result<(), LabError> {
        let failed = |error| LabError::File { path: self.path.clone(), error };
        if let Some(head) = &self.head {
            self.file.set_len(0).map_err(failed)?;
            self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
            self.file.write_all(head.as_bytes()).map_err(failed)?;
            self.head = None;
        }
        self.file.write_all((line(point, &values, took_s) + "\n").as_bytes()).map_err(failed)?;
        self.file.flush().map_err(failed)?;
        self.took_s += took_s;
        self.measured.0.insert(point.to_owned(), values);
        Ok(())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // A closed file is locked still while a process that was just forked has it, too.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::{line, parse_line};
    use crate::experiments::values;

    #[test]
    fn numbers_read_back_as_they_were() {
        let all = values([("a_ms", 0.1 + 0.2), ("b", f64::NAN), ("c", 1e-300), ("d", 3.0)]);
        let (point, back, took_s) = parse_line(&line("p x=1", &all, 2.5)).unwrap();
        assert_eq!((point.as_str(), took_s), ("p x=1", 2.5));
        assert_eq!((back["a_ms"], back["c"], back["d"]), (0.1 + 0.2, 1e-300, 3.0));
        assert!(back["b"].is_nan() && parse_line("p\tq=z").is_none());
    }
}
