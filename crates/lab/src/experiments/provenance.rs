//! What a page says of where it comes from: machine, date, commit, command.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a run took place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Provenance {
    /// Processor, memory, system.
    pub machine: String,
    /// Day and minute, UTC.
    pub date: String,
    /// Of the source tree that the run began in.
    pub commit: String,
    /// How the program that measured was built, and which one the nodes run where that is another.
    pub program: String,
}

/// What records have that were begun before they said it.
const UNTOLD: &str = "its record does not say how it was built";

fn program(binary: &Path) -> String {
    let built = if cfg!(debug_assertions) { "built without optimisation" } else { "an optimised build" };
    let own = std::env::current_exe().is_ok_and(|own| own == binary);
    // Experiments that start no nodes may be told of a program that is not there.
    if own || !binary.exists() { built.to_owned() } else { format!("{built}; nodes of {}", binary.display()) }
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.into());
    let kib: Option<u64> = field(&read("/proc/meminfo"), "MemTotal").and_then(|m| m.split(' ').next()?.parse().ok());
    let memory = kib.map_or(String::new(), |kib| format!(", {:.0} GiB", kib as f64 / f64::from(1 << 20)));
    let release = read("/proc/sys/kernel/osrelease");
    let release = release.trim().split('-').next().unwrap_or_default();
    format!("{cores} virtual cores ({model}){memory}, {} {release}", std::env::consts::OS)
}

/// Year, month and day of a number of days since 1970 (Howard Hinnant's civil calendar).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year_of_era + era * 400 + carry, month, day)
}

fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()).cast_signed();
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let minutes = seconds.rem_euclid(86_400) / 60;
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(hash) = git(&["rev-parse", "--short=10", "HEAD"]) else { return "not of a source tree".into() };
    // What a run writes is no change of the code.
    // From the top of the tree, wherever the run began in it.
    const CODE: [&str; 4] = ["--", ":/crates", ":/Cargo.toml", ":/Cargo.lock"];
    let status = git(&[&["status", "--porcelain", "--untracked-files=no"][..], &CODE].concat());
    let changed = git(&[&["log", "-1", "--format=%ct"][..], &CODE].concat()).and_then(|seconds| seconds.parse().ok());
    let built = std::env::current_exe().and_then(fs::metadata).and_then(|program| program.modified()).ok();
    match status.as_deref() {
        Some("") if is_older(built, changed) => format!("{hash}, by a program that was built before it"),
        Some("") => hash,
        _ => format!("{hash} and changes"),
    }
}

/// Whether a program was built before the last change of the code, seconds since 1970.
fn is_older(built: Option<SystemTime>, changed: Option<u64>) -> bool {
    let built = built.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    matches!((built, changed), (Some(built), Some(changed)) if built.as_secs() < changed)
}

impl Provenance {
    /// Of this process, whose nodes are of this program.
    pub fn here(binary: &Path) -> Self {
        Provenance { machine: machine(), date: date(), commit: commit(), program: program(binary) }
    }
    /// As the second line of a record.
    pub fn line(&self) -> String {
        format!("# {}\t{}\t{}\t{}", self.machine, self.date, self.commit, self.program)
    }
    /// Reads that back.
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.strip_prefix("# ")?.split('\t').map(str::to_owned);
        let (machine, date, commit) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Provenance { machine, date, commit, program: fields.next().unwrap_or_else(|| UNTOLD.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Provenance, UNTOLD, civil, is_older};
    use std::path::Path;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_program_that_is_older_than_the_code_is_told() {
        let built = Some(UNIX_EPOCH + Duration::from_secs(1_000));
        assert!(is_older(built, Some(1_001)) && !is_older(built, Some(1_000)));
        assert!(!is_older(built, None) && !is_older(None, Some(1_000)));
    }

    #[test]
    fn a_line_reads_back() {
        let here = Provenance::here(Path::new("/bin/sh"));
        assert!(here.program.ends_with("; nodes of /bin/sh"), "{}", here.program);
        assert_eq!(Provenance::parse(&here.line()), Some(here));
        // Records of before have no fourth field.
        assert_eq!(Provenance::parse("# m\td\tc").map(|p| p.program), Some(UNTOLD.to_owned()));
        assert_eq!(Provenance::parse("p x=1\ta=2"), None);
    }

    #[test]
    fn days_have_dates() {
        assert_eq!(
            [0, -1, 59, 11_016, 20_417].map(civil),
            [(1970, 1, 1), (1969, 12, 31), (1970, 3, 1), (2000, 2, 29), (2025, 11, 25)]
        );
    }
}
